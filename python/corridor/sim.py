"""The simulator: a plan in, an xarray Dataset out.

A plan is frozen dataclasses, `Plan` with a network and flows, or the text of a plan file
(`PlanText`), which can say all that ``corridor sim run`` understands. `run` gives a Dataset with
the dimensions ``point`` (what is swept), ``replication`` and, for what each flow measures,
``flow``; units and meanings are attributes of its variables. The same plan gives the same values
on every machine.

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
>>> mean = mean_ci(results["flow.goodput_bps"])
>>> bool(mean.sel(estimate="mean").isel(flow=0).diff("point") < 0)
True
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tomli_w
import xarray as xr
from scipy import stats

from corridor import _native

Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Link:
    """A link, both ways alike."""

    #: Bits per second.
    rate_bps: int
    #: Propagation one way, ms.
    delay_ms: float
    #: Packets that wait in each direction; more are dropped.
    queue_packets: int
    #: Share of packets lost, independently of each other.
    erasure_ratio: float = 0.0


@dataclass(frozen=True)
class Chain:
    """Nodes 0 to ``count`` in a row, with links alike between them."""

    #: How many links.
    count: int
    #: Each of them.
    link: Link

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        return {"kind": "chain", "links": {"count": self.count, **_table(self.link)}}


@dataclass(frozen=True)
class Dumbbell:
    """Senders 0 to n-1, receivers n to 2n-1, and a bottleneck between their two routers."""

    #: How many senders, n.
    pairs: int
    #: Links between hosts and routers.
    access: Link
    #: The link between the routers.
    bottleneck: Link

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        return {"kind": "dumbbell", **_table(self)}


@dataclass(frozen=True)
class Tcp:
    """TCP of a flow: a preset, and what is different from it."""

    #: The agents of ns-2.35, the RFCs of today, or nodes with little memory.
    preset: Literal["ns2", "rfc", "constrained"] = "rfc"
    #: Congestion control.
    variant: Literal["tahoe", "reno", "newreno", "sack", "cubic", "vegas"] = "newreno"
    #: Largest window, packets; none = the preset's.
    window_packets_max: int | None = None
    #: Other keys of a plan file's ``tcp`` table.
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TcpNc:
    """TCP/NC under a flow's TCP."""

    #: Redundancy factor R, from 1.
    redundancy: float
    #: Other keys of a plan file's ``tcp_nc`` table.
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """What a flow's application sends."""

    #: All that TCP can, so many packets, no faster than a rate, or datagrams at a rate.
    kind: Literal["ftp", "fixed", "rate", "cbr"] = "ftp"
    #: For ``fixed``: packets.
    packets: int | None = None
    #: For ``rate`` and ``cbr``: bits of data per second.
    rate_bps: float | None = None


@dataclass(frozen=True)
class Flow:
    """A flow from one node to another."""

    #: Node of the sender.
    sender: int
    #: Node of the receiver.
    receiver: int
    #: What its application sends.
    source: Source = Source()
    #: Its TCP; none for ``cbr``.
    tcp: Tcp | None = None
    #: Network coding under TCP; none = plain TCP.
    tcp_nc: TcpNc | None = None
    #: When it starts, s.
    start_s: float = 0.0
    #: When its application stops, s; none = at the end.
    stop_s: float | None = None

    def table(self) -> dict[str, Any]:
        """Return the ``[[flow]]`` table of a plan file."""
        table = _table(self)
        return {"from": table.pop("sender"), "to": table.pop("receiver"), **table}


@dataclass(frozen=True)
class Sweep:
    """Lists of values for paths into the plan, side by side; several sweeps are crossed."""

    #: Path, as ``network.links.erasure_ratio`` or ``flow.0.tcp_nc.redundancy``, to its values.
    values: Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Plan:
    """A network, its flows, what is swept, and how often each point is run."""

    #: The network.
    network: Chain | Dumbbell
    #: The flows.
    flows: Sequence[Flow]
    #: Simulated time, s.
    duration_s: float
    #: How often each point is run.
    replications: int = 1
    #: What varies.
    sweeps: Sequence[Sweep] = ()
    #: When measuring begins, s.
    warm_up_s: float = 0.0
    #: Seed of all random streams.
    seed: int = 0
    #: Name, for messages.
    name: str = "plan"

    def text(self) -> str:
        """Return the plan file that says the same."""
        return tomli_w.dumps(
            {
                "name": self.name,
                "seed": self.seed,
                "duration_s": float(self.duration_s),
                "warm_up_s": float(self.warm_up_s),
                "replications": self.replications,
                "network": self.network.table(),
                "flow": [flow.table() for flow in self.flows],
                "sweep": [{k: list(v) for k, v in sweep.values.items()} for sweep in self.sweeps],
            }
        )


@dataclass(frozen=True)
class PlanText:
    """The text of a plan file; traces that it names are looked for in a directory."""

    #: TOML.
    toml: str
    #: Where traces are.
    directory: Path = Path()

    @classmethod
    def read(cls, path: Path) -> "PlanText":
        """Read a plan file.

        Raises
        ------
        OSError
            Where there is none to read.
        """
        return cls(path.read_text(encoding="utf-8"), path.parent)

    def text(self) -> str:
        """Return the text."""
        return self.toml


def _table(value: Any) -> dict[str, Any]:
    """Return a dataclass as a table: without what is None, and with ``more`` in its place."""
    table: dict[str, Any] = {}
    for each in fields(value):
        item = getattr(value, each.name)
        if each.name == "more":
            table.update(item)
        elif is_dataclass(item):
            table[each.name] = _table(item)
        elif item is not None:
            table[each.name] = item
    return table


def run(
    plan: Plan | PlanText,
    *,
    replications: int | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Run all replications of a plan's points, and return what they measured.

    Parameters
    ----------
    plan
        What is simulated.
    replications
        How often each point is run, 1 to 10000; none = as the plan says.
    jobs
        Threads, from 1; none = as many as there are processors.
    progress
        Called with the number of replications done, and that of all.

    Returns
    -------
    A Dataset with the dimensions ``point``, ``replication`` and ``flow``. What is swept is a
    coordinate of ``point``; what flows measure is ``flow.NAME``. NaN is what does not apply.

    Raises
    ------
    ValueError
        For a plan that cannot be: it names the field, its value, and what is expected.
    """
    directory = plan.directory if isinstance(plan, PlanText) else Path()
    columns, parameters, values = _native.run_plan(
        plan.text(), str(directory), replications, jobs or os.cpu_count() or 1, progress
    )
    data: dict[str, tuple[tuple[str, ...], Any, dict[str, str]]] = {}
    of_flows: dict[str, list[int]] = {}
    for place, (name, unit, meaning, _) in enumerate(columns):
        if name.startswith("flow."):
            of_flows.setdefault(name.split(".", 2)[2], []).append(place)
        else:
            attrs = {"units": unit, "long_name": meaning}
            data[name] = (("point", "replication"), values[place], attrs)
    for name, places in of_flows.items():
        _, unit, meaning, _ = columns[places[0]]
        attrs = {"units": unit, "long_name": meaning.split(": ", 1)[-1]}
        each = np.stack([values[place] for place in places], axis=-1)
        data[f"flow.{name}"] = (("point", "replication", "flow"), each, attrs)
    coords = {name: ("point", [point[name] for point in parameters]) for name in parameters[0]}
    attrs = {
        "plan": plan.text(),
        "commit": _native.COMMIT,
        "code_version": _native.CODE_VERSION,
    }
    return xr.Dataset(data, coords, attrs)


def mean_ci(values: xr.DataArray, confidence: float = 0.95) -> xr.DataArray:
    """Mean over the replications, with its confidence interval (Student's t).

    Parameters
    ----------
    values
        An array with the dimension ``replication``; NaN counts as missing.
    confidence
        Share of intervals that hold the true mean, in (0, 1).

    Returns
    -------
    The same without ``replication``, and with the dimension ``estimate``: ``mean``, ``low``,
    ``high``. A single replication has an interval of NaN.

    Raises
    ------
    ValueError
        For an argument out of its range.

    Examples
    --------
    >>> mean_ci(xr.DataArray([1.0, 2.0, 3.0, 4.0, 5.0], dims="replication")).round(2).values
    array([3.  , 1.04, 4.96])
    """
    if "replication" not in values.dims:
        raise ValueError(f"values = dimensions {values.dims}: expected `replication` among them")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence}: expected a share in (0, 1)")
    count = values.count("replication")
    mean = values.mean("replication")
    deviation = (
        values.std("replication", ddof=1) if values.sizes["replication"] > 1 else mean * np.nan
    )
    factor = stats.t.ppf((1 + confidence) / 2, np.maximum(count - 1, 1))
    half = factor * deviation / np.sqrt(np.maximum(count, 1))
    estimates = xr.concat([mean, mean - half, mean + half], dim="estimate")
    estimates = estimates.assign_coords(estimate=["mean", "low", "high"])
    return estimates.assign_attrs(values.attrs)
