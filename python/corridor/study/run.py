"""Runs experiments, and saves their results."""

import json
import math
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import scipy  # Its submodules are imported on first use: `stats` takes a second.
from matplotlib import pyplot as plt

from corridor.study import settings
from corridor.study.claims import Measured
from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.findings import Context, Findings, Report

#: Maximum number of jackknife groups; no intervals with fewer replications than the minimum.
GROUPS_MAX = 10
GROUPS_MIN = 3
#: File name of committed results, in each experiment's folder.
RESULT = "result.json"


def runner(experiment: Experiment) -> Callable[[Context], Findings]:
    """Return the function that runs an experiment.

    Raises
    ------
    ExperimentError
        If there is none of that name.
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
    """Run an experiment, and judge its results."""
    begun = time.perf_counter()
    experiment = context.experiment
    findings = runner(experiment)(context)
    simulated = findings.measured
    if context.engine == "sim":
        findings = replace(findings, measured={**simulated, **settings.measures(experiment)})
    # The figure can still be saved; otherwise pyplot keeps it open forever.
    plt.close(findings.figure)
    known = {claim.id for claim in experiment.claims}
    if unknown := set(findings.measured) - known:
        raise ExperimentError(
            f"{experiment.name}: published.json has no claim {', '.join(sorted(unknown))}"
        )
    widths = half_widths(context, simulated)
    claims = experiment.claims
    if context.engine == "lab":
        # Some claims only have runs in virtual time.
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


def confirm(context: Context, most: int) -> Report:
    """Run an experiment with increasing replications, until its verdicts are certain.

    A verdict is uncertain while a bound of agreement lies within the measure's 95 % interval.
    Replications double from the number in the parameters, up to `most`; verdicts that remain
    uncertain are listed in the notes.

    Parameters
    ----------
    context
        Context of a full run.
    most
        Maximum replications per point.
    """
    count = context.replications and max(context.replications, GROUPS_MIN)
    while True:
        report = reproduce(replace(context, least=count))
        left = [verdict.claim.id for verdict in report.verdicts if not verdict.is_certain]
        if not left or count == 0 or count >= most:
            break
        count = min(2 * count, most)
    words = (
        f"uncertain with {count} replications: {', '.join(left)}"
        if left
        else f"all verdicts are certain with {count} replications"
    )
    findings = replace(report.findings, notes=[*report.findings.notes, words])
    return replace(report, findings=findings)


def half_widths(context: Context, measured: Mapping[str, Measured]) -> dict[str, float]:
    """Return the half-width of the 95 % interval of each measure that simulations vary.

    Uses the jackknife: the experiment is evaluated again with each of ten groups of replications
    left out, or each replication if there are fewer. A measure that jumps, such as the smallest
    load with some property, has a zero-width interval if all evaluations agree.

    Returns
    -------
    By claim number; none for statements, with fewer than three replications, or in the lab.
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
    scale = float(scipy.stats.t.ppf(0.975, groups - 1))
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
    """Save the result in the experiment's own folder, with the commit it comes from.

    Raises
    ------
    ExperimentError
        If the code is not as committed: the result could not be traced.
    """
    folder = report.experiment.folder
    path = folder / RESULT
    result = {"commit": commit(folder), **report.as_json()}
    path.write_text(dumps(result) + "\n", encoding="utf-8")
    return path


def commit(folder: Path) -> str:
    """Return the checked-out commit, provided that only results differ from it.

    Raises
    ------
    ExperimentError
        If there is none, or something else has changed.
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
    """Save ``result.json`` and the plot in a folder named after the experiment."""
    place = folder / report.experiment.name
    place.mkdir(parents=True, exist_ok=True)
    result, picture = place / "result.json", place / "plot.png"
    result.write_text(dumps(report.as_json()) + "\n", encoding="utf-8")
    report.findings.figure.savefig(picture, dpi=120)
    return [result, picture]


def dumps(value: Any) -> str:
    """Return JSON, with NaN as null."""
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
