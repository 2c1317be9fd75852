"""What settings come to, told by those that are alike as well as by their own few runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corridor.advise.sample import Transfers, influences

Values = NDArray[np.float64]

#: Candidate values for the maximum-likelihood fit: the correlation of two settings that differ in
#: one field, and the settings' variance relative to the observed variance.
_ALIKE = (0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.995)
_SPREADS = (0.1, 0.3, 1.0, 3.0)
#: Rounds of coordinate search over all fields, nearly always enough to converge.
_ROUNDS = 2
#: Value substituted for zero goodput, relative to the smallest nonzero one, since its logarithm is
#: needed.
_NOTHING = 0.25


def levels(settings: Sequence[Any], seen: Sequence[Transfers]) -> Values:
    """Return the logarithm of each setting's goodput, as far as it is known.

    Settings are a sample of a Gaussian process over their fields: two of them have a correlation
    that is a product of one factor for each field in which they differ. The factors are the
    likeliest ones; what histories add by chance is taken off as far as they are not alike for all.
    So two settings that differ in what does not matter are known by the runs of both (C. E.
    Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, Eqs. 2.25 and
    2.30).

    Parameters
    ----------
    settings
        Dataclasses of one kind, each of them once.
    seen
        What the same histories came to under each.
    """
    goodputs = np.array([each.goodput_bps for each in seen])
    if len(settings) < 3 or not goodputs.any():
        return goodputs
    least = _NOTHING * goodputs[goodputs > 0].min()
    found: Values = np.log(np.maximum(goodputs, least))
    spread = float(found.var())
    if not spread:
        return found
    differ = _differ(settings)
    noise = np.eye(len(found)) * max(_chance(seen), 1e-6 * spread)
    alike, scale = np.full(len(differ), 0.8), 1.0

    def covariance() -> Values:
        product = np.prod(np.where(differ, alike[:, None, None], 1.0), axis=0)
        return np.asarray(spread * scale * product)

    for _ in range(_ROUNDS):
        for place in range(len(differ)):
            tried = []
            for alike[place] in _ALIKE:
                tried.append(_likelihood(found, covariance() + noise))
            alike[place] = _ALIKE[int(np.argmax(tried))]
        shape = covariance() / scale
        tried = [_likelihood(found, each * shape + noise) for each in _SPREADS]
        scale = _SPREADS[int(np.argmax(tried))]
    whole = covariance() + noise
    middle = _middle(found, whole)
    return np.asarray(middle + covariance() @ np.linalg.solve(whole, found - middle))


def _differ(settings: Sequence[Any]) -> NDArray[np.bool_]:
    """Return for each field that is not the same in all which two settings differ in it."""
    found = []
    for each in fields(settings[0]):
        values = [getattr(setting, each.name) for setting in settings]
        kinds = list(dict.fromkeys(values))
        places = np.array([kinds.index(value) for value in values])
        if len(kinds) > 1:
            found.append(places[:, None] != places[None, :])
    return np.array(found)


def _chance(seen: Sequence[Transfers]) -> float:
    """Return the variance of a goodput's logarithm beyond what its histories add to all of them.

    The mean of all settings': each has few histories.
    """
    added = np.array([influences(each) for each in seen if each.bytes.any()])
    settings, count = added.shape
    if settings < 2 or count < 2:
        return 0.0
    own = added - added.mean(axis=0)
    return float((own**2).sum() / (settings - 1) / (count - 1) / count)


def _middle(found: Values, covariance: Values) -> float:
    """Return the mean of the process that is the likeliest."""
    weights = np.linalg.solve(covariance, np.ones(len(found)))
    return float(weights @ found / weights.sum())


def _likelihood(found: Values, covariance: Values) -> float:
    """Return the logarithm of how likely this is, less a constant."""
    rest = found - _middle(found, covariance)
    _, size = np.linalg.slogdet(covariance)
    return -0.5 * float(rest @ np.linalg.solve(covariance, rest)) - 0.5 * float(size)
