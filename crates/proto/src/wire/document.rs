//! Tests docs/wire.md against the code: each field of its tables against the bytes that are
//! written, and each of its numbers against the corresponding constant.
//!
//! A table is identified by the heading right above it. A layout's rows are the fields in order;
//! *at* and *bytes* are numbers unless they depend on the content of the frame.

use core::num::NonZeroU16;
use core::time::Duration;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use corridor_packet::PacketRef;
use corridor_relay::wire::{
    ENTRIES_MAX, Frame, Frames, NeighbourReport, Part, REPAIRED_BYTES_MAX, REPORTS_MAX,
    Report as Reception, SYMBOL_HEAD_BYTES, Symbol, with_reports,
};
use corridor_relay::{NodeId, PacketId};
use etherparse::{PacketBuilder, TcpOptionElement};

use super::intervals::{INTERVALS_LEN, Intervals};
use super::*;
use crate::bounds::{
    CHUNKS_MAX, FEEDBACK_INTERVAL_MAX, FRAME_LEN_MAX, HELLO_INTERVAL_TOLD_MAX,
    HELLO_INTERVAL_TOLD_MIN, MTU_ECHOES_MAX, PARTS_MAX, PARTS_WHOLES_MAX, SESSION_FRAMES_MAX,
    SYMBOL_SIZE_MIN,
};
use crate::flow::symbol::{Packet, append_packet};
use crate::flow::tcp_nc::RUNS_MAX;
use crate::host::compression::Contexts;

/// The tables of the page without their headers, and which of them were checked.
struct Document {
    text: String,
    tables: BTreeMap<String, Vec<Vec<String>>>,
    seen: RefCell<BTreeSet<String>>,
}

impl Document {
    fn read() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire.md");
        let text = std::fs::read_to_string(path).expect("docs/wire.md");
        let (mut title, mut tables) = (String::new(), BTreeMap::new());
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ").or(line.strip_prefix("### ")) {
                title = heading.to_owned();
            } else if let Some(row) = line.strip_prefix("| ") {
                let cells = row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned());
                let rows: &mut Vec<Vec<String>> = tables.entry(title.clone()).or_default();
                rows.push(cells.collect());
            }
        }
        // The first line is the header.
        tables.values_mut().for_each(|rows| drop(rows.remove(0)));
        Document { text, tables, seen: RefCell::default() }
    }

    fn table(&self, title: &str) -> &[Vec<String>] {
        self.seen.borrow_mut().insert(title.to_owned());
        self.tables.get(title).unwrap_or_else(|| panic!("docs/wire.md has no table {title:?}"))
    }

    /// The text of the table about a field's values.
    fn values(&self, title: &str, field: &str) -> &str {
        let rows = self.table(title).iter();
        let row = rows.rev().find(|row| row.contains(&field.to_owned()));
        let row = row.unwrap_or_else(|| panic!("{title}: no field {field:?}"));
        &row[row.len() - 2]
    }

    /// Checks that a layout consists of exactly these fields, with these bytes, in this order.
    fn layout(&self, title: &str, bytes: &[u8], fields: &[(&str, &[u8])]) {
        let rows = self.table(title);
        let names: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
        let expected: Vec<&str> = fields.iter().map(|&(name, _)| name).collect();
        assert_eq!(names, expected, "{title}");
        let mut at = rows[0][0].parse().expect("the first field has a place");
        let begins_at: usize = at;
        for (row, &(name, value)) in rows.iter().zip(fields) {
            let place = &bytes[at - begins_at..][..value.len()];
            assert_eq!(place, value, "{title}: {name} at {at}");
            assert!(says(&row[0], at), "{title}: {name} is at {at}, and the page says {}", row[0]);
            let len = value.len();
            assert!(says(&row[1], len), "{title}: {name} has {len} bytes, not {}", row[1]);
            at += len;
        }
        assert_eq!(at - begins_at, bytes.len(), "{title}: as many bytes");
    }

    /// Checks that a word consists of exactly these bit fields, from the table's first row on.
    fn bits(&self, title: &str, (word, width): (u16, u32), fields: &[(&str, u16)]) {
        let rows = self.table(title);
        let names: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
        let expected: Vec<&str> = fields.iter().map(|&(name, _)| name).collect();
        assert_eq!(names, expected, "{title}");
        let mut covered = 0_u32;
        for (row, &(name, value)) in rows.iter().zip(fields) {
            let (high, low) = row[0].split_once('-').unwrap_or((&row[0], &row[0]));
            let (high, low): (u32, u32) = (high.parse().unwrap(), low.parse().unwrap());
            let mask = (1 << (high + 1)) - (1 << low);
            assert_eq!((u32::from(word) & mask) >> low, u32::from(value), "{title}: {name}");
            assert_eq!(covered & mask, 0, "{title}: {name}");
            covered |= mask;
        }
        assert_eq!(covered, (1 << width) - 1, "{title}: all bits");
    }
}

/// Whether a cell contains this number, among others or alone, or no number at all.
fn says(cell: &str, number: usize) -> bool {
    let numbers: Vec<usize> = cell.split(" or ").filter_map(|word| word.parse().ok()).collect();
    numbers.is_empty() || numbers.contains(&number)
}

/// What a body's `write` appends.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes);
    bytes
}

const FLOW: StationId = StationId(0xbeef);

#[test]
fn every_table_of_the_page_says_what_the_code_writes() {
    let page = Document::read();
    header_and_chunks(&page);
    hello(&page);
    key_exchange(&page);
    cookies(&page);
    symbols_of_blocks(&page);
    parts(&page);
    feedback_about_blocks(&page);
    window(&page);
    of_link(&page);
    differences(&page);
    words(&page);
    relays(&page);
    tcp_nc(&page);
    sizes(&page);
    let all: BTreeSet<String> = page.tables.keys().cloned().collect();
    assert_eq!(*page.seen.borrow(), all, "a table that nothing holds");
}

fn header_and_chunks(page: &Document) {
    let write = |is_hello| {
        let header = Header { is_hello, session_tag: 0x0a0b, counter: 0x0c0d_0e0f };
        written(|out| header.write(out))
    };
    let bytes = write(false);
    let fields: [(&str, &[u8]); 3] = [
        ("version and form", &[0x90]),
        ("session tag", &[0x0a, 0x0b]),
        ("counter", &[0x0c, 0x0d, 0x0e, 0x0f]),
    ];
    page.layout("Header", &bytes, &fields);
    assert_eq!(bytes.len(), HEADER_LEN);
    let counters = format!("0 to {}", SESSION_FRAMES_MAX - 1);
    assert_eq!(page.values("Header", "counter"), counters);
    let bits = [("version", u16::from(VERSION)), ("form", 2)];
    page.bits("Bits of version and form", (u16::from(write(true)[0]), 8), &bits);
    assert_eq!(page.values("Bits of version and form", "version"), VERSION.to_string());
    let forms = format!("{CHUNKS}, {HELLO}, {KEY_EXCHANGE}");
    assert_eq!(page.values("Bits of version and form", "form"), forms);

    let mut followed = written(|out| Kind::Window.write(&[0x5a; 3], out));
    let fields: [(&str, &[u8]); 3] = [("kind", &[0x86]), ("length", &[3]), ("body", &[0x5a; 3])];
    page.layout("A chunk that another one follows", &followed, &fields);
    page.bits("Bits of kind", (followed[0].into(), 8), &[("followed", 1), ("code", 6)]);
    followed = written(|out| Kind::Window.write(&[0x5a; 0x0123], out));
    let fields: [(&str, &[u8]); 3] =
        [("kind", &[0x86]), ("length", &[0x81, 0x23]), ("body", &[0x5a; 0x0123])];
    page.layout("A chunk that another one follows", &followed, &fields);
    let mut last = written(|out| Kind::Window.begin_last(out));
    assert_eq!(last.len(), LAST_CHUNK_LEN);
    last.push(0x5a);
    page.layout("The last chunk", &last, &[("kind", &[6]), ("body", &[0x5a])]);
    assert!(page.text.contains(&format!("more than {CHUNKS_MAX} chunks")));

    let kinds = [
        (Kind::Enc, "ENC"),
        (Kind::Ack, "ACK"),
        (Kind::Report, "REPORT"),
        (Kind::Hello, "HELLO"),
        (Kind::Plain, "PLAIN"),
        (Kind::Window, "WIN"),
        (Kind::WindowAck, "WINACK"),
        (Kind::Link, "LINK"),
        (Kind::Probe, "PROBE"),
        (Kind::Echoes, "ECHOES"),
        (Kind::Challenge, "CHALLENGE"),
        (Kind::Answer, "ANSWER"),
        (Kind::Goodbye, "GOODBYE"),
        (Kind::GoodbyeHeard, "GOODBYE HEARD"),
        (Kind::Relayed, "RELAYED"),
        (Kind::Part, "PART"),
    ];
    let rows = page.table("Kinds");
    assert_eq!(rows.len(), kinds.len());
    for (row, (kind, name)) in rows.iter().zip(kinds) {
        assert_eq!((row[0].as_str(), row[1].as_str()), (&*kind.code().to_string(), name));
    }
}

fn hello(page: &Document) {
    let frame = [&[0; HEADER_LEN][..], &[0xbe, 0xef], &[7; 16]].concat();
    assert_eq!(hello_clear(&frame), Some((FLOW, [7; 16])));
    let clear: [(&str, &[u8]); 2] = [("sender", &[0xbe, 0xef]), ("session id", &[7; 16])];
    page.layout("HELLO, in clear", &frame[HEADER_LEN..], &clear);
    assert_eq!(frame.len() - HEADER_LEN, HELLO_CLEAR_LEN);
    let to = HelloTo {
        station: FLOW,
        session: [1; 16],
        challenge: [2; 16],
        answer: [3; 16],
        accepted: true,
        asks: false,
        instead: Some(Instead::Plain),
        lanes: Lanes::MOST,
        lane_size: 0x0304,
    };
    let hello = Hello {
        instance: 0x0102_0304_0506_0708,
        field: Field::Gf16,
        block_size: 0x0111,
        symbol_size: 0x0522,
        mode: Mode::Window,
        base: 0x3132_3334,
        to: vec![to],
        intervals: Intervals {
            feedback: Some(Duration::from_millis(0x4142)),
            hello: Some(Duration::from_millis(0x5152)),
        },
    };
    let bytes = written(|out| hello.write(out));
    let (sealed, behind) = bytes.split_at(19);
    let (station, intervals) = behind.split_at(behind.len() - INTERVALS_LEN);
    let fields: [(&str, &[u8]); 2] = [("feedback", &[0x41, 0x42]), ("HELLO", &[0x51, 0x52])];
    page.layout("HELLO, intervals", intervals, &fields);
    let most =
        |least: Duration, most: Duration| format!("{} to {}", least.as_millis(), most.as_millis());
    let feedback = most(Duration::from_millis(1), FEEDBACK_INTERVAL_MAX);
    assert_eq!(page.values("HELLO, intervals", "feedback"), feedback);
    let between = most(HELLO_INTERVAL_TOLD_MIN, HELLO_INTERVAL_TOLD_MAX);
    assert_eq!(page.values("HELLO, intervals", "HELLO"), between);
    let fields: [(&str, &[u8]); 7] = [
        ("instance", &[1, 2, 3, 4, 5, 6, 7, 8]),
        ("field", &[4]),
        ("block size", &[1, 0x11]),
        ("symbol size", &[5, 0x22]),
        ("mode", &[1]),
        ("base", &[0x31, 0x32, 0x33, 0x34]),
        ("stations", &[1]),
    ];
    page.layout("HELLO, sealed", sealed, &fields);
    let blocks = format!("1 to {}", corridor_codec::MAX_BLOCK_SIZE);
    assert_eq!(page.values("HELLO, sealed", "block size"), blocks);
    let symbols = format!("{SYMBOL_SIZE_MIN} to {FRAME_LEN_MAX}");
    assert_eq!(page.values("HELLO, sealed", "symbol size"), symbols);
    assert_eq!(page.values("HELLO, sealed", "stations"), format!("0 to {PEERS_MAX}"));
    let fields: [(&str, &[u8]); 6] = [
        ("station", &[0xbe, 0xef]),
        ("session", &[1; 16]),
        ("challenge", &[2; 16]),
        ("answer", &[3; 16]),
        ("flags", &[0x49]),
        ("lane size", &[3, 4]),
    ];
    page.layout("HELLO, to a station", station, &fields);
    let sizes = format!("1 to {}", corridor_codec::MAX_WINDOW_SIZE);
    assert_eq!(page.values("HELLO, to a station", "lane size"), sizes);
    let bits = [("accepted", 1), ("asks", 0), ("instead", 2), ("lanes", 4), ("reserved", 0)];
    page.bits("Bits of flags", (0x49, 8), &bits);
}

fn key_exchange(page: &Document) {
    let steps = [
        (Step::Initiation, 1, INITIATION_NOISE_LEN),
        (Step::Response, 2, RESPONSE_NOISE_LEN),
        (Step::Handout, 5, HANDOUT_NOISE_LEN),
    ];
    for (step, code, len) in steps {
        let mut bytes = written(|out| KeyExchange::write_head(FLOW, step, [1, 2, 3, 4], out));
        bytes.resize(bytes.len() + len, 0x55);
        bytes.resize(bytes.len() + KEY_EXCHANGE_MAC_LEN, 0x66);
        let read = KeyExchange::parse(&bytes).expect("a message");
        assert_eq!((read.sender, read.noise.len(), read.mac), (FLOW, len, [0x66; 16]));
        let noise = vec![0x55; len];
        let fields: [(&str, &[u8]); 6] = [
            ("version and form", &[0x93]),
            ("sender", &[0xbe, 0xef]),
            ("step", &[code]),
            ("exchange", &[1, 2, 3, 4]),
            ("noise", &noise),
            ("mac", &[0x66; 16]),
        ];
        page.layout("Key exchange", &bytes, &fields);
    }
}

fn cookies(page: &Document) {
    let reply = cookie::CookieReply { sender: FLOW, answers: [0x55; 16], cookie: [0x66; 16] };
    let mut fields: Vec<(&str, &[u8])> = vec![
        ("version and form", &[0x93]),
        ("sender", &[0xbe, 0xef]),
        ("step", &[3]),
        ("answers", &[0x55; 16]),
        ("cookie", &[0x66; 16]),
    ];
    page.layout("Cookie", &reply.frame(), &fields);
    let mut message = b"message".to_vec();
    cookie::wrap(FLOW, &[0x66; 16], &mut message);
    fields.truncate(2);
    fields.extend::<[(&str, &[u8]); 3]>([
        ("step", &[4]),
        ("mac", &[0x66; 16]),
        ("message", b"message"),
    ]);
    page.layout("Message with a cookie", &message, &fields);
}

fn symbols_of_blocks(page: &Document) {
    let count = NonZeroU16::new(0x0123).expect("a count");
    let head = |form| written(|out| Enc::write_head(FLOW, 0x0708, form, out));
    let source = head(Form::Source { index: 0x0123 });
    let fields: [(&str, &[u8]); 3] =
        [("flow", &[0xbe, 0xef]), ("block", &[7, 8]), ("form and index", &[0x01, 0x23])];
    page.layout("ENC", &source, &fields);
    assert_eq!(source.len(), ENC_LEN);
    let mut seeded = head(Form::Seeded { count, seed: 0x0908_0706 });
    seeded.push(0x5a);
    let fields: [(&str, &[u8]); 2] = [("seed", &[9, 8, 7, 6]), ("symbol", &[0x5a])];
    page.layout("ENC, form 1", &seeded[ENC_LEN..], &fields);
    assert_eq!(seeded.len() - 1, ENC_LEN + SEED_LEN);
    let vector = vec![0x77; 0x0123];
    let mut explicit = head(Form::Explicit { run: 0x050c, count, vector: &vector });
    explicit.push(0x5a);
    let fields: [(&str, &[u8]); 3] = [("run", &[0x0c]), ("vector", &vector), ("symbol", &[0x5a])];
    page.layout("ENC, form 2", &explicit[ENC_LEN..], &fields);
    let word = u16::from_be_bytes([explicit[4], explicit[5]]);
    let bits = [("form", 2), ("run", 5), ("count", 0x0123)];
    page.bits("Bits of form and index, form 2", (word, 16), &bits);
    let tagged = head(Form::Tagged { index: 0x0123 });
    let symbol = [&[0x0a; END_TAG_LEN][..], b"packets"].concat();
    let fields: [(&str, &[u8]); 2] = [("tag", &[0x0a; END_TAG_LEN]), ("packets", b"packets")];
    page.layout("Tags from end to end", &symbol, &fields);
    for (bytes, form) in [(source, 0), (seeded, 1), (tagged, 3)] {
        let word = u16::from_be_bytes([bytes[4], bytes[5]]);
        page.bits("Bits of form and index", (word, 16), &[("form", form), ("index", 0x0123)]);
    }
    let packet = [9; 0x0105];
    let packet = Packet { bytes: &packet, in_order: false, is_difference: false };
    let bytes = written(|out| append_packet(packet, out));
    let fields: [(&str, &[u8]); 2] =
        [("length and flags", &[0x81, 0x05]), ("packet", packet.bytes)];
    page.layout("Packet in a symbol", &bytes, &fields);
    assert_eq!(bytes.len() - packet.bytes.len(), PACKET_PREFIX_LEN);
    let both = Packet { is_difference: true, in_order: true, ..packet };
    let difference = written(|out| append_packet(both, out));
    for (bytes, no_order, difference) in [(bytes, 1, 0), (difference, 0, 1)] {
        let word = u16::from_be_bytes([bytes[0], bytes[1]]);
        let bits = [("no order", no_order), ("difference", difference), ("length", 0x0105)];
        page.bits("Bits of length and flags", (word, 16), &bits);
    }
}

fn feedback_about_blocks(page: &Document) {
    let block =
        BlockAck { block: 0x0102, given_up: true, rank: 9, known: 12, decoded: vec![0xab, 0x0c] };
    let ack = Ack {
        flow: FLOW,
        base: 0x0304,
        encoder_counter: 0x0506_0708,
        helper_counter: u32::MAX,
        e2: 1.0,
        e3: 0.0,
        blocks: vec![block],
    };
    let bytes = written(|out| ack.write(out));
    let (head, block) = bytes.split_at(17);
    let fields: [(&str, &[u8]); 7] = [
        ("flow", &[0xbe, 0xef]),
        ("base", &[3, 4]),
        ("encoder counter", &[5, 6, 7, 8]),
        ("helper counter", &[0xff; 4]),
        ("e2", &[0xff; 2]),
        ("e3", &[0; 2]),
        ("blocks", &[1]),
    ];
    page.layout("ACK", head, &fields);
    assert_eq!(page.values("ACK", "blocks"), format!("0 to {ACK_BLOCKS_MAX}"));
    let fields: [(&str, &[u8]); 4] = [
        ("block", &[1, 2]),
        ("rank and given up", &[0x80, 9]),
        ("known", &[0, 12]),
        ("decoded", &[0xab, 0x0c]),
    ];
    page.layout("ACK, a block", block, &fields);
    let known = format!("0 to {}", corridor_codec::MAX_BLOCK_SIZE);
    assert_eq!(page.values("ACK, a block", "known"), known);
    page.bits("Bits of rank and given up", (0x8009, 16), &[("given up", 1), ("rank", 9)]);
    let encoder = EncoderReport { flow: FLOW, e1: 1.0, frames: 0x0102_0304 };
    let report = Report { encoders: vec![encoder] };
    let bytes = written(|out| report.write(out));
    page.layout("REPORT", &bytes[..1], &[("encoders", &[1])]);
    assert_eq!(page.values("REPORT", "encoders"), format!("0 to {PEERS_MAX}"));
    let fields: [(&str, &[u8]); 3] =
        [("flow", &[0xbe, 0xef]), ("e1", &[0xff; 2]), ("frames", &[1, 2, 3, 4])];
    page.layout("REPORT, an encoder", &bytes[1..], &fields);
}

fn window(page: &Document) {
    let (id, number) = (0x0102_0304, 0x0122);
    let count = NonZeroU16::new(number).expect("a count");
    let seed = CodedSeed::new(id.into(), 0x1876);
    let head = |form| written(|out| WindowSymbol::write_head(FlowId(0x0f), form, out));
    let cases = [
        (0, WindowForm::Source { id, distance: number, lanes: Lanes::ONE }),
        (1, WindowForm::Coded { seed, count, lanes: Lanes::ONE }),
        (2, WindowForm::Source { id, distance: number, lanes: Lanes::MOST }),
        (3, WindowForm::Coded { seed, count, lanes: Lanes::MOST }),
    ];
    for (form, symbol) in cases {
        let mut bytes = head(symbol);
        assert_eq!(bytes.len(), WINDOW_SYMBOL_LEN);
        WindowSymbol::pair(&mut bytes);
        bytes.push(0x5a);
        let place: &[u8] = if form % 2 == 1 { &[0x20, 0x30, 0x48, 0x76] } else { &[1, 2, 3, 4] };
        let fields: [(&str, &[u8]); 4] = [
            ("flow and pairing", &[0x8f]),
            ("form and number", &bytes[1..3]),
            ("id or seed", place),
            ("symbol", &[0x5a]),
        ];
        page.layout("WIN", &bytes, &fields);
        page.bits("Bits of flow and pairing", (0x8f, 8), &[("paired", 1), ("flow", 0x0f)]);
        let word = (u16::from_be_bytes([bytes[1], bytes[2]]), 16);
        let one = [("form", form), ("number", number)];
        let several = [("form", form), ("lanes", 4), ("number", number)];
        if form < 2 {
            page.bits("Bits of form and number, one lane", word, &one);
        } else {
            page.bits("Bits of form and number, several lanes", word, &several);
        }
    }
    let bits = [("first", 0x0002_0304_u32), ("serial", 0x876)];
    let rows = page.table("Seed of a coded symbol");
    for (row, (name, value)) in rows.iter().zip(bits) {
        let (high, low) = row[0].split_once('-').expect("two bits");
        let (high, low): (u32, u32) = (high.parse().unwrap(), low.parse().unwrap());
        let said = seed.value() << (31 - high) >> (31 - high + low);
        assert_eq!((row[1].as_str(), said), (name, value));
    }
    assert_eq!(rows.len(), 2);
    let feedback = WindowFeedback {
        flow: FlowId(0x0f),
        next: 0x0102_0304,
        lanes: Lanes::MOST,
        lane: 9,
        span: 0x0123,
        deficit: 0x0045,
        useless: 0x3132,
        needed: [0xaa; 3].into_iter().collect(),
        credit: Some(0x5152),
    };
    let bytes = written(|out| feedback.write(out));
    let fields: [(&str, &[u8]); 8] = [
        ("flow", &[0x0f]),
        ("next", &[1, 2, 3, 4]),
        ("span and lanes", &[0x81, 0x23]),
        ("deficit and lane", &[0x90, 0x45]),
        ("useless", &[0x31, 0x32]),
        ("bitmap length", &[0x83]),
        ("needed", &[0xaa; 3]),
        ("credit", &[0x51, 0x52]),
    ];
    page.layout("WINACK", &bytes, &fields);
    assert_eq!(bytes.len() - 3 - WINDOW_CREDIT_LEN, WINDOW_FEEDBACK_LEN);
    page.bits("Bits of span and lanes", (0x8123, 16), &[("lanes", 4), ("span", 0x0123)]);
    page.bits("Bits of deficit and lane", (0x9045, 16), &[("lane", 9), ("deficit", 0x45)]);
    page.bits("Bits of bitmap length", (0x83, 8), &[("credit", 1), ("bytes", 3)]);
    let most = format!("0 to {WINDOW_BITMAP_LEN_MAX}");
    assert_eq!(page.values("Bits of bitmap length", "bytes"), most);
}

fn of_link(page: &Document) {
    let feedback = LinkFeedback {
        path: PathId::new(0x0a).expect("few"),
        half_duplex: true,
        counter: 0x0506_0708,
        delay: Duration::from_nanos(0x0a0b * 16_384),
        received_at_us: 0x1112_1314,
        frames: 0x2122_2324,
        loss_ratio: 1.0,
        lateness: Duration::from_nanos(0x3132 * 16_384),
        pair: Some(PairGap { gap_ns: 0x4142_4344, number: 0x45 }),
    };
    let bytes = written(|out| feedback.write(out));
    let fields: [(&str, &[u8]); 9] = [
        ("path", &[0xea]),
        ("counter", &[5, 6, 7, 8]),
        ("delay", &[0x0a, 0x0b]),
        ("received at", &[0x11, 0x12, 0x13, 0x14]),
        ("frames", &[0x21, 0x22, 0x23, 0x24]),
        ("loss", &[0xff; 2]),
        ("lateness", &[0x31, 0x32]),
        ("gap", &[0x41, 0x42, 0x43, 0x44]),
        ("gap number", &[0x45]),
    ];
    page.layout("LINK", &bytes, &fields);
    assert_eq!(bytes.len(), LINK_FEEDBACK_LEN + LATENESS_LEN + PAIR_GAP_LEN);
    let bits = [("half duplex", 1), ("overtakes", 1), ("pair", 1), ("path", 0x0a)];
    page.bits("Bits of path", (0xea, 8), &bits);
}

/// The fields of a segment that its difference can express, in the order of the mask's bits.
const SAID: [u32; 8] = [100, 7, 500, 0, 1, 1_000, 2_000, 2];

fn segment([sequence, ack, window, push, ident, stamp, echo, class]: [u32; 8]) -> Vec<u8> {
    let no_operation = TcpOptionElement::Noop;
    let options = [no_operation.clone(), no_operation, TcpOptionElement::Timestamp(stamp, echo)];
    let tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(40_000, 80, sequence, window as u16)
        .ack(ack);
    let tcp = if push == 1 { tcp.psh() } else { tcp };
    let mut packet = Vec::new();
    tcp.options(&options).expect("they fit").write(&mut packet, &[0xda; 10]).expect("a vector");
    packet[1] = class as u8;
    packet[4..6].copy_from_slice(&(ident as u16).to_be_bytes());
    let header = etherparse::Ipv4HeaderSlice::from_slice(&packet).expect("IPv4").to_header();
    packet[10..12].copy_from_slice(&header.calc_header_checksum().to_be_bytes());
    packet
}

fn differences(page: &Document) {
    let rows = page.table("Bits of mask");
    // The prediction: the sequence number advances, and IPv4's identification with it.
    let on = [110, 7, 500, 0, 2, 1_000, 2_000, 2];
    let difference_of = |said| {
        let mut contexts = Contexts::new();
        contexts.note_verbatim(PacketRef::read(&segment(SAID)));
        let (packet, mut difference) = (segment(said), Vec::new());
        assert!(contexts.compress(PacketRef::read(&packet), &mut difference), "{said:?}");
        difference
    };
    let nothing = difference_of(on);
    let checksum = &segment(on)[36..38];
    let fields: [(&str, &[u8]); 3] =
        [("place", &nothing[..1]), ("mask", &[0]), ("checksum", checksum)];
    page.layout("Difference", &nothing[..4], &fields);
    assert_eq!(nothing[4..], [0xda; 10], "then the data");
    assert_eq!(rows.len(), 8);
    for (bit, row) in rows.iter().enumerate() {
        let mut said = on;
        said[bit] += 1;
        let difference = difference_of(said);
        assert_eq!((row[0].as_str(), difference[1]), (&*bit.to_string(), 1 << bit), "{row:?}");
        let len = difference.len() - nothing.len();
        let least = row[2].split(" to ").next().expect("a number");
        assert_eq!(least, len.to_string(), "{row:?}");
    }
    let mut ahead = on;
    (ahead[5], ahead[6]) = (999, 1_999);
    assert_eq!(difference_of(ahead).len(), nothing.len() + 10, "five bytes each at most");
}

fn words(page: &Document) {
    // Without the byte for the kind of chunk.
    let body = |word: Word| written(|out| word.write_last(out)).split_off(LAST_CHUNK_LEN);
    let probe = body(Word::Probe { round: 0x0102, before: 3 });
    let fields: [(&str, &[u8]); 2] = [("round", &[1, 2]), ("before", &[3])];
    page.layout("PROBE", &probe, &fields);
    let echoes = [Echo { round: 0x0102, len: 0x0304 }].into_iter().collect();
    let echoes = body(Word::Echoes(echoes));
    page.layout("ECHOES", &echoes[..1], &[("echoes", &[1])]);
    assert_eq!(page.values("ECHOES", "echoes"), format!("0 to {MTU_ECHOES_MAX}"));
    let fields: [(&str, &[u8]); 2] = [("round", &[1, 2]), ("length", &[3, 4])];
    page.layout("ECHOES, an echo", &echoes[1..], &fields);
    let token = [1, 2, 3, 4, 5, 6, 7, 8];
    let asked = body(Word::Challenge { to: FLOW, token });
    let fields: [(&str, &[u8]); 2] = [("to", &[0xbe, 0xef]), ("token", &token)];
    page.layout("CHALLENGE, ANSWER", &asked, &fields);
    assert_eq!(OVERHEAD_LEN + asked.len(), PATH_CHALLENGE_LEN);
    page.layout("CHALLENGE, ANSWER", &body(Word::Answer { to: FLOW, token }), &fields);
    assert!(body(Word::Goodbye).is_empty());
    let heard = body(Word::GoodbyeHeard { to: FLOW });
    page.layout("GOODBYE HEARD", &heard, &[("to", &[0xbe, 0xef])]);
}

fn parts(page: &Document) {
    let len = NonZeroU16::new(0x0506).expect("a length");
    let part = part::Part { whole: 0x0102, len, at: 0x0304, bytes: b"bytes" };
    let bytes = written(|out| part.write(out));
    let fields: [(&str, &[u8]); 4] =
        [("whole", &[1, 2]), ("length", &[5, 6]), ("at", &[3, 4]), ("part", b"bytes")];
    page.layout("PART", &bytes, &fields);
    assert_eq!(bytes.len() - 5, PART_LEN);
    assert_eq!(page.values("PART", "length"), format!("2 to {FRAME_LEN_MAX}"));
    assert!(page.text.contains(&format!("parts of {PARTS_WHOLES_MAX} wholes of each peer")));
    assert!(page.text.contains(&format!("of each up to {PARTS_MAX} parts")));
}

fn relays(page: &Document) {
    let plain = |asks| Frame::Plain { counter: 0x0102_0304, ttl: 0x0506, asks, packet: b"packet" };
    let packet = plain(false).to_bytes();
    let relayed = written(|out| Relayed { to: Some(FLOW), frame: &packet }.write(out));
    let fields: [(&str, &[u8]); 3] =
        [("to", &[0xbe, 0xef]), ("length", &[0, 13]), ("frame", &packet)];
    page.layout("Relayed", &relayed, &fields);
    assert_eq!(relayed.len() - packet.len(), RELAYED_LEN);
    let counter: &[u8] = &[1, 2, 3, 4];
    let fields: [(&str, &[u8]); 4] =
        [("kind", &[1]), ("counter", counter), ("hops", &[5, 6]), ("packet", b"packet")];
    page.layout("Relay's packet", &packet, &fields);
    let fields: [(&str, &[u8]); 4] =
        [("kind", &[5]), ("counter", counter), ("hops", &[5, 6]), ("packet", b"packet")];
    page.layout("Relay's packet that is to be reported", &plain(true).to_bytes(), &fields);
    let part = |to, ttl, len_bytes, id| Part { to: NodeId(to), ttl, len_bytes, id: PacketId(id) };
    let mut between_ends = b"packet".to_vec();
    Trailer { number: 0x01_0203_0405_0607, tag: [8; END_TAG_LEN] }.write(&mut between_ends);
    let fields: [(&str, &[u8]); 3] =
        [("packet", b"packet"), ("number", &[1, 2, 3, 4, 5, 6, 7]), ("tag", &[8; END_TAG_LEN])];
    page.layout("Packet between ends", &between_ends, &fields);
    let parts = [part(0x0a0b, 0x0c0d, 4, 0x0101_0101_0101_0101), part(2, 3, 1, 4)];
    let coded =
        |asks| Frame::Coded { counter: 0x0102_0304, parts, asks, xored: b"xxxx" }.to_bytes();
    let fields: [(&str, &[u8]); 11] = [
        ("kind", &[2]),
        ("counter", counter),
        ("first to", &[0x0a, 0x0b]),
        ("first hops", &[0x0c, 0x0d]),
        ("first length", &[0, 4]),
        ("first id", &[1; 8]),
        ("second to", &[0, 2]),
        ("second hops", &[0, 3]),
        ("second length", &[0, 1]),
        ("second id", &[0, 0, 0, 0, 0, 0, 0, 4]),
        ("xored", b"xxxx"),
    ];
    page.layout("Relay's two packets", &coded(false), &fields);
    assert_eq!(page.values("Relay's two packets", "kind"), "2, 7");
    assert_eq!((coded(true)[0], &coded(true)[1..]), (7, &coded(false)[1..]));
    let entries = vec![NeighbourReport { node: NodeId(0x0a0b), heard: 7, coded: 9, failed: 8 }];
    let announcement = Frame::Announcement { counter: 0x0102_0304, entries }.to_bytes();
    let (head, entry) = announcement.split_at(6);
    let fields: [(&str, &[u8]); 3] = [("kind", &[3]), ("counter", counter), ("neighbours", &[1])];
    page.layout("Relay's announcement", head, &fields);
    assert_eq!(page.values("Relay's announcement", "neighbours"), format!("0 to {ENTRIES_MAX}"));
    let fields: [(&str, &[u8]); 4] =
        [("node", &[0x0a, 0x0b]), ("heard", &[7]), ("coded", &[0, 9]), ("failed", &[0, 8])];
    page.layout("Relay's announcement, a neighbour", entry, &fields);
    let report = Reception { node: NodeId(0x0a0b), newest: 0x0c0d, came: 0x0102_0304 };
    let reported = with_reports(&[report], b"frame");
    let (head, rest) = reported.split_at(2);
    let (report, frame) = rest.split_at(8);
    let fields: [(&str, &[u8]); 2] = [("kind", &[4]), ("reports", &[1])];
    page.layout("Reports before a relay's frame", head, &fields);
    let range = page.values("Reports before a relay's frame", "reports");
    assert_eq!(range, format!("1 to {REPORTS_MAX}"));
    let fields: [(&str, &[u8]); 3] =
        [("node", &[0x0a, 0x0b]), ("newest", &[0x0c, 0x0d]), ("came", counter)];
    page.layout("Reports before a relay's frame, a report", report, &fields);
    assert_eq!(frame, b"frame");
    let covered = Frames { newest: 0x0a0b, bits: 0x0506_0709 };
    let combined = [7; SYMBOL_HEAD_BYTES + 1];
    let repair = Frame::Repair { counter: 0x0102_0304, covered, combined: &combined }.to_bytes();
    let fields: [(&str, &[u8]); 5] = [
        ("kind", &[6]),
        ("counter", counter),
        ("newest", &[0x0a, 0x0b]),
        ("covered", &[5, 6, 7, 9]),
        ("combined", &combined),
    ];
    page.layout("Relay's repair", &repair, &fields);
    let symbol = Symbol { ttl: 0x0506, id: PacketId(4), packet: b"packet" }.to_bytes();
    let fields: [(&str, &[u8]); 4] = [
        ("hops", &[5, 6]),
        ("length", &[0, 6]),
        ("id", &[0, 0, 0, 0, 0, 0, 0, 4]),
        ("packet", b"packet"),
    ];
    page.layout("Relay's repair, what is combined", &symbol, &fields);
    let range = page.values("Relay's repair, what is combined", "packet");
    assert_eq!(range, format!("1 to {REPAIRED_BYTES_MAX} bytes"));
}

fn tcp_nc(page: &Document) {
    use crate::flow::tcp_nc::wire::{FEEDBACK_LEN, Feedback, HEAD_LEN, Header, RUN_LEN};
    let coded = [
        &[0xc1, 1, 2, 3][..],
        &[4; 4],
        &[5; 4],
        &[6; 4],
        &[7; 4],
        // The run, and the payload.
        &[9, 0x01, 0x02],
        b"payload",
    ];
    let coded = coded.concat();
    let (header, payload) = Header::read(&coded).expect("a coded packet");
    assert_eq!((header.stream, header.first, header.serial), (0x0203, 0x0404_0404, 0x0505_0505));
    assert_eq!(
        (header.sequence, header.stamp, payload),
        (0x0606_0606, 0x0707_0707, &b"payload"[..])
    );
    assert_eq!((header.runs()[0].segments, header.runs()[0].len), (9, 0x0102));
    let fields: [(&str, &[u8]); 7] = [
        ("kind", &[0xc1]),
        ("runs", &[1]),
        ("stream", &[2, 3]),
        ("first", &[4; 4]),
        ("serial", &[5; 4]),
        ("sequence", &[6; 4]),
        ("stamp", &[7; 4]),
    ];
    page.layout("Coded packet of TCP/NC", &coded[..HEAD_LEN], &fields);
    assert_eq!(page.values("Coded packet of TCP/NC", "runs"), format!("1 to {RUNS_MAX}"));
    let fields: [(&str, &[u8]); 2] = [("segments", &[9]), ("length", &[1, 2])];
    page.layout("Coded packet of TCP/NC, a run", &coded[HEAD_LEN..][..RUN_LEN], &fields);
    let feedback =
        Feedback { stream: 0x0102, seen_beyond: 3, serial: 0x0405_0607, received: 0x0809_0a0b };
    let bytes = feedback.to_bytes();
    let fields: [(&str, &[u8]); 5] = [
        ("kind", &[0xf1]),
        ("seen beyond", &[3]),
        ("stream", &[1, 2]),
        ("serial", &[4, 5, 6, 7]),
        ("received", &[8, 9, 10, 11]),
    ];
    page.layout("Feedback of TCP/NC", &bytes, &fields);
    assert_eq!(bytes.len(), FEEDBACK_LEN);
}

fn sizes(page: &Document) {
    let beyond_symbol = OVERHEAD_LEN + PACKET_PREFIX_LEN;
    let expected = [
        ("header", HEADER_LEN),
        ("AEAD tag", TAG_LEN),
        ("last chunk before its body", LAST_CHUNK_LEN),
        ("ENC before vector or symbol", ENC_LEN),
        ("tag from end to end", END_TAG_LEN),
        ("number and tag behind a packet between ends", END_TRAILER_LEN),
        ("WIN before the symbol", WINDOW_SYMBOL_LEN),
        ("LINK", LINK_FEEDBACK_LEN),
        ("PART before the bytes of the whole", PART_LEN),
        ("WINACK before the bitmap", WINDOW_FEEDBACK_LEN),
        ("HELLO in clear", HELLO_CLEAR_LEN),
        ("relayed, before the relay's frame", RELAYED_LEN),
        ("initiation", INITIATION_LEN),
        ("response", RESPONSE_LEN),
        ("handout", HANDOUT_LEN),
        ("longest frame", FRAME_LEN_MAX),
        (
            "full-size packet in a source symbol of blocks, all beyond Ethernet",
            beyond_symbol + ENC_LEN,
        ),
        (
            "full-size packet in a source symbol of a window, all beyond Ethernet",
            beyond_symbol + WINDOW_SYMBOL_LEN,
        ),
    ];
    let expected: Vec<_> =
        expected.iter().map(|(of, len)| vec![of.to_string(), len.to_string()]).collect();
    assert_eq!(page.table("Sizes"), expected);
}
