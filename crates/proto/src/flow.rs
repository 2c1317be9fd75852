//! Flows, from source to sink: packets become symbols, get lost, are repaired, and become packets
//! again. There is one room for each way to code.

pub mod block;
pub(crate) mod symbol;
pub mod tcp_nc;
pub(crate) mod window;
