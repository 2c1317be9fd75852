//! Speed of the coders, compared with the limit set by the registers alone, in one run:
//!
//!     taskset -c 1 cargo run --release -p corridor-codec --example speed [gf256] [gf16] [gf2] \
//!         [g=COUNT] [run=NAME] [BYTES]
//!
//! Payload GB/s: the best of several passes, and their median. `limit` is a loop of GF(2^8)
//! multiply-accumulates on registers, in 10^9 bytes per second: a batch cannot encode faster than
//! `limit / g`.
#![allow(unsafe_code, clippy::disallowed_methods)]

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Instant;

use corridor_codec::{Backend, BlockDecoder, BlockEncoder, Field, Recoder};
use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::ChaCha8Rng;

const PASSES: usize = 101;

/// Best and median GB/s of `run`, which processes `bytes`.
fn rate(bytes: usize, mut run: impl FnMut()) -> (f64, f64) {
    run();
    let start = Instant::now();
    run();
    let rounds = (3e-4 / start.elapsed().as_secs_f64().max(1e-9)).clamp(1., 1e6) as usize;
    let mut rates: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            (0..rounds).for_each(|_| run());
            (bytes * rounds) as f64 / start.elapsed().as_secs_f64() / 1e9
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    (rates[PASSES - 1], rates[PASSES / 2])
}

#[cfg(target_arch = "x86_64")]
fn register_limit() -> f64 {
    use std::arch::x86_64::*;
    #[target_feature(enable = "avx512f,gfni")]
    unsafe fn run(rounds: usize) -> i32 {
        let mut sums = [_mm512_setzero_si512(); 16];
        let mut x = [_mm512_set1_epi64(0x1234_5678); 4];
        let mut m = [_mm512_set1_epi64(0x0102_0408_1020_4081); 4];
        for m in &mut m {
            // SAFETY: it does nothing, but the compiler does not know that.
            unsafe { std::arch::asm!("/* {0} */", inout(zmm_reg) * m) };
        }
        for _ in 0..rounds {
            for x in &mut x {
                // SAFETY: it does nothing, but the compiler does not know that.
                unsafe { std::arch::asm!("/* {0} */", inout(zmm_reg) * x) };
            }
            for i in 0..16 {
                let product = _mm512_gf2p8affine_epi64_epi8::<0>(x[i % 4], m[i / 4]);
                sums[i] = _mm512_xor_si512(sums[i], product);
            }
        }
        let sum = sums.into_iter().fold(_mm512_setzero_si512(), |a, b| _mm512_xor_si512(a, b));
        _mm512_reduce_add_epi32(sum)
    }
    if Backend::named("gfni512").is_none() {
        return f64::NAN;
    }
    // SAFETY: the machine has the instructions.
    rate(16 * 64 * 1000, || unsafe {
        black_box(run(black_box(1000)));
    })
    .0
}

#[cfg(not(target_arch = "x86_64"))]
fn register_limit() -> f64 {
    f64::NAN
}

/// Buffers for payloads, each aligned to a cache line.
struct Room(Vec<u8>);

impl Room {
    fn new(count: usize, size: usize) -> Self {
        Self(vec![0; (count * size.div_ceil(64) + 1) * 64])
    }

    fn payloads(&mut self, size: usize) -> Vec<&mut [u8]> {
        let start = self.0.as_ptr().align_offset(64).min(64);
        let parts = self.0[start..].chunks_exact_mut(size.next_multiple_of(64));
        parts.map(|part| &mut part[..size]).collect()
    }
}

/// Coefficients drawn in advance and replayed: drawing them is not measured.
struct Replay {
    bytes: Vec<u8>,
    next: usize,
}

impl Replay {
    fn new(rng: &mut ChaCha8Rng, len: usize) -> Self {
        let mut bytes = vec![0; len];
        rng.fill_bytes(&mut bytes);
        Self { bytes, next: 0 }
    }
}

impl TryRng for Replay {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes).map(|()| u32::from_le_bytes(bytes))
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes).map(|()| u64::from_le_bytes(bytes))
    }
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        if self.next + out.len() > self.bytes.len() {
            self.next = 0;
        }
        out.copy_from_slice(&self.bytes[self.next..][..out.len()]);
        self.next += out.len();
        Ok(())
    }
}

struct Bench {
    field: Field,
    count: usize,
    size: usize,
    encoder: BlockEncoder,
    rng: ChaCha8Rng,
}

impl Bench {
    fn new(field: Field, count: usize, size: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut encoder = BlockEncoder::new(field, count, size).unwrap();
        let mut symbol = vec![0; size];
        for _ in 0..count {
            rng.fill_bytes(&mut symbol);
            encoder.push(&symbol).unwrap();
        }
        Self { field, count, size, encoder, rng }
    }

    fn vectors(&mut self, count: usize) -> Vec<u8> {
        let size = self.field.vector_len_bytes(self.count);
        let mut vectors = vec![0; size * count];
        for vector in vectors.chunks_mut(size) {
            self.field.draw_vector(self.count, &mut self.rng, vector).unwrap();
        }
        vectors
    }

    fn coded(&mut self, count: usize) -> (Vec<u8>, Vec<u8>) {
        let vectors = self.vectors(count);
        let mut payloads = vec![0; count * self.size];
        let mut outs: Vec<_> = payloads.chunks_mut(self.size).collect();
        self.encoder.encode_batch(&vectors, self.count, &mut outs).unwrap();
        (vectors, payloads)
    }

    fn encode_one(&mut self) -> (f64, f64) {
        let vectors = self.vectors(16);
        let vectors: Vec<_> = vectors.chunks(self.field.vector_len_bytes(self.count)).collect();
        let mut room = Room::new(1, self.size);
        let out = &mut *room.payloads(self.size)[0];
        rate(16 * self.size, || {
            for vector in &vectors {
                self.encoder.encode(vector, self.count, out).unwrap();
                black_box(&mut *out);
            }
        })
    }

    fn encode_batch(&mut self, batch: usize) -> (f64, f64) {
        let vectors = self.vectors(batch);
        let mut room = Room::new(batch, self.size);
        let mut outs = room.payloads(self.size);
        outs.truncate(batch);
        rate(batch * self.size, || {
            self.encoder.encode_batch(&vectors, self.count, &mut outs).unwrap();
            black_box(&mut outs);
        })
    }

    fn recoder(&mut self) -> Recoder {
        let mut recoder = Recoder::new(self.field, self.count, self.size).unwrap();
        let (vectors, payloads) = self.coded(self.count + 12);
        let vectors = vectors.chunks(self.field.vector_len_bytes(self.count));
        for (vector, payload) in vectors.zip(payloads.chunks(self.size)) {
            recoder.add_coded(vector, self.count, payload).unwrap();
        }
        assert_eq!(recoder.rank(), self.count);
        recoder
    }

    fn recode_one(&mut self) -> (f64, f64) {
        let recoder = self.recoder();
        let mut vector = vec![0; self.count];
        let mut room = Room::new(1, self.size);
        let out = &mut *room.payloads(self.size)[0];
        let mut rng = Replay::new(&mut self.rng, 32 * self.count);
        rate(self.size, || {
            black_box(recoder.recode(&mut rng, &mut vector, out).unwrap());
        })
    }

    fn recode_batch(&mut self, batch: usize) -> (f64, f64) {
        let recoder = self.recoder();
        let mut vectors = vec![0; batch * self.count];
        let mut room = Room::new(batch, self.size);
        let mut outs = room.payloads(self.size);
        outs.truncate(batch);
        let mut rng = Replay::new(&mut self.rng, 32 * self.count);
        rate(batch * self.size, || {
            black_box(recoder.recode_batch(&mut rng, &mut vectors, &mut outs).unwrap());
        })
    }

    fn decode_dense(&mut self) -> (f64, f64) {
        let (vectors, payloads) = self.coded(self.count + 12);
        let size = self.field.vector_len_bytes(self.count);
        let mut decoder = BlockDecoder::new(self.field, self.count, self.size).unwrap();
        rate(self.count * self.size, || {
            decoder.reset();
            let mut arrivals = vectors.chunks(size).zip(payloads.chunks(self.size));
            while !decoder.is_complete() {
                let (vector, payload) = arrivals.next().unwrap();
                decoder.add_coded(vector, self.count, payload).unwrap();
            }
            black_box(decoder.symbol(0));
        })
    }

    /// With a tenth of the source symbols lost: encoding of the repair symbols, and decoding, in
    /// payload.
    fn decode_systematic(&mut self) -> (f64, f64) {
        let lost = self.count.div_ceil(10);
        let (vectors, payloads) = self.coded(lost + 12);
        let size = self.field.vector_len_bytes(self.count);
        let mut decoder = BlockDecoder::new(self.field, self.count, self.size).unwrap();
        rate(self.count * self.size, || {
            decoder.reset();
            for index in (0..self.count).filter(|index| index % 10 != 5) {
                decoder.add_source(index, self.encoder.symbol(index).unwrap()).unwrap();
            }
            let mut arrivals = vectors.chunks(size).zip(payloads.chunks(self.size));
            while !decoder.is_complete() {
                let (vector, payload) = arrivals.next().unwrap();
                decoder.add_coded(vector, self.count, payload).unwrap();
            }
            black_box(decoder.symbol(0));
        })
    }
}

type Run = fn(&mut Bench) -> (f64, f64);

/// The measurements, by name.
const RUNS: &[(&str, Run)] = &[
    ("encode", Bench::encode_one),
    ("batch4", |bench| bench.encode_batch(4)),
    ("batch16", |bench| bench.encode_batch(16)),
    ("recode", Bench::recode_one),
    ("recode16", |bench| bench.recode_batch(16)),
    ("decode", Bench::decode_dense),
    ("systematic", Bench::decode_systematic),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let limit = register_limit();
    println!("backend {}, limit {limit:.1} GB/s", Backend::detected().name());
    let size = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(1450);
    for (name, field) in [("gf256", Field::Gf256), ("gf16", Field::Gf16), ("gf2", Field::Gf2)] {
        let named = arguments.iter().any(|word| word.starts_with("gf"));
        if named && !arguments.iter().any(|word| word == name) {
            continue;
        }
        println!("{name}, {size} bytes: best (median) GB/s; [batch times g / limit]");
        let only_run = arguments.iter().find_map(|word| word.strip_prefix("run="));
        let only = arguments.iter().find_map(|word| word.strip_prefix("g=")?.parse().ok());
        for count in [16, 32, 50, 64, 100, 150, 256, 1024] {
            if only.is_some_and(|only: usize| only != count) {
                continue;
            }
            let mut bench = Bench::new(field, count, size);
            print!("g {count:4}:");
            for (name, run) in RUNS {
                if only_run.is_some_and(|only| only != *name) {
                    continue;
                }
                let (best, median) = run(&mut bench);
                print!(" {name} {best:.3} ({median:.3})");
                if *name == "batch16" {
                    print!(" [{:.2}]", best * count as f64 / limit);
                }
            }
            println!();
        }
    }
}
