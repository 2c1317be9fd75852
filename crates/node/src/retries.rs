//! What an interface's MAC did for each neighbour: how often it retransmitted.
//!
//! A real radio's driver reports this to the kernel, which provides it over nl80211. The lab's
//! radios are unknown to the kernel, so the lab writes a file. Both provide counters since the
//! start, and a relay needs the increments.

mod file;
mod nl80211;

use std::collections::BTreeMap;
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::relay::Sent;

use crate::config::{Mac, RetriesSource};
use file::File;
use nl80211::Stations;

/// Interval of reading the counters: several times per second, since retries are counted per
/// second.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A MAC's counters for each neighbour, since the start.
type Counters = BTreeMap<Mac, Sent>;

/// The counters of an interface, read periodically.
pub(crate) struct Retries {
    source: Source,
    look_at: Time,
    /// The counters at the last look, for the neighbours that existed then.
    known: Counters,
    /// The lack of counters was logged.
    is_told: bool,
}

/// The source of the counters.
enum Source {
    File(File),
    Nl80211(Stations),
}

impl Source {
    /// The present counters; `None` if there are none yet.
    fn look(&mut self, now: Time) -> Result<Option<Counters>, String> {
        match self {
            Source::File(file) => file.look(now),
            Source::Nl80211(stations) => stations.look(),
        }
    }

    fn name(&self) -> String {
        match self {
            Source::File(file) => file.path.display().to_string(),
            Source::Nl80211(_) => "nl80211".to_owned(),
        }
    }
}

impl Retries {
    /// The counters that the configuration names, for an interface in the calling thread's network
    /// namespace.
    pub(crate) fn new(source: &RetriesSource, interface: &str, now: Time) -> Self {
        let source = match source {
            RetriesSource::File(path) => Source::File(File::new(path)),
            RetriesSource::Nl80211 => Source::Nl80211(Stations::new(interface)),
        };
        Retries { source, look_at: now, known: BTreeMap::new(), is_told: false }
    }

    /// When to [look](Self::look) next.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.look_at
    }

    /// The increments since the last look, per neighbour. If there are no counters, the reason is
    /// logged once.
    pub(crate) fn look(&mut self, now: Time) -> Vec<(Mac, Sent)> {
        self.look_at = now + LOOK_INTERVAL;
        match self.source.look(now) {
            Ok(Some(counters)) => {
                self.is_told = false;
                self.added(counters)
            }
            Ok(None) => Vec::new(),
            Err(why) => {
                if !core::mem::replace(&mut self.is_told, true) {
                    let name = self.source.name();
                    tracing::warn!(
                        "cannot read retry counters from {name} (underlay.retries): {why}"
                    );
                }
                Vec::new()
            }
        }
    }

    /// Increments of counters. A new neighbour's first counters include everything since the
    /// interface came up, and so say nothing about now.
    fn added(&mut self, counters: Counters) -> Vec<(Mac, Sent)> {
        let before = core::mem::replace(&mut self.known, counters);
        let since = |(mac, sent): (&Mac, &Sent)| Some((*mac, since(*sent, *before.get(mac)?)));
        let added = self.known.iter().filter_map(since);
        added.filter(|(_, sent)| *sent != Sent::default()).collect()
    }
}

/// An increment. If all counters decreased, or stayed at 0, they were reset; if only one decreased,
/// it has 32 bits, like those of nl80211, and has wrapped.
fn since(now: Sent, before: Sent) -> Sent {
    let pairs =
        [(now.frames, before.frames), (now.retries, before.retries), (now.failed, before.failed)];
    let is_anew = pairs.iter().all(|(now, before)| now < before || *before == 0);
    let [frames, retries, failed] = pairs.map(|(now, before)| match now.checked_sub(before) {
        Some(added) => added,
        None if is_anew => now,
        None => u64::from((now as u32).wrapping_sub(before as u32)),
    });
    Sent { frames, retries, failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(writing: u64, frames: u64, retries: u64, failed: u64) -> String {
        format!("{writing}\n02:00:00:00:00:02 {frames} {retries} {failed}\n{writing}\n")
    }

    fn retries_of(path: &std::path::Path) -> Retries {
        Retries::new(&RetriesSource::File(path.to_owned()), "wlan0", Time::ZERO)
    }

    #[test]
    fn what_is_added_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("retries");
        let mut retries = retries_of(&path);
        assert!(retries.look(Time::ZERO).is_empty(), "there is no file");
        assert_eq!(retries.poll_timeout(), Time::ZERO + LOOK_INTERVAL);
        let look = |retries: &mut Retries, text: String| {
            std::fs::write(&path, text).unwrap();
            retries.look(Time::ZERO).into_iter().map(|(_, sent)| sent).collect::<Vec<_>>()
        };
        let sent = |frames, retries, failed| vec![Sent { frames, retries, failed }];
        // Everything before the first look.
        assert_eq!(look(&mut retries, text(1, 10, 4, 1)), vec![]);
        assert_eq!(look(&mut retries, text(1, 10, 4, 1)), vec![]);
        assert_eq!(look(&mut retries, text(2, 15, 5, 1)), sent(5, 1, 0));
        // The interface was recreated.
        assert_eq!(look(&mut retries, text(3, 2, 1, 0)), sent(2, 1, 0));
        // The file is being written.
        assert_eq!(look(&mut retries, "4\n02:00:00:00:00:02 9 9 9\n3\n".to_owned()), vec![]);
        // A neighbour that left and returns counts as new; one that left is forgotten.
        assert_eq!(look(&mut retries, "5\n5\n".to_owned()), vec![]);
        assert!(retries.known.is_empty());
        assert_eq!(look(&mut retries, text(6, 20, 8, 1)), vec![]);
        assert_eq!(look(&mut retries, text(7, 21, 8, 1)), sent(1, 0, 0));
    }

    #[test]
    fn a_file_that_nobody_completes_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("retries");
        let mut retries = retries_of(&path);
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        // Its last line is missing.
        std::fs::write(&path, "1\n02:00:00:00:00:02 9 9 9\n").unwrap();
        assert_eq!(retries.source.look(at(0)), Ok(None));
        assert_eq!(retries.source.look(at(900)), Ok(None));
        let why = retries.source.look(at(1_000)).unwrap_err();
        assert_eq!(why, "first and last line have differed for 1 s, expected the same line");
        assert!(retries.look(at(1_100)).is_empty() && retries.is_told);
        // It is logged once, until there are counters.
        assert!(retries.look(at(1_200)).is_empty() && retries.is_told);
        std::fs::write(&path, text(2, 1, 0, 0)).unwrap();
        assert!(retries.look(at(1_300)).is_empty() && !retries.is_told);
        // Torn now and then, but never for a whole second.
        std::fs::write(&path, "3\n").unwrap();
        assert_eq!(retries.source.look(at(1_400)), Ok(None));
        assert_eq!(retries.source.look(at(2_300)), Ok(None));
    }
}
