//! A scenario's run with TCP load, in virtual time: a sender and a receiver on the hosts of S and
//! D, their segments as IP packets through the daemon's stations and the radio between them.
//!
//! What is measured is what the lab measures (`lab/src/load/tcp.rs`). Records of the application
//! fill a segment each. Without a rate, the application writes as long as less than two are
//! unsent, and a record is stamped when it leaves for the first time; with a rate, when it is due,
//! so that its delay includes the wait for TCP. A record's delay ends when all before it have
//! arrived too. Senders are set as kernels are (`sender_config`). Connections come about before
//! the load begins, or not at all, as in the lab.

mod opening;
mod packet;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use core::time::Duration;

use corridor_air::Medium;
use corridor_base::Time;
use corridor_scenario::{
    CodingCounts, Congestion, DESTINATION, Direction, Engine, Path, Row, Run, SOURCE, Scenario,
    Side,
};
use hdrhistogram::Histogram;

use self::opening::Opening;
use self::packet::{Content, Kind};
use crate::core::watch::Watcher;
use crate::plan::udp::{
    SimError, WARM_UP, air_shares, check_run, delay_histogram, delays, drop_ratio, meet,
    radio_medium, station,
};
use crate::tcp::{
    Receiver, ReceiverConfig, Reduction, RtoConfig, Segment, Sender, SenderConfig, Variant,
    VegasConfig,
};
use crate::world::{Node, World};

/// Records that a sender without a rate may have unsent, as in the lab.
const UNSENT_PACKETS_MAX: u64 = 2;
/// Packets of data that wait unsent when the application has a rate and TCP cannot follow; the
/// application then waits. About what a kernel's send buffer grows to.
const BACKLOG_PACKETS_MAX: u64 = 4_096;
/// Longest time until all connections are there; others then never send, as in the lab.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Largest window in packets: what a kernel's receive buffer of 6 MB offers at most.
const WINDOW_PACKETS_MAX: u32 = 2_048;
/// Longest delay of an acknowledgement in the Linux kernel at first (`TCP_DELACK_MIN`).
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// Runs TCP load over `run`'s path in virtual time.
///
/// # Errors
/// [`SimError::Unsupported`] for kernel paths, and for BBR.
pub fn run_tcp(scenario: &Scenario, run: &Run) -> Result<Row, SimError> {
    run_tcp_after(scenario, run, WARM_UP)
}

/// The same after so much load that is not measured.
pub(crate) fn run_tcp_after(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
) -> Result<Row, SimError> {
    let mut hosts = Hosts::new(scenario, run, warm_up)?;
    hosts.run();
    Ok(hosts.report(scenario, run))
}

/// The same, before the eyes of somebody. The row is that of what was run until they had enough.
pub(crate) fn watch_tcp(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    watcher: Box<dyn Watcher>,
) -> Result<Row, SimError> {
    let mut hosts = Hosts::new(scenario, run, warm_up)?;
    hosts.world.set_watcher(watcher);
    hosts.run();
    Ok(hosts.report(scenario, run))
}

/// Packets that a host has received and not yet looked at.
type Inbox = Rc<RefCell<VecDeque<Vec<u8>>>>;

/// TCP on two hosts, and the radio between them.
struct Hosts {
    world: World,
    flows: Vec<Flow>,
    inboxes: [Inbox; 2],
    packet: Vec<u8>,
    /// When the stations had met.
    met_at: Time,
    /// Load that is not measured, and load that is.
    warm_up: Duration,
    duration: Duration,
}

impl Hosts {
    fn new(scenario: &Scenario, run: &Run, warm_up: Duration) -> Result<Self, SimError> {
        check_run(scenario, run)?;
        let duration = Duration::from_secs_f64(run.duration_s);
        let inboxes = [SOURCE, DESTINATION].map(|_| Inbox::default());
        let mut nodes = Vec::new();
        for index in 0..run.stations() {
            let station = station(scenario, run, index)?;
            // A helper has no host.
            let inbox = inboxes.get(index).cloned().unwrap_or_default();
            let sink = move |_, packet: &[u8]| inbox.borrow_mut().push_back(packet.to_vec());
            nodes.push(Node::new(station, sink));
        }
        let world = World::new(Medium::new(radio_medium(scenario, run))?, nodes);
        let mtu = world.nodes()[SOURCE].station.tunnel_mtu();
        let directions: &[(usize, usize)] = match run.direction {
            Direction::Forward => &[(SOURCE, DESTINATION)],
            Direction::Both => &[(SOURCE, DESTINATION), (DESTINATION, SOURCE)],
        };
        let flows = directions.iter().map(|&ends| Flow::new(run, ends, mtu));
        let flows = flows.collect::<Result<Vec<_>, _>>()?;
        Ok(Hosts {
            world,
            flows,
            inboxes,
            packet: Vec::new(),
            met_at: Time::ZERO,
            warm_up,
            duration,
        })
    }

    fn run(&mut self) {
        self.met_at = meet(&mut self.world);
        self.flows.iter_mut().for_each(|flow| flow.opening = Opening::new(self.met_at));
        self.work();
        let is_open = |hosts: &Self| hosts.flows.iter().all(|flow| flow.opening.is_over());
        self.run_until(self.met_at + CONNECT_MAX, is_open);
        let begin = self.world.now();
        let start = begin + self.warm_up;
        let end = start + self.duration;
        self.flows.iter_mut().for_each(|flow| flow.begin(begin, (start, end)));
        self.work();
        self.run_until(end, |_| false);
        self.flows.iter_mut().for_each(|flow| flow.note_window(end));
    }

    /// Runs until a time, or until something has come about.
    fn run_until(&mut self, end: Time, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) && !self.world.is_watched_enough() {
            let Some(at) = self.next_event().filter(|&at| at < end) else {
                return self.world.run_until(end);
            };
            self.world.run_until(at);
            self.work();
        }
    }

    fn next_event(&mut self) -> Option<Time> {
        let now = self.world.now();
        let flows = self.flows.iter().flat_map(Flow::timers);
        self.world.next_event().into_iter().chain(flows).map(|at| at.max(now)).min()
    }

    /// Does all that is to be done now.
    fn work(&mut self) {
        let now = self.world.now();
        loop {
            let mut is_done = true;
            for at in [SOURCE, DESTINATION] {
                let received = core::mem::take(&mut *self.inboxes[at].borrow_mut());
                for packet in received {
                    is_done = false;
                    self.take(now, &packet);
                }
            }
            for index in 0..self.flows.len() {
                self.flows[index].advance(now);
                while let Some((host, content)) = self.flows[index].poll_transmit(now) {
                    is_done = false;
                    self.send(now, index, host, &content);
                }
            }
            if is_done {
                return;
            }
            self.world.settle();
        }
    }

    /// A packet for one of the hosts.
    fn take(&mut self, now: Time, packet: &[u8]) {
        let Some(parsed) = packet::parse(packet) else { return };
        let Some(flow) = self.flows.get_mut(parsed.flow) else { return };
        let payload_bytes = flow.sender.config().payload_bytes;
        match parsed.kind {
            Kind::Data => {
                let near = flow.receiver.next_expected();
                flow.receiver.handle_segment(now, &parsed.segment(now, near, payload_bytes));
                flow.note_delivered(now);
            }
            Kind::Ack => {
                let near = flow.sender.acknowledged();
                flow.sender.handle_segment(now, &parsed.segment(now, near, payload_bytes));
            }
            kind => flow.opening.note(kind),
        }
    }

    fn send(&mut self, now: Time, flow: usize, host: usize, content: &Content) {
        self.packet.clear();
        let payload_bytes = self.flows[flow].sender.config().payload_bytes;
        packet::write(content, flow, payload_bytes, now, &mut self.packet);
        // A full ingress queue drops it, and counts.
        self.world.node_mut(host).station.handle_packet(now, &self.packet);
    }

    fn report(&self, scenario: &Scenario, run: &Run) -> Row {
        let mut row = Row::new(scenario, run, Engine::Sim);
        let mut all = delay_histogram();
        for flow in &self.flows {
            let added = all.add(&flow.delays);
            debug_assert!(added.is_ok());
        }
        let sides = self.flows.iter().map(|flow| flow.side(run.duration_s)).collect();
        row.set_sides(sides, delays(&all));
        let counts = |index: usize| CodingCounts::from(self.world.nodes()[index].station.stats());
        let encoders: Vec<_> = self.flows.iter().map(|flow| counts(flow.from)).collect();
        let helper = (run.path == Path::CodedHelper).then(|| counts(2));
        row.set_coding(&encoders, helper.as_ref(), run.coding_params().block_size);
        let (bytes, utilisation) = air_shares(&self.world, self.met_at);
        let payload: u64 = self.flows.iter().map(Flow::bytes_delivered).sum();
        row.air_bytes_per_byte = (payload > 0).then(|| bytes / payload as f64);
        row.air_utilisation = Some(utilisation);
        row.air_drop_ratio = drop_ratio(&self.world);
        row
    }
}

/// A connection with data in one direction.
struct Flow {
    from: usize,
    to: usize,
    opening: Opening,
    /// When the application began to write, if it has.
    begun: Option<Time>,
    sender: Sender,
    receiver: Receiver,
    /// Time between two records, for an application with a rate.
    interval_ns: Option<f64>,
    /// When each record was stamped that has not been delivered.
    stamps: VecDeque<Time>,
    /// Records that have left.
    left: u64,
    delivered: u64,
    measured_from: Time,
    measured_until: Time,
    bytes: u64,
    delays: Histogram<u64>,
    /// Congestion window times seconds in the measured interval, until `window_noted_at`.
    window_seconds: f64,
    window: f64,
    window_noted_at: Time,
}

impl Flow {
    fn new(run: &Run, (from, to): (usize, usize), mtu: usize) -> Result<Self, SimError> {
        let config = sender_config(variant(run)?, mtu);
        let interval_ns = |bps: f64| 8e9 * f64::from(config.payload_bytes) / bps;
        Ok(Flow {
            from,
            to,
            opening: Opening::new(Time::ZERO),
            begun: None,
            sender: Sender::new(config)?,
            receiver: Receiver::new(receiver_config())?,
            interval_ns: run.offered_bps.map(interval_ns),
            stamps: VecDeque::new(),
            left: 0,
            delivered: 0,
            measured_from: Time::ZERO,
            measured_until: Time::ZERO,
            bytes: 0,
            delays: delay_histogram(),
            window_seconds: 0.0,
            window: 0.0,
            window_noted_at: Time::ZERO,
        })
    }

    /// The application begins to write, if there is a connection; what is measured, is told.
    fn begin(&mut self, now: Time, (measured_from, measured_until): (Time, Time)) {
        self.begun = self.opening.is_over().then_some(now);
        self.opening.give_up();
        (self.measured_from, self.measured_until) = (measured_from, measured_until);
    }

    /// When the next record is due, with a rate.
    fn record_due(&self) -> Option<Time> {
        let (begun, interval_ns) = (self.begun?, self.interval_ns?);
        Some(begun + Duration::from_nanos((self.sender.offered() as f64 * interval_ns) as u64))
    }

    fn unsent(&self) -> u64 {
        self.sender.offered() - self.sender.acknowledged() - self.sender.in_flight()
    }

    fn timers(&self) -> impl Iterator<Item = Time> {
        let record = self.record_due().filter(|_| self.unsent() < BACKLOG_PACKETS_MAX);
        let segments = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        segments.into_iter().chain([record, self.opening.poll_timeout()]).flatten()
    }

    /// Lets timers fire, and the application write.
    fn advance(&mut self, now: Time) {
        self.note_window(now);
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
        self.write_records(now);
    }

    fn write_records(&mut self, now: Time) {
        while self.begun.is_some() {
            let stamp = match self.record_due() {
                Some(due) if due <= now && self.unsent() < BACKLOG_PACKETS_MAX => due,
                None if self.unsent() < UNSENT_PACKETS_MAX => now,
                _ => return,
            };
            self.sender.offer(1);
            if self.interval_ns.is_some() {
                self.stamps.push_back(stamp);
            }
        }
    }

    /// Without a rate, a record is stamped when it leaves for the first time.
    fn note_left(&mut self, now: Time, segment: &Segment) {
        if let Segment::Data { sequence, .. } = *segment
            && self.interval_ns.is_none()
            && sequence == self.left
        {
            self.left += 1;
            self.stamps.push_back(now);
        }
    }

    /// What is sent next, and the host that sends it.
    fn poll_transmit(&mut self, now: Time) -> Option<(usize, Content)> {
        if let Some(content) = self.opening.poll_sender(now) {
            return Some((self.from, content));
        }
        if let Some(content) = self.opening.poll_receiver() {
            return Some((self.to, content));
        }
        if let Some(segment) = self.sender.poll_transmit(now) {
            self.note_left(now, &segment);
            self.write_records(now);
            return Some((self.from, Content::Segment(segment)));
        }
        Some((self.to, Content::Segment(self.receiver.poll_transmit(now)?)))
    }

    /// Measures what the receiver has delivered since.
    fn note_delivered(&mut self, now: Time) {
        let is_measured = (self.measured_from..self.measured_until).contains(&now);
        while self.delivered < self.receiver.delivered() {
            self.delivered += 1;
            let Some(stamp) = self.stamps.pop_front() else { return };
            if is_measured {
                self.bytes += u64::from(self.sender.config().payload_bytes);
                self.delays.saturating_record((now - stamp).as_nanos() as u64);
            }
        }
    }

    /// Adds up the window since it was noted last.
    fn note_window(&mut self, now: Time) {
        let from = self.window_noted_at.max(self.measured_from);
        let until = now.min(self.measured_until);
        if until > from {
            self.window_seconds += self.window * (until - from).as_secs_f64();
            self.window_noted_at = until;
        }
        self.window = self.sender.stats().cwnd_packets;
    }

    fn bytes_delivered(&self) -> u64 {
        self.delivered * u64::from(self.sender.config().payload_bytes)
    }

    fn side(&self, duration_s: f64) -> Side {
        let stats = self.sender.stats();
        Side {
            from: self.from,
            goodput_bps: 8.0 * self.bytes as f64 / duration_s,
            delays: delays(&self.delays),
            tcp_retransmits: Some(stats.retransmissions),
            tcp_rtt_s: stats.srtt.map(|srtt| srtt.as_secs_f64()),
            tcp_timeouts: Some(stats.timeouts),
            tcp_cwnd_packets: Some(self.window_seconds / duration_s),
            ..Side::default()
        }
    }
}

/// What the run's congestion control is called here.
pub(crate) fn variant(run: &Run) -> Result<Variant, SimError> {
    match run.congestion.unwrap_or(Congestion::Cubic) {
        Congestion::Cubic => Ok(Variant::Cubic),
        Congestion::Reno => Ok(Variant::Reno),
        Congestion::NewReno => Ok(Variant::NewReno),
        Congestion::Sack => Ok(Variant::Sack),
        Congestion::Vegas => Ok(Variant::Vegas(VegasConfig::default())),
        Congestion::Tahoe => Ok(Variant::Tahoe),
        Congestion::Bbr => Err(SimError::Unsupported {
            field: "congestion",
            given: Congestion::Bbr.to_string(),
            expected: "cubic, reno, newreno, sack, vegas and tahoe",
        }),
    }
}

/// A sender as the Linux kernel's: initial window 10, timestamps, selective acknowledgements where
/// the variant has them, its timeouts, HyStart for Cubic, no ECN.
fn sender_config(variant: Variant, mtu: usize) -> SenderConfig {
    SenderConfig {
        window_packets_max: WINDOW_PACKETS_MAX,
        ecn: false,
        hystart: true,
        // What is in flight grows beyond the window while a packet is missing: half of that would
        // fill the ingress queue anew after each timeout.
        reduction: Reduction::Window,
        rto: RtoConfig::linux(),
        payload_bytes: mtu.saturating_sub(packet::DATA_HEADERS_LEN) as u32,
        header_bytes: packet::DATA_HEADERS_LEN as u32,
        ..SenderConfig::rfc(variant)
    }
}

/// A receiver as the Linux kernel's: every second packet is acknowledged, others after 40 ms, with
/// the window that is left.
fn receiver_config() -> ReceiverConfig {
    ReceiverConfig {
        delayed_ack_packets: 2,
        delayed_ack_timeout: DELAYED_ACK,
        window_packets_max: WINDOW_PACKETS_MAX,
        tells_window: true,
        ..ReceiverConfig::ns2(true)
    }
}
