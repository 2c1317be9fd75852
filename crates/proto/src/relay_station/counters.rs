//! Counters of a relay: what it combined and decoded, and what it did not forward.

use super::RelayStation;

/// Counts of packets that were not forwarded or delivered, and of useless frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drops {
    pub(super) unrouted: u64,
    pub(super) silent: u64,
    pub(super) wrong_source: u64,
    pub(super) turned_back: u64,
    pub(super) expired: u64,
    pub(super) too_long: u64,
    pub(super) malformed: u64,
    pub(super) forged: u64,
    pub(super) replayed: u64,
    /// These were delivered nevertheless, with a tag that nothing checked.
    pub(super) unnamed: u64,
}

crate::counters! {
    /// Counters of a relay since it started, beside those that every station has.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    pub struct RelayCounters {
        /// Frames sent with one packet.
        pub relay_frames_plain: u64,
        /// Frames sent with two packets of different flows.
        pub relay_frames_coded: u64,
        /// Packets of neighbours accepted for forwarding.
        pub relay_packets_forwarded: u64,
        /// Packets received in a coded frame and sent on in another one.
        pub relay_packets_recoded: u64,
        /// Packets decoded from coded frames, for this node or to forward, duplicates included.
        pub relay_packets_decoded: u64,
        /// Coded frames for this node that could not be decoded.
        pub relay_decode_failures: u64,
        /// Of these, frames whose lengths, ids or padding do not match the known packet.
        pub relay_decode_mismatches: u64,
        /// Frames overheard that neighbours sent to others.
        pub relay_frames_overheard: u64,
        /// Announcements sent of the neighbours that this node hears.
        pub relay_announcements_sent: u64,
        /// Reports on the reception of neighbours' frames, sent in frames of their own.
        pub relay_reports_sent: u64,
        /// Duplicate packets received.
        pub relay_packets_duplicate: u64,
        /// Packets of coded frames sent again because their receiver did not report them.
        pub relay_packets_resent: u64,
        /// Combinations of packets sent because their receiver is likely to miss some.
        pub relay_repairs_sent: u64,
        /// Packets recovered from such combinations, for this node or to forward, duplicates
        /// included.
        pub relay_packets_repaired: u64,
        /// TCP segments for this host that arrived after later ones.
        pub relay_segments_late: u64,
        /// Total delay of these segments behind later ones, microseconds.
        pub relay_segments_late_us: u64,
        /// TCP segments for this host held until earlier ones arrived.
        pub relay_segments_held: u64,
        /// Total time that these segments were held, microseconds.
        pub relay_segments_held_us: u64,
        /// Times the segments that held ones waited for did not arrive in time.
        pub relay_segments_overdue: u64,
        /// Combinations whose decoded bytes are not a packet.
        pub relay_repair_mismatches: u64,
        /// Times coding to a neighbour was switched off because it failed to decode.
        pub relay_switched_off: u64,
        /// Seconds in which MAC retries exceeded the threshold.
        pub relay_congested_s: u64,
        /// Packets from the host and from neighbours dropped because the queue was full.
        pub relay_queue_drops: u64,
        /// Packets from the host and from neighbours dropped because the queue delay stayed too
        /// high (CoDel, RFC 8289).
        pub relay_codel_drops: u64,
        /// Packets from the host that are not IP, or to an address that is the host's own or that
        /// no neighbour leads to.
        pub relay_packets_unrouted: u64,
        /// Packets from the host and from neighbours to a neighbour without a session, or that does
        /// not respond.
        pub relay_packets_unreachable: u64,
        /// Packets dropped because their source is not in the networks of the neighbour that sent
        /// them.
        pub relay_packets_wrong_source: u64,
        /// Packets dropped because they would have been sent back to where they came from.
        pub relay_packets_turned_back: u64,
        /// Packets dropped because they reached the hop limit.
        pub relay_packets_expired: u64,
        /// Packets to forward that exceed the frame length from here; their senders are notified.
        pub relay_packets_too_long: u64,
        /// Authentic frames that are not relay frames, or have an invalid next hop.
        pub relay_frames_malformed: u64,
        /// Stale frames of neighbours dropped because their content is repeated: a frame sealed
        /// later arrived at least a twelfth of `relay.decode_ms`, and at least 120 ms, earlier; a
        /// combination is dropped if any frame sealed later has arrived.
        pub relay_frames_held_up: u64,
        /// Frames of neighbours ignored because the neighbour table was full.
        pub relay_neighbours_refused: u64,
        /// Packets for this host from another end's networks dropped because they are forged or
        /// were altered on the path.
        pub relay_tags_failed: u64,
        /// Packets for this host from another end's networks dropped because they were received
        /// before, or 16384 later ones were.
        pub relay_packets_replayed: u64,
        /// Packets for this host delivered with an unchecked tag: they seem to have one, but their
        /// source is in the networks of no `[[end]]` here.
        pub relay_tags_unnamed: u64,
    }
}

impl RelayStation {
    /// Counters since the start, beside [`stats`](Self::stats).
    pub fn relay_counters(&self) -> RelayCounters {
        let (stats, order, drops) = (self.relay.stats(), self.to_host.in_order.stats(), self.drops);
        RelayCounters {
            relay_frames_plain: stats.plain_sent,
            relay_frames_coded: stats.coded_sent,
            relay_packets_forwarded: stats.forwarded,
            relay_packets_recoded: stats.recoded,
            relay_packets_decoded: stats.decoded,
            relay_decode_failures: stats.undecodable + stats.decode_mismatches,
            relay_decode_mismatches: stats.decode_mismatches,
            relay_frames_overheard: stats.overheard,
            relay_announcements_sent: stats.announced,
            relay_reports_sent: stats.reports_sent,
            relay_packets_duplicate: stats.duplicates,
            relay_packets_resent: stats.resent,
            relay_repairs_sent: stats.repairs_sent,
            relay_packets_repaired: stats.repaired,
            relay_segments_late: order.late,
            relay_segments_late_us: order.late_us,
            relay_segments_held: order.held,
            relay_segments_held_us: order.held_us,
            relay_segments_overdue: order.overdue,
            relay_repair_mismatches: stats.repair_mismatches,
            relay_switched_off: stats.switched_off,
            relay_congested_s: stats.congested_s,
            relay_queue_drops: stats.queue_drops,
            relay_codel_drops: stats.codel_drops,
            relay_packets_unrouted: drops.unrouted,
            relay_packets_unreachable: drops.silent,
            relay_packets_wrong_source: drops.wrong_source,
            relay_packets_turned_back: drops.turned_back,
            relay_packets_expired: drops.expired + stats.expired,
            relay_packets_too_long: drops.too_long,
            relay_frames_malformed: drops.malformed + stats.malformed,
            relay_frames_held_up: stats.held_up,
            relay_neighbours_refused: stats.neighbour_table_full,
            relay_tags_failed: drops.forged,
            relay_packets_replayed: drops.replayed,
            relay_tags_unnamed: drops.unnamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Described, Stats};

    #[test]
    fn counters_of_relays_have_names_of_their_own() {
        for Described { name, text, .. } in RelayCounters::DESCRIPTIONS {
            assert!(name.starts_with("relay_") && text.ends_with('.'), "{name}: {text}");
            assert!(Stats::DESCRIPTIONS.iter().all(|other| other.name != *name), "{name}");
        }
    }
}
