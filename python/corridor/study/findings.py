"""Input and output of an experiment."""

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
    """Results of an experiment."""

    #: Measures, by claim number.
    measured: Mapping[str, Measured]
    #: Rows of its table, all with the same keys.
    rows: list[dict[str, Any]]
    #: Its plot.
    figure: Figure
    #: Further remarks: anything unexpected.
    notes: list[str] = field(default_factory=list)


#: Engine for runs: virtual time, or real time with the kernel's own TCP.
Engine = Literal["sim", "lab"]


@dataclass(frozen=True)
class Bench:
    """Setup for real-time runs."""

    #: Path of the program ``corridor``; None: from the environment, or the search path.
    corridor: Path | None = None
    #: Rows of an earlier run, instead of new runs.
    rows: Path | None = None
    #: Folder to save new rows in.
    out: Path | None = None


@dataclass
class Context:
    """Context of an experiment's run."""

    #: The experiment.
    experiment: Experiment
    #: Whether to run quickly, with fewer replications.
    quick: bool
    #: Number of threads for simulations; None: the number of processors.
    jobs: int | None = None
    #: Called with the current simulation, the amount done, and the total.
    progress: Callable[[str, int, int], object] = lambda _name, _done, _all: None
    #: Cache of simulation results, shared by experiments with plans in common.
    cache: dict[tuple[Path, int], xr.Dataset] = field(default_factory=dict)
    #: Engine for runs.
    engine: Engine = "sim"
    #: Setup of the lab.
    bench: Bench = Bench()
    #: Leave out replications whose number has this remainder modulo that divisor (at least 2).
    without: tuple[int, int] | None = None
    #: Whether to run only what claims need; the rest of a plan is for plots.
    only_claims: bool = False
    #: Maximum replications per point; None: as in the parameters.
    most: int | None = None
    #: Minimum replications per point, whatever the parameters say: for confirmation.
    least: int = 0
    #: Executor for simulations; None: local threads.
    executor: Anywhere | None = None

    def parameter(self, name: str) -> Any:
        """Return a parameter; in quick runs, the one prefixed with ``quick_`` if there is one."""
        parameters = self.experiment.parameters
        quick = f"quick_{name}"
        return parameters[quick] if self.quick and quick in parameters else parameters[name]

    def published(self, claim: str) -> float:
        """Return the published number of a claim of the experiment.

        Raises
        ------
        KeyError
            If the experiment has no such claim.
        """
        return float({each.id: each.value for each in self.experiment.claims}[claim])

    def simulate(
        self, use: str, replications: int | None = None, *, whole: bool = False
    ) -> xr.Dataset:
        """Run the plan for this use, with the given number of replications or the parameters'.

        In quick runs, the parameter ``quick_plan`` replaces values of the plan. In these, and if
        only claims matter, ``claims_run`` replaces values of each of its runs, unless all of them
        are wanted.
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
        """Return the first replication of the plan for this use, even if otherwise left out."""
        return replace(self, without=None).simulate(use).isel(replication=0)

    @property
    def replications(self) -> int:
        """Replications per point; 0 if nothing is simulated."""
        if "replications" not in self.experiment.parameters:
            return 0
        return self.count(int(self.parameter("replications")))

    def count(self, asked: int) -> int:
        """Return the number of replications to make if the parameters ask for ``asked``."""
        asked = max(asked, self.least)
        return asked if self.most is None else min(asked, self.most)

    @property
    def is_whole(self) -> bool:
        """Whether all the replications are run that the claims are judged by."""
        parameters = self.experiment.parameters
        asked = int(parameters.get("replications", 0))
        return not self.quick and (self.most is None or self.most >= asked)

    def _remaining(self, results: xr.Dataset) -> xr.Dataset:
        """Drop the replications to leave out."""
        count = results.sizes["replication"]
        if self.without is None or count < self.without[1]:
            return results
        rest, divisor = self.without
        return results.isel(replication=[r for r in range(count) if r % divisor != rest])

    def runs(self, use: str) -> xr.Dataset:
        """Run the plan for this use, or in the lab the scenario with all of the figure's runs."""
        return self.simulate(use) if self.engine == "sim" else self.measure()

    def measure(self) -> xr.Dataset:
        """Run the plan ``lab`` in real time, or read the rows of an earlier run.

        In quick runs, each run is made once, and the parameter ``quick_lab`` replaces values of it.
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
        """Return the plan with the replacements for quick runs, in the plan and in each run."""
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
    #: Replications per simulated point; 0 if nothing was simulated.
    replications: int = 0
    quick: bool = False

    @property
    def is_well(self) -> bool:
        """Whether no verdict indicates an error."""
        return all(verdict.is_well for verdict in self.verdicts)

    def as_json(self) -> dict[str, Any]:
        """Return everything but the plot, for JSON."""
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
