//! Upper bounds of the memory that a station takes apart from its queue and its windows, blocks or
//! buffers, and the size of one of each of these: the bounds of [`crate::memory`], tested against
//! the actual sizes.

use corridor_base::Time;
use corridor_packet::PacketBuf;

use super::{Event, Parts, Shared, Station};
use crate::bounds::{
    EVENTS_MAX, FRAME_LEN_MAX, MEMORY_BESIDE, PARTS_WHOLES_MAX, PEERS_MAX, PENDING_SESSIONS_MAX,
};
use crate::flow::block::proof::Proof;
use crate::host::clamp::Clamps;
use crate::host::compression::Contexts;
use crate::host::fair::FairQueue;
use crate::host::order::OrderByNeed;
use crate::link::arrivals::Arrivals;
use crate::link::path_control::REMEMBERED_BYTES;
use crate::link::replay::ReplayWindow;
use crate::link::seal::SessionKey;
use crate::link::sent::Sent;
use crate::memory::{
    BLOCK_LOGGED_BYTES, CLAMP_BYTES, LOGGED_BYTES, PACKET_BUF_BYTES, PROOF_ROW_BYTES, QUEUED_BYTES,
    TIME_BYTES, VEC_BYTES,
};

/// Buffers for frames and bodies: those being made, opened, sent in parts, waiting as feedback, and
/// symbols being made or delivered. A buffer that grew gradually may have twice the capacity
/// needed.
const BUFFERS: usize = 4 * 2 * FRAME_LEN_MAX;
/// Secrets under which a session is opened: the present one, the previous and the next.
const SECRETS: usize = 3;
/// Sessions: this station's own; for each peer, the accepted and the pending ones.
const SESSIONS: usize = size_of::<ReplayWindow>()
    + (2 + PENDING_SESSIONS_MAX) * SECRETS * (size_of::<SessionKey>() + 64);
/// Lists: chunks of peers in parts, and events.
const LISTS: usize =
    Parts::PEER_BYTES * PEERS_MAX.next_power_of_two() + EVENTS_MAX * size_of::<Event>();
/// Single structures, in the station and its role, with their boxes.
const STRUCTURES: usize = 4 * (size_of::<Station>() + size_of::<Shared>());

const SUM: usize = FairQueue::BYTES
    + OrderByNeed::BYTES_MAX
    + 2 * Contexts::BYTES_MAX
    + REMEMBERED_BYTES
    + Arrivals::BYTES_MAX
    + BUFFERS
    + SESSIONS
    + LISTS
    + STRUCTURES;

/// For a station without windows, whose peers' parts are not counted here.
const SUM_WITHOUT: usize =
    BUFFERS + 2 * PARTS_WHOLES_MAX * FRAME_LEN_MAX + SESSIONS + LISTS + STRUCTURES;

const _: () = assert!(SUM_WITHOUT <= MEMORY_BESIDE, "more than is kept free for it");
const _: () = assert!(SUM <= MEMORY_BESIDE, "more than is kept free for it");
const _: () = assert!(FairQueue::PACKET_BYTES <= QUEUED_BYTES);
const _: () = assert!(size_of::<Sent>() <= LOGGED_BYTES);
const _: () = assert!(size_of::<(u32, Time)>() <= BLOCK_LOGGED_BYTES);
const _: () = assert!(size_of::<Time>() <= TIME_BYTES);
const _: () = assert!(size_of::<Vec<u8>>() <= VEC_BYTES);
const _: () = assert!(size_of::<PacketBuf>() <= PACKET_BUF_BYTES);
const _: () = assert!(2 * Proof::ROW_BYTES <= PROOF_ROW_BYTES);
const _: () = assert!(Clamps::CLAMP_BYTES <= CLAMP_BYTES);
