//! The ingredients of a torture run: stations, network, and everything that goes wrong. A scenario
//! consists of integers only, so that its printed line replays it exactly.

use core::time::Duration;

use corridor_proto::{
    CodingParams, CodingTable, ConfigError, DeliveryName, ErasureRatios, Field, FieldName,
    GoalName, Keys, LinkErrors, Mode, Order, OrderName, PeerKey, Policy, PolicyName, Preset,
    PrivateKey, Role, Security, Station, StationConfig, StationId,
};
use serde::{Deserialize, Serialize};

use super::addresses::Addresses;
use super::mesh::{Mesh, MeshKind, NODES_MAX};
use super::subject::Plant;

/// One million: shares and probabilities are counted in millionths.
pub const PPM: u32 = 1_000_000;
/// Most pairs of endpoints on one medium.
pub const PAIRS_MAX: usize = 2;
/// Most events of one kind in a scenario.
const LIST_MAX: usize = 64;
/// Most packets of one host.
const PACKETS_MAX: u32 = 100_000;
/// Longest time for which the network is bad.
pub(super) const SPAN_MS_MAX: u32 = 600_000;

/// A run, which depends on this alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of everything that is not written here.
    pub seed: u64,
    /// Pairs of hosts on one medium; each hears the others' frames.
    pub pairs: Vec<Pair>,
    /// Whether the second pair has the station numbers of the first, with another key.
    pub same_numbers: bool,
    /// The network.
    pub network: Network,
    /// How long packets are sent and the network is bad, milliseconds. Then it calms down.
    pub span_ms: u32,
    /// Times during which all frames from one station to another are lost.
    pub outages: Vec<Outage>,
    /// Times during which a station's underlay accepts no frame.
    pub stalls: Vec<Stall>,
    /// Clocks that jump forward.
    pub jumps: Vec<Jump>,
    /// Stations that restart.
    pub restarts: Vec<Restart>,
    /// Interfaces whose longest frame changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mtus: Vec<MtuChange>,
    /// Frames that an adversary without a key answers with one of its own, in millionths.
    pub forged_ppm: u32,
    /// What the adversary can do.
    pub forgeries: Vec<Forgery>,
    /// Frames that a malicious key holder answers with one of its own, in millionths. Then stations
    /// only have to survive and to stay within their bounds.
    pub insider_ppm: u32,
    /// Addresses that stations may change, instead of one medium on which all hear each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Addresses>,
    /// Hubs or relays in place of the pairs, of which there is then a single idle one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mesh: Option<Mesh>,
    /// A fault planted in a station, to see that it is caught.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plant: Option<Plant>,
}

/// Two ends of a link, and optionally a helper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Whether they are plain forwarders rather than encoders and decoders.
    pub plain: bool,
    /// The helper between the ends.
    pub helper: Help,
    /// Whether hosts send almost nothing but long TCP connections, in window mode.
    #[serde(default)]
    pub talks: bool,
    /// Individual keys of the ends and the helper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<OwnKeys>,
    /// Of the helper's symbols, how many are not what they claim to be until the network calms
    /// down, in millionths, if there are individual keys.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lies_ppm: u32,
    /// Bytes of memory that each station has beyond the minimum; otherwise the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_beyond: Option<u32>,
    /// Frames after which a station begins a new session, until the network calms down; 0: the
    /// default, which no run reaches.
    #[serde(default)]
    pub session_frames: u32,
    /// The ends.
    pub ends: [End; 2],
}

fn is_none(ppm: &u32) -> bool {
    *ppm == 0
}

/// Individual keys of the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnKeys {
    /// Lifetime of a secret until the network calms down, milliseconds; 0: the default.
    pub rekey_ms: u32,
}

/// Whether there is a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Help {
    /// No helper is configured.
    None,
    /// The ends are configured with a helper that never appears.
    Absent,
    /// There is one.
    Present,
}

/// One end of a link, and its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Its coding parameters.
    pub coding: Coding,
    /// Configured erasure ratios e1, e2, e3, in millionths; otherwise it measures them.
    pub link_errors_ppm: Option<[u32; 3]>,
    /// Longest ingress queue, packets.
    pub ingress_packets: u32,
    /// Longest frame of its underlay, bytes.
    pub frame_len_max: u16,
    /// Shortest frame of its underlay, bytes.
    pub frame_len_min: u16,
    /// Its pacing rate, bits per second.
    pub pace_bps: Option<u64>,
    /// Number of packets that its host sends.
    pub packets: u32,
    /// Longest of them, bytes, as far as the tunnel accepts it.
    pub packet_len_max: u16,
    /// Of the packets, how many are sent at once with the one before, millionths.
    pub together_ppm: u32,
}

/// Coding parameters as integers; see [`CodingParams`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields of CodingParams")]
pub struct Coding {
    pub field: FieldName,
    pub order: OrderName,
    pub policy: PolicyName,
    pub block_size: u16,
    pub symbol_size: u16,
    pub blocks_in_flight: u16,
    pub overshoot_percent: u16,
    pub encoder_timeout_ms: u32,
    pub delivery_deadline_ms: u32,
    pub ack_interval_ms: u32,
    /// Window mode, if there is neither a helper nor a plain forwarder; otherwise blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowCoding>,
}

/// Further parameters of window mode; see [`CodingParams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields of CodingParams")]
pub struct WindowCoding {
    pub window_size: u16,
    pub window_lane: u16,
    pub goal: GoalName,
    /// Limit of repair, per cent of the symbols carried; 0: none.
    #[serde(default)]
    pub max_overhead_percent: u16,
    pub delivery: DeliveryName,
    /// Whether the first symbol's number is close to 2^32.
    pub wraps: bool,
}

/// What the network does to frames until it calms down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Loss ratio of the worst link, millionths; each link has a random share of it.
    pub loss_ppm: u32,
    /// Mean length of a burst of losses, frames; 1: independent losses.
    pub burst_frames: u16,
    /// Frames that arrive twice, millionths.
    pub duplicate_ppm: u32,
    /// Frames that are delayed further, millionths.
    pub late_ppm: u32,
    /// Longest such delay, microseconds.
    pub jitter_us: u32,
    /// Delay of all frames, microseconds; it stays when the network calms down.
    pub delay_us: u32,
    /// Rate of each underlay, bits per second; it stays.
    pub rate_bps: u64,
    /// Frames that an underlay accepts before it is full; it stays.
    pub queue_frames: u16,
}

/// Frames from one station to another are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "names and units say it")]
pub struct Outage {
    pub from: u8,
    pub to: u8,
    pub begin_ms: u32,
    pub end_ms: u32,
}

/// A station's underlay accepts no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "names and units say it")]
pub struct Stall {
    pub station: u8,
    pub begin_ms: u32,
    pub end_ms: u32,
}

/// A clock jumps forward, as after a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "names and units say it")]
pub struct Jump {
    pub station: u8,
    pub at_ms: u32,
    pub by_ms: u32,
}

/// A station dies, and restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "names and units say it")]
pub struct Restart {
    pub station: u8,
    pub at_ms: u32,
    pub down_ms: u32,
}

/// The longest frame that a station's interface accepts changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MtuChange {
    /// Which station.
    pub station: u8,
    /// When, milliseconds.
    pub at_ms: u32,
    /// Longest frame from then on, bytes; at most the initial length.
    pub len: u16,
}

/// Frames that an adversary without a key sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Forgery {
    /// A frame with a bit flipped.
    FlippedBit,
    /// A frame cut off.
    Truncated,
    /// A frame with something appended.
    Extended,
    /// Noise.
    Noise,
    /// A valid header in front of noise.
    NoiseBehindHeader,
    /// The header of one frame, the body of another.
    Spliced,
    /// A recorded frame, perhaps of an earlier session.
    Replayed,
    /// A well-formed frame of a station with another key.
    OtherKey,
}

impl Forgery {
    /// All of them.
    pub const ALL: [Forgery; 8] = [
        Forgery::FlippedBit,
        Forgery::Truncated,
        Forgery::Extended,
        Forgery::Noise,
        Forgery::NoiseBehindHeader,
        Forgery::Spliced,
        Forgery::Replayed,
        Forgery::OtherKey,
    ];
}

/// A station's place in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its pair.
    pub pair: usize,
    /// Which end, or `None` for the helper.
    pub end: Option<usize>,
    /// Its number.
    pub id: StationId,
}

/// An invalid scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A list or a number is out of its range.
    #[error("{field} is {given}, expected {expected}")]
    Range {
        /// Which field.
        field: &'static str,
        /// The value.
        given: u64,
        /// The valid range.
        expected: String,
    },
    /// An invalid configuration of a station.
    #[error(transparent)]
    Station(#[from] ConfigError),
}

impl Coding {
    /// The stations' parameters.
    pub fn params(&self) -> CodingParams {
        let table = CodingTable {
            preset: Some(Preset::Block),
            window_size: self.window.map(|window| window.window_size),
            goal: self.window.map(|window| window.goal),
            max_overhead: self.window.and_then(|window| {
                let percent = window.max_overhead_percent;
                (percent > 0).then(|| f64::from(percent) / 100.0)
            }),
            delivery: self.window.map(|window| window.delivery),
            ..CodingTable::default()
        };
        CodingParams {
            tcp_nc: None,
            mode: if self.window.is_some() { Mode::Window } else { Mode::Block },
            field: match self.field {
                FieldName::Gf2 => Field::Gf2,
                FieldName::Gf16 => Field::Gf16,
                FieldName::Gf256 => Field::Gf256,
            },
            order: match self.order {
                OrderName::Systematic => Order::Systematic,
                OrderName::Dense => Order::Dense,
                OrderName::OnTheFly => Order::OnTheFly,
            },
            policy: match self.policy {
                PolicyName::Playncool => Policy::PlayNCool,
                PolicyName::Credit => Policy::Credit,
            },
            block_size: self.block_size,
            symbol_size: self.symbol_size,
            window_lane: self.window.map_or(1, |window| window.window_lane),
            blocks_in_flight: self.blocks_in_flight,
            overshoot: f64::from(self.overshoot_percent) / 100.0,
            encoder_timeout: Duration::from_millis(self.encoder_timeout_ms.into()),
            delivery_deadline: Duration::from_millis(self.delivery_deadline_ms.into()),
            ack_interval: Duration::from_millis(self.ack_interval_ms.into()),
            ..table.resolve(false)
        }
    }
}

/// Distance between the station numbers of consecutive pairs: the lower byte is the same, so code
/// that only compares this byte confuses the pairs.
pub(crate) const PAIR_NUMBERS: u16 = 256;

impl Scenario {
    /// Whether one end of a pair uses blocks and the other a window.
    pub fn speak_differently(&self, pair: usize) -> bool {
        let Pair { plain, ends: [a, b], .. } = &self.pairs[pair];
        !plain && a.coding.window.is_some() != b.coding.window.is_some()
    }

    /// All stations: the ends of a pair, its helper, the next pair.
    pub fn places(&self) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for (pair, told) in self.pairs.iter().enumerate() {
            let before = if self.same_numbers { 0 } else { PAIR_NUMBERS * pair as u16 };
            let place = |end: Option<usize>| {
                let id = StationId(before + 1 + end.unwrap_or(2) as u16);
                Place { pair, end, id }
            };
            places.extend([place(Some(0)), place(Some(1))]);
            places.extend((told.helper == Help::Present).then(|| place(None)));
        }
        places
    }

    /// Number of stations.
    pub(crate) fn stations(&self) -> usize {
        self.mesh.as_ref().map_or_else(|| self.places().len(), |mesh| mesh.nodes.into())
    }

    /// The configuration of the station at a place.
    pub fn config(&self, place: Place) -> StationConfig {
        let pair = &self.pairs[place.pair];
        let before = place.id.0 - 1 - place.end.unwrap_or(2) as u16;
        let [a, b, helper] = [1, 2, 3].map(|number| StationId(before + number));
        // A helper is configured like the first end.
        let end = &pair.ends[place.end.unwrap_or(0)];
        let role = match place.end {
            None => Role::Helper { between: (a, b) },
            Some(at) if pair.plain => Role::Plain { peer: [b, a][at] },
            Some(at) => Role::Endpoint {
                peer: [b, a][at],
                helper: (pair.helper != Help::None).then_some(helper),
            },
        };
        let ratio = |ppm: u32| f64::from(ppm) / f64::from(PPM);
        let config = StationConfig {
            id: place.id,
            role,
            security: self.security(place, role),
            coding: end.coding.params(),
            link_errors: match end.link_errors_ppm.map(|ppm| ppm.map(ratio)) {
                Some([e1, e2, e3]) => LinkErrors::Fixed(ErasureRatios { e1, e2, e3 }),
                None => LinkErrors::Measured,
            },
            ingress_packets: end.ingress_packets as usize,
            frame_len_max: end.frame_len_max.into(),
            frame_len_min: end.frame_len_min.into(),
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: end.pace_bps,
        };
        match pair.memory_beyond {
            Some(beyond) => {
                StationConfig { memory_bytes: config.memory_min() + beyond as usize, ..config }
            }
            None => config,
        }
    }

    /// The keys under which a station's frames are sealed.
    fn security(&self, place: Place, role: Role) -> Security {
        let byte = 0x42 + if self.same_numbers { place.pair as u8 } else { 0 };
        let peers: Vec<StationId> = match role {
            Role::Endpoint { peer, helper } => [peer].into_iter().chain(helper).collect(),
            Role::Helper { between: (a, b) } => vec![a, b],
            Role::Plain { peer } => vec![peer],
            Role::Relay => Vec::new(),
        };
        // An insider has the secret that all stations share.
        let has_keys = self.pairs[place.pair].keys.is_some() && self.insider_ppm == 0;
        if !has_keys {
            return [byte; 32].into();
        }
        let private = |id: StationId| {
            let mut bytes = [byte; 32];
            bytes[1..3].copy_from_slice(&id.0.to_be_bytes());
            PrivateKey::from_random(bytes)
        };
        let peer =
            |station: StationId| PeerKey { station, public: private(station).public(), psk: None };
        let peers = peers.into_iter().map(peer).collect();
        Security::Keys(Box::new(Keys { private: private(place.id), peers }))
    }

    /// Whether stations with individual keys overhear each other, which helpers need: on a shared
    /// link, but not between addresses.
    pub(crate) fn has_member_keys(&self) -> bool {
        self.pairs.iter().any(|pair| pair.keys.is_some() && pair.helper != Help::None)
    }

    /// Of the symbols that a pair's helper sends, how many are not what they claim to be,
    /// millionths: none if its ends could not tell.
    pub(crate) fn lies_ppm(&self, pair: usize) -> u32 {
        let tells = self.pairs[pair].keys.is_some() && self.insider_ppm == 0;
        if tells { self.pairs[pair].lies_ppm } else { 0 }
    }

    /// Whether nothing goes wrong: then everything has to be delivered.
    pub fn is_perfect(&self) -> bool {
        let net = &self.network;
        let harmless = [net.loss_ppm, net.duplicate_ppm, net.late_ppm, self.forged_ppm];
        let patient = |end: &End| end.coding.delivery_deadline_ms >= 60_000;
        harmless == [0; 4]
            && self.insider_ppm == 0
            && (0..self.pairs.len()).all(|pair| self.lies_ppm(pair) == 0)
            && self.mesh.as_ref().is_none_or(|mesh| mesh.lies_ppm() == 0)
            && self.outages.is_empty()
            && self.stalls.is_empty()
            && self.jumps.is_empty()
            && self.restarts.is_empty()
            && self.addresses.iter().all(Addresses::stay)
            && self.pairs.iter().flat_map(|pair| &pair.ends).all(patient)
    }

    /// Checks the scenario.
    ///
    /// # Errors
    /// The first value that is out of its range.
    pub fn check(&self) -> Result<(), ScenarioError> {
        // In a mesh, the stations of the pairs stand for some of its nodes.
        let stations = self.places().len() as u64;
        let mesh = || self.mesh.as_ref();
        let ends = || self.pairs.iter().flat_map(|pair| &pair.ends);
        let most = |what: &mut dyn Iterator<Item = u32>| u64::from(what.max().unwrap_or(0));
        let lists = [
            self.outages.len(),
            self.stalls.len(),
            self.jumps.len(),
            self.restarts.len(),
            self.mtus.len(),
        ];
        let named = self.outages.iter().flat_map(|outage| [outage.from, outage.to]);
        let named = named.chain(self.stalls.iter().map(|stall| stall.station));
        let named = named.chain(self.jumps.iter().map(|jump| jump.station));
        let named = named.chain(self.restarts.iter().map(|restart| restart.station));
        let named = named.chain(self.mtus.iter().map(|change| change.station));
        let named = named.chain(self.plant.iter().map(|plant| plant.station));
        let net = &self.network;
        let shares =
            [net.loss_ppm, net.duplicate_ppm, net.late_ppm, self.forged_ppm, self.insider_ppm];
        let ranges = [
            ("pairs", self.pairs.len() as u64, 1, PAIRS_MAX as u64),
            ("span_ms", self.span_ms.into(), 1, SPAN_MS_MAX.into()),
            (
                "a list of happenings",
                lists.into_iter().max().unwrap_or(0) as u64,
                0,
                LIST_MAX as u64,
            ),
            ("a station", most(&mut named.map(u32::from)), 0, stations.saturating_sub(1)),
            ("a share in ppm", most(&mut shares.into_iter()), 0, PPM.into()),
            ("network.burst_frames", net.burst_frames.into(), 1, u16::MAX.into()),
            ("network.rate_bps", net.rate_bps, 10_000, 100_000_000_000),
            ("network.queue_frames", net.queue_frames.into(), 1, 1_000),
            ("network.delay_us", net.delay_us.into(), 0, 10_000_000),
            ("network.jitter_us", net.jitter_us.into(), 0, 10_000_000),
            ("lies_ppm", most(&mut self.pairs.iter().map(|pair| pair.lies_ppm)), 0, PPM.into()),
            ("mesh.lies_ppm", mesh().map_or(0, |mesh| mesh.lies_ppm).into(), 0, PPM.into()),
            ("packets", most(&mut ends().map(|end| end.packets)), 0, PACKETS_MAX.into()),
            ("mesh.packets", mesh().map_or(0, |mesh| mesh.packets).into(), 0, PACKETS_MAX.into()),
            ("mesh.nodes", mesh().map_or(3, |mesh| mesh.nodes.into()), 3, NODES_MAX.into()),
            ("mesh.queue_packets", mesh().map_or(2, |mesh| mesh.queue_packets.into()), 2, 4_096),
            (
                "mesh.relay_window",
                mesh().and_then(|mesh| mesh.relay_window).unwrap_or(0).into(),
                0,
                256,
            ),
            (
                "packet_len_max",
                most(&mut ends().map(|end| u32::from(end.packet_len_max))),
                2,
                u16::MAX.into(),
            ),
            ("by_ms", most(&mut self.jumps.iter().map(|jump| jump.by_ms)), 0, 1_000_000_000),
            (
                "down_ms",
                most(&mut self.restarts.iter().map(|restart| restart.down_ms)),
                0,
                SPAN_MS_MAX.into(),
            ),
        ];
        for (field, given, least, most) in ranges {
            if !(least..=most).contains(&given) {
                let expected = format!("{least} to {most}");
                return Err(ScenarioError::Range { field, given, expected });
            }
        }
        self.check_addresses()?;
        if let Some(mesh) = &self.mesh {
            mesh.check_removals()?;
            let nodes = 0..usize::from(mesh.nodes);
            return nodes.into_iter().try_for_each(|node| Ok(mesh.config(node).check()?));
        }
        self.places().into_iter().try_for_each(|place| Ok(self.config(place).check()?))
    }

    /// Of two stations that talk to each other at most one moves; relays, whose hops are links, do
    /// not move.
    fn check_addresses(&self) -> Result<(), ScenarioError> {
        let Some(addresses) = &self.addresses else { return Ok(()) };
        let movers: Vec<usize> = addresses.movers().into_iter().map(usize::from).collect();
        let places = self.places();
        let speak = |a: usize, b: usize| match &self.mesh {
            Some(mesh) => mesh.kind == MeshKind::RelayRow || mesh.neighbours(a).contains(&b),
            None => places[a].pair == places[b].pair,
        };
        let range = |field, given: u64, most: u64| {
            let expected = format!("0 to {most}");
            if given <= most {
                Ok(())
            } else {
                Err(ScenarioError::Range { field, given, expected })
            }
        };
        let stations = self.stations() as u64;
        for it in &addresses.moves {
            range("addresses.moves.station", it.station.into(), stations - 1)?;
            range("addresses.moves.at_ms", it.at_ms.into(), SPAN_MS_MAX.into())?;
        }
        range("addresses.copied_ppm", addresses.copied_ppm.into(), PPM.into())?;
        let of_relays = self.mesh.as_ref().is_some_and(|mesh| mesh.kind == MeshKind::RelayRow);
        range("addresses of relays", u64::from(of_relays), 0)?;
        range("addresses of helpers with keys", u64::from(self.has_member_keys()), 0)?;
        let met = movers.iter().map(|&a| movers.iter().filter(|&&b| a < b && speak(a, b)).count());
        range("addresses.moves of two that speak", met.max().unwrap_or(0) as u64, 0)
    }

    /// Longest packet of an end, bytes; 0 if frames have become too short for any.
    pub(crate) fn packet_len_max(&self, station: &Station, end: &End) -> usize {
        usize::from(end.packet_len_max).min(station.tunnel_mtu())
    }
}
