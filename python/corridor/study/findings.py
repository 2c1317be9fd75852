"""What an experiment is given, and what it gives."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import tomli_w
import xarray as xr
from matplotlib.figure import Figure

from corridor import _native, sim
from corridor._batches import Anywhere
from corridor.study import lab
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
    #: What else there is to say: what is not as one would expect.
    notes: list[str] = field(default_factory=list)


#: What carries runs: virtual time, or real time and the kernel's own TCP.
Engine = Literal["sim", "lab"]


@dataclass(frozen=True)
class Bench:
    """Where real-time runs are made."""

    #: The program ``corridor``; none = the environment's, or the path's.
    corridor: Path | None = None
    #: Rows of an earlier run, instead of making runs.
    rows: Path | None = None
    #: Folder that new rows are left in.
    out: Path | None = None


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
    #: What carries runs.
    engine: Engine = "sim"
    #: Where the lab's are made.
    bench: Bench = Bench()
    #: Leave out every replication whose number has this rest over that divisor, from (0, 2).
    without: tuple[int, int] | None = None
    #: Only run what claims are about; what else a plan has is for the picture.
    only_claims: bool = False
    #: Most replications of a point; none = as many as the parameters say.
    most: int | None = None
    #: Fewest replications of a point, whatever the parameters say: to confirm.
    least: int = 0
    #: What makes simulations elsewhere; none = threads here.
    executor: Anywhere | None = None

    def parameter(self, name: str) -> Any:
        """Return a parameter; in quick runs that of the same name with ``quick_`` before it."""
        parameters = self.experiment.parameters
        quick = f"quick_{name}"
        return parameters[quick] if self.quick and quick in parameters else parameters[name]

    def published(self, claim: str) -> float:
        """Return the published number of a claim of the experiment.

        Raises
        ------
        KeyError
            Where the experiment has no such claim.
        """
        return float({each.id: each.value for each in self.experiment.claims}[claim])

    def simulate(
        self, use: str, replications: int | None = None, *, whole: bool = False
    ) -> xr.Dataset:
        """Run the plan for this use, with the replications that the parameters ask for, or given.

        In quick runs the parameter ``quick_plan`` replaces values of the plan. In these, and where
        only claims are of interest, ``claims_run`` replaces values of each of its runs, unless all
        of them are wanted.
        """
        path = self.experiment.plan(use).resolve()
        replications = replications or self.replications
        if (path, replications) not in self.cache:
            plan = sim.PlanText.read(path)
            if self.quick or (self.only_claims and not whole):
                plan = self._shortened(plan, "claims_run")
            self.cache[path, replications] = sim.run(
                plan,
                replications=replications,
                jobs=self.jobs,
                executor=self.executor,
                progress=lambda done, total: self.progress(path.parent.name, done, total),
            )
        return self._remaining(self.cache[path, replications])

    def course(self, use: str) -> xr.Dataset:
        """Return the first replication of the plan for this use, whatever is left out otherwise."""
        return replace(self, without=None).simulate(use).isel(replication=0)

    @property
    def replications(self) -> int:
        """How often each point of a plan is run; 0 where nothing is simulated."""
        if "replications" not in self.experiment.parameters:
            return 0
        return self.count(int(self.parameter("replications")))

    def count(self, asked: int) -> int:
        """Return how many replications to make where the parameters ask for so many."""
        asked = max(asked, self.least)
        return asked if self.most is None else min(asked, self.most)

    @property
    def is_whole(self) -> bool:
        """Whether as many replications are run as the claims were judged by."""
        parameters = self.experiment.parameters
        asked = int(parameters.get("replications", 0))
        return not self.quick and (self.most is None or self.most >= asked)

    def _remaining(self, results: xr.Dataset) -> xr.Dataset:
        """Leave out what is to be left out."""
        count = results.sizes["replication"]
        if self.without is None or count < self.without[1]:
            return results
        rest, divisor = self.without
        return results.isel(replication=[r for r in range(count) if r % divisor != rest])

    def runs(self, use: str) -> xr.Dataset:
        """Run the plan for this use, or in the lab the scenario of all of the figure's runs."""
        return self.simulate(use) if self.engine == "sim" else self.measure()

    def measure(self) -> xr.Dataset:
        """Run the plan ``lab`` in real time, or read the rows of an earlier run.

        In quick runs each run is made once, and the parameter ``quick_lab`` replaces its values.
        """
        path = self.experiment.plan("lab").resolve()
        if (path, 0) not in self.cache:
            rows = lab.read(self.bench.rows) if self.bench.rows else self._measured(path)
            self.cache[path, 0] = lab.dataset(rows)
        return self.cache[path, 0]

    def _measured(self, path: Path) -> list[dict[str, Any]]:
        plan = sim.PlanText.read(path)
        if self.quick:
            plan = self._shortened(plan, "quick_lab")
        repeats = 1 if self.quick else None
        runs = _native.PlanRuns(plan.text(), str(plan.directory), repeats)
        return lab.run(
            lab.program(self.bench.corridor),
            plan.text(),
            repeats=repeats,
            out=self.bench.out / f"{path.stem}.jsonl" if self.bench.out else None,
            progress=lambda done: self.progress(path.stem, done, runs.points * runs.replications),
        )

    def _shortened(self, plan: sim.PlanText, runs: str) -> sim.PlanText:
        """Return the plan with what the parameters replace in quick runs, and in each run."""
        parameters = self.experiment.parameters
        whole = parameters.get("quick_plan", {}) if self.quick else {}
        if not whole and runs not in parameters:
            return plan
        changed = tomllib.loads(plan.text()) | whole
        for run in changed.get("run", []):
            replaced = parameters.get(runs, {})
            run.update({key: value for key, value in replaced.items() if key in run})
        return sim.PlanText(tomli_w.dumps(changed), plan.directory)


@dataclass(frozen=True)
class Report:
    """An experiment with its verdicts."""

    experiment: Experiment
    findings: Findings
    verdicts: tuple[Verdict, ...]
    seconds: float
    engine: Engine = "sim"
    #: Replications of each point that was simulated; 0: none was.
    replications: int = 0
    quick: bool = False

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
            "quick": self.quick,
            "replications": self.replications,
            "seconds": round(self.seconds, 2),
            "claims": [verdict.row() for verdict in self.verdicts],
            "rows": self.findings.rows,
            "notes": self.findings.notes,
            "engine": self.engine,
        }
