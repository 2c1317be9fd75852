"""The candidate codings: keys of ``[coding]`` in Corridor's own file, and the helper."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from math import prod
from typing import Any, Self

#: Keys that only have an effect under one of the presets (docs/configuration.md).
_OF_WINDOW = ("goal", "max_overhead", "delivery")
_OF_BLOCK = ("block_size", "blocks_in_flight", "policy", "overshoot")
_KEYS_OF = {
    "window": {*_OF_WINDOW, "ack_interval_ms"},
    "block": {*_OF_BLOCK, "ack_interval_ms"},
    "paper": {*_OF_BLOCK, "ack_interval_ms"},
    "tcp-nc": set[str](),
}
#: Preset-specific keys that are not searched.
_KEPT_OF = {
    "window": {"window_size", "delivery_udp", "half_duplex", "clamp_windows"},
    "block": {"order", "encoder_timeout_ms", "helper_overshoot", "repair_margin", "bundle"},
    "tcp-nc": {"redundancy", "adaptive"},
}
_KEPT_OF["paper"] = _KEPT_OF["block"]


@dataclass(frozen=True)
class Coding:
    """The searched parameters of a tunnel's coding; ``None`` leaves the preset's value.

    Parameters
    ----------
    preset
        ``window``, ``block``, ``paper`` or ``tcp-nc``.
    helper
        Whether a third station recodes what it overhears; only with ``block`` and ``paper``.
    goal, max_overhead, delivery
        Window mode: what to optimise for; maximum bytes of repair symbols per byte of packets;
        which packets wait for earlier ones.
    block_size, blocks_in_flight, policy, overshoot
        Blocks: source symbols per block; blocks in flight; how to compute budgets; a factor on
        them.
    ack_interval_ms
        Both: minimum time between acknowledgements that complete nothing, ms.
    """

    preset: str = "window"
    helper: bool = False
    goal: str | None = None
    max_overhead: float | None = None
    delivery: str | None = None
    block_size: int | None = None
    blocks_in_flight: int | None = None
    policy: str | None = None
    overshoot: float | None = None
    ack_interval_ms: float | None = None

    def changes(self, other: Self) -> dict[str, Any]:
        """Return the fields in which the other differs, with its values; ``None``: left out."""
        mine, others = asdict(self), asdict(other)
        return {name: others[name] for name in mine if mine[name] != others[name]}

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values of some fields, less those that then have no effect."""
        return replace(self, **values).effective()

    def effective(self) -> Self:
        """Return a copy without the fields that have no effect under its preset.

        Examples
        --------
        >>> Coding("window", helper=True, block_size=16).effective()
        Coding(preset='window', helper=False, goal=None, max_overhead=None, delivery=None, \
block_size=None, blocks_in_flight=None, policy=None, overshoot=None, ack_interval_ms=None)
        """
        idle = {*_OF_WINDOW, *_OF_BLOCK, "ack_interval_ms"} - _KEYS_OF[self.preset]
        helper = self.helper and self.preset in ("block", "paper")
        nothing: dict[str, Any] = dict.fromkeys(idle)
        return replace(self, helper=helper, **nothing)

    def row(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)

    def table(self, kept: Mapping[str, Any]) -> dict[str, Any]:
        """Return the table ``[coding]``, including the kept keys that have an effect."""
        own = {key: value for key, value in asdict(self).items() if value is not None}
        del own["helper"]
        idle = set[str]().union(*_KEPT_OF.values()) - _KEPT_OF[self.preset]
        return {**own, **{key: value for key, value in kept.items() if key not in idle}}


#: Candidate values of each key under its preset, besides the current one.
_CHOICES: dict[str, dict[str, tuple[Any, ...]]] = {
    "window": {
        "goal": (None, "low-delay", "bulk"),
        "max_overhead": (None, 0.1),
        "delivery": (None, "immediate"),
        "ack_interval_ms": (None, 40.0),
    },
    "block": {
        "block_size": (None, 12, 100),
        "blocks_in_flight": (None, 3),
        "policy": (None, "playncool"),
        "overshoot": (None, 1.1),
    },
}


#: Defaults of these keys: `CodingParams` in crates/proto/src/config.rs.
_LEFT_OUT: dict[str, dict[str, Any]] = {
    "window": {"goal": "throughput", "delivery": "auto", "ack_interval_ms": 10.0},
    "block": {"block_size": 32, "blocks_in_flight": 8, "policy": "credit", "overshoot": 1.0},
}
#: Maximum number of candidates: blocks with and without a helper, and the current coding.
CODINGS_MAX = 1 + sum(
    prod(map(len, choices.values())) * (2 if preset == "block" else 1)
    for preset, choices in _CHOICES.items()
)


def codings(own: Coding, *, has_helper: bool, keep: Collection[str] = ()) -> list[Coding]:
    """Return all candidate codings, the tunnel's own first: at most `CODINGS_MAX`.

    Parameters
    ----------
    own
        The current coding.
    has_helper
        Whether a station is available as a helper.
    keep
        Fields that keep their current value.

    Examples
    --------
    >>> found = codings(Coding(), has_helper=True)
    >>> len(found), found[0] == Coding()
    (72, True)
    """
    names = [each.name for each in fields(Coding)]
    if unknown := sorted(set(keep) - set(names)):
        raise ValueError(f"keep = {unknown[0]}: expected one of {', '.join(names)}")
    found = [own]
    for preset, choices in _CHOICES.items():
        if "preset" in keep and preset != own.preset:
            continue
        helpers = {own.helper} if "helper" in keep else {False, has_helper and preset == "block"}
        of_own = own.preset == preset
        values = [
            (getattr(own, name),) if name in keep
            else _values(getattr(own, name), tried, _LEFT_OUT[preset].get(name)) if of_own
            else tried
            for name, tried in choices.items()
        ]  # fmt: skip
        base = own if of_own else Coding(preset)
        for helper, *rest in product(sorted(helpers), *values):
            tried = dict(zip(choices, rest, strict=True))
            found.append(base.with_values({"helper": helper, **tried}))
    return list(dict.fromkeys(found))


def _values(own: Any, tried: tuple[Any, ...], left_out: Any) -> tuple[Any, ...]:
    """Return the candidate values of a key, its own first, at most as many as are tried.

    If its own value equals the default, leaving the key out is not a further candidate.
    """
    others = [each for each in tried if each is not None or own is None or own != left_out]
    return tuple(dict.fromkeys((own, *others)))[: len(tried)]
