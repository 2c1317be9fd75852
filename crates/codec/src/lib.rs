//! Random linear network coding of blocks and of a sliding window.
//!
//! *Source symbols* are byte strings of any length. A *coded symbol* is a linear combination of
//! them over a finite [`Field`]; its *coding vector* lists the *coding coefficients*. Any set of
//! symbols whose vectors have full *rank* determines the source symbols. The terms are those of RFC
//! 8406. There are two codes:
//!
//! - A *block* is a fixed sequence of source symbols. [`BlockEncoder`] makes coded symbols of it,
//!   [`Recoder`] makes new combinations of the symbols it has received, without decoding, and
//!   [`BlockDecoder`] accepts source, coded and recoded symbols in any order.
//! - A *window* slides over an endless stream of source symbols with consecutive ids.
//!   [`WindowEncoder`] makes coded symbols over any run of it, and [`WindowDecoder`] decodes and
//!   recodes. See [below](#a-sliding-window).
//!
//! Decoders release each source symbol as soon as it is determined, whatever else is missing.
//!
//! Symbols of different lengths combine as if padded with zeros at the end, but no padding is ever
//! stored or sent: every result is as long as the longest symbol in it. A symbol that was solved
//! for can therefore have trailing zeros that its sender did not write; a protocol whose symbols do
//! not reveal their own length must send it inside the symbol.
//!
//! A coder allocates at construction, never afterwards ([memory](#memory)). It keeps no secrets and
//! accepts untrusted input: out-of-range input gives a [`CodecError`], and nothing panics. The
//! codec cannot check whether a payload matches its coding vector, so symbols must be authenticated
//! before.
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
//!
//! # A sliding window
//!
//! In a block, the first symbol may have to wait for the last one. A stream that cannot wait is
//! sent as it comes, interleaved with coded symbols, each over everything that the receiver is not
//! known to have: one of them repairs any single loss. Both sides drop symbols that were delivered,
//! or that are too late to be of use; the window is what both still hold, up to [`MAX_WINDOW_SIZE`]
//! symbols.
//!
//! Coefficients are sent as a vector, as a 32-bit seed ([`Field::expand_seed`]), or as repair key
//! and density of RFC 8681 ([`Field::expand_repair_key`]): see [`Coefficients`]. Ids have 64 bits;
//! [`widen_id`] restores them from the 32 bits sent.
//!
//! An arriving source symbol costs one copy, a coded one a copy and an elimination of coefficients.
//! Payloads are combined once source symbols are determined, several at a time.
//!
//! ```
//! use corridor_codec::{Coefficients, Field, WindowDecoder, WindowEncoder};
//!
//! let mut encoder = WindowEncoder::new(Field::Gf256, 32, 100)?;
//! let mut decoder = WindowDecoder::new(Field::Gf256, 32, 100)?;
//! let mut delivered = Vec::new();
//! for number in 0..50_u32 {
//!     let id = encoder.push(format!("packet {number}").as_bytes())?;
//!     // Every seventh packet is lost; after each fifth follows a coded symbol.
//!     if number % 7 != 3 {
//!         decoder.add_source(id, encoder.symbol(id).unwrap())?;
//!     }
//!     if number % 5 == 4 {
//!         let (first, count) = (encoder.base(), encoder.count());
//!         let mut payload = [0; 100];
//!         let seed = Coefficients::Seed(number);
//!         let len = encoder.encode(first, count, seed, &mut payload)?;
//!         decoder.add_coded(first, count, seed, &payload[..len])?;
//!     }
//!     // What is decoded in order is delivered and acknowledged, and dropped by both sides.
//!     for id in decoder.base()..decoder.in_order_end() {
//!         let packet = String::from_utf8_lossy(decoder.symbol(id).unwrap());
//!         delivered.push(packet.trim_end_matches('\0').to_owned());
//!     }
//!     decoder.advance_to(decoder.in_order_end());
//!     encoder.advance_to(decoder.base());
//! }
//! assert_eq!(delivered.len(), 50);
//! assert_eq!(delivered[3], "packet 3", "repaired");
//! # Ok::<(), corridor_codec::CodecError>(())
//! ```
//!
//! # Memory
//!
//! A coder copies its input once, to memory where it is aligned, padded and combined: the caller's
//! buffers are free at once, and `symbol` reads the coder's copy. A coder writes its output
//! directly to the caller's buffers. The memory for the copies is the coder's own, or lent by the
//! caller: static, from an arena, or reused by one coder after the other:
//!
//! ```
//! use corridor_codec::{Backend, BlockDecoder, Field};
//!
//! let (field, backend) = (Field::Gf256, Backend::detected());
//! let mut memory = vec![0; BlockDecoder::storage_len_bytes(field, 3, 16, backend)?];
//! for block in [b"first block", b"other block"] {
//!     let mut decoder = BlockDecoder::with_storage(field, 3, 16, backend, &mut memory)?;
//!     decoder.add_source(0, block)?;
//!     assert_eq!(decoder.symbol(0), Some(&block[..]));
//! }
//! # Ok::<(), corridor_codec::CodecError>(())
//! ```
//!
//! Coding vectors and bookkeeping are always the coder's own, allocated from the heap at
//! construction: for a decoder up to three vectors and a few bytes per symbol. The type parameter
//! [`Storage`] distinguishes the two kinds of coders.
//!
//! # Fields and sizes
//!
//! | Field | Polynomial | Bits of a coefficient | Expected extra symbols |
//! |---|---|---|---|
//! | [`Field::Gf2`] | | 1 | 1.607 |
//! | [`Field::Gf16`] | x^4 + x + 1 (0x13) | 4 | .071 |
//! | [`Field::Gf256`] | x^8 + x^4 + x^3 + x^2 + 1 (0x11D) | 8 | .004 |
//!
//! In each field, the element x, 2, generates the multiplicative group. The last column is the
//! expected number of coded symbols beyond the number missing, if many are missing: the sum over j
//! of 1 / (q^j - 1), over the field of order q. Blocks and windows have up to 1024 symbols, symbols
//! 1 to 65,535 bytes; all lengths are in bytes, and all counts in symbols.
//!
//! # Sources
//!
//! - RFC 8406, Taxonomy of Coding Techniques for Efficient Network Communications: the names.
//! - RFC 8681, Sliding Window Random Linear Code (RLC) FEC Schemes for FECFRAME: coefficients of
//!   repair keys (section 3.6), and the polynomial of GF(2^8).
//! - RFC 8682, TinyMT32 Pseudorandom Number Generator: [`TinyMt32`].
//! - RFC 8439, ChaCha20 and Poly1305, with 8 rounds: seeds ([`Field::expand_seed`]).
//! - Sundararajan et al., Network Coding Meets TCP: Theory and Implementation, Proceedings of the
//!   IEEE 99 (3), 2011: symbols that are *seen* ([`WindowDecoder::is_seen`]).
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
#[cfg(test)]
mod held_tests;
mod kernel;
#[cfg(test)]
mod naive;
mod recoder;
mod rows;
mod storage;
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
pub use storage::Storage;
pub use tinymt::{Density, TinyMt32};
pub use window::{
    Coefficients, MAX_WINDOW_SIZE, WindowDecoder, WindowEncoder, WindowOutcome, widen_id,
};

/// Maximum number of symbols in a block.
pub const MAX_BLOCK_SIZE: usize = 1024;

/// Maximum symbol size, in bytes: lengths fit in 16 bits.
pub const MAX_SYMBOL_SIZE: usize = 65_535;
