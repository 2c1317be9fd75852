//! The rate controller on paths drawn at random, and on those that once were too much for it.

use core::time::Duration;

use corridor_base::StreamKey;
use corridor_base::rand::Rng;

use crate::link::path_control::policy_tests::{Path, Run};

/// Of the paths; printed where a test fails.
const SEED: u64 = 2026;
/// Seconds before what is measured, and of that.
const SETTLES_S: u64 = 10;
const MEASURED_S: u64 = 20;

/// What was measured on a path: the share of it that was used, the mean queue, and the share of the
/// frames that found the buffer full.
#[derive(Debug)]
struct Measured {
    share: f64,
    queue: Duration,
    dropped: f64,
}

fn measure(path: &Path) -> Measured {
    let mut run = Run::new(path);
    run.until(SETTLES_S);
    let seen = run.until(SETTLES_S + MEASURED_S);
    Measured {
        share: seen.ours / (MEASURED_S as f64 * path.frames_per_s),
        queue: Duration::from_secs_f64(seen.queue() / path.frames_per_s),
        dropped: seen.dropped / (seen.ours + seen.dropped),
    }
}

/// A path: 1 to 100 Mbit/s, 2 to 300 ms there and back, a buffer of 2 frames to 2 bandwidth-delay
/// products, all log-uniform; jitter in order both ways, a third of the paths none, exponential
/// with a mean of up to 15 ms, or uniform up to that; losses uniform up to 40 %, a quarter none.
fn draw(index: u64) -> Path {
    let mut stream =
        StreamKey { seed: SEED, replication: 0, entity: index, purpose: "path" }.stream();
    let mut uniform = || f64::from(stream.next_u32()) / 2f64.powi(32);
    let mbit_per_s = 100f64.powf(uniform());
    let round_trip_ms = 2.0 * 150f64.powf(uniform());
    let path = Path::new(mbit_per_s, 0);
    let delay = Duration::from_secs_f64(round_trip_ms / 2e3);
    let most = (2.0 * path.frames_per_s * 2.0 * delay.as_secs_f64()).max(4.0);
    let queue_frames = 2.0 * (most / 2.0).powf(uniform());
    let span = Duration::from_millis(15).mul_f64(uniform());
    let (jitter, late_by) = match (3.0 * uniform()) as u32 {
        0 => (Duration::ZERO, Duration::ZERO),
        1 => (span, Duration::ZERO),
        _ => (Duration::ZERO, span),
    };
    let loss_ratio = (uniform() - 0.25).max(0.0) * 0.4 / 0.75;
    // More than the path takes by far, and still an end to what an overrun costs.
    let wanted_per_s = 4.0 * path.frames_per_s;
    Path { delay, queue_frames, jitter, late_by, loss_ratio, wanted_per_s, ..path }
}

fn describe(path: &Path) -> String {
    let mbit_per_s = path.frames_per_s * 8.0 * 1_500.0 / 1e6;
    let Path { delay, queue_frames, jitter, late_by, loss_ratio, .. } = path;
    format!(
        "{mbit_per_s:.1} Mbit/s, {:.1} ms, buffer {queue_frames:.0}, jitter {:.1} exponential {:.1} \
         uniform, {loss_ratio:.2} lost",
        2e3 * delay.as_secs_f64(),
        1e3 * jitter.as_secs_f64(),
        1e3 * late_by.as_secs_f64()
    )
}

/// Exponential jitter of 3 and 10 ms was taken for a queue: 0.7 and 0.2 of the path were used.
#[test]
fn jitter_in_order_is_no_queue() {
    for (jitter_ms, share, queue_ms) in [(1, 0.98, 5), (3, 0.95, 10), (10, 0.85, 30)] {
        for loss_ratio in [0.0, 0.1] {
            let jitter = Duration::from_millis(jitter_ms);
            let path = Path { jitter, loss_ratio, ..Path::new(12.0, 20) };
            let measured = measure(&path);
            let name = format!("{measured:?} on {}", describe(&path));
            assert!(measured.share > share, "{name}");
            assert!(measured.queue < Duration::from_millis(queue_ms), "{name}");
        }
    }
}

/// Behind a buffer of two packets 3.8 times what passes was sent, since no queue showed.
#[test]
fn a_short_buffer_is_not_overrun() {
    for (mbit_per_s, round_trip_ms) in [(12.0, 4), (12.0, 40), (12.0, 100), (50.0, 40)] {
        for loss_ratio in [0.0, 0.1, 0.2, 0.3] {
            let path = Path::new(mbit_per_s, round_trip_ms);
            let wanted_per_s = 4.0 * path.frames_per_s;
            let path = Path { queue_frames: 2.0, loss_ratio, wanted_per_s, ..path };
            let measured = measure(&path);
            let name = format!("{measured:?} on {}", describe(&path));
            assert!(measured.dropped <= 0.15, "{name}");
            assert!(measured.share > 0.88, "{name}");
        }
    }
}

/// `cargo test --release -p corridor-proto --lib rate_study -- --ignored --nocapture`
#[test]
#[ignore = "a study: prints a table of 200 paths; docs/decisions/0017-rate-on-any-path.md"]
fn paths_drawn_at_random() {
    println!("seed {SEED}\npath\tshare\tqueue ms\tdropped");
    for index in 0..200 {
        let path = draw(index);
        let Measured { share, queue, dropped } = measure(&path);
        let queue_ms = 1e3 * queue.as_secs_f64();
        println!("{index}: {}\t{share:.3}\t{queue_ms:.1}\t{dropped:.3}", describe(&path));
    }
}
