//! Operations on a window encoder, a decoder, and a second decoder that receives what the first one
//! recodes.

use std::collections::BTreeSet;

use corridor_codec::{
    CodecError, Coefficients, Density, Field, WindowDecoder, WindowEncoder, WindowOutcome,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::input::{Input, source};
use crate::twin::{Twin, combine, unpack};

/// First ids of windows: zero, around 32 bits, and near the maximum.
const FIRST_IDS: [u64; 4] = [0, (1 << 32) - 9, u64::MAX - 1000, u64::MAX - 90];

/// Maximum number of operations of one input: the twin is slow.
const OPERATIONS_MAX: usize = 200;

/// Interprets `data` as the dimensions of a window and operations on it.
///
/// # Panics
/// If the coders do not agree with their twins.
pub fn window(data: &[u8]) {
    let mut input = Input::new(data);
    let mut net = Net::new(&mut input);
    for number in 0..OPERATIONS_MAX {
        if input.is_empty() {
            return;
        }
        net.operate(&mut input);
        // Not after each: decoded symbols may be released without having been reported.
        let is_polled = number % 3 == 0;
        net.decoder.check(is_polled);
        net.peer.check(is_polled);
    }
}

struct Net {
    field: Field,
    window_size: usize,
    symbol_size_max: usize,
    encoder: WindowEncoder,
    decoder: Checked,
    peer: Checked,
    rng: ChaCha8Rng,
    /// Whether the decoder received anything false.
    is_poisoned: bool,
}

impl Net {
    fn new(input: &mut Input) -> Self {
        let field = input.field();
        let (window_size, symbol_size_max) = (input.size(), 1 + input.below(12));
        let first = FIRST_IDS[input.below(FIRST_IDS.len())];
        let mut encoder = WindowEncoder::new(field, window_size, symbol_size_max).unwrap();
        encoder.reset(first);
        Self {
            field,
            window_size,
            symbol_size_max,
            encoder,
            decoder: Checked::new(field, window_size, symbol_size_max, first),
            peer: Checked::new(field, window_size, symbol_size_max, first),
            rng: ChaCha8Rng::seed_from_u64(1),
            is_poisoned: false,
        }
    }

    fn operate(&mut self, input: &mut Input) {
        match input.below(16) {
            0..3 => (0..1 + input.below(6)).for_each(|_| self.push(input)),
            3..6 => self.send_source(input),
            6..10 => self.send_coded(input),
            10..12 => self.recode(input),
            12 => {
                let distance = input.below(self.window_size + 3) as u64;
                let to = self.decoder.real.base().saturating_add(distance);
                self.decoder.advance_to(to);
                if distance % 2 == 1 {
                    self.peer.advance_to(to);
                }
            }
            13 => {
                let to = self.encoder.base().saturating_add(input.below(8) as u64);
                self.encoder.advance_to(to);
            }
            14 => self.send_garbage(input),
            _ => self.jump(input),
        }
    }

    fn push(&mut self, input: &mut Input) {
        if self.encoder.is_full() {
            let full = CodecError::WindowFull { window_size: self.window_size };
            assert_eq!(self.encoder.push(&[1]), Err(full));
            let past = 1 + input.below(self.window_size) as u64;
            self.encoder.advance_to(self.encoder.base() + past);
        }
        let id = self.encoder.end();
        let pushed = self.encoder.push(&source(id, self.symbol_size_max));
        let last = CodecError::IdRange { first: id, count: 1 };
        assert_eq!(pushed, if id == u64::MAX { Err(last) } else { Ok(id) });
    }

    fn send_source(&mut self, input: &mut Input) {
        let id = self.encoder.base().saturating_add(input.below(self.window_size) as u64);
        if let Some(symbol) = self.encoder.symbol(id) {
            assert_eq!(symbol, source(id, self.symbol_size_max));
            self.decoder.add_source(id, symbol);
        }
    }

    fn send_coded(&mut self, input: &mut Input) {
        let held = self.encoder.count();
        if held == 0 {
            return;
        }
        let skipped = input.below(held);
        let first = self.encoder.base() + skipped as u64;
        let count = 1 + input.below(held - skipped);
        let len = self.field.vector_len_bytes(count);
        let (mut vector, mut expanded) = (vec![0; len], vec![0; len]);
        let given = match input.below(8) {
            0..3 => {
                vector = input.vec(len);
                Coefficients::Vector(&vector)
            }
            3..6 => {
                // Few coefficients, so that rows stay entangled in small groups.
                let bits = self.field.order().ilog2() as usize;
                for _ in 0..2 {
                    let bit = input.below(count) * bits;
                    vector[bit / 8] ^= 1 << (bit % 8);
                }
                Coefficients::Vector(&vector)
            }
            6 => Coefficients::Seed(input.u32()),
            _ => {
                let density = Density::new(input.byte() % 16).unwrap();
                Coefficients::RepairKey(input.byte().into(), density)
            }
        };
        let mut payload = vec![0xEE; self.symbol_size_max];
        let coded = self.encoder.encode(first, count, given, &mut payload);
        match given {
            Coefficients::Vector(vector) => expanded.copy_from_slice(vector),
            Coefficients::Seed(seed) => {
                self.field.expand_seed(seed, count, &mut expanded).unwrap();
            }
            Coefficients::RepairKey(key, density) => {
                let result = self.field.expand_repair_key(key, density, count, &mut expanded);
                if let Err(error) = result {
                    assert_eq!(coded, Err(error));
                    return;
                }
            }
        }
        let coefficients = unpack(self.field, &expanded, count);
        let symbols = (0..count as u64).map(|i| self.encoder.symbol(first + i).unwrap());
        let expected = combine(self.field, &coefficients, symbols);
        assert_eq!(coded, Ok(expected.len()));
        assert_eq!(payload[..expected.len()], expected);
        assert!(payload[expected.len()..].iter().all(|&byte| byte == 0xEE), "written beyond");
        let mut batch = vec![0xEE; 3 * self.symbol_size_max];
        let mut outs: Vec<_> = batch.chunks_mut(self.symbol_size_max).collect();
        let len = self.encoder.encode_batch(first, count, &[given; 3], &mut outs);
        assert_eq!(len, Ok(expected.len()));
        assert!(batch.chunks(self.symbol_size_max).all(|out| out == payload), "a batch differs");
        if !expected.is_empty() {
            self.decoder.add_coded(first, count, given, &coefficients, &expected);
        }
    }

    /// A recoded symbol matches its vector, and the peer receives it.
    fn recode(&mut self, input: &mut Input) {
        let (base, end) = (self.decoder.real.base(), self.decoder.real.end());
        let held = (end - base) as usize;
        if held == 0 {
            return;
        }
        // The whole window, mostly.
        let skipped = if input.below(3) > 0 { 0 } else { input.below(held) };
        let count = if skipped == 0 { held } else { 1 + input.below(held - skipped) };
        let first = base + skipped as u64;
        // Alone, or in a small or large batch.
        let batch = [1, 3, 7][count % 3];
        let size = self.field.vector_len_bytes(count);
        let (mut vectors, mut payloads) =
            (vec![0xEE; batch * size], vec![0xEE; batch * self.symbol_size_max]);
        let (real, rng) = (&self.decoder.real, &mut self.rng);
        let mut outs: Vec<_> = payloads.chunks_mut(self.symbol_size_max).collect();
        let recoded = match &mut outs[..] {
            [out] => real.recode(first, count, rng, &mut vectors, out),
            outs => real.recode_batch(first, count, rng, &mut vectors, outs),
        };
        let recoded = recoded.unwrap();
        let rank = self.decoder.twin.rank_within(first, first + count as u64);
        assert_eq!(recoded.is_some(), rank > 0);
        let Some(recoded) = recoded else {
            return;
        };
        assert_eq!(recoded.count, count);
        for (vector, payload) in vectors.chunks(size).zip(payloads.chunks(self.symbol_size_max)) {
            self.hear_recoded(first, count, vector, &payload[..recoded.len]);
        }
    }

    fn hear_recoded(&mut self, first: u64, count: usize, vector: &[u8], payload: &[u8]) {
        let coefficients = unpack(self.field, vector, count);
        assert!(coefficients.iter().any(|&coefficient| coefficient != 0));
        if !self.is_poisoned {
            let symbols: Vec<_> =
                (first..=u64::MAX).take(count).map(|id| source(id, self.symbol_size_max)).collect();
            let mut expected =
                combine(self.field, &coefficients, symbols.iter().map(Vec::as_slice));
            assert!(expected.len() <= payload.len(), "a symbol cut off");
            expected.resize(payload.len(), 0);
            assert_eq!(payload, expected);
        }
        let given = Coefficients::Vector(vector);
        self.peer.add_coded(first, count, given, &coefficients, payload);
    }

    /// Sizes, ids and bytes that may be invalid.
    fn send_garbage(&mut self, input: &mut Input) {
        let base = self.decoder.real.base();
        let id = match input.below(6) {
            0 => u64::MAX - u64::from(input.byte()),
            1 => base.saturating_sub(input.byte().into()),
            _ => base.saturating_add(input.below(2 * self.window_size) as u64),
        };
        let len = input.below(self.symbol_size_max + 2);
        let payload = input.vec(len);
        self.is_poisoned = true;
        if input.below(3) == 0 {
            self.decoder.add_source(id, &payload);
            return;
        }
        let count = input.below(self.window_size + 2);
        let misfit = usize::from(input.below(4) == 0);
        let vector = input.vec(self.field.vector_len_bytes(count) + misfit);
        let given = Coefficients::Vector(&vector);
        if misfit == 0 {
            let coefficients = unpack(self.field, &vector, count);
            self.decoder.add_coded(id, count, given, &coefficients, &payload);
        } else {
            assert!(self.decoder.real.add_coded(id, count, given, &payload).is_err());
        }
    }

    /// Everything restarts at distant ids.
    fn jump(&mut self, input: &mut Input) {
        let first = FIRST_IDS[input.below(FIRST_IDS.len())].saturating_add(input.byte().into());
        self.encoder.reset(first);
        self.decoder.jump(first);
        self.peer.jump(first);
        self.is_poisoned = false;
    }
}

/// A decoder with its twin.
struct Checked {
    real: WindowDecoder,
    twin: Twin,
    /// Ids that the decoder said it had decoded, and that are in the window.
    told: BTreeSet<u64>,
    /// The expected end.
    end: u64,
}

impl Checked {
    fn new(field: Field, window_size: usize, symbol_size_max: usize, first: u64) -> Self {
        let mut real = WindowDecoder::new(field, window_size, symbol_size_max).unwrap();
        real.reset(first);
        let twin = Twin::new(field, symbol_size_max, first);
        Self { real, twin, told: BTreeSet::new(), end: first }
    }

    fn add_source(&mut self, id: u64, symbol: &[u8]) {
        let outcome = self.real.add_source(id, symbol);
        let fits = (1..=self.real.symbol_size_max()).contains(&symbol.len());
        if id == u64::MAX || !fits {
            assert!(outcome.is_err(), "{outcome:?}");
            return;
        }
        let expected = self.expected(id, 1, &[1], symbol);
        assert_eq!(outcome, Ok(expected));
        if expected == WindowOutcome::Innovative {
            assert_eq!(self.real.symbol(id), Some(symbol), "its own length");
        }
    }

    fn add_coded(
        &mut self,
        first: u64,
        count: usize,
        given: Coefficients<'_>,
        coefficients: &[u8],
        payload: &[u8],
    ) {
        let outcome = self.real.add_coded(first, count, given, payload);
        let fits = (1..=self.real.symbol_size_max()).contains(&payload.len())
            && (1..=self.real.window_size()).contains(&count)
            && first.checked_add(count as u64).is_some();
        if !fits {
            assert!(outcome.is_err(), "{outcome:?}");
            return;
        }
        assert_eq!(outcome, Ok(self.expected(first, count, coefficients, payload)));
    }

    /// The expected value of a symbol; the twin takes it.
    fn expected(
        &mut self,
        first: u64,
        count: usize,
        coefficients: &[u8],
        payload: &[u8],
    ) -> WindowOutcome {
        let (base, end) = (self.real.base(), first + count as u64);
        let reach = base.saturating_add(self.real.window_size() as u64);
        let is_stale = |(id, &coefficient): (u64, &u8)| id < base && coefficient != 0;
        if end <= base {
            return WindowOutcome::Stale;
        }
        if end > reach {
            return WindowOutcome::Ahead;
        }
        if (first..=u64::MAX).zip(coefficients).any(is_stale) {
            return WindowOutcome::Stale;
        }
        self.end = self.end.max(end);
        if self.twin.add(first, coefficients, payload) {
            WindowOutcome::Innovative
        } else {
            WindowOutcome::Dependent
        }
    }

    fn advance_to(&mut self, id: u64) {
        let base = self.real.base();
        let decoded = (base..id.min(self.end)).filter(|&id| self.real.is_decoded(id)).count();
        let missed = self.real.advance_to(id);
        assert_eq!(missed, id.saturating_sub(base) - decoded as u64);
        self.twin.advance_to(id);
        self.end = self.end.max(id);
        self.told.retain(|&told| told >= id);
        assert_eq!(self.real.base(), id.max(base));
    }

    fn jump(&mut self, first: u64) {
        self.real.reset(first);
        self.twin = Twin::new(self.real.field(), self.real.symbol_size_max(), first);
        self.told.clear();
        self.end = first;
    }

    /// Compares every query with the twin.
    fn check(&mut self, is_polled: bool) {
        let symbols = self.twin.symbols();
        let determined: BTreeSet<u64> = symbols.iter().map(|&(id, _)| id).collect();
        let real = &mut self.real;
        let mut before = None;
        while let Some(id) = is_polled.then(|| real.poll_decoded()).flatten() {
            assert!(before < Some(id), "told in ascending order");
            before = Some(id);
            assert!(self.told.insert(id), "{id} was told twice");
        }
        assert!(if is_polled { self.told == determined } else { self.told.is_subset(&determined) });
        assert_eq!(real.end(), self.end);
        assert_eq!(real.rank(), self.twin.rank());
        assert_eq!(real.decoded_count(), symbols.len());
        for (id, expected) in &symbols {
            let symbol = real.symbol(*id).expect("determined, but not decoded");
            assert_eq!(symbol, &expected[..symbol.len()], "symbol {id}");
            assert!(expected[symbol.len()..].iter().all(|&byte| byte == 0), "symbol {id} cut off");
        }
        let (base, end) = (real.base(), real.end());
        let known = (end - base) as usize;
        assert_eq!(real.missing_count(), known - symbols.len());
        assert_eq!(real.deficit(), known - self.twin.rank());
        let missing: Vec<u64> = (base..end).filter(|id| !determined.contains(id)).collect();
        assert_eq!(real.in_order_end(), missing.first().copied().unwrap_or(end));
        let seen = self.twin.seen();
        assert!((base..end).filter(|&id| real.is_seen(id)).eq(seen.iter().copied()));
        assert_eq!(real.seen_end(), (base..end).find(|id| !seen.contains(id)).unwrap_or(end));
        let mut bitmap = vec![0xFF; known / 8 + 2];
        real.missing_bitmap(&mut bitmap);
        let bits = (0..bitmap.len() * 8).filter(|&i| bitmap[i / 8] >> (i % 8) & 1 == 1);
        assert!(bits.map(|i| base + i as u64).eq(missing));
        assert_eq!(real.symbol(end), None);
        assert_eq!(real.symbol(base.wrapping_sub(1)), None);
    }
}
