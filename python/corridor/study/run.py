"""Running experiments, and what they leave behind."""

import json
import math
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from scipy import stats

from corridor.study import settings
from corridor.study.claims import Measured
from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.findings import Context, Findings, Report

#: Groups of replications that are left out in turn for intervals: as many as these at most, and no
#: intervals with fewer replications than those.
GROUPS_MAX = 10
GROUPS_MIN = 3
#: What committed results are called, in the folder of each experiment.
RESULT = "result.json"


def runner(experiment: Experiment) -> Callable[[Context], Findings]:
    """Return the function that makes an experiment.

    Raises
    ------
    ExperimentError
        Where there is none of that name.
    """
    module, _, name = experiment.runner.rpartition(".")
    try:
        function: Callable[[Context], Findings] = getattr(
            import_module(f"corridor.study.{module}"), name
        )
    except (ImportError, AttributeError, ValueError):
        raise ExperimentError(
            f"{experiment.name}: runner = {experiment.runner!r}: expected a function of "
            f"corridor.study, as 'kim.table1.run'"
        ) from None
    return function


def reproduce(context: Context) -> Report:
    """Run an experiment, and judge what it finds."""
    begun = time.perf_counter()
    experiment = context.experiment
    findings = runner(experiment)(context)
    simulated = findings.measured
    if context.engine == "sim":
        findings = replace(findings, measured={**simulated, **settings.measures(experiment)})
    # It can be saved all the same; pyplot keeps what is open for ever.
    plt.close(findings.figure)
    known = {claim.id for claim in experiment.claims}
    if unknown := set(findings.measured) - known:
        raise ExperimentError(
            f"{experiment.name}: published.json has no claim {', '.join(sorted(unknown))}"
        )
    widths = half_widths(context, simulated)
    claims = experiment.claims
    if context.engine == "lab":
        # Some claims have runs in virtual time alone.
        claims = tuple(claim.in_lab() for claim in claims if claim.id in findings.measured)
    verdicts = tuple(
        claim.judge(
            findings.measured.get(claim.id),
            context.quick,
            widths.get(claim.id),
            is_whole=context.is_whole,
        )
        for claim in claims
    )
    seconds = time.perf_counter() - begun
    replications = context.replications
    return Report(
        experiment, findings, verdicts, seconds, context.engine, replications, context.quick
    )


def half_widths(context: Context, measured: Mapping[str, Measured]) -> dict[str, float]:
    """Return half of the 95 % interval of each measure that simulations vary.

    By the jackknife: the experiment is evaluated anew with one in ten groups of replications left
    out, for each of the ten; of fewer replications with each of them. Measures that jump, as the
    least load with some property, have an interval of nothing where all agree.

    Returns
    -------
    By number of claim; nothing for statements, with fewer than three replications, or in the lab.
    """
    groups = min(context.replications, GROUPS_MAX)
    if context.engine != "sim" or groups < GROUPS_MIN:
        return {}
    function = runner(context.experiment)
    runs = []
    for rest in range(groups):
        findings = function(replace(context, without=(rest, groups)))
        plt.close(findings.figure)
        runs.append(findings.measured)
    scale = float(stats.t.ppf(0.975, groups - 1))
    widths = {}
    for number, value in measured.items():
        if isinstance(value, bool):
            continue
        values = [float(run[number]) for run in runs]
        mean = sum(values) / groups
        spread = sum((each - mean) ** 2 for each in values)
        widths[number] = scale * math.sqrt((groups - 1) / groups * spread)
    return widths


def record(report: Report) -> Path:
    """Write the result into the experiment's own folder, with the commit that it comes from.

    Raises
    ------
    ExperimentError
        Where what is run is not as committed: nobody could find it again.
    """
    folder = report.experiment.folder
    path = folder / RESULT
    result = {"commit": commit(folder), **report.as_json()}
    path.write_text(dumps(result) + "\n", encoding="utf-8")
    return path


def commit(folder: Path) -> str:
    """Return the commit that is checked out, of which nothing but results has been changed.

    Raises
    ------
    ExperimentError
        Where there is none, or something else has been changed.
    """
    changed = _git(folder, "status", "--porcelain", "--", ":/", f":(exclude,glob,top)**/{RESULT}")
    if changed:
        raise ExperimentError(f"record: {changed.splitlines()[0]}: expected all to be committed")
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ExperimentError(f"record: {error}: expected a checkout with git") from None
    return done.stdout.strip()


def leave(report: Report, folder: Path) -> list[Path]:
    """Write ``result.json`` and the picture into a folder of the experiment's name."""
    place = folder / report.experiment.name
    place.mkdir(parents=True, exist_ok=True)
    result, picture = place / "result.json", place / "plot.png"
    result.write_text(dumps(report.as_json()) + "\n", encoding="utf-8")
    report.findings.figure.savefig(picture, dpi=120)
    return [result, picture]


def dumps(value: Any) -> str:
    """Return JSON; what is not a number is null."""
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
