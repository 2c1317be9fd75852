"""Whole plans: a network with flows, or runs on a radio; sweeps, replications, outputs."""

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

#: Most replications of a point.
REPLICATIONS_MAX = 10_000


@dataclass(frozen=True)
class Chain:
    """Nodes 0 to ``count`` in a row, with links alike between them.

    Parameters
    ----------
    count
        How many links.
    link
        Each of them.
    routes
        Routes of packets; others take the one with the fewest links.
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
    """Senders 0 to n-1, receivers n to 2n-1, and a bottleneck between their two routers.

    Parameters
    ----------
    pairs
        How many senders, n.
    access
        Links between hosts and routers.
    bottleneck
        The link between the routers.
    routes
        Routes of packets; others take the one with the fewest links.
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
    """Nodes joined link by link.

    Parameters
    ----------
    nodes
        How many nodes.
    links
        Each link, with the nodes that it is ``between``.
    routes
        Routes of packets; others take the one with the fewest links.
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
    tables
        Whether long tables of flows, links, nodes and outcomes of frames are left, too.
    """

    metrics: Sequence[str] | None = None
    series_s: float | None = None
    delays: bool = False
    tables: bool = False


@dataclass(frozen=True)
class Stop:
    """When a point has enough replications.

    Parameters
    ----------
    metric
        Name of the metric whose mean is to be known.
    ci95_ratio
        Full width of the 95 % confidence interval over the mean at which it is known well enough.
    ci95_half_width
        Half of the width of that interval, in the unit of the metric, in place of the ratio.
    against
        What is to be known is the difference from the point that has these values of parameters,
        and is otherwise alike, replication by replication; none = the mean itself.
    replications_min
        Values of the metric that are needed, from 2; the rule looks after every replication from
        there on; none = 5. Values that are all the same count as known.
    replications_max
        Replications at which the rule gives up; none = 1000.
    """

    metric: str
    ci95_ratio: float | None = None
    ci95_half_width: float | None = None
    against: Mapping[str, Any] | None = None
    replications_min: int | None = None
    replications_max: int | None = None


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
        How often each point is run; where there is a ``stop``, that says it.
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
    description
        One sentence for people.
    stop
        When a point has enough replications; none = after ``replications``.
    start_jitter_s
        Each flow starts later by a time of its own, uniform from zero to this, s; none = 0.1, or 0
        where a flow has the preset ``ns2``.
    until_done
        Whether a replication ends when all flows are through, or have given up.
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
        """Return the plan file that says the same."""
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
    """Runs of stations on a radio or over a line, what is swept, and how often each is run.

    Parameters
    ----------
    runs
        The runs; a list in one of them stands for a run with each of its values.
    medium
        The radio; none where there is a ``line``.
    line
        A path of their own between the two stations, in place of the radio.
    replications
        How often each point is run; where there is a ``stop``, that says it.
    sweeps
        What varies.
    duration_s
        Seconds that are measured, where runs do not say it themselves.
    warm_up_s
        Seconds of load before; none = 1.
    seed
        Seed of all random streams, from 0.
    name
        Name, for messages.
    output
        What is kept; none = all measures, and no course.
    description
        One sentence for people.
    stop
        When a point has enough replications; none = after ``replications``.
    ingress_packets
        Packets the ingress queue of a station holds; none = what suits its coding.
    link_errors
        Whether stations measure erasure ratios, or know them; none = they measure them.

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
        """Return the scenario's file that says the same."""
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
    """Return the file: what all plans have, and what this one has besides."""
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
