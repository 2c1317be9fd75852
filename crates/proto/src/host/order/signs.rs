//! What can be seen of the protocol that a flow of UDP speaks, without trusting a length.

/// Connection IDs of QUIC's versions known here are no longer than this (RFC 9000, Section 17.2).
const CONNECTION_ID_MAX: u8 = 20;
/// Versions of QUIC: 1 (RFC 9000) and 2 (RFC 9369); and its drafts.
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
/// See [`VERSIONS`].
const DRAFTS: u32 = 0xff00_0000;
/// Packets in a row that could be QUIC's with short headers, from which on they are. What counts
/// up in its first byte is within their range for 64 packets at most.
const SHORT_FROM: u8 = 96;
/// Values of the five bits that QUIC encrypts in the first byte of short headers, at least, among
/// so many packets.
const FORMS_FROM: u32 = 12;
/// Packets that followed each other as RTP's do, from which on a flow speaks it; and most that it
/// is counted to.
const RTP_FROM: u8 = 4;
const RTP_MAX: u8 = 16;
/// RTP numbers its packets; so many may be missing between two.
const RTP_STEP_MAX: u16 = 16;
/// A header of RTP without extensions, bytes (RFC 3550).
const RTP_LEN: usize = 12;

/// What a flow speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    /// RTP, or something else that is real-time.
    Rtp,
    /// QUIC.
    Quic,
    /// Something else.
    Unknown,
}

/// What was seen of a flow's packets. The first two bits of each tell protocols apart that share
/// ports (RFC 9443): 11 a long header of QUIC's, 01 a short one, 10 RTP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    /// There was a long header of QUIC's.
    quic: bool,
    /// Packets in a row that could be QUIC's with short headers, and the forms they had.
    shorts: u8,
    forms: u32,
    /// Packets that followed each other as RTP's do, less others since.
    rtp: u8,
    /// Number and source of the last one.
    sequence: u16,
    source: u32,
}

impl Signs {
    /// Looks at the data of a datagram.
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

/// Whether data begin with a long header of a known version of QUIC (RFC 8999, Section 5.1).
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
