//! Files of relays that name other ends: valid ones, and the errors of invalid ones.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A valid file of an end of a row.
const END: &str = r#"[station]
id = 1
role = "relay"
[security]
private_key_file = "own"
[tun]
addresses = ["10.9.0.1/24"]
[underlay]
kind = "ethernet"
interface = "wlan0"
[[peer]]
id = 2
role = "relay"
public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
allowed = ["10.9.0.0/24"]
[[end]]
networks = ["10.9.0.3/32", "192.168.5.0/24"]
public_key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
psk_file = "psk"
"#;

#[test]
fn ends_are_read_and_what_cannot_be_of_them_is_said_at_its_place() -> io::Result<()> {
    let place = tempfile::tempdir()?;
    let put = |name: &str, text: &str| -> io::Result<()> {
        let path = place.path().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
    };
    let own = generate_key().unwrap();
    put("own", &own)?;
    put("psk", &"0a".repeat(32))?;
    let load = |text: &str| {
        put("node.toml", text)?;
        Ok::<_, io::Error>(NodeConfig::load(&place.path().join("node.toml")))
    };
    let config = load(END)?.unwrap();
    assert_eq!((config.ends.len(), config.ends[0].networks.len()), (1, 2));
    assert!(config.ends[0].psk.is_some());
    let (tables, _) = END.split_once("[[end]]").unwrap();
    let without = load(tables)?.unwrap();
    assert_eq!(without.ends, []);
    // The trailer of a packet in transit.
    assert_eq!(without.check(1500).unwrap() - config.check(1500).unwrap(), 15);
    let changes = crate::reload::Changes::between(&without, &config);
    assert_eq!((changes.live.len(), changes.restart), (0, vec!["end"]));

    let ours = public_key(&own).unwrap();
    let theirs = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let again = format!(
        "psk_file = \"psk\"\n[[end]]\nnetworks = [\"10.7.0.0/16\"]\npublic_key = \"{theirs}\""
    );
    let weak = format!("{}=", "A".repeat(43));
    for (from, to, expected) in [
        ("\"10.9.0.3/32\", ", "\"10.9.0.3/24\", ", "17:13: end.networks = 10.9.0.3/24: expected a"),
        ("\"10.9.0.3/32\", ", "\"10.9.0.1/32\", ", "17:13: end.networks = 10.9.0.1/32: already in"),
        (
            "\"192.168.5.0/24\"",
            "\"10.9.0.3/32\"",
            "17:28: end.networks = 10.9.0.3/32: already used",
        ),
        ("[\"10.9.0.3/32\", \"192.168.5.0/24\"]", "[]", "17:12: end.networks is empty"),
        (theirs, &*ours, "18:14: end.public_key = "),
        (theirs, "abc", "18:14: end.public_key = \"abc\": expected 44 characters"),
        (theirs, &*weak, "18:14: end.public_key = AAAA"),
        ("psk_file = \"psk\"", "psk_file = \"none\"", "19:12: end.psk_file: cannot read"),
        ("psk_file = \"psk\"", &*again, "22:14: end.public_key = "),
    ] {
        assert!(END.contains(from), "{from}");
        let said = load(&END.replacen(from, to, 1))?.unwrap_err().to_string();
        let said = said.split_once("node.toml:").unwrap().1;
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
    let shared = END
        .replace("private_key_file = \"own\"", "psk_file = \"psk\"")
        .replace("public_key = \"3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=\"\n", "");
    let said = load(&shared)?.unwrap_err().to_string();
    assert!(said.contains("[[end]] cannot be used with a group key"), "{said}");
    let endpoint = END
        .replace("role = \"relay\"", "role = \"endpoint\"")
        .replace("allowed = [\"10.9.0.0/24\"]\n", "");
    let said = load(&endpoint)?.unwrap_err().to_string();
    assert!(said.contains("[[end]] requires station.role = \"relay\""), "{said}");
    place.close()
}
