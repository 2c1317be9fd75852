//! Network namespaces and daemons for tests, which leave nothing behind: a namespace lives as long
//! as its value and the processes in it, and a daemon is killed when its value is dropped.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

/// If set, a test that cannot have a network fails instead of being skipped.
const REQUIRE_NET: &str = "CORRIDOR_REQUIRE_NET";
/// Set in a test that runs itself again as root of a user namespace.
const INSIDE: &str = "CORRIDOR_TEST_INSIDE";
/// Longest time that a test waits for anything: in isolation seconds suffice, but other work may
/// occupy the processors.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test that needs root rights over a network: directly if we are root, else in a user
/// namespace of its own.
pub fn with_net(test: &str, body: impl FnOnce()) {
    if let Err(why) = Command::new("ip").arg("-V").output() {
        return skip(test, &format!("no ip command: {why}"));
    }
    if let Err(why) = File::options().read(true).write(true).open("/dev/net/tun") {
        return skip(test, &format!("/dev/net/tun: {why}"));
    }
    if geteuid().is_root() {
        return match Namespace::new() {
            Ok(_) => body(),
            Err(why) => skip(test, &format!("no network namespaces: {why}")),
        };
    }
    assert!(std::env::var_os(INSIDE).is_none(), "not root in a user namespace");
    let available = Command::new("unshare").args(["-Urnm", "true"]).status();
    if !available.is_ok_and(|status| status.success()) {
        return skip(test, "not root, and no user namespaces");
    }
    let this = std::env::current_exe().expect("own path");
    let status = Command::new("unshare")
        .arg("-Urnm")
        .arg(&this)
        .args([&full_name(&this, test), "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare starts");
    assert!(status.success(), "{test} failed in its user namespace");
}

/// A test's name with its modules.
fn full_name(program: &Path, test: &str) -> String {
    let listed = Command::new(program).args(["--list", "--format", "terse"]).output();
    let listed = String::from_utf8(listed.expect("this program runs").stdout).expect("names");
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let found: Vec<&str> = names.filter(|name| name.rsplit("::").next() == Some(test)).collect();
    let [name] = found[..] else { panic!("tests with the name {test}: {found:?}") };
    name.to_owned()
}

/// Real-time runs disturb each other on few processors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes without running the test, unless that is forbidden.
pub fn skip(test: &str, why: &str) {
    let required = std::env::var_os(REQUIRE_NET).is_some_and(|value| value == "1");
    assert!(!required, "{test} cannot run ({why}), and {REQUIRE_NET} forbids to skip it");
    println!("skipped: {test}: {why}");
}

/// A network namespace.
pub struct Namespace(File);

impl Namespace {
    pub fn new() -> nix::Result<Self> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(Namespace(File::open("/proc/thread-self/ns/net").expect("own namespace")))
        };
        let namespace = thread::spawn(make).join().expect("no panic")?;
        namespace.ip("link set lo up");
        Ok(namespace)
    }

    /// Runs something in the namespace.
    pub fn run<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        let inside = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).expect("setns");
            what()
        };
        let done = thread::scope(|scope| scope.spawn(inside).join());
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs `ip` with these arguments; it must succeed.
    pub fn ip(&self, words: &str) -> String {
        let output = self.try_ip(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "ip {words}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `ip` with these arguments.
    pub fn try_ip(&self, words: &str) -> Output {
        self.run(|| Command::new("ip").args(words.split_whitespace()).output().expect("ip"))
    }

    /// The output of `ip -j` with these arguments.
    pub fn ip_json(&self, words: &str) -> serde_json::Value {
        serde_json::from_str(&self.ip(&format!("-j {words}"))).expect("JSON")
    }

    /// Whether an interface with this name exists.
    pub fn has(&self, interface: &str) -> bool {
        self.try_ip(&format!("link show {interface}")).status.success()
    }

    /// A cable to another namespace; both ends are up.
    pub fn cable(&self, here: &str, other: &Namespace, there: &str) {
        let pid = std::process::id();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&other.0);
        self.ip(&format!("link add {here} type veth peer name {there} netns /proc/{pid}/fd/{fd}"));
        self.ip(&format!("link set {here} up"));
        other.ip(&format!("link set {there} up"));
    }
}

/// A directory for files, removed with its value.
pub struct Place(tempfile::TempDir);

impl Place {
    pub fn new(test: &str) -> Self {
        let prefix = format!("corridor-{test}-");
        Place(tempfile::Builder::new().prefix(&prefix).tempdir().expect("temporary directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file that only its owner may read.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path().join(name);
        fs::write(&path, text).expect("temporary file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        path
    }
}

/// A `corridor` with these arguments, which looks for control sockets in this directory.
pub fn corridor_command(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
    command.args(arguments).env("RUNTIME_DIRECTORY", place.path()).stdin(Stdio::null());
    command
}

/// Runs it. Returns exit code, standard output and standard error.
pub fn corridor(place: &Place, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = corridor_command(place, arguments).output().expect("corridor starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A running `corridor`. If its test fails, its log and its counters are printed.
pub struct Daemon {
    child: Child,
    config: Option<PathBuf>,
    log: Arc<Mutex<String>>,
    reader: Option<thread::JoinHandle<()>>,
}

impl Daemon {
    /// `corridor up` with these arguments, in a namespace.
    pub fn up(namespace: &Namespace, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
        command.args(["up", "-v"]).args(arguments);
        Daemon::start(namespace, command)
    }

    /// Starts a command whose process is, or becomes, a `corridor`.
    pub fn start(namespace: &Namespace, mut command: Command) -> Self {
        // The control socket is in the configuration's directory, and is removed with it.
        let arguments = || command.get_args().map(Path::new);
        let config = arguments().find(|file| file.extension().is_some_and(|end| end == "toml"));
        let config = config.map(Path::to_owned);
        if let Some(place) = config.as_deref().and_then(Path::parent) {
            command.env("RUNTIME_DIRECTORY", place);
        }
        command.env_remove("CORRIDOR_LOG").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = namespace.run(|| command.spawn().expect("corridor starts"));
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, sink) = (BufReader::new(child.stderr.take().expect("piped")), log.clone());
        let reader = thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut sink = sink.lock().expect("no panic");
                sink.push_str(&line);
                sink.push('\n');
            }
        });
        Daemon { child, config, log, reader: Some(reader) }
    }

    /// Its status.
    fn status(&self) -> Option<String> {
        let (place, name) = (self.config.as_ref()?.parent()?, self.config.as_ref()?.file_stem()?);
        let mut command = Command::new(env!("CARGO_BIN_EXE_corridor"));
        command.env("RUNTIME_DIRECTORY", place).arg("status").arg(name).arg("--counters");
        let said = command.output().ok()?;
        Some(String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
    }

    /// Its output so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("no panic").clone()
    }

    /// Waits until it prints this.
    pub fn wait_for(&mut self, words: &str) -> &mut Self {
        let said = until(|| self.log().contains(words).then_some(()));
        assert!(said.is_some(), "not said: {words}\n{}", self.log());
        self
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, signal).expect("a living process");
    }

    /// Waits for its end. Returns exit code and output.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = until(|| self.child.try_wait().expect("own child"));
        let Some(status) = status else { panic!("does not end\n{}", self.log()) };
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
        (ExitStatus::code(&status), self.log())
    }

    /// Stops it. Returns exit code and output.
    pub fn stop(self) -> (Option<i32>, String) {
        self.signal(Signal::SIGTERM);
        self.end()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("---- a daemon said:\n{}", self.log());
            eprintln!("---- and is:\n{}", self.status().unwrap_or_default());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Repeats a query until there is an answer, or a timeout.
pub fn until<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        match ask() {
            None if start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(10)),
            answer => return answer,
        }
    }
}

/// A configuration up to its peers: an endpoint with a TUN device `cor0`, with further keys in
/// `tun`.
pub fn node(id: u8, underlay: &str, tun: &str) -> String {
    format!(
        r#"
        [station]
        id = {id}
        role = "endpoint"
        [security]
        psk = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
        [tun]
        name = "cor0"
        addresses = ["10.9.0.{id}/24", "fd00:9::{id}/64"]
        {tun}
        [underlay]
        {underlay}
        "#
    )
}

/// A configuration without coding: one of two ends; `rest` has the other's address.
pub fn endpoint(id: u8, underlay: &str, rest: &str) -> String {
    let routed = 20 + id;
    let routes = format!(r#"routes = ["10.{routed}.0.0/16", "fd00:{routed}::/64"]"#);
    let peer = format!("[[peer]]\nid = {}\nrole = \"endpoint\"\n{rest}\n", 3 - id);
    node(id, underlay, &routes) + &peer
}

/// A stream to an address of another host arrives completely.
pub fn stream(from: &Namespace, to: &Namespace, address: IpAddr, len: usize) {
    let listener = to.run(|| TcpListener::bind((address, 0)).unwrap());
    let there = listener.local_addr().unwrap();
    let sent: Vec<u8> = (0..len).map(|at| ((at * at) >> 5) as u8).collect();
    let received = thread::scope(|scope| {
        let received = scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut received = Vec::new();
            if let Err(error) = stream.read_to_end(&mut received) {
                panic!("{} of {len} bytes came to {address}, then: {error}", received.len());
            }
            received
        });
        from.run(|| {
            let stream = TcpStream::connect_timeout(&there, PATIENCE);
            let mut stream = stream.unwrap_or_else(|error| panic!("connect to {there}: {error}"));
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        received.join().unwrap()
    });
    assert!(received == sent, "{} of {len} bytes, or others", received.len());
}
