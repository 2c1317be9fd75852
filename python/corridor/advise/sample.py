"""Transfers under settings, over the same histories of the network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import scipy  # Its submodules are imported on first use: `stats` takes a second.
from numpy.typing import NDArray

from corridor import _native
from corridor.advise.network import HISTORIES, Given
from corridor.advise.settings import Setting

#: Histories available to one seed of advice: different seeds use disjoint histories.
HISTORIES_OF_SEED = 1_000
SEEDS = HISTORIES // HISTORIES_OF_SEED
#: First of a seed's histories for judging, and for replaying.
JUDGE_FROM, REPLAY_FROM = 400, 700

#: Significance level of the test for more failed transfers.
FAILURES_LEVEL = 0.25

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Transfers:
    """What transfers under a setting came to: an entry for each history.

    Parameters
    ----------
    bytes
        Bytes of transfers that were completed.
    spent_s
        Time that transfers took, or that was spent on them until they were given up.
    completed
        Share of transfers that were completed.
    rtt_s
        Mean round trip, NaN where nothing came back.
    delay_s
        95th percentile of the delay of data in order.
    sending_s, receiving_s
        Time that radios sent, and that they were locked on to frames, all nodes together.
    """

    bytes: Values
    spent_s: Values
    completed: Values
    rtt_s: Values
    delay_s: Values
    sending_s: Values
    receiving_s: Values

    @property
    def goodput_bps(self) -> float:
        """Bits of completed transfers per second that was spent on all of them."""
        return 8 * float(self.bytes.sum()) / float(self.spent_s.sum())

    @property
    def success(self) -> float:
        """Share of transfers that were completed."""
        return float(self.completed.mean())

    @property
    def radio_s_per_kb(self) -> float:
        """Time that radios sent or received for a kB that came through whole."""
        return _over(self.sending_s + self.receiving_s, self.bytes / 1e3)

    @property
    def sending_s_per_kb(self) -> float:
        """Time that radios sent for a kB that came through whole."""
        return _over(self.sending_s, self.bytes / 1e3)

    def first(self, count: int) -> Transfers:
        """Return the first so many."""
        return Transfers(*(getattr(self, name)[:count] for name in self.__dataclass_fields__))


def _over(one: Values, other: Values) -> float:
    total = float(other.sum())
    return float(one.sum()) / total if total else float("inf")


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def row(self) -> dict[str, float]:
        """Return it as JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def _estimate(value: float, influence: Values, confidence: float = 0.95) -> Estimate:
    """Return a value with an interval by its linearization: one entry for each history."""
    count = len(influence)
    if count < 2:
        return Estimate(value, float("-inf"), float("inf"))
    deviation = float(influence.std(ddof=1)) / count**0.5
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, count - 1)) * deviation
    return Estimate(value, value - half, value + half)


def mean(values: Values) -> Estimate:
    """Mean of what there is."""
    there = values[~np.isnan(values)]
    if not there.size:
        return Estimate(float("nan"), float("nan"), float("nan"))
    return _estimate(float(there.mean()), there)


def ratio(one: Values, other: Values, scale: float = 1.0) -> Estimate:
    """Ratio of two sums, as goodput is one."""
    total = float(other.sum())
    if not total:
        return Estimate(float("inf"), float("inf"), float("inf"))
    value = float(one.sum()) / total
    influence = (one - value * other) * len(one) / total
    found = _estimate(value, influence)
    return Estimate(scale * value, scale * max(found.low, 0.0), scale * found.high)


def success(values: Values) -> Estimate:
    """Share of transfers completed, with Wilson's interval: shares of 1 have one too."""
    count, share = len(values), float(values.mean())
    z = float(scipy.stats.norm.ppf(0.975))
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (share * (1 - share) / count + (z / (2 * count)) ** 2) ** 0.5
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))


def gain(ours: Transfers, others: Transfers, confidence: float = 0.95) -> Estimate:
    """How much greater our goodput is, as a share of theirs, over the same histories.

    The interval is that of the logarithm of the ratio, by linearization: histories are paired.
    """
    if not others.bytes.sum() or not ours.bytes.sum():
        least = 0.0 if ours.bytes.sum() >= others.bytes.sum() else -1.0
        value = float("inf") if ours.bytes.sum() > others.bytes.sum() else least
        return Estimate(value, least, float("inf"))
    log = float(np.log(ours.goodput_bps / others.goodput_bps))
    found = _estimate(log, influences(ours) - influences(others), confidence)
    return Estimate(*(float(np.expm1(min(x, 700.0))) for x in (found.value, found.low, found.high)))


def loss(ours: Transfers, others: Transfers) -> float:
    """What is lost if ours is taken and theirs is better, times how likely that is, as a share.

    The expectation of the logarithm's positive part, by the same linearization as `gain`.
    """
    if not others.bytes.sum():
        return 0.0
    if not ours.bytes.sum():
        return float("inf")
    count = len(ours.bytes)
    log = float(np.log(others.goodput_bps / ours.goodput_bps))
    deviation = float((influences(others) - influences(ours)).std(ddof=1)) / count**0.5
    if not deviation:
        return float(max(log, 0.0))
    z = log / deviation
    return float(deviation * (scipy.stats.norm.pdf(z) + z * scipy.stats.norm.cdf(z)))


def lets_more_fail(ours: Transfers, others: Transfers) -> bool:
    """Tell whether fewer of our transfers are completed than of theirs, by more than chance has it.

    By the histories in which one has more completed than the other: a sign test, one-sided, whose
    level is so high that two failures more and none less are enough.
    """
    more = int((ours.completed < others.completed).sum())
    fewer = int((ours.completed > others.completed).sum())
    if more <= fewer:
        return False
    return bool(scipy.stats.binomtest(more, more + fewer, 0.5, "greater").pvalue <= FAILURES_LEVEL)


def influences(of: Transfers) -> Values:
    """What each history adds to the logarithm of the goodput, times their number."""
    count = len(of.bytes)
    return np.asarray(count * (of.bytes / of.bytes.sum() - of.spent_s / of.spent_s.sum()))


class Sampler:
    """Runs transfers of a network, and remembers what came of them.

    History k is of pair k modulo the number of pairs, which are drawn in an order of their own;
    settings have the same histories in the same order.

    Parameters
    ----------
    given
        The network.
    settings
        All settings that may be asked for.
    seed
        Which histories are drawn.
    jobs
        Threads; none = as many as there are processors.
    """

    def __init__(
        self,
        given: Given,
        settings: Sequence[Setting],
        seed: int = 0,
        jobs: int | None = None,
    ) -> None:
        self.given = given
        self.settings = tuple(settings)
        #: Transfers run so far, and their simulator events.
        self.run_count, self.events = 0, 0.0
        #: Called with the number of transfers run so far.
        self.told: Callable[[int], object] = lambda _: None
        self._jobs = jobs or os.cpu_count() or 1
        self._first = (seed % SEEDS) * HISTORIES_OF_SEED
        together = given.together
        self._pairs = 1 if together else len(given.pairs)
        order = np.random.default_rng(seed).permutation(self._pairs)
        self._order = [int(place) for place in order]
        self._flows = len(given.pairs) if together else 1
        self._plans: dict[Setting, _native.PlanRuns] = {}
        for each in settings:
            text = given.plan([each])
            self._plans[each] = _native.PlanRuns(text, str(given.directory), HISTORIES)
        names = [name for name, *_ in next(iter(self._plans.values())).columns()]
        self._columns = {name: place for place, name in enumerate(names)}
        self._done: dict[tuple[Setting, int], list[float]] = {}

    @property
    def defaults(self) -> Setting:
        """What is set now."""
        return self.given.defaults

    @property
    def halves_allowed_first(self) -> bool:
        """Whether what fails more is last from the start: no, few histories do not tell."""
        return False

    def lets_more_fail(self, ours: Transfers, others: Transfers) -> bool:
        """Tell whether fewer of our transfers are completed, by more than chance has it."""
        return lets_more_fail(ours, others)

    def run(self, settings: Iterable[Setting], count: int, first: int = 0) -> None:
        """Run histories `first` to `first` + `count` - 1 of each setting, as far as it was not."""
        ahead = [
            (each, number)
            for number in range(first, first + count)
            for each in settings
            if (each, number) not in self._done
        ]
        with ThreadPoolExecutor(self._jobs) as crew:
            for (each, number), values in zip(ahead, crew.map(self._one, ahead), strict=True):
                self._done[each, number] = values[1:]
                self.run_count += 1
                self.events += values[0]
                self.told(self.run_count)

    def _one(self, what: tuple[Setting, int]) -> list[float]:
        setting, number = what
        point = self._order[number % self._pairs]
        return self._read(self._plans[setting].measure(point, self._first + number))

    def _read(self, values: Values) -> list[float]:
        def of(name: str) -> Values:
            return np.array(
                [values[self._columns[f"flow.{flow}.{name}"]] for flow in range(self._flows)]
            )

        def mean_of(name: str) -> float:
            each = of(name)
            return float(np.nanmean(each)) if not np.isnan(each).all() else float("nan")

        completed = of("completed")
        own = [float(values[self._columns[name]]) for name in ("sending_s", "receiving_s")]
        return [
            float(values[self._columns["events"]]),
            float(completed.sum()) * self.given.transfer_bytes,
            float(of("spent_s").sum()),
            float(completed.mean()),
            mean_of("rtt_mean_s"),
            mean_of("delay_p95_s"),
            *own,
        ]

    def transfers(self, setting: Setting, count: int, first: int = 0) -> Transfers:
        """Return what histories came to, which are run if they were not."""
        self.run([setting], count, first)
        rows = [self._done[setting, number] for number in range(first, first + count)]
        return Transfers(*np.array(rows).T)

    def count(self, setting: Setting) -> int:
        """Return how many histories the search has seen of a setting."""
        count = 0
        while (setting, count) in self._done:
            count += 1
        return count

    def seen(self, setting: Setting) -> Transfers:
        """Return what the search has seen of a setting."""
        return self.transfers(setting, self.count(setting))
