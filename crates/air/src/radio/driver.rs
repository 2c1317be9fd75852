//! Runs radios and their MACs in virtual time, with an agenda of the MACs' timers.
//!
//! At one instant receptions end first, each reported to its station's MAC at once; then events are
//! handed to the driver; then MACs decide, and what they send begins. So a station whose backoff
//! ends at an instant sends, even if others begin at that instant.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use corridor_base::{StreamKey, Time};

use crate::config::Station;
use crate::dcf::{Dcf, DcfConfig, Rules};
use crate::error::QueueFull;
use crate::limits::MAX_QUEUE_FRAMES;
use crate::medium::Address;
use crate::phy::{MacEvent, MacFrame, MacStats, Notice, Queued, Radio, RadioConfig, RadioError};
use crate::wpan::{MAX_FRAME_BYTES, Wpan, WpanConfig};

/// Longest frame of 802.11, header and check sequence included.
pub const MAX_DCF_FRAME_BYTES: u32 = 2346;

/// The stations' MAC.
#[derive(Clone, Debug, PartialEq)]
pub enum MacConfig {
    /// IEEE 802.11.
    Dcf(DcfConfig),
    /// IEEE 802.15.4.
    Wpan(WpanConfig),
}

impl MacConfig {
    /// Most bytes of a payload that a frame can carry.
    pub fn payload_bytes_max(&self) -> u32 {
        match self {
            MacConfig::Dcf(dcf) => MAX_DCF_FRAME_BYTES.saturating_sub(dcf.header_bytes),
            MacConfig::Wpan(wpan) => MAX_FRAME_BYTES.saturating_sub(wpan.header_bytes),
        }
    }
}

/// Stations with radios and MACs.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioMediumConfig {
    /// The stations and their radios, and the seed.
    pub radio: RadioConfig,
    /// The MAC that each of them has.
    pub mac: MacConfig,
    /// Most frames of one station, waiting or on the air, 1 to [`MAX_QUEUE_FRAMES`].
    pub queue_frames: usize,
}

#[derive(Debug)]
enum Mac<P> {
    Dcf(Dcf<P>),
    /// On the heap: larger than the other variant.
    Wpan(Box<Wpan<P>>),
}

/// Stations that send and receive in virtual time. See the module's overview.
///
/// ```
/// use corridor_air::Address;
/// use corridor_air::dcf::DcfConfig;
/// use corridor_air::radio::{
///     Decoding, Fading, Links, MacConfig, MacEvent, RadioConfig, RadioLink, RadioMedium,
///     RadioMediumConfig, RadioStation, Rate, Receiver, SendOutcome,
/// };
/// use corridor_base::Time;
///
/// // Two stations at 16 dBm, 80 dB apart.
/// let station = RadioStation { power_dbm: 16.0, ..RadioStation::default() };
/// let radio = RadioConfig {
///     stations: vec![station; 2],
///     links: Links::Matrix(vec![RadioLink::new(0, 1, 80.0), RadioLink::new(1, 0, 80.0)]),
///     fading: Fading::None,
///     receiver: Receiver::DOT11,
///     propagation: core::time::Duration::ZERO,
///     seed: 1,
///     replication: 0,
/// };
/// let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm54));
/// let mut medium = RadioMedium::new(&RadioMediumConfig { radio, mac, queue_frames: 50 })?;
/// medium.offer(Time::ZERO, 0, Address::Station(1), 1000, "a frame").expect("the queue is empty");
///
/// let mut events = Vec::new();
/// while let Some(now) = medium.poll_timeout() {
///     medium.handle_timeout(now);
///     while let Some(event) = medium.poll_event() {
///         events.push(event);
///     }
/// }
///
/// // 176 us of data, SIFS, and an ACK of 28 us at 24 Mbit/s.
/// assert!(matches!(events[0], MacEvent::Received { at, station: 1, .. }
///     if at == Time::from_nanos(176_000)));
/// assert!(matches!(events[1], MacEvent::Sent { at, outcome: SendOutcome::Acknowledged, .. }
///     if at == Time::from_nanos(220_000)));
/// # Ok::<(), corridor_air::radio::RadioError>(())
/// ```
#[derive(Debug)]
pub struct RadioMedium<P> {
    radio: Radio<P>,
    macs: Vec<Mac<P>>,
    /// Longest payload, bytes.
    payload_bytes_max: u32,
    queue_frames: usize,
    /// By station: the earliest time for which it is on the agenda.
    listed: Vec<Time>,
    /// Stations, and the latest time by which to serve each.
    agenda: BinaryHeap<Reverse<Entry>>,
    now: Time,
    events: VecDeque<MacEvent<P>>,
    /// Transmissions that have begun, if they are kept.
    begun: Option<VecDeque<Begun<P>>>,
}

/// A time and a station, packed into one number so that a heap compares without unpredictable
/// branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Time, station: Station) -> Self {
        Entry(u128::from(at.as_nanos()) << 64 | station as u128)
    }

    fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    fn station(self) -> Station {
        self.0 as u64 as Station
    }
}

/// A transmission that has begun: what a sniffer that hears everything would record.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun<P> {
    /// When it began.
    pub at: Time,
    /// Its airtime.
    pub airtime: Duration,
    /// The frame.
    pub frame: MacFrame<P>,
}

/// Most begun transmissions that are kept unpolled; further ones are dropped.
pub const MAX_BEGUN: usize = 1 << 20;

impl<P: Clone> RadioMedium<P> {
    /// Idle stations.
    ///
    /// # Errors
    /// The first setting that is out of its range.
    pub fn new(config: &RadioMediumConfig) -> Result<Self, RadioError> {
        let RadioMediumConfig { radio, mac, queue_frames } = config;
        if !(1..=MAX_QUEUE_FRAMES).contains(queue_frames) {
            return Err(RadioError::Mac {
                field: "queue_frames",
                given: *queue_frames as u64,
                least: 1,
                most: MAX_QUEUE_FRAMES as u64,
            });
        }
        let built = Radio::new(radio)?;
        let stations = radio.stations.len();
        let mut macs = Vec::with_capacity(stations);
        let (dcf, wpan) = match mac {
            MacConfig::Dcf(config) => (Some(Arc::new(Rules::new(config.clone())?)), None),
            MacConfig::Wpan(config) => (None, Some(Arc::new(config.clone()))),
        };
        for (index, station) in radio.stations.iter().enumerate() {
            let key = StreamKey {
                seed: radio.seed,
                replication: radio.replication,
                entity: index as u64,
                purpose: "backoff",
            };
            let promiscuous = station.promiscuous;
            if let Some(rules) = &dcf {
                let rules = Arc::clone(rules);
                macs.push(Mac::Dcf(Dcf::new(rules, key, *queue_frames, promiscuous)));
            } else if let Some(config) = &wpan {
                let config = Arc::clone(config);
                macs.push(Mac::Wpan(Box::new(Wpan::new(config, key, *queue_frames, promiscuous)?)));
            }
        }
        Ok(RadioMedium {
            radio: built,
            macs,
            payload_bytes_max: mac.payload_bytes_max(),
            queue_frames: *queue_frames,
            listed: vec![Time::MAX; stations],
            agenda: BinaryHeap::new(),
            now: Time::ZERO,
            events: VecDeque::new(),
            begun: None,
        })
    }

    /// Puts a frame of `len_bytes` at the end of the queue of station `from`, at `now`.
    ///
    /// Handles everything before `now` first, so that events may become available.
    ///
    /// # Errors
    /// [`QueueFull`], with the payload in it, if there is no room, if the frame is longer than
    /// [`MacConfig::payload_bytes_max`], or if there is no such station.
    pub fn offer(
        &mut self,
        now: Time,
        from: Station,
        to: Address,
        len_bytes: u32,
        payload: P,
    ) -> Result<(), QueueFull<P>> {
        self.advance(now);
        if len_bytes > self.payload_bytes_max {
            return Err(QueueFull { frame: payload });
        }
        let taken = match self.macs.get_mut(from) {
            Some(Mac::Dcf(mac)) => mac.offer(self.now, to, len_bytes, payload),
            Some(Mac::Wpan(mac)) => mac.offer(self.now, to, len_bytes, payload),
            None => return Err(QueueFull { frame: payload }),
        };
        self.list(from);
        taken
    }

    /// Whether a station's queue has room for a frame, as of the latest time given to the medium.
    pub fn has_room(&self, station: Station) -> bool {
        station < self.macs.len() && self.backlog(station) < self.queue_frames
    }

    /// Frames of a station that were accepted and are not finished; 0 if there is no such station.
    pub fn backlog(&self, station: Station) -> usize {
        match self.macs.get(station) {
            Some(Mac::Dcf(mac)) => mac.backlog(),
            Some(Mac::Wpan(mac)) => mac.backlog(),
            None => 0,
        }
    }

    /// When to call [`RadioMedium::handle_timeout`] next; a time that has passed means now.
    pub fn poll_timeout(&self) -> Option<Time> {
        let timer = self.agenda.peek().map(|Reverse(entry)| entry.at());
        match (self.radio.poll_timeout(), timer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Handles everything up to `now`, each at its own time and in order.
    ///
    /// Decisions of MACs at the instant `now` itself are left to another call if receptions ended
    /// at that instant, so that the driver can answer them in between; until then
    /// [`RadioMedium::poll_timeout`] returns `now` again.
    pub fn handle_timeout(&mut self, now: Time) {
        if !self.advance(now) {
            while self.decide(self.now) {}
        }
    }

    /// The next frame received, or finished, in order of time.
    pub fn poll_event(&mut self) -> Option<MacEvent<P>> {
        self.events.pop_front()
    }

    /// From now on, keeps every transmission for [`RadioMedium::poll_transmission`], at most
    /// [`MAX_BEGUN`] of them. Nothing else changes.
    pub fn keep_transmissions(&mut self) {
        self.begun.get_or_insert_default();
    }

    /// The next transmission that has begun, in order; `None` also if they are not kept.
    pub fn poll_transmission(&mut self) -> Option<Begun<P>> {
        self.begun.as_mut()?.pop_front()
    }

    /// Counters of a station's MAC; all zero if there is no such station.
    pub fn stats(&self, station: Station) -> MacStats {
        let stats = match self.macs.get(station) {
            Some(Mac::Dcf(mac)) => mac.stats(),
            Some(Mac::Wpan(mac)) => *mac.stats(),
            None => MacStats::default(),
        };
        MacStats { receiving: self.radio.receiving(station), ..stats }
    }

    /// The radios, for inspection.
    pub fn radio(&self) -> &Radio<P> {
        &self.radio
    }

    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.macs.len()
    }

    /// Frames of a station that have not been on the air yet, in order: their contents and lengths
    /// may still be changed.
    pub fn waiting_mut(&mut self, station: Station) -> impl Iterator<Item = &mut Queued<P>> {
        let (dcf, wpan) = match self.macs.get_mut(station) {
            Some(Mac::Dcf(mac)) => (Some(mac.waiting_mut()), None),
            Some(Mac::Wpan(mac)) => (None, Some(mac.waiting_mut())),
            None => (None, None),
        };
        dcf.into_iter().flatten().chain(wpan.into_iter().flatten())
    }

    /// Moves to `now`: the radio up to `now`, MACs before `now`. Returns whether receptions ended
    /// at `now` itself.
    fn advance(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        let mut ended = false;
        loop {
            let timer = self.agenda.peek().map_or(Time::MAX, |Reverse(entry)| entry.at());
            let radio = self.radio.poll_timeout().unwrap_or(Time::MAX);
            if radio <= timer && radio <= self.now {
                self.radio.handle_timeout(radio);
                self.notify(radio);
                ended |= radio == self.now;
            } else if timer < self.now {
                self.decide(timer);
            } else {
                return ended;
            }
        }
    }

    /// Serves the next station that is due at `at` or before. Returns whether there was one.
    fn decide(&mut self, at: Time) -> bool {
        let Some(&Reverse(entry)) = self.agenda.peek().filter(|entry| entry.0.at() <= at) else {
            return false;
        };
        self.agenda.pop();
        let (due, station) = (entry.at(), entry.station());
        if self.listed[station] != due {
            return true;
        }
        self.listed[station] = Time::MAX;
        // The timer may have moved on since it was listed.
        let transmit = match &mut self.macs[station] {
            Mac::Dcf(mac) if mac.poll_timeout().is_some_and(|at| at <= due) => {
                mac.handle_timeout(due, &mut self.events)
            }
            Mac::Wpan(mac) if mac.poll_timeout().is_some_and(|at| at <= due) => {
                mac.handle_timeout(due, &mut self.events)
            }
            _ => None,
        };
        if let Some(transmit) = transmit {
            if let Some(begun) = self.begun.as_mut().filter(|begun| begun.len() < MAX_BEGUN) {
                let (airtime, frame) = (transmit.airtime, transmit.frame.clone());
                begun.push_back(Begun { at: due, airtime, frame });
            }
            self.radio.transmit(due, transmit);
            self.notify(due);
        }
        self.list(station);
        true
    }

    /// Passes the radio's notices to MACs.
    fn notify(&mut self, at: Time) {
        while let Some(notice) = self.radio.poll_notice() {
            let events = &mut self.events;
            let station = match notice {
                Notice::Busy(station)
                | Notice::Idle(station)
                | Notice::Undecoded(station)
                | Notice::Sent(station, _)
                | Notice::Decoded(station, ..) => station,
            };
            let may_move_timer = match &mut self.macs[station] {
                Mac::Dcf(mac) => {
                    match notice {
                        Notice::Busy(_) => mac.handle_busy(at),
                        Notice::Idle(_) => mac.handle_idle(at, events),
                        Notice::Sent(_, busy) => mac.handle_sent(at, busy, events),
                        Notice::Undecoded(_) => mac.handle_undecoded(at, events),
                        Notice::Decoded(_, transmission, quality) => {
                            if let Some(frame) = self.radio.frame(transmission) {
                                mac.handle_frame(at, frame, quality, events);
                            }
                        }
                    }
                    true
                }
                // It backs off blindly: what it senses changes none of its timers.
                Mac::Wpan(mac) => match notice {
                    Notice::Busy(_) => {
                        mac.handle_busy(at);
                        false
                    }
                    Notice::Idle(_) => {
                        mac.handle_idle();
                        false
                    }
                    Notice::Undecoded(_) => {
                        mac.handle_undecoded();
                        false
                    }
                    Notice::Sent(_, busy) => {
                        mac.handle_sent(at, busy, events);
                        true
                    }
                    Notice::Decoded(_, transmission, quality) => {
                        if let Some(frame) = self.radio.frame(transmission) {
                            mac.handle_frame(at, frame, quality, events);
                        }
                        true
                    }
                },
            };
            if may_move_timer {
                self.list(station);
            }
        }
    }

    /// Puts a station on the agenda, unless it is there for an earlier time, when it will be listed
    /// again.
    fn list(&mut self, station: Station) {
        let due = match &self.macs[station] {
            Mac::Dcf(mac) => mac.poll_timeout(),
            Mac::Wpan(mac) => mac.poll_timeout(),
        };
        if let Some(due) = due
            && due < self.listed[station]
        {
            self.listed[station] = due;
            self.agenda.push(Reverse(Entry::new(due, station)));
        }
    }
}

// What a reception accesses of a station's MAC is two cache lines.
const _: () = assert!(core::mem::size_of::<Mac<u64>>() == 128);
