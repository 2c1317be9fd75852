//! What a station is told before it starts. [`StationConfig::check`] finds what is wrong.

use core::time::Duration;

use corridor_codec::{Field, MAX_WINDOW_SIZE};

pub(crate) use crate::id::STATION_NUMBER;
pub use crate::id::StationId;

use crate::bounds::{
    INGRESS_PACKETS_LANE, WINDOW_DEADLINE_ROUND_TRIP_MAX, WINDOW_DEADLINE_ROUND_TRIPS,
    WINDOW_SYMBOLS_MAX, burst_time,
};
use crate::keys::Security;

/// Bound of the ingress queue where nothing but the bound keeps it short.
const INGRESS_PACKETS_BLOCK: usize = 100;
/// The same in front of a window, where CoDel keeps it short: what all lanes may need.
const INGRESS_PACKETS_WINDOW: usize = 16 * INGRESS_PACKETS_LANE;
/// Unacknowledged symbols in window mode, as long as no path needs more than a lane: 100 ms of 100
/// Mbit/s.
const LANE_SIZE: u16 = MAX_WINDOW_SIZE as u16;
/// How long missing symbols keep others waiting if nobody says otherwise, on most paths.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(1);

/// What a station does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Encodes what its own host sends, decodes what its peer sends: both ends of a coded link.
    Endpoint {
        /// The station at the other end.
        peer: StationId,
        /// A neighbour that overhears both ends and recodes, if there is one.
        helper: Option<StationId>,
    },
    /// Overhears two endpoints and sends recoded symbols to either (FRANC, Section II-D).
    Helper {
        /// The two endpoints that it helps.
        between: (StationId, StationId),
    },
    /// The paper's unreliable forwarder (Section III): one packet a frame, no coding, no feedback.
    Plain {
        /// The station at the other end.
        peer: StationId,
    },
    /// Forwards packets between neighbours, and sends two of different flows as one frame where
    /// both receivers can take them apart: a [`crate::RelayStation`], and no [`crate::Station`].
    Relay,
}

/// What symbols are combined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Blocks, as in the FRANC paper; a helper can recode them.
    Block,
    /// A sliding window, between two endpoints on one hop: low delay, any loss.
    Window,
}

/// How a station's packets cross. Two ends have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Coded in blocks.
    Block,
    /// Coded in a sliding window.
    Window,
    /// Coded between TCP and IP.
    TcpNc,
    /// As they are: the unreliable forwarder.
    Plain,
    /// From relay to relay, two of different flows in a frame where that pays.
    Relay,
}

impl core::fmt::Display for Crossing {
    /// The words that configurations have for it.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(match self {
            Crossing::Block => "block",
            Crossing::Window => "window",
            Crossing::TcpNc => "tcp-nc",
            Crossing::Plain => "plain",
            Crossing::Relay => "relay",
        })
    }
}

impl From<Mode> for Crossing {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Block => Crossing::Block,
            Mode::Window => Crossing::Window,
        }
    }
}

/// What window mode does with the last few per cent of the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Nearly all of it carries packets; what is lost is repaired once that is known.
    Throughput,
    /// A share of it goes into repair symbols ahead of need.
    LowDelay,
    /// All of it carries packets: nearly no repair symbol is spurious, for who pays by the byte.
    Bulk,
}

/// Whether window mode keeps packets in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// By need. TCP and what is not known: in order. UDP: as [`UdpDelivery`] says. ICMP: at once.
    Auto,
    /// All packets in order.
    InOrder,
    /// Each packet as soon as it is there.
    Immediate,
}

/// How flows of UDP are delivered under [`Delivery::Auto`], by what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDelivery {
    /// QUIC. [`Delivery::Auto`]: in order while it carries bulk.
    pub quic: Delivery,
    /// What is not known, fills its packets and keeps a queue standing. [`Delivery::Auto`]: in
    /// order, unless it heeds no drops. [`Delivery::InOrder`]: then too.
    pub bulk: Delivery,
    /// RTP, and what is marked as real-time. [`Delivery::Auto`]: at once.
    pub real_time: Delivery,
    /// All else; not what is `bulk`. [`Delivery::Auto`]: at once.
    pub other: Delivery,
}

impl UdpDelivery {
    /// All of them by need.
    pub const AUTO: Self = UdpDelivery {
        quic: Delivery::Auto,
        bulk: Delivery::Auto,
        real_time: Delivery::Auto,
        other: Delivery::Auto,
    };
}

/// In which order symbols leave the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Source symbols uncoded as they are added, coded symbols for redundancy and repair.
    Systematic,
    /// Coded symbols only, over the whole block: nothing is sent before the block is full.
    Dense,
    /// The paper's order: coded symbols only, each over what has been added so far.
    OnTheFly,
}

/// How many transmissions the encoder and the helper allow themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The budgets of PlayNCool as the 2014 paper uses them (see [`crate::budget`]).
    PlayNCool,
    /// Credits from the transmission optimum, repair as soon as feedback shows what is missing.
    Credit,
}

/// The coding parameters: FRANC's five (Section II-B), and ours. Flat, as presets and tests change
/// some of them with `..`; which of them a mode uses stands at `mode`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodingParams {
    /// Code each TCP connection by itself, between TCP and IP: with [`crate::tcpnc`], and with
    /// how much redundancy. Of what follows only `field` is used then.
    pub tcp_nc: Option<Redundancy>,
    /// Blocks or a sliding window. Of what follows, window mode uses `field`, `symbol_size`,
    /// `window_size`, `goal`, `max_overhead`, `delivery`, `delivery_udp`, `half_duplex`,
    /// `clamp_windows`, `delivery_deadline` and `ack_interval`.
    pub mode: Mode,
    /// Field of the coding coefficients.
    pub field: Field,
    /// Order in which symbols leave the encoder.
    pub order: Order,
    /// Source symbols in a block, 1 to [`corridor_codec::MAX_BLOCK_SIZE`].
    pub block_size: u16,
    /// Symbols the sender may have unacknowledged, 1 to [`WINDOW_SYMBOLS_MAX`]. Of what the peer
    /// sends it bounds the number of lanes only: as many as these take.
    pub window_size: u16,
    /// Symbols that are coded together at most, 1 to [`MAX_WINDOW_SIZE`]: where the window needs
    /// more, they are dealt to several lanes.
    pub window_lane: u16,
    /// What matters more.
    pub goal: Goal,
    /// Bytes of repair symbols to a byte of source symbols at most, over about a window of them;
    /// `None`: as many as it takes. What cannot be repaired within it is given up when its
    /// deadline has passed.
    pub max_overhead: Option<f64>,
    /// Which packets wait for those before them.
    pub delivery: Delivery,
    /// Which of UDP's do, where that is by need.
    pub delivery_udp: UdpDelivery,
    /// The channel is half-duplex, as on Wi-Fi: what is not sent here the other station may send,
    /// and feedback takes air from what it is about. `None`: it is found out.
    pub half_duplex: Option<bool>,
    /// The windows that TCP's receivers offer are made shorter where more would only stand in the
    /// ingress queue.
    pub clamp_windows: bool,
    /// Longest source symbol in bytes; bounds the MTU of the tunnel. 0: what the underlay fits.
    pub symbol_size: u16,
    /// How long the encoder waits for an acknowledgement before it sends more.
    pub encoder_timeout: Duration,
    /// Factor on the encoder's budget, 1 or more (the paper: 1.05).
    pub overshoot: f64,
    /// PlayNCool: factor on the most that the helper sends for a block, 1 or more (the paper: 1).
    pub helper_overshoot: f64,
    /// Which budgets.
    pub policy: Policy,
    /// PlayNCool: repair sends a margin of one standard deviation of the losses, and over GF(2) two
    /// symbols, beyond what is missing on average ([`crate::budget::repair_at_once`]).
    pub repair_margin: bool,
    /// Several packets share a source symbol where they fit; otherwise each has its own.
    pub bundle: bool,
    /// Blocks the encoder may have unacknowledged at once, 1 (the paper) to
    /// [`crate::bounds::BLOCKS_IN_FLIGHT_MAX`].
    pub blocks_in_flight: u16,
    /// How long the decoder holds later packets back for a block that is not complete, and the
    /// encoder keeps repairing one.
    pub delivery_deadline: Duration,
    /// Least time between two acknowledgements that do not complete a block.
    pub ack_interval: Duration,
}

impl CodingParams {
    /// Packets that the ingress queue holds where nobody says how many.
    pub fn ingress_packets_default(&self) -> usize {
        match self.mode {
            Mode::Block => INGRESS_PACKETS_BLOCK,
            Mode::Window => INGRESS_PACKETS_WINDOW,
        }
    }

    /// The parameters of the paper's tests (Section IV-A): GF(2), 150 x 1450 bytes, 20 ms, 5 %,
    /// one block in flight.
    pub const fn paper() -> Self {
        CodingParams {
            tcp_nc: None,
            mode: Mode::Block,
            window_size: WINDOW_SYMBOLS_MAX as u16,
            window_lane: LANE_SIZE,
            goal: Goal::Throughput,
            max_overhead: None,
            delivery: Delivery::Auto,
            delivery_udp: UdpDelivery::AUTO,
            half_duplex: None,
            clamp_windows: true,
            field: Field::Gf2,
            order: Order::OnTheFly,
            block_size: 150,
            symbol_size: 1450,
            encoder_timeout: Duration::from_millis(20),
            overshoot: 1.05,
            helper_overshoot: 1.0,
            policy: Policy::PlayNCool,
            repair_margin: true,
            bundle: true,
            blocks_in_flight: 1,
            delivery_deadline: Duration::from_secs(2),
            ack_interval: Duration::from_millis(30),
        }
    }

    /// Symbols of a lane of the window: all, if those are few.
    pub(crate) fn lane_size(&self) -> u16 {
        self.window_lane.min(self.window_size)
    }

    /// How long missing symbols may keep others waiting, of a window of so many lanes, where a
    /// round trip and a frame take so long: as told, but as long as repair takes, and bursts of
    /// losses, where that is longer. What an operator wants sooner than usual is given up sooner,
    /// as long as one lane is enough.
    pub(crate) fn deadline(
        told: Duration,
        lanes: usize,
        (round_trip, frame): (Duration, Duration),
    ) -> Duration {
        if lanes == 1 && told < DEADLINE_DEFAULT {
            return told;
        }
        let repaired = round_trip.min(WINDOW_DEADLINE_ROUND_TRIP_MAX) * WINDOW_DEADLINE_ROUND_TRIPS;
        told.max(repaired).max(burst_time(frame))
    }

    /// TCP/NC under the host's own TCP, with redundancy for 12 % of losses.
    pub fn tcp_nc() -> Self {
        CodingParams { tcp_nc: Some(Redundancy::Fixed { factor: 1.15 }), ..CodingParams::default() }
    }

    /// A sliding window: the mode for use between two endpoints.
    pub fn window() -> Self {
        CodingParams {
            mode: Mode::Window,
            ack_interval: Duration::from_millis(10),
            ..CodingParams::default()
        }
    }
}

impl Default for CodingParams {
    /// Our own choice for block mode: GF(2^8), systematic, small blocks, several in flight.
    fn default() -> Self {
        CodingParams {
            tcp_nc: None,
            mode: Mode::Block,
            window_size: WINDOW_SYMBOLS_MAX as u16,
            window_lane: LANE_SIZE,
            goal: Goal::Throughput,
            max_overhead: None,
            delivery: Delivery::Auto,
            delivery_udp: UdpDelivery::AUTO,
            half_duplex: None,
            clamp_windows: true,
            field: Field::Gf256,
            order: Order::Systematic,
            block_size: 32,
            symbol_size: 0,
            encoder_timeout: Duration::from_millis(20),
            overshoot: 1.0,
            helper_overshoot: 1.0,
            policy: Policy::Credit,
            repair_margin: true,
            bundle: true,
            blocks_in_flight: 8,
            delivery_deadline: DEADLINE_DEFAULT,
            ack_interval: Duration::from_millis(20),
        }
    }
}

/// Erasure ratios of the links between encoder S, helper H and decoder D (the paper's Fig. 2).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErasureRatios {
    /// S to H, 0 to 1.
    pub e1: f64,
    /// H to D, 0 to 1.
    pub e2: f64,
    /// S to D, 0 to 1.
    pub e3: f64,
}

/// Where the erasure ratios come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkErrors {
    /// Counted from gaps in the sequence of frames, and reported to the encoder.
    Measured,
    /// Told once and for all, as in the paper's tests.
    Fixed(ErasureRatios),
}

/// Everything a [`crate::Station`] is told before it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct StationConfig {
    /// This station.
    pub id: StationId,
    /// What it does.
    pub role: Role,
    /// The secret of the group, or keys of each station's own.
    pub security: Security,
    /// Coding parameters; all stations of a group must have the same field, block and symbol size.
    pub coding: CodingParams,
    /// Erasure ratios.
    pub link_errors: LinkErrors,
    /// Packets the ingress queue holds before it drops. In window mode, where this is
    /// [`CodingParams::ingress_packets_default`], no more than [`INGRESS_PACKETS_LANE`] for each
    /// lane that the path needs.
    pub ingress_packets: usize,
    /// Longest frame the underlay carries, in bytes (Ethernet: its MTU).
    pub frame_len_max: usize,
    /// Shortest frame the underlay carries without padding of its own (Ethernet: 46, UDP: 0).
    pub frame_len_min: usize,
    /// Bytes that the ingress queue and the windows, blocks or TCP/NC's buffers may hold together:
    /// they become as short, and blocks as few, as that takes.
    pub memory_bytes: usize,
    /// Pace of the frames, bits per second of frame bytes; `None`: as fast as the underlay takes.
    pub rate_bps: Option<u64>,
}

impl Role {
    /// Whether a helper may recode what this station sends.
    pub(crate) fn is_recoded(self) -> bool {
        !matches!(self, Role::Endpoint { helper: None, .. })
    }
}

/// How many combinations leave for each of TCP's segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Redundancy {
    /// The paper's: R for each segment that TCP sends, the fraction carried along.
    Fixed {
        /// R, from 1 to [`REDUNDANCY_MAX`](crate::tcpnc::REDUNDANCY_MAX).
        factor: f64,
    },
    /// As coded TCP does: as long as it is not likely that as many combinations arrive as degrees
    /// of freedom are missing. Needs [`Feedback`](crate::tcpnc::wire::Feedback).
    Adaptive {
        /// Share of packets lost, from 0, below 1: where the estimate begins.
        loss_ratio: f64,
        /// Most combinations for each segment, in the long run. Losses beyond `1 - 1/factor_max`
        /// are left to TCP, which takes them for congestion.
        factor_max: f64,
    },
}

impl Redundancy {
    /// Whether the sender has to be told more than TCP's acknowledgements do.
    pub fn needs_feedback(self) -> bool {
        matches!(self, Redundancy::Adaptive { .. })
    }
}

impl StationConfig {
    /// How packets cross here.
    pub fn crossing(&self) -> Crossing {
        match self.role {
            Role::Plain { .. } => Crossing::Plain,
            Role::Relay => Crossing::Relay,
            Role::Endpoint { .. } if self.coding.tcp_nc.is_some() => Crossing::TcpNc,
            Role::Endpoint { .. } | Role::Helper { .. } => self.coding.mode.into(),
        }
    }
}
