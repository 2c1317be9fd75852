"""The command ``corridor-study``."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import matplotlib as mpl
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from corridor.study.experiment import Experiment, ExperimentError, experiments_folder, find
from corridor.study.findings import Bench, Context, Engine, Report
from corridor.study.run import dumps, leave, reproduce

app = typer.Typer(
    help="Repeat the experiments of the papers, and hold what is found against what was published.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

T = TypeVar("T")
Folder = Annotated[
    Path | None,
    typer.Option("--experiments", help="Folder of the experiments [default: the nearest]"),
]
COLOURS = {
    "pass": "green", "errata": "yellow", "shown": "dim", "fail": "bold red", "odd": "bold red",
    "missing": "bold red",
}  # fmt: skip


@app.command("list")
def list_experiments(
    pattern: Annotated[str, typer.Argument(help="Beginning of a name, or a pattern")] = "*",
    experiments: Folder = None,
) -> None:
    """List the experiments that there are."""
    console = Console()
    table = Table("experiment", "claims", "title", box=None)
    for experiment in _guarded(lambda: find(experiments_folder(experiments), pattern)):
        table.add_row(experiment.name, str(len(experiment.claims)), experiment.title)
    console.print(table)


@app.command("reproduce")
def reproduce_experiments(
    pattern: Annotated[str, typer.Argument(help="Beginning of a name, or a pattern")] = "*",
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer replications, wider tolerances, same checks")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Leave result.json and plot.png of each in this folder")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Threads [default: as many as processors]")
    ] = None,
    experiments: Folder = None,
    engine: Annotated[
        Engine, typer.Option(help="Virtual time, or real time with the kernel's own TCP: hours")
    ] = "sim",
    rows: Annotated[
        Path | None,
        typer.Option(help="In the lab: rows that `corridor lab run --out` left, instead of runs"),
    ] = None,
    corridor: Annotated[
        Path | None,
        typer.Option(help="In the lab: the program [default: CORRIDOR_BIN, or that of the path]"),
    ] = None,
) -> None:
    """Repeat experiments; ends with 1 if a claim fails, 2 if something cannot be read."""
    mpl.use("Agg")
    chosen = _guarded(lambda: _of_engine(find(experiments_folder(experiments), pattern), engine))
    bench = Bench(corridor, rows, out)
    console, reports = Console(), []
    cache: dict[Any, Any] = {}
    with _bar() as bar:
        task = bar.add_task("", total=None)

        def told(name: str, done: int, total: int) -> None:
            bar.update(task, description=name, completed=done, total=total)

        for experiment in chosen:
            bar.update(task, description=experiment.name, completed=0, total=None)
            context = Context(experiment, quick, jobs, told, cache, engine, bench)
            report = _guarded(partial(reproduce, context))
            reports.append(report)
            files = leave(report, out) if out else []
            if not as_json:
                _print(console, report, files)
    if as_json:
        print(dumps([report.as_json() for report in reports]))
    else:
        _total(console, reports)
    if not all(report.is_well for report in reports):
        raise typer.Exit(1)


def _of_engine(experiments: list[Experiment], engine: Engine) -> list[Experiment]:
    """Return those that an engine can carry."""
    if engine == "sim":
        return experiments
    chosen = [experiment for experiment in experiments if "lab" in experiment.plans]
    if not chosen:
        raise ExperimentError("engine = lab: expected experiments with a plan `lab`")
    return chosen


def _guarded(act: Callable[[], T]) -> T:
    try:
        return act()
    except (ExperimentError, ValueError, OSError) as error:
        print(f"corridor-study: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _number(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, int | float) else str(value)


def _accepted(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "-"
    if (low, high) == (1, 1):
        return "yes"
    if low is not None and high is not None:
        return f"{low:.5g} to {high:.5g}"
    return f"at least {low:.5g}" if low is not None else f"at most {high:.5g}"


def _print(console: Console, report: Report, files: list[Path]) -> None:
    experiment = report.experiment
    console.print(f"\n[bold]{experiment.name}[/bold]: {experiment.title}")
    rows = report.findings.rows
    if rows:
        table = Table(*rows[0], box=None)
        for row in rows:
            table.add_row(*(_number(value) for value in row.values()))
        console.print(table)
    table = Table("", "claim", box=None)
    # All of them are in the JSON.
    table.add_column("conditions", max_width=30, no_wrap=True, overflow="ellipsis")
    for name in ("published", "ours", "accepted"):
        table.add_column(name)
    for verdict in report.verdicts:
        claim = verdict.claim
        word = f"{verdict.word} {claim.errata}".strip() if claim.errata else verdict.word
        measured = verdict.measured
        if (verdict.low, verdict.high) == (1, 1) and measured is not None:
            measured = bool(measured)
        table.add_row(
            f"[{COLOURS[verdict.word]}]{word}[/]",
            f"{claim.id}: {claim.claim}",
            claim.conditions,
            f"{_number(claim.value)} {claim.unit}".strip(" -"),
            _number(measured),
            _accepted(verdict.low, verdict.high),
        )
    console.print(table)
    for note in report.findings.notes:
        console.print(f"[yellow]{note}[/yellow]")
    for path in files:
        console.print(f"[dim]{path}[/dim]")


def _total(console: Console, reports: list[Report]) -> None:
    words: list[str] = [verdict.word for report in reports for verdict in report.verdicts]
    counts = ", ".join(f"{words.count(word)} {word}" for word in COLOURS if words.count(word))
    seconds = sum(report.seconds for report in reports)
    console.print(f"\n{len(reports)} experiments, {len(words)} claims: {counts}; {seconds:.0f} s")
    if any(word == "errata" for word in words):
        console.print("errata: the claim cannot hold; docs/errata.md has the proof")
