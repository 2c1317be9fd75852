"""TCP's throughput over independent erasures: Sections III and IV of KIM.

KIM is M. Kim et al., "Modeling Network Coded TCP: Analysis of Throughput and Energy Cost" (2012).
Time is counted in rounds of one round-trip time; throughputs are in packets per second, and `mbps`
converts them to megabits per second. All functions take arrays and broadcast them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from corridor.models._check import (
    FloatArray,
    broadcasting,
    choice,
    erasure,
    largest_window,
    positive,
    rate,
    round_trip,
    scalar,
    whole,
    within,
)

#: Largest erasure probability for which Eq. 9 has a real root: beyond, (1-p)/p is below 1/12.
ERASURE_MAX = 12 / 13
#: Erasure probability that minimises Eq. 11, 0.9227: see `throughput_without_timeouts`.
ERASURE_TURN = 1 / (1 + 1 / 12 + 1.5 * ((25.5**0.5 - 5) / 3) ** 2)
#: Bits of a packet in KIM's Section VI.
PACKET_BITS = 8000


def _erasure_of_tcp(p: ArrayLike) -> FloatArray:
    return within("p", p, 0.0, ERASURE_MAX, what="an erasure probability with a real E[r] (Eq. 9)")


def _odds(p: FloatArray) -> FloatArray:
    """(1-p)/p; infinite at p = 0."""
    with np.errstate(divide="ignore"):
        odds: FloatArray = (1 - p) / p
    return odds


@broadcasting
def mbps(packets_per_s: ArrayLike, packet_bits: ArrayLike = PACKET_BITS) -> FloatArray:
    """Convert a throughput from packets per second to megabits (10^6 bits) per second.

    Parameters
    ----------
    packets_per_s
        Throughput, packets/s, from 0.
    packet_bits
        Payload bits per packet, above 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(mbps(62.5))
    0.5
    """
    throughput = rate("packets_per_s", packets_per_s, "a throughput")
    return scalar(throughput * positive("packet_bits", packet_bits, "bits of a packet") / 1e6)


def end_to_end_erasure(q: ArrayLike, links: int = 4) -> FloatArray:
    """End-to-end erasure probability, p = 1 - (1-q)^links (KIM, Section VI).

    Parameters
    ----------
    q
        Erasure probability of each link, in [0, 1).
    links
        Number of links in series, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> end_to_end_erasure([0, 0.005, 0.015, 0.025, 0.05]).round(4)
    array([0.    , 0.0199, 0.0587, 0.0963, 0.1855])
    """
    return scalar(1 - (1 - erasure("q", q)) ** whole("links", links, 1))


def packets_between_losses(p: ArrayLike) -> FloatArray:
    """Packets delivered between two triple-duplicate events, (1-p)/p (KIM, Eq. 2).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 1).

    Returns
    -------
    Packets; infinite at p = 0.

    Raises
    ------
    ValueError
        For p out of its range.

    Examples
    --------
    >>> float(packets_between_losses(0.1))
    9.0
    """
    return scalar(_odds(erasure("p", p)))


def rounds_between_losses(p: ArrayLike, acked: int = 1) -> FloatArray:
    """Rounds from a halved window to the next loss, E[r] (KIM, Eq. 9).

    It falls ever more steeply towards p = 12/13, which makes Eq. 11 turn upward near there: see
    `throughput_without_timeouts`.

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 12/13]: beyond, Eq. 9 has no real root.
    acked
        Packets per acknowledgment, beta in Section III, from 1: the window grows by 1/beta per
        round, so Eqs. 5 to 10 hold with beta (1-p)/p in place of (1-p)/p and with windows divided
        by beta.

    Returns
    -------
    Rounds; infinite at p = 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(rounds_between_losses(0.0963).round(3))
    3.157
    """
    odds = _odds(_erasure_of_tcp(p)) * whole("acked", acked, 1)
    # At p = 12/13, rounding can make the radicand negative.
    return scalar(2 / 3 + np.sqrt(np.maximum(2 / 3 * odds - 1 / 18, 0)))


@broadcasting
def time_between_losses(p: ArrayLike, rtt_s: ArrayLike) -> FloatArray:
    """Time between two triple-duplicate events, RTT (E[r] + 1) (KIM, Eq. 3).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 12/13].
    rtt_s
        Round-trip time, s, above 0.

    Returns
    -------
    Seconds; infinite at p = 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(time_between_losses(0.0963, 0.8).round(3))
    3.325
    """
    rtt = round_trip("rtt_s", rtt_s)
    return scalar(rtt * (rounds_between_losses(p) + 1))


def windows_at_losses(p: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Mean windows just after a loss, E[r] - 1/2, and at the next, 2 (E[r] - 3/4) (KIM, Eq. 5).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 12/13].

    Returns
    -------
    The two windows in packets; infinite at p = 0.

    Raises
    ------
    ValueError
        For p out of its range.

    Examples
    --------
    >>> [float(window.round(2)) for window in windows_at_losses(0.0963)]
    [2.66, 4.81]
    """
    rounds = rounds_between_losses(p)
    return rounds - 0.5, 2 * (rounds - 0.75)


def window_mean(p: ArrayLike, acked: int = 1) -> FloatArray:
    """Mean window between losses, E[W] = 3/2 E[r] - 1 (KIM, Eq. 10).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 12/13].
    acked
        Packets per acknowledgment, as for `rounds_between_losses`.

    Returns
    -------
    Packets; infinite at p = 0.

    Raises
    ------
    ValueError
        For p out of its range.

    Examples
    --------
    >>> float(window_mean(0.0963).round(2))
    3.74
    """
    return scalar((1.5 * rounds_between_losses(p, acked) - 1) / acked)


@broadcasting
def throughput_without_timeouts(
    p: ArrayLike, rtt_s: ArrayLike, window_max: ArrayLike = np.inf, acked: int = 1
) -> FloatArray:
    """TCP's throughput without time-outs (KIM, Eq. 11; Eq. 12 with a maximum window).

    The throughput falls with p only up to `ERASURE_TURN`. Beyond, where the square root in Eq. 9
    nears 0, the model turns upward: with s for that root, Eq. 11 is (3 s^2 / 2 + 1/12) / (s + 5/3)
    packets per round, which is minimal where 3 s^2 / 2 + 5 s = 1/12. At a round-trip time of 0.8 s
    it is 0.06219 packets per second there, and 0.0625 at p = 12/13.

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 12/13].
    rtt_s
        Round-trip time, s, above 0.
    window_max
        Maximum window, packets, from 1; unlimited by default.
    acked
        Packets per acknowledgment, beta, as for `rounds_between_losses`.

    Returns
    -------
    Packets per second: about sqrt(3/(2 beta p))/RTT for small p; infinite at p = 0 without a
    maximum window.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(throughput_without_timeouts(0.0963, 0.8).round(3))
    2.822
    """
    rtt = round_trip("rtt_s", rtt_s)
    window = largest_window(window_max)
    p = _erasure_of_tcp(p)
    rounds = rounds_between_losses(p, acked)
    return scalar(np.minimum(window / rtt, _ratio(_odds(p), rounds + 1) / rtt))


def _ratio(odds: FloatArray, rounds: FloatArray) -> FloatArray:
    """Packets per round; infinite where there are no losses."""
    with np.errstate(invalid="ignore"):
        ratio: FloatArray = odds / rounds
    return np.where(np.isinf(odds), np.inf, ratio)


@broadcasting
def timeout_probability(window: ArrayLike, p: ArrayLike) -> FloatArray:
    """Probability that losses in a window lead to a time-out, P(TO|W) (KIM, Eq. 13).

    Parameters
    ----------
    window
        Window, packets, from 0; Eq. 13 is meant for integers, but defined for any value.
    p
        End-to-end erasure probability, in [0, 1).

    Returns
    -------
    1 for windows below 3, else the probability that at most two packets of the window arrive.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> timeout_probability([2, 3, 10], 0.1).round(6)
    array([1.   , 0.271, 0.   ])
    """
    w = rate("window", window, "packets")
    p = erasure("p", p)
    w, p = np.broadcast_arrays(w, p)
    certain = (w < 3) & (p >= 0)
    # Where the result is not used, any window without infinite powers will do.
    some = np.where(certain | np.isinf(w), 3.0, w)
    all_lost = p ** (some - 2)
    few = all_lost * (p * p + some * p * (1 - p) + some * (some - 1) / 2 * (1 - p) ** 2)
    return scalar(np.where(certain, 1.0, np.where(np.isinf(w), 0.0, few)))


@broadcasting
def timeout_duration(
    p: ArrayLike, timeout_rounds: ArrayLike, form: Literal["printed", "conditional"] = "printed"
) -> FloatArray:
    """Mean duration of a time-out period in rounds (KIM, Eqs. 14 and 15).

    The k-th consecutive time-out lasts 2^(k-1) T_o rounds; the seventh and later ones 64 T_o.

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 1).
    timeout_rounds
        First time-out T_o, rounds, above 0.
    form
        ``printed``: with p^k (1-p) for k consecutive time-outs, as in Eq. 15; these probabilities
        sum to p. ``conditional``: with p^(k-1) (1-p), given that there is a time-out: larger by a
        factor 1/p. See docs/errata.md, K1.

    Returns
    -------
    Rounds.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(timeout_duration(0.0963, 3.75).round(4))
    0.4473
    """
    p = erasure("p", p)
    first = positive("timeout_rounds", timeout_rounds, "rounds")
    choice("form", form, "printed", "conditional")
    x = 1 - p
    # Horner's scheme, without the factor p that all terms of Eq. 15 share.
    tail = p**5 * (63 / x + 64 * p / x**2)
    series = 1 + p * (3 + p * (7 + p * (15 + p * 31))) + tail
    factor = p if form == "printed" else np.ones_like(p)
    return scalar(factor * x * first * series)


@broadcasting
def throughput(
    p: ArrayLike,
    rtt_s: ArrayLike,
    window_max: ArrayLike = 50,
    timeout_rounds: ArrayLike = 3.75,
    *,
    whole_windows: bool = True,
    acked: int = 1,
) -> FloatArray:
    """TCP's throughput with time-outs and a maximum window (KIM, Eq. 16).

    Parameters
    ----------
    p
        End-to-end erasure probability, in [0, 12/13].
    rtt_s
        Round-trip time, s, above 0.
    window_max
        Maximum window, packets, from 1.
    timeout_rounds
        First time-out T_o, rounds, above 0.
    whole_windows
        Whether to round E[W] down before Eq. 13, as the published values require.
    acked
        Packets per acknowledgment, beta, as for `rounds_between_losses`.

    Returns
    -------
    Packets per second; window_max / rtt_s at p = 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    Table I of KIM, in Mbit/s:

    >>> p = end_to_end_erasure([0, 0.005, 0.015, 0.025, 0.05])
    >>> mbps(throughput(p, 0.8)).round(4)
    array([0.5   , 0.0667, 0.0325, 0.022 , 0.0098])
    """
    rtt = round_trip("rtt_s", rtt_s)
    window = largest_window(window_max)
    p = _erasure_of_tcp(p)
    rounds = rounds_between_losses(p, acked)
    mean = np.maximum(window_mean(p, acked), 0)
    timeouts = timeout_probability(np.floor(mean) if whole_windows else mean, p)
    timeouts = timeouts * timeout_duration(p, timeout_rounds)
    return scalar(np.minimum(window / rtt, _ratio(_odds(p), rounds + 1 + timeouts) / rtt))
