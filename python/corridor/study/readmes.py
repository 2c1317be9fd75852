"""Tables of recorded results, as the experiments' READMEs and docs/audit.md have them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from corridor.study import audit
from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.run import RESULT

#: Between these lines a README is what `write` makes of the results.
BEGIN = "<!-- corridor-study tables: from here on what was recorded -->"
END = "<!-- corridor-study tables: to here -->"
README = "README.md"
#: Instead of a table.
NONE = "Nothing was recorded: `corridor-study reproduce {name} --record` does so."
#: Relative width of an interval below which it is that of rounding.
_ALIKE = 1e-9
#: Order of statuses in summaries.
STATUSES = ("holds", "differs", "cannot hold", "parameter", "identity", "not checked")


def result(experiment: Experiment) -> dict[str, Any] | None:
    """Return what was recorded of an experiment, if it was.

    Raises
    ------
    ExperimentError
        Where it cannot be read.
    """
    path = experiment.folder / RESULT
    if not path.exists():
        return None
    try:
        recorded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{experiment.name}: {RESULT}: {error!r}") from error
    return recorded


def section(recorded: Mapping[str, Any]) -> str:
    """Return the table of an experiment: its claims, or its rows where it has no claims."""
    if not recorded["claims"]:
        notes = [f"- {note}" for note in recorded["notes"]]
        return "\n".join([*_plain(recorded["rows"]), "", *notes, "", _origin([recorded])])
    lines = ["| claim | published | ours | agrees if | status |", "|---|---|---|---|---|"]
    for row in recorded["claims"]:
        lines.append(
            f"| {row['id']}: {_words(row['claim'])}{_where(row)} | {_published(row)} "
            f"| {_ours(row)} | {_accepted(row)} | {_status(row)} |"
        )
    return "\n".join([*lines, "", _origin([recorded])])


def summary(recorded: Iterable[Mapping[str, Any]]) -> str:
    """Return the table over all experiments, and all that does not hold, with its cause."""
    results = list(recorded)
    lines = [
        "| experiment | " + " | ".join(STATUSES) + " |",
        "|---" * (1 + len(STATUSES)) + "|",
    ]
    total: Counter[str] = Counter()
    for each in results:
        counts = Counter(row["status"] for row in each["claims"])
        total += counts
        lines.append(f"| {each['experiment']} | {_counts(counts)} |")
    lines += [f"| all | {_counts(total)} |", "", "What does not hold:", ""]
    for each in results:
        for row in each["claims"]:
            if row["cause"]:
                cause = _words(row["cause"])
                lines.append(
                    f"- {row['id']}, {_words(row['claim'])}{_where(row)}: published "
                    f"{_published(row)}, ours {_ours(row)}. {row['status'].capitalize()}: {cause}"
                )
    return "\n".join([*lines, "", _origin(results)])


def write(experiments: Iterable[Experiment], folder: Path) -> list[Path]:
    """Put the tables into the READMEs of the experiments and of their folder, and into the audit.

    Returns
    -------
    The files that have changed.
    """
    changed = _stale(experiments, folder)
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    return list(changed)


def stale(experiments: Iterable[Experiment], folder: Path) -> list[Path]:
    """Return the files that are not what the recorded results make of them."""
    return list(_stale(experiments, folder))


def _stale(experiments: Iterable[Experiment], folder: Path) -> dict[Path, str]:
    """Files that have to change, and what to."""
    experiments = list(experiments)
    recorded = {experiment.name: result(experiment) for experiment in experiments}
    tables = {
        folder / name / README: section(each) if each else NONE.format(name=name)
        for name, each in recorded.items()
    }
    known = {name: each for name, each in recorded.items() if each}
    there = list(known.values())
    absent = ", ".join(name for name, each in recorded.items() if not each)
    tables[folder / README] = summary(there) + (f" Not recorded: {absent}." if absent else "")
    audited = audit.path(folder)
    if audited.is_file() and BEGIN in audited.read_text(encoding="utf-8"):
        tables[audited] = audit.totals(experiments, known)
    changed = {}
    for path, table in tables.items():
        before = path.read_text(encoding="utf-8")
        after = _replaced(path, before, table)
        if path == audited:
            after = audit.filled(after, known, _ours)
        if after != before:
            changed[path] = after
    return changed


def _replaced(path: Path, before: str, text: str) -> str:
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ExperimentError(f"{path}: no table: expected a line {BEGIN!r}, and one {END!r}")
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}"


def _plain(rows: list[dict[str, Any]]) -> list[str]:
    def cell(value: Any) -> str:
        if value is None:
            return "-"
        return digits(value, 4) if isinstance(value, float) else str(value)

    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    return lines + ["| " + " | ".join(cell(row[name]) for name in names) + " |" for row in rows]


def _origin(results: list[Mapping[str, Any]]) -> str:
    commits = sorted({each["commit"][:12] for each in results})
    counts = sorted({each["replications"] for each in results if each["replications"]})
    runs = f", {', '.join(map(str, counts))} runs of each point" if counts else ""
    return f"Recorded at commit {', '.join(commits)}{runs}; ± is half of a 95 % interval."


def _counts(counts: Counter[str]) -> str:
    return " | ".join(str(counts[status] or "") for status in STATUSES)


def _words(text: str) -> str:
    return " ".join(str(text).replace("|", "\\|").split()).removesuffix(".")


def _where(row: Mapping[str, Any]) -> str:
    # The chain of Fig. 8 is the same throughout.
    conditions = row["conditions"].split("; Fig 8")[0]
    return f" ({_words(conditions)})" if conditions else ""


def _published(row: Mapping[str, Any]) -> str:
    return f"{_words(row['published'])} {row['unit']}".strip(" -") or "-"


def _ours(row: Mapping[str, Any]) -> str:
    measured, width = row["measured"], row["half_width"]
    if measured is None:
        return "-"
    if isinstance(measured, bool):
        return "yes" if measured else "no"
    if width is None:
        return digits(measured, 4)
    # What sums of floats leave where all runs are alike is no interval.
    spread = width if width > abs(measured) * _ALIKE else 0.0
    return f"{digits(measured, 4)} ± {digits(spread, 2)}"


def digits(value: float, count: int) -> str:
    """Return a number with so many digits, and no power of ten but for what is small."""
    text = f"{value:.{count}g}"
    return f"{float(text):.0f}" if "e+" in text else text


def _accepted(row: Mapping[str, Any]) -> str:
    low, high = row["accepted"]["min"], row["accepted"]["max"]
    if (low, high) == (None, None):
        return "-"
    if (low, high) == (1, 1):
        return "yes"
    by = row["accepted"]["by"]
    changed = ", changed after the runs" if row["accepted"].get("changed") else ""
    chosen = f" ({by}{changed})" if by else ""
    if low is None:
        return f"at most {high:.6g}{chosen}"
    if high is None:
        return f"at least {low:.6g}{chosen}"
    return f"{low:.6g} to {high:.6g}{chosen}"


def _status(row: Mapping[str, Any]) -> str:
    return f"{row['status']} ({row['errata']})" if row["errata"] else str(row["status"])
