"""The experiments of the papers, and the command that repeats them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from corridor import _native
from corridor.study.claims import Claim
from corridor.study.experiment import ExperimentError, experiments_folder, find
from corridor.study.findings import Context
from corridor.study.main import app
from corridor.study.run import dumps, reproduce, runner
from matplotlib import pyplot as plt
from typer.testing import CliRunner

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
KIM = find(FOLDER, "kim")
FRANC = find(FOLDER, "franc")
ALL = find(FOLDER)
#: Experiments that take no simulation of packets.
COMPUTED = [e.name for e in ALL if not e.plans]


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_experiments_are_well(name: str, tmp_path: Path) -> None:
    arguments = ["reproduce", name, "--quick", "--json", "--experiments", str(FOLDER)]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    reports = json.loads(result.stdout)
    wrong = [
        claim
        for report in reports
        for claim in report["claims"]
        if claim["verdict"] not in ("pass", "errata", "shown")
    ]
    assert not wrong
    assert result.exit_code == 0
    for report in reports:
        place = tmp_path / report["experiment"]
        assert json.loads((place / "result.json").read_text())["claims"] == report["claims"]
        assert (place / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.name)
def test_experiments_are_complete(experiment: object) -> None:
    assert isinstance(experiment, type(KIM[0]))
    assert callable(runner(experiment))
    folder = FOLDER / experiment.name
    assert len((folder / "README.md").read_text().split("\n\n")) == 2
    for path in experiment.plans.values():
        points, replications = _native.plan_points(path.read_text(), str(path.parent), None)
        assert points >= 1
        assert replications >= 1


def test_every_published_value_is_held_against_something() -> None:
    claims = [claim.id for experiment in KIM for claim in experiment.claims]
    missing = {f"KIM-{number:03}" for number in range(1, 90)} - set(claims)
    assert not missing
    claims = [claim.id for experiment in FRANC for claim in experiment.claims]
    # The first six are parameters: crates/sim/tests/franc_claims.rs holds the presets against them.
    assert sorted(claims) == [f"FRANC-{number:03}" for number in range(7, 28)]


def test_every_claim_that_cannot_hold_has_its_proof() -> None:
    errata = (FOLDER.parent / "docs" / "errata.md").read_text()
    for experiment in ALL:
        for claim in experiment.claims:
            if claim.errata:
                assert f"## {claim.errata}. " in errata, claim.id


@pytest.mark.parametrize("name", [e.name for e in ALL if e.plans])
def test_simulated_experiments_measure_what_they_say(name: str) -> None:
    """With runs so short that only what is computed can agree."""
    experiment = find(FOLDER, name)[0]
    short = {"quick_replications": 1, "quick_plan": {"duration_s": 20.0}}
    if name == "kim-fig15":
        del short["quick_plan"]
    if "quick_run" in experiment.parameters:
        run = {**experiment.parameters["quick_run"], "duration_s": 1.0}
        short = {"quick_replications": 1, "quick_run": run}
    parameters = {**experiment.parameters, **short}
    report = reproduce(Context(replace(experiment, parameters=parameters), quick=True))
    assert "missing" not in [verdict.word for verdict in report.verdicts]
    computed = {"KIM-041", "KIM-058", "KIM-059", "KIM-065"} | {
        f"KIM-{number:03}" for start in (5, 8) for number in range(start, 41, 8)
    }
    computed |= {"FRANC-007", "FRANC-008"}
    assert all(v.word == "pass" for v in report.verdicts if v.claim.id in computed)
    assert report.findings.rows
    plt.close(report.findings.figure)


def test_the_list_names_them_all() -> None:
    result = CliRunner().invoke(app, ["list", "--experiments", str(FOLDER)])
    assert result.exit_code == 0
    assert all(experiment.name in result.stdout for experiment in ALL)


def test_a_pattern_without_experiments_is_an_error() -> None:
    result = CliRunner().invoke(app, ["reproduce", "nobody", "--experiments", str(FOLDER)])
    assert result.exit_code == 2


def test_a_folder_without_experiments_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="expected a folder"):
        experiments_folder(tmp_path / "nowhere")


def claim(**changes: object) -> Claim:
    row = {"id": "X-1", "claim": "c", "value": 2, "accepted": {"min": 1, "max": 3}}
    return Claim.of(row | {"accepted_quick": {"min": 0, "max": 4}} | changes)


@pytest.mark.parametrize(
    ("measured", "quick", "errata", "word"),
    [
        (2.0, False, "", "pass"),
        (3.5, False, "", "fail"),
        (3.5, True, "", "pass"),
        (3.5, False, "K1", "errata"),
        (2.0, False, "K1", "odd"),
        (None, False, "", "missing"),
        (float("nan"), False, "", "missing"),
        (True, False, "", "pass"),
        (False, False, "", "fail"),
    ],
)
def test_verdicts(measured: float | None, quick: bool, errata: str, word: str) -> None:
    verdict = claim(errata=errata).judge(measured, quick)
    assert verdict.word == word
    assert verdict.is_well == (word in ("pass", "errata"))


def test_a_claim_without_range_is_only_shown() -> None:
    assert claim(accepted={}, accepted_quick={}).judge(9.0, quick=False).word == "shown"


def test_a_failing_claim_ends_the_command_with_1(tmp_path: Path) -> None:
    folder = tmp_path / "kim-fig05"
    folder.mkdir()
    source = FOLDER / "kim-fig05"
    (folder / "experiment.toml").write_text((source / "experiment.toml").read_text())
    published = json.loads((source / "published.json").read_text())
    published["claims"][0]["accepted"] = {"min": 61}
    (folder / "published.json").write_text(json.dumps(published))
    arguments = ["reproduce", "kim-fig05", "--experiments", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "fail" in result.stdout


def test_a_measure_that_no_claim_asks_for_is_an_error() -> None:
    experiment = find(FOLDER, "kim-fig05")[0]
    without = replace(experiment, claims=experiment.claims[1:])
    with pytest.raises(ExperimentError, match="no claim KIM-050"):
        reproduce(Context(without, quick=True))


def test_json_has_no_numbers_that_are_none() -> None:
    assert json.loads(dumps({"a": [float("nan"), True, 1.5]})) == {"a": [None, True, 1.5]}
