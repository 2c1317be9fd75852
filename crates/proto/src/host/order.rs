//! Finds the UDP flows that need order: those that take late packets for lost.
//!
//! QUIC declares a packet lost once three packets sent after it were acknowledged (RFC 9002,
//! Section 6.1), so a repaired packet that arrives behind later ones costs it half of its window.
//! Voice, games and video frames are better delivered at once. No flow announces which kind it is,
//! so flows are told apart by what their packets look like ([`Signs`]) and by what they do to the
//! queue:
//!
//! 1. A flow that marks its packets as real-time (RFC 4594), or speaks RTP, is delivered at once.
//! 2. QUIC is delivered in order while it carries bulk data, that is, full packets.
//! 3. So is an unknown flow, if its packets are full and mostly arrive while the one before is
//!    still waiting. A video frame is gone before the next one comes. A flow that keeps a standing
//!    queue whatever CoDel drops does not react to loss, and needs no order.
//! 4. Everything else is delivered at once.
//!
//! Switching a flow to in-order delivery takes effect immediately and reorders nothing: its packets
//! stay behind all that was sent before. A flow leaves order once it has been calm for a while, at
//! a pause in which everything sent has arrived, or later without such a pause.

mod signs;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traffic;

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::{PacketRef, protocol};

use crate::bounds::{
    ORDER_FLOWS_PER_SET, ORDER_HOLD_MARGIN, ORDER_HOLD_ROUND_TRIPS, ORDER_HOLD_UNMEASURED,
    ORDER_SETS,
};
use crate::config::{Delivery, UdpDelivery};
use crate::host::order::signs::{Signs, Speaks};
use crate::link::rtt::RttEstimator;
use crate::stats::Stats;

/// Packets of at least this many bytes are full: QUIC's smallest in bulk transfers have 1,200 bytes
/// plus headers, and every IPv6 path carries 1,280 (RFC 8200).
const FULL_LEN: usize = 1_100;
/// Packets of at most this many bytes are short: voice, game commands, most of DNS.
const SHORT_LEN: usize = 400;
/// Time constant of the counts that follow.
const MEMORY: Duration = Duration::from_secs(1);
/// Full packets within [`MEMORY`] from which an unknown flow counts as bulk.
const BULK_FROM: f64 = 12.0;
/// The same for QUIC: more than a client's handshake sends, but less than its first window, none of
/// which may look lost, or slow start would end there.
const QUIC_FROM: f64 = 6.0;
/// Full packets within [`MEMORY`] below which a flow no longer counts as bulk.
const BULK_TO: f64 = 3.0;
/// Share of full packets from which an unknown flow counts as bulk; acknowledgments of a transfer
/// in the other direction may be as many as the full ones.
const FULL_SHARE: f64 = 0.5;
/// Share of the time with packets waiting from which an unknown flow counts as bulk.
const STANDING_FROM: f64 = 0.4;
/// The same, below which it no longer does.
const STANDING_TO: f64 = 0.2;
/// For this long after such a drop a flow counts as one that does not react to drops: a flow in
/// slow start may need a round trip or two until it does.
const UNHEEDING: Duration = Duration::from_millis(500);
/// A flow leaves order at the first pause after it has been calm for this long,
const CALM: Duration = Duration::from_secs(5);
/// or after this long even without a pause.
const CALM_MAX: Duration = Duration::from_secs(10);
/// A flow that has been silent for this long is forgotten: its ports may be another's by now.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// DSCPs that ask for low delay (RFC 4594): telephony, admitted telephony, call signalling,
/// conferencing, interactive; and non-queue-building (RFC 9956).
const REAL_TIME: [u8; 8] = [46, 44, 40, 34, 36, 38, 32, 45];

/// What a packet needs from the stations that carry it, as far as its flow shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing known.
    #[default]
    Unknown,
    /// A datagram that must not overtake those before it.
    Order,
    /// A short packet of a real-time or sparse UDP flow, which is worthless if it is repaired late.
    Soon,
}

/// The bounded table of UDP flows, and which of them need order.
#[derive(Debug)]
pub(crate) struct OrderByNeed {
    /// Newest first.
    sets: Vec<Vec<Flow>>,
    delivery: UdpDelivery,
    /// Silence after which everything sent before has most likely arrived.
    pause: Duration,
}

/// What is known about a flow.
#[derive(Debug)]
struct Flow {
    hash: u64,
    /// When its last packet came.
    at: Time,
    signs: Signs,
    /// Packets within [`MEMORY`], and how many of them were full.
    packets: f64,
    full: f64,
    /// Share of the time in which packets of it waited.
    standing: f64,
    /// When a packet of it was last dropped for having waited too long.
    unheeding_at: Option<Time>,
    in_order: bool,
    /// Since when it has shown no need for order.
    calm_since: Option<Time>,
}

impl OrderByNeed {
    /// Bytes of the table when it is full.
    pub(crate) const BYTES_MAX: usize =
        ORDER_SETS * (size_of::<Vec<Flow>>() + ORDER_FLOWS_PER_SET * size_of::<Flow>());

    pub(crate) fn new(delivery: UdpDelivery) -> Self {
        let mut sets = Vec::new();
        sets.resize_with(ORDER_SETS, Vec::new);
        OrderByNeed { sets, delivery, pause: Duration::ZERO }
    }

    /// Sets the time of silence after which everything sent before has most likely arrived.
    pub(crate) fn set_pause(&mut self, pause: Duration) {
        self.pause = pause;
    }

    /// Records a packet that has come to the queue; `waits`: others of its flow are still queued.
    /// Returns what it needs.
    pub(crate) fn note(
        &mut self,
        now: Time,
        (hash, waits): (u64, bool),
        packet: PacketRef<'_>,
        stats: &mut Stats,
    ) -> Need {
        let view = packet.view();
        let is_datagram = view.protocol() == protocol::UDP && view.is_whole();
        let Some(payload) = view.payload().filter(|_| is_datagram) else {
            return Need::Unknown;
        };
        let (delivery, pause) = (self.delivery, self.pause);
        let flow = self.flow(now, hash);
        let gap = now - flow.at;
        flow.signs.note(packet.get(payload..).unwrap_or_default());
        flow.count(now, packet.len() >= FULL_LEN, waits);
        let speaks = match REAL_TIME.contains(&view.dscp()) {
            true => Speaks::Rtp,
            false => flow.signs.speaks(),
        };
        let (enters, stays) = flow.needs(now, speaks, delivery);
        let was_in_order = flow.in_order;
        flow.turn(now, gap >= pause, enters, stays);
        flow.at = now;
        stats.flows_ordered += u64::from(flow.in_order && !was_in_order);
        match speaks {
            _ if flow.in_order => Need::Order,
            Speaks::Quic => Need::Unknown,
            Speaks::Unknown if flow.standing >= STANDING_TO => Need::Unknown,
            Speaks::Rtp | Speaks::Unknown if packet.len() <= SHORT_LEN => Need::Soon,
            Speaks::Rtp | Speaks::Unknown => Need::Unknown,
        }
    }

    /// What packets of a flow need at present.
    pub(crate) fn need(&self, hash: u64) -> Need {
        let mut set = self.sets[set_of(hash)].iter();
        match set.any(|flow| flow.hash == hash && flow.in_order) {
            true => Need::Order,
            false => Need::Unknown,
        }
    }

    /// Records that a packet of a flow was dropped because it had waited too long.
    pub(crate) fn note_unheeding(&mut self, now: Time, hash: u64) {
        let set = &mut self.sets[set_of(hash)];
        if let Some(flow) = set.iter_mut().find(|flow| flow.hash == hash) {
            flow.unheeding_at = Some(now);
        }
    }

    /// The flow's entry, moved to the front of its set; in a full set it replaces the one silent
    /// longest.
    fn flow(&mut self, now: Time, hash: u64) -> &mut Flow {
        let set = &mut self.sets[set_of(hash)];
        match set.iter().position(|flow| flow.hash == hash) {
            Some(at) => set[..=at].rotate_right(1),
            None => {
                set.truncate(ORDER_FLOWS_PER_SET - 1);
                set.insert(0, Flow::new(now, hash));
            }
        }
        if now - set[0].at > FORGOTTEN {
            set[0] = Flow::new(now, hash);
        }
        &mut set[0]
    }
}

/// How long a datagram that is delivered in order waits at most for earlier ones. By then most of
/// what can be repaired has been; flows that take late packets for lost decide no sooner.
pub(crate) fn hold_max(rtt: &RttEstimator) -> Duration {
    match rtt.measured() {
        Some(_) => ORDER_HOLD_ROUND_TRIPS * rtt.timeout() + ORDER_HOLD_MARGIN,
        None => ORDER_HOLD_UNMEASURED,
    }
}

fn set_of(hash: u64) -> usize {
    (hash % ORDER_SETS as u64) as usize
}

impl Flow {
    fn new(at: Time, hash: u64) -> Self {
        Flow {
            hash,
            at,
            signs: Signs::default(),
            packets: 0.0,
            full: 0.0,
            standing: 0.0,
            unheeding_at: None,
            in_order: false,
            calm_since: None,
        }
    }

    /// Counts a packet; the counts decay exponentially.
    fn count(&mut self, now: Time, is_full: bool, waits: bool) {
        let gap = (now - self.at).div_duration_f64(MEMORY).min(1.0);
        let kept = 1.0 - gap;
        self.packets = kept * self.packets + 1.0;
        self.full = kept * self.full + f64::from(u8::from(is_full));
        self.standing = kept * self.standing + gap * f64::from(u8::from(waits));
    }

    /// Whether the flow's packets now call for order (to enter it), and whether they still do (to
    /// stay).
    fn needs(&self, now: Time, speaks: Speaks, delivery: UdpDelivery) -> (bool, bool) {
        let (from, to) = (self.full >= BULK_FROM, self.full >= BULK_TO);
        let heeds = self.unheeding_at.is_none_or(|at| now - at > UNHEEDING);
        let fills = self.full >= FULL_SHARE * self.packets;
        let is_bulk = (
            from && fills && self.standing >= STANDING_FROM,
            to && fills && self.standing >= STANDING_TO,
        );
        let as_told = |told: Delivery, found: (bool, bool)| match told {
            Delivery::Auto => found,
            Delivery::InOrder => (true, true),
            Delivery::Immediate => (false, false),
        };
        match speaks {
            Speaks::Rtp => as_told(delivery.real_time, (false, false)),
            Speaks::Quic => as_told(delivery.quic, (self.full >= QUIC_FROM, to)),
            Speaks::Unknown => {
                // In between the two thresholds a flow stays what it was.
                let told = as_told(delivery.other, (false, false));
                let other = (told.0 && !is_bulk.1, told.1 && !is_bulk.0);
                let bulk = match delivery.bulk {
                    Delivery::Immediate => (false, false),
                    Delivery::Auto => (is_bulk.0 && heeds, is_bulk.1 && heeds),
                    Delivery::InOrder => is_bulk,
                };
                (bulk.0 || other.0, bulk.1 || other.1)
            }
        }
    }

    /// Enters order, or leaves it when that reorders nothing.
    fn turn(&mut self, now: Time, paused: bool, enters: bool, stays: bool) {
        if enters || (self.in_order && stays) {
            self.in_order = true;
            self.calm_since = None;
            return;
        }
        // The pause before this packet was calm too.
        let since = *self.calm_since.get_or_insert(self.at);
        let calm = now - since;
        if calm >= CALM_MAX || (calm >= CALM && paused) {
            self.in_order = false;
        }
    }
}
