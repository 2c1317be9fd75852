"""Statistics of transfers: samples by setting, and the tests on them.

Settings under comparison share positions, fading and, in static runs, routes: samples are paired,
replication by replication.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from corridor.study.findings import Context

Samples = NDArray[np.float64]

WINDOW = "flow.0.tcp.window_packets_max"
BACKOFF = "network.radio.backoff"
RETRIES = "network.radio.retries"
METRIC = "network.routing.metric"
TIMEOUTS = "flow.0.tcp.timeouts_max"
RTO = "flow.0.tcp.rto"
PROCESSING = "flow.0.processing_ms"
RTT = "flow.rtt_mean_s"
COMPLETED = "flow.completed"
#: Margin by which goodput may still rise beyond the recommended window (III-C3).
RECOMMENDED_MARGIN = 0.01
#: Significance level of tests and confidence sets.
LEVEL = 0.05


def nanmean(values: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """Mean of the values that are not NaN; NaN, without a warning, if there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=axis)


@dataclass(frozen=True)
class Runs:
    """Results of a plan with one flow, by swept parameters."""

    results: xr.Dataset

    @classmethod
    def of(cls, context: Context, use: str) -> "Runs":
        """Run a plan of the experiment with `use`_replications replications (a parameter)."""
        own = f"{use}_replications"
        if own not in context.experiment.parameters:
            return cls(context.simulate(use))
        return cls(context.simulate(use, context.count(int(context.parameter(own)))))

    def values(self, path: str) -> list[float | str]:
        """Return the values of a swept key, in order."""
        return sorted(set(self.results[path].to_numpy().tolist()))

    def at(self, name: str, wanted: dict[str, float | str]) -> Samples:
        """Return a column where swept keys have these values: points by replications.

        Points are in plan order: those of two settings correspond one to one. Round-trip times are
        those of completed transfers, like goodput; the others are NaN.
        """
        keep = np.ones(self.results.sizes["point"], bool)
        for path, value in wanted.items():
            keep &= self.results[path].to_numpy() == value
        column = self.results[name]
        if name == RTT:
            column = column.where(self.results[COMPLETED] == 1)
        if "flow" in column.dims:
            column = column.isel(flow=0)
        return column.isel(point=np.flatnonzero(keep)).to_numpy().astype(float)

    def links(self, wanted: dict[str, float | str]) -> Samples:
        """Return the mean route length at these points."""
        lengths = self.at("flow.route_links_mean", wanted)
        return np.asarray(nanmean(lengths, axis=1))


def mean(samples: Samples) -> float:
    """Mean of the values that are not NaN: transfers not completed have no goodput."""
    there = samples[~np.isnan(samples)]
    return float(there.mean()) if there.size else float("nan")


def log_ratios(ours: Samples, others: Samples) -> Samples:
    """Logarithms of the ratios of paired samples, one per replication: the mean over the points."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(ours / others)
    logs[~np.isfinite(logs)] = np.nan
    there = logs[:, ~np.isnan(logs).all(axis=0)]
    return np.asarray(nanmean(there, axis=0)) if there.size else np.empty(0)


def ratio(ours: Samples, others: Samples) -> float:
    """Geometric mean of the ratio of paired samples."""
    logs = log_ratios(ours, others)
    return float(np.exp(logs.mean())) if logs.size else float("nan")


def greater(differences: Samples) -> float:
    """p-value of a one-sided Student's t test of the hypothesis that the mean is at most 0."""
    there = differences[~np.isnan(differences)]
    if there.size < 2:
        return 1.0
    if np.ptp(there) == 0:
        return 0.0 if there[0] > 0 else 1.0
    return float(stats.ttest_1samp(there, 0.0, alternative="greater").pvalue)


def equivalence(logs: Samples, level: float = LEVEL) -> float:
    """Bound on how far a ratio is from 1: equivalence holds within any margin above it.

    The larger bound, in absolute value, of the interval with confidence 1 - 2 `level`, as in two
    one-sided tests (D. J. Schuirmann 1987). Infinite with fewer than two samples.
    """
    there = logs[~np.isnan(logs)]
    if there.size < 2:
        return float("inf")
    deviation = float(there.std(ddof=1)) / there.size**0.5
    half = float(stats.t.ppf(1 - level, there.size - 1)) * deviation
    bounds = (np.exp(there.mean() - half) - 1, np.exp(there.mean() + half) - 1)
    return float(max(abs(bound) for bound in bounds))


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values adjusted for multiple testing (S. Holm 1979), in the given order.

    Examples
    --------
    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    adjusted, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = least
    return adjusted


def recommended(goodputs: Sequence[Samples], margin: float = RECOMMENDED_MARGIN) -> int:
    """Index of the smallest window beyond which goodput rises by no more than the margin.

    As the paper defines it (III-C3), applied to the means.

    Examples
    --------
    >>> recommended([np.array([1.0]), np.array([1.5]), np.array([1.51])])
    1
    """
    means = [mean(each) for each in goodputs]
    for place, own in enumerate(means):
        if not any(other > own * (1 + margin) for other in means[place + 1 :]):
            return place
    return len(means) - 1


def recommended_set(goodputs: Sequence[Samples], margin: float = RECOMMENDED_MARGIN) -> list[int]:
    """Indices of all windows that may be the recommended one, with 95 % confidence.

    A window is excluded if a larger one has more than the margin more goodput, or if a smaller one
    is not worse by more than the margin, in paired one-sided tests with Bonferroni's correction
    over the pairs.

    Parameters
    ----------
    goodputs
        Per window, one sample per replication: paired.
    """
    pairs = max(1, len(goodputs) - 1)
    chosen = []
    for place, own in enumerate(goodputs):
        beyond = goodputs[place + 1 :]
        larger = [greater(np.log(other / own) - np.log1p(margin)) for other in beyond]
        beaten = any(p * pairs <= LEVEL for p in larger)
        # The next smaller one would suffice if none beyond it gains more than the margin.
        spare = place > 0 and all(
            greater(np.log1p(margin) - np.log(other / goodputs[place - 1])) * pairs <= LEVEL
            for other in goodputs[place:]
        )
        if not beaten and not spare:
            chosen.append(place)
    return chosen
