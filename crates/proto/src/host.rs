//! The host's side of a station: queues and transformations of packets, before they become frames.
//!
//! ```text
//! from the host -> queue (fair, codel, codel_target) -> compression -> flow
//!                    `-- clamp sees both directions --.
//! to the host   <- egress <- - - - - - - - - - - - - -' <- compression <- flow
//! ```

#[cfg(test)]
mod aqm_tests;
pub(crate) mod bulk;
pub(crate) mod clamp;
pub(crate) mod codel_target;
#[cfg(test)]
mod codel_target_tests;
pub(crate) mod compression;
#[cfg(test)]
mod compression_tests;
pub(crate) mod egress;
pub(crate) mod fair;
pub(crate) mod icmp_error;
pub(crate) mod order;
pub(crate) mod queue;
mod shelf;
pub(crate) mod too_big;
