"""Plans as frozen dataclasses, covering everything a plan file can express.

A `Plan` is a network with flows; a `Scenario` is a set of runs between stations on a radio or over
a line. Both have sweeps, replications or a stop rule, and a choice of outputs. A field that is
`None` is left out of the plan file, so that the file format's default applies. ``text()`` returns
the equivalent plan file; `PlanText` wraps an existing one.
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
