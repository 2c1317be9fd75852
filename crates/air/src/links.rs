//! Nodes joined by [`Pipe`]s in any topology, driven like a [`Line`](crate::Line): a packet crosses
//! the pipes of its route one after the other, each at its own virtual time.
//!
//! As in the simulator, packets take the route with the fewest pipes, at each node over the pipe
//! that comes first in the list, unless the configuration sets another route. Pipes are keyed by
//! their ends, so they draw the same random numbers as the simulator's. Several routes may share a
//! pipe and its queue; there is no back-pressure.

use std::collections::VecDeque;

use corridor_base::{StreamKey, Time};

use crate::config::Station;
use crate::error::{PipeError, QueueFull};
use crate::medium::{Carried, Delivery, MAX_DELIVERIES};
use crate::pipe::{Pipe, PipeConfig, PipeStats};

/// Nodes, and the pipes that join them.
#[derive(Clone, Debug, PartialEq)]
pub struct LinksConfig {
    /// Number of nodes.
    pub nodes: usize,
    /// Pipes: from, to, and their properties.
    pub pipes: Vec<(Station, Station, PipeConfig)>,
    /// Routes as lists of nodes, for packets to the last node of each, where these differ from the
    /// route with the fewest pipes. A pair of nodes without a pipe has no effect.
    pub routes: Vec<Vec<Station>>,
    /// Seed of the whole experiment.
    pub seed: u64,
    /// Which replication of the experiment.
    pub replication: u64,
}

/// See [`LinksConfig`].
#[derive(Debug)]
pub struct Links<F> {
    pipes: Vec<Pipe<Letter<F>>>,
    /// Both ends of each pipe.
    ends: Vec<(Station, Station)>,
    /// The next pipe, by destination and node.
    next: Vec<Vec<Option<usize>>>,
    arrived: VecDeque<Delivery<F>>,
    now: Time,
}

/// A packet, its sender and its destination.
#[derive(Clone, Debug)]
struct Letter<F> {
    from: Station,
    to: Station,
    frame: F,
}

impl<F: Carried> Links<F> {
    /// Idle links at [`Time::ZERO`].
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn new(config: &LinksConfig) -> Result<Self, PipeError> {
        let (seed, replication) = (config.seed, config.replication);
        let pipe = |(from, to, pipe): &(Station, Station, PipeConfig)| {
            let entity = (*from as u64) << 32 | *to as u64;
            Pipe::new(pipe, StreamKey { seed, replication, entity, purpose: "erasure" })
        };
        let ends: Vec<_> = config.pipes.iter().map(|&(from, to, _)| (from, to)).collect();
        let towards = |to| onward(config.nodes, &ends, to);
        let mut next: Vec<_> = (0..config.nodes).map(towards).collect();
        for route in &config.routes {
            let Some(&last) = route.last() else { continue };
            for hop in route.windows(2) {
                let place = ends.iter().position(|&ends| ends == (hop[0], hop[1]));
                if let Some(way) = next.get_mut(last).and_then(|ways| ways.get_mut(hop[0])) {
                    *way = place.or(*way);
                }
            }
        }
        let pipes = config.pipes.iter().map(pipe).collect::<Result<_, _>>()?;
        Ok(Links { pipes, ends, next, arrived: VecDeque::new(), now: Time::ZERO })
    }

    /// Whether there is a route from one node to another.
    pub fn leads(&self, from: Station, to: Station) -> bool {
        let mut at = from;
        for _ in 0..self.next.len() {
            match self.pipe_on(at, to) {
                Some(pipe) if self.ends[pipe].1 == to => return true,
                Some(pipe) => at = self.ends[pipe].1,
                None => return false,
            }
        }
        false
    }

    /// Sends a packet at `now`. The sender does not learn of drops.
    ///
    /// # Errors
    /// [`QueueFull`] if there is no route to that node.
    pub fn offer<I: Into<F>>(
        &mut self,
        now: Time,
        from: Station,
        to: Station,
        frame: I,
    ) -> Result<(), QueueFull<I>> {
        self.handle_timeout(now);
        let Some(pipe) = self.pipe_on(from, to) else { return Err(QueueFull { frame }) };
        self.pass(self.now, pipe, Letter { from, to, frame: frame.into() });
        Ok(())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&self) -> Option<Time> {
        match self.arrived.front() {
            Some(delivery) => Some(delivery.at),
            None => self.next_arrival().map(|(at, _)| at),
        }
    }

    /// Advances the time: packets that have crossed a pipe enter the next one on their route.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some((at, pipe)) = self.next_arrival().filter(|&(at, _)| at <= self.now) {
            let Some(letter) = self.pipes[pipe].poll_delivery(at) else { return };
            let node = self.ends[pipe].1;
            if node == letter.to {
                // A driver that does not poll loses the oldest deliveries.
                if self.arrived.len() >= MAX_DELIVERIES {
                    self.arrived.pop_front();
                }
                let Letter { from, to, frame } = letter;
                self.arrived.push_back(Delivery { at, from, to, addressed: true, frame });
            } else if let Some(next) = self.pipe_on(node, letter.to) {
                self.pass(at, next, letter);
            }
        }
    }

    /// The next packet that has arrived at its destination by the latest time given.
    pub fn poll_delivery(&mut self) -> Option<Delivery<F>> {
        self.arrived.pop_front()
    }

    /// Restarts all rates; see [`Pipe::restart_rates`].
    pub fn restart_rates(&mut self, at: Time) {
        self.pipes.iter_mut().for_each(|pipe| pipe.restart_rates(at));
    }

    /// Counters of every pipe, in the order of the configuration.
    pub fn stats(&self) -> impl Iterator<Item = &PipeStats> {
        self.pipes.iter().map(Pipe::stats)
    }

    /// The pipe that a packet takes next.
    fn pipe_on(&self, node: Station, to: Station) -> Option<usize> {
        self.next.get(to)?.get(node).copied().flatten()
    }

    fn pass(&mut self, at: Time, pipe: usize, letter: Letter<F>) {
        let len_bytes = u32::try_from(letter.frame.len_bytes()).unwrap_or(u32::MAX);
        // The pipe counts what it loses or refuses.
        let _ = self.pipes[pipe].offer(at, len_bytes, letter);
    }

    fn next_arrival(&self) -> Option<(Time, usize)> {
        let arrivals = self.pipes.iter().enumerate();
        arrivals.filter_map(|(pipe, it)| Some((it.poll_timeout()?, pipe))).min()
    }
}

/// For each node, the first pipe of the shortest route to `to`; among several, the first in the
/// list.
fn onward(nodes: usize, ends: &[(Station, Station)], to: Station) -> Vec<Option<usize>> {
    let mut distances = vec![usize::MAX; nodes];
    let mut reached = VecDeque::from([to]);
    distances[to] = 0;
    while let Some(node) = reached.pop_front() {
        for &(from, _) in ends.iter().filter(|&&(from, end)| end == node && from < nodes) {
            if distances[from] == usize::MAX {
                distances[from] = distances[node] + 1;
                reached.push_back(from);
            }
        }
    }
    let is_nearer = |from: Station, end: Station| {
        distances.get(end).is_some_and(|&left| left.checked_add(1) == Some(distances[from]))
    };
    let first = |from: Station| ends.iter().position(|&(at, end)| at == from && is_nearer(at, end));
    (0..nodes).map(first).collect()
}
