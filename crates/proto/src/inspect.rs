//! What is inside a station, for those who watch over its bounds: read-only, made when asked for.
//!
//! The state machines never look at it. The simulator's torture checks after every event that what
//! it sees here keeps to [`crate::bounds`].

use core::time::Duration;

use corridor_base::Time;

use crate::config::{Crossing, StationId};
use crate::keys::PublicKey;

/// The state of a station at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspection {
    /// Random per start of the station, as its HELLOs tell it.
    pub instance: u64,
    /// Configured neighbours.
    pub peers: Vec<PeerView>,
    /// Packets in the ingress queue.
    pub ingress_packets: usize,
    /// Packets that wait for the driver in the egress queue.
    pub egress_packets: usize,
    /// Events that wait for the driver.
    pub events: usize,
    /// What is kept of chunks of which parts have come, by whose they are.
    pub parts: Vec<PartsView>,
    /// Bytes of what there is a share of the memory for.
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
    /// Bytes that are kept of chunks of which parts have come.
    pub fn parts_bytes(&self) -> usize {
        self.parts.iter().map(|of| of.bytes).sum()
    }
}

/// What is kept of a peer's chunks of which parts have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartsView {
    /// The peer.
    pub peer: StationId,
    /// Bytes of all of them.
    pub bytes: usize,
    /// Bytes of the longest chunk that it sends, by what it says of its symbols.
    pub chunk_len_max: usize,
}

/// Bytes that a station holds, of each kind that it has a share for: no more than
/// [`MemoryView`](crate::MemoryView) says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldView {
    /// Of the ingress queue.
    pub queue: usize,
    /// Of what is sent, and may be needed once more.
    pub sent: usize,
    /// Of what was received, and is not all there.
    pub received: usize,
    /// Of buffers that are used again, and connections whose windows are clamped.
    pub spare: usize,
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerView {
    /// Its number.
    pub id: StationId,
    /// The instance of its accepted session, if there is one.
    pub instance: Option<u64>,
    /// How packets cross there, as it says; `None` before it has.
    pub crossing: Option<Crossing>,
    /// Sessions of it that have not answered their challenge.
    pub pending_sessions: usize,
    /// Both sides have accepted each other.
    pub is_up: bool,
    /// It has not been heard for [`crate::bounds::PEER_SILENT_HELLOS`] of its HELLOs.
    pub is_silent: bool,
    /// Authentic HELLOs heard from it.
    pub hellos: u64,
    /// When one of those last spoke to this station, which it had to hear first.
    pub answered_at: Option<Time>,
    /// When it was last heard, with an authentic HELLO or under an accepted session.
    pub last_heard: Option<Time>,
    /// Share of its frames that get lost on their way here, 0 to 1, once there is a session.
    pub loss_ratio: Option<f64>,
    /// Its public key, where stations have keys of their own.
    pub public_key: Option<PublicKey>,
    /// When the secret that is sealed under was agreed on with it, where they have.
    pub agreed_at: Option<Time>,
}

/// What an operator asks about a station beside its counters and its peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The ingress queue.
    pub queue: QueueView,
    /// The round trip through the tunnel, smoothed as in RFC 6298; none before it was measured,
    /// or where nothing measures it (TCP/NC, plain, a helper).
    pub round_trip: Option<Duration>,
}

/// An ingress queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueView {
    /// Packets that wait.
    pub packets: usize,
    /// Packets that may wait.
    pub packets_max: usize,
    /// Bytes that wait.
    pub bytes: usize,
    /// How long the one has waited that waits longest.
    pub delay: Duration,
}

/// An encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderView {
    /// Number of the block that is opened next.
    pub next_block: u16,
    /// Blocks in flight, oldest first.
    pub blocks: Vec<EncoderBlockView>,
    /// Empty blocks kept for use again.
    pub spare_blocks: usize,
    /// Bytes of several packets, with their prefixes, that a source symbol is made of now, at most.
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
    /// The decoder's rank as last told.
    pub rank: usize,
    /// Transmissions whose fate is kept in mind.
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
    /// Blocks given up whose outcome is remembered.
    pub finished_blocks: usize,
    /// Empty blocks kept for use again.
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
    /// Frames whose fate the sender keeps in mind: of the link, and of the lane with most.
    pub in_flight: usize,
    /// See [`in_flight`](Self::in_flight).
    pub in_flight_lane: usize,
    /// Id of the first symbol that the receiver has not passed; `None` before the peer joined.
    pub next: Option<u64>,
    /// Symbols from there on that the receiver knows of.
    pub span: usize,
    /// Times of arrival that the receiver remembers.
    pub noted: usize,
}

/// A flow that a helper helps.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowView {
    /// The encoder.
    pub flow: StationId,
    /// Blocks kept, oldest first.
    pub blocks: Vec<HelperBlockView>,
    /// Empty blocks kept for use again.
    pub spare_blocks: usize,
}

/// A block of a helper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HelperBlockView {
    /// Its number.
    pub block: u16,
    /// Innovative symbols overheard.
    pub rank: usize,
    /// Transmissions earned and granted for repair.
    pub allowed: f64,
    /// Transmissions made.
    pub sent: u32,
    /// Frames, of the encoder and of its own, whose fate is kept in mind; the longer list counts.
    pub in_flight: usize,
}
