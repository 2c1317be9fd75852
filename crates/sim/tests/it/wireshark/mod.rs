//! The shipped dissector in tshark: it reads every frame as the protocol's own parser does, and
//! never fails.

mod expected;
mod network;
mod tool;

use std::fs;
use std::io::BufWriter;
use std::path::Path;

use corridor_proto::wire::*;
use corridor_proto::{Field, StationId};
use corridor_scenario::{Scenario, expand};
use corridor_sim::{CaptureLimits, capture_udp};
use expected::{FIELDS, Reader, Same, WINDOW_FORM, expected};
use tool::{LINKTYPE_ETHERNET, Recorded, packets_of, tshark, write_pcap};

/// Codings whose frames differ in content: seeds, vectors over each field, bitmaps.
const CODINGS: [&str; 4] = [
    "preset = 'block'",
    "preset = 'paper'",
    "preset = 'block', field = 'gf16'",
    "preset = 'block', field = 'gf2', block_size = 24",
];

/// Window mode, which helpers do not recode.
const WINDOW: &str = "preset = 'window'";
const WINDOW_IN_ORDER: &str =
    "preset = 'window', delivery = 'in-order', goal = 'low-delay', field = 'gf2', window_size = 40";

/// TCP in window mode: its headers travel as differences.
fn scenario_of_tcp() -> Scenario {
    let text = "name = 'tested'\nseed = 7\n[medium]\nduplex = 'full'\nrate_bps = 12000000\n\
                rtt_ms = 4\nqueue_frames = 4\nretry_limit = 0\n[[run]]\npath = 'coded'\n\
                transport = 'tcp'\ne3 = 0.1\nduration_s = 0.3\n\
                coding = { preset = 'window' }\n";
    Scenario::parse(text).expect("a sound scenario")
}

fn scenario(path: &str, coding: &str) -> Scenario {
    let text = format!(
        "name = 'tested'\nseed = 7\n[medium]\nduplex = 'half'\nrate_bps = 12000000\n\
         overhead_us = 400\nrtt_ms = 4\nqueue_frames = 4\nretry_limit = 1\n[[run]]\n\
         path = '{path}'\ntransport = 'udp'\noffered_bps = 2e6\ndatagram_bytes = 300\ne3 = 0.4\n\
         direction = 'both'\nduration_s = 0.3\ncoding = {{ {coding} }}\n"
    );
    Scenario::parse(&text).expect("a sound scenario")
}

fn capture(path: &Path, scenario: &Scenario, limits: CaptureLimits) -> u64 {
    let run = &expand(scenario).expect("a sound run")[0];
    let file = BufWriter::new(fs::File::create(path).expect("a file"));
    let counts = capture_udp(scenario, run, limits, "tested", file).expect("a capture");
    assert_eq!(counts.sealed, 0, "every frame opens");
    counts.frames
}

/// tshark's row of [`FIELDS`] for every packet of a file.
fn rows(path: &Path) -> Option<Vec<Vec<String>>> {
    let mut arguments = vec!["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"];
    FIELDS.iter().for_each(|field| arguments.extend(["-e", field]));
    let text = tshark(path, &arguments)?;
    Some(text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect())
}

#[test]
fn every_field_is_read_as_the_protocol_reads_it() {
    let directory = tempfile::tempdir().expect("a place");
    let all = [
        Kind::Enc,
        Kind::Ack,
        Kind::Report,
        Kind::Hello,
        Kind::Plain,
        Kind::Window,
        Kind::WindowAck,
        Kind::Link,
    ];
    let mut kinds = [0; 8];
    let mut forms = [0; WINDOW_FORM + 2];
    let mut riding = 0;
    let others = [("plain", CODINGS[0]), ("coded", WINDOW), ("coded", WINDOW_IN_ORDER)];
    let coded = CODINGS.map(|coding| ("coded+helper", coding));
    let scenarios = coded.into_iter().chain(others).map(|(path, coding)| scenario(path, coding));
    let mut differences = (0, 0);
    for (number, scenario) in scenarios.chain([scenario_of_tcp()]).enumerate() {
        let file = directory.path().join(format!("{number}.pcapng"));
        let frames = capture(&file, &scenario, CaptureLimits::default());
        let mut reader = Reader::default();
        let Some(rows) = rows(&file) else { return };
        let packets = packets_of(&fs::read(&file).expect("the capture"));
        assert_eq!((rows.len(), packets.len()), (frames as usize, frames as usize));
        for (number, (row, packet)) in rows.iter().zip(&packets).enumerate() {
            let wanted = expected(&packet.bytes, &mut reader);
            for (count, kind) in kinds.iter_mut().zip(all) {
                *count += usize::from(wanted.kinds.contains(&kind));
            }
            riding += usize::from(wanted.kinds == [Kind::Link, Kind::WindowAck, Kind::Window]);
            if let Some(form) = wanted.form {
                forms[form] += 1;
            }
            for ((field, given), wanted) in FIELDS.iter().zip(row).zip(&wanted.values) {
                assert!(
                    given.same(wanted),
                    "frame {}: {field} is {given}, sent {wanted}",
                    number + 1
                );
            }
        }
        differences.0 += reader.differences.0;
        differences.1 += reader.differences.1;
    }
    // The captures begin after the connections did.
    let (all, whole) = differences;
    assert!(whole > 50 && whole <= all, "{whole} of {all} differences are made whole");
    let counts = kinds.iter().chain(&forms).chain([&riding]);
    assert!(counts.clone().all(|&count| count > 5), "{kinds:?} {forms:?} {riding}");
}

#[test]
fn packets_of_the_hosts_are_handed_to_ip_and_udp() {
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("plain.pcapng");
    capture(&file, &scenario("plain", CODINGS[0]), CaptureLimits::default());
    let shown = ["-Y", "corridor.type == 5", "-T", "fields", "-e", "ip.src", "-e", "udp.length"];
    let Some(text) = tshark(&file, &shown) else { return };
    assert!(text.lines().count() > 100);
    for line in text.lines() {
        assert!(matches!(line, "10.0.0.1\t308" | "10.0.0.2\t308"), "{line}");
    }
    let bad = tshark(&file, &["-o", "ip.check_checksum:TRUE", "-Y", "ip.checksum.status != 1"]);
    assert_eq!(bad.as_deref(), Some(""), "checksums of IP are right");
}

#[test]
fn limits_cut_and_the_same_run_gives_the_same_bytes() {
    let directory = tempfile::tempdir().expect("a place");
    let scenario = scenario("coded+helper", CODINGS[0]);
    let take = |name: &str, limits| {
        let file = directory.path().join(name);
        let frames = capture(&file, &scenario, limits);
        let bytes = fs::read(file).expect("the capture");
        assert_eq!(packets_of(&bytes).len() as u64, frames);
        bytes
    };
    let all = take("all", CaptureLimits::default());
    assert_eq!(all, take("again", CaptureLimits::default()));
    let few = take("few", CaptureLimits { frames_max: 25, ..CaptureLimits::default() });
    assert_eq!(all[..few.len()], few);
    assert_eq!(packets_of(&few).len(), 25);
    let time = corridor_base::Time::from_millis;
    let window = CaptureLimits { from: time(500), until: time(600), ..CaptureLimits::default() };
    let inside = |packet: &&Recorded| (500_000_000..600_000_000).contains(&packet.at_ns);
    let every = packets_of(&all);
    let wanted: Vec<_> = every.iter().filter(inside).collect();
    assert!(!wanted.is_empty() && wanted.len() < every.len());
    assert_eq!(packets_of(&take("window", window)).iter().collect::<Vec<_>>(), wanted);
}

#[test]
fn colours_are_of_filters_that_wireshark_understands() {
    let rules = include_str!("../../../../../share/wireshark/corridor.colorfilters");
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("coded.pcapng");
    capture(&file, &scenario("coded+helper", CODINGS[0]), CaptureLimits::default());
    let rules: Vec<_> = rules.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rules.len(), 9);
    for rule in rules {
        let [_, _, filter, colours] = rule.split('@').collect::<Vec<_>>()[..] else {
            panic!("{rule}: expected @name@filter@[background][foreground]")
        };
        let numbers = colours.split(['[', ']', ',']).filter(|number| !number.is_empty());
        assert!(numbers.map(str::parse::<u16>).all(|number| number.is_ok()), "{rule}");
        let Some(found) = tshark(&file, &["-Y", filter]) else { return };
        assert_eq!(found.is_empty(), filter == "corridor.malformed", "{filter}");
    }
}

/// One frame of each kind and form, as the simulator sends them.
fn samples() -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a place");
    let mut samples: Vec<(Vec<Kind>, u8, Vec<u8>)> = Vec::new();
    let runs = [("coded+helper", CODINGS[1]), ("plain", CODINGS[0]), ("coded", WINDOW)];
    let runs = runs.map(|(path, coding)| scenario(path, coding));
    for scenario in runs.into_iter().chain([scenario_of_tcp()]) {
        let file = directory.path().join("sample");
        capture(&file, &scenario, CaptureLimits::default());
        for packet in packets_of(&fs::read(&file).expect("the capture")) {
            let wanted = expected(&packet.bytes, &mut Reader::default());
            let mut form = wanted.form.map_or(9, |form| form as u8);
            // A symbol with a difference is another kind.
            form += 16 * u8::from(wanted.has_difference());
            let is_known = samples.iter().any(|it| (&it.0, it.1) == (&wanted.kinds, form));
            if !is_known {
                samples.push((wanted.kinds, form, packet.bytes));
            }
        }
    }
    let of_window = |kind: &Kind| matches!(kind, Kind::Window | Kind::WindowAck);
    let window = samples.iter().filter(|(kinds, ..)| kinds.iter().any(of_window)).count();
    assert_eq!(window, 7, "source and coded, with feedback and without; differences; feedback");
    samples.into_iter().map(|(.., bytes)| bytes).collect()
}

/// Asserts that tshark reports no Lua error, whatever it is asked about a file.
fn assert_no_lua_error(path: &Path, packets: usize) {
    let Some(text) = tshark(path, &["-V"]) else { return };
    let fault = text.lines().find(|line| line.contains("Lua Error") || line.contains(".lua:"));
    assert_eq!(fault, None);
    assert_eq!(text.lines().filter(|line| line.starts_with("Frame ")).count(), packets);
}

#[test]
fn frames_cut_at_any_length_never_end_in_an_error_of_lua() {
    let mut packets = Vec::new();
    for sample in samples() {
        // Both frames cut by the capture, and frames that were too short when they were sent.
        for len in (14..sample.len().min(400)).chain([sample.len() - 17, sample.len() - 1]) {
            let bytes = sample[..len].to_vec();
            packets.push(Recorded { at_ns: 0, bytes: bytes.clone(), len_bytes: sample.len() });
            packets.push(Recorded { at_ns: 0, len_bytes: len, bytes });
        }
    }
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("cut.pcap");
    write_pcap(&file, LINKTYPE_ETHERNET, &packets);
    assert_no_lua_error(&file, packets.len());
}

#[test]
fn bent_frames_never_end_in_an_error_of_lua() {
    use corridor_base::StreamKey;
    use corridor_base::rand::Rng;
    let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "bent" };
    let mut stream = key.stream();
    let mut packets = Vec::new();
    for sample in samples() {
        for round in 0..200 {
            let mut bytes = sample.clone();
            bytes.truncate(200 + stream.next_u32() as usize % 1_400);
            // Alterations behind the magic number, first mostly in the headers, later everywhere.
            let reach = if round < 150 { bytes.len().min(120) } else { bytes.len() };
            for _ in 0..1 + stream.next_u32() % 8 {
                let at = 18 + stream.next_u32() as usize % (reach - 18);
                bytes[at] = stream.next_u32() as u8;
            }
            packets.push(Recorded { at_ns: 0, len_bytes: bytes.len(), bytes });
        }
    }
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("bent.pcap");
    write_pcap(&file, LINKTYPE_ETHERNET, &packets);
    assert_no_lua_error(&file, packets.len());
}

#[test]
fn of_living_stations_the_header_is_shown_and_the_rest_said_to_be_sealed() {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
    Header { is_hello: false, session_tag: 0xabcd, counter: 77 }.write(&mut frame);
    frame.extend_from_slice(&[0x55; 60]);
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("live.pcap");
    write_pcap(
        &file,
        LINKTYPE_ETHERNET,
        &[Recorded { at_ns: 0, len_bytes: frame.len(), bytes: frame }],
    );
    let shown = ["-T", "fields", "-e", "corridor.session", "-e", "corridor.counter", "-e"];
    let fields = [&shown[..], &["corridor.sealed", "-e", "corridor.block"]].concat();
    let Some(text) = tshark(&file, &fields) else { return };
    assert_eq!(text.replace(':', "").trim_end(), format!("0xabcd\t77\t{}", "55".repeat(44)));
}

#[test]
fn key_exchanges_are_shown_and_what_is_none_is_not() {
    let exchange = |step, len| {
        let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
        KeyExchange::write_head(StationId(60_009), step, [0xde, 0xad, 0xbe, 0xef], &mut bytes);
        bytes.resize(14 + len, 0x55);
        Recorded { at_ns: 0, len_bytes: bytes.len(), bytes }
    };
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("exchange.pcap");
    let packets = [
        exchange(Step::Initiation, INITIATION_LEN),
        exchange(Step::Response, RESPONSE_LEN),
        exchange(Step::Response, RESPONSE_LEN + 1),
        exchange(Step::Handout, HANDOUT_LEN),
    ];
    write_pcap(&file, LINKTYPE_ETHERNET, &packets);
    let names = ["hello.sender", "key_exchange.step", "key_exchange.exchange", "key_exchange.mac"];
    let names = names.map(|name| format!("corridor.{name}"));
    let mut fields = vec!["-T", "fields"];
    names.iter().for_each(|name| fields.extend(["-e", name]));
    let Some(text) = tshark(&file, &fields) else { return };
    let mac = "55".repeat(16);
    let shown = |step| format!("60009\t{step}\t0xdeadbeef\t{mac}");
    let lines: Vec<_> = text.lines().map(|line| line.replace(':', "")).collect();
    assert_eq!(lines, [shown(1), shown(2), "\t\t\t".to_owned(), shown(5)]);
    let info = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info"]).unwrap_or_default();
    assert!(info.contains("station 60009 key exchange, initiation"), "{info}");
    assert!(info.contains("station 60009 key exchange, handout"), "{info}");
}

#[test]
fn acknowledgements_show_what_was_given_up_and_what_was_decoded() {
    let blocks = vec![
        BlockAck { block: 65_534, given_up: true, rank: 2, known: 9, decoded: vec![3, 1] },
        BlockAck { block: 1, given_up: false, rank: 11, known: 11, decoded: vec![255, 7] },
    ];
    let (encoder_counter, helper_counter) = (77, u32::MAX);
    let flow = StationId(9);
    let ack = Ack { flow, base: 65_534, encoder_counter, helper_counter, e2: 0.0, e3: 1.0, blocks };
    let mut frame = tool::unsealed(Field::Gf256, 32);
    Header { is_hello: false, session_tag: 1, counter: 2 }.write(&mut frame);
    Kind::Ack.begin_last(&mut frame);
    ack.write(&mut frame);
    frame.extend_from_slice(&[0; TAG_LEN]);
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("ack.pcap");
    write_pcap(
        &file,
        LINKTYPE_ETHERNET,
        &[Recorded { at_ns: 0, len_bytes: frame.len(), bytes: frame }],
    );
    let names = ["block", "given_up", "rank", "known", "decoded", "bitmap"];
    let names = names.map(|name| format!("corridor.ack.{name}"));
    let mut fields = vec!["-T", "fields"];
    names.iter().for_each(|name| fields.extend(["-e", name]));
    let Some(text) = tshark(&file, &fields) else { return };
    let text = text.replace("True", "1").replace("False", "0");
    assert_eq!(text.trim_end(), "65534,1\t1,0\t2,11\t9,11\t3,11\t0301");
    let info = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info"]).unwrap_or_default();
    assert!(info.contains("block 65534 rank 2/9 given up, block 1 rank 11/11"), "{info}");
}

#[test]
fn a_source_symbol_shows_its_tag_from_end_to_end_and_its_packets() {
    let symbol = |len: usize| {
        let mut frame = tool::unsealed(Field::Gf256, 32);
        Header { is_hello: false, session_tag: 1, counter: 2 }.write(&mut frame);
        Kind::Enc.begin_last(&mut frame);
        Enc::write_head(StationId(9), 7, Form::Tagged { index: 31 }, &mut frame);
        let symbol = [&[0xab; END_TAG_LEN][..], &[0, 2, 0xbb, 0xcc, 0, 0]].concat();
        frame.extend_from_slice(&symbol[..len]);
        frame.extend_from_slice(&[0; TAG_LEN]);
        Recorded { at_ns: 0, len_bytes: frame.len(), bytes: frame }
    };
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("tagged.pcap");
    write_pcap(&file, LINKTYPE_ETHERNET, &[symbol(14), symbol(5)]);
    let fields = ["form", "index", "end_tag", "packet"].map(|name| format!("corridor.{name}"));
    let mut wanted = vec!["-T", "fields"];
    fields.iter().for_each(|name| wanted.extend(["-e", name]));
    let Some(text) = tshark(&file, &wanted) else { return };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines, ["3\t31\tabababababababab\tbbcc", "3\t31\t\t"]);
    let info = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info"]).unwrap_or_default();
    assert!(info.contains("seq 31 tagged"), "{info}");
    assert!(info.contains("malformed"), "{info}");
}

#[test]
fn symbols_of_a_window_and_feedback_are_told_in_the_info_column() {
    let of_link = LinkFeedback {
        path: PathId::default(),
        half_duplex: false,
        counter: 77,
        delay: core::time::Duration::from_nanos(3 * 16_384),
        received_at_us: u32::MAX,
        frames: 60,
        loss_ratio: 0.1,
        lateness: core::time::Duration::from_nanos(5 * 16_384),
        pair: None,
    };
    let ack = WindowFeedback {
        flow: FlowId(0),
        next: 1_234,
        lanes: Lanes::ONE,
        lane: 0,
        span: 12,
        deficit: 2,
        useless: 5,
        credit: None,
        // Nothing is reported beyond the span.
        needed: [0b0000_0101, 0xf0].into_iter().collect(),
    };
    let lanes = Lanes::ONE;
    let source = WindowForm::Source { id: 1_234, distance: 12, lanes };
    let count = 35.try_into().expect("some");
    let seed = CodedSeed::new(u64::MAX - 4, 7);
    let coded = WindowForm::Coded { seed, count, lanes };
    let four = Lanes::holding(4, 1);
    let of_lane = WindowFeedback { lanes: four, lane: 3, ..ack.clone() };
    let coded_of_lane = WindowForm::Coded { seed, count, lanes: four };
    let source_of_lane = WindowForm::Source { id: 1_234, distance: 12, lanes: four };
    let mut packets = Vec::new();
    let frames = [
        (None, Some(&ack)),
        (Some(source), Some(&ack)),
        (Some(coded), None),
        (Some(source_of_lane), Some(&of_lane)),
        (Some(coded_of_lane), None),
    ];
    for (form, ack) in frames {
        let mut bytes = tool::unsealed(Field::Gf256, 32);
        Header { is_hello: false, session_tag: 1, counter: 2 }.write(&mut bytes);
        if let Some(ack) = ack {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            of_link.write(&mut first);
            ack.write(&mut second);
            Kind::Link.write(&first, &mut bytes);
            if form.is_some() {
                Kind::WindowAck.write(&second, &mut bytes);
            } else {
                Kind::WindowAck.begin_last(&mut bytes);
                bytes.extend_from_slice(&second);
            }
        }
        if let Some(form) = form {
            Kind::Window.begin_last(&mut bytes);
            WindowSymbol::write_head(FlowId(0), form, &mut bytes);
            // A packet that may overtake others, and one that may not.
            bytes.extend_from_slice(&[0x80, 1, 0xaa, 0, 2, 0xbb, 0xcc]);
        }
        bytes.extend_from_slice(&[0; TAG_LEN]);
        packets.push(Recorded { at_ns: 0, len_bytes: bytes.len(), bytes });
    }
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("window.pcap");
    write_pcap(&file, LINKTYPE_ETHERNET, &packets);
    let Some(info) = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info"]) else { return };
    let wanted = [
        "WINACK next 1234 deficit 2, LINK counter 77 loss 10 %",
        "WIN source 1234 (+12), LINK counter 77 loss 10 %, WINACK next 1234 deficit 2",
        "WIN coded 1048571..29",
        "WIN source 1234 (+12 by 4), LINK counter 77 loss 10 %, WINACK next 1234 lane 3/4 deficit 2",
        "WIN coded 1048571..131 by 4",
    ];
    assert_eq!(info.lines().collect::<Vec<_>>(), wanted);
    let names = ["packet.no_order", "packet.length", "window.ack.needed", "link.delay"];
    let names = names.map(|name| format!("corridor.{name}"));
    let mut fields = vec!["-T", "fields"];
    names.iter().for_each(|name| fields.extend(["-e", name]));
    let text = tshark(&file, &fields).unwrap_or_default();
    let text = text.replace("True", "1").replace("False", "0");
    let rows: Vec<_> = text.lines().collect();
    let (source, coded) = ("1,0\t1,2\t2\t49152", "\t\t\t");
    assert_eq!(rows, ["\t\t2\t49152", source, coded, source, coded]);
}

#[test]
fn probes_of_the_paths_mtu_and_their_echoes_are_told_in_the_info_column() {
    let echoes = [Echo { round: 3, len: 1_452 }, Echo { round: 4, len: 528 }];
    let words = [Word::Probe { round: 3, before: 2 }, Word::Echoes(echoes.into_iter().collect())];
    let packets = words.map(|word| {
        let mut bytes = tool::unsealed(Field::Gf256, 32);
        Header { is_hello: false, session_tag: 1, counter: 2 }.write(&mut bytes);
        word.write_last(&mut bytes);
        bytes.extend_from_slice(&[0; 40 + TAG_LEN]);
        Recorded { at_ns: 0, len_bytes: bytes.len(), bytes }
    });
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("probes.pcap");
    write_pcap(&file, LINKTYPE_ETHERNET, &packets);
    let Some(info) = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info"]) else { return };
    let wanted =
        ["PROBE round 3 after 2", "ECHOES round 3 1452 bytes arrived, round 4 528 bytes arrived"];
    assert_eq!(info.lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn parts_of_a_chunk_are_told_in_the_info_column_and_lengths_that_lie_are_malformed() {
    let len = 150.try_into().expect("a length");
    let whole = Part { whole: 258, len, at: 3, bytes: b"parts" };
    let behind = Part { at: 150, ..whole };
    let packets = [whole, behind].map(|part| {
        let mut bytes = tool::unsealed(Field::Gf256, 32);
        Header { is_hello: false, session_tag: 1, counter: 2 }.write(&mut bytes);
        Kind::Part.begin_last(&mut bytes);
        part.write(&mut bytes);
        bytes.extend_from_slice(&[0; TAG_LEN]);
        Recorded { at_ns: 0, len_bytes: bytes.len(), bytes }
    });
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("parts.pcap");
    write_pcap(&file, LINKTYPE_ETHERNET, &packets);
    let Some(info) = tshark(&file, &["-T", "fields", "-e", "_ws.col.Info"]) else { return };
    let wanted =
        ["PART of 258: 3 to 8 of 150 bytes", "PART [malformed: a part at 150 of 150 bytes]"];
    assert_eq!(info.lines().collect::<Vec<_>>(), wanted);
}
