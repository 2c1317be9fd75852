//! Daemons with key pairs of their own: a hub and two peers, one of which is removed; and keys that
//! do not match.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::paths::echo;
use crate::support::{Daemon, Namespace, Place, corridor, stream, until, with_net};
use corridor_node::{generate_key, public_key};
use serde_json::Value;

/// Three hosts on a switch, each with a key pair of its own; the first has the hub.
struct Net {
    hosts: [Namespace; 3],
    switch: Namespace,
    place: Place,
    public: [String; 3],
}

impl Net {
    fn new(test: &str) -> Self {
        let hosts = [(); 3].map(|()| Namespace::new().unwrap());
        let switch = Namespace::new().unwrap();
        switch.ip("link add name air type bridge");
        switch.ip("link set air up");
        for (id, host) in (1..).zip(&hosts) {
            host.cable("v0", &switch, &format!("p{id}"));
            switch.ip(&format!("link set p{id} master air"));
            host.ip(&format!("addr add 192.168.7.{id}/24 dev v0"));
        }
        let place = Place::new(test);
        let public = [1, 2, 3].map(|id| {
            let private = generate_key().unwrap();
            place.write(&format!("{id}.key"), &private);
            public_key(&private).unwrap()
        });
        Net { hosts, switch, place, public }
    }

    fn file(&self, id: u8, underlay: &str, peers: &str) -> PathBuf {
        let text = format!(
            "[station]\nid = {id}\nrole = \"endpoint\"\n\
             [security]\nprivate_key_file = \"{id}.key\"\n\
             [tun]\nname = \"cor0\"\naddresses = [\"10.9.0.{id}/24\"]\n\
             [underlay]\nkind = \"udp\"\n{underlay}\n{peers}"
        );
        self.place.write(&format!("{id}.toml"), &text)
    }

    fn up(&self, id: u8, file: &Path) -> Daemon {
        Daemon::up(&self.hosts[usize::from(id) - 1], &[file.to_str().unwrap()])
    }

    /// The hub of these peers.
    fn hub(&self, peers: &[u8]) -> Daemon {
        let peer = |&id: &u8| {
            let public = &self.public[usize::from(id) - 1];
            format!(
                "[[peer]]\nid = {id}\nrole = \"endpoint\"\npublic_key = \"{public}\"\n\
                 allowed = [\"10.9.0.{id}/32\"]\n"
            )
        };
        let peers: String = peers.iter().map(peer).collect();
        self.up(1, &self.file(1, "listen = \"192.168.7.1:4242\"", &peers))
    }

    fn peer(&self, id: u8) -> Daemon {
        let public = &self.public[0];
        let hub = format!(
            "[[peer]]\nid = 1\nrole = \"endpoint\"\npublic_key = \"{public}\"\n\
             endpoint = \"192.168.7.1:4242\"\n"
        );
        self.up(id, &self.file(id, "", &hub))
    }

    fn status(&self, name: &str) -> Value {
        let (code, out, errors) = corridor(&self.place, &["status", name, "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        serde_json::from_str(&out).unwrap()
    }

    fn exchange(&self, from: usize, to: usize) {
        let address: IpAddr = format!("10.9.0.{to}").parse().unwrap();
        let [from, to] = [from, to].map(|id| &self.hosts[id - 1]);
        echo(from, to, address, 900);
        stream(from, to, address, 300_000);
    }
}

#[test]
fn a_peer_of_a_hub_is_removed_and_the_other_notices_nothing() {
    with_net("a_peer_of_a_hub_is_removed_and_the_other_notices_nothing", || {
        let net = Net::new("keys-hub");
        let (hub, [mut two, mut three]) = (net.hub(&[2, 3]), [net.peer(2), net.peer(3)]);
        for peer in [&mut two, &mut three] {
            peer.wait_for("session with station 1 is up");
        }
        net.exchange(2, 1);
        net.exchange(2, 3);
        let status = net.status("1");
        for (peer, id) in status["peers"].as_array().unwrap().iter().zip([2, 3]) {
            assert_eq!(peer["public_key"], net.public[id - 1], "{status:#}");
            assert!(peer["agreed_s"].as_f64().is_some_and(|ago| ago < 60.0), "{status:#}");
        }
        let (_, out, _) = corridor(&net.place, &["status", "1"]);
        assert!(out.contains(&net.public[1]) && out.contains("secret"), "{out}");

        let (code, log) = hub.stop();
        assert_eq!(code, Some(0), "{log}");
        let hub = net.hub(&[2]);
        two.wait_for("session with station 1 is up again: the station restarted");
        net.exchange(2, 1);
        three.wait_for("no session with station 1");
        assert_eq!(net.status("3")["peers"][0]["up"], false);
        for daemon in [hub, two, three] {
            let (code, log) = daemon.stop();
            assert_eq!(code, Some(0), "{log}");
        }
    });
}

#[test]
fn a_helper_with_a_key_of_its_own_reads_along() {
    with_net("a_helper_with_a_key_of_its_own_reads_along", || {
        let net = Net::new("keys-helper");
        let peer = |id: u8| {
            let role = if id == 3 { "helper" } else { "endpoint" };
            let public = &net.public[usize::from(id) - 1];
            format!("[[peer]]\nid = {id}\nrole = \"{role}\"\npublic_key = \"{public}\"\n")
        };
        // A switch that floods like a radio channel: all hear all.
        net.switch.ip("link set air type bridge ageing_time 0 mcast_snooping 0");
        let start = |id: u8, peers: [u8; 2]| {
            let file = net.file(id, "", &peers.map(peer).concat());
            let text = std::fs::read_to_string(&file).unwrap();
            let text = text.replace("kind = \"udp\"", "kind = \"ethernet\"\ninterface = \"v0\"");
            let text = if id == 3 {
                let text = text.replacen("role = \"endpoint\"", "role = \"helper\"", 1);
                let (head, rest) = text.split_once("[tun]").unwrap();
                head.to_owned() + &rest[rest.find("[underlay]").unwrap()..]
            } else {
                text
            };
            net.up(id, &net.place.write(&format!("{id}.toml"), &text))
        };
        let mut daemons = [start(1, [2, 3]), start(2, [1, 3]), start(3, [1, 2])];
        for (daemon, others) in daemons.iter_mut().zip([[2, 3], [1, 3], [1, 2]]) {
            for other in others {
                daemon.wait_for(&format!("session with station {other} is up"));
            }
        }
        net.exchange(1, 2);
        let is_heard = |counter: &Value| {
            counter["name"] == "symbols_innovative" && counter["value"].as_u64() > Some(100)
        };
        let heard = until(|| {
            let status = net.status("3");
            status["counters"].as_array()?.iter().any(is_heard).then_some(())
        });
        let status = net.status("3");
        assert!(heard.is_some(), "{status:#}");
        for peer in status["peers"].as_array().unwrap() {
            assert!(peer["agreed_s"].as_f64().is_some_and(|ago| ago < 60.0), "{status:#}");
        }
        for daemon in daemons {
            let (code, log) = daemon.stop();
            assert_eq!(code, Some(0), "{log}");
        }
    });
}

#[test]
fn a_key_that_is_not_the_peer_s_is_named() {
    with_net("a_key_that_is_not_the_peer_s_is_named", || {
        let net = Net::new("keys-wrong");
        // The second station has a new key, which the hub does not know.
        let private = generate_key().unwrap();
        net.place.write("2.key", &private);
        let [mut hub, mut two] = [net.hub(&[2]), net.peer(2)];
        hub.wait_for(&format!("its public key is {}", public_key(&private).unwrap()));
        // That station gets no answer, and can only guess.
        two.wait_for("or a wrong peer.public_key on either side");
        let problem =
            until(|| net.status("1")["peers"][0]["problem"].as_str().map(ToOwned::to_owned));
        assert!(problem.is_some_and(|problem| problem.contains("peer.public_key here")));
        for daemon in [hub, two] {
            let (_, log) = daemon.stop();
            assert!(!log.contains(&private[..20]), "{log}");
        }
    });
}
