//! Just enough of pcapng to write captures: a section, its interfaces, and packets with times in
//! nanoseconds (draft-ietf-opsawg-pcapng, Sections 4.1 to 4.3).
//!
//! Written here rather than taken from a crate because it takes only three kinds of blocks, and the
//! same input has to give the same bytes. The tests read the results with `tshark`.

use std::io::{self, Write};

/// Link type of Ethernet frames (LINKTYPE_ETHERNET).
pub(crate) const LINKTYPE_ETHERNET: u16 = 1;
/// Link type of IP packets with nothing in front (LINKTYPE_RAW).
pub(crate) const LINKTYPE_RAW: u16 = 101;

/// Link type of 802.11 frames without a radio header (LINKTYPE_IEEE802_11).
pub(crate) const LINKTYPE_802_11: u16 = 105;
/// Link type of 802.15.4 frames without check sequence (LINKTYPE_IEEE802_15_4_NOFCS).
pub(crate) const LINKTYPE_802_15_4_WITHOUT_FCS: u16 = 230;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Marks the byte order of the section: little endian, on every machine.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Section length left unspecified: the section ends with the file.
const LENGTH_UNKNOWN: u64 = u64::MAX;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const OPTION_USER_APPLICATION: u16 = 4;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_INTERFACE_DESCRIPTION: u16 = 3;
const OPTION_TIME_RESOLUTION: u16 = 9;
/// Timestamp resolution: units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes blocks one after the other.
pub(crate) struct PcapngWriter<W> {
    out: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a section; `comment` says what was captured.
    pub(crate) fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut writer = PcapngWriter { out, interfaces: 0, block: Vec::new() };
        writer.block.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        writer.block.extend_from_slice(&1u16.to_le_bytes());
        writer.block.extend_from_slice(&0u16.to_le_bytes());
        writer.block.extend_from_slice(&LENGTH_UNKNOWN.to_le_bytes());
        let application = concat!("corridor ", env!("CARGO_PKG_VERSION"));
        writer.option(OPTION_COMMENT, comment.as_bytes());
        writer.option(OPTION_USER_APPLICATION, application.as_bytes());
        writer.option(OPTION_END, &[]);
        writer.write_block(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Adds an interface; returns its number, which its packets refer to.
    pub(crate) fn interface(
        &mut self,
        link_type: u16,
        name: &str,
        description: &str,
    ) -> io::Result<u32> {
        self.block.extend_from_slice(&link_type.to_le_bytes());
        self.block.extend_from_slice(&0u16.to_le_bytes());
        // SnapLen: no limit.
        self.block.extend_from_slice(&0u32.to_le_bytes());
        self.option(OPTION_INTERFACE_NAME, name.as_bytes());
        self.option(OPTION_INTERFACE_DESCRIPTION, description.as_bytes());
        self.option(OPTION_TIME_RESOLUTION, &[NANOSECONDS]);
        self.option(OPTION_END, &[]);
        self.write_block(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Adds a packet of `len_bytes`, of which `parts` are kept. An empty `comment` is left out.
    pub(crate) fn packet(
        &mut self,
        (interface, at_ns): (u32, u64),
        parts: &[&[u8]],
        len_bytes: usize,
        comment: &str,
    ) -> io::Result<()> {
        debug_assert!(interface < self.interfaces);
        let kept: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert!(kept <= len_bytes);
        self.block.extend_from_slice(&interface.to_le_bytes());
        self.block.extend_from_slice(&((at_ns >> 32) as u32).to_le_bytes());
        self.block.extend_from_slice(&(at_ns as u32).to_le_bytes());
        self.block.extend_from_slice(&(kept as u32).to_le_bytes());
        self.block.extend_from_slice(&(len_bytes as u32).to_le_bytes());
        parts.iter().for_each(|part| self.block.extend_from_slice(part));
        self.pad();
        if !comment.is_empty() {
            self.option(OPTION_COMMENT, comment.as_bytes());
            self.option(OPTION_END, &[]);
        }
        self.write_block(ENHANCED_PACKET)
    }

    /// Flushes buffered output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.block.extend_from_slice(&code.to_le_bytes());
        self.block.extend_from_slice(&(value.len() as u16).to_le_bytes());
        self.block.extend_from_slice(value);
        self.pad();
    }

    /// Pads a value to a multiple of four bytes.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes type, length, body, and the length again, for reading backwards.
    fn write_block(&mut self, kind: u32) -> io::Result<()> {
        let len = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&len)?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type and body of every block; panics where a length is wrong.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let len = number(&bytes[4..]) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(number(&bytes[len - 4..]) as usize, len);
            blocks.push((number(bytes), &bytes[8..len - 4]));
            bytes = &bytes[len..];
        }
        blocks
    }

    #[test]
    fn blocks_are_framed_and_packets_keep_their_bytes_and_times() {
        let mut bytes = Vec::new();
        let mut writer = PcapngWriter::new(&mut bytes, "five").unwrap();
        assert_eq!(writer.interface(LINKTYPE_ETHERNET, "a", "first").unwrap(), 0);
        assert_eq!(writer.interface(LINKTYPE_ETHERNET, "b", "").unwrap(), 1);
        writer.packet((1, 0x1_0000_0002), &[b"abc", b"de"], 9, "lost").unwrap();
        let blocks = blocks(&bytes);
        let kinds: Vec<_> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(
            kinds,
            [SECTION_HEADER, INTERFACE_DESCRIPTION, INTERFACE_DESCRIPTION, ENHANCED_PACKET]
        );
        let expected = [1u32, 1, 2, 5, 9].map(u32::to_le_bytes).concat();
        assert_eq!(blocks[3].1[..20], expected);
        assert_eq!(&blocks[3].1[20..], b"abcde\0\0\0\x01\0\x04\0lost\0\0\0\0");
    }
}
