//! Notifications from the kernel about interfaces: set up or down, or a changed MTU.
//!
//! Nothing else reports that an MTU was raised, or that the TUN device was set down while the host
//! has nothing to send. The state of all interfaces is requested at first, so that a raised MTU can
//! be recognised, and again after an overflow; the kernel's answers come between notifications.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer, NlasIterator,
};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};

/// Buffer for one call: the kernel puts at most 32 KiB into it (netlink(7)).
const RECEIVED_MAX: usize = 1 << 15;
/// Datagrams read in a row, so that packets do not wait behind many interfaces.
const READS_MAX: usize = 16;
/// Interfaces whose MTU is remembered; beyond these, a raised MTU goes unnoticed.
const LINKS_MAX: usize = 4_096;

// linux/rtnetlink.h and linux/if_link.h.
const GROUP_LINK: u32 = 1;
const NEW_LINK: u16 = 16;
const DELETED_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const HEADER_LEN: usize = 16;
const IFINFOMSG_LEN: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;

/// A socket for the kernel's notifications.
pub(crate) struct LinkWatch {
    socket: OwnedFd,
    room: Vec<u8>,
    /// The MTU of each interface in bytes, as last reported.
    mtus: BTreeMap<u32, usize>,
    /// A request for the state of all interfaces is in progress.
    asked: bool,
    /// The state of all has to be requested again.
    ask_again: bool,
}

/// What was reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// States of interfaces, oldest first.
    pub(crate) states: Vec<LinkState>,
    /// The socket overflowed: the present states are reported again, but not those in between.
    pub(crate) missed: bool,
}

/// The present state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkState {
    /// Its index, which stays when it is renamed.
    pub(crate) index: u32,
    pub(crate) name: String,
    /// Whether it was set up.
    pub(crate) up: bool,
    /// MTU in bytes.
    pub(crate) mtu: usize,
    /// The MTU before, if it is known and different.
    pub(crate) mtu_before: Option<usize>,
}

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
enum Message {
    State(LinkState),
    Gone(u32),
    /// The answer about all interfaces is complete, or will not come.
    Answered,
}

impl LinkWatch {
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let kind = SockType::Raw;
        let socket = socket(AddressFamily::Netlink, kind, flags, SockProtocol::NetlinkRoute)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUP_LINK))?;
        let (room, mtus) = (vec![0; RECEIVED_MAX], BTreeMap::new());
        let mut watch = LinkWatch { socket, room, mtus, asked: false, ask_again: true };
        watch.ask();
        Ok(watch)
    }

    /// The file descriptor to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Requests the state of all interfaces, if that is needed and no request is in progress.
    fn ask(&mut self) {
        if !self.ask_again || self.asked {
            return;
        }
        let mut request = [0; HEADER_LEN + IFINFOMSG_LEN];
        let len = request.len() as u32;
        request[..4].copy_from_slice(&len.to_ne_bytes());
        request[4..6].copy_from_slice(&GET_LINK.to_ne_bytes());
        request[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        self.asked = send(self.socket.as_raw_fd(), &request, MsgFlags::MSG_DONTWAIT).is_ok();
        self.ask_again = !self.asked;
    }

    /// Reads what was reported since the last call.
    pub(crate) fn read(&mut self) -> Heard {
        let mut messages = Vec::new();
        let mut missed = false;
        for _ in 0..READS_MAX {
            match recv(self.socket.as_raw_fd(), &mut self.room, MsgFlags::MSG_DONTWAIT) {
                Ok(len) => read_messages(&self.room[..len], &mut messages),
                Err(Errno::ENOBUFS) => missed = true,
                // Whatever the error, reading can continue after it.
                Err(_) => break,
            }
        }
        self.ask_again |= missed;
        let states = messages.into_iter().filter_map(|message| self.note(message)).collect();
        self.ask();
        Heard { states, missed }
    }

    fn note(&mut self, message: Message) -> Option<LinkState> {
        match message {
            Message::State(mut state) => {
                if self.mtus.len() < LINKS_MAX || self.mtus.contains_key(&state.index) {
                    let before = self.mtus.insert(state.index, state.mtu);
                    state.mtu_before = before.filter(|&before| before != state.mtu);
                }
                return Some(state);
            }
            Message::Gone(index) => {
                self.mtus.remove(&index);
            }
            Message::Answered => self.asked = false,
        }
        None
    }
}

/// Parses the messages of a datagram.
fn read_messages(mut datagram: &[u8], messages: &mut Vec<Message>) {
    while let Ok(message) = NetlinkBuffer::new_checked(datagram) {
        match message.message_type() {
            NEW_LINK => messages.extend(read_link(message.payload()).map(Message::State)),
            DELETED_LINK => messages.extend(index(message.payload()).map(Message::Gone)),
            NLMSG_DONE | NLMSG_ERROR => messages.push(Message::Answered),
            _ => {}
        }
        let len = (message.length() as usize).next_multiple_of(4);
        datagram = datagram.get(len.max(1)..).unwrap_or_default();
    }
}

fn index(payload: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*payload.get(4..)?.first_chunk()?))
}

fn read_link(payload: &[u8]) -> Option<LinkState> {
    let index = index(payload)?;
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
    let up = flags & libc::IFF_UP as u32 != 0;
    Some(LinkState { index, name: name?, up, mtu: mtu?, mtu_before: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message about an interface, as this machine's kernel writes it.
    fn message(kind: u16, flags: u32, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN + IFINFOMSG_LEN];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[20] = 7;
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
        datagram.extend(message(DELETED_LINK, 0, &named));
        datagram.extend(message(NEW_LINK, 0x1000, &named));
        datagram.extend(message(NEW_LINK, 1, &[(IFLA_MTU, &mtu)]));
        datagram.extend(message(NLMSG_DONE, 0, &[]));
        let mut messages = Vec::new();
        read_messages(&datagram, &mut messages);
        let state = |up| {
            let name = "eth0".into();
            Message::State(LinkState { index: 7, name, up, mtu: 1_400, mtu_before: None })
        };
        let all = [state(true), Message::Gone(7), state(false), Message::Answered];
        assert_eq!(messages, all);
        // Truncated messages and garbage are ignored.
        for len in 0..datagram.len() {
            read_messages(&datagram[..len], &mut Vec::new());
        }
        for at in 0..datagram.len() {
            let mut garbage = datagram.clone();
            garbage[at] ^= 0xff;
            read_messages(&garbage, &mut Vec::new());
        }
    }

    /// Needs no privilege: everyone may ask the kernel, and every machine has a loopback interface.
    #[test]
    fn what_there_is_is_asked_for_at_first_and_when_something_was_missed() {
        let mut watch = LinkWatch::open().expect("netlink");
        let mut told = || {
            let heard = (0..1_000).find_map(|_| {
                let states = watch.read().states;
                let there = states.iter().any(|state| state.name == "lo");
                if !there {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                there.then_some(())
            });
            assert!(heard.is_some(), "nothing was told");
            while watch.asked {
                watch.read();
            }
            watch.ask_again = true;
        };
        told();
        told();
    }

    #[test]
    fn a_raise_is_known_for_one() {
        let mut watch = LinkWatch::open().expect("netlink");
        let mut before = |index, mtu| {
            let state = LinkState { index, name: "v".into(), up: true, mtu, mtu_before: None };
            watch.note(Message::State(state)).and_then(|state| state.mtu_before)
        };
        assert_eq!(
            [(1_000_000, 1_400), (1_000_000, 1_500)].map(|(a, b)| before(a, b)),
            [None, Some(1_400)]
        );
        assert_eq!(
            [(1_000_000, 1_500), (1_000_001, 1_500)].map(|(a, b)| before(a, b)),
            [None, None]
        );
    }
}
