//! Flows from source to sink: packets become symbols, symbols get lost and are repaired, and become
//! packets again. There is one submodule per coding mode.

pub mod block;
pub(crate) mod symbol;
pub mod tcp_nc;
pub(crate) mod window;
