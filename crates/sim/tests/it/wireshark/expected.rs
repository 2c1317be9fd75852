//! The expected fields of a captured frame, according to the protocol's own parser.

use std::collections::BTreeMap;
use std::time::Duration;

use corridor_proto::wire::*;
use corridor_proto::{Field, Mode};
use corridor_torture::HeaderTwin;

/// The fields to compare, as Wireshark names them.
pub const FIELDS: [&str; 105] = [
    "corridor.air.unsealed",
    "corridor.air.to_all",
    "corridor.air.from",
    "corridor.air.to",
    "corridor.air.retransmissions",
    "corridor.air.field",
    "corridor.air.block_size",
    "corridor.air.airtime",
    "corridor.air.reach",
    "corridor.air.hearer.station",
    "corridor.air.hearer.fate",
    "corridor.air.hearer.rank",
    "corridor.version",
    "corridor.frame_form",
    "corridor.type",
    "corridor.chunk.length",
    "corridor.session",
    "corridor.counter",
    "corridor.tag",
    "corridor.padding",
    "corridor.flow",
    "corridor.block",
    "corridor.form",
    "corridor.index",
    "corridor.count",
    "corridor.seed",
    "corridor.run",
    "corridor.coefficients",
    "corridor.symbol",
    "corridor.end_tag",
    "corridor.packet",
    "corridor.packet.no_order",
    "corridor.packet.difference",
    "corridor.packet.whole",
    "corridor.difference.place",
    "corridor.difference.mask",
    "corridor.difference.checksum",
    "corridor.difference.sequence",
    "corridor.difference.ack",
    "corridor.difference.window",
    "corridor.difference.flags",
    "corridor.difference.ident",
    "corridor.difference.stamp",
    "corridor.difference.echo",
    "corridor.difference.class",
    "corridor.difference.payload",
    "corridor.window.paired",
    "corridor.window.flow",
    "corridor.window.form",
    "corridor.window.distance",
    "corridor.window.count",
    "corridor.window.id",
    "corridor.window.first",
    "corridor.window.last",
    "corridor.window.serial",
    "corridor.window.lanes_log",
    "corridor.link.half_duplex",
    "corridor.link.counter",
    "corridor.link.delay",
    "corridor.link.received_at",
    "corridor.link.frames",
    "corridor.link.loss",
    "corridor.link.lateness",
    "corridor.link.gap",
    "corridor.link.gap_number",
    "corridor.window.ack.flow",
    "corridor.window.ack.next",
    "corridor.window.ack.lanes_log",
    "corridor.window.ack.lane",
    "corridor.window.ack.span",
    "corridor.window.ack.deficit",
    "corridor.window.ack.useless",
    "corridor.window.ack.bitmap",
    "corridor.window.ack.needed",
    "corridor.ack.flow",
    "corridor.ack.base",
    "corridor.ack.encoder_counter",
    "corridor.ack.helper_counter",
    "corridor.ack.e2",
    "corridor.ack.e3",
    "corridor.ack.block",
    "corridor.ack.given_up",
    "corridor.ack.rank",
    "corridor.ack.known",
    "corridor.ack.decoded",
    "corridor.report.flow",
    "corridor.report.e1",
    "corridor.report.frames",
    "corridor.hello.sender",
    "corridor.hello.session",
    "corridor.hello.instance",
    "corridor.hello.field",
    "corridor.hello.block_size",
    "corridor.hello.symbol_size",
    "corridor.hello.mode",
    "corridor.hello.base",
    "corridor.hello.feedback",
    "corridor.hello.interval",
    "corridor.hello.to.station",
    "corridor.hello.to.session",
    "corridor.hello.to.accepted",
    "corridor.hello.to.asks",
    "corridor.hello.to.instead",
    "corridor.hello.to.lanes_log",
    "corridor.hello.to.lane_size",
];

impl Expected {
    /// Whether a packet in it is sent as a difference.
    pub fn has_difference(&self) -> bool {
        let named = FIELDS.iter().zip(&self.values);
        named
            .into_iter()
            .any(|(name, value)| *name == "corridor.difference.mask" && !value.is_empty())
    }
}

/// Number of the first form of a window's symbols, behind those of blocks.
pub const WINDOW_FORM: usize = 3;

/// What a frame contains.
pub struct Expected {
    /// Its chunks.
    pub kinds: Vec<Kind>,
    pub form: Option<usize>,
    /// In the order of [`FIELDS`].
    pub values: Vec<String>,
}

/// Reads a capture from its beginning, and restores packets from differences.
#[derive(Default)]
pub struct Reader {
    flows: BTreeMap<u16, Flow>,
    /// Differences found, and those that could be restored.
    pub differences: (usize, usize),
}

/// Symbols of a session.
#[derive(Default)]
struct Flow {
    next: Option<u32>,
    headers: HeaderTwin,
    /// Packets restored from differences, in order.
    symbols: BTreeMap<u32, Vec<Option<Vec<u8>>>>,
}

/// Compares texts that spell the same value.
pub trait Same {
    fn same(&self, wanted: &str) -> bool;
}

impl Same for String {
    fn same(&self, wanted: &str) -> bool {
        // Newer versions print "True" and "False"; older ones put colons between bytes.
        let given = self.replace("True", "1").replace("False", "0").replace(':', "");
        if given == wanted {
            return true;
        }
        let numbers = |text: &str| -> Option<Vec<f64>> {
            text.split(',').map(|number| number.parse().ok()).collect()
        };
        match (numbers(&given), numbers(wanted)) {
            (Some(given), Some(wanted)) if wanted.iter().any(|value| value.fract() != 0.0) => {
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-6;
                given.len() == wanted.len() && given.iter().zip(&wanted).all(near)
            }
            _ => false,
        }
    }
}

/// Collects values by the name of their field.
#[derive(Default)]
struct Values(Vec<(&'static str, String)>);

impl Values {
    fn add(&mut self, field: &'static str, value: impl ToString) {
        assert!(FIELDS.contains(&field), "{field}");
        match self.0.iter_mut().find(|(name, _)| *name == field) {
            Some((_, values)) => *values += &format!(",{}", value.to_string()),
            None => self.0.push((field, value.to_string())),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bits(field: Field) -> u8 {
    match field {
        Field::Gf2 => 1,
        Field::Gf16 => 4,
        Field::Gf256 => 8,
    }
}

/// What tshark has to show for a captured frame, from its Ethernet header on.
pub fn expected(packet: &[u8], reader: &mut Reader) -> Expected {
    let mut values = Values::default();
    let capture = &packet[14..];
    let (frame, field) = read_capture(capture, &mut values);
    let header = Header::parse(frame).expect("a frame");
    values.add("corridor.version", VERSION);
    values.add("corridor.frame_form", frame[0] & 0xf);
    values.add("corridor.session", format!("{:#06x}", header.session_tag));
    values.add("corridor.counter", header.counter);
    let (body, tag) = frame.split_at(frame.len() - TAG_LEN);
    values.add("corridor.tag", hex(tag));
    if header.is_hello {
        let clear = &body[HEADER_LEN..];
        values.add("corridor.hello.sender", u16::from_be_bytes([clear[0], clear[1]]));
        values.add("corridor.hello.session", hex(&clear[2..HELLO_CLEAR_LEN]));
    }
    let (mut kinds, mut form) = (Vec::new(), None);
    let mut chunks = Chunks::new(&body[header.clear_len()..]).peekable();
    while let Some(chunk) = chunks.next() {
        let chunk = chunk.expect("a chunk");
        let Chunk { kind, body, .. } = chunk;
        values.add("corridor.type", kind.code());
        if chunks.peek().is_some() {
            values.add("corridor.chunk.length", body.len());
        }
        kinds.push(kind);
        match kind {
            Kind::Enc => form = Some(read_enc(body, field, &mut values)),
            Kind::Ack => read_ack(&read_padded(body, Ack::parse, &mut values), &mut values),
            Kind::Report => {
                for encoder in read_padded(body, Report::parse, &mut values).encoders {
                    values.add("corridor.report.flow", encoder.flow.0);
                    values.add("corridor.report.e1", encoder.e1);
                    values.add("corridor.report.frames", encoder.frames);
                }
            }
            Kind::Hello => read_hello(body, &mut values),
            Kind::Plain => read_packets(body, &mut values, &mut |_, _| None),
            Kind::Window => {
                let tag = header.session_tag;
                form = Some(WINDOW_FORM + read_window(body, tag, reader, &mut values));
            }
            Kind::WindowAck => {
                let feedback = read_padded(body, WindowFeedback::parse, &mut values);
                read_window_feedback(&feedback, &mut values);
            }
            Kind::Link => {
                let feedback = read_padded(body, LinkFeedback::parse, &mut values);
                read_link_feedback(&feedback, &mut values);
            }
            kind => panic!("{kind:?}: nobody in the simulator says so"),
        }
    }
    let value = |field: &&str| {
        let found = values.0.iter().find(|(name, _)| name == field);
        found.map_or(String::new(), |(_, value)| value.clone())
    };
    let values = FIELDS.iter().map(value).collect();
    Expected { kinds, form, values }
}

/// Reads the capture header; returns the frame behind it, and the field of its flow.
fn read_capture<'a>(capture: &'a [u8], values: &mut Values) -> (&'a [u8], Field) {
    assert_eq!(&capture[..5], b"CorC\x02");
    let u16_at = |at: usize| u16::from_be_bytes([capture[at], capture[at + 1]]);
    let len = usize::from(u16_at(5));
    values.add("corridor.air.unsealed", capture[7] & 1);
    values.add("corridor.air.to_all", capture[7] >> 1 & 1);
    values.add("corridor.air.from", u16_at(8));
    values.add("corridor.air.to", u16_at(10));
    values.add("corridor.air.retransmissions", u16_at(12));
    values.add("corridor.air.field", capture[14]);
    values.add("corridor.air.block_size", u16_at(15));
    let airtime = u64::from_be_bytes(capture[17..25].try_into().expect("eight"));
    values.add("corridor.air.airtime", airtime);
    values.add("corridor.air.reach", u16_at(25));
    for at in (27..len).step_by(5) {
        values.add("corridor.air.hearer.station", u16_at(at));
        values.add("corridor.air.hearer.fate", capture[at + 2]);
        if u16_at(at + 3) != u16::MAX {
            values.add("corridor.air.hearer.rank", u16_at(at + 3));
        }
    }
    let field = match capture[14] {
        1 => Field::Gf2,
        4 => Field::Gf16,
        _ => Field::Gf256,
    };
    (&capture[len..], field)
}

/// Reads a body, and what follows it.
fn read_padded<'a, T>(
    body: &'a [u8],
    parse: impl FnOnce(&'a [u8]) -> Option<(T, &'a [u8])>,
    values: &mut Values,
) -> T {
    let (read, rest) = parse(body).expect("a body");
    note_padding(rest, values);
    read
}

fn note_padding(rest: &[u8], values: &mut Values) {
    if !rest.is_empty() {
        values.add("corridor.padding", hex(rest));
    }
}

fn read_ack(ack: &Ack, values: &mut Values) {
    values.add("corridor.ack.flow", ack.flow.0);
    values.add("corridor.ack.base", ack.base);
    values.add("corridor.ack.encoder_counter", ack.encoder_counter);
    values.add("corridor.ack.helper_counter", ack.helper_counter);
    values.add("corridor.ack.e2", ack.e2);
    values.add("corridor.ack.e3", ack.e3);
    for block in &ack.blocks {
        values.add("corridor.ack.block", block.block);
        values.add("corridor.ack.given_up", u8::from(block.given_up));
        values.add("corridor.ack.rank", block.rank);
        values.add("corridor.ack.known", block.known);
        let decoded: u32 = block.decoded.iter().map(|byte| byte.count_ones()).sum();
        values.add("corridor.ack.decoded", decoded);
    }
}

/// Returns the form's number.
fn read_enc(body: &[u8], field: Field, values: &mut Values) -> usize {
    let enc = Enc::parse(body, |_| Some(field)).expect("a symbol");
    values.add("corridor.flow", enc.flow.0);
    values.add("corridor.block", enc.block);
    values.add("corridor.symbol", hex(enc.symbol));
    let form = match enc.form {
        Form::Source { index } => {
            values.add("corridor.index", index);
            read_packets(enc.symbol, values, &mut |_, _| None);
            0
        }
        Form::Tagged { index } => {
            values.add("corridor.index", index);
            let (tag, packets) = enc.symbol.split_at(END_TAG_LEN);
            values.add("corridor.end_tag", hex(tag));
            read_packets(packets, values, &mut |_, _| None);
            3
        }
        Form::Seeded { count, seed } => {
            values.add("corridor.count", count);
            values.add("corridor.seed", format!("{seed:#010x}"));
            1
        }
        Form::Explicit { run, count, vector } => {
            values.add("corridor.count", count);
            values.add("corridor.run", format!("{run:#06x}"));
            values.add("corridor.coefficients", hex(vector));
            2
        }
    };
    values.add("corridor.form", form);
    form
}

fn read_link_feedback(feedback: &LinkFeedback, values: &mut Values) {
    values.add("corridor.link.half_duplex", u8::from(feedback.half_duplex));
    values.add("corridor.link.counter", feedback.counter);
    values.add("corridor.link.delay", feedback.delay.as_nanos());
    values.add("corridor.link.received_at", feedback.received_at_us);
    values.add("corridor.link.frames", feedback.frames);
    values.add("corridor.link.loss", feedback.loss_ratio);
    if !feedback.lateness.is_zero() {
        values.add("corridor.link.lateness", feedback.lateness.as_nanos());
    }
    if let Some(pair) = feedback.pair {
        values.add("corridor.link.gap", pair.gap_ns);
        values.add("corridor.link.gap_number", pair.number);
    }
}

fn read_window_feedback(ack: &WindowFeedback, values: &mut Values) {
    values.add("corridor.window.ack.flow", ack.flow.0);
    values.add("corridor.window.ack.next", ack.next);
    values.add("corridor.window.ack.lanes_log", ack.lanes.code());
    values.add("corridor.window.ack.lane", ack.lane);
    values.add("corridor.window.ack.span", ack.span);
    values.add("corridor.window.ack.deficit", ack.deficit);
    values.add("corridor.window.ack.useless", ack.useless);
    if !ack.needed.is_empty() {
        values.add("corridor.window.ack.bitmap", hex(&ack.needed));
    }
    let told = 0..usize::from(ack.span);
    let needed = told.filter(|&ahead| ack.is_needed(ahead) == Some(true)).count();
    values.add("corridor.window.ack.needed", needed);
}

/// Returns the form's number.
fn read_window(body: &[u8], tag: u16, reader: &mut Reader, values: &mut Values) -> usize {
    let symbol = WindowSymbol::parse(body).expect("a symbol");
    values.add("corridor.window.paired", u8::from(symbol.is_paired));
    values.add("corridor.window.flow", symbol.flow.0);
    values.add("corridor.symbol", hex(symbol.symbol));
    let (form, lanes) = match symbol.form {
        WindowForm::Source { id, distance, lanes } => {
            values.add("corridor.window.distance", distance);
            values.add("corridor.window.id", id);
            reader.read(tag, id, symbol.symbol, values);
            (0, lanes)
        }
        WindowForm::Coded { seed, count, lanes } => {
            let first = seed.low_bits();
            values.add("corridor.window.serial", seed.value() % 4_096);
            let ahead = (u32::from(count.get()) - 1) * lanes.count() as u32;
            let last = first.wrapping_add(ahead) & 0xf_ffff;
            values.add("corridor.window.count", count);
            values.add("corridor.window.first", first);
            values.add("corridor.window.last", last);
            (1, lanes)
        }
    };
    let form = if lanes == Lanes::ONE { form } else { form + 2 };
    if lanes != Lanes::ONE {
        values.add("corridor.window.lanes_log", lanes.code());
    }
    values.add("corridor.window.form", form);
    form
}

fn read_hello(body: &[u8], values: &mut Values) {
    let hello = Hello::parse(body).expect("a greeting");
    values.add("corridor.hello.instance", format!("{:#018x}", hello.instance));
    values.add("corridor.hello.field", bits(hello.field));
    values.add("corridor.hello.block_size", hello.block_size);
    values.add("corridor.hello.symbol_size", hello.symbol_size);
    values.add("corridor.hello.mode", u8::from(hello.mode == Mode::Window));
    values.add("corridor.hello.base", hello.base);
    let ms = |told: Option<Duration>| told.map_or(0, |told| told.as_millis());
    values.add("corridor.hello.feedback", ms(hello.intervals.feedback));
    values.add("corridor.hello.interval", ms(hello.intervals.hello));
    for to in hello.to {
        values.add("corridor.hello.to.station", to.station.0);
        values.add("corridor.hello.to.session", hex(&to.session));
        values.add("corridor.hello.to.accepted", u8::from(to.accepted));
        values.add("corridor.hello.to.asks", u8::from(to.asks));
        values.add("corridor.hello.to.instead", to.instead.map_or(0, Instead::code));
        values.add("corridor.hello.to.lanes_log", to.lanes.code());
        values.add("corridor.hello.to.lane_size", to.lane_size);
    }
    let mut written = Vec::new();
    Hello::parse(body).expect("a greeting").write(&mut written);
    note_padding(&body[written.len()..], values);
}

impl Reader {
    /// Reads the packets of a source symbol, new or sent again.
    fn read(&mut self, tag: u16, id: u32, symbol: &[u8], values: &mut Values) {
        let flow = self.flows.entry(tag).or_default();
        let known = flow.symbols.get(&id).cloned();
        let is_new = known.is_none();
        if is_new {
            if flow.next != Some(id) {
                flow.headers = HeaderTwin::default();
            }
            flow.next = Some(id.wrapping_add(1));
        }
        let mut known = known.unwrap_or_default().into_iter();
        let mut made = Vec::new();
        let headers = &mut flow.headers;
        let differences = &mut self.differences;
        read_packets(symbol, values, &mut |is_difference, bytes| {
            if !is_difference {
                // A symbol sent again comes out of turn.
                let in_turn = is_new.then_some(&mut *headers);
                in_turn.into_iter().for_each(|headers| headers.verbatim(bytes, 0));
                return None;
            }
            differences.0 += 1;
            let whole = if is_new {
                let whole = headers.expand(bytes).ok().map(|(packet, _)| packet);
                whole.iter().for_each(|packet| headers.note(bytes, packet, 0));
                made.push(whole.clone());
                whole
            } else {
                known.next().flatten()
            };
            differences.1 += usize::from(whole.is_some());
            whole
        });
        if is_new {
            flow.symbols.insert(id, made);
        }
    }
}

/// Called for a packet, which may be a difference.
type InOrder<'a> = dyn FnMut(bool, &[u8]) -> Option<Vec<u8>> + 'a;

/// Reads packets behind their lengths. Calls `in_order` for packets that must not overtake others,
/// with whether they are differences; it returns what a difference restores to.
fn read_packets(mut symbol: &[u8], values: &mut Values, in_order: &mut InOrder<'_>) {
    while let [high, low, rest @ ..] = symbol {
        let len = usize::from(u16::from_be_bytes([*high & 0x3f, *low]));
        if len == 0 || len > rest.len() {
            break;
        }
        let (bytes, behind) = rest.split_at(len);
        let is_difference = high & 0x40 != 0;
        values.add("corridor.packet.no_order", high >> 7);
        values.add("corridor.packet.difference", u8::from(is_difference));
        if is_difference {
            read_difference(bytes, values);
        } else {
            values.add("corridor.packet", hex(bytes));
        }
        let whole = if high >> 7 == 0 { in_order(is_difference, bytes) } else { None };
        whole.iter().for_each(|packet| values.add("corridor.packet.whole", hex(packet)));
        symbol = behind;
    }
    note_padding(symbol, values);
}

fn read_difference(bytes: &[u8], values: &mut Values) {
    let (place, mask) = (bytes[0], bytes[1]);
    values.add("corridor.difference.place", place);
    values.add("corridor.difference.mask", format!("{mask:#04x}"));
    values.add("corridor.difference.checksum", format!("0x{}", hex(&bytes[2..4])));
    let mut rest = &bytes[4..];
    let names = ["sequence", "ack", "window", "flags", "ident", "stamp", "echo", "class"];
    for (bit, name) in names.into_iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
        let field = FIELDS.iter().find(|field| **field == format!("corridor.difference.{name}"));
        let field = field.expect("it is compared");
        let len = match name {
            "sequence" | "ack" => 4,
            "window" | "ident" => 2,
            "stamp" | "echo" => 1 + rest.iter().take_while(|&&byte| byte >= 128).count(),
            _ => 1,
        };
        let (number, behind) = rest.split_at(len);
        let in_groups = matches!(bit, 5 | 6);
        let groups = number.iter().rev().map(|byte| u64::from(byte % 128));
        let value = if in_groups {
            groups.fold(0, |sum, group| 128 * sum + group) % (1 << 32)
        } else {
            number.iter().fold(0, |sum, &byte| 256 * sum + u64::from(byte))
        };
        let is_hex = matches!(name, "flags" | "class");
        values.add(field, if is_hex { format!("{value:#04x}") } else { value.to_string() });
        rest = behind;
    }
    if !rest.is_empty() {
        values.add("corridor.difference.payload", hex(rest));
    }
}
