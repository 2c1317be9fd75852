//! ICMP errors that a hub or relay, as a router, sends about packets that go no further.

use std::collections::VecDeque;
use std::net::IpAddr;

use corridor_base::Time;
use corridor_packet::{Ip, PacketBuf, PacketRef};

use crate::bounds::{HUB_MESSAGES_MAX, TOO_BIG_INTERVAL};
use crate::host::icmp_error::{Stopped, write_stopped};
use crate::host::too_big::write_too_big;

/// ICMP errors: at most one per [`TOO_BIG_INTERVAL`], with an address of the host as source.
#[derive(Debug, Default)]
pub(crate) struct IcmpErrors {
    /// The host's addresses, one per family.
    own_v4: Option<IpAddr>,
    own_v6: Option<IpAddr>,
    written_at: Option<Time>,
    /// Errors to the host, and the one that was handed out last.
    queue: VecDeque<PacketBuf>,
    handed_out: PacketBuf,
}

impl IcmpErrors {
    pub(crate) fn new(own: &[IpAddr]) -> Self {
        let mut errors = IcmpErrors::default();
        errors.set_own(own);
        errors
    }

    /// Sets the host's addresses.
    pub(crate) fn set_own(&mut self, own: &[IpAddr]) {
        self.own_v4 = own.iter().copied().find(IpAddr::is_ipv4);
        self.own_v6 = own.iter().copied().find(IpAddr::is_ipv6);
    }

    /// Writes an error to a packet's sender, unless one was written just now.
    pub(crate) fn write(
        &mut self,
        now: Time,
        packet: PacketRef<'_>,
        why: Stopped,
    ) -> Option<PacketBuf> {
        // The host accepts no packets whose source is its own address.
        let from = if why == Stopped::NoRoute { None } else { self.own(packet) };
        self.make(now, |error| write_stopped(packet, from, why, error))
    }

    /// The same for a packet that is longer than the next hop carries, `mtu` bytes.
    pub(crate) fn write_too_big(
        &mut self,
        now: Time,
        packet: PacketRef<'_>,
        mtu: usize,
    ) -> Option<PacketBuf> {
        let from = self.own(packet);
        self.make(now, |error| write_too_big(packet, from, mtu, error))
    }

    fn make(&mut self, now: Time, write: impl FnOnce(&mut Vec<u8>) -> bool) -> Option<PacketBuf> {
        if self.written_at.is_some_and(|at| now - at < TOO_BIG_INTERVAL) {
            return None;
        }
        let mut error = Vec::new();
        if !write(&mut error) {
            return None;
        }
        self.written_at = Some(now);
        Some(PacketBuf::read(error))
    }

    /// The host's address of the packet's family.
    fn own(&self, packet: PacketRef<'_>) -> Option<IpAddr> {
        if packet.view().ip() == Ip::V6 { self.own_v6 } else { self.own_v4 }
    }

    /// The host has sent a packet to an address without an owner.
    pub(crate) fn queue_no_route(&mut self, now: Time, packet: PacketRef<'_>) {
        if self.queue.len() < HUB_MESSAGES_MAX
            && let Some(error) = self.write(now, packet, Stopped::NoRoute)
        {
            self.queue.push_back(error);
        }
    }

    /// The host has sent a packet that is longer than `mtu` bytes.
    pub(crate) fn queue_too_big(&mut self, now: Time, packet: PacketRef<'_>, mtu: usize) {
        if self.queue.len() < HUB_MESSAGES_MAX
            && let Some(error) = self.make(now, |error| write_too_big(packet, None, mtu, error))
        {
            self.queue.push_back(error);
        }
    }

    /// Whether there is an error for the host.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The next error for the host, valid until the next call.
    pub(crate) fn pop(&mut self) -> Option<PacketRef<'_>> {
        self.handed_out = self.queue.pop_front()?;
        Some(self.handed_out.packet())
    }
}
