//! The way of a packet, step 2 in window mode: from packets to source symbols to frames.
//!
//! 1. A repair symbol goes first where the receiver's waiting is worth the risk that it comes in
//!    vain ([`Reserve`]): a copy of the oldest symbol known to be needed, or a coded symbol over
//!    all that is unacknowledged.
//! 2. Otherwise the next packets from the ingress queue become a source symbol, sent uncoded.
//! 3. With no packets waiting, the free air takes repair symbols that may be needed.
//! 4. Feedback tells what arrived; what it does not tell of for long counts as lost.

mod lengths;

use core::cell::Cell;
use core::num::NonZeroU16;
use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::{Coefficients, WindowEncoder, widen_id};

use crate::bounds::{
    PACE_BURST, WINDOW_ACK_INTERVAL_MIN, WINDOW_SILENCE_MAX, WINDOW_TIMEOUT_MAX, WINDOW_TIMEOUT_MIN,
};
use crate::config::CodingParams;
use crate::flow::symbol;
use crate::flow::window::receive::ack_interval;
use crate::flow::window::repair::belief::{Belief, Stakes};
use crate::flow::window::repair::probes;
use crate::flow::window::repair::{Outlook, Reserve, SpareAir};
use crate::flow::window::sources::{Fate, Source};
use crate::host::bulk::Bulk;
use crate::host::codel_target::Air;
use crate::host::compression::Contexts;
use crate::host::queue::IngressQueue;
use crate::link::losses;
use crate::link::path_control::policy::{RateControl, Sample};
use crate::link::rtt::RttEstimator;
use crate::link::sent::{Sent, SentLog, What};
use crate::link::shared_channel::{Crossed, Sharing};
use crate::stats::Stats;
use crate::wire::{HEADER_LEN, TAG_LEN, WindowAck, WindowForm, WindowSymbol};

/// Timeout before the round trip was measured.
const TIMEOUT_FIRST: Duration = Duration::from_millis(100);
/// Longest wait for feedback that is learned from, in intervals of feedback beyond a round trip.
const WAIT_MAX: u32 = 8;
/// Intervals of feedback beyond a round trip that a timeout waits at most, unless feedback takes
/// longer as a rule.
const PROMPT_INTERVALS: u32 = 2;
/// Silence that is borne whatever the losses: they come in bursts, and a burst that is counted in
/// frames ends the sooner the more are sent.
const SILENCE_BORNE: Duration = Duration::from_millis(250);
/// Longest span between two frames that says something about the path's rate, microseconds.
const SPAN_US_MAX: u32 = 10_000_000;
/// How long acknowledgements of TCP inside wait for more where both ways share the air: one frame
/// for several leaves more of it to the data.
const ACKS_HELD: Duration = Duration::from_millis(10);
/// Loss ratio beyond which estimates are not followed: some frame must get through.
const LOSS_RATIO_MAX: f64 = 0.95;
/// Bytes of a frame besides its body.
const FRAME_OVERHEAD: f64 = (HEADER_LEN + TAG_LEN) as f64;
/// Symbols that are longer than this part of the longest take longer on their way.
const LONG_DIVISOR: usize = 2;
/// Weight of the newest one in their mean length, one part in so many.
const LONG_LEN_PARTS: f64 = 64.0;
/// The sender gives a symbol up after so many of the receiver's deadlines: the receiver goes first.
const DEADLINES_TO_GIVE_UP: u32 = 2;

/// Sends one flow: this station's packets to its peer.
pub(crate) struct WindowSender {
    params: CodingParams,
    coder: WindowEncoder,
    /// Longest symbol that the path carries at present.
    symbol_len_max: usize,
    /// Symbols from `coder.base()` on.
    sources: VecDeque<Source>,
    /// Headers of TCP as the receiver knows them.
    contexts: Contexts,
    log: SentLog,
    /// Newest frame that feedback told of.
    told_counter: Option<u32>,
    /// The receiver knew of all ids before.
    told_end: u64,
    /// What it lacked of those.
    told_deficit: usize,
    /// Symbols beyond `told_end` that are taken for lost; `None`: to be counted.
    lost_beyond: Cell<Option<usize>>,
    loss_ratio: f64,
    belief: Belief,
    /// What is known has changed since the belief began.
    has_news: bool,
    reserve: Reserve,
    /// Symbols in vain, as feedback counted them last.
    told_useless: Option<u16>,
    /// Nothing was to be sent since then.
    idle_since: Option<Time>,
    /// Time without anything to send since feedback was taken last.
    idle: Duration,
    /// Until when a pause is no air that could have been used.
    made_up_until: Time,
    bulk: Bulk,
    spare: SpareAir,
    rtt: RttEstimator,
    /// How long it takes until feedback tells of a frame; some of it waits, some gets lost.
    wait: RttEstimator,
    last_ack_at: Time,
    timeouts_in_row: u32,
    /// Last time something was asked for by a timeout.
    asked_at: Time,
    /// Symbols that may be sent to a silent receiver.
    probes: u32,
    rate: RateControl,
    sharing: Sharing,
    /// Both ways share the air, as told, or as this station or its peer has found out.
    shares_air: bool,
    /// When acknowledgements that wait for each other are to go.
    held_until: Option<Time>,
    /// Frames with symbols that the receiver had counted.
    told_frames: Option<u32>,
    /// When the newest of them came, by its clock.
    told_at_us: Option<u32>,
    /// Mean length of the longer symbols' bodies.
    long_len: f64,
    /// The rate holds back what is sent next.
    held: bool,
    /// What is sent next comes after a gap.
    after_gap: bool,
    symbol: Vec<u8>,
}

impl WindowSender {
    pub(crate) fn new(
        params: CodingParams,
        symbol_size_max: usize,
        mut rng: Stream,
        now: Time,
    ) -> Result<Self, corridor_codec::CodecError> {
        let window_size = usize::from(params.window_size);
        let mut coder = WindowEncoder::new(params.field, window_size, symbol_size_max)?;
        // Numbers of a run before this one mean nothing now.
        coder.reset(u64::from(rng.next_u32()));
        Ok(WindowSender {
            told_end: coder.base(),
            symbol_len_max: symbol_size_max,
            params,
            coder,
            sources: VecDeque::new(),
            contexts: Contexts::new(),
            log: SentLog::default(),
            told_counter: None,
            told_deficit: 0,
            lost_beyond: Cell::new(None),
            loss_ratio: 0.0,
            belief: Belief::new(now),
            has_news: false,
            reserve: Reserve::new(params.goal),
            told_useless: None,
            idle_since: None,
            idle: Duration::ZERO,
            made_up_until: now,
            bulk: Bulk::new(now),
            spare: SpareAir::new(now),
            rtt: RttEstimator::new(),
            wait: RttEstimator::new(),
            last_ack_at: now,
            timeouts_in_row: 0,
            asked_at: now,
            probes: 0,
            rate: RateControl::new(now),
            sharing: Sharing::default(),
            shares_air: params.half_duplex == Some(true),
            held_until: None,
            told_frames: None,
            told_at_us: None,
            long_len: symbol_size_max as f64,
            held: false,
            after_gap: false,
            symbol: Vec::new(),
        })
    }

    /// Oldest symbol held, as HELLO tells it.
    pub(crate) fn base(&self) -> u32 {
        self.coder.base() as u32
    }

    // ---- sending ------------------------------------------------------------------------------

    /// Writes the next symbol's body, if there is one to send now, for the frame of `counter`.
    /// `ack_due`: feedback has to go in any case.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        (counter, ack_due): (u32, bool),
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        self.hold_acknowledgements(now, ack_due, ingress);
        self.after_gap |= self.idle_since.is_some() && now > self.made_up_until;
        let sent = self.poll_symbol(now, counter, ingress, body, stats);
        if sent {
            self.end_idle(now);
        } else if self.idle_since.is_none() {
            self.idle_since = Some(now);
            // The frame before has its own time, and pauses that are short are made up for.
            self.made_up_until = now + self.frame_time().max(PACE_BURST);
        }
        sent
    }

    /// Where both ways share the air, acknowledgements of TCP inside wait for more of them, or for
    /// feedback that has to go.
    fn hold_acknowledgements(&mut self, now: Time, ack_due: bool, ingress: &mut IngressQueue) {
        let hold = if self.shares_air && !ack_due { ACKS_HELD } else { Duration::ZERO };
        self.held_until = ingress.held_until(now, hold);
    }

    fn end_idle(&mut self, now: Time) {
        let Some(since) = self.idle_since.take() else { return };
        self.idle += now - since;
        self.bulk.note_empty(since, now - since, self.rtt.timeout());
        let lost = now - since.max(self.made_up_until.min(now));
        let round_trip = self.smoothed_round_trip();
        let frames = lost.min(round_trip).as_secs_f64() * self.rate.through_per_s();
        self.spare.note(now, round_trip, frames);
    }

    fn poll_symbol(
        &mut self,
        now: Time,
        counter: u32,
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        if self.probes > 0 && !self.sources.is_empty() {
            self.probes -= 1;
            if ingress.is_empty() {
                self.note_spare(now);
            }
            self.emit_repair(now, counter, self.lying_still(), body, stats);
            return true;
        }
        // When all that could be asked with was given up, a new symbol asks.
        if self.timeouts_in_row > probes::timeouts_borne(self.loss_ratio)
            && !self.sources.is_empty()
        {
            return false;
        }
        let outlook = self.outlook();
        self.bulk.note_queue(now, ingress.len());
        let has_new = !ingress.is_empty() && self.held_until.is_none() && !self.coder.is_full();
        let stakes = self.stakes(now);
        let wanted = self.reserve.wants_repair(stakes, self.loss_ratio);
        let ahead = has_new && !wanted && self.may_go_ahead(now, ingress.len(), stakes);
        let behind = !has_new && outlook.welcomes_repair();
        if !self.sources.is_empty() && (wanted || ahead || behind) {
            if ahead {
                self.spare.take();
                self.bulk.note_empty(now, self.frame_time(), self.rtt.timeout());
            } else if !wanted {
                self.note_spare(now);
            }
            self.emit_repair(now, counter, self.copy_at(stakes), body, stats);
            return true;
        }
        has_new && self.emit_source(now, counter, ingress, body, stats)
    }

    /// A frame goes for want of anything better.
    fn note_spare(&mut self, now: Time) {
        self.bulk.note_empty(now, self.frame_time(), self.rtt.timeout());
        self.spare.note(now, self.smoothed_round_trip(), 1.0);
    }

    /// Time on the air of a frame.
    fn frame_time(&self) -> Duration {
        Duration::from_secs_f64(self.rate.through_per_s().recip())
    }

    /// The round trip of the tunnel as far as it was measured.
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// How the air was used since this was asked last.
    pub(crate) fn take_air(&mut self, now: Time) -> Air {
        let packets_per_s = (1.0 - self.loss_ratio) * self.rate.through_per_s();
        self.bulk.take(now, self.rtt.timeout(), (self.shares_air, self.loss_ratio, packets_per_s))
    }

    /// Whether repair goes ahead of so many packets that wait, since the air will be spare after
    /// them. Where both ways are known to share it, it never is.
    fn may_go_ahead(&mut self, now: Time, waiting: usize, stakes: Stakes) -> bool {
        let round_trip = self.smoothed_round_trip();
        !self.shares_air && self.spare.welcomes_repair(now, round_trip, waiting, stakes)
    }

    /// The round trip, smoothed, or the least that counts as one.
    fn smoothed_round_trip(&self) -> Duration {
        self.rtt.smoothed().max(WINDOW_ACK_INTERVAL_MIN)
    }

    /// What is at stake with a repair symbol that is sent now.
    fn stakes(&mut self, now: Time) -> Stakes {
        let frames = self.log.sources() + self.log.repairs();
        if self.has_news && self.belief.affords(frames) {
            self.has_news = false;
            let since = self.sources.front().map_or(now, |oldest| oldest.added_at);
            let known = (self.deficit(), since);
            self.belief.restart(known, self.log.frames(), self.loss_ratio, now);
        }
        let rtt = self.rtt.timeout().max(WINDOW_ACK_INTERVAL_MIN);
        self.belief.stakes(now, rtt, self.reserve.weigh())
    }

    fn outlook(&self) -> Outlook {
        Outlook {
            deficit: self.deficit(),
            sources: self.log.sources(),
            repairs: self.log.repairs(),
            loss_ratio: self.loss_ratio,
        }
    }

    /// What the receiver lacks as far as is known, of what it knows of and of what it does not.
    fn deficit(&self) -> usize {
        let count = || {
            let beyond = self.told_end.saturating_sub(self.coder.base()) as usize;
            let needed = |source: &&Source| source.fate == Fate::Needed;
            self.sources.iter().skip(beyond).filter(needed).count()
        };
        let lost_beyond = self.lost_beyond.get().unwrap_or_else(count);
        debug_assert_eq!(lost_beyond, count(), "it is forgotten with every change");
        self.lost_beyond.set(Some(lost_beyond));
        self.told_deficit + lost_beyond
    }

    fn emit_source(
        &mut self,
        now: Time,
        counter: u32,
        ingress: &mut IngressQueue,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> bool {
        self.symbol.clear();
        let most = self.symbol_len_max;
        let (delivery, contexts) = (self.params.delivery, Some(&mut self.contexts));
        let room = symbol::Room { len_max: most, packets_max: u16::MAX };
        let packets = symbol::fill(now, ingress, room, delivery, contexts, &mut self.symbol, stats);
        if packets == 0 {
            return false; // All that waited was dropped to tell of congestion.
        }
        let Ok(id) = self.coder.push(&self.symbol) else {
            debug_assert!(false, "the window has room and the symbol was made to fit");
            return false;
        };
        self.sources.push_back(Source {
            added_at: now,
            counter: Some(counter),
            packets,
            fate: Fate::Unknown,
        });
        stats.symbols_added += 1;
        stats.source_frames_sent += 1;
        self.write_source(id, body);
        self.note_sent(now, counter, What::Source(id), body.len());
        true
    }

    /// Position of the symbol to copy, where that serves better than a coded symbol.
    fn copy_at(&self, stakes: Stakes) -> Option<usize> {
        let copies = self.reserve.prefers_copy(stakes, self.loss_ratio);
        if copies { self.lying_still() } else { None }
    }

    /// Position of the oldest symbol that is known to be needed and has no copy on its way.
    fn lying_still(&self) -> Option<usize> {
        let told = self.told_counter;
        self.sources.iter().position(|source| {
            source.fate == Fate::Needed && (source.counter.is_none() || source.counter <= told)
        })
    }

    /// A copy of the symbol at this position, or a coded symbol over all that is unacknowledged.
    fn emit_repair(
        &mut self,
        now: Time,
        counter: u32,
        copy: Option<usize>,
        body: &mut Vec<u8>,
        stats: &mut Stats,
    ) {
        let what = match copy {
            Some(at) => {
                self.sources[at].counter = Some(counter);
                self.write_source(self.coder.base() + at as u64, body);
                stats.copies_sent += 1;
                What::Copy
            }
            None => {
                self.write_coded(counter, body);
                stats.coded_frames_sent += 1;
                What::Coded
            }
        };
        self.note_sent(now, counter, what, body.len());
    }

    fn write_source(&self, id: u64, body: &mut Vec<u8>) {
        let distance = (id - self.coder.base()) as u16;
        WindowSymbol::write_head(WindowForm::Source { id: id as u32, distance }, body);
        body.extend_from_slice(self.coder.symbol(id).unwrap_or_default());
    }

    /// The coding vector's seed is the frame's counter.
    fn write_coded(&mut self, counter: u32, body: &mut Vec<u8>) {
        let (first, count) = (self.coder.base(), self.coder.count());
        let Some(nonzero) = NonZeroU16::new(count as u16) else { return };
        let form = WindowForm::Coded { first: first as u32, count: nonzero };
        WindowSymbol::write_head(form, body);
        let start = body.len();
        body.resize(start + self.coder.symbol_size_max(), 0);
        let len = self.coder.encode(first, count, Coefficients::Seed(counter), &mut body[start..]);
        debug_assert!(len.is_ok(), "run and buffer were made to fit: {len:?}");
        // One that is all zero still has to have a byte.
        body.truncate(start + len.unwrap_or(0).max(1));
    }

    fn note_sent(&mut self, now: Time, counter: u32, what: What, len: usize) {
        let held = core::mem::take(&mut self.held);
        if self.is_long(len) {
            self.long_len += (len as f64 - self.long_len) / LONG_LEN_PARTS;
        }
        let after_gap = core::mem::take(&mut self.after_gap);
        let sent = Sent { counter, at: now, what, held, after_gap, len: len as u16 };
        self.belief.add(&sent, self.loss_ratio);
        if let Some(lost) = self.log.push(sent) {
            self.take_for_lost(lost);
        }
    }

    // ---- feedback -----------------------------------------------------------------------------

    /// Takes feedback of this flow.
    pub(crate) fn handle_ack(
        &mut self,
        now: Time,
        peer_counter: u32,
        ack: &WindowAck,
        stats: &mut Stats,
    ) {
        let (base, end) = (self.coder.base(), self.coder.end());
        let next = widen_id(ack.next, base);
        if next > end || self.is_overtaken(ack) {
            return; // Of this station's last run, or overtaken by newer feedback.
        }
        self.note_wait(now, ack);
        let passed = now - core::mem::replace(&mut self.last_ack_at, now);
        self.timeouts_in_row = 0;
        let idle = self.note_waste(now, passed, ack, stats);
        let all = self.told_counter.map_or(0, |told| ack.counter - told);
        self.told_counter = Some(ack.counter);
        let told = ack.loss_ratio.clamp(0.0, LOSS_RATIO_MAX);
        self.loss_ratio = losses::follow(self.loss_ratio, told, all);
        if self.loss_ratio > 0.0 {
            // Silence was the work of losses, and what was lost is weighed with what is told now.
            self.probes = 0;
        }
        self.advance(next);
        if self.sources.is_empty() {
            self.probes = 0; // They are answered.
        }
        let told_end = next + u64::from(ack.span);
        self.told_end = told_end.min(self.coder.end()).max(self.told_end);
        self.told_deficit = usize::from(ack.deficit);
        let (mut told, mut newest, mut held, mut told_len) = (0, None, 0, 0.0);
        let mut has_gap = false;
        while let Some(sent) = self.log.pop_until(ack.counter) {
            told += 1;
            told_len += FRAME_OVERHEAD + f64::from(sent.len);
            held += u32::from(sent.held);
            has_gap |= sent.after_gap;
            newest = Some(sent);
            self.take_for_lost_beyond(sent, told_end);
        }
        if let Some(sent) = newest.filter(|sent| sent.counter == ack.counter) {
            if ack.delay < WindowAck::DELAY_MAX {
                self.rtt.sample((now - sent.at).saturating_sub(ack.delay));
            }
            let limited = 2 * held >= told && !has_gap;
            self.note_delay(now, sent, (told, told_len, limited), ack, stats);
        }
        let (received_at_us, symbols) = (ack.received_at_us, told);
        let others = all.saturating_sub(symbols);
        let crossed = Crossed { received_at_us, peer_counter, symbols, others, idle };
        self.note_sharing(now, crossed, ack.half_duplex);
        stats.half_duplex = self.shares_air;
        self.told_frames = Some(ack.frames);
        self.read_bitmap(next, ack);
        stats.erasure_ratio_e3 = ack.loss_ratio.clamp(0.0, LOSS_RATIO_MAX);
    }

    /// Whether newer feedback was taken. What comes after frames that overtook it tells of the same
    /// newest frame, and of more of them.
    fn is_overtaken(&self, ack: &WindowAck) -> bool {
        let fewer = |told: u32| (ack.frames.wrapping_sub(told) as i32) < 0;
        self.told_counter.is_some_and(|told| {
            ack.counter < told || (ack.counter == told && self.told_frames.is_some_and(fewer))
        })
    }

    /// Learns how long feedback about a frame takes, from the oldest that this tells of.
    fn note_wait(&mut self, now: Time, ack: &WindowAck) {
        if let Some(oldest) = self.log.oldest().filter(|sent| sent.counter <= ack.counter) {
            let longest = self.rtt.timeout() + WAIT_MAX * self.ack_interval();
            self.wait.sample((now - oldest.at).min(longest));
        }
    }

    /// Lets the reserve follow what was sent in vain since the feedback before, which is so long
    /// ago. Returns how long there was nothing to send since then.
    fn note_waste(
        &mut self,
        now: Time,
        passed: Duration,
        ack: &WindowAck,
        stats: &mut Stats,
    ) -> Duration {
        if self.idle_since.is_some() {
            self.end_idle(now);
            self.idle_since = Some(now);
        }
        let idle = core::mem::take(&mut self.idle);
        let frames = self.told_counter.map_or(0, |told| ack.counter - told);
        if let Some(told) = self.told_useless {
            let came = 1.0 - self.loss_ratio;
            // Where both ways share the air, what is idle here is the other's.
            let shared = if self.shares_air { 0.0 } else { 1.0 };
            let spare = shared * idle.as_secs_f64() * self.rate.through_per_s();
            let useless = ack.useless.wrapping_sub(told);
            stats.repairs_spurious += u64::from(useless);
            let round_trips = passed.div_duration_f64(self.smoothed_round_trip());
            self.reserve.note(round_trips, came * f64::from(frames), came * spare, useless);
        }
        self.told_useless = Some(ack.useless);
        idle
    }

    /// Learns whether both ways share the air, unless it was told; the peer may know better.
    fn note_sharing(&mut self, now: Time, crossed: Crossed, peer_says: bool) {
        if self.rate.tells_of_few(now) {
            // What comes less then is this station's own doing, and hides what the peer's does.
            self.sharing.restart();
        }
        self.sharing.note(crossed, self.rtt.timeout());
        let found = self.sharing.is_shared() || peer_says;
        self.shares_air = self.params.half_duplex.unwrap_or(found);
    }

    /// Whether both ways share the air, for all that this station and its peer know.
    pub(crate) fn shares_air(&self) -> bool {
        self.shares_air
    }

    /// The same, for all that this station knows by itself: what the peer is to be told.
    pub(crate) fn finds_air_shared(&self) -> bool {
        self.params.half_duplex.unwrap_or(self.sharing.is_shared())
    }

    /// Lets the rate follow the delay.
    fn note_delay(
        &mut self,
        now: Time,
        sent: Sent,
        (told, told_len, limited): (u32, f64, bool),
        ack: &WindowAck,
        stats: &mut Stats,
    ) {
        let came = self.told_frames.map_or(told, |before| ack.frames.wrapping_sub(before));
        let sent_at_us = (sent.at.as_nanos() / 1_000) as u32;
        let sample = Sample {
            one_way_us: ack.received_at_us.wrapping_sub(sent_at_us),
            is_long: self.is_long(usize::from(sent.len)),
            round_trip: self.rtt.timeout(),
            round_trip_smoothed: self.rtt.smoothed(),
            told: told_len / (FRAME_OVERHEAD + self.long_len),
            span: self.told_at_us.map_or(Duration::ZERO, |before| {
                let span_us = ack.received_at_us.wrapping_sub(before);
                Duration::from_micros(u64::from(span_us.min(SPAN_US_MAX)))
            }),
            frames: told as usize,
            lost: told.saturating_sub(came) as usize,
            limited,
            shares_air: self.shares_air,
        };
        self.told_at_us = Some(ack.received_at_us);
        self.rate.note(now, sample, stats);
    }

    /// What is to be sent has to wait for its turn.
    pub(crate) fn note_limited(&mut self) {
        self.held = true;
    }

    /// How long nothing is to be sent, if that serves the rate; told once.
    pub(crate) fn take_pause(&mut self) -> Option<Duration> {
        let pause = self.rate.take_pause();
        self.after_gap |= pause.is_some();
        pause
    }

    /// Bytes a second that the path takes, without the headers of the layers below.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.rate.frames_per_s() * (FRAME_OVERHEAD + self.long_len)
    }

    fn is_long(&self, len: usize) -> bool {
        len > self.coder.symbol_size_max() / LONG_DIVISOR
    }

    /// Everything before `next` is done.
    fn advance(&mut self, next: u64) {
        let done = next.saturating_sub(self.coder.base()) as usize;
        self.sources.drain(..done.min(self.sources.len()));
        self.lost_beyond.set(None);
        self.has_news = true;
        self.coder.advance_to(next);
    }

    fn read_bitmap(&mut self, next: u64, ack: &WindowAck) {
        // Feedback that was overtaken may speak of symbols that are gone.
        let skip = (self.coder.base() - next.min(self.coder.base())) as usize;
        self.lost_beyond.set(None);
        self.has_news = true;
        for (at, source) in self.sources.iter_mut().enumerate() {
            match ack.is_needed(at + skip) {
                Some(true) => source.fate = Fate::Needed,
                // What stands for it may be about symbols that were given up here.
                Some(false) if skip > 0 => source.fate = Fate::Doubtful,
                Some(false) => source.fate = Fate::Received,
                None => break,
            }
        }
    }

    /// A symbol that feedback should know of, and does not.
    fn take_for_lost_beyond(&mut self, sent: Sent, told_end: u64) {
        if matches!(sent.what, What::Source(id) if id >= told_end) {
            self.take_for_lost(sent);
        }
    }

    fn take_for_lost(&mut self, sent: Sent) {
        let What::Source(id) = sent.what else { return };
        let at = id.checked_sub(self.coder.base());
        if let Some(source) = at.and_then(|at| self.sources.get_mut(at as usize))
            && source.fate == Fate::Unknown
        {
            source.fate = Fate::Needed;
            self.lost_beyond.set(None);
            self.has_news = true;
        }
    }

    /// The receiver restarted: it has nothing.
    pub(crate) fn restart_peer(&mut self, now: Time) {
        self.restart_session();
        self.contexts.clear();
        for source in &mut self.sources {
            source.fate = Fate::Needed;
            source.added_at = now;
        }
        self.told_end = self.coder.base();
        self.told_deficit = 0;
        self.told_useless = None;
        (self.told_frames, self.told_at_us) = (None, None);
        self.lost_beyond.set(None);
        self.has_news = true;
        self.timeouts_in_row = 0;
        self.last_ack_at = now;
    }

    /// Our own frame counters start anew.
    pub(crate) fn restart_session(&mut self) {
        self.log.clear();
        self.sharing.restart();
        (self.told_counter, self.told_at_us) = (None, None);
        self.lost_beyond.set(None);
        self.has_news = true;
        for source in &mut self.sources {
            source.counter = None;
            if source.fate == Fate::Unknown {
                source.fate = Fate::Needed;
            }
        }
    }

    /// Source symbols held, and frames kept in mind.
    pub(crate) fn inspect(&self) -> (usize, usize) {
        (self.sources.len(), self.log.sources() + self.log.repairs())
    }

    // ---- time ---------------------------------------------------------------------------------

    /// How long feedback about a frame is waited for.
    fn timeout(&self) -> Duration {
        // Bursts of losses make feedback late, and are no reason to ask later.
        let prompt = self.rtt.timeout() + PROMPT_INTERVALS * self.ack_interval();
        let measured = self.wait.timeout().min(prompt.max(self.wait.smoothed()));
        let once =
            if measured.is_zero() { TIMEOUT_FIRST } else { measured.max(WINDOW_TIMEOUT_MIN) };
        let silence = SILENCE_BORNE.div_duration_f64(once) as u32;
        let borne = probes::timeouts_borne(self.loss_ratio).max(silence);
        let stretched = self.timeouts_in_row.saturating_sub(borne).min(6);
        (once * (1 << stretched)).min(WINDOW_TIMEOUT_MAX)
    }

    /// How long feedback may wait at the receiver.
    fn ack_interval(&self) -> Duration {
        ack_interval(self.params.ack_interval, self.shares_air)
    }

    /// Something came from the peer: it is there, whatever became of our frames and its feedback.
    pub(crate) fn note_heard(&mut self) {
        self.timeouts_in_row = self.timeouts_in_row.min(probes::timeouts_borne(self.loss_ratio));
    }

    pub(crate) fn handle_timeout(&mut self, now: Time, stats: &mut Stats) {
        self.give_up_overdue(now, stats);
        self.held_until = self.held_until.filter(|&until| until > now);
        let Some(due) = self.timeout_due() else { return };
        if now < due {
            return;
        }
        stats.encoder_timeouts += 1;
        self.timeouts_in_row += 1;
        self.asked_at = now;
        let held = self.sources.len() as u32;
        self.probes = probes::wanted(self.timeouts_in_row, held, self.loss_ratio);
    }

    /// Feedback that does not come: after the oldest frame on its way, or, with none on its way,
    /// after the last time anything was heard.
    fn timeout_due(&self) -> Option<Time> {
        if self.sources.is_empty() {
            return None;
        }
        let oldest = self.log.oldest().map_or(self.last_ack_at, |sent| sent.at);
        let since = oldest.max(self.last_ack_at).max(self.asked_at);
        Some(since + self.timeout())
    }

    fn patience(&self) -> Duration {
        (self.params.delivery_deadline * DEADLINES_TO_GIVE_UP).min(WINDOW_SILENCE_MAX)
    }

    fn give_up_overdue(&mut self, now: Time, stats: &mut Stats) {
        let patience = self.patience();
        while let Some(source) = self.sources.front() {
            if source.added_at + patience > now {
                return;
            }
            self.give_up_oldest(stats);
        }
    }

    fn give_up_oldest(&mut self, stats: &mut Stats) {
        let Some(source) = self.sources.front() else { return };
        let next = self.coder.base() + 1;
        if source.fate != Fate::Received {
            stats.packets_given_up += u64::from(source.packets);
            let told = next <= self.told_end && source.fate != Fate::Doubtful;
            self.told_deficit = self.told_deficit.saturating_sub(usize::from(told));
            self.forget_with_given_up();
        }
        self.advance(next);
    }

    /// The receiver passes over what is given up, if it has not, and forgets all headers. Coded
    /// symbols that it holds may be about that, and stand for nothing any more.
    fn forget_with_given_up(&mut self) {
        self.contexts.clear();
        let received = self.sources.iter_mut().filter(|source| source.fate == Fate::Received);
        received.for_each(|source| source.fate = Fate::Doubtful);
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let give_up = self.sources.front().map(|source| source.added_at + self.patience());
        self.timeout_due().into_iter().chain(give_up).chain(self.held_until).min()
    }
}
