//! Frames with our own EtherType on an Ethernet-like interface (Ethernet, Wi-Fi, TAP).
//!
//! An interface that is down or missing is waited for: it may be created later, possibly as a new
//! one with the same name and another MTU and address.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::bounds::{FRAME_LEN_MAX, FRAME_LEN_MIN};
use corridor_proto::{Certainty, Destination, FrameLens, PeerBook, Role, StationId};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::outbox::{GivenUp, Outbox};
use super::{
    Busy, Flushed, News, Newsbox, RECEIVE_BUFFER_BYTES, Refusals, Sent, peer_book,
    send_buffer_bytes, tell_place,
};
use crate::config::{ETHERNET_PAYLOAD_MIN, Mac, NodeConfig, UNDERLAY_MTU_DEFAULT, UnderlayKind};
use crate::error::{CAP_NET_RAW, NodeError};
use crate::links::LinkState;
use crate::netlink;
use crate::syscalls::{
    ReceiveBatch, Sender, bind_packet, join_promiscuous, send_batch, set_number,
};

/// Destination, source, EtherType.
const HEADER_LEN: usize = 14;
/// First interval of looking for a missing interface.
const LOOK_FIRST: Duration = Duration::from_millis(100);
/// Longest interval while it is missing.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// A packet socket on one interface.
pub(crate) struct Ethernet {
    interface: String,
    ethertype: u16,
    qdisc_bypass: bool,
    overhears: bool,
    /// The configured MTU.
    mtu: Option<usize>,
    state: State,
    frame_len_max: usize,
    pub(super) peers: PeerBook<Mac>,
    outbox: Outbox<()>,
    pub(super) refusals: Refusals,
    pub(super) news: Newsbox,
}

enum State {
    Open(Port),
    Waits(Wait),
}

/// An interface that exists.
struct Port {
    socket: OwnedFd,
    index: u32,
    mac: Mac,
    mtu: usize,
    frame_len_max: usize,
    received: ReceiveBatch,
}

/// An interface that is missing.
#[derive(Clone, Copy)]
struct Wait {
    look_at: Time,
    pause: Duration,
}

/// Why there is no port.
enum Absent {
    /// It may come.
    Later(&'static str),
    Never(NodeError),
}

impl Ethernet {
    /// Longest frame in bytes on an interface with this MTU, as far as it is known.
    pub(super) fn frame_len_max_of(config: &NodeConfig, interface_mtu: Option<usize>) -> usize {
        let least = [config.underlay.mtu, interface_mtu].into_iter().flatten().min();
        least.unwrap_or(UNDERLAY_MTU_DEFAULT).min(FRAME_LEN_MAX)
    }

    /// Opens a socket on the configured interface, or waits for it.
    pub(crate) fn open(config: &NodeConfig, now: Time) -> Result<Self, NodeError> {
        let UnderlayKind::Ethernet { interface, ethertype, qdisc_bypass, .. } =
            &config.underlay.kind
        else {
            unreachable!("the caller matched the kind")
        };
        let addresses = config.peers.iter().map(|peer| (peer.id, peer.mac));
        let mut ethernet = Ethernet {
            interface: interface.clone(),
            ethertype: *ethertype,
            qdisc_bypass: *qdisc_bypass,
            overhears: matches!(config.role, Role::Helper { .. } | Role::Relay),
            mtu: config.underlay.mtu,
            state: State::Waits(Wait { look_at: now, pause: LOOK_FIRST }),
            frame_len_max: Self::frame_len_max_of(config, None),
            peers: peer_book(addresses, false)?.with_frame_len_min(ETHERNET_PAYLOAD_MIN),
            outbox: Outbox::new(),
            refusals: Refusals::default(),
            news: Newsbox::default(),
        };
        match ethernet.open_port() {
            Ok(port) => {
                ethernet.frame_len_max = port.frame_len_max;
                ethernet.state = State::Open(port);
            }
            Err(Absent::Later(why)) => tracing::warn!("{interface} {why}: waiting for it"),
            Err(Absent::Never(error)) => return Err(error),
        }
        Ok(ethernet)
    }

    fn open_port(&self) -> Result<Port, Absent> {
        let name = &self.interface;
        let Some(link) = netlink::link(name).map_err(Absent::Never)? else {
            return Err(Absent::Later("does not exist"));
        };
        let not_ethernet = || NodeError::InterfaceNotEthernet { name: name.clone() };
        let mac = link.mac.ok_or_else(not_ethernet).map_err(Absent::Never)?;
        if !link.up {
            return Err(Absent::Later("is down"));
        }
        let most = frame_len_max(self.mtu, link.mtu);
        let open = || -> io::Result<OwnedFd> {
            // Without an EtherType nothing is received until the socket is bound to the interface,
            // so no frame of another interface slips in.
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
            set_buffers(&socket, HEADER_LEN + most)?;
            if self.qdisc_bypass {
                set_number(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
            }
            bind_packet(&socket, link.index, self.ethertype)?;
            if self.overhears {
                join_promiscuous(&socket, link.index)?;
            }
            Ok(socket)
        };
        let socket =
            open().map_err(|source| match Errno::from_raw(source.raw_os_error().unwrap_or(0)) {
                Errno::ENODEV | Errno::ENXIO | Errno::ENETDOWN => Absent::Later("is not available"),
                _ => {
                    let action = format!("open a raw socket on {name}");
                    Absent::Never(NodeError::system(action, CAP_NET_RAW, source))
                }
            })?;
        let received = ReceiveBatch::new(None, HEADER_LEN + link.mtu);
        let index = link.index;
        Ok(Port { socket, index, mac, mtu: link.mtu, frame_len_max: most, received })
    }

    // ---- an interface that disappears and returns ---------------------------------------------

    /// The interface has disappeared: waiting frames are lost.
    fn close(&mut self, now: Time, why: Errno) -> Flushed {
        tracing::warn!("{} is gone ({}): waiting for it", self.interface, why.desc());
        self.state = State::Waits(Wait { look_at: now + LOOK_FIRST, pause: LOOK_FIRST });
        self.absent(now)
    }

    /// What happens to frames while the interface is missing.
    fn absent(&mut self, now: Time) -> Flushed {
        let lost = self.outbox.drop_all() as u64;
        self.refusals.note_many(None, Errno::ENETDOWN, lost);
        let look_at = self.poll_timeout().unwrap_or(now);
        let retry = look_at.since(now).max(Duration::from_millis(1));
        Flushed { lost, busy: Some(Busy { wakes: false, retry }) }
    }

    /// When to look for the interface next.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        match self.state {
            State::Open(_) => None,
            State::Waits(wait) => Some(wait.look_at),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) -> Result<(), NodeError> {
        let State::Waits(wait) = self.state else { return Ok(()) };
        if now < wait.look_at {
            return Ok(());
        }
        match self.open_port() {
            Ok(port) => {
                let (name, len) = (&self.interface, port.frame_len_max);
                tracing::info!("{name} is back: {}, frames of up to {len} bytes", port.mac);
                self.news.put(News::Limit(len));
                self.news.put(News::Path(None));
                // After a link is recreated, both ends have new addresses, and neither would
                // receive what is sent to its old one: frames go to all until addresses are known.
                self.peers.forget_learned();
                self.state = State::Open(port);
            }
            Err(Absent::Later(_)) => {
                let pause = (2 * wait.pause).min(LOOK_MAX);
                self.state = State::Waits(Wait { look_at: now + pause, pause });
            }
            Err(Absent::Never(error)) => return Err(error),
        }
        Ok(())
    }

    /// The kernel reports the state of an interface. If it is this one and its MTU has changed,
    /// frames follow at once. Calls that send and receive show when it has disappeared.
    pub(super) fn note_link(&mut self, link: &LinkState) {
        let (configured, State::Open(port)) = (self.mtu, &mut self.state) else { return };
        if link.index != port.index || !link.up || link.mtu == port.mtu {
            return;
        }
        let is_longer = link.mtu > port.mtu;
        port.mtu = link.mtu;
        port.frame_len_max = frame_len_max(configured, link.mtu);
        port.received = ReceiveBatch::new(None, HEADER_LEN + link.mtu);
        tracing::info!("{} MTU changed to {} bytes", link.name, link.mtu);
        self.news.put(News::Limit(port.frame_len_max));
        if is_longer {
            self.news.put(News::Path(None));
        }
    }

    // ---- frames -------------------------------------------------------------------------------

    /// The range of frame lengths for the path MTU search: this interface's limit, unless the other
    /// end's interface, or a port in between, turns out to have a smaller one.
    pub(super) fn frame_lens(&self) -> FrameLens {
        let (min, max) = (FRAME_LEN_MIN.min(self.frame_len_max), self.frame_len_max);
        FrameLens { min, base: max, max }
    }

    pub(super) fn frame_len_max(&self) -> usize {
        self.frame_len_max
    }

    /// Adds a frame to the batch.
    pub(super) fn push(&mut self, now: Time, to: Destination, frame: &[u8], probes: bool) {
        let header = self.header(self.address(now, to));
        self.outbox.push([()], (&header, frame), probes);
    }

    /// Adds a frame for one address to the batch.
    pub(super) fn push_to(&mut self, to: Mac, frame: &[u8]) {
        self.outbox.push([()], (&self.header(to), frame), false);
    }

    /// Records where a frame of a station came from.
    pub(super) fn learn(
        &mut self,
        now: Time,
        (station, at): (StationId, Mac),
        certainty: Certainty,
        len_bytes: usize,
    ) {
        let learned = self.peers.learn(now, (station, at), certainty, len_bytes);
        tell_place(learned, station, &at);
    }

    /// A station is at the address that it has sent from, although it cannot be challenged there.
    pub(super) fn believe(&mut self, station: StationId, at: Mac) {
        let learned = self.peers.believe(station, at);
        tell_place(learned, station, &at);
    }

    /// Frames that wait for the kernel.
    pub(super) fn waiting(&self) -> usize {
        self.outbox.waiting()
    }

    pub(super) fn is_full(&self) -> bool {
        self.outbox.is_full(HEADER_LEN + self.frame_len_max)
    }

    pub(super) fn flush(&mut self, now: Time) -> Result<Flushed, NodeError> {
        let State::Open(port) = &self.state else { return Ok(self.absent(now)) };
        let mut lost = 0;
        while let Some(((), front)) = self.outbox.front() {
            let frames = self.outbox.iter().map(|((), frame)| (None, frame));
            let error = match send_batch(&port.socket, frames) {
                Ok(count) => {
                    self.outbox.note_taken(now, count);
                    continue;
                }
                Err(error) => error,
            };
            let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
            if is_gone(errno) {
                let flushed = self.close(now, errno);
                return Ok(Flushed { lost: lost + flushed.lost, ..flushed });
            }
            match self.refused(front.len() - HEADER_LEN, error)? {
                Sent::Taken => {}
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

    fn refused(&self, len: usize, error: io::Error) -> Result<Sent, NodeError> {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
        match errno {
            // The socket's own buffer is full: the kernel reports when there is room.
            Errno::EAGAIN => Ok(Sent::Busy { wakes: true }),
            // The driver's or the interface's queue is full: nothing reports when there is room.
            Errno::ENOBUFS | Errno::ENOMEM => Ok(Sent::Busy { wakes: false }),
            Errno::EINTR => Ok(Sent::Busy { wakes: true }),
            // The interface's MTU was lowered.
            Errno::EMSGSIZE => {
                self.refusals.note(None, errno);
                self.refusals.tell(len, &self.interface, errno);
                let link = netlink::link(&self.interface).ok().flatten();
                let mtu = link.map_or(len - 1, |link| link.mtu);
                self.news.put(News::Limit(mtu.min(len - 1)));
                Ok(Sent::Lost)
            }
            errno => {
                let action = format!("send on {}", self.interface);
                Err(NodeError::system(action, CAP_NET_RAW, errno))
            }
        }
    }

    pub(super) fn receive(&mut self, now: Time) -> Result<usize, NodeError> {
        let State::Open(port) = &mut self.state else { return Ok(0) };
        match port.received.receive(&port.socket) {
            Ok(count) => Ok(count),
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS => Ok(0),
                errno if is_gone(errno) => {
                    self.close(now, errno);
                    Ok(0)
                }
                _ => {
                    let action = format!("receive on {}", self.interface);
                    Err(NodeError::system(action, CAP_NET_RAW, error))
                }
            },
        }
    }

    pub(super) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        let State::Open(port) = &self.state else { return None };
        let (sender, frame) = port.received.frame(index)?;
        let Sender::Packet { mac, kind } = sender else { return None };
        let for_us = match kind {
            libc::PACKET_HOST | libc::PACKET_BROADCAST | libc::PACKET_MULTICAST => true,
            libc::PACKET_OTHERHOST => self.overhears,
            // PACKET_OUTGOING: our own frames.
            _ => false,
        };
        (for_us && mac != port.mac).then_some((sender, frame.get(HEADER_LEN..)?))
    }

    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Open(port) => Some(port.socket.as_fd()),
            State::Waits(_) => None,
        }
    }

    pub(super) fn describe(&self) -> String {
        match &self.state {
            State::Open(port) => {
                format!("ethernet on {} ({}, {:#06x})", self.interface, port.mac, self.ethertype)
            }
            State::Waits(_) => {
                format!("ethernet on {}, not available ({:#06x})", self.interface, self.ethertype)
            }
        }
    }

    /// The destination address of a frame. For a station that has not proved its address, or has
    /// not been heard from it for long, the frame is broadcast.
    fn address(&self, now: Time, to: Destination) -> Mac {
        let known = match to {
            Destination::All => None,
            // It may have another address by now, so the frame is broadcast.
            Destination::Search(station) if self.peers.may_be_elsewhere(station) => None,
            Destination::Station(station) | Destination::Search(station) => {
                self.peers.address_alone(now, station)
            }
        };
        known.unwrap_or(Mac::BROADCAST)
    }

    fn header(&self, to: Mac) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..6].copy_from_slice(&to.0);
        if let State::Open(port) = &self.state {
            header[6..12].copy_from_slice(&port.mac.0);
        }
        header[12..].copy_from_slice(&self.ethertype.to_be_bytes());
        header
    }
}

/// Longest frame in bytes on an interface with this MTU, and the configured MTU if any.
fn frame_len_max(configured: Option<usize>, mtu: usize) -> usize {
    configured.unwrap_or(mtu).min(mtu).min(FRAME_LEN_MAX)
}

/// Whether an error means that the interface is down or has disappeared.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO)
}

/// A short send queue, and a long receive queue.
fn set_buffers(socket: &impl AsFd, frame_len_max: usize) -> io::Result<()> {
    let bytes = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    let send = bytes(send_buffer_bytes(frame_len_max));
    set_number(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, send)?;
    let receive = bytes(RECEIVE_BUFFER_BYTES);
    // Exceeding the system's limit needs a privilege that a raw socket alone does not require.
    set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, receive)
        .or_else(|_| set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, receive))
}
