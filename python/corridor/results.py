"""Results of ``corridor sim run --out`` as labelled arrays.

Examples
--------
>>> import tempfile
>>> from corridor import sim
>>> link = sim.Link(rate_bps=2_000_000, delay_ms=10, queue_packets=50)
>>> sweeps = [
...     sim.Sweep({"network.links.erasure_ratio": [0.0, 0.02]}),
...     sim.Sweep({"network.links.delay_ms": [5, 10, 20]}),
... ]
>>> flow = sim.Flow(0, 1, tcp=sim.Tcp(preset="ns2"))
>>> plan = sim.Plan(sim.Chain(1, link), [flow], duration_s=1, sweeps=sweeps)
>>> swept = gridded(sim.run(plan))
>>> swept["goodput_bps"].dims
('network.links.erasure_ratio', 'network.links.delay_ms', 'replication')
>>> float(swept["goodput_bps"].sel({"network.links.delay_ms": 20}).isel(replication=0).max()) > 0
True
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from corridor._tables import LongTable, by_flow, flow_of, flows_of, with_tables

if TYPE_CHECKING:
    import pyarrow as pa

#: Results file of `corridor sim run --out`.
FILE = "results.parquet"
#: Long tables beside it, if the plan keeps any.
TABLES = (
    "flow_series", "link_series", "station_series", "delays", "flows", "links", "nodes", "outcomes",
)  # fmt: skip


def open_results(path: Path | str, *, grid: bool = True) -> xr.Dataset:
    """Open the results of ``corridor sim run --out``.

    Parameters
    ----------
    path
        The directory, or its ``results.parquet``.
    grid
        Whether swept parameters become dimensions, if they form a grid.

    Returns
    -------
    A Dataset as returned by `corridor.sim.run`: dimensions ``point`` (or those of the grid),
    ``replication`` and ``flow``, ``time`` if the plan keeps time series, ``link`` and ``node`` if
    it keeps tables. Units and meanings are attributes of its variables; plan, seed and commit are
    attributes of the Dataset. NaN marks values that do not apply, or runs not made.

    Raises
    ------
    ImportError
        If ``pyarrow`` is not installed.
    OSError
        If there is nothing to read.
    ValueError
        If the file holds something else.
    """
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "open_results: expected the package pyarrow: pip install 'corridor[results]'"
        ) from error
    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{file}: expected results of `corridor sim run --out`")
    table = parquet.ParquetFile(file).read()
    if table.column_names[:2] != ["point", "replication"]:
        raise ValueError(f"{file}: expected results of `corridor sim run`: {table.column_names}")
    results = _dataset(table)
    beside = [file.with_name(f"{name}.parquet") for name in TABLES]
    results = with_tables(results, [_long(one, results) for one in beside if one.is_file()])
    return gridded(results) if grid else results


def _long(file: Path, results: xr.Dataset) -> LongTable:
    """Read a long table that belongs to these results."""
    from pyarrow import parquet

    table = parquet.ParquetFile(file).read()
    told = {key.decode(): text.decode() for key, text in (table.schema.metadata or {}).items()}
    if any(told.get(f"corridor.{key}") != results.attrs[key] for key in ("plan", "code_version")):
        raise ValueError(f"{file}: expected a table of the plan and the code of {FILE} beside it")
    point, replication, *names = table.column_names
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    attrs = {
        field.name: {
            "units": field.metadata[b"unit"].decode(),
            "long_name": field.metadata[b"long_name"].decode(),
        }
        for field in table.schema
    }
    values = {
        name: columns[name] if columns[name].dtype == object else columns[name].astype(float)
        for name in names
    }
    return LongTable(told["corridor.table"], columns[point], columns[replication], values, attrs)


def gridded(results: xr.Dataset) -> xr.Dataset:
    """Turn swept parameters into dimensions, in place of ``point``.

    Parameters swept together in one `Sweep` share the dimension of the first of them. If the points
    do not form a full grid, because combinations are missing or repeated, ``point`` stays.

    Parameters
    ----------
    results
        Results with the dimension ``point``, and the parameters as its coordinates.
    """
    if "point" not in results.dims:
        return results
    count = results.sizes["point"]
    parameters = [name for name in results.coords if results[name].dims == ("point",)]
    codes = {name: _codes(results[name].values) for name in parameters}
    swept = [name for name in parameters if codes[name].max(initial=0) > 0]
    axes: dict[Any, list[Any]] = {}
    for name in swept:
        for first, others in axes.items():
            if _is_one_to_one(codes[first], codes[name]):
                others.append(name)
                break
        else:
            axes[name] = []
    lengths = [int(codes[name].max()) + 1 for name in axes]
    places = {name: codes[name] for name in axes}
    is_grid = (
        len(axes) > 0
        and math.prod(lengths) == count
        and len(set(zip(*places.values(), strict=True))) == count
    )
    if not is_grid:
        return results
    order = np.lexsort([places[name] for name in reversed(axes)])
    sorted_results = results.isel(point=order)
    names = list(axes)

    def spread(variable: xr.Variable) -> xr.Variable:
        if "point" not in variable.dims:
            return variable
        variable = variable.transpose("point", ...)
        shape = (*lengths, *variable.shape[1:])
        dims = (*names, *variable.dims[1:])
        return xr.Variable(dims, variable.values.reshape(shape), variable.attrs)

    new = {name: spread(array.variable) for name, array in sorted_results.data_vars.items()}
    coords: dict[Any, Any] = {}
    for axis, others in axes.items():
        # Numbered in order of appearance, so that one pass finds the first of each.
        _, first_of = np.unique(codes[axis], return_index=True)
        for name in [axis, *others]:
            coords[name] = (axis, results[name].values[first_of], results[name].attrs)
    for name in parameters:
        if name not in swept:
            coords[name] = results[name].values[0]
    for name, coord in sorted_results.coords.items():
        if coord.dims != ("point",):
            coords[name] = spread(coord.variable)
    return xr.Dataset(new, coords, results.attrs)


def _size(codes: np.ndarray[Any, Any]) -> int:
    return int(codes.max()) + 1


def _codes(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Number values in order of appearance."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in map(_key, values)])


def _key(value: Any) -> Any:
    """Return a key that is equal to itself, unlike NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _is_one_to_one(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == _size(one) == _size(other)


def _dataset(table: pa.Table) -> xr.Dataset:
    points, replications = (table.column(name).to_numpy() for name in ("point", "replication"))
    shape = (int(points.max(initial=-1)) + 1, int(replications.max(initial=-1)) + 1)
    data: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    of_flows: dict[str, list[tuple[int, np.ndarray[Any, Any], dict[str, str]]]] = {}
    for place, field in enumerate(table.schema):
        told = {key.decode(): text.decode() for key, text in (field.metadata or {}).items()}
        attrs = {"units": told.get("unit", ""), "long_name": told.get("long_name", "")}
        if told.get("role") == "key":
            continue
        values = table.column(place).to_numpy()
        if told.get("role") == "parameter":
            column = np.full(shape[0], None, dtype=object)
            column[points] = values
            coords[field.name] = ("point", _narrow(column), attrs)
            continue
        cells = np.full(shape, np.nan)
        cells[points, replications] = values.astype(float)
        if field.name.startswith("flow."):
            attrs["long_name"] = attrs["long_name"].split(": ", 1)[-1]
            name = field.name.split(".", 2)[2]
            of_flows.setdefault(name, []).append((flow_of(field.name), cells, attrs))
        else:
            data[field.name] = (("point", "replication"), cells, attrs)
    count = flows_of(table.column_names)
    for name, flows in of_flows.items():
        each = by_flow(((number, cells) for number, cells, _ in flows), count)
        data[f"flow.{name}"] = (("point", "replication", "flow"), each, flows[0][2])
    known = table.schema.metadata or {}
    attrs = {
        key.decode().removeprefix("corridor."): text.decode()
        for key, text in known.items()
        if key.startswith(b"corridor.")
    }
    return xr.Dataset(data, coords, attrs)


def _narrow(column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a numeric column as an array of numbers; otherwise missing values stay None."""
    values = column.tolist()
    if all(isinstance(value, bool | int | float) for value in values):
        return np.array(values)
    return column
