//! The file as it is written: what its keys are, what they mean, and what they may be.
//!
//! Doc comments and ranges are what `docs/configuration.md`, the JSON schema and the errors say.

use std::net::SocketAddr;
use std::str::FromStr;

use corridor_document::rate::{self, Bytes, Rate};
use corridor_proto::{CodingTable, PSK_LEN, Psk, PublicKey, RelayTable};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use super::{Mac, RetriesSource};
use crate::names::Endpoint;

/// Configuration of a Corridor node.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(title = "Corridor node")]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// This station.
    pub(super) station: StationTable,
    /// Keys: either the group's pre-shared key or this station's private key.
    pub(super) security: SecurityTable,
    /// The TUN device that carries this host's packets; a helper has none.
    pub(super) tun: Option<TunTable>,
    /// The network that carries the frames.
    pub(super) underlay: UnderlayTable,
    /// Peers: the other end and, optionally, a helper; or the peers of a hub or the neighbours of a
    /// relay, each with its `allowed` networks.
    #[schemars(extend("x-expected" = "one table per peer: [[peer]]"))]
    pub(super) peer: Vec<PeerTable>,
    /// Relays: which packets are combined and how long they are held. Everything is optional.
    pub(super) relay: Option<RelayTable>,
    /// Relays: other end stations with end-to-end authentication. Packets between this host and
    /// theirs carry a tag that only the two ends can make, across any relays, which need no
    /// configuration for it. Both ends must list each other.
    #[serde(default)]
    #[schemars(extend("x-expected" = "one table per end: [[end]]"))]
    pub(super) end: Vec<EndTable>,
    /// Coding parameters. Everything is optional; redundancy adapts to the measured loss.
    #[serde(default)]
    pub(super) coding: CodingTable,
    /// Source of block mode's erasure ratios.
    #[serde(default)]
    pub(super) link_errors: LinkErrorsTable,
    /// Artificial frame loss at the receiver, for experiments.
    #[serde(default)]
    pub(super) synthetic_loss: SyntheticLossTable,
    /// Bounds.
    #[serde(default)]
    pub(super) limits: LimitsTable,
    /// Access to the node's status.
    #[serde(default)]
    pub(super) control: ControlTable,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StationTable {
    /// Number of this station, unique within its group.
    #[schemars(range(min = 1, max = 65535))]
    #[schemars(extend("x-expected" = "a station number from 1 to 65535"))]
    pub(super) id: u16,
    /// Role of this station.
    pub(super) role: RoleName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleName {
    /// An end of the tunnel: encodes its host's packets and decodes those of the other end.
    Endpoint,
    /// Overhears two endpoints on a shared channel and recodes; has no traffic of its own.
    Helper,
    /// Forwards packets without coding, for comparison.
    Plain,
    /// Forwards packets between neighbouring relays, and XORs packets of opposite flows.
    Relay,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecurityTable {
    /// Pre-shared key of the group. Only the owner may be able to read this file then (chmod 600).
    #[schemars(with = "Option<String>", extend("x-expected" = "64 hexadecimal digits"))]
    pub(super) psk: Option<PskText>,
    /// File with the pre-shared key of the group, as printed by `corridor genpsk`; the path is
    /// relative to this file. Only the owner may be able to read it (chmod 600).
    #[schemars(extend("x-expected" = "the path of a file with 64 hexadecimal digits"))]
    pub(super) psk_file: Option<String>,
    /// Instead of a pre-shared key: file with this station's private key, as printed by `corridor
    /// genkey`; the path is relative to this file. Only the owner may be able to read it (chmod
    /// 600). Every peer then needs a `public_key`, including a helper and its two ends.
    #[schemars(extend("x-expected" = "the path of a file with 44 characters of base64"))]
    pub(super) private_key_file: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TunTable {
    /// Name of the interface.
    #[serde(default = "tun_name")]
    #[schemars(with = "String", default = "tun_name_default")]
    #[schemars(extend("x-expected" = "an interface name of 1 to 15 characters"))]
    pub(super) name: InterfaceName,
    /// Addresses of the interface, with the prefix length of the subnet that both ends share.
    /// Protocols that talk to link neighbours, such as OSPFv3, Babel, radvd and igmpproxy, need a
    /// link-local address here (such as fe80::1/64), which the kernel does not add by itself;
    /// without one, multicast listener reports and neighbour discovery are not sent through the
    /// tunnel.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    #[schemars(extend(
        "x-expected" = "addresses with prefix length, such as [\"10.9.0.1/24\", \"fd00:9::1/64\"]"
    ))]
    pub(super) addresses: Vec<IpNet>,
    /// Networks to route through the interface.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    #[schemars(extend("x-expected" = "networks with prefix length, such as [\"10.8.0.0/16\"]"))]
    pub(super) routes: Vec<IpNet>,
    /// MTU of the interface, bytes. Default: the largest that fits.
    #[schemars(extend("x-expected" = "a number of bytes from 68 to the tunnel's MTU"))]
    pub(super) mtu: Option<u16>,
    /// Use segmentation offload (GSO and GRO) on the interface, for speed.
    #[serde(default = "tun_offload")]
    pub(super) offload: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnderlayTable {
    /// Type of the underlay.
    pub(super) kind: KindName,
    /// Ethernet: interface to use.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("x-expected" = "an interface name of 1 to 15 characters"))]
    pub(super) interface: Option<InterfaceName>,
    /// Ethernet: EtherType of the frames. Default: 0x88b5.
    #[schemars(extend("x-expected" = "an EtherType from 0x600 to 0xffff"))]
    pub(super) ethertype: Option<u16>,
    /// Ethernet: bypass the interface's queueing discipline, so that a full driver queue is noticed
    /// immediately.
    pub(super) qdisc_bypass: Option<bool>,
    /// Ethernet, relays: send all frames to the broadcast address, for links that do not let
    /// stations overhear frames to others. The MAC neither acknowledges nor retries such frames.
    pub(super) broadcast: Option<bool>,
    /// Ethernet, relays: source of the MAC's retry counters, from which a relay detects congestion:
    /// `nl80211` for the driver of a real radio, or `file:PATH` for a file that is continuously
    /// rewritten, as by the lab. Not with `broadcast`. Default: none, and no channel counts as
    /// congested.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("x-expected" = "\"nl80211\" or \"file:PATH\""))]
    pub(super) retries: Option<RetriesSource>,
    /// UDP: address and port to listen on. Default: any free port, if every peer has an `endpoint`.
    #[schemars(with = "Option<String>")]
    #[schemars(extend(
        "x-expected" = "an address and port, such as \"0.0.0.0:4242\" or \"[::]:4242\""
    ))]
    pub(super) listen: Option<SocketAddr>,
    /// Largest IP packet (UDP, at least 624) or payload (Ethernet) to send, bytes. Default: as the
    /// system reports.
    #[schemars(range(min = 576, max = 9216))]
    #[schemars(extend("x-expected" = "576 to 9216 bytes"))]
    pub(super) mtu: Option<u16>,
    /// Maximum sending rate, bits per second. Window mode adapts to the path's rate below it.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub(super) rate_bps: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KindName {
    /// Raw Ethernet frames on an interface: Wi-Fi in ad-hoc or mesh mode, or wired.
    Ethernet,
    /// UDP datagrams, across any IP network.
    Udp,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerTable {
    /// Station number of the peer.
    #[schemars(range(min = 1, max = 65535))]
    #[schemars(extend("x-expected" = "a station number from 1 to 65535"))]
    pub(super) id: u16,
    /// Role of the peer.
    pub(super) role: RoleName,
    /// Ethernet: MAC address of the peer. Default: learned from its frames.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("x-expected" = "a unicast MAC address such as \"02:00:00:00:00:02\""))]
    pub(super) mac: Option<Mac>,
    /// UDP: address or host name and port of the peer; a name is looked up again when the peer does
    /// not respond. Default: the address from which the peer contacts this station.
    #[schemars(with = "Option<String>")]
    #[schemars(extend(
        "x-expected" = "an address or host name with a port, such as \"192.0.2.1:4242\", \
                        \"[2001:db8::1]:4242\" or \"peer.example.org:4242\""
    ))]
    pub(super) endpoint: Option<Endpoint>,
    /// With `security.private_key_file`: public key of the peer, as printed by `corridor pubkey`.
    #[schemars(with = "Option<String>", extend("x-expected" = "44 characters of base64"))]
    pub(super) public_key: Option<PublicKeyText>,
    /// With `public_key`: file with a pre-shared key of this pair of stations, as printed by
    /// `corridor genpsk`, for protection even if X25519 is broken; the path is relative to this
    /// file.
    #[schemars(extend("x-expected" = "the path of a file with 64 hexadecimal digits"))]
    pub(super) psk_file: Option<String>,
    /// Addresses of the peer and networks behind it, like WireGuard's AllowedIPs: a packet goes to
    /// the peer with the longest matching prefix, and a packet from a peer is dropped unless its
    /// source matches. For the kernel to send packets to them, they must also be in the subnet of
    /// `tun.addresses` or in `tun.routes`. Default, if there is no other peer except a helper: all
    /// addresses, unchecked.
    #[schemars(with = "Option<Vec<String>>")]
    #[schemars(extend(
        "x-expected" = "networks with prefix length, such as [\"10.9.0.2/32\", \"192.168.5.0/24\"]"
    ))]
    pub(super) allowed: Option<Vec<IpNet>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EndTable {
    /// Addresses of the end and all networks behind it: packets to them get a tag, and packets from
    /// them are dropped unless they have a valid one. The longest matching prefix decides. A tagged
    /// packet from an unlisted address is delivered unchecked and counted (`relay_tags_unnamed`); a
    /// packet to an unlisted address is sent without a tag, and dropped there if its source is
    /// listed. Do not list relays between the ends: their messages have no tag.
    #[schemars(with = "Vec<String>")]
    #[schemars(extend(
        "x-expected" = "networks with prefix length, such as [\"10.9.0.3/32\", \"192.168.5.0/24\"]"
    ))]
    pub(super) networks: Vec<IpNet>,
    /// Public key of the end, as printed by `corridor pubkey`.
    #[schemars(with = "String", extend("x-expected" = "44 characters of base64"))]
    pub(super) public_key: PublicKeyText,
    /// File with a pre-shared key of this pair of stations, as printed by `corridor genpsk`; the
    /// path is relative to this file.
    #[schemars(extend("x-expected" = "the path of a file with 64 hexadecimal digits"))]
    pub(super) psk_file: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkErrorsTable {
    /// Whether they are measured or fixed. Default: measured.
    pub(super) mode: Option<ModeName>,
    /// Fixed: erasure ratio from this end to the helper.
    #[schemars(range(min = 0, max = 0.99))]
    #[schemars(extend("x-expected" = "an erasure ratio from 0 to 0.99"))]
    pub(super) e1: Option<f64>,
    /// Fixed: erasure ratio from the helper to the other end.
    #[schemars(range(min = 0, max = 0.99))]
    #[schemars(extend("x-expected" = "an erasure ratio from 0 to 0.99"))]
    pub(super) e2: Option<f64>,
    /// Fixed: erasure ratio from this end to the other.
    #[schemars(range(min = 0, max = 0.99))]
    #[schemars(extend("x-expected" = "an erasure ratio from 0 to 0.99"))]
    pub(super) e3: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeName {
    /// Measured from gaps in frame sequence numbers.
    Measured,
    /// Fixed values, as in the FRANC paper's tests.
    Fixed,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SyntheticLossTable {
    /// Random seed: the same seed drops the same frames.
    #[serde(default)]
    pub(super) seed: u64,
    /// Peers whose frames are dropped.
    #[serde(default)]
    pub(super) link: Vec<LossLinkTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LossLinkTable {
    /// Station number of the peer.
    #[schemars(extend("x-expected" = "the number of a peer"))]
    pub(super) from: u16,
    /// Share of the peer's frames to drop.
    #[schemars(range(min = 0, max = 1), extend("x-expected" = "a loss ratio from 0 to 1"))]
    pub(super) ratio: f64,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsTable {
    /// Packets the ingress queue holds, at most, as far as `memory` allows; left out: in window
    /// mode 1000 for each lane that the path needs, 100 otherwise.
    #[schemars(range(min = 1, max = 65536))]
    #[schemars(extend("x-expected" = "1 to 65536 packets"))]
    pub(super) ingress_packets: Option<usize>,
    /// Memory ceiling in bytes for ingress queues and windows, blocks or TCP/NC's buffers,
    /// divided equally among all peers. Of each share, 408 kB and a sixteenth are reserved for
    /// other state of the peer; a quarter of the rest is for the queue, three quarters for the
    /// windows of both directions. Queues, windows, buffers and blocks in flight shrink to fit.
    /// Default: "256M", or the least that all peers need if that is more.
    pub(super) memory: Option<Bytes>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlTable {
    /// Group with access to the status besides root. Default: `corridor`, if that group exists.
    #[schemars(extend("x-expected" = "the name of a group on this machine"))]
    pub(super) group: Option<String>,
}

fn tun_offload() -> bool {
    true
}

fn tun_name() -> InterfaceName {
    InterfaceName(tun_name_default())
}

fn tun_name_default() -> String {
    "corridor0".into()
}

/// The key as 64 hexadecimal digits, white space around them allowed.
#[derive(Clone, Debug)]
pub(super) struct PskText(pub(super) Psk);

impl FromStr for PskText {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected 64 hexadecimal digits";
        let digits = text.trim().as_bytes();
        let mut key = Zeroizing::new([0; PSK_LEN]);
        if digits.len() != 2 * key.len() {
            return Err(EXPECTED);
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(EXPECTED);
            *byte = (digit(0)? << 4 | digit(1)?) as u8;
        }
        Ok(PskText((*key).into()))
    }
}

/// A public key in base64.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicKeyText(pub(super) PublicKey);

impl FromStr for PublicKeyText {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(PublicKeyText)
    }
}

/// The name of a network interface, as the kernel would take it.
#[derive(Debug)]
pub(super) struct InterfaceName(pub(super) String);

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

impl FromStr for RetriesSource {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.strip_prefix("file:")) {
            ("nl80211", _) => Ok(RetriesSource::Nl80211),
            (_, Some(path)) if !path.is_empty() => Ok(RetriesSource::File(path.into())),
            _ => Err("expected \"nl80211\" or \"file:PATH\""),
        }
    }
}

/// Reads what is written as a string in the file by its [`FromStr`].
macro_rules! deserialize_from_str {
    ($($type:ty),*) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Zeroizing::new(String::deserialize(deserializer)?);
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

deserialize_from_str!(PskText, PublicKeyText, InterfaceName, Mac, Endpoint, RetriesSource);
