//! `corridor lab compare` with an external tunnel: `corridor up`, given as anybody would give it.

use std::process::Command;

use crate::support::{Place, with_net};
use serde_json::Value;

const SCENARIO: &str = "name = 'compare'\nseed = 1\n[medium]\nduplex = 'full'\n\
    rate_bps = 12_000_000\nrtt_ms = 4\nqueue_frames = 50\n[[run]]\npath = 'kernel'\n\
    transport = 'tcp'\ne3 = 0\nduration_s = 1\n";

/// A station's file; the lab gives the interface its address.
fn node(id: u8) -> String {
    let other = 3 - id;
    format!(
        "[station]\nid = {id}\nrole = \"plain\"\n[security]\npsk = \"{}\"\n[tun]\nname = \"tun0\"\n\
         addresses = []\n[underlay]\nkind = \"udp\"\nlisten = \"10.66.0.{id}:4242\"\n[[peer]]\n\
         id = {other}\nrole = \"plain\"\nendpoint = \"10.66.0.{other}:4242\"\n",
        "5a".repeat(32)
    )
}

#[test]
fn a_tunnel_given_as_a_command_is_compared() {
    with_net("a_tunnel_given_as_a_command_is_compared", || {
        let place = Place::new("compare");
        let scenario = place.write("scenario.toml", SCENARIO);
        let files = [place.write("S.toml", &node(1)), place.write("D.toml", &node(2))];
        let directory = files[0].parent().unwrap().display();
        let corridor = env!("CARGO_BIN_EXE_corridor");
        let out = place.path().join("out");
        let ended = Command::new(corridor)
            .args(["lab", "compare"])
            .arg(&scenario)
            .args(["--only", "mine", "--out"])
            .arg(&out)
            .arg("--tunnel")
            .arg(format!("mine=: {{tun}}; {corridor} up {directory}/{{side}}.toml"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{said}");
        let table = String::from_utf8_lossy(&ended.stdout);
        assert!(table.contains("kernel cubic") && table.contains("mine "), "{table}");
        let text = std::fs::read_to_string(out.join("compare.json")).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        let line = &report["summary"][1];
        assert_eq!(line["way"], "mine");
        assert!(line["goodput_bps"].as_f64().unwrap() > 1e6, "{line}");
        assert_eq!(report["rows"][1]["tunnel"], "mine");
        assert!(out.join("compare.svg").exists());
    });
}

#[test]
fn a_name_that_no_command_knows_is_refused() {
    let place = Place::new("compare-refused");
    let scenario = place.write("scenario.toml", SCENARIO);
    let ended = Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "compare"])
        .arg(&scenario)
        .args(["--tunnel", "x=run {locale}"])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("{locale}: expected {side}, {other}, {local}"), "{said}");
}
