//! Runs this machine's kernel on a path, and records the results in a file.

use std::collections::VecDeque;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use corridor_lab::{LineReport, LineRun, has_congestion, run_line};
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::paths::Path;

/// A run is repeated if one frame in a hundred was later than this fraction of the round-trip time.
const LATE_RATIO_MAX: f64 = 0.02;
/// Maximum number of attempts.
const ATTEMPTS: usize = 3;

/// A recording of a kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// The kernel's release.
    pub kernel: String,
    /// Receive buffer limits of its connections: `tcp_rmem`. Sending is not limited.
    pub tcp_rmem: String,
    /// Whether TCP made segments of more than one packet (GSO); never, on these paths.
    pub gso: bool,
    /// Seed of the paths.
    pub seed: u64,
    /// Seconds per run, from the end of the handshake.
    pub duration_s: f64,
    /// Records of each path.
    pub paths: Vec<Recorded>,
}

/// A path and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// Its number.
    pub index: u64,
    /// The path.
    pub path: Path,
    /// Runs by congestion control.
    pub runs: Vec<Runs>,
}

/// Runs with one congestion control.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Runs {
    /// The kernel's name for it.
    pub congestion: String,
    /// Replication number of each run: a run that was left out is repeated under its own number.
    /// Recordings without these have the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    replications: Vec<u64>,
    /// Payload received, bits per second; one value per run.
    pub goodput_bps: Vec<f64>,
    /// Fraction of segments retransmitted.
    pub retransmitted_ratio: Vec<f64>,
    /// 99th percentile of the emulator's lateness, microseconds.
    pub late_p99_us: Vec<f64>,
}

/// A seed for fresh paths, which changes daily.
pub fn seed_of_the_day() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs() / 86_400)
}

/// Prepares the program for this, or reports why it cannot run.
pub fn prepare(congestion: &[String]) -> Outcome<()> {
    corridor_lab::prepare()?;
    for name in congestion {
        if !has_congestion(name)? {
            return Err(format!("absent: this kernel has no congestion control {name}").into());
        }
    }
    Ok(())
}

impl Record {
    /// An empty record of this machine.
    pub fn here(seed: u64, duration_s: f64) -> Outcome<Record> {
        let rmem = fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem")?;
        Ok(Record {
            kernel: uname()?.release().to_string_lossy().into_owned(),
            tcp_rmem: rmem.split_whitespace().collect::<Vec<_>>().join(" "),
            gso: false,
            seed,
            duration_s,
            paths: Vec::new(),
        })
    }

    /// Reads a record.
    pub fn read(path: &FilePath) -> Outcome<Record> {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Writes it.
    pub fn write(&self, path: &FilePath) -> Outcome<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// Whether a path has this run of a congestion control.
    pub fn has(&self, index: u64, congestion: &str, replication: u64) -> bool {
        let recorded = self.paths.iter().find(|recorded| recorded.index == index);
        let runs = recorded.and_then(|r| r.runs.iter().find(|runs| runs.congestion == congestion));
        runs.is_some_and(|runs| runs.replications().any(|made| made == replication))
    }

    fn add(&mut self, job: &Job, report: &LineReport) {
        let recorded = match self.paths.iter().position(|recorded| recorded.index == job.index) {
            Some(place) => &mut self.paths[place],
            None => {
                let place = self.paths.partition_point(|recorded| recorded.index < job.index);
                let (index, path) = (job.index, job.path);
                self.paths.insert(place, Recorded { index, path, runs: Vec::new() });
                &mut self.paths[place]
            }
        };
        let place = recorded.runs.iter().position(|runs| runs.congestion == job.congestion);
        let runs = match place {
            Some(place) => &mut recorded.runs[place],
            None => {
                recorded.runs.push(Runs::none(job.congestion.clone()));
                recorded.runs.sort_by(|a, b| a.congestion.cmp(&b.congestion));
                let place = recorded.runs.iter().position(|r| r.congestion == job.congestion);
                &mut recorded.runs[place.unwrap_or(0)]
            }
        };
        runs.replications = runs.replications().chain([job.replication]).collect();
        runs.goodput_bps.push((8.0 * report.delivered_bytes as f64 / self.duration_s).round());
        let ratio = report.retransmitted as f64 / report.segments_sent.max(1) as f64;
        runs.retransmitted_ratio.push((ratio * 1e5).round() / 1e5);
        runs.late_p99_us.push((report.late_p99.as_secs_f64() * 1e6).round());
    }
}

impl Runs {
    fn none(congestion: String) -> Self {
        Runs {
            congestion,
            replications: Vec::new(),
            goodput_bps: Vec::new(),
            retransmitted_ratio: Vec::new(),
            late_p99_us: Vec::new(),
        }
    }

    /// Replication number of each run.
    pub fn replications(&self) -> impl Iterator<Item = u64> {
        let said = |place| self.replications.get(place).copied();
        (0..self.goodput_bps.len()).map(move |place| said(place).unwrap_or(place as u64))
    }
}

/// A run to make.
#[derive(Clone, Debug)]
pub struct Job {
    /// Number of the path.
    pub index: u64,
    /// The path.
    pub path: Path,
    /// Congestion control.
    pub congestion: String,
    /// The replication, which determines the path's losses.
    pub replication: u64,
}

/// Makes runs, several at once, and passes the record to `save` after each.
pub fn record(
    record: Record,
    jobs: impl IntoIterator<Item = Job>,
    at_once: usize,
    save: &(dyn Fn(&Record) -> Outcome<()> + Sync),
) -> Outcome<Record> {
    let (seed, duration_s) = (record.seed, record.duration_s);
    let jobs = Mutex::new(jobs.into_iter().collect::<VecDeque<_>>());
    let record = Mutex::new(record);
    let next = || jobs.lock().ok()?.pop_front();
    let work = || -> Outcome<()> {
        while let Some(job) = next() {
            let Some(report) = make(&job, seed, duration_s)? else {
                eprintln!("too late, left out: {} {}", job.congestion, job.path.title());
                continue;
            };
            let mut record = record.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            record.add(&job, &report);
            save(&record)?;
            let goodput = 8e-6 * report.delivered_bytes as f64 / duration_s;
            let (name, title) = (&job.congestion, job.path.title());
            eprintln!("{:3} {name:6} {title}: {goodput:.3} Mbit/s", job.index);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(made) => made,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok(record.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Repeats a run until the emulator was in time; `None` if it never was.
fn make(job: &Job, seed: u64, duration_s: f64) -> Outcome<Option<LineReport>> {
    let late_max = Duration::from_secs_f64(LATE_RATIO_MAX * job.path.rtt_ms / 1e3);
    for _ in 0..ATTEMPTS {
        let report = run_line(&LineRun {
            forth: job.path.pipe(),
            back: job.path.pipe(),
            seed,
            replication: job.replication,
            congestion: job.congestion.clone(),
            duration: Duration::from_secs_f64(duration_s),
        });
        match report {
            Ok(report) if report.late_p99 <= late_max => return Ok(Some(report)),
            Ok(_) => {}
            Err(corridor_lab::LabError::Interrupted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third run of three was left out, which is not the last there is.
    #[test]
    fn a_run_that_was_left_out_is_made_again_under_its_own_number() {
        let runs = |replications| Runs {
            replications,
            goodput_bps: vec![1e6; 3],
            ..Runs::none("cubic".to_owned())
        };
        let record = |runs| {
            let path = Path::draw(1, 0);
            Record {
                paths: vec![Recorded { index: 0, path, runs: vec![runs] }],
                ..Record::default()
            }
        };
        let lacks = |record: Record| -> Vec<u64> {
            (0..4).filter(|&number| !record.has(0, "cubic", number)).collect()
        };
        assert_eq!(lacks(record(runs(vec![0, 1, 3]))), [2]);
        assert_eq!(lacks(record(runs(Vec::new()))), [3], "a recording that does not say");
        assert_eq!(lacks(Record::default()), [0, 1, 2, 3]);
    }
}
