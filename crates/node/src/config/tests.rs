//! Valid and invalid files: the errors reported, and the places they point to.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use super::file::PskText;
use super::*;
use crate::reload::Changes;

const PSK: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// A valid file; tests change a line of it, or add lines.
pub(super) const SOUND: &str = r#"[station]
id = 1
role = "endpoint"
[security]
psk = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
[tun]
name = "corridor0"
addresses = ["10.9.0.1/24", "fd00:9::1/64"]
routes = ["10.8.0.0/16"]
[underlay]
kind = "ethernet"
interface = "wlan0"
[[peer]]
id = 2
role = "endpoint"
[[peer]]
id = 3
role = "helper"
mac = "02:00:00:00:00:03"
"#;

pub(super) fn parse(text: &str) -> Result<NodeConfig, Box<Diagnostic>> {
    let document = Document::new("node.toml", text);
    let file: File = document.read()?;
    let psk = file.security.psk.clone().unwrap_or(PskText([0; 32].into()));
    check::check(file, psk.0.into(), &document)
}

/// The error of a file in one line: place, message, help.
pub(super) fn complaint(text: &str) -> String {
    let said = match parse(text).and_then(|config| config.check(1500)) {
        Ok(_) => return "sound".into(),
        Err(said) => said,
    };
    said.to_string().replacen("node.toml:", "", 1)
}

/// The error of the valid file with this text replaced by that.
fn changed(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    complaint(&SOUND.replacen(from, to, 1))
}

#[test]
fn a_sound_file_is_read() {
    let config = parse(SOUND).unwrap();
    assert_eq!(config.role, Role::Endpoint { peer: StationId(2), helper: Some(StationId(3)) });
    assert_eq!(config.security.shared().unwrap().as_bytes()[31], 0x1f);
    assert_eq!(config.coding, CodingParams::default());
    assert_eq!(config.link_errors, LinkErrors::Measured);
    assert_eq!(config.limits.ingress_packets, 100);
    assert_eq!(config.peers[1].mac, Some(Mac([2, 0, 0, 0, 0, 3])));
    let UnderlayKind::Ethernet { ethertype, qdisc_bypass, .. } = config.underlay.kind else {
        panic!("{:?}", config.underlay)
    };
    assert_eq!((ethertype, qdisc_bypass), (0x88B5, false));
    let tun = config.tun.unwrap();
    assert_eq!(tun.addresses.len(), 2);
    assert_eq!(tun.routes[0].to_string(), "10.8.0.0/16");
}

#[test]
fn names_that_do_not_exist_are_told_with_the_nearest() {
    assert_eq!(
        changed("interface =", "interfaces ="),
        "12:1: `interfaces` is not known in [underlay] (did you mean `interface`?)"
    );
    assert_eq!(changed("[tun]", "[tunn]"), "6:2: `tunn` is not known (did you mean `tun`?)");
    assert_eq!(
        changed("id = 1", "id = 1\nmac = \"02:00:00:00:00:01\""),
        "3:1: `mac` is not known in [station] (`mac` belongs to [peer])"
    );
    assert_eq!(
        changed("id = 3", "id = 3\nzzz = 1"),
        "18:1: `zzz` is not known in [peer] (known keys: id, role, mac, endpoint, public_key, psk_file, allowed)"
    );
    assert_eq!(
        complaint(&format!("{SOUND}[coding]\nblocksize = 3\n")),
        "21:1: `blocksize` is not known in [coding] (did you mean `block_size`?)"
    );
}

#[test]
fn values_of_another_type_are_told_with_what_was_expected() {
    assert_eq!(
        changed("id = 1", "id = \"one\""),
        "2:6: station.id = \"one\": expected a station number from 1 to 65535"
    );
    assert_eq!(
        changed("id = 1", "id = 65536"),
        "2:6: station.id = 65536: expected a station number from 1 to 65535"
    );
    assert_eq!(
        changed("role = \"endpoint\"", "role = \"endpiont\""),
        "3:8: station.role = \"endpiont\": expected \"endpoint\", \"helper\", \"plain\" \
         or \"relay\" (did you mean \"endpoint\"?)"
    );
    assert_eq!(
        changed("fd00:9::1/64", "fd00:9::1/129"),
        "8:29: tun.addresses = \"fd00:9::1/129\": expected addresses with prefix length, such as \
         [\"10.9.0.1/24\", \"fd00:9::1/64\"]"
    );
    assert_eq!(
        changed("\"02:00:00:00:00:03\"", "\"03:00:00:00:00:03\""),
        "19:7: peer.mac = \"03:00:00:00:00:03\": expected a unicast MAC address such as \
         \"02:00:00:00:00:02\""
    );
    assert_eq!(
        changed("\"wlan0\"", "\"wlan0/with a long name\""),
        "12:13: underlay.interface = \"wlan0/with a long name\": expected an interface name of 1 \
         to 15 characters"
    );
    assert_eq!(
        complaint(&format!("{SOUND}[coding]\norder = \"onthefly\"\n")),
        "21:9: coding.order = \"onthefly\": expected \"systematic\", \"dense\" or \"on-the-fly\" \
         (did you mean \"on-the-fly\"?)"
    );
}

#[test]
fn what_is_missing_is_told_at_its_table() {
    assert_eq!(
        changed("id = 3\n", ""),
        "16:1: peer.id is missing: expected a station number from 1 to 65535"
    );
    assert_eq!(
        changed("interface = \"wlan0\"\n", ""),
        "10:1: underlay.interface is missing: expected an interface name, such as \"wlan0\""
    );
    let (before, _) = SOUND.split_once("[[peer]]").unwrap();
    assert_eq!(complaint(before), " peer is missing: expected one table per peer: [[peer]]");
    assert_eq!(
        complaint(&SOUND.replace("[tun]\nname = \"corridor0\"\n", "").replace(
            "addresses = [\"10.9.0.1/24\", \"fd00:9::1/64\"]\nroutes = [\"10.8.0.0/16\"]\n",
            ""
        )),
        "3:8: [tun] is missing: expected a table [tun] (only helpers have none)"
    );
}

#[test]
fn broken_syntax_is_told_where_it_breaks() {
    assert_eq!(
        changed("id = 1", "id = "),
        "2:6: not TOML: string values must be quoted, expected literal string"
    );
}

/// A hub with two peers that have these networks.
fn hub(first: &str, second: &str) -> String {
    let peers = format!("id = 2\nrole = \"endpoint\"\nallowed = {first}\n");
    let text = SOUND.replace("id = 2\nrole = \"endpoint\"\n", &peers);
    text.replace("role = \"helper\"", &format!("role = \"endpoint\"\nallowed = {second}"))
}

#[test]
fn a_hub_has_peers_with_networks_of_their_own() {
    let config = parse(&hub("[\"10.9.0.2/32\", \"fd00:9::2/128\"]", "[\"0.0.0.0/0\"]")).unwrap();
    let networks = config.networks().unwrap();
    assert_eq!((networks.len(), networks[0].1.len()), (2, 2));
    assert!(config.check(1500).is_ok());
    for (first, second, said) in [
        (
            "[\"10.9.0.2/32\"]",
            "[\"10.9.0.3/32\", \"10.9.0.2/32\"]",
            "20:27: peer.allowed = 10.9.0.2/32: used by both station 2 and station 3",
        ),
        (
            "[\"10.9.0.1/32\"]",
            "[]",
            "16:12: peer.allowed = 10.9.0.1/32 of station 2 is already in tun.addresses",
        ),
        (
            "[\"10.9.0.2/32\", \"10.9.0.2/32\"]",
            "[]",
            "16:27: peer.allowed = 10.9.0.2/32: duplicate at station 2",
        ),
        (
            "[\"10.9.0.2/24\"]",
            "[]",
            "16:12: peer.allowed = 10.9.0.2/24: expected a network, has host bits set (the \
             network is 10.9.0.0/24)",
        ),
        (
            "[\"10.9.0.2\"]",
            "[]",
            "16:12: peer.allowed = \"10.9.0.2\": expected networks with prefix length, such as \
             [\"10.9.0.2/32\", \"192.168.5.0/24\"]",
        ),
    ] {
        assert_eq!(complaint(&hub(first, second)), said);
    }
    // With a helper there is one other end.
    let helped =
        changed("role = \"endpoint\"\n[[peer]]", "role = \"endpoint\"\nallowed = []\n[[peer]]");
    assert!(helped.contains("a helper can only be used with a single endpoint peer"), "{helped}");
    let many: String = (4..=260)
        .map(|id| format!("[[peer]]\nid = {id}\nrole = \"endpoint\"\nallowed = []\n"))
        .collect();
    let said = complaint(&(hub("[]", "[]") + &many));
    assert!(said.contains("259 peers: expected at most 256"), "{said}");
}

#[test]
fn memory_is_told_in_bytes_and_has_to_do_for_all_peers() {
    let of = |memory: &str| hub("[]", "[]") + &format!("[limits]\nmemory = {memory}\n");
    for (memory, bytes) in [("64_000_000", 64_000_000), ("\"1.5G\"", 1_500_000_000)] {
        assert_eq!(parse(&of(memory)).unwrap().limits.memory_bytes, Some(bytes));
        assert_eq!(complaint(&of(memory)), "sound");
    }
    let said = complaint(&of("\"300k\""));
    assert!(said.starts_with("23:10: limits.memory = 300000: expected "), "{said}");
    assert!(said.ends_with(" bytes or more, for 2 peers"), "{said}");
    // The default is as much as all peers need.
    let many: String = (4..=257)
        .map(|id| format!("[[peer]]\nid = {id}\nrole = \"endpoint\"\nallowed = []\n"))
        .collect();
    for preset in ["window", "block", "paper", "tcp-nc"] {
        let of = |limits: &str| {
            let coding = format!("[coding]\npreset = \"{preset}\"\n{limits}");
            hub("[]", "[]") + &many + &coding
        };
        assert_eq!(complaint(&of("")), "sound", "{preset}");
        let said = complaint(&of("[limits]\nmemory = \"200M\"\n"));
        assert!(said.contains("limits.memory = 200000000: expected "), "{said}");
        assert!(said.ends_with(" bytes or more, for 256 peers"), "{said}");
    }
    let said = complaint(&of("\"64MB\""));
    assert_eq!(
        said,
        "23:10: limits.memory = \"64MB\": expected bytes, such as 256000000, \"256M\" or \"1.5G\""
    );
}

/// (TCP/NC's buffers, and long blocks, were shortened without a log message.)
#[test]
fn what_peers_have_fewer_of_for_want_of_memory_is_said() {
    let lines = |text: &str| {
        let config = parse(text).unwrap();
        let (station, _) = config.station(1_500, 0, [0; 32], Time::ZERO).unwrap();
        crate::memory::lines(&config, &station, |_| true)
    };
    assert_eq!(lines(SOUND), Vec::<String>::new());
    let of = |preset: &str| hub("[]", "[]") + &format!("[coding]\npreset = \"{preset}\"\n");
    assert_eq!(lines(&of("block")), Vec::<String>::new());
    let said = lines(&of("tcp-nc"));
    let expected = "each new peer, of 2 in all, has at least 112000000 bytes of limits.memory, \
                    room for 384 of 512 segments in a coding buffer of TCP/NC";
    assert_eq!(said, [expected]);
    let said = lines(&(of("block") + "[limits]\nmemory = \"4M\"\n"));
    let expected = "each new peer, of 2 in all, has at least 1750000 bytes of limits.memory, \
                    room for 4 of 8 blocks in flight, 5 of 8 blocks from the other end";
    assert_eq!(said, [expected]);
    let many: String = (4..=257)
        .map(|id| format!("[[peer]]\nid = {id}\nrole = \"endpoint\"\nallowed = []\n"))
        .collect();
    let said = lines(&(hub("[]", "[]") + &many + "[coding]\npreset = \"paper\"\n"));
    let expected = "limits.memory is not set: using 981425008 bytes, the least that 256 peers \
                    need, instead of the default of 256000000";
    assert_eq!(said.first().map(String::as_str), Some(expected), "{said:?}");
}

#[test]
fn peers_of_a_hub_come_and_go_while_it_runs() {
    let two = hub("[\"10.9.0.2/32\"]", "[\"10.9.0.3/32\"]");
    let third = "[[peer]]\nid = 9\nrole = \"endpoint\"\nallowed = [\"10.9.0.9/32\"]\n";
    let three = format!("{two}{third}");
    let changes = |old: &str, new: &str| {
        let changes = Changes::between(&parse(old).unwrap(), &parse(new).unwrap());
        (changes.live, changes.restart)
    };
    assert_eq!(changes(&two, &three), (vec!["peer"], vec![]));
    assert_eq!(changes(&three, &two), (vec!["peer"], vec![]));
    // Replacing the first peer does not change the role.
    let other = two.replace("id = 2\n", "id = 5\n");
    assert_eq!(changes(&two, &other), (vec!["peer"], vec![]));
    // A pair is no hub, and its peer is its only one.
    let pair = SOUND.split("[[peer]]\nid = 3").next().unwrap();
    assert_eq!(changes(pair, &pair.replace("id = 2\n", "id = 5\n")).1, ["station", "peer"]);
    let more = format!("{three}[limits]\nmemory = \"64M\"\n");
    assert_eq!(changes(&two, &more), (vec!["peer"], vec!["limits"]));
}

#[test]
fn peers_must_fit_the_role() {
    assert_eq!(
        changed("role = \"helper\"", "role = \"endpoint\""),
        "13:1: peer.allowed of station 2 is missing: required with several peers (for example \
         allowed = [\"10.9.0.2/32\"]: addresses routed to and accepted from this peer)"
    );
    assert_eq!(
        changed("id = 2\nrole = \"endpoint\"", "id = 2\nrole = \"helper\""),
        "18:8: an endpoint can have at most one helper peer"
    );
    assert_eq!(
        changed("id = 2\nrole = \"endpoint\"", "id = 2\nrole = \"plain\""),
        "15:8: an endpoint cannot have a plain peer: expected \"endpoint\" or \"helper\""
    );
    assert_eq!(
        changed("id = 1\nrole = \"endpoint\"", "id = 1\nrole = \"plain\""),
        "15:8: a plain station can only have plain peers: expected \"plain\""
    );
}

#[test]
fn a_helper_has_two_endpoints_and_no_tun() {
    let helper = SOUND.replace("id = 1\nrole = \"endpoint\"", "id = 1\nrole = \"helper\"");
    assert_eq!(
        complaint(&helper),
        "18:8: a helper cannot have a helper peer: expected \"endpoint\""
    );
    let two = helper.replace("id = 3\nrole = \"helper\"", "id = 3\nrole = \"endpoint\"");
    assert_eq!(complaint(&two), "6:1: a helper cannot have [tun]: it has no traffic of its own");
    let (_, one) = two.rsplit_once("[[peer]]").unwrap();
    assert_eq!(
        complaint(&two.replace(&format!("[[peer]]{one}"), "")),
        "3:8: a helper needs exactly two [[peer]] of role \"endpoint\", but has 1"
    );
}

#[test]
fn the_underlays_keys_are_kept_apart() {
    assert_eq!(
        changed("interface = \"wlan0\"", "interface = \"wlan0\"\nlisten = \"0.0.0.0:4242\""),
        "13:10: underlay.listen requires kind = \"udp\", but this is \"ethernet\""
    );
    assert_eq!(
        changed("id = 2", "id = 2\nendpoint = \"192.0.2.1:4242\""),
        "15:12: peer.endpoint requires the udp underlay, but this is \"ethernet\""
    );
    assert_eq!(
        changed("interface = \"wlan0\"", "interface = \"wlan0\"\nethertype = 100"),
        "13:13: underlay.ethertype = 0x0064: expected 0x0600 to 0xffff (0x88b5 and 0x88b6 are \
         reserved for local use)"
    );
}

/// A valid file of two endpoints over UDP.
fn udp(underlay: &str, peer: &str) -> String {
    let (before, _) = SOUND.split_once("[underlay]").unwrap();
    format!("{before}[underlay]\nkind = \"udp\"\n{underlay}\n[[peer]]\nid = 2\n{peer}\n")
}

#[test]
fn over_udp_one_side_must_know_the_other() {
    let endpoint = "role = \"endpoint\"";
    let known = format!("{endpoint}\nendpoint = \"192.0.2.1:4242\"");
    assert_eq!(complaint(&udp("listen = \"[::]:4242\"", &known)), "sound");
    assert_eq!(complaint(&udp("", &known)), "sound");
    assert_eq!(complaint(&udp("listen = \"0.0.0.0:4242\"", endpoint)), "sound");
    assert_eq!(
        complaint(&udp("", endpoint)),
        "13:1: peer.endpoint and underlay.listen are both missing: neither side could reach the \
         other (set the peer's address and port, or a port to listen on)"
    );
    assert_eq!(
        complaint(&udp("listen = \"[fd00::1]:4242\"", &known)),
        "16:12: peer.endpoint = 192.0.2.1:4242 cannot be reached from underlay.listen = \
         [fd00::1]:4242 (both must be IPv4 or both IPv6; \"[::]:4242\" listens on both)"
    );
    assert_eq!(
        complaint(&udp("", &format!("{endpoint}\nendpoint = \"192.0.2.1\""))),
        "16:12: peer.endpoint = \"192.0.2.1\": expected an address or host name with a port, such as \
         \"192.0.2.1:4242\", \"[2001:db8::1]:4242\" or \"peer.example.org:4242\""
    );
    let named = format!("{endpoint}\nendpoint = \"peer.example.org:4242\"");
    assert_eq!(complaint(&udp("", &named)), "sound");
}

#[test]
fn a_helper_must_overhear() {
    assert_eq!(
        complaint(&udp(
            "listen = \"0.0.0.0:4242\"",
            "role = \"helper\"\n[[peer]]\nid = 3\nrole = \"endpoint\""
        )),
        "15:8: a helper cannot work over the udp underlay (a helper overhears frames, which \
         requires the ethernet underlay)"
    );
    let text = udp(
        "listen = \"0.0.0.0:4242\"",
        "role = \"endpoint\"\n[[peer]]\nid = 3\nrole = \"endpoint\"",
    );
    let said = complaint(&text.replacen("role = \"endpoint\"", "role = \"helper\"", 1));
    assert!(said.starts_with("11:8: a helper cannot work over the udp underlay"), "{said}");
    assert!(said.contains("overhears"), "{said}");
}

#[test]
fn the_stations_own_checks_point_into_the_file() {
    let coding = |line: &str| complaint(&format!("{SOUND}[coding]\n{line}\n"));
    assert_eq!(
        coding("block_size = 0"),
        "21:14: coding.block_size = 0: expected 1 to 1024 symbols"
    );
    assert!(
        coding("symbol_size = 9000")
            .starts_with("21:15: coding.symbol_size = 9000: expected 64 to "),
        "{}",
        coding("symbol_size = 9000")
    );
    assert_eq!(
        coding("encoder_timeout_ms = -3.0"),
        "21:22: coding.encoder_timeout_ms = 0: expected 1 to 60000 ms"
    );
    assert_eq!(
        changed("id = 2", "id = 1"),
        "14:6: peer.id = 1: expected a number no other station of the group has"
    );
    assert_eq!(
        changed("id = 1", "id = 0"),
        "2:6: station.id = 0: expected a station number from 1 to 65535"
    );
    assert_eq!(
        complaint(&format!("{SOUND}[limits]\ningress_packets = 0\n")),
        "21:19: limits.ingress_packets = 0: expected 1 to 65536 packets"
    );
}

#[test]
fn ratios_are_ratios() {
    let link = |line: &str| {
        complaint(&format!("{SOUND}[synthetic_loss]\nseed = 1\n[[synthetic_loss.link]]\n{line}\n"))
    };
    assert_eq!(link("from = 2\nratio = 1.0"), "sound");
    assert_eq!(
        link("from = 2\nratio = 1.1"),
        "24:9: synthetic_loss.link.ratio = 1.1: expected 0 to 1"
    );
    assert_eq!(
        link("from = 2\nratio = nan"),
        "24:9: synthetic_loss.link.ratio = NaN: expected 0 to 1"
    );
    assert_eq!(
        link("from = 9\nratio = 0.1"),
        "23:8: synthetic_loss.link.from = 9: expected the number of a peer"
    );
    let errors = |line: &str| complaint(&format!("{SOUND}[link_errors]\n{line}\n"));
    assert_eq!(errors("mode = \"fixed\"\ne1 = 0.1\ne2 = 0.1\ne3 = 0.3"), "sound");
    assert_eq!(
        errors("mode = \"fixed\"\ne3 = 0.3"),
        "20:1: link_errors.e1 is missing: required by mode = \"fixed\""
    );
    assert_eq!(
        errors("e3 = 0.3"),
        "21:6: link_errors.e3 requires mode = \"fixed\", but this is \"measured\""
    );
}

#[test]
fn offload_of_the_tun_device_can_be_turned_off() {
    assert!(parse(SOUND).unwrap().tun.unwrap().offload);
    let off = parse(&SOUND.replace("[tun]", "[tun]\noffload = false")).unwrap();
    assert!(!off.tun.unwrap().offload);
}

#[test]
fn the_tunnels_mtu_must_be_possible() {
    let most = parse(SOUND).unwrap().check(1500).unwrap();
    assert!((1400..1500).contains(&most), "{most}");
    let less = SOUND.replace("[tun]", "[tun]\nmtu = 1400");
    assert_eq!(parse(&less).unwrap().check(1500).unwrap(), 1400);
    assert_eq!(
        changed("[tun]", "[tun]\nmtu = 1490"),
        format!(
            "7:7: tun.mtu = 1490: expected 68 to {most} bytes (coding.symbol_size and the \
             underlay's MTU determine the maximum)"
        )
    );
    assert_eq!(
        changed("[tun]", "[tun]\nmtu = 1000"),
        "9:29: IPv6 needs an MTU of 1280 bytes, the tunnel has 1000 (raise tun.mtu or \
         coding.symbol_size, or remove IPv6)"
    );
    let routed = SOUND.replace(", \"fd00:9::1/64\"", "").replace("10.8.0.0/16", "fd00:8::/64");
    let said = complaint(&routed.replace("[tun]", "[tun]\nmtu = 1000"));
    assert!(said.starts_with("10:11: IPv6 needs"), "{said}");
    assert_eq!(
        changed("10.8.0.0/16", "10.8.1.0/16"),
        "9:11: tun.routes = 10.8.1.0/16: expected a network, has host bits set (the network \
         is 10.8.0.0/16)"
    );
}

/// Only `up` used to report this, after creating the interface: the kernel refused.
#[test]
fn an_address_is_given_once() {
    assert_eq!(
        changed("fd00:9::1/64", "10.9.0.1/24"),
        "8:29: tun.addresses = 10.9.0.1/24: duplicate address 10.9.0.1"
    );
    let twice = "fd00:9::1/64\", \"fd00:9::1/128";
    let said = changed("fd00:9::1/64", twice);
    assert!(said.ends_with("tun.addresses = fd00:9::1/128: duplicate address fd00:9::1"));
    // IPv4 may have it in several networks.
    assert!(parse(&SOUND.replace("fd00:9::1/64", "10.9.0.1/32")).is_ok());
}

/// Over UDP 576 used to be accepted here, and refused later as 528, which nobody had written.
#[test]
fn the_least_underlay_mtu_leaves_room_for_the_headers() {
    let udp = |mtu: u16| {
        let udp = format!("kind = \"udp\"\nmtu = {mtu}\nlisten = \"[::]:4242\"");
        let text = SOUND.replace("kind = \"ethernet\"\ninterface = \"wlan0\"", &udp);
        let (pair, _) = text.rsplit_once("[[peer]]").unwrap();
        pair.replace(", \"fd00:9::1/64\"", "")
    };
    let said = complaint(&udp(623));
    assert!(said.ends_with("underlay.mtu = 623: expected 624 to 9216 bytes over UDP"), "{said}");
    assert!(parse(&udp(624)).unwrap().check(624 - UDP_HEADERS).is_ok());
    let said = changed("interface = \"wlan0\"", "interface = \"wlan0\"\nmtu = 575");
    assert!(said.ends_with("expected 576 to 9216 bytes over Ethernet"), "{said}");
}

#[test]
fn a_key_is_never_shown() {
    let secret = &PSK[..60];
    for text in [
        SOUND.replace(PSK, secret),
        SOUND.replace(PSK, secret).replace("[station]", "[station"),
        SOUND.replace("[tun]", "[tunn]"),
        SOUND.replace("psk = ", "psk_ = "),
        SOUND.replace(&format!("psk = \"{PSK}\""), &format!("psk = \"\"\"\n{PSK}0\"\"\"")),
    ] {
        let said = parse(&text).unwrap_err();
        let message = said.to_string();
        let shown = format!("{message}{said:?}{}", said.render());
        assert!(!shown.contains("0405060708"), "{shown}");
    }
    let config = format!("{:?}", parse(SOUND).unwrap());
    assert!(config.contains("Shared(Psk(..))") && !config.contains("0001020304"), "{config}");
}

#[test]
fn a_key_is_found_and_checked() -> io::Result<()> {
    let place = tempfile::tempdir()?;
    let (config, key) = (place.path().join("node.toml"), place.path().join("key"));
    let load =
        |line: &str, key_text: &str, mode: u32| -> io::Result<Result<NodeConfig, NodeError>> {
            fs::write(&config, SOUND.replace(&format!("psk = \"{PSK}\""), line))?;
            fs::set_permissions(&config, fs::Permissions::from_mode(0o600))?;
            fs::write(&key, key_text)?;
            fs::set_permissions(&key, fs::Permissions::from_mode(mode))?;
            Ok(NodeConfig::load(&config))
        };
    let sound = load("psk_file = \"key\"", &format!(" {PSK}\n"), 0o600)?.unwrap();
    assert_eq!(sound.security.shared().unwrap().as_bytes()[31], 0x1f);
    assert!(sound.warnings.is_empty());
    let said = |result: Result<NodeConfig, NodeError>| result.unwrap_err().to_string();
    let open = said(load("psk_file = \"key\"", PSK, 0o644)?);
    assert!(open.contains("node.toml:5:12: security.psk_file: "), "{open}");
    assert!(open.ends_with(&format!("(chmod 600 {})", key.display())), "{open}");
    let inline = format!("psk = \"{PSK}\"");
    assert!(load(&inline, PSK, 0o600)?.is_ok());
    fs::set_permissions(&config, fs::Permissions::from_mode(0o604))?;
    let open = said(NodeConfig::load(&config));
    assert!(open.contains("mode 604"), "{open}");
    assert!(open.ends_with(&format!("(chmod 600 {})", config.display())), "{open}");
    assert!(
        said(load("psk_file = \"key\"", "abc", 0o600)?)
            .contains("key is not a key: expected 64 hexadecimal digits (`corridor genpsk`")
    );
    assert!(said(load("psk_file = \"none\"", "", 0o600)?).contains("none: No such file"));
    assert!(said(load("", "", 0o600)?).contains("none of psk, psk_file and private_key_file"));
    let both = format!("psk = \"{PSK}\"\npsk_file = \"key\"");
    assert!(said(load(&both, PSK, 0o600)?).contains("both psk and psk_file"));
    place.close()
}

/// A file of two ends with key pairs of their own; tests change a line of it, or add lines.
const KEYED: &str = r#"[station]
id = 1
role = "endpoint"
[security]
private_key_file = "own"
[tun]
[underlay]
kind = "udp"
listen = "0.0.0.0:4242"
[[peer]]
id = 2
role = "endpoint"
public_key = "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08="
"#;
/// The private key of that public key (RFC 7748, Section 6.1).
const PRIVATE: &str = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=";

#[test]
fn keys_of_ones_own_are_read_and_what_contradicts_them_is_told() -> io::Result<()> {
    let place = tempfile::tempdir()?;
    let put = |name: &str, text: &str, mode: u32| -> io::Result<()> {
        let path = place.path().join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))
    };
    let load = |text: &str| {
        put("node.toml", text, 0o644)?;
        Ok::<_, io::Error>(NodeConfig::load(&place.path().join("node.toml")))
    };
    let own = generate_key().unwrap();
    put("own", &format!("{}\n", *own), 0o600)?;
    put("psk", PSK, 0o600)?;
    let beside = KEYED.replace("\n[tun]", "\n[tun]\n") + "psk_file = \"psk\"\n";
    for (text, has_psk) in [(KEYED, false), (&*beside, true)] {
        let config = load(text)?.unwrap();
        let Security::Keys(keys) = &config.security else { panic!("{config:?}") };
        assert_eq!(keys.private.public().to_string(), public_key(&own).unwrap());
        assert_eq!((keys.peers.len(), keys.peers[0].psk.is_some()), (1, has_psk));
        assert_eq!(keys.peers[0].public.to_string(), public_key(PRIVATE).unwrap());
        assert!(!format!("{config:?}").contains(&own[..20]));
        assert!(config.check(1500).is_ok());
        assert!(config.has_keys_of(&config));
    }
    let said = |from: &str, to: &str| -> io::Result<String> {
        assert!(KEYED.contains(from), "{from}");
        let said = load(&KEYED.replacen(from, to, 1))?.unwrap_err();
        assert!(!format!("{said}{said:?}").contains(&own[..20]));
        Ok(said.to_string().split_once("node.toml:").unwrap().1.to_owned())
    };
    let own_line = "private_key_file = \"own\"";
    let peer_line = "public_key = \"3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=\"";
    let both = format!("{own_line}\npsk_file = \"psk\"");
    let with_helper = format!("{peer_line}\n[[peer]]\nid = 3\nrole = \"helper\"");
    let twice = format!("{peer_line}\n[[peer]]\nid = 3\nrole = \"endpoint\"\n{peer_line}");
    let ours = format!("public_key = \"{}\"", public_key(&own).unwrap());
    let inline = format!("private_key_file = \"{}\"", *own);
    let weak = format!("public_key = \"{}=\"", "A".repeat(43));
    let missing = format!("{peer_line}\npsk_file = \"none\"");
    for (from, to, expected) in [
        (own_line, &*both, "5:20: security has both private_key_file and a group key"),
        (own_line, "", "4:1: security has none of psk, psk_file and private_key_file"),
        (own_line, "psk_file = \"psk\"", "13:14: peer.public_key cannot be used with a group key"),
        (own_line, &inline, "5:20: security.private_key_file is a key: expected the path"),
        (peer_line, "", "10:1: peer.public_key of station 2 is missing: expected 44 characters"),
        (peer_line, "public_key = \"abc\"", "13:14: peer.public_key = \"abc\": expected 44"),
        (
            peer_line,
            &weak,
            "13:14: peer.public_key = AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=: weak key",
        ),
        (own_line, "private_key_file = \"none\"", "5:20: security.private_key_file: "),
        (peer_line, &missing, "14:12: peer.psk_file: "),
        (peer_line, &ours, "13:14: peer.public_key = "),
        (
            peer_line,
            &twice,
            "17:14: peer.public_key = 3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=: ",
        ),
        (peer_line, &with_helper, "14:1: peer.public_key of station 3 is missing"),
    ] {
        let said = said(from, to)?;
        assert!(said.starts_with(expected), "{said}\n{expected}");
    }
    put("own", &own, 0o640)?;
    load(KEYED)?.unwrap();
    put("own", &own, 0o644)?;
    let said = load(KEYED)?.unwrap_err().to_string();
    assert!(said.contains("is accessible to other users (mode 644)"), "{said}");
    put("own", PSK, 0o600)?;
    let said = load(KEYED)?.unwrap_err().to_string();
    assert!(said.contains("expected 44 characters of base64 (`corridor genkey`"), "{said}");
    place.close()
}

pub(super) fn warnings(text: &str) -> Vec<String> {
    let config = parse(text).unwrap_or_else(|said| panic!("{said}"));
    config.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn two_ends_have_a_window_and_a_helper_has_blocks() {
    assert_eq!(parse(SOUND).unwrap().coding, CodingParams::default());
    let (two, _) = SOUND.rsplit_once("[[peer]]").unwrap();
    let config = parse(two).unwrap();
    assert_eq!(config.coding, CodingParams::window());
    // Memory for all the lanes that a window may have.
    assert_eq!(config.limits.ingress_packets, 16_000);
    let block = parse(&format!("{two}[coding]\npreset = \"block\"\n")).unwrap();
    assert_eq!((block.coding, block.warnings.len()), (CodingParams::default(), 0));
    let old = format!("{two}[coding]\npreset = \"default\"\n");
    assert_eq!(parse(&old).unwrap().coding, CodingParams::default());
    assert_eq!(
        warnings(&old),
        ["node.toml:17:10: coding.preset = \"default\" is deprecated: use \"block\""]
    );
}

#[test]
fn keys_that_change_nothing_are_warned_of() {
    let (two, _) = SOUND.rsplit_once("[[peer]]").unwrap();
    assert_eq!(
        warnings(&format!("{two}[coding]\nblock_size = 3\n[synthetic_loss]\nseed = 1\n")),
        [
            "node.toml:17:14: coding.block_size has no effect: coding.preset defaults to \
             \"window\" here",
            "node.toml:19:8: synthetic_loss.seed has no effect: there is no \
             [[synthetic_loss.link]]",
        ]
    );
    assert_eq!(
        warnings(&format!("{SOUND}[coding]\npreset = \"paper\"\ngoal = \"low-delay\"\n")),
        ["node.toml:22:8: coding.goal has no effect: coding.preset is \"paper\""]
    );
    let fixed = "[link_errors]\nmode = \"fixed\"\ne1 = 0.1\ne2 = 0.1\ne3 = 0.3\n";
    assert_eq!(warnings(&format!("{SOUND}{fixed}")).len(), 0);
    let said = warnings(&format!("{two}{fixed}"));
    assert_eq!(said[0], "node.toml:18:6: link_errors.e1 has no effect: there is no helper");
    let plain = two.replace("\"endpoint\"", "\"plain\"");
    let said = warnings(&format!("{plain}[coding]\npreset = \"block\"\n"));
    assert_eq!(said, ["node.toml:16:1: coding has no effect: plain stations do not code"]);
}

#[test]
fn rates_have_units() {
    let rate = |text: &str| changed("kind =", &format!("rate_bps = {text}\nkind ="));
    for sound in ["10_000_000", "\"10M\"", "\"1.5G\"", "\"500k\""] {
        assert_eq!(rate(sound), "sound");
    }
    let fast = parse(&SOUND.replace("kind =", "rate_bps = \"1.5M\"\nkind =")).unwrap();
    assert_eq!(fast.underlay.rate_bps, Some(1_500_000));
    assert_eq!(
        rate("\"10 Mbit\""),
        "11:12: underlay.rate_bps = \"10 Mbit\": expected bits per second, such as 10000000, \"10M\", \
         \"1.5G\" or \"500k\""
    );
    assert_eq!(rate("10"), "11:12: underlay.rate_bps = 10: expected at least 1000 bit/s");
}

/// The ranges that the types document, for people and editors, agree with the protocol's checks.
#[test]
fn ranges_are_those_of_the_check() {
    let schema = schema();
    // Long coding vectors leave too little of a frame for IPv6.
    let sound = SOUND.replace(", \"fd00:9::1/64\"", "");
    let of = |key: &str, bound: &str| {
        let coding = &schema.json()["properties"]["coding"]["properties"];
        coding[key][bound].as_f64().unwrap_or_else(|| panic!("{key}: {coding}"))
    };
    for key in ["block_size", "blocks_in_flight", "encoder_timeout_ms", "overshoot", "window_size"]
    {
        let said = |value: f64| {
            let spelled = if key.ends_with("_ms") || key == "overshoot" {
                format!("{value:?}")
            } else {
                format!("{value}")
            };
            complaint(&format!("{sound}[coding]\n{key} = {spelled}\n"))
        };
        for value in [of(key, "minimum"), of(key, "maximum")] {
            assert_eq!(said(value), "sound", "{key} = {value}");
        }
        for value in [of(key, "minimum") - 1.0, of(key, "maximum") + 1.0] {
            assert!(said(value).contains(": expected "), "{key} = {value}: {}", said(value));
        }
    }
}
