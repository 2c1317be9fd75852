//! The network itself: who is woken when, what sits on nodes, and what joins them.

pub(crate) mod agenda;
pub(crate) mod agent;
pub(crate) mod network;
pub(crate) mod watch;
