"""Dataclasses as tables of a plan file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from corridor._integer import integer


def table(value: Any) -> dict[str, Any]:
    """Return a dataclass as a table, without fields that are None."""
    kind = getattr(value, "KIND", None)
    found: dict[str, Any] = {} if kind is None else {"kind": kind}
    hints = get_type_hints(type(value))
    for each in fields(value):
        item = getattr(value, each.name)
        if is_dataclass(item):
            found[each.name] = table(item)
        elif isinstance(item, Sequence) and not isinstance(item, str):
            found[each.name] = [table(i) if is_dataclass(i) else plain(i) for i in item]
        elif item is not None:
            found[each.name] = _checked(
                f"{type(value).__name__}.{each.name}", item, hints[each.name]
            )
    return found


def _checked(name: str, item: Any, hint: Any) -> Any:
    """Return a field's value as a TOML type, or raise an error that names the expected type."""
    options = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    literals = [option for option in options if get_origin(option) is Literal]
    choices = [choice for literal in literals for choice in get_args(literal)]
    if choices:
        # Some keys accept either a word or a boolean.
        if item not in choices and not (bool in options and isinstance(item, bool)):
            expected = ", ".join(map(repr, choices))
            raise ValueError(f"{name} = {item!r}: expected one of {expected}")
        return item
    if int in options:
        # 2e6 is an integer too.
        is_whole = isinstance(item, float) and item.is_integer()
        return integer(name, int(item) if is_whole else item, 0)
    return number(name, item) if float in options else plain(item)


def number(name: str, value: Any) -> float:
    """Return a number as a TOML float, or raise an error that names the field."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {value!r}: expected a number") from None


T = TypeVar("T")


def all_of(name: str, given: Sequence[T], kind: type[T]) -> Sequence[T]:
    """Check that a value is a list of instances of ``kind``."""
    word = kind.__name__
    if not isinstance(given, Sequence):
        raise ValueError(f"{name} = {given!r}: expected a list of {word}")
    for place, each in enumerate(given):
        if not isinstance(each, kind):
            raise ValueError(f"{name}[{place}] = {each!r}: expected a {word}")
    return given


def plain(value: Any) -> Any:
    """Return a value free of numpy types, which TOML cannot represent."""
    return value.item() if isinstance(value, np.generic) else value


def with_routes(network: dict[str, Any]) -> dict[str, Any]:
    """Return a network's table, with routes and tunnels under their names in the file."""
    names = {"route": network.pop("routes", []), "tunnel": network.pop("tunnels", [])}
    return {**network, **{name: given for name, given in names.items() if given}}
