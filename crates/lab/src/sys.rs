//! System calls without a safe wrapper; the crate's only file with `unsafe` code.
#![allow(unsafe_code)]

use core::mem::{MaybeUninit, size_of};
use core::time::Duration;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Creates a TAP interface in the calling thread's network namespace. It lives as long as the file
/// returned. Frames have no extra header, and there are no offloads: every frame on the file is one
/// frame on the air.
pub(crate) fn make_tap(name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
    let file = options.open("/dev/net/tun")?;
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: all-zero bytes are a valid ifreq, a structure of integers and a union of such.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the file is open, and TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

/// How a thread is scheduled: a kernel scheduling policy, and a priority within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    policy: libc::c_int,
    priority: libc::c_int,
}

impl Schedule {
    /// Runs until it waits, before all of a lower real-time priority (SCHED_FIFO).
    pub(crate) const fn fifo(priority: i32) -> Self {
        Schedule { policy: libc::SCHED_FIFO, priority }
    }

    /// Like [`fifo`](Self::fifo), in turns with others of the same priority (SCHED_RR).
    pub(crate) const fn round_robin(priority: i32) -> Self {
        Schedule { policy: libc::SCHED_RR, priority }
    }

    /// The calling thread's schedule.
    pub(crate) fn current() -> io::Result<Self> {
        let mut parameter = libc::sched_param { sched_priority: 0 };
        // SAFETY: the parameter is alive and of the right type; 0 is the calling thread.
        let policy = unsafe {
            match libc::sched_getparam(0, &mut parameter) {
                0 => libc::sched_getscheduler(0),
                refused => refused,
            }
        };
        match policy {
            0.. => Ok(Schedule { policy, priority: parameter.sched_priority }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Applies it to the calling thread. Threads and processes started by it inherit the schedule.
    pub(crate) fn apply(self) -> io::Result<()> {
        let parameter = libc::sched_param { sched_priority: self.priority };
        // SAFETY: the parameter outlives the call; 0 is the calling thread.
        match unsafe { libc::sched_setscheduler(0, self.policy, &parameter) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Locks all present and future memory of this process.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes a command run in another network namespace, and die when the calling thread dies.
pub(crate) fn confine(command: &mut Command, namespace: OwnedFd) {
    let parent = std::process::id();
    let enter = move || {
        // SAFETY: these calls take no pointers, and are async-signal-safe as system calls are; the
        // descriptor is owned by this closure, and so is open in the child until it executes.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0
                || libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) < 0
            {
                return Err(io::Error::last_os_error());
            }
            // The parent may have died before the signal was requested.
            if libc::getppid() as u32 != parent {
                libc::_exit(1);
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec, and only makes async-signal-safe calls.
    unsafe { command.pre_exec(enter) };
}

/// Makes a command die when the calling thread dies. For the first process of a PID namespace,
/// which cannot see its parent and so cannot tell whether it has died already.
pub(crate) fn die_with_parent(command: &mut Command) {
    let ask = || {
        // SAFETY: the call takes no pointers, and is async-signal-safe as system calls are.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure runs between fork and exec, and only makes async-signal-safe calls.
    unsafe { command.pre_exec(ask) };
}

/// How a child ended, and the processor time that it and its own children used.
pub(crate) struct Exit {
    /// As in `waitpid`.
    pub(crate) status: std::process::ExitStatus,
    /// User and system time.
    pub(crate) cpu: Duration,
}

/// Reaps a child if it has ended.
pub(crate) fn try_wait(pid: u32) -> io::Result<Option<Exit>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live variables of the right types.
    let reaped =
        unsafe { libc::wait4(pid as libc::pid_t, &mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match reaped {
        0 => Ok(None),
        n if n < 0 => Err(io::Error::last_os_error()),
        _ => {
            // SAFETY: it was zeroed, which is a valid rusage, and then filled by the kernel.
            let usage = unsafe { usage.assume_init() };
            let span = |time: libc::timeval| {
                Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
            };
            let cpu = span(usage.ru_utime) + span(usage.ru_stime);
            let status = std::os::unix::process::ExitStatusExt::from_raw(status);
            Ok(Some(Exit { status, cpu }))
        }
    }
}

/// Sets how many unsent bytes a TCP socket takes before it counts as full.
pub(crate) fn set_notsent_lowat(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    // SAFETY: the value outlives the call, and its length is the one given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NOTSENT_LOWAT,
            (&raw const bytes).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The kernel's state of a TCP connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpInfo {
    /// Data segments sent since the connection began, including retransmissions.
    pub(crate) segments_sent: u64,
    /// Retransmissions since the connection began.
    pub(crate) retransmits: u64,
    /// Smoothed round-trip time.
    pub(crate) rtt: Duration,
    /// Congestion window, packets.
    pub(crate) cwnd_packets: u32,
    /// Time with data in flight since the connection began.
    pub(crate) busy: Duration,
    /// Part of it in which the receiver's window limited sending.
    pub(crate) window_limited: Duration,
    /// Part of it in which the send buffer limited sending.
    pub(crate) buffer_limited: Duration,
}

/// Reads the kernel's state of a TCP connection.
pub(crate) fn tcp_info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the buffer is as long as `len` says, and the kernel writes no more than that.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is a structure of integers that was zeroed before the kernel filled it.
    let info = unsafe { info.assume_init() };
    Ok(TcpInfo {
        segments_sent: u64::from(info.tcpi_data_segs_out),
        retransmits: u64::from(info.tcpi_total_retrans),
        rtt: Duration::from_micros(u64::from(info.tcpi_rtt)),
        cwnd_packets: info.tcpi_snd_cwnd,
        busy: Duration::from_micros(info.tcpi_busy_time),
        window_limited: Duration::from_micros(info.tcpi_rwnd_limited),
        buffer_limited: Duration::from_micros(info.tcpi_sndbuf_limited),
    })
}
