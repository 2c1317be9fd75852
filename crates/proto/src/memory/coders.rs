//! What blocks and TCP/NC's buffers take: as many of them as fit a share, and no more.
//!
//! An encoder of blocks says in its HELLO how long they are, and how long its symbols: a decoder
//! and a helper hold as many of them at once as they have room for, and take no row of any other.
//! TCP/NC's coding buffers are as long as all connections have room for. There are no fewer of
//! these: what the other end codes could not be decoded, while a window that is shorter than its
//! buffer lets TCP send again what was beyond.

use corridor_codec::{
    Backend, BlockDecoder, BlockEncoder, CodecError, Field, Recoder, WindowDecoder, WindowEncoder,
};

use super::{SYMBOL_BYTES, VECTOR_ALIGN};
use crate::bounds::{
    BLOCKS_IN_FLIGHT_MAX, HELPER_BLOCKS_MAX, HELPER_IN_FLIGHT_MAX, MEMORY_DECODER_BLOCKS_MIN,
    MEMORY_TCP_NC_SEGMENTS_MIN, SENT_LOG_MAX, TCP_NC_CONNECTIONS_MAX, TCP_NC_IN_FLIGHT_MAX,
    TCP_NC_SEGMENTS_MAX,
};
use crate::config::StationConfig;

/// Blocks that a decoder has open at once at most: those of its window, and one beyond it, where
/// symbols have tags.
pub(crate) const DECODER_BLOCKS_MAX: usize = BLOCKS_IN_FLIGHT_MAX as usize + 1;
/// Bytes of a transmission whose fate is kept in mind with a block.
pub(crate) const BLOCK_LOGGED_BYTES: usize = 16;
/// Bytes of a time.
pub(crate) const TIME_BYTES: usize = 8;
/// Bytes of a row that is kept until its block is proven, beside its payload's; a list that grows
/// may have room for as much again.
pub(crate) const PROOF_ROW_BYTES: usize = 64;
/// Matrices of coding vectors of a decoder; of a recoder with those of its symbols, which may be
/// interleaved besides.
const MATRICES: usize = 4;

/// Blocks, as their encoder says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    pub(crate) field: Field,
    pub(crate) block_size: usize,
    pub(crate) symbol_size: usize,
    /// Symbols have tags from end to end.
    pub(crate) is_tagged: bool,
}

/// Of the backend that takes most, where none is named.
type StorageLen = fn(Field, usize, usize, Option<Backend>) -> Result<usize, CodecError>;

impl BlockShape {
    /// What a station that encodes says of its own.
    pub(super) fn of(config: &StationConfig) -> Self {
        BlockShape {
            field: config.coding.field,
            block_size: config.coding.block_size.into(),
            symbol_size: config.symbol_size().into(),
            is_tagged: config.security.shared().is_none() && config.role.is_recoded(),
        }
    }

    fn storage(self, len: StorageLen) -> usize {
        let len = len(self.field, self.block_size, self.symbol_size, None);
        len.unwrap_or(usize::MAX / 4).saturating_add(self.block_size * SYMBOL_BYTES)
    }

    fn matrices(self) -> usize {
        let row = self.field.vector_len_bytes(self.block_size);
        MATRICES * self.block_size * (row.next_multiple_of(VECTOR_ALIGN) + VECTOR_ALIGN)
    }

    /// Bytes of a block that is sent, with the frames whose fate is kept in mind.
    pub(crate) fn sent_bytes(self) -> usize {
        self.storage(BlockEncoder::storage_len_bytes)
            .saturating_add(SENT_LOG_MAX * BLOCK_LOGGED_BYTES)
    }

    /// Bytes of a block that is received, with what proves it.
    pub(crate) fn received_bytes(self) -> usize {
        let row = if self.is_tagged { PROOF_ROW_BYTES + self.symbol_size } else { 0 };
        let proof = self.block_size * row;
        self.storage(BlockDecoder::storage_len_bytes).saturating_add(self.matrices() + proof)
    }

    /// Bytes of a block that a helper holds.
    pub(crate) fn helped_bytes(self) -> usize {
        let log = 2 * 2 * HELPER_IN_FLIGHT_MAX * size_of::<u32>();
        self.storage(Recoder::storage_len_bytes).saturating_add(self.matrices() + log)
    }

    /// How many of a peer's such blocks fit so many bytes; 0, if that is too few to go on with.
    pub(crate) fn decoded_in(self, bytes: usize) -> usize {
        let blocks = (bytes / self.received_bytes()).min(DECODER_BLOCKS_MAX);
        if blocks < MEMORY_DECODER_BLOCKS_MIN { 0 } else { blocks }
    }

    /// The same of a helper, of one flow.
    pub(crate) fn helped_in(self, bytes: usize) -> usize {
        (bytes / self.helped_bytes()).min(HELPER_BLOCKS_MAX)
    }

    /// Bytes that so many blocks in flight take, with as many of a peer's that are like them.
    pub(super) fn both_ways(self, blocks: usize) -> usize {
        let received = self.received_bytes().saturating_mul(blocks.max(MEMORY_DECODER_BLOCKS_MIN));
        self.sent_bytes().saturating_mul(blocks).saturating_add(received)
    }
}

/// Bytes that TCP/NC takes for a connection with a coding buffer of so many segments: the buffer,
/// with the packets on their way, and what its receiver holds, twice as long.
pub(super) fn connection_bytes(config: &StationConfig, segments: u16) -> (usize, usize) {
    let field = config.coding.field;
    // A segment with its length is no longer than the frame that brings it.
    let symbol_size = config.frame_len_max;
    let (sent, received) = (usize::from(segments), 2 * usize::from(segments));
    let storage = |len: StorageLen, segments| {
        let len = len(field, segments, symbol_size, None);
        len.unwrap_or(usize::MAX / 64).saturating_add(segments * SYMBOL_BYTES)
    };
    let row = field.vector_len_bytes(received).next_multiple_of(VECTOR_ALIGN) + VECTOR_ALIGN;
    let log = TCP_NC_IN_FLIGHT_MAX * TIME_BYTES + 4 * symbol_size;
    (
        storage(WindowEncoder::storage_len_bytes, sent).saturating_add(log),
        storage(WindowDecoder::storage_len_bytes, received).saturating_add(2 * received * row),
    )
}

/// Bytes of all connections, both ways.
pub(super) fn connections_bytes(config: &StationConfig, segments: u16) -> usize {
    let (sent, received) = connection_bytes(config, segments);
    (sent + received).saturating_mul(TCP_NC_CONNECTIONS_MAX)
}

/// How many segments the coding buffers of all connections have in so many bytes.
pub(super) fn segments_in(config: &StationConfig, bytes: usize) -> u16 {
    let steps = (1..=TCP_NC_SEGMENTS_MAX / MEMORY_TCP_NC_SEGMENTS_MIN).rev();
    let mut lengths = steps.map(|steps| steps * MEMORY_TCP_NC_SEGMENTS_MIN);
    let fits = |segments: &u16| connections_bytes(config, *segments) <= bytes;
    lengths.find(fits).unwrap_or(MEMORY_TCP_NC_SEGMENTS_MIN)
}
