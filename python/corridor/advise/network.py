"""Reads a network from a file: a plan, or a table of measured link qualities."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from corridor import _native
from corridor.advise.settings import FLOW_PATHS, PATHS, Setting

#: Maximum number of nodes in a table of links.
NODES_MAX = 1_000
#: Maximum file size, bytes.
FILE_BYTES_MAX = 1 << 24
#: Maximum LQI (IEEE 802.15.4-2006, 6.9.8).
LQI_MAX = 255
#: The simulator's LQI: SNR at which it is 0, and how much above it reaches its maximum, dB.
LQI_ZERO_DB, LQI_SPAN_DB = -5.0, 20.0
#: PATH-DR's logistic curve from LQI to delivery ratio: midpoint, and scale (the LQI difference that
#: changes the odds by a factor of e).
HALF_LQI, SCALE_LQI = 102.0, 22.0
#: Receiver noise and sensitivity, and transmit power, unless the table gives them, dBm.
NOISE_DBM, SENSITIVITY_DBM, POWER_DBM = -98.0, -95.0, 0.0
#: Variation of links around the means in a table: standard deviation, dB, and period, s.
FADING = {"sigma_db": 3.0, "period_s": 10.0}
#: Size of a transfer, in packets of 94 bytes: 44 kB, as in the paper.
TRANSFER_PACKETS = 469
#: Maximum duration of a transfer, simulated seconds.
DURATION_S = 600
#: Number of histories of the network, and maximum number of pairs: a plan may have 100,000 runs.
HISTORIES = 5_000
PAIRS_MAX = 20

_STANDARD = Setting()
_PLACE = re.compile(r"^plan:(\d+):\d+: ")
_FLOW = re.compile(r"flow\[(\d+)\]\.?(\w*)")
_UNKNOWN = re.compile(r"^`(\w+)` is not known in \[+([\w.]+)\]")
_INNER = re.compile(r": (?:stations\[\]\.)?([\w.]+)(?: at \d+)? is [^ ]+[:,] expected ")
_HEADS = {"lqi", "rssi_dbm", "delivery_ratio"}
#: Column of measurement times in a trace.
TIME = "time_s"
#: Ranges of a table's values.
_RANGES = {
    "lqi": (0.0, float(LQI_MAX)), "rssi_dbm": (-150.0, 20.0), "delivery_ratio": (0.0, 1.0),
    TIME: (0.0, 1e12),
}  # fmt: skip


class NetworkError(ValueError):
    """An invalid network file: file and line, value, and what was expected."""


@dataclass(frozen=True)
class Given:
    """A network to give advice on."""

    #: Name.
    name: str
    #: The plan's table, except for the candidates: ``network`` and the first flow's settings.
    table: dict[str, Any]
    #: Directory of the files it names.
    directory: Path
    #: Pairs of nodes with transfers, at most `PAIRS_MAX` if they run one at a time.
    pairs: tuple[tuple[int, int], ...]
    #: The current settings.
    defaults: Setting
    #: Size of a transfer, bytes.
    transfer_bytes: int
    #: Whether all transfers run concurrently, or one at a time.
    together: bool = False
    #: Names of nodes; empty if they only have numbers.
    names: tuple[str, ...] = ()
    #: Fields that the file sets.
    set_fields: frozenset[str] = field(default_factory=frozenset)

    def plan(self, settings: Sequence[Setting]) -> str:
        """Return the plan with a point per setting and, with transfers one at a time, per pair."""
        ends = self.pairs if self.together else self.pairs[:1]
        flows = [{**self.table["flow"], "from": a, "to": b} for a, b in ends]
        sweep: dict[str, list[Any]] = {
            path: [getattr(each, name) for each in settings] for name, path in PATHS.items()
        }
        for index in range(len(flows)):
            for name, path in FLOW_PATHS.items():
                sweep[f"flow.{index}.{path}"] = [getattr(each, name) for each in settings]
        sweeps = [sweep]
        if not self.together:
            at, to = zip(*self.pairs, strict=True)
            sweeps.append({"flow.0.from": list(at), "flow.0.to": list(to)})
        rest = {key: value for key, value in self.table.items() if key != "flow"}
        return tomli_w.dumps({**rest, "flow": flows, "sweep": sweeps})


def read(
    path: Path,
    *,
    flows: Sequence[tuple[str, str]] = (),
    together: bool = False,
    packets: int = TRANSFER_PACKETS,
) -> Given:
    """Read a network: TOML with a plan's ``[network]`` and ``[[flow]]``, or a table of links.

    Parameters
    ----------
    path
        A file ending in ``.toml`` is a plan. Any other is a table with one link per line: from, to,
        and its quality. A first line ``from,to,lqi`` (or ``rssi_dbm``, ``delivery_ratio``) defines
        the third column, by default the LQI. A fourth column, ``time_s``, makes it a trace: each
        link then has its own mean, and all vary with the mean of their variances.
    flows
        Pairs of nodes of a table with transfers; None: from each node to the first.
    together
        Whether all transfers run concurrently.
    packets
        Packets per transfer, unless the file gives it.

    Raises
    ------
    NetworkError
        For an invalid value, with file, line, value, and what was expected.
    """
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            raise NetworkError(f"{path}: {size} bytes: expected at most {FILE_BYTES_MAX}")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkError(f"{path}: {error}: expected a file of text") from None
    if path.suffix == ".toml":
        if flows:
            raise NetworkError("--flow: expected [[flow]] tables in the file instead")
        return _plan(path, text, together, packets)
    return read_table(path, text, flows=flows, together=together, packets=packets)


# A plan.


def _plan(path: Path, text: str, together: bool, packets: int) -> Given:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NetworkError(f"{path}: {error}") from None
    lines = Lines(path, text)
    network, flows = table.get("network"), table.get("flow")
    if not isinstance(network, dict):
        raise NetworkError(f"{path}: network = nothing: expected a table [network]")
    if not isinstance(flows, list) or not flows:
        raise NetworkError(f"{path}: flow = nothing: expected a table [[flow]] for each pair")
    radio = network.setdefault("radio", {"mac": "802.15.4"})
    if not isinstance(radio, dict) or radio.setdefault("mac", "802.15.4") != "802.15.4":
        where = lines.of("network.radio.mac")
        raise NetworkError(f'{where}: network.radio: expected mac = "802.15.4"')
    if table.get("sweep"):
        raise NetworkError(f"{lines.of('sweep')}: sweep: expected none: advice tries its own")
    if "route" in network:
        raise NetworkError(f"{lines.of('network.route')}: route: expected none: routes are found")
    routing = network.setdefault("routing", {"kind": "nst-aodv"})
    routing.pop("static", None)
    first = _filled(flows[0], packets)
    defaults, given = _defaults(table, first)
    plan = _whole(path.stem, table, network, first)
    whole = {**plan, "flow": [_filled(each, packets) for each in flows]}
    _check(lines, tomli_w.dumps(whole), path.parent)
    if first["source"].get("kind") != "fixed":
        raise NetworkError(f'{lines.of("flow.0.source.kind")}: expected kind = "fixed"')
    pairs = tuple((int(each["from"]), int(each["to"])) for each in flows)
    _check_joined(lines, plan, path.parent, pairs)
    pairs = pairs if together else spread(pairs)
    return Given(
        name=str(table.get("name", path.stem)),
        table=plan,
        directory=path.parent,
        pairs=pairs,
        defaults=defaults,
        transfer_bytes=first["source"]["packets"] * first["payload_bytes"],
        together=together,
        set_fields=frozenset(given),
    )


def _whole(name: str, table: dict[str, Any], network: Any, flow: Any) -> dict[str, Any]:
    return {
        "name": str(table.get("name", name)),
        "seed": table.get("seed", 1),
        "duration_s": table.get("duration_s", DURATION_S),
        "until_done": True,
        "replications": 1,
        "network": network,
        "flow": flow,
    }


def _filled(flow: dict[str, Any], packets: int) -> dict[str, Any]:
    """Return a flow completed with defaults: 44 kB over the paper's TCP."""
    tcp = {
        "preset": "constrained", "variant": "slowstart", "timeouts_max": 5, "ack_bytes": 20,
        **flow.get("tcp", {}),
    }  # fmt: skip
    source = {"kind": "fixed", "packets": packets}
    sizes = {"payload_bytes": 94, "header_bytes": 20}
    return {"source": source, **sizes, **flow, "tcp": tcp}


def _defaults(table: dict[str, Any], flow: dict[str, Any]) -> tuple[Setting, list[str]]:
    """Return the current settings, and which fields the file sets."""
    found: dict[str, Any] = {}
    for name, path in PATHS.items():
        found[name] = _at(table, path)
    for name, path in FLOW_PATHS.items():
        found[name] = _at(flow, path)
    found = {name: value for name, value in found.items() if value is not None}
    return Setting(**found), list(found)


def _at(table: Any, path: str) -> Any:
    for part in path.split("."):
        table = table.get(part) if isinstance(table, dict) else None
    return table


def _check(lines: Lines, text: str, directory: Path) -> None:
    """Let the simulator check a plan, and report errors at the line of the user's file."""
    try:
        _native.PlanRuns(text, str(directory), 1)
    except ValueError as error:
        said = str(error)
        words = _PLACE.sub("", said).removeprefix("point 0 = the plan's: expected ")
        raise NetworkError(f"{lines.of(_key(said, words, text))}: {words}") from None


def _key(said: str, words: str, text: str) -> str:
    """Return the key of the plan's `text` that an error is about."""
    key = words.split(" = ")[0].strip().strip("`")
    if flow := _FLOW.search(words):
        key = ".".join(filter(None, ("flow", flow[1], flow[2])))
    elif unknown := _UNKNOWN.search(words):
        key = f"{unknown[2]}.{unknown[1]}"
    if key.startswith("flow.") and not key[5:6].isdigit():
        # In the flow whose table is the last above the line.
        place = _PLACE.match(said)
        above = text.splitlines()[: int(place[1]) if place else None]
        key = f"flow.{max(above.count('[[flow]]') - 1, 0)}{key[4:]}"
    # "[network.radio]: retries is 9".
    inner = _INNER.search(words)
    return f"{key}.{inner[1]}" if inner else key


def _check_joined(
    lines: Lines, plan: dict[str, Any], directory: Path, pairs: Sequence[tuple[int, int]]
) -> None:
    """Raise an error if the network is disconnected.

    That is, if frames of the first sender cannot reach some node and come back.
    """
    first = pairs[0][0]
    text = tomli_w.dumps({**plan, "flow": [{**plan["flow"], "from": first, "to": pairs[0][1]}]})
    nodes = int(_native.PlanRuns(text, str(directory), 1).settings(0)["nodes"])
    others = [node for node in range(nodes) if node != first]
    flows = [{**plan["flow"], "from": first, "to": node} for node in others]
    try:
        _native.PlanRuns(tomli_w.dumps({**plan, "flow": flows}), str(directory), 1)
    except ValueError as error:
        flow = _FLOW.search(str(error))
        node = others[int(flow[1])] if flow else "?"
        where = lines.of("network.kind")
        raise NetworkError(
            f"{where}: node {node}: expected a network in one piece: no links of mean power lead "
            f"from node {first} to it and back"
        ) from None


class Lines:
    """Positions of the keys in a TOML file."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.at: dict[str, int] = {}
        counts: dict[str, int] = {}
        table = ""
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split("#")[0].strip()
            if words.startswith("[["):
                name = words.strip("[] ")
                table = f"{name}.{counts.get(name, 0)}"
                counts[name] = counts.get(name, 0) + 1
                self.at.setdefault(name, number)
                self.at[table] = number
            elif words.startswith("["):
                name = words.strip("[] ")
                head, _, rest = name.partition(".")
                # [flow.tcp] belongs to the last [[flow]].
                table = f"{head}.{counts[head] - 1}.{rest}" if head in counts else name
                self.at[table] = number
            elif "=" in words:
                key = words.split("=")[0].strip()
                self.at.setdefault(f"{table}.{key}" if table else key, number)

    def of(self, key: str) -> str:
        """Return file and line of a key, or of the closest enclosing table."""
        key = key.replace("[", ".").replace("]", "")
        while key:
            if key in self.at:
                return f"{self.path}:{self.at[key]}"
            key = key.rpartition(".")[0]
        return str(self.path)


# A table of links.


@dataclass
class _Link:
    #: First line that lists it, and the measurement times with their lines.
    line: int
    times: dict[float, int] = field(default_factory=dict)
    #: Measured values, in the table's unit.
    values: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)

    @property
    def squares(self) -> float:
        """Sum of squared differences from the mean."""
        return math.fsum((value - self.mean) ** 2 for value in self.values)


def read_table(
    path: Path,
    text: str,
    *,
    flows: Sequence[tuple[str, str]] = (),
    together: bool = False,
    packets: int = TRANSFER_PACKETS,
    defaults: Setting = _STANDARD,
) -> Given:
    """Read a table of links from its text; `path` is for messages. See `read`."""
    kind, links, names = _links(path, text)
    losses = {ends: _loss_db(_lqi(kind, link.mean)) for ends, link in links.items()}
    for (a, b), loss_db in list(losses.items()):
        # Measured in one direction only: the other is assumed equal.
        losses.setdefault((b, a), loss_db)
    _check_parts(path, links, losses, names)
    pairs = _pairs(path, flows, names)
    pairs = pairs if together else spread(pairs)
    directory = path.parent
    rows = [f"{a} {b} {loss_db:.3f}" for (a, b), loss_db in sorted(losses.items())]
    fading = {**FADING, "sigma_db": _sigma_db(kind, links.values())}
    radio = {"mac": "802.15.4", "power_dbm": POWER_DBM, "fading": fading}
    network = {
        "kind": "matrix", "nodes": len(names), "path": "links", "radio": radio,
        "routing": {"kind": "nst-aodv"},
    }  # fmt: skip
    plan = _whole(path.stem, {}, network, _filled({}, packets))
    given = Given(
        name=path.stem,
        table=plan,
        directory=directory,
        pairs=pairs,
        defaults=defaults,
        transfer_bytes=packets * plan["flow"]["payload_bytes"],
        together=together,
        names=tuple(names),
    )
    return with_matrix(given, rows)


def spread(pairs: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """Return at most `PAIRS_MAX` of the pairs, evenly spread.

    Examples
    --------
    >>> len(spread(tuple((node, 0) for node in range(1, 60))))
    20
    """
    if len(pairs) <= PAIRS_MAX:
        return pairs
    return tuple(pairs[place * len(pairs) // PAIRS_MAX] for place in range(PAIRS_MAX))


def with_matrix(given: Given, rows: Sequence[str]) -> Given:
    """Return a network of links whose losses are in a temporary file of their own."""
    import tempfile

    # Kept for the life of the process: a plan can only name a file, not contain the links.
    folder = tempfile.TemporaryDirectory(prefix="corridor-advise-")
    _KEPT.append(folder)
    (Path(folder.name) / "links").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return Given(**{**given.__dict__, "directory": Path(folder.name)})


_KEPT: list[Any] = []


def _links(path: Path, text: str) -> tuple[str, dict[tuple[int, int], _Link], list[str]]:
    """Return the type of the third column, the links, and the nodes' names."""
    columns: list[str] = []
    links, places = dict[tuple[int, int], _Link](), dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].replace(",", " ").split()
        if not words:
            continue
        where = f"{path}:{number}"
        if not columns:
            columns = _columns(where, words)
            if words == columns:
                continue
        if len(words) != len(columns):
            expected = ", ".join(columns[:-1])
            raise NetworkError(f"{where}: {line!r}: expected {expected} and {columns[-1]}")
        a, b = words[:2]
        if a == b:
            raise NetworkError(f"{where}: {a} to {b}: expected two nodes")
        ends = places.setdefault(a, len(places)), places.setdefault(b, len(places))
        if len(places) > NODES_MAX:
            raise NetworkError(f"{where}: {b}: expected at most {NODES_MAX} nodes")
        link = links.setdefault(ends, _Link(number))
        time_s = _number(where, TIME, words[3]) if len(columns) == 4 else 0.0
        if (before := link.times.setdefault(time_s, number)) != number:
            at = f" at {words[3]} s" if len(columns) == 4 else ""
            raise NetworkError(f"{where}: {a} to {b}{at}: expected once, as in line {before}")
        link.values.append(_number(where, columns[2], words[2]))
    if not links:
        expected = ", ".join(columns or ["from", "to", "lqi"])
        raise NetworkError(f"{path}: no links: expected lines with {expected}")
    return columns[2], links, list(places)


def _columns(where: str, words: Sequence[str]) -> list[str]:
    """Return the columns as defined by the first nonempty line."""
    if list(words[:2]) != ["from", "to"] or len(words) not in (3, 4):
        return ["from", "to", "lqi", *([TIME] if len(words) == 4 else [])]
    if words[2] not in _HEADS:
        expected = ", ".join(sorted(_HEADS))
        raise NetworkError(f"{where}: {words[2]}: expected one of {expected}")
    if len(words) == 4 and words[3] != TIME:
        raise NetworkError(f"{where}: {words[3]}: expected {TIME}")
    return list(words)


def _number(where: str, kind: str, word: str) -> float:
    """Return a measured value, or a time."""
    least, most = _RANGES[kind]
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise NetworkError(f"{where}: {kind} = {word}: expected a number {least:g} to {most:g}")
    return value


def _lqi(kind: str, value: float) -> float:
    """Return the LQI equivalent of a measured value."""
    if kind == "lqi":
        return value
    if kind == "rssi_dbm":
        ratio_db = value - NOISE_DBM
        return min(LQI_MAX * (ratio_db - LQI_ZERO_DB) / LQI_SPAN_DB, float(LQI_MAX))
    share = min(max(value, 1e-6), 1 - 1e-6)
    return min(HALF_LQI + SCALE_LQI * math.log(share / (1 - share)), float(LQI_MAX))


def _sigma_db(kind: str, links: Iterable[_Link]) -> float:
    """Return the standard deviation of the links, from the mean of a trace's variances.

    Delivery ratios also contain sampling noise, and do not tell.
    """
    often = [link for link in links if len(link.values) > 1]
    if not often or kind == "delivery_ratio":
        return FADING["sigma_db"]
    variance = sum(link.squares for link in often) / sum(len(link.values) - 1 for link in often)
    unit_db = LQI_SPAN_DB / LQI_MAX if kind == "lqi" else 1.0
    return float(unit_db * variance**0.5)


def _loss_db(lqi: float) -> float:
    """Return the path loss of a link whose mean power gives this LQI."""
    return POWER_DBM - NOISE_DBM - LQI_ZERO_DB - LQI_SPAN_DB * lqi / LQI_MAX


def _check_parts(
    path: Path,
    links: dict[tuple[int, int], _Link],
    losses: dict[tuple[int, int], float],
    names: Sequence[str],
) -> None:
    """Raise an error if the network is disconnected."""
    heard = {ends for ends, loss_db in losses.items() if POWER_DBM - loss_db >= SENSITIVITY_DBM}
    seen, ahead = {0}, [0]
    while ahead:
        node = ahead.pop()
        for a, b in heard:
            if a == node and b not in seen and (b, a) in heard:
                seen.add(b)
                ahead.append(b)
    for (a, b), link in links.items():
        for node in (a, b):
            if node not in seen:
                raise NetworkError(
                    f"{path}:{link.line}: node {names[node]}: expected a network in one piece: no "
                    f"links with an LQI of {math.ceil(HALF_LQI)} or more both ways lead to it from "
                    f"node {names[0]}"
                )


def _pairs(
    path: Path, asked: Sequence[tuple[str, str]], names: Sequence[str]
) -> tuple[tuple[int, int], ...]:
    if not asked:
        return tuple((node, 0) for node in range(1, len(names)))
    for pair in asked:
        for name in pair:
            if name not in names:
                raise NetworkError(f"--flow {':'.join(pair)}: {name}: expected a node of {path}")
        if pair[0] == pair[1]:
            raise NetworkError(f"--flow {':'.join(pair)}: expected two nodes")
    return tuple((names.index(a), names.index(b)) for a, b in asked)
