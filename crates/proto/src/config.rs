//! The configuration of a station. [`StationConfig::check`] validates it.

use core::time::Duration;

use corridor_codec::{Field, MAX_WINDOW_SIZE};

pub(crate) use crate::id::STATION_NUMBER;
pub use crate::id::StationId;

use crate::bounds::{
    INGRESS_PACKETS_LANE, WINDOW_DEADLINE_ROUND_TRIP_MAX, WINDOW_DEADLINE_ROUND_TRIPS,
    WINDOW_SYMBOLS_MAX, burst_time,
};
use crate::keys::Security;

/// Default bound of the ingress queue where only this bound keeps it short.
const INGRESS_PACKETS_BLOCK: usize = 100;
/// The same in front of a window, where CoDel keeps it short: enough for all lanes.
const INGRESS_PACKETS_WINDOW: usize = 16 * INGRESS_PACKETS_LANE;
/// Unacknowledged symbols in window mode, unless a path needs more than one lane: 100 ms at 100
/// Mbit/s.
const LANE_SIZE: u16 = MAX_WINDOW_SIZE as u16;
/// Default of how long missing symbols may delay later ones, on most paths.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(1);

/// What a station does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Encodes what its own host sends, decodes what its peer sends: an end of a coded link.
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
    /// The paper's unreliable forwarder (Section III): one packet per frame, no coding, no
    /// feedback.
    Plain {
        /// The station at the other end.
        peer: StationId,
    },
    /// Forwards packets between neighbours, and sends two of different flows as one frame if both
    /// receivers can decode it: a [`crate::RelayStation`], not a [`crate::Station`].
    Relay,
}

/// Which symbols are coded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Blocks, as in the FRANC paper; a helper can recode them.
    Block,
    /// A sliding window, between two endpoints on one hop: low delay, any loss.
    Window,
}

/// How a station carries packets. Both ends have to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// Coded in blocks.
    Block,
    /// Coded in a sliding window.
    Window,
    /// Coded between TCP and IP.
    TcpNc,
    /// Uncoded: the unreliable forwarder.
    Plain,
    /// From relay to relay, with two packets of different flows in a frame where that pays.
    Relay,
}

impl core::fmt::Display for Crossing {
    /// As spelled in configurations.
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
    /// Nearly all of it carries packets; losses are repaired once they are known.
    Throughput,
    /// A share of it is used for repair symbols ahead of need.
    LowDelay,
    /// All of it carries packets: nearly no repair symbol is spurious. For links where bytes cost
    /// money.
    Bulk,
}

/// Whether window mode delivers packets in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// By need. TCP and unknown protocols: in order. UDP: as in [`UdpDelivery`]. ICMP: at once.
    Auto,
    /// All packets in order.
    InOrder,
    /// Each packet as soon as it has arrived.
    Immediate,
}

/// How UDP flows are delivered under [`Delivery::Auto`], by their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpDelivery {
    /// QUIC. [`Delivery::Auto`]: in order while it carries bulk data.
    pub quic: Delivery,
    /// Unknown flows of full packets that keep a queue standing. [`Delivery::Auto`]: in order,
    /// unless they ignore drops. [`Delivery::InOrder`]: even then.
    pub bulk: Delivery,
    /// RTP, and packets marked as real-time. [`Delivery::Auto`]: at once.
    pub real_time: Delivery,
    /// All other flows that are not `bulk`. [`Delivery::Auto`]: at once.
    pub other: Delivery,
}

impl UdpDelivery {
    /// All kinds by need.
    pub const AUTO: Self = UdpDelivery {
        quic: Delivery::Auto,
        bulk: Delivery::Auto,
        real_time: Delivery::Auto,
        other: Delivery::Auto,
    };
}

/// In which order the encoder sends symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Source symbols uncoded as they are added, then coded symbols for redundancy and repair.
    Systematic,
    /// Coded symbols only, over the whole block: nothing is sent before the block is full.
    Dense,
    /// The paper's order: coded symbols only, each over what has been added so far.
    OnTheFly,
}

/// How many transmissions the encoder and the helper may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// PlayNCool's budgets, as the 2014 paper uses them (see [`crate::budget`]).
    PlayNCool,
    /// Credits from the transmission optimum, repair as soon as feedback shows what is missing.
    Credit,
}

/// The coding parameters: FRANC's five (Section II-B), and ours. Flat, because presets and tests
/// override some of them with `..`; `mode` lists which of them it uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodingParams {
    /// Code each TCP connection by itself, between TCP and IP, with [`crate::tcpnc`] and this
    /// redundancy. Of the following fields, only `field` is used then.
    pub tcp_nc: Option<Redundancy>,
    /// Blocks or a sliding window. Of the following fields, window mode uses `field`,
    /// `symbol_size`, `window_size`, `goal`, `max_overhead`, `delivery`, `delivery_udp`,
    /// `half_duplex`, `clamp_windows`, `delivery_deadline` and `ack_interval`.
    pub mode: Mode,
    /// Field of the coding coefficients.
    pub field: Field,
    /// Order in which the encoder sends symbols.
    pub order: Order,
    /// Source symbols in a block, 1 to [`corridor_codec::MAX_BLOCK_SIZE`].
    pub block_size: u16,
    /// Symbols that the sender may have unacknowledged, 1 to [`WINDOW_SYMBOLS_MAX`]. For what the
    /// peer sends, it only limits the number of lanes, to those that hold this many symbols.
    pub window_size: u16,
    /// Most symbols that are coded together, 1 to [`MAX_WINDOW_SIZE`]: if the window needs more,
    /// they are dealt to several lanes.
    pub window_lane: u16,
    /// What matters most.
    pub goal: Goal,
    /// Most bytes of repair symbols per byte of source symbols, over about a window; `None`: no
    /// limit. What cannot be repaired within it is given up after its deadline.
    pub max_overhead: Option<f64>,
    /// Which packets wait for earlier ones.
    pub delivery: Delivery,
    /// Which UDP packets do, if that is by need.
    pub delivery_udp: UdpDelivery,
    /// The channel is half-duplex, as on Wi-Fi: airtime that this station leaves can be used by the
    /// other, and feedback takes airtime from data. `None`: to be detected.
    pub half_duplex: Option<bool>,
    /// Reduce the receive windows that TCP advertises where more data would only stand in the
    /// ingress queue.
    pub clamp_windows: bool,
    /// Longest source symbol in bytes; limits the tunnel's MTU. 0: as long as fits the underlay.
    pub symbol_size: u16,
    /// How long the encoder waits for an acknowledgment before it sends more.
    pub encoder_timeout: Duration,
    /// Factor on the encoder's budget, 1 or more (the paper: 1.05).
    pub overshoot: f64,
    /// PlayNCool: factor on the helper's maximum for a block, 1 or more (the paper: 1).
    pub helper_overshoot: f64,
    /// Which budgets.
    pub policy: Policy,
    /// PlayNCool: repair adds a margin to what is missing on average: one standard deviation of the
    /// losses, and over GF(2) two symbols ([`crate::budget::repair_at_once`]).
    pub repair_margin: bool,
    /// Several packets share a source symbol if they fit; otherwise each has its own.
    pub bundle: bool,
    /// Blocks that the encoder may have unacknowledged at once, 1 (the paper) to
    /// [`crate::bounds::BLOCKS_IN_FLIGHT_MAX`].
    pub blocks_in_flight: u16,
    /// How long an incomplete block may delay later packets at the decoder, and how long the
    /// encoder goes on repairing it.
    pub delivery_deadline: Duration,
    /// Least time between two acknowledgments that do not complete a block.
    pub ack_interval: Duration,
}

impl CodingParams {
    /// Default of the packets that the ingress queue holds.
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

    /// Symbols per lane of the window: all, if they fit one lane.
    pub(crate) fn lane_size(&self) -> u16 {
        self.window_lane.min(self.window_size)
    }

    /// How long missing symbols may delay later ones, for a window with this many lanes, and this
    /// round-trip time and time of a frame: as configured, but at least as long as repair and
    /// bursts of losses take. A configured deadline shorter than usual is kept as long as one lane
    /// is enough.
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

    /// A sliding window: the mode for two endpoints.
    pub fn window() -> Self {
        CodingParams {
            mode: Mode::Window,
            ack_interval: Duration::from_millis(10),
            ..CodingParams::default()
        }
    }
}

impl Default for CodingParams {
    /// Our defaults for block mode: GF(2^8), systematic, small blocks, several in flight.
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
    /// Configured, as in the paper's tests.
    Fixed(ErasureRatios),
}

/// Configuration of a [`crate::Station`].
#[derive(Clone, Debug, PartialEq)]
pub struct StationConfig {
    /// This station's number.
    pub id: StationId,
    /// What it does.
    pub role: Role,
    /// The secret of the group, or key pairs.
    pub security: Security,
    /// Coding parameters; all stations of a group must have the same field, block and symbol size.
    pub coding: CodingParams,
    /// Erasure ratios.
    pub link_errors: LinkErrors,
    /// Packets that the ingress queue holds before it drops. In window mode, if this is
    /// [`CodingParams::ingress_packets_default`], at most [`INGRESS_PACKETS_LANE`] per lane that
    /// the path needs.
    pub ingress_packets: usize,
    /// Longest frame that the underlay carries, in bytes (Ethernet: its MTU).
    pub frame_len_max: usize,
    /// Shortest frame that the underlay carries without padding, in bytes (Ethernet: 46, UDP: 0).
    pub frame_len_min: usize,
    /// Bytes that the ingress queue and the windows, blocks or TCP/NC's buffers may hold together:
    /// their lengths, and the number of blocks, are reduced accordingly.
    pub memory_bytes: usize,
    /// Rate of frames, in bits of frames per second; `None`: as fast as the underlay takes them.
    pub rate_bps: Option<u64>,
}

impl Role {
    /// Whether a helper may recode what this station sends.
    pub(crate) fn is_recoded(self) -> bool {
        !matches!(self, Role::Endpoint { helper: None, .. })
    }
}

/// How many combinations are sent per TCP segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Redundancy {
    /// The paper's scheme: R per segment that TCP sends, with the fraction carried over.
    Fixed {
        /// R, from 1 to [`REDUNDANCY_MAX`](crate::tcpnc::REDUNDANCY_MAX).
        factor: f64,
    },
    /// Coded TCP's scheme: as many as needed for the number of missing degrees of freedom to be
    /// likely to arrive. Needs [`Feedback`](crate::tcpnc::wire::Feedback).
    Adaptive {
        /// Initial estimate of the loss ratio, from 0, below 1.
        loss_ratio: f64,
        /// Most combinations per segment in the long run. Losses beyond `1 - 1/factor_max` are left
        /// to TCP, which takes them for congestion.
        factor_max: f64,
    },
}

impl Redundancy {
    /// Whether the sender needs more feedback than TCP's acknowledgments.
    pub fn needs_feedback(self) -> bool {
        matches!(self, Redundancy::Adaptive { .. })
    }
}

impl StationConfig {
    /// How this station carries packets.
    pub fn crossing(&self) -> Crossing {
        match self.role {
            Role::Plain { .. } => Crossing::Plain,
            Role::Relay => Crossing::Relay,
            Role::Endpoint { .. } if self.coding.tcp_nc.is_some() => Crossing::TcpNc,
            Role::Endpoint { .. } | Role::Helper { .. } => self.coding.mode.into(),
        }
    }
}
