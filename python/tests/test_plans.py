"""Plans as dataclasses: they cover all keys of the schema, and give the expected files."""

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from corridor import _native, plans, sim
from corridor.plans import (
    Chain,
    Coding,
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
    Policer,
    Radio,
    RadioNetwork,
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
    TraceRate,
    Tunnel,
    UdpDelivery,
    WalkRate,
)  # fmt: skip

TOP = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((TOP / "share" / "corridor-plan.schema.json").read_text())

#: Tables of a plan file, and the corresponding classes.
TABLES: dict[str, tuple[type, ...]] = {
    "": (Plan, Scenario), "stop": (Stop,), "output": (Output,), "medium": (Medium,),
    "line": (Link,), "run": (Run,), "run.coding": (Coding,), "run.relay": (Relay,),
    "run.coding.delivery_udp": (UdpDelivery,),
    "network": (Chain, Dumbbell, Explicit, RadioNetwork),
    "network.radio": (Radio,), "network.radio.path_loss": (PathLoss,),
    "network.radio.fading": (Fading,), "network.tunnel": (Tunnel,),
    "network.tunnel.coding": (Coding,), "network.tunnel.coding.delivery_udp": (UdpDelivery,),
    "network.relay": (Relay,), "network.route": (Route,),
    "network.routing": (Routing,), "flow": (Flow,), "flow.source": (Source,), "flow.tcp": (Tcp,),
    "flow.tcp_nc": (TcpNc,),
}  # fmt: skip
#: Parts of a link, in any network.
OF_LINKS: dict[str, tuple[type, ...]] = {
    "rate": (TraceRate, StepsRate, MarkovRate, WalkRate), "rate.steps": (Step,),
    "outage": (Outage,), "policer": (Policer,), "jitter": (Jitter,), "erasure": (Erasure,),
    "forward": (Direction,), "backward": (Direction,),
}  # fmt: skip
#: Keys whose fields have another name.
NAMES = {
    "sweep": "sweeps", "run": "runs", "flow": "flows", "network.route": "routes",
    "network.tunnel": "tunnels",
    "network.links": "link", "network.link": "links", "flow.from": "sender", "flow.to": "receiver",
}  # fmt: skip
#: Keys without a field: the class gives the kind, `Chain` the number of links, and `replications`
#: stands for repeats.
NONE = {"repeats", "network.kind", "line.count", "line.between"}
LINKS = ("line", "network.links", "network.access", "network.bottleneck", "network.link")


def classes(path: str) -> tuple[type, ...]:
    for link in sorted(LINKS, key=len, reverse=True):
        if path == link:
            return (Link, Chain)
        if path.startswith(f"{link}."):
            rest = path.removeprefix(f"{link}.")
            for way in ("forward.", "backward."):
                rest = rest.removeprefix(way)
            return OF_LINKS[rest]
    return TABLES[path]


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    """The keys of a table, of a list of tables, or of either."""
    if "properties" in schema:
        found: dict[str, Any] = schema["properties"]
        return found
    for part in [schema.get("items", {}), *schema.get("anyOf", [])]:
        if isinstance(part, dict) and part and (found := properties(part)):
            return found
    return {}


def missing(schema: dict[str, Any], path: str = "") -> list[str]:
    """Keys without a field, in this table and its subtables."""
    if path == "sweep":
        return []
    known = {each.name for one in classes(path) for each in fields(one)}
    if any(hasattr(one, "KIND") for one in classes(path)):
        known.add("kind")
    lacking = []
    for key, of in properties(schema).items():
        full = f"{path}.{key}".lstrip(".")
        if NAMES.get(full, key) not in known and full not in NONE:
            lacking.append(full)
        if properties(of):
            lacking += missing(of, full)
    return lacking


def test_every_key_of_the_schema_has_a_field() -> None:
    assert missing(SCHEMA) == []


def test_the_walk_finds_a_key_without_a_field() -> None:
    changed = json.loads(json.dumps(SCHEMA))
    tcp = changed["properties"]["flow"]["items"]["properties"]["tcp"]
    tcp["properties"]["new_key"] = {"type": "number"}
    rate = changed["properties"]["line"]["properties"]["forward"]["properties"]["rate"]
    rate["properties"]["shape"] = {"type": "number"}
    assert missing(changed) == ["line.forward.rate.shape", "flow.tcp.new_key"]


LINK = Link(2_000_000, 10, 50)
FLOW = Flow(0, 1, tcp=Tcp(rtt_sampling="timestamps", preset="ns2", ecn=True))
PLANS: list[Plan | Scenario] = [
    Plan(Explicit(3, [
        Link(2_000_000, 5, 20, between=(0, 1)),
        Link(None, 5, 20, between=(1, 2), rate=StepsRate([Step(0, 1_000_000), Step(1, 2_000_000)]),
             erasure=Erasure("gilbert-elliott", loss_ratio=0.1, burst_packets=3),
             forward=Direction(erasure_ratio=0.0), policer=Policer(1_000_000, 20_000)),
    ], routes=[Route([0, 1, 2], both_ways=True)]), [Flow(0, 2, tcp=Tcp())], 3),
    Plan(RadioNetwork("line", Radio("dcf", standard="g", path_loss=PathLoss(exponent=3.0),
                                    fading=Fading(k=3.0, doppler_hz=5)),
                      nodes=3, spacing_m=20, relay=Relay(hold_ms=5)),
         [Flow(0, 2, Source("cbr", rate_bps=100_000))], 2, output=Output(tables=True)),
    Plan(RadioNetwork("line", Radio("802.15.4"), nodes=3, spacing_m=8, routing=Routing("nst-aodv")),
         [Flow(0, 2, Source("fixed", packets=3), tcp=Tcp("constrained", rto="coap"),
               payload_bytes=48)], 30, until_done=True),
    Plan(RadioNetwork("line", [Radio("dcf", nodes=[1, 2]), Radio("dcf", nodes=[1, 2, 3])],
                      nodes=4, spacing_m=20, links=[Link(1_000_000, 5, 20, between=(0, 1))],
                      routes=[Route([0, 1, 2])],
                      tunnels=[Tunnel((0, 3), Coding("block")), Tunnel((1, 3), helper=2)]),
         [Flow(0, 3, tcp=Tcp(), tunnel=0),
          Flow(1, 2, Source("on-off", rate_bps=1e5, on_s=0.1, off_s=0.2), broadcast=True)], 2),
    Plan(Chain(1, LINK, routes=[Route([0, 1])]), [FLOW], 5, start_jitter_s=0.5,
         stop=Stop("goodput_bps", ci95_half_width=1e4, against={"network.links.delay_ms": 10}),
         sweeps=[Sweep({"network.links.delay_ms": [5, 10]})]),
    Plan(Dumbbell(2, LINK, Link(1_000_000, 20, 30, outage=Outage(2, 0.1))),
         [Flow(0, 2, tcp_nc=TcpNc(1.2, field="gf16"), tcp=Tcp()),
          Flow(1, 3, tcp=Tcp("linux", "bbr"))], 3, description="two"),
    Scenario([Run("coded", "tcp", 0.1, congestion="cubic", duration_s=1,
                  coding=Coding("window", goal="low-delay", half_duplex=True,
                                delivery_udp=UdpDelivery(quic="in-order")))],
             line=Link(5_000_000, 10, queue_ms=50, jitter=Jitter("uniform", 1))),
    Scenario([Run(["plain", "coded"], "udp", [0.0, 0.2], offered_bps=1_000_000)],
             Medium("half", 12_000_000, 4, 4), duration_s=0.5, ingress_packets=50, warm_up_s=0.2,
             link_errors="fixed", sweeps=[Sweep({"medium.rtt_ms": [2, 8]})]),
]  # fmt: skip


@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_what_they_say_is_a_plan_that_can_be_run(plan: Plan | Scenario) -> None:
    text = plan.text()
    assert tomllib.loads(text)["seed"] == 0
    runs = _native.PlanRuns(text, "", 1)
    assert runs.points >= 1


def test_a_line_gives_what_its_text_gives() -> None:
    scenario = PLANS[6]
    given = tomllib.loads(scenario.text())
    assert given["line"] == {
        "rate_bps": 5_000_000, "delay_ms": 10.0, "queue_ms": 50.0,
        "jitter": {"kind": "uniform", "mean_ms": 1.0, "reorders": False},
    }  # fmt: skip
    results = sim.run(scenario)
    assert 0 < results["goodput_bps"].item() < 5e6


def test_what_is_exported_is_there() -> None:
    assert all(hasattr(plans, name) and hasattr(sim, name) for name in plans.__all__)
