//! Where TCP's header has what (RFC 9293, Section 3.1), in bytes from its beginning.

/// The sequence number.
pub const SEQUENCE_AT: usize = 4;
/// The acknowledgement number.
pub const ACK_AT: usize = 8;
/// The [flags]; half of the byte before them is the header's length.
pub const FLAGS_AT: usize = 13;
/// The window.
pub const WINDOW_AT: usize = 14;
/// The checksum.
pub const CHECKSUM_AT: usize = 16;

/// The flags, or control bits.
pub mod flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Deliver at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// ECN echo (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}
