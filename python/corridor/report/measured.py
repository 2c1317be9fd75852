"""Measurements of the programs: what benchmark files say, with machine, commit and date.

A recorded set is committed in ``docs/site/data``; a file of the same name that a benchmark left in
``out/bench`` of the checkout is shown instead.
"""

import datetime
import json
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corridor.study.experiment import ExperimentError
from corridor.study.run import commit, dumps

#: Where the recorded set stands, and where benchmarks leave their files, below the top.
RECORDED = "docs/site/data"
BENCH = "out/bench"
#: What is measured, by the name of its file, and the command that measures it.
SUBJECTS = {
    "codec": ("Codec", "make bench-codec"),
    "tunnel": ("Tunnel", "make bench-tunnel"),
    "paths": ("Window mode beside plain TCP on drawn paths", "make bench-paths"),
    "demo": ("Demo: kernel TCP over an emulated radio", "make demo"),
    "radio": ("Radios and their MACs", "make bench-radio"),
    "tcp": ("TCP beside the kernel's", "make bench-tcp"),
    "sim": ("Simulator", "make bench-sim"),
    "advise": ("Advice on constrained networks", "make bench-advise"),
    "build": ("Builds", "make bench-build"),
}
#: Columns of a demo's rows that are kept: those that tell rows apart, and what was measured.
_COLUMNS = ("path", "policy", "transport", "congestion", "loss_ratio", "goodput_bps", "delay_p50_s")
_NEEDED = ("machine", "commit", "date", "note")


def digest(path: Path, machine: str, commit: str, date: str, note: str = "") -> dict[str, Any]:
    """Return what of a benchmark's file is kept: its checks, or the rows of a demo.

    Raises
    ------
    ExperimentError
        For a file that has neither.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: {error!r}") from error
    about = {"machine": machine, "commit": commit, "date": date, "note": note}
    if isinstance(found, list):
        rows = [{name: row.get(name) for name in _COLUMNS} for row in found]
        return {**about, "rows": rows}
    if "checks" not in found:
        raise ExperimentError(f"{path}: expected `checks`, or rows of a demo")
    if "cpu" in found:
        about["machine"] = found["cpu"]
    # The tunnel's gates say more of each check than their list of checks.
    checks = [{**gate, "name": gate["gate"], "holds": gate["pass"]} for gate in
              found.get("gates", [])] or found["checks"]  # fmt: skip
    kept = ("name", "conditions", "value", "unit", "sense", "limit", "interval", "holds")
    return {**about, "checks": [{k: c[k] for k in kept if k in c} for c in checks]}


def keep(path: Path, top: Path, note: str = "") -> Path:
    """Commit a benchmark's file to the recorded set: its digest, with the commit of the checkout.

    Raises
    ------
    ExperimentError
        For a file of another name, or one that is no benchmark's; where what was measured is not
        as committed.
    """
    if path.stem not in SUBJECTS:
        raise ExperimentError(f"{path}: expected a file named {', '.join(SUBJECTS)}")
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    found = digest(path, _machine(), commit(top), today, note)
    target = top / RECORDED / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(dumps(found) + "\n", encoding="utf-8")
    return target


def _machine() -> str:
    text = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", text.read_text()) if text.is_file() else None
    return found[1] if found else platform.processor() or platform.machine()


def page(top: Path) -> str:
    """Return the page with all measurements."""
    lines = [
        "# Measurements", "",
        "What the programs themselves cost and carry, from the files that benchmarks leave: "
        "`out/bench/NAME.json` of this checkout where there is one, else the set that is "
        f"committed in `{RECORDED}`. Timings are those of one machine, which is named; limits "
        "were set before. `corridor-study keep out/bench/NAME.json` commits another.", "",
    ]  # fmt: skip
    for name, (title, command) in SUBJECTS.items():
        lines += [f"## {title}", ""]
        found = _found(top, name)
        if found is None:
            lines += [f"Nothing is recorded: `{command}` measures it.", ""]
            continue
        lines += [
            f"`{command}`, {found['date']}, {found['machine']}, commit {found['commit']}.", "",
            *([found["note"], ""] if found["note"] else []),
            *(_checks(found["checks"]) if "checks" in found else _rows(found["rows"])), "",
        ]  # fmt: skip
    return "\n".join(lines)


def demo(top: Path) -> str:
    """Return what a reader sees first of the demo: TCP cubic, plain and in window mode, by loss."""
    found = _found(top, "demo")
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


def _found(top: Path, name: str) -> dict[str, Any] | None:
    fresh = top / BENCH / f"{name}.json"
    if fresh.is_file():
        stamp = datetime.datetime.fromtimestamp(fresh.stat().st_mtime, tz=datetime.UTC)
        return digest(fresh, _machine(), "of this checkout", stamp.date().isoformat())
    path = top / RECORDED / f"{name}.json"
    if not path.is_file():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if missing := [key for key in _NEEDED if key not in found]:
            raise ValueError(f"{missing[0]} = nothing: expected it")
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: {error}") from error
    return found


def _checks(checks: list[Mapping[str, Any]]) -> list[str]:
    held = sum(bool(check["holds"]) for check in checks)
    table = ["| what | measured | limit | within it |", "|---|---|---|---|"]
    for check in checks:
        unit = check.get("unit", "")
        where = f"<br><small>{_plain(check['conditions'])}</small>" if "conditions" in check else ""
        value = f"{_short(check['value'])} {unit}".strip()
        sense = check["sense"]
        table.append(
            f"| {_plain(check['name'])}{where} | {value} | {sense} {_short(check['limit'])} "
            f"| {'yes' if check['holds'] else '**no**'} |"
        )
    said = f"{held} of {len(checks)} within their limits."
    if len(checks) <= 12:
        return [said, "", *table]
    return [said, "", '??? note "All of them"', "", *(f"    {line}" for line in table)]


def _rows(rows: list[Mapping[str, Any]]) -> list[str]:
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


def _plain(text: str) -> str:
    return text.replace("|", "&#124;").replace("_", "\\_").replace("*", "\\*")


def _short(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}"
