"""Time series and histograms: the same arrays from a run here, in batches, and from files."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr
from corridor import sim, stats
from corridor.results import gridded

LINK = sim.Link(rate_bps=2_000_000, delay_ms=20, queue_packets=20)
PLAN = sim.Plan(
    sim.Chain(2, LINK),
    [sim.Flow(0, 2, tcp=sim.Tcp()), sim.Flow(2, 0, tcp=sim.Tcp(preset="ns2"), start_s=2)],
    duration_s=4.5,
    replications=2,
    sweeps=[sim.Sweep({"network.links.erasure_ratio": [0.0, 0.02]})],
    output=sim.Output(series_s=1, delays=True),
)


@pytest.fixture(scope="module")
def results() -> xr.Dataset:
    return sim.run(PLAN)


def test_a_course_has_time_and_what_is_swept_as_dimensions(results: xr.Dataset) -> None:
    grid = gridded(results)
    goodput = grid["flow_series.goodput_bps"]
    assert goodput.dims == ("network.links.erasure_ratio", "replication", "time", "flow")
    assert goodput.sizes["time"] == 5
    assert grid["time"].values.tolist() == [0, 1, 2, 3, 4]
    assert (grid["time"].attrs["units"], goodput.attrs["units"]) == ("s", "bit/s")
    spans = xr.DataArray([1, 1, 1, 1, 0.5], dims="time")
    np.testing.assert_allclose((goodput * spans).sum("time")[..., 0] / 4.5,
                               grid["flow.goodput_bps"][..., 0])  # fmt: skip
    assert (goodput.sel(time=[0, 1]).isel(flow=1) == 0).all()
    assert grid["link_series.queue_packets"].sizes["link"] == 4
    assert grid["link_from"].values.tolist() == [0, 1, 1, 2]
    assert grid["link_to"].values.tolist() == [1, 0, 2, 1]
    assert grid["flow_series.cwnd_mean_packets"].isel(flow=1, time=0).isnull().all()


def test_histograms_pool_to_the_quantiles_of_single_runs(results: xr.Dataset) -> None:
    packets = results["delays.packets"]
    assert packets.dims == ("point", "replication", "flow", "delay")
    for replication in range(2):
        one = packets.isel(replication=[replication])
        ours = stats.quantile_ci(one, 0.95).sel(estimate="mean")
        theirs = results["flow.delay_p95_s"].isel(replication=replication)
        np.testing.assert_array_equal(ours.values, theirs.values)
    pooled = stats.quantile_ci(packets, 0.5).sel(estimate="mean")
    single = results["flow.delay_p50_s"]
    assert ((single.min("replication") <= pooled) & (pooled <= single.max("replication"))).all()


def test_batches_give_the_same_arrays(results: xr.Dataset) -> None:
    with ThreadPoolExecutor(2) as executor:
        assert sim.run(PLAN, executor=executor).identical(results)


def test_outcomes_of_frames_are_by_link_end_and_attempts() -> None:
    plan = replace(PLAN, output=sim.Output(tables=True))
    found = sim.run(plan)
    frames = found["outcomes.frames"]
    assert frames.dims == ("point", "replication", "pair", "outcome", "attempts")
    pairs = list(zip(found["pair_from"].values, found["pair_to"].values, strict=True))
    assert pairs == [(0, 1), (1, 0), (1, 2), (2, 1)]
    lost = frames.sel(outcome="lost", attempts=1).sum("pair")
    np.testing.assert_array_equal(lost, found["packets_erased"])
    assert (lost.isel(point=0) == 0).all()
    assert (lost.isel(point=1) > 0).all()
    ended = frames.sum(["outcome", "attempts"])
    np.testing.assert_array_equal(ended, found["links.packets_offered"])
    with ThreadPoolExecutor(2) as executor:
        assert sim.run(plan, executor=executor).identical(found)
    swept = gridded(found)["outcomes.frames"]
    assert swept.dims[0] == "network.links.erasure_ratio"


def test_without_them_there_is_no_time() -> None:
    plain = sim.run(sim.Plan(PLAN.network, PLAN.flows, duration_s=3))
    assert "time" not in plain.dims
    assert "delay" not in plain.dims


@pytest.mark.parametrize("output", [{}, {"delays": True}, {"series_s": 1.0}])
def test_flows_stand_at_their_own_numbers(results: xr.Dataset, output: dict[str, Any]) -> None:
    """If some flows' metrics are left out, other flows do not take their places."""
    metrics = ["flow.1.goodput_bps"]
    some = sim.run(replace(PLAN, output=sim.Output(metrics=metrics, **output)))
    goodput = some["flow.goodput_bps"]
    assert goodput.sizes["flow"] == 2
    assert goodput.isel(flow=0).isnull().all()
    np.testing.assert_array_equal(goodput[..., 1], results["flow.goodput_bps"][..., 1])


@pytest.mark.parametrize("output", [{}, {"delays": True}, {"series_s": 1.0}])
def test_flows_that_are_left_out_have_places(results: xr.Dataset, output: dict[str, Any]) -> None:
    metrics = ["flow.0.goodput_bps"]
    some = sim.run(replace(PLAN, output=sim.Output(metrics=metrics, **output)))
    goodput = some["flow.goodput_bps"]
    np.testing.assert_array_equal(goodput[..., 0], results["flow.goodput_bps"][..., 0])
    assert goodput[..., 1:].isnull().all()
    assert goodput.attrs == results["flow.goodput_bps"].attrs


def test_links_are_where_they_are_at_each_point() -> None:
    links = [replace(LINK, between=(0, 1)), replace(LINK, between=(1, 2))]
    plan = sim.Plan(
        sim.Explicit(3, links), [sim.Flow(0, 2, tcp=sim.Tcp())], duration_s=2,
        sweeps=[
            sim.Sweep({"network.link.1.between": [[1, 2], [0, 2]]}),
            sim.Sweep({"network.link.0.delay_ms": [5, 20]}),
        ],
        output=sim.Output(series_s=1),
    )  # fmt: skip
    grid = gridded(sim.run(plan))
    dims = ("network.link.1.between", "network.link.0.delay_ms", "link")
    assert (grid["link_from"].dims, grid["link_to"].dims) == (dims, dims)
    for delay in range(2):
        one = grid.isel({"network.link.0.delay_ms": delay})
        assert one["link_from"].values.tolist() == [[0, 1, 1, 2], [0, 1, 0, 2]]
        assert one["link_to"].values.tolist() == [[1, 0, 2, 1], [1, 0, 2, 0]]
    assert grid["link_from"].attrs["units"] == "1"
    assert gridded(sim.run(replace(plan, sweeps=plan.sweeps[1:])))["link_from"].dims == ("link",)


def test_links_that_a_point_lacks_are_where_others_have_them() -> None:
    sweep = sim.Sweep({"network.links.count": [2, 1], "flow.0.to": [2, 1]})
    flows = [sim.Flow(0, 2, tcp=sim.Tcp())]
    output = sim.Output(series_s=1)
    found = sim.run(sim.Plan(PLAN.network, flows, 2, sweeps=[sweep], output=output))
    assert found["link_from"].dims == ("link",)
    assert found["link_from"].values.tolist() == [0, 1, 1, 2]
    assert found["link_series.queue_packets"].isel(point=1, link=slice(2, 4)).isnull().all()


def test_more_rows_than_memory_holds_are_refused_before_anything_runs() -> None:
    """25,000 intervals of two flows and four links, times a thousand."""
    long = sim.Plan(PLAN.network, PLAN.flows, 1000, output=sim.Output(series_s=0.04))
    said = r"output = 150000000 rows of all runs: expected at most 10000000, .* a larger series_s"
    with pytest.raises(ValueError, match=said):
        sim.run(long, replications=1000)
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match=said):
        sim.run(long, replications=1000, executor=executor)


def test_what_has_no_room_is_refused() -> None:
    many = sim.Plan(PLAN.network, PLAN.flows, 1000, output=sim.Output(series_s=0.001))
    with pytest.raises(ValueError, match=r"output\.series_s = 0\.001: expected at least 0\.0300"):
        sim.run(many)
    with pytest.raises(ValueError, match=r"output\.series_s = -1: expected at least"):
        sim.run(sim.Plan(PLAN.network, PLAN.flows, 10, output=sim.Output(series_s=-1)))
