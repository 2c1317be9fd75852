//! Counters of a relay.

/// Counters of a relay since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayStats {
    /// Accepted packets that the node originated.
    pub originated: u64,
    /// Accepted packets of other nodes.
    pub forwarded: u64,
    /// Packets dropped because the queue was full.
    pub queue_drops: u64,
    /// Packets dropped by CoDel, because packets waited too long for the channel.
    pub codel_drops: u64,
    /// Packets dropped because their hop limit was exhausted.
    pub expired: u64,
    /// Frames sent with one packet.
    pub plain_sent: u64,
    /// Frames sent with two packets.
    pub coded_sent: u64,
    /// Packets in these that this node had itself decoded before (recoding along a chain).
    pub recoded: u64,
    /// Announcements sent.
    pub announced: u64,
    /// Frames overheard that were for others.
    pub overheard: u64,
    /// Packets for this node decoded from coded frames, including duplicates.
    pub decoded: u64,
    /// Coded frames whose other packet is unknown.
    pub undecodable: u64,
    /// Coded frames whose lengths, ids or padding do not match the known packet.
    pub decode_mismatches: u64,
    /// Packets received before.
    pub duplicates: u64,
    /// Frames that do not parse.
    pub malformed: u64,
    /// Neighbours' frames discarded as stale, since later ones had overtaken them long before, and
    /// combinations that had been overtaken at all.
    pub held_up: u64,
    /// Frames of neighbours for which the table had no room.
    pub neighbour_table_full: u64,
    /// Times that coded frames to a receiver were suspended because it could not decode them.
    pub switched_off: u64,
    /// Packets of coded frames retransmitted because their receiver has not reported them.
    pub resent: u64,
    /// Combinations of packets sent because their receiver probably lacks some.
    pub repairs_sent: u64,
    /// Packets recovered from such combinations of neighbours.
    pub repaired: u64,
    /// Combinations whose solution was not a valid packet.
    pub repair_mismatches: u64,
    /// Reports sent alone.
    pub reports_sent: u64,
    /// Seconds with more retries than the threshold.
    pub congested_s: u64,
}

impl RelayStats {
    /// Joins each counter with that of `other`, as a sum or a difference.
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
