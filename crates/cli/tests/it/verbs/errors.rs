//! Daemon files, scenarios and plans: errors look alike, and have the same exit codes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{corridor, stderr};

const NODE: &str = "[station]
id = 1
role = \"endpoint\"
[security]
psk = \"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\"
[tun]
addresses = [\"10.9.0.1/24\"]
[underlay]
kind = \"udp\"
listen = \"0.0.0.0:4242\"
rate_bps = \"10M\"
[[peer]]
id = 2
role = \"endpoint\"
";

const SCENARIO: &str = "name = \"t\"
seed = 7
[medium]
duplex = \"half\"
rate_bps = \"12M\"
rtt_ms = 4
queue_frames = 4
[[run]]
path = \"coded\"
transport = \"udp\"
offered_bps = \"1M\"
e3 = 0.2
duration_s = 0.2
";

const PLAN: &str = "name = \"n\"
seed = 3
duration_s = 1
[network]
kind = \"chain\"
links = { count = 2, rate_bps = \"2M\", delay_ms = 10, queue_packets = 20 }
[[flow]]
from = 0
to = 2
source = { kind = \"ftp\" }
";

/// A kind of file, and the commands that read it.
struct Kind {
    text: &'static str,
    verbs: &'static [&'static [&'static str]],
}

const KINDS: [Kind; 3] = [
    Kind { text: NODE, verbs: &[&["check-config"], &["up"]] },
    Kind { text: SCENARIO, verbs: &[&["lab", "run"], &["lab", "compare"], &["sim", "run"]] },
    Kind { text: PLAN, verbs: &[&["sim", "run"], &["sim", "trace"]] },
];

/// The error that every command prints for this file; it must be the same for all.
fn said(kind: &Kind, text: &str, place: &Path) -> String {
    let file = place.join("file.toml");
    fs::write(&file, text).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
    let all: Vec<String> = kind
        .verbs
        .iter()
        .map(|verb| {
            let output = corridor(place, &[verb, &["file.toml"][..]].concat());
            assert_eq!(output.status.code(), Some(2), "{verb:?}: {}", stderr(&output));
            stderr(&output)
        })
        .collect();
    assert!(all.iter().all(|one| *one == all[0]), "{all:#?}");
    all[0].clone()
}

#[test]
fn mistakes_are_told_alike_in_all_files() {
    let place = tempfile::tempdir().expect("a place");
    let [node, scenario, plan] = &KINDS;
    let rate = "expected bits per second, such as 10000000, \"10M\", \"1.5G\" or \"500k\"";
    let cases: [(&Kind, &str, &str, &str); 15] = [
        (
            node,
            "listen",
            "lisen",
            "file.toml:10:1: `lisen` is not known in [underlay]\n  10 | lisen = \"0.0.0.0:4242\"\n\
             \x20    | ^^^^^\n  help: did you mean `listen`?\n",
        ),
        (
            scenario,
            "rtt_ms",
            "rtt_sm",
            "file.toml:6:1: `rtt_sm` is not known in [medium]\n  6 | rtt_sm = 4\n    | ^^^^^^\n  help: \
             did you mean `rtt_ms`?\n",
        ),
        (
            plan,
            "to = 2",
            "too = 2",
            "file.toml:9:1: `too` is not known in [flow]\n  9 | too = 2\n    | ^^^\n  help: did you mean \
             `to`?\n",
        ),
        (
            node,
            "id = 1",
            "id = \"one\"",
            "file.toml:2:6: station.id = \"one\": expected a station number from 1 to 65535\n",
        ),
        (
            scenario,
            "rtt_ms = 4",
            "rtt_ms = true",
            "file.toml:6:10: medium.rtt_ms = true: expected ",
        ),
        (plan, "to = 2", "to = 2.5", "file.toml:9:6: flow.to = 2.5: expected a whole number"),
        (node, "\"10M\"", "\"10 Mbit\"", rate),
        (scenario, "\"12M\"", "\"12 Mbit\"", rate),
        (plan, "\"2M\"", "\"2 Mbit\"", rate),
        (
            node,
            "\"udp\"",
            "\"upd\"",
            "file.toml:9:8: underlay.kind = \"upd\": expected \"ethernet\" or \"udp\"\n",
        ),
        (
            scenario,
            "\"udp\"",
            "\"upd\"",
            "file.toml:10:13: run.transport = \"upd\": expected \"tcp\" or \"udp\"\n",
        ),
        (
            plan,
            "\"chain\"",
            "\"chian\"",
            "file.toml:5:8: network.kind = \"chian\": expected \"chain\", \"dumbbell\", \"explicit\", \"line\", \
             \"grid\", \"star\", \"random\", \"positions\" or \"matrix\"\n",
        ),
        (node, "id = 2\n", "", "file.toml:12:1: peer.id is missing: expected a station number"),
        (
            scenario,
            "rtt_ms = 4\n",
            "",
            "file.toml:3:1: medium.rtt_ms is missing: expected a number",
        ),
        (plan, "to = 2\n", "", "file.toml:7:1: flow.to is missing: expected a whole number"),
    ];
    for (kind, from, to, expected) in cases {
        assert!(kind.text.contains(from), "{from}");
        let said = said(kind, &kind.text.replacen(from, to, 1), place.path());
        assert!(said.starts_with("error: file.toml:"), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn values_out_of_range_are_told_alike_in_all_files() {
    let place = tempfile::tempdir().expect("a place");
    let [node, scenario, plan] = &KINDS;
    for (kind, from, to, expected) in [
        (node, "\"10M\"", "10", "file.toml:11:12: underlay.rate_bps = 10: expected at least 1000"),
        (
            scenario,
            "e3 = 0.2",
            "e3 = 1.2",
            "file.toml:12:6: run[0].e3 = 1.2: expected an erasure ratio",
        ),
        (plan, "to = 2", "to = 9", "file.toml:9:6: flow[0].to = 9: expected a node from 0 to 2"),
    ] {
        let said = said(kind, &kind.text.replacen(from, to, 1), place.path());
        assert!(said.starts_with(&format!("error: {expected}")), "{said}");
        assert!(said.contains("\n  ") && said.contains('^'), "{said}");
    }
}

#[test]
fn files_that_cannot_be_read_end_with_the_same_code() {
    let place = tempfile::tempdir().expect("a place");
    for verb in KINDS.iter().flat_map(|kind| kind.verbs) {
        let output = corridor(place.path(), &[verb, &["none.toml"][..]].concat());
        assert_eq!(output.status.code(), Some(2), "{verb:?}");
        let said = stderr(&output);
        assert_eq!(said, "error: cannot read none.toml: No such file or directory (os error 2)\n");
    }
}

#[test]
fn keys_without_effect_are_warned_of_in_all_files() {
    let place = tempfile::tempdir().expect("a place");
    let node = format!("{NODE}[coding]\nblock_size = 3\n");
    let file = place.path().join("file.toml");
    fs::write(&file, node).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
    let output = corridor(place.path(), &["check-config", "file.toml"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.starts_with("warning: file.toml:16:14: coding.block_size has no effect"),
        "{said}"
    );
    fs::write(&file, SCENARIO.replace("e3 =", "coding = { block_size = 3 }\ne3 ="))
        .expect("a file");
    let output = corridor(place.path(), &["sim", "run", "file.toml", "--json"]);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    let expected = "warning: file.toml:12:25: run[0].coding.block_size has no effect: the preset is \"window\"";
    assert!(said.contains(expected), "{said}");
}

/// The error of `lab run` for a text from a pipe, or from a device.
fn said_of_standard_input(text: &[u8]) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "run", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("corridor starts");
    // A reader that reads only up to its limit may close the pipe early.
    let _ = child.stdin.take().expect("a pipe").write_all(text);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn the_lab_reads_scenarios_and_plans_from_a_pipe_once_and_not_without_end() {
    let scenario = SCENARIO.replace("\"udp\"", "\"upd\"");
    let expected = "/dev/stdin:10:13: run.transport = \"upd\": expected \"tcp\" or \"udp\"";
    let said = said_of_standard_input(scenario.as_bytes());
    assert!(said.contains(expected), "{said}");
    let plan = PLAN.replace("\"chain\"", "\"chian\"");
    let said = said_of_standard_input(plan.as_bytes());
    assert!(said.contains("/dev/stdin:5:8: network.kind = \"chian\": expected"), "{said}");
    let expected = "more than 1048576 bytes: expected a file of at most 1048576 bytes";
    let said = said_of_standard_input(&vec![b'#'; (1 << 20) + 1]);
    assert!(said.contains(expected), "{said}");
    let zeros = corridor(Path::new("/"), &["lab", "run", "/dev/zero"]);
    assert!(stderr(&zeros).contains(expected), "{}", stderr(&zeros));
}

const RADIOS: &str = "name = \"r\"
seed = 3
duration_s = 1
[stop]
metric = \"goodput_bps\"
ci95_ratio = 0.05
[network]
kind = \"line\"
nodes = 2
spacing_m = 20
[network.radio]
mac = \"dcf\"
rate_bps = \"54M\"
[[flow]]
from = 0
to = 1
source = { kind = \"ftp\" }
";

#[test]
fn what_the_lab_would_ignore_is_refused() {
    let place = tempfile::tempdir().expect("a place");
    let said = |text: &str, more: &[&str]| {
        fs::write(place.path().join("file.toml"), text).expect("a file");
        let output = corridor(place.path(), &[&["lab", "run", "file.toml"], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        stderr(&output)
    };
    // The simulator has no echo.
    let echo = format!("{SCENARIO}ping_interval_ms = 20\n");
    for (text, more, expected) in [
        (RADIOS, &["--checks", "c.json"][..], "--checks c.json: expected runs on a radio"),
        (RADIOS, &["--jobs", "2"], "--jobs 2: expected runs on a radio or a line"),
        (&echo, &["--beside-sim"], "ping_interval_ms"),
    ] {
        let said = said(text, more);
        assert!(said.contains(expected), "{said}");
    }
    assert!(!place.path().join("c.json").exists());
}

/// Plots used to be written under any name: a file that ended in .png was not PNG.
#[test]
fn a_picture_goes_under_a_name_that_says_what_it_is() {
    let place = tempfile::tempdir().expect("a place");
    let plan = PLAN.replace("count = 2", "count = 1").replace("to = 2", "to = 1");
    fs::write(place.path().join("plan.toml"), plan).expect("a file");
    for name in ["x.png", "x"] {
        let output = corridor(place.path(), &["sim", "draw", "plan.toml", "--out", name]);
        let expected = "expected a file name ending in .svg";
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_eq!(stderr(&output), format!("error: --out {name}: {expected}\n"));
        assert!(!place.path().join(name).exists());
    }
    let output = corridor(place.path(), &["sim", "draw", "plan.toml", "--out", "x.svg"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = super::stdout(&output);
    assert_eq!(said, "x.svg: 2 nodes, 1 pair joined by a pipe\n");
    let svg = fs::read_to_string(place.path().join("x.svg")).expect("a picture");
    assert!(svg.starts_with("<svg"), "{svg}");
}

/// Whether a file is valid does not depend on the processor. (With GFNI, which keeps payloads over
/// GF(2) twice, peers were said to need more memory than without it.)
#[test]
fn a_file_is_sound_on_any_machine_or_on_none() {
    let place = tempfile::tempdir().expect("a place");
    let file = place.path().join("file.toml");
    let said = |memory: u32, backend: &str| {
        let peers = "allowed = []\n[[peer]]\nid = 3\nrole = \"endpoint\"\nallowed = []\n";
        let node = NODE.replace("rate_bps", "mtu = 1600\nrate_bps");
        let limits = format!("[coding]\npreset = \"paper\"\n[limits]\nmemory = {memory}\n");
        fs::write(&file, format!("{node}{peers}{limits}")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
        let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
        command.env_remove("CORRIDOR_LOG").env("CORRIDOR_CODEC_BACKEND", backend);
        stderr(&command.arg("check-config").arg(&file).output().expect("corridor starts"))
    };
    // A missing file counts as if none was given.
    for backend in ["gfni512", "gfni256", "avx2", "neon", "portable"] {
        let refused = said(7_667_383, backend);
        let expected = "limits.memory = 7667383: expected 7667384 bytes or more, for 2 peers";
        assert!(refused.contains(expected), "{backend}: {refused}");
        assert_eq!(said(7_667_384, backend), "", "{backend}");
    }
}
