//! `lab gates --against OLD`: nodes of both programs in the same lab, in turn, and by how much the
//! new one is worse.
//!
//! Every gate is measured with nodes of both programs, next to each other in each repeat, under the
//! same random numbers. The difference within each repeat is judged, since changes on the machine
//! affect both alike. Runs without nodes are made once for both. Lines of the frontier need no lab:
//! the old program measures its own, with its `lab gates`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use corridor_scenario::Row;
use serde::Deserialize;

use super::list::{Case, Company, Gate, Scale, Side};
use super::{Failure, Rows, report};
use crate::engine::EngineError;
use corridor_results::checks::Sense;

/// Prefix of the names of cases whose nodes are the old program.
const OLD: &str = "old/";
/// How much worse a gate may be, in percent.
const WORSE_MAX: f64 = 2.0;

/// The gates that the old program has too: it need not be able to do what it does not guarantee.
/// The other gates are reported.
pub(super) fn known_to(old: &Path, gates: Vec<Gate>) -> Result<Vec<Gate>, Failure> {
    let failed = |source| Failure::Old { path: old.to_owned(), source };
    let output = Command::new(old).args(["lab", "gates", "--list"]).output().map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(failed(io::Error::other(format!("its `lab gates --list` failed: {said}"))));
    }
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    let (known, new): (Vec<Gate>, Vec<Gate>) =
        gates.into_iter().partition(|gate| is_listed(&list, &gate.name));
    if !new.is_empty() {
        let names: Vec<&str> = new.iter().map(|gate| gate.name.as_str()).collect();
        eprintln!("skipping gates that {} does not have: {}", old.display(), names.join(", "));
    }
    Ok(known)
}

/// Whether `lab gates --list` has a gate with this name.
fn is_listed(list: &str, name: &str) -> bool {
    list.lines().any(|line| line.split_once(": ").is_some_and(|(first, _)| first == name))
}

/// Gates for the differences, and the cases of both programs, next to each other.
pub(super) fn paired(gates: Vec<Gate>, cases: Vec<Case>) -> (Vec<Gate>, Vec<Case>) {
    let of_both =
        |name: &String| cases.iter().any(|case| case.name == *name && case.run.path.is_coded());
    let gates = gates.into_iter().map(|gate| {
        let old = |name: &String| if of_both(name) { format!("{OLD}{name}") } else { name.clone() };
        let olds: Vec<String> = gate.needs.iter().map(old).collect();
        difference(gate, olds)
    });
    let gates = gates.collect();
    let cases = cases.into_iter().flat_map(|case| {
        let old = case.run.path.is_coded().then(|| case.of_old(format!("{OLD}{}", case.name)));
        [Some(case), old].into_iter().flatten()
    });
    (gates, cases.collect())
}

/// A gate for how much worse the new program is than the old one.
fn difference(gate: Gate, olds: Vec<String>) -> Gate {
    let Gate { name, conditions, unit, sense, limit, scale, mut needs, measure } = gate;
    let count = needs.len();
    needs.extend(olds);
    let conditions = format!("{conditions}; {unit}, {} {limit} by itself", sense.words());
    let worse = move |rows: &[&Row]| {
        let (new, old) = (measure(&rows[..count])?, measure(&rows[count..])?);
        let loss = match sense {
            Sense::AtLeast => old - new,
            Sense::AtMost => new - old,
        };
        let whole = match scale {
            Scale::Value => old.abs(),
            Scale::Limit => limit.abs(),
        };
        Some(100.0 * loss / whole)
    };
    Gate {
        name,
        conditions,
        unit: "% worse",
        sense: Sense::AtMost,
        limit: WORSE_MAX,
        scale: Scale::Limit,
        needs,
        measure: Box::new(worse),
    }
}

/// The other program, and what it measured by itself.
pub(super) struct Old {
    pub(super) binary: PathBuf,
    /// Its lines of the frontier, by repeat and by its own case names.
    frontier: Vec<Rows>,
}

impl Old {
    /// Makes the old program measure its lines of the frontier, if any of the cases needs them.
    pub(super) fn new(
        binary: &Path,
        cases: &[Case],
        quick: bool,
        repeats: u64,
    ) -> Result<Self, Failure> {
        let failed = |source| Failure::Old { path: binary.to_owned(), source };
        let binary = fs::canonicalize(binary).map_err(failed)?;
        let is_of_frontier =
            |case: &&Case| case.side == Side::New && matches!(case.company, Company::Simulated(_));
        let lines = cases.iter().filter(is_of_frontier).map(|case| case.name.as_str());
        let lines: Vec<&str> = lines.collect();
        let mut old = Old { binary, frontier: Vec::new() };
        if !lines.is_empty() {
            old.frontier = old.measure_frontier(&lines, quick, repeats).map_err(failed)?;
        }
        Ok(old)
    }

    fn measure_frontier(&self, lines: &[&str], quick: bool, repeats: u64) -> io::Result<Vec<Rows>> {
        #[derive(Deserialize)]
        struct Report {
            rows: Vec<BTreeMap<String, Row>>,
        }
        let out = tempfile::tempdir()?;
        let mut command = Command::new(&self.binary);
        // Their gates have the same names.
        let chosen = lines.iter().flat_map(|line| ["--only", line]);
        command.args(["lab", "gates", "--all-repeats"]).args(chosen);
        command.arg("--repeats").arg(repeats.to_string()).arg("--out").arg(out.path());
        command.args(quick.then_some("--quick"));
        // Its exit status is ignored: it may fail its gates, and still writes its rows.
        let output = command.output()?;
        let text = fs::read_to_string(out.path().join(report::NAME)).map_err(|_| {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            io::Error::other(format!("its `lab gates` wrote no results: {said}"))
        })?;
        Ok(serde_json::from_str::<Report>(&text)?.rows)
    }

    /// The line of the frontier of one of its cases.
    ///
    /// # Errors
    /// The old program did not measure it, because it has no such line.
    pub(super) fn frontier_row(&self, case: &Case, replication: u64) -> Result<Row, EngineError> {
        let name = case.name.strip_prefix(OLD).unwrap_or(&case.name);
        let rows = usize::try_from(replication).ok().and_then(|place| self.frontier.get(place));
        let row = rows.and_then(|rows| rows.get(name)).cloned();
        row.ok_or_else(|| EngineError::NotMeasured {
            by: self.binary.clone(),
            what: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use corridor_scenario::Engine;

    use super::super::judge::{Rule, judge};
    use super::super::list::{cases, gates};
    use super::*;

    #[test]
    fn a_gate_that_the_old_program_lists_is_known_to_it() {
        let list = "goodput-rtt4-p5: at least 0.93 of C(1-p); 5 % lost\ncase window: 20.0 s\n";
        assert!(is_listed(list, "goodput-rtt4-p5"));
        assert!(!is_listed(list, "goodput-rtt4") && !is_listed(list, "goodput-bulk-rtt4-p10"));
    }

    fn chosen(patterns: &[&str]) -> (Vec<Gate>, Vec<Case>) {
        let is_chosen = |gate: &Gate| patterns.contains(&gate.name.as_str());
        let gates: Vec<Gate> = gates().into_iter().filter(is_chosen).collect();
        let is_needed = |case: &Case| gates.iter().any(|gate| gate.needs.contains(&case.name));
        let cases = cases(true).into_iter().filter(is_needed).collect();
        paired(gates, cases)
    }

    /// Repeats with these goodputs of the new program and those of the old one, Mbit/s.
    fn repeats(cases: &[Case], goodputs: &[(f64, f64)]) -> Vec<Rows> {
        let rows = |&(new, old): &(f64, f64)| {
            let row = |case: &Case| {
                let mut row = Row::new(&case.scenario, &case.run, Engine::Lab);
                row.goodput_bps = match case.side {
                    _ if case.name.starts_with("kernel") => 10e6,
                    Side::New => 1e6 * new,
                    Side::Old => 1e6 * old,
                };
                (case.name.clone(), row)
            };
            cases.iter().map(row).collect()
        };
        goodputs.iter().map(rows).collect()
    }

    #[test]
    fn both_have_the_same_reference_and_stand_next_to_each_other() {
        let (gates, cases) = chosen(&["goodput-rtt4-p10", "delay-p95-rtt4-p10"]);
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["kernel-rtt4", "window-rtt4-p10", "old/window-rtt4-p10"]);
        assert_eq!(
            cases.iter().map(|case| case.side).collect::<Vec<_>>(),
            [Side::New, Side::New, Side::Old]
        );
        let goodput = gates.iter().find(|gate| gate.name == "goodput-rtt4-p10").unwrap();
        assert_eq!(
            goodput.needs,
            ["kernel-rtt4", "window-rtt4-p10", "kernel-rtt4", "old/window-rtt4-p10"]
        );
    }

    #[test]
    fn what_is_surely_worse_fails_and_what_varies_alike_does_not() {
        let (gates, cases) = chosen(&["goodput-rtt4-p10"]);
        let rule = Rule::Paired { repeats: 6, family: 130 };
        // Both vary by a quarter, together; the new one is 1 % worse.
        let both = [8.0, 9.0, 8.5, 7.5, 9.5, 8.2].map(|old| (0.99 * old, old));
        let judged = judge(&gates, &repeats(&cases, &both), rule);
        assert!((judged[0].value.unwrap() - 1.0).abs() < 1e-9, "{judged:?}");
        assert_eq!((judged[0].pass, judged[0].limit), (Some(true), WORSE_MAX));
        // 5 % worse, significantly.
        let worse =
            [8.0, 9.0, 8.5, 7.5, 9.5, 8.2].map(|old| (0.95 * old + 0.001 * (old - 8.0), old));
        assert_eq!(judge(&gates, &repeats(&cases, &worse), rule)[0].pass, Some(false));
        // As much worse on average, but not significantly: one repeat accounts for all of it.
        let unsure = [(8.0, 8.0), (9.0, 9.0), (6.0, 8.5), (7.5, 7.5), (9.5, 9.5), (8.2, 8.2)];
        let judged = judge(&gates, &repeats(&cases, &unsure), rule);
        assert!(judged[0].value.unwrap() > WORSE_MAX, "{judged:?}");
        assert_eq!(judged[0].pass, Some(true));
        // One repeat, or none, is not evidence.
        assert_eq!(judge(&gates, &repeats(&cases, &both[..1]), rule)[0].pass, None);
        assert_eq!(judge(&gates, &[], rule)[0].pass, None);
    }

    #[test]
    fn what_is_near_nothing_is_measured_by_its_limit() {
        let (gates, cases) = chosen(&["retries-delay"]);
        let mut rows = repeats(&cases, &[(9.0, 9.0)]);
        for (name, delay_ms) in
            [("kernel-retries", 20.0), ("window-retries", 20.1), ("old/window-retries", 20.05)]
        {
            rows[0].get_mut(name).unwrap().delays.delay_p50_s = Some(delay_ms / 1e3);
        }
        let needed: Vec<&Row> = gates[0].needs.iter().map(|name| &rows[0][name]).collect();
        // 0.05 ms of a limit of 2 ms.
        let worse = (gates[0].measure)(&needed).unwrap();
        assert!((worse - 2.5).abs() < 1e-6, "{worse}");
    }
}
