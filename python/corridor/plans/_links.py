"""Links: rates, queues and losses, and how they vary with time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True)
class TraceRate:
    """A recorded rate in the format of Mahimahi.

    Parameters
    ----------
    path
        A file with one line per opportunity to send 1504 bytes, in ms since the beginning; it
        repeats at its end. It is looked up relative to the plan.
    """

    KIND: ClassVar[str] = "trace"
    path: str


@dataclass(frozen=True)
class Step:
    """One step of a stepwise rate.

    Parameters
    ----------
    at_s
        Start of the step, s.
    rate_bps
        Rate from then on, bits per second; 0: nothing is sent.
    """

    at_s: float
    rate_bps: int


@dataclass(frozen=True)
class StepsRate:
    """A stepwise rate.

    Parameters
    ----------
    steps
        The steps; the first at 0 s.
    period_s
        Period after which the steps repeat, s; None: the last step persists.
    """

    KIND: ClassVar[str] = "steps"
    steps: Sequence[Step]
    period_s: float | None = None


@dataclass(frozen=True)
class MarkovRate:
    """A Markov chain over several rates; each is followed by any other with equal probability.

    Parameters
    ----------
    rates_bps
        The rates, bits per second; 2 to 64 of them.
    dwell_s
        Mean of the exponentially distributed dwell times, s.
    """

    KIND: ClassVar[str] = "markov"
    rates_bps: Sequence[float]
    dwell_s: float


@dataclass(frozen=True)
class WalkRate:
    """A rate whose logarithm makes normally distributed steps between bounds.

    Parameters
    ----------
    least_bps, most_bps
        The bounds, bits per second.
    interval_ms
        Time between steps, ms.
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
    """Outages: a link alternates between sending and not sending.

    Parameters
    ----------
    up_s, down_s
        Durations of sending and of not sending, s.
    kind
        Whether these are fixed durations, or means of exponentially distributed ones.
    """

    up_s: float
    down_s: float
    kind: Literal["periodic", "exponential"] = "periodic"


@dataclass(frozen=True)
class Policer:
    """A token bucket in front of a link's queue, which drops excess packets.

    Parameters
    ----------
    rate_bps
        Fill rate, bits per second.
    burst_bytes
        Bucket size, bytes.
    """

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True)
class Jitter:
    """Random extra delay of each packet.

    Parameters
    ----------
    kind
        Distribution of the extra delay.
    mean_ms
        Mean, ms; uniform: the range is zero to twice the mean.
    deviation_ms
        Normal: standard deviation, ms; negative delays count as zero.
    reorders
        Whether packets overtake each other; otherwise a late packet delays those behind it.
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
        The loss process.
    loss_ratio
        Bernoulli, Gilbert-Elliott: overall packet loss ratio.
    burst_packets
        Gilbert-Elliott: mean number of packets in the bad state, from 1.
    good_loss_ratio
        Gilbert-Elliott: packet loss ratio in the good state; None: 0.
    bad_loss_ratio
        Gilbert-Elliott: packet loss ratio in the bad state; None: 1.
    path
        Trace: a file with a 1 for each packet lost and a 0 for each that is not, looked up relative
        to the plan; it repeats at its end.
    """

    kind: Literal["bernoulli", "gilbert-elliott", "trace"]
    loss_ratio: float | None = None
    burst_packets: float | None = None
    good_loss_ratio: float | None = None
    bad_loss_ratio: float | None = None
    path: str | None = None


#: A link rate that changes with time.
Rate = TraceRate | StepsRate | MarkovRate | WalkRate


@dataclass(frozen=True)
class Direction:
    """One direction of a link; within a `Link`, only the fields in which it differs.

    Parameters
    ----------
    rate_bps
        Bits per second; None where ``rate`` gives a time-varying rate.
    delay_ms
        Propagation delay, ms, from 0.
    queue_packets
        Queue limit, packets; excess packets are dropped. None where ``queue_bytes`` or ``queue_ms``
        gives the limit.
    erasure_ratio
        Packet loss ratio, with independent losses, 0 to 1; None: 0.
    rate
        Time-varying rate. It draws from its own random stream, so every configuration under
        comparison sees the same rates.
    outage
        Outages; None: never.
    policer
        Policer in front of the queue; None: none.
    jitter
        Random extra delay of packets; None: none.
    queue_bytes
        Queue limit, bytes, instead of packets.
    queue_ms
        Queue limit as the longest waiting time, ms, instead of packets.
    erasure
        Loss process, where losses are not independent.
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
    """A link: both directions share its fields, unless ``forward`` or ``backward`` overrides them.

    Parameters
    ----------
    rate_bps, delay_ms, queue_packets, erasure_ratio, rate, outage, policer, jitter, queue_bytes, \
queue_ms, erasure
        As in `Direction`.
    forward, backward
        Overrides for the direction from the first end to the second, and for the reverse.
    between
        `Explicit` networks: the nodes at its two ends.

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
