"""All orderings in the paper: one-sided tests, adjusted for multiple testing."""

from collections.abc import Callable
from functools import partial

import numpy as np

from corridor import plot
from corridor.study.betzler import dynamic, runs, static
from corridor.study.betzler.runs import (
    BACKOFF,
    COMPLETED,
    METRIC,
    RETRIES,
    RTO,
    RTT,
    TIMEOUTS,
    WINDOW,
    Runs,
)
from corridor.study.betzler.static import EXPONENTIAL, GOODPUT, TINYOS, Setting
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

#: Differences whose sign is tested: a sample per replication, or per pair of ends.
Test = Callable[[], runs.Samples]


def _logs(
    data: Runs, name: str, ours: Setting, others: Setting, of: Runs | None = None
) -> runs.Samples:
    """Logarithms of ratios, one sample per replication."""
    return runs.log_ratios(data.at(name, ours), (of or data).at(name, others))


def _less(data: Runs, name: str, ours: Setting, others: Setting, of: Runs) -> runs.Samples:
    """The same with the sign reversed: by how much ours is less."""
    return -_logs(data, name, ours, others, of)


def _by_retries(data: Runs, name: str, window: int, counts: tuple[int, int]) -> runs.Samples:
    """Advantage of the first number of retries over the second."""
    ours, others = ({WINDOW: window, RETRIES: count} for count in counts)
    return _logs(data, name, {**ours}, {**others})


def _pairs(data: Runs, name: str, window: int) -> runs.Samples:
    """Advantage of PATH-DR over hop count: a sample per pair of ends."""
    ours, others = (
        runs.nanmean(data.at(name, {WINDOW: window, METRIC: metric}), axis=1)
        for metric in (dynamic.PATH_DR, dynamic.HOP_COUNT)
    )
    if name == GOODPUT:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(ours / others))
    return np.asarray(ours - others)


def _all_tests(context: Context) -> dict[str, Test]:
    data, retries = Runs.of(context, "static"), Runs.of(context, "retries")
    rules, positive = Runs.of(context, "rules"), Runs.of(context, "positive")
    rto, moving = Runs.of(context, "rto"), Runs.of(context, "dynamic")
    largest = int(data.values(WINDOW)[-1])
    tests: dict[str, Test] = {}

    def backoff(window: int, of: str) -> Setting:
        return {WINDOW: window, BACKOFF: of}

    def plain(window: int) -> Setting:
        return {WINDOW: window}

    tests["011 exponential gains at window 1"] = lambda: _logs(
        data, GOODPUT, backoff(1, EXPONENTIAL), backoff(1, TINYOS)
    )
    tests["011 the gain rises with links"] = lambda: _slopes(data)
    tests["013 more transmissions fail"] = lambda: runs.nanmean(
        static._failed(data, backoff(largest, EXPONENTIAL))
        - static._failed(data, backoff(largest, TINYOS)),
        axis=0,
    )
    tests["013 more frames are given up"] = lambda: runs.nanmean(
        static._dropped(data, backoff(largest, EXPONENTIAL))
        - static._dropped(data, backoff(largest, TINYOS)),
        axis=0,
    )
    for window in (4, 8):
        for less, more in ((1, 3), (3, 5), (5, 7)):
            tests[f"014 window {window}: goodput, {more} over {less} retries"] = partial(
                _by_retries, retries, GOODPUT, window, (more, less)
            )
        tests[f"014 window {window}: round trips, 7 over 3 retries"] = partial(
            _by_retries, retries, RTT, window, (7, 3)
        )
    tests["016 more are completed, 7 over 1 retries"] = lambda: runs.nanmean(
        rules.at(COMPLETED, {TIMEOUTS: 5, RETRIES: 7})
        - rules.at(COMPLETED, {TIMEOUTS: 5, RETRIES: 1}),
        axis=0,
    )
    windows = [int(window) for window in moving.values(WINDOW)]
    tests["018 PATH-DR has longer routes"] = lambda: _over_windows(moving, dynamic.LINKS, windows)
    tests["019 PATH-DR completes more"] = lambda: _over_windows(moving, COMPLETED, windows)
    for window in windows:
        tests[f"020 window {window}: PATH-DR has more goodput"] = partial(
            _pairs, moving, GOODPUT, window
        )
    for window in (int(each) for each in positive.values(WINDOW) if int(each) > 1):
        own, other = backoff(window, TINYOS), plain(window)
        tests[f"021 window {window}: cumulative has more goodput"] = partial(
            _logs, data, GOODPUT, own, other, positive
        )
        tests[f"023 window {window}: cumulative has shorter round trips"] = partial(
            _less, data, RTT, own, other, positive
        )
    for algorithm in ("coap", "semi-dynamic"):
        tests[f"026 RFC 6298 over {algorithm}, several links"] = partial(
            _timeouts, data, rto, algorithm
        )
    tests["032 more than the recommended window costs goodput"] = lambda: (
        dynamic.beyond_recommended(moving)
    )
    return tests


def _over_windows(data: Runs, name: str, windows: list[int]) -> runs.Samples:
    return np.asarray(runs.nanmean([_pairs(data, name, window) for window in windows], axis=0))


def _slopes(data: Runs) -> runs.Samples:
    """Slope of the gain over the number of links at window 1, per replication."""
    ours = data.at(GOODPUT, {WINDOW: 1, BACKOFF: EXPONENTIAL})
    gains = ours / data.at(GOODPUT, {WINDOW: 1, BACKOFF: TINYOS}) - 1
    links = data.links({WINDOW: 1, BACKOFF: TINYOS})
    return np.array(
        [
            np.polyfit(links[there], column[there], 1)[0]
            for column in gains.T
            if (there := ~np.isnan(column)).sum() > 1
        ]
    )


def _timeouts(data: Runs, rto: Runs, algorithm: str) -> runs.Samples:
    """Advantage of RFC 6298 over an algorithm on multi-hop routes, with windows above 1."""
    found = []
    for window in (int(each) for each in rto.values(WINDOW) if int(each) > 1):
        base: Setting = {WINDOW: window, BACKOFF: TINYOS}
        many = np.rint(data.links(base)) > 1
        ours = data.at(GOODPUT, base)[many]
        found.append(runs.log_ratios(ours, rto.at(GOODPUT, {WINDOW: window, RTO: algorithm})[many]))
    return np.asarray(runs.nanmean(found, axis=0))


def orderings(context: Context) -> Findings:
    """Test each ordering one-sided, and adjust for multiple testing (Holm)."""
    tests = _all_tests(context)
    p_values = [runs.greater(test()) for test in tests.values()]
    adjusted = runs.holm(p_values)
    rows = [
        {"ordering": name, "p": p, "adjusted": after, "shown": after <= runs.LEVEL}
        for name, p, after in zip(tests, p_values, adjusted, strict=True)
    ]
    measured: dict[str, Measured] = {}
    for row in rows:
        claim = f"BETZLER-{str(row['ordering'])[:3]}-H"
        measured[claim] = bool(measured.get(claim, True)) and bool(row["shown"])
    figure, (axes,) = plot.panels(1)
    axes.barh(range(len(rows)), [max(after, 1e-12) for after in adjusted])
    axes.set_yticks(range(len(rows)), [name[:3] for name in tests], fontsize=5)
    axes.axvline(runs.LEVEL, color="C1")
    axes.set_xscale("log")
    plot.labelled(axes, "orderings", "p, adjusted", "claim", legend=False)
    return Findings(measured, rows, figure)
