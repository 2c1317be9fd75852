//! A chain of three hops of 802.11 in the lab and in the simulator: the same plan, within 5 % of
//! each other. `plans/chain.toml` is the same for longer.

use std::path::Path;
use std::process::Command;

use corridor_testing::realtime::{Measured, until_it_holds};

use crate::support::{Place, alone, with_net};

/// By how much the lab may be off.
const TOLERANCE: f64 = 0.05;

/// Goodput in the simulator and in the lab, of a plan with one point; `None` if the machine spoilt
/// it.
fn goodputs(plan: &Path) -> Option<[f64; 2]> {
    let ended = Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "run", "--json", "--beside-sim"])
        .arg(plan)
        .output()
        .unwrap();
    let rows = String::from_utf8_lossy(&ended.stdout);
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(rows.len() == 4, "{said}");
    println!("{said}");
    let mean = |engine: &str| {
        let of = rows.iter().filter(|row| row["engine"] == engine);
        let goodputs = of.map(|row| row["measures"]["goodput_bps"].as_f64().unwrap());
        goodputs.sum::<f64>() / 2.0
    };
    rows.iter().all(|row| row["valid"] == true).then(|| ["sim", "lab"].map(mean))
}

fn agrees(test: &str, flow: &str) {
    with_net(test, || {
        let _alone = alone();
        let place = Place::new("radios");
        let plan = place.write(
            "plan.toml",
            &format!(
                "name = 'chain'\nseed = 2013\nduration_s = 8\nwarm_up_s = 2\nreplications = 2\n\
                 [network]\nkind = 'line'\nnodes = 4\nspacing_m = 20\n[network.radio]\n\
                 mac = 'dcf'\nstandard = 'g'\nrate_bps = '12M'\npower_dbm = 0\nsense_dbm = -92\n\
                 [[flow]]\nfrom = 0\nto = 3\n{flow}\n"
            ),
        );
        until_it_holds(test, |_| {
            let Some([simulated, real]) = goodputs(&plan) else {
                return Measured::Spoilt("radios in real time were late".to_owned());
            };
            let off = real / simulated - 1.0;
            let said = format!("{off:+.3}: {real} of {simulated} bit/s");
            println!("{said}");
            if off.abs() <= TOLERANCE { Measured::Holds } else { Measured::Fails(said) }
        });
    });
}

#[test]
fn udp_beyond_what_three_hops_carry() {
    let flow = "payload_bytes = 1472\nsource = { kind = 'cbr', rate_bps = '6M' }";
    agrees("udp_beyond_what_three_hops_carry", flow);
}

#[test]
fn tcp_over_three_hops() {
    agrees("tcp_over_three_hops", "source = { kind = 'ftp' }");
}
