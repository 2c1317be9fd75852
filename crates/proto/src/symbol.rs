//! From packets to source symbols and back: each packet behind its length, several to a symbol,
//! zeros at the end.

use crate::wire::{PACKET_PREFIX_LEN, Reader};

/// Appends a packet to a symbol. The caller has seen to it that it fits.
pub(crate) fn append_packet(packet: &[u8], symbol: &mut Vec<u8>) {
    debug_assert!(!packet.is_empty() && packet.len() <= usize::from(u16::MAX));
    symbol.extend_from_slice(&(packet.len() as u16).to_be_bytes());
    symbol.extend_from_slice(packet);
}

/// Bytes a packet takes within a symbol.
pub(crate) fn packet_len_in_symbol(packet: &[u8]) -> usize {
    PACKET_PREFIX_LEN + packet.len()
}

/// The packets of a symbol, up to the first length that is zero or does not fit.
pub(crate) fn packets(symbol: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut read = Reader(symbol);
    core::iter::from_fn(move || {
        let len = read.u16().filter(|&len| len > 0)?;
        read.take(usize::from(len))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_come_back_whatever_zeros_follow(
            sent in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..8),
            zeros in 0usize..20,
        ) {
            let mut symbol = Vec::new();
            sent.iter().for_each(|packet| append_packet(packet, &mut symbol));
            symbol.resize(symbol.len() + zeros, 0);
            let received: Vec<_> = packets(&symbol).map(<[u8]>::to_vec).collect();
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn garbage_ends_the_list(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let taken: usize = packets(&bytes).map(packet_len_in_symbol).sum();
            prop_assert!(taken <= bytes.len());
        }
    }
}
