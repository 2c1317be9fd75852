//! Instruction counts under valgrind: a regression check that does not depend on the machine's
//! load.
//!
//! Valgrind supports at most AVX2, so the counted backends are AVX2 and the portable one. The count
//! covers one call of [`counted`], without set-up. The baseline is `instructions.toml`, which names
//! the compiler and the profile: another one generates other code.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::fixture::Block;
use crate::measure::{Contestant, Work};
use crate::ours::Way;
use crate::plan::Operation;

/// Allowed deviation of a count from the baseline.
const TOLERANCE: f64 = 0.03;

/// Backends that valgrind can run.
const BACKENDS: [&str; 2] = ["avx2", "portable"];

const SEED: u64 = 1;

/// Counted work, by name: block size, symbol size, and constructor.
type Make = fn(Way, &Rc<Block>) -> Contestant;
const OPERATIONS: [(Operation, usize, usize, Make); 5] = [
    (Operation::Encode, 64, 1450, Way::encode),
    (Operation::EncodeBatch, 64, 1450, Way::encode_batch),
    (Operation::Recode, 64, 1450, Way::recode),
    (Operation::Decode, 64, 1450, Way::decode),
    (Operation::SystematicDecode, 50, 1280, Way::decode_systematic),
];

/// The file of counts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Baseline {
    rustc: String,
    profile: String,
    /// Instructions by the name of the work.
    counts: BTreeMap<String, u64>,
}

#[derive(Debug, thiserror::Error)]
pub enum InstructionsError {
    #[error("{path}: {fault}")]
    File { path: String, fault: String },
    #[error("{work}: valgrind failed: {said}")]
    Valgrind { work: String, said: String },
}

/// The work that can be counted here, with its way and its index among the operations.
fn works() -> Vec<(String, Way, usize)> {
    let mut works = Vec::new();
    for way in Way::all().into_iter().filter(|way| BACKENDS.contains(&way.backend.name())) {
        for (index, (operation, block_size, symbol_size, _)) in OPERATIONS.into_iter().enumerate() {
            let (backend, order) = (way.backend.name(), way.field.order());
            let operation = operation.name();
            let name = format!("{backend}/gf{order}/{operation}/{block_size}x{symbol_size}");
            works.push((name, way, index));
        }
    }
    works
}

/// Does the named work once, in the counted function. Prints nothing.
pub fn do_work(name: &str) -> ExitCode {
    let Some((_, way, index)) = works().into_iter().find(|(known, ..)| known == name) else {
        return ExitCode::from(2);
    };
    let (_, block_size, symbol_size, make) = OPERATIONS[index];
    let mut contestant = make(way, &Block::new(block_size, symbol_size, SEED));
    // The first run detects the processor.
    contestant.work.prepare();
    contestant.work.run();
    contestant.work.prepare();
    counted(contestant.work.as_mut());
    if contestant.work.verify().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Valgrind counts the instructions in here; it finds the function by name.
#[inline(never)]
fn counted(work: &mut dyn Work) {
    work.run();
    std::hint::black_box(work);
}

/// Counts everything and compares it with the baseline; with `bless`, makes it the baseline.
///
/// # Errors
/// A file that cannot be read or written, or work that fails under valgrind.
pub fn guard(bless: bool, baseline: Option<&Path>) -> Result<ExitCode, InstructionsError> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instruction counts: SKIPPED, there is no valgrind on this machine");
        return Ok(ExitCode::SUCCESS);
    }
    let checked_in = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("instructions.toml");
    let path = baseline.unwrap_or(&checked_in);
    let mut counts = BTreeMap::new();
    for (name, ..) in works() {
        let count = count(&name)?;
        counts.insert(name, count);
    }
    let (rustc, profile) = (env!("BENCH_RUSTC").to_owned(), env!("BENCH_PROFILE").to_owned());
    let fault = |fault: String| InstructionsError::File { path: path.display().to_string(), fault };
    if bless {
        let text = toml::to_string(&Baseline { rustc, profile, counts })
            .map_err(|e| fault(e.to_string()))?;
        let text = format!("# Written by `bench-codec --instructions --bless`.\n{text}");
        fs::write(path, text).map_err(|e| fault(e.to_string()))?;
        println!("instruction counts: {} written", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let text = fs::read_to_string(path).map_err(|e| fault(e.to_string()))?;
    let baseline: Baseline = toml::from_str(&text).map_err(|e| fault(e.to_string()))?;
    if (&baseline.rustc, &baseline.profile) != (&rustc, &profile) {
        let of = |rustc, profile| format!("{rustc}, profile {profile}");
        let (of_baseline, of_this) = (of(&baseline.rustc, &baseline.profile), of(&rustc, &profile));
        println!("instruction counts: the baseline is of {of_baseline}; this is {of_this}");
    }
    let mut held = true;
    for (name, count) in &counts {
        let (verdict, line) = judge(*count, baseline.counts.get(name).copied());
        held &= verdict;
        println!("{line}  {name}");
    }
    for name in baseline.counts.keys().filter(|name| !counts.contains_key(*name)) {
        println!("gone  {:>12}  {:26}  {name}", "", "");
    }
    println!("instruction counts: {}", if held { "pass" } else { "FAIL" });
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Whether a count is within the baseline's limit, and a line that says so.
fn judge(count: u64, baseline: Option<u64>) -> (bool, String) {
    let Some(baseline) = baseline else {
        return (true, format!("new   {count:>12}  {:26}", ""));
    };
    let (count, baseline) = (count as f64, baseline as f64);
    let held = count <= baseline * (1.0 + TOLERANCE);
    let word = if !held {
        "FAIL"
    } else if count < baseline * (1.0 - TOLERANCE) {
        "less"
    } else {
        "pass"
    };
    let change = (count / baseline - 1.0) * 100.0;
    (held, format!("{word}  {count:>12}  {change:>+7.2} % of {baseline:<12}"))
}

fn count(name: &str) -> Result<u64, InstructionsError> {
    let fault = |said: String| InstructionsError::Valgrind { work: name.to_owned(), said };
    let program = env::current_exe().map_err(|e| fault(e.to_string()))?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*instructions*counted*")
        .arg(program)
        .args(["--work", name])
        .output()
        .map_err(|e| fault(e.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
    match count {
        Some(count) if output.status.success() && count > 0 => Ok(count),
        _ => Err(fault(said)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_percent_more_is_too_much() {
        assert!(judge(1030, Some(1000)).0);
        assert!(!judge(1031, Some(1000)).0);
        assert!(judge(500, Some(1000)).0, "fewer are welcome");
        assert!(judge(1, None).0, "new work has no baseline");
    }

    #[test]
    fn the_baseline_can_be_read() {
        let text = include_str!("../instructions.toml");
        let baseline: Baseline = toml::from_str(text).unwrap();
        assert!(baseline.rustc.starts_with("rustc"), "{}", baseline.rustc);
    }

    #[test]
    fn works_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = works().into_iter().map(|work| work.0).collect();
        assert_eq!(names.len(), works().len());
    }
}
