"""Packets of TCP/NC that wait for repair, by the Markov chain and by random simulation."""

import numpy as np
import pytest
from corridor.models.deficit import deficit_mean


def thrown(p: float, redundancy: float, window_max: int, packets: int) -> float:
    """The same as `deficit_mean`, by direct simulation."""
    rng = np.random.default_rng(2012)
    credit, missing, total = 0.0, 0, 0
    for _ in range(packets):
        credit += redundancy
        combinations = int(credit + 1e-9)
        credit -= combinations
        missing = min(missing + 1, window_max)
        missing = max(0, missing - int(rng.binomial(combinations, 1 - p)))
        total += missing
    return total / packets


@pytest.mark.parametrize(("p", "redundancy"), [(0.0587, 1.15), (0.1855, 1.4), (0.3, 2.5)])
def test_the_chain_is_what_dice_give(p: float, redundancy: float) -> None:
    # With factors well above 1/(1-p), the walk returns within tens of packets: the mean of 200,000
    # has a standard error of about 2.5 %, and four of them are allowed.
    assert deficit_mean(p, redundancy) == pytest.approx(thrown(p, redundancy, 50, 200_000), rel=0.1)


def test_without_losses_nothing_waits_and_without_redundancy_everything_does() -> None:
    assert deficit_mean(0, 1) == 0
    assert deficit_mean(0.1, 1) > 45
    assert deficit_mean(0.1, 1, window_max=10) <= 10


def test_table_1_waits_longer_than_its_srtt_says() -> None:
    """Errata, K12: 50 packets leave in a round trip of 0.8256 s."""
    spacing = 0.8256 / 50
    for p, redundancy, srtt in ((0.0199, 1.03, 0.826), (0.0587, 1.09, 0.8264),
                                (0.0963, 1.13, 0.8281), (0.1855, 1.29, 0.8347)):  # fmt: skip
        assert deficit_mean(p, redundancy) * spacing > 3 * (srtt - 0.8256)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 1.1), "p = 1: expected an erasure probability"),
        ((0.1, 0.9), "redundancy = 0.9: expected a redundancy factor"),
        ((0.1, 1.1, 0), "window_max = 0: expected packets in 1..1000"),
    ],
)
def test_arguments_out_of_range_are_named(arguments: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        deficit_mean(*arguments)  # type: ignore[arg-type]
