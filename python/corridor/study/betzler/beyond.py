"""Beyond the paper: concurrent flows, small buffers, windows per route length, coding."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from corridor import plot
from corridor.study.betzler import runs
from corridor.study.betzler.runs import BACKOFF, RETRIES, Runs
from corridor.study.betzler.static import TINYOS, windows_of
from corridor.study.findings import Context, Findings

QUEUE = "network.radio.queue_frames"
WINDOW = runs.WINDOW
FLOWS = (1, 2, 4)


def _row(what: str, links: str, results: xr.Dataset) -> dict[str, Any]:
    """Return a row that summarises the transfers of some points."""
    seconds, completed = results["flow.spent_s"], results["flow.completed"]
    # The transfer size is the same in all completed runs of a plan; if none completed, nothing was
    # delivered.
    own = results["flow.transfer_goodput_bps"] * results["flow.transfer_s"] / 8
    kb = float(own.fillna(0).sum()) / 1e3
    on_air = float((results["sending_s"] + results["receiving_s"]).sum())
    return {
        "what": what,
        "links": links,
        "kbit/s": 8 * kb / float(seconds.sum()),
        "completed / %": 100 * float(completed.mean()),
        "radios / ms per kB": 1e3 * on_air / kb if kb else float("nan"),
    }


def _points(results: xr.Dataset, **wanted: Any) -> xr.Dataset:
    """Return the points where swept keys have these values; `__` stands for a dot."""
    keep = np.ones(results.sizes["point"], bool)
    for name, value in wanted.items():
        keep &= results[name.replace("__", ".")].to_numpy() == value
    return results.isel(point=np.flatnonzero(keep))


def _lengths(results: xr.Dataset) -> dict[int, xr.Dataset]:
    """Return the points by route length."""
    links = np.rint(results["flow.route_links_mean"].mean(["replication", "flow"]).to_numpy())
    return {
        int(length): results.isel(point=np.flatnonzero(links == length))
        for length in sorted(set(links.tolist()))
    }


def _buffers(context: Context) -> list[dict[str, Any]]:
    results = context.simulate("buffers")
    rows = []
    for window in sorted(set(results[WINDOW].to_numpy().tolist())):
        for frames in sorted(set(results[QUEUE].to_numpy().tolist())):
            here = results.isel(
                point=np.flatnonzero(
                    (results[WINDOW].to_numpy() == window) & (results[QUEUE].to_numpy() == frames)
                )
            )
            rows.append(_row(f"room for {frames}, window {window}", "1 to 6", here))
    return rows


def _flows(context: Context) -> list[dict[str, Any]]:
    rows = []
    for count in FLOWS:
        results = context.simulate(f"flows-{count}")
        for window in sorted(set(results[WINDOW].to_numpy().tolist())):
            here = results.isel(point=np.flatnonzero(results[WINDOW].to_numpy() == window))
            row = _row(f"{count} at once, window {window}", "3 to 7", here)
            # Over all of them together, not a single one.
            row["kbit/s"] *= count
            rows.append(row)
    return rows


def _coding(context: Context) -> list[dict[str, Any]]:
    plain, coded = context.simulate("plain"), context.simulate("coded")
    rows = []
    for retries in sorted(set(plain[RETRIES].to_numpy().tolist())):
        for length, of_length in _lengths(_points(plain, network__radio__retries=retries)).items():
            for payload in (94, 73):
                here = _points(of_length, flow__0__payload_bytes=payload)
                setting = f"{retries} retries, plain, {payload} bytes"
                rows.append(_row(setting, str(length), here))
        for length, of_length in _lengths(_points(coded, network__radio__retries=retries)).items():
            for redundancy in sorted(set(coded["flow.0.tcp_nc.redundancy"].to_numpy().tolist())):
                here = of_length.isel(
                    point=np.flatnonzero(
                        of_length["flow.0.tcp_nc.redundancy"].to_numpy() == redundancy
                    )
                )
                is_adaptive = bool(here["flow.0.tcp_nc.adaptive"].to_numpy()[0])
                kind = "adaptive" if is_adaptive else f"R = {redundancy:g}"
                rows.append(_row(f"{retries} retries, coded, {kind}", str(length), here))
    return rows


def _all_together(means: Mapping[int, Mapping[int, float]], window: int) -> float:
    """Geometric mean over route lengths, as a logarithm."""
    return float(np.mean([np.log(each[window]) for each in means.values()]))


def _by_length(context: Context) -> str:
    """Compare a window per route length with the best for all, over runs used to choose neither."""
    found = windows_of(Runs.of(context, "static"), {BACKOFF: TINYOS})
    windows = list(next(iter(found.values())))
    halves = [slice(0, None, 2), slice(1, None, 2)]
    logs: list[float] = []
    chosen: dict[int, int] = {}
    for choose, judge in (halves, halves[::-1]):
        means = {
            links: {w: runs.mean(samples[choose]) for w, samples in by_window.items()}
            for links, by_window in found.items()
        }
        common = max(windows, key=partial(_all_together, means))
        for links, by_window in found.items():
            chosen[links] = max(means[links], key=means[links].__getitem__)
            ours, others = by_window[chosen[links]][judge], by_window[common][judge]
            logs.append(float(np.log(runs.mean(ours) / runs.mean(others))))
    gain = 100 * float(np.expm1(np.mean(logs)))
    words = ", ".join(f"{window} over {links}" for links, window in chosen.items())
    return (
        f"a window for each length of route, chosen by half of the runs ({words} links), has "
        f"{gain:+.1f} % over the best for all, {common}, in the other half"
    )


def beyond(context: Context) -> Findings:
    """What the paper leaves for future work, and coding: rows, and a plot of each."""
    buffers, flows, coding = _buffers(context), _flows(context), _coding(context)
    figure, (left, middle, right) = plot.panels(3, columns=3)
    for axes, rows in ((left, buffers), (middle, flows)):
        for window in dict.fromkeys(str(row["what"]).split(", ")[1] for row in rows):
            own = [row for row in rows if str(row["what"]).endswith(window)]
            names = [str(row["what"]).split(", ")[0].split()[0 if rows is flows else -1]
                     for row in own]  # fmt: skip
            axes.plot(names, [row["kbit/s"] for row in own], "o-", markersize=4, label=window)
    plot.labelled(left, "few buffers, 1 to 6 links", "frames that a node has room for", "kbit/s")
    plot.labelled(middle, "flows at once", "flows", "kbit/s, together")
    for kind, style in (("plain, 94 bytes", "o-"), ("coded, adaptive", "x--")):
        for retries in ("0", "1", "3"):
            own = [row for row in coding if row["what"] == f"{retries} retries, {kind}"]
            right.plot([row["links"] for row in own], [row["kbit/s"] for row in own], style,
                       markersize=4, color=f"C{retries}", label=own[0]["what"])  # fmt: skip
    plot.labelled(right, "coding over 127-byte frames", "links", "kbit/s")
    right.set_ylim(bottom=1)
    right.set_yscale("log")
    return Findings({}, [*buffers, *flows, *coding], figure, [_by_length(context)])
