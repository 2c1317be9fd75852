"""Lazy import of submodules (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazily(
    package: str, submodules: Sequence[str], names: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a package's ``__getattr__``, which imports submodules as attributes on first use.

    Parameters
    ----------
    package
        Name of the package.
    submodules
        Names of its submodules.
    names
        Further attributes, each mapped to the submodule that defines it.

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
