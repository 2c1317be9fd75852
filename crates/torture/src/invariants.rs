//! Invariants that must hold after every event, whatever a network does.

use core::fmt;

use corridor_base::Time;
use corridor_proto::bounds::{
    BLOCKS_IN_FLIGHT_MAX, EMPTIED_BLOCKS_MAX, EVENTS_MAX, FRAME_LEN_MAX, HELPER_BLOCKS_MAX,
    HELPER_IN_FLIGHT_MAX, MEMORY_BESIDE, PARTS_WHOLES_MAX, PENDING_SESSIONS_MAX, SENT_LOG_MAX,
    SENT_LOG_MIN, SENT_LOG_PER_SYMBOL, WINDOW_GAPS_MAX, WINDOW_SENT_LOG_MAX, WINDOW_STRETCHES_MAX,
};
use corridor_proto::budget::ERASURE_RATIO_MAX;
use corridor_proto::inspect::{DecoderView, EncoderView, FlowView, Inspection};
use corridor_proto::wire::PACKET_PREFIX_LEN;
use corridor_proto::{MemoryView, StationConfig};
use serde::Serialize;

/// The invariant that was violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// Packets are delivered unaltered, in order, and once in a session.
    Delivery,
    /// Exactly the packets that are not delivered are counted as given up.
    Accounting,
    /// On a perfect network nothing is given up.
    Perfection,
    /// Ranks of a block only rise, up to the block's size; no station assumes more than there is.
    Ranks,
    /// Queues, windows, budgets and frames stay within their bounds.
    Bounds,
    /// Forged frames are not accepted.
    Forgery,
    /// Frames go where the peer has shown that it is; to other addresses go no more bytes than came
    /// from there.
    Addresses,
    /// No two frames are sealed with the same nonce, and no session returns.
    Nonces,
    /// Remaining members of a hub do not notice that others come and go.
    Members,
    /// Once the network is calm, everything is delivered or given up within a time limit.
    Stuck,
    /// Without anything to do, stations only send greetings and reports.
    Silence,
    /// No timers in the past, and no timers without effect.
    Spin,
    /// No station panics.
    Panic,
}

/// An invariant's violation in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The invariant.
    pub invariant: Invariant,
    /// When it was violated, nanoseconds of the network's time.
    pub at_ns: u64,
    /// The station, and the circumstances.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Time::from_nanos(self.at_ns);
        write!(f, "{:?} violated at {at}: {}", self.invariant, self.text)
    }
}

/// A failed check, before time and station are known.
pub(super) type Broken = (Invariant, String);

/// Fails a check with a text that is only built then.
pub(super) fn ensure(
    holds: bool,
    invariant: Invariant,
    text: impl FnOnce() -> String,
) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err((invariant, text())) }
}

/// Checks that everything a station holds stays within its bounds.
pub(super) fn check_bounds(view: &Inspection, config: &StationConfig) -> Result<(), Broken> {
    within("packets in the ingress queue", view.ingress_packets, config.ingress_packets)?;
    within("packets in the egress queue after it was drained", view.egress_packets, 0)?;
    within("events", view.events, EVENTS_MAX)?;
    for of in &view.parts {
        let most = PARTS_WHOLES_MAX * of.chunk_len_max.min(FRAME_LEN_MAX);
        within("bytes of a peer's chunks of which parts have come", of.bytes, most)?;
    }
    within("peers of whom parts may come", view.parts.len(), view.peers.len())?;
    for peer in &view.peers {
        within("pending sessions", peer.pending_sessions, PENDING_SESSIONS_MAX)?;
    }
    if let Some(encoder) = &view.encoder {
        check_encoder(encoder, config)?;
    }
    if let Some(decoder) = &view.decoder {
        let window = usize::from(BLOCKS_IN_FLIGHT_MAX);
        within("blocks of a decoder", decoder.blocks.len(), window)?;
        within("spare blocks of a decoder", decoder.spare_blocks, window)?;
        within("emptied blocks", decoder.emptied_blocks, EMPTIED_BLOCKS_MAX)?;
    }
    if let Some(window) = &view.window {
        let held = usize::from(config.coding.window_size);
        within("symbols held", window.held, held)?;
        let (lane, lanes) = sent_logs(config);
        within("frames kept in mind", window.in_flight, lanes)?;
        within("frames of a lane kept in mind", window.in_flight_lane, lane)?;
        // The peer determines how far the receiver's window reaches, within the protocol's bounds.
        within("symbols from the first missing on", window.span, WINDOW_GAPS_MAX)?;
        within("times of arrival", window.noted, WINDOW_GAPS_MAX)?;
    }
    view.flows.iter().try_for_each(|flow| check_helper(flow, config))
}

/// Most frames whose fate is remembered, of one lane of the window and of all lanes: a fixed number
/// for each symbol.
fn sent_logs(config: &StationConfig) -> (usize, usize) {
    let coding = &config.coding;
    let lane_size = usize::from(coding.window_lane.min(coding.window_size));
    let lane = (SENT_LOG_PER_SYMBOL * lane_size).clamp(SENT_LOG_MIN, SENT_LOG_MAX);
    // The number of lanes is a power of two; with draining lanes there are twice as many.
    let lanes = usize::from(coding.window_size).div_ceil(lane_size).next_power_of_two();
    let held = if lanes == 1 { 1 } else { WINDOW_STRETCHES_MAX * lanes };
    (lane, (held * lane).min(WINDOW_SENT_LOG_MAX))
}

/// Checks that what a station holds stays within its share of the memory, part by part.
pub(super) fn check_memory(view: &Inspection, memory: MemoryView) -> Result<(), Broken> {
    within("bytes of the ingress queue", view.held.queue, memory.queue)?;
    within("bytes of what was sent", view.held.sent, memory.sent)?;
    within("bytes of what was received", view.held.received, memory.received)?;
    within("bytes of what is used again", view.held.spare, memory.spare)?;
    let parts = memory.queue + memory.sent + memory.received + memory.spare;
    within("bytes of all parts of the memory", parts + MEMORY_BESIDE, memory.share)
}

fn check_encoder(encoder: &EncoderView, config: &StationConfig) -> Result<(), Broken> {
    let coding = &config.coding;
    let (blocks, size) = (usize::from(coding.blocks_in_flight), usize::from(coding.block_size));
    within("blocks in flight", encoder.blocks.len(), blocks)?;
    within("spare blocks of an encoder", encoder.spare_blocks, blocks)?;
    if let Some(oldest) = encoder.blocks.first() {
        let span = encoder.next_block.wrapping_sub(oldest.block);
        within("blocks from the oldest in flight on", span, BLOCKS_IN_FLIGHT_MAX)?;
    }
    for block in &encoder.blocks {
        within("symbols of a block", block.symbols, size)?;
        within("transmissions kept in mind", block.in_flight, SENT_LOG_MAX)?;
        check_budget("budget of an encoder's block", block.budget, config, size)?;
    }
    Ok(())
}

fn check_helper(flow: &FlowView, config: &StationConfig) -> Result<(), Broken> {
    within("blocks of a helper", flow.blocks.len(), HELPER_BLOCKS_MAX)?;
    within("spare blocks of a helper", flow.spare_blocks, HELPER_BLOCKS_MAX)?;
    for block in &flow.blocks {
        within("frames a helper keeps in mind", block.in_flight, HELPER_IN_FLIGHT_MAX)?;
        let left = (block.allowed - f64::from(block.sent)).max(0.0);
        // The encoder determines the length of blocks, not the helper's own configuration.
        let size = usize::from(config.coding.block_size).max(block.rank);
        check_budget("budget of a helper's block", left, config, size)?;
    }
    Ok(())
}

/// A budget is at most twice what brings a whole block across the worst plausible link: once
/// earned, and once granted for repair.
fn check_budget(
    what: &str,
    budget: f64,
    config: &StationConfig,
    block_size: usize,
) -> Result<(), Broken> {
    /// Dependent symbols, and a deviation of the losses.
    const MARGIN: f64 = 16.0;
    let worst = 1.0 / (1.0 - ERASURE_RATIO_MAX);
    let most = (1.0 + config.coding.overshoot) * worst * (block_size as f64 + MARGIN);
    ensure((0.0..=most).contains(&budget), Invariant::Bounds, || {
        format!("{what} is {budget}, expected 0 to {most}")
    })
}

/// Fails where more is given than may be.
pub(super) fn within<T: PartialOrd + fmt::Display>(
    what: impl fmt::Display,
    given: T,
    most: T,
) -> Result<(), Broken> {
    ensure(given <= most, Invariant::Bounds, || format!("{given} {what}, at most {most} may be"))
}

/// Most packets that one input can release to a host.
pub(super) fn egress_packets_max(block_size: usize, symbol_size: usize) -> usize {
    usize::from(BLOCKS_IN_FLIGHT_MAX) * block_size * (symbol_size / (PACKET_PREFIX_LEN + 1))
}

/// Checks that ranks only rise between two inspections of a station. Those of an encoder's blocks
/// may fall where the decoder has dropped rows.
pub(super) fn check_ranks(
    before: &Inspection,
    view: &Inspection,
    has_dropped: impl Fn(u16) -> bool,
) -> Result<(), Broken> {
    if before.instance != view.instance {
        return Ok(());
    }
    // An encoder forgets the state of a peer that has restarted; a decoder and a helper restart
    // with it.
    let same_peers = before.peers.iter().zip(&view.peers).all(|(a, b)| a.instance == b.instance);
    if let (Some(was), Some(is), true) = (&before.encoder, &view.encoder, same_peers) {
        for block in &is.blocks {
            if let Some(old) = was.blocks.iter().find(|old| old.block == block.block) {
                if !has_dropped(block.block) {
                    rises("an encoder's block", block.block, old.rank, block.rank)?;
                }
                rises("an encoder's symbols in block", block.block, old.symbols, block.symbols)?;
            }
        }
    }
    if let (Some(was), Some(is), true) = (&before.decoder, &view.decoder, same_peers) {
        check_decoder_ranks(was, is)?;
    }
    for (was, is) in before.flows.iter().zip(&view.flows).filter(|_| same_peers) {
        for block in &is.blocks {
            if let Some(old) = was.blocks.iter().find(|old| old.block == block.block) {
                rises("a helper's block", block.block, old.rank, block.rank)?;
            }
        }
    }
    Ok(())
}

fn check_decoder_ranks(was: &DecoderView, is: &DecoderView) -> Result<(), Broken> {
    let passed = is.base.wrapping_sub(was.base);
    for (ahead, block) in is.blocks.iter().enumerate() {
        let number = is.base.wrapping_add(ahead as u16);
        let Some(block) = block else { continue };
        ensure(block.rank <= block.known, Invariant::Ranks, || {
            format!("block {number}: rank {} of {} known symbols", block.rank, block.known)
        })?;
        if let Some(Some(old)) = was.blocks.get(usize::from(passed) + ahead) {
            rises("a decoder's block", number, old.rank, block.rank)?;
            rises("a decoder's known symbols of block", number, old.known, block.known)?;
        }
    }
    Ok(())
}

fn rises(what: &str, number: u16, old: usize, new: usize) -> Result<(), Broken> {
    ensure(old <= new, Invariant::Ranks, || format!("{what} {number} fell from {old} to {new}"))
}
