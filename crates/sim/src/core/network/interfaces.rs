//! Queues that packets leave nodes by, whatever is behind them.

use corridor_air::Pipe;

use super::Network;
use super::air::RadioIndex;
use crate::core::agent::NodeIndex;

/// A queue that packets leave a node by, and what became of them since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Packets or frames that wait: in front of a pipe without the one that is sent.
    pub waiting: usize,
    /// Those that came, dropped ones included.
    pub offered: u64,
    /// Of these, those that found the queue full, or exceeded a policer.
    pub dropped: u64,
    /// Of those taken, those that a pipe lost, or that a MAC gave up.
    pub lost: u64,
}

impl Network {
    /// The queue of the pipe from one node to another, if there is one.
    pub fn pipe_interface(&self, from: NodeIndex, to: NodeIndex) -> Option<Interface> {
        self.router.pipe(from, to).map(|index| self.of_pipe(&self.pipes[index]))
    }

    /// The queue of a place on a radio, with that of the host which forwards there; an empty one
    /// where there is no such place.
    pub fn interface(&self, radio: RadioIndex, place: usize) -> Interface {
        let own = if let Some(medium) = self.medium(radio) {
            let stats = medium.stats(place);
            let dropped = stats.refused + stats.dropped;
            let (waiting, offered) = (medium.backlog(place), stats.offered);
            Interface { waiting, offered, dropped, lost: stats.undelivered }
        } else if let Some(medium) = self.mac(radio) {
            let (waiting, stats) = (medium.backlog(place), medium.stats(place));
            let lost = stats.retry_limit + stats.channel_access;
            Interface { waiting, offered: stats.offered, dropped: stats.refused, lost }
        } else {
            let pipe = self.line(radio).and_then(|line| line.pipe(place));
            pipe.map(|pipe| self.of_pipe(pipe)).unwrap_or_default()
        };
        match self.bridge_to(radio, place) {
            None => own,
            Some((waiting, offered, dropped)) => {
                Interface { waiting: own.waiting + waiting, offered, dropped, ..own }
            }
        }
    }

    fn of_pipe<P>(&self, pipe: &Pipe<P>) -> Interface {
        let (waiting, stats) = (pipe.backlog(self.now), pipe.stats());
        let dropped = stats.refused + stats.policed;
        Interface { waiting, offered: stats.offered, dropped, lost: stats.erased }
    }
}
