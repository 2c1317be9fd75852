//! The sender of a connection's data, which is behind the ingress queue.

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::TcpView;
use corridor_packet::sequence::later;

/// A sender that was silent for so long begins anew: what it sends next is not held back before a
/// queue stands again.
const IDLE: Duration = Duration::from_secs(1);
/// How far the receiver's sequence may be from what the sender has acknowledged; farther if that
/// has offered more.
const SEQUENCE_NEAR: u32 = 1 << 22;

/// What a sender has said and sent since it opened the connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Number after the last byte that has come to the queue.
    pub(crate) sent_end: u32,
    /// As far as which it has received what the other end sent.
    pub(crate) ack: u32,
    /// The longest window that it has offered itself.
    window: u32,
    /// The longest segment.
    pub(crate) segment_len: u32,
    /// Segments with data that are in the queue.
    pub(crate) queued: u32,
    /// When data came last.
    pub(crate) sent_at: Time,
    /// It was offered more since then although it has not taken all.
    pub(crate) is_reminded: bool,
    pub(crate) is_closed: bool,
}

impl Sender {
    /// One that has sent nothing.
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

    /// The same once it has opened the connection anew, with numbers from here on. What it had sent
    /// before is in the queue all the same.
    pub(crate) fn reopened(&self, now: Time, sent_end: u32) -> Self {
        Sender { queued: self.queued, sent_end, ack: self.ack, ..Sender::new(now) }
    }

    /// Takes in what a packet of its acknowledges and offers, with windows shifted by so many bits.
    pub(crate) fn note_ack(&mut self, view: &TcpView, shift: u8) {
        if view.is_ack() {
            self.ack = view.ack;
            self.window = self.window.max(u32::from(view.window) << shift);
        }
    }

    /// A segment with data has come to the queue.
    pub(crate) fn note_data(&mut self, now: Time, view: &TcpView) {
        self.sent_at = now;
        self.is_reminded = false;
        self.queued += 1;
        self.sent_end = later(self.sent_end, view.sequence_end());
        self.segment_len = self.segment_len.max(view.data_len() as u32);
    }

    /// A segment with data has left the queue, or was dropped.
    pub(crate) fn note_left(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Whether it begins anew with what it sends now.
    pub(crate) fn was_idle(&self, now: Time) -> bool {
        self.queued == 0 && now - self.sent_at > IDLE
    }

    /// Whether a segment of the other end is near where it would take one.
    pub(crate) fn takes(&self, view: &TcpView) -> bool {
        let ahead = view.sequence_end().wrapping_sub(self.ack);
        ahead.wrapping_add(SEQUENCE_NEAR) < SEQUENCE_NEAR + SEQUENCE_NEAR.max(self.window)
    }
}
