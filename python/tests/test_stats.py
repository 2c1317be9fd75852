"""Estimates from replications: distributions, quantiles, differences."""

import numpy as np
import pytest
import xarray as xr
from corridor import stats
from hypothesis import given
from hypothesis import strategies as st

BINS = [0.01, 0.02, 0.04, 0.08]


def histograms(counts: list[list[int]]) -> xr.DataArray:
    return xr.DataArray(counts, {"delay": BINS}, ("replication", "delay"))


@given(
    st.lists(
        st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any), min_size=2, max_size=6
    )
)
def test_quantiles_are_those_of_all_packets_together(counts: list[list[int]]) -> None:
    packets = histograms(counts)
    sample = np.repeat(BINS * len(counts), np.concatenate(counts))
    for q in (0.05, 0.5, 0.95, 1.0):
        found = stats.quantile_ci(packets, q)
        ours = found.sel(estimate="mean").item()
        assert ours == np.quantile(sample, q, method="inverted_cdf")
        low, high = (found.sel(estimate=name).item() for name in ("low", "high"))
        assert low <= ours
        assert np.isnan(high) or ours <= high
    share = stats.cdf_ci(packets)
    assert share.sel(estimate="mean").isel(delay=-1).item() == pytest.approx(1)
    band = share.sel(estimate="high") - share.sel(estimate="low")
    assert (band >= 0).all()
    assert band.isel(delay=-1).item() == pytest.approx(0, abs=1e-9)


def test_the_band_is_that_of_a_mean_where_replications_are_of_one_size() -> None:
    counts = [[7, 1, 1, 1], [5, 3, 1, 1], [6, 2, 2, 0]]
    share = xr.DataArray(np.cumsum(counts, axis=1) / 10, dims=("replication", "delay"))
    found, expected = stats.cdf_ci(histograms(counts)), stats.mean_ci(share)
    inside = {"delay": slice(0, 1)}
    np.testing.assert_allclose(found.isel(inside), expected.isel(inside))


def test_the_largest_delay_is_no_upper_end() -> None:
    """There the fraction is 1 in every replication, and the band has no width."""
    counts = [[900, 90, 9, 1], [890, 99, 10, 1], [910, 80, 9, 1], [895, 95, 9, 1]]
    found = stats.quantile_ci(histograms(counts), [0.5, 0.98, 0.9999, 1])
    assert found.sel(estimate="mean").values.tolist() == [0.01, 0.02, 0.08, 0.08]
    high = found.sel(estimate="high").values
    assert high[:2].tolist() == [0.01, 0.02]
    assert np.isnan(high[2:]).all()
    # Empty bins beyond it, and a flow whose largest delay is smaller.
    flows = xr.concat([histograms(counts), histograms([[9, 1, 0, 0], [8, 2, 0, 0]] * 2)], "flow")
    of_flows = stats.quantile_ci(flows, 0.99).sel(estimate="high").values
    assert of_flows[0] == 0.04
    assert np.isnan(of_flows[1])
    # All packets are equal.
    one = stats.quantile_ci(histograms([[0, 5, 0, 0]] * 3), 0.5)
    assert one.sel(estimate=["mean", "low"]).values.tolist() == [0.02, 0.02]
    assert np.isnan(one.sel(estimate="high"))


def test_what_nothing_came_of_has_no_quantile_and_one_replication_has_no_interval() -> None:
    nothing = stats.quantile_ci(histograms([[0] * 4, [0] * 4]), 0.5)
    assert np.isnan(nothing).all()
    single = stats.quantile_ci(histograms([[1, 1, 1, 1]]), [0.25, 0.5])
    assert single.sel(estimate="mean").values.tolist() == [0.01, 0.02]
    assert np.isnan(single.sel(estimate=["low", "high"])).all()


def test_bands_hold_what_is_true_as_often_as_they_say() -> None:
    draws = np.random.default_rng(2014)
    held = 0
    for _ in range(400):
        # A replication is slow or fast as a whole: packets are not independent.
        rates = draws.lognormal(0, 0.4, size=12)
        delays = [draws.exponential(rate, size=60) for rate in rates]
        counts = [np.histogram(each, [0, 0.5, 1, 2, np.inf])[0] for each in delays]
        band = stats.cdf_ci(histograms([list(each) for each in counts])).isel(delay=1)
        truth = 1 - np.mean(np.exp(-1 / np.exp(0.4 * NORMAL)))
        held += bool(band.sel(estimate="low") <= truth <= band.sel(estimate="high"))
    assert 0.91 <= held / 400 <= 0.99


#: Quantiles of the standard normal distribution, for a mean over it.
NORMAL = np.sort(np.random.default_rng(1).standard_normal(200_000))


def test_pairs_leave_out_what_both_have_in_common() -> None:
    common = np.random.default_rng(3).normal(0, 10, size=20)
    noise = np.random.default_rng(4).normal(0, 0.1, size=20)
    values = xr.DataArray(
        [common, common + 1 + noise], {"path": ["plain", "coded"]}, ("path", "replication")
    )
    gain = stats.paired_ci(values, "path", "plain").sel(path="coded")
    width = float(gain.sel(estimate="high") - gain.sel(estimate="low"))
    assert width < 0.15
    assert abs(gain.sel(estimate="mean").item() - 1) < 0.1
    assert stats.paired_ci(values, "path", "plain").sel(path="plain").values.tolist() == [0, 0, 0]


def test_what_cannot_be_is_said() -> None:
    values = xr.DataArray([[1.0]], {"path": ["plain"]}, ("path", "replication"))
    with pytest.raises(ValueError, match="dim = 'way': expected a dimension"):
        stats.paired_ci(values, "way", "plain")
    with pytest.raises(ValueError, match="base = 'coded': expected one of"):
        stats.paired_ci(values, "path", "coded")
    with pytest.raises(ValueError, match="expected `replication` and `delay`"):
        stats.cdf_ci(values)
    for wrong in (0, 1.1, [0.5, -1]):
        with pytest.raises(ValueError, match="expected shares"):
            stats.quantile_ci(histograms([[1, 1, 1, 1]]), wrong)
