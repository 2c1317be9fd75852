//! Every bound of the protocol, named, in one place. What a specification fixes is said so; the
//! rest is our own tuning.

use core::time::Duration;

/// Blocks an encoder may have unacknowledged at once (the paper: 1).
pub const BLOCKS_IN_FLIGHT_MAX: u16 = 16;
/// Most of a ceiling on repair, as a share of what is carried: what nine in ten lost frames take.
pub const MAX_OVERHEAD_MAX: f64 = 10.0;
/// Finished blocks whose outcome a decoder remembers, to answer late frames.
pub const FINISHED_BLOCKS_MAX: usize = 2 * BLOCKS_IN_FLIGHT_MAX as usize;
/// Blocks a helper keeps per flow; the oldest goes first.
pub const HELPER_BLOCKS_MAX: usize = 16;
/// Frames of a block, of the encoder and of its own each, whose fate a helper keeps in mind.
pub const HELPER_IN_FLIGHT_MAX: usize = 256;
/// Blocks listed in one acknowledgement: all that can be in flight, and as many just given up.
pub const ACK_BLOCKS_MAX: usize = 2 * BLOCKS_IN_FLIGHT_MAX as usize;
/// Transmissions of a block whose fate an encoder keeps in mind; the oldest is forgotten first.
pub const SENT_LOG_MAX: usize = 4_096;
/// The same of a window's lane that has fewer symbols than the longest: so many of each symbol, and
/// [`SENT_LOG_MIN`] at least.
pub const SENT_LOG_PER_SYMBOL: usize = SENT_LOG_MAX / corridor_codec::MAX_WINDOW_SIZE;
/// See [`SENT_LOG_PER_SYMBOL`].
pub const SENT_LOG_MIN: usize = 512;
/// Frames whose fate is kept in mind of a lane of so many symbols.
pub(crate) fn sent_log_max(lane_size: usize) -> usize {
    (lane_size * SENT_LOG_PER_SYMBOL).clamp(SENT_LOG_MIN, SENT_LOG_MAX)
}
/// Packets an ingress queue may be told to hold.
pub const INGRESS_PACKETS_MAX: usize = 65_536;
/// Packets that it holds at most for each lane of a window: flows that waited for repair send all
/// they may at once, which on a long path is a long window.
pub const INGRESS_PACKETS_LANE: usize = 1_000;
/// How old packets may be that have waited for a session when there is one: a resolver asks again
/// after 5 s (resolv.conf(5)), TCP has sent its SYN two more times by then (RFC 6298, Section 2.1),
/// and a host that looks for a neighbour keeps packets for it for 3 s.
pub const INGRESS_AGE_MAX: Duration = Duration::from_secs(5);
/// Queues of a fair ingress queue: flows beyond so many share some.
pub const INGRESS_FLOWS: usize = 256;
/// Bytes that a flow may send in its turn (RFC 8290: the MTU).
pub const INGRESS_QUANTUM: i64 = 1_514;
/// How long a packet of a flow that heeds neither drops nor marks may stay in a fair ingress queue.
pub const INGRESS_STAY_MAX: Duration = Duration::from_millis(150);
/// How long a datagram that goes in order may stay where the queue stands, and is no burst that a
/// repair has let go: it may be held at the other end besides.
pub const ORDER_STAY_MAX: Duration = Duration::from_millis(100);
/// The same in packets of a flow, where these leave seldom.
pub const INGRESS_STAY_PACKETS: f64 = 3.0;
/// Acknowledgements of TCP that wait for each other where both directions share the channel.
pub const INGRESS_HELD_MAX: usize = 16;
/// Flows of UDP of which it is known whether they need order: sets by their hash, and places in a
/// set; the one that was silent longest makes room.
pub const ORDER_SETS: usize = 128;
/// See [`ORDER_SETS`].
pub const ORDER_FLOWS_PER_SET: usize = 4;
/// How long a datagram that goes in order waits at most for those before it, in round trips with
/// their margin (RFC 6298): what is repaired comes after one, what is repaired twice after two.
pub const ORDER_HOLD_ROUND_TRIPS: u32 = 2;
/// How much longer: QUIC waits for an acknowledgement for as long as its peer may hold that back,
/// beyond a round trip with its margin (RFC 9002, Section 6.2.1).
pub const ORDER_HOLD_MARGIN: Duration = Duration::from_millis(25);
/// How long it waits where no round trip is known: QUIC's own guess is a third of a second.
pub const ORDER_HOLD_UNMEASURED: Duration = Duration::from_millis(250);
/// Share of the rate that may go to copies ahead of need, of short symbols of real-time and sparse
/// flows.
pub const AHEAD_RATE_SHARE: f64 = 0.02;
/// How long that share may be saved up.
pub const AHEAD_BURST: Duration = Duration::from_millis(250);
/// Symbols of which such a copy is still to go.
pub const AHEAD_SYMBOLS_MAX: usize = 32;
/// Connections of TCP whose windows may be clamped, where there is memory for so many; and those of
/// a set of them by their hash.
pub const CLAMPS_MAX: usize = 1_024;
/// See [`CLAMPS_MAX`].
pub const CLAMPS_PER_SET: usize = 4;
/// TCP/NC: segments of a coding buffer at most: half of the receiver's window, so that segments
/// acknowledged and not yet decoded have as much room as those that are not acknowledged.
pub const TCP_NC_SEGMENTS_MAX: u16 = (corridor_codec::MAX_WINDOW_SIZE / 2) as u16;
/// TCP/NC: transmissions whose fate an adaptive sender keeps in mind; the oldest is taken for lost.
pub const TCP_NC_IN_FLIGHT_MAX: usize = 4_096;
/// TCP/NC: most connections at once; others pass uncoded.
pub const TCP_NC_CONNECTIONS_MAX: usize = 32;
/// Buffers that are kept for packets to the host: more than the packets that a driver's batch of
/// frames releases.
pub const EGRESS_SPARE_MAX: usize = 256;
/// Places for such packets that an empty queue keeps.
pub const EGRESS_PLACES_KEPT: usize = 1_024;
/// Events waiting to be taken by the driver; the oldest is dropped.
pub const EVENTS_MAX: usize = 64;
/// Stations in a group: an endpoint, its peer and a helper, or the neighbours of a relay.
pub const PEERS_MAX: usize = 8;
/// Neighbours of a relay: its HELLO has room for the session that it accepts of each, and for
/// another one that knocks, as when the neighbour has restarted. Where frames are shorter than 509
/// bytes they take turns.
pub const RELAY_NEIGHBOURS_MAX: usize = PEERS_MAX / 2;
/// Neighbours of a hub. Each has queues, windows and a session of its own, within the bounds that
/// hold for one pair of stations, and within its share of [`MEMORY_DEFAULT`].
pub const HUB_NEIGHBOURS_MAX: usize = 256;
/// Bytes that a node may hold of what its peers and its host send, where nobody says how many:
/// ingress queues, and windows, blocks or TCP/NC's buffers. A pair in window mode with frames of
/// 1500 bytes takes 209 million at most.
pub const MEMORY_DEFAULT: usize = 256_000_000;
/// Of those, what is kept free for each peer, for what a station holds in any case beside queue and
/// windows: what it knows of flows and of the path, and buffers of frames. `station/beside.rs` has
/// the sum.
pub const MEMORY_BESIDE: usize = 384_000;
/// Packets that the queue to a peer has room for at least, if that many are configured.
pub const MEMORY_QUEUE_PACKETS_MIN: usize = 32;
/// Blocks that a decoder holds at least: the one that is delivered next always has its place, and
/// another one shows that it is lacking.
pub const MEMORY_DECODER_BLOCKS_MIN: usize = 2;
/// TCP/NC: segments that a coding buffer has room for at least; longer ones are multiples of it.
pub const MEMORY_TCP_NC_SEGMENTS_MIN: u16 = 8;
/// Symbols that a window has room for at least, each way, if that many are configured.
pub const MEMORY_WINDOW_SYMBOLS_MIN: usize = 32;
/// Networks in a hub's table.
pub const HUB_NETWORKS_MAX: usize = 16_384;
/// Messages for a hub's or relay's own host that wait for the driver; further ones are not made.
pub const HUB_MESSAGES_MAX: usize = 16;
/// Bytes that a neighbour of a hub may send in its turn: a full frame of Ethernet.
pub const HUB_QUANTUM: i64 = 1_514;
/// How long the underlay counts as full after it had no room for a hub's next frame.
pub const HUB_CROWDED: Duration = Duration::from_millis(50);
/// What a neighbour may send of packets that a hub forwards, before these leave: what leaves in so
/// long, and in so many round trips to the neighbour, for what is lost is reported after one, comes
/// once more after two, and may be lost again.
pub const CREDIT_QUEUE: Duration = Duration::from_millis(10);
/// See [`CREDIT_QUEUE`].
pub const CREDIT_ROUND_TRIPS: u32 = 3;
/// The same in packets at least: of a rate that is not known yet, a queue shows what it can be.
pub const CREDIT_PACKETS_MIN: usize = 16;
/// Packets that a symbol is taken to bring, where they are so short that it brings several: the
/// queue that they go to has room for so many.
pub const CREDIT_SYMBOL_PACKETS: usize = 4;
/// How long a neighbour of a hub counts as one that sends to another.
pub const CREDIT_MEMORY: Duration = Duration::from_secs(1);
/// A queue of a hub that nothing has left for so long holds nobody back any more: who it is for is
/// slow or gone, and others are not to wait for them.
pub const CREDIT_STUCK: Duration = Duration::from_millis(250);
/// Chunks of a frame: about twice as many as a station has to say at once, so that a frame of a
/// station that means ill costs no more than a few.
pub const CHUNKS_MAX: usize = 8;
/// Chunks of a peer of which parts have come, and that are kept: as many as losses and reordering
/// leave open at once, where the parts of each go one behind the other.
pub const PARTS_WHOLES_MAX: usize = 8;
/// Parts of a chunk: those of the longest in the shortest frames, and some.
pub const PARTS_MAX: usize = 48;
/// Sessions of one station that wait to answer a challenge.
pub const PENDING_SESSIONS_MAX: usize = 4;
/// Sessions an [`Unsealer`](crate::Unsealer) remembers; what greeted longest ago goes first.
pub const UNSEALER_SESSIONS_MAX: usize = 64;
/// A session that has not answered its challenge is forgotten when it was not heard for so long: a
/// recording of a dead one must not keep two stations greeting each other for ever.
pub const PENDING_SESSION_AGE_MAX: Duration = Duration::from_secs(5);
/// Frames behind the newest that the replay window still accepts: those of the longest window that
/// a path can reorder.
pub const REPLAY_WINDOW: u32 = WINDOW_SYMBOLS_MAX as u32;
/// Keys of one's own: how long two stations use a secret before they agree on the next (WireGuard's
/// REKEY_AFTER_TIME).
pub const REKEY_AFTER_TIME: Duration = Duration::from_secs(120);
/// How much longer the one waits who did not begin the last time: KEEPALIVE_TIMEOUT and
/// REKEY_TIMEOUT of WireGuard.
pub const REKEY_WAIT: Duration = Duration::from_secs(15);
/// Frames that a station seals under a secret before it wants the next: the limit for AES-128-GCM
/// (RFC 9001, Section 6.6).
pub const REKEY_AFTER_FRAMES: u32 = 1 << 23;
/// How long a secret is used at most (WireGuard's REJECT_AFTER_TIME).
pub const REJECT_AFTER_TIME: Duration = Duration::from_secs(180);
/// How long frames under the secret before are still opened, when the peer has used the new one.
pub const FORMER_SECRET_AGE_MAX: Duration = Duration::from_secs(3);
/// For how many of its HELLOs a peer may be silent before a new secret is looked for: it may have
/// restarted, and wait for this station to call. Usually that is [`REKEY_WAIT`].
pub const REKEY_SILENCE_HELLOS: u32 = 3;
/// How often a neighbour is asked for the secrets that it seals under because frames in its name do
/// not open, which anybody can send.
pub const SECRETS_ASKED_INTERVAL: Duration = Duration::from_secs(1);
/// How long an initiation is repeated before another takes its place (WireGuard's REKEY_TIMEOUT).
pub const INITIATION_AGE_MAX: Duration = Duration::from_secs(5);
/// How long a response is repeated after the initiation was last heard.
pub const RESPONSE_AGE_MAX: Duration = HELLO_TALKING;
/// How long the station whose key exchange counts, of two that crossed, waits for the other one to
/// use its secret.
pub const KEY_EXCHANGE_CROSSING_MAX: Duration = Duration::from_secs(2);
/// Messages of key exchanges that a station computes Diffie-Hellman for, for each peer: at once,
/// and on average per second (WireGuard's for an address: 20 a second).
pub const KEY_EXCHANGES_PER_SECOND: u32 = 20;
/// Messages of either step that are looked into of one source, on average per second: half of a
/// peer's, so that no single source takes all of them.
pub const SOURCE_MESSAGES_PER_SECOND: u32 = KEY_EXCHANGES_PER_SECOND / 2;
/// The same at once: the initiations of a station that begins are 10 in its first second.
pub const SOURCE_MESSAGES_BURST: u32 = 2 * SOURCE_MESSAGES_PER_SECOND;
/// Sources of key exchanges and HELLOs of unknown sessions that are told apart, of either. Where as
/// many have used of their budgets just now, no other is looked into: that is the bound of all.
pub const SOURCES_MAX: usize = 64;
/// What a network may send whose sources are heard from, in budgets of a source: a site has a
/// network of 48 bits of IPv6, and so 65,536 sources.
pub const NETWORK_SOURCES: u32 = 4;
/// Messages that a cookie may answer which a station keeps in mind: of a second, where it says
/// HELLO as often as behind losses ([`HELLO_INTERVAL_TALKING_MAX`]).
pub const COOKIES_ASKED_MAX: usize = 32;
/// Time between two cookies that let a station say at once what it has to say again.
pub const COOKIE_HURRY_INTERVAL: Duration = Duration::from_secs(1);
/// HELLOs of unknown sessions that are looked into, at once and on average per second, whose
/// addresses have not shown that they are heard from: 50 greet as often while a handshake is under
/// way ([`HELLO_INTERVAL_FAST`]).
pub const UNPROVEN_HELLOS_PER_SECOND: u32 = 100;
/// The same of initiations: half of a peer's, so that those who have shown it have the rest.
pub const UNPROVEN_INITIATIONS_PER_SECOND: u32 = KEY_EXCHANGES_PER_SECOND / 2;
/// How long a station makes the same cookies; those of the time before are taken as well
/// (WireGuard's COOKIE_SECRET_MAX_AGE).
pub const COOKIE_KEY_AGE_MAX: Duration = Duration::from_secs(120);
/// Shortest HELLO or initiation to a peer that is called, where any receiver may answer with no
/// more bytes than came: four answers of one entry, since at 90 % loss one answer in ten arrives.
pub const HELLO_OUTREACH_LEN: usize = 472;
/// The same at any other time, of who looks for a peer: one answer of one entry.
pub const HELLO_SEEKING_LEN: usize = HELLO_OUTREACH_LEN / 4;
/// Largest interval between what looks for a peer then: 25 a second.
pub const HELLO_INTERVAL_OUTREACH: Duration = Duration::from_millis(40);
/// How long that goes so often and is so long.
pub const HELLO_OUTREACH: Duration = Duration::from_secs(10);
/// Frames a session seals before a new one takes over; below 2^32, so that no nonce repeats.
pub const SESSION_FRAMES_MAX: u32 = u32::MAX - (1 << 20);
/// Addresses from which a peer has spoken and that are asked whether it is there; what was quiet
/// for longest goes first.
pub const CHALLENGED_ADDRESSES_MAX: usize = 2;
/// How often such an address is asked.
pub const CHALLENGE_INTERVAL: Duration = HELLO_INTERVAL_TALKING_MAX;
/// Challenges that what else goes to such an address leaves room for: of a peer with nothing to
/// send a HELLO comes every 5 seconds, and allows for so many.
pub const CHALLENGES_KEPT: usize = 3;
/// How long after a fresh frame from there.
pub const CHALLENGE_AGE_MAX: Duration = HELLO_TALKING;
/// Longest pause before addresses are asked again, after the peer has answered from where it was
/// taken to be: who was heard once meanwhile is asked still.
pub const CHALLENGE_PAUSE_MAX: Duration = CHALLENGE_AGE_MAX.checked_div(2).unwrap();
/// How long a peer that answers from another address must not have answered from the one before,
/// at least: eight challenges. Where a third of them come to nothing, all do once in 6,561 times.
pub const MOVE_WAIT_MIN: Duration = Duration::from_millis(240);
/// How long ago the last frame of its session may have come from where a peer is, where others
/// hear what goes to all: as long as it takes until a peer counts as silent. Beyond that frames for
/// it go to all.
pub const PLACE_ALONE_AGE_MAX: Duration =
    Duration::from_secs(PEER_SILENT_HELLOS as u64 * HELLO_INTERVAL_SLOW.as_secs());
/// Challenges that wait to be answered; the oldest is forgotten first.
pub const PATH_ANSWERS_MAX: usize = 4;
/// Times that a station says goodbye, unless its peers have heard it before.
pub const GOODBYES_MAX: u8 = 3;
/// Time between two of them.
pub const GOODBYE_INTERVAL: Duration = Duration::from_millis(100);
/// Shortest bound a source symbol may have; no frame is padded beyond it.
pub const SYMBOL_SIZE_MIN: usize = 64;
/// Longest frame any underlay is allowed to carry.
pub const FRAME_LEN_MAX: usize = 9_216;
/// Shortest frame that an interface is asked to carry, whatever it says of its MTU.
pub const FRAME_LEN_MIN: usize = 256;

/// Interval between two handshake frames when the search for a peer begins; an answer to one may
/// come after a quarter of it.
pub const HELLO_INTERVAL_FAST: Duration = Duration::from_millis(20);
/// Time between two handshake frames once all peers answered.
pub const HELLO_INTERVAL_SLOW: Duration = Duration::from_secs(5);
/// Largest interval while a handshake is under way: it takes five frames in turn, and each may
/// get lost.
pub const HELLO_INTERVAL_TALKING_MAX: Duration = Duration::from_millis(30);
/// How long after a sign of life a handshake counts as under way.
pub const HELLO_TALKING: Duration = Duration::from_secs(2);
/// Largest interval the search for a missing peer backs off to.
pub const HELLO_INTERVAL_SEARCH_MAX: Duration = Duration::from_millis(250);
/// Shortest and longest time between two HELLOs that a peer may say of itself.
pub const HELLO_INTERVAL_TOLD_MIN: Duration = Duration::from_secs(1);
/// See [`HELLO_INTERVAL_TOLD_MIN`].
pub const HELLO_INTERVAL_TOLD_MAX: Duration = Duration::from_secs(60);
/// A peer unheard for so many of its HELLOs is told to its neighbours as gone.
pub const PEER_SILENT_HELLOS: u32 = 4;
/// Longest that feedback may wait, and longest that a peer may say that its does.
pub const FEEDBACK_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Time between two reports of a helper.
pub const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// How long a helper waits at least for further symbols before it sends what it holds back for
/// them; at most it waits for half of the encoder's timeout.
pub const HELPER_SILENCE_MIN: Duration = Duration::from_millis(5);
/// Silence, in usual intervals between two symbols overheard, that ends the wait.
pub const HELPER_SILENCE_INTERVALS: u32 = 3;
/// Weight of the newest interval among the usual ones, one part in so many.
pub const HELPER_INTERVAL_PARTS: u32 = 8;
/// Least time between two acknowledgements that complete a block.
pub const ACK_INTERVAL_MIN: Duration = Duration::from_millis(2);
/// A helper that has not reported for so many of its intervals is not counted on.
pub const REPORT_STALE_INTERVALS: u32 = 10;
/// A helper that has not heard an encoder for so many of its HELLOs, and [`HELLO_TALKING`], takes
/// the link from it for broken. An encoder with nothing to send still says HELLO.
pub const E1_STALE_HELLOS: u32 = 2;
/// How far a paced sender may run ahead after a pause.
pub const PACE_BURST: Duration = Duration::from_millis(2);
/// How long frames that are not held back, as feedback, may hold back others, however many of them
/// go on.
pub const PACE_DEBT_MAX: Duration = Duration::from_millis(200);
/// Window mode: shortest and longest wait for feedback before what is on its way counts as lost.
pub const WINDOW_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// See [`WINDOW_TIMEOUT_MIN`].
pub const WINDOW_TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// Window mode: longest that a sender keeps a symbol which nobody acknowledges.
pub const WINDOW_SILENCE_MAX: Duration = Duration::from_secs(60);
/// Window mode: symbols of the longest window, in as many lanes as there can be.
pub const WINDOW_SYMBOLS_MAX: usize = 16 * corridor_codec::MAX_WINDOW_SIZE;
/// Window mode: times that symbols may be dealt to other lanes while those before drain, at either
/// end: what is held is the lanes of so many.
pub const WINDOW_STRETCHES_MAX: usize = 2;
/// Window mode: frames whose fate a sender keeps in mind, of the link; the oldest is forgotten
/// first. Of a lane, [`SENT_LOG_MAX`].
pub const WINDOW_SENT_LOG_MAX: usize = 2 * WINDOW_SYMBOLS_MAX;
/// Window mode: round trips that a deadline takes at least. After an outage feedback reports the
/// loss in one, what was lost is sent again in as many as it is long, three, arrives in one, and
/// some of it gets lost again.
pub const WINDOW_DEADLINE_ROUND_TRIPS: u32 = 8;
/// The longest of them.
pub const WINDOW_DEADLINE_ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// Window mode: frames of a burst of losses that is waited for: of 50 in the mean, 19 of 20 are
/// shorter. On slow paths they take seconds.
pub const WINDOW_BURST_FRAMES: u32 = 150;
/// The longest that such a burst is waited for; a sender keeps its symbols twice as long.
pub const WINDOW_BURST_MAX: Duration = Duration::from_secs(30);
/// How long a burst of losses may last where a frame takes so long. It is counted in frames: on a
/// slow path it takes long, and ends the sooner the more are sent.
pub(crate) fn burst_time(frame: Duration) -> Duration {
    frame.saturating_mul(WINDOW_BURST_FRAMES).min(WINDOW_BURST_MAX)
}
/// Window mode: how long a window has to have been longer than needed before it gets fewer lanes.
pub const WINDOW_NARROW_AFTER: Duration = Duration::from_secs(10);
/// Window mode: times of arrival that a receiver remembers, one for each symbol of the longest
/// window. What is known of one lane tells of the others' beginning but for a symbol of each.
pub const WINDOW_GAPS_MAX: usize = WINDOW_SYMBOLS_MAX + 16;
/// Window mode: least time between two acknowledgements.
pub const WINDOW_ACK_INTERVAL_MIN: Duration = Duration::from_micros(500);
/// Window mode: delays that a rate controller remembers for their minimum.
pub const WINDOW_DELAYS_MAX: usize = 1_024;
/// Path MTU: lengths tried in one round, beside the one that is known to pass.
pub const MTU_CANDIDATES_MAX: usize = 3;
/// Path MTU: rounds whose echoes may still come.
pub const MTU_ROUNDS_KEPT: usize = 8;
/// Path MTU: probes that wait to be echoed; the oldest is forgotten first.
pub const MTU_ECHOES_MAX: usize = 8;
/// Path MTU: shortest and longest time of a round.
pub const MTU_ROUND_MIN: Duration = Duration::from_millis(10);
/// See [`MTU_ROUND_MIN`].
pub const MTU_ROUND_MAX: Duration = Duration::from_secs(30);
/// Path MTU: how often the length in use is confirmed.
pub const MTU_CONFIRM_INTERVAL: Duration = Duration::from_secs(15);
/// Path MTU: for how long the length in use has to be missed before it is given up. Meanwhile what
/// is that long goes in parts.
pub const MTU_DOUBT_SPAN: Duration = Duration::from_millis(500);
/// Path MTU: how soon a longer one is looked for after the length in use has become less; twice as
/// long after that again, and so on.
pub const MTU_RAISE_FIRST: Duration = MTU_CONFIRM_INTERVAL;
/// Path MTU: how often a longer one is looked for at last (RFC 8899, Section 5.1.1: 600 s).
pub const MTU_RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// Path MTU: how often a router's word that the path is shorter is looked into.
pub const MTU_HINT_INTERVAL: Duration = Duration::from_secs(1);
/// Least time between two messages to the host that a packet is too long.
pub const TOO_BIG_INTERVAL: Duration = Duration::from_millis(10);

/// A helper whose rows made tags fail is left out for so many of the decoder's deadlines: as it
/// keeps a decoder waiting for one at most when it comes back, that is a hundredth of the time.
pub const LEFT_OUT_DEADLINES: u32 = 100;
/// Longest that it is left out, when it fails each time that it comes back: an operator who has
/// mended it waits no longer for it, unless deadlines are longer than half a minute.
pub const LEFT_OUT_MAX: Duration = Duration::from_secs(3_600);
/// Time between two lines of the log about what somebody forges, and nobody can be named for.
pub const FORGED_TOLD: Duration = Duration::from_secs(60);
/// A wall clock that has gained so much on ours was set, and numbers of packets between ends follow
/// it: packets that are overtaken then are lost. Less is a clock that is being disciplined, by 500
/// ppm at most (RFC 5905): a second of it in half an hour.
pub const CLOCK_STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_last_as_long_as_their_frames_take() {
        assert_eq!(burst_time(Duration::from_millis(20)), Duration::from_secs(3));
        assert_eq!(burst_time(Duration::MAX), WINDOW_BURST_MAX);
    }
}
