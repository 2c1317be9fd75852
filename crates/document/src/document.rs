//! Reads a file, and finds the place that an error refers to.
//!
//! Places are dotted paths (`coding.block_size`, `peer.1.role`), so that serde's errors, the
//! crates' checks and those of the protocol refer to values in the same way.

use core::ops::Range;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};
use zeroize::Zeroizing;

use crate::diagnostic::{Diagnostic, Severity};
use crate::schema::{Key, Schema, Table};

/// Maximum edit distance of a suggested name.
const SIMILARITY_MIN: f64 = 0.5;
/// Longer values are not repeated in messages.
const GIVEN_LEN_MAX: usize = 40;
/// A run of at least this many hexadecimal digits may be a key.
const DIGITS_SECRET: usize = 24;
/// A run of at least this many base64 characters may be a key.
const BASE64_SECRET: usize = 40;

/// An error that has not been located in the text yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Dotted path of the value, or of the table from which it is missing.
    pub path: String,
    /// The message.
    pub message: String,
    /// How to correct it.
    pub help: Option<String>,
}

impl Problem {
    /// An error about the value at a dotted path.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { path: path.into(), message: message.into(), help: None }
    }

    /// Adds how to correct it.
    pub fn with_help(self, help: impl Into<String>) -> Self {
        Problem { help: Some(help.into()), ..self }
    }
}

/// The text of a file; erased when dropped, because it may contain a key.
#[derive(Clone, PartialEq)]
pub struct Document {
    name: String,
    text: Zeroizing<String>,
}

impl core::fmt::Debug for Document {
    /// Only its name: the text may contain a key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Document({})", self.name)
    }
}

impl Document {
    /// A file, under the name that its user gave.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Document { name: name.into(), text: Zeroizing::new(text.into()) }
    }

    /// The document with every key in it masked, byte for byte, so that positions stay the same.
    pub fn without_secrets(&self) -> Self {
        Document { name: self.name.clone(), text: Zeroizing::new(redact(&self.text)) }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the file as `T`; unknown and missing names are reported first.
    ///
    /// # Errors
    /// The first place that is not TOML, or that `T` does not accept.
    pub fn read<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Box<Diagnostic>> {
        self.read_as(&Schema::of::<T>(), true)
    }

    /// Reads the file as `T`, some of which may come from elsewhere: nothing counts as missing
    /// unless serde says so.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_part<T: DeserializeOwned + JsonSchema>(&self) -> Result<T, Box<Diagnostic>> {
        self.read_as(&Schema::of::<T>(), false)
    }

    fn read_as<T: DeserializeOwned>(
        &self,
        schema: &Schema,
        is_whole: bool,
    ) -> Result<T, Box<Diagnostic>> {
        let table = DeTable::parse(&self.text).map_err(|error| self.syntax(&error))?;
        let checked = Names { document: self, schema, is_whole };
        checked.check(schema.root(), table.get_ref(), "")?;
        toml::from_str(&self.text).map_err(|error| self.value(schema, table.get_ref(), &error))
    }

    /// An error about this file, at its place: that of the surrounding table if the value is
    /// absent.
    pub fn locate(&self, problem: Problem) -> Box<Diagnostic> {
        self.at(Severity::Error, problem)
    }

    /// A warning: the file can be used nevertheless.
    pub fn warn(&self, problem: Problem) -> Box<Diagnostic> {
        self.at(Severity::Warning, problem)
    }

    /// The text of the value at a path, as written in the file.
    pub fn given(&self, path: &str) -> Option<&str> {
        let table = DeTable::parse(&self.text).ok()?;
        self.text.get(lookup(table.get_ref(), path)?)
    }

    fn at(&self, severity: Severity, problem: Problem) -> Box<Diagnostic> {
        let span = DeTable::parse(&self.text)
            .map_or(0..0, |table| self.span_of(table.get_ref(), &problem.path));
        self.diagnostic(severity, problem.message, span, problem.help)
    }

    /// The position of a path in the text; of an absent value, that of the table from which it is
    /// missing.
    fn span_of(&self, table: &DeTable<'_>, path: &str) -> Range<usize> {
        let mut path = path;
        loop {
            if let Some(span) = lookup(table, path) {
                return span;
            }
            match path.rsplit_once('.') {
                Some((parent, _)) => path = parent,
                None => return 0..0,
            }
        }
    }

    /// An error of the TOML syntax.
    fn syntax(&self, error: &toml::de::Error) -> Box<Diagnostic> {
        let span = self.visible(error.span().unwrap_or(0..0));
        let message = format!("not TOML: {}", error.message());
        self.diagnostic(Severity::Error, message, span, None)
    }

    /// A value of the wrong type, or outside of its type's range.
    fn value(
        &self,
        schema: &Schema,
        table: &DeTable<'_>,
        error: &toml::de::Error,
    ) -> Box<Diagnostic> {
        let span = error.span().unwrap_or(0..0);
        let path = without_indices(&path_of(table, &span));
        let Some(key) = schema.key(&path) else {
            let message = error.message().to_owned();
            return self.diagnostic(Severity::Error, message, self.visible(span), None);
        };
        let given = self.text.get(span.clone()).unwrap_or_default();
        let message = wrong(&path, given, key);
        let help = nearest(given.trim_matches(['"', '\'']), words(key))
            .map(|near| format!("did you mean \"{near}\"?"));
        self.diagnostic(Severity::Error, message, span, help)
    }

    /// A span of at least one byte, if there is one.
    fn visible(&self, span: Range<usize>) -> Range<usize> {
        if !span.is_empty() {
            return span;
        }
        let last = self.text.trim_end().len().saturating_sub(1);
        let start = span.start.min(last);
        start..start + 1
    }

    fn diagnostic(
        &self,
        severity: Severity,
        message: String,
        span: Range<usize>,
        help: Option<String>,
    ) -> Box<Diagnostic> {
        let text = redact(&self.text);
        Box::new(Diagnostic::new(severity, &self.name, &text, span, message, help))
    }
}

/// Checks that all names of a file exist, and that none is missing.
struct Names<'a> {
    document: &'a Document,
    schema: &'a Schema,
    is_whole: bool,
}

impl Names<'_> {
    fn check(&self, known: &Table, table: &DeTable<'_>, path: &str) -> Result<(), Box<Diagnostic>> {
        for (name, value) in table.iter() {
            let Some(key) = known.key(name.get_ref()) else {
                match known.is_open {
                    true => continue,
                    false => return Err(self.unknown(known, name.get_ref(), name.span())),
                }
            };
            let Some(inner) = &key.table else { continue };
            let path = join(path, name.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.check(inner, table, &path)?,
                DeValue::Array(array) => {
                    for (index, value) in array.iter().enumerate() {
                        if let DeValue::Table(table) = value.get_ref() {
                            self.check(inner, table, &format!("{path}.{index}"))?;
                        }
                    }
                }
                _ => {}
            }
        }
        let missing = known
            .keys
            .iter()
            .find(|key| self.is_whole && key.is_required && !table.contains_key(key.name.as_str()));
        match missing {
            Some(key) => Err(self.document.locate(Problem::new(
                path,
                format!(
                    "{} is missing: expected {}",
                    without_indices(&join(path, &key.name)),
                    key.expected
                ),
            ))),
            None => Ok(()),
        }
    }

    fn unknown(&self, table: &Table, name: &str, span: Range<usize>) -> Box<Diagnostic> {
        let names = table.keys.iter().map(|key| key.name.as_str());
        let tables = self.schema.tables();
        let elsewhere =
            tables.iter().find(|other| !other.path.is_empty() && other.key(name).is_some());
        let help = match (nearest(name, names.clone()), elsewhere) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(other)) => format!("`{name}` belongs to [{}]", other.path),
            (None, None) => format!("known keys: {}", names.collect::<Vec<_>>().join(", ")),
        };
        let message = match table.path.as_str() {
            "" => format!("`{name}` is not known"),
            table => format!("`{name}` is not known in [{table}]"),
        };
        self.document.diagnostic(Severity::Error, message, span, Some(help))
    }
}

/// `path = given: expected ...`, without long or secret values.
fn wrong(path: &str, given: &str, key: &Key) -> String {
    let is_secret = path.contains("psk") || path.contains("private_key");
    let is_shown = !is_secret && given.len() <= GIVEN_LEN_MAX && !given.contains('\n');
    let given = if is_shown && !given.is_empty() { format!(" = {given}") } else { String::new() };
    format!("{path}{given}: expected {}", key.expected)
}

fn words(key: &Key) -> impl Iterator<Item = &str> {
    key.words.iter().map(|(word, _)| word.as_str())
}

/// The text with keys masked, byte for byte, so that no log ever shows them: all values of `psk`
/// and `private_key`, and any run of digits long enough to be a key. Where a file name is expected,
/// only what looks like a key.
fn redact(text: &str) -> String {
    let blot = |line: &str| {
        let secret = ["psk", "private_key"].iter().filter_map(|name| line.find(name)).min();
        match secret.map(|at| line.split_at(at)) {
            Some((_, rest)) if rest.starts_with("psk_file") => blot_digits(line),
            Some((_, rest)) if rest.starts_with("private_key_file") => blot_base64(line),
            Some((before, rest)) if rest.contains('=') => {
                let (name, value) = rest.split_at(rest.find('=').unwrap_or_default());
                let value = value.replace(|char: char| char.is_ascii_alphanumeric(), "*");
                format!("{before}{name}{value}")
            }
            _ => blot_digits(line),
        }
    };
    text.split_inclusive('\n').map(blot).collect()
}

fn blot_base64(line: &str) -> String {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut line = line.as_bytes().to_vec();
    for run in line.chunk_by_mut(|&a, &b| is_base64(a) == is_base64(b)) {
        if run.len() >= BASE64_SECRET && is_base64(run[0]) {
            run.fill(b'*');
        }
    }
    String::from_utf8_lossy(&line).into_owned()
}

fn blot_digits(line: &str) -> String {
    let mut line = line.as_bytes().to_vec();
    for run in line.chunk_by_mut(|a, b| a.is_ascii_hexdigit() == b.is_ascii_hexdigit()) {
        if run.len() >= DIGITS_SECRET && run[0].is_ascii_hexdigit() {
            run.fill(b'*');
        }
    }
    String::from_utf8_lossy(&line).into_owned()
}

/// The name of `names` of which `given` is probably a misspelling.
fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::normalized_damerau_levenshtein(given, name), name))
        .filter(|&(similarity, _)| similarity >= SIMILARITY_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// `peer.1.id` as `peer.id`.
pub fn without_indices(path: &str) -> String {
    let is_name = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    path.split('.').filter(is_name).collect::<Vec<_>>().join(".")
}

/// The position of the value at a path. A name may contain dots itself, as those of sweeps do.
fn lookup(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    if let Some(value) = table.get(path) {
        return Some(value.span());
    }
    path.match_indices('.').find_map(|(at, _)| {
        let value = table.get(&path[..at])?;
        lookup_value(value.get_ref(), value.span(), &path[at + 1..])
    })
}

fn lookup_value(value: &DeValue<'_>, span: Range<usize>, path: &str) -> Option<Range<usize>> {
    if path.is_empty() {
        return Some(span);
    }
    match value {
        DeValue::Table(table) => lookup(table, path),
        DeValue::Array(array) => {
            let (first, rest) = path.split_once('.').unwrap_or((path, ""));
            let value = array.get(first.parse::<usize>().ok()?)?;
            lookup_value(value.get_ref(), value.span(), rest)
        }
        _ => None,
    }
}

/// The path of the innermost value around a position.
fn path_of(table: &DeTable<'_>, place: &Range<usize>) -> String {
    for (name, value) in table.iter() {
        if let Some(path) = path_within(value.get_ref(), &value.span(), place) {
            return join_path(name.get_ref(), &path);
        }
    }
    String::new()
}

fn path_within(value: &DeValue<'_>, span: &Range<usize>, place: &Range<usize>) -> Option<String> {
    match value {
        DeValue::Table(table) => {
            let inner = path_of(table, place);
            // If a value was expected, the error is about the table itself.
            let whole = span == place && !place.is_empty();
            if inner.is_empty() { whole.then(String::new) } else { Some(inner) }
        }
        DeValue::Array(array) => {
            let inside = array.iter().enumerate().find_map(|(index, value)| {
                let path = path_within(value.get_ref(), &value.span(), place)?;
                Some(join_path(&index.to_string(), &path))
            });
            inside.or_else(|| around(span, place))
        }
        _ => around(span, place),
    }
}

fn around(span: &Range<usize>, place: &Range<usize>) -> Option<String> {
    (span.start <= place.start && place.end <= span.end).then(String::new)
}

fn join_path(name: &str, rest: &str) -> String {
    if rest.is_empty() { name.to_owned() } else { format!("{name}.{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct File {
        #[schemars(range(min = 1, max = 254))]
        id: u8,
        medium: Medium,
        #[serde(default)]
        run: Vec<Run>,
        #[serde(default)]
        #[schemars(with = "Vec<std::collections::BTreeMap<String, serde_json::Value>>")]
        sweep: Vec<toml::Table>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Medium {
        #[serde(deserialize_with = "crate::rate::whole")]
        #[schemars(with = "crate::rate::Rate")]
        rate_bps: u64,
        #[serde(default)]
        names: Vec<String>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Run {
        path: Path,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Path {
        Kernel,
        Coded,
    }

    const SOUND: &str = "id = 7\n[medium]\nrate_bps = 1000\n[[run]]\npath = 'kernel'\n";

    fn complaint(text: &str) -> String {
        let said = Document::new("f.toml", text).read::<File>();
        said.map_or_else(|said| said.to_string(), |_| "sound".into())
    }

    #[test]
    fn the_usual_mistakes_have_a_place_and_what_was_expected() {
        assert_eq!(complaint(SOUND), "sound");
        for (from, to, said) in [
            ("[medium]", "[mediun]", "f.toml:2:2: `mediun` is not known (did you mean `medium`?)"),
            (
                "path =",
                "rate_bps = 1\npath =",
                "f.toml:5:1: `rate_bps` is not known in [run] (`rate_bps` belongs to [medium])",
            ),
            ("path =", "zzzz =", "f.toml:5:1: `zzzz` is not known in [run] (known keys: path)"),
            (
                "'kernel'",
                "'kernl'",
                "f.toml:5:8: run.path = 'kernl': expected \"kernel\" or \"coded\" (did you mean \
                 \"kernel\"?)",
            ),
            (
                "1000",
                "'fast'",
                "f.toml:3:12: medium.rate_bps = 'fast': expected bits per second, such as 10000000, \
                 \"10M\", \"1.5G\" or \"500k\"",
            ),
            ("id = 7", "id = 256", "f.toml:1:6: id = 256: expected a whole number from 1 to 254"),
            (
                "rate_bps = 1000\n",
                "",
                "f.toml:2:1: medium.rate_bps is missing: expected bits per \
                 second, such as 10000000, \"10M\", \"1.5G\" or \"500k\"",
            ),
            ("id = 7\n", "", "f.toml: id is missing: expected a whole number from 1 to 254"),
            (
                "id = 7",
                "id = ",
                "f.toml:1:6: not TOML: string values must be quoted, expected \
                 literal string",
            ),
            (
                "rate_bps = 1000",
                "rate_bps = 1000\nnames = [1]",
                "f.toml:4:10: medium.names = 1: expected a list of values, each a string",
            ),
        ] {
            assert!(SOUND.contains(from), "{from}");
            assert_eq!(complaint(&SOUND.replace(from, to)), said);
        }
    }

    #[test]
    fn a_part_may_lack_what_comes_from_elsewhere() {
        let sweep = "[[sweep]]\n'medium.rate_bps' = [1]\nrun.0.path = []\n";
        let document = Document::new("f.toml", format!("{SOUND}{sweep}"));
        assert!(document.read_part::<File>().is_ok());
        assert_eq!(document.given("sweep.0.medium.rate_bps"), Some("[1]"));
        assert_eq!(document.given("sweep.0.run.0.path"), Some("[]"));
        assert_eq!(document.given("run.1.path"), None);
        let warning = document.warn(Problem::new("run.0.path", "so so").with_help("do"));
        assert_eq!(warning.to_string(), "f.toml:5:8: so so (do)");
    }

    #[test]
    fn no_text_panics() {
        for end in 0..SOUND.len() {
            let _ = complaint(&SOUND[..end]);
            let _ = complaint(&SOUND[end..]);
        }
    }
}
