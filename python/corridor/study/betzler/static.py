"""Figs. 2 to 5, 7, 8 and 9a: transfers over routes discovered beforehand, which stay fixed."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from corridor import plot
from corridor.models import constrained
from corridor.study.betzler import runs
from corridor.study.betzler.runs import (
    BACKOFF,
    COMPLETED,
    PROCESSING,
    RETRIES,
    RTO,
    RTT,
    TIMEOUTS,
    WINDOW,
    Runs,
)
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

GOODPUT = "flow.transfer_goodput_bps"
TIMEOUT = "flow.rto_mean_s"
TINYOS, EXPONENTIAL, STANDARD = "tinyos-paper", "exponential-paper", "standard"
Setting = dict[str, float | str]


def _windows(data: Runs) -> list[int]:
    return [int(window) for window in data.values(WINDOW)]


def _failed(data: Runs, wanted: Setting) -> runs.Samples:
    """Fraction of unicast transmissions that were not acknowledged."""
    frames, given_up, blocked, attempts = (
        data.at(name, wanted)
        for name in ("frames_sent", "frames_given_up", "frames_blocked", "frame_attempts")
    )
    return 1 - (frames - given_up - blocked) / attempts


def _dropped(data: Runs, wanted: Setting) -> runs.Samples:
    """Fraction of frames that the MAC gave up."""
    dropped = data.at("frames_given_up", wanted) + data.at("frames_blocked", wanted)
    return dropped / data.at("frames_sent", wanted)


def _by_links(data: Runs, wanted: Setting, samples: runs.Samples) -> dict[int, float]:
    """Means by route length."""
    links = np.rint(data.links(wanted)).astype(int)
    return {
        int(length): runs.mean(samples[links == length]) for length in sorted(set(links.tolist()))
    }


def _curves(
    axes: Axes,
    data: Runs,
    over: Mapping[int, Setting],
    of: Callable[[Setting], runs.Samples],
    scale: float = 1.0,
) -> None:
    """Plot a quantity over the windows, one curve per route length."""
    found = {window: _by_links(data, wanted, of(wanted)) for window, wanted in over.items()}
    for length in next(iter(found.values())):
        heights = [found[window].get(length, float("nan")) * scale for window in found]
        axes.plot(list(found), heights, "o-", markersize=4, label=f"{length} links")


def _slope(values: Sequence[float], at: Sequence[float]) -> float:
    return float(np.polyfit(at, values, 1)[0])


def backoff(context: Context) -> Findings:
    """Fig. 2: gain of exponential over TinyOS backoff, by window and route length."""
    data, work = Runs.of(context, "static"), Runs.of(context, "work")
    windows = _windows(data)

    def logs(window: int, of: str = EXPONENTIAL) -> runs.Samples:
        ours = data.at(GOODPUT, {WINDOW: window, BACKOFF: of})
        return np.log(ours / data.at(GOODPUT, {WINDOW: window, BACKOFF: TINYOS}))

    rows: list[dict[str, Any]] = []
    gains: dict[int, dict[int, float]] = {}

    def forward(links: int, ms: float = 0.0) -> float:
        """Gain in the store-and-forward model, with processing and the experiment's sizes."""
        sizes = (float(context.parameter(name)) for name in ("data_bytes", "ack_bytes"))
        return 100 * float(constrained.backoff_gain(links, 2e-3 * ms, *sizes))

    for window in windows:
        wanted: Setting = {WINDOW: window, BACKOFF: TINYOS}
        by_links = _by_links(data, wanted, logs(window))
        standard = _by_links(data, wanted, logs(window, STANDARD))
        gains[window] = by_links
        rows += [
            {
                "window": window,
                "links": links,
                "gain / %": 100 * float(np.expm1(gain)),
                "gain with macMaxCSMABackoffs 4 / %": 100 * float(np.expm1(standard[links])),
                "store and forward / %": forward(links) if window == 1 else float("nan"),
            }
            for links, gain in by_links.items()
        ]
    links = list(gains[1])
    at_one = [float(np.expm1(gain)) for gain in gains[1].values()]
    largest = windows[-1]
    spread = {window: float(np.nanstd(logs(window))) for window in (1, largest)}
    measured: dict[str, Measured] = {
        "BETZLER-011": float(np.exp(runs.nanmean(logs(1)))),
        "BETZLER-011-H": _slope(at_one, links),
        "BETZLER-011-S": float(np.exp(runs.nanmean(logs(1)) - runs.nanmean(logs(largest)))),
        "BETZLER-012": spread[largest] / spread[1],
    }
    figure, (left, right) = plot.panels(2)
    for length in links:
        heights = [100 * float(np.expm1(gains[window].get(length, np.nan))) for window in windows]
        left.plot(windows, heights, "o-", markersize=4, label=f"{length} links")
    plot.labelled(left, "exponential over TinyOS backoff", "window / packets", "gain / %")
    for ms, steps in _gain_by_work(work).items():
        (line,) = right.plot(
            list(steps), [100 * gain for gain in steps.values()], "o-", label=f"{ms:g} ms"
        )
        model = [forward(length, ms) for length in steps]
        right.plot(list(steps), model, "--", color=line.get_color(), alpha=0.6)
        measured[f"BETZLER-011-W{ms:g}"] = _slope(list(steps.values()), list(steps))
        rows += [
            {
                "window": f"1, {ms:g} ms of work",
                "links": length,
                "gain / %": 100 * gain,
                "gain with macMaxCSMABackoffs 4 / %": float("nan"),
                "store and forward / %": forward(length, ms),
            }
            for length, gain in steps.items()
        ]
    plot.labelled(
        right, "window 1, by work at each end (dashed: store and forward)", "links", "gain / %"
    )
    return Findings(measured, rows, figure)


def _gain_by_work(work: Runs) -> dict[float, dict[int, float]]:
    """Gains of exponential backoff at window 1, by processing time at the ends, ms, and links."""
    found = {}
    for ms in work.values(PROCESSING):
        wanted: Setting = {PROCESSING: ms, BACKOFF: EXPONENTIAL}
        ours, others = work.at(GOODPUT, wanted), work.at(GOODPUT, {**wanted, BACKOFF: TINYOS})
        gains = _by_links(work, wanted, np.log(ours / others))
        found[float(ms)] = {links: float(np.expm1(gain)) for links, gain in gains.items()}
    return found


def failures(context: Context) -> Findings:
    """Fig. 3: failed transmissions and dropped frames, by backoff."""
    data = Runs.of(context, "static")
    windows = _windows(data)
    rows = []
    shares: dict[tuple[str, int], tuple[float, float]] = {}
    for of in (TINYOS, EXPONENTIAL, STANDARD):
        for window in windows:
            wanted: Setting = {WINDOW: window, BACKOFF: of}
            shares[of, window] = runs.mean(_failed(data, wanted)), runs.mean(_dropped(data, wanted))
            rows.append(
                {
                    "backoff": of,
                    "window": window,
                    "failed / %": 100 * shares[of, window][0],
                    "given up / %": 100 * shares[of, window][1],
                }
            )
    largest = windows[-1]
    measured: dict[str, Measured] = {
        "BETZLER-013": shares[EXPONENTIAL, largest][0] / shares[TINYOS, largest][0],
        "BETZLER-013-D": shares[EXPONENTIAL, largest][1] / shares[TINYOS, largest][1],
        "BETZLER-013-W": _slope([shares[EXPONENTIAL, w][0] for w in windows], windows),
    }
    figure, panels = plot.panels(2)
    for place, (axes, what) in enumerate(zip(panels, ("failed", "given up"), strict=True)):
        for of in (TINYOS, EXPONENTIAL, STANDARD):
            heights = [100 * shares[of, window][place] for window in windows]
            axes.plot(windows, heights, "o-", markersize=4, label=of)
        plot.labelled(axes, what, "window / packets", f"{what} / %")
    return Findings(measured, rows, figure)


def retries(context: Context) -> Findings:
    """Fig. 4: goodput and round-trip time over the retry limit."""
    data = Runs.of(context, "retries")
    counts = [int(count) for count in data.values(RETRIES)]
    windows = [window for window in _windows(data) if window > 1]
    measured: dict[str, Measured] = {}
    rows = []

    def at(name: str, window: int, count: int) -> runs.Samples:
        return data.at(name, {WINDOW: window, RETRIES: count})

    for window in windows:
        base = at(GOODPUT, window, 3)
        for count in counts:
            rows.append(
                {
                    "window": window,
                    "retries": count,
                    "goodput over that of 3": runs.ratio(at(GOODPUT, window, count), base),
                    "round trip / ms": 1e3 * runs.mean(at(RTT, window, count)),
                    "completed / %": 100 * runs.mean(at(COMPLETED, window, count)),
                }
            )
        for less, more in pairwise(counts):
            gain = runs.ratio(at(GOODPUT, window, more), at(GOODPUT, window, less))
            measured[f"BETZLER-014-{window}-{more}"] = gain
        rise = runs.ratio(at(RTT, window, counts[-1]), at(RTT, window, 3))
        measured[f"BETZLER-014-R{window}"] = rise
    measured["BETZLER-015"] = max(
        runs.equivalence(runs.log_ratios(at(GOODPUT, 1, count), at(GOODPUT, 1, 3)))
        for count in counts
        if count != 3
    )
    figure, panels = plot.panels(2)
    for axes, key in zip(panels, ("goodput over that of 3", "round trip / ms"), strict=True):
        for window in windows:
            heights = [float(row[key]) for row in rows if row["window"] == window]
            axes.plot(counts, heights, "o-", markersize=4, label=f"window {window}")
        plot.labelled(axes, "routes of 1 to 6 links", "most retries", key)
    return Findings(measured, rows, figure)


def completed(context: Context) -> Findings:
    """Fig. 5: fraction of transfers completed, over the retry limit, by three rules."""
    data = Runs.of(context, "rules")
    counts = [int(count) for count in data.values(RETRIES)]
    rules = [int(rule) for rule in data.values(TIMEOUTS)]
    measured: dict[str, Measured] = {}
    rows = []
    figure, (axes,) = plot.panels(1)
    for rule in rules:
        shares = [
            100 * runs.mean(data.at(COMPLETED, {TIMEOUTS: rule, RETRIES: count}))
            for count in counts
        ]
        measured[f"BETZLER-016-{rule}"] = shares[-1]
        measured[f"BETZLER-016-T{rule}"] = shares[-1] - shares[0]
        axes.plot(counts, shares, "o-", markersize=4, label=f"gives up after {rule} timeouts")
        rows += [
            {"gives up after": rule, "retries": count, "completed / %": share}
            for count, share in zip(counts, shares, strict=True)
        ]
    plot.published(axes, counts[-1:], [context.published(f"BETZLER-016-{rules[0]}")])
    plot.labelled(axes, "windows 4 and 8, all lengths", "most retries", "completed / %")
    return Findings(measured, rows, figure)


def acknowledgements(context: Context) -> Findings:
    """Fig. 7: cumulative compared with positive acknowledgments."""
    data, positive = Runs.of(context, "static"), Runs.of(context, "positive")
    windows = _windows(positive)
    rows, gains, trips = [], [], []
    for window in windows:
        wanted: Setting = {WINDOW: window, BACKOFF: TINYOS}
        ours = {name: data.at(name, wanted) for name in (GOODPUT, RTT)}
        others = {name: positive.at(name, {WINDOW: window}) for name in (GOODPUT, RTT)}
        if window == 1:
            # Exactly equal: nothing is ever updated.
            alike = np.array_equal(ours[GOODPUT], others[GOODPUT], equal_nan=True)
        gains.append(runs.ratio(ours[GOODPUT], others[GOODPUT]))
        trips.append(runs.ratio(ours[RTT], others[RTT]))
        rows.append(
            {
                "window": window,
                "goodput / %": 100 * (gains[-1] - 1),
                "round trip / %": 100 * (trips[-1] - 1),
            }
        )
    correlation = float(np.corrcoef(windows, gains)[0, 1])
    measured: dict[str, Measured] = {
        "BETZLER-021": min(gains[1:]),
        "BETZLER-021-L": correlation,
        "BETZLER-022": alike,
        "BETZLER-023": 1 / max(trips[1:]),
    }
    figure, panels = plot.panels(2)
    for axes, key in zip(panels, ("goodput / %", "round trip / %"), strict=True):
        axes.plot(windows, [float(row[key]) for row in rows], "o-", markersize=4)
        plot.labelled(axes, "cumulative over positive", "window / packets", key, legend=False)
    return Findings(measured, rows, figure)


def timeouts(context: Context) -> Findings:
    """Fig. 8: goodput by retransmission timeout algorithm."""
    data, others = Runs.of(context, "static"), Runs.of(context, "rto")
    windows = _windows(others)
    algorithms = [str(name) for name in others.values(RTO)]
    measured: dict[str, Measured] = {}
    rows = []
    figure, panels = plot.panels(2)
    for algorithm, axes in zip(algorithms, panels, strict=True):
        name = {"coap": "C", "semi-dynamic": "S"}[algorithm]
        over: dict[int, runs.Samples] = {}
        for window in windows:
            base: Setting = {WINDOW: window, BACKOFF: TINYOS}
            wanted: Setting = {WINDOW: window, RTO: algorithm}
            links = np.rint(data.links(base))
            ours, theirs = data.at(GOODPUT, base), others.at(GOODPUT, wanted)
            over[window] = np.log(theirs / ours)
            rows.append(
                {
                    "algorithm": algorithm,
                    "window": window,
                    "goodput over RFC 6298's, 1 link": runs.ratio(
                        theirs[links == 1], ours[links == 1]
                    ),
                    "goodput over RFC 6298's, more": runs.ratio(theirs[links > 1], ours[links > 1]),
                    "timeout / ms": 1e3 * runs.mean(others.at(TIMEOUT, wanted)),
                    "RFC 6298's / ms": 1e3 * runs.mean(data.at(TIMEOUT, base)),
                }
            )
        many, one = links > 1, links == 1
        larger = [window for window in windows if window > 1]
        gain = -runs.nanmean([runs.nanmean(over[window][many]) for window in larger])
        measured[f"BETZLER-026-{name}"] = float(np.exp(gain))
        measured[f"BETZLER-027-{name}"] = runs.equivalence(runs.nanmean(over[1], axis=0))
        at_one = runs.nanmean([over[window][one] for window in larger], axis=(0, 1))
        measured[f"BETZLER-028-{name}"] = runs.equivalence(at_one)
        found = {w: _by_links(data, {WINDOW: w, BACKOFF: TINYOS}, np.exp(over[w])) for w in windows}
        for length in found[windows[0]]:
            heights = [found[window].get(length, float("nan")) for window in windows]
            axes.plot(windows, heights, "o-", markersize=4, label=f"{length} links")
        plot.labelled(axes, algorithm, "window / packets", "goodput over RFC 6298's")
    return Findings(measured, rows, figure)


def windows_of(data: Runs, fixed: Setting) -> dict[int, dict[int, runs.Samples]]:
    """Goodputs by route length and window: a sample per replication."""
    found: dict[int, dict[int, runs.Samples]] = {}
    for window in _windows(data):
        wanted: Setting = {**fixed, WINDOW: window}
        links, goodput = np.rint(data.links(wanted)).astype(int), data.at(GOODPUT, wanted)
        for length in sorted(set(links.tolist())):
            own = runs.nanmean(goodput[links == length], axis=0)
            found.setdefault(length, {})[window] = own
    return found


def window_limits(context: Context) -> Findings:
    """Fig. 9a: goodput over the window, normalised to that of the recommended one."""
    data = Runs.of(context, "static")
    found = windows_of(data, {BACKOFF: TINYOS})
    figure, (axes,) = plot.panels(1)
    rows, chosen, falls = [], [], []
    for length, by_window in found.items():
        windows, samples = list(by_window), list(by_window.values())
        place = runs.recommended(samples)
        own = samples[place]
        chosen.append(windows[place])
        heights = [runs.ratio(each[None], own[None]) for each in samples]
        axes.plot(windows, heights, "o-", markersize=4, label=f"{length} links")
        falls += [
            runs.equivalence(runs.log_ratios(each[None], own[None]))
            for each in samples[place + 1 :]
        ]
        possible = [str(windows[place]) for place in runs.recommended_set(samples)]
        rows.append(
            {
                "links": length,
                "recommended": windows[place],
                "confidence set": " ".join(possible),
                "at the largest window": heights[-1],
            }
        )
    plot.labelled(axes, "static routes", "window / packets", "goodput over the recommended one's")
    measured: dict[str, Measured] = {
        "BETZLER-031": max(falls, default=0.0),
        "BETZLER-031-R": len(set(chosen)) > 1,
        "BETZLER-030": 100 * runs.RECOMMENDED_MARGIN,
    }
    return Findings(measured, rows, figure)
