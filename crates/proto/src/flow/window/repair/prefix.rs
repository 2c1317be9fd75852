//! The probability that what the receiver was known to need has been decoded since.
//!
//! When feedback was sent, the receiver needed some symbols. Each copy of one of these that arrives
//! leaves one less to come until everything up to there is decoded, whatever was lost since. So
//! does a coded symbol, unless it is used up by later losses, those *beyond* the symbols reported
//! on.

use super::truncated::{trim_begin, trim_end};

/// The distribution of how many of the needed symbols have been made up for.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    /// Number of needed symbols.
    needed: usize,
    /// Probabilities of having made up for `first` of them, for one more, and so on up to all.
    made_up: Vec<f64>,
    first: usize,
    /// Probabilities of lacking none, one and more symbols beyond.
    beyond: Vec<f64>,
}

impl Prefix {
    /// `needed` symbols are needed.
    pub(crate) fn new(needed: usize) -> Self {
        Prefix { needed, made_up: vec![1.0], first: 0, beyond: vec![1.0] }
    }

    pub(crate) fn restart(&mut self, needed: usize) {
        self.needed = needed;
        self.first = 0;
        self.made_up.clear();
        self.made_up.push(1.0);
        self.beyond.clear();
        self.beyond.push(1.0);
    }

    /// Probability that all needed symbols are decoded.
    pub(crate) fn decoded(&self) -> f64 {
        let last = self.first + self.made_up.len() - 1;
        if last == self.needed { self.made_up[self.made_up.len() - 1] } else { 0.0 }
    }

    /// All are decoded: nothing can change any more.
    fn is_over(&self) -> bool {
        self.first == self.needed
    }

    /// A source symbol is sent, and lost with this probability.
    pub(crate) fn add_source(&mut self, loss_ratio: f64) {
        if self.is_over() {
            return;
        }
        self.beyond.push(0.0);
        for at in (1..self.beyond.len()).rev() {
            self.beyond[at] += loss_ratio * (self.beyond[at - 1] - self.beyond[at]);
        }
        self.beyond[0] *= 1.0 - loss_ratio;
        trim_end(&mut self.beyond, |&case| case);
    }

    /// A copy of the first needed symbol that is not in flight again is sent.
    pub(crate) fn add_copy(&mut self, loss_ratio: f64) {
        if !self.is_over() {
            self.make_up(1.0 - loss_ratio);
        }
    }

    /// A coded symbol over everything is sent. What is lacking beyond is taken to be independent of
    /// what has been made up for.
    pub(crate) fn add_coded(&mut self, loss_ratio: f64) {
        if self.is_over() {
            return;
        }
        self.make_up((1.0 - loss_ratio) * self.beyond[0]);
        for at in 0..self.beyond.len() {
            let more = self.beyond.get(at + 1).copied().unwrap_or_default();
            let kept = if at == 0 { self.beyond[0] } else { loss_ratio * self.beyond[at] };
            self.beyond[at] = kept + (1.0 - loss_ratio) * more;
        }
    }

    /// One more is made up for, with this probability.
    fn make_up(&mut self, probability: f64) {
        if self.first + self.made_up.len() <= self.needed {
            self.made_up.push(0.0);
        }
        for at in (1..self.made_up.len()).rev() {
            let all = self.first + at == self.needed;
            let kept = if all { 1.0 } else { 1.0 - probability };
            self.made_up[at] = kept * self.made_up[at] + probability * self.made_up[at - 1];
        }
        self.made_up[0] *= 1.0 - probability;
        self.first += trim_begin(&mut self.made_up, |&case| case);
    }

    /// Computing steps that a frame takes.
    pub(crate) fn len(&self) -> usize {
        if self.is_over() { 0 } else { self.made_up.len() + self.beyond.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::sent::What;
    use corridor_base::Stream;
    use corridor_base::rand::{Rng, SeedableRng};
    use corridor_codec::{Coefficients, Field, WindowDecoder, WindowEncoder};

    const LOST: [u64; 4] = [0, 2, 3, 6];
    const LOSS_RATIO: f64 = 0.3;

    fn believed(frames: &[What]) -> f64 {
        let mut prefix = Prefix::new(9);
        prefix.restart(LOST.len());
        for what in frames {
            match what {
                What::Source(_) => prefix.add_source(LOSS_RATIO),
                What::Coded => prefix.add_coded(LOSS_RATIO),
                What::Copy(_) => prefix.add_copy(LOSS_RATIO),
                What::Ahead | What::Part => {}
            }
        }
        prefix.decoded()
    }

    /// Whether a decoder that lacked four of eight symbols has the last of them after these frames.
    fn is_decoded(frames: &[What], draws: &mut Stream) -> bool {
        let mut encoder = WindowEncoder::new(Field::Gf256, 64, 1).unwrap();
        let mut decoder = WindowDecoder::new(Field::Gf256, 64, 1).unwrap();
        for id in 0..8 {
            encoder.push(&[7]).unwrap();
            if !LOST.contains(&id) {
                decoder.add_source(id, &[7]).unwrap();
            }
        }
        let mut copies = LOST.into_iter();
        for what in frames {
            let id = match what {
                What::Source(_) => Some(encoder.push(&[7]).unwrap()),
                What::Copy(_) => Some(copies.next().expect("no more copies than are needed")),
                What::Coded => None,
                What::Ahead | What::Part => continue,
            };
            if f64::from(draws.next_u32()) / 2f64.powi(32) < LOSS_RATIO {
                continue;
            }
            let (count, coefficients) = (encoder.count(), Coefficients::Seed(draws.next_u32()));
            let mut symbol = [0];
            encoder.encode(0, count, coefficients, &mut symbol).unwrap();
            match id {
                Some(id) => decoder.add_source(id, &[7]).unwrap(),
                None => decoder.add_coded(0, count, coefficients, &symbol).unwrap(),
            };
        }
        decoder.is_decoded(LOST[3])
    }

    fn frames(pattern: &str) -> Vec<What> {
        let what = |letter| match letter {
            's' => What::Source(0),
            'c' => What::Coded,
            _ => What::Copy(0),
        };
        pattern.chars().map(what).collect()
    }

    #[test]
    fn what_was_needed_is_decoded_as_often_as_believed() {
        let mut draws = Stream::from_seed([3; 32]);
        for pattern in [
            "",
            "ccc",
            "cccc",
            "cccccc",
            "ssssss",
            "ssssssssscccccc",
            "sscsscsscsscsscsscssc",
            "pppsss",
            "cppsscp",
            "ccccppp",
            "sssssssssscppcscc",
            "ccsspsspsspccsscc",
            "sscpssscpssscpssscc",
        ] {
            let frames = frames(pattern);
            let trials = 3_000;
            let decoded = (0..trials).filter(|_| is_decoded(&frames, &mut draws)).count();
            let (share, believed) = (decoded as f64 / f64::from(trials), believed(&frames));
            // In fact what is lacking beyond and what has been made up for are not independent.
            assert!((share - believed).abs() < 0.1, "{pattern}: {share}, {believed}");
        }
    }

    #[test]
    fn what_is_over_stays_so() {
        let mut prefix = Prefix::new(0);
        assert_eq!(prefix.decoded(), 1.0);
        prefix.add_source(0.5);
        prefix.add_copy(0.5);
        prefix.add_coded(0.5);
        assert_eq!((prefix.decoded(), prefix.len()), (1.0, 0));
        prefix.restart(2);
        assert_eq!(prefix.decoded(), 0.0);
        (0..100).for_each(|_| prefix.add_coded(0.1));
        assert!(prefix.decoded() > 0.999_999 && prefix.len() == 0);
    }
}
