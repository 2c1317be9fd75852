"""Throughput of TCP/NC, TCP over network coding: Sections V and VI of KIM.

KIM is M. Kim et al., "Modeling Network Coded TCP: Analysis of Throughput and Energy Cost" (2012). R
is the redundancy factor: coded packets sent per TCP packet.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, stats
from scipy.sparse import linalg

from corridor.models._check import (
    FloatArray,
    at_least,
    broadcasting,
    choice,
    erasure,
    positive,
    rate,
    round_trip,
    scalar,
    whole,
    within,
)

#: Largest window for the Markov chain, whose number of states grows with its square.
CHAIN_WINDOW_MAX = 1000
#: Largest redundancy factor that the search tries.
REDUNDANCY_MAX = 100.0


def _redundancy(value: ArrayLike) -> FloatArray:
    return at_least("redundancy", value, 1, "a redundancy factor")


def _windows(window_first: ArrayLike, window_max: ArrayLike) -> tuple[FloatArray, FloatArray]:
    largest = at_least("window_max", window_max, 1, "packets")
    first = at_least("window_first", window_first, 1, "packets")
    if np.any(first > largest):
        given = float(np.max(first))
        raise ValueError(f"window_first = {given:g}: expected packets, at most window_max")
    return first, largest


@broadcasting
def window(
    round_number: ArrayLike,
    p: ArrayLike,
    redundancy: ArrayLike,
    window_max: ArrayLike = 50,
    window_first: ArrayLike = 1,
) -> FloatArray:
    """Mean window after i rounds, E[W_i] (KIM, Eq. 17; Fig. 5).

    Parameters
    ----------
    round_number
        Number of rounds i, from 0.
    p
        End-to-end erasure probability, in [0, 1).
    redundancy
        Redundancy factor R, from 1.
    window_max
        Maximum window, packets, from 1.
    window_first
        Initial window, E[W_1], packets, from 1 to window_max.

    Returns
    -------
    Packets: min(window_max, window_first + i min(1, R (1-p))).

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> window([0, 30, 60, 90], 0.1, 1.2, window_max=90, window_first=30).tolist()
    [30.0, 60.0, 90.0, 90.0]
    """
    first, largest = _windows(window_first, window_max)
    rounds = rate("round_number", round_number, "rounds")
    return scalar(np.minimum(largest, first + rounds * delivery_ratio(p, redundancy)))


@broadcasting
def delivery_ratio(p: ArrayLike, redundancy: ArrayLike) -> FloatArray:
    """Fraction of TCP's packets acknowledged in a round, min(1, R (1-p)) (KIM, Section V-A).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 1).
    redundancy
        Redundancy factor R, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(delivery_ratio(0.2, 1.2))
    0.96
    """
    return scalar(np.minimum(1.0, _redundancy(redundancy) * (1 - erasure("p", p))))


@broadcasting
def transmissions_to_window(window_size: ArrayLike, p: ArrayLike) -> FloatArray:
    """Packets sent until the window reaches W, T_p(W) (KIM, Eq. 18).

    Parameters
    ----------
    window_size
        Target window W, starting from 1, packets, from 1.
    p
        End-to-end erasure probability, in [0, 1).

    Returns
    -------
    Packets: W (W-1) / (2 (1-p)).

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> transmissions_to_window(50, [0, 0.0963]).round(1).tolist()
    [1225.0, 1355.5]
    """
    size = at_least("window_size", window_size, 1, "packets")
    return scalar(size * (size - 1) / (2 * (1 - erasure("p", p))))


def chain_windows(
    window_max: int, growth: Literal["per_window", "per_packet"] = "per_window"
) -> FloatArray:
    """Window of each state of the Markov chain, in order, absorbing state last (KIM, Fig. 6).

    Parameters
    ----------
    window_max
        Maximum window, packets, 1 to 1000.
    growth
        ``per_window``: 1/w per packet acknowledged while the window is between w and w+1, so that
        it grows by one in w packets, as Eq. 18 counts. ``per_packet``: 1/W per packet, as drawn in
        Fig. 6; gives a few more states. See docs/errata.md, K3.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> chain_windows(3).tolist()
    [1.0, 2.0, 2.5, 3.0]
    """
    whole("window_max", window_max, 1, CHAIN_WINDOW_MAX, "packets")
    choice("growth", growth, "per_window", "per_packet")
    if growth == "per_window":
        states = [w + k / w for w in range(1, window_max) for k in range(w)]
        return np.array([*states, window_max], dtype=np.float64)
    states = [1.0]
    while states[-1] < window_max:
        states.append(min(states[-1] + 1 / states[-1], float(window_max)))
    return np.array(states)


def chain_matrix(p: float, states: int) -> sparse.csr_array:
    """Transition matrix P of the Markov chain: p to stay, 1-p to advance (KIM, Fig. 7).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 1).
    states
        Number of states, including the absorbing one, from 1.

    Returns
    -------
    A sparse matrix with ``states`` rows; the last state is absorbing.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> chain_matrix(0.25, 3).toarray().tolist()
    [[0.25, 0.75, 0.0], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]]
    """
    loss = float(erasure("p", p))
    whole("states", states, 1)
    here = np.arange(states)
    stay = np.where(here == states - 1, 1.0, loss)
    step = np.full(states - 1, 1 - loss)
    places = np.concatenate([here, here[:-1]]), np.concatenate([here, here[1:]])
    return sparse.csr_array((np.concatenate([stay, step]), places), shape=(states, states))


def chain_transmissions(
    window_max: int, p: float, growth: Literal["per_window", "per_packet"] = "per_window"
) -> float:
    """Packets sent until absorption, computed from the chain itself (KIM, Figs. 6 and 7).

    Solves (I - Q) t = 1 for the mean numbers t of steps to absorption; Eq. 18 is the closed form of
    the first component.

    Parameters
    ----------
    window_max
        Maximum window, packets, 1 to 1000.
    p
        End-to-end erasure probability, in [0, 1).
    growth
        As for `chain_windows`.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> round(chain_transmissions(50, 0.0963), 6) == round(float(1225 / (1 - 0.0963)), 6)
    True
    """
    states = len(chain_windows(window_max, growth))
    matrix = chain_matrix(p, states)
    if states == 1:
        return 0.0
    transient = matrix[:-1, :-1]
    identity = sparse.eye_array(states - 1, format="csr")
    steps = linalg.spsolve_triangular(
        sparse.csr_array(identity - transient), np.ones(states - 1), lower=False
    )
    return float(steps[0])


@broadcasting
def round_throughput(
    window_size: ArrayLike, srtt_s: ArrayLike, p: ArrayLike, redundancy: ArrayLike
) -> FloatArray:
    """Throughput in a round with a given window, T_i (KIM, Eq. 19).

    Parameters
    ----------
    window_size
        Window E[W_i], packets, from 0.
    srtt_s
        Smoothed round-trip time, s, above 0.
    p
        End-to-end erasure probability, in [0, 1).
    redundancy
        Redundancy factor R, from 1.

    Returns
    -------
    Packets per second.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(round_throughput(50, 0.8, 0.1, 1.2))
    62.5
    """
    size = rate("window_size", window_size, "packets")
    srtt = round_trip("srtt_s", srtt_s)
    return scalar(size / srtt * delivery_ratio(p, redundancy))


@broadcasting
def packets_in_rounds(
    rounds: ArrayLike,
    window_max: ArrayLike = 50,
    window_first: ArrayLike = 1,
    form: Literal["printed", "continuous"] = "printed",
) -> FloatArray:
    """Packets acknowledged in n rounds, f(n) (KIM, below Eq. 20).

    Parameters
    ----------
    rounds
        Number of rounds n, from 0; need not be an integer.
    window_max
        Maximum window, packets, from 1.
    window_first
        Initial window, E[W_1], packets, from 1 to window_max.
    form
        ``printed``: with r* (r*-1)/2 in the second branch, which makes f jump by r* at n = r*.
        ``continuous``: with r* (r*+1)/2, the sum in the first branch. See docs/errata.md, K4.

    Returns
    -------
    Packets.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> packets_in_rounds([49, 49.001], form="printed").round().tolist()
    [1274.0, 1225.0]
    >>> packets_in_rounds([49, 49.001], form="continuous").round().tolist()
    [1274.0, 1274.0]
    """
    choice("form", form, "printed", "continuous")
    n = at_least("rounds", rounds, 0, "rounds")
    first, largest = _windows(window_first, window_max)
    growing = largest - first
    sign = -1 if form == "printed" else 1
    before = n * first + n * (n + 1) / 2
    after = n * largest - growing * growing + growing * (growing + sign) / 2
    return scalar(np.where(n <= growing, before, after))


@broadcasting
def throughput(
    duration_s: ArrayLike,
    srtt_s: ArrayLike,
    window_max: ArrayLike = 50,
    window_first: ArrayLike = 1,
    form: Literal["printed", "continuous"] = "printed",
) -> FloatArray:
    """Mean throughput of TCP/NC over a connection's duration, f(n) / (n SRTT) (KIM, Eq. 20).

    Assumes R at least 1/(1-p). For long durations the throughput tends to window_max / srtt_s.

    Parameters
    ----------
    duration_s
        Duration n SRTT of the connection, s, above 0; infinite for the limit.
    srtt_s
        Smoothed round-trip time, s, above 0.
    window_max
        Maximum window, packets, from 1.
    window_first
        Initial window, E[W_1], packets, from 1 to window_max.
    form
        As for `packets_in_rounds`.

    Returns
    -------
    Packets per second.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    Table I of KIM at p = 0, in Mbit/s, with both readings of E[W_1]:

    >>> from corridor.models.tcp import mbps
    >>> mbps(throughput(1000, 0.8256, window_first=[25, 1])).round(4)
    array([0.4819, 0.4747])
    """
    duration = within("duration_s", duration_s, 0, np.inf, open_low=True, what="seconds")
    srtt = round_trip("srtt_s", srtt_s)
    first, largest = _windows(window_first, window_max)
    finite = np.where(np.isinf(duration), 1.0, duration)
    mean = packets_in_rounds(finite / srtt, largest, first, form) / finite
    return scalar(np.where(np.isinf(duration), largest / srtt, mean))


def _half_up(value: FloatArray) -> FloatArray:
    # A small excess catches halves that binary fractions miss: 50 (1.03 - 1) is 1.5.
    half_up: FloatArray = np.floor(value + 0.5 + 1e-9)
    return half_up


@broadcasting
def mask_probability(p: ArrayLike, redundancy: ArrayLike, window_size: ArrayLike) -> FloatArray:
    """Probability that a round's losses do not exceed its redundancy (KIM, Section VI-B).

    The sum over x from 0 to W (R-1) of C(RW, x) p^x (1-p)^(RW-x); numbers of packets are rounded to
    integers, halves up.

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 1).
    redundancy
        Redundancy factor R, from 1.
    window_size
        Window W, packets, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> mask_probability(0.0963, [1.10, 1.13], 50).round(2)
    array([0.56, 0.82])
    """
    p = erasure("p", p)
    size = at_least("window_size", window_size, 1, "packets")
    sent = _half_up(_redundancy(redundancy) * size)
    return scalar(np.asarray(stats.binom.cdf(sent - _half_up(size), sent, p), dtype=np.float64))


def redundancy_for(
    p: ArrayLike, window_size: int = 50, probability: float = 0.8, step: float = 0.01
) -> FloatArray:
    """Smallest redundancy factor that masks a round's losses with a given probability (KIM, VI-B).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 1).
    window_size
        Window W, packets, from 1.
    probability
        Required probability that losses are masked, in (0, 1).
    step
        Step of the search for R, which starts at 1; above 0.

    Raises
    ------
    ValueError
        For an argument out of its range, or if no R up to 100 suffices.

    Examples
    --------
    Table I of KIM has 1, 1.03, 1.09, 1.13, 1.29 (docs/errata.md, K6):

    >>> from corridor.models.tcp import end_to_end_erasure
    >>> redundancy_for(end_to_end_erasure([0, 0.005, 0.015, 0.025, 0.05]))
    array([1.  , 1.03, 1.09, 1.13, 1.27])
    """
    losses = erasure("p", p)
    within("probability", probability, 0, 1, open_low=True, open_high=True, what="a probability")
    positive("step", step, "a step")
    flat = [_least(float(p), window_size, probability, step) for p in np.atleast_1d(losses).flat]
    return scalar(np.array(flat).reshape(losses.shape))


def _least(p: float, window_size: int, probability: float, step: float) -> float:
    top = 2.0
    while top <= REDUNDANCY_MAX:
        grid = np.round(1 + step * np.arange(np.ceil((top - 1) / step) + 1), 9)
        enough = mask_probability(p, grid, window_size) >= probability
        if np.any(enough):
            return float(grid[np.argmax(enough)])
        top *= 2
    raise ValueError(f"p = {p:g}: expected one that an R of up to {REDUNDANCY_MAX:g} can mask")


@broadcasting
def achievable_bandwidth(
    capacity: ArrayLike, p: ArrayLike, redundancy: ArrayLike, flows: ArrayLike = 1
) -> FloatArray:
    """Fair share of a link's capacity that coded flows can use (KIM, Section VI-C).

    Parameters
    ----------
    capacity
        Capacity C, in any unit, above 0.
    p
        End-to-end erasure probability, in [0, 1).
    redundancy
        Redundancy factor R, from 1.
    flows
        Number of flows sharing the link, from 1.

    Returns
    -------
    min(C (1-p), C/R) / flows, in the unit of C.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(achievable_bandwidth(0.7, 0.0963, 1.2, flows=2).round(4))
    0.2917
    """
    c = positive("capacity", capacity, "a capacity")
    share = np.minimum(1 - erasure("p", p), 1 / _redundancy(redundancy))
    return scalar(c * share / at_least("flows", flows, 1, "flows"))
