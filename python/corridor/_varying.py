"""What of a link varies: its rate, its delay, what is dropped in front of it, and when it is out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class TraceRate:
    """A recorded rate in Mahimahi's format.

    Parameters
    ----------
    path
        A file with a line for each opportunity to send 1504 bytes, ms since its beginning; it
        begins again at its end.
    """

    KIND: ClassVar[str] = "trace"
    path: str


@dataclass(frozen=True)
class Step:
    """A step of a rate.

    Parameters
    ----------
    at_s
        From when on, s.
    rate_bps
        Bits per second from then on; 0: nothing is sent.
    """

    at_s: float
    rate_bps: int


@dataclass(frozen=True)
class StepsRate:
    """Rates by a list.

    Parameters
    ----------
    steps
        The rates, and from when on they are that; the first from 0.
    period_s
        After which time they begin again, s; none = the last one stays.
    """

    KIND: ClassVar[str] = "steps"
    steps: Sequence[Step]
    period_s: float | None = None


@dataclass(frozen=True)
class MarkovRate:
    """One of several rates, each for a while; any other follows with the same probability.

    Parameters
    ----------
    rates_bps
        The rates, bits per second, 2 to 64 of them.
    dwell_s
        Mean of the exponentially distributed times that each is kept, s.
    """

    KIND: ClassVar[str] = "markov"
    rates_bps: Sequence[float]
    dwell_s: float


@dataclass(frozen=True)
class WalkRate:
    """A rate whose logarithm takes normally distributed steps between bounds.

    Parameters
    ----------
    least_bps, most_bps
        The bounds, bits per second.
    interval_ms
        From step to step, ms.
    deviation
        Standard deviation of a step of the natural logarithm.
    """

    KIND: ClassVar[str] = "walk"
    least_bps: int
    most_bps: int
    interval_ms: float
    deviation: float


@dataclass(frozen=True)
class Outage:
    """Times at which a link sends nothing, after times at which it sends.

    Parameters
    ----------
    up_s, down_s
        How long it sends, and does not, s.
    kind
        Whether these are the times, or means of exponentially distributed ones.
    """

    up_s: float
    down_s: float
    kind: Literal["periodic", "exponential"] = "periodic"


@dataclass(frozen=True)
class Policer:
    """A token bucket in front of a link's queue, which drops what exceeds it.

    Parameters
    ----------
    rate_bps
        Bits per second that fill it.
    burst_bytes
        Bytes that it holds.
    """

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True)
class Jitter:
    """By how much each packet is late.

    Parameters
    ----------
    kind
        How these times are distributed.
    mean_ms
        Their mean, ms; uniform: they go from zero to twice that.
    deviation_ms
        Normal: their standard deviation, ms; times below zero are none.
    reorders
        Packets overtake each other; else one that is late makes those behind it late.
    """

    kind: Literal["exponential", "normal", "uniform"]
    mean_ms: float
    deviation_ms: float | None = None
    reorders: bool = False


@dataclass(frozen=True)
class Direction:
    """What is different in one direction of a link; the fields are those of `Link`.

    Parameters
    ----------
    rate_bps, delay_ms, queue_packets, erasure_ratio, rate, outage, policer, jitter, queue_bytes, \
queue_ms
        As of the link; none = as the link.
    """

    rate_bps: int | None = None
    delay_ms: float | None = None
    queue_packets: int | None = None
    erasure_ratio: float | None = None
    rate: TraceRate | StepsRate | MarkovRate | WalkRate | None = None
    outage: Outage | None = None
    policer: Policer | None = None
    jitter: Jitter | None = None
    queue_bytes: int | None = None
    queue_ms: float | None = None
