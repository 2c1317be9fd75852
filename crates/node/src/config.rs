//! The configuration file of a node.
//!
//! Three steps: names are checked against `keys.rs`, serde reads the values, and `check` finds what
//! cannot be although every value is of its type. All errors point at the place in the file.

mod check;
mod diagnose;
mod keys;
#[cfg(test)]
mod tests;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::str::FromStr;

use corridor_base::Time;
use corridor_proto::{
    CodingParams, CodingTable, LinkErrors, Role, Station, StationConfig, StationId,
};
use ipnet::IpNet;
use serde::{Deserialize, Deserializer};

pub use diagnose::ConfigDiagnostic;
use diagnose::{Document, Problem};

use crate::error::NodeError;

/// Protocol number of our frames: the first of the two that IEEE 802 leaves for local experiments.
pub const ETHERTYPE_DEFAULT: u16 = 0x88B5;
/// Longest IP packet of an underlay of which nothing is known, bytes.
pub const UNDERLAY_MTU_DEFAULT: usize = 1500;
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
    psk: Psk,
    /// Coding parameters.
    pub coding: CodingParams,
    /// Where the erasure ratios come from.
    pub link_errors: LinkErrors,
    /// Packets the ingress queue holds.
    pub ingress_packets: usize,
    /// The TUN device; a helper has none.
    pub tun: Option<TunConfig>,
    /// What carries the frames.
    pub underlay: UnderlayConfig,
    /// The stations around, in the file's order.
    pub peers: Vec<PeerConfig>,
    /// Losses made at reception, for experiments.
    pub synthetic_loss: SyntheticLossConfig,
    /// What is no error, but should be looked at.
    pub warnings: Vec<String>,
    document: Document,
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
    /// Its UDP address, if it was told.
    pub endpoint: Option<SocketAddr>,
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
    /// The file, or the `psk_file` it names, cannot be read; or what it says cannot be.
    pub fn load(path: &Path) -> Result<Self, NodeError> {
        let text = read(path)?;
        let document = Document { name: path.display().to_string(), text };
        let file: File = document.read()?;
        let mut warnings = Vec::new();
        let psk = load_psk(&file.security, path, &document, &mut warnings)?;
        let config = check::check(file, psk, warnings, &document)?;
        Ok(config)
    }

    /// What the station is told, on an underlay with these lengths of frames in bytes.
    pub fn station_config(&self, frame_len_max: usize, frame_len_min: usize) -> StationConfig {
        StationConfig {
            id: self.id,
            role: self.role,
            psk: self.psk.0,
            coding: self.coding,
            link_errors: self.link_errors,
            ingress_packets: self.ingress_packets,
            frame_len_max,
            frame_len_min,
            rate_bps: self.underlay.rate_bps,
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
        now: Time,
    ) -> Result<(Station, usize), Box<ConfigDiagnostic>> {
        let config = self.station_config(frame_len_max, frame_len_min);
        let station = Station::new(config, entropy, now)
            .map_err(|error| self.document.locate_config_error(&error))?;
        let mtu = self.tunnel_mtu(station.tunnel_mtu())?;
        Ok((station, mtu))
    }

    /// Whether the configuration holds on an underlay with frames of this length, bytes. The MTU
    /// of its TUN device, bytes.
    ///
    /// # Errors
    /// A value that cannot be, at its place in the file.
    pub fn check(&self, frame_len_max: usize) -> Result<usize, Box<ConfigDiagnostic>> {
        // This station never runs, so nothing it seals is ever sent.
        self.station(frame_len_max, 0, [0; 32], Time::ZERO).map(|(_, mtu)| mtu)
    }

    /// Name of the role, as the file spells it.
    pub fn role_name(&self) -> &'static str {
        match self.role {
            Role::Endpoint { .. } => "endpoint",
            Role::Helper { .. } => "helper",
            Role::Plain { .. } => "plain",
        }
    }

    /// The MTU of the TUN device when the station could carry `most` bytes.
    fn tunnel_mtu(&self, most: usize) -> Result<usize, Box<ConfigDiagnostic>> {
        let Some(tun) = &self.tun else { return Ok(0) };
        let mtu = tun.mtu.unwrap_or(most);
        let problem = if mtu > most || mtu < IPV4_MTU_MIN {
            let path = if tun.mtu.is_some() { "tun.mtu" } else { "coding.symbol_size" };
            Problem::new(path, format!("tun.mtu = {mtu}: expected {IPV4_MTU_MIN} to {most} bytes"))
                .with_help("coding.symbol_size and the underlay's MTU decide the most there can be")
        } else if let Some(path) = tun.first_ipv6()
            && mtu < IPV6_MTU_MIN
        {
            let message =
                format!("IPv6 needs an MTU of {IPV6_MTU_MIN} bytes, the tunnel has {mtu}");
            Problem::new(path, message)
                .with_help("raise tun.mtu or coding.symbol_size, or leave IPv6 out")
        } else {
            return Ok(mtu);
        };
        Err(self.document.locate(problem))
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    station: StationTable,
    security: SecurityTable,
    tun: Option<TunTable>,
    underlay: UnderlayTable,
    peer: Vec<PeerTable>,
    #[serde(default)]
    coding: CodingTable,
    #[serde(default)]
    link_errors: LinkErrorsTable,
    #[serde(default)]
    synthetic_loss: SyntheticLossTable,
    #[serde(default)]
    limits: LimitsTable,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StationTable {
    id: u8,
    role: RoleName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RoleName {
    Endpoint,
    Helper,
    Plain,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecurityTable {
    psk: Option<Psk>,
    psk_file: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TunTable {
    #[serde(default = "tun_name")]
    name: InterfaceName,
    #[serde(default)]
    addresses: Vec<IpNet>,
    #[serde(default)]
    routes: Vec<IpNet>,
    mtu: Option<u16>,
    #[serde(default = "tun_offload")]
    offload: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnderlayTable {
    kind: KindName,
    interface: Option<InterfaceName>,
    ethertype: Option<u16>,
    qdisc_bypass: Option<bool>,
    listen: Option<SocketAddr>,
    mtu: Option<u16>,
    rate_bps: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindName {
    Ethernet,
    Udp,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerTable {
    id: u8,
    role: RoleName,
    mac: Option<Mac>,
    endpoint: Option<SocketAddr>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkErrorsTable {
    mode: Option<ModeName>,
    e1: Option<f64>,
    e2: Option<f64>,
    e3: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeName {
    Measured,
    Fixed,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SyntheticLossTable {
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    link: Vec<LossLinkTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LossLinkTable {
    from: u8,
    ratio: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsTable {
    ingress_packets: Option<usize>,
}

fn tun_offload() -> bool {
    true
}

fn tun_name() -> InterfaceName {
    InterfaceName("corridor0".into())
}

/// The secret of the group. Never shown.
#[derive(Clone, PartialEq, Eq)]
struct Psk([u8; 32]);

impl std::fmt::Debug for Psk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Psk(..)")
    }
}

impl FromStr for Psk {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected 64 hexadecimal digits";
        let digits = text.trim().as_bytes();
        let mut key = [0; 32];
        if digits.len() != 2 * key.len() {
            return Err(EXPECTED);
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(EXPECTED);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Ok(Psk(key))
    }
}

/// The name of a network interface, as the kernel would take it.
#[derive(Debug)]
struct InterfaceName(String);

impl FromStr for InterfaceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The kernel reads "%d" as a pattern to number interfaces by.
        let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '/' | ':' | '%');
        let known = (1..=15).contains(&text.len()) && !matches!(text, "." | "..");
        if known && text.chars().all(plain) {
            Ok(InterfaceName(text.to_owned()))
        } else {
            Err("expected an interface name of 1 to 15 characters")
        }
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
        const EXPECTED: &str = "expected an Ethernet address of one station";
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

/// Reads what is written as a string in the file by its [`FromStr`].
macro_rules! deserialize_from_str {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

deserialize_from_str!(Psk, InterfaceName, Mac);

fn read(path: &Path) -> Result<String, NodeError> {
    fs::read_to_string(path)
        .map_err(|source| NodeError::ReadConfig { path: path.to_owned(), source })
}

/// The key, from the configuration itself or from the file it names (relative to its own place).
fn load_psk(
    table: &SecurityTable,
    config: &Path,
    document: &Document,
    warnings: &mut Vec<String>,
) -> Result<Psk, NodeError> {
    let problem = match (&table.psk, &table.psk_file) {
        (Some(psk), None) => {
            warn_if_readable(config, warnings);
            return Ok(psk.clone());
        }
        (None, Some(file)) => {
            let path = config.parent().unwrap_or(Path::new("")).join(file);
            let text = read(&path)?;
            warn_if_readable(&path, warnings);
            match text.parse() {
                Ok(psk) => return Ok(psk),
                Err(expected) => Problem::new(
                    "security.psk_file",
                    format!("security.psk_file: {} is not a key: {expected}", path.display()),
                ),
            }
        }
        (Some(_), Some(_)) => Problem::new(
            "security.psk_file",
            "security has both psk and psk_file: expected one of them",
        ),
        (None, None) => {
            Problem::new("security", "security has neither psk nor psk_file: expected one of them")
        }
    };
    Err(document.locate(problem).into())
}

fn warn_if_readable(path: &Path, warnings: &mut Vec<String>) {
    let others = fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o004 != 0);
    if others {
        let path = path.display();
        warnings.push(format!("{path} holds a key, and all users can read it: chmod 600 {path}"));
    }
}
