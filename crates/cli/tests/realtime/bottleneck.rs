//! Several hosts behind one bottleneck, with the same plan in the lab and in the simulator: each
//! flow's results agree. `plans/bottleneck.toml` is the same with a longer duration.

use std::path::Path;
use std::process::Command;

use corridor_testing::realtime::{Measured, until_it_holds};

use crate::support::{Place, alone, with_net};

/// Tolerance of the lab's results.
const TOLERANCE: f64 = 0.05;
/// What is compared: the datagram flow, whose path TCP's flows fill, and the sum of all.
const VALUES: [&str; 4] =
    ["goodput_bps", "flow.0.goodput_bps", "flow.0.delay_p50_s", "flow.0.delay_p95_s"];

const PLAN: &str = "name = 'bottleneck'
seed = 2021
duration_s = 8
warm_up_s = 2
replications = 2
[network]
kind = 'dumbbell'
pairs = 2
access = { rate_bps = '100M', delay_ms = 1, queue_packets = 1000 }
bottleneck = { rate_bps = '8M', delay_ms = 10, queue_packets = 40 }
[[flow]]
from = 0
to = 2
payload_bytes = 1200
source = { kind = 'cbr', rate_bps = '2M' }
[[flow]]
from = 1
to = 3
source = { kind = 'ftp' }
tcp = { preset = 'linux', variant = 'cubic' }
";

/// Means of the simulator's runs, and of the lab's; `None` if the machine disturbed them.
fn means(plan: &Path) -> Option<Vec<[f64; 2]>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
    let ended = command.args(["lab", "run", "--json", "--beside-sim"]).arg(plan).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    println!("{said}");
    let rows = String::from_utf8_lossy(&ended.stdout);
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() == 4, "{said}");
    let mean = |engine: &str, name: &str| {
        let of = rows.iter().filter(|row| row["engine"] == engine);
        let values = of.map(|row| row["measures"][name].as_f64().expect("it is measured"));
        values.sum::<f64>() / 2.0
    };
    let valid = rows.iter().all(|row| row["valid"] == true);
    valid.then(|| VALUES.iter().map(|name| ["sim", "lab"].map(|of| mean(of, name))).collect())
}

#[test]
fn flows_behind_one_bottleneck_have_what_they_have_in_the_simulator() {
    let test = "flows_behind_one_bottleneck_have_what_they_have_in_the_simulator";
    with_net(test, || {
        let _alone = alone();
        let place = Place::new("bottleneck");
        let plan = place.write("plan.toml", PLAN);
        until_it_holds(test, |_| {
            let Some(means) = means(&plan) else {
                return Measured::Spoilt("links in real time were late".to_owned());
            };
            let told = VALUES.iter().zip(&means).map(|(name, [simulated, lab])| {
                format!("{name}: lab {lab}, simulator {simulated}, {:.3}", lab / simulated)
            });
            let told = told.collect::<Vec<_>>().join("\n");
            println!("{told}");
            let is_near = |&[simulated, lab]: &[f64; 2]| (lab / simulated - 1.0).abs() <= TOLERANCE;
            if means.iter().all(is_near) { Measured::Holds } else { Measured::Fails(told) }
        });
    });
}
