"""Codings over the same histories of a link, searched as settings of a network are."""

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

#: So many runs are made of each coding at least, in the mean and whatever the budget, and at most
#: of all: two in the first round, as many again later and to judge.
RUNS_EACH_MIN, RUNS_MAX = 5, 2_000
#: Simulator's events that a packet is worth, for a budget: it has its frames, their repair and
#: feedback, and TCP at both ends.
EVENTS_PER_PACKET = 12
#: What may be sought, by what it is called; air is frames per packet, or TCP's bytes per byte.
SOUGHT = ("goodput", "delay", "air")
#: Where something else than goodput is sought, so much of it may be lost at most, as a share.
GOODPUT_LOST_MAX = 0.02

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Runs:
    """What runs under a coding came to: an entry for each history.

    Parameters
    ----------
    goodput_bps
        Data received per second.
    delay_p50_s, delay_p95_s
        Quantiles of the delay of data in order, NaN where nothing came.
    lost
        Share of datagrams that never came; NaN under TCP, which repeats them.
    frames
        Frames on the air for each packet that was delivered; NaN under TCP, which has no packets
        of its own to count.
    air_bytes
        Bytes on the air for each byte that was delivered.
    """

    goodput_bps: Values
    delay_p50_s: Values
    delay_p95_s: Values
    lost: Values
    frames: Values
    air_bytes: Values


#: Columns of a plan's results that these are.
_COLUMNS = (
    "goodput_bps", "delay_p50_s", "delay_p95_s", "packet_loss_ratio", "air_frames_per_packet",
    "air_bytes_per_byte",
)  # fmt: skip


@dataclass(frozen=True)
class LinkAdvice(Found[Coding]):
    """What came of a search for a link."""

    given: GivenLink
    sought: str
    #: What the advised coding and the present one came to where they were judged.
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
    """Search the codings of a tunnel, and judge the best of them beside what is set.

    Parameters
    ----------
    given
        The link.
    sought
        ``goodput``, ``delay`` (its 95th percentile) or ``air`` (frames per packet, for TCP bytes on
        the air per byte); the latter two without losing more than 2 % of the goodput.
    keep
        Fields of codings that stay as they are.
    budget
        What may be spent, millions of events in the simulator, about.
    seed
        Which histories of the link are drawn, 0 to 4: others give other numbers.
    jobs
        Threads; none = as many as there are processors.
    told
        Called with the number of runs made, and that of all.
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
    # Of the link's rate, not of what crosses now: the next coding may fill it.
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
    """Runs codings over a link, and remembers what came of them.

    Histories are the losses of the frames that are sent, the same for all codings.

    Parameters
    ----------
    given
        The link.
    settings
        Codings that are tried.
    sought
        What is to be as great, or as little, as can be: see `advise_link`.
    seed
        Which histories are drawn.
    jobs
        Threads; none = as many as there are processors.
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
        """What is set now."""
        return self.given.own

    def run(self, settings: Iterable[Coding], count: int, first: int = 0) -> None:
        """Run histories `first` to `first` + `count` - 1 of each coding, as far as it was not."""
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
        """Return what histories came to, which are run if they were not."""
        self.run([setting], count, first)
        rows = [self._done[setting, number] for number in range(first, first + count)]
        return Runs(*np.array(rows).T)

    def transfers(self, setting: Coding, count: int, first: int = 0) -> Transfers:
        """Return what histories came to, as the search compares it: so much for so much."""
        of = self.runs(setting, count, first)
        ones = np.ones(count)
        if self._sought == "goodput":
            gained, spent = of.goodput_bps * self.given.duration_s / 8, ones * self.given.duration_s
        elif self._sought == "delay":
            # Where nothing came all of the time was waited.
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
        """Whether what loses goodput is last from the start: yes, it is often what is cheapest."""
        return True

    def lets_more_fail(self, ours: Transfers, others: Transfers) -> bool:
        """Tell whether too much of the goodput is lost for what else is sought."""
        if self._sought == "goodput":
            return False
        least = (1 - GOODPUT_LOST_MAX) * float(others.completed.mean())
        return float(ours.completed.mean()) < least

    def count(self, setting: Coding) -> int:
        """Return how many histories the search has seen of a coding."""
        count = 0
        while (setting, count) in self._done:
            count += 1
        return count

    def seen(self, setting: Coding) -> Transfers:
        """Return what the search has seen of a coding."""
        return self.transfers(setting, self.count(setting))


def gain(advice: LinkAdvice) -> Estimate:
    """Return how much more is delivered, or how much shorter or cheaper it is, as a share.

    For delays and what is on the air it is the reduction: what they fall by.
    """
    found = advice.gain
    if advice.sought == "goodput":
        return found
    ends = (1 - 1 / (1 + each) for each in (found.value, found.low, found.high))
    return Estimate(*ends)
