//! External tunnels: a command of the user's, started in the namespaces of S and D.
//!
//! Each side's command is the first process of a PID namespace of its own. When it is killed, or
//! its lab dies, the kernel kills everything that it has started, including daemons. Each side also
//! has a `/run` of its own, as control sockets and locks are not shared between two machines.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use corridor_scenario::{DESTINATION, SOURCE};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::clock;
use crate::echo::Echo;
use crate::error::{Context, LabError};
use crate::load;
use crate::netns::Inside;
use crate::node::{self, INNER_SUBNET, OUTER_SUBNET};
use crate::said::tail;
use crate::scratch::Scratch;
use crate::station::{self, NAMES, RADIO, Station};
use crate::sys;
use crate::template::{Place, Template};

/// Time limit for an external tunnel to come up.
const UP_MAX: Duration = Duration::from_secs(30);
/// Polling interval while waiting.
const TICK: Duration = Duration::from_millis(20);
/// Name of the interface that a tunnel has to create.
const TUN: &str = "tun0";
/// Where S connects to a proxy.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7790);
/// The shell command that runs each side. If the command goes into the background and its parent
/// exits successfully, the namespace remains; if it fails, the namespace ends.
const INIT: &str = "sh -c \"$1\" || exit; while :; do sleep 3600; done";
/// Where programs put control sockets, PID files and locks.
const RUN: &str = "/run";

/// An external tunnel: its name, and the command for both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Tunnel {
    name: String,
    template: Template,
}

impl Tunnel {
    /// Reads `NAME=COMMAND`. The command is a shell's; in it,
    ///
    /// - `{side}` is `S` (where the load comes from) or `D`, and `{other}` the other one;
    /// - `{local}` and `{remote}` are the IPv4 addresses of this side and the other one's radios;
    /// - `{address}` and `{peer}` are those that the tunnel is to have at its ends, in a /24; if
    ///   the command does not name `{address}`, the lab gives it to the interface `{tun}`;
    ///   `{subnet}` is the first address of that /24;
    /// - `{tun}` is the name of the interface to make, `{interface}` that of the radio;
    /// - `{netns}` is a path to this side's network namespace, which the command is in already;
    /// - `{dir}` is a directory of both sides, removed afterwards; `/run` is each side's own;
    /// - `{key}` is a secret of both sides, 64 hexadecimal digits, another one for each run;
    /// - `{proxy}` is where side S is to accept a TCP connection, and `{target}` where side D is to
    ///   hand it on: a command that names `{proxy}` has no interface, and carries nothing else.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn parse(argument: &str) -> Result<Self, String> {
        let (name, command) = argument
            .split_once('=')
            .filter(|(name, command)| !name.trim().is_empty() && !command.trim().is_empty())
            .ok_or_else(|| format!("{argument:?}: expected NAME='COMMAND'"))?;
        Ok(Tunnel { name: name.trim().to_owned(), template: Template::parse(command)? })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it carries only TCP connections, not packets.
    pub fn is_proxy(&self) -> bool {
        self.template.names(Place::Proxy)
    }

    /// Where S connects to reach D through it.
    pub(crate) fn receiver(&self) -> Option<SocketAddrV4> {
        self.is_proxy().then_some(PROXY)
    }

    /// The command for one side.
    fn command(&self, station: &Station, scratch: &Scratch, key: &str) -> String {
        let index = station.index;
        let other = if index == SOURCE { DESTINATION } else { SOURCE };
        let [a, b, c] = INNER_SUBNET;
        self.template.fill(|place| match place {
            Place::Side => NAMES[index].to_owned(),
            Place::Other => NAMES[other].to_owned(),
            Place::Local => station::address(OUTER_SUBNET, index).to_string(),
            Place::Remote => station::address(OUTER_SUBNET, other).to_string(),
            Place::Address => station::address(INNER_SUBNET, index).to_string(),
            Place::Peer => station::address(INNER_SUBNET, other).to_string(),
            Place::Subnet => Ipv4Addr::new(a, b, c, 0).to_string(),
            Place::Tun => TUN.to_owned(),
            Place::Interface => RADIO.to_owned(),
            Place::Netns => station.namespace.path(),
            Place::Dir => scratch.directory().display().to_string(),
            Place::Key => key.to_owned(),
            Place::Proxy => PROXY.to_string(),
            Place::Target => SocketAddrV4::new(Ipv4Addr::LOCALHOST, load::PORT).to_string(),
        })
    }
}

/// A running tunnel. When dropped, it is killed with everything that it has started.
pub(crate) struct Running {
    sides: Vec<Side>,
    /// Whether the lab gives the tunnel's interface its address, and to which sides it has.
    addressed: Option<[bool; 2]>,
    proxy: Option<SocketAddrV4>,
    _scratch: Scratch,
}

/// One side: a thread that is the parent of its process.
struct Side {
    name: &'static str,
    log: PathBuf,
    stop: Arc<AtomicBool>,
    /// How it ended, if it ended by itself.
    ended: Arc<Mutex<Option<String>>>,
    thread: Option<Inside<()>>,
}

impl Running {
    /// Starts both sides.
    pub(crate) fn start(tunnel: &Tunnel, stations: &[Station]) -> Result<Self, LabError> {
        let (scratch, key) = (Scratch::new()?, node::random_key()?);
        let sides = stations.iter().map(|station| {
            let log = scratch.file(&format!("{}.log", station.name()));
            let shared = scratch.directory().to_owned();
            Side::start(station, tunnel.command(station, &scratch, &key), log, shared)
        });
        // A command that names the address sets it itself.
        let addressed = tunnel.template.names(Place::Tun)
            && !tunnel.template.names(Place::Address)
            && !tunnel.is_proxy();
        Ok(Running {
            sides: sides.collect::<Result<_, _>>()?,
            addressed: addressed.then_some([false; 2]),
            proxy: tunnel.receiver(),
            _scratch: scratch,
        })
    }

    /// Waits until a packet crosses it.
    pub(crate) fn wait_until_up(
        &mut self,
        stations: &[Station],
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let (from, to) = (&stations[SOURCE].namespace, &stations[DESTINATION].namespace);
        let echo = match self.proxy {
            Some(proxy) => Echo::connections(from, to, proxy, load::PORT)?,
            None => Echo::datagrams(from, to, station::address(INNER_SUBNET, DESTINATION))?,
        };
        let deadline = clock::now() + UP_MAX;
        let result = loop {
            if stop.load(Ordering::Relaxed) {
                break Err(LabError::Interrupted);
            }
            if echo.has_crossed() {
                break Ok(());
            }
            if let Err(error) = self.check_alive().and_then(|()| self.give_addresses(stations)) {
                break Err(error);
            }
            if clock::now() >= deadline {
                break Err(self.no_tunnel());
            }
            clock::sleep_until(clock::now() + TICK);
        };
        echo.finish()?;
        result
    }

    /// Gives the interfaces their addresses once they exist.
    fn give_addresses(&mut self, stations: &[Station]) -> Result<(), LabError> {
        let Some(addressed) = &mut self.addressed else { return Ok(()) };
        for (station, done) in stations.iter().zip(addressed) {
            if !*done {
                *done = station.give_address(TUN, INNER_SUBNET)?;
            }
        }
        Ok(())
    }

    /// Checks that no side has ended by itself.
    pub(crate) fn check_alive(&self) -> Result<(), LabError> {
        for side in &self.sides {
            let ended = side.ended.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(status) = ended.as_ref() {
                return Err(LabError::NodeEnded {
                    station: side.name,
                    status: status.clone(),
                    stderr: tail(&side.log),
                });
            }
        }
        Ok(())
    }

    fn no_tunnel(&self) -> LabError {
        let said = self.sides.iter().map(|side| format!("[{}] {}", side.name, tail(&side.log)));
        LabError::NoTunnel {
            seconds: UP_MAX.as_secs(),
            missing: "nothing crossed".to_owned(),
            stderr: said.collect::<Vec<_>>().join("\n"),
        }
    }
}

impl Side {
    fn start(
        station: &Station,
        command: String,
        log: PathBuf,
        shared: PathBuf,
    ) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::new(Mutex::new(None));
        let (stopped, end, file) = (Arc::clone(&stop), Arc::clone(&ended), log.clone());
        let thread = station.namespace.spawn("lab-tunnel", move || {
            let status = look_after(&command, &file, &shared, &stopped)?;
            *end.lock().unwrap_or_else(PoisonError::into_inner) = status;
            Ok(())
        })?;
        Ok(Side { name: station.name(), log, stop, ended, thread: Some(thread) })
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Its result is no longer needed.
        let _ = self.thread.take().map(Inside::join);
    }
}

/// Runs a command as the first process of a PID namespace until it ends, or has to stop. Returns
/// how it ended by itself. The kernel kills it when this thread dies.
fn look_after(
    command: &str,
    log: &Path,
    shared: &Path,
    stop: &AtomicBool,
) -> Result<Option<String>, LabError> {
    unshare(CloneFlags::CLONE_NEWPID).what("make a process namespace")?;
    let mut out = File::create(log).what("make a file for a tunnel's messages")?;
    // Where this is forbidden, tunnels that need no /run of their own still work; the errors of
    // failing tunnels show it.
    if let Err(error) = own_run(shared) {
        let _ = writeln!(out, "(the lab could not give this side a {RUN} of its own: {error})");
    }
    let err = out.try_clone().what("keep a file for a tunnel's messages")?;
    let mut init = Command::new("/bin/sh");
    init.args(["-c", INIT, "sh", command]);
    init.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    sys::die_with_parent(&mut init);
    let child =
        init.spawn().map_err(|source| LabError::Spawn { path: "/bin/sh".into(), source })?;
    loop {
        if let Some(exit) = sys::try_wait(child.id()).what("look after a tunnel")? {
            return Ok(Some(exit.status.to_string()));
        }
        if stop.load(Ordering::Relaxed) {
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            // It can be reaped once its whole namespace is gone.
            while let Ok(None) = sys::try_wait(child.id()) {
                clock::sleep_until(clock::now() + Duration::from_millis(1));
            }
            return Ok(None);
        }
        clock::sleep_until(clock::now() + TICK);
    }
}

/// Gives the calling thread and its children an empty `/run`, except for its top-level symbolic
/// links, by which some systems find their programs, and the directory that both sides share.
fn own_run(shared: &Path) -> io::Result<()> {
    const NONE: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
    let mut links = Vec::new();
    for entry in fs::read_dir(RUN)?.flatten() {
        if let Ok(target) = fs::read_link(entry.path()) {
            links.push((target, entry.path()));
        }
    }
    let held = File::open(shared)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), RUN, Some("tmpfs"), flags, Some("mode=755"))?;
    for (target, path) in links {
        symlink(target, path)?;
    }
    if shared.starts_with(RUN) {
        fs::create_dir_all(shared)?;
        let held = format!("/proc/thread-self/fd/{}", held.as_raw_fd());
        mount(Some(held.as_str()), shared, NONE, MsFlags::MS_BIND, NONE)?;
    }
    Ok(())
}
