//! tunnel.json: written after every repeat, and read to resume.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::judge::{Judged, checks};
use super::{Failure, Rows, picture};
use corridor_results::checks::Check;

/// Name of the file with all measurements.
pub(super) const NAME: &str = "tunnel.json";
/// Name of the plot.
const PICTURE_NAME: &str = "tunnel.svg";

/// What results depend on; rows measured with other settings are not mixed in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Settings {
    /// Fingerprint of the programs that measured.
    pub(super) build: String,
    pub(super) quick: bool,
    pub(super) repeats: u64,
    pub(super) all_repeats: bool,
    /// Which gates were chosen; empty: all.
    pub(super) only: Vec<String>,
    /// Number of cases at once; `None`: as many as fit.
    pub(super) jobs: Option<u16>,
    /// Fingerprint of the program with which it is compared.
    pub(super) against: Option<String>,
}

/// The contents of tunnel.json.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    settings: &'a Settings,
    checks: Vec<Check>,
    gates: &'a [Judged],
    rows: &'a [Rows],
}

/// The parts of it that are read.
#[derive(Deserialize)]
struct Found {
    rows: Vec<Rows>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A fingerprint of programs: it changes with the code, build options and compiler.
///
/// # Errors
/// A program cannot be read.
pub(super) fn fingerprint(programs: &[&Path]) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    for program in programs {
        io::copy(&mut fs::File::open(program)?, &mut hasher)?;
    }
    Ok(hasher.finalize().to_hex()[..16].to_owned())
}

/// Writes the file and its plot; both are always complete.
pub(super) fn write(
    out: &Path,
    settings: &Settings,
    gates: &[Judged],
    rows: &[Rows],
) -> Result<(), Failure> {
    let report = Report { settings, checks: checks(gates), gates, rows };
    // A structure of numbers, strings and lists can always be written as JSON.
    let json = serde_json::to_string_pretty(&report).unwrap_or_default();
    for (name, text) in [(NAME, json), (PICTURE_NAME, picture::draw(gates))] {
        let path = out.join(name);
        crate::demo::replace(&path, &text).map_err(|source| Failure::Write { path, source })?;
    }
    Ok(())
}

/// Reads the rows from which to resume; `None` if there is no file.
///
/// # Errors
/// [`Failure::Settings`] if the rows were measured with other settings, [`Failure::Report`] if the
/// file is invalid, [`Failure::Read`] if it cannot be read.
pub(super) fn read(path: &Path, settings: &Settings) -> Result<Option<Vec<Rows>>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Failure::Read { path: path.to_owned(), source }),
    };
    let found: Found = serde_json::from_str(&text)
        .map_err(|source| Failure::Report { path: path.to_owned(), source })?;
    let Ok(Value::Object(expected)) = serde_json::to_value(settings) else {
        unreachable!("settings are a structure of numbers, strings and lists")
    };
    for (field, expected) in expected {
        let given = found.rest.get(&field).unwrap_or(&Value::Null);
        if *given != expected {
            let (given, expected) = (given.to_string(), expected.to_string());
            return Err(Failure::Settings { path: path.to_owned(), field, given, expected });
        }
    }
    Ok(Some(found.rows))
}

#[cfg(test)]
mod tests {
    use corridor_scenario::{Engine, Row};

    use super::super::list::cases;
    use super::*;

    fn settings() -> Settings {
        Settings {
            build: "b1".to_owned(),
            quick: true,
            repeats: 3,
            all_repeats: false,
            only: vec!["cpu".to_owned()],
            jobs: Some(2),
            against: None,
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        assert!(read(&path, &settings()).unwrap().is_none());
        let case = &cases(true)[0];
        let mut row = Row::new(&case.scenario, &case.run, Engine::Lab);
        (row.goodput_bps, row.lateness_p99_s) = (1.25e7, Some(0.000_25));
        row.distrust("it was late");
        let rows = vec![Rows::from([(case.name.clone(), row)]), Rows::new()];
        write(directory.path(), &settings(), &[], &rows).unwrap();
        assert_eq!(read(&path, &settings()).unwrap(), Some(rows));
        assert!(directory.path().join(PICTURE_NAME).exists());
    }

    #[test]
    fn other_settings_and_other_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        write(directory.path(), &settings(), &[], &[]).unwrap();
        let refusal = |settings: &Settings| read(&path, settings).unwrap_err().to_string();
        let other = Settings { build: "b2".to_owned(), ..settings() };
        let said = refusal(&other);
        assert!(
            said.contains("tunnel.json: cannot resume: build = \"b1\": expected \"b2\""),
            "{said}"
        );
        let said = refusal(&Settings { repeats: 4, ..settings() });
        assert!(said.contains("repeats = 3: expected 4"), "{said}");
        let said = refusal(&Settings { only: Vec::new(), ..settings() });
        assert!(said.contains("only = [\"cpu\"]: expected []"), "{said}");
        fs::write(&path, "{\"rows\": [], \"quick\": true}").unwrap();
        assert!(refusal(&settings()).contains("build = null"));
        fs::write(&path, "{\"rows\": 1").unwrap();
        assert!(matches!(read(&path, &settings()), Err(Failure::Report { .. })));
    }

    #[test]
    fn programs_are_told_apart_by_what_is_in_them() {
        let directory = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| directory.path().join(name));
        fs::write(&one, [1; 100_000]).unwrap();
        fs::write(&two, [1; 100_000]).unwrap();
        assert_eq!(fingerprint(&[&one]).unwrap(), fingerprint(&[&two]).unwrap());
        fs::write(&two, [2; 100_000]).unwrap();
        assert_ne!(fingerprint(&[&one]).unwrap(), fingerprint(&[&two]).unwrap());
        assert!(fingerprint(&[&directory.path().join("three")]).is_err());
    }
}
