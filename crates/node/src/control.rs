//! The control socket: other processes on this machine query the status of a running node.
//!
//! A client connects, sends one line of JSON, `{"version": 1, "request": "status"}`, and gets one
//! line of JSON, `{"version": 1, "status": {...}}` or `{"version": 1, "error": "..."}`; then the
//! connection is closed. File permissions determine who may connect: root and one group.
//!
//! Nothing here blocks: all sockets are non-blocking, and requests and clients are bounded. An
//! answer stays buffered until its client reads it, or until the client's place is needed.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use nix::unistd::Group;
use serde::{Deserialize, Serialize};

use crate::status::Status;

/// Version of the socket's protocol.
pub const CONTROL_VERSION: u32 = 1;
/// Directory of the sockets unless the environment names another.
const DIRECTORY: &str = "/run/corridor";
/// Environment variable with that directory, as systemd sets it for `RuntimeDirectory=`.
const DIRECTORY_VARIABLE: &str = "RUNTIME_DIRECTORY";
/// The group that may connect if the configuration names none, and this group exists.
const GROUP_DEFAULT: &str = "corridor";
/// Clients at a time.
pub(crate) const CLIENTS_MAX: usize = 8;
/// Longest request in bytes.
const REQUEST_LEN_MAX: usize = 1024;

/// A client's request.
#[derive(Debug, Deserialize, Serialize)]
pub struct Request {
    /// [`CONTROL_VERSION`].
    pub version: u32,
    /// The request: `"status"`.
    pub request: String,
}

/// The answer to a request.
#[derive(Debug, Deserialize, Serialize)]
pub struct Answer {
    /// [`CONTROL_VERSION`].
    pub version: u32,
    /// The node's status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// Why there is no status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The directory of control sockets: the first that `RUNTIME_DIRECTORY` names, or `/run/corridor`.
pub fn control_directory() -> PathBuf {
    let named = std::env::var(DIRECTORY_VARIABLE).unwrap_or_default();
    match named.split(':').find(|name| !name.is_empty()) {
        Some(name) => name.into(),
        None => DIRECTORY.into(),
    }
}

/// The control socket of the node with this name.
pub fn control_socket(name: &str) -> PathBuf {
    control_directory().join(format!("{name}.sock"))
}

/// A node's end of its control socket, which is removed when this value is dropped.
pub(crate) struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// The inode of the socket's file, since another socket may have taken over its name.
    inode: (u64, u64),
    /// Oldest first.
    clients: Vec<Client>,
}

struct Client {
    stream: UnixStream,
    request: Vec<u8>,
    /// The rest of the answer, once the request was read.
    answer: Option<Vec<u8>>,
}

/// The state of a client.
#[derive(PartialEq, Eq)]
enum State {
    Waits,
    Done,
}

impl Control {
    /// Listens on the socket of a node. `group`: name of the group that may connect besides root.
    ///
    /// # Errors
    /// A description of why there is no socket.
    pub(crate) fn open(path: &Path, group: Option<&str>) -> Result<Self, String> {
        let told = |source: io::Error| format!("{}: {source}", path.display());
        let group = group_id(group)?;
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory).map_err(told)?;
        }
        if path.exists() {
            if UnixStream::connect(path).is_ok() {
                return Err(format!("{}: another node with this name is running", path.display()));
            }
            // Left behind by a node that is gone.
            fs::remove_file(path).map_err(told)?;
        }
        let listener = bind_unheard(path).map_err(told)?;
        let metadata = fs::metadata(path).map_err(told)?;
        let inode = (metadata.dev(), metadata.ino());
        let control = Control { listener, path: path.into(), inode, clients: Vec::new() };
        if let Some(group) = group {
            chown(path, None, Some(group)).map_err(told)?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(told)?;
        // Listening begins only once the permissions are set.
        let backlog = Backlog::new(CLIENTS_MAX as i32).map_err(|errno| told(errno.into()))?;
        listen(&control.listener, backlog).map_err(|errno| told(errno.into()))?;
        Ok(control)
    }

    /// File descriptors to wait on, and whether each is for reading (or else writing).
    pub(crate) fn fds(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let clients = self.clients.iter();
        std::iter::once((self.listener.as_fd(), true))
            .chain(clients.map(|client| (client.stream.as_fd(), client.answer.is_none())))
    }

    /// Serves the clients that are ready. `status` is called only if a client asks for it.
    pub(crate) fn serve(&mut self, status: impl Fn() -> Status) {
        self.clients.retain_mut(|client| client.serve(&status) == State::Waits);
        for _ in 0..CLIENTS_MAX {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut client = Client { stream, request: Vec::new(), answer: None };
            if client.serve(&status) == State::Done {
                continue;
            }
            if self.clients.len() == CLIENTS_MAX {
                self.clients.remove(0);
            }
            self.clients.push(client);
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let own = fs::metadata(&self.path)
            .is_ok_and(|metadata| (metadata.dev(), metadata.ino()) == self.inode);
        if own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Client {
    fn serve(&mut self, status: impl Fn() -> Status) -> State {
        if self.answer.is_none() && self.read() == State::Done {
            return State::Done;
        }
        if self.answer.is_none() && self.request.ends_with(b"\n") {
            self.answer = Some(answer(&self.request, status));
        }
        let Some(waiting) = &mut self.answer else { return State::Waits };
        while !waiting.is_empty() {
            match self.stream.write(waiting) {
                Ok(0) => return State::Done,
                Ok(len) => drop(waiting.drain(..len)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return State::Waits,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return State::Done,
            }
        }
        State::Done
    }

    /// Reads what there is of the request, which ends with a newline.
    fn read(&mut self) -> State {
        let mut buffer = [0; REQUEST_LEN_MAX];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return State::Done,
                Ok(len) if self.request.len() + len > REQUEST_LEN_MAX => {
                    let why = format!("expected a line of at most {REQUEST_LEN_MAX} bytes");
                    self.answer = Some(refusal(why));
                    return State::Waits;
                }
                Ok(len) => self.request.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return State::Waits,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return State::Done,
            }
            if self.request.ends_with(b"\n") {
                return State::Waits;
            }
        }
    }
}

/// Binds a socket of that name, without listening.
fn bind_unheard(path: &Path) -> io::Result<UnixListener> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    bind(socket.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(UnixListener::from(socket))
}

fn answer(request: &[u8], status: impl Fn() -> Status) -> Vec<u8> {
    let request: Request = match serde_json::from_slice(request) {
        Ok(request) => request,
        Err(error) => return refusal(format!("cannot parse the request: {error}")),
    };
    if request.version != CONTROL_VERSION {
        return refusal(format!("version {}: expected {CONTROL_VERSION}", request.version));
    }
    match request.request.as_str() {
        "status" => line(&Answer { version: CONTROL_VERSION, status: Some(status()), error: None }),
        other => refusal(format!("request {other:?}: expected \"status\"")),
    }
}

fn refusal(error: String) -> Vec<u8> {
    line(&Answer { version: CONTROL_VERSION, status: None, error: Some(error) })
}

fn line(answer: &Answer) -> Vec<u8> {
    // This could fail only for a map with keys that are not strings, or a failing writer.
    let mut bytes = serde_json::to_vec(answer).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The group to own the socket, if there is one.
fn group_id(configured: Option<&str>) -> Result<Option<u32>, String> {
    let name = configured.unwrap_or(GROUP_DEFAULT);
    match (Group::from_name(name), configured) {
        (Ok(Some(group)), _) => Ok(Some(group.gid.as_raw())),
        (Ok(None), None) => Ok(None),
        (Ok(None), Some(name)) => Err(format!("control.group = {name:?}: no such group")),
        (Err(errno), _) => Err(format!("cannot look up the group {name}: {}", errno.desc())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::time::Duration;

    use super::*;

    fn control(test: &str) -> (tempfile::TempDir, Control) {
        let place = tempfile::Builder::new().prefix(test).tempdir().unwrap();
        let control = Control::open(&place.path().join("deep/node.sock"), None).unwrap();
        (place, control)
    }

    fn connect(control: &Control) -> UnixStream {
        let stream = UnixStream::connect(&control.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// The answer to this request.
    fn ask(control: &mut Control, request: &str) -> String {
        let mut client = connect(control);
        client.write_all(request.as_bytes()).unwrap();
        control.serve(Status::default);
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        assert!(control.clients.is_empty());
        answer
    }

    #[test]
    fn a_request_is_answered_with_a_line_and_the_connection_ends() {
        let (_place, mut control) = control("answered");
        let answer = ask(&mut control, "{\"version\": 1, \"request\": \"status\"}\n");
        let answer: Answer = serde_json::from_str(&answer).unwrap();
        assert!(answer.version == 1 && answer.status.is_some() && answer.error.is_none());
        let mode = fs::metadata(&control.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_reason() {
        let (_place, mut control) = control("refused");
        for (request, words) in [
            ("{\"version\": 2, \"request\": \"status\"}\n", "version 2: expected 1"),
            ("{\"version\": 1, \"request\": \"halt\"}\n", r#"request \"halt\": expected"#),
            ("no json\n", "cannot parse the request"),
            (&"x".repeat(REQUEST_LEN_MAX + 1), "a line of at most 1024 bytes"),
        ] {
            let answer = ask(&mut control, request);
            assert!(answer.contains(words), "{answer}");
        }
    }

    #[test]
    fn clients_that_say_nothing_or_take_nothing_hold_nobody_up() {
        let (_place, mut control) = control("mute");
        let mut mute = Vec::new();
        for _ in 0..3 {
            mute.extend((0..CLIENTS_MAX).map(|_| connect(&control)));
            control.serve(Status::default);
        }
        assert_eq!(control.fds().count(), 1 + CLIENTS_MAX);
        let mut client = connect(&control);
        client.write_all(b"{\"version\": 1, \"request\": \"status\"}\n").unwrap();
        control.serve(Status::default);
        let mut answer = String::new();
        BufReader::new(client).read_line(&mut answer).unwrap();
        assert!(answer.contains("\"status\""));
        drop(mute);
        control.serve(Status::default);
        assert!(control.clients.is_empty());
        // An answer that nobody reads stays buffered.
        let client = connect(&control);
        (&client).write_all(b"{\"version\": 1, \"request\": \"status\"}\n").unwrap();
        let long = || Status { name: "x".repeat(10_000_000), ..Status::default() };
        control.serve(long);
        assert_eq!(control.fds().map(|(_, reads)| reads).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_socket_that_was_left_behind_is_taken_and_a_living_one_is_not() {
        let (_place, control) = control("left");
        let path = control.path.clone();
        let error = Control::open(&path, None).err().unwrap();
        assert!(error.contains("another node with this name is running"), "{error}");
        let left = path.with_file_name("left.sock");
        drop(UnixListener::bind(&left).unwrap());
        assert!(left.exists() && Control::open(&left, None).is_ok());
        drop(control);
        assert!(!path.exists());
    }

    #[test]
    fn a_group_that_does_not_exist_is_an_error_only_if_it_was_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("node.sock");
        let error = Control::open(&path, Some("no-such-group")).err().unwrap();
        assert_eq!(error, "control.group = \"no-such-group\": no such group");
    }
}
