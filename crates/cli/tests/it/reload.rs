//! SIGHUP: what a running daemon applies, what needs a restart, and errors in a file.

use crate::support::{Daemon, Namespace, Place, corridor, endpoint, until, with_net};
use nix::sys::signal::Signal;

const LISTENS: &str = "kind = \"udp\"\nlisten = \"0.0.0.0:4242\"";

/// A daemon whose peer's address is wrong.
fn daemon(test: &str) -> (Namespace, Namespace, Place, Daemon, String) {
    let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    near.cable("v0", &far, "v0");
    near.ip("addr add 192.168.7.1/24 dev v0");
    far.ip("addr add 192.168.7.2/24 dev v0");
    let place = Place::new(test);
    let text = endpoint(1, LISTENS, "endpoint = \"192.168.7.9:4242\"");
    let file = place.write("near.toml", &text);
    let mut daemon = Daemon::up(&near, &[file.to_str().unwrap()]);
    daemon.wait_for("station 1 is up");
    (near, far, place, daemon, text)
}

#[test]
fn what_can_change_while_a_daemon_runs_is_taken_over() {
    with_net("what_can_change_while_a_daemon_runs_is_taken_over", || {
        let (near, far, place, mut daemon, text) = daemon("reload");
        let other = place.write("far.toml", &endpoint(2, LISTENS, ""));
        let mut other = Daemon::up(&far, &[other.to_str().unwrap()]);
        other.wait_for("station 2 is up");
        let text = text
            .replace("192.168.7.9:4242", "192.168.7.2:4242")
            .replace("10.21.0.0/16", "10.77.0.0/16")
            .replace("listen =", "rate_bps = 5000000\nlisten =")
            + "\n[control]\ngroup = \"root\"\n[synthetic_loss]\nseed = 3\n";
        let file = place.write("near.toml", &text).display().to_string();
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for(&format!(
            "SIGHUP: reloaded {file}, applied: peer.endpoint, tun.routes, \
             underlay.rate_bps, control, synthetic_loss"
        ));
        daemon.wait_for("session with station 2 is up");
        let routes = near.ip("route show dev cor0");
        assert!(routes.contains("10.77.0.0/16") && !routes.contains("10.21.0.0"), "{routes}");
        let (code, out, _) = corridor(&place, &["status", "near", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &status["rate_bps"]), (Some(0), &5_000_000.into()), "{status}");
        assert_eq!(status["peers"][0]["endpoint"], "192.168.7.2:4242");
        // The same again.
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for(&format!("SIGHUP: reloaded {file}, nothing changed"));
        assert_eq!(daemon.stop().0, Some(0));
        assert!(!near.has("cor0"));
    });
}

#[test]
fn a_file_that_is_broken_leaves_everything_as_it_was() {
    with_net("a_file_that_is_broken_leaves_everything_as_it_was", || {
        let (near, _far, place, mut daemon, text) = daemon("broken");
        let broken = text.replace("[underlay]", "[underlay]\nrate_bps = \"ten\"");
        let line = 1 + broken.lines().position(|line| line.starts_with("rate_bps")).unwrap();
        let file = place.write("near.toml", &broken).display().to_string();
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for(&format!("SIGHUP: {file}:{line}:"));
        daemon.wait_for("; keeping the current configuration");
        // An invalid value, although it is a number.
        let broken = text.replace("[underlay]", "[underlay]\nrate_bps = 10");
        place.write("near.toml", &broken);
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for("at least 1000 bit/s; keeping the current configuration");
        std::fs::remove_file(&file).unwrap();
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for(&format!("SIGHUP: cannot read {file}: No such file or directory"));
        assert!(near.ip("route show dev cor0").contains("10.21.0.0/16"));
        let (code, log) = daemon.stop();
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(log.matches("keeping the current configuration").count(), 3, "{log}");
    });
}

#[test]
fn changes_that_need_a_restart_are_named_and_left_out() {
    with_net("changes_that_need_a_restart_are_named_and_left_out", || {
        let (near, _far, place, mut daemon, text) = daemon("restart");
        let text = text
            .replace("psk = \"00", "psk = \"ff")
            .replace("name = \"cor0\"", "name = \"cor9\"")
            .replace("10.21.0.0/16", "10.77.0.0/16")
            + "\n[coding]\nblock_size = 16\n";
        let file = place.write("near.toml", &text).display().to_string();
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for(&format!("SIGHUP: reloaded {file}, applied: tun.routes"));
        daemon.wait_for(&format!(
            "SIGHUP: {file}: restart to apply changes in: security, tun, coding"
        ));
        assert!(near.has("cor0") && !near.has("cor9"));
        let taken = until(|| near.ip("route show dev cor0").contains("10.77.0.0").then_some(()));
        assert!(taken.is_some());
        assert_eq!(daemon.stop().0, Some(0));
    });
}

#[test]
fn a_route_that_cannot_be_had_is_told_and_the_daemon_goes_on() {
    with_net("a_route_that_cannot_be_had_is_told_and_the_daemon_goes_on", || {
        let (near, _far, place, mut daemon, text) = daemon("taken");
        near.ip("route add 10.77.0.0/16 dev v0");
        place.write("near.toml", &text.replace("10.21.0.0/16", "10.77.0.0/16"));
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for("cannot add the route 10.77.0.0/16 through cor0: File exists");
        // It was not applied, so the next signal tries it again.
        near.ip("route del 10.77.0.0/16 dev v0");
        daemon.signal(Signal::SIGHUP);
        daemon.wait_for(", applied: tun.routes");
        assert!(near.ip("route show dev cor0").contains("10.77.0.0/16"));
        assert_eq!(daemon.stop().0, Some(0));
    });
}
