//! Output of `-v` and `-vv`: details that are not worth a line in everybody's log.
//!
//! `-v` logs the steps of handshakes, and at most once per second what was dropped, with the
//! description of its counter, and rates that have changed. `-vv` logs each probe, and each frame
//! and packet that was not accepted. If disabled, each place costs one comparison.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{AnyStation, FrameOutcome, PacketOutcome, StationId};
use tracing::Level;

use crate::stats_file::IoStats;
use crate::status::{Counter, counters_of};
use crate::underlay::News;

/// How often counters and rates are checked.
const INTERVAL: Duration = Duration::from_secs(1);
/// A rate is logged if it differs by this share from the one logged last.
const RATE_CHANGE: f64 = 0.1;

/// Counters of what was dropped, or did not get through.
const DROPS: &[&str] = &[
    "packets_dropped_ingress",
    "packets_dropped_codel",
    "packets_stale",
    "packets_refused",
    "packets_not_expanded",
    "datagrams_overdue",
    "packets_given_up",
    "symbols_given_up",
    "symbols_refused",
    "tags_failed",
    "rows_dropped",
    "frames_rejected",
    "frames_replayed",
    "frames_unknown_session",
    "packets_unrouted",
    "packets_wrong_source",
    "packets_link_local",
    "packets_expired",
    "packets_turned_back",
    "packets_not_forwarded",
    "frames_of_nobody",
    "relay_queue_drops",
    "relay_codel_drops",
    "relay_packets_unrouted",
    "relay_packets_unreachable",
    "relay_packets_wrong_source",
    "relay_packets_turned_back",
    "relay_packets_expired",
    "relay_packets_too_long",
    "relay_frames_malformed",
    "relay_frames_held_up",
    "relay_tags_failed",
    "relay_packets_replayed",
    "frames_refused",
    "key_exchanges_refused",
    "frames_lost_synthetic",
    "packets_untaken",
    "packets_of_own_link",
];

/// The values logged last.
#[derive(Default)]
pub(crate) struct Verbose {
    look_at: Time,
    counts: BTreeMap<String, u64>,
    rates: BTreeMap<StationId, u64>,
    agreed: BTreeMap<StationId, Time>,
}

impl Verbose {
    /// Logs what has changed in the last second, if enabled.
    pub(crate) fn look(&mut self, now: Time, station: &AnyStation, io: &IoStats) {
        if !tracing::enabled!(Level::DEBUG) || now < self.look_at {
            return;
        }
        self.look_at = now + INTERVAL;
        for (counter, grown) in self.grown(counters_of(station, io)) {
            let (name, why) = (counter.name, counter.description);
            tracing::debug!("{name}: +{grown}. {why}");
        }
        self.look_at_peers(now, station);
    }

    /// Counters of drops that have grown, and by how much.
    fn grown(&mut self, counters: Vec<Counter>) -> Vec<(Counter, u64)> {
        let mut grown = Vec::new();
        for counter in counters.into_iter().filter(|it| DROPS.contains(&&*it.name)) {
            let count = counter.value.as_u64().unwrap_or_default();
            let before = self.counts.insert(counter.name.clone(), count).unwrap_or_default();
            if count > before {
                grown.push((counter, count - before));
            }
        }
        grown
    }

    fn look_at_peers(&mut self, now: Time, station: &AnyStation) {
        for peer in station.peers() {
            let id = peer.id;
            if let Some(at) = peer.agreed_at
                && self.agreed.insert(id, at) != Some(at)
            {
                tracing::debug!("agreed on a session secret with station {}", id.0);
            }
            let own = station.station(id).map(|own| own.stats());
            let Some((stats, rate)) = own.and_then(|it| Some((it, it.rate_bps?))) else { continue };
            if !is_news(self.rates.get(&id).copied(), rate) {
                continue;
            }
            self.rates.insert(id, rate);
            let round_trip = station.round_trip(now, id).unwrap_or_default();
            tracing::debug!(
                "station {}: {:.3} Mbit/s, RTT {:.1} ms, loss {:.1} %",
                id.0,
                rate as f64 / 1e6,
                1e3 * round_trip.as_secs_f64(),
                100.0 * stats.erasure_ratio_e3
            );
        }
    }
}

/// Whether a rate differs enough from the one logged last.
fn is_news(told: Option<u64>, rate: u64) -> bool {
    told.is_none_or(|told| rate.abs_diff(told) as f64 > RATE_CHANGE * told as f64)
}

/// Logs a frame that was received.
pub(crate) fn frame(outcome: &FrameOutcome, from: impl Display, len_bytes: usize) {
    match outcome {
        FrameOutcome::Handshake { from: station } => {
            tracing::debug!("HELLO of station {} from {from}; session not accepted yet", station.0)
        }
        FrameOutcome::Initiation { from: station } => {
            tracing::debug!("station {} started a key exchange, from {from}", station.0);
        }
        FrameOutcome::Answered { from: station, .. } => {
            tracing::debug!("station {} answered an address challenge, from {from}", station.0);
        }
        FrameOutcome::Noted => tracing::debug!("cookie, or key exchange of others, from {from}"),
        FrameOutcome::Rejected(why) => {
            tracing::trace!("dropped a frame of {len_bytes} bytes from {from}: {why:?}");
        }
        FrameOutcome::Accepted { .. } => {}
    }
}

/// Logs a packet of the host that was refused.
pub(crate) fn packet_dropped(len_bytes: usize, outcome: PacketOutcome) {
    tracing::trace!("dropped a packet of {len_bytes} bytes from the host: {outcome:?}");
}

/// Logs what the underlay has found out about the path.
pub(crate) fn path_news(news: &News) {
    match news {
        News::Limit(len) => tracing::debug!("the interface carries frames of up to {len} bytes"),
        News::TooLong => {
            tracing::debug!("frames may exceed the path MTU: probing")
        }
        News::Path(Some(peer)) => tracing::debug!("the path to station {} has changed", peer.0),
        News::Path(None) => tracing::debug!("the paths to all peers may have changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::counters_of_all_kinds;

    #[test]
    fn every_drop_has_a_counter_with_a_description() {
        let all = counters_of_all_kinds();
        for drop in DROPS {
            assert!(all.iter().any(|it| it.name == *drop && it.is_count), "{drop}");
        }
    }

    #[test]
    fn what_was_dropped_is_told_once() {
        let mut verbose = Verbose::default();
        let counters = |count: u64| {
            let mut all = counters_of_all_kinds();
            all.iter_mut().for_each(|it| it.value = count.into());
            all
        };
        assert_eq!(verbose.grown(counters(0)), []);
        let grown = verbose.grown(counters(3));
        assert_eq!(grown.len(), DROPS.len());
        assert!(grown.iter().all(|(_, by)| *by == 3));
        assert_eq!(verbose.grown(counters(3)), []);
    }

    #[test]
    fn small_changes_of_a_rate_are_no_news() {
        assert!(is_news(None, 1_000) && is_news(Some(1_000), 1_101) && is_news(Some(1_000), 800));
        assert!(!is_news(Some(1_000), 1_099));
    }
}
