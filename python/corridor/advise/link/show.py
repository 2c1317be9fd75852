"""Advice on a tunnel's coding as text, as JSON, and as a plot."""

from __future__ import annotations

from typing import Any

import numpy as np
import tomli_w
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from corridor import plot
from corridor.advise import sample
from corridor.advise.link.search import LinkAdvice, Runs, gain
from corridor.advise.sample import Estimate
from corridor.advise.search import BETTER, FAILS, NOTHING_BETTER

#: Descriptions of the objectives.
_SOUGHT = {
    "goodput": "delivered per second",
    "delay": "of the delay, 95th percentile",
    "air": "of the frames per packet",
    "air of TCP": "of the bytes on the air per byte",
}
#: Reasons for a choice of coding.
_REASONS = {
    NOTHING_BETTER: "nothing that was tried is better",
    BETTER: "it is better",
    FAILS: "what is better loses more than 2 % of the goodput",
}
#: Quantities shown: description, unit, and factor.
_SHOWN = {
    "goodput_bps": ("goodput", "Mbit/s", 1e-6),
    "delay_p50_s": ("delay, median", "ms", 1e3),
    "delay_p95_s": ("delay, 95th percentile", "ms", 1e3),
    "lost": ("packets that never come", "%", 100),
    "frames": ("frames on the air per packet", "", 1),
    "air_bytes": ("bytes on the air per byte", "", 1),
}


def estimates(of: Runs) -> dict[str, Estimate]:
    """Return the results of runs, with intervals; missing quantities are left out."""
    found = {name: sample.mean(getattr(of, name)) for name in _SHOWN}
    return {name: each for name, each in found.items() if not np.isnan(each.value)}


def lines(advice: LinkAdvice) -> list[str]:
    """Return the lines for Corridor's own file: all of ``[coding]``, and the helper's part.

    Omitted keys have the preset's value.
    """
    table = advice.setting.table(advice.given.kept)
    found = tomli_w.dumps({"coding": table}).splitlines()
    if advice.own.helper == advice.setting.helper:
        return found
    if advice.setting.helper:
        return [*found, "", "# beside the other end, with its number:", "[[peer]]", "id = 3",
                'role = "helper"']  # fmt: skip
    return [*found, "", '# and without the [[peer]] whose role is "helper"']


def row(advice: LinkAdvice) -> dict[str, Any]:
    """Return advice as JSON."""
    ours, others = estimates(advice.runs_of), estimates(advice.runs_of_own)
    return {
        "link": advice.given.name,
        "for": advice.sought,
        "seed": advice.seed,
        "runs": advice.runs,
        "judged_by": len(advice.runs_of.goodput_bps),
        "coding_now": advice.own.row(),
        "coding": advice.setting.row(),
        "changes": advice.changes,
        "reason": _REASONS[advice.reason],
        "gain": gain(advice).row(),
        "expected": {name: each.row() for name, each in ours.items()},
        "expected_now": {name: each.row() for name, each in others.items()},
        "paste": lines(advice) if advice.changes else [],
        "tried": [
            {**each.setting.row(), "histories": len(each.transfers.bytes),
             "goodput_bps": float(each.transfers.completed.mean() * advice.given.rate_bps),
             "delay_p95_s": sample.mean(each.transfers.delay_s).value}
            for each in advice.tried
        ],
    }  # fmt: skip


def show(console: Console, advice: LinkAdvice) -> None:
    """Print advice."""
    given, changes = advice.given, advice.changes
    medium = given.table["medium"]
    console.print(
        f"\n[bold]{escape(given.name)}[/bold]: {given.rate_bps / 1e6:g} Mbit/s, "
        f"{medium['rtt_ms']:g} ms there and back; {advice.runs} runs of {given.duration_s:g} s "
        "simulated"
    )
    if not changes:
        console.print(f"\nKeep what is set: {escape(_REASONS[advice.reason])}.")
    else:
        found, less = gain(advice), "" if advice.sought == "goodput" else "-"
        sign = less or "+"
        is_bytes = advice.sought == "air" and given.is_tcp
        sought = _SOUGHT["air of TCP" if is_bytes else advice.sought]
        console.print(
            f"\nChange {len(changes)} of the coding's keys: [bold]{sign}{100 * found.value:.0f} %"
            f"[/bold] {sought} ({sign}{100 * found.low:.0f} to "
            f"{sign}{100 * found.high:.0f} %)"
        )
        console.print(_changes(advice))
    console.print(_expected(advice))
    if changes:
        console.print("\n[bold]Corridor's own file, the same at all stations[/bold]")
        for line in lines(advice):
            console.print(Text(f"    {line}"), soft_wrap=True)


def _changes(advice: LinkAdvice) -> Table:
    table = Table("key", "now", "to be", box=None)
    own = advice.own.row()
    for name, new in advice.changes.items():
        now, to_be = (_word(each) for each in (own[name], new))
        table.add_row(name, escape(now), f"[bold green]{escape(to_be)}[/bold green]")
    return table


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "left out" if value is None else str(value)


def _expected(advice: LinkAdvice) -> Table:
    ours, others = estimates(advice.runs_of), estimates(advice.runs_of_own)
    table = Table("expected (95 % interval)", box=None)
    table.add_column("now", justify="right")
    if advice.changes:
        table.add_column("to be", justify="right")
    table.add_column("")
    for name, (words, unit, scale) in _SHOWN.items():
        both = [others, ours] if advice.changes else [others]
        if any(name in each for each in both):
            table.add_row(words, *(_cell(each.get(name), scale) for each in both), unit)
    return table


def _cell(of: Estimate | None, scale: float) -> str:
    if of is None:
        return "-"
    value, low, high = (scale * each for each in (of.value, of.low, of.high))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def picture(advice: LinkAdvice) -> Figure:
    """Plot the candidates: goodput over delay, with the current coding marked."""
    figure, (axes,) = plot.panels(1)
    scale = advice.given.rate_bps / 1e6
    for each in advice.tried:
        delay_ms = 1e3 * sample.mean(each.transfers.delay_s).value
        axes.plot(delay_ms, scale * each.transfers.completed.mean(), "o", color="C0", alpha=0.5,
                  markersize=4, markeredgewidth=0)  # fmt: skip
    axes.plot([], [], "o", color="C0", label="tried")
    axes.plot(*_place(advice.runs_of_own), "X", color="C3", markersize=11, label="now")
    if advice.changes:
        axes.plot(*_place(advice.runs_of), "*", color="C2", markersize=15, label="to be")
    plot.labelled(axes, advice.given.name, "delay, 95th percentile / ms", "goodput / Mbit/s")
    return figure


def _place(of: Runs) -> tuple[float, float]:
    return 1e3 * sample.mean(of.delay_p95_s).value, float(of.goodput_bps.mean()) / 1e6
