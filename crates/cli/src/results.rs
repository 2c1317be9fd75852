//! `corridor results`: result files of `corridor sim run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use corridor_results::{
    JOURNAL_FILE, Journal, PARQUET, PLAN_FILE, RESULTS_FILE, ResultsError, Store, merge,
    merge_tables, read_parquet, table_file, write_parquet,
};
use corridor_scenario::{Plan, TableKind};

use crate::exit::{Exit, print};

/// Arguments of `corridor results`.
#[derive(Debug, Args)]
pub struct ResultsArgs {
    #[command(subcommand)]
    verb: ResultsVerb,
}

#[derive(Debug, Subcommand)]
enum ResultsVerb {
    /// Merge the results of a plan's shards, as written by `sim run --shard`
    Merge(MergeArguments),
    /// Print a reference of all columns of results and their long tables
    Columns,
}

/// Text before the columns in docs/results.md.
const PREFACE: &str = "\
# Columns of results

`corridor sim run PLAN --out DIR` writes `DIR/results.parquet`, one row per replication, and one file
for each long table requested by the plan's `[output]`. Every table is keyed by `point` and
`replication`. The columns of `results.parquet` depend on the plan: its keys, one column per swept
path, and the sections below that apply. Per-flow columns are named `flow.0.NAME`, `flow.1.NAME` and
so on; the table `flows` has the same columns without the prefix. Units and meanings are also stored
in the files.

This page is the output of `corridor results columns`.
";

/// The columns, as a page.
fn columns() -> String {
    let mut page = PREFACE.to_owned();
    for table in corridor_scenario::catalogue() {
        let head = match table.name {
            "results" => format!("`results`: {}", table.meaning),
            name => format!("`{name}`"),
        };
        page += &format!("\n## {head}\n\n");
        if table.name != "results" {
            page += &format!("A row is {}.\n\n", table.meaning);
        }
        page += "| column | unit | meaning |\n|---|---|---|\n";
        for column in table.columns {
            page += &format!("| `{}` | {} | {} |\n", column.name, column.unit, column.meaning);
        }
    }
    page
}

/// Merge the results of a plan's shards.
///
/// The output is byte for byte the same as if the plan had been run in one go. If points are
/// missing, that is reported; `corridor sim run PLAN --out DIR` runs them.
#[derive(Debug, Args)]
struct MergeArguments {
    /// Output directories of `corridor sim run --shard I/N --out DIR`
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Write results to this directory: results.parquet, the long tables, plan.toml and
    /// journal.jsonl
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Overwrite existing results
    #[arg(long)]
    force: bool,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("{}: is one of the parts, expected a different output directory", path.display())]
    OutIsPart { path: PathBuf },
    #[error("{}: already has results, use --force to overwrite them", path.display())]
    OutHasResults { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// Opens a results directory for a plan, and reports what in it cannot be read.
///
/// # Errors
/// As [`Store::open`]; [`ResultsError::NoParquet`].
pub fn open(directory: &Path, plan: &Plan, force: bool) -> Result<Store, ResultsError> {
    if !PARQUET {
        let path = directory.join(RESULTS_FILE);
        return Err(ResultsError::NoParquet { verb: "write", path });
    }
    let store = Store::open(directory, plan, force)?;
    match store.spoilt() {
        0 => {}
        count => {
            eprintln!("{}: {count} unreadable lines will be run again", directory.display());
        }
    }
    Ok(store)
}

/// Runs `corridor results`.
pub fn run(arguments: &ResultsArgs) -> ExitCode {
    let arguments = match &arguments.verb {
        ResultsVerb::Merge(arguments) => arguments,
        ResultsVerb::Columns => return print(&columns()).into(),
    };
    match merge_parts(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            let is_given = matches!(
                failure,
                Failure::OutIsPart { .. }
                    | Failure::OutHasResults { .. }
                    | Failure::Results(
                        ResultsError::NoParquet { .. }
                            | ResultsError::Apart { .. }
                            | ResultsError::PointTwice { .. }
                    )
            );
            if is_given { Exit::Usage.into() } else { Exit::Failure.into() }
        }
    }
}

fn merge_parts(arguments: &MergeArguments) -> Result<(), Failure> {
    let MergeArguments { parts, out, force } = arguments;
    let same = |part: &&PathBuf| match (part.canonicalize(), out.canonicalize()) {
        (Ok(part), Ok(out)) => part == out,
        _ => false,
    };
    if let Some(path) = parts.iter().find(same) {
        return Err(Failure::OutIsPart { path: path.clone() });
    }
    let path = out.join(RESULTS_FILE);
    if path.exists() && !force {
        return Err(Failure::OutHasResults { path });
    }
    let read = |part: &PathBuf| Ok((part.clone(), read_parquet(&part.join(RESULTS_FILE))?));
    let merged = merge(parts.iter().map(read).collect::<Result<Vec<_>, ResultsError>>()?)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Failure::Write { path, source }
    };
    fs::create_dir_all(out).map_err(failed(out))?;
    let mut journal = Journal::open(&out.join(JOURNAL_FILE))?;
    for part in parts {
        journal.take_in(&part.join(JOURNAL_FILE))?;
    }
    journal.sync()?;
    let plan = out.join(PLAN_FILE);
    fs::write(&plan, merged.metadata("plan").unwrap_or_default()).map_err(failed(&plan))?;
    let path = out.join(RESULTS_FILE);
    write_parquet(&path, &merged)?;
    for kind in TableKind::ALL {
        let files = parts.iter().map(|part| part.join(table_file(kind)));
        let files: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
        let path = out.join(table_file(kind));
        if !files.is_empty() {
            merge_tables(&files, kind, &merged.metadata, &path)?;
        } else if path.exists() {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    let told = |name: &str| merged.metadata(name).unwrap_or_default().to_owned();
    let (points, complete) = (told("points"), told("complete_points"));
    eprintln!("wrote {} rows to {}", merged.records.len(), path.display());
    if complete != points {
        eprintln!("{complete} of {points} points are complete");
    }
    Ok(())
}
