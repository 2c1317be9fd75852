"""The page of measurements: what the programs cost and deliver, with machine, commit and date."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corridor.report import pages, records
from corridor.study.readmes import digits

#: Tables with more checks than this start folded.
_OPEN_MAX = 12
#: Unit name that benchmarks use for dimensionless values.
_RATIO = "1"


def page(top: Path) -> str:
    """Return the page with all measurements."""
    lines = [
        "# Measurements", "",
        "What the programs cost and carry. Each section shows the file of one benchmark: "
        f"`{records.BENCH}/NAME.json` if the benchmark was run in this checkout, else the record "
        f"in `{records.RECORDED}`. Times are those of the machine named there. Limits were set "
        "before measuring; what misses its limit is shown as such. Below a value that varies "
        "stands the interval that it is known to. The commit is the last one that changed the code "
        "that is measured. `corridor-study keep out/bench/NAME.json` makes a record.", "",
    ]  # fmt: skip
    for name, subject in records.SUBJECTS.items():
        lines += [f"## {subject.title}", "", subject.words, ""]
        found = records.find(top, name)
        if found is None:
            lines += [f"**Not recorded.** `{subject.command}` measures it, {subject.takes}.", ""]
            continue
        lines += [*_origin(top, name, found), ""]
        if "checks" in found:
            lines += [*_checks(found["checks"]), ""]
        else:
            lines += [*_rows(found["rows"]), ""]
        for table in found.get("tables", []):
            lines += [*_table(table), ""]
    return "\n".join(lines)


def _origin(top: Path, name: str, found: Mapping[str, Any]) -> list[str]:
    """Return the origin of a record: command, date, machine, commit, and changes since."""
    subject, commit = records.SUBJECTS[name], found["commit"]
    of = f"commit `{commit}`" if commit else (
        "of this checkout at that time: the code that it measures was changed since, or is in no "
        "commit"
    )  # fmt: skip
    since = records.changed_since(name, commit, top) if commit else ""
    lines = [f"`{subject.command}`, {found['date']}, {found['machine']}, {of}. {since}".strip()]
    return [*lines, "", found["note"]] if found["note"] else lines


def demo(top: Path) -> str:
    """Return the demo's headline result: TCP cubic, plain and in window mode, by loss."""
    found = records.find(top, "demo")
    if found is None:
        return "Nothing is recorded: `make demo` shows it."
    goodput = {
        (row["path"], row["policy"], row["loss_ratio"]): row["goodput_bps"] / 1e6
        for row in found["rows"]
        if row["congestion"] == "cubic"
    }
    lines = ["| lost on the radio | TCP plain | with Corridor |", "|---|---|---|"]
    for words, lost in (("1 frame in 10", 0.1), ("1 frame in 5", 0.2), ("nothing", 0.0)):
        plain, window = goodput["plain", "-", lost], goodput["coded", "window", lost]
        lines.append(f"| {words} | {plain:.2f} Mbit/s | {window:.2f} Mbit/s |")
    return "\n".join(lines)


def _checks(checks: Sequence[Mapping[str, Any]]) -> list[str]:
    held = sum(bool(check["holds"]) for check in checks)
    table = ["| what | measured | limit | within it |", "|---|---|---|---|"]
    for check in checks:
        unit = check.get("unit", "")
        unit = "" if unit == _RATIO else unit
        where = f"<br><small>{_plain(check['conditions'])}</small>" if "conditions" in check else ""
        value = f"{_short(check['value'])} {unit}".strip()
        low, high = map(_short, check.get("interval") or (None, None))
        if low != high:
            value += f"<br><small>{low} to {high}</small>"
        sense = check["sense"]
        table.append(
            f"| {_plain(check['name'])}{where} | {value} | {sense} {_short(check['limit'])} "
            f"| {'yes' if check['holds'] else '**no**'} |"
        )
    said = f"{held} of {len(checks)} within their limits."
    if len(checks) <= _OPEN_MAX:
        return [said, "", *table]
    missed = [line for line, check in zip(table[2:], checks, strict=True) if not check["holds"]]
    shown = ["", *table[:2], *missed] if missed else []
    return [said, *shown, "", '??? note "All of them"', "", *(f"    {line}" for line in table)]


def _rows(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    table = ["| path | load | lost | goodput, Mbit/s | median delay, ms |", "|---|---|---|---|---|"]
    for row in rows:
        path = row["path"] + ("" if row["policy"] in (None, "-") else f", {row['policy']}")
        load = " ".join(filter(None, [row["transport"], row["congestion"]]))
        delay = row["delay_p50_s"]
        table.append(
            f"| {_plain(path)} | {load} | {row['loss_ratio']:.0%} | {row['goodput_bps'] / 1e6:.2f} "
            f"| {'-' if delay is None else f'{delay * 1e3:.0f}'} |"
        )
    return table


def _table(table: Mapping[str, Any]) -> list[str]:
    """Return a table whose first column is text and whose other columns are figures."""
    columns = table["columns"]
    lines = [f"{_plain(table['title'])}:", "", f"| {' | '.join(map(_plain, columns))} |"]
    lines.append("|---" + "|---:" * (len(columns) - 1) + "|")
    for first, *cells in table["rows"]:
        lines.append(f"| {' | '.join([_plain(first), *map(_short, cells)])} |")
    return lines


def _plain(text: str) -> str:
    return pages.plain(text)


def _short(value: Any) -> str:
    return "-" if value is None else digits(value, 4)
