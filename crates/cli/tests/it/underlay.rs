//! Frames on real underlays: back-pressure, two endpoints, helpers, loss.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::{Daemon, Namespace, PATIENCE, Place, endpoint, skip, stream, until, with_net};
use nix::sys::signal::Signal;
use serde_json::Value;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// The first addresses of the tunnel's other end.
const FAR: [&str; 2] = ["10.9.0.2", "fd00:9::2"];
const PACKETS: usize = 20;

/// Current statistics of a daemon.
fn stats(daemon: &Daemon, place: &Place) -> Value {
    let path = place.path().join("stats.json");
    let _ = std::fs::remove_file(&path);
    daemon.signal(Signal::SIGUSR1);
    until(|| serde_json::from_str(&std::fs::read_to_string(&path).ok()?).ok()).expect("statistics")
}

/// A TAP whose ring holds four frames, and which only the test reads.
fn tap(namespace: &Namespace) -> SyncDevice {
    let device = namespace.run(|| {
        let device = DeviceBuilder::new().name("tap0").layer(Layer::L2).enable(false);
        device.build_sync().expect("a TAP")
    });
    device.set_nonblocking(true).unwrap();
    // The kernel's own frames would occupy the ring.
    namespace.ip("link set tap0 addrgenmode none");
    namespace.ip("link set tap0 multicast off");
    namespace.ip("link set tap0 txqueuelen 4 up");
    device
}

/// Frames that wait in the TAP.
fn drain(tap: &SyncDevice) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        match tap.recv(&mut buffer) {
            Ok(len) => frames.push(buffer[..len].to_vec()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return frames,
            Err(error) => panic!("{error}"),
        }
    }
}

/// If the ring below it is full, a daemon keeps one frame and makes no other.
fn waits_for_room(underlay: &str, prepare: impl FnOnce(&Namespace), rest: &str) {
    let (namespace, place) = (Namespace::new().unwrap(), Place::new("tap"));
    let tap = tap(&namespace);
    prepare(&namespace);
    let file = place.write("node.toml", &endpoint(1, underlay, rest));
    let path = place.path().join("stats.json");
    let arguments = [file.to_str().unwrap(), "--stats-file", path.to_str().unwrap()];
    let mut daemon = Daemon::up(&namespace, &arguments);
    daemon.wait_for("is up");
    // The search for the peer soon sends more than four frames.
    let busy = until(|| {
        let stats = stats(&daemon, &place);
        (stats["io"]["underlay_busy"].as_u64()? > 100).then_some(stats)
    });
    let busy = busy.unwrap_or_else(|| panic!("not busy: {}", stats(&daemon, &place)));
    // Four in the ring, one held by the daemon, and perhaps one that the station has ready.
    let made = busy["stats"]["frames_sent"].as_u64().unwrap();
    assert!((5..=6).contains(&made), "{busy}");
    assert_eq!(busy["io"]["frames_refused"], 0, "{busy}");
    let cpu = busy["cpu_s"].as_f64().unwrap() / busy["wall_s"].as_f64().unwrap();
    assert!(cpu < 0.5, "it waits, it does not spin: {busy}");
    // With room in the ring, the held frame is sent, and others after it. A busy kernel passes them
    // on late.
    let mut drained = 0;
    let more = until(|| {
        drained += drain(&tap).len() as u64;
        (drained > made).then_some(())
    });
    assert!(more.is_some(), "{drained} of {made} frames");
    let (code, log) = daemon.stop();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_full_interface_holds_the_next_frame_back() {
    with_net("a_full_interface_holds_the_next_frame_back", || {
        let ethernet = "kind = \"ethernet\"\ninterface = \"tap0\"";
        waits_for_room(&format!("{ethernet}\nqdisc_bypass = true"), |_| {}, "");
    });
}

#[test]
fn a_full_interface_holds_the_next_datagram_back() {
    let name = "a_full_interface_holds_the_next_datagram_back";
    with_net(name, || {
        if std::process::Command::new("tc").arg("-V").output().is_err() {
            return skip(name, "no tc command");
        }
        let prepare = |namespace: &Namespace| {
            namespace.run(|| {
                // The usual queue would hide the full ring below it.
                let queue = "qdisc replace dev tap0 root noqueue".split(' ');
                let status = std::process::Command::new("tc").args(queue).status().unwrap();
                assert!(status.success());
            });
            namespace.ip("addr add 192.168.7.1/24 dev tap0");
            namespace.ip("neigh add 192.168.7.2 lladdr 02:00:00:00:00:02 dev tap0");
        };
        waits_for_room("kind = \"udp\"", prepare, "endpoint = \"192.168.7.2:4242\"");
    });
}

#[test]
fn frames_on_the_wire_are_ours_and_no_longer_than_allowed() {
    with_net("frames_on_the_wire_are_ours_and_no_longer_than_allowed", || {
        let (namespace, place) = (Namespace::new().unwrap(), Place::new("wire"));
        let tap = tap(&namespace);
        let underlay = "kind = \"ethernet\"\ninterface = \"tap0\"\nethertype = 0x88b6\nmtu = 1000";
        let text =
            endpoint(1, underlay, "mac = \"02:00:00:00:00:02\"\n[coding]\nsymbol_size = 900");
        let file = place.write(
            "node.toml",
            &text.replace(", \"fd00:9::1/64\"", "").replace(", \"fd00:21::/64\"", ""),
        );
        let mut daemon = Daemon::up(&namespace, &[file.to_str().unwrap()]);
        daemon.wait_for("frames of up to 1000 bytes, ethernet on tap0");
        let frame = until(|| drain(&tap).into_iter().next()).expect("a frame");
        assert_eq!(frame[12..14], [0x88, 0xb6]);
        assert!(frame[..6] == [0xff; 6] || frame[..6] == [2, 0, 0, 0, 0, 2], "{frame:x?}");
        assert_eq!(daemon.stop().0, Some(0));
    });
}

/// State shared by both ends of a test.
struct Pair {
    near: Namespace,
    far: Namespace,
    place: Place,
}

impl Pair {
    /// Two namespaces, and a cable between them.
    fn new(test: &str) -> Self {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        near.cable("v0", &far, "v0");
        for (namespace, id) in [(&near, 1), (&far, 2)] {
            namespace.ip(&format!("addr add 192.168.7.{id}/24 dev v0"));
            namespace.ip(&format!("addr add fd00:7::{id}/64 dev v0 nodad"));
        }
        Pair { near, far, place: Place::new(test) }
    }

    /// Daemons at both ends, with a session.
    fn up(&self, near: (&str, &str), far: (&str, &str)) -> [Daemon; 2] {
        let stats = self.place.path().join("stats.json");
        let start = |namespace, id, (underlay, rest): (&str, &str)| {
            let file = self.place.write(&format!("{id}.toml"), &endpoint(id, underlay, rest));
            Daemon::up(
                namespace,
                &[file.to_str().unwrap(), "--stats-file", stats.to_str().unwrap()],
            )
        };
        let mut daemons = [start(&self.near, 1, near), start(&self.far, 2, far)];
        daemons[0].wait_for("session with station 2 is up");
        daemons[1].wait_for("session with station 1 is up");
        daemons
    }

    /// Packets of all lengths in both directions, and a stream.
    fn exchange(&self) {
        for far in FAR {
            let far: IpAddr = far.parse().unwrap();
            self.echo(far);
            stream(&self.near, &self.far, far, 3_000_000);
        }
    }

    /// Each packet comes back as it was sent.
    fn echo(&self, far: IpAddr) {
        let server = self.far.run(|| UdpSocket::bind((far, 7)).unwrap());
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let client = self.near.run(|| {
            let any = if far.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let client = UdpSocket::bind(any).unwrap();
            client.connect((far, 7)).unwrap();
            client
        });
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 2048];
        for index in 0..PACKETS {
            let sent: Vec<u8> = (0..1 + 70 * index).map(|at| (at * 7 + index) as u8).collect();
            let fails = |way: &str, error: io::Error| -> ! {
                panic!("datagram {index}, {} bytes to {far}, {way}: {error}", sent.len())
            };
            client.send(&sent).unwrap_or_else(|error| fails("leaving", error));
            let there = uninterrupted(|| server.recv_from(&mut buffer));
            let (len, from) = there.unwrap_or_else(|error| fails("on its way there", error));
            server.send_to(&buffer[..len], from).unwrap_or_else(|error| fails("turning", error));
            let back = uninterrupted(|| client.recv(&mut buffer));
            let len = back.unwrap_or_else(|error| fails("on its way back", error));
            assert!(buffer[..len] == sent, "datagram {index} to {far} came back changed");
        }
    }

    /// Ends both daemons. Returns what they counted.
    fn stop(&self, daemons: [Daemon; 2]) -> [Value; 2] {
        daemons.map(|daemon| {
            let stats = stats(&daemon, &self.place);
            let (code, log) = daemon.stop();
            assert_eq!(code, Some(0), "{log}");
            stats
        })
    }
}

/// Repeats a call that was interrupted by a signal to this process.
fn uninterrupted<T>(mut ask: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match ask() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            answered => return answered,
        }
    }
}

#[test]
fn two_endpoints_over_ethernet() {
    with_net("two_endpoints_over_ethernet", || {
        let pair = Pair::new("ethernet");
        let ethernet = ("kind = \"ethernet\"\ninterface = \"v0\"", "");
        let daemons = pair.up(ethernet, ethernet);
        pair.exchange();
        for stats in pair.stop(daemons) {
            assert_eq!(stats["stats"]["frames_rejected"], 0, "{stats}");
            assert_eq!(stats["io"]["packets_untaken"], 0, "{stats}");
        }
    });
}

#[test]
fn a_station_that_ends_tells_its_peer() {
    with_net("a_station_that_ends_tells_its_peer", || {
        let pair = Pair::new("goodbye");
        let ethernet = ("kind = \"ethernet\"\ninterface = \"v0\"", "");
        let [near, far] = pair.up(ethernet, ethernet);
        assert_eq!(near.stop().0, Some(0));
        let ended = Instant::now();
        let told = || {
            ["shut down", "stopped responding"]
                .iter()
                .any(|it| far.log().contains(&format!("station 1 {it}")))
                .then(|| ended.elapsed())
        };
        let took = until(told).expect("the log says what became of station 1");
        assert!(took < Duration::from_secs(5), "{took:?}");
        far.stop();
    });
}

/// A peer that cannot answer a goodbye delays the exit only for as long as saying it takes: a
/// second at most, and not until the next diagnosis, seconds later.
#[test]
fn a_station_whose_peer_is_dead_ends() {
    with_net("a_station_whose_peer_is_dead_ends", || {
        let pair = Pair::new("unheard");
        let ethernet = ("kind = \"ethernet\"\ninterface = \"v0\"", "");
        let [near, far] = pair.up(ethernet, ethernet);
        drop(near);
        let asked = Instant::now();
        let (code, log) = far.stop();
        assert_eq!(code, Some(0), "{log}");
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    });
}

#[test]
fn two_endpoints_over_udp_on_ipv4_and_ipv6() {
    with_net("two_endpoints_over_udp_on_ipv4_and_ipv6", || {
        let pair = Pair::new("udp");
        let cases = [
            ("0.0.0.0:4242", "192.168.7.2:4242"),
            ("[::]:4242", "192.168.7.2:4242"),
            ("[::]:4242", "[fd00:7::2]:4242"),
        ];
        for (listen, endpoint) in cases {
            // Only one side is configured with the other's address.
            let far = format!("kind = \"udp\"\nlisten = \"{listen}\"");
            let near = format!("endpoint = \"{endpoint}\"");
            let daemons = pair.up(("kind = \"udp\"", &near), (&far, ""));
            for daemon in &daemons {
                assert!(daemon.log().contains("frames of up to 1452 bytes"), "{}", daemon.log());
            }
            pair.exchange();
            pair.stop(daemons);
        }
    });
}

#[test]
fn errors_from_the_network_neither_stop_a_daemon_nor_keep_it_busy() {
    with_net("errors_from_the_network_neither_stop_a_daemon_nor_keep_it_busy", || {
        // Nobody listens there: the far kernel answers each frame with an ICMP error.
        let pair = Pair::new("complaints");
        let path = pair.place.path().join("stats.json");
        let near = endpoint(1, "kind = \"udp\"", "endpoint = \"192.168.7.2:4242\"");
        let file = pair.place.write("1.toml", &near);
        let arguments = [file.to_str().unwrap(), "--stats-file", path.to_str().unwrap()];
        let mut daemon = Daemon::up(&pair.near, &arguments);
        daemon.wait_for("a frame to 192.168.7.2:4242 could not be delivered: ECONNREFUSED");
        // From here on the daemon's frames are longer than the interface accepts.
        pair.near.ip("link set v0 mtu 80");
        daemon.wait_for("192.168.7.2:4242: Message too long");
        std::thread::sleep(Duration::from_millis(500));
        let stats = stats(&daemon, &pair.place);
        assert!(stats["io"]["wakeups"].as_u64().is_some_and(|count| count < 1000), "{stats}");
        let (code, log) = daemon.stop();
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(log.matches("cannot send a frame").count(), 1, "{log}");
    });
}

#[test]
fn a_peer_that_moves_is_found_again() {
    with_net("a_peer_that_moves_is_found_again", || {
        let pair = Pair::new("roam");
        let far = "kind = \"udp\"\nlisten = \"0.0.0.0:4242\"";
        let near = "endpoint = \"192.168.7.2:4242\"";
        let mut daemons = pair.up(("kind = \"udp\"", near), (far, ""));
        pair.echo(FAR[0].parse().unwrap());
        pair.near.ip("addr add 192.168.7.9/24 dev v0");
        pair.near.ip("addr del 192.168.7.1/24 dev v0");
        pair.near.ip("addr add 192.168.7.9/24 dev v0 preferred_lft forever");
        stream(&pair.near, &pair.far, FAR[0].parse().unwrap(), 100_000);
        daemons[1].wait_for("station 1 has moved to 192.168.7.9:");
        pair.stop(daemons);
    });
}

#[test]
fn losses_made_on_purpose_are_made_and_repaired() {
    with_net("losses_made_on_purpose_are_made_and_repaired", || {
        let pair = Pair::new("loss");
        let loss = |from: u8| {
            format!(
                "[synthetic_loss]\nseed = 7\n[[synthetic_loss.link]]\nfrom = {from}\nratio = 0.2"
            )
        };
        let ethernet = "kind = \"ethernet\"\ninterface = \"v0\"\nrate_bps = 20000000";
        let daemons = pair.up((ethernet, &loss(2)), (ethernet, &loss(1)));
        let start = Instant::now();
        stream(&pair.near, &pair.far, FAR[0].parse().unwrap(), 500_000);
        assert!(start.elapsed() < Duration::from_secs(30));
        let [_, far] = pair.stop(daemons);
        let lost = far["io"]["frames_lost_synthetic"].as_f64().unwrap();
        let heard = far["stats"]["frames_accepted"].as_f64().unwrap();
        let ratio = lost / (lost + heard);
        assert!((0.12..0.28).contains(&ratio), "{ratio}: {far}");
    });
}

#[test]
fn a_helper_overhears_what_is_not_addressed_to_it() {
    with_net("a_helper_overhears_what_is_not_addressed_to_it", || {
        let pair = Pair::new("helper");
        // A bridge that floods like a radio channel: all hear all.
        let air = Namespace::new().unwrap();
        pair.near.ip("link del v0");
        air.ip("link add air type bridge ageing_time 0 mcast_snooping 0");
        air.ip("link set air up");
        let third = Namespace::new().unwrap();
        for (index, namespace) in [&pair.near, &pair.far, &third].into_iter().enumerate() {
            namespace.cable("v0", &air, &format!("p{index}"));
            air.ip(&format!("link set p{index} master air"));
        }
        let text = r#"
            station = { id = 3, role = "helper" }
            security.psk = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            underlay = { kind = "ethernet", interface = "v0" }
            peer = [{ id = 1, role = "endpoint" }, { id = 2, role = "endpoint" }]
        "#;
        let file = pair.place.write("3.toml", text);
        let stats = pair.place.path().join("stats.json");
        let arguments = [file.to_str().unwrap(), "--stats-file", stats.to_str().unwrap()];
        let mut helper = Daemon::up(&third, &arguments);
        helper.wait_for("station 3 is up: helper, no TUN device");
        let ethernet =
            ("kind = \"ethernet\"\ninterface = \"v0\"", "[[peer]]\nid = 3\nrole = \"helper\"");
        let daemons = pair.up(ethernet, ethernet);
        helper.wait_for("session with station 1 is up").wait_for("session with station 2 is up");
        stream(&pair.near, &pair.far, FAR[1].parse().unwrap(), 300_000);
        // It may not have read all that it has received.
        let heard = || self::stats(&helper, &pair.place);
        let is_much = |heard: &Value| heard["stats"]["symbols_innovative"].as_u64() > Some(100);
        assert!(until(|| is_much(&heard()).then_some(())).is_some(), "{}", heard());
        assert_eq!(helper.stop().0, Some(0));
        pair.stop(daemons);
    });
}
