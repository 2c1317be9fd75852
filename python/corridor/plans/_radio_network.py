"""Networks of radios, and tunnels between nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from corridor.plans._links import Link
from corridor.plans._radios import Radio, Relay, Route, Routing
from corridor.plans._runs import Coding
from corridor.plans._toml import table, with_routes


@dataclass(frozen=True)
class Tunnel:
    """A pair of Corridor endpoints at two nodes; their frames go over UDP, hop by hop.

    Parameters
    ----------
    between
        The nodes at its ends.
    coding
        Coding parameters; None: window mode with its defaults, or blocks if there is a helper.
    plain
        Whether to forward packets uncoded and unreliably, instead of coding; None: no.
    ingress_packets
        Capacity of the ingress queue at each end, packets; None: as suits its coding.
    helper
        A node that overhears the tunnel's frames, recodes them, and sends to either end; None: no
        helper. Where the helper and both ends hear each other on one radio, frames go over that
        radio directly, without UDP. Otherwise they go over UDP, hop by hop: the helper overhears
        them on any radio hop within range, and its own frames follow the network's routes.
    """

    between: Sequence[int]
    coding: Coding | None = None
    plain: bool | None = None
    ingress_packets: int | None = None
    helper: int | None = None


@dataclass(frozen=True)
class RadioNetwork:
    """Nodes with positions, joined by radios.

    Parameters
    ----------
    kind
        Shape of the network.
    radio
        The nodes' radio and its MAC; a list for several radios, each on its own channel.
    nodes
        Line, star, random, matrix: number of nodes.
    columns
        Grid: nodes per row.
    rows
        Grid: number of rows.
    spacing_m
        Line, grid: distance between neighbouring nodes, metres. Star: from the centre to the
        others.
    row_spacing_m
        Grid: distance between rows, metres; None: as ``spacing_m``.
    width_m
        Random: extent of the area, metres.
    height_m
        Random: extent of the area, metres.
    path
        Positions: a file with one node per line: x, y, and z where it is not 0, in metres. Matrix:
        a file with one link per line: from, to, and its loss in dB (with an ideal MAC, the frame
        loss ratio), optionally followed by the ratio of frames lost regardless of their power. It
        is looked up relative to the plan.
    relay
        Nodes with radios: settings of relays that combine packets of different flows.
    routes
        Explicit routes; all other packets take the route with the fewest links.
    routing
        Radios: how nodes discover routes; None: they know those with the fewest links in advance.
    links
        Additional wired links, each with the nodes it is ``between``.
    tunnels
        Tunnels between nodes.
    """

    kind: Literal["line", "grid", "star", "random", "positions", "matrix"]
    radio: Radio | Sequence[Radio]
    nodes: int | None = None
    columns: int | None = None
    rows: int | None = None
    spacing_m: float | None = None
    row_spacing_m: float | None = None
    width_m: float | None = None
    height_m: float | None = None
    path: str | None = None
    relay: Relay | None = None
    routes: Sequence[Route] = ()
    routing: Routing | None = None
    links: Sequence[Link] = ()
    tunnels: Sequence[Tunnel] = ()

    def table(self) -> dict[str, Any]:
        """Return the ``[network]`` table of a plan file."""
        found = table(self)
        links = found.pop("links")
        return {**with_routes(found), **({"link": links} if links else {})}
