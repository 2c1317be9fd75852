//! IEEE 802.11's distributed coordination function (IEEE 802.11-2012, 9.3), of 802.11 a, b and g.
//!
//! A data frame passes these stages:
//!
//! 1. [`Dcf::offer`] puts it into the station's queue.
//! 2. *Access* (`access.rs`): at once on a channel that has been idle for a DIFS; otherwise, and
//!    after every frame of the station's own, a backoff, whose slots stop while the channel is busy
//!    or reserved.
//! 3. *RTS/CTS*, for long frames: the receiver's CTS comes a SIFS after the RTS. Both reserve the
//!    channel among all stations that decode them.
//! 4. *Data*, at a fixed rate or at the one that `minstrel.rs` chooses.
//! 5. *Acknowledgment* a SIFS later, unless the frame was a broadcast. It may be lost like any
//!    frame: then the receiver gets the data again, and reports them once.
//! 6. *Retry* with twice the contention window if no CTS or ACK came, or the end:
//!    [`MacEvent::Sent`].
//!
//! A station that decodes frames for others is silent for as long as they announce. One that could
//! not decode what it received waits for an EIFS, which leaves room for an ACK that it does not
//! know of.

mod access;
mod config;
mod minstrel;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use corridor_base::{Stream, StreamKey, Time};

pub use config::{AfterTimeout, DcfConfig, MAX_CW, MAX_HEADER_BYTES, MAX_RETRY_LIMIT, RateControl};
pub use minstrel::Minstrel;

use crate::config::Station;
use crate::error::QueueFull;
use crate::medium::Address;
use crate::phy::{
    FrameKind, MacEvent, MacFrame, MacStats, Quality, Queued, RadioError, Rate, Seen, SendOutcome,
    Transmit,
};
use access::{Access, Spaces};

/// Bytes of an ACK or a CTS, with its FCS (IEEE 802.11-2012, 8.3.1).
pub const ACK_BYTES: u32 = 14;

/// Bytes of an RTS.
pub const RTS_BYTES: u32 = 20;

/// Receives the MACs' outputs.
type Events<P> = VecDeque<MacEvent<P>>;

/// The MAC of one station: takes channel state and receptions, returns transmissions.
///
/// What every reception accesses is here, in two cache lines; what only the station's own exchanges
/// need is elsewhere, so that a thousand stations fit into the cache.
#[derive(Debug)]
#[repr(align(64))]
pub struct Dcf<P> {
    rules: Arc<Rules>,
    access: Access,
    state: State,
    /// When to send an ACK or CTS, [`Own::response`]; the end of time if there is none.
    response_at: Time,
    own: Box<Own<P>>,
    undecoded: u64,
    station: u32,
    promiscuous: bool,
    /// Whether [`Own::queue`] has any frame.
    has_frames: bool,
}

/// What all stations of a medium share: their settings, and what follows from them.
#[derive(Debug)]
pub struct Rules {
    config: DcfConfig,
    spaces: Spaces,
}

impl Rules {
    /// The rules that follow from a configuration.
    ///
    /// # Errors
    /// See [`DcfConfig::check`].
    pub fn new(config: DcfConfig) -> Result<Self, RadioError> {
        config.check()?;
        let difs = config.difs();
        let eifs = if config.eifs { config.eifs() } else { difs };
        Ok(Rules { spaces: Spaces { slot: config.slot, difs, eifs }, config })
    }
}

/// State for a station's own exchanges.
#[derive(Debug)]
struct Own<P> {
    queue: VecDeque<Queued<P>>,
    queue_frames: usize,
    response: Option<Response>,
    cw: u32,
    sequence: u16,
    attempts: u32,
    short_retries: u32,
    long_retries: u32,
    /// Rate of the current attempt.
    rate: Rate,
    seen: Seen,
    rates: Vec<(u32, Minstrel)>,
    /// Without undecoded frames.
    stats: MacStats,
    backoff: Stream,
}

/// Progress of the head frame's exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not on the air.
    Waiting,
    SendingRts,
    /// No CTS yet; it has to begin before this time.
    AwaitingCts(Time),
    /// A CTS came; the data go at this time.
    Cleared(Time),
    SendingData,
    /// No ACK yet; it has to begin before this time.
    AwaitingAck(Time),
    /// A frame is arriving that may be the CTS.
    HearingCts,
    /// A frame is arriving that may be the ACK.
    HearingAck,
    /// An ACK or CTS of this station is on the air.
    Responding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Response {
    kind: FrameKind,
    to: Station,
    duration: Duration,
    rate: Rate,
}

impl<P: Clone> Dcf<P> {
    /// An idle MAC. Its backoffs are drawn from the stream of `key`, whose entity identifies the
    /// station.
    pub fn new(rules: Arc<Rules>, key: StreamKey, queue_frames: usize, promiscuous: bool) -> Self {
        let own = Own {
            queue: VecDeque::new(),
            queue_frames,
            response: None,
            cw: rules.config.cw_min,
            sequence: 0,
            attempts: 0,
            short_retries: 0,
            long_retries: 0,
            rate: rules.config.basic_rates[0],
            seen: Seen::default(),
            rates: Vec::new(),
            stats: MacStats::default(),
            backoff: key.stream(),
        };
        Dcf {
            rules,
            access: Access::new(),
            state: State::Waiting,
            response_at: Time::MAX,
            own: Box::new(own),
            undecoded: 0,
            station: key.entity as u32,
            promiscuous,
            has_frames: false,
        }
    }

    /// Puts a frame at the end of the queue.
    ///
    /// # Errors
    /// [`QueueFull`], with the payload in it, if there is no room.
    pub fn offer(
        &mut self,
        now: Time,
        to: Address,
        len_bytes: u32,
        payload: P,
    ) -> Result<(), QueueFull<P>> {
        self.own.stats.offered += 1;
        if self.own.queue.len() >= self.own.queue_frames {
            self.own.stats.refused += 1;
            return Err(QueueFull { frame: payload });
        }
        self.own.queue.push_back(Queued { to, len_bytes, payload });
        self.has_frames = true;
        if self.own.queue.len() == 1 {
            self.access.request(now, &self.rules.spaces, self.own.cw, &mut self.own.backoff);
        }
        Ok(())
    }

    /// Frames that have not been on the air.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut Queued<P>> {
        let begun =
            self.own.attempts > 0 || !matches!(self.state, State::Waiting | State::Responding);
        self.own.queue.iter_mut().skip(usize::from(begun))
    }

    /// Frames accepted and not finished.
    pub fn backlog(&self) -> usize {
        self.own.queue.len()
    }

    /// Counters so far.
    pub fn stats(&self) -> MacStats {
        MacStats { undecoded: self.undecoded, ..self.own.stats }
    }

    /// The channel has become busy with others.
    pub fn handle_busy(&mut self, now: Time) {
        let contends = self.contends();
        self.sense_busy(now, contends);
    }

    /// The channel has become idle.
    pub fn handle_idle(&mut self, now: Time, events: &mut Events<P>) {
        self.access.end_busy(now, &self.rules.spaces);
        if matches!(self.state, State::HearingCts | State::HearingAck) {
            self.fail(now, events);
        }
    }

    /// The station's own transmission has ended; `busy`: others are sensed.
    pub fn handle_sent(&mut self, now: Time, busy: bool, events: &mut Events<P>) {
        self.access.end_busy(now, &self.rules.spaces);
        if busy {
            self.sense_busy(now, false);
        }
        let timeout = now + self.rules.config.response_timeout;
        self.state = match self.state {
            State::SendingRts => State::AwaitingCts(timeout),
            State::SendingData => match self.own.queue.front().map(|head| head.to) {
                Some(Address::Station(_)) => State::AwaitingAck(timeout),
                _ => {
                    self.state = State::Waiting;
                    self.release(now, SendOutcome::Sent, events);
                    return;
                }
            },
            _ => State::Waiting,
        };
    }

    /// A frame was received that could not be decoded.
    pub fn handle_undecoded(&mut self, now: Time, events: &mut Events<P>) {
        self.undecoded += 1;
        self.access.note_decoded(now, false, &self.rules.spaces);
        if self.is_awaiting() {
            self.fail(now, events);
        }
    }

    /// A frame was received, whatever its destination.
    pub fn handle_frame(
        &mut self,
        now: Time,
        frame: &MacFrame<P>,
        quality: Quality,
        events: &mut Events<P>,
    ) {
        self.access.note_decoded(now, true, &self.rules.spaces);
        let to_this = frame.to == Address::Station(self.station as Station);
        let response = matches!(frame.kind, FrameKind::Ack | FrameKind::Cts);
        if self.is_awaiting() && !(to_this && response) {
            self.fail(now, events);
        }
        if !to_this && frame.to != Address::All {
            self.overhear(now, frame, quality, events);
            return;
        }
        match frame.kind {
            FrameKind::Data => self.receive(now, frame, quality, events),
            FrameKind::Rts => self.answer_rts(now, frame),
            FrameKind::Cts if self.awaits_cts() => {
                self.state = State::Cleared(now + self.rules.config.sifs);
            }
            FrameKind::Ack if self.awaits_ack() => {
                self.note_rate(now, true);
                self.state = State::Waiting;
                self.release(now, SendOutcome::Acknowledged, events);
            }
            FrameKind::Cts | FrameKind::Ack => {}
        }
    }

    /// When to call [`Dcf::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let state = match self.state {
            State::AwaitingCts(at) | State::AwaitingAck(at) | State::Cleared(at) => at,
            _ if self.contends() => self.access.poll_timeout(&self.rules.spaces),
            _ => Time::MAX,
        };
        Some(state.min(self.response_at)).filter(|&at| at < Time::MAX)
    }

    /// Handles what is due at `now`; returns what the station sends, if anything.
    pub fn handle_timeout(&mut self, now: Time, events: &mut Events<P>) -> Option<Transmit<P>> {
        if self.response_at <= now
            && let Some(response) = self.own.response.take()
        {
            self.response_at = Time::MAX;
            // Its own exchange, begun meanwhile, continues.
            if self.state == State::Waiting {
                return Some(self.respond(now, response));
            }
        }
        match self.state {
            State::Cleared(at) if at <= now => {
                let transmit = self.data()?;
                return Some(self.begin(now, State::SendingData, transmit));
            }
            State::AwaitingCts(at) | State::AwaitingAck(at) if at <= now => {
                match (self.access.is_busy(), self.awaits_cts()) {
                    (true, true) => self.state = State::HearingCts,
                    (true, false) => self.state = State::HearingAck,
                    (false, _) => self.fail(now, events),
                }
                return None;
            }
            _ => {}
        }
        if self.contends() && self.access.poll_timeout(&self.rules.spaces) <= now {
            return self.attempt(now);
        }
        None
    }

    /// Whether a frame waits for access.
    fn contends(&self) -> bool {
        self.state == State::Waiting && self.response_at == Time::MAX && self.has_frames
    }

    fn is_awaiting(&self) -> bool {
        self.awaits_cts() || self.awaits_ack()
    }

    fn awaits_cts(&self) -> bool {
        matches!(self.state, State::AwaitingCts(_) | State::HearingCts)
    }

    fn awaits_ack(&self) -> bool {
        matches!(self.state, State::AwaitingAck(_) | State::HearingAck)
    }

    fn sense_busy(&mut self, now: Time, contends: bool) {
        let waiting = self.has_frames;
        let drawn = self.access.begin_busy(now, waiting, contends, &self.rules.spaces);
        if drawn {
            self.access.draw(self.own.cw, &mut self.own.backoff);
        }
    }

    /// Whether the head frame uses RTS/CTS.
    fn announces(&self) -> bool {
        self.own.queue.front().is_some_and(|head| {
            let mac_bytes = head.len_bytes.saturating_add(self.rules.config.header_bytes);
            head.to != Address::All && mac_bytes > self.rules.config.rts_threshold_bytes
        })
    }

    /// Sends the head frame, or its RTS.
    fn attempt(&mut self, now: Time) -> Option<Transmit<P>> {
        let to = self.own.queue.front()?.to;
        if self.own.attempts == 0 {
            self.own.sequence = self.own.sequence.wrapping_add(1);
        }
        self.own.attempts += 1;
        self.own.stats.attempts += 1;
        self.own.rate = self.choose_rate(to);
        self.access.clear();
        if !self.announces() {
            let transmit = self.data()?;
            return Some(self.begin(now, State::SendingData, transmit));
        }
        let rate = self.rules.config.control_rate(self.own.rate);
        let (sifs, data) = (self.rules.config.sifs, self.data()?);
        let answer = self.rules.config.airtime(rate, ACK_BYTES);
        let duration = 3 * sifs + 2 * answer + data.airtime;
        let transmit = self.control(FrameKind::Rts, to, RTS_BYTES, rate, duration);
        Some(self.begin(now, State::SendingRts, transmit))
    }

    fn choose_rate(&mut self, to: Address) -> Rate {
        let Address::Station(to) = to else {
            return self.rules.config.broadcast_rate.unwrap_or(self.rules.config.basic_rates[0]);
        };
        match &self.rules.config.rates {
            RateControl::Fixed(rate) => *rate,
            RateControl::Minstrel(rates) => {
                let place = self.own.rates.binary_search_by_key(&(to as u32), |entry| entry.0);
                let place = place.unwrap_or_else(|place| {
                    let minstrel = Minstrel::new(rates.clone(), self.rules.config.preamble);
                    self.own.rates.insert(place, (to as u32, minstrel));
                    place
                });
                // An RTS without a CTS says nothing about the rate of data.
                let retries =
                    if self.announces() { self.own.long_retries } else { self.own.short_retries };
                self.own.rates[place].1.choose(retries, &mut self.own.backoff)
            }
        }
    }

    /// Reports the outcome of a data transmission to the rate control.
    fn note_rate(&mut self, now: Time, acknowledged: bool) {
        let Some(Address::Station(to)) = self.own.queue.front().map(|head| head.to) else { return };
        if let Ok(place) = self.own.rates.binary_search_by_key(&(to as u32), |entry| entry.0) {
            self.own.rates[place].1.note(now, self.own.rate, acknowledged);
        }
    }

    fn begin(&mut self, now: Time, state: State, transmit: Transmit<P>) -> Transmit<P> {
        self.state = state;
        self.sense_busy(now, false);
        self.own.stats.transmissions += 1;
        self.own.stats.airtime += transmit.airtime;
        transmit
    }

    /// The head frame as it is sent.
    fn data(&self) -> Option<Transmit<P>> {
        let head = self.own.queue.front()?;
        let mac_bytes = head.len_bytes.saturating_add(self.rules.config.header_bytes);
        let duration = match head.to {
            Address::All => Duration::ZERO,
            Address::Station(_) => {
                let rate = self.rules.config.control_rate(self.own.rate);
                self.rules.config.sifs + self.rules.config.airtime(rate, ACK_BYTES)
            }
        };
        let frame = MacFrame {
            kind: FrameKind::Data,
            from: self.station as Station,
            to: head.to,
            sequence: self.own.sequence,
            retry: if self.announces() { self.own.long_retries } else { self.own.short_retries }
                > 0,
            duration,
            rate: self.own.rate,
            mac_bytes,
            len_bytes: head.len_bytes,
            payload: Some(head.payload.clone()),
        };
        Some(Transmit { frame, airtime: self.rules.config.airtime(self.own.rate, mac_bytes) })
    }

    fn control(
        &self,
        kind: FrameKind,
        to: Address,
        mac_bytes: u32,
        rate: Rate,
        duration: Duration,
    ) -> Transmit<P> {
        let frame = MacFrame {
            kind,
            from: self.station as Station,
            to,
            sequence: 0,
            retry: false,
            duration,
            rate,
            mac_bytes,
            len_bytes: 0,
            payload: None,
        };
        Transmit { frame, airtime: self.rules.config.airtime(rate, mac_bytes) }
    }

    /// Receives a data frame for this station or for all.
    fn receive(
        &mut self,
        now: Time,
        frame: &MacFrame<P>,
        quality: Quality,
        events: &mut Events<P>,
    ) {
        if frame.to != Address::All {
            let rate = self.rules.config.control_rate(frame.rate);
            let ack =
                Response { kind: FrameKind::Ack, to: frame.from, duration: Duration::ZERO, rate };
            self.answer(now, ack);
            if !self.own.seen.is_new(frame.from, frame.sequence) {
                self.own.stats.duplicates += 1;
                return;
            }
        }
        self.own.stats.received += 1;
        self.tell(now, frame, true, quality, events);
    }

    /// Answers an RTS with a CTS, unless others have reserved the channel.
    fn answer_rts(&mut self, now: Time, frame: &MacFrame<P>) {
        if self.access.is_reserved(now) {
            return;
        }
        let rate = self.rules.config.control_rate(frame.rate);
        let taken = self.rules.config.sifs + self.rules.config.airtime(rate, ACK_BYTES);
        let cts = Response {
            kind: FrameKind::Cts,
            to: frame.from,
            duration: frame.duration.saturating_sub(taken),
            rate,
        };
        self.answer(now, cts);
    }

    /// Sends a response a SIFS later, in place of any other that was due.
    fn answer(&mut self, now: Time, response: Response) {
        self.response_at = now + self.rules.config.sifs;
        self.own.response = Some(response);
    }

    /// Receives a frame for another station: it reserves the channel for the time that it
    /// announces.
    fn overhear(
        &mut self,
        now: Time,
        frame: &MacFrame<P>,
        quality: Quality,
        events: &mut Events<P>,
    ) {
        let resets_at = match frame.kind {
            FrameKind::Rts => {
                let cts = self.rules.config.airtime(frame.rate, ACK_BYTES);
                now + 2 * self.rules.config.sifs + cts + 2 * self.rules.config.slot
            }
            _ => Time::MAX,
        };
        self.access.reserve(now + frame.duration, resets_at);
        if frame.kind == FrameKind::Data && self.promiscuous {
            self.own.stats.overheard += 1;
            self.tell(now, frame, false, quality, events);
        }
    }

    fn tell(
        &self,
        now: Time,
        frame: &MacFrame<P>,
        addressed: bool,
        quality: Quality,
        events: &mut Events<P>,
    ) {
        if let Some(payload) = frame.payload.clone() {
            events.push_back(MacEvent::Received {
                at: now,
                station: self.station as Station,
                from: frame.from,
                addressed,
                len_bytes: frame.len_bytes,
                quality,
                payload,
            });
        }
    }

    fn respond(&mut self, now: Time, response: Response) -> Transmit<P> {
        let Response { kind, to, duration, rate } = response;
        let transmit = self.control(kind, Address::Station(to), ACK_BYTES, rate, duration);
        self.begin(now, State::Responding, transmit)
    }

    /// No CTS or ACK came: retries, or gives up.
    fn fail(&mut self, now: Time, events: &mut Events<P>) {
        // Data after a CTS have a retry count of their own.
        let behind_cts = self.awaits_ack() && self.announces();
        if self.awaits_ack() {
            self.note_rate(now, false);
        }
        let (retries, limit) = if behind_cts {
            (&mut self.own.long_retries, self.rules.config.long_retry_limit)
        } else {
            (&mut self.own.short_retries, self.rules.config.retry_limit)
        };
        *retries = retries.saturating_add(1);
        let spent = limit.is_some_and(|limit| *retries >= limit);
        self.state = State::Waiting;
        self.hold(now);
        if spent {
            self.release(now, SendOutcome::RetryLimit, events);
            return;
        }
        self.own.cw = (2 * self.own.cw + 1).min(self.rules.config.cw_max);
        self.access.draw(self.own.cw, &mut self.own.backoff);
    }

    /// Slots count from the time that [`AfterTimeout`] says.
    fn hold(&mut self, now: Time) {
        match self.rules.config.after_timeout {
            AfterTimeout::Slots => self.access.hold(now),
            AfterTimeout::Difs => self.access.hold(now + self.rules.spaces.difs),
            AfterTimeout::WithTheOthers => {
                self.access.hold(self.access.idle_since() + self.rules.spaces.eifs);
            }
        }
    }

    /// The head frame is finished, with this outcome; a backoff follows.
    fn release(&mut self, now: Time, outcome: SendOutcome, events: &mut Events<P>) {
        let Some(head) = self.own.queue.pop_front() else { return };
        self.has_frames = !self.own.queue.is_empty();
        self.own.stats.count(outcome);
        events.push_back(MacEvent::Sent {
            at: now,
            station: self.station as Station,
            to: head.to,
            outcome,
            attempts: self.own.attempts,
            len_bytes: head.len_bytes,
            payload: head.payload,
        });
        (self.own.attempts, self.own.short_retries, self.own.long_retries) = (0, 0, 0);
        self.own.cw = self.rules.config.cw_min;
        self.access.draw(self.own.cw, &mut self.own.backoff);
    }
}
