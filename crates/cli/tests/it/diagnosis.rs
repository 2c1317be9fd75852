//! Causes that keep two daemons apart: each reports the cause in one line, after five seconds.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::support::{Daemon, Namespace, Place, endpoint, with_net};

/// Longest wait for a line that is due after five seconds, since other tests run in parallel.
const LATE: Duration = Duration::from_secs(60);
const LISTENS: &str = "kind = \"udp\"\nlisten = \"0.0.0.0:4242\"";
const NEAR: &str = "endpoint = \"192.168.7.1:4242\"";
const FAR: &str = "endpoint = \"192.168.7.2:4242\"";

/// Two namespaces, a cable between them, and a directory for files.
fn cable(test: &str) -> (Namespace, Namespace, Place) {
    let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    near.cable("v0", &far, "v0");
    near.ip("addr add 192.168.7.1/24 dev v0");
    far.ip("addr add 192.168.7.2/24 dev v0");
    (near, far, Place::new(test))
}

fn up(namespace: &Namespace, place: &Place, name: &str, text: &str) -> Daemon {
    let file = place.write(&format!("{name}.toml"), text);
    Daemon::up(namespace, &[file.to_str().unwrap()])
}

/// The line that says why there is no session, without its level, and with numbers of frames
/// replaced by N.
fn reason(daemon: &Daemon) -> String {
    let start = Instant::now();
    loop {
        let log = daemon.log();
        if let Some((_, reason)) =
            log.lines().find_map(|line| line.split_once("no session with station 2 for 5 s: "))
        {
            return counts_as_n(reason);
        }
        assert!(start.elapsed() < LATE, "no reason is given\n{log}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Replaces numbers that stand alone, or follow a bracket, by N.
fn counts_as_n(line: &str) -> String {
    let word = |word: &str| match word.strip_prefix('(') {
        Some(rest) if rest.parse::<u64>().is_ok() => "(N".to_owned(),
        _ if word.trim_end_matches("):").parse::<u64>().is_ok() && word.ends_with("):") => {
            "N):".to_owned()
        }
        _ if word.parse::<u64>().is_ok_and(|number| number > 4) => "N".to_owned(),
        _ => word.to_owned(),
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn another_key_is_said() {
    with_net("another_key_is_said", || {
        let (near, far, place) = cable("key");
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, FAR));
        let other = endpoint(2, LISTENS, NEAR).replace("psk = \"00", "psk = \"ff");
        let _other = up(&far, &place, "2", &other);
        assert_eq!(
            reason(&daemon),
            "N frames from 192.168.7.2:4242 failed authentication: the keys differ"
        );
    });
}

#[test]
fn an_address_without_a_host_is_said() {
    with_net("an_address_without_a_host_is_said", || {
        let (near, _far, place) = cable("host");
        let wrong = "endpoint = \"192.168.7.99:4242\"";
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, wrong));
        assert_eq!(
            reason(&daemon),
            "network error for 192.168.7.99:4242: host unreachable (N errors)"
        );
    });
}

#[test]
fn a_port_without_a_listener_is_said() {
    with_net("a_port_without_a_listener_is_said", || {
        let (near, _far, place) = cable("port");
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, FAR));
        assert_eq!(
            reason(&daemon),
            "network error for 192.168.7.2:4242: port unreachable, no process listens on it (N \
             errors)"
        );
    });
}

#[test]
fn an_address_that_swallows_everything_is_said() {
    with_net("an_address_that_swallows_everything_is_said", || {
        let (near, _far, place) = cable("swallow");
        // Frames are sent to an interface that nobody has.
        near.ip("neigh add 192.168.7.77 lladdr 02:00:00:00:00:77 dev v0");
        let wrong = "endpoint = \"192.168.7.77:4242\"";
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, wrong));
        assert_eq!(
            reason(&daemon),
            "no answer from 192.168.7.77:4242 to N frames: wrong address, firewall on the path, or \
             no node running there"
        );
    });
}

#[test]
fn another_version_is_said() {
    with_net("another_version_is_said", || {
        let (near, far, place) = cable("version");
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, FAR));
        let future = far.run(|| UdpSocket::bind("192.168.7.2:4242").unwrap());
        let mut frame = [0; 60];
        frame[0] = 2 << 4 | 3 << 1;
        let start = Instant::now();
        while !daemon.log().contains("no session") && start.elapsed() < LATE {
            // Before the daemon listens, the kernel there refuses.
            let _ = future.send_to(&frame, "192.168.7.1:4242");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(
            reason(&daemon),
            "192.168.7.2:4242 uses wire version 2, this station N (N frames); install the same \
             release on both"
        );
    });
}

#[test]
fn frames_that_this_host_refuses_are_said() {
    with_net("frames_that_this_host_refuses_are_said", || {
        let (near, _far, place) = cable("refused");
        let nowhere = "endpoint = \"203.0.113.5:4242\"";
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, nowhere));
        assert_eq!(
            reason(&daemon),
            "cannot send frames to 203.0.113.5:4242 (N of N failed): no route to host"
        );
    });
}

#[test]
fn frames_that_are_too_long_for_the_interface_are_said() {
    with_net("frames_that_are_too_long_for_the_interface_are_said", || {
        let (near, _far, place) = cable("long");
        let mut daemon = up(&near, &place, "1", &endpoint(1, LISTENS, FAR));
        daemon.wait_for("station 1 is up");
        // Not even a HELLO fits.
        near.ip("link set v0 mtu 80");
        assert_eq!(
            reason(&daemon),
            "cannot send frames to 192.168.7.2:4242 (N of N failed): frames exceed the interface \
             MTU; lower underlay.mtu"
        );
    });
}

#[test]
fn numbers_of_stations_that_do_not_fit_are_said_on_both_sides() {
    with_net("numbers_of_stations_that_do_not_fit_are_said_on_both_sides", || {
        let (near, far, place) = cable("number");
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, FAR));
        let third = endpoint(2, LISTENS, NEAR).replace("id = 2\n", "id = 3\n");
        let third = up(&far, &place, "3", &third);
        assert_eq!(
            reason(&daemon),
            "the station at 192.168.7.2:4242 has the right key but identifies as station 3 (N \
             HELLOs); set peer.id here to its station.id"
        );
        let start = Instant::now();
        let words = "HELLOs), but it does not receive from this station: a firewall or address \
                     translation on the path, or its peer.id is not this station's station.id";
        while !third.log().contains(words) {
            assert!(start.elapsed() < LATE, "{}", third.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        let (code, log) = third.stop();
        assert_eq!(code, Some(0));
        assert!(
            log.contains("no session with station 1 for 5 s: receiving from 192.168.7.1:4242"),
            "{log}"
        );
    });
}

#[test]
fn two_stations_of_one_number_are_said() {
    with_net("two_stations_of_one_number_are_said", || {
        let (near, far, place) = cable("twins");
        let daemons = [(near, "a", FAR), (far, "b", NEAR)].map(|(namespace, name, other)| {
            up(&namespace, &place, name, &endpoint(1, LISTENS, other))
        });
        for (daemon, at) in daemons.iter().zip(["192.168.7.2", "192.168.7.1"]) {
            assert_eq!(
                reason(daemon),
                format!(
                    "the station at {at}:4242 has the same station.id as this one (N HELLOs); \
                     change one of them"
                )
            );
        }
    });
}

#[test]
fn a_station_that_is_its_own_peer_is_said() {
    with_net("a_station_that_is_its_own_peer_is_said", || {
        let (near, _far, place) = cable("loop");
        let daemon = up(&near, &place, "1", &endpoint(1, LISTENS, NEAR));
        assert_eq!(
            reason(&daemon),
            "this station's own frames come back from 192.168.7.1:4242 (N frames); peer.endpoint \
             must be the address of another station"
        );
    });
}
