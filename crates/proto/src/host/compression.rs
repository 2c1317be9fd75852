//! TCP header compression by differences, in the spirit of RFC 1144 and RFC 6846.
//!
//! A segment of a bulk transfer differs from the one before it in a few bytes of its 52 or 72 bytes
//! of headers. In window mode, packets that need order are delivered in order and once each. Both
//! ends therefore see the same sequence of packets, so each can remember the headers of a flow's
//! last segment, and what these predict need not be sent.
//!
//! Nothing is negotiated: every segment sent verbatim and in order sets the context that its flow
//! hashes to, at both ends. A packet is sent as a difference only if the other end will restore it
//! byte for byte; TCP's checksum is always sent. A receiver that skipped a symbol, or restarted,
//! has lost its contexts, and cannot use differences until the flow is sent verbatim again: at a
//! retransmission, as in RFC 1144, and every [`REFRESH_EVERY`] packets.

use arrayvec::ArrayVec;
use corridor_packet::tcp_header::flags::{FIN, RST, SYN, URG};
use corridor_packet::tcp_header::{ACK_AT, CHECKSUM_AT, FLAGS_AT, SEQUENCE_AT, WINDOW_AT};
use corridor_packet::{IPV4_LEN, IPV6_LEN, Ip, PacketRef, TCP_LEN, identification, protocol};
use corridor_packet::{set_identification, set_ip_len, set_traffic_class, traffic_class};

use crate::wire::Reader;

/// Contexts per direction. Flows that hash to the same context displace each other, and are then
/// sent verbatim.
pub(crate) const CONTEXTS: usize = 256;
/// A flow is sent verbatim once after this many differences.
const REFRESH_EVERY: u8 = 64;
/// Longest IP and TCP headers together: IPv6 with TCP's options.
const HEADERS_LEN_MAX: usize = IPV6_LEN + 60;

/// The beginning of TCP's options if timestamps come first (RFC 7323, Appendix A).
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
const TIMESTAMPS_LEN: usize = TIMESTAMPS.len() + 8;

/// Bits of the mask, in the order of the fields: set if the field differs from its prediction.
const SEQUENCE: u8 = 1 << 0;
const ACK: u8 = 1 << 1;
const WINDOW: u8 = 1 << 2;
const FLAGS: u8 = 1 << 3;
/// IPv4's identification field.
const IDENT: u8 = 1 << 4;
/// Timestamps, as differences to the last ones, encoded in groups of seven bits.
const STAMP: u8 = 1 << 5;
const ECHO: u8 = 1 << 6;
/// IPv4's type of service or IPv6's traffic class.
const CLASS: u8 = 1 << 7;

/// Headers of the last segment of a flow.
#[derive(Clone, Debug)]
struct Context {
    headers: ArrayVec<u8, HEADERS_LEN_MAX>,
    /// Where the TCP header begins.
    tcp: usize,
    payload_len: usize,
    /// Differences sent since the last verbatim packet.
    differences: u8,
}

/// The contexts of one direction, at either end.
#[derive(Debug)]
pub struct Contexts {
    places: Vec<Option<Box<Context>>>,
    /// The last packet's: the next one often belongs to the same flow.
    last: usize,
}

impl Default for Contexts {
    fn default() -> Self {
        Contexts::new()
    }
}

impl Contexts {
    /// Bytes of all contexts of one direction.
    pub(crate) const BYTES_MAX: usize =
        CONTEXTS * (size_of::<Option<Box<Context>>>() + size_of::<Context>());

    /// No contexts are set.
    pub fn new() -> Self {
        Contexts { places: vec![None; CONTEXTS], last: 0 }
    }

    /// Forgets all contexts: those of the other end, or packets in between, are unknown.
    pub fn clear(&mut self) {
        self.places.fill(None);
    }

    /// Sets the context from a packet that was sent or received verbatim and in order.
    pub fn note_verbatim(&mut self, packet: PacketRef<'_>) {
        if let Some(lengths) = Lengths::of(packet) {
            let place = self.place(&packet, lengths);
            match &mut self.places[place] {
                Some(context) => context.set(&packet, lengths),
                empty => *empty = Some(Box::new(Context::new(&packet, lengths))),
            }
        }
    }

    /// Appends a packet that is sent in order as a difference, and returns true, if this is
    /// possible and shorter. Otherwise the caller has to send it verbatim and call
    /// [`note_verbatim`](Self::note_verbatim).
    pub fn compress(&mut self, packet: PacketRef<'_>, out: &mut Vec<u8>) -> bool {
        self.try_compress(packet, out).is_some()
    }

    fn try_compress(&mut self, packet: PacketRef<'_>, out: &mut Vec<u8>) -> Option<()> {
        let lengths = Lengths::of(packet)?;
        let place = self.place(&packet, lengths);
        let context = self.places[place].as_mut()?;
        let (headers, payload) = packet.bytes().split_at(lengths.headers);
        if context.headers.len() != headers.len() || context.differences == REFRESH_EVERY - 1 {
            return None;
        }
        let fields = context.fields_of(headers)?;
        let predicted = context.apply(&fields, payload.len());
        if predicted != *headers {
            return None; // Something else differs.
        }
        // At most 28 bytes, in place of at least 40.
        out.push(place as u8);
        fields.write(out);
        out.extend_from_slice(payload);
        context.advance(predicted, payload.len());
        context.differences += 1;
        Some(())
    }

    /// Restores the packet from a difference into `packet`. `None`: its context is unknown, the
    /// difference is malformed, or the packet would be longer than `len_max` bytes.
    pub fn expand(
        &mut self,
        difference: &[u8],
        len_max: usize,
        packet: &mut Vec<u8>,
    ) -> Option<()> {
        let mut read = Reader(difference);
        let context = self.places[usize::from(read.u8()?)].as_mut()?;
        let fields = Fields::parse(&mut read)?;
        let payload = read.0;
        if context.headers.len() + payload.len() > len_max {
            return None;
        }
        let headers = context.apply(&fields, payload.len());
        packet.clear();
        packet.extend_from_slice(&headers);
        packet.extend_from_slice(payload);
        context.advance(headers, payload.len());
        Some(())
    }

    /// The place of a flow's context: a hash of its addresses and ports.
    fn place(&mut self, packet: &[u8], lengths: Lengths) -> usize {
        let key = lengths.key(packet);
        let context = self.places[self.last].as_ref();
        let is_of_last = context.is_some_and(|context| {
            context.tcp == lengths.tcp && lengths.key(&context.headers) == key
        });
        if !is_of_last {
            let hash = key.iter().fold(0x811c_9dc5_u32, |hash, &byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
            self.last = ((hash ^ hash >> 16) as usize) % CONTEXTS;
        }
        self.last
    }
}

/// Offsets in a segment whose headers may be sent as a difference.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    tcp: usize,
    headers: usize,
}

impl Lengths {
    /// `None` unless it is a whole TCP segment that neither opens nor ends a connection.
    fn of(packet: PacketRef<'_>) -> Option<Self> {
        let view = packet.view();
        let plain = view.tcp_flags() & (FIN | SYN | RST | URG) == 0;
        let has_options = view.ip() == Ip::V4 && view.transport() != IPV4_LEN;
        let is_tcp = view.protocol() == protocol::TCP && plain && !has_options;
        let headers = view.payload().filter(|_| is_tcp)?;
        Some(Lengths { tcp: view.transport(), headers })
    }

    /// What identifies the flow: addresses, and the ports that follow them, as there are no IPv4
    /// options.
    fn key(self, headers: &[u8]) -> &[u8] {
        let addresses = if self.tcp == IPV4_LEN { 12 } else { 8 };
        &headers[addresses..self.tcp + 4]
    }
}

/// Fields that differ from their prediction.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    mask: u8,
    checksum: [u8; 2],
    sequence: u32,
    ack: u32,
    window: u16,
    flags: u8,
    ident: u16,
    stamp_ahead: u32,
    echo_ahead: u32,
    class: u8,
}

impl Fields {
    fn write(&self, out: &mut Vec<u8>) {
        let has = |bit| self.mask & bit != 0;
        out.push(self.mask);
        out.extend_from_slice(&self.checksum);
        if has(SEQUENCE) {
            out.extend_from_slice(&self.sequence.to_be_bytes());
        }
        if has(ACK) {
            out.extend_from_slice(&self.ack.to_be_bytes());
        }
        if has(WINDOW) {
            out.extend_from_slice(&self.window.to_be_bytes());
        }
        if has(FLAGS) {
            out.push(self.flags);
        }
        if has(IDENT) {
            out.extend_from_slice(&self.ident.to_be_bytes());
        }
        if has(STAMP) {
            write_groups(self.stamp_ahead, out);
        }
        if has(ECHO) {
            write_groups(self.echo_ahead, out);
        }
        if has(CLASS) {
            out.push(self.class);
        }
    }

    fn parse(read: &mut Reader<'_>) -> Option<Self> {
        let mask = read.u8()?;
        let has = |bit| mask & bit != 0;
        let mut fields = Fields { mask, checksum: read.u16()?.to_be_bytes(), ..Fields::default() };
        if has(SEQUENCE) {
            fields.sequence = read.u32()?;
        }
        if has(ACK) {
            fields.ack = read.u32()?;
        }
        if has(WINDOW) {
            fields.window = read.u16()?;
        }
        if has(FLAGS) {
            fields.flags = read.u8()?;
        }
        if has(IDENT) {
            fields.ident = read.u16()?;
        }
        if has(STAMP) {
            fields.stamp_ahead = read_groups(read)?;
        }
        if has(ECHO) {
            fields.echo_ahead = read_groups(read)?;
        }
        if has(CLASS) {
            fields.class = read.u8()?;
        }
        Some(fields)
    }
}

/// Writes a number in groups of seven bits, lowest first; a byte's highest bit means that more
/// follow.
fn write_groups(number: u32, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn read_groups(read: &mut Reader<'_>) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let byte = read.u8()?;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

impl Context {
    fn new(packet: &[u8], lengths: Lengths) -> Self {
        let mut context =
            Context { headers: ArrayVec::new(), tcp: 0, payload_len: 0, differences: 0 };
        context.set(packet, lengths);
        context
    }

    fn set(&mut self, packet: &[u8], lengths: Lengths) {
        self.headers = copied(&packet[..lengths.headers]);
        self.tcp = lengths.tcp;
        self.payload_len = packet.len() - lengths.headers;
        self.differences = 0;
    }

    fn advance(&mut self, headers: ArrayVec<u8, HEADERS_LEN_MAX>, payload_len: usize) {
        self.headers = headers;
        self.payload_len = payload_len;
    }

    fn word(&self, at: usize) -> u32 {
        word(&self.headers, at)
    }

    /// Where the timestamps begin, if there are any.
    fn timestamps(&self) -> Option<usize> {
        let at = self.tcp + TCP_LEN;
        // Do not read beyond options that end early.
        let option = self.headers.get(at..at + TIMESTAMPS_LEN)?;
        option.starts_with(&TIMESTAMPS).then_some(at + TIMESTAMPS.len())
    }

    /// The sequence number that follows the last segment.
    fn next_sequence(&self) -> u32 {
        self.word(self.tcp + SEQUENCE_AT).wrapping_add(self.payload_len as u32)
    }

    /// How headers of the same length differ from their prediction, as far as the fields can
    /// express it; `None` for a retransmission.
    fn fields_of(&self, headers: &[u8]) -> Option<Fields> {
        let tcp = self.tcp;
        let half = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
        let mut fields = Fields {
            checksum: half(tcp + CHECKSUM_AT).to_be_bytes(),
            sequence: word(headers, tcp + SEQUENCE_AT),
            ack: word(headers, tcp + ACK_AT),
            window: half(tcp + WINDOW_AT),
            flags: headers[tcp + FLAGS_AT],
            ..Fields::default()
        };
        if (fields.sequence.wrapping_sub(self.next_sequence()) as i32) < 0 {
            return None;
        }
        let differs = |at: usize, len: usize| headers[at..at + len] != self.headers[at..at + len];
        let mut note = |bit, differs| fields.mask |= if differs { bit } else { 0 };
        note(SEQUENCE, fields.sequence != self.next_sequence());
        note(ACK, differs(tcp + ACK_AT, 4));
        note(WINDOW, differs(tcp + WINDOW_AT, 2));
        note(FLAGS, differs(tcp + FLAGS_AT, 1));
        if let Some(at) = self.timestamps() {
            note(STAMP, differs(at, 4));
            note(ECHO, differs(at + 4, 4));
            fields.stamp_ahead = word(headers, at).wrapping_sub(self.word(at));
            fields.echo_ahead = word(headers, at + 4).wrapping_sub(self.word(at + 4));
        }
        fields.class = traffic_class(headers);
        note_class(&mut fields, traffic_class(&self.headers));
        if tcp == IPV4_LEN {
            fields.ident = identification(headers);
            fields.mask |= if fields.ident == self.next_ident() { 0 } else { IDENT };
        }
        Some(fields)
    }

    fn next_ident(&self) -> u16 {
        identification(&self.headers).wrapping_add(1)
    }

    /// The predicted headers, with the fields that differ filled in.
    fn apply(&self, fields: &Fields, payload_len: usize) -> ArrayVec<u8, HEADERS_LEN_MAX> {
        let has = |bit| fields.mask & bit != 0;
        let (mut headers, tcp) = (copied(&self.headers), self.tcp);
        let mut put = |at: usize, bytes: &[u8]| {
            headers[at..at + bytes.len()].copy_from_slice(bytes);
        };
        let sequence = if has(SEQUENCE) { fields.sequence } else { self.next_sequence() };
        put(tcp + SEQUENCE_AT, &sequence.to_be_bytes());
        put(tcp + CHECKSUM_AT, &fields.checksum);
        if has(ACK) {
            put(tcp + ACK_AT, &fields.ack.to_be_bytes());
        }
        if has(WINDOW) {
            put(tcp + WINDOW_AT, &fields.window.to_be_bytes());
        }
        if has(FLAGS) {
            put(tcp + FLAGS_AT, &[fields.flags]);
        }
        if let Some(at) = self.timestamps() {
            if has(STAMP) {
                put(at, &self.word(at).wrapping_add(fields.stamp_ahead).to_be_bytes());
            }
            if has(ECHO) {
                put(at + 4, &self.word(at + 4).wrapping_add(fields.echo_ahead).to_be_bytes());
            }
        }
        if has(CLASS) {
            set_traffic_class(&mut headers, fields.class);
        }
        // Bounded: for a packet from the host by the tunnel's MTU, for one from the network by
        // `expand`.
        let len = headers.len() + payload_len;
        if tcp == IPV4_LEN {
            let ident = if has(IDENT) { fields.ident } else { self.next_ident() };
            set_identification(&mut headers, ident);
        }
        set_ip_len(&mut headers, len);
        headers
    }
}

/// At once: the clone of an `ArrayVec` goes byte by byte.
fn copied(headers: &[u8]) -> ArrayVec<u8, HEADERS_LEN_MAX> {
    let mut copy = ArrayVec::new();
    copy.try_extend_from_slice(headers).expect("TCP's and IP's headers fit");
    copy
}

fn note_class(fields: &mut Fields, before: u8) {
    fields.mask |= if fields.class == before { 0 } else { CLASS };
}

fn word(headers: &[u8], at: usize) -> u32 {
    headers.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}
