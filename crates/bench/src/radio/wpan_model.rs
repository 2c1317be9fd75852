//! A model of saturated 802.15.4 senders. docs/radio.md has the equations.

use corridor_air::radio::{Preamble, Rate};
use corridor_air::wpan::{ACK_BYTES, Backoff, WpanConfig};

/// The model's results for a saturated cell.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Acknowledged payload, bit/s.
    pub goodput_bps: f64,
    /// Fraction of frames acknowledged.
    pub success_ratio: f64,
}

/// Durations in seconds, and backoff parameters.
struct Terms {
    senders: f64,
    look: f64,
    turnaround: f64,
    data: f64,
    ack: f64,
    space: f64,
    ack_wait: f64,
    /// Mean of each backoff, including its CCA.
    backoffs: Vec<f64>,
}

/// Consequences of a given probability of a busy channel.
struct Point {
    /// The resulting probability of a busy channel.
    busy: f64,
    /// Probability that a transmission is not acknowledged.
    failed: f64,
    /// Successes per second.
    successes: f64,
}

/// Saturated senders that all hear each other; overlapping frames are lost. After R. Srivastava et
/// al., arXiv:1408.1225: the CCAs of a sender in backoff are a Poisson process, the events on the
/// channel a renewal process.
///
/// # Panics
/// If the backoff is not exponential: the model covers no other.
pub fn saturated(config: &WpanConfig, senders: u32, payload_bytes: u32) -> Model {
    let terms = Terms::new(config, senders, payload_bytes);
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if terms.at(middle).busy > middle { low = middle } else { high = middle }
    }
    let Point { failed, successes, .. } = terms.at(low);
    let reached = 1.0 - low.powi(terms.backoffs.len() as i32);
    let again = failed * reached;
    let rounds: f64 = (0..=config.retries).map(|retry| again.powi(retry as i32)).sum();
    Model {
        goodput_bps: successes * f64::from(payload_bytes) * 8.0,
        success_ratio: reached * (1.0 - failed) * rounds,
    }
}

impl Terms {
    fn new(config: &WpanConfig, senders: u32, payload_bytes: u32) -> Self {
        let Backoff::Exponential { min_be, max_be, max_backoffs, .. } = config.backoff else {
            panic!("the model is one of exponential backoff");
        };
        let airtime = |bytes| Rate::Oqpsk250.airtime(Preamble::Oqpsk, bytes).as_secs_f64();
        let look = config.cca.as_secs_f64();
        let mean = |count: u32| {
            let units = (1_u32 << (min_be + count).min(max_be)) - 1;
            f64::from(units) / 2.0 * 320e-6 + look
        };
        Terms {
            senders: f64::from(senders),
            look,
            turnaround: config.turnaround.as_secs_f64(),
            data: airtime(payload_bytes + config.header_bytes),
            ack: airtime(ACK_BYTES),
            space: config.lifs.as_secs_f64(),
            ack_wait: config.ack_wait.as_secs_f64(),
            backoffs: (0..=max_backoffs).map(mean).collect(),
        }
    }

    /// Time from the end of a busy period to the next CCA that finds the channel free, while `away`
    /// senders make no CCA for a time.
    fn idle(&self, rate: f64, away: f64, away_s: f64) -> f64 {
        let others = rate * (self.senders - away).max(0.0);
        let left = (away_s - self.look).max(0.0);
        let none = (-others * left).exp();
        let early = if others > 0.0 { (1.0 - none) / others } else { left };
        self.look + early + none / (rate * self.senders)
    }

    fn at(&self, busy: f64) -> Point {
        let (mut reached, mut visits, mut waited) = (1.0, 0.0, 0.0);
        for mean in &self.backoffs {
            visits += reached;
            waited += reached * mean;
            reached *= busy;
        }
        let rate = visits / waited;
        let others = rate * (self.senders - 1.0);

        // A sender whose CCA is within a turnaround of the first one's collides with it.
        let joined = others * self.turnaround;
        let alone = (-joined).exp();
        let collided = 1.0 - alone;
        let colliding = if collided > 0.0 { (1.0 + joined - alone) / collided } else { 2.0 };
        let last = if collided > 0.0 { self.turnaround / collided - 1.0 / others } else { 0.0 };

        // A sender whose CCA is entirely between a frame and its ACK destroys the ACK.
        let intruders = others * (self.turnaround - self.look).max(0.0);
        let spoilt = 1.0 - (-intruders).exp();
        let intruding = if spoilt > 0.0 { intruders / spoilt } else { 1.0 };
        let gap = (self.turnaround - self.look).max(0.0);

        let (fine, spoilt) = (alone * (1.0 - spoilt), alone * spoilt);
        let exchange = self.data + self.turnaround + self.ack;
        let twice = 2.0 * self.data + 2.0 * self.turnaround - gap / 2.0;
        let cycle = self.turnaround
            + fine * (exchange + self.idle(rate, 1.0, self.space))
            + spoilt * (twice + self.idle(rate, intruding, self.ack_wait))
            + collided * (self.data + last + self.idle(rate, colliding, self.ack_wait));
        let unseen = fine * (self.senders - 1.0) * (exchange + self.look - gap)
            + spoilt * (self.senders - 1.0) * (twice + self.look - gap)
            + collided * (self.senders - colliding).max(0.0) * (self.data + last + self.look);
        let sent = 1.0 + joined + alone * intruders;
        let failing = rate * unseen;
        Point {
            busy: failing / (failing + sent),
            failed: 1.0 - fine / sent,
            successes: fine / cycle,
        }
    }
}
