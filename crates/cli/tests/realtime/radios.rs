//! A chain of three 802.11 hops with the same plan in the lab and in the simulator: results agree
//! within 5 %. `plans/chain.toml` is the same with a longer duration.

use std::path::Path;
use std::process::Command;

use corridor_testing::realtime::{Measured, until_it_holds};

use crate::support::{Place, alone, with_net};

/// Tolerance of the lab's results.
const TOLERANCE: f64 = 0.05;

/// Goodput in the simulator and in the lab, of a plan with one point; `None` if the machine
/// disturbed it.
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

/// The CATWOMAN paper's chain in the lab, with pure relaying and with the paper's XOR relays, at
/// three loads in both directions together: the claims of its Figs. 8 to 10.
#[test]
fn relays_that_xor_on_a_chain_of_eight() {
    let test = "relays_that_xor_on_a_chain_of_eight";
    let plan = "name = 'relays'\nseed = 2013\nduration_s = 8\nwarm_up_s = 3\n[network]\n\
                kind = 'line'\nnodes = 8\nspacing_m = 20\n[network.radio]\nmac = 'dcf'\n\
                standard = 'g'\nrate_bps = '6M'\npower_dbm = 0\nsense_dbm = -92\n\
                [network.relay]\nqueue_packets = 50\n\
                [[flow]]\nfrom = 0\nto = 7\npayload_bytes = 1400\n\
                source = { kind = 'cbr', rate_bps = '200k' }\n\
                [[flow]]\nfrom = 7\nto = 0\npayload_bytes = 1400\n\
                source = { kind = 'cbr', rate_bps = '200k' }\n\
                [[sweep]]\nnetwork.relay.preset = ['plain', 'paper']\n\
                [[sweep]]\nflow.0.source.rate_bps = ['200k', '600k', '800k']\n\
                flow.1.source.rate_bps = ['200k', '600k', '800k']\n";
    with_net(test, || {
        let _alone = alone();
        let place = Place::new("relays");
        let plan = place.write("plan.toml", plan);
        until_it_holds(test, |_| {
            let Some([plain, paper]) = chain_of_eight(&plan) else {
                return Measured::Spoilt("radios in real time were late".to_owned());
            };
            let said = format!("plain {plain:?}, the paper's {paper:?}");
            println!("{said}");
            let [calm, busy, beyond] = [0, 1, 2];
            let holds = paper[beyond].goodput_bps > 1.2 * plain[beyond].goodput_bps
                && paper[beyond].delay_s < plain[beyond].delay_s
                && paper[busy].retries < plain[busy].retries
                && paper[beyond].retries < plain[beyond].retries
                && paper[calm].delay_s > 2.0 * plain[calm].delay_s
                && paper[busy].delay_s < paper[calm].delay_s;
            if holds { Measured::Holds } else { Measured::Fails(said) }
        });
    });
}

#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "what was measured is printed")]
struct OfChain {
    goodput_bps: f64,
    delay_s: f64,
    retries: f64,
}

/// Results of pure relaying, and of the paper's relays, at each of three loads; `None` if the
/// machine disturbed them.
fn chain_of_eight(plan: &Path) -> Option<[[OfChain; 3]; 2]> {
    let ended = Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "run", "--json"])
        .arg(plan)
        .output()
        .unwrap();
    let rows = String::from_utf8_lossy(&ended.stdout);
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() == 6, "{}", String::from_utf8_lossy(&ended.stderr));
    let of = |point: usize| {
        let row = rows.iter().find(|row| row["point"] == point).unwrap();
        let measure = |name: &str| row["measures"][name].as_f64().unwrap();
        let delays = ["flow.0.delay_p50_s", "flow.1.delay_p50_s"].map(measure);
        OfChain {
            goodput_bps: measure("goodput_bps"),
            delay_s: (delays[0] + delays[1]) / 2.0,
            retries: measure("frame_attempts") - measure("frames_sent"),
        }
    };
    let rows_of = |first: usize| [first, first + 1, first + 2].map(of);
    rows.iter().all(|row| row["valid"] == true).then(|| [0, 3].map(rows_of))
}

/// The same chain with TCP in both directions: by default relays carry more than pure relaying,
/// because the ends wait for late segments. Without this order, kernels retransmit far more.
#[test]
fn tcp_both_ways_over_a_chain_of_eight() {
    let test = "tcp_both_ways_over_a_chain_of_eight";
    let plan = "name = 'relays-tcp'\nseed = 2013\nduration_s = 18\nwarm_up_s = 3\n\
                replications = 2\n[network]\nkind = 'line'\nnodes = 8\nspacing_m = 20\n\
                [network.radio]\nmac = 'dcf'\nstandard = 'g'\nrate_bps = '6M'\npower_dbm = 0\n\
                sense_dbm = -92\n[network.relay]\nqueue_packets = 50\n\
                [[flow]]\nfrom = 0\nto = 7\nsource = { kind = 'ftp' }\n\
                [[flow]]\nfrom = 7\nto = 0\nsource = { kind = 'ftp' }\n\
                [[sweep]]\nnetwork.relay.preset = ['plain', 'default', 'default']\n\
                network.relay.in_order = [false, false, true]\n";
    with_net(test, || {
        let _alone = alone();
        let place = Place::new("relays-tcp");
        let plan = place.write("plan.toml", plan);
        until_it_holds(test, |_| {
            let Some([plain, as_it_comes, ordered]) = tcp_over_chain(&plan) else {
                return Measured::Spoilt("radios in real time were late".to_owned());
            };
            let said = format!("plain {plain:?}, as it comes {as_it_comes:?}, {ordered:?}");
            println!("{said}");
            let holds = ordered.goodput_bps > plain.goodput_bps
                && ordered.sent_again < 0.75 * as_it_comes.sent_again;
            if holds { Measured::Holds } else { Measured::Fails(said) }
        });
    });
}

#[derive(Clone, Copy, Debug)]
struct OfTcp {
    goodput_bps: f64,
    sent_again: f64,
}

/// TCP's results with each of three kinds of relays, on average; `None` if the machine disturbed
/// them.
fn tcp_over_chain(plan: &Path) -> Option<[OfTcp; 3]> {
    let ended = Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "run", "--json"])
        .arg(plan)
        .output()
        .unwrap();
    let rows = String::from_utf8_lossy(&ended.stdout);
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() == 6, "{}", String::from_utf8_lossy(&ended.stderr));
    let of = |point: usize| {
        let mean = |name: &str| {
            let rows = rows.iter().filter(|row| row["point"] == point);
            rows.map(|row| row["measures"][name].as_f64().unwrap()).sum::<f64>() / 2.0
        };
        let sent_again = ["flow.0.packets_retransmitted", "flow.1.packets_retransmitted"].map(mean);
        OfTcp { goodput_bps: mean("goodput_bps"), sent_again: sent_again.iter().sum() }
    };
    rows.iter().all(|row| row["valid"] == true).then(|| [0, 1, 2].map(of))
}
