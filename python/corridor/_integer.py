"""Checks of integer arguments."""

from __future__ import annotations

import operator
from typing import SupportsIndex

#: Largest seed, and largest id.
WORD_MAX = 2**64 - 1


def integer(name: str, value: SupportsIndex, low: int, high: int | None = None) -> int:
    """Check that an argument is an integer within bounds, and return it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} = {value!r}: expected a whole number") from None
    if number < low or (high is not None and number > high):
        word = "2^64 - 1" if high == WORD_MAX else high
        expected = f"{low} or more" if high is None else f"{low} to {word}"
        raise ValueError(f"{name} = {number}: expected {expected}")
    return number
