"""Checks of the models' arguments: one out of range raises an error that says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")


def broadcasting(function: Callable[P, T]) -> Callable[P, T]:
    """Name the arguments in the error when their shapes cannot be broadcast together."""

    @wraps(function)
    def named(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except ValueError as error:
            if "broadcast" not in str(error):
                raise
        given = inspect.signature(function).bind(*args, **kwargs).arguments
        shapes = {name: np.shape(value) for name, value in given.items()}
        arrays = {name: shape for name, shape in shapes.items() if shape}
        raise ValueError(
            f"{', '.join(arrays)} = arrays of shapes {', '.join(map(str, arrays.values()))}: "
            f"expected shapes that can be broadcast against each other"
        )

    return named


def within(
    name: str,
    value: ArrayLike,
    low: float,
    high: float,
    *,
    open_low: bool = False,
    open_high: bool = False,
    what: str = "a number",
) -> FloatArray:
    """Return the argument as an array of floats, all within a range.

    Raises
    ------
    ValueError
        With the argument's name, the first value out of range (NaN counts as such), and the range.
    """
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {value!r}: expected {what}, or an array of them") from None
    above = array > low if open_low else array >= low
    below = array < high if open_high else array <= high
    good = above & below
    if not np.all(good):
        given = float(np.atleast_1d(array)[~np.atleast_1d(good)][0])
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise ValueError(f"{name} = {given:g}: expected {what} in {left}{low:g}, {high:g}{right}")
    return array


def positive(name: str, value: ArrayLike, what: str) -> FloatArray:
    """Return the argument as an array of finite floats above 0."""
    return within(name, value, 0.0, np.inf, open_low=True, open_high=True, what=what)


def at_least(name: str, value: ArrayLike, low: float, what: str) -> FloatArray:
    """Return the argument as an array of finite floats, each at least ``low``."""
    return within(name, value, low, np.inf, open_high=True, what=what)


def rate(name: str, value: ArrayLike, what: str = "Mbit/s") -> FloatArray:
    """Return the argument as an array of rates, sizes or times from 0; infinity is allowed."""
    return within(name, value, 0.0, np.inf, what=what)


def round_trip(name: str, value: ArrayLike) -> FloatArray:
    """Return the argument as an array of round-trip times, s."""
    return positive(name, value, "a round-trip time")


def largest_window(window_max: ArrayLike) -> FloatArray:
    """Return the argument as an array of largest windows, packets, from 1."""
    return within("window_max", window_max, 1, np.inf, what="packets")


def whole(
    name: str, value: int, low: int, high: int | None = None, what: str = "a whole number"
) -> int:
    """Return the argument as an integer from ``low`` to ``high``, if there is an upper bound."""
    expected = f"{low} or more" if high is None else f"{what} in {low}..{high}"
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} = {value!r}: expected {expected}") from None
    if value != number or number < low or (high is not None and number > high):
        raise ValueError(f"{name} = {value}: expected {expected}")
    return number


def choice(name: str, value: str, *options: str) -> None:
    """Raise an error unless the value is one of the options."""
    if value not in options:
        expected = " or ".join(repr(option) for option in options)
        raise ValueError(f"{name} = {value!r}: expected {expected}")


def erasure(name: str, value: ArrayLike) -> FloatArray:
    """Return the argument as an array of erasure probabilities in [0, 1)."""
    return within(name, value, 0.0, 1.0, open_high=True, what="an erasure probability")


def scalar(array: FloatArray) -> FloatArray:
    """Return a zero-dimensional array as a numpy scalar, any other unchanged."""
    result: FloatArray = array[()]
    return result
