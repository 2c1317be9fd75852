//! Real paths: their MTU, interfaces that come and go, host names, default routes.

use std::collections::BTreeSet;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::{Daemon, Namespace, Place, endpoint, stream, until, with_net};
use corridor_testing::realtime::{Measured, until_it_holds};
use nix::errno::Errno;
use nix::sys::signal::Signal;

const FAR: [&str; 2] = ["10.9.0.2", "fd00:9::2"];
const LISTENS: &str = "kind = \"udp\"\nlisten = \"0.0.0.0:4242\"";
const KNOWS: &str = "endpoint = \"192.168.7.2:4242\"";

/// Two hosts on a switch that silently drops what is too long for a port, like a path whose ICMP is
/// filtered.
struct Switched {
    near: Namespace,
    far: Namespace,
    switch: Namespace,
    place: Place,
}

impl Switched {
    /// Sets the MTU of the port to the far host, and of what is behind it.
    fn new(test: &str, mtu: usize) -> Self {
        let [near, far, switch] = [(); 3].map(|()| Namespace::new().unwrap());
        switch.ip("link add name air type bridge");
        switch.ip("link set air up");
        for (id, host) in [(1, &near), (2, &far)] {
            host.cable("v0", &switch, &format!("p{id}"));
            switch.ip(&format!("link set p{id} master air"));
            host.ip(&format!("addr add 192.168.7.{id}/24 dev v0"));
            host.ip(&format!("addr add fd00:7::{id}/64 dev v0 nodad"));
        }
        switch.ip(&format!("link set p2 mtu {mtu}"));
        Switched { near, far, switch, place: Place::new(test) }
    }

    fn start(&self, namespace: &Namespace, id: u8, underlay: &str, rest: &str) -> Daemon {
        let file = self.place.write(&format!("{id}.toml"), &endpoint(id, underlay, rest));
        let stats = self.place.path().join(format!("{id}.json"));
        let arguments = [file.to_str().unwrap(), "--stats-file", stats.to_str().unwrap()];
        Daemon::up(namespace, &arguments)
    }

    /// What a daemon had counted when it ended.
    fn stats(&self, id: u8) -> serde_json::Value {
        let path = self.place.path().join(format!("{id}.json"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    /// Daemons at both ends with a session; only the near one is configured with the other's
    /// address.
    fn up(&self, peer: &str, coding: &str) -> [Daemon; 2] {
        let near = self.start(&self.near, 1, "kind = \"udp\"", &format!("{peer}\n{coding}"));
        let far = self.start(&self.far, 2, "kind = \"udp\"\nlisten = \"[::]:4242\"", coding);
        let mut daemons = [near, far];
        daemons[0].wait_for("session with station 2 is up");
        daemons[1].wait_for("session with station 1 is up");
        daemons
    }
}

/// The MTU of an interface, bytes.
fn mtu(namespace: &Namespace, interface: &str) -> usize {
    let link = &namespace.ip_json(&format!("link show {interface}"))[0];
    link["mtu"].as_u64().expect("an MTU") as usize
}

/// Lengths of frames that a daemon has reported as the path's maximum, the newest last.
fn carried(daemon: &Daemon) -> Vec<usize> {
    let log = daemon.log();
    let said = log.split("carries frames of ").skip(1);
    said.filter_map(|rest| rest.split(' ').next()?.parse().ok()).collect()
}

/// A datagram in a packet of this length is sent from one host to an address of another, and comes
/// back; it is repeated until it does.
pub(crate) fn echo(from: &Namespace, to: &Namespace, address: IpAddr, packet_len: usize) {
    let headers = if address.is_ipv4() { 28 } else { 48 };
    let sent: Vec<u8> = (0..packet_len - headers).map(|at| (at * 7) as u8).collect();
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let server = to.run(|| UdpSocket::bind((address, 0)).unwrap());
    let client = from.run(|| UdpSocket::bind(any).unwrap());
    client.connect(server.local_addr().unwrap()).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut buffer = [0; 2048];
    let came_back = until(|| {
        // What was reported about an earlier one shows with the next.
        let _ = client.send(&sent);
        let (len, back) = server.recv_from(&mut buffer).ok()?;
        server.send_to(&buffer[..len], back).unwrap();
        let len = client.recv(&mut buffer).ok()?;
        (buffer[..len] == sent).then_some(())
    });
    assert!(came_back.is_some(), "{packet_len} bytes to {address} do not come back");
}

fn stop(daemons: impl IntoIterator<Item = Daemon>) {
    for daemon in daemons {
        let (code, log) = daemon.stop();
        assert_eq!(code, Some(0), "{log}");
    }
}

#[test]
fn a_short_path_without_icmp_is_found_in_both_directions() {
    with_net("a_short_path_without_icmp_is_found_in_both_directions", || {
        // A port lets packets pass that are longer than its MTU by a VLAN tag, and no longer ones;
        // some kernels only inbound.
        let (mtu_of_port, longest) = (1_400, 1_400 + 4);
        let cases = [
            ("192.168.7.2", 28, "[coding]\npreset = \"block\""),
            ("192.168.7.2", 28, "[coding]\npreset = \"window\""),
            ("[fd00:7::2]", 48, "[coding]\npreset = \"window\""),
        ];
        for (at, headers, coding) in cases {
            let net = Switched::new("short-path", 1_400);
            let daemons = net.up(&format!("endpoint = \"{at}:4242\""), coding);
            let found = until(|| {
                let found = daemons.each_ref().map(|daemon| carried(daemon).pop().unwrap_or(0));
                found.iter().all(|&len| len + headers > mtu_of_port - 4).then_some(found)
            });
            let Some(found) = found else { panic!("{}\n{}", daemons[0].log(), daemons[1].log()) };
            assert!(found.iter().all(|&len| len + headers <= longest), "{found:?}");
            // Packets of the tunnel's MTU cross, in both directions, and so does a stream of them.
            let hosts =
                [(&net.near, &net.far, FAR), (&net.far, &net.near, ["10.9.0.1", "fd00:9::1"])];
            for (from, to, addresses) in hosts {
                let most = mtu(from, "cor0");
                // A full-size packet costs at most 38 bytes in blocks.
                let least = mtu_of_port - 4 - headers - 38;
                assert!((least..1_404).contains(&most), "{most}");
                for address in addresses {
                    echo(from, to, address.parse().unwrap(), most);
                    echo(from, to, address.parse().unwrap(), 1_280);
                }
                stream(from, to, addresses[0].parse().unwrap(), 300_000);
            }
            // Hosts that send longer ones through the near host are told what fits.
            let behind = Namespace::new().unwrap();
            net.near.cable("b0", &behind, "b0");
            for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                net.near.run(|| std::fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap());
            }
            net.near.ip("addr add 10.22.7.1/24 dev b0");
            net.near.ip("addr add fd00:22::1/64 dev b0 nodad");
            behind.ip("addr add 10.22.7.5/24 dev b0");
            behind.ip("addr add fd00:22::5/64 dev b0 nodad");
            behind.ip("route add default via 10.22.7.1");
            behind.ip("route add default via fd00:22::1");
            for address in FAR {
                echo(&behind, &net.far, address.parse().unwrap(), 1_480);
                let route = behind.ip(&format!("route get {address}"));
                let told = format!("mtu {}", mtu(&net.near, "cor0"));
                assert!(route.contains(&told), "{told}: {route}");
            }
            stop(daemons);
        }
    });
}

#[test]
fn a_path_that_carries_everything_is_used_in_full_at_once() {
    with_net("a_path_that_carries_everything_is_used_in_full_at_once", || {
        let net = Switched::new("full-path", 1_500);
        let mut daemons = net.up(KNOWS, "[coding]\npreset = \"window\"");
        for daemon in &mut daemons {
            daemon.wait_for("carries frames of 1452 bytes: cor0 MTU set to 1419 bytes");
        }
        stream(&net.near, &net.far, FAR[0].parse().unwrap(), 300_000);
        stop(daemons);
    });
}

#[test]
fn an_interface_whose_mtu_is_lowered_is_followed() {
    with_net("an_interface_whose_mtu_is_lowered_is_followed", || {
        let net = Switched::new("lowered", 1_500);
        let mut daemons = net.up(KNOWS, "");
        daemons[0].wait_for("carries frames of 1452 bytes");
        net.near.ip("link set v0 mtu 1350");
        // Only the first long frame is refused by the interface.
        let _ = net.near.run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.send_to(&[0; 1_300], "10.9.0.2:9")
        });
        daemons[0].wait_for("carries frames of 1322 bytes");
        echo(&net.near, &net.far, FAR[0].parse().unwrap(), mtu(&net.near, "cor0"));
        stop(daemons);
    });
}

/// Nobody reports that the path's MTU has dropped; symbols made for longer frames are sent in
/// parts. When this is noticed also depends on the machine, and what is too late by then is given
/// up.
#[test]
fn a_path_that_becomes_shorter_under_load_strands_nothing() {
    let name = "a_path_that_becomes_shorter_under_load_strands_nothing";
    with_net(name, || {
        for preset in ["window", "block"] {
            until_it_holds(name, |_| match shrinks_under_load(preset) {
                Ok(()) => Measured::Holds,
                Err(why) => Measured::Fails(format!("{preset}: {why}")),
            });
        }
    });
}

/// Full-length datagrams cross while a port of the switch begins to drop them. Returns any
/// objection.
fn shrinks_under_load(preset: &str) -> Result<(), String> {
    const DATAGRAMS: u32 = 1_500;
    let net = Switched::new(&format!("shrinks-{preset}"), 1_500);
    let mut daemons = net.up(KNOWS, &format!("[coding]\npreset = \"{preset}\""));
    daemons.iter_mut().for_each(|daemon| {
        daemon.wait_for("carries frames of 1452 bytes");
    });
    let server = net.far.run(|| UdpSocket::bind((FAR[0], 0)).unwrap());
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let client = net.near.run(|| UdpSocket::bind("0.0.0.0:0").unwrap());
    client.connect(server.local_addr().unwrap()).unwrap();
    let mut datagram = vec![0x5a; mtu(&net.near, "cor0") - 28];
    let (came, sent) = std::thread::scope(|scope| {
        let came = scope.spawn(|| {
            let (mut came, mut buffer) = (BTreeSet::new(), [0; 2048]);
            while let Ok(len) = server.recv(&mut buffer) {
                assert!(buffer[4..len].iter().all(|&byte| byte == 0x5a));
                came.insert(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
            }
            came
        });
        let mut sent = 0_u64;
        for number in 0..DATAGRAMS {
            if number == DATAGRAMS / 5 {
                net.switch.ip("link set p2 mtu 1400");
            }
            datagram[..4].copy_from_slice(&number.to_be_bytes());
            match client.send(&datagram) {
                Ok(_) => sent += 1,
                // The device's MTU fell while the kernel built a packet for the previous one.
                Err(error) if error.raw_os_error() == Some(Errno::EMSGSIZE as i32) => {}
                Err(error) => panic!("{error}"),
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        (came.join().unwrap(), sent)
    });
    let noticed =
        until(|| carried(&daemons[0]).last().is_some_and(|&len| len < 1_452).then_some(()));
    assert!(noticed.is_some(), "{}", daemons[0].log());
    stop(daemons);
    let [near, far] = [1, 2].map(|id| net.stats(id));
    let count = |stats: &serde_json::Value, name: &str| stats["stats"][name].as_u64().unwrap();
    assert!(count(&near, "symbols_cut") > 0 && count(&far, "symbols_joined") > 0, "{near} {far}");
    let lost = sent - came.len() as u64;
    let given_up = count(&near, "packets_given_up") + count(&far, "symbols_given_up");
    let dropped = count(&near, "packets_dropped_codel") + count(&near, "packets_dropped_ingress");
    if given_up == 0 && lost <= dropped {
        return Ok(());
    }
    Err(format!("{lost} lost, {dropped} of them before they were sent, {given_up} given up"))
}

#[test]
fn an_interface_that_goes_down_or_away_is_waited_for() {
    with_net("an_interface_that_goes_down_or_away_is_waited_for", || {
        let net = Switched::new("down-up", 1_500);
        let ethernet = "kind = \"ethernet\"\ninterface = \"v0\"";
        let mut near = net.start(&net.near, 1, ethernet, "");
        let mut far = net.start(&net.far, 2, ethernet, "");
        near.wait_for("session with station 2 is up");
        far.wait_for("session with station 1 is up");
        let meet = |len| echo(&net.near, &net.far, FAR[0].parse().unwrap(), len);
        meet(1_000);
        net.near.ip("link set v0 down");
        near.wait_for("v0 is gone (Network is down): waiting for it");
        std::thread::sleep(Duration::from_millis(300));
        net.near.ip("link set v0 up");
        near.wait_for("v0 is back");
        meet(1_000);
        // Another interface of the same name, with another address and a smaller MTU.
        net.near.ip("link del v0");
        let again = until(|| (near.log().matches("v0 is gone").count() == 2).then_some(()));
        assert!(again.is_some() && !net.near.has("v0"), "{}", near.log());
        net.near.cable("v0", &net.switch, "p3");
        net.near.ip("link set v0 mtu 1400");
        net.switch.ip("link set p3 mtu 1400 master air");
        near.wait_for("frames of up to 1400 bytes");
        // The far end does not notice: what it sends is too long at first.
        meet(mtu(&net.far, "cor0"));
        let noticed =
            until(|| carried(&far).last().copied().filter(|len| (1_396..=1_404).contains(len)));
        assert!(noticed.is_some(), "{}", far.log());
        meet(mtu(&net.near, "cor0"));
        stop([near, far]);
    });
}

/// Each station used to send requests to the other's new address, and to answer at the old one:
/// nothing crossed any more, and both reported a session.
#[test]
fn both_ends_of_a_link_that_is_made_anew_find_each_other() {
    with_net("both_ends_of_a_link_that_is_made_anew_find_each_other", || {
        let net = Switched::new("anew", 1_500);
        let ethernet = "kind = \"ethernet\"\ninterface = \"v0\"";
        let mut near = net.start(&net.near, 1, ethernet, "");
        let mut far = net.start(&net.far, 2, ethernet, "");
        near.wait_for("session with station 2 is up");
        far.wait_for("session with station 1 is up");
        let meet = |len| echo(&net.near, &net.far, FAR[0].parse().unwrap(), len);
        meet(1_000);
        for (end, port) in [(&net.near, "p3"), (&net.far, "p4")] {
            end.ip("link del v0");
            end.cable("v0", &net.switch, port);
            net.switch.ip(&format!("link set {port} master air"));
        }
        near.wait_for("v0 is back");
        far.wait_for("v0 is back");
        meet(1_000);
        stop([near, far]);
    });
}

#[test]
fn an_interface_that_comes_later_is_waited_for() {
    with_net("an_interface_that_comes_later_is_waited_for", || {
        let net = Switched::new("later", 1_500);
        let ethernet = "kind = \"ethernet\"\ninterface = \"w0\"";
        let mut near = net.start(&net.near, 1, ethernet, "");
        near.wait_for("w0 does not exist: waiting for it").wait_for("station 1 is up");
        near.wait_for("no session with station 2 for 5 s: cannot send frames");
        near.wait_for("the interface is down");
        let mut far = net.start(&net.far, 2, &ethernet.replace("w0", "v0"), "");
        far.wait_for("station 2 is up");
        net.near.cable("w0", &net.switch, "p3");
        net.switch.ip("link set p3 master air");
        near.wait_for("w0 is back").wait_for("session with station 2 is up");
        echo(&net.near, &net.far, FAR[1].parse().unwrap(), 1_280);
        stop([near, far]);
    });
}

#[test]
fn over_udp_a_network_that_goes_and_comes_back_ends_nothing() {
    with_net("over_udp_a_network_that_goes_and_comes_back_ends_nothing", || {
        let net = Switched::new("udp-down-up", 1_500);
        let daemons = net.up(KNOWS, "");
        net.near.ip("link set v0 down");
        let _ = net.near.run(|| {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.send_to(&[0; 1_000], "10.9.0.2:9")
        });
        std::thread::sleep(Duration::from_millis(500));
        net.near.ip("link set v0 up");
        echo(&net.near, &net.far, FAR[0].parse().unwrap(), 1_000);
        stop(daemons);
    });
}

/// `corridor up` with a hosts file of its own, and no other source of names than, if the tunnel is
/// the default route, a nameserver at 192.168.8.1.
fn up_with_names(namespace: &Namespace, place: &Path, file: &Path) -> Daemon {
    let script = "mount --bind $0/hosts /etc/hosts || exit 99
        echo 'hosts: files' > $0/nsswitch
        mount --bind $0/nsswitch /etc/nsswitch.conf || exit 99
        echo 'nameserver 192.168.8.1' > $0/resolv.conf
        mount --bind $0/resolv.conf /etc/resolv.conf || exit 99
        exec $1 up -v $2";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(place);
    command.arg(env!("CARGO_BIN_EXE_corridor")).arg(file);
    Daemon::start(namespace, command)
}

#[test]
fn a_name_is_looked_up_until_it_is_found_and_again_when_the_peer_is_elsewhere() {
    with_net("a_name_is_looked_up_until_it_is_found_and_again_when_the_peer_is_elsewhere", || {
        let net = Switched::new("names", 1_500);
        let hosts = |address: &str| {
            let text = format!("127.0.0.1 localhost\n{address} peer.test\n");
            std::fs::write(net.place.path().join("hosts"), text).unwrap();
        };
        std::fs::write(net.place.path().join("hosts"), "127.0.0.1 localhost\n").unwrap();
        let rest = "endpoint = \"peer.test:4242\"";
        let file = net.place.write("1.toml", &endpoint(1, "kind = \"udp\"", rest));
        let mut near = up_with_names(&net.near, net.place.path(), &file);
        near.wait_for("cannot resolve peer.test").wait_for("station 1 is up");
        let far = net.start(&net.far, 2, LISTENS, "");
        hosts("192.168.7.2");
        near.wait_for("session with station 2 is up");
        echo(&net.near, &net.far, FAR[0].parse().unwrap(), 1_000);
        // The peer says goodbye, restarts elsewhere, and has no configured address.
        stop([far]);
        net.far.ip("addr del 192.168.7.2/24 dev v0");
        net.far.ip("addr add 192.168.7.3/24 dev v0");
        hosts("192.168.7.3");
        let far = net.start(&net.far, 2, LISTENS, "");
        near.wait_for("station 2 is at 192.168.7.3:4242");
        echo(&net.near, &net.far, FAR[0].parse().unwrap(), 1_000);
        stop([near, far]);
    });
}

/// A nameserver that answers all names with one address, until it is stopped.
fn serve_names(socket: &UdpSocket, address: [u8; 4], stop: &AtomicBool) -> usize {
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (mut buffer, mut answers) = ([0; 512], 0);
    while !stop.load(Ordering::Relaxed) {
        let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
        let is_a = buffer[len - 4..len] == [0, 1, 0, 1];
        let mut answer = buffer[..len].to_vec();
        // A reply to the question's name, with one record for IPv4 and none for IPv6.
        answer[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a)]);
        if is_a {
            answer.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4]);
            answer.extend_from_slice(&address);
        }
        socket.send_to(&answer, from).unwrap();
        answers += 1;
    }
    answers
}

/// Stops a thread, also if the test fails before.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_default_route_leads_everything_through_the_tunnel_but_the_tunnel() {
    with_net("a_default_route_leads_everything_through_the_tunnel_but_the_tunnel", || {
        let [near, router, far] = [(); 3].map(|()| Namespace::new().unwrap());
        let place = Place::new("default-route");
        for (host, net, interface) in [(&near, 7, "r7"), (&far, 8, "r8")] {
            host.cable("v0", &router, interface);
            host.ip(&format!("addr add 192.168.{net}.1/24 dev v0"));
            router.ip(&format!("addr add 192.168.{net}.254/24 dev {interface}"));
            host.ip(&format!("route add default via 192.168.{net}.254"));
        }
        router.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
        // The Internet, at the far end.
        let world = ["203.0.113.5", "2001:db8:5::5"];
        world.iter().for_each(|address| {
            far.ip(&format!("addr add {address} dev lo"));
        });
        let text = endpoint(1, "kind = \"udp\"", "endpoint = \"far.test:4242\"")
            .replace("\"10.21.0.0/16\", \"fd00:21::/64\"", "\"0.0.0.0/0\", \"::/0\"");
        assert!(text.contains("::/0"));
        let file = place.write("1.toml", &text);
        let other = place.write("2.toml", &endpoint(2, LISTENS, ""));
        let far_end = Daemon::up(&far, &[other.to_str().unwrap()]);
        let rules = || {
            let all = near.ip("rule") + &near.ip("-6 rule");
            all.lines().filter(|line| line.starts_with("530")).count()
        };
        std::fs::write(place.path().join("hosts"), "127.0.0.1 localhost\n").unwrap();
        let (nameserver, ends) =
            (far.run(|| UdpSocket::bind("192.168.8.1:53").unwrap()), AtomicBool::new(false));
        let up = || {
            let mut daemon = up_with_names(&near, place.path(), &file);
            daemon.wait_for("session with station 2 is up");
            assert_eq!(rules(), 4);
            for address in world {
                assert!(near.ip(&format!("route get {address}")).contains("cor0"));
                echo(&near, &far, address.parse().unwrap(), 1_000);
            }
            // Neighbours stay where they are.
            assert!(near.ip("route get 192.168.7.254").contains("v0"));
            daemon
        };
        let asked = std::thread::scope(|scope| {
            let names = scope.spawn(|| serve_names(&nameserver, [192, 168, 8, 1], &ends));
            let _ends = Ends(&ends);
            // A killed daemon leaves rules behind, which the next one adopts; its queries and
            // frames still bypass the tunnel.
            let daemon = up();
            daemon.signal(Signal::SIGKILL);
            assert_eq!(daemon.end().0, None);
            assert_eq!(rules(), 4);
            let daemon = up();
            stream(&near, &far, world[0].parse().unwrap(), 300_000);
            // Down again before the daemon has noticed that it is up: the routes cannot be created
            // then, and must be when it is up permanently.
            daemon.signal(Signal::SIGSTOP);
            for to in ["down", "up", "down"] {
                near.ip(&format!("link set cor0 {to}"));
            }
            daemon.signal(Signal::SIGCONT);
            let heard = || daemon.log().matches("cor0 is down").count() == 2;
            assert!(until(|| heard().then_some(())).is_some(), "{}", daemon.log());
            near.ip("link set cor0 up");
            let leads = |it: &&str| near.ip(&format!("route get {it}")).contains("cor0");
            let back = until(|| world.iter().all(&leads).then_some(()));
            assert!(back.is_some() && rules() == 4, "{}", daemon.log());
            world.iter().for_each(|it| echo(&near, &far, it.parse().unwrap(), 1_000));
            stop([daemon]);
            ends.store(true, Ordering::Relaxed);
            names.join().unwrap()
        });
        assert!(asked >= 4, "{asked} answers of the nameserver");
        stop([far_end]);
        assert_eq!(rules(), 0);
        assert!(near.ip("route get 203.0.113.5").contains("v0"));
    });
}
