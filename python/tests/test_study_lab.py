"""FRANC's TCP figures with rows like the real-time lab's, which tests lack privileges for."""

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from corridor.study import lab
from corridor.study.experiment import find
from corridor.study.findings import Bench, Context
from corridor.study.main import app
from corridor.study.run import reproduce
from matplotlib import pyplot as plt
from typer.testing import CliRunner

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
FIGURES = [e for e in find(FOLDER, "franc") if "lab" in e.plans]
SCENARIO = FIGURES[0].plan("lab")


def row(path: str, policy: str, offered_bps: float, e3: float) -> dict[str, Any]:
    """Return a row like the lab's: a maximum throughput, and delays that rise beyond it."""
    most = {"-": 7e6 * (1 - 4.5 * e3), "paper": 4.5e6, "window": 5.5e6}[policy.split()[0]]
    most /= 1.5 if path == "coded+helper" else 1
    backlog_s = 10 * max(0.0, offered_bps / most - 1)
    return {
        "path": path, "policy": policy, "congestion": "cubic", "offered_bps": offered_bps,
        "e3": e3, "goodput_bps": min(offered_bps, most), "delay_p50_s": 0.02 + backlog_s,
        "delay_p95_s": 0.05 + backlog_s, "air_bytes_per_byte": 1.5, "valid": True,
    }  # fmt: skip


def rows() -> list[dict[str, Any]]:
    """Return a row for each point of the scenario."""
    many = []
    for run in tomllib.loads(SCENARIO.read_text())["run"]:
        paths = run["path"] if isinstance(run["path"], list) else [run["path"]]
        codings = run["coding"] if isinstance(run["coding"], list) else [run["coding"]]
        policies = [c["preset"] + " half_duplex=true" * (len(c) > 1) for c in codings]
        losses = run["e3"] if isinstance(run["e3"], list) else [run["e3"]]
        if "offered_bps" not in run:
            many += [always(name) for name in run["congestion"]]
            continue
        for path in paths:
            for policy in ["-"] if path == "plain" else policies:
                many += [row(path, policy, bps, e3) for bps in run["offered_bps"] for e3 in losses]
    return [each | {"point": point, "replication": 0} for point, each in enumerate(many)]


def always(congestion: str) -> dict[str, Any]:
    """Return the rows the lab would give for an always-backlogged application."""
    delay_s = {"cubic": 0.2, "vegas": 0.05}[congestion]
    load: dict[str, Any] = {"congestion": congestion, "offered_bps": None, "delay_p50_s": delay_s}
    return row("coded", "paper", 8e6, 0.0) | load


@pytest.mark.parametrize("has_vegas", [True, False])
def test_vegas_is_judged_where_the_kernel_has_it(tmp_path: Path, has_vegas: bool) -> None:
    many = [each for each in rows() if has_vegas or each["congestion"] != "vegas"]
    bench = Bench(rows=left(tmp_path, many))
    report = reproduce(Context(FIGURES[0], False, engine="lab", bench=bench))
    plt.close(report.findings.figure)
    measured = {v.claim.id: v.measured for v in report.verdicts}
    assert measured.get("FRANC-V") == (pytest.approx(4) if has_vegas else None)
    said = [note for note in report.findings.notes if note.startswith("absent: Vegas")]
    assert bool(said) != has_vegas


def left(folder: Path, many: list[dict[str, Any]]) -> Path:
    """Save rows as the lab does."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in many))
    return path


def test_every_tcp_figure_has_its_runs_in_the_lab(tmp_path: Path) -> None:
    assert [e.name for e in FIGURES] == [f"franc-fig{number}" for number in (13, 14, 15, 16)]
    bench = Bench(rows=left(tmp_path, rows()))
    for experiment in FIGURES:
        report = reproduce(Context(experiment, False, engine="lab", bench=bench))
        assert report.as_json()["engine"] == "lab"
        statuses = {v.claim.id: v.status for v in report.verdicts}
        assert "missing" not in statuses.values()
        if experiment.name == "franc-fig14":
            assert (statuses["FRANC-018"], statuses["FRANC-024"]) == ("holds", "holds")
        schemes = {found["scheme"] for found in report.findings.rows}
        assert {"plain", "coded", "window"} <= schemes
        plt.close(report.findings.figure)


def test_where_window_mode_is_behind_is_said(tmp_path: Path) -> None:
    many = rows()
    for each in many:
        if each["policy"].startswith("window") and each["offered_bps"] == 2e6:
            each["delay_p95_s"] = 0.5
        if each["policy"].startswith("window") and each["offered_bps"] == 4e6:
            each["goodput_bps"] = 3e6
    bench = Bench(rows=left(tmp_path, many))
    report = reproduce(Context(FIGURES[2], False, engine="lab", bench=bench))
    assert report.findings.notes == [
        "window mode behind coded at 20 % loss, 2 Mbit/s offered: "
        "delay 500 ms against 50 ms (95th percentile)",
        "window mode behind coded at 20 % loss, 4 Mbit/s offered: 3.00 Mbit/s against 4.00",
    ]
    plt.close(report.findings.figure)


def program(folder: Path, text: str) -> Path:
    """Create a stand-in for the program ``corridor``."""
    path = folder / "corridor"
    path.write_text(f"#!{sys.executable}\nimport json, sys\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_lab_is_run_with_the_scenario_and_its_rows_are_left(tmp_path: Path) -> None:
    """The stand-in saves its arguments, and rows for all points of the full scenario."""
    known = left(tmp_path, rows())
    corridor = program(
        tmp_path,
        f"open({str(tmp_path / 'told')!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
        f"scenario = open(sys.argv[3]).read()\n"
        f"open({str(tmp_path / 'scenario')!r}, 'w').write(scenario)\n"
        f"print(open({str(known)!r}).read(), end='')\nsys.exit(1)",
    )
    done: list[tuple[str, int, int]] = []
    context = Context(
        FIGURES[0], True, engine="lab", bench=Bench(corridor, out=tmp_path / "out"),
        progress=lambda name, made, total: done.append((name, made, total)),
    )  # fmt: skip
    report = reproduce(context)
    plt.close(report.findings.figure)
    told = json.loads((tmp_path / "told").read_text())
    assert told[:2] == ["lab", "run"]
    assert told[3:] == ["--json", "--repeats", "1", "--out", str(tmp_path / "out/franc-tcp.jsonl")]
    shortened = tomllib.loads((tmp_path / "scenario").read_text())
    assert {run["duration_s"] for run in shortened["run"]} == {5.0}
    assert done[-1][0] == "franc-tcp"
    # The shortened scenario: 3 loads x 3 losses x 3 ways, 3 loads x 3 + 3 at 10 %, and 2 with data
    # always available.
    assert done[-1][1:] == (len(rows()), 41)


def test_a_lab_that_cannot_be_had_says_so(tmp_path: Path) -> None:
    corridor = program(tmp_path, "sys.stderr.write('not permitted')\nsys.exit(77)")
    with pytest.raises(lab.LabError, match="ended with 77: not permitted"):
        lab.run(corridor, "")
    with pytest.raises(lab.LabError, match="expected the program"):
        lab.program(tmp_path / "nothing")
    arguments = ["reproduce", "franc-fig13", "--engine", "lab", "--experiments", str(FOLDER)]
    result = CliRunner().invoke(app, [*arguments, "--corridor", str(corridor)])
    assert result.exit_code == 2


def test_rows_that_cannot_be_trusted_are_left_out(tmp_path: Path) -> None:
    late = [{**each, "valid": False} for each in rows()]
    bench = Bench(rows=left(tmp_path, late))
    with pytest.raises(lab.LabError, match="none that can be trusted"):
        reproduce(Context(FIGURES[0], False, engine="lab", bench=bench))


def test_only_what_has_a_scenario_is_run_in_the_lab() -> None:
    arguments = ["reproduce", "kim", "--engine", "lab", "--experiments", str(FOLDER)]
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_two_points_of_the_same_load_are_an_error(tmp_path: Path) -> None:
    many = rows()
    twice = [*many, {**many[0], "policy": "-", "path": "plain", "congestion": "cubic"}]
    assert lab.dataset(twice).sizes == {"point": len(many), "replication": 2}
    experiment = FIGURES[0]
    bench = Bench(rows=left(tmp_path, twice))
    plt.close(reproduce(Context(experiment, False, engine="lab", bench=bench)).findings.figure)
    other = [*many, {**many[0], "policy": "window other=1", "path": "coded"}]
    other += [{**many[0], "policy": "window", "path": "coded"}]
    context = Context(experiment, False, engine="lab", bench=Bench(rows=left(tmp_path, other)))
    with pytest.raises(ValueError, match="several points"):
        reproduce(context)
