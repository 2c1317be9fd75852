//! `corridor sim run` and `show`: identical bytes with any number of jobs, and after any
//! interruption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// UDP over the daemon's own stations.
const RADIO: &str = "
name = 'small-radio'
seed = 5
replications = 3
medium = { duplex = 'half', rate_bps = 12_000_000, overhead_us = 400, rtt_ms = 4, queue_frames = 4 }
[[run]]
path = ['plain', 'coded+helper']
transport = 'udp'
offered_bps = 2e6
datagram_bytes = 1400
e3 = 0.3
duration_s = 0.2
[output]
series_s = 0.15
delays = true
tables = true
[[sweep]]
medium.rtt_ms = [2, 8]
";

/// TCP and datagrams over links, with a stop rule.
const NETWORK: &str = "
name = 'small-network'
seed = 6
duration_s = 30
warm_up_s = 2
stop = { metric = 'goodput_bps', ci95_ratio = 0.2, replications_min = 3, replications_max = 12 }
output = { series_s = 4, delays = true, tables = true }
[network]
kind = 'chain'
links = { count = 2, rate_bps = 2_000_000, delay_ms = 20, queue_packets = 20 }
[[flow]]
from = 0
to = 2
source = { kind = 'ftp' }
tcp = { preset = 'ns2', variant = 'reno' }
[[flow]]
from = 2
to = 0
source = { kind = 'cbr', rate_bps = 200_000 }
[[sweep]]
network.links.erasure_ratio = [0.0, 0.02]
[[sweep]]
'flow.0.tcp.variant' = ['reno', 'cubic']
";

struct Place(tempfile::TempDir);

impl Place {
    fn new(plan: &str) -> Self {
        let place = Place(tempfile::tempdir().expect("temporary directory"));
        fs::write(place.plan(), plan).expect("plan");
        place
    }

    fn plan(&self) -> PathBuf {
        self.0.path().join("plan.toml")
    }

    fn file(&self, out: &str, name: &str) -> PathBuf {
        self.0.path().join(out).join(name)
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
        command.args(["sim", verb]).current_dir(self.0.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command("run");
        command.arg(self.plan()).args(arguments).output().expect("corridor starts")
    }

    fn run_well(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command("run");
        command.arg(self.plan()).args(arguments).stderr(Stdio::piped()).stdout(Stdio::null());
        command.spawn().expect("corridor starts")
    }

    /// The bytes of all tables.
    fn results(&self, out: &str) -> Vec<Vec<u8>> {
        let names = ["results", "flow_series", "link_series", "station_series", "delays"];
        let names = names.iter().chain(&["flows", "links", "nodes"]);
        let read = |name: &str| fs::read(self.file(out, &format!("{name}.parquet"))).ok();
        names.filter_map(|name| read(name)).collect()
    }
}

fn lines(path: &Path) -> usize {
    fs::read(path).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count())
}

#[test]
fn results_are_the_same_bytes_on_any_number_of_jobs() {
    for plan in [RADIO, NETWORK] {
        let place = Place::new(plan);
        place.run_well(&["--jobs", "1", "--out", "one"]);
        place.run_well(&["--jobs", "3", "--out", "three"]);
        assert!(place.results("one") == place.results("three"));
        assert!(place.results("one").len() >= 6, "records and long tables");
        let rows = place.run_well(&["--jobs", "2", "--json"]);
        assert_eq!(rows, place.run_well(&["--jobs", "1", "--json"]));
        let row: serde_json::Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
        assert!(row["goodput_bps"].as_f64().unwrap() > 0.0, "{row}");
    }
}

/// Truncated within a line, and with lines missing in the middle.
#[test]
fn results_are_the_same_bytes_after_a_power_failure() {
    for plan in [RADIO, NETWORK] {
        let place = Place::new(plan);
        place.run_well(&["--jobs", "2", "--out", "whole"]);
        let journal = fs::read_to_string(place.file("whole", "journal.jsonl")).unwrap();
        let kept: String = journal.split_inclusive('\n').step_by(3).collect();
        fs::create_dir(place.0.path().join("torn")).unwrap();
        let torn = &journal[..journal.len() / 3];
        fs::write(place.file("torn", "journal.jsonl"), kept.clone() + torn).unwrap();
        place.run_well(&["--jobs", "3", "--out", "torn"]);
        assert!(place.results("whole") == place.results("torn"));
        // Existing results have not been run again.
        let text = fs::read_to_string(place.file("torn", "journal.jsonl")).unwrap();
        assert!(text.starts_with(&kept));
    }
}

#[test]
fn ctrl_c_keeps_what_is_done_and_the_same_command_goes_on() {
    // Long enough not to end before the signal: seconds, of which the test waits for two
    // replications.
    let text = NETWORK.replace("duration_s = 30", "duration_s = 400");
    let place = Place::new(&text);
    let few = ["--jobs", "2", "--replications", "12", "--out", "stopped"];
    let mut child = place.start(&few);
    let journal = place.file("stopped", "journal.jsonl");
    while lines(&journal) < 2 && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("results are in stopped, run again to resume"), "{said}");
    let done = lines(&journal);
    assert!((2..48).contains(&done), "{done}");
    let shown = place.command("show").arg("stopped").output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("unfinished"));

    place.run_well(&few);
    assert_eq!(lines(&journal), 48);
    place.run_well(&["--jobs", "1", "--replications", "12", "--out", "alone"]);
    assert!(place.results("stopped") == place.results("alone"));
    // The third time there is nothing to do, and nothing changes.
    let before = place.results("stopped");
    place.run_well(&few);
    assert_eq!(lines(&journal), 48);
    assert!(before == place.results("stopped"));
}

#[test]
fn single_points_add_to_what_is_there() {
    let place = Place::new(RADIO);
    place.run_well(&["--out", "all"]);
    place.run_well(&["--out", "parts", "--only", "2", "--only", "0"]);
    assert_eq!(lines(&place.file("parts", "journal.jsonl")), 6);
    let show = place.command("show").args(["parts", "--json", "--by", "point"]).output().unwrap();
    let shown = String::from_utf8(show.stdout).unwrap();
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.starts_with("{\"by\":{\"point\":0}"), "{shown}");
    place.run_well(&["--out", "parts"]);
    assert!(place.results("all") == place.results("parts"));
}

#[test]
fn parts_put_together_are_the_same_bytes_as_a_run_at_once() {
    let merge = |place: &Place, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
        command.args(["results", "merge"]).args(arguments).current_dir(place.0.path());
        let output = command.output().expect("corridor starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for plan in [RADIO, NETWORK] {
        let place = Place::new(plan);
        place.run_well(&["--out", "all"]);
        for shard in ["1/3", "2/3", "3/3"] {
            place.run_well(&["--shard", shard, "--out", &shard.replace('/', "of")]);
        }
        let parts = ["3of3", "1of3", "2of3", "--out", "merged"];
        assert_eq!(merge(&place, &parts).0, Some(0));
        assert!(place.results("all") == place.results("merged"));
        // The journal was merged too: nothing is run again.
        let journal = lines(&place.file("merged", "journal.jsonl"));
        place.run_well(&["--out", "merged"]);
        assert_eq!(lines(&place.file("merged", "journal.jsonl")), journal);
        assert!(place.results("all") == place.results("merged"));

        let (status, said) = merge(&place, &["1of3", "2of3", "--out", "some"]);
        assert_eq!(status, Some(0), "{said}");
        assert!(said.contains("3 of 4 points are complete"), "{said}");
        let (status, said) = merge(&place, &["1of3", "all", "--out", "twice"]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains("all: point 0 is also in 1of3"), "{said}");
        let (status, said) = merge(&place, &["1of3", "--out", "1of3"]);
        assert_eq!(status, Some(2), "{said}");
    }
    let place = Place::new(RADIO);
    for given in ["0/3", "4/3", "1", "a/b"] {
        let output = place.run(&["--shard", given]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("expected I/N"), "{given}");
    }
}

/// As many as in a medium-sized sweep, no two of which take the same path.
#[test]
fn a_thousand_points_in_parts_are_the_same_bytes_as_a_run_at_once() {
    let delays: Vec<String> =
        (1..=1_000).map(|place| format!("{}", 0.1 * f64::from(place))).collect();
    let place = Place::new(&format!(
        "name = 'thousand'
        seed = 3
        duration_s = 0.5
        output = {{ tables = true }}
        [network]
        kind = 'chain'
        [network.links]
        count = 1
        rate_bps = 1_000_000
        delay_ms = 1
        queue_packets = 5
        erasure_ratio = 0.1
        [[flow]]
        from = 0
        to = 1
        source = {{ kind = 'cbr', rate_bps = 200_000 }}
        [[sweep]]
        network.links.delay_ms = [{}]",
        delays.join(", ")
    ));
    place.run_well(&["--out", "all"]);
    let mut merge = Command::new(env!("CARGO_BIN_EXE_corridor"));
    merge.args(["results", "merge"]).current_dir(place.0.path());
    for part in 1..=8 {
        let (shard, out) = (format!("{part}/8"), format!("part{part}"));
        place.run_well(&["--shard", &shard, "--out", &out]);
        merge.arg(out);
    }
    assert!(merge.args(["--out", "merged"]).status().expect("corridor starts").success());
    assert!(place.results("all") == place.results("merged"));
    assert_eq!(place.results("all").len(), 3, "records, flows, links");
}

/// Points that are compared are in the same shard, and end together.
#[test]
fn parts_keep_together_what_a_stop_rule_compares() {
    let stop = NETWORK.lines().find(|line| line.starts_with("stop")).expect("a stop rule");
    let compares = "stop = { metric = 'goodput_bps', ci95_half_width = 40_000, replications_min = 3, \
        replications_max = 12, against = { 'flow.0.tcp.variant' = 'reno' } }";
    let text = NETWORK.replace("duration_s = 30", "duration_s = 12");
    let text = text.replace(stop, compares);
    assert!(text.contains("against"), "{text}");
    let place = Place::new(&text);
    place.run_well(&["--out", "all"]);
    place.run_well(&["--shard", "1/2", "--out", "one"]);
    place.run_well(&["--shard", "2/2", "--out", "two"]);
    let mut merge = Command::new(env!("CARGO_BIN_EXE_corridor"));
    merge.args(["results", "merge", "one", "two", "--out", "merged"]);
    assert!(merge.current_dir(place.0.path()).status().expect("corridor starts").success());
    assert!(place.results("all") == place.results("merged"));
    // Selecting one of a pair also runs the other.
    place.run_well(&["--only", "1", "--out", "pair"]);
    let show = place.command("show").args(["pair", "--json", "--by", "point"]).output().unwrap();
    assert_eq!(String::from_utf8(show.stdout).unwrap().lines().count(), 2);
}

#[test]
fn show_prints_means_with_units() {
    let place = Place::new(RADIO);
    place.run_well(&["--out", "out"]);
    let output = place.command("show").arg("out").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("small-radio: 12 replications, means"), "{text}");
    assert!(text.contains("Mbit/s") && text.contains('\u{b1}'), "{text}");
    assert!(!text.contains('\u{1b}'), "colour without a terminal");
    // `run` prints the same table as `show`.
    assert_eq!(place.run_well(&[]), text);
    let output = place.command("show").args(["out", "--metric", "godput"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--metric godput: expected one of goodput_bps"), "{said}");
}

#[test]
fn what_cannot_be_is_refused_before_anything_runs() {
    let place = Place::new(RADIO);
    let refusal = |plan: &str, arguments: &[&str]| {
        fs::write(place.plan(), plan).unwrap();
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{plan} {arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refusal(RADIO, &["--only", "4"]).contains("--only 4: expected 0 to 3"));
    assert!(refusal(RADIO, &["--jobs", "0"]).contains("--jobs 0: expected 1 to"));
    assert!(refusal(RADIO, &["--replications", "0"]).contains("replications = 0: expected 1 to"));
    let said = refusal(&RADIO.replace("e3 = 0.3", "e3 = 3"), &[]);
    assert!(said.contains(": run[0].e3 = 3: expected an erasure ratio"), "{said}");
    let said = refusal(&RADIO.replace("'plain', ", "'kernel', "), &[]);
    assert!(said.contains("path = kernel: the simulator runs plain, coded"), "{said}");
    let window = "variant = 'reno', window_packets_max = 0";
    let said = refusal(&NETWORK.replace("variant = 'reno'", window), &[]);
    assert!(said.contains("flow[0].tcp: window_packets_max is 0: expected 1 to"), "{said}");

    fs::write(place.plan(), RADIO).unwrap();
    place.run_well(&["--out", "out", "--replications", "1"]);
    let said = refusal(NETWORK, &["--out", "out"]);
    assert!(said.contains("expected results of plan \"small-network\", found"), "{said}");
    assert!(refusal(RADIO, &["--out", "plan.toml"]).contains("expected a directory"));
}

#[test]
fn the_plans_that_are_shipped_can_be_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let inside = |folder: &Path| -> Vec<_> {
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("entry").path()).collect()
    };
    let experiments = inside(&root.join("experiments")).into_iter().filter(|path| path.is_dir());
    let files = experiments.flat_map(|folder| inside(&folder));
    let is_plan = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("plan") && name.ends_with(".toml")
    };
    let mut count = 0;
    // The files that they name are in the same directory.
    let is_toml = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "toml");
    let plans = inside(&root.join("plans")).into_iter().filter(is_toml);
    for path in plans.chain(files.filter(is_plan)) {
        let plan = corridor_scenario::Plan::read(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        corridor_sim::check_plan(&plan).unwrap_or_else(|e| panic!("{path:?}: {e:?}"));
        count += 1;
    }
    assert!(count >= 20, "{count} plans");
}
