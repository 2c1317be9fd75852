//! The medium: queues, access, airtime, erasure, delivery, retry.
//!
//! Follows the stages of the crate's overview in order: `offer`, `decide_access`, `begin`, `end`
//! (erasure, delivery, retry), `poll_delivery`.
//!
//! There is too little to schedule for a general event queue: only ends of transmissions are timed
//! events, one for each busy channel. Deliveries need no sorting, because transmissions end in
//! order and have the same propagation delay.

use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

use crate::config::{Duplex, Link, MediumConfig, Station};
use crate::error::{AirError, QueueFull};
use crate::link::LinkState;
use crate::stats::{LinkStats, StationStats};

/// The bytes of a frame, shared by all stations that hear it.
pub type Frame = Arc<[u8]>;

/// A frame type that a medium can carry: it has a length on the air, and is cheap to clone for
/// every station that hears it.
pub trait Carried: Clone {
    /// Bytes that it takes on the air.
    fn len_bytes(&self) -> usize;
}

impl Carried for Frame {
    fn len_bytes(&self) -> usize {
        self.len()
    }
}

/// Once this many deliveries are not yet polled, or still propagating, no frame is accepted: a
/// driver that does not drain is pushed back instead of filling the memory.
pub const MAX_DELIVERIES: usize = 1 << 20;

/// To whom a frame is addressed. Any station may hear it all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// One station.
    Station(Station),
    /// Every station that hears it; never retransmitted.
    All,
}

/// A transmission heard by a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<F = Frame> {
    /// When the station has it: end of the airtime plus propagation.
    pub at: Time,
    /// The sending station.
    pub from: Station,
    /// The hearing station.
    pub to: Station,
    /// Whether it was addressed to `to` or to all; otherwise `to` overheard it.
    pub addressed: bool,
    /// The frame, as it was offered.
    pub frame: F,
}

/// A transmission that has ended, and its outcome: what a sniffer that hears everything would
/// record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission<F = Frame> {
    /// When its airtime began, overhead included.
    pub began_at: Time,
    /// When its airtime ended; stations that heard it have it one propagation delay later.
    pub ended_at: Time,
    /// The sending station.
    pub from: Station,
    /// To whom it was addressed.
    pub to: Address,
    /// How often the frame had been on the air before.
    pub retransmissions: u32,
    /// The stations that a link leads to, in ascending order, and whether each of them heard it.
    pub hearers: Vec<(Station, bool)>,
    /// The frame, as it was offered.
    pub frame: F,
}

/// A channel shared by all stations or one for each, links with erasures, and finite queues.
///
/// See the crate's overview for what it models and how to drive it.
#[derive(Debug)]
pub struct Medium<F = Frame> {
    mode: Duplex,
    rate_bps: u64,
    overhead: Duration,
    propagation: Duration,
    queue_frames: usize,
    drops_when_full: bool,
    /// The latest time that the driver gave.
    now: Time,
    stations: Vec<StationState<F>>,
    /// Sorted by (from, to), so the links of one sender are adjacent.
    links: Vec<LinkState>,
    /// Ends of the transmissions on the air, by (time, sequence of their beginnings).
    ends: BinaryHeap<Reverse<End>>,
    /// Half duplex: stations with a waiting frame, without the one on the air, in no order.
    contenders: Vec<Station>,
    /// Half duplex: since when the channel has been idle with a frame waiting. Never later than
    /// `now`.
    access_at: Option<Time>,
    access: Stream,
    sequence: u64,
    /// In order of `at`.
    deliveries: VecDeque<Delivery<F>>,
    /// Stations that had no room and now have some, each once, in the order of getting it.
    relieved: VecDeque<Station>,
    /// Transmissions that have ended, if they are kept.
    ended: Option<VecDeque<Transmission<F>>>,
}

#[derive(Debug)]
struct StationState<F> {
    /// The head is on the air or goes next.
    queue: VecDeque<Queued<F>>,
    /// Links from this station, as a range of `Medium::links`.
    links: Range<usize>,
    /// Whether it is among `Medium::relieved`.
    relieved: bool,
    stats: StationStats,
}

#[derive(Debug)]
struct Queued<F> {
    to: Address,
    /// The link to the addressed station, if there is one.
    link: Option<usize>,
    retransmissions: u32,
    airtime: Duration,
    frame: F,
}

/// End of a transmission. The order of the fields is the order of events.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    at: Time,
    sequence: u64,
    from: Station,
}

impl<F: Carried> Medium<F> {
    /// An idle medium at [`Time::ZERO`].
    ///
    /// # Errors
    /// The first field of `config` found out of its range; see [`MediumConfig::check`].
    pub fn new(config: MediumConfig) -> Result<Self, AirError> {
        config.check()?;
        let mut links = Vec::with_capacity(config.links.len());
        for (index, link) in config.links.iter().enumerate() {
            let Link { from, to, .. } = *link;
            let refused = |source| AirError::Erasure { index, from, to, source };
            links.push(LinkState::new(link, &config).map_err(refused)?);
        }
        links.sort_unstable_by_key(|link| (link.from, link.to));
        let station = |station| StationState {
            queue: VecDeque::new(),
            links: links.partition_point(|link| link.from < station)
                ..links.partition_point(|link| link.from <= station),
            relieved: false,
            stats: StationStats::default(),
        };
        let access = StreamKey {
            seed: config.seed,
            replication: config.replication,
            entity: 0,
            purpose: "access",
        };
        Ok(Medium {
            mode: config.mode,
            rate_bps: config.rate_bps,
            overhead: config.overhead,
            propagation: config.propagation,
            queue_frames: config.queue_frames,
            drops_when_full: config.drops_when_full,
            now: Time::ZERO,
            stations: (0..config.stations).map(station).collect(),
            links,
            ends: BinaryHeap::with_capacity(config.stations),
            contenders: Vec::with_capacity(config.stations),
            access_at: None,
            access: access.stream(),
            sequence: 0,
            deliveries: VecDeque::new(),
            relieved: VecDeque::new(),
            ended: None,
        })
    }

    /// Puts a frame at the end of the queue of station `from`, at time `now`.
    ///
    /// A `Vec<u8>` or `&[u8]` is copied once, when it is taken; an `Arc<[u8]>` is not.
    ///
    /// Handles everything up to `now` first, so deliveries may become available. Frames that the
    /// driver offers at the same instant, before its next [`Medium::handle_timeout`], contend
    /// together.
    ///
    /// # Errors
    /// [`QueueFull`], with the frame in it, if there is no room at `now` (see
    /// [`Medium::has_room`]), or no such station.
    pub fn offer<I: Into<F>>(
        &mut self,
        now: Time,
        from: Station,
        to: Address,
        frame: I,
    ) -> Result<(), QueueFull<I>> {
        self.advance(now);
        let room = self.has_room(from);
        let Some(station) = self.stations.get_mut(from) else {
            return Err(QueueFull { frame });
        };
        station.stats.offered += 1;
        if !room {
            station.stats.refused += 1;
            return Err(QueueFull { frame });
        }
        if station.queue.len() >= self.queue_frames {
            station.stats.dropped += 1;
            return Ok(());
        }
        let frame: F = frame.into();
        let airtime = self.airtime(frame.len_bytes());
        let link = match to {
            Address::Station(to) => self.link_index(from, to),
            Address::All => None,
        };
        let queue = &mut self.stations[from].queue;
        let was_empty = queue.is_empty();
        queue.push_back(Queued { to, link, retransmissions: 0, airtime, frame });
        if was_empty {
            self.contend(from, self.now);
        }
        Ok(())
    }

    /// Whether station `station` can offer a frame: its queue is not full, and there are fewer than
    /// [`MAX_DELIVERIES`] deliveries that the driver has not polled.
    ///
    /// As of the latest time given to the medium; [`Medium::handle_timeout`] makes room.
    pub fn has_room(&self, station: Station) -> bool {
        self.deliveries.len() < MAX_DELIVERIES
            && self.ended.as_ref().is_none_or(|ended| ended.len() < MAX_DELIVERIES)
            && self
                .stations
                .get(station)
                .is_some_and(|s| self.drops_when_full || s.queue.len() < self.queue_frames)
    }

    /// Frames of station `station` in the medium, waiting or on the air; 0 if there is no such
    /// station.
    ///
    /// As of the latest time given to the medium.
    pub fn backlog(&self, station: Station) -> usize {
        self.stations.get(station).map_or(0, |s| s.queue.len())
    }

    /// When to call [`Medium::handle_timeout`] next: at the next end of a transmission, decision of
    /// access, or delivery. A time that has passed means now. `None`: the medium is idle and
    /// drained.
    pub fn poll_timeout(&self) -> Option<Time> {
        let end = self.ends.peek().map(|Reverse(end)| end.at);
        let delivery = self.deliveries.front().map(|delivery| delivery.at);
        [end, delivery, self.access_at].into_iter().flatten().min()
    }

    /// Handles everything up to `now`, each at its own time and in order.
    ///
    /// Access at the instant `now` itself is decided only by a call that finds nothing else to do
    /// at that instant, so that the driver can offer frames in between; until then
    /// [`Medium::poll_timeout`] returns `now` again.
    pub fn handle_timeout(&mut self, now: Time) {
        let earlier = self.now;
        let ended = self.advance(now);
        if self.now == earlier && !ended && self.access_at == Some(self.now) {
            self.decide_access(self.now);
        }
    }

    /// The next transmission heard, if it has arrived by the latest time given to the medium.
    ///
    /// In order of arrival; at the same instant, in the order in which the transmissions began,
    /// and for one transmission by hearing station.
    pub fn poll_delivery(&mut self) -> Option<Delivery<F>> {
        if self.deliveries.front()?.at > self.now {
            return None;
        }
        self.deliveries.pop_front()
    }

    /// The next station whose queue was full and has room again, so that a driver with many
    /// stations need not ask them all. In the order of getting room; each station once until it is
    /// polled.
    pub fn poll_room(&mut self) -> Option<Station> {
        let station = self.relieved.pop_front()?;
        self.stations[station].relieved = false;
        Some(station)
    }

    /// From now on, keeps every transmission for [`Medium::poll_transmission`]. Nothing else
    /// changes. A driver that does not take them is pushed back at [`MAX_DELIVERIES`].
    pub fn keep_transmissions(&mut self) {
        self.ended.get_or_insert_default();
    }

    /// The next transmission that has ended, in order of ends; `None` also if they are not kept. To
    /// be taken before the deliveries, which come later or at the same time.
    pub fn poll_transmission(&mut self) -> Option<Transmission<F>> {
        self.ended.as_mut()?.pop_front()
    }

    /// Counters of one station; all zero if there is no such station.
    pub fn stats(&self, station: Station) -> StationStats {
        self.stations.get(station).map_or_else(StationStats::default, |s| s.stats)
    }

    /// Whether the stations share a channel.
    pub fn duplex(&self) -> Duplex {
        self.mode
    }

    /// Counters of the link between two stations; `None` if there is no such link.
    pub fn link_stats(&self, from: Station, to: Station) -> Option<LinkStats> {
        self.link_index(from, to).map(|index| self.links[index].stats)
    }

    /// How long a frame of `len_bytes` occupies the channel: overhead + 8 `len_bytes` / PHY rate,
    /// rounded up to a whole nanosecond.
    pub fn airtime(&self, len_bytes: usize) -> Duration {
        const NS_PER_S: u128 = 1_000_000_000;
        let bits_ns = len_bytes as u128 * 8 * NS_PER_S;
        let ns = bits_ns.div_ceil(u128::from(self.rate_bps));
        self.overhead + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    /// Moves to `now`: handles ends of transmissions up to `now`, and decisions of access before
    /// `now`. Returns whether a transmission ended at `now` itself.
    fn advance(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        let mut ended = false;
        loop {
            // In half duplex the channel is either busy or contended for, never both; in full
            // duplex there is no contention. So these two need no ordering.
            if let Some(at) = self.access_at
                && at < self.now
            {
                self.decide_access(at);
            } else if let Some(Reverse(end)) = self.ends.peek()
                && end.at <= self.now
            {
                let End { at, from, .. } = *end;
                self.ends.pop();
                self.end(from, at);
                ended |= at == self.now;
            } else {
                return ended;
            }
        }
    }

    /// Station `from`, which is not sending, has a frame at the head of its queue.
    fn contend(&mut self, from: Station, at: Time) {
        match self.mode {
            Duplex::Full => self.begin(from, at),
            Duplex::Half => {
                self.contenders.push(from);
                if self.ends.is_empty() {
                    // An earlier offer at this very instant has set the same time already.
                    self.access_at = Some(at);
                }
            }
        }
    }

    /// Gives the idle shared channel to one of the contenders, uniformly at random.
    fn decide_access(&mut self, at: Time) {
        self.access_at = None;
        let index = match self.contenders.len() {
            0 => return,
            1 => 0,
            // The high half of the product is uniform except for a bias of count / 2^64.
            count => ((u128::from(self.access.next_u64()) * count as u128) >> 64) as usize,
        };
        let from = self.contenders.swap_remove(index);
        self.begin(from, at);
    }

    /// The head frame of station `from` goes on the air.
    fn begin(&mut self, from: Station, at: Time) {
        let Some(head) = self.stations[from].queue.front() else { return };
        self.ends.push(Reverse(End { at: at + head.airtime, sequence: self.sequence, from }));
        self.sequence += 1;
    }

    /// The head frame of station `from` has been on the air: determines who heard it, and what is
    /// next.
    fn end(&mut self, from: Station, at: Time) {
        let heard = self.deliver(from, at);
        self.retry_or_release(from, heard);
        let waiting = !self.stations[from].queue.is_empty();
        if waiting {
            self.contend(from, at);
        } else if !self.contenders.is_empty() {
            self.access_at = Some(at);
        }
    }

    /// Has every link of station `from` draw for its head frame, and queues the deliveries. Returns
    /// whether the addressed station heard it.
    fn deliver(&mut self, from: Station, end: Time) -> bool {
        let links = self.stations[from].links.clone();
        let mut addressed_heard = false;
        self.keep(from, end);
        for index in links {
            let link = &mut self.links[index];
            let heard = link.carries();
            if let Some(kept) = self.ended.as_mut().and_then(VecDeque::back_mut) {
                kept.hearers.push((link.to, heard));
            }
            if !heard {
                continue;
            }
            let (to, at) = (link.to, link.arrival(end + self.propagation));
            let Some(head) = self.stations[from].queue.front() else { break };
            let addressed = head.link == Some(index) || head.to == Address::All;
            addressed_heard |= head.link == Some(index);
            let frame = head.frame.clone();
            self.stations[to].stats.hear(frame.len_bytes(), addressed);
            // Without jitter each arrives after all earlier ones.
            let behind = self.deliveries.partition_point(|before| before.at <= at);
            self.deliveries.insert(behind, Delivery { at, from, to, addressed, frame });
        }
        addressed_heard
    }

    /// Records the transmission of the head frame of station `from`, if transmissions are kept.
    fn keep(&mut self, from: Station, ended_at: Time) {
        let Some(head) = self.stations[from].queue.front() else { return };
        let Some(ended) = &mut self.ended else { return };
        ended.push_back(Transmission {
            began_at: Time::from_nanos(
                ended_at.as_nanos().saturating_sub(head.airtime.as_nanos() as u64),
            ),
            ended_at,
            from,
            to: head.to,
            retransmissions: head.retransmissions,
            hearers: Vec::new(),
            frame: head.frame.clone(),
        });
    }

    /// Counts the transmission of the head frame of station `from`; the frame leaves the queue
    /// unless it is to be sent again.
    fn retry_or_release(&mut self, from: Station, heard: bool) {
        let StationState { queue, stats, relieved, .. } = &mut self.stations[from];
        let Some(head) = queue.front_mut() else { return };
        let repeated = head.retransmissions > 0;
        stats.send(head.frame.len_bytes(), head.airtime, repeated);
        let mut retry_limit = 0;
        if let Some(index) = head.link {
            let link = &mut self.links[index];
            link.stats.addressed += 1;
            link.stats.retransmissions += u64::from(repeated);
            retry_limit = link.retry_limit;
        }
        if !heard && head.retransmissions < retry_limit {
            head.retransmissions += 1;
            return;
        }
        if head.to != Address::All {
            stats.release(heard);
        }
        if queue.len() == self.queue_frames && !core::mem::replace(relieved, true) {
            self.relieved.push_back(from);
        }
        queue.pop_front();
    }

    fn link_index(&self, from: Station, to: Station) -> Option<usize> {
        let links = self.stations.get(from)?.links.clone();
        let first = links.start;
        self.links[links].binary_search_by_key(&to, |link| link.to).ok().map(|i| first + i)
    }
}
