"""Fig. 1: the mesh, and the links between neighbours."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from corridor import _native, plot, sim
from corridor.study.findings import Context, Findings

#: Receiver noise, dBm, and the range of the LQI: linear in the SNR from -5 dB, 255 at 15 dB.
NOISE_DBM, LQI_MAX, ZERO_DB, SPAN_DB = -98.0, 255.0, -5.0, 20.0
#: Maximum distance of neighbours, in steps of the grid, including diagonals.
NEAR_STEPS = 2**0.5
#: Line width at the maximum LQI, points.
WIDTH = 5.0


def lqi(power_dbm: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the LQI of frames received at a given power.

    Examples
    --------
    >>> lqi(np.array([-110.0, -95.0, -83.0])).tolist()
    [0.0, 102.0, 255.0]
    """
    above_db = power_dbm - NOISE_DBM - ZERO_DB
    return np.clip(LQI_MAX * above_db / SPAN_DB, 0.0, LQI_MAX)


def links(context: Context) -> Findings:
    """Plot the mesh, and characterise links of each length."""
    plan = sim.PlanText.read(context.experiment.plan("mesh"))
    places, reaches = _native.PlanRuns(plan.text(), str(plan.directory), 1).sketch(0)
    heard = reaches[reaches[:, 2] == 1]
    ends = heard[:, :2].astype(int)
    # Each link once: both directions are equal.
    once = ends[:, 0] < ends[:, 1]
    ends, quality = ends[once], lqi(heard[once, 3])
    metres = np.hypot(*(places[ends[:, 0]] - places[ends[:, 1]]).T)
    rows: list[dict[str, Any]] = []
    for length in np.unique(metres.round(2)):
        own = quality[metres.round(2) == length]
        pairs = _pairs(places, float(length))
        rows.append(
            {
                "metres": float(length),
                "pairs": pairs,
                "heard": len(own),
                "least LQI": float(own.min()),
                "mean LQI": float(own.mean()),
                "most LQI": float(own.max()),
            }
        )
    figure, (axes,) = plot.panels(1)
    _draw(axes, places, ends, quality)
    return Findings({}, rows, figure)


def _pairs(places: NDArray[np.float64], length: float) -> int:
    """Return the number of pairs of nodes at this distance."""
    apart = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    return int((np.triu(apart, 1).round(2) == length).sum())


def _draw(
    axes: Axes, places: NDArray[np.float64], ends: NDArray[np.int_], quality: NDArray[np.float64]
) -> None:
    steps = np.array([np.diff(np.unique(places[:, side])).min() for side in range(2)])
    for (a, b), value in zip(ends, quality, strict=True):
        if np.hypot(*((places[a] - places[b]) / steps)) <= NEAR_STEPS + 1e-9:
            line = places[[a, b]]
            axes.plot(*line.T, color="C0", linewidth=WIDTH * value / LQI_MAX, alpha=0.7)
    axes.plot(*places.T, "o", color="C1", markersize=5)
    axes.set_aspect("equal")
    plot.labelled(axes, "links between neighbours, as thick as their LQI", "m", "m", legend=False)
