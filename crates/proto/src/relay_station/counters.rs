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
        /// Packets of neighbours that were taken to be forwarded.
        pub relay_packets_forwarded: u64,
        /// Packets that came in a coded frame and went on in another one.
        pub relay_packets_recoded: u64,
        /// Packets for this node, or for it to forward, out of coded frames; those that had come
        /// before are among them.
        pub relay_packets_decoded: u64,
        /// Coded frames for this node that could not be decoded.
        pub relay_decode_failures: u64,
        /// Of these, frames whose lengths, ids or padding do not fit the packet that is known.
        pub relay_decode_mismatches: u64,
        /// Frames of neighbours to others that were overheard.
        pub relay_frames_overheard: u64,
        /// Announcements of whom this node hears.
        pub relay_announcements_sent: u64,
        /// Reports of what came of neighbours' frames that went alone.
        pub relay_reports_sent: u64,
        /// Packets that had come before.
        pub relay_packets_duplicate: u64,
        /// Packets of coded frames that were sent again, as their receiver has not reported them.
        pub relay_packets_resent: u64,
        /// Combinations of packets that were sent, as their receiver is likely to lack some.
        pub relay_repairs_sent: u64,
        /// Packets for this node, or for it to forward, out of such combinations; those that had
        /// come before are among them.
        pub relay_packets_repaired: u64,
        /// Segments of TCP for this host that came behind some that were sent after them.
        pub relay_segments_late: u64,
        /// By how much, all together, microseconds.
        pub relay_segments_late_us: u64,
        /// Segments of TCP for this host that waited for those before them.
        pub relay_segments_held: u64,
        /// How long, all together, microseconds.
        pub relay_segments_held_us: u64,
        /// Times that what they waited for did not come in time.
        pub relay_segments_overdue: u64,
        /// Combinations out of which bytes came that are no packet.
        pub relay_repair_mismatches: u64,
        /// Times that a neighbour was sent no coded frames any more because it could not decode
        /// them.
        pub relay_switched_off: u64,
        /// Seconds in which the MAC repeated more frames than the threshold.
        pub relay_congested_s: u64,
        /// Packets, of the host and of neighbours, that found the queue full.
        pub relay_queue_drops: u64,
        /// The same, dropped since packets waited too long for the air (CoDel, RFC 8289).
        pub relay_codel_drops: u64,
        /// Packets of the host for an address that no neighbour leads to, its own among them, and
        /// what is no IP.
        pub relay_packets_unrouted: u64,
        /// Packets, of the host and of neighbours, for a neighbour that there is no session with,
        /// or that has fallen silent.
        pub relay_packets_unreachable: u64,
        /// Packets dropped because the neighbour that sent them does not lead to their source.
        pub relay_packets_wrong_source: u64,
        /// Packets dropped because they would have gone back to where they came from.
        pub relay_packets_turned_back: u64,
        /// Packets dropped because they had made as many hops as they may.
        pub relay_packets_expired: u64,
        /// Packets to forward that were longer than frames from here carry; their senders are told.
        pub relay_packets_too_long: u64,
        /// Frames that opened, and are none of a relay, or have a next hop that such a frame has
        /// not.
        pub relay_frames_malformed: u64,
        /// Frames of neighbours discarded as stale, as what is in them is said or sent again: a
        /// frame sealed later had arrived a twelfth of `relay.decode_ms`, and 120 ms at least,
        /// before; or before a combination at all.
        pub relay_frames_held_up: u64,
        /// Frames of neighbours for which the table of neighbours had no place.
        pub relay_neighbours_refused: u64,
        /// Packets for this host from another end's networks that were dropped because that end has
        /// not made them, or they were changed on their way.
        pub relay_tags_failed: u64,
        /// The same, dropped because they had come before, or are older than 16384
        /// that have.
        pub relay_packets_replayed: u64,
        /// Packets for this host that were delivered with a tag that nobody has looked at: they
        /// have as much behind them as those of another end, and no end here has their source.
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
