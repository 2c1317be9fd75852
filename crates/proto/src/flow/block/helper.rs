//! The way of a packet, alternative path: a helper overhears, recodes, and sends (Section II-D of
//! the FRANC paper, Fig. 5).
//!
//! One state machine serves one direction. In state IDLE the helper collects. Once it has overheard
//! PlayNCool's threshold of symbols, it is in state ENC: every further symbol adds to its budget,
//! which it spends on recoded symbols. An acknowledgment of the full block ends this. Once
//! nothing of a block has been overheard for long, so does one of all that the helper knows of it,
//! and so does the time after which an encoder gives a block up.

use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::{Stream, Time};
use corridor_codec::{Field, Outcome, Recoder};

use crate::bounds::{
    BLOCKS_IN_FLIGHT_MAX, HELPER_BLOCKS_MAX, HELPER_IN_FLIGHT_MAX, HELPER_INTERVAL_PARTS,
    HELPER_SILENCE_INTERVALS, HELPER_SILENCE_MIN,
};
use crate::config::{CodingParams, ErasureRatios, Order, Policy, StationId};
use crate::flow::block::budget;
use crate::flow::block::encoder::DEADLINES_TO_GIVE_UP;
use crate::inspect::{FlowView, HelperBlockView};
use crate::link::handshake::Joined;
use crate::memory::BlockShape;
use crate::stats::Stats;
use crate::wire::{Ack, BlockAck, Enc, Form, RUN_LEN, block_distance};

/// The helper's states (Fig. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Enc,
}

/// What changes the state of a helper's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The threshold of overheard symbols is reached.
    ThresholdReached,
    /// All that the helper may send has been sent.
    BudgetSpent,
    /// A symbol of a newer block was heard, with one block in flight.
    NewBlock,
    /// Feedback or a pause shows that the decoder lacks what the helper has.
    RepairNeeded,
}

impl State {
    /// The transition table.
    fn after(self, cause: Cause) -> State {
        match (self, cause) {
            (_, Cause::ThresholdReached | Cause::RepairNeeded) => State::Enc,
            (_, Cause::BudgetSpent | Cause::NewBlock) => State::Idle,
        }
    }
}

/// Missing dimensions, less those in flight, from which feedback triggers repair.
const DEFICIT_TO_REPAIR: f64 = 0.5;

/// Helps one flow, that of `flow` to its peer.
pub(crate) struct Helper {
    params: CodingParams,
    flow: StationId,
    coding: Coding,
    /// Room for coding vector and symbol in a frame.
    room: usize,
    rng: Stream,
    ratios: ErasureRatios,
    arrivals: Interarrival,
    /// First block that the decoder has not finished.
    base: Option<u16>,
    blocks: VecDeque<Block>,
    spare: Vec<Recoder>,
    /// Memory for all blocks in bytes, and the number of blocks that fit.
    bytes_max: usize,
    blocks_max: usize,
    vector: Vec<u8>,
    payload: Vec<u8>,
}

/// How the encoder codes in its present run.
#[derive(Clone, Copy)]
struct Coding {
    field: Field,
    block_size: u16,
    run: u16,
    symbol_size_max: usize,
}

impl Coding {
    /// What an encoder announces about itself. Symbols too long for one of our frames, where coding
    /// vector and symbol share `room` bytes, are refused.
    fn of(joined: &Joined, room: usize) -> Self {
        let vector_len = joined.field.vector_len_bytes(usize::from(joined.block_size));
        let room = room.saturating_sub(RUN_LEN + vector_len);
        Coding {
            field: joined.field,
            block_size: joined.block_size,
            run: joined.run,
            symbol_size_max: usize::from(joined.symbol_size).min(room),
        }
    }

    fn shape(self) -> BlockShape {
        let (field, block_size) = (self.field, self.block_size.into());
        BlockShape { field, block_size, symbol_size: self.symbol_size_max, is_tagged: false }
    }

    /// Bytes of the coding vector of a whole block.
    fn vector_len(self) -> usize {
        self.field.vector_len_bytes(usize::from(self.block_size))
    }

    fn recoder(self) -> Option<Recoder> {
        Recoder::new(self.field, self.block_size.into(), self.symbol_size_max).ok()
    }
}

/// The usual interval between two overheard symbols.
#[derive(Default)]
struct Interarrival {
    heard_at: Option<Time>,
    interval: Duration,
}

impl Interarrival {
    /// Averages the time since the last symbol, unless it was a pause. Returns the silence after
    /// which the encoder counts as having nothing more to send.
    fn note(&mut self, now: Time, pause: Duration) -> Duration {
        let since = self.heard_at.replace(now).map(|heard_at| now - heard_at);
        if let Some(interval) = since.filter(|&interval| interval <= pause) {
            let others = self.interval * (HELPER_INTERVAL_PARTS - 1);
            self.interval = (others + interval) / HELPER_INTERVAL_PARTS;
        }
        (self.interval * HELPER_SILENCE_INTERVALS).min(pause / 2).max(HELPER_SILENCE_MIN)
    }
}

struct Block {
    id: u16,
    recoder: Recoder,
    state: State,
    /// Overheard symbols that raised the rank.
    innovative: u32,
    /// Transmissions earned by overhearing.
    earned: f64,
    /// Transmissions granted in addition, to repair what the decoder still lacked, less those given
    /// up.
    repairs: f64,
    sent: u32,
    /// As far as can be heard, the encoder has sent everything.
    ended: bool,
    /// The decoder's rank as last reported.
    decoder_rank: usize,
    /// Frames of the encoder that may still reach the decoder.
    heard: VecDeque<u32>,
    /// Our frames that may still reach the decoder.
    in_flight: VecDeque<u32>,
    /// When a symbol was last overheard, or the decoder's rank last seen to grow.
    progress_at: Time,
    repair_at: Time,
    /// When credits are no longer held back, because nothing follows.
    flush_at: Time,
}

impl Helper {
    pub(crate) fn new(
        params: CodingParams,
        flow: StationId,
        field: Field,
        block_size: u16,
        room: usize,
        rng: Stream,
    ) -> Self {
        Helper {
            params,
            flow,
            coding: Coding { field, block_size, run: 0, symbol_size_max: room },
            room,
            rng,
            ratios: ErasureRatios::default(),
            arrivals: Interarrival::default(),
            base: None,
            blocks: VecDeque::new(),
            spare: Vec::new(),
            bytes_max: usize::MAX,
            blocks_max: HELPER_BLOCKS_MAX,
            vector: Vec::new(),
            payload: Vec::new(),
        }
    }

    /// Limits the blocks held to those that fit into `bytes`; none if not even one fits.
    pub(crate) fn holding(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self.blocks_max = self.coding.shape().helped_in(bytes);
        self
    }

    /// Bytes of a block, if a block is too large for the memory.
    pub(crate) fn block_too_long(&self) -> Option<usize> {
        (self.blocks_max == 0).then(|| self.coding.shape().helped_bytes())
    }

    /// Bytes of all blocks held.
    pub(crate) fn bytes(&self) -> usize {
        (self.blocks.len() + self.spare.len()) * self.coding.shape().helped_bytes()
    }

    pub(crate) fn inspect(&self) -> FlowView {
        FlowView {
            flow: self.flow,
            blocks: self.blocks.iter().map(Block::inspect).collect(),
            spare_blocks: self.spare.len(),
        }
    }

    pub(crate) fn flow(&self) -> StationId {
        self.flow
    }

    pub(crate) fn field(&self) -> Field {
        self.coding.field
    }

    pub(crate) fn ratios(&self) -> ErasureRatios {
        self.ratios
    }

    pub(crate) fn set_links(&mut self, ratios: ErasureRatios) {
        self.ratios = ratios.bounded();
    }

    /// The encoder restarted; `joined`: what it announces about itself.
    pub(crate) fn restart(&mut self, joined: &Joined) {
        self.coding = Coding::of(joined, self.room);
        self.blocks_max = self.coding.shape().helped_in(self.bytes_max);
        self.base = None;
        self.blocks.clear();
        self.spare.clear();
    }

    /// The encoder's frame counters restart.
    pub(crate) fn restart_counters(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.heard.clear());
    }

    /// The decoder restarted, and has nothing.
    pub(crate) fn restart_decoder(&mut self) {
        self.base = None;
        self.blocks.iter_mut().for_each(|block| block.decoder_rank = 0);
    }

    // ---- overhearing --------------------------------------------------------------------------

    /// Overhears a symbol of the encoder, in the frame with this counter.
    pub(crate) fn handle_enc(&mut self, now: Time, counter: u32, enc: &Enc<'_>, stats: &mut Stats) {
        if self.base.is_some_and(|base| block_distance(base, enc.block) < 0) {
            return;
        }
        let Some(at) = self.block_at(enc.block) else { return };
        let silence = self.arrivals.note(now, self.params.encoder_timeout);
        let Coding { field, block_size, .. } = self.coding;
        let block = &mut self.blocks[at];
        match add(&mut block.recoder, field, enc, &mut self.vector) {
            Some(Outcome::Innovative) => {
                stats.symbols_innovative += 1;
                block.innovative += 1;
            }
            Some(Outcome::Dependent) => stats.symbols_dependent += 1,
            None => return,
        }
        push_bounded(&mut block.heard, counter);
        // A dense code combines the whole block from its first symbol on: only a pause shows its
        // end.
        let all_known = block.recoder.known_count() == usize::from(block_size);
        block.ended = all_known && self.params.order != Order::Dense;
        block.progress_at = now;
        block.repair_at = now + self.params.encoder_timeout;
        block.flush_at = now + silence;
        self.earn(at);
    }

    fn block_at(&mut self, id: u16) -> Option<usize> {
        if let Some(at) = self.blocks.iter().position(|block| block.id == id) {
            return Some(at);
        }
        let newest = self.blocks.back().is_none_or(|last| block_distance(last.id, id) > 0);
        if !newest {
            return None; // An older block that was dropped, or not heard while it was new.
        }
        for block in &mut self.blocks {
            block.ended = true;
            if self.params.blocks_in_flight == 1 {
                block.state = block.state.after(Cause::NewBlock);
            }
        }
        if self.blocks_max == 0 {
            return None;
        }
        if self.blocks.len() >= self.blocks_max {
            self.drop_block(0);
        }
        let recoder = match self.spare.pop() {
            Some(recoder) => recoder,
            None => self.coding.recoder()?,
        };
        self.blocks.push_back(Block::new(id, recoder));
        Some(self.blocks.len() - 1)
    }

    fn drop_block(&mut self, at: usize) {
        if let Some(mut block) = self.blocks.remove(at) {
            block.recoder.reset();
            self.spare.push(block.recoder);
        }
    }

    /// Adds to a block's budget after a symbol was overheard.
    fn earn(&mut self, at: usize) {
        let credit = budget::helper_credit(self.params.policy, self.ratios);
        let block = &mut self.blocks[at];
        match self.params.policy {
            Policy::PlayNCool => {
                let budgets = budget::playncool(f64::from(self.coding.block_size), self.ratios);
                if block.recoder.rank() as f64 >= budgets.helper_threshold {
                    block.state = block.state.after(Cause::ThresholdReached);
                    let most = self.params.helper_overshoot * budgets.helper_budget;
                    // The first symbol counts for its own transmission only, each later one also
                    // for those before it that were not heard.
                    let credit = if block.earned == 0.0 { 1.0 } else { credit };
                    block.earned = (block.earned + credit).min(most.max(1.0));
                }
            }
            Policy::Credit => {
                block.earned = credit * f64::from(block.innovative);
                if credit > 0.0 {
                    block.state = block.state.after(Cause::ThresholdReached);
                }
            }
        }
    }

    /// Overhears the decoder's acknowledgment.
    pub(crate) fn handle_ack(&mut self, now: Time, ack: &Ack) {
        let is_new_base = self.base.replace(ack.base) != Some(ack.base);
        for at in (0..self.blocks.len()).rev() {
            let id = self.blocks[at].id;
            let told = ack.blocks.iter().find(|told| told.block == id);
            // Finished, or so old that its number has wrapped.
            let open = (0..i32::from(BLOCKS_IN_FLIGHT_MAX)).contains(&block_distance(ack.base, id));
            if !open
                || told.is_some_and(|told| told.given_up || told.rank == self.coding.block_size)
            {
                self.drop_block(at);
            }
        }
        let repair_on_ack = self.params.policy == Policy::Credit;
        let (lag, patience) = (self.lag(), self.patience());
        for at in 0..self.blocks.len() {
            let block = &mut self.blocks[at];
            let told = ack.blocks.iter().find(|told| told.block == block.id);
            let is_quiet = now - block.progress_at >= self.params.encoder_timeout;
            let rank = told.map_or(0, |told| usize::from(told.rank));
            if rank > block.decoder_rank {
                (block.decoder_rank, block.progress_at) = (rank, now);
            }
            // The encoder's patience with a block begins when it is the oldest.
            if is_new_base && block.id == ack.base {
                block.progress_at = now;
            }
            let is_expired = now - block.progress_at >= patience;
            block.repair_at = now + self.params.encoder_timeout;
            block.note_heard_by_decoder(ack);
            if is_quiet && told.is_some_and(|told| block.is_known_to(told)) {
                block.give_up_budget();
            }
            // While the encoder goes on, its next symbols may supply what is missing now.
            if repair_on_ack && block.ended && !is_expired && block.budget(lag) < 1.0 {
                self.repair(at);
            }
        }
    }

    // ---- sending ------------------------------------------------------------------------------

    fn lag(&self) -> f64 {
        match self.params.policy {
            Policy::PlayNCool => 0.0,
            Policy::Credit => {
                budget::helper_lag(self.coding.field)
                    * budget::helper_credit(Policy::Credit, self.ratios)
            }
        }
    }

    /// Writes the next recoded ENC body, for the frame with this counter, if there is budget.
    pub(crate) fn poll(&mut self, counter: u32, body: &mut Vec<u8>, stats: &mut Stats) -> bool {
        let lag = self.lag();
        let ready = |block: &Block| {
            block.state == State::Enc && block.budget(lag) >= 1.0 && block.recoder.rank() > 0
        };
        let Some(at) = self.blocks.iter().position(ready) else { return false };
        let block = &mut self.blocks[at];
        self.vector.resize(self.coding.vector_len(), 0);
        self.payload.resize(self.coding.symbol_size_max, 0);
        let recoded = block.recoder.recode(&mut self.rng, &mut self.vector, &mut self.payload);
        let Some(recoded) = recoded else { return false };
        let Some(count) = NonZeroU16::new(recoded.count as u16) else { return false };
        let vector = &self.vector[..self.coding.field.vector_len_bytes(recoded.count)];
        let form = Form::Explicit { run: self.coding.run, count, vector };
        Enc::write_head(self.flow, block.id, form, body);
        body.extend_from_slice(&self.payload[..recoded.len]);
        block.sent += 1;
        push_bounded(&mut block.in_flight, counter);
        if block.budget(lag) < 1.0 {
            block.state = block.state.after(Cause::BudgetSpent);
        }
        stats.recoded_frames_sent += 1;
        true
    }

    /// What was last written was sent in parts; its last part is in the frame with this counter.
    pub(crate) fn note_last_part(&mut self, before: u32, counter: u32) {
        let newest = self.blocks.iter_mut().filter_map(|block| block.in_flight.back_mut());
        newest.filter(|sent| **sent == before).for_each(|sent| *sent = counter);
    }

    // ---- repair -------------------------------------------------------------------------------

    /// Repairs the helper's share of what the decoder lacks: the dimensions that the helper has and
    /// the decoder lacks, less those in flight, over the helper's own link.
    fn repair(&mut self, at: usize) {
        let (ratios, field, lag) = (self.ratios, self.coding.field, self.lag());
        let worth = self.params.policy == Policy::PlayNCool || budget::helper_is_worth_it(ratios);
        let block = &mut self.blocks[at];
        let deficit = block.recoder.known_count().saturating_sub(block.decoder_rank);
        let share = block.recoder.rank().saturating_sub(block.decoder_rank).min(deficit);
        let arriving = block.heard.len() as f64 * (1.0 - ratios.e3)
            + block.in_flight.len() as f64 * (1.0 - ratios.e2);
        let missing = share as f64 - arriving;
        if !worth || missing < DEFICIT_TO_REPAIR {
            return;
        }
        let short = budget::repair(missing, ratios.e2, field) - block.budget(lag);
        block.repairs += short.max(0.0);
        block.state = block.state.after(Cause::RepairNeeded);
    }

    /// How long after the last progress the encoder gives up its oldest block.
    fn patience(&self) -> Duration {
        self.params.delivery_deadline * DEADLINES_TO_GIVE_UP
    }

    /// When a block counts as given up by the encoder; `None` if the helper has nothing left to
    /// send of it.
    fn expires_at(&self, block: &Block) -> Option<Time> {
        (block.state == State::Enc).then(|| block.progress_at + self.patience())
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        for at in 0..self.blocks.len() {
            if self.blocks[at].flush_at <= now {
                self.blocks[at].flush_at = Time::MAX;
                self.blocks[at].ended = true;
            }
            if self.blocks[at].repair_at <= now {
                // Only once per sign of life, so as not to send forever to a decoder that is gone.
                self.blocks[at].repair_at = Time::MAX;
                self.blocks[at].heard.clear();
                self.blocks[at].in_flight.clear();
                self.blocks[at].ended = true;
                self.repair(at);
            }
            if self.expires_at(&self.blocks[at]).is_some_and(|at| at <= now) {
                self.blocks[at].give_up_budget();
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let timers = self.blocks.iter().flat_map(|block| {
            let expires_at = self.expires_at(block).unwrap_or(Time::MAX);
            [block.repair_at, block.flush_at, expires_at]
        });
        timers.min().filter(|&at| at < Time::MAX)
    }
}

impl Block {
    fn new(id: u16, recoder: Recoder) -> Self {
        Block {
            id,
            recoder,
            state: State::Idle,
            innovative: 0,
            earned: 0.0,
            repairs: 0.0,
            sent: 0,
            ended: false,
            decoder_rank: 0,
            heard: VecDeque::new(),
            in_flight: VecDeque::new(),
            progress_at: Time::ZERO,
            repair_at: Time::MAX,
            flush_at: Time::MAX,
        }
    }

    fn inspect(&self) -> HelperBlockView {
        HelperBlockView {
            block: self.id,
            rank: self.recoder.rank(),
            allowed: self.earned + self.repairs,
            sent: self.sent,
            in_flight: self.heard.len().max(self.in_flight.len()),
        }
    }

    /// Frames up to those that the decoder had heard when it sent this are no longer in flight.
    fn note_heard_by_decoder(&mut self, ack: &Ack) {
        self.heard.retain(|&counter| counter > ack.encoder_counter);
        if ack.helper_counter != u32::MAX {
            self.in_flight.retain(|&counter| counter > ack.helper_counter);
        }
    }

    /// Whether the decoder has decoded every source symbol that the helper knows of: then
    /// whatever the helper recodes is a combination of what the decoder has.
    fn is_known_to(&self, told: &BlockAck) -> bool {
        let known = usize::from(told.known);
        usize::from(told.rank) == known && known >= self.recoder.known_count()
    }

    /// Gives up the transmissions allowed and not yet made.
    fn give_up_budget(&mut self) {
        self.repairs -= self.budget(0.0).max(0.0);
        self.state = self.state.after(Cause::BudgetSpent);
    }

    /// Transmissions allowed and not yet made; `lag` of them are held back until the block ends.
    fn budget(&self, lag: f64) -> f64 {
        let held_back = if self.ended { 0.0 } else { lag };
        self.earned + self.repairs - f64::from(self.sent) - held_back
    }
}

/// Appends a frame counter, and drops the oldest if there are too many.
fn push_bounded(counters: &mut VecDeque<u32>, counter: u32) {
    if counters.len() == HELPER_IN_FLIGHT_MAX {
        counters.pop_front();
    }
    counters.push_back(counter);
}

fn add(
    recoder: &mut Recoder,
    field: Field,
    enc: &Enc<'_>,
    vector: &mut Vec<u8>,
) -> Option<Outcome> {
    match enc.form {
        Form::Source { index } | Form::Tagged { index } => {
            recoder.add_source(usize::from(index), enc.symbol).ok()
        }
        Form::Explicit { count, vector, .. } => {
            recoder.add_coded(vector, usize::from(count.get()), enc.symbol).ok()
        }
        Form::Seeded { count, seed } => {
            let count = usize::from(count.get());
            if count > recoder.block_size() {
                return None;
            }
            vector.resize(field.vector_len_bytes(count), 0);
            field.expand_seed(seed, count, vector).ok()?;
            recoder.add_coded(vector, count, enc.symbol).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use corridor_base::rand::SeedableRng;

    use super::*;

    const ENCODER: StationId = StationId(1);

    fn helper(params: CodingParams, ratios: ErasureRatios) -> Helper {
        let rng = Stream::from_seed([7; 32]);
        let mut helper = Helper::new(params, ENCODER, Field::Gf2, params.block_size, 200, rng);
        helper.set_links(ratios);
        helper
    }

    /// Overhears source symbol `index` of block 0; returns how many frames the helper then sends.
    fn hear(helper: &mut Helper, now: Time, index: u16) -> usize {
        overhear(helper, now, index);
        frames(helper)
    }

    fn overhear(helper: &mut Helper, now: Time, index: u16) {
        let form = Form::Source { index };
        let enc = Enc { flow: ENCODER, block: 0, form, symbol: &[1; 64] };
        helper.handle_enc(now, u32::from(index), &enc, &mut Stats::default());
    }

    /// The decoder has so many of the `known` source symbols of block 0 that it knows of.
    fn acknowledge(helper: &mut Helper, now: Time, rank: u16, known: u16) {
        let decoded = vec![0; usize::from(known).div_ceil(8)];
        let block = BlockAck { block: 0, given_up: false, rank, known, decoded };
        let (encoder_counter, helper_counter) = (0, u32::MAX);
        let ErasureRatios { e2, e3, .. } = helper.ratios();
        let blocks = vec![block];
        let ack = Ack { flow: ENCODER, base: 0, encoder_counter, helper_counter, e2, e3, blocks };
        helper.handle_ack(now, &ack);
    }

    fn frames(helper: &mut Helper) -> usize {
        let send = |helper: &mut Helper| helper.poll(0, &mut Vec::new(), &mut Stats::default());
        core::iter::from_fn(|| send(helper).then_some(())).count()
    }

    /// At e1 = 50 % every other transmission of the encoder is heard: the first symbol at the
    /// threshold counts for one of them, each later one for two.
    #[test]
    fn the_first_symbol_at_the_threshold_stands_for_one_transmission() {
        let params = CodingParams { overshoot: 1.0, ..CodingParams::paper() };
        let ratios = ErasureRatios { e1: 0.5, e2: 0.1, e3: 0.5 };
        let threshold = budget::playncool(150.0, ratios).helper_threshold.ceil() as u16;
        let mut helper = helper(params, ratios);
        let sent: Vec<_> = (0..threshold + 2)
            .map(|index| hear(&mut helper, Time::from_millis(u64::from(index)), index))
            .collect();
        let (before, after) = sent.split_at(usize::from(threshold) - 1);
        assert_eq!(before.iter().sum::<usize>(), 0);
        assert_eq!(after, [1, 2, 2]);
    }

    /// A busy interface keeps the helper from sending what it may. When nothing of the block has
    /// been overheard for long, and the decoder has all that the helper knows of it, nothing more
    /// is of use. Where frames were long and the rate was low, it was sent nevertheless, for 14 s.
    #[test]
    fn nothing_is_sent_of_what_the_decoder_has() {
        for policy in [Policy::PlayNCool, Policy::Credit] {
            let params = CodingParams { policy, order: Order::Systematic, ..CodingParams::paper() };
            let ratios = ErasureRatios { e1: 0.5, e2: 0.7, e3: 0.9 };
            let sent = |after: Duration, rank: u16| {
                let mut helper = helper(params, ratios);
                (0..20).for_each(|index| overhear(&mut helper, Time::ZERO, index));
                acknowledge(&mut helper, Time::ZERO + after, rank, 20);
                let sent = frames(&mut helper);
                // What is overheard later earns as before.
                let later = Time::ZERO + 2 * params.encoder_timeout;
                (20..30).for_each(|index| overhear(&mut helper, later, index));
                assert!(frames(&mut helper) > 0, "{policy:?}");
                sent
            };
            let long = params.encoder_timeout;
            assert!(sent(long, 19) > 0, "{policy:?}: the decoder lacks one");
            assert!(sent(long / 2, 20) > 0, "{policy:?}: the encoder may go on");
            assert_eq!(sent(long, 20), 0, "{policy:?}");
        }
    }

    /// A decoder that gets none of the helper's frames, or does not take them, acknowledges
    /// nothing. The helper of a slow interface then sent for a block that its encoder had given up.
    #[test]
    fn nothing_is_sent_of_a_block_that_the_encoder_has_given_up() {
        for policy in [Policy::PlayNCool, Policy::Credit] {
            let params = CodingParams { policy, order: Order::Systematic, ..CodingParams::paper() };
            let patience = params.delivery_deadline * DEADLINES_TO_GIVE_UP;
            let sent = |after: Duration| {
                let mut helper = helper(params, ErasureRatios { e1: 0.5, e2: 0.7, e3: 0.9 });
                (0..20).for_each(|index| overhear(&mut helper, Time::ZERO, index));
                acknowledge(&mut helper, Time::from_millis(1), 10, 10);
                helper.handle_timeout(Time::from_millis(1) + after);
                assert!(helper.poll_timeout().is_none_or(|at| at > Time::from_millis(1) + after));
                frames(&mut helper)
            };
            assert!(sent(patience - Duration::from_nanos(1)) > 0, "{policy:?}");
            assert_eq!(sent(patience), 0, "{policy:?}");
        }
    }

    /// Half of the symbols of a slow encoder are not heard: a gap of 9 ms means nothing when 6 ms
    /// are usual. Credits held back for the next symbols were nevertheless spent after 5 ms, and
    /// over GF(2) up to a tenth of the helper's symbols were dependent for this reason.
    #[test]
    fn what_is_held_back_waits_for_unusual_silence() {
        let params = CodingParams {
            policy: Policy::Credit,
            order: Order::Systematic,
            encoder_timeout: Duration::from_millis(40),
            ..CodingParams::paper()
        };
        let mut helper = helper(params, ErasureRatios { e1: 0.5, e2: 0.0, e3: 0.5 });
        let mut sent = 0;
        for index in 0..60 {
            sent += hear(&mut helper, Time::from_millis(6 * u64::from(index)), index);
        }
        // 60 symbols at e3/(1-e2) each, less what the lag of 6 symbols is worth.
        assert_eq!(sent, 30 - 3);
        let last = Time::from_millis(6 * 59);
        // Three intervals, which approach 6 ms from below.
        let waits = helper.poll_timeout().expect("it waits for the end") - last;
        assert!((17..=18).contains(&waits.as_millis()), "{waits:?}");
    }
}
