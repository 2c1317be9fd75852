//! Repairs: combinations of packets that a neighbour was sent and has not reported, from which it
//! recovers whichever of them it lacks.

use core::time::Duration;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use corridor_base::Time;
use corridor_codec::{BlockEncoder, Coefficients, Field, WindowDecoder, WindowOutcome, widen_id};

use crate::wire::{Frames, NodeId, PacketId, REPAIRED_BYTES_MAX, SYMBOL_HEAD_BYTES, Symbol, TOLD};

/// Maximum number of neighbours whose repairs are accepted; those of others are dropped.
pub const REPAIRERS_MAX: usize = 8;
/// Number of a neighbour's frames whose packets are kept: those that a repair covers, and as many
/// received since the oldest of them.
const WINDOW_FRAMES: usize = 2 * TOLD;
/// Offset of counters in ids, so that none is below the first.
const FIRST_ID: u64 = 1 << 32;
const SYMBOL_BYTES_MAX: usize = SYMBOL_HEAD_BYTES + REPAIRED_BYTES_MAX;
const FIELD: Field = Field::Gf256;

/// The coefficients of a repair, oldest frame first: those of the frames it covers are nonzero.
fn coefficients(counter: u32, covered: u32) -> [u8; TOLD] {
    let mut vector = [0; TOLD];
    // The buffer has the required length.
    let _ = FIELD.expand_seed(counter, TOLD, &mut vector);
    for (behind, coefficient) in vector.iter_mut().rev().enumerate() {
        *coefficient = if covered >> behind & 1 == 1 { (*coefficient).max(1) } else { 0 };
    }
    vector
}

/// A packet recovered from a repair.
#[derive(Debug, PartialEq)]
pub struct Repaired {
    /// Counter of the lost frame.
    pub counter: u32,
    pub ttl: u16,
    pub id: PacketId,
    pub packet: Arc<[u8]>,
}

/// Result of a repair, or of a packet that one was waiting for.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub repaired: Vec<Repaired>,
    /// Whether the solution is not a valid packet: all state is then dropped.
    pub is_wrong: bool,
}

/// Makes repairs, and keeps the packets of neighbours that send repairs, as far as these may cover
/// them.
#[derive(Debug)]
pub struct Repairs {
    /// How long unresolved combinations are held.
    lasts: Duration,
    of: BTreeMap<NodeId, Window>,
    /// Encodes this node's repairs, once there is a first one.
    encoder: Option<BlockEncoder>,
}

#[derive(Debug)]
struct Window {
    decoder: WindowDecoder,
    /// Id of its newest frame.
    newest: u64,
    /// When the neighbour last sent something.
    last_at: Time,
    /// Since when there are unresolved combinations.
    pending_since: Option<Time>,
}

impl Window {
    /// The id of a frame, for which the window has a place from now on.
    fn reach(&mut self, now: Time, lasts: Duration, counter: u32) -> u64 {
        self.last_at = now;
        let id = widen_id(counter, self.newest);
        let has_begun_anew = id + 2 * (WINDOW_FRAMES as u64) < self.newest;
        if has_begun_anew || self.pending_since.is_some_and(|since| now.since(since) > lasts) {
            self.decoder.reset(self.decoder.base());
            self.pending_since = None;
        }
        if has_begun_anew {
            self.decoder.reset(id);
            self.newest = id;
        }
        self.newest = self.newest.max(id);
        self.decoder.advance_to((self.newest + 1).saturating_sub(WINDOW_FRAMES as u64));
        id
    }

    /// The newly recovered packets, except that of the frame that has just arrived.
    fn drain(&mut self, now: Time, came: Option<u64>) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(id) = self.decoder.poll_decoded() {
            if Some(id) == came {
                continue;
            }
            let Some(symbol) = self.decoder.symbol(id).and_then(Symbol::parse) else {
                outcome.is_wrong = true;
                continue;
            };
            let Symbol { ttl, id: packet_id, packet } = symbol;
            let packet = packet.into();
            outcome.repaired.push(Repaired { counter: id as u32, ttl, id: packet_id, packet });
        }
        if outcome.is_wrong {
            self.decoder.reset(self.decoder.base());
        }
        let is_pending = self.decoder.rank() > self.decoder.decoded_count();
        self.pending_since = is_pending.then(|| self.pending_since.unwrap_or(now));
        outcome
    }
}

impl Repairs {
    pub fn new(lasts: Duration) -> Self {
        Repairs { lasts, of: BTreeMap::new(), encoder: None }
    }

    /// The combination of these packets for the frame with this counter. Each is given with the
    /// distance of its frame behind the newest one; the newest is first.
    pub fn combine<'a>(
        &mut self,
        counter: u32,
        packets: impl Iterator<Item = (usize, Symbol<'a>)>,
    ) -> Option<(u32, Vec<u8>)> {
        if self.encoder.is_none() {
            self.encoder = BlockEncoder::new(FIELD, TOLD, SYMBOL_BYTES_MAX).ok();
        }
        let encoder = self.encoder.as_mut()?;
        encoder.clear();
        let (mut bits, mut longest, mut places) = (0, 0, Vec::with_capacity(TOLD));
        for (behind, symbol) in packets {
            let symbol = symbol.to_bytes();
            encoder.push(&symbol).ok()?;
            bits |= 1_u32.checked_shl(behind as u32)?;
            longest = longest.max(symbol.len());
            places.push(behind);
        }
        let of_frames = coefficients(counter, bits);
        let vector: Vec<u8> = places.iter().map(|&behind| of_frames[TOLD - 1 - behind]).collect();
        let mut combined = vec![0; longest];
        encoder.encode(&vector, places.len(), &mut combined).ok()?;
        Some((bits, combined))
    }

    /// Number of neighbours tracked.
    pub fn neighbours(&self) -> usize {
        self.of.len()
    }

    /// Records a packet from a neighbour in the frame with this counter.
    pub fn note(&mut self, now: Time, from: NodeId, counter: u32, symbol: &Symbol<'_>) -> Outcome {
        let Some(window) = self.of.get_mut(&from) else { return Outcome::default() };
        let id = window.reach(now, self.lasts, counter);
        // A packet longer than a symbol is in no repair.
        let _ = window.decoder.add_source(id, &symbol.to_bytes());
        window.drain(now, Some(id))
    }

    /// Processes a repair from a neighbour.
    pub fn take(
        &mut self,
        now: Time,
        from: NodeId,
        counter: u32,
        covered: Frames,
        combined: &[u8],
    ) -> Outcome {
        let lasts = self.lasts;
        // The frames it covers were sent before it.
        let newest = counter.wrapping_sub((counter as u16).wrapping_sub(covered.newest).into());
        let Some(window) = self.window(now, from, newest) else { return Outcome::default() };
        let first = window.reach(now, lasts, newest).saturating_sub(TOLD as u64 - 1);
        let vector = coefficients(counter, covered.bits);
        let vector = Coefficients::Vector(&vector);
        match window.decoder.add_coded(first, TOLD, vector, combined) {
            Ok(WindowOutcome::Innovative) => window.drain(now, None),
            _ => Outcome::default(),
        }
    }

    /// The neighbour's window; a new one replaces that of a silent neighbour.
    fn window(&mut self, now: Time, from: NodeId, newest: u32) -> Option<&mut Window> {
        if self.of.len() >= REPAIRERS_MAX && !self.of.contains_key(&from) {
            let (&silent, window) = self.of.iter().min_by_key(|(_, window)| window.last_at)?;
            if now.since(window.last_at) <= self.lasts {
                return None;
            }
            self.of.remove(&silent);
        }
        match self.of.entry(from) {
            Entry::Occupied(window) => Some(window.into_mut()),
            Entry::Vacant(place) => {
                let decoder = WindowDecoder::new(FIELD, WINDOW_FRAMES, SYMBOL_BYTES_MAX).ok()?;
                let newest = FIRST_ID + u64::from(newest);
                Some(place.insert(Window { decoder, newest, last_at: now, pending_since: None }))
            }
        }
    }

    /// A neighbour has restarted.
    pub fn forget_node(&mut self, node: NodeId) {
        self.of.remove(&node);
    }
}
