use std::sync::Condvar;

use corridor_lab::LabError;
use corridor_scenario::Engine;

use super::super::list::{cases, gates};
use super::*;

/// How long a worker waits for others that should be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// The runs made, and what else ran meanwhile.
#[derive(Default)]
struct Log {
    state: Mutex<Made>,
    changed: Condvar,
}

#[derive(Default)]
struct Made {
    /// Case and repeat.
    runs: Vec<(String, u64)>,
    under_way: usize,
    /// Maximum number of runs at once.
    most: usize,
}

impl Log {
    /// A run begins; it continues once this many have run at once.
    fn begin(&self, case: &Case, replication: u64, company: usize) {
        let mut state = self.state.lock().unwrap();
        state.runs.push((case.name.clone(), replication));
        state.under_way += 1;
        state.most = state.most.max(state.under_way);
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| state.most < company);
        let (state, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "{} at once, {company} expected", state.most);
        assert!(
            case.company == Company::Shared || state.under_way == 1,
            "{} has company",
            case.name
        );
    }

    fn end(&self) {
        self.state.lock().unwrap().under_way -= 1;
    }

    fn names(&self, replication: u64) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let of = state.runs.iter().filter(|(_, at)| *at == replication);
        of.map(|(name, _)| name.clone()).collect()
    }
}

fn chosen(patterns: &[&str]) -> (Vec<Gate>, Vec<Case>) {
    let is_chosen = |gate: &Gate| patterns.iter().any(|pattern| gate.name.starts_with(pattern));
    let gates: Vec<Gate> = gates().into_iter().filter(is_chosen).collect();
    let is_needed = |case: &Case| gates.iter().any(|gate| gate.needs.contains(&case.name));
    let cases = cases(true).into_iter().filter(is_needed).collect();
    (gates, cases)
}

/// A row with which goodput gates have this value.
fn row(case: &Case, replication: u64, share: f64) -> Row {
    let mut row = Row::new(&case.scenario, &case.run, Engine::Lab);
    let is_reference = case.name.starts_with("kernel");
    row.goodput_bps = if is_reference { 10e6 } else { share * 10e6 * (1.0 - row.e3) };
    (row.replication, row.lateness_p99_s) = (replication, Some(0.000_1));
    row
}

fn plan<'a>(gates: &'a [Gate], cases: &'a [Case], repeats: u64, jobs: usize) -> Plan<'a> {
    let rule = Rule::Early { repeats: usize::try_from(repeats).unwrap() };
    Plan { gates, cases, repeats, rule, jobs: Jobs::Fixed(jobs) }
}

#[test]
fn several_are_measured_at_once_but_those_that_bear_no_company() {
    let (gates, cases) = chosen(&["goodput-rtt4-p", "cpu"]);
    let (log, late) = (Log::default(), "window-rtt4-p20");
    let make = |case: &Case, replication: u64| {
        log.begin(case, replication, 3);
        let mut made = row(case, replication, 1.0);
        let is_first = log.names(replication).iter().filter(|name| *name == late).count() == 1;
        if case.name == late && is_first {
            made.lateness_p99_s = Some(0.002);
        }
        log.end();
        Ok(made)
    };
    let mut rows = Vec::new();
    let mut written: Vec<usize> = Vec::new();
    let plan = plan(&gates, &cases, 2, 3);
    measure(&plan, &make, &mut rows, |rows| {
        written.push(rows.iter().map(Rows::len).sum());
        Ok(())
    })
    .unwrap();
    assert_eq!(written, [cases.len(), 2 * cases.len()]);
    for replication in 0..2 {
        let names = log.names(replication);
        assert_eq!(names.len(), cases.len() + 1, "{names:?}");
        // What was late in parallel is repeated after everything that was measured in parallel.
        assert_eq!(names.last().unwrap(), late);
        let row = &rows[replication as usize][late];
        assert_eq!((row.lateness_p99_s, row.replication), (Some(0.000_1), replication));
    }
    assert_eq!(log.state.lock().unwrap().most, 3);
}

#[test]
fn what_a_decided_gate_needs_is_measured_no_more() {
    let (gates, cases) = chosen(&["goodput-rtt4-p10", "goodput-rtt100-p10"]);
    let log = Log::default();
    let make = |case: &Case, replication: u64| {
        log.begin(case, replication, 1);
        // One is far below its limit, the other at it.
        let spread = 0.002 * (replication % 2) as f64;
        let share = if case.name.contains("rtt100") { 0.5 } else { 0.929 };
        log.end();
        Ok(row(case, replication, share + spread))
    };
    let mut rows = Vec::new();
    let plan = plan(&gates, &cases, 6, 1);
    measure(&plan, &make, &mut rows, |_| Ok(())).unwrap();
    // Each gate has a reference of its own, and ECN.
    assert_eq!(log.names(3).len(), cases.len());
    let open: Vec<String> = log.names(4);
    assert!(!open.is_empty() && open.iter().all(|name| name.contains("rtt4")), "{open:?}");
    assert_eq!(log.names(5), open);
    assert_eq!(rows.iter().map(Rows::len).collect::<Vec<_>>()[3..], [8, 4, 4]);
}

#[test]
fn what_is_there_is_not_measured_again() {
    let (gates, cases) = chosen(&["goodput-rtt4-p10"]);
    let made: Vec<Rows> = (0..2)
        .map(|at| cases.iter().map(|case| (case.name.clone(), row(case, at, 0.9))).collect())
        .collect();
    let mut rows = made.clone();
    let gone = cases[1].name.clone();
    rows[1].remove(&gone);
    let log = Log::default();
    let make = |case: &Case, replication: u64| {
        log.begin(case, replication, 1);
        log.end();
        Ok(row(case, replication, 0.9))
    };
    let mut writes = 0;
    let plan = plan(&gates, &cases, 3, 1);
    measure(&plan, &make, &mut rows, |_| {
        writes += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!((log.names(0), log.names(1)), (Vec::new(), vec![gone]));
    assert_eq!((log.names(2).len(), writes), (cases.len(), 2));
    assert_eq!(rows[..2], made);
}

#[test]
fn failed_runs_are_passed_over_until_there_are_too_many_in_a_row() {
    let (gates, cases) = chosen(&["goodput-rtt4-p10"]);
    let fails = |case: &Case, times: &dyn Fn(&Case) -> bool, replication: u64| {
        let load = "this";
        match times(case) {
            true => Err(LabError::Tunnel { name: case.name.clone(), load }.into()),
            false => Ok(row(case, replication, 0.9)),
        }
    };
    let plan = plan(&gates, &cases, 2, 1);
    let first = cases[0].name.clone();
    let make = |case: &Case, replication: u64| fails(case, &|case| case.name == first, replication);
    let mut rows = Vec::new();
    let failure = measure(&plan, &make, &mut rows, |_| Ok(())).unwrap_err();
    assert!(matches!(failure, Failure::Runs { failed: 2, .. }), "{failure}");
    assert_eq!(rows.iter().map(Rows::len).collect::<Vec<_>>(), [cases.len() - 1; 2]);

    let make = |case: &Case, replication: u64| fails(case, &|case| case.name != first, replication);
    let (mut rows, mut writes) = (Vec::new(), 0);
    let failure = measure(&plan, &make, &mut rows, |_| {
        writes += 1;
        Ok(())
    });
    assert!(matches!(failure.unwrap_err(), Failure::Engine(_)));
    assert_eq!((rows.len(), rows[0].len(), writes), (1, 1, 1));
}
