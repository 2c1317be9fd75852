"""Submodules that are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, submodules: Sequence[str], names: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return what a package has for ``__getattr__``, so that its submodules are its attributes.

    Parameters
    ----------
    package
        The package.
    submodules
        Those of its submodules.
    names
        What else it has, and in which of the submodules.

    Examples
    --------
    >>> lazily("corridor", ["plot"])("plot").__name__
    'corridor.plot'
    """

    def attribute(name: str) -> Any:
        if name in submodules:
            return import_module(f"{package}.{name}")
        if names and name in names:
            return getattr(import_module(f"{package}.{names[name]}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
