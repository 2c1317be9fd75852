//! Agents on nodes: traffic sources, transport protocols, and layers below them.

pub(crate) mod headers;
pub(crate) mod ip;
pub(crate) mod metered;
pub mod source;
pub(crate) mod stamped;
pub mod tcpnc;
pub(crate) mod tunnel_end;
