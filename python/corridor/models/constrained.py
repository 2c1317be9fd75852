"""Transfers with a window of one packet over IEEE 802.15.4: store and forward.

The setting is that of A. Betzler et al., *Should we use the default protocol settings for networks
of constrained devices?* (2012), III-A1. Times of the MAC are those of IEEE 802.15.4-2006 at
2450 MHz: symbols of 16 us, 32 us a byte.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from corridor.models._check import FloatArray, at_least, broadcasting, scalar, within

#: A symbol, s, and a byte on the air.
SYMBOL_S, BYTE_S = 16e-6, 32e-6
#: Bytes around a packet: preamble, delimiter and length; MAC header and check sequence.
PHY_BYTES, MAC_BYTES = 6, 11
#: Most bytes of a packet: aMaxPHYPacketSize without the MAC's.
PACKET_BYTES_MAX = 127 - MAC_BYTES
#: Symbols of a look at the channel, of a turnaround, and of an acknowledgement (11 bytes).
LOOK_SYMBOLS, TURNAROUND_SYMBOLS, ACK_SYMBOLS = 8, 12, 22
#: First backoffs in the mean, s: 20 to 640 symbols as the paper words TinyOS's, and 0 to 7 units of
#: 20 symbols as the standard has it (macMinBE 3).
TINYOS_S, EXPONENTIAL_S = 330 * SYMBOL_S, 70 * SYMBOL_S


@broadcasting
def frame_s(packet_bytes: ArrayLike, backoff_s: ArrayLike) -> FloatArray:
    """Return how long a packet takes over a link on which nobody else sends and nothing is lost.

    Backoff, look, turnaround, frame, turnaround, acknowledgement: B. Latré et al., *Maximum
    throughput and minimum delay in IEEE 802.15.4* (MSN 2005), with look and turnaround, and without
    the space that follows, for the node's next frame comes long after.

    Parameters
    ----------
    packet_bytes
        Bytes of the packet with its headers above the MAC, 0 to 116.
    backoff_s
        Backoff in the mean, s, from 0.

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
    """Return the time from one packet of a transfer to the next at a window of one packet.

    The packet goes over all links, one after the other, and its acknowledgement back: nobody else
    has anything to send. Both ends together work on it for a while.

    Parameters
    ----------
    links
        Links of the route, from 1.
    backoff_s
        Backoff in the mean, s.
    work_s
        Work of both ends together with a packet and its acknowledgement, s, from 0.
    data_bytes, ack_bytes
        Bytes of both with their headers above the MAC, 0 to 116.

    Returns
    -------
    Seconds: the shape of the arguments.

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
    """Return how much more goodput exponential backoff has than TinyOS's at a window of one packet.

    (links T + work) / (links E + work) - 1, T and E the times of an exchange over one link. Without
    work at the ends the gain is the same over any number of links; with it, it rises with them: the
    paper sees it rise (III-A1), and does not say how long its nodes work.

    Parameters
    ----------
    links
        Links of the route, from 1.
    work_s
        Work of both ends together with a packet and its acknowledgement, s, from 0.
    data_bytes, ack_bytes
        Bytes of both with their headers above the MAC, 0 to 116.

    Returns
    -------
    A share: 0.5 = half as much again.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> backoff_gain([1, 3, 6]).round(3).tolist()
    [0.89, 0.89, 0.89]

    With 96 bytes of data and 28 of an ACK it is 86 %, and 42 to 73 % with 10 ms of work:

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
