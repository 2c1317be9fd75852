//! Tags of source symbols, which only the two ends of a flow can make and check.
//!
//! A tag precedes the packets of its symbol, and is coded together with them, so helpers need not
//! know of it. It authenticates the packets at that place in that block of that run of the encoder;
//! trailing zeros are padding.

use crate::end_keys::MacKey;
use crate::flow::symbol;
use crate::wire::END_TAG_LEN;

/// Makes or checks the tags of one run of a flow.
pub(crate) struct SymbolTags {
    key: MacKey,
    /// Random per start of the encoder.
    instance: u64,
}

/// Position of a symbol in a run: full block number, which does not wrap like that in frames, and
/// place in the block.
pub(crate) type Place = (u32, u16);

impl SymbolTags {
    pub(crate) fn new(key: MacKey, instance: u64) -> Self {
        SymbolTags { key, instance }
    }

    /// Bytes that a tag takes in each symbol.
    pub(crate) fn len_of(tags: Option<&Self>) -> usize {
        if tags.is_some() { END_TAG_LEN } else { 0 }
    }

    /// Writes the tag into the space reserved at the beginning of a symbol.
    pub(crate) fn write(&self, place: Place, symbol: &mut [u8]) {
        let Some((tag, packets)) = symbol.split_first_chunk_mut() else { return };
        *tag = self.key.tag(&self.context(place), packets);
    }

    /// Whether a symbol is as the encoder made it, except for trailing zeros.
    pub(crate) fn is_genuine(&self, place: Place, symbol: &[u8]) -> bool {
        let Some((tag, packets)) = symbol.split_first_chunk() else { return false };
        let len: usize =
            symbol::packets(packets).map(|it| symbol::packet_len_in_symbol(it.bytes)).sum();
        let (packets, padding) = packets.split_at(len);
        padding.iter().all(|&byte| byte == 0) && self.key.is_tag(tag, &self.context(place), packets)
    }

    fn context(&self, (block, index): Place) -> [u8; 14] {
        let mut context = [0; 14];
        context[..8].copy_from_slice(&self.instance.to_be_bytes());
        context[8..12].copy_from_slice(&block.to_be_bytes());
        context[12..].copy_from_slice(&index.to_be_bytes());
        context
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::end_keys::EndKeys;
    use crate::flow::symbol::{Packet, append_packet};
    use crate::id::StationId;
    use crate::keys::{PeerKey, PrivateKey};

    /// The tags of one flow, as its encoder makes them.
    pub(in crate::flow::block) fn tags(instance: u64) -> SymbolTags {
        let [own, other] = [1, 2].map(|byte| PrivateKey::from_random([byte; 32]));
        let peer = PeerKey { station: StationId(2), public: other.public(), psk: None };
        SymbolTags::new(EndKeys::new(&own, &peer).own_symbols(), instance)
    }

    fn symbol(tags: &SymbolTags, place: Place) -> Vec<u8> {
        let mut symbol = vec![0; END_TAG_LEN];
        append_packet(Packet::verbatim(b"a packet that ends in zeros\0\0", true), &mut symbol);
        append_packet(Packet::verbatim(b"another", true), &mut symbol);
        tags.write(place, &mut symbol);
        symbol
    }

    #[test]
    fn a_tag_holds_for_its_packets_in_their_place_of_their_run_whatever_zeros_follow() {
        let (made, place) = (tags(7), (70_000, 31));
        let mut symbol = symbol(&made, place);
        for _ in 0..3 {
            assert!(made.is_genuine(place, &symbol));
            symbol.push(0);
        }
        for (block, index) in [(70_001, 31), (70_000, 30), (70_000 - 65_536, 31)] {
            assert!(!made.is_genuine((block, index), &symbol), "{block} {index}");
        }
        assert!(!tags(8).is_genuine(place, &symbol), "of another run");
        for bit in 0..symbol.len() * 8 {
            let mut bent = symbol.clone();
            bent[bit / 8] ^= 1 << (bit % 8);
            assert!(!made.is_genuine(place, &bent), "bit {bit}");
        }
    }

    #[test]
    fn a_symbol_that_is_cut_anywhere_is_none() {
        let made = tags(7);
        let symbol = symbol(&made, (0, 0));
        for len in 0..symbol.len() {
            assert!(!made.is_genuine((0, 0), &symbol[..len]), "{len}");
        }
    }
}
