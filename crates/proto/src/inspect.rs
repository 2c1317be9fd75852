//! The internal state of a station, for checks of its bounds: read-only, made on demand.
//!
//! The state machines never use it. The simulator's torture test checks after every event that
//! everything here is within [`crate::bounds`].

use core::time::Duration;

use corridor_base::Time;

use crate::config::{Crossing, StationId};
use crate::keys::PublicKey;

/// A snapshot of a station.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspection {
    /// Random per start of the station, as in its HELLOs.
    pub instance: u64,
    /// Configured neighbours.
    pub peers: Vec<PeerView>,
    /// Packets in the ingress queue.
    pub ingress_packets: usize,
    /// Packets in the egress queue, waiting for the driver.
    pub egress_packets: usize,
    /// Events waiting for the driver.
    pub events: usize,
    /// Chunks received in parts, by sender.
    pub parts: Vec<PartsView>,
    /// Bytes held, for each share of the memory.
    pub held: HeldView,
    /// The encoder of an endpoint.
    pub encoder: Option<EncoderView>,
    /// The decoder of an endpoint whose peer has joined.
    pub decoder: Option<DecoderView>,
    /// Both directions of an endpoint in window mode.
    pub window: Option<WindowView>,
    /// The two flows of a helper.
    pub flows: Vec<FlowView>,
}

impl Inspection {
    /// Bytes of chunks received in parts.
    pub fn parts_bytes(&self) -> usize {
        self.parts.iter().map(|of| of.bytes).sum()
    }
}

/// The chunks received in parts from one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsView {
    /// The peer.
    pub peer: StationId,
    /// Bytes of all of them.
    pub bytes: usize,
    /// Bytes of the longest chunk that it sends, according to its announced symbol size.
    pub chunk_len_max: usize,
}

/// Bytes that a station holds for each share of its memory: at most those in
/// [`MemoryView`](crate::MemoryView).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldView {
    /// Of the ingress queue.
    pub queue: usize,
    /// Of symbols sent that may have to be repaired.
    pub sent: usize,
    /// Of symbols received and not yet complete.
    pub received: usize,
    /// Of buffers kept for reuse, and the table of clamped connections.
    pub spare: usize,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerView {
    /// Its number.
    pub id: StationId,
    /// The instance of its accepted session, if there is one.
    pub instance: Option<u64>,
    /// How it carries packets, as announced; `None` before it has.
    pub crossing: Option<Crossing>,
    /// Its sessions that have not answered their challenge.
    pub pending_sessions: usize,
    /// Both sides have accepted each other.
    pub is_up: bool,
    /// It has not been heard for [`crate::bounds::PEER_SILENT_HELLOS`] of its HELLOs.
    pub is_silent: bool,
    /// Authentic HELLOs received from it.
    pub hellos: u64,
    /// When one of those last had an entry for this station, which the peer has to have heard
    /// first.
    pub answered_at: Option<Time>,
    /// When it last sent an authentic HELLO, or a frame under an accepted session.
    pub last_heard: Option<Time>,
    /// Loss ratio of its frames to this station, 0 to 1, once there is a session.
    pub loss_ratio: Option<f64>,
    /// Its public key, if stations have key pairs.
    pub public_key: Option<PublicKey>,
    /// When the secret to seal under was agreed on with it, if stations have key pairs.
    pub agreed_at: Option<Time>,
}

/// State that operators ask for, besides counters and peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The ingress queue.
    pub queue: QueueView,
    /// Smoothed round-trip time through the tunnel as in RFC 6298; `None` before it was measured,
    /// or where nothing measures it (TCP/NC, plain, a helper).
    pub round_trip: Option<Duration>,
}

/// A snapshot of an ingress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueView {
    /// Packets waiting.
    pub packets: usize,
    /// Packets that may wait.
    pub packets_max: usize,
    /// Bytes waiting.
    pub bytes: usize,
    /// How long the oldest packet has waited.
    pub delay: Duration,
}

/// An encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderView {
    /// Number of the next block.
    pub next_block: u16,
    /// Blocks in flight, oldest first.
    pub blocks: Vec<EncoderBlockView>,
    /// Empty blocks kept for reuse.
    pub spare_blocks: usize,
    /// Most bytes of packets, with their length prefixes, in a source symbol of several packets
    /// now.
    pub packets_len_max: usize,
}

/// A block of an encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EncoderBlockView {
    /// Its number.
    pub block: u16,
    /// Source symbols added.
    pub symbols: usize,
    /// Packets in them.
    pub packets: u64,
    /// The decoder's rank as last reported.
    pub rank: usize,
    /// Transmissions not yet covered by feedback.
    pub in_flight: usize,
    /// Transmissions allowed and not yet made.
    pub budget: f64,
}

/// A decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecoderView {
    /// First block not finished.
    pub base: u16,
    /// Source symbols of that block delivered or passed over.
    pub next_symbol: usize,
    /// Blocks from `base` on: rank and known symbols; `None` where nothing was heard.
    pub blocks: Vec<Option<DecoderBlockView>>,
    /// Blocks given up, or whose rows were dropped, as long as this is remembered.
    pub emptied_blocks: usize,
    /// Empty blocks kept for reuse.
    pub spare_blocks: usize,
}

/// A block of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderBlockView {
    /// Innovative symbols received.
    pub rank: usize,
    /// Source symbols known to exist.
    pub known: usize,
}

/// An endpoint in window mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowView {
    /// Source symbols that the sender holds.
    pub held: usize,
    /// Frames in flight that the sender remembers: for the link, and for the lane with most.
    pub in_flight: usize,
    /// See [`in_flight`](Self::in_flight).
    pub in_flight_lane: usize,
    /// Id of the first symbol not delivered or skipped; `None` before the peer joined.
    pub next: Option<u64>,
    /// Symbols from there on that the receiver knows of.
    pub span: usize,
    /// Arrival times that the receiver remembers.
    pub noted: usize,
}

/// A flow that a helper helps.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowView {
    /// The encoder.
    pub flow: StationId,
    /// Blocks kept, oldest first.
    pub blocks: Vec<HelperBlockView>,
    /// Empty blocks kept for reuse.
    pub spare_blocks: usize,
}

/// A block of a helper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HelperBlockView {
    /// Its number.
    pub block: u16,
    /// Innovative symbols overheard.
    pub rank: usize,
    /// Transmissions earned, and granted for repair.
    pub allowed: f64,
    /// Transmissions made.
    pub sent: u32,
    /// Frames in flight that the helper remembers, the encoder's or its own: the longer of the two
    /// lists.
    pub in_flight: usize,
}
