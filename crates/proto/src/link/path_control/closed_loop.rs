//! A path with a queue, to test the rate control: one controlled flow, alone or beside flows that
//! fill the queue.

use core::ops::Range;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use crate::link::arrivals::Pairs;
use crate::link::path_control::{PathControl, Sample, follow_delay};
use crate::link::rtt::RttEstimator;
use crate::link::usage::BURST_TIME_MAX;
use crate::stats::Stats;
use crate::wire::PairGap;

/// Shortest interval of feedback, which is sent for every other frame.
pub(crate) const FEEDBACK_INTERVAL: Duration = Duration::from_micros(500);
const FRAMES_PER_FEEDBACK: u32 = 2;
/// Without feedback, a few frames that request it are sent at this interval.
const ASKS_AFTER: Duration = Duration::from_millis(20);
const ASKS: u32 = 4;
/// Feedback is waited for this many of its intervals beyond a round trip, as on a link.
const WAIT_MAX: u32 = 8;
/// Frames that may be in flight when TCP begins (RFC 6928).
const WINDOW_FIRST: f64 = 10.0;

/// The sender of a frame.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    /// The controlled flow.
    Ours,
    /// A window that grows until the queue is full, like TCP CUBIC's (RFC 9438); its index.
    Filler(usize),
}

enum Event {
    Send,
    /// No feedback has come for a while.
    Ask,
    /// A frame reaches the receiver, or is lost behind the queue.
    Arrival {
        flow: Flow,
        counter: u32,
        sent_at: Time,
        lost: bool,
    },
    /// Our flow's feedback: newest counter, when it was sent and when it arrived, and frames
    /// received so far; and the newest gap of a pair.
    Feedback {
        counter: u32,
        sent_at: Time,
        came_at: Time,
        frames: u32,
        pair: Option<PairGap>,
    },
    /// An acknowledgment to the filler, or a report of a loss.
    FillerAck {
        filler: usize,
        lost: bool,
    },
}

/// Service rate of the bottleneck.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// As in [`Path::frames_per_s`].
    Constant,
    /// This many frames/s from each of these times on; repeats periodically.
    Steps { steps: Vec<(Duration, f64)>, period: Duration },
    /// A frame may leave at each of these times, ascending; repeats periodically. Unused
    /// opportunities are lost.
    Opportunities { at: Vec<Duration>, period: Duration },
}

/// The return path of feedback.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedbackPath {
    /// Shortest interval of feedback.
    pub(crate) interval: Duration,
    /// As in [`Path`].
    pub(crate) loss_ratio: f64,
    pub(crate) loss_burst: f64,
}

impl FeedbackPath {
    /// Without losses.
    pub(crate) fn each(interval: Duration) -> Self {
        FeedbackPath { interval, loss_ratio: 0.0, loss_burst: 1.0 }
    }
}

/// Flows that fill the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fillers {
    pub(crate) count: usize,
    pub(crate) from: Time,
    pub(crate) until: Time,
    /// How many acknowledgments each waits for before it sends what they allow in one burst, like a
    /// kernel that receives many joined frames.
    pub(crate) burst: f64,
}

impl Fillers {
    /// One flow from then on.
    pub(crate) fn one(from_ms: u64) -> Self {
        let from = Time::from_millis(from_ms);
        Fillers { count: 1, from, until: Time::MAX, burst: 1.0 }
    }

    fn none() -> Self {
        Fillers { count: 0, ..Fillers::one(0) }
    }
}

/// A path with one queue in front of its bottleneck.
#[derive(Clone)]
pub(crate) struct Path {
    pub(crate) frames_per_s: f64,
    pub(crate) service: Service,
    /// One-way delay.
    pub(crate) delay: Duration,
    pub(crate) queue_frames: f64,
    pub(crate) loss_ratio: f64,
    /// Mean length of a burst of losses in frames; up to 1: losses are independent.
    pub(crate) loss_burst: f64,
    /// A policer: drops frames beyond this rate in frames/s and this burst.
    pub(crate) policer: Option<(f64, f64)>,
    /// Frames sent in this period are lost.
    pub(crate) outage: Range<Time>,
    pub(crate) fillers: Fillers,
    /// The receiver's clock is ahead by this many microseconds.
    pub(crate) clock_us: i64,
    /// The clock jumps at this time, by this many nanoseconds.
    pub(crate) jump: (Time, i64),
    /// The channel is shared, which the sender knows.
    pub(crate) shares_air: bool,
    /// Limit of the application, in frames/s.
    pub(crate) wanted_per_s: f64,
    /// Frames in flight are also limited by a TCP slow start inside, which sees no losses.
    pub(crate) starts_slowly: bool,
    pub(crate) feedback: FeedbackPath,
    /// Each receiver sees a frame late by up to this much, uniformly distributed.
    pub(crate) late_by: Duration,
    /// The same with exponentially distributed times with this mean.
    pub(crate) jitter: Duration,
    /// A late frame does not hold up those behind it.
    pub(crate) reorders: bool,
    /// The medium retransmits this share of frames, as often as needed.
    pub(crate) retry_ratio: f64,
}

impl Path {
    pub(crate) fn new(mbit_per_s: f64, round_trip_ms: u64) -> Self {
        Path {
            frames_per_s: mbit_per_s * 1e6 / (8.0 * 1_500.0),
            service: Service::Constant,
            delay: Duration::from_millis(round_trip_ms) / 2,
            queue_frames: 100.0,
            loss_ratio: 0.0,
            loss_burst: 1.0,
            policer: None,
            outage: Time::ZERO..Time::ZERO,
            fillers: Fillers::none(),
            clock_us: -3_600_000_000,
            jump: (Time::MAX, 0),
            shares_air: false,
            wanted_per_s: f64::INFINITY,
            starts_slowly: false,
            feedback: FeedbackPath::each(FEEDBACK_INTERVAL),
            late_by: Duration::ZERO,
            jitter: Duration::ZERO,
            reorders: false,
            retry_ratio: 0.0,
        }
    }

    /// Frames that the bottleneck can carry in a span, including those lost behind the queue.
    pub(crate) fn capacity(&self, span: Range<Time>) -> f64 {
        let seconds = (span.end - span.start).as_secs_f64();
        let served = match &self.service {
            Service::Constant => seconds * self.frames_per_s,
            Service::Steps { .. } => {
                let mut served = 0.0;
                let mut now = span.start;
                while now < span.end {
                    let (rate, until) = self.rate_at(now);
                    let until = until.min(span.end);
                    served += rate * (until - now).as_secs_f64();
                    now = until;
                }
                served
            }
            Service::Opportunities { at, period } => {
                let count = |time: Time| {
                    let periods = time.as_nanos() / period.as_nanos() as u64;
                    let rest = Duration::from_nanos(time.as_nanos() % period.as_nanos() as u64);
                    periods as usize * at.len() + at.partition_point(|&at| at < rest)
                };
                (count(span.end) - count(span.start)) as f64
            }
        };
        self.policer.map_or(served, |(per_s, _)| served.min(per_s * seconds))
    }

    /// The rate in frames/s at a time, and until when it holds.
    fn rate_at(&self, now: Time) -> (f64, Time) {
        let Service::Steps { steps, period } = &self.service else {
            return (self.frames_per_s, Time::MAX);
        };
        let rest = now.as_nanos() % period.as_nanos() as u64;
        let begin = Time::from_nanos(now.as_nanos() - rest);
        let at = steps.partition_point(|&(from, _)| from.as_nanos() as u64 <= rest);
        let until = steps.get(at).map_or(*period, |&(from, _)| from);
        (steps[at - 1].1, begin + until)
    }
}

/// Observations of a span of a run.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Frames of our flow, and of the fillers, that left the queue.
    pub(crate) ours: f64,
    pub(crate) filler: f64,
    /// Frames that our frames found in the queue, summed.
    pub(crate) found: f64,
    /// Frames of ours that found it full.
    pub(crate) dropped: f64,
    /// How long each waited behind others, in milliseconds.
    waited_ms: Waits,
}

/// A list of waiting times.
#[derive(Default)]
struct Waits(Vec<f64>);

impl core::fmt::Debug for Waits {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} of them", self.0.len())
    }
}

impl Seen {
    /// Mean number of frames that a frame finds in the queue.
    pub(crate) fn queue(&self) -> f64 {
        self.found / self.ours
    }

    /// A quantile of the waiting times in milliseconds.
    pub(crate) fn waited_ms(&self, quantile: f64) -> f64 {
        let mut sorted = self.waited_ms.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get((quantile * sorted.len() as f64) as usize).copied().unwrap_or(f64::NAN)
    }
}

pub(crate) struct Run<'a> {
    path: &'a Path,
    now: Time,
    events: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    draws: Stream,
    free_at: Time,
    /// When service of waiting frames begins, except for those that began before the last arrival.
    waiting: VecDeque<Time>,
    /// The next opportunity to leave, counted over all periods.
    opportunity: usize,
    /// The policer's tokens, and as of when.
    tokens: (f64, Time),
    /// In the forward, and in the return direction.
    in_burst: [bool; 2],
    /// When the receiver, and the sender, saw the last frame.
    looked_at: [Time; 2],
    /// How long to send nothing after the next frame, and the counter of the frame after that gap.
    pause: Duration,
    paused_at: u32,
    held: Held,
    inside: Inside,
    seen: Seen,
    control: Box<dyn PathControl>,
    pub(crate) stats: Stats,
    rtt: RttEstimator,
    ack_delay: RttEstimator,
    counter: u32,
    told: (u32, u32, Time, Time),
    received: (u32, u32, Time),
    newest: (u32, Time, Time),
    fillers: Vec<Cubic>,
    pairs: PairsInFlight,
}

/// Whether enough frames are in flight, and when to send one nevertheless.
#[derive(Default)]
struct Held {
    waits: bool,
    asks_at: Time,
}

/// Pairs of frames that leave together.
#[derive(Default)]
struct PairsInFlight {
    /// Frames that left alone since the last pair.
    singles: u32,
    /// The second frames of pairs.
    seconds: BTreeSet<u32>,
    /// What the receiver has seen of them.
    seen: Pairs,
    /// What the sender was told last.
    told: Option<PairGap>,
}

/// The traffic to be sent.
struct Inside {
    /// Frames that may be in flight, and whether this limit held back the next one.
    window: f64,
    wants_none: bool,
    /// For each frame, when it was sent, and whether the rate had held it back.
    frames: Vec<(Time, bool)>,
    /// Frames that request feedback.
    asked: BTreeSet<u32>,
}

impl Inside {
    fn new(path: &Path) -> Self {
        let window = if path.starts_slowly { WINDOW_FIRST } else { f64::INFINITY };
        let (frames, asked) = (vec![(Time::ZERO, false)], BTreeSet::new());
        Inside { window, wants_none: false, frames, asked }
    }
}

/// A flow that fills the queue. CUBIC's fast convergence is omitted: it shares with one other flow
/// only.
struct Cubic {
    window: f64,
    in_flight: f64,
    /// Acknowledgments that wait for more.
    waiting: f64,
    /// Window and time of the last decrease; `None`: slow start.
    decreased: Option<(f64, Time)>,
    /// Reno's window.
    reno: f64,
}

impl Cubic {
    const BETA: f64 = 0.7;
    const C: f64 = 0.4;

    fn acknowledge(&mut self, now: Time, round_trip: Duration) {
        let Some((most, at)) = self.decreased else {
            self.window += 1.0;
            return;
        };
        let time = (now - at).as_secs_f64();
        let inflection = (most * (1.0 - Self::BETA) / Self::C).cbrt();
        let cubic = |time: f64| Self::C * (time - inflection).powi(3) + most;
        self.reno += 3.0 * (1.0 - Self::BETA) / (1.0 + Self::BETA) / self.window;
        let target = cubic(time + round_trip.as_secs_f64()).clamp(self.window, 1.5 * self.window);
        self.window += (target - self.window) / self.window;
        if cubic(time) < self.reno {
            self.window = self.window.max(self.reno);
        }
    }

    fn lose(&mut self, now: Time, round_trip: Duration) {
        if self.decreased.is_none_or(|(_, at)| now - at > round_trip) {
            self.decreased = Some((self.window, now));
            self.window = (Self::BETA * self.window).max(2.0);
            self.reno = self.window;
        }
    }
}

impl<'a> Run<'a> {
    pub(crate) fn new(path: &'a Path) -> Self {
        let mut run = Run {
            path,
            now: Time::ZERO,
            events: BTreeMap::new(),
            sequence: 0,
            draws: Stream::from_seed([3; 32]),
            free_at: Time::ZERO,
            waiting: VecDeque::new(),
            opportunity: 0,
            tokens: (path.policer.map_or(0.0, |(_, burst)| burst), Time::ZERO),
            in_burst: [false; 2],
            looked_at: [Time::ZERO; 2],
            pause: Duration::ZERO,
            paused_at: u32::MAX,
            held: Held::default(),
            inside: Inside::new(path),
            seen: Seen::default(),
            control: follow_delay(Time::ZERO),
            stats: Stats::default(),
            rtt: RttEstimator::new(),
            ack_delay: RttEstimator::new(),
            counter: 0,
            told: (0, 0, Time::ZERO, Time::ZERO),
            received: (0, 0, Time::ZERO),
            newest: (0, Time::ZERO, Time::ZERO),
            fillers: Vec::new(),
            pairs: PairsInFlight::default(),
        };
        run.at(Time::ZERO, Event::Send);
        for filler in 0..path.fillers.count {
            run.fillers.push(Cubic {
                window: 2.0,
                in_flight: 1.0,
                waiting: path.fillers.burst,
                decreased: None,
                reno: 0.0,
            });
            // Not in phase.
            let from = path.fillers.from + filler as u32 * path.delay / path.fillers.count as u32;
            run.at(from, Event::FillerAck { filler, lost: false });
        }
        run
    }

    fn at(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.sequence), event);
        self.sequence += 1;
    }

    /// Uniform in [0, 1).
    pub(crate) fn draw(&mut self) -> f64 {
        f64::from(self.draws.next_u32()) / 2f64.powi(32)
    }

    /// Runs until then; returns observations since the last call.
    pub(crate) fn until(&mut self, seconds: u64) -> Seen {
        let end = Time::from_millis(1_000 * seconds);
        while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 < end) {
            self.now = entry.key().0;
            match entry.remove() {
                Event::Send => {
                    let on_their_way = f64::from(self.counter - self.told.0);
                    self.inside.wants_none |= on_their_way >= self.inside.window;
                    let is_full = on_their_way >= self.inside.window || self.is_full(on_their_way);
                    if is_full && self.now < self.held.asks_at {
                        self.held.waits = true;
                        self.paused_at = self.counter + 1;
                        self.at(self.held.asks_at, Event::Ask);
                        continue;
                    }
                    self.held.asks_at = self.now + ASKS_AFTER.max(self.rtt.timeout());
                    let frames_per_s = self.control.frames_per_s();
                    let singles = self.control.singles_between_pairs();
                    let is_pair = singles.is_some_and(|singles| self.pairs.singles >= singles)
                        && frames_per_s < self.path.wanted_per_s;
                    self.pairs.singles = if is_pair { 0 } else { self.pairs.singles + 1 };
                    self.send_ours(false);
                    if is_pair {
                        self.pairs.seconds.insert(self.counter + 1);
                        self.send_ours(false);
                    }
                    let frames = 1.0 + f64::from(u8::from(is_pair));
                    let frames_per_s = frames_per_s.min(self.path.wanted_per_s);
                    let gap = Duration::from_secs_f64(frames / frames_per_s)
                        + core::mem::take(&mut self.pause);
                    self.at(self.now + gap, Event::Send);
                }
                Event::Ask => {
                    if self.now >= self.held.asks_at && core::mem::take(&mut self.held.waits) {
                        (1..ASKS).for_each(|_| self.send_ours(true));
                        self.inside.asked.insert(self.counter + 1);
                        self.at(self.now, Event::Send);
                    }
                }
                Event::Arrival { flow, counter, sent_at, lost } => {
                    self.arrive(flow, counter, sent_at, lost);
                }
                Event::Feedback { counter, sent_at, came_at, frames, pair } => {
                    self.feed_back(counter, sent_at, came_at, frames, pair);
                }
                Event::FillerAck { filler, lost } => self.ack_filler(filler, lost),
            }
        }
        core::mem::take(&mut self.seen)
    }

    /// As [`LinkUsage::is_full`](crate::link::usage::LinkUsage::is_full).
    fn is_full(&self, on_their_way: f64) -> bool {
        let oldest = self.inside.frames.get(self.told.0 as usize + 1);
        let burst = self.path.feedback.interval.min(BURST_TIME_MAX);
        let is_due = |&(sent_at, _): &(Time, bool)| self.now - sent_at > burst;
        on_their_way >= self.control.in_flight_max(self.ack_delay.timeout())
            && oldest.is_some_and(is_due)
    }

    fn send_ours(&mut self, asks: bool) {
        self.counter += 1;
        if asks {
            self.inside.asked.insert(self.counter);
        }
        let held = !asks && !core::mem::take(&mut self.inside.wants_none);
        self.inside.frames.push((self.now, held));
        self.send(Flow::Ours, self.counter);
    }

    /// A frame enters the queue, or finds it full.
    fn send(&mut self, flow: Flow, counter: u32) {
        while self.waiting.front().is_some_and(|&begins| begins <= self.now) {
            self.waiting.pop_front();
        }
        let begin = self.free_at.max(self.now);
        let queued = match self.path.service {
            Service::Constant => (begin - self.now).as_secs_f64() * self.path.frames_per_s,
            _ => self.waiting.len() as f64,
        };
        let outage = self.path.outage.contains(&self.now);
        let draw = self.draw();
        let full = queued > self.path.queue_frames || !self.passes_policer();
        let lost = outage || full;
        self.seen.dropped += f64::from(u8::from(full && flow == Flow::Ours));
        let mut served = begin;
        if !lost {
            served = self.serve(begin);
            self.free_at = served;
            self.waiting.push_back(begin);
            match flow {
                Flow::Ours => {
                    self.seen.ours += 1.0;
                    self.seen.found += queued;
                    self.seen.waited_ms.0.push((begin - self.now).as_secs_f64() * 1e3);
                }
                Flow::Filler(_) => self.seen.filler += 1.0,
            }
        }
        let lost = lost || (flow == Flow::Ours && self.is_erased(0, draw));
        let at = self.look(0, served + self.path.delay);
        self.at(at, Event::Arrival { flow, counter, sent_at: self.now, lost });
    }

    /// When service of a frame ends that begins at `begin`.
    fn serve(&mut self, begin: Time) -> Time {
        let mut end = begin;
        let mut frames = 1.0;
        loop {
            end = match &self.path.service {
                Service::Constant => end + Duration::from_secs_f64(1.0 / self.path.frames_per_s),
                Service::Steps { .. } => {
                    let (rate, until) = self.path.rate_at(end);
                    let takes = Duration::from_secs_f64(frames / rate.max(1e-3));
                    if end + takes > until {
                        frames -= rate * (until - end).as_secs_f64();
                        end = until;
                        continue;
                    }
                    frames = 1.0;
                    end + takes
                }
                Service::Opportunities { at, period } => loop {
                    let (periods, index) =
                        (self.opportunity / at.len(), self.opportunity % at.len());
                    let time = Time::ZERO + *period * periods as u32 + at[index];
                    self.opportunity += 1;
                    if time >= end {
                        break time;
                    }
                },
            };
            let again = self.path.retry_ratio > 0.0 && self.draw() < self.path.retry_ratio;
            if !again {
                return end;
            }
        }
    }

    fn passes_policer(&mut self) -> bool {
        let Some((per_s, burst)) = self.path.policer else { return true };
        let (tokens, at) = self.tokens;
        let tokens = (tokens + per_s * (self.now - at).as_secs_f64()).min(burst);
        let passes = tokens >= 1.0;
        self.tokens = (tokens - f64::from(u8::from(passes)), self.now);
        passes
    }

    /// Whether a frame is lost behind the queue, or feedback (`end` 1): independently, or in bursts
    /// that lose every frame.
    fn is_erased(&mut self, end: usize, draw: f64) -> bool {
        let (path, feedback) = (self.path, &self.path.feedback);
        let losses =
            [(path.loss_ratio, path.loss_burst), (feedback.loss_ratio, feedback.loss_burst)];
        let (ratio, burst) = losses[end];
        if burst <= 1.0 {
            return draw < ratio;
        }
        self.in_burst[end] = if self.in_burst[end] {
            draw >= 1.0 / burst
        } else {
            draw < ratio / (burst * (1.0 - ratio))
        };
        self.in_burst[end]
    }

    /// When a frame is seen that arrived at `came_at`: a late one holds up those behind it.
    fn look(&mut self, end: usize, came_at: Time) -> Time {
        let draw = self.draw();
        let late_by =
            self.path.late_by.mul_f64(draw) + self.path.jitter.mul_f64(-(1.0 - draw).ln());
        if self.path.reorders {
            return came_at + late_by;
        }
        let at = self.looked_at[end].max(came_at + late_by);
        self.looked_at[end] = at;
        at
    }

    fn arrive(&mut self, flow: Flow, counter: u32, sent_at: Time, lost: bool) {
        let back = self.look(1, self.now + self.path.delay);
        if let Flow::Filler(filler) = flow {
            // Otherwise its frames would arrive just when there is room, and no other's (S. Floyd,
            // V. Jacobson: "On traffic phase effects in packet-switched gateways").
            let overhead = Duration::from_secs_f64(self.draw() / self.path.frames_per_s);
            return self.at(back + overhead, Event::FillerAck { filler, lost });
        } else if lost {
            return;
        }
        if self.pairs.seconds.remove(&counter) && self.newest.0 + 1 == counter {
            self.pairs.seen.note(self.now - self.newest.2);
        }
        if counter > self.newest.0 {
            self.newest = (counter, sent_at, self.now);
        }
        let (frames, since, last) = &mut self.received;
        *frames += 1;
        *since += 1;
        let is_due =
            *since >= FRAMES_PER_FEEDBACK && self.now - *last >= self.path.feedback.interval;
        if !self.inside.asked.remove(&counter) && !is_due {
            return;
        }
        (*since, *last) = (0, self.now);
        let (frames, pair) = (*frames, self.pairs.seen.report());
        let (counter, sent_at, came_at) = self.newest;
        // Draws no random number if nothing can be lost.
        if self.path.feedback.loss_ratio > 0.0 {
            let draw = self.draw();
            if self.is_erased(1, draw) {
                return;
            }
        }
        self.at(back, Event::Feedback { counter, sent_at, came_at, frames, pair });
    }

    fn feed_back(
        &mut self,
        counter: u32,
        sent_at: Time,
        came_at: Time,
        frames: u32,
        pair: Option<PairGap>,
    ) {
        if core::mem::take(&mut self.held.waits) {
            self.at(self.now, Event::Send);
        }
        let (told, told_frames, told_at, told_sent_at) = self.told;
        if counter <= told || frames < told_frames {
            return; // Overtaken by newer feedback.
        }
        self.rtt.sample(self.now - sent_at);
        let usual = self.rtt.usual().expect("a sample was added");
        // Ends announce 10 ms, and hasten feedback about losses.
        let longest = WAIT_MAX * self.path.feedback.interval.max(BURST_TIME_MAX);
        let (oldest_sent_at, _) = self.inside.frames[told as usize + 1];
        self.ack_delay.sample((sent_at - oldest_sent_at).min(longest));
        self.told = (counter, frames, came_at, sent_at);
        let newly_told = &self.inside.frames[told as usize + 1..=counter as usize];
        let held = newly_told.iter().filter(|(_, held)| *held).count();
        let (told, came) = (counter - told, frames - told_frames);
        self.inside.window += f64::from(came);
        let (jumps_at, by_ns) = self.path.jump;
        let jumped_ns = if came_at >= jumps_at { by_ns } else { 0 };
        let one_way_ns = (came_at - sent_at).as_nanos() as i64 + jumped_ns;
        let sample = Sample {
            one_way_us: (one_way_ns / 1_000 + self.path.clock_us) as u32,
            is_long: true,
            round_trip: usual.timeout(),
            round_trip_smoothed: usual.srtt(),
            told: f64::from(told),
            span: came_at - told_at,
            sent_span: sent_at - told_sent_at,
            frames: told as usize,
            came: came as usize,
            limited: 2 * held >= told as usize
                && self.control.frames_per_s() < self.path.wanted_per_s
                && !(counter - told..counter).contains(&self.paused_at),
            shares_air: self.path.shares_air,
            pair_per_s: pair
                .filter(|_| pair != self.pairs.told)
                .map(|pair| 1e9 / f64::from(pair.gap_ns)),
        };
        self.pairs.told = pair;
        self.control.note(self.now, sample, &mut self.stats);
        if let Some(pause) = self.control.take_pause() {
            (self.pause, self.paused_at) = (pause, self.counter + 1);
        }
    }

    fn ack_filler(&mut self, which: usize, lost: bool) {
        let queued = self.free_at.max(self.now) - self.now;
        let round_trip = 2 * self.path.delay + queued;
        let filler = &mut self.fillers[which];
        filler.in_flight -= 1.0;
        filler.waiting += 1.0;
        match lost {
            false => filler.acknowledge(self.now, round_trip),
            true => filler.lose(self.now, round_trip),
        }
        // A longer burst ends with what is in flight.
        if filler.waiting < self.path.fillers.burst.min(filler.in_flight) {
            return;
        }
        filler.waiting = 0.0;
        let room = (filler.window - filler.in_flight).max(0.0) as usize;
        if self.now < self.path.fillers.until {
            filler.in_flight += room as f64;
            (0..room).for_each(|_| self.send(Flow::Filler(which), 0));
        }
    }
}
