"""Parameters of a paper, read from the plans that run."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from corridor import _native, sim
from corridor.study.claims import Claim, Measured
from corridor.study.experiment import Experiment, ExperimentError

#: Tolerance for a number written in another form: rounding only.
_ROUNDING = 1e-9


def measures(experiment: Experiment) -> dict[str, Measured]:
    """Return the plans' values for each claim that names a plan setting, by claim number.

    A row ``reads`` of `published.json` names a plan by its use, and either a ``setting`` that its
    points run with (with presets and defaults filled in), or a ``key`` of its file. ``where``
    restricts the points to those with these values of swept keys. The values read are compared with
    ``published``, a list: all of them must match it or, with ``among``, be in it. A claim with one
    row and one number measures that number, times ``scale``; any other measures whether all rows
    agree.

    Raises
    ------
    ExperimentError
        For a row that names something unknown.
    """
    cache: dict[str, _Plan] = {}
    found: dict[str, Measured] = {}
    for claim in experiment.claims:
        if claim.reads:
            found[claim.id] = _measure(experiment, claim, cache)
    return found


def _measure(experiment: Experiment, claim: Claim, cache: dict[str, "_Plan"]) -> Measured:
    read = []
    for row in claim.reads:
        use = str(row["plan"])
        if use not in cache:
            cache[use] = _Plan(experiment, use)
        read.append(cache[use].values(row))
    if len(read) == 1 and "published" not in claim.reads[0]:
        if len(read[0]) != 1:
            raise ExperimentError(f"{claim.id}: {read[0]}: expected one value")
        return float(read[0][0]) * float(claim.reads[0].get("scale", 1))
    return all(_agree(row, values) for row, values in zip(claim.reads, read, strict=True))


def _agree(row: Mapping[str, Any], values: Sequence[Any]) -> bool:
    published = row["published"]
    if row.get("among", False):
        return all(any(_alike(wanted, value) for value in values) for wanted in published)
    return len(values) == len(published) and all(map(_alike, published, values))


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return str(one) == str(other)
    return abs(float(one) - float(other)) <= _ROUNDING * max(1.0, abs(float(one)))


class _Plan:
    """A plan, and the settings its points run with."""

    def __init__(self, experiment: Experiment, use: str) -> None:
        self.name = f"{experiment.name}, plan {use}"
        plan = sim.PlanText.read(experiment.plan(use))
        self.table = tomllib.loads(plan.text())
        self.runs = _native.PlanRuns(plan.text(), str(plan.directory), 1)
        self.points = self.runs.parameters()

    def values(self, row: Mapping[str, Any]) -> list[Any]:
        """Return the distinct values for a row of a claim, in order."""
        if "key" in row:
            return [self._key(str(row["key"]))]
        wanted, name = row.get("where", {}), str(row["setting"])
        found = set()
        for place, point in enumerate(self.points):
            if any(point.get(path) != value for path, value in wanted.items()):
                continue
            settings = self.runs.settings(place)
            if name not in settings:
                raise ExperimentError(f"{self.name}: setting = {name!r}: not of these points")
            found.add(settings[name])
        if not found:
            raise ExperimentError(f"{self.name}: where = {dict(wanted)}: no point is so")
        return sorted(found)

    def _key(self, path: str) -> Any:
        value: Any = self.table
        try:
            for part in path.split("."):
                value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError):
            raise ExperimentError(f"{self.name}: key = {path!r}: the file has none") from None
        return value
