//! A one-way point-to-point link: a queue, a transmitter, and a line with losses.
//!
//! The path of a packet:
//!
//! 1. [`Pipe::offer`] refuses it if a policer in front drops it or the queue is full (drop-tail),
//!    or puts it at the end of the queue.
//! 2. *Transmission* begins when that of the packet before ends, and takes the packet's bits at the
//!    link's rate ([`RateConfig`]), which may vary.
//! 3. *Erasure.* At the end of its transmission the packet may be lost.
//! 4. *Delivery.* Otherwise it arrives after the delay and the jitter, in order or not:
//!    [`Pipe::poll_delivery`].
//!
//! Later packets do not change what happens to a packet that was accepted, so everything is
//! computed when it is offered, including future rates. A packet costs one timed event, its
//! delivery, and a lost one none; of all packets in flight only the head's delivery is pending.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::{Stream, StreamKey, Time};
use hdrhistogram::Histogram;

use crate::erasure::{Erasure, ErasureConfig};
use crate::error::{ErasureError, PipeError, QueueFull};
use crate::jitter::Jitter;
use crate::limits::{MAX_QUEUE_BYTES, MAX_QUEUE_PACKETS, MAX_SPAN};
use crate::policer::{Policer, PolicerConfig};
use crate::service::{OutageConfig, RateConfig, Service, later};

/// Once this many packets of a pipe are in flight, or delivered and not yet polled, no packet is
/// accepted: a line too long for its rate does not fill the memory.
pub const MAX_UNDER_WAY_PACKETS: usize = 1 << 20;

/// Time step in which a policer's bucket and a varying rate are compared.
const POLICED_SLICE: Duration = Duration::from_millis(10);

/// Bit position of the draw of per-packet randomness in the entity of a pipe's stream key.
const DRAW_SHIFT: u32 = 48;

/// Longer waits count as this one: an hour, nanoseconds.
const MAX_WAIT_NS: u64 = 3_600_000_000_000;

/// Limit of a queue, not counting the packet that is being sent. A packet that finds the
/// transmitter idle does not wait, and is always accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// In packets, 1 to [`MAX_QUEUE_PACKETS`].
    Packets(usize),
    /// In bytes, 1 to [`MAX_QUEUE_BYTES`].
    Bytes(u64),
    /// Longest wait, more than 0, at most [`MAX_SPAN`]. A packet that would wait longer is refused
    /// on arrival, since it would be dropped for its age.
    Time(Duration),
}

impl From<usize> for QueueLimit {
    fn from(packets: usize) -> Self {
        QueueLimit::Packets(packets)
    }
}

impl QueueLimit {
    fn check(self) -> Result<(), PipeError> {
        match self {
            QueueLimit::Packets(given) if !(1..=MAX_QUEUE_PACKETS).contains(&given) => {
                Err(PipeError::QueuePackets { given })
            }
            QueueLimit::Bytes(given) if !(1..=MAX_QUEUE_BYTES).contains(&given) => {
                Err(PipeError::QueueBytes { given })
            }
            QueueLimit::Time(given) if given.is_zero() || given > MAX_SPAN => {
                Err(PipeError::QueueTime { given })
            }
            _ => Ok(()),
        }
    }
}

/// A one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Rate of the transmitter.
    pub rate: RateConfig,
    /// Times at which it sends nothing.
    pub outages: Option<OutageConfig>,
    /// Drops packets in front of the queue.
    pub policer: Option<PolicerConfig>,
    /// Limit of the queue.
    pub queue: QueueLimit,
    /// Time from the end of the transmission to the delivery, at most [`MAX_SPAN`].
    pub delay: Duration,
    /// Additional random delay.
    pub jitter: Jitter,
    /// Whether packets may overtake each other through jitter; otherwise a delayed packet delays
    /// those behind it.
    pub reorders: bool,
    /// Losses on the line.
    pub erasure: ErasureConfig,
}

impl PipeConfig {
    /// A link on which only losses are random; a number of packets also serves as `queue`.
    pub fn new(
        rate: impl Into<RateConfig>,
        delay: Duration,
        queue: impl Into<QueueLimit>,
        erasure: impl Into<ErasureConfig>,
    ) -> Self {
        PipeConfig {
            rate: rate.into(),
            outages: None,
            policer: None,
            queue: queue.into(),
            delay,
            jitter: Jitter::None,
            reorders: false,
            erasure: erasure.into(),
        }
    }

    /// Bits that the link can send between `from` and `until` (exclusive) if it always has a
    /// packet, with the rates that [`Pipe::new`] draws with this key: what a sender that knew these
    /// rates could have achieved. Losses are not deducted.
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn capacity_bits(&self, key: StreamKey, from: Time, until: Time) -> Result<f64, PipeError> {
        self.check()?;
        let mut service = Service::new(&self.rate, self.outages.as_ref(), key)?;
        let Some(PolicerConfig { rate_bps, burst_bytes }) = self.policer else {
            return Ok(service.capacity_bits(from, until));
        };
        // In time steps: the policer's rate, less what a slower transmitter takes, fills the bucket
        // up to its size. The bucket is full at first.
        let burst = 8.0 * burst_bytes as f64;
        let (mut level, mut bits, mut at) = (burst, 0.0, from);
        while at < until {
            let end = (at + POLICED_SLICE).min(until);
            level += rate_bps as f64 * end.since(at).as_secs_f64();
            let sent = service.capacity_bits(at, end).min(level);
            level = (level - sent).min(burst);
            bits += sent;
            at = end;
        }
        Ok(bits)
    }

    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range, as the variant of [`PipeError`] that names it.
    pub fn check(&self) -> Result<(), PipeError> {
        self.rate.check()?;
        self.outages.as_ref().map_or(Ok(()), OutageConfig::check)?;
        self.policer.as_ref().map_or(Ok(()), PolicerConfig::check)?;
        if !self.jitter.is_in_range() {
            return Err(PipeError::Jitter { given: self.jitter.span() });
        }
        if self.delay > MAX_SPAN {
            return Err(PipeError::Delay { given: self.delay });
        }
        self.queue.check()?;
        Ok(self.erasure.check()?)
    }
}

/// Counters of one pipe. A packet is counted when it is offered, and so is its fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeStats {
    /// Packets offered, accepted or not.
    pub offered: u64,
    /// Of these, packets refused because the queue was full.
    pub refused: u64,
    /// Of these offered, packets that the policer dropped.
    pub policed: u64,
    /// Of the packets accepted, each of which is one transmission, those that the line loses.
    pub erased: u64,
    /// Bytes of the packets accepted.
    pub sent_bytes: u64,
    /// Time that the transmitter needs for the packets taken, nanoseconds, with the outages and the
    /// waits for opportunities in their transmissions.
    pub busy_ns: u64,
}

impl PipeStats {
    /// Packets accepted: each is one transmission, and one draw of the erasure process.
    pub fn sent_packets(&self) -> u64 {
        self.offered - self.refused - self.policed
    }
}

/// A one-way link that carries packets of type `P`. See the module's overview.
///
/// ```
/// use core::time::Duration;
/// use corridor_air::{ErasureConfig, Pipe, PipeConfig};
/// use corridor_base::{StreamKey, Time};
///
/// let config =
///     PipeConfig::new(2_000_000, Duration::from_millis(100), 200, ErasureConfig::NONE);
/// let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "erasure" };
/// let mut pipe = Pipe::new(&config, key)?;
///
/// pipe.offer(Time::ZERO, 1000, "a packet").expect("the queue is empty");
/// let at = Time::from_millis(104);
/// assert_eq!(pipe.poll_timeout(), Some(at));
/// assert_eq!(pipe.poll_delivery(at), Some("a packet"));
/// # Ok::<(), corridor_air::PipeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pipe<P> {
    service: Service,
    delay_ns: u64,
    queue: QueueLimit,
    /// On the heap: large, and rarely accessed by most links.
    loss: Option<Box<Loss>>,
    /// On the heap too, so that links without any of it test a single pointer.
    rarities: Option<Box<Rarities>>,
    /// When the transmitter has sent everything accepted so far.
    idle_at: Time,
    /// Start times of transmissions of waiting packets, in order; those that had begun at the last
    /// offer are removed.
    begins: VecDeque<Time>,
    /// Packets that will be delivered, and when, in order.
    under_way: VecDeque<(Time, P)>,
    stats: PipeStats,
}

/// State that few links need.
#[derive(Clone, Debug, Default)]
struct Rarities {
    policer: Option<Policer>,
    /// Bytes of the longest packet so far.
    longest: u32,
    /// Lengths of waiting packets, and their sum, if the queue is limited in bytes.
    waiting: Option<(VecDeque<u32>, u64)>,
    late: Option<Lateness>,
    /// How long packets waited for the transmitter, nanoseconds, if this is recorded.
    waits: Option<Histogram<u64>>,
}

impl Rarities {
    fn new(config: &PipeConfig, key: StreamKey) -> Option<Box<Self>> {
        let (jitter, reorders) = (config.jitter, config.reorders);
        let late = (jitter != Jitter::None).then(|| {
            let stream = StreamKey { purpose: "jitter", ..key }.stream();
            Lateness { jitter, stream, reorders, arrived_at: Time::ZERO }
        });
        let rarities = Rarities {
            policer: config.policer.map(Policer::new),
            waiting: matches!(config.queue, QueueLimit::Bytes(_)).then(Default::default),
            late,
            ..Rarities::default()
        };
        let Rarities { policer, waiting, late, .. } = &rarities;
        let has_any = policer.is_some() || waiting.is_some() || late.is_some();
        has_any.then(|| Box::new(rarities))
    }

    /// Whether the policer passes a packet.
    fn passes(&mut self, now: Time, len_bytes: u32) -> bool {
        self.longest = self.longest.max(len_bytes);
        self.policer.as_mut().is_none_or(|policer| policer.passes(now, len_bytes))
    }

    /// A packet was accepted that waits for `wait_ns`.
    fn note_taken(&mut self, len_bytes: u32, wait_ns: u64) {
        if wait_ns > 0
            && let Some((lengths, sum)) = &mut self.waiting
        {
            lengths.push_back(len_bytes);
            *sum += u64::from(len_bytes);
        }
        if let Some(waits) = &mut self.waits {
            waits.saturating_record(wait_ns);
        }
    }

    /// Transmission of the packet that has waited longest has begun.
    fn note_begun(&mut self) {
        if let Some((lengths, sum)) = &mut self.waiting
            && let Some(len_bytes) = lengths.pop_front()
        {
            *sum -= u64::from(len_bytes);
        }
    }
}

/// Jitter of packets.
#[derive(Clone, Debug)]
struct Lateness {
    jitter: Jitter,
    stream: Stream,
    reorders: bool,
    /// Arrival of the last packet, which later ones may not overtake.
    arrived_at: Time,
}

impl Lateness {
    /// The arrival time of a packet that would arrive at `at` without jitter.
    fn arrival(&mut self, at: Time) -> Time {
        let at = at + self.jitter.draw(&mut self.stream);
        if self.reorders {
            return at;
        }
        self.arrived_at = self.arrived_at.max(at);
        self.arrived_at
    }
}

/// The erasure process of the line.
#[derive(Clone, Debug)]
struct Loss {
    erasure: Erasure,
    stream: Stream,
}

impl Loss {
    /// `None` for a line without losses.
    fn new(config: &ErasureConfig, key: StreamKey) -> Result<Option<Box<Self>>, ErasureError> {
        let mut stream = key.stream();
        let erasure = Erasure::new(config, &mut stream)?;
        Ok((config.loss_ratio() > 0.0).then(|| Box::new(Loss { erasure, stream })))
    }
}

impl<P> Pipe<P> {
    /// An idle pipe. The purpose of `key` has to be `"erasure"`; its entity identifies the pipe.
    /// Other random properties have streams of the same entity with purposes of their own.
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn new(config: &PipeConfig, key: StreamKey) -> Result<Self, PipeError> {
        Pipe::drawn(config, key, 0)
    }

    /// Like [`Pipe::new`], with another draw of everything that is drawn for each packet, losses
    /// and jitter. Rates and outages depend on time only, and are the same in every draw. Draw 0 is
    /// [`Pipe::new`]'s.
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn drawn(config: &PipeConfig, key: StreamKey, draw: u16) -> Result<Self, PipeError> {
        config.check()?;
        let service = Service::new(&config.rate, config.outages.as_ref(), key)?;
        // An entity is two numbers of stations or nodes of 32 bits each, whose high bits are
        // unused.
        let packets = StreamKey { entity: key.entity ^ u64::from(draw) << DRAW_SHIFT, ..key };
        Ok(Pipe {
            service,
            delay_ns: config.delay.as_nanos() as u64,
            queue: config.queue,
            loss: Loss::new(&config.erasure, packets)?,
            rarities: Rarities::new(config, packets),
            idle_at: Time::ZERO,
            begins: VecDeque::new(),
            under_way: VecDeque::new(),
            stats: PipeStats::default(),
        })
    }

    /// Puts a packet at the end of the queue at time `now`, which must not decrease.
    ///
    /// Returns the packet if the line will lose it, for callers that keep count: it takes its time
    /// on the link all the same.
    ///
    /// # Errors
    /// [`QueueFull`], with the packet in it, if there is no room, or the policer drops it.
    pub fn offer(
        &mut self,
        now: Time,
        len_bytes: u32,
        packet: P,
    ) -> Result<Option<P>, QueueFull<P>> {
        self.stats.offered += 1;
        if let Some(rarities) = &mut self.rarities
            && !rarities.passes(now, len_bytes)
        {
            self.stats.policed += 1;
            return Err(QueueFull { frame: packet });
        }
        self.forget_begun(now);
        let begin = self.service.begin(self.idle_at.max(now));
        let wait_ns = begin.nanos_since(now);
        let full = wait_ns > 0 && self.is_full(len_bytes, wait_ns);
        if full || self.under_way.len() >= MAX_UNDER_WAY_PACKETS {
            self.stats.refused += 1;
            return Err(QueueFull { frame: packet });
        }
        if wait_ns > 0 {
            self.begins.push_back(begin);
        }
        if let Some(rarities) = &mut self.rarities {
            rarities.note_taken(len_bytes, wait_ns);
        }
        let end = self.service.serve(begin, len_bytes);
        self.idle_at = end;
        self.stats.sent_bytes += u64::from(len_bytes);
        self.stats.busy_ns = self.stats.busy_ns.saturating_add(end.nanos_since(begin));
        if self.loss.as_mut().is_some_and(|loss| loss.erasure.draw(&mut loss.stream)) {
            self.stats.erased += 1;
            return Ok(Some(packet));
        }
        let at = later(end, self.delay_ns);
        match self.rarities.as_mut().and_then(|rarities| rarities.late.as_mut()) {
            None => self.under_way.push_back((at, packet)),
            Some(late) => {
                let at = late.arrival(at);
                let behind = self.under_way.partition_point(|(before, _)| *before <= at);
                self.under_way.insert(behind, (at, packet));
            }
        }
        Ok(None)
    }

    /// Restarts rates and outages at `at`, so that loads under comparison meet the same rates at
    /// the same times, however long each took to set up. Packets in flight are unaffected.
    pub fn restart_rates(&mut self, at: Time) {
        self.service.restart(at);
    }

    /// Whether packets may overtake each other, so that a packet offered now may arrive next.
    pub fn reorders(&self) -> bool {
        let late = self.rarities.as_ref().and_then(|rarities| rarities.late.as_ref());
        late.is_some_and(|late| late.reorders)
    }

    /// From now on, records how long accepted packets wait for the transmitter. Forgets earlier
    /// records.
    pub fn keep_waits(&mut self) {
        let histogram = Histogram::new_with_bounds(1, MAX_WAIT_NS, 3);
        self.rarities.get_or_insert_default().waits = histogram.ok();
    }

    /// How long packets have waited since [`keep_waits`](Self::keep_waits), nanoseconds.
    pub fn waits(&self) -> Option<&Histogram<u64>> {
        self.rarities.as_ref()?.waits.as_ref()
    }

    /// Removes packets from the queue's list whose transmission has begun.
    fn forget_begun(&mut self, now: Time) {
        while self.begins.front().is_some_and(|&begin| begin <= now) {
            self.begins.pop_front();
            if let Some(rarities) = &mut self.rarities {
                rarities.note_begun();
            }
        }
    }

    /// Whether the queue has no room for a packet that would wait for `wait_ns`.
    fn is_full(&self, len_bytes: u32, wait_ns: u64) -> bool {
        match self.queue {
            QueueLimit::Packets(most) => self.begins.len() >= most,
            QueueLimit::Bytes(most) => {
                let waiting = self.rarities.as_ref().and_then(|rarities| rarities.waiting.as_ref());
                let waiting = waiting.map_or(0, |&(_, bytes)| bytes);
                waiting + u64::from(len_bytes) > most
            }
            QueueLimit::Time(most) => Duration::from_nanos(wait_ns) > most,
        }
    }

    /// When a packet as long as the longest so far would neither wait nor be dropped by the
    /// policer, if none comes before.
    pub(crate) fn room_at(&self) -> Time {
        let Some(Rarities { policer: Some(policer), longest, .. }) = self.rarities.as_deref()
        else {
            return self.idle_at;
        };
        policer.passes_at(*longest).max(self.idle_at)
    }

    /// When the next packet is delivered.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.under_way.front().map(|&(at, _)| at)
    }

    /// The next packet, if it has arrived by `now`.
    pub fn poll_delivery(&mut self, now: Time) -> Option<P> {
        if self.under_way.front()?.0 > now {
            return None;
        }
        self.under_way.pop_front().map(|(_, packet)| packet)
    }

    /// When the transmitter has sent everything accepted so far.
    pub fn idle_at(&self) -> Time {
        self.idle_at
    }

    /// Packets waiting for the transmitter at `now`, not counting the one being sent.
    pub fn backlog(&self, now: Time) -> usize {
        self.begins.len() - self.begins.partition_point(|&begin| begin <= now)
    }

    /// Packets accepted and not yet polled, without those that the line loses.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Counters so far.
    pub fn stats(&self) -> &PipeStats {
        &self.stats
    }
}
