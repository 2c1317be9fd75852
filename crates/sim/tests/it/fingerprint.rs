//! The same plan gives the same results on every machine: this repository holds their hash.
//!
//! After a change that is meant to change results, bless the new ones; the failure's message says
//! how.

use std::fs;
use std::path::{Path, PathBuf};

use corridor_scenario::{Plan, Value};

/// The command that accepts the results computed here.
const BLESS: &str = "CORRIDOR_BLESS=1 cargo test -p corridor-sim --test it fingerprint";

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fingerprint")
}

#[test]
fn results_are_the_same_on_every_machine() {
    let mut computed = String::new();
    for name in ["radio", "network"] {
        let plan = Plan::read(&data().join(format!("{name}.toml"))).expect("plan");
        for point in &plan.points {
            for replication in 0..plan.replications.max() {
                let measures = corridor_sim::run(point, replication).expect("result").measures;
                let record = plan.record(point.index, replication, &measures);
                let measured =
                    record.values.iter().any(|v| matches!(v, Value::Real(x) if *x > 0.0));
                assert!(measured, "{record:?}");
                let hash = fingerprint(&record.values);
                let line = format!("{name} {} {replication} {hash:016x}\n", point.index);
                computed.push_str(&line);
            }
        }
    }
    let path = data().join("fingerprints.txt");
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        fs::write(&path, &computed).expect("fingerprints");
    }
    let blessed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        computed == blessed,
        "results differ from the blessed ones.\n\
         Meant to change? Then bless them: {BLESS}\n\
         Not meant to? Then something depends on the machine, or a change reaches too far.\n\
         blessed:\n{blessed}computed:\n{computed}"
    );
}

/// FNV-1a over the bits of all values; a float has 64.
fn fingerprint(values: &[Value]) -> u64 {
    let bytes = values.iter().flat_map(|value| match value {
        Value::Absent => vec![0],
        Value::Flag(value) => vec![1, u8::from(*value)],
        Value::Integer(value) => [&[2][..], &value.to_le_bytes()].concat(),
        Value::Real(value) => [&[3][..], &value.to_bits().to_le_bytes()].concat(),
        Value::Text(text) => [&[4][..], text.as_bytes(), &[0]].concat(),
    });
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
