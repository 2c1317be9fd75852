//! The configuration file of a node.
//!
//! Three steps: names are checked against those in `file.rs`, serde reads the values, and `check`
//! finds values that are invalid although their types are right. All errors point to their place in
//! the file.

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

/// Protocol number of our frames: the first of the two that IEEE 802 reserves for local
/// experiments.
pub const ETHERTYPE_DEFAULT: u16 = 0x88B5;
/// Longest IP packet of an underlay whose MTU is unknown, bytes.
pub const UNDERLAY_MTU_DEFAULT: usize = 1500;
/// IPv6 header without extensions, and UDP header, bytes.
pub(crate) const UDP_HEADERS: usize = 40 + 8;
/// Shortest payload of an Ethernet frame, bytes; shorter ones are padded in transit.
pub const ETHERNET_PAYLOAD_MIN: usize = 46;
/// Smallest MTU with which IPv6 works, bytes (RFC 8200, Section 5).
const IPV6_MTU_MIN: usize = 1280;
/// Smallest MTU of a TUN device, bytes (RFC 791, Section 3.2).
const IPV4_MTU_MIN: usize = 68;

/// A configuration that was read and is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeConfig {
    /// This station.
    pub id: StationId,
    /// Its role.
    pub role: Role,
    pub(crate) security: Security,
    /// Coding parameters.
    pub coding: CodingParams,
    /// Where erasure ratios come from.
    pub link_errors: LinkErrors,
    /// Of a relay: what it combines, and limits of what waits.
    pub relay: Option<RelayConfig>,
    /// Of a relay: other ends, with which packets carry tags.
    pub ends: Vec<RelayEnd>,
    /// Bounds.
    pub limits: LimitsConfig,
    /// The TUN device; a helper has none.
    pub tun: Option<TunConfig>,
    /// The underlay.
    pub underlay: UnderlayConfig,
    /// The peers, in the file's order.
    pub peers: Vec<PeerConfig>,
    /// Losses generated on reception, for experiments.
    pub synthetic_loss: SyntheticLossConfig,
    /// Name of the group that may query the node, besides root; `None`: `corridor`, if that group
    /// exists.
    pub control_group: Option<String>,
    /// Warnings: no errors, but worth a look.
    pub warnings: Vec<Diagnostic>,
    document: Document,
}

/// Bounds of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Maximum number of packets in the ingress queue.
    pub ingress_packets: usize,
    /// Maximum number of bytes in ingress queues and windows, or what corresponds to them,
    /// together; `None`: as [`StationConfig::memory_default`] defines.
    pub memory_bytes: Option<usize>,
}

/// The TUN device of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct TunConfig {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<IpNet>,
    /// Networks routed through it.
    pub routes: Vec<IpNet>,
    /// An MTU lower than the station could carry, bytes.
    pub mtu: Option<usize>,
    /// Exchange super-packets with the kernel: faster, with no other effect.
    pub offload: bool,
}

impl TunConfig {
    /// Its default routes, or all of its other routes.
    pub(crate) fn routes_of(&self, default: bool) -> Vec<IpNet> {
        let wanted = |route: &&IpNet| (route.prefix_len() == 0) == default;
        self.routes.iter().filter(wanted).copied().collect()
    }

    /// Whether one of its addresses is link-local.
    pub(crate) fn has_link(&self) -> bool {
        self.addresses.iter().any(|of| match of.addr() {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        })
    }

    /// Where in the file IPv6 is used, if it is.
    fn first_ipv6(&self) -> Option<String> {
        let find = |networks: &[IpNet]| networks.iter().position(|net| net.addr().is_ipv6());
        let address = find(&self.addresses).map(|at| format!("tun.addresses.{at}"));
        address.or_else(|| find(&self.routes).map(|at| format!("tun.routes.{at}")))
    }
}

/// An underlay: what carries the frames.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderlayConfig {
    /// Its kind.
    pub kind: UnderlayKind,
    /// Longest IP packet (UDP) or payload (Ethernet) to send, bytes; if absent, the system's.
    pub mtu: Option<usize>,
    /// Pacing rate, bits per second.
    pub rate_bps: Option<u64>,
}

impl UnderlayConfig {
    /// Source of the counts of the interface's retransmissions, and that interface, if any.
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
    /// Frames with our own protocol number on an interface.
    Ethernet {
        /// Name of the interface.
        interface: String,
        /// The protocol number.
        ethertype: u16,
        /// Whether to bypass the interface's queue, so that a full driver is noticed at once.
        qdisc_bypass: bool,
        /// Whether a relay's frames are broadcast.
        broadcast: bool,
        /// Of a relay: source of the counts of the interface's retransmissions.
        retries: Option<RetriesSource>,
    },
    /// UDP datagrams.
    Udp {
        /// Address to listen on; port 0 is any port.
        listen: SocketAddr,
    },
}

/// A station with which this node communicates.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerConfig {
    /// Its number.
    pub id: StationId,
    /// Its Ethernet address, if configured.
    pub mac: Option<Mac>,
    /// Its UDP endpoint, if configured.
    pub endpoint: Option<Endpoint>,
    /// The networks behind it; `None`: all.
    pub allowed: Option<Vec<IpNet>>,
}

/// Losses generated on reception.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SyntheticLossConfig {
    /// Seed of the losses.
    pub seed: u64,
    /// From which station, and the share of its frames that is lost, 0 to 1.
    pub links: Vec<(StationId, f64)>,
}

impl NodeConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// The file, or a key file that it names, cannot be read; or its contents are invalid.
    pub fn load(path: &Path) -> Result<Self, NodeError> {
        let document = secret::read(path)?;
        let file: File = document.read()?;
        let security = secret::load(&file, path, &document)?;
        let ends = secret::load_ends(&file, &security, path, &document)?;
        // From here on nothing needs the text of the key.
        let config = check::check(file, security, &document.without_secrets())?;
        Ok(NodeConfig { ends, ..config })
    }

    /// The station's configuration, on an underlay with these frame lengths in bytes.
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

    /// A station with this configuration, and the MTU of its TUN device in bytes (0 for a helper).
    ///
    /// # Errors
    /// An invalid value, at its place in the file.
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

    /// A hub's configuration of its peers.
    fn hub(&self, station: StationConfig, neighbours: Vec<(StationId, Vec<IpNet>)>) -> HubConfig {
        let one_channel = matches!(self.underlay.kind, UnderlayKind::Ethernet { .. });
        HubConfig { station, neighbours, own: self.own_addresses(), one_channel }
    }

    /// Replaces the peers of a running hub. Returns whether the station is one.
    ///
    /// # Errors
    /// An invalid value, at its place in the file; nothing has changed then.
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

    /// Checks that the configuration is valid on an underlay with frames of this length, in bytes.
    /// Returns the MTU of its TUN device, in bytes.
    ///
    /// # Errors
    /// An invalid value, at its place in the file.
    pub fn check(&self, frame_len_max: usize) -> Result<usize, Box<Diagnostic>> {
        // This station never runs, so nothing that it encrypts is ever sent.
        self.station(frame_len_max, 0, [0; 32], Time::ZERO).map(|(_, mtu)| mtu)
    }

    /// The networks of each peer, if packets are assigned to peers by them.
    pub(crate) fn networks(&self) -> Option<Vec<(StationId, Vec<IpNet>)>> {
        self.peers.iter().map(|peer| Some((peer.id, peer.allowed.clone()?))).collect()
    }

    /// Whether a station is among the peers.
    pub(crate) fn has_peer(&self, id: StationId) -> bool {
        self.peers.iter().any(|peer| peer.id == id)
    }

    /// Addresses of this host in the tunnel.
    pub(crate) fn own_addresses(&self) -> Vec<IpAddr> {
        let addresses = self.tun.iter().flat_map(|tun| &tun.addresses);
        let mut addresses: Vec<_> = addresses.map(IpNet::addr).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// Whether another configuration has the same keys: the group's secret, or the station's own
    /// key and those of the peers that both configurations have.
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

    /// The same configuration with the peers of another one, and their keys.
    pub(crate) fn with_peers_of(&self, other: &NodeConfig) -> NodeConfig {
        let NodeConfig { peers, security, role, document, .. } = other.clone();
        NodeConfig { peers, security, role, document, ..self.clone() }
    }

    /// The MTU to set on the TUN device if the station carries packets of `most` bytes. IPv6 needs
    /// a minimum: below it, longer packets are refused one by one.
    pub(crate) fn device_mtu(&self, carried: usize) -> usize {
        let Some(tun) = &self.tun else { return 0 };
        let mtu = tun.mtu.unwrap_or(carried).min(carried);
        if tun.first_ipv6().is_some() { mtu.max(IPV6_MTU_MIN) } else { mtu }
    }

    /// Shortest frame that carries what the TUN device has to carry, bytes.
    pub(crate) fn frame_len_needed(&self, station: &AnyStation) -> usize {
        let v6 = self.tun.as_ref().and_then(TunConfig::first_ipv6);
        v6.and_then(|_| station.frame_len_for(IPV6_MTU_MIN)).unwrap_or(0)
    }

    /// Name of the role as in the file.
    pub fn role_name(&self) -> &'static str {
        match self.role {
            Role::Endpoint { .. } => "endpoint",
            Role::Helper { .. } => "helper",
            Role::Plain { .. } => "plain",
            Role::Relay => "relay",
        }
    }

    /// The MTU of the TUN device if the station could carry `most` bytes.
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
    /// The broadcast address.
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

/// Where the number of an interface's retransmissions comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetriesSource {
    /// The kernel, for a radio's driver.
    Nl80211,
    /// A file that is continuously rewritten.
    File(PathBuf),
}

/// The schema of a configuration file, from the types that read it.
pub fn schema() -> Schema {
    Schema::of::<File>()
}

/// An error of the station's own check, at its place.
fn locate(document: &Document, error: &ConfigError) -> Box<Diagnostic> {
    let path = match error.field {
        // If two peers have the same number, the second is reported.
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
