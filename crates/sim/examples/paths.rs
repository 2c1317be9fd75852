//! Window mode under TCP Cubic on randomly drawn paths: tests the rate control on paths that it was
//! not tuned to.
//!
//! `cargo run --release -p corridor-sim --example paths [DRAWS] [SECONDS] [SEED] > new.tsv`
//!
//! Each line of the output is a path and its measurements. To compare two builds:
//! `... --example paths compare old.tsv new.tsv`.
//!
//! Each path draws a rate from 1 to 100 Mbit/s and a round trip from 2 to 300 ms, log-uniform; a
//! tail-drop buffer, which the sender cannot see, from 2 frames to 2 bandwidth-delay products,
//! log-uniform; jitter that keeps the order, with equal odds none, exponential with a mean of up to
//! 15 ms, or uniform from zero to up to 15 ms; and losses from 0 to 40 % each way, uniform, or none
//! on a quarter of the paths.

use std::error::Error;
use std::fs;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};
use corridor_scenario::{Scenario, expand};
use corridor_sim::run_radio;

/// Bits of a frame that fills the radio's MTU.
const FRAME_BITS: f64 = 8.0 * 1_500.0;

struct Draw {
    rate_mbps: f64,
    rtt_ms: f64,
    buffer_frames: usize,
    jitter_ms: f64,
    shape: &'static str,
    loss_ratio: f64,
}

impl Draw {
    fn new(seed: u64, index: u64) -> Self {
        let key = StreamKey { seed, replication: 0, entity: index, purpose: "path" };
        let mut stream = key.stream();
        let rate_mbps = log_uniform(&mut stream, 1.0, 100.0);
        let rtt_ms = log_uniform(&mut stream, 2.0, 300.0);
        let bdp_frames = rate_mbps * 1e3 * rtt_ms / FRAME_BITS;
        let buffer_frames = log_uniform(&mut stream, 2.0, (2.0 * bdp_frames).max(4.0));
        let (jitter_ms, shape) = match stream.next_u32() % 3 {
            0 => (0.0, "exponential"),
            1 => (15.0 * uniform(&mut stream), "exponential"),
            _ => (15.0 * uniform(&mut stream), "uniform"),
        };
        let lossless = stream.next_u32().is_multiple_of(4);
        let loss_ratio = if lossless { 0.0 } else { 0.4 * uniform(&mut stream) };
        let buffer_frames = buffer_frames.round() as usize;
        Draw { rate_mbps, rtt_ms, buffer_frames, jitter_ms, shape, loss_ratio }
    }

    /// Goodput divided by the rate times the share of frames not lost; median and 95th percentile
    /// of the delay in ms beyond propagation; and the share of frames that the buffer dropped.
    fn measure(&self, seed: u64, seconds: u64) -> Result<[f64; 4], Box<dyn Error>> {
        let Draw { rate_mbps, rtt_ms, buffer_frames, jitter_ms, shape, loss_ratio } = self;
        let rate_bps = (rate_mbps * 1e6) as u64;
        // The queue includes the frame being sent.
        let queue_frames = buffer_frames + 1;
        let scenario = Scenario::parse(&format!(
            "name = 'paths'\nseed = {seed}\n[medium]\nduplex = 'full'\nrate_bps = {rate_bps}\n\
             rtt_ms = {rtt_ms:?}\nqueue_frames = {queue_frames}\ndrops_when_full = true\n\
             jitter_ms = {jitter_ms:?}\njitter_shape = '{shape}'\n[[run]]\npath = 'coded'\n\
             transport = 'tcp'\ne3 = {loss_ratio:?}\nduration_s = {seconds}\n\
             coding = {{ preset = 'window' }}"
        ))?;
        let run = expand(&scenario)?.remove(0);
        let row = run_radio(&scenario, &run)?;
        let ms = |delay_s: Option<f64>| delay_s.map_or(f64::NAN, |s| 1e3 * s - rtt_ms / 2.0);
        Ok([
            row.goodput_bps / (rate_bps as f64 * (1.0 - loss_ratio)),
            ms(row.delays.delay_p50_s),
            ms(row.delays.delay_p95_s),
            row.air_drop_ratio.unwrap_or(0.0),
        ])
    }
}

fn uniform(stream: &mut Stream) -> f64 {
    f64::from(stream.next_u32()) / 4_294_967_296.0
}

fn log_uniform(stream: &mut Stream, least: f64, most: f64) -> f64 {
    least * libm::pow(most / least, uniform(stream))
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, old, new] = args.as_slice()
        && verb == "compare"
    {
        return compare(&fs::read_to_string(old)?, &fs::read_to_string(new)?);
    }
    let number = |at: usize, otherwise: u64| args.get(at).map_or(Ok(otherwise), |arg| arg.parse());
    let (draws, seconds, seed) = (number(0, 100)?, number(1, 20)?, number(2, 2026)?);
    eprintln!("seed {seed}, {draws} paths, {seconds} s each");
    println!(
        "path\tMbit/s\tRTT ms\tbuffer\tjitter ms\tshape\tlost\tgoodput\tp50 ms\tp95 ms\tdropped"
    );
    for index in 0..draws {
        let draw = Draw::new(seed, index);
        let [goodput, p50, p95, dropped] = draw.measure(seed, seconds)?;
        let Draw { rate_mbps, rtt_ms, buffer_frames, jitter_ms, shape, loss_ratio } = draw;
        println!(
            "{index}\t{rate_mbps:.2}\t{rtt_ms:.1}\t{buffer_frames}\t{jitter_ms:.1}\t{shape}\t\
             {loss_ratio:.3}\t{goodput:.4}\t{p50:.1}\t{p95:.1}\t{dropped:.4}"
        );
    }
    Ok(())
}

/// Parses a line of a table: the path, and its measurements.
fn parse(line: &str) -> Option<(Vec<&str>, [f64; 4])> {
    let fields: Vec<&str> = line.split('\t').collect();
    let (path, values) = fields.split_at_checked(7)?;
    let values: Vec<f64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    Some((path.to_vec(), values.try_into().ok()?))
}

fn compare(old: &str, new: &str) -> Result<(), Box<dyn Error>> {
    let mut columns: [Vec<(f64, f64)>; 4] = Default::default();
    let (mut better, mut worse) = (0, 0);
    for (old, new) in old.lines().skip(1).zip(new.lines().skip(1)) {
        let (Some((path, before)), Some((same, after))) = (parse(old), parse(new)) else {
            return Err(format!("not lines of this program's: {old:?}, {new:?}").into());
        };
        if path != same {
            return Err(format!("other paths: {old:?}, {new:?}").into());
        }
        for (column, pair) in columns.iter_mut().zip(before.into_iter().zip(after)) {
            column.push(pair);
        }
        better += u32::from(after[0] > 1.02 * before[0]);
        if after[0] < 0.98 * before[0] {
            worse += 1;
            println!("less goodput: {} | {before:?} | {after:?}", path.join(" "));
        }
    }
    println!("{} paths: goodput more on {better}, less on {worse}", columns[0].len());
    for (name, column) in ["goodput", "p50 ms", "p95 ms", "dropped"].iter().zip(&columns) {
        let quartiles = |of: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = column.iter().map(of).filter(|x| !x.is_nan()).collect();
            values.sort_by(f64::total_cmp);
            let at = |share: f64| values.get((share * values.len() as f64) as usize).copied();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let quantiles = [0.05, 0.25, 0.5, 0.75, 0.95].map(|q| at(q).unwrap_or(f64::NAN));
            format!("mean {mean:.3}, quantiles 5 to 95 % {quantiles:.3?}")
        };
        println!("{name}: old {}", quartiles(|pair| pair.0));
        println!("{name}: new {}", quartiles(|pair| pair.1));
    }
    Ok(())
}
