"""Base stations (KIM 2012, Eqs. 21 and 22), budgets of the daemon, gains of coding."""

import numpy as np
import pytest
from corridor.models import base_stations as bs
from corridor.models import coding, constrained
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

ratios = st.floats(0, 0.95)


@given(st.floats(0.1, 10), st.floats(0, 1), st.floats(0.01, 100), st.integers(0, 5000))
def test_eq22_is_what_it_says(bandwidth: float, q: float, size: float, users: int) -> None:
    active = min(1.0, size * 8 * 2**20 / (bandwidth * 1e6) * q)
    expected = users * active * max(bandwidth / 300, 1 / 200)
    given = float(bs.base_stations(bandwidth, bandwidth, q, size, users))
    assert given == pytest.approx(expected)


def test_the_mixes_of_section_9b() -> None:
    sizes = [0.008, 1, 3, 20]
    assert bs.file_mean_mb(sizes, [0.3, 0.3, 0.3, 0.1]) == pytest.approx(3.2024)
    assert bs.file_mean_mb(sizes, [0.26, 0.27, 0.27, 0.2]) == pytest.approx(5.08208)


def test_the_plateaus_of_section_10() -> None:
    assert float(bs.tcp_nc_throughput_mbps(10, 0.05)) == 4.0
    assert float(bs.tcp_nc_throughput_mbps(10, 0.05, 0.5)) == pytest.approx(0.8)
    tcp = bs.tcp_throughput_mbps(10, [0, 0.01, 0.02, 0.03, 0.04, 0.05]).round(5)
    assert tcp.tolist() == [4.0, 0.80921, 0.53136, 0.41036, 0.33923, 0.29129]


def test_a_user_without_throughput_is_always_active() -> None:
    assert float(bs.base_stations(1, 0, 0.01, 3.2)) == 5.0
    assert float(bs.base_stations(1, 0, 0.0, 3.2)) == 0.0


def test_power_is_of_whole_base_stations() -> None:
    assert bs.power_kw([0, 2.1]).tolist() == [[0, 0], [6, 9]]


@given(st.integers(1, 1024), ratios, ratios, ratios)
def test_the_optimum_is_that_of_the_linear_programme(
    g: int, e1: float, e2: float, e3: float
) -> None:
    rows = [[-(1 - e1 * e3), 0], [-(1 - e3), -(1 - e2)]]
    programme = optimize.linprog([1, 1], A_ub=rows, b_ub=[-g, -g])
    total = sum(float(count) for count in coding.optimum(g, e1, e2, e3))
    assert total == pytest.approx(programme.fun, rel=1e-6)


@given(st.integers(1, 1024), ratios, ratios, ratios)
def test_playncool_in_its_second_case(g: int, e1: float, e2: float, e3: float) -> None:
    budgets = coding.playncool(g, e1, e2, e3)
    assert float(budgets.helper_threshold) == pytest.approx(
        float(budgets.encoder_head_start) * (1 - e1)
    )
    if (1 - e1) * e3 < 1 - e2:
        assert float(budgets.encoder_budget) == pytest.approx(g / (1 - e1 * e3))


def test_budgets_are_broadcast() -> None:
    encoder, helper = coding.optimum(150, 0.1, np.array([[0.1], [0.5]]), [0.2, 0.6, 0.9])
    assert encoder.shape == helper.shape == (2, 3)
    assert float(helper[1, 0]) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bs.base_stations(1, 2, 0.1, 3.2), r"throughput_mbps = 2: .*at most the bandwidth"),
        (lambda: bs.base_stations(0, 0, 0.1, 3.2), r"bandwidth_mbps = 0: "),
        (lambda: bs.base_stations(1, 1, 1.1, 3.2), r"q = 1\.1: .*\[0, 1\]"),
        (lambda: bs.base_stations(1, 1, 0.1, 0), r"file_mb = 0: "),
        (lambda: bs.base_stations(1, 1, 0.1, 3.2, -1), r"users = -1: "),
        (lambda: bs.transaction_s(1, 1, 1000), r"megabyte = 1000: expected 2\*\*20 or 10\*\*6"),
        (lambda: bs.file_mean_mb([1, 2], [0.5, 0.6]), r"probabilities = 2 adding up to 1\.1: "),
        (lambda: coding.optimum(0, 0.1, 0.1, 0.1), r"block_size = 0: .*\[1, 1024\]"),
        (lambda: coding.playncool(150, 0.1, -0.1, 0.1), r"e2 = -0\.1: .*\[0, 1\]"),
        (lambda: coding.chain_gain_relays(0), r"relays = 0: expected relays in \[1, inf\)"),
    ],
)
def test_errors_name_argument_value_and_range(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()


def test_a_window_of_one_packet_by_hand() -> None:
    # 70 symbols of backoff, 8 and 12 before the frame of 131 bytes, 12 and 22 after it; and back.
    there, back = (70 + 8 + 12 + 2 * 131 + 12 + 22), (70 + 8 + 12 + 2 * 37 + 12 + 22)
    seconds = float(constrained.exchange_s(1, constrained.EXPONENTIAL_S))
    assert seconds == pytest.approx((there + back) * 16e-6, rel=1e-12)
    assert float(constrained.exchange_s(4, constrained.EXPONENTIAL_S, 0.02)) == pytest.approx(
        4 * seconds + 0.02
    )


@given(st.integers(1, 20), st.floats(0.0001, 0.02))
def test_work_at_the_ends_makes_the_gain_rise_with_the_links(links: int, work_s: float) -> None:
    flat, few, more = (
        float(constrained.backoff_gain(*each))
        for each in ((links, 0.0), (links, work_s), (links + 1, work_s))
    )
    assert flat == pytest.approx(float(constrained.backoff_gain(1)))
    assert few < more < flat


@pytest.mark.parametrize(
    ("links", "packet", "message"), [(0, 114, "links = 0"), (1, 117, "packet_bytes = 117")]
)
def test_what_no_frame_has_room_for_is_refused(links: int, packet: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        constrained.backoff_gain(links, data_bytes=packet)
