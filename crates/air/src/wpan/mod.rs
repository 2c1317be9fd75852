//! IEEE 802.15.4 without beacons: unslotted CSMA/CA at 250 kbit/s (IEEE 802.15.4-2006, 7.5.1.4).
//!
//! A data frame passes these stages:
//!
//! 1. [`Wpan::offer`] puts it into the station's queue.
//! 2. *Backoff*, blind: the channel is not sensed, and slots do not stop.
//! 3. *CCA*, for eight symbols. If others' power was there at any time, another backoff follows, or
//!    the end.
//! 4. *Turnaround*, in which the radio is deaf, and *data*. Stations with a CCA at the same time
//!    collide.
//! 5. *Acknowledgment* after a turnaround, without a CCA, unless the frame was a broadcast.
//! 6. *Retry* from stage 2 if no ACK came, or the end: [`MacEvent::Sent`].
//! 7. *Interframe space* after a delivered frame, in which the receiver can process it.

mod config;

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

pub use config::{
    Backoff, LooksFor, MAX_BACKOFF_SYMBOLS, MAX_FRAME_BYTES, MAX_RETRIES, RetryWindow, SYMBOL,
    WhenBusy, WhileAnswering, WpanConfig,
};

use crate::config::Station;
use crate::error::QueueFull;
use crate::medium::Address;
use crate::phy::{
    FrameKind, MacEvent, MacFrame, MacStats, Preamble, Quality, Queued, RadioError, Rate, Seen,
    SendOutcome, Transmit,
};

/// Bytes of an acknowledgment: control, sequence number, FCS (IEEE 802.15.4-2006, 7.2.2.3).
pub const ACK_BYTES: u32 = 5;

/// Symbols of a backoff unit: aUnitBackoffPeriod.
pub const UNIT_SYMBOLS: u32 = 20;

/// Longest frame followed by the short interframe space, bytes: aMaxSIFSFrameSize.
const SHORT_FRAME_BYTES: u32 = 18;

/// Receives the MACs' outputs.
type Events<P> = VecDeque<MacEvent<P>>;

/// The MAC of one station: takes channel state and receptions, returns transmissions.
#[derive(Debug)]
pub struct Wpan<P> {
    config: Arc<WpanConfig>,
    station: Station,
    queue_frames: usize,
    promiscuous: bool,
    /// On the heap: large, and rarely accessed.
    backoff: Box<Stream>,
    queue: VecDeque<Queued<P>>,
    state: State,
    /// Whether others are sensed.
    busy: bool,
    /// An ACK to send: when, to whom, for which sequence number.
    response: Option<(Time, Station, u16)>,
    /// An ACK of this station is on the air.
    responding: bool,
    /// No attempt begins before this: for [`WhileAnswering::BeginsAnew`].
    answered: Time,
    sequence: u16,
    attempts: u32,
    /// Retries of the head frame, for any cause.
    retries: u32,
    /// How often the channel was busy in this attempt: NB.
    busy_count: u32,
    seen: Seen,
    stats: MacStats,
}

/// Progress of the head frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no frame.
    Idle,
    /// Blind backoff until this time.
    BackingOff(Time),
    /// CCA until this time; whether others were sensed.
    Looking(Time, bool),
    /// The channel was free; the frame goes at this time.
    Turning(Time),
    Sending,
    /// The ACK has to be complete by this time.
    AwaitingAck(Time),
    /// An interframe space after an exchange, until this time.
    Spacing(Time),
}

impl<P: Clone> Wpan<P> {
    /// An idle MAC with a valid configuration. Its backoffs are drawn from the stream of `key`,
    /// whose entity identifies the station.
    ///
    /// # Errors
    /// See [`WpanConfig::check`].
    pub fn new(
        config: Arc<WpanConfig>,
        key: StreamKey,
        queue_frames: usize,
        promiscuous: bool,
    ) -> Result<Self, RadioError> {
        config.check()?;
        Ok(Wpan {
            config,
            station: key.entity as Station,
            queue_frames,
            promiscuous,
            backoff: Box::new(key.stream()),
            queue: VecDeque::new(),
            state: State::Idle,
            busy: false,
            response: None,
            responding: false,
            answered: Time::ZERO,
            sequence: 0,
            attempts: 0,
            retries: 0,
            busy_count: 0,
            seen: Seen::default(),
            stats: MacStats::default(),
        })
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
        self.stats.offered += 1;
        if self.queue.len() >= self.queue_frames {
            self.stats.refused += 1;
            return Err(QueueFull { frame: payload });
        }
        self.queue.push_back(Queued { to, len_bytes, payload });
        if self.state == State::Idle {
            self.begin_attempt(now);
        }
        Ok(())
    }

    /// Frames that have not been on the air and are not about to be, including one in its first
    /// backoff.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut Queued<P>> {
        let is_fixed = self.attempts > 0 || matches!(self.state, State::Turning(_));
        self.queue.iter_mut().skip(usize::from(is_fixed))
    }

    /// Frames accepted and not finished.
    pub fn backlog(&self) -> usize {
        self.queue.len()
    }

    /// Counters so far.
    pub fn stats(&self) -> &MacStats {
        &self.stats
    }

    /// The channel has become busy with others.
    pub fn handle_busy(&mut self, now: Time) {
        self.busy = true;
        if let State::Looking(until, _) = self.state
            && now < until
        {
            self.state = State::Looking(until, true);
        }
    }

    /// The channel has become idle.
    pub fn handle_idle(&mut self) {
        self.busy = false;
    }

    /// The station's own transmission has ended; `busy`: others are sensed.
    pub fn handle_sent(&mut self, now: Time, busy: bool, events: &mut Events<P>) {
        self.busy = busy;
        if core::mem::take(&mut self.responding) || self.state != State::Sending {
            return;
        }
        if self.asks_ack() {
            self.state = State::AwaitingAck(now + self.config.ack_wait);
        } else {
            self.release(now, SendOutcome::Sent, events);
        }
    }

    /// A frame was received that could not be decoded.
    pub fn handle_undecoded(&mut self) {
        self.stats.undecoded += 1;
    }

    /// A frame was received, whatever its destination.
    pub fn handle_frame(
        &mut self,
        now: Time,
        frame: &MacFrame<P>,
        quality: Quality,
        events: &mut Events<P>,
    ) {
        let to_this = frame.to == Address::Station(self.station);
        if frame.kind == FrameKind::Ack {
            if matches!(self.state, State::AwaitingAck(_)) {
                if to_this && frame.sequence == self.sequence {
                    self.release(now, SendOutcome::Acknowledged, events);
                } else {
                    // An ACK of another frame ends the wait (7.5.6.4.3).
                    self.retry(now, events);
                }
            }
            return;
        }
        let addressed = to_this || frame.to == Address::All;
        if to_this && self.config.acknowledged {
            let at = now + self.config.ack_turnaround;
            self.response = Some((at, frame.from, frame.sequence));
            if self.config.while_answering == WhileAnswering::BeginsAnew {
                self.put_off(now, at, events);
            }
        }
        if to_this && !self.seen.is_new(frame.from, frame.sequence) {
            self.stats.duplicates += 1;
            return;
        }
        match addressed {
            true => self.stats.received += 1,
            false if self.promiscuous => self.stats.overheard += 1,
            false => return,
        }
        if let Some(payload) = frame.payload.clone() {
            events.push_back(MacEvent::Received {
                at: now,
                station: self.station,
                from: frame.from,
                addressed,
                len_bytes: frame.len_bytes,
                quality,
                payload,
            });
        }
    }

    /// When to call [`Wpan::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Time> {
        let state = match self.state {
            State::Idle | State::Sending => None,
            State::BackingOff(at)
            | State::Looking(at, _)
            | State::Turning(at)
            | State::AwaitingAck(at)
            | State::Spacing(at) => Some(at),
        };
        match (state, self.response) {
            (Some(a), Some((b, ..))) => Some(a.min(b)),
            (a, b) => a.or(b.map(|(at, ..)| at)),
        }
    }

    /// Handles what is due at `now`; returns what the station sends, if anything.
    pub fn handle_timeout(&mut self, now: Time, events: &mut Events<P>) -> Option<Transmit<P>> {
        if let Some((at, to, sequence)) = self.response
            && at <= now
        {
            self.response = None;
            // Its own frame is on the air, and continues.
            if self.state != State::Sending {
                return Some(self.acknowledge(to, sequence));
            }
        }
        match self.state {
            State::BackingOff(at) if at <= now => self.look(now),
            State::Looking(at, seen) if at <= now => {
                if seen || self.sees(LooksFor::WhoeverIsLeft) {
                    self.find_busy(now, events);
                } else {
                    self.state = State::Turning(now + self.config.turnaround);
                    // With no turnaround, at once: nothing else may come in between.
                    if self.config.turnaround.is_zero() {
                        return self.send();
                    }
                }
            }
            State::Turning(at) if at <= now => {
                // Its own ACK, which needs no CCA, is on the air.
                if self.responding {
                    self.find_busy(now, events);
                } else {
                    return self.send();
                }
            }
            State::AwaitingAck(at) if at <= now => self.retry(now, events),
            State::Spacing(at) if at <= now => self.begin_next(now),
            _ => {}
        }
        None
    }

    fn begin_next(&mut self, now: Time) {
        if self.queue.is_empty() {
            self.state = State::Idle;
        } else {
            self.begin_attempt(now);
        }
    }

    /// Aborts the preparation of its own frame until an ACK at time `at` has been sent.
    fn put_off(&mut self, now: Time, at: Time, events: &mut Events<P>) {
        let ack = Rate::Oqpsk250.airtime(Preamble::Oqpsk, ACK_BYTES);
        self.answered = at + ack + self.config.turnaround;
        match self.state {
            State::BackingOff(_) | State::Looking(..) => self.begin_attempt(now),
            State::AwaitingAck(_) => self.retry(now, events),
            _ => {}
        }
    }

    fn begin_attempt(&mut self, now: Time) {
        if now < self.answered {
            // From its end on, as after any interframe space.
            self.state = State::Spacing(self.answered);
            return;
        }
        self.busy_count = 0;
        let wait = self.draw();
        self.state = State::BackingOff(now + wait);
    }

    /// A backoff in this attempt, which found the channel busy `busy_count` times.
    fn draw(&mut self) -> Duration {
        let (least, most, unit) = match &self.config.backoff {
            Backoff::Exponential { min_be, max_be, .. } => {
                let exponent = (min_be + self.busy_count).min(*max_be);
                (0, (1 << exponent) - 1, UNIT_SYMBOLS)
            }
            Backoff::TinyOs { initial_symbols, congestion_symbols, retry } => {
                let again = self.retries > 0 && *retry == RetryWindow::Congestion;
                let range =
                    if self.busy_count > 0 || again { congestion_symbols } else { initial_symbols };
                (*range.start(), *range.end(), 1)
            }
        };
        let count = u64::from(most - least) + 1;
        let drawn = (u64::from(self.backoff.next_u32()) * count) >> 32;
        SYMBOL * ((least + drawn as u32) * unit)
    }

    fn look(&mut self, now: Time) {
        let until = now + self.config.cca;
        self.state = State::Looking(until, self.sees(LooksFor::AnyoneMeanwhile));
    }

    /// Whether the CCA, by this rule, finds others right now.
    fn sees(&self, looks_for: LooksFor) -> bool {
        self.config.looks_for == looks_for && (self.busy || self.responding)
    }

    /// The channel was busy.
    fn find_busy(&mut self, now: Time, events: &mut Events<P>) {
        self.busy_count = self.busy_count.saturating_add(1);
        if let Backoff::Exponential { max_backoffs, when_busy, .. } = self.config.backoff
            && self.busy_count > max_backoffs
        {
            if when_busy == WhenBusy::CostsRetry && self.retries < self.config.retries {
                self.retries += 1;
                self.begin_attempt(now);
            } else {
                self.release(now, SendOutcome::ChannelAccess, events);
            }
            return;
        }
        let wait = self.draw();
        self.state = State::BackingOff(now + wait);
    }

    fn send(&mut self) -> Option<Transmit<P>> {
        let head = self.queue.front()?;
        if self.attempts == 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        self.attempts += 1;
        self.stats.attempts += 1;
        self.state = State::Sending;
        let frame = MacFrame {
            kind: FrameKind::Data,
            from: self.station,
            to: head.to,
            sequence: self.sequence,
            retry: self.attempts > 1,
            duration: Duration::ZERO,
            rate: Rate::Oqpsk250,
            mac_bytes: head.len_bytes.saturating_add(self.config.header_bytes),
            len_bytes: head.len_bytes,
            payload: Some(head.payload.clone()),
        };
        Some(self.begin(frame))
    }

    fn acknowledge(&mut self, to: Station, sequence: u16) -> Transmit<P> {
        self.responding = true;
        self.begin(MacFrame {
            kind: FrameKind::Ack,
            from: self.station,
            to: Address::Station(to),
            sequence,
            retry: false,
            duration: Duration::ZERO,
            rate: Rate::Oqpsk250,
            mac_bytes: ACK_BYTES,
            len_bytes: 0,
            payload: None,
        })
    }

    fn begin(&mut self, frame: MacFrame<P>) -> Transmit<P> {
        let airtime = frame.rate.airtime(Preamble::Oqpsk, frame.mac_bytes);
        self.stats.transmissions += 1;
        self.stats.airtime += airtime;
        Transmit { frame, airtime }
    }

    fn asks_ack(&self) -> bool {
        let to_one = self.queue.front().is_some_and(|head| head.to != Address::All);
        self.config.acknowledged && to_one
    }

    /// No ACK came.
    fn retry(&mut self, now: Time, events: &mut Events<P>) {
        if self.retries < self.config.retries {
            self.retries += 1;
            self.begin_attempt(now);
        } else {
            self.release(now, SendOutcome::RetryLimit, events);
        }
    }

    /// The head frame is finished, with this outcome; an interframe space follows.
    fn release(&mut self, now: Time, outcome: SendOutcome, events: &mut Events<P>) {
        let Some(head) = self.queue.pop_front() else { return };
        self.stats.count(outcome);
        let mac_bytes = head.len_bytes.saturating_add(self.config.header_bytes);
        events.push_back(MacEvent::Sent {
            at: now,
            station: self.station,
            to: head.to,
            outcome,
            attempts: self.attempts,
            len_bytes: head.len_bytes,
            payload: head.payload,
        });
        (self.attempts, self.retries) = (0, 0);
        match outcome {
            // The receiver has to process the frame (7.5.1.3).
            SendOutcome::Acknowledged | SendOutcome::Sent => {
                let short = mac_bytes <= SHORT_FRAME_BYTES;
                let space = if short { self.config.sifs } else { self.config.lifs };
                self.state = State::Spacing(now + space);
            }
            SendOutcome::RetryLimit | SendOutcome::ChannelAccess => self.begin_next(now),
        }
    }
}
