//! What stations of tests are told.

use corridor_proto::bounds::MEMORY_DEFAULT;
use corridor_proto::{
    CodingParams, Keys, LinkErrors, PeerKey, PrivateKey, Role, Security, StationConfig, StationId,
};

/// The secret of all groups here.
pub const SECRET: [u8; 32] = [7; 32];

/// A station of a group with one secret, on links of 1,500 bytes; all else is as by default.
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

/// An end whose peer has the other number of 1 and 2.
pub fn end(id: u16) -> StationConfig {
    config(StationId(id), Role::Endpoint { peer: StationId(3 - id), helper: None })
}

/// The private key of a station, which follows from its number.
pub fn private(id: StationId) -> PrivateKey {
    PrivateKey::from_random([id.0 as u8; 32])
}

/// Keys of a station's own, and those of its peers.
pub fn keys(me: StationId, peers: &[StationId], started_ns: u64) -> Security {
    let peer = |&station| PeerKey { station, public: private(station).public(), psk: None };
    let peers = peers.iter().map(peer).collect();
    Security::Keys(Box::new(Keys { private: private(me), peers, started_ns }))
}
