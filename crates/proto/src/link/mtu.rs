//! The path MTU: how long frames to the peer may be. Found by probes that the peer echoes (Datagram
//! Packetization Layer PMTUD, RFC 8899). It needs no ICMP, and each end searches its own direction.
//!
//! Probes are sent in rounds: some candidates, longest first, then a *control* of a length known to
//! pass. A candidate counts as missed if it was not echoed but its round's control was. On a lossy
//! path a miss proves nothing by itself; how many are needed follows from the share of controls
//! that come back. So a path that loses a third of its frames is searched as reliably as a lossless
//! one, only more slowly, and an outage proves nothing at all.
//!
//! 1. *Search* between what passes and what does not until they are close ([`PRECISION`]).
//! 2. *Rest*, and confirm the length in use from time to time: a path whose MTU has shrunk drops
//!    long frames silently (black hole detection, Section 4.3).
//! 3. Search for a longer one from time to time (Section 5.1.1, `PMTU_RAISE_TIMER`): soon after the
//!    length in use became shorter, and then less and less often.
//!
//! A full queue accepts short frames and drops long ones, and a train of probes only samples it at
//! one moment. So the length in use is reduced only if it has been missed for some time
//! ([`MTU_DOUBT_SPAN`]).

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::bounds::{
    MTU_CANDIDATES_MAX, MTU_CONFIRM_INTERVAL, MTU_DOUBT_SPAN, MTU_HINT_INTERVAL, MTU_RAISE_FIRST,
    MTU_RAISE_INTERVAL, MTU_ROUND_MAX, MTU_ROUND_MIN, MTU_ROUNDS_KEPT,
};
use crate::link::rtt::RttEstimator;

/// The search ends when the lengths that pass and that do not are this close, in bytes.
pub const PRECISION: usize = 4;
/// Probability of taking a length for too long by mistake.
const MISTAKE_RATIO: f64 = 0.01;
/// Minimum number of misses before a length is taken for too long (`MAX_PROBES`).
const MISSED_MIN: u32 = 3;
/// Maximum of that number, as on a path that loses nine of ten frames.
const MISSED_MAX: u32 = 50;
/// Duration of a round before a round-trip time is known.
const ROUND_FIRST: Duration = Duration::from_millis(250);
/// How long a candidate is waited for after its control came back: this fraction of the round-trip
/// time.
const GRACE_DIVISOR: u32 = 4;
/// Rounds without an echo after which only controls are sent, less and less often.
const SILENT_ROUNDS: u32 = 4;
/// The control's own length is in doubt after at least `DOUBTFUL_ROUNDS` successive rounds without
/// an echo, if the probability of as many by chance is below this.
const DOUBT_RATIO: f64 = 1e-4;
const DOUBTFUL_ROUNDS: u32 = 5;
/// Losses are assumed to hit bytes, which favours long frames, but only up to this factor of the
/// control's length: mostly they hit frames.
const LENGTH_COUNTS_MAX: f64 = 1.5;
/// Number of controls over which the share that came back is averaged.
const MEMORY_CONTROLS: f64 = 32.0;

/// Candidates and the control.
const TRAIN_MAX: usize = MTU_CANDIDATES_MAX + 1;

/// The range of frame lengths, in bytes, in which the longest that passes is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLens {
    /// Every path carries it.
    pub min: usize,
    /// Most paths carry it: in use until more is known (`BASE_PLPMTU`).
    pub base: usize,
    /// No frame is longer.
    pub max: usize,
}

/// A probe to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    pub(crate) round: u16,
    /// Probes of the same round sent just before.
    pub(crate) before: u8,
    /// Bytes of the whole frame.
    pub(crate) len: usize,
}

/// What is known about one direction of the path.
pub(crate) struct PathMtu {
    lens: FrameLens,
    /// Longest frame known to pass.
    confirmed: usize,
    /// Shortest frame known not to pass; beyond `lens.max` if there is none.
    refuted: usize,
    in_use: usize,
    phase: Phase,
    candidates: ArrayVec<Candidate, MTU_CANDIDATES_MAX>,
    /// Rounds that may still be echoed, oldest first; the last is in progress.
    rounds: ArrayVec<Round, MTU_ROUNDS_KEPT>,
    next_round: u16,
    /// Probes sent in the current round.
    sent: usize,
    /// When the current round ends; at rest, when to confirm the length in use.
    due: Time,
    raise: Raise,
    hinted_at: Option<Time>,
    rtt: RttEstimator,
    controls: Controls,
}

/// When to search for a longer length, and how long to wait after that.
#[derive(Clone, Copy, Debug)]
struct Raise {
    at: Time,
    after: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No round is in progress.
    Rest,
    /// Checks whether the length in use still passes.
    Confirm,
    Search,
}

#[derive(Clone, Copy, Debug)]
struct Candidate {
    len: usize,
    /// Rounds whose control was echoed and this candidate was not, and when the first of them
    /// ended.
    missed: u32,
    missed_since: Option<Time>,
}

#[derive(Clone, Debug)]
struct Round {
    id: u16,
    /// Candidates, with the control at the end.
    lens: ArrayVec<usize, TRAIN_MAX>,
    echoed: u8,
    /// When the control was sent.
    sent_at: Option<Time>,
    judged: bool,
}

impl Round {
    fn has(&self, at: usize) -> bool {
        self.echoed >> at & 1 == 1
    }

    fn control(&self) -> usize {
        self.lens.len() - 1
    }

    fn is_complete(&self) -> bool {
        (0..self.lens.len()).all(|at| self.has(at))
    }
}

/// The controls of past rounds: how often frames that are not too long come back.
#[derive(Debug, Default)]
struct Controls {
    /// Ended rounds, and those whose control was echoed; both decay.
    sent: f64,
    echoed: f64,
    /// Successive rounds without an echo of the control.
    silent_rounds: u32,
}

impl Controls {
    fn note_echo(&mut self) {
        self.echoed += 1.0;
        self.silent_rounds = 0;
    }

    /// A round has ended.
    fn note_round(&mut self) {
        self.sent += 1.0;
        if self.sent > MEMORY_CONTROLS {
            self.sent /= 2.0;
            self.echoed /= 2.0;
        }
    }

    /// A round has ended without an echo of its control.
    fn note_silence(&mut self) {
        self.silent_rounds = self.silent_rounds.saturating_add(1);
    }

    /// What did not answer is gone, so the silence does not count.
    fn end_silence(&mut self) {
        self.silent_rounds = 0;
    }

    /// Whether so many losses are improbable: then the path does not carry the control.
    fn is_doubtful(&self) -> bool {
        let by_chance = (1.0 - self.share_echoed()).powf(f64::from(self.silent_rounds));
        self.silent_rounds >= DOUBTFUL_ROUNDS && by_chance < DOUBT_RATIO
    }

    /// How often a length has to be missed to count as too long: a length that passes would be
    /// missed so often with probability [`MISTAKE_RATIO`].
    fn misses_needed(&self, len: usize, control_len: usize) -> u32 {
        let longer = (len as f64 / control_len as f64).min(LENGTH_COUNTS_MAX);
        let passes = self.share_echoed().powf(longer);
        let needed = (MISTAKE_RATIO.ln() / (1.0 - passes).ln()).ceil();
        (needed as u32).clamp(MISSED_MIN, MISSED_MAX)
    }

    /// Share of controls that come back, by Laplace's rule of succession.
    fn share_echoed(&self) -> f64 {
        ((self.echoed + 1.0) / (self.sent + 2.0)).clamp(0.01, 0.99)
    }
}

impl PathMtu {
    /// A path about which nothing is known.
    pub(crate) fn new(lens: FrameLens) -> Self {
        let base = lens.base.min(lens.max);
        let lens = FrameLens { min: lens.min.min(base), base, ..lens };
        PathMtu {
            lens,
            confirmed: lens.min,
            refuted: lens.max + 1,
            in_use: base,
            phase: Phase::Search,
            candidates: ArrayVec::new(),
            rounds: ArrayVec::new(),
            next_round: 0,
            sent: 0,
            due: Time::ZERO,
            raise: Raise { at: Time::ZERO, after: MTU_RAISE_FIRST },
            hinted_at: None,
            rtt: RttEstimator::new(),
            controls: Controls::default(),
        }
    }

    /// The longest frame to send, in bytes.
    pub(crate) fn frame_len(&self) -> usize {
        self.in_use
    }

    /// The longest frame to send for data that must not be lost again: while the length in use is
    /// in doubt, a length that has passed. It is in doubt from half of the misses needed to judge
    /// it, which happen by chance once in ten times.
    pub(crate) fn safe_len(&self) -> usize {
        let is_doubted = |it: &Candidate| {
            // Each frame asks, and hardly any path misses one.
            let may_be = it.len == self.in_use && it.missed > 0;
            may_be && 2 * it.missed >= self.controls.misses_needed(self.in_use, self.confirmed)
        };
        let doubtful = self.in_use > self.confirmed && self.candidates.iter().any(is_doubted);
        if doubtful { self.confirmed } else { self.in_use }
    }

    /// Whether no search is in progress: the length in use is the result.
    pub(crate) fn is_settled(&self) -> bool {
        self.phase != Phase::Search
    }

    // ---- other information --------------------------------------------------------------------

    /// The interface refuses frames longer than this.
    pub(crate) fn limit(&mut self, now: Time, len: usize) {
        let len = len.max(self.lens.min);
        if len >= self.refuted - 1 {
            return;
        }
        self.refuted = len + 1;
        self.confirmed = self.confirmed.min(len);
        if len < self.in_use {
            self.in_use = len;
            self.raise_soon(now);
        }
        self.begin(now, if self.confirmed == len { Phase::Confirm } else { Phase::Search });
    }

    /// The path has changed: the peer has moved, or the interface was replaced. The length in use
    /// stays until it is shown to be wrong.
    pub(crate) fn restart(&mut self, now: Time) {
        self.confirmed = self.lens.min;
        self.refuted = self.lens.max + 1;
        self.raise_soon(now);
        self.controls.end_silence();
        self.begin(now, Phase::Search);
    }

    /// Somebody claims that the path's MTU has shrunk. Anyone can claim that (RFC 8899, Section
    /// 4.6): it is checked at once, but not believed.
    pub(crate) fn hint(&mut self, now: Time) {
        let lately = |at: Time| now - at < MTU_HINT_INTERVAL;
        if self.phase == Phase::Rest && !self.hinted_at.is_some_and(lately) {
            self.hinted_at = Some(now);
            self.begin(now, Phase::Confirm);
        }
    }

    fn begin(&mut self, now: Time, phase: Phase) {
        if phase == Phase::Confirm {
            self.confirmed = self.lens.min;
        }
        self.phase = phase;
        self.candidates.clear();
        self.rounds.clear();
        self.due = now;
    }

    // ---- probes -------------------------------------------------------------------------------

    /// When [`PathMtu::poll`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Time {
        if self.has_unsent() { Time::ZERO } else { self.due }
    }

    /// Ends the round if its time is up.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if !self.has_unsent() && now >= self.due && self.phase != Phase::Rest {
            self.judge(now);
            self.conclude(now);
        }
    }

    /// The next probe, if one is due.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Probe> {
        if !self.has_unsent() {
            if now < self.due {
                return None;
            }
            self.handle_timeout(now);
            if now < self.due {
                return None; // The search has just ended.
            }
            self.next(now)?;
        }
        let at = self.sent;
        self.sent += 1;
        let round = self.rounds.last_mut()?;
        if at == round.control() {
            round.sent_at = Some(now);
            self.due = now + self.round_time();
        }
        let round = self.rounds.last()?;
        Some(Probe { round: round.id, before: at as u8, len: round.lens[at] })
    }

    fn has_unsent(&self) -> bool {
        self.rounds.last().is_some_and(|round| self.sent < round.lens.len())
    }

    /// How long to wait for a round's echoes.
    fn round_time(&self) -> Duration {
        let measured = self.rtt.timeout();
        let once = if measured.is_zero() { ROUND_FIRST } else { measured.max(MTU_ROUND_MIN) };
        // Not doubled each time: where two of three controls get lost, silence is normal.
        let silent = self.controls.silent_rounds.saturating_sub(SILENT_ROUNDS).min(1_000);
        (once * (1 + silent * silent)).min(MTU_ROUND_MAX)
    }

    /// Decides what the next round probes, if there is one.
    fn next(&mut self, now: Time) -> Option<()> {
        if self.phase == Phase::Rest && !self.raises(now) {
            self.begin(now, Phase::Confirm);
        }
        if self.phase == Phase::Confirm && self.in_use <= self.confirmed {
            self.phase = Phase::Search;
        }
        self.choose_candidates();
        let mut lens: ArrayVec<usize, TRAIN_MAX> = ArrayVec::new();
        if self.controls.silent_rounds < SILENT_ROUNDS {
            lens.extend(self.candidates.iter().map(|candidate| candidate.len));
        }
        lens.push(self.confirmed);
        if self.rounds.is_full() {
            self.rounds.remove(0);
        }
        let id = self.next_round;
        self.next_round = id.wrapping_add(1);
        self.rounds.push(Round { id, lens, echoed: 0, sent_at: None, judged: false });
        self.sent = 0;
        Some(())
    }

    /// Searches for a longer length if it is time; returns whether it does.
    fn raises(&mut self, now: Time) -> bool {
        let is_due = now >= self.raise.at && self.in_use < self.lens.max;
        if is_due {
            self.refuted = self.lens.max + 1;
            self.raise_later(now);
            self.begin(now, Phase::Search);
        }
        is_due
    }

    /// Rests if the lengths that pass and that do not are close.
    fn conclude(&mut self, now: Time) {
        let close = self.refuted - self.confirmed <= PRECISION;
        if self.phase == Phase::Rest || self.in_use > self.confirmed || !close {
            return;
        }
        // A series of hints, each of which makes the length in use be confirmed, must not delay
        // this.
        if self.phase == Phase::Confirm && self.raises(now) {
            return;
        }
        self.phase = Phase::Rest;
        self.candidates.clear();
        self.rounds.clear();
        self.due = now + MTU_CONFIRM_INTERVAL;
    }

    /// The length in use has become shorter, perhaps for a moment: search for a longer one soon.
    fn raise_soon(&mut self, now: Time) {
        self.raise.after = MTU_RAISE_FIRST;
        self.raise_later(now);
    }

    /// Search for a longer length after a pause, and then after one twice as long.
    fn raise_later(&mut self, now: Time) {
        self.raise.at = now + self.raise.after;
        self.raise.after = (2 * self.raise.after).min(MTU_RAISE_INTERVAL);
    }

    /// The lengths to try: the one in use while it is not confirmed, the longest allowed, and
    /// others spread between what passes and what does not. Lengths tried before keep their count.
    fn choose_candidates(&mut self) {
        let (low, high) = (self.confirmed.max(self.in_use), self.refuted);
        let mut lens: ArrayVec<usize, MTU_CANDIDATES_MAX> = ArrayVec::new();
        let open = self.phase == Phase::Search;
        if open && high > self.lens.max && low < self.lens.max {
            lens.push(self.lens.max);
        }
        let in_doubt = self.in_use > self.confirmed;
        let spread = if open { lens.remaining_capacity() - usize::from(in_doubt) } else { 0 };
        let gap = high - low;
        for part in (1..=spread).rev() {
            let len = low + gap * part / (spread + 1);
            if len > low && len < high && lens.last() != Some(&len) {
                lens.push(len);
            }
        }
        if in_doubt {
            lens.push(self.in_use);
        }
        let known = |len: usize| {
            let known = self.candidates.iter().find(|candidate| candidate.len == len);
            known.copied().unwrap_or(Candidate { len, missed: 0, missed_since: None })
        };
        self.candidates = lens.into_iter().map(known).collect();
    }

    // ---- echoes -------------------------------------------------------------------------------

    /// The peer has echoed a probe of this round and length. Echoes of anything else are ignored.
    pub(crate) fn handle_echo(&mut self, now: Time, id: u16, len: usize) {
        let Some(round) = self.rounds.iter_mut().find(|round| round.id == id) else { return };
        let Some(at) = round.lens.iter().position(|&asked| asked == len) else { return };
        if round.has(at) {
            return;
        }
        round.echoed |= 1 << at;
        let (complete, newest) = (round.is_complete(), !round.judged);
        let control = (at == round.control()).then_some(round.sent_at).flatten();
        self.confirmed = self.confirmed.max(len);
        self.in_use = self.in_use.max(len);
        if len >= self.refuted {
            // It was taken for too long by mistake.
            self.refuted = self.lens.max + 1;
        }
        if let Some(sent_at) = control {
            self.rtt.sample(now - sent_at);
            self.controls.note_echo();
            let grace = (self.rtt.smoothed() / GRACE_DIVISOR).max(MTU_ROUND_MIN);
            self.due = if newest { self.due.min(now + grace) } else { self.due };
        }
        if complete && newest {
            self.due = now;
            self.handle_timeout(now);
        }
    }

    /// Counts what the ending round has shown.
    fn judge(&mut self, now: Time) {
        let Some(round) = self.rounds.last_mut().filter(|round| !round.judged) else { return };
        round.judged = true;
        let round = round.clone();
        self.controls.note_round();
        if !round.has(round.control()) {
            self.controls.note_silence();
            if self.controls.is_doubtful() && self.confirmed > self.lens.min {
                self.begin(now, Phase::Confirm);
            }
            return;
        }
        let control_len = round.lens[round.control()];
        for (at, &len) in round.lens[..round.control()].iter().enumerate() {
            if round.has(at) {
                continue;
            }
            let needed = self.controls.misses_needed(len, control_len);
            let tried = self.candidates.iter_mut().find(|candidate| candidate.len == len);
            let Some(candidate) = tried.filter(|_| len > self.confirmed) else { continue };
            candidate.missed += 1;
            let missed_for = now - *candidate.missed_since.get_or_insert(now);
            let lasts = len > self.in_use || missed_for >= MTU_DOUBT_SPAN;
            if candidate.missed >= needed && lasts {
                self.refute(now, len);
            } else if len == self.in_use {
                // As many as needed, over as long as needed.
                self.due = self.due.max(now + MTU_DOUBT_SPAN / (needed - 1));
            }
        }
    }

    fn refute(&mut self, now: Time, len: usize) {
        self.refuted = self.refuted.min(len);
        if self.refuted <= self.in_use {
            self.raise_soon(now);
            let base = if self.lens.base < self.refuted { self.lens.base } else { self.lens.min };
            self.in_use = base.max(self.confirmed);
            // What lies in between is no longer known.
            self.phase = Phase::Search;
        }
    }
}

#[cfg(test)]
mod tests;
