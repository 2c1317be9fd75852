//! What a station holds at most beside its queue and windows, blocks or buffers, and what each of
//! these takes where it is counted by the piece: bounds of [`crate::memory`], held against what is
//! there.

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
use crate::link::path_control::REMEMBERED_BYTES;
use crate::link::replay::ReplayWindow;
use crate::link::seal::SessionKey;
use crate::link::sent::Sent;
use crate::memory::{
    BLOCK_LOGGED_BYTES, CLAMP_BYTES, LOGGED_BYTES, PACKET_BUF_BYTES, PROOF_ROW_BYTES, QUEUED_BYTES,
    TIME_BYTES, VEC_BYTES,
};

/// Frames and bodies: what is made, opened, cut, waits as feedback, and is a symbol that is made or
/// delivered. A buffer that has grown by and by may have room for as much again.
const BUFFERS: usize = 4 * 2 * FRAME_LEN_MAX;
/// Secrets under which a session is opened: the present one, and those before and behind it.
const SECRETS: usize = 3;
/// Sessions: the own one, and of a peer the accepted one and those that wait.
const SESSIONS: usize = size_of::<ReplayWindow>()
    + (2 + PENDING_SESSIONS_MAX) * SECRETS * (size_of::<SessionKey>() + 64);
/// Lists: of peers' chunks in parts, and of events.
const LISTS: usize =
    Parts::PEER_BYTES * PEERS_MAX.next_power_of_two() + EVENTS_MAX * size_of::<Event>();
/// What is one structure, in this station and its role, with the boxes in them.
const STRUCTURES: usize = 4 * (size_of::<Station>() + size_of::<Shared>());

const SUM: usize = FairQueue::BYTES
    + OrderByNeed::BYTES_MAX
    + 2 * Contexts::BYTES_MAX
    + REMEMBERED_BYTES
    + BUFFERS
    + SESSIONS
    + LISTS
    + STRUCTURES;

/// Of a station without windows, of whose peers parts are not counted with these.
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
