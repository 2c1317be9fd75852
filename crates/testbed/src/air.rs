//! A world that suffices for most tests: all stations hear all others, except for lost frames.

use core::time::Duration;

use corridor_base::rand::{RngExt, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::Destination;

use crate::bed::{Sent, Ways, World};

/// A frame on its way to one receiver.
pub struct Passage<'a> {
    /// When it was sent.
    pub at: Time,
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// Whether it is addressed to that station.
    pub is_for: bool,
    /// Its bytes.
    pub frame: &'a [u8],
}

/// A sent frame.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The sender.
    pub from: usize,
    /// The destination.
    pub to: Destination,
    /// Its bytes.
    pub frame: Vec<u8>,
}

/// A medium with a constant delay, where all stations hear all others. Without losses by default.
pub struct Air {
    /// Delay of every frame.
    pub delay: Duration,
    /// Longest additional random delay, through which later frames may overtake.
    pub jitter: Duration,
    /// Least time between two frames of a station.
    pub gap: Duration,
    /// Share of the frames lost on the way to each receiver.
    pub loss_ratio: f64,
    /// The random stream.
    pub dice: Stream,
    /// Which frames pass to whom, among those not lost at random.
    pub passes: Box<dyn FnMut(&Passage<'_>) -> bool>,
    /// All frames sent, if they are logged.
    pub log: Option<Vec<Logged>>,
    free_at: Vec<Time>,
}

impl Air {
    /// A medium where all stations hear all others after this delay.
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

    /// Uses another random stream.
    pub fn drawn_from(self, seed: u8) -> Self {
        Air { dice: Stream::from_seed([seed; 32]), ..self }
    }

    /// All frames logged.
    pub fn logged(&self) -> &[Logged] {
        self.log.as_deref().unwrap_or_default()
    }

    /// As [`new`](Self::new), with a filter for frames.
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
