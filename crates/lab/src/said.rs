//! The last messages of a child process, from a file, for an error message.

use std::fs;
use std::path::Path;

/// Bytes to show.
const TAIL_BYTES: usize = 2_000;

/// The end of a file, as text without colours.
pub(crate) fn tail(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    let start = bytes.len().saturating_sub(TAIL_BYTES);
    let text = plain(&String::from_utf8_lossy(&bytes[start..]));
    if text.trim().is_empty() { "(nothing)".to_owned() } else { text.trim_end().to_owned() }
}

/// A text without escape sequences for a terminal's colours: an escape and a bracket, up to a
/// letter.
fn plain(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |mut out, piece| {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
        out.push_str(&piece[end..]);
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out_and_words_are_not() {
        for (said, shown) in [
            ("plain [m] text", "plain [m] text"),
            ("\x1b[32m[INFO]\x1b[0m up\n\x1b[1;31mdown\x1b[0m", "[INFO] up\ndown"),
            ("cut \x1b[3", "cut "),
        ] {
            assert_eq!(plain(said), shown);
        }
    }

    #[test]
    fn the_end_of_a_file_is_what_is_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(tail(file.path()), "(nothing)");
        fs::write(file.path(), "a".repeat(TAIL_BYTES) + "the end\n").unwrap();
        let shown = tail(file.path());
        assert!(shown.ends_with("athe end") && shown.len() == TAIL_BYTES - 1, "{shown}");
        assert_eq!(tail(Path::new("/no/such/file")), "(nothing)");
    }
}
