//! The configuration file of a node.
//!
//! Three steps: names are checked against those that `file.rs` has, serde reads the values, and
//! `check` finds what cannot be although every value is of its type. All errors point at the place
//! in the file.

mod check;
mod ends;
#[cfg(test)]
mod ends_tests;
mod file;
mod hub;
mod relay;
#[cfg(test)]
mod relay_tests;
mod secret;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use corridor_base::Time;
use corridor_document::{Diagnostic, Document, Problem, Schema};
use corridor_proto::bounds::MEMORY_DEFAULT;
use corridor_proto::relay::RelayConfig;
use corridor_proto::{
    AnyStation, Clocks, CodingParams, ConfigError, Hub, HubConfig, LinkErrors, PeerKey, RelayEnd,
    RelayStation, RelayStationConfig, Role, Security, Station, StationConfig, StationId,
};
use ipnet::IpNet;

use crate::error::NodeError;
use crate::names::Endpoint;
use file::File;
pub use secret::{generate_key, generate_psk, public_key};

/// Protocol number of our frames: the first of the two that IEEE 802 leaves for local experiments.
pub const ETHERTYPE_DEFAULT: u16 = 0x88B5;
/// Longest IP packet of an underlay of which nothing is known, bytes.
pub const UNDERLAY_MTU_DEFAULT: usize = 1500;
/// IPv6 header without extensions, and UDP header, bytes.
pub(crate) const UDP_HEADERS: usize = 40 + 8;
/// Shortest payload of an Ethernet frame; shorter ones are padded on the way, bytes.
pub const ETHERNET_PAYLOAD_MIN: usize = 46;
/// Least MTU with which IPv6 works, bytes (RFC 8200, Section 5).
const IPV6_MTU_MIN: usize = 1280;
/// Least MTU of a TUN device, bytes (RFC 791, Section 3.2).
const IPV4_MTU_MIN: usize = 68;

/// A configuration that was read and found sound.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// This station.
    pub id: StationId,
    /// What it does.
    pub role: Role,
    pub(crate) security: Security,
    /// Coding parameters.
    pub coding: CodingParams,
    /// Where the erasure ratios come from.
    pub link_errors: LinkErrors,
    /// Of a relay: what is combined, and what waits for it.
    pub relay: Option<RelayConfig>,
    /// Of a relay: other ends, with whom packets have tags.
    pub ends: Vec<RelayEnd>,
    /// Bounds.
    pub limits: LimitsConfig,
    /// The TUN device; a helper has none.
    pub tun: Option<TunConfig>,
    /// What carries the frames.
    pub underlay: UnderlayConfig,
    /// The stations around, in the file's order.
    pub peers: Vec<PeerConfig>,
    /// Losses made at reception, for experiments.
    pub synthetic_loss: SyntheticLossConfig,
    /// Name of the group that may ask how the node is, beside root; `None`: `corridor`, if there is
    /// such a group.
    pub control_group: Option<String>,
    /// What is no error, but should be looked at.
    pub warnings: Vec<Diagnostic>,
    document: Document,
}

/// Bounds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Packets the ingress queue holds.
    pub ingress_packets: usize,
    /// Bytes that ingress queues and windows, or what stands for them, may hold together; `None`:
    /// as [`StationConfig::memory_default`] says.
    pub memory_bytes: Option<usize>,
}

/// The TUN device of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct TunConfig {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Networks to be reached through it.
    pub routes: Vec<IpNet>,
    /// An MTU below what the station could carry, bytes.
    pub mtu: Option<usize>,
    /// Let the kernel hand over super-packets and take them: faster, and nothing else changes.
    pub offload: bool,
}

impl TunConfig {
    /// Those of its routes that lead everything, or everything but those.
    pub(crate) fn routes_of(&self, default: bool) -> Vec<IpNet> {
        let wanted = |route: &&IpNet| (route.prefix_len() == 0) == default;
        self.routes.iter().filter(wanted).copied().collect()
    }

    /// Whether one of its addresses is of its link alone.
    pub(crate) fn has_link(&self) -> bool {
        self.addresses.iter().any(|of| match of.addr() {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        })
    }

    /// Where in the file IPv6 comes in, if it does.
    fn first_ipv6(&self) -> Option<String> {
        let find = |networks: &[IpNet]| networks.iter().position(|net| net.addr().is_ipv6());
        let address = find(&self.addresses).map(|at| format!("tun.addresses.{at}"));
        address.or_else(|| find(&self.routes).map(|at| format!("tun.routes.{at}")))
    }
}

/// What carries the frames.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderlayConfig {
    /// Of which kind.
    pub kind: UnderlayKind,
    /// Longest IP packet (UDP) or payload (Ethernet) to send, bytes; else what the system says.
    pub mtu: Option<usize>,
    /// Pace, bits per second.
    pub rate_bps: Option<u64>,
}

impl UnderlayConfig {
    /// Who tells how often which interface sends again, if anybody does.
    pub(crate) fn retries(&self) -> Option<(&RetriesSource, &str)> {
        match &self.kind {
            UnderlayKind::Ethernet { retries, interface, .. } => {
                Some((retries.as_ref()?, interface))
            }
            UnderlayKind::Udp { .. } => None,
        }
    }
}

/// The kinds of underlays.
#[derive(Clone, Debug, PartialEq)]
pub enum UnderlayKind {
    /// Frames of our own protocol number on an interface.
    Ethernet {
        /// Name of the interface.
        interface: String,
        /// The protocol number.
        ethertype: u16,
        /// Whether to go past the queue of the interface, so that a full driver shows at once.
        qdisc_bypass: bool,
        /// Whether a relay's frames are addressed to all stations in reach.
        broadcast: bool,
        /// Of a relay: who tells how often the interface sends again.
        retries: Option<RetriesSource>,
    },
    /// Datagrams.
    Udp {
        /// Where to listen; port 0 is any port.
        listen: SocketAddr,
    },
}

/// A station this node speaks with.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerConfig {
    /// Its number.
    pub id: StationId,
    /// Its Ethernet address, if it was told.
    pub mac: Option<Mac>,
    /// Where it is to be found over UDP, if it was told.
    pub endpoint: Option<Endpoint>,
    /// Networks that it has; `None`: everything.
    pub allowed: Option<Vec<IpNet>>,
}

/// Losses made at reception.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyntheticLossConfig {
    /// Seed of the losses.
    pub seed: u64,
    /// From whom, and which share of the frames is lost, 0 to 1.
    pub links: Vec<(StationId, f64)>,
}

impl NodeConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// The file, or one with a key that it names, cannot be read; or what it says cannot be.
    pub fn load(path: &Path) -> Result<Self, NodeError> {
        let document = secret::read(path)?;
        let file: File = document.read()?;
        let security = secret::load(&file, path, &document)?;
        let ends = secret::load_ends(&file, &security, path, &document)?;
        // From here on nothing needs the text of the key.
        let config = check::check(file, security, &document.without_secrets())?;
        Ok(NodeConfig { ends, ..config })
    }

    /// What the station is told, on an underlay with these lengths of frames in bytes.
    fn station_config(&self, frame_len_max: usize, frame_len_min: usize) -> StationConfig {
        let config = StationConfig {
            id: self.id,
            role: self.role,
            security: self.security.clone(),
            coding: self.coding,
            link_errors: self.link_errors,
            ingress_packets: self.limits.ingress_packets,
            frame_len_max,
            frame_len_min,
            memory_bytes: self.limits.memory_bytes.unwrap_or(MEMORY_DEFAULT),
            rate_bps: self.underlay.rate_bps,
        };
        match self.limits.memory_bytes {
            Some(_) => config,
            None => {
                let peers = self.networks().map_or(1, |networks| networks.len());
                StationConfig { memory_bytes: config.memory_default(peers), ..config }
            }
        }
    }

    /// A station of this configuration, and the MTU of its TUN device in bytes (0 for a helper).
    ///
    /// # Errors
    /// A value that cannot be, at its place in the file.
    pub fn station(
        &self,
        frame_len_max: usize,
        frame_len_min: usize,
        entropy: [u8; 32],
        clocks: impl Into<Clocks>,
    ) -> Result<(AnyStation, usize), Box<Diagnostic>> {
        let clocks = clocks.into();
        let station = self.station_config(frame_len_max, frame_len_min);
        let made = match (self.relay, self.networks()) {
            (Some(relay), neighbours) => {
                let broadcast = match self.underlay.kind {
                    UnderlayKind::Ethernet { broadcast, .. } => broadcast,
                    UnderlayKind::Udp { .. } => false,
                };
                let config = RelayStationConfig {
                    station,
                    relay,
                    neighbours: neighbours.unwrap_or_default(),
                    own: self.own_addresses(),
                    broadcast,
                    ends: self.ends.clone(),
                };
                RelayStation::new(config, entropy, clocks).map(AnyStation::from)
            }
            (None, Some(neighbours)) => {
                Hub::new(self.hub(station, neighbours), entropy, clocks).map(AnyStation::from)
            }
            (None, None) => Station::new(station, entropy, clocks).map(AnyStation::from),
        };
        let station = made.map_err(|error| locate(&self.document, &error))?;
        let mtu = self.tunnel_mtu(station.tunnel_mtu())?;
        Ok((station, mtu))
    }

    /// What a hub is told.
    fn hub(&self, station: StationConfig, neighbours: Vec<(StationId, Vec<IpNet>)>) -> HubConfig {
        let one_channel = matches!(self.underlay.kind, UnderlayKind::Ethernet { .. });
        HubConfig { station, neighbours, own: self.own_addresses(), one_channel }
    }

    /// Tells a hub that runs who its peers are. Whether the station is one.
    ///
    /// # Errors
    /// A value that cannot be, at its place in the file; nothing has changed then.
    pub(crate) fn set_neighbours(
        &self,
        hub: &mut AnyStation,
        (frame_len_max, frame_len_min): (usize, usize),
        entropy: [u8; 32],
        now: Time,
    ) -> Result<bool, Box<Diagnostic>> {
        let Some(neighbours) = self.networks() else { return Ok(false) };
        let station = self.station_config(frame_len_max, frame_len_min);
        hub.set_neighbours(&self.hub(station, neighbours), entropy, now)
            .map_err(|error| locate(&self.document, &error))
    }

    /// Whether the configuration holds on an underlay with frames of this length, bytes. The MTU
    /// of its TUN device, bytes.
    ///
    /// # Errors
    /// A value that cannot be, at its place in the file.
    pub fn check(&self, frame_len_max: usize) -> Result<usize, Box<Diagnostic>> {
        // This station never runs, so nothing it seals is ever sent.
        self.station(frame_len_max, 0, [0; 32], Time::ZERO).map(|(_, mtu)| mtu)
    }

    /// The networks of each peer, if packets are told apart by them.
    pub(crate) fn networks(&self) -> Option<Vec<(StationId, Vec<IpNet>)>> {
        self.peers.iter().map(|peer| Some((peer.id, peer.allowed.clone()?))).collect()
    }

    /// Whether a station is among the peers.
    pub(crate) fn has_peer(&self, id: StationId) -> bool {
        self.peers.iter().any(|peer| peer.id == id)
    }

    /// Addresses of this host inside the tunnel.
    pub(crate) fn own_addresses(&self) -> Vec<IpAddr> {
        let addresses = self.tun.iter().flat_map(|tun| &tun.addresses);
        let mut addresses: Vec<_> = addresses.map(IpNet::addr).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Whether another configuration has the same keys: the secret of the group, or the station's
    /// own key and those of the peers that both have.
    pub(crate) fn has_keys_of(&self, other: &NodeConfig) -> bool {
        let (Security::Keys(own), Security::Keys(others)) = (&self.security, &other.security)
        else {
            return self.security == other.security;
        };
        let is_same = |key: &PeerKey| {
            let of_peer = others.peers.iter().find(|other| other.station == key.station);
            of_peer.is_none_or(|other| other == key)
        };
        own.private == others.private && own.peers.iter().all(is_same)
    }

    /// The same with the peers, and their keys, of another configuration.
    pub(crate) fn with_peers_of(&self, other: &NodeConfig) -> NodeConfig {
        let NodeConfig { peers, security, role, document, .. } = other.clone();
        NodeConfig { peers, security, role, document, ..self.clone() }
    }

    /// The MTU to give the TUN device when the station carries packets of so many bytes. IPv6 is
    /// not to be had with less than it needs: then longer packets are refused one by one.
    pub(crate) fn device_mtu(&self, carried: usize) -> usize {
        let Some(tun) = &self.tun else { return 0 };
        let mtu = tun.mtu.unwrap_or(carried).min(carried);
        if tun.first_ipv6().is_some() { mtu.max(IPV6_MTU_MIN) } else { mtu }
    }

    /// Shortest frame that carries what the TUN device must be able to carry, bytes.
    pub(crate) fn frame_len_needed(&self, station: &AnyStation) -> usize {
        let v6 = self.tun.as_ref().and_then(TunConfig::first_ipv6);
        v6.and_then(|_| station.frame_len_for(IPV6_MTU_MIN)).unwrap_or(0)
    }

    /// Name of the role, as the file spells it.
    pub fn role_name(&self) -> &'static str {
        match self.role {
            Role::Endpoint { .. } => "endpoint",
            Role::Helper { .. } => "helper",
            Role::Plain { .. } => "plain",
            Role::Relay => "relay",
        }
    }

    /// The MTU of the TUN device when the station could carry `most` bytes.
    fn tunnel_mtu(&self, most: usize) -> Result<usize, Box<Diagnostic>> {
        let Some(tun) = &self.tun else { return Ok(0) };
        let mtu = tun.mtu.unwrap_or(most);
        let problem = if mtu > most || mtu < IPV4_MTU_MIN {
            let path = if tun.mtu.is_some() { "tun.mtu" } else { "coding.symbol_size" };
            Problem::new(path, format!("tun.mtu = {mtu}: expected {IPV4_MTU_MIN} to {most} bytes"))
                .with_help("coding.symbol_size and the underlay's MTU determine the maximum")
        } else if let Some(path) = tun.first_ipv6()
            && mtu < IPV6_MTU_MIN
        {
            let message =
                format!("IPv6 needs an MTU of {IPV6_MTU_MIN} bytes, the tunnel has {mtu}");
            Problem::new(path, message)
                .with_help("raise tun.mtu or coding.symbol_size, or remove IPv6")
        } else {
            return Ok(mtu);
        };
        Err(self.document.locate(problem))
    }
}

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations in reach.
    pub const BROADCAST: Mac = Mac([0xFF; 6]);
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl FromStr for Mac {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a unicast MAC address";
        let mut mac = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut mac {
            let part = parts.next().filter(|part| part.len() == 2).ok_or(EXPECTED)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| EXPECTED)?;
        }
        let group = mac[0] & 1 == 1;
        if parts.next().is_some() || group || mac == [0; 6] { Err(EXPECTED) } else { Ok(Mac(mac)) }
    }
}

/// Who tells how often an interface had to send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetriesSource {
    /// The kernel, of a radio's driver.
    Nl80211,
    /// A file that is rewritten all the time.
    File(PathBuf),
}

/// What a configuration file may hold, as the types that read it say.
pub fn schema() -> Schema {
    Schema::of::<File>()
}

/// An error of the station's own check, at its place.
fn locate(document: &Document, error: &ConfigError) -> Box<Diagnostic> {
    let path = match error.field {
        // Of two peers with one number the second is the one that is wrong.
        "peer.id" => (0..)
            .map(|index| format!("peer.{index}.id"))
            .take_while(|path| document.given(path).is_some())
            .filter(|path| document.given(path) == Some(&error.given))
            .last()
            .unwrap_or_else(|| "peer".into()),
        "underlay MTU" if document.given("underlay.mtu").is_some() => "underlay.mtu".into(),
        "underlay MTU" => "underlay".into(),
        field => field.to_owned(),
    };
    document.locate(Problem::new(path, error.to_string()))
}
