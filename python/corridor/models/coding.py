"""Transmission budgets for block coding with a helper, and coding gains.

The daemon's own code computes these budgets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from corridor import _native
from corridor.models._check import FloatArray, at_least, broadcasting, scalar, within

#: Largest erasure ratio the daemon assumes; larger ones are clipped to it.
ERASURE_RATIO_MAX = _native.ERASURE_RATIO_MAX


@dataclass(frozen=True)
class PlayNCool:
    """Transmission budgets of a block, in symbols; see `playncool`.

    Parameters
    ----------
    encoder_head_start
        Encoder transmissions before the helper starts, r.
    helper_threshold
        Symbols the helper has overheard when it starts, r (1-e1).
    helper_budget
        Helper transmissions, k.
    encoder_budget
        Encoder transmissions, r + k.
    """

    encoder_head_start: FloatArray
    helper_threshold: FloatArray
    helper_budget: FloatArray
    encoder_budget: FloatArray


def _points(
    block_size: ArrayLike, e1: ArrayLike, e2: ArrayLike, e3: ArrayLike
) -> tuple[list[FloatArray], tuple[int, ...]]:
    arrays = [within("block_size", block_size, 1, 1024, what="symbols")]
    for name, ratio in (("e1", e1), ("e2", e2), ("e3", e3)):
        arrays.append(within(name, ratio, 0, 1, what="an erasure ratio"))
    even = np.broadcast_arrays(*arrays)
    return [np.ascontiguousarray(array).ravel() for array in even], even[0].shape


@broadcasting
def playncool(block_size: ArrayLike, e1: ArrayLike, e2: ArrayLike, e3: ArrayLike) -> PlayNCool:
    """Budgets of PlayNCool for a block (FRANC 2014, Section II-A), as the daemon computes them.

    Parameters
    ----------
    block_size
        Number of symbols g in the block, 1 to 1024.
    e1, e2, e3
        Erasure ratios from encoder to helper, helper to decoder, and encoder to decoder, in [0, 1];
        values above `ERASURE_RATIO_MAX` are clipped to it.

    Returns
    -------
    Symbols, without overshoot.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> budgets = playncool(150, 0.3, 0.3, [0.4, 0.6])
    >>> budgets.encoder_budget.round(1)
    array([170.5, 182.9])
    """
    points, shape = _points(block_size, e1, e2, e3)
    columns = _native.playncool(*points)
    return PlayNCool(*(scalar(column.reshape(shape)) for column in columns))


@broadcasting
def optimum(
    block_size: ArrayLike, e1: ArrayLike, e2: ArrayLike, e3: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Minimum expected transmissions by encoder and helper to deliver a block to the decoder.

    The minimum of N_s + N_h subject to N_s (1 - e1 e3) >= g and N_s (1-e3) + N_h (1-e2) >= g.

    Parameters
    ----------
    block_size
        Number of symbols g in the block, 1 to 1024.
    e1, e2, e3
        Erasure ratios from encoder to helper, helper to decoder, and encoder to decoder, in [0, 1];
        values above `ERASURE_RATIO_MAX` are clipped to it.

    Returns
    -------
    Transmissions of the encoder, N_s, and of the helper, N_h.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> [float(count.round(1)) for count in optimum(150, 0.25, 0.25, 0.5)]
    [171.4, 85.7]
    """
    points, shape = _points(block_size, e1, e2, e3)
    encoder, helper = _native.optimum(*points)
    return scalar(encoder.reshape(shape)), scalar(helper.reshape(shape))


def _relays(relays: ArrayLike) -> FloatArray:
    return at_least("relays", relays, 1, "relays")


def chain_gain_relays(relays: ArrayLike) -> FloatArray:
    """Coding gain of a chain by CATWOMAN 2013's formula, 1 + (N-1)/(2N).

    Parameters
    ----------
    relays
        Number of relays N between the two end nodes, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> chain_gain_relays([1, 3, 6]).round(4)
    array([1.    , 1.3333, 1.4167])
    """
    n = _relays(relays)
    return scalar(1 + (n - 1) / (2 * n))


def chain_gain_nodes(relays: ArrayLike) -> FloatArray:
    """Same with end nodes counted, 1 + N/(2(N+1)): CATWOMAN's text has 1.25 for N = 1.

    Parameters
    ----------
    relays
        Number of relays N between the two end nodes, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> chain_gain_nodes([1, 3, 6]).round(3)
    array([1.25 , 1.375, 1.429])
    """
    n = _relays(relays)
    return scalar(1 + n / (2 * (n + 1)))


def chain_gain_transmissions(relays: ArrayLike) -> FloatArray:
    """Transmissions without coding over those with coding, 2 (N+1) / (N+2), as in COPE.

    Parameters
    ----------
    relays
        Number of relays N between the two end nodes, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> chain_gain_transmissions([1, 3, 6]).round(2)
    array([1.33, 1.6 , 1.75])
    """
    n = _relays(relays)
    return scalar(2 * (n + 1) / (n + 2))
