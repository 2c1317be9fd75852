"""Figs. 9 to 15: TCP and TCP/NC across four lossy links (Section VI)."""

from collections.abc import Iterable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from corridor import plot, stats
from corridor.models import tcp, tcp_nc
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

ERASURE = "network.links.erasure_ratio"
R = "flow.0.tcp_nc.redundancy"
#: Quantities the paper finds equal without erasures: Figs. 9a, 10a and 11a.
ALIKE = ("goodput_bps", "cwnd_mean_packets", "srtt_s")
#: Time span of the time series in Figs. 9 to 11, s: ten intervals.
COURSE_S = 500.0
#: Quantities plotted over time in Figs. 14 and 15.
COURSES = (
    ("goodput_bps", 1e6, "goodput / (Mbit/s)"),
    ("cwnd_mean_packets", 1, "window / packets"),
)
#: Plans by protocol, and their labels.
PROTOCOLS = {"nc": "TCP/NC", "tcp": "TCP"}


def _mean(results: xr.Dataset, name: str) -> xr.DataArray:
    """Mean over replications and flows."""
    return results[f"flow.{name}"].mean(["replication", "flow"])


def _with_headers(context: Context) -> float:
    return 1 + float(context.parameter("header_bytes") / context.parameter("payload_bytes"))


def _over_p(
    context: Context, name: str, scale: float, what: str
) -> tuple[dict[str, xr.DataArray], Figure, list[dict[str, float]]]:
    """Means of a metric over p for both protocols, and its time series at each p.

    The time series are only for the plots: quick runs omit them.
    """
    results = {use: context.simulate(use) for use in PROTOCOLS}
    q = results["nc"][ERASURE].to_numpy()
    p = tcp.end_to_end_erasure(q, context.parameter("links"))
    figure, axes = plot.panels(1 if context.quick else len(q) + 1, columns=3)
    means = {}
    for use, label in PROTOCOLS.items():
        metric = results[use][f"flow.{name}"]
        means[use] = metric.mean(["replication", "flow"]) / scale
        plot.estimates(axes[0], p, stats.mean_ci(metric.mean("flow")), label, scale)
    plot.labelled(axes[0], "mean of both flows", "erasure probability p, end to end", what)
    for place, (panel, loss) in enumerate(zip(axes[1:], p, strict=False)):
        for use, label in PROTOCOLS.items():
            course = _first(context.course(use)).isel(point=place)
            _course(course, name, scale, panel, label)
        title = f"one run, p = {loss:.4f}"
        plot.labelled(panel, title, "time / s", what, legend=panel is axes[1])
    rows = [
        {"p": round(float(p[i]), 4), "TCP/NC": float(means["nc"][i]), "TCP": float(means["tcp"][i])}
        for i in range(len(q))
    ]
    return means, figure, rows


def _first(course: xr.Dataset) -> xr.Dataset:
    """Return the intervals of a time series within ``COURSE_S``."""
    return course.isel(time=course["time"].to_numpy() < COURSE_S)


def _course(course: xr.Dataset, name: str, scale: float, axes: Axes, label: str) -> None:
    """Plot a metric of both flows over time."""
    colour = "C0" if label == PROTOCOLS["nc"] else "C1"
    times = course["time"].to_numpy()
    edges = np.append(times, 2 * times[-1] - times[-2])
    for flow, style in ((0, "-"), (1, "--")):
        values = course[f"flow_series.{name}"].isel(flow=flow).to_numpy() / scale
        axes.stairs(values, edges, color=colour, linestyle=style, label=f"{label}, flow {flow}")


def throughput(context: Context) -> Findings:
    """Fig. 9: throughput with R = 1.25 at all p."""
    means, figure, rows = _over_p(context, "goodput_bps", 1e6, "goodput / (Mbit/s)")
    nc, plain = means["nc"].to_numpy(), means["tcp"].to_numpy()
    headers = _with_headers(context)
    measured: dict[str, Measured] = {
        "KIM-044": max(_unlike(context, name) for name in ALIKE),
        "KIM-048": float(nc[-1] / nc[0]),
        "KIM-F9-1": float(nc[:-1].min() / nc[0]),
        "KIM-F9-2": float((nc[1:] / plain[1:]).min()),
    }
    if not context.quick:
        measured["KIM-048-S"] = _unsteadiness(context)
    for row in rows:
        row["TCP/NC with headers"] = row["TCP/NC"] * headers
    return Findings(measured, rows, figure)


def _unlike(context: Context, name: str) -> float:
    """Relative difference of a metric between TCP/NC and TCP without erasures."""
    nc, plain = (float(_mean(context.simulate(use), name).isel(point=0)) for use in PROTOCOLS)
    return abs(nc / plain - 1)


def _unsteadiness(context: Context) -> float:
    """How much more TCP/NC's throughput varies over time at the largest p than at the next smaller.

    Measured by the standard deviation over 50 s intervals of one run, without the first, in which
    the window grows.
    """
    course = _first(context.course("nc"))
    goodput = course["flow_series.goodput_bps"].isel(time=slice(1, None))
    before, last = goodput.std("time").mean("flow").to_numpy()[np.argsort(course[ERASURE])[-2:]]
    return float(last / before)


def windows(context: Context) -> Findings:
    """Fig. 10: congestion windows with R = 1.25 at all p."""
    means, figure, rows = _over_p(context, "cwnd_mean_packets", 1, "window / packets")
    nc, plain = means["nc"].to_numpy(), means["tcp"].to_numpy()
    goodput = _mean(context.simulate("tcp"), "goodput_bps").to_numpy()
    open_share, used_share = plain[1:] / plain[0], goodput[1:] / goodput[0]
    measured: dict[str, Measured] = {
        "KIM-045": float(nc[:-1].min()),
    }
    # The first lossy point has the claim's own number, each further one the next number.
    for number, share in enumerate(open_share / used_share, 1):
        measured["KIM-046" if number == 1 else f"KIM-046-{number}"] = float(share)
    return Findings(measured, rows, figure)


def round_trips(context: Context) -> Findings:
    """Fig. 11: smoothed round-trip times with R = 1.25 at all p."""
    means, figure, rows = _over_p(context, "srtt_s", 1, "smoothed round-trip time / s")
    nc = means["nc"].to_numpy()
    path = _mean(context.simulate("nc_echo"), "srtt_s").to_numpy()
    for row, estimate in zip(rows, path, strict=True):
        row["TCP/NC, path"] = float(estimate)
    figure.axes[0].plot([row["p"] for row in rows], path, "s--", markersize=4, label="TCP/NC, path")
    figure.axes[0].legend(fontsize=8)
    runs = {use: context.simulate(use)["flow.srtt_s"] for use in ("nc", "tcp")}
    lossy = {
        use: float(run.isel(point=3).std(["replication", "flow"])) for use, run in runs.items()
    }
    measured: dict[str, Measured] = {
        "KIM-047": float(nc.max()),
        "KIM-F11-1": float(path.max()),
        "KIM-F11-2": lossy["tcp"] / lossy["nc"],
    }
    return Findings(measured, rows, figure)


def _over_redundancy(context: Context) -> tuple[dict[float, float], float, Figure]:
    """Goodput of TCP/NC by R, that of TCP, and their plot."""
    coded, plain = context.simulate("nc"), context.simulate("tcp")
    factors = coded[R].to_numpy()
    goodput = stats.mean_ci(coded["flow.goodput_bps"].mean("flow"))
    figure, (axes,) = plot.panels(1)
    plot.estimates(axes, factors, goodput, "TCP/NC", 1e6)
    reference = float(_mean(plain, "goodput_bps").isel(point=0)) / 1e6
    axes.axhline(reference, color="C1", label="TCP")
    least = 1 / (1 - context.parameter("p"))
    axes.axvline(least, color="grey", linestyle=":", label=f"1/(1-p) = {least:.3f}")
    marks = context.parameter("marked_r")
    plot.published(axes, marks, [0.5] * len(marks), "published: full from here")
    title = f"p = {context.parameter('p')}"
    axes.set_ylim(0, 0.65)
    plot.labelled(axes, title, "redundancy factor R", "goodput / (Mbit/s)")
    means = goodput.sel(estimate="mean").to_numpy() / 1e6
    by_factor = {round(float(f), 3): float(m) for f, m in zip(factors, means, strict=True)}
    return by_factor, reference, figure


def _rows(by_factor: dict[float, float], plain: float) -> list[dict[str, float]]:
    return [{"R": r, "TCP/NC": value, "TCP": plain} for r, value in by_factor.items()]


def _least_with(by_factor: dict[float, float], value: float) -> float:
    """Smallest R from which on the goodput stays at or above a value."""
    enough: float = np.nan
    for factor in sorted(by_factor, reverse=True):
        if by_factor[factor] < value:
            break
        enough = factor
    return enough


def redundancy_at_10_percent(context: Context) -> Findings:
    """Fig. 12: throughput over R at p = 0.0963."""
    by_factor, plain, figure = _over_redundancy(context)
    best = max(by_factor.values())
    near = _least_with(by_factor, context.parameter("near_share") * best)
    measured: dict[str, Measured] = {
        "KIM-051": by_factor[1.10] / plain,
        "KIM-052": by_factor[1.11] / plain,
        "KIM-053": by_factor[1.12] / by_factor[1.11],
        "KIM-054": near * (1 - context.parameter("p")),
    }
    return Findings(measured, _rows(by_factor, plain), figure)


def redundancy_at_19_percent(context: Context) -> Findings:
    """Fig. 13: throughput over R at p = 0.1855."""
    by_factor, plain, figure = _over_redundancy(context)
    plateau = [value for factor, value in by_factor.items() if factor >= 1.28]
    best = max(by_factor.values())
    near = _least_with(by_factor, context.parameter("near_share") * best)
    measured: dict[str, Measured] = {
        "KIM-055": min(plateau) * _with_headers(context),
        "KIM-056": near * (1 - context.parameter("p")),
        "KIM-F13-1": min(plateau) / max(plateau),
    }
    return Findings(measured, _rows(by_factor, plain), figure)


def _published(context: Context, *ids: str) -> list[float]:
    """Published values of these claims; NaN if there is none."""
    values = {claim.id: claim.value for claim in context.experiment.claims}
    return [float(values.get(each, np.nan)) for each in ids]


def _bars_and_course(
    context: Context, names: Iterable[str], ours: Iterable[float], theirs: Iterable[float]
) -> Figure:
    """Plot means beside published values, and the time series of one run, in 50 s intervals.

    The time series is only for the plot, as in the paper: quick runs omit it.
    """
    figure, axes = plot.panels(1 if context.quick else 3, columns=3)
    places = np.arange(len(list(names := list(names))))
    axes[0].bar(places, list(ours), width=0.5, label="simulated, headers counted")
    plot.published(axes[0], list(places), list(theirs))
    axes[0].set_xticks(places, names, fontsize=8)
    axes[0].set_ylim(top=1.25 * axes[0].get_ylim()[1])
    plot.labelled(axes[0], "throughput", "", "throughput / (Mbit/s)")
    if not context.quick:
        course = context.course("nc").isel(point=-1)
        for panel, (name, scale, what) in zip(axes[1:], COURSES, strict=True):
            _course(course, name, scale, panel, PROTOCOLS["nc"])
            plot.labelled(panel, "one run", "time / s", what)
    return figure


def fair_shares(context: Context) -> Findings:
    """Fig. 14: two TCP/NC flows at a bottleneck."""
    results = context.simulate("nc")
    p, c, r = (context.parameter(name) for name in ("p", "capacity_mbps", "redundancy"))
    goodput = results["flow.goodput_bps"].mean("replication").isel(point=0).to_numpy() / 1e6
    counted = goodput * _with_headers(context)
    measured: dict[str, Measured] = {
        "KIM-058": round(float(tcp_nc.achievable_bandwidth(c, p, r, 2)), 4),
        "KIM-059": round(float(c * (1 - tcp.end_to_end_erasure(0.025)) / 2), 4),
        "KIM-060": float(counted[0]),
        "KIM-061": float(counted[1]),
        "KIM-F14-1": float(results["fairness_ratio"].mean()),
    }
    rows = [
        {"flow": f"NC{i}", "goodput": float(goodput[i]), "with headers": float(counted[i])}
        for i in (0, 1)
    ]
    theirs = _published(context, "KIM-060", "KIM-061")
    figure = _bars_and_course(context, ["NC0", "NC1"], counted, theirs)
    return Findings(measured, rows, figure)


def _part(course: xr.Dataset, name: str, span: tuple[float, float]) -> xr.DataArray:
    """Return a metric's time series from one time to another, s."""
    first, end = span
    times = course["time"].to_numpy()
    return course[f"flow_series.{name}"].isel(time=(times >= first) & (times < end))


def _goodput_mbps(course: xr.Dataset, span: tuple[float, float]) -> xr.DataArray:
    """Return the mean goodput of each flow, Mbit/s: all intervals have the same length."""
    return _part(course, "goodput_bps", span).mean("time") / 1e6


def _window(course: xr.Dataset, span: tuple[float, float]) -> xr.DataArray:
    """Return the mean window of each flow, packets."""
    return _part(course, "cwnd_mean_packets", span).mean("time")


def _srtt_at_end(course: xr.Dataset, span: tuple[float, float]) -> xr.DataArray:
    """Return the smoothed round-trip time of each flow at the end of the span, s."""
    return _part(course, "srtt_s", span).isel(time=-1)


def a_second_flow(context: Context) -> Findings:
    """Fig. 15: a second flow comes and goes."""
    spans, p = context.parameter("spans_s"), context.parameter("p")
    means = context.simulate("nc").isel(point=0).mean("replication")
    carried, window, srtt = (
        xr.concat([part(means, span) for span in spans], "span")
        for part in (_goodput_mbps, _window, _srtt_at_end)
    )
    goodput = carried.to_numpy()
    counted = goodput * _with_headers(context)
    achievable = tcp_nc.achievable_bandwidth(
        context.parameter("capacity_mbps"), p, context.parameter("redundancy")
    )
    measured: dict[str, Measured] = {
        "KIM-062": float(counted[1, 0]),
        "KIM-063": float(counted[1, 1]),
        "KIM-064": float(counted[0, 0]),
        "KIM-065": round(float(achievable), 4),
        "KIM-066": float(window.isel(span=1).min()),
        "KIM-F15-1": float(srtt.isel(span=1).max() / srtt.isel(span=0, flow=0)),
        "KIM-F15-2": float(goodput[2, 0] / goodput[0, 0]),
    }
    told = [f"{a:.0f} to {b:.0f} s" for a, b in spans]
    rows = [
        {"interval": told[i], "NC0": float(goodput[i, 0]), "NC1": float(goodput[i, 1]),
         "window NC0": float(window[i, 0]), "srtt NC0": float(srtt[i, 0])}
        for i in range(len(spans))
    ]  # fmt: skip
    names = [f"NC0\n{span}" for span in told] + [f"NC1\n{told[1]}"]
    theirs = _published(context, "KIM-064", "KIM-062", "", "KIM-063")
    figure = _bars_and_course(
        context, names, [*map(float, counted[:, 0]), float(counted[1, 1])], theirs
    )
    return Findings(measured, rows, figure)
