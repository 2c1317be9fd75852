//! The experiments of `/experiments`, run with fewer repeats, and the published values.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use corridor_scenario::{Path, Row, Run, Scenario, expand};
use corridor_sim::run_radio;
use serde::Deserialize;

/// Figures that have an experiment.
pub const FIGURES: [u32; 8] = [9, 10, 11, 12, 13, 14, 15, 16];
/// Figures that have a plan of their own: Fig. 10 uses the runs of Fig. 9, Fig. 12 those of Fig.
/// 11.
pub const PLANS: [u32; 6] = [9, 11, 13, 14, 15, 16];
/// Repeats of each run; the plans say ten.
const REPEATS: u32 = 2;
/// Threads for the runs of a figure.
const JOBS: usize = 2;

/// A published claim from `data/franc_claims.json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Claim {
    pub id: String,
    pub claim: String,
    pub value: serde_json::Value,
    pub unit: String,
    pub conditions: String,
}

/// A claim in an experiment's `published.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    #[serde(flatten)]
    pub claim: Claim,
    /// The measurement of ours to compare with it.
    pub measure: Option<String>,
    /// The values of the measurement for which the claim holds.
    #[serde(default)]
    pub accepted: Accepted,
    /// Why the claim does not hold, if it does not.
    pub differs: Option<String>,
    /// The entry of docs/errata.md that proves that it cannot hold, if so.
    pub errata: Option<String>,
}

impl Published {
    /// Whether the claim has a number of its own: `FRANC-027-5` is a part of `FRANC-027`.
    pub fn is_whole(&self) -> bool {
        self.claim.id.len() == "FRANC-000".len()
    }
}

/// Bounds, each of which may be absent.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Accepted {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Accepted {
    fn contains(self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

fn directory(figure: u32) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    root.join(format!("franc-fig{figure:02}"))
}

/// The plan of a figure.
pub fn plan(figure: u32) -> Scenario {
    let path = directory(figure).join("plan.toml");
    Scenario::parse(&fs::read_to_string(path).expect("the plan is there")).expect("it is sound")
}

/// What was published for a figure.
pub fn published(figure: u32) -> Vec<Published> {
    #[derive(Deserialize)]
    struct File {
        claims: Vec<Published>,
    }
    let path = directory(figure).join("published.json");
    let text = fs::read_to_string(path).expect("it is there");
    serde_json::from_str::<File>(&text).expect("it is sound").claims
}

/// Rows of a figure's runs.
pub struct Rows {
    rows: Vec<Row>,
    repeats: usize,
}

/// Runs once those runs of a figure's plan that `keep` selects.
pub fn rows(
    cell: &'static OnceLock<Rows>,
    figure: u32,
    keep: impl Fn(&Run) -> bool,
) -> &'static Rows {
    cell.get_or_init(|| {
        let scenario = Scenario { repeats: REPEATS, ..plan(figure) };
        let runs: Vec<Run> =
            expand(&scenario).expect("it is sound").into_iter().filter(keep).collect();
        let next = AtomicUsize::new(0);
        let rows = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..JOBS {
                scope.spawn(|| {
                    while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let row = run_radio(&scenario, run).expect("it can be run");
                        rows.lock().expect("no thread panics").push(row);
                    }
                });
            }
        });
        Rows { rows: rows.into_inner().expect("no thread panics"), repeats: REPEATS as usize }
    })
}

impl Rows {
    /// Minimum of a column over the runs that `which` selects.
    pub fn least(&self, which: impl Fn(&Row) -> bool, column: impl Fn(&Row) -> f64) -> f64 {
        self.rows.iter().filter(|row| which(row)).map(column).fold(f64::INFINITY, f64::min)
    }

    /// Mean of a column over the repeats of the run that `which` selects.
    pub fn mean(&self, which: impl Fn(&Row) -> bool, column: impl Fn(&Row) -> f64) -> f64 {
        let found: Vec<&Row> = self.rows.iter().filter(|row| which(row)).collect();
        assert_eq!(found.len(), self.repeats, "one run is meant");
        // Sorted: threads finish in any order, and the sum of floats depends on their order.
        let mut values: Vec<f64> = found.iter().map(|row| column(row)).collect();
        values.sort_by(f64::total_cmp);
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// Whether a row has this path and this erasure ratio.
pub fn is(row: &Row, path: Path, e3: f64) -> bool {
    row.path == path && (row.e3 - e3).abs() < 1e-9
}

/// Prints our value beside the published one, and checks that it is accepted, or not accepted where
/// the experiment explains why.
pub fn check(figure: u32, id: &str, ours: f64) {
    let published = published(figure);
    let of = published.iter().find(|published| published.claim.id == id).expect("it is there");
    let measure = of.measure.as_deref().expect("there is a measure");
    let Claim { claim, value, unit, .. } = &of.claim;
    let holds = of.accepted.contains(ours);
    let verdict = if holds { "holds" } else { "differs" };
    println!("{id} | {claim}: {value} {unit} | {measure}: {ours:.3} | {verdict}");
    let expected = of.differs.is_none() && of.errata.is_none();
    assert_eq!(holds, expected, "{id}, {measure}: {ours}, accepted {:?}", of.accepted);
}
