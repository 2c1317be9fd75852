//! Frames between relays. All numbers are big-endian.
//!
//! ```text
//! every frame    kind 1, counter 4
//! plain          ttl 2, packet; of another kind where its receiver is to report that it came
//! coded          twice (to 2, ttl 2, packet's length 2, its id 8), then the XOR of both packets,
//!                as long as the longer one; of another kind where both of them go again if lost
//! announcement   entries 1, and for each: node 2, heard 1, coded 2, failed 2
//! repair         newest 2, covered 4, a combination of what a neighbour may lack: for each of
//!                its packets ttl 2, length 2, id 8, packet, the shorter ones padded with zeros
//! ```
//!
//! Reports precede a frame, or stand alone: kind 1, reports 1, and for each: node 2, newest 2, came
//! 4. [`split`] removes them.
//! 4. [`split`] takes them off.
//!
//! A coded frame carries the exact length of both packets, since the XOR is padded, and both ids,
//! with which a receiver finds the packet that it knows and checks the one it has decoded. The id
//! is a hash of the packet, not a CRC: CRCs of two packets would add up as the packets do. A frame
//! is parsed completely or not at all: [`Frame::parse`] checks each length once.

use std::fmt;

/// Size of every frame's header, bytes.
pub const HEAD_BYTES: usize = 5;
/// Bytes before a plain packet.
pub const PLAIN_BYTES: usize = HEAD_BYTES + 2;
/// Size of the description of each packet of a coded frame, bytes.
pub const PART_BYTES: usize = 14;
/// Bytes before the XOR of a coded frame.
pub const CODED_BYTES: usize = HEAD_BYTES + 2 * PART_BYTES;
/// Size of an announcement's entry, bytes.
pub const ENTRY_BYTES: usize = 7;
/// Maximum number of entries in an announcement.
pub const ENTRIES_MAX: usize = 64;
/// Size of a report, bytes.
pub const REPORT_BYTES: usize = 8;
/// Maximum number of reports before a frame.
pub const REPORTS_MAX: usize = 2;
/// Maximum size of all reports before a frame, bytes.
pub const REPORTS_BYTES_MAX: usize = 2 + REPORTS_MAX * REPORT_BYTES;
/// Bytes before the combination in a repair.
pub const REPAIR_BYTES: usize = HEAD_BYTES + 6;
/// Bytes before each packet that a repair combines.
pub const SYMBOL_HEAD_BYTES: usize = 12;
/// Maximum size of a packet that repairs combine: the largest that IEEE 802.11 carries.
pub const REPAIRED_BYTES_MAX: usize = 2304;
/// Number of frames that the counters of a report, or of a repair, distinguish.
pub const TOLD: usize = u32::BITS as usize;
/// Maximum packet size, bytes.
pub const PACKET_BYTES_MAX: usize = u16::MAX as usize;

const PLAIN: u8 = 1;
const CODED: u8 = 2;
const ANNOUNCEMENT: u8 = 3;
const REPORTS: u8 = 4;
const PLAIN_ASKING: u8 = 5;
const REPAIR: u8 = 6;
const CODED_ASKING: u8 = 7;

/// A node's id among its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A packet's id: a hash of all its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketId(pub u64);

impl PacketId {
    /// The id of these bytes.
    pub fn of(packet: &[u8]) -> Self {
        let hash = blake3::hash(packet);
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        PacketId(u64::from_be_bytes(first))
    }
}

/// A frame with all lengths valid.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame<'a> {
    /// One packet, for the frame's link-layer destination.
    Plain {
        /// The sender's frame counter.
        counter: u32,
        /// Remaining hops of the packet, from 1.
        ttl: u16,
        /// Whether its receiver is to report its arrival.
        asks: bool,
        /// The packet, not empty.
        packet: &'a [u8],
    },
    /// Two packets, for two nodes.
    Coded {
        /// The sender's frame counter.
        counter: u32,
        /// Description of the packets.
        parts: [Part; 2],
        /// Whether losses of the link-layer destination are retransmitted as well, not only those
        /// of the other receiver.
        asks: bool,
        /// The XOR of both, the shorter one padded with zeros.
        xored: &'a [u8],
    },
    /// An announcement of whom the sender hears.
    Announcement {
        /// The sender's frame counter.
        counter: u32,
        /// One entry per neighbour.
        entries: Vec<NeighbourReport>,
    },
    /// A combination of packets that its receiver was sent, and may lack.
    Repair {
        /// The sender's frame counter, and seed of the coefficients.
        counter: u32,
        /// The frames the packets were sent in.
        covered: Frames,
        /// The combination: longer than the bytes before each packet.
        combined: &'a [u8],
    },
}

/// A set of a neighbour's frames, by their counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frames {
    /// The lower half of the newest frame's counter.
    pub newest: u16,
    /// A bitmap of this frame and the 31 before it, the newest lowest.
    pub bits: u32,
}

/// One of the packets of a coded frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its receiver.
    pub to: NodeId,
    /// Remaining hops, from 1.
    pub ttl: u16,
    /// Its length, bytes, from 1.
    pub len_bytes: u16,
    /// Its id.
    pub id: PacketId,
}

/// A node's entry about one of its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourReport {
    /// The neighbour.
    pub node: NodeId,
    /// Fraction of the neighbour's frames to others that it hears, in 255ths.
    pub heard: u8,
    /// Coded frames for it received from that neighbour, since the last announcement.
    pub coded: u16,
    /// Number of these it could not decode.
    pub failed: u16,
}

/// A report on which of a neighbour's frames arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The neighbour.
    pub node: NodeId,
    /// Counter of its newest frame heard, lower half.
    pub newest: u16,
    /// A bitmap of this frame and the 31 before it, the newest lowest: it was heard, and could be
    /// decoded if it was a coded one for the sender of the report.
    pub came: u32,
}

impl Report {
    fn read(bytes: &[u8; REPORT_BYTES]) -> Report {
        let [a, b, c, d, e, f, g, h] = *bytes;
        let word = |high, low| u16::from_be_bytes([high, low]);
        let came = u32::from_be_bytes([e, f, g, h]);
        Report { node: NodeId(word(a, b)), newest: word(c, d), came }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.node.0.to_be_bytes());
        out.extend_from_slice(&self.newest.to_be_bytes());
        out.extend_from_slice(&self.came.to_be_bytes());
    }
}

/// Prepends one or two reports to a frame, or to nothing.
pub fn with_reports(reports: &[Report], frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(REPORTS_BYTES_MAX + frame.len());
    out.extend_from_slice(&[REPORTS, reports.len() as u8]);
    reports.iter().for_each(|report| report.write(&mut out));
    out.extend_from_slice(frame);
    out
}

/// Removes the reports before a frame, if there are any; `None` if they are truncated, or too many.
/// An empty rest means that they came alone.
pub fn split(bytes: &[u8]) -> Option<(Vec<Report>, &[u8])> {
    let Some((&REPORTS, rest)) = bytes.split_first() else { return Some((Vec::new(), bytes)) };
    let (&count, rest) = rest.split_first()?;
    let count = usize::from(count);
    let (reports, frame) = rest.split_at_checked(count * REPORT_BYTES)?;
    let (reports, _) = reports.as_chunks::<REPORT_BYTES>();
    (1..=REPORTS_MAX).contains(&count).then_some(())?;
    Some((reports.iter().map(Report::read).collect(), frame))
}

impl<'a> Frame<'a> {
    /// Parses a frame without reports; `None` if it is invalid.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (counter, rest) = rest.split_first_chunk()?;
        let counter = u32::from_be_bytes(*counter);
        match kind {
            PLAIN | PLAIN_ASKING => {
                let asks = kind == PLAIN_ASKING;
                let (ttl, packet) = rest.split_first_chunk()?;
                let ttl = u16::from_be_bytes(*ttl);
                let fits = (1..=PACKET_BYTES_MAX).contains(&packet.len());
                (ttl > 0 && fits).then_some(Frame::Plain { counter, ttl, asks, packet })
            }
            CODED | CODED_ASKING => {
                let asks = kind == CODED_ASKING;
                let (first, rest) = Part::parse(rest)?;
                let (second, xored) = Part::parse(rest)?;
                let longer = usize::from(first.len_bytes.max(second.len_bytes));
                let apart = first.to != second.to && first.id != second.id;
                let parts = [first, second];
                let fits = apart && xored.len() == longer;
                fits.then_some(Frame::Coded { counter, parts, asks, xored })
            }
            ANNOUNCEMENT => {
                let (&count, rest) = rest.split_first()?;
                let (entries, behind) = rest.as_chunks::<ENTRY_BYTES>();
                let whole = behind.is_empty() && entries.len() == usize::from(count);
                if !whole || entries.len() > ENTRIES_MAX {
                    return None;
                }
                let entries: Vec<NeighbourReport> =
                    entries.iter().map(NeighbourReport::read).collect();
                let ascend = entries.windows(2).all(|pair| pair[0].node < pair[1].node);
                let sound = entries.iter().all(|entry| entry.failed <= entry.coded);
                (ascend && sound).then_some(Frame::Announcement { counter, entries })
            }
            REPAIR => {
                let (&[a, b, c, d, e, f], combined) = rest.split_first_chunk()?;
                let newest = u16::from_be_bytes([a, b]);
                let covered = Frames { newest, bits: u32::from_be_bytes([c, d, e, f]) };
                let fits = combined.len() > SYMBOL_HEAD_BYTES && covered.bits & 1 == 1;
                fits.then_some(Frame::Repair { counter, covered, combined })
            }
            _ => None,
        }
    }

    /// The frame's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Frame::Plain { counter, ttl, asks, packet } => {
                out.reserve_exact(PLAIN_BYTES + packet.len());
                write_head(&mut out, if *asks { PLAIN_ASKING } else { PLAIN }, *counter);
                out.extend_from_slice(&ttl.to_be_bytes());
                out.extend_from_slice(packet);
            }
            Frame::Coded { counter, parts, asks, xored } => {
                out.reserve_exact(CODED_BYTES + xored.len());
                write_head(&mut out, if *asks { CODED_ASKING } else { CODED }, *counter);
                parts.iter().for_each(|part| part.write(&mut out));
                out.extend_from_slice(xored);
            }
            Frame::Announcement { counter, entries } => {
                write_head(&mut out, ANNOUNCEMENT, *counter);
                out.push(entries.len() as u8);
                entries.iter().for_each(|entry| entry.write(&mut out));
            }
            Frame::Repair { counter, covered, combined } => {
                out.reserve_exact(REPAIR_BYTES + combined.len());
                write_head(&mut out, REPAIR, *counter);
                out.extend_from_slice(&covered.newest.to_be_bytes());
                out.extend_from_slice(&covered.bits.to_be_bytes());
                out.extend_from_slice(combined);
            }
        }
        out
    }

    /// Whether these bytes, if they are a frame, are for all nodes in reach: an announcement, or
    /// reports alone.
    pub fn is_for_all(bytes: &[u8]) -> bool {
        split(bytes)
            .is_some_and(|(_, frame)| frame.first().is_none_or(|&kind| kind == ANNOUNCEMENT))
    }

    /// The sender's frame counter.
    pub fn counter(&self) -> u32 {
        match self {
            Frame::Plain { counter, .. }
            | Frame::Coded { counter, .. }
            | Frame::Announcement { counter, .. }
            | Frame::Repair { counter, .. } => *counter,
        }
    }
}

fn write_head(out: &mut Vec<u8>, kind: u8, counter: u32) {
    out.push(kind);
    out.extend_from_slice(&counter.to_be_bytes());
}

impl Part {
    fn parse(bytes: &[u8]) -> Option<(Part, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<PART_BYTES>()?;
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let mut id = [0; 8];
        id.copy_from_slice(&head[6..]);
        let id = PacketId(u64::from_be_bytes(id));
        let part = Part { to: NodeId(word(0)), ttl: word(2), len_bytes: word(4), id };
        (part.ttl > 0 && part.len_bytes > 0).then_some((part, rest))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to.0.to_be_bytes());
        out.extend_from_slice(&self.ttl.to_be_bytes());
        out.extend_from_slice(&self.len_bytes.to_be_bytes());
        out.extend_from_slice(&self.id.0.to_be_bytes());
    }
}

impl NeighbourReport {
    fn read(bytes: &[u8; ENTRY_BYTES]) -> NeighbourReport {
        let [a, b, heard, c, d, e, f] = *bytes;
        let word = |high, low| u16::from_be_bytes([high, low]);
        NeighbourReport { node: NodeId(word(a, b)), heard, coded: word(c, d), failed: word(e, f) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.node.0.to_be_bytes());
        out.push(self.heard);
        out.extend_from_slice(&self.coded.to_be_bytes());
        out.extend_from_slice(&self.failed.to_be_bytes());
    }
}

/// A packet as a symbol of repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Remaining hops of the packet, from 1, as in its own frame.
    pub ttl: u16,
    /// Its id.
    pub id: PacketId,
    /// The packet, not empty.
    pub packet: &'a [u8],
}

impl<'a> Symbol<'a> {
    /// Parses a decoded symbol with trailing zeros; `None` if it is not a valid packet.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (&[a, b, c, d, ref id @ ..], rest) = bytes.split_first_chunk::<SYMBOL_HEAD_BYTES>()?;
        let (ttl, len) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let (packet, padding) = rest.split_at_checked(len.into())?;
        let id = PacketId(u64::from_be_bytes(*id));
        let sound = ttl > 0 && len > 0 && padding.iter().all(|&byte| byte == 0);
        (sound && PacketId::of(packet) == id).then_some(Symbol { ttl, id, packet })
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SYMBOL_HEAD_BYTES + self.packet.len());
        out.extend_from_slice(&self.ttl.to_be_bytes());
        out.extend_from_slice(&(self.packet.len() as u16).to_be_bytes());
        out.extend_from_slice(&self.id.0.to_be_bytes());
        out.extend_from_slice(self.packet);
        out
    }
}

/// The XOR of both packets, as long as the longer one.
pub fn xor(first: &[u8], second: &[u8]) -> Vec<u8> {
    let (long, short) = if first.len() >= second.len() { (first, second) } else { (second, first) };
    let mut xored = long.to_vec();
    xored.iter_mut().zip(short).for_each(|(byte, other)| *byte ^= other);
    xored
}
