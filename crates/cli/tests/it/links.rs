//! Interfaces that change while a daemon runs, and what it reports about this on request.

use std::process::Command;

use crate::paths::echo;
use crate::support::{Daemon, Namespace, Place, corridor, endpoint, stream, until, with_net};
use serde_json::Value;

const FAR: [&str; 2] = ["10.9.0.2", "fd00:9::2"];

/// Two hosts on a cable, with daemons that have established a session.
struct Pair {
    near: Namespace,
    far: Namespace,
    place: Place,
    daemons: [Daemon; 2],
}

impl Pair {
    fn up(test: &str, underlays: [&str; 2], peer: &str, verbosity: &str) -> Self {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        near.cable("v0", &far, "v0");
        near.ip("addr add 192.168.7.1/24 dev v0");
        far.ip("addr add 192.168.7.2/24 dev v0");
        let place = Place::new(test);
        let start = |namespace: &Namespace, id: u8, rest: &str| {
            let text = endpoint(id, underlays[usize::from(id) - 1], rest);
            let file = place.write(&format!("{id}.toml"), &text);
            let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
            command.args(["up", verbosity]).arg(file);
            Daemon::start(namespace, command)
        };
        let mut daemons = [start(&near, 1, peer), start(&far, 2, "")];
        daemons[0].wait_for("session with station 2 is up");
        daemons[1].wait_for("session with station 1 is up");
        Pair { near, far, place, daemons }
    }

    fn over_udp(test: &str, verbosity: &str) -> Self {
        let underlays = ["kind = \"udp\"", "kind = \"udp\"\nlisten = \"0.0.0.0:4242\""];
        Pair::up(test, underlays, "endpoint = \"192.168.7.2:4242\"", verbosity)
    }

    /// Packets of this length cross, over IPv4 and IPv6.
    fn meet(&self, len: usize) {
        FAR.iter().for_each(|to| echo(&self.near, &self.far, to.parse().unwrap(), len));
    }

    fn stop(self) {
        for daemon in self.daemons {
            let (code, log) = daemon.stop();
            assert_eq!(code, Some(0), "{log}");
        }
    }
}

/// Waits until the log has something this many times; returns whether it does.
fn again(daemon: &Daemon, words: &str, times: usize) -> bool {
    until(|| (daemon.log().matches(words).count() >= times).then_some(())).is_some()
}

/// It used to take ten minutes until a raised MTU was used.
#[test]
fn an_interface_whose_mtu_is_raised_is_followed_at_once() {
    with_net("an_interface_whose_mtu_is_raised_is_followed_at_once", || {
        let ethernet = ["kind = \"ethernet\"\ninterface = \"v0\""; 2];
        for (over_udp, full, less) in [(true, 1452, 1272), (false, 1500, 1300)] {
            let mut pair = if over_udp {
                Pair::over_udp("raised-udp", "-v")
            } else {
                Pair::up("raised-ethernet", ethernet, "", "-v")
            };
            if over_udp {
                pair.daemons[0].wait_for(&format!("carries frames of {full} bytes"));
            }
            pair.meet(1_280);
            pair.near.ip("link set v0 mtu 1300");
            pair.daemons[0].wait_for(&format!("carries frames of {less} bytes"));
            let count = |words: &str| pair.daemons[0].log().matches(words).count();
            let (carries, looked) = (
                format!("carries frames of {full} bytes"),
                "the paths to all peers may have changed",
            );
            let before = (count(&carries), count(looked));
            pair.near.ip("link set v0 mtu 1500");
            // Because of the change, and not by the regular search upwards after a lower MTU.
            assert!(again(&pair.daemons[0], looked, before.1 + 1), "{}", pair.daemons[0].log());
            assert!(again(&pair.daemons[0], &carries, before.0 + 1), "{}", pair.daemons[0].log());
            pair.meet(1_400);
            pair.stop();
        }
    });
}

/// It used to be reported nowhere that the device was down, and that its routes were gone.
#[test]
fn a_device_that_is_set_down_is_told_of_once_and_works_again_when_it_is_up() {
    with_net("a_device_that_is_set_down_is_told_of_once_and_works_again_when_it_is_up", || {
        let pair = Pair::over_udp("device-down", "-v");
        pair.meet(500);
        let routes = |pair: &Pair| {
            let routes =
                pair.near.ip("route show dev cor0") + &pair.near.ip("-6 route show dev cor0");
            assert!(routes.contains("10.21.0.0/16") && routes.contains("fd00:21::/64"), "{routes}");
        };
        routes(&pair);
        for times in 1..=2 {
            pair.near.ip("link set cor0 down");
            let told = again(&pair.daemons[0], "cor0 is down: no traffic", times);
            assert!(told);
            pair.near.ip("link set cor0 txqueuelen 400");
            pair.near.ip("link set cor0 up");
            assert!(again(&pair.daemons[0], "cor0 is up again", times));
            pair.meet(500);
            routes(&pair);
            assert_eq!(pair.daemons[0].log().matches("cor0 is down").count(), times);
        }
        pair.stop();
    });
}

/// What the kernel sends on its own to a link used to go to each peer, where a hub took it for
/// forged.
#[test]
fn what_a_kernel_says_to_its_link_does_not_cross() {
    with_net("what_a_kernel_says_to_its_link_does_not_cross", || {
        let pair = Pair::over_udp("own-link", "-v");
        let addresses = pair.near.ip("-6 addr show dev cor0");
        assert!(addresses.contains("fd00:9::1") && !addresses.contains("fe80:"), "{addresses}");
        // Joining a group is announced on the link.
        pair.near.ip("link set cor0 multicast on");
        let socket = pair.near.run(|| {
            let socket = std::net::UdpSocket::bind("[::]:0").unwrap();
            let index = pair.near.ip_json("link show cor0")[0]["ifindex"].as_u64().unwrap();
            socket.join_multicast_v6(&"ff05::4242".parse().unwrap(), index as u32).unwrap();
            socket
        });
        let kept = until(|| {
            let (_, out, _) = corridor(&pair.place, &["status", "1", "--json"]);
            let status: Value = serde_json::from_str(&out).ok()?;
            let counters = status["counters"].as_array()?;
            let kept = counters.iter().find(|it| it["name"] == "packets_of_own_link")?;
            (kept["value"].as_u64()? > 0).then_some(())
        });
        assert!(kept.is_some(), "{}", corridor(&pair.place, &["status", "1", "--counters"]).1);
        drop(socket);
        pair.stop();
    });
}

/// `-vv` used to show no more than the ordinary log.
#[test]
fn who_asks_for_more_is_told_more() {
    with_net("who_asks_for_more_is_told_more", || {
        let mut pair = Pair::over_udp("verbose", "-vv");
        let [near, far] = &mut pair.daemons;
        far.wait_for("HELLO of station 1 from 192.168.7.1:");
        near.wait_for("sending an MTU probe of 1452 bytes");
        near.wait_for("Mbit/s, RTT ");
        // A frame that nobody has encrypted.
        pair.far.run(|| {
            let socket = std::net::UdpSocket::bind("192.168.7.2:0").unwrap();
            socket.send_to(&[7; 100], "192.168.7.2:4242").unwrap();
        });
        far.wait_for("a frame of 100 bytes from 192.168.7.2:");
        // On a busy machine others may be counted with it.
        let told = until(|| {
            let log = far.log();
            let (_, after) = log.split_once("a frame of 100 bytes from 192.168.7.2:")?;
            let is_it = |line: &str| {
                line.contains("frames_rejected: ")
                    && line.contains(". Frames that failed authentication")
            };
            after.lines().any(is_it).then_some(())
        });
        assert!(told.is_some(), "{}", far.log());
        pair.stop();
    });
}

/// Some interfaces refuse frames that are too long as if they were full; this one does, since its
/// other end takes less. Each such frame used to hold up all others for five seconds, echoes of
/// probes included: nothing crossed in either direction, and path MTU discovery never ended.
#[test]
fn an_interface_that_refuses_long_frames_as_if_it_was_full_is_found_out() {
    with_net("an_interface_that_refuses_long_frames_as_if_it_was_full_is_found_out", || {
        let ethernet = ["kind = \"ethernet\"\ninterface = \"v0\""; 2];
        for (over_udp, full, found) in [(true, 1452, 1366..1377), (false, 1500, 1400..1405)] {
            let mut pair = if over_udp {
                Pair::over_udp("as-if-full-udp", "-v")
            } else {
                Pair::up("as-if-full-ethernet", ethernet, "", "-v")
            };
            if over_udp {
                pair.daemons[0].wait_for(&format!("carries frames of {full} bytes"));
            }
            pair.meet(1_400);
            pair.far.ip("link set v0 mtu 1400");
            stream(&pair.near, &pair.far, FAR[0].parse().unwrap(), 300_000);
            stream(&pair.far, &pair.near, "10.9.0.1".parse().unwrap(), 300_000);
            // A higher MTU is reported only when the search has ended.
            let is_found = until(|| {
                let log = pair.daemons[0].log();
                let len: usize = log.rsplit("carries frames of ").next()?.get(..4)?.parse().ok()?;
                found.contains(&len).then_some(())
            });
            assert!(is_found.is_some(), "{}", pair.daemons[0].log());
            pair.stop();
        }
    });
}
