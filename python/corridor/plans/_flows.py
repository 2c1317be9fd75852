"""Flows across networks: sources, TCP, and coding under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from corridor.plans._toml import table

#: Where TCP's defaults come from.
TcpPreset = Literal["ns2", "constrained", "linux-2014", "linux"]
#: Congestion control.
TcpVariant = Literal["tahoe", "reno", "newreno", "sack", "cubic", "vegas", "slowstart", "bbr"]


@dataclass(frozen=True)
class Tcp:
    """TCP of a flow: a preset, and what is different from it.

    Parameters
    ----------
    preset
        ``linux``: the kernel's, with ``cubic``, ``reno`` or ``bbr``; ``linux-2014``: as it was
        then; ``ns2``: the agents of ns-2.35; ``constrained``: nodes with little memory.
    variant
        Congestion control; none = ``cubic`` for ``linux`` and ``linux-2014``, ``newreno`` for
        the others.
    window_packets_max
        Largest window, packets; none = left out.
    initial_window_packets
        Congestion window at the start, packets; none = left out.
    initial_ssthresh_packets
        Slow-start threshold at the start, packets; none = left out.
    receiver
        What the receiver does with packets beyond a gap; none = left out.
    delayed_ack_packets
        Packets in order for each acknowledgement (the papers' beta), from 1; none = left
        out.
    delayed_ack_timeout_ms
        Longest that an acknowledgement is delayed, ms; none = left out.
    acks
        What an acknowledgement confirms; none = left out.
    ack_bytes
        Bytes of an acknowledgement; none = left out.
    sack
        Whether the receiver tells what has arrived beyond a gap; none = as the variant
        needs.
    rto
        How the retransmission timeout follows the round-trip times; none = rfc6298.
    timeouts_max
        Timeouts in a row after which the sender gives up, from 1; none = never.
    rto_initial_s
        First retransmission timeout, s; none = left out.
    rto_min_s
        Least retransmission timeout, s; none = left out.
    rto_max_s
        Largest retransmission timeout, s; none = left out.
    rto_granularity_s
        Ticks of the clock that times out, s; none = left out.
    limited_transmit
        New packets for the first two duplicate acknowledgements (RFC 3042); none = left
        out.
    careful
        No second fast retransmit for losses of one window (``bugFix_`` of ns-2); none =
        left out.
    reduction
        What is halved on loss; none = left out.
    slow_start_restart
        Slow start after an idle time; none = left out.
    rtt_sampling
        Which round-trip times are measured; none = left out.
    ecn
        Answer to congestion that the network echoes (RFC 3168); none = left out.
    pacing
        Linux: packets leave at a pace, as with the queueing discipline fq; bbr's always do;
        none = left out.
    hystart
        Linux: cubic's slow start ends with the first signs of a queue; none = left out.
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
    """TCP/NC under a flow's TCP.

    Parameters
    ----------
    redundancy
        Redundancy factor R, combinations for each segment of TCP's; adaptive: the most of
        them, in the long run. None = 1, adaptive 2.
    field
        Field of the coefficients; none = gf256.
    adaptive
        Send as many combinations as are missing, not a fixed factor; none = left out.
    loss_ratio
        Adaptive: share of packets lost with which the estimate begins; none = 0.
    buffer_segments
        Segments in the coding buffer; none = as many as there can be.
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
        ``ftp``: all that TCP can carry; ``fixed``: so many packets; ``rate``: no faster than a
        rate; without TCP, datagrams: ``cbr`` at a constant rate, ``poisson`` at drawn intervals,
        ``on-off`` with silences, ``trace`` when a file says.
    packets
        For ``fixed``: packets.
    rate_bps
        For ``rate``, ``cbr``, ``poisson`` and ``on-off``: bits of data per second.
    on_s
        For ``on-off``: mean time that it sends, s.
    off_s
        For ``on-off``: mean time that it is silent, s.
    path
        For ``trace``: a file with a datagram in each line: seconds after the start, bytes of data.
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
        Node of the sender.
    receiver
        Node of the receiver.
    source
        What its application sends.
    tcp
        Its TCP; none for ``cbr``.
    tcp_nc
        Network coding under TCP; none = plain TCP.
    start_s
        When it starts, s.
    stop_s
        When its application stops, s; none = at the end.
    payload_bytes
        Bytes of data in a packet; none = as the preset of TCP, 1000 without TCP.
    header_bytes
        Bytes of headers on a packet; none = as the preset of TCP, 28 without TCP.
    processing_ms
        TCP without TCP/NC: how long each end works on a packet that has come, one after the other,
        ms; none = 0.
    tunnel
        The tunnel that it goes through, counted from 0, between the same nodes; none = none.
    broadcast
        Datagrams: to all that hear the sender; ``receiver`` is the node that counts them; none =
        left out.
    links_max
        Most links that its packets may cross; none = as many as there are.
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
