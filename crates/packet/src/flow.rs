//! Identifies the flow of a packet, and the reverse flow.

use std::net::IpAddr;

use crate::tcp::addresses;
use crate::{Ip, PacketRef, protocol};

impl<'a> PacketRef<'a> {
    /// A hash shared by all packets of one flow: over addresses, protocol, and ports if present.
    /// All non-IP packets belong to one flow. Fragments have no reliable ports.
    #[inline]
    pub fn flow_hash(&self, seed: u64) -> u64 {
        let (addresses, ports) = self.flow_key();
        fold(seed, addresses.iter().chain(ports))
    }

    /// The hash of the reverse flow.
    #[inline]
    pub fn flow_hash_back(&self, seed: u64) -> u64 {
        let (addresses, ports) = self.flow_key();
        let (from, to) = addresses.split_at(addresses.len() / 2);
        let (from_port, to_port) = ports.split_at(ports.len() / 2);
        fold(seed, to.iter().chain(from).chain(to_port).chain(from_port))
    }

    /// The fields that identify a flow, as in the packet: addresses, and ports, or the protocol if
    /// there are none; nothing if the packet is cut before them.
    #[inline]
    pub fn flow_key(&self) -> (&'a [u8], &'a [u8]) {
        self.addresses_and_ports().unwrap_or_default()
    }

    #[inline]
    fn addresses_and_ports(&self) -> Option<(&'a [u8], &'a [u8])> {
        let (view, packet) = (self.view(), self.bytes());
        let (addresses, protocol_at) = match view.ip() {
            Ip::V4 => (12..20, 9),
            Ip::V6 => (8..40, 6),
            Ip::None => return None,
        };
        let has_ports = view.is_whole() && matches!(view.protocol(), protocol::TCP | protocol::UDP);
        let ports = if has_ports {
            view.transport()..view.transport() + 4
        } else {
            protocol_at..protocol_at + 1
        };
        Some((packet.get(addresses)?, packet.get(ports)?))
    }

    /// Source and destination address.
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        addresses(self.view(), self.bytes())
    }
}

#[inline]
fn fold<'a>(seed: u64, key: impl Iterator<Item = &'a u8>) -> u64 {
    key.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
