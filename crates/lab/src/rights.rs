//! The right to make network namespaces: root's, or that of a user namespace.

use std::fs;
use std::io;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::error::LabError;
use crate::netns::Namespace;
use crate::sys;

/// Bits of the capabilities that are needed, as in `linux/capability.h`.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
const CAP_SYS_ADMIN: u32 = 21;

const HELP_NAMESPACE: &str = "Run it as root, or allow user namespaces \
    (kernel.unprivileged_userns_clone = 1, kernel.apparmor_restrict_unprivileged_userns = 0, \
    user.max_user_namespaces > 0; in a container: --privileged, or --cap-add SYS_ADMIN \
    --cap-add NET_ADMIN without the default seccomp profile). The simulator needs no rights.";
const HELP_TAP: &str = "TAP interfaces need the tun module (modprobe tun), and a /dev/net/tun \
    that this user may read and write (chmod 666 /dev/net/tun; in a container: --device \
    /dev/net/tun). The simulator needs no rights.";

/// Makes sure that this process may make network namespaces and TAP interfaces.
///
/// A process without the capabilities moves into a user namespace where it has them; that must
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
    probe.map_err(|error| not_permitted(error, HELP_TAP))
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
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Without /proc there is nothing to go by; trying tells.
    effective.is_none_or(|mask| mask & needed == needed)
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
    // A user may map itself only, and its group only after giving up setgroups.
    fs::write("/proc/self/setgroups", "deny").map_err(refused)?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).map_err(refused)?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).map_err(refused)
}
