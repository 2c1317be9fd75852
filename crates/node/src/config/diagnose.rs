//! Points at the place in the file that an error is about.
//!
//! Everything is found by dotted path (`coding.block_size`, `peer.1.role`), so that the checks of
//! this crate and those of the station speak of the same thing in the same way.

use std::ops::Range;

use corridor_proto::ConfigError;
use miette::{Diagnostic, NamedSource, SourceSpan};
use toml::de::{DeTable, DeValue};

use super::keys;

/// Names further apart than this are not what was meant.
const SIMILARITY_MIN: f64 = 0.5;
/// A value longer than this is not repeated in a message.
const GIVEN_LEN_MAX: usize = 40;
/// So many hexadecimal digits in a row may be a key.
const DIGITS_SECRET: usize = 24;

/// What is wrong with a configuration file, and where.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct ConfigDiagnostic {
    message: String,
    #[source_code]
    source_code: NamedSource<String>,
    #[label("{label}")]
    span: SourceSpan,
    label: String,
    #[help]
    help: Option<String>,
    line: usize,
    column: usize,
}

impl ConfigDiagnostic {
    /// Line of the offending text, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column of the offending text in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }
}

/// Something wrong, still without its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Problem {
    /// Dotted path of the value, or of the table it is missing from.
    pub(crate) path: String,
    /// What is wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Problem { path: path.into(), message: message.into(), help: None }
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Problem { help: Some(help.into()), ..self }
    }
}

/// The text of a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// Its path, as the user gave it.
    pub(crate) name: String,
    /// What it says.
    pub(crate) text: String,
}

impl Document {
    /// Reads the document as `T`; names that do not exist, and those that are missing, first.
    pub(crate) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Box<ConfigDiagnostic>> {
        let table = DeTable::parse(&self.text).map_err(|error| self.syntax(&error))?;
        self.check_names(table.get_ref(), "")?;
        toml::from_str(&self.text).map_err(|error| self.value(table.get_ref(), &error))
    }

    /// A problem of this document, at its place.
    pub(crate) fn locate(&self, problem: Problem) -> Box<ConfigDiagnostic> {
        let span = DeTable::parse(&self.text)
            .map_or(0..0, |table| self.span_of(table.get_ref(), &problem.path));
        self.diagnostic(problem.message, span, "here".into(), problem.help)
    }

    /// An error of the station's own check, at its place.
    pub(crate) fn locate_config_error(&self, error: &ConfigError) -> Box<ConfigDiagnostic> {
        let path = match error.field {
            "peer.id" => self.peer_of_id(&error.given),
            "underlay MTU" if self.has("underlay.mtu") => "underlay.mtu".into(),
            "underlay MTU" => "underlay".into(),
            field => field.to_owned(),
        };
        let span =
            DeTable::parse(&self.text).map_or(0..0, |table| self.span_of(table.get_ref(), &path));
        let label = format!("expected {}", error.expected);
        self.diagnostic(error.to_string(), span, label, None)
    }

    fn has(&self, path: &str) -> bool {
        DeTable::parse(&self.text).is_ok_and(|table| lookup(table.get_ref(), path).is_some())
    }

    /// The last peer of this number: of two the second is the one that is wrong.
    fn peer_of_id(&self, id: &str) -> String {
        let Ok(table) = DeTable::parse(&self.text) else { return "peer".into() };
        (0..table
            .get_ref()
            .get("peer")
            .and_then(|peers| peers.get_ref().as_array())
            .map_or(0, |a| a.len()))
            .rev()
            .map(|index| format!("peer.{index}.id"))
            .find(|path| {
                lookup(table.get_ref(), path).is_some_and(|span| self.text.get(span) == Some(id))
            })
            .unwrap_or_else(|| "peer".into())
    }

    /// Where a path is in the text; for what is not there, the table it is missing from.
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

    fn check_names(&self, table: &DeTable<'_>, path: &str) -> Result<(), Box<ConfigDiagnostic>> {
        let Some(known) = keys::table(&without_indices(path)) else { return Ok(()) };
        for (name, value) in table.iter() {
            if !known.keys.iter().any(|key| key.name == name.get_ref()) {
                return Err(self.unknown(known, name.get_ref(), name.span()));
            }
            let path = join(path, name.get_ref());
            match value.get_ref() {
                DeValue::Table(table) => self.check_names(table, &path)?,
                DeValue::Array(array) => {
                    for (index, value) in array.iter().enumerate() {
                        if let DeValue::Table(table) = value.get_ref() {
                            self.check_names(table, &format!("{path}.{index}"))?;
                        }
                    }
                }
                _ => {}
            }
        }
        match known.keys.iter().find(|key| key.required && !table.contains_key(key.name)) {
            Some(missing) => Err(self.locate(Problem::new(
                path,
                format!(
                    "{} is missing: expected {}",
                    without_indices(&join(path, missing.name)),
                    missing.expected
                ),
            ))),
            None => Ok(()),
        }
    }

    fn unknown(
        &self,
        table: &keys::Table,
        name: &str,
        span: Range<usize>,
    ) -> Box<ConfigDiagnostic> {
        let names = table.keys.iter().map(|key| key.name);
        let elsewhere = keys::TABLES
            .iter()
            .find(|other| !other.name.is_empty() && other.keys.iter().any(|key| key.name == name));
        let help = match (nearest(name, names.clone()), elsewhere) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(other)) => format!("`{name}` belongs to [{}]", other.name),
            (None, None) => format!("known are {}", names.collect::<Vec<_>>().join(", ")),
        };
        let message = match table.name {
            "" => format!("`{name}` is not known"),
            table => format!("`{name}` is not known in [{table}]"),
        };
        self.diagnostic(message, span, "not known".into(), Some(help))
    }

    /// An error of the TOML syntax.
    fn syntax(&self, error: &toml::de::Error) -> Box<ConfigDiagnostic> {
        let span = error.span().unwrap_or(0..0);
        self.diagnostic(error.message().to_owned(), span, "not valid TOML".into(), None)
    }

    /// A value of the wrong type, or outside of its type's range.
    fn value(&self, table: &DeTable<'_>, error: &toml::de::Error) -> Box<ConfigDiagnostic> {
        let span = error.span().unwrap_or(0..0);
        let path = without_indices(&path_of(table, &span));
        let Some(key) = keys::find(&path) else {
            return self.diagnostic(error.message().to_owned(), span, "here".into(), None);
        };
        let given = self.text.get(span.clone()).unwrap_or_default();
        let message = if path.starts_with("security.") || given.len() > GIVEN_LEN_MAX {
            format!("{path}: expected {}", key.expected)
        } else {
            format!("{path} = {given}: expected {}", key.expected)
        };
        let help = nearest(given.trim_matches(['"', '\'']), key.words.iter().copied())
            .map(|near| format!("did you mean \"{near}\"?"));
        self.diagnostic(message, span, format!("expected {}", key.expected), help)
    }

    fn diagnostic(
        &self,
        message: String,
        span: Range<usize>,
        label: String,
        help: Option<String>,
    ) -> Box<ConfigDiagnostic> {
        let before = self.text.get(..span.start).unwrap_or_default();
        Box::new(ConfigDiagnostic {
            message,
            source_code: NamedSource::new(&self.name, redact(&self.text)),
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
            span: span.into(),
            label,
            help,
        })
    }
}

/// The text with the pre-shared key blotted out, byte for byte, so that no log ever shows it:
/// whatever a line gives as `psk`, and any run of digits long enough to be one.
fn redact(text: &str) -> String {
    let blot = |line: &str| match line.find("psk").map(|at| line.split_at(at)) {
        Some((before, rest)) if !rest.starts_with("psk_file") && rest.contains('=') => {
            let (name, value) = rest.split_at(rest.find('=').unwrap_or_default());
            format!(
                "{before}{name}{}",
                value.replace(|char: char| char.is_ascii_alphanumeric(), "*")
            )
        }
        _ => blot_digits(line),
    };
    text.split_inclusive('\n').map(blot).collect()
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

/// Of `names` the one that `given` is probably a slip of.
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
pub(crate) fn without_indices(path: &str) -> String {
    let is_name = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    path.split('.').filter(is_name).collect::<Vec<_>>().join(".")
}

/// Where the value at a path is.
fn lookup(table: &DeTable<'_>, path: &str) -> Option<Range<usize>> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let value = table.get(first)?;
    lookup_value(value.get_ref(), value.span(), rest)
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

/// The path of the innermost value around a place.
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
            (!inner.is_empty()).then_some(inner)
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
