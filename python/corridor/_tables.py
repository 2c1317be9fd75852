"""Long tables as labelled arrays: each row becomes an array element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

#: Columns that identify a subject, and are the same in all its rows.
_LABELS = ("from", "to")


#: Tables with one row per subject, and the prefix of their variables' names.
_TOTALS = {"flows": "flow", "links": "links", "nodes": "nodes"}


@dataclass(frozen=True)
class LongTable:
    """A long table from the simulator.

    Parameters
    ----------
    name
        Name of the table, such as ``flow_series``.
    point, replication
        Point and replication of each row.
    values
        The other columns, by name; NaN where a value does not apply, strings for ``outcome``. The
        first is the subject, such as ``flow``; the second is ``time_s`` or ``delay_s`` if a subject
        has several rows.
    attrs
        ``units`` and ``long_name`` of each column.
    """

    name: str
    point: NDArray[np.int64]
    replication: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]
    attrs: Mapping[str, dict[str, str]]


def with_tables(results: xr.Dataset, tables: Iterable[LongTable]) -> xr.Dataset:
    """Add the contents of long tables to the results.

    A column of ``flow_series`` becomes a variable ``flow_series.NAME`` with the dimensions
    ``point``, ``replication``, ``time`` and ``flow``, NaN where there is no row. The histograms of
    ``delays`` become ``delays.packets`` with ``flow`` and ``delay``, 0 where there is no row. The
    totals of links and nodes become ``links.NAME`` with ``link`` and ``nodes.NAME`` with ``node``;
    those of flows become ``flow.NAME`` with ``flow``, as in results without tables. Counts of
    frames become ``outcomes.frames`` with ``pair`` (whose coordinates ``pair_from`` and ``pair_to``
    are nodes), ``outcome`` and ``attempts``, 0 where there is no row. The nodes at the ends of a
    link are the coordinates ``link_from`` and ``link_to`` of ``link``, and also of ``point`` where
    links differ between points.
    """
    tables = [table for table in tables if len(table.point)]
    series = [table for table in tables if "time_s" in table.values]
    delays = [table for table in tables if table.name == "delays"]
    outcomes = [table for table in tables if table.name == "outcomes"]
    totals = [table for table in tables if table.name in _TOTALS]
    results = _with_room(results, series + delays + totals)
    if series:
        times = np.unique(np.concatenate([table.values["time_s"] for table in series]))
        results = results.assign_coords(time=("time", times, series[0].attrs["time_s"]))
        for table in series:
            results = _with_series(results, table, times)
    for table in delays:
        results = _with_delays(results, table)
    for table in totals:
        results = _with_totals(results, table)
    for table in outcomes:
        results = _with_outcomes(results, table)
    return results


def by_flow(columns: Iterable[tuple[int, NDArray[np.float64]]], count: int) -> NDArray[np.float64]:
    """Stack the columns of flows along a new last axis, indexed by flow number.

    Parameters
    ----------
    columns
        Pairs of a flow's number and its values; at least one, all of the same shape.
    count
        Number of flows. Those without a column are NaN.
    """
    given = dict(columns)
    shape = next(iter(given.values())).shape
    cells = np.full((*shape, count), np.nan)
    for flow, values in given.items():
        cells[..., flow] = values
    return cells


def flow_of(column: str) -> int:
    """Return the flow of a column named ``flow.NUMBER.NAME``."""
    return int(column.split(".", 2)[1])


def flows_of(columns: Iterable[str]) -> int:
    """Return the number of flows in such columns: one more than the largest flow number.

    Examples
    --------
    >>> flows_of(["goodput_bps", "flow.1.goodput_bps"])
    2
    """
    return max((flow_of(name) + 1 for name in columns if name.startswith("flow.")), default=0)


def _with_room(results: xr.Dataset, tables: Iterable[LongTable]) -> xr.Dataset:
    """Extend the results to all flows in the tables: not every flow's metrics are kept."""
    flows = [int(table.values["flow"].max()) + 1 for table in tables if "flow" in table.values]
    missing = max(flows, default=0) - results.sizes.get("flow", 0)
    if missing <= 0 or "flow" not in results.dims:
        return results
    return results.pad(flow=(0, missing), constant_values=np.nan, keep_attrs=True)


def _with_delays(results: xr.Dataset, table: LongTable) -> xr.Dataset:
    flows = table.values["flow"].astype(int)
    delays, bins = np.unique(table.values["delay_s"], return_inverse=True)
    count = max(int(flows.max()) + 1, results.sizes.get("flow", 0))
    shape = (results.sizes["point"], results.sizes["replication"], count, len(delays))
    cells = np.zeros(shape, dtype=np.uint32)
    cells[table.point, table.replication, flows, bins] = table.values["packets"]
    results = results.assign_coords(delay=("delay", delays, table.attrs["delay_s"]))
    dims = ("point", "replication", "flow", "delay")
    return results.assign({"delays.packets": (dims, cells, table.attrs["packets"])})


def _with_outcomes(results: xr.Dataset, table: LongTable) -> xr.Dataset:
    ends = np.column_stack([table.values["from"], table.values["to"]])
    # Broadcast frames have no receiver: NaN is not equal to itself.
    pairs, pair = np.unique(np.nan_to_num(ends, nan=-1), axis=0, return_inverse=True)
    outcomes, outcome = np.unique(table.values["outcome"], return_inverse=True)
    attempts, tried = np.unique(table.values["attempts"].astype(int), return_inverse=True)
    lengths = (len(pairs), len(outcomes), len(attempts))
    shape = (results.sizes["point"], results.sizes["replication"], *lengths)
    cells = np.zeros(shape, dtype=np.uint64)
    places = (table.point, table.replication, pair.reshape(-1), outcome, tried)
    cells[places] = table.values["frames"]
    to = np.where(pairs[:, 1] < 0, np.nan, pairs[:, 1])
    results = results.assign_coords(
        pair_from=("pair", pairs[:, 0], table.attrs["from"]),
        pair_to=("pair", to, table.attrs["to"]),
        outcome=("outcome", outcomes.astype(str), table.attrs["outcome"]),
        attempts=("attempts", attempts, table.attrs["attempts"]),
    )
    dims = ("point", "replication", "pair", "outcome", "attempts")
    return results.assign({"outcomes.frames": (dims, cells, table.attrs["frames"])})


def _with_totals(results: xr.Dataset, table: LongTable) -> xr.Dataset:
    subject, *names = table.values
    places = table.values[subject].astype(int)
    count = max(int(places.max()) + 1, results.sizes.get(subject, 0))
    shape = (results.sizes["point"], results.sizes["replication"], count)
    new: dict[str, Any] = {}
    for name in names:
        values = table.values[name]
        if name in _LABELS:
            coord = _label(subject, (shape[0], count), table, name)
            results = results.assign_coords({f"{subject}_{name}": coord})
            continue
        cells = np.full(shape, np.nan)
        cells[table.point, table.replication, places] = values
        dims = ("point", "replication", subject)
        new[f"{_TOTALS[table.name]}.{name}"] = (dims, cells, table.attrs[name])
    return results.assign(new)


def _with_series(results: xr.Dataset, table: LongTable, times: NDArray[np.float64]) -> xr.Dataset:
    subject, _, *names = table.values
    places = table.values[subject].astype(int)
    count = max(int(places.max()) + 1, results.sizes.get(subject, 0))
    shape = (results.sizes["point"], results.sizes["replication"], len(times), count)
    when = np.searchsorted(times, table.values["time_s"])
    new: dict[str, Any] = {}
    for name in names:
        values = table.values[name]
        if name in _LABELS:
            coord = _label(subject, (*shape[:1], count), table, name)
            results = results.assign_coords({f"{subject}_{name}": coord})
            continue
        cells = np.full(shape, np.nan)
        cells[table.point, table.replication, when, places] = values
        dims = ("point", "replication", "time", subject)
        new[f"{table.name}.{name}"] = (dims, cells, table.attrs[name])
    return results.assign(new)


def _label(subject: str, shape: tuple[int, int], table: LongTable, name: str) -> xr.Variable:
    """Return a label of each subject; per point, too, where points differ, as in topologies."""
    places, values = table.values[subject].astype(int), table.values[name]
    labels = np.full(shape[1:], np.nan)
    labels[places] = values
    if np.array_equal(labels[places], values, equal_nan=True):
        return xr.Variable((subject,), labels, table.attrs[name])
    by_point = np.full(shape, np.nan)
    by_point[table.point, places] = values
    return xr.Variable(("point", subject), by_point, table.attrs[name])
