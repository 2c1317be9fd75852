"""Flows across networks: sources, TCP, and network coding below TCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from corridor.plans._toml import table

#: TCP implementations to take defaults from.
TcpPreset = Literal["ns2", "constrained", "linux-2014", "linux"]
#: Congestion control algorithms.
TcpVariant = Literal["tahoe", "reno", "newreno", "sack", "cubic", "vegas", "slowstart", "bbr"]


@dataclass(frozen=True)
class Tcp:
    """A flow's TCP: a preset, and deviations from it.

    ``None`` means the preset's value, unless stated otherwise.

    Parameters
    ----------
    preset
        ``linux``: today's kernel, with ``cubic``, ``reno`` or ``bbr``; ``linux-2014``: Linux as of
        2014, without RACK and tail loss probes; ``ns2``: the agents of ns-2.35; ``constrained``:
        nodes with little memory (Betzler et al. 2012).
    variant
        Congestion control; None: ``cubic`` for ``linux`` and ``linux-2014``, ``newreno`` for the
        others.
    window_packets_max
        Maximum window, packets.
    initial_window_packets
        Initial congestion window, packets.
    initial_ssthresh_packets
        Initial slow-start threshold, packets.
    receiver
        Whether the receiver keeps packets beyond a gap, or discards them (go-back-N).
    delayed_ack_packets
        In-order packets per acknowledgement (the papers' beta), from 1.
    delayed_ack_timeout_ms
        Longest delay of an acknowledgement, ms.
    acks
        What an acknowledgement confirms: all in-order data, or a single packet.
    ack_bytes
        Size of an acknowledgement, bytes.
    sack
        Whether the receiver reports what has arrived beyond a gap; None: as the variant requires.
    rto
        How to set the retransmission timeout. ``rfc6298``: from the smoothed round-trip time and
        its variation; ``coap``: 2 to 3 s, drawn anew for each packet; ``semi-dynamic``: fixed at
        four times the first round-trip time. None: ``rfc6298``.
    timeouts_max
        Consecutive timeouts after which the sender gives up, from 1; None: never.
    rto_initial_s
        Initial retransmission timeout, s.
    rto_min_s
        Minimum retransmission timeout, s.
    rto_max_s
        Maximum retransmission timeout, s.
    rto_granularity_s
        Granularity of the retransmission timer's clock, s.
    limited_transmit
        Whether the first two duplicate acknowledgements send new packets (RFC 3042).
    careful
        Whether to suppress a second fast retransmit for losses within one window (``bugFix_`` of
        ns-2).
    reduction
        What a loss halves: the window (ns-2), or the amount in flight (RFC 5681).
    slow_start_restart
        Whether to slow-start after an idle period.
    rtt_sampling
        How to sample round-trip times: one packet at a time, or every acknowledgement of new data.
    ecn
        Whether to react to congestion signalled by ECN (RFC 3168).
    pacing
        Linux: whether to pace packets, as with the fq queueing discipline; ``bbr`` always does.
    hystart
        Linux: whether ``cubic`` leaves slow start at the first signs of a queue.
    """

    preset: TcpPreset = "linux"
    variant: TcpVariant | None = None
    window_packets_max: int | None = None
    initial_window_packets: int | None = None
    initial_ssthresh_packets: int | None = None
    receiver: Literal["keep", "discard"] | None = None
    delayed_ack_packets: int | None = None
    delayed_ack_timeout_ms: float | None = None
    acks: Literal["cumulative", "positive"] | None = None
    ack_bytes: int | None = None
    sack: bool | None = None
    rto: Literal["rfc6298", "coap", "semi-dynamic"] | None = None
    timeouts_max: int | None = None
    rto_initial_s: float | None = None
    rto_min_s: float | None = None
    rto_max_s: float | None = None
    rto_granularity_s: float | None = None
    limited_transmit: bool | None = None
    careful: bool | None = None
    reduction: Literal["window", "flight"] | None = None
    slow_start_restart: bool | None = None
    rtt_sampling: Literal["one-packet", "timestamps"] | None = None
    ecn: bool | None = None
    pacing: bool | None = None
    hystart: bool | None = None


@dataclass(frozen=True)
class TcpNc:
    """TCP/NC below a flow's TCP.

    Parameters
    ----------
    redundancy
        Redundancy factor R: combinations sent per TCP segment. Adaptive: long-run upper bound on
        it. None: 1, or 2 if adaptive.
    field
        Field of the coding coefficients; None: ``gf256``.
    adaptive
        Whether to send as many combinations as the receiver lacks, instead of a fixed factor; None:
        no.
    loss_ratio
        Adaptive: initial estimate of the packet loss ratio; None: 0.
    buffer_segments
        Capacity of the coding buffer, segments; None: as many as possible.
    """

    redundancy: float | None = None
    field: Literal["gf2", "gf16", "gf256"] | None = None
    adaptive: bool | None = None
    loss_ratio: float | None = None
    buffer_segments: int | None = None


@dataclass(frozen=True)
class Source:
    """What a flow's application sends.

    Parameters
    ----------
    kind
        ``ftp``: as much as TCP can carry; ``fixed``: a fixed number of packets; ``rate``: TCP
        limited to a rate. Without TCP, datagrams: ``cbr`` at a constant rate, ``poisson`` at
        exponential intervals, ``on-off`` at a constant rate with silences, ``trace`` at the times a
        file lists.
    packets
        For ``fixed``: number of packets.
    rate_bps
        For ``rate``, ``cbr``, ``poisson`` and ``on-off``: payload bits per second (``on-off``:
        while on).
    on_s
        For ``on-off``: mean on time, exponentially distributed, s.
    off_s
        For ``on-off``: mean off time, exponentially distributed, s.
    path
        For ``trace``: a file with one datagram per line: seconds after the flow's start, payload
        bytes.
    """

    kind: Literal["ftp", "fixed", "rate", "cbr", "poisson", "on-off", "trace"] = "ftp"
    packets: int | None = None
    rate_bps: float | None = None
    on_s: float | None = None
    off_s: float | None = None
    path: str | None = None


@dataclass(frozen=True)
class Flow:
    """A flow from one node to another.

    Parameters
    ----------
    sender
        The sender's node.
    receiver
        The receiver's node.
    source
        What the application sends.
    tcp
        Its TCP; None for datagram sources such as ``cbr``.
    tcp_nc
        Network coding below TCP; None: plain TCP.
    start_s
        Start time, s.
    stop_s
        Time at which the application stops, s; None: at the end.
    payload_bytes
        Payload bytes per packet; None: those of the TCP preset, 1000 without TCP.
    header_bytes
        Header bytes per packet; None: those of the TCP preset, 28 without TCP.
    processing_ms
        TCP without TCP/NC: processing time per received packet at each end, one packet at a time,
        ms; None: 0.
    tunnel
        Index of the tunnel between the same nodes that it uses, from 0; None: no tunnel.
    broadcast
        Datagrams: whether to broadcast to all nodes that hear the sender, which do not forward
        them; ``receiver`` is the node that counts them. None: no.
    links_max
        Largest number of links its packets may cross; None: no limit.
    """

    sender: int
    receiver: int
    source: Source = Source()
    tcp: Tcp | None = None
    tcp_nc: TcpNc | None = None
    start_s: float = 0.0
    stop_s: float | None = None
    payload_bytes: int | None = None
    header_bytes: int | None = None
    processing_ms: float | None = None
    tunnel: int | None = None
    broadcast: bool | None = None
    links_max: int | None = None

    def table(self) -> dict[str, Any]:
        """Return the ``[[flow]]`` table of a plan file."""
        found = table(self)
        return {"from": found.pop("sender"), "to": found.pop("receiver"), **found}
