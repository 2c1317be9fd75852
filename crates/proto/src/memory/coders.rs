//! Memory of blocks and of TCP/NC's buffers: as many as fit a share.
//!
//! An encoder of blocks announces their length, and that of its symbols, in its HELLO. A decoder
//! and a helper hold as many of these blocks at once as fit, and accept no rows of others. The
//! memory of TCP/NC is divided into coding buffers of equal length for all connections. Buffers are
//! shortened rather than reduced in number: without a buffer, what the other end codes could not be
//! decoded, while beyond a window shorter than its buffer TCP just retransmits.

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

/// Maximum number of blocks that a decoder has open at once: those of its window, and with tags one
/// beyond it.
pub(crate) const DECODER_BLOCKS_MAX: usize = BLOCKS_IN_FLIGHT_MAX as usize + 1;
/// Bytes of a transmission in a block's log.
pub(crate) const BLOCK_LOGGED_BYTES: usize = 16;
/// Bytes of a time.
pub(crate) const TIME_BYTES: usize = 8;
/// Bytes of a row that is kept until its block is verified, besides its payload; a growing list may
/// have twice the capacity that it needs.
pub(crate) const PROOF_ROW_BYTES: usize = 64;
/// Matrices of coding vectors in a decoder; in a recoder with those of its symbols, which may also
/// be interleaved.
const MATRICES: usize = 4;

/// Blocks as their encoder announces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    pub(crate) field: Field,
    pub(crate) block_size: usize,
    pub(crate) symbol_size: usize,
    /// Symbols have end-to-end tags.
    pub(crate) is_tagged: bool,
}

/// Of the backend that needs most, if none is configured.
type StorageLen = fn(Field, usize, usize, Option<Backend>) -> Result<usize, CodecError>;

impl BlockShape {
    /// The blocks that this station's own encoder announces.
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

    /// Bytes of a sent block, with its log of frames.
    pub(crate) fn sent_bytes(self) -> usize {
        self.storage(BlockEncoder::storage_len_bytes)
            .saturating_add(SENT_LOG_MAX * BLOCK_LOGGED_BYTES)
    }

    /// Bytes of a received block, with what verifies it.
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

    /// How many such blocks of a peer fit `bytes` bytes; 0 if too few to work with.
    pub(crate) fn decoded_in(self, bytes: usize) -> usize {
        let blocks = (bytes / self.received_bytes()).min(DECODER_BLOCKS_MAX);
        if blocks < MEMORY_DECODER_BLOCKS_MIN { 0 } else { blocks }
    }

    /// The same for a helper, per flow.
    pub(crate) fn helped_in(self, bytes: usize) -> usize {
        (bytes / self.helped_bytes()).min(HELPER_BLOCKS_MAX)
    }

    /// Bytes of `blocks` blocks in flight, and of as many similar ones of the peer.
    pub(super) fn both_ways(self, blocks: usize) -> usize {
        let received = self.received_bytes().saturating_mul(blocks.max(MEMORY_DECODER_BLOCKS_MIN));
        self.sent_bytes().saturating_mul(blocks).saturating_add(received)
    }
}

/// Bytes that TCP/NC needs for a connection with a coding buffer of `segments` segments: the
/// buffer, with packets in flight, and its receiver's, twice as long.
pub(super) fn connection_bytes(config: &StationConfig, segments: u16) -> (usize, usize) {
    let field = config.coding.field;
    // A segment with its length is no longer than the frame that carries it.
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

/// Bytes of all connections, both directions.
pub(super) fn connections_bytes(config: &StationConfig, segments: u16) -> usize {
    let (sent, received) = connection_bytes(config, segments);
    (sent + received).saturating_mul(TCP_NC_CONNECTIONS_MAX)
}

/// Segments of each connection's coding buffer that fit `bytes` bytes.
pub(super) fn segments_in(config: &StationConfig, bytes: usize) -> u16 {
    let steps = (1..=TCP_NC_SEGMENTS_MAX / MEMORY_TCP_NC_SEGMENTS_MIN).rev();
    let mut lengths = steps.map(|steps| steps * MEMORY_TCP_NC_SEGMENTS_MIN);
    let fits = |segments: &u16| connections_bytes(config, *segments) <= bytes;
    lengths.find(fits).unwrap_or(MEMORY_TCP_NC_SEGMENTS_MIN)
}
