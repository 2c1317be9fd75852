//! The way of a packet to the host of a relay, step 7: TCP segments wait for those that they have
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
    /// An empty queue; `in_order`: segments may have to wait.
    pub(super) fn new(in_order: bool) -> Self {
        ToHost { in_order: InOrder::new(in_order), egress: EgressQueue::default() }
    }

    /// A buffer for a packet.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.egress.buffer()
    }

    /// Takes a packet, which is delivered when it is its turn.
    pub(super) fn take(&mut self, now: Time, packet: PacketBuf, stats: &mut Stats) {
        self.in_order.take(now, segment(packet.packet()), packet.into_bytes());
        self.hand_over(stats);
    }

    /// Releases packets that have waited too long.
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

/// The TCP segment in a packet, if it has to be delivered in order. A segment without data or FIN
/// need not be: later ones repeat what it says.
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
