//! Corridor nodes as child processes, one in each station's namespace.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use corridor_proto::{CodingTable, RelayCounters, RelayTable};
use corridor_scenario::{
    CodingCounts, DESTINATION, Path as Crossing, Run, SOURCE, Scenario, UnderlayKind, Wire,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::echo::Echo;
use crate::error::{Context, LabError};
use crate::said::tail;
use crate::scratch::Scratch;
use crate::station::{self, RADIO, Station};
use crate::sys;
use crate::waiting::Watched;

/// First bytes of the addresses inside the tunnel (for the kernel path: of the radios).
pub(crate) const INNER_SUBNET: [u8; 3] = [10, 77, 0];
/// First bytes of the radios' own addresses, for nodes that send UDP.
pub(crate) const OUTER_SUBNET: [u8; 3] = [10, 66, 0];
/// UDP port of the nodes.
const NODE_PORT: u16 = 4242;
/// IPv6 is not carried below this MTU (RFC 8200, Section 5), with room for the tunnel's headers.
const SYMBOL_SIZE_MIN_IPV6: u16 = 1_320;

/// Time limit for the nodes to establish sessions without losses.
const TUNNEL_UP_MAX: Duration = Duration::from_secs(15);
/// The same for any losses.
const TUNNEL_UP_MAX_LOSSY: Duration = Duration::from_secs(90);
/// Time for a node to stop before it is killed.
const STOP_MAX: Duration = Duration::from_secs(3);
/// Polling interval while waiting.
const TICK: Duration = Duration::from_millis(20);
/// How often to ask a node for its counters while waiting for it.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// A node's configuration file, as the lab writes it.
#[derive(Serialize)]
struct NodeFile<'a> {
    station: StationTable,
    security: SecurityTable<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tun: Option<TunTable>,
    underlay: UnderlayTable,
    peer: Vec<PeerTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coding: Option<&'a CodingTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relay: Option<&'a RelayTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_errors: Option<LinkErrorsTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<LimitsTable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    synthetic_loss: Option<SyntheticLossTable>,
}

/// Synthetic losses at the receiver, for wires that lose nothing themselves.
#[derive(Serialize)]
struct SyntheticLossTable {
    seed: u64,
    link: Vec<SyntheticLinkTable>,
}

#[derive(Serialize)]
struct SyntheticLinkTable {
    from: usize,
    ratio: f64,
}

#[derive(Serialize)]
struct StationTable {
    id: usize,
    role: &'static str,
}

#[derive(Serialize)]
struct SecurityTable<'a> {
    psk: &'a str,
}

#[derive(Serialize)]
struct TunTable {
    name: &'static str,
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
enum UnderlayTable {
    Ethernet {
        interface: &'static str,
        qdisc_bypass: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        retries: Option<String>,
    },
    Udp {
        listen: String,
    },
}

#[derive(Serialize)]
struct PeerTable {
    id: usize,
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// For a relay's neighbour: the addresses that it leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Vec<String>>,
}

#[derive(Serialize)]
struct LinkErrorsTable {
    mode: &'static str,
}

#[derive(Serialize)]
struct LimitsTable {
    ingress_packets: usize,
}

/// The share of the other station's frames that station `index` has to lose.
fn synthetic_loss(run: &Run, seed: u64, index: usize) -> SyntheticLossTable {
    let other = if index == SOURCE { DESTINATION } else { SOURCE };
    // TOML integers end at 2^63 - 1.
    let seed = seed.wrapping_add(run.replication) & i64::MAX as u64;
    let link = SyntheticLinkTable { from: other + 1, ratio: run.erasures.e3 };
    SyntheticLossTable { seed, link: vec![link] }
}

/// Whether a station is next to another one in the row of relays.
fn is_next(run: &Run, index: usize, other: usize) -> bool {
    let chain = run.chain();
    chain.windows(2).any(|pair| pair == [index, other] || pair == [other, index])
}

/// Addresses that a neighbour leads to: its own and those of all behind it.
fn behind(run: &Run, index: usize, neighbour: usize) -> Vec<String> {
    let chain = run.chain();
    let place = |station| chain.iter().position(|&other| other == station).unwrap_or_default();
    let (own, next) = (place(index), place(neighbour));
    let there = if next > own { &chain[next..] } else { &chain[..=next] };
    let both = |&station: &usize| {
        [
            format!("{}/32", station::address(INNER_SUBNET, station)),
            format!("fd77::{}/128", station + 1),
        ]
    };
    there.iter().flat_map(both).collect()
}

/// The configuration file of station `index`.
fn node_file(
    run: &Run,
    (ingress_packets, seed): (usize, u64),
    index: usize,
    psk: &str,
) -> Result<String, LabError> {
    let role = |index: usize| match (run.path, index) {
        (Crossing::Plain, _) => "plain",
        (Crossing::Relay, _) => "relay",
        (_, SOURCE | DESTINATION) => "endpoint",
        _ => "helper",
    };
    let outer = |index| format!("{}:{NODE_PORT}", station::address(OUTER_SUBNET, index));
    let peer = |other: usize| PeerTable {
        id: other + 1,
        role: role(other),
        mac: (run.underlay == UnderlayKind::Ethernet)
            .then(|| station::mac(other).map(|byte| format!("{byte:02x}")).join(":")),
        endpoint: (run.underlay == UnderlayKind::Udp).then(|| outer(other)),
        allowed: run.relay.is_some().then(|| behind(run, index, other)),
    };
    let is_peer = |&other: &usize| match run.path {
        Crossing::Relay => is_next(run, index, other),
        _ => other != index,
    };
    let mut addresses = vec![format!("{}/24", station::address(INNER_SUBNET, index))];
    // 0 stands for the size that fills the frames.
    let symbol_size = run.coding_params().symbol_size;
    if !run.path.is_coded() || symbol_size == 0 || symbol_size >= SYMBOL_SIZE_MIN_IPV6 {
        addresses.push(format!("fd77::{}/64", index + 1));
    }
    let file = NodeFile {
        station: StationTable { id: index + 1, role: role(index) },
        security: SecurityTable { psk },
        tun: (role(index) != "helper").then_some(TunTable {
            name: "corridor0",
            addresses,
            mtu: None,
        }),
        underlay: match run.underlay {
            UnderlayKind::Ethernet => {
                UnderlayTable::Ethernet { interface: RADIO, qdisc_bypass: true, retries: None }
            }
            UnderlayKind::Udp => UnderlayTable::Udp { listen: outer(index) },
        },
        peer: (0..run.stations()).filter(is_peer).map(peer).collect(),
        coding: run.path.is_coded().then_some(&run.coding),
        relay: run.relay.as_ref(),
        link_errors: run.relay.is_none().then_some(LinkErrorsTable { mode: "measured" }),
        limits: run.relay.is_none().then_some(LimitsTable { ingress_packets }),
        synthetic_loss: (run.lab.wire == Wire::Veth && run.erasures.e3 > 0.0)
            .then(|| synthetic_loss(run, seed, index)),
    };
    toml::to_string(&file).map_err(std::io::Error::other).what("write a node's configuration")
}

/// A relay of a network, and its neighbours.
pub(crate) struct RelayNode<'a> {
    /// Its station, whose number determines its addresses.
    pub(crate) station: &'a Station,
    /// Its name.
    pub(crate) name: &'static str,
    /// What it combines.
    pub(crate) table: &'a RelayTable,
    /// Its neighbours, each with the stations that it leads to.
    pub(crate) neighbours: Vec<(usize, Vec<usize>)>,
    /// Longest packet of the tunnel, bytes.
    pub(crate) mtu: usize,
}

impl RelayNode<'_> {
    /// Its configuration file; `outcomes` is the file from which it reads the outcomes of its
    /// frames.
    fn file(&self, psk: &str, outcomes: &Path) -> Result<String, LabError> {
        let of = |station: &usize| format!("{}/32", station::address(INNER_SUBNET, *station));
        let peer = |(other, leads_to): &(usize, Vec<usize>)| PeerTable {
            id: other + 1,
            role: "relay",
            mac: Some(station::mac(*other).map(|byte| format!("{byte:02x}")).join(":")),
            endpoint: None,
            allowed: Some(leads_to.iter().map(of).collect()),
        };
        let index = self.station.index;
        let file = NodeFile {
            station: StationTable { id: index + 1, role: "relay" },
            security: SecurityTable { psk },
            tun: Some(TunTable {
                name: "corridor0",
                addresses: vec![format!("{}/24", station::address(INNER_SUBNET, index))],
                mtu: Some(self.mtu),
            }),
            underlay: UnderlayTable::Ethernet {
                interface: RADIO,
                qdisc_bypass: true,
                retries: Some(format!("file:{}", outcomes.display())),
            },
            peer: self.neighbours.iter().map(peer).collect(),
            coding: None,
            relay: Some(self.table),
            link_errors: None,
            limits: None,
            synthetic_loss: None,
        };
        toml::to_string(&file).map_err(std::io::Error::other).what("write a node's configuration")
    }
}

/// The nodes of a run. When dropped, they are killed.
pub(crate) struct Nodes {
    children: Vec<Child>,
    /// Time limit for them to establish sessions.
    patience: Duration,
    /// Whether they are relays.
    relays: bool,
    scratch: Scratch,
}

struct Child {
    name: &'static str,
    pid: u32,
    stderr: PathBuf,
    stats: PathBuf,
    ended: Option<sys::Exit>,
}

/// What a node leaves when it ends.
pub(crate) struct NodeReport {
    pub(crate) name: &'static str,
    /// Its counters; `None` if it left none.
    pub(crate) counts: Option<CodingCounts>,
    /// All counters, as it wrote them.
    pub(crate) stats: Option<serde_json::Value>,
    /// Its counters as a relay; `None` if it is not one.
    pub(crate) relay: Option<RelayCounters>,
    pub(crate) cpu: Duration,
    /// How it ended, and its last messages.
    pub(crate) ending: String,
}

/// The file that a node writes; `stats` has the fields of [`corridor_proto::Stats`].
#[derive(Deserialize)]
struct StatsFile<T> {
    stats: T,
}

/// The part of a node's counters that says whether it has sessions with the others.
#[derive(Deserialize)]
struct Sessions {
    sessions_accepted: u64,
}

/// Reads a part of a node's counters; `None` while there is no complete file.
fn read_stats<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    let text = fs::read_to_string(path).ok()?;
    serde_json::from_str::<StatsFile<T>>(&text).ok().map(|file| file.stats)
}

/// The part of that file that only a relay writes.
#[derive(Deserialize)]
struct RelayFile {
    relay: RelayCounters,
}

/// Reads a relay's counters; `None` if there is no complete file of one.
fn read_relay(path: &Path) -> Option<RelayCounters> {
    let text = fs::read_to_string(path).ok()?;
    serde_json::from_str::<RelayFile>(&text).ok().map(|file| file.relay)
}

impl Nodes {
    /// Starts a node in every station. The calling thread must outlive the nodes, since they die
    /// with it.
    pub(crate) fn start(
        binary: &Path,
        run: &Run,
        scenario: &Scenario,
        stations: &[Station],
    ) -> Result<Self, LabError> {
        let psk = random_key()?;
        // Handshakes are lost like other frames; on average one in 1 / (1 - e3) attempts succeeds,
        // with the worse direction's e3.
        let lost_ratio = run.e3_back.map_or(run.erasures.e3, |back| back.max(run.erasures.e3));
        let heard_ratio = (1.0 - lost_ratio).max(1e-3);
        let patience = TUNNEL_UP_MAX.div_f64(heard_ratio).min(TUNNEL_UP_MAX_LOSSY);
        let relays = run.path == Crossing::Relay;
        let mut nodes = Nodes { children: Vec::new(), patience, relays, scratch: Scratch::new()? };
        for station in stations {
            let packets = scenario.ingress_packets_for(&run.coding_params());
            let setting = (packets, scenario.seed);
            let text = node_file(run, setting, station.index, &psk)?;
            let name = station::name_of(run, station.index);
            let child = nodes.start_one(binary, (station, name), &text)?;
            nodes.children.push(child);
        }
        Ok(nodes)
    }

    /// Starts a relay in every station of a network, in their order. Each reads the outcomes of its
    /// frames from its station's file in `outcomes`.
    pub(crate) fn start_relays(
        binary: &Path,
        (scratch, outcomes): (Scratch, &[PathBuf]),
        relays: &[RelayNode<'_>],
    ) -> Result<Self, LabError> {
        let psk = random_key()?;
        let patience = TUNNEL_UP_MAX;
        let mut nodes = Nodes { children: Vec::new(), patience, relays: true, scratch };
        for (relay, outcomes) in relays.iter().zip(outcomes) {
            let text = relay.file(&psk, outcomes)?;
            let child = nodes.start_one(binary, (relay.station, relay.name), &text)?;
            nodes.children.push(child);
        }
        Ok(nodes)
    }

    /// Waits until packets cross from one station to another and back.
    pub(crate) fn wait_until_crossed(
        &mut self,
        (from, to): (&Station, &Station),
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let deadline = clock::now() + self.patience;
        let address = station::address(INNER_SUBNET, to.index);
        let echo = Echo::datagrams(&from.namespace, &to.namespace, address)?;
        let result = loop {
            if stop.load(Ordering::Relaxed) {
                break Err(LabError::Interrupted);
            }
            if let Err(error) = self.check_alive() {
                break Err(error);
            }
            if echo.has_crossed() {
                break Ok(());
            }
            if clock::now() >= deadline {
                break Err(self.no_tunnel("no packet crossed"));
            }
            clock::sleep_until(clock::now() + TICK);
        };
        echo.finish()?;
        result
    }

    fn start_one(
        &self,
        binary: &Path,
        (station, name): (&Station, &'static str),
        text: &str,
    ) -> Result<Child, LabError> {
        let file = |suffix: &str| self.scratch.file(&format!("{name}{suffix}"));
        let (config, stderr, stats) = (file(".toml"), file(".stderr"), file(".json"));
        write_private(&config, text).what("write a node's configuration")?;
        let log = File::create(&stderr).what("make a file for a node's messages")?;
        let mut command = Command::new(binary);
        command.arg("up").arg(&config).arg("--stats-file").arg(&stats);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // Otherwise control sockets of concurrent runs would have the same names.
        command.env("RUNTIME_DIRECTORY", config.parent().unwrap_or(Path::new("/")));
        // A Ctrl-C in the terminal is for the lab, which stops its nodes itself.
        command.process_group(0);
        sys::confine(&mut command, station.namespace.descriptor()?);
        let spawned = command.spawn();
        let child =
            spawned.map_err(|source| LabError::Spawn { path: binary.to_owned(), source })?;
        Ok(Child { name, pid: child.id(), stderr, stats, ended: None })
    }

    /// Waits until packets cross the tunnel and a helper has sessions with both ends.
    pub(crate) fn wait_until_up(
        &mut self,
        stations: &[Station],
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let deadline = clock::now() + self.patience;
        let (from, to) = (&stations[SOURCE].namespace, &stations[DESTINATION].namespace);
        let echo = Echo::datagrams(from, to, station::address(INNER_SUBNET, DESTINATION))?;
        let mut asked = clock::now();
        // A packet that has crossed the relays shows that all of them have sessions.
        let mut knows_all = vec![self.relays; self.children.len()];
        let result = loop {
            if stop.load(Ordering::Relaxed) {
                break Err(LabError::Interrupted);
            }
            if let Err(error) = self.check_alive() {
                break Err(error);
            }
            // S and D are up once a packet has crossed both ways; a helper has to report.
            let crossed = echo.has_crossed();
            if crossed && knows_all[DESTINATION + 1..].iter().all(|&knows| knows) {
                break Ok(());
            }
            if clock::now() >= deadline {
                let missing = if crossed {
                    "the helper does not hear both ends"
                } else {
                    "no packet crossed"
                };
                break Err(self.no_tunnel(missing));
            }
            if crossed && clock::now().since(asked) >= ASK_INTERVAL {
                asked = clock::now();
                self.ask_for_sessions(&mut knows_all);
            }
            clock::sleep_until(clock::now() + TICK);
        };
        echo.finish()?;
        result
    }

    /// Reads what helpers last wrote, and asks for more.
    fn ask_for_sessions(&self, knows_all: &mut [bool]) {
        let others = self.children.len() as u64 - 1;
        for (child, knows) in self.children.iter().zip(knows_all).skip(DESTINATION + 1) {
            *knows = read_stats::<Sessions>(&child.stats)
                .is_some_and(|sessions| sessions.sessions_accepted >= others);
            if minds(child.pid, Signal::SIGUSR1) {
                let _ = kill(Pid::from_raw(child.pid as i32), Signal::SIGUSR1);
            }
        }
    }

    /// Checks that no node has ended by itself.
    pub(crate) fn check_alive(&mut self) -> Result<(), LabError> {
        for child in &mut self.children {
            if child.ended.is_none() {
                child.ended = sys::try_wait(child.pid).what("look after a node")?;
            }
            if let Some(exit) = &child.ended {
                return Err(LabError::NodeEnded {
                    station: child.name,
                    status: exit.status.to_string(),
                    stderr: tail(&child.stderr),
                });
            }
        }
        Ok(())
    }

    /// The nodes' threads.
    pub(crate) fn watched(&self) -> Watched {
        let mut watched = Watched::default();
        for child in &self.children {
            watched.add_process(child.name, child.pid);
        }
        watched
    }

    fn no_tunnel(&self, missing: &str) -> LabError {
        let said =
            self.children.iter().map(|child| format!("[{}] {}", child.name, tail(&child.stderr)));
        LabError::NoTunnel {
            seconds: self.patience.as_secs(),
            missing: missing.to_owned(),
            stderr: said.collect::<Vec<_>>().join("\n"),
        }
    }

    /// Stops all nodes and reads what they leave.
    pub(crate) fn stop(mut self) -> Result<Vec<NodeReport>, LabError> {
        self.check_alive()?;
        for child in &self.children {
            let _ = kill(Pid::from_raw(child.pid as i32), Signal::SIGTERM);
        }
        let deadline = clock::now() + STOP_MAX;
        for child in &mut self.children {
            while child.ended.is_none() && clock::now() < deadline {
                child.ended = sys::try_wait(child.pid).what("wait for a node")?;
                if child.ended.is_none() {
                    clock::sleep_until(clock::now() + Duration::from_millis(5));
                }
            }
        }
        Ok(self.children.iter().map(Child::report).collect())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.children.iter_mut().filter(|child| child.ended.is_none()) {
            let _ = kill(Pid::from_raw(child.pid as i32), Signal::SIGKILL);
            // A killed process ends soon; reaping it leaves no zombie.
            while let Ok(None) = sys::try_wait(child.pid) {
                clock::sleep_until(clock::now() + Duration::from_millis(1));
            }
        }
    }
}

impl Child {
    fn report(&self) -> NodeReport {
        NodeReport {
            name: self.name,
            counts: read_stats(&self.stats),
            stats: read_stats(&self.stats),
            relay: read_relay(&self.stats),
            cpu: self.ended.as_ref().map_or(Duration::ZERO, |exit| exit.cpu),
            ending: self.ending(),
        }
    }

    fn ending(&self) -> String {
        let said = tail(&self.stderr);
        let said = said.trim().lines().next_back().unwrap_or("(nothing)");
        match &self.ended {
            Some(exit) => format!("{}, last said: {said}", exit.status),
            None => {
                format!("still running {} s after SIGTERM, last said: {said}", STOP_MAX.as_secs())
            }
        }
    }
}

/// Whether a process blocks or handles a signal. One that is still starting would be killed by it.
fn minds(pid: u32, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| {
        let mask = line.strip_prefix("SigBlk:").or_else(|| line.strip_prefix("SigCgt:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal as u32 - 1) & 1 == 1)
    })
}

/// 32 random bytes as hexadecimal digits.
pub(crate) fn random_key() -> Result<String, LabError> {
    let mut key = [0; 32];
    let random = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut key));
    random.what("draw a key")?;
    Ok(key.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file that only its owner can read, since it contains a key.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// Counters of nodes for a row, by station.
pub(crate) fn counts_of(reports: &[NodeReport], name: &str) -> Option<CodingCounts> {
    reports.iter().find(|report| report.name == name).and_then(|report| report.counts)
}

#[cfg(test)]
mod tests {
    use corridor_proto::Stats;
    use corridor_scenario::expand;

    use super::*;

    fn run(path: &str, more: &str) -> Run {
        let text = format!(
            "name = 't'\nseed = 1\n[medium]\nduplex = 'half'\nrate_bps = 12000000\nrtt_ms = 4\n\
             queue_frames = 50\n[[run]]\npath = '{path}'\ntransport = 'tcp'\ne3 = 0.1\n\
             duration_s = 1\n{more}"
        );
        expand(&Scenario::parse(&text).unwrap()).unwrap().remove(0)
    }

    #[test]
    fn a_helper_has_no_tunnel_and_both_ends_as_peers() {
        let run = run("coded+helper", "coding = { preset = 'paper', block_size = 64 }");
        let text = node_file(&run, (77, 1), 2, "ab").unwrap();
        let file: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(file["station"]["role"].as_str(), Some("helper"));
        assert_eq!(file["station"]["id"].as_integer(), Some(3));
        assert!(!file.contains_key("tun"));
        assert_eq!(file["peer"][0]["mac"].as_str(), Some("02:00:00:00:00:01"));
        assert_eq!(file["peer"][1]["role"].as_str(), Some("endpoint"));
        assert_eq!(file["coding"]["block_size"].as_integer(), Some(64));
        assert_eq!(file["coding"]["preset"].as_str(), Some("paper"));
        assert_eq!(file["underlay"]["kind"].as_str(), Some("ethernet"));
        assert_eq!(file["underlay"]["qdisc_bypass"].as_bool(), Some(true));
        assert_eq!(file["limits"]["ingress_packets"].as_integer(), Some(77));
    }

    #[test]
    fn a_plain_node_over_udp_has_endpoints_and_no_coding() {
        let text = node_file(&run("plain", "underlay = 'udp'"), (100, 1), 0, "ab").unwrap();
        let file: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(file["station"]["role"].as_str(), Some("plain"));
        assert_eq!(file["underlay"]["listen"].as_str(), Some("10.66.0.1:4242"));
        assert_eq!(file["peer"][0]["endpoint"].as_str(), Some("10.66.0.2:4242"));
        assert!(!file.contains_key("coding"));
        assert_eq!(file["tun"]["addresses"][1].as_str(), Some("fd77::1/64"));
    }

    #[test]
    fn on_a_pair_of_interfaces_the_nodes_lose_frames_themselves() {
        let run = Run { replication: 2, ..run("coded", "wire = 'veth'") };
        let text = node_file(&run, (9, 5), 1, "ab").unwrap();
        let file: toml::Table = toml::from_str(&text).unwrap();
        let loss = &file["synthetic_loss"];
        assert_eq!(loss["seed"].as_integer(), Some(5 + 2));
        assert_eq!(loss["link"][0]["from"].as_integer(), Some(1));
        assert_eq!(loss["link"][0]["ratio"].as_float(), Some(0.1));
    }

    #[test]
    fn a_relay_has_the_next_ones_as_peers_with_all_that_is_behind_them() {
        let text = "name = 't'\nseed = 1\n[medium]\nduplex = 'half'\nrate_bps = 12000000\n\
                    rtt_ms = 4\nqueue_frames = 3\nrelays = 2\n[[run]]\npath = 'relay'\n\
                    transport = 'tcp'\ne3 = 0\nduration_s = 1\nrelay = { preset = 'paper' }\n";
        let run = expand(&Scenario::parse(text).unwrap()).unwrap().remove(0);
        // S, D, and between them stations 3 and 4.
        let file = |index| -> toml::Table {
            toml::from_str(&node_file(&run, (9, 1), index, "ab").unwrap()).unwrap()
        };
        let peers = |index| -> Vec<(i64, Vec<String>)> {
            let of = |peer: &toml::Value| {
                let networks = peer["allowed"].as_array().unwrap().iter();
                let v4 = networks.filter_map(|it| it.as_str().filter(|it| it.contains('.')));
                assert_eq!(peer["role"].as_str(), Some("relay"));
                (peer["id"].as_integer().unwrap(), v4.map(str::to_owned).collect())
            };
            file(index)["peer"].as_array().unwrap().iter().map(of).collect()
        };
        let networks = |ids: &[u8]| ids.iter().map(|id| format!("10.77.0.{id}/32")).collect();
        assert_eq!(peers(0), [(3, networks(&[3, 4, 2]))]);
        assert_eq!(peers(2), [(1, networks(&[1])), (4, networks(&[4, 2]))]);
        assert_eq!(peers(1), [(4, networks(&[1, 3, 4]))]);
        assert_eq!(file(2)["relay"]["preset"].as_str(), Some("paper"));
        assert!(!file(2).contains_key("limits") && !file(2).contains_key("coding"));
        assert_eq!(station::name_of(&run, 3), "R2");
    }

    #[test]
    fn small_symbols_carry_no_ipv6() {
        let text =
            node_file(&run("coded", "coding = { symbol_size = 500 }"), (9, 1), 1, "ab").unwrap();
        let file: toml::Table = toml::from_str(&text).unwrap();
        assert_eq!(file["tun"]["addresses"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn counters_are_read_from_the_file_of_a_node() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("S.json");
        assert!(read_stats::<Sessions>(&path).is_none());
        let stats = Stats { sessions_accepted: 2, symbols_added: 3, ..Stats::default() };
        let file = serde_json::json!({ "station": 1, "stats": stats, "io": {} });
        fs::write(&path, file.to_string()).unwrap();
        assert_eq!(read_stats::<Sessions>(&path).unwrap().sessions_accepted, 2);
        assert_eq!(read_stats::<CodingCounts>(&path), Some(CodingCounts::from(&stats)));
        fs::write(&path, "{\"station\": 1, \"sta").unwrap();
        assert!(read_stats::<CodingCounts>(&path).is_none());
    }
}
