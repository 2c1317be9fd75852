//! A campaign in the lab resumes after an interruption, as in the simulator.

use std::fs;
use std::process::Command;

use crate::support::{Place, alone, with_net};

/// Maximum number of attempts of the command after the machine has disturbed a run.
const ATTEMPTS: u32 = 4;

const PLAN: &str = "name = 'pair'
seed = 5
duration_s = 2
warm_up_s = 1
replications = 2
[network]
kind = 'line'
nodes = 2
spacing_m = 10
[network.radio]
mac = 'dcf'
standard = 'g'
rate_bps = '12M'
power_dbm = 0
[[flow]]
from = 0
to = 1
source = { kind = 'cbr', rate_bps = '1M' }
";

#[test]
fn what_the_lab_has_measured_is_kept() {
    with_net("what_the_lab_has_measured_is_kept", || {
        let _alone = alone();
        let place = Place::new("campaigns");
        let (plan, out) = (place.write("plan.toml", PLAN), place.path().join("out"));
        let run = |more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
            command.args(["lab", "run"]).arg(&plan).arg("--results").arg(&out).args(more);
            let ended = command.output().expect("corridor starts");
            println!("{}", String::from_utf8_lossy(&ended.stderr));
            ended
        };
        if !(1..=ATTEMPTS).any(|_| run(&["--json"]).status.success()) {
            println!("absent: this machine is too busy for radios in real time");
            return;
        }
        let journal = fs::read_to_string(out.join("journal.jsonl")).expect("a journal");
        assert_eq!(journal.lines().count(), 2, "{journal}");
        let results = fs::read(out.join("results.parquet")).expect("results");
        let again = run(&["--json"]);
        assert!(again.status.success() && again.stdout.is_empty(), "nothing is made again");
        assert!(fs::read(out.join("results.parquet")).expect("results") == results);
        // The simulator's runs of the same plan are separate.
        let mut simulate = Command::new(env!("CARGO_BIN_EXE_corridor"));
        let simulated = simulate.args(["sim", "run"]).arg(&plan).arg("--out").arg(&out);
        assert!(simulated.output().expect("corridor starts").status.success());
        let journal = fs::read_to_string(out.join("journal.jsonl")).expect("a journal");
        assert_eq!(journal.lines().count(), 4, "{journal}");
    });
}

/// A line, two runs on it, and a sweep over its loss ratio.
const RUNS: &str = "name = 'line'
seed = 5
repeats = 1
[line]
rate_bps = '10M'
delay_ms = 5
queue_packets = 50
[[run]]
path = 'kernel'
transport = 'udp'
datagram_bytes = 1000
offered_bps = ['1M', '2M']
e3 = 0
duration_s = 1
[[sweep]]
line.erasure_ratio = [0.0, 0.1]
";

#[test]
fn runs_on_a_line_have_sweeps_and_are_kept_as_well() {
    with_net("runs_on_a_line_have_sweeps_and_are_kept_as_well", || {
        let _alone = alone();
        let place = Place::new("campaigns-runs");
        let (plan, out) = (place.write("plan.toml", RUNS), place.path().join("out"));
        let run = |more: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
            command.args(["lab", "run", "--json"]).arg(&plan).arg("--results").arg(&out).args(more);
            let ended = command.output().expect("corridor starts");
            println!("{}", String::from_utf8_lossy(&ended.stderr));
            let rows = String::from_utf8_lossy(&ended.stdout).into_owned();
            let rows = rows.lines().map(|row| serde_json::from_str(row).expect("a row"));
            (ended.status.success(), rows.collect::<Vec<serde_json::Value>>())
        };
        // One point, from which the whole campaign resumes.
        let (is_kept, first) = run(&["--only", "2"]);
        if !is_kept {
            println!("absent: this machine is too busy for a line in real time");
            return;
        }
        assert_eq!(first.len(), 1);
        assert_eq!(first[0]["point"], 2);
        assert_eq!(first[0]["swept"]["line.erasure_ratio"], 0.1);
        let (mut is_kept, rest) = run(&["--beside-sim"]);
        assert_eq!(rest.iter().filter(|row| row["engine"] == "lab").count(), 3, "{rest:?}");
        assert_eq!(rest.iter().filter(|row| row["engine"] == "sim").count(), 3);
        for _ in 0..ATTEMPTS {
            if !is_kept {
                is_kept = run(&[]).0;
            }
        }
        if !is_kept {
            println!("absent: this machine is too busy for a line in real time");
            return;
        }
        assert!(run(&[]).1.is_empty(), "nothing is made again");
        let mut show = Command::new(env!("CARGO_BIN_EXE_corridor"));
        let shown = show
            .args(["sim", "show", "--json", "--by", "point"])
            .arg(&out)
            .output()
            .expect("it starts");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        println!("{shown}");
        let goodputs: Vec<f64> = shown
            .lines()
            .map(|row| serde_json::from_str::<serde_json::Value>(row).expect("a row"))
            .map(|row| row["metrics"]["goodput_bps"]["mean"].as_f64().expect("a goodput"))
            .collect();
        assert_eq!(goodputs.len(), 4);
        // The swept parameter is the loss ratio.
        assert!(goodputs[2] < 0.97 * goodputs[0] && goodputs[0] > 0.9e6, "{goodputs:?}");
    });
}
