//! Block mode, as in FRANC: an encoder, helpers that recode, and a decoder.

mod ack_timer;
pub mod budget;
pub(crate) mod decoder;
pub(crate) mod encoder;
#[cfg(test)]
mod forged_tests;
pub(crate) mod helper;
pub(crate) mod proof;
pub(crate) mod tags;
