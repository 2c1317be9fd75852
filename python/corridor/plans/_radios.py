"""Networks of radios: the MAC, relays, routes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PathLoss:
    """How a radio's power falls with the distance.

    Parameters
    ----------
    reference_db
        Loss at the reference distance, dB; none = that of free space at a metre: 46.68 at
        5.15 GHz (802.11a), 40.05 at 2.4 GHz (802.11b and g, 802.15.4).
    reference_m
        Reference distance, metres; none = left out.
    exponent
        2 in free space, 3 to 4 indoors; none = left out.
    shadowing_db
        Standard deviation of what differs from pair to pair, dB; none = left out.
    fixed
        Whether that is the same in all replications, as walls are; none = left out.
    extra_db
        Loss of every link besides, as of an attenuator, dB; none = left out.
    """

    reference_db: float | None = None
    reference_m: float | None = None
    exponent: float | None = None
    shadowing_db: float | None = None
    fixed: bool | None = None
    extra_db: float | None = None


@dataclass(frozen=True)
class Fading:
    """How a radio's power varies with time.

    Parameters
    ----------
    k
        Power of the direct wave over that of the scattered ones; none = 0, Rayleigh fading.
    doppler_hz
        Greatest Doppler shift, Hz; none = left out.
    sigma_db
        Standard deviation of what varies normally in decibels, dB; none = left out.
    period_s
        Shortest period of what varies in decibels, s; the longest is ten times that; none =
        left out.
    """

    k: float | None = None
    doppler_hz: float | None = None
    sigma_db: float | None = None
    period_s: float | None = None


@dataclass(frozen=True)
class Radio:
    """The radios of a network's nodes, and the MAC over them.

    Parameters
    ----------
    mac
        Who may send when.
    nodes
        The nodes that have this radio; none = all.
    path
        Matrix: a file for this radio alone, in place of the network's; none = left out.
    standard
        DCF: which of IEEE 802.11's physical layers; none = a.
    rate_bps
        Bits per second of data frames: one of the standard's; ideal: any. 802.15.4 has one
        alone; none = left out.
    rate_control
        DCF: let rates be chosen by what is acknowledged, out of all of the standard's; none
        = left out.
    rates_bps
        DCF: the rates that are chosen of, bits per second, ascending; none = all of the
        standard's.
    queue_frames
        Frames that wait at a node, or are on the air; more are dropped; none = left out.
    header_bytes
        Bytes of the MAC's header and check sequence; none = 36 (DCF, with LLC and SNAP), 11
        (802.15.4).
    retries
        DCF: attempts of a frame, from 1, and as many behind CTS; none = 7, and 4. 802.15.4:
        retries, 0 to 7; none = 3. Ideal: retries; none = 0.
    rts_threshold_bytes
        DCF: frames longer than this are announced by an RTS; none = none are.
    backoff
        802.15.4: how long a node waits before it looks whether the channel is free; none =
        left out.
    ack_wait_ms
        802.15.4: how long a node waits for an acknowledgement, ms; none = 0.864, the
        standard's. TinyOS waits 7.8.
    acknowledged
        802.15.4: whether frames to single nodes are acknowledged; none = true.
    power_dbm
        Power that nodes send with, dBm; none = 16 (DCF), 0 (802.15.4).
    powers_dbm
        The same of each node that has the radio, dBm, in the order of ``nodes``; none = one
        for all.
    noise_dbm
        Noise of a receiver, dBm; none = -94 (DCF), -98 (802.15.4).
    sensitivity_dbm
        Least power of a frame that a receiver takes, dBm; none = -82 (DCF), -95 (802.15.4).
    sense_dbm
        Least power at which the channel is busy, dBm; none = -82 (DCF), -77 (802.15.4).
    sinr_db
        Least ratio of power to noise and interference at which a frame is received, dB;
        none = the rate's own (DCF), by bit errors (802.15.4).
    capture_db
        A frame stronger than all else by so much is taken instead of the one that is being
        received, dB; none = it is not.
    capture_us
        With ``capture_db``: only so long after the reception began, us; none = as long as it
        lasts.
    path_loss
        How power falls with distance, where nodes have places; none = left out.
    fading
        How power varies in time; none = left out.
    reach_m
        Ideal: who hears whom, metres: everybody so near; none = left out.
    erasure_ratio
        Ideal: share of frames lost, on each link by itself; none = 0.
    overhead_us
        Ideal: time a frame takes beyond its bits, us; none = 0.
    propagation_us
        From sending to receiving, us; none = left out.
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
        Where the defaults come from; none = left out.
    coding
        Whether packets are combined at all; none = left out.
    hold_ms
        How long a packet of others waits for a partner, ms; 0: not at all; none = left out.
    hold_learned
        By what the hold may be shorter; ``hold_ms`` is the most then: "no", nothing;
        "arrivals", until a partner is expected by the last arrivals, and while the channel
        is congested; "waits", as long as packets had to wait for the air of late, and while
        the channel is congested; none = left out.
    combines_waiting
        Whether all that waits for the air may be combined, and not only what is held; none
        = left out.
    decode_ms
        How long packets are kept by which others are decoded, ms; none = left out.
    adaptive
        What the MAC's retries decide; none = left out.
    retries_per_second
        Retries in a second beyond which the channel counts as congested; none = left out.
    switch_off
        Whether receivers that hear too little, or fail to decode, are sent no coded frames;
        none = left out.
    heard_ratio_min
        With ``switch_off``: least share of a relay's frames to others that a receiver must
        hear; none = left out.
    failed_ratio_max
        With ``switch_off``: greatest share of coded frames that a receiver may fail to
        decode; none = left out.
    resend
        Whether what neighbours lack is sent again where the MAC does not see to it, and
        what comes of neighbours' frames is reported to them for it: of coded frames, the
        packet for the receiver without the MAC's retries; all packets for one to which the
        MAC gives up more than 1 in 100 frames; none = left out.
    repair
        With ``resend``: whether receivers that are likely to lack something get
        combinations of what they have not reported while there is nothing else to send;
        none = left out.
    in_order
        Whether segments of TCP for a node's own host wait for those that they have
        overtaken, as long as others came late before, and 200 ms at most; none = left out.
    queue_target_ms
        How long packets may wait for the air for good, ms: beyond it some are dropped
        (CoDel, RFC 8289); 0: only what finds the queue full; none = left out.
    queue_packets
        Packets that wait at a node, those held among them; others are dropped; none = left
        out.
    window_packets
        Packets of a node that a neighbour may have without having been heard to pass them
        on; what is beyond waits at the node, and of what waits only packets of its own are
        dropped (``queue_target_ms``); 0: any number; none = left out.
    announce_ms
        How often neighbours are told who is heard, ms; none = left out.
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
    """A route of packets.

    Parameters
    ----------
    path
        The nodes that packets pass, from the first to the last, which they are for.
    radios
        By which radio each hop is made, counted from 0; none = a wire where there is one, else
        the first radio.
    both_ways
        Whether packets for the first take the same route back; none = left out.
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
        How.
    metric
        What makes one route better than another; none = left out.
    static
        Routes are discovered once, beforehand, over links of mean power that nobody else
        uses, and stay as they are; none = left out.
    jitter_ms
        Nodes pass requests on after up to so long, ms; none = 20.
    discovery_wait_s
        Seconds before the second request, and from each to the next twice as many; none =
        0.5.
    discovery_limit_s
        Seconds until a discovery has failed; none = 10.
    half_lqi
        path-dr: LQI at which half of the frames come through; none = 102.
    scale_lqi
        path-dr: by how much LQI differ whose odds differ by e; none = 22.
    """

    kind: Literal["nst-aodv"]
    metric: Literal["hop-count", "path-dr"] | None = None
    static: bool | None = None
    jitter_ms: float | None = None
    discovery_wait_s: float | None = None
    discovery_limit_s: float | None = None
    half_lqi: float | None = None
    scale_lqi: float | None = None
