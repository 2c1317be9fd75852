"""Figs. 16, 17 and 19 to 21, and Section X: throughput, bandwidth and base stations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from corridor import plot
from corridor.models import base_stations as model
from corridor.study.findings import Context, Findings

FloatArray = NDArray[np.float64]
#: Differences below this are rounding errors.
NOTHING = 1e-9


def _grid(context: Context) -> FloatArray:
    low, high, count = context.parameter("bandwidth_mbps")
    return np.linspace(low, high, int(count))


def best_case(context: Context) -> Findings:
    """Figs. 16 and 17: base stations if the throughput equals the bandwidth (Eq. 22)."""
    parameter = context.parameter
    b, chances, users = _grid(context), np.array(parameter("q")), parameter("users")
    sizes = parameter("file_mb")
    figure, axes = plot.panels(3, columns=3)
    curves: dict[tuple[float, float], FloatArray] = {}
    for panel, size in zip(axes, sizes, strict=False):
        for q in chances:
            curves[size, q] = model.base_stations(b, b, q, size, users)
            panel.plot(b, curves[size, q], label=f"q = {q:g}")
        _published(panel, *parameter("published_stations")[str(size)])
        plot.labelled(panel, f"mean file of {size} MB", "B = T / (Mbit/s)", "base stations")
    _users_panel(context, axes[2])
    small, large = sizes
    middle, steep = curves[large, 0.03], curves[large, 0.04]
    falls = any(np.any(np.diff(curve) < -NOTHING) for curve in curves.values())
    below_1 = b < 1
    saturated = [bool(np.all(np.abs(curves[small, q][below_1] - 5) < NOTHING)) for q in chances]
    decimal = model.base_stations(b, b, 0.03, large, users, 10**6)
    measured = {
        "KIM-067": model.BANDWIDTH_MAX_MBPS,
        "KIM-068": model.USERS_MAX,
        "KIM-069": model.file_mean_mb(parameter("type_mb"), parameter("mix_a")),
        "KIM-070": model.file_mean_mb(parameter("type_mb"), parameter("mix_b")),
        "KIM-071": float(curves[small, 0.04][below_1][-1]),
        "KIM-T17-1": falls,
        "KIM-T17-2": bool(
            all(np.all(np.diff(curves[small, q]) <= NOTHING) for q in chances if q <= 0.03)
        ),
        "KIM-T17-3": all(saturated),
        "KIM-072": float(middle.min()),
        "KIM-T17-4": float(middle.max()),
        "KIM-T17-5": bool(
            np.all((model.stations_per_user(b) > 1 / model.USERS_MAX) == (b > 1.5 + NOTHING))
        ),
        "KIM-073": float(steep[-1]),
        "KIM-T17-6": bool(np.all(np.diff(steep) >= -NOTHING) and steep[-1] > steep[0] + NOTHING),
        "KIM-T17-7": float(decimal.min()),
    }
    picked = [int(np.argmin(np.abs(b - x))) for x in parameter("rows_mbps")]
    rows = [
        {"file / MB": size, "q": float(q), **{f"B = {b[i]:.2f}": float(curve[i]) for i in picked}}
        for (size, q), curve in curves.items()
    ]
    return Findings(measured, rows, figure)


def _published(axes: Any, low: float, high: float, until: float, label: str) -> None:
    """Overlay a published range, up to a given bandwidth."""
    axes.fill_between([0, until], low, high, color="black", alpha=0.12, label=label)
    axes.plot([0, until], [high, high], "k:", linewidth=1)


def _users_panel(context: Context, axes: Any) -> None:
    """Fig. 16 in numbers: base stations, and their power, as users join."""
    users = np.arange(0, context.parameter("users") + 1)
    for bandwidth in context.parameter("users_mbps"):
        needed = model.base_stations(bandwidth, bandwidth, 0.03, 3.2, users)
        axes.step(users, np.ceil(needed), label=f"B = {bandwidth:g} Mbit/s")
    power = axes.secondary_yaxis(
        "right", functions=(lambda n: n * model.POWER_KW[1], lambda kw: kw / model.POWER_KW[1])
    )
    power.set_ylabel("power, at most / kW")
    plot.labelled(axes, "base stations are added (Fig. 16), q = 0.03", "users", "base stations")


def throughputs(context: Context) -> Findings:
    """Fig. 19: throughput over bandwidth, by Eqs. 20 and 16."""
    b, losses = _grid(context), np.array(context.parameter("p"))
    rtt, window = context.parameter("rtt_s"), context.parameter("window_max")
    figure, (left, right) = plot.panels(2)
    nc = {p: model.tcp_nc_throughput_mbps(b, p, rtt, window) for p in losses}
    tcp = {p: model.tcp_throughput_mbps(b, p, rtt, window) for p in losses}
    for p in losses:
        left.plot(b, nc[p], label=f"p = {p:g}")
        right.plot(b, tcp[p], label=f"p = {p:g}")
    plateaus = {c.id: c.value for c in context.experiment.claims}
    plot.published(left, [b[-1]], [plateaus["KIM-076"]])
    plot.published(right, [b[-1]], [plateaus["KIM-082"]])
    derived = [plateaus[f"KIM-{number:03}"] for number in range(77, 82)]
    right.plot([b[-1]] * 5, derived, "k_", label="derived from Eq. 16")
    plot.labelled(left, "(a) TCP/NC", "B / (Mbit/s)", "T / (Mbit/s)")
    plot.labelled(right, "(b) TCP", "B / (Mbit/s)", "T / (Mbit/s)")
    lossy = [p for p in losses if p > 0]
    plateau = window * 8000 / rtt / 1e6
    below = b * (1 - losses[-1]) < plateau
    measured: dict[str, float | bool] = {
        "KIM-075": float(model.tcp_nc_throughput_mbps(2.0, 0.1, rtt, window)),
        "KIM-076": float(min(nc[p][-1] for p in losses)),
        "KIM-T19-1": float(max(nc[p][-1] for p in losses)),
        "KIM-082": float(tcp[0.0][-1]),
        "KIM-T19-2": float(max(tcp[p].max() for p in lossy) / tcp[0.0].max()),
        "KIM-T19-3": bool(
            all(np.all(t[p] <= b * (1 - p) + NOTHING) for t in (nc, tcp) for p in losses)
        ),
        "KIM-T19-4": float(min((nc[p] / b)[below].min() for p in losses)),
        "KIM-T19-5": bool(np.allclose(nc[0.0], tcp[0.0])),
    }
    for number, p in enumerate(lossy):
        measured[f"KIM-{77 + number:03}"] = round(float(tcp[p][-1]), 5)
    rows = [
        {"p": float(p), "TCP/NC plateau": float(nc[p][-1]), "TCP plateau": float(tcp[p][-1])}
        for p in losses
    ]
    return Findings(measured, rows, figure)


class _Stations:
    """Base stations of both protocols, for every p and q."""

    def __init__(self, context: Context, megabyte: int = model.MEGABYTE) -> None:
        parameter = context.parameter
        self.b, self.losses, self.chances = _grid(context), parameter("p"), parameter("q")
        rtt, window, users = parameter("rtt_s"), parameter("window_max"), parameter("users")
        size = parameter("file_mb")
        self.best, self.nc, self.tcp = {}, {}, {}
        for q in self.chances:
            common = (q, size, users, megabyte)
            self.best[q] = model.base_stations(self.b, self.b, *common)
            for p in self.losses:
                nc = model.tcp_nc_throughput_mbps(self.b, p, rtt, window)
                tcp = model.tcp_throughput_mbps(self.b, p, rtt, window)
                self.nc[p, q] = model.base_stations(self.b, nc, *common)
                self.tcp[p, q] = model.base_stations(self.b, tcp, *common)

    def spread(self, p: float, chances: list[float]) -> float:
        """Largest relative distance between TCP's curves for these q."""
        curves = np.array([self.tcp[p, q] for q in chances])
        return float(np.max((curves.max(axis=0) - curves.min(axis=0)) / curves.max(axis=0)))


def _figure(stations: _Stations, shown: list[float]) -> Any:
    figure, axes = plot.panels(len(shown))
    for panel, p in zip(axes, shown, strict=True):
        for place, q in enumerate(stations.chances):
            colour = f"C{place}"
            panel.plot(stations.b, stations.tcp[p, q], "--", color=colour, label=f"TCP, q = {q:g}")
            panel.plot(stations.b, stations.nc[p, q], color=colour, label=f"TCP/NC, q = {q:g}")
        plot.labelled(panel, f"p = {p:g}", "B / (Mbit/s)", "base stations", legend=False)
    plot.legend_beside(figure, axes[0])
    return figure


def _rows(stations: _Stations, shown: list[float]) -> list[dict[str, Any]]:
    at = int(np.argmin(np.abs(stations.b - 2.0)))
    return [
        {
            "p": p,
            "q": q,
            "TCP at 2 Mbit/s": float(stations.tcp[p, q][at]),
            "TCP/NC at 2 Mbit/s": float(stations.nc[p, q][at]),
            "best case": float(stations.best[q][at]),
        }
        for p in shown
        for q in stations.chances
    ]


def _common(stations: _Stations, prefix: str) -> dict[str, float | bool]:
    """Measures for the text's statements about both figures."""
    losses, chances = stations.losses, stations.chances
    excess = [
        float(np.max(stations.nc[p, q] / stations.best[q] - 1)) for p in losses for q in chances
    ]
    grows = [
        np.all(stations.tcp[high, q] >= stations.tcp[low, q] - NOTHING)
        and np.any(stations.tcp[high, q] > stations.tcp[low, q] + NOTHING)
        for low, high in ((0.0, 0.01),)
        for q in chances
    ]
    wasteful = [
        stations.tcp[p, q][-1] > stations.tcp[p, q].min() + NOTHING
        for p in losses
        if p > 0
        for q in chances
    ]
    saved = [
        np.all(stations.nc[p, q] <= stations.tcp[p, q] + NOTHING) for p in losses for q in chances
    ]
    return {
        f"{prefix}-1": bool(
            all(np.allclose(stations.nc[0.0, q], stations.tcp[0.0, q]) for q in chances)
        ),
        f"{prefix}-2": bool(
            all(np.allclose(stations.nc[0.0, q], stations.best[q]) for q in chances)
        ),
        f"{prefix}-3": bool(all(grows)),
        f"{prefix}-4": bool(all(wasteful)),
        f"{prefix}-5": bool(all(saved)),
        "KIM-087": max(excess),
    }


def figure_20(context: Context) -> Findings:
    """Fig. 20: base stations for a mean file size of 3.2 MB."""
    stations, decimal = _Stations(context), _Stations(context, 10**6)
    above = [q for q in stations.chances if q > 0.01]
    measured = {
        **_common(stations, "KIM-T20"),
        "KIM-083": stations.spread(0.01, [0.03, 0.04]),
        "KIM-T20-6": decimal.spread(0.01, [0.03, 0.04]),
        "KIM-084": max(stations.spread(p, above) for p in (0.02, 0.03)),
        "KIM-T20-7": max(decimal.spread(p, above) for p in (0.02, 0.03)),
        "KIM-T20-8": bool(stations.spread(0.01, [0.01, 0.02, 0.03]) > 0.05),
    }
    shown = context.parameter("shown_p")
    return Findings(measured, _rows(stations, shown), _figure(stations, shown))


def figure_21(context: Context) -> Findings:
    """Fig. 21: base stations for a mean file size of 5.08 MB."""
    stations, decimal = _Stations(context), _Stations(context, 10**6)
    above = [q for q in stations.chances if q > 0.01]
    measured = {
        **_common(stations, "KIM-T21"),
        "KIM-085": max(stations.spread(p, above) for p in (0.01, 0.02)),
        "KIM-086": stations.spread(0.03, stations.chances),
        "KIM-T21-6": decimal.spread(0.03, stations.chances),
        "KIM-T21-7": max(stations.spread(p, stations.chances) for p in (0.04, 0.05)),
    }
    shown = context.parameter("shown_p")
    return Findings(measured, _rows(stations, shown), _figure(stations, shown))


def long_round_trips(context: Context) -> Findings:
    """Section X with RTT = 500 ms, for which the paper prints no figure."""
    stations = _Stations(context)
    parameter = context.parameter
    rtt, window = parameter("rtt_s"), parameter("window_max")
    b, losses = stations.b, stations.losses
    plateau = window * 8000 / rtt / 1e6
    beyond = b * (1 - max(losses)) >= plateau
    nc = [model.tcp_nc_throughput_mbps(b, p, rtt, window) for p in losses]
    tcp = [model.tcp_throughput_mbps(b, p, rtt, window) for p in losses]
    growth = [
        stations.nc[p, q][beyond] / stations.nc[p, q][beyond][0]
        - stations.tcp[p, q][beyond] / stations.tcp[p, q][beyond][0]
        for p in losses
        for q in stations.chances
    ]
    measured = {
        "KIM-088": float(nc[0][-1]),
        "KIM-T500-1": float(max(np.ptp(t[beyond]) for t in (*nc, *tcp))),
        "KIM-T500-2": bool(
            all(np.all(n[beyond] > t[beyond]) for n, t in zip(nc[1:], tcp[1:], strict=True))
        ),
        "KIM-T500-3": float(np.max(np.abs(growth))),
    }
    shown = parameter("shown_p")
    return Findings(measured, _rows(stations, shown), _figure(stations, shown))
