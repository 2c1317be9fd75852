"""Running experiments, and what they leave behind."""

import json
import math
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.findings import Context, Findings, Report


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
    known = {claim.id for claim in experiment.claims}
    if unknown := set(findings.measured) - known:
        raise ExperimentError(
            f"{experiment.name}: published.json has no claim {', '.join(sorted(unknown))}"
        )
    verdicts = tuple(
        claim.judge(findings.measured.get(claim.id), context.quick) for claim in experiment.claims
    )
    seconds = time.perf_counter() - begun
    return Report(experiment, findings, verdicts, seconds, context.engine)


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
