//! Arbitrary bytes interpreted as numbers and strings; zeros follow after their end.

use corridor_codec::Field;
use corridor_proto::{Role, StationConfig, StationId};
use corridor_testbed::config::{config, keys};

pub struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    /// A number below `limit`, which is at most 256 and not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.byte()) % limit
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    pub fn vec(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// A small number of symbols, or sometimes one around a 64-bit word's boundary.
    pub fn size(&mut self) -> usize {
        match self.below(16) {
            0 => 61 + self.below(12),
            _ => 1 + self.below(24),
        }
    }

    pub fn field(&mut self) -> Field {
        [Field::Gf2, Field::Gf16, Field::Gf256][self.below(3)]
    }
}

/// The contents of source symbol `id`: bytes and a length derived from the id.
pub fn source(id: u64, symbol_size_max: usize) -> Vec<u8> {
    let mut state = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 40) as u8
    };
    let len = 1 + usize::from(next()) % symbol_size_max;
    (0..len).map(|_| next()).collect()
}

/// A plain forwarder to the first of its peers, with a key pair derived from its number, as those
/// of its peers are.
pub fn keyed(id: StationId, peers: &[StationId]) -> StationConfig {
    let role = Role::Plain { peer: peers[0] };
    StationConfig {
        security: keys(id, peers),
        ingress_packets: 10,
        frame_len_max: 1_400,
        ..config(id, role)
    }
}
