//! The way of a packet, step 5 in window mode: from symbols to packets.
//!
//! 1. A symbol goes to the decoder, which returns every symbol that it determines.
//! 2. Packets that need no order are delivered as soon as their symbol is decoded; the others once
//!    all symbols before theirs are decoded, or skipped because the deadline has passed. Datagrams
//!    among them do not wait that long ([`Hold`]).
//! 3. Feedback is due soon if something is missing, and less often otherwise.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;
use corridor_codec::{CodecError, Field, WindowOutcome, widen_id};
use corridor_packet::PacketRef;

use crate::bounds::{WINDOW_GAPS_MAX, WINDOW_SYMBOLS_MAX};
use crate::config::CodingParams;
use crate::flow::symbol;
use crate::flow::window::FLOW;
use crate::flow::window::ack_timer::AckTimer;
use crate::flow::window::hold::{Hold, Noted, is_ordered_datagram};
use crate::flow::window::receive_lanes::{DecoderShape, Place, ReceiveLane, ReceiveLanes};
use crate::host::compression::Contexts;
use crate::host::egress::EgressQueue;
use crate::stats::Stats;
use crate::wire::{
    Lanes, PACKET_PREFIX_LEN, WINDOW_BITMAP_LEN_MAX, WINDOW_CREDIT_LEN, WINDOW_FEEDBACK_LEN,
    WindowFeedback, WindowForm, WindowSymbol,
};

/// Receives one flow: the peer's packets to this station.
pub(crate) struct WindowReceiver {
    lanes: ReceiveLanes,
    deadline: Duration,
    /// Round-trip time as measured by this station's own sender, and the longest time of a frame.
    round_trip: Duration,
    frame_time: Duration,
    ack_timer: AckTimer,
    /// First symbol not delivered or skipped, and the one after the last known one.
    next: u64,
    end: u64,
    turns: Turns,
    in_order: InOrder,
    /// When the symbols up to each of these ends were first heard of.
    noted: Noted,
    hold: Hold,
    /// The symbol that arrived in its turn, and so did not wait.
    in_turn: Option<u64>,
    /// Needed symbols, as places of their lane, as last reported.
    needed: Vec<u64>,
    /// Symbols that were not innovative.
    useless: u16,
    credit: Credit,
}

/// How many new symbols the sender may send, as the next hop has room for them.
#[derive(Debug, Default)]
struct Credit {
    /// Counted from the first symbol not delivered; `None`: no limit.
    symbols: Option<u16>,
    /// The limit that the sender was last told.
    told: Option<u64>,
}

impl Credit {
    /// The first symbol that there is no room for.
    fn limit(&self, next: u64) -> Option<u64> {
        self.symbols.map(|symbols| next + u64::from(symbols))
    }

    /// Whether the sender, which has sent all symbols before `end`, should soon hear of more
    /// credit: it has used up its credit, or soon will have.
    fn is_news(&self, next: u64, end: u64) -> bool {
        let Some(told) = self.told else { return false };
        let room = self.limit(next).map_or(u64::MAX, |limit| limit.saturating_sub(end));
        room / 2 > told.saturating_sub(end)
    }
}

/// Which lane feedback reports on: each in turn, and every other time the lane of the first missing
/// symbol.
#[derive(Debug, Default)]
struct Turns {
    /// The next lane in turn.
    lane: usize,
    /// The next feedback is about the lane of the first missing symbol.
    is_of_next: bool,
    /// Lanes that feedback has not reported on since the last symbol came: nothing else would show
    /// what is missing at the end of a burst.
    untold: usize,
}

impl Turns {
    /// Feedback has reported on one of `count` lanes.
    fn advance(&mut self, count: usize) {
        if !self.is_of_next {
            self.lane = (self.lane + 1) % count;
            self.untold = self.untold.saturating_sub(1);
        }
        self.is_of_next = count > 1 && !self.is_of_next;
    }
}

impl WindowReceiver {
    /// For symbols over `field` of at most `symbol_size_max` bytes, in lanes of this size.
    pub(crate) fn new(
        (field, symbol_size_max): (Field, usize),
        (lane_size, lanes_max): (u16, Lanes),
        base: u32,
        deadline: Duration,
        ack_interval: Duration,
    ) -> Result<Self, CodecError> {
        let next = u64::from(base);
        let shape = DecoderShape { field, lane_size: lane_size.into(), symbol_size_max, lanes_max };
        Ok(WindowReceiver {
            lanes: ReceiveLanes::new(shape, next)?,
            deadline,
            round_trip: Duration::ZERO,
            frame_time: Duration::ZERO,
            ack_timer: AckTimer::new(ack_interval, lane_size),
            next,
            end: next,
            turns: Turns::default(),
            in_order: InOrder::new(symbol_size_max),
            noted: Noted::new(),
            hold: Hold::default(),
            in_turn: None,
            needed: Vec::new(),
            useless: 0,
            credit: Credit::default(),
        })
    }

    // ---- symbols in, packets out --------------------------------------------------------------

    /// Takes a symbol and delivers what it completes.
    pub(crate) fn handle_symbol(
        &mut self,
        now: Time,
        received: &WindowSymbol<'_>,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) {
        self.hold.set_now(now);
        self.ack_timer.note_symbol();
        let (end_before, useless_before) = (self.end, self.useless);
        let is_coded = matches!(received.form, WindowForm::Coded { .. });
        let place = self.place(received.form);
        let is_behind = place.lanes.id(place.lane, place.first) < end_before;
        match self.add(&place, received, egress, stats) {
            Ok(WindowOutcome::Innovative) => {
                stats.symbols_innovative += 1;
                stats.symbols_repaired += u64::from(is_coded || is_behind);
            }
            Ok(WindowOutcome::Dependent) => {
                stats.symbols_dependent += 1;
                self.useless = self.useless.wrapping_add(1);
            }
            Ok(WindowOutcome::Stale | WindowOutcome::Ahead) => {
                stats.symbols_late += 1;
                self.useless = self.useless.wrapping_add(1);
            }
            Err(_) => {
                stats.symbols_refused += 1;
                return;
            }
        }
        if self.end > end_before {
            self.note_end(now);
        }
        self.deliver_in_order(egress, stats);
        self.turns.untold = self.lanes.count();
        self.ack_timer.schedule(now, self.is_missing(), self.useless != useless_before);
    }

    /// The lane and place of a symbol.
    fn place(&self, form: WindowForm) -> Place {
        match form {
            WindowForm::Source { id, distance, lanes } => {
                let id = widen_id(id, self.end);
                let first = lanes.place(id);
                let base = first.saturating_sub(distance.into());
                Place { lanes, lane: lanes.lane(id), base, first, count: 1 }
            }
            WindowForm::Coded { seed, count, lanes } => {
                let id = seed.first(self.end);
                let (base, count) = (lanes.place(id), u64::from(count.get()));
                Place { lanes, lane: lanes.lane(id), base, first: base, count }
            }
        }
    }

    /// Adds a symbol, and delivers from what it determines the packets that need no order.
    fn add(
        &mut self,
        place: &Place,
        received: &WindowSymbol<'_>,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) -> Result<WindowOutcome, CodecError> {
        if let Some(end) = self.lanes.outlived(place, self.next) {
            self.pass_over(end, egress, stats);
        }
        self.follow_sender(place, egress, stats);
        let Some(lane) = self.lanes.lane(place, self.next) else {
            return Ok(WindowOutcome::Stale);
        };
        let seed = match received.form {
            WindowForm::Source { .. } => None,
            WindowForm::Coded { seed, .. } => Some(seed.value()),
        };
        let outcome = lane.add(place, seed, received.symbol);
        let (next, hold, in_turn) = (self.next, &mut self.hold, &mut self.in_turn);
        lane.each_fresh(&mut |at, symbol| {
            let id = place.lanes.id(place.lane, at);
            deliver_fresh((id, symbol), next, (hold, in_turn), egress, stats);
        });
        lane.forget_used_up();
        let end = lane.end();
        if let Some(last) = end.checked_sub(1).filter(|&last| last >= lane.first_base) {
            self.end = self.end.max(place.lanes.id(place.lane, last) + 1);
        }
        outcome
    }

    /// Skips what the sender has given up. It holds nothing of the symbol's lane before the place
    /// that the symbol states, and nothing of the other lanes that is older by the number of lanes.
    /// Where lanes have just begun, this is not known for earlier symbols; there it cannot hold
    /// more than the longest window.
    fn follow_sender(&mut self, place: &Place, egress: &mut EgressQueue, stats: &mut Stats) {
        let Place { lanes, lane, .. } = *place;
        let is_known = self.lanes.lane(place, self.next).map(|lane| place.base > lane.first_base);
        let base = match is_known {
            Some(true) => lanes.id(lane, place.base).saturating_sub(lanes.count() as u64 - 1),
            Some(false) => place.last_id().saturating_sub(WINDOW_SYMBOLS_MAX as u64 - 1),
            None => return,
        };
        if base > self.next {
            self.pass_over(base, egress, stats);
        }
    }

    fn note_end(&mut self, now: Time) {
        let spare = WINDOW_GAPS_MAX - WINDOW_SYMBOLS_MAX;
        if self.noted.len() >= self.lanes.symbols_max() + spare {
            self.noted.pop_front();
        }
        self.noted.push_back((self.end, now));
    }

    /// Delivers in order what is decoded.
    fn deliver_in_order(&mut self, egress: &mut EgressQueue, stats: &mut Stats) {
        while self.deliver_next(egress, stats) {}
        self.in_turn = None;
        self.lanes.forget_done(self.next);
        if !self.is_missing() {
            // A lying sender may have made the decoder drop symbols; these no longer wait.
            self.hold.note_none_waits();
        }
        while self.noted.front().is_some_and(|&(end, _)| end <= self.next) {
            self.noted.pop_front();
        }
    }

    /// Delivers the next symbol, if it is decoded.
    fn deliver_next(&mut self, egress: &mut EgressQueue, stats: &mut Stats) -> bool {
        let Some(symbol) = self.lanes.symbol(self.next) else { return false };
        if self.in_turn != Some(self.next) {
            self.hold.note_turn(self.next, symbol, &self.noted, stats);
        }
        let is_released = self.hold.is_released(self.next);
        self.in_order.deliver(symbol, is_released, egress, stats);
        self.next += 1;
        true
    }

    /// Delivers in order what is decoded before `until`, and counts the rest as skipped.
    fn pass_over(&mut self, until: u64, egress: &mut EgressQueue, stats: &mut Stats) {
        self.deliver_in_order(egress, stats);
        while self.next < until {
            let decoded = self.lanes.next_decoded(self.next).map_or(until, |id| id.min(until));
            self.in_order.give_up(decoded - self.next, stats);
            self.next = decoded;
            while self.next < until && self.deliver_next(egress, stats) {}
        }
        self.end = self.end.max(self.next);
        self.lanes.advance_to(until);
        let (next, hold, in_turn) = (self.next, &mut self.hold, &mut self.in_turn);
        self.lanes.each_fresh(|id, symbol| {
            deliver_fresh((id, symbol), next, (hold, in_turn), egress, stats);
        });
        self.deliver_in_order(egress, stats);
    }

    // ---- skipping -----------------------------------------------------------------------------

    /// When the first missing symbol will have kept others waiting too long.
    fn deadline_at(&self) -> Option<Time> {
        let (_, since) = self.noted.front().filter(|_| self.is_missing())?;
        // If a round trip is known, a frame's time is part of it.
        let most = if self.round_trip.is_zero() { Duration::MAX } else { self.round_trip };
        let takes = (self.round_trip, self.frame_time.min(most));
        Some(*since + CodingParams::deadline(self.deadline, self.lanes.count(), takes))
    }

    /// Limits how long datagrams wait for earlier ones; `None`: as long as everything else.
    pub(crate) fn set_hold(&mut self, limit: Option<Duration>) {
        self.hold.set_limit(limit.map(|limit| limit.min(self.deadline)));
    }

    /// Delivers datagrams that have waited too long.
    fn release(&mut self, egress: &mut EgressQueue, stats: &mut Stats) {
        while let Some(due) = self.hold.take_due(self.next, &self.noted) {
            for id in due {
                let Some(symbol) = self.lanes.symbol(id) else { continue };
                self.hold.note_overdue(id, symbol, &self.noted, stats);
                deliver_datagrams(symbol, egress, stats);
            }
        }
    }

    /// Applies the delivery deadline: skips missing symbols, up to those not yet due.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) {
        self.hold.set_now(now);
        self.release(egress, stats);
        while self.deadline_at().is_some_and(|at| at <= now) {
            let Some(&(end, _)) = self.noted.front() else { return };
            self.pass_over(end, egress, stats);
            self.ack_timer.expire(now);
        }
    }

    // ---- feedback -----------------------------------------------------------------------------

    /// Whether a known symbol is missing.
    fn is_missing(&self) -> bool {
        self.next < self.end
    }

    /// Sets the round-trip time.
    pub(crate) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// Sets the longest time of a frame on the link that the symbols arrive on; zero: unknown.
    pub(crate) fn set_frame_time(&mut self, frame_time: Duration) {
        self.frame_time = frame_time;
    }

    /// Limits how many new symbols the sender may send, counted from the first one not delivered;
    /// `None`: no limit. Returns whether the sender should hear of this soon.
    pub(crate) fn set_credit(&mut self, now: Time, symbols: Option<u16>) -> bool {
        self.credit.symbols = symbols;
        let is_news = self.credit.is_news(self.next, self.end);
        if is_news {
            self.ack_timer.hurry(now);
        }
        is_news
    }

    /// Sets whether the channel is shared.
    pub(crate) fn set_shares_air(&mut self, shares_air: bool) {
        self.ack_timer.set_half_duplex(shares_air);
    }

    /// When feedback is due; `None`: there is nothing new to report.
    pub(crate) fn ack_due(&self) -> Option<Time> {
        self.ack_timer.due()
    }

    /// Whether feedback is worth the bytes that it would add to a symbol of the other direction.
    pub(crate) fn has_news(&self, now: Time) -> bool {
        self.ack_timer.may_piggyback(now, self.is_missing())
    }

    /// Cancels feedback until there is something new.
    pub(crate) fn drop_feedback(&mut self) {
        self.ack_timer.stop();
    }

    /// The feedback to send now; `loss_ratio`: of frames.
    pub(crate) fn take_feedback(&mut self, now: Time, loss_ratio: f64) -> WindowFeedback {
        self.ack_timer.note_sent(now, loss_ratio);
        let len = self.bitmap_len();
        self.credit.told = self.credit.limit(self.next);
        let (lanes, lane, known) = self.lanes.told(self.turn());
        let first = lanes.first_place(lane, self.next);
        let span = Self::span_of(known, first);
        self.needed.clear();
        known.iter().for_each(|known| known.needed(first, &mut self.needed));
        let mut needed: ArrayVec<u8, WINDOW_BITMAP_LEN_MAX> = (0..len).map(|_| 0).collect();
        for ahead in self.needed.iter().map(|place| (place - first) as usize) {
            if let Some(byte) = needed.get_mut(ahead / 8) {
                *byte |= 1 << (ahead % 8);
            }
        }
        let deficit = known.map_or(0, ReceiveLane::deficit);
        let feedback = WindowFeedback {
            flow: FLOW,
            next: self.next as u32,
            lanes,
            lane: lane as u8,
            span,
            deficit: (deficit as u16).min(span),
            useless: self.useless,
            needed,
            credit: self.credit.symbols,
        };
        self.turns.advance(self.lanes.count());
        if self.turns.untold > 0 && self.is_missing() {
            self.ack_timer.schedule(now, true, false);
        }
        feedback
    }

    /// The lane that feedback reports on now.
    fn turn(&self) -> usize {
        let of_next = self.turns.is_of_next && self.is_missing();
        if of_next { self.lanes.turn_of(self.next) } else { self.turns.lane }
    }

    /// How many places from `first` on are known.
    fn span_of(lane: Option<&ReceiveLane>, first: u64) -> u16 {
        let span = lane.map_or(0, |lane| lane.end().saturating_sub(first));
        span.min(WindowFeedback::SPAN_MAX.into()) as u16
    }

    /// Bytes that feedback takes now.
    pub(crate) fn feedback_len(&self) -> usize {
        let credit_len = if self.credit.symbols.is_some() { WINDOW_CREDIT_LEN } else { 0 };
        WINDOW_FEEDBACK_LEN + self.bitmap_len() + credit_len
    }

    fn bitmap_len(&self) -> usize {
        let (lanes, lane, known) = self.lanes.told(self.turn());
        let span = usize::from(Self::span_of(known, lanes.first_place(lane, self.next)));
        span.div_ceil(8).min(WINDOW_BITMAP_LEN_MAX)
    }

    /// First symbol not delivered or skipped, number known from there on, and arrival times kept.
    pub(crate) fn inspect(&self) -> (u64, usize, usize) {
        (self.next, self.end.saturating_sub(self.next) as usize, self.noted.len())
    }

    /// Bytes of decoders and of what is known about symbols.
    pub(crate) fn bytes(&self) -> usize {
        let noted = self.noted.capacity() * size_of::<(u64, Time)>();
        self.lanes.bytes() + noted + self.needed.capacity() * size_of::<u64>()
    }

    /// Number of decoders.
    #[cfg(test)]
    pub(crate) fn decoders(&self) -> usize {
        self.lanes.decoders()
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        [self.deadline_at(), self.hold.due(self.next, &self.noted)].into_iter().flatten().min()
    }
}

/// Delivers from a newly decoded symbol what does not have to wait for earlier ones.
fn deliver_fresh(
    (id, symbol): (u64, &[u8]),
    next: u64,
    (hold, in_turn): (&mut Hold, &mut Option<u64>),
    egress: &mut EgressQueue,
    stats: &mut Stats,
) {
    deliver_overtaking(symbol, egress, stats);
    if hold.is_released(id) {
        deliver_datagrams(symbol, egress, stats);
    } else if id > next {
        hold.note_waits(symbol);
    } else {
        *in_turn = Some(id);
    }
}

/// Delivers a symbol's packets that need no order. These are never sent as differences, because the
/// context would not be known before their turn.
fn deliver_overtaking(symbol: &[u8], egress: &mut EgressQueue, stats: &mut Stats) {
    for packet in symbol::packets(symbol).filter(|packet| !packet.in_order) {
        if packet.is_difference {
            stats.packets_not_expanded += 1;
        } else {
            deliver_packet(PacketRef::read(packet.bytes), egress, stats);
        }
    }
}

/// Delivers a symbol's datagrams that would be delivered in order.
fn deliver_datagrams(symbol: &[u8], egress: &mut EgressQueue, stats: &mut Stats) {
    for packet in symbol::packets(symbol).filter(is_ordered_datagram) {
        deliver_packet(PacketRef::read(packet.bytes), egress, stats);
    }
}

fn deliver_packet(packet: PacketRef<'_>, egress: &mut EgressQueue, stats: &mut Stats) {
    egress.push(packet);
    stats.packets_delivered += 1;
    stats.bytes_delivered += packet.len() as u64;
}

/// Delivers the packets that need order, symbol by symbol, and restores their headers.
struct InOrder {
    contexts: Contexts,
    /// Longest packet that the sender can have accepted: it has to fit a symbol uncompressed.
    packet_len_max: usize,
    packet: Vec<u8>,
}

impl InOrder {
    fn new(symbol_size_max: usize) -> Self {
        let packet_len_max = symbol_size_max.saturating_sub(PACKET_PREFIX_LEN);
        InOrder { contexts: Contexts::new(), packet_len_max, packet: Vec::new() }
    }

    /// `is_released`: the datagrams were delivered before.
    fn deliver(
        &mut self,
        symbol: &[u8],
        is_released: bool,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) {
        for packet in symbol::packets(symbol).filter(|packet| packet.in_order) {
            if is_released && is_ordered_datagram(&packet) {
                continue;
            }
            if !packet.is_difference {
                let packet = PacketRef::read(packet.bytes);
                deliver_packet(packet, egress, stats);
                self.contexts.note_verbatim(packet);
                continue;
            }
            let (most, whole) = (self.packet_len_max, &mut self.packet);
            match self.contexts.expand(packet.bytes, most, whole) {
                Some(()) => deliver_packet(PacketRef::read(whole), egress, stats),
                None => stats.packets_not_expanded += 1,
            }
        }
    }

    /// Symbols are skipped. They may have changed the contexts, so later differences cannot be
    /// expanded.
    fn give_up(&mut self, symbols: u64, stats: &mut Stats) {
        stats.symbols_given_up += symbols;
        if symbols > 0 {
            self.contexts.clear();
        }
    }
}
