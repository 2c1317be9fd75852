//! Which flows of UDP need order: those that take what comes late for lost.
//!
//! QUIC counts a packet as lost once three sent after it were acknowledged (RFC 9002, Section 6.1):
//! what is repaired and comes behind later packets costs it half of its window. Voice, games and
//! frames of video have no use for what waits, and come at once. Nobody says which is which, so
//! flows are told apart by what can be seen of them ([`Signs`]) and by what they do to the queue:
//!
//! 1. A flow that marks its packets as real-time (RFC 4594), or speaks RTP, comes at once.
//! 2. QUIC goes in order while it carries bulk, which is full packets.
//! 3. So does what nobody knows, if it is full packets, and the next one of them found the one
//!    before it still waiting for most of the time. A frame of video is gone before the next one
//!    comes. What keeps a queue standing whatever CoDel drops of it takes nothing for loss.
//! 4. All else comes at once.
//!
//! A flow goes in order at once, which reorders nothing: what goes in order stays behind all that
//! was sent before. It leaves order when it was calm for long, at a pause in which what it sent
//! has arrived, or later without one.

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

/// Packets of this length and longer are full, bytes: QUIC's shortest in bulk is of 1,200 and its
/// headers, and paths carry 1,280 (RFC 8200).
const FULL_LEN: usize = 1_100;
/// Packets of this length and shorter are short, bytes: voice, commands of games, most of DNS.
const SHORT_LEN: usize = 400;
/// How long it counts what a flow did.
const MEMORY: Duration = Duration::from_secs(1);
/// Full packets within [`MEMORY`] from which on an unknown flow carries bulk.
const BULK_FROM: f64 = 12.0;
/// The same of QUIC: more than a client's handshake, and less than its first window, of which none
/// must be taken for lost: slow start would end there.
const QUIC_FROM: f64 = 6.0;
/// Full packets within [`MEMORY`] below which it does not any more.
const BULK_TO: f64 = 3.0;
/// Share of the packets of an unknown flow that are full when it carries bulk: the
/// acknowledgements of a transfer the other way may be as many.
const FULL_SHARE: f64 = 0.5;
/// Share of the time that an unknown flow kept packets waiting, when it carries bulk.
const STANDING_FROM: f64 = 0.4;
/// The same, below which it does not any more.
const STANDING_TO: f64 = 0.2;
/// For how long a flow counts as one that heeds no drops: slow start of one that does may be told
/// of them for a round trip or two.
const UNHEEDING: Duration = Duration::from_millis(500);
/// A flow leaves order at the first pause after it was calm for so long.
const CALM: Duration = Duration::from_secs(5);
/// The same without a pause.
const CALM_MAX: Duration = Duration::from_secs(10);
/// What is known of a flow is forgotten when it was silent for so long: its ports are another's.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// Codepoints that ask for low delay (RFC 4594): telephony, admitted telephony, signals of calls,
/// conferences, interaction; and what builds no queue (RFC 9956).
const REAL_TIME: [u8; 8] = [46, 44, 40, 34, 36, 38, 32, 45];

/// What a packet needs of those who carry it, as far as its flow tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing that is known.
    #[default]
    Unknown,
    /// It is a datagram that has to stay behind those before it.
    Order,
    /// It is short, of a real-time or sparse flow of UDP, and worth nothing when it is repaired
    /// late.
    Soon,
}

/// Flows of UDP, and which of them need order: a bounded table, by flow.
#[derive(Debug)]
pub(crate) struct OrderByNeed {
    /// Newest first.
    sets: Vec<Vec<Flow>>,
    delivery: UdpDelivery,
    /// What was sent has arrived, most likely, when nothing went for so long.
    pause: Duration,
}

/// What is known of a flow.
#[derive(Debug)]
struct Flow {
    hash: u64,
    /// When its last packet came.
    at: Time,
    signs: Signs,
    /// Packets within [`MEMORY`], and the full ones of them.
    packets: f64,
    full: f64,
    /// Share of the time that packets of it waited.
    standing: f64,
    /// When one was dropped that had waited for too long.
    unheeding_at: Option<Time>,
    in_order: bool,
    /// Since when there is no need for order any more.
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

    /// What was sent has arrived, most likely, when nothing went for so long.
    pub(crate) fn set_pause(&mut self, pause: Duration) {
        self.pause = pause;
    }

    /// A packet of a flow has come to the queue, where others of it still wait or none. What it
    /// needs.
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

    /// What any packet of a flow needs by now.
    pub(crate) fn need(&self, hash: u64) -> Need {
        let mut set = self.sets[set_of(hash)].iter();
        match set.any(|flow| flow.hash == hash && flow.in_order) {
            true => Need::Order,
            false => Need::Unknown,
        }
    }

    /// A packet of a flow was dropped because it had waited for too long.
    pub(crate) fn note_unheeding(&mut self, now: Time, hash: u64) {
        let set = &mut self.sets[set_of(hash)];
        if let Some(flow) = set.iter_mut().find(|flow| flow.hash == hash) {
            flow.unheeding_at = Some(now);
        }
    }

    /// The flow's place, at the front of its set; the one that was silent longest makes room.
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

/// How long a datagram that goes in order waits at most for those before it. By then most of what
/// can be repaired is; who takes what is late for lost does so no sooner.
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

    /// Counts a packet, in a memory that fades.
    fn count(&mut self, now: Time, is_full: bool, waits: bool) {
        let gap = (now - self.at).div_duration_f64(MEMORY).min(1.0);
        let kept = 1.0 - gap;
        self.packets = kept * self.packets + 1.0;
        self.full = kept * self.full + f64::from(u8::from(is_full));
        self.standing = kept * self.standing + gap * f64::from(u8::from(waits));
    }

    /// Whether the flow needs order from now on, and whether it still does if it has it.
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
                // What is in between is still what it was.
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

    /// Goes in order, or leaves it when that reorders nothing.
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
