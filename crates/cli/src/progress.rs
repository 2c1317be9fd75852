//! Progress of a list of runs on standard error: a bar on a terminal, else a line for each run.

use std::io::{self, IsTerminal};
use std::time::Duration;

use corridor_scenario::{Row, Run};
use indicatif::{ProgressBar, ProgressStyle};

/// How far a list of runs has come.
pub struct Progress {
    bar: Option<ProgressBar>,
    needed: Vec<Duration>,
}

impl Progress {
    /// For these runs, each of which takes about as long as `needed` says.
    pub fn new(runs: &[Run], needed: impl Fn(&Run) -> Duration) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(runs.len() as u64);
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Progress { bar, needed: runs.iter().map(needed).collect() }
    }

    /// The run at this place begins.
    pub fn begin(&self, index: usize, run: &Run) {
        self.begin_as(index, &run.title());
    }

    /// The same for a run with this title.
    pub fn begin_as(&self, index: usize, title: &str) {
        if let Some(bar) = &self.bar {
            let left: Duration = self.needed[index..].iter().sum();
            bar.set_message(format!("{title}; about {} left", span(left)));
        }
    }

    /// The run at this place has come to its result.
    pub fn finish(&self, index: usize, run: &Run, row: &Row) {
        self.finish_as(index, &run.title(), row);
    }

    /// The same for a run with this title.
    pub fn finish_as(&self, index: usize, title: &str, row: &Row) {
        let (count, goodput) = (self.needed.len(), row.goodput_bps / 1e6);
        let trust = if row.valid { "" } else { ", not valid" };
        let line = format!("[{}/{count}] {title}: {goodput:.3} Mbit/s{trust}", index + 1);
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
        // On a terminal the bar and the table say enough, unless there is something odd.
        if self.bar.is_none() || !row.notes.is_empty() {
            self.say(&line);
        }
        for note in &row.notes {
            self.say(&format!("  {note}"));
        }
    }

    /// Writes a line, above the bar where there is one.
    pub fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
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
