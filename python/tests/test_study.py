"""The experiments of the papers, and the command that reproduces them."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from corridor import _native
from corridor.study.claims import WRONG, Claim
from corridor.study.experiment import Experiment, ExperimentError, experiments_folder, find
from corridor.study.findings import Context, Findings
from corridor.study.main import app
from corridor.study.mutation import draw
from corridor.study.readmes import result, stale
from corridor.study.run import confirm, dumps, reproduce, runner
from corridor.study.settings import measures
from matplotlib import pyplot as plt
from typer.testing import CliRunner

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
KIM = find(FOLDER, "kim")
FRANC = find(FOLDER, "franc")
CATWOMAN = find(FOLDER, "catwoman")
ALL = find(FOLDER)
#: Experiments with a recorded result.
RECORDED = [e for e in ALL if result(e)]
#: Experiments without packet simulation.
COMPUTED = [e.name for e in ALL if not e.plans]


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_experiments_are_well(name: str, tmp_path: Path) -> None:
    arguments = ["reproduce", name, "--quick", "--json", "--experiments", str(FOLDER)]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path)])
    reports = json.loads(result.stdout)
    wrong = [claim for report in reports for claim in report["claims"] if claim["status"] in WRONG]
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
    assert (folder / "README.md").read_text().startswith("# ")
    for path in experiment.plans.values():
        runs = _native.PlanRuns(path.read_text(), str(path.parent), None)
        assert runs.points >= 1
        assert runs.replications >= 1


def test_every_published_value_is_held_against_something() -> None:
    claims = [claim.id for experiment in KIM for claim in experiment.claims]
    missing = {f"KIM-{number:03}" for number in range(1, 90)} - set(claims)
    assert not missing
    claims = [claim.id for experiment in FRANC for claim in experiment.claims]
    # The first six are parameters: crates/sim/tests/franc_claims.rs checks the presets against
    # them.
    assert {claim[:9] for claim in claims} - {"FRANC-V"} == {
        f"FRANC-{number:03}" for number in range(7, 28)
    }
    claims = [claim.id for experiment in CATWOMAN for claim in experiment.claims]
    assert not {f"CATWOMAN-{number:03}" for number in range(1, 30)} - set(claims)


def test_every_claim_that_cannot_hold_has_its_proof() -> None:
    errata = (FOLDER.parent / "docs" / "errata.md").read_text()
    for experiment in ALL:
        for claim in experiment.claims:
            if claim.errata:
                assert f"## {claim.errata}. " in errata, claim.id


@pytest.mark.parametrize("name", [e.name for e in ALL if e.plans])
def test_simulated_experiments_measure_what_they_say(name: str) -> None:
    """With such short runs, only computed measures can agree."""
    experiment = find(FOLDER, name)[0]
    # With 4 s, measures of Fig. 2 and of other networks were missing.
    is_mesh = name.startswith("betzler") and name != "betzler-fig02"
    short = {"quick_replications": 1, "quick_plan": {"duration_s": 5.0 if is_mesh else 20.0}}
    if name in ("kim-fig15", "catwoman-degraded"):
        del short["quick_plan"]
    if "claims_run" in experiment.parameters:
        run = {**experiment.parameters["claims_run"], "duration_s": 1.0}
        short = {"quick_replications": 1, "claims_run": run}
    parameters = {**experiment.parameters, **short}
    report = reproduce(Context(replace(experiment, parameters=parameters), quick=True))
    assert "missing" not in [verdict.status for verdict in report.verdicts]
    computed = {"KIM-041", "KIM-058", "KIM-059", "KIM-065"} | {
        f"KIM-{number:03}" for start in (5, 8) for number in range(start, 41, 8)
    }
    computed |= {"FRANC-007", "FRANC-008"}
    well = ("holds", "parameter", "identity")
    assert all(v.status in well for v in report.verdicts if v.claim.id in computed)
    assert report.findings.rows
    plt.close(report.findings.figure)


def test_parameters_are_read_from_the_plans_that_are_run() -> None:
    read = {e.name: measures(e) for e in ALL}
    claims = {(e.name, c.id): c for e in ALL for c in e.claims if c.reads}
    assert len(claims) == 20
    for (name, number), each in claims.items():
        assert each.judge(read[name][number]).status in ("parameter", "differs"), number
    assert read["betzler-fig04"]["BETZLER-005"] == 3
    assert read["betzler-fig02"]["BETZLER-004"] == pytest.approx(44.086)


def test_a_plan_with_another_parameter_fails(tmp_path: Path) -> None:
    source = FOLDER / "betzler-fig04"
    (tmp_path / source.name).mkdir()
    for file in ("experiment.toml", "published.json"):
        shutil.copy(source / file, tmp_path / source.name)
    retries = (source / "plan-retries.toml").read_text().replace("[1, 3, 5, 7]", "[1, 3, 5, 6]")
    (tmp_path / source.name / "plan-retries.toml").write_text(retries)
    shutil.copytree(FOLDER / "betzler-fig02", tmp_path / "betzler-fig02")
    experiment = find(tmp_path, "betzler-fig04")[0]
    claims = {each.id: each for each in experiment.claims}
    assert claims["BETZLER-017"].judge(measures(experiment)["BETZLER-017"]).status == "fails"
    rows = ({"plan": "retries", "setting": "radio.rotries"},)
    unknown = replace(claims["BETZLER-017"], reads=rows)
    with pytest.raises(ExperimentError, match=r"radio\.rotries"):
        measures(replace(experiment, claims=(unknown,)))


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
    accepted = {"min": 1.8, "max": 2.2, "by": "judgement", "why": "a tenth", "when": "2026-11-22"}
    row = {"id": "X-1", "claim": "c", "value": 2, "kind": "number", "accepted": accepted}
    return Claim.of(row | {"accepted_quick": {"min": 0, "max": 4}} | changes)


@pytest.mark.parametrize(
    ("measured", "quick", "changes", "status"),
    [
        (2.0, False, {}, "holds"),
        (3.5, False, {}, "fails"),
        (3.5, True, {}, "holds"),
        (3.5, False, {"errata": "K1"}, "cannot hold"),
        (3.5, False, {"errata": "K1", "ours": {"max": 3}}, "fails"),
        (2.0, False, {"errata": "K1"}, "unexpected"),
        (3.5, True, {"errata": "K1"}, "not checked"),
        (4.5, True, {"errata": "K1"}, "cannot hold"),
        (3.5, False, {"differs": "because", "ours": {"min": 3, "max": 4}}, "differs"),
        (4.5, False, {"differs": "because", "ours": {"min": 3, "max": 4}}, "fails"),
        (2.0, False, {"differs": "because", "ours": {"min": 3, "max": 4}}, "unexpected"),
        (2.0, False, {"kind": "parameter"}, "parameter"),
        (2.5, False, {"kind": "parameter"}, "fails"),
        (2.5, False, {"kind": "parameter", "differs": "why", "ours": {"min": 2.4}}, "differs"),
        (2.0, False, {"kind": "parameter", "differs": "why", "ours": {"min": 2.4}}, "unexpected"),
        (2.0, False, {"kind": "identity"}, "identity"),
        (2.0, False, {"accepted": {}}, "not checked"),
        (None, False, {}, "missing"),
        (float("nan"), False, {}, "missing"),
    ],
)
def test_statuses(
    measured: float | None, quick: bool, changes: dict[str, object], status: str
) -> None:
    verdict = claim(**changes).judge(measured, quick)
    assert verdict.status == status
    assert verdict.is_well == (status not in ("fails", "unexpected", "missing"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "hope"}, "kind = 'hope'"),
        ({"accepted": {"min": 1}}, "accepted.by = None"),
        ({"accepted": {"min": 1, "by": "judgement"}}, "accepted.why = nothing"),
        ({"accepted": {"min": 1, "by": "paper"}}, "accepted.when = nothing"),
        ({"errata": "K1", "differs": "because"}, "nothing beside errata"),
    ],
)
def test_bounds_that_nobody_has_chosen_are_refused(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        claim(**changes)


@pytest.mark.parametrize(
    ("kind", "accepted", "measured", "wrong"),
    [
        ("number", {"min": 1.8, "max": 2.2}, 2.0, [2.6, 2 / 1.3]),
        ("ordering", {"min": 1}, 4.0, [0.25]),
        ("trend", {"min": 0.1}, 0.5, [-0.5]),
        ("equality", {"min": 1, "max": 1}, 1.0, [0.0]),
        ("equality", {"min": 1.9, "max": 2.1}, 2.0, [2.2, 1.8]),
        ("equality", {"max": 0.01}, 0.004, [0.024]),
        ("parameter", {"min": 2, "max": 2}, 2.0, []),
    ],
)
def test_wrong_results_are_seen(
    kind: str, accepted: dict[str, float], measured: float, wrong: list[float]
) -> None:
    chosen = {**accepted, "by": "paper", "when": "2026-11-22"}
    of_kind = claim(kind=kind, accepted=chosen)
    assert of_kind.wrong(measured) == pytest.approx(wrong)
    assert all(of_kind.judge(each).status == "fails" for each in wrong)


@pytest.mark.skipif(not RECORDED, reason="nothing was recorded")
def test_enough_was_recorded_to_draw_from() -> None:
    assert len({(t.experiment, t.claim.id) for t in draw(ALL, seed=2014, count=40)}) == 40


@pytest.mark.parametrize("experiment", RECORDED, ids=lambda experiment: experiment.name)
def test_every_check_can_fail(experiment: Experiment) -> None:
    """All claims, as ``corridor-study mutate`` draws some of them."""
    drawn = draw([experiment], seed=2014, count=1000)
    unseen = [f"{t.claim.id}: {t.measured} made {t.wrong}" for t in drawn if not t.is_well]
    assert not unseen


def test_what_differs_says_what_ours_is() -> None:
    for experiment in ALL:
        for each in experiment.claims:
            if each.differs or each.errata:
                assert not each.ours.is_open, each.id


def test_readmes_have_the_recorded_figures() -> None:
    assert stale(ALL, FOLDER) == []


@pytest.mark.parametrize("experiment", RECORDED, ids=lambda experiment: experiment.name)
def test_recorded_results_are_judged_by_the_claims_of_now(experiment: Experiment) -> None:
    recorded = result(experiment)
    assert recorded
    assert not recorded["quick"]
    rows = {row["id"]: row for row in recorded["claims"]}
    assert list(rows) == [each.id for each in experiment.claims]
    for each in experiment.claims:
        verdict = each.judge(rows[each.id]["measured"], half_width=rows[each.id]["half_width"])
        assert verdict.is_well, each.id
        assert verdict.status == rows[each.id]["status"], each.id


def test_recorded_results_are_of_commits_before_this_one() -> None:
    git = ["git", "-C", str(FOLDER)]
    if subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True).returncode:
        pytest.skip("no checkout with git")
    for commit in {recorded["commit"] for each in ALL if (recorded := result(each))}:
        ancestor = [*git, "merge-base", "--is-ancestor", commit, "HEAD"]
        assert subprocess.run(ancestor).returncode == 0, commit


def _drawn(context: Context) -> Findings:
    """The mean of one number per replication: 0.4, plus or minus 1."""
    numbers = np.random.default_rng(5).normal(0.4, 1, context.replications)
    if context.without is not None:
        rest, divisor = context.without
        numbers = np.delete(numbers, np.arange(rest, len(numbers), divisor))
    return Findings({"X-1": float(numbers.mean())}, [], plt.figure())


@pytest.mark.parametrize(("most", "words"), [(20, "uncertain with 20"), (640, "all verdicts")])
def test_replications_are_doubled_until_verdicts_are_certain(
    most: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corridor.study.run.runner", lambda _: _drawn)
    above = claim(accepted={"min": 0, "by": "paper", "when": "2026-11-22"})
    experiment = Experiment("x", "x", "x.x", {"replications": 10}, {}, (above,))
    report = confirm(Context(experiment, quick=False), most)
    (verdict,) = report.verdicts
    assert report.findings.notes[-1].startswith(words)
    assert verdict.is_certain == (words == "all verdicts")
    assert verdict.half_width is not None
    if verdict.is_certain:
        assert 20 < report.replications <= most
        assert float(verdict.measured or 0) > verdict.half_width


def test_a_failing_claim_ends_the_command_with_1(tmp_path: Path) -> None:
    folder = tmp_path / "kim-fig05"
    folder.mkdir()
    source = FOLDER / "kim-fig05"
    (folder / "experiment.toml").write_text((source / "experiment.toml").read_text())
    published = json.loads((source / "published.json").read_text())
    published["claims"][0]["accepted"]["min"] = 61
    (folder / "published.json").write_text(json.dumps(published))
    arguments = ["reproduce", "kim-fig05", "--experiments", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert "fails" in result.stdout


def test_a_measure_that_no_claim_asks_for_is_an_error() -> None:
    experiment = find(FOLDER, "kim-fig05")[0]
    without = replace(experiment, claims=experiment.claims[1:])
    with pytest.raises(ExperimentError, match="no claim KIM-050"):
        reproduce(Context(without, quick=True))


def test_json_has_no_numbers_that_are_none() -> None:
    assert json.loads(dumps({"a": [float("nan"), True, 1.5]})) == {"a": [None, True, 1.5]}
