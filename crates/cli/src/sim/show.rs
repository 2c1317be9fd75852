//! `corridor sim show`: the results of a plan.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use corridor_results::{read_parquet, summarise};

use super::{Failure, table};
use corridor_results::RESULTS_FILE;

/// Show means with 95 % confidence intervals (Student's t over replications).
///
/// By default, print one line per point with the swept parameters and the main metrics.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Arguments {
    /// Output directory of `corridor sim run --out`, or its results.parquet
    #[arg(value_name = "DIR")]
    results: PathBuf,
    /// Write JSON lines in SI units instead of a table
    #[arg(long)]
    json: bool,
    /// Group by these columns instead of by point
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',')]
    by: Vec<String>,
    /// Show these metrics; `*` matches any flow number
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    metric: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  corridor sim show out/kim
  corridor sim show out/kim --metric 'flow.*.goodput_bps,flow.*.timeouts'
  corridor sim show out/udp --by path,policy --metric goodput_bps --json

The results are a Parquet file, one row per replication: pandas.read_parquet(\"out/kim/results.parquet\").";

/// Runs `corridor sim show`.
pub fn show(arguments: &Arguments) -> Result<(), Failure> {
    let results = read_parquet(&file(&arguments.results))?;
    let summary = summarise(&results, &arguments.by, &arguments.metric)?;
    let mut stdout = io::stdout().lock();
    match arguments.json {
        true => table::write_json(&mut stdout, &summary),
        false => table::write(&mut stdout, &summary, &results),
    }
    .map_err(Failure::Output)
}

/// The results file in a directory, or the file itself.
fn file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(RESULTS_FILE) } else { path.to_owned() }
}
