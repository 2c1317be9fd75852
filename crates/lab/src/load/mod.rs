//! The load: sockets in the namespaces of S and D that send, receive and measure.
//!
//! Every record (TCP) or datagram (UDP) begins with a sequence number and the time it was sent; all
//! namespaces have the same clock, so the difference on arrival is the one-way delay. A TCP source
//! with unlimited data waits for its window in its own socket; its delays therefore begin when the
//! bytes leave the host (`departures.rs`).

mod departures;
mod ping;
mod tcp;
mod udp;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use corridor_base::Time;
use corridor_scenario::{
    DESTINATION, Delays, Direction, Pings, Run, SOURCE, Side, Transport, Wire,
};
use hdrhistogram::Histogram;

use crate::clock;
use crate::emulator::Emulator;
use crate::error::LabError;
use crate::netns::{Inside, Namespace};
use crate::waiting::{Machine, Spent, Watched};
use departures::{Departures, Watch};
use ping::Pinger;
pub use tcp::has_congestion;

/// Time limit for a connection: three attempts of the kernel (at 0, 1 and 3 s).
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Time after the measured interval in which datagrams sent within it may still arrive.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(2);
/// How often waiting threads check whether to stop.
const TICK: Duration = Duration::from_millis(20);
/// Bytes of sequence number and time of sending.
pub(crate) const HEADER_BYTES: usize = 16;
/// Port of the first direction's receiver; the other direction's is the next.
pub(crate) const PORT: u16 = 7700;
/// Common name of the load's threads.
const LOAD: &str = "load";
/// Port of the additional flow beside the load.
const PORT_BESIDE: u16 = 7705;

/// One end of the load.
pub(crate) struct End {
    /// Its network.
    pub(crate) namespace: Namespace,
    /// Its address there.
    pub(crate) address: Ipv4Addr,
}

/// The ends of the load, and what carries it.
pub(crate) struct Course {
    /// S and D, as the load sees them.
    pub(crate) ends: [End; 2],
    /// Where S connects to reach D, if it is not D's own address.
    pub(crate) proxy: Option<SocketAddrV4>,
    /// D's address outside the tunnel, for the flow beside the load.
    pub(crate) outer: Ipv4Addr,
    /// The threads that carry the load.
    pub(crate) carriers: Watched,
}

/// What the load measured.
pub(crate) struct Outcome {
    /// Results of each direction.
    pub(crate) sides: Vec<Side>,
    /// Delays of all directions together.
    pub(crate) delays: Delays,
    /// Payload bytes received in the measured interval.
    pub(crate) payload_bytes: f64,
    /// The flow beside the load.
    pub(crate) beside: Option<Side>,
    /// The echo beside the load.
    pub(crate) pings: Option<Pings>,
    /// Processor time in the measured interval of the threads that carry the load, and of those of
    /// the load itself.
    pub(crate) spent: BTreeMap<&'static str, Spent>,
    /// Share of the processors' time that a hypervisor gave to others in the meantime.
    pub(crate) stolen_ratio: Option<f64>,
    /// Remarks about the run.
    pub(crate) notes: Vec<String>,
    /// Whether received payload differs from what was sent.
    pub(crate) corrupted: bool,
}

/// Times of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Time under load before the measured interval.
    pub(crate) warm_up: Duration,
    /// The measured interval.
    pub(crate) measured: Duration,
}

/// Loads a path and measures. Without an emulator there is no medium to measure.
///
/// The time is bounded by the echo's time without load, connection time (TCP), warm-up, the run's
/// duration and [`DRAIN_MAX`].
pub(crate) fn carry(
    run: &Run,
    mut course: Course,
    emulator: Option<&Emulator>,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let watched = core::mem::take(&mut course.carriers);
    let course = &course;
    let shared = Arc::new(Shared::default());
    // The threads end, however this function returns.
    let _guard = StopOnDrop(Arc::clone(&shared));
    let [source, destination] = &course.ends;
    let pinger = match run.lab.ping_interval {
        Some(interval) => Some(Pinger::start(interval, source, destination, &shared)?),
        None => None,
    };
    if let Some(pinger) = &pinger {
        wait_until(pinger.base_until(), stop)?;
        pinger.load_begins();
    }
    let flows = start_flows(run, course, &shared)?;
    let beside = start_beside(run, course, &shared)?;
    let measured = Duration::from_secs_f64(run.duration_s);
    let times = Times { warm_up: run.lab.warm_up, measured };
    let (results, beside, spent) =
        measure((flows, beside), times, (watched, emulator), &shared, stop)?;
    let mut outcome = outcome(results, measured);
    (outcome.spent, outcome.stolen_ratio) = spent;
    outcome.pings = pinger.map(Pinger::finish).transpose()?;
    outcome.beside = beside.map(|mut beside| {
        outcome.notes.append(&mut beside.notes);
        beside.into_side(measured)
    });
    Ok(outcome)
}

/// A flow of a network.
#[derive(Clone, Debug)]
pub(crate) struct FlowOrder {
    /// The sending node.
    pub(crate) from: usize,
    /// The destination.
    pub(crate) to: usize,
    /// For TCP, its congestion control; `None`: datagrams.
    pub(crate) congestion: Option<String>,
    /// See [`Run::offered_bps`].
    pub(crate) offered_bps: Option<f64>,
    /// For datagrams, payload bytes of each.
    pub(crate) datagram_bytes: Option<usize>,
    /// For datagrams, how much later than the others the first one is sent.
    pub(crate) start: Duration,
}

/// Loads a network with flows between any of its nodes, and measures.
///
/// The time is bounded by connection time (TCP), the times given and [`DRAIN_MAX`].
pub(crate) fn carry_flows(
    orders: &[FlowOrder],
    nodes: &[End],
    times: Times,
    (watched, emulator): (Watched, Option<&Emulator>),
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let shared = Arc::new(Shared::default());
    let _guard = StopOnDrop(Arc::clone(&shared));
    let flow = |(index, order): (usize, &FlowOrder)| {
        let (sender, receiver) = (&nodes[order.from], &nodes[order.to]);
        let port = PORT + index as u16;
        let plan = Plan {
            from: order.from,
            port,
            receiver: SocketAddrV4::new(receiver.address, port),
            congestion: order.congestion.clone(),
            offered_bps: order.offered_bps,
            datagram_bytes: order.datagram_bytes,
            deadline: None,
            no_medium: false,
            start: order.start,
            span: times.warm_up + times.measured,
        };
        match order.congestion {
            Some(_) => tcp::start(plan, sender, receiver, Arc::clone(&shared)),
            None => udp::start(plan, sender, receiver, Arc::clone(&shared)),
        }
    };
    let flows = orders.iter().enumerate().map(flow).collect::<Result<Vec<_>, _>>()?;
    let (results, _, spent) = measure((flows, None), times, (watched, emulator), &shared, stop)?;
    let mut outcome = outcome(results, times.measured);
    (outcome.spent, outcome.stolen_ratio) = spent;
    Ok(outcome)
}

/// Processor time by thread name, and the share that a hypervisor took.
type Processors = (BTreeMap<&'static str, Spent>, Option<f64>);

/// Has started flows send, and measures.
fn measure(
    (flows, beside): (Vec<Flow>, Option<Flow>),
    times: Times,
    (mut watched, emulator): (Watched, Option<&Emulator>),
    shared: &Shared,
    stop: &AtomicBool,
) -> Result<(Vec<FlowResult>, Option<FlowResult>, Processors), LabError> {
    let ready_until = clock::now() + CONNECT_MAX + TICK;
    while flows.iter().chain(&beside).any(|flow| !flow.is_ready()) && clock::now() < ready_until {
        pause(stop)?;
    }
    let begin = clock::now();
    let from = begin + times.warm_up;
    let until = from + times.measured;
    shared.begin(from, until);
    if let Some(emulator) = emulator {
        emulator.measure(begin, from, until);
    }
    for flow in flows.iter().chain(&beside) {
        watched.add_thread(LOAD, flow.sender.id());
        watched.add_thread(LOAD, flow.receiver.id());
    }
    wait_until(from, stop)?;
    let (before, machine_before) = (watched.read(), Machine::read());
    // Slightly early, while all threads exist: they end with the interval.
    wait_until(from + times.measured.saturating_sub(TICK), stop)?;
    let spent = watched.read().since(&before);
    let machine = Machine::read().zip(machine_before);
    let stolen_ratio = machine.and_then(|(now, before)| now.stolen_since(before));
    wait_until(until, stop)?;
    let results = flows.into_iter().map(Flow::finish).collect::<Result<Vec<_>, _>>()?;
    let beside = beside.map(Flow::finish).transpose()?;
    Ok((results, beside, (spent, stolen_ratio)))
}

/// Starts the load itself: a flow for each direction.
fn start_flows(run: &Run, course: &Course, shared: &Arc<Shared>) -> Result<Vec<Flow>, LabError> {
    let directions: &[(usize, usize)] = match run.direction {
        Direction::Forward => &[(SOURCE, DESTINATION)],
        Direction::Both => &[(SOURCE, DESTINATION), (DESTINATION, SOURCE)],
    };
    let flow = |(index, &(from, to)): (usize, &(usize, usize))| {
        let (sender, receiver) = (&course.ends[from], &course.ends[to]);
        let port = PORT + index as u16;
        let plan = Plan {
            from,
            port,
            receiver: course.proxy.unwrap_or(SocketAddrV4::new(receiver.address, port)),
            congestion: run.congestion.map(|congestion| congestion.to_string()),
            offered_bps: run.offered_bps,
            datagram_bytes: run.datagram_bytes,
            deadline: run.lab.deadline,
            no_medium: run.lab.wire == Wire::Veth,
            start: Duration::ZERO,
            span: run.lab.warm_up + Duration::from_secs_f64(run.duration_s),
        };
        match run.transport {
            Transport::Tcp => tcp::start(plan, sender, receiver, Arc::clone(shared)),
            Transport::Udp => udp::start(plan, sender, receiver, Arc::clone(shared)),
        }
    };
    directions.iter().enumerate().map(flow).collect()
}

/// Starts the flow beside the load, from S to D.
fn start_beside(
    run: &Run,
    course: &Course,
    shared: &Arc<Shared>,
) -> Result<Option<Flow>, LabError> {
    let Some(congestion) = run.lab.beside else { return Ok(None) };
    let plan = Plan {
        from: SOURCE,
        port: PORT_BESIDE,
        receiver: SocketAddrV4::new(course.outer, PORT_BESIDE),
        congestion: Some(congestion.to_string()),
        offered_bps: None,
        datagram_bytes: None,
        deadline: None,
        no_medium: run.lab.wire == Wire::Veth,
        start: Duration::ZERO,
        span: run.lab.warm_up + Duration::from_secs_f64(run.duration_s),
    };
    let [source, destination] = &course.ends;
    tcp::start(plan, source, destination, Arc::clone(shared)).map(Some)
}

fn wait_until(at: Time, stop: &AtomicBool) -> Result<(), LabError> {
    while clock::now() < at {
        pause(stop)?;
    }
    Ok(())
}

fn pause(stop: &AtomicBool) -> Result<(), LabError> {
    if stop.load(Ordering::Relaxed) {
        return Err(LabError::Interrupted);
    }
    clock::sleep_until(clock::now() + TICK);
    Ok(())
}

fn outcome(results: Vec<FlowResult>, span: Duration) -> Outcome {
    let mut all = delay_histogram();
    let mut outcome = Outcome {
        sides: Vec::new(),
        delays: Delays::default(),
        payload_bytes: 0.0,
        beside: None,
        pings: None,
        spent: BTreeMap::new(),
        stolen_ratio: None,
        notes: Vec::new(),
        corrupted: false,
    };
    for mut result in results {
        // Both have the same bounds, so this cannot fail.
        let _ = all.add(&result.delays);
        outcome.payload_bytes += result.payload_bytes as f64;
        outcome.notes.append(&mut result.notes);
        outcome.corrupted |= result.corrupted;
        outcome.sides.push(result.into_side(span));
    }
    outcome.delays = Delays::of(&all, MICROS_PER_S);
    outcome
}

/// What a flow has to do.
#[derive(Clone)]
struct Plan {
    /// Index of the sending station.
    from: usize,
    /// Port at which the receiver listens.
    port: u16,
    /// Where the sender connects.
    receiver: SocketAddrV4,
    congestion: Option<String>,
    offered_bps: Option<f64>,
    datagram_bytes: Option<usize>,
    /// For UDP: a later datagram is worthless.
    deadline: Option<Duration>,
    /// Whether nothing between the stations takes time, so that processors are the limit.
    no_medium: bool,
    /// For UDP: how long the first datagram waits.
    start: Duration,
    /// Length of warm-up and measured interval together.
    span: Duration,
}

impl Plan {
    /// Whether to send as fast as the processors can: fewer and longer writes, at the cost of the
    /// delay in the sender's socket, which is then not measured.
    fn is_bulk(&self) -> bool {
        self.no_medium && self.offered_bps.is_none()
    }

    /// Whether the source has unlimited data, and delays begin when TCP sends it.
    fn is_saturated(&self) -> bool {
        !self.no_medium && self.offered_bps.is_none()
    }
}

/// What a flow measured.
struct FlowResult {
    side: Side,
    delays: Histogram<u64>,
    /// For saturated TCP: stream offsets in the interval, and when they were delivered.
    arrivals: Vec<(u64, Time)>,
    payload_bytes: u64,
    notes: Vec<String>,
    corrupted: bool,
}

impl FlowResult {
    /// Computes delays from when bytes left.
    fn count_from(&mut self, departures: &Departures) {
        let (mut from, mut unseen) = (0, 0);
        for (offset, arrived) in self.arrivals.drain(..) {
            match departures.of(offset, &mut from) {
                Some(left) => record_delay(&mut self.delays, left, arrived),
                None => unseen += 1,
            }
        }
        if unseen > 0 {
            self.notes.push(format!("of {unseen} records it was not seen when they left"));
        }
    }

    /// The flow's part of the row, for an interval of this length.
    fn into_side(self, span: Duration) -> Side {
        Side {
            goodput_bps: self.payload_bytes as f64 * 8.0 / span.as_secs_f64(),
            delays: Delays::of(&self.delays, MICROS_PER_S),
            ..self.side
        }
    }
}

/// A running flow: a sending and a receiving thread.
struct Flow {
    /// Whether the sender is connected, or has given up.
    ready: Arc<AtomicBool>,
    sender: Inside<SenderResult>,
    receiver: Inside<FlowResult>,
    /// When the sender's bytes leave, if delays count from then.
    watch: Option<Watch>,
}

/// What the sender knows at the end.
#[derive(Default)]
struct SenderResult {
    packets_sent: Option<u64>,
    tcp: Option<crate::sys::TcpInfo>,
    cwnd_packets: Option<f64>,
    notes: Vec<String>,
}

impl Flow {
    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    fn finish(self) -> Result<FlowResult, LabError> {
        let sent = self.sender.join()?;
        let mut result = self.receiver.join()?;
        if let Some(watch) = self.watch {
            result.count_from(&watch.finish()?);
        }
        result.side.packets_sent = sent.packets_sent;
        result.side.packets_retransmitted = sent.tcp.map(|info| info.retransmits);
        result.side.srtt_s = sent.tcp.map(|info| info.rtt.as_secs_f64());
        result.side.cwnd_mean_packets = sent.cwnd_packets;
        let limited = |time: fn(&crate::sys::TcpInfo) -> Duration| {
            let tcp = sent.tcp.filter(|tcp| !tcp.busy.is_zero())?;
            Some(time(&tcp).div_duration_f64(tcp.busy))
        };
        result.side.tcp_window_limited_ratio = limited(|tcp| tcp.window_limited);
        result.side.tcp_buffer_limited_ratio = limited(|tcp| tcp.buffer_limited);
        result.notes.extend(sent.notes);
        Ok(result)
    }
}

/// State that all threads of the load share.
struct Shared {
    stop: AtomicBool,
    /// Beginning and end of the measured interval, nanoseconds of the clock; `u64::MAX`: not known
    /// yet.
    from: AtomicU64,
    until: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Shared {
            stop: AtomicBool::new(false),
            from: AtomicU64::new(u64::MAX),
            until: AtomicU64::new(u64::MAX),
        }
    }
}

impl Shared {
    fn begin(&self, from: Time, until: Time) {
        self.until.store(until.as_nanos(), Ordering::Relaxed);
        self.from.store(from.as_nanos(), Ordering::Release);
    }

    /// The measured interval, once it is known.
    fn interval(&self) -> Option<(Time, Time)> {
        let from = self.from.load(Ordering::Acquire);
        let until = self.until.load(Ordering::Relaxed);
        (from != u64::MAX).then(|| (Time::from_nanos(from), Time::from_nanos(until)))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until the interval is known; `None` if it will not be.
    fn wait_for_interval(&self) -> Option<(Time, Time)> {
        while !self.is_stopped() {
            if let Some(interval) = self.interval() {
                return Some(interval);
            }
            clock::sleep_until(clock::now() + Duration::from_millis(1));
        }
        None
    }
}

struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

/// Microseconds in a second, for delay histograms.
const MICROS_PER_S: f64 = 1e6;

/// A histogram of delays in microseconds, up to ten minutes, to three digits.
fn delay_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3)
        .unwrap_or_else(|_| unreachable!("the bounds are constants"))
}

fn record_delay(delays: &mut Histogram<u64>, sent: Time, received: Time) {
    let us = received.since(sent).as_nanos().div_ceil(1_000);
    delays.saturating_record(u64::try_from(us).unwrap_or(u64::MAX).max(1));
}

/// A quantile in seconds; `None` if the histogram is empty.
fn quantile(histogram: &Histogram<u64>, quantile: f64) -> Option<f64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(quantile) as f64 / MICROS_PER_S)
}

/// Writes the header of a record: its number and the time of sending.
fn stamp(record: &mut [u8], sequence: u64, at: Time) {
    record[..8].copy_from_slice(&sequence.to_le_bytes());
    record[8..HEADER_BYTES].copy_from_slice(&at.as_nanos().to_le_bytes());
}

/// Reads the header of a record.
fn read_stamp(record: &[u8]) -> Option<(u64, Time)> {
    let sequence = u64::from_le_bytes(record.get(..8)?.try_into().ok()?);
    let at = u64::from_le_bytes(record.get(8..HEADER_BYTES)?.try_into().ok()?);
    Some((sequence, Time::from_nanos(at)))
}

/// The payload that every record must have, which depends on its number: bytes that count up.
fn pattern(sequence: u64, len: usize) -> impl Iterator<Item = u8> {
    let start = sequence.wrapping_mul(7);
    (0..len as u64).map(move |index| start.wrapping_add(index) as u8)
}
