//! What the MAC of an interface did for each neighbour: how often it had to send again.
//!
//! It is read from a file that is rewritten in place all the time, as the lab does. It has a first
//! line with the number of the writing, a line for each neighbour (its address, frames that the
//! MAC is through with, transmissions of these beyond the first, and frames of them given up, all
//! since the beginning), and the first line again: where the two differ, it was read while it was
//! written. Where they go on to differ, nobody completes it, and that is told like a file that is
//! none of this kind.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::relay::Sent;

use crate::config::Mac;

/// How often it is looked: several times in the second in which retries are counted.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Longest file: more neighbours than a relay has.
const BYTES_MAX: u64 = 1 << 16;
/// Times that a file is read that is just being written, before it is left for the next look.
const READS_MAX: u32 = 3;
/// Time for which a file may be found being written at every look.
const TORN_MAX: Duration = Duration::from_secs(1);
/// Most characters of a file that are shown of what is wrong with it.
const SHOWN_CHARS_MAX: usize = 40;

/// The counters of an interface, looked at from time to time.
pub(crate) struct Retries {
    path: PathBuf,
    look_at: Time,
    /// What there was when it was looked last, of those that there were then.
    known: BTreeMap<Mac, Sent>,
    /// Since when each look has found it being written.
    torn_since: Option<Time>,
    /// Whether it was told that there is nothing.
    is_told: bool,
}

impl Retries {
    pub(crate) fn new(path: &Path, now: Time) -> Self {
        let path = path.to_owned();
        Retries { path, look_at: now, known: BTreeMap::new(), torn_since: None, is_told: false }
    }

    /// When to [look](Self::look) next.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.look_at
    }

    /// What has been added since the last look, for each neighbour. Why there is nothing is told
    /// once.
    pub(crate) fn look(&mut self, now: Time) -> Vec<(Mac, Sent)> {
        self.look_at = now + LOOK_INTERVAL;
        self.try_look(now).unwrap_or_else(|why| {
            if !core::mem::replace(&mut self.is_told, true) {
                let path = self.path.display();
                tracing::warn!("no retries of the interface from {path}: underlay.retries: {why}");
            }
            Vec::new()
        })
    }

    fn try_look(&mut self, now: Time) -> Result<Vec<(Mac, Sent)>, String> {
        let torn_since = self.torn_since.take();
        if let Some(counters) = read(&self.path)? {
            self.is_told = false;
            return Ok(self.added(counters));
        }
        let since = *self.torn_since.insert(torn_since.unwrap_or(now));
        if now.since(since) < TORN_MAX {
            return Ok(Vec::new());
        }
        let seconds = TORN_MAX.as_secs();
        Err(format!("for {seconds} s its first and last line differ: expected the same line"))
    }

    /// What is new in the counters. A neighbour's first ones say how long the interface has been
    /// up, and not what it does now.
    fn added(&mut self, counters: BTreeMap<Mac, Sent>) -> Vec<(Mac, Sent)> {
        let before = core::mem::replace(&mut self.known, counters);
        let since = |(mac, sent): (&Mac, &Sent)| Some((*mac, since(*sent, *before.get(mac)?)));
        let added = self.known.iter().filter_map(since);
        added.filter(|(_, sent)| *sent != Sent::default()).collect()
    }
}

/// What was added; counters that went back began anew.
fn since(now: Sent, before: Sent) -> Sent {
    let is_anew =
        now.frames < before.frames || now.retries < before.retries || now.failed < before.failed;
    let before = if is_anew { Sent::default() } else { before };
    Sent {
        frames: now.frames - before.frames,
        retries: now.retries - before.retries,
        failed: now.failed - before.failed,
    }
}

/// The counters in a file; `None` while it is being written.
fn read(path: &Path) -> Result<Option<BTreeMap<Mac, Sent>>, String> {
    for _ in 0..READS_MAX {
        if let Some(counters) = parse(&text_of(path)?)? {
            return Ok(Some(counters));
        }
    }
    Ok(None)
}

fn text_of(path: &Path) -> Result<String, String> {
    // Opening a FIFO waits for who writes, and the node with it, unless told not to.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(path).map_err(|error| error.to_string())?;
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("it is something else: expected a regular file".to_owned());
    }
    let mut text = String::new();
    // Its length may be another by now.
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    match read.map_err(|error| error.to_string())? as u64 {
        0..=BYTES_MAX => Ok(text),
        _ => Err(format!("it is longer: expected at most {BYTES_MAX} bytes")),
    }
}

/// The counters in a text; `None` if it was being written.
fn parse(text: &str) -> Result<Option<BTreeMap<Mac, Sent>>, String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop();
    if lines.is_empty() || last != lines.first().copied() {
        return Ok(None);
    }
    let mut counters = BTreeMap::new();
    for (index, line) in lines.iter().enumerate().skip(1) {
        let wrong = |(word, expected): (&str, String)| {
            format!("line {}: {}: expected {expected}", index + 1, shown(word))
        };
        let (mac, sent) = line_of(line).map_err(wrong)?;
        if counters.insert(mac, sent).is_some() {
            return Err(wrong((&mac.to_string(), "one line for each address".to_owned())));
        }
    }
    Ok(Some(counters))
}

/// An address and its counters; what is wrong, and what was expected in its place.
fn line_of(line: &str) -> Result<(Mac, Sent), (&str, String)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [mac, frames, retries, failed] = words[..] else {
        return Err((line, "an address and three counters".to_owned()));
    };
    let number = |word| {
        let expected = || (word, format!("a counter from 0 to {}", u64::MAX));
        str::parse(word).map_err(|_| expected())
    };
    let expected = |_| (mac, "an address of one station, as 02:00:00:00:00:02".to_owned());
    let mac = mac.parse().map_err(expected)?;
    let sent = Sent { frames: number(frames)?, retries: number(retries)?, failed: number(failed)? };
    if sent.failed > sent.frames {
        let frames = sent.frames;
        return Err((failed, format!("at most {frames}, the frames that it is through with")));
    }
    Ok((mac, sent))
}

/// The beginning of a text that may be anything.
fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS_MAX).collect();
    let more = if chars.next().is_some() { "..." } else { "" };
    format!("{}{more}", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(writing: u64, frames: u64, retries: u64, failed: u64) -> String {
        format!("{writing}\n02:00:00:00:00:02 {frames} {retries} {failed}\n{writing}\n")
    }

    #[test]
    fn what_is_added_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("retries");
        let mut retries = Retries::new(&path, Time::ZERO);
        assert!(retries.look(Time::ZERO).is_empty(), "there is no file");
        assert_eq!(retries.poll_timeout(), Time::ZERO + LOOK_INTERVAL);
        let look = |retries: &mut Retries, text: String| {
            std::fs::write(&path, text).unwrap();
            retries.look(Time::ZERO).into_iter().map(|(_, sent)| sent).collect::<Vec<_>>()
        };
        let sent = |frames, retries, failed| vec![Sent { frames, retries, failed }];
        // All that was before it was looked.
        assert_eq!(look(&mut retries, text(1, 10, 4, 1)), vec![]);
        assert_eq!(look(&mut retries, text(1, 10, 4, 1)), vec![]);
        assert_eq!(look(&mut retries, text(2, 15, 5, 1)), sent(5, 1, 0));
        // The interface was made anew.
        assert_eq!(look(&mut retries, text(3, 2, 1, 0)), sent(2, 1, 0));
        // It is being written.
        assert_eq!(look(&mut retries, "4\n02:00:00:00:00:02 9 9 9\n3\n".to_owned()), vec![]);
        // Who left and comes again is new, and who left is forgotten.
        assert_eq!(look(&mut retries, "5\n5\n".to_owned()), vec![]);
        assert!(retries.known.is_empty());
        assert_eq!(look(&mut retries, text(6, 20, 8, 1)), vec![]);
        assert_eq!(look(&mut retries, text(7, 21, 8, 1)), sent(1, 0, 0));
    }

    #[test]
    fn what_is_no_file_of_counters_is_told_with_its_line() {
        const MAC: &str = "02:00:00:00:00:02";
        let said = |lines: &str| parse(&format!("1\n{lines}\n1\n")).unwrap_err();
        assert_eq!(said("x"), "line 2: x: expected an address and three counters");
        let expected = "expected an address and three counters";
        assert_eq!(said(&format!("{MAC} 1 2")), format!("line 2: {MAC} 1 2: {expected}"));
        assert!(
            said(&format!("{MAC} 1 2 -3")).starts_with("line 2: -3: expected a counter from 0")
        );
        assert!(said("2 1 2 0").starts_with("line 2: 2: expected an address of one station, as"));
        assert_eq!(
            said(&format!("{MAC} 5 9 6")),
            "line 2: 6: expected at most 5, the frames that it is through with"
        );
        assert_eq!(
            said(&format!("{MAC} 5 9 5\n{MAC} 5 9 5")),
            format!("line 3: {MAC}: expected one line for each address")
        );
        // Of what may be anything, no more is told than fits a line.
        let long = said(&"\u{1b}".repeat(60_000));
        assert!(long.len() < 400 && !long.contains('\u{1b}'), "{long}");
        assert!(matches!(parse("1\n1\n"), Ok(Some(counters)) if counters.is_empty()));
        assert!(matches!(parse(""), Ok(None)));
    }

    #[test]
    fn only_a_file_of_some_length_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // Nobody writes, and nobody waits for that.
        assert!(read(&path).unwrap_err().ends_with("expected a regular file"));
        assert!(read(Path::new("/dev/zero")).unwrap_err().ends_with("expected a regular file"));

        let path = directory.path().join("retries");
        let first = "1".repeat((BYTES_MAX as usize - 2) / 2);
        let fits = format!("{first}\n{first}\n");
        assert_eq!(fits.len() as u64, BYTES_MAX);
        std::fs::write(&path, &fits).unwrap();
        assert_eq!(read(&path), Ok(Some(BTreeMap::new())));
        std::fs::write(&path, fits + "\n").unwrap();
        assert_eq!(read(&path).unwrap_err(), "it is longer: expected at most 65536 bytes");
    }

    #[test]
    fn a_file_that_nobody_completes_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("retries");
        let mut retries = Retries::new(&path, Time::ZERO);
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        // Its last line is missing.
        std::fs::write(&path, "1\n02:00:00:00:00:02 9 9 9\n").unwrap();
        assert_eq!(retries.try_look(at(0)), Ok(vec![]));
        assert_eq!(retries.try_look(at(900)), Ok(vec![]));
        let why = retries.try_look(at(1_000)).unwrap_err();
        assert_eq!(why, "for 1 s its first and last line differ: expected the same line");
        assert!(retries.look(at(1_100)).is_empty() && retries.is_told);
        // Told is told, until there is something.
        assert!(retries.look(at(1_200)).is_empty() && retries.is_told);
        std::fs::write(&path, text(2, 1, 0, 0)).unwrap();
        assert!(retries.look(at(1_300)).is_empty() && !retries.is_told);
        // It is written now and then: no second in a row.
        std::fs::write(&path, "3\n").unwrap();
        assert_eq!(retries.try_look(at(1_400)), Ok(vec![]));
        assert_eq!(retries.try_look(at(2_300)), Ok(vec![]));
    }
}
