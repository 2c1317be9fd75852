//! `corridor lab gates` as far as it needs no lab: gates in virtual time, resuming from a file, and
//! one program compared with another.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::Place;
use serde_json::Value;

fn gates(out: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_corridor"))
        .args(["lab", "gates", "--quick", "--repeats", "2", "--jobs", "3"])
        .args(["--only", "frontier-rtt4-p5", "--out"])
        .arg(out)
        .args(more)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_measurement_goes_on_where_it_was_cut_unless_the_build_is_another() {
    let place = Place::new("gates");
    let out = place.path().join("out");
    let whole = gates(&out, &["--resume"]);
    assert!(whole.status.success(), "{}", said(&whole));
    assert!(said(&whole).contains("measuring everything"), "{}", said(&whole));
    let table = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert!(table.contains("frontier-rtt4-p5-p50") && table.contains(" of 3 gates"), "{table}");

    let path = out.join("tunnel.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(2));
    report["rows"].as_array_mut().unwrap().pop();
    std::fs::write(&path, report.to_string()).unwrap();
    let rest = gates(&out, &["--resume"]);
    assert!(rest.status.success(), "{}", said(&rest));
    let lines = said(&rest).lines().filter(|line| line.contains("Mbit/s")).count();
    assert_eq!(lines, 1, "{}", said(&rest));
    // The same seeds give the same rows, in virtual time.
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(String::from_utf8_lossy(&rest.stdout), table);

    report["build"] = "another".into();
    std::fs::write(&path, report.to_string()).unwrap();
    let refused = gates(&out, &["--resume"]);
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("build = \"another\": expected"), "{}", said(&refused));
    // Without resuming, it is measured again.
    assert!(gates(&out, &[]).status.success());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_program_held_against_itself_is_no_worse_and_the_checks_say_so() {
    let place = Place::new("gates-against");
    let out = place.path().join("out");
    let ended = gates(&out, &["--against", env!("CARGO_BIN_EXE_corridor")]);
    assert!(ended.status.success(), "{}", said(&ended));
    let text = std::fs::read_to_string(out.join("tunnel.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3, "{text}");
    for check in checks {
        // The same code with the same random numbers, in virtual time.
        assert_eq!(check["value"].as_f64(), Some(0.0), "{check}");
        assert_eq!(check["limit"].as_f64(), Some(2.0), "{check}");
        assert_eq!((&check["unit"], &check["holds"]), (&"% worse".into(), &true.into()), "{check}");
    }
    let old = report["rows"][0]["old/frontier-rtt4-p5"]["goodput_bps"].as_f64();
    assert_eq!(old, report["rows"][0]["frontier-rtt4-p5"]["goodput_bps"].as_f64(), "{text}");

    let refused = gates(&out, &["--against", "/no/such/program"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("cannot measure against /no/such/program: "),
        "{}",
        said(&refused)
    );
}
