//! BBR version 1 (Cardwell et al., "BBR: Congestion-Based Congestion Control", 2016), as in the
//! kernel: a model of the path, made of its bottleneck rate and its minimum round-trip time, sets
//! pacing rate and window.
//!
//! Beyond the paper it has what the kernel adds: packet conservation in the first round of a
//! recovery, detection of policers, and extra window for aggregated acknowledgments.

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};

use super::clock::{HZ, ticks};
use super::flow::Flow;
use super::rate::RateSample;
use super::state::CaState;
use super::windowed::WindowedMax;

/// Rates are packets per microsecond, in units of 2^-24.
const RATE_SHIFT: u32 = 24;
const RATE_UNIT: u64 = 1 << RATE_SHIFT;
/// Gains are in units of 1/256.
const UNIT: u64 = 256;
/// 2 / ln 2: the smallest gain that doubles the rate each round trip.
const GAIN_HIGH: u64 = UNIT * 2_885 / 1_000 + 1;
const GAIN_DRAIN: u64 = UNIT * 1_000 / 2_885;
const GAIN_WINDOW: u64 = 2 * UNIT;
/// Pacing gains: probe for more bandwidth, drain the queue that this made, cruise.
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Margin of the pacing rate below the model's rate, in percent.
const MARGIN_PERCENT: u64 = 1;
/// Length of the maximum filter of the rate, in rounds.
const RATE_ROUNDS: u64 = 10;
/// Length of the minimum filter of the round-trip time, in ticks.
const MIN_RTT_TICKS: u64 = 10 * HZ;
/// How long the queue is drained to measure the minimum, in ticks.
const PROBE_RTT_TICKS: u64 = HZ / 5;
const WINDOW_MIN: u64 = 4;
/// The pipe counts as full when the rate has not grown by a quarter for three rounds.
const FULL_GROWTH: u64 = UNIT * 5 / 4;
const FULL_ROUNDS: u32 = 3;
/// Policer detection: shortest interval in rounds, loss ratio in 1/256, how closely the rates of
/// two intervals must agree, and for how many rounds the policed rate applies.
const POLICED_ROUNDS_MIN: u32 = 4;
const POLICED_LOSS: u64 = 50;
const POLICED_RATIO: u64 = UNIT / 8;
const POLICED_BYTES_PER_S: u64 = 4_000 / 8;
const POLICED_ROUNDS_MAX: u32 = 48;
/// Aggregated acknowledgments: rounds of each half of the filter's window, and the limits of what
/// is compensated.
const LOT_ROUNDS: u32 = 5;
const LOT_US: u64 = 100_000;
const LOT_ACKED_MAX: u64 = 1 << 20;
/// Below this pacing rate super-packets have one segment.
const SLOW_BYTES_PER_S: u64 = 1_200_000 / 8;
const INITIAL_WINDOW: u64 = 10;

/// BBR's modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeRate,
    ProbeRtt,
}

/// BBR's state.
#[derive(Clone, Debug)]
pub(super) struct Bbr {
    mode: Mode,
    stream: Stream,
    rate: WindowedMax,
    rounds: u64,
    round_start: bool,
    /// The round ends when a packet arrives that was sent after this many had been delivered.
    round_end: u64,
    min_rtt_us: Option<u64>,
    min_rtt_at: u64,
    probe_rtt_until: Option<u64>,
    probe_rtt_round: bool,
    pacing_gain: u64,
    window_gain: u64,
    cycle: usize,
    cycle_at_us: u64,
    full_rate: u64,
    full_rounds: u32,
    is_full: bool,
    /// The window before a recovery, or before ProbeRtt.
    saved: u64,
    conserves: bool,
    before: CaState,
    restarts: bool,
    has_rtt: bool,
    policed: Policed,
    lots: Lots,
}

/// Policer detection.
#[derive(Clone, Copy, Debug, Default)]
struct Policed {
    samples: bool,
    /// Whether the policed rate is in force.
    applies: bool,
    rate: u64,
    rounds: u32,
    at_ms: u64,
    delivered: u64,
    lost: u64,
}

/// How many more packets are acknowledged at once than the rate explains.
#[derive(Clone, Copy, Debug, Default)]
struct Lots {
    since_us: u64,
    acked: u64,
    extra: [u64; 2],
    place: usize,
    rounds: u32,
}

impl Bbr {
    pub(super) fn new(flow: &mut Flow) -> Self {
        let key = StreamKey { seed: flow.config.seed, replication: 0, entity: 0, purpose: "bbr" };
        let bbr = Bbr {
            mode: Mode::Startup,
            stream: key.stream(),
            rate: WindowedMax::default(),
            rounds: 0,
            round_start: false,
            round_end: 0,
            min_rtt_us: None,
            min_rtt_at: 0,
            probe_rtt_until: None,
            probe_rtt_round: false,
            pacing_gain: GAIN_HIGH,
            window_gain: GAIN_HIGH,
            cycle: 0,
            cycle_at_us: 0,
            full_rate: 0,
            full_rounds: 0,
            is_full: false,
            saved: 0,
            conserves: false,
            before: CaState::Open,
            restarts: false,
            has_rtt: false,
            policed: Policed::default(),
            lots: Lots::default(),
        };
        bbr.begin_pace(flow, 1_000);
        bbr
    }

    /// The model's rate.
    fn rate(&self) -> u64 {
        if self.policed.applies { self.policed.rate } else { self.rate.get() }
    }

    /// Saves the window, to restore it later.
    pub(super) fn save_window(&mut self, flow: &Flow) {
        let is_whole = self.before < CaState::Recovery && self.mode != Mode::ProbeRtt;
        self.saved = if is_whole { flow.cwnd } else { self.saved.max(flow.cwnd) };
    }

    /// A reduction was undone: the pipe may not be full after all.
    pub(super) fn forget_full_pipe(&mut self, flow: &Flow) {
        (self.full_rate, self.full_rounds) = (0, 0);
        self.reset_policed(flow);
    }

    /// The retransmission timer has expired: this ends a round.
    pub(super) fn on_loss(&mut self, flow: &Flow) {
        self.before = CaState::Loss;
        self.full_rate = 0;
        self.round_start = true;
        self.sample_policed(flow, &RateSample { losses: 1, ..RateSample::default() });
    }

    pub(super) fn on_restart(&mut self, flow: &mut Flow) {
        if flow.app_limited == 0 {
            return;
        }
        self.restarts = true;
        (self.lots.since_us, self.lots.acked) = (flow.now_us(), 0);
        match self.mode {
            Mode::ProbeRate => self.set_pace(flow, UNIT),
            Mode::ProbeRtt => self.end_probe_rtt(flow),
            Mode::Startup | Mode::Drain => {}
        }
    }

    pub(super) fn on_ack(&mut self, flow: &mut Flow, sample: &RateSample) {
        self.update_rate(flow, sample);
        self.update_lots(flow, sample);
        self.update_cycle(flow, sample);
        self.check_full(sample);
        self.check_drained(flow);
        self.update_min_rtt(flow, sample);
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (GAIN_HIGH, GAIN_HIGH),
            Mode::Drain => (GAIN_DRAIN, GAIN_HIGH),
            Mode::ProbeRate if self.policed.applies => (UNIT, GAIN_WINDOW),
            Mode::ProbeRate => (CYCLE[self.cycle], GAIN_WINDOW),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
        self.set_pace(flow, self.pacing_gain);
        self.set_window(flow, sample);
    }

    fn update_rate(&mut self, flow: &Flow, sample: &RateSample) {
        self.round_start = false;
        let (Some(delivered), Some(interval_us), Some(prior)) =
            (sample.delivered, sample.interval_us.filter(|&us| us > 0), sample.prior_delivered)
        else {
            return;
        };
        if prior >= self.round_end {
            self.round_end = flow.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.conserves = false;
        }
        self.sample_policed(flow, sample);
        let rate = delivered * RATE_UNIT / interval_us;
        if !sample.app_limited || rate >= self.rate.get() {
            self.rate.take(RATE_ROUNDS, self.rounds, rate);
        }
    }

    fn reset_policed(&mut self, flow: &Flow) {
        (self.policed.rate, self.policed.applies, self.policed.samples) = (0, false, false);
        self.begin_policed_interval(flow);
    }

    fn begin_policed_interval(&mut self, flow: &Flow) {
        self.policed.at_ms = flow.delivered_at_us / 1_000;
        (self.policed.delivered, self.policed.lost) = (flow.delivered, flow.lost);
        self.policed.rounds = 0;
    }

    /// Detects a policer by two intervals with many losses and about the same rate.
    fn sample_policed(&mut self, flow: &Flow, sample: &RateSample) {
        if self.policed.applies {
            if self.mode == Mode::ProbeRate && self.round_start {
                self.policed.rounds += 1;
                if self.policed.rounds >= POLICED_ROUNDS_MAX {
                    self.reset_policed(flow);
                    self.begin_cycle(flow);
                }
            }
            return;
        }
        if !self.policed.samples {
            if sample.losses == 0 {
                return;
            }
            self.begin_policed_interval(flow);
            self.policed.samples = true;
        }
        if sample.app_limited {
            return self.reset_policed(flow);
        }
        self.policed.rounds += u32::from(self.round_start);
        if self.policed.rounds < POLICED_ROUNDS_MIN {
            return;
        }
        if self.policed.rounds > 4 * POLICED_ROUNDS_MIN {
            return self.reset_policed(flow);
        }
        if sample.losses == 0 {
            return;
        }
        let lost = flow.lost - self.policed.lost;
        let delivered = flow.delivered - self.policed.delivered;
        if delivered == 0 || lost * UNIT < POLICED_LOSS * delivered {
            return;
        }
        let interval_ms = (flow.delivered_at_us / 1_000).saturating_sub(self.policed.at_ms);
        if interval_ms > 0 {
            self.end_policed_interval(flow, delivered * RATE_UNIT / (interval_ms * 1_000));
        }
    }

    fn end_policed_interval(&mut self, flow: &Flow, rate: u64) {
        let before = self.policed.rate;
        if before > 0 {
            let difference = rate.abs_diff(before);
            let is_near = difference * UNIT <= POLICED_RATIO * before;
            if is_near || bytes_per_s(flow, difference, UNIT) <= POLICED_BYTES_PER_S {
                self.policed.rate = (rate + before) >> 1;
                self.policed.applies = true;
                self.pacing_gain = UNIT;
                self.policed.rounds = 0;
                return;
            }
        }
        self.policed.rate = rate;
        self.begin_policed_interval(flow);
    }

    fn update_lots(&mut self, flow: &Flow, sample: &RateSample) {
        if sample.acked == 0 || sample.delivered.is_none() || sample.interval_us.is_none() {
            return;
        }
        if self.round_start {
            self.lots.rounds += 1;
            if self.lots.rounds >= LOT_ROUNDS {
                self.lots.rounds = 0;
                self.lots.place = 1 - self.lots.place;
                self.lots.extra[self.lots.place] = 0;
            }
        }
        let since_us = flow.delivered_at_us.saturating_sub(self.lots.since_us);
        let mut expected = (self.rate() * since_us) >> RATE_SHIFT;
        if self.lots.acked <= expected || self.lots.acked + sample.acked >= LOT_ACKED_MAX {
            (self.lots.acked, self.lots.since_us) = (0, flow.delivered_at_us);
            expected = 0;
        }
        self.lots.acked = (self.lots.acked + sample.acked).min(LOT_ACKED_MAX - 1);
        let extra = (self.lots.acked - expected).min(flow.cwnd);
        let most = &mut self.lots.extra[self.lots.place];
        *most = (*most).max(extra);
    }

    /// Advances the cycle of gains after a minimum round-trip time; after a probe only once it has
    /// filled the pipe or caused losses.
    fn update_cycle(&mut self, flow: &Flow, sample: &RateSample) {
        if self.mode != Mode::ProbeRate {
            return;
        }
        let passed_us = flow.delivered_at_us.saturating_sub(self.cycle_at_us);
        let is_over = self.min_rtt_us.is_some_and(|min_us| passed_us > min_us);
        let in_net = || self.in_net(flow, sample.prior_in_flight);
        let ends = match self.pacing_gain {
            UNIT => is_over,
            gain if gain > UNIT => {
                let is_enough = || in_net() >= self.inflight(flow, self.rate.get(), gain);
                is_over && (sample.losses > 0 || is_enough())
            }
            _ => is_over || in_net() <= self.inflight(flow, self.rate.get(), UNIT),
        };
        if ends {
            self.advance_cycle(flow);
        }
    }

    fn advance_cycle(&mut self, flow: &Flow) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_at_us = flow.delivered_at_us;
    }

    /// Begins the cycle at a random phase other than the draining one.
    fn begin_cycle(&mut self, flow: &Flow) {
        self.mode = Mode::ProbeRate;
        let drawn = (u64::from(self.stream.next_u32()) * (CYCLE.len() as u64 - 1)) >> 32;
        self.cycle = CYCLE.len() - 1 - drawn as usize;
        self.advance_cycle(flow);
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.is_full || !self.round_start || sample.app_limited {
            return;
        }
        if self.rate.get() >= (self.full_rate * FULL_GROWTH) / UNIT {
            (self.full_rate, self.full_rounds) = (self.rate.get(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, flow: &mut Flow) {
        let pipe = |bbr: &Bbr, flow: &Flow| bbr.inflight(flow, bbr.rate.get(), UNIT);
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            flow.ssthresh = pipe(self, flow);
        }
        if self.mode == Mode::Drain && self.in_net(flow, flow.board.in_flight()) <= pipe(self, flow)
        {
            self.begin_cycle(flow);
        }
    }

    fn update_min_rtt(&mut self, flow: &mut Flow, sample: &RateSample) {
        let now = ticks(flow.now);
        let is_old = now > self.min_rtt_at + MIN_RTT_TICKS;
        // An equal sample does not renew the minimum: on a steady path the minimum would never
        // expire.
        if let Some(rtt_us) = sample.rtt_us
            && (self.min_rtt_us.is_none_or(|min_us| rtt_us < min_us) || is_old)
        {
            (self.min_rtt_us, self.min_rtt_at) = (Some(rtt_us), now);
        }
        if is_old && !self.restarts && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(flow);
            self.probe_rtt_until = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(flow, now);
        }
        if sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.restarts = false;
        }
    }

    /// Limits the flight to four packets for 200 ms and a round.
    fn probe_rtt(&mut self, flow: &mut Flow, now: u64) {
        // Rate samples from this time are marked as application-limited.
        flow.app_limited = (flow.delivered + flow.board.in_flight()).max(1);
        if self.probe_rtt_until.is_some() {
            self.probe_rtt_round |= self.round_start;
            if self.probe_rtt_round {
                self.end_probe_rtt(flow);
            }
        } else if flow.board.in_flight() <= WINDOW_MIN {
            self.probe_rtt_until = Some(now + PROBE_RTT_TICKS);
            self.probe_rtt_round = false;
            self.round_end = flow.delivered;
        }
    }

    fn end_probe_rtt(&mut self, flow: &mut Flow) {
        let now = ticks(flow.now);
        if self.probe_rtt_until.is_none_or(|until| now <= until) {
            return;
        }
        self.min_rtt_at = now;
        flow.cwnd = flow.cwnd.max(self.saved);
        if self.is_full {
            self.begin_cycle(flow);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// The first pacing rate: a window per round-trip time.
    fn begin_pace(&self, flow: &mut Flow, rtt_us: u64) {
        flow.pace_bytes_per_s = bytes_per_s(flow, flow.cwnd * RATE_UNIT / rtt_us.max(1), GAIN_HIGH);
    }

    fn set_pace(&mut self, flow: &mut Flow, gain: u64) {
        if !self.has_rtt
            && let Some(rtt_us) = flow.rtt.smoothed_us()
        {
            self.has_rtt = true;
            self.begin_pace(flow, rtt_us);
        }
        let pace = bytes_per_s(flow, self.rate(), gain);
        if self.is_full || pace > flow.pace_bytes_per_s {
            flow.pace_bytes_per_s = pace;
        }
    }

    fn set_window(&mut self, flow: &mut Flow, sample: &RateSample) {
        let mut cwnd = flow.cwnd;
        if sample.acked > 0 {
            if sample.losses > 0 {
                cwnd = cwnd.saturating_sub(sample.losses).max(1);
            }
            cwnd = self.note_recovery(flow, sample, cwnd);
            let conserved = flow.board.in_flight() + sample.acked;
            cwnd = if self.conserves {
                cwnd.max(conserved)
            } else {
                self.grown_window(flow, sample, cwnd)
            };
        }
        cwnd = cwnd.min(u64::from(flow.config.window_packets_max));
        flow.cwnd = if self.mode == Mode::ProbeRtt { cwnd.min(WINDOW_MIN) } else { cwnd };
    }

    /// Conserves packets in the first round of a recovery, and restores the window after the
    /// recovery.
    fn note_recovery(&mut self, flow: &Flow, sample: &RateSample, cwnd: u64) -> u64 {
        let before = core::mem::replace(&mut self.before, flow.state);
        if flow.state == CaState::Recovery && before != CaState::Recovery {
            self.conserves = true;
            self.round_end = flow.delivered;
            return flow.board.in_flight() + sample.acked;
        }
        if before >= CaState::Recovery && flow.state < CaState::Recovery {
            self.conserves = false;
            return cwnd.max(self.saved);
        }
        cwnd
    }

    fn grown_window(&self, flow: &Flow, sample: &RateSample, cwnd: u64) -> u64 {
        let rate = self.rate();
        let mut target = self.pipe(rate, self.window_gain);
        if self.is_full {
            let most = (rate * LOT_US) >> RATE_SHIFT;
            target += self.lots.extra[0].max(self.lots.extra[1]).min(most);
        }
        let target = self.budget(flow, target);
        let cwnd = if self.is_full {
            (cwnd + sample.acked).min(target)
        } else if cwnd < target || flow.delivered < INITIAL_WINDOW {
            cwnd + sample.acked
        } else {
            cwnd
        };
        cwnd.max(WINDOW_MIN)
    }

    /// The bandwidth-delay product in packets, times a gain, rounded up.
    fn pipe(&self, rate: u64, gain: u64) -> u64 {
        let Some(min_rtt_us) = self.min_rtt_us else { return INITIAL_WINDOW };
        let whole = u128::from(rate) * u128::from(min_rtt_us) * u128::from(gain) / u128::from(UNIT);
        u64::try_from(whole.div_ceil(u128::from(RATE_UNIT))).unwrap_or(u64::MAX >> 8)
    }

    /// Adds to a window what super-packets and delayed acknowledgments need.
    fn budget(&self, flow: &Flow, window: u64) -> u64 {
        let window = (window + 3 * super_packet(flow)).next_multiple_of(2);
        let probes = self.mode == Mode::ProbeRate && self.cycle == 0;
        window + if probes { 2 } else { 0 }
    }

    fn inflight(&self, flow: &Flow, rate: u64, gain: u64) -> u64 {
        self.budget(flow, self.pipe(rate, gain))
    }

    /// Estimate of the packets in the network at the time when pacing allows the next one.
    fn in_net(&self, flow: &Flow, in_flight: u64) -> u64 {
        let ahead_us = flow.paced_until_ns.saturating_sub(flow.now.as_nanos()) / 1_000;
        let delivered = (self.rate() * ahead_us) >> RATE_SHIFT;
        let probing = if self.pacing_gain > UNIT { super_packet(flow) } else { 0 };
        (in_flight + probing).saturating_sub(delivered)
    }
}

/// A rate of the model in bytes per second, times a gain, less the margin.
fn bytes_per_s(flow: &Flow, rate: u64, gain: u64) -> u64 {
    let mss = u128::from(flow.config.payload_bytes);
    let rate = (u128::from(rate) * mss * u128::from(gain)) / u128::from(UNIT);
    let rate = rate * u128::from(1_000_000 / 100 * (100 - MARGIN_PERCENT));
    u64::try_from(rate >> RATE_SHIFT).unwrap_or(u64::MAX)
}

/// Packets that a host with super-packets (GSO) would send at once: about a millisecond's worth.
fn super_packet(flow: &Flow) -> u64 {
    let pace = flow.pace_bytes_per_s;
    let bytes = (pace >> 10).min(65_000);
    let least = if pace < SLOW_BYTES_PER_S { 1 } else { 2 };
    (bytes / u64::from(flow.config.payload_bytes)).clamp(least, 0x7f)
}
