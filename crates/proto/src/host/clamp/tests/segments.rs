//! TCP segments for tests, and ways to inspect packets.

use etherparse::{PacketBuilder, SlicedPacket, TcpHeader, TransportSlice};

use corridor_packet::{PacketRef, TcpView};

/// Ports of the near host's first connection, and of the far host.
const PORTS: [u16; 2] = [40_000, 7_700];

/// Who sends to whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) v6: bool,
    pub(super) near_sends: bool,
    pub(super) connection: u16,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) syn: bool,
    pub(super) ack: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    /// The three flags that request AccECN.
    pub(super) accurate_ecn: bool,
}

impl Flags {
    pub(super) const ACK: Flags =
        Flags { syn: false, ack: true, fin: false, rst: false, accurate_ecn: false };
}

pub(super) struct Segment {
    pub(super) ends: Ends,
    pub(super) sequence: u32,
    pub(super) ack: u32,
    pub(super) flags: Flags,
    pub(super) window: u16,
    /// A multiple of four bytes.
    pub(super) options: Vec<u8>,
    pub(super) payload_len: usize,
}

impl Segment {
    pub(super) fn header_len(&self) -> usize {
        TcpHeader::MIN_LEN + self.options.len()
    }

    /// The packet, with valid checksums.
    pub(super) fn to_packet(&self) -> Vec<u8> {
        let order = if self.ends.near_sends { [0, 1] } else { [1, 0] };
        let ports = [PORTS[0] + self.ends.connection, PORTS[1]];
        let [from, to] = order.map(|host: u8| (host + 1, ports[usize::from(host)]));
        let ip = if self.ends.v6 {
            let address = |host| {
                let mut address = [0; 16];
                (address[0], address[15]) = (0xfd, host);
                address
            };
            PacketBuilder::ipv6(address(from.0), address(to.0), 64)
        } else {
            PacketBuilder::ipv4([10, 0, 0, from.0], [10, 0, 0, to.0], 64)
        };
        let mut tcp = ip.tcp(from.1, to.1, self.sequence, self.window);
        if self.flags.syn {
            tcp = tcp.syn();
        }
        if self.flags.ack {
            tcp = tcp.ack(self.ack);
        }
        if self.flags.fin {
            tcp = tcp.fin();
        }
        if self.flags.rst {
            tcp = tcp.rst();
        }
        if self.flags.accurate_ecn {
            tcp = tcp.ns().cwr().ece();
        }
        let tcp = tcp.options_raw(&self.options).expect("options fit");
        let mut packet = Vec::new();
        tcp.write(&mut packet, &vec![0x33; self.payload_len]).expect("a segment fits");
        packet
    }
}

pub(super) fn view(packet: &[u8]) -> TcpView {
    PacketRef::read(packet).tcp().expect("a segment can be read")
}

/// The number of bytes since the first one: the candidate nearest to `near`.
pub(super) fn number(sequence: u32, first: u32, near: u64) -> u64 {
    let offset = sequence.wrapping_sub(first).wrapping_sub(near as u32) as i32;
    near.checked_add_signed(offset.into()).expect("nothing is before the beginning")
}

/// Offset of the TCP header, computed independently.
fn tcp_at(packet: &[u8]) -> usize {
    let sliced = SlicedPacket::from_ip(packet).expect("a packet can be read");
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("no TCP") };
    packet.len() - tcp.slice().len()
}

/// The packet without its window and TCP's checksum.
pub(super) fn unwindowed(packet: &[u8]) -> Vec<u8> {
    let at = tcp_at(packet);
    let mut packet = packet.to_vec();
    packet[at + 14..at + 18].fill(0);
    packet
}

/// Whether the checksums of IP and TCP are valid.
pub(super) fn is_sealed(packet: &[u8]) -> bool {
    let sliced = SlicedPacket::from_ip(packet).expect("a packet can be read");
    let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else { panic!("no TCP") };
    let sum = match sliced.net.as_ref().expect("there is a header") {
        etherparse::NetSlice::Ipv4(ip) => {
            let header = ip.header();
            if header.header_checksum() != header.to_header().calc_header_checksum() {
                return false;
            }
            let (from, to) = (header.source(), header.destination());
            tcp.calc_checksum_ipv4(from, to)
        }
        etherparse::NetSlice::Ipv6(ip) => {
            let header = ip.header();
            tcp.calc_checksum_ipv6(header.source(), header.destination())
        }
        _ => panic!("no IP"),
    };
    sum.expect("a segment has a checksum") == tcp.checksum()
}
