//! System calls that no library wraps safely: packet sockets, socket options, and sending and
//! receiving in batches. All `unsafe` code of this crate is here.
#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use libc::{c_int, sockaddr_in, sockaddr_in6, sockaddr_ll, sockaddr_storage, socklen_t};
use nix::sys::socket::{SockaddrLike, SockaddrStorage};

use crate::config::Mac;

/// Messages per call, received or sent.
const BATCH: usize = 32;
/// The same where each message may consist of many frames.
const JOINED_BATCH: usize = 8;
/// Room for the kernel's information on how a message was joined: a header and a number.
const CONTROL_WORDS: usize = 4;

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

/// Lets a packet socket receive what is addressed to others.
pub(crate) fn join_promiscuous(socket: &impl AsFd, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index.cast_signed(),
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Sets a numeric socket option.
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

/// Reads a numeric socket option.
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

/// Buffers for a batch of messages, and the frames in them.
pub(crate) struct ReceiveBatch {
    buffers: Vec<Box<[u8]>>,
    len_max: usize,
    frames: Vec<Received>,
}

/// A frame in a buffer.
struct Received {
    sender: Sender,
    buffer: usize,
    bytes: Range<usize>,
}

/// The sender of a frame, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Sender {
    /// A station on the Ethernet.
    Packet {
        /// Its address.
        mac: Mac,
        /// The kind of receiver: `PACKET_HOST`, `PACKET_BROADCAST`, `PACKET_OTHERHOST`...
        kind: u8,
    },
    /// A host on the Internet. IPv4-mapped addresses are converted to IPv4.
    Internet(SocketAddr),
}

impl ReceiveBatch {
    /// Buffers for frames of up to `len_max` bytes; where the kernel joins frames that arrived
    /// together, for messages of up to `joined_len_max` bytes.
    pub(crate) fn new(joined_len_max: Option<usize>, len_max: usize) -> Self {
        let count = if joined_len_max.is_some() { JOINED_BATCH } else { BATCH };
        let buffer_len = joined_len_max.unwrap_or(len_max).max(len_max);
        ReceiveBatch {
            buffers: vec![vec![0; buffer_len].into_boxed_slice(); count],
            len_max,
            frames: Vec::new(),
        }
    }

    /// The frame at `index` of the last batch, and its sender.
    pub(crate) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        let received = self.frames.get(index)?;
        Some((received.sender, &self.buffers[received.buffer][received.bytes.clone()]))
    }

    /// Receives frames that wait in the kernel; returns their number, without those that are longer
    /// than any of ours, or whose sender is of an unknown kind.
    pub(crate) fn receive(&mut self, socket: &impl AsFd) -> io::Result<usize> {
        self.frames.clear();
        // SAFETY: all of them are plain data, for which all zeros is a value.
        let mut addresses: [sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
        let mut vectors: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let mut controls = [[0_u64; CONTROL_WORDS]; BATCH];
        for (index, buffer) in self.buffers.iter_mut().enumerate().take(BATCH) {
            vectors[index].iov_base = buffer.as_mut_ptr().cast();
            vectors[index].iov_len = buffer.len();
            let header = &mut headers[index].msg_hdr;
            header.msg_name = (&raw mut addresses[index]).cast();
            header.msg_namelen = mem::size_of::<sockaddr_storage>() as socklen_t;
            header.msg_iov = &raw mut vectors[index];
            header.msg_iovlen = 1;
            header.msg_control = controls[index].as_mut_ptr().cast();
            header.msg_controllen = mem::size_of_val(&controls[index]) as _;
        }
        // SAFETY: every header points at one vector, one address and one control buffer, each
        // vector at one buffer, all with their lengths; all of them live through the call, and
        // nothing else refers to them. There are as many headers as the count says, or more.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                headers.as_mut_ptr(),
                self.buffers.len().min(BATCH) as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for index in 0..count {
            let header = &headers[index];
            let whole = header.msg_hdr.msg_flags & libc::MSG_TRUNC == 0;
            if let Some(sender) = sender(&addresses[index], header.msg_hdr.msg_namelen)
                && whole
            {
                // SAFETY: the kernel has filled in this header, and its control buffer lives.
                let segment_len = unsafe { segment_len(&header.msg_hdr) };
                self.take(sender, index, header.msg_len as usize, segment_len);
            }
        }
        Ok(self.frames.len())
    }

    /// Records the frames of a message of `len` bytes, joined from frames of `segment_len` each.
    fn take(&mut self, sender: Sender, buffer: usize, len: usize, segment_len: Option<usize>) {
        let len = len.min(self.buffers[buffer].len());
        let step = segment_len.filter(|&step| step > 0).unwrap_or(len.max(1));
        if step > self.len_max {
            return;
        }
        for start in (0..len).step_by(step) {
            let bytes = start..(start + step).min(len);
            self.frames.push(Received { sender, buffer, bytes });
        }
    }
}

/// Length in bytes of the datagrams from which the kernel joined this message (UDP_GRO).
///
/// # Safety
/// The header was filled in by the kernel, and its control buffer is alive.
unsafe fn segment_len(header: &libc::msghdr) -> Option<usize> {
    // SAFETY: as above; the macros stay within the length that the header tells.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = message.as_ref() {
            let len_min = u64::from(libc::CMSG_LEN(mem::size_of::<c_int>() as u32));
            if (found.cmsg_level, found.cmsg_type) == (libc::SOL_UDP, libc::UDP_GRO)
                && found.cmsg_len as u64 >= len_min
            {
                let number = libc::CMSG_DATA(message).cast::<c_int>().read_unaligned();
                return usize::try_from(number).ok();
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
        None
    }
}

/// Hands frames to the kernel, each as a message of its own, to the given address if there is one.
/// Returns how many it took, at least one; otherwise the error for the first.
pub(crate) fn send_batch<'a>(
    socket: &impl AsFd,
    frames: impl Iterator<Item = (Option<SockaddrStorage>, &'a [u8])>,
) -> io::Result<usize> {
    // SAFETY: both are plain data, for which all zeros is a value.
    let mut vectors: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
    let mut addresses = [None; BATCH];
    let mut given = 0;
    for (index, (address, frame)) in frames.take(BATCH).enumerate() {
        addresses[index] = address;
        vectors[index].iov_base = frame.as_ptr().cast_mut().cast();
        vectors[index].iov_len = frame.len();
        let header = &mut headers[index].msg_hdr;
        header.msg_iov = &raw mut vectors[index];
        header.msg_iovlen = 1;
        given += 1;
    }
    for (header, address) in headers.iter_mut().zip(&addresses[..given]) {
        if let Some(address) = address {
            header.msg_hdr.msg_name = address.as_ptr().cast_mut().cast();
            header.msg_hdr.msg_namelen = address.len();
        }
    }
    // SAFETY: each of the first `given` headers points at one vector and at most one address, each
    // vector at one frame, all with their lengths; all of them live through the call, and the
    // kernel only reads from them.
    let count = unsafe {
        libc::sendmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            given as u32,
            libc::MSG_DONTWAIT,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Converts an address of `len` bytes.
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

/// The address as the type for its family, if it is long enough for that.
fn view<T: Copy>(address: &sockaddr_storage, len: socklen_t) -> Option<T> {
    const { assert!(mem::size_of::<T>() <= mem::size_of::<sockaddr_storage>()) };
    const { assert!(mem::align_of::<T>() <= mem::align_of::<sockaddr_storage>()) };
    // SAFETY: the storage is as long and as aligned as `T`, which is one of the kernel's plain
    // address structures, for which any bytes are a value.
    (len as usize >= mem::size_of::<T>())
        .then(|| unsafe { std::ptr::from_ref(address).cast::<T>().read() })
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::net::UdpSocket;

    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

    use super::*;

    fn pair() -> [UdpSocket; 2] {
        let open = || UdpSocket::bind("127.0.0.1:0").unwrap();
        [open(), open()]
    }

    fn frames(batch: &ReceiveBatch) -> Vec<Vec<u8>> {
        (0..).map_while(|index| batch.frame(index)).map(|(_, frame)| frame.to_vec()).collect()
    }

    #[test]
    fn joined_datagrams_come_apart_as_they_were_sent() {
        let [from, to] = pair();
        set_number(&to, libc::SOL_UDP, libc::UDP_GRO, 1).unwrap();
        let bytes: Vec<u8> = (0..1_050_u32).map(|number| number as u8).collect();
        let (parts, segment_len) = ([IoSlice::new(&bytes)], 100);
        let control = [ControlMessage::UdpGsoSegments(&segment_len)];
        let address = SockaddrStorage::from(to.local_addr().unwrap());
        let flags = MsgFlags::empty();
        sendmsg(from.as_raw_fd(), &parts, &control, flags, Some(&address)).unwrap();
        let mut batch = ReceiveBatch::new(Some(65_535), 200);
        assert_eq!(batch.receive(&to).unwrap(), 11);
        assert_eq!(frames(&batch), bytes.chunks(100).map(<[u8]>::to_vec).collect::<Vec<_>>());
        let (sender, _) = batch.frame(10).unwrap();
        assert_eq!(sender, Sender::Internet(from.local_addr().unwrap()));
        // A single one has no information about segments.
        from.send_to(b"alone", to.local_addr().unwrap()).unwrap();
        assert_eq!(batch.receive(&to).unwrap(), 1);
        assert_eq!(frames(&batch), [b"alone".to_vec()]);
    }

    #[test]
    fn frames_longer_than_ours_are_passed_over() {
        let [from, to] = pair();
        let mut batch = ReceiveBatch::new(Some(65_535), 200);
        for len in [200, 201, 0, 1] {
            from.send_to(&vec![7; len], to.local_addr().unwrap()).unwrap();
        }
        batch.receive(&to).unwrap();
        assert_eq!(frames(&batch), [vec![7; 200], vec![7; 1]]);
        let mut batch = ReceiveBatch::new(None, 100);
        from.send_to(&[7; 101], to.local_addr().unwrap()).unwrap();
        assert_eq!(batch.receive(&to).unwrap(), 0);
    }

    #[test]
    fn a_batch_of_messages_keeps_its_order_and_its_receivers() {
        let ([from, first], [second, _]) = (pair(), pair());
        let address = |socket: &UdpSocket| Some(socket.local_addr().unwrap().into());
        let bytes: Vec<[u8; 1]> = (0..40).map(|number| [number]).collect();
        let to = |number: u8| if number % 4 == 3 { address(&second) } else { address(&first) };
        let frames_sent = || bytes.iter().map(|byte| (to(byte[0]), &byte[..]));
        let taken = send_batch(&from, frames_sent()).unwrap();
        assert_eq!(taken, BATCH, "so many fit into one call");
        assert_eq!(send_batch(&from, frames_sent().skip(taken)).unwrap(), 40 - BATCH);
        for (socket, mine) in [(&first, false), (&second, true)] {
            let mut batch = ReceiveBatch::new(None, 10);
            let count = batch.receive(socket).unwrap();
            let expected: Vec<_> = (0..40).filter(|number| (number % 4 == 3) == mine).collect();
            assert_eq!(frames(&batch).concat(), expected);
            assert_eq!(count, expected.len());
        }
        assert!(send_batch(&from, std::iter::once((None, &b"nowhere"[..]))).is_err());
    }
}
