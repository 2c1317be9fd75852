"""Evaluates advice: random networks, fresh histories, and an exhaustive search.

``python -m corridor.advise.proof --out out/bench/advise.json``, as run by ``make bench-advise``;
``make bench-advise-regret`` runs only the part that needs the exhaustive search. Networks with rows
in the file are skipped, so that an interrupted run resumes, and partial runs add up.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from corridor import COMMIT
from corridor._progress import Bar
from corridor.advise import alike, sample, search, settings
from corridor.advise.network import Given, NetworkError, read_table
from corridor.advise.sample import REPLAY_FROM, Sampler
from corridor.advise.search import BUDGET, Advice, advise
from corridor.advise.settings import Setting, grid

#: Number of networks, and number of those for which all settings are run.
NETWORKS, EXHAUSTIVE = 200, 10
#: Minimum and maximum number of nodes of a random network, and its number of flows.
NODES_MIN, NODES_MAX, FLOWS = 5, 20, 3
#: Packets per transfer: 12 kB.
PACKETS = 128
#: Mean range of nodes, metres, shadowing, dB, and path-loss exponent: the random networks have one
#: to five links between the ends of a flow.
REACH_M, SHADOWING_DB, EXPONENT = 10.0, 4.0, 3.0
#: Maximum attempts at drawing node positions that give a connected network.
DRAWS_MAX = 1_000
#: Fresh histories per network. If the logarithm of the gain has a standard deviation of 0.4 between
#: histories, as in random networks, each of 200 simultaneous intervals extends 10 % to either side.
REPLAYS = 240
#: Histories over which to compare the best settings of an exhaustive search, and as many again.
REGRET_HISTORIES = 150
#: Histories per setting for the fingerprint of the advisor.
FINGERPRINT_HISTORIES = 6
#: The criteria: no interval wholly below this gain; a gain that counts as predicted; the fraction
#: of those that must be real; the maximum regret against an exhaustive search.
WORST, PREDICTED, BETTER, REGRET = -0.02, 0.05, 0.95, 0.03
#: Maximum time of an answer on two processors, seconds.
PATIENCE_S = 120.0


def network(seed: int) -> Given:
    """Draw a network: nodes in a square, links by distance and shadowing, several flows.

    The defaults are those of the standards or, for every second network, those of the paper's
    testbed with a window drawn from 1 to 8.
    """
    draw = np.random.default_rng(seed)
    for _ in range(DRAWS_MAX):
        count = int(draw.integers(NODES_MIN, NODES_MAX + 1))
        side_m = REACH_M * float(draw.uniform(0.45, 0.75)) * count**0.5
        places = draw.uniform(0, side_m, (count, 2))
        lines = ["from,to,rssi_dbm"]
        for a in range(count):
            for b in range(a + 1, count):
                distance_m = max(float(np.hypot(*(places[a] - places[b]))), 1.0)
                fall_db = 10 * EXPONENT * np.log10(distance_m / REACH_M)
                rssi_dbm = -91.0 - fall_db + SHADOWING_DB * float(draw.normal())
                lines.append(f"{a},{b},{min(rssi_dbm, 0.0):.2f}")
        ends = [draw.choice(count, 2, replace=False) for _ in range(FLOWS)]
        flows = [(str(a), str(b)) for a, b in ends]
        own = Setting()
        if seed % 2:
            window = int(draw.integers(1, 9))
            own = Setting(backoff="tinyos-paper", window=window)
        try:
            name = Path(f"random-{seed}")
            return read_table(name, "\n".join(lines), flows=flows, packets=PACKETS, defaults=own)
        except NetworkError:
            continue
    raise ValueError(f"seed = {seed}: expected a network in one piece in {DRAWS_MAX} draws")


def replay(advice: Advice, count: int, confidence: float) -> sample.Estimate:
    """Return the gain over histories that the advice has not seen."""
    pair = (advice.setting, advice.given.defaults)
    sampler = Sampler(advice.given, list(dict.fromkeys(pair)), advice.seed)
    sampler.run(list(dict.fromkeys(pair)), count, REPLAY_FROM)
    ours, others = (sampler.transfers(each, count, REPLAY_FROM) for each in pair)
    return sample.gain(ours, others, confidence)


def regret(advice: Advice, screen: int, count: int) -> tuple[float, Setting]:
    """Return the relative loss against the best of all settings, and which that is.

    All settings are screened, and the best twelve compared over more histories; a setting that lets
    more transfers fail than the defaults cannot be the best. The loss is measured over a further,
    equal number of histories, so that the best is not merely the luckiest.
    """
    defaults, settings = advice.given.defaults, grid(advice.given.defaults)
    sampler = Sampler(advice.given, settings, advice.seed)
    sampler.run(settings, screen, REPLAY_FROM)
    seen = {each: sampler.transfers(each, screen, REPLAY_FROM) for each in settings}
    ranked = sorted(settings, key=lambda each: -seen[each].goodput_bps)
    left = list(dict.fromkeys([advice.setting, defaults, *ranked[:12]]))
    sampler.run(left, count, REPLAY_FROM)
    seen = {each: sampler.transfers(each, count, REPLAY_FROM) for each in left}
    fine = [each for each in left if not sample.lets_more_fail(seen[each], seen[defaults])]
    best = max(fine, key=lambda each: seen[each].goodput_bps)
    ours, others = (
        sampler.transfers(each, count, REPLAY_FROM + count) for each in (advice.setting, best)
    )
    return 1 - ours.goodput_bps / others.goodput_bps, best


@dataclass(frozen=True)
class Asked:
    """Parameters of the proof: a row must match them to belong to it."""

    #: Budget of each advice, millions of events.
    budget: float = BUDGET
    #: Fresh histories per network.
    replays: int = REPLAYS
    #: Networks of the whole proof, which determine the simultaneous intervals, however few run now.
    whole: int = NETWORKS

    @property
    def confidence(self) -> float:
        """Confidence level of each interval, for 95 % simultaneously (Bonferroni)."""
        return 1 - 0.05 / self.whole

    def row(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"advisor": fingerprint(), **asdict(self)}


@cache
def fingerprint() -> str:
    """Return a digest of the advisor: rows of another advisor do not belong to this proof.

    It covers the syntax trees of the searching modules, without comments, and the results of some
    transfers: rows stay valid across a commit that changes neither.
    """
    found = sha256()
    for module in (alike, sample, search, settings):
        text = Path(str(module.__file__)).read_text(encoding="utf-8")
        found.update(ast.dump(ast.parse(text)).encode())
    for number in range(2):
        given = network(number)
        tried = grid(given.defaults)
        few = [tried[0], tried[len(tried) // 2], tried[-1]]
        sampler = Sampler(given, few)
        for each in few:
            for values in asdict(sampler.transfers(each, FINGERPRINT_HISTORIES)).values():
                found.update(values.tobytes())
    return found.hexdigest()[:12]


def main() -> int:
    """Run the proof, and save its figures; exits with 1 if a criterion is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench/advise.json"))
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    parser.add_argument("--networks", type=int, help="how many are run (default: to the last)")
    parser.add_argument("--whole", type=int, default=NETWORKS, help="how many the proof is of")
    parser.add_argument("--exhaustive", type=int, default=EXHAUSTIVE,
                        help="of how many, from number 0 on, all settings are run")  # fmt: skip
    parser.add_argument("--only-exhaustive", action="store_true", help="no others")
    parser.add_argument("--budget", type=float, default=BUDGET, help="millions of events")
    parser.add_argument("--replays", type=int, default=REPLAYS, help="fresh histories of each")
    given = parser.parse_args()
    asked = Asked(given.budget, given.replays, given.whole)
    count = given.whole - given.first if given.networks is None else given.networks
    last = min(given.first + count, given.exhaustive if given.only_exhaustive else given.whole)
    file = _File(given.out, asked)
    with Bar("networks") as bar:
        for told in _run(file, range(given.first, last), given.exhaustive):
            print(told, flush=True)
            bar.told("networks", len(file.rows), given.whole)
    checks = _checks(list(file.rows.values()), given.whole)
    for check in checks:
        words = "holds" if check["holds"] else "DOES NOT HOLD"
        print(f"{words}: {check['name']}: {check['value']} ({check['sense']} {check['limit']})")
    return 0 if all(check["holds"] for check in checks) else 1


class _File:
    """Rows on disk, by network number."""

    def __init__(self, path: Path, asked: Asked) -> None:
        self.path, self.asked = path, asked
        self.rows: dict[int, dict[str, Any]] = {}
        if not path.is_file():
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["asked"] == asked.row():
                self.rows = {int(row["network"]): row for row in found["networks"]}
            else:
                said = ", ".join(f"{key} = {value}" for key, value in found["asked"].items())
                kept = path.replace(path.with_suffix(".before.json"))
                print(f"{said}: another proof, kept in {kept}; begun anew", flush=True)
        except (ValueError, KeyError, TypeError) as error:
            raise SystemExit(f"{path}: {error!r}: expected what this has left") from None

    def keep(self, row: dict[str, Any]) -> None:
        """Save a row with the others: all of them, or after an interruption those before it."""
        self.rows[row["network"]] = row
        rows = [self.rows[number] for number in sorted(self.rows)]
        machine = {
            "processors": os.cpu_count(), "system": platform.system(), "arch": platform.machine()
        }  # fmt: skip
        found = {
            "bench": "advise", "commit": COMMIT, "machine": machine, "asked": self.asked.row(),
            "seconds": round(sum(each["seconds"] + each["checked_s"] for each in rows), 1),
            "checks": _checks(rows, self.asked.whole), "networks": rows,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        part.replace(self.path)


def _run(file: _File, numbers: Sequence[int], exhaustive: int) -> Iterator[str]:
    """Run the missing networks, and print after each the estimated time left."""
    ahead = [n for n in numbers if not _is_done(file.rows.get(n), is_exhaustive=n < exhaustive)]
    if len(ahead) < len(numbers):
        yield f"{len(numbers) - len(ahead)} of {len(numbers)} networks are there"
    # An exhaustive search takes several times as long: estimate the time left for each kind.
    taken: dict[bool, list[float]] = {}
    for done, number in enumerate(ahead, 1):
        begun, is_exhaustive = time.perf_counter(), number < exhaustive
        row = _row(file.asked, number, is_exhaustive)
        file.keep(row)
        taken.setdefault(is_exhaustive, []).append(time.perf_counter() - begun)
        left_s = sum(_expected(taken, other < exhaustive) for other in ahead[done:])
        yield f"{done} of {len(ahead)}: {_told(row)}; {_clock(left_s)} left"


def _is_done(row: Mapping[str, Any] | None, *, is_exhaustive: bool) -> bool:
    """Return whether a network need not be run again.

    A network whose answer took too long is run again: the machine may have been busy.
    """
    if row is None or row["seconds"] > PATIENCE_S:
        return False
    return "regret" in row or not is_exhaustive


def _expected(taken: dict[bool, list[float]], is_exhaustive: bool) -> float:
    """Return the expected time for a network, from those of its kind, or else from the others."""
    own = taken.get(is_exhaustive) or next(iter(taken.values()))
    return sum(own) / len(own)


def _told(row: dict[str, Any]) -> str:
    predicted, replayed = (100 * row[key]["value"] for key in ("predicted", "replayed"))
    lost = f", regret {100 * row['regret']:.1f} %" if "regret" in row else ""
    return (
        f"network {row['network']}, {row['nodes']} nodes: predicted {predicted:+.1f} %, "
        f"replayed {replayed:+.1f} %{lost}, {row['seconds']:.0f} s"
    )


def _clock(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _row(asked: Asked, number: int, is_exhaustive: bool) -> dict[str, Any]:
    begun, begun_cpu = time.perf_counter(), time.process_time()
    given = network(number)
    advice = advise(given, budget=asked.budget)
    seconds, cpu_s = time.perf_counter() - begun, time.process_time() - begun_cpu
    found = replay(advice, asked.replays, asked.confidence)
    row = {
        "network": number,
        "commit": COMMIT,
        "nodes": len(given.names),
        "changes": advice.changes,
        "transfers": advice.runs,
        "seconds": round(seconds, 2),
        "cpu_s": round(cpu_s, 2),
        "predicted": advice.gain.row(),
        "replayed": found.row(),
        "success": advice.ours.success,
        "success_defaults": advice.defaults.success,
    }
    if is_exhaustive:
        lost, best = regret(advice, 20, REGRET_HISTORIES)
        row |= {"regret": lost, "best": given.defaults.changes(best)}
    return {**row, "checked_s": round(time.perf_counter() - begun - seconds, 2)}


def _checks(rows: list[dict[str, Any]], whole: int) -> list[dict[str, Any]]:
    worse = [row["network"] for row in rows if row["replayed"]["high"] < WORST]
    promised = [row for row in rows if row["predicted"]["value"] >= PREDICTED]
    better = [row for row in promised if row["replayed"]["value"] > 0]
    share = len(better) / len(promised) if promised else 1.0
    regrets = [row["regret"] for row in rows if "regret" in row]
    seconds = [row["seconds"] for row in rows]
    return [
        _check("networks", float(len(rows)), "at least", whole),
        _check(
            "networks whose settings were all run",
            float(len(regrets)),
            "at least",
            min(EXHAUSTIVE, whole),
        ),
        _check("networks with an interval wholly below -2 %", float(len(worse)), "at most", 0),
        _check("share better of those that predict 5 %", share, "at least", BETTER),
        _check("greatest regret", max(regrets, default=None), "at most", REGRET),
        _check("longest answer", max(seconds, default=None), "at most", PATIENCE_S, "s"),
    ]


def _check(
    name: str, value: float | None, sense: str, limit: float, unit: str = "1"
) -> dict[str, Any]:
    """Return a check in the format of the other benchmarks."""
    holds = value is not None and (value <= limit if sense == "at most" else value >= limit)
    return {
        "name": name, "value": value, "unit": unit, "sense": sense, "limit": limit, "holds": holds
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
