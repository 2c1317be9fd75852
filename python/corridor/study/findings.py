"""What an experiment is given, and what it gives."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
import xarray as xr
from matplotlib.figure import Figure

from corridor import sim
from corridor.study.claims import Measured, Verdict
from corridor.study.experiment import Experiment


@dataclass(frozen=True)
class Findings:
    """What an experiment has found."""

    #: Measures, by the numbers of the claims they are held against.
    measured: Mapping[str, Measured]
    #: Rows of its table, each with the same keys.
    rows: list[dict[str, Any]]
    #: Its picture.
    figure: Figure


@dataclass
class Context:
    """What an experiment is given."""

    #: The experiment.
    experiment: Experiment
    #: Whether to be done soon, with fewer replications.
    quick: bool
    #: Threads for simulations; none = as many as there are processors.
    jobs: int | None = None
    #: Told the simulation that is under way, how much of it is done, and how much there is.
    progress: Callable[[str, int, int], object] = lambda _name, _done, _all: None
    #: Results of simulations, shared by experiments that have plans in common.
    cache: dict[tuple[Path, int], xr.Dataset] = field(default_factory=dict)

    def parameter(self, name: str) -> Any:
        """Return a parameter; in quick runs that of the same name with ``quick_`` before it."""
        parameters = self.experiment.parameters
        quick = f"quick_{name}"
        return parameters[quick] if self.quick and quick in parameters else parameters[name]

    def simulate(self, use: str) -> xr.Dataset:
        """Run the plan for this use, with the replications that the parameters ask for.

        In quick runs the parameter ``quick_plan`` replaces values of the plan, and ``quick_run``
        values of each of its runs.
        """
        path = self.experiment.plan(use).resolve()
        replications = int(self.parameter("replications"))
        if (path, replications) not in self.cache:
            plan = sim.PlanText.read(path)
            if self.quick:
                plan = self._shortened(plan)
            self.cache[path, replications] = sim.run(
                plan,
                replications=replications,
                jobs=self.jobs,
                progress=lambda done, total: self.progress(path.parent.name, done, total),
            )
        return self.cache[path, replications]

    def _shortened(self, plan: sim.PlanText) -> sim.PlanText:
        """Return the plan with what the parameters replace in quick runs."""
        parameters = self.experiment.parameters
        if not {"quick_plan", "quick_run"} & set(parameters):
            return plan
        changed = tomllib.loads(plan.text()) | parameters.get("quick_plan", {})
        for run in changed.get("run", []):
            replaced = parameters.get("quick_run", {})
            run.update({key: value for key, value in replaced.items() if key in run})
        return sim.PlanText(tomli_w.dumps(changed), plan.directory)


@dataclass(frozen=True)
class Report:
    """An experiment with its verdicts."""

    experiment: Experiment
    findings: Findings
    verdicts: tuple[Verdict, ...]
    seconds: float

    @property
    def is_well(self) -> bool:
        """Whether no verdict says that something is wrong."""
        return all(verdict.is_well for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """Return all but the picture, for JSON."""
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "well": self.is_well,
            "seconds": round(self.seconds, 2),
            "claims": [verdict.row() for verdict in self.verdicts],
            "rows": self.findings.rows,
        }
