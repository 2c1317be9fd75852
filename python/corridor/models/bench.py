"""Time the models: ``python -m corridor.models.bench``."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from corridor.models import base_stations, coding, tcp, tcp_nc

#: Number of points at which each function is evaluated.
POINTS = 1_000_000
#: Repetitions of each; the shortest time is printed.
RUNS = 5


def main() -> None:
    """Print one line per function: the shortest time for all points, in seconds."""
    rng = np.random.default_rng(2012)
    p, rtt = rng.uniform(0, tcp.ERASURE_MAX, POINTS), rng.uniform(0.01, 2, POINTS)
    ratios = rng.uniform(0, 0.95, (3, POINTS))
    functions: dict[str, Callable[[], object]] = {
        "Eq. 16": lambda: tcp.throughput(p, rtt),
        "Eq. 20": lambda: tcp_nc.throughput(1000, rtt),
        "Eq. 22": lambda: base_stations.base_stations(1.0, 1 - p, 0.03, 3.2),
        "optimum": lambda: coding.optimum(150, *ratios),
        "PlayNCool": lambda: coding.playncool(150, *ratios),
    }
    for name, function in functions.items():
        print(f"{name:10} {min(_seconds(function) for _ in range(RUNS)):6.3f} s")


def _seconds(function: Callable[[], object]) -> float:
    begun = time.perf_counter()
    function()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
