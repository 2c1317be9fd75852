//! Bounds what the queues and windows of a node hold, in bytes.
//!
//! A node has one limit for all of them: the configured one, by default [`MEMORY_DEFAULT`], or more
//! if its peers need more. The peer of a pair has all of it. The peers that a hub starts with have
//! equal parts of seven eighths; each peer that is added later gets an eighth of what is free. Such
//! a *share* is divided as follows:
//!
//! 1. [`MEMORY_BESIDE`] bytes are for the rest of a station: its state of flows and of the path,
//!    and frame buffers. Up to a sixteenth of the share is for things that improve with more memory
//!    ([`Spare`]): connections whose windows are clamped, and buffers that are reused.
//! 2. A quarter of the rest is for the ingress queue: as many packets of the longest frame as fit,
//!    but no more than configured.
//! 3. What is left is for the windows of both directions: the longest window, no longer than
//!    configured, that fits twice with symbols of the longest frame. It is counted once for
//!    sending, with the log of its frames, and once for receiving, with partly received chunks.
//! 4. What the sent window does not need is for the received one. A peer may have longer symbols;
//!    the HELLO tells it how many lanes, and symbols per lane, this station accepts.
//!
//! A share is divided alike on any machine, so that a configuration is valid on all of them or on
//! none: the layout assumes the codec backend that needs most, and sizes of structures are
//! constants here, which are checked against the real ones at compile time (`station/beside.rs`).
//!
//! A window of several lanes counts twice, since earlier lanes drain while symbols are dealt to
//! others. Blocks and TCP/NC's buffers use the same memory as windows (`memory/coders.rs`).

mod coders;
mod shortage;

use crate::bounds::{
    CLAMPS_MAX, EGRESS_PLACES_KEPT, EGRESS_SPARE_MAX, FRAME_LEN_MAX, MEMORY_BESIDE, MEMORY_DEFAULT,
    MEMORY_QUEUE_PACKETS_MIN, MEMORY_TCP_NC_SEGMENTS_MIN, MEMORY_WINDOW_SYMBOLS_MIN,
    PARTS_WHOLES_MAX, TCP_NC_CONNECTIONS_MAX, WINDOW_SENT_LOG_MAX, WINDOW_STRETCHES_MAX,
    sent_log_max,
};
use crate::config::{Mode, Role, StationConfig};
use crate::error::ConfigError;
use crate::wire::Lanes;
pub(crate) use shortage::Shortages;
pub use shortage::{Counted, Shortage};

pub(crate) use coders::{
    BLOCK_LOGGED_BYTES, BlockShape, DECODER_BLOCKS_MAX, PROOF_ROW_BYTES, TIME_BYTES,
};
use corridor_codec::{Field, MAX_WINDOW_SIZE, WindowDecoder, WindowEncoder};

/// Bytes of a queued packet besides its own.
pub(crate) const QUEUED_BYTES: usize = 160;
/// Queue entries allocated at once, however few packets may wait.
pub(crate) const QUEUE_PLACES_MIN: usize = 8;
/// Bytes of a frame in the log of frames in flight.
pub(crate) const LOGGED_BYTES: usize = 40;
/// Bytes of a partly received chunk besides those of its symbol: what precedes the symbol.
const CHUNK_BYTES: usize = 16;
/// Bytes of a connection whose window is clamped.
pub(crate) const CLAMP_BYTES: usize = 416;
/// Bytes of a source symbol in a window besides its own, at either end: its entry, fate and length.
const SYMBOL_BYTES: usize = 128;
/// Bytes of an empty buffer, and of a packet with its view.
pub(crate) const VEC_BYTES: usize = 24;
/// See [`VEC_BYTES`].
pub(crate) const PACKET_BUF_BYTES: usize = 48;
/// The queue gets one of this many parts of what is left.
const QUEUE_PARTS: usize = 4;
/// [`Spare`] gets one of this many parts of a share.
const SPARE_PARTS: usize = 16;
/// A hub keeps one of this many parts of its memory free for peers that are added later.
const HUB_FREE_PARTS: usize = 8;
/// A peer that is added later gets one of this many parts of what is free, or of more parts if more
/// peers are added with it, but at least what it needs.
const NEWCOMER_PARTS: usize = 8;
/// Step between candidate lengths of a window of one lane: a coding vector wraps around its slots
/// in whole bytes.
const WINDOW_STEP: usize = 8;

/// How a share is divided. Bytes are upper limits, not what is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryView {
    /// Bytes of the share.
    pub share: usize,
    /// The limit of the ingress queue.
    pub queue: usize,
    /// The limit of the sent window, of blocks, or of TCP/NC's coding buffers.
    pub sent: usize,
    /// The limit of the received window, or what corresponds to it.
    pub received: usize,
    /// The limit of [`Spare`].
    pub spare: usize,
}

/// A window: lanes, and symbols per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowShape {
    pub(crate) lanes: Lanes,
    pub(crate) lane_size: u16,
}

impl WindowShape {
    /// The shortest window.
    pub(crate) const LEAST: Self = WindowShape { lanes: Lanes::ONE, lane_size: 1 };

    /// Lanes that may be held at once.
    fn held_lanes(self) -> usize {
        match self.lanes {
            Lanes::ONE => 1,
            lanes => WINDOW_STRETCHES_MAX * lanes.count(),
        }
    }

    /// Bytes of the symbols of a sent lane.
    pub(crate) fn payload_bytes(field: Field, lane_size: usize, symbol_size: usize) -> usize {
        let payloads = WindowEncoder::storage_len_bytes(field, lane_size, symbol_size, None);
        payloads.unwrap_or(usize::MAX)
    }

    /// Bytes of a lane's decoder: payloads, and coefficients twice.
    pub(crate) fn decoder_bytes(field: Field, lane_size: usize, symbol_size: usize) -> usize {
        let payloads = WindowDecoder::storage_len_bytes(field, lane_size, symbol_size, None);
        let slots = lane_size.next_multiple_of(WINDOW_STEP);
        let row = field.vector_len_bytes(slots).next_multiple_of(VECTOR_ALIGN);
        payloads.unwrap_or(usize::MAX).saturating_add(2 * slots * row)
    }

    /// Bytes of the sent window, with symbols of `symbol_size` bytes.
    fn sent_bytes(self, field: Field, symbol_size: usize) -> usize {
        let lane_size = usize::from(self.lane_size);
        Self::payload_bytes(field, lane_size, symbol_size)
            .saturating_add(lane_size * SYMBOL_BYTES)
            .saturating_mul(self.held_lanes())
            .saturating_add(self.logged_bytes())
    }

    /// Bytes of the logs of its frames: one for the link, and with several lanes one per lane.
    /// Frames of draining lanes are in the link's log as well.
    fn logged_bytes(self) -> usize {
        let of_lane = sent_log_max(self.lane_size.into()).next_power_of_two();
        let of_lanes = if self.lanes == Lanes::ONE { 0 } else { self.held_lanes() * of_lane };
        let of_link = (self.held_lanes() * of_lane).min(WINDOW_SENT_LOG_MAX);
        (of_link + of_lanes) * LOGGED_BYTES
    }

    /// Bytes of the received window: its decoders, and partly received chunks.
    fn received_bytes(self, field: Field, symbol_size: usize) -> usize {
        let lane_size = usize::from(self.lane_size);
        let beside = lane_size.next_multiple_of(WINDOW_STEP) * SYMBOL_BYTES;
        let lane = Self::decoder_bytes(field, lane_size, symbol_size).saturating_add(beside);
        let lanes = lane.saturating_mul(self.held_lanes());
        lanes.saturating_add(PARTS_WHOLES_MAX * (symbol_size + CHUNK_BYTES))
    }
}

/// Rows of coefficients begin at multiples of this.
const VECTOR_ALIGN: usize = 64;

/// The longest window for which `bytes_of` returns at most `bytes`, with at most `symbols` symbols
/// in lanes of at most `lane_size`; `None` if there is none.
fn longest(
    (symbols, lane_size): (usize, u16),
    bytes: usize,
    bytes_of: impl Fn(WindowShape) -> usize,
) -> Option<WindowShape> {
    let fits = |shape: &WindowShape| bytes_of(*shape) <= bytes;
    let several = (1..=Lanes::holding(symbols, lane_size.into()).code()).rev();
    let several =
        several.filter_map(Lanes::from_code).map(|lanes| WindowShape { lanes, lane_size });
    let most = usize::from(lane_size).min(symbols);
    let steps = (1..most).rev().filter(|size| size.is_multiple_of(WINDOW_STEP));
    let one = core::iter::once(most).chain(steps);
    let one = one.map(|size| WindowShape { lanes: Lanes::ONE, lane_size: size as u16 });
    several.chain(one).find(fits)
}

/// The lanes, and symbols per lane, that a station accepts from a peer with such symbols, if the
/// received window is limited to `bytes` bytes and `lanes_max` lanes.
pub(crate) fn taken(
    lanes_max: Lanes,
    bytes: usize,
    (field, symbol_size): (Field, u16),
) -> WindowShape {
    let lane_size = MAX_WINDOW_SIZE as u16;
    let symbols = lanes_max.count() * MAX_WINDOW_SIZE;
    let bytes_of = |shape: WindowShape| shape.received_bytes(field, symbol_size.into());
    // `fit` ensures that a share has room for some symbols of the longest possible frame.
    longest((symbols, lane_size), bytes, bytes_of).unwrap_or(WindowShape::LEAST)
}

/// What a station uses for coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coders {
    Windows,
    Blocks,
    /// A helper's blocks of two flows that others encode and decode.
    Helped,
    Connections,
    /// None: it forwards packets.
    None,
}

impl Coders {
    fn of(config: &StationConfig) -> Self {
        match (config.role, config.coding.mode) {
            (Role::Endpoint { .. }, _) if config.coding.tcp_nc.is_some() => Coders::Connections,
            (Role::Endpoint { .. }, Mode::Window) => Coders::Windows,
            (Role::Endpoint { .. }, Mode::Block) => Coders::Blocks,
            (Role::Helper { .. }, _) => Coders::Helped,
            (Role::Plain { .. } | Role::Relay, _) => Coders::None,
        }
    }
}

fn packet_bytes(config: &StationConfig) -> usize {
    config.frame_len_max + QUEUED_BYTES
}

/// Bytes of an ingress queue of `packets` packets.
fn queue_bytes(config: &StationConfig, packets: usize) -> usize {
    QUEUE_PLACES_MIN * QUEUED_BYTES + packets * packet_bytes(config)
}

/// What improves with more memory.
pub(crate) struct Spare {
    /// TCP connections whose windows may be clamped.
    pub(crate) clamps: usize,
    /// Bytes of reused buffers for packets to the host.
    pub(crate) egress_bytes: usize,
}

impl Spare {
    fn bytes(&self) -> usize {
        self.clamps * CLAMP_BYTES + self.egress_bytes
    }
}

/// A station's [`Spare`]: half of the memory for each, but no more than it can use.
pub(crate) fn spare(config: &StationConfig) -> Spare {
    let half = config.memory_bytes / SPARE_PARTS / 2;
    let has_window = Coders::of(config) == Coders::Windows;
    let clamps = if has_window { CLAMPS_MAX } else { 0 };
    let listed = config.frame_len_max + 2 * VEC_BYTES;
    let egress = EGRESS_SPARE_MAX * listed + EGRESS_PLACES_KEPT * PACKET_BUF_BYTES;
    Spare { clamps: (half / CLAMP_BYTES).min(clamps), egress_bytes: half.min(egress) }
}

/// Bytes of a share that are neither for the queue nor for windows.
fn beside(config: &StationConfig) -> usize {
    MEMORY_BESIDE + spare(config).bytes()
}

/// The smallest share that leaves `left` bytes for queue and windows.
fn share_with(config: &StationConfig, left: usize) -> usize {
    let most = StationConfig { memory_bytes: usize::MAX, ..config.clone() };
    let by_part = (MEMORY_BESIDE + left).div_ceil(SPARE_PARTS - 1) * SPARE_PARTS;
    by_part.min(beside(&most) + left)
}

/// How the share of a valid configuration is divided.
pub(crate) fn divided(config: &StationConfig) -> MemoryView {
    let share = config.memory_bytes;
    let queue = queue_bytes(config, config.ingress_packets);
    let rest = share.saturating_sub(beside(config) + queue);
    let sent = match Coders::of(config) {
        Coders::None | Coders::Helped => 0,
        Coders::Windows => {
            let (lanes, lane_size) = (config.coding.lanes_max(), config.coding.lane_size());
            let symbol_size = config.symbol_size().into();
            WindowShape { lanes, lane_size }.sent_bytes(config.coding.field, symbol_size)
        }
        Coders::Blocks => {
            usize::from(config.coding.blocks_in_flight) * BlockShape::of(config).sent_bytes()
        }
        Coders::Connections => connections_bytes(config, MOST_CONNECTIONS).0,
    };
    let received = match Coders::of(config) {
        Coders::None => 0,
        Coders::Connections => connections_bytes(config, MOST_CONNECTIONS).1,
        Coders::Windows | Coders::Blocks | Coders::Helped => rest.saturating_sub(sent),
    };
    MemoryView { share, queue, sent, received, spare: spare(config).bytes() }
}

/// Coding buffers and receivers' windows, one of each per connection.
const MOST_CONNECTIONS: (usize, usize) = (TCP_NC_CONNECTIONS_MAX, TCP_NC_CONNECTIONS_MAX);

/// Bytes of `senders` coding buffers of TCP/NC, and of the windows of `receivers` receivers.
pub(crate) fn connections_bytes(
    config: &StationConfig,
    (senders, receivers): (usize, usize),
) -> (usize, usize) {
    let (sent, received) = coders::connection_bytes(config, segments(config));
    (senders * sent, receivers * received)
}

/// Segments of a coding buffer of TCP/NC.
pub(crate) fn segments(config: &StationConfig) -> u16 {
    let queue = queue_bytes(config, config.ingress_packets);
    coders::segments_in(config, config.memory_bytes.saturating_sub(beside(config) + queue))
}

impl StationConfig {
    /// The smallest [`memory_bytes`](Self::memory_bytes) with which a station works, if the
    /// configuration is otherwise valid.
    pub fn memory_min(&self) -> usize {
        least(self)
    }

    /// Default of [`memory_bytes`](Self::memory_bytes), for a hub with `peers` peers, or for any
    /// other station with one: [`MEMORY_DEFAULT`], or the minimum that these need if that is more.
    pub fn memory_default(&self, peers: usize) -> usize {
        // Any error is reported when a station is created from it.
        let least = if self.check().is_ok() { least(self) } else { 0 };
        MEMORY_DEFAULT.max(least_of_all(least, peers))
    }
}

/// The minimum of a hub with `peers` peers, each of which needs `least` bytes.
fn least_of_all(least: usize, peers: usize) -> usize {
    let shares = least.saturating_mul(peers).div_ceil(HUB_FREE_PARTS - 1);
    shares.saturating_mul(HUB_FREE_PARTS)
}

/// Limits queue and window of a station, or its blocks, to what its share holds. Returns what is
/// then less than configured.
///
/// # Errors
/// The share is too small for [`MEMORY_QUEUE_PACKETS_MIN`] packets and
/// [`MEMORY_WINDOW_SYMBOLS_MIN`] symbols, for one block to send and two similar ones of the peer,
/// for a helper's block of either flow, or for TCP/NC's connections with
/// [`MEMORY_TCP_NC_SEGMENTS_MIN`] segments each; or as [`StationConfig::check`].
pub(crate) fn fit(config: &mut StationConfig) -> Result<Shortages, ConfigError> {
    config.check()?;
    let told = config.clone();
    let least = least(config);
    if config.memory_bytes < least {
        let expected = format!("{least} bytes or more");
        return Err(ConfigError::new("limits.memory", config.memory_bytes, expected));
    }
    let left = config.memory_bytes - beside(config);
    let packets = (left / QUEUE_PARTS - queue_bytes(config, 0)) / packet_bytes(config);
    config.ingress_packets = config.ingress_packets.min(packets);
    let rest = left - queue_bytes(config, config.ingress_packets);
    match Coders::of(config) {
        Coders::Windows => fit_window(config, rest),
        Coders::Blocks => {
            let (shape, told) = (BlockShape::of(config), config.coding.blocks_in_flight);
            let fits = |blocks: &u16| shape.both_ways(usize::from(*blocks)) <= rest;
            config.coding.blocks_in_flight = (1..=told).rev().find(fits).unwrap_or(1);
        }
        Coders::Helped | Coders::Connections | Coders::None => {}
    }
    Ok(shortage::shortages(&told, config))
}

fn fit_window(config: &mut StationConfig, rest: usize) {
    let (field, symbol_size) = (config.coding.field, usize::from(config.symbol_size()));
    let bytes_of = |shape: WindowShape| {
        let sent = shape.sent_bytes(field, symbol_size);
        sent.saturating_add(shape.received_bytes(field, symbol_size).max(longest_received(field)))
    };
    let told = (usize::from(config.coding.window_size), config.coding.lane_size());
    let shape = longest(told, rest, bytes_of).unwrap_or(WindowShape::LEAST);
    let symbols = shape.lanes.count() * usize::from(shape.lane_size);
    config.coding.window_size = config.coding.window_size.min(symbols as u16);
}

/// The share of each of the `peers` peers that a hub starts with; the hub keeps the rest free for
/// peers that are added later.
///
/// # Errors
/// As [`fit`], about the memory of all peers.
pub(crate) fn share(config: &StationConfig, peers: usize) -> Result<usize, ConfigError> {
    config.check()?;
    let share = config.memory_bytes / HUB_FREE_PARTS * (HUB_FREE_PARTS - 1) / peers;
    let least = least(config);
    if share < least {
        let all = least_of_all(least, peers);
        let expected = format!("{all} bytes or more, for {peers} peers");
        return Err(ConfigError::new("limits.memory", config.memory_bytes, expected));
    }
    Ok(share)
}

/// The share of the next of `coming` further peers, out of the free bytes.
///
/// # Errors
/// Fewer bytes are free than a peer needs.
pub(crate) fn share_of_free(
    config: &StationConfig,
    free: usize,
    coming: usize,
) -> Result<usize, ConfigError> {
    let least = least(config);
    if free < least {
        let given = format!("{} ({free} bytes of it are free)", config.memory_bytes);
        let expected =
            format!("{least} bytes free for another peer, or a restart to divide it anew");
        return Err(ConfigError::new("limits.memory", given, expected));
    }
    Ok((free / coming.max(NEWCOMER_PARTS)).max(least))
}

/// Bytes of the shortest window with the longest possible symbols, including partly received ones:
/// whatever a peer announces, this much of it is accepted.
fn longest_received(field: Field) -> usize {
    WindowShape::LEAST.received_bytes(field, FRAME_LEN_MAX)
}

/// Bytes of the smallest share.
fn least(config: &StationConfig) -> usize {
    let packets = config.ingress_packets.min(MEMORY_QUEUE_PACKETS_MIN);
    let queue = QUEUE_PARTS * queue_bytes(config, packets);
    let coders = match Coders::of(config) {
        Coders::Windows => least_windows(config),
        Coders::Blocks => BlockShape::of(config).both_ways(1),
        Coders::Helped => 2 * BlockShape::of(config).helped_bytes(),
        Coders::Connections => coders::connections_bytes(config, MEMORY_TCP_NC_SEGMENTS_MIN),
        Coders::None => 0,
    };
    // The queue gets at most a quarter of what is left.
    share_with(config, queue.max((coders * QUEUE_PARTS).div_ceil(QUEUE_PARTS - 1)))
}

/// Bytes of the shortest windows, both directions.
fn least_windows(config: &StationConfig) -> usize {
    let (field, symbol_size) = (config.coding.field, usize::from(config.symbol_size()));
    let symbols = usize::from(config.coding.window_size).min(MEMORY_WINDOW_SYMBOLS_MIN);
    let lane_size = config.coding.lane_size().min(symbols as u16);
    let shape = WindowShape { lanes: Lanes::ONE, lane_size };
    let received = shape.received_bytes(field, symbol_size).max(longest_received(field));
    shape.sent_bytes(field, symbol_size) + received
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CodingParams, LinkErrors, StationId};

    fn config(memory_bytes: usize) -> StationConfig {
        let coding = CodingParams::window();
        StationConfig {
            id: StationId(1),
            role: Role::Endpoint { peer: StationId(2), helper: None },
            security: [7; 32].into(),
            coding,
            link_errors: LinkErrors::Measured,
            ingress_packets: coding.ingress_packets_default(),
            frame_len_max: 1_500,
            frame_len_min: 0,
            memory_bytes,
            rate_bps: None,
        }
    }

    #[test]
    fn a_pair_has_by_default_what_it_is_told() {
        let told = config(MEMORY_DEFAULT);
        let mut fitted = told.clone();
        fit(&mut fitted).unwrap();
        assert_eq!(fitted, told);
        let view = divided(&fitted);
        let all = beside(&fitted) + view.queue + view.sent + view.received;
        assert!(all <= view.share, "{view:?}");
        let shape = taken(told.coding.lanes_max(), view.received, (Field::Gf256, 1_477));
        assert_eq!((shape.lanes, shape.lane_size), (Lanes::MOST, 1_024));
    }

    #[test]
    fn less_memory_is_never_a_longer_queue_or_window_and_never_overdrawn() {
        let mut before = (0, 0);
        for step in 0..500 {
            let mut fitted = config(least(&config(0)) + 500_000 * step);
            fit(&mut fitted).unwrap();
            let now = (fitted.ingress_packets, fitted.coding.window_size);
            assert!(before.0 <= now.0 && before.1 <= now.1, "{before:?} {now:?}");
            before = now;
            let view = divided(&fitted);
            let all = beside(&fitted) + view.queue + view.sent + view.received;
            assert!(all <= view.share, "{view:?}");
            // The received window fits, whatever symbols the peer announces.
            for symbol_size in [64, 1_477, FRAME_LEN_MAX as u16] {
                let lanes = fitted.coding.lanes_max();
                let shape = taken(lanes, view.received, (Field::Gf256, symbol_size));
                let bytes = shape.received_bytes(Field::Gf256, symbol_size.into());
                assert!(bytes <= view.received, "{shape:?} of {symbol_size}: {bytes} {view:?}");
            }
        }
    }

    #[test]
    fn what_is_too_small_is_refused_with_what_would_do() {
        let least = least(&config(0));
        assert!(fit(&mut config(least)).is_ok(), "{least}");
        let error = fit(&mut config(least - 1)).unwrap_err();
        assert_eq!((error.field, error.given), ("limits.memory", (least - 1).to_string()));
        assert_eq!(error.expected, format!("{least} bytes or more"));
        // A hub keeps an eighth free.
        assert_eq!(share(&config(8 * least), 7), Ok(least));
        let error = share(&config(8 * least - 8), 7).unwrap_err();
        assert_eq!(error.expected, format!("{} bytes or more, for 7 peers", 8 * least));
        assert_eq!(share_of_free(&config(0), 800 * least, 1), Ok(100 * least));
        assert_eq!(share_of_free(&config(0), 800 * least, 80), Ok(10 * least));
        assert_eq!(share_of_free(&config(0), 2 * least, 1), Ok(least));
        assert!(share_of_free(&config(0), least - 1, 1).is_err());
    }

    #[test]
    fn windows_of_less_than_a_lane_are_tried_in_steps() {
        let bytes_of = |shape: WindowShape| {
            if shape.lanes == Lanes::ONE { usize::from(shape.lane_size) } else { usize::MAX }
        };
        let longest = |bytes| longest((4_096, 1_024), bytes, bytes_of);
        assert_eq!(longest(5_000).map(|it| it.lane_size), Some(1_024));
        assert_eq!(longest(1_000).map(|it| it.lane_size), Some(1_000));
        assert_eq!(longest(999).map(|it| it.lane_size), Some(992));
        assert_eq!(longest(7), None);
    }
}
