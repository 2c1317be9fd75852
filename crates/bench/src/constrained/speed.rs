//! Cost of a transfer: 44 kB among 60 nodes that discover routes themselves.

use std::path::Path;

use corridor_bench::frame::Outcome;
use corridor_bench::machine::cpu_time;
use corridor_scenario::{Load, Plan, Point, RoutingMetric};
use serde::Serialize;

/// Plan with the network, and the pairs of nodes with transfers.
const PLAN: &str = "experiments/betzler-fig06/plan-dynamic.toml";

/// Window of the plan's points to run: that of the paper's dynamic scenarios.
const WINDOW_PACKETS: u32 = 5;

/// Transfers with one metric.
#[derive(Debug, Serialize)]
pub struct Transfers {
    pub metric: String,
    /// Median of their processor times.
    pub cpu_s: f64,
    pub cpu_s_min: f64,
    pub cpu_s_max: f64,
    pub transfers: usize,
    /// In total.
    pub events: u64,
}

/// Runs a transfer for each of the plan's pairs, with each metric.
pub fn transfers(quick: bool) -> Outcome<Vec<Transfers>> {
    let plan = Plan::read(Path::new(PLAN))?;
    let mut rows = Vec::new();
    for (metric, name) in
        [(RoutingMetric::HopCount, "hop-count"), (RoutingMetric::PathDr, "path-dr")]
    {
        let points = plan.points.iter().filter(|point| is_meant(point, metric));
        let points = points.step_by(if quick { 5 } else { 1 });
        let (mut cpu_s, mut events) = (Vec::new(), 0);
        for point in points {
            let begin = cpu_time();
            let measures = corridor_sim::run(point, 0)?.measures;
            cpu_s.push((cpu_time() - begin).as_secs_f64());
            events += measures.value("events").number().unwrap_or(0.0) as u64;
        }
        cpu_s.sort_by(f64::total_cmp);
        let (Some(&cpu_s_min), Some(&cpu_s_max)) = (cpu_s.first(), cpu_s.last()) else {
            return Err(format!("{PLAN}: no points of {name}").into());
        };
        let (transfers, median) = (cpu_s.len(), cpu_s[cpu_s.len() / 2]);
        let metric = name.to_owned();
        println!("{metric:<10} {median:.4} CPU-s a transfer, {cpu_s_min:.4} to {cpu_s_max:.4}");
        rows.push(Transfers { metric, cpu_s: median, cpu_s_min, cpu_s_max, transfers, events });
    }
    Ok(rows)
}

fn is_meant(point: &Point, metric: RoutingMetric) -> bool {
    let Load::Network(network) = &point.load else { return false };
    let window = network.flows.first().and_then(|flow| flow.tcp.as_ref()?.window_packets_max);
    network.routing.as_ref().is_some_and(|routing| routing.metric == metric)
        && window == Some(WINDOW_PACKETS)
}
