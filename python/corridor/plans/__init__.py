"""Plans as frozen dataclasses: all that a plan file can say.

`Plan` is a network with flows, `Scenario` runs of stations on a radio or over a line; both have
sweeps, replications or a stop rule, and a choice of outputs. `None` leaves a key out: the file's
default holds. ``text()`` gives the file that says the same, `PlanText` is one that is there.
"""

from corridor.plans._flows import Flow, Source, Tcp, TcpNc, TcpPreset, TcpVariant
from corridor.plans._links import (
    Direction,
    Erasure,
    Jitter,
    Link,
    MarkovRate,
    Outage,
    Policer,
    Rate,
    Step,
    StepsRate,
    TraceRate,
    WalkRate,
)
from corridor.plans._plan import (
    REPLICATIONS_MAX,
    Chain,
    Dumbbell,
    Explicit,
    Output,
    Plan,
    PlanText,
    Scenario,
    Stop,
    Sweep,
)
from corridor.plans._radio_network import RadioNetwork, Tunnel
from corridor.plans._radios import Fading, PathLoss, Radio, Relay, Route, Routing
from corridor.plans._runs import (
    Coding,
    Congestion,
    Crossing,
    Delivery,
    Medium,
    Preset,
    Run,
    UdpDelivery,
)

__all__ = [
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
]
