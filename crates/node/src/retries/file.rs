//! Counters in a file that is continually rewritten in place, as by the lab.
//!
//! Its first line is a sequence number. A line per neighbour follows: its address, the frames that
//! the MAC has finished, their retransmissions, and how many of them were given up, all since the
//! start. The last line repeats the first; if the two differ, the file was read while being
//! written. If they differ persistently, nobody completes it, which is reported like a malformed
//! file.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::relay::Sent;

use super::Counters;
use crate::config::Mac;

/// Longest file in bytes: more neighbours than a relay has.
const BYTES_MAX: u64 = 1 << 16;
/// How often a file that is being written is read again before it is left for the next look.
const READS_MAX: u32 = 3;
/// For how long a file may be found being written at every look.
const TORN_MAX: Duration = Duration::from_secs(1);
/// Most characters of a malformed file that are shown.
const SHOWN_CHARS_MAX: usize = 40;

/// The file of counters.
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Since when every look has found it being written.
    torn_since: Option<Time>,
}

impl File {
    pub(super) fn new(path: &Path) -> Self {
        File { path: path.to_owned(), torn_since: None }
    }

    /// Its counters; `None` while it is being written.
    pub(super) fn look(&mut self, now: Time) -> Result<Option<Counters>, String> {
        let torn_since = self.torn_since.take();
        if let Some(counters) = read(&self.path)? {
            return Ok(Some(counters));
        }
        let since = *self.torn_since.insert(torn_since.unwrap_or(now));
        if now.since(since) < TORN_MAX {
            return Ok(None);
        }
        let seconds = TORN_MAX.as_secs();
        Err(format!("first and last line have differed for {seconds} s, expected the same line"))
    }
}

/// The counters in a file; `None` while it is being written.
fn read(path: &Path) -> Result<Option<Counters>, String> {
    for _ in 0..READS_MAX {
        if let Some(counters) = parse(&text_of(path)?)? {
            return Ok(Some(counters));
        }
    }
    Ok(None)
}

fn text_of(path: &Path) -> Result<String, String> {
    // Opening a FIFO would block, and the node with it, until it has a writer.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open(path).map_err(|error| error.to_string())?;
    if !file.metadata().map_err(|error| error.to_string())?.is_file() {
        return Err("expected a regular file".to_owned());
    }
    let mut text = String::new();
    // Its length may have changed by now.
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    match read.map_err(|error| error.to_string())? as u64 {
        0..=BYTES_MAX => Ok(text),
        _ => Err(format!("file too long: expected at most {BYTES_MAX} bytes")),
    }
}

/// The counters in a text; `None` if it was being written.
fn parse(text: &str) -> Result<Option<Counters>, String> {
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

/// An address and its counters; or what is wrong, and what was expected.
fn line_of(line: &str) -> Result<(Mac, Sent), (&str, String)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [mac, frames, retries, failed] = words[..] else {
        return Err((line, "an address and three counters".to_owned()));
    };
    let number = |word| {
        let expected = || (word, format!("a counter from 0 to {}", u64::MAX));
        str::parse(word).map_err(|_| expected())
    };
    let expected = |_| (mac, "a unicast MAC address such as 02:00:00:00:00:02".to_owned());
    let mac = mac.parse().map_err(expected)?;
    let sent = Sent { frames: number(frames)?, retries: number(retries)?, failed: number(failed)? };
    if sent.failed > sent.frames {
        let frames = sent.frames;
        return Err((failed, format!("at most {frames}, the number of frames")));
    }
    Ok((mac, sent))
}

/// The beginning of a text with arbitrary content.
fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(SHOWN_CHARS_MAX).collect();
    let more = if chars.next().is_some() { "..." } else { "" };
    format!("{}{more}", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(said("2 1 2 0").starts_with("line 2: 2: expected a unicast MAC address such as"));
        assert_eq!(
            said(&format!("{MAC} 5 9 6")),
            "line 2: 6: expected at most 5, the number of frames"
        );
        assert_eq!(
            said(&format!("{MAC} 5 9 5\n{MAC} 5 9 5")),
            format!("line 3: {MAC}: expected one line for each address")
        );
        // Of arbitrary content no more is shown than fits on a line.
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
        // There is no writer, and nothing waits for one.
        assert!(read(&path).unwrap_err().ends_with("expected a regular file"));
        assert!(read(Path::new("/dev/zero")).unwrap_err().ends_with("expected a regular file"));

        let path = directory.path().join("retries");
        let first = "1".repeat((BYTES_MAX as usize - 2) / 2);
        let fits = format!("{first}\n{first}\n");
        assert_eq!(fits.len() as u64, BYTES_MAX);
        std::fs::write(&path, &fits).unwrap();
        assert_eq!(read(&path), Ok(Some(BTreeMap::new())));
        std::fs::write(&path, fits + "\n").unwrap();
        assert_eq!(read(&path).unwrap_err(), "file too long: expected at most 65536 bytes");
    }
}
