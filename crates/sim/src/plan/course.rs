//! The course of a run: what flows, queues and stations did in each interval.
//!
//! Sampling does not change what happens: the network only stands still and is read between
//! intervals.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{Station, Stats};
use corridor_scenario::{
    FlowInterval, FrameEnd, LinkInterval, LinkTotal, NodeTotal, OutcomeTotal, StationInterval,
    Tables,
};

use crate::core::agent::NodeIndex;
use crate::core::network::{FrameCounts, Interface, Network};
use crate::plan::meter::bps;
use crate::plan::seen::FlowSeen;

/// What is sampled.
pub(crate) trait Observed {
    /// Each flow, in order.
    fn flows(&self, network: &Network) -> Vec<FlowSeen>;

    /// Each queue, in order.
    fn queues(&self, network: &Network) -> Vec<QueueSeen>;

    /// Each node on a radio, with the counters of its frames.
    fn frames(&self, network: &Network) -> Vec<(NodeIndex, FrameCounts)>;

    /// Each station, in order.
    fn stations<'n>(&self, _network: &'n Network) -> Vec<&'n Station> {
        Vec::new()
    }
}

/// A queue, and the nodes that it lies between.
#[derive(Clone, Copy)]
pub(crate) struct QueueSeen {
    pub(crate) from: NodeIndex,
    pub(crate) to: Option<NodeIndex>,
    pub(crate) interface: Interface,
}

/// Records the course of a run.
pub(crate) struct Course {
    interval: Duration,
    begin: Time,
    /// Number of the current interval.
    number: u32,
    /// When it began.
    since: Time,
    flows: Vec<FlowSeen>,
    queues: Vec<QueueSeen>,
    stations: Vec<Counted>,
    tables: Tables,
}

/// A station's counters, to be subtracted from later ones.
#[derive(Clone, Copy, Default)]
struct Counted {
    frames_sent: u64,
    symbols_repaired: u64,
    packets_delivered: u64,
}

impl From<&Stats> for Counted {
    fn from(stats: &Stats) -> Self {
        let &Stats { frames_sent, symbols_repaired, packets_delivered, .. } = stats;
        Counted { frames_sent, symbols_repaired, packets_delivered }
    }
}

impl Course {
    /// A recorder that begins now.
    pub(crate) fn new(interval: Duration, network: &Network, observed: &impl Observed) -> Self {
        let stations = observed.stations(network).into_iter();
        let mut flows = observed.flows(network);
        if network.now() == Time::ZERO {
            // What is sent at time zero counts too.
            flows.fill(FlowSeen::default());
        }
        Course {
            interval,
            begin: network.now(),
            number: 0,
            since: network.now(),
            flows,
            queues: observed.queues(network),
            stations: stations.map(|station| station.stats().into()).collect(),
            tables: Tables::default(),
        }
    }

    /// When the current interval ends.
    fn next(&self) -> Time {
        self.begin + self.interval * (self.number + 1)
    }

    /// The record, whose last interval may be shorter.
    pub(crate) fn finish(mut self, network: &Network, observed: &impl Observed) -> Tables {
        if network.now() > self.since {
            self.take_down(network, observed);
        }
        self.tables
    }

    fn take_down(&mut self, network: &Network, observed: &impl Observed) {
        let now = network.now();
        let time_s = (self.interval * self.number).as_secs_f64();
        let span_s = (now - self.since).as_secs_f64();
        let flows = observed.flows(network);
        for (flow, (seen, before)) in flows.iter().zip(&self.flows).enumerate() {
            self.tables.add(&flow_interval((flow, time_s, span_s), seen, before));
        }
        let queues = observed.queues(network);
        for (link, (seen, before)) in queues.iter().zip(&self.queues).enumerate() {
            self.tables.add(&link_interval((link, time_s), seen, before));
        }
        for (station, (seen, before)) in
            observed.stations(network).into_iter().zip(&mut self.stations).enumerate()
        {
            let row = station_interval((station, time_s), (seen, now), *before);
            *before = seen.stats().into();
            self.tables.add(&row);
        }
        (self.flows, self.queues, self.since) = (flows, queues, now);
        self.number += 1;
    }
}

/// Counters of queues and frames when the measured interval begins, to be subtracted at its end.
pub(crate) struct Totals {
    queues: Vec<QueueSeen>,
    frames: Vec<(NodeIndex, FrameCounts)>,
}

impl Totals {
    pub(crate) fn of(network: &mut Network, observed: &impl Observed) -> Self {
        network.keep_outcomes();
        Totals { queues: observed.queues(network), frames: observed.frames(network) }
    }

    /// Adds to the tables what links and nodes have done since.
    pub(crate) fn add(&self, network: &Network, observed: &impl Observed, tables: &mut Tables) {
        let queues = observed.queues(network);
        for (link, (now, before)) in queues.iter().zip(&self.queues).enumerate() {
            let (seen, then) = (now.interface, before.interface);
            tables.add(&LinkTotal {
                link,
                from: now.from as usize,
                to: now.to.map(|node| node as usize),
                packets_offered: seen.offered - then.offered,
                packets_dropped: seen.dropped - then.dropped,
                packets_lost: seen.lost - then.lost,
            });
        }
        // Only MACs of standards report outcomes of single frames; all radios are of the first
        // one's kind.
        let is_ideal = network.mac(0).is_none();
        for ((node, now), (_, before)) in observed.frames(network).into_iter().zip(&self.frames) {
            let total = node_total(node, now, *before);
            tables.add(&total);
            if is_ideal {
                outcomes_of(&total).for_each(|outcome| tables.add(&outcome));
            }
        }
        for (fate, frames) in network.outcomes() {
            tables.add(&OutcomeTotal {
                from: fate.from as usize,
                to: fate.to.map(|node| node as usize),
                outcome: fate.end,
                attempts: fate.attempts,
                frames,
            });
        }
    }
}

/// Outcomes of frames on a medium that does not report them: each frame is sent once.
fn outcomes_of(total: &NodeTotal) -> impl Iterator<Item = OutcomeTotal> + use<> {
    let counts = [
        (FrameEnd::Delivered, 1, total.frames_delivered),
        (FrameEnd::Refused, 0, total.frames_refused),
        (FrameEnd::Lost, 1, total.frames_given_up),
    ];
    let (from, to) = (total.node, None);
    let row =
        move |(outcome, attempts, frames)| OutcomeTotal { from, to, outcome, attempts, frames };
    counts.into_iter().filter(|&(_, _, frames)| frames > 0).map(row)
}

fn node_total(node: NodeIndex, now: FrameCounts, then: FrameCounts) -> NodeTotal {
    let since = |now: Option<u64>, then: Option<u64>| Some(now? - then.unwrap_or(0));
    let receiving = now.receiving.map(|span| span - then.receiving.unwrap_or_default());
    NodeTotal {
        node: node as usize,
        frames_offered: now.offered - then.offered,
        frames_refused: now.refused - then.refused,
        frame_attempts: now.attempts - then.attempts,
        frames_delivered: now.delivered - then.delivered,
        frames_given_up: now.given_up - then.given_up,
        frames_blocked: since(now.blocked, then.blocked),
        frames_received: now.received - then.received,
        frames_overheard: now.overheard - then.overheard,
        frames_undecoded: since(now.undecoded, then.undecoded),
        sending_s: (now.sending - then.sending).as_secs_f64(),
        receiving_s: receiving.map(|span| span.as_secs_f64()),
    }
}

/// Advances a network to `until`, or until `is_done` returns true, and records its course
/// meanwhile.
pub(crate) fn advance(
    network: &mut Network,
    until: Time,
    course: &mut Option<Course>,
    observed: &impl Observed,
    is_done: impl Fn(&Network) -> bool,
) {
    while let Some(course) = course.as_mut().filter(|course| course.next() <= until) {
        let next = course.next();
        network.run_until_or(next, &is_done);
        if network.now() < next || is_done(network) {
            return;
        }
        course.take_down(network, observed);
    }
    network.run_until_or(until, is_done);
}

fn flow_interval(
    (flow, time_s, span_s): (usize, f64, f64),
    seen: &FlowSeen,
    before: &FlowSeen,
) -> FlowInterval {
    let payload_bytes = seen.payload_bytes - before.payload_bytes;
    let (repeats, repeats_before) = (seen.repeats, before.repeats.unwrap_or_default());
    FlowInterval {
        flow,
        time_s,
        payload_bytes,
        goodput_bps: bps(payload_bytes, span_s),
        delay_mean_s: seen.delays.mean_s,
        delay_p95_s: seen.delays.p95_s,
        rtt_mean_s: seen.rtt.since(before.rtt).seconds(),
        srtt_s: seen.srtt.map(|srtt| srtt.as_secs_f64()),
        cwnd_mean_packets: seen.window.mean_since(before.window),
        packets_retransmitted: repeats.map(|(segments, _)| segments - repeats_before.0),
        timeouts: repeats.map(|(_, timeouts)| timeouts - repeats_before.1),
    }
}

fn link_interval(
    (link, time_s): (usize, f64),
    seen: &QueueSeen,
    before: &QueueSeen,
) -> LinkInterval {
    let (now, then) = (seen.interface, before.interface);
    LinkInterval {
        link,
        time_s,
        from: seen.from as usize,
        to: seen.to.map(|node| node as usize),
        queue_packets: now.waiting as u64,
        packets_offered: now.offered - then.offered,
        packets_dropped: now.dropped - then.dropped,
        packets_lost: now.lost - then.lost,
    }
}

fn station_interval(
    (station, time_s): (usize, f64),
    (seen, now): (&Station, Time),
    before: Counted,
) -> StationInterval {
    let (stats, counted) = (seen.stats(), Counted::from(seen.stats()));
    StationInterval {
        station,
        time_s,
        queue_packets: seen.path(now).queue.packets as u64,
        rate_bps: stats.rate_bps,
        loss_ratio: stats.erasure_ratio_e3,
        frames_sent: counted.frames_sent - before.frames_sent,
        symbols_repaired: counted.symbols_repaired - before.symbols_repaired,
        packets_delivered: counted.packets_delivered - before.packets_delivered,
    }
}
