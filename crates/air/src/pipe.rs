//! A one-way point-to-point link: a queue, a transmitter, a line, and what the line loses.
//!
//! The way of a packet:
//!
//! 1. [`Pipe::offer`] refuses it if the queue is full (drop-tail), or puts it at the end of it.
//! 2. *Transmission.* It begins when that of the packet before ends, and takes its bits at the
//!    link's rate.
//! 3. *Erasure.* At the end of its transmission the packet may be lost.
//! 4. *Delivery.* Otherwise it arrives after the delay: [`Pipe::poll_delivery`].
//!
//! Nothing that comes later changes what happens to a packet that is taken, so all of this is
//! computed when it is offered. A packet costs one timed event, its delivery, and a lost one none;
//! of all packets under way only the head's delivery is pending.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::{Stream, StreamKey, Time};

use crate::config::MAX_SPAN;
use crate::erasure::{Erasure, ErasureConfig};
use crate::error::{ErasureError, PipeError, QueueFull};

/// Longest queue of a pipe, in packets.
pub const MAX_QUEUE_PACKETS: usize = 65_536;

/// Packets of one pipe that are under way or delivered and not yet polled, from which on none is
/// taken: a line that is too long for its rate does not fill the memory.
pub const MAX_UNDER_WAY_PACKETS: usize = 1 << 20;

const NS_PER_S: u64 = 1_000_000_000;

/// A one-way link.
#[derive(Clone, Debug, PartialEq)]
pub struct PipeConfig {
    /// Rate of the transmitter in bit/s, 1 or more.
    pub rate_bps: u64,
    /// Time from the end of the transmission to the delivery, at most [`MAX_SPAN`].
    pub delay: Duration,
    /// Most packets that wait for the transmitter, without the one it is sending, 1 to
    /// [`MAX_QUEUE_PACKETS`].
    pub queue_packets: usize,
    /// What is lost on the line.
    pub erasure: ErasureConfig,
}

impl PipeConfig {
    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range, as the variant of [`PipeError`] that names it.
    pub fn check(&self) -> Result<(), PipeError> {
        if self.rate_bps == 0 {
            return Err(PipeError::Rate { given: self.rate_bps });
        }
        if self.delay > MAX_SPAN {
            return Err(PipeError::Delay { given: self.delay });
        }
        if !(1..=MAX_QUEUE_PACKETS).contains(&self.queue_packets) {
            return Err(PipeError::QueuePackets { given: self.queue_packets });
        }
        Ok(self.erasure.check()?)
    }
}

/// Counters of one pipe. A packet is counted when it is offered, and all that is known then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipeStats {
    /// Packets offered, taken or not.
    pub offered: u64,
    /// Of these, packets refused because the queue was full.
    pub refused: u64,
    /// Of the packets taken, each of which is one transmission, those that the line loses.
    pub erased: u64,
    /// Bytes in the packets taken.
    pub sent_bytes: u64,
    /// Time that the transmitter needs for the packets taken, nanoseconds.
    pub busy_ns: u64,
}

impl PipeStats {
    /// Packets taken: each is one transmission, and one draw of the erasure process.
    pub fn sent_packets(&self) -> u64 {
        self.offered - self.refused
    }
}

/// A one-way link that carries packets of type `P`. See the module's overview.
///
/// ```
/// use core::time::Duration;
/// use corridor_air::{ErasureConfig, Pipe, PipeConfig};
/// use corridor_base::{StreamKey, Time};
///
/// let config = PipeConfig {
///     rate_bps: 2_000_000,
///     delay: Duration::from_millis(100),
///     queue_packets: 200,
///     erasure: ErasureConfig::NONE,
/// };
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
    rate_bps: u64,
    delay_ns: u64,
    queue_packets: usize,
    /// On the heap: a large state, which many links never look at.
    loss: Option<Box<Loss>>,
    /// When the transmitter is through with all that it has.
    idle_at: Time,
    /// When transmissions begin, in order, of packets that have to wait; without those that had
    /// begun at the last offer.
    begins: VecDeque<Time>,
    /// Packets that will be delivered, and when, in order.
    under_way: VecDeque<(Time, P)>,
    /// The latest length and its time of transmission: most packets are as long as the last one.
    transmission: (u32, u64),
    stats: PipeStats,
}

/// What the line loses.
#[derive(Clone, Debug)]
struct Loss {
    erasure: Erasure,
    stream: Stream,
}

impl Loss {
    /// Nothing for a line that loses nothing.
    fn new(config: &ErasureConfig, key: StreamKey) -> Result<Option<Box<Self>>, ErasureError> {
        let mut stream = key.stream();
        let erasure = Erasure::new(config, &mut stream)?;
        Ok((config.loss_ratio() > 0.0).then(|| Box::new(Loss { erasure, stream })))
    }
}

impl<P> Pipe<P> {
    /// An idle pipe. The purpose of `key` is to be `"erasure"`; its entity names the pipe.
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn new(config: &PipeConfig, key: StreamKey) -> Result<Self, PipeError> {
        config.check()?;
        Ok(Pipe {
            rate_bps: config.rate_bps,
            delay_ns: config.delay.as_nanos() as u64,
            queue_packets: config.queue_packets,
            loss: Loss::new(&config.erasure, key)?,
            idle_at: Time::ZERO,
            begins: VecDeque::new(),
            under_way: VecDeque::new(),
            transmission: (0, 0),
            stats: PipeStats::default(),
        })
    }

    /// Puts a packet at the end of the queue, at time `now`, which does not go back.
    ///
    /// Returns the packet if the line will lose it, for those who keep accounts: it takes its time
    /// on the link all the same.
    ///
    /// # Errors
    /// [`QueueFull`], with the packet in it, if there is no room.
    pub fn offer(
        &mut self,
        now: Time,
        len_bytes: u32,
        packet: P,
    ) -> Result<Option<P>, QueueFull<P>> {
        self.stats.offered += 1;
        while self.begins.front().is_some_and(|&begin| begin <= now) {
            self.begins.pop_front();
        }
        let waits = self.idle_at > now;
        let full = waits && self.begins.len() >= self.queue_packets;
        if full || self.under_way.len() >= MAX_UNDER_WAY_PACKETS {
            self.stats.refused += 1;
            return Err(QueueFull { frame: packet });
        }
        if waits {
            self.begins.push_back(self.idle_at);
        }
        let ns = self.transmission_ns(len_bytes);
        let end = later(self.idle_at.max(now), ns);
        self.idle_at = end;
        self.stats.sent_bytes += u64::from(len_bytes);
        self.stats.busy_ns = self.stats.busy_ns.saturating_add(ns);
        if self.loss.as_mut().is_some_and(|loss| loss.erasure.draw(&mut loss.stream)) {
            self.stats.erased += 1;
            return Ok(Some(packet));
        }
        self.under_way.push_back((later(end, self.delay_ns), packet));
        Ok(None)
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

    /// Packets waiting for the transmitter at `now`, without the one it is sending.
    pub fn backlog(&self, now: Time) -> usize {
        self.begins.len() - self.begins.partition_point(|&begin| begin <= now)
    }

    /// Packets taken and not yet polled, without those that the line loses.
    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// What happened so far.
    pub fn stats(&self) -> &PipeStats {
        &self.stats
    }

    /// How long the transmission of `len_bytes` takes: its bits divided by the rate, rounded up to
    /// a whole nanosecond.
    fn transmission_ns(&mut self, len_bytes: u32) -> u64 {
        if self.transmission.0 != len_bytes {
            let ns = u128::from(len_bytes) * u128::from(8 * NS_PER_S);
            let ns = ns.div_ceil(u128::from(self.rate_bps));
            self.transmission = (len_bytes, u64::try_from(ns).unwrap_or(u64::MAX));
        }
        self.transmission.1
    }
}

fn later(at: Time, ns: u64) -> Time {
    Time::from_nanos(at.as_nanos().saturating_add(ns))
}
