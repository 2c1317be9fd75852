//! Networks of radios: several hops, routes, broadcasts, hop limits, and the MACs' reports.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use corridor_air::{Duplex, Jitter, Link, MediumConfig};
use corridor_base::Time;
use corridor_scenario::{Load, Measures, Plan};
use corridor_sim::{
    Agent, AirConfig, BROADCAST, Body, CaptureLimits, LinkOutcome, Network, NodeIndex, Packet,
    RadioSite, TTL_MAX, Topology, capture_point, sketch,
};

fn plan(text: &str) -> Plan {
    let common = "name = 'radios'\nseed = 3\nduration_s = 4\n";
    let plan = Plan::parse(&format!("{common}{text}"), Path::new("."));
    plan.unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: &Plan, replication: u64) -> Measures {
    corridor_sim::run(&plan.points[0], replication).expect("it can be run").measures
}

fn number(measures: &Measures, name: &str) -> f64 {
    measures.value(name).number().unwrap_or_else(|| panic!("no {name} in {measures:?}"))
}

const LINE: &str = "[network]\nkind = 'line'\nnodes = 4\nspacing_m = 10\n";
const FTP: &str = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\n";

#[test]
fn tcp_crosses_three_hops_of_every_mac() {
    // Only neighbours hear each other.
    let macs = [
        ("mac = 'ideal'\nrate_bps = '6M'\nreach_m = 11", 1.0e6, ""),
        ("mac = 'dcf'\npower_dbm = 0\nsense_dbm = -95", 5.0e5, ""),
        ("mac = '802.15.4'\npower_dbm = -20", 5.0e3, "payload_bytes = 40\nheader_bytes = 40\n"),
    ];
    for (mac, least_bps, sizes) in macs {
        let radio = format!("[network.radio]\n{mac}\n");
        let plan = plan(&format!("{LINE}{radio}{FTP}{sizes}"));
        let measures = run(&plan, 0);
        let goodput_bps = number(&measures, "goodput_bps");
        assert!(goodput_bps > least_bps, "{mac}: {measures:?}");
        // Data and acknowledgments cross three links each.
        let packets = number(&measures, "flow.0.packets_received");
        assert!(number(&measures, "packet_hops") >= 3.0 * packets, "{mac}: {measures:?}");
        assert!(number(&measures, "frame_attempts") >= number(&measures, "frames_sent"));
        assert_eq!(measures, run(&plan, 0), "{mac}");
        let reaches = sketch(&plan.points[0]).expect("it can be drawn").reaches;
        let heard = reaches.iter().filter(|reach| reach.hears);
        assert_eq!(heard.clone().count(), 6, "{mac}");
        assert!(heard.clone().all(|reach| reach.from.abs_diff(reach.to) == 1), "{mac}");
    }
}

#[test]
fn stations_that_only_sense_each_other_are_drawn_so() {
    let plan = plan(&format!("{LINE}[network.radio]\nmac = 'dcf'\nsense_dbm = -100\n{FTP}"));
    let Load::Network(network) = &plan.points[0].load else { panic!("a network") };
    assert!(!network.radios.is_empty());
    let far = "[network]\nkind = 'line'\nnodes = 4\nspacing_m = 40\n";
    let far = self::plan(&format!("{far}[network.radio]\nmac = 'dcf'\nsense_dbm = -100\n{FTP}"));
    let sketch = sketch(&far.points[0]).expect("it can be drawn");
    let of = |from, to| sketch.reaches.iter().find(|reach| (reach.from, reach.to) == (from, to));
    assert!(of(0, 1).is_some_and(|reach| reach.hears));
    assert!(of(0, 2).is_some_and(|reach| !reach.hears && reach.senses), "{:?}", of(0, 2));
    assert_eq!((sketch.places[3], sketch.is_to_scale), ([120.0, 0.0], true));
}

#[test]
fn a_route_that_is_given_is_taken() {
    let grid = "[network]\nkind = 'grid'\ncolumns = 2\nrows = 2\nspacing_m = 10\n[network.radio]\n\
        mac = 'ideal'\nrate_bps = '6M'\nreach_m = 15\n";
    let flow = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'cbr', rate_bps = '80k' }\n";
    let direct = run(&plan(&format!("{grid}{flow}")), 0);
    let route = "[[network.route]]\npath = [0, 1, 2, 3]\n";
    let round = run(&plan(&format!("{grid}{route}{flow}")), 0);
    let hops = |measures: &Measures| {
        number(measures, "packet_hops") / number(measures, "flow.0.packets_received")
    };
    assert!((hops(&direct) - 1.0).abs() < 0.1, "{direct:?}");
    assert!((hops(&round) - 3.0).abs() < 0.1, "{round:?}");
}

#[test]
fn replications_of_a_lossless_network_differ_unless_they_are_to_start_together() {
    let chain = "[network]\nkind = 'chain'\nlinks = { count = 3, rate_bps = '2M', delay_ms = 10, \
        queue_packets = 20 }\n[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\n";
    let ns2 = format!("{chain}tcp = {{ preset = 'ns2' }}\n");
    let new = plan(chain);
    assert_ne!(run(&new, 0), run(&new, 1));
    for text in [ns2, format!("start_jitter_s = 0\n{chain}")] {
        let plan = plan(&text);
        assert_eq!(run(&plan, 0), run(&plan, 1), "{text}");
    }
}

/// Sends one packet, and records what it is told.
struct Caller {
    packet: Option<Packet>,
    told: Rc<RefCell<Vec<String>>>,
}

impl Agent for Caller {
    fn handle_packet(&mut self, _now: Time, packet: Packet) {
        self.told.borrow_mut().push(format!("from {}", packet.from));
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        self.packet.take()
    }

    fn handle_outcome(&mut self, _now: Time, outcome: &LinkOutcome<'_>) {
        let LinkOutcome { next, delivered, attempts, .. } = *outcome;
        self.told.borrow_mut().push(format!("to {next}: {delivered}, {attempts} attempts"));
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.packet.as_ref().map(|_| Time::ZERO)
    }
}

/// Puts callers on all nodes and has the first one call; returns what each was told.
fn call(topology: &Topology, to: NodeIndex, ttl: u16) -> (Vec<Vec<String>>, Network) {
    let mut network = Network::new(topology, 1, 0).expect("a network");
    let mut told = Vec::new();
    for node in 0..topology.nodes as NodeIndex {
        let body = Body::Datagram { sequence: 0, sent_at: Time::ZERO };
        let packet = Packet { flow: 7, from: node, to, len_bytes: 100, ttl, body };
        let heard = Rc::new(RefCell::new(Vec::new()));
        told.push(Rc::clone(&heard));
        let packet = Some(packet).filter(|_| node == 0);
        network.add_agent(node, 7, Caller { packet, told: heard }).expect("a free node");
    }
    network.run_until(Time::from_millis(1_000));
    (told.iter().map(|told| told.borrow().clone()).collect(), network)
}

/// Four nodes in a row on a radio without losses.
fn row(nodes: Vec<NodeIndex>) -> Topology {
    let count = nodes.len();
    let link = |from, to| Link { from, to, erasure: 0.0.into(), retry_limit: 0 };
    let links = (1..count).flat_map(|to| [link(to - 1, to), link(to, to - 1)]);
    let medium = MediumConfig {
        mode: Duplex::Half,
        rate_bps: 1_000_000,
        overhead: core::time::Duration::ZERO,
        propagation: core::time::Duration::ZERO,
        jitter: Jitter::None,
        queue_frames: 5,
        drops_when_full: false,
        stations: count,
        links: links.collect(),
        seed: 0,
        replication: 0,
    };
    let nodes_max = nodes.iter().max().map_or(0, |&node| node as usize + 1);
    let site = RadioSite { nodes, air: AirConfig::Ideal(medium) };
    Topology { nodes: nodes_max, radios: vec![site], ..Topology::default() }
}

#[test]
fn a_packet_crosses_as_many_links_as_it_may() {
    for (ttl, arrives) in [(TTL_MAX, true), (3, true), (2, false)] {
        let (told, network) = call(&row(vec![0, 1, 2, 3]), 3, ttl);
        assert_eq!(told[3].len(), usize::from(arrives), "{ttl}");
        assert_eq!(network.stats().expired, u64::from(!arrives), "{ttl}");
        assert!(told[1].is_empty() && told[2].is_empty());
    }
}

#[test]
fn a_broadcast_is_for_neighbours() {
    let mut topology = row(vec![0, 1, 2, 3]);
    let (told, _) = call(&topology, BROADCAST, TTL_MAX);
    assert_eq!(told, [vec![], vec!["from 0".to_owned()], vec![], vec![]]);
    // A pipe as well.
    topology.connect(
        0,
        2,
        &corridor_air::PipeConfig::new(1_000_000, core::time::Duration::ZERO, 5, 0.0),
    );
    let (told, network) = call(&topology, BROADCAST, TTL_MAX);
    assert_eq!(told.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 1, 0]);
    assert_eq!(network.packets(), 0);
}

#[test]
fn a_broadcast_misses_nobody_who_does_not_want_it() {
    let mut network = Network::new(&row(vec![0, 1]), 1, 0).expect("a network");
    let body = Body::Datagram { sequence: 0, sent_at: Time::ZERO };
    let packet = Packet { flow: 7, from: 0, to: BROADCAST, len_bytes: 100, ttl: 1, body };
    let caller = Caller { packet: Some(packet), told: Rc::default() };
    network.add_agent(0, 7, caller).expect("a free node");
    network.run_until(Time::from_millis(100));
    assert_eq!((network.stats().packet_hops, network.stats().undeliverable), (1, 0));
}

#[test]
fn what_is_for_everybody_goes_as_far_as_its_own_rate() {
    use corridor_air::dcf::DcfConfig;
    use corridor_air::radio::*;
    // At -81 dBm, 13 dB above noise: enough for 6 Mbit/s, but not for 54.
    let link = |from, to| RadioLink::new(from, to, 97.0);
    let radio = RadioConfig {
        stations: vec![RadioStation { power_dbm: 16.0, ..RadioStation::default() }; 2],
        links: Links::Matrix(vec![link(0, 1), link(1, 0)]),
        fading: Fading::None,
        receiver: Receiver::DOT11,
        propagation: core::time::Duration::ZERO,
        seed: 0,
        replication: 0,
    };
    let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm54));
    let config = RadioMediumConfig { radio, mac, queue_frames: 5 };
    let site = RadioSite { nodes: vec![0, 1], air: AirConfig::Mac(Box::new(config)) };
    let topology = Topology { nodes: 2, radios: vec![site], ..Topology::default() };
    let (told, _) = call(&topology, BROADCAST, 1);
    assert_eq!(told[1], ["from 0"]);
    let (told, network) = call(&topology, 1, 1);
    assert_eq!((told[1].len(), network.stats().undeliverable), (0, 1), "no link for data");
}

#[test]
fn nodes_have_numbers_beyond_a_byte() {
    let (told, _) = call(&row(vec![0, 1, 70, 60_000]), 60_000, TTL_MAX);
    assert_eq!(told[60_000], ["from 0"]);
}

#[test]
fn senders_are_told_what_became_of_their_frames() {
    use corridor_air::dcf::DcfConfig;
    use corridor_air::radio::*;
    let links = vec![RadioLink::new(0, 1, 60.0), RadioLink::new(1, 0, 60.0)];
    let radio = |links| RadioConfig {
        stations: vec![RadioStation { power_dbm: 16.0, ..RadioStation::default() }; 2],
        links: Links::Matrix(links),
        fading: Fading::None,
        receiver: Receiver::DOT11,
        propagation: core::time::Duration::ZERO,
        seed: 0,
        replication: 0,
    };
    let told = |links| {
        let mac = MacConfig::Dcf(DcfConfig::a(Rate::Ofdm6));
        let air = AirConfig::Mac(Box::new(RadioMediumConfig {
            radio: radio(links),
            mac,
            queue_frames: 5,
        }));
        let site = RadioSite { nodes: vec![0, 1], air };
        call(&Topology { nodes: 2, radios: vec![site], ..Topology::default() }, 1, TTL_MAX)
    };
    let (both_ways, network) = told(links.clone());
    assert_eq!(both_ways, [vec!["to 1: true, 1 attempts".to_owned()], vec!["from 0".to_owned()]]);
    assert_eq!(network.stats().given_up, 0);
    // The sender cannot hear the acknowledgments.
    let (one_way, network) = told(links[..1].to_vec());
    assert_eq!(one_way[0], ["to 1: false, 7 attempts"]);
    assert_eq!(one_way[1], ["from 0"], "repeats are known");
    assert_eq!(network.stats().given_up, 1);
}

#[test]
fn retries_are_of_both_kinds() {
    use corridor_air::radio::MacConfig;
    for (given, expected) in [("", (Some(7), Some(4))), ("retries = 9\n", (Some(9), Some(9)))] {
        let plan = plan(&format!("{LINE}[network.radio]\nmac = 'dcf'\n{given}{FTP}"));
        let Load::Network(network) = &plan.points[0].load else { panic!("a network") };
        let Some(corridor_scenario::Air::Mac(config)) = network.air() else { panic!("a MAC") };
        let MacConfig::Dcf(dcf) = &config.mac else { panic!("802.11") };
        assert_eq!((dcf.retry_limit, dcf.long_retry_limit), expected);
    }
}

#[test]
fn path_loss_is_that_of_the_standard_s_band() {
    use corridor_air::radio::Links;
    let of = |radio: &str| {
        let plan = plan(&format!(
            "{LINE}[network.radio]\n{radio}\n{FTP}payload_bytes = 40\nheader_bytes = 40\n"
        ));
        let Load::Network(network) = &plan.points[0].load else { panic!("a network") };
        let Some(corridor_scenario::Air::Mac(config)) = network.air() else { panic!("a MAC") };
        let Links::Positions { path_loss, .. } = &config.radio.links else { panic!("places") };
        path_loss.reference_db
    };
    assert_eq!(of("mac = 'dcf'"), 46.68);
    assert_eq!(of("mac = 'dcf'\nstandard = 'a'"), 46.68);
    assert_eq!(of("mac = 'dcf'\nstandard = 'b'"), 40.05);
    assert_eq!(of("mac = 'dcf'\nstandard = 'g'"), 40.05);
    assert_eq!(of("mac = '802.15.4'"), 40.05);
    assert_eq!(of("mac = 'dcf'\nstandard = 'g'\npath_loss = { reference_db = 50 }"), 50.0);
}

#[test]
fn errors_say_which_value_and_what_was_expected() {
    let cases = [
        ("mac = 'dcf'\nrate_bps = '7M'", "network.radio.rate_bps = 7000000"),
        ("mac = 'dcf'\nreach_m = 5", "network.radio.reach_m"),
        ("mac = 'ideal'\nrate_bps = '1M'", "network.radio.reach_m is missing"),
        ("mac = 'ideal'\nrate_bps = '1M'\nreach_m = -1.0", "network.radio.reach_m = -1"),
        ("mac = 'ideal'\nrate_bps = '1M'\nreach_m = nan", "network.radio.reach_m = "),
        ("mac = 'dcf'\nreech_m = 5", "reech_m"),
        ("mac = 'dcf'\nretries = 0", "network.radio"),
    ];
    for (radio, expected) in cases {
        let text =
            format!("name = 'x'\nseed = 1\nduration_s = 1\n{LINE}[network.radio]\n{radio}\n{FTP}");
        let error = Plan::parse(&text, Path::new(".")).expect_err(radio).to_string();
        assert!(error.contains(expected), "{radio}: {error}");
    }
}

#[test]
fn packets_that_no_frame_has_room_for_are_refused_before_anything_runs() {
    let zigbee = "mac = '802.15.4'\n";
    let cbr = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'cbr', rate_bps = '8k' }\n";
    let nc = "payload_bytes = 60\nheader_bytes = 40\ntcp_nc = {}\n";
    let long_acks =
        "payload_bytes = 40\nheader_bytes = 40\ntcp = { preset = 'ns2', ack_bytes = 117 }\n";
    let cases = [
        (zigbee, format!("{cbr}payload_bytes = 88\n"), Ok(())),
        (
            zigbee,
            format!("{cbr}payload_bytes = 89\n"),
            Err("payload_bytes = 89: expected at most 88"),
        ),
        (zigbee, FTP.to_owned(), Err("payload_bytes = 1448: expected at most 64")),
        (zigbee, format!("{FTP}{nc}"), Err("payload_bytes = 60: expected at most 47")),
        (zigbee, format!("{FTP}{long_acks}"), Err("tcp.ack_bytes = 117: expected at most 116")),
        ("mac = 'dcf'\n", format!("{cbr}payload_bytes = 2282\n"), Ok(())),
        (
            "mac = 'dcf'\n",
            format!("{cbr}payload_bytes = 2283\n"),
            Err("payload_bytes = 2283: expected at most 2282"),
        ),
    ];
    for (mac, flow, expected) in cases {
        let plan = plan(&format!("{LINE}[network.radio]\n{mac}{flow}"));
        match (corridor_sim::check_plan(&plan), expected) {
            (Ok(()), Ok(())) => {}
            (Err((0, error)), Err(said)) => {
                assert!(error.to_string().starts_with(&format!("flow[0].{said} ")), "{error}");
            }
            (checked, _) => panic!("{mac}{flow}: {checked:?}"),
        }
    }
}

#[test]
fn a_plan_in_which_too_many_hear_each_other_is_refused() {
    let dense = "[network]\nkind = 'grid'\ncolumns = 100\nrows = 100\nspacing_m = 0.1\n";
    let dcf = plan(&format!("{dense}[network.radio]\nmac = 'dcf'\n{FTP}"));
    let (_, error) = corridor_sim::check_plan(&dcf).expect_err("1e8 links");
    assert!(error.to_string().contains("links has more than 1048576"), "{error}");
    let ideal = "[network.radio]\nmac = 'ideal'\nrate_bps = '1M'\nreach_m = 100\n";
    let text = format!("name = 'x'\nseed = 1\nduration_s = 1\n{dense}{ideal}{FTP}");
    let error = Plan::parse(&text, Path::new(".")).expect_err("1e8 links").to_string();
    assert!(error.contains("network.nodes = 10000: expected at most 1024"), "{error}");
}

#[test]
fn a_matrix_is_taken_in_any_order_and_as_a_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let parse = |lines: &str, radio: &str| {
        std::fs::write(directory.join("matrix.txt"), lines).expect("written");
        let text = format!(
            "name = 'x'\nseed = 1\nduration_s = 1\n[network]\nkind = 'matrix'\nnodes = 4\n\
             path = 'matrix.txt'\n[network.radio]\nmac = 'ideal'\nrate_bps = '1M'\n{radio}{FTP}"
        );
        Plan::parse(&text, directory)
    };
    let plan = parse("2 1 0\n0 1 0.5\n1 0 0\n1 2 0\n", "").expect("a sound matrix");
    let reaches = sketch(&plan.points[0]).expect("it can be drawn").reaches;
    let pairs: Vec<_> = reaches.iter().map(|reach| (reach.from, reach.to)).collect();
    assert_eq!(pairs, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    let refused = [
        ("0 1 0 0.5\n", "", "network.path = a line of 4 numbers, from 0 to 1"),
        ("0 1 0\n", "reach_m = 5\n", "network.radio.reach_m = 5"),
        ("0 1 0\n", "erasure_ratio = 0.5\n", "network.radio.erasure_ratio = 0.5"),
    ];
    for (lines, radio, expected) in refused {
        let error = parse(lines, radio).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// A file in memory.
#[derive(Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl std::io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Link type of a capture, and its frames: bytes kept, and length on the air without the FCS.
fn frames(plan: &Plan) -> (u16, Vec<(Vec<u8>, usize)>) {
    let (file, limits) =
        (Buffer::default(), CaptureLimits { frames_max: 200, ..CaptureLimits::default() });
    let counts = capture_point(&plan.points[0], 0, &[], limits, "", file.clone()).expect("written");
    let bytes = file.0.borrow();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four")) as usize;
    let (mut at, mut link_type, mut frames) = (0, 0, Vec::new());
    while at < bytes.len() {
        match word(at) {
            1 => link_type = word(at + 8) as u16,
            6 => frames.push((bytes[at + 28..at + 28 + word(at + 20)].to_vec(), word(at + 24))),
            _ => {}
        }
        at += word(at + 4);
    }
    assert_eq!(counts.frames as usize, frames.len());
    (link_type, frames)
}

#[test]
fn what_is_on_the_air_is_captured_as_the_standard_s_frames() {
    let dcf = "[network.radio]\nmac = 'dcf'\nrts_threshold_bytes = 500\n";
    let (link_type, seen) = frames(&plan(&format!("{LINE}{dcf}{FTP}")));
    assert_eq!(link_type, 105);
    // First byte and length without the FCS: RTS, CTS, data, ACK.
    let of = |first: u8| seen.iter().filter(move |(frame, _)| frame[0] == first);
    assert!(of(0xb4).count() > 0 && of(0xb4).all(|(_, len)| *len == 16));
    assert!(of(0xc4).count() > 0 && of(0xc4).all(|(_, len)| *len == 10));
    assert!(of(0xd4).count() > 0 && of(0xd4).all(|(_, len)| *len == 10));
    // From node 0 to its neighbour, carrying the IP packet.
    let (data, len) = of(0x08).next().expect("data");
    assert_eq!((&data[4..10], &data[10..16]), (&[2, 0, 0, 0, 0, 4][..], &[2, 0, 0, 0, 0, 1][..]));
    let ip_len = usize::from(u16::from_be_bytes([data[34], data[35]]));
    // Flows are charged for timestamps (52 bytes of headers), which captures do not write.
    assert_eq!((data[32], ip_len, *len), (0x45, 1448 + 40, 24 + 8 + 1448 + 52));

    // The line's ends are hidden from each other and collide: retried data have the Retry bit.
    let hidden = "[network.radio]\nmac = 'dcf'\npower_dbm = 0\nsense_dbm = -95\n";
    let (_, seen) = frames(&plan(&format!("{LINE}{hidden}{FTP}{}", FTP.replace("= 0", "= 2"))));
    let data = seen.iter().filter(|(frame, _)| frame[0] == 0x08);
    let mut last: std::collections::BTreeMap<[u8; 6], u16> = std::collections::BTreeMap::new();
    let mut again = 0;
    for (frame, _) in data {
        let from = frame[10..16].try_into().expect("six");
        let sequence = u16::from_le_bytes([frame[22], frame[23]]);
        let is_again = last.insert(from, sequence) == Some(sequence);
        assert_eq!(frame[1], if is_again { 0x08 } else { 0 });
        again += usize::from(is_again);
    }
    assert!(again > 0, "of {}", seen.len());

    let wpan = "[network.radio]\nmac = '802.15.4'\n";
    let sizes = "payload_bytes = 40\nheader_bytes = 40\n";
    let (link_type, seen) = frames(&plan(&format!("{LINE}{wpan}{FTP}{sizes}")));
    assert_eq!(link_type, 230);
    let (data, len) = &seen[0];
    // Data that requests an ACK, with short addresses in one PAN; 80 bytes after nine of header.
    assert_eq!((&data[..2], *len), (&[0x61, 0x88][..], 9 + 80));
    assert!(seen.iter().any(|(frame, len)| frame[..2] == [0x02, 0] && *len == 3));
}

#[test]
fn no_two_bridges_have_the_same_end() {
    let mut network = Network::new(&row(vec![0, 1, 2, 3]), 1, 0).expect("a network");
    network.add_bridge((0, 1), (0, 2), 3, 10).expect("the first one");
    network.add_bridge((0, 2), (0, 1), 0, 10).expect("the other direction is another bridge");
    for (from, to) in [(1, 2), (1, 3), (3, 2)] {
        let error = network.add_bridge((0, from), (0, to), 0, 10).expect_err("an end is taken");
        let expected = format!(
            "bridges from place 1 of radio 0 to place 2 of radio 0 and from place {from} of radio 0 \
             to place {to} of radio 0: expected no two from the same place, or to the same place"
        );
        assert_eq!(error.to_string(), expected);
    }
}
