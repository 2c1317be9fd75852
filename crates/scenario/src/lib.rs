//! Scenario files, plans and result rows, shared by the lab (real time, kernel TCP) and the
//! simulator.
//!
//! A *plan* ([`Plan`]) is the simulator's larger grammar: a scenario, or a network of links with
//! flows, with sweeps over any of its values, replications or a stop rule, and chosen outputs.
//!
//! A scenario is a medium with a list of runs. A field of a run that is a list stands for one run
//! per value; several lists give their product, in the order of the fields, and repeats are
//! interleaved (all runs once, then all again), so that a slow minute of the machine affects all
//! runs alike.
#![forbid(unsafe_code)]

mod against;
mod error;
mod expand;
mod file;
mod limits;
mod line;
mod link;
mod metrics;
mod network;
mod on_air;
mod one_or_many;
mod placement;
mod plan;
mod points;
mod radio;
mod record;
mod relay;
mod row;
mod sweep;
mod tables;
mod topology;
mod traffic;
pub mod values;
mod varying;

pub use corridor_document::Document;
pub use error::ScenarioError;
pub use expand::{
    DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, DESTINATION, DURATION_S_MAX, ETHERNET_MTU, HELPER,
    HOPS_MAX, LabRun, RELAY, RELAYS_MAX, RUNS_MAX, Run, SOURCE, WARM_UP_S_MAX, expand,
    medium_config,
};
pub use file::{
    Congestion, Direction, Duplex, JitterShape, LinkErrorsKind, MediumTable, Path, RunTable,
    Scenario, Transport, UnderlayKind, Wire,
};
pub use limits::{
    FLOWS_MAX, LINK_RATE_BPS_MAX, LINKS_MAX, NETWORK_DURATION_S_MAX, NODES_MAX, TRACE_BYTES_MAX,
};
pub use line::line_config;
pub use metrics::{Described, Measures, catalogue, matches};
pub use network::{
    AckKind, Beyond, DirectionTable, ErasureKind, ErasureTable, FlowTable, LinkTable, NetworkTable,
    ReductionKind, RtoKind, SamplingKind, Shape, SourceKind, SourceTable, TcpNcTable, TcpPreset,
    TcpTable, TcpVariant, TunnelTable,
};
pub use on_air::{OnAir, fairness};
pub use one_or_many::OneOrMany;
pub use placement::{Air, Cell, PLACES_BYTES_MAX, RADIOS_MAX};
pub use plan::{
    Load, PLAN_BYTES_MAX, Plan, Point, REPLICATIONS_MAX, Radio, Replications, StopRule, read_file,
    schema,
};
pub use radio::{
    BackoffKind, Dot11, FadingTable, MacKind, PathLossTable, RadioTable, RouteTable, RoutingKind,
    RoutingMetric, RoutingTable,
};
pub use record::{Column, Kind, Record, Role, Value};
pub use relay::{AdaptiveKind, RelayPreset, RelayTable};
pub use row::{CodingCounts, Delays, Engine, Pings, RelayCounts, Row, Side, policy};
pub use sweep::POINTS_MAX;
pub use tables::{
    DELAY_FLOWS_MAX, DelayBin, FlowInterval, FrameEnd, Keep, LinkInterval, LinkTotal, NodeTotal,
    OutcomeTotal, Replication, Rows, SERIES_ROWS_MAX, SERIES_S_MIN, StationInterval, TableKind,
    TableRow, Tables,
};
pub use topology::{Network, NetworkLink, start_after};
pub use traffic::TUNNELS_MAX;
pub use varying::{
    JitterKind, JitterTable, OutageKind, OutageTable, PolicerTable, RateKind, RateTable, StepTable,
};

/// Version of the records' meaning: incremented when a column changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;
