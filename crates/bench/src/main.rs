//! `bench-codec`: compares the codec with its peers and with the core's limits, all in one run and
//! on one core.

mod checks;
mod fixture;
mod instructions;
mod limits;
mod measure;
mod ours;
mod peers;
mod picture;
mod plan;
mod report;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use corridor_bench::frame::{self, Outcome};
use corridor_bench::machine;
use indicatif::{ProgressBar, ProgressStyle};

use crate::limits::Limits;
use crate::measure::{Effort, compete, median};
use crate::plan::{Group, Operation, SYMBOL_SIZES, SYSTEMATIC_SYMBOL_SIZE, WINDOW_SYMBOL_SIZE};
use crate::report::{Entry, Header, Report, Row, Tally, Validity};

/// Name of the program.
const NAME: &str = "bench-codec";

/// Stack of the measuring thread: cu-fec's coders are arrays of megabytes, created on it.
pub const STACK_BYTES: usize = 256 << 20;

/// Turns of the limit loops before and after.
const LIMIT_REPEATS: usize = 31;

/// Measures the codec against its peers and the machine's limits, on one core.
#[derive(Debug, Parser)]
#[command(name = "bench-codec")]
struct Arguments {
    /// Fewer and shorter turns, blocks of up to 256 symbols: under a minute.
    #[arg(long)]
    quick: bool,
    /// Exit with 1 if a gate is not passed.
    #[arg(long)]
    check: bool,
    /// Directory of codec.json and codec.svg.
    #[arg(long, default_value = "out/bench")]
    out: PathBuf,
    /// Core to measure on; by default the last one allowed.
    #[arg(long)]
    core: Option<usize>,
    /// Seed of data, coefficients and losses.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only operations whose name begins with this.
    #[arg(long)]
    only: Option<String>,
    /// Count instructions under valgrind instead, and compare them with the baseline.
    #[arg(long)]
    instructions: bool,
    /// With --instructions: make the counts the baseline.
    #[arg(long, requires = "instructions")]
    bless: bool,
    /// With --instructions: another baseline than the one checked in.
    #[arg(long, requires = "instructions")]
    baseline: Option<PathBuf>,
    /// The work to count.
    #[arg(long, hide = true)]
    work: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.work {
        return instructions::do_work(name);
    }
    if arguments.instructions {
        return instructions::guard(arguments.bless, arguments.baseline.as_deref())
            .unwrap_or_else(|fault| frame::exit(NAME, Err(fault.into())));
    }
    let measuring = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run(&arguments));
    match measuring.map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => frame::exit(NAME, outcome),
        Ok(Err(_)) => ExitCode::from(2),
        Err(fault) => frame::exit(NAME, Err(fault.into())),
    }
}

fn effort(quick: bool) -> Effort {
    if quick {
        return Effort {
            passes: 2,
            repeats: 4,
            turn: Duration::from_millis(1),
            slow: Duration::from_millis(10),
        };
    }
    Effort {
        passes: 4,
        repeats: 3,
        turn: Duration::from_millis(3),
        slow: Duration::from_millis(40),
    }
}

/// Cycles through all groups repeatedly, and collects the measurements.
fn measure(
    groups: &[Group],
    seed: u64,
    effort: Effort,
    bar: &ProgressBar,
) -> Result<Vec<Tally>, String> {
    let tally = |&group| Tally { group, entries: Vec::new(), limits: Vec::new() };
    let mut tallies: Vec<Tally> = groups.iter().map(tally).collect();
    for pass in 0..effort.passes {
        for tally in &mut tallies {
            let title = tally.group.title();
            bar.set_message(format!("pass {} of {}: {title}", pass + 1, effort.passes));
            let mut contestants = tally.group.contestants(seed);
            let limits = &mut tally.limits;
            let turns = compete(&mut contestants, effort, pass == 0, || {
                limits.extend(limits::register_mul_add());
            });
            let turns = turns.map_err(|fault| format!("{title}: {fault}"))?;
            if tally.entries.is_empty() {
                tally.entries = contestants.into_iter().map(Entry::from).collect();
            }
            for (entry, seconds) in tally.entries.iter_mut().zip(turns) {
                entry.seconds.extend(seconds);
            }
            bar.inc(1);
        }
    }
    Ok(tallies)
}

fn run(arguments: &Arguments) -> Outcome<bool> {
    let start = Instant::now();
    let core = machine::pin(arguments.core).map_err(|fault| format!("cannot pin: {fault}"))?;
    let effort = effort(arguments.quick);
    let mut groups = Group::all(arguments.quick);
    if let Some(only) = &arguments.only {
        groups.retain(|group| group.operation.name().starts_with(only.as_str()));
    }
    let bar = progress_bar(groups.len() * effort.passes);
    bar.set_message("limits");
    let limits_before = Limits::measure(LIMIT_REPEATS);
    let mut tallies = measure(&groups, arguments.seed, effort, &bar)?;
    bar.set_message("limits");
    let limits_after = Limits::measure(LIMIT_REPEATS);
    bar.finish_and_clear();

    let mut limits: Vec<f64> =
        tallies.iter_mut().filter_map(|tally| median(&mut tally.limits)).collect();
    limits.sort_by(f64::total_cmp);
    let limit_least = limits.first().zip(limits.last()).map(|(least, most)| least / most);
    let rows: Vec<Row> = tallies.into_iter().flat_map(Tally::rows).collect();
    let block_size_max = rows.iter().map(|row| row.block_size).max().unwrap_or(0);
    let checks = checks::evaluate(&rows, &limits_before, block_size_max);
    let mut spreads: Vec<f64> = rows.iter().map(|row| row.spread).collect();
    let drift = limits_after.register_mul_add.zip(limits_before.register_mul_add);
    let header = Header {
        cpu: machine::cpu_model(),
        cpu_features: machine::cpu_features(),
        core,
        validity: Validity {
            limit_valid: limits_before.valid() && limits_after.valid(),
            limit_drift: drift.map(|(after, before)| after / before),
            limit_least,
            spread_median: median(&mut spreads).unwrap_or(0.0),
            release: !cfg!(debug_assertions),
        },
        limits_before,
        limits_after,
        seed: arguments.seed,
        passes: effort.passes,
        repeats: effort.repeats,
        turn_ms: effort.turn.as_secs_f64() * 1e3,
        quick: arguments.quick,
        rustc: env!("BENCH_RUSTC"),
        rustflags: env!("BENCH_RUSTFLAGS"),
        profile: env!("BENCH_PROFILE"),
        default_backend: ours::default_backend().to_owned(),
        peers: BTreeMap::from(peers::VERSIONS),
        seconds: start.elapsed().as_secs_f64(),
    };
    let report = Report { schema: 1, header, checks, rows };
    print(&report);
    write(&report, &arguments.out)?;
    Ok(!arguments.check || report.checks.iter().all(|gate| gate.check.holds))
}

/// A progress bar on standard error, if it is a terminal; otherwise nothing, since the tables say
/// enough.
fn progress_bar(groups: usize) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(groups as u64);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {eta} left: {wide_msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn print(report: &Report) {
    let header = &report.header;
    println!("{}, core {}, {}", header.cpu, header.core, header.rustc);
    print!("{}", report::limits_text(&header.limits_before));
    println!();
    for operation in Operation::DENSE {
        for symbol_size in SYMBOL_SIZES {
            print_table(&report.rows, operation, symbol_size);
        }
    }
    for operation in Operation::SYSTEMATIC {
        print_table(&report.rows, operation, SYSTEMATIC_SYMBOL_SIZE);
    }
    for operation in Operation::WINDOW {
        print_table(&report.rows, operation, WINDOW_SYMBOL_SIZE);
    }
    println!("Gates");
    for gate in &report.checks {
        print!("  {}", gate.text());
    }
    let validity = &header.validity;
    println!(
        "{:.0} s; limit {}, after over before {:.3}, least over most {:.3}; median spread of turns \
         {:.1} %",
        header.seconds,
        if validity.limit_valid { "valid" } else { "NOT VALID" },
        validity.limit_drift.unwrap_or(0.0),
        validity.limit_least.unwrap_or(0.0),
        validity.spread_median * 100.0,
    );
}

fn print_table(rows: &[Row], operation: Operation, symbol_size: usize) {
    let table = report::table(rows, operation, symbol_size);
    if !table.is_empty() {
        println!("{table}");
    }
}

fn write(report: &Report, out: &Path) -> Outcome<()> {
    let limit = report.header.limits_before.register_mul_add;
    let machine = &report.header.cpu;
    let picture = picture::draw(&report.rows, SYMBOL_SIZES[0], limit, machine);
    let (json, svg) = (out.join("codec.json"), out.join("codec.svg"));
    frame::write_report(&json, report)?;
    frame::write(&svg, picture)?;
    println!("{}\n{}", json.display(), svg.display());
    Ok(())
}

#[cfg(test)]
mod recipe;

#[cfg(test)]
mod tests {
    use super::recipe::reads;

    #[test]
    fn what_make_types_is_read() {
        reads::<super::Arguments>("bench-codec", "bench-codec", &[]);
    }
}
