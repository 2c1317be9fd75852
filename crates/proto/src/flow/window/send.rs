//! The way of a packet, step 2 in window mode: from packets to source symbols to frames.
//!
//! 1. A repair symbol is sent first where the receiver's waiting is worth the risk that it is
//!    spurious ([`Reserve`](super::repair::Reserve)): a copy of the oldest symbol known to be
//!    needed, or a coded symbol over everything unacknowledged.
//! 2. Otherwise the next packets from the ingress queue become a source symbol, sent uncoded.
//! 3. With no packets waiting, repair symbols that may be needed use the idle air.
//! 4. Feedback reports what arrived; what it does not report for too long counts as lost.
//!
//! Where the path needs a longer window than one coder can handle, symbols are dealt to several
//! lanes, each with its own repair: [`Lanes`].
//!
//! Each part has one job: [`SendWindow`] knows symbols and their fates, [`Silence`] missing
//! feedback, [`RepairScheduler`] the value of repair, [`AirUse`] the idle airtime. [`decide`] makes
//! the decision what to send next. The state of frames belongs to the link, [`LinkUsage`]; this
//! module knows nothing of its counters, nor of sessions.

use core::time::Duration;

use corridor_base::{Stream, Time};
use corridor_codec::widen_id;

use super::ahead::Ahead;
use super::air_use::AirUse;
use super::credit::Credit;
use super::feedback::Silence;
use super::repair::belief::Stakes;
use super::schedule::{Facts, Next, RepairScheduler, decide};
use super::send_window::{Path, SendWindow};
use crate::bounds::WINDOW_SILENCE_MAX;
use crate::config::{CodingParams, Goal};
use crate::host::codel_target::Air;
use crate::host::queue::IngressQueue;
use crate::link::sent::What;
use crate::link::usage::{FRAME_OVERHEAD, Heard, LinkUsage};
use crate::memory::WindowShape;
use crate::stats::Stats;
use crate::wire::WindowFeedback;

/// How long TCP acknowledgments inside the tunnel wait for more of them on a shared channel:
/// sending several in one frame leaves more of the channel to data.
const ACKS_HELD: Duration = Duration::from_millis(10);
/// The sender gives up a symbol after this many of the receiver's deadlines, so that the receiver
/// skips it first.
const DEADLINES_TO_GIVE_UP: u32 = 2;

/// Round trips of symbols that a window should hold: a loss is reported after one, its repair is
/// acknowledged after two, and some of the repair is lost again.
const ROUND_TRIPS_HELD: f64 = 3.0;
/// How often, in these round trips, the sender waits for an overtaken frame before it is lost.
const WAITS_HELD: f64 = 2.0;
/// How long the minimum round-trip time is remembered. Queueing delay needs no longer window.
const LEAST_KEPT: Duration = Duration::from_secs(10);

/// Sends one flow: this station's packets to its peer.
pub(crate) struct WindowSender {
    params: CodingParams,
    window: SendWindow,
    /// Useless symbols, as the receiver last counted them.
    useless: Option<u16>,
    credit: Credit,
    silence: Silence,
    repair: RepairScheduler,
    /// The lane to weigh next, if there are several.
    turn: usize,
    /// Recent minimum of the smoothed round-trip time, and when it was measured.
    least: (Duration, Time),
    air: AirUse,
    ahead: Ahead,
    /// Until when acknowledgments are held back.
    held_until: Option<Time>,
    /// The symbol that is being sent in parts.
    in_parts: Option<InParts>,
    symbol: Vec<u8>,
}

/// A symbol sent in parts: its kind, its lane, and if it is no coded symbol its number.
struct InParts {
    lane: usize,
    what: What,
    id: Option<u64>,
    parts: usize,
}

impl WindowSender {
    pub(crate) fn new(
        params: CodingParams,
        symbol_size_max: usize,
        rng: Stream,
        now: Time,
    ) -> Result<Self, corridor_codec::CodecError> {
        let window = SendWindow::new(&params, symbol_size_max, rng, now)?;
        Ok(WindowSender {
            repair: RepairScheduler::new(&params, window.symbol_size_max(), now),
            window,
            useless: None,
            credit: Credit::default(),
            silence: Silence::new(now),
            turn: 0,
            least: (Duration::MAX, now),
            air: AirUse::new(now),
            ahead: Ahead::new(now),
            held_until: None,
            in_parts: None,
            symbol: Vec::new(),
            params,
        })
    }

    /// Oldest symbol held, as HELLO announces it.
    pub(crate) fn base(&self) -> u32 {
        self.window.base() as u32
    }

    // ---- sending ------------------------------------------------------------------------------

    /// Writes the body of the next symbol, if one is to be sent now, for the frame that the link
    /// has begun. `ack_due`: feedback will be sent in any case.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        (link, ack_due): (&mut LinkUsage, bool),
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        self.hold_acknowledgements(now, link.shares_air() && !ack_due, ingress);
        if self.air.is_gap(now) {
            link.note_gap();
        }
        let sent = self.poll_symbol(now, link, ingress, body, stats);
        if sent || (!ingress.is_empty() && self.credit.is_used_up()) {
            // While packets wait for credit, the air is not idle for want of a queue.
            self.end_idle(now, link);
        } else {
            self.air.begin_idle(now, || link.frame_time());
        }
        sent
    }

    /// On a shared channel, holds back TCP acknowledgments inside the tunnel until there are more,
    /// or feedback has to be sent.
    fn hold_acknowledgements(&mut self, now: Time, waits: bool, ingress: &mut IngressQueue) {
        let hold = if waits { ACKS_HELD } else { Duration::ZERO };
        self.held_until = ingress.held_until(now, hold);
    }

    /// Ends an idle period; returns whether there was one.
    fn end_idle(&mut self, now: Time, link: &LinkUsage) -> bool {
        let Some(lost) = self.air.end_idle(now, link.rtt().timeout()) else { return false };
        let round_trip = link.smoothed_round_trip();
        let free = lost.free(self.params.goal).min(round_trip);
        let frames = free.as_secs_f64() * link.through_per_s();
        self.repair.spare.note(now, round_trip, frames);
        true
    }

    fn poll_symbol(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        let has_held = !self.window.is_empty();
        if has_held && self.silence.take_probe() {
            self.ask(now, link, ingress, body, stats);
            return true;
        }
        // Once everything usable as a probe was given up, a new symbol probes.
        if has_held && self.silence.is_unexplained(link.loss_ratio()) {
            return false;
        }
        if has_held && link.is_full(now) {
            link.note_gap();
            return false;
        }
        if let Some(id) = self.ahead.take(now).filter(|&id| self.window.is_untold(id)) {
            self.emit_ahead(now, link, id, body, stats);
            return true;
        }
        self.air.bulk.note_queue(now, ingress.len());
        let waits = !ingress.is_empty() && self.held_until.is_none();
        if waits {
            self.fit_window(now, link, stats);
        }
        let has_new = waits && !self.window.is_full() && self.has_credit(now, link, stats);
        let (next, lane, stakes) = self.weigh(now, link, has_new, ingress.len());
        match next {
            Next::Wait => return false,
            Next::Source => return self.emit_source(now, link, ingress, body, stats),
            Next::Needed => {}
            Next::Ahead => {
                self.repair.spare.take();
                self.note_empty(now, link);
            }
            Next::Spare => self.note_spare(now, link),
        }
        let copies = self.repair.reserve.prefers_copy(stakes, link.loss_ratio());
        let copy = if copies { self.window.lying_still(lane) } else { None };
        self.emit_repair(now, link, (lane, copy), body, stats);
        true
    }

    /// Probes a silent receiver. Any symbol will do; where repair would rather be spurious, a
    /// waiting new symbol is sent: perhaps only feedback was lost, and then the new symbol is of
    /// use.
    fn ask(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) {
        if ingress.is_empty() {
            self.note_spare(now, link);
        }
        let lane = self.lane_to_ask_with();
        let waits = !ingress.is_empty() && self.held_until.is_none() && !self.window.is_full();
        let has_new = waits && self.has_credit(now, link, stats);
        let asks_anew = has_new && {
            let stakes = self.repair.stakes(now, lane, &mut self.window, link);
            stakes.is_rather_spurious()
        };
        if !(asks_anew && self.emit_source(now, link, ingress, body, stats)) {
            self.emit_repair(now, link, (lane, self.window.lying_still(lane)), body, stats);
        }
    }

    /// Whether the receiver has granted credit for another new symbol.
    fn has_credit(&mut self, now: Time, link: &mut LinkUsage, stats: &mut Stats) -> bool {
        let (id, before) = (self.window.end(), self.credit.is_used_up());
        let waits = self.credit.holds_back(now, id, link.rtt().timeout());
        if waits {
            stats.credit_waits += u64::from(!before);
            link.note_gap();
        }
        !waits
    }

    /// Adjusts the number of lanes to the path.
    fn fit_window(&mut self, now: Time, link: &mut LinkUsage, stats: &mut Stats) {
        let Some(round_trip) = link.rtt().measured() else { return };
        if round_trip < self.least.0 || now - self.least.1 > LEAST_KEPT {
            self.least = (round_trip, now);
        }
        let held_s = ROUND_TRIPS_HELD * self.least.0.as_secs_f64()
            + WAITS_HELD * link.lateness().as_secs_f64();
        let (through_per_s, loss_ratio) = (link.through_per_s(), link.loss_ratio());
        let needed = || (held_s * through_per_s) as usize;
        let coded_per_s = through_per_s * loss_ratio;
        let path = Path { now, round_trip, needed, coded_per_s };
        self.window.fit(path, link.log(), stats);
        link.set_lanes(self.window.lane_count());
    }

    /// The lane for a loss probe: the next one that holds something.
    fn lane_to_ask_with(&mut self) -> usize {
        let count = self.window.lane_count();
        let mut lanes = (1..=count).map(|step| (self.turn + step) % count);
        self.turn = lanes.find(|&lane| !self.window.is_lane_empty(lane)).unwrap_or(0);
        self.turn
    }

    /// Decides what to send next and for which lane, and returns the stakes. Before a new symbol,
    /// its lane is weighed and one more in turn, because draining lanes get no new symbols. Without
    /// a new symbol, all lanes are weighed.
    fn weigh(
        &mut self,
        now: Time,
        link: &LinkUsage,
        has_new: bool,
        waiting: usize,
    ) -> (Next, usize, Stakes) {
        let count = self.window.lane_count();
        let first = if has_new { self.window.next_lane() } else { self.turn % count };
        let found = self.weigh_lane(now, (link, first), has_new, waiting);
        if count == 1 || matches!(found.0, Next::Needed | Next::Ahead | Next::Spare) {
            return found;
        }
        for _ in 1..if has_new { 2 } else { count } {
            self.turn = (self.turn + 1) % count;
            let other = self.weigh_lane(now, (link, self.turn), has_new, waiting);
            if matches!(other.0, Next::Needed | Next::Ahead | Next::Spare) {
                return other;
            }
        }
        found
    }

    fn weigh_lane(
        &mut self,
        now: Time,
        (link, lane): (&LinkUsage, usize),
        has_new: bool,
        waiting: usize,
    ) -> (Next, usize, Stakes) {
        let has_held = !self.window.is_lane_empty(lane) && self.repair.ceiling.allows_repair();
        let stakes = self.repair.stakes(now, lane, &mut self.window, link);
        let wants_repair = self.repair.reserve.wants_repair(stakes, link.loss_ratio());
        let may_go_ahead =
            has_new && !wants_repair && self.repair.may_go_ahead(now, waiting, stakes, link);
        let welcomes_repair =
            !has_new && self.repair.welcomes_repair(now, &self.window, lane, link);
        let facts = Facts { has_held, has_new, wants_repair, may_go_ahead, welcomes_repair };
        (decide(facts), lane, stakes)
    }

    /// Records a frame that is sent only because there is nothing better.
    fn note_spare(&mut self, now: Time, link: &LinkUsage) {
        let is_starved = self.note_empty(now, link);
        // Otherwise each repair frame of a sparse flow would pay for the next.
        if is_starved || self.params.goal != Goal::Bulk {
            self.repair.spare.note(now, link.smoothed_round_trip(), 1.0);
        }
    }

    /// Records the air as idle for the time of a frame; returns whether it is so for want of a
    /// queue.
    fn note_empty(&mut self, now: Time, link: &LinkUsage) -> bool {
        self.air.bulk.note_empty(now, link.frame_time(), link.rtt().timeout())
    }

    fn emit_source(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        let (delivery, buffer) = (self.params.delivery, &mut self.symbol);
        let (lane, frame) = (self.window.next_lane(), link.next());
        let Some((id, soon)) = self.window.add((now, frame), ingress, delivery, buffer, stats)
        else {
            return false;
        };
        self.credit.note_source();
        stats.source_frames_sent += 1;
        self.window.write_source(id, body);
        self.repair.ceiling.earn(body.len());
        self.note_sent(now, link, (lane, What::Source(id), Some(id)), body.len());
        // On a shared channel a short frame hardly takes less airtime than others.
        let may_repair = self.params.goal != Goal::Bulk && self.repair.ceiling.allows_repair();
        if soon && may_repair && !link.shares_air() {
            let (len, loss_ratio) = (body.len() as f64 + FRAME_OVERHEAD, link.loss_ratio());
            self.ahead.plan(now, (id, len), link.bytes_per_s(), loss_ratio);
        }
        true
    }

    /// Sends a copy, ahead of need, of a symbol about which nothing is known.
    fn emit_ahead(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        id: u64,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) {
        let lane = self.window.lane_of(id);
        self.window.write_copy(id, link.next(), body);
        stats.copies_sent += 1;
        stats.copies_ahead_sent += 1;
        self.ahead.note_sent();
        self.repair.ceiling.spend(body.len());
        self.note_sent(now, link, (lane, What::Ahead, Some(id)), body.len());
    }

    /// Sends a copy of this symbol, or a coded symbol over everything unacknowledged in the lane.
    fn emit_repair(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        (lane, copy): (usize, Option<u64>),
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) {
        let what = match copy {
            Some(id) => {
                self.window.write_copy(id, link.next(), body);
                stats.copies_sent += 1;
                What::Copy(id)
            }
            None => {
                self.window.write_coded(lane, body);
                stats.coded_frames_sent += 1;
                What::Coded
            }
        };
        self.repair.ceiling.spend(body.len());
        self.note_sent(now, link, (lane, what, copy), body.len());
    }

    /// Records a symbol sent; `id` is `None` for a coded symbol. A symbol in parts counts with its
    /// last part.
    #[inline]
    fn note_sent(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        (lane, what, id): (usize, What, Option<u64>),
        len: usize,
    ) {
        let parts = link.parts_of(len);
        if parts > 1 {
            self.in_parts = Some(InParts { lane, what, id, parts });
            self.note_frame(now, link, (lane, What::Part, 1), link.body_len_max());
        } else {
            self.note_frame(now, link, (lane, what, 1), len);
        }
    }

    /// Records that the next part of a symbol, of `len` bytes, is sent.
    pub(crate) fn note_part(&mut self, now: Time, link: &mut LinkUsage, len: usize, is_last: bool) {
        // Earlier lanes may have drained since the first part was sent.
        let of_id = |symbol: &InParts| symbol.id.map(|id| self.window.lane_of(id));
        let lane = self.in_parts.as_ref().map(|it| of_id(it).unwrap_or(it.lane));
        let lane = lane.unwrap_or(0).min(self.window.lane_count() - 1);
        match self.in_parts.take_if(|_| is_last) {
            Some(InParts { what, id, parts, .. }) => {
                id.into_iter().for_each(|id| self.window.note_carried(id, link.next()));
                self.note_frame(now, link, (lane, what, parts), len);
            }
            None => self.note_frame(now, link, (lane, What::Part, 1), len),
        }
    }

    #[inline]
    fn note_frame(
        &mut self,
        now: Time,
        link: &mut LinkUsage,
        (lane, what, parts): (usize, What, usize),
        len: usize,
    ) {
        let forgotten = link.note_sent(now, (what, parts), len);
        self.window.note_sent(lane, link, forgotten);
    }

    /// Limits the length of source symbols from now on, in bytes; packets accepted before are
    /// exempt.
    pub(crate) fn limit_symbols(&mut self, now: Time, len: usize) {
        if self.window.limit(len) {
            // The silent frames may have been too long: that does not mean that the path is gone.
            self.silence.restart(now);
        }
    }

    /// Lanes for as many symbols as may be held.
    pub(crate) fn lanes(&self) -> usize {
        self.window.length().count()
    }

    /// How the air was used since the last call.
    pub(crate) fn take_air(&mut self, now: Time, link: &LinkUsage) -> Air {
        let (loss_ratio, shares_air) = (link.loss_ratio(), link.shares_air());
        let packets_per_s = (1.0 - loss_ratio) * link.through_per_s();
        let rtt = link.rtt().timeout();
        self.air.bulk.take(now, rtt, (shares_air, loss_ratio, packets_per_s))
    }

    // ---- feedback -----------------------------------------------------------------------------

    /// Handles feedback about this flow, and what it reports on the link's frames.
    pub(crate) fn handle_feedback(
        &mut self,
        now: Time,
        feedback: &WindowFeedback,
        (link, heard): (&mut LinkUsage, &Heard),
        stats: &mut Stats,
    ) {
        let next = widen_id(feedback.next, self.window.base());
        if next > self.window.end() || link.is_overtaken(heard) {
            return; // From before this station restarted, or overtaken by newer feedback.
        }
        link.note_wait(now, heard);
        let passed = self.silence.note_ack(now);
        let all = link.frames_until(heard);
        let idle = self.note_waste(now, link, (passed, all), feedback.useless, stats);
        link.follow_losses(heard, all, stats);
        self.window.tell(next);
        self.credit.tell(next, feedback.credit);
        // Either losses caused the silence, and the repair of what was lost is weighed anew with
        // this feedback; or the probes are answered.
        if link.loss_ratio() > 0.0 || self.window.is_empty() {
            self.silence.stop_asking();
        }
        let told = link.tell(now, heard, self.lateness_max(link));
        if let Some(lane) = self.window.lane_told(feedback) {
            self.window.note_told(lane, next, feedback, link.number(heard));
            self.window.read_bitmap(lane, next, feedback);
        }
        self.window.settle(now, link);
        link.note_delay(now, &told, heard, stats);
        link.note_sharing(now, &told, heard, (all, idle), stats);
    }

    /// Reports spurious repair since the feedback before to the reserve, with the time and frames
    /// since then. Returns how long there was nothing to send.
    fn note_waste(
        &mut self,
        now: Time,
        link: &LinkUsage,
        (passed, frames): (Duration, u32),
        counted: u16,
        stats: &mut Stats,
    ) -> Duration {
        if self.end_idle(now, link) {
            self.air.go_on_idle(now);
        }
        let idle = self.air.take_idle();
        if let Some(told) = self.useless.replace(counted) {
            let came = 1.0 - link.loss_ratio();
            // On a shared channel, air that idles here is the other direction's.
            let shared = if link.shares_air() { 0.0 } else { 1.0 };
            let free = idle.free(self.params.goal);
            let spare = shared * free.as_secs_f64() * link.through_per_s();
            let useless = counted.wrapping_sub(told);
            stats.repairs_spurious += u64::from(useless);
            let round_trips = passed.div_duration_f64(link.smoothed_round_trip());
            let received = came * f64::from(frames);
            // Copies ahead of need are deliberately spurious, and have their own budget.
            let spare = spare + f64::from(self.ahead.take_sent());
            self.repair.reserve.note(round_trips, received, came * spare, useless);
        }
        idle.all
    }

    /// The peer is alive, whatever became of our frames and its feedback.
    pub(crate) fn note_heard(&mut self, link: &LinkUsage) {
        self.silence.note_heard(link.loss_ratio());
    }

    /// The receiver restarted: it has nothing, and accepts no longer window than this. Its link has
    /// restarted too.
    pub(crate) fn restart_peer(
        &mut self,
        now: Time,
        link: &LinkUsage,
        takes: WindowShape,
        stats: &mut Stats,
    ) {
        self.forget_frames(link);
        self.in_parts = None;
        let takes = WindowShape {
            lanes: takes.lanes.min(self.params.lanes_max()),
            lane_size: takes.lane_size.min(self.params.lane_size()),
        };
        self.window.restart_peer(now, takes, stats);
        self.useless = None;
        self.credit = Credit::default();
        self.silence.restart(now);
    }

    /// Nothing more will be reported about frames in flight: their link has restarted.
    pub(crate) fn forget_frames(&mut self, link: &LinkUsage) {
        self.window.forget_frames(link.next());
    }

    /// Number of source symbols held.
    pub(crate) fn held(&self) -> usize {
        self.window.len()
    }

    /// Bytes that they take, and frames in the longest log of any lane.
    pub(crate) fn bytes_and_log(&self) -> (usize, usize) {
        (self.window.bytes(), self.window.longest_log())
    }

    // ---- time ---------------------------------------------------------------------------------

    pub(crate) fn handle_timeout(&mut self, now: Time, link: &mut LinkUsage, stats: &mut Stats) {
        self.window.settle(now, link);
        while self.give_up_due(link).is_some_and(|due| due <= now) {
            self.window.give_up_oldest(stats);
        }
        self.held_until = self.held_until.filter(|&until| until > now);
        self.ahead.handle_timeout(now);
        self.credit.handle_timeout(now);
        if self.silence_due(link).is_some_and(|due| due <= now) {
            stats.encoder_timeouts += 1;
            self.silence.time_out(now, self.window.len() as u32, link);
        }
    }

    /// When the next timeout for missing feedback fires.
    fn silence_due(&self, link: &LinkUsage) -> Option<Time> {
        (!self.window.is_empty()).then(|| self.silence.due(link))
    }

    /// How long the receiver may wait for a symbol.
    fn deadline(&self, link: &LinkUsage) -> Duration {
        let (lanes, told) = (self.window.lane_count(), self.params.delivery_deadline);
        CodingParams::deadline(told, lanes, (link.rtt().smoothed(), link.frame_time()))
    }

    /// How long to wait for an overtaken frame at most: repair has to arrive by the deadline.
    fn lateness_max(&self, link: &LinkUsage) -> Duration {
        self.deadline(link).saturating_sub(link.rtt().smoothed())
    }

    /// When the oldest symbol is given up.
    fn give_up_due(&self, link: &LinkUsage) -> Option<Time> {
        let patience = self.deadline(link) * DEADLINES_TO_GIVE_UP;
        self.window.oldest_added_at().map(|at| at + patience.min(WINDOW_SILENCE_MAX))
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn poll_timeout(&self, link: &LinkUsage) -> Option<Time> {
        let (silence, give_up) = (self.silence_due(link), self.give_up_due(link));
        let timers = [silence, give_up, self.held_until, self.ahead.wake()];
        let others = [self.credit.poll_timeout(), self.window.settles_at()];
        timers.into_iter().chain(others).flatten().min()
    }
}
