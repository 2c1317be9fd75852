"""Figs. 6 and 9b: transfers between random pairs while nst-AODV discovers routes."""

import math

import numpy as np

from corridor import plot
from corridor.study.betzler import runs
from corridor.study.betzler.runs import COMPLETED, METRIC, WINDOW, Runs
from corridor.study.betzler.static import GOODPUT, Setting
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

HOP_COUNT, PATH_DR = "hop-count", "path-dr"
LINKS = "flow.route_links_mean"


def metrics(context: Context) -> Findings:
    """Fig. 6: PATH-DR compared with hop count: route lengths, transfers completed, goodput."""
    data = Runs.of(context, "dynamic")
    windows = [int(window) for window in data.values(WINDOW)]
    rows, gains, longer, spreads, completed = [], [], [], [], []
    for window in windows:
        row: dict[str, float] = {"window": window}
        own: dict[str, Setting] = {m: {WINDOW: window, METRIC: m} for m in (HOP_COUNT, PATH_DR)}
        for name, wanted in own.items():
            links, shares = data.at(LINKS, wanted), data.at(COMPLETED, wanted)
            row[f"{name}: links"] = runs.mean(links)
            row[f"{name}: their deviation"] = float(np.nanstd(runs.nanmean(links, axis=1)))
            row[f"{name}: completed / %"] = 100 * runs.mean(shares)
            row[f"{name}: repairs"] = runs.mean(data.at("links_lost", wanted))
        ours, others = own[PATH_DR], own[HOP_COUNT]
        gains.append(runs.ratio(data.at(GOODPUT, ours), data.at(GOODPUT, others)))
        row["gain of goodput / %"] = 100 * (gains[-1] - 1)
        longer.append(row[f"{PATH_DR}: links"] / row[f"{HOP_COUNT}: links"])
        spreads.append(row[f"{PATH_DR}: their deviation"] / row[f"{HOP_COUNT}: their deviation"])
        completed.append(row[f"{PATH_DR}: completed / %"] - row[f"{HOP_COUNT}: completed / %"])
        rows.append(row)
    measured: dict[str, Measured] = {
        "BETZLER-018": float(np.mean(longer)),
        "BETZLER-018-D": float(np.mean(spreads)),
        "BETZLER-019": float(np.mean(completed)),
        "BETZLER-020": min(gains),
        "BETZLER-033": _repairs(data, windows),
    }
    figure, panels = plot.panels(3, columns=3)
    for axes, what in zip(panels, ("links", "completed / %", "gain"), strict=True):
        if what == "gain":
            axes.plot(windows, [100 * (gain - 1) for gain in gains], "o-", markersize=4)
        else:
            for name in (HOP_COUNT, PATH_DR):
                heights = [row[f"{name}: {what}"] for row in rows]
                axes.plot(windows, heights, "o-", markersize=4, label=name)
        label = "gain of goodput / %" if what == "gain" else what
        plot.labelled(axes, "31 pairs", "window / packets", label, legend=what != "gain")
    return Findings(measured, rows, figure)


def _repairs(data: Runs, windows: list[int]) -> float:
    """Ratio of route repairs at the largest window to those at a window of 1."""

    def lost(window: int) -> float:
        return runs.mean(data.at("links_lost", {WINDOW: window, METRIC: PATH_DR}))

    least = lost(windows[0])
    return lost(windows[-1]) / least if least else math.nan


def by_length(data: Runs) -> dict[int, dict[int, runs.Samples]]:
    """Goodputs by route length at window 1, and by window: a sample per replication."""
    windows = [int(window) for window in data.values(WINDOW)]
    base = data.links({WINDOW: windows[0], METRIC: PATH_DR})
    # A pair that never had a route has no length class.
    classes = np.nan_to_num(np.clip(np.rint(base), 1, 6)).astype(int)
    found: dict[int, dict[int, runs.Samples]] = {}
    for window in windows:
        goodput = data.at(GOODPUT, {WINDOW: window, METRIC: PATH_DR})
        for length in sorted(set(classes[classes > 0].tolist())):
            own = runs.nanmean(goodput[classes == length], axis=0)
            found.setdefault(length, {})[window] = own
    return found


def beyond_recommended(data: Runs) -> runs.Samples:
    """Advantage of the recommended window over the largest one, on multi-hop routes.

    Logarithms of goodput ratios, one per replication. The window is chosen by all other
    replications, so that the choice is independent of the sample. The value is 0 where no window is
    larger. Averaged over route lengths.
    """
    found = []
    for length, by_window in by_length(data).items():
        if length == 1:
            continue
        samples = np.asarray(list(by_window.values()))
        count = samples.shape[1]
        logs = np.full(count, math.nan)
        for own in range(count):
            others = np.delete(samples, own, axis=1)
            if others.size:
                place = runs.recommended(list(others))
                logs[own] = np.log(samples[place, own] / samples[-1, own])
        found.append(logs)
    return np.asarray(runs.nanmean(found, axis=0)) if found else np.full(2, math.nan)


def window_limits(context: Context) -> Findings:
    """Fig. 9b: goodput over the window, normalised to that of the recommended one."""
    data = Runs.of(context, "dynamic")
    figure, (axes,) = plot.panels(1)
    rows = []
    for length, by_window in by_length(data).items():
        windows, samples = list(by_window), list(by_window.values())
        place = runs.recommended(samples)
        heights = [runs.ratio(each[None], samples[place][None]) for each in samples]
        axes.plot(windows, heights, "o-", markersize=4, label=f"{length} links")
        possible = [str(windows[each]) for each in runs.recommended_set(samples)]
        rows.append(
            {
                "links": length,
                "recommended": windows[place],
                "confidence set": " ".join(possible),
                "at the largest window": heights[-1],
            }
        )
    plot.labelled(axes, "dynamic routes", "window / packets", "goodput over the recommended one's")
    measured: dict[str, Measured] = {"BETZLER-032": math.exp(runs.mean(beyond_recommended(data)))}
    return Findings(measured, rows, figure)


def lengths(context: Context) -> Findings:
    """Route lengths at each attenuation, and the choice made from them."""
    data = Runs.of(context, "lengths")
    extra, window = "network.radio.path_loss.extra_db", "least links"
    rows = []
    chosen = float(context.parameter("extra_db"))
    measured: dict[str, Measured] = {}
    for attenuation in data.values(extra):
        links = data.links({extra: attenuation})
        rows.append(
            {
                "attenuation / dB": attenuation,
                "mean links": float(links.mean()),
                window: float(links.min()),
                "most links": float(links.max()),
            }
        )
        if attenuation == chosen:
            measured["BETZLER-L-1"] = float(links.mean())
            measured["BETZLER-L-2"] = float(links.max())
    figure, (axes,) = plot.panels(1)
    at = [row["attenuation / dB"] for row in rows]
    axes.plot(at, [row["mean links"] for row in rows], "o-", markersize=4, label="mean")
    axes.plot(at, [row["most links"] for row in rows], "o-", markersize=4, label="longest")
    plot.labelled(axes, "hop-count routes of 31 pairs", "attenuation / dB", "links")
    return Findings(measured, rows, figure)
