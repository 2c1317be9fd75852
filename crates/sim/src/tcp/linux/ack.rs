//! Processing of acknowledgments, in the kernel's order.
//!
//! 1. *SACK ranges.* Mark what has newly arrived beyond a gap; a range that was acknowledged before
//!    reports a duplicate (D-SACK, RFC 2883).
//! 2. *Progress.* Cumulatively acknowledged packets leave the scoreboard.
//! 3. *Round trips* are measured from packets sent once, or from timestamps if there are none.
//! 4. *Alerts.* Detect losses, change state (`recovery.rs`).
//! 5. Timer, delivery rate, window.

use corridor_base::Time;

use super::clock::{micros, ticks};
use super::flow::Told;
use super::rate::RateSample;
use super::sender::LinuxSender;
use super::state::CaState;
use crate::tcp::segment::{SACK_RANGES_MAX, SackRange};

/// An acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// All packets before this number have arrived.
    pub(super) next: u64,
    /// The echoed timestamp.
    pub(super) echo: Time,
    pub(super) sack: [SackRange; SACK_RANGES_MAX],
    pub(super) congestion: bool,
    pub(super) window_end: Option<u64>,
}

/// What an acknowledgment says about packets, gathered over the steps.
#[derive(Clone, Copy, Debug, Default)]
struct Gathered {
    told: Told,
    sample: RateSample,
    /// Send times of the first and the last packet newly acknowledged that was sent only once; then
    /// the same for packets newly SACKed.
    acked_at: Option<(u64, u64)>,
    sacked_at: Option<(u64, u64)>,
    /// The lowest number of a packet sent only once that arrived after a higher one.
    reordered: u64,
    /// Packets newly SACKed.
    sacked: u64,
    /// Packets newly acknowledged cumulatively.
    acked: u64,
}

impl LinuxSender {
    pub(super) fn handle_ack(&mut self, ack: &Ack) {
        let una_before = self.flow.board.una();
        if ack.next > self.flow.board.next() {
            return;
        }
        self.flow.counts.acks_received += 1;
        if ack.next < una_before && ack.sack.iter().all(|range| range.end <= range.start) {
            return; // Reordered and stale, so it has no news (`old_ack` in Linux's `tcp_ack`).
        }
        let (delivered, lost) = (self.flow.delivered, self.flow.lost);
        let high_before = self.flow.highest();
        let mut gathered = Gathered { reordered: u64::MAX, ..Gathered::default() };
        gathered.sample.prior_in_flight = self.flow.board.in_flight();
        gathered.told.congestion = ack.congestion && self.flow.config.ecn;
        gathered.told.advanced = ack.next > una_before;
        self.take_window(ack, &mut gathered.told);
        self.take_ranges(ack, &mut gathered);
        if gathered.told.advanced {
            self.flow.timeouts_in_row = 0;
        } else if !gathered.told.sacked && !gathered.told.window {
            self.flow.counts.duplicate_acks += 1;
        }
        self.flow.delivered += gathered.sacked;
        self.take_progress(ack, high_before, &mut gathered);
        self.take_rtt(micros(ack.echo), &mut gathered);
        let Gathered { mut told, mut sample, .. } = gathered;

        self.flow.rack_update_window(sample.prior_delivered);
        self.on_probe_ack(&told);
        let alerts = told.sacked || told.congestion || told.duplicate;
        if !told.is_not_duplicate() || alerts || self.flow.state != CaState::Open {
            self.on_alert(una_before, micros(ack.echo), &mut told);
        }
        if told.sets_timer {
            self.schedule(true);
        }
        let (acked, losses) = (self.flow.delivered - delivered, self.flow.lost - lost);
        self.flow.rate_complete(acked, losses, &mut sample);
        self.adapt(&told, &sample);
    }

    /// Moves the end of the window forward; back only with an acknowledgment that has news. A
    /// stale acknowledgment says nothing about the window (`old_ack` in Linux's `tcp_ack`; RFC
    /// 9293, Section 3.10.7.4).
    fn take_window(&mut self, ack: &Ack, told: &mut Told) {
        let is_old = ack.next < self.flow.board.una();
        let Some(end) = ack.window_end.filter(|_| !is_old) else { return };
        let (before, is_first) = (self.flow.window_end, self.flow.window_end == u64::MAX);
        if told.advanced || is_first || end > before || end == ack.next {
            told.window = end != before && !told.advanced;
            self.flow.window_end = end;
        }
    }

    fn take_ranges(&mut self, ack: &Ack, gathered: &mut Gathered) {
        let Some(&first) = ack.sack.iter().find(|range| range.end > range.start) else { return };
        let is_within = |outer: &SackRange| {
            outer.start <= first.start && first.end <= outer.end && *outer != first
        };
        let is_duplicate = first.start < ack.next || ack.sack[1..].iter().any(is_within);
        if is_duplicate {
            self.take_duplicate(first, gathered);
        }
        for range in ack.sack.iter().skip(usize::from(is_duplicate)) {
            for (start, end) in self.flow.board.take_range(range.start, range.end) {
                (start..end).for_each(|number| self.take_sacked(number, gathered));
            }
        }
        let may_tell = self.flow.state != CaState::Loss || self.flow.undo_from.is_some();
        if may_tell && gathered.reordered < u64::MAX {
            let high = self.flow.highest();
            self.flow.note_reordering(gathered.reordered, high);
        }
    }

    /// The receiver reports a duplicate of these packets (D-SACK).
    fn take_duplicate(&mut self, range: SackRange, gathered: &mut Gathered) {
        let packets = range.end - range.start;
        if packets > self.flow.counts.retransmissions {
            return;
        }
        gathered.told.duplicate = true;
        gathered.sacked += packets;
        if self.flow.probe_high == Some(range.end) {
            gathered.told.duplicate_probe = true;
        } else {
            self.flow.rack.duplicate = true;
        }
        let flow = &mut self.flow;
        let counts = flow.undo_from.is_some_and(|from| range.end > from);
        if counts && flow.undo_retransmits > 0 {
            flow.undo_retransmits = (flow.undo_retransmits - packets as i64).max(0);
        }
    }

    /// A packet has been SACKed.
    fn take_sacked(&mut self, number: u64, gathered: &mut Gathered) {
        let flow = &mut self.flow;
        let high_before = flow.sacked_high;
        let Some(sent) = flow.board.mark_sacked(number) else { return };
        flow.rack_advance(number, &sent);
        if !sent.ever_again {
            if number < high_before {
                gathered.reordered = gathered.reordered.min(number);
            }
            gathered.told.original |= number < flow.high;
            let first = gathered.sacked_at.map_or(sent.at_us, |(first, _)| first);
            gathered.sacked_at = Some((first, sent.at_us));
        }
        flow.sacked_high = high_before.max(number);
        flow.rate_take(number, &sent, &mut gathered.sample);
        gathered.told.sacked = true;
        gathered.sacked += 1;
    }

    /// Removes cumulatively acknowledged packets from the scoreboard.
    fn take_progress(&mut self, ack: &Ack, high: u64, gathered: &mut Gathered) {
        let flow = &mut self.flow;
        let (before, next, echo_us) = (flow.board.una(), ack.next, micros(ack.echo));
        let mut lowest = u64::MAX;
        while flow.board.una() < next {
            let number = flow.board.una();
            let Some(sent) = flow.board.take_first() else { break };
            gathered.acked += 1;
            gathered.told.again |= sent.ever_again;
            if !sent.ever_again && !sent.sacked {
                let first = gathered.acked_at.map_or(sent.at_us, |(first, _)| first);
                gathered.acked_at = Some((first, sent.at_us));
                lowest = lowest.min(number);
                gathered.told.original |= number < flow.high;
            }
            if !sent.sacked {
                flow.delivered += 1;
                // An echoed timestamp older than the retransmission belongs to the first copy.
                if !sent.ever_again || echo_us / 1_000 >= sent.at_us / 1_000 {
                    flow.rack_advance(number, &sent);
                }
            }
            flow.rate_take(number, &sent, &mut gathered.sample);
        }
        if flow.board.una() == before {
            return;
        }
        gathered.told.sets_timer = true;
        if lowest < high {
            flow.note_reordering(lowest, high);
        }
    }

    /// Measures the round trip, if the acknowledgment allows it.
    fn take_rtt(&mut self, echo_us: u64, gathered: &mut Gathered) {
        let now_us = self.flow.now_us();
        let since = |at_us: u64| now_us - at_us;
        let (mut smoothed_us, mut latest_us) = (None, None);
        if let Some((first, last)) = gathered.acked_at.filter(|_| !gathered.told.again) {
            (smoothed_us, latest_us) = (Some(since(first)), Some(since(last)));
        }
        if let Some((first, last)) = gathered.sacked_at {
            latest_us = Some(since(last));
            let is_first = smoothed_us.is_none();
            smoothed_us = smoothed_us.or(Some(since(first)));
            // The oldest packet is a retransmission: the timer runs anew from now.
            let head = self.flow.board.get(self.flow.board.una());
            let is_younger = head.is_some_and(|head| since(first) > since(head.at_us));
            gathered.told.sets_timer |= is_first && gathered.acked == 0 && is_younger;
        }
        if smoothed_us.is_none() && gathered.acked > 0 {
            // From the echoed timestamp, whose clock ticks in milliseconds (RFC 7323, Section 4).
            let echoed_us = (now_us / 1_000).saturating_sub(echo_us / 1_000).max(1) * 1_000;
            (smoothed_us, latest_us) = (Some(echoed_us), Some(echoed_us));
        }
        gathered.sample.rtt_us = latest_us;
        if let Some(rtt_us) = latest_us {
            self.flow.rtt.note_min(ticks(self.flow.now), rtt_us);
        }
        if let Some(rtt_us) = smoothed_us {
            let (una, next) = (self.flow.board.una(), self.flow.board.next());
            self.flow.rtt.sample(rtt_us, una, next);
        }
        if let Some(rtt_us) = latest_us {
            self.control.on_rtt(&mut self.flow, rtt_us);
        }
    }

    /// Sets the timer after an acknowledgment: for a tail loss probe where one may help.
    pub(super) fn schedule(&mut self, advances: bool) {
        if !self.schedule_probe(advances) {
            self.flow.rearm();
        }
    }
}

#[cfg(test)]
mod tests {
    use corridor_base::Time;

    use crate::tcp::linux::{Congestion, LinuxSender, LinuxSenderConfig};
    use crate::tcp::segment::{SACK_RANGES_MAX, SackRange, Segment};

    /// An acknowledgment of all before `next`, with a window that ends at `window_end`.
    fn ack(next: u64, window_end: u64) -> Segment {
        Segment::Ack {
            next,
            echo: Time::ZERO,
            echo_retransmission: false,
            sack: [SackRange::default(); SACK_RANGES_MAX],
            congestion_echo: false,
            window_end: Some(window_end),
        }
    }

    #[test]
    fn an_acknowledgement_that_was_overtaken_opens_no_window() {
        let mut sender = LinuxSender::new(LinuxSenderConfig::new(Congestion::Cubic)).unwrap();
        sender.offer(1_000);
        let mut at = Time::from_millis(1);
        let mut send = |sender: &mut LinuxSender, segment: Option<Segment>| {
            at += core::time::Duration::from_millis(1);
            segment.iter().for_each(|segment| sender.handle_segment(at, segment));
            core::iter::from_fn(|| sender.poll_transmit(at)).count()
        };
        assert_eq!(send(&mut sender, None), 10);
        assert_eq!(send(&mut sender, Some(ack(4, 12))), 2);
        // A stale acknowledgment, from when the window was longer.
        assert_eq!(send(&mut sender, Some(ack(2, 40))), 0);
        assert_eq!(send(&mut sender, Some(ack(4, 13))), 1);
    }
}
