"""Complete plans: a network with flows, or runs on a radio; sweeps, replications, outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tomli_w
from numpy.typing import NDArray

from corridor._integer import WORD_MAX, integer
from corridor.plans._flows import Flow
from corridor.plans._links import Link
from corridor.plans._radio_network import RadioNetwork, Tunnel
from corridor.plans._radios import Route
from corridor.plans._runs import Medium, Run
from corridor.plans._toml import all_of, number, plain, table, with_routes

#: Largest number of replications per point.
REPLICATIONS_MAX = 10_000


@dataclass(frozen=True)
class Chain:
    """Nodes 0 to ``count`` in a row, joined by identical links.

    Parameters
    ----------
    count
        Number of links.
    link
        The link, the same for all.
    routes
        Explicit routes; all other packets take the route with the fewest links.
    tunnels
        Tunnels between nodes.
    """

    count: int
    link: Link
    routes: Sequence[Route] = ()
    tunnels: Sequence[Tunnel] = ()

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        found = table(self)
        links = {"count": found.pop("count"), **found.pop("link")}
        return {"kind": "chain", "links": links, **with_routes(found)}


@dataclass(frozen=True)
class Dumbbell:
    """Senders 0 to n-1, receivers n to 2n-1, and a bottleneck link between their two routers.

    Parameters
    ----------
    pairs
        Number of senders, n.
    access
        Links between hosts and routers, all identical.
    bottleneck
        The link between the routers.
    routes
        Explicit routes; all other packets take the route with the fewest links.
    tunnels
        Tunnels between nodes.
    """

    pairs: int
    access: Link
    bottleneck: Link
    routes: Sequence[Route] = ()
    tunnels: Sequence[Tunnel] = ()

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        return {"kind": "dumbbell", **with_routes(table(self))}


@dataclass(frozen=True)
class Explicit:
    """Nodes joined by individually specified links.

    Parameters
    ----------
    nodes
        Number of nodes.
    links
        The links, each with the nodes it is ``between``.
    routes
        Explicit routes; all other packets take the route with the fewest links.
    tunnels
        Tunnels between nodes.
    """

    nodes: int
    links: Sequence[Link]
    routes: Sequence[Route] = ()
    tunnels: Sequence[Tunnel] = ()

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        found = table(self)
        return {"kind": "explicit", "link": found.pop("links"), **with_routes(found)}


@dataclass(frozen=True)
class Sweep:
    """Lists of values for keys of the plan. Lists in one sweep vary together; sweeps are crossed.

    Parameters
    ----------
    values
        From a key's path, such as ``network.links.erasure_ratio`` or ``flow.0.tcp_nc.redundancy``,
        to its values: a list or an array.
    """

    values: Mapping[str, Sequence[Any] | NDArray[Any]]


@dataclass(frozen=True)
class Output:
    """Which results to keep.

    Parameters
    ----------
    metrics
        Names of metrics, ``flow.*.NAME`` for that of every flow; None: all.
    series_s
        Interval of the time series of every flow, link and station, s, from 0.001; None: no time
        series.
    delays
        Whether to keep each flow's delay histogram, to compute quantiles over all replications with
        `corridor.stats.quantile_ci`.
    tables
        Whether to keep long tables of flows, links, nodes and frame outcomes, too.
    """

    metrics: Sequence[str] | None = None
    series_s: float | None = None
    delays: bool = False
    tables: bool = False


@dataclass(frozen=True)
class Stop:
    """Stop rule: when a point has enough replications.

    Parameters
    ----------
    metric
        Name of the metric whose mean is to be estimated.
    ci95_ratio
        Stop when the full width of the 95 % confidence interval, divided by the mean, is at most
        this.
    ci95_half_width
        Stop when the half-width of that interval is at most this, in the unit of the metric;
        instead of ``ci95_ratio``.
    against
        Estimate the paired difference, replication by replication, from the point that has these
        parameter values and is otherwise identical; None: the mean itself.
    replications_min
        Smallest number of values of the metric, from 2; the rule checks after every replication
        from there on; None: 5. Values that are all equal count as converged.
    replications_max
        Number of replications at which the rule gives up; None: 1000.
    """

    metric: str
    ci95_ratio: float | None = None
    ci95_half_width: float | None = None
    against: Mapping[str, Any] | None = None
    replications_min: int | None = None
    replications_max: int | None = None


@dataclass(frozen=True)
class Plan:
    """A network, its flows, the sweeps, and the number of replications.

    Parameters
    ----------
    network
        The network.
    flows
        The flows.
    duration_s
        Simulated time, s.
    replications
        Replications per point; ignored if there is a ``stop`` rule.
    sweeps
        Parameters to sweep.
    warm_up_s
        Time at which measuring begins, s, from 0.
    seed
        Seed of all random streams, from 0.
    name
        Name, used in messages.
    output
        Which results to keep; None: all metrics, no time series.
    description
        A one-sentence description.
    stop
        Stop rule; None: stop after ``replications``.
    start_jitter_s
        Each flow's start is delayed by an independent time, uniform from zero to this, s; None:
        0.1, or 0 where a flow has the preset ``ns2``.
    until_done
        Whether a replication ends as soon as all flows have finished or given up.
    """

    network: Chain | Dumbbell | Explicit | RadioNetwork
    flows: Sequence[Flow]
    duration_s: float
    replications: int = 1
    sweeps: Sequence[Sweep] = ()
    warm_up_s: float = 0.0
    seed: int = 0
    name: str = "plan"
    output: Output | None = None
    description: str | None = None
    stop: Stop | None = None
    start_jitter_s: float | None = None
    until_done: bool | None = None

    def text(self) -> str:
        """Return the equivalent plan file."""
        flows = all_of("flows", self.flows, Flow)
        if not isinstance(self.network, Chain | Dumbbell | Explicit | RadioNetwork):
            expected = "a Chain, a Dumbbell, an Explicit or a RadioNetwork"
            raise ValueError(f"network = {self.network!r}: expected {expected}")
        own = {
            "duration_s": number("duration_s", self.duration_s),
            "warm_up_s": number("warm_up_s", self.warm_up_s),
            "start_jitter_s": self.start_jitter_s,
            "until_done": self.until_done,
        }
        tables = {"network": self.network.table(), "flow": [flow.table() for flow in flows]}
        return _text(self, own, tables)


@dataclass(frozen=True)
class Scenario:
    """Runs between stations on a radio or over a line, the sweeps, and the replications.

    Parameters
    ----------
    runs
        The runs; a list as the value of a field stands for one run with each of its values.
    medium
        The radio; None where there is a ``line``.
    line
        A dedicated link between the two stations, instead of the radio.
    replications
        Replications per point; ignored if there is a ``stop`` rule.
    sweeps
        Parameters to sweep.
    duration_s
        Measured time, s, unless a run sets its own.
    warm_up_s
        Seconds of load before the measured interval; None: 1.
    seed
        Seed of all random streams, from 0.
    name
        Name, used in messages.
    output
        Which results to keep; None: all metrics, no time series.
    description
        A one-sentence description.
    stop
        Stop rule; None: stop after ``replications``.
    ingress_packets
        Capacity of a station's ingress queue, packets; None: as suits its coding.
    link_errors
        Whether stations measure erasure ratios or know them in advance; None: they measure them.

    Examples
    --------
    >>> from corridor import sim
    >>> medium = Medium("half", 12_000_000, rtt_ms=4, queue_frames=4, overhead_us=400)
    >>> run = Run(["plain", "coded"], "udp", e3=0.2, offered_bps=2_000_000, duration_s=1)
    >>> results = sim.run(Scenario([run], medium))
    >>> results["path"].values.tolist()
    ['plain', 'coded']
    >>> loss = results["packet_loss_ratio"].isel(replication=0).values
    >>> bool(loss[0] > 0.15 and loss[1] < 0.05)
    True
    """

    runs: Sequence[Run]
    medium: Medium | None = None
    line: Link | None = None
    replications: int = 1
    sweeps: Sequence[Sweep] = ()
    duration_s: float | None = None
    warm_up_s: float | None = None
    seed: int = 0
    name: str = "scenario"
    output: Output | None = None
    description: str | None = None
    stop: Stop | None = None
    ingress_packets: int | None = None
    link_errors: Literal["measured", "fixed"] | None = None

    def text(self) -> str:
        """Return the equivalent scenario file."""
        runs = all_of("runs", self.runs, Run)
        own = {
            "duration_s": self.duration_s,
            "warm_up_s": self.warm_up_s,
            "ingress_packets": self.ingress_packets,
            "link_errors": self.link_errors,
        }
        tables: dict[str, Any] = {
            "medium": table(self.medium) if self.medium else None,
            "line": table(self.line) if self.line else None,
            "run": [table(run) for run in runs],
        }
        return _text(self, own, tables)


def _text(plan: Plan | Scenario, own: dict[str, Any], tables: dict[str, Any]) -> str:
    """Return the plan file: the keys all plans share, and this plan's own."""
    sweeps = all_of("sweeps", plan.sweeps, Sweep)
    count = integer("replications", plan.replications, 1, REPLICATIONS_MAX)
    whole: dict[str, Any] = {
        "name": plan.name,
        "description": plan.description,
        "seed": integer("seed", plan.seed, 0, WORD_MAX),
        "replications": None if plan.stop else count,
        **own,
        "stop": table(plan.stop) if plan.stop else None,
        "output": table(plan.output) if plan.output else None,
        **tables,
        "sweep": [
            {path: [plain(value) for value in values] for path, values in each.items()}
            for each in (sweep.values for sweep in sweeps)
        ],
    }
    return tomli_w.dumps({key: value for key, value in whole.items() if value is not None})


@dataclass(frozen=True)
class PlanText:
    """The text of a plan file; the traces it names are looked up in ``directory``.

    Parameters
    ----------
    toml
        The text, as TOML.
    directory
        The directory of the traces.
    """

    toml: str
    directory: Path = Path()

    @classmethod
    def read(cls, path: Path | str) -> PlanText:
        """Read a plan file.

        Raises
        ------
        OSError
            If the file cannot be read.
        """
        return cls(Path(path).read_text(encoding="utf-8"), Path(path).parent)

    def text(self) -> str:
        """Return the text."""
        return self.toml
