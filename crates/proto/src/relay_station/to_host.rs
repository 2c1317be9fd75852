//! The way of a packet to the host of a relay, step 7: TCP's segments wait for those that they have
//! overtaken ([`corridor_relay::in_order`]).

use corridor_base::Time;
use corridor_packet::{End, PacketBuf, PacketRef};
use corridor_relay::in_order::{InOrder, Segment, SegmentKind};

use crate::host::egress::EgressQueue;
use crate::stats::Stats;

/// Packets for the host.
pub(super) struct ToHost {
    pub(super) in_order: InOrder<(End, End), Vec<u8>>,
    egress: EgressQueue,
}

impl ToHost {
    /// Nothing has come yet; segments may have to wait.
    pub(super) fn new(in_order: bool) -> Self {
        ToHost { in_order: InOrder::new(in_order), egress: EgressQueue::default() }
    }

    /// A buffer for a packet.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.egress.buffer()
    }

    /// Takes a packet, which goes to the host when it is its turn.
    pub(super) fn take(&mut self, now: Time, packet: PacketBuf, stats: &mut Stats) {
        self.in_order.take(now, segment(packet.packet()), packet.into_bytes());
        self.hand_over(stats);
    }

    /// Those that have waited for too long go on.
    pub(super) fn handle_timeout(&mut self, now: Time, stats: &mut Stats) {
        self.in_order.handle_timeout(now);
        self.hand_over(stats);
    }

    /// When the first of them has.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.in_order.poll_timeout()
    }

    /// The next packet, valid until the next call.
    pub(super) fn pop(&mut self) -> Option<PacketRef<'_>> {
        self.egress.pop()?;
        Some(self.egress.current())
    }

    fn hand_over(&mut self, stats: &mut Stats) {
        while let Some(packet) = self.in_order.poll() {
            stats.packets_delivered += 1;
            stats.bytes_delivered += packet.len() as u64;
            self.egress.push_made(packet);
        }
    }
}

/// What a packet is of TCP, if it has to be in order: what has neither data nor an end of them says
/// nothing that is not said again.
fn segment(packet: PacketRef<'_>) -> Option<Segment<(End, End)>> {
    let tcp = packet.tcp()?;
    let kind = match () {
        () if tcp.is_rst() => SegmentKind::Breaks,
        () if tcp.is_syn() => SegmentKind::Begins,
        () => SegmentKind::Brings,
    };
    let (begin, end) = (tcp.sequence, tcp.sequence_end());
    let counts = kind != SegmentKind::Brings || begin != end;
    let stamp = tcp.options().timestamps.map(|(own, _)| own);
    counts.then_some(Segment { flow: (tcp.from, tcp.to), kind, begin, end, stamp })
}
