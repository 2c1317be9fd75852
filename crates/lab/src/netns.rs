//! Network namespaces without a name, held only by file descriptors.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Pid, gettid};

use crate::error::{Context, LabError};

/// A network namespace; it ends with the last copy of this, the last process and the last socket in
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Arc<File>);

impl Namespace {
    /// A new, empty namespace.
    pub(crate) fn new() -> Result<Self, LabError> {
        // The thread that creates the namespace is in it, so it is a separate one, and ends at
        // once.
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let file = made.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        Ok(Namespace(Arc::new(file.what("make a network namespace")?)))
    }

    /// A duplicate descriptor, for a child process.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd, LabError> {
        self.0.as_fd().try_clone_to_owned().what("keep a network namespace")
    }

    /// A path to it for programs that need one, valid as long as this process lives.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs a closure in a thread inside it. Sockets created there remain in it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<Inside<T>, LabError> {
        let file = Arc::clone(&self.0);
        let (tell, told) = mpsc::sync_channel(1);
        let inside = move || {
            // The receiver is gone if the thread could not be started.
            let _ = tell.send(gettid());
            setns(file.as_fd(), CloneFlags::CLONE_NEWNET).what("enter a network namespace")?;
            work()
        };
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(inside);
        let handle = spawned.what("start a thread")?;
        let id = told.recv().map_err(io::Error::other).what("start a thread")?;
        Ok(Inside { handle, id })
    }

    /// Like [`spawn`](Self::spawn), and waits for the result.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, LabError> {
        self.spawn("lab-setup", work)?.join()
    }
}

/// A thread inside a namespace.
pub(crate) struct Inside<T> {
    handle: JoinHandle<Result<T, LabError>>,
    id: Pid,
}

impl<T> Inside<T> {
    /// The kernel's thread ID.
    pub(crate) fn id(&self) -> Pid {
        self.id
    }

    /// Waits for its result.
    pub(crate) fn join(self) -> Result<T, LabError> {
        match self.handle.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
