//! Progress of a plan on standard error: a bar on a terminal, otherwise occasional lines.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use corridor_results::Schedule;
use indicatif::{ProgressBar, ProgressStyle};

use crate::progress::span;

/// Shortest time between two lines without a terminal; intervals grow from this one.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time between two lines.
const LINE_INTERVAL_MAX: Duration = Duration::from_secs(600);

/// How far a plan has come.
pub struct RunProgress {
    bar: Option<ProgressBar>,
    began: Instant,
    done_before: u64,
    next_line: Instant,
    interval: Duration,
}

impl RunProgress {
    /// The progress of this schedule at its start.
    pub fn new(schedule: &Schedule, jobs: usize) -> Self {
        let (done, expected) = (schedule.done(), schedule.expected());
        let began = Instant::now();
        if jobs > 0 && done > 0 {
            eprintln!("{done} of {expected} replications are already done");
        }
        let shown = jobs > 0 && io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::new(expected);
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len} {wide_msg}") {
                bar.set_style(style);
            }
            bar.set_position(done);
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        RunProgress {
            bar,
            began,
            done_before: done,
            next_line: began + LINE_INTERVAL,
            interval: LINE_INTERVAL,
        }
    }

    /// A replication has ended.
    pub fn advance(&mut self, schedule: &Schedule) {
        let (done, expected) = (schedule.done(), schedule.expected().max(schedule.done()));
        let run = done.saturating_sub(self.done_before).max(1);
        let left = self.began.elapsed().mul_f64((expected - done) as f64 / run as f64);
        let told = format!("about {} left", span(left));
        match &self.bar {
            Some(bar) => {
                bar.set_length(expected);
                bar.set_position(done);
                bar.set_message(told);
            }
            None if Instant::now() >= self.next_line => {
                eprintln!("{done}/{expected} replications, {told}");
                self.interval = (self.interval * 2).min(LINE_INTERVAL_MAX);
                self.next_line = Instant::now() + self.interval;
            }
            None => {}
        }
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
