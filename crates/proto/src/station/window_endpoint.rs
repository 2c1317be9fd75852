//! One end of a link in window mode: sends what its host sends, receives what the peer sends.

use core::time::Duration;

use corridor_base::{Stream, Time};

use super::role::Role;
use super::{Destination, Shared};
use crate::config::{Delivery, LinkErrors, Mode, StationConfig, StationId};
use crate::flow::window::FLOW;
use crate::flow::window::receive::WindowReceiver;
use crate::flow::window::send::WindowSender;
use crate::host::order;
use crate::inspect::{Inspection, WindowView};
use crate::link::arrivals::Arrivals;
use crate::link::handshake::{Joined, Opened};
use crate::link::pacer::{PAIR_DIVISOR, Pacer};
use crate::link::rtt::RttEstimator;
use crate::link::usage::{Heard, LinkUsage};
use crate::wire::{
    Chunk, Kind, LinkFeedback, OVERHEAD_LEN, PathId, WindowFeedback, WindowSymbol, chunk_len,
};

/// The sender and the receiver of an end, and the link that both use.
pub(crate) struct WindowEndpoint {
    peer: StationId,
    link: LinkUsage,
    arrivals: Arrivals,
    sender: WindowSender,
    /// Created when the peer joins in window mode.
    receiver: Option<WindowReceiver>,
    /// What the frame being read, with this counter, has reported about the link.
    heard: Option<(u32, Heard)>,
    body: Vec<u8>,
    /// A chunk of feedback, and whether it is due and did not fit the frame before.
    ack: Vec<u8>,
    ack_follows: bool,
    /// Until when feedback that is due waits for a symbol with room.
    ack_waits_until: Option<Time>,
    ack_turn: AckTurn,
    pairing: Pairing,
}

/// Which frame with a symbol left last: when, and its counter. Pairs of frames that leave together
/// show the path's capacity (`link/path_control/dispersion.rs`).
#[derive(Clone, Copy, Debug, Default)]
struct Pairing(Option<(Time, u32)>);

impl Pairing {
    /// Records a frame with a symbol that leaves now. Returns whether it does so with the one
    /// before it: within a fraction of the time that the path takes for one.
    fn note(&mut self, now: Time, counter: u32, frame_time: Duration) -> bool {
        let last = self.0.replace((now, counter));
        last.is_some_and(|(at, before)| {
            counter.checked_sub(1) == Some(before) && now - at < frame_time / PAIR_DIVISOR
        })
    }
}

/// Feedback that follows a symbol waits for as long as the path takes for that symbol: behind a
/// buffer of two frames, feedback sent right after a symbol would be dropped, or would cause the
/// next symbol to be.
#[derive(Clone, Copy, Debug, Default)]
struct AckTurn {
    /// When it is sent at the latest, and when to check again.
    until: Option<Time>,
    at: Option<Time>,
}

impl AckTurn {
    /// Whether feedback still waits: until the pacer permits the next frame, but no longer than the
    /// path takes for one.
    fn waits(&mut self, now: Time, pacer: &Pacer, frame_time: impl FnOnce() -> Duration) -> bool {
        self.at = None;
        if now >= pacer.due_at() {
            return false;
        }
        let latest = *self.until.get_or_insert_with(|| now + frame_time());
        let turn = pacer.due_at().min(latest);
        self.at = Some(turn).filter(|&turn| turn > now);
        self.at.is_some()
    }
}

/// Fraction of the feedback interval for which feedback waits for a symbol with room: a coded
/// symbol is as long as the longest in its window, and the next uncoded one is usually shorter.
const ACK_WAIT_DIVISOR: u32 = 4;

impl WindowEndpoint {
    pub(crate) fn new(
        config: &StationConfig,
        peer: StationId,
        rng: Stream,
        now: Time,
    ) -> Result<Self, corridor_codec::CodecError> {
        let symbol_size_max = usize::from(config.coding.symbol_size);
        Ok(WindowEndpoint {
            peer,
            link: LinkUsage::new(&config.coding, symbol_size_max, now),
            arrivals: Arrivals::default(),
            sender: WindowSender::new(config.coding, symbol_size_max, rng, now)?,
            receiver: None,
            heard: None,
            body: Vec::new(),
            ack: Vec::new(),
            ack_follows: false,
            ack_waits_until: None,
            ack_turn: AckTurn::default(),
            pairing: Pairing::default(),
        })
    }

    /// Whether symbols can be exchanged: the peer is up, and uses window mode too.
    fn is_up(&self, shared: &Shared) -> bool {
        self.receiver.is_some() && shared.group.is_up(self.peer)
    }

    // ---- receiving ----------------------------------------------------------------------------

    /// What the peer reports about the link, if it is about frames of this session.
    fn hear(&self, shared: &Shared, mut told: LinkFeedback, peer_counter: u32) -> Option<Heard> {
        if told.path != PathId::default() || told.counter >= shared.group.next_counter() {
            return None;
        }
        if let LinkErrors::Fixed(ratios) = shared.config.link_errors {
            told.loss_ratio = ratios.e3;
        }
        Some(Heard::new(told, peer_counter))
    }

    fn handle_feedback(
        &mut self,
        shared: &mut Shared,
        now: Time,
        heard: &Heard,
        feedback: &WindowFeedback,
    ) {
        if feedback.flow != FLOW {
            return;
        }
        let link = &mut self.link;
        self.sender.handle_feedback(now, feedback, (link, heard), &mut shared.stats);
        let shares_air = self.link.shares_air();
        let round_trip = self.link.rtt().smoothed();
        let hold = hold_max(shared.config.coding.delivery, self.link.rtt());
        self.receiver.iter_mut().for_each(|receiver| {
            receiver.set_shares_air(shares_air);
            receiver.set_round_trip(round_trip);
            receiver.set_hold(hold);
        });
        self.look_at_length(shared, now);
        let air = self.sender.take_air(now, &self.link);
        shared.ingress.note_air(self.link.rtt(), air);
        shared.ingress.set_lanes(self.sender.lanes());
        if self.set_rate(shared)
            && let Some(pause) = self.link.take_pause()
        {
            shared.pacer.pause(now, pause);
        }
    }

    /// Has the path's MTU checked if long frames seem not to arrive.
    fn look_at_length(&self, shared: &mut Shared, now: Time) {
        if self.is_up(shared) && self.link.suspects_length(now) {
            shared.path.hint(now);
        }
    }

    // ---- sending ------------------------------------------------------------------------------

    /// Whether feedback that is due waits briefly for a symbol with room; only once.
    fn waits_for_room(&mut self, shared: &Shared, now: Time) -> bool {
        let waits = self.ack_waits_until.is_none();
        if waits {
            self.ack_waits_until = Some(now + shared.config.coding.ack_interval / ACK_WAIT_DIVISOR);
        }
        waits
    }

    /// Whether feedback that is due waits until the frame before it has left.
    fn waits_for_turn(&mut self, shared: &mut Shared, now: Time) -> bool {
        self.ack_turn.waits(now, &shared.pacer, || self.link.frame_time())
    }

    /// Whether a symbol may leave before the measured rate allows it: the path is idle. A path that
    /// has become faster, on which a frame takes longer than a round trip, is thus used at once.
    fn may_leave_early(&self, shared: &Shared) -> bool {
        shared.config.rate_bps.is_none() && !shared.cut.is_open() && self.link.is_idle()
    }

    /// Makes a symbol's body, or that of a part of one, in `self.body`, if there is one to send;
    /// returns its kind.
    fn poll_symbol(&mut self, shared: &mut Shared, now: Time, ack_due: bool) -> Option<Kind> {
        let is_early = !shared.pacer.allows(now);
        if is_early {
            if shared.ingress.is_empty() {
                return None;
            }
            self.link.note_limited();
            if !self.may_leave_early(shared) {
                return None;
            }
        }
        let in_burst = shared.pacer.is_in_burst() && !shared.ingress.is_empty();
        if in_burst {
            self.link.note_limited();
        }
        self.link.begin(shared.group.next_counter(), shared.stats.bytes_sent);
        if shared.cut.is_open() {
            let is_last = shared.next_part(&mut self.body);
            self.sender.note_part(now, &mut self.link, self.body.len(), is_last);
            return Some(Kind::Part);
        }
        self.link.set_body_len_max(shared.body_len_max());
        self.body.clear();
        let (ingress, stats) = (&mut shared.ingress, &mut shared.stats);
        let written =
            self.sender.poll(now, (&mut self.link, ack_due), ingress, &mut self.body, stats);
        if !written {
            shared.pacer.note_idle();
            if in_burst {
                self.link.note_unlimited();
            }
            return None;
        }
        if is_early {
            shared.pacer.grant(now);
        }
        Some(shared.cut(Kind::Window, &mut self.body))
    }

    fn send_symbol(
        &mut self,
        shared: &mut Shared,
        now: Time,
        kind: Kind,
        (ack_due, has_news): (bool, bool),
    ) {
        let taken = OVERHEAD_LEN + self.body.len();
        let room = shared.path.safe_frame_len().saturating_sub(taken);
        // News that are not due wait for a symbol with room rather than take a frame of their own;
        // what is due does not wait long.
        let would_ride = has_news || self.ack_waits_until.is_some();
        let fits = (would_ride || ack_due)
            && self.receiver.as_ref().is_some_and(|receiver| {
                let of_link = LinkFeedback::len(self.arrivals.lateness(), self.arrivals.has_pair());
                chunk_len(of_link) + chunk_len(receiver.feedback_len()) <= room
            });
        let waits = ack_due && !fits && self.waits_for_room(shared, now);
        self.ack_follows = ack_due && !fits && !waits;
        if self.ack_follows {
            self.ack_turn = AckTurn::default(); // It waits for this frame, not for one before.
        }
        let piggyback = if fits { self.make_ack(shared, now) } else { None };
        shared.group.begin(&mut shared.frame);
        if let Some((of_link, of_window)) = piggyback {
            self.write_of_link(&of_link, &mut shared.frame);
            self.ack.clear();
            of_window.write(&mut self.ack);
            Kind::WindowAck.write(&self.ack, &mut shared.frame);
            shared.stats.acks_piggybacked += 1;
        }
        let counter = shared.group.next_counter();
        let is_second = self.pairing.note(now, counter, self.link.frame_time());
        if is_second && kind == Kind::Window && self.link.is_usual_len(self.body.len()) {
            WindowSymbol::pair(&mut self.body);
        }
        kind.begin_last(&mut shared.frame);
        shared.frame.extend_from_slice(&self.body);
        self.seal(shared);
    }

    fn write_of_link(&mut self, of_link: &LinkFeedback, frame: &mut Vec<u8>) {
        self.ack.clear();
        of_link.write(&mut self.ack);
        Kind::Link.write(&self.ack, frame);
    }

    fn send_ack(
        &mut self,
        shared: &mut Shared,
        (of_link, of_window): &(LinkFeedback, WindowFeedback),
    ) -> Destination {
        shared.group.begin(&mut shared.frame);
        self.write_of_link(of_link, &mut shared.frame);
        Kind::WindowAck.begin_last(&mut shared.frame);
        of_window.write(&mut shared.frame);
        self.seal(shared);
        shared.stats.ack_frames_sent += 1;
        Destination::Station(self.peer)
    }

    /// The newest feedback, if there is any.
    fn make_ack(&mut self, shared: &Shared, now: Time) -> Option<(LinkFeedback, WindowFeedback)> {
        let loss_ratio = shared.group.peer(self.peer).map_or(0.0, |peer| peer.link.ratio());
        let receiver = self.receiver.as_mut()?;
        let of_link = self.arrivals.feedback(now, loss_ratio, self.link.finds_air_shared())?;
        self.ack_waits_until = None;
        self.ack_turn = AckTurn::default();
        Some((of_link, receiver.take_feedback(now, loss_ratio)))
    }

    /// When feedback has to be sent. Without a received frame of the session there is nothing to
    /// report.
    fn ack_due(&self) -> Option<Time> {
        if !self.arrivals.has_any() {
            return None;
        }
        let due = self.receiver.as_ref().and_then(WindowReceiver::ack_due)?;
        Some([self.ack_waits_until, self.ack_turn.at].into_iter().flatten().fold(due, Time::max))
    }

    fn seal(&mut self, shared: &mut Shared) {
        shared.seal();
        if shared.group.next_counter() == 0 {
            self.restart_session();
        }
    }
}

impl Role for WindowEndpoint {
    fn base(&self) -> u32 {
        self.sender.base()
    }

    fn round_trip(&self) -> Option<Duration> {
        self.link.rtt().measured()
    }

    fn inspect(&self, _: &Shared, view: &mut Inspection) {
        let (sent, in_flight_lane) = self.sender.bytes_and_log();
        view.held.sent = sent + self.link.log().bytes();
        view.held.received =
            self.receiver.as_ref().map_or(0, WindowReceiver::bytes) + view.parts_bytes();
        let (held, log) = (self.sender.held(), self.link.log());
        let in_flight = log.len();
        let receiver = self.receiver.as_ref().map(WindowReceiver::inspect);
        let (span, noted) = receiver.map_or((0, 0), |(_, span, noted)| (span, noted));
        let next = receiver.map(|(next, ..)| next);
        view.window = Some(WindowView { held, in_flight, in_flight_lane, next, span, noted });
    }

    fn take_joined(&mut self, shared: &mut Shared, now: Time, joined: &Joined) {
        if joined.peer != self.peer {
            return;
        }
        self.heard = None;
        if !joined.new_instance {
            // The same run under new keys: its frame counters restart.
            self.ack_follows = false;
            self.arrivals.restart_session();
            self.receiver.iter_mut().for_each(|receiver| {
                receiver.drop_feedback();
                receiver.set_frame_time(Duration::ZERO);
            });
            return;
        }
        if joined.first {
            self.set_rate(shared); // Before there is any feedback.
        }
        let coding = &shared.config.coding;
        self.arrivals = Arrivals::default();
        self.receiver = if joined.mode == Mode::Window {
            WindowReceiver::new(
                (joined.field, usize::from(joined.symbol_size)),
                (joined.block_size.min(joined.taken.lane_size), joined.taken.lanes),
                joined.base,
                coding.delivery_deadline,
                coding.ack_interval,
            )
            .ok()
            .map(|mut receiver| {
                receiver.set_shares_air(self.link.shares_air());
                receiver.set_round_trip(self.link.rtt().smoothed());
                receiver.set_hold(hold_max(coding.delivery, self.link.rtt()));
                receiver
            })
        } else {
            None
        };
        self.ack_follows = false;
        self.link.expect_feedback(joined.feedback.unwrap_or(coding.ack_interval));
        self.link.restart_peer();
        self.sender.restart_peer(now, &self.link, joined.takes, &mut shared.stats);
    }

    fn set_rate(&self, shared: &mut Shared) -> bool {
        let follows = shared.config.rate_bps.is_none();
        if follows {
            let rate_bps = (8.0 * self.link.bytes_per_s()) as u64;
            shared.pacer.set_rate(rate_bps);
            shared.pacer.set_pairs(self.link.singles_between_pairs(), self.link.long_frame_len());
            shared.stats.rate_bps = Some(rate_bps);
        }
        follows
    }

    fn limit_symbols(&mut self, now: Time, len: usize) {
        self.sender.limit_symbols(now, len);
    }

    fn handle_chunk(
        &mut self,
        shared: &mut Shared,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
    ) -> Option<()> {
        if opened.from != self.peer {
            return None;
        }
        self.sender.note_heard(&self.link);
        let counter = opened.header.counter;
        match chunk.kind {
            Kind::Window => {
                let symbol =
                    WindowSymbol::parse(chunk.body).filter(|symbol| symbol.flow == FLOW)?;
                let receiver = self.receiver.as_mut()?;
                if symbol.is_paired {
                    self.arrivals.note_paired(now, counter);
                }
                self.arrivals.note(now, counter);
                receiver.set_frame_time(self.arrivals.frame_time());
                receiver.handle_symbol(now, &symbol, &mut shared.egress, &mut shared.stats);
            }
            Kind::Link => {
                let heard = self.hear(shared, chunk.read(LinkFeedback::parse)?, counter);
                self.heard = heard.map(|heard| (counter, heard));
            }
            Kind::WindowAck => {
                let feedback = chunk.read(WindowFeedback::parse)?;
                let heard = self.heard.take().filter(|&(frame, _)| frame == counter);
                if let Some((_, heard)) = heard {
                    self.handle_feedback(shared, now, &heard, &feedback);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// A frame with a part of a symbol was received. The symbol counts with its last part.
    fn note_part(&mut self, now: Time, opened: Opened) {
        if opened.from == self.peer && self.receiver.is_some() {
            self.arrivals.note(now, opened.header.counter);
        }
    }

    /// Makes the next frame. Feedback is piggybacked on symbols that have room for it; what is due
    /// and has no room follows right after.
    fn poll_transmit(&mut self, shared: &mut Shared, now: Time) -> Option<Destination> {
        if !self.is_up(shared) {
            return None;
        }
        if self.ack_follows {
            if self.waits_for_turn(shared, now) {
                // Meanwhile the pacer alone holds back what is queued.
                if !shared.ingress.is_empty() {
                    self.link.note_limited();
                }
                return None;
            }
            self.ack_follows = false;
            if let Some(feedback) = self.make_ack(shared, now) {
                return Some(self.send_ack(shared, &feedback));
            }
        }
        let ack_due = self.ack_due().is_some_and(|at| at <= now);
        if let Some(kind) = self.poll_symbol(shared, now, ack_due) {
            let has_news = self.receiver.as_ref().is_some_and(|receiver| receiver.has_news(now));
            self.send_symbol(shared, now, kind, (ack_due, has_news));
            return Some(Destination::Station(self.peer));
        }
        if ack_due {
            let symbol_soon = !shared.pacer.allows(now) && !shared.ingress.is_empty();
            if symbol_soon && self.waits_for_room(shared, now) || self.waits_for_turn(shared, now) {
                return None;
            }
            let feedback = self.make_ack(shared, now)?;
            return Some(self.send_ack(shared, &feedback));
        }
        None
    }

    fn restart_session(&mut self) {
        self.heard = None;
        self.link.restart_session();
        self.sender.forget_frames(&self.link);
    }

    fn set_credit(&mut self, now: Time, symbols: Option<u16>) -> bool {
        self.receiver.as_mut().is_some_and(|receiver| receiver.set_credit(now, symbols))
    }

    fn note_other_left(&mut self) {
        self.pairing = Pairing::default();
    }

    fn set_air_shared(&mut self, is_shared: bool) {
        self.link.set_air_shared(is_shared);
    }

    fn handle_timeout(&mut self, shared: &mut Shared, now: Time) {
        self.look_at_length(shared, now);
        self.sender.handle_timeout(now, &mut self.link, &mut shared.stats);
        if let Some(receiver) = &mut self.receiver {
            receiver.handle_timeout(now, &mut shared.egress, &mut shared.stats);
        }
    }

    fn poll_timeout(&self, shared: &Shared) -> Option<Time> {
        let receiver = self.receiver.as_ref();
        let deadline = receiver.and_then(WindowReceiver::poll_timeout);
        let up = self.is_up(shared);
        let ack = self.ack_due().filter(|_| up);
        [deadline, ack, self.sender.poll_timeout(&self.link)].into_iter().flatten().min()
    }
}

/// How long datagrams wait at most for earlier ones: as long as everything else if everything is
/// configured to be delivered in order. The peer decides which of its packets are delivered in
/// order, whatever is configured here.
fn hold_max(delivery: Delivery, rtt: &RttEstimator) -> Option<Duration> {
    (delivery != Delivery::InOrder).then(|| order::hold_max(rtt))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path's time for a frame, and the pacer's for the one that was sent.
    const FRAME: Duration = Duration::from_millis(12);

    fn pacer_behind_a_frame(now: Time, takes: Duration) -> Pacer {
        let bytes = 1_500;
        let rate_bps = (8.0 * bytes as f64 / takes.as_secs_f64()) as u64;
        let mut pacer = Pacer::new(Some(rate_bps));
        pacer.grant(now);
        // After a pause the pacer allows a burst: only the second frame takes its whole time.
        (0..2).for_each(|_| pacer.note_sent(now, bytes));
        pacer
    }

    #[test]
    fn feedback_waits_for_the_pacer_and_goes_then() {
        let now = Time::from_millis(1_000);
        let pacer = pacer_behind_a_frame(now, Duration::from_millis(4));
        let mut turn = AckTurn::default();
        assert!(turn.waits(now, &pacer, || FRAME));
        let at = turn.at.unwrap();
        assert!(now < at && at < now + FRAME, "the pacer's time is sooner: {at:?}");
        // If checked earlier, it still waits until the same time.
        assert!(turn.waits(now + Duration::from_millis(1), &pacer, || FRAME));
        assert_eq!(turn.at, Some(at));
        assert!(!turn.waits(at, &pacer, || FRAME));
        assert_eq!(turn.at, None, "nothing is to be looked at any more");
    }

    #[test]
    fn feedback_waits_no_longer_than_the_path_takes_for_a_frame() {
        let now = Time::from_millis(1_000);
        // The rate is held far below the capacity.
        let pacer = pacer_behind_a_frame(now, Duration::from_millis(150));
        let mut turn = AckTurn::default();
        assert!(turn.waits(now, &pacer, || FRAME));
        assert_eq!(turn.at, Some(now + FRAME));
        let half = now + FRAME / 2;
        assert!(turn.waits(half, &pacer, || FRAME));
        assert_eq!(turn.at, Some(now + FRAME), "it does not begin anew when it is looked at");
        assert!(!turn.waits(now + FRAME, &pacer, || FRAME), "whatever the pacer says");
    }

    #[test]
    fn feedback_goes_at_once_where_the_pacer_allows_it() {
        let mut turn = AckTurn::default();
        let pacer = Pacer::new(None);
        assert!(!turn.waits(Time::from_millis(5), &pacer, || FRAME));
        assert_eq!((turn.until, turn.at), (None, None));
    }
}
