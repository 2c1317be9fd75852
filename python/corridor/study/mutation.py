"""Mutation tests: falsified results, to see whether the checks notice."""

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corridor.study.claims import WRONG, Claim, Status
from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.run import RESULT


@dataclass(frozen=True)
class Trial:
    """A falsified result, and the outcome of its check."""

    experiment: str
    claim: Claim
    #: Recorded value.
    measured: float
    #: Falsified value.
    wrong: float
    status: Status

    @property
    def is_seen(self) -> bool:
        """Whether the check fails, as it should."""
        return self.status in WRONG

    @property
    def excuse(self) -> str:
        """Why a wrong number may pass here; empty if it may not."""
        return self.claim.wide

    @property
    def is_well(self) -> bool:
        """Whether the check fails, or need not fail for a stated reason."""
        return self.is_seen or bool(self.excuse)


def trials(experiment: Experiment, claim: Claim, measured: float) -> list[Trial]:
    """Falsify a result in every way defined for its kind of claim."""
    return [
        Trial(experiment.name, claim, measured, wrong, claim.judge(wrong).status)
        for wrong in claim.wrong(measured)
    ]


def recorded(experiment: Experiment) -> Mapping[str, float]:
    """Return the measures from when the experiment was recorded, by claim number.

    Raises
    ------
    ExperimentError
        If the recorded result cannot be read.
    """
    path = experiment.folder / RESULT
    if not path.exists():
        return {}
    try:
        claims = json.loads(path.read_text(encoding="utf-8"))["claims"]
        return {row["id"]: float(row["measured"]) for row in claims if row["measured"] is not None}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExperimentError(f"{experiment.name}: {RESULT}: {error!r}") from error


def draw(experiments: Iterable[Experiment], seed: int, count: int) -> list[Trial]:
    """Draw refutable claims, and falsify their recorded results.

    Parameters
    ----------
    experiments
        Experiments to draw from, where recorded.
    seed
        Seed of the draw.
    count
        Number of claims; all if there are fewer.
    """
    drawable = [
        (experiment, claim, measured)
        for experiment in experiments
        for claim, measured in _found(experiment)
    ]
    chosen = random.Random(seed).sample(drawable, min(count, len(drawable)))
    return [trial for each in chosen for trial in trials(*each)]


def _found(experiment: Experiment) -> list[tuple[Claim, float]]:
    """Refutable claims, with their measures."""
    measured = recorded(experiment)
    return [
        (claim, measured[claim.id])
        for claim in experiment.claims
        if claim.is_found and not claim.accepted.is_open and claim.id in measured
    ]
