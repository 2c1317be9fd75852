//! Window mode: a systematic sliding window between two endpoints on one hop.
//!
//! Packets leave uncoded at once; what gets lost is repaired, by copies where feedback says what is
//! needed, by coded symbols where it cannot know yet. [`sender`] is step 2 of a packet's way,
//! [`receiver`] step 5.

mod belief;
mod bulk;
mod delivered;
pub(crate) mod headers;
#[cfg(test)]
mod headers_tests;
mod losses;
mod min_filter;
mod needs;
mod prefix;
mod probes;
mod rate;
#[cfg(test)]
mod rate_study;
#[cfg(test)]
mod rate_tests;
pub(crate) mod receiver;
mod repair;
#[cfg(test)]
mod repair_tests;
pub(crate) mod sender;
#[cfg(test)]
mod sender_tests;
mod sent;
mod sharing;
mod sources;
mod spread;
