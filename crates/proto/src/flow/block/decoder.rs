//! The way of a packet, step 5: from ENC frames to source symbols to packets, in order.
//!
//! The decoder eliminates as symbols arrive, and delivers each source symbol once all before it are
//! decoded, block after block. It acknowledges whenever a block is partially or fully decoded
//! (Section II-D of the FRANC paper), at a bounded rate, and while symbols are missing. A block
//! that delays delivery beyond the deadline is given up: what it has is delivered, what it lacks is
//! counted, and the next block follows. Where symbols have tags, `proof.rs` decides what may be
//! delivered, and only proven symbols move the window: a coded row in the encoder's name may come
//! from anybody who has the secret, and may claim any block.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;
use corridor_codec::{BlockDecoder, Field, Outcome};
use corridor_packet::PacketRef;

use crate::bounds::{ACK_BLOCKS_MAX, BLOCKS_IN_FLIGHT_MAX, EMPTIED_BLOCKS_MAX};
use crate::flow::block::ack_timer::{AckTimer, Urgency};
use crate::flow::block::proof::{Blame, Origin, Proof, Verdict};
use crate::flow::block::tags::SymbolTags;
use crate::flow::symbol;
use crate::host::egress::EgressQueue;
use crate::inspect::{DecoderBlockView, DecoderView};
use crate::memory::{BlockShape, DECODER_BLOCKS_MAX};
use crate::stats::Stats;
use crate::wire::{Ack, BlockAck, Enc, Form, block_distance};

/// Blocks, from the first unfinished one on, that the decoder accepts symbols for.
const WINDOW: usize = BLOCKS_IN_FLIGHT_MAX as usize;
/// How many acknowledgments report that a block was given up, unless a late frame asks again, or
/// that its rows were dropped.
const EMPTIED_TELLS: u8 = 4;

/// Decodes one flow: the peer's packets to this station.
pub(crate) struct Decoder {
    field: Field,
    block_size: u16,
    run: u16,
    symbol_size_max: usize,
    deadline: Duration,
    ack_timer: AckTimer,
    /// If set, symbols are delivered only with tags that only their encoder can make.
    tags: Option<SymbolTags>,
    /// Whose rows made tags fail.
    blame: Blame,
    /// First unfinished block. Frames carry the low 16 bits.
    base: u32,
    /// Blocks from `base` on; empty where nothing was received.
    slots: VecDeque<Option<Slot>>,
    /// With tags: the newest block beyond the window that coded rows were received for.
    beyond: Option<(u32, Slot)>,
    emptied: VecDeque<Emptied>,
    coders: Coders,
    /// Nothing is delivered although something waits.
    stall: Option<Stall>,
    vector: Vec<u8>,
}

/// What has waited since when.
#[derive(Clone, Copy)]
struct Stall {
    since: Time,
    /// The first unfinished block then, and the end of what waited in it.
    block: u32,
    end: usize,
}

/// The coders of blocks.
struct Coders {
    /// Unused coders, for reuse.
    spare: Vec<BlockDecoder>,
    /// Upper bound of all coders, in use and spare, set by memory.
    most: usize,
}

struct Slot {
    coder: BlockDecoder,
    /// Set if symbols have tags.
    proof: Option<Proof>,
    /// Source symbols delivered or skipped.
    next: usize,
    /// When the block's first symbol was received.
    first_heard_at: Time,
}

/// A block without rows, kept to report this to the encoder: it was given up, or gave way to
/// another.
struct Emptied {
    ack: BlockAck,
    tells: u8,
}

impl Decoder {
    /// A decoder for a flow with the encoder's `field` and `block_size` in its `run`, from block
    /// `base` on.
    pub(crate) fn new(
        field: Field,
        block_size: u16,
        run: u16,
        base: u32,
        symbol_size_max: usize,
        deadline: Duration,
        ack_interval: Duration,
    ) -> Self {
        Decoder {
            field,
            block_size,
            run,
            symbol_size_max,
            deadline,
            ack_timer: AckTimer::new(ack_interval),
            tags: None,
            blame: Blame::default(),
            base,
            slots: VecDeque::new(),
            beyond: None,
            emptied: VecDeque::new(),
            coders: Coders { spare: Vec::new(), most: DECODER_BLOCKS_MAX },
            stall: None,
            vector: Vec::new(),
        }
    }

    /// Accepts only symbols with these tags, if there is a key for them.
    pub(crate) fn with_tags(self, tags: Option<SymbolTags>) -> Self {
        Decoder { tags, ..self }
    }

    /// Limits the number of blocks held, to at least
    /// [`MEMORY_DECODER_BLOCKS_MIN`](crate::bounds::MEMORY_DECODER_BLOCKS_MIN).
    pub(crate) fn holding(mut self, blocks_max: usize) -> Self {
        self.coders.most = blocks_max;
        self
    }

    pub(crate) fn field(&self) -> Field {
        self.field
    }

    /// Bytes of all blocks held.
    pub(crate) fn bytes(&self) -> usize {
        let is_tagged = self.tags.is_some();
        let (block_size, symbol_size) = (self.block_size.into(), self.symbol_size_max);
        let shape = BlockShape { field: self.field, block_size, symbol_size, is_tagged };
        (self.open_count() + self.coders.spare.len()) * shape.received_bytes()
    }

    /// Number of blocks with rows.
    fn open_count(&self) -> usize {
        self.slots.iter().flatten().count() + usize::from(self.beyond.is_some())
    }

    pub(crate) fn inspect(&self) -> DecoderView {
        let view = |slot: &Slot| DecoderBlockView {
            rank: slot.coder.rank(),
            known: slot.coder.known_count(),
        };
        DecoderView {
            base: self.base as u16,
            next_symbol: self.slots.front().and_then(Option::as_ref).map_or(0, |slot| slot.next),
            blocks: self.slots.iter().map(|slot| slot.as_ref().map(view)).collect(),
            emptied_blocks: self.emptied.len(),
            spare_blocks: self.coders.spare.len(),
        }
    }

    // ---- symbols in, packets out --------------------------------------------------------------

    /// Takes a symbol and delivers what it completes.
    pub(crate) fn handle_enc(
        &mut self,
        now: Time,
        enc: &Enc<'_>,
        origin: Origin,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) {
        if matches!(enc.form, Form::Explicit { run, .. } if run != self.run) {
            stats.symbols_late += 1;
            return; // From a helper that has not noticed that the encoder restarted.
        }
        let mut ahead = block_distance(self.base as u16, enc.block);
        if ahead < 0 {
            stats.symbols_late += 1;
            self.note_late(now, enc.block);
            return;
        }
        if ahead >= WINDOW as i32 && matches!(enc.form, Form::Explicit { .. }) {
            stats.symbols_late += 1;
            return; // Only the encoder moves the window; a helper may be 65,536 blocks behind.
        }
        if !self.admits(ahead as u32, enc, origin, stats) {
            return;
        }
        let base_before = self.base;
        if self.tags.is_none() || matches!(enc.form, Form::Tagged { .. }) {
            self.move_to(enc.block, egress, stats);
            ahead = block_distance(self.base as u16, enc.block);
        }
        match self.add(now, ahead as usize, enc) {
            Some(Outcome::Innovative) => {
                stats.symbols_innovative += 1;
                let is_repair = !matches!(enc.form, Form::Source { .. } | Form::Tagged { .. });
                stats.symbols_repaired += u64::from(is_repair);
                self.prove(now, ahead as usize, (enc, origin), stats);
            }
            Some(Outcome::Dependent) => stats.symbols_dependent += 1,
            None => {
                stats.symbols_refused += 1;
                return;
            }
        }
        let block = self.base.wrapping_add(ahead as u32);
        if ahead >= WINDOW as i32 && self.beyond.as_ref().is_some_and(|it| self.counts(&it.1)) {
            self.move_to(enc.block, egress, stats);
            self.take_beyond(block);
        }
        let delivered = self.deliver(egress, stats);
        self.note_progress(now, delivered);
        self.ack_timer.note_symbol(now, self.urgency(self.base != base_before));
    }

    /// The encoder has moved beyond our window, to this block: it has given up what we wait for.
    fn move_to(&mut self, block: u16, egress: &mut EgressQueue, stats: &mut Stats) {
        while block_distance(self.base as u16, block) >= WINDOW as i32 {
            self.give_up_base(egress, stats);
        }
    }

    /// Whether anything waits for this block's missing symbols: with tags, whether anything proven
    /// does.
    fn counts(&self, slot: &Slot) -> bool {
        self.tags.is_none() || slot.proof.as_ref().is_some_and(Proof::has_proven)
    }

    /// Whether a symbol may be added at all; checks its tag if it has one of its own.
    fn admits(&self, ahead: u32, enc: &Enc<'_>, origin: Origin, stats: &mut Stats) -> bool {
        let Some(tags) = &self.tags else {
            let is_tagged = matches!(enc.form, Form::Tagged { .. });
            stats.symbols_refused += u64::from(is_tagged);
            return !is_tagged;
        };
        let slot = self.slots.get(ahead as usize).and_then(Option::as_ref);
        let is_disputed = slot.and_then(|slot| slot.proof.as_ref()).is_some_and(Proof::is_disputed);
        if is_disputed && origin == Origin::Helper {
            stats.rows_dropped += 1;
            return false;
        }
        let admits = Proof::admits(tags, self.base.wrapping_add(ahead), enc, origin);
        stats.tags_failed += u64::from(!admits);
        admits
    }

    /// Checks decoded symbols against their tags. If one fails, drops rows until none does.
    fn prove(
        &mut self,
        now: Time,
        ahead: usize,
        (enc, origin): (&Enc<'_>, Origin),
        stats: &mut Stats,
    ) {
        let block = self.base.wrapping_add(ahead as u32);
        let slot = slot_of(&mut self.slots, &mut self.beyond, ahead);
        let (Some(tags), Some(slot)) = (&self.tags, slot) else { return };
        let proof = slot.proof.get_or_insert_with(|| Proof::new(self.block_size));
        proof.note(enc, origin);
        let failed = proof.check(tags, block, &slot.coder);
        if failed > 0 {
            let rank = slot.coder.rank();
            let (verdict, more) = proof.mend(tags, block, &mut slot.coder);
            stats.tags_failed += failed + more;
            stats.rows_dropped += (rank - slot.coder.rank()) as u64;
            self.blame.note(verdict);
            // The encoder may know of a higher rank, and not that it has to send more.
            self.ack_timer.schedule(now, Urgency::Highest);
        }
        self.blame.settle(proof, &slot.coder);
    }

    /// Whose rows made tags fail since the last call.
    pub(crate) fn take_verdict(&mut self) -> Option<Verdict> {
        self.blame.take()
    }

    /// The helper is left out from now on: drops its rows from all blocks.
    pub(crate) fn drop_helper_rows(&mut self, now: Time, stats: &mut Stats) {
        for slot in self.slots.iter_mut().flatten() {
            let Some(proof) = &mut slot.proof else { continue };
            // It is blamed once, not once for each block.
            proof.end_dispute();
            if !proof.has_helper_rows() {
                continue;
            }
            let rank = slot.coder.rank();
            proof.drop_helper_rows(&mut slot.coder);
            stats.rows_dropped += (rank - slot.coder.rank()) as u64;
        }
        self.ack_timer.schedule(now, Urgency::Highest);
    }

    /// Adds a symbol to its block; `None` if its index or length is impossible, or there is no
    /// place for the block.
    fn add(&mut self, now: Time, ahead: usize, enc: &Enc<'_>) -> Option<Outcome> {
        let is_genuine = matches!(enc.form, Form::Tagged { .. });
        self.open_slot(now, ahead, is_genuine)?;
        let slot = slot_of(&mut self.slots, &mut self.beyond, ahead)?;
        match enc.form {
            Form::Source { index } | Form::Tagged { index } => {
                slot.coder.add_source(usize::from(index), enc.symbol).ok()
            }
            Form::Seeded { count, seed } => {
                let count = usize::from(count.get());
                if count > usize::from(self.block_size) {
                    return None;
                }
                self.vector.resize(self.field.vector_len_bytes(count), 0);
                self.field.expand_seed(seed, count, &mut self.vector).ok()?;
                slot.coder.add_coded(&self.vector, count, enc.symbol).ok()
            }
            Form::Explicit { count, vector, .. } => {
                slot.coder.add_coded(vector, usize::from(count.get()), enc.symbol).ok()
            }
        }
    }

    /// Whether there is memory for another block. One place is reserved for the block to be
    /// delivered next, which all others wait for.
    fn has_place(&self, ahead: usize) -> bool {
        let is_base_open = self.slots.front().is_some_and(Option::is_some);
        self.open_count() + usize::from(ahead > 0 && !is_base_open) < self.coders.most
    }

    /// Makes a place for a block's rows, if it has none. A block beyond the window, whose number
    /// may be forged, keeps its place until a row of another such block comes. `is_genuine`: the
    /// row's tag is valid.
    fn open_slot(&mut self, now: Time, ahead: usize, is_genuine: bool) -> Option<()> {
        let block = self.base.wrapping_add(ahead as u32);
        let is_open = if ahead < WINDOW {
            self.take_beyond(block);
            self.slots.get(ahead).is_some_and(Option::is_some)
        } else {
            self.beyond.as_ref().is_some_and(|(number, _)| *number == block)
        };
        if is_open {
            return Some(());
        }
        let before = self.beyond.take_if(|_| ahead >= WINDOW).map(|(_, slot)| slot);
        let coder = match before {
            None if self.has_place(ahead) => self.new_coder()?,
            before => {
                let before = before.or_else(|| self.make_place(now, ahead, is_genuine));
                let mut coder = before?.coder;
                coder.reset();
                coder
            }
        };
        let slot = Slot { coder, proof: None, next: 0, first_heard_at: now };
        if ahead < WINDOW {
            self.put_slot(ahead, slot);
        } else {
            self.beyond = Some((block, slot));
        }
        Some(())
    }

    fn new_coder(&mut self) -> Option<BlockDecoder> {
        let size = usize::from(self.block_size);
        let new = || BlockDecoder::new(self.field, size, self.symbol_size_max).ok();
        self.coders.spare.pop().or_else(new)
    }

    /// Drops a block to make a place for another: one without proven symbols, which no deadline
    /// would ever end. The one beyond the window goes first, then the farthest one: at once for a
    /// genuine row of the encoder, since the rows dropped may not be; for an unproven row of a
    /// later block only if the dropped block has had a deadline's time.
    fn make_place(&mut self, now: Time, ahead: usize, is_genuine: bool) -> Option<Slot> {
        if let Some((_, slot)) = self.beyond.take() {
            return Some(slot);
        }
        let has_had_time = |slot: &Slot| slot.first_heard_at + self.deadline <= now;
        let may_end = |at: usize, slot: &Slot| {
            !self.counts(slot) && (is_genuine || (at < ahead && has_had_time(slot)))
        };
        let ends = |at: &usize| self.slots[*at].as_ref().is_some_and(|slot| may_end(*at, slot));
        let at = (1..self.slots.len()).rev().find(ends)?;
        let slot = self.slots[at].take();
        // The encoder may know of its rank, and would not send what was dropped again.
        let block = self.base.wrapping_add(at as u32) as u16;
        self.note_emptied(BlockAck { block, given_up: false, rank: 0, known: 0, decoded: vec![] });
        self.ack_timer.schedule(now, Urgency::Highest);
        slot
    }

    fn put_slot(&mut self, ahead: usize, slot: Slot) {
        if self.slots.len() <= ahead {
            self.slots.resize_with(ahead + 1, || None);
        }
        self.slots[ahead] = Some(slot);
        let block = self.base.wrapping_add(ahead as u32) as u16;
        self.emptied.retain(|emptied| emptied.ack.block != block);
    }

    /// Moves the block beyond the window to its place once the window has reached it.
    fn take_beyond(&mut self, block: u32) {
        let ahead = block.wrapping_sub(self.base) as usize;
        let is_vacant = ahead < WINDOW && self.slots.get(ahead).is_none_or(Option::is_none);
        if let Some((_, slot)) = self.beyond.take_if(|it| it.0 == block && is_vacant) {
            self.put_slot(ahead, slot);
        }
    }

    /// Delivers in order what is decoded; returns whether there was anything.
    fn deliver(&mut self, egress: &mut EgressQueue, stats: &mut Stats) -> bool {
        let mut delivered = false;
        let tag_len = SymbolTags::len_of(self.tags.as_ref());
        while let Some(Some(slot)) = self.slots.front_mut() {
            while let Some(symbol) = slot.coder.symbol(slot.next) {
                deliver_packets(symbol, tag_len, egress, stats);
                slot.next += 1;
                delivered = true;
            }
            if slot.next < usize::from(self.block_size) {
                break;
            }
            self.finish_base();
        }
        delivered
    }

    fn finish_base(&mut self) {
        if let Some(Some(mut slot)) = self.slots.pop_front() {
            if slot.proof.as_ref().is_some_and(Proof::is_disputed) {
                self.blame.suspect();
            }
            // Including the one beyond the window there may be one coder too many.
            if self.coders.spare.len() < WINDOW {
                slot.coder.reset();
                self.coders.spare.push(slot.coder);
            }
        }
        self.base = self.base.wrapping_add(1);
    }

    // ---- giving up ----------------------------------------------------------------------------

    /// Ends the first unfinished block: delivers what it has, counts what it lacks.
    fn give_up_base(&mut self, egress: &mut EgressQueue, stats: &mut Stats) {
        let block_size = usize::from(self.block_size);
        let tag_len = SymbolTags::len_of(self.tags.as_ref());
        let id = self.base as u16;
        let ack = match self.slots.front_mut() {
            Some(Some(slot)) => {
                while slot.next < block_size {
                    match slot.coder.symbol(slot.next) {
                        Some(symbol) => deliver_packets(symbol, tag_len, egress, stats),
                        None => stats.symbols_given_up += 1,
                    }
                    slot.next += 1;
                }
                slot.block_ack(id)
            }
            _ => {
                stats.symbols_given_up += block_size as u64;
                BlockAck { block: id, given_up: true, rank: 0, known: 0, decoded: vec![] }
            }
        };
        self.note_emptied(BlockAck { given_up: true, ..ack });
        if self.slots.is_empty() {
            self.slots.push_back(None);
        }
        self.finish_base();
    }

    /// A block has no rows any more, as this reports to the encoder.
    fn note_emptied(&mut self, ack: BlockAck) {
        self.emptied.retain(|emptied| emptied.ack.block != ack.block);
        if self.emptied.len() == EMPTIED_BLOCKS_MAX {
            self.emptied.pop_front();
        }
        self.emptied.push_back(Emptied { ack, tells: EMPTIED_TELLS });
    }

    /// In the newest block, skips missing symbols that hold back others of the same block: the
    /// first ones, and all others that hold back what has waited as long. Only what was heard of
    /// later has time left.
    fn skip_gaps(&mut self, stall: Stall, egress: &mut EgressQueue, stats: &mut Stats) {
        let has_tags = self.tags.is_some();
        while let Some(Some(slot)) = self.slots.front_mut() {
            let known = slot.held_up(has_tags).end;
            while slot.next < known && !slot.coder.is_decoded(slot.next) {
                slot.next += 1;
                stats.symbols_given_up += 1;
            }
            self.deliver(egress, stats);
            let next = self.slots.front().and_then(Option::as_ref).map(|slot| slot.next);
            let has_more = |next: usize| next < known.min(stall.end);
            if self.base != stall.block || !next.is_some_and(has_more) {
                break;
            }
        }
    }

    /// Applies the delivery deadline.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) {
        let Some(stall) = self.stall.filter(|stall| stall.since + self.deadline <= now) else {
            return;
        };
        if self.slots.iter().skip(1).flatten().any(|slot| self.counts(slot)) {
            // A series of blocks of which nothing was received, as after an outage, is one stall.
            loop {
                self.give_up_base(egress, stats);
                self.deliver(egress, stats);
                let mut waiting = self.slots.iter().skip(1).flatten().filter(|it| self.counts(it));
                if !waiting.any(|slot| slot.first_heard_at + self.deadline <= now) {
                    break;
                }
            }
        } else {
            self.skip_gaps(stall, egress, stats);
        }
        self.note_progress(now, true);
        if let (Some(None), Some(waiting)) =
            (self.slots.front(), self.slots.iter().flatten().find(|slot| self.counts(slot)))
        {
            self.stall = Some(Stall { since: waiting.first_heard_at, block: self.base, end: 0 });
        }
        self.ack_timer.schedule(now, Urgency::Highest);
    }

    fn note_progress(&mut self, now: Time, delivered: bool) {
        let has_tags = self.tags.is_some();
        let front = self.slots.front().and_then(Option::as_ref);
        let held_up = front.map_or(0..0, |slot| slot.held_up(has_tags));
        let waits = !held_up.is_empty()
            || self.slots.iter().skip(1).flatten().any(|slot| self.counts(slot));
        if !waits {
            self.stall = None;
        } else if delivered || self.stall.is_none_or(|stall| stall.since == now) {
            self.stall = Some(Stall { since: now, block: self.base, end: held_up.end });
        }
    }

    // ---- acknowledgments ----------------------------------------------------------------------

    /// A frame of a finished block came: the encoder does not know, so report it (again).
    fn note_late(&mut self, now: Time, block: u16) {
        if let Some(emptied) = self.emptied.iter_mut().find(|emptied| emptied.ack.block == block) {
            emptied.tells = emptied.tells.max(1);
        }
        self.ack_timer.schedule(now, Urgency::None);
    }

    /// How urgent an acknowledgment is. An encoder with nothing else in flight is stalled until it
    /// hears that its block is done, or, once it has sent the whole block, what it still lacks.
    fn urgency(&self, completed: bool) -> Urgency {
        let mut open = self.slots.iter().flatten();
        match (open.next(), open.next()) {
            (None, _) if completed => Urgency::Highest,
            (Some(only), None) if only.coder.known_count() == usize::from(self.block_size) => {
                Urgency::High
            }
            _ => Urgency::None,
        }
    }

    /// When an acknowledgment is due; `None`: there is nothing new to report.
    pub(crate) fn ack_due(&self) -> Option<Time> {
        self.ack_timer.due()
    }

    /// How many blocks an acknowledgment would list, and their size.
    pub(crate) fn blocks_to_tell(&self) -> (usize, u16) {
        let emptied = self.emptied.iter().filter(|emptied| emptied.tells > 0).count();
        (emptied + self.slots.len(), self.block_size)
    }

    /// The state of all blocks for an acknowledgment sent now: base, and the blocks.
    ///
    /// Lists as many as fit into `room` bytes, those that the encoder waits for first.
    pub(crate) fn take_ack(&mut self, now: Time, room: usize) -> (u16, Vec<BlockAck>) {
        self.ack_timer.note_sent(now);
        let most = (room.saturating_sub(Ack::len_bytes_max((0, 0)))
            / (Ack::len_bytes_max((1, self.block_size)) - Ack::len_bytes_max((0, 0))))
        .min(ACK_BLOCKS_MAX);
        let open = self.slots.iter().enumerate().filter_map(|(ahead, slot)| {
            let id = self.base.wrapping_add(ahead as u32) as u16;
            slot.as_ref().map(|slot| slot.block_ack(id))
        });
        let mut blocks: Vec<BlockAck> = open.take(most).collect();
        for emptied in self.emptied.iter_mut().rev().filter(|emptied| emptied.tells > 0) {
            if blocks.len() == most {
                break;
            }
            emptied.tells -= 1;
            blocks.push(emptied.ack.clone());
        }
        (self.base as u16, blocks)
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.stall.map(|stall| stall.since + self.deadline)
    }
}

/// The slot of the block that is `ahead` blocks ahead of the base.
fn slot_of<'a>(
    slots: &'a mut VecDeque<Option<Slot>>,
    beyond: &'a mut Option<(u32, Slot)>,
    ahead: usize,
) -> Option<&'a mut Slot> {
    if ahead < WINDOW {
        slots.get_mut(ahead)?.as_mut()
    } else {
        beyond.as_mut().map(|(_, slot)| slot)
    }
}

impl Slot {
    /// Symbols known and not delivered; with tags only up to the last proven one, as nothing
    /// unproven counts as waiting.
    fn held_up(&self, has_tags: bool) -> core::ops::Range<usize> {
        let known = self.next..self.coder.known_count();
        let end = |known: core::ops::Range<usize>| {
            known.rev().find(|&index| self.coder.is_decoded(index)).map_or(self.next, |it| it + 1)
        };
        if has_tags { self.next..end(known) } else { known }
    }

    fn block_ack(&self, block: u16) -> BlockAck {
        let known = self.coder.known_count();
        let mut decoded = vec![0; known.div_ceil(8)];
        self.coder.decoded_bitmap(&mut decoded);
        let rank = self.coder.rank() as u16;
        BlockAck { block, given_up: false, rank, known: known as u16, decoded }
    }
}

/// Delivers the packets of a symbol, which begins with a tag of `tag_len` bytes.
fn deliver_packets(symbol: &[u8], tag_len: usize, egress: &mut EgressQueue, stats: &mut Stats) {
    for packet in symbol::verbatim_packets(symbol.get(tag_len..).unwrap_or_default()) {
        egress.push(PacketRef::read(packet.bytes));
        stats.packets_delivered += 1;
        stats.bytes_delivered += packet.bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CodingParams, Order, StationId};
    use crate::flow::block::encoder::Encoder;
    use crate::flow::block::tags::tests::tags;
    use crate::host::queue::IngressQueue;
    use corridor_base::Stream;
    use corridor_base::rand::SeedableRng;

    fn parse(body: &[u8]) -> Enc<'_> {
        Enc::parse(body, |_| None).expect("an ENC")
    }

    /// Symbols of a block, of which every other one is lost, that a decoder receives at the times
    /// given, in ms, and what it delivers then and at its timers, until none is left.
    fn delivered_behind_gaps(heard_ms: [u64; 3]) -> Vec<(u64, u8)> {
        let params = CodingParams {
            order: Order::Systematic,
            block_size: 8,
            symbol_size: 64,
            delivery_deadline: Duration::from_millis(100),
            ..CodingParams::default()
        };
        let rng = Stream::from_seed([1; 32]);
        let mut encoder = Encoder::new(params, StationId(1), 64, rng, Time::ZERO);
        let (base, deadline) = (encoder.base(), params.delivery_deadline);
        let mut decoder = Decoder::new(params.field, 8, 0, base, 64, deadline, params.ack_interval);
        let (mut ingress, mut egress) = (IngressQueue::fifo(8), EgressQueue::default());
        let (mut stats, mut delivered) = (Stats::default(), Vec::new());
        let mut note = |now: Time, egress: &mut EgressQueue| {
            while egress.pop().is_some() {
                delivered.push((now.as_nanos() / 1_000_000, egress.current().bytes()[0]));
            }
        };
        for number in 0..6_u8 {
            let mut body = Vec::new();
            ingress.push_bytes(Time::ZERO, &[number; 4], &mut stats);
            assert!(encoder.poll(Time::ZERO, number.into(), &mut ingress, &mut body, &mut stats));
            if number % 2 == 1 {
                let now = Time::from_millis(heard_ms[usize::from(number / 2)]);
                assert!(decoder.poll_timeout().is_none_or(|due| due > now));
                decoder.handle_enc(now, &parse(&body), Origin::Encoder, &mut egress, &mut stats);
                note(now, &mut egress);
            }
        }
        while let Some(due) = decoder.poll_timeout() {
            decoder.handle_timeout(due, &mut egress, &mut stats);
            note(due, &mut egress);
        }
        delivered
    }

    #[test]
    fn what_has_waited_for_the_deadline_is_delivered_however_many_gaps_are_before_it() {
        assert_eq!(delivered_behind_gaps([10, 10, 10]), [(110, 1), (110, 3), (110, 5)]);
    }

    #[test]
    fn what_came_later_has_its_gaps_mended_for_longer() {
        assert_eq!(delivered_behind_gaps([10, 10, 60]), [(110, 1), (110, 3), (210, 5)]);
    }

    /// Block numbers wrap in frames but not in tags: what was sent 65,536 blocks ago under the same
    /// number is not delivered again.
    #[test]
    fn blocks_are_told_apart_when_their_numbers_in_frames_have_come_round() {
        let params = CodingParams { block_size: 1, symbol_size: 64, ..CodingParams::default() };
        let rng = Stream::from_seed([1; 32]);
        let encoder = Encoder::new(params, StationId(1), 64, rng, Time::ZERO);
        let mut encoder = encoder.with_tags(Some(tags(7)));
        let mut decoder = Decoder::new(
            params.field,
            1,
            0,
            encoder.base(),
            64,
            params.delivery_deadline,
            params.ack_interval,
        )
        .with_tags(Some(tags(7)));
        let (mut ingress, mut egress) = (IngressQueue::fifo(8), EgressQueue::default());
        let (mut stats, mut first) = (Stats::default(), Vec::new());
        let begin = encoder.base();
        for number in 0..66_000_u32 {
            let now = Time::from_millis(number.into());
            ingress.push_bytes(now, &number.to_be_bytes(), &mut stats);
            let mut body = Vec::new();
            assert!(encoder.poll(now, number, &mut ingress, &mut body, &mut stats));
            if number == 65_536 {
                assert_eq!(parse(&body).block, parse(&first).block);
                let failed = stats.tags_failed;
                let old = parse(&first);
                decoder.handle_enc(now, &old, Origin::Encoder, &mut egress, &mut stats);
                assert!(egress.pop().is_none() && stats.tags_failed == failed + 1);
            }
            if first.is_empty() {
                first = body.clone();
            }
            decoder.handle_enc(now, &parse(&body), Origin::Encoder, &mut egress, &mut stats);
            assert!(egress.pop().is_some(), "{number}");
            assert_eq!(egress.current().bytes(), number.to_be_bytes());
            let (base, blocks) = decoder.take_ack(now, 1_000);
            let (flow, helper_counter) = (StationId(1), u32::MAX);
            let ack = Ack {
                flow,
                base,
                encoder_counter: number,
                helper_counter,
                e2: 1.0,
                e3: 0.0,
                blocks,
            };
            encoder.handle_ack(now, &ack, number, &mut stats);
        }
        assert_eq!(encoder.base(), begin + 66_000);
    }
}
