//! What a node did between two status queries: rates and ratios since the last one.

use std::collections::BTreeMap;

use corridor_proto::Stats;
use serde::{Deserialize, Serialize};

use super::{OverheadStatus, RepairStatus, Status};

/// Changes since an earlier status.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Since {
    /// How long ago that was, in seconds.
    pub span_s: f64,
    /// Packets handed to the host, in bit/s.
    pub received_bps: f64,
    /// Packets taken from the host, in bit/s.
    pub sent_bps: f64,
    /// Losses repaired, and losses not repaired, in that time.
    pub repair: RepairStatus,
    /// What was sent in addition to the packets in that time.
    pub overhead: OverheadStatus,
    /// Peers of a hub.
    pub peers: Vec<PeerSince>,
    /// Growth of each counter per second.
    pub counts_per_s: BTreeMap<String, f64>,
}

/// What a peer of a hub has sent, and was sent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct PeerSince {
    /// Its station number.
    pub station: u16,
    /// Packets received from it, in bit/s.
    pub received_bps: f64,
    /// Packets sent to it, in bit/s.
    pub sent_bps: f64,
}

impl Since {
    /// Growth of a counter per second.
    pub fn count_per_s(&self, name: &str) -> f64 {
        self.counts_per_s.get(name).copied().unwrap_or_default()
    }
}

impl Status {
    /// Changes since an earlier status of the same run; `None` for another run.
    pub fn since(&self, earlier: &Status) -> Option<Since> {
        let span_s = self.uptime_s - earlier.uptime_s;
        // Nodes in containers may all have the same process id.
        let is_same = (self.pid, &self.name) == (earlier.pid, &earlier.name);
        if !is_same || span_s.is_nan() || span_s <= 0.0 {
            return None;
        }
        let grown = |name: &str| {
            let count = |status: &Status| status.count(name).unwrap_or_default();
            count(self).saturating_sub(count(earlier))
        };
        let bps = |bytes: u64| 8.0 * bytes as f64 / span_s;
        // Everything that the two ratios depend on.
        let stats = Stats {
            packets_accepted: grown("packets_accepted"),
            bytes_accepted: grown("bytes_accepted"),
            symbols_added: grown("symbols_added"),
            source_frames_sent: grown("source_frames_sent"),
            copies_sent: grown("copies_sent"),
            coded_frames_sent: grown("coded_frames_sent"),
            recoded_frames_sent: grown("recoded_frames_sent"),
            repairs_spurious: grown("repairs_spurious"),
            symbols_repaired: grown("symbols_repaired"),
            symbols_given_up: grown("symbols_given_up"),
            packets_given_up: grown("packets_given_up"),
            frames_sent: grown("frames_sent"),
            bytes_sent: grown("bytes_sent"),
            ..Stats::default()
        };
        let counts = self.counters.iter().filter(|counter| counter.is_count);
        Some(Since {
            span_s,
            received_bps: bps(grown("bytes_delivered")),
            sent_bps: bps(stats.bytes_accepted),
            repair: RepairStatus::of(&stats),
            overhead: OverheadStatus::of(&stats, self.relay.is_some()),
            peers: self.peers_since(earlier, bps),
            counts_per_s: counts
                .map(|counter| (counter.name.clone(), grown(&counter.name) as f64 / span_s))
                .collect(),
        })
    }

    fn peers_since(&self, earlier: &Status, bps: impl Fn(u64) -> f64) -> Vec<PeerSince> {
        let own = |status: &Status, station: u16| {
            status.peers.iter().find(|peer| peer.station == station)?.own.clone()
        };
        let since = |station: u16| {
            let (now, before) = (own(self, station)?, own(earlier, station)?);
            let grown = |now: u64, before: u64| bps(now.saturating_sub(before));
            Some(PeerSince {
                station,
                received_bps: grown(now.received_bytes, before.received_bytes),
                sent_bps: grown(now.sent_bytes, before.sent_bytes),
            })
        };
        self.peers.iter().filter_map(|peer| since(peer.station)).collect()
    }

    /// The value of a counter.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|counter| counter.name == name)?.value.as_u64()
    }
}

#[cfg(test)]
mod tests {
    use super::super::counters;
    use super::*;
    use crate::status::{OwnStatus, PeerStatus};

    fn status(uptime_s: f64, stats: &Stats, received_bytes: u64) -> Status {
        let own = OwnStatus { received_bytes, ..OwnStatus::default() };
        Status {
            pid: 7,
            uptime_s,
            counters: counters(stats, Stats::DESCRIPTIONS).collect(),
            peers: vec![
                PeerStatus { station: 4, own: Some(own), ..PeerStatus::default() },
                PeerStatus { station: 5, ..PeerStatus::default() },
            ],
            ..Status::default()
        }
    }

    /// A clean start long ago must not hide what is wrong now.
    #[test]
    fn what_has_changed_is_told_apart_from_what_was_before() {
        let before = Stats {
            packets_accepted: 10_000,
            bytes_accepted: 10_000_000,
            source_frames_sent: 10_000,
            frames_sent: 10_000,
            bytes_sent: 10_000_000,
            bytes_delivered: 700,
            rate_bps: Some(5),
            ..Stats::default()
        };
        let now = Stats {
            packets_accepted: 10_100,
            bytes_accepted: 10_100_000,
            source_frames_sent: 10_100,
            copies_sent: 30,
            repairs_spurious: 4,
            frames_sent: 10_150,
            bytes_sent: 10_160_000,
            symbols_repaired: 8,
            bytes_delivered: 700 + 2_500,
            rate_bps: Some(9),
            ..before.clone()
        };
        let (earlier, later) = (status(10.0, &before, 0), status(12.0, &now, 1_000));
        let since = later.since(&earlier).unwrap();
        assert_eq!((since.span_s, since.received_bps, since.sent_bps), (2.0, 10_000.0, 400_000.0));
        let overhead = (since.overhead.frames_ratio, since.overhead.bytes_ratio);
        assert_eq!(overhead, (Some(50.0 / 150.0), Some(0.6)));
        let repair = &since.repair;
        let repair = (repair.sent_symbols, repair.spurious_symbols, repair.repaired_symbols);
        assert_eq!(repair, (30, 4, 8));
        assert_eq!(since.count_per_s("copies_sent"), 15.0);
        assert!(!since.counts_per_s.contains_key("rate_bps"), "it is no count");
        let peers = [PeerSince { station: 4, received_bps: 4_000.0, sent_bps: 0.0 }];
        assert_eq!(since.peers, peers);
        // `None` for the same moment, and for another run.
        assert_eq!(later.since(&later), None);
        assert_eq!(later.since(&Status { pid: 8, ..earlier.clone() }), None);
        assert_eq!(later.since(&Status { name: "other".into(), ..earlier }), None);
    }
}
