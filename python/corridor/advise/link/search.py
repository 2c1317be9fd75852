"""Searches codings over shared loss histories of a link, like settings of a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corridor import _native
from corridor.advise import sample
from corridor.advise.link.coding import Coding, codings
from corridor.advise.link.file import GivenLink
from corridor.advise.network import HISTORIES
from corridor.advise.sample import HISTORIES_OF_SEED, JUDGE_FROM, Estimate, Transfers
from corridor.advise.search import BUDGET, PILOT, Found, search

#: Minimum mean number of runs per coding, whatever the budget (two in the first round, as many
#: again later and for judging), and maximum number of runs in total.
RUNS_EACH_MIN, RUNS_MAX = 5, 2_000
#: Simulator events per packet, for the budget: its frames, their repair and feedback, and TCP at
#: both ends.
EVENTS_PER_PACKET = 12
#: Objectives, by name; air is frames per packet, or with TCP bytes on the air per byte delivered.
SOUGHT = ("goodput", "delay", "air")
#: Maximum fraction of goodput that may be lost when the objective is not goodput.
GOODPUT_LOST_MAX = 0.02

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Runs:
    """Results of a coding's runs: one entry per history.

    Parameters
    ----------
    goodput_bps
        Received data rate, bit/s.
    delay_p50_s, delay_p95_s
        Quantiles of the in-order delivery delay; NaN where nothing arrived.
    lost
        Fraction of datagrams that never arrived; NaN with TCP, which retransmits.
    frames
        Frames on the air per delivered packet; NaN with TCP, which has no packets of its own to
        count.
    air_bytes
        Bytes on the air per delivered byte.
    """

    goodput_bps: Values
    delay_p50_s: Values
    delay_p95_s: Values
    lost: Values
    frames: Values
    air_bytes: Values


#: Corresponding columns of a plan's results.
_COLUMNS = (
    "goodput_bps", "delay_p50_s", "delay_p95_s", "packet_loss_ratio", "air_frames_per_packet",
    "air_bytes_per_byte",
)  # fmt: skip


@dataclass(frozen=True)
class LinkAdvice(Found[Coding]):
    """Result of a search for a link."""

    given: GivenLink
    sought: str
    #: Results of the advised and of the current coding over the judging histories.
    runs_of: Runs
    runs_of_own: Runs


def advise_link(
    given: GivenLink,
    *,
    sought: str = "goodput",
    keep: Collection[str] = (),
    budget: float = BUDGET,
    seed: int = 0,
    jobs: int | None = None,
    told: Callable[[int, int], object] = lambda _done, _total: None,
) -> LinkAdvice:
    """Search the codings of a tunnel, and compare the best with the current one.

    Parameters
    ----------
    given
        The link.
    sought
        Objective: ``goodput``, ``delay`` (its 95th percentile) or ``air`` (frames per packet, with
        TCP bytes on the air per byte); the latter two without losing more than 2 % of the goodput.
    keep
        Fields that keep their current value.
    budget
        Approximate budget, millions of simulator events.
    seed
        Seed that selects the link's histories, 0 to 4.
    jobs
        Number of threads; None: the number of processors.
    told
        Called with the number of runs made and the total.
    """
    if sought not in SOUGHT:
        raise ValueError(f"for = {sought}: expected one of {', '.join(SOUGHT)}")
    if not budget > 0:
        raise ValueError(f"budget = {budget}: expected millions of events, more than 0")
    if not 0 <= seed < sample.SEEDS:
        raise ValueError(f"seed = {seed}: expected 0 to {sample.SEEDS - 1}")
    tried = codings(given.own, has_helper=given.helper is not None, keep=keep)
    sampler = LinkSampler(given, tried, sought, seed, jobs)
    sampler.run([given.own], PILOT)
    # By the link's rate, not the current throughput: the next coding may fill the link.
    packets = given.duration_s * given.rate_bps / 8 / 1_400
    affordable = round(1e6 * budget / (EVENTS_PER_PACKET * packets))
    runs = min(max(affordable, RUNS_EACH_MIN * len(tried)), RUNS_MAX)
    sampler.told = lambda done: told(min(done, runs), runs)
    found = search(sampler, runs, seed)
    told(runs, runs)
    count = len(found.ours.bytes)
    judged = [sampler.runs(each, count, JUDGE_FROM) for each in (found.setting, given.own)]
    return LinkAdvice(
        **vars(found), given=given, sought=sought, runs_of=judged[0], runs_of_own=judged[1]
    )


class LinkSampler:
    """Runs codings over a link, and keeps their results.

    A history is the loss pattern of the frames sent, the same for all codings.

    Parameters
    ----------
    given
        The link.
    settings
        Candidate codings.
    sought
        Objective: see `advise_link`.
    seed
        Seed that selects the histories.
    jobs
        Number of threads; None: the number of processors.
    """

    def __init__(
        self,
        given: GivenLink,
        settings: Sequence[Coding],
        sought: str = "goodput",
        seed: int = 0,
        jobs: int | None = None,
    ) -> None:
        self.given = given
        self.settings = tuple(settings)
        #: Runs made so far.
        self.run_count = 0
        #: Called with the number of runs made so far.
        self.told: Callable[[int], object] = lambda _: None
        self._sought = sought
        self._jobs = jobs or os.cpu_count() or 1
        self._first = seed * HISTORIES_OF_SEED
        self._plans: dict[Coding, _native.PlanRuns] = {}
        self._done: dict[tuple[Coding, int], list[float]] = {}

    @property
    def defaults(self) -> Coding:
        """The current coding."""
        return self.given.own

    def run(self, settings: Iterable[Coding], count: int, first: int = 0) -> None:
        """Run histories `first` to `first` + `count` - 1 of each coding, unless already run."""
        settings = list(settings)
        ahead = [
            (each, number)
            for number in range(first, first + count)
            for each in settings
            if (each, number) not in self._done
        ]
        for each in settings:
            if each not in self._plans:
                self._plans[each] = _native.PlanRuns(self.given.plan(each), "", HISTORIES)
        with ThreadPoolExecutor(self._jobs) as crew:
            for what, values in zip(ahead, crew.map(self._one, ahead), strict=True):
                self._done[what] = values
                self.run_count += 1
                self.told(self.run_count)

    def _one(self, what: tuple[Coding, int]) -> list[float]:
        coding, number = what
        plan = self._plans[coding]
        places = {name: place for place, (name, *_) in enumerate(plan.columns())}
        values = plan.measure(0, self._first + number)
        return [float(values[places[name]]) for name in _COLUMNS]

    def runs(self, setting: Coding, count: int, first: int = 0) -> Runs:
        """Return the results of histories, running those not run yet."""
        self.run([setting], count, first)
        rows = [self._done[setting, number] for number in range(first, first + count)]
        return Runs(*np.array(rows).T)

    def transfers(self, setting: Coding, count: int, first: int = 0) -> Transfers:
        """Return the results of histories as the search compares them: amounts and their cost."""
        of = self.runs(setting, count, first)
        ones = np.ones(count)
        if self._sought == "goodput":
            gained, spent = of.goodput_bps * self.given.duration_s / 8, ones * self.given.duration_s
        elif self._sought == "delay":
            # Where nothing arrived, the whole time counts as delay.
            gained = ones
            spent = np.where(np.isnan(of.delay_p95_s), self.given.duration_s, of.delay_p95_s)
        else:
            cost = of.air_bytes if self.given.is_tcp else of.frames
            came = ~np.isnan(cost) & (of.goodput_bps > 0)
            gained, spent = came.astype(float), np.where(came, cost, 1.0)
        share = of.goodput_bps / self.given.rate_bps
        nothing = np.zeros(count)
        return Transfers(gained, spent, share, nothing, of.delay_p95_s, nothing, nothing)

    @property
    def halves_allowed_first(self) -> bool:
        """Whether codings that lose goodput rank last from the start: yes.

        They are often the cheapest.
        """
        return True

    def lets_more_fail(self, ours: Transfers, others: Transfers) -> bool:
        """Return whether a coding loses too much goodput for the sake of the objective."""
        if self._sought == "goodput":
            return False
        least = (1 - GOODPUT_LOST_MAX) * float(others.completed.mean())
        return float(ours.completed.mean()) < least

    def count(self, setting: Coding) -> int:
        """Return the number of histories the search has seen of a coding."""
        count = 0
        while (setting, count) in self._done:
            count += 1
        return count

    def seen(self, setting: Coding) -> Transfers:
        """Return the results the search has seen of a coding."""
        return self.transfers(setting, self.count(setting))


def gain(advice: LinkAdvice) -> Estimate:
    """Return the relative gain: in goodput, or as a reduction.

    For delay and air, the gain is the relative reduction.
    """
    found = advice.gain
    if advice.sought == "goodput":
        return found
    ends = (1 - 1 / (1 + each) for each in (found.value, found.low, found.high))
    return Estimate(*ends)
