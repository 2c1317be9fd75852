"""Submodules that are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType


def lazily(package: str, submodules: Sequence[str]) -> Callable[[str], ModuleType]:
    """Return what a package has for ``__getattr__``, so that its submodules are its attributes.

    Examples
    --------
    >>> lazily("corridor", ["plot"])("plot").__name__
    'corridor.plot'
    """

    def attribute(name: str) -> ModuleType:
        if name in submodules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return attribute
