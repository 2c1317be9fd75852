//! Random bottlenecks from a seed, and the network plans of the flows that compete for them.

use core::fmt::Write as _;

use corridor_base::StreamKey;
use corridor_base::rand::Rng;
use corridor_bench::random::{log_uniform, round, uniform};
use serde::Serialize;

/// Bits of a full frame.
const FRAME_BITS: f64 = 12_000.0;
const RATE_MBPS: (f64, f64) = (2.0, 60.0);
const RTT_MS: (f64, f64) = (5.0, 150.0);
const BUFFER_BDP: (f64, f64) = (0.5, 4.0);
/// Smaller buffers hold less than a burst of a single flow.
const BUFFER_FRAMES_MIN: f64 = 6.0;
const LOSS_MAX: f64 = 0.2;
/// Flows start within this time, seconds.
const STARTS_S: f64 = 4.0;
/// Time before the measured interval, seconds.
pub const WARM_UP_S: f64 = 20.0;
/// Minimum interval: seconds, and round trips.
const INTERVAL: (f64, f64) = (40.0, 300.0);
/// Access links must not be bottlenecks: their rate, of the bottleneck's, and their queue, packets.
const ACCESS_RATES: u64 = 20;
const ACCESS_QUEUE_PACKETS: usize = 60_000;
/// One-way delay of an access link, milliseconds.
const ACCESS_DELAY_MS: f64 = 0.05;
/// Maximum number of flows that compete.
const FLOWS_MAX: usize = 4;

/// A bottleneck.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Its number.
    pub index: u64,
    /// Rate, bits per second.
    pub rate_bps: u64,
    /// Round-trip time without queueing, access links included, milliseconds.
    pub rtt_ms: f64,
    /// Queue limit, frames.
    pub queue_frames: usize,
    /// Ratio of frames lost, each way, when four tunnels compete; other flows lose none.
    pub loss_ratio: f64,
}

/// Which flows compete. A tunnel is in window mode, with a TCP cubic flow through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Four tunnels.
    Four,
    /// A tunnel and plain TCP cubic.
    Cubic,
    /// A tunnel and plain TCP BBR.
    Bbr,
    /// The same with plain TCP cubic in the tunnel's place: the reference.
    CubicBbr,
}

/// A flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// TCP cubic through a tunnel.
    Tunnel,
    /// Plain TCP cubic.
    Cubic,
    /// Plain TCP BBR.
    Bbr,
}

/// Random draws of a replication, the same for all kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// Seed of the plan.
    pub seed: u64,
    /// Start time of each flow, seconds.
    pub starts_s: [f64; FLOWS_MAX],
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Four, Kind::Cubic, Kind::Bbr, Kind::CubicBbr];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Four => "four",
            Kind::Cubic => "cubic",
            Kind::Bbr => "bbr",
            Kind::CubicBbr => "cubic-bbr",
        }
    }

    fn flows(self) -> &'static [Flow] {
        match self {
            Kind::Four => &[Flow::Tunnel; FLOWS_MAX],
            Kind::Cubic => &[Flow::Tunnel, Flow::Cubic],
            Kind::Bbr => &[Flow::Tunnel, Flow::Bbr],
            Kind::CubicBbr => &[Flow::Cubic, Flow::Bbr],
        }
    }

    /// Number of its flows.
    pub fn len(self) -> usize {
        self.flows().len()
    }

    /// Number of flows whose delay is reported, from the first: those through tunnels, or the one
    /// in a tunnel's place.
    pub fn reported(self) -> usize {
        if self == Kind::Four { FLOWS_MAX } else { 1 }
    }
}

impl Flow {
    /// Keys of its table, for the flow from host `from`. Tunnels come first, so that they have the
    /// numbers of their flows.
    fn transport(self, from: usize) -> String {
        match self {
            Flow::Tunnel => format!("tunnel = {from}\ntcp = {{ preset = 'linux' }}"),
            Flow::Cubic => "tcp = { preset = 'linux', variant = 'cubic' }".to_owned(),
            Flow::Bbr => "tcp = { preset = 'linux', variant = 'bbr' }".to_owned(),
        }
    }
}

impl Draws {
    /// Those of a bottleneck's replication.
    pub fn new(seed: u64, index: u64, replication: u64) -> Self {
        let key = StreamKey { seed, replication, entity: index, purpose: "start" };
        let stream = &mut key.stream();
        let starts_s = [(); FLOWS_MAX].map(|()| round(STARTS_S * uniform(stream), 3));
        Draws { seed: u64::from(stream.next_u32()), starts_s }
    }
}

impl Bottleneck {
    /// Bottleneck number `index` of a seed.
    pub fn new(seed: u64, index: u64) -> Self {
        let key = StreamKey { seed, replication: 0, entity: index, purpose: "bottleneck" };
        let stream = &mut key.stream();
        let (rate_bps, rtt_ms, frames) = loop {
            let rate_bps = 1e6 * log_uniform(stream, RATE_MBPS);
            let rtt_ms = log_uniform(stream, RTT_MS);
            let frames = log_uniform(stream, BUFFER_BDP) * bdp_frames(rate_bps, rtt_ms);
            if frames >= BUFFER_FRAMES_MIN {
                break (rate_bps, rtt_ms, frames);
            }
        };
        // Both are drawn, so that whether frames are lost does not affect later draws.
        let (loses, ratio) = (stream.next_u32().is_multiple_of(2), uniform(stream));
        Bottleneck {
            index,
            rate_bps: rate_bps as u64,
            rtt_ms: round(rtt_ms, 3),
            queue_frames: frames.round() as usize,
            loss_ratio: if loses { round(LOSS_MAX * ratio, 4) } else { 0.0 },
        }
    }

    /// Queue limit, bandwidth-delay products.
    pub fn buffer_bdp(&self) -> f64 {
        self.queue_frames as f64 / bdp_frames(self.rate_bps as f64, self.rtt_ms)
    }

    /// Length of the measured interval, seconds.
    pub fn interval_s(&self) -> f64 {
        round(INTERVAL.0.max(INTERVAL.1 * self.rtt_ms / 1e3), 3)
    }

    /// Full frames that it can carry in the measured interval.
    pub fn frames_carried(&self) -> f64 {
        self.rate_bps as f64 * self.interval_s() / FRAME_BITS
    }

    /// The plan of a replication.
    pub fn plan(&self, kind: Kind, draws: &Draws) -> String {
        let Bottleneck { index, rate_bps, rtt_ms, queue_frames, loss_ratio } = self;
        let loss_ratio = if kind == Kind::Four { *loss_ratio } else { 0.0 };
        let pairs = kind.len();
        let mut text = format!(
            "name = 'bottleneck {index}: {}'\nseed = {}\nduration_s = {:?}\nwarm_up_s = \
             {WARM_UP_S:?}\n[network]\nkind = 'dumbbell'\npairs = {pairs}\naccess = {{ rate_bps = \
             {}, delay_ms = {ACCESS_DELAY_MS:?}, queue_packets = {ACCESS_QUEUE_PACKETS} }}\n\
             bottleneck = {{ rate_bps = {rate_bps}, delay_ms = {:?}, queue_packets = \
             {queue_frames}, erasure_ratio = {loss_ratio:?} }}\n",
            kind.name(),
            draws.seed,
            round(WARM_UP_S + self.interval_s(), 3),
            ACCESS_RATES * rate_bps,
            round(rtt_ms / 2.0 - 2.0 * ACCESS_DELAY_MS, 4),
        );
        let tunnels = kind.flows().iter().filter(|flow| **flow == Flow::Tunnel).count();
        for from in 0..tunnels {
            // Formatting into a string cannot fail.
            let _ = writeln!(text, "[[network.tunnel]]\nbetween = [{from}, {}]", from + pairs);
        }
        for (from, (flow, start_s)) in kind.flows().iter().zip(draws.starts_s).enumerate() {
            let to = from + pairs;
            let _ = writeln!(
                text,
                "[[flow]]\nfrom = {from}\nto = {to}\nstart_s = {start_s:?}\n\
                 source = {{ kind = 'ftp' }}\n{}",
                flow.transport(from)
            );
        }
        text
    }

    /// A short description.
    pub fn title(&self) -> String {
        let Bottleneck { rate_bps, rtt_ms, queue_frames, loss_ratio, .. } = self;
        format!(
            "{:.2} Mbit/s, {rtt_ms:.1} ms, {queue_frames} frames ({:.2} BDP), four lose {:.1} %",
            *rate_bps as f64 / 1e6,
            self.buffer_bdp(),
            100.0 * loss_ratio
        )
    }
}

/// Bandwidth-delay product, frames.
fn bdp_frames(rate_bps: f64, rtt_ms: f64) -> f64 {
    rate_bps * rtt_ms / 1e3 / FRAME_BITS
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use corridor_scenario::Plan;

    use super::*;

    fn drawn() -> Vec<Bottleneck> {
        (0..400).map(|index| Bottleneck::new(5, index)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_bottlenecks_and_draws() {
        assert_eq!(drawn(), drawn());
        assert_ne!(Bottleneck::new(5, 0), Bottleneck { index: 0, ..Bottleneck::new(5, 1) });
        assert_ne!(Bottleneck::new(5, 0), Bottleneck::new(6, 0));
        assert_eq!(Draws::new(5, 1, 2), Draws::new(5, 1, 2));
        let others = [Draws::new(6, 1, 2), Draws::new(5, 2, 2), Draws::new(5, 1, 3)];
        for other in others {
            let Draws { seed, starts_s } = Draws::new(5, 1, 2);
            assert!(seed != other.seed && starts_s != other.starts_s, "{other:?}");
        }
    }

    #[test]
    fn bottlenecks_are_within_their_ranges_and_fill_them() {
        let drawn = drawn();
        let range = |of: &dyn Fn(&Bottleneck) -> f64| {
            let values = drawn.iter().map(of);
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let (low, high) = range(&|drawn| drawn.rate_bps as f64 / 1e6);
        // Rates are whole numbers.
        assert!((1.999..2.3).contains(&low) && (50.0..60.0).contains(&high), "{low} to {high}");
        let (low, high) = range(&|drawn| drawn.rtt_ms);
        assert!((5.0..7.0).contains(&low) && (130.0..150.0).contains(&high), "{low} to {high}");
        // Whole frames: of at least six, half a frame is at most a twelfth.
        let (low, high) = range(&Bottleneck::buffer_bdp);
        assert!((0.45..0.6).contains(&low) && (3.7..4.35).contains(&high), "{low} to {high}");
        let (low, high) = range(&|drawn| drawn.queue_frames as f64);
        assert!((6.0..10.0).contains(&low) && high <= 3_000.0, "{low} to {high}");
        let (low, high) = range(&|drawn| drawn.loss_ratio);
        assert!(low == 0.0 && (0.18..=0.2).contains(&high), "{low} to {high}");
        let losing = drawn.iter().filter(|drawn| drawn.loss_ratio > 0.0).count();
        assert!((160..240).contains(&losing), "{losing} of 400");
        let (low, high) = range(&Bottleneck::interval_s);
        assert!(low == 40.0 && (40.0..=45.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn starts_are_within_their_range() {
        let starts = (0..100).flat_map(|replication| Draws::new(5, 0, replication).starts_s);
        let starts: Vec<f64> = starts.collect();
        assert!(starts.iter().all(|start_s| (0.0..=4.0).contains(start_s)));
        assert!((starts.iter().sum::<f64>() / 400.0 - 2.0).abs() < 0.2);
    }

    #[test]
    fn plans_are_read_and_differ_as_their_kinds_do() {
        let losing = drawn().into_iter().find(|drawn| drawn.loss_ratio > 0.0).expect("a loss");
        let draws = Draws::new(5, losing.index, 0);
        for kind in Kind::ALL {
            let text = losing.plan(kind, &draws);
            let plan = Plan::parse(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
            corridor_sim::check_plan(&plan).unwrap_or_else(|(_, error)| panic!("{error}"));
            assert_eq!(text.matches("[[flow]]").count(), kind.len());
            assert_eq!(text.contains("erasure_ratio = 0.0 "), kind != Kind::Four, "{text}");
        }
        let tunnels = |kind| losing.plan(kind, &draws).matches("[[network.tunnel]]").count();
        assert_eq!(Kind::ALL.map(tunnels), [4, 1, 1, 0]);
        // The reference differs only in the tunnel.
        let reference = losing.plan(Kind::CubicBbr, &draws);
        let with = losing.plan(Kind::Bbr, &draws);
        let tunnel = "[[network.tunnel]]\nbetween = [0, 2]\n";
        let through = with.replace(tunnel, "").replace(": bbr'", ": cubic-bbr'").replace(
            "tunnel = 0\ntcp = { preset = 'linux' }",
            "tcp = { preset = 'linux', variant = 'cubic' }",
        );
        assert_eq!(through, reference);
    }
}
