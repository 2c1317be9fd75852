//! The right to create network namespaces: root's, or that of a user namespace.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::LabError;
use crate::netns::Namespace;
use crate::priority;
use crate::sys;

/// Numbers of the capabilities needed, as in `linux/capability.h`.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;
/// Needed to lock memory without a limit.
pub(crate) const CAP_IPC_LOCK: u32 = 14;

const HELP_NAMESPACE: &str = "Run it as root, or allow user namespaces \
    (kernel.unprivileged_userns_clone = 1, kernel.apparmor_restrict_unprivileged_userns = 0, \
    user.max_user_namespaces > 0; in a container: --privileged, or --cap-add SYS_ADMIN \
    --cap-add NET_ADMIN without the default seccomp profile). The simulator needs no rights.";
const HELP_TAP: &str = "TAP interfaces need the tun module (modprobe tun), and a /dev/net/tun \
    that this user may read and write (chmod 666 /dev/net/tun; in a container: --device \
    /dev/net/tun). The simulator needs no rights.";

/// Makes sure that this process may create network namespaces and TAP interfaces, and locks its
/// memory if it may.
///
/// A process without the capabilities moves into a user namespace where it has them. That must
/// happen before it starts its first thread, so a program calls this first.
///
/// # Errors
/// [`LabError::NotPermitted`] if the system allows neither, with what to change.
pub fn prepare() -> Result<(), LabError> {
    if !is_capable() {
        enter_user_namespace()?;
    }
    let namespace = Namespace::new().map_err(|error| not_permitted(error, HELP_NAMESPACE))?;
    let probe = namespace.run(|| {
        sys::make_tap("probe")
            .map(drop)
            .map_err(|source| LabError::System { what: "make a TAP interface".into(), source })
    });
    probe.map_err(|error| not_permitted(error, HELP_TAP))?;
    // A failure is harmless by itself; `missing_rights` reports it.
    let _ = priority::lock_memory();
    Ok(())
}

fn not_permitted(error: LabError, help: &'static str) -> LabError {
    match error {
        LabError::System { source, .. } => {
            let what = if help == HELP_TAP {
                "making a TAP interface"
            } else {
                "making a network namespace"
            };
            LabError::NotPermitted { what, source, help }
        }
        other => other,
    }
}

fn is_capable() -> bool {
    let needed = 1u64 << CAP_NET_ADMIN | 1 << CAP_NET_RAW | 1 << CAP_SYS_ADMIN;
    // Without /proc this is unknown; trying will tell.
    effective().is_none_or(|mask| mask & needed == needed)
}

/// Bitmap of the effective capabilities; `None` without `/proc`.
fn effective() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Whether a capability is effective for the whole machine: that of a user namespace of its own
/// does not reach beyond the namespace.
pub(crate) fn has_capability_of_machine(capability: u32) -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    effective().is_some_and(|mask| mask >> capability & 1 == 1) && is_whole(&map)
}

/// Whether a user ID map is the initial namespace's: the identity.
fn is_whole(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

fn enter_user_namespace() -> Result<(), LabError> {
    let refused = |source: io::Error| LabError::NotPermitted {
        what: "making a user namespace",
        source,
        help: HELP_NAMESPACE,
    };
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET)
        .map_err(|errno| refused(errno.into()))?;
    // An ordinary user may only map itself, and its group only after giving up setgroups.
    fs::write("/proc/self/setgroups", "deny").map_err(refused)?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).map_err(refused)?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_user_namespace_is_told_from_others() {
        for (map, expected) in [
            ("         0          0 4294967295\n", true),
            ("         0       1000          1\n", false),
            ("0 0 1000\n1000 1000 4294966295\n", false),
            ("", false),
        ] {
            assert_eq!(is_whole(map), expected, "{map}");
        }
    }
}
