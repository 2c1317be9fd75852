//! Offsets in TCP's header (RFC 9293, Section 3.1), in bytes.

/// The sequence number.
pub const SEQUENCE_AT: usize = 4;
/// The acknowledgment number.
pub const ACK_AT: usize = 8;
/// The [flags]; the upper half of the preceding byte is the header length.
pub const FLAGS_AT: usize = 13;
/// The window.
pub const WINDOW_AT: usize = 14;
/// The checksum.
pub const CHECKSUM_AT: usize = 16;

/// The flags, or control bits.
pub mod flags {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Deliver immediately.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer is valid.
    pub const URG: u8 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}
