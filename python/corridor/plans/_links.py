"""Links: rates, queues and losses, and how they vary."""

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
class Erasure:
    """How packets are lost.

    Parameters
    ----------
    kind
        Which process.
    loss_ratio
        Bernoulli, Gilbert-Elliott: share of packets lost; none = left out.
    burst_packets
        Gilbert-Elliott: packets in the mean stay in the bad state, from 1; none = left out.
    good_loss_ratio
        Gilbert-Elliott: share of packets lost in the good state; none = 0.
    bad_loss_ratio
        Gilbert-Elliott: share of packets lost in the bad state; none = 1.
    path
        Trace: a file with a 1 for each packet lost and a 0 for each that is not; it is
        looked for beside the plan, and starts again at its end; none = left out.
    """

    kind: Literal["bernoulli", "gilbert-elliott", "trace"]
    loss_ratio: float | None = None
    burst_packets: float | None = None
    good_loss_ratio: float | None = None
    bad_loss_ratio: float | None = None
    path: str | None = None


#: How the rate of a link changes with time.
Rate = TraceRate | StepsRate | MarkovRate | WalkRate


@dataclass(frozen=True)
class Direction:
    """What a link is like in one direction; of one that is a part of a `Link`, what is different.

    Parameters
    ----------
    rate_bps
        Bits per second; none where ``rate`` says how they change.
    delay_ms
        Propagation delay, ms, from 0.
    queue_packets
        Packets that wait; more are dropped. None where ``queue_bytes`` or ``queue_ms`` says it.
    erasure_ratio
        Share of packets lost, independently of each other, 0 to 1; none = 0.
    rate
        How its rate changes with time, by itself: all that is compared finds the same rates.
    outage
        Times at which it sends nothing; none = never.
    policer
        What is dropped before it comes to the queue; none = nothing.
    jitter
        By how much each packet is late; none = not at all.
    queue_bytes
        Bytes that wait, in place of packets.
    queue_ms
        Longest that a packet may wait, ms, in place of packets.
    erasure
        How packets are lost, where they are not lost independently.
    """

    rate_bps: int | None = None
    delay_ms: float | None = None
    queue_packets: int | None = None
    erasure_ratio: float | None = None
    rate: Rate | None = None
    outage: Outage | None = None
    policer: Policer | None = None
    jitter: Jitter | None = None
    queue_bytes: int | None = None
    queue_ms: float | None = None
    erasure: Erasure | None = None


@dataclass(frozen=True)
class Link(Direction):
    """A link: what `Direction` says holds for both, where these do not say otherwise.

    Parameters
    ----------
    rate_bps, delay_ms, queue_packets, erasure_ratio, rate, outage, policer, jitter, queue_bytes, \
queue_ms, erasure
        As of a `Direction`.
    forward, backward
        What is different from the first end to the second, and back.
    between
        `Explicit` networks: the nodes at its ends.

    Examples
    --------
    >>> from corridor import sim
    >>> rate = MarkovRate((2e6, 8e6), dwell_s=0.5)
    >>> link = Link(None, 10, 50, rate=rate, jitter=Jitter("exponential", 2))
    >>> flow = sim.Flow(0, 1, tcp=sim.Tcp())
    >>> results = sim.run(sim.Plan(sim.Chain(1, link), [flow], duration_s=20, warm_up_s=5))
    >>> bool(1e6 < results["goodput_bps"].item() < 8e6)
    True
    """

    forward: Direction | None = None
    backward: Direction | None = None
    between: tuple[int, int] | None = None
