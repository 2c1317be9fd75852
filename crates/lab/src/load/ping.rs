//! An echo beside the load: timestamped datagrams at intervals, which D returns.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::net::SocketAddrV4;
use std::sync::Arc;

use corridor_base::Time;
use corridor_scenario::Pings;
use hdrhistogram::Histogram;
use nix::sys::prctl::set_timerslack;

use super::{End, Shared, delay_histogram, quantile, read_stamp, record_delay, stamp};
use crate::clock;
use crate::echo::udp_socket;
use crate::error::{Context, LabError};
use crate::netns::Inside;

/// Port on which D answers.
const PORT: u16 = 7710;
/// Bytes of a datagram: as much as `ping` sends.
const DATAGRAM_BYTES: usize = 56;
/// Time limit for an answer; a later one counts as lost.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Number of datagrams that measure the round-trip time without load.
const BASE_COUNT: u32 = 20;
/// Longest wait for their answers.
const BASE_SPAN_MAX: Duration = Duration::from_secs(2);

/// A running echo.
pub(super) struct Pinger {
    /// Whether the load has begun.
    loaded: Arc<AtomicBool>,
    asks: Inside<Pings>,
    /// Whether no more datagrams are sent.
    done: Arc<AtomicBool>,
    answers: Inside<()>,
    /// When there are enough answers without load.
    base_until: Time,
}

impl Pinger {
    /// Begins to send. The load should begin at [`Pinger::base_until`].
    pub(super) fn start(
        interval: Duration,
        from: &End,
        to: &End,
        shared: &Arc<Shared>,
    ) -> Result<Self, LabError> {
        let loaded = Arc::new(AtomicBool::new(false));
        let (has_load, asked, answered) =
            (Arc::clone(&loaded), Arc::clone(shared), Arc::clone(shared));
        let address = SocketAddrV4::new(to.address, PORT);
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let answers = to.namespace.spawn("lab-ping-answer", move || answer(&answered, &is_done))?;
        let asks = from
            .namespace
            .spawn("lab-ping", move || Asker::new().work(address, interval, &has_load, &asked))?;
        let base_until = clock::now() + (interval * BASE_COUNT).min(BASE_SPAN_MAX);
        Ok(Pinger { loaded, asks, done, answers, base_until })
    }

    /// When the time without load ends.
    pub(super) fn base_until(&self) -> Time {
        self.base_until
    }

    /// Tells it that there is load from now on.
    pub(super) fn load_begins(&self) {
        self.loaded.store(true, Ordering::Relaxed);
    }

    /// The results, once the measured interval is over and the last answers have arrived.
    pub(super) fn finish(self) -> Result<Pings, LabError> {
        let pings = self.asks.join();
        self.done.store(true, Ordering::Relaxed);
        self.answers.join()?;
        pings
    }
}

fn answer(shared: &Shared, done: &AtomicBool) -> Result<(), LabError> {
    let _ = set_timerslack(1);
    let socket = udp_socket(PORT)?;
    let mut buffer = [0; DATAGRAM_BYTES];
    while !shared.is_stopped() && !done.load(Ordering::Relaxed) {
        if let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    }
    Ok(())
}

struct Asker {
    base: Histogram<u64>,
    beside: Histogram<u64>,
    sent: u64,
}

impl Asker {
    fn new() -> Self {
        Asker { base: delay_histogram(), beside: delay_histogram(), sent: 0 }
    }

    fn work(
        mut self,
        to: SocketAddrV4,
        interval: Duration,
        loaded: &AtomicBool,
        shared: &Shared,
    ) -> Result<Pings, LabError> {
        let _ = set_timerslack(1);
        let socket = udp_socket(0)?;
        let mut datagram = [0; DATAGRAM_BYTES];
        let mut buffer = [0; DATAGRAM_BYTES];
        let mut due = clock::now();
        for sequence in 0.. {
            // A datagram sent before and answered after the beginning of the load counts for
            // neither.
            let unloaded = !loaded.load(Ordering::Relaxed);
            let now = clock::now();
            stamp(&mut datagram, sequence, now);
            let is_measured = is_measured(shared, now);
            self.sent += u64::from(is_measured);
            let _ = socket.send_to(&datagram, to);
            due = (due + interval).max(now);
            loop {
                let now = clock::now();
                let is_over = shared.interval().is_some_and(|(_, until)| {
                    let all_came = self.beside.len() >= self.sent;
                    now >= until && (all_came || now >= until + ANSWER_MAX)
                });
                if is_over || shared.is_stopped() {
                    return Ok(self.pings());
                }
                if now >= due {
                    break;
                }
                let bounded = socket.set_read_timeout(Some(due.since(now).min(super::TICK)));
                bounded.what("bound a UDP socket's waiting")?;
                if let Ok(len) = socket.recv(&mut buffer) {
                    self.take(&buffer[..len], clock::now(), unloaded, shared);
                }
            }
        }
        Ok(self.pings())
    }

    fn take(&mut self, datagram: &[u8], now: Time, unloaded: bool, shared: &Shared) {
        let Some((_, sent)) = read_stamp(datagram) else { return };
        if now >= sent + ANSWER_MAX {
            return;
        }
        if unloaded {
            record_delay(&mut self.base, sent, now);
        } else if is_measured(shared, sent) {
            record_delay(&mut self.beside, sent, now);
        }
    }

    fn pings(&self) -> Pings {
        Pings {
            base_p50_s: quantile(&self.base, 0.5),
            p50_s: quantile(&self.beside, 0.5),
            p95_s: quantile(&self.beside, 0.95),
            p99_s: quantile(&self.beside, 0.99),
            sent: self.sent,
            received: self.beside.len(),
        }
    }
}

fn is_measured(shared: &Shared, at: Time) -> bool {
    shared.interval().is_some_and(|(from, until)| (from..until).contains(&at))
}
