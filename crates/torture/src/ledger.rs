//! Where every packet is: the ledger of one coded flow, from a host to its peer.
//!
//! The sender's packets become symbols in order, as many to a symbol as fit, so the ledger knows
//! which packets each symbol of each block holds. The receiver passes over symbols in order: each
//! symbol between its position before and after an event was either delivered whole or given up,
//! and the number given up has to match the increase of the receiver's counter.

use std::collections::{BTreeMap, BTreeSet};

use corridor_proto::Stats;
use corridor_proto::inspect::{DecoderView, EncoderView, Inspection};
use corridor_proto::wire::{Ack, PACKET_PREFIX_LEN};

use super::invariants::{Broken, Invariant, ensure};

/// The fate of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    /// It has not been delivered yet.
    #[default]
    Waits,
    /// The peer's host has received it.
    Delivered,
    /// The receiver counted it as given up.
    GivenUp,
    /// A station restarted and lost it.
    Died,
}

/// A block of the sender.
#[derive(Default)]
struct Block {
    /// Packets before its first symbol.
    first: usize,
    /// Packets before the end of each symbol.
    ends: Vec<usize>,
    end: Option<End>,
}

/// How a block left the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Acknowledged,
    GivenUp,
    /// Of several blocks that left at once, some were given up.
    Either,
}

/// A symbol's position: block since the sender's start, and index within it.
type Position = (usize, usize);

/// One lifetime of the sender.
struct Run {
    instance: u64,
    first_block: u16,
    block_size: usize,
    symbol_size: usize,
    /// Current length limit of symbols that hold several packets.
    packets_len_max: usize,
    /// Packets before the first that is not part of a symbol yet.
    coded: usize,
    blocks: Vec<Block>,
    /// Blocks in the sender.
    open: Vec<usize>,
    /// Blocks that a receiver had completely when it restarted.
    died: BTreeSet<usize>,
    /// The furthest position of any receiver.
    reached: Position,
}

/// The receiver's position.
struct Reader {
    run: usize,
    at: Position,
    /// Its open blocks that are complete.
    complete: Vec<usize>,
    /// Rank of each open block, and symbols known of it.
    open: BTreeMap<u16, (usize, usize)>,
}

/// Blocks whose rows the receiver has dropped.
///
/// That no sender assumes a higher rank than its receiver has cannot hold for these: the sender
/// learns of it one way later, and not at all while feedback is lost. What holds is that it assumes
/// no more than the receiver had, and that the receiver tells.
#[derive(Default)]
struct Dropped {
    /// The rank that each had.
    ranks: BTreeMap<u16, usize>,
    /// Those not reported yet, and how many acknowledgments were sent since.
    untold: BTreeMap<u16, u32>,
    /// Blocks that acknowledgments listed since the receiver was last inspected.
    listed: BTreeSet<u16>,
}

/// One acknowledgment may have been made, and held up, before rows were dropped.
const ACKS_HELD_UP: u32 = 1;
/// An acknowledgment that would be no longer than this with one more block has room for it.
const ACK_LEN_SURE: usize = 120;

/// The ledger of a flow.
#[derive(Default)]
pub(super) struct Ledger {
    packets: Vec<Vec<u8>>,
    fates: Vec<Fate>,
    runs: Vec<Run>,
    reader: Option<Reader>,
    /// Whether the receiver may drop the rows of a block of which nothing is proven, to make a
    /// place for another: its memory is scarce, and symbols have tags.
    may_drop: bool,
    dropped: Dropped,
    /// Packets the sender counted as given up.
    pub(super) given_up_by_sender: u64,
    /// Packets delivered again after the receiver restarted.
    pub(super) repeated: u64,
}

impl Ledger {
    /// `may_drop`: the receiver may drop the rows of blocks of which nothing is proven.
    pub(super) fn new(may_drop: bool) -> Self {
        Ledger { may_drop, ..Ledger::default() }
    }

    pub(super) fn count(&self, fate: Fate) -> u64 {
        self.fates.iter().filter(|&&other| other == fate).count() as u64
    }

    pub(super) fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Largest block of any of the sender's lifetimes, symbols, and longest symbol, bytes.
    pub(super) fn sizes(&self) -> (usize, usize) {
        self.runs.last().map_or((0, 0), |run| (run.block_size, run.symbol_size))
    }

    // ---- the sender ---------------------------------------------------------------------------

    /// The sender has started; its earlier packets are lost unless they are still delivered.
    pub(super) fn sender_started(
        &mut self,
        view: &Inspection,
        (block_size, symbol_size): (usize, usize),
    ) {
        let first_block = view.encoder.as_ref().map_or(0, |encoder| encoder.next_block);
        self.runs.push(Run {
            instance: view.instance,
            first_block,
            block_size,
            symbol_size,
            packets_len_max: symbol_size,
            coded: self.packets.len(),
            blocks: Vec::new(),
            open: Vec::new(),
            died: BTreeSet::new(),
            reached: (0, 0),
        });
    }

    /// The sender has died, with all packets that it had accepted.
    pub(super) fn sender_died(&mut self) {
        let waiting = self.fates.iter_mut().filter(|fate| **fate == Fate::Waits);
        waiting.for_each(|fate| *fate = Fate::Died);
    }

    /// The sender has accepted a packet from its host.
    pub(super) fn accepted(&mut self, packet: Vec<u8>) {
        self.packets.push(packet);
        self.fates.push(Fate::Waits);
    }

    /// Inspects the sender after an event; `timer`: the event was not a frame.
    pub(super) fn look_at_sender(
        &mut self,
        view: &Inspection,
        before: &Stats,
        after: &Stats,
        timer: bool,
    ) -> Result<(), Broken> {
        let (Some(run), Some(encoder)) = (self.runs.last_mut(), &view.encoder) else {
            return Ok(());
        };
        let holds = |block| encoder.blocks.iter().any(|held| held.block == block);
        self.dropped.ranks.retain(|&block, _| holds(block));
        let gone = run.remove_gone(encoder);
        let acknowledged = after.blocks_acknowledged - before.blocks_acknowledged;
        let given_up = after.blocks_given_up - before.blocks_given_up;
        ensure(gone.len() as u64 == acknowledged + given_up, Invariant::Accounting, || {
            format!(
                "{} blocks left the sender, {acknowledged} acknowledged, {given_up} given up",
                gone.len()
            )
        })?;
        let end = match (acknowledged, given_up) {
            (_, 0) => End::Acknowledged,
            (0, _) => End::GivenUp,
            _ => End::Either,
        };
        let mut in_gone = 0;
        for block in gone {
            run.blocks[block].end = Some(end);
            in_gone += run.blocks[block].packets();
        }
        let packets = after.packets_given_up - before.packets_given_up;
        // Without feedback from the decoder, the whole block is given up; with feedback, what it
        // lacks.
        let right = match end {
            End::Acknowledged => packets == 0,
            End::GivenUp if timer => packets == in_gone,
            End::GivenUp | End::Either => packets <= in_gone,
        };
        ensure(right, Invariant::Accounting, || {
            format!("{packets} packets given up in blocks of {in_gone}, {end:?}")
        })?;
        self.given_up_by_sender += packets;
        run.note_coded(encoder, &self.packets, view.ingress_packets)
    }

    // ---- the receiver -------------------------------------------------------------------------

    /// Inspects the receiver after an event that delivered `delivered` to its host, and raised its
    /// counter of symbols given up by `given_up`.
    pub(super) fn look_at_receiver(
        &mut self,
        view: &Inspection,
        sender: u16,
        delivered: &[Vec<u8>],
        given_up: u64,
    ) -> Result<(), Broken> {
        let peer = view.peers.iter().find(|peer| peer.id.0 == sender);
        let instance = peer.and_then(|peer| peer.instance);
        let (Some(instance), Some(decoder)) = (instance, &view.decoder) else {
            return ensure(delivered.is_empty(), Invariant::Delivery, || {
                "packets came out before the peer joined".to_owned()
            });
        };
        let run = self.runs.iter().rposition(|run| run.instance == instance);
        let Some(run) = run else {
            return Err((
                Invariant::Delivery,
                "the receiver hears a run that never was".to_owned(),
            ));
        };
        let to = (self.runs[run].index(decoder.base), decoder.next_symbol);
        match &self.reader {
            Some(reader) if reader.run == run => {}
            _ => {
                self.close_reader();
                self.open_reader(run, to)?;
            }
        }
        self.walk(to, delivered, given_up)?;
        self.look_for_dropped(decoder)?;
        let first = self.runs[run].index(decoder.base);
        let full = |rank: usize| rank == self.runs[run].block_size;
        let complete = decoder.blocks.iter().enumerate().filter_map(|(ahead, block)| {
            block.is_some_and(|block| full(block.rank)).then_some(first + ahead)
        });
        let complete = complete.collect();
        if let Some(reader) = &mut self.reader {
            reader.complete = complete;
        }
        Ok(())
    }

    /// Finds the blocks that the receiver had rows of, has not passed, and has no rows of now.
    fn look_for_dropped(&mut self, decoder: &DecoderView) -> Result<(), Broken> {
        let listed = core::mem::take(&mut self.dropped.listed);
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let open = decoder.blocks.iter().enumerate().filter_map(|(ahead, block)| {
            let number = decoder.base.wrapping_add(ahead as u16);
            block.map(|block| (number, (block.rank, block.known)))
        });
        let open: BTreeMap<_, _> = open.collect();
        let before = core::mem::replace(&mut reader.open, open);
        for (block, (rank, known)) in before {
            if is_behind(block, decoder.base) || reader.open.contains_key(&block) {
                continue;
            }
            // A helper's rows may have been dropped before, and no others had come.
            let unproven = rank < known || rank == 0;
            ensure(self.may_drop && unproven, Invariant::Ranks, || {
                format!("the receiver dropped {rank} rows of {known} symbols of block {block}")
            })?;
            let had = self.dropped.ranks.entry(block).or_default();
            *had = rank.max(*had);
            if !listed.contains(&block) {
                self.dropped.untold.insert(block, 0);
            }
        }
        Ok(())
    }

    /// Whether the receiver has dropped rows of a block that the sender holds.
    pub(super) fn has_dropped(&self, block: u16) -> bool {
        self.dropped.ranks.contains_key(&block)
    }

    /// Whether acknowledgments of the receiver are of interest.
    pub(super) fn reads_acks(&self) -> bool {
        self.may_drop
    }

    /// The receiver sends an acknowledgment: it reports blocks whose rows were dropped.
    pub(super) fn acknowledged(&mut self, ack: &Ack) -> Result<(), Broken> {
        let listed = ack.blocks.iter().map(|told| told.block);
        self.dropped.listed.extend(listed);
        let Dropped { untold, listed, .. } = &mut self.dropped;
        untold.retain(|block, _| !listed.contains(block) && !is_behind(*block, ack.base));
        let block_size = self.runs.last().map_or(0, |run| run.block_size as u16);
        let has_room = Ack::len_bytes_max((ack.blocks.len() + 1, block_size)) <= ACK_LEN_SURE;
        for (block, acks) in untold.iter_mut().filter(|_| has_room) {
            *acks += 1;
            ensure(*acks <= ACKS_HELD_UP, Invariant::Ranks, || {
                format!("the receiver does not tell that it has dropped rows of block {block}")
            })?;
        }
        Ok(())
    }

    /// The receiver is gone, and with it what it had not delivered.
    pub(super) fn close_reader(&mut self) {
        self.dropped = Dropped::default();
        if let Some(reader) = self.reader.take() {
            self.runs[reader.run].died.extend(reader.complete);
        }
    }

    /// A receiver begins at a block. Whatever precedes it must have been delivered, lost with the
    /// previous receiver, or given up by the sender.
    fn open_reader(&mut self, run: usize, to: Position) -> Result<(), Broken> {
        let books = &mut self.runs[run];
        ensure(to.0 <= books.blocks.len(), Invariant::Delivery, || {
            format!("the receiver begins at block {} of {}", to.0, books.blocks.len())
        })?;
        for block in books.reached.0..to.0 {
            let from = if block == books.reached.0 { books.reached.1 } else { 0 };
            let passed = books.blocks[block].end.is_some_and(|end| end != End::Acknowledged);
            let right =
                passed || books.died.contains(&block) || from >= books.blocks[block].ends.len();
            ensure(right, Invariant::Accounting, || {
                format!("the receiver starts behind block {block}, which nobody has or gave up")
            })?;
            let packets = books.blocks[block].symbol(from).start..books.blocks[block].last();
            let waiting = self.fates[packets].iter_mut().filter(|fate| **fate == Fate::Waits);
            waiting.for_each(|fate| *fate = Fate::Died);
        }
        books.reached = books.reached.max(to);
        let (complete, open) = (Vec::new(), BTreeMap::new());
        self.reader = Some(Reader { run, at: to, complete, open });
        Ok(())
    }

    /// The receiver has moved on to a position: what it passed was delivered or given up.
    fn walk(&mut self, to: Position, delivered: &[Vec<u8>], given_up: u64) -> Result<(), Broken> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let run = &mut self.runs[reader.run];
        ensure(reader.at <= to, Invariant::Delivery, || {
            format!("the receiver falls back from {:?} to {to:?}", reader.at)
        })?;
        let (mut rest, mut passed_over) = (delivered, 0);
        while reader.at < to {
            let (block, index) = reader.at;
            let symbol = run.blocks.get(block).filter(|block| index < block.ends.len());
            match symbol.map(|block| block.symbol(index)) {
                Some(packets) if rest.starts_with(&self.packets[packets.clone()]) => {
                    rest = &rest[packets.len()..];
                    let fates = &mut self.fates[packets];
                    let again = fates.iter().filter(|fate| **fate == Fate::Delivered);
                    self.repeated += again.count() as u64;
                    fates.fill(Fate::Delivered);
                }
                Some(packets) => {
                    passed_over += 1;
                    let lost = |fate: &&mut Fate| **fate != Fate::Delivered;
                    let fates = self.fates[packets].iter_mut().filter(lost);
                    fates.for_each(|fate| *fate = Fate::GivenUp);
                }
                // Part of a block that the sender gave up before it was full.
                None => passed_over += 1,
            }
            let next = (block, index + 1);
            reader.at = if next.1 >= run.block_size { (block + 1, 0) } else { next };
        }
        run.reached = run.reached.max(to);
        if let Some(packet) = rest.first() {
            let sent_as = self.packets.iter().position(|sent| sent == packet);
            let text = format!(
                "delivered {packet:02x?}, sent as {sent_as:?}, in passing to symbol {to:?}, which it \
                 is not part of"
            );
            return Err((Invariant::Delivery, text));
        }
        ensure(passed_over == given_up, Invariant::Accounting, || {
            format!("{passed_over} symbols passed over, {given_up} counted as given up, at {to:?}")
        })
    }

    /// Checks that no sender assumes a higher rank of a block than the receiver has.
    pub(super) fn check_belief(
        &self,
        sender: &Inspection,
        receiver: &Inspection,
    ) -> Result<(), Broken> {
        let (Some(encoder), Some(decoder)) = (&sender.encoder, &receiver.decoder) else {
            return Ok(());
        };
        let hears = |view: &Inspection, other: &Inspection| {
            view.peers.first().is_some_and(|peer| peer.instance == Some(other.instance))
        };
        if !hears(sender, receiver) || !hears(receiver, sender) {
            return Ok(());
        }
        for block in &encoder.blocks {
            rank_within(block.rank, block.symbols, block.block, "was added")?;
            let ahead = block.block.wrapping_sub(decoder.base);
            let has = match decoder.blocks.get(usize::from(ahead)) {
                Some(slot) => slot.map_or(0, |slot| slot.rank),
                None if ahead < u16::MAX / 2 => 0,
                None => continue, // It has passed it.
            };
            let had = self.dropped.ranks.get(&block.block).copied().unwrap_or_default();
            rank_within(block.rank, has.max(had), block.block, "the receiver has")?;
        }
        Ok(())
    }

    // ---- the end ------------------------------------------------------------------------------

    /// Packets whose fate is not known yet.
    pub(super) fn waiting(&self) -> usize {
        let Some(run) = self.runs.last() else { return 0 };
        let mut waiting = self.packets.len() - run.coded;
        for (at, block) in run.blocks.iter().enumerate() {
            let given_up = block.end.is_some_and(|end| end != End::Acknowledged);
            if given_up || run.died.contains(&at) {
                continue;
            }
            let fates = &self.fates[block.first..block.last()];
            waiting += fates.iter().filter(|fate| **fate == Fate::Waits).count();
        }
        waiting
    }
}

/// Whether a block is before another, by the numbers in frames.
fn is_behind(block: u16, base: u16) -> bool {
    block.wrapping_sub(base) > u16::MAX / 2
}

impl Run {
    /// The index of the block with this number, counted from the start.
    fn index(&self, block: u16) -> usize {
        usize::from(block.wrapping_sub(self.first_block))
    }

    /// Removes blocks that are no longer in the sender; returns them.
    fn remove_gone(&mut self, encoder: &EncoderView) -> Vec<usize> {
        let first = self.first_block;
        let here = |block: usize| {
            let mut blocks = encoder.blocks.iter();
            blocks.any(|view| usize::from(view.block.wrapping_sub(first)) == block)
        };
        let (open, gone) = self.open.iter().partition(|&&block| here(block));
        self.open = open;
        gone
    }

    /// Finds out which packets have become symbols.
    fn note_coded(
        &mut self,
        encoder: &EncoderView,
        packets: &[Vec<u8>],
        waiting: usize,
    ) -> Result<(), Broken> {
        // If the path has become shorter since the last inspection, nothing was coded before that.
        self.packets_len_max = encoder.packets_len_max;
        for view in &encoder.blocks {
            let index = self.index(view.block);
            if index == self.blocks.len() {
                self.blocks.push(Block { first: self.coded, ..Block::default() });
                self.open.push(index);
            }
            let limit = packets.len().saturating_sub(waiting);
            let Some(block) = self.blocks.get_mut(index) else {
                return Err((Invariant::Accounting, format!("block {index} came out of order")));
            };
            while block.ends.len() < view.symbols && self.coded < limit {
                let (from, mut len) = (self.coded, 0);
                while self.coded < limit {
                    len += PACKET_PREFIX_LEN + packets[self.coded].len();
                    if self.coded > from && len > self.packets_len_max {
                        break;
                    }
                    self.coded += 1;
                }
                block.ends.push(self.coded);
            }
            let (symbols, count) = (block.ends.len(), block.packets());
            ensure(
                (symbols, count) == (view.symbols, view.packets),
                Invariant::Accounting,
                || {
                    format!(
                        "block {index} has {} packets in {} symbols, expected {count} in {symbols}",
                        view.packets, view.symbols
                    )
                },
            )?;
        }
        let coded = packets.len().saturating_sub(waiting);
        ensure(self.coded == coded, Invariant::Accounting, || {
            format!("{coded} packets left the ingress queue, {} are in blocks", self.coded)
        })
    }
}

impl Block {
    fn symbol(&self, index: usize) -> core::ops::Range<usize> {
        let before = index.checked_sub(1).and_then(|before| self.ends.get(before));
        let start = if index == 0 { self.first } else { before.copied().unwrap_or(self.last()) };
        start..self.ends.get(index).copied().unwrap_or(self.last())
    }

    fn last(&self) -> usize {
        self.ends.last().copied().unwrap_or(self.first)
    }

    fn packets(&self) -> u64 {
        (self.last() - self.first) as u64
    }
}

fn rank_within(rank: usize, most: usize, block: u16, whose: &str) -> Result<(), Broken> {
    ensure(rank <= most, Invariant::Ranks, || {
        format!("the sender believes in rank {rank} of block {block}; {whose}: {most}")
    })
}
