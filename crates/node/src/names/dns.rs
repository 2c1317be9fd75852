//! Name lookup outside the tunnel, for when the tunnel is the default route: the system's own
//! lookup would use the tunnel, which cannot be up before the name is known.
//!
//! Asks the hosts file first, then the servers in `resolv.conf`, over sockets that carry the
//! tunnel's mark (RFC 1035). Search lists and other sources of the system are ignored: names have
//! to be complete.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, Question, TYPE};

use super::Lookup;
use crate::syscalls::set_number;

const HOSTS: &str = "/etc/hosts";
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Where systemd-resolved lists its upstream servers; itself it would ask them through the tunnel.
const RESOLV_CONF_BEHIND: &str = "/run/systemd/resolve/resolv.conf";
const DNS_PORT: u16 = 53;
/// Servers that are asked, as in resolv.conf(5).
const SERVERS_MAX: usize = 3;
/// How long to wait for each server, and how often to ask it.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 2;
/// Buffer for an answer, in bytes: without extensions at most 512 are allowed over UDP (RFC 1035,
/// Section 4.2.1), but many servers send more.
const ANSWER_LEN_MAX: usize = 4_096;

/// A lookup over sockets with this mark.
pub(crate) fn marked_lookup(mark: u32) -> Lookup {
    Box::new(move |host, port| {
        let hosts = fs::read_to_string(HOSTS).unwrap_or_default();
        let mut found = in_hosts(&hosts, host);
        if found.is_empty() {
            found = ask_all(&servers(), host, Some(mark))?;
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    })
}

/// The addresses of a name in a hosts file (hosts(5)).
fn in_hosts(hosts: &str, host: &str) -> Vec<IpAddr> {
    let wanted = host.trim_end_matches('.');
    let line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        words.any(|name| name.eq_ignore_ascii_case(wanted)).then_some(address)
    };
    hosts.lines().filter_map(line).collect()
}

/// The servers to ask.
fn servers() -> Vec<SocketAddr> {
    let of = |path| fs::read_to_string(path).map_or(Vec::new(), |text| in_resolv_conf(&text));
    let servers = of(RESOLV_CONF);
    let behind = of(RESOLV_CONF_BEHIND);
    if servers.iter().all(|server| server.ip().is_loopback()) && !behind.is_empty() {
        return behind;
    }
    servers
}

fn in_resolv_conf(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address: IpAddr =
            (words.next()? == "nameserver").then(|| words.next())??.parse().ok()?;
        Some(SocketAddr::new(address, DNS_PORT))
    };
    text.lines().filter_map(server).take(SERVERS_MAX).collect()
}

/// The answer of the first server that gives one.
fn ask_all(servers: &[SocketAddr], host: &str, mark: Option<u32>) -> io::Result<Vec<IpAddr>> {
    let mut failed = io::Error::other(format!("no nameserver in {RESOLV_CONF}"));
    for &server in servers {
        match ask(server, host, mark) {
            Ok(found) => return Ok(found),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Asks one server for the addresses of both families, IPv4 first.
fn ask(server: SocketAddr, host: &str, mark: Option<u32>) -> io::Result<Vec<IpAddr>> {
    let socket = open(server, mark)?;
    let mut found = Vec::new();
    let mut failed = None;
    for kind in [TYPE::A, TYPE::AAAA] {
        match ask_for(&socket, host, kind) {
            Ok(addresses) => found.extend(addresses),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn open(server: SocketAddr, mark: Option<u32>) -> io::Result<UdpSocket> {
    let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    // A fresh port for each name, chosen by the kernel: an answer has to match it too.
    let socket: OwnedFd = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    if let Some(mark) = mark {
        set_number(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed())?;
    }
    let socket = UdpSocket::from(socket);
    socket.connect(server)?;
    Ok(socket)
}

fn ask_for(socket: &UdpSocket, host: &str, kind: TYPE) -> io::Result<Vec<IpAddr>> {
    let mut id = [0; 2];
    getrandom::fill(&mut id)?;
    let id = u16::from_ne_bytes(id);
    let name = Name::new(host.trim_end_matches('.')).map_err(io::Error::other)?;
    let question = Question::new(name, QTYPE::TYPE(kind), CLASS::IN.into(), false);
    let mut query = Packet::new_query(id);
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    query.questions.push(question.clone());
    let query = query.build_bytes_vec().map_err(io::Error::other)?;
    for _ in 0..ATTEMPTS {
        socket.send(&query)?;
        let end = Instant::now() + ANSWER_WITHIN;
        let mut buffer = [0; ANSWER_LEN_MAX];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            match socket.recv(&mut buffer) {
                Ok(len) => {
                    if let Some(found) = read_answer(&buffer[..len], id, &question) {
                        return Ok(found);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "no nameserver responded"))
}

/// The addresses in an answer to this question; `None` if it answers another.
fn read_answer(bytes: &[u8], id: u16, question: &Question<'_>) -> Option<Vec<IpAddr>> {
    let answer = Packet::parse(bytes).ok()?;
    let same = |asked: &Question<'_>| {
        let (ours, theirs) = (question.qname.to_string(), asked.qname.to_string());
        asked.qtype == question.qtype && ours.eq_ignore_ascii_case(&theirs)
    };
    let fits = answer.id() == id
        && answer.has_flags(PacketFlag::RESPONSE)
        && answer.questions.first().is_some_and(same);
    let address = |rdata: &RData<'_>| match rdata {
        RData::A(a) => Some(IpAddr::V4(Ipv4Addr::from(a.address))),
        RData::AAAA(a) => Some(IpAddr::V6(Ipv6Addr::from(a.address))),
        _ => None,
    };
    fits.then(|| answer.answers.iter().filter_map(|record| address(&record.rdata)).collect())
}

#[cfg(test)]
mod tests {
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, AAAA, CNAME};

    use super::*;

    #[test]
    fn files_are_read_as_the_system_does() {
        let hosts = "127.0.0.1 localhost\n# 192.0.2.9 b.test\n192.0.2.1 a B.test # c.test\n\
                     2001:db8::1\tb.test\nnonsense b.test\n";
        let found: Vec<String> = in_hosts(hosts, "b.test.").iter().map(IpAddr::to_string).collect();
        assert_eq!(found, ["192.0.2.1", "2001:db8::1"]);
        assert!(in_hosts(hosts, "c.test").is_empty());
        let servers =
            in_resolv_conf("nameserver 192.0.2.53\nsearch x\nnameserver\nnameserver ::1\n");
        let servers: Vec<String> = servers.iter().map(SocketAddr::to_string).collect();
        assert_eq!(servers, ["192.0.2.53:53", "[::1]:53"]);
    }

    #[test]
    fn a_server_is_asked_for_both_families_and_others_are_not_believed() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = server.local_addr().unwrap();
        let serve = move || {
            for _ in 0..2 {
                let mut buffer = [0; 512];
                let (len, from) = server.recv_from(&mut buffer).unwrap();
                let query = Packet::parse(&buffer[..len]).unwrap();
                assert!(query.has_flags(PacketFlag::RECURSION_DESIRED));
                let asked = query.questions[0].clone();
                let is_v4 = asked.qtype == QTYPE::TYPE(TYPE::A);
                let answer = |id, address| {
                    let mut answer = Packet::new_reply(id);
                    let name = asked.qname.clone();
                    let alias = RData::CNAME(CNAME(Name::new_unchecked("other.test")));
                    answer.questions.push(asked.clone());
                    let data = match is_v4 {
                        true => RData::A(A { address }),
                        false => RData::AAAA(AAAA { address: address.into() }),
                    };
                    answer.answers.push(ResourceRecord::new(name.clone(), CLASS::IN, 1, alias));
                    answer.answers.push(ResourceRecord::new(name, CLASS::IN, 1, data));
                    answer.build_bytes_vec().unwrap()
                };
                server.send_to(&answer(query.id().wrapping_add(1), 9), from).unwrap();
                server.send_to(b"noise", from).unwrap();
                server.send_to(&answer(query.id(), 0xc000_0201), from).unwrap();
            }
        };
        let server = std::thread::spawn(serve);
        let found = ask_all(&[at], "Peer.test", None).unwrap();
        server.join().unwrap();
        let expected: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "::c000:201".parse().unwrap()];
        assert_eq!(found, expected);
    }

    #[test]
    fn nobody_to_ask_is_an_error_that_says_so() {
        let error = ask_all(&[], "peer.test", None).unwrap_err();
        assert!(error.to_string().contains("no nameserver in /etc/resolv.conf"), "{error}");
    }
}
