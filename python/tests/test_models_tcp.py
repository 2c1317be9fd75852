"""TCP's throughput: KIM 2012, Eqs. 2 to 16."""

import math

import numpy as np
import pytest
from corridor.models import coding, tcp
from hypothesis import given
from hypothesis import strategies as st

erasures = st.floats(1e-9, 12 / 13)
rtts = st.floats(1e-3, 10)


def scalar_eq16(p: float, rtt: float, window_max: float, timeout: float) -> float:
    """Eq. 16, written out for one point: the twin of the vectorised one."""
    root = math.sqrt(max(-1 / 18 + 2 / 3 * (1 - p) / p, 0))
    window = math.floor(max(1.5 * (2 / 3 + root) - 1, 0))
    chance = 1.0
    if window >= 3:
        chance = sum(math.comb(window, i) * p ** (window - i) * (1 - p) ** i for i in range(3))
    weights = [1, 3, 7, 15, 31] + [63 + 64 * i for i in range(5000)]
    duration = (1 - p) * sum(timeout * w * p ** (k + 1) for k, w in enumerate(weights))
    return min(window_max / rtt, (1 - p) / p / (rtt * (5 / 3 + root + chance * duration)))


@given(st.floats(1e-3, 12 / 13), rtts, st.integers(1, 500), st.floats(0.5, 20))
def test_eq16_is_its_scalar_twin(p: float, rtt: float, window: int, timeout: float) -> None:
    expected = scalar_eq16(p, rtt, window, timeout)
    assert float(tcp.throughput(p, rtt, window, timeout)) == pytest.approx(expected, rel=1e-9)


def test_table_1_to_four_decimals() -> None:
    p = tcp.end_to_end_erasure([0, 0.005, 0.015, 0.025, 0.05])
    assert p.round(4).tolist() == [0, 0.0199, 0.0587, 0.0963, 0.1855]
    assert tcp.mbps(tcp.throughput(p, 0.8, 50, 3.75)).round(4).tolist() == [
        0.5,
        0.0667,
        0.0325,
        0.0220,
        0.0098,
    ]


def test_table_1_needs_the_exact_p_and_whole_windows() -> None:
    """docs/errata.md, K2: which values are missed without each of the two."""
    printed = np.array([0.0667, 0.0325, 0.0220, 0.0098])
    rounded = tcp.mbps(tcp.throughput([0.0199, 0.0587, 0.0963, 0.1855], 0.8)).round(4)
    assert np.flatnonzero(rounded != printed).tolist() == [0]
    exact = tcp.end_to_end_erasure([0.005, 0.015, 0.025, 0.05])
    fractional = tcp.mbps(tcp.throughput(exact, 0.8, whole_windows=False)).round(4)
    assert fractional.tolist() == [0.0667, 0.0326, 0.0224, 0.0098]


@given(st.floats(1e-3, 0.5), st.integers(1, 4))
def test_eq8_holds_with_fewer_acknowledgements(p: float, acked: int) -> None:
    """Sum a window that grows by 1/beta per round up to the next loss."""
    r = float(tcp.rounds_between_losses(p, acked))
    first, last = (r - 0.5) / acked, 2 * (r - 0.75) / acked
    packets = (r - 1) * first + (r - 1) * (r - 2) / (2 * acked) + last / 2
    assert packets == pytest.approx((1 - p) / p)
    assert float(tcp.window_mean(p, acked)) == pytest.approx((first + last) / 2)


def test_every_second_acknowledgement_slows_as_in_ns2() -> None:
    """Reno in ns-2.35 with delayed acknowledgments has 0.0534 in place of 0.0688, and so on."""
    p = tcp.end_to_end_erasure([0.005, 0.015, 0.025])
    slower = tcp.throughput(p, 0.8, acked=2) / tcp.throughput(p, 0.8)
    assert slower == pytest.approx(
        np.array([0.0534, 0.0262, 0.0164]) / [0.0688, 0.0330, 0.0217], rel=0.03
    )


@given(rtts, st.floats(1, 1e6))
def test_without_losses_the_window_limits(rtt: float, window: float) -> None:
    assert float(tcp.throughput(0, rtt, window)) == window / rtt
    assert float(tcp.throughput_without_timeouts(0, rtt, window)) == window / rtt


@given(erasures, rtts)
def test_timeouts_and_windows_only_take(p: float, rtt: float) -> None:
    unlimited = float(tcp.throughput_without_timeouts(p, rtt))
    limited = float(tcp.throughput(p, rtt, 50))
    assert 0 < limited <= min(unlimited, 50 / rtt) * (1 + 1e-12)


@given(st.lists(st.floats(1e-9, tcp.ERASURE_TURN), min_size=2, max_size=2, unique=True))
def test_more_losses_carry_less_up_to_the_turn(pair: list[float]) -> None:
    low, high = sorted(pair)
    slow, fast = (float(tcp.throughput_without_timeouts(p, 0.8)) for p in (high, low))
    assert slow <= fast * (1 + 1e-12)


@given(st.lists(st.floats(tcp.ERASURE_TURN, 12 / 13), min_size=2, max_size=2, unique=True))
def test_more_losses_carry_more_beyond_the_turn(pair: list[float]) -> None:
    low, high = sorted(pair)
    more, less = (float(tcp.throughput_without_timeouts(p, 0.8)) for p in (high, low))
    # Near 12/13 the root amplifies rounding in the odds: half of the digits are left.
    assert more >= less * (1 - 1e-8)


def test_where_the_model_turns_upward() -> None:
    p = np.array([0.9, 0.9225, tcp.ERASURE_TURN, 12 / 13])
    carried = tcp.throughput_without_timeouts(p, 0.8)
    assert carried.tolist() == pytest.approx([0.077043, 0.062215, 0.062191, 0.0625], abs=1e-6)
    assert pytest.approx(0.922726, abs=1e-6) == tcp.ERASURE_TURN
    # No point of a fine grid is lower.
    grid = tcp.throughput_without_timeouts(np.linspace(0.5, 12 / 13, 100_001), 0.8)
    assert grid.min() >= carried[2] * (1 - 1e-12)


@given(erasures)
def test_eq8_holds_at_eq9(p: float) -> None:
    r = float(tcp.rounds_between_losses(p))
    assert 1.5 * (r - 1) ** 2 + r - 0.75 == pytest.approx((1 - p) / p, abs=1e-7, rel=1e-9)


def test_small_losses_follow_the_square_root() -> None:
    p = np.array([1e-10, 1e-12])
    ratio = tcp.throughput_without_timeouts(p, 0.8) / (np.sqrt(3 / (2 * p)) / 0.8)
    assert np.all(np.abs(ratio - 1) < 1e-4)


@given(st.integers(0, 200), st.floats(0, 0.999))
def test_eq13_is_a_probability(window: int, p: float) -> None:
    chance = float(tcp.timeout_probability(window, p))
    assert 0 <= chance <= 1 + 1e-12
    if window >= 3:
        exact = sum(math.comb(window, i) * p ** (window - i) * (1 - p) ** i for i in range(3))
        assert chance == pytest.approx(exact, abs=1e-12)


@given(st.floats(1e-6, 0.95), st.floats(0.1, 10))
def test_eq15_is_the_series_of_eq14(p: float, first: float) -> None:
    weights = np.concatenate([[1, 3, 7, 15, 31], 63 + 64 * np.arange(20_000)])
    powers = p ** np.arange(1, len(weights) + 1)
    series = (1 - p) * first * float(np.sum(weights * powers))
    printed = float(tcp.timeout_duration(p, first))
    assert printed == pytest.approx(series, rel=1e-9)
    assert float(tcp.timeout_duration(p, first, "conditional")) == pytest.approx(printed / p)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tcp.throughput(1.2, 0.8), r"p = 1\.2: .*\[0, 0\.923077\]"),
        (lambda: tcp.throughput(0.93, 0.8), r"p = 0\.93: expected an erasure probability with"),
        (lambda: tcp.throughput([0.1, -0.1], 0.8), r"p = -0\.1: "),
        (lambda: tcp.throughput(math.nan, 0.8), r"p = nan: "),
        (lambda: tcp.throughput(0.1, 0), r"rtt_s = 0: expected a round-trip time in \(0, inf\)"),
        (lambda: tcp.throughput(0.1, -1), r"rtt_s = -1: "),
        (lambda: tcp.throughput(0.1, 0.8, 0), r"window_max = 0: expected packets in \[1, inf\]"),
        (lambda: tcp.throughput(0.1, 0.8, 50, 0), r"timeout_rounds = 0: "),
        (lambda: tcp.packets_between_losses(1), r"p = 1: expected .* in \[0, 1\)"),
        (lambda: tcp.end_to_end_erasure(0.1, 0), r"links = 0: expected 1 or more"),
        (lambda: tcp.end_to_end_erasure(0.1, "a"), r"links = 'a': expected 1 or more"),  # type: ignore[arg-type]
        (lambda: tcp.end_to_end_erasure(0.1, 1.5), r"links = 1\.5: expected 1 or more"),  # type: ignore[arg-type]
        (lambda: tcp.throughput("much", 0.8), r"p = 'much': expected"),
        (lambda: tcp.timeout_duration(0.1, 3, "x"), r"form = 'x': expected 'printed' or"),  # type: ignore[arg-type]
    ],
)
def test_errors_name_argument_value_and_range(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_shapes_that_do_not_fit_are_named() -> None:
    expected = r"p, rtt_s = arrays of shapes \(2,\), \(3,\): expected shapes that can be broadcast"
    with pytest.raises(ValueError, match=expected):
        tcp.throughput([0.1, 0.2], rtt_s=[0.1, 0.2, 0.3], window_max=50)
    with pytest.raises(ValueError, match=r"block_size, e2 = arrays of shapes \(2, 1\), \(3, 2\)"):
        coding.optimum([[1], [2]], 0.1, np.zeros((3, 2)), 0.1)


def test_arrays_are_broadcast() -> None:
    p = np.linspace(0, 0.9, 7)[:, None]
    rtt = np.array([0.1, 0.5, 0.8])
    table = tcp.throughput(p, rtt)
    assert table.shape == (7, 3)
    assert float(table[3, 1]) == float(tcp.throughput(p[3, 0], 0.5))
