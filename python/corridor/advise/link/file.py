"""Reads the description of a tunnel's link: TOML with ``[link]``, ``[traffic]``, ``[coding]``."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from corridor import _native
from corridor.advise.link.coding import Coding
from corridor.advise.network import FILE_BYTES_MAX, Lines, NetworkError

#: Approximate number of packets per run, their size, and the bounds of a run's duration, seconds.
PACKETS, PACKET_BYTES, DURATION_S = 3_000, 1_400, (4.0, 60.0)
#: Minimum number of round trips in a run, subject to the maximum duration.
ROUND_TRIPS = 40
#: Above this many packets, the minimum duration and the warm-up shrink with the rate, so that the
#: minimum number of runs of all codings fits the default budget; but not below ``LEAST_S``, some
#: ten times the tunnel's timers, since shorter runs deliver next to nothing.
PACKETS_MAX, LEAST_S = 14_500, 0.4
#: Maximum packets of a run including its warm-up, where round trips are long: beyond it, the
#: minimum number of runs of all codings would take hours.
ROUND_TRIPS_PACKETS_MAX = 1_000_000
#: Warm-up before the measured interval, seconds and round trips, in which TCP finds the rate.
WARM_UP_S, WARM_UP_ROUND_TRIPS = 1.0, 20
#: Maximum loss ratio of a link: beyond it, a run delivers next to nothing.
LOSS_MAX = 0.9
#: Queue limit of an interface, frames, unless the file gives it.
QUEUE_FRAMES = 4
#: Maximum round-trip time, ms, and rate, bit/s.
RTT_MS_MAX, RATE_BPS_MAX = 10_000.0, 10_000_000_000
#: Maximum fixed overhead of a frame, us.
OVERHEAD_US_MAX = 100_000.0
#: Maximum mean burst length, and queue limit, frames.
BURST_MAX, QUEUE_MAX = 1_000.0, 65_536

_RATE = re.compile(r"([0-9._]+)\s*([kMG]?)")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_PLACE = re.compile(r"^plan:(\d+):\d+: |^point \d+ = the plan's: expected ")
_UNKNOWN = re.compile(r"`(\w+)` is not known in \[(?:run\.)?(coding(?:\.\w+)*)\]")
#: Keys of the plan, mapped to those of the user's file.
_NAMES = {
    "medium": "link", "run[0].coding": "coding", "run[0].e3": "link.loss_there",
    "run[0].e3_back": "link.loss_back", "run[0].e1": "link.helper.loss_from_here",
    "run[0].e2": "link.helper.loss_to_peer", "run[0].burst_frames": "link.burst_frames",
    "run[0].underlay": "link.underlay", "run[0]": "traffic", "coding": "coding",
}  # fmt: skip


@dataclass(frozen=True)
class GivenLink:
    """A tunnel's link to give advice on."""

    #: Name.
    name: str
    #: The plan's table, except for the candidates: ``[medium]`` and the run.
    table: dict[str, Any]
    #: Erasure ratios from this end to the helper and from the helper to the peer; None without a
    #: helper.
    helper: tuple[float, float] | None
    #: The current coding.
    own: Coding
    #: Keys of ``[coding]`` that are not searched and keep their values.
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rate_bps(self) -> float:
        """Rate of the link, bits per second."""
        return float(self.table["medium"]["rate_bps"])

    @property
    def duration_s(self) -> float:
        """Measured time of a run, seconds."""
        return float(self.table["duration_s"])

    @property
    def is_tcp(self) -> bool:
        """Whether the load is TCP rather than UDP."""
        return bool(self.table["run"][0]["transport"] == "tcp")

    def plan(self, coding: Coding) -> str:
        """Return the plan that simulates a coding."""
        (run,) = self.table["run"]
        run = {**run, "path": "coded", "coding": coding.table(self.kept)}
        if coding.helper and self.helper is not None:
            e1, e2 = self.helper
            run |= {"path": "coded+helper", "e1": e1, "e2": e2}
        return tomli_w.dumps({**self.table, "run": [run]})


def is_link(path: Path) -> bool:
    """Return whether a file describes a link: TOML with a table ``[link]``."""
    if path.suffix != ".toml":
        return False
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            return False
        return "link" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Reading it as a network will report what is wrong.
        return False


def read_link(path: Path) -> GivenLink:
    """Read a link from a file.

    Raises
    ------
    NetworkError
        For an invalid value, with file, line, value, and what was expected.
    """
    try:
        if (size := path.stat().st_size) > FILE_BYTES_MAX:
            raise NetworkError(f"{path}: {size} bytes: expected at most {FILE_BYTES_MAX}")
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except NetworkError:
        raise
    except (OSError, ValueError) as error:
        raise NetworkError(f"{path}: {error}: expected a file of TOML") from None
    reader = _Reader(Lines(path, text))
    reader.known("", table, {"name", "link", "traffic", "coding"})
    link = reader.table(table, "link")
    traffic, coding = (reader.table(table, key, {}) for key in ("traffic", "coding"))
    medium, losses = _medium(reader, link)
    helper, is_used = _helper(reader, link)
    if helper is not None and medium["duplex"] != "half":
        raise reader.wrong("link.duplex", medium["duplex"], "half: a helper overhears one channel")
    own, kept = _own(reader, coding, has_helper=is_used)
    run = {**_run(reader, traffic), **losses}
    rtt_s = medium["rtt_ms"] / 1e3
    packet_s = 8 * PACKET_BYTES / medium["rate_bps"]
    # The duration follows the offered rate where that is below the link's.
    load_s = 8 * PACKET_BYTES / min(medium["rate_bps"], run.get("offered_bps", math.inf))
    least_s = min(DURATION_S[0], max(PACKETS_MAX * load_s, LEAST_S))
    duration_s = min(max(PACKETS * packet_s, ROUND_TRIPS * rtt_s, least_s), DURATION_S[1])
    warm_up_s = WARM_UP_S * least_s / DURATION_S[0] + WARM_UP_ROUND_TRIPS * rtt_s
    if (warm_up_s + duration_s) / load_s > ROUND_TRIPS_PACKETS_MAX:
        most = ROUND_TRIPS_PACKETS_MAX * load_s / (ROUND_TRIPS + WARM_UP_ROUND_TRIPS)
        expected = f"about {1e3 * most:.3g} at most at this load: more packets are simulated"
        raise reader.wrong("link.rtt_ms", medium["rtt_ms"], expected)
    whole = {
        "name": str(table.get("name", path.stem)),
        "seed": 1,
        "replications": 1,
        "warm_up_s": warm_up_s,
        "duration_s": round(duration_s, 3),
        "medium": medium,
        "run": [run],
    }
    given = GivenLink(whole["name"], whole, helper, own, kept)
    _check(reader, given, coding)
    return given


def _medium(reader: _Reader, link: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the plan's ``[medium]``, and the run's keys that describe the link."""
    known = {
        "duplex", "rate_bps", "overhead_us", "rtt_ms", "queue_frames", "drops_when_full",
        "loss_there", "loss_back", "burst_frames", "underlay", "helper",
    }  # fmt: skip
    reader.known("link", link, known)
    duplex = reader.word(link, "link.duplex", ("half", "full"), "half")
    there = reader.number(link, "link.loss_there", 0, LOSS_MAX)
    back = reader.number(link, "link.loss_back", 0, LOSS_MAX, there)
    medium = {
        "duplex": duplex,
        "rate_bps": reader.rate(link, "link.rate_bps"),
        "overhead_us": reader.number(link, "link.overhead_us", 0, OVERHEAD_US_MAX, 0.0),
        "rtt_ms": reader.number(link, "link.rtt_ms", 0, RTT_MS_MAX),
        "queue_frames": reader.whole(link, "link.queue_frames", 1, QUEUE_MAX, QUEUE_FRAMES),
        "drops_when_full": reader.flag(link, "link.drops_when_full", left_out=False),
    }
    run: dict[str, Any] = {"e3": there, "e3_back": back}
    run["underlay"] = reader.word(link, "link.underlay", ("ethernet", "udp"), "ethernet")
    if "burst_frames" in link:
        run["burst_frames"] = reader.number(link, "link.burst_frames", 1, BURST_MAX)
    return medium, run


def _helper(reader: _Reader, link: Mapping[str, Any]) -> tuple[tuple[float, float] | None, bool]:
    """Return the losses of the helper's links, and whether it is currently used."""
    if "helper" not in link:
        return None, False
    helper = reader.table(link, "helper", at="link.helper")
    reader.known("link.helper", helper, {"loss_from_here", "loss_to_peer", "used"})
    losses = (
        reader.number(helper, "link.helper.loss_from_here", 0, LOSS_MAX),
        reader.number(helper, "link.helper.loss_to_peer", 0, LOSS_MAX),
    )
    return losses, reader.flag(helper, "link.helper.used", left_out=True)


def _own(
    reader: _Reader, coding: dict[str, Any], *, has_helper: bool
) -> tuple[Coding, dict[str, Any]]:
    """Return the current coding, and the keys that are set but not searched."""
    preset = coding.get("preset", "block" if has_helper else "window")
    presets = ("window", "block", "paper", "tcp-nc")
    if preset not in presets:
        raise reader.wrong("coding.preset", preset, "one of " + ", ".join(presets))
    names = set(Coding.__dataclass_fields__) - {"helper", "preset"}
    searched = {key: value for key, value in coding.items() if key in names}
    own = Coding(preset, has_helper, **searched)
    kept = {key: value for key, value in coding.items() if key not in {*names, "preset"}}
    return own.effective(), kept


def _run(reader: _Reader, traffic: Mapping[str, Any]) -> dict[str, Any]:
    known = {"transport", "congestion", "offered_bps", "datagram_bytes", "direction"}
    reader.known("traffic", traffic, known)
    transport = reader.word(traffic, "traffic.transport", ("tcp", "udp"), "tcp")
    run: dict[str, Any] = {"transport": transport}
    if transport == "tcp":
        congestions = ("reno", "cubic", "bbr")
        run["congestion"] = reader.word(traffic, "traffic.congestion", congestions, "cubic")
    elif "offered_bps" not in traffic:
        raise reader.wrong("traffic.offered_bps", "nothing", "bits per second of data, for UDP")
    if "offered_bps" in traffic:
        run["offered_bps"] = reader.rate(traffic, "traffic.offered_bps")
    if "datagram_bytes" in traffic:
        run["datagram_bytes"] = reader.whole(traffic, "traffic.datagram_bytes", 16, 9_000)
    run["direction"] = reader.word(traffic, "traffic.direction", ("forward", "both"), "forward")
    return run


def _check(reader: _Reader, given: GivenLink, coding: Mapping[str, Any]) -> None:
    """Let the simulator check the plan, and report errors at the line of the user's file."""
    # As in the file, including keys that have no effect.
    own = tomllib.loads(given.plan(given.own))
    own["run"][0]["coding"] |= coding
    plans = [tomli_w.dumps(own)]
    if given.helper is not None:
        plans.append(given.plan(Coding("block", helper=True)))
    for plan in plans:
        try:
            _native.PlanRuns(plan, "", 1)
        except ValueError as error:
            words = _PLACE.sub("", str(error))
            if unknown := _UNKNOWN.match(words):
                key, table = unknown.groups()
                words = words.replace("[run.coding", "[coding")
                raise NetworkError(f"{reader.lines.of(f'{table}.{key}')}: {words}") from None
            words = words.replace("run.coding.", "coding.")
            key = words.split(" = ")[0].split(":")[0].strip().strip("`")
            name = next((new + key[len(old) :] for old, new in _NAMES.items()
                         if key.startswith(old)), key)  # fmt: skip
            words = words.replace(key, name, 1)
            raise NetworkError(f"{reader.lines.of(name)}: {words}") from None


class _Reader:
    """Reads values from tables, and reports where an invalid one stands."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def wrong(self, key: str, given: object, expected: str) -> NetworkError:
        """Return the error for a value."""
        return NetworkError(f"{self.lines.of(key)}: {key} = {given}: expected {expected}")

    def known(self, at: str, table: Mapping[str, Any], names: set[str]) -> None:
        """Raise an error for unknown keys."""
        for key in table:
            if key not in names:
                name = f"{at}.{key}".lstrip(".")
                raise self.wrong(name, table[key], "one of the keys " + ", ".join(sorted(names)))

    def table(
        self, table: Mapping[str, Any], key: str, left_out: Any = None, *, at: str = ""
    ) -> dict[str, Any]:
        """Return a subtable."""
        found = table.get(key, left_out)
        if not isinstance(found, dict):
            raise self.wrong(at or key, "nothing" if found is None else found, f"a table [{key}]")
        return found

    def number(
        self,
        table: Mapping[str, Any],
        key: str,
        least: float,
        most: float,
        left_out: float | None = None,
    ) -> float:
        """Return a number within its range."""
        found = table.get(key.rpartition(".")[2], left_out)
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        # NaN is in no range; TOML integers may be too large for a float.
        if not is_number or not least <= found <= most:
            given = "nothing" if found is None else found
            raise self.wrong(key, given, f"a number {least:g} to {most:g}")
        return float(found)

    def whole(
        self,
        table: Mapping[str, Any],
        key: str,
        least: int,
        most: int,
        left_out: int | None = None,
    ) -> int:
        """Return an integer within its range."""
        found = self.number(table, key, least, most, left_out)
        if found != round(found):
            raise self.wrong(key, found, f"a whole number {least} to {most}")
        return round(found)

    def flag(self, table: Mapping[str, Any], key: str, *, left_out: bool) -> bool:
        """Return a boolean."""
        found = table.get(key.rpartition(".")[2], left_out)
        if not isinstance(found, bool):
            raise self.wrong(key, found, "true or false")
        return found

    def word(
        self, table: Mapping[str, Any], key: str, words: tuple[str, ...], left_out: str
    ) -> str:
        """Return one of several words."""
        found = table.get(key.rpartition(".")[2], left_out)
        if found not in words:
            raise self.wrong(key, found, "one of " + ", ".join(words))
        return str(found)

    def rate(self, table: Mapping[str, Any], key: str) -> int:
        """Return a rate in bits per second, from a number or a string such as ``"12M"``."""
        found = table.get(key.rpartition(".")[2])
        expected = f'bits per second, as 12_000_000 or "12M", at most {RATE_BPS_MAX}'
        words = _RATE.fullmatch(found.strip()) if isinstance(found, str) else None
        try:
            bps = float(words[1]) * _UNITS[words[2]] if words else float(found)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            bps = math.nan
        if not 1 <= bps <= RATE_BPS_MAX or isinstance(found, bool):
            raise self.wrong(key, "nothing" if found is None else found, expected)
        return round(bps)
