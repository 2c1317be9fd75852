"""What advice is worth: random networks, fresh histories, and an exhaustive search.

``python -m corridor.advise.proof --out out/bench/advise.json``; ``make bench-advise`` does so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from corridor import COMMIT
from corridor._progress import Bar
from corridor.advise import sample
from corridor.advise.network import Given, NetworkError, read_table
from corridor.advise.sample import REPLAY_FROM, Sampler
from corridor.advise.search import Advice, advise
from corridor.advise.settings import Setting, grid

#: Most nodes of a random network, and how many flows it has.
NODES_MIN, NODES_MAX, FLOWS = 5, 20, 3
#: Packets of its transfers: 12 kB.
PACKETS = 128
#: How far nodes reach at the mean, metres, and the spread of links about that, dB: the random
#: networks have one to five links between their ends.
REACH_M, SHADOWING_DB, EXPONENT = 10.0, 4.0, 3.0
#: Places that are drawn before one has no network in one piece.
DRAWS_MAX = 1_000
#: Histories that the best settings of an exhaustive search are compared over, and again as many.
REGRET_HISTORIES = 150
#: What is promised: no interval wholly below this gain; a gain that counts as predicted; how many
#: of those have to be better; most that may be lost against an exhaustive search.
WORST, PREDICTED, BETTER, REGRET = -0.02, 0.05, 0.95, 0.03


def network(seed: int) -> Given:
    """Draw a network: nodes in a square, links by distance and shadowing, some flows.

    Defaults are those of the standards, or, for every second network, those of the paper's testbed
    with a window drawn from 1 to 8.
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
    """Return the gain over histories that advice has not seen."""
    pair = (advice.setting, advice.given.defaults)
    sampler = Sampler(advice.given, list(dict.fromkeys(pair)), advice.seed)
    sampler.run(list(dict.fromkeys(pair)), count, REPLAY_FROM)
    ours, others = (sampler.transfers(each, count, REPLAY_FROM) for each in pair)
    return sample.gain(ours, others, confidence)


def regret(advice: Advice, screen: int, count: int) -> tuple[float, Setting]:
    """Return the share that is lost against the best of all settings, and which that is.

    All settings are screened, the best twelve compared over more histories; of those that let more
    transfers fail than the defaults none is the best. What is lost is found over as many histories
    again, so that the best is not the luckiest.
    """
    defaults, settings = advice.given.defaults, grid(advice.given.defaults)
    sampler = Sampler(advice.given, settings, advice.seed)
    sampler.run(settings, screen, REPLAY_FROM)
    seen = {each: sampler.transfers(each, screen, REPLAY_FROM) for each in settings}
    ranked = sorted(settings, key=lambda each: -seen[each].goodput_bps)
    left = list(dict.fromkeys([advice.setting, defaults, *ranked[:12]]))
    sampler.run(left, count, REPLAY_FROM)
    seen = {each: sampler.transfers(each, count, REPLAY_FROM) for each in left}
    fine = [each for each in left if seen[each].success >= seen[defaults].success]
    best = max(fine, key=lambda each: seen[each].goodput_bps)
    ours, others = (
        sampler.transfers(each, count, REPLAY_FROM + count) for each in (advice.setting, best)
    )
    return 1 - ours.goodput_bps / others.goodput_bps, best


def main() -> int:
    """Run the proof, and leave its figures; ends with 1 if a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench/advise.json"))
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--exhaustive", type=int, default=10)
    parser.add_argument("--budget", type=float, default=10.0, help="of advice, millions of events")
    parser.add_argument("--replays", type=int, default=120, help="fresh histories of each network")
    parser.add_argument("--first", type=int, default=0, help="number of the first network")
    asked = parser.parse_args()
    begun = time.perf_counter()
    rows: list[dict[str, Any]] = []
    confidence = 1 - 0.05 / asked.networks
    with Bar("networks") as bar:
        for done in range(asked.networks):
            bar.told("networks", done, asked.networks)
            rows.append(_row(asked, asked.first + done, confidence, done < asked.exhaustive))
            _leave(asked.out, rows, time.perf_counter() - begun, asked)
    for check in _checks(rows):
        print(f"{'ok' if check['ok'] else 'FAILED'}: {check['name']}: {check['words']}")
    return 0 if all(check["ok"] for check in _checks(rows)) else 1


def _row(asked: Any, seed: int, confidence: float, is_exhaustive: bool) -> dict[str, Any]:
    begun = time.perf_counter()
    given = network(seed)
    advice = advise(given, budget=asked.budget)
    seconds = time.perf_counter() - begun
    found = replay(advice, asked.replays, confidence)
    row = {
        "network": seed,
        "nodes": len(given.names),
        "changes": advice.changes,
        "transfers": advice.runs,
        "seconds": round(seconds, 2),
        "predicted": advice.gain.row(),
        "replayed": found.row(),
        "success": advice.ours.success,
        "success_defaults": advice.defaults.success,
    }
    if is_exhaustive:
        lost, best = regret(advice, 20, REGRET_HISTORIES)
        row |= {"regret": lost, "best": given.defaults.changes(best)}
    return row


def _checks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    worse = [row["network"] for row in rows if row["replayed"]["high"] < WORST]
    promised = [row for row in rows if row["predicted"]["value"] >= PREDICTED]
    better = [row for row in promised if row["replayed"]["value"] > 0]
    share = len(better) / len(promised) if promised else 1.0
    regrets = [row["regret"] for row in rows if "regret" in row]
    seconds = [row["seconds"] for row in rows]
    return [
        {
            "name": "never-worse",
            "ok": not worse,
            "words": f"of {len(rows)} networks {len(worse)} have a simultaneous 95 % interval "
            f"wholly below {WORST:.0%}: {worse}",
        },
        {
            "name": "predicted-gains",
            "ok": share >= BETTER,
            "words": f"better in {len(better)} of {len(promised)} that predict {PREDICTED:.0%}",
        },
        {
            "name": "regret",
            "ok": all(each <= REGRET for each in regrets),
            "words": f"most that is lost on {len(regrets)} networks: "
            f"{max(regrets, default=float('nan')):.1%}",
        },
        {
            "name": "two-minutes",
            "ok": max(seconds) <= 120,
            "words": f"longest answer {max(seconds):.0f} s, median {np.median(seconds):.0f} s",
        },
    ]


def _leave(path: Path, rows: list[dict[str, Any]], seconds: float, asked: Any) -> None:
    machine = {
        "processors": os.cpu_count(), "system": platform.system(), "arch": platform.machine()
    }  # fmt: skip
    found = {
        "bench": "advise", "commit": COMMIT, "machine": machine, "seconds": round(seconds, 1),
        "asked": {k: str(v) if isinstance(v, Path) else v for k, v in vars(asked).items()},
        "checks": _checks(rows), "networks": rows,
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
