//! How many combinations are sent: a fixed factor, or as many as are missing.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use super::IN_FLIGHT_MAX;
use super::wire::Feedback;
use crate::config::Redundancy;

/// Unit of credit: a millionth of a packet, so that the carried fraction is exact.
const PACKET: u64 = 1_000_000;
/// Most credit that can be saved, in packets; bounds the burst beyond what is earned.
const SAVED_PACKETS_MAX: u64 = 64;
/// Weight of one packet in the loss estimate.
const LOSS_GAIN: f64 = 1.0 / 128.0;
/// Upper bound of the loss estimate: a burst must not cause a flood.
const LOSS_RATIO_MAX: f64 = 0.9;
/// How long a packet counts as in flight before the first round-trip time is known.
const LOST_AFTER_INITIAL: Duration = Duration::from_secs(1);
/// How long at least, beyond the smoothed round-trip time, a packet counts as in flight.
const LOST_AFTER_MARGIN_MIN: Duration = Duration::from_millis(20);

/// State of a [`Redundancy`].
#[derive(Clone, Debug)]
pub(super) enum Budget {
    Fixed { factor: u64, credit: u64 },
    Adaptive(Box<Adaptive>),
}

impl Budget {
    pub(super) fn new(redundancy: Redundancy, serial: u32) -> Self {
        match redundancy {
            Redundancy::Fixed { factor } => Budget::Fixed { factor: millionths(factor), credit: 0 },
            Redundancy::Adaptive { loss_ratio, factor_max } => {
                Budget::Adaptive(Box::new(Adaptive::new(loss_ratio, factor_max, serial)))
            }
        }
    }

    /// A TCP segment is in the coding window: for the first time, or `again`.
    pub(super) fn earn(&mut self, again: bool) {
        match self {
            Budget::Fixed { factor, credit } => *credit += *factor,
            Budget::Adaptive(adaptive) => {
                adaptive.credit += adaptive.factor_max;
                // TCP's retransmission timer or duplicate acknowledgments call for it: send one in
                // any case.
                adaptive.urgent |= again;
            }
        }
    }

    /// Whether a combination may be sent now, with `missing` degrees of freedom missing.
    pub(super) fn allows(&self, missing: u64) -> bool {
        match self {
            Budget::Fixed { credit, .. } => *credit >= PACKET,
            Budget::Adaptive(adaptive) => {
                adaptive.credit >= PACKET
                    && missing > 0
                    && (adaptive.urgent || adaptive.assured() < missing as f64)
            }
        }
    }

    /// A combination is sent.
    pub(super) fn spend(&mut self, now: Time) {
        match self {
            Budget::Fixed { credit, .. } => *credit -= PACKET,
            Budget::Adaptive(adaptive) => adaptive.note_sent(now),
        }
    }

    /// Nothing is left to send: drops the credit earned for it, except for the carried fraction.
    pub(super) fn settle(&mut self) {
        match self {
            Budget::Fixed { credit, .. } => *credit %= PACKET,
            Budget::Adaptive(adaptive) => {
                adaptive.credit = adaptive.credit.min(SAVED_PACKETS_MAX * PACKET);
                adaptive.urgent = false;
            }
        }
    }

    pub(super) fn handle_feedback(&mut self, now: Time, feedback: &Feedback) {
        if let Budget::Adaptive(adaptive) = self {
            adaptive.handle_feedback(now, feedback);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        if let Budget::Adaptive(adaptive) = self {
            adaptive.expire(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self {
            Budget::Fixed { .. } => None,
            Budget::Adaptive(adaptive) => adaptive.poll_timeout(),
        }
    }

    /// The estimated loss ratio, if there is one.
    pub(super) fn loss_ratio(&self) -> Option<f64> {
        match self {
            Budget::Fixed { .. } => None,
            Budget::Adaptive(adaptive) => Some(adaptive.loss_ratio),
        }
    }
}

fn millionths(factor: f64) -> u64 {
    (factor * PACKET as f64).round() as u64
}

/// Sends as long as the packets in flight will supply fewer degrees of freedom than are missing. In
/// flight are the n packets sent after the last one known to have arrived. This is coded TCP's
/// rule, n(1-p) < missing, with a margin.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    factor_max: u64,
    credit: u64,
    urgent: bool,
    loss_ratio: f64,
    /// Send times of packets not yet reported, oldest first; the last has serial number `serial -
    /// 1`.
    sent: VecDeque<Time>,
    /// How many of the first of these are taken for lost because they are too old. Their times are
    /// kept: if they do arrive, the path is slower than assumed.
    expired: usize,
    /// Serial number of the next packet.
    serial: u32,
    /// From the latest feedback: highest serial number received, and number of packets received.
    heard: (u32, u32),
    /// When that feedback came.
    heard_at: Time,
    /// Smoothed round-trip time and its variation.
    rtt: Option<(Duration, Duration)>,
}

impl Adaptive {
    fn new(loss_ratio: f64, factor_max: f64, serial: u32) -> Self {
        Adaptive {
            factor_max: millionths(factor_max),
            credit: 0,
            urgent: false,
            loss_ratio,
            sent: VecDeque::new(),
            expired: 0,
            serial,
            heard: (serial.wrapping_sub(1), 0),
            heard_at: Time::ZERO,
            rtt: None,
        }
    }

    /// How many of the packets in flight will arrive with five chances in six: their mean less one
    /// standard deviation. So the losses of a round trip are masked five times out of six;
    /// network-coded-tcp-2012, Section VI-B, asks for a factor that masks them four times out of
    /// five.
    fn assured(&self) -> f64 {
        let in_flight = (self.sent.len() - self.expired) as f64;
        let mean = in_flight * (1.0 - self.loss_ratio);
        mean - (mean * self.loss_ratio).sqrt()
    }

    fn note_sent(&mut self, now: Time) {
        if self.sent.len() == IN_FLIGHT_MAX {
            self.take_oldest();
        }
        self.sent.push_back(now);
        self.serial = self.serial.wrapping_add(1);
        self.credit -= PACKET;
        self.urgent = false;
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback) {
        let sent = feedback.serial.wrapping_sub(self.heard.0);
        let never_sent = self.serial.wrapping_sub(1).wrapping_sub(feedback.serial) as i32;
        if sent as i32 <= 0 || never_sent < 0 {
            return;
        }
        let received = feedback.received.wrapping_sub(self.heard.1).min(sent);
        self.heard = (feedback.serial, feedback.received);
        self.heard_at = now;
        let gain = (f64::from(sent) * LOSS_GAIN).min(0.5);
        let lost = 1.0 - f64::from(received) / f64::from(sent);
        self.loss_ratio += gain * (lost - self.loss_ratio);
        self.loss_ratio = self.loss_ratio.clamp(0.0, LOSS_RATIO_MAX);
        // Whatever was sent before the packet that arrived has arrived too, or is lost.
        let remaining = never_sent as usize;
        while self.sent.len() > remaining {
            let sent_at = self.take_oldest();
            if self.sent.len() == remaining {
                self.sample(sent_at.map_or(Duration::ZERO, |sent_at| now.since(sent_at)));
            }
        }
    }

    fn take_oldest(&mut self) -> Option<Time> {
        self.expired = self.expired.saturating_sub(1);
        self.sent.pop_front()
    }

    /// RFC 6298, rules 2.2 and 2.3.
    fn sample(&mut self, rtt: Duration) {
        self.rtt = Some(match self.rtt {
            None => (rtt, rtt / 2),
            Some((smoothed, variation)) => {
                ((smoothed * 7 + rtt) / 8, (variation * 3 + smoothed.abs_diff(rtt)) / 4)
            }
        });
    }

    /// How long a packet counts as in flight.
    fn lost_after(&self) -> Duration {
        self.rtt.map_or(LOST_AFTER_INITIAL, |(smoothed, variation)| {
            smoothed + (variation * 4).max(LOST_AFTER_MARGIN_MIN)
        })
    }

    fn poll_timeout(&self) -> Option<Time> {
        let sent_at = *self.sent.get(self.expired)?;
        Some(sent_at.max(self.heard_at) + self.lost_after())
    }

    /// Takes packets for lost that have been unconfirmed for too long, although nothing later has
    /// arrived. As long as anything arrives, the path has only become slower: a queue builds up,
    /// and needless packets would lengthen it.
    fn expire(&mut self, now: Time) {
        while self.poll_timeout().is_some_and(|at| at <= now) {
            self.expired += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Combinations sent for each of `segments` segments.
    fn fixed(factor: f64, segments: usize) -> Vec<u32> {
        let mut budget = Budget::new(Redundancy::Fixed { factor }, 0);
        let sent = (0..segments).map(|_| {
            budget.earn(false);
            let mut sent = 0;
            while budget.allows(1) {
                budget.spend(Time::ZERO);
                sent += 1;
            }
            budget.settle();
            sent
        });
        sent.collect()
    }

    #[test]
    fn the_fraction_is_carried() {
        assert_eq!(fixed(1.25, 8), [1, 1, 1, 2, 1, 1, 1, 2]);
        assert_eq!(fixed(1.13, 100).iter().sum::<u32>(), 113);
        assert_eq!(fixed(1.0, 3), [1, 1, 1]);
        assert_eq!(fixed(2.5, 2), [2, 3]);
    }

    fn adaptive(loss_ratio: f64) -> Budget {
        Budget::new(Redundancy::Adaptive { loss_ratio, factor_max: 4.0 }, 10)
    }

    fn drain(budget: &mut Budget, now: Time, missing: u64) -> u32 {
        let mut sent = 0;
        while budget.allows(missing) {
            budget.spend(now);
            sent += 1;
        }
        budget.settle();
        sent
    }

    #[test]
    fn adaptive_sends_until_enough_is_likely_to_arrive() {
        let mut budget = adaptive(0.5);
        (0..5).for_each(|_| budget.earn(false));
        assert_eq!(drain(&mut budget, Time::ZERO, 5), 14, "7 of them, but for 1.9");
        // Of the 14, the eighth arrived, as the fourth to do so: six are in flight, four of the
        // five were seen, and the fifth will be.
        let feedback = Feedback { serial: 17, received: 4, ..Feedback::default() };
        let now = Time::from_millis(100);
        budget.handle_feedback(now, &feedback);
        assert_eq!(drain(&mut budget, now, 1), 0);
        // The last arrived but was not innovative: none is in flight, one is missing.
        let feedback = Feedback { serial: 23, received: 7, ..Feedback::default() };
        budget.handle_feedback(now, &feedback);
        assert_eq!(drain(&mut budget, now, 1), 4, "2 of them, but for 1");
        assert_eq!(drain(&mut budget, now, 0), 0);
    }

    #[test]
    fn the_last_packet_lost_is_noticed_by_its_age() {
        let mut budget = adaptive(0.0);
        budget.earn(false);
        assert_eq!(drain(&mut budget, Time::ZERO, 1), 1);
        assert_eq!(budget.poll_timeout(), Some(Time::ZERO + LOST_AFTER_INITIAL));
        assert_eq!(drain(&mut budget, Time::from_millis(999), 1), 0);
        budget.handle_timeout(Time::from_millis(1000));
        assert_eq!(drain(&mut budget, Time::from_millis(1000), 1), 1);
    }

    #[test]
    fn a_queue_that_builds_up_is_no_loss() {
        let mut budget = adaptive(0.0);
        (0..3).for_each(|_| budget.earn(false));
        assert_eq!(drain(&mut budget, Time::ZERO, 3), 3);
        for (serial, ms) in [(10, 100), (11, 390)] {
            let feedback = Feedback { serial, received: serial - 9, ..Feedback::default() };
            budget.handle_feedback(Time::from_millis(ms), &feedback);
            // After this time the next one would count as lost; but the path still delivers.
            budget.handle_timeout(Time::from_millis(ms + 250));
            assert_eq!(drain(&mut budget, Time::from_millis(ms + 250), 1), 0);
        }
        let at = budget.poll_timeout().unwrap();
        budget.earn(false);
        budget.handle_timeout(at);
        assert_eq!(drain(&mut budget, at, 1), 1, "silence is");
    }

    #[test]
    fn a_path_slower_than_was_thought_is_learnt() {
        let mut budget = adaptive(0.0);
        budget.earn(false);
        drain(&mut budget, Time::ZERO, 1);
        budget.handle_timeout(Time::ZERO + LOST_AFTER_INITIAL);
        let now = Time::from_millis(3000);
        let feedback = Feedback { serial: 10, received: 1, ..Feedback::default() };
        budget.handle_feedback(now, &feedback);
        budget.earn(false);
        drain(&mut budget, now, 1);
        assert_eq!(budget.poll_timeout(), Some(now + Duration::from_millis(3000 + 4 * 1500)));
    }

    #[test]
    fn losses_beyond_the_factor_are_left_to_tcp() {
        let mut budget = adaptive(0.9);
        budget.earn(false);
        assert_eq!(drain(&mut budget, Time::ZERO, 1), 4, "ten would be needed");
    }

    #[test]
    fn the_estimate_follows_what_is_heard_and_not_what_was_never_sent() {
        let mut budget = adaptive(0.0);
        let (mut serial, mut received) = (9_u32, 0);
        for round in 0..200 {
            (0..5).for_each(|_| budget.earn(true));
            for _ in 0..5 {
                budget.spend(Time::from_millis(round));
            }
            (serial, received) = (serial + 5, received + 4);
            let feedback = Feedback { serial, received, ..Feedback::default() };
            budget.handle_feedback(Time::from_millis(round), &feedback);
            let forged = Feedback { serial: serial + 1, received: 0, ..Feedback::default() };
            budget.handle_feedback(Time::from_millis(round), &forged);
        }
        let estimate = budget.loss_ratio().unwrap();
        assert!((estimate - 0.2).abs() < 0.01, "{estimate}");
    }
}
