//! The way of a packet, step 5 in window mode: from symbols to packets.
//!
//! 1. A symbol goes to the decoder, and with it whatever it determines.
//! 2. Packets that need no order leave as soon as their symbol is decoded; the others once all
//!    symbols before theirs are decoded, or given up because the deadline ran out. Datagrams among
//!    those do not wait for that long ([`Hold`]).
//! 3. Feedback is due soon where something is missing, and at a lower rate otherwise.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;
use corridor_codec::{CodecError, Coefficients, Field, WindowDecoder, WindowOutcome, widen_id};
use corridor_packet::PacketRef;

use crate::bounds::WINDOW_GAPS_MAX;
use crate::flow::symbol;
use crate::flow::window::ack_timer::AckTimer;
use crate::flow::window::hold::{Hold, Noted, is_ordered_datagram};
use crate::flow::window::needs::Held;
use crate::host::compression::Contexts;
use crate::host::egress::EgressQueue;
use crate::stats::Stats;
use crate::wire::{
    PACKET_PREFIX_LEN, WINDOW_ACK_LEN, WINDOW_BITMAP_LEN_MAX, WindowAck, WindowForm, WindowSymbol,
};

/// Receives one flow: the peer's packets to this station.
pub(crate) struct WindowReceiver {
    decoder: WindowDecoder,
    deadline: Duration,
    ack_timer: AckTimer,
    /// First symbol not delivered or passed over.
    next: u64,
    in_order: InOrder,
    /// When the ids up to each of these ends were first heard of.
    noted: Noted,
    hold: Hold,
    /// Coded symbols that are not used up: at most as many as the window has symbols.
    held: Held,
    /// Symbols that have to come once more, as told last.
    needed: Vec<u64>,
    /// Newest frame with a symbol, and when it came.
    heard: Option<(u32, Time)>,
    /// Symbols that brought nothing.
    useless: u16,
}

impl WindowReceiver {
    pub(crate) fn new(
        field: Field,
        window_size: u16,
        base: u32,
        symbol_size_max: usize,
        deadline: Duration,
        ack_interval: Duration,
    ) -> Result<Self, CodecError> {
        let mut decoder = WindowDecoder::new(field, usize::from(window_size), symbol_size_max)?;
        let next = u64::from(base);
        decoder.reset(next);
        Ok(WindowReceiver {
            decoder,
            deadline,
            ack_timer: AckTimer::new(ack_interval, window_size),
            next,
            in_order: InOrder::new(symbol_size_max),
            noted: Noted::new(),
            hold: Hold::default(),
            held: Held::default(),
            needed: Vec::new(),
            heard: None,
            useless: 0,
        })
    }

    // ---- symbols in, packets out --------------------------------------------------------------

    /// Takes a symbol and delivers what it completes.
    pub(crate) fn handle_symbol(
        &mut self,
        now: Time,
        counter: u32,
        received: &WindowSymbol<'_>,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) {
        self.hold.set_now(now);
        if self.heard.is_none_or(|(highest, _)| counter > highest) {
            self.heard = Some((counter, now));
        }
        self.ack_timer.note_frame();
        let end_before = self.decoder.end();
        let useless_before = self.useless;
        match self.add(counter, received, egress, stats) {
            Ok(WindowOutcome::Innovative) => {
                stats.symbols_innovative += 1;
                match received.form {
                    WindowForm::Coded { first, count } => {
                        stats.symbols_repaired += 1;
                        self.held.add(widen_id(first, end_before) + u64::from(count.get()));
                    }
                    WindowForm::Source { id, .. } => {
                        let is_behind = widen_id(id, end_before) < end_before;
                        stats.symbols_repaired += u64::from(is_behind);
                    }
                }
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
        if self.decoder.end() > end_before {
            self.note_end(now);
        }
        self.deliver(egress, stats);
        self.forget_used_up();
        self.ack_timer.schedule(now, self.is_missing(), self.useless != useless_before);
    }

    /// The sender holds nothing before the window that it names: what is missing there, it has
    /// given up.
    fn add(
        &mut self,
        counter: u32,
        received: &WindowSymbol<'_>,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) -> Result<WindowOutcome, CodecError> {
        let near = self.decoder.end();
        match received.form {
            WindowForm::Source { id, distance } => {
                let id = widen_id(id, near);
                self.follow_sender(id.saturating_sub(u64::from(distance)), egress, stats);
                self.decoder.add_source(id, received.symbol)
            }
            WindowForm::Coded { first, count } => {
                let first = widen_id(first, near);
                self.follow_sender(first, egress, stats);
                let coefficients = Coefficients::Seed(counter);
                let count = usize::from(count.get());
                self.decoder.add_coded(first, count, coefficients, received.symbol)
            }
        }
    }

    fn follow_sender(&mut self, base: u64, egress: &mut EgressQueue, stats: &mut Stats) {
        if base > self.next {
            self.pass_over(base, egress, stats);
        }
        // What is delivered is kept as long as coded symbols may be about it.
        self.decoder.advance_to(base);
    }

    fn note_end(&mut self, now: Time) {
        if self.noted.len() == WINDOW_GAPS_MAX {
            self.noted.pop_front();
        }
        self.noted.push_back((self.decoder.end(), now));
    }

    /// Hands out what is decoded: at once what needs no order, the rest in order.
    fn deliver(&mut self, egress: &mut EgressQueue, stats: &mut Stats) {
        let mut in_turn = None;
        while let Some(id) = self.decoder.poll_decoded() {
            let symbol = self.decoder.symbol(id).unwrap_or_default();
            deliver_overtaking(symbol, egress, stats);
            if self.hold.is_released(id) {
                deliver_datagrams(symbol, egress, stats);
            } else if id > self.next {
                self.hold.note_waits(symbol);
            } else {
                in_turn = Some(id);
            }
        }
        while self.deliver_next(in_turn, egress, stats) {}
        while self.noted.front().is_some_and(|&(end, _)| end <= self.next) {
            self.noted.pop_front();
        }
    }

    /// Hands out the symbol whose turn it is, if it is there; `in_turn` did not wait for it.
    fn deliver_next(
        &mut self,
        in_turn: Option<u64>,
        egress: &mut EgressQueue,
        stats: &mut Stats,
    ) -> bool {
        let Some(symbol) = self.decoder.symbol(self.next) else { return false };
        if in_turn != Some(self.next) {
            self.hold.note_turn(self.next, symbol, &self.noted, stats);
        }
        let is_released = self.hold.is_released(self.next);
        self.in_order.deliver(symbol, is_released, egress, stats);
        self.next += 1;
        true
    }

    /// Coded symbols are used up where all that they are about is decoded, or let go of.
    fn forget_used_up(&mut self) {
        self.held.retain_newest(self.decoder.missing_count() - self.decoder.deficit());
    }

    /// Delivers in order what there is before `until`, and counts what there is not.
    fn pass_over(&mut self, until: u64, egress: &mut EgressQueue, stats: &mut Stats) {
        self.deliver(egress, stats);
        let until_known = until.min(self.decoder.end());
        while self.next < until_known {
            if !self.deliver_next(None, egress, stats) {
                self.in_order.give_up(1, stats);
                self.next += 1;
            }
        }
        self.in_order.give_up(until.saturating_sub(self.next), stats);
        self.next = self.next.max(until);
        self.decoder.advance_to(until);
        self.forget_used_up();
        self.deliver(egress, stats);
    }

    // ---- giving up ----------------------------------------------------------------------------

    /// When the first missing symbol has kept others waiting for too long.
    fn deadline_at(&self) -> Option<Time> {
        let (_, since) = self.noted.front().filter(|_| self.is_missing())?;
        Some(*since + self.deadline)
    }

    /// How long datagrams wait at most for those before them; `None`: as long as everything else.
    pub(crate) fn set_hold(&mut self, limit: Option<Duration>) {
        self.hold.set_limit(limit.map(|limit| limit.min(self.deadline)));
    }

    /// Delivers datagrams that have waited for too long.
    fn release(&mut self, egress: &mut EgressQueue, stats: &mut Stats) {
        while let Some(due) = self.hold.take_due(self.next, &self.noted) {
            for id in due {
                let Some(symbol) = self.decoder.symbol(id) else { continue };
                self.hold.note_overdue(id, symbol, &self.noted, stats);
                deliver_datagrams(symbol, egress, stats);
            }
        }
    }

    /// Fires the delivery deadline: what is missing is passed over, up to what is not yet due.
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

    /// Whether a symbol is missing among those that are known.
    fn is_missing(&self) -> bool {
        self.next < self.decoder.end()
    }

    /// Both directions share the channel, or not.
    pub(crate) fn set_shares_air(&mut self, shares_air: bool) {
        self.ack_timer.set_half_duplex(shares_air);
    }

    /// When feedback is due; `None` when there is nothing new to tell, or no frame of the session
    /// to tell it of.
    pub(crate) fn ack_due(&self) -> Option<Time> {
        self.heard.and(self.ack_timer.due())
    }

    /// Whether there is something to tell that is worth the bytes on a symbol of the other way.
    pub(crate) fn has_news(&self, now: Time) -> bool {
        self.ack_timer.may_piggyback(now, self.is_missing())
    }

    /// The sender's frames are counted anew: feedback about those before is of no use to it.
    pub(crate) fn restart_session(&mut self) {
        self.heard = None;
        self.ack_timer.stop();
    }

    /// Feedback to be sent now.
    pub(crate) fn take_ack(
        &mut self,
        now: Time,
        loss_ratio: f64,
        shares_air: bool,
    ) -> Option<WindowAck> {
        let (counter, heard_at) = self.heard?;
        self.ack_timer.note_sent(now, loss_ratio);
        let span = self.decoder.end().saturating_sub(self.next) as u16;
        let len = self.ack_len() - WINDOW_ACK_LEN;
        let missing = (self.next..self.decoder.end()).filter(|&id| !self.decoder.is_decoded(id));
        self.held.needed(missing, &mut self.needed);
        let mut needed: ArrayVec<u8, WINDOW_BITMAP_LEN_MAX> = (0..len).map(|_| 0).collect();
        for ahead in self.needed.iter().map(|id| (id - self.next) as usize) {
            if let Some(byte) = needed.get_mut(ahead / 8) {
                *byte |= 1 << (ahead % 8);
            }
        }
        Some(WindowAck {
            next: self.next as u32,
            span,
            counter,
            delay: now - heard_at,
            received_at_us: (heard_at.as_nanos() / 1_000) as u32,
            frames: self.ack_timer.frames(),
            loss_ratio,
            deficit: (self.decoder.deficit() as u16).min(span),
            useless: self.useless,
            half_duplex: shares_air,
            needed,
        })
    }

    /// Bytes that feedback takes now.
    pub(crate) fn ack_len(&self) -> usize {
        let span = self.decoder.end().saturating_sub(self.next) as usize;
        WINDOW_ACK_LEN + span.div_ceil(8).min(WINDOW_BITMAP_LEN_MAX)
    }

    /// First symbol not passed, how many are known from there on, and arrivals remembered.
    pub(crate) fn inspect(&self) -> (u64, usize, usize) {
        (self.next, self.decoder.end().saturating_sub(self.next) as usize, self.noted.len())
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        [self.deadline_at(), self.hold.due(self.next, &self.noted)].into_iter().flatten().min()
    }
}

/// Delivers the packets of a symbol that need no order. Those do not go as differences: what they
/// would differ from is not known before its turn.
fn deliver_overtaking(symbol: &[u8], egress: &mut EgressQueue, stats: &mut Stats) {
    for packet in symbol::packets(symbol).filter(|packet| !packet.in_order) {
        if packet.is_difference {
            stats.packets_not_expanded += 1;
        } else {
            deliver_packet(PacketRef::read(packet.bytes), egress, stats);
        }
    }
}

/// Delivers the datagrams of a symbol that would go in order.
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

/// Delivers the packets that need the order, symbol by symbol, and makes their headers whole.
struct InOrder {
    contexts: Contexts,
    /// Longest packet that the sender can have been given: it has to fit a symbol as it is.
    packet_len_max: usize,
    packet: Vec<u8>,
}

impl InOrder {
    fn new(symbol_size_max: usize) -> Self {
        let packet_len_max = symbol_size_max.saturating_sub(PACKET_PREFIX_LEN);
        InOrder { contexts: Contexts::new(), packet_len_max, packet: Vec::new() }
    }

    /// `is_released`: datagrams were delivered before.
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

    /// Symbols are passed over: whatever was in them, what follows cannot be relative to it.
    fn give_up(&mut self, symbols: u64, stats: &mut Stats) {
        stats.symbols_given_up += symbols;
        if symbols > 0 {
            self.contexts.clear();
        }
    }
}
