//! Random linear network coding of blocks.
//!
//! A *block* is a sequence of *source symbols*, byte strings of any length. A *coded symbol* is a
//! linear combination of them over a finite [`Field`]; its *coding vector* lists the *coding
//! coefficients*. Any set of symbols whose vectors have full *rank* gives the block back. The
//! names are those of RFC 8406.
//!
//! - [`BlockEncoder`] makes coded symbols of source symbols,
//! - [`Recoder`] makes fresh ones of whatever it has overheard, without decoding,
//! - [`BlockDecoder`] takes source, coded and recoded symbols in any order, and gives out each
//!   source symbol as soon as it is determined.
//!
//! Symbols of different lengths combine as if padded with zeros at the end, but no padding is
//! ever stored or sent: every result is as long as the longest symbol that went into it. A symbol
//! that was solved for can therefore carry trailing zeros that its sender did not write; a
//! protocol whose symbols do not tell their own length has to send it inside the symbol.
//!
//! A coder allocates when it is made, never afterwards. It keeps no secrets and takes untrusted
//! input: what is out of range is a [`CodecError`], and nothing panics. Whether a payload is what
//! its vector says cannot be seen here, so it must be authenticated before.
//!
//! ```
//! use corridor_codec::{BlockDecoder, BlockEncoder, Field, Outcome};
//!
//! let mut encoder = BlockEncoder::new(Field::Gf256, 3, 16)?;
//! for packet in ["to be", "or not", "to be!"] {
//!     encoder.push(packet.as_bytes())?;
//! }
//!
//! // The source symbols are sent as they are; the second one is lost.
//! let mut decoder = BlockDecoder::new(Field::Gf256, 3, 16)?;
//! decoder.add_source(0, encoder.symbol(0).unwrap())?;
//! decoder.add_source(2, encoder.symbol(2).unwrap())?;
//! assert_eq!((decoder.rank(), decoder.is_decoded(1)), (2, false));
//!
//! // One coded symbol over all three repairs it, whichever was lost.
//! let (mut vector, mut payload) = ([0; 3], [0; 16]);
//! Field::Gf256.expand_seed(7, 3, &mut vector)?;
//! let len = encoder.encode(&vector, 3, &mut payload)?;
//! let outcome = decoder.add_coded(&vector, 3, &payload[..len])?;
//! assert_eq!(outcome, Outcome::Innovative);
//! assert!(decoder.is_complete());
//! assert_eq!(decoder.symbol(1), Some("or not".as_bytes()));
//! # Ok::<(), corridor_codec::CodecError>(())
//! ```
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod bits;
mod decoder;
mod encoder;
mod error;
mod field;
mod kernel;
#[cfg(test)]
mod naive;
mod recoder;
mod rows;
mod tableau;
mod tinymt;
#[cfg(test)]
mod twin_tests;
mod window;

pub use decoder::{BlockDecoder, Outcome};
pub use encoder::BlockEncoder;
pub use error::CodecError;
pub use field::Field;
pub use kernel::Backend;
pub use recoder::{Recoded, Recoder};
pub use tinymt::{Density, TinyMt32};
pub use window::{
    Coefficients, MAX_WINDOW_SIZE, WindowDecoder, WindowEncoder, WindowOutcome, widen_id,
};

/// Most symbols that a block can have.
pub const MAX_BLOCK_SIZE: usize = 1024;

/// Most bytes that a symbol can have: its length fits 16 bits.
pub const MAX_SYMBOL_SIZE: usize = 65_535;
