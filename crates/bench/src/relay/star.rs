//! A hub and its neighbours on one radio.

use corridor_bench::frame::Outcome;
use corridor_results::checks::Check;
use corridor_sim::star::{self, Load, StarFlow, jain};
use serde::Serialize;

use crate::Arguments;

/// Minimum Jain fairness index within a class of flows.
const JAIN_MIN: f64 = 0.95;
/// Minimum ratio of the crossing class's goodput to the other's: it takes twice the air time.
const CROSSING_MIN: f64 = 0.4;
/// Size of a datagram, including headers, bytes.
const PACKET_LEN: usize = 1_000;

#[derive(Debug, Serialize)]
pub(crate) struct Star {
    neighbours: u8,
    rate_bps: u64,
    offered_bps: f64,
    udp: Vec<Run>,
    tcp: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct Run {
    seed: u64,
    jain_up: f64,
    jain_crossing: f64,
    /// Ratio of the crossing class's goodput to the other's.
    crossing_ratio: f64,
    /// Packets that were corrupt or duplicated; not checked for connections.
    wrong_packets: u64,
    /// Packets received by the hub, but dropped by its queues to the next hop.
    dropped_packets: u64,
    up_bps: Vec<f64>,
    crossing_bps: Vec<f64>,
}

pub(crate) fn measure(arguments: &Arguments) -> Outcome<Star> {
    let Arguments { neighbours, rate_bps, offered_bps, .. } = *arguments;
    let udp = Load::Udp { offered_bps, packet_len: PACKET_LEN };
    let runs = |load: Load| -> Outcome<Vec<Run>> {
        arguments.seeds.iter().map(|&seed| measure_run(arguments, load, seed)).collect()
    };
    Ok(Star { neighbours, rate_bps, offered_bps, udp: runs(udp)?, tcp: runs(Load::Tcp)? })
}

fn measure_run(arguments: &Arguments, load: Load, seed: u64) -> Outcome<Run> {
    let (warm_up, duration) = arguments.spans()?;
    let measured = star::measure(&star::Star {
        neighbours: arguments.neighbours,
        loss_ratio: arguments.loss_ratio,
        rate_bps: arguments.rate_bps,
        load,
        warm_up,
        duration,
        seed,
    })?;
    let rates = |flows: &[StarFlow]| flows.iter().map(|flow| flow.goodput_bps).collect();
    let dropped =
        |stats: &corridor_proto::Stats| stats.packets_dropped_codel + stats.packets_dropped_ingress;
    let run = Run {
        seed,
        jain_up: jain(&measured.up),
        jain_crossing: jain(&measured.crossing),
        crossing_ratio: measured.crossing_ratio(),
        wrong_packets: measured.wrong(),
        dropped_packets: measured.stations.iter().map(dropped).sum(),
        up_bps: rates(&measured.up),
        crossing_bps: rates(&measured.crossing),
    };
    let name = if load == Load::Tcp { "TCP" } else { "UDP" };
    println!(
        "star, {name}, seed {seed}: up {:.3} Mbit/s, Jain {:.4}; crossing {:.3} Mbit/s, Jain {:.4}",
        run.up_bps.iter().sum::<f64>() / 1e6,
        run.jain_up,
        run.crossing_bps.iter().sum::<f64>() / 1e6,
        run.jain_crossing
    );
    Ok(run)
}

impl Star {
    pub(crate) fn checks(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        for (name, runs) in [("UDP", &self.udp), ("TCP", &self.tcp)] {
            let least = |of: fn(&Run) -> f64| runs.iter().map(of).fold(f64::INFINITY, f64::min);
            let mut at_least = |what: &str, value: f64, limit: f64| {
                let name = format!("hub, {name}: {what}");
                checks.push(Check::at_least(&name, Some(value), limit, ""));
            };
            at_least("Jain's index of the flows up", least(|run| run.jain_up), JAIN_MIN);
            let jain = least(|run| run.jain_crossing);
            at_least("Jain's index of the crossing flows", jain, JAIN_MIN);
            at_least("crossing over up", least(|run| run.crossing_ratio), CROSSING_MIN);
        }
        let wrong = self.udp.iter().map(|run| run.wrong_packets).sum::<u64>() as f64;
        checks.push(Check::at_most("hub, UDP: wrong packets", Some(wrong), 0.0, "packets"));
        checks
    }
}
