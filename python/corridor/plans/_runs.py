"""Runs of stations on a radio, or over a line, as scenarios have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from corridor.plans._flows import TcpPreset
from corridor.plans._radios import Relay

#: How packets cross.
Crossing = Literal["kernel", "plain", "coded", "coded+helper", "relay"]
#: Congestion control of the sender.
Congestion = Literal["cubic", "reno", "newreno", "sack", "vegas", "tahoe", "bbr"]
#: Which packets wait for those before them, in window mode.
Delivery = Literal["auto", "in-order", "immediate"]
#: Where coding parameters start from.
Preset = Literal["window", "block", "paper", "tcp-nc"]


@dataclass(frozen=True)
class Medium:
    """A radio on which runs are made.

    Parameters
    ----------
    duplex
        One channel for all, or one for each station.
    rate_bps
        PHY rate, bits per second.
    rtt_ms
        Round trip of the propagation alone, ms; each direction takes half.
    queue_frames
        Frames a station's interface holds.
    overhead_us
        Time a frame takes beyond its bits, us; none = left out.
    drops_when_full
        What finds the queue full is dropped, as behind a switch or a modem, and the station
        does not see it; else it is pushed back; none = left out.
    jitter_ms
        Time that comes on top of a frame's propagation, ms: its mean, or its most where it
        is uniform. Frames stay in order; none = left out.
    jitter_shape
        How that time is distributed; none = left out.
    retry_limit
        Retransmissions by the MAC when the addressed station did not hear; none = left out.
    hops
        Links in a row between S and D, 1 to the program's limit, with hosts between them
        that forward. Each link has the rate, the round trip and the queue given here, and
        an equal share of the losses: e3 is that of all together; none = left out.
    relays
        Lab, path ``relay``: relays in a row between S and D on this one channel, 1 to the
        program's limit; none = left out.
    """

    duplex: Literal["half", "full"]
    rate_bps: int
    rtt_ms: float
    queue_frames: int
    overhead_us: float | None = None
    drops_when_full: bool | None = None
    jitter_ms: float | None = None
    jitter_shape: Literal["exponential", "uniform"] | None = None
    retry_limit: int | None = None
    hops: int | None = None
    relays: int | None = None


@dataclass(frozen=True)
class UdpDelivery:
    """Which flows of UDP wait for what was sent before; left out: found out.

    Parameters
    ----------
    quic
        QUIC; auto: in order while it carries bulk; none = left out.
    bulk
        Unknown flows that fill their packets and keep a queue standing; auto: in order;
        none = left out.
    real_time
        RTP, and what DSCP marks as real-time; auto: at once; none = left out.
    other
        All other flows; auto: at once; none = left out.
    """

    quic: Delivery | None = None
    bulk: Delivery | None = None
    real_time: Delivery | None = None
    other: Delivery | None = None


@dataclass(frozen=True)
class Coding:
    """A coding preset, and what differs from it.

    Parameters
    ----------
    preset
        Where to start from, the same at both ends. Left out: ``window`` for two ends
        without a helper, ``block`` with one; none = left out.
    field
        Field of the coding coefficients; none = left out.
    order
        Blocks: the order in which symbols leave the encoder; none = left out.
    redundancy
        TCP/NC: combinations for each segment of TCP's; adaptive: the most of them, in the
        long run; none = left out.
    adaptive
        TCP/NC: send as many combinations as are missing, not a fixed factor; none = left
        out.
    block_size
        Blocks: source symbols in a block; none = left out.
    window_size
        Window mode: symbols unacknowledged at once, at most; none = left out.
    goal
        Window mode: what matters more; none = left out.
    max_overhead
        Window mode: bytes of repair symbols to a byte of source symbols at most, over about
        a window of them. What cannot be repaired within it is given up; none = left out.
    delivery
        Window mode: which packets wait for those before them; none = left out.
    delivery_udp
        Window mode, delivery auto: the same of UDP's flows, by what they are; none = left
        out.
    half_duplex
        Window mode: whether the channel is half-duplex, shared by both directions as on
        Wi-Fi; none = left out.
    clamp_windows
        Window mode: make the windows of TCP's receivers shorter rather than let a queue
        stand; none = left out.
    symbol_size
        Longest source symbol, bytes; 0 for what the underlay fits. It bounds the tunnel's
        MTU; none = left out.
    encoder_timeout_ms
        Blocks: wait for an acknowledgement, ms; none = left out.
    helper_overshoot
        Blocks, policy playncool: factor on the helper's maximum; none = left out.
    overshoot
        Blocks: factor on the encoder's budget; none = left out.
    policy
        Blocks: which budgets; none = left out.
    repair_margin
        Blocks, policy playncool: repair with a margin, so that one round is mostly enough;
        none = left out.
    bundle
        Blocks: several packets to a source symbol; none = left out.
    blocks_in_flight
        Blocks: how many may be unacknowledged at once; none = left out.
    delivery_deadline_ms
        Blocks and window mode: bound of in-order delivery, ms; none = left out.
    ack_interval_ms
        Blocks and window mode: least time between two acknowledgements that complete
        nothing, ms; none = left out.
    """

    preset: Preset | None = None
    field: Literal["gf2", "gf16", "gf256"] | None = None
    order: Literal["systematic", "dense", "on-the-fly"] | None = None
    redundancy: float | None = None
    adaptive: bool | None = None
    block_size: int | None = None
    window_size: int | None = None
    goal: Literal["throughput", "low-delay", "bulk"] | None = None
    max_overhead: float | None = None
    delivery: Delivery | None = None
    delivery_udp: UdpDelivery | None = None
    half_duplex: bool | Literal["auto"] | None = None
    clamp_windows: bool | None = None
    symbol_size: int | None = None
    encoder_timeout_ms: float | None = None
    helper_overshoot: float | None = None
    overshoot: float | None = None
    policy: Literal["playncool", "credit"] | None = None
    repair_margin: bool | None = None
    bundle: bool | None = None
    blocks_in_flight: int | None = None
    delivery_deadline_ms: float | None = None
    ack_interval_ms: float | None = None


@dataclass(frozen=True)
class Run:
    """A run on a radio or a line; a list stands for a run with each of its values.

    Parameters
    ----------
    path
        How packets cross.
    transport
        What loads it.
    e3
        Erasure ratio S to D, and D to S where ``e3_back`` does not say another.
    congestion
        TCP only: the sender's congestion control; none = left out.
    offered_bps
        UDP: offered bits of payload per second. TCP: the application's rate; none = all it
        can.
    datagram_bytes
        UDP payload bytes per datagram; none = what fills the tunnel's MTU.
    direction
        The direction of the load; none = left out.
    e3_back
        Erasure ratio D to S; none = e3.
    e1
        Erasure ratio S to H (and D to H for the other direction is ``e2``); none = e3 / 2.
    e2
        Erasure ratio H to D; none = e3 / 2. Links are alike in both directions.
    duration_s
        Seconds of load that are measured; a plan may say it once for all runs; none = left
        out.
    coding
        Coding parameters, for coded paths; none = left out.
    relay
        What relays combine, for path ``relay``; none = left out.
    underlay
        What the nodes send over; none = left out.
    burst_frames
        Mean length of the bursts in which frames are lost (Gilbert's channel on every link
        that loses any), in frames; none = every frame by itself.
    ecn
        Lab, TCP only: whether the kernels at both ends use ECN (RFC 3168); none = left out.
    ping_interval_ms
        Lab only: time between the datagrams of an echo beside the load, ms; none = no echo.
    deadline_ms
        Lab, UDP only: later than this, a datagram is worth nothing, ms; none = left out.
    beside
        Lab only: congestion control of a second TCP flow from S to D, past the nodes,
        through the same interface. Nodes share it over the UDP underlay only; none = left
        out.
    warm_up_s
        Lab only: seconds of load before the measured interval; none = left out.
    wire
        Lab only: what lies between S and D; none = left out.
    tcp
        Simulator, TCP only: which TCP the hosts have; the lab's have their kernel's; none =
        left out.
    """

    path: Crossing | Sequence[Crossing]
    transport: Literal["tcp", "udp"]
    e3: float | Sequence[float]
    congestion: Congestion | Sequence[Congestion] | None = None
    offered_bps: int | Sequence[int] | None = None
    datagram_bytes: int | None = None
    direction: Literal["forward", "both"] | None = None
    e3_back: float | None = None
    e1: float | None = None
    e2: float | None = None
    duration_s: float | None = None
    coding: Coding | Sequence[Coding] | None = None
    relay: Relay | Sequence[Relay] | None = None
    underlay: Literal["ethernet", "udp"] | None = None
    burst_frames: float | Sequence[float] | None = None
    ecn: bool | Sequence[bool] | None = None
    ping_interval_ms: float | None = None
    deadline_ms: float | None = None
    beside: Congestion | None = None
    warm_up_s: float | None = None
    wire: Literal["radio", "veth"] | None = None
    tcp: TcpPreset | None = None
