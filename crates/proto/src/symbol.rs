//! From packets to source symbols and back: each packet behind its length, several to a symbol,
//! zeros at the end.

use corridor_base::Time;

use crate::bounds::FRAME_LEN_MAX;
use crate::config::Delivery;
use crate::ingress::IngressQueue;
use crate::stats::Stats;
use crate::window::headers::Contexts;
use crate::wire::{PACKET_PREFIX_LEN, Reader};

/// Set in the length of a packet that may be delivered before others sent earlier.
const NO_ORDER: u16 = 1 << 15;
/// Set in the length of a packet whose headers are sent as a difference, in window mode.
const DIFFERENCE: u16 = 1 << 14;
const LEN_MASK: u16 = DIFFERENCE - 1;
const _: () = assert!(FRAME_LEN_MAX <= LEN_MASK as usize, "the length of any packet can be told");

/// A packet within a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) bytes: &'a [u8],
    /// It is delivered behind all packets that were sent before it.
    pub(crate) in_order: bool,
    /// What differs from the packet before it in its flow: see [`Contexts`].
    pub(crate) is_difference: bool,
}

impl<'a> Packet<'a> {
    /// A packet as the host sent it.
    pub(crate) fn verbatim(bytes: &'a [u8], in_order: bool) -> Self {
        Packet { bytes, in_order, is_difference: false }
    }
}

/// Appends a packet to a symbol. The caller has seen to it that it fits.
pub(crate) fn append_packet(packet: Packet<'_>, symbol: &mut Vec<u8>) {
    let len = packet.bytes.len();
    debug_assert!((1..=usize::from(LEN_MASK)).contains(&len));
    let order = if packet.in_order { 0 } else { NO_ORDER };
    let form = if packet.is_difference { DIFFERENCE } else { 0 };
    symbol.extend_from_slice(&(len as u16 | order | form).to_be_bytes());
    symbol.extend_from_slice(packet.bytes);
}

/// Bytes a packet takes within a symbol.
pub(crate) fn packet_len_in_symbol(packet: &[u8]) -> usize {
    PACKET_PREFIX_LEN + packet.len()
}

/// How much a symbol may hold.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// Bytes of the symbol.
    pub(crate) len_max: usize,
    /// Packets.
    pub(crate) packets_max: u16,
}

/// Moves packets from the queue into `symbol`, as many as there is room for as they are;
/// returns how many. One that does not fit by itself was taken before the path became shorter, and
/// is dropped. With `contexts`, headers of what goes in
/// order are sent as differences where that serves.
pub(crate) fn fill(
    now: Time,
    ingress: &mut IngressQueue,
    room: Room,
    delivery: Delivery,
    mut contexts: Option<&mut Contexts>,
    symbol: &mut Vec<u8>,
    stats: &mut Stats,
) -> u16 {
    let mut packets = 0;
    while packets < room.packets_max
        && let Some(bytes) = ingress.front(now, stats)
    {
        let len = symbol.len() + packet_len_in_symbol(bytes);
        if len > room.len_max {
            if packets > 0 {
                break;
            }
            ingress.pop();
            stats.packets_refused += 1;
            continue;
        }
        let packet = Packet::verbatim(bytes, needs_order(bytes, delivery));
        match contexts.as_deref_mut().filter(|_| packet.in_order) {
            Some(contexts) => append_compressed(packet, contexts, symbol, stats),
            None => append_packet(packet, symbol),
        }
        ingress.pop();
        packets += 1;
    }
    packets
}

/// Appends a packet that goes in order, as a difference if that serves.
fn append_compressed(
    packet: Packet<'_>,
    contexts: &mut Contexts,
    symbol: &mut Vec<u8>,
    stats: &mut Stats,
) {
    let start = symbol.len();
    symbol.extend_from_slice(&[0; PACKET_PREFIX_LEN]);
    if contexts.compress(packet.bytes, symbol) {
        let len = (symbol.len() - start - PACKET_PREFIX_LEN) as u16 | DIFFERENCE;
        symbol[start..start + PACKET_PREFIX_LEN].copy_from_slice(&len.to_be_bytes());
        stats.packets_compressed += 1;
    } else {
        symbol.truncate(start);
        append_packet(packet, symbol);
        contexts.note_verbatim(packet.bytes);
    }
}

/// The packets of a symbol, up to the first length that is zero or does not fit.
pub(crate) fn packets(symbol: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    let mut read = Reader(symbol);
    core::iter::from_fn(move || {
        let word = read.u16()?;
        let len = Some(usize::from(word & LEN_MASK)).filter(|&len| len > 0)?;
        let (in_order, is_difference) = (word & NO_ORDER == 0, word & DIFFERENCE != 0);
        Some(Packet { bytes: read.take(len)?, in_order, is_difference })
    })
}

/// The same where headers are sent as they are: ends at what says otherwise.
pub(crate) fn verbatim_packets(symbol: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    packets(symbol).take_while(|packet| !packet.is_difference)
}

/// Whether a packet has to stay behind those before it. TCP takes data out of order for losses;
/// its bare acknowledgements, datagrams and echoes of the network do not mind the order, and must
/// not wait for others.
fn needs_order(packet: &[u8], delivery: Delivery) -> bool {
    match delivery {
        Delivery::InOrder => true,
        Delivery::Immediate => false,
        Delivery::Auto => !is_indifferent(packet).unwrap_or(false),
    }
}

/// Whether a packet is a bare acknowledgement of TCP: those that wait together say what the last
/// of them says, and are hardly the worse for having waited.
pub(crate) fn is_acknowledgement(packet: &[u8]) -> bool {
    matches!(transport(packet), Some((TCP, segment)) if is_bare_acknowledgement(segment) == Some(true))
}

/// Whether a packet sets up a connection of TCP.
pub(crate) fn is_syn(packet: &[u8]) -> bool {
    const SYN: u8 = 0x02;
    matches!(transport(packet), Some((TCP, segment)) if segment.get(13).is_some_and(|flags| flags & SYN != 0))
}

/// Whether nothing in a packet minds being overtaken; `None` if it cannot be told.
fn is_indifferent(packet: &[u8]) -> Option<bool> {
    match transport(packet)? {
        (ICMP | UDP | ICMPV6, _) => Some(true),
        (TCP, segment) => is_bare_acknowledgement(segment),
        _ => Some(false),
    }
}

/// The protocol inside an IP packet, and its bytes; `None` for anything else, and for fragments.
fn transport(packet: &[u8]) -> Option<(u8, &[u8])> {
    match packet.first()? >> 4 {
        4 => {
            let whole = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & IPV4_FRAGMENT == 0;
            let header_len = 4 * usize::from(packet[0] & 0xf);
            Some((*packet.get(9)?, packet.get(header_len..).filter(|_| whole)?))
        }
        6 => Some((*packet.get(6)?, packet.get(40..)?)),
        _ => None,
    }
}

/// Fragment offset and "more fragments" of IPv4.
const IPV4_FRAGMENT: u16 = 0x3fff;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// A TCP segment without data that says nothing but how far the other side has come.
fn is_bare_acknowledgement(segment: &[u8]) -> Option<bool> {
    const ACK: u8 = 0x10;
    const PSH: u8 = 0x08;
    const ECE: u8 = 0x40;
    const CWR: u8 = 0x80;
    let header_len = 4 * usize::from(segment.get(12)? >> 4);
    let flags = *segment.get(13)?;
    Some(header_len == segment.len() && flags & !(PSH | ECE | CWR) == ACK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn packets_come_back_whatever_zeros_follow(
            sent in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 1..50), any::<bool>()),
                0..8,
            ),
            zeros in 0usize..20,
        ) {
            let mut symbol = Vec::new();
            for (bytes, in_order) in &sent {
                append_packet(Packet::verbatim(bytes, *in_order), &mut symbol);
            }
            symbol.resize(symbol.len() + zeros, 0);
            let received: Vec<_> =
                packets(&symbol).map(|packet| (packet.bytes.to_vec(), packet.in_order)).collect();
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn garbage_ends_the_list(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let taken: usize =
                packets(&bytes).map(|packet| packet_len_in_symbol(packet.bytes)).sum();
            prop_assert!(taken <= bytes.len());
        }
    }
}
