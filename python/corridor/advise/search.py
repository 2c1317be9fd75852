"""The search: successive halving over the same histories, then judgement by fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log1p
from typing import Any, Generic, Protocol, Self, TypeVar

from corridor.advise import alike, sample
from corridor.advise.network import Given
from corridor.advise.sample import JUDGE_FROM, Estimate, Sampler, Transfers
from corridor.advise.settings import Setting, grid

#: Default budget, millions of simulator events: half a minute on two processors. It counts events
#: rather than seconds, so that advice is the same on every machine.
BUDGET = 80.0
#: Minimum number of transfers, whatever the budget: two histories per setting, and half as many for
#: judging; and the maximum, beyond which advice does not improve.
TRANSFERS_MIN, TRANSFERS_MAX = 600, 3_000
#: Histories used to estimate the number of events per transfer.
PILOT = 4
#: Fraction of the budget for the search; the rest is for judging.
SEARCH_SHARE = 0.8
#: Fraction of the budget for the first round, over all settings; divisor of the number of settings,
#: and factor on the number of histories, after each round.
FIRST_SHARE, KEPT, GROWTH = 0.2, 3, 2.6
#: Number of settings that reach the last round.
FINALISTS = 4
#: Histories added at a time in the last round, which ends when the expected loss of goodput from
#: choosing among the remaining settings is no more than this fraction.
RACE_STEP = 10
LOSS = 0.002
#: A change is reverted if that costs less than this fraction of the goodput.
NEEDLESS = 0.005
#: Judging ends when the half-width of the gain's interval is no more than this fraction, or than
#: this fraction of the gain.
PRECISE, CLOSE = 0.01, 0.1
#: Histories added at a time while judging.
JUDGE_STEP = 20
#: Minimum gain for which a change is advised.
WORTH = 0.01
#: Reasons for a choice of setting.
NOTHING_BETTER = "nothing that was tried is better"
BETTER = "more is delivered per time, and no more transfers fail"
FAILS = "what delivers more per time lets more transfers fail"


class Choice(Protocol):
    """What may be set: equal choices are alike and have one hash."""

    def __hash__(self) -> int: ...

    def changes(self, other: Self, /) -> dict[str, Any]:
        """Return what the other has otherwise, by the names of fields."""

    def with_values(self, values: Mapping[str, Any], /) -> Self:
        """Return it with other values of some fields."""


S = TypeVar("S", bound=Choice)


class Histories(Protocol[S]):
    """Runs choices over the same histories, and remembers what came of them."""

    @property
    def settings(self) -> tuple[S, ...]:
        """All that were asked for, those that are set now among them."""

    @property
    def defaults(self) -> S:
        """What is set now."""

    @property
    def run_count(self) -> int:
        """Runs so far."""

    def run(self, settings: Iterable[S], count: int, first: int = 0) -> None:
        """Run histories `first` to `first` + `count` - 1 of each setting, as far as it was not."""

    def transfers(self, setting: S, count: int, first: int = 0) -> Transfers:
        """Return what histories came to, which are run if they were not."""

    @property
    def halves_allowed_first(self) -> bool:
        """Whether what is not allowed is last from the first round on, and not in the race alone.

        For where few histories tell, and where many are better because they are not allowed.
        """

    def lets_more_fail(self, ours: Transfers, others: Transfers) -> bool:
        """Tell whether something is not allowed, however much it delivers."""

    def count(self, setting: S) -> int:
        """Return how many histories the search has seen of a setting."""

    def seen(self, setting: S) -> Transfers:
        """Return what the search has seen of a setting."""


@dataclass(frozen=True)
class Candidate(Generic[S]):
    """A setting that was tried, and what the search saw of it."""

    setting: S
    transfers: Transfers


@dataclass(frozen=True)
class Found(Generic[S]):
    """What came of a search."""

    #: What is set now.
    own: S
    #: The advised setting; equal to the current one if no candidate is better.
    setting: S
    #: Results over histories that the search did not see.
    ours: Transfers
    defaults: Transfers
    #: Relative gain in goodput over the defaults.
    gain: Estimate
    #: The reason for the choice, in words.
    reason: str
    #: All candidates, with the results the search saw.
    tried: tuple[Candidate[S], ...]
    #: Number of transfers run.
    runs: int
    seed: int

    @property
    def changes(self) -> dict[str, Any]:
        """What to change, by fields."""
        return self.own.changes(self.setting)


@dataclass(frozen=True)
class Advice(Found[Setting]):
    """What came of a search for a network."""

    given: Given


def advise(
    given: Given,
    *,
    keep: Collection[str] = (),
    budget: float = BUDGET,
    seed: int = 0,
    jobs: int | None = None,
    told: Callable[[int, int], object] = lambda _done, _total: None,
) -> Advice:
    """Search the settings of a network, and judge the best of them beside the defaults.

    Parameters
    ----------
    given
        The network.
    keep
        Fields of settings that stay as they are.
    budget
        What may be spent, millions of events in the simulator.
    seed
        Which histories of the network are drawn, 0 to 4: others give other numbers.
    jobs
        Threads; none = as many as there are processors.
    told
        Called with the number of transfers run, and that of all.
    """
    if not budget > 0:
        raise ValueError(f"budget = {budget}: expected millions of events, more than 0")
    if not 0 <= seed < sample.SEEDS:
        raise ValueError(f"seed = {seed}: expected 0 to {sample.SEEDS - 1}")
    settings = grid(given.defaults, keep)
    sampler = Sampler(given, settings, seed, jobs)
    sampler.run([given.defaults], PILOT)
    affordable = round(1e6 * budget * PILOT / max(sampler.events, 1))
    transfers = min(max(affordable, TRANSFERS_MIN), TRANSFERS_MAX)
    sampler.told = lambda done: told(min(done, transfers), transfers)
    found = search(sampler, transfers, seed)
    told(transfers, transfers)
    return Advice(**vars(found), given=given)


def search(sampler: Histories[S], transfers: int, seed: int) -> Found[S]:
    """Search what a sampler has, and judge the best of it beside what is set now.

    Parameters
    ----------
    sampler
        Runs the settings.
    transfers
        How many runs there may be, about.
    seed
        That of the sampler's histories.
    """
    finalists = _halve(sampler, sampler.settings, transfers)
    finalists = _race(sampler, finalists, round(SEARCH_SHARE * transfers))
    return _judge(sampler, finalists, transfers, seed)


def _halve(sampler: Histories[S], settings: Sequence[S], transfers: int) -> list[S]:
    """Return the settings of the last round: the best, and those that say what its changes do."""
    first = round(FIRST_SHARE * transfers / len(settings))
    left, count = list(settings), min(max(2, first), JUDGE_STEP)
    while len(left) > FINALISTS:
        sampler.run(left, count)
        seen, bad = {each: sampler.transfers(each, count) for each in left}, set[S]()
        known = alike.levels(left, [seen[each] for each in left])
        worth = dict(zip(left, known, strict=True))
        if sampler.halves_allowed_first:
            others = sampler.transfers(sampler.defaults, count)
            bad = {each for each in left if sampler.lets_more_fail(seen[each], others)}
        left.sort(key=lambda each: (each in bad, -worth[each]))
        left = left[: max(FINALISTS, len(left) // KEPT)]
        count = round(GROWTH * count)
    defaults, best = sampler.defaults, left[0]
    own = {name: getattr(defaults, name) for name in defaults.changes(best)}
    reverted = [best.with_values({name: value}) for name, value in own.items()]
    return list(dict.fromkeys([*left, *reverted, defaults]))


def _race(sampler: Histories[S], settings: Sequence[S], budget: int) -> list[S]:
    """Return settings from the best on, after as many histories as the budget has.

    Those that are worse than the best beyond doubt are left out on the way. Of those that are next
    to as good as the best the one with the fewest changes comes first; those with less success than
    the defaults come last.
    """
    defaults, left, count = sampler.defaults, list(settings), 0
    while True:
        # The defaults always remain: their success rate is the reference.
        running = list(dict.fromkeys([*left, defaults]))
        count += RACE_STEP
        sampler.run(running, count)
        seen = {each: sampler.transfers(each, count) for each in running}
        bad = {each for each in running if sampler.lets_more_fail(seen[each], seen[defaults])}
        left.sort(key=partial(_place, seen, bad))
        best = seen[left[0]]
        if count >= JUDGE_STEP:
            left = [e for e in left if e == left[0] or sample.gain(seen[e], best).high > 0]
            rivals = [e for e in left[1:] if e not in bad or left[0] in bad]
            if sum(sample.loss(best, seen[each]) for each in rivals) <= LOSS:
                break
        is_spent = sampler.run_count + RACE_STEP * len(left) > budget
        if len(left) == 1 or is_spent or count + RACE_STEP > JUDGE_FROM:
            break
    fine = [
        each
        for each in left
        if (each in bad) == (left[0] in bad)
        and seen[each].goodput_bps >= (1 - NEEDLESS) * best.goodput_bps
    ]
    first = min(fine, key=lambda each: (len(defaults.changes(each)), -seen[each].goodput_bps))
    return [first, *(each for each in left if each != first)]


def _place(seen: Mapping[S, Transfers], bad: Collection[S], each: S) -> tuple[bool, float]:
    return each in bad, -seen[each].goodput_bps


def _judge(sampler: Histories[S], finalists: Sequence[S], budget: int, seed: int) -> Found[S]:
    """Hold the finalists one after the other against the defaults, over fresh histories."""
    defaults = sampler.defaults
    reason = NOTHING_BETTER
    chosen = defaults
    count = JUDGE_STEP
    for each in finalists:
        if each == defaults:
            break
        # Use half of the remaining budget, in case this one lets more fail and another is to be
        # judged.
        count, found = _compared(sampler, each, (sampler.run_count + budget) // 2)
        if found.low <= 0 < found.high:
            count, found = _compared(sampler, each, budget)
        if found.low <= 0 or found.value < WORTH:
            # The best remaining candidate is no better.
            break
        ours, others = (sampler.transfers(s, count, JUDGE_FROM) for s in (each, defaults))
        if not sampler.lets_more_fail(ours, others):
            chosen, reason = each, BETTER
            count, _ = _compared(sampler, each, budget)
            break
        reason = FAILS
        if budget - sampler.run_count < 2 * JUDGE_STEP:
            break
    ours, others = (sampler.transfers(s, count, JUDGE_FROM) for s in (chosen, defaults))
    found = sample.gain(ours, others) if chosen != defaults else Estimate(0.0, 0.0, 0.0)
    tried = tuple(
        Candidate(each, sampler.seen(each)) for each in sampler.settings if sampler.count(each)
    )
    return Found(defaults, chosen, ours, others, found, reason, tried, sampler.run_count, seed)


def _compared(sampler: Histories[S], setting: S, budget: int) -> tuple[int, Estimate]:
    """Compare with the defaults until the gain is known well, or the budget is spent."""
    pair = (setting, sampler.defaults)
    count = 0
    while True:
        count += JUDGE_STEP
        sampler.run(pair, JUDGE_STEP, JUDGE_FROM + count - JUDGE_STEP)
        ours, others = (sampler.transfers(each, count, JUDGE_FROM) for each in pair)
        found = sample.gain(ours, others)
        is_precise = _is_precise(found)
        is_full = JUDGE_FROM + count + JUDGE_STEP > sample.REPLAY_FROM
        if is_precise or is_full or sampler.run_count + 2 * JUDGE_STEP > budget:
            return count, found


def _is_precise(found: Estimate) -> bool:
    """Tell whether a gain is known well enough, by the logarithm that its interval is one of."""
    if found.low <= -1:
        return False
    value, low, high = (log1p(each) for each in (found.value, found.low, found.high))
    return (high - low) / 2 <= max(PRECISE, CLOSE * abs(value))
