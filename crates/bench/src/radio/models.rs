//! Closed-form models of saturated 802.11. docs/radio.md has the equations.

use corridor_air::dcf::{ACK_BYTES, DcfConfig, RTS_BYTES};
use corridor_air::radio::Rate;

/// Durations of a saturated cell's slots, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    /// No station sends.
    pub idle_s: f64,
    /// One station sends.
    pub success_s: f64,
    /// Several stations send.
    pub collision_s: f64,
}

/// A cell of saturated stations that all hear each other.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pub stations: u32,
    /// Minimum contention window, and the number of doublings.
    pub window: u32,
    pub doublings: u32,
    pub payload_bits: f64,
    pub slots: Slots,
}

/// Slot durations for frames of `len_bytes` at `rate` with a MAC's settings.
pub fn slots(config: &DcfConfig, rate: Rate, len_bytes: u32, announced: bool) -> Slots {
    let s = |rate, bytes| config.airtime(rate, bytes).as_secs_f64();
    let control = config.control_rate(rate);
    let (sifs, difs) = (config.sifs.as_secs_f64(), config.difs().as_secs_f64());
    let (data, ack) = (s(rate, len_bytes + config.header_bytes), s(control, ACK_BYTES));
    let after_error = if config.eifs { config.eifs() } else { config.difs() }.as_secs_f64();
    let exchange = data + sifs + ack + difs;
    let rts = s(control, RTS_BYTES);
    let (success_s, collision_s) = if announced {
        (rts + sifs + ack + sifs + exchange, rts + after_error)
    } else {
        (exchange, data + after_error)
    };
    Slots { idle_s: config.slot.as_secs_f64(), success_s, collision_s }
}

impl Cell {
    /// Bianchi 2000, Eqs. 7, 9 and 13, bit/s.
    pub fn of_2000(&self) -> f64 {
        let tau = self.solve(|p| self.tau_unlimited(p));
        self.throughput(tau, self.slots, self.payload_bits)
    }

    /// The same attempt probability, with the aftermath of transmissions as in Tinnirello, Bianchi
    /// and Xiao 2010: a station that has just sent may send again at once, which no other may. It
    /// is [`limited`](Self::limited) without a limit.
    pub fn post_backoff(&self) -> f64 {
        let tau = self.solve(|p| self.tau_unlimited(p));
        self.refined(tau)
    }

    /// Tinnirello, Bianchi and Xiao 2010 with a limit on the number of attempts.
    pub fn limited(&self, attempts: u32) -> f64 {
        let tau = self.solve(|p| self.tau_limited(p, attempts));
        self.refined(tau)
    }

    /// The first slot after any transmission is unavailable to stations that counted down during
    /// it: docs/radio.md derives this.
    fn refined(&self, tau: f64) -> f64 {
        let again = 1.0 / f64::from(self.window + 1);
        let Slots { idle_s, success_s, collision_s } = self.slots;
        let slots = Slots {
            idle_s,
            success_s: success_s / (1.0 - again) + idle_s,
            collision_s: collision_s + idle_s,
        };
        self.throughput(tau, slots, self.payload_bits / (1.0 - again))
    }

    fn throughput(&self, tau: f64, slots: Slots, bits: f64) -> f64 {
        let n = f64::from(self.stations);
        let some = 1.0 - (1.0 - tau).powf(n);
        let one = n * tau * (1.0 - tau).powf(n - 1.0);
        let mean_s =
            (1.0 - some) * slots.idle_s + one * slots.success_s + (some - one) * slots.collision_s;
        one * bits / mean_s
    }

    /// Bianchi 2000, Eq. 7, as a sum: it has no pole at p = 1/2.
    fn tau_unlimited(&self, p: f64) -> f64 {
        let w = f64::from(self.window + 1);
        let sum: f64 = (0..self.doublings).map(|i| (2.0 * p).powi(i as i32)).sum();
        2.0 / (1.0 + w + p * w * sum)
    }

    /// Tinnirello, Bianchi and Xiao 2010, Eq. 7: the mean backoff over the stages, weighted by how
    /// often each is reached.
    fn tau_limited(&self, p: f64, attempts: u32) -> f64 {
        let (mut reached, mut visits, mut waited) = (1.0, 0.0, 0.0);
        for stage in 0..attempts {
            let doubled = 2_f64.powi(stage.min(self.doublings) as i32);
            let window = f64::from(self.window + 1) * doubled - 1.0;
            // The slot after each transmission is counted with it.
            visits += reached;
            waited += reached * window / 2.0;
            reached *= p;
        }
        visits / (visits + waited)
    }

    /// The attempt probability that is a fixed point of `tau` of its own collision probability.
    fn solve(&self, tau: impl Fn(f64) -> f64) -> f64 {
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            let p = 1.0 - (1.0 - middle).powf(f64::from(self.stations) - 1.0);
            if tau(p) > middle { low = middle } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(stations: u32) -> Cell {
        let slots = Slots { idle_s: 9e-6, success_s: 1.5e-3, collision_s: 1.5e-3 };
        Cell { stations, window: 15, doublings: 6, payload_bits: 8e3, slots }
    }

    #[test]
    fn a_limit_that_nobody_reaches_is_none() {
        for stations in [2, 5, 20, 50] {
            let (unlimited, limited) = (cell(stations).post_backoff(), cell(stations).limited(900));
            assert!((limited / unlimited - 1.0).abs() < 1e-9, "{stations}: {limited} {unlimited}");
        }
    }

    #[test]
    fn the_slot_behind_a_collision_is_a_small_share() {
        // What ns-3's form omits: a slot per collision.
        for stations in [2, 5, 20, 50] {
            let cell = cell(stations);
            let less = Slots { collision_s: cell.slots.collision_s - 9e-6, ..cell.slots };
            let ns3 = Cell { slots: less, ..cell }.post_backoff();
            let share = ns3 / cell.post_backoff() - 1.0;
            assert!((0.0..0.006).contains(&share), "{stations}: {share}");
        }
    }
}
