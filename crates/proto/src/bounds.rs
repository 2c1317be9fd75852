//! Every bound of the protocol, with a name, in one place. Comments cite a specification if it
//! fixes the value; all other values are our own tuning.

use core::time::Duration;

/// Blocks that an encoder may have unacknowledged at once (the paper: 1).
pub const BLOCKS_IN_FLIGHT_MAX: u16 = 16;
/// Largest ceiling on repair, as a ratio to the payload: enough for a loss ratio of 90 %.
pub const MAX_OVERHEAD_MAX: f64 = 10.0;
/// Blocks that a decoder has given up, or dropped the rows of, and remembers to report this.
pub const EMPTIED_BLOCKS_MAX: usize = 2 * BLOCKS_IN_FLIGHT_MAX as usize;
/// Blocks that a helper keeps per flow; the oldest is dropped first.
pub const HELPER_BLOCKS_MAX: usize = 16;
/// Frames in flight that a helper remembers per block: of the encoder, and of its own.
pub const HELPER_IN_FLIGHT_MAX: usize = 256;
/// Blocks listed in one acknowledgment: all that can be in flight, and as many recently given up.
pub const ACK_BLOCKS_MAX: usize = 2 * BLOCKS_IN_FLIGHT_MAX as usize;
/// Transmissions of a block that an encoder remembers until feedback covers them; the oldest is
/// dropped first.
pub const SENT_LOG_MAX: usize = 4_096;
/// The same for a lane of a window with fewer symbols than the longest: this many per symbol, and
/// at least [`SENT_LOG_MIN`].
pub const SENT_LOG_PER_SYMBOL: usize = SENT_LOG_MAX / corridor_codec::MAX_WINDOW_SIZE;
/// See [`SENT_LOG_PER_SYMBOL`].
pub const SENT_LOG_MIN: usize = 512;
/// Frames in flight that are remembered for a lane of this size.
pub(crate) fn sent_log_max(lane_size: usize) -> usize {
    (lane_size * SENT_LOG_PER_SYMBOL).clamp(SENT_LOG_MIN, SENT_LOG_MAX)
}
/// Largest configurable limit of an ingress queue, in packets.
pub const INGRESS_PACKETS_MAX: usize = 65_536;
/// Packets that it holds at most per lane of a window: flows that waited for repair send everything
/// allowed at once, which on a long path is a long window.
pub const INGRESS_PACKETS_LANE: usize = 1_000;
/// Maximum age of packets that waited for a session, once there is one: a resolver asks again after
/// 5 s (resolv.conf(5)), TCP has repeated its SYN twice by then (RFC 6298, Section 2.1), and a host
/// that resolves a neighbour's address keeps packets for 3 s.
pub const INGRESS_AGE_MAX: Duration = Duration::from_secs(5);
/// Queues in a fair ingress queue: beyond this number, flows share queues.
pub const INGRESS_FLOWS: usize = 256;
/// Bytes that a flow may send in its turn (RFC 8290: the MTU).
pub const INGRESS_QUANTUM: i64 = 1_514;
/// How long a packet of a flow that ignores drops and marks may wait in a fair ingress queue.
pub const INGRESS_STAY_MAX: Duration = Duration::from_millis(150);
/// How long a datagram that is delivered in order may wait in a standing queue, as opposed to a
/// burst that a repair has released: it may have to wait again at the other end.
pub const ORDER_STAY_MAX: Duration = Duration::from_millis(100);
/// The same in packets of a flow, where these leave rarely.
pub const INGRESS_STAY_PACKETS: f64 = 3.0;
/// TCP acknowledgments that are held back for each other on a shared channel.
pub const INGRESS_HELD_MAX: usize = 16;
/// Sets, by hash, of UDP flows tracked for order by need, and flows per set; in a full set the flow
/// that was silent the longest is replaced.
pub const ORDER_SETS: usize = 128;
/// See [`ORDER_SETS`].
pub const ORDER_FLOWS_PER_SET: usize = 4;
/// How long a datagram that is delivered in order waits at most for earlier ones, in round trips
/// including their margin (RFC 6298): a repair arrives after one, a second repair after two.
pub const ORDER_HOLD_ROUND_TRIPS: u32 = 2;
/// And this much longer: QUIC waits for an acknowledgment a round trip with its margin, plus the
/// time for which its peer may delay that (RFC 9002, Section 6.2.1).
pub const ORDER_HOLD_MARGIN: Duration = Duration::from_millis(25);
/// How long it waits if no round-trip time is known: QUIC's initial estimate is a third of a
/// second.
pub const ORDER_HOLD_UNMEASURED: Duration = Duration::from_millis(250);
/// Share of the rate for copies ahead of need, of short symbols of real-time and sparse flows.
pub const AHEAD_RATE_SHARE: f64 = 0.02;
/// How much of that share can be saved up, as a time.
pub const AHEAD_BURST: Duration = Duration::from_millis(250);
/// Symbols that wait for such a copy.
pub const AHEAD_SYMBOLS_MAX: usize = 32;
/// TCP connections whose windows may be clamped, if there is memory for that many; and connections
/// per set, by hash.
pub const CLAMPS_MAX: usize = 1_024;
/// See [`CLAMPS_MAX`].
pub const CLAMPS_PER_SET: usize = 4;
/// TCP/NC: most segments in a coding buffer: half of the receiver's window, so that segments
/// acknowledged and not yet decoded have as much room as unacknowledged ones.
pub const TCP_NC_SEGMENTS_MAX: u16 = (corridor_codec::MAX_WINDOW_SIZE / 2) as u16;
/// TCP/NC: transmissions that an adaptive sender remembers until feedback covers them; the oldest
/// counts as lost.
pub const TCP_NC_IN_FLIGHT_MAX: usize = 4_096;
/// TCP/NC: most connections at once; others pass uncoded.
pub const TCP_NC_CONNECTIONS_MAX: usize = 32;
/// Buffers kept for packets to the host: more than the packets that a driver's batch of frames
/// releases.
pub const EGRESS_SPARE_MAX: usize = 256;
/// Places for such packets that an empty queue keeps.
pub const EGRESS_PLACES_KEPT: usize = 1_024;
/// Events that wait for the driver; the oldest is dropped.
pub const EVENTS_MAX: usize = 64;
/// Stations in a group: an endpoint, its peer and a helper, or the neighbours of a relay.
pub const PEERS_MAX: usize = 8;
/// Neighbours of a relay: its HELLO has room for the accepted session of each, and for one pending
/// session of each, as after a restart. Where frames are shorter than 509 bytes, these take turns.
pub const RELAY_NEIGHBOURS_MAX: usize = PEERS_MAX / 2;
/// Neighbours of a hub. Each has queues, windows and a session of its own, within the bounds for a
/// pair of stations and within its share of [`MEMORY_DEFAULT`].
pub const HUB_NEIGHBOURS_MAX: usize = 256;
/// Default limit in bytes for what a node holds of its peers' and its host's data: ingress queues,
/// and windows, blocks or TCP/NC's buffers. A pair in window mode with frames of 1500 bytes takes
/// at most 209 million.
pub const MEMORY_DEFAULT: usize = 256_000_000;
/// The part of it reserved per peer for what a station holds besides its queue and windows: what it
/// knows about flows and the path, and frame buffers. `station/beside.rs` has the sum.
pub const MEMORY_BESIDE: usize = 408_000;
/// Packets that the queue to a peer has at least room for, if that many are configured.
pub const MEMORY_QUEUE_PACKETS_MIN: usize = 32;
/// Blocks that a decoder holds at least: the one to be delivered next always has its place, and a
/// second one shows that the first is missing symbols.
pub const MEMORY_DECODER_BLOCKS_MIN: usize = 2;
/// TCP/NC: segments that a coding buffer has at least room for; larger buffers are multiples of it.
pub const MEMORY_TCP_NC_SEGMENTS_MIN: u16 = 8;
/// Symbols that a window has at least room for in each direction, if that many are configured.
pub const MEMORY_WINDOW_SYMBOLS_MIN: usize = 32;
/// Networks in a hub's table.
pub const HUB_NETWORKS_MAX: usize = 16_384;
/// Messages for a hub's or relay's own host that wait for the driver; further ones are not written.
pub const HUB_MESSAGES_MAX: usize = 16;
/// Bytes that a neighbour of a hub may send in its turn: a full Ethernet frame.
pub const HUB_QUANTUM: i64 = 1_514;
/// How long the underlay counts as full after it had no room for a hub's next frame.
pub const HUB_CROWDED: Duration = Duration::from_millis(50);
/// Credit: what a neighbour may send ahead of what leaves a hub's queue. As much as leaves in this
/// time and in this many round trips to the neighbour, since a loss is reported after one, repaired
/// after two, and the repair may be lost again.
pub const CREDIT_QUEUE: Duration = Duration::from_millis(10);
/// See [`CREDIT_QUEUE`].
pub const CREDIT_ROUND_TRIPS: u32 = 3;
/// The minimum credit in packets: while the rate is unknown, the queue has to show it.
pub const CREDIT_PACKETS_MIN: usize = 16;
/// Packets that a symbol is assumed to contain if they are so short that it contains several: the
/// queue reserves room for this many.
pub const CREDIT_SYMBOL_PACKETS: usize = 4;
/// How long a neighbour of a hub counts as one that sends to another.
pub const CREDIT_MEMORY: Duration = Duration::from_secs(1);
/// A hub's queue that nothing has left for this long holds nobody back: its receiver is slow or
/// gone, and others must not wait for it.
pub const CREDIT_STUCK: Duration = Duration::from_millis(250);
/// Chunks in a frame: about twice as many as a station ever has to send at once, so that a
/// malicious station's frame costs no more than a few.
pub const CHUNKS_MAX: usize = 8;
/// Incomplete chunks kept per peer: as many as losses and reordering leave open at once, if the
/// parts of each are sent in sequence.
pub const PARTS_WHOLES_MAX: usize = 8;
/// Parts of a chunk: those of the longest chunk in the shortest frames, with some margin.
pub const PARTS_MAX: usize = 48;
/// Sessions of one station that have not yet answered a challenge.
pub const PENDING_SESSIONS_MAX: usize = 4;
/// Sessions that an [`Unsealer`](crate::Unsealer) remembers; the least recently used is dropped
/// first.
pub const UNSEALER_SESSIONS_MAX: usize = 64;
/// A session that has not answered its challenge is forgotten after this silence: a replay of an
/// old session must not keep two stations exchanging HELLOs forever.
pub const PENDING_SESSION_AGE_MAX: Duration = Duration::from_secs(5);
/// Frames behind the newest that the replay window still accepts: those of the longest window that
/// a path can reorder.
pub const REPLAY_WINDOW: u32 = WINDOW_SYMBOLS_MAX as u32;
/// Key pairs: how long two stations use a secret before they agree on the next (WireGuard's
/// REKEY_AFTER_TIME).
pub const REKEY_AFTER_TIME: Duration = Duration::from_secs(120);
/// How much longer the previous responder waits before it initiates: WireGuard's KEEPALIVE_TIMEOUT
/// plus REKEY_TIMEOUT.
pub const REKEY_WAIT: Duration = Duration::from_secs(15);
/// Frames that a station seals under a secret before it requests the next: the limit for
/// AES-128-GCM (RFC 9001, Section 6.6).
pub const REKEY_AFTER_FRAMES: u32 = 1 << 23;
/// Maximum time of use of a secret (WireGuard's REJECT_AFTER_TIME).
pub const REJECT_AFTER_TIME: Duration = Duration::from_secs(180);
/// How long frames under the previous secret are still opened once the peer has used the new one.
pub const FORMER_SECRET_AGE_MAX: Duration = Duration::from_secs(3);
/// For how many of its HELLOs a peer may be silent before a new secret is sought: it may have
/// restarted, and wait for this station's initiation. Usually this equals [`REKEY_WAIT`].
pub const REKEY_SILENCE_HELLOS: u32 = 3;
/// Least time between requests for a neighbour's secrets because frames in its name do not open,
/// which anybody can send.
pub const SECRETS_ASKED_INTERVAL: Duration = Duration::from_secs(1);
/// How long an initiation is repeated before another replaces it (WireGuard's REKEY_TIMEOUT).
pub const INITIATION_AGE_MAX: Duration = Duration::from_secs(5);
/// How long a response is repeated after the initiation was last heard.
pub const RESPONSE_AGE_MAX: Duration = HELLO_TALKING;
/// When two key exchanges have crossed, how long the station whose exchange counts waits for the
/// other one to use its secret.
pub const KEY_EXCHANGE_CROSSING_MAX: Duration = Duration::from_secs(2);
/// Key exchange messages per peer for which a station computes a Diffie-Hellman: as a burst, and
/// per second on average (WireGuard's limit per address: 20 per second).
pub const KEY_EXCHANGES_PER_SECOND: u32 = 20;
/// Messages of either step examined per source and second on average: half of a peer's limit, so
/// that no single source uses up all of it.
pub const SOURCE_MESSAGES_PER_SECOND: u32 = KEY_EXCHANGES_PER_SECOND / 2;
/// The same as a burst: a station that starts sends 10 initiations in its first second.
pub const SOURCE_MESSAGES_BURST: u32 = 2 * SOURCE_MESSAGES_PER_SECOND;
/// Sources of key exchanges, and of HELLOs of unknown sessions, that are distinguished. If all of
/// them have recently used up some of their budgets, no other is examined, which bounds the total.
pub const SOURCES_MAX: usize = 64;
/// Limit for a network of sources that have proved their addresses, in budgets of a source: a site
/// has an IPv6 network of 48 bits, and so 65,536 sources.
pub const NETWORK_SOURCES: u32 = 4;
/// Recent messages that a cookie may answer and that a station remembers: those of a second, if it
/// sends HELLOs at [`HELLO_INTERVAL_TALKING_MAX`].
pub const COOKIES_ASKED_MAX: usize = 32;
/// Time between two cookies that make a station repeat its message at once.
pub const COOKIE_HURRY_INTERVAL: Duration = Duration::from_secs(1);
/// HELLOs of unknown sessions from unproven addresses that are examined, as a burst and per second
/// on average: 50 stations send this many while a handshake is in progress
/// ([`HELLO_INTERVAL_FAST`]).
pub const UNPROVEN_HELLOS_PER_SECOND: u32 = 100;
/// The same for initiations: half of a peer's limit; the rest is for proven addresses.
pub const UNPROVEN_INITIATIONS_PER_SECOND: u32 = KEY_EXCHANGES_PER_SECOND / 2;
/// How long a cookie key is used; the previous one is accepted too (WireGuard's
/// COOKIE_SECRET_MAX_AGE).
pub const COOKIE_KEY_AGE_MAX: Duration = Duration::from_secs(120);
/// Shortest HELLO or initiation to a peer that is called, where any receiver may answer with no
/// more bytes than it received: four answers with one entry, because at 90 % loss one answer in ten
/// arrives.
pub const HELLO_OUTREACH_LEN: usize = 472;
/// The same later on, while a peer is looked for: one answer with one entry.
pub const HELLO_SEEKING_LEN: usize = HELLO_OUTREACH_LEN / 4;
/// Longest interval between such frames: 25 per second.
pub const HELLO_INTERVAL_OUTREACH: Duration = Duration::from_millis(40);
/// How long they are sent this often and are this long.
pub const HELLO_OUTREACH: Duration = Duration::from_secs(10);
/// Frames that a session seals before a new one replaces it; below 2^32, so that no nonce repeats.
pub const SESSION_FRAMES_MAX: u32 = u32::MAX - (1 << 20);
/// Addresses of a peer that are being challenged; the least recently heard is dropped first.
pub const CHALLENGED_ADDRESSES_MAX: usize = 2;
/// Interval of challenges to such an address.
pub const CHALLENGE_INTERVAL: Duration = HELLO_INTERVAL_TALKING_MAX;
/// Challenges for which other frames to such an address leave room: a peer with nothing to send
/// only sends a HELLO every 5 seconds, which allows for this many.
pub const CHALLENGES_KEPT: usize = 3;
/// How long after the last fresh frame from there an address is challenged.
pub const CHALLENGE_AGE_MAX: Duration = HELLO_TALKING;
/// Longest pause before other addresses are challenged again after the peer has answered from its
/// present one: short enough that an address heard once meanwhile is still challenged.
pub const CHALLENGE_PAUSE_MAX: Duration = CHALLENGE_AGE_MAX.checked_div(2).unwrap();
/// How long a peer that answers from another address must at least have failed to answer from its
/// present one: eight challenges. If a third of them fail, all of them do once in 6,561 times.
pub const MOVE_WAIT_MIN: Duration = Duration::from_millis(240);
/// How long ago the last frame of its session may have come from a peer's address, where others
/// hear what is sent to all: as long as it takes until a peer counts as silent. After that, frames
/// for it are sent to all.
pub const PLACE_ALONE_AGE_MAX: Duration =
    Duration::from_secs(PEER_SILENT_HELLOS as u64 * HELLO_INTERVAL_SLOW.as_secs());
/// Challenges that wait to be answered; the oldest is dropped first.
pub const PATH_ANSWERS_MAX: usize = 4;
/// How often a station says goodbye, unless its peers confirm it earlier.
pub const GOODBYES_MAX: u8 = 3;
/// Time between two of them.
pub const GOODBYE_INTERVAL: Duration = Duration::from_millis(100);
/// Smallest configurable limit of source symbols; no frame is padded beyond it.
pub const SYMBOL_SIZE_MIN: usize = 64;
/// Longest frame that any underlay may carry.
pub const FRAME_LEN_MAX: usize = 9_216;
/// Shortest frame limit assumed of an interface, whatever its MTU.
pub const FRAME_LEN_MIN: usize = 256;

/// Interval between handshake frames when the search for a peer begins; an answer may come after a
/// quarter of it.
pub const HELLO_INTERVAL_FAST: Duration = Duration::from_millis(20);
/// Interval between handshake frames once all peers have answered.
pub const HELLO_INTERVAL_SLOW: Duration = Duration::from_secs(5);
/// Longest interval while a handshake is in progress: a handshake takes five frames in turn, each
/// of which may be lost.
pub const HELLO_INTERVAL_TALKING_MAX: Duration = Duration::from_millis(30);
/// How long after a sign of life a handshake counts as in progress.
pub const HELLO_TALKING: Duration = Duration::from_secs(2);
/// Longest interval that the search for a missing peer backs off to.
pub const HELLO_INTERVAL_SEARCH_MAX: Duration = Duration::from_millis(250);
/// Shortest and longest interval between HELLOs that a peer may announce.
pub const HELLO_INTERVAL_TOLD_MIN: Duration = Duration::from_secs(1);
/// See [`HELLO_INTERVAL_TOLD_MIN`].
pub const HELLO_INTERVAL_TOLD_MAX: Duration = Duration::from_secs(60);
/// A peer that is not heard for this many of its HELLOs is reported as gone.
pub const PEER_SILENT_HELLOS: u32 = 4;
/// Longest time that feedback may wait, and that a peer may announce for its feedback.
pub const FEEDBACK_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Interval between reports of a helper.
pub const REPORT_INTERVAL: Duration = Duration::from_millis(200);
/// How long a helper waits at least for further symbols before it sends what it holds back for
/// them; at most it waits half of the encoder's timeout.
pub const HELPER_SILENCE_MIN: Duration = Duration::from_millis(5);
/// Silence that ends this wait, in usual intervals between overheard symbols.
pub const HELPER_SILENCE_INTERVALS: u32 = 3;
/// The newest interval has this fraction of weight in the usual one.
pub const HELPER_INTERVAL_PARTS: u32 = 8;
/// Least time between two acknowledgments that complete a block.
pub const ACK_INTERVAL_MIN: Duration = Duration::from_millis(2);
/// A helper that has not reported for this many of its intervals is not counted on.
pub const REPORT_STALE_INTERVALS: u32 = 10;
/// A helper that has not heard an encoder for this many of its HELLOs, and for [`HELLO_TALKING`],
/// assumes that the link from it is broken. An encoder with nothing to send still sends HELLOs.
pub const E1_STALE_HELLOS: u32 = 2;
/// How far a paced sender may be ahead after a pause.
pub const PACE_BURST: Duration = Duration::from_millis(2);
/// A paced sender that had to wait sends together what is due after at least this long, where that
/// is more than a full frame. Waking costs a daemon some 5 us of processor time. If it woke for
/// each frame, the processor and not the path would bound the rate, which is measured and then
/// paced. This way waking takes at most 5 % of a processor.
pub const PACE_SLEEP_MIN: Duration = Duration::from_micros(100);
/// How long frames that are not held back, such as feedback, may hold back others, however many of
/// them are sent.
pub const PACE_DEBT_MAX: Duration = Duration::from_millis(200);
/// Window mode: shortest and longest wait for feedback before frames in flight count as lost.
pub const WINDOW_TIMEOUT_MIN: Duration = Duration::from_millis(10);
/// See [`WINDOW_TIMEOUT_MIN`].
pub const WINDOW_TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// Window mode: longest time for which a sender keeps an unacknowledged symbol.
pub const WINDOW_SILENCE_MAX: Duration = Duration::from_secs(60);
/// Window mode: symbols of the longest window, in the maximum number of lanes.
pub const WINDOW_SYMBOLS_MAX: usize = 16 * corridor_codec::MAX_WINDOW_SIZE;
/// Window mode: stretches at either end, since symbols may be dealt to other lanes while earlier
/// ones drain; bounds the lanes held.
pub const WINDOW_STRETCHES_MAX: usize = 2;
/// Window mode: frames that a sender remembers per link, in flight or perhaps late; late ones are
/// dropped first, the oldest before others. Per lane: [`SENT_LOG_MAX`].
pub const WINDOW_SENT_LOG_MAX: usize = 2 * WINDOW_SYMBOLS_MAX;
/// Window mode: newest frames whose arrival times a receiver remembers; a frame that more of them
/// have overtaken counts as late by the oldest of them.
pub const NEWEST_FRAMES_MAX: usize = 512;
/// Window mode: round trips of the shortest deadline. After an outage, feedback reports the loss
/// within one; what was lost is sent again in as many as the window is long, three, and arrives in
/// one; and some of it is lost again.
pub const WINDOW_DEADLINE_ROUND_TRIPS: u32 = 8;
/// Longest round-trip time that counts for this.
pub const WINDOW_DEADLINE_ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// Window mode: frames of a burst of losses that is waited for: if bursts have 50 frames on
/// average, 19 in 20 are shorter. On slow paths this takes seconds.
pub const WINDOW_BURST_FRAMES: u32 = 150;
/// Longest time that such a burst is waited for; a sender keeps its symbols twice as long.
pub const WINDOW_BURST_MAX: Duration = Duration::from_secs(30);
/// How long a burst of losses may last if a frame takes `frame`. Bursts are counted in frames: on a
/// slow path they take long, and they end the sooner the more frames are sent.
pub(crate) fn burst_time(frame: Duration) -> Duration {
    frame.saturating_mul(WINDOW_BURST_FRAMES).min(WINDOW_BURST_MAX)
}
/// Window mode: how long a window has to have been longer than needed before it gets fewer lanes.
pub const WINDOW_NARROW_AFTER: Duration = Duration::from_secs(10);
/// Window mode: arrival times that a receiver remembers: one per symbol of the longest window. When
/// lanes begin, what is known of one shows the others' beginning to within a symbol each.
pub const WINDOW_GAPS_MAX: usize = WINDOW_SYMBOLS_MAX + 16;
/// Window mode: least time between two acknowledgments.
pub const WINDOW_ACK_INTERVAL_MIN: Duration = Duration::from_micros(500);
/// Window mode: delays that a rate control remembers for their minimum.
pub const WINDOW_DELAYS_MAX: usize = 1_024;
/// Path MTU: lengths tried in one round, besides the control.
pub const MTU_CANDIDATES_MAX: usize = 3;
/// Path MTU: rounds that may still be echoed.
pub const MTU_ROUNDS_KEPT: usize = 8;
/// Path MTU: probes that wait to be echoed; the oldest is dropped first.
pub const MTU_ECHOES_MAX: usize = 8;
/// Path MTU: shortest and longest duration of a round.
pub const MTU_ROUND_MIN: Duration = Duration::from_millis(10);
/// See [`MTU_ROUND_MIN`].
pub const MTU_ROUND_MAX: Duration = Duration::from_secs(30);
/// Path MTU: interval at which the length in use is confirmed.
pub const MTU_CONFIRM_INTERVAL: Duration = Duration::from_secs(15);
/// Path MTU: for how long the length in use has to be missed before it is given up. Meanwhile
/// chunks of that length are sent in parts.
pub const MTU_DOUBT_SPAN: Duration = Duration::from_millis(500);
/// Path MTU: how soon after the length in use became shorter a longer one is searched for; after
/// that, the interval doubles each time.
pub const MTU_RAISE_FIRST: Duration = MTU_CONFIRM_INTERVAL;
/// Path MTU: the final interval of these searches (RFC 8899, Section 5.1.1: 600 s).
pub const MTU_RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// Path MTU: least time between checks because a router reports a smaller MTU.
pub const MTU_HINT_INTERVAL: Duration = Duration::from_secs(1);
/// Least time between two messages to the host that a packet is too long.
pub const TOO_BIG_INTERVAL: Duration = Duration::from_millis(10);

/// A helper whose rows made tags fail is ignored for this many of the decoder's deadlines: when it
/// is heard again it delays a decoder by at most one deadline, a hundredth of the time.
pub const LEFT_OUT_DEADLINES: u32 = 100;
/// Longest time for which it is ignored, if it fails each time that it is heard again: after
/// repairing it, an operator waits no longer than this, unless deadlines are longer than half a
/// minute.
pub const LEFT_OUT_MAX: Duration = Duration::from_secs(3_600);
/// Time between log lines about forgeries by unknown stations.
pub const FORGED_TOLD: Duration = Duration::from_secs(60);
/// A wall clock that has gained this much on our own clock was set, and packet numbers between ends
/// jump to it; packets overtaken at that moment are lost. A smaller gain is a clock being
/// disciplined, by at most 500 ppm (RFC 5905): a second in half an hour.
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
