"""The command ``corridor-study``: it finds experiments from anywhere, and fits a terminal."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import corridor
import pytest
from corridor._progress import Bar
from corridor.study import tables
from corridor.study.claims import Claim
from corridor.study.experiment import ExperimentError, errata, experiments_folder, find
from corridor.study.main import app
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

CHECKOUT = Path(__file__).resolve().parents[2] / "experiments"
SHIPPED = Path(str(corridor.__file__)).parent / "experiments"
COMPUTED = [e.name for e in find(CHECKOUT) if not e.plans]


@pytest.fixture
def _anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CORRIDOR_EXPERIMENTS", raising=False)


def test_the_package_has_all_files_of_the_experiments() -> None:
    def files(folder: Path) -> dict[str, bytes]:
        paths = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}

    proofs = CHECKOUT.parent / "docs" / "errata.md"
    assert files(SHIPPED) == {**files(CHECKOUT), "errata.md": proofs.read_bytes()}


def test_every_plan_that_is_shipped_is_among_them() -> None:
    for experiment in find(SHIPPED):
        for plan in experiment.plans.values():
            assert SHIPPED.resolve() in plan.resolve().parents
            assert plan.is_file()


@pytest.mark.usefixtures("_anywhere")
def test_experiments_are_found_anywhere() -> None:
    assert experiments_folder() == SHIPPED.resolve()
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in COMPUTED)


@pytest.mark.usefixtures("_anywhere")
def test_the_nearest_experiments_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    (inner / "experiments").mkdir(parents=True)  # Somebody else's.
    own = tmp_path / "experiments" / "mine"
    own.mkdir(parents=True)
    (own / "experiment.toml").touch()
    monkeypatch.chdir(inner)
    assert experiments_folder() == tmp_path / "experiments"
    monkeypatch.setenv("CORRIDOR_EXPERIMENTS", str(CHECKOUT))
    assert experiments_folder() == CHECKOUT


def test_a_place_that_cannot_be_written_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(app, ["reproduce", "kim", "--out", str(tmp_path / "file" / "out")])
    assert result.exit_code == 2
    assert "corridor-study: " in result.stderr
    assert "file" in result.stderr
    assert not result.stdout


def test_the_command_has_a_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.startswith(f"corridor-study {corridor.__version__}, commit ")
    assert result.exit_code == 0


@pytest.mark.parametrize("folder", [CHECKOUT, SHIPPED])
def test_proofs_are_there(folder: Path) -> None:
    assert "## K12. " in errata(folder).read_text()


def test_names_that_are_near_are_suggested() -> None:
    with pytest.raises(ExperimentError, match=r"pattern = kim-figg05: .*did you mean kim-fig05\?"):
        find(CHECKOUT, "kim-figg05")


def test_a_folder_without_experiments_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"expected folders with experiment\.toml"):
        find(tmp_path)


@pytest.mark.usefixtures("_anywhere")
def test_an_installed_command_reproduces_in_any_folder() -> None:
    command = Path(sys.executable).with_name("corridor-study")
    arguments = [command, "reproduce", "kim-fig05", "--quick"]
    environment = os.environ | {"COLUMNS": "80", "MPLBACKEND": "Agg"}
    result = subprocess.run(
        [str(each) for each in arguments], capture_output=True, text=True, check=True,
        env=environment, timeout=120,
    )  # fmt: skip
    assert "1 experiments, " in result.stdout
    assert not result.stderr


@pytest.mark.parametrize("arguments", [["list"], *(["reproduce", n, "--quick"] for n in COMPUTED)])
def test_tables_fit_80_columns(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, [*arguments, "--experiments", str(CHECKOUT)])
    # File names are not broken across lines.
    lines = [line for line in result.stdout.splitlines() if not line.startswith("/")]
    assert not [line for line in lines if cell_len(line.rstrip()) > 80]
    # No measure or bound is cut off; only conditions are.
    assert not [line for line in lines if "…" in line and "pass" in line]


def test_numbers_are_whole_in_narrow_tables() -> None:
    rows = [
        {"mix": "a", "q": q, "B": b, **{f"what is measured {i}": 1234.5 + i for i in range(12)}}
        for q in (0.01, 0.02) for b in (0.5, 1.0)
    ]  # fmt: skip
    console = Console(width=50, file=io.StringIO())
    parts = tables.of_rows(rows, 50)
    for part in parts:
        console.print(part)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 50
    assert "…" not in text
    assert all(text.count(f"{1234.5 + i:.5g}") == 4 for i in range(12))
    # Each part identifies its rows.
    assert all([str(c.header) for c in part.columns][:3] == ["mix", "q", "B"] for part in parts)


def test_words_of_verdicts_are_not_cut() -> None:
    row = {"id": "X-1", "claim": "a claim " * 12, "value": "(10,50),(30,30),(50,10)", "unit": "-"}
    accepted = {"min": 0.5, "by": "paper", "when": "2026-11-22"}
    more = {"kind": "number", "conditions": "c" * 200, "accepted": accepted, "errata": "K12"}
    claim = Claim.of(row | more)
    console = Console(width=80, file=io.StringIO())
    console.print(tables.of_verdicts([claim.judge(0.123456, quick=False)]))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "cannot hold" in text
    assert "K12" in text
    assert "0.12346" in text
    assert "(10,50),(30,30" in text
    assert "),(50,10)" in text
    assert text.count("claim") >= 12
    assert max(map(len, text.splitlines())) <= 80


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bar_is_shown_on_a_terminal_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Bar("first", after_s=0) as bar:
        bar.timer.join()
        bar.told("second", 3, 7)
    assert "3/7" in terminal.getvalue()
    assert "second" in terminal.getvalue()


def test_no_bar_is_shown_where_stderr_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    with Bar("first", after_s=0) as bar:
        bar.timer.join()
        bar.told("second", 3, 7)
    assert not file.getvalue()


def test_no_bar_is_shown_for_what_is_soon_over(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Bar("runs", after_s=1000) as bar:
        bar.told("runs", 1, 1)
    assert not terminal.getvalue()


@pytest.mark.usefixtures("_anywhere")
def test_a_cluster_simulates_an_experiment_to_the_same_result(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    ask = ["reproduce", "franc-fig10", "--quick", "--out"]
    here = CliRunner().invoke(app, [*ask, str(tmp_path / "here")])
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as cluster:
        asked = [*ask, str(tmp_path / "there"), "--cluster", cluster.scheduler_address]
        there = CliRunner().invoke(app, asked)
    assert (here.exit_code, there.exit_code) == (0, 0), (there.output, there.exception)
    ours, theirs = (
        json.loads((tmp_path / name / "franc-fig10" / "result.json").read_text())
        for name in ("here", "there")
    )
    assert ours["rows"] == theirs["rows"]


def test_a_cluster_that_is_not_there_is_said() -> None:
    pytest.importorskip("distributed")
    asked = ["reproduce", "kim-fig05", "--quick", "--cluster", "nonsense"]
    assert CliRunner().invoke(app, asked).exit_code == 2
