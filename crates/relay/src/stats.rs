//! What a relay counts.

/// Counters of a relay, from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Packets of the node's own that were taken.
    pub originated: u64,
    /// Packets of others that were taken.
    pub forwarded: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets dropped since packets waited too long for the air.
    pub codel_drops: u64,
    /// Packets that had made as many hops as they may.
    pub expired: u64,
    /// Frames with one packet.
    pub plain_sent: u64,
    /// Frames with two.
    pub coded_sent: u64,
    /// Packets in these that this node had decoded itself before (recoding along a chain).
    pub recoded: u64,
    /// Announcements.
    pub announced: u64,
    /// Frames heard that were for others.
    pub overheard: u64,
    /// Packets for this node out of coded frames, those that had come before among them.
    pub decoded: u64,
    /// Coded frames of which the other packet is not known.
    pub undecodable: u64,
    /// Coded frames whose lengths, ids or padding do not fit the packet that is known.
    pub decode_mismatches: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Frames that do not parse.
    pub malformed: u64,
    /// Frames of neighbours that later ones had overtaken so long before that they were discarded
    /// as stale, and combinations that anything had overtaken.
    pub held_up: u64,
    /// Frames of neighbours for which the table had no place.
    pub neighbour_table_full: u64,
    /// Times that a receiver was sent no coded frames any more because it could not decode them.
    pub switched_off: u64,
    /// Packets of coded frames that were sent again, as their receiver has not reported them.
    pub resent: u64,
    /// Combinations of packets that were sent, as their receiver is likely to lack some.
    pub repairs_sent: u64,
    /// Packets out of such combinations of neighbours.
    pub repaired: u64,
    /// Combinations out of which no packets came, but bytes that are none.
    pub repair_mismatches: u64,
    /// Reports that went alone.
    pub reports_sent: u64,
    /// Seconds with more retries than the threshold.
    pub congested_s: u64,
}

impl RelayStats {
    /// Each counter with that of `other`: their sums, or differences.
    pub fn with(self, other: RelayStats, join: impl Fn(u64, u64) -> u64) -> RelayStats {
        RelayStats {
            originated: join(self.originated, other.originated),
            forwarded: join(self.forwarded, other.forwarded),
            queue_drops: join(self.queue_drops, other.queue_drops),
            codel_drops: join(self.codel_drops, other.codel_drops),
            expired: join(self.expired, other.expired),
            plain_sent: join(self.plain_sent, other.plain_sent),
            coded_sent: join(self.coded_sent, other.coded_sent),
            recoded: join(self.recoded, other.recoded),
            announced: join(self.announced, other.announced),
            overheard: join(self.overheard, other.overheard),
            decoded: join(self.decoded, other.decoded),
            undecodable: join(self.undecodable, other.undecodable),
            decode_mismatches: join(self.decode_mismatches, other.decode_mismatches),
            duplicates: join(self.duplicates, other.duplicates),
            malformed: join(self.malformed, other.malformed),
            held_up: join(self.held_up, other.held_up),
            neighbour_table_full: join(self.neighbour_table_full, other.neighbour_table_full),
            switched_off: join(self.switched_off, other.switched_off),
            resent: join(self.resent, other.resent),
            repairs_sent: join(self.repairs_sent, other.repairs_sent),
            repaired: join(self.repaired, other.repaired),
            repair_mismatches: join(self.repair_mismatches, other.repair_mismatches),
            reports_sent: join(self.reports_sent, other.reports_sent),
            congested_s: join(self.congested_s, other.congested_s),
        }
    }
}
