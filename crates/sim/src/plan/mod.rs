//! How a plan becomes agents, and what they saw becomes measures.

pub(crate) mod flows;
pub(crate) mod meter;
pub(crate) mod radio_tcp;
pub(crate) mod run;
pub(crate) mod udp;
