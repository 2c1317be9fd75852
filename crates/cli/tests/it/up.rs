//! `corridor up` with a real kernel: devices, signals, and errors.

use std::process::Command;
use std::time::Duration;

use crate::support::{Daemon, Namespace, Place, endpoint, until, with_net};
use nix::sys::signal::Signal;
use serde_json::Value;

const ETHERNET: &str = "kind = \"ethernet\"\ninterface = \"v0\"";

/// A namespace with a cable that ends in it, and the configuration of a station on it.
fn station(test: &str) -> (Namespace, Place, String) {
    let (namespace, place) = (Namespace::new().unwrap(), Place::new(test));
    namespace.ip("link add v0 type veth peer name v1");
    namespace.ip("link set v0 up");
    namespace.ip("link set v1 up");
    let file = place.write("node.toml", &endpoint(1, ETHERNET, ""));
    (namespace, place, file.display().to_string())
}

#[test]
fn the_device_comes_with_addresses_and_routes_and_goes_with_them() {
    with_net("the_device_comes_with_addresses_and_routes_and_goes_with_them", || {
        let (namespace, _place, file) = station("device");
        let mut daemon = Daemon::up(&namespace, &[&file]);
        daemon.wait_for("station 1 is up: endpoint, cor0 with MTU ");
        let device = &namespace.ip_json("addr show cor0")[0];
        assert!(daemon.log().contains(&format!("with MTU {} bytes", device["mtu"])));
        let has = |address: &str, prefix: u8| {
            device["addr_info"].as_array().unwrap().iter().any(|info| {
                info["local"] == address
                    && info["prefixlen"] == prefix
                    && info["tentative"].is_null()
            })
        };
        assert!(has("10.9.0.1", 24) && has("fd00:9::1", 64), "{device}");
        for (words, network) in [
            ("-4 route", "10.21.0.0/16"),
            ("-6 route", "fd00:21::/64"),
            ("-4 route", "10.9.0.0/24"),
        ] {
            let routes = namespace.ip_json(&format!("{words} show dev cor0"));
            let found = routes.as_array().unwrap().iter().any(|route| route["dst"] == network);
            assert!(found, "{network}: {routes}");
        }
        let (code, log) = daemon.stop();
        assert_eq!(code, Some(0), "{log}");
        assert!(!namespace.has("cor0"));
        assert!(!namespace.ip("route").contains("10.21"));
    });
}

#[test]
fn a_killed_daemon_leaves_nothing_behind() {
    with_net("a_killed_daemon_leaves_nothing_behind", || {
        let (namespace, _place, file) = station("killed");
        let mut daemon = Daemon::up(&namespace, &[&file]);
        daemon.wait_for("is up");
        daemon.signal(Signal::SIGKILL);
        assert_eq!(daemon.end().0, None);
        assert!(until(|| (!namespace.has("cor0")).then_some(())).is_some());
        assert!(!namespace.ip("route").contains("10.21"));
    });
}

#[test]
fn statistics_are_written_when_asked_and_at_the_end() {
    with_net("statistics_are_written_when_asked_and_at_the_end", || {
        let (namespace, place, file) = station("stats");
        let path = place.path().join("stats.json");
        let read = || -> Option<Value> {
            serde_json::from_str(&std::fs::read_to_string(&path).ok()?).ok()
        };
        let mut daemon = Daemon::up(&namespace, &[&file, "--stats-file", path.to_str().unwrap()]);
        daemon.wait_for("is up");
        assert!(read().is_none());
        daemon.signal(Signal::SIGUSR1);
        let first = until(read).expect("statistics");
        assert_eq!((&first["station"], &first["role"]), (&1.into(), &"endpoint".into()));
        daemon.signal(Signal::SIGINT);
        let (code, log) = daemon.end();
        assert_eq!(code, Some(0), "{log}");
        let last = read().expect("statistics");
        assert!(last["wall_s"].as_f64() > first["wall_s"].as_f64(), "{last}");
        assert!(last["cpu_s"].as_f64().is_some_and(|cpu| cpu < 5.0), "{last}");
        assert!(last["stats"]["frames_sent"].as_u64().is_some_and(|sent| sent > 0), "{last}");
        let names: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
        assert_eq!(names.len(), 2, "{names:?}");
    });
}

#[test]
fn statistics_that_cannot_be_written_are_a_failure() {
    with_net("statistics_that_cannot_be_written_are_a_failure", || {
        let (namespace, place, file) = station("full");
        let script = "mount -t tmpfs -o size=4k,mode=700 none $0/full || exit 99
            head -c 8192 /dev/zero > $0/full/zeros 2>/dev/null
            exec $1 up -v $2 --stats-file $0/full/stats.json";
        std::fs::create_dir(place.path().join("full")).unwrap();
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).arg(place.path());
        command.arg(env!("CARGO_BIN_EXE_corridor")).arg(&file);
        let mut daemon = Daemon::start(&namespace, command);
        daemon.wait_for("is up");
        let (code, log) = daemon.stop();
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("stats.json: No space left on device"), "{log}");
        assert!(!namespace.has("cor0"), "the rest is put in order all the same");
    });
}

#[test]
fn a_tun_device_that_vanishes_ends_the_daemon() {
    with_net("a_tun_device_that_vanishes_ends_the_daemon", || {
        let (namespace, _place, file) = station("tun-vanish");
        let mut daemon = Daemon::up(&namespace, &[&file]);
        daemon.wait_for("is up");
        namespace.ip("link set cor0 down");
        std::thread::sleep(Duration::from_millis(100));
        namespace.ip("link set cor0 up");
        namespace.ip("link del cor0");
        let (code, log) = daemon.end();
        assert_eq!(code, Some(1), "{log}");
        assert!(log.contains("TUN device cor0 has disappeared"), "{log}");
    });
}

#[test]
fn what_keeps_a_node_from_starting_is_told() {
    with_net("what_keeps_a_node_from_starting_is_told", || {
        let (namespace, place, file) = station("start");
        let ends = |daemon: Daemon, code: i32, words: &str| {
            let (ended, log) = daemon.end();
            assert_eq!(ended, Some(code), "{log}");
            assert!(log.contains(words), "{words}\n{log}");
        };
        namespace.ip("link add cor0 type veth peer name cor1");
        ends(Daemon::up(&namespace, &[&file]), 1, "interface cor0 already exists");
        namespace.ip("link del cor0");

        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", "mount -t tmpfs none /dev/net && exec $0 up $1"]);
        command.arg(env!("CARGO_BIN_EXE_corridor")).arg(&file);
        ends(Daemon::start(&namespace, command), 1, "/dev/net/tun is missing: load");

        let lo =
            place.write("lo.toml", &endpoint(1, "kind = \"ethernet\"\ninterface = \"lo\"", ""));
        ends(Daemon::up(&namespace, &[lo.to_str().unwrap()]), 1, "lo has no Ethernet address");

        let stats = place.path().join("none/stats.json");
        let arguments = [&file, "--stats-file", stats.to_str().unwrap()];
        ends(Daemon::up(&namespace, &arguments), 2, "none is not a directory");
    });
}

#[test]
fn a_route_that_exists_is_told_and_the_device_goes() {
    with_net("a_route_that_exists_is_told_and_the_device_goes", || {
        let (namespace, _place, file) = station("route");
        namespace.ip("route add 10.21.0.0/16 dev v1");
        let (code, log) = Daemon::up(&namespace, &[&file]).end();
        assert_eq!(code, Some(1), "{log}");
        assert!(
            log.contains("cannot add the route 10.21.0.0/16 through cor0: File exists"),
            "{log}"
        );
        assert!(!namespace.has("cor0"));
    });
}

#[test]
fn without_privileges_the_exit_code_says_so() {
    with_net("without_privileges_the_exit_code_says_so", || {
        let (namespace, _place, file) = station("privileges");
        // Root without capabilities: files can be read, but sockets and devices cannot be opened.
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all"]);
        command.arg(env!("CARGO_BIN_EXE_corridor")).args(["up", &file]);
        let (code, log) = Daemon::start(&namespace, command).end();
        assert_eq!(code, Some(77), "{log}");
        assert!(log.contains("no permission to open a raw socket on v0"), "{log}");
        assert!(log.contains("CAP_NET_RAW"), "{log}");
    });
}
