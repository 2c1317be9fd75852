"""Plans as dataclasses, and results as Datasets."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from corridor import sim, stats

LINK = sim.Link(rate_bps=2_000_000, delay_ms=5, queue_packets=50)
TCP = sim.Tcp(preset="ns2", variant="reno", window_packets_max=20)


def plan(**changes: object) -> sim.Plan:
    fields = {
        "network": sim.Chain(2, LINK),
        "flows": [sim.Flow(0, 2, tcp=TCP), sim.Flow(0, 2, tcp=TCP, start_s=1)],
        "duration_s": 4,
        "replications": 2,
        "sweeps": [sim.Sweep({"network.links.erasure_ratio": [0.0, 0.01, 0.05]})],
        "seed": 7,
    }
    return sim.Plan(**(fields | changes))  # type: ignore[arg-type]


def test_a_run_is_a_dataset_with_units() -> None:
    results = sim.run(plan())
    assert dict(results.sizes) == {"point": 3, "replication": 2, "flow": 2}
    assert results["network.links.erasure_ratio"].values.tolist() == [0.0, 0.01, 0.05]
    goodput = results["flow.goodput_bps"]
    assert goodput.dims == ("point", "replication", "flow")
    assert goodput.attrs["units"] == "bit/s"
    assert goodput.attrs["long_name"] == "data received per second, without headers"
    assert tomllib.loads(results.attrs["plan"])["seed"] == 7
    without_losses = results["goodput_bps"].isel(point=0)
    assert np.all((without_losses > 1.5e6) & (without_losses < 2e6))
    assert np.all(results["goodput_bps"].mean("replication").diff("point") < 0)


def test_results_do_not_depend_on_threads() -> None:
    alone, together = sim.run(plan(), jobs=1), sim.run(plan(), jobs=4)
    assert alone.identical(together)


def test_replications_and_seeds_differ() -> None:
    results = sim.run(plan(), replications=4)
    assert results.sizes["replication"] == 4
    lossy = results["packets_erased"].isel(point=2)
    assert len(np.unique(lossy)) > 1
    assert not results.identical(sim.run(plan(seed=8), replications=4))


def test_a_file_says_the_same_as_dataclasses() -> None:
    given = plan()
    assert sim.run(sim.PlanText(given.text())).identical(sim.run(given))


def test_numbers_of_numpy_and_whole_floats_are_numbers() -> None:
    lossy = sim.Sweep({"network.links.erasure_ratio": np.array([0.0, 0.01])})
    given = plan(network=sim.Chain(2, LINK), sweeps=[lossy])
    link = sim.Link(np.int64(LINK.rate_bps), LINK.delay_ms, float(LINK.queue_packets))  # type: ignore[arg-type]
    queues = sim.Sweep({"network.links.erasure_ratio": [0.0, 0.01]})
    same = plan(network=sim.Chain(2, link), sweeps=[queues])
    assert sim.run(given).identical(sim.run(same))


def test_a_plan_is_read_from_a_path_or_its_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(plan().text())
    assert sim.PlanText.read(str(path)) == sim.PlanText.read(path)


def test_network_coding_masks_losses() -> None:
    link = sim.Link(2_000_000, 20, 50, erasure_ratio=0.05)
    coded = sim.Flow(0, 2, tcp=TCP, tcp_nc=sim.TcpNc(redundancy=1.3))
    network = sim.Chain(2, link)
    plain = sim.run(plan(network=network, flows=[sim.Flow(0, 2, tcp=TCP)], sweeps=[]))
    masked = sim.run(plan(network=network, flows=[coded], sweeps=[]))
    assert float(masked["goodput_bps"].mean()) > 2 * float(plain["goodput_bps"].mean())


def test_a_dumbbell_shares_its_bottleneck() -> None:
    network = sim.Dumbbell(2, LINK, sim.Link(1_000_000, 5, 50))
    flows = [sim.Flow(0, 2, tcp=TCP), sim.Flow(1, 3, tcp=TCP)]
    results = sim.run(plan(network=network, flows=flows, sweeps=[], duration_s=20))
    assert 0.8e6 < float(results["goodput_bps"].mean()) < 1e6


def test_links_vary_as_plan_files_say_it(tmp_path: Path) -> None:
    trace = tmp_path / "half.trace"
    trace.write_text("".join(f"{ms}\n" for ms in range(2, 1001, 2)))
    outage = sim.Outage(5.0, 0.5, kind="exponential")
    steps = sim.StepsRate((sim.Step(0, 4_000_000), sim.Step(2, 1_000_000)), period_s=4)
    walk = sim.WalkRate(1_000_000, 9_000_000, interval_ms=100, deviation=0.2)
    links = [
        sim.Link(None, 10, 50, rate=sim.TraceRate(str(trace))),
        sim.Link(None, 10, None, rate=steps, queue_bytes=60_000, outage=outage),
        sim.Link(None, 10, None, rate=walk, queue_ms=80, jitter=sim.Jitter("normal", 3, 1)),
        sim.Link(8_000_000, 10, 50, policer=sim.Policer(3_000_000, 15_000)),
        sim.Link(8_000_000, 10, 50, forward=sim.Direction(rate_bps=2_000_000)),
    ]
    goodput = []
    for link in links:
        flows = [sim.Flow(0, 1, tcp=sim.Tcp())]
        given = plan(network=sim.Chain(1, link), flows=flows, sweeps=[], duration_s=20)
        goodput.append(float(sim.run(given)["goodput_bps"].mean()) / 1e6)
    # 500 opportunities of 1504 bytes a second are 6 Mbit/s.
    assert 4.5 < goodput[0] < 6
    assert 0.5 < goodput[1] < 2.5
    assert 0.5 < goodput[2] < 5
    assert 1 < goodput[3] < 3
    assert 1.5 < goodput[4] < 2


def test_rates_that_cannot_be_are_refused() -> None:
    link = sim.Link(None, 10, 50, rate=sim.MarkovRate((0, 0), dwell_s=1))
    with pytest.raises(ValueError, match="the greatest of rates_bps is 0"):
        sim.run(plan(network=sim.Chain(2, link), sweeps=[]))
    with pytest.raises(ValueError, match=r"network\.links\.rate_bps is missing"):
        sim.run(plan(network=sim.Chain(2, sim.Link(None, 10, 50)), sweeps=[]))


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    sim.run(plan(), progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 6) for done in range(1, 7)]


def test_what_progress_raises_ends_the_run() -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sim.run(plan(), progress=stop)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration_s": -1}, "duration_s"),
        ({"duration_s": "long"}, "duration_s = 'long': expected a number"),
        ({"replications": 0}, "replications = 0: expected 1 to 10000"),
        ({"seed": -1}, "seed = -1: expected 0 to"),
        ({"network": LINK}, r"network = Link\(.*: expected a Chain, a Dumbbell"),
        ({"network": sim.Chain(0, LINK)}, "network.links.count = 0: expected 1 to"),
        ({"network": sim.Chain(2.5, LINK)}, r"Chain\.count = 2\.5: expected a whole number"),  # type: ignore[arg-type]
        ({"network": sim.Chain(2, sim.Link(-1, 1, 1))}, r"Link\.rate_bps = -1: expected 0 or more"),
        ({"flows": [sim.Flow(0, 9, tcp=TCP)]}, r"flow\[0\]\.to"),
        ({"flows": sim.Flow(0, 2)}, r"flows = Flow\(.*: expected a list of Flow"),
        ({"flows": [TCP]}, r"flows\[0\] = Tcp\(.*: expected a Flow"),
        (
            {"flows": [sim.Flow(0, 2, tcp=sim.Tcp(variant="bic"))]},  # type: ignore[arg-type]
            r"Tcp\.variant = 'bic': expected one of 'tahoe', 'reno'",
        ),
        ({"sweeps": [sim.Sweep({"network.nothing": [1]})]}, "network.nothing|nothing"),
    ],
)
def test_plans_that_cannot_be_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sim.run(plan(**changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"jobs": 2000}, "jobs = 2000: expected 1 to 1024"),
        ({"jobs": 0}, "jobs = 0: expected 1 to 1024"),
        ({"replications": -1}, "replications = -1: expected 1 to 10000"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sim.run(plan(), **arguments)  # type: ignore[arg-type]


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(ValueError, match=r"plan = 'plan\.toml': .*PlanText\.read reads a file"):
        sim.run("plan.toml")  # type: ignore[arg-type]


def test_intervals_cover_the_mean_as_often_as_they_say() -> None:
    samples = np.random.default_rng(1).normal(5.0, 2.0, (2000, 6))
    estimate = stats.mean_ci(xr.DataArray(samples, dims=("point", "replication")))
    low, high = (estimate.sel(estimate=name) for name in ("low", "high"))
    assert float(((low <= 5) & (high >= 5)).mean()) == pytest.approx(0.95, abs=0.02)


def test_one_replication_has_no_interval() -> None:
    estimate = stats.mean_ci(xr.DataArray([[3.0]], dims=("point", "replication")))
    assert float(estimate.sel(estimate="mean")[0]) == 3
    assert bool(np.isnan(estimate.sel(estimate="low")[0]))


def test_an_interval_of_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="values = list: expected an xarray DataArray"):
        stats.mean_ci([1, 2])  # type: ignore[arg-type]


def test_an_array_without_replications_is_refused() -> None:
    with pytest.raises(ValueError, match="expected `replication`"):
        stats.mean_ci(xr.DataArray([1.0], dims="point"))
