//! Datagrams at a constant rate.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

use corridor_base::Time;
use corridor_scenario::{DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, Side};
use nix::sys::prctl::set_timerslack;
use nix::sys::socket::{getsockopt, sockopt};

use super::{
    DRAIN_MAX, End, Flow, FlowResult, HEADER_BYTES, Plan, SenderResult, Shared, TICK,
    delay_histogram, pattern, read_stamp, record_delay, stamp,
};
use crate::clock;
use crate::error::{Context, LabError};

/// Bytes of the IPv4 and UDP headers.
const HEADERS_BYTES: usize = 28;
/// A sender that is later than this skips datagrams instead of sending a burst.
const LATE_MAX: Duration = Duration::from_millis(20);

/// Starts a flow.
pub(super) fn start(
    plan: Plan,
    from: &End,
    to: &End,
    shared: Arc<Shared>,
) -> Result<Flow, LabError> {
    let any = |port| SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    let port = plan.port;
    let incoming = to.namespace.run(move || UdpSocket::bind(any(port)).what("open a UDP port"))?;
    let address = plan.receiver;
    let outgoing = from.namespace.run(move || {
        let socket = UdpSocket::bind(any(0)).what("make a UDP socket")?;
        socket.connect(address).what("connect a UDP socket")?;
        Ok(socket)
    })?;
    let bytes = datagram_bytes(&plan, &outgoing)?;
    let gap = Duration::from_secs_f64(bytes as f64 * 8.0 / plan.offered_bps.unwrap_or(1.0));
    // Somewhat more than the sender could send: bounds the numbers in received datagrams.
    let seconds = (plan.span + CONNECT_SLACK).as_secs_f64();
    let numbers = (seconds / gap.as_secs_f64()) as usize + 1_000;
    let total = Arc::new(AtomicU64::new(u64::MAX));
    let (share, sent, side) = (Arc::clone(&shared), Arc::clone(&total), plan.from);
    let (deadline, start) = (plan.deadline, plan.start);
    let receiver = to.namespace.spawn("lab-udp-receive", move || {
        Receiver { deadline, ..Receiver::new(side, bytes, numbers) }.work(&incoming, &share, &sent)
    })?;
    let sender = from
        .namespace
        .spawn("lab-udp-send", move || Ok(send(&outgoing, bytes, (start, gap), &shared, &total)))?;
    Ok(Flow { ready: Arc::new(AtomicBool::new(true)), sender, receiver, watch: None })
}

/// Longest time between the start of a flow and the beginning of the warm-up.
const CONNECT_SLACK: Duration = Duration::from_secs(1);

/// Payload of a datagram: as requested, or what fills the path's packets.
fn datagram_bytes(plan: &Plan, socket: &UdpSocket) -> Result<usize, LabError> {
    let mtu = getsockopt(socket, sockopt::IpMtu).what("ask for the path's MTU")?;
    let max = usize::try_from(mtu).unwrap_or(0).saturating_sub(HEADERS_BYTES);
    match plan.datagram_bytes {
        Some(given) if given > max => Err(LabError::DatagramTooLong { given, max }),
        Some(given) => Ok(given),
        None => Ok(max.clamp(DATAGRAM_BYTES_MIN, DATAGRAM_BYTES_MAX)),
    }
}

fn send(
    socket: &UdpSocket,
    bytes: usize,
    (start, gap): (Duration, Duration),
    shared: &Shared,
    total: &AtomicU64,
) -> SenderResult {
    let _ = set_timerslack(1);
    let Some((from, until)) = shared.wait_for_interval() else { return SenderResult::default() };
    let mut datagram = vec![0; bytes];
    let (mut sequence, mut measured, mut skipped) = (0, 0, 0u64);
    let mut due = clock::now() + start;
    loop {
        let now = clock::now();
        if now >= until || shared.is_stopped() {
            break;
        }
        if due > now {
            clock::sleep_until(due.min(until));
            continue;
        }
        if now.since(due) > LATE_MAX {
            skipped += (now.since(due).as_nanos() / gap.as_nanos().max(1)) as u64;
            due = now;
        }
        for (byte, value) in datagram[HEADER_BYTES..].iter_mut().zip(pattern(sequence, bytes)) {
            *byte = value;
        }
        stamp(&mut datagram, sequence, now);
        // A datagram that the station's own queue refuses counts as sent and lost, like any other.
        let _ = socket.send(&datagram);
        sequence += 1;
        measured += u64::from(now >= from);
        due += gap;
    }
    total.store(sequence, Ordering::Relaxed);
    let notes = match skipped {
        0 => Vec::new(),
        _ => vec![format!("the machine was too slow to send {skipped} of the datagrams")],
    };
    SenderResult { packets_sent: Some(measured), tcp: None, cwnd_packets: None, notes }
}

struct Receiver {
    result: FlowResult,
    bytes: usize,
    /// Which numbers have arrived.
    seen: Vec<bool>,
    /// The highest number that has arrived.
    newest: Option<u64>,
    distinct: u64,
    in_interval: u64,
    /// A later datagram is worthless.
    deadline: Option<Duration>,
    in_time: u64,
    duplicates: u64,
    out_of_order: u64,
}

impl Receiver {
    fn new(from: usize, bytes: usize, numbers: usize) -> Self {
        Receiver {
            result: FlowResult {
                side: Side { from, ..Side::default() },
                delays: delay_histogram(),
                arrivals: Vec::new(),
                payload_bytes: 0,
                notes: Vec::new(),
                corrupted: false,
            },
            bytes,
            seen: vec![false; numbers],
            newest: None,
            distinct: 0,
            in_interval: 0,
            deadline: None,
            in_time: 0,
            duplicates: 0,
            out_of_order: 0,
        }
    }

    fn work(
        mut self,
        socket: &UdpSocket,
        shared: &Shared,
        total: &AtomicU64,
    ) -> Result<FlowResult, LabError> {
        let _ = set_timerslack(1);
        socket.set_read_timeout(Some(TICK)).what("bound a UDP socket's waiting")?;
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX + 1];
        loop {
            let received = socket.recv(&mut buffer);
            let now = clock::now();
            let interval = shared.interval();
            match received {
                Ok(len) => self.take(&buffer[..len], now, interval),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).what("receive from a UDP socket"),
            }
            let is_over = interval.is_some_and(|(_, until)| {
                now >= until + DRAIN_MAX
                    || now >= until && self.distinct >= total.load(Ordering::Relaxed)
            });
            if is_over || shared.is_stopped() {
                break;
            }
        }
        self.result.side.packets_received = Some(self.in_interval);
        self.result.side.packets_in_time = self.deadline.map(|_| self.in_time);
        self.result.side.packets_duplicated = Some(self.duplicates);
        self.result.side.packets_out_of_order = Some(self.out_of_order);
        Ok(self.result)
    }

    fn take(&mut self, datagram: &[u8], now: Time, interval: Option<(Time, Time)>) {
        let contains = |at| interval.is_some_and(|(from, until)| (from..until).contains(&at));
        let stamped = read_stamp(datagram);
        let payload = datagram.get(HEADER_BYTES..).unwrap_or_default();
        let (sequence, sent) = match stamped {
            Some((sequence, sent))
                if datagram.len() == self.bytes
                    && (sequence as usize) < self.seen.len()
                    && payload.iter().copied().eq(pattern(sequence, payload.len())) =>
            {
                (sequence, sent)
            }
            _ => {
                if !self.result.corrupted {
                    self.result.corrupted = true;
                    self.result.notes.push("a UDP datagram is not one that was sent".to_owned());
                }
                return;
            }
        };
        if core::mem::replace(&mut self.seen[sequence as usize], true) {
            self.duplicates += u64::from(contains(sent));
            return;
        }
        self.distinct += 1;
        if self.newest.is_some_and(|newest| sequence < newest) {
            self.out_of_order += u64::from(contains(sent));
        }
        self.newest = self.newest.max(Some(sequence));
        if contains(sent) {
            self.in_interval += 1;
            let is_in_time = self.deadline.is_some_and(|deadline| now.since(sent) <= deadline);
            self.in_time += u64::from(is_in_time);
            record_delay(&mut self.result.delays, sent, now);
        }
        if contains(now) {
            self.result.payload_bytes += datagram.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(sequence: u64, sent_ms: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.extend(pattern(sequence, 84));
        stamp(&mut bytes, sequence, Time::from_millis(sent_ms));
        bytes
    }

    #[test]
    fn order_and_duplicates_are_told_apart() {
        let interval = Some((Time::from_millis(10), Time::from_millis(100)));
        let deadline = Some(Duration::from_millis(4));
        let mut receiver = Receiver { deadline, ..Receiver::new(1, 100, 10) };
        // Number 0 is sent before the interval; 2 arrives late, 3 twice.
        for (sequence, sent_ms, now_ms) in
            [(0, 9, 11), (1, 10, 12), (3, 30, 33), (3, 30, 34), (2, 20, 40), (4, 99, 101)]
        {
            let datagram = datagram(sequence, sent_ms);
            receiver.take(&datagram, Time::from_millis(now_ms), interval);
        }
        assert_eq!(receiver.in_interval, 4);
        assert_eq!((receiver.duplicates, receiver.out_of_order), (1, 1));
        // Number 2 came after 20 ms.
        assert_eq!(receiver.in_time, 3);
        // In order of arrival: 0, 1, 3, 2.
        assert_eq!(receiver.result.payload_bytes, 400);
        assert_eq!(receiver.result.delays.len(), 4);
        assert!(!receiver.result.corrupted);
    }

    #[test]
    fn a_datagram_that_was_not_sent_is_noticed() {
        let cut = datagram(1, 0)[..50].to_vec();
        let mut changed = datagram(1, 0);
        changed[60] ^= 1;
        for datagram in [vec![], vec![1, 2, 3], cut, changed, datagram(10, 0)] {
            let mut receiver = Receiver::new(1, 100, 10);
            receiver.take(&datagram, Time::ZERO, None);
            assert!(receiver.result.corrupted);
            assert_eq!(receiver.distinct, 0);
        }
    }
}
