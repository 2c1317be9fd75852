//! The calls to the system that no library wraps safely: packet sockets, socket options, and
//! receiving in batches. All `unsafe` of this crate is here.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, sockaddr_in, sockaddr_in6, sockaddr_ll, sockaddr_storage, socklen_t};

use crate::config::Mac;

/// Frames taken from the kernel at once.
pub(crate) const RECEIVE_BATCH: usize = 32;

/// Binds a packet socket to an interface and a protocol number.
pub(crate) fn bind_packet(socket: &impl AsFd, index: u32, ethertype: u16) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data, for which all zeros is a value.
    let mut address: sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = index.cast_signed();
    // SAFETY: `address` lives through the call, and its length is its own.
    check(unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            (&raw const address).cast(),
            mem::size_of::<sockaddr_ll>() as socklen_t,
        )
    })
}

/// Lets a packet socket hear what is addressed to others.
pub(crate) fn join_promiscuous(socket: &impl AsFd, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index.cast_signed(),
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Sets a socket option that is a number.
pub(crate) fn set_number(
    socket: &impl AsFd,
    level: c_int,
    name: c_int,
    value: c_int,
) -> io::Result<()> {
    set_option(socket, level, name, &value)
}

fn set_option<T>(socket: &impl AsFd, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` lives through the call, and its length is its own.
    check(unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            mem::size_of::<T>() as socklen_t,
        )
    })
}

/// Reads a socket option that is a number.
pub(crate) fn number(socket: &impl AsFd, level: c_int, name: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = mem::size_of::<c_int>() as socklen_t;
    // SAFETY: `value` and `len` live through the call, and `len` is the length of `value`.
    check(unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut len,
        )
    })?;
    Ok(value)
}

fn check(result: c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Buffers for a batch of frames, and who sent them.
pub(crate) struct ReceiveBatch {
    buffers: Vec<Box<[u8]>>,
    lens: [usize; RECEIVE_BATCH],
    senders: [Option<Sender>; RECEIVE_BATCH],
}

/// Whom the kernel names as the sender of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sender {
    /// A station on the Ethernet.
    Packet {
        /// Its address.
        mac: Mac,
        /// To whom it sent: `PACKET_HOST`, `PACKET_BROADCAST`, `PACKET_OTHERHOST`...
        kind: u8,
    },
    /// A host on the Internet; an IPv4 address is one, however the socket spells it.
    Internet(SocketAddr),
}

impl ReceiveBatch {
    /// Buffers for frames of up to `len_max` bytes.
    pub(crate) fn new(len_max: usize) -> Self {
        ReceiveBatch {
            buffers: vec![vec![0; len_max].into_boxed_slice(); RECEIVE_BATCH],
            lens: [0; RECEIVE_BATCH],
            senders: [None; RECEIVE_BATCH],
        }
    }

    /// The frame at `index` of the last batch, and its sender. None if it was longer than any of
    /// ours, or its sender is of no kind that we know.
    pub(crate) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        Some((self.senders[index]?, &self.buffers[index][..self.lens[index]]))
    }

    /// Takes up to [`RECEIVE_BATCH`] frames that wait in the kernel. How many there were.
    pub(crate) fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        // SAFETY: all three are plain data, for which all zeros is a value.
        let mut addresses: [sockaddr_storage; RECEIVE_BATCH] = unsafe { mem::zeroed() };
        let mut vectors: [libc::iovec; RECEIVE_BATCH] = unsafe { mem::zeroed() };
        let mut headers: [libc::mmsghdr; RECEIVE_BATCH] = unsafe { mem::zeroed() };
        for index in 0..RECEIVE_BATCH {
            vectors[index].iov_base = self.buffers[index].as_mut_ptr().cast();
            vectors[index].iov_len = self.buffers[index].len();
            let header = &mut headers[index].msg_hdr;
            header.msg_name = (&raw mut addresses[index]).cast();
            header.msg_namelen = mem::size_of::<sockaddr_storage>() as socklen_t;
            header.msg_iov = &raw mut vectors[index];
            header.msg_iovlen = 1;
        }
        // SAFETY: every header points at one vector and one address, each vector at one buffer
        // with its length; all of them live through the call, and nothing else refers to them.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                headers.as_mut_ptr(),
                RECEIVE_BATCH as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for index in 0..count {
            let header = &headers[index];
            let whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            self.lens[index] = (header.msg_len as usize).min(self.buffers[index].len());
            self.senders[index] =
                if whole { sender(&addresses[index], header.msg_hdr.msg_namelen) } else { None };
        }
        Ok(count)
    }
}

/// What an address of `len` bytes says.
fn sender(address: &sockaddr_storage, len: socklen_t) -> Option<Sender> {
    match c_int::from(address.ss_family) {
        libc::AF_PACKET => {
            let address: sockaddr_ll = view(address, len)?;
            let mac = *address.sll_addr.first_chunk()?;
            (address.sll_halen == 6)
                .then_some(Sender::Packet { mac: Mac(mac), kind: address.sll_pkttype })
        }
        libc::AF_INET => {
            let address: sockaddr_in = view(address, len)?;
            let ip = u32::from_be(address.sin_addr.s_addr).into();
            Some(Sender::Internet(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into()))
        }
        libc::AF_INET6 => {
            let address: sockaddr_in6 = view(address, len)?;
            let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
            let port = u16::from_be(address.sin6_port);
            Some(Sender::Internet(match ip.to_ipv4_mapped() {
                Some(ip) => SocketAddrV4::new(ip, port).into(),
                None => SocketAddrV6::new(ip, port, 0, address.sin6_scope_id).into(),
            }))
        }
        _ => None,
    }
}

/// The address as the kind its family says it is, if it is long enough for that.
fn view<T: Copy>(address: &sockaddr_storage, len: socklen_t) -> Option<T> {
    const { assert!(mem::size_of::<T>() <= mem::size_of::<sockaddr_storage>()) };
    const { assert!(mem::align_of::<T>() <= mem::align_of::<sockaddr_storage>()) };
    // SAFETY: the storage is as long and as aligned as `T`, which is one of the kernel's plain
    // address structures, for which any bytes are a value.
    (len as usize >= mem::size_of::<T>())
        .then(|| unsafe { std::ptr::from_ref(address).cast::<T>().read() })
}
