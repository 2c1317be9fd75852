//! The sending side of a link: what feedback about its frames shows about losses, round trips and
//! rate, and whether the channel is shared. It knows nothing about the content of frames except
//! which of them are repair.

use core::time::Duration;

use corridor_base::Time;

use super::losses::{self, LOSS_RATIO_MAX};
use super::path_control::{PathControl, Sample, follow_delay};
use super::rtt::{RttEstimator, Smoothed};
use super::sent::{FrameNumber, Sent, SentLog, What};
use super::shared_channel::{Crossed, Sharing, ack_interval};
use crate::bounds::{WINDOW_ACK_INTERVAL_MIN, WINDOW_TIMEOUT_MIN, sent_log_max};
use crate::config::{CodingParams, Goal};
use crate::stats::Stats;
use crate::wire::{LinkFeedback, OVERHEAD_LEN, PairGap, parts_of};

/// Longest wait for feedback that is learned from: a round trip plus this many feedback intervals.
const WAIT_MAX: u32 = 8;
/// Longest span between two frames that says something about the path's rate, in microseconds.
const SPAN_US_MAX: u32 = 10_000_000;
/// Bytes of a frame outside its body.
pub(crate) const FRAME_OVERHEAD: f64 = OVERHEAD_LEN as f64;
/// Bodies longer than this fraction of the longest count as long: they take longer in transit.
const LONG_DIVISOR: usize = 2;
/// Number of long frames, and of feedbacks about them, without any having arrived, that raises
/// suspicion. By chance this is rare, and it only triggers a check.
const LONG_UNSEEN_MIN: u32 = 32;
/// See [`LONG_UNSEEN_MIN`].
const FEEDBACK_UNSEEN_MIN: u32 = 16;
/// How long a burst may go on before feedback about it comes, at most: the usual interval of
/// feedback. Neither a longer one, nor that of a shared channel, makes it longer.
pub(crate) const BURST_TIME_MAX: Duration = Duration::from_millis(10);
/// How many waits for feedback the oldest frame may go unreported before its length is checked.
const UNTOLD_WAITS: u32 = 2;
/// A body is of the usual length if its length, or the mean of long ones, is at least this share of
/// the other.
const USUAL_LEN: f64 = 0.95;
/// The newest long frame has this fraction of weight in their mean length.
const LONG_LEN_PARTS: f64 = 64.0;

/// One direction of a link, as seen by its sender.
pub(crate) struct LinkUsage {
    log: SentLog,
    /// The next frame to be made.
    next: FrameNumber,
    told: LastTold,
    loss_ratio: f64,
    rtt: RttEstimator,
    wait: Wait,
    rate: Box<dyn PathControl>,
    sharing: Sharing,
    /// A part of this station that hears more has found that the channel is shared.
    told_shared: bool,
    /// The channel is shared, as configured, or as this station or its peer has found.
    shares_air: bool,
    /// The configured answer to that, if any.
    half_duplex: Option<bool>,
    /// How long the peer delays feedback, as it announces; until then, as long as this station
    /// does.
    ack_interval: Duration,
    long: Long,
    to_send: ToSend,
}

/// What is known of the next frame with a symbol.
#[derive(Clone, Copy, Debug, Default)]
struct ToSend {
    /// The rate holds it back.
    held: bool,
    /// It follows a gap.
    after_gap: bool,
    /// Bytes sent before it, in frames of all kinds.
    bytes_before: u64,
    /// The same at the end of the last frame with a symbol, without what was piggybacked on that.
    bytes_until: Option<u64>,
}

impl ToSend {
    /// It is sent, with a body of `len` bytes. Returns the bytes sent since the frame before, at
    /// most `most`. The path carries them, too: they count for the rate. But of probes of the path
    /// MTU it may carry none.
    fn take_beside(&mut self, len: usize, most: usize) -> u16 {
        let until = self.bytes_before + OVERHEAD_LEN as u64 + len as u64;
        let from = self.bytes_until.replace(until).unwrap_or(self.bytes_before);
        let most = u16::try_from(most).unwrap_or(u16::MAX);
        u16::try_from(self.bytes_before.saturating_sub(from)).unwrap_or(most).min(most)
    }
}

/// How long feedback about a frame takes; some of it waits, some gets lost.
#[derive(Debug)]
struct Wait {
    /// From sending until feedback.
    time: RttEstimator,
    /// The part of it that is not the round trip, and so does not include the queue: the frame
    /// waits at the other end until feedback is sent, or longer if that is lost.
    ack_delay: RttEstimator,
    /// Frames that may be in flight meanwhile: each frame asks, and only feedback changes it.
    in_flight_max: f64,
}

impl Wait {
    fn new(rate: &dyn PathControl) -> Self {
        let (time, ack_delay) = (RttEstimator::new(), RttEstimator::new());
        Wait { in_flight_max: rate.in_flight_max(ack_delay.timeout()), time, ack_delay }
    }

    fn limit_flight(&mut self, rate: &dyn PathControl) {
        self.in_flight_max = rate.in_flight_max(self.ack_delay.timeout());
    }
}

/// Frames that take longer in transit: those whose bodies are longer than `from`, their mean
/// length, and the longest body.
#[derive(Clone, Copy, Debug)]
struct Long {
    from: usize,
    len: f64,
    most: usize,
    unseen: Unseen,
}

/// Counts since a long frame last was the newest that had arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Unseen {
    /// Long frames, lost or arrived.
    long: u32,
    feedback: u32,
}

/// The peer's feedback, in a frame with this counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    feedback: LinkFeedback,
    peer_counter: u32,
}

impl Heard {
    pub(crate) fn new(feedback: LinkFeedback, peer_counter: u32) -> Self {
        Heard { feedback, peer_counter }
    }
}

/// Frames newly reported by one feedback.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Their number, and how many of them the rate had held back.
    frames: u32,
    held: u32,
    /// Their bytes, and those sent beside them.
    len: f64,
    /// Some of them followed a gap.
    has_gap: bool,
    newest: Option<Sent>,
}

/// What feedback last reported.
#[derive(Clone, Copy, Debug, Default)]
struct LastTold {
    /// The newest frame that it reported.
    counter: Option<u32>,
    /// How many frames the other end has counted.
    frames: Option<u32>,
    /// The same when feedback last reported a newer frame, from which the rate control was told of
    /// the frames that arrived.
    counted: Option<u32>,
    /// When the newest of them arrived, by the receiver's clock.
    at_us: Option<u32>,
    /// When that one was sent.
    sent_at: Option<Time>,
    /// Whether the sender waits for overtaken frames. Where delay matters more than goodput, they
    /// count as lost at once.
    awaits_late: bool,
    /// How late overtaken frames arrive, as the receiver reports it, if the sender waits for them.
    lateness: Duration,
    /// How long the newest frame took there, and feedback back.
    transit: Duration,
    /// The newest gap of a pair that was reported.
    pair: Option<PairGap>,
}

impl LastTold {
    fn new(awaits_late: bool) -> Self {
        LastTold { awaits_late, ..LastTold::default() }
    }
}

impl LinkUsage {
    pub(crate) fn new(params: &CodingParams, len_max: usize, now: Time) -> Self {
        let rate = follow_delay(now);
        LinkUsage {
            log: SentLog::new(sent_log_max(params.lane_size().into())),
            next: FrameNumber::default(),
            told: LastTold::new(params.goal != Goal::LowDelay),
            loss_ratio: 0.0,
            rtt: RttEstimator::new(),
            wait: Wait::new(&*rate),
            rate,
            sharing: Sharing::default(),
            told_shared: false,
            shares_air: params.half_duplex == Some(true),
            half_duplex: params.half_duplex,
            ack_interval: params.ack_interval,
            long: Long {
                from: len_max / LONG_DIVISOR,
                len: len_max as f64,
                most: usize::MAX,
                unseen: Unseen::default(),
            },
            to_send: ToSend::default(),
        }
    }

    // ---- what is known ------------------------------------------------------------------------

    /// The frames in flight.
    pub(crate) fn log(&self) -> &SentLog {
        &self.log
    }

    /// How long the sender waits for overtaken frames.
    pub(crate) fn lateness(&self) -> Duration {
        self.told.lateness
    }

    /// How long after a frame was sent others have overtaken it: as long as the newest frame took
    /// that feedback reported, and feedback back (RACK.rtt in RFC 8985, section 6.2).
    pub(crate) fn transit(&self) -> Duration {
        self.told.transit
    }

    /// How long after a covered frame was sent it can no longer arrive late.
    pub(crate) fn age_max(&self) -> Duration {
        self.told.transit + self.told.lateness
    }

    /// Removes the oldest covered frame if it can no longer arrive late, or is not awaited.
    pub(crate) fn pop_settled(&mut self, now: Time, is_awaited: bool) -> Option<Sent> {
        self.log.pop_settled(now, self.age_max(), is_awaited)
    }

    /// Loss ratio, 0 to [`LOSS_RATIO_MAX`].
    pub(crate) fn loss_ratio(&self) -> f64 {
        self.loss_ratio
    }

    /// The round-trip time, as far as it was measured.
    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// How long feedback about a frame takes.
    pub(crate) fn wait(&self) -> &RttEstimator {
        &self.wait.time
    }

    /// The smoothed round-trip time, or the lower bound for one.
    pub(crate) fn smoothed_round_trip(&self) -> Duration {
        self.rtt.smoothed().max(WINDOW_ACK_INTERVAL_MIN)
    }

    /// Whether as many frames are in flight as the path holds: more would only wait there, or, if
    /// no feedback comes, be sent into an outage. But the other end may hold back feedback for its
    /// interval. For so long a burst may go on, of a sender that never tried how much the path
    /// carries: mostly acknowledgments of the other direction's data, which would stall for want
    /// of them.
    pub(crate) fn is_full(&self, now: Time) -> bool {
        let on_their_way = self.log.sources() + self.log.repairs();
        let is_many = on_their_way as f64 >= self.wait.in_flight_max;
        debug_assert_eq!(
            self.wait.in_flight_max,
            self.rate.in_flight_max(self.wait.ack_delay.timeout()),
            "only feedback changes it"
        );
        let burst = self.ack_interval.min(BURST_TIME_MAX);
        is_many && self.log.oldest().is_some_and(|oldest| now - oldest.at > burst)
    }

    /// Whether no frame with a symbol is on the path: the peer has reported on all of them. The
    /// next one then meets none of them in a queue.
    pub(crate) fn is_idle(&self) -> bool {
        self.log.len() == 0
    }

    /// How many frames should leave alone between pairs, which show the capacity; `None`: all of
    /// them.
    pub(crate) fn singles_between_pairs(&self) -> Option<u32> {
        self.rate.singles_between_pairs()
    }

    /// Whether a body of `len` bytes is as long as long ones usually are: only then does its time
    /// show the rate of the path.
    pub(crate) fn is_usual_len(&self, len: usize) -> bool {
        let (shorter, longer) = ((len as f64).min(self.long.len), (len as f64).max(self.long.len));
        shorter >= USUAL_LEN * longer
    }

    /// Usual length of long frames, in bytes.
    pub(crate) fn long_frame_len(&self) -> usize {
        (FRAME_OVERHEAD + self.long.len) as usize
    }

    /// Frames/s that recently came through.
    pub(crate) fn through_per_s(&self) -> f64 {
        self.rate.through_per_s()
    }

    /// Airtime of a frame.
    pub(crate) fn frame_time(&self) -> Duration {
        Duration::from_secs_f64(self.rate.through_per_s().recip())
    }

    /// Bytes/s that the path carries, without the headers of lower layers.
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.rate.frames_per_s() * (FRAME_OVERHEAD + self.long.len)
    }

    /// Whether the channel is shared, as far as this station and its peer know.
    pub(crate) fn shares_air(&self) -> bool {
        self.shares_air
    }

    /// Whether the channel is shared as far as this station itself knows: what the peer is told.
    pub(crate) fn finds_air_shared(&self) -> bool {
        self.half_duplex.unwrap_or(self.sharing.is_shared() || self.told_shared)
    }

    /// Sets how long the other end delays feedback, as it announces.
    pub(crate) fn expect_feedback(&mut self, interval: Duration) {
        self.ack_interval = interval;
    }

    /// How long the other end may delay feedback.
    pub(crate) fn ack_interval(&self) -> Duration {
        ack_interval(self.ack_interval, self.shares_air)
    }

    /// Whether the path MTU may have become too small for long frames: nothing was reported for
    /// long about frames in flight, or many long frames were reported and only short ones arrived.
    /// Losses and outages look the same, so this is only a reason to check.
    pub(crate) fn suspects_length(&self, now: Time) -> bool {
        let untold = self.log.oldest().is_some_and(|oldest| {
            let wait = self.wait.time.timeout().max(WINDOW_TIMEOUT_MIN) + self.ack_interval();
            self.is_long(usize::from(oldest.len)) && now - oldest.at > UNTOLD_WAITS * wait
        });
        let Unseen { long, feedback } = self.long.unseen;
        untold || long >= LONG_UNSEEN_MIN && feedback >= FEEDBACK_UNSEEN_MIN
    }

    fn is_long(&self, len: usize) -> bool {
        len > self.long.from
    }

    // ---- frames that go -----------------------------------------------------------------------

    /// Sets the number of lanes: the log has room for as many times the frames of one.
    pub(crate) fn set_lanes(&mut self, lanes: usize) {
        self.log.set_lanes(lanes);
    }

    /// Sets the longest body of a frame, in bytes.
    pub(crate) fn set_body_len_max(&mut self, len: usize) {
        self.long.most = len;
    }

    /// Longest body of a frame.
    pub(crate) fn body_len_max(&self) -> usize {
        self.long.most
    }

    /// Number of frames that a body of `len` bytes needs.
    pub(crate) fn parts_of(&self, len: usize) -> usize {
        parts_of(len, self.long.most)
    }

    /// The next frame with a symbol will have this counter, after so many bytes in frames of all
    /// kinds.
    pub(crate) fn begin(&mut self, counter: u32, bytes_sent: u64) {
        self.next = self.next.of_counter(counter);
        self.to_send.bytes_before = bytes_sent;
    }

    /// The next frame to be made.
    pub(crate) fn next(&self) -> FrameNumber {
        self.next
    }

    /// The next frame has to wait for the rate.
    pub(crate) fn note_limited(&mut self) {
        self.to_send.held = true;
    }

    /// There is no next frame: the rate holds back nothing.
    pub(crate) fn note_unlimited(&mut self) {
        self.to_send.held = false;
    }

    /// The next frame follows a gap.
    pub(crate) fn note_gap(&mut self) {
        self.to_send.after_gap = true;
    }

    /// How long to send nothing, if that helps the rate; returned once.
    pub(crate) fn take_pause(&mut self) -> Option<Duration> {
        let pause = self.rate.take_pause();
        self.to_send.after_gap |= pause.is_some();
        pause
    }

    /// The frame that was begun is sent, with a body of `len` bytes: it is the newest of the log
    /// now. Returns the record of a frame for which there is no longer room, as if it were lost.
    #[inline]
    pub(crate) fn note_sent(
        &mut self,
        now: Time,
        (what, parts): (What, usize),
        len: usize,
    ) -> Option<Sent> {
        let held = core::mem::take(&mut self.to_send.held);
        if self.is_long(len) {
            self.long.len += (len as f64 - self.long.len) / LONG_LEN_PARTS;
        }
        let after_gap = core::mem::take(&mut self.to_send.after_gap);
        let number = self.next;
        let parts = parts.min(u8::MAX.into()) as u8;
        let beside = self.to_send.take_beside(len, self.long_frame_len());
        // A gap is not a rate.
        let beside = if after_gap { 0 } else { beside };
        let len = len as u16;
        self.log.push(Sent { number, at: now, what, held, after_gap, len, beside, parts })
    }

    // ---- feedback -----------------------------------------------------------------------------

    /// The newest frame that feedback reports.
    pub(crate) fn number(&self, heard: &Heard) -> FrameNumber {
        self.next.of_counter(heard.feedback.counter)
    }

    /// Whether newer feedback was taken before. Feedback about frames that were overtaken reports
    /// the same newest frame, and more frames.
    pub(crate) fn is_overtaken(&self, Heard { feedback, .. }: &Heard) -> bool {
        let fewer = |told: u32| (feedback.frames.wrapping_sub(told) as i32) < 0;
        self.told.counter.is_some_and(|told| {
            feedback.counter < told
                || (feedback.counter == told && self.told.frames.is_some_and(fewer))
        })
    }

    /// Frames of all kinds sent since the last reported one that this feedback covers.
    pub(crate) fn frames_until(&self, heard: &Heard) -> u32 {
        self.told.counter.map_or(0, |told| heard.feedback.counter - told)
    }

    /// Learns how long feedback takes, from the oldest frame that this one covers.
    pub(crate) fn note_wait(&mut self, now: Time, heard: &Heard) {
        let number = self.number(heard);
        if let Some(oldest) = self.log.oldest().filter(|sent| sent.number <= number) {
            let longest = WAIT_MAX * self.ack_interval();
            self.wait.time.sample((now - oldest.at).min(self.rtt.timeout() + longest));
            if let Some(newest) = self.log.newest_until(number) {
                let ack_delay = newest.at - oldest.at + heard.feedback.delay;
                self.wait.ack_delay.sample(ack_delay.min(longest));
            }
            self.wait.limit_flight(&*self.rate);
        }
    }

    /// Updates the loss ratio as reported, over the frames since the last report.
    pub(crate) fn follow_losses(
        &mut self,
        Heard { feedback, .. }: &Heard,
        frames: u32,
        stats: &mut Stats,
    ) {
        self.told.counter = Some(feedback.counter);
        let told = feedback.loss_ratio.clamp(0.0, LOSS_RATIO_MAX);
        stats.erasure_ratio_e3 = told;
        self.loss_ratio = losses::follow(self.loss_ratio, told, frames);
    }

    /// Applies feedback to the log: the frames that it newly covers. Overtaken ones are waited for
    /// at most as long as `lateness_max`.
    pub(crate) fn tell(&mut self, now: Time, heard: &Heard, lateness_max: Duration) -> Told {
        if self.told.awaits_late {
            self.told.lateness = heard.feedback.lateness.min(lateness_max);
        }
        let (mut told, newest) = (Told::default(), self.number(heard));
        if let Some(sent) = self.log.newest_until(newest) {
            self.told.transit = (now - sent.at).saturating_sub(heard.feedback.delay);
        }
        let mut long = 0;
        let long_from = self.long.from;
        self.log.tell(newest, |sent| {
            told.frames += 1;
            told.len += FRAME_OVERHEAD + f64::from(sent.len) + f64::from(sent.beside);
            told.held += u32::from(sent.held);
            told.has_gap |= sent.after_gap;
            told.newest = Some(*sent);
            long += u32::from(usize::from(sent.len) > long_from);
        });
        let came = told.newest.filter(|sent| sent.number == newest);
        if came.is_some_and(|sent| self.is_long(usize::from(sent.len))) {
            self.long.unseen = Unseen::default();
        } else if told.frames > 0 {
            let unseen = &mut self.long.unseen;
            unseen.long = unseen.long.saturating_add(long);
            unseen.feedback = unseen.feedback.saturating_add(1);
        }
        told
    }

    /// Updates the round-trip time and the rate from what feedback reports about the newest of
    /// these frames.
    pub(crate) fn note_delay(&mut self, now: Time, told: &Told, heard: &Heard, stats: &mut Stats) {
        let (feedback, newest) = (&heard.feedback, self.number(heard));
        let before = &mut self.told;
        let Some(sent) = told.newest.filter(|sent| sent.number == newest) else {
            if told.frames > 0 {
                before.counted = Some(feedback.frames);
            }
            // Otherwise only overtaken frames arrived: they count with the next feedback, or each
            // of them would count as lost.
            return;
        };
        if feedback.delay < LinkFeedback::DELAY_MAX {
            self.rtt.sample((now - sent.at).saturating_sub(feedback.delay));
        }
        let counted = before.counted.replace(feedback.frames);
        let came = counted.map_or(told.frames, |before| feedback.frames.wrapping_sub(before));
        let sent_at_us = (sent.at.as_nanos() / 1_000) as u32;
        let usual = self.rtt.usual();
        let sample = Sample {
            one_way_us: feedback.received_at_us.wrapping_sub(sent_at_us),
            is_long: usize::from(sent.len) > self.long.from,
            round_trip: usual.map_or(Duration::ZERO, Smoothed::timeout),
            round_trip_smoothed: usual.map_or(Duration::ZERO, Smoothed::srtt),
            told: told.len / (FRAME_OVERHEAD + self.long.len),
            span: before.at_us.map_or(Duration::ZERO, |before| {
                let span_us = feedback.received_at_us.wrapping_sub(before);
                Duration::from_micros(u64::from(span_us.min(SPAN_US_MAX)))
            }),
            sent_span: before.sent_at.map_or(Duration::ZERO, |before| sent.at - before),
            frames: told.frames as usize,
            came: came as usize,
            limited: 2 * told.held >= told.frames && !told.has_gap,
            shares_air: self.shares_air,
            pair_per_s: feedback
                .pair
                .filter(|_| feedback.pair != before.pair)
                .map(|pair| 1e9 / f64::from(pair.gap_ns)),
        };
        before.pair = feedback.pair;
        (before.at_us, before.sent_at) = (Some(feedback.received_at_us), Some(sent.at));
        self.rate.note(now, sample, stats);
        self.wait.limit_flight(&*self.rate);
    }

    /// Learns whether the channel is shared, unless that is configured; the peer may know better.
    /// `others`: frames of all kinds sent since the last report; `idle`: time with nothing to send.
    pub(crate) fn note_sharing(
        &mut self,
        now: Time,
        told: &Told,
        Heard { feedback, peer_counter }: &Heard,
        (all, idle): (u32, Duration),
        stats: &mut Stats,
    ) {
        let (received_at_us, symbols) = (feedback.received_at_us, told.frames);
        let (peer_counter, others) = (*peer_counter, all.saturating_sub(symbols));
        let crossed = Crossed { received_at_us, peer_counter, symbols, others, idle };
        self.told.frames = Some(feedback.frames);
        if self.rate.tells_of_few(now) {
            // On a channel already known to be shared, the effect of our own adaptation hides that
            // of the peer's frames.
            self.sharing.restart();
        }
        self.sharing.note(crossed, self.rtt.timeout());
        let found = self.sharing.is_shared() || self.told_shared || feedback.half_duplex;
        self.shares_air = self.half_duplex.unwrap_or(found);
        stats.half_duplex = self.shares_air;
    }

    /// Set by a hub, which hears all its neighbours, when it has found out whether they share a
    /// channel with it.
    pub(crate) fn set_air_shared(&mut self, is_shared: bool) {
        self.told_shared = is_shared;
    }

    /// Frame counters restart: nothing will be reported about the frames in flight.
    pub(crate) fn restart_session(&mut self) {
        self.next = self.next.of_next_session();
        self.log.clear();
        self.sharing.restart();
        (self.told.counter, self.told.at_us, self.told.sent_at) = (None, None, None);
        self.to_send.bytes_until = None;
    }

    /// The peer restarted: its counts begin again, and it will see our frames in another session.
    pub(crate) fn restart_peer(&mut self) {
        self.restart_session();
        self.told = LastTold::new(self.told.awaits_late);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::wire::PathId;

    /// Sums up the frames that samples report, and how many of them arrived.
    struct Sums(Arc<Mutex<(usize, usize)>>);

    impl PathControl for Sums {
        fn note(&mut self, _: Time, sample: Sample, _: &mut Stats) {
            let mut sums = self.0.lock().unwrap();
            *sums = (sums.0 + sample.frames, sums.1 + sample.came);
        }

        fn frames_per_s(&self) -> f64 {
            1.0
        }

        fn through_per_s(&self) -> f64 {
            1.0
        }

        fn in_flight_max(&self, _: Duration) -> f64 {
            f64::INFINITY
        }

        fn take_pause(&mut self) -> Option<Duration> {
            None
        }

        fn singles_between_pairs(&self) -> Option<u32> {
            None
        }

        fn tells_of_few(&self, _: Time) -> bool {
            false
        }
    }

    /// Feedback about this frame, after `frames` frames have arrived.
    fn heard(counter: u32, frames: u32) -> Heard {
        let feedback = LinkFeedback {
            path: PathId::default(),
            half_duplex: false,
            counter,
            delay: Duration::ZERO,
            received_at_us: 1_000 * counter,
            frames,
            loss_ratio: 0.0,
            lateness: Duration::ZERO,
            pair: None,
        };
        Heard::new(feedback, 0)
    }

    /// The acknowledgments of several Gbit/s are more frames than the path was ever seen to carry
    /// in that direction. Held back, they stalled the data for half an interval, twenty times a
    /// second.
    #[test]
    fn a_burst_is_held_back_only_once_feedback_may_have_come() {
        let mut link = LinkUsage::new(&CodingParams::window(), 1_400, Time::ZERO);
        let due = Time::ZERO + BURST_TIME_MAX;
        for counter in 0..200 {
            link.begin(counter, 0);
            assert!(!link.is_full(due), "{counter}");
            link.note_sent(Time::ZERO, (What::Source(0), 1), 100);
        }
        assert!(link.is_full(due + Duration::from_micros(1)));
        link.tell(due, &heard(180, 181), Duration::MAX);
        assert!(!link.is_full(due + Duration::from_micros(1)), "19 are few");
    }

    /// The pacer counts the feedback that this station sends as well as data. Where the rate
    /// control did not learn of it, each rate that it set was that much lower than the one before.
    #[test]
    fn what_is_sent_beside_symbols_counts_for_the_rate() {
        let mut link = LinkUsage::new(&CodingParams::window(), 1_400, Time::ZERO);
        let mut frame = |counter, bytes_sent| {
            link.begin(counter, bytes_sent);
            link.note_sent(Time::ZERO, (What::Source(0), 1), 100);
            link.log.newest().unwrap().beside
        };
        let of_frame = OVERHEAD_LEN as u64 + 100;
        // What was sent before the first one, a handshake, is not its time.
        assert_eq!([frame(0, 5_000), frame(1, 5_000 + of_frame)], [0, 0]);
        assert_eq!(frame(2, 5_070 + 2 * of_frame), 70);
        // Probes of the path MTU may not have arrived.
        assert_eq!(frame(3, 1_000_000), OVERHEAD_LEN as u16 + 1_400, "a long frame at most");
        let told = link.tell(Time::ZERO, &heard(3, 4), Duration::MAX);
        assert_eq!(told.len, (5 * OVERHEAD_LEN + 4 * 100 + 70 + 1_400) as f64);
        let begun = |link: &mut LinkUsage| {
            link.begin(4, 2_000_000);
            link.note_sent(Time::ZERO, (What::Source(0), 1), 100);
            link.log.newest().unwrap().beside
        };
        link.note_gap();
        assert_eq!(begun(&mut link), 0, "after a gap");
        link.restart_session();
        assert_eq!(begun(&mut link), 0, "another session: the handshake is not its time");
    }

    /// Sends a frame each millisecond, and gives feedback about each `every`th frame `transit_ms`
    /// after it was sent. Returns how late feedback is then taken to be.
    fn ack_delay_after(every: u32, transit_ms: u64) -> Duration {
        let mut link = LinkUsage::new(&CodingParams::window(), 1_400, Time::ZERO);
        let mut stats = Stats::default();
        for counter in 0..1_000 {
            let at = Time::from_millis(counter.into());
            link.begin(counter, 0);
            link.note_sent(at, (What::Source(0), 1), 1_400);
        }
        for counter in (every - 1..1_000).step_by(every as usize) {
            let now = Time::from_millis(u64::from(counter) + transit_ms);
            let heard = heard(counter, counter + 1);
            link.note_wait(now, &heard);
            let told = link.tell(now, &heard, Duration::MAX);
            link.note_delay(now, &told, &heard, &mut stats);
        }
        assert!(link.wait().timeout() > Duration::from_millis(transit_ms));
        link.wait.ack_delay.timeout()
    }

    /// What may be in flight follows from this; it grew with the queue, which so became longer.
    #[test]
    fn a_queue_does_not_make_feedback_late_but_lost_feedback_does() {
        let often = ack_delay_after(10, 40);
        assert!(often < Duration::from_millis(15), "{often:?}");
        assert_eq!(ack_delay_after(10, 3_000), often);
        assert!(ack_delay_after(50, 40) > Duration::from_millis(45));
    }

    /// Feedback that reported no newer frame, but more of the earlier ones, used to be ignored:
    /// with jitter that reorders, a fifth of all frames counted as lost.
    #[test]
    fn frames_that_others_have_overtaken_are_not_lost() {
        let mut link = LinkUsage::new(&CodingParams::window(), 1_400, Time::ZERO);
        let sums = Arc::new(Mutex::new((0, 0)));
        link.rate = Box::new(Sums(Arc::clone(&sums)));
        let mut stats = Stats::default();
        for counter in 0..12 {
            link.begin(counter, 0);
            link.note_sent(Time::from_millis(counter.into()), (What::Source(0), 1), 1_400);
        }
        // Of every three frames the last arrives first.
        for (counter, frames) in [(2, 1), (2, 2), (2, 3), (5, 4), (5, 6), (8, 7), (11, 12)] {
            let now = Time::from_millis(100 + u64::from(frames));
            let heard = heard(counter, frames);
            let told = link.tell(now, &heard, Duration::MAX);
            link.note_delay(now, &told, &heard, &mut stats);
        }
        // What the first feedback reports counts as all that was sent before it.
        assert_eq!(*sums.lock().unwrap(), (12, 3 + 11));
    }
}
