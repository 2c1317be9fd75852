//! `corridor status` of daemons that run, that do not run, and that may not be queried.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::support::{
    Daemon, Namespace, Place, corridor, corridor_command, endpoint, until, with_net,
};
use serde_json::Value;

const LISTENS: &str = "kind = \"udp\"\nlisten = \"0.0.0.0:4242\"";

/// Two daemons named "near" and "far" with a session.
fn pair(test: &str) -> (Place, [Daemon; 2]) {
    let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    near.cable("v0", &far, "v0");
    near.ip("addr add 192.168.7.1/24 dev v0");
    far.ip("addr add 192.168.7.2/24 dev v0");
    let place = Place::new(test);
    let start = |namespace: &Namespace, name: &str, text: String| {
        let text = text + "\n[coding]\npreset = \"window\"\n";
        let file = place.write(&format!("{name}.toml"), &text);
        Daemon::up(namespace, &[file.to_str().unwrap()])
    };
    let peer = "endpoint = \"192.168.7.2:4242\"";
    let mut daemons = [
        start(&near, "near", endpoint(1, LISTENS, peer)),
        start(&far, "far", endpoint(2, LISTENS, "")),
    ];
    daemons[0].wait_for("session with station 2 is up");
    daemons[1].wait_for("session with station 1 is up");
    // Something to count.
    let pinged = until(|| near.run(|| ping().then_some(())));
    assert!(pinged.is_some(), "nothing crosses");
    (place, daemons)
}

fn ping() -> bool {
    let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
    (0..20).all(|_| socket.send_to(&[0; 500], "10.9.0.2:9").is_ok())
}

fn counter<'a>(status: &'a Value, name: &str) -> &'a Value {
    let counters = status["counters"].as_array().unwrap();
    counters.iter().find(|counter| counter["name"] == name).unwrap()
}

#[test]
fn a_running_node_tells_all_there_is_as_json() {
    with_net("a_running_node_tells_all_there_is_as_json", || {
        let (place, _daemons) = pair("json");
        let get = || -> Value {
            let (code, out, errors) = corridor(&place, &["status", "near", "--json"]);
            assert_eq!(code, Some(0), "{errors}");
            serde_json::from_str(&out).unwrap()
        };
        // Frames that were sent wait for the daemon to read them, however busy the machine is.
        let has_all = |status: &Value| {
            let accepted = counter(status, "packets_accepted")["value"].as_u64();
            !status["peers"][0]["round_trip_s"].is_null() && accepted >= Some(20)
        };
        let status = until(|| Some(get()).filter(has_all));
        let status = status.unwrap_or_else(|| panic!("no round trip, or too few: {:#}", get()));
        for (field, value) in [
            ("name", "near"),
            ("role", "endpoint"),
            ("mode", "window"),
            ("interface", "cor0"),
            ("underlay", "udp on 0.0.0.0:4242"),
        ] {
            assert_eq!(status[field], value, "{status:#}");
        }
        assert_eq!(status["station"], 1);
        for field in ["pid", "mtu_bytes", "frame_len_max_bytes", "rate_bps"] {
            assert!(status[field].as_u64().is_some_and(|value| value > 0), "{field}: {status:#}");
        }
        assert!(status["uptime_s"].as_f64().is_some_and(|value| value > 0.0), "{status:#}");
        for (table, fields) in [
            ("queue", &["packets", "packets_max", "bytes", "delay_s"][..]),
            (
                "repair",
                &[
                    "repaired_symbols",
                    "given_up_symbols",
                    "sent_symbols",
                    "spurious_symbols",
                    "given_up_packets",
                ],
            ),
            ("overhead", &["frames_ratio", "bytes_ratio"]),
        ] {
            for field in fields {
                assert!(status[table][field].is_number(), "{table}.{field}: {status:#}");
            }
        }
        let peer = &status["peers"][0];
        assert_eq!((&peer["station"], &peer["up"]), (&2.into(), &true.into()));
        assert_eq!(peer["endpoint"], "192.168.7.2:4242");
        assert_eq!((&peer["mode"], &peer["problem"]), (&"window".into(), &Value::Null));
        for field in ["last_heard_s", "round_trip_s", "loss_ratio_to", "loss_ratio_from"] {
            assert!(peer[field].is_number(), "{field}: {status:#}");
        }
        let counters = status["counters"].as_array().unwrap();
        assert!(counters.len() > 50);
        for counter in counters {
            let description = counter["description"].as_str().unwrap();
            assert!(description.ends_with('.'), "{counter}");
        }
    });
}

#[test]
fn without_a_name_all_that_run_are_shown() {
    with_net("without_a_name_all_that_run_are_shown", || {
        let (place, [near, far]) = pair("all");
        let (code, out, errors) = corridor(&place, &["status"]);
        assert_eq!(code, Some(0), "{errors}");
        let far_first = out.starts_with("node: far\n  station      2, endpoint, window mode, up ");
        assert!(far_first && out.contains("\nnode: near\n"), "{out}");
        assert!(out.contains("\n  endpoint     192.168.7.2:4242\n  session      up\n"), "{out}");
        let (_, out, _) = corridor(&place, &["status", "--json"]);
        let all: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!(all.iter().map(|node| &node["name"]).collect::<Vec<_>>(), ["far", "near"]);
        // A daemon that ends removes its socket; one that is killed leaves a socket that nobody
        // answers at.
        assert_eq!(near.stop().0, Some(0));
        drop(far);
        let (code, _, errors) = corridor(&place, &["status"]);
        assert_eq!(code, Some(3));
        assert!(errors.contains("corridor: no node is running: no control"), "{errors}");
        assert!(place.path().join("far.sock").exists() && !place.path().join("near.sock").exists());
    });
}

#[test]
fn a_watcher_gets_a_frame_each_second() {
    with_net("a_watcher_gets_a_frame_each_second", || {
        let (place, _daemons) = pair("watch");
        let mut watcher = corridor_command(&place, &["status", "near", "--watch"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            BufReader::new(watcher.stdout.take().unwrap()).lines().map_while(Result::ok);
        let frame = |lines: &mut dyn Iterator<Item = String>| {
            lines.take_while(|line| line != "node: near").count()
        };
        assert_eq!(frame(&mut lines), 0, "a frame begins with the node");
        assert!(frame(&mut lines) > 10, "and has its lines");
        let mut later = Vec::new();
        later.extend(lines.by_ref().take_while(|line| line != "node: near"));
        let transfer = later.iter().find(|line| line.contains("transfer")).unwrap();
        assert!(
            transfer.contains("bit/s received, ") && transfer.contains("; in all "),
            "{later:?}"
        );
        watcher.kill().unwrap();
        watcher.wait().unwrap();
        let mut watcher = corridor_command(&place, &["status", "near", "--watch", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            BufReader::new(watcher.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut look = || -> Value { serde_json::from_str(&lines.next().unwrap()).unwrap() };
        let first = look();
        assert_eq!((&first["name"], &first["since"]), (&"near".into(), &Value::Null));
        // Each object has both: changes since the previous one, and since the start.
        let second = look();
        let since = &second["since"];
        // A second, or less if the refresh before was late.
        assert!(since["span_s"].as_f64().is_some_and(|span| span > 0.0), "{since:#}");
        for field in ["received_bps", "sent_bps"] {
            assert!(since[field].is_number(), "{field}: {since:#}");
        }
        let frames = |look: &Value| counter(look, "frames_sent")["value"].as_u64().unwrap();
        let grown = (frames(&second) - frames(&first)) as f64;
        let rate = since["counts_per_s"]["frames_sent"].as_f64().unwrap();
        assert!((rate * since["span_s"].as_f64().unwrap() - grown).abs() < 0.5, "{since:#}");
        watcher.kill().unwrap();
        watcher.wait().unwrap();
    });
}

#[test]
fn a_node_that_does_not_run_has_an_exit_code_of_its_own() {
    let place = Place::new("not-running");
    let (code, out, errors) = corridor(&place, &["status", "home"]);
    assert_eq!((code, &*out), (Some(3), ""));
    let socket = place.path().join("home.sock");
    let expected =
        format!("corridor: home is not running: no node listens on {}\n", socket.display());
    assert_eq!(errors, expected);
}

#[test]
fn who_may_not_ask_is_told_so() {
    with_net("who_may_not_ask_is_told_so", || {
        let (place, _daemons) = pair("denied");
        let socket = place.path().join("near.sock");
        let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        // Root without capabilities is a user like any other.
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all"]);
        command.arg(env!("CARGO_BIN_EXE_corridor")).args(["status", "near"]);
        let output = command.env("RUNTIME_DIRECTORY", place.path()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(77), "{errors}");
        assert_eq!(
            errors,
            format!(
                "corridor: permission denied on {}: only root and the socket's group have access\n",
                socket.display()
            )
        );
    });
}

#[test]
fn a_client_that_says_nothing_holds_nobody_up() {
    with_net("a_client_that_says_nothing_holds_nobody_up", || {
        let (place, daemons) = pair("mute");
        let socket = place.path().join("near.sock");
        let connect = || std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let mut mute: Vec<_> = (0..20).map(|_| connect()).collect();
        let (code, out, errors) = corridor(&place, &["status", "near"]);
        assert_eq!(code, Some(0), "{errors}");
        assert!(out.contains("session      up"), "{out}");
        // The same holds for a node that does not answer: the others are shown.
        let _deaf = std::os::unix::net::UnixListener::bind(place.path().join("deaf.sock")).unwrap();
        let (code, out, errors) = corridor(&place, &["status"]);
        assert_eq!(code, Some(0), "{errors}");
        assert!(
            out.contains("node: near\n") && errors.contains("deaf does not respond"),
            "{errors}"
        );
        // The oldest connections were closed to make room.
        assert_eq!(mute[0].read(&mut [0; 1]).unwrap(), 0);
        for daemon in daemons {
            assert_eq!(daemon.stop().0, Some(0));
        }
    });
}
