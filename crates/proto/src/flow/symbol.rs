//! Packs packets into source symbols and unpacks them: each packet is preceded by its length; a
//! symbol holds several packets, and ends with zeros.

use corridor_base::Time;
use corridor_packet::PacketRef;

use crate::bounds::FRAME_LEN_MAX;
use crate::config::Delivery;
use crate::host::compression::Contexts;
use crate::host::order::Need;
use crate::host::queue::IngressQueue;
use crate::stats::Stats;
use crate::wire::{PACKET_PREFIX_LEN, Reader};

/// Flag in a packet's length: the packet may be delivered before others sent earlier.
const NO_ORDER: u16 = 1 << 15;
/// Flag in a packet's length: its headers are sent as a difference (window mode only).
const DIFFERENCE: u16 = 1 << 14;
const LEN_MASK: u16 = DIFFERENCE - 1;
const _: () = assert!(FRAME_LEN_MAX <= LEN_MASK as usize, "the length of any packet can be told");

/// A packet within a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) bytes: &'a [u8],
    /// It must be delivered after all packets sent before it.
    pub(crate) in_order: bool,
    /// Its headers are a difference to the last packet of its flow: see [`Contexts`].
    pub(crate) is_difference: bool,
}

impl<'a> Packet<'a> {
    /// A packet with uncompressed headers.
    pub(crate) fn verbatim(bytes: &'a [u8], in_order: bool) -> Self {
        Packet { bytes, in_order, is_difference: false }
    }
}

/// Appends a packet to a symbol. The caller makes sure that it fits.
pub(crate) fn append_packet(packet: Packet<'_>, symbol: &mut Vec<u8>) {
    let len = packet.bytes.len();
    debug_assert!((1..=usize::from(LEN_MASK)).contains(&len));
    let order = if packet.in_order { 0 } else { NO_ORDER };
    let form = if packet.is_difference { DIFFERENCE } else { 0 };
    symbol.extend_from_slice(&(len as u16 | order | form).to_be_bytes());
    symbol.extend_from_slice(packet.bytes);
}

/// Bytes that a packet takes within a symbol.
pub(crate) fn packet_len_in_symbol(packet: &[u8]) -> usize {
    PACKET_PREFIX_LEN + packet.len()
}

/// Limits of a symbol.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    /// Bytes of a symbol.
    pub(crate) len_max: usize,
    /// Bytes of a symbol that holds a single packet accepted before the path's MTU shrank.
    pub(crate) alone_max: usize,
    /// Number of packets.
    pub(crate) packets_max: u16,
}

/// Moves packets from the queue into `symbol`, as many as fit uncompressed. Returns how many, and
/// whether all of them are needed soon. A packet longer than a symbol may be was accepted before
/// the path's MTU shrank; it gets a symbol of its own, which is sent in parts. With `contexts`, the
/// headers of packets that are sent in order are compressed where possible.
pub(crate) fn fill(
    now: Time,
    ingress: &mut IngressQueue,
    room: Room,
    delivery: Delivery,
    mut contexts: Option<&mut Contexts>,
    symbol: &mut Vec<u8>,
    stats: &mut Stats,
) -> (u16, bool) {
    let (mut packets, mut soon) = (0, true);
    while packets < room.packets_max
        && let Some((packet, need)) = ingress.front_with_need(now, stats)
    {
        let packet = packet.packet();
        let len = symbol.len() + packet_len_in_symbol(&packet);
        if packets > 0 && len > room.len_max {
            break;
        }
        if len > room.len_max.max(room.alone_max) {
            debug_assert!(false, "{len} bytes: none is taken of more than {}", room.alone_max);
            ingress.pop();
            stats.packets_refused += 1;
            continue;
        }
        let in_order = need == Need::Order || needs_order(packet, delivery);
        stats.datagrams_ordered += u64::from(need == Need::Order);
        soon &= need == Need::Soon;
        match contexts.as_deref_mut().filter(|_| in_order) {
            Some(contexts) => append_compressed(packet, contexts, symbol, stats),
            None => append_packet(Packet::verbatim(packet.bytes(), in_order), symbol),
        }
        ingress.pop();
        packets += 1;
    }
    (packets, soon && packets > 0)
}

/// Appends a packet that is sent in order, as a difference if possible.
fn append_compressed(
    packet: PacketRef<'_>,
    contexts: &mut Contexts,
    symbol: &mut Vec<u8>,
    stats: &mut Stats,
) {
    let start = symbol.len();
    symbol.extend_from_slice(&[0; PACKET_PREFIX_LEN]);
    if contexts.compress(packet, symbol) {
        let len = (symbol.len() - start - PACKET_PREFIX_LEN) as u16 | DIFFERENCE;
        symbol[start..start + PACKET_PREFIX_LEN].copy_from_slice(&len.to_be_bytes());
        stats.packets_compressed += 1;
    } else {
        symbol.truncate(start);
        append_packet(Packet::verbatim(packet.bytes(), true), symbol);
        contexts.note_verbatim(packet);
    }
}

/// The packets of a symbol, up to the first length that is zero or exceeds the rest.
pub(crate) fn packets(symbol: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    let mut read = Reader(symbol);
    core::iter::from_fn(move || {
        let word = read.u16()?;
        let len = Some(usize::from(word & LEN_MASK)).filter(|&len| len > 0)?;
        let (in_order, is_difference) = (word & NO_ORDER == 0, word & DIFFERENCE != 0);
        Some(Packet { bytes: read.take(len)?, in_order, is_difference })
    })
}

/// The same where headers are never compressed: ends at the first packet flagged as compressed.
pub(crate) fn verbatim_packets(symbol: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    packets(symbol).take_while(|packet| !packet.is_difference)
}

/// Whether a packet has to stay behind those before it, even those of other flows. TCP takes data
/// out of order for losses. Its pure acknowledgments, and ICMP echoes, do not mind reordering, and
/// should not wait for others. For datagrams the queue finds out.
fn needs_order(packet: PacketRef<'_>, delivery: Delivery) -> bool {
    match delivery {
        Delivery::InOrder => true,
        Delivery::Immediate => false,
        Delivery::Auto => !packet.view().tolerates_reordering(),
    }
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
