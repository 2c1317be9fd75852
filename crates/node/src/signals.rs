//! Signals as a file descriptor to wait on.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::NodeError;

/// The signals that the loop handles, as a descriptor.
pub(crate) struct Signals(pub(crate) SignalFd);

impl Signals {
    pub(crate) fn block() -> Result<Self, NodeError> {
        let source = |errno: Errno| NodeError::System {
            action: "catch signals".into(),
            source: errno.into(),
        };
        let mut set = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGUSR1, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().map_err(source)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        SignalFd::with_flags(&set, flags).map(Signals).map_err(source)
    }

    /// The next signal, if one has come.
    pub(crate) fn next(&self) -> Result<Option<Signal>, NodeError> {
        let read = self.0.read_signal().map_err(|errno| NodeError::System {
            action: "read a signal".into(),
            source: errno.into(),
        })?;
        let number = read.and_then(|info| i32::try_from(info.ssi_signo).ok());
        Ok(number.and_then(|number| Signal::try_from(number).ok()))
    }

    /// From now on SIGTERM and SIGINT end the process, as by default.
    pub(crate) fn unblock(&self) {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        let _ = set.thread_unblock();
    }
}
