//! Captures of a wired network: Wireshark's own dissectors read what was sent.

use core::time::Duration;
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

use corridor_air::PipeConfig;
use corridor_base::Time;
use corridor_scenario::Plan;
use corridor_sim::source::*;
use corridor_sim::tcp::{ReceiverConfig, Segment, SenderConfig, Variant};
use corridor_sim::{
    AgentIndex, Body, CaptureCounts, CaptureLimits, CapturedFlow, Crossing, Network,
    NetworkCapture, NodeIndex, Packet, Topology, Watcher, capture_point,
};

use super::tool::{Recorded, packets_of, tshark};

const END: Time = Time::from_millis(60_000);
const PAYLOAD_BYTES: u32 = 700;
/// Node 0 sends TCP to node 2 and datagrams to node 1.
const HOST: NodeIndex = 0;

/// A lossy chain with a short queue, a TCP flow and datagrams.
fn network() -> (Network, AgentIndex) {
    let link = PipeConfig::new(1_000_000, Duration::from_millis(20), 12, 0.01);
    let mut network = Network::new(&Topology::chain(3, &link), 3, 0).expect("a network");
    let (from, to) = FlowEnd::pair(7, HOST, 2);
    let sender = SenderConfig {
        payload_bytes: PAYLOAD_BYTES,
        window_packets_max: 30,
        ..SenderConfig::ns2(Variant::Sack)
    };
    let source = TcpSource::new(from, Active::ALWAYS, Supply::Endless, sender).expect("a source");
    let sink = TcpSink::new(to, sender.header_bytes, ReceiverConfig::ns2(true)).expect("a sink");
    let source = network.add_agent(HOST, 7, source).expect("room");
    network.add_agent(2, 7, sink).expect("room");
    let (from, _) = FlowEnd::pair(8, HOST, 1);
    let interval = Duration::from_millis(50);
    let cbr = CbrConfig { len_bytes: 228, interval, active: Active::ALWAYS };
    network.add_agent(HOST, 8, CbrSource::new(from, cbr)).expect("room");
    network.add_agent(1, 8, DatagramSink::default()).expect("room");
    (network, source)
}

fn capture(file: &Path, limits: CaptureLimits) -> (CaptureCounts, u64) {
    let (mut network, source) = network();
    let flows = [CapturedFlow { flow: 7, payload_bytes: PAYLOAD_BYTES }];
    let out = fs::File::create(file).expect("a file");
    let out = std::io::BufWriter::new(out);
    let capture = NetworkCapture::new(out, "tested", &[HOST], &flows, limits).expect("a capture");
    network.set_watcher(capture.watcher());
    while !network.is_watched_enough() && network.next_event().is_some_and(|at| at < END) {
        network.step();
    }
    let source: &TcpSource = network.agent(source).expect("the source");
    let retransmissions = source.sender().stats().retransmissions;
    (capture.finish().expect("written"), retransmissions)
}

/// Records everything at [`HOST`], as the lines that tshark should print.
#[derive(Clone, Default)]
struct Witness(Rc<RefCell<Vec<String>>>);

impl Watcher for Witness {
    fn take_packet(&mut self, now: Time, node: NodeIndex, packet: &Packet, crossing: Crossing) {
        if node != HOST {
            return;
        }
        let place = |node: NodeIndex| format!("10.0.0.{}", node + 1);
        let byte = |segment: u64| segment * u64::from(PAYLOAD_BYTES) + 1;
        let comment = match crossing {
            Crossing::Lost(next) => format!("lost on the link to node {next}"),
            Crossing::Dropped(next) => {
                format!("dropped: the queue of the link to node {next} is full")
            }
            _ => String::new(),
        };
        let body = match packet.body {
            Body::Segment(Segment::Data { sequence, .. }) => {
                format!("{}|1|{PAYLOAD_BYTES}||||", byte(sequence))
            }
            Body::Segment(Segment::Ack { next, sack, .. }) => {
                let ranges = || sack.iter().filter(|range| range.start < range.end);
                let join = |edges: Vec<String>| edges.join(",");
                let left = join(ranges().map(|range| byte(range.start).to_string()).collect());
                let right = join(ranges().map(|range| byte(range.end).to_string()).collect());
                format!("1|{}|0|{left}|{right}||", byte(next))
            }
            Body::Datagram { sequence, .. } => {
                // A number of eight bytes at the front of the captured bytes.
                format!("|||||{}|{sequence:016x}", packet.len_bytes - 20)
            }
            Body::Bytes(_) | Body::Sealed(_) | Body::Bare(_) => unreachable!("no such flow"),
        };
        let (from, to, ns) = (place(packet.from), place(packet.to), now.as_nanos());
        let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
        self.0.borrow_mut().push(format!("{seconds}.{ns:09}|{from}|{to}|{body}|{comment}"));
    }

    fn has_enough(&self) -> bool {
        false
    }
}

#[test]
fn segments_and_datagrams_are_what_was_sent_and_received() {
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("host.pcapng");
    let (counts, retransmissions) = capture(&file, CaptureLimits::default());
    let (mut network, _) = network();
    let witness = Witness::default();
    network.set_watcher(Box::new(witness.clone()));
    while network.next_event().is_some_and(|at| at < END) {
        network.step();
    }
    let wanted = witness.0.borrow();
    assert_eq!((wanted.len() as u64, counts.sealed), (counts.frames, 0));
    let some = |what: &str| wanted.iter().filter(|line| line.contains(what)).count();
    assert!(some("lost on") > 5 && some("dropped") > 5 && retransmissions > 5);

    let raw = "tcp.relative_sequence_numbers:FALSE";
    let mut arguments = vec!["-o", raw, "-T", "fields", "-E", "separator=|"];
    let fields = [
        "frame.time_epoch",
        "ip.src",
        "ip.dst",
        "tcp.seq",
        "tcp.ack",
        "tcp.len",
        "tcp.options.sack_le",
        "tcp.options.sack_re",
        "udp.length",
        "data.data",
        "frame.comment",
    ];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let Some(text) = tshark(&file, &arguments) else { return };
    assert_eq!(text.lines().count(), wanted.len());
    for (number, (line, wanted)) in text.lines().zip(wanted.iter()).enumerate() {
        let mut columns: Vec<&str> = line.split('|').collect();
        columns[9] = columns[9].get(..16).unwrap_or("");
        assert_eq!(&columns.join("|"), wanted, "packet {}", number + 1);
    }

    // Wireshark's own analysis finds the sender's retransmissions.
    let again = "tcp.analysis.retransmission || tcp.analysis.out_of_order";
    let found = tshark(&file, &["-Y", again]).unwrap_or_default();
    assert_eq!(found.lines().count() as u64, retransmissions);
    let bad = "ip.checksum.status == 0 || _ws.malformed || tcp.analysis.ack_lost_segment";
    let check = ["-o", "ip.check_checksum:TRUE", "-Y", bad];
    assert_eq!(tshark(&file, &check).as_deref(), Some(""));
}

#[test]
fn limits_hold_and_lengths_are_the_true_ones() {
    let directory = tempfile::tempdir().expect("a place");
    let take = |name: &str, limits| {
        let file = directory.path().join(name);
        capture(&file, limits);
        packets_of(&fs::read(file).expect("the capture"))
    };
    let all = take("all", CaptureLimits::default());
    assert_eq!(all, take("again", CaptureLimits::default()));
    assert_eq!(all[..9], take("few", CaptureLimits { frames_max: 9, ..CaptureLimits::default() }));
    let (from, until) = (Time::from_millis(500), Time::from_millis(900));
    let window = take("window", CaptureLimits { from, until, ..CaptureLimits::default() });
    let inside = |ns: u64| (500_000_000..900_000_000).contains(&ns);
    let wanted: Vec<_> = all.iter().filter(|packet| inside(packet.at_ns)).cloned().collect();
    assert_eq!(window, wanted);
    for packet in &all {
        let told = usize::from(u16::from_be_bytes([packet.bytes[2], packet.bytes[3]]));
        assert_eq!(packet.len_bytes, told);
        assert!(packet.bytes.len() <= 80, "no payload is kept");
    }
    assert!(all.iter().any(|packet| packet.len_bytes == PAYLOAD_BYTES as usize + 40));
    assert!(all.iter().any(|packet| packet.len_bytes == 228));
}

#[test]
fn a_point_of_a_plan_is_captured_where_its_flows_begin_or_where_it_is_asked_for() {
    let text = "name = 'wires'\nseed = 3\nduration_s = 20\n[network]\nkind = 'chain'\n\
        [network.links]\ncount = 2\nrate_bps = 1000000\ndelay_ms = 20\nqueue_packets = 12\n\
        erasure_ratio = 0.02\n[[flow]]\nfrom = 0\nto = 2\nstart_s = 0.5\nsource = { kind = 'ftp' }\n\
        tcp = { preset = 'ns2', variant = 'sack' }\n";
    let plan = Plan::parse(text, Path::new(".")).expect("a plan");
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("point.pcapng");
    let take = |at: &[NodeIndex]| {
        let out = fs::File::create(&file).expect("a file");
        capture_point(&plan.points[0], 0, at, CaptureLimits::default(), "tested", out)
            .map(|_| packets_of(&fs::read(&file).expect("the capture")))
    };
    let measures = corridor_sim::run(&plan.points[0], 0).expect("a run").measures;
    let count = |name: &str| measures.value(name).number().expect("a number") as usize;
    let sent = count("flow.0.packets_sent") + count("flow.0.packets_retransmitted");
    let host = take(&[]).expect("a capture");
    let data = |packets: &[Recorded]| packets.iter().filter(|p| p.len_bytes == 1_040).count();
    assert_eq!(data(&host), sent, "what is captured is what is measured");
    let other = take(&[2]).expect("a capture");
    assert!(data(&other) < sent && data(&other) > sent / 2);
    let refused = take(&[3]).expect_err("there is no node 3");
    assert!(refused.to_string().contains("at = 3"), "{refused}");
}
