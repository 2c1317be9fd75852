//! Long tables that a replication gives beside its record, with a row for each flow and interval,
//! and the like.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_air::radio::SendOutcome;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::metrics::{self, Measures, Metric, count, real, word};
use crate::record::{Column, Kind, Role};

/// Most rows of all series of a replication: what fits into a journal's line, at 24 characters for
/// a value.
pub const SERIES_ROWS_MAX: usize = 200_000;
/// Shortest interval of a series, seconds.
pub const SERIES_S_MIN: f64 = 1e-3;

/// Most flows whose delays are kept: what fits into a journal's line if every bin of their
/// histograms is filled.
pub const DELAY_FLOWS_MAX: usize = 50;

/// What to keep of a replication besides its record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Keep {
    /// The course, with intervals of this length.
    pub series: Option<Duration>,
    /// Histograms of the flows' delays.
    pub delays: bool,
    /// Totals of flows, links and nodes.
    pub totals: bool,
}

/// The kind of a long table, by what its rows describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// [`FlowInterval`].
    FlowSeries,
    /// [`LinkInterval`].
    LinkSeries,
    /// [`StationInterval`].
    StationSeries,
    /// [`DelayBin`].
    Delays,
    /// [`Tables::add_flow`].
    Flows,
    /// [`LinkTotal`].
    Links,
    /// [`NodeTotal`].
    Nodes,
    /// [`OutcomeTotal`].
    Outcomes,
}

impl TableKind {
    /// All kinds.
    pub const ALL: [TableKind; 8] = [
        TableKind::FlowSeries,
        TableKind::LinkSeries,
        TableKind::StationSeries,
        TableKind::Delays,
        TableKind::Flows,
        TableKind::Links,
        TableKind::Nodes,
        TableKind::Outcomes,
    ];

    /// Its name, which is also that of its file.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::FlowSeries => "flow_series",
            TableKind::LinkSeries => "link_series",
            TableKind::StationSeries => "station_series",
            TableKind::Delays => "delays",
            TableKind::Flows => "flows",
            TableKind::Links => "links",
            TableKind::Nodes => "nodes",
            TableKind::Outcomes => "outcomes",
        }
    }

    /// What a row describes, in a few words.
    pub fn meaning(self) -> &'static str {
        match self {
            TableKind::FlowSeries => "a flow in an interval",
            TableKind::LinkSeries => "the queue of a link, or of an interface, in an interval",
            TableKind::StationSeries => "a station of a tunnel at the end of an interval",
            TableKind::Delays => "a bin of the histogram of a flow's delays",
            TableKind::Flows => "a flow in the measured interval",
            TableKind::Links => "the queue of a link, or of an interface, in the measured interval",
            TableKind::Nodes => "the frames of a node on a radio in the measured interval",
            TableKind::Outcomes => {
                "frames between two nodes with the same outcome and number of attempts, in the \
                 measured interval"
            }
        }
    }

    /// Its columns after point and replication.
    fn metrics(self) -> Vec<(Metric, Role)> {
        fn of<T>(columns: &[FromRow<T>], keys: usize) -> Vec<(Metric, Role)> {
            let role = |place| if place < keys { Role::Key } else { Role::Metric };
            columns.iter().enumerate().map(|(place, (metric, _))| (*metric, role(place))).collect()
        }
        match self {
            TableKind::FlowSeries => of(&FLOW_SERIES, 2),
            TableKind::LinkSeries => of(&LINK_SERIES, 2),
            TableKind::StationSeries => of(&STATION_SERIES, 2),
            TableKind::Delays => of(&DELAYS, 2),
            TableKind::Links => of(&LINKS, 1),
            TableKind::Nodes => of(&NODES, 1),
            TableKind::Outcomes => of(&OUTCOMES, 1),
            TableKind::Flows => {
                let metrics = metrics::of_flows().into_iter().map(|metric| (metric, Role::Metric));
                [(FLOW_NUMBER, Role::Key)].into_iter().chain(metrics).collect()
            }
        }
    }

    /// Its columns: point and replication, then those of a [`Rows`].
    pub fn columns(self) -> Vec<Column> {
        let key = |name, meaning| Column::new(name, Role::Key, Kind::Integer, "1", meaning);
        let own = self.metrics().into_iter();
        [
            key("point", "index in the plan, from 0"),
            key("replication", "index of the replication, from 0"),
        ]
        .into_iter()
        .chain(own.map(|(metric, role)| Column { role, ..metric.column() }))
        .collect()
    }
}

impl TableKind {
    /// The words of a column of texts, which [`Rows`] store as numbers from 0.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            TableKind::Outcomes => &FRAME_ENDS,
            _ => &[],
        }
    }
}

/// Rows of a table from one replication, by column; NaN stands for values that do not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rows {
    #[serde(with = "absent_as_null")]
    columns: Vec<Vec<f64>>,
}

impl Rows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns, in the order of [`TableKind::columns`] without point and replication; empty
    /// without rows.
    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    /// Rows with these columns, all of one length.
    pub fn from_columns(columns: Vec<Vec<f64>>) -> Self {
        debug_assert!(columns.iter().all(|column| column.len() == columns[0].len()));
        Rows { columns }
    }

    fn push(&mut self, values: impl ExactSizeIterator<Item = f64>) {
        self.columns.resize_with(values.len(), Vec::new);
        self.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
}

/// Stores NaN as null, since JSON has no NaN.
mod absent_as_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(given: &[Vec<f64>], out: S) -> Result<S::Ok, S::Error> {
        let told = |value: &f64| Some(*value).filter(|value| value.is_finite());
        let columns = given.iter().map(|column| column.iter().map(told).collect::<Vec<_>>());
        columns.collect::<Vec<_>>().serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Vec<f64>>, D::Error> {
        let columns = Vec::<Vec<Option<f64>>>::deserialize(from)?;
        let column = |column: Vec<Option<f64>>| {
            column.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()
        };
        Ok(columns.into_iter().map(column).collect())
    }
}

/// The tables of one replication.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tables(BTreeMap<TableKind, Rows>);

impl Tables {
    /// Number of rows of all tables.
    pub fn row_count(&self) -> usize {
        self.0.values().map(Rows::len).sum()
    }
}

impl Tables {
    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(Rows::is_empty)
    }

    /// The rows of a table, if it has any.
    pub fn rows(&self, kind: TableKind) -> Option<&Rows> {
        self.0.get(&kind)
    }

    /// Adds a row.
    pub fn add<T: TableRow>(&mut self, row: &T) {
        self.0.entry(T::KIND).or_default().push(row.values());
    }
}

/// The result of a replication. Converted to JSON and back it stays the same to the last bit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Replication {
    /// The measurements for its record.
    pub measures: Measures,
    /// The tables.
    #[serde(default, skip_serializing_if = "Tables::is_empty")]
    pub tables: Tables,
}

/// A row of a long table.
pub trait TableRow: sealed::Sealed {
    /// The table that it belongs to.
    const KIND: TableKind;

    /// Its values, in the order of the table's columns.
    fn values(&self) -> impl ExactSizeIterator<Item = f64>;
}

mod sealed {
    pub trait Sealed {}
}

/// A column, and its field in a row.
type FromRow<T> = (Metric, fn(&T) -> f64);

/// Makes a type a row of a table.
macro_rules! table_row {
    ($row:ty, $kind:expr, $columns:expr) => {
        impl sealed::Sealed for $row {}

        impl TableRow for $row {
            const KIND: TableKind = $kind;

            fn values(&self) -> impl ExactSizeIterator<Item = f64> {
                $columns.iter().map(|(_, value)| value(self))
            }
        }
    };
}

fn or_absent(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn count_or_absent(value: Option<u64>) -> f64 {
    or_absent(value.map(|count| count as f64))
}

const FLOW_NUMBER: Metric = count("flow", "1", "number of the flow, from 0");
const TIME: Metric = real("time_s", "s", "start of the interval, since the load started");

/// A flow in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct FlowInterval {
    pub flow: usize,
    pub time_s: f64,
    pub payload_bytes: u64,
    pub goodput_bps: f64,
    pub delay_mean_s: Option<f64>,
    pub delay_p95_s: Option<f64>,
    pub rtt_mean_s: Option<f64>,
    pub srtt_s: Option<f64>,
    pub cwnd_mean_packets: Option<f64>,
    pub packets_retransmitted: Option<u64>,
    pub timeouts: Option<u64>,
}

const FLOW_SERIES: [FromRow<FlowInterval>; 11] = [
    (FLOW_NUMBER, |row| row.flow as f64),
    (TIME, |row| row.time_s),
    (count("payload_bytes", "B", "data received, without headers"), |row| row.payload_bytes as f64),
    (real("goodput_bps", "bit/s", "data received per second, without headers"), |row| {
        row.goodput_bps
    }),
    (real("delay_mean_s", "s", "one-way in-order delay of received packets, mean"), |row| {
        or_absent(row.delay_mean_s)
    }),
    (real("delay_p95_s", "s", "the same, 95th percentile, within 1 %"), |row| {
        or_absent(row.delay_p95_s)
    }),
    (real("rtt_mean_s", "s", "round-trip times of packets sent once, mean"), |row| {
        or_absent(row.rtt_mean_s)
    }),
    (real("srtt_s", "s", "smoothed round-trip time at the end of the interval"), |row| {
        or_absent(row.srtt_s)
    }),
    (
        real("cwnd_mean_packets", "packets", "congestion window, mean over the time it was active"),
        |row| or_absent(row.cwnd_mean_packets),
    ),
    (count("packets_retransmitted", "packets", "packets retransmitted"), |row| {
        count_or_absent(row.packets_retransmitted)
    }),
    (count("timeouts", "1", "retransmission timeouts"), |row| count_or_absent(row.timeouts)),
];

table_row!(FlowInterval, TableKind::FlowSeries, FLOW_SERIES);

/// The queue of a link, or of an interface, in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct LinkInterval {
    pub link: usize,
    pub time_s: f64,
    pub from: usize,
    pub to: Option<usize>,
    pub queue_packets: u64,
    pub packets_offered: u64,
    pub packets_dropped: u64,
    pub packets_lost: u64,
}

const LINK_SERIES: [FromRow<LinkInterval>; 8] = [
    (count("link", "1", "number of the link or interface, from 0"), |row| row.link as f64),
    (TIME, |row| row.time_s),
    (count("from", "1", "sending node"), |row| row.from as f64),
    (count("to", "1", "receiving node; none on a radio, where several may receive"), |row| {
        count_or_absent(row.to.map(|node| node as u64))
    }),
    (count("queue_packets", "packets", "queued at the end of the interval"), |row| {
        row.queue_packets as f64
    }),
    (count("packets_offered", "packets", "offered to the queue, including those dropped"), |row| {
        row.packets_offered as f64
    }),
    (count("packets_dropped", "packets", "of these, dropped because the queue was full"), |row| {
        row.packets_dropped as f64
    }),
    (count("packets_lost", "packets", "accepted, but lost on the path or given up"), |row| {
        row.packets_lost as f64
    }),
];

table_row!(LinkInterval, TableKind::LinkSeries, LINK_SERIES);

/// A station of a tunnel at the end of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct StationInterval {
    pub station: usize,
    pub time_s: f64,
    pub queue_packets: u64,
    pub rate_bps: Option<u64>,
    pub loss_ratio: f64,
    pub frames_sent: u64,
    pub symbols_repaired: u64,
    pub packets_delivered: u64,
}

const STATION_SERIES: [FromRow<StationInterval>; 8] = [
    (count("station", "1", "0 is S, 1 is D, 2 is the helper; the next tunnel's follow"), |row| {
        row.station as f64
    }),
    (TIME, |row| row.time_s),
    (count("queue_packets", "packets", "in the ingress queue at the end of the interval"), |row| {
        row.queue_packets as f64
    }),
    (count("rate_bps", "bit/s", "estimated frame rate at the end"), |row| {
        count_or_absent(row.rate_bps)
    }),
    (
        real("loss_ratio", "1", "latest estimate of e3, the erasure ratio encoder to decoder"),
        |row| row.loss_ratio,
    ),
    (count("frames_sent", "packets", "frames sent in the interval"), |row| row.frames_sent as f64),
    (count("symbols_repaired", "1", "losses repaired in the interval, at the receiver"), |row| {
        row.symbols_repaired as f64
    }),
    (count("packets_delivered", "packets", "delivered to the host in the interval"), |row| {
        row.packets_delivered as f64
    }),
];

table_row!(StationInterval, TableKind::StationSeries, STATION_SERIES);

/// A non-empty bin of the histogram of a flow's delays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct DelayBin {
    pub flow: usize,
    pub delay_s: f64,
    pub packets: u64,
}

const DELAYS: [FromRow<DelayBin>; 3] = [
    (FLOW_NUMBER, |row| row.flow as f64),
    (
        real("delay_s", "s", "one-way delay in order, upper end of the bin, which is 0.1 % wide"),
        |row| row.delay_s,
    ),
    (count("packets", "packets", "packets with this delay"), |row| row.packets as f64),
];

table_row!(DelayBin, TableKind::Delays, DELAYS);

impl Tables {
    /// Adds the histogram of a flow's delays, which has a given number of units per second.
    pub fn add_delays(&mut self, flow: usize, histogram: &Histogram<u64>, parts_per_s: f64) {
        for bin in histogram.iter_recorded() {
            let delay_s = bin.value_iterated_to() as f64 / parts_per_s;
            self.add(&DelayBin { flow, delay_s, packets: bin.count_at_value() });
        }
    }
}

impl Tables {
    /// Adds the totals of a flow.
    pub fn add_flow(&mut self, flow: usize, measures: &Measures) {
        let measured = metrics::of_flows().into_iter().map(|metric| {
            or_absent(measures.value(&metrics::flow_column(flow, metric.name)).number())
        });
        let values: Vec<f64> = [flow as f64].into_iter().chain(measured).collect();
        self.0.entry(TableKind::Flows).or_default().push(values.into_iter());
    }
}

/// The queue of a link, or of an interface, in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct LinkTotal {
    pub link: usize,
    pub from: usize,
    pub to: Option<usize>,
    pub packets_offered: u64,
    pub packets_dropped: u64,
    pub packets_lost: u64,
}

const LINKS: [FromRow<LinkTotal>; 6] = [
    (count("link", "1", "number of the link or interface, from 0"), |row| row.link as f64),
    (count("from", "1", "sending node"), |row| row.from as f64),
    (count("to", "1", "receiving node; none on a radio, where several may receive"), |row| {
        count_or_absent(row.to.map(|node| node as u64))
    }),
    (count("packets_offered", "packets", "offered to the queue, including those dropped"), |row| {
        row.packets_offered as f64
    }),
    (count("packets_dropped", "packets", "of these, dropped because the queue was full"), |row| {
        row.packets_dropped as f64
    }),
    (count("packets_lost", "packets", "accepted, but lost on the path or given up"), |row| {
        row.packets_lost as f64
    }),
];

table_row!(LinkTotal, TableKind::Links, LINKS);

/// Totals of a node's frames on a radio in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct NodeTotal {
    pub node: usize,
    pub frames_offered: u64,
    pub frames_refused: u64,
    pub frame_attempts: u64,
    pub frames_delivered: u64,
    pub frames_given_up: u64,
    pub frames_blocked: Option<u64>,
    pub frames_received: u64,
    pub frames_overheard: u64,
    pub frames_undecoded: Option<u64>,
    pub sending_s: f64,
    pub receiving_s: Option<f64>,
}

const NODES: [FromRow<NodeTotal>; 12] = [
    (count("node", "1", "number of the node, from 0"), |row| row.node as f64),
    (count("frames_offered", "frames", "offered to its interface"), |row| {
        row.frames_offered as f64
    }),
    (count("frames_refused", "frames", "of these, dropped because its queue was full"), |row| {
        row.frames_refused as f64
    }),
    (count("frame_attempts", "1", "transmissions of data, retries included"), |row| {
        row.frame_attempts as f64
    }),
    (count("frames_delivered", "frames", "received by their destination node"), |row| {
        row.frames_delivered as f64
    }),
    (count("frames_given_up", "frames", "given up after the last attempt"), |row| {
        row.frames_given_up as f64
    }),
    (count("frames_blocked", "frames", "given up because the channel was not free"), |row| {
        count_or_absent(row.frames_blocked)
    }),
    (count("frames_received", "frames", "received, unicast to it or broadcast"), |row| {
        row.frames_received as f64
    }),
    (count("frames_overheard", "frames", "overheard, addressed to others"), |row| {
        row.frames_overheard as f64
    }),
    (count("frames_undecoded", "frames", "reception started but not decoded"), |row| {
        count_or_absent(row.frames_undecoded)
    }),
    (real("sending_s", "s", "transmit time"), |row| row.sending_s),
    (real("receiving_s", "s", "receive time"), |row| or_absent(row.receiving_s)),
];

table_row!(NodeTotal, TableKind::Nodes, NODES);

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrameEnd {
    /// It was delivered; on a radio with acknowledgments, it was acknowledged.
    #[default]
    Delivered,
    /// It was broadcast; who received it is not reported.
    Sent,
    /// It found the queue full, or exceeded a policer.
    Refused,
    /// It was sent and lost, without retries.
    Lost,
    /// Its last attempt was not acknowledged.
    GivenUp,
    /// The channel was never free.
    Blocked,
}

impl From<SendOutcome> for FrameEnd {
    fn from(outcome: SendOutcome) -> Self {
        match outcome {
            SendOutcome::Acknowledged => FrameEnd::Delivered,
            SendOutcome::Sent => FrameEnd::Sent,
            SendOutcome::RetryLimit => FrameEnd::GivenUp,
            SendOutcome::ChannelAccess => FrameEnd::Blocked,
        }
    }
}

/// Their names in tables.
const FRAME_ENDS: [&str; 6] = ["delivered", "sent", "refused", "lost", "given_up", "blocked"];

/// Frames from one node to another with the same outcome, in the measured interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct OutcomeTotal {
    pub from: usize,
    pub to: Option<usize>,
    pub outcome: FrameEnd,
    pub attempts: u32,
    pub frames: u64,
}

const OUTCOMES: [FromRow<OutcomeTotal>; 5] = [
    (count("from", "1", "sending node"), |row| row.from as f64),
    (count("to", "1", "destination node; none: broadcast, or not known"), |row| {
        count_or_absent(row.to.map(|node| node as u64))
    }),
    (
        word(
            "outcome",
            "delivered; sent to all; refused by a full queue or a policer; lost; given_up after \
             the last attempt; blocked, the channel was never free",
        ),
        |row| row.outcome as usize as f64,
    ),
    (count("attempts", "1", "transmissions of each frame"), |row| f64::from(row.attempts)),
    (count("frames", "frames", "frames with this outcome"), |row| row.frames as f64),
];

table_row!(OutcomeTotal, TableKind::Outcomes, OUTCOMES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_survives_json_and_columns_are_those_that_are_told() {
        let mut tables = Tables::default();
        let row = FlowInterval { flow: 1, time_s: 0.5, payload_bytes: 7, ..Default::default() };
        tables.add(&row);
        tables.add(&FlowInterval { rtt_mean_s: Some(1.0 / 3.0), ..row });
        let json = serde_json::to_string(&tables).unwrap();
        assert!(json.starts_with("{\"flow_series\":[[1.0,1.0],[0.5,0.5],[7.0,7.0]"), "{json}");
        let read: Tables = serde_json::from_str(&json).unwrap();
        let rows = read.rows(TableKind::FlowSeries).unwrap();
        let columns = TableKind::FlowSeries.columns();
        assert_eq!((rows.len(), rows.columns().len() + 2), (2, columns.len()));
        let place = columns.iter().position(|column| column.name == "rtt_mean_s").unwrap() - 2;
        assert!(rows.columns()[place][0].is_nan());
        assert_eq!(rows.columns()[place][1], 1.0 / 3.0);
        assert!(read.rows(TableKind::LinkSeries).is_none() && !read.is_empty());
    }

    /// The quantiles of the bins equal those of the histogram.
    #[test]
    fn the_bins_of_a_histogram_are_all_of_it() {
        let mut histogram = Histogram::new_with_bounds(1_000, 600_000_000_000, 3).unwrap();
        (1..=10_000u64).for_each(|place| histogram.record(place * place * 1_000).unwrap());
        let mut tables = Tables::default();
        tables.add_delays(3, &histogram, 1e9);
        let columns = tables.rows(TableKind::Delays).unwrap().columns();
        assert_eq!(columns[2].iter().sum::<f64>(), 10_000.0);
        assert!(columns[1].is_sorted() && columns[0].iter().all(|&flow| flow == 3.0));
        let mut below = 0.0;
        let reaches = |packets: &f64| {
            below += packets;
            below >= 9_500.0
        };
        let place = columns[2].iter().position(reaches).unwrap();
        assert_eq!(columns[1][place], histogram.value_at_quantile(0.95) as f64 / 1e9);
    }

    #[test]
    fn every_outcome_has_its_word() {
        assert_eq!(FRAME_ENDS[FrameEnd::Delivered as usize], "delivered");
        assert_eq!(FRAME_ENDS[FrameEnd::Lost as usize], "lost");
        assert_eq!(FrameEnd::Blocked as usize + 1, FRAME_ENDS.len());
        for kind in TableKind::ALL {
            let texts = kind.columns().iter().filter(|column| column.kind == Kind::Text).count();
            assert_eq!(texts, usize::from(!kind.words().is_empty()), "{kind:?}");
        }
    }

    /// The last kind is the last in the list.
    #[test]
    fn all_tables_are_listed() {
        assert_eq!(TableKind::Outcomes as usize + 1, TableKind::ALL.len());
        let places = TableKind::ALL.iter().map(|&kind| kind as usize);
        assert!(places.eq(0..TableKind::ALL.len()));
    }

    #[test]
    fn names_of_tables_and_columns_are_unique() {
        for (place, kind) in TableKind::ALL.iter().enumerate() {
            assert!(TableKind::ALL[..place].iter().all(|other| other.name() != kind.name()));
            let columns = kind.columns();
            for (place, column) in columns.iter().enumerate() {
                assert!(columns[..place].iter().all(|other| other.name != column.name));
                let has_unit = column.kind == Kind::Text || !column.unit.is_empty();
                assert!(!column.meaning.is_empty() && has_unit);
            }
            let keys = columns.iter().take_while(|column| column.role == Role::Key).count();
            let all = columns.iter().filter(|column| column.role == Role::Key).count();
            assert!(keys == all && keys > 2, "keys stand first: {kind:?}");
        }
    }
}
