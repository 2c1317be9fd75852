//! What sits on nodes: traffic, transports, and layers below them.

pub mod source;
pub mod tcpnc;
