//! A world that does for most tests: all hear all, but for what is lost.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::Destination;

use crate::bed::{Sent, Ways, World};

/// A frame on its way to one hearer.
pub struct Passage<'a> {
    /// When it was sent.
    pub at: Time,
    /// By whom.
    pub from: usize,
    /// Who would hear it.
    pub to: usize,
    /// Whether it is addressed to that station.
    pub is_for: bool,
    /// Its bytes.
    pub frame: &'a [u8],
}

/// A frame as it was sent.
#[derive(Clone, Debug)]
pub struct Logged {
    /// By whom.
    pub from: usize,
    /// To whom.
    pub to: Destination,
    /// Its bytes.
    pub frame: Vec<u8>,
}

/// A medium of one delay, where all hear all. At first nothing gets lost.
pub struct Air {
    /// How long each frame takes.
    pub delay: Duration,
    /// Longest time that it takes beyond that: later ones may overtake it.
    pub jitter: Duration,
    /// Between two frames of a station's.
    pub gap: Duration,
    /// Share of the frames that is lost on the way to each hearer.
    pub loss_ratio: f64,
    /// What chance draws from.
    pub dice: Stream,
    /// Which frames pass to whom, of those that are not lost by chance.
    pub passes: Box<dyn FnMut(&Passage<'_>) -> bool>,
    /// All that was sent, if anybody wants to know.
    pub log: Option<Vec<Logged>>,
    free_at: Vec<Time>,
}

impl Air {
    /// All hear all after that time.
    pub fn new(delay: Duration) -> Self {
        Air {
            delay,
            jitter: Duration::ZERO,
            gap: Duration::ZERO,
            loss_ratio: 0.0,
            dice: Stream::from_seed([9; 32]),
            passes: Box::new(|_| true),
            log: None,
            free_at: Vec::new(),
        }
    }

    /// The same, with other dice.
    pub fn drawn_from(self, seed: u8) -> Self {
        Air { dice: Stream::from_seed([seed; 32]), ..self }
    }

    /// What was taken down of all that was sent.
    pub fn logged(&self) -> &[Logged] {
        self.log.as_deref().unwrap_or_default()
    }

    /// The same, but for what does not pass.
    pub fn with(delay: Duration, passes: impl FnMut(&Passage<'_>) -> bool + 'static) -> Self {
        Air { passes: Box::new(passes), ..Air::new(delay) }
    }
}

impl World for Air {
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways) {
        let &Sent { at, from, to, frame, .. } = sent;
        for hearer in sent.others() {
            let is_lost = self.dice.random::<f64>() < self.loss_ratio;
            let passage = Passage { at, from, to: hearer, is_for: sent.is_for(hearer), frame };
            if !is_lost && (self.passes)(&passage) {
                let late = self.jitter.mul_f64(self.dice.random());
                ways.put(at + self.delay + late, from, hearer, frame.to_vec());
            }
        }
        self.free_at.resize(sent.ids.len(), Time::ZERO);
        self.free_at[from] = at + self.gap;
        if let Some(log) = &mut self.log {
            log.push(Logged { from, to, frame: frame.to_vec() });
        }
    }

    fn free_at(&self, at: usize) -> Time {
        self.free_at.get(at).copied().unwrap_or(Time::ZERO)
    }
}
