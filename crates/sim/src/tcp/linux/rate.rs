//! Delivery rate samples (draft-ietf-ccwg-bbr, Section 4.1): one for each acknowledgment, over the
//! longer of the sending and the arrival interval.

use super::flow::Flow;
use super::scoreboard::Sent;

/// The delivery rate sample of an acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateSample {
    /// Of the packet sent last among those acknowledged: packets delivered when it was sent.
    pub(super) prior_delivered: Option<u64>,
    pub(super) prior_at_us: u64,
    /// That packet's number.
    pub(super) number: u64,
    pub(super) send_us: u64,
    /// Packets delivered since then; `None` without a sample.
    pub(super) delivered: Option<u64>,
    /// The interval in microseconds; `None` if it is not known.
    pub(super) interval_us: Option<u64>,
    /// Packets newly delivered, and packets newly lost.
    pub(super) acked: u64,
    pub(super) losses: u64,
    /// Packets in flight before the acknowledgment.
    pub(super) prior_in_flight: u64,
    /// RTT of the last packet acknowledged, microseconds.
    pub(super) rtt_us: Option<u64>,
    pub(super) app_limited: bool,
}

impl Flow {
    /// A packet has arrived: it defines the sample if it was sent last among all that have; the
    /// number decides between packets sent at once.
    pub(super) fn rate_take(&mut self, number: u64, sent: &Sent, sample: &mut RateSample) {
        let Some(delivered_at_us) = sent.delivered_at_us else { return };
        let is_first = sample.prior_delivered.is_none_or(|prior| prior == 0);
        if is_first || (sent.at_us, number) > (self.first_at_us, sample.number) {
            sample.prior_delivered = Some(sent.delivered);
            sample.prior_at_us = delivered_at_us;
            sample.number = number;
            sample.app_limited = sent.app_limited;
            self.first_at_us = sent.at_us;
            sample.send_us = sent.at_us - sent.first_at_us.min(sent.at_us);
        }
    }

    /// Completes the sample.
    pub(super) fn rate_complete(&mut self, acked: u64, losses: u64, sample: &mut RateSample) {
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let now_us = self.now_us();
        if acked > 0 {
            self.delivered_at_us = now_us;
        }
        (sample.acked, sample.losses) = (acked, losses);
        let Some(prior) = sample.prior_delivered else { return };
        sample.delivered = Some(self.delivered - prior);
        let interval_us = sample.send_us.max(now_us - sample.prior_at_us);
        // An interval shorter than any round trip comes from a spurious retransmission.
        if interval_us >= self.rtt.min_us().unwrap_or(u64::from(u32::MAX)) {
            sample.interval_us = Some(interval_us);
        }
    }

    /// Marks samples as application-limited while the application has nothing to send and nothing
    /// else limits sending.
    pub(super) fn rate_check_application(&mut self) {
        let has_none = self.board.next() >= self.offered;
        let has_room = self.board.in_flight() < self.cwnd;
        if has_none && has_room && self.board.lost() <= self.board.again() {
            self.app_limited = (self.delivered + self.board.in_flight()).max(1);
        }
    }
}
