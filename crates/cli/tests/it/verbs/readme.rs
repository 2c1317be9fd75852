//! README's commands, as they are written.
//!
//! The quick start runs line by line between two network namespaces with the examples' addresses.
//! Differences: `cargo build` and the installation are replaced by those that built this test,
//! `sudo` is left out, `$EDITOR` has nothing to change, a daemon runs until the end, an ICMP echo
//! of this test replaces `ping` if that is not installed, and `iperf3` is then skipped. In the
//! other sections every command, option, make target and file must exist.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recvfrom, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::{corridor, stderr, stdout, top};
use crate::support::{Daemon, Namespace, Place, until, with_net};

fn readme() -> String {
    fs::read_to_string(top().join("README.md")).expect("README.md")
}

/// The commands of a section, with the paragraph before them, which says where to run them.
fn commands(section: &str) -> Vec<(String, String)> {
    let text = readme();
    let (_, section) = text.split_once(&format!("## {section}\n")).expect(section);
    let section = section.split("\n## ").next().expect("a section");
    let (mut place, mut commands) = (String::new(), Vec::new());
    for line in section.lines() {
        match line.strip_prefix("    ") {
            Some(command) => commands.push((place.clone(), bare(command))),
            None if !line.is_empty() => place = line.to_owned(),
            None => {}
        }
    }
    commands
}

/// A command without its comment.
fn bare(command: &str) -> String {
    let command = command.split_once("  #").map_or(command, |(command, _)| command);
    command.trim().to_owned()
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    found.is_ok_and(|output| output.status.success())
}

/// Whether a host answers an ICMP echo within a second (RFC 792).
fn echoes(address: Ipv4Addr) -> bool {
    // Type 8, code 0, checksum, identifier, sequence number.
    let request = [8, 0, 0xF7, 0xFD, 0, 1, 0, 1];
    let socket = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp)
        .expect("a raw socket");
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(1)).expect("a timeout");
    let to = SockaddrIn::from(SocketAddrV4::new(address, 0));
    if sendto(socket.as_raw_fd(), &request, &to, MsgFlags::empty()).is_err() {
        return false;
    }
    let mut answer = [0; 128];
    // An IPv4 header of 20 bytes, then the answer: type 0.
    recvfrom::<SockaddrIn>(socket.as_raw_fd(), &mut answer)
        .is_ok_and(|(len, _)| len == 28 && answer[20] == 0)
}

/// One of the two machines.
struct Machine {
    namespace: Namespace,
    place: Place,
    daemons: Vec<Daemon>,
}

impl Machine {
    fn new(name: &str) -> Self {
        let place = Place::new(&format!("readme-{name}"));
        std::os::unix::fs::symlink(top().join("examples"), place.path().join("examples"))
            .expect("a link");
        Machine { namespace: Namespace::new().expect("a namespace"), place, daemons: Vec::new() }
    }

    /// Runs a command as a shell would, with this test's binary first in the path.
    fn run(&mut self, command: &str) {
        let mut shell = Command::new("sh");
        let binary = Path::new(env!("CARGO_BIN_EXE_corridor")).parent().expect("a directory");
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{}:{path}", binary.display())).env("EDITOR", "true");
        shell.current_dir(self.place.path());
        if command.contains("corridor up") {
            shell.args(["-c", &format!("exec {command}")]);
            self.daemons.push(Daemon::start(&self.namespace, shell));
            return;
        }
        shell.args(["-c", command]);
        let output = self.namespace.run(|| shell.output().expect("sh"));
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(output.status.success(), "{command}: {said}");
    }
}

#[test]
fn the_quick_start_works_as_it_stands() {
    with_net("the_quick_start_works_as_it_stands", || {
        let mut machines = BTreeMap::from([("A", Machine::new("a")), ("B", Machine::new("b"))]);
        let [a, b] = ["A", "B"].map(|name| &machines[name].namespace);
        a.cable("eth0", b, "eth0");
        a.ip("addr add 192.0.2.1/24 dev eth0");
        b.ip("addr add 192.0.2.2/24 dev eth0");
        let mut ran = Vec::new();
        for (place, command) in commands("Quick start: two machines") {
            let command = command.replace("sudo ", "");
            // This test has a binary already; its path replaces the installation.
            if command.starts_with("cargo build") || command.starts_with("install target/") {
                continue;
            }
            let name = if place.contains("achine B") { "B" } else { "A" };
            if command.starts_with("iperf3") {
                if !is_installed("iperf3") {
                    continue;
                }
                machines.get_mut("B").expect("B").run("iperf3 --server --one-off --daemon");
            }
            if command.starts_with("ping") {
                let address = command.split(' ').next_back().expect("an address");
                let address = address.parse().expect("an address");
                let a = &machines["A"].namespace;
                let answered = until(|| a.run(|| echoes(address)).then_some(()));
                let logs: Vec<_> =
                    machines.values().flat_map(|m| &m.daemons).map(Daemon::log).collect();
                assert!(answered.is_some(), "{command}: {logs:#?}");
                ran.push(command.clone());
                if !is_installed("ping") {
                    continue;
                }
            }
            machines.get_mut(name).expect("a machine").run(&command);
            if command.starts_with("corridor genpsk") {
                // What the comment after it says.
                let key = "corridor.key";
                let [from, to] = ["A", "B"].map(|name| machines[name].place.path().join(key));
                fs::copy(from, to).expect("the key");
            }
            ran.push(command);
        }
        for part in ["corridor genpsk", "cp examples/udp/b.toml", "corridor up", "ping"] {
            assert!(ran.iter().any(|command| command.starts_with(part)), "{part}: {ran:?}");
        }
        for (name, machine) in machines {
            for daemon in machine.daemons {
                let (code, log) = daemon.stop();
                assert_eq!(code, Some(0), "{name}: {log}");
            }
        }
    });
}

/// Commands and options that README names.
#[test]
fn every_verb_and_option_of_readme_exists() {
    let text = readme();
    let mut named = 0;
    for command in text.lines().filter_map(|line| line.strip_prefix("    ")).map(bare) {
        let command = command.trim_start_matches("sudo ").to_owned();
        let Some(words) = command.strip_prefix("corridor ") else { continue };
        let words: Vec<&str> = words.split_whitespace().collect();
        let is_verb = |word: &&&str| {
            let is_word = word.chars().all(|c| c.is_ascii_lowercase() || c == '-');
            is_word && !word.starts_with('-')
        };
        let verbs: Vec<&str> = words.iter().take_while(is_verb).copied().collect();
        let help = corridor(&top(), &[&verbs[..], &["--help"]].concat());
        assert!(help.status.success(), "{command}: {}", stderr(&help));
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(stdout(&help).contains(option), "{command}: no {option}");
        }
        named += 1;
    }
    assert!(named >= 8, "{named} commands");
}

#[test]
fn every_target_and_file_of_readme_exists() {
    let (text, makefile) =
        (readme(), fs::read_to_string(top().join("Makefile")).expect("Makefile"));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("    make ") {
            let target = rest.split_whitespace().next().expect("a target");
            assert!(makefile.contains(&format!("\n{target}:")), "make {target}");
        }
    }
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| !link.starts_with("http") && !link.starts_with('#')) {
        let (path, heading) = link.split_once('#').unwrap_or((link, ""));
        assert!(top().join(path).exists(), "{link}");
        if !heading.is_empty() {
            let page = fs::read_to_string(top().join(path)).expect("a page");
            let anchor =
                |line: &str| Some(line.strip_prefix("## ")?.to_lowercase().replace(' ', "-"));
            assert!(page.lines().filter_map(anchor).any(|anchor| anchor == heading), "{link}");
        }
    }
    for word in text.split(|c: char| c.is_whitespace() || "`(),".contains(c)) {
        let is_file = ["crates/", "examples/", "experiments/", "plans/", "docs/"]
            .iter()
            .any(|folder| word.starts_with(folder));
        if is_file && word.contains('.') {
            let path = word.split('#').next().expect("a first part");
            assert!(top().join(path.trim_end_matches(['.', ':'])).exists(), "{word}");
        }
    }
}
