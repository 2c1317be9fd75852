//! The measurements: groups of contestants that do the same work.

use std::rc::Rc;

use crate::fixture::{Block, repair_count};
use crate::limits::ReadSources;
use crate::measure::Contestant;
use crate::ours::Way;
use crate::peers::{cu_fec, raptorq, reed_solomon, rlnc, simdx};

/// Symbol sizes of the dense operations, in bytes: a full packet, and one without a tail.
pub const SYMBOL_SIZES: [usize; 2] = [1450, 1536];
/// Block sizes in the dense operations.
pub const BLOCK_SIZES: [usize; 6] = [16, 32, 64, 150, 256, 1024];
/// Block sizes in the systematic operations, and their symbol size in bytes.
pub const SYSTEMATIC_BLOCK_SIZES: [usize; 5] = [16, 50, 100, 500, 1000];
pub const SYSTEMATIC_SYMBOL_SIZE: usize = 1280;

/// Window sizes in the operations on a stream, and their symbol size in bytes.
pub const WINDOW_SIZES: [usize; 2] = [64, 256];
pub const WINDOW_SYMBOL_SIZE: usize = 1450;

/// The operations. Rates count payload: of the coded symbols in the dense operations that make
/// some, and of the whole block or stream in all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    Encode,
    EncodeBatch,
    Recode,
    RecodeBatch,
    Decode,
    SystematicEncode,
    SystematicDecode,
    WindowEncode,
    WindowDecode,
}

impl Operation {
    pub const DENSE: [Self; 5] =
        [Self::Encode, Self::EncodeBatch, Self::Recode, Self::RecodeBatch, Self::Decode];
    pub const SYSTEMATIC: [Self; 2] = [Self::SystematicEncode, Self::SystematicDecode];

    pub const WINDOW: [Self; 2] = [Self::WindowEncode, Self::WindowDecode];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Encode => "encode",
            Self::EncodeBatch => "encode_batch",
            Self::Recode => "recode",
            Self::RecodeBatch => "recode_batch",
            Self::Decode => "decode",
            Self::SystematicEncode => "systematic_encode",
            Self::SystematicDecode => "systematic_decode",
            Self::WindowEncode => "window_encode",
            Self::WindowDecode => "window_decode",
        }
    }

    /// The display name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Encode => "Encode, one dense symbol at a time",
            Self::EncodeBatch => "Encode, many dense symbols at a time",
            Self::Recode => "Recode, one symbol at a time",
            Self::RecodeBatch => "Recode, many symbols at a time",
            Self::Decode => "Decode a dense block",
            Self::SystematicEncode => "Make the repair symbols for 10 % loss",
            Self::SystematicDecode => "Decode after 10 % loss",
            Self::WindowEncode => "Encode over a full window, one symbol at a time",
            Self::WindowDecode => "Decode a stream with a window, 10 % loss",
        }
    }

    /// Multiply-accumulated bytes per payload byte, by the textbook: the divisor of the limit. A
    /// method that needs fewer can exceed the limit.
    pub fn multiplications(self, block_size: usize) -> f64 {
        match self {
            Self::SystematicEncode | Self::SystematicDecode | Self::WindowDecode => {
                repair_count(block_size) as f64
            }
            _ => block_size as f64,
        }
    }
}

/// One operation on blocks of one shape, or on windows, whose size then takes the place of the
/// block's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub operation: Operation,
    pub block_size: usize,
    pub symbol_size: usize,
}

impl Group {
    /// All groups, or those of the most informative shapes.
    pub fn all(quick: bool) -> Vec<Group> {
        let mut groups = Vec::new();
        for operation in Operation::DENSE {
            for symbol_size in SYMBOL_SIZES {
                for block_size in BLOCK_SIZES {
                    groups.push(Group { operation, block_size, symbol_size });
                }
            }
        }
        for operation in Operation::SYSTEMATIC {
            for block_size in SYSTEMATIC_BLOCK_SIZES {
                let symbol_size = SYSTEMATIC_SYMBOL_SIZE;
                groups.push(Group { operation, block_size, symbol_size });
            }
        }
        for operation in Operation::WINDOW {
            for block_size in WINDOW_SIZES {
                let symbol_size = WINDOW_SYMBOL_SIZE;
                groups.push(Group { operation, block_size, symbol_size });
            }
        }
        if quick {
            groups.retain(|group| group.block_size <= 256);
        }
        groups
    }

    /// Text of the progress bar.
    pub fn title(self) -> String {
        format!("{} {} x {} B", self.operation.name(), self.block_size, self.symbol_size)
    }

    /// All contestants that can do this, prepared.
    pub fn contestants(self, seed: u64) -> Vec<Contestant> {
        let block = &Block::new(self.block_size, self.symbol_size, seed);
        let ours = |make: fn(Way, &Rc<Block>) -> Contestant| {
            Way::all().into_iter().map(|way| make(way, block)).collect::<Vec<_>>()
        };
        let mut contestants;
        match self.operation {
            Operation::Encode => {
                contestants = ours(Way::encode);
                contestants.push(rlnc::encode(block));
                contestants.push(simdx::encode(block));
                contestants.extend(simdx::encode_by_avx2(block));
                contestants.extend(cu_fec::encode(block));
                contestants.push(ReadSources::contestant(self.block_size, self.symbol_size));
            }
            Operation::EncodeBatch => {
                // The dense peers have no batches: theirs is the rate for single symbols.
                contestants = ours(Way::encode_batch);
                contestants.push(reed_solomon::encode_batch(block));
                contestants.push(raptorq::encode_batch(block));
            }
            Operation::Recode => {
                contestants = ours(Way::recode);
                contestants.push(rlnc::recode(block));
                contestants.push(simdx::recode(block));
            }
            Operation::RecodeBatch => contestants = ours(Way::recode_batch),
            Operation::Decode => {
                contestants = ours(Way::decode);
                contestants.push(rlnc::decode(block));
                contestants.push(simdx::decode(block));
                contestants.push(reed_solomon::decode(block));
                contestants.push(raptorq::decode(block));
                contestants.extend(cu_fec::decode(block));
            }
            Operation::SystematicEncode => {
                contestants = ours(Way::encode_systematic);
                contestants.push(simdx::encode_systematic(block));
                contestants.push(reed_solomon::encode_systematic(block));
                contestants.push(raptorq::encode_systematic(block));
                contestants.extend(cu_fec::encode_systematic(block));
            }
            Operation::SystematicDecode => {
                contestants = ours(Way::decode_systematic);
                contestants.push(rlnc::decode_systematic(block));
                contestants.push(simdx::decode_systematic(block));
                contestants.push(reed_solomon::decode_systematic(block));
                contestants.push(raptorq::decode_systematic(block));
                contestants.extend(cu_fec::decode_systematic(block));
            }
            Operation::WindowEncode => contestants = ours(Way::window_encode),
            Operation::WindowDecode => contestants = ours(Way::window_decode),
        }
        contestants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All figures are meaningless unless this holds. Runs in its own thread: cu-fec's coders are
    /// created on the stack.
    #[test]
    fn everyone_does_the_work_right() {
        let check = || {
            let blocks = Operation::DENSE.into_iter().chain(Operation::SYSTEMATIC);
            for operation in blocks.chain(Operation::WINDOW) {
                for symbol_size in [1450, 1536] {
                    for mut contestant in
                        (Group { operation, block_size: 16, symbol_size }).contestants(3)
                    {
                        contestant.work.prepare();
                        contestant.work.run();
                        let verified = contestant.work.verify();
                        assert_eq!(verified, Ok(()), "{operation:?} {}", contestant.library);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(crate::STACK_BYTES).spawn(check);
        thread.unwrap().join().unwrap();
    }
}
