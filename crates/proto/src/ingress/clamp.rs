//! Advertised windows of TCP, clamped: a sender of bulk data is let so far ahead of what has left
//! the ingress queue that the queue does not run dry, and no farther.
//!
//! Signs of congestion tell a flow once a round trip that it is too fast; what it sent until then
//! stands in the queue, and a window that covers what waits for repair at times stands there at all
//! others. TCP has a means without these delays: the receiver's window, as far as which data may be
//! sent. Acknowledgements pass this station on their way to the sender, and so the end of the
//! window is moved here as packets leave the queue, whatever the round trip beyond. Where no
//! acknowledgement comes, one is made, with nothing new but its window (RFC 9293, Section 3.8.6).
//!
//! Nothing is promised that the receiver has not promised, and nothing is taken back (RFC 7323,
//! Section 2.4). A connection whose setup was not seen, or that forbids it, is left alone.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::tcp::{End, Options, PureAck, TcpView};

/// Packets that a sender may always be ahead: its answer to a longer window takes a moment, and
/// what TCP sends at once is two segments.
const AHEAD_MIN: f64 = 2.0;
/// How far ahead it may be in time, besides the time that its answer takes: it is not always the
/// same.
const AHEAD: Duration = Duration::from_millis(1);
const ANSWER_FACTOR: f64 = 1.5;
/// A queue that is gone by then was a burst.
const BURST: Duration = Duration::from_millis(5);
/// Answers of which the soonest counts: those that were later had something else to wait for.
const ANSWERS: usize = 16;
/// Part of what a sender may be ahead that is left when it is told of more.
const TELL_DIVISOR: u32 = 2;

/// What a SYN said.
#[derive(Clone, Copy, Debug)]
struct Syn {
    scale: Option<u8>,
    mss: Option<u16>,
    is_protected: bool,
}

impl From<&Options> for Syn {
    fn from(options: &Options) -> Self {
        let Options { scale, mss, is_protected, .. } = *options;
        Syn { scale, mss, is_protected }
    }
}

/// What the sender was told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// The receiver's own place in its sequence, for acknowledgements made here.
    sequence: u32,
    ack: u32,
    timestamps: Option<(u32, u32)>,
    /// The end of the window as the sender knows it, and as the receiver meant it.
    edge: u32,
    own_edge: u32,
}

/// A connection of TCP whose sender is behind the ingress queue.
#[derive(Clone, Debug)]
pub(super) struct Clamp {
    /// Sender and receiver of the data.
    flow: (End, End),
    /// What both have said at the beginning.
    near: Option<Syn>,
    far: Option<Syn>,
    /// Number after the last byte that has come to the queue.
    sent_end: u32,
    told: Option<Told>,
    /// The queue was longer than it has to be for a while: the sender is faster than the tunnel.
    engaged: bool,
    /// Since when it is.
    long_since: Option<Time>,
    /// Since when the sender knows that it may go on beyond this edge.
    asked: Option<(Time, u32)>,
    /// How long it took until it did, of late.
    answers: ArrayVec<Duration, ANSWERS>,
    answers_seen: usize,
}

/// How far senders may be ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Packets that leave a second, of all flows.
    pub(crate) packets_per_s: f64,
}

impl Clamp {
    /// A connection of which nothing is known but who talks to whom.
    pub(super) fn new(flow: (End, End)) -> Self {
        Clamp {
            flow,
            near: None,
            far: None,
            sent_end: 0,
            told: None,
            engaged: false,
            long_since: None,
            asked: None,
            answers: ArrayVec::new(),
            answers_seen: 0,
        }
    }

    /// Whether data from the first to the second is what this is about.
    pub(super) fn is_of(&self, flow: (End, End)) -> bool {
        self.flow == flow
    }

    /// Whether windows are written anew.
    pub(super) fn is_engaged(&self) -> bool {
        self.engaged
    }

    // ---- what is seen -------------------------------------------------------------------------

    /// The sender's packet has come to the queue, which holds `queued` of its packets with this.
    pub(super) fn note_sent(&mut self, now: Time, view: &TcpView, queued: usize, ahead: u32) {
        let end = view.sequence_end();
        if view.is_syn() {
            self.near = Some(view.options().into());
            self.sent_end = end;
            return;
        }
        if is_after(end, self.sent_end) {
            self.sent_end = end;
        }
        if let Some((_, edge)) = self.asked
            && is_after(end, edge)
            && let Some((at, _)) = self.asked.take()
        {
            self.note_answer(now - at);
        }
        if !self.engaged {
            self.note_queue(now, queued as u32 > ahead);
        }
    }

    /// Begins to write windows anew once the queue has been long for a while. What was promised
    /// then and not used is taken back, this once (RFC 9293, Section 3.8.6, asks senders to bear
    /// it).
    fn note_queue(&mut self, now: Time, is_long: bool) {
        let since = *self.long_since.get_or_insert(now);
        if !is_long {
            self.long_since = None;
        } else if now - since >= BURST
            && self.shift().is_some()
            && let Some(told) = &mut self.told
        {
            told.edge = self.sent_end;
            self.engaged = true;
        }
    }

    fn note_answer(&mut self, took: Duration) {
        if self.answers.is_full() {
            self.answers[self.answers_seen % ANSWERS] = took;
        } else {
            self.answers.push(took);
        }
        self.answers_seen += 1;
    }

    /// A packet for the sender is about to be delivered; its window is written anew.
    /// Whether it had to be.
    pub(super) fn rewrite(
        &mut self,
        view: &TcpView,
        packet: &mut [u8],
        queued: usize,
        ahead: u32,
    ) -> bool {
        if view.is_syn() {
            self.far = Some(view.options().into());
        }
        if !view.is_ack() {
            return false;
        }
        // Windows of a SYN are as they stand.
        let shift = if view.is_syn() { Some(0) } else { self.shift() };
        let Some(shift) = shift else { return false };
        let own_edge = view.ack.wrapping_add(u32::from(view.window) << shift);
        let before = self.told.filter(|told| !view.is_syn() && !is_after(told.ack, view.ack));
        if self.told.is_some() && before.is_none() && !view.is_syn() {
            return false; // It was overtaken, and says nothing new.
        }
        let known = before.map_or(own_edge, |told| told.edge);
        let mut edge =
            if before.is_none_or(|told| is_after(own_edge, told.edge)) { own_edge } else { known };
        let mut clamped = false;
        if self.engaged && before.is_some() && !view.is_syn() {
            let window = self.window(view.ack, known, (queued, ahead), shift).min(view.window);
            if window < view.window {
                view.set_window(packet, window);
                clamped = true;
                edge = view.ack.wrapping_add(u32::from(window) << shift);
            }
        }
        self.told = Some(Told {
            sequence: before
                .map_or(view.sequence_end(), |told| later(told.sequence, view.sequence_end())),
            ack: view.ack,
            timestamps: view.options().timestamps,
            edge,
            own_edge,
        });
        clamped
    }

    // ---- what is told -------------------------------------------------------------------------

    /// Writes an acknowledgement with a longer window, if the sender should hear of one. `queued`:
    /// packets of it in the queue.
    pub(super) fn update(
        &mut self,
        now: Time,
        queued: usize,
        ahead: u32,
        out: &mut Vec<u8>,
    ) -> bool {
        let (Some(shift), Some(mut told)) = (self.shift().filter(|_| self.engaged), self.told)
        else {
            return false;
        };
        let own = told.own_edge.wrapping_sub(told.ack) >> shift;
        let window = self.window(told.ack, told.edge, (queued, ahead), shift).min(own as u16);
        let edge = told.ack.wrapping_add(u32::from(window) << shift);
        let more = edge.wrapping_sub(told.edge) as i32;
        if more < self.mss() as i32 {
            return false;
        }
        let left = told.edge.wrapping_sub(self.sent_end) as i32;
        if queued as u32 + (left / self.mss() as i32).max(0) as u32 > ahead / TELL_DIVISOR {
            return false;
        }
        self.asked.get_or_insert((now, told.edge));
        told.edge = edge;
        self.told = Some(told);
        let (to, from) = self.flow;
        let Told { sequence, ack, timestamps, .. } = told;
        PureAck { from, to, sequence, ack, window, timestamps }.write(out);
        true
    }

    /// The window in a header that acknowledges up to `ack`, where the sender may go up to `known`
    /// already: so far, or as far as the queue can take more. What is less than a unit of the
    /// scale is rounded up where it is new; else the end of the window would creep away.
    fn window(&self, ack: u32, known: u32, (queued, ahead): (usize, u32), shift: u32) -> u16 {
        let free = ahead.saturating_sub(queued as u32);
        let wanted = self.sent_end.wrapping_add(free * self.mss());
        let units = if is_after(wanted, known) {
            distance(ack, wanted).div_ceil(1 << shift)
        } else {
            distance(ack, known) >> shift
        };
        units.min(0xffff) as u16
    }

    /// Packets that the sender may be ahead of what has left, if `flows` share the air.
    pub(super) fn ahead(&self, pace: Pace, flows: usize) -> u32 {
        let answer = self.answers.iter().min().copied().unwrap_or_default();
        let time_s = AHEAD.as_secs_f64() + ANSWER_FACTOR * answer.as_secs_f64();
        (AHEAD_MIN + pace.packets_per_s * time_s / flows.max(1) as f64).ceil() as u32
    }

    /// Bits that windows of the receiver are shifted by; `None` as long as it is not known, or if
    /// windows are not to be touched.
    fn shift(&self) -> Option<u32> {
        let (near, far) = (self.near?, self.far?);
        if near.is_protected || far.is_protected {
            return None;
        }
        // RFC 7323, Section 2.2: scaled if both have said so.
        Some(near.scale.and(far.scale).map_or(0, u32::from))
    }

    /// The longest segment that the sender makes, or longer: a shorter one would not let it send.
    fn mss(&self) -> u32 {
        /// Where nothing is said (RFC 9293, Section 3.7.1).
        const DEFAULT: u16 = 536;
        u32::from(self.far.and_then(|far| far.mss).unwrap_or(DEFAULT).max(DEFAULT))
    }
}

/// How far a sequence number is beyond another; zero if it is not.
fn distance(from: u32, to: u32) -> u32 {
    if is_after(to, from) { to.wrapping_sub(from) } else { 0 }
}

/// Whether a sequence number is beyond another (RFC 9293, Section 3.4).
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

fn later(a: u32, b: u32) -> u32 {
    if is_after(a, b) { a } else { b }
}
