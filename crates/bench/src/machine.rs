//! The machine of a run: one core of it, its name, its clock.

use std::fs;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// Pins this thread to one core: the given one, else the last that it may use. Returns which.
///
/// # Errors
/// The kernel's error, for a missing core.
pub fn pin(core: Option<usize>) -> nix::Result<usize> {
    let this_thread = Pid::from_raw(0);
    let allowed = sched_getaffinity(this_thread)?;
    let last = (0..CpuSet::count()).rev().find(|&core| allowed.is_set(core) == Ok(true));
    let core = core.or(last).unwrap_or(0);
    let mut only = CpuSet::new();
    only.set(core)?;
    sched_setaffinity(this_thread, &only)?;
    Ok(core)
}

/// The kernel's name of the processor, with family and model: a hypervisor may hide the name.
pub fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
        line.and_then(|line| line.split(':').nth(1)).map_or("?", str::trim)
    };
    format!("{}, family {} model {}", field("model name"), field("cpu family"), field("model"))
}

/// The relevant instruction sets that are available.
pub fn cpu_features() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        [
            ("ssse3", is_x86_feature_detected!("ssse3")),
            ("avx2", is_x86_feature_detected!("avx2")),
            ("avx512bw", is_x86_feature_detected!("avx512bw")),
            ("gfni", is_x86_feature_detected!("gfni")),
        ]
        .into_iter()
        .filter_map(|(name, there)| there.then_some(name))
        .collect()
    }
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// Processor time of this process so far.
pub fn cpu_time() -> Duration {
    // Every Linux has this clock: the call fails only for a missing clock.
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Measures how long `operation` takes without another thread taking the core; after three
/// attempts, how long it took regardless.
pub fn time_undisturbed(mut operation: impl FnMut() -> Duration) -> Duration {
    let switches = || {
        getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
    };
    for _ in 0..2 {
        let before = switches();
        let needed = operation();
        if switches() == before {
            return needed;
        }
    }
    operation()
}

/// Core cycles per second while adding: each addition depends on the previous one, and takes a
/// cycle on every processor of the last decades. Hardware counters are mostly unavailable in
/// virtual machines.
#[cfg(target_arch = "x86_64")]
pub fn clock_hz() -> Option<f64> {
    const ROUNDS: u64 = 50_000;
    const ADDITIONS_PER_ROUND: u64 = 10;
    let needed = time_undisturbed(|| {
        let start = Instant::now();
        // SAFETY: registers only, and all that change are named.
        #[expect(unsafe_code, reason = "a compiler would work out the sum")]
        unsafe {
            std::arch::asm!(
                "2:",
                "add {sum}, {step}", "add {sum}, {step}", "add {sum}, {step}", "add {sum}, {step}",
                "add {sum}, {step}", "add {sum}, {step}", "add {sum}, {step}", "add {sum}, {step}",
                "add {sum}, {step}", "add {sum}, {step}",
                "dec {rounds}",
                "jnz 2b",
                sum = inout(reg) 1_u64 => _,
                step = in(reg) 3_u64,
                rounds = inout(reg) ROUNDS => _,
                options(nomem, nostack),
            );
        }
        start.elapsed()
    });
    Some((ROUNDS * ADDITIONS_PER_ROUND) as f64 / needed.as_secs_f64())
}

/// Unknown on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn clock_hz() -> Option<f64> {
    None
}
