//! Receptions: beginning, end, power, interference; carrier sense, locking, capture.
//!
//! A transmission begins at its sender at once and arrives, one propagation delay later, at every
//! station that a link leads to. There it adds to the power sensed. A receiver that neither sends
//! nor is locked on to a frame locks on to it if it is strong enough, and tracks the interference
//! until the frame ends. Then the frame is decoded or not. Sums of power are computed anew at each
//! change, so that no rounding errors accumulate.

use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

use corridor_base::{Stream, StreamKey, Time};

use super::arrivals::{Arrivals, Arriving, TransmissionIndex};
use super::config::{Decoding, Fading, RadioConfig, Receiver};
use super::error::RadioError;
use super::error_ratio::{Known, Span};
use super::fading::{Variation, Variations, uniform};
use super::limits::MAX_RADIOS;
use super::mac::{MacFrame, Quality, Transmit};
use super::propagation::{self, milliwatts};
use super::rate::Rate;
use crate::config::Station;
use crate::erasure::Erasure;

/// Stands for "no index".
const NONE: u32 = u32::MAX;

/// A notice of the radio to a station's MAC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Notice {
    /// The channel has become busy. Not reported while the station sends.
    Busy(Station),
    /// The channel has become idle. Not reported while the station sends.
    Idle(Station),
    /// The station's own transmission has ended; whether the channel is busy with others.
    Sent(Station, bool),
    /// A frame was received: [`Radio::frame`] returns it until the radio is asked for more.
    Decoded(Station, TransmissionIndex, Quality),
    /// A frame that the receiver was locked on to has ended and was not decoded.
    Undecoded(Station),
}

/// The radios of one medium, without MACs. See the module's overview.
#[derive(Debug)]
pub struct Radio<P> {
    receiver: Levels,
    propagation: Duration,
    now: Time,
    stations: Vec<StationState>,
    apart: Vec<Apart>,
    /// Sorted by sender: the links of each sender are adjacent.
    links: LinkTable,
    variations: Variations,
    erasures: Vec<(Erasure, Stream)>,
    on_air: Vec<Option<OnAir<P>>>,
    free: Vec<TransmissionIndex>,
    /// Future events of transmissions, by (time, order).
    agenda: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    notices: VecDeque<Notice>,
    /// A transmission that has ended everywhere, to be removed once its notices are taken.
    ended: Option<TransmissionIndex>,
}

/// [`Receiver`], in milliwatts and linear ratios.
#[derive(Debug)]
struct Levels {
    noise_mw: f64,
    sensitivity_mw: f64,
    sense_mw: f64,
    lock_sinr: f64,
    capture: Option<(f64, Duration)>,
    decoding: Decoding,
    /// For [`Decoding::Threshold`].
    sinr: f64,
    /// For [`Decoding::ErrorRatio`].
    known: Known,
}

/// State that every reception accesses: two cache lines, so that those of a thousand stations fit
/// into the cache.
#[derive(Debug)]
#[repr(align(64))]
struct StationState {
    locked: Option<Locked>,
    arriving: Arrivals,
    /// How long it has been locked on to earlier frames.
    receiving_ns: u64,
    sending: bool,
    /// What was last reported.
    busy: bool,
}

const _: () = assert!(size_of::<StationState>() == 128);

impl StationState {
    /// Ends the lock on a frame.
    fn unlock(&mut self, now: Time) {
        if let Some(locked) = self.locked.take() {
            self.receiving_ns += now.as_nanos().saturating_sub(locked.since.as_nanos());
        }
    }
}

/// Further state of a station.
#[derive(Debug)]
struct Apart {
    links: Range<u32>,
    /// Random stream for [`Decoding::ErrorRatio`].
    luck: Option<Box<Stream>>,
    /// Spans of the frame that it is locked on to, for the same.
    spans: Vec<Span>,
}

/// The links, one column for each property: the end of a frame accesses only the first.
#[derive(Debug)]
struct LinkTable {
    to: Vec<u32>,
    power_mw: Vec<f64>,
    /// Indices of fading and loss processes; empty if no link has any.
    processes: Vec<(u32, u32)>,
}

impl LinkTable {
    fn with_capacity(count: usize) -> Self {
        LinkTable {
            to: Vec::with_capacity(count),
            power_mw: Vec::with_capacity(count),
            processes: Vec::with_capacity(count),
        }
    }

    fn push(&mut self, to: u32, power_mw: f64, variation: u32, erasure: u32) {
        self.to.push(to);
        self.power_mw.push(power_mw);
        self.processes.push((variation, erasure));
    }
}

#[derive(Clone, Copy, Debug)]
struct Locked {
    transmission: TransmissionIndex,
    since: Time,
    rate: Rate,
    /// Bit rate on the air, preamble included.
    bits_per_ns: f64,
    /// Smallest SINR so far, linear.
    sinr_min: f64,
    /// The current SINR, and since when it holds.
    sinr: f64,
    span_since: Time,
}

impl Locked {
    /// Bits since the interference last changed.
    fn span_bits(&self, now: Time) -> f64 {
        now.since(self.span_since).as_nanos() as f64 * self.bits_per_ns
    }
}

#[derive(Debug)]
struct OnAir<P> {
    frame: MacFrame<P>,
    airtime: Duration,
}

/// In the order of events at one instant: ends come before beginnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    SendingEnds,
    ArrivalEnds,
    ArrivalBegins,
}

/// A future event of a transmission, packed into one number so that a heap compares without
/// unpredictable branches. From the highest bit: time, step, sequence number, transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due(u128);

/// Bits of an index in `on_air`: there are no more transmissions at a time than stations.
const TRANSMISSION_BITS: u32 = 24;
const _: () = assert!(MAX_RADIOS <= 1 << TRANSMISSION_BITS);
/// Bits of the sequence number. When it wraps, only events of the same instant may change their
/// order.
const SEQUENCE_BITS: u32 = 38;

impl Due {
    fn new(at: Time, step: Step, sequence: u64, transmission: TransmissionIndex) -> Self {
        let sequence = sequence & ((1 << SEQUENCE_BITS) - 1);
        let order = (step as u64) << SEQUENCE_BITS | sequence;
        let low = order << TRANSMISSION_BITS | u64::from(transmission);
        Due(u128::from(at.as_nanos()) << 64 | u128::from(low))
    }

    fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    fn step(self) -> Step {
        match self.0 as u64 >> (SEQUENCE_BITS + TRANSMISSION_BITS) {
            0 => Step::SendingEnds,
            1 => Step::ArrivalEnds,
            _ => Step::ArrivalBegins,
        }
    }

    fn transmission(self) -> TransmissionIndex {
        (self.0 as u32) & ((1 << TRANSMISSION_BITS) - 1)
    }
}

impl<P> Radio<P> {
    /// Idle radios.
    ///
    /// # Errors
    /// As [`RadioConfig::check`].
    pub fn new(config: &RadioConfig) -> Result<Self, RadioError> {
        config.check()?;
        let built = propagation::build(config)?;
        let mut radio = Radio {
            receiver: Levels::new(&config.receiver),
            propagation: config.propagation,
            now: Time::ZERO,
            stations: Vec::with_capacity(config.stations.len()),
            apart: Vec::with_capacity(config.stations.len()),
            links: LinkTable::with_capacity(built.len()),
            variations: Variations::new(config.fading),
            erasures: Vec::new(),
            on_air: Vec::new(),
            free: Vec::new(),
            agenda: BinaryHeap::new(),
            sequence: 0,
            notices: VecDeque::new(),
            ended: None,
        };
        // Pairs occur in both directions, which share one fading process.
        let mut pairs = std::collections::BTreeMap::new();
        for (index, link) in built.iter().enumerate() {
            let (from, to) = (link.from as usize, link.to as usize);
            let mut variation = NONE;
            if config.fading != Fading::None {
                variation = *pairs.entry((from.min(to), from.max(to))).or_insert_with(|| {
                    let key = propagation::pair_key(config, from, to, "fading");
                    let pair = Variation::new(config.fading, key);
                    pair.map_or(NONE, |pair| radio.variations.push(pair))
                });
            }
            let mut erasure = NONE;
            if let Some(process) = &link.erasure {
                let key = StreamKey {
                    seed: config.seed,
                    replication: config.replication,
                    entity: (from as u64) << 32 | to as u64,
                    purpose: "erasure",
                };
                let mut stream = key.stream();
                let process = Erasure::new(process, &mut stream)
                    .map_err(|source| RadioError::Erasure { index, from, to, source })?;
                erasure = radio.erasures.len() as u32;
                radio.erasures.push((process, stream));
            }
            radio.links.push(link.to, link.power_mw, variation, erasure);
        }
        if radio.variations.is_empty() && radio.erasures.is_empty() {
            radio.links.processes = Vec::new();
        }
        radio.add_stations(config, &built);
        Ok(radio)
    }

    fn add_stations(&mut self, config: &RadioConfig, built: &[propagation::Built]) {
        let draws = config.receiver.decoding == Decoding::ErrorRatio;
        for index in 0..config.stations.len() as u32 {
            let begin = built.partition_point(|link| link.from < index) as u32;
            let end = built.partition_point(|link| link.from <= index) as u32;
            let key = StreamKey {
                seed: config.seed,
                replication: config.replication,
                entity: index.into(),
                purpose: "reception",
            };
            self.stations.push(StationState {
                locked: None,
                arriving: Arrivals::new(),
                receiving_ns: 0,
                sending: false,
                busy: false,
            });
            let luck = draws.then(|| Box::new(key.stream()));
            self.apart.push(Apart { links: begin..end, luck, spans: Vec::new() });
        }
    }

    /// Station `transmit.frame.from` begins to send at `now`, which must not decrease. It loses
    /// what it was receiving. Returns `false` if the station sends already or does not exist.
    pub fn transmit(&mut self, now: Time, transmit: Transmit<P>) -> bool {
        self.now = self.now.max(now);
        let Transmit { frame, airtime } = transmit;
        let Some(station) = self.stations.get_mut(frame.from).filter(|s| !s.sending) else {
            return false;
        };
        station.sending = true;
        station.unlock(self.now);
        let on_air = Some(OnAir { frame, airtime });
        let transmission = match self.free.pop() {
            Some(index) => {
                self.on_air[index as usize] = on_air;
                index
            }
            None => {
                self.on_air.push(on_air);
                (self.on_air.len() - 1) as TransmissionIndex
            }
        };
        let begin = self.now + self.propagation;
        self.schedule(self.now + airtime, Step::SendingEnds, transmission);
        self.schedule(begin + airtime, Step::ArrivalEnds, transmission);
        if self.propagation.is_zero() {
            self.arrive(transmission);
        } else {
            self.schedule(begin, Step::ArrivalBegins, transmission);
        }
        true
    }

    /// How long a station was locked on to frames that have ended, decoded or not; zero if there is
    /// no such station.
    pub fn receiving(&self, station: Station) -> Duration {
        let ns = self.stations.get(station).map_or(0, |state| state.receiving_ns);
        Duration::from_nanos(ns)
    }

    /// When to call [`Radio::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.agenda.peek().map(|Reverse(due)| due.at())
    }

    /// Handles the next event due at `now` or before, at its own time. Its notices have to be taken
    /// before the next call. Returns `false` if nothing was due.
    pub fn handle_timeout(&mut self, now: Time) -> bool {
        self.forget();
        let Some(&Reverse(due)) = self.agenda.peek().filter(|due| due.0.at() <= now) else {
            return false;
        };
        self.agenda.pop();
        self.now = self.now.max(due.at());
        match due.step() {
            Step::SendingEnds => self.end_sending(due.transmission()),
            Step::ArrivalBegins => self.arrive(due.transmission()),
            Step::ArrivalEnds => self.leave(due.transmission()),
        }
        true
    }

    /// The next notice for a station's MAC, in order.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// A frame on the air, or one whose notices are being taken.
    pub fn frame(&self, transmission: TransmissionIndex) -> Option<&MacFrame<P>> {
        let on_air = self.on_air.get(transmission as usize)?.as_ref()?;
        Some(&on_air.frame)
    }

    /// Whether a station senses others. Not reported while it sends itself.
    pub fn is_busy(&self, station: Station) -> bool {
        self.stations.get(station).is_some_and(|station| station.busy)
    }

    /// The latest time given to the radio.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Stations that hear or sense what `from` sends, and the mean power there, mW.
    pub fn neighbours(&self, from: Station) -> impl Iterator<Item = (Station, f64)> {
        let range = self.apart.get(from).map_or(0..0, |station| range(&station.links));
        range.map(|at| (self.links.to[at] as usize, self.links.power_mw[at]))
    }

    fn schedule(&mut self, at: Time, step: Step, transmission: TransmissionIndex) {
        self.agenda.push(Reverse(Due::new(at, step, self.sequence, transmission)));
        self.sequence += 1;
    }

    fn forget(&mut self) {
        if let Some(index) = self.ended.take() {
            self.on_air[index as usize] = None;
            self.free.push(index);
        }
    }

    fn end_sending(&mut self, transmission: TransmissionIndex) {
        let Some(from) = self.frame(transmission).map(|frame| frame.from) else { return };
        let station = &mut self.stations[from];
        station.sending = false;
        station.busy = self.receiver.senses(station);
        self.notices.push_back(Notice::Sent(from, station.busy));
    }

    /// The first bit of a transmission arrives wherever it can be sensed.
    fn arrive(&mut self, transmission: TransmissionIndex) {
        let Some(on_air) = self.on_air[transmission as usize].as_ref() else { return };
        let (from, rate) = (on_air.frame.from, on_air.frame.rate);
        let bits_per_ns = on_air.bits_per_ns();
        let look = self.variations.look(self.now);
        for index in range(&self.apart[from].links) {
            let (to, mut power_mw) = (self.links.to[index], self.links.power_mw[index]);
            let mut erased = false;
            if let Some(&(variation, erasure)) = self.links.processes.get(index) {
                if let Some(gain) = self.variations.gain(look, variation) {
                    power_mw *= gain;
                }
                if let Some((process, stream)) = self.erasures.get_mut(erasure as usize) {
                    erased = process.draw(stream);
                }
            }
            let station = &mut self.stations[to as usize];
            let latest = Arriving { transmission, erased, power_mw };
            if station.sending {
                station.arriving.push(latest);
            } else {
                let spans = &mut self.apart[to as usize].spans;
                let frame = (rate, bits_per_ns);
                self.receiver.lock_or_disturb(station, spans, latest, self.now, frame);
            }
            Self::tell_busy(&self.receiver, station, to, &mut self.notices);
        }
    }

    /// The last bit of a transmission has arrived.
    fn leave(&mut self, transmission: TransmissionIndex) {
        let Some(on_air) = self.on_air[transmission as usize].as_ref() else { return };
        let from = on_air.frame.from;
        for index in range(&self.apart[from].links) {
            let to = self.links.to[index];
            let station = &mut self.stations[to as usize];
            if let Some(locked) = station.locked.filter(|l| l.transmission == transmission) {
                let apart = &mut self.apart[to as usize];
                let decoded = self.receiver.decodes(apart, locked, self.now);
                station.unlock(self.now);
                let Some(arrived) = station.arriving.remove(transmission) else { continue };
                let to = to as Station;
                self.notices.push_back(if decoded && !arrived.erased {
                    let quality = Quality { power_mw: arrived.power_mw, sinr: locked.sinr_min };
                    Notice::Decoded(to, transmission, quality)
                } else {
                    Notice::Undecoded(to)
                });
            } else {
                if station.arriving.remove(transmission).is_none() {
                    continue;
                }
                if station.locked.is_some() {
                    let spans = &mut self.apart[to as usize].spans;
                    self.receiver.disturb(station, spans, self.now);
                }
            }
            Self::tell_busy(&self.receiver, station, to, &mut self.notices);
        }
        self.ended = Some(transmission);
    }

    fn tell_busy(
        receiver: &Levels,
        station: &mut StationState,
        index: u32,
        notices: &mut VecDeque<Notice>,
    ) {
        if station.sending {
            return;
        }
        let busy = receiver.senses(station);
        if busy != station.busy {
            station.busy = busy;
            let index = index as Station;
            notices.push_back(if busy { Notice::Busy(index) } else { Notice::Idle(index) });
        }
    }
}

impl<P> OnAir<P> {
    /// Bit rate on the air, preamble included, bits per nanosecond.
    fn bits_per_ns(&self) -> f64 {
        let bits = f64::from(self.frame.mac_bytes) * 8.0;
        bits / (self.airtime.as_nanos() as f64).max(1.0)
    }
}

impl Levels {
    fn new(receiver: &Receiver) -> Self {
        let sinr = match receiver.decoding {
            Decoding::Threshold { sinr_db } => milliwatts(sinr_db),
            Decoding::ThresholdByRate | Decoding::ErrorRatio => 0.0,
        };
        Levels {
            noise_mw: milliwatts(receiver.noise_dbm),
            sensitivity_mw: milliwatts(receiver.sensitivity_dbm),
            sense_mw: milliwatts(receiver.sense_dbm),
            lock_sinr: receiver.lock_sinr_db.map_or(0.0, milliwatts),
            capture: receiver
                .capture
                .map(|capture| (milliwatts(capture.margin_db), capture.window)),
            decoding: receiver.decoding,
            sinr,
            known: Known::default(),
        }
    }

    /// Whether others are sensed.
    fn senses(&self, station: &StationState) -> bool {
        station.locked.is_some() || station.arriving.sum_mw() >= self.sense_mw
    }

    /// The latest arrival, at `rate`, is locked on to, or interferes with the frame that is.
    fn lock_or_disturb(
        &self,
        station: &mut StationState,
        spans: &mut Vec<Span>,
        latest: Arriving,
        now: Time,
        (rate, bits_per_ns): (Rate, f64),
    ) {
        let sinr = latest.power_mw / (self.noise_mw + station.arriving.sum_mw());
        station.arriving.push(latest);
        let takes = match (&station.locked, self.capture) {
            (None, _) => sinr >= self.lock_sinr,
            (Some(_), None) => false,
            (Some(locked), Some((margin, window))) => {
                sinr >= margin && now.since(locked.since) <= window
            }
        };
        if takes && latest.power_mw >= self.sensitivity_mw {
            station.unlock(now);
            spans.clear();
            station.locked = Some(Locked {
                transmission: latest.transmission,
                since: now,
                rate,
                bits_per_ns,
                sinr_min: sinr,
                sinr,
                span_since: now,
            });
        } else if station.locked.is_some() {
            self.disturb(station, spans, now);
        }
    }

    /// The interference with the locked frame has changed: a span ends, and another begins.
    fn disturb(&self, station: &mut StationState, spans: &mut Vec<Span>, now: Time) {
        let Some(locked) = &mut station.locked else { return };
        self.end_span(locked, spans, now);
        let (mut power_mw, mut others_mw) = (0.0, 0.0);
        for arriving in station.arriving.iter() {
            let sum = if arriving.transmission == locked.transmission {
                &mut power_mw
            } else {
                &mut others_mw
            };
            *sum += arriving.power_mw;
        }
        locked.sinr = power_mw / (self.noise_mw + others_mw);
        locked.sinr_min = locked.sinr_min.min(locked.sinr);
    }

    fn end_span(&self, locked: &mut Locked, spans: &mut Vec<Span>, now: Time) {
        if self.decoding == Decoding::ErrorRatio {
            spans.push(Span { sinr: locked.sinr, bits: locked.span_bits(now) });
        }
        locked.span_since = now;
    }

    /// Whether the locked frame, which ends now, is decoded.
    fn decodes(&mut self, apart: &mut Apart, mut locked: Locked, now: Time) -> bool {
        match self.decoding {
            Decoding::Threshold { .. } => locked.sinr_min >= self.sinr,
            Decoding::ThresholdByRate => locked.sinr_min >= milliwatts(locked.rate.sinr_db_min()),
            Decoding::ErrorRatio => {
                let luck = apart.luck.as_mut().map_or(0.5, |stream| uniform(stream));
                self.end_span(&mut locked, &mut apart.spans, now);
                self.known.comes_through(locked.rate, &apart.spans, luck)
            }
        }
    }
}

fn range(links: &Range<u32>) -> Range<usize> {
    links.start as usize..links.end as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By time, then by step, then in the order of scheduling.
    #[test]
    fn what_is_due_is_one_number_in_order() {
        use Step::{ArrivalBegins, ArrivalEnds, SendingEnds};
        let at = Time::from_nanos;
        let in_order = [
            (at(5), ArrivalBegins, 9, 3),
            (at(6), SendingEnds, 8, 2),
            (at(6), ArrivalEnds, 6, (1 << TRANSMISSION_BITS) - 1),
            (at(6), ArrivalEnds, 7, 0),
            (at(6), ArrivalBegins, 1, 5),
            (at(u64::MAX), SendingEnds, (1 << SEQUENCE_BITS) - 1, 1),
        ];
        let due = in_order.map(|(at, step, sequence, place)| Due::new(at, step, sequence, place));
        assert!(due.is_sorted());
        for (due, (at, step, _, place)) in due.iter().zip(in_order) {
            assert_eq!((due.at(), due.step(), due.transmission()), (at, step, place));
        }
        // The sequence number wraps, and changes nothing else.
        let round = Due::new(at(6), ArrivalEnds, 1 << SEQUENCE_BITS, 4);
        assert_eq!((round.step(), round.transmission()), (ArrivalEnds, 4));
    }
}
