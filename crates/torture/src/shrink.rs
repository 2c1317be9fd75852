//! Shrinks a failing scenario greedily: removes one thing or halves one number at a time, and keeps
//! what still fails in the same way.

use super::addresses::Addresses;
use super::mesh::{Mesh, MeshMode, MeshRelays};
use super::scenario::{End, Help, Scenario};
use super::{Invariant, run};

/// A smaller scenario that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The smallest one found.
    pub scenario: Scenario,
    /// Number of runs that this took.
    pub runs: u32,
}

/// Shrinks a scenario that violates `invariant`, with at most `runs_max` runs. Calls `stop` before
/// each run.
pub fn shrink(
    scenario: &Scenario,
    invariant: Invariant,
    runs_max: u32,
    mut stop: impl FnMut() -> bool,
) -> Shrunk {
    let mut best = Shrunk { scenario: scenario.clone(), runs: 0 };
    loop {
        let before = best.scenario.clone();
        // A reduction is kept; the next candidates derive from the smaller scenario.
        let mut index = 0;
        while let Some(candidate) = candidates(&best.scenario).into_iter().nth(index) {
            if best.runs >= runs_max || stop() {
                return best;
            }
            best.runs += 1;
            let fails = candidate.check().is_ok()
                && run(&candidate).violation.is_some_and(|found| found.invariant == invariant);
            if fails {
                best.scenario = candidate;
            } else {
                index += 1;
            }
        }
        if best.scenario == before {
            return best;
        }
    }
}

/// Scenarios that are simpler by one step, the largest steps first. Each differs from `from`.
fn candidates(from: &Scenario) -> Vec<Scenario> {
    let mut list = Candidates { from, list: Vec::new() };
    for pair in 0..from.pairs.len() {
        if from.pairs.len() > 1 {
            list.without(pair);
        }
    }
    list.lists();
    list.with(|s| {
        s.forged_ppm = 0;
        s.forgeries.clear();
    });
    list.with(|s| s.insider_ppm = 0);
    list.addresses();
    list.with(|s| s.same_numbers = false);
    list.network();
    list.mesh();
    for pair in 0..from.pairs.len() {
        list.with(|s| s.pairs[pair].helper = Help::None);
        list.with(|s| s.pairs[pair].talks = false);
        list.with(|s| s.pairs[pair].keys = None);
        list.with(|s| s.pairs[pair].lies_ppm = 0);
        list.with(|s| s.pairs[pair].session_frames = 0);
        list.with(|s| s.pairs[pair].memory_beyond = None);
        list.with(|s| s.pairs[pair].ends[1] = s.pairs[pair].ends[0].clone());
        for end in 0..2 {
            list.end(|s| &mut s.pairs[pair].ends[end]);
        }
        // Most parameters have to be equal at both ends for the same failure.
        list.both(pair, |end| end.coding.block_size = end.coding.block_size.div_ceil(2));
        list.both(pair, |end| {
            end.coding.blocks_in_flight = end.coding.blocks_in_flight.div_ceil(2)
        });
        list.both(pair, |end| {
            if let Some(window) = &mut end.coding.window {
                window.window_size = window.window_size.div_ceil(2);
            }
        });
        list.both(pair, |end| {
            if let Some(window) = &mut end.coding.window {
                window.window_lane = window.window_size;
            }
        });
        list.both(pair, |end| {
            if let Some(window) = &mut end.coding.window {
                window.max_overhead_percent = 0;
            }
        });
        list.both(pair, |end| {
            if let Some(window) = &mut end.coding.window {
                window.wraps = false;
            }
        });
        list.both(pair, |end| end.coding.overshoot_percent = 100);
        list.both(pair, |end| end.link_errors_ppm = None);
        list.both(pair, |end| end.pace_bps = None);
        list.both(pair, |end| end.frame_len_min = 0);
        list.both(pair, |end| end.coding.symbol_size = 64);
        list.both(pair, |end| end.frame_len_max = 576);
    }
    list.with(|s| s.span_ms = (s.span_ms / 2).max(1));
    list.list
}

struct Candidates<'a> {
    from: &'a Scenario,
    list: Vec<Scenario>,
}

impl Candidates<'_> {
    /// Fewer addresses that change, and no copying.
    fn addresses(&mut self) {
        self.with(|s| s.addresses = None);
        let mut with = |change: fn(&mut Addresses)| {
            self.with(|s| s.addresses.iter_mut().for_each(change));
        };
        with(|it| it.moves.clear());
        with(|it| it.moves.truncate(it.moves.len() / 2));
        with(|it| {
            it.moves.pop();
        });
        with(|it| it.relayed = false);
        with(|it| it.copied_ppm = 0);
        with(|it| it.copied_ppm /= 2);
        with(|it| it.learned = false);
    }

    /// Fewer nodes and packets.
    fn mesh(&mut self) {
        let mut with = |change: fn(&mut Mesh)| self.with(|s| s.mesh.iter_mut().for_each(change));
        with(|mesh| mesh.packets /= 2);
        with(|mesh| mesh.packets = mesh.packets.saturating_sub(1));
        with(|mesh| {
            mesh.nodes = (mesh.nodes - 1).max(3);
            mesh.removals.retain(|removal| removal.node < mesh.nodes);
        });
        with(|mesh| mesh.keys = None);
        with(|mesh| mesh.lies_ppm = 0);
        with(|mesh| mesh.ends = false);
        with(|mesh| mesh.session_frames = 0);
        with(|mesh| mesh.memory_beyond = None);
        with(|mesh| mesh.removals.clear());
        with(|mesh| mesh.removals.truncate(mesh.removals.len() / 2));
        with(|mesh| mesh.removals.iter_mut().for_each(|removal| removal.again_ms = 0));
        with(|mesh| mesh.packet_len_max = 60);
        with(|mesh| mesh.one_channel = false);
        with(|mesh| mesh.relay_window = None);
        with(|mesh| mesh.mode = MeshMode::Plain);
        with(|mesh| mesh.relays = MeshRelays::Plain);
    }

    /// Adds the scenario with this change, if it changes anything.
    fn with(&mut self, change: impl FnOnce(&mut Scenario)) {
        let mut changed = self.from.clone();
        change(&mut changed);
        if changed != *self.from {
            self.list.push(changed);
        }
    }

    /// Removes a pair, and all events at its stations.
    fn without(&mut self, pair: usize) {
        let places = self.from.places();
        let moved = |station: u8| -> Option<u8> {
            let place = places[usize::from(station)];
            let kept = places.iter().take(usize::from(station)).filter(|p| p.pair != pair);
            (place.pair != pair).then_some(kept.count() as u8)
        };
        self.with(|s| {
            s.pairs.remove(pair);
            s.same_numbers = false;
            s.outages.retain_mut(|outage| match (moved(outage.from), moved(outage.to)) {
                (Some(from), Some(to)) => {
                    (outage.from, outage.to) = (from, to);
                    true
                }
                _ => false,
            });
            s.addresses = None;
            let keep = |station: &mut u8| match moved(*station) {
                Some(to) => {
                    *station = to;
                    true
                }
                None => false,
            };
            s.stalls.retain_mut(|stall| keep(&mut stall.station));
            s.jumps.retain_mut(|jump| keep(&mut jump.station));
            s.restarts.retain_mut(|restart| keep(&mut restart.station));
            s.mtus.retain_mut(|change| keep(&mut change.station));
            if let Some(plant) = &mut s.plant {
                plant.station = moved(plant.station).unwrap_or(0);
            }
        });
    }

    /// Fewer events, and fewer means of the adversary.
    fn lists(&mut self) {
        self.with(|s| s.outages.clear());
        self.with(|s| s.stalls.clear());
        self.with(|s| s.jumps.clear());
        self.with(|s| s.restarts.clear());
        self.with(|s| s.mtus.clear());
        for at in 0..self.from.outages.len() {
            self.with(|s| {
                let _ = s.outages.remove(at);
            });
        }
        for at in 0..self.from.stalls.len() {
            self.with(|s| {
                let _ = s.stalls.remove(at);
            });
        }
        for at in 0..self.from.jumps.len() {
            self.with(|s| {
                let _ = s.jumps.remove(at);
            });
            self.with(|s| s.jumps[at].by_ms /= 2);
        }
        for at in 0..self.from.restarts.len() {
            self.with(|s| {
                let _ = s.restarts.remove(at);
            });
            self.with(|s| s.restarts[at].down_ms = 0);
        }
        for at in 0..self.from.mtus.len() {
            self.with(|s| {
                let _ = s.mtus.remove(at);
            });
        }
        for at in 0..self.from.forgeries.len() {
            self.with(|s| {
                let _ = s.forgeries.remove(at);
            });
        }
        self.with(|s| s.forged_ppm /= 2);
        self.with(|s| s.insider_ppm /= 2);
    }

    fn network(&mut self) {
        self.with(|s| s.network.loss_ppm = 0);
        self.with(|s| s.network.late_ppm = 0);
        self.with(|s| s.network.duplicate_ppm = 0);
        self.with(|s| s.network.burst_frames = 1);
        self.with(|s| s.network.queue_frames = 1);
        self.with(|s| s.network.delay_us = 0);
        self.with(|s| s.network.loss_ppm /= 2);
        self.with(|s| s.network.late_ppm /= 2);
        self.with(|s| s.network.duplicate_ppm /= 2);
        self.with(|s| s.network.jitter_us /= 2);
        self.with(|s| s.network.delay_us /= 2);
    }

    /// A smaller load at one end.
    fn end(&mut self, end: impl Fn(&mut Scenario) -> &mut End) {
        self.with(|s| end(s).packets = 0);
        self.with(|s| end(s).packets /= 2);
        self.with(|s| end(s).packets = end(s).packets.saturating_sub(1));
        self.with(|s| end(s).packet_len_max = 8);
        self.with(|s| end(s).together_ppm = 0);
    }

    /// Changes a parameter of both ends of a pair.
    fn both(&mut self, pair: usize, change: impl Fn(&mut End)) {
        self.with(|s| s.pairs[pair].ends.iter_mut().for_each(&change));
    }
}
