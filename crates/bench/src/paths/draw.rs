//! Random paths from a seed: any rate, round-trip time, buffer, loss, variation, policer and jitter
//! that a wireless path may have; each as a scenario file.

use core::fmt::Write as _;

use clap::ValueEnum;
use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};
use corridor_bench::random::{log_between, log_uniform, round, uniform};
use serde::Serialize;

/// Bits of a full frame.
pub const FRAME_BITS: f64 = 12_000.0;
const RATE_MBPS: (f64, f64) = (0.06, 1_000.0);
const RTT_MS: (f64, f64) = (1.0, 800.0);
/// Symbols of the largest window, which must hold three times the data in flight.
const WINDOW_SYMBOLS: f64 = 16_384.0;
const BDPS_OF_WINDOW: f64 = 3.0;
const BUFFER_MS_MIN: f64 = 1.0;
const BUFFER_BDP_MAX: f64 = 4.0;
const BUFFER_FRAMES_MIN: usize = 2;
const LOSS_MAX: f64 = 0.4;
const BURST_FRAMES: (f64, f64) = (2.0, 50.0);
const JITTER_MS: (f64, f64) = (0.3, 30.0);
/// Minimum of a varying rate as a fraction of the maximum, and its absolute minimum.
const LEAST_SHARE: f64 = 0.05;
const LEAST_BPS: f64 = 20e3;

/// A path.
#[derive(Clone, Debug, Serialize)]
pub struct Drawn {
    /// Its number.
    pub index: u64,
    /// Maximum rate, bits per second.
    pub rate_bps: u64,
    /// Its variation.
    pub variation: Variation,
    /// Mean rate after the policer, without outages, bits per second.
    pub mean_bps: f64,
    /// Round-trip time without queueing and jitter, milliseconds.
    pub rtt_ms: f64,
    /// Queue limit, frames.
    pub queue_frames: usize,
    /// Rate and size of a token bucket in front of the queue.
    pub policer: Option<(u64, u64)>,
    /// Losses from S to D, and back.
    pub losses: [Loss; 2],
    /// Mean of the jitter, milliseconds.
    pub jitter_ms: Option<f64>,
    /// Whether jitter reorders.
    pub reorders: bool,
}

/// Variation of a rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Variation {
    /// Constant.
    Steady,
    /// Two rates, alternating periodically.
    Steps { low_bps: u64, dwell_s: f64 },
    /// Three rates in random order.
    Markov { rates_bps: Vec<u64>, dwell_s: f64 },
    /// A random walk.
    Walk { least_bps: u64, interval_ms: f64, deviation: f64 },
    /// With outages.
    Outages { up_s: f64, down_s: f64 },
    /// Recorded, from a file.
    Trace { path: String },
}

/// Losses in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// Frame loss ratio.
    pub ratio: f64,
    /// Mean burst length, frames; `None`: independent losses.
    pub burst_frames: Option<f64>,
}

impl Drawn {
    /// Path number `index` of a seed.
    pub fn new(seed: u64, index: u64) -> Self {
        let key = StreamKey { seed, replication: 0, entity: index, purpose: "path" };
        let stream = &mut key.stream();
        let (rate_bps, rtt_ms) = loop {
            let rate_bps = 1e6 * log_uniform(stream, RATE_MBPS);
            let rtt_ms = log_uniform(stream, RTT_MS);
            if BDPS_OF_WINDOW * rate_bps * rtt_ms / 1e3 / FRAME_BITS <= WINDOW_SYMBOLS {
                break (rate_bps, rtt_ms);
            }
        };
        // Everything is drawn, even if unused: one path's kind must not affect another path's
        // values.
        let (is_varying, kind) = (one_in(stream, 3), stream.next_u32() % 4);
        let numbers = [(); 6].map(|()| uniform(stream));
        let variation = match is_varying {
            true => Variation::new(kind, rate_bps, numbers),
            false => Variation::Steady,
        };
        let mut mean_bps = variation.mean_bps(rate_bps);
        let (is_policed, share, burst) = (one_in(stream, 10), uniform(stream), uniform(stream));
        let policer = is_policed.then(|| {
            let policed_bps = ((0.5 + 0.45 * share) * mean_bps).max(LEAST_BPS);
            let bdp_bytes = policed_bps * rtt_ms / 8e3;
            (policed_bps as u64, log_between(burst, 3_000.0, bdp_bytes.max(6_000.0)) as u64)
        });
        if let Some((policed_bps, _)) = policer {
            mean_bps = mean_bps.min(policed_bps as f64);
        }
        let full_bps = variation.mean_bps(rate_bps);
        let least = full_bps * BUFFER_MS_MIN / 1e3 / FRAME_BITS;
        let most = BUFFER_BDP_MAX * full_bps * rtt_ms / 1e3 / FRAME_BITS;
        let queue_frames = log_between(uniform(stream), least, most).round() as usize;
        let losses = [(); 2].map(|()| Loss::new(stream));
        let (jitters, mean, reorders) = (one_in(stream, 2), uniform(stream), one_in(stream, 2));
        Drawn {
            index,
            rate_bps: rate_bps as u64,
            variation,
            mean_bps,
            rtt_ms: round(rtt_ms, 3),
            queue_frames: queue_frames.max(BUFFER_FRAMES_MIN),
            policer,
            losses,
            jitter_ms: jitters.then(|| round(log_between(mean, JITTER_MS.0, JITTER_MS.1), 3)),
            reorders: jitters && reorders,
        }
    }

    /// A path with a recorded rate, a round-trip time of 40 ms, and a deep buffer, as in mobile
    /// networks.
    pub fn of_trace(index: u64, path: &str, mean_bps: f64, loss_ratio: f64) -> Self {
        let loss = Loss { ratio: loss_ratio, burst_frames: None };
        Drawn {
            index,
            rate_bps: mean_bps as u64,
            variation: Variation::Trace { path: path.to_owned() },
            mean_bps,
            rtt_ms: 40.0,
            // Two seconds' worth.
            queue_frames: (2.0 * mean_bps / FRAME_BITS).ceil() as usize,
            policer: None,
            losses: [loss; 2],
            jitter_ms: None,
            reorders: false,
        }
    }

    /// Bandwidth-delay product, frames.
    pub fn bdp_frames(&self) -> f64 {
        self.mean_bps * self.rtt_ms / 1e3 / FRAME_BITS
    }

    /// Time to drain a full buffer, milliseconds.
    pub fn buffer_ms(&self) -> f64 {
        1e3 * self.queue_frames as f64 * FRAME_BITS / self.mean_bps
    }

    /// Whether its rate varies.
    pub fn is_varying(&self) -> bool {
        self.variation != Variation::Steady
    }

    /// Its scenario with one transport; `congestion` is TCP's at the ends.
    pub fn scenario(&self, seed: u64, way: Way, duration_s: f64) -> String {
        let mut text = format!("name = 'path {}'\nseed = {seed}\n[line]\n", self.index);
        let Drawn { rate_bps, rtt_ms, queue_frames, .. } = self;
        let rate = match &self.variation {
            Variation::Steady | Variation::Outages { .. } => format!("rate_bps = {rate_bps}"),
            Variation::Steps { low_bps, dwell_s } => format!(
                "rate = {{ kind = 'steps', steps = [{{ at_s = 0, rate_bps = {rate_bps} }}, {{ at_s = \
                 {dwell_s:?}, rate_bps = {low_bps} }}], period_s = {:?} }}",
                2.0 * dwell_s
            ),
            Variation::Markov { rates_bps, dwell_s } => format!(
                "rate = {{ kind = 'markov', rates_bps = {rates_bps:?}, dwell_s = {dwell_s:?} }}"
            ),
            Variation::Walk { least_bps, interval_ms, deviation } => format!(
                "rate = {{ kind = 'walk', least_bps = {least_bps}, most_bps = {rate_bps}, \
                 interval_ms = {interval_ms:?}, deviation = {deviation:?} }}"
            ),
            Variation::Trace { path } => format!("rate = {{ kind = 'trace', path = {path:?} }}"),
        };
        // Formatting into a string cannot fail.
        let _ =
            writeln!(text, "{rate}\ndelay_ms = {:?}\nqueue_packets = {queue_frames}", rtt_ms / 2.0);
        if let Variation::Outages { up_s, down_s } = self.variation {
            let _ = writeln!(
                text,
                "outage = {{ kind = 'exponential', up_s = {up_s:?}, down_s = {down_s:?} }}"
            );
        }
        if let Some((rate_bps, burst_bytes)) = self.policer {
            let _ = writeln!(
                text,
                "policer = {{ rate_bps = {rate_bps}, burst_bytes = {burst_bytes} }}"
            );
        }
        if let Some(mean_ms) = self.jitter_ms {
            let reorders = self.reorders;
            let _ = writeln!(
                text,
                "jitter = {{ kind = 'exponential', mean_ms = {mean_ms:?}, reorders = {reorders} }}"
            );
        }
        let losses = if way == Way::Lossless { [Loss::NONE; 2] } else { self.losses };
        for (name, loss) in ["forward", "backward"].iter().zip(losses) {
            let _ = writeln!(text, "{name}.{}", loss.table());
        }
        let (path, congestion) = match way {
            Way::Window | Way::Known => ("path = 'coded'\ncoding = { preset = 'window' }", "cubic"),
            Way::Cubic | Way::Lossless => ("path = 'kernel'", "cubic"),
            Way::Bbr => ("path = 'kernel'", "bbr"),
        };
        let _ = writeln!(
            text,
            "[[run]]\n{path}\nunderlay = 'udp'\ntransport = 'tcp'\ncongestion = '{congestion}'\n\
             e3 = 0\nduration_s = {duration_s:?}"
        );
        text
    }

    /// A short description.
    pub fn title(&self) -> String {
        let mbps = self.rate_bps as f64 / 1e6;
        let mut title =
            format!("{mbps:.3} Mbit/s, {:.1} ms, {} frames", self.rtt_ms, self.queue_frames);
        let varies = match &self.variation {
            Variation::Steady => String::new(),
            Variation::Steps { low_bps, dwell_s } => {
                format!(", steps to {:.2} each {dwell_s:.1} s", *low_bps as f64 / 1e6)
            }
            Variation::Markov { dwell_s, .. } => format!(", Markov {dwell_s:.1} s"),
            Variation::Walk { deviation, .. } => format!(", walk {deviation:.2}"),
            Variation::Outages { up_s, down_s } => format!(", outages {up_s:.1}/{down_s:.1} s"),
            Variation::Trace { path } => format!(", trace {path}"),
        };
        title += &varies;
        if let Some((bps, bytes)) = self.policer {
            let _ = write!(title, ", policed {:.2} Mbit/s {bytes} bytes", bps as f64 / 1e6);
        }
        let [forth, back] = self.losses.map(|loss| loss.title());
        let _ = write!(title, ", lost {forth}, back {back}");
        if let Some(ms) = self.jitter_ms {
            let order = if self.reorders { "reordered" } else { "in order" };
            let _ = write!(title, ", jitter {ms:.1} ms {order}");
        }
        title
    }
}

/// Transports compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// TCP cubic through a tunnel in window mode.
    Window,
    /// The same, with a sender that knows the line: the best that rate control can achieve.
    Known,
    /// Plain TCP cubic.
    Cubic,
    /// Plain TCP BBR.
    Bbr,
    /// Plain TCP cubic if the path lost nothing at random: what steady paths are compared with.
    Lossless,
}

impl Variation {
    /// One of the four kinds, determined by numbers from 0 to 1.
    fn new(kind: u32, rate_bps: f64, numbers: [f64; 6]) -> Self {
        let [a, b, c, ..] = numbers;
        let low = |number: f64, least: f64| {
            (rate_bps * log_between(number, least, 1.0)).max(LEAST_BPS.min(rate_bps)) as u64
        };
        match kind {
            0 => Variation::Steps {
                low_bps: low(a, 0.1),
                dwell_s: round(log_between(b, 0.5, 10.0), 3),
            },
            1 => Variation::Markov {
                rates_bps: vec![rate_bps as u64, low(a, 0.1), low(b, 0.1)],
                dwell_s: round(log_between(c, 0.1, 10.0), 3),
            },
            2 => Variation::Walk {
                least_bps: low(0.5 * a, LEAST_SHARE).min(rate_bps as u64 - 1),
                interval_ms: 100.0,
                deviation: round(log_between(b, 0.05, 0.5), 3),
            },
            _ => Variation::Outages {
                up_s: round(log_between(a, 2.0, 20.0), 3),
                down_s: round(log_between(b, 0.1, 2.0), 3),
            },
        }
    }

    /// Mean rate for a maximum of `rate_bps`, without outages.
    fn mean_bps(&self, rate_bps: f64) -> f64 {
        match self {
            Variation::Steady | Variation::Outages { .. } | Variation::Trace { .. } => rate_bps,
            Variation::Steps { low_bps, .. } => (rate_bps + *low_bps as f64) / 2.0,
            Variation::Markov { rates_bps, .. } => {
                rates_bps.iter().sum::<u64>() as f64 / rates_bps.len() as f64
            }
            Variation::Walk { least_bps, .. } => {
                let least = *least_bps as f64;
                (rate_bps - least) / (rate_bps / least).ln()
            }
        }
    }

    /// Time scale of changes, seconds.
    pub fn dwell_s(&self) -> f64 {
        match self {
            Variation::Steady => 0.0,
            Variation::Steps { dwell_s, .. } | Variation::Markov { dwell_s, .. } => *dwell_s,
            // From one bound to the other.
            Variation::Walk { .. } | Variation::Trace { .. } => 3.0,
            Variation::Outages { up_s, down_s } => up_s + down_s,
        }
    }
}

impl Loss {
    const NONE: Loss = Loss { ratio: 0.0, burst_frames: None };

    fn new(stream: &mut Stream) -> Self {
        let kind = stream.next_u32() % 3;
        let (ratio, burst) = (uniform(stream), uniform(stream));
        let ratio = round(LOSS_MAX * ratio, 4);
        let burst_frames = round(log_between(burst, BURST_FRAMES.0, BURST_FRAMES.1), 2);
        match kind {
            0 => Loss::NONE,
            1 => Loss { ratio, burst_frames: None },
            _ => Loss { ratio, burst_frames: Some(burst_frames) },
        }
    }

    fn table(self) -> String {
        match (self.ratio, self.burst_frames) {
            (ratio, Some(frames)) if ratio > 0.0 => format!(
                "erasure = {{ kind = 'gilbert-elliott', loss_ratio = {ratio:?}, burst_packets = \
                 {frames:?} }}"
            ),
            (ratio, _) => format!("erasure_ratio = {ratio:?}"),
        }
    }

    fn title(self) -> String {
        let bursts = self.burst_frames.map(|frames| format!(" by {frames:.0}"));
        format!("{:.1} %{}", 100.0 * self.ratio, bursts.unwrap_or_default())
    }
}

fn one_in(stream: &mut Stream, count: u32) -> bool {
    stream.next_u32().is_multiple_of(count)
}
