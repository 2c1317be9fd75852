"""Sensitivity to what the paper leaves open: route lengths, and when a route discovery gives up."""

from typing import Any

import numpy as np

from corridor import plot
from corridor.study.betzler import runs
from corridor.study.betzler.dynamic import HOP_COUNT, LINKS, PATH_DR
from corridor.study.betzler.runs import COMPLETED, METRIC, Runs
from corridor.study.betzler.static import GOODPUT, Setting
from corridor.study.findings import Context, Findings

EXTRA = "network.radio.path_loss.extra_db"
LIMIT = "network.routing.discovery_limit_s"
#: The gain by which attenuations are compared.
GAIN = "PATH-DR over hop count / %"


def _row(data: Runs, what: str, wanted: Setting) -> dict[str, Any]:
    """Return a row that summarises the transfers under a setting."""
    links, completed = data.at(LINKS, wanted), data.at(COMPLETED, wanted)
    goodput, spent = data.at(GOODPUT, wanted), data.at("flow.spent_s", wanted)
    # Bits of the completed transfers, over the time spent on all.
    bits = np.nan_to_num(goodput * data.at("flow.transfer_s", wanted))
    return {
        "what": what,
        "mean links": runs.mean(links),
        "most links": float(np.nanmax(runs.nanmean(links, axis=1))),
        "completed / %": 100 * runs.mean(completed),
        "kbit/s of completed ones": runs.mean(goodput) / 1e3,
        "kbit/s of all their time": float(bits.sum() / spent.sum()) / 1e3,
        GAIN: float("nan"),
    }


def _lengths(context: Context) -> list[dict[str, Any]]:
    """By attenuation: the effect on the results of Figs. 6 and 9b."""
    data = Runs.of(context, "hops")
    rows = []
    for extra in data.values(EXTRA):
        for metric in (HOP_COUNT, PATH_DR):
            wanted: Setting = {EXTRA: extra, METRIC: metric}
            row = _row(data, f"{extra:g} dB, {metric}", wanted)
            if metric == PATH_DR:
                other = data.at(GOODPUT, {**wanted, METRIC: HOP_COUNT})
                row[GAIN] = 100 * (runs.ratio(data.at(GOODPUT, wanted), other) - 1)
            rows.append(row)
    return rows


def _limits(context: Context) -> list[dict[str, Any]]:
    """By discovery time limit: which transfers fail."""
    data = Runs.of(context, "limit")
    return [
        _row(data, f"{extra:g} dB, looks for {limit:g} s", {EXTRA: extra, LIMIT: limit})
        for extra in data.values(EXTRA)
        for limit in data.values(LIMIT)
    ]


def _value(row: dict[str, Any], place: int) -> float:
    """Return the number at this place in a row's text."""
    return float(str(row["what"]).replace(",", "").split()[place])


def sensitivity(context: Context) -> Findings:
    """Vary the declared assumptions: rows, and a plot of each."""
    lengths, limits = _lengths(context), _limits(context)
    figure, (left, right) = plot.panels(2)
    for metric in (HOP_COUNT, PATH_DR):
        own = [row for row in lengths if str(row["what"]).endswith(metric)]
        heights = [row["kbit/s of completed ones"] for row in own]
        left.plot([_value(row, 0) for row in own], heights, "o-", markersize=4, label=metric)
    plot.labelled(left, "31 pairs", "attenuation / dB", "kbit/s of completed transfers")
    for extra in dict.fromkeys(_value(row, 0) for row in limits):
        own = [row for row in limits if _value(row, 0) == extra]
        heights = [row["completed / %"] for row in own]
        name = f"{extra:g} dB"
        right.plot([_value(row, 4) for row in own], heights, "o-", markersize=4, label=name)
    right.set_xscale("log")
    plot.labelled(right, "hop count", "a route is looked for / s", "completed / %")
    return Findings({}, [*lengths, *limits], figure)
