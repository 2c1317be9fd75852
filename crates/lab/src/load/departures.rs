//! Records when the bytes of a TCP stream first left their host.
//!
//! A source with unlimited data waits for TCP's window in its own socket for any length of time,
//! which says nothing about the network. So the delay of its bytes begins when TCP sends them. A
//! packet socket with the kernel's timestamps watches the host's own interfaces; inside its
//! namespace, so the path of the packets, through a tunnel or a proxy on the host, does not matter.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use corridor_base::Time;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};

use super::TICK;
use crate::clock;
use crate::error::{Context, LabError};
use crate::netns::{Inside, Namespace};

/// Bytes of a packet that are inspected: IPv4 and TCP with all options.
const HEADERS_LEN: usize = 120;
/// Most bytes of packets that the kernel buffers for inspection.
const BUFFER_BYTES: usize = 4 << 20;
const PROTOCOL_TCP: u8 = 6;
const IPV4_LEN: usize = 20;
const TCP_LEN: usize = 20;
const FLAG_SYN: u8 = 0x02;

/// Watches the packets of one stream, identified by its destination port.
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    /// Present until it has been joined.
    watcher: Option<Inside<Departures>>,
}

impl Watch {
    /// Starts to watch, before the stream begins.
    pub(super) fn start(namespace: &Namespace, port: u16) -> Result<Watch, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        // Opened here rather than in the thread, so that nothing is missed from now on.
        let socket = namespace.run(|| open().what("watch the packets of a namespace"))?;
        let watcher = namespace.spawn("lab-tcp-watch", move || watch(&socket, port, &stopped))?;
        Ok(Watch { stop, watcher: Some(watcher) })
    }

    /// Ends the watch and returns the record.
    pub(super) fn finish(mut self) -> Result<Departures, LabError> {
        self.stop.store(true, Ordering::Relaxed);
        self.watcher.take().map_or_else(|| Ok(Departures::default()), Inside::join)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn open() -> io::Result<Socket> {
    // Outgoing packets are only shown to sockets for all protocols.
    let all = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(all))?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_read_timeout(Some(TICK))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

fn watch(socket: &Socket, port: u16, stop: &AtomicBool) -> Result<Departures, LabError> {
    let mut departures = Departures::default();
    let (mut packet, mut space) = ([0; HEADERS_LEN], nix::cmsg_space!(libc::timespec));
    while !stop.load(Ordering::Relaxed) {
        let mut parts = [IoSliceMut::new(&mut packet)];
        let received = match recvmsg::<()>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut space),
            MsgFlags::empty(),
        ) {
            Ok(received) => received,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => continue,
            Err(errno) => {
                return Err(io::Error::from(errno)).what("watch the packets of a namespace");
            }
        };
        let stamped = received.cmsgs().ok().and_then(|mut messages| {
            messages.find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
                _ => None,
            })
        });
        let len = received.bytes;
        let at = stamped.map_or_else(clock::now, since);
        if let Some(segment) = Segment::of(&packet[..len], port) {
            departures.note(segment, at);
        }
    }
    Ok(departures)
}

/// Converts a wall-clock time to the lab's clock.
fn since(at: Duration) -> Time {
    let ago = clock_gettime(ClockId::CLOCK_REALTIME)
        .map_or(Duration::ZERO, |now| Duration::from(now).saturating_sub(at));
    Time::from_nanos(clock::now().as_nanos().saturating_sub(ago.as_nanos() as u64))
}

/// A TCP packet to the watched port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// Its source port, and its sequence number.
    from: u16,
    sequence: u32,
    is_syn: bool,
    /// Bytes of data; for a super-packet, all of them.
    len: u32,
}

impl Segment {
    fn of(packet: &[u8], port: u16) -> Option<Segment> {
        let half = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
        let header_len = 4 * usize::from(packet.first()? & 0xf);
        let is_tcp =
            packet[0] >> 4 == 4 && header_len >= IPV4_LEN && *packet.get(9)? == PROTOCOL_TCP;
        if !is_tcp || half(header_len + 2)? != port {
            return None;
        }
        let tcp_len = 4 * usize::from(*packet.get(header_len + 12)? >> 4);
        let len = half(2)?.checked_sub((header_len + tcp_len.max(TCP_LEN)) as u16)?;
        Some(Segment {
            from: half(header_len)?,
            sequence: u32::from(half(header_len + 4)?) << 16 | u32::from(half(header_len + 6)?),
            is_syn: packet.get(header_len + 13)? & FLAG_SYN != 0,
            len: u32::from(len),
        })
    }
}

/// How far a stream had left at which time.
#[derive(Debug, Default)]
pub(super) struct Departures {
    /// Its source port, and the sequence number of its first byte.
    first: Option<(u16, u32)>,
    /// Bytes that had left, and the time; both increasing.
    left: Vec<(u64, Time)>,
}

impl Departures {
    fn note(&mut self, segment: Segment, at: Time) {
        let Segment { from, sequence, is_syn, len } = segment;
        if is_syn {
            self.first.get_or_insert((from, sequence.wrapping_add(1)));
        }
        let Some((_, first)) = self.first.filter(|&(port, _)| port == from) else { return };
        let before = self.left.last().map_or(0, |&(end, _)| end);
        // Distance beyond what has left, with sequence numbers that wrap.
        let ahead =
            sequence.wrapping_add(len).wrapping_sub(first.wrapping_add(before as u32)) as i32;
        if ahead > 0 {
            self.left.push((before + ahead as u64, at));
        }
    }

    /// When byte number `offset` of the stream left; `None` if this was not seen. Offsets must
    /// increase from call to call: `from` is where the search begins, and is advanced.
    pub(super) fn of(&self, offset: u64, from: &mut usize) -> Option<Time> {
        while self.left.get(*from)?.0 <= offset {
            *from += 1;
        }
        self.left.get(*from).map(|&(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(port: u16, sequence: u32, flags: u8, data_len: u16) -> Vec<u8> {
        let mut packet = vec![0; IPV4_LEN + TCP_LEN];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(40 + data_len).to_be_bytes());
        packet[9] = PROTOCOL_TCP;
        packet[22..24].copy_from_slice(&port.to_be_bytes());
        packet[24..28].copy_from_slice(&sequence.to_be_bytes());
        (packet[32], packet[33]) = (5 << 4, flags);
        packet
    }

    fn segment(sequence: u32, is_syn: bool, len: u32) -> Segment {
        Segment { from: 0, sequence, is_syn, len }
    }

    #[test]
    fn packets_of_the_stream_are_told_from_others() {
        assert_eq!(Segment::of(&packet(7, 9, FLAG_SYN, 0), 7), Some(segment(9, true, 0)));
        let large = 0x1234_5678;
        assert_eq!(
            Segment::of(&packet(7, large, 0x10, 1_000), 7),
            Some(segment(large, false, 1_000))
        );
        assert_eq!(Segment::of(&packet(8, 9, 0x10, 1_000), 7), None, "another port");
        let mut udp = packet(7, 9, 0x10, 1_000);
        udp[9] = 17;
        assert_eq!(Segment::of(&udp, 7), None);
        for len in 0..34 {
            assert_eq!(Segment::of(&packet(7, 9, 0x10, 0)[..len], 7), None, "{len} bytes");
        }
        let mut lying = packet(7, 9, 0x10, 0);
        lying[3] = 10;
        assert_eq!(Segment::of(&lying, 7), None, "shorter than its headers");
    }

    #[test]
    fn a_byte_leaves_once_whatever_is_sent_again_and_wraps() {
        let (mut departures, first) = (Departures::default(), u32::MAX - 1_500);
        departures.note(segment(first.wrapping_sub(1), true, 0), Time::ZERO);
        let mut note = |offset: u32, len, ms| {
            departures.note(segment(first.wrapping_add(offset), false, len), Time::from_millis(ms));
        };
        note(0, 1_000, 1);
        note(0, 1_000, 2);
        note(1_000, 2_000, 3);
        note(2_000, 1_000, 4);
        note(2_500, 1_000, 5);
        let other = Segment { from: 9, ..segment(first.wrapping_add(3_500), false, 1_000) };
        departures.note(other, Time::from_millis(6));
        let mut from = 0;
        let seen = [0, 999, 1_000, 2_999, 3_000, 3_499, 3_500]
            .map(|offset| departures.of(offset, &mut from));
        let ms = |ms| Some(Time::from_millis(ms));
        assert_eq!(seen, [ms(1), ms(1), ms(3), ms(3), ms(5), ms(5), None]);
    }
}
