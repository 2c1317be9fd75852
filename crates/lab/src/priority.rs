//! Scheduling priorities on a busy machine: the medium first, then what sends and receives over it,
//! then all other work.
//!
//! The emulator has a real-time priority of its own, above that of the nodes and the load: it alone
//! would not help where a node waits for a processor while it holds a frame. Nodes and load inherit
//! their priority from the thread that makes a run. They share it in turns (SCHED_RR), so that one
//! that never waits does not starve the others. Memory is locked: a page fault, or another thread's
//! change of a mapping, would stop the emulator whatever its priority.
//!
//! Runs that measure what the processors can do have no such priority: they would take all
//! processors, and the kernel would stop them for 5 % of every second (sched(7), "Limiting the CPU
//! usage of real-time processes").

use std::fs;
use std::io;
use std::sync::OnceLock;
use std::thread;

use corridor_scenario::Wire;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::rights;
use crate::sys::{self, Schedule};

/// The medium's: below the kernel's own threads, which begin at 50.
pub(crate) const EMULATOR: Schedule = Schedule::fifo(PRIORITY_MAX);
/// That of nodes, external tunnels and load.
const STATIONS: Schedule = Schedule::round_robin(PRIORITY_MAX - 1);
const PRIORITY_MAX: i32 = 20;

/// The calling thread's previous schedule, which is restored when this is dropped.
pub(crate) struct Raised(Option<Schedule>);

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // Lowering the priority is always permitted.
            let _ = before.apply();
        }
    }
}

/// Gives the calling thread, and what it starts from now on, the stations' priority on this wire.
/// Without the right to do so nothing changes; [`missing_rights`] reports it.
pub(crate) fn raise_stations(wire: Wire) -> Raised {
    if wire == Wire::Veth {
        return Raised(None);
    }
    Raised(Schedule::current().ok().filter(|_| STATIONS.apply().is_ok()))
}

/// Locks the memory of this process, once.
pub(crate) fn lock_memory() -> &'static Result<(), String> {
    static LOCKED: OnceLock<Result<(), String>> = OnceLock::new();
    LOCKED.get_or_init(|| {
        // With a limit, later allocations would fail instead of this call.
        if !may_lock_all() {
            return Err("there is a limit to what this process may lock".to_owned());
        }
        sys::lock_memory().map_err(|error| error.to_string())
    })
}

fn may_lock_all() -> bool {
    let is_unlimited =
        getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY);
    is_unlimited || rights::has_capability_of_machine(rights::CAP_IPC_LOCK)
}

/// Rights that this process lacks to keep the lab on time on a machine with other work, as text for
/// the user: why, the consequence, and what to change. Empty if none is missing.
pub fn missing_rights() -> Vec<String> {
    let realtime = may_be_realtime().map_err(|error| lacks_realtime(&error));
    let memory = lock_memory().as_ref().map_err(|why| lacks_memory(why));
    [realtime.err(), memory.err()].into_iter().flatten().collect()
}

/// Tries it in a thread that ends at once.
fn may_be_realtime() -> io::Result<()> {
    let tried = thread::spawn(|| EMULATOR.apply()).join();
    tried.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

fn lacks_realtime(error: &io::Error) -> String {
    let group = match fs::read_to_string("/proc/self/cgroup") {
        Ok(groups) if has_group_of_processor(&groups) => {
            ", and a control group with real-time bandwidth (cpu.rt_runtime_us)"
        }
        _ => "",
    };
    format!(
        "no real-time priority ({error}): beside other work the medium comes late and stations wait \
         for processors, and such runs are not valid. It takes CAP_SYS_NICE (in a container: \
         --cap-add SYS_NICE), or a limit on real-time priority of {PRIORITY_MAX} or more (ulimit \
         -r; rtprio in /etc/security/limits.conf){group}"
    )
}

fn lacks_memory(why: &str) -> String {
    format!(
        "memory is not locked ({why}): where other work needs memory, the medium waits for pages. \
         It takes CAP_IPC_LOCK (in a container: --cap-add IPC_LOCK), or no limit on locked memory \
         (ulimit -l; memlock in /etc/security/limits.conf)"
    )
}

/// Whether the CPU controller of control groups version 1 has put this process into a group other
/// than the root.
fn has_group_of_processor(groups: &str) -> bool {
    groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next().unwrap_or_default();
        controllers.split(',').any(|name| name == "cpu") && fields.next() != Some("/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_its_schedule_back_and_processor_bound_runs_change_nothing() {
        let own = Schedule::current().unwrap();
        let raised = raise_stations(Wire::Radio);
        let expected = if may_be_realtime().is_ok() { STATIONS } else { own };
        assert_eq!(Schedule::current().unwrap(), expected);
        // Threads inherit it.
        assert_eq!(thread::spawn(|| Schedule::current().unwrap()).join().unwrap(), expected);
        drop(raised);
        assert_eq!(Schedule::current().unwrap(), own);
        let _raised = raise_stations(Wire::Veth);
        assert_eq!(Schedule::current().unwrap(), own);
    }

    #[test]
    fn what_is_missing_is_named_with_what_follows_and_what_helps() {
        let said = lacks_realtime(&io::Error::from_raw_os_error(libc::EPERM));
        for part in ["Operation not permitted", "not valid", "CAP_SYS_NICE", "ulimit -r"] {
            assert!(said.contains(part), "{said}");
        }
        let said = lacks_memory("limited");
        assert!(said.contains("(limited)") && said.contains("CAP_IPC_LOCK"), "{said}");
    }

    #[test]
    fn a_control_group_of_the_processor_is_found_in_its_list() {
        for (groups, expected) in [
            ("2:cpuacct,cpu:/box\n0::/", true),
            ("2:cpu,cpuacct:/\n0::/box", false),
            ("3:cpuset:/box\n2:cpuacct:/box\n0::/", false),
            ("", false),
        ] {
            assert_eq!(has_group_of_processor(groups), expected, "{groups}");
        }
    }
}
