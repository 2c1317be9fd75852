"""Fills in the figures of docs/audit.md from recorded results, as in the READMEs' tables."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.mutation import draw

#: Papers it covers, as prefixes of experiment names.
PAPERS = ("franc", "kim")
#: Seed and count of the mutation example in its text.
SEED, COUNT = 2014, 40
#: Heading of the generated column.
COLUMN = "recorded"
#: What an entry of that column refers to: a claim, or a column of an experiment's rows.
CLAIM = re.compile(r"[A-Z]+-[A-Z0-9-]+")
ROWS = re.compile(r"([a-z]+-[\w-]+): ([^=]+?)(?: = .*)?")
#: Statuses to count, in the order of the text.
STATUSES = ("holds", "differs", "cannot hold", "parameter", "identity", "not checked")


def path(folder: Path) -> Path:
    """Return the path of the audit for a folder of experiments; only a checkout has it."""
    return folder.parent / "docs" / "audit.md"


def totals(experiments: Iterable[Experiment], recorded: Mapping[str, Mapping[str, Any]]) -> str:
    """Return counts of claims by status, of replications, and of mutations detected.

    Parameters
    ----------
    experiments
        All experiments.
    recorded
        Their results, by name, where there are any.
    """
    chosen = {name: each for name, each in recorded.items() if name.startswith(PAPERS)}
    statuses = Counter(row["status"] for each in chosen.values() for row in each["claims"])
    counts = ", ".join(f"{statuses[name]} {name}" for name in STATUSES if statuses[name])
    runs: dict[int, list[str]] = {}
    for name, each in chosen.items():
        if each["replications"]:
            runs.setdefault(each["replications"], []).append(name)
    lines = [f"Of {statuses.total()} claims of FRANC and KIM: {counts}.", ""]
    lines += [f"- {count} runs of each point: {', '.join(runs[count])}" for count in sorted(runs)]
    there = [each for each in experiments if each.name in recorded]
    some, every = draw(there, SEED, COUNT), draw(there, SEED, 10**6)
    return "\n".join(
        [
            *lines,
            "",
            f"`study mutate --seed {SEED} --count {COUNT}` makes {len(some)} wrong results of "
            f"{_claims(some)} claims, the tests {len(every)} of all {_claims(every)} of the four "
            f"papers that can be found otherwise; unseen and unsaid: "
            f"{sum(not trial.is_well for trial in every)}.",
        ]
    )


def _claims(trials: Iterable[Any]) -> int:
    return len({(trial.experiment, trial.claim.id) for trial in trials})


def filled(text: str, recorded: Mapping[str, Mapping[str, Any]], ours: Any) -> str:
    """Return the text with its table's generated column filled in.

    A cell of that column has entries separated by semicolons, each a claim's number, or an
    experiment and a column of its rows; the values after them are generated.

    Parameters
    ----------
    text
        Text of the audit.
    recorded
        Results by experiment name.
    ours
        Function that formats the measured value of a claim's row.

    Raises
    ------
    ExperimentError
        If an entry names an unknown claim or column.
    """
    claims = {row["id"]: row for each in recorded.values() for row in each["claims"]}
    lines, place = [], None
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if COLUMN in cells:
            place = cells.index(COLUMN)
        elif not line.startswith("|"):
            place = None
        elif place is not None and not line.startswith("|--"):
            entries = filter(None, cells[place].split("; "))
            cells[place] = "; ".join(_entry(each, claims, recorded, ours) for each in entries)
            line = f"| {' | '.join(cells)} |".replace("|  |", "| |")
        lines.append(line)
    return "\n".join(lines)


def _entry(
    entry: str, claims: Mapping[str, Any], recorded: Mapping[str, Mapping[str, Any]], ours: Any
) -> str:
    if claim := CLAIM.match(entry):
        if (row := claims.get(claim[0])) is None:
            raise ExperimentError(f"audit.md: {claim[0]}: expected a claim that was recorded")
        measured = "" if isinstance(row["measured"], bool) else f", {ours(row)}"
        return f"{claim[0]} {row['status']}{measured}"
    found = ROWS.fullmatch(entry)
    rows = recorded.get(found[1], {}).get("rows", []) if found else []
    if not found or not rows or found[2] not in rows[0]:
        raise ExperimentError(f"audit.md: {entry}: expected a claim, or an experiment and a column")
    values = (f"{row[found[2]]:.2f}" for row in rows if row[found[2]] is not None)
    return f"{found[1]}: {found[2]} = {', '.join(values)}"
