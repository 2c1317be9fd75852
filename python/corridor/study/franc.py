"""The FRANC paper's figures: UDP and TCP over a lossy radio, with and without coding."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from corridor import plot, stats
from corridor.models import coding
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

#: The paper's coding parameters, as the simulator names them.
PAPER = "paper"
#: Paths, and their labels in plots.
PATHS = {"plain": "unreliable link", "coded": "coded", "coded+helper": "coded, helper"}
#: Paths without a coding in the simulator's results.
UNCODED = "-"


def _rows(results: xr.Dataset, **wanted: Any) -> xr.Dataset:
    """Points of a plan with these parameters; codings other than the paper's are left out."""
    keep = np.isin(results["policy"].to_numpy(), [PAPER, UNCODED])
    for name, value in wanted.items():
        column = results[name].to_numpy()
        near = np.isclose(column.astype(float), value) if isinstance(value, float) else None
        keep &= (column == value) if near is None else near
    return results.isel(point=np.flatnonzero(keep))


def _mean(results: xr.Dataset, column: str, **wanted: Any) -> float:
    """Mean of a column over the replications of the single matching point."""
    return float(_one(results, column, **wanted).mean())


def _places_of(results: xr.Dataset, **wanted: Any) -> list[int]:
    """Indices of the points with these values."""
    keep = np.ones(results.sizes["point"], bool)
    for name, value in wanted.items():
        keep &= results[name].to_numpy() == value
    return np.flatnonzero(keep).tolist()


def _rise(values: list[float]) -> float:
    """Mean of the second half of some values minus that of the first."""
    half = len(values) // 2
    return float(np.mean(values[-half:]) - np.mean(values[:half]))


def _one(results: xr.Dataset, column: str, **wanted: Any) -> xr.DataArray:
    """Replications of a column at the single matching point."""
    rows = _rows(results, **wanted)
    if rows.sizes["point"] != 1:
        raise ValueError(f"{wanted} = {rows.sizes['point']} points: expected one")
    return rows[column]


def _e3(results: xr.Dataset) -> list[float]:
    return sorted({float(e3) for e3 in results["e3"].to_numpy()})


def _over_unreliable(results: xr.Dataset, path: str) -> list[float]:
    """Goodput of a path relative to the unreliable link's, at each e3."""
    return [
        _mean(results, "goodput_bps", path=path, e3=e3)
        / _mean(results, "goodput_bps", path="plain", e3=e3)
        for e3 in _e3(results)
    ]


def _curves(axes: Axes, results: xr.Dataset, column: str, scale: float, **wanted: Any) -> None:
    """Plot a column over e3 for every path and coding."""
    named = zip(results["path"].to_numpy(), results["policy"].to_numpy(), strict=True)
    for path, policy in sorted(set(named)):
        keep = (results["path"] == path) & (results["policy"] == policy)
        rows = results.isel(point=np.flatnonzero(keep))
        for name, value in wanted.items():
            rows = rows.isel(point=np.flatnonzero(np.isclose(rows[name].astype(float), value)))
        if not rows.sizes["point"] or bool(rows[column].isnull().all()):
            continue
        label = PATHS[path] + ("" if policy == UNCODED else f", {policy}")
        plot.estimates(axes, rows["e3"].to_numpy(), stats.mean_ci(rows[column]), label, scale)


def throughput(context: Context) -> Findings:
    """Fig. 9: UDP throughput over e3."""
    results = context.simulate("runs")
    shares = {path: _over_unreliable(results, path) for path in ("coded", "coded+helper")}
    least = results["goodput_bps"].isel(point=_places_of(results, path="plain")).min()
    measured: dict[str, Measured] = {
        "FRANC-007": float(results["offered_bps"].max()) / 1e6,
        "FRANC-009": float(np.mean(shares["coded"])),
        "FRANC-010": float(np.mean(shares["coded+helper"])),
        "FRANC-010-60": float(np.mean(shares["coded+helper"][:6])),
        "FRANC-010-T": _rise(shares["coded+helper"]),
        "FRANC-009-0": float(least) > 0,
    }
    figure, (left, right) = plot.panels(2)
    _curves(left, results, "goodput_bps", 1e6)
    plot.labelled(left, "throughput of UDP", "e3", "goodput / (Mbit/s)")
    e3 = _e3(results)
    for (path, share), claim in zip(shares.items(), ("FRANC-009", "FRANC-010"), strict=True):
        right.plot(e3, share, "o-", markersize=4, label=PATHS[path])
        plot.published(right, [float(np.mean(e3))], [context.published(claim) / 100])
    plot.labelled(right, "the paper's coding", "e3", "goodput over the unreliable link's")
    rows = [
        {"e3": e, "without helper": a, "with helper": b}
        for e, a, b in zip(e3, *shares.values(), strict=True)
    ]
    return Findings(measured, rows, figure)


def transmissions(context: Context) -> Findings:
    """Fig. 10: transmissions per block over e3."""
    results = context.simulate("runs")
    column, e3 = "transmissions_per_block", _e3(results)
    rows = []
    for e in e3:
        encoder, helper = coding.optimum(context.parameter("block_size"), e / 2, e / 2, e)
        alone = _mean(results, column, path="coded", e3=e)
        helped = _mean(results, column, path="coded+helper", e3=e)
        own = _mean(results, f"encoder_{column}", path="coded+helper", e3=e)
        rows.append(
            {"e3": e, "without helper": alone, "with helper": helped, "ratio": helped / alone,
             "encoder's": own, "optimum": float(encoder + helper)}
        )  # fmt: skip
    figure, (left, right) = plot.panels(2)
    _curves(left, results, column, 1)
    left.set_yscale("log")
    left.plot(e3, [row["optimum"] for row in rows], "k:", label="least with helper")
    left.set_title("frames with symbols per block", fontsize=10)
    left.set_xlabel("e3")
    left.legend(fontsize=8)
    right.plot(e3, [row["ratio"] for row in rows], "o-", markersize=4, label="the paper's coding")
    plot.labelled(right, "with helper over without", "e3", "ratio of transmissions")
    saved = [1 - row["ratio"] for row in rows]
    return Findings({"FRANC-011": rows[-1]["ratio"], "FRANC-011-T": _rise(saved)}, rows, figure)


def _places(context: Context, results: xr.Dataset, column: str) -> dict[float, list[float]]:
    """A column over e3 with the helper, by e1 of its position."""
    return {
        e1: [_mean(results, column, path="coded+helper", e1=e1, e3=e3) for e3 in _e3(results)]
        for e1 in context.parameter("places_e1")
    }


def _place_panel(
    context: Context, results: xr.Dataset, column: str, scale: float, what: str
) -> Figure:
    figure, axes = plot.panels(len(context.parameter("places_e1")), columns=3)
    for panel, e1 in zip(axes, context.parameter("places_e1"), strict=True):
        _curves(panel, results, column, scale, e1=e1)
        plot.labelled(panel, f"e1 = {e1:g}", "e3", what)
    return figure


def _place_rows(e3: Iterable[float], places: dict[float, list[float]]) -> list[dict[str, float]]:
    return [
        {"e3": e, **{f"e1 = {e1:g}": values[i] for e1, values in places.items()}}
        for i, e in enumerate(e3)
    ]


def places(context: Context) -> Findings:
    """Fig. 11: UDP throughput for three positions of the helper."""
    results = context.simulate("runs")
    by_place = _places(context, results, "goodput_bps")
    near, middle, far = (np.array(values) for values in by_place.values())
    over_others = middle / np.maximum(near, far)
    helped = _rows(results, path="coded+helper")
    sets = sorted({(float(a), float(b)) for a, b in zip(helped["e1"], helped["e2"], strict=True)})
    measured: dict[str, Measured] = {
        "FRANC-008": sets == [(0.1, 0.5), (0.3, 0.3), (0.5, 0.1)],
        "FRANC-012": float(np.mean(_over_unreliable(results, "coded"))),
        "FRANC-013": float(over_others.min()),
        "FRANC-013-90": float(over_others[-1]),
    }
    figure = _place_panel(context, results, "goodput_bps", 1e6, "goodput / (Mbit/s)")
    return Findings(measured, _place_rows(_e3(results), by_place), figure)


def timeouts(context: Context) -> Findings:
    """Fig. 12: timeouts per block for three positions of the helper."""
    results = context.simulate("runs")
    column = "timeouts_per_block"
    means = _places(context, results, column)
    medians = {
        e1: [
            float(_one(results, column, path="coded+helper", e1=e1, e3=e3).median())
            for e3 in _e3(results)
        ]
        for e1 in context.parameter("places_e1")
    }
    near, middle, far = (float(np.mean(values)) for values in means.values())
    figure = _place_panel(context, results, column, 1, "timeouts per block")
    measured: dict[str, Measured] = {
        "FRANC-014": _asymmetry(means),
        "FRANC-014-M": _asymmetry(medians),
        "FRANC-014-N": near / middle,
        "FRANC-014-F": far / middle,
    }
    return Findings(measured, _place_rows(_e3(results), means), figure)


def _asymmetry(places: dict[float, list[float]]) -> float:
    """Mean over the asymmetric positions, relative to the symmetric one."""
    near, middle, far = (float(np.mean(values)) for values in places.values())
    return (near + far) / 2 / middle


def differences(context: Context) -> Findings:
    """Our choices beyond the paper's text, each undone in turn (docs/errata.md, 10 to 17)."""
    rows = []
    base: dict[tuple[str, str, float], dict[str, float]] = {}
    changes: dict[tuple[str, str, str, float], float] = {}
    for use, variant in (("runs", ""), ("fixed", "ratios told"), ("vector", "vector in frames")):
        results = context.simulate(use)
        for point in range(results.sizes["point"]):
            row = results.isel(point=point)
            coding = str(row["policy"].item()).removeprefix(PAPER).strip()
            place = (str(row["transport"].item()), str(row["path"].item()), float(row["e3"]))
            ours = {
                "goodput": float(row["goodput_bps"].mean()) / 1e6,
                "transmissions per block": float(row["transmissions_per_block"].mean()),
                "timeouts per block": float(row["timeouts_per_block"].mean()),
            }
            what = variant or coding
            if not what:
                base[place] = ours
            change = ours["goodput"] / base[place]["goodput"] - 1
            transport, path, e3 = place
            if what:
                changes[what, *place] = change
            rows.append(
                {"difference": what or "ours", "transport": transport, "path": path, "e3": e3,
                 **ours, "goodput changes by": change}
            )  # fmt: skip
    overhead = context.simulate("overhead")
    places = overhead["medium.overhead_us"].to_numpy().astype(float)
    carried = stats.mean_ci(overhead["goodput_bps"])
    figure, (left, right) = plot.panels(2)
    left.barh(
        [f"{what}, {transport} {path} {e3:g}" for what, transport, path, e3 in changes],
        [100 * change for change in changes.values()],
    )
    left.tick_params(labelsize=5)
    plot.labelled(left, "undone", "goodput changes by / %", "", legend=False)
    plot.estimates(right, places, carried, "TCP without loss", 1e6)
    plot.published(right, [400], [7.0])
    plot.labelled(right, "overhead", "overhead of a frame / us", "goodput / (Mbit/s)")
    means = carried.sel(estimate="mean").to_numpy() / 1e6
    notes = [f"{o:g} us of overhead: {m:.2f} Mbit/s" for o, m in zip(places, means, strict=True)]
    return Findings({}, rows, figure, notes)


def helper_air(context: Context) -> Findings:
    """Use of air time when a helper takes part in a TCP connection."""
    results = context.simulate("runs")
    columns = {"goodput": "goodput_bps", "air busy": "air_utilisation"}
    rows = []
    for e3 in _e3(results):
        alone, helped = (
            {name: _mean(results, column, path=path, e3=e3) for name, column in columns.items()}
            for path in ("coded", "coded+helper")
        )
        # Seconds of air time per megabit delivered: the effect of a helper.
        air = [each["air busy"] / each["goodput"] * 1e6 for each in (alone, helped)]
        gain = helped["goodput"] / alone["goodput"]
        rows.append(
            {"e3": e3, "Mbit/s": alone["goodput"] / 1e6, "with helper": helped["goodput"] / 1e6,
             "gain": gain, "air busy": alone["air busy"], "busy with helper": helped["air busy"],
             "air s/Mbit": air[0], "with": air[1], "air alone gives": air[0] / air[1]}
        )  # fmt: skip
    figure, (axes,) = plot.panels(1)
    places = _e3(results)
    axes.plot(places, [row["gain"] for row in rows], "o-", label="gain of the helper")
    axes.plot(places, [row["air alone gives"] for row in rows], "s--", label="by air for each bit")
    axes.axhline(1, color="grey", linewidth=1)
    plot.labelled(axes, "TCP, helper's links lose 10 %", "e3", "goodput over that without helper")
    return Findings({}, rows, figure)
