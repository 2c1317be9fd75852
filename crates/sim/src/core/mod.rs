//! The network itself: the event queue, nodes and what they carry, and the links between nodes.

pub(crate) mod agenda;
pub(crate) mod agent;
pub(crate) mod network;
pub(crate) mod watch;
