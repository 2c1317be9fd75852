//! Outcomes of stations' frames on the medium, in files that their nodes read: what a real radio's
//! driver reports for each neighbour (`tx packets`, `tx retries`, `tx failed` of `iw station
//! dump`).
//!
//! Each file is rewritten in place, with a line for each neighbour, at most every
//! [`WRITE_INTERVAL`]. All counters have a fixed width, so the file's length never changes. Its
//! first and last lines hold the number of the update, and a reader that finds two different ones
//! reads again.

use core::fmt::Write as _;
use core::time::Duration;
use std::fs::File;
use std::os::unix::fs::FileExt;

use corridor_air::Address;
use corridor_air::radio::SendOutcome;
use corridor_base::Time;

use crate::station::mac;

/// Shortest interval between updates of a file: several within the second over which retries are
/// counted.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);

/// Outcomes of a station's frames to one neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ToNeighbour {
    /// Frames that the MAC has finished with, given up or not.
    frames: u64,
    /// Retries of these.
    retries: u64,
    /// Of the frames, those given up.
    failed: u64,
}

/// A station's file, and its contents.
struct Book {
    file: File,
    /// By the neighbour's number.
    counters: Vec<ToNeighbour>,
    writings: u64,
    written_at: Time,
    /// Whether counters have changed since the last update.
    is_stale: bool,
}

/// The files of all stations; empty if none is read.
#[derive(Default)]
pub(crate) struct Outcomes(Vec<Book>);

impl Outcomes {
    /// Files for stations, in their order.
    pub(crate) fn new(files: Vec<File>) -> Self {
        let stations = files.len();
        let book = |file| Book {
            file,
            counters: vec![ToNeighbour::default(); stations],
            writings: 0,
            written_at: Time::ZERO,
            is_stale: true,
        };
        let mut outcomes = Outcomes(files.into_iter().map(book).collect());
        outcomes.0.iter_mut().for_each(|book| book.write(Time::ZERO));
        outcomes
    }

    /// A station's MAC has finished with a frame. Broadcasts have no acknowledgment and are not
    /// counted.
    pub(crate) fn count(
        &mut self,
        (station, to): (usize, Address),
        outcome: SendOutcome,
        attempts: u32,
    ) {
        let Some(book) = self.0.get_mut(station) else { return };
        if let Address::Station(to) = to
            && let Some(counters) = book.counters.get_mut(to)
        {
            counters.frames += 1;
            counters.retries += u64::from(attempts.saturating_sub(1));
            counters.failed += u64::from(outcome != SendOutcome::Acknowledged);
            book.is_stale = true;
        }
    }

    /// Writes changed counters, where an update is due.
    pub(crate) fn write(&mut self, now: Time) {
        for book in &mut self.0 {
            if book.is_stale && now.since(book.written_at) >= WRITE_INTERVAL {
                book.write(now);
            }
        }
    }
}

impl Book {
    fn write(&mut self, now: Time) {
        self.writings += 1;
        (self.written_at, self.is_stale) = (now, false);
        // If the write fails, the reader sees that nothing changes.
        let _ = self.file.write_all_at(self.text().as_bytes(), 0);
    }

    fn text(&self) -> String {
        let mut text = format!("{:020}\n", self.writings);
        for (station, counters) in self.counters.iter().enumerate() {
            let ToNeighbour { frames, retries, failed } = counters;
            let address = mac(station).map(|byte| format!("{byte:02x}")).join(":");
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{address} {frames:020} {retries:020} {failed:020}");
        }
        let _ = writeln!(text, "{:020}", self.writings);
        text
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_has_a_line_for_each_neighbour_and_one_length() {
        let directory = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| directory.path().join(name));
        let files = paths.iter().map(|path| File::create(path).unwrap()).collect();
        let mut outcomes = Outcomes::new(files);
        let before = fs::read_to_string(&paths[0]).unwrap();
        let ms = Time::from_millis;
        outcomes.count((0, Address::Station(1)), SendOutcome::Acknowledged, 3);
        outcomes.count((0, Address::Station(1)), SendOutcome::RetryLimit, 7);
        outcomes.count((0, Address::All), SendOutcome::Sent, 1);
        outcomes.write(ms(50));
        assert_eq!(fs::read_to_string(&paths[0]).unwrap(), before, "it is not due");
        outcomes.write(ms(100));
        let text = fs::read_to_string(&paths[0]).unwrap();
        assert_eq!(text.len(), before.len());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[0]), (lines[3], "00000000000000000002"));
        let words: Vec<&str> = lines[2].split(' ').collect();
        assert_eq!(words[0], "02:00:00:00:00:02");
        let numbers: Vec<u64> = words[1..].iter().map(|word| word.parse().unwrap()).collect();
        assert_eq!(numbers, [2, 8, 1]);
        assert!(fs::read_to_string(&paths[1]).unwrap().starts_with("00000000000000000001\n"));
    }
}
