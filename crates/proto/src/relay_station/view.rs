//! What observers see of a relay.

use corridor_base::Time;
use corridor_relay::{Adaptive, Hold, NodeId};

use super::RelayStation;
use crate::config::StationId;
use crate::diagnosis::Unopened;
use crate::inspect::{PeerView, QueueView};
use crate::psk::Psk;

/// A snapshot of a relay.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayView {
    /// It combines packets where that pays.
    pub coding: bool,
    /// How long packets of others may wait for a partner.
    pub hold: Hold,
    /// Waiting packets of the host and of neighbours.
    pub queue: QueueView,
    /// How many of these are held for a partner.
    pub packets_held: usize,
    /// TCP segments for the host that wait for earlier ones.
    pub segments_held: usize,
    /// Other ends with which packets have tags.
    pub ends: usize,
    /// Neighbours that were heard as relays.
    pub neighbours: Vec<RelayNeighbourView>,
}

/// A neighbour of a relay. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayNeighbourView {
    /// Its number.
    pub id: StationId,
    /// Share of its frames to others that arrive here; `None`: it has sent too few.
    pub overheard: Option<f64>,
    /// Whom it hears, and which share of their frames to others, as it last announced.
    pub hears: Vec<(StationId, f64)>,
    /// It hears and decodes enough to be sent coded frames without retries.
    pub takes_coded: bool,
}

impl RelayStation {
    /// A snapshot of the relay.
    pub fn view(&self, now: Time) -> RelayView {
        let config = self.relay.config();
        // Announcements may name a node that is not a station.
        let id = |node: NodeId| (node.0 > 0).then_some(StationId(node.0));
        let neighbours = self.relay.neighbours(now).into_iter();
        let hears = |&(node, share): &(NodeId, f64)| Some((id(node)?, share));
        RelayView {
            // Coding that depends on retries does nothing if nobody reports retries.
            coding: config.coding
                && (self.relay.knows_retries() || config.adaptive != Adaptive::Coding),
            hold: match config.adaptive {
                Adaptive::Off => config.hold,
                Adaptive::Holding if matches!(config.hold, Hold::Waits { .. }) => config.hold,
                _ if self.relay.knows_retries() => config.hold,
                _ => Hold::None,
            },
            queue: QueueView {
                packets: self.relay.backlog(),
                packets_max: config.queue_packets,
                bytes: self.relay.backlog_bytes(),
                delay: self.relay.oldest(now),
            },
            packets_held: self.relay.held(now),
            segments_held: self.to_host.in_order.held(),
            ends: self.table.ends.len(),
            neighbours: neighbours
                .filter_map(|neighbour| {
                    Some(RelayNeighbourView {
                        id: id(neighbour.node)?,
                        overheard: neighbour.overheard,
                        hears: neighbour.hears.iter().filter_map(hears).collect(),
                        takes_coded: neighbour.takes_coded,
                    })
                })
                .collect(),
        }
    }

    /// The neighbours, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerView> {
        self.group.inspect()
    }

    /// The secret that frames are sealed under now, for tests that decrypt them.
    #[doc(hidden)]
    pub fn secret(&self) -> Option<&Psk> {
        self.group.secret()
    }

    /// Whether frames can be exchanged with this neighbour.
    pub fn is_up(&self, peer: StationId) -> bool {
        self.group.is_up(peer)
    }

    /// As [`crate::Station::examine`].
    pub fn examine(&self, frame: &[u8]) -> Unopened {
        self.group.examine(frame)
    }
}
