//! An error or warning about a file, with its place: one line, and the line of the file.

use core::fmt;
use core::ops::Range;

/// Longest line of a file that is shown, characters.
const SHOWN_CHARS_MAX: usize = 100;

/// Whether a file can be used nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but something in it does not do what its author may expect.
    Warning,
}

/// An error or warning about a file, with its place.
///
/// Displayed as one line, `node.toml:3:8: message (help)`; [`render`](Self::render) adds the line
/// of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    severity: Severity,
    file: String,
    message: String,
    help: Option<String>,
    place: Option<Place>,
}

#[derive(Clone, Debug, PartialEq)]
struct Place {
    line: usize,
    column: usize,
    /// Number of characters concerned, from the column on; at least one.
    len: usize,
    text: String,
}

impl Diagnostic {
    /// `text` is that of the file, with its secrets masked; an empty span has no place.
    pub(crate) fn new(
        severity: Severity,
        file: &str,
        text: &str,
        span: Range<usize>,
        message: String,
        help: Option<String>,
    ) -> Self {
        let place = (span.start < text.len() && !span.is_empty()).then(|| Place::of(text, &span));
        Diagnostic { severity, file: file.to_owned(), message, help, place }
    }

    /// Whether the file can be used nevertheless.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The file, as the user named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Line of the offending text, from 1; `None` if the error has no place.
    pub fn line(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.line)
    }

    /// Column of the offending text in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.place.as_ref().map(|place| place.column)
    }

    /// The message: the key, its value, and what was expected.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to correct it.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Several lines: the message, the line of the file, and how to correct it.
    pub fn render(&self) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut said = format!("{severity}: {}{}", self.location(), self.message);
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let before = " ".repeat(place.column - 1);
            let mark = "^".repeat(place.len);
            said += &format!("\n  {number} | {}\n  {margin} | {before}{mark}", place.text);
        }
        if let Some(help) = &self.help {
            said += &format!("\n  help: {help}");
        }
        said
    }

    fn location(&self) -> String {
        match &self.place {
            Some(place) => format!("{}:{}:{}: ", self.file, place.line, place.column),
            None => format!("{}: ", self.file),
        }
    }
}

impl Place {
    fn of(text: &str, span: &Range<usize>) -> Self {
        let before = text.get(..span.start).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        let inside = text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
        let shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
        let room = (shown.chars().count() + 1).saturating_sub(column).max(1);
        Place {
            line: before.matches('\n').count() + 1,
            column,
            len: inside.chars().count().clamp(1, room),
            text: shown.replace(char::is_control, " "),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.location(), self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_shown_with_what_it_is_about() {
        let text = "[station]\nid = 300\n";
        let said = Diagnostic::new(
            Severity::Error,
            "node.toml",
            text,
            15..18,
            "station.id = 300: expected 1 to 254".into(),
            Some("numbers are small".into()),
        );
        assert_eq!(
            said.render(),
            "error: node.toml:2:6: station.id = 300: expected 1 to 254\n  2 | id = 300\n    |      \
             ^^^\n  help: numbers are small"
        );
        assert_eq!(
            said.to_string(),
            "node.toml:2:6: station.id = 300: expected 1 to 254 (numbers are small)"
        );
    }

    #[test]
    fn any_span_can_be_shown() {
        let text = "a = 'ä\tö'\nb = '''x\ny'''\n";
        for start in 0..=text.len() + 1 {
            for end in start..=text.len() + 1 {
                let said =
                    Diagnostic::new(Severity::Warning, "f", text, start..end, "m".into(), None);
                assert!(said.render().starts_with("warning: f"), "{said}");
            }
        }
        let long = format!("a = '{}'", "x".repeat(1_000));
        let said = Diagnostic::new(Severity::Error, "f", &long, 4..1_007, "m".into(), None);
        assert!(said.render().lines().all(|line| line.len() < 120), "{}", said.render());
    }
}
