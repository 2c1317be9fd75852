"""Recorded results of the experiments: their bounds, and the figures in docs/audit.md."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from corridor.study import audit
from corridor.study.claims import Claim
from corridor.study.experiment import Experiment, ExperimentError, find
from corridor.study.readmes import result, stale, write

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
AUDIT = audit.path(FOLDER)
ALL = find(FOLDER)


def _recorded(experiment: Experiment) -> dict[str, Any]:
    found = result(experiment)
    assert found
    return found


#: Experiments with a recorded result.
RECORDED = [e for e in ALL if result(e)]


def _at(commit: str, path: Path) -> dict[str, Any] | None:
    """A JSON file as of a commit; nothing if the commit lacks it."""
    shown = subprocess.run(
        ["git", "-C", str(FOLDER.parent), "show", f"{commit}:{path.relative_to(FOLDER.parent)}"],
        capture_output=True,
        text=True,
    )
    return None if shown.returncode else dict(json.loads(shown.stdout))


def _day(commit: str) -> str:
    git = ["git", "-C", str(FOLDER), "show", "-s", "--format=%cs", commit]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def _bounds(row: Mapping[str, Any]) -> tuple[Any, ...]:
    accepted = row.get("accepted", {})
    return tuple(accepted.get(name) for name in ("min", "max", "by", "when"))


@pytest.mark.parametrize("experiment", RECORDED, ids=lambda experiment: experiment.name)
def test_bounds_are_older_than_the_runs_that_they_judge(experiment: Experiment) -> None:
    """Bounds from another day, or different from those at the recorded commit, say so."""
    recorded = _recorded(experiment)
    path = experiment.folder / "published.json"
    then = _at(recorded["commit"], path)
    if then is None:
        pytest.skip("no checkout with the commit")
    day = _day(recorded["commit"])
    before = {row["id"]: row for row in then["claims"]}
    judged = {row["id"]: row for row in recorded["claims"]}
    for row in json.loads(path.read_text())["claims"]:
        claim = Claim.of(row)
        assert _bounds(judged[claim.id]) == _bounds(row), f"{claim.id}: not what result.json has"
        if not claim.is_found:
            continue
        is_changed = _bounds(row) != _bounds(before.get(claim.id, {})) or claim.when > day
        assert bool(claim.changed) == is_changed, (
            f"{claim.id}: bounds of {claim.when}, runs of {day}: "
            f"expected accepted.changed to say {'why' if is_changed else 'nothing'}"
        )


def test_bounds_that_were_changed_after_the_runs_are_shown() -> None:
    changed = [each.id for one in ALL for each in one.claims if each.changed]
    tables = "".join((one.folder / "README.md").read_text() for one in RECORDED)
    for each in changed:
        (line,) = re.findall(rf"^\| {each}: .*", tables, re.MULTILINE)
        assert "changed after the runs" in line
    assert len(changed) == tables.count("changed after the runs")


def test_nothing_that_is_claimed_is_left_unchecked() -> None:
    assert [each.id for one in ALL for each in one.claims if each.accepted.is_open] == []
    statuses = {row["id"]: row["status"] for one in RECORDED for row in _recorded(one)["claims"]}
    assert [each for each, status in statuses.items() if status == "not checked"] == []


def test_the_audit_has_its_figures_from_what_was_recorded() -> None:
    """Statuses and intervals only stand where they are generated."""
    rows = [line for line in AUDIT.read_text().splitlines() if line.startswith("| ")]
    start = next(at for at, line in enumerate(rows) if audit.COLUMN in line)
    assert len(rows[start:]) > 30
    for line in rows[start + 1 :]:
        finding, command, made, done = (cell.strip() for cell in line.split("|")[1:-1])
        for words in (finding, command, done):
            assert not re.search(r"±|\b(holds?|differs?|cannot hold|not checked)\b", words), line
        assert made or "`pytest " in command or "`study" in command or "`make" in command, line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"KIM-047 cannot hold, [^;|]*", "KIM-047 holds, 0.97 ± 0.09 "),
        (r"\d+ holds, ", "141 holds, "),
        (r"(franc-helper-air: gain = )[^;|]*", r"\g<1>0.76, 0.74, 0.76, 0.96, 1.46"),
    ],
)
def test_an_audit_that_is_stale_is_seen(before: str, after: str, tmp_path: Path) -> None:
    folder = tmp_path / "experiments"
    shutil.copytree(FOLDER, folder)
    (tmp_path / "docs").mkdir()
    text, count = re.subn(before, after, AUDIT.read_text(), count=1)
    assert count == 1
    audit.path(folder).write_text(text)
    there = find(folder)
    assert stale(there, folder) == [audit.path(folder)]
    assert write(there, folder) == [audit.path(folder)]
    assert audit.path(folder).read_text() == AUDIT.read_text()


def test_an_audit_of_no_claim_is_an_error() -> None:
    with pytest.raises(ExperimentError, match="KIM-999: expected a claim that was recorded"):
        audit.filled("| recorded |\n|---|\n| KIM-999 |", {}, str)
    with pytest.raises(ExperimentError, match="expected a claim, or an experiment and a column"):
        audit.filled("| recorded |\n|---|\n| kim-fig99: gain |", {}, str)
