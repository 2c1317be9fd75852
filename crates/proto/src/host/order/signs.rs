//! Guesses the protocol of a UDP flow from its packets, which are untrusted.

/// QUIC's connection IDs are no longer than this in the versions below (RFC 9000, Section 17.2).
const CONNECTION_ID_MAX: u8 = 20;
/// QUIC versions 1 (RFC 9000) and 2 (RFC 9369); then the drafts.
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
/// See [`VERSIONS`].
const DRAFTS: u32 = 0xff00_0000;
/// From this many packets in a row that could be QUIC with short headers, the flow counts as QUIC.
/// A counter in the first byte looks like this for at most 64 packets.
const SHORT_FROM: u8 = 96;
/// And the five bits that QUIC encrypts in the first byte must have taken at least this many
/// values.
const FORMS_FROM: u32 = 12;
/// From this many packets that follow each other as RTP's do, the flow counts as RTP; the second is
/// the counter's maximum.
const RTP_FROM: u8 = 4;
const RTP_MAX: u8 = 16;
/// Largest gap in RTP's sequence numbers that still counts as consecutive.
const RTP_STEP_MAX: u16 = 16;
/// Bytes of an RTP header without extensions (RFC 3550).
const RTP_LEN: usize = 12;

/// The protocol of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    /// RTP, or another real-time protocol.
    Rtp,
    /// QUIC.
    Quic,
    /// Something else.
    Unknown,
}

/// What was seen in a flow's packets. Their first two bits distinguish protocols that share a port
/// (RFC 9443): 11 is a QUIC long header, 01 a QUIC short header, 10 RTP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    /// A QUIC long header was seen.
    quic: bool,
    /// Packets in a row that could be QUIC with short headers, and the values of their encrypted
    /// bits.
    shorts: u8,
    forms: u32,
    /// Packets that followed each other as RTP's do, less others since.
    rtp: u8,
    /// Sequence number and source of the last one.
    sequence: u16,
    source: u32,
}

impl Signs {
    /// Records the payload of a datagram.
    pub(super) fn note(&mut self, data: &[u8]) {
        let Some(&first) = data.first() else { return };
        match first >> 6 {
            0b11 if is_long_header(data) => self.quic = true,
            0b01 => {
                self.shorts = self.shorts.saturating_add(1);
                self.forms |= 1 << (first & 0x1f);
            }
            _ => (self.shorts, self.forms) = (0, 0),
        }
        match data.first_chunk::<RTP_LEN>() {
            Some(header) if first >> 6 == 0b10 => self.note_rtp(header),
            _ => self.rtp = self.rtp.saturating_sub(1),
        }
    }

    fn note_rtp(&mut self, header: &[u8; RTP_LEN]) {
        let sequence = u16::from_be_bytes([header[2], header[3]]);
        let source = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let step = sequence.wrapping_sub(self.sequence);
        if source == self.source && (1..=RTP_STEP_MAX).contains(&step) {
            self.rtp = (self.rtp + 1).min(RTP_MAX);
        }
        (self.sequence, self.source) = (sequence, source);
    }

    pub(super) fn speaks(&self) -> Speaks {
        let is_short = self.shorts >= SHORT_FROM && self.forms.count_ones() >= FORMS_FROM;
        match () {
            () if self.rtp >= RTP_FROM => Speaks::Rtp,
            () if self.quic || is_short => Speaks::Quic,
            () => Speaks::Unknown,
        }
    }
}

/// Whether a payload begins with a QUIC long header of a known version (RFC 8999, Section 5.1).
fn is_long_header(data: &[u8]) -> bool {
    let [_, a, b, c, d, destination_len, rest @ ..] = data else { return false };
    let version = u32::from_be_bytes([*a, *b, *c, *d]);
    let is_known = VERSIONS.contains(&version) || version & !0xff == DRAFTS;
    let source = rest.get(usize::from(*destination_len)..);
    let Some([source_len, rest @ ..]) = source.filter(|_| is_known) else { return false };
    *destination_len <= CONNECTION_ID_MAX
        && *source_len <= CONNECTION_ID_MAX
        && rest.len() >= usize::from(*source_len)
}
