"""Records of measurements: the kept part of a benchmark's file, its commit, and changes since.

The recorded set is committed in ``docs/site/data``; if a benchmark left a file of the same name in
``out/bench`` of the checkout, that is shown instead, with the commit that a record of it would
have.
"""

import datetime
import json
import platform
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corridor.study.experiment import ExperimentError
from corridor.study.run import dumps

#: Directories of the recorded set and of benchmark output in a checkout.
RECORDED = "docs/site/data"
BENCH = "out/bench"


@dataclass(frozen=True)
class Subject:
    """The subject of a benchmark."""

    title: str
    #: Description of the measurement for first-time readers.
    words: str
    #: Command that runs it, and how long that takes.
    command: str
    takes: str
    #: Paths of the measured code in a checkout.
    code: tuple[str, ...]


def _crates(*names: str) -> tuple[str, ...]:
    return tuple(f"crates/{name}/src" for name in names)


_CORE = ("base", "codec", "packet", "relay", "proto")
_NETWORK = (*_CORE, "air", "scenario", "sim")
_DAEMON = _crates(*_CORE, "node", "air", "scenario", "lab")
_SIMULATOR = _crates("base", "air", "scenario", "sim")
#: By file name, in display order.
SUBJECTS = {
    "demo": Subject(
        "Demo: kernel TCP over an emulated radio",
        "Goodput and delay of TCP and UDP between two network namespaces, plain and coded.",
        "make demo", "five minutes", _DAEMON,
    ),
    "tunnel": Subject(
        "Tunnel",
        "What window mode and TCP/NC promise, in real time, with the kernel's TCP.",
        "make bench-tunnel", "45 minutes on two idle processors", _DAEMON,
    ),
    "paths": Subject(
        "Window mode beside plain TCP on drawn paths",
        "500 random paths in virtual time, each once with the tunnel and once without.",
        "make bench-paths", "half an hour", _crates(*_NETWORK),
    ),
    "paths-lab": Subject(
        "The same varying paths in lab and simulator",
        "Paths whose rates change and fail, in real time and in virtual time.",
        "make bench-paths-lab", "15 minutes", (*_DAEMON, *_crates("sim")),
    ),
    "share": Subject(
        "Bottlenecks shared with other flows",
        "60 random bottlenecks in virtual time, shared by four tunnels, and by a tunnel and plain "
        "TCP cubic or BBR: what each of them gets.",
        "make bench-share", "four minutes", _crates(*_NETWORK),
    ),
    "quic": Subject(
        "QUIC and voice",
        "QUIC's bulk transfers and a voice call through the tunnel, beside TCP, in real time.",
        "make bench-quic", "10 minutes", _DAEMON,
    ),
    "relay": Subject(
        "Hubs",
        "Eight neighbours of a hub, more offered than the radio carries: what each of them gets. "
        "TCP over four hops with losses, forwarded by hubs: what crosses, how long it waits.",
        "make bench-relay", "minutes", _crates(*_NETWORK),
    ),
    "core": Subject(
        "Sessions, keys and memory",
        "What the core promises to who relies on it, in virtual time: secrets that follow each "
        "other, floods of greetings, sessions over a path that loses nine of ten frames, frames "
        "from where their sender is not, and how memory is divided.",
        "make bench-core", "minutes", _crates(*_CORE),
    ),
    "codec": Subject(
        "Codec",
        "Encoding and decoding on one core, beside other libraries in the same run. Rates depend "
        "on the machine; the limits are ratios.",
        "make bench-codec", "three minutes", _crates("codec"),
    ),
    "sim": Subject(
        "Simulator",
        "Processor time for an event, and memory for a node, as networks grow.",
        "make bench-sim", "two minutes", _crates(*_NETWORK),
    ),
    "radio": Subject(
        "Radios and their MACs",
        "Simulated 802.11 and 802.15.4 beside published models, and what a reception costs.",
        "make bench-radio", "10 minutes", _crates("base", "air"),
    ),
    "constrained": Subject(
        "Constrained networks beside ns-3",
        "Simulated lines of 802.15.4 and 802.11 and their routes beside ns-3's, and what a "
        "transfer costs.",
        "make bench-constrained", "three minutes", _crates("base", "air", "sim", "scenario"),
    ),
    "tcp": Subject(
        "TCP beside the kernel's",
        "The simulator's Linux TCP, path by path, beside a recording of the kernel's own.",
        "make bench-tcp", "five minutes", _SIMULATOR,
    ),
    "advise": Subject(
        "Advice on constrained networks",
        "Advice for 200 random networks, replayed over fresh histories, and beside an exhaustive "
        "search.",
        "make bench-advise", "a quarter of an hour",
        (*_crates(*_NETWORK), "python/corridor/advise"),
    ),
    "build": Subject(
        "Builds",
        "What builds take from nothing, and how large the binaries are.",
        "make bench-build", "half an hour", ("crates", "Cargo.lock"),
    ),
}  # fmt: skip
#: Columns kept of a demo's rows: keys and measured values.
_COLUMNS = ("path", "policy", "transport", "congestion", "loss_ratio", "goodput_bps", "delay_p50_s")
_CHECK = ("name", "conditions", "value", "unit", "sense", "limit", "interval", "holds")
_NEEDED = ("machine", "commit", "date", "note")
_QUICK = "A quick run: fewer and shorter measurements."


def digest(path: Path, machine: str, commit: str, date: str, note: str = "") -> dict[str, Any]:
    """Return the kept part of a benchmark's file: checks and tables, or a demo's rows.

    Raises
    ------
    ExperimentError
        For a file with neither.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExperimentError(f"{path}: {error!r}") from error
    about = {"machine": machine, "commit": commit, "date": date, "note": note}
    if isinstance(found, list):
        rows = [{name: row.get(name) for name in _COLUMNS} for row in found]
        return {**about, "rows": rows}
    if not found.get("checks"):
        raise ExperimentError(f"{path}: expected `checks`, or rows of a demo")
    header = found.get("header", found)
    if "cpu" in header:
        about["machine"] = header["cpu"]
    if header.get("quick"):
        about["note"] = f"{_QUICK} {note}".strip()
    # The tunnel's gates are more detailed than its list of checks.
    checks = [{**gate, "name": gate["gate"], "holds": gate["pass"]} for gate in
              found.get("gates", [])] or found["checks"]  # fmt: skip
    kept = {**about, "checks": [{k: c[k] for k in _CHECK if k in c} for c in checks]}
    if path.stem in _TABLES:
        kept["tables"] = _TABLES[path.stem](found)
    return kept


def keep(path: Path, top: Path, note: str = "") -> Path:
    """Add a benchmark's file to the recorded set: the kept part, and the commit measured.

    This is the last commit that changed the measured code, so that it survives a rebase of others
    before it.

    Raises
    ------
    ExperimentError
        For a file with another name or that is not from a benchmark; also if the measured code has
        uncommitted changes, or was committed after the file was written.
    """
    if path.stem not in SUBJECTS:
        raise ExperimentError(f"{path}: expected a file named {', '.join(SUBJECTS)}")
    taken = _written(path)
    found = digest(path, _machine(), _measured_commit(path, top), _day(taken), note)
    target = top / RECORDED / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(dumps(found) + "\n", encoding="utf-8")
    return target


def _measured_commit(path: Path, top: Path) -> str:
    """Return the commit of the code that a benchmark's file measures.

    Raises
    ------
    ExperimentError
        If the code has uncommitted changes, or was committed after the file was written.
    """
    taken, commit = _written(path), code_commit(path.stem, top)
    # In whole seconds, like git's times.
    changed = _git(top, "show", "--no-patch", "--format=%at", commit)
    if changed and taken.timestamp() < int(changed):
        since = datetime.datetime.fromtimestamp(int(changed), tz=datetime.UTC)
        raise ExperimentError(
            f"{path}: written {taken:%Y-%m-%d %H:%M:%S} UTC, before the code that it measures "
            f"(commit {commit}, {since:%Y-%m-%d %H:%M:%S} UTC): expected a file written after it; "
            f"{SUBJECTS[path.stem].command} measures anew"
        )
    return commit


def _written(path: Path) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(path.stat().st_mtime, tz=datetime.UTC)


def code_commit(name: str, top: Path) -> str:
    """Return the last commit that changed the code a benchmark measures.

    Raises
    ------
    ExperimentError
        If this is not a checkout, or the code has uncommitted changes.
    """
    code = SUBJECTS[name].code
    changed = _git(top, "status", "--porcelain", "--", *code)
    found = _git(top, "log", "-1", "--format=%h", "--abbrev=12", "--", *code)
    if changed is None or not found:
        raise ExperimentError(f"{top}: expected a checkout with git")
    if changed:
        raise ExperimentError(f"keep: {changed.splitlines()[0]}: expected all to be committed")
    return found


def changed_since(name: str, commit: str, top: Path) -> str:
    """Return how the measured code has changed since a commit; empty if unknown."""
    code = SUBJECTS[name].code
    if _git(top, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return ""
    files = _git(top, "diff", "--name-only", commit, "--", *code)
    if files is None:
        return ""
    count = len(files.splitlines())
    if not count:
        return "The code that it measures has not changed since."
    many = f"{count} files" if count > 1 else "One file"
    have = "have" if count > 1 else "has"
    return f"{many} of the code that it measures {have} changed since."


def find(top: Path, name: str) -> dict[str, Any] | None:
    """Return a measurement: this checkout's own, or the recorded one, or nothing.

    Raises
    ------
    ExperimentError
        For a file that is not a record.
    """
    fresh = top / BENCH / f"{name}.json"
    if fresh.is_file():
        try:
            commit = _measured_commit(fresh, top)
        except ExperimentError:
            commit = ""  # Of code that is in no commit, or no longer here: it is said so.
        return digest(fresh, _machine(), commit, _day(_written(fresh)))
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


def _day(when: datetime.datetime) -> str:
    return when.date().isoformat()


def _machine() -> str:
    text = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", text.read_text()) if text.is_file() else None
    return found[1] if found else platform.processor() or platform.machine()


def _git(top: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(top), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


#: Codec operations to show, and their symbol size, bytes.
_OPERATIONS = {
    "encode": ("Encode, one dense symbol at a time", 1450),
    "decode": ("Decode a dense block", 1450),
    "systematic_decode": ("Decode a block of which a tenth was lost", 1280),
}
#: Entries that measure a limit, and are not libraries.
_LIMIT = "limit"


def _codec(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Payload rate by block size: ours with the default backend, the others' best."""
    default = found["header"]["default_backend"]
    tables = []
    for operation, (title, symbol) in _OPERATIONS.items():
        rows = [
            row for row in found["rows"]
            if (row["operation"], row["symbol_size"]) == (operation, symbol)
            and row["library"] != _LIMIT
            and (row["library"] != "corridor" or row["backend"] == default)
        ]  # fmt: skip
        sizes = sorted({row["block_size"] for row in rows})
        best: dict[str, dict[int, float]] = {}
        for row in rows:
            cells = best.setdefault(f"{row['library']} {row['field']}".strip(), {})
            rate = row["payload_bytes_per_s"] / 1e9
            cells[row["block_size"]] = max(rate, cells.get(row["block_size"], 0.0))
        tables.append(
            {
                "title": f"{title}, symbols of {symbol} bytes: GB/s of payload",
                "columns": ["symbols of a block", *map(str, sizes)],
                "rows": [
                    [name, *(_rounded(cells.get(size)) for size in sizes)]
                    for name, cells in best.items()
                ],
            }
        )
    return tables


def _sim(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cost of each simulation."""
    kinds = [("two flows of TCP over four links", found["chain"])]
    kinds += [("TCP on a ring", figure) for figure in found["network"]["figures"]]
    kinds += [("coded pairs", figure) for figure in found["world"]["figures"]]
    return [
        {
            "title": "What an event costs, and a node",
            "columns": ["network", "nodes", "ns an event", "million events/s", "KiB a node"],
            "rows": [
                [
                    kind, figure["nodes"], _rounded(figure["cpu_ns_per_event"]),
                    _rounded(figure["events_per_s"] / 1e6),
                    _rounded(figure["memory_bytes_per_node"] / 1024),
                ]
                for kind, figure in kinds
            ],
        }
    ]  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")


def _tcp(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Goodput on each recorded path, by congestion control: the kernel's and the simulator's."""
    names = list(dict.fromkeys(each["congestion"] for each in found["paths"]))
    by_path: dict[int, dict[str, Any]] = {}
    for each in found["paths"]:
        by_path.setdefault(each["index"], {})[each["congestion"]] = each
    rows = []
    for compared in by_path.values():
        path = next(iter(compared.values()))["path"]
        told = (
            f"{path['rate_bps'] / 1e6:.2f} Mbit/s, {path['rtt_ms']:.1f} ms, "
            f"{path['loss_ratio']:.2%} lost, {path['queue_packets']} packets"
        )
        both = ("kernel_bps", "simulated_bps")
        rows.append([told, *(compared[name][of] / 1e6 for name in names for of in both)])
    columns = [f"{name}, {who}" for name in names for who in ("kernel", "simulated")]
    title = f"Goodput, Mbit/s, means of six runs, Linux {found['kernel']}"
    return [{"title": title, "columns": ["path", *columns], "rows": rows}]


_TABLES: dict[str, Callable[[Mapping[str, Any]], list[dict[str, Any]]]] = {
    "codec": _codec,
    "sim": _sim,
    "tcp": _tcp,
}
