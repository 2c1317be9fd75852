"""The simulator: a plan in, an xarray Dataset out.

A plan consists of frozen dataclasses (see `corridor.plans`): a `Plan` with a network and flows, or
a `Scenario` with runs on a radio; or it is the text of a plan file (`PlanText`). `run` returns a
Dataset with the dimensions ``point`` (the swept parameters), ``replication`` and, for per-flow
metrics, ``flow``; units and meanings are attributes of its variables. The same plan gives the same
values on every machine.

Examples
--------
>>> link = Link(rate_bps=2_000_000, delay_ms=10, queue_packets=50)
>>> flow = Flow(0, 2, tcp=Tcp(preset="ns2", variant="reno", window_packets_max=20))
>>> sweep = Sweep({"network.links.erasure_ratio": [0.0, 0.02]})
>>> plan = Plan(Chain(2, link), [flow], duration_s=5, replications=3, sweeps=[sweep])
>>> results = run(plan)
>>> dict(results.sizes)
{'point': 2, 'replication': 3, 'flow': 1}
>>> results["flow.goodput_bps"].attrs["units"]
'bit/s'
>>> from corridor import stats
>>> mean = stats.mean_ci(results["flow.goodput_bps"])
>>> bool(mean.sel(estimate="mean").isel(flow=0).diff("point") < 0)
True
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from corridor import _native
from corridor._batches import Anywhere, run_batches
from corridor._integer import integer
from corridor._progress import Bar
from corridor._tables import LongTable, by_flow, flow_of, flows_of, with_tables
from corridor.plans import (
    REPLICATIONS_MAX,
    Chain,
    Coding,
    Congestion,
    Crossing,
    Delivery,
    Direction,
    Dumbbell,
    Erasure,
    Explicit,
    Fading,
    Flow,
    Jitter,
    Link,
    MarkovRate,
    Medium,
    Outage,
    Output,
    PathLoss,
    Plan,
    PlanText,
    Policer,
    Preset,
    Radio,
    RadioNetwork,
    Rate,
    Relay,
    Route,
    Routing,
    Run,
    Scenario,
    Source,
    Step,
    StepsRate,
    Stop,
    Sweep,
    Tcp,
    TcpNc,
    TcpPreset,
    TcpVariant,
    TraceRate,
    Tunnel,
    UdpDelivery,
    WalkRate,
)

__all__ = [
    "JOBS_MAX",
    "REPLICATIONS_MAX",
    "Chain",
    "Coding",
    "Congestion",
    "Crossing",
    "Delivery",
    "Direction",
    "Dumbbell",
    "Erasure",
    "Explicit",
    "Fading",
    "Flow",
    "Jitter",
    "Link",
    "MarkovRate",
    "Medium",
    "Outage",
    "Output",
    "PathLoss",
    "Plan",
    "PlanText",
    "Policer",
    "Preset",
    "Progress",
    "Radio",
    "RadioNetwork",
    "Rate",
    "Relay",
    "Route",
    "Routing",
    "Run",
    "Scenario",
    "Source",
    "Step",
    "StepsRate",
    "Stop",
    "Sweep",
    "Tcp",
    "TcpNc",
    "TcpPreset",
    "TcpVariant",
    "TraceRate",
    "Tunnel",
    "UdpDelivery",
    "WalkRate",
    "run",
]

Progress = Callable[[int, int], object]

#: Maximum number of threads.
JOBS_MAX = 1024


def run(
    plan: Plan | Scenario | PlanText,
    *,
    replications: int | None = None,
    jobs: int | None = None,
    executor: Anywhere | None = None,
    progress: Progress | None = None,
    out: Path | str | None = None,
    afresh: bool = False,
) -> xr.Dataset:
    """Run all replications of all points of a plan, and return the measured values.

    A plan with a ``stop`` rule runs each point until the rule is satisfied; replications it did not
    need are NaN, and a warning names the points at which it gave up.

    Parameters
    ----------
    plan
        The plan.
    replications
        Replications per point, 1 to 10000; None: as in the plan.
    jobs
        Number of threads, from 1; None: the number of processors.
    executor
        Executor that makes the runs instead, in batches: any of `concurrent.futures`, or a
        `distributed.Client` of Dask. The values are the same. A cluster repeats the runs of a lost
        worker; a worker with another version of the simulator is refused. All workers must be able
        to read the traces that the plan names.
    progress
        Called with the number of replications done and the total; None: a bar on stderr, if it is a
        terminal and the runs take longer than two seconds.
    out
        Directory in which to save each run as soon as it is done; after an interruption, the same
        call resumes from there. The format is that of ``corridor sim run --out``, which can
        continue from it and write its Parquet files. None: nothing is saved.
    afresh
        Run everything again, whatever the directory holds, even another plan's results.

    Returns
    -------
    A Dataset with the dimensions ``point``, ``replication`` and ``flow``. Swept parameters are
    coordinates of ``point``; per-flow metrics are ``flow.NAME``. NaN marks values that do not
    apply. With ``series_s`` in the plan's output, there is a dimension ``time``, with per-interval
    values of flows, links and stations: ``flow_series.NAME``, ``link_series.NAME``,
    ``station_series.NAME``. With ``delays``, there is ``delays.packets`` with the dimension
    ``delay``: the number of a flow's packets whose delay falls into the bin that ends there. With
    ``tables``, there are ``links.NAME`` with the dimension ``link`` and, on radios, ``nodes.NAME``
    with ``node``, which count what happened to packets and frames; and ``outcomes.frames`` with
    ``pair``, ``outcome`` and ``attempts``: the number of frames from one node to another with that
    outcome.

    Raises
    ------
    ValueError
        For an invalid plan: the error names the field, its value, and what is expected. Also if the
        long tables of all runs together exceed ten million rows.
    """
    if not isinstance(plan, Plan | Scenario | PlanText):
        hint = "; PlanText.read reads a file" if isinstance(plan, str | Path) else ""
        raise ValueError(f"plan = {plan!r}: expected a Plan, a Scenario or a PlanText{hint}")
    directory = plan.directory if isinstance(plan, PlanText) else Path()
    jobs = integer("jobs", jobs if jobs is not None else os.cpu_count() or 1, 1, JOBS_MAX)
    if replications is not None:
        replications = integer("replications", replications, 1, REPLICATIONS_MAX)
    asked = (plan.text(), str(directory), replications)
    runs = _native.PlanRuns(*asked, None if out is None else Path(out), afresh)
    _native.PlanRuns.check_rows(runs.rows_max if runs.is_fixed else 0)
    with Bar("replications") as bar:
        told = progress if progress is not None else partial(bar.told, "replications")
        if executor is None:
            runs.run(jobs, told)
        else:
            run_batches(executor, asked, runs, told)
    if given_up := runs.given_up:
        where = ", ".join(map(str, given_up))
        warnings.warn(f"the stop rule gave up at points {where}", stacklevel=2)
    columns, parameters = runs.columns(), runs.parameters()
    values = runs.values()
    data: dict[str, tuple[tuple[str, ...], Any, dict[str, str]]] = {}
    of_flows: dict[str, list[int]] = {}
    for place, (name, unit, meaning, _) in enumerate(columns):
        if name.startswith("flow."):
            of_flows.setdefault(name.split(".", 2)[2], []).append(place)
        else:
            attrs = {"units": unit, "long_name": meaning}
            data[name] = (("point", "replication"), values[place], attrs)
    flows = flows_of(name for name, *_ in columns)
    for name, places in of_flows.items():
        _, unit, meaning, _ = columns[places[0]]
        attrs = {"units": unit, "long_name": meaning.split(": ", 1)[-1]}
        each = by_flow(((flow_of(columns[place][0]), values[place]) for place in places), flows)
        data[f"flow.{name}"] = (("point", "replication", "flow"), each, attrs)
    coords = {name: ("point", [point[name] for point in parameters]) for name in parameters[0]}
    attrs = {
        "plan": plan.text(),
        "commit": _native.COMMIT,
        "code_version": _native.CODE_VERSION,
    }
    tables, rows = [], runs.rows()
    for table, texts in runs.tables():
        point, replication, cells = rows[table]
        told_of = {name: {"units": unit, "long_name": what} for name, unit, what, _ in texts}
        named = dict(zip(told_of, cells, strict=True))
        words = np.array(_native.PlanRuns.words(table))
        named |= {name: words[named[name].astype(int)] for name, unit, *_ in texts if not unit}
        tables.append(LongTable(table, point, replication, named, told_of))
    return with_tables(xr.Dataset(data, coords, attrs), tables)
