"""CATWOMAN in chains (2013): gain from relays that XOR packets of opposite flows."""

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from corridor import plot
from corridor.models import relaying
from corridor.models._check import FloatArray
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

#: Column of presets, and their labels in plots.
PRESET = "network.relay.preset"
NAMES = {
    "plain": "pure relaying",
    "paper": "paper: always coding",
    "paper-adaptive": "paper: adaptive (IV-B)",
    "default": "default",
}
#: Column of the load in one direction, bit/s; the other direction has the same.
ONE_WAY = "flow.0.source.rate_bps"
#: By how much throughput may fall short of that without coding before a topology counts as worse.
BEHIND = 0.03


def _delay(point: xr.Dataset) -> float:
    """Mean delay over both directions, milliseconds."""
    return 1e3 * float(point["flow.delay_mean_s"].mean())


class Curves:
    """Means over replications, by preset and total load, kbit/s."""

    def __init__(self, results: xr.Dataset) -> None:
        self.results = results
        self.presets = [str(preset) for preset in results[PRESET].to_numpy()]
        self.loads = [2 * float(bps) / 1e3 for bps in results[ONE_WAY].to_numpy()]

    def offered(self) -> list[float]:
        """Return the total loads, kbit/s."""
        return sorted(set(self.loads))

    def kinds(self) -> list[str]:
        """Return the presets, in plan order."""
        return list(dict.fromkeys(self.presets))

    def point(self, preset: str, load: float) -> xr.Dataset:
        """Return the point of a preset at a total load."""
        places = [
            index
            for index, place in enumerate(zip(self.presets, self.loads, strict=True))
            if place[0] == preset and np.isclose(place[1], load)
        ]
        if len(places) != 1:
            raise ValueError(f"{preset} at {load:g} kbit/s = {len(places)} points: expected one")
        return self.results.isel(point=places[0])

    def throughput(self, preset: str, load: float) -> float:
        """Return the throughput of both directions together, kbit/s."""
        return float(self.point(preset, load)["goodput_bps"].mean()) / 1e3

    def delay(self, preset: str, load: float) -> float:
        """Return the mean delay over both directions, milliseconds."""
        return _delay(self.point(preset, load))

    def retries(self, preset: str, load: float) -> float:
        """Return the number of MAC attempts beyond the first of each frame."""
        point = self.point(preset, load)
        return float((point["frame_attempts"] - point["frames_sent"]).mean())

    def repeats(self, preset: str, load: float) -> float:
        """Return the fraction of attempts that are retries."""
        return self.retries(preset, load) / float(self.point(preset, load)["frame_attempts"].mean())

    def fewer_retries(self, loads: list[float], *, each_packet: bool = False) -> list[float]:
        """Return retries with pure relaying over those with coding, raw or per packet received."""
        plain, coded = "plain", "paper"
        ratios = [self.retries(plain, load) / self.retries(coded, load) for load in loads]
        if not each_packet:
            return ratios
        arrived = [self.arrived(coded, load) / self.arrived(plain, load) for load in loads]
        return [ratio * more for ratio, more in zip(ratios, arrived, strict=True)]

    def arrived(self, preset: str, load: float) -> float:
        """Return the packets delivered, both directions together."""
        packets = self.point(preset, load)["flow.packets_received"].sum("flow")
        return float(packets.mean())

    def frames(self, preset: str, load: float) -> float:
        """Return frames with packets or combinations, without MAC retries."""
        point = self.point(preset, load)
        packets = point["relay_frames_plain"] + point["relay_frames_coded"]
        return float((packets + point["relay_repairs_sent"]).mean())

    def frames_per_packet(self, preset: str, load: float) -> float:
        """Return frames with packets, without MAC retries, per packet delivered."""
        return self.frames(preset, load) / self.arrived(preset, load)

    def paired(self, preset: str, load: float) -> float:
        """Return the fraction of forwarded packets sent two to a frame."""
        point = self.point(preset, load)
        forwarded = float(point["relay_packets_forwarded"].mean())
        coded = 2 * float(point["relay_frames_coded"].mean())
        # Packets received before the measured interval may be sent within it.
        return min(coded / forwarded, 1.0) if forwarded else 0.0

    def peak(self, preset: str) -> float:
        """Return the load with the highest throughput, kbit/s."""
        return max(self.offered(), key=lambda load: self.throughput(preset, load))

    def nearest(self, load: float) -> float:
        """Return the plan's load nearest to this one."""
        return min(self.offered(), key=lambda offered: abs(offered - load))

    def gain(self, preset: str, load: float) -> float:
        """Return the ratio of frames per packet with pure relaying to that with a preset."""
        return self.frames_per_packet("plain", load) / self.frames_per_packet(preset, load)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per preset and load."""
        return [
            {
                "relaying": preset,
                "load": load,
                "throughput": self.throughput(preset, load),
                "delay ms": self.delay(preset, load),
                "retries": self.retries(preset, load),
                "frames": self.frames(preset, load),
                "frames per packet": self.frames_per_packet(preset, load),
                "paired": self.paired(preset, load),
            }
            for preset in self.kinds()
            for load in self.offered()
        ]


def _lows(context: Context, curves: Curves) -> list[float]:
    """Loads below the congestion point, as given by the parameters."""
    most = context.parameter("low_load_max")
    return [load for load in curves.offered() if load <= most]


def _high(context: Context, curves: Curves) -> list[float]:
    """Loads of overload."""
    least = context.parameter("overload_min")
    return [load for load in curves.offered() if load >= least]


def _figure(curves: Curves, published: dict[str, tuple[list[float], list[float]]]) -> Any:
    figure, panels = plot.panels(4)
    wanted = (
        ("throughput / (kbit/s)", curves.throughput),
        ("delay / ms", curves.delay),
        ("retries of MACs", curves.retries),
        ("frames with packets", curves.frames),
    )
    for axes, (what, values) in zip(panels, wanted, strict=True):
        for preset in curves.kinds():
            places = curves.offered()
            axes.plot(
                places,
                [values(preset, load) for load in places],
                "o-",
                markersize=4,
                label=NAMES[preset],
            )
        if what in published:
            plot.published(axes, *published[what])
        plot.labelled(axes, what, "total load / (kbit/s)", what)
    return figure


def gains(context: Context) -> Findings:
    """Figs. 2 to 4: transmissions, coding gain, and the effect of a limit on transmissions."""
    most = context.parameter("relays_max")
    rows = [
        {
            "relays": count,
            "plain": relaying.transmissions_plain(count),
            "coded": relaying.transmissions_coded(count),
            "paper's formula": relaying.gain_of_paper(count),
            "ends counted": relaying.gain_with_ends(count),
            "ratio of transmissions": relaying.gain_of_transmissions(count),
        }
        for count in range(1, most + 1)
    ]
    limit = context.parameter("limit")
    measured: dict[str, Measured] = {
        "CATWOMAN-003": relaying.gain_of_paper(1),
        "CATWOMAN-003-E": relaying.gain_with_ends(1),
        "CATWOMAN-004": max(abs(relaying.gain_of_paper(n) - (1.5 - 0.5 / n)) for n in (1, 3, 6)),
        "CATWOMAN-005": relaying.gain_of_paper(3),
        "CATWOMAN-006": relaying.gain_of_paper(6),
        "CATWOMAN-007": relaying.gain_of_paper(relaying.RELAYS_MAX),
        "CATWOMAN-008": relaying.transmissions_plain(3),
        "CATWOMAN-009": relaying.transmissions_coded(3),
        "CATWOMAN-009-R": relaying.transmissions_coded(3) - 1,
        "CATWOMAN-010": float(limit),
        "CATWOMAN-COPE": relaying.gain_of_transmissions(6),
    }
    figure, (left, middle, right) = plot.panels(3, columns=3)
    counts = [row["relays"] for row in rows]
    for name in ("plain", "coded"):
        left.plot(counts, [row[name] for row in rows], "o-", markersize=3, label=name)
    plot.labelled(left, "transmissions", "relays", "for one packet each way")
    for name in ("paper's formula", "ends counted", "ratio of transmissions"):
        middle.plot(counts, [row[name] for row in rows], "o-", markersize=3, label=name)
    plot.labelled(middle, "coding gain", "relays", "gain")
    loads = np.linspace(0, 20, 81)
    for coded in (False, True):
        sent = [relaying.frames_per_second(6, load, limit, coded=coded) for load in loads]
        right.plot(2 * loads, sent, label="coded" if coded else "plain")
    plot.labelled(right, "six relays", "packets / s, both ways", "transmissions / s")
    return Findings(measured, rows, figure)


def chain(context: Context) -> Findings:
    """Figs. 8 to 11: throughput, delay, retries and frames over load, with coding always on."""
    curves = Curves(context.simulate("runs"))
    lows, highs = _lows(context, curves), _high(context, curves)
    congestion = curves.peak("plain")
    at_1800, at_1600 = curves.nearest(1800), curves.nearest(1600)
    plain, coded = "plain", "paper"

    def over_plain(loads: list[float]) -> list[float]:
        return [curves.throughput(coded, x) / curves.throughput(plain, x) for x in loads]

    def slower(loads: list[float]) -> list[float]:
        return [curves.delay(plain, x) / curves.delay(coded, x) for x in loads]

    most = {preset: curves.throughput(preset, curves.peak(preset)) for preset in (plain, coded)}
    delays = [curves.delay(coded, load) for load in (lows[0], congestion)]
    ends = Curves(context.simulate("ends"))
    gain = curves.gain(coded, congestion)
    beside = _beside_better(curves)
    measured: dict[str, Measured] = {
        "CATWOMAN-001": max(slower(highs)),
        "CATWOMAN-002": max(over_plain(highs)),
        "CATWOMAN-002-O": min(over_plain(highs)),
        "CATWOMAN-016": float(np.mean(over_plain(lows))),
        "CATWOMAN-017": most[plain],
        "CATWOMAN-017-L": congestion,
        "CATWOMAN-018": most[coded],
        "CATWOMAN-019": most[coded] / most[plain],
        "CATWOMAN-020": over_plain([at_1800])[0],
        "CATWOMAN-021": curves.delay(plain, lows[0]),
        "CATWOMAN-022": delays[0],
        "CATWOMAN-022-O": delays[0] / curves.delay(plain, lows[0]),
        "CATWOMAN-023": delays[1],
        "CATWOMAN-023-T": delays[1] - delays[0],
        "CATWOMAN-024": slower([at_1600])[0],
        "CATWOMAN-024-O": min(slower(highs)),
        "CATWOMAN-025": min(curves.fewer_retries(highs)),
        "CATWOMAN-025-E": min(ends.fewer_retries(ends.offered())),
        "CATWOMAN-025-P": min(curves.fewer_retries(highs, each_packet=True)),
        "CATWOMAN-026": gain,
        "CATWOMAN-026-F": relaying.gain_of_transmissions(6, curves.paired(coded, congestion)),
        "CATWOMAN-DEF": min(share for _, share, _ in beside),
        "CATWOMAN-DEF-D": max(longer for _, _, longer in beside),
    }
    number = context.published
    peak = number("CATWOMAN-018")
    least, before = curves.offered()[0], number("CATWOMAN-017-L")
    published = {
        # Coding carries the offered load, up to its peak.
        "throughput / (kbit/s)": ([before, peak], [number("CATWOMAN-017"), peak]),
        "delay / ms": (
            [least, least, before],
            [number("CATWOMAN-021"), number("CATWOMAN-022"), number("CATWOMAN-023")],
        ),
    }
    notes = [
        f"point of congestion of pure relaying: {congestion:.0f} kbit/s; there {gain:.3f} frames "
        f"without coding over one with it, {curves.paired(coded, congestion):.1%} of the forwarded "
        f"packets paired, which is a ratio of transmissions of "
        f"{measured['CATWOMAN-026-F']:.3f} where nothing is lost; frames at the same load, not for "
        f"each packet that arrives: "
        f"{curves.frames(plain, congestion) / curves.frames(coded, congestion):.3f}",
        _share_of_repeats(curves, ends, highs[-1]),
        *(
            f"default at {load:.0f} kbit/s: {share:.3f} of the better one's throughput, "
            f"{longer:+.1f} ms of delay"
            for load, share, longer in beside
        ),
    ]
    return Findings(measured, curves.rows(), _figure(curves, published), notes)


def _share_of_repeats(curves: Curves, ends: Curves, load: float) -> str:
    """Return a note on how the loss on the end hops affects retries under overload."""
    shares = [
        chain.repeats(preset, load) for chain in (curves, ends) for preset in ("plain", "paper")
    ]
    return (
        f"repeats among all attempts at {load:.0f} kbit/s, without and with coding: "
        f"{shares[0]:.1%} and {shares[1]:.1%}; where the ends' hops lose "
        f"as many frames as the others: {shares[2]:.1%} and {shares[3]:.1%}"
    )


def _beside_better(curves: Curves) -> list[tuple[float, float, float]]:
    """Compare the default with the better of pure relaying and the paper's adaptive coding.

    For each load: the load, relative throughput, and extra delay over the other's, milliseconds.
    """
    others = ("plain", "paper-adaptive")
    beside = []
    for load in curves.offered():
        most = max(curves.throughput(preset, load) for preset in others)
        least = min(curves.delay(preset, load) for preset in others)
        share = curves.throughput("default", load) / most
        beside.append((load, share, curves.delay("default", load) - least))
    return beside


def adaptive(context: Context) -> Findings:
    """Figs. 12 and 13: adaptive buffering."""
    curves = Curves(context.simulate("runs"))
    lows, highs = _lows(context, curves), _high(context, curves)
    plain, always, ours = "plain", "paper", "paper-adaptive"

    def lost(preset: str) -> float:
        offered = sum(lows)
        return 1 - sum(curves.throughput(preset, load) for load in lows) / offered

    first = lows[0]
    low = curves.delay(ours, first) / curves.delay(plain, first)
    kept = [curves.throughput(ours, x) / curves.throughput(always, x) for x in highs]
    lower = [curves.delay(plain, x) / curves.delay(ours, x) for x in highs]
    measured: dict[str, Measured] = {
        "CATWOMAN-028": lost(always) / max(lost(ours), 1e-6),
        "CATWOMAN-029": max(lower),
        "CATWOMAN-029-L": low - 1,
        "CATWOMAN-029-H": min(kept),
        "CATWOMAN-029-O": min(lower),
    }
    readings = _readings(context)
    figure = _figure(curves, {})
    return Findings(measured, curves.rows(), figure, readings)


def _readings(context: Context) -> list[str]:
    """Both readings of what congestion switches (docs/errata.md, C2), side by side."""
    results = context.simulate("readings")
    column = "network.relay.adaptive"
    notes = []
    for index in range(results.sizes["point"]):
        point = results.isel(point=index)
        load = 2 * float(point[ONE_WAY]) / 1e3
        threshold = int(point["network.relay.retries_per_second"])
        notes.append(
            f"congestion, from {threshold} retries a second, toggles {point[column].item()}: "
            f"{load:.0f} kbit/s offered, {float(point['goodput_bps'].mean()) / 1e3:.0f} carried, "
            f"{_delay(point):.0f} ms"
        )
    return notes


def hops(context: Context) -> Findings:
    """Chains of 1 to 7 hops: coding gain by length."""
    results = context.simulate("runs")
    ends = results["flow.0.to"].to_numpy().astype(int)
    rows: list[dict[str, Any]] = []
    gains: dict[float, list[float]] = {}
    paired_gains: dict[float, list[float]] = {}
    for length in sorted(set(ends.tolist())):
        curves = Curves(results.isel(point=np.flatnonzero(ends == length)))
        for load in curves.offered():
            gain = curves.gain("paper", load)
            gains.setdefault(load, []).append(gain)
            row: dict[str, Any] = {"hops": length, "load": load}
            for preset in curves.kinds():
                row[f"{preset}: throughput"] = curves.throughput(preset, load)
                row[f"{preset}: delay ms"] = curves.delay(preset, load)
            paired = curves.paired("paper", load)
            by_pairs = relaying.gain_of_transmissions(length - 1, paired) if length > 1 else 1.0
            paired_gains.setdefault(load, []).append(by_pairs)
            rows.append(row | {"paired": paired, "coding gain": gain, "by pairs": by_pairs})
    figure, (left, right) = plot.panels(2)
    lengths = sorted({row["hops"] for row in rows})
    for load, values in gains.items():
        right.plot(lengths, values, "o-", markersize=4, label=f"{load:g} kbit/s")
        for preset in ("plain", "paper"):
            carried = [row[f"{preset}: throughput"] for row in rows if row["load"] == load]
            left.plot(lengths, carried, "o-", markersize=4, label=f"{NAMES[preset]}, {load:g}")
    plot.labelled(left, "throughput", "hops", "throughput / (kbit/s)")
    plot.labelled(right, "frames without coding over with", "hops", "coding gain")
    calm, by_pairs_calm = gains[min(gains)], paired_gains[min(gains)]
    # One hop means no relay; two hops mean one, seven mean six.
    measured: dict[str, Measured] = {
        "CATWOMAN-HOPS": calm[-1] / calm[1],
        "CATWOMAN-HOPS-F": by_pairs_calm[-1] / by_pairs_calm[1],
        "CATWOMAN-HOPS-1": calm[0] - 1,
    }
    return Findings(measured, rows, figure)


def sensitivity(context: Context) -> Findings:
    """Effect of the packet size, which the paper does not state."""
    results = context.simulate("runs")
    rows: list[dict[str, Any]] = []
    for index in range(results.sizes["point"]):
        point = results.isel(point=index)
        rows.append(
            {
                "payload": int(point["flow.0.payload_bytes"]),
                "relaying": NAMES[str(point[PRESET].item())],
                "load": 2 * float(point[ONE_WAY]) / 1e3,
                "throughput": float(point["goodput_bps"].mean()) / 1e3,
                "delay ms": _delay(point),
            }
        )
    figure, (axes,) = plot.panels(1)
    for name in dict.fromkeys(row["relaying"] for row in rows):
        for payload in dict.fromkeys(row["payload"] for row in rows):
            these = [r for r in rows if r["relaying"] == name and r["payload"] == payload]
            axes.plot(
                [row["load"] for row in these],
                [row["throughput"] for row in these],
                "o-",
                markersize=4,
                label=f"{name}, {payload} B",
            )
    plot.labelled(axes, "packet size", "total load / (kbit/s)", "throughput / (kbit/s)")
    return Findings({}, rows, figure)


def degraded(context: Context) -> Findings:
    """Random topologies with unreliable overhearing: which are worse off with coding."""
    results = context.simulate("runs")
    codes = results["network.relay.coding"].to_numpy().astype(bool)
    # Both list the topologies in the order of their seeds, from 1.
    pairs = zip(np.flatnonzero(~codes), np.flatnonzero(codes), strict=True)
    rows: list[dict[str, Any]] = []
    for seed, pair in enumerate(pairs, 1):
        both = (results["goodput_bps"].isel(point=int(index)) for index in pair)
        plain, coded = (runs.to_numpy().astype(float) for runs in both)
        if plain.mean() == 0:
            # Some hop has no link at all: there is no path.
            continue
        change = (coded - plain) / plain.mean()
        rows.append(
            {
                "topology": seed,
                "throughput": plain.mean() / 1e3,
                "change": float(change.mean()),
                "half width": _half_width(change),
            }
        )
    for row in rows:
        # Simultaneous intervals over all of them.
        row["half width"] *= _quantile(len(rows), results.sizes["replication"])
    behind = [row for row in rows if row["change"] + row["half width"] < -BEHIND]
    changes = [row["change"] for row in rows]
    figure, (axes,) = plot.panels(1)
    axes.errorbar(
        [row["throughput"] for row in rows],
        [100 * change for change in changes],
        yerr=[100 * row["half width"] for row in rows],
        fmt="o",
        markersize=3,
        linewidth=0.5,
    )
    axes.axhline(-100 * BEHIND, color="grey", linewidth=1)
    plot.labelled(axes, "coding", "pure relaying / (kbit/s)", "change / %", legend=False)
    measured: dict[str, Measured] = {
        "CATWOMAN-DEG": len(behind),
        "CATWOMAN-DEG-M": 1 + float(np.mean(changes)),
    }
    notes = [
        f"{len(rows)} topologies with a path; changes from {min(changes):+.1%} to "
        f"{max(changes):+.1%}, median {float(np.median(changes)):+.1%}; largest half width "
        f"{max(row['half width'] for row in rows):.1%}"
    ]
    return Findings(measured, rows, figure, notes)


def _half_width(values: FloatArray) -> float:
    """Standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else 0.0


def _quantile(intervals: int, replications: int) -> float:
    """Half-width in standard errors of each of several simultaneous 95 % intervals (Bonferroni)."""
    if replications < 2:
        return 0.0
    return float(stats.t.ppf(1 - 0.025 / max(intervals, 1), replications - 1))
