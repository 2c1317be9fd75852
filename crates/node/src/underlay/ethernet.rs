//! Frames of our own protocol number on an Ethernet-like interface (Ethernet, Wi-Fi, a TAP).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use corridor_base::Time;
use corridor_proto::bounds::FRAME_LEN_MAX;
use corridor_proto::{Destination, Role};
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::outbox::Outbox;
use super::peers::PeerBook;
use super::{Busy, Flushed, RECEIVE_BUFFER_BYTES, Refusals, Sent, send_buffer_bytes};
use crate::config::{Mac, NodeConfig, UNDERLAY_MTU_DEFAULT, UnderlayKind};
use crate::error::{CAP_NET_RAW, NodeError};
use crate::netlink;
use crate::syscalls::{
    ReceiveBatch, Sender, bind_packet, join_promiscuous, send_batch, set_number,
};

/// Destination, source, protocol number.
const HEADER_LEN: usize = 14;

/// A packet socket on one interface.
pub(crate) struct Ethernet {
    socket: OwnedFd,
    interface: String,
    mac: Mac,
    ethertype: u16,
    frame_len_max: usize,
    overhears: bool,
    pub(super) peers: PeerBook<Mac>,
    received: ReceiveBatch,
    outbox: Outbox<()>,
    refusals: Refusals,
}

impl Ethernet {
    /// Longest frame in bytes on an interface of this MTU, as far as it is known.
    pub(super) fn frame_len_max_of(config: &NodeConfig, interface_mtu: Option<usize>) -> usize {
        let least = [config.underlay.mtu, interface_mtu].into_iter().flatten().min();
        least.unwrap_or(UNDERLAY_MTU_DEFAULT).min(FRAME_LEN_MAX)
    }

    /// Opens a socket on the configured interface.
    pub(crate) fn open(config: &NodeConfig) -> Result<Self, NodeError> {
        let UnderlayKind::Ethernet { interface, ethertype, qdisc_bypass } = &config.underlay.kind
        else {
            unreachable!("the caller matched the kind")
        };
        let name = interface;
        let link = netlink::link(name)?
            .ok_or_else(|| NodeError::InterfaceMissing { name: name.clone() })?;
        let mac = link.mac.ok_or_else(|| NodeError::InterfaceNotEthernet { name: name.clone() })?;
        if !link.up {
            return Err(NodeError::InterfaceDown { name: name.clone() });
        }
        let frame_len_max = Self::frame_len_max_of(config, Some(link.mtu));
        let overhears = matches!(config.role, Role::Helper { .. });
        let open = || -> io::Result<OwnedFd> {
            // Without a protocol number nothing is heard until the socket is bound to the
            // interface: no frame of another interface slips in.
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None)?;
            set_buffers(&socket, HEADER_LEN + frame_len_max)?;
            if *qdisc_bypass {
                set_number(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
            }
            bind_packet(&socket, link.index, *ethertype)?;
            if overhears {
                join_promiscuous(&socket, link.index)?;
            }
            Ok(socket)
        };
        let socket = open().map_err(|source| {
            NodeError::system(format!("open a raw socket on {name}"), CAP_NET_RAW, source)
        })?;
        let addresses = config.peers.iter().map(|peer| (peer.id, peer.mac));
        Ok(Ethernet {
            socket,
            interface: name.clone(),
            mac,
            ethertype: *ethertype,
            frame_len_max,
            overhears,
            peers: PeerBook::new(addresses, false),
            received: ReceiveBatch::new(None, HEADER_LEN + link.mtu),
            outbox: Outbox::new(),
            refusals: Refusals::default(),
        })
    }

    pub(super) fn frame_len_max(&self) -> usize {
        self.frame_len_max
    }

    /// Puts a frame into the batch.
    pub(super) fn push(&mut self, to: Destination, frame: &[u8]) {
        let header = self.header(self.address(to));
        self.outbox.push([()], &header, frame);
    }

    pub(super) fn is_full(&self) -> bool {
        self.outbox.is_full(HEADER_LEN + self.frame_len_max)
    }

    pub(super) fn flush(&mut self, now: Time) -> Result<Flushed, NodeError> {
        let mut lost = 0;
        while let Some(((), front)) = self.outbox.front() {
            let frames = self.outbox.iter().map(|((), frame)| (None, frame));
            match send_batch(&self.socket, frames) {
                Ok(count) => self.outbox.note_taken(now, count),
                Err(error) => match self.refused(front.len() - HEADER_LEN, error)? {
                    Sent::Taken => {}
                    Sent::Lost => {
                        lost += 1;
                        self.outbox.drop_front();
                    }
                    Sent::Busy { wakes } => {
                        self.outbox.note_busy(now);
                        return Ok(Flushed { lost, busy: Some(Busy { wakes }) });
                    }
                },
            }
        }
        Ok(Flushed { lost, busy: None })
    }

    fn refused(&self, len: usize, error: io::Error) -> Result<Sent, NodeError> {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
        match errno {
            // The socket's own buffer is full: the kernel tells when there is room.
            Errno::EAGAIN => Ok(Sent::Busy { wakes: true }),
            // The driver's or the interface's queue is full: nobody tells.
            Errno::ENOBUFS | Errno::ENOMEM => Ok(Sent::Busy { wakes: false }),
            Errno::EINTR => Ok(Sent::Busy { wakes: true }),
            Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO => Err(self.gone(error)),
            // The interface's MTU was lowered.
            Errno::EMSGSIZE => {
                self.refusals.tell(len, &self.interface, errno);
                Ok(Sent::Lost)
            }
            errno => {
                let action = format!("send on {}", self.interface);
                Err(NodeError::system(action, CAP_NET_RAW, errno))
            }
        }
    }

    pub(super) fn receive(&mut self) -> Result<usize, NodeError> {
        match self.received.receive(&self.socket) {
            Ok(count) => Ok(count),
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => Ok(0),
                Some(Errno::ENETDOWN | Errno::ENODEV | Errno::ENXIO) => Err(self.gone(error)),
                _ => {
                    let action = format!("receive on {}", self.interface);
                    Err(NodeError::system(action, CAP_NET_RAW, error))
                }
            },
        }
    }

    pub(super) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        let (sender, frame) = self.received.frame(index)?;
        let Sender::Packet { mac, kind } = sender else { return None };
        let for_us = match kind {
            libc::PACKET_HOST | libc::PACKET_BROADCAST | libc::PACKET_MULTICAST => true,
            libc::PACKET_OTHERHOST => self.overhears,
            // PACKET_OUTGOING: what we sent ourselves.
            _ => false,
        };
        (for_us && mac != self.mac).then_some((sender, frame.get(HEADER_LEN..)?))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(super) fn describe(&self) -> String {
        format!("ethernet on {} ({}, {:#06x})", self.interface, self.mac, self.ethertype)
    }

    /// Where a frame goes. Whoever is nowhere yet hears it among all others.
    fn address(&self, to: Destination) -> Mac {
        let known = match to {
            Destination::All => None,
            Destination::Station(station) => self.peers.address(station),
        };
        known.unwrap_or(Mac::BROADCAST)
    }

    fn header(&self, to: Mac) -> [u8; HEADER_LEN] {
        let mut header = [0; HEADER_LEN];
        header[..6].copy_from_slice(&to.0);
        header[6..12].copy_from_slice(&self.mac.0);
        header[12..].copy_from_slice(&self.ethertype.to_be_bytes());
        header
    }

    fn gone(&self, source: io::Error) -> NodeError {
        NodeError::InterfaceGone { name: self.interface.clone(), source }
    }
}

/// A short queue towards the air, a long one from it.
fn set_buffers(socket: &impl AsFd, frame_len_max: usize) -> io::Result<()> {
    let bytes = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
    let send = bytes(send_buffer_bytes(frame_len_max));
    set_number(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, send)?;
    let receive = bytes(RECEIVE_BUFFER_BYTES);
    // Past the system's limit needs a privilege that a raw socket alone does not bring.
    set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, receive)
        .or_else(|_| set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, receive))
}
