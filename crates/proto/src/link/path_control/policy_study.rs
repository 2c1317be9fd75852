//! The rate control on randomly drawn paths, and on paths on which it once failed.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};

use crate::link::path_control::closed_loop::{FeedbackPath, Fillers, Path, Run, Service};

/// Seed of the paths; printed if a test fails.
const SEED: u64 = 2026;

/// The seed of a study's paths, which the environment may override.
fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED)
}

/// Seconds before the measurement, and of the measurement.
const SETTLES_S: u64 = 10;
const MEASURED_S: u64 = 20;

/// Measurements on a path: the share used, the mean queue, the waiting times of frames in it, and
/// the share of them that found the buffer full.
#[derive(Debug)]
struct Measured {
    share: f64,
    queue: Duration,
    waited_p50_ms: f64,
    waited_p95_ms: f64,
    dropped: f64,
}

fn measure(path: &Path) -> Measured {
    let mut run = Run::new(path);
    run.until(SETTLES_S);
    let seen = run.until(SETTLES_S + MEASURED_S);
    let second = |s: u64| Time::from_millis(1_000 * s);
    Measured {
        share: seen.ours / path.capacity(second(SETTLES_S)..second(SETTLES_S + MEASURED_S)),
        queue: Duration::from_secs_f64(seen.queue().max(0.0) / path.frames_per_s),
        waited_p50_ms: seen.waited_ms(0.5),
        waited_p95_ms: seen.waited_ms(0.95),
        dropped: seen.dropped / (seen.ours + seen.dropped),
    }
}

/// A path: 1 to 100 Mbit/s, 2 to 300 ms round trip, a buffer of 2 frames to 2 bandwidth-delay
/// products, all log-uniform; jitter without reordering in both directions, none for a third of the
/// paths, exponential with a mean of up to 15 ms, or uniform up to that; losses uniform up to 40 %,
/// none for a quarter.
fn draw(index: u64) -> Path {
    let mut stream =
        StreamKey { seed: seed(), replication: 0, entity: index, purpose: "path" }.stream();
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
    // Far more than the path carries, but bounded, so that an overrun has a limited cost.
    let wanted_per_s = 4.0 * path.frames_per_s;
    Path { delay, queue_frames, jitter, late_by, loss_ratio, wanted_per_s, ..path }
}

fn describe(path: &Path) -> String {
    let mbit_per_s = path.frames_per_s * 8.0 * 1_500.0 / 1e6;
    let Path { delay, queue_frames, jitter, late_by, loss_ratio, loss_burst, .. } = path;
    let varies = if let Service::Steps { steps, .. } = &path.service { steps.len() } else { 1 };
    format!(
        "{mbit_per_s:.1} Mbit/s, {:.1} ms, buffer {queue_frames:.0}, jitter {:.1} exponential {:.1} \
         uniform{}, {loss_ratio:.2} lost by {loss_burst:.0}, {varies} rates{}",
        2e3 * delay.as_secs_f64(),
        1e3 * jitter.as_secs_f64(),
        1e3 * late_by.as_secs_f64(),
        if path.reorders { " reordered" } else { "" },
        if path.policer.is_some() { ", policed" } else { "" }
    ) + &if path.fillers.burst > 1.0 {
        format!(", bursts {:.0}", path.fillers.burst)
    } else {
        String::new()
    }
}

/// Exponential jitter of 3 and 10 ms was taken for a queue: 0.7 and 0.2 of the path were used.
#[test]
fn jitter_in_order_is_no_queue() {
    for (jitter_ms, share, queue_ms) in [(1, 0.98, 7), (3, 0.95, 20), (10, 0.95, 65)] {
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

/// Behind a buffer of two packets, 3.8 times the capacity was sent, because no queue showed.
#[test]
fn a_short_buffer_is_not_overrun() {
    for (mbit_per_s, round_trip_ms) in [(12.0, 4), (12.0, 40), (12.0, 100), (50.0, 40)] {
        for loss_ratio in [0.0, 0.1, 0.2, 0.3] {
            let path = Path::new(mbit_per_s, round_trip_ms);
            let wanted_per_s = 4.0 * path.frames_per_s;
            let path = Path { queue_frames: 2.0, loss_ratio, wanted_per_s, ..path };
            let measured = measure(&path);
            let name = format!("{measured:?} on {}", describe(&path));
            // With three in ten lost at random, drops are harder to recognise.
            let most = if loss_ratio < 0.3 { 0.15 } else { 0.2 };
            assert!(measured.dropped <= most, "{name}");
            assert!(measured.share > 0.88, "{name}");
        }
    }
}

/// A path as varied as real ones: rate 0.2 to 100 Mbit/s and round trip 1 to 400 ms, log-uniform; a
/// buffer of 1 ms to 4 bandwidth-delay products, at least two frames; losses: a third none, a third
/// independent up to 40 %, a third in bursts of 2 to 50; half with exponential jitter with a mean
/// of 0.3 to 30 ms, with or without reordering; a tenth behind a policer. If the rate varies, it
/// takes one of 2 to 6 values for 0.05 to 5 s on average.
fn draw_any(index: u64, varies: bool) -> Path {
    let key = StreamKey { seed: seed(), replication: 1, entity: index, purpose: "path" };
    let mut stream = key.stream();
    let mbit_per_s = log_uniform(&mut stream, 0.2, 100.0);
    let delay = Duration::from_secs_f64(log_uniform(&mut stream, 1.0, 400.0) / 2e3);
    let path = Path::new(mbit_per_s, 0);
    let bdp = path.frames_per_s * 2.0 * delay.as_secs_f64();
    let least = path.frames_per_s / 1e3;
    let queue_frames = log_uniform(&mut stream, least, least.max(4.0 * bdp)).max(2.0);
    let (loss_ratio, loss_burst) = losses(&mut stream);
    let (jitter, reorders) = jitter(&mut stream);
    let policed = stream.next_u32().is_multiple_of(10);
    let burst = log_uniform(&mut stream, 4.0, 100.0);
    let policer = policed.then_some((0.7 * path.frames_per_s, burst));
    let service = if varies { markov(&mut stream, path.frames_per_s) } else { Service::Constant };
    let wanted_per_s = 4.0 * path.frames_per_s;
    Path {
        delay,
        queue_frames,
        loss_ratio,
        loss_burst,
        jitter,
        reorders,
        policer,
        service,
        wanted_per_s,
        ..path
    }
}

/// Losses, and the mean length of their bursts: a third none, a third independent up to 40 %, a
/// third in bursts of 2 to 50.
fn losses(stream: &mut Stream) -> (f64, f64) {
    match stream.next_u32() % 3 {
        0 => (0.0, 1.0),
        1 => (0.4 * uniform(stream), 1.0),
        _ => (0.4 * uniform(stream), log_uniform(stream, 2.0, 50.0)),
    }
}

/// Exponential jitter: half of the time none, otherwise with a mean of 0.3 to 30 ms; and whether it
/// reorders.
fn jitter(stream: &mut Stream) -> (Duration, bool) {
    let jittery = stream.next_u32().is_multiple_of(2);
    let jitter_ms = log_uniform(stream, 0.3, 30.0);
    let jitter = Duration::from_secs_f64(if jittery { jitter_ms / 1e3 } else { 0.0 });
    (jitter, stream.next_u32().is_multiple_of(2))
}

fn uniform(stream: &mut Stream) -> f64 {
    f64::from(stream.next_u32()) / 2f64.powi(32)
}

fn log_uniform(stream: &mut Stream, least: f64, most: f64) -> f64 {
    least * (most / least).powf(uniform(stream))
}

/// A rate that stays for a while and then changes, between a tenth of the maximum and the maximum.
fn markov(stream: &mut Stream, most_per_s: f64) -> Service {
    let rates: Vec<f64> = (0..2 + stream.next_u32() % 5)
        .map(|_| most_per_s * log_uniform(stream, 0.1, 1.0))
        .collect();
    let dwell_s = log_uniform(stream, 0.05, 5.0);
    let period = Duration::from_secs(SETTLES_S + MEASURED_S);
    let (mut steps, mut at) = (Vec::new(), Duration::ZERO);
    while at < period {
        steps.push((at, rates[stream.next_u32() as usize % rates.len()]));
        at += Duration::from_secs_f64(-dwell_s * (1.0 - uniform(stream)).ln() + 1e-3);
    }
    Service::Steps { steps, period }
}

/// A trace in the format of Mahimahi (Netravali et al., USENIX ATC 2015): a packet may leave at
/// each of these milliseconds.
fn recording(text: &str, from_s: u64) -> Service {
    let span = Duration::from_secs(SETTLES_S + MEASURED_S);
    let from = Duration::from_secs(from_s);
    let at: Vec<Duration> = text
        .lines()
        .filter_map(|line| line.trim().parse().ok().map(Duration::from_millis))
        .filter(|at| (from..from + span).contains(at))
        .map(|at| at - from)
        .collect();
    Service::Opportunities { at, period: span }
}

fn print(family: &str, index: u64, path: &Path) {
    let Measured { share, waited_p50_ms, waited_p95_ms, dropped, .. } = measure(path);
    println!(
        "{family}\t{index}\t{share:.3}\t{waited_p50_ms:.1}\t{waited_p95_ms:.1}\t{dropped:.3}\t{}",
        describe(path)
    );
}

/// A frame takes long here, and anything counted over many frames takes forever.
#[test]
fn a_slow_path_behind_two_frames_is_not_overrun() {
    for (mbit_per_s, round_trip_ms) in [(0.1, 5), (0.1, 50), (0.3, 20), (0.8, 40), (0.8, 90)] {
        let path = Path { queue_frames: 2.0, ..Path::new(mbit_per_s, round_trip_ms) };
        let mut run = Run::new(&path);
        run.until(60);
        let seen = run.until(360);
        let share = seen.ours / (300.0 * path.frames_per_s);
        let dropped = seen.dropped / (seen.ours + seen.dropped);
        let name = format!("{mbit_per_s} Mbit/s, {round_trip_ms} ms");
        assert!(share > 0.8, "{share} of {name}");
        assert!(dropped < 0.15, "{dropped} dropped: {name}");
    }
}

/// A path beside `count` CUBIC flows, which begin with the flow or later: rates and round-trip
/// times over a decade, buffers of half to four bandwidth-delay products. They send in bursts of 1
/// to 8 frames.
fn draw_beside(index: u64, count: usize) -> Path {
    let key = StreamKey { seed: SEED, replication: 2, entity: index, purpose: "path" };
    let mut stream = key.stream();
    let mbit_per_s = log_uniform(&mut stream, 3.0, 60.0);
    let round_trip_ms = log_uniform(&mut stream, 10.0, 100.0) as u64;
    let path = Path::new(mbit_per_s, round_trip_ms);
    let bdp = path.frames_per_s * round_trip_ms as f64 / 1e3;
    let queue_frames = (log_uniform(&mut stream, 0.5, 4.0) * bdp).max(4.0);
    let burst = log_uniform(&mut stream, 1.0, 8.0).round();
    let from_ms = if index.is_multiple_of(2) { 0 } else { 5_000 };
    Path { queue_frames, fillers: Fillers { count, burst, ..Fillers::one(from_ms) }, ..path }
}

/// Our share of what all flows got, and the share of the path that all got.
fn measure_beside(path: &Path) -> (f64, f64) {
    let mut run = Run::new(path);
    run.until(15);
    let seen = run.until(75);
    let both = seen.ours + seen.filler;
    (seen.ours / both, both / (60.0 * path.frames_per_s))
}

/// A path as drawn by `bench-paths`, without varying rates: 0.06 to 1,000 Mbit/s, round trip 1 to
/// 800 ms, buffers, losses in both directions, jitter and policers; TCP inside begins slowly.
fn draw_as_bench(index: u64) -> Path {
    let key = StreamKey { seed: seed(), replication: 3, entity: index, purpose: "path" };
    let mut stream = key.stream();
    let (mbit_per_s, round_trip_ms) = loop {
        let mbit_per_s = log_uniform(&mut stream, 0.06, 1_000.0);
        let round_trip_ms = log_uniform(&mut stream, 1.0, 800.0);
        // Three bandwidth-delay products fit the longest window.
        if mbit_per_s * round_trip_ms * 1e3 / 12_000.0 < 16_384.0 / 3.0 {
            break (mbit_per_s, round_trip_ms);
        }
    };
    let path = Path::new(mbit_per_s, 0);
    let delay = Duration::from_secs_f64(round_trip_ms / 2e3);
    let bdp = path.frames_per_s * round_trip_ms / 1e3;
    let queue_frames = log_uniform(&mut stream, path.frames_per_s / 1e3, 4.0 * bdp).max(2.0);
    let (loss_ratio, loss_burst) = losses(&mut stream);
    let (lost_back, burst_back) = losses(&mut stream);
    let (jitter, reorders) = jitter(&mut stream);
    let policed = stream.next_u32().is_multiple_of(10);
    let share = 0.5 + 0.45 * uniform(&mut stream);
    let burst = log_uniform(&mut stream, 2.0, (share * bdp).max(4.0));
    let policer = policed.then_some((share * path.frames_per_s, burst));
    let feedback = FeedbackPath { loss_ratio: lost_back, loss_burst: burst_back, ..path.feedback };
    let wanted_per_s = 4.0 * path.frames_per_s;
    Path {
        delay,
        queue_frames,
        loss_ratio,
        loss_burst,
        jitter,
        reorders,
        policer,
        feedback,
        wanted_per_s,
        starts_slowly: true,
        ..path
    }
}

/// Prints our share of a path, observed as long as by `bench-paths` but for at most a million
/// frames: after the start, and during it.
fn print_as_bench(index: u64) {
    let path = draw_as_bench(index);
    let round_trip_s = 2.0 * path.delay.as_secs_f64();
    let per_s = path.policer.map_or(path.frames_per_s, |(per_s, _)| per_s);
    let before_s = 10.0_f64.max(30.0 * round_trip_s);
    let span_s = before_s.max(2_000.0 / (per_s * (1.0 - path.loss_ratio)));
    let scale = (1e6 / (per_s * (before_s + span_s))).min(1.0);
    let [before_s, span_s] = [before_s, span_s].map(|s| (scale * s).ceil() as u64);
    let mut run = Run::new(&path);
    let first = run.until(before_s).ours / (per_s * before_s as f64);
    let seen = run.until(before_s + span_s);
    println!(
        "bench\t{index}\t{:.3}\t{first:.3}\t{:.1}\t{:.3}\t{}, lost back {:.2} by {:.0}",
        seen.ours / (per_s * span_s as f64),
        seen.waited_ms(0.95),
        seen.dropped / (seen.ours + seen.dropped),
        describe(&path),
        path.feedback.loss_ratio,
        path.feedback.loss_burst
    );
}

/// The first look took the rate at which TCP had begun for the path's capacity, and bounded the
/// rate by it for 32 round trips: 0.77 to 0.84 of these paths was used.
#[test]
fn what_an_application_begins_with_is_not_what_a_long_path_carries() {
    for (mbit_per_s, round_trip_ms, queue_frames, loss_ratio) in
        [(2.4, 358, 4.0, 0.33), (1.2, 471, 2.0, 0.39), (0.34, 632, 2.0, 0.0)]
    {
        let path = Path::new(mbit_per_s, round_trip_ms);
        let wanted_per_s = 4.0 * path.frames_per_s;
        let path = Path { queue_frames, loss_ratio, wanted_per_s, starts_slowly: true, ..path };
        let span_s = 30 * round_trip_ms / 1_000;
        let mut run = Run::new(&path);
        run.until(span_s + 2);
        let seen = run.until(2 * span_s + 2);
        let share = seen.ours / (span_s as f64 * path.frames_per_s);
        assert!(share > 0.86, "{share} of {}", describe(&path));
    }
}

/// On the capacity of a path beside others: a change by 0.3 % changes the share by up to 0.3.
const FACTORS: [f64; 5] = [0.994, 0.997, 1.0, 1.003, 1.006];

/// Beside one, two and four of them, where equal shares would be 0.50, 0.33 and 0.20. Each path
/// counts as the mean of several.
#[test]
fn beside_cubic_on_drawn_paths_about_ones_part_is_had() {
    for (fillers, of_all, on_average) in
        [(1, 0.3..0.8, 0.42..0.58), (2, 0.18..0.7, 0.27..0.42), (4, 0.11..0.7, 0.17..0.3)]
    {
        // Beside one, the share varies most.
        let factors = if fillers == 1 { &FACTORS[..] } else { &FACTORS[1..4] };
        let mut sum = 0.0;
        for index in 0..24 {
            let drawn = draw_beside(index, fillers);
            let name = format!("seed {SEED}, path {index}, {fillers}: {}", describe(&drawn));
            let mut share = 0.0;
            for factor in factors {
                let frames_per_s = factor * drawn.frames_per_s;
                let (share_of_one, used) = measure_beside(&Path { frames_per_s, ..drawn.clone() });
                assert!(used > 0.93, "{used} of the path is used: {name}");
                share += share_of_one / factors.len() as f64;
            }
            assert!(of_all.contains(&share), "{share}: {name}");
            sum += share;
        }
        let mean = sum / 24.0;
        assert!(on_average.contains(&mean), "{mean} on average beside {fillers}, seed {SEED}");
    }
}

/// `cargo test --release -p corridor-proto --lib paths_drawn -- --ignored --nocapture`; traces are
/// read from the directory in the environment variable RECORDINGS, if it is set.
#[test]
#[ignore = "a study: prints a table of paths; docs/decisions/0025-rate-that-follows.md"]
fn paths_drawn_at_random() {
    let only = std::env::var("FAMILY").ok();
    let wants =
        |family: &str| only.as_ref().is_none_or(|only| only.split(',').any(|f| f == family));
    println!("seed {}\nfamily\tpath\tshare\tp50 ms\tp95 ms\tdropped", seed());
    let index = std::env::var("INDEX").ok().and_then(|index| index.parse().ok());
    let indices = |most: u64| index.map_or(0..most, |index: u64| index..index + 1);
    if wants("steady") {
        indices(200).for_each(|index| print("steady", index, &draw(index)));
    }
    if wants("any") {
        indices(150).for_each(|index| print("any", index, &draw_any(index, false)));
    }
    if wants("varying") {
        indices(150).for_each(|index| print("varying", index, &draw_any(index, true)));
    }
    if wants("bench") {
        indices(300).for_each(print_as_bench);
    }
    if wants("beside") {
        indices(48).for_each(|index| {
            for fillers in [1, 2, 4] {
                let path = draw_beside(index, fillers);
                let (share, used) = measure_beside(&path);
                let name = describe(&path);
                println!("beside {fillers}\t{index}\t{share:.3}\t{used:.3}\t{name}");
            }
        });
    }
    let Ok(folder) = std::env::var("RECORDINGS") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    for file in files.iter().filter(|_| wants("recorded")) {
        let Ok(text) = std::fs::read_to_string(file.path()) else { continue };
        for (from_s, loss_ratio) in [(0, 0.0), (0, 0.1), (60, 0.0), (60, 0.1)] {
            let service = recording(&text, from_s);
            let queue_frames = 1_000.0;
            let path = Path { service, loss_ratio, queue_frames, ..Path::new(12.0, 40) };
            let Service::Opportunities { at, .. } = &path.service else { continue };
            if at.len() < 500 {
                continue;
            }
            let path = Path { frames_per_s: at.len() as f64 / 30.0, ..path.clone() };
            print(&format!("recorded {:?}", file.file_name()), from_s, &path);
        }
    }
}
