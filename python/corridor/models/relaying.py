"""Transmissions saved by relays in a chain that XOR opposite packets: CATWOMAN 2013, Section II.

The paper counts the gain of the same chain in three ways; docs/errata.md, C1, compares them.
"""

from __future__ import annotations

from corridor.models._check import at_least, whole

#: Largest number of relays in a chain.
RELAYS_MAX = 1_000_000


def _relays(relays: int) -> int:
    return whole("relays", relays, 1, RELAYS_MAX, "relays")


def transmissions_plain(relays: int) -> int:
    """Transmissions to carry one packet each way over a chain, without coding.

    Parameters
    ----------
    relays
        Number of relays between the two ends, from 1.

    Examples
    --------
    >>> transmissions_plain(3)
    8
    """
    return 2 * (_relays(relays) + 1)


def transmissions_coded(relays: int, paired: float = 1.0) -> float:
    """Transmissions to carry one packet each way over a chain, with coding.

    Each end sends one packet; of the packets a relay forwards, a fraction `paired` is sent two to a
    frame.

    Parameters
    ----------
    relays
        Number of relays between the two ends, from 1.
    paired
        Fraction of forwarded packets that find a partner, 0 to 1.

    Examples
    --------
    >>> transmissions_coded(1), transmissions_coded(3), transmissions_coded(6, 0.7)
    (3.0, 5.0, 9.8)
    """
    if not 0 <= paired <= 1:
        raise ValueError(f"paired = {paired}: expected a share from 0 to 1")
    count = _relays(relays)
    return 2 + count * (2 - paired)


def gain_of_paper(relays: int) -> float:
    """Coding gain by the paper's formula: 1 + (2 N - (N + 1)) / (2 N), Section II.

    Examples
    --------
    >>> [round(gain_of_paper(n), 4) for n in (1, 3, 6)]
    [1.0, 1.3333, 1.4167]
    """
    count = _relays(relays)
    return 1 + (2 * count - (count + 1)) / (2 * count)


def gain_with_ends(relays: int) -> float:
    """1 plus the fraction of transmissions saved, the ends' included: 1 + N / (2 (N + 1)).

    The paper's text has this for one relay: "we save one of four transmissions", 1.25.

    Examples
    --------
    >>> [round(gain_with_ends(n), 4) for n in (1, 3, 6)]
    [1.25, 1.375, 1.4286]
    """
    count = _relays(relays)
    return 1 + count / (2 * (count + 1))


def gain_of_transmissions(relays: int, paired: float = 1.0) -> float:
    """Transmissions without coding over those with coding: the coding gain as COPE defines it.

    Examples
    --------
    >>> [round(gain_of_transmissions(n), 4) for n in (1, 3, 6)]
    [1.3333, 1.6, 1.75]
    >>> round(gain_of_transmissions(6, 0.69), 2)
    1.42
    """
    return transmissions_plain(relays) / transmissions_coded(relays, paired)


def paired_share(relays: int, gain: float) -> float:
    """Fraction of forwarded packets that must be paired to reach a gain in transmissions.

    Examples
    --------
    >>> round(paired_share(6, 1.42), 2)
    0.69
    """
    plain = transmissions_plain(relays)
    return (plain - plain / float(at_least("gain", gain, 1, "a coding gain"))) / _relays(relays)


def frames_per_second(relays: int, packets: float, limit: float, *, coded: bool) -> float:
    """Transmissions per second in a chain offered `packets` per second each way (Fig. 4).

    Parameters
    ----------
    relays
        Number of relays between the two ends, from 1.
    packets
        Packets per second, each way.
    limit
        Upper limit on transmissions per second.
    coded
        Whether relays combine every packet they can.

    Examples
    --------
    >>> [frames_per_second(6, 5, 100, coded=coded) for coded in (False, True)]
    [70.0, 40.0]
    """
    each = transmissions_coded(relays) if coded else transmissions_plain(relays)
    return float(min(packets * each, limit))
