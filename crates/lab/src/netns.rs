//! Network namespaces without a name: a file descriptor is all that holds them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{Pid, gettid};

use crate::error::{Context, LabError};

/// A network namespace; it is gone when the last copy, the last process and the last socket in it
/// are.
#[derive(Clone, Debug)]
pub(crate) struct Namespace(Arc<File>);

impl Namespace {
    /// A new, empty one.
    pub(crate) fn new() -> Result<Self, LabError> {
        // The thread that makes it lives in it, so it is one of its own, and ends at once.
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let file = made.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        Ok(Namespace(Arc::new(file.what("make a network namespace")?)))
    }

    /// A descriptor of its own, for a child process.
    pub(crate) fn descriptor(&self) -> Result<OwnedFd, LabError> {
        self.0.as_fd().try_clone_to_owned().what("keep a network namespace")
    }

    /// A path that leads to it as long as this process lives, for programs that take one.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs something in a thread inside of it. Sockets made there stay there.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<Inside<T>, LabError> {
        let file = Arc::clone(&self.0);
        let (tell, told) = mpsc::sync_channel(1);
        let inside = move || {
            // Nobody waits for it when the thread could not be started.
            let _ = tell.send(gettid());
            setns(file.as_fd(), CloneFlags::CLONE_NEWNET).what("enter a network namespace")?;
            work()
        };
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(inside);
        let handle = spawned.what("start a thread")?;
        let id = told.recv().map_err(io::Error::other).what("start a thread")?;
        Ok(Inside { handle, id })
    }

    /// The same, and waits for it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, LabError> + Send + 'static,
    ) -> Result<T, LabError> {
        self.spawn("lab-setup", work)?.join()
    }
}

/// A thread inside of a namespace.
pub(crate) struct Inside<T> {
    handle: JoinHandle<Result<T, LabError>>,
    id: Pid,
}

impl<T> Inside<T> {
    /// The kernel's number of it.
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
