"""Base stations a population of users needs, and their power: Sections VII to X of KIM.

KIM is M. Kim et al., "Modeling Network Coded TCP: Analysis of Throughput and Energy Cost" (2012).
Rates are in Mbit/s of 10^6 bits; file sizes are in megabytes of 2^20 bytes (needed to match the
figures) or, on request, of 10^6.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from corridor.models import tcp, tcp_nc
from corridor.models._check import (
    FloatArray,
    at_least,
    broadcasting,
    erasure,
    positive,
    rate,
    scalar,
    within,
)

#: Bytes of a megabyte: with 2^20, the curves of Figs. 20 and 21 that the text says coincide do so.
MEGABYTE = 2**20
#: Maximum bandwidth of a base station, Mbit/s (KIM, Section VII-A).
BANDWIDTH_MAX_MBPS = 300.0
#: Maximum number of active users of a base station (KIM, Section VII-A).
USERS_MAX = 200.0
#: Minimum and maximum power of a base station, kW (KIM, Section VII).
POWER_KW = (2.0, 3.0)


def _bandwidth(bandwidth_mbps: ArrayLike) -> FloatArray:
    return positive("bandwidth_mbps", bandwidth_mbps, "Mbit/s")


@broadcasting
def file_mean_mb(sizes_mb: ArrayLike, probabilities: ArrayLike) -> float:
    """Mean size of a file, mu_f (KIM, Section VII-A).

    Parameters
    ----------
    sizes_mb
        File sizes, megabytes, above 0.
    probabilities
        Probability of each size; they sum to 1.

    Returns
    -------
    Megabytes.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> round(file_mean_mb([0.008, 1, 3, 20], [0.3, 0.3, 0.3, 0.1]), 4)
    3.2024
    """
    sizes = positive("sizes_mb", sizes_mb, "megabytes")
    shares = within("probabilities", probabilities, 0, 1, what="a probability")
    if sizes.shape != shares.shape or not np.isclose(shares.sum(), 1):
        given = f"{shares.size} adding up to {shares.sum():g}"
        raise ValueError(f"probabilities = {given}: expected {sizes.size} adding up to 1")
    return float(np.sum(sizes * shares))


@broadcasting
def transaction_s(
    file_mb: ArrayLike, throughput_mbps: ArrayLike, megabyte: int = MEGABYTE
) -> FloatArray:
    """Mean duration of a transaction, Delta = mu_f / T (KIM, Section VII-A).

    Parameters
    ----------
    file_mb
        Mean file size, megabytes, above 0.
    throughput_mbps
        Throughput that a user sees, Mbit/s, from 0.
    megabyte
        Bytes of a megabyte: 2^20 or 10^6.

    Returns
    -------
    Seconds; infinite where the throughput is 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> float(transaction_s(3.2, 1.0, megabyte=10**6))
    25.6
    """
    if megabyte not in (2**20, 10**6):
        raise ValueError(f"megabyte = {megabyte}: expected 2**20 or 10**6 bytes")
    bits = positive("file_mb", file_mb, "megabytes") * (8 * megabyte)
    speed = rate("throughput_mbps", throughput_mbps) * 1e6
    with np.errstate(divide="ignore"):
        duration: FloatArray = bits / speed
    return scalar(duration)


@broadcasting
def active_probability(duration_s: ArrayLike, q: ArrayLike) -> FloatArray:
    """Probability that a user is active, P = min(1, Delta q) (KIM, Eq. 21).

    Parameters
    ----------
    duration_s
        Mean duration Delta of a transaction, s, from 0.
    q
        Probability that a user starts a transaction in any given second, in [0, 1].

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> active_probability([10, 25.6, 200], 0.03).round(3)
    array([0.3  , 0.768, 1.   ])
    """
    duration = rate("duration_s", duration_s, "seconds")
    chance = within("q", q, 0, 1, what="a probability per second")
    with np.errstate(invalid="ignore"):
        load = duration * chance
    return scalar(np.where(chance == 0, 0.0, np.minimum(1.0, load)))


@broadcasting
def empty_start_bias(
    sizes_mb: ArrayLike,
    probabilities: ArrayLike,
    throughput_mbps: ArrayLike,
    q: ArrayLike,
    duration_s: float,
    megabyte: int = MEGABYTE,
) -> FloatArray:
    """Bound on how much starting idle lowers a user's mean activity (docs/errata.md, K9).

    A user is modelled as a single-server queue (M/G/1). A user that starts with the stationary
    backlog and one that starts idle, given the same transactions, differ until the first of them
    becomes idle: for E[V] / (1 - rho) seconds on average, where E[V] = q E[S^2] / (2 (1 - rho)), S
    is the duration of a transaction, and rho = q E[S].

    Parameters
    ----------
    sizes_mb
        Sizes of files, megabytes, above 0.
    probabilities
        Probability of each size; they sum to 1.
    throughput_mbps
        Throughput of an active user, Mbit/s, above 0.
    q
        Probability that a user starts a transaction in any given second, in [0, 1].
    duration_s
        Averaging time, s, above 0.
    megabyte
        Bytes of a megabyte, 2**20 or 10**6.

    Returns
    -------
    Fraction of time; infinite where rho is 1 or more.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> empty_start_bias([0.008, 1, 3, 20], [0.3, 0.3, 0.3, 0.1], [1, 4], 0.01, 1000).round(4)
    array([0.0283, 0.0011])
    """
    shares = within("probabilities", probabilities, 0, 1, what="a probability")
    file_mean_mb(sizes_mb, shares)
    speed = positive("throughput_mbps", throughput_mbps, "Mbit/s")
    span = positive("duration_s", duration_s, "seconds")
    times = np.stack(
        [transaction_s(size, speed, megabyte) for size in np.asarray(sizes_mb, dtype=np.float64)]
    )
    weights = shares.reshape(-1, *[1] * speed.ndim)
    chance = within("q", q, 0, 1, what="a probability per second")
    idle = 1 - chance * (weights * times).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bias = chance * (weights * times**2).sum(axis=0) / (2 * idle**2 * span)
    return scalar(np.where(idle > 0, bias, np.inf))


def stations_per_user(bandwidth_mbps: ArrayLike) -> FloatArray:
    """Fraction of a base station an active user takes, max(B/300, 1/200) (KIM, Eq. 22).

    Parameters
    ----------
    bandwidth_mbps
        Bandwidth B given to a user, Mbit/s, above 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> stations_per_user([1.0, 3.0]).tolist()
    [0.005, 0.01]
    """
    bandwidth = _bandwidth(bandwidth_mbps)
    return scalar(np.maximum(bandwidth / BANDWIDTH_MAX_MBPS, 1 / USERS_MAX))


@broadcasting
def base_stations(
    bandwidth_mbps: ArrayLike,
    throughput_mbps: ArrayLike,
    q: ArrayLike,
    file_mb: ArrayLike,
    users: ArrayLike = 1000,
    megabyte: int = MEGABYTE,
) -> FloatArray:
    """Number of base stations needed, N_bs = N P max(B/B_max, 1/N_max) (KIM, Eqs. 21 and 22).

    Parameters
    ----------
    bandwidth_mbps
        Bandwidth B given to an active user, Mbit/s, above 0.
    throughput_mbps
        Throughput T that the user sees, Mbit/s, from 0 to B.
    q
        Probability that a user starts a transaction in any given second, in [0, 1].
    file_mb
        Mean file size, megabytes, above 0.
    users
        Number of users N, from 0.
    megabyte
        Bytes of a megabyte: 2^20 or 10^6.

    Returns
    -------
    Number of base stations, not rounded up.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> base_stations([0.5, 1.0, 3.0], [0.5, 1.0, 3.0], 0.02, 3.2).round(3)
    array([5.   , 2.684, 1.79 ])
    """
    bandwidth = _bandwidth(bandwidth_mbps)
    seen = rate("throughput_mbps", throughput_mbps)
    if np.any(seen > bandwidth * (1 + 1e-12)):
        given = float(np.max(seen))
        raise ValueError(f"throughput_mbps = {given:g}: expected Mbit/s, at most the bandwidth's")
    count = at_least("users", users, 0, "users")
    active = active_probability(transaction_s(file_mb, seen, megabyte), q)
    return scalar(count * active * stations_per_user(bandwidth))


@broadcasting
def power_kw(stations: ArrayLike, per_station_kw: ArrayLike = POWER_KW) -> FloatArray:
    """Power of a number of base stations, rounded up to a whole number (KIM, Section VII).

    Parameters
    ----------
    stations
        Number of base stations, from 0.
    per_station_kw
        Power of each, kW, above 0; by default the minimum and the maximum KIM gives.

    Returns
    -------
    Kilowatts; the last axes are those of ``per_station_kw``, if it has any.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> power_kw(2.684).tolist()
    [6.0, 9.0]
    """
    count = np.ceil(at_least("stations", stations, 0, "base stations"))
    each = positive("per_station_kw", per_station_kw, "kilowatts")
    return scalar(np.multiply.outer(count, each))


@broadcasting
def tcp_throughput_mbps(
    bandwidth_mbps: ArrayLike, p: ArrayLike, rtt_s: ArrayLike = 0.1, window_max: ArrayLike = 50
) -> FloatArray:
    """TCP's throughput at a limited bandwidth, min(Eq. 16, B (1-p)) (KIM, Section X, Fig. 19b).

    Parameters
    ----------
    bandwidth_mbps
        Bandwidth B, Mbit/s, above 0.
    p
        End-to-end erasure probability, in [0, 12/13].
    rtt_s
        Round-trip time, s, above 0.
    window_max
        Maximum window, packets of 1000 bytes, from 1.

    Returns
    -------
    Mbit/s. T_o is 3.75 rounds.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> tcp_throughput_mbps(5.0, [0, 0.01, 0.05]).round(4)
    array([4.    , 0.8092, 0.2913])
    """
    bandwidth = _bandwidth(bandwidth_mbps)
    limit = bandwidth * (1 - erasure("p", p))
    return scalar(np.minimum(tcp.mbps(tcp.throughput(p, rtt_s, window_max)), limit))


@broadcasting
def tcp_nc_throughput_mbps(
    bandwidth_mbps: ArrayLike, p: ArrayLike, srtt_s: ArrayLike = 0.1, window_max: ArrayLike = 50
) -> FloatArray:
    """TCP/NC's throughput at a limited bandwidth, min(Eq. 20, B (1-p)) (KIM, Section X, Fig. 19a).

    Parameters
    ----------
    bandwidth_mbps
        Bandwidth B, Mbit/s, above 0.
    p
        End-to-end erasure probability, in [0, 1).
    srtt_s
        Smoothed round-trip time, s, above 0.
    window_max
        Maximum window, packets of 1000 bytes, from 1.

    Returns
    -------
    Mbit/s, for long-lived connections: the limit of Eq. 20 for large n.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> tcp_nc_throughput_mbps([1.0, 5.0], [0.1, 0.05])
    array([0.9, 4. ])
    """
    bandwidth = _bandwidth(bandwidth_mbps)
    limit = bandwidth * (1 - erasure("p", p))
    window_limit = tcp.mbps(tcp_nc.throughput(np.inf, srtt_s, window_max))
    return scalar(np.minimum(window_limit, limit))
