"""The FRANC paper's TCP figures: delay and throughput over the offered application load.

In virtual time, or in the lab with the kernel's own TCP, with window mode for comparison.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from corridor import plot
from corridor.study.claims import Claim, Measured
from corridor.study.findings import Context, Findings
from corridor.study.franc import PAPER, UNCODED

#: Window mode, and the schemes it is compared with.
WINDOW = "window"
OTHERS = ("plain", "coded")
#: Variation between runs without any other difference: relative, of goodput and of delay; and in
#: seconds.
GOODPUT_NOISE = 0.02
DELAY_NOISE = 0.1
DELAY_NOISE_S = 0.002


@dataclass(frozen=True)
class Style:
    """Plot style of a scheme."""

    label: str
    colour: str
    marker: str

    def line(self) -> dict[str, Any]:
        """Return the keyword arguments for matplotlib's lines."""
        return {"color": self.colour, "marker": self.marker, "markersize": 4.5}


#: Schemes, in legend order. Colours after Okabe and Ito.
SCHEMES = {
    "plain": Style("unreliable link", "#7b8794", "s"),
    "coded": Style("FRANC, the paper's coding", "#b86e00", "o"),
    "coded+helper": Style("FRANC with a helper", "#d9a441", "^"),
    WINDOW: Style("window mode", "#005a9c", "D"),
}


class Tcp:
    """Goodput and delay of TCP at one loss ratio, over the offered load."""

    def __init__(self, context: Context, use: str, e3: float) -> None:
        results = context.runs(use)
        policies = results["policy"].to_numpy().astype(str)
        is_window = np.char.startswith(policies, WINDOW)
        keep = np.isin(policies, [PAPER, UNCODED]) | is_window
        keep &= results["congestion"].to_numpy() == context.parameter("congestion")
        keep &= np.isclose(results["e3"].to_numpy().astype(float), e3)
        keep &= np.isfinite(results["offered_bps"].to_numpy().astype(float))
        schemes = np.where(is_window, WINDOW, results["path"].to_numpy().astype(str))
        loads = results["offered_bps"].to_numpy().astype(float)
        self.e3 = e3
        self.calm_s: float = context.parameter("calm_delay_s")
        self._values: dict[tuple[str, float], dict[str, float]] = {}
        for point in np.flatnonzero(keep):
            place = (str(schemes[point]), float(loads[point]))
            columns = ("goodput_bps", "delay_p50_s", "delay_p95_s", "air_bytes_per_byte")
            means = {name: float(results[name][point].mean()) for name in columns}
            if place in self._values:
                raise ValueError(f"{place} = several points: expected one")
            self._values[place] = means

    def offers(self, scheme: str) -> list[float]:
        """Offered loads, bit/s, ascending."""
        return sorted(offer for other, offer in self._values if other == scheme)

    def schemes(self) -> list[str]:
        """Return the schemes that were run."""
        return [scheme for scheme in SCHEMES if self.offers(scheme)]

    def goodput(self, scheme: str, offer: float) -> float:
        """Goodput, bit/s."""
        return self._values[scheme, offer]["goodput_bps"]

    def delay(self, scheme: str, offer: float, column: str = "delay_p50_s") -> float:
        """Median or another percentile of the delay, s; infinite where nothing arrived."""
        delay = self._values[scheme, offer][column]
        return delay if np.isfinite(delay) else np.inf

    def most_kbps(self, scheme: str) -> float:
        """Maximum goodput at any load; NaN if the scheme was not run."""
        most = max((self.goodput(scheme, offer) for offer in self.offers(scheme)), default=np.nan)
        return most / 1e3

    def carried_kbps(self, scheme: str) -> float:
        """Highest offered load at which the delay is still low."""
        calm = [offer for offer in self.offers(scheme) if self.delay(scheme, offer) <= self.calm_s]
        return max(calm, default=0.0) / 1e3

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per point, in Mbit/s and seconds."""
        return [
            {
                "scheme": scheme,
                "offered": offer / 1e6,
                "goodput": self.goodput(scheme, offer) / 1e6,
                "delay": self.delay(scheme, offer),
                "delay p95": self.delay(scheme, offer, "delay_p95_s"),
                "air bytes per byte": self._values[scheme, offer]["air_bytes_per_byte"],
            }
            for scheme in self.schemes()
            for offer in self.offers(scheme)
        ]

    def window_notes(self) -> list[str]:
        """Return notes on where window mode is worse than the schemes it should match."""
        notes = []
        for offer in self.offers(WINDOW):
            for other in OTHERS:
                if offer not in self.offers(other):
                    continue
                ours, theirs = self.goodput(WINDOW, offer), self.goodput(other, offer)
                where = f"window mode behind {other} at {100 * self.e3:.0f} % loss, " + (
                    f"{offer / 1e6:g} Mbit/s offered"
                )
                if ours < (1 - GOODPUT_NOISE) * theirs:
                    notes.append(f"{where}: {ours / 1e6:.2f} Mbit/s against {theirs / 1e6:.2f}")
                # The delay of the few packets that arrived does not represent the rest.
                if theirs < ours / 2:
                    continue
                for column, name in (("delay_p50_s", "median"), ("delay_p95_s", "95th percentile")):
                    mine, other_s = (
                        self.delay(scheme, offer, column) for scheme in (WINDOW, other)
                    )
                    if mine > (1 + DELAY_NOISE) * other_s + DELAY_NOISE_S:
                        notes.append(
                            f"{where}: delay {_time(mine)} against {_time(other_s)} ({name})"
                        )
        return notes


def _time(seconds: float) -> str:
    """Return a time as text."""
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.0f} s" if seconds == round(seconds) else f"{seconds:.1f} s"


def _claim(context: Context, number: str) -> Claim:
    return next(claim for claim in context.experiment.claims if claim.id == number)


def _panels(context: Context, title: str) -> tuple[Figure, list[Axes]]:
    figure, axes = plot.panels(2)
    engine = "kernel TCP in the lab" if context.engine == "lab" else "simulated TCP"
    figure.suptitle(f"{title} · {engine}", x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.set_size_inches(11.4, 4.7)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _legend(figure: Figure, axes: Axes) -> None:
    """Add one legend below a figure's panels."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9, frameon=False
    )


def _log_delay(axes: Axes) -> None:
    """Give a panel a logarithmic delay axis from a millisecond on."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _time(float(seconds))))
    axes.grid(visible=True, which="major", alpha=0.3)


def _published_throughput(axes: Axes, claim: Claim, style: Style, value: float) -> None:
    """Draw a published throughput, Mbit/s, as a line, and the accepted range as a band."""
    # The bounds of an ordering are relative to the published value.
    scale = value if claim.kind == "ordering" else 1e-3
    most = axes.get_ylim()[1]
    low = 0.0 if claim.accepted.low is None else claim.accepted.low * scale
    high = most if claim.accepted.high is None else min(claim.accepted.high * scale, most)
    axes.axhspan(low, high, color=style.colour, alpha=0.07, linewidth=0)
    axes.axhline(value, color=style.colour, linestyle=(0, (1, 2)), linewidth=1.4)
    sign = str(claim.value)[0] if str(claim.value)[0] in "<>" else ""
    axes.annotate(
        f"published: {sign}{value:g}", (0.012, value), xycoords=("axes fraction", "data"),
        xytext=(0, 3), textcoords="offset points", fontsize=8, color=style.colour,
    )  # fmt: skip


def _over_load(context: Context, tcp: Tcp, throughputs: dict[str, str], title: str) -> Figure:
    """Plot throughput and delay over the offered load, with the claims of some schemes."""
    figure, (left, right) = _panels(context, title)
    most = max(offer for scheme in tcp.schemes() for offer in tcp.offers(scheme)) / 1e6
    left.plot([0, most], [0, most], color="black", alpha=0.25, linewidth=1)
    for scheme in tcp.schemes():
        style, offers = SCHEMES[scheme], tcp.offers(scheme)
        loads = [offer / 1e6 for offer in offers]
        line = style.line()
        goodput = [tcp.goodput(scheme, offer) / 1e6 for offer in offers]
        left.plot(loads, goodput, label=style.label, linewidth=1.8, **line)
        middle = [tcp.delay(scheme, offer) for offer in offers]
        high = [tcp.delay(scheme, offer, "delay_p95_s") for offer in offers]
        right.plot(loads, middle, label=style.label, linewidth=1.8, **line)
        right.fill_between(loads, middle, high, color=style.colour, alpha=0.13, linewidth=0)
    left.set_ylim(0, 1.02 * most)
    for number, scheme in throughputs.items():
        claim = _claim(context, number)
        value = float(str(claim.value).lstrip("<>")) / 1e3
        _published_throughput(left, claim, SCHEMES[scheme], value)
    plot.labelled(left, "Throughput", "load offered / (Mbit/s)", "goodput / (Mbit/s)", legend=False)
    _legend(figure, left)
    _log_delay(right)
    right.set_title("Delay one way, in order: median, shaded to p95", fontsize=10)
    right.set_xlabel("load offered / (Mbit/s)")
    return figure


def _vertical(axes: Axes, claim: Claim, style: Style) -> None:
    """Draw a published load, Mbit/s, and the accepted range, in a panel over the load."""
    value = float(claim.value) / 1e3
    low, high = claim.accepted.low, claim.accepted.high
    if low is not None and high is not None:
        axes.axvspan(low / 1e3, high / 1e3, color=style.colour, alpha=0.08, linewidth=0)
    axes.axvline(value, color=style.colour, linestyle=(0, (1, 2)), linewidth=1.4)
    axes.annotate(
        f"published: high beyond {value:g}", (value, 0.98), xycoords=("data", "axes fraction"),
        xytext=(-4, 0), textcoords="offset points", rotation=90, ha="right", va="top",
        fontsize=8, color=style.colour,
    )  # fmt: skip


def without_loss(context: Context) -> Findings:
    """Fig. 13: TCP without loss."""
    tcp = Tcp(context, "runs", 0.0)
    measured: dict[str, Measured] = {
        "FRANC-015": tcp.carried_kbps("coded"),
        "FRANC-016": tcp.most_kbps("plain"),
    }
    notes = tcp.window_notes()
    if context.engine == "lab" or not context.quick:
        ratio, note = _vegas(context)
        notes.append(note)
        if ratio is not None:
            measured["FRANC-V"] = ratio
    figure = _over_load(context, tcp, {"FRANC-016": "plain"}, "FRANC, Fig. 13: TCP without loss")
    _vertical(figure.axes[1], _claim(context, "FRANC-015"), SCHEMES["coded"])
    return Findings(measured, tcp.rows(), figure, notes)


def _vegas(context: Context) -> tuple[float | None, str]:
    """Delay with Cubic over that with Vegas for an always-backlogged application, and a note.

    No ratio if the lab's kernel lacks Vegas: `corridor lab run` leaves such runs out.
    """
    simulated = context.engine == "sim"
    results = context.simulate("always", whole=True) if simulated else context.measure()
    always = ~np.isfinite(results["offered_bps"].to_numpy().astype(float))
    congestion = results["congestion"].to_numpy()
    if "vegas" not in congestion[always]:
        return None, "absent: Vegas, which the lab's kernel has not (modprobe tcp_vegas)"

    def mean(name: str, column: str) -> float:
        chosen = np.flatnonzero((congestion == name) & always)
        return float(results[column].isel(point=chosen).mean())

    cubic, vegas = (
        (mean(name, "delay_p50_s"), mean(name, "goodput_bps") / 1e6) for name in ("cubic", "vegas")
    )
    note = (
        f"always data: Cubic {cubic[1]:.2f} Mbit/s with {_time(cubic[0])}, "
        f"Vegas {vegas[1]:.2f} Mbit/s with {_time(vegas[0])}"
    )
    return cubic[0] / vegas[0], note


def at_10_percent(context: Context) -> Findings:
    """Fig. 14: TCP at 10 % loss."""
    tcp, lossless = Tcp(context, "runs", 0.1), Tcp(context, "lossless", 0.0)
    loaded, light = context.parameter("loaded_bps"), context.parameter("light_bps")
    measured: dict[str, Measured] = {
        "FRANC-017": tcp.most_kbps("plain"),
        "FRANC-018": tcp.most_kbps("coded") / 2500,
        "FRANC-019": tcp.delay("coded", loaded) / lossless.delay("coded", loaded),
        "FRANC-019-P": tcp.delay("plain", loaded) / lossless.delay("plain", loaded),
        "FRANC-024": tcp.most_kbps("coded+helper") / tcp.most_kbps("coded"),
        "FRANC-025": tcp.delay("plain", light) / tcp.delay("coded", light) / 2,
        "FRANC-027-10": tcp.most_kbps("plain") / lossless.most_kbps("plain"),
    }
    if context.engine == "sim":
        few = context.simulate("few")
        carried = float(few["goodput_bps"].mean("replication").max())
        measured["FRANC-027-5"] = carried / 1e3 / lossless.most_kbps("plain")
    published = {"FRANC-017": "plain", "FRANC-018": "coded"}
    figure = _over_load(context, tcp, published, "FRANC, Fig. 14: TCP at 10 % loss")
    return Findings(measured, tcp.rows(), figure, tcp.window_notes())


def at_20_percent(context: Context) -> Findings:
    """Fig. 15: TCP at 20 % loss."""
    tcp, lossless = Tcp(context, "runs", 0.2), Tcp(context, "lossless", 0.0)
    light = context.parameter("light_bps")
    measured: dict[str, Measured] = {
        "FRANC-020": tcp.most_kbps("plain") / 200,
        "FRANC-021": tcp.most_kbps("coded"),
        "FRANC-022": tcp.delay("plain", light) / tcp.delay("coded", light),
        "FRANC-026": tcp.most_kbps("coded") / tcp.most_kbps("plain") / 10,
        "FRANC-027": tcp.most_kbps("plain") / lossless.most_kbps("plain"),
    }
    published = {"FRANC-020": "plain", "FRANC-021": "coded"}
    figure = _over_load(context, tcp, published, "FRANC, Fig. 15: TCP at 20 % loss")
    return Findings(measured, tcp.rows(), figure, tcp.window_notes())


def delay_per_bit(context: Context) -> Findings:
    """Fig. 16: delay over throughput at 10 % loss."""
    tcp = Tcp(context, "runs", 0.1)
    rows: list[dict[str, Any]] = []
    best, carried = {}, {}
    for scheme in tcp.schemes():
        per_bit = {}
        for offer in tcp.offers(scheme):
            delay, goodput = tcp.delay(scheme, offer), tcp.goodput(scheme, offer)
            per_bit[offer] = 1e9 * delay / goodput if goodput else np.inf
            rows.append(
                {
                    "scheme": scheme, "offered": offer / 1e6, "goodput": goodput / 1e6,
                    "delay": delay, "ns per bit": per_bit[offer],
                }
            )  # fmt: skip
        best[scheme] = min(per_bit, key=lambda offer: per_bit[offer])
        carried[scheme] = tcp.carried_kbps(scheme)
    figure, (left, right) = _panels(context, "FRANC, Fig. 16: delay over throughput at 10 % loss")
    for scheme in tcp.schemes():
        style, mine = SCHEMES[scheme], [row for row in rows if row["scheme"] == scheme]
        line = style.line() | {"linewidth": 1.6}
        column = {name: [row[name] for row in mine] for name in mine[0]}
        left.plot(column["goodput"], column["delay"], label=style.label, **line)
        right.plot(column["offered"], column["ns per bit"], label=style.label, **line)
        if not carried[scheme]:
            continue
        least = next(row for row in mine if row["offered"] == best[scheme] / 1e6)
        right.plot(
            [least["offered"]], [least["ns per bit"]], marker="o", markersize=13, fillstyle="none",
            color=style.colour,
        )  # fmt: skip
    _log_delay(left)
    left.set_title("Median delay, each mark a load offered", fontsize=10)
    left.set_xlabel("goodput / (Mbit/s)")
    left.set_xlim(left=0)
    _legend(figure, left)
    right.set_yscale("log")
    right.set_title("Delay per bit; the least below congestion is circled", fontsize=10)
    right.set_xlabel("load offered / (Mbit/s)")
    right.set_ylabel("median delay over goodput / (ns/bit)")
    congestion = carried["coded"] / 1e3
    right.axvline(congestion, linestyle=(0, (1, 2)), color=SCHEMES["coded"].colour)
    right.annotate(
        "FRANC congested beyond", (congestion, 0.98), xycoords=("data", "axes fraction"),
        xytext=(4, 0), textcoords="offset points", rotation=90, va="top", fontsize=8,
        color=SCHEMES["coded"].colour,
    )  # fmt: skip
    measured: dict[str, Measured] = {"FRANC-023": best["coded"] / 1e3 / carried["coded"]}
    return Findings(measured, rows, figure, tcp.window_notes())
