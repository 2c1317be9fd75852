"""The settings that are tried, and where a plan has them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any

#: Maximum number of candidate settings.
GRID_MAX = 96


@dataclass(frozen=True, order=True)
class Setting:
    """A setting of a constrained network: what constrained-defaults-2012 varies.

    Its own defaults are those of the standards, with the paper's window limit (Table I).

    Parameters
    ----------
    retries
        Retries of a frame, macMaxFrameRetries: 0 to 7.
    backoff
        How long a node waits before it looks at the channel: a kind of the plan's.
    window
        Largest window of TCP, packets.
    rto
        How the retransmission timeout follows the round trips.
    acks
        What TCP's acknowledgements confirm.
    metric
        What makes one route better than another.
    """

    retries: int = 3
    backoff: str = "standard"
    window: int = 8
    rto: str = "rfc6298"
    acks: str = "cumulative"
    metric: str = "hop-count"

    def changes(self, other: Setting) -> dict[str, Any]:
        """Return what the other has otherwise, by the names of fields."""
        mine, others = asdict(self), asdict(other)
        return {name: others[name] for name in mine if mine[name] != others[name]}

    def with_values(self, values: Mapping[str, Any]) -> Setting:
        """Return it with other values of some fields."""
        return replace(self, **values)

    def row(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


#: Location of each field in a plan; for flows, below their index.
PATHS = {
    "retries": "network.radio.retries",
    "backoff": "network.radio.backoff",
    "metric": "network.routing.metric",
}
FLOW_PATHS = {
    "window": "tcp.window_packets_max",
    "rto": "tcp.rto",
    "acks": "tcp.acks",
}
#: Candidate values of each field, besides the network's own value; with six fields of 2, 2, 3, 2, 2
#: and 2 values there are 96. The paper recommends 5 to 7 retries (III-A2), exponential backoff
#: (III-A1), windows between 2 and 5 (III-C3), RFC 6298 (III-C2), PATH-DR (III-B).
CHOICES: dict[str, tuple[Any, ...]] = {
    "retries": (7, 3),
    "backoff": ("exponential-paper", "standard"),
    "window": (5, 2, 8),
    "rto": ("semi-dynamic", "rfc6298"),
    "acks": ("positive", "cumulative"),
    "metric": ("path-dr", "hop-count"),
}
#: Number of values of each field.
_COUNTS = {"retries": 2, "backoff": 2, "window": 3, "rto": 2, "acks": 2, "metric": 2}


def values(defaults: Setting, keep: Collection[str] = ()) -> dict[str, tuple[Any, ...]]:
    """Return what is tried of each field: the network's own value first, and alone if kept."""
    names = [each.name for each in fields(Setting)]
    if unknown := sorted(set(keep) - set(names)):
        raise ValueError(f"keep = {unknown[0]}: expected one of {', '.join(names)}")
    found = {}
    for name in names:
        own = getattr(defaults, name)
        others = [value for value in CHOICES[name] if value != own and name not in keep]
        found[name] = (own, *others[: _COUNTS[name] - 1])
    return found


def grid(defaults: Setting, keep: Collection[str] = ()) -> list[Setting]:
    """Return all settings that are tried: the network's own first, at most `GRID_MAX`.

    Parameters
    ----------
    defaults
        The network's own setting.
    keep
        Fields that stay as they are.

    Examples
    --------
    >>> settings = grid(Setting())
    >>> len(settings), settings[0] == Setting()
    (96, True)
    """
    choices = values(defaults, keep)
    return [Setting(**dict(zip(choices, each, strict=True))) for each in product(*choices.values())]
