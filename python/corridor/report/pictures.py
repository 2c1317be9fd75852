"""Plots of recorded rows, for the light and the dark theme, with alternative text.

The tables ``[[picture]]`` in `experiment.toml` describe the plots: nothing here depends on an
experiment. Without them, if the first column holds non-decreasing numbers, the other columns are
plotted over it.
"""

import io
import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from cycler import cycler
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from corridor import plot
from corridor.study.experiment import Experiment, ExperimentError
from corridor.study.findings import Context
from corridor.study.run import runner

#: Computed experiments whose record took no longer, seconds, are drawn by their own function.
COMPUTED_MAX_S = 5.0
#: Maximum number of lines in a plot without a description.
LINES_MAX = 6
#: Colours that colour-blind readers can tell apart (Okabe, Ito), and matching markers.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#888888", "#8c6d31")
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Colour of text and axes in the light and the dark theme: nothing else uses the first.
_LIGHT, _DARK = "#212224", "#dcdcde"
#: Background of legends, so that no line runs through their text.
_PAPER, _DARK_PAPER = "#fefefe", "#1e2129"
#: With more lines than this, the legend is beside the plot.
_NAMED_MAX = 4
#: Width of such a legend, inches.
_NAMES_WIDE = 1.8


@dataclass(frozen=True)
class Picture:
    """Description of one plot: a table ``[[picture]]``."""

    #: Title.
    title: str
    #: Column on the x axis.
    x: str
    #: Columns on the y axis.
    y: tuple[str, ...]
    #: Axis labels, with units; if empty, the column names.
    x_label: str = ""
    y_label: str = ""
    #: Columns whose values distinguish the lines.
    lines: tuple[str, ...] = ()
    #: Column with a panel for each of its values.
    panels: str = ""
    #: Divisor of the y values.
    y_scale: float = 1.0
    #: Whether the axis is logarithmic.
    is_log: bool = False
    #: Whether to draw grouped bars instead of lines.
    is_bars: bool = False
    #: Values of columns to restrict the rows to; other columns are unrestricted.
    keep: Mapping[str, Sequence[Any]] | None = None
    #: Published points: per line name, pairs of x and claim number.
    published: Mapping[str, Sequence[tuple[float, str]]] | None = None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Picture":
        """Read a table.

        Raises
        ------
        ValueError
            For an unknown key, or a missing one.
        """
        known = {each.name for each in fields(cls)}
        if unknown := set(table) - known:
            raise ValueError(f"picture.{min(unknown)}: expected one of {', '.join(sorted(known))}")
        if missing := {"title", "x", "y"} - set(table):
            raise ValueError(f"picture.{min(missing)} = nothing: expected it")
        listed = {key: tuple(table[key]) for key in ("y", "lines") if key in table}
        return cls(**{**table, **listed})


@dataclass(frozen=True)
class Drawn:
    """A plot on disk."""

    #: Name of its files, without ``-light.svg`` and ``-dark.svg``.
    name: str
    title: str
    #: Alternative text.
    words: str
    #: Width, in panels.
    wide: float = 1.0
    #: Whether it includes published points.
    has_published: bool = False


def described(experiment: Experiment, recorded: Mapping[str, Any]) -> list[Picture]:
    """Return the plots an experiment describes, or a default one for its rows, or none.

    Raises
    ------
    ExperimentError
        For a description that cannot be read, or that names unknown columns.
    """
    path = experiment.folder / "experiment.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("picture", [])
    rows = recorded["rows"]
    try:
        pictures = [Picture.of(table) for table in tables]
        for picture in pictures:
            used = [picture.x, *picture.y, *picture.lines, *filter(None, [picture.panels])]
            used += picture.keep or []
            columns = list(rows[0]) if rows else []
            if unknown := [name for name in used if name not in columns]:
                known = ", ".join(columns) or "the columns of its rows, of which there are none"
                raise ValueError(f"picture: {unknown[0]!r}: expected one of {known}")
    except (ValueError, TypeError) as error:
        raise ExperimentError(f"{path}: {error}") from error
    return pictures or _suggested(rows)


def _suggested(rows: list[dict[str, Any]]) -> list[Picture]:
    names = list(rows[0]) if rows else []
    numbers = [n for n in names if all(_is_number(row[n]) or row[n] is None for row in rows)]
    if len(numbers) < 2 or numbers[0] != names[0]:
        return []
    x, *rest = numbers
    along = [row[x] for row in rows]
    if along != sorted(set(along)):
        return []
    # Columns far above or below the first one are of another kind.
    size = _greatest(rows, rest[0])
    y = tuple(n for n in rest if size / 20 <= _greatest(rows, n) <= size * 20)
    return [Picture(f"{', '.join(y[:LINES_MAX])} over {x}", x, y[:LINES_MAX])]


def _greatest(rows: list[dict[str, Any]], name: str) -> float:
    return max((abs(float(row[name])) for row in rows if row[name] is not None), default=0.0)


def draw(experiment: Experiment, recorded: Mapping[str, Any], folder: Path) -> list[Drawn]:
    """Draw the plots of an experiment into a folder, for both themes.

    Experiments without simulation that take no longer than `COMPUTED_MAX_S` are recomputed and draw
    themselves; the others are drawn from recorded rows.
    """
    is_computed = not experiment.plans or "replications" not in experiment.parameters
    if is_computed and recorded["seconds"] <= COMPUTED_MAX_S:
        return [_computed(experiment, folder)]
    drawn = []
    for place, picture in enumerate(described(experiment, recorded), 1):
        name = f"{experiment.name}-{place}"
        with plt.style.context(_style()):
            figure = _figure(picture, recorded)
            wide = figure.get_size_inches()[0] / plot.PANEL[0]
            _save(figure, folder, name)
        words = _words(picture, recorded)
        drawn.append(Drawn(name, picture.title, words, wide, bool(picture.published)))
    return drawn


def _computed(experiment: Experiment, folder: Path) -> Drawn:
    # With many points on a line: no markers.
    with plt.style.context({**_style(), "axes.prop_cycle": cycler(color=_COLOURS)}):
        figure = runner(experiment)(Context(experiment, quick=False)).figure
        titles = [axes.get_title() for axes in figure.axes]
        lines = [line for axes in figure.axes for line in _lines_of(axes)]
        wide = figure.get_size_inches()[0] / plot.PANEL[0]
        _save(figure, folder, experiment.name)
    words = f"Line charts: {'; '.join(filter(None, titles))}. {' '.join(dict.fromkeys(lines))}"
    return Drawn(experiment.name, experiment.title, words.strip(), wide)


def _lines_of(axes: Axes) -> Iterator[str]:
    """Yield a sentence about each named line."""
    for line in axes.get_lines():
        name = str(line.get_label())
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        if not name.startswith("_") and len(x):
            yield f"{name}: {_course(list(zip(x.tolist(), y.tolist(), strict=True)))}."


def _style() -> dict[str, Any]:
    ways = cycler(color=_COLOURS) + cycler(marker=_MARKS)
    parts = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(parts, _LIGHT),
        "grid.color": _LIGHT,
        "axes.prop_cycle": ways,
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "legend.facecolor": _PAPER,
        "legend.edgecolor": "none",
        "savefig.facecolor": "none",
        "lines.markersize": 4,
        # Makes the file reproducible.
        "svg.hashsalt": "corridor",
    }


def _save(figure: Figure, folder: Path, name: str) -> None:
    """Save a figure for the light and for the dark theme."""
    light = io.StringIO()
    figure.savefig(light, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    for scheme, ink, paper in (("light", _LIGHT, _PAPER), ("dark", _DARK, _DARK_PAPER)):
        text = light.getvalue().replace(_LIGHT, ink).replace(_PAPER, paper)
        (folder / f"{name}-{scheme}.svg").write_text(text, encoding="utf-8")


def _figure(picture: Picture, recorded: Mapping[str, Any]) -> Figure:
    rows = _kept(picture, recorded)
    groups = _groups(rows, picture.panels)
    if picture.is_bars:
        return _bars(picture, rows)
    figure, axes = plot.panels(len(groups))
    for panel, (word, chosen) in zip(axes, groups, strict=True):
        for label, points in _lines(picture, chosen):
            panel.plot(*zip(*points, strict=True), label=label)
        for label, points in _published(picture, recorded):
            along, values = [x for x, _ in points], [y for _, y in points]
            plot.published(panel, along, values, f"published: {label}")
            # In the colour of our line of that name, to show which belongs to which.
            ours = {str(line.get_label()): line.get_color() for line in panel.get_lines()}
            if label in ours:
                panel.get_lines()[-1].set_color(ours[label])
        title = f"{picture.title}, {word}" if word else picture.title
        plot.labelled(panel, title, picture.x_label or picture.x, _y_label(picture))
        if picture.is_log:
            panel.set_yscale("log")
            panel.autoscale(axis="y")
    named = [panel.get_legend_handles_labels()[1] for panel in axes]
    if len(named[0]) > _NAMED_MAX and all(names == named[0] for names in named):
        for panel in axes:
            if legend := panel.get_legend():
                legend.remove()
        width, height = figure.get_size_inches()
        figure.set_size_inches(width + _NAMES_WIDE, height)
        plot.legend_beside(figure, axes[0])
    return figure


def _kept(picture: Picture, recorded: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that a plot shows."""
    keep = picture.keep or {}
    rows: list[dict[str, Any]] = recorded["rows"]
    return [row for row in rows if all(row[name] in values for name, values in keep.items())]


def _bars(picture: Picture, rows: list[dict[str, Any]]) -> Figure:
    figure, (axes,) = plot.panels(1)
    names = [_name(row, (picture.x, *picture.lines)) for row in rows]
    figure.set_size_inches(plot.PANEL[0] * 1.4, max(2.0, 0.2 * len(names) * len(picture.y) + 1.2))
    wide = 0.8 / len(picture.y)
    for place, column in enumerate(picture.y):
        values = [_number(row[column]) / picture.y_scale for row in rows]
        at = [number + place * wide for number in range(len(names))]
        axes.barh(at, values, height=wide * 0.9, label=column)
    axes.set_yticks([n + 0.4 - wide / 2 for n in range(len(names))], names, fontsize=8)
    axes.invert_yaxis()
    axes.set_title(picture.title, fontsize=10)
    axes.set_xlabel(_y_label(picture))
    if len(picture.y) > 1:
        axes.legend(fontsize=8)
    return figure


def _y_label(picture: Picture) -> str:
    return picture.y_label or ", ".join(picture.y)


def _groups(rows: list[dict[str, Any]], column: str) -> list[tuple[str, list[dict[str, Any]]]]:
    if not column:
        return [("", rows)]
    values = dict.fromkeys(row[column] for row in rows)
    return [(f"{column} = {_short(v)}", [row for row in rows if row[column] == v]) for v in values]


def _lines(
    picture: Picture, rows: list[dict[str, Any]]
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield the name and the points of each line."""
    for names in dict.fromkeys(tuple(row[n] for n in picture.lines) for row in rows):
        chosen = [row for row in rows if tuple(row[n] for n in picture.lines) == names]
        word = _name(chosen[0], picture.lines)
        for column in picture.y:
            points = [
                (float(row[picture.x]), _number(row[column]) / picture.y_scale) for row in chosen
            ]
            label = column if not word else word if len(picture.y) == 1 else f"{column}, {word}"
            yield label, [point for point in points if math.isfinite(point[1])]


def _published(
    picture: Picture, recorded: Mapping[str, Any]
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    values = {row["id"]: row["published"] for row in recorded["claims"]}
    for label, points in (picture.published or {}).items():
        yield label, [(float(x), float(values[number])) for x, number in points]


def _name(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    texts = (row[n] if isinstance(row[n], str) else f"{n} = {_short(row[n])}" for n in columns)
    return ", ".join(texts)


def _words(picture: Picture, recorded: Mapping[str, Any]) -> str:
    """Return a description of a plot."""
    kind = "Bar chart" if picture.is_bars else "Line chart"
    rows = _kept(picture, recorded)
    if picture.is_bars:
        each = "; ".join(
            f"{_name(row, (picture.x, *picture.lines))}: "
            + ", ".join(_short(_number(row[c]) / picture.y_scale) for c in picture.y)
            for row in rows[:12]
        )
        return f"{kind}: {picture.title}. {each}."
    lines = [
        f"{word + ': ' if word else ''}{label}: {_course(points)}."
        for word, chosen in _groups(rows, picture.panels)
        for label, points in _lines(picture, chosen)
    ]
    shown = [f"Published, {label}: {_course(points)}." for label, points in
             _published(picture, recorded)]  # fmt: skip
    return f"{kind}: {picture.title}. {' '.join([*lines, *shown])}"


def _course(points: Sequence[tuple[Any, Any]]) -> str:
    if not points:
        return "nothing"
    (x0, y0), (x1, y1) = points[0], points[-1]
    return f"from {_short(y0)} at {_short(x0)} to {_short(y1)} at {_short(x1)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if _is_number(value) or hasattr(value, "item") else str(value)
