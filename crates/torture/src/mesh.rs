//! Hubs and relays under torture: several nodes, some of which forward what others send.
//!
//! The invariants of pairs hold from node to node; here, those of forwarding are checked. A packet
//! is delivered where it was sent to, at most once as long as no node restarts, unaltered except
//! for its hop limit, which each forwarder decrements; its class of service is kept; packets with a
//! source address that the sender does not own are not delivered; queues stay within their bounds,
//! and everything comes to rest. False frames that a neighbour has sealed are only counted.

mod driver;
mod packet;

use core::time::Duration;
use std::net::IpAddr;

use corridor_base::Time;
use corridor_proto::relay::RelayConfig;
use corridor_proto::{
    AnyStation, CodingParams, CodingTable, ConfigError, Hub, HubConfig, Keys, LinkErrors, PeerKey,
    Preset, PrivateKey, RelayEnd, RelayStation, RelayStationConfig, Role, Security, Station,
    StationConfig, StationId,
};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub(super) use driver::MeshDriver;

use super::draw::Dice;
use super::draw::{REKEYS_MS, SESSION_FRAMES};
use super::scenario::{OwnKeys, SPAN_MS_MAX, ScenarioError};

/// Most nodes.
pub(super) const NODES_MAX: u8 = 8;
/// Initial hop limit of packets that have to arrive.
pub(super) const HOPS: u8 = 64;

/// Nodes, and their roles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    /// The topology, and the kind of the forwarding nodes.
    pub kind: MeshKind,
    /// Number of nodes, 3 to 8.
    pub nodes: u8,
    /// Coding mode of hubs; relays have none.
    pub mode: MeshMode,
    /// What relays combine.
    pub relays: MeshRelays,
    /// Packets that may be in flight from a relay to the next; 0: unlimited; `None`: the preset's
    /// number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay_window: Option<u16>,
    /// Packets of each host.
    pub packets: u32,
    /// Longest of them, bytes.
    pub packet_len_max: u16,
    /// Bound of each queue.
    pub queue_packets: u16,
    /// Longest frame, bytes.
    pub frame_len_max: u16,
    /// Whether hubs assume that all their neighbours are on one channel.
    pub one_channel: bool,
    /// Individual keys of the nodes; relays only have them if they are ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<OwnKeys>,
    /// Whether relays are ends of each other's packets, which then have tags if there are
    /// individual keys.
    #[serde(default)]
    pub ends: bool,
    /// Of the packets that the second node sends uncombined, how many it alters, millionths, until
    /// the network calms down.
    #[serde(default)]
    pub lies_ppm: u32,
    /// Frames after which a new session begins, until the network calms down; 0: the default.
    #[serde(default)]
    pub session_frames: u32,
    /// Bytes of memory that nodes have for each neighbour beyond the minimum, if no members come or
    /// go; otherwise the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_beyond: Option<u32>,
    /// Members that the hub of a star removes during the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removals: Vec<Removal>,
}

/// A member that the hub of a star removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// Its node, not 0, which is the hub.
    pub node: u8,
    /// When, milliseconds.
    pub at_ms: u32,
    /// After how long it is admitted again, milliseconds; 0: never.
    pub again_ms: u32,
}

/// The topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeshKind {
    /// A hub and its neighbours, which hear each other too.
    HubStar,
    /// Hubs in a row, with a station at either end.
    HubRow,
    /// Relays in a row that XOR, each of which hears the next ones.
    RelayRow,
}

/// How frames to a hub's neighbours are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the modes")]
pub enum MeshMode {
    Window,
    Block,
    Plain,
}

/// What relays combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names of the presets")]
pub enum MeshRelays {
    Default,
    Paper,
    PaperAdaptive,
    Plain,
}

impl Mesh {
    /// Draws a mesh.
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let kind = dice.pick(&[MeshKind::HubStar, MeshKind::HubRow, MeshKind::RelayRow]);
        let few = dice.pick(&[10, 60, 200]);
        Mesh {
            kind,
            nodes: 3 + dice.below(u64::from(NODES_MAX) - 2) as u8,
            mode: dice.pick(&[
                MeshMode::Window,
                MeshMode::Window,
                MeshMode::Window,
                MeshMode::Block,
                MeshMode::Plain,
            ]),
            relays: dice.pick(&[
                MeshRelays::Default,
                MeshRelays::Paper,
                MeshRelays::PaperAdaptive,
                MeshRelays::Plain,
            ]),
            packets: dice.below(few) as u32,
            packet_len_max: dice.pick(&[60, 300, 1_500]),
            queue_packets: dice.pick(&[2, 5, 50, 1_000]),
            frame_len_max: dice.pick(&[576, 700, 1_500]),
            one_channel: dice.below(2) == 0,
            relay_window: dice.pick(&[None, None, Some(0), Some(1), Some(2), Some(16)]),
            keys: None,
            ends: false,
            lies_ppm: 0,
            session_frames: 0,
            memory_beyond: None,
            removals: Vec::new(),
        }
    }

    /// Draws individual keys for hubs and their neighbours, and how quickly sessions and secrets
    /// change.
    pub(super) fn draw_keys(&mut self, dice: &mut Dice) {
        let rekey_ms = dice.pick(&REKEYS_MS);
        if self.kind != MeshKind::RelayRow && dice.percent(30) {
            self.keys = Some(OwnKeys { rekey_ms });
        }
        let frames = dice.pick(&SESSION_FRAMES);
        self.session_frames = if dice.percent(25) { frames } else { 0 };
    }

    /// Draws relays that are ends of each other's packets, and one that alters what it forwards.
    pub(super) fn draw_ends(&mut self, dice: &mut Dice) {
        let (rekey_ms, lies_ppm) = (dice.pick(&REKEYS_MS), dice.pick(&[10_000, 200_000]));
        if self.kind == MeshKind::RelayRow && dice.percent(50) {
            (self.keys, self.ends) = (Some(OwnKeys { rekey_ms }), true);
            self.lies_ppm = if dice.percent(60) { lies_ppm } else { 0 };
        }
    }

    /// Of the packets that the second relay sends uncombined, how many it alters: none if the
    /// others could not tell.
    pub(super) fn lies_ppm(&self) -> u32 {
        let tells = self.ends && self.keys.is_some() && self.kind == MeshKind::RelayRow;
        if tells { self.lies_ppm } else { 0 }
    }

    /// What a relay knows of the others, if they are ends of its packets.
    fn ends(&self, node: usize) -> Vec<RelayEnd> {
        if !self.ends || self.keys.is_none() {
            return Vec::new();
        }
        let others = (0..usize::from(self.nodes)).filter(|&other| other != node);
        let end = |other: usize| RelayEnd {
            networks: vec![IpAddr::from(packet::address(other)).into()],
            public: Self::private(other).public(),
            psk: None,
        };
        others.map(end).collect()
    }

    fn private(node: usize) -> PrivateKey {
        PrivateKey::from_random([0x50 + node as u8; 32])
    }

    /// Draws members to remove, and when, in some stars; at least one member stays.
    pub(super) fn draw_removals(&mut self, dice: &mut Dice, span_ms: u32) {
        if self.kind != MeshKind::HubStar || !dice.percent(50) {
            return;
        }
        let members: Vec<u8> = (1..self.nodes).collect();
        for &node in &members[1..] {
            if !dice.percent(40) {
                continue;
            }
            let at_ms = dice.below(u64::from(span_ms)) as u32;
            let again_ms = dice.pick(&[0, 0, 1, 100, span_ms / 4]);
            self.removals.push(Removal { node, at_ms, again_ms });
        }
    }

    /// Checks the removals.
    pub(super) fn check_removals(&self) -> Result<(), ScenarioError> {
        let range = |field, given: u64, least: u64, most: u64| {
            let expected = format!("{least} to {most}");
            let is_right = (least..=most).contains(&given);
            if is_right { Ok(()) } else { Err(ScenarioError::Range { field, given, expected }) }
        };
        // One member stays, and no other is removed twice.
        let most = if self.kind == MeshKind::HubStar { u64::from(self.nodes) - 2 } else { 0 };
        range("mesh.removals", self.removals.len() as u64, 0, most)?;
        for (at, removal) in self.removals.iter().enumerate() {
            range("mesh.removals.node", removal.node.into(), 1, u64::from(self.nodes) - 1)?;
            range("mesh.removals.at_ms", removal.at_ms.into(), 0, SPAN_MS_MAX.into())?;
            range("mesh.removals.again_ms", removal.again_ms.into(), 0, SPAN_MS_MAX.into())?;
            let same = self.removals[..at].iter().filter(|other| other.node == removal.node);
            range("mesh.removals of one node", 1 + same.count() as u64, 1, 1)?;
        }
        Ok(())
    }

    /// The station number of a node.
    pub(super) fn id(node: usize) -> StationId {
        StationId(node as u16 + 1)
    }

    /// The nodes with which a node exchanges frames.
    pub(super) fn neighbours(&self, node: usize) -> Vec<usize> {
        let last = usize::from(self.nodes) - 1;
        match self.kind {
            MeshKind::HubStar if node == 0 => (1..=last).collect(),
            MeshKind::HubStar => vec![0],
            MeshKind::HubRow | MeshKind::RelayRow => {
                node.checked_sub(1).into_iter().chain((node < last).then_some(node + 1)).collect()
            }
        }
    }

    /// Whether a node hears another's frames.
    pub(super) fn hears(&self, node: usize, from: usize) -> bool {
        node != from && (self.kind == MeshKind::HubStar || self.neighbours(node).contains(&from))
    }

    /// The next hop of a packet from one node to another.
    fn next(&self, node: usize, to: usize) -> usize {
        match self.kind {
            MeshKind::HubStar if node == 0 => to,
            MeshKind::HubStar => 0,
            MeshKind::HubRow | MeshKind::RelayRow if to > node => node + 1,
            MeshKind::HubRow | MeshKind::RelayRow => node - 1,
        }
    }

    /// How many nodes forward a packet on its route.
    pub(super) fn forwarders(&self, from: usize, to: usize) -> u8 {
        match self.kind {
            MeshKind::HubStar => u8::from(from != 0 && to != 0),
            MeshKind::HubRow | MeshKind::RelayRow => from.abs_diff(to) as u8 - 1,
        }
    }

    /// The networks that each neighbour of a node leads to, without removed members.
    fn networks(&self, node: usize, left_out: &[bool]) -> Vec<(StationId, Vec<IpNet>)> {
        let others = || (0..usize::from(self.nodes)).filter(|&other| other != node);
        let of = |neighbour: usize| {
            let behind = others().filter(|&to| self.next(node, to) == neighbour);
            behind.map(|to| IpAddr::from(packet::address(to)).into()).collect()
        };
        let neighbours = self.neighbours(node).into_iter();
        let neighbours = neighbours.filter(|&neighbour| node != 0 || !left_out[neighbour]);
        neighbours.map(|neighbour| (Self::id(neighbour), of(neighbour))).collect()
    }

    pub(super) fn config(&self, node: usize) -> StationConfig {
        let coding = match (self.kind, self.mode) {
            (MeshKind::RelayRow, _) | (_, MeshMode::Plain) => CodingParams::default(),
            (_, MeshMode::Window) => CodingParams::window(),
            (_, MeshMode::Block) => {
                CodingTable { preset: Some(Preset::Block), ..CodingTable::default() }.resolve(false)
            }
        };
        let peer = Self::id(self.neighbours(node)[0]);
        let role = match (self.kind, self.mode) {
            (MeshKind::RelayRow, _) => Role::Relay,
            (_, MeshMode::Plain) => Role::Plain { peer },
            _ => Role::Endpoint { peer, helper: None },
        };
        let config = StationConfig {
            id: Self::id(node),
            role,
            security: self.security(node),
            coding,
            link_errors: LinkErrors::Measured,
            ingress_packets: self.queue_packets.into(),
            frame_len_max: self.frame_len_max.into(),
            frame_len_min: 0,
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        };
        let Some(beyond) = self.memory_beyond.filter(|_| self.removals.is_empty()) else {
            return config;
        };
        // A hub keeps an eighth free.
        let all = self.neighbours(node).len() * (config.memory_min() + beyond as usize);
        StationConfig { memory_bytes: all.div_ceil(7) * 8, ..config }
    }

    /// The keys under which a node's frames are sealed.
    fn security(&self, node: usize) -> Security {
        if self.keys.is_none() || (self.kind == MeshKind::RelayRow && !self.ends) {
            return [0x42; 32].into();
        }
        let peer = |node: usize| {
            let (station, public) = (Self::id(node), Self::private(node).public());
            PeerKey { station, public, psk: None }
        };
        let peers = self.neighbours(node).into_iter().map(peer).collect();
        Security::Keys(Box::new(Keys { private: Self::private(node), peers }))
    }

    fn relay_config(&self) -> RelayConfig {
        let config = match self.relays {
            MeshRelays::Default => RelayConfig::default(),
            MeshRelays::Paper => RelayConfig::paper(),
            MeshRelays::PaperAdaptive => RelayConfig::paper_adaptive(),
            MeshRelays::Plain => RelayConfig::plain(),
        };
        let announce_every = Duration::from_millis(100);
        let window_packets = match self.relay_window {
            None => config.window_packets,
            Some(packets) => Some(usize::from(packets)).filter(|&packets| packets > 0),
        };
        let queue_packets = self.queue_packets.into();
        RelayConfig { queue_packets, window_packets, announce_every, ..config }
    }

    /// A hub's configuration: its members, and the networks that they lead to.
    pub(super) fn hub_config(&self, node: usize, left_out: &[bool]) -> HubConfig {
        HubConfig {
            station: self.config(node),
            neighbours: self.networks(node, left_out),
            own: vec![packet::address(node).into()],
            one_channel: self.one_channel,
        }
    }

    /// The station of a node that starts now; a hub omits removed members.
    pub(super) fn start(
        &self,
        node: usize,
        left_out: &[bool],
        entropy: [u8; 32],
        now: Time,
    ) -> Result<AnyStation, ConfigError> {
        let count = usize::from(self.nodes);
        let is_hub = match self.kind {
            MeshKind::HubStar => node == 0,
            MeshKind::HubRow => node > 0 && node + 1 < count,
            MeshKind::RelayRow => {
                let HubConfig { station, neighbours, own, .. } = self.hub_config(node, left_out);
                let (relay, ends) = (self.relay_config(), self.ends(node));
                let config =
                    RelayStationConfig { station, relay, neighbours, own, broadcast: false, ends };
                return Ok(RelayStation::new(config, entropy, now)?.into());
            }
        };
        if !is_hub {
            return Ok(Station::new(self.config(node), entropy, now)?.into());
        }
        Ok(Hub::new(self.hub_config(node, left_out), entropy, now)?.into())
    }
}
