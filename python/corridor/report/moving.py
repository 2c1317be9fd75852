"""Animations of coding at work, from recorded simulator traces.

Each is a list of scenes: who sends what to whom, what happens to it, and a description in words.
The site's script animates them; without it, and for screen readers, there is the text.
"""

import html
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corridor.study.experiment import ExperimentError

#: Directory of the traces in a checkout; ``tools/record_traces.py`` records them.
TRACES = "docs/site/traces"
#: Number of source symbols that the window animation shows.
SHOWN = 16
#: Minimum number of them that are lost and recovered.
REPAIRED_MIN = 2
Frames = list[Mapping[str, Any]]


@dataclass
class Scene:
    """One step of an animation."""

    #: Milliseconds since the first step.
    ms: float
    words: str
    #: The sender.
    source: str
    #: Label of the frame.
    label: str
    #: ``plain``: an uncoded symbol; ``mixed``: a combination.
    look: str
    #: Per station: whether the frame reaches it, ``yes`` or ``no``.
    reaches: dict[str, str]
    #: Rows of cells after this step, by name; each cell has a text and a style.
    rows: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    #: Range of cells in the first row that a combination covers.
    covers: tuple[int, int] | None = None


def figure(top: Path, name: str) -> str:
    """Return an animation as HTML.

    Raises
    ------
    ExperimentError
        If there is no such animation, or no trace for it.
    """
    if name not in PICTURES:
        raise ExperimentError(f"moving: {name}: expected one of {', '.join(PICTURES)}")
    title, stations, make = PICTURES[name]
    path = top / TRACES / f"{name}.json"
    try:
        trace = json.loads(path.read_text(encoding="utf-8"))
        scenes = make(trace)
    except (OSError, ValueError, KeyError) as error:
        raise ExperimentError(f"{path}: {error!r}: tools/record_traces.py records it") from error
    data = {"stations": stations, "scenes": [vars(scene) for scene in scenes]}
    # In a script, `<` could end the element.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    steps = "".join(f"<li>{html.escape(scene.words)}</li>" for scene in scenes)
    return (
        f'<figure class="moving" aria-label="{html.escape(title)}">'
        f'<svg role="img" aria-label="{html.escape(title)}: each step is said below" '
        f'viewBox="0 0 420 250"></svg>'
        '<div class="controls" hidden><button type="button" data-act="play">Play</button>'
        '<button type="button" data-act="back">Back</button>'
        '<button type="button" data-act="on">Next</button>'
        f'<input type="range" min="0" max="{len(scenes) - 1}" value="0" aria-label="Step">'
        '<output aria-live="polite"></output></div>'
        f"<details><summary>All {len(scenes)} steps in words</summary><ol>{steps}</ol></details>"
        f"<figcaption>{html.escape(title)}. From a trace of <code>{TRACES}/{trace['plan']}</code>, "
        f"by {html.escape(trace['recorded_by'])}.</figcaption>"
        f'<script type="application/json">{text}</script></figure>'
    )


def _window(trace: Mapping[str, Any]) -> list[Scene]:
    """Extract the first part of a trace in which several symbols are lost and all are recovered."""
    frames = [f for f in trace["frames"] if f["kind"] != "ack"]
    for start, frame in enumerate(frames):
        if frame["kind"] != "source":
            continue
        scenes = _filling(frames[start:])
        looks = [look for _, look in scenes[-1].rows["receiver"]]
        if looks.count("repaired") >= REPAIRED_MIN and set(looks) == {"have", "repaired"}:
            return scenes
    raise KeyError("a part in which all that is lost comes back")


def _filling(frames: Frames) -> list[Scene]:
    """Follow a window of symbols from the first one; frames about earlier symbols are skipped."""
    first = next(f["id"] for f in frames if f["kind"] == "source")
    sent: dict[int, str] = {}
    held: dict[int, str] = {}
    equations = 0
    scenes = []
    for frame in frames:
        got = frame["at"]["2"]["fate"]
        ids = (
            range(frame["id"], frame["id"] + 1)
            if frame["kind"] == "source"
            else range(frame["first"], frame["first"] + frame["count"])
        )
        if ids[0] < first:
            continue
        if ids[-1] >= first + SHOWN or len(held) == SHOWN:
            break
        numbers = [i - first for i in ids]
        if frame["kind"] == "source":
            sent[numbers[0]] = "have"
            said = f"The sender sends symbol {numbers[0]} as it is"
            if got == "innovative":
                held[numbers[0]] = "have"
        else:
            said = f"The sender sends a combination of symbols {numbers[0]} to {numbers[-1]}"
            equations += got == "innovative"
        missing = [n for n in sent if n not in held]
        told = {"innovative": "it is new to the receiver", "lost": "it is lost"}
        words = f"{said}: {told.get(got, 'the receiver has all of it already')}."
        if frame["kind"] == "coded" and equations and missing and equations >= len(missing):
            held |= dict.fromkeys(missing, "repaired")
            which = ", ".join(map(str, missing))
            words += f" Out of it the receiver computes what it lacked: {which}."
            equations = 0
        scenes.append(
            Scene(
                ms=(frame["us"] - frames[0]["us"]) / 1000,
                words=words,
                source="sender",
                label=str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}–{numbers[-1]}",
                look="plain" if frame["kind"] == "source" else "mixed",
                reaches={"receiver": "no" if got == "lost" else "yes"},
                rows={
                    "sent": [_cell(n, sent) for n in range(SHOWN)],
                    "receiver": [_received(n, sent, held) for n in range(SHOWN)],
                },
                covers=(numbers[0], numbers[-1]),
            )
        )
    return scenes


def _cell(number: int, looks: Mapping[int, str]) -> tuple[str, str]:
    return (str(number), looks.get(number, "empty"))


def _received(number: int, sent: Mapping[int, str], held: Mapping[int, str]) -> tuple[str, str]:
    if number in held:
        return ("✓" if held[number] == "repaired" else str(number), held[number])
    return ("×", "lost") if number in sent else ("", "empty")


def _helper(trace: Mapping[str, Any]) -> list[Scene]:
    """A block of which the helper overhears most, and the decoder receives little."""
    frames: Frames = trace["frames"]
    names = {1: "encoder", 2: "decoder", 3: "helper"}
    ranks = {"helper": 0, "decoder": 0}
    size = max(f.get("count", 0) for f in frames)
    scenes = []
    for frame in frames:
        if ranks["decoder"] == size:
            break  # What still comes is needed no more.
        what = {
            "source": f"symbol {frame.get('id')} as it is",
            "coded": f"a combination of all {size}",
            "recoded": "a combination of what it has overheard",
        }[frame["kind"]]
        told, reaches = [], {}
        for number, at in frame["at"].items():
            station = names[int(number)]
            if station == "encoder":
                continue
            reaches[station] = "no" if at["fate"] == "lost" else "yes"
            ranks[station] = max(ranks[station], at.get("rank", 0))
            told.append(f"the {station} {_fate(at['fate'])}")
        source = names[frame["from"]]
        done = f" The decoder has {ranks['decoder']} of {size}"
        done += ": the block is whole." if ranks["decoder"] == size else "."
        scenes.append(
            Scene(
                ms=(frame["us"] - frames[0]["us"]) / 1000,
                words=f"The {source} sends {what}; {', '.join(told)}.{done}",
                source=source,
                label=str(frame["id"]) if frame["kind"] == "source" else "mix",
                look="plain" if frame["kind"] == "source" else "mixed",
                reaches=reaches,
                rows={
                    station: [("", "have" if n < rank else "empty") for n in range(size)]
                    for station, rank in ranks.items()
                },
            )
        )
    return scenes


def _fate(fate: str) -> str:
    return {
        "lost": "does not hear it",
        "innovative": "learns something new",
        "late": "needs it no more",
    }.get(fate, "has it already")


def _relay(trace: Mapping[str, Any]) -> list[Scene]:
    """One packet in each direction, relayed separately, and relayed as an XOR."""
    names = ("left", "relay", "right")
    packets = {(0, 1): "a", (1, 2): "a", (2, 1): "b", (1, 0): "b"}
    spoken = ("left station", "relay", "right station")
    scenes: list[Scene] = []
    count = {"relaying": 0, "with XOR": 0}
    for how, frames in (
        ("relaying", _round(trace["plain"], {(0, 1), (1, 2), (2, 1), (1, 0)})),
        ("with XOR", _round(trace["xor"], {(0, 1), (2, 1), (1, 0, 2)})),
    ):
        for frame in frames:
            count[how] += 1
            coded = frame["kind"] == "coded"
            label = "a⊕b" if coded else packets[frame["from"], frame["to"][0]]
            who = spoken[frame["from"]]
            words = f"{how[0].upper()}{how[1:]}: the {who} sends packet {label}"
            words += f" to the {spoken[frame['to'][0]]}."
            if coded:
                words = (
                    "With XOR: the relay sends a XOR b once. The left station takes away a and "
                    "has b; the right one takes away b and has a. Three transmissions, not four."
                )
            rows = {
                name: [(str(n + 1), "have" if n < done else "empty") for n in range(4)]
                for name, done in count.items()
            }
            ms = (frame["us"] - frames[0]["us"]) / 1000
            reaches = {names[to]: "yes" for to in frame["to"]}
            look = "mixed" if coded else "plain"
            scenes.append(Scene(ms, words, names[frame["from"]], label, look, reaches, rows))
    return scenes


def _round(frames: Frames, wanted: set[tuple[int, ...]]) -> Frames:
    """Return the first consecutive transmissions over these hops, begun by an end."""
    for start in range(len(frames) - len(wanted) + 1):
        part = frames[start : start + len(wanted)]
        hops = {(frame["from"], *sorted(frame["to"])) for frame in part}
        if hops == wanted and part[0]["from"] != 1:
            return part
    raise KeyError("a packet of each direction, relayed")


#: For each animation: its title, the positions of its stations, and the function for its scenes.
PICTURES: dict[
    str,
    tuple[str, dict[str, tuple[int, int]], Callable[[Mapping[str, Any]], list[Scene]]],
] = {
    "window": (
        "A window fills: one frame in five is lost, and combinations make up for it",
        {"sender": (60, 50), "receiver": (360, 50)},
        _window,
    ),
    "helper": (
        "A helper recodes: the direct link loses six frames in ten",
        {"encoder": (60, 40), "helper": (210, 90), "decoder": (360, 40)},
        _helper,
    ),
    "relay": (
        "A relay's XOR: three transmissions instead of four",
        {"left": (60, 60), "relay": (210, 60), "right": (360, 60)},
        _relay,
    ),
}
