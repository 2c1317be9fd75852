"""The FRANC paper's figures: UDP and TCP over a lossy radio, with and without coding."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from corridor import plot, sim
from corridor.models import coding
from corridor.study.claims import Measured
from corridor.study.findings import Context, Findings

#: The paper's coding parameters, as the simulator names them.
PAPER = "paper"
#: Paths, and their names in pictures.
PATHS = {"plain": "unreliable link", "coded": "coded", "coded+helper": "coded, helper"}
#: Paths that the simulator says nothing of coding for.
UNCODED = "-"


def _rows(results: xr.Dataset, **wanted: Any) -> xr.Dataset:
    """Points of a plan where the parameters are these; all codings but the paper's are left out."""
    keep = np.isin(results["policy"].to_numpy(), [PAPER, UNCODED])
    for name, value in wanted.items():
        column = results[name].to_numpy()
        near = np.isclose(column.astype(float), value) if isinstance(value, float) else None
        keep &= (column == value) if near is None else near
    return results.isel(point=np.flatnonzero(keep))


def _mean(results: xr.Dataset, column: str, **wanted: Any) -> float:
    """Mean of a column over the replications of the one point that is meant."""
    return float(_one(results, column, **wanted).mean())


def _one(results: xr.Dataset, column: str, **wanted: Any) -> xr.DataArray:
    """Replications of a column at the one point that is meant."""
    rows = _rows(results, **wanted)
    if rows.sizes["point"] != 1:
        raise ValueError(f"{wanted} = {rows.sizes['point']} points: expected one")
    return rows[column]


def _e3(results: xr.Dataset) -> list[float]:
    return sorted({float(e3) for e3 in results["e3"].to_numpy()})


def _over_unreliable(results: xr.Dataset, path: str) -> list[float]:
    """Goodput of a path over the unreliable link's, at each e3."""
    return [
        _mean(results, "goodput_bps", path=path, e3=e3)
        / _mean(results, "goodput_bps", path="plain", e3=e3)
        for e3 in _e3(results)
    ]


def _published(context: Context, claim: str) -> float:
    return next(float(c.value) for c in context.experiment.claims if c.id == claim)


def _curves(axes: Axes, results: xr.Dataset, column: str, scale: float, **wanted: Any) -> None:
    """Draw a column over e3 for every path and coding that there is."""
    named = zip(results["path"].to_numpy(), results["policy"].to_numpy(), strict=True)
    for path, policy in sorted(set(named)):
        keep = (results["path"] == path) & (results["policy"] == policy)
        rows = results.isel(point=np.flatnonzero(keep))
        for name, value in wanted.items():
            rows = rows.isel(point=np.flatnonzero(np.isclose(rows[name].astype(float), value)))
        if not rows.sizes["point"] or bool(rows[column].isnull().all()):
            continue
        label = PATHS[path] + ("" if policy == UNCODED else f", {policy}")
        plot.estimates(axes, rows["e3"].to_numpy(), sim.mean_ci(rows[column]), label, scale)


def throughput(context: Context) -> Findings:
    """Fig. 9: UDP throughput over e3."""
    results = context.simulate("runs")
    shares = {path: _over_unreliable(results, path) for path in ("coded", "coded+helper")}
    measured: dict[str, Measured] = {
        "FRANC-007": float(results["offered_bps"].max()) / 1e6,
        "FRANC-009": float(np.mean(shares["coded"])),
        "FRANC-010": float(np.mean(shares["coded+helper"])),
    }
    figure, (left, right) = plot.panels(2)
    _curves(left, results, "goodput_bps", 1e6)
    plot.labelled(left, "throughput of UDP", "e3", "goodput / (Mbit/s)")
    e3 = _e3(results)
    for (path, share), claim in zip(shares.items(), ("FRANC-009", "FRANC-010"), strict=True):
        right.plot(e3, share, "o-", markersize=4, label=PATHS[path])
        plot.published(right, [float(np.mean(e3))], [_published(context, claim) / 100])
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
    return Findings({"FRANC-011": rows[-1]["ratio"]}, rows, figure)


def _places(context: Context, results: xr.Dataset, column: str) -> dict[float, list[float]]:
    """A column over e3 with the helper, by e1 of its place."""
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
    """Fig. 11: UDP throughput for three places of the helper."""
    results = context.simulate("runs")
    by_place = _places(context, results, "goodput_bps")
    near, middle, far = (float(np.mean(values)) for values in by_place.values())
    helped = _rows(results, path="coded+helper")
    sets = sorted({(float(a), float(b)) for a, b in zip(helped["e1"], helped["e2"], strict=True)})
    measured: dict[str, Measured] = {
        "FRANC-008": sets == [(0.1, 0.5), (0.3, 0.3), (0.5, 0.1)],
        "FRANC-012": float(np.mean(_over_unreliable(results, "coded"))),
        "FRANC-013": middle / max(near, far),
    }
    figure = _place_panel(context, results, "goodput_bps", 1e6, "goodput / (Mbit/s)")
    return Findings(measured, _place_rows(_e3(results), by_place), figure)


def timeouts(context: Context) -> Findings:
    """Fig. 12: timeouts per block for three places of the helper."""
    results = context.simulate("runs")
    # Medians: in some runs with e3 = .9 the ends hardly meet, and hundreds of timeouts fall on the
    # one block that they have.
    by_place = {
        e1: [
            float(_one(results, "timeouts_per_block", path="coded+helper", e1=e1, e3=e3).median())
            for e3 in _e3(results)
        ]
        for e1 in context.parameter("places_e1")
    }
    near, middle, far = (float(np.mean(values)) for values in by_place.values())
    figure = _place_panel(context, results, "timeouts_per_block", 1, "timeouts per block")
    measured: dict[str, Measured] = {"FRANC-014": (near + far) / 2 / middle}
    return Findings(measured, _place_rows(_e3(results), by_place), figure)
