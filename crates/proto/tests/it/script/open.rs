//! Opens frames with the group's secret according to the wire format's documentation, and describes
//! their contents. Written independently of the code under test.

use std::collections::BTreeMap;

use corridor_proto::Field;
use corridor_proto::wire::{
    Ack, BlockAck, Chunk, Chunks, Enc, Form, HEADER_LEN, HELLO_CLEAR_LEN, Header, Hello, Kind,
    LinkFeedback, Part, WindowFeedback, WindowForm, WindowSymbol,
};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};

/// An eavesdropper that has the secret and hears everything.
pub struct Eavesdropper {
    psk: [u8; 32],
    /// Sender and session by session tag.
    sessions: BTreeMap<u16, (u16, [u8; 16])>,
    /// From the newest HELLO of each sender: instance, field, first block.
    flows: BTreeMap<u16, (u64, Field, u32)>,
}

struct KeyLen;

impl KeyType for KeyLen {
    fn len(&self) -> usize {
        16
    }
}

impl Eavesdropper {
    pub fn new(psk: [u8; 32]) -> Self {
        Eavesdropper { psk, sessions: BTreeMap::new(), flows: BTreeMap::new() }
    }

    /// The kind of a frame's last chunk, if it opens, and a description of the frame.
    pub fn describe(&mut self, frame: &[u8]) -> (Option<Kind>, String) {
        let Some(header) = Header::parse(frame) else { return (None, "noise".into()) };
        let mut clear = HEADER_LEN;
        let mut kind = None;
        if header.is_hello && frame.len() > HEADER_LEN + HELLO_CLEAR_LEN {
            clear += HELLO_CLEAR_LEN;
            let sender = u16::from_be_bytes([frame[HEADER_LEN], frame[HEADER_LEN + 1]]);
            let id = frame[HEADER_LEN + 2..clear].try_into().expect("16 bytes");
            self.sessions.insert(header.session_tag, (sender, id));
            kind = Some(Kind::Hello);
        }
        let Some((sender, body)) = self.open(&header, frame, clear) else {
            let what = if header.is_hello { "a HELLO" } else { "a frame" };
            return (kind, format!("{what} that does not open"));
        };
        let mut words = Vec::new();
        for chunk in Chunks::new(&body) {
            let said = chunk.and_then(|chunk| self.chunk(chunk, sender));
            let Some(said) = said else { return (kind, "nonsense".into()) };
            kind = chunk.map(|chunk| chunk.kind);
            words.extend(said);
        }
        (kind, words.join(" + "))
    }

    fn open(&self, header: &Header, frame: &[u8], clear: usize) -> Option<(u16, Vec<u8>)> {
        let &(sender, session) = self.sessions.get(&header.session_tag)?;
        let info: [&[u8]; 3] = [b"session", &sender.to_be_bytes(), &session];
        let mut key = [0; 16];
        let secret = Salt::new(HKDF_SHA256, b"corridor wire 3").extract(&self.psk);
        secret.expand(&info, KeyLen).and_then(|okm| okm.fill(&mut key)).ok()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).ok()?);
        let mut nonce = [0; 12];
        nonce[8..].copy_from_slice(&header.counter.to_be_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let mut body = frame[clear..].to_vec();
        let len = key.open_in_place(nonce, Aad::from(&frame[..clear]), &mut body).ok()?.len();
        body.truncate(len);
        Some((sender, body))
    }

    /// A description of a chunk, if there is one; `None` for a malformed chunk.
    fn chunk(&mut self, chunk: Chunk<'_>, sender: u16) -> Option<Option<String>> {
        let Chunk { kind, body, .. } = chunk;
        let said = match kind {
            Kind::Ack => self.ack(&Ack::parse(body)?.0),
            Kind::WindowAck => self.window_feedback(sender, &WindowFeedback::parse(body)?.0),
            Kind::Enc => {
                let field =
                    |id: corridor_proto::StationId| self.flows.get(&id.0).map(|flow| flow.1);
                let enc = Enc::parse(body, field)?;
                let block = self.number(enc.flow.0, enc.block);
                match enc.form {
                    Form::Source { index } => format!("ENC {block} source {index}"),
                    Form::Tagged { index } => format!("ENC {block} tagged {index}"),
                    Form::Seeded { count, .. } => format!("ENC {block} coded over {count}"),
                    Form::Explicit { count, .. } => format!("ENC {block} recoded over {count}"),
                }
            }
            Kind::Hello => self.hello(sender, &Hello::parse(body)?),
            Kind::Report => "REPORT".into(),
            Kind::Window => {
                let number = |id| self.symbol_number(sender, id);
                let symbol = WindowSymbol::parse(body)?;
                match symbol.form {
                    WindowForm::Source { id, distance, .. } => {
                        let what = differences(symbol.symbol);
                        format!("WIN {} (+{distance}){what}", number(id))
                    }
                    WindowForm::Coded { seed, count, .. } => {
                        let base = self.flows.get(&sender).map_or(0, |flow| flow.2);
                        let first = seed.first(base.into()) as u32;
                        let last = first.wrapping_add(u32::from(count.get()) - 1);
                        format!("WIN coded {}..{}", number(first), number(last))
                    }
                }
            }
            Kind::Probe | Kind::Echoes | Kind::Challenge | Kind::Answer => "PROBE".into(),
            Kind::Goodbye | Kind::GoodbyeHeard => "GOODBYE".into(),
            Kind::Link => {
                LinkFeedback::parse(body)?;
                return Some(None);
            }
            Kind::Part => {
                let Part { whole, len, at, bytes } = Part::parse(body)?;
                let to = usize::from(at) + bytes.len();
                format!("PART of {whole}: {at}..{to} of {len}")
            }
            Kind::Plain | Kind::Relayed => return Some(None),
        };
        Some(Some(said))
    }

    fn hello(&mut self, sender: u16, hello: &Hello) -> String {
        let flow = self.flows.entry(sender).or_insert((hello.instance, hello.field, hello.base));
        if flow.0 != hello.instance {
            *flow = (hello.instance, hello.field, hello.base);
        }
        let mut said = vec!["HELLO".to_owned()];
        for to in &hello.to {
            let name = ["S", "D", "H"][usize::from(to.station.0) - 1];
            let mut word = format!("{name}:");
            word += if to.accepted { " accepted" } else { " challenge" };
            word += if to.answer == [0; 16] || to.accepted { "" } else { ", answer" };
            said.push(word);
        }
        said.join(" ")
    }

    fn ack(&self, ack: &Ack) -> String {
        let mut text = format!("ACK to {}", self.number(ack.flow.0, ack.base));
        for block in &ack.blocks {
            let number = self.number(ack.flow.0, block.block);
            let BlockAck { rank, known, .. } = block;
            let bits: String = (0..usize::from(*known))
                .map(|at| if block.decoded[at / 8] >> (at % 8) & 1 == 1 { '1' } else { '0' })
                .collect();
            let given_up = if block.given_up { " given up" } else { "" };
            text += &format!(", {number}: rank {rank} of {known} [{bits}]{given_up}");
        }
        text
    }

    fn number(&self, flow: u16, block: u16) -> i16 {
        let first = self.flows.get(&flow).map_or(0, |flow| flow.2 as u16);
        block.wrapping_sub(first) as i16
    }

    /// Feedback of one of two ends about the other's symbols.
    fn window_feedback(&self, sender: u16, ack: &WindowFeedback) -> String {
        let next = self.symbol_number(3 - sender, ack.next);
        let mut text = format!("WINACK next {next}");
        if ack.span > 0 {
            let is_needed = |ahead| ack.is_needed(usize::from(ahead)).expect("a short window");
            let bit = |ahead| if is_needed(ahead) { '0' } else { '1' };
            let bits: String = (0..ack.span).map(bit).collect();
            text += &format!(" [{bits}] lacks {}", ack.deficit);
        }
        text
    }

    fn symbol_number(&self, flow: u16, id: u32) -> i32 {
        let first = self.flows.get(&flow).map_or(0, |flow| flow.2);
        id.wrapping_sub(first) as i32
    }
}

/// A description of the packets in a source symbol that are sent as differences.
fn differences(mut symbol: &[u8]) -> String {
    let mut words = String::new();
    while let [high, low, rest @ ..] = symbol {
        let len = usize::from(u16::from_be_bytes([*high & 0x3f, *low]));
        if len == 0 || len > rest.len() {
            break;
        }
        if high & 0x40 != 0 {
            words += &format!(", a difference of {len} bytes");
        }
        symbol = &rest[len..];
    }
    words
}
