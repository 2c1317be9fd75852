"""Wrong results, to see whether the checks notice them."""

import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from corridor.study.claims import WRONG, Claim, Status
from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.run import RESULT


@dataclass(frozen=True)
class Trial:
    """A recorded result made wrong, and what its check says of that."""

    experiment: str
    claim: Claim
    #: As recorded.
    measured: float
    #: What was made of it.
    wrong: float
    status: Status

    @property
    def is_seen(self) -> bool:
        """Whether the check fails, as it should."""
        return self.status in WRONG

    @property
    def excuse(self) -> str:
        """Why a wrong number may pass here; empty where it may not."""
        return self.claim.wide

    @property
    def is_well(self) -> bool:
        """Whether the check fails, or it is said why it need not."""
        return self.is_seen or bool(self.excuse)


def trials(experiment: Experiment, claim: Claim, measured: float) -> list[Trial]:
    """Make a result wrong in every way that its kind of claim has."""
    return [
        Trial(experiment.name, claim, measured, wrong, claim.judge(wrong).status)
        for wrong in claim.wrong(measured)
    ]


def recorded(experiment: Experiment) -> Mapping[str, float]:
    """Return what was measured when the experiment was recorded, by numbers of claims.

    Raises
    ------
    ExperimentError
        Where what was recorded cannot be read.
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
    """Draw claims that can be found otherwise, and make their recorded results wrong.

    Parameters
    ----------
    experiments
        Those that are drawn from, as far as they were recorded.
    seed
        Which claims are drawn: the same for the same seed.
    count
        How many; all if there are fewer.
    """
    drawable = [
        (experiment, claim, measured)
        for experiment in experiments
        for claim, measured in _found(experiment)
    ]
    chosen = random.Random(seed).sample(drawable, min(count, len(drawable)))
    return [trial for each in chosen for trial in trials(*each)]


def _found(experiment: Experiment) -> list[tuple[Claim, float]]:
    """Claims that say something that can be found otherwise, with what was measured."""
    measured = recorded(experiment)
    return [
        (claim, measured[claim.id])
        for claim in experiment.claims
        if claim.is_found and not claim.accepted.is_open and claim.id in measured
    ]
