//! Frames as UDP datagrams.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::bounds::{FRAME_LEN_MAX, MTU_RAISE_FIRST};
use corridor_proto::{Certainty, Destination, FrameLens, Learned, PeerBook, StationId};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrIn6,
    SockaddrStorage, bind, connect, getsockname, recvmsg, sendmsg, sendto, socket,
};

use super::outbox::{GivenUp, Outbox, Run};
use super::{
    Address, Busy, Flushed, News, Newsbox, RECEIVE_BUFFER_BYTES, Refusals, Sent, peer_book,
    send_buffer_bytes, tell_place,
};
use crate::config::{NodeConfig, UDP_HEADERS, UNDERLAY_MTU_DEFAULT};
use crate::default_route;
use crate::error::{CAP_NET_ADMIN, NodeError};
use crate::links::LinkState;
use crate::names::{self, Endpoint, Family, Names};
use crate::syscalls::{ReceiveBatch, Sender, number, send_batch, set_number};

/// Bytes of an IPv4 header without options, and a UDP header.
const HEADERS_V4: usize = 20 + 8;
/// Longest packet in bytes that every IPv4 host accepts (RFC 791, Section 3.1), and that every path
/// is assumed to carry.
const IPV4_PACKET_LEN: usize = 576;
/// Longest packet in bytes that every IPv6 path carries (RFC 8200, Section 5).
const IPV6_MTU_MIN: usize = 1_280;
/// Where to listen if the peer has a name, and nothing is configured.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
/// The same on a host without IPv6.
const ANY_PORT_V4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
/// Longest possible datagram in bytes.
const DATAGRAM_LEN_MAX: usize = 65_535;
/// Successive socket errors after which a frame counts as lost.
const SEND_ATTEMPTS: usize = 3;
/// Least time between searches for larger MTUs because of changed interfaces, where containers come
/// and go: as long as a path whose MTU has shrunk is left alone.
const LONGER_INTERVAL_MIN: Duration = MTU_RAISE_FIRST;

/// A UDP socket, and the addresses of peers.
pub(crate) struct Udp {
    socket: OwnedFd,
    local: SocketAddr,
    frame_len_max: usize,
    pub(super) peers: PeerBook<SocketAddr>,
    received: ReceiveBatch,
    outbox: Outbox<SocketAddr>,
    /// The kernel cuts frames from longer datagrams.
    cuts_segments: bool,
    pub(super) refusals: Refusals,
    names: Names,
    pub(super) news: Newsbox,
    longer: Longer,
}

/// An interface's MTU was raised, and it may be on the path to any peer.
#[derive(Clone, Copy, Debug, Default)]
struct Longer {
    looked_at: Option<Time>,
    /// When to search all paths for larger MTUs.
    look_at: Option<Time>,
}

impl Longer {
    fn note(&mut self, now: Time) {
        let soonest = self.looked_at.map_or(now, |at| at + LONGER_INTERVAL_MIN);
        self.look_at = Some(soonest.max(now));
    }

    /// Whether it is time.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.look_at.is_some_and(|at| at <= now);
        if is_due {
            *self = Longer { looked_at: Some(now), look_at: None };
        }
        is_due
    }
}

impl Udp {
    /// Opens a socket that listens on this address.
    pub(crate) fn open(
        config: &NodeConfig,
        listen: SocketAddr,
        now: Time,
    ) -> Result<Self, NodeError> {
        let frame_len_max = Udp::frame_len_max_of(config);
        let action = || format!("listen on UDP {listen}");
        // Ports below 1024 are privileged.
        let failed =
            |source: io::Error| NodeError::system(action(), "CAP_NET_BIND_SERVICE", source);
        let socket = open_socket(listen, frame_len_max)
            .or_else(|error| match error.raw_os_error() {
                // A host without IPv6 has no dual-stack socket either.
                Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) if listen == ANY_PORT => {
                    open_socket(ANY_PORT_V4, frame_len_max)
                }
                _ => Err(error),
            })
            .map_err(failed)?;
        let mark = config.tun.as_ref().and_then(default_route::mark);
        if let Some(mark) = mark {
            let action = "set the mark for traffic outside the tunnel";
            set_number(&socket, libc::SOL_SOCKET, libc::SO_MARK, mark.cast_signed())
                .map_err(|source| NodeError::system(action, CAP_NET_ADMIN, source))?;
        }
        let local = local_address(&socket).map_err(failed)?;
        // The kernel joins datagrams of one sender that arrived together.
        let joins = set_number(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        if let Err(error) = &joins {
            tracing::info!("UDP receive offload (GRO) is not available: {error}");
        }
        let address = |endpoint: &Endpoint| endpoint.address();
        let addresses =
            config.peers.iter().map(|peer| (peer.id, peer.endpoint.as_ref().and_then(address)));
        let family = match (local.is_ipv6(), local.ip().is_unspecified()) {
            (false, _) => Family::V4,
            (true, true) => Family::Both,
            (true, false) => Family::V6,
        };
        let mut names = Names::new(family, names::lookup(mark));
        for peer in &config.peers {
            names.set(now, peer.id, peer.endpoint.clone());
        }
        Ok(Udp {
            socket,
            local,
            frame_len_max,
            peers: peer_book(addresses, true)?,
            received: ReceiveBatch::new(joins.is_ok().then_some(DATAGRAM_LEN_MAX), FRAME_LEN_MAX),
            outbox: Outbox::new(),
            cuts_segments: true,
            refusals: Refusals::default(),
            names,
            news: Newsbox::default(),
            longer: Longer::default(),
        })
    }

    /// An interface's MTU has changed: checks the paths to the peers. Which of them use it is not
    /// determined, as that would cost a lookup per peer and notification.
    pub(super) fn note_link(&mut self, now: Time, link: &LinkState) {
        match link.mtu_before {
            Some(before) if link.mtu > before => self.longer.note(now),
            Some(_) => self.news.put(News::TooLong),
            None => {}
        }
    }

    /// The range of frame lengths for the path MTU search.
    pub(super) fn frame_lens(&self) -> FrameLens {
        FrameLens {
            min: IPV4_PACKET_LEN - UDP_HEADERS,
            base: IPV6_MTU_MIN - UDP_HEADERS,
            max: self.frame_len_max,
        }
    }

    /// Records where a frame of a station came from.
    pub(super) fn learn(
        &mut self,
        now: Time,
        (station, at): (StationId, SocketAddr),
        certainty: Certainty,
        len_bytes: usize,
    ) {
        let learned = self.peers.learn(now, (station, at), certainty, len_bytes);
        self.note_place(learned, station, at);
        if matches!(certainty, Certainty::Session | Certainty::Answer(_)) {
            self.names.note_heard(station);
        }
    }

    /// A station is at the address that it has sent from, although it cannot be challenged there.
    pub(super) fn believe(&mut self, station: StationId, at: SocketAddr) {
        let learned = self.peers.believe(station, at);
        self.note_place(learned, station, at);
    }

    fn note_place(&self, learned: Learned, station: StationId, at: SocketAddr) {
        tell_place(learned, station, &at);
        if learned != Learned::Nothing {
            self.news.put(News::Path(Some(station)));
        }
    }

    /// Adds a frame for one address to the batch.
    pub(super) fn push_to(&mut self, to: SocketAddr, frame: &[u8]) {
        self.outbox.push([to], (&[], frame), true);
    }

    /// Applies a peer's configured address.
    pub(super) fn configure(&mut self, now: Time, station: StationId, at: Option<Endpoint>) {
        self.peers.configure(station, at.as_ref().and_then(Endpoint::address));
        self.names.set(now, station, at);
        self.news.put(News::Path(Some(station)));
    }

    /// Adds a peer.
    pub(super) fn add(&mut self, now: Time, station: StationId, at: Option<Endpoint>) {
        self.peers.add(station, at.as_ref().and_then(Endpoint::address));
        self.names.set(now, station, at);
    }

    /// Removes a peer.
    pub(super) fn remove(&mut self, now: Time, station: StationId) {
        self.peers.remove(station);
        self.names.set(now, station, None);
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        [self.names.poll_timeout(), self.longer.look_at].into_iter().flatten().min()
    }

    /// Applies the result of a name lookup, and searches for larger MTUs if this is due.
    pub(super) fn handle_timeout(&mut self, now: Time) {
        if self.longer.is_due(now) {
            self.news.put(News::Path(None));
        }
        if let Some((station, address)) = self.names.handle_timeout(now)
            && self.peers.suggest(station, address)
        {
            tracing::info!("trying {address} for station {}", station.0);
            self.news.put(News::Path(Some(station)));
        }
    }

    /// Longest frame in bytes that reaches the configured peers unfragmented, as far as this host
    /// knows.
    ///
    /// Assumes IPv6 headers even over IPv4, so that both ends get the same length although only one
    /// of them knows which it will be, and because a peer may move.
    pub(super) fn frame_len_max_of(config: &NodeConfig) -> usize {
        let endpoints = config.peers.iter().filter_map(|peer| peer.endpoint.as_ref()?.address());
        let on_the_way = endpoints.filter_map(|endpoint| path_mtu(endpoint).ok()).min();
        let mtu = config.underlay.mtu.or(on_the_way).unwrap_or(UNDERLAY_MTU_DEFAULT);
        (mtu - UDP_HEADERS).min(FRAME_LEN_MAX)
    }

    pub(super) fn frame_len_max(&self) -> usize {
        self.frame_len_max
    }

    /// Adds a frame to the batch. A frame for a peer whose address is not known yet is lost: the
    /// peer has to send first.
    pub(super) fn push(&mut self, now: Time, to: Destination, frame: &[u8], alone: bool) {
        match to {
            Destination::All => {
                self.outbox.push(self.peers.addresses(now, frame.len()), (&[], frame), alone);
            }
            Destination::Search(station) => {
                let places = self.peers.places(now, station, frame.len());
                self.outbox.push(places, (&[], frame), alone);
            }
            Destination::Station(station) => {
                self.outbox.push(self.peers.place(station, frame.len()), (&[], frame), alone);
            }
        }
    }

    /// Frames that wait for the kernel.
    pub(super) fn waiting(&self) -> usize {
        self.outbox.waiting()
    }

    pub(super) fn is_full(&self) -> bool {
        self.outbox.is_full(self.frame_len_max)
    }

    pub(super) fn flush(&mut self, now: Time) -> Result<Flushed, NodeError> {
        let mut lost = 0;
        while let Some(run) = self.outbox.run() {
            let mut refused_run = None;
            if run.count > 1 && self.cuts_segments {
                match self.send_run(&run) {
                    Ok(()) => {
                        let count = run.count;
                        self.outbox.note_taken(now, count);
                        continue;
                    }
                    Err(Errno::EINTR) => continue,
                    Err(Errno::EAGAIN) => return Ok(self.busy(now, lost, true)),
                    // The interface has no checksum offload, or the kernel knows nothing of
                    // segments; or the segments are longer than the route carries, which a single
                    // one will show. EOPNOTSUPP is not among these: anybody's ICMP may cause it.
                    Err(errno @ (Errno::EIO | Errno::EINVAL)) => refused_run = Some(errno),
                    // Other errors will show with a single frame.
                    Err(_) => {}
                }
            } else if !self.cuts_segments && self.outbox.waiting() > 1 {
                let (outbox, told) = (&self.outbox, |to| Some(self.sockaddr(to)));
                let frames = outbox.iter().map(|(to, frame)| (told(to), frame));
                if let Ok(count @ 1..) = send_batch(&self.socket, frames) {
                    self.outbox.note_taken(now, count);
                    continue;
                }
            }
            let Some((to, frame)) = self.outbox.front() else { break };
            match self.send_one(to, frame)? {
                Sent::Taken => {
                    self.outbox.note_taken(now, 1);
                    if let Some(errno) = refused_run {
                        self.cuts_segments = false;
                        let why = errno.desc();
                        tracing::info!("UDP segmentation offload (GSO) is not available: {why}");
                    }
                }
                Sent::Lost => {
                    lost += 1;
                    self.outbox.drop_front();
                }
                Sent::Busy { wakes: true } => return Ok(self.busy(now, lost, true)),
                Sent::Busy { wakes: false } => match self.outbox.give_up(now) {
                    GivenUp { frames: 0, .. } => return Ok(self.busy(now, lost, false)),
                    GivenUp { frames, says_too_long } => {
                        if says_too_long {
                            self.news.put(News::TooLong);
                        }
                        lost += frames as u64;
                    }
                },
            }
        }
        Ok(Flushed { lost, busy: None })
    }

    fn busy(&mut self, now: Time, lost: u64, wakes: bool) -> Flushed {
        let retry = self.outbox.note_busy(now);
        Flushed { lost, busy: Some(Busy { wakes, retry }) }
    }

    /// Sends frames as one datagram, from which the kernel or the network card cuts them.
    fn send_run(&self, run: &Run<'_, SocketAddr>) -> nix::Result<()> {
        let segment_len = run.segment_len as u16;
        let fd = self.socket.as_raw_fd();
        let (parts, control) =
            ([IoSlice::new(run.bytes)], [ControlMessage::UdpGsoSegments(&segment_len)]);
        let to = self.sockaddr(run.to);
        sendmsg(fd, &parts, &control, MsgFlags::MSG_DONTWAIT, Some(&to)).map(drop)
    }

    /// An address in the form that the socket needs.
    fn sockaddr(&self, to: SocketAddr) -> SockaddrStorage {
        SockaddrStorage::from(self.spelled(to))
    }

    fn send_one(&self, to: SocketAddr, frame: &[u8]) -> Result<Sent, NodeError> {
        let address = self.sockaddr(to);
        let fd = self.socket.as_raw_fd();
        let mut last = Errno::EAGAIN;
        for _ in 0..SEND_ATTEMPTS {
            last = match sendto(fd, frame, &address, MsgFlags::MSG_DONTWAIT) {
                Ok(_) => return Ok(Sent::Taken),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return Ok(Sent::Busy { wakes: true }),
                Err(Errno::ENOBUFS | Errno::ENOMEM) => return Ok(Sent::Busy { wakes: false }),
                Err(errno @ (Errno::EBADF | Errno::ENOTSOCK | Errno::EFAULT)) => {
                    return Err(NodeError::System { action: "send".into(), source: errno.into() });
                }
                // It may be the pending error of an earlier frame: try again, since it is reported
                // once.
                Err(errno) => errno,
            };
            self.drain_errors();
        }
        self.refusals.note(Some(Address::Internet(to)), last);
        if last == Errno::EMSGSIZE && !self.news.has_limit() {
            // The interface's limit was not reported.
            self.news.put(News::Limit(frame.len() - 1));
        }
        self.refusals.tell(frame.len(), &to, last);
        Ok(Sent::Lost)
    }

    pub(super) fn receive(&mut self) -> Result<usize, NodeError> {
        match self.received.receive(&self.socket) {
            Ok(count) => Ok(count),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EBADF | Errno::ENOTSOCK | Errno::EFAULT | Errno::EINVAL) => {
                    Err(NodeError::System { action: "receive".into(), source: error })
                }
                // Nothing waits, or only the pending error of a frame already sent.
                _ => {
                    self.drain_errors();
                    Ok(0)
                }
            },
        }
    }

    pub(super) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        self.received.frame(index)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn describe(&self) -> String {
        format!("udp on {}", self.local)
    }

    /// An address in the form that the socket needs: a dual-stack socket needs IPv6.
    fn spelled(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.local.is_ipv6() => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            address => address,
        }
    }

    /// Empties the error queue; while it is not empty, waiting on the socket ends at once.
    fn drain_errors(&self) {
        let fd = self.socket.as_raw_fd();
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut space = nix::cmsg_space!([u8; 128], [u8; 128]);
        while let Ok(message) = recvmsg::<SockaddrStorage>(fd, &mut [], Some(&mut space), flags) {
            let address = message.address;
            let headers =
                if address.as_ref().is_some_and(is_v4) { HEADERS_V4 } else { UDP_HEADERS };
            let Ok(messages) = message.cmsgs() else { continue };
            for message in messages {
                let (ControlMessageOwned::Ipv4RecvErr(error, _)
                | ControlMessageOwned::Ipv6RecvErr(error, _)) = message
                else {
                    continue;
                };
                let to = address.map(|address| address.to_string()).unwrap_or_default();
                let errno = Errno::from_raw(error.ee_errno.cast_signed());
                // What this host itself refuses was already reported by the sending call.
                if error.ee_origin != libc::SO_EE_ORIGIN_LOCAL {
                    let to = address.as_ref().and_then(internet_address);
                    self.refusals.note(to.map(Address::Internet), errno);
                }
                let mtu = error.ee_info as usize;
                if errno != Errno::EMSGSIZE {
                    tracing::debug!("a frame to {to} could not be delivered: {errno}");
                } else if error.ee_origin == libc::SO_EE_ORIGIN_LOCAL {
                    self.news.put(News::Limit(mtu.saturating_sub(headers)));
                } else {
                    tracing::debug!("a router reports a path MTU of {mtu} bytes to {to}");
                    self.news.put(News::TooLong);
                }
            }
        }
        // The last error is stored apart from the queue; reading it clears it.
        let _ = number(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR);
    }
}

/// Whether an address is IPv4, possibly mapped to IPv6.
fn is_v4(address: &SockaddrStorage) -> bool {
    let is_mapped = |address: &SockaddrIn6| address.ip().to_ipv4_mapped().is_some();
    address.as_sockaddr_in().is_some() || address.as_sockaddr_in6().is_some_and(is_mapped)
}

fn open_socket(listen: SocketAddr, frame_len_max: usize) -> io::Result<OwnedFd> {
    let socket = new_socket(listen)?;
    if listen.is_ipv6() {
        // "[::]" listens to both families, whatever the system's default is.
        set_number(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0)?;
        let probe = libc::IPV6_PMTUDISC_PROBE;
        set_number(&socket, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, probe)?;
        // Otherwise the kernel does not report that its queue is full.
        set_number(&socket, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)?;
    }
    // Do not fragment: losing a fragment loses the frame, at twice the rate. What routers report
    // about the path is read, but not obeyed: anyone can forge it.
    set_number(&socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    set_number(&socket, libc::IPPROTO_IP, libc::IP_RECVERR, 1)?;
    let bytes = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    let send = bytes(send_buffer_bytes(frame_len_max + UDP_HEADERS));
    set_number(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, send)?;
    let receive = bytes(RECEIVE_BUFFER_BYTES);
    set_number(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, receive)
        .or_else(|_| set_number(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, receive))?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(listen))?;
    Ok(socket)
}

fn new_socket(for_address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if for_address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(family, SockType::Datagram, flags, None)?)
}

/// Longest IP packet on the way to a host, in bytes, according to routes and earlier traffic.
fn path_mtu(to: SocketAddr) -> io::Result<usize> {
    let socket = new_socket(to)?;
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to))?;
    let (level, name) = if to.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_MTU)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU)
    };
    let mtu = number(&socket, level, name)?;
    // Loopback reports 65536, and no relevant path carries less than IPv4's minimum.
    Ok(usize::try_from(mtu).unwrap_or(0).clamp(576, 9_216))
}

fn local_address(socket: &OwnedFd) -> io::Result<SocketAddr> {
    let address: SockaddrStorage = getsockname(socket.as_raw_fd())?;
    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
    Ok(plain_address(&address).unwrap_or(any))
}

/// An address in the form in which peers are known: IPv4-mapped addresses become IPv4.
fn internet_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let address = plain_address(address)?;
    Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

fn plain_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|address| SocketAddr::new(IpAddr::V4(address.ip()), address.port()));
    let v6 = address
        .as_sockaddr_in6()
        .map(|address| SocketAddr::new(IpAddr::V6(address.ip()), address.port()));
    v4.or(v6)
}

#[cfg(test)]
mod tests {
    use corridor_proto::StationId;

    use super::*;

    const PEER: Destination = Destination::Station(StationId(2));

    fn udp(peers: &[(u8, SocketAddr)], cuts_segments: bool) -> Udp {
        let socket = open_socket("127.0.0.1:0".parse().unwrap(), 1_500).unwrap();
        let joins = set_number(&socket, libc::SOL_UDP, libc::UDP_GRO, 1);
        let addresses =
            peers.iter().map(|&(id, address)| (StationId(u16::from(id)), Some(address)));
        Udp {
            local: local_address(&socket).unwrap(),
            socket,
            frame_len_max: 1_500,
            peers: peer_book(addresses, true).unwrap(),
            received: ReceiveBatch::new(joins.is_ok().then_some(DATAGRAM_LEN_MAX), FRAME_LEN_MAX),
            outbox: Outbox::new(),
            cuts_segments,
            refusals: Refusals::default(),
            names: Names::new(Family::V4, names::lookup(None)),
            news: Newsbox::default(),
            longer: Longer::default(),
        }
    }

    /// Sends batches as the run loop does, and receives what arrives in between.
    fn send_all(from: &mut Udp, to: Destination, frames: &[Vec<u8>], hearers: &mut [Hearer]) {
        for frame in frames {
            from.push(Time::ZERO, to, frame, false);
            if from.is_full() {
                let flushed = from.flush(Time::ZERO).unwrap();
                assert_eq!(flushed, Flushed { lost: 0, busy: None });
                hearers.iter_mut().for_each(Hearer::take);
            }
        }
        assert_eq!(from.flush(Time::ZERO).unwrap().busy, None);
        hearers.iter_mut().for_each(Hearer::take);
    }

    struct Hearer {
        udp: Udp,
        heard: Vec<Vec<u8>>,
    }

    impl Hearer {
        fn new() -> Self {
            Hearer { udp: udp(&[], true), heard: Vec::new() }
        }

        fn take(&mut self) {
            while let count @ 1.. = self.udp.receive().unwrap() {
                let frames = (0..count).map(|index| self.udp.frame(index).unwrap().1.to_vec());
                self.heard.extend(frames);
            }
        }
    }

    /// Frames as in a flow: mostly of one length, with some longer and shorter ones.
    fn frames() -> Vec<Vec<u8>> {
        let len = |number: usize| match number % 23 {
            7 => 60,
            12 => 1_480,
            _ => 1_440,
        };
        (0..500).map(|number| vec![number as u8; len(number)]).collect()
    }

    #[test]
    fn frames_arrive_as_they_were_made_with_segments_and_without() {
        for cuts_segments in [true, false] {
            let mut hearers = [Hearer::new()];
            let mut from = udp(&[(2, hearers[0].udp.local)], cuts_segments);
            send_all(&mut from, PEER, &frames(), &mut hearers);
            assert_eq!(hearers[0].heard, frames(), "segments: {cuts_segments}");
            assert_eq!(from.cuts_segments, cuts_segments);
        }
    }

    #[test]
    fn a_frame_to_all_reaches_each_once() {
        for cuts_segments in [true, false] {
            let mut hearers = [Hearer::new(), Hearer::new()];
            let peers = [(2, hearers[0].udp.local), (3, hearers[1].udp.local)];
            let mut from = udp(&peers, cuts_segments);
            send_all(&mut from, Destination::All, &frames(), &mut hearers);
            for hearer in &hearers {
                assert_eq!(hearer.heard, frames(), "segments: {cuts_segments}");
            }
        }
    }

    #[test]
    fn a_frame_that_nobody_takes_is_lost_alone() {
        let mut hearers = [Hearer::new()];
        let nowhere = "255.255.255.255:9".parse().unwrap();
        let mut from = udp(&[(2, nowhere), (3, hearers[0].udp.local)], true);
        from.push(Time::ZERO, Destination::All, b"frame", false);
        assert_eq!(from.flush(Time::ZERO).unwrap(), Flushed { lost: 1, busy: None });
        hearers[0].take();
        assert_eq!(hearers[0].heard, [b"frame".to_vec()]);
    }

    /// Where containers come and go, raised MTUs do not cause continual searches; nor is one of
    /// them missed.
    #[test]
    fn longer_paths_are_looked_for_at_once_and_then_not_too_often() {
        let mut longer = Longer::default();
        let at = Time::from_millis;
        assert!(!longer.is_due(at(0)));
        longer.note(at(5));
        assert!(longer.is_due(at(5)) && !longer.is_due(at(6)));
        longer.note(at(7));
        longer.note(at(8));
        assert!(!longer.is_due(at(8)));
        let late = at(5) + LONGER_INTERVAL_MIN;
        assert_eq!(longer.look_at, Some(late));
        assert!(longer.is_due(late) && !longer.is_due(late + LONGER_INTERVAL_MIN));
    }
}
