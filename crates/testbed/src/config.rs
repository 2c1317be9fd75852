//! Configurations of stations in tests.

use corridor_base::Time;
use corridor_proto::bounds::MEMORY_DEFAULT;
use corridor_proto::{
    Clocks, CodingParams, Keys, LinkErrors, PeerKey, PrivateKey, Role, Security, StationConfig,
    StationId,
};

/// The secret of all groups.
pub const SECRET: [u8; 32] = [7; 32];

/// A station of a group with one secret, on links of 1,500 bytes; defaults otherwise.
pub fn config(id: StationId, role: Role) -> StationConfig {
    let coding = CodingParams::default();
    StationConfig {
        id,
        role,
        security: SECRET.into(),
        coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: coding.ingress_packets_default(),
        frame_len_max: 1_500,
        frame_len_min: 0,
        memory_bytes: MEMORY_DEFAULT,
        rate_bps: None,
    }
}

/// An endpoint with number 1 or 2, whose peer has the other number.
pub fn end(id: u16) -> StationConfig {
    config(StationId(id), Role::Endpoint { peer: StationId(3 - id), helper: None })
}

/// The private key of a station, which follows from its number.
pub fn private(id: StationId) -> PrivateKey {
    PrivateKey::from_random([id.0 as u8; 32])
}

/// A station's own keys, and its peers' public keys.
pub fn keys(me: StationId, peers: &[StationId]) -> Security {
    let peer = |&station| PeerKey { station, public: private(station).public(), psk: None };
    let peers = peers.iter().map(peer).collect();
    Security::Keys(Box::new(Keys { private: private(me), peers }))
}

/// What both clocks of a station read now, if its wall clock started at this value.
pub fn clocks(zero_ns: u64, now: Time) -> Clocks {
    Clocks { now, wall_ns: zero_ns + now.as_nanos() }
}

/// The same at the start of a run: each run's wall clock is ahead of all earlier ones.
pub fn clocks_of_run(run: u64, now: Time) -> Clocks {
    clocks(run * 1_000_000_000_000, now)
}
