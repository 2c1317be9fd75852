//! The network under torture: losses, duplicates and delays.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::StationId;

use super::addresses::Internet;
use super::draw::Dice;
use super::scenario::{PPM, Scenario};

/// A link from a station to a receiver.
struct Link {
    dice: Dice,
    loss_ppm: u32,
    /// Whether it is in a burst of losses.
    bad: bool,
}

/// All links.
pub(super) struct Network<'a> {
    stations: usize,
    links: Vec<Link>,
    calm: bool,
    /// Addresses, unless there is one shared medium.
    pub(super) internet: Option<Internet<'a>>,
}

/// The fate of a frame on the way to one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    Lost,
    /// It arrives after these delays, once or twice.
    Arrives(Duration, Option<Duration>),
}

impl<'a> Network<'a> {
    /// `peers`: the stations that each station talks to, by number and index.
    pub(super) fn new(scenario: &'a Scenario, peers: Vec<Vec<(StationId, usize)>>) -> Self {
        let stations = scenario.stations();
        let link = |at: usize| {
            let mut dice = Dice::new(scenario.seed, at as u64, "torture link");
            let loss_ppm = dice.below(u64::from(scenario.network.loss_ppm) + 1) as u32;
            Link { dice, loss_ppm, bad: false }
        };
        let links = (0..stations * stations).map(link).collect();
        let told = scenario.addresses.as_ref();
        let internet = told.map(|told| Internet::new(scenario.seed, told, peers));
        Network { stations, links, calm: false, internet }
    }

    /// From now on every frame arrives, once and in order.
    pub(super) fn calm_down(&mut self) {
        self.calm = true;
    }

    pub(super) fn is_calm(&self) -> bool {
        self.calm
    }

    pub(super) fn carry(
        &mut self,
        now: Time,
        scenario: &Scenario,
        from: usize,
        to: usize,
    ) -> Passage {
        let net = &scenario.network;
        let delay = Duration::from_micros(net.delay_us.into());
        if self.calm {
            return Passage::Arrives(delay, None);
        }
        let link = &mut self.links[from * self.stations + to];
        let ms = now.as_nanos() / 1_000_000;
        let out = scenario.outages.iter().any(|outage| {
            (usize::from(outage.from), usize::from(outage.to)) == (from, to)
                && (u64::from(outage.begin_ms)..outage.end_ms.into()).contains(&ms)
        });
        if link.loses(net.burst_frames.into()) || out {
            return Passage::Lost;
        }
        let mut delay = || {
            let late = link.dice.chance(net.late_ppm);
            let more = if late { link.dice.below(net.jitter_us.into()) } else { 0 };
            delay + Duration::from_micros(more)
        };
        let first = delay();
        let second = delay();
        let twice = link.dice.chance(net.duplicate_ppm);
        Passage::Arrives(first, twice.then_some(second))
    }
}

impl Link {
    /// Whether the next frame is lost: independently, or in bursts (Gilbert-Elliott, with
    /// everything lost in the bad state and nothing in the good one).
    fn loses(&mut self, burst_frames: u64) -> bool {
        if burst_frames <= 1 || self.loss_ppm == 0 {
            return self.dice.chance(self.loss_ppm);
        }
        let ppm = u64::from(PPM);
        let loss = u64::from(self.loss_ppm);
        let leave = ppm / burst_frames;
        let enter = leave * loss / (ppm - loss).max(1);
        let change = if self.bad { leave } else { enter.min(ppm) };
        self.bad ^= self.dice.chance(change as u32);
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_have_the_ratio_and_the_length_that_was_asked_for() {
        for (loss_ppm, burst_frames) in [(100_000, 1), (300_000, 5), (600_000, 10)] {
            let dice = Dice::new(1, 0, "test");
            let mut link = Link { dice, loss_ppm, bad: false };
            let lost: Vec<bool> = (0..200_000).map(|_| link.loses(burst_frames)).collect();
            let count = lost.iter().filter(|&&lost| lost).count() as f64;
            let ratio = count / 200_000.0;
            assert!((ratio - f64::from(loss_ppm) / 1e6).abs() < 0.03, "{ratio}");
            let bursts = lost.windows(2).filter(|pair| pair == &[false, true]).count() as f64;
            let length = count / bursts;
            let expected = if burst_frames == 1 { 1.1 } else { burst_frames as f64 };
            assert!((length / expected - 1.0).abs() < 0.2, "{length} for {expected}");
        }
    }
}
