//! A hub and three peers on a switch, with daemons and the kernel's own traffic.

use std::net::{IpAddr, UdpSocket};

use crate::paths::echo;
use crate::support::{Daemon, Namespace, Place, corridor, node, stream, until, with_net};
use nix::sys::signal::Signal;
use serde_json::Value;

const PEERS: [u8; 3] = [2, 3, 4];

/// The hub's file: the peers' networks, without endpoints over UDP.
fn hub_file(underlay: &str) -> String {
    let peer = |id: u8| {
        format!(
            "[[peer]]\nid = {id}\nrole = \"endpoint\"\n\
             allowed = [\"10.9.0.{id}/32\", \"fd00:9::{id}/128\"]\n"
        )
    };
    node(1, underlay, "") + &PEERS.map(peer).concat()
}

/// Hosts on a switch; the first has the hub.
struct Net {
    hosts: [Namespace; 4],
    _switch: Namespace,
    place: Place,
}

impl Net {
    fn new(test: &str) -> Self {
        let hosts = [(); 4].map(|()| Namespace::new().unwrap());
        let switch = Namespace::new().unwrap();
        switch.ip("link add name air type bridge");
        switch.ip("link set air up");
        for (id, host) in (1..).zip(&hosts) {
            host.cable("v0", &switch, &format!("p{id}"));
            switch.ip(&format!("link set p{id} master air"));
            host.ip(&format!("addr add 192.168.7.{id}/24 dev v0"));
        }
        Net { hosts, _switch: switch, place: Place::new(test) }
    }

    /// Daemons on all hosts, the hub's first, with established sessions.
    fn up(&self, of_hub: &str, of_peers: &str, peer: &str) -> [Daemon; 4] {
        let start = |id: u8, text: String| {
            let file = self.place.write(&format!("{id}.toml"), &text);
            Daemon::up(&self.hosts[usize::from(id) - 1], &[file.to_str().unwrap()])
        };
        let leaf = |id: u8| {
            let hub = format!("[[peer]]\nid = 1\nrole = \"endpoint\"\n{peer}\n");
            start(id, node(id, of_peers, "") + &hub)
        };
        let mut daemons = [start(1, hub_file(of_hub)), leaf(2), leaf(3), leaf(4)];
        for id in PEERS {
            daemons[0].wait_for(&format!("session with station {id} is up"));
            daemons[usize::from(id) - 1].wait_for("session with station 1 is up");
        }
        for host in &self.hosts {
            // The kernel looks for neighbours with an IPv6 address, even where there can be none.
            let settled = until(|| {
                let tentative = host.ip("-6 addr show dev cor0 tentative");
                tentative.trim().is_empty().then_some(())
            });
            assert!(settled.is_some(), "addresses stay tentative");
        }
        daemons
    }

    fn status(&self) -> Value {
        let (code, out, errors) = corridor(&self.place, &["status", "1", "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        serde_json::from_str(&out).unwrap()
    }

    /// Datagrams and streams between the hub and a peer, and between peers, over IPv4 and IPv6.
    fn exchange(&self) {
        let address = |id: u8, six: bool| -> IpAddr {
            let text = if six { format!("fd00:9::{id}") } else { format!("10.9.0.{id}") };
            text.parse().unwrap()
        };
        for (from, to) in [(1, 2), (3, 1), (2, 3), (4, 2)] {
            for six in [false, true] {
                let [one, other] = [from, to].map(|id: u8| &self.hosts[usize::from(id) - 1]);
                echo(one, other, address(to, six), 900);
                stream(one, other, address(to, six), 300_000);
            }
        }
    }
}

fn stop(daemons: impl IntoIterator<Item = Daemon>) {
    for daemon in daemons {
        let (code, log) = daemon.stop();
        assert_eq!(code, Some(0), "{log}");
    }
}

/// What a running hub reports about each peer.
fn check_status(status: &Value, wrong_sources: u64) {
    let peers = status["peers"].as_array().unwrap();
    assert_eq!(peers.len(), 3, "{status:#}");
    for (peer, id) in peers.iter().zip(PEERS) {
        assert_eq!((&peer["station"], &peer["up"]), (&id.into(), &true.into()), "{status:#}");
        assert!(peer["endpoint"].is_string() && peer["last_heard_s"].is_f64(), "{status:#}");
        let own = &peer["own"];
        assert_eq!(own["allowed"][0], format!("10.9.0.{id}/32"), "{status:#}");
        for field in ["mtu_bytes", "received_bytes", "sent_bytes"] {
            assert!(own[field].as_u64().is_some_and(|value| value > 0), "{field}: {status:#}");
        }
        assert!(own["queue"]["packets_max"].as_u64().is_some_and(|most| most > 0));
        assert!(peer["round_trip_s"].is_f64(), "{status:#}");
    }
    let counter = |name: &str| {
        let counters = status["counters"].as_array().unwrap();
        let counter = counters.iter().find(|counter| counter["name"] == name).unwrap();
        counter["value"].as_u64().unwrap()
    };
    assert!(counter("packets_forwarded") > 0 && counter("bytes_delivered") > 0);
    let wrong = counter("packets_wrong_source");
    // They do not include packets that kernels send on their own.
    assert!(if wrong_sources == 0 { wrong == 0 } else { wrong >= wrong_sources }, "{status:#}");
}

/// A peer is removed from the hub's file and added again: the others' traffic continues all the
/// time, and none of their sessions restarts.
fn peers_come_and_go(net: &Net, daemons: &mut [Daemon; 4], text: &str) {
    let (without, four) = text.rsplit_once("[[peer]]\nid = 4\n").unwrap();
    let (two, three) = (&net.hosts[1], &net.hosts[2]);
    net.place.write("1.toml", without);
    daemons[0].signal(Signal::SIGHUP);
    daemons[0].wait_for("removed peer station 4");
    daemons[0].wait_for(", applied: peer");
    assert_eq!(net.status()["peers"].as_array().unwrap().len(), 2);
    stream(two, three, "10.9.0.3".parse().unwrap(), 300_000);
    net.place.write("1.toml", &format!("{without}[[peer]]\nid = 4\n{four}"));
    daemons[0].signal(Signal::SIGHUP);
    daemons[0].wait_for("added peer station 4");
    let up = until(|| (net.status()["peers"][2]["up"] == true).then_some(()));
    assert!(up.is_some(), "{:#}", net.status());
    net.exchange();
    let log = daemons[0].log();
    for id in [2, 3] {
        assert_eq!(log.matches(&format!("session with station {id} is up")).count(), 1, "{log}");
    }
}

#[test]
fn a_hub_and_three_peers_over_udp() {
    with_net("a_hub_and_three_peers_over_udp", || {
        let net = Net::new("hub-udp");
        let udp = "kind = \"udp\"";
        let listens = format!("{udp}\nlisten = \"192.168.7.1:4242\"");
        let knows = "endpoint = \"192.168.7.1:4242\"";
        let mut daemons = net.up(&listens, udp, knows);
        net.exchange();
        check_status(&net.status(), 0);
        let (code, out, _) = corridor(&net.place, &["status", "1"]);
        assert_eq!((code, out.matches("peer: station").count()), (Some(0), 3), "{out}");
        assert!(out.contains("10.9.0.3/32, fd00:9::3/128"), "{out}");

        // A source that does not belong to the peer is dropped, until the hub's file allows it.
        net.hosts[1].ip("addr add 10.9.0.77/32 dev cor0");
        let strange = net.hosts[1].run(|| UdpSocket::bind("10.9.0.77:0").unwrap());
        let there = net.hosts[2].run(|| UdpSocket::bind("10.9.0.3:7777").unwrap());
        there.set_nonblocking(true).unwrap();
        let mut buffer = [0; 100];
        let dropped = until(|| {
            strange.send_to(b"strange", "10.9.0.3:7777").unwrap();
            assert!(there.recv(&mut buffer).is_err());
            let dropped = net.status()["peers"][0]["own"]["wrong_source_packets"].as_u64();
            dropped.filter(|&packets| packets >= 3)
        });
        check_status(&net.status(), dropped.expect("dropped and counted"));
        let wider = hub_file(&listens).replace("10.9.0.2/32", "10.9.0.2/32\", \"10.9.0.77/32");
        net.place.write("1.toml", &wider);
        daemons[0].signal(Signal::SIGHUP);
        daemons[0].wait_for(", applied: peer.allowed");
        let came = until(|| {
            strange.send_to(b"strange", "10.9.0.3:7777").unwrap();
            there.recv(&mut buffer).ok()
        });
        assert_eq!(came.map(|len| &buffer[..len]), Some(&b"strange"[..]));
        peers_come_and_go(&net, &mut daemons, &wider);
        stop(daemons);
    });
}

#[test]
fn a_hub_and_three_peers_over_ethernet_of_which_one_dies() {
    with_net("a_hub_and_three_peers_over_ethernet_of_which_one_dies", || {
        let net = Net::new("hub-ethernet");
        let ethernet = "kind = \"ethernet\"\ninterface = \"v0\"";
        let [hub, two, three, four] = net.up(ethernet, ethernet, "");
        net.exchange();
        check_status(&net.status(), 0);
        drop(four);
        let [one, other] = [&net.hosts[1], &net.hosts[2]];
        let flood = net.hosts[0].run(|| UdpSocket::bind("10.9.0.1:0").unwrap());
        (0..3_000).for_each(|_| {
            let _ = flood.send_to(&[0; 1_000], "10.9.0.4:9");
        });
        stream(one, other, "10.9.0.3".parse().unwrap(), 1_000_000);
        let queue = &net.status()["peers"][2]["own"]["queue"];
        assert!(queue["packets"].as_u64() <= queue["packets_max"].as_u64(), "{queue}");
        stop([hub, two, three]);
    });
}
