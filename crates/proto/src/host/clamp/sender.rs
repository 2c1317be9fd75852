//! The sender of a connection's data, which is behind the ingress queue.

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::TcpView;
use corridor_packet::sequence::later;

/// A sender that was silent for this long starts afresh: it is not clamped until a queue stands
/// again.
const IDLE: Duration = Duration::from_secs(1);
/// How far the receiver's sequence number may be from the sender's acknowledgment; further if the
/// sender has advertised a longer window.
const SEQUENCE_NEAR: u32 = 1 << 22;

/// What a sender has declared and sent since it opened the connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Sequence number after the last byte that has come to the queue.
    pub(crate) sent_end: u32,
    /// Up to where it acknowledged the other end's data.
    pub(crate) ack: u32,
    /// The longest window that it has advertised itself.
    window: u32,
    /// Its longest segment so far.
    pub(crate) segment_len: u32,
    /// Segments with data that are in the queue.
    pub(crate) queued: u32,
    /// When data last came.
    pub(crate) sent_at: Time,
    /// It was reminded since then, that is, granted more although it has not used its window.
    pub(crate) is_reminded: bool,
    pub(crate) is_closed: bool,
}

impl Sender {
    /// A sender that has sent nothing.
    pub(crate) fn new(now: Time) -> Self {
        Sender {
            sent_end: 0,
            ack: 0,
            window: 0,
            segment_len: 0,
            queued: 0,
            sent_at: now,
            is_reminded: false,
            is_closed: false,
        }
    }

    /// The sender after it reopens the connection at `sent_end`. What it sent before stays in the
    /// queue.
    pub(crate) fn reopened(&self, now: Time, sent_end: u32) -> Self {
        Sender { queued: self.queued, sent_end, ack: self.ack, ..Sender::new(now) }
    }

    /// Records the acknowledgment and window of its packet, with window scale `shift`.
    pub(crate) fn note_ack(&mut self, view: &TcpView, shift: u8) {
        if view.is_ack() {
            self.ack = view.ack;
            self.window = self.window.max(u32::from(view.window) << shift);
        }
    }

    /// Records a segment with data that has come to the queue.
    pub(crate) fn note_data(&mut self, now: Time, view: &TcpView) {
        self.sent_at = now;
        self.is_reminded = false;
        self.queued += 1;
        self.sent_end = later(self.sent_end, view.sequence_end());
        self.segment_len = self.segment_len.max(view.data_len() as u32);
    }

    /// Records that a segment with data has left the queue or was dropped.
    pub(crate) fn note_left(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Whether it starts afresh with what it sends now.
    pub(crate) fn was_idle(&self, now: Time) -> bool {
        self.queued == 0 && now - self.sent_at > IDLE
    }

    /// Whether a segment of the other end is close to the sequence number that it would accept.
    pub(crate) fn takes(&self, view: &TcpView) -> bool {
        let ahead = view.sequence_end().wrapping_sub(self.ack);
        ahead.wrapping_add(SEQUENCE_NEAR) < SEQUENCE_NEAR + SEQUENCE_NEAR.max(self.window)
    }
}
