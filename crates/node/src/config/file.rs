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
    /// The secret of the group, or the key of this station.
    pub(super) security: SecurityTable,
    /// The network interface through which packets of this host come; a helper has none.
    pub(super) tun: Option<TunTable>,
    /// What carries the frames.
    pub(super) underlay: UnderlayTable,
    /// The peers: the other end, and a helper if there is one; or, each with its `allowed`
    /// networks, the peers of a hub, or a relay's neighbours.
    #[schemars(extend("x-expected" = "one table for each peer: [[peer]]"))]
    pub(super) peer: Vec<PeerTable>,
    /// Relays: which packets are combined, and what waits for it. Nothing needs to be set.
    pub(super) relay: Option<RelayTable>,
    /// Relays: other ends, whose packets to this host, and of this host to them, have a tag that
    /// only the two can make, whatever relays there are between them. Those need not know of it.
    /// Both ends name each other.
    #[serde(default)]
    #[schemars(extend("x-expected" = "one table for each end: [[end]]"))]
    pub(super) end: Vec<EndTable>,
    /// How packets are coded. Nothing needs to be set; redundancy follows the losses.
    #[serde(default)]
    pub(super) coding: CodingTable,
    /// Where block mode's erasure ratios come from.
    #[serde(default)]
    pub(super) link_errors: LinkErrorsTable,
    /// Losses made at reception, for experiments.
    #[serde(default)]
    pub(super) synthetic_loss: SyntheticLossTable,
    /// Bounds.
    #[serde(default)]
    pub(super) limits: LimitsTable,
    /// Who may ask how the node is.
    #[serde(default)]
    pub(super) control: ControlTable,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StationTable {
    /// Number of this station, different from those of the others of its group.
    #[schemars(range(min = 1, max = 65535))]
    #[schemars(extend("x-expected" = "a station number from 1 to 65535"))]
    pub(super) id: u16,
    /// What it does.
    pub(super) role: RoleName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleName {
    /// One of the two ends: codes what its host sends, decodes what the other end sends.
    Endpoint,
    /// Overhears two ends on a shared channel, recodes, and has no traffic of its own.
    Helper,
    /// Forwards packets as they are, without coding: to compare with.
    Plain,
    /// Forwards packets between neighbours that are relays too, and XORs those of opposite flows.
    Relay,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SecurityTable {
    /// The secret of the group itself; then this file is to be its owner's alone (chmod 600).
    #[schemars(with = "Option<String>", extend("x-expected" = "64 hexadecimal digits"))]
    pub(super) psk: Option<PskText>,
    /// A file with the secret of the group, as `corridor genpsk` prints it; relative to this file.
    /// It is to be its owner's alone (chmod 600).
    #[schemars(extend("x-expected" = "the path of a file with 64 hexadecimal digits"))]
    pub(super) psk_file: Option<String>,
    /// Instead of a secret of the group: a file with this station's own private key, as `corridor
    /// genkey` prints it; relative to this file. It is to be its owner's alone (chmod 600). Each
    /// peer has a `public_key` then, a helper and its two ends among them.
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
    /// Its addresses, each with the length of the subnet that both ends share. What speaks to
    /// neighbours over the tunnel, as OSPFv3, Babel, radvd and igmpproxy do, needs a link-local one
    /// here (fe80::1/64), which no kernel makes by itself; without one, multicast listeners'
    /// messages and neighbour discovery do not cross.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    #[schemars(extend(
        "x-expected" = "addresses with prefix, as [\"10.9.0.1/24\", \"fd00:9::1/64\"]"
    ))]
    pub(super) addresses: Vec<IpNet>,
    /// Networks that are reached through it.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    #[schemars(extend("x-expected" = "networks with prefix, as [\"10.8.0.0/16\"]"))]
    pub(super) routes: Vec<IpNet>,
    /// An MTU below the longest that fits, bytes.
    #[schemars(extend("x-expected" = "a number of bytes from 68 to the tunnel's MTU"))]
    pub(super) mtu: Option<u16>,
    /// Segmentation offload (GSO and GRO) on the interface: faster, and nothing else changes.
    #[serde(default = "tun_offload")]
    pub(super) offload: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnderlayTable {
    /// Raw Ethernet frames, or UDP.
    pub(super) kind: KindName,
    /// Ethernet: the interface.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("x-expected" = "an interface name of 1 to 15 characters"))]
    pub(super) interface: Option<InterfaceName>,
    /// Ethernet: the protocol number of the frames; left out: 0x88b5.
    #[schemars(extend("x-expected" = "an Ethernet protocol number from 0x600 to 0xffff"))]
    pub(super) ethertype: Option<u16>,
    /// Ethernet: bypass the queueing discipline of the interface, so that a full driver queue is
    /// noticed at once.
    pub(super) qdisc_bypass: Option<bool>,
    /// Ethernet, relays: address all frames to all stations in reach, for links that pass on no
    /// frame for others. Nobody acknowledges such frames, and the interface does not repeat them.
    pub(super) broadcast: Option<bool>,
    /// Ethernet, relays: where the number of the MAC's retries comes from, by which a relay detects
    /// congestion: `nl80211` for the driver of a real radio, or `file:` and the path of a file that
    /// is rewritten all the time, as the lab's is; not with `broadcast`. Left out: nowhere, and no
    /// channel counts as congested.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("x-expected" = "\"nl80211\", or \"file:\" and a path"))]
    pub(super) retries: Option<RetriesSource>,
    /// UDP: where to listen; left out: any port, where every peer's address is given.
    #[schemars(with = "Option<String>")]
    #[schemars(extend(
        "x-expected" = "an address and port, as \"0.0.0.0:4242\" or \"[::]:4242\""
    ))]
    pub(super) listen: Option<SocketAddr>,
    /// Longest IP packet (UDP: 624 at least) or payload (Ethernet) to send, bytes; left out: what
    /// the system says.
    #[schemars(range(min = 576, max = 9216))]
    #[schemars(extend("x-expected" = "576 to 9216 bytes"))]
    pub(super) mtu: Option<u16>,
    /// Most that is sent, bits per second. Window mode finds the path's own rate below it.
    #[serde(default, deserialize_with = "rate::whole_option")]
    #[schemars(with = "Option<Rate>")]
    pub(super) rate_bps: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum KindName {
    /// Raw frames on an interface: Wi-Fi in ad-hoc or mesh mode, or a cable.
    Ethernet,
    /// Datagrams, across any network.
    Udp,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PeerTable {
    /// Its number.
    #[schemars(range(min = 1, max = 65535))]
    #[schemars(extend("x-expected" = "a station number from 1 to 65535"))]
    pub(super) id: u16,
    /// What it does.
    pub(super) role: RoleName,
    /// Ethernet: its address; left out: learned from what it sends.
    #[schemars(with = "Option<String>")]
    #[schemars(extend(
        "x-expected" = "an Ethernet address of one station, as \"02:00:00:00:00:02\""
    ))]
    pub(super) mac: Option<Mac>,
    /// UDP: its address or name, and port; a name is looked up again when the peer is silent. Left
    /// out: it is answered where it calls from.
    #[schemars(with = "Option<String>")]
    #[schemars(extend(
        "x-expected" = "an address or name, and a port, as \"192.0.2.1:4242\", \
                        \"[2001:db8::1]:4242\" or \"peer.example.org:4242\""
    ))]
    pub(super) endpoint: Option<Endpoint>,
    /// Beside `security.private_key_file`: its public key, as `corridor pubkey` prints it.
    #[schemars(with = "Option<String>", extend("x-expected" = "44 characters of base64"))]
    pub(super) public_key: Option<PublicKeyText>,
    /// Beside `public_key`: a file with a pre-shared key of this pair of stations, as `corridor
    /// genpsk` prints it, which protects even where somebody can break X25519; relative to this
    /// file.
    #[schemars(extend("x-expected" = "the path of a file with 64 hexadecimal digits"))]
    pub(super) psk_file: Option<String>,
    /// Its addresses and the networks behind it, as WireGuard's AllowedIPs: packets go to the peer
    /// with the longest prefix of their destination, and what comes from a peer is dropped unless
    /// its source is in them. For the kernel to send packets there, they also have to be in the
    /// subnet of `tun.addresses` or in `tun.routes`. Left out, where there is no other peer but a
    /// helper: everything, unchecked.
    #[schemars(with = "Option<Vec<String>>")]
    #[schemars(extend(
        "x-expected" = "networks with prefix, as [\"10.9.0.2/32\", \"192.168.5.0/24\"]"
    ))]
    pub(super) allowed: Option<Vec<IpNet>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EndTable {
    /// Its addresses, and all networks behind it: packets to them get a tag, and packets from them
    /// are dropped without a valid one. A packet with a tag from an address that is not named is
    /// delivered unchecked, and counted (`relay_tags_unnamed`); a packet to an address that is not
    /// named goes without a tag, and is dropped there if its source is named. Leave out relays
    /// between, whose messages have no tag. The longest prefix decides.
    #[schemars(with = "Vec<String>")]
    #[schemars(extend(
        "x-expected" = "networks with prefix, as [\"10.9.0.3/32\", \"192.168.5.0/24\"]"
    ))]
    pub(super) networks: Vec<IpNet>,
    /// Its public key, as `corridor pubkey` prints it.
    #[schemars(with = "String", extend("x-expected" = "44 characters of base64"))]
    pub(super) public_key: PublicKeyText,
    /// A file with a secret that only it and this station have, as `corridor genpsk` prints it;
    /// relative to this file.
    #[schemars(extend("x-expected" = "the path of a file with 64 hexadecimal digits"))]
    pub(super) psk_file: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkErrorsTable {
    /// Whether they are measured or given; left out: measured.
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
    /// Counted from gaps in the sequence of frames.
    Measured,
    /// Given once and for all, as in the FRANC paper's tests.
    Fixed,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SyntheticLossTable {
    /// Seed of the losses: the same seed loses the same frames.
    #[serde(default)]
    pub(super) seed: u64,
    /// From whom frames are lost.
    #[serde(default)]
    pub(super) link: Vec<LossLinkTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LossLinkTable {
    /// Number of the peer that sends them.
    #[schemars(extend("x-expected" = "the number of a peer"))]
    pub(super) from: u16,
    /// Share of its frames that is lost.
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
    /// Bytes that ingress queues and windows, blocks or TCP/NC's buffers may hold together, in
    /// equal parts for all peers. Of a part, 384 kB and a sixteenth are for what else is kept of a
    /// peer; of the rest a quarter is for the queue, and three for the windows, both ways. Queues,
    /// windows and buffers become as short as that takes, and blocks in flight as few; left out:
    /// "256M", or what all peers take at least where that is more.
    pub(super) memory: Option<Bytes>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlTable {
    /// Group that may ask beside root; left out: `corridor`, if there is such a group.
    #[schemars(extend("x-expected" = "the name of a group of this machine"))]
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
            _ => Err("expected \"nl80211\", or \"file:\" and a path"),
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
