//! What the kernel tells of interfaces when it happens: one was set up or down, or has another MTU.
//!
//! Nobody else tells that an MTU was raised, or that the TUN device was set down while the host
//! has nothing to send. What is missed because there was too much is not asked for: all that hangs
//! on it shows sooner or later in another way.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{NetlinkBuffer, NlasIterator};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// Room for what one call receives: the kernel puts at most 32 KiB into it (netlink(7)).
const RECEIVED_MAX: usize = 1 << 15;
/// Datagrams that are read in a row: packets do not wait for many interfaces.
const READS_MAX: usize = 16;

// linux/rtnetlink.h and linux/if_link.h.
const GROUP_LINK: u32 = 1;
const NEW_LINK: u16 = 16;
const IFINFOMSG_LEN: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;

/// A socket on which the kernel tells.
pub(crate) struct LinkWatch {
    socket: OwnedFd,
    room: Vec<u8>,
}

/// How an interface is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkState {
    pub(crate) name: String,
    /// Whether it was set up.
    pub(crate) up: bool,
    /// Longest payload, bytes.
    pub(crate) mtu: usize,
}

impl LinkWatch {
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let kind = SockType::Raw;
        let socket = socket(AddressFamily::Netlink, kind, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUP_LINK))?;
        Ok(LinkWatch { socket, room: vec![0; RECEIVED_MAX] })
    }

    /// What to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What was told since this was asked last, oldest first.
    pub(crate) fn read(&mut self) -> Vec<LinkState> {
        let mut states = Vec::new();
        for _ in 0..READS_MAX {
            // Whatever the error is, what comes after it can be read.
            match recv(self.socket.as_raw_fd(), &mut self.room, MsgFlags::MSG_DONTWAIT) {
                Ok(len) => read_messages(&self.room[..len], &mut states),
                Err(_) => break,
            }
        }
        states
    }
}

/// Reads the messages of a datagram.
fn read_messages(mut datagram: &[u8], states: &mut Vec<LinkState>) {
    while let Ok(message) = NetlinkBuffer::new_checked(datagram) {
        if message.message_type() == NEW_LINK {
            states.extend(read_link(message.payload()));
        }
        let len = (message.length() as usize).next_multiple_of(4);
        datagram = datagram.get(len.max(1)..).unwrap_or_default();
    }
}

fn read_link(payload: &[u8]) -> Option<LinkState> {
    let flags = u32::from_ne_bytes(*payload.get(8..)?.first_chunk()?);
    let (mut name, mut mtu) = (None, None);
    for nla in NlasIterator::new(payload.get(IFINFOMSG_LEN..)?) {
        let nla = nla.ok()?;
        match nla.kind() {
            IFLA_IFNAME => {
                let bytes = nla.value().split(|&byte| byte == 0).next()?;
                name = Some(String::from_utf8_lossy(bytes).into_owned());
            }
            IFLA_MTU => mtu = Some(u32::from_ne_bytes(*nla.value().first_chunk()?) as usize),
            _ => {}
        }
    }
    Some(LinkState { name: name?, up: flags & libc::IFF_UP as u32 != 0, mtu: mtu? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about an interface, as the kernel of this machine writes it.
    fn message(kind: u16, flags: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 16 + IFINFOMSG_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
        for (kind, value) in attributes {
            bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        let len = bytes.len() as u32;
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        bytes
    }

    #[test]
    fn names_states_and_mtus_are_read_and_other_messages_are_not() {
        let mtu = 1_400_u32.to_ne_bytes();
        let named: [(u16, &[u8]); 3] = [(IFLA_IFNAME, b"eth0\0"), (1, &[2; 6]), (IFLA_MTU, &mtu)];
        let mut datagram = message(NEW_LINK, 0x1001, &named);
        datagram.extend(message(17, 0, &named));
        datagram.extend(message(NEW_LINK, 0x1000, &named));
        datagram.extend(message(NEW_LINK, 1, &[(IFLA_MTU, &mtu)]));
        let mut states = Vec::new();
        read_messages(&datagram, &mut states);
        let state = |up| LinkState { name: "eth0".into(), up, mtu: 1_400 };
        assert_eq!(states, [state(true), state(false)]);
        // Nothing that is cut off, or garbage, does more than be left out.
        for len in 0..datagram.len() {
            read_messages(&datagram[..len], &mut Vec::new());
        }
        for at in 0..datagram.len() {
            let mut garbage = datagram.clone();
            garbage[at] ^= 0xff;
            read_messages(&garbage, &mut Vec::new());
        }
    }
}
