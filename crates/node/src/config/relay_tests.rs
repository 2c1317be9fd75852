//! Files of relays: valid ones, and the errors of invalid ones.

use super::tests::{SOUND, complaint, parse, warnings};
use super::*;

/// A valid file of a relay between two others.
const RELAY: &str = r#"[station]
id = 2
role = "relay"
[security]
psk = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
[tun]
name = "corridor0"
addresses = ["10.9.0.2/24", "fd00:9::2/64"]
[underlay]
kind = "ethernet"
interface = "wlan0"
[relay]
preset = "paper"
[[peer]]
id = 1
role = "relay"
allowed = ["10.9.0.1/32"]
[[peer]]
id = 3
role = "relay"
allowed = ["10.9.0.3/32", "192.168.5.0/24"]
"#;

#[test]
fn a_relay_has_neighbours_with_networks_and_a_preset() {
    let config = parse(RELAY).unwrap();
    assert_eq!((config.role, config.role_name()), (Role::Relay, "relay"));
    assert_eq!(config.relay, Some(RelayConfig::paper()));
    assert_eq!(config.warnings.len(), 0);
    // A frame of 1500 bytes less headers, both parts of a coded frame, reports, and the tag.
    assert_eq!(config.check(1500).unwrap(), 1421);
    let without = RELAY.replace("[relay]\npreset = \"paper\"\n", "");
    assert_eq!(parse(&without).unwrap().relay, Some(RelayConfig::default()));
    let own = RELAY.replace("\"paper\"", "\"default\"\ncoding = false\nqueue_packets = 20");
    let relay = parse(&own).unwrap().relay.unwrap();
    assert_eq!((relay.coding, relay.queue_packets), (false, 20));
    let broadcast = RELAY.replace("\"wlan0\"", "\"wlan0\"\nbroadcast = true");
    assert!(parse(&broadcast).unwrap().check(1500).is_ok());
}

#[test]
fn relays_that_wait_for_retries_are_warned_of() {
    let said = |table: &str| warnings(&RELAY.replace("preset = \"paper\"", table));
    let why = "packets here: underlay.retries is not set, so MAC retries are not known";
    for (table, expected) in [
        (
            "preset = \"paper-adaptive\"",
            format!("13:10: relay.adaptive = \"coding\" combines no {why}"),
        ),
        ("adaptive = \"coding\"", format!("13:12: relay.adaptive = \"coding\" combines no {why}")),
        ("adaptive = \"holding\"", format!("13:12: relay.adaptive = \"holding\" holds no {why}")),
        ("retries_per_second = 9", "13:22: relay.retries_per_second has no effect".to_owned()),
    ] {
        let said = said(table);
        assert!(said.len() == 1 && said[0].contains(&format!("node.toml:{expected}")), "{said:?}");
    }
    for fine in ["preset = \"paper\"", "adaptive = \"off\"", "preset = \"default\""] {
        assert_eq!(said(fine), Vec::<String>::new());
    }
    let told = RELAY.replace("\"paper\"", "\"paper-adaptive\"\nretries_per_second = 9");
    for source in ["file:/run/retries", "nl80211"] {
        let told = told.replace("\"wlan0\"", &format!("\"wlan0\"\nretries = \"{source}\""));
        assert_eq!(warnings(&told), Vec::<String>::new());
    }
    let off = "preset = \"paper-adaptive\"\nadaptive = \"off\"";
    assert_eq!(said(off), Vec::<String>::new());
}

#[test]
fn what_cannot_be_of_relays_is_said_at_its_place() {
    let changed = |from: &str, to: &str| {
        assert!(RELAY.contains(from), "{from}");
        complaint(&RELAY.replacen(from, to, 1))
    };
    let many: String = (10..17)
        .map(|id| format!("[[peer]]\nid = {id}\nrole = \"relay\"\nallowed = []\n"))
        .collect();
    for (said, expected) in [
        (changed("\"paper\"", "\"papers\""), "13:10: relay.preset = \"papers\": expected"),
        (changed("\"paper\"", "\"paper\"\nhold_ms = -1"), "14:11: relay.hold_ms = -1: expected 0"),
        (
            changed("\"paper\"", "\"paper\"\nqueue_packets = 1"),
            "14:17: relay.queue_packets = 1: expected 2 to 4096 packets",
        ),
        (
            changed("\"paper\"", "\"paper\"\nheard_ratio_min = 0.5"),
            "14:19: relay.heard_ratio_min = 0.5: expected nothing without switch_off",
        ),
        (
            changed("allowed = [\"10.9.0.1/32\"]\n", ""),
            "14:1: peer.allowed of station 1 is missing: expected the networks behind it",
        ),
        (
            changed("allowed = [\"10.9.0.1/32\"]", "allowed = [\"10.9.0.3/32\"]"),
            "21:12: peer.allowed = 10.9.0.3/32: used by both station 1 and station 3",
        ),
        (
            changed("[[peer]]\nid = 1\nrole = \"relay\"", "[[peer]]\nid = 1\nrole = \"plain\""),
            "16:8: a relay can only have relays as peers",
        ),
        (
            changed("role = \"relay\"", "role = \"endpoint\""),
            "16:8: only relays can have relays as peers: expected another role",
        ),
        (
            changed("kind = \"ethernet\"\ninterface = \"wlan0\"", "kind = \"udp\""),
            "10:8: a relay cannot work over the udp underlay",
        ),
        (
            changed("\"wlan0\"", "\"wlan0\"\nbroadcast = true\nretries = \"file:/run/retries\""),
            "13:11: underlay.retries cannot be used with underlay.broadcast = true",
        ),
        (
            changed("\"wlan0\"", "\"wlan0\"\nretries = \"wlan0\""),
            "12:11: underlay.retries = \"wlan0\": expected \"nl80211\" or \"file:PATH\"",
        ),
        (complaint(&format!("{RELAY}{many}")), "30:1: 9 peers: expected at most 4 for a relay"),
        (
            complaint(&format!("{SOUND}[relay]\ncoding = true\n")),
            "20:1: relay requires station.role = \"relay\"",
        ),
    ] {
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
    let idle = format!("{RELAY}[coding]\npreset = \"block\"\n[limits]\ningress_packets = 9\n");
    let said = warnings(&idle);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("relays are configured by [relay]"), "{said:?}");
    assert!(said[1].contains("relay.queue_packets limits the queue"), "{said:?}");
}
