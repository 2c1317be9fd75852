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
    """Corridor's endpoints at two nodes, whose frames go over UDP, hop by hop.

    Parameters
    ----------
    between
        The nodes at its ends.
    coding
        Coding parameters; none = window mode as it is by default, blocks with a helper.
    plain
        Carry packets as they are, in place of coding: the unreliable forwarder; none = left out.
    ingress_packets
        Packets the ingress queue of an end holds; none = what suits its coding.
    helper
        A node that overhears the tunnel's frames, recodes them, and sends to either end; none =
        none. Where it and both ends hear each other on one radio, frames go on it as they are,
        without UDP. Else they go over UDP, hop by hop: it overhears them on any hop by radio in
        its range, and its own take the network's routes.
    """

    between: Sequence[int]
    coding: Coding | None = None
    plain: bool | None = None
    ingress_packets: int | None = None
    helper: int | None = None


@dataclass(frozen=True)
class RadioNetwork:
    """Nodes with places, joined by radios.

    Parameters
    ----------
    kind
        Which shape.
    radio
        The nodes' radios, and the MAC over them; a list: several, each on a channel of its own.
    nodes
        Line, star, random, matrix: how many nodes; none = left out.
    columns
        Grid: nodes in a row; none = left out.
    rows
        Grid: rows of nodes; none = left out.
    spacing_m
        Line, grid: from each node to the next, metres. Star: from the centre to the others;
        none = left out.
    row_spacing_m
        Grid: from each row to the next, metres; none = as ``spacing_m``.
    width_m
        Random: of the area, metres; none = left out.
    height_m
        Random: of the area, metres; none = left out.
    path
        Positions: a file with x, y, and z where it is not 0, in metres, a node in each
        line. Matrix: a file with a link in each line: from, to, and its loss in dB (with an
        ideal MAC the share of frames lost); behind it may be the share of frames lost
        whatever their power. It is looked for beside the plan; none = left out.
    relay
        Nodes on radios: relays that combine packets of different flows; none = left out.
    routes
        Routes of packets; others take the one with the fewest links.
    routing
        Radios: how nodes discover routes; none = they know those with the fewest
        links.
    links
        Wires besides, with the nodes that each is ``between``.
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
