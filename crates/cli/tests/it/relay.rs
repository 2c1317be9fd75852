//! Relays in a row on one switch, with daemons and the kernel's own traffic: the ends hear only the
//! relay between them, and everything that it sends.

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use crate::paths::echo;
use crate::support::{Daemon, Namespace, Place, corridor, stream, until, with_net};
use serde_json::Value;

const ENDS: [u8; 2] = [1, 3];

/// Three hosts. The switch sends each frame to all of its ports, as a radio channel does, but
/// nothing from one end to the other.
struct Row {
    hosts: [Namespace; 3],
    switch: Namespace,
    place: Place,
}

fn networks(ids: &[u8]) -> String {
    let both = |id: &u8| format!("\"10.9.0.{id}/32\", \"fd00:9::{id}/128\"");
    ids.iter().map(both).collect::<Vec<_>>().join(", ")
}

fn file(id: u8, relay: &str) -> String {
    let peer = |id: u8, behind: &[u8]| {
        format!("[[peer]]\nid = {id}\nrole = \"relay\"\nallowed = [{}]\n", networks(behind))
    };
    let peers = match id {
        1 => peer(2, &[2, 3]),
        2 => peer(1, &[1]) + &peer(3, &[3]),
        _ => peer(2, &[2, 1]),
    };
    format!(
        "[station]\nid = {id}\nrole = \"relay\"\n[security]\npsk = \"{}\"\n[tun]\nname = \"cor0\"\n\
         addresses = [\"10.9.0.{id}/24\", \"fd00:9::{id}/64\"]\n[underlay]\nkind = \"ethernet\"\n\
         interface = \"v0\"\n[relay]\n{relay}\n{peers}",
        "5a".repeat(32)
    )
}

impl Row {
    fn new(test: &str) -> Self {
        let hosts = [(); 3].map(|()| Namespace::new().unwrap());
        let switch = Namespace::new().unwrap();
        switch.ip("link add name air type bridge ageing_time 0 mcast_snooping 0");
        switch.ip("link set air up");
        for (id, host) in (1_u8..).zip(&hosts) {
            host.cable("v0", &switch, &format!("p{id}"));
            switch.ip(&format!("link set p{id} master air"));
            if ENDS.contains(&id) {
                switch.ip(&format!("link set p{id} type bridge_slave isolated on"));
            }
        }
        Row { hosts, switch, place: Place::new(test) }
    }

    /// Daemons on all hosts, with established sessions.
    fn up(&self, relay: &str) -> [Daemon; 3] {
        let mut daemons = [1, 2, 3].map(|id: u8| {
            let file = self.place.write(&format!("{id}.toml"), &file(id, relay));
            Daemon::up(&self.hosts[usize::from(id) - 1], &[file.to_str().unwrap()])
        });
        for (at, other) in [(0, 2), (1, 1), (1, 3), (2, 2)] {
            daemons[at].wait_for(&format!("session with station {other} is up"));
        }
        for host in &self.hosts {
            let settled = until(|| {
                let tentative = host.ip("-6 addr show dev cor0 tentative");
                tentative.trim().is_empty().then_some(())
            });
            assert!(settled.is_some(), "addresses stay tentative");
        }
        daemons
    }

    /// Datagrams and streams between both ends, and with the relay, over IPv4 and IPv6; streams in
    /// both directions at once.
    fn exchange(&self) {
        let address = |id: u8, six: bool| -> IpAddr {
            let text = if six { format!("fd00:9::{id}") } else { format!("10.9.0.{id}") };
            text.parse().unwrap()
        };
        let host = |id: u8| &self.hosts[usize::from(id) - 1];
        for six in [false, true] {
            for (from, to) in [(1, 3), (3, 1), (1, 2), (2, 3)] {
                echo(host(from), host(to), address(to, six), 900);
            }
            thread::scope(|scope| {
                for (from, to) in [(1, 3), (3, 1)] {
                    scope.spawn(move || stream(host(from), host(to), address(to, six), 400_000));
                }
            });
        }
    }

    fn status(&self, id: u8) -> Value {
        let (code, out, errors) = corridor(&self.place, &["status", &id.to_string(), "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        serde_json::from_str(&out).unwrap()
    }
}

fn counter(status: &Value, name: &str) -> u64 {
    let counters = status["counters"].as_array().unwrap();
    let found = counters.iter().find(|counter| counter["name"] == name);
    found.and_then(|counter| counter["value"].as_u64()).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn two_ends_and_a_relay_that_combines_what_they_send() {
    with_net("two_ends_and_a_relay_that_combines_what_they_send", || {
        let row = Row::new("relay");
        let daemons = row.up("preset = \"paper\"");
        row.exchange();
        let relay = row.status(2);
        assert_eq!((&relay["role"], &relay["mode"]), (&"relay".into(), &"relay".into()));
        assert!(counter(&relay, "relay_frames_coded") > 50, "{relay:#}");
        assert!(counter(&relay, "relay_packets_forwarded") > 200, "{relay:#}");
        assert_eq!(relay["relay"]["coding"], true, "{relay:#}");
        assert!(relay["relay"]["hold_s"].as_f64().is_some_and(|hold| hold > 0.04), "{relay:#}");
        for id in ENDS {
            let end = row.status(id);
            assert!(counter(&end, "relay_packets_decoded") > 50, "{end:#}");
            assert!(counter(&end, "relay_frames_overheard") > 0, "{end:#}");
            // The ends overhear what the relay sends to others, and announce it.
            let here = || row.status(id)["peers"][0]["overhearing"]["here_ratio"].as_f64();
            assert!(here().is_some_and(|share| share > 0.5), "{:#}", row.status(id));
        }
        let told = until(|| {
            let peers = row.status(2)["peers"].clone();
            let there = |at: usize| peers[at]["overhearing"]["there"][0][1].as_f64();
            (there(0)? > 0.5 && there(1)? > 0.5).then_some(())
        });
        assert!(told.is_some(), "{:#}", row.status(2));
        let (code, out, _) = corridor(&row.place, &["status", "2", "--counters"]);
        assert_eq!(code, Some(0));
        for words in ["coding       on, held for 50.0 ms", "combined     ", "relay_frames_coded"] {
            assert!(out.contains(words), "{words}: {out}");
        }
        for daemon in daemons {
            let (code, log) = daemon.stop();
            assert_eq!(code, Some(0), "{log}");
        }
    });
}

/// The ends do not hear what is for others: by default nothing is combined, everything crosses, and
/// the relay reports why.
#[test]
fn where_nothing_is_overheard_nothing_is_combined() {
    with_net("where_nothing_is_overheard_nothing_is_combined", || {
        let row = Row::new("deaf");
        // A switch that learns addresses, and forwards frames only to their ports.
        row.switch.ip("link set air type bridge ageing_time 30000");
        let _daemons = row.up("preset = \"default\"");
        row.exchange();
        thread::sleep(Duration::from_millis(2_500));
        row.exchange();
        let relay = row.status(2);
        assert!(counter(&relay, "relay_packets_forwarded") > 200, "{relay:#}");
        let coded = counter(&relay, "relay_frames_coded");
        let plain = counter(&relay, "relay_frames_plain");
        // All hosts hear the first frames, before the switch has learned.
        assert!(coded * 20 < plain, "{coded} and {plain}: {relay:#}");
        let idle = relay["relay"]["idle"].as_str().unwrap_or_default();
        // Both ends send only to the relay.
        assert!(idle.contains("this node never overhears frames to others"), "{relay:#}");
        for peer in relay["peers"].as_array().unwrap() {
            let there = peer["overhearing"]["there"].as_array().unwrap();
            assert!(there.iter().all(|it| it[1].as_f64().unwrap() < 0.5), "{relay:#}");
        }
    });
}
