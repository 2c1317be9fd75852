"""Statistics over replications: means, quantiles, distributions and differences, with intervals.

Replications of a point use independent random numbers; replication 3 of one point uses the same
random numbers as replication 3 of every other. Differences between points are therefore computed in
pairs (`paired_ci`), which cancels the common variation.

Examples
--------
>>> from corridor import sim
>>> link = sim.Link(rate_bps=2_000_000, delay_ms=20, queue_packets=20, erasure_ratio=0.02)
>>> plan = sim.Plan(
...     sim.Chain(1, link), [sim.Flow(0, 1, tcp=sim.Tcp())], duration_s=5, replications=4,
...     sweeps=[sim.Sweep({"flow.0.tcp.variant": ["cubic", "bbr"]})],
...     output=sim.Output(delays=True),
... )
>>> results = sim.run(plan).swap_dims(point="flow.0.tcp.variant")
>>> gain = paired_ci(results["goodput_bps"], "flow.0.tcp.variant", "cubic")
>>> bool(gain.sel({"flow.0.tcp.variant": "bbr", "estimate": "low"}) > 0)
True
>>> late = quantile_ci(results["delays.packets"], 0.95).isel(flow=0)
>>> bool((late.sel(estimate="low") <= late.sel(estimate="high")).all())
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

#: Labels of the dimension ``estimate``, in order.
ESTIMATES = ("mean", "low", "high")


def mean_ci(values: xr.DataArray, confidence: float = 0.95) -> xr.DataArray:
    """Mean over replications, with its confidence interval (Student's t).

    Parameters
    ----------
    values
        An array with the dimension ``replication``; NaN counts as missing.
    confidence
        Confidence level, in (0, 1).

    Returns
    -------
    The array without ``replication``, and with the dimension ``estimate``: ``mean``, ``low``,
    ``high``. For a single replication, the interval is NaN.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> mean_ci(xr.DataArray([1.0, 2.0, 3.0, 4.0, 5.0], dims="replication")).round(2).values
    array([3.  , 1.04, 4.96])
    """
    if not isinstance(values, xr.DataArray):
        raise ValueError(f"values = {type(values).__name__}: expected an xarray DataArray")
    if "replication" not in values.dims:
        raise ValueError(f"values = dimensions {values.dims}: expected `replication` among them")
    _check_confidence(confidence)
    count = values.count("replication")
    mean = values.mean("replication")
    deviation = (
        values.std("replication", ddof=1) if values.sizes["replication"] > 1 else mean * np.nan
    )
    factor = _student(confidence, count)
    half = factor * deviation / np.sqrt(np.maximum(count, 1))
    estimates = xr.concat([mean, mean - half, mean + half], dim="estimate")
    estimates = estimates.assign_coords(estimate=["mean", "low", "high"])
    return estimates.assign_attrs(values.attrs)


def paired_ci(values: xr.DataArray, dim: str, base: Any, confidence: float = 0.95) -> xr.DataArray:
    """Mean paired difference from a base, with its confidence interval.

    Parameters
    ----------
    values
        An array with the dimensions ``replication`` and ``dim``; a pair with a missing value counts
        as missing.
    dim
        Dimension to compare along, such as ``path`` or a swept parameter: see
        `corridor.results.gridded`.
    base
        Value of ``dim`` that the others are compared with.
    confidence
        Confidence level, in (0, 1).

    Returns
    -------
    The result of `mean_ci` for the differences; those of the base itself are 0.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> goodput = xr.DataArray(
    ...     [[1.0, 2.0, 6.0], [2.0, 3.1, 6.9]],
    ...     {"path": ["plain", "coded"]}, ("path", "replication"),
    ... )
    >>> paired_ci(goodput, "path", "plain").sel(path="coded").round(2).values
    array([1.  , 0.75, 1.25])
    """
    if not isinstance(values, xr.DataArray):
        raise ValueError(f"values = {type(values).__name__}: expected an xarray DataArray")
    if dim not in values.dims or dim not in values.coords:
        raise ValueError(f"dim = {dim!r}: expected a dimension with values, of {values.dims}")
    if base not in values[dim].values:
        raise ValueError(f"base = {base!r}: expected one of {values[dim].values.tolist()}")
    differences = values - values.sel({dim: base}, drop=True)
    return mean_ci(differences.assign_attrs(values.attrs), confidence)


def cdf_ci(packets: xr.DataArray, confidence: float = 0.95) -> xr.DataArray:
    """Empirical distribution of the delays of all replications, with a confidence band.

    The band is pointwise. It follows from the variation between replications, not from the number
    of packets, since packets of one replication are not independent: a ratio estimator, with
    Student's t.

    Parameters
    ----------
    packets
        Counts with the dimensions ``replication`` and ``delay``, such as ``delays.packets`` of
        results.
    confidence
        Pointwise confidence level, in (0, 1).

    Returns
    -------
    Fraction of packets whose delay is at most ``delay``, without ``replication``, and with the
    dimension ``estimate``: ``mean``, ``low``, ``high``. For a single replication, the band is NaN.
    From the largest observed delay on, the fraction is 1 in every replication: the band has zero
    width there, which does not rule out larger delays.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> packets = xr.DataArray(
    ...     [[8, 1, 1], [6, 3, 1]], {"delay": [0.1, 0.2, 0.4]}, ("replication", "delay")
    ... )
    >>> cdf_ci(packets).sel(estimate="mean").values
    array([0.7, 0.9, 1. ])
    """
    _check_packets(packets)
    _check_confidence(confidence)
    below = packets.astype(float).cumsum("delay")
    below = below.assign_coords(delay=packets["delay"])
    all_of = below.isel(delay=-1, drop=True)
    has_any = all_of > 0
    count, total = has_any.sum("replication"), all_of.sum("replication")
    share = below.sum("replication") / total.where(total > 0)
    squares = ((below - share * all_of) ** 2).sum("replication")
    spread = np.sqrt(squares * count / np.maximum(count - 1, 1)) / total
    half = (_student(confidence, count) * spread).where(count > 1)
    bounds = [share, (share - half).clip(0, 1), (share + half).clip(0, 1)]
    estimates = xr.concat(bounds, dim="estimate").assign_coords(estimate=list(ESTIMATES))
    return estimates.assign_attrs(units="1", long_name="share of packets with at most such a delay")


def quantile_ci(
    packets: xr.DataArray, q: float | Sequence[float], confidence: float = 0.95
) -> xr.DataArray:
    """Quantiles of the delays of all replications, with confidence intervals.

    The interval ends are where the band of `cdf_ci` crosses the quantile.

    Parameters
    ----------
    packets
        Counts with the dimensions ``replication`` and ``delay``, such as ``delays.packets`` of
        results.
    q
        The quantile, in (0, 1]; several add a dimension ``quantile``.
    confidence
        Confidence level, in (0, 1).

    Returns
    -------
    Delays, to within a bin width, with the dimension ``estimate``: ``mean``, the quantile of all
    packets, ``low`` and ``high``. NaN where no packets arrived. ``high`` is also NaN where the band
    reaches the quantile only at the largest delay: then the packets do not bound it.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> packets = xr.DataArray(
    ...     [[8, 1, 1], [6, 3, 1]], {"delay": [0.1, 0.2, 0.4]}, ("replication", "delay")
    ... )
    >>> quantile_ci(packets, [0.5, 0.9]).sel(estimate="mean").values
    array([0.1, 0.2])
    """
    asked = np.atleast_1d(np.asarray(q, dtype=float))
    if asked.ndim != 1 or not ((asked > 0) & (asked <= 1)).all():
        raise ValueError(f"q = {q!r}: expected shares in (0, 1]")
    shares = cdf_ci(packets, confidence)
    delays = packets["delay"]

    def first(share: xr.DataArray, at: float) -> xr.DataArray:
        # Cumulative fractions reach 1 only up to rounding.
        reached = share >= at - 1e-12
        place = reached.argmax("delay")
        return delays.isel(delay=place).drop_vars("delay").where(reached.any("delay"))

    mean, low, high = (shares.sel(estimate=name, drop=True) for name in ESTIMATES)
    # At the largest delay every fraction is 1, whatever the truth is: there is no band.
    low = low.where(mean < 1)

    def at(one: float) -> xr.DataArray:
        # The upper edge of the band crosses the quantile first.
        bounds = [first(share, one) for share in (mean, high, low)]
        return xr.concat(bounds, dim="estimate").assign_coords(estimate=list(ESTIMATES))

    found = xr.concat([at(one) for one in asked.tolist()], dim="quantile")
    found = found.assign_coords(quantile=asked).assign_attrs(packets["delay"].attrs)
    return found.isel(quantile=0) if np.ndim(q) == 0 else found


def _student(confidence: float, count: xr.DataArray) -> xr.DataArray:
    """Return the factor on the standard error of a mean of ``count`` values."""
    degrees = np.maximum(count.to_numpy() - 1, 1)
    return count.copy(data=stats.t.ppf((1 + confidence) / 2, degrees))


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence}: expected a share in (0, 1)")


def _check_packets(packets: xr.DataArray) -> None:
    if not isinstance(packets, xr.DataArray):
        raise ValueError(f"packets = {type(packets).__name__}: expected an xarray DataArray")
    if not {"replication", "delay"} <= set(packets.dims):
        expected = "expected `replication` and `delay` among them"
        raise ValueError(f"packets = dimensions {packets.dims}: {expected}")
