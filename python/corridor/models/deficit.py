"""How long a TCP/NC packet waits for the combination that repairs it: docs/errata.md, K12."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from corridor.models._check import FloatArray, at_least, erasure, whole

#: Redundancy factors are rounded to the nearest fraction with at most this denominator.
DENOMINATOR_MAX = 1000


def deficit_mean(p: float, redundancy: float, window_max: int = 50) -> float:
    """Long-run mean number of packets sent but not yet seen by the receiver.

    A Markov chain: each TCP packet adds one degree of freedom that the receiver lacks; each of the
    R combinations sent for it (with the fractional part carried over) supplies one with probability
    1-p if any is lacking. By Little's law, this is also the mean number of packets TCP sends
    between a packet's first combination and its acknowledgment.

    Parameters
    ----------
    p
        Erasure probability from end to end, in [0, 1).
    redundancy
        Redundancy factor R, from 1.
    window_max
        Largest deficit, packets, 1 to 1000: TCP then stops sending.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> [round(deficit_mean(p, r), 2) for p, r in ((0, 1), (0.0199, 1.03), (0.1855, 1.25))]
    [0.0, 1.04, 5.02]
    """
    loss = float(erasure("p", p))
    factor = Fraction(float(at_least("redundancy", redundancy, 1, "a redundancy factor")))
    most = whole("window_max", window_max, 1, 1000, "packets")
    if loss == 0:
        return 0.0
    factor = factor.limit_denominator(DENOMINATOR_MAX)
    sent = [int(number * factor) for number in range(factor.denominator + 1)]
    steps = [_step(loss, after - before, most) for before, after in pairwise(sent)]
    period = np.linalg.multi_dot([np.eye(most + 1), np.eye(most + 1), *steps])
    # The stationary distribution: (P' - 1) x = 0, with x summing to 1.
    equations = np.vstack([period.T - np.eye(most + 1), np.ones(most + 1)])
    wanted = np.append(np.zeros(most + 1), 1.0)
    shares: FloatArray = np.linalg.lstsq(equations, wanted, rcond=None)[0]
    total = 0.0
    for step in steps:
        shares = shares @ step
        total += float(shares @ np.arange(most + 1))
    return total / len(steps)


def _step(loss: float, combinations: int, most: int) -> FloatArray:
    """Transition probabilities of the deficit for each TCP packet."""
    one_more = np.eye(most + 1, k=1)
    one_more[most, most] = 1
    arrival = loss * np.eye(most + 1) + (1 - loss) * np.eye(most + 1, k=-1)
    arrival[0, 0] = 1
    result: FloatArray = one_more @ np.linalg.matrix_power(arrival, combinations)
    return result
