//! A TCP connection loaded with records of a fixed length.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use corridor_base::Time;
use corridor_scenario::Side;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_timerslack;
use socket2::{Domain, Protocol, Socket, Type};

use super::departures::Watch;
use super::{
    CONNECT_MAX, End, Flow, FlowResult, HEADER_BYTES, Plan, SenderResult, Shared, TICK,
    delay_histogram, pattern, read_stamp, record_delay, stamp,
};
use crate::clock;
use crate::error::{Context, LabError};
use crate::sys;

/// Bytes of a record.
const RECORD_BYTES: usize = 1_000;
/// Its bytes behind sequence number and time.
const PAYLOAD_BYTES: usize = RECORD_BYTES - HEADER_BYTES;
/// Records per write where processors are the limit, not a medium.
const BULK_RECORDS: usize = 64;
/// How often the congestion window is sampled.
const CWND_INTERVAL: Duration = Duration::from_millis(50);
/// Largest payload of a segment.
const SEGMENT_BYTES: u32 = 1_448;

/// Unsent segments to keep in the socket of a source with unlimited data: as many as leave in 20 ms
/// at 50 Mbit/s, which is longer than a thread waits for a processor in a valid run.
///
/// TCP must never run out of them, as it does not with a file. With two segments it did once a
/// round trip where windows are short, and made a short segment of the rest. BBR takes a sender
/// with less than a segment left for application-limited: it then stops checking whether the path
/// is policed, and takes no rate samples. With four, this happened in recoveries
/// (docs/decisions/0024-paths-that-vary.md).
const SATURATED_SEGMENTS: u32 = 96;

/// Unsent bytes up to which a socket is ready for more.
///
/// A source with a rate of its own should learn early that TCP does not keep up, without starving
/// it. Measured at 12 Mbit/s and 4 ms: one segment costs cubic 12 % of its goodput at 5 % loss, two
/// cost nothing measurable; BBR sends two at a time.
fn unsent_bytes(plan: &Plan) -> u32 {
    let segments = match plan.congestion.as_deref() {
        _ if plan.is_saturated() => SATURATED_SEGMENTS,
        Some("bbr") => 4,
        _ => 2,
    };
    segments * SEGMENT_BYTES
}

/// Starts a flow.
pub(super) fn start(
    plan: Plan,
    from: &End,
    to: &End,
    shared: Arc<Shared>,
) -> Result<Flow, LabError> {
    let ready = Arc::new(AtomicBool::new(false));
    let port = plan.port;
    let listener = to.namespace.run(move || {
        TcpListener::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).what("listen for TCP")
    })?;
    let port = plan.receiver.port();
    let watch = plan.is_saturated().then(|| Watch::start(&from.namespace, port)).transpose()?;
    let (mut receiver, share) = (Receiver::new(plan.from), Arc::clone(&shared));
    receiver.is_watched = watch.is_some();
    let receiver =
        to.namespace.spawn("lab-tcp-receive", move || receiver.work(&listener, &share))?;
    let is_ready = Arc::clone(&ready);
    let sender = from.namespace.spawn("lab-tcp-send", move || send(&plan, &shared, &is_ready))?;
    Ok(Flow { ready, sender, receiver, watch })
}

fn send(plan: &Plan, shared: &Shared, ready: &AtomicBool) -> Result<SenderResult, LabError> {
    let _ = set_timerslack(1);
    let connection = connect(plan);
    ready.store(true, Ordering::Relaxed);
    let mut result = SenderResult::default();
    let stream = match connection? {
        Some(stream) => stream,
        None => {
            let seconds = CONNECT_MAX.as_secs();
            result.notes.push(format!("no TCP connection within {seconds} s"));
            return Ok(result);
        }
    };
    let Some((_, until)) = shared.wait_for_interval() else { return Ok(result) };
    clock::sleep_until((clock::now() + plan.start).min(until));
    let at_once = if plan.is_bulk() { BULK_RECORDS } else { 1 };
    let mut cwnd = MeanCwnd::new();
    let written = write_records(&stream, plan.offered_bps, at_once, until, shared, &mut cwnd);
    // The receiver closes at the end of the interval; a connection that fails from losses before
    // that is a result.
    if let Some(error) = written.err().filter(|_| clock::now() < until) {
        result.notes.push(format!("the TCP connection ended: {error}"));
    }
    result.tcp = sys::tcp_info(&stream).ok();
    result.cwnd_packets = cwnd.mean();
    // Unsent data need not be waited for.
    let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    Ok(result)
}

/// Whether this kernel has a TCP congestion control of this name, possibly as a module, and lets
/// this process choose it.
///
/// # Errors
/// [`LabError::System`] if no TCP socket can be created.
pub fn has_congestion(name: &str) -> Result<bool, LabError> {
    let socket =
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).what("make a TCP socket")?;
    Ok(socket.set_tcp_congestion(name.as_bytes()).is_ok())
}

/// Connects; `None` if no connection was established in time.
fn connect(plan: &Plan) -> Result<Option<TcpStream>, LabError> {
    let socket =
        Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).what("make a TCP socket")?;
    if let Some(congestion) = &plan.congestion {
        let what = format!("congestion control {congestion}, which this kernel may not have");
        socket.set_tcp_congestion(congestion.as_bytes()).what(what)?;
    }
    if !plan.is_bulk() {
        // The kernel reports a socket as ready below half of the value set here.
        let bounded = sys::set_notsent_lowat(&socket, 2 * unsent_bytes(plan));
        bounded.what("bound a TCP socket's unsent bytes")?;
    }
    // A rate-limited application wants each record to be sent at once.
    socket.set_tcp_nodelay(plan.offered_bps.is_some()).what("set TCP_NODELAY")?;
    if socket.connect_timeout(&plan.receiver.into(), CONNECT_MAX).is_err() {
        return Ok(None);
    }
    socket.set_nonblocking(true).what("make a TCP socket non-blocking")?;
    Ok(Some(socket.into()))
}

/// Writes records until the end of the interval, several per write. Without a rate, delays begin
/// when the bytes leave the host; with one, records are stamped when they are due, so delays
/// include waiting for the socket.
fn write_records(
    mut stream: &TcpStream,
    rate_bps: Option<f64>,
    at_once: usize,
    until: Time,
    shared: &Shared,
    cwnd: &mut MeanCwnd,
) -> io::Result<()> {
    let begin = clock::now();
    let mut records = vec![0; at_once * RECORD_BYTES];
    for first in (0..).step_by(at_once) {
        for (sequence, record) in (first..).zip(records.chunks_exact_mut(RECORD_BYTES)) {
            record[HEADER_BYTES..].copy_from_slice(payload(sequence));
        }
        let due = rate_bps.map(|bps| {
            begin + Duration::from_secs_f64(first as f64 * RECORD_BYTES as f64 * 8.0 / bps)
        });
        let mut written = 0;
        while written < records.len() {
            let now = clock::now();
            if now >= until || shared.is_stopped() {
                return Ok(());
            }
            cwnd.look(now, stream);
            if let Some(due) = due.filter(|&due| due > now) {
                clock::sleep_until(due.min(now + TICK));
                continue;
            }
            if written == 0 {
                // Polls the socket first, because a write extends a segment that is not full yet,
                // however many bytes are unsent.
                if !is_ready(stream, PollFlags::POLLOUT, TICK) {
                    continue;
                }
                let at = due.unwrap_or_else(clock::now);
                for (sequence, record) in (first..).zip(records.chunks_exact_mut(RECORD_BYTES)) {
                    stamp(record, sequence, at);
                }
            }
            match stream.write(&records[written..]) {
                Ok(len) => written += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    is_ready(stream, PollFlags::POLLOUT, TICK);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Time average of the congestion window.
struct MeanCwnd {
    next_at: Time,
    sum: f64,
    looks: u32,
}

impl MeanCwnd {
    fn new() -> Self {
        MeanCwnd { next_at: Time::ZERO, sum: 0.0, looks: 0 }
    }

    /// Samples it, if it is time.
    fn look(&mut self, now: Time, stream: &TcpStream) {
        if now < self.next_at {
            return;
        }
        self.next_at = now + CWND_INTERVAL;
        if let Ok(info) = sys::tcp_info(stream) {
            self.sum += f64::from(info.cwnd_packets);
            self.looks += 1;
        }
    }

    fn mean(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.sum / f64::from(self.looks))
    }
}

/// The payload of record number `sequence`: [`pattern`], from a table.
fn payload(sequence: u64) -> &'static [u8] {
    const COUNTED: [u8; 256 + PAYLOAD_BYTES] = {
        let mut counted = [0; 256 + PAYLOAD_BYTES];
        let mut index = 0;
        while index < counted.len() {
            counted[index] = index as u8;
            index += 1;
        }
        counted
    };
    static TABLE: [u8; 256 + PAYLOAD_BYTES] = COUNTED;
    let start = usize::from(pattern(sequence, 1).next().unwrap_or(0));
    &TABLE[start..start + PAYLOAD_BYTES]
}

/// Waits for a socket; returns whether it is ready or has failed.
fn is_ready(socket: impl AsFd, events: PollFlags, timeout: Duration) -> bool {
    let mut descriptors = [PollFd::new(socket.as_fd(), events)];
    let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::ZERO);
    poll(&mut descriptors, timeout).is_ok_and(|ready| ready > 0)
}

struct Receiver {
    result: FlowResult,
    record: Vec<u8>,
    filled: usize,
    sequence: u64,
    /// When bytes last arrived in the measured interval.
    came_at: Option<Time>,
    /// Longest time without any bytes.
    silence: Duration,
    /// Whether delays begin when bytes leave, rather than at the time stamped into them.
    is_watched: bool,
}

impl Receiver {
    fn new(from: usize) -> Self {
        Receiver {
            result: FlowResult {
                side: Side { from, ..Side::default() },
                delays: delay_histogram(),
                arrivals: Vec::new(),
                payload_bytes: 0,
                notes: Vec::new(),
                corrupted: false,
            },
            record: vec![0; RECORD_BYTES],
            filled: 0,
            sequence: 0,
            came_at: None,
            silence: Duration::ZERO,
            is_watched: false,
        }
    }

    fn work(mut self, listener: &TcpListener, shared: &Shared) -> Result<FlowResult, LabError> {
        let _ = set_timerslack(1);
        listener.set_nonblocking(true).what("make a listener non-blocking")?;
        let is_over = || {
            shared.is_stopped() || shared.interval().is_some_and(|(_, until)| clock::now() >= until)
        };
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if is_over() => return Ok(self.result),
                Err(_) => {
                    is_ready(listener, PollFlags::POLLIN, TICK);
                }
            }
        };
        stream.set_nonblocking(true).what("make a TCP socket non-blocking")?;
        let mut buffer = vec![0; 1 << 16];
        while !is_over() {
            match (&stream).read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => self.take(&buffer[..len], clock::now(), shared.interval()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    is_ready(&stream, PollFlags::POLLIN, TICK);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The sender's note says why.
                Err(_) => break,
            }
        }
        if let Some(interval) = shared.interval() {
            self.note_silence(interval.1, interval);
            self.result.side.silence_max_s = Some(self.silence.as_secs_f64());
        }
        Ok(self.result)
    }

    /// Records that no bytes have arrived until `now`.
    fn note_silence(&mut self, now: Time, (from, until): (Time, Time)) {
        let now = now.clamp(from, until);
        self.silence = self.silence.max(now - self.came_at.unwrap_or(from));
        self.came_at = Some(now);
    }

    /// Takes bytes that arrived at `now`.
    fn take(&mut self, mut bytes: &[u8], now: Time, interval: Option<(Time, Time)>) {
        let measured = interval.is_some_and(|(from, until)| (from..until).contains(&now));
        if measured {
            self.result.payload_bytes += bytes.len() as u64;
            interval.into_iter().for_each(|interval| self.note_silence(now, interval));
        }
        while !bytes.is_empty() {
            if let Some((record, rest)) = bytes.split_at_checked(RECORD_BYTES)
                && self.filled == 0
            {
                self.take_record(record, now, measured);
                bytes = rest;
                continue;
            }
            let len = bytes.len().min(RECORD_BYTES - self.filled);
            self.record[self.filled..self.filled + len].copy_from_slice(&bytes[..len]);
            self.filled += len;
            bytes = &bytes[len..];
            if self.filled == RECORD_BYTES {
                self.filled = 0;
                let record = std::mem::take(&mut self.record);
                self.take_record(&record, now, measured);
                self.record = record;
            }
        }
    }

    fn take_record(&mut self, record: &[u8], now: Time, measured: bool) {
        let Some((sequence, sent)) = read_stamp(record) else { return };
        let is_intact = sequence == self.sequence && record[HEADER_BYTES..] == *payload(sequence);
        if !is_intact && !self.result.corrupted {
            self.result.corrupted = true;
            let number = self.sequence;
            self.result
                .notes
                .push(format!("record {number} of the TCP stream is not what was sent"));
        }
        self.sequence += 1;
        if measured && self.is_watched {
            // The delay of its last byte: the segments of a record need not leave at the same time,
            // and the time between them is not a delay of the network.
            let offset = self.sequence * RECORD_BYTES as u64 - 1;
            self.result.arrivals.push((offset, now));
        } else if measured {
            record_delay(&mut self.result.delays, sent, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(records: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for sequence in 0..records {
            let mut record: Vec<u8> = vec![0; HEADER_BYTES];
            record.extend(pattern(sequence, RECORD_BYTES - HEADER_BYTES));
            stamp(&mut record, sequence, Time::from_millis(sequence));
            bytes.extend(record);
        }
        bytes
    }

    #[test]
    fn records_are_found_however_the_stream_is_cut() {
        let interval = Some((Time::ZERO, Time::MAX));
        for cut in [1, 7, 999, 1000, 1001, 4096] {
            let mut receiver = Receiver::new(0);
            for piece in stream(10).chunks(cut) {
                receiver.take(piece, Time::from_millis(109), interval);
            }
            assert!(!receiver.result.corrupted);
            assert_eq!(receiver.result.payload_bytes, 10 * RECORD_BYTES as u64);
            assert_eq!(receiver.result.delays.len(), 10);
            // The histogram keeps three digits.
            assert!((99_900..=100_000).contains(&receiver.result.delays.min()));
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        for index in [0, 16, 999, 5_500] {
            let mut bytes = stream(10);
            bytes[index] ^= 1;
            let mut receiver = Receiver::new(0);
            receiver.take(&bytes, Time::ZERO, None);
            assert!(receiver.result.corrupted, "byte {index}");
        }
    }

    #[test]
    fn what_comes_outside_of_the_interval_is_not_counted() {
        let mut receiver = Receiver::new(0);
        let interval = Some((Time::from_millis(10), Time::from_millis(20)));
        receiver.take(&stream(1), Time::from_millis(9), interval);
        receiver.take(&stream(2)[RECORD_BYTES..], Time::from_millis(20), interval);
        assert_eq!(receiver.result.payload_bytes, 0);
        assert!(receiver.result.delays.is_empty());
        assert!(!receiver.result.corrupted);
    }
}
