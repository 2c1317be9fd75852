//! A campaign in the lab goes on where it was cut, as one in the simulator does.

use std::fs;
use std::process::Command;

use crate::support::{Place, alone, with_net};

/// Times that the command goes on after the machine has spoilt a run.
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
        // The simulator's runs of the same plan are others.
        let mut simulate = Command::new(env!("CARGO_BIN_EXE_corridor"));
        let simulated = simulate.args(["sim", "run"]).arg(&plan).arg("--out").arg(&out);
        assert!(simulated.output().expect("corridor starts").status.success());
        let journal = fs::read_to_string(out.join("journal.jsonl")).expect("a journal");
        assert_eq!(journal.lines().count(), 4, "{journal}");
    });
}
