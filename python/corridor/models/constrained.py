"""Stop-and-wait transfers (a window of one packet) over a multi-hop IEEE 802.15.4 route.

The setting is that of A. Betzler et al., *Should we use the default protocol settings for networks
of constrained devices?* (2012), III-A1. Times of the MAC are those of IEEE 802.15.4-2006 at
2450 MHz: symbols of 16 us, 32 us a byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from corridor.models._check import FloatArray, at_least, broadcasting, scalar, within

#: Duration of a PHY symbol, and of a byte on the air, s.
SYMBOL_S, BYTE_S = 16e-6, 32e-6
#: Bytes of overhead per packet: preamble, delimiter and length; MAC header and check sequence.
PHY_BYTES, MAC_BYTES = 6, 11
#: Largest packet, bytes: aMaxPHYPacketSize minus the MAC's overhead.
PACKET_BYTES_MAX = 127 - MAC_BYTES
#: Duration of a CCA, of a turnaround, and of an acknowledgment (11 bytes), in PHY symbols.
LOOK_SYMBOLS, TURNAROUND_SYMBOLS, ACK_SYMBOLS = 8, 12, 22
#: Mean initial backoffs, s: 20 to 640 symbols, as the paper describes TinyOS's, and 0 to 7 units of
#: 20 symbols, as in the standard (macMinBE 3).
TINYOS_S, EXPONENTIAL_S = 330 * SYMBOL_S, 70 * SYMBOL_S


@broadcasting
def frame_s(packet_bytes: ArrayLike, backoff_s: ArrayLike) -> FloatArray:
    """Return the time a packet takes over a link without contention or loss.

    Backoff, CCA, turnaround, frame, turnaround, acknowledgment, as in B. Latré et al., *Maximum
    throughput and minimum delay in IEEE 802.15.4* (MSN 2005), but with CCA and turnaround, and
    without the interframe space, since the node's next frame comes much later.

    Parameters
    ----------
    packet_bytes
        Packet size with headers above the MAC, bytes, 0 to 116.
    backoff_s
        Mean backoff, s, from 0.

    Returns
    -------
    Seconds.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> round(float(frame_s(114, EXPONENTIAL_S)), 6)
    0.006176
    """
    packet = within("packet_bytes", packet_bytes, 0, PACKET_BYTES_MAX, what="bytes")
    backoff = at_least("backoff_s", backoff_s, 0, "seconds")
    symbols = LOOK_SYMBOLS + 2 * TURNAROUND_SYMBOLS + ACK_SYMBOLS
    frame = (PHY_BYTES + MAC_BYTES + packet) * BYTE_S
    return scalar(backoff + symbols * SYMBOL_S + frame)


@broadcasting
def exchange_s(
    links: ArrayLike,
    backoff_s: ArrayLike,
    work_s: ArrayLike = 0.0,
    data_bytes: ArrayLike = 114,
    ack_bytes: ArrayLike = 20,
) -> FloatArray:
    """Return the time between successive packets of a transfer with a window of one packet.

    The packet crosses all links one after the other, and then its acknowledgment crosses them
    back: no other traffic contends. Both ends add processing time.

    Parameters
    ----------
    links
        Number of links on the route, from 1.
    backoff_s
        Mean backoff, s.
    work_s
        Total processing time at both ends for a packet and its acknowledgment, s, from 0.
    data_bytes, ack_bytes
        Sizes of packet and acknowledgment with headers above the MAC, bytes, 0 to 116.

    Returns
    -------
    Seconds, in the broadcast shape of the arguments.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> round(float(exchange_s(1, EXPONENTIAL_S)), 6)
    0.009344
    """
    count = at_least("links", links, 1, "links")
    work = at_least("work_s", work_s, 0, "seconds")
    return scalar(count * (frame_s(data_bytes, backoff_s) + frame_s(ack_bytes, backoff_s)) + work)


@broadcasting
def backoff_gain(
    links: ArrayLike,
    work_s: ArrayLike = 0.0,
    data_bytes: ArrayLike = 114,
    ack_bytes: ArrayLike = 20,
) -> FloatArray:
    """Return the goodput gain of exponential backoff over TinyOS's at a window of one packet.

    (links T + work) / (links E + work) - 1, where T and E are the exchange times over one link with
    TinyOS's and with exponential backoff. Without processing at the ends, the gain does not depend
    on the number of links; with it, the gain rises with the number of links. The paper reports such
    a rise (III-A1) but not how long its nodes take.

    Parameters
    ----------
    links
        Number of links on the route, from 1.
    work_s
        Total processing time at both ends for a packet and its acknowledgment, s, from 0.
    data_bytes, ack_bytes
        Sizes of packet and acknowledgment with headers above the MAC, bytes, 0 to 116.

    Returns
    -------
    Relative gain: 0.5 means 50 % more goodput.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> backoff_gain([1, 3, 6]).round(3).tolist()
    [0.89, 0.89, 0.89]

    With 96 bytes of data and an ACK of 28 bytes it is 86 %, and 42 to 73 % with 10 ms of
    processing:

    >>> sizes = {"data_bytes": 116, "ack_bytes": 28}
    >>> backoff_gain([1, 6], 0.0, **sizes).round(2).tolist()
    [0.86, 0.86]
    >>> backoff_gain([1, 6], 0.01, **sizes).round(2).tolist()
    [0.42, 0.73]
    """
    sizes = {"data_bytes": data_bytes, "ack_bytes": ack_bytes}
    slow = exchange_s(links, TINYOS_S, work_s, **sizes)
    fast = exchange_s(links, EXPONENTIAL_S, work_s, **sizes)
    return scalar(np.asarray(slow / fast - 1))
