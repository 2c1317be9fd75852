//! Upper limits of the core: loops with nothing but the inner step of coding.
//!
//! All rates are bytes of the multiplied or added operand per second.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::machine::time_undisturbed;
use crate::measure::{Contestant, Work, median};

/// Size of one buffer of the loops in L1, which holds five of them, and in L2, bytes.
const L1_BYTES: usize = 6 << 10;
const L2_BYTES: usize = 80 << 10;
/// Size of buffers that only fit in L3, bytes.
const L3_BYTES: usize = 4 << 20;

/// A limit loop that moves less than this per core cycle was disturbed, or does not suit the core.
pub const BYTES_PER_CYCLE_MIN: f64 = 56.0;

/// Rates of the limit loops; absent if the instructions are missing.
#[derive(Clone, Debug, Serialize)]
pub struct Limits {
    /// Core cycles per second, by a loop of dependent additions.
    pub clock_hz: Option<f64>,
    /// Multiply-accumulate from registers to registers.
    pub register_mul_add: Option<f64>,
    /// Instruction set of that loop.
    pub register_loop: &'static str,
    /// The same in bytes per core cycle.
    pub register_bytes_per_cycle: Option<f64>,
    /// Multiply-accumulate with AVX2 of operands in registers, whose halves must be split.
    pub register_mul_add_avx2: Option<f64>,
    /// Only reading, in L1, L2 and L3.
    pub read_l1: f64,
    pub read_l2: f64,
    pub read_l3: f64,
    /// `y ^= x` in L1.
    pub xor_l1: f64,
    /// `y ^= x` in L2.
    pub xor_l2: f64,
    /// `y += c * x` in L1.
    pub mul_add_l1: Option<f64>,
    /// `y += c * x` in L2.
    pub mul_add_l2: Option<f64>,
    /// Four sources into one destination, in L1.
    pub mul_add_4_l1: Option<f64>,
    /// Four sources into one destination, in L2.
    pub mul_add_4_l2: Option<f64>,
}

impl Limits {
    /// Measures all of them, the loops taking turns; medians of `repeats`.
    pub fn measure(repeats: usize) -> Self {
        let mut loops = MemoryLoops::new();
        let mut clock = Vec::new();
        let mut register = Vec::new();
        let mut avx2 = Vec::new();
        let mut memory: [Vec<f64>; 9] = Default::default();
        for _ in 0..repeats {
            clock.extend(crate::machine::clock_hz());
            register.extend(register_mul_add());
            avx2.extend(register_mul_add_avx2());
            for (bytes, [xor, one, four]) in [(L1_BYTES, [0, 1, 2]), (L2_BYTES, [3, 4, 5])] {
                memory[xor].push(loops.xor(bytes));
                memory[one].extend(loops.mul_add(bytes, 1));
                memory[four].extend(loops.mul_add(bytes, 4));
            }
            for (at, bytes) in [(6, 4 * L1_BYTES), (7, 4 * L2_BYTES), (8, L3_BYTES)] {
                memory[at].push(loops.read(bytes));
            }
        }
        let [
            xor_l1,
            mul_add_l1,
            mul_add_4_l1,
            xor_l2,
            mul_add_l2,
            mul_add_4_l2,
            read_l1,
            read_l2,
            read_l3,
        ] = memory.each_mut().map(|rates| median(rates));
        let clock_hz = median(&mut clock);
        let register = median(&mut register);
        Limits {
            clock_hz,
            register_mul_add: register,
            register_loop: register_loop(),
            register_bytes_per_cycle: register.zip(clock_hz).map(|(rate, clock)| rate / clock),
            register_mul_add_avx2: median(&mut avx2),
            read_l1: read_l1.unwrap_or(0.0),
            read_l2: read_l2.unwrap_or(0.0),
            read_l3: read_l3.unwrap_or(0.0),
            xor_l1: xor_l1.unwrap_or(0.0),
            xor_l2: xor_l2.unwrap_or(0.0),
            mul_add_l1,
            mul_add_l2,
            mul_add_4_l1,
            mul_add_4_l2,
        }
    }

    /// Whether the register loop was fast enough to serve as a limit.
    pub fn valid(&self) -> bool {
        self.register_bytes_per_cycle.is_some_and(|bytes| bytes >= BYTES_PER_CYCLE_MIN)
    }
}

/// Bytes per second of `operation`, which processes `bytes`, over about a third of a millisecond.
fn rate(bytes: usize, mut operation: impl FnMut()) -> f64 {
    let rounds = (20_000_000 / bytes).max(1);
    let needed: Duration = time_undisturbed(|| {
        operation();
        let start = Instant::now();
        for _ in 0..rounds {
            operation();
        }
        start.elapsed()
    });
    (rounds * bytes) as f64 / needed.as_secs_f64()
}

/// Reads all of these lines and does next to nothing with them.
fn read(lines: &[Line]) {
    let lines = black_box(lines);
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the instruction set has just been detected.
        #[expect(unsafe_code, reason = "target features")]
        unsafe {
            x86::read_512(lines);
        }
        return;
    }
    let mut sum = [0_u8; 64];
    for line in lines {
        sum.iter_mut().zip(&line.0).for_each(|(sum, byte)| *sum ^= byte);
    }
    black_box(sum);
}

/// A contestant that reads the sources of one coded symbol once. An encoder of single symbols must
/// do so, and cannot be faster.
pub struct ReadSources {
    lines: Vec<Line>,
}

impl ReadSources {
    /// The name in results.
    pub const LIBRARY: &str = "limit";

    /// For a block, with symbols padded to cache lines.
    pub fn contestant(block_size: usize, symbol_size: usize) -> Contestant {
        Contestant {
            library: Self::LIBRARY,
            backend: "read sources once".to_owned(),
            field: "",
            payload_bytes: symbol_size,
            work: Box::new(Self {
                lines: vec![Line([3; 64]); block_size * symbol_size.div_ceil(64)],
            }),
        }
    }
}

impl Work for ReadSources {
    fn run(&mut self) {
        read(&self.lines);
    }
    fn verify(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Buffers of the loops that work from memory, aligned to cache lines.
struct MemoryLoops {
    sources: Vec<Line>,
    destination: Vec<Line>,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u8; 64]);

impl MemoryLoops {
    fn new() -> Self {
        let lines = L2_BYTES / 64;
        MemoryLoops {
            sources: vec![Line([0x5A; 64]); L3_BYTES / 64],
            destination: vec![Line([1; 64]); lines],
        }
    }

    fn read(&self, bytes: usize) -> f64 {
        rate(bytes, || read(&self.sources[..bytes / 64]))
    }

    fn xor(&mut self, bytes: usize) -> f64 {
        let lines = bytes / 64;
        rate(bytes, || {
            let destination = black_box(&mut self.destination[..lines]);
            let source = black_box(&self.sources[..lines]);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx512f") {
                // SAFETY: the instruction set has just been detected.
                #[expect(unsafe_code, reason = "target features")]
                unsafe {
                    x86::xor_512(destination, source);
                }
                return;
            }
            for (to, from) in destination.iter_mut().zip(source) {
                to.0.iter_mut().zip(&from.0).for_each(|(to, from)| *to ^= from);
            }
        })
    }

    fn mul_add(&mut self, bytes: usize, sources: usize) -> Option<f64> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni") {
            let lines = bytes / 64;
            return Some(rate(bytes * sources, || {
                let destination = black_box(&mut self.destination[..lines]);
                let mut from = self.sources.chunks_exact(lines).map(black_box);
                // SAFETY: the instruction sets have just been detected.
                #[expect(unsafe_code, reason = "target features")]
                unsafe {
                    if let [Some(a), Some(b), Some(c), Some(d)] = [(); 4].map(|()| from.next()) {
                        if sources == 1 {
                            x86::mul_add_1_512(destination, a);
                        } else {
                            x86::mul_add_4_512(destination, a, b, c, d);
                        }
                    }
                }
            }));
        }
        let _ = (bytes, sources);
        None
    }
}

/// Bytes per second of multiply-accumulate over GF(2^8) that reads and writes only registers, with
/// the widest instructions available.
pub fn register_mul_add() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    {
        let (step, bytes) =
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni") {
                (x86::register_gfni_512 as fn(u64), x86::GFNI_512_BYTES_PER_ROUND)
            } else if is_x86_feature_detected!("avx2") {
                (x86::register_avx2 as fn(u64), x86::AVX2_BYTES_PER_ROUND)
            } else {
                return None;
            };
        Some(rounds_rate(step, bytes))
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// The same for one output with AVX2, if available: the limit for kernels based on byte shuffles
/// without a second output to share the splitting with.
fn register_mul_add_avx2() -> Option<f64> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        return Some(rounds_rate(x86::register_avx2_split, x86::AVX2_BYTES_PER_ROUND));
    }
    None
}

#[cfg(target_arch = "x86_64")]
fn rounds_rate(step: fn(u64), bytes_per_round: u64) -> f64 {
    const ROUNDS: u64 = 20_000;
    let needed = time_undisturbed(|| {
        let start = Instant::now();
        step(ROUNDS);
        start.elapsed()
    });
    (ROUNDS * bytes_per_round) as f64 / needed.as_secs_f64()
}

fn register_loop() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("gfni") {
            return "8 vgf2p8affineqb and 4 vpternlogq on zmm";
        }
        if is_x86_feature_detected!("avx2") {
            return "8 vpshufb and 8 vpxor on ymm";
        }
    }
    "none"
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "instructions that the compiler does not find, kept from its sight")]
mod x86 {
    use std::arch::asm;
    use std::arch::x86_64::{
        __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_load_si512, _mm512_set1_epi64,
        _mm512_store_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };
    use std::hint::black_box;

    use super::Line;

    pub const GFNI_512_BYTES_PER_ROUND: u64 = 8 * 64;
    pub const AVX2_BYTES_PER_ROUND: u64 = 4 * 32;

    /// Multiplying all bytes by a constant is an affine map by such a matrix.
    const MATRIX: i64 = 0x0102_0408_1020_4080;

    /// Eight products per round, added two at a time.
    ///
    /// Only call it if AVX-512 and GFNI are available.
    pub fn register_gfni_512(rounds: u64) {
        // SAFETY: registers only, all that change are named, and the caller has detected the
        // instructions.
        unsafe {
            asm!(
                "2:",
                "vgf2p8affineqb zmm16, zmm30, zmm31, 0",
                "vgf2p8affineqb zmm17, zmm30, zmm31, 0",
                "vgf2p8affineqb zmm18, zmm30, zmm31, 0",
                "vgf2p8affineqb zmm19, zmm30, zmm31, 0",
                "vpternlogq zmm0, zmm16, zmm17, 0x96",
                "vpternlogq zmm1, zmm18, zmm19, 0x96",
                "vgf2p8affineqb zmm20, zmm30, zmm31, 0",
                "vgf2p8affineqb zmm21, zmm30, zmm31, 0",
                "vgf2p8affineqb zmm22, zmm30, zmm31, 0",
                "vgf2p8affineqb zmm23, zmm30, zmm31, 0",
                "vpternlogq zmm2, zmm20, zmm21, 0x96",
                "vpternlogq zmm3, zmm22, zmm23, 0x96",
                "dec {rounds}",
                "jnz 2b",
                rounds = inout(reg) rounds => _,
                out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
                options(nomem, nostack),
            );
        }
    }

    /// Four products per round, each of two table look-ups; the nibbles are already split.
    ///
    /// Only call it if AVX2 is available.
    pub fn register_avx2(rounds: u64) {
        // SAFETY: as above.
        unsafe {
            asm!(
                "2:",
                "vpshufb ymm8, ymm12, ymm14",
                "vpshufb ymm9, ymm13, ymm15",
                "vpxor ymm0, ymm0, ymm8",
                "vpxor ymm1, ymm1, ymm9",
                "vpshufb ymm10, ymm12, ymm14",
                "vpshufb ymm11, ymm13, ymm15",
                "vpxor ymm2, ymm2, ymm10",
                "vpxor ymm3, ymm3, ymm11",
                "vpshufb ymm8, ymm12, ymm14",
                "vpshufb ymm9, ymm13, ymm15",
                "vpxor ymm4, ymm4, ymm8",
                "vpxor ymm5, ymm5, ymm9",
                "vpshufb ymm10, ymm12, ymm14",
                "vpshufb ymm11, ymm13, ymm15",
                "vpxor ymm6, ymm6, ymm10",
                "vpxor ymm7, ymm7, ymm11",
                "dec {rounds}",
                "jnz 2b",
                rounds = inout(reg) rounds => _,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                options(nomem, nostack),
            );
        }
    }

    /// Four products per round, including splitting the halves of bytes.
    ///
    /// Only call it if AVX2 is available.
    pub fn register_avx2_split(rounds: u64) {
        // SAFETY: as above.
        unsafe {
            asm!(
                "2:",
                "vpsrlw ymm8, ymm14, 4",
                "vpand ymm9, ymm14, ymm15",
                "vpand ymm8, ymm8, ymm15",
                "vpshufb ymm9, ymm12, ymm9",
                "vpshufb ymm8, ymm13, ymm8",
                "vpxor ymm0, ymm0, ymm9",
                "vpxor ymm1, ymm1, ymm8",
                "vpsrlw ymm10, ymm14, 4",
                "vpand ymm11, ymm14, ymm15",
                "vpand ymm10, ymm10, ymm15",
                "vpshufb ymm11, ymm12, ymm11",
                "vpshufb ymm10, ymm13, ymm10",
                "vpxor ymm2, ymm2, ymm11",
                "vpxor ymm3, ymm3, ymm10",
                "vpsrlw ymm8, ymm14, 4",
                "vpand ymm9, ymm14, ymm15",
                "vpand ymm8, ymm8, ymm15",
                "vpshufb ymm9, ymm12, ymm9",
                "vpshufb ymm8, ymm13, ymm8",
                "vpxor ymm4, ymm4, ymm9",
                "vpxor ymm5, ymm5, ymm8",
                "vpsrlw ymm10, ymm14, 4",
                "vpand ymm11, ymm14, ymm15",
                "vpand ymm10, ymm10, ymm15",
                "vpshufb ymm11, ymm12, ymm11",
                "vpshufb ymm10, ymm13, ymm10",
                "vpxor ymm6, ymm6, ymm11",
                "vpxor ymm7, ymm7, ymm10",
                "dec {rounds}",
                "jnz 2b",
                rounds = inout(reg) rounds => _,
                out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
                out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
                out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
                options(nomem, nostack),
            );
        }
    }

    #[target_feature(enable = "avx512f")]
    fn load(line: &Line) -> __m512i {
        // SAFETY: a line is 64 bytes, aligned to 64.
        unsafe { _mm512_load_si512((&raw const *line).cast()) }
    }

    #[target_feature(enable = "avx512f")]
    fn store(line: &mut Line, value: __m512i) {
        // SAFETY: as above.
        unsafe { _mm512_store_si512((&raw mut *line).cast(), value) }
    }

    /// In assembly: the compiler's order of the loads makes a difference of a third in L2.
    #[target_feature(enable = "avx512f")]
    pub fn read_512(lines: &[Line]) {
        let (groups, rest) = lines.as_chunks::<8>();
        for line in rest {
            black_box(load(line));
        }
        if groups.is_empty() {
            return;
        }
        // SAFETY: reads the groups only, of which there is one at least; all registers that
        // change are named.
        unsafe {
            asm!(
                "2:",
                "vpxorq zmm0, zmm0, [{at}]",
                "vpxorq zmm1, zmm1, [{at} + 64]",
                "vpxorq zmm2, zmm2, [{at} + 128]",
                "vpxorq zmm3, zmm3, [{at} + 192]",
                "vpxorq zmm4, zmm4, [{at} + 256]",
                "vpxorq zmm5, zmm5, [{at} + 320]",
                "vpxorq zmm6, zmm6, [{at} + 384]",
                "vpxorq zmm7, zmm7, [{at} + 448]",
                "add {at}, 512",
                "dec {groups}",
                "jnz 2b",
                at = inout(reg) groups.as_ptr() => _,
                groups = inout(reg) groups.len() => _,
                out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
                out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
                options(readonly, nostack),
            );
        }
    }

    #[target_feature(enable = "avx512f")]
    pub fn xor_512(destination: &mut [Line], source: &[Line]) {
        for (to, from) in destination.as_chunks_mut::<4>().0.iter_mut().zip(source.as_chunks().0) {
            let from: &[Line; 4] = from;
            for (to, from) in to.iter_mut().zip(from) {
                store(to, _mm512_xor_si512(load(to), load(from)));
            }
        }
    }

    #[target_feature(enable = "avx512f,gfni")]
    pub fn mul_add_1_512(destination: &mut [Line], source: &[Line]) {
        let matrix = _mm512_set1_epi64(MATRIX);
        for (to, from) in destination.as_chunks_mut::<4>().0.iter_mut().zip(source.as_chunks().0) {
            let from: &[Line; 4] = from;
            for (to, from) in to.iter_mut().zip(from) {
                let product = _mm512_gf2p8affine_epi64_epi8::<0>(load(from), matrix);
                store(to, _mm512_xor_si512(load(to), product));
            }
        }
    }

    #[target_feature(enable = "avx512f,gfni")]
    pub fn mul_add_4_512(destination: &mut [Line], a: &[Line], b: &[Line], c: &[Line], d: &[Line]) {
        let matrices = [1, 2, 3, 4].map(|k| _mm512_set1_epi64(MATRIX.rotate_left(k)));
        let sources = a.iter().zip(b).zip(c).zip(d);
        for (to, (((a, b), c), d)) in destination.iter_mut().zip(sources) {
            let [a, b, c, d] = [(a, 0), (b, 1), (c, 2), (d, 3)]
                .map(|(line, k)| _mm512_gf2p8affine_epi64_epi8::<0>(load(line), matrices[k]));
            let sum = _mm512_ternarylogic_epi64::<0x96>(load(to), a, b);
            store(to, _mm512_ternarylogic_epi64::<0x96>(sum, c, d));
        }
    }
}
