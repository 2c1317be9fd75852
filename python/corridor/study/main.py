"""The command ``corridor-study``."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import matplotlib as mpl
import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from corridor import COMMIT, __version__
from corridor._progress import Bar
from corridor.advise.command import advise_network
from corridor.study import tables
from corridor.study.experiment import Experiment, ExperimentError, errata, experiments_folder, find
from corridor.study.findings import Bench, Context, Engine, Report
from corridor.study.mutation import draw
from corridor.study.readmes import stale, write
from corridor.study.run import confirm, dumps, leave, record, reproduce

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

T = TypeVar("T")
#: Default maximum number of replications for confirmation.
CONFIRM_MOST = 80
Folder = Annotated[
    Path | None,
    typer.Option(
        "--experiments",
        help="Folder of the experiments (default: the nearest `experiments`, or the package's own)",
    ),
]


Patterns = Annotated[
    list[str] | None, typer.Argument(help="Beginnings of names, or patterns (default: all)")
]


def _client(address: str) -> Any:
    """Return a client of a Dask cluster."""
    try:
        import distributed
    except ImportError:
        raise ExperimentError(
            "--cluster: expected Dask's package distributed: pip install 'corridor[cluster]'"
        ) from None
    try:
        client: Any = distributed.Client
        return client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ExperimentError(f"--cluster {address}: {error}: expected a scheduler") from None


def _version(wanted: bool) -> None:
    if wanted:
        print(f"corridor-study {__version__}, commit {COMMIT}")
        raise typer.Exit


@app.callback()
def _command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version"),
    ] = False,
) -> None:
    """Reproduce the papers' experiments, and compare the results with what was published."""


@app.command("list")
def list_experiments(
    patterns: Patterns = None,
    experiments: Folder = None,
) -> None:
    """List the available experiments."""
    console = Console()
    folder = _guarded(lambda: experiments_folder(experiments))
    chosen = _guarded(lambda: find(folder, *patterns or ()))
    console.print(tables.of_experiments(chosen))
    console.print()
    console.print(Text(str(folder), style="dim"), soft_wrap=True)


@app.command("reproduce")
def reproduce_experiments(
    command: typer.Context,
    patterns: Patterns = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer replications, wider tolerances, same checks")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Leave result.json and plot.png of each in this folder")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Threads (default: as many as processors)")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Simulate on a Dask cluster, as tcp://HOST:8786"),
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
        typer.Option(help="In the lab: the program (default: CORRIDOR_BIN, or that of the path)"),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--replications", min=1, help="Replications of a point (default: all of them)"
        ),
    ] = None,
    confirmed: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Double replications until no bound lies within an interval, up to --replications "
            f"({CONFIRM_MOST}): hours",
        ),
    ] = False,
    only_claims: Annotated[
        bool, typer.Option("--claims", help="Only the runs that claims are about: plain pictures")
    ] = False,
    recorded: Annotated[
        bool,
        typer.Option("--record", help="Write result.json, with the commit, into the experiments"),
    ] = False,
) -> None:
    """Reproduce experiments; exits with 1 if a claim fails, 2 if something cannot be read."""
    mpl.use("Agg")
    if recorded and (quick or engine != "sim"):
        raise typer.BadParameter("--record: expected a full run in virtual time")
    if confirmed and (quick or recorded or engine != "sim"):
        raise typer.BadParameter("--confirm: expected a full run in virtual time, not recorded")
    folder = _guarded(lambda: experiments_folder(experiments))
    chosen = _guarded(lambda: _of_engine(find(folder, *patterns or ()), engine))
    if out:
        # Fail before hours of work, not after.
        _guarded(partial(out.mkdir, parents=True, exist_ok=True))
    bench = Bench(corridor, rows, out)
    client = _guarded(partial(_client, cluster)) if cluster else None
    if client is not None:
        command.call_on_close(client.close)
    console, reports = Console(), []
    cache: dict[Any, Any] = {}
    for place, experiment in enumerate(chosen, 1):
        name = f"{experiment.name} ({place} of {len(chosen)})"
        with Bar(name) as bar:
            told = partial(_tell, bar, name)
            context = Context(
                experiment, quick, jobs, told, cache, engine, bench,
                only_claims=only_claims, most=None if confirmed else most, executor=client,
            )  # fmt: skip
            act = partial(confirm, most=most or CONFIRM_MOST) if confirmed else reproduce
            report = _guarded(partial(act, context))
        reports.append(report)
        files = _guarded(partial(leave, report, out)) if out else []
        if recorded:
            files.append(_guarded(partial(record, report)))
        if not as_json:
            _print(console, report, files)
    if as_json:
        print(dumps([report.as_json() for report in reports]))
    else:
        _total(console, reports, errata(folder))
    if not all(report.is_well for report in reports):
        raise typer.Exit(1)


app.command("advise")(advise_network)


@app.command("tables")
def write_tables(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; end with 1 if one is stale")
    ] = False,
    experiments: Folder = None,
) -> None:
    """Write recorded results into the experiments' READMEs, and into docs/audit.md."""
    folder = _guarded(lambda: experiments_folder(experiments))
    act = stale if check else write
    changed = _guarded(lambda: act(find(folder), folder))
    for path in changed:
        print(f"{path}: {'not as recorded' if check else 'written'}")
    if check and changed:
        raise typer.Exit(1)


@app.command("changes")
def changes(
    patterns: Patterns = None,
    check: Annotated[
        bool, typer.Option("--check", help="End with 1 unless all are of full runs of this code")
    ] = False,
    experiments: Folder = None,
) -> None:
    """List recorded results that depend on code changed since they were recorded."""
    from corridor.report.since import since

    folder = _guarded(lambda: experiments_folder(experiments))
    found = {each.name: since(each) for each in _guarded(lambda: find(folder, *patterns or ()))}
    for name, each in found.items():
        print(f"{name}: {each.words}")
    if check and not all(each.is_well for each in found.values()):
        raise typer.Exit(1)


@app.command("report")
def report(
    out: Annotated[Path, typer.Option(help="Where the site goes: OUT/site/index.html")] = Path(
        "out/report"
    ),
    experiments: Folder = None,
) -> None:
    """Build the site from a checkout: all figures and claims, measurements, explanations.

    Uses recorded results only: nothing is simulated.
    """
    from corridor.report.site import build

    mpl.use("Agg")
    folder = _guarded(lambda: experiments_folder(experiments))
    with Bar("report") as bar:
        page = _guarded(lambda: build(folder, out, bar.told))
    print(page)


@app.command("keep")
def keep_measurement(
    files: Annotated[list[Path], typer.Argument(help="What benchmarks left: out/bench/NAME.json")],
    note: Annotated[str, typer.Option(help="What else there is to know of the run")] = "",
    experiments: Folder = None,
) -> None:
    """Add measurements to the site's committed set, with commit and machine."""
    from corridor.report.records import keep

    folder = _guarded(lambda: experiments_folder(experiments))
    for file in files:
        print(_guarded(partial(keep, file, folder.resolve().parent, note)))


@app.command("mutate")
def mutate(
    seed: Annotated[int, typer.Option(help="Which claims are drawn")] = 2014,
    count: Annotated[int, typer.Option(min=1, help="How many are drawn")] = 40,
    experiments: Folder = None,
) -> None:
    """Falsify recorded results, and see the checks fail; exits with 1 if one does not."""
    trials = _guarded(lambda: draw(find(experiments_folder(experiments)), seed, count))
    console = Console()
    console.print(tables.of_trials(trials))
    bad = [trial for trial in trials if not trial.is_well]
    claims = len({(trial.experiment, trial.claim.id) for trial in trials})
    console.print(f"seed {seed}: {claims} claims, {len(trials)} wrong results, {len(bad)} not seen")
    if bad:
        raise typer.Exit(1)


def _tell(bar: Bar, name: str, under_way: str, done: int, total: int) -> None:
    """Show the progress of an experiment's simulation."""
    own = name.startswith(under_way)
    bar.told(name if own else f"{name}: {under_way}", done, total)


def _of_engine(experiments: list[Experiment], engine: Engine) -> list[Experiment]:
    """Return the experiments that an engine can run."""
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


def _print(console: Console, report: Report, files: list[Path]) -> None:
    experiment = report.experiment
    console.print(f"\n[bold]{experiment.name}[/bold]: {escape(experiment.title)}")
    for table in tables.of_rows(report.findings.rows, console.width):
        console.print(table)
        console.print()
    if report.verdicts:
        console.print(tables.of_verdicts(report.verdicts))
    for verdict in report.verdicts:
        if verdict.status == "differs":
            console.print(Text(f"{verdict.claim.id} differs: {verdict.cause}", style="yellow"))
    for note in report.findings.notes:
        console.print(Text(note, style="yellow"))
    for path in files:
        console.print(Text(str(path), style="dim"), soft_wrap=True)


def _total(console: Console, reports: list[Report], proofs: Path) -> None:
    words = [verdict.status for report in reports for verdict in report.verdicts]
    known = tables.COLOURS
    counts = ", ".join(f"{words.count(word)} {word}" for word in known if words.count(word))
    seconds = sum(report.seconds for report in reports)
    console.print(f"\n{len(reports)} experiments, {len(words)} claims: {counts}; {seconds:.0f} s")
    if "cannot hold" in words:
        console.print("what cannot hold has its proof in")
        console.print(Text(str(proofs)), soft_wrap=True)
