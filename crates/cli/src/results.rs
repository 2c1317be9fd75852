//! `corridor results`: files of results that `corridor sim run` has left.

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
    /// Put together what the parts of a plan have left, as `sim run --shard` makes them
    Merge(MergeArguments),
    /// Print all columns that results and their long tables may have, and what they mean
    Columns,
}

/// What stands before the columns in docs/results.md.
const PREFACE: &str = "\
# Columns of results

`corridor sim run PLAN --out DIR` leaves `DIR/results.parquet`, a row for each replication, and the
long tables that the plan's `[output]` asks for, a file each. Rows go by `point` and `replication`
everywhere. Which columns `results.parquet` has depends on the plan: its keys, a column for each
swept path, and the parts below that apply; those of a flow come as `flow.0.NAME`, `flow.1.NAME` and
so on, and are the columns of the table `flows`. Units and meanings are in the files, too.

This page is what `corridor results columns` prints.
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

/// Puts results of parts of a plan together.
///
/// The result is the same, byte for byte, as if the plan had been run at once. Parts that are
/// missing are said to be: `corridor sim run PLAN --out DIR` runs what is left.
#[derive(Debug, Args)]
struct MergeArguments {
    /// Directories that `corridor sim run --shard I/N --out DIR` has left
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Leave results in this directory: results.parquet and the long tables,
    /// plan.toml, journal.jsonl
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Replace results that are there
    #[arg(long)]
    force: bool,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("{}: is a part, expected another directory for all of them", path.display())]
    OutIsPart { path: PathBuf },
    #[error("{}: holds results, expected none, or --force", path.display())]
    OutHasResults { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// Opens a directory of results for a plan, and says what of it cannot be read.
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
            eprintln!("{}: {count} lines cannot be read, and are run again", directory.display());
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
    eprintln!("{} rows are in {}", merged.records.len(), path.display());
    if complete != points {
        eprintln!("{complete} of {points} points are complete");
    }
    Ok(())
}
