//! IP, TCP and UDP packets: reading, modifying and writing them.
//!
//! A packet is parsed once, on arrival, into a [`PacketView`]: where its headers begin and end, its
//! flow, and its fields. From there on the view accompanies the bytes, as a [`PacketRef`] or a
//! [`PacketBuf`], and code that needs a field asks the view. This crate also makes all
//! modifications to such packets.
#![forbid(unsafe_code)]

pub mod checksum;
mod flow;
mod link;
pub mod sequence;
mod tcp;
pub mod tcp_header;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use link::{concerns_link, is_of_link};
pub use tcp::{End, Options, PureAck, TcpView};
#[cfg(feature = "count")]
pub use view::read_count;
pub use view::{
    Fragment, Ip, PacketBuf, PacketRef, PacketView, identification, is_datagram, may_be_fragmented,
    traffic_class,
};
pub use write::{set_identification, set_ip_len, set_traffic_class, write_ip};

/// IP protocol numbers.
pub mod protocol {
    /// ICMP (RFC 792).
    pub const ICMP: u8 = 1;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// ICMPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
}

/// Length of an IPv4 header without options, bytes.
pub const IPV4_LEN: usize = 20;
/// Length of an IPv6 header, bytes, the longer of the two written here.
pub const IPV6_LEN: usize = 40;
/// Length of a TCP header without options, bytes.
pub const TCP_LEN: usize = 20;
/// Length of a UDP header, bytes.
pub const UDP_LEN: usize = 8;
