//! Tunnels with a helper in any network: what enters at either end leaves at the other unchanged,
//! in order and once.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_scenario::{Load, Plan};
use proptest::prelude::*;

use super::Prepared;
use crate::agents::headers::write_datagram;
use crate::agents::source::FlowEnd;
use crate::agents::tunnel_end::TunnelEnd;
use crate::core::agent::{Agent, Body, NodeIndex, Packet};
use crate::core::network::Network;

/// Flows in each direction between the ends, beside those of the plan.
const FLOWS: [u32; 2] = [7, 8];
const PACKETS: usize = 60;
const INTERVAL: Duration = Duration::from_millis(20);
/// By then all stations have sessions with each other.
const BEGIN: Time = Time::from_millis(2_000);
/// Long after the last packet, so that losses have been repaired.
const END: Time = Time::from_millis(60_000);

/// Sends prepared packets, or collects received ones.
struct Host {
    end: FlowEnd,
    to_send: Vec<Arc<[u8]>>,
    sent: usize,
    taken: Vec<Arc<[u8]>>,
}

impl Host {
    fn new(end: FlowEnd, to_send: Vec<Arc<[u8]>>) -> Self {
        Host { end, to_send, sent: 0, taken: Vec::new() }
    }

    fn due(&self) -> Option<Time> {
        (self.sent < self.to_send.len()).then(|| BEGIN + INTERVAL * self.sent as u32)
    }
}

impl Agent for Host {
    fn handle_packet(&mut self, _now: Time, packet: Packet) {
        let Body::Bytes(bytes) = packet.body else { panic!("no bytes: {packet:?}") };
        self.taken.push(bytes);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        self.due().filter(|&due| due <= now)?;
        let bytes = Arc::clone(&self.to_send[self.sent]);
        self.sent += 1;
        Some(self.end.packet(bytes.len() as u32, Body::Bytes(bytes)))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due()
    }
}

/// Datagrams of a flow with random lengths and contents.
fn drawn_packets(end: FlowEnd, seed: u64) -> Vec<Arc<[u8]>> {
    let key = StreamKey { seed, replication: 0, entity: end.flow.into(), purpose: "payload" };
    let mut stream = key.stream();
    let mut packet = || {
        let payload = &mut vec![0u8; 16 + stream.next_u32() as usize % 1_200];
        stream.fill_bytes(payload);
        let mut bytes = Vec::new();
        let ports = (10_000 + end.flow as u16, 9);
        write_datagram(end.node, end.peer, ports, payload.len() as u16, &mut bytes);
        bytes.extend_from_slice(payload);
        bytes.into()
    };
    (0..PACKETS).map(|_| packet()).collect()
}

/// A row of nodes between the tunnel's ends, and the node that helps.
#[derive(Clone, Debug)]
struct Drawn {
    /// Loss ratio from each node to the next.
    hops: Vec<f64>,
    /// Loss ratio between a node beside the row and each node of the row that it hears.
    beside: Vec<Option<f64>>,
    /// Whether a node of the row helps instead of the one beside it.
    on_the_way: bool,
    /// Whether the first hop is a wire.
    begins_by_wire: bool,
    dcf: bool,
    seed: u64,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let loss = || 0.0..0.4f64;
    (2usize..=3).prop_flat_map(move |hops| {
        let near = proptest::option::of(loss());
        (
            proptest::collection::vec(loss(), hops),
            proptest::collection::vec(near, hops + 1),
            (0..=hops, loss()),
            (proptest::bool::weighted(0.25), proptest::bool::weighted(0.25), any::<bool>()),
            any::<u64>(),
        )
            .prop_map(|(hops, mut beside, (at, least), (on_the_way, wire, dcf), seed)| {
                let begins_by_wire = wire && !on_the_way;
                // Nothing is overheard from a node that sends by wire.
                beside[at.max(usize::from(begins_by_wire))] = Some(least);
                Drawn { hops, beside, on_the_way, begins_by_wire, dcf, seed }
            })
    })
}

/// Packets of each flow.
type BothWays = [Vec<Arc<[u8]>>; 2];

impl Drawn {
    fn plan(&self) -> Result<Plan, String> {
        let count = self.hops.len();
        let beside = count + 1;
        let mut matrix = String::new();
        let mut link = |a: usize, b: usize, loss: f64| {
            let loss = if self.dcf { format!("80 {loss}") } else { loss.to_string() };
            writeln!(matrix, "{a} {b} {loss}\n{b} {a} {loss}").expect("a string takes it");
        };
        let by_wire = usize::from(self.begins_by_wire);
        self.hops.iter().enumerate().skip(by_wire).for_each(|(at, &loss)| link(at, at + 1, loss));
        for (at, loss) in self.beside.iter().enumerate() {
            loss.iter().for_each(|&loss| link(beside, at, loss));
        }
        let radio = match self.dcf {
            true => "mac = 'dcf'\nstandard = 'g'\nrate_bps = '12M'\nretries = 2\n",
            false => "mac = 'ideal'\nrate_bps = '12M'\n",
        };
        let wire = "[[network.link]]\nbetween = [0, 1]\nrate_bps = '10M'\ndelay_ms = 1\n\
                    queue_packets = 100\n";
        let helper = if self.on_the_way { 1 } else { beside };
        let text = format!(
            "name = 'drawn'\nseed = 1\nduration_s = 1\n[network]\nkind = 'matrix'\nnodes = {}\n\
             path = 'm.txt'\n[network.radio]\n{radio}{}\
             [[network.tunnel]]\nbetween = [0, {count}]\nhelper = {helper}\ningress_packets = 500\n\
             coding = {{ preset = 'block', delivery_deadline_ms = 20000 }}\n\
             [[flow]]\nfrom = 0\nto = 1\nsource = {{ kind = 'cbr', rate_bps = '1k' }}\n",
            beside + 1,
            if self.begins_by_wire { wire } else { "" },
        );
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("m.txt"), matrix).expect("a file");
        Plan::parse(&text, directory.path()).map_err(|error| error.to_string())
    }

    /// Carries packets both ways; returns those sent and those received, by flow, and how many
    /// frames the helper recoded.
    fn carry(&self) -> Result<([BothWays; 2], u64), String> {
        let plan = self.plan()?;
        let Load::Network(plan) = &plan.points[0].load else { panic!("no network: {plan:?}") };
        let prepared = Prepared::new(plan, self.seed).map_err(|error| error.to_string())?;
        let running = prepared.network(self.seed, 0, Time::ZERO).expect("it was made before");
        let (mut network, ends) = (running.network, running.tunnel_ends);
        let last = self.hops.len() as NodeIndex;
        let pairs = [FlowEnd::pair(FLOWS[0], 0, last), FlowEnd::pair(FLOWS[1], last, 0)];
        let mut sent = [Vec::new(), Vec::new()];
        for (direction, (source, sink)) in pairs.into_iter().enumerate() {
            let packets = drawn_packets(source, self.seed);
            sent[direction] = packets.clone();
            let add = |network: &mut Network, side: usize, host: Host| {
                let flow = FLOWS[direction];
                network.tell(ends[side], |end: &mut TunnelEnd| end.add(flow, host));
            };
            add(&mut network, direction, Host::new(source, packets));
            add(&mut network, 1 - direction, Host::new(sink, Vec::new()));
        }
        network.run_until(END);
        let end = |at: usize| network.agent::<TunnelEnd>(ends[at]).expect("it is one");
        let come = [1, 0].map(|side: usize| {
            let host = end(side).agent::<Host>(FLOWS[1 - side]).expect("it was added");
            host.taken.clone()
        });
        Ok(([sent, come], end(2).station().stats().recoded_frames_sent))
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(24))]

    #[test]
    fn what_goes_in_comes_out_whoever_helps(drawn in drawn()) {
        let ([sent, come], _) = drawn.carry().map_err(TestCaseError::fail)?;
        for direction in 0..2 {
            let (sent, come) = (&sent[direction], &come[direction]);
            prop_assert_eq!(come.len(), sent.len(), "direction {}", direction);
            prop_assert!(come == sent, "direction {}: not what was sent", direction);
        }
    }
}

/// The same seed gives the same run to the byte and in the same order, with a helper that takes
/// part.
#[test]
fn the_same_seed_recodes_the_same() {
    let drawn = Drawn {
        hops: vec![0.4, 0.3],
        beside: vec![Some(0.1), None, Some(0.1)],
        on_the_way: false,
        begins_by_wire: false,
        dcf: false,
        seed: 3,
    };
    let first = drawn.carry().expect("it can be run");
    assert_eq!(first, drawn.carry().expect("it can be run"));
    assert!(first.1 > 10, "{} frames recoded", first.1);
}
