//! Two daemons with different coding presets: each reports this in its log and its statistics.

use crate::support::{Daemon, Namespace, Place, endpoint, with_net};
use serde_json::Value;

#[test]
fn ends_that_code_differently_say_so() {
    with_net("ends_that_code_differently_say_so", || {
        let (here, there) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        here.cable("v0", &there, "v0");
        let place = Place::new("modes");
        let presets = ["tcp-nc", "window"];
        let start = |index: usize, namespace: &Namespace| {
            let other = namespace_mac(if index == 0 { &there } else { &here });
            let rest = format!("mac = \"{other}\"\n[coding]\npreset = \"{}\"", presets[index]);
            let underlay = "kind = \"ethernet\"\ninterface = \"v0\"";
            let text = endpoint(index as u8 + 1, underlay, &rest);
            let file = place.write(&format!("{index}.toml"), &text).display().to_string();
            let stats = place.path().join(format!("{index}.json")).display().to_string();
            Daemon::up(namespace, &[&file, "--stats-file", &stats])
        };
        let mut daemons = [start(0, &here), start(1, &there)];
        for (index, daemon) in daemons.iter_mut().enumerate() {
            let (ours, theirs) = (presets[index], presets[1 - index]);
            let peer = 2 - index;
            daemon.wait_for(&format!(
                "cannot exchange packets with station {peer}: it uses {theirs}, this station \
                 {ours}; set the same coding.preset and matching roles on both"
            ));
        }
        for (index, daemon) in daemons.into_iter().enumerate() {
            let (code, log) = daemon.stop();
            assert_eq!(code, Some(0), "{log}");
            assert_eq!(log.matches("cannot exchange packets").count(), 1, "{log}");
            let text = std::fs::read_to_string(place.path().join(format!("{index}.json"))).unwrap();
            let report: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(report["mode"], presets[index]);
            let peer = &report["peers"][0];
            assert_eq!(peer["mode"], presets[1 - index]);
            assert_eq!(peer["mode_differs"], true);
        }
    });
}

/// The hardware address of a namespace's end of the cable.
fn namespace_mac(namespace: &Namespace) -> String {
    let link = &namespace.ip_json("link show v0")[0];
    link["address"].as_str().expect("an address").to_owned()
}
