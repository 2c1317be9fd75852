//! Loss estimation: which share of a neighbour's frames is lost, from gaps in its counters.
//!
//! On a radio, a neighbour's frames to other stations are heard too, and count. Where a switch
//! withholds them, they leave gaps that are not losses. These are told apart by the neighbour's
//! reports of how many frames were for this station.

/// Memory of the estimate in frames; its standard error at a loss ratio of 10 % is then about 1 %.
const MEMORY_FRAMES: f64 = 1024.0;
/// Frames per batch of counts; a full batch is folded into the estimate.
const BATCH_FRAMES: u32 = 32;
/// Most frames that one batch may count for.
const BATCH_FRAMES_MAX: f64 = 128.0;
/// After this many frames to others in a row, none of them heard, they count as withheld. Where
/// nine of ten frames are lost, this happens by chance once in 800,000 frames; and even then the
/// frames for this station still measure the losses.
const APART_FRAMES: u32 = 128;
/// A link is initially assumed lossless, with the weight of this many frames.
const PRIOR_FRAMES: f64 = 8.0;

/// Erasure ratio of the link from one sender, for one session's counters.
#[derive(Clone, Debug)]
pub(crate) struct LossEstimator {
    highest: Option<u32>,
    batch_expected: u32,
    batch_received: u32,
    expected: f64,
    received: f64,
    /// Frames heard.
    heard: u32,
    told: Option<Told>,
    /// Frames to others, as reported, and missing frames of any kind, since one to others was last
    /// heard.
    others: u32,
    lacking: u32,
    /// A frame to others was heard since the last report.
    overheard: bool,
    /// Frames to others are not heard here.
    apart: bool,
}

/// A neighbour's report: of the frames before this one, how many were for this station.
#[derive(Clone, Copy, Debug)]
struct Told {
    counter: u32,
    frames: u32,
    /// How many were heard before.
    heard: u32,
}

impl LossEstimator {
    pub(crate) fn new() -> Self {
        LossEstimator {
            highest: None,
            batch_expected: 0,
            batch_received: 0,
            expected: PRIOR_FRAMES,
            received: PRIOR_FRAMES,
            heard: 0,
            told: None,
            others: 0,
            lacking: 0,
            overheard: false,
            apart: false,
        }
    }

    /// The sender restarts its counters; the estimate stays.
    pub(crate) fn restart_counting(&mut self) {
        self.highest = None;
        self.told = None;
    }

    /// Records a frame heard for the first time. A late frame counts as received in the batch in
    /// which it comes, so that reordering cancels out.
    #[cfg(test)]
    fn note(&mut self, counter: u32) {
        self.note_behind(counter, 0);
    }

    /// Records a frame just before which `probes` frames were sent that do not count if lost: path
    /// MTU probes, which may have been too long (RFC 8899, Section 3, item 7).
    pub(crate) fn note_behind(&mut self, counter: u32, probes: u8) {
        self.heard = self.heard.wrapping_add(1);
        match self.highest {
            None => {
                self.highest = Some(counter);
                return;
            }
            Some(highest) if counter > highest => {
                let missing = counter - highest - 1;
                let counted = missing - missing.min(u32::from(probes));
                self.lacking = self.lacking.saturating_add(counted);
                self.highest = Some(counter);
                if !self.apart {
                    self.batch_expected = self.batch_expected.saturating_add(counted + 1);
                }
            }
            Some(_) => {}
        }
        if !self.apart {
            self.count(0, 1);
        }
    }

    fn count(&mut self, expected: u32, received: u32) {
        self.batch_expected = self.batch_expected.saturating_add(expected);
        self.batch_received += received;
        if self.batch_expected >= BATCH_FRAMES {
            self.fold();
        }
    }

    // ---- frames to others ---------------------------------------------------------------------

    /// A frame for another station was heard.
    pub(crate) fn note_overheard(&mut self) {
        (self.overheard, self.lacking) = (true, 0);
        if self.apart {
            self.apart = false;
            (self.batch_expected, self.batch_received) = (0, 0);
        }
    }

    /// Whether frames to others are heard here, as far as known: losing so many in a row by chance
    /// is improbable.
    pub(crate) fn overhears(&self) -> bool {
        self.lacking < APART_FRAMES
    }

    /// The neighbour reports, in the frame with this counter, which was just heard, how many frames
    /// before it were for this station. Reports that were overtaken are ignored.
    pub(crate) fn note_told(&mut self, counter: u32, frames: u32) {
        let told = Told { counter, frames, heard: self.heard.wrapping_sub(1) };
        let Some(before) = self.told.filter(|before| before.counter < counter) else {
            self.told = self.told.or(Some(told));
            return;
        };
        self.told = Some(told);
        let (all, ours) = (counter - before.counter, frames.wrapping_sub(before.frames));
        let Some(others) = all.checked_sub(ours) else { return };
        let overheard = core::mem::take(&mut self.overheard);
        self.others = if overheard { 0 } else { self.others.saturating_add(others) };
        if !self.apart && self.others >= APART_FRAMES {
            self.apart = true;
            // What others received has counted as lost so far.
            (self.expected, self.received) = (PRIOR_FRAMES, PRIOR_FRAMES);
            (self.batch_expected, self.batch_received) = (0, 0);
        }
        if self.apart {
            self.count(ours, told.heard.wrapping_sub(before.heard).min(ours));
        }
    }

    fn fold(&mut self) {
        // A long gap is an outage, not as many losses: it weighs no more than a batch may.
        let expected = f64::from(self.batch_expected).min(BATCH_FRAMES_MAX);
        let received = f64::from(self.batch_received) * expected / f64::from(self.batch_expected);
        let keep = 1.0 - expected / MEMORY_FRAMES;
        self.expected = self.expected * keep + expected;
        self.received = self.received * keep + received;
        (self.batch_expected, self.batch_received) = (0, 0);
    }

    /// Newest counter heard.
    pub(crate) fn highest(&self) -> Option<u32> {
        self.highest
    }

    /// The erasure ratio, 0 to 1. Includes the current batch, which at the beginning is all there
    /// is.
    pub(crate) fn ratio(&self) -> f64 {
        let expected = f64::from(self.batch_expected).min(BATCH_FRAMES_MAX);
        let received = f64::from(self.batch_received).min(expected);
        (1.0 - (self.received + received) / (self.expected + expected)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::StreamKey;
    use corridor_base::rand::Rng;

    #[test]
    fn estimates_settle_at_the_true_ratio() {
        let mut stream = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "link" }.stream();
        for percent in [0, 5, 10, 30, 50, 90] {
            let mut estimator = LossEstimator::new();
            for counter in 0..20_000 {
                if stream.next_u32() % 100 >= percent {
                    estimator.note(counter);
                }
            }
            let error = estimator.ratio() - f64::from(percent) / 100.0;
            assert!(error.abs() < 0.04, "{percent} %: off by {error}");
        }
    }

    #[test]
    fn reordering_is_not_loss() {
        let mut estimator = LossEstimator::new();
        for pair in 0..2_000u32 {
            estimator.note(2 * pair + 1);
            estimator.note(2 * pair);
        }
        assert!(estimator.ratio() < 0.01, "{}", estimator.ratio());
    }

    #[test]
    fn an_outage_is_forgotten_soon() {
        let mut estimator = LossEstimator::new();
        (0..2_000).for_each(|counter| estimator.note(counter));
        (12_000..12_500).for_each(|counter| estimator.note(counter));
        assert!(estimator.ratio() < 0.1, "{}", estimator.ratio());
    }

    #[test]
    fn probes_that_were_too_long_are_no_losses() {
        let mut estimator = LossEstimator::new();
        for counter in (0..4_000).step_by(4) {
            estimator.note_behind(counter + 3, 3);
        }
        assert!(estimator.ratio() < 0.01, "{}", estimator.ratio());
        // Losses on top still count.
        for counter in (4_000..8_000).step_by(4) {
            estimator.note_behind(counter + 3, 2);
        }
        assert!((0.4..0.6).contains(&estimator.ratio()), "{}", estimator.ratio());
    }

    /// Hears frames in turn for this station and for two others, with a report now and then.
    fn hear_in_turn(
        estimator: &mut LossEstimator,
        counters: core::ops::Range<u32>,
        mut came: impl FnMut(u32, bool) -> bool,
    ) {
        for counter in counters {
            let is_ours = counter % 3 == 0;
            if !came(counter, is_ours) {
                continue;
            }
            estimator.note(counter);
            if !is_ours {
                estimator.note_overheard();
            } else if counter % 60 == 0 {
                estimator.note_told(counter, counter / 3);
            }
        }
    }

    #[test]
    fn what_others_get_is_no_loss_where_it_is_not_heard_and_counts_where_it_is() {
        let mut stream = StreamKey { seed: 2, replication: 0, entity: 0, purpose: "link" }.stream();
        for percent in [0, 10, 50] {
            let mut passes = || stream.next_u32() % 100 >= percent;
            let mut estimator = LossEstimator::new();
            hear_in_turn(&mut estimator, 0..30_000, |_, is_ours| is_ours && passes());
            let error = estimator.ratio() - f64::from(percent) / 100.0;
            assert!(error.abs() < 0.05, "kept away, {percent} %: off by {error}");
            assert!(!estimator.overhears());
            // The switch begins to flood all frames.
            hear_in_turn(&mut estimator, 30_000..60_000, |_, _| passes());
            let error = estimator.ratio() - f64::from(percent) / 100.0;
            assert!(error.abs() < 0.05, "overheard, {percent} %: off by {error}");
            assert!(estimator.overhears());
            let mut others = LossEstimator::new();
            (0..1_000).for_each(|counter| others.note(counter));
            assert!(others.overhears(), "nothing is lacking");
        }
    }

    #[test]
    fn words_that_contradict_counters_change_nothing() {
        let mut estimator = LossEstimator::new();
        for counter in 0..2_000 {
            estimator.note(counter);
            let lie = [0, u32::MAX, counter.wrapping_mul(77), counter][counter as usize % 4];
            estimator.note_told(counter, lie);
            estimator.note_told(counter / 2, lie);
        }
        assert!(estimator.ratio() < 0.01, "{}", estimator.ratio());
    }

    #[test]
    fn a_new_session_is_not_a_gap() {
        let mut estimator = LossEstimator::new();
        (0..100).for_each(|counter| estimator.note(counter));
        estimator.restart_counting();
        (5_000..5_100).for_each(|counter| estimator.note(counter));
        assert!(estimator.ratio() < 0.01);
    }
}
