//! The window coder in operation: a systematic sender with interleaved repair symbols, over a
//! channel with bursts, reordering and duplicates, with ids at both ends of the range and across 32
//! bits.

use std::collections::VecDeque;

use corridor_codec::{
    Coefficients, Density, Field, WindowDecoder, WindowEncoder, WindowOutcome, widen_id,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const SYMBOL_SIZE_MAX: usize = 20;

/// A frame: ids as 32 bits, coefficients as a seed or a key.
#[derive(Clone)]
enum Frame {
    Source(u32, Vec<u8>),
    Coded(u32, usize, Coefficients<'static>, Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
struct Channel {
    /// Probability, in percent, that a burst of losses begins, and that it ends.
    burst_begins: u32,
    burst_ends: u32,
    /// Probability, in percent, that a frame is delayed behind up to `late_by_max` others, and that
    /// it is duplicated.
    late: u32,
    late_by_max: u32,
    twice: u32,
}

fn symbol(id: u64) -> Vec<u8> {
    let len = 1 + (id.wrapping_mul(7) % SYMBOL_SIZE_MAX as u64) as usize;
    (0..len as u64).map(|i| (id.wrapping_mul(31).wrapping_add(i * i)) as u8 | 1).collect()
}

fn chance(rng: &mut ChaCha8Rng, percent: u32) -> bool {
    rng.next_u32() % 100 < percent
}

/// The channel, which yields frames as they arrive.
struct Air {
    channel: Channel,
    in_burst: bool,
    /// With the number of frames that each still lets pass.
    held_back: VecDeque<(u32, Frame)>,
}

impl Air {
    fn send(&mut self, frame: Frame, rng: &mut ChaCha8Rng) -> Vec<Frame> {
        let Channel { burst_begins, burst_ends, late, late_by_max, twice } = self.channel;
        self.in_burst =
            if self.in_burst { !chance(rng, burst_ends) } else { chance(rng, burst_begins) };
        let mut arrived = vec![];
        if !self.in_burst {
            if chance(rng, twice) {
                self.held_back.push_back((1 + rng.next_u32() % late_by_max, frame.clone()));
            }
            if chance(rng, late) {
                self.held_back.push_back((1 + rng.next_u32() % late_by_max, frame));
            } else {
                arrived.push(frame);
            }
        }
        for (wait, _) in &mut self.held_back {
            *wait = wait.saturating_sub(1);
        }
        while let Some(due) = self.held_back.iter().position(|(wait, _)| *wait == 0) {
            arrived.extend(self.held_back.remove(due).map(|(_, frame)| frame));
        }
        arrived
    }
}

fn hear(decoder: &mut WindowDecoder, frame: &Frame) -> WindowOutcome {
    match frame {
        Frame::Source(id, symbol) => {
            let id = widen_id(*id, decoder.base());
            decoder.add_source(id, symbol).unwrap()
        }
        Frame::Coded(first, count, coefficients, payload) => {
            let first = widen_id(*first, decoder.base());
            decoder.add_coded(first, *count, *coefficients, payload).unwrap()
        }
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(300))]

    /// Feedback reports what is missing, and the sender repairs that much: everything arrives, in
    /// order and unchanged.
    #[test]
    fn everything_arrives_in_order(
        field in prop_oneof![Just(Field::Gf2), Just(Field::Gf16), Just(Field::Gf256)],
        window_size in 1..80_usize,
        first in prop_oneof![
            Just(0), Just((1_u64 << 32) - 50), any::<u64>(), Just(u64::MAX - 200),
        ],
        burst_begins in 0..30_u32,
        burst_ends in 20..100_u32,
        late in 0..30_u32,
        late_by_max in 1..12_u32,
        twice in 0..20_u32,
        keyed: bool,
        seed: u64,
    ) {
        let total = 200;
        let first = first.min(u64::MAX - total);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let channel = Channel { burst_begins, burst_ends, late, late_by_max, twice };
        let mut air = Air { channel, in_burst: false, held_back: VecDeque::new() };
        let mut encoder = WindowEncoder::new(field, window_size, SYMBOL_SIZE_MAX).unwrap();
        let mut decoder = WindowDecoder::new(field, window_size, SYMBOL_SIZE_MAX).unwrap();
        encoder.reset(first);
        decoder.reset(first);
        let (mut delivered, mut frames) = (first, 0_u32);
        while delivered < first + total {
            frames += 1;
            prop_assert!(frames < 40_000, "no progress at {}", delivered - first);
            let next = encoder.end();
            // A repair symbol if the window is full or everything is sent, and occasionally
            // otherwise.
            let frame = if next < first + total && !encoder.is_full() && !frames.is_multiple_of(5) {
                let bytes = symbol(next);
                prop_assert_eq!(encoder.push(&bytes), Ok(next));
                Frame::Source(next as u32, bytes)
            } else if encoder.count() > 0 {
                let (from, count) = (encoder.base(), encoder.count());
                let coefficients = match keyed && field != Field::Gf16 {
                    // Over GF(2), half of the coefficients must be zero, or all vectors are equal.
                    true => Coefficients::RepairKey(frames as u16, Density::new(7).unwrap()),
                    false => Coefficients::Seed(frames),
                };
                let mut payload = vec![0; SYMBOL_SIZE_MAX];
                let len = encoder.encode(from, count, coefficients, &mut payload).unwrap();
                payload.truncate(len);
                if len == 0 {
                    continue;
                }
                Frame::Coded(from as u32, count, coefficients, payload)
            } else {
                continue;
            };
            for frame in air.send(frame, &mut rng) {
                let before = decoder.rank();
                let outcome = hear(&mut decoder, &frame);
                prop_assert_ne!(outcome, WindowOutcome::Ahead, "the sender keeps to the window");
                let gained = usize::from(outcome == WindowOutcome::Innovative);
                prop_assert_eq!(decoder.rank(), before + gained);
                prop_assert_eq!(decoder.deficit() + decoder.rank(),
                    (decoder.end() - decoder.base()) as usize);
                while delivered < decoder.in_order_end() {
                    let (expected, decoded) = (symbol(delivered), decoder.symbol(delivered));
                    let decoded = decoded.unwrap();
                    prop_assert_eq!(&decoded[..expected.len()], &expected[..]);
                    prop_assert!(decoded[expected.len()..].iter().all(|&byte| byte == 0));
                    delivered += 1;
                }
            }
            // Occasional feedback: both sides drop what is delivered.
            if frames.is_multiple_of(3) {
                prop_assert_eq!(decoder.advance_to(delivered), 0);
                encoder.advance_to(delivered);
            }
        }
        prop_assert_eq!((decoder.missing_count(), decoder.deficit()), (0, 0));
    }

    /// Without feedback, and with too little repair for the losses: the window moves on by time
    /// alone, and whatever is decoded is correct.
    #[test]
    fn what_cannot_be_repaired_is_given_up(
        field in prop_oneof![Just(Field::Gf2), Just(Field::Gf16), Just(Field::Gf256)],
        window_size in 4..60_usize,
        every in 2..12_u64,
        loss in 0..60_u32,
        seed: u64,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut encoder = WindowEncoder::new(field, window_size, SYMBOL_SIZE_MAX).unwrap();
        let mut decoder = WindowDecoder::new(field, window_size, SYMBOL_SIZE_MAX).unwrap();
        let (mut decoded, mut given_up) = (0, 0);
        for id in 0..400 {
            if encoder.is_full() {
                encoder.advance_to(encoder.base() + 1);
            }
            encoder.push(&symbol(id)).unwrap();
            given_up += decoder.advance_to(encoder.base());
            if !chance(&mut rng, loss) {
                decoder.add_source(id, &symbol(id)).unwrap();
            }
            if id % every == 0 && !chance(&mut rng, loss) {
                let mut payload = [0; SYMBOL_SIZE_MAX];
                let (base, count) = (encoder.base(), encoder.count());
                let given = Coefficients::Seed(id as u32);
                let len = encoder.encode(base, count, given, &mut payload).unwrap();
                let outcome = decoder.add_coded(base, count, given, &payload[..len]).unwrap();
                prop_assert_ne!(outcome, WindowOutcome::Ahead);
                prop_assert_ne!(outcome, WindowOutcome::Stale);
            }
            while let Some(id) = decoder.poll_decoded() {
                let (bytes, expected) = (decoder.symbol(id).unwrap(), symbol(id));
                prop_assert!(bytes.starts_with(&expected));
                decoded += 1;
            }
            prop_assert!(decoder.rank() <= window_size);
        }
        given_up += decoder.missing_count() as u64;
        let known = decoder.end();
        prop_assert_eq!(decoded + given_up, known);
    }
}
