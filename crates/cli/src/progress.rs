//! Progress of a list of runs on standard error: a bar on a terminal, otherwise a line for each
//! run.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use corridor_scenario::{Row, Run};
use indicatif::{ProgressBar, ProgressStyle};

/// Maximum number of titles of current runs that are shown.
const SHOWN_MAX: usize = 2;

/// How far a list of runs has come. Several runs may be made at once.
pub struct Progress {
    bar: Option<ProgressBar>,
    state: Mutex<State>,
}

/// The state of the runs.
struct State {
    /// Time that each run still needs, as its share of the total; none for finished runs.
    needed: Vec<Duration>,
    /// Titles of current runs.
    running: BTreeMap<usize, String>,
    /// Number of finished runs.
    over: usize,
    /// Number of runs that are not skipped.
    count: usize,
}

impl State {
    /// The current runs, and the remaining time.
    fn message(&self) -> String {
        let titles: Vec<&str> = self.running.values().map(String::as_str).collect();
        let titles = match titles.len() {
            0..=SHOWN_MAX => titles.join(", "),
            len => format!("{} and {} more", titles[..SHOWN_MAX].join(", "), len - SHOWN_MAX),
        };
        let left: Duration = self.needed.iter().sum();
        format!("{titles}; about {} left", span(left))
    }

    /// A run has ended. Returns its number in the order of ends.
    fn end(&mut self, index: usize) -> usize {
        self.running.remove(&index);
        self.needed[index] = Duration::ZERO;
        self.over += 1;
        self.over
    }
}

impl Progress {
    /// For these runs, each of which takes about as long as `needed` returns.
    pub fn new(runs: &[Run], needed: impl Fn(&Run) -> Duration) -> Self {
        Self::of(runs.iter().map(needed).collect())
    }

    /// For runs that lengthen the total by these times; with several at once, that is less than
    /// they take themselves.
    pub fn of(needed: Vec<Duration>) -> Self {
        let count = needed.len();
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(count as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        let state = State { needed, running: BTreeMap::new(), over: 0, count };
        Progress { bar, state: Mutex::new(state) }
    }

    /// Adds runs that take about this long each. Returns the index of the first.
    pub fn add(&self, needed: impl Iterator<Item = Duration>) -> usize {
        let mut state = self.state();
        let first = state.needed.len();
        state.needed.extend(needed);
        state.count += state.needed.len() - first;
        if let Some(bar) = &self.bar {
            bar.set_length(state.count as u64);
        }
        first
    }

    /// The run with this index begins.
    pub fn begin(&self, index: usize, run: &Run) {
        self.begin_as(index, &run.title());
    }

    /// The same for a run with this title.
    pub fn begin_as(&self, index: usize, title: &str) {
        let mut state = self.state();
        state.running.insert(index, title.to_owned());
        self.show(&state);
    }

    /// The run with this index has a result.
    pub fn finish(&self, index: usize, run: &Run, row: &Row) {
        self.finish_as(index, &run.title(), row);
    }

    /// The same for a run with this title.
    pub fn finish_as(&self, index: usize, title: &str, row: &Row) {
        let head = self.end(index, title);
        let trust = if row.valid { "" } else { ", not valid" };
        // On a terminal the bar and the table suffice, unless something is unusual.
        if self.bar.is_none() || !row.notes.is_empty() {
            self.say(&format!("{head}: {:.3} Mbit/s{trust}", row.goodput_bps / 1e6));
        }
        for note in &row.notes {
            self.say(&format!("  {note}"));
        }
    }

    /// The run with this index has failed.
    pub fn fail(&self, index: usize, title: &str, why: &impl Display) {
        let head = self.end(index, title);
        self.say(&format!("{head}: {why}"));
    }

    /// The run with this index has to be repeated later.
    pub fn put_off(&self, index: usize) {
        let mut state = self.state();
        state.running.remove(&index);
        self.show(&state);
    }

    /// The run with this index has ended without having been made.
    pub fn pass_over(&self, index: usize) {
        let mut state = self.state();
        state.needed[index] = Duration::ZERO;
        state.count -= 1;
        if let Some(bar) = &self.bar {
            bar.set_length(state.count as u64);
        }
    }

    /// Writes a line, above the bar if there is one.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    /// Counts a finished run. Returns the prefix of lines about it.
    fn end(&self, index: usize, title: &str) -> String {
        let mut state = self.state();
        let over = state.end(index);
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        self.show(&state);
        format!("[{over}/{}] {title}", state.count)
    }

    fn show(&self, state: &State) {
        if let Some(bar) = &self.bar {
            bar.set_message(state.message());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panicking thread leaves the state as before or after a run: both are consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

pub fn span(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_runs_at_once_are_counted_by_their_ends() {
        let progress = Progress::of(vec![Duration::from_secs(10); 6]);
        for index in 0..4 {
            progress.begin_as(index, &format!("run {index}"));
        }
        assert_eq!(progress.state().message(), "run 0, run 1 and 2 more; about 60 s left");
        assert_eq!(progress.end(2, "run 2"), "[1/6] run 2");
        progress.fail(0, "run 0", &"it broke");
        assert_eq!(progress.state().message(), "run 1, run 3; about 40 s left");
        assert_eq!(progress.add([Duration::from_secs(10)].into_iter()), 6);
        progress.pass_over(6);
        progress.pass_over(5);
        assert_eq!(progress.end(1, "run 1"), "[3/5] run 1");
        assert_eq!(progress.state().message(), "run 3; about 20 s left");
    }
}
