"""Files of results, and parameters as dimensions."""

import sys
from pathlib import Path

import corridor
import numpy as np
import pytest
import xarray as xr
from corridor import sim
from corridor._tables import LongTable, with_tables
from corridor.results import gridded

#: Written by the crate `results`, whose tests compare it with its current output: 4 points, path
#: and medium.rtt_ms swept; point i has a goodput of 1 Mbit/s over i + 3.
FILE = Path(__file__).parent / "data" / "results.parquet"


def test_a_file_is_a_dataset_with_its_parameters_as_dimensions() -> None:
    results = corridor.open_results(FILE)
    assert dict(results.sizes) == {"path": 2, "medium.rtt_ms": 2, "replication": 1}
    assert results["medium.rtt_ms"].values.tolist() == [4, 8]
    assert results["path"].values.tolist() == ["plain", "coded"]
    goodput = results["goodput_bps"]
    assert goodput.attrs["units"] == "bit/s"
    expected = {("plain", 4): 3, ("coded", 4): 4, ("plain", 8): 5, ("coded", 8): 6}
    for (path, rtt), divisor in expected.items():
        found = goodput.sel({"path": path, "medium.rtt_ms": rtt}).item()
        assert found == pytest.approx(1e6 / divisor), (path, rtt)
    assert results["packets_sent"].sel({"path": "coded", "medium.rtt_ms": 8}).item() == 3
    assert (results.attrs["commit"], results.attrs["complete"]) == ("abc", "true")
    points = corridor.open_results(FILE, grid=False)
    assert points["goodput_bps"].dims == ("point", "replication")
    assert gridded(points).identical(results)


def test_what_is_no_file_of_results_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"results\.parquet: expected results of"):
        corridor.open_results(tmp_path)
    from pyarrow import parquet, table

    parquet.write_table(table({"a": [1]}), tmp_path / "results.parquet")
    with pytest.raises(ValueError, match="expected results of `corridor sim run`"):
        corridor.open_results(tmp_path)


def test_without_pyarrow_it_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'corridor\[results\]'"):
        corridor.open_results(FILE)


def dataset(**parameters: list[object]) -> xr.Dataset:
    count = len(next(iter(parameters.values())))
    return xr.Dataset(
        {"goodput": (("point", "replication"), np.arange(2.0 * count).reshape(count, 2))},
        {name: ("point", values) for name, values in parameters.items()},
    )


def test_what_is_swept_side_by_side_shares_a_dimension() -> None:
    swept = gridded(dataset(a=[1, 1, 2, 2], b=["x", "x", "y", "y"], c=[0, 5, 0, 5], d=[7] * 4))
    assert swept["goodput"].dims == ("a", "c", "replication")
    assert swept["b"].dims == ("a",)
    assert swept["d"].item() == 7
    assert swept["goodput"].sel(a=2, c=5).values.tolist() == [6.0, 7.0]


def test_points_in_another_order_are_the_same_grid() -> None:
    swept = gridded(dataset(a=[1, 2, 1, 2], c=[0, 0, 5, 5]))
    assert swept["goodput"].sel(a=2, c=0).values.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    "parameters",
    [{"a": [1, 1, 2], "c": [0, 5, 0]}, {"a": [1, 1, 1]}, {"a": [1, 1, 2, 2], "c": [0, 0, 5, 6]}],
)
def test_points_that_make_no_grid_stay(parameters: dict[str, list[object]]) -> None:
    given = dataset(**parameters)
    assert gridded(given).identical(given)


def tables_plan(output: sim.Output | None = None) -> sim.Plan:
    link = sim.Link(rate_bps=2_000_000, delay_ms=10, queue_packets=10)
    flows = [sim.Flow(0, 2, tcp=sim.Tcp(preset="ns2")), sim.Flow(0, 1, tcp=sim.Tcp(preset="ns2"))]
    sweep = sim.Sweep({"network.links.erasure_ratio": [0.0, 0.02]})
    chain = sim.Chain(2, link)
    output = output or sim.Output()
    return sim.Plan(chain, flows, duration_s=2, replications=2, sweeps=[sweep], output=output)


def test_tables_of_flows_and_links_are_labelled() -> None:
    kept = sim.run(tables_plan(sim.Output(tables=True, series_s=0.5)))
    plain = sim.run(tables_plan())
    for name in plain.data_vars:
        assert kept[name].identical(plain[name]), name
    assert kept["links.packets_lost"].dims == ("point", "replication", "link")
    assert kept["links.packets_lost"].attrs["units"] == "packets"
    ways = zip(kept["link_from"].values, kept["link_to"].values, strict=True)
    assert list(ways) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    erased = kept["links.packets_lost"].sum("link")
    assert erased.values.tolist() == kept["packets_erased"].values.tolist()
    dropped = kept["links.packets_dropped"].sum("link")
    assert dropped.values.tolist() == kept["packets_dropped"].values.tolist()


def test_tables_of_nodes_are_labelled() -> None:
    node = {"node": ("1", "number of the node"), "frames_given_up": ("frames", "given up")}
    attrs = {name: {"units": unit, "long_name": what} for name, (unit, what) in node.items()}
    values = {"node": np.array([0.0, 2.0, 2.0]), "frames_given_up": np.array([5.0, 7.0, 9.0])}
    table = LongTable("nodes", np.array([0, 0, 1]), np.array([0, 0, 1]), values, attrs)
    results = with_tables(dataset(a=[1, 2]), [table])
    found = results["nodes.frames_given_up"]
    assert found.dims == ("point", "replication", "node")
    assert found.sizes["node"] == 3
    assert found.sel(point=0, replication=0).fillna(-1).values.tolist() == [5, -1, 7]
    assert found.sel(point=1, replication=1, node=2).item() == 9
    assert found.notnull().sum() == 3
