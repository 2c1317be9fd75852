//! The way of a packet, step 2: from packets to source symbols to ENC frames.
//!
//! Symbols are coded and sent as they are added, not when the block is full (Section II-D of the
//! FRANC paper). The paper has one block in flight; this encoder has a bounded number, and sends
//! the oldest first.

mod block;
mod links;
mod liveness;

use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::Field;

use crate::bounds::BLOCKS_IN_FLIGHT_MAX;
use crate::config::{CodingParams, Delivery, ErasureRatios, Order, Policy, StationId};
use crate::flow::block::budget;
use crate::flow::block::tags::SymbolTags;
use crate::flow::symbol;
use crate::host::queue::IngressQueue;
use crate::inspect::EncoderView;
use crate::link::rtt::RttEstimator;
use crate::memory::BlockShape;
use crate::stats::Stats;
use crate::wire::{Ack, Enc, Form, block_distance};
use block::{Block, Cause, State};
use links::Links;
use liveness::Liveness;

/// Missing dimensions, less those in flight, from which an acknowledgment triggers repair.
const DEFICIT_TO_REPAIR: f64 = 0.5;
/// Upper bound of the factor by which timeouts grow while the decoder is silent.
const SILENCE_STRETCH_MAX: u32 = 4;
/// Timeouts without any acknowledgment after which the decoder counts as gone.
const SILENT_TIMEOUTS: f64 = 16.0;
/// Timeouts for which the oldest block is stalled before long symbols come under suspicion.
const STALLED_TIMEOUTS: u32 = 2;
/// The encoder gives up a block after this many of the decoder's deadlines, so the decoder does so
/// first.
pub(super) const DEADLINES_TO_GIVE_UP: u32 = 2;

/// Encodes one flow: this station's packets to its peer.
pub(crate) struct Encoder {
    params: CodingParams,
    flow: StationId,
    symbol_size_max: usize,
    /// Longest symbol that the path carries now.
    symbol_len_max: usize,
    rng: Stream,
    blocks: VecDeque<Block>,
    spare: Vec<Block>,
    /// Number of the next block. Frames carry the low 16 bits.
    next_number: u32,
    /// Makes the tags of source symbols, if there is a key for them.
    tags: Option<SymbolTags>,
    links: Links,
    /// No packets wait.
    idle: bool,
    rtt: RttEstimator,
    decoder: Liveness,
    /// The block that something was last written for.
    in_parts: Option<u16>,
    scratch: Scratch,
}

/// Buffers for a source symbol and a coding vector.
#[derive(Default)]
struct Scratch {
    symbol: Vec<u8>,
    vector: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(
        params: CodingParams,
        flow: StationId,
        symbol_size_max: usize,
        mut rng: Stream,
        now: Time,
    ) -> Self {
        // A helper may still recode blocks from before this station restarted, so numbers start at
        // random.
        let next_number = u32::from(rng.next_u32() as u16);
        Encoder {
            params,
            flow,
            symbol_size_max,
            symbol_len_max: symbol_size_max,
            rng,
            blocks: VecDeque::new(),
            spare: Vec::new(),
            next_number,
            tags: None,
            links: Links::default(),
            idle: true,
            rtt: RttEstimator::new(),
            decoder: Liveness::new(now, params.ack_interval),
            in_parts: None,
            scratch: Scratch::default(),
        }
    }

    /// Tags source symbols, if there is a key for that.
    pub(crate) fn with_tags(self, tags: Option<SymbolTags>) -> Self {
        Encoder { tags, ..self }
    }

    pub(crate) fn is_tagged(&self) -> bool {
        self.tags.is_some()
    }

    /// Number of the oldest block held; if none is held, of the next one.
    pub(crate) fn base(&self) -> u32 {
        self.blocks.front().map_or(self.next_number, |block| self.number(block.id))
    }

    /// Full number of a block that is held.
    fn number(&self, id: u16) -> u32 {
        let behind = block_distance(id, self.next_id());
        self.next_number.wrapping_sub(behind as u32)
    }

    fn next_id(&self) -> u16 {
        self.next_number as u16
    }

    /// Sets the latest link estimates, and whether there is a helper.
    pub(crate) fn set_links(&mut self, ratios: ErasureRatios, helper: bool) {
        self.links = Links { ratios: ratios.bounded(), helper };
    }

    /// The round-trip time measured with acknowledgments.
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Bytes of all blocks held.
    pub(crate) fn bytes(&self) -> usize {
        let (field, block_size) = (self.params.field, self.params.block_size.into());
        let symbol_size = self.symbol_size_max;
        let shape = BlockShape { field, block_size, symbol_size, is_tagged: self.is_tagged() };
        (self.blocks.len() + self.spare.len()) * shape.sent_bytes()
    }

    pub(crate) fn inspect(&self) -> EncoderView {
        EncoderView {
            next_block: self.next_id(),
            blocks: self.blocks.iter().map(Block::inspect).collect(),
            spare_blocks: self.spare.len(),
            packets_len_max: self
                .symbol_len_max
                .saturating_sub(SymbolTags::len_of(self.tags.as_ref())),
        }
    }

    // ---- sending ------------------------------------------------------------------------------

    /// Writes the next ENC body, if one is to be sent now, for the frame with this counter.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        counter: u32,
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        let more = !ingress.is_empty();
        if !self.blocks.iter().any(|block| self.can_send(now, block, more)) {
            self.add_symbol(now, ingress, stats);
        }
        let more = !ingress.is_empty();
        self.idle = !more;
        match self.blocks.iter().position(|block| self.can_send(now, block, more)) {
            Some(at) => {
                self.emit(now, counter, at, body, stats);
                true
            }
            None => false,
        }
    }

    /// Limits the length of source symbols from now on, in bytes; packets accepted before are
    /// exempt.
    pub(crate) fn limit_symbols(&mut self, len: usize) {
        self.symbol_len_max = len.min(self.symbol_size_max);
    }

    /// Whether a block has something to send; `more`: packets wait to become source symbols.
    fn can_send(&self, now: Time, block: &Block, more: bool) -> bool {
        block.state == State::Enc && block.budget >= 1.0 && self.may_go(now, block, more)
    }

    /// Whether a block need not wait. A dense code sends nothing until the block is full or the
    /// source has paused. A systematic code sends the source symbols first where redundancy over
    /// only the first of them would be wasted: over GF(2), or where a helper fills the same gaps.
    fn may_go(&self, now: Time, block: &Block, more: bool) -> bool {
        let full = block.coder.is_full();
        match self.params.order {
            Order::OnTheFly => true,
            Order::Dense => full || now >= block.last_added_at + self.params.encoder_timeout,
            Order::Systematic => {
                let spread = self.params.field != Field::Gf2 && !self.links.helper;
                // No symbols are added for a decoder that is gone, so there is nothing to wait for.
                full || !more
                    || spread
                    || block.next_source < block.coder.count()
                    || self.is_decoder_gone(now)
            }
        }
    }

    /// Makes a source symbol of as many waiting packets as fit, and adds it to a block.
    fn add_symbol(&mut self, now: Time, ingress: &mut IngressQueue, stats: &mut Stats) {
        while !ingress.is_empty() {
            if self.blocks.iter().any(|block| block.deficit() > 0) {
                if self.is_decoder_gone(now) {
                    return;
                }
            } else {
                self.decoder.note_nothing_asked(now);
            }
            let Some(at) = self.open_block(now, stats) else { return };
            let symbol = &mut self.scratch.symbol;
            symbol.clear();
            symbol.resize(SymbolTags::len_of(self.tags.as_ref()), 0);
            let packets_max = if self.params.bundle { u16::MAX } else { 1 };
            let (len_max, alone_max) = (self.symbol_len_max, self.symbol_size_max);
            let room = symbol::Room { len_max, alone_max, packets_max };
            // All of a block is delivered in order.
            let (packets, _) =
                symbol::fill(now, ingress, room, Delivery::InOrder, None, symbol, stats);
            if packets == 0 {
                return; // All waiting packets were dropped.
            }
            self.tag_symbol(at);
            let credit = budget::encoder_credit(
                self.params.policy,
                f64::from(self.params.block_size),
                self.links.ratios,
                self.params.overshoot,
                self.links.helper,
            );
            let added = self.blocks[at].add(now, &self.scratch.symbol, packets, credit);
            debug_assert!(added.is_ok(), "the symbol was made to fit: {added:?}");
            stats.symbols_added += 1;
            if self.can_send(now, &self.blocks[at], !ingress.is_empty()) {
                return;
            }
        }
    }

    /// Tags the symbol that is to be added to the block at index `at`.
    fn tag_symbol(&mut self, at: usize) {
        let block = &self.blocks[at];
        let place = (self.number(block.id), block.coder.count() as u16);
        if let Some(tags) = &self.tags {
            tags.write(place, &mut self.scratch.symbol);
        }
    }

    /// The block that takes new symbols; `None` if as many blocks as allowed are in flight.
    fn open_block(&mut self, now: Time, stats: &mut Stats) -> Option<usize> {
        if self.blocks.back().is_none_or(|block| block.coder.is_full()) {
            // Later blocks may be done before the oldest one, which must not fall out of the
            // decoder's window, or the decoder would give it up.
            let span = self.next_number.wrapping_sub(self.base());
            if self.blocks.len() >= usize::from(self.params.blocks_in_flight)
                || span >= u32::from(BLOCKS_IN_FLIGHT_MAX)
            {
                return None;
            }
            let mut block = match self.spare.pop() {
                Some(block) => block,
                None => Block::new(&self.params, self.symbol_size_max).ok()?,
            };
            block.open(self.next_number as u16, now);
            self.next_number = self.next_number.wrapping_add(1);
            self.blocks.push_back(block);
            stats.blocks_opened += 1;
        }
        Some(self.blocks.len() - 1)
    }

    fn emit(&mut self, now: Time, counter: u32, at: usize, body: &mut Vec<u8>, stats: &mut Stats) {
        let timeout = self.timeout(now);
        let block = &mut self.blocks[at];
        if self.params.order == Order::Systematic && block.next_source < block.coder.count() {
            let index = block.next_source;
            let form = match self.tags {
                Some(_) => Form::Tagged { index: index as u16 },
                None => Form::Source { index: index as u16 },
            };
            Enc::write_head(self.flow, block.id, form, body);
            body.extend_from_slice(block.coder.symbol(index).unwrap_or_default());
            block.next_source += 1;
            stats.source_frames_sent += 1;
        } else {
            write_coded(block, self.flow, self.rng.next_u32(), &mut self.scratch.vector, body);
            stats.coded_frames_sent += 1;
        }
        block.note_sent(now, counter, timeout);
        self.in_parts = Some(block.id);
    }

    /// What was last written was sent in parts; its last part is in the frame with this counter.
    pub(crate) fn note_last_part(&mut self, now: Time, counter: u32) {
        let timeout = self.timeout(now);
        let block = self.in_parts.take().and_then(|id| self.blocks.iter_mut().find(|b| b.id == id));
        block.into_iter().for_each(|block| block.note_last_part(now, counter, timeout));
    }

    /// Whether long symbols may no longer get through: the oldest block has made no progress for
    /// [`STALLED_TIMEOUTS`], although symbols were sent. Losses and outages look the same.
    pub(crate) fn suspects_length(&self, now: Time) -> bool {
        let stalled = |block: &Block| {
            let waits = block.deficit() > 0 && block.sent_count > 0;
            let told = self.rtt.timeout() + self.decoder.ack_interval();
            waits && now - block.progress_at > STALLED_TIMEOUTS * self.timeout(now).max(told)
        };
        self.blocks.front().is_some_and(stalled)
    }

    // ---- feedback -----------------------------------------------------------------------------

    /// Takes an acknowledgment of this flow.
    pub(crate) fn handle_ack(&mut self, now: Time, ack: &Ack, told_in: u32, stats: &mut Stats) {
        if self.decoder.is_overtaken(ack.encoder_counter) {
            return; // Overtaken by a newer one.
        }
        if block_distance(self.next_id(), ack.base) > 0 {
            return; // About blocks never opened: from before this station restarted.
        }
        self.decoder.note_ack(now, ack.encoder_counter);
        let front_before = self.blocks.front().map(|block| block.id);
        for told in ack.blocks.iter().filter(|told| told.given_up) {
            self.remove(
                told.block,
                |block, stats| {
                    stats.packets_given_up += block.packets_undecoded(Some(told));
                    stats.blocks_given_up += 1;
                },
                stats,
            );
        }
        while let Some(block) = self.blocks.front() {
            if block_distance(block.id, ack.base) <= 0 {
                break;
            }
            self.remove(block.id, |_, stats| stats.blocks_acknowledged += 1, stats);
        }
        for at in 0..self.blocks.len() {
            self.take_block_ack(now, at, ack, told_in);
        }
        let done: Vec<u16> = self.blocks.iter().filter(|b| b.is_complete()).map(|b| b.id).collect();
        for id in done {
            self.remove(id, |_, stats| stats.blocks_acknowledged += 1, stats);
        }
        // The decoder may have had no place for it before, so its rank could not rise.
        if let Some(front) = self.blocks.front_mut().filter(|it| Some(it.id) != front_before) {
            front.progress_at = front.progress_at.max(now);
        }
    }

    fn take_block_ack(&mut self, now: Time, at: usize, ack: &Ack, told_in: u32) {
        let block = &mut self.blocks[at];
        if let Some(sent_at) = block.note_heard(ack.encoder_counter) {
            self.rtt.sample(now - sent_at);
        }
        if let Some(told) = ack.blocks.iter().find(|told| told.block == block.id) {
            let rank = block.rank_in(told);
            if self.tags.is_none() || block.note_fallen(now, rank, told_in) {
                block.note_rank(now, rank);
                let behind = rank < usize::from(told.known);
                block.behind_since = behind.then(|| block.behind_since.unwrap_or(now));
            }
        }
        if self.blocks[at].state == State::Wait {
            self.repair_after_ack(now, at);
        }
    }

    /// Ends the wait for an acknowledgment when one shows what is missing. (The paper is ambiguous:
    /// the timeout is for "waiting for an acknowledgement", yet one that shows a lower rank changes
    /// nothing. Waiting on costs 13 ms of silence per block in its own tests.)
    ///
    /// What the helper can supply is left to it, unless the decoder has lacked something for long
    /// and there is nothing else to send: then the air is free, and time is what counts.
    fn repair_after_ack(&mut self, now: Time, at: usize) {
        let patience = self.params.encoder_timeout;
        let late = self.blocks[at].behind_since.is_some_and(|since| now - since > patience);
        let count_on_helper = self.links.helper && !(late && self.idle);
        let (policy, field) = (self.params.policy, self.params.field);
        let missing = self.links.missing(policy, &self.blocks[at], count_on_helper);
        let ratio = self.links.repair_erasure(policy, count_on_helper);
        let repair = self.repair();
        let block = &mut self.blocks[at];
        if policy == Policy::PlayNCool && block.in_flight_count() > 0 {
            return;
        }
        let budget = repair(missing, ratio, field);
        if missing >= DEFICIT_TO_REPAIR && block.sent_count > 0 {
            block.state = block.state.after(Cause::AckShowsDeficit);
            block.budget = budget.max(1.0);
        }
    }

    /// Function for the transmissions that repair some dimensions over a link with some erasure
    /// ratio.
    fn repair(&self) -> fn(f64, f64, Field) -> f64 {
        match self.params.policy {
            Policy::PlayNCool if self.params.repair_margin => budget::repair_at_once,
            Policy::PlayNCool | Policy::Credit => budget::repair,
        }
    }

    fn remove(&mut self, id: u16, count: impl FnOnce(&Block, &mut Stats), stats: &mut Stats) {
        let at = self.blocks.iter().position(|block| block.id == id);
        if let Some(block) = at.and_then(|at| self.blocks.remove(at)) {
            count(&block, stats);
            self.spare.push(block);
        }
    }

    /// Sets how long the peer delays acknowledgments, as it announces; `None`: as long as we do.
    pub(crate) fn expect_feedback(&mut self, interval: Option<Duration>) {
        self.decoder.expect_feedback(interval.unwrap_or(self.params.ack_interval));
    }

    /// The decoder restarted: everything not fully acknowledged is sent again.
    pub(crate) fn restart_peer(&mut self, now: Time) {
        let credit = 1.0 / (1.0 - self.links.ratios.e3);
        for block in self.blocks.iter_mut().filter(|block| block.coder.count() > 0) {
            block.forget_feedback();
            block.budget = credit * block.coder.count() as f64;
            block.state = block.state.after(Cause::SymbolAdded);
            block.progress_at = now;
        }
        self.restart_session();
        self.decoder.restart(now);
    }

    /// Our frame counters restart.
    pub(crate) fn restart_session(&mut self) {
        self.decoder.restart_counters();
        self.blocks.iter_mut().for_each(Block::forget_in_flight);
    }

    /// The frame counters of the decoder's station restart.
    pub(crate) fn forget_order(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.told_in = None);
    }

    // ---- time ---------------------------------------------------------------------------------

    /// How long to wait for an acknowledgment: the configured time (the paper's encoder timeout),
    /// or the measured round trip if that is longer; stretched while the decoder is silent.
    fn timeout(&self, now: Time) -> Duration {
        let configured = self.params.encoder_timeout;
        let timeout = match self.params.policy {
            Policy::PlayNCool => configured,
            Policy::Credit => configured.max(self.rtt.timeout() + self.decoder.ack_interval()),
        };
        let silence = self.silence(now) / (4.0 * timeout.as_secs_f64());
        timeout * (silence as u32).clamp(1, SILENCE_STRETCH_MAX)
    }

    /// Seconds without an acknowledgment, scaled to make links comparable: where one frame in ten
    /// arrives, ten times the silence means the same.
    fn silence(&self, now: Time) -> f64 {
        self.decoder.silence(now).as_secs_f64() * (1.0 - self.links.ratios.e3)
    }

    /// Whether nothing has come back for long, neither for what was sent nor for repeated attempts.
    fn is_decoder_gone(&self, now: Time) -> bool {
        let asked =
            self.decoder.gave_up() || self.blocks.iter().any(|block| block.timeouts_in_row > 0);
        let patience = SILENT_TIMEOUTS * self.params.encoder_timeout.as_secs_f64();
        asked && self.silence(now) > patience
    }

    pub(crate) fn handle_timeout(&mut self, now: Time, stats: &mut Stats) {
        self.give_up_overdue(now, stats);
        for at in 0..self.blocks.len() {
            let block = &self.blocks[at];
            if block.state == State::Wait && block.wait_until <= now {
                self.time_out(now, at, stats);
            }
        }
    }

    /// No acknowledgment came: increases the budget.
    fn time_out(&mut self, now: Time, at: usize, stats: &mut Stats) {
        stats.encoder_timeouts += 1;
        // Count on the helper once; if that did not help, do without it.
        let first = self.blocks[at].timeouts_in_row == 0;
        let count_on_helper = self.links.helper && first;
        let (policy, field) = (self.params.policy, self.params.field);
        let missing = self.links.missing(policy, &self.blocks[at], count_on_helper);
        let ratio = self.links.repair_erasure(policy, count_on_helper);
        let wait_until = now + self.timeout(now);
        let least = if count_on_helper && policy == Policy::Credit { 0.0 } else { 1.0 };
        let repair = self.repair();
        self.blocks[at].timeouts_in_row += 1;
        // A decoder that is gone is probed with one symbol at a time, of the oldest block.
        let granted = match (self.is_decoder_gone(now), at) {
            (false, _) => repair(missing, ratio, field).max(least),
            (true, 0) => 1.0,
            (true, _) => 0.0,
        };
        let block = &mut self.blocks[at];
        block.give_up_in_flight();
        block.budget += granted;
        block.wait_until = wait_until;
        if block.budget >= 1.0 {
            block.state = block.state.after(Cause::TimedOut);
        }
    }

    fn give_up_overdue(&mut self, now: Time, stats: &mut Stats) {
        let patience = self.params.delivery_deadline * DEADLINES_TO_GIVE_UP;
        while let Some(block) = self.blocks.front() {
            if block.deficit() == 0 || now - block.progress_at < patience {
                return;
            }
            self.decoder.note_given_up();
            self.remove(
                block.id,
                |block, stats| {
                    stats.packets_given_up += block.packets_undecoded(None);
                    stats.blocks_given_up += 1;
                },
                stats,
            );
        }
    }

    /// When `handle_timeout` or `poll` next has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let patience = self.params.delivery_deadline * DEADLINES_TO_GIVE_UP;
        let head = self.blocks.front().filter(|block| block.deficit() > 0);
        let give_up = head.map(|block| block.progress_at + patience);
        let waits = self.blocks.iter().filter_map(|block| match block.state {
            State::Wait => Some(block.wait_until),
            State::Enc if self.params.order == Order::Dense && !block.coder.is_full() => {
                Some(block.last_added_at + self.params.encoder_timeout)
            }
            State::Enc | State::Idle => None,
        });
        waits.chain(give_up).min()
    }
}

/// Writes a coded symbol over everything added to the block, with a coding vector expanded from
/// `seed`.
fn write_coded(
    block: &Block,
    flow: StationId,
    seed: u32,
    vector: &mut Vec<u8>,
    body: &mut Vec<u8>,
) {
    let coder = &block.coder;
    let count = coder.count();
    let Some(nonzero) = NonZeroU16::new(count as u16) else { return };
    Enc::write_head(flow, block.id, Form::Seeded { count: nonzero, seed }, body);
    vector.resize(coder.field().vector_len_bytes(count), 0);
    let start = body.len();
    body.resize(start + coder.symbol_size_max(), 0);
    let len = coder
        .field()
        .expand_seed(seed, count, vector)
        .and_then(|()| coder.encode(vector, count, &mut body[start..]));
    debug_assert!(len.is_ok(), "vector and buffer were made to fit: {len:?}");
    body.truncate(start + len.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::rand::SeedableRng;

    use crate::wire::BlockAck;

    /// A dimension over GF(2) takes 1 + 1.6 symbols on average; the margin is two more
    /// (docs/errata.md, 11).
    #[test]
    fn the_margin_of_repair_can_be_left_out() {
        for (repair_margin, symbols) in [(true, 4.607), (false, 2.607)] {
            let params = CodingParams { repair_margin, ..CodingParams::paper() };
            let rng = Stream::from_seed([1; 32]);
            let encoder = Encoder::new(params, StationId(1), 64, rng, Time::ZERO);
            let budget = encoder.repair()(1.0, 0.0, params.field);
            assert!((budget - symbols).abs() < 0.001, "repair_margin = {repair_margin}: {budget}");
        }
    }

    #[test]
    fn packets_share_a_symbol_unless_each_is_to_have_its_own() {
        for (bundle, symbols) in [(true, 1), (false, 3)] {
            let params = CodingParams { bundle, symbol_size: 64, ..CodingParams::paper() };
            let rng = Stream::from_seed([1; 32]);
            let mut encoder = Encoder::new(params, StationId(1), 64, rng, Time::ZERO);
            let (mut ingress, mut stats) = (IngressQueue::fifo(8), Stats::default());
            for _ in 0..3 {
                assert!(ingress.push_bytes(Time::ZERO, &[1; 10], &mut stats));
            }
            let mut body = Vec::new();
            while encoder.poll(Time::ZERO, 0, &mut ingress, &mut body, &mut stats) {
                body.clear();
            }
            assert_eq!(stats.symbols_added, symbols, "bundle = {bundle}");
        }
    }

    /// A row that claims to combine symbols that do not exist yet is innovative to the decoder, and
    /// kept the encoder from repairing what the decoder lacks.
    #[test]
    fn rows_of_symbols_that_there_are_not_count_for_no_rank() {
        let params = CodingParams { symbol_size: 64, bundle: false, ..CodingParams::default() };
        let mut encoder =
            Encoder::new(params, StationId(1), 64, Stream::from_seed([1; 32]), Time::ZERO);
        let (mut ingress, mut stats) = (IngressQueue::fifo(8), Stats::default());
        (0..3).for_each(|_| assert!(ingress.push_bytes(Time::ZERO, &[1; 40], &mut stats)));
        let mut body = Vec::new();
        while encoder.poll(Time::ZERO, 0, &mut ingress, &mut body, &mut stats) {
            body.clear();
        }
        for (known, rank) in [(32, 2), (3, 3)] {
            let mut decoded = vec![0; usize::from(known).div_ceil(8_usize)];
            decoded[0] = 0b11 << 6;
            let id = encoder.base() as u16;
            let told = BlockAck { block: id, given_up: false, rank: 3, known, decoded };
            let (flow, helper_counter) = (StationId(1), u32::MAX);
            let ack = Ack {
                flow,
                base: id,
                encoder_counter: 0,
                helper_counter,
                e2: 1.0,
                e3: 0.0,
                blocks: vec![told],
            };
            encoder.handle_ack(Time::ZERO, &ack, known.into(), &mut stats);
            assert_eq!(encoder.inspect().blocks[0].rank, rank, "of {known}");
        }
    }

    /// A decoder with few places accepts no later blocks until the oldest one is done.
    #[test]
    fn a_block_has_its_time_from_when_it_is_the_oldest() {
        let params = CodingParams { block_size: 2, symbol_size: 64, ..CodingParams::default() };
        let rng = Stream::from_seed([1; 32]);
        let mut encoder = Encoder::new(params, StationId(1), 64, rng, Time::ZERO);
        let (mut ingress, mut stats) = (IngressQueue::fifo(8), Stats::default());
        (0..4).for_each(|_| assert!(ingress.push_bytes(Time::ZERO, &[1; 40], &mut stats)));
        let (mut body, mut counter) = (Vec::new(), 0);
        while encoder.poll(Time::ZERO, counter, &mut ingress, &mut body, &mut stats) {
            (body, counter) = (Vec::new(), counter + 1);
        }
        let base = encoder.base() as u16;
        let patience = params.delivery_deadline * DEADLINES_TO_GIVE_UP;
        let done = Time::ZERO + (patience - Duration::from_millis(1));
        let ack = Ack {
            flow: StationId(1),
            base: base.wrapping_add(1),
            encoder_counter: counter - 1,
            helper_counter: u32::MAX,
            e2: 1.0,
            e3: 0.0,
            blocks: vec![],
        };
        encoder.handle_ack(done, &ack, 1, &mut stats);
        encoder.handle_timeout(Time::ZERO + patience, &mut stats);
        assert_eq!((stats.blocks_given_up, encoder.inspect().blocks.len()), (0, 1));
        encoder.handle_timeout(done + patience, &mut stats);
        assert_eq!((stats.blocks_given_up, encoder.inspect().blocks.len()), (1, 0));
    }

    /// With a helper, coded symbols wait while packets do, and packets wait while the decoder is
    /// gone: once the decoder had been silent with a half-full block, it was never probed again.
    #[test]
    fn a_silent_decoder_is_asked_after_while_packets_wait() {
        let delivery_deadline = Duration::from_secs(60);
        let params = CodingParams { symbol_size: 64, delivery_deadline, ..CodingParams::default() };
        let rng = Stream::from_seed([1; 32]);
        let mut encoder = Encoder::new(params, StationId(1), 64, rng, Time::ZERO);
        encoder.set_links(ErasureRatios { e1: 0.1, e2: 0.1, e3: 0.5 }, true);
        let (mut ingress, mut stats) = (IngressQueue::fifo(8), Stats::default());
        let mut frames_in_the_end = 0;
        for (counter, tick) in (0..6_000).enumerate() {
            let now = Time::from_millis(10 * tick);
            if tick % 5 == 0 {
                ingress.push_bytes(now, &[1; 60], &mut stats);
            }
            encoder.handle_timeout(now, &mut stats);
            let mut body = Vec::new();
            let sent = encoder.poll(now, counter as u32, &mut ingress, &mut body, &mut stats);
            frames_in_the_end += u32::from(sent && tick >= 5_000);
        }
        assert!(!ingress.is_empty() && stats.symbols_added < 32, "{stats:?}");
        assert!(frames_in_the_end > 2, "{frames_in_the_end} frames in the last ten seconds");
    }
}
