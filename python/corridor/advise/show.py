"""Advice as text, as JSON, and as a plot."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from corridor import plot
from corridor.advise import paste, sample
from corridor.advise.sample import Estimate, Transfers
from corridor.advise.search import Advice

#: Descriptions of fields.
WORDS = {
    "retries": "retries of a frame",
    "backoff": "backoff",
    "window": "window limit, packets",
    "rto": "retransmission timeout",
    "acks": "acknowledgements",
    "metric": "routing metric",
}


def estimates(of: Transfers) -> dict[str, Estimate]:
    """Return the results of transfers, with intervals."""
    return {
        "goodput_bps": sample.ratio(of.bytes, of.spent_s, 8.0),
        "success": sample.success(of.completed),
        "rtt_s": sample.mean(of.rtt_s),
        "delay_p95_s": sample.mean(of.delay_s),
        "radio_ms_per_kb": sample.ratio(of.sending_s + of.receiving_s, of.bytes, 1e6),
        "sending_ms_per_kb": sample.ratio(of.sending_s, of.bytes, 1e6),
    }


#: Quantities shown: description, unit, and factor.
_SHOWN = {
    "goodput_bps": ("delivered per time", "kbit/s", 1e-3),
    "success": ("transfers completed", "%", 100),
    "rtt_s": ("round trip", "ms", 1e3),
    "delay_p95_s": ("delay, 95th percentile", "ms", 1e3),
    "radio_ms_per_kb": ("radios send and receive", "ms/kB", 1),
    "sending_ms_per_kb": ("of that, sending", "ms/kB", 1),
}


def row(advice: Advice) -> dict[str, Any]:
    """Return advice as JSON."""
    given = advice.given
    ours, others = estimates(advice.ours), estimates(advice.defaults)
    return {
        "network": given.name,
        "seed": advice.seed,
        "transfers": advice.runs,
        "judged_by": len(advice.ours.bytes),
        "together": given.together,
        "pairs": [[_name(advice, a), _name(advice, b)] for a, b in given.pairs],
        "defaults": given.defaults.row(),
        "setting": advice.setting.row(),
        "changes": advice.changes,
        "reason": advice.reason,
        "gain": advice.gain.row(),
        "expected": {name: each.row() for name, each in ours.items()},
        "expected_of_defaults": {name: each.row() for name, each in others.items()},
        "paste": [each.row() for each in _paste(advice)],
        "tried": [
            {
                **each.setting.row(),
                "histories": len(each.transfers.bytes),
                "goodput_bps": each.transfers.goodput_bps,
                "success": each.transfers.success,
                "radio_ms_per_kb": 1e3 * each.transfers.radio_s_per_kb,
            }
            for each in advice.tried
        ],
    }


def _name(advice: Advice, node: int) -> str | int:
    return advice.given.names[node] if advice.given.names else node


def _paste(advice: Advice) -> list[paste.Lines]:
    payload_bytes = int(advice.given.table["flow"]["payload_bytes"])
    return paste.lines(advice.setting, advice.changes, payload_bytes)


def show(console: Console, advice: Advice) -> None:
    """Print advice."""
    given, changes = advice.given, advice.changes
    how = "at the same time" if given.together else "one at a time"
    console.print(
        f"\n[bold]{escape(given.name)}[/bold]: {len(given.pairs)} pairs, transfers of "
        f"{given.transfer_bytes / 1e3:.0f} kB {how}; {advice.runs} transfers simulated"
    )
    if not changes:
        console.print(f"\nKeep the defaults: {escape(advice.reason)}.")
    else:
        gain = advice.gain
        console.print(
            f"\nChange {len(changes)} of {len(WORDS)} settings: [bold]{100 * gain.value:+.0f} %"
            f"[/bold] delivered per time ({100 * gain.low:+.0f} to {100 * gain.high:+.0f} %)"
        )
    console.print(_settings(advice))
    console.print(_expected(advice))
    if not changes:
        return
    for each in _paste(advice):
        console.print(f"\n[bold]{escape(each.where)}[/bold]")
        for line in each.lines or ("(nothing)",):
            console.print(Text(f"    {line}"), soft_wrap=True)
        for name, why in each.absent.items():
            words = Text(f"{WORDS[name]}: no exact counterpart: {why}", style="yellow")
            console.print(Padding(words, (0, 0, 0, 4)))


def _settings(advice: Advice) -> Table:
    table = Table("setting", "now", "to be", box=None)
    own, new = advice.given.defaults.row(), advice.setting.row()
    for name, words in WORDS.items():
        is_new = own[name] != new[name]
        mark = f"[bold green]{escape(str(new[name]))}[/bold green]" if is_new else "the same"
        table.add_row(words, escape(str(own[name])), mark)
    return table


def _expected(advice: Advice) -> Table:
    ours, others = estimates(advice.ours), estimates(advice.defaults)
    table = Table("expected (95 % interval)", box=None)
    table.add_column("now", justify="right")
    if advice.changes:
        table.add_column("to be", justify="right")
    table.add_column("")
    for name, (words, unit, scale) in _SHOWN.items():
        cells = [_words(others[name], scale)]
        cells += [_words(ours[name], scale)] if advice.changes else []
        table.add_row(words, *cells, unit)
    return table


def _words(of: Estimate, scale: float) -> str:
    value, low, high = (scale * each for each in (of.value, of.low, of.high))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def picture(advice: Advice) -> Figure:
    """Plot the candidates: goodput over the radio time it takes."""
    figure, (axes,) = plot.panels(1)
    most = max(len(each.transfers.bytes) for each in advice.tried)
    for each in advice.tried:
        # Settings with the most histories are the best known.
        share = len(each.transfers.bytes) / most
        axes.plot(*_place(each.transfers), "o", color="C0", alpha=0.25 + 0.5 * share,
                  markersize=3 + 4 * share, markeredgewidth=0)  # fmt: skip
    axes.plot([], [], "o", color="C0", label="tried: larger for longer")
    x, y = _place(advice.defaults)
    axes.plot(x, y, "X", color="C3", markersize=11, label="now")
    if advice.changes:
        at = _place(advice.ours)
        axes.plot(*at, "*", color="C2", markersize=15, label="to be")
        axes.annotate("", at, (x, y), arrowprops={"arrowstyle": "->", "alpha": 0.5})
    gain = f": {100 * advice.gain.value:+.0f} %" if advice.changes else ": keep the defaults"
    plot.labelled(axes, advice.given.name + gain, "radios send and receive / ms per kB",
                  "delivered per time / kbit/s")  # fmt: skip
    return figure


def _place(of: Transfers) -> tuple[float, float]:
    return 1e3 * of.radio_s_per_kb, of.goodput_bps / 1e3
