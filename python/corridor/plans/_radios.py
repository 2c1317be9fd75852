"""Networks of radios: the PHY, the MAC, relays and routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PathLoss:
    """Path loss: how received power falls with distance.

    Parameters
    ----------
    reference_db
        Loss at the reference distance, dB; None: that of free space at 1 m: 46.68 at 5.15 GHz
        (802.11a), 40.05 at 2.4 GHz (802.11b and g, 802.15.4).
    reference_m
        Reference distance, metres; None: 1.
    exponent
        Path-loss exponent: 2 in free space, 3 to 4 indoors; None: 3.
    shadowing_db
        Standard deviation of the shadowing of each pair of nodes, dB; None: 0.
    fixed
        Whether the shadowing is the same in all replications, as with walls; None: no.
    extra_db
        Additional loss of every link, as of an attenuator, dB; None: 0.
    """

    reference_db: float | None = None
    reference_m: float | None = None
    exponent: float | None = None
    shadowing_db: float | None = None
    fixed: bool | None = None
    extra_db: float | None = None


@dataclass(frozen=True)
class Fading:
    """Fading: how received power varies with time.

    Parameters
    ----------
    k
        Ratio of the power of the direct wave to that of the scattered ones (Rice's K); None: 0,
        Rayleigh fading.
    doppler_hz
        Maximum Doppler shift, Hz.
    sigma_db
        Standard deviation of slow variations, normal in dB.
    period_s
        Shortest period of these slow variations, s; the longest is ten times that.
    """

    k: float | None = None
    doppler_hz: float | None = None
    sigma_db: float | None = None
    period_s: float | None = None


@dataclass(frozen=True)
class Radio:
    """The radios of a network's nodes, and their MAC.

    Parameters
    ----------
    mac
        Medium access: ``ideal``, one channel on which, when it is idle, a random waiting node
        sends, without collisions; ``dcf``, that of IEEE 802.11; ``802.15.4``, unslotted CSMA/CA.
    nodes
        The nodes that have this radio; None: all.
    path
        Matrix: a file for this radio alone, instead of the network's.
    standard
        DCF: the IEEE 802.11 PHY; None: ``a``.
    rate_bps
        Bit rate of data frames, bits per second: with DCF one of the standard's, with an ideal MAC
        any; 802.15.4 has only one.
    rate_control
        DCF: whether to adapt rates to acknowledgements, among all rates of the standard; None: no.
    rates_bps
        DCF: the rates to choose from, bits per second, ascending; None: all of the standard's.
    queue_frames
        Queue limit of a node, frames, including those on the air; excess frames are dropped; None:
        50.
    header_bytes
        MAC header and frame check sequence, bytes; None: 36 (DCF, with LLC and SNAP), 11
        (802.15.4).
    retries
        DCF: attempts per frame, from 1, also behind CTS; None: 7, and 4 behind CTS. 802.15.4:
        retries, 0 to 7; None: 3. Ideal: retries; None: 0.
    rts_threshold_bytes
        DCF: longer frames are preceded by an RTS; None: no RTS.
    backoff
        802.15.4: backoff before each CCA: the standard's; ``exponential-paper`` and
        ``tinyos-paper``, the standard's and TinyOS's as Betzler et al. (2012) describe them;
        ``tinyos-source``, as in TinyOS's source. None: the standard's.
    ack_wait_ms
        802.15.4: how long a node waits for an acknowledgement, ms; None: 0.864, the standard's.
        TinyOS waits 7.8.
    acknowledged
        802.15.4: whether unicast frames are acknowledged; None: yes.
    power_dbm
        Transmit power, dBm; None: 16 (DCF), 0 (802.15.4).
    powers_dbm
        Transmit power of each node that has the radio, dBm, in the order of ``nodes``; None: the
        same for all.
    noise_dbm
        Receiver noise, dBm; None: -94 (DCF), -98 (802.15.4).
    sensitivity_dbm
        Receiver sensitivity: minimum power of a receivable frame, dBm; None: -82 (DCF), -95
        (802.15.4).
    sense_dbm
        Carrier-sense threshold: power at which the channel counts as busy, dBm; None: -82 (DCF),
        -77 (802.15.4).
    sinr_db
        Minimum SINR for reception, dB; None: that of the rate (DCF), computed from bit errors
        (802.15.4).
    capture_db
        Capture threshold: a new frame stronger than everything else by this much replaces the one
        under reception, dB; None: no capture.
    capture_us
        With ``capture_db``: capture happens only this long after the reception began, us; None: as
        long as it lasts.
    path_loss
        Path loss, where nodes have positions.
    fading
        Fading.
    reach_m
        Ideal: range within which all nodes hear each other, metres.
    erasure_ratio
        Ideal: frame loss ratio, independent on each link; None: 0.
    overhead_us
        Ideal: fixed overhead per frame, us; None: 0.
    propagation_us
        Propagation delay, us; None: 0.
    """

    mac: Literal["ideal", "dcf", "802.15.4"]
    nodes: Sequence[int] | None = None
    path: str | None = None
    standard: Literal["a", "b", "g"] | None = None
    rate_bps: int | None = None
    rate_control: bool | None = None
    rates_bps: Sequence[int] | None = None
    queue_frames: int | None = None
    header_bytes: int | None = None
    retries: int | None = None
    rts_threshold_bytes: int | None = None
    backoff: Literal["standard", "exponential-paper", "tinyos-paper", "tinyos-source"] | None = None
    ack_wait_ms: float | None = None
    acknowledged: bool | None = None
    power_dbm: float | None = None
    powers_dbm: Sequence[float] | None = None
    noise_dbm: float | None = None
    sensitivity_dbm: float | None = None
    sense_dbm: float | None = None
    sinr_db: float | None = None
    capture_db: float | None = None
    capture_us: float | None = None
    path_loss: PathLoss | None = None
    fading: Fading | None = None
    reach_m: float | None = None
    erasure_ratio: float | None = None
    overhead_us: float | None = None
    propagation_us: float | None = None


@dataclass(frozen=True)
class Relay:
    """Relays that combine packets of different flows.

    Parameters
    ----------
    preset
        Source of the defaults.
    coding
        Whether to combine packets at all.
    hold_ms
        How long a forwarded packet is held to wait for a coding partner, ms; 0: not at all.
    hold_learned
        How to shorten the hold time, of which ``hold_ms`` then is the maximum. "no": not at all;
        "arrivals": until a partner is expected from recent arrivals, and only while the channel is
        congested; "waits": as long as packets recently had to wait for the channel, and only while
        the channel is congested.
    combines_waiting
        Whether all packets waiting for the channel may be combined, not only held ones.
    decode_ms
        How long to keep packets for decoding coded ones, ms.
    adaptive
        What the number of MAC retries controls.
    retries_per_second
        Retries per second above which the channel counts as congested.
    switch_off
        Whether to stop sending coded frames to receivers that overhear too little or often fail to
        decode.
    heard_ratio_min
        With ``switch_off``: minimum fraction of a relay's frames to others that a receiver must
        overhear.
    failed_ratio_max
        With ``switch_off``: maximum fraction of coded frames that a receiver may fail to decode.
    resend
        Whether to retransmit what neighbours lack where the MAC does not, and to report the fate of
        neighbours' frames to them for this purpose. This covers the packets in coded frames for the
        receiver without MAC retries, and all packets for a neighbour to which the MAC gives up on
        more than 1 in 100 frames.
    repair
        With ``resend``: whether receivers that probably lack something get combinations of packets
        they have not reported, while there is nothing else to send.
    in_order
        Whether TCP segments for a node's own host wait for segments they have overtaken, for as
        long as earlier late segments took, at most 200 ms.
    queue_target_ms
        CoDel's target (RFC 8289): acceptable standing delay of packets waiting for the channel, ms;
        beyond it some are dropped. 0: drop only when the queue is full.
    queue_packets
        Queue limit of a node, packets, including held ones; excess packets are dropped.
    window_packets
        Packets from a node that a neighbour may hold without having been overheard forwarding them.
        Further ones wait at the node, where CoDel (``queue_target_ms``) then drops only packets
        that the node itself originated. 0: unlimited.
    announce_ms
        Interval at which nodes announce whom they hear, ms.
    """

    preset: Literal["default", "paper", "paper-adaptive", "plain"] | None = None
    coding: bool | None = None
    hold_ms: float | None = None
    hold_learned: Literal["no", "arrivals", "waits"] | None = None
    combines_waiting: bool | None = None
    decode_ms: float | None = None
    adaptive: Literal["off", "holding", "coding"] | None = None
    retries_per_second: int | None = None
    switch_off: bool | None = None
    heard_ratio_min: float | None = None
    failed_ratio_max: float | None = None
    resend: bool | None = None
    repair: bool | None = None
    in_order: bool | None = None
    queue_target_ms: float | None = None
    queue_packets: int | None = None
    window_packets: int | None = None
    announce_ms: float | None = None


@dataclass(frozen=True)
class Route:
    """A fixed route.

    Parameters
    ----------
    path
        The nodes along the route, from the source to the destination.
    radios
        Index of the radio to use for each hop, from 0; None: a wired link where there is one, else
        the first radio.
    both_ways
        Whether packets in the opposite direction take the same route back; None: yes.
    """

    path: Sequence[int]
    radios: Sequence[int] | None = None
    both_ways: bool | None = None


@dataclass(frozen=True)
class Routing:
    """How nodes discover routes.

    Parameters
    ----------
    kind
        The protocol: ``nst-aodv``, AODV without local repair, route lifetimes and intermediate
        replies.
    metric
        Route metric: fewest links, or (``path-dr``) the largest product of the links' delivery
        ratios estimated from LQI; None: fewest links.
    static
        Whether routes are discovered only once, before the run, over links at mean power without
        contention; None: no.
    jitter_ms
        Maximum random delay before a node forwards a route request, ms; None: 20.
    discovery_wait_s
        Time before the second route request, doubled for each further one, s; None: 0.5.
    discovery_limit_s
        Time after which a discovery fails, s; None: 10.
    half_lqi
        path-dr: LQI at a delivery ratio of one half; None: 102.
    scale_lqi
        path-dr: LQI difference that changes the delivery odds by a factor of e; None: 22.
    """

    kind: Literal["nst-aodv"]
    metric: Literal["hop-count", "path-dr"] | None = None
    static: bool | None = None
    jitter_ms: float | None = None
    discovery_wait_s: float | None = None
    discovery_limit_s: float | None = None
    half_lqi: float | None = None
    scale_lqi: float | None = None
