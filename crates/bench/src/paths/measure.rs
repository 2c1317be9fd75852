//! Measures each transport on a path.

use core::time::Duration;

use corridor_scenario::{Scenario, expand};
use corridor_sim::{LineSeen, run_known_line, run_line};
use serde::Serialize;

use crate::Outcome;
use crate::draw::{Drawn, FRAME_BITS, Way};

/// IP and TCP headers of a packet, including timestamps, bytes.
const TCP_HEADERS_LEN: f64 = 52.0;
/// Size of a packet that fills an Ethernet frame, bytes.
const PACKET_BYTES: f64 = 1_500.0;
/// Minimum number of packets expected in the measured interval.
const PACKETS_MIN: f64 = 2_000.0;
/// Minimum warm-up: seconds, and round trips.
const WARM_UP: (f64, f64) = (10.0, 30.0);
/// Minimum interval: seconds, round trips, and changes of a varying rate.
const INTERVAL: (f64, f64, f64) = (10.0, 30.0, 20.0);
/// Minimum of both if a path is too fast for the packet limit.
const SHORT: (f64, f64) = (2.0, 1.0);
/// Maximum interval, an hour.
const INTERVAL_S_MAX: f64 = 3_600.0;

/// A path and its measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The path.
    pub path: Drawn,
    /// A short description.
    pub title: String,
    /// Warm-up and interval, seconds.
    pub warm_up_s: f64,
    pub duration_s: f64,
    /// Whether these are shortened to limit the number of packets.
    pub shortened: bool,
    /// Payload rate, bits per second, of a clairvoyant sender, which knows the rates in advance,
    /// with a tunnel's headers and without losses.
    pub clairvoyant_bps: f64,
    /// Each transport; `None` for those not requested.
    pub window: Got,
    pub known: Got,
    pub cubic: Got,
    pub bbr: Got,
    pub lossless: Got,
    /// Window mode's goodput over that of its reference, times the frames not lost: on steady paths
    /// plain cubic without random losses, with a tunnel's headers; on varying ones, or if that was
    /// not requested, the clairvoyant sender.
    pub of_reference: f64,
}

/// Results of one transport.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Got {
    /// Payload, bits per second.
    pub goodput_bps: f64,
    /// Fraction of what the clairvoyant sender gets of frames not lost.
    pub share: f64,
    /// Fraction of frames lost on the line, as drawn.
    pub lost_ratio: f64,
    /// Fraction of frames dropped by the buffer or the policer.
    pub dropped_ratio: f64,
    /// Utilisation of the line, including repair symbols and frames lost afterwards: if it is high
    /// and the share is low, the line carried useless data.
    pub used_ratio: f64,
    /// Frames sent in the interval, including dropped ones.
    pub sent: u64,
    /// Frames dropped before the interval.
    pub dropped_before: u64,
    /// Queueing delay in the buffer, milliseconds.
    pub wait_p50_ms: f64,
    pub wait_p95_ms: f64,
    /// End-to-end application delay, milliseconds.
    pub delay_p50_ms: Option<f64>,
    pub delay_p95_ms: Option<f64>,
}

/// Durations of a path's measurement.
#[derive(Clone, Copy, Debug)]
pub struct Spans {
    pub warm_up_s: f64,
    pub duration_s: f64,
    pub shortened: bool,
}

impl Spans {
    /// The desired durations, unless they exceed `packets_max`.
    pub fn of(path: &Drawn, packets_max: f64) -> Self {
        let rtt_s = path.rtt_ms / 1e3;
        let per_s = path.mean_bps / FRAME_BITS;
        let packets_s = PACKETS_MIN / (per_s * (1.0 - path.losses[0].ratio));
        let warm_up_s = WARM_UP.0.max(WARM_UP.1 * rtt_s);
        let changes_s = INTERVAL.2 * path.variation.dwell_s();
        let interval_s = packets_s.max(INTERVAL.0).max(INTERVAL.1 * rtt_s).max(changes_s);
        let scale = packets_max / (per_s * (warm_up_s + interval_s));
        let shorten = |seconds: f64, least: f64| (seconds * scale).max(least.min(seconds));
        if scale >= 1.0 {
            let duration_s = interval_s.min(INTERVAL_S_MAX);
            return Spans { warm_up_s, duration_s, shortened: false };
        }
        let warm_up_least = SHORT.0.max(WARM_UP.1 * rtt_s);
        let interval_least = SHORT.1.max(packets_s).max(10.0 * rtt_s);
        Spans {
            warm_up_s: shorten(warm_up_s, warm_up_least),
            duration_s: shorten(interval_s, interval_least).min(INTERVAL_S_MAX),
            shortened: true,
        }
    }
}

/// Runs these transports on a path, and always window mode.
pub fn measure(path: &Drawn, seed: u64, packets_max: f64, ways: &[Way]) -> Outcome<Measured> {
    let spans = Spans::of(path, packets_max);
    let (window, seen) = run(path, seed, Way::Window, spans)?;
    let header_bytes = PACKET_BYTES - seen.mtu as f64 + TCP_HEADERS_LEN;
    let payload = |seen: &LineSeen| seen.capacity_bps * (1.0 - header_bytes / PACKET_BYTES);
    let got = |(goodput_bps, delays, seen): (f64, [Option<f64>; 2], &LineSeen)| {
        let lost_ratio = seen.erased as f64 / (seen.offered - seen.dropped).max(1) as f64;
        let ms = |seconds: Option<f64>| 1e3 * seconds.unwrap_or(0.0);
        let [delay_p50_ms, delay_p95_ms] = delays.map(|delay| delay.map(|s| 1e3 * s));
        let carried_bits = 8.0 * (seen.offered - seen.dropped) as f64 * seen.frame_bytes;
        Got {
            goodput_bps,
            used_ratio: carried_bits / (seen.capacity_bps * spans.duration_s).max(1.0),
            share: goodput_bps / (payload(seen) * (1.0 - lost_ratio)).max(1.0),
            lost_ratio,
            dropped_ratio: seen.dropped as f64 / seen.offered.max(1) as f64,
            sent: seen.offered,
            dropped_before: seen.dropped_before,
            wait_p50_ms: ms(seen.waits.delay_p50_s),
            wait_p95_ms: ms(seen.waits.delay_p95_s),
            delay_p50_ms,
            delay_p95_ms,
        }
    };
    let clairvoyant_bps = payload(&seen);
    let window = got((window.0, window.1, &seen));
    let other = |way: Way| -> Outcome<Got> {
        if !ways.contains(&way) {
            return Ok(Got::default());
        }
        let (got_of, seen) = run(path, seed, way, spans)?;
        Ok(got((got_of.0, got_of.1, &seen)))
    };
    let (known, cubic, bbr) = (other(Way::Known)?, other(Way::Cubic)?, other(Way::Bbr)?);
    let lossless = if path.is_varying() { Got::default() } else { other(Way::Lossless)? };
    let of_reference = if lossless.sent == 0 {
        window.share
    } else {
        let headers = (PACKET_BYTES - header_bytes) / (PACKET_BYTES - TCP_HEADERS_LEN);
        window.goodput_bps / (lossless.goodput_bps * headers * (1.0 - window.lost_ratio)).max(1.0)
    };
    let Spans { warm_up_s, duration_s, shortened } = spans;
    Ok(Measured {
        title: path.title(),
        path: path.clone(),
        warm_up_s,
        duration_s,
        shortened,
        clairvoyant_bps,
        window,
        known,
        cubic,
        bbr,
        lossless,
        of_reference,
    })
}

type Delays = [Option<f64>; 2];

/// Goodput, delays, and the line's counters.
fn run(path: &Drawn, seed: u64, way: Way, spans: Spans) -> Outcome<((f64, Delays), LineSeen)> {
    let text = path.scenario(seed, way, spans.duration_s);
    let scenario = Scenario::parse(&text).map_err(|error| format!("{error}\nin\n{text}"))?;
    let mut run = expand(&scenario)?.remove(0);
    // Different paths must have different losses.
    run.replication = path.index;
    let warm_up = Duration::from_secs_f64(spans.warm_up_s);
    let (row, seen) = match way {
        Way::Known => run_known_line(&scenario, &run, warm_up)?,
        _ => run_line(&scenario, &run, warm_up)?,
    };
    let delays = [row.delays.delay_p50_s, row.delays.delay_p95_s];
    Ok(((row.goodput_bps, delays), seen))
}

impl Measured {
    /// A line of text.
    pub fn line(&self) -> String {
        let of = |name: &str, got: &Got| {
            let Got { share, dropped_ratio, wait_p95_ms, .. } = got;
            format!("{name} {share:.3} dropped {dropped_ratio:.3} p95 {wait_p95_ms:.1} ms")
        };
        let shortened = if self.shortened { " (short)" } else { "" };
        let all = [
            ("window", &self.window),
            ("known", &self.known),
            ("cubic", &self.cubic),
            ("bbr", &self.bbr),
            ("lossless", &self.lossless),
        ];
        let ran = all.iter().filter(|(_, got)| got.sent > 0);
        let ways: Vec<String> = ran.map(|(name, got)| of(name, got)).collect();
        let Measured { path, title, of_reference, .. } = self;
        format!("{:4} {title}{shortened}: {of_reference:.3} by {}", path.index, ways.join("; "))
    }
}
