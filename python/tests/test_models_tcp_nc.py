"""TCP/NC's throughput: KIM 2012, Eqs. 17 to 20, Figs. 6 and 7, Section VI-B."""

import math

import numpy as np
import pytest
from corridor.models import tcp, tcp_nc
from hypothesis import given
from hypothesis import strategies as st

LINKS = np.array([0, 0.005, 0.015, 0.025, 0.05])
SRTT_S = np.array([0.8256, 0.8260, 0.8264, 0.8281, 0.8347])


def test_table_1_with_a_first_window_of_25() -> None:
    table = tcp.mbps(tcp_nc.throughput(1000, SRTT_S, 50, 25)).round(4)
    assert table.tolist() == [0.4819, 0.4817, 0.4814, 0.4804, 0.4766]


def test_table_1_with_the_first_window_of_the_text() -> None:
    table = tcp.mbps(tcp_nc.throughput(1000, SRTT_S, 50, 1))
    assert np.all(
        np.abs(table - (np.array([0.4819, 0.4817, 0.4814, 0.4804, 0.4766]) - 0.0072)) < 2e-4
    )


@given(st.integers(1, 60), st.integers(1, 60))
def test_the_continuous_form_is_the_sum_of_eq17(rounds: int, first: int) -> None:
    windows = [min(60.0, first + i) for i in range(1, rounds + 1)]
    given = float(tcp_nc.packets_in_rounds(rounds, 60, first, "continuous"))
    assert given == pytest.approx(sum(windows))
    printed = float(tcp_nc.packets_in_rounds(rounds, 60, first, "printed"))
    jump = 60 - first if rounds > 60 - first else 0
    assert given - printed == pytest.approx(jump)


@given(st.integers(1, 60), st.floats(0, 0.99))
def test_the_chain_is_eq18(window: int, p: float) -> None:
    expected = float(tcp_nc.transmissions_to_window(window, p))
    assert tcp_nc.chain_transmissions(window, p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("window", [2, 10, 50, 200])
def test_growing_at_every_packet_takes_a_little_longer(window: int) -> None:
    ratio = tcp_nc.chain_transmissions(window, 0.1, "per_packet") / float(
        tcp_nc.transmissions_to_window(window, 0.1)
    )
    assert 1 <= ratio < 1 + 1.1 / math.sqrt(window)


def test_the_matrix_is_that_of_fig_7() -> None:
    matrix = tcp_nc.chain_matrix(0.3, 5).toarray()
    assert np.allclose(matrix.sum(axis=1), 1)
    fundamental = np.linalg.inv(np.eye(4) - matrix[:-1, :-1])
    assert np.allclose(fundamental[0], 1 / 0.7)


def test_fig_5_reaches_90_at_round_60() -> None:
    rounds = np.arange(100)
    windows = tcp_nc.window(rounds, 0.1, 1 / 0.9, 90, 30)
    assert int(np.argmax(windows >= 90 - 1e-9)) == 60


@given(st.floats(0, 0.5), st.floats(1, 3), st.integers(1, 100))
def test_the_mask_probability_is_the_sum_as_printed(p: float, redundancy: float, w: int) -> None:
    sent = math.floor(redundancy * w + 0.5 + 1e-9)
    printed = sum(math.comb(sent, x) * p**x * (1 - p) ** (sent - x) for x in range(sent - w + 1))
    assert float(tcp_nc.mask_probability(p, redundancy, w)) == pytest.approx(printed, abs=1e-9)


def test_the_heuristic_gives_the_papers_redundancy_but_for_the_last() -> None:
    given = tcp_nc.redundancy_for(tcp.end_to_end_erasure(LINKS))
    assert given.tolist() == [1.0, 1.03, 1.09, 1.13, 1.27]


@given(st.floats(0, 0.6))
def test_the_heuristic_is_the_least_on_its_grid(p: float) -> None:
    chosen = float(tcp_nc.redundancy_for(p))
    assert float(tcp_nc.mask_probability(p, chosen, 50)) >= 0.8
    if chosen > 1:
        below = np.round(np.arange(1, chosen - 0.005, 0.01), 9)
        assert np.all(tcp_nc.mask_probability(p, below, 50) < 0.8)


def test_section_6c() -> None:
    p = 0.0963
    assert float(tcp_nc.achievable_bandwidth(0.7, p, 1.2, 2)) == pytest.approx(0.2917, abs=5e-5)
    assert 0.7 * (1 - p) / 2 == pytest.approx(0.3162, abs=1e-4)
    assert float(tcp_nc.achievable_bandwidth(0.9, p, 1.2)) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tcp_nc.window(1, 1.0, 1.2), r"p = 1: "),
        (lambda: tcp_nc.window(-1, 0.1, 1.2), r"round_number = -1: "),
        (lambda: tcp_nc.window(1, 0.1, 0.9), r"redundancy = 0\.9: .*\[1, inf\)"),
        (lambda: tcp_nc.window(1, 0.1, 1.2, 10, 20), r"window_first = 20: .*at most window_max"),
        (lambda: tcp_nc.throughput(0, 0.8), r"duration_s = 0: expected seconds in \(0, inf\]"),
        (lambda: tcp_nc.throughput(10, 0), r"srtt_s = 0: "),
        (lambda: tcp_nc.chain_windows(0), r"window_max = 0: expected packets in 1\.\.1000"),
        (lambda: tcp_nc.chain_matrix(1.5, 3), r"p = 1\.5: "),
        (lambda: tcp_nc.redundancy_for(0.1, 50, 1.0), r"probability = 1: "),
        (lambda: tcp_nc.redundancy_for(0.995), r"p = 0\.995: expected one that an R of up to 100"),
        (lambda: tcp_nc.achievable_bandwidth(0, 0.1, 1.2), r"capacity = 0: "),
    ],
)
def test_errors_name_argument_value_and_range(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
