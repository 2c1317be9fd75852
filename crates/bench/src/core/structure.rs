//! Source metrics: files, types on the packet path, lines.

use std::fs;
use std::path::{Path, PathBuf};

use corridor_results::checks::Check;
use serde::Serialize;

use corridor_bench::frame::Outcome;

/// The crates that a packet passes through.
const CRATES: [&str; 3] = ["packet", "proto", "node"];
/// Maximum lines per file.
const FILE_LINES_MAX: f64 = 800.0;
/// Maximum fields of a type, except for plain records: those whose fields are all public.
const FIELDS_MAX: f64 = 15.0;
/// Lines without tests of `proto` and `node` at commit 725bedc, counted in the same way, and
/// excluding `clamp_tests`, a test directory with another name: the last commit before packets had
/// a crate of their own. Growth since, item by item: docs/decisions/0019-rooms.md.
const LINES_BASE: f64 = 21_643.0;
/// Maximum growth.
const LINES_FACTOR: f64 = 1.1;

#[derive(Debug, Serialize)]
pub struct Structure {
    longest_file: (String, usize),
    most_fields: (String, usize),
    lines_without_tests: usize,
    lines_base: f64,
}

/// Measures the sources in that directory.
pub fn measure(root: &Path, checks: &mut Vec<Check>) -> Outcome<Structure> {
    let mut files = Vec::new();
    for name in CRATES {
        collect(&root.join("crates").join(name), &mut files)?;
    }
    let tests = modules_of_tests(&files)?;
    let mut structure = Structure {
        longest_file: (String::new(), 0),
        most_fields: (String::new(), 0),
        lines_without_tests: 0,
        lines_base: LINES_BASE,
    };
    for path in &files {
        let text = fs::read_to_string(path)?;
        let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
        let lines = text.lines().count();
        if lines > structure.longest_file.1 {
            structure.longest_file = (name.clone(), lines);
        }
        if is_test(path) || tests.contains(path) {
            continue;
        }
        let tested = tested_from(&text);
        structure.lines_without_tests += tested;
        let code: Vec<&str> = text.lines().take(tested).collect();
        for (kind, fields) in types(&code) {
            if fields > structure.most_fields.1 {
                structure.most_fields = (format!("{kind} in {name}"), fields);
            }
        }
    }
    let (longest, fields) = (structure.longest_file.1 as f64, structure.most_fields.1 as f64);
    let lines = structure.lines_without_tests as f64;
    checks.extend([
        Check::at_most("lines of the longest file", Some(longest), FILE_LINES_MAX, "lines"),
        Check::at_most(
            "fields of a type that is no plain record",
            Some(fields),
            FIELDS_MAX,
            "fields",
        ),
        Check::at_most(
            "lines of packet, proto and node without tests, over what proto and node had",
            Some(lines / LINES_BASE),
            LINES_FACTOR,
            "",
        ),
    ]);
    Ok(structure)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Outcome<()> {
    let mut entries: Vec<_> =
        fs::read_dir(directory)?.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Files of modules declared for tests only.
fn modules_of_tests(files: &[PathBuf]) -> Outcome<Vec<PathBuf>> {
    let mut tests = Vec::new();
    for path in files {
        let text = fs::read_to_string(path)?;
        let stem = path.file_stem().unwrap_or_default();
        let is_root = ["lib", "main", "mod"].iter().any(|root| stem == *root);
        let within = if is_root { path.with_file_name("") } else { path.with_extension("") };
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]") {
            if let Some(name) = pair[1].strip_prefix("mod ").and_then(|it| it.strip_suffix(';')) {
                tests.push(within.join(name).with_extension("rs"));
            }
        }
    }
    Ok(tests)
}

/// Whether a file contains only tests, examples or studies.
fn is_test(path: &Path) -> bool {
    let in_tests = path.components().any(|part| {
        let part = part.as_os_str();
        part == "tests" || part == "examples"
    });
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    in_tests || name == "tests" || name.ends_with("_tests") || name.ends_with("_study")
}

/// Number of lines before the tests at a file's end.
fn tested_from(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: &usize| {
        lines[*at] == "#[cfg(test)]"
            && lines.get(at + 1).is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'))
    };
    (0..lines.len()).find(begins).unwrap_or(lines.len())
}

/// Types with named fields, other than plain records, and their numbers of fields.
fn types(code: &[&str]) -> Vec<(String, usize)> {
    let mut types = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let line = code[at];
        let words = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
        let words = words.trim_start_matches("pub ");
        let Some(name) = words.strip_prefix("struct ").filter(|_| line.ends_with('{')) else {
            at += 1;
            continue;
        };
        let name = name.split(['<', ' ']).next().unwrap_or_default().to_owned();
        let body: Vec<&str> =
            code[at + 1..].iter().take_while(|line| **line != "}").copied().collect();
        let is_field = |line: &&&str| {
            let line = line.strip_prefix("    ").unwrap_or_default();
            let is_word = |it: char| it.is_alphanumeric() || "_()".contains(it);
            let name = line.trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
            let name = name.trim_start_matches("pub ");
            name.split_once(": ").is_some_and(|(name, _)| name.chars().all(is_word))
        };
        let fields: Vec<_> = body.iter().filter(is_field).collect();
        let is_record = fields.iter().all(|line| line.trim_start().starts_with("pub"));
        if !is_record {
            types.push((name, fields.len()));
        }
        at += 1 + body.len();
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_and_plain_records_and_tests_are_not() {
        let text = "struct One {\n    a: u8,\n    /// b: no\n    b: Vec<u8>,\n}\n\
                    pub struct Record {\n    pub a: u8,\n}\n\
                    #[cfg(test)]\nmod tests {\nstruct Two {\n    a: u8,\n}\n}\n";
        let tested = tested_from(text);
        assert_eq!(tested, 8);
        let code: Vec<&str> = text.lines().take(tested).collect();
        assert_eq!(types(&code), [("One".to_owned(), 2)]);
    }
}
