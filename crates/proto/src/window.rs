//! Window mode: a systematic sliding window between two endpoints on one hop.
//!
//! Packets leave uncoded at once; what gets lost is repaired, by copies where feedback says what is
//! missing, by coded symbols where it cannot know yet. [`sender`] is step 2 of a packet's way,
//! [`receiver`] step 5.

mod rate;
pub(crate) mod receiver;
mod repair;
pub(crate) mod sender;
mod sent;
