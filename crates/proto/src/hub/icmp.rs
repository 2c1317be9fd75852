//! What a hub says, as a router, to the senders of packets that go no further.

use std::collections::VecDeque;
use std::net::IpAddr;

use corridor_base::Time;
use corridor_packet::{Ip, PacketBuf, PacketRef};

use crate::bounds::{HUB_MESSAGES_MAX, TOO_BIG_INTERVAL};
use crate::host::icmp_error::{Stopped, write_stopped};

/// ICMP errors: at most one in [`TOO_BIG_INTERVAL`], signed with an address of the host.
#[derive(Debug, Default)]
pub(super) struct IcmpErrors {
    /// The host's addresses, one of each family.
    own_v4: Option<IpAddr>,
    own_v6: Option<IpAddr>,
    written_at: Option<Time>,
    /// Those to the host, and the one that was handed out last.
    queue: VecDeque<PacketBuf>,
    handed_out: PacketBuf,
}

impl IcmpErrors {
    pub(super) fn new(own: &[IpAddr]) -> Self {
        let mut errors = IcmpErrors::default();
        errors.set_own(own);
        errors
    }

    /// The host has these addresses.
    pub(super) fn set_own(&mut self, own: &[IpAddr]) {
        self.own_v4 = own.iter().copied().find(IpAddr::is_ipv4);
        self.own_v6 = own.iter().copied().find(IpAddr::is_ipv6);
    }

    /// An error to a packet's sender, unless there was one just now.
    pub(super) fn write(
        &mut self,
        now: Time,
        packet: PacketRef<'_>,
        why: Stopped,
    ) -> Option<PacketBuf> {
        if self.written_at.is_some_and(|at| now - at < TOO_BIG_INTERVAL) {
            return None;
        }
        let from = match (why, packet.view().ip()) {
            // The host takes no packets with its own address as their source.
            (Stopped::NoRoute, _) => None,
            (_, Ip::V6) => self.own_v6,
            (_, Ip::V4 | Ip::None) => self.own_v4,
        };
        let mut error = Vec::new();
        if !write_stopped(packet, from, why, &mut error) {
            return None;
        }
        self.written_at = Some(now);
        Some(PacketBuf::read(error))
    }

    /// The host has sent a packet to an address that nobody has.
    pub(super) fn queue_no_route(&mut self, now: Time, packet: PacketRef<'_>) {
        if self.queue.len() < HUB_MESSAGES_MAX
            && let Some(error) = self.write(now, packet, Stopped::NoRoute)
        {
            self.queue.push_back(error);
        }
    }

    /// Whether there is an error to the host.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// The next error to the host, valid until the next call.
    pub(super) fn pop(&mut self) -> Option<PacketRef<'_>> {
        self.handed_out = self.queue.pop_front()?;
        Some(self.handed_out.packet())
    }
}
