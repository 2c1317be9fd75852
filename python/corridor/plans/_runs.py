"""Runs between stations on a radio or over a line, as in scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from corridor.plans._flows import TcpPreset
from corridor.plans._radios import Relay

#: How packets get from S to D.
Crossing = Literal["kernel", "plain", "coded", "coded+helper", "relay"]
#: Congestion control of the sender.
Congestion = Literal["cubic", "reno", "newreno", "sack", "vegas", "tahoe", "bbr"]
#: Which packets wait for earlier ones, in window mode.
Delivery = Literal["auto", "in-order", "immediate"]
#: Coding presets.
Preset = Literal["window", "block", "paper", "tcp-nc"]


@dataclass(frozen=True)
class Medium:
    """The radio on which runs take place.

    Parameters
    ----------
    duplex
        One channel shared by all (``half``), or one channel per station (``full``).
    rate_bps
        PHY rate, bits per second.
    rtt_ms
        Round-trip propagation delay, ms; half in each direction.
    queue_frames
        Queue limit of a station's interface, frames.
    overhead_us
        Fixed overhead per frame, us; None: 0.
    drops_when_full
        Whether the interface silently drops frames when its queue is full, as behind a switch or a
        modem; otherwise it pushes back on the station; None: no.
    jitter_ms
        Random extra propagation delay of frames, ms: its mean, or its maximum if uniform. Frames
        stay in order; None: 0.
    jitter_shape
        Distribution of the extra delay; None: exponential.
    retry_limit
        MAC retransmissions when the addressed station missed a frame; None: 0.
    hops
        Number of links in series between S and D, joined by forwarding hosts; 1 to the program's
        limit. Each link has the rate, the round trip and the queue given here, and an equal share
        of the losses: ``e3`` is the end-to-end erasure ratio. None: 1.
    relays
        Lab, path ``relay``: number of relays in a row between S and D on this one channel, 1 to the
        program's limit; None: 1.
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
    """Which UDP flows are delivered in order, by class of flow.

    Parameters
    ----------
    quic
        QUIC; auto: in order while it carries bulk data.
    bulk
        Unclassified flows that fill their packets and keep a standing queue; auto: in order.
    real_time
        RTP, and flows that DSCP marks as real-time; auto: immediately.
    other
        All other flows; auto: immediately.
    """

    quic: Delivery | None = None
    bulk: Delivery | None = None
    real_time: Delivery | None = None
    other: Delivery | None = None


@dataclass(frozen=True)
class Coding:
    """A coding preset, and deviations from it.

    ``None`` means the preset's value, unless stated otherwise.

    Parameters
    ----------
    preset
        The preset, the same at both ends; None: ``window`` for two ends without a helper, ``block``
        with one.
    field
        Field of the coding coefficients.
    order
        Blocks: the order in which the encoder sends symbols.
    redundancy
        TCP/NC: combinations sent per TCP segment; adaptive: long-run upper bound on it.
    adaptive
        TCP/NC: whether to send as many combinations as the receiver lacks, instead of a fixed
        factor.
    block_size
        Blocks: source symbols per block.
    window_size
        Window mode: maximum number of unacknowledged symbols.
    goal
        Window mode: what to optimise for.
    max_overhead
        Window mode: maximum bytes of repair symbols per byte of source symbols, over about one
        window. Losses that cannot be repaired within this budget are given up.
    delivery
        Window mode: which packets wait for earlier ones.
    delivery_udp
        Window mode, delivery auto: the same for UDP flows, by class.
    half_duplex
        Window mode: whether the channel is half-duplex, shared by both directions as in Wi-Fi.
    clamp_windows
        Window mode: whether to shrink TCP receive windows rather than let a standing queue build
        up.
    symbol_size
        Maximum source symbol size, bytes; 0: whatever fits the underlay. It bounds the tunnel's
        MTU.
    encoder_timeout_ms
        Blocks: how long the encoder waits for an acknowledgement, ms.
    helper_overshoot
        Blocks, policy playncool: factor on the helper's maximum.
    overshoot
        Blocks: factor on the encoder's budget.
    policy
        Blocks: how to compute transmission budgets.
    repair_margin
        Blocks, policy playncool: whether to repair with a margin, so that one round mostly
        suffices.
    bundle
        Blocks: whether to put several packets into one source symbol.
    blocks_in_flight
        Blocks: maximum number of unacknowledged blocks.
    delivery_deadline_ms
        Blocks and window mode: longest delay for in-order delivery, ms.
    ack_interval_ms
        Blocks and window mode: minimum time between two acknowledgements that complete nothing, ms.
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
    """A run on a radio or a line; a list as the value of a field stands for one run per value.

    Parameters
    ----------
    path
        How packets get from S to D.
    transport
        The load: one TCP connection, or UDP datagrams at a constant rate.
    e3
        Erasure ratio from S to D, and from D to S unless ``e3_back`` differs.
    congestion
        TCP only: the sender's congestion control.
    offered_bps
        UDP: offered payload bits per second. TCP: the application's rate; None: unlimited.
    datagram_bytes
        UDP payload bytes per datagram; None: as many as fill the tunnel's MTU.
    direction
        Direction of the load; None: S to D.
    e3_back
        Erasure ratio from D to S; None: ``e3``.
    e1
        Erasure ratio from S to H (for D to H see ``e2``); None: e3 / 2.
    e2
        Erasure ratio from H to D; None: e3 / 2. Links have the same ratio in both directions.
    duration_s
        Measured time under load, s; None: the scenario's ``duration_s``.
    coding
        Coding parameters, for coded paths.
    relay
        Which packets relays combine, for path ``relay``.
    underlay
        The underlay that nodes send frames over.
    burst_frames
        Mean loss burst length, in frames (Gilbert's channel on every lossy link); None: independent
        losses.
    ecn
        Lab, TCP only: whether the kernels at both ends use ECN (RFC 3168).
    ping_interval_ms
        Lab only: interval of the echo datagrams sent alongside the load, ms; None: no echo.
    deadline_ms
        Lab, UDP only: deadline after which a datagram is worthless, ms.
    beside
        Lab only: congestion control of a second TCP flow from S to D that bypasses the nodes and
        shares their interface. Nodes share it over the UDP underlay only.
    warm_up_s
        Lab only: seconds of load before the measured interval.
    wire
        Lab only: what lies between S and D.
    tcp
        Simulator, TCP only: the hosts' TCP implementation (the lab uses the kernel's); None:
        ``linux``.
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
