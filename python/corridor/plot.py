"""Plots of results, overlaid with published values.

Our results are lines or filled markers in colour, with confidence intervals where available;
published points are crosses in the text colour. Nothing here depends on a particular experiment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

#: Size of one panel, inches.
PANEL = (5.2, 3.6)


def panels(count: int, columns: int = 2) -> tuple[Figure, list[Axes]]:
    """Return a figure with ``count`` panels, and their axes in reading order.

    Parameters
    ----------
    count
        Number of panels, from 1.
    columns
        Maximum number of panels per row, from 1.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> figure, axes = panels(3)
    >>> len(axes)
    3
    >>> plt.close(figure)
    """
    if count < 1 or columns < 1:
        raise ValueError(f"count, columns = {count}, {columns}: expected 1 or more of each")
    across = min(count, columns)
    down = -(-count // across)
    figure, grid = plt.subplots(
        down, across, figsize=(PANEL[0] * across, PANEL[1] * down), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    axes: list[Axes] = list(grid.flat)
    for spare in axes[count:]:
        spare.remove()
    for each in axes[:count]:
        each.grid(visible=True, alpha=0.3)
    return figure, axes[:count]


def labelled(axes: Axes, title: str, x: str, y: str, *, legend: bool = True) -> None:
    """Set a panel's title and axis labels with units, and add a legend.

    Examples
    --------
    >>> figure, (axes,) = panels(1)
    >>> lines = axes.plot([1, 2], label="ours")
    >>> labelled(axes, "a title", "time / s", "rate / (Mbit/s)")
    >>> axes.get_xlabel()
    'time / s'
    >>> plt.close(figure)
    """
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    if legend and axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def legend_beside(figure: Figure, axes: Axes) -> None:
    """Add one legend beside the panels of a figure that all show the same lines.

    Examples
    --------
    >>> figure, (axes,) = panels(1)
    >>> lines = axes.plot([1, 2], label="ours")
    >>> legend_beside(figure, axes)
    >>> len(figure.legends)
    1
    >>> plt.close(figure)
    """
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=8)


def estimates(
    axes: Axes, x: ArrayLike, values: xr.DataArray, label: str, scale: float = 1.0
) -> None:
    """Draw means with their confidence intervals.

    Parameters
    ----------
    axes
        Axes to draw on.
    x
        Position of each mean.
    values
        A result of `corridor.stats.mean_ci`, with one dimension besides ``estimate``.
    label
        Label in the legend.
    scale
        Divisor of the values.

    Examples
    --------
    >>> from corridor.stats import mean_ci
    >>> sample = xr.DataArray([[1.0, 3.0], [2.0, 4.0]], dims=("point", "replication"))
    >>> figure, (axes,) = panels(1)
    >>> estimates(axes, [0, 1], mean_ci(sample), "ours")
    >>> plt.close(figure)
    """
    mean, low, high = (
        values.sel(estimate=name).to_numpy() / scale for name in ("mean", "low", "high")
    )
    spread = np.nan_to_num(np.maximum(0, [mean - low, high - mean]))
    axes.errorbar(x, mean, yerr=spread, marker="o", markersize=4, capsize=3, label=label)


def band(axes: Axes, x: ArrayLike, values: xr.DataArray, label: str, scale: float = 1.0) -> None:
    """Draw a curve with its confidence band.

    Parameters
    ----------
    axes
        Axes to draw on.
    x
        Position of each value.
    values
        A result of `corridor.stats`, with one dimension besides ``estimate``.
    label
        Label in the legend.
    scale
        Divisor of the values.

    Examples
    --------
    >>> from corridor.stats import mean_ci
    >>> sample = xr.DataArray([[1.0, 3.0], [2.0, 4.0]], dims=("time", "replication"))
    >>> figure, (axes,) = panels(1)
    >>> band(axes, [0, 1], mean_ci(sample), "ours")
    >>> plt.close(figure)
    """
    mean, low, high = (
        values.sel(estimate=name).to_numpy() / scale for name in ("mean", "low", "high")
    )
    (line,) = axes.plot(x, mean, label=label)
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.25, linewidth=0)


def published(axes: Axes, x: Sequence[float], y: Sequence[float], label: str = "published") -> None:
    """Overlay published points.

    Examples
    --------
    >>> figure, (axes,) = panels(1)
    >>> published(axes, [0, 1], [2, 3])
    >>> plt.close(figure)
    """
    axes.plot(
        x, y, linestyle="none", marker="x", color=plt.rcParams["text.color"], markersize=8,
        label=label, zorder=5,
    )  # fmt: skip
