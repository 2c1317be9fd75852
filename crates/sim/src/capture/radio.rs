//! Layout of a transmission in a capture of a radio: an Ethernet header, a capture header that says
//! what became of the frame, and the frame, unsealed.
//!
//! ```text
//! Ethernet header (14): addresses 02:00:00:00:<station, 2 bytes>, EtherType 0x88b6
//! capture header:
//!   "CorC" (4)  version 2 (1)  length of this header (2)  flags (1)  from (2)  to (2)
//!   retransmissions (2)  field, bits of a coefficient (1)  block size (2)  airtime, ns (8)
//!   stations in reach (2), for each: station (2)  fate (1)  rank afterwards (2)
//! frame, as it was on the air, its body in the clear, its AEAD tag as it was
//! ```
//! All numbers are big-endian. docs/captures.md explains the layout, share/wireshark/corridor.lua
//! dissects it, and docs/decisions/0006-captures.md says why it is so.

/// Local experimental EtherType 2 (IEEE 802). The daemon's own is number 1, so stations do not take
/// a capture that is replayed on a network for frames of theirs.
pub(crate) const ETHERTYPE: u16 = 0x88b6;
const MAGIC: &[u8; 4] = b"CorC";
const VERSION: u8 = 2;
/// Bytes of the capture header before the stations in reach.
const FIXED_LEN: usize = 27;
const HEARER_LEN: usize = 5;
/// Most stations in reach that a header has room for; it leaves further ones out.
const HEARERS_MAX: usize = (u16::MAX as usize - FIXED_LEN) / HEARER_LEN;

const FLAG_UNSEALED: u8 = 1;
const FLAG_TO_ALL: u8 = 2;

/// Stands for "no rank".
const NO_RANK: u16 = u16::MAX;

/// Outcome of a transmission at one station in reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Erased on the air.
    Lost,
    /// Heard, and not a symbol of a block.
    Heard,
    /// A symbol that raised the rank.
    Innovative,
    /// A symbol that did not raise the rank.
    Dependent,
    /// A symbol of a block that was already finished.
    Late,
    /// A symbol whose index or length is invalid.
    Refused,
    /// Opened, but not meant for this station or role.
    NotForUs,
    /// Did not open: altered, replayed, or of a session not (yet) accepted.
    Rejected,
    /// Had not arrived when the capture ended.
    OnItsWay,
}

impl Fate {
    fn code(self) -> u8 {
        match self {
            Fate::Lost => 0,
            Fate::Heard => 1,
            Fate::Innovative => 2,
            Fate::Dependent => 3,
            Fate::Late => 4,
            Fate::Refused => 5,
            Fate::NotForUs => 6,
            Fate::Rejected => 7,
            Fate::OnItsWay => 8,
        }
    }
}

/// A station in reach of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hearer {
    /// Its number.
    pub(crate) station: u16,
    pub(crate) fate: Fate,
    /// Its rank of the frame's block after this frame.
    pub(crate) rank: Option<u16>,
}

/// The capture header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptureHeader {
    /// Whether the frame behind this header is in the clear.
    pub(crate) unsealed: bool,
    pub(crate) from: u16,
    /// The addressee; `None`: all in reach.
    pub(crate) to: Option<u16>,
    pub(crate) retransmissions: u32,
    /// Bits of a coefficient and block size of the frame's flow, where they are known.
    pub(crate) coding: Option<(u8, u16)>,
    pub(crate) airtime_ns: u64,
    pub(crate) hearers: Vec<Hearer>,
}

impl CaptureHeader {
    /// Replaces the contents of `out` by the Ethernet header and the capture header.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.to.map_or([0xff; 6], mac));
        out.extend_from_slice(&mac(self.from));
        out.extend_from_slice(&ETHERTYPE.to_be_bytes());
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        let hearers = &self.hearers[..self.hearers.len().min(HEARERS_MAX)];
        let len = FIXED_LEN + HEARER_LEN * hearers.len();
        out.extend_from_slice(&(len as u16).to_be_bytes());
        let to_all = if self.to.is_none() { FLAG_TO_ALL } else { 0 };
        out.push(to_all | if self.unsealed { FLAG_UNSEALED } else { 0 });
        out.extend_from_slice(&self.from.to_be_bytes());
        out.extend_from_slice(&self.to.unwrap_or(0).to_be_bytes());
        let retransmissions = u16::try_from(self.retransmissions).unwrap_or(u16::MAX);
        out.extend_from_slice(&retransmissions.to_be_bytes());
        let (field_bits, block_size) = self.coding.unwrap_or((0, 0));
        out.push(field_bits);
        out.extend_from_slice(&block_size.to_be_bytes());
        out.extend_from_slice(&self.airtime_ns.to_be_bytes());
        out.extend_from_slice(&(hearers.len() as u16).to_be_bytes());
        for hearer in hearers {
            out.extend_from_slice(&hearer.station.to_be_bytes());
            out.push(hearer.fate.code());
            out.extend_from_slice(&hearer.rank.unwrap_or(NO_RANK).to_be_bytes());
        }
    }
}

/// A locally administered address that ends with the station's number.
fn mac(station: u16) -> [u8; 6] {
    let [high, low] = station.to_be_bytes();
    [2, 0, 0, 0, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_its_own_length() {
        let mut header = CaptureHeader {
            unsealed: true,
            from: 1,
            to: None,
            retransmissions: 70_000,
            coding: Some((8, 32)),
            airtime_ns: 5,
            hearers: Vec::new(),
        };
        for count in 0..3 {
            let mut bytes = Vec::new();
            header.write(&mut bytes);
            let told = u16::from_be_bytes([bytes[19], bytes[20]]);
            assert_eq!(usize::from(told), bytes.len() - 14);
            assert_eq!(bytes[..6], [0xff; 6]);
            assert_eq!(bytes[26..28], [0xff, 0xff], "retransmissions stop at the field's end");
            header.hearers.push(Hearer { station: count, fate: Fate::Lost, rank: None });
        }
    }
}
