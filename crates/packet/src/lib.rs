//! Packets of IP, TCP and UDP: what of them is looked at, what is changed, and what is made.
//!
//! A packet is read once, where it comes in, to a [`PacketView`]: where its headers begin and end,
//! whose it is, and what it says. The view goes with the bytes from there on, as a [`PacketRef`]
//! or a [`PacketBuf`], and what needs a field asks it. All that is written of such
//! packets is written here too.
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

/// IP's numbers of what it carries.
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

/// Bytes of an IPv4 header without options.
pub const IPV4_LEN: usize = 20;
/// Bytes of an IPv6 header, the longer of the two that are made here.
pub const IPV6_LEN: usize = 40;
/// Bytes of a TCP header without options.
pub const TCP_LEN: usize = 20;
/// Bytes of a UDP header.
pub const UDP_LEN: usize = 8;
