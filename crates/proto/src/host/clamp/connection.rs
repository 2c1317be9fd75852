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
//! Nothing is promised that the receiver has not promised. What was promised is taken back once,
//! when clamping begins, and never what has come to the queue. What a segment says is believed as
//! far as the host would believe it.

use core::time::Duration;

use corridor_base::Time;

use crate::host::clamp::ahead::{AHEAD_MIN, ANSWER_MAX, Answers, Pace};
use crate::host::clamp::handshake::{Handshake, Syn};
use crate::host::clamp::sender::Sender;
use corridor_packet::sequence::{distance, is_after, later};
use corridor_packet::{End, PacketBuf, PureAck, TcpView};

/// A queue that is gone by then was a burst.
const BURST: Duration = Duration::from_millis(5);
/// A sender that does not take what it may for so long, and as long as it takes to answer, is told
/// of more, if no more wait than that.
/// TCP puts off a piece of what it would like to send at once, in the hope of an acknowledgement
/// that lets it send more, and has no timer for it: where the other end waits for repair, none
/// comes. Linux does not put off what comes a millisecond after its last segment.
const PUT_OFF: Duration = Duration::from_micros(1_200);
const PUT_OFF_QUEUED: u32 = 1;
/// Part of what a sender may be ahead that is left when it is offered more.
const TELL_DIVISOR: u32 = 2;
/// The longest window of a SYN: it is not scaled.
const WINDOW_FIRST: u32 = 0xffff;

/// What the sender was told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// The receiver's own place in its sequence.
    sequence: u32,
    ack: u32,
    /// As the header had it.
    window: u16,
    timestamps: Option<(u32, u32)>,
    /// The end of the window as the sender knows it, and as the receiver meant it.
    edge: u32,
    own_edge: u32,
    at: Time,
}

/// A connection of TCP whose sender is behind the ingress queue.
#[derive(Clone, Debug)]
pub(crate) struct Clamp {
    /// Sender and receiver of the data.
    flow: (End, End),
    handshake: Handshake,
    sender: Sender,
    told: Option<Told>,
    /// As far as which the sender has ever been told that it may go.
    edge_max: u32,
    /// As far as which the receiver has ever let it go: data beyond that is somebody else's.
    promised: u32,
    engaged: bool,
    /// Since when the queue is longer than it has to be; then, since when windows are written anew.
    long_since: Option<Time>,
    answers: Answers,
}

impl Clamp {
    /// A connection of which nothing is known but who talks to whom.
    pub(crate) fn new(flow: (End, End), now: Time) -> Self {
        Clamp {
            flow,
            handshake: Handshake::default(),
            sender: Sender::new(now),
            told: None,
            edge_max: 0,
            promised: 0,
            engaged: false,
            long_since: None,
            answers: Answers::default(),
        }
    }

    /// Whether data from the first to the second is what this is about.
    pub(crate) fn is_of(&self, flow: (End, End)) -> bool {
        self.flow == flow
    }

    /// Whether windows are written anew.
    pub(crate) fn is_engaged(&self) -> bool {
        self.engaged
    }

    /// Whether windows are written anew, and data waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.engaged && self.sender.queued > 0
    }

    /// When the sender sent last.
    pub(crate) fn sent_at(&self) -> Time {
        self.sender.sent_at
    }

    // ---- what is seen -------------------------------------------------------------------------

    /// The sender's packet has come to the queue. Whether it has data, and counts as queued.
    pub(crate) fn note_sent(&mut self, now: Time, view: &TcpView, pace: Pace) -> bool {
        self.sender.note_ack(view, self.handshake.near_shift());
        if view.is_syn() {
            self.note_opened(now, view);
            return false;
        }
        self.sender.is_closed |= view.is_fin();
        // Those that probe a window that is shut may go a byte beyond it.
        let is_beyond = is_after(view.sequence_end(), self.promised.wrapping_add(1));
        if view.data_len() == 0 || !self.handshake.is_open() || is_beyond {
            return false;
        }
        if self.sender.was_idle(now) {
            self.disengage();
        }
        self.sender.note_data(now, view);
        // What was under way when the window was taken back looks like an answer.
        if self.answers.note(now, self.sender.sent_end)
            && self.long_since.is_some_and(|since| now - since > ANSWER_MAX)
        {
            self.long_since = None;
            self.answers.forget_others();
        }
        if !self.engaged {
            self.note_queue(now, self.sender.queued > self.ahead(pace));
        }
        true
    }

    /// The sender opens the connection, or answers who does.
    fn note_opened(&mut self, now: Time, view: &TcpView) {
        let syn = Syn::from(view);
        if self.handshake.has_opened(&syn) {
            return; // Once more.
        }
        let answered = view.is_ack().then_some(view.ack);
        *self = Clamp {
            handshake: self.handshake.reopened(syn, answered),
            sender: self.sender.reopened(now, syn.end),
            edge_max: syn.end,
            promised: syn.end.wrapping_add(WINDOW_FIRST),
            ..Clamp::new(self.flow, now)
        };
    }

    /// One of its packets has left the queue, or was dropped.
    pub(crate) fn note_left(&mut self) {
        self.sender.note_left();
    }

    /// Begins to write windows anew once the queue has been long for a while. What was promised
    /// then and not used is taken back, this once (RFC 9293, Section 3.8.6, asks senders to bear
    /// it).
    fn note_queue(&mut self, now: Time, is_long: bool) {
        let since = *self.long_since.get_or_insert(now);
        if !is_long {
            self.long_since = None;
        } else if now - since >= BURST
            && self.handshake.shift().is_some()
            && let Some(told) = &mut self.told
        {
            told.edge = self.sender.sent_end;
            self.edge_max = self.sender.sent_end;
            self.engaged = true;
            self.long_since = Some(now);
        }
    }

    fn disengage(&mut self) {
        self.engaged = false;
        self.long_since = None;
        self.answers.end();
    }

    /// A packet for the sender is about to be delivered; its window is written anew, if it has to
    /// be. Whether it was.
    pub(crate) fn rewrite(
        &mut self,
        now: Time,
        view: &TcpView,
        packet: &mut PacketBuf,
        pace: Pace,
    ) -> bool {
        if view.is_syn() {
            if self.handshake.note_far(view) {
                // The sender will say so.
                self.sender.ack = view.sequence_end();
            }
            return false;
        }
        let Some(shift) = self.handshake.shift().filter(|_| view.is_ack()) else { return false };
        let Some(ends) = self.handshake.ends() else { return false };
        let before = self.told.map_or(ends, |told| (told.ack, told.sequence));
        let is_new = !is_after(before.0, view.ack) && !is_after(view.ack, self.sender.sent_end);
        if !is_new || !self.is_due(view) {
            return false; // It was overtaken, or is none of this connection's.
        }
        let own_edge = view.ack.wrapping_add(u32::from(view.window) << shift);
        let (mut window, mut edge_before) = (view.window, None);
        if let Some(told) = self.told.filter(|_| self.engaged) {
            // One that says nothing new may be there to be counted: with the same window (RFC
            // 5681, Section 2). One of ours tells of more.
            let repeats = view.ack == told.ack && own_edge == told.own_edge && view.data_len() == 0;
            let wanted =
                if repeats { told.window } else { self.window(view.ack, told.edge, pace, shift) };
            window = wanted.min(view.window);
            // Nor does it promise anew what was taken back since.
            edge_before = repeats.then_some(told.edge);
        }
        if window < view.window {
            packet.set_window(view, window);
        }
        let edge = edge_before.unwrap_or_else(|| view.ack.wrapping_add(u32::from(window) << shift));
        self.edge_max = later(self.edge_max, edge);
        self.promised = later(self.promised, own_edge);
        let (sequence, timestamps) = match self.told {
            None => (view.sequence_end(), view.options().timestamps),
            Some(told) => (
                later(told.sequence, view.sequence_end()),
                latest(told.timestamps, view.options().timestamps),
            ),
        };
        let (ack, at) = (view.ack, now);
        self.told = Some(Told { sequence, ack, window, timestamps, edge, own_edge, at });
        window < view.window
    }

    /// Whether a segment of the receiver's is near where the sender would take one.
    pub(crate) fn is_due(&self, view: &TcpView) -> bool {
        self.sender.takes(view)
    }

    // ---- what is told -------------------------------------------------------------------------

    /// Writes an acknowledgement with a longer window, if the sender should hear of one.
    pub(crate) fn update(&mut self, now: Time, pace: Pace, out: &mut Vec<u8>) -> bool {
        let (Some(shift), Some(told)) = (self.handshake.shift(), self.told) else { return false };
        if !self.engaged || self.sender.is_closed {
            return false;
        }
        let own = distance(told.ack, told.own_edge) >> shift;
        let mut window = self.window(told.ack, told.edge, pace, shift);
        let reminds = self.reminder_due(pace).is_some_and(|due| due <= now);
        if reminds {
            let segment = self.mss().div_ceil(1 << shift).min(0xffff) as u16;
            window = window.max(told.window.saturating_add(segment));
        }
        let window = window.min(own.min(0xffff) as u16);
        let edge = told.ack.wrapping_add(u32::from(window) << shift);
        let left = distance(self.sender.sent_end, told.edge);
        let enough = self.sender.queued + left / self.mss() > self.ahead(pace) / TELL_DIVISOR;
        // A segment is worth telling; so is less to a sender that waits for nothing else.
        let is_at_rest = self.sender.queued == 0 && left < AHEAD_MIN * self.mss();
        let worth = if is_at_rest { 1 } else { self.mss() };
        // Once, even if it cannot be done.
        self.sender.is_reminded |= reminds;
        if distance(told.edge, edge) < worth || (enough && !reminds) {
            return false;
        }
        if !reminds {
            // Who has room left answers with that first.
            self.answers.ask(now, later(self.edge_max, self.sender.sent_end));
        }
        self.edge_max = later(self.edge_max, edge);
        self.told = Some(Told { edge, window, at: now, ..told });
        let (to, from) = self.flow;
        let sequence = later(told.sequence, self.sender.ack);
        let Told { ack, timestamps, .. } = told;
        PureAck { from, to, sequence, ack, window, timestamps }.write(out);
        true
    }

    /// When a sender that does not take what it may is to be offered more, once.
    pub(crate) fn reminder_due(&self, pace: Pace) -> Option<Time> {
        let is_asked = !self.sender.is_closed && !self.sender.is_reminded;
        let told = self.told.filter(|_| self.engaged && is_asked)?;
        let left = distance(self.sender.sent_end, told.edge);
        // Windows end at units of the scale, which may be longer than a segment.
        let most = self.ahead(pace) * self.mss() + (2 << self.handshake.shift()?);
        let is_short = self.sender.queued <= PUT_OFF_QUEUED && left <= most;
        let may_go_on = left >= self.mss() && is_after(told.own_edge, told.edge);
        (is_short && may_go_on)
            .then(|| self.sender.sent_at.max(told.at) + PUT_OFF + self.answers.soonest())
    }

    /// The window in a header that acknowledges up to `ack`, where the sender may go up to `known`
    /// already: so far, or as far as the queue can take more. The former is rounded down to a unit
    /// of the scale, else the end would creep away.
    fn window(&self, ack: u32, known: u32, pace: Pace, shift: u32) -> u16 {
        let free = self.ahead(pace).saturating_sub(self.sender.queued);
        let units = (distance(ack, known) >> shift).max(self.units(ack, free, shift));
        units.min(0xffff) as u16
    }

    /// So many units of the scale beyond `ack` let the sender go on by about so many segments. TCP
    /// fills what is left over with a short segment (Minshall's variant of Nagle's rule in RFC
    /// 9293, Section 3.7.4), which is repaired like a long one: of the units around, those that
    /// leave nothing, or most.
    fn units(&self, ack: u32, free: u32, shift: u32) -> u32 {
        let sent = distance(ack, self.sender.sent_end);
        // Rounded up, so that all that was sent is within.
        let wanted = (sent + free * self.mss()).div_ceil(1 << shift);
        let segment_len = self.sender.segment_len.max(1);
        if free == 0 || 1 << shift > segment_len {
            return wanted;
        }
        // The least that a sender may be ahead is always whole segments.
        let least = if free > AHEAD_MIN { wanted - 1 } else { wanted };
        let left_over = |units: &u32| ((units << shift) - sent - 1) % segment_len;
        // Of equals the last, which is the nearest.
        [wanted + 1, least, wanted].into_iter().max_by_key(left_over).unwrap_or(wanted)
    }

    /// Packets that the sender may be ahead of what has left.
    fn ahead(&self, pace: Pace) -> u32 {
        pace.ahead(self.answers.soonest())
    }

    /// How long packets stand that were let in, of all flows together: no sign of congestion.
    pub(crate) fn grace(&self, pace: Pace) -> Duration {
        pace.grace(self.ahead(pace))
    }

    /// The longest segment that the sender makes, or longer: a shorter one would not let it send.
    fn mss(&self) -> u32 {
        let agreed = self.handshake.segment_len().unwrap_or(0);
        agreed.max(self.sender.segment_len).max(1)
    }
}

/// The later of two pairs of timestamps, by the receiver's own.
fn latest(before: Option<(u32, u32)>, now: Option<(u32, u32)>) -> Option<(u32, u32)> {
    match (before, now) {
        (Some(before), Some(now)) if is_after(before.0, now.0) => Some(before),
        (before, now) => now.or(before),
    }
}
