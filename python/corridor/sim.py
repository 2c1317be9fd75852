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
>>> from corridor import stats
>>> mean = stats.mean_ci(results["flow.goodput_bps"])
>>> bool(mean.sel(estimate="mean").isel(flow=0).diff("point") < 0)
True
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import tomli_w
import xarray as xr
from numpy.typing import NDArray

from corridor import _native
from corridor._batches import Anywhere, run_batches
from corridor._integer import WORD_MAX, integer
from corridor._progress import Bar
from corridor._tables import LongTable, with_tables

Progress = Callable[[int, int], object]

#: Where TCP's defaults come from.
TcpPreset = Literal["ns2", "constrained", "linux"]
#: Congestion control.
TcpVariant = Literal["tahoe", "reno", "newreno", "sack", "cubic", "vegas", "slowstart", "bbr"]

#: Most threads.
JOBS_MAX = 1024
#: Most replications of a point.
REPLICATIONS_MAX = 10_000


@dataclass(frozen=True)
class TraceRate:
    """A recorded rate in Mahimahi's format.

    Parameters
    ----------
    path
        A file with a line for each opportunity to send 1504 bytes, ms since its beginning; it
        begins again at its end.
    """

    KIND: ClassVar[str] = "trace"
    path: str


@dataclass(frozen=True)
class Step:
    """A step of a rate.

    Parameters
    ----------
    at_s
        From when on, s.
    rate_bps
        Bits per second from then on; 0: nothing is sent.
    """

    at_s: float
    rate_bps: int


@dataclass(frozen=True)
class StepsRate:
    """Rates by a list.

    Parameters
    ----------
    steps
        The rates, and from when on they are that; the first from 0.
    period_s
        After which time they begin again, s; none = the last one stays.
    """

    KIND: ClassVar[str] = "steps"
    steps: Sequence[Step]
    period_s: float | None = None


@dataclass(frozen=True)
class MarkovRate:
    """One of several rates, each for a while; any other follows with the same probability.

    Parameters
    ----------
    rates_bps
        The rates, bits per second, 2 to 64 of them.
    dwell_s
        Mean of the exponentially distributed times that each is kept, s.
    """

    KIND: ClassVar[str] = "markov"
    rates_bps: Sequence[float]
    dwell_s: float


@dataclass(frozen=True)
class WalkRate:
    """A rate whose logarithm takes normally distributed steps between bounds.

    Parameters
    ----------
    least_bps, most_bps
        The bounds, bits per second.
    interval_ms
        From step to step, ms.
    deviation
        Standard deviation of a step of the natural logarithm.
    """

    KIND: ClassVar[str] = "walk"
    least_bps: int
    most_bps: int
    interval_ms: float
    deviation: float


@dataclass(frozen=True)
class Outage:
    """Times at which a link sends nothing, after times at which it sends.

    Parameters
    ----------
    up_s, down_s
        How long it sends, and does not, s.
    kind
        Whether these are the times, or means of exponentially distributed ones.
    """

    up_s: float
    down_s: float
    kind: Literal["periodic", "exponential"] = "periodic"


@dataclass(frozen=True)
class Policer:
    """A token bucket in front of a link's queue, which drops what exceeds it.

    Parameters
    ----------
    rate_bps
        Bits per second that fill it.
    burst_bytes
        Bytes that it holds.
    """

    rate_bps: int
    burst_bytes: int


@dataclass(frozen=True)
class Jitter:
    """By how much each packet is late.

    Parameters
    ----------
    kind
        How these times are distributed.
    mean_ms
        Their mean, ms; uniform: they go from zero to twice that.
    deviation_ms
        Normal: their standard deviation, ms; times below zero are none.
    reorders
        Packets overtake each other; else one that is late makes those behind it late.
    """

    kind: Literal["exponential", "normal", "uniform"]
    mean_ms: float
    deviation_ms: float | None = None
    reorders: bool = False


#: How the rate of a link changes with time.
Rate = TraceRate | StepsRate | MarkovRate | WalkRate


@dataclass(frozen=True)
class Direction:
    """What is different in one direction of a link; the fields are those of `Link`.

    Parameters
    ----------
    rate_bps, delay_ms, queue_packets, erasure_ratio, rate, outage, policer, jitter, queue_bytes, \
queue_ms
        As of the link; none = as the link.
    """

    rate_bps: int | None = None
    delay_ms: float | None = None
    queue_packets: int | None = None
    erasure_ratio: float | None = None
    rate: Rate | None = None
    outage: Outage | None = None
    policer: Policer | None = None
    jitter: Jitter | None = None
    queue_bytes: int | None = None
    queue_ms: float | None = None


@dataclass(frozen=True)
class Link:
    """A link, alike in both directions where these do not say otherwise.

    Parameters
    ----------
    rate_bps
        Bits per second; none where ``rate`` says how they change.
    delay_ms
        Propagation delay in each direction, ms, from 0.
    queue_packets
        Packets that wait in each direction; more are dropped. None where ``queue_bytes`` or
        ``queue_ms`` says it.
    erasure_ratio
        Share of packets lost, independently of each other, 0 to 1.
    rate
        How its rate changes with time, by itself: all that is compared finds the same rates.
    outage
        Times at which it sends nothing; none = never.
    policer
        What is dropped before it comes to the queue; none = nothing.
    jitter
        By how much each packet is late; none = not at all.
    queue_bytes
        Bytes that wait, in place of packets.
    queue_ms
        Longest that a packet may wait, ms, in place of packets.
    forward, backward
        What is different from the first end to the second, and back.

    Examples
    --------
    >>> rate = MarkovRate((2e6, 8e6), dwell_s=0.5)
    >>> link = Link(None, 10, 50, rate=rate, jitter=Jitter("exponential", 2))
    >>> results = run(Plan(Chain(1, link), [Flow(0, 1, tcp=Tcp())], duration_s=20, warm_up_s=5))
    >>> bool(1e6 < results["goodput_bps"].item() < 8e6)
    True
    """

    rate_bps: int | None
    delay_ms: float
    queue_packets: int | None
    erasure_ratio: float = 0.0
    rate: Rate | None = None
    outage: Outage | None = None
    policer: Policer | None = None
    jitter: Jitter | None = None
    queue_bytes: int | None = None
    queue_ms: float | None = None
    forward: Direction | None = None
    backward: Direction | None = None


@dataclass(frozen=True)
class Chain:
    """Nodes 0 to ``count`` in a row, with links alike between them.

    Parameters
    ----------
    count
        How many links.
    link
        Each of them.
    """

    count: int
    link: Link

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        table = _table(self)
        return {"kind": "chain", "links": {"count": table["count"], **table["link"]}}


@dataclass(frozen=True)
class Dumbbell:
    """Senders 0 to n-1, receivers n to 2n-1, and a bottleneck between their two routers.

    Parameters
    ----------
    pairs
        How many senders, n.
    access
        Links between hosts and routers.
    bottleneck
        The link between the routers.
    """

    pairs: int
    access: Link
    bottleneck: Link

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        return {"kind": "dumbbell", **_table(self)}


@dataclass(frozen=True)
class Tcp:
    """TCP of a flow: a preset, and what is different from it.

    Parameters
    ----------
    preset
        ``linux``: the kernel's, with ``cubic``, ``reno`` or ``bbr``; ``ns2``: the agents of
        ns-2.35; ``constrained``: nodes with little memory.
    variant
        Congestion control; none = ``cubic`` for ``linux``, ``newreno`` for the others.
    window_packets_max
        Largest window, packets; none = the preset's.
    more
        Other keys of a plan file's ``tcp`` table.
    """

    preset: TcpPreset = "linux"
    variant: TcpVariant | None = None
    window_packets_max: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TcpNc:
    """TCP/NC under a flow's TCP.

    Parameters
    ----------
    redundancy
        Redundancy factor R, from 1.
    more
        Other keys of a plan file's ``tcp_nc`` table.
    """

    redundancy: float
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """What a flow's application sends.

    Parameters
    ----------
    kind
        ``ftp``: all that TCP can carry; ``fixed``: so many packets; ``rate``: no faster than a
        rate; ``cbr``: datagrams at a rate, without TCP.
    packets
        For ``fixed``: packets.
    rate_bps
        For ``rate`` and ``cbr``: bits of data per second.
    """

    kind: Literal["ftp", "fixed", "rate", "cbr"] = "ftp"
    packets: int | None = None
    rate_bps: float | None = None


@dataclass(frozen=True)
class Flow:
    """A flow from one node to another.

    Parameters
    ----------
    sender
        Node of the sender.
    receiver
        Node of the receiver.
    source
        What its application sends.
    tcp
        Its TCP; none for ``cbr``.
    tcp_nc
        Network coding under TCP; none = plain TCP.
    start_s
        When it starts, s.
    stop_s
        When its application stops, s; none = at the end.
    """

    sender: int
    receiver: int
    source: Source = Source()
    tcp: Tcp | None = None
    tcp_nc: TcpNc | None = None
    start_s: float = 0.0
    stop_s: float | None = None

    def table(self) -> dict[str, Any]:
        """Return the ``[[flow]]`` table of a plan file."""
        table = _table(self)
        return {"from": table.pop("sender"), "to": table.pop("receiver"), **table}


@dataclass(frozen=True)
class Sweep:
    """Lists of values for paths into the plan, side by side; several sweeps are crossed.

    Parameters
    ----------
    values
        Path, as ``network.links.erasure_ratio`` or ``flow.0.tcp_nc.redundancy``, to its values: a
        list or an array.
    """

    values: Mapping[str, Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True)
class Output:
    """What is kept of the results.

    Parameters
    ----------
    metrics
        Names of metrics, ``flow.*.NAME`` for that of every flow; none = all.
    series_s
        Length of the intervals at which the course of every flow, link and station is kept, s, from
        0.001; none = no course.
    delays
        Whether the histogram of every flow's delays is kept, for quantiles of all replications
        together: `corridor.stats.quantile_ci`.
    """

    metrics: Sequence[str] | None = None
    series_s: float | None = None
    delays: bool = False


@dataclass(frozen=True)
class Plan:
    """A network, its flows, what is swept, and how often each point is run.

    Parameters
    ----------
    network
        The network.
    flows
        The flows.
    duration_s
        Simulated time, s.
    replications
        How often each point is run.
    sweeps
        What varies.
    warm_up_s
        When measuring begins, s, from 0.
    seed
        Seed of all random streams, from 0.
    name
        Name, for messages.
    output
        What is kept; none = all measures, and no course.
    """

    network: Chain | Dumbbell
    flows: Sequence[Flow]
    duration_s: float
    replications: int = 1
    sweeps: Sequence[Sweep] = ()
    warm_up_s: float = 0.0
    seed: int = 0
    name: str = "plan"
    output: Output | None = None

    def text(self) -> str:
        """Return the plan file that says the same."""
        flows, sweeps = _all("flows", self.flows, Flow), _all("sweeps", self.sweeps, Sweep)
        if not isinstance(self.network, Chain | Dumbbell):
            raise ValueError(f"network = {self.network!r}: expected a Chain or a Dumbbell")
        return tomli_w.dumps(
            {
                "name": self.name,
                "seed": integer("seed", self.seed, 0, WORD_MAX),
                "duration_s": _number("duration_s", self.duration_s),
                "warm_up_s": _number("warm_up_s", self.warm_up_s),
                "replications": integer("replications", self.replications, 1, REPLICATIONS_MAX),
                **({"output": _table(self.output)} if self.output else {}),
                "network": self.network.table(),
                "flow": [flow.table() for flow in flows],
                "sweep": [
                    {path: [_plain(value) for value in values] for path, values in each.items()}
                    for each in (sweep.values for sweep in sweeps)
                ],
            }
        )


@dataclass(frozen=True)
class PlanText:
    """The text of a plan file; traces that it names are looked for in a directory.

    Parameters
    ----------
    toml
        TOML.
    directory
        Where traces are.
    """

    toml: str
    directory: Path = Path()

    @classmethod
    def read(cls, path: Path | str) -> PlanText:
        """Read a plan file.

        Raises
        ------
        OSError
            Where there is none to read.
        """
        return cls(Path(path).read_text(encoding="utf-8"), Path(path).parent)

    def text(self) -> str:
        """Return the text."""
        return self.toml


def _table(value: Any) -> dict[str, Any]:
    """Return a dataclass as a table: without what is None, and with ``more`` in its place."""
    kind = getattr(value, "KIND", None)
    table: dict[str, Any] = {} if kind is None else {"kind": kind}
    hints = get_type_hints(type(value))
    for each in fields(value):
        item = getattr(value, each.name)
        if each.name == "more":
            table.update(item)
        elif is_dataclass(item):
            table[each.name] = _table(item)
        elif isinstance(item, Sequence) and not isinstance(item, str):
            table[each.name] = [_table(i) if is_dataclass(i) else _plain(i) for i in item]
        elif item is not None:
            table[each.name] = _checked(
                f"{type(value).__name__}.{each.name}", item, hints[each.name]
            )
    return table


def _checked(name: str, item: Any, hint: Any) -> Any:
    """Return what a field has, as TOML knows it, or say what its type is."""
    options = get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)
    literals = [option for option in options if get_origin(option) is Literal]
    choices = [choice for literal in literals for choice in get_args(literal)]
    if choices:
        if item not in choices:
            expected = ", ".join(map(repr, choices))
            raise ValueError(f"{name} = {item!r}: expected one of {expected}")
        return item
    if int in options:
        # 2e6 is a whole number too.
        is_whole = isinstance(item, float) and item.is_integer()
        return integer(name, int(item) if is_whole else item, 0)
    return _number(name, item) if float in options else _plain(item)


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} = {value!r}: expected a number") from None


T = TypeVar("T")


def _all(name: str, given: Sequence[T], kind: type[T]) -> Sequence[T]:
    """Check that there is a list of such."""
    word = kind.__name__
    if not isinstance(given, Sequence):
        raise ValueError(f"{name} = {given!r}: expected a list of {word}")
    for place, each in enumerate(given):
        if not isinstance(each, kind):
            raise ValueError(f"{name}[{place}] = {each!r}: expected a {word}")
    return given


def _plain(value: Any) -> Any:
    """Return a value without types of numpy, which TOML does not know."""
    return value.item() if isinstance(value, np.generic) else value


def run(
    plan: Plan | PlanText,
    *,
    replications: int | None = None,
    jobs: int | None = None,
    executor: Anywhere | None = None,
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
    executor
        What makes the runs elsewhere instead, in batches: any of `concurrent.futures`, or a
        `distributed.Client` of Dask. The values are the same. A cluster makes again what a worker
        that is lost had under way; a worker with another version of the simulator is refused.
        Traces that a plan names are to be found by all workers.
    progress
        Called with the number of replications done, and that of all; none = a bar on stderr, if it
        is a terminal and the runs take longer than two seconds.

    Returns
    -------
    A Dataset with the dimensions ``point``, ``replication`` and ``flow``. What is swept is a
    coordinate of ``point``; what flows measure is ``flow.NAME``. NaN is what does not apply. With
    ``series_s`` in the plan's output there is a dimension ``time``, too, and what flows, links and
    stations did in each interval: ``flow_series.NAME``, ``link_series.NAME``,
    ``station_series.NAME``. With ``delays`` there is ``delays.packets`` with the dimension
    ``delay``: how many packets of a flow had a delay in the bin that ends there.

    Raises
    ------
    ValueError
        For a plan that cannot be: it names the field, its value, and what is expected.
    """
    if not isinstance(plan, Plan | PlanText):
        hint = "; PlanText.read reads a file" if isinstance(plan, str | Path) else ""
        raise ValueError(f"plan = {plan!r}: expected a Plan or a PlanText{hint}")
    directory = plan.directory if isinstance(plan, PlanText) else Path()
    jobs = integer("jobs", jobs if jobs is not None else os.cpu_count() or 1, 1, JOBS_MAX)
    if replications is not None:
        replications = integer("replications", replications, 1, REPLICATIONS_MAX)
    asked = (plan.text(), str(directory), replications)
    runs = _native.PlanRuns(*asked)
    points, count = runs.points, runs.replications
    with Bar("replications") as bar:
        told = progress if progress is not None else partial(bar.told, "replications")
        if executor is None:
            flat, rows = runs.run(0, points * count, jobs, told)
        else:
            flat, rows = run_batches(executor, asked, points * count, told)
    columns, parameters = runs.columns(), runs.parameters()
    values = flat.reshape(len(columns), points, count)
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
    tables = []
    for table, texts in runs.tables():
        numbers, cells = rows[table]
        told_of = {name: {"units": unit, "long_name": what} for name, unit, what, _ in texts}
        named = dict(zip(told_of, cells, strict=True))
        tables.append(LongTable(table, numbers // count, numbers % count, named, told_of))
    return with_tables(xr.Dataset(data, coords, attrs), tables)
