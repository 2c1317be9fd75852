//! Clamps the advertised windows of a TCP connection: a bulk sender may be ahead of what has left
//! the ingress queue by just enough that the queue does not run dry.
//!
//! A congestion signal tells a flow once per round trip that it is too fast, and all that it sent
//! until then stands in the queue. A congestion window large enough to cover the wait for repair
//! stands in the queue at all other times. TCP's receive window acts without such delays: it ends
//! at the last byte that the sender may send. Acknowledgments pass this station on their way to the
//! sender, so this station moves the end of the window as packets leave, independent of the
//! round-trip time beyond. Where no acknowledgment comes, it makes one that changes nothing but the
//! window (RFC 9293, Section 3.8.6).
//!
//! The clamped window never exceeds what the receiver has advertised. It shrinks once, when
//! clamping begins, and never below what has already come to the queue. A segment is believed only
//! as far as the host would believe it.

use core::time::Duration;

use corridor_base::Time;

use crate::host::clamp::ahead::{AHEAD_MIN, ANSWER_MAX, Answers, Pace};
use crate::host::clamp::handshake::{Handshake, Syn};
use crate::host::clamp::sender::Sender;
use corridor_packet::sequence::{distance, is_after, later};
use corridor_packet::{End, PacketBuf, PureAck, TcpView};

/// A queue that is gone by then was a burst.
const BURST: Duration = Duration::from_millis(5);
/// A sender that does not use its window for this long plus its answer time is granted more, unless
/// more than `PUT_OFF_QUEUED` of its packets wait. TCP defers a partial segment in the hope of an
/// acknowledgment that lets it send more (TSO deferral), and has no timer for it: where the other
/// end waits for repair, no acknowledgment comes. Linux does not defer what comes a millisecond
/// after its last segment.
const PUT_OFF: Duration = Duration::from_micros(1_200);
const PUT_OFF_QUEUED: u32 = 1;
/// A sender is granted more once it has used this fraction of what it may be ahead.
const TELL_DIVISOR: u32 = 2;
/// The longest window in a SYN, which is never scaled.
const WINDOW_FIRST: u32 = 0xffff;

/// What the sender was told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// The receiver's own sequence number.
    sequence: u32,
    ack: u32,
    /// As in the header.
    window: u16,
    timestamps: Option<(u32, u32)>,
    /// The right edge of the window as the sender knows it, and as the receiver advertised it.
    edge: u32,
    own_edge: u32,
    at: Time,
}

/// A TCP connection whose sender is behind the ingress queue.
#[derive(Clone, Debug)]
pub(crate) struct Clamp {
    /// Sender and receiver of the data.
    flow: (End, End),
    handshake: Handshake,
    sender: Sender,
    told: Option<Told>,
    /// The furthest right edge that the sender was ever told.
    edge_max: u32,
    /// The furthest right edge that the receiver ever advertised: data beyond it is forged.
    promised: u32,
    engaged: bool,
    /// Since when the queue has been too long; once clamping has begun, since when it is active.
    long_since: Option<Time>,
    answers: Answers,
}

impl Clamp {
    /// A connection of which only the addresses and ports are known.
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

    /// Whether `flow` is the direction of the data that this connection clamps.
    pub(crate) fn is_of(&self, flow: (End, End)) -> bool {
        self.flow == flow
    }

    /// Whether windows are being rewritten.
    pub(crate) fn is_engaged(&self) -> bool {
        self.engaged
    }

    /// Whether windows are being rewritten and data waits.
    pub(crate) fn is_busy(&self) -> bool {
        self.engaged && self.sender.queued > 0
    }

    /// When the sender last sent.
    pub(crate) fn sent_at(&self) -> Time {
        self.sender.sent_at
    }

    // ---- observing packets --------------------------------------------------------------------

    /// Records a packet of the sender that has come to the queue. Returns whether it has data, and
    /// so counts as queued.
    pub(crate) fn note_sent(&mut self, now: Time, view: &TcpView, pace: Pace) -> bool {
        self.sender.note_ack(view, self.handshake.near_shift());
        if view.is_syn() {
            self.note_opened(now, view);
            return false;
        }
        self.sender.is_closed |= view.is_fin();
        // A probe of a zero window may go one byte beyond it.
        let is_beyond = is_after(view.sequence_end(), self.promised.wrapping_add(1));
        if view.data_len() == 0 || !self.handshake.is_open() || is_beyond {
            return false;
        }
        if self.sender.was_idle(now) {
            self.disengage();
        }
        self.sender.note_data(now, view);
        // Data already under way when the window was taken back would look like an answer.
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

    /// The sender opens the connection, or answers the peer that does.
    fn note_opened(&mut self, now: Time, view: &TcpView) {
        let syn = Syn::from(view);
        if self.handshake.has_opened(&syn) {
            return; // A retransmission.
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

    /// Records that one of its packets has left the queue or was dropped.
    pub(crate) fn note_left(&mut self) {
        self.sender.note_left();
    }

    /// Begins to rewrite windows once the queue has been too long for a while. This once, it takes
    /// back what was advertised and not yet used (RFC 9293, Section 3.8.6, requires senders to cope
    /// with that).
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

    /// Rewrites the window in a packet that is about to be delivered to the sender, if necessary;
    /// returns whether it did.
    pub(crate) fn rewrite(
        &mut self,
        now: Time,
        view: &TcpView,
        packet: &mut PacketBuf,
        pace: Pace,
    ) -> bool {
        if view.is_syn() {
            if self.handshake.note_far(view) {
                // The sender will acknowledge this data.
                self.sender.ack = view.sequence_end();
            }
            return false;
        }
        let Some(shift) = self.handshake.shift().filter(|_| view.is_ack()) else { return false };
        let Some(ends) = self.handshake.ends() else { return false };
        let before = self.told.map_or(ends, |told| (told.ack, told.sequence));
        let is_new = !is_after(before.0, view.ack) && !is_after(view.ack, self.sender.sent_end);
        if !is_new || !self.is_due(view) {
            return false; // Overtaken, or not of this connection.
        }
        let own_edge = view.ack.wrapping_add(u32::from(view.window) << shift);
        let (mut window, mut edge_before) = (view.window, None);
        if let Some(told) = self.told.filter(|_| self.engaged) {
            // A duplicate acknowledgment counts only with the same window (RFC 5681, Section 2). An
            // update of ours would have had a longer one.
            let repeats = view.ack == told.ack && own_edge == told.own_edge && view.data_len() == 0;
            let wanted =
                if repeats { told.window } else { self.window(view.ack, told.edge, pace, shift) };
            window = wanted.min(view.window);
            // Nor does it grant again what was taken back since.
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

    /// Whether a segment of the receiver is close to the sequence number that the sender would
    /// accept.
    pub(crate) fn is_due(&self, view: &TcpView) -> bool {
        self.sender.takes(view)
    }

    // ---- window updates -----------------------------------------------------------------------

    /// Writes an acknowledgment with a longer window if the sender needs one; returns whether it
    /// did.
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
        // A whole segment is worth an update; less is worth one only if the sender has nothing else
        // to wait for.
        let is_at_rest = self.sender.queued == 0 && left < AHEAD_MIN * self.mss();
        let worth = if is_at_rest { 1 } else { self.mss() };
        // Remind only once, even if it fails.
        self.sender.is_reminded |= reminds;
        if distance(told.edge, edge) < worth || (enough && !reminds) {
            return false;
        }
        if !reminds {
            // A sender with room left first answers by using that.
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

    /// When to grant more, once, to a sender that does not use its window.
    pub(crate) fn reminder_due(&self, pace: Pace) -> Option<Time> {
        let is_asked = !self.sender.is_closed && !self.sender.is_reminded;
        let told = self.told.filter(|_| self.engaged && is_asked)?;
        let left = distance(self.sender.sent_end, told.edge);
        // Windows are multiples of the scale's unit, which may be longer than a segment.
        let most = self.ahead(pace) * self.mss() + (2 << self.handshake.shift()?);
        let is_short = self.sender.queued <= PUT_OFF_QUEUED && left <= most;
        let may_go_on = left >= self.mss() && is_after(told.own_edge, told.edge);
        (is_short && may_go_on)
            .then(|| self.sender.sent_at.max(told.at) + PUT_OFF + self.answers.soonest())
    }

    /// The window for a header that acknowledges up to `ack` when the sender already knows that it
    /// may go to `known`: that far, or as far as the queue can take more, whichever is further.
    /// `known` is rounded down to a unit of the scale, or the edge would creep away.
    fn window(&self, ack: u32, known: u32, pace: Pace, shift: u32) -> u16 {
        let free = self.ahead(pace).saturating_sub(self.sender.queued);
        let units = (distance(ack, known) >> shift).max(self.units(ack, free, shift));
        units.min(0xffff) as u16
    }

    /// The number of scale units beyond `ack` that lets the sender go on by about `free` segments.
    /// TCP fills a remainder with a short segment (Minshall's variant of Nagle's rule in RFC 9293,
    /// Section 3.7.4), whose repair costs as much as a full one's. So of the nearest numbers of
    /// units, this takes the one that leaves no remainder, or the largest.
    fn units(&self, ack: u32, free: u32, shift: u32) -> u32 {
        let sent = distance(ack, self.sender.sent_end);
        // Rounded up, so that it covers all that was sent.
        let wanted = (sent + free * self.mss()).div_ceil(1 << shift);
        let segment_len = self.sender.segment_len.max(1);
        if free == 0 || 1 << shift > segment_len {
            return wanted;
        }
        // The minimum a sender may be ahead is always in whole segments.
        let least = if free > AHEAD_MIN { wanted - 1 } else { wanted };
        let left_over = |units: &u32| ((units << shift) - sent - 1) % segment_len;
        // Among equals `max_by_key` returns the last, which is the nearest.
        [wanted + 1, least, wanted].into_iter().max_by_key(left_over).unwrap_or(wanted)
    }

    /// Packets that the sender may be ahead of what has left.
    fn ahead(&self, pace: Pace) -> u32 {
        pace.ahead(self.answers.soonest())
    }

    /// How long packets wait because of the clamped windows of all flows: no sign of congestion.
    pub(crate) fn grace(&self, pace: Pace) -> Duration {
        pace.grace(self.ahead(pace))
    }

    /// An upper bound of the segments that the sender makes; with a smaller value it might not send
    /// at all.
    fn mss(&self) -> u32 {
        let agreed = self.handshake.segment_len().unwrap_or(0);
        agreed.max(self.sender.segment_len).max(1)
    }
}

/// The later of two pairs of timestamps, by the receiver's own clock.
fn latest(before: Option<(u32, u32)>, now: Option<(u32, u32)>) -> Option<(u32, u32)> {
    match (before, now) {
        (Some(before), Some(now)) if is_after(before.0, now.0) => Some(before),
        (before, now) => now.or(before),
    }
}
