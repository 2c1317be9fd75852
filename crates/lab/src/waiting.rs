//! How long threads had a processor, and how long they were runnable and waited for one.
//!
//! The kernel counts both for every thread (`/proc/PID/task/TID/schedstat`, first and second field;
//! see Documentation/scheduler/sched-stats.rst). An emulator on time says nothing about this: while
//! a node or the load waits, frames wait with it, and goodput and delay are then those of a busy
//! machine rather than of the path.

use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

/// Threads to watch, each under a name; several may share one.
#[derive(Debug, Default)]
pub(crate) struct Watched(Vec<(&'static str, PathBuf)>);

impl Watched {
    /// All threads of another process.
    pub(crate) fn add_process(&mut self, name: &'static str, pid: u32) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        self.0.extend(tasks.map(|task| (name, task.path().join("schedstat"))));
    }

    /// A thread of this process.
    pub(crate) fn add_thread(&mut self, name: &'static str, thread: Pid) {
        self.0.push((name, format!("/proc/self/task/{thread}/schedstat").into()));
    }

    /// Their times so far.
    pub(crate) fn read(&self) -> Times {
        Times(self.0.iter().map(|(name, path)| (*name, spent(path))).collect())
    }
}

/// Time with a processor, and time waiting for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) ran: Duration,
    pub(crate) waited: Duration,
}

/// Times of watched threads since they began; `None` for threads that are gone.
#[derive(Debug)]
pub(crate) struct Times(Vec<(&'static str, Option<Spent>)>);

impl Times {
    /// Times since an earlier reading of the same threads, by name.
    pub(crate) fn since(&self, earlier: &Times) -> BTreeMap<&'static str, Spent> {
        let mut sums = BTreeMap::new();
        for ((name, now), (_, before)) in self.0.iter().zip(&earlier.0) {
            // A kernel without these counters has no such files: then nothing is reported.
            if let (Some(now), Some(before)) = (now, before) {
                let sum: &mut Spent = sums.entry(*name).or_default();
                sum.ran += now.ran.saturating_sub(before.ran);
                sum.waited += now.waited.saturating_sub(before.waited);
            }
        }
        sums
    }
}

fn spent(path: &Path) -> Option<Spent> {
    let text = fs::read_to_string(path).ok()?;
    let mut fields = text.split_whitespace().map(|field| field.parse().map(Duration::from_nanos));
    Some(Spent { ran: fields.next()?.ok()?, waited: fields.next()?.ok()? })
}

/// Time of all processors, and how much of it a hypervisor gave to others, in kernel ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    all: u64,
    stolen: u64,
}

impl Machine {
    /// Since the machine started (`/proc/stat`, see proc_stat(5)).
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // User, nice, system, idle, iowait, irq, softirq, steal; the rest is part of these.
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        Some(Machine { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// Share stolen since an earlier reading; `None` if no time has passed.
    pub(crate) fn stolen_since(self, earlier: Machine) -> Option<f64> {
        let all = self.all.saturating_sub(earlier.all);
        (all > 0).then(|| self.stolen.saturating_sub(earlier.stolen) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stolen_share_is_that_of_all_processors_time() {
        let before = Machine::parse("cpu  10 20 30 40 0 0 0 0 5 0\ncpu0 1 2\n").unwrap();
        let after = Machine::parse("cpu  20 30 40 60 10 10 10 20 9 9\n").unwrap();
        assert_eq!(after.stolen_since(before), Some(0.2));
        assert_eq!(after.stolen_since(after), None);
        assert_eq!(Machine::parse("cpu  1 2 3\n"), None);
        assert_eq!(Machine::parse("intr 1\n"), None);
    }

    fn ms(ran: u64, waited: u64) -> Option<Spent> {
        let [ran, waited] = [ran, waited].map(Duration::from_millis);
        Some(Spent { ran, waited })
    }

    #[test]
    fn times_are_summed_by_name_and_threads_that_are_gone_are_passed_over() {
        let before =
            Times(vec![("S", ms(9, 1)), ("load", ms(0, 5)), ("load", ms(1, 2)), ("D", ms(0, 3))]);
        let after =
            Times(vec![("S", ms(9, 4)), ("load", ms(2, 6)), ("load", ms(4, 9)), ("D", None)]);
        let expected = [("S", ms(0, 3).unwrap()), ("load", ms(5, 8).unwrap())];
        assert_eq!(after.since(&before), BTreeMap::from(expected));
    }

    #[test]
    fn the_kernels_file_has_both_in_nanoseconds() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "165932000000 2441000000 2\n").unwrap();
        assert_eq!(spent(file.path()), ms(165_932, 2_441));
        fs::write(file.path(), "12").unwrap();
        assert_eq!(spent(file.path()), None);
        assert_eq!(spent(Path::new("/no/such/file")), None);
    }

    #[test]
    fn this_process_can_be_watched() {
        let mut watched = Watched::default();
        watched.add_process("self", std::process::id());
        watched.add_thread("thread", nix::unistd::gettid());
        let times = watched.read();
        assert!(times.0.len() >= 2, "{times:?}");
    }
}
