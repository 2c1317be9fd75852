//! What an attacker who has the encoder's secret, but not its tag key, can do to a decoder.

use core::num::NonZeroU16;
use core::time::Duration;

use corridor_base::Time;
use corridor_codec::{BlockEncoder, Field};

use super::decoder::Decoder;
use super::proof::{Origin, Verdict};
use super::tags::tests::tags;
use crate::config::StationId;
use crate::flow::symbol::{Packet, append_packet};
use crate::host::egress::EgressQueue;
use crate::stats::Stats;
use crate::wire::{END_TAG_LEN, Enc, Form};

const BLOCK_SIZE: u16 = 4;
const DEADLINE: Duration = Duration::from_millis(100);
/// Number of the first block; in frames it wraps soon.
const BASE: u32 = 65_530;

/// A decoder, and the senders to it.
struct Flow {
    now: Time,
    decoder: Decoder,
    egress: EgressQueue,
    stats: Stats,
    /// The encoder's run, as in its tags.
    instance: u64,
}

/// Whether a row is genuine, or has a changed last byte.
#[derive(Clone, Copy, PartialEq)]
enum Row {
    Right,
    Wrong,
}

fn packet(block: u32, index: u16) -> Vec<u8> {
    [&block.to_be_bytes()[..], &index.to_be_bytes()].concat()
}

impl Flow {
    fn new() -> Self {
        let (field, ack_interval) = (Field::Gf256, Duration::from_millis(5));
        let decoder = Decoder::new(field, BLOCK_SIZE, 0, BASE, 64, DEADLINE, ack_interval);
        Flow {
            now: Time::ZERO,
            decoder: decoder.with_tags(Some(tags(7))),
            egress: EgressQueue::default(),
            stats: Stats::default(),
            instance: 7,
        }
    }

    /// A flow whose decoder has memory for `blocks` blocks.
    fn holding(blocks: usize) -> Self {
        let flow = Flow::new();
        Flow { decoder: flow.decoder.holding(blocks), ..flow }
    }

    fn symbol(&self, block: u32, index: u16) -> Vec<u8> {
        let mut symbol = vec![0; END_TAG_LEN];
        append_packet(Packet::verbatim(&packet(block, index), true), &mut symbol);
        tags(self.instance).write((block, index), &mut symbol);
        symbol
    }

    fn hear(&mut self, block: u32, form: Form<'_>, symbol: &[u8], origin: Origin) {
        let enc = Enc { flow: StationId(1), block: block as u16, form, symbol };
        self.decoder.handle_enc(self.now, &enc, origin, &mut self.egress, &mut self.stats);
    }

    /// A source symbol from the encoder.
    fn source(&mut self, block: u32, index: u16) {
        let symbol = self.symbol(block, index);
        self.hear(block, Form::Tagged { index }, &symbol, Origin::Encoder);
    }

    /// A combination of the first symbols of a block.
    fn coded(&mut self, block: u32, count: u16, seed: u32, row: Row, origin: Origin) {
        let (field, size) = (Field::Gf256, usize::from(count));
        let mut coder = BlockEncoder::new(field, size, 64).expect("a sound shape");
        for index in 0..count {
            coder.push(&self.symbol(block, index)).expect("it has room");
        }
        let mut vector = vec![0; field.vector_len_bytes(size)];
        field.expand_seed(seed, size, &mut vector).expect("a vector");
        let mut payload = vec![0; 64];
        let len = coder.encode(&vector, size, &mut payload).expect("a row");
        payload.truncate(len);
        if row == Row::Wrong {
            payload[len - 1] ^= 0x5a;
        }
        let count = NonZeroU16::new(count).expect("some");
        let form = match origin {
            Origin::Encoder => Form::Seeded { count, seed },
            Origin::Helper => Form::Explicit { run: 0, count, vector: &vector },
        };
        self.hear(block, form, &payload, origin);
    }

    /// Lets time pass and timers fire; returns how often they fired.
    fn wait(&mut self, time: Duration) -> usize {
        let (until, mut fired) = (self.now + time, 0);
        while let Some(due) = self.decoder.poll_timeout().filter(|&due| due <= until) {
            self.now = due;
            self.decoder.handle_timeout(due, &mut self.egress, &mut self.stats);
            fired += 1;
        }
        self.now = until;
        fired
    }

    /// What was delivered, in order: block, and place within it.
    fn delivered(&mut self) -> Vec<(u32, u16)> {
        let mut all = Vec::new();
        while self.egress.pop().is_some() {
            let bytes = self.egress.current().bytes();
            let (block, index) = bytes.split_first_chunk().expect("a packet of ours");
            let index = index.try_into().expect("a packet of ours");
            all.push((u32::from_be_bytes(*block), u16::from_be_bytes(index)));
        }
        all
    }
}

fn all_of(block: u32) -> Vec<(u32, u16)> {
    (0..BLOCK_SIZE).map(|index| (block, index)).collect()
}

#[test]
fn a_row_of_a_block_far_ahead_moves_nothing_until_one_of_its_symbols_is_proven() {
    let mut flow = Flow::new();
    for ahead in [64, 65, 1_000, 32_767] {
        flow.coded(BASE + ahead, BLOCK_SIZE, 1, Row::Wrong, Origin::Encoder);
    }
    assert_eq!((flow.wait(10 * DEADLINE), flow.stats.symbols_given_up), (0, 0));
    for block in [BASE, BASE + 1] {
        (0..BLOCK_SIZE).for_each(|index| flow.source(block, index));
        assert_eq!(flow.delivered(), all_of(block));
    }
    // After an outage, the encoder's position follows from a tagged source symbol, or from valid
    // tags.
    flow.source(BASE + 1_000, 0);
    flow.wait(2 * DEADLINE);
    assert_eq!(flow.delivered(), [(BASE + 1_000, 0)]);
    let coded = BASE + 30_000;
    for seed in 1..=u32::from(BLOCK_SIZE) {
        assert_eq!(flow.delivered(), []);
        flow.coded(coded, BLOCK_SIZE, seed, Row::Right, Origin::Encoder);
    }
    flow.wait(2 * DEADLINE);
    assert_eq!(flow.delivered(), all_of(coded));
    assert_eq!((flow.stats.tags_failed, flow.decoder.take_verdict()), (0, None));
}

/// One forged row made the decoder give up the 63 blocks before it, and 22 of 32 symbols to come.
#[test]
fn nothing_is_given_up_for_what_is_not_proven() {
    let mut flow = Flow::new();
    flow.source(BASE, 0);
    assert_eq!(flow.delivered(), [(BASE, 0)]);
    flow.coded(BASE, BLOCK_SIZE, 1, Row::Wrong, Origin::Encoder);
    flow.coded(BASE + 63, BLOCK_SIZE, 1, Row::Wrong, Origin::Encoder);
    assert_eq!(flow.wait(10 * DEADLINE), 0, "nobody waits");
    (1..BLOCK_SIZE).for_each(|index| flow.source(BASE, index));
    assert_eq!(flow.delivered(), all_of(BASE)[1..]);
    // Proven symbols that wait are delivered after a deadline, as ever, and so is what follows.
    flow.source(BASE + 1, 1);
    assert_eq!(flow.wait(2 * DEADLINE), 1);
    assert_eq!(flow.delivered(), [(BASE + 1, 1)]);
    flow.source(BASE + 3, 0);
    assert_eq!(flow.wait(2 * DEADLINE), 1);
    assert_eq!(flow.delivered(), [(BASE + 3, 0)]);
}

#[test]
fn no_helper_is_named_where_no_tag_of_the_encoder_ever_held() {
    for (instance, verdict) in [(8, None), (7, Some(Verdict::Helper))] {
        let mut flow = Flow::new();
        flow.instance = instance;
        flow.source(BASE, 0);
        let row = if instance == 8 { Row::Right } else { Row::Wrong };
        for seed in 1..=u32::from(BLOCK_SIZE) {
            flow.coded(BASE + 1, BLOCK_SIZE, seed, row, Origin::Helper);
        }
        assert!(flow.stats.tags_failed > 0);
        assert_eq!(flow.decoder.take_verdict(), verdict, "{instance}");
    }
}

/// The encoder's first symbol, a coded row from it, and more rows from the helper than are missing.
fn dispute(flow: &mut Flow, block: u32) {
    flow.source(block, 0);
    flow.coded(block, BLOCK_SIZE, 1, Row::Right, Origin::Encoder);
    for seed in 2..=u32::from(BLOCK_SIZE) {
        flow.coded(block, BLOCK_SIZE, seed, Row::Wrong, Origin::Helper);
    }
    assert_eq!(flow.decoder.take_verdict(), None, "the encoder's row may be the one");
}

#[test]
fn what_a_helper_has_sent_of_several_blocks_is_blamed_once() {
    let mut flow = Flow::new();
    let blocks = [BASE, BASE + 1, BASE + 2];
    blocks.iter().for_each(|&block| dispute(&mut flow, block));
    for block in blocks {
        (1..BLOCK_SIZE - 1).for_each(|index| flow.source(block, index));
        let verdict = (block == BASE).then_some(Verdict::Helper);
        assert_eq!(flow.decoder.take_verdict(), verdict, "{block}");
        if verdict.is_some() {
            flow.decoder.drop_helper_rows(flow.now, &mut flow.stats);
        }
    }
    assert_eq!(flow.delivered(), blocks.map(all_of).concat());
}

/// Where the encoder repairs more slowly than blocks are given up, a lying helper would spoil one
/// after the other.
#[test]
fn a_helper_is_suspected_when_a_block_is_given_up_in_dispute() {
    let mut flow = Flow::new();
    dispute(&mut flow, BASE);
    assert_eq!((flow.wait(2 * DEADLINE), flow.decoder.take_verdict()), (0, None), "nobody waits");
    flow.source(BASE + 1, 0);
    assert_eq!(flow.wait(2 * DEADLINE), 1);
    assert_eq!(flow.decoder.take_verdict(), Some(Verdict::Suspected));
    assert_eq!(flow.delivered(), [(BASE, 0), (BASE + 1, 0)]);
}

/// Coded rows prove nothing before a block is full: two blocks partly received before an outage
/// kept both places for good.
#[test]
fn blocks_that_nothing_is_proven_of_give_way_to_later_ones() {
    let mut flow = Flow::holding(2);
    flow.coded(BASE, BLOCK_SIZE, 1, Row::Right, Origin::Encoder);
    flow.coded(BASE + 1, BLOCK_SIZE, 1, Row::Right, Origin::Encoder);
    let all = |flow: &mut Flow, block| {
        for seed in 1..=u32::from(BLOCK_SIZE) {
            flow.coded(block, BLOCK_SIZE, seed, Row::Right, Origin::Encoder);
        }
    };
    all(&mut flow, BASE + 2);
    flow.wait(2 * DEADLINE);
    assert_eq!(flow.delivered(), [], "the one before may be under way still");
    // The encoder has given both up.
    for block in BASE + 2..BASE + 6 {
        all(&mut flow, block);
        flow.wait(2 * DEADLINE);
        assert_eq!(flow.delivered(), all_of(block), "{}", block - BASE);
    }
}

/// The encoder was not told, and believed for as long as it sent nothing else of the block that the
/// decoder had what it had dropped.
#[test]
fn the_encoder_hears_that_a_block_gave_way() {
    let mut flow = Flow::holding(2);
    let told = |flow: &mut Flow| {
        let due = flow.decoder.ack_due().is_some_and(|due| due <= flow.now);
        let (_, blocks) = flow.decoder.take_ack(flow.now, 1_000);
        let mut ranks: Vec<_> = blocks
            .iter()
            .map(|told| {
                assert!(!told.given_up, "{told:?}");
                (told.block.wrapping_sub(BASE as u16), told.rank)
            })
            .collect();
        ranks.sort_unstable();
        (due, ranks)
    };
    // Nothing came of the first block, whose place is kept for it.
    flow.coded(BASE + 1, BLOCK_SIZE, 1, Row::Right, Origin::Encoder);
    flow.coded(BASE + 1, BLOCK_SIZE, 2, Row::Right, Origin::Encoder);
    assert_eq!(told(&mut flow), (true, vec![(1, 2)]));
    flow.wait(2 * DEADLINE);
    flow.coded(BASE + 2, BLOCK_SIZE, 1, Row::Right, Origin::Encoder);
    assert_eq!(told(&mut flow), (true, vec![(1, 0), (2, 1)]));
    assert_eq!(told(&mut flow).1, [(1, 0), (2, 1)], "acknowledgments may be lost");
    // It is sent again, and the other one has to go for what is proven.
    flow.source(BASE + 1, 0);
    flow.wait(DEADLINE / 10);
    assert_eq!(told(&mut flow), (true, vec![(1, 1), (2, 0)]));
    for _ in 0..4 {
        told(&mut flow);
    }
    assert_eq!(told(&mut flow).1, [(1, 1)], "in the end it is known");
}

/// A row in the encoder's name of any other block kept the encoder's own rows from the second
/// place.
#[test]
fn a_row_that_is_not_proven_keeps_no_place_from_one_that_is() {
    for ahead in [2, 63, 64, 32_767] {
        let mut flow = Flow::holding(2);
        flow.source(BASE, 0);
        flow.coded(BASE + ahead, BLOCK_SIZE, 1, Row::Wrong, Origin::Encoder);
        (0..BLOCK_SIZE).for_each(|index| flow.source(BASE + 1, index));
        (1..BLOCK_SIZE).for_each(|index| flow.source(BASE, index));
        let both = [BASE, BASE + 1].map(all_of).concat();
        assert_eq!((flow.delivered(), flow.stats.symbols_refused), (both, 0), "{ahead}");
    }
}
