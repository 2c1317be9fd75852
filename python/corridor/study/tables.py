"""Tables of results, no wider than the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from corridor.study.claims import Range, Status, Verdict
from corridor.study.experiment import Experiment
from corridor.study.mutation import Trial

#: Colours of statuses.
COLOURS: dict[Status, str] = {
    "holds": "green", "differs": "yellow", "cannot hold": "yellow", "parameter": "dim",
    "identity": "dim", "not checked": "dim", "fails": "bold red", "unexpected": "bold red",
    "missing": "bold red",
}  # fmt: skip
#: Gap between columns, characters.
_GAP = 1


def of_experiments(experiments: Sequence[Experiment]) -> Table:
    """Return a table of experiments."""
    table = Table("experiment", box=None)
    table.add_column("claims", justify="right")
    table.add_column("title")
    for each in experiments:
        table.add_row(each.name, str(len(each.claims)), escape(each.title))
    return table


def of_rows(rows: Sequence[dict[str, Any]], width: int) -> list[Table]:
    """Return tables of rows with the same keys, each no wider than ``width``.

    Columns that do not fit go to a further table, which repeats the key columns.

    Examples
    --------
    >>> rows = [{"p": p, "throughput": 1 / 3, "round-trip time": 0.8} for p in (0.1, 0.2)]
    >>> [[column.header for column in table.columns] for table in of_rows(rows, 20)]
    [['p', 'throughput'], ['p', 'round-trip time']]
    """
    if not rows:
        return []
    names = list(rows[0])
    cells = {name: [number(row[name]) for row in rows] for name in names}
    wide = {name: max(map(len, [name, *cells[name]])) for name in names}
    if sum(wide.values()) + _GAP * len(names) > width:
        # Names may wrap over several lines.
        wide = {name: max(map(len, [*name.split(), *cells[name]])) for name in names}
    keys = _keys(names, cells)
    tables: list[list[str]] = []
    room = 0
    for name in names[len(keys) :]:
        if not tables or room < wide[name] + _GAP:
            tables.append([*keys])
            room = width - sum(wide[key] + _GAP for key in keys)
        tables[-1].append(name)
        room -= wide[name] + _GAP
    return [_table(columns, cells, wide) for columns in tables or [keys]]


def _keys(names: list[str], cells: dict[str, list[str]]) -> list[str]:
    """Return the fewest leading columns that distinguish all rows; if none do, the first."""
    for count in range(1, len(names)):
        rows = list(zip(*(cells[name] for name in names[:count]), strict=True))
        if len(set(rows)) == len(rows):
            return names[:count]
    return names[:1]


def _table(columns: list[str], cells: dict[str, list[str]], wide: dict[str, int]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0))
    for name in columns:
        is_text = any(_is_word(cell) for cell in cells[name])
        side: Literal["left", "right"] = "left" if is_text else "right"
        table.add_column(escape(name), justify=side, min_width=wide[name], max_width=wide[name])
    for row in zip(*(cells[name] for name in columns), strict=True):
        table.add_row(*map(escape, row))
    return table


def _is_word(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell not in ("-", "yes", "no")
    return False


def of_verdicts(verdicts: Sequence[Verdict]) -> Table:
    """Return a table of verdicts: each claim, with its conditions below, as far as they fit.

    The JSON has all conditions.
    """
    table = Table(box=None, padding=(0, _GAP, 0, 0), expand=True)
    table.add_column("", max_width=11)
    table.add_column("claim", ratio=1, min_width=24)
    table.add_column("published", max_width=14, overflow="fold")
    table.add_column("ours", no_wrap=True)
    table.add_column("accepted", max_width=16)
    for verdict in verdicts:
        claim, status = verdict.claim, verdict.status
        table.add_row(
            Text(f"{status} {claim.errata}".strip(), style=COLOURS[status]),
            _claim(verdict),
            escape(f"{number(claim.value)} {claim.unit}".strip(" -")),
            measured(verdict),
            accepted(verdict.accepted),
        )
    return table


def of_trials(trials: Sequence[Trial]) -> Table:
    """Return a table of falsified results, and of the outcome of their checks."""
    table = Table("claim", "kind", "ours", "wrong", "then", box=None)
    for trial in trials:
        then = Text(trial.status, style="green" if trial.is_seen else "bold red")
        if trial.excuse and not trial.is_seen:
            then = Text(f"let pass: {trial.excuse}", style="yellow")
        table.add_row(
            trial.claim.id, trial.claim.kind, number(trial.measured), number(trial.wrong), then
        )
    return table


def _claim(verdict: Verdict) -> Table:
    """Return the number and text of a claim, and a line of conditions."""
    claim = verdict.claim
    cell = Table.grid(expand=True)
    cell.add_row(Text(f"{claim.id}: {claim.claim}"))
    if claim.conditions:
        cell.add_row(Text(claim.conditions, style="dim", no_wrap=True, overflow="ellipsis"))
    return cell


def number(value: Any) -> str:
    """Return a value with five digits."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, int | float) else str(value)


def measured(verdict: Verdict) -> str:
    """Return the measure, with the half-width of its interval on the next line."""
    value = verdict.measured
    if (verdict.accepted.low, verdict.accepted.high) == (1, 1) and value in (0, 1):
        value = bool(value)
    interval = f"\n± {verdict.half_width:.2g}" if verdict.half_width is not None else ""
    return number(value) + interval


def accepted(which: Range) -> str:
    """Return the accepted range of a claim in words."""
    low, high = which.low, which.high
    if low is None and high is None:
        return "-"
    if (low, high) == (1, 1):
        return "yes"
    if low is not None and low == high:
        return f"{low:.5g}"
    if low is not None and high is not None:
        return f"{low:.5g} to {high:.5g}"
    return f"at least {low:.5g}" if low is not None else f"at most {high:.5g}"
