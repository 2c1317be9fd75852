//! Links from a station to a neighbour: handshake, key exchange, sealing and replay protection;
//! losses, round-trip time, path MTU and rate.

pub(crate) mod arrivals;
pub(crate) mod exchange;
pub(crate) mod handshake;
pub(crate) mod keyring;
pub(crate) mod loss_ratio;
pub(crate) mod losses;
pub(crate) mod mac;
pub(crate) mod member_keys;
pub mod mtu;
pub(crate) mod noise;
pub(crate) mod pacer;
pub(crate) mod path_control;
pub(crate) mod replay;
pub(crate) mod rtt;
pub(crate) mod seal;
pub(crate) mod secrets;
pub(crate) mod sent;
pub(crate) mod shared_channel;
pub(crate) mod usage;
