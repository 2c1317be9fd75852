//! A link's transmitter: how much it may send when, at a constant or a varying rate.
//!
//! A varying rate depends on its own random stream, not on what is sent, so protocols under
//! comparison find the same rates at the same times. It is constant between changes, so the end of
//! a transmission is known when it begins; a transmission during which the rate changes continues
//! at the new rate. A recorded rate ([`RateTrace`]) has sending opportunities instead.

use core::time::Duration;

use corridor_base::{Stream, StreamKey, Time};

use crate::draw;
use crate::error::RateError;
use crate::opportunities::{Opportunities, RateTrace};

/// Most steps of a rate.
pub const MAX_STEPS: usize = 65_536;
/// Most rates that a Markov process changes among.
pub const MAX_RATES: usize = 64;
/// Shortest mean time between changes of a rate: anything shorter is comparable to packet times.
pub const LEAST_DWELL: Duration = Duration::from_micros(100);
/// Longest period, dwell or outage: an hour.
pub const MAX_DWELL: Duration = Duration::from_secs(3_600);

const NS_PER_S: u64 = 1_000_000_000;
/// When no further change happens.
const NEVER: Time = Time::MAX;

/// A link's rate over time.
#[derive(Clone, Debug, PartialEq)]
pub enum RateConfig {
    /// Constant.
    Constant {
        /// Rate in bit/s, 1 or more.
        rate_bps: u64,
    },
    /// As recorded in a trace.
    Trace(RateTrace),
    /// According to a list.
    Steps(RateSteps),
    /// One of several rates, each for an exponentially distributed time, followed by any of the
    /// others with equal probability. The initial one is random too.
    Markov {
        /// The rates in bit/s, 2 to [`MAX_RATES`] of them, one at least more than 0.
        rates_bps: Vec<u64>,
        /// Mean time in each, [`LEAST_DWELL`] to [`MAX_DWELL`].
        dwell: Duration,
    },
    /// A random walk.
    Walk(RateWalk),
}

/// A list of rates.
#[derive(Clone, Debug, PartialEq)]
pub struct RateSteps {
    /// Times with the rate from then on in bit/s: 1 to [`MAX_STEPS`] of them, the first at zero, in
    /// ascending order.
    pub steps: Vec<(Duration, u64)>,
    /// Time after which the list repeats, more than the last step's and at most [`MAX_DWELL`];
    /// `None`: the last rate stays, and must be more than 0.
    pub period: Option<Duration>,
}

/// A rate whose logarithm takes normally distributed steps and is reflected at its bounds. It
/// begins at a uniformly distributed value between them, which is its stationary distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateWalk {
    /// Least rate in bit/s, 1 or more.
    pub least_bps: u64,
    /// Greatest rate in bit/s, more than `least_bps`.
    pub most_bps: u64,
    /// Time between steps, [`LEAST_DWELL`] to [`MAX_DWELL`].
    pub interval: Duration,
    /// Standard deviation of a step of the natural logarithm, more than 0, at most 10.
    pub deviation: f64,
}

/// Times at which a link sends nothing at all. At first it sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutageConfig {
    /// How long the link is up, [`LEAST_DWELL`] to [`MAX_DWELL`].
    pub up: Duration,
    /// How long it is down, in the same range.
    pub down: Duration,
    /// Whether these are means of exponentially distributed times rather than constant.
    pub is_random: bool,
}

impl From<u64> for RateConfig {
    fn from(rate_bps: u64) -> Self {
        RateConfig::Constant { rate_bps }
    }
}

impl RateConfig {
    /// Long-term mean rate in bit/s, without outages.
    pub fn mean_bps(&self) -> f64 {
        match self {
            RateConfig::Constant { rate_bps } => *rate_bps as f64,
            RateConfig::Trace(trace) => trace.mean_bps(),
            RateConfig::Steps(steps) => steps.mean_bps(),
            RateConfig::Markov { rates_bps, .. } => {
                rates_bps.iter().map(|&bps| bps as f64).sum::<f64>() / rates_bps.len() as f64
            }
            RateConfig::Walk(RateWalk { least_bps, most_bps, .. }) => {
                let (least, most) = (*least_bps as f64, *most_bps as f64);
                (most - least) / libm::log(most / least)
            }
        }
    }

    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), RateError> {
        match self {
            RateConfig::Constant { rate_bps } => positive("rate_bps", *rate_bps),
            RateConfig::Trace(_) => Ok(()),
            RateConfig::Steps(steps) => steps.check(),
            RateConfig::Markov { rates_bps, dwell } => {
                if !(2..=MAX_RATES).contains(&rates_bps.len()) {
                    let (field, least, most) = ("rates_bps", 2, MAX_RATES);
                    return Err(RateError::Count { field, given: rates_bps.len(), least, most });
                }
                positive(
                    "the greatest of rates_bps",
                    rates_bps.iter().copied().max().unwrap_or(0),
                )?;
                check_dwell("dwell", *dwell)
            }
            RateConfig::Walk(walk) => walk.check(),
        }
    }
}

impl RateSteps {
    fn mean_bps(&self) -> f64 {
        let last = self.steps.last().map_or(0, |&(_, bps)| bps) as f64;
        let Some(period) = self.period else { return last };
        let ends = self.steps.iter().skip(1).map(|&(at, _)| at).chain([period]);
        let bits = self.steps.iter().zip(ends);
        let bits: f64 = bits.map(|(&(at, bps), end)| (end - at).as_secs_f64() * bps as f64).sum();
        bits / period.as_secs_f64()
    }

    fn check(&self) -> Result<(), RateError> {
        let Some(&(first, _)) = self.steps.first().filter(|_| self.steps.len() <= MAX_STEPS) else {
            let (given, least, most) = (self.steps.len(), 1, MAX_STEPS);
            return Err(RateError::Count { field: "steps", given, least, most });
        };
        if !first.is_zero() {
            return Err(RateError::FirstStep { given: first });
        }
        for (index, pair) in self.steps.windows(2).enumerate() {
            if pair[1].0 <= pair[0].0 {
                let (given, before) = (pair[1].0, pair[0].0);
                return Err(RateError::StepOrder { index: index + 1, given, before });
            }
        }
        let (last_at, last_bps) = self.steps.last().copied().unwrap_or_default();
        match self.period {
            None => positive("the last of steps", last_bps),
            Some(given) if given <= last_at || given > MAX_DWELL => {
                Err(RateError::Period { given, least: last_at })
            }
            Some(_) => {
                let most = self.steps.iter().map(|&(_, bps)| bps).max().unwrap_or(0);
                positive("the greatest of steps", most)
            }
        }
    }
}

impl RateWalk {
    fn check(&self) -> Result<(), RateError> {
        positive("least_bps", self.least_bps)?;
        if self.most_bps <= self.least_bps {
            return Err(RateError::Bounds { given: self.most_bps, least: self.least_bps });
        }
        check_dwell("interval", self.interval)?;
        // The comparison also rejects NaN.
        if !(self.deviation > 0.0 && self.deviation <= 10.0) {
            return Err(RateError::Deviation { given: self.deviation });
        }
        Ok(())
    }
}

impl OutageConfig {
    /// Share of the time at which the link is up, 0 to 1.
    pub fn up_share(&self) -> f64 {
        self.up.as_secs_f64() / (self.up + self.down).as_secs_f64()
    }

    /// Checks every range named in the fields' documentation.
    ///
    /// # Errors
    /// The first field found out of its range.
    pub fn check(&self) -> Result<(), RateError> {
        check_dwell("outage.up", self.up)?;
        check_dwell("outage.down", self.down)
    }
}

fn positive(field: &'static str, given: u64) -> Result<(), RateError> {
    if given == 0 { Err(RateError::Bps { field, given }) } else { Ok(()) }
}

fn check_dwell(field: &'static str, given: Duration) -> Result<(), RateError> {
    match (LEAST_DWELL..=MAX_DWELL).contains(&given) {
        true => Ok(()),
        false => Err(RateError::Span { field, given, least: LEAST_DWELL, most: MAX_DWELL }),
    }
}

/// A link's transmitter: knows what it has sent until when. Times passed to it must not decrease.
#[derive(Clone, Debug)]
pub(crate) enum Service {
    /// The rate, and the latest length with its time: most packets are as long as the last one.
    Constant { rate_bps: u64, transmission: (u32, u64) },
    /// On the heap: a large state, which most links do not have.
    Varying(Box<Restartable>),
}

/// A transmitter with a varying rate, and its initial state.
#[derive(Clone, Debug)]
pub(crate) struct Restartable {
    varying: Varying,
    pristine: Varying,
    /// When it last started.
    origin: Time,
}

impl Restartable {
    /// `at` on the clock of the rates, which began at `origin`.
    fn since_origin(&self, at: Time) -> Time {
        Time::from_nanos(at.nanos_since(self.origin))
    }

    fn begin(&mut self, earliest: Time) -> Time {
        let begin = self.varying.begin(self.since_origin(earliest));
        later(self.origin, begin.as_nanos())
    }

    fn serve(&mut self, begin: Time, len_bytes: u32) -> Time {
        let end = self.varying.serve(self.since_origin(begin), len_bytes);
        later(self.origin, end.as_nanos())
    }
}

impl Service {
    pub(crate) fn new(
        rate: &RateConfig,
        outages: Option<&OutageConfig>,
        key: StreamKey,
    ) -> Result<Self, RateError> {
        rate.check()?;
        outages.map_or(Ok(()), OutageConfig::check)?;
        Ok(match (rate, outages) {
            (RateConfig::Constant { rate_bps }, None) => {
                Service::Constant { rate_bps: *rate_bps, transmission: (0, 0) }
            }
            _ => {
                let pristine = Varying::new(rate, outages, key);
                let (varying, origin) = (pristine.clone(), Time::ZERO);
                Service::Varying(Box::new(Restartable { varying, pristine, origin }))
            }
        })
    }

    /// Restarts a varying rate at `at`.
    pub(crate) fn restart(&mut self, at: Time) {
        if let Service::Varying(restartable) = self {
            restartable.varying = restartable.pristine.clone();
            restartable.origin = at;
        }
    }

    /// When the transmission of a packet begins that is available from `earliest` on.
    #[inline]
    pub(crate) fn begin(&mut self, earliest: Time) -> Time {
        match self {
            Service::Constant { .. } => earliest,
            Service::Varying(varying) => varying.begin(earliest),
        }
    }

    /// Sends a packet whose transmission starts at `begin`; returns when it ends.
    #[inline]
    pub(crate) fn serve(&mut self, begin: Time, len_bytes: u32) -> Time {
        match self {
            Service::Constant { rate_bps, transmission } => {
                if transmission.0 != len_bytes {
                    *transmission = (len_bytes, bits_ns(len_bytes, *rate_bps));
                }
                later(begin, transmission.1)
            }
            Service::Varying(varying) => varying.serve(begin, len_bytes),
        }
    }

    /// Bits that could be sent between `from` and `until` (exclusive) with a packet always
    /// available. Must not have sent anything before, and cannot send packets afterwards.
    pub(crate) fn capacity_bits(&mut self, from: Time, until: Time) -> f64 {
        match self {
            Service::Constant { rate_bps, .. } => {
                *rate_bps as f64 * (until.since(from)).as_secs_f64()
            }
            Service::Varying(restartable) => restartable.varying.capacity_bits(from, until),
        }
    }
}

/// Transmission time of a packet at a rate, rounded up to a whole nanosecond.
fn bits_ns(len_bytes: u32, rate_bps: u64) -> u64 {
    let work = u128::from(len_bytes) * u128::from(8 * NS_PER_S);
    u64::try_from(work.div_ceil(u128::from(rate_bps))).unwrap_or(u64::MAX)
}

pub(crate) fn later(at: Time, ns: u64) -> Time {
    Time::from_nanos(at.as_nanos().saturating_add(ns))
}

/// A transmitter with a varying rate.
#[derive(Clone, Debug)]
pub(crate) struct Varying {
    source: Source,
    outages: Option<Outages>,
    /// Nothing can be sent before this time, which has been passed.
    ready_at: Time,
}

#[derive(Clone, Debug)]
enum Source {
    Rates(Box<Rates>),
    Opportunities(Opportunities),
}

impl Varying {
    fn new(rate: &RateConfig, outages: Option<&OutageConfig>, key: StreamKey) -> Self {
        let source = match rate {
            RateConfig::Trace(trace) => Source::Opportunities(Opportunities::new(trace)),
            _ => {
                let key = StreamKey { purpose: "rate", ..key };
                Source::Rates(Box::new(Rates::new(rate, key)))
            }
        };
        let outages = outages.map(|config| Outages::new(*config, key));
        Varying { source, outages, ready_at: Time::ZERO }
    }

    /// The rate at `at`, and until when it holds.
    fn segment(&mut self, at: Time) -> (Time, u64) {
        let Source::Rates(rates) = &mut self.source else { return (NEVER, 0) };
        let (until, rate_bps) = rates.at(at);
        match self.outages.as_mut().map(|outages| outages.at(at)) {
            None => (until, rate_bps),
            Some((ends, is_up)) => (until.min(ends), if is_up { rate_bps } else { 0 }),
        }
    }

    fn begin(&mut self, earliest: Time) -> Time {
        if let Source::Opportunities(_) = self.source {
            return self.next_opportunity(earliest);
        }
        let mut at = earliest.max(self.ready_at);
        loop {
            let (until, rate_bps) = self.segment(at);
            if rate_bps > 0 || at == NEVER {
                self.ready_at = at;
                return at;
            }
            at = until;
        }
    }

    fn serve(&mut self, begin: Time, len_bytes: u32) -> Time {
        if let Source::Opportunities(_) = self.source {
            return self.serve_opportunities(begin, len_bytes);
        }
        let mut at = begin;
        // In bits times nanoseconds per second: each nanosecond at a rate removes a whole number of
        // them.
        let mut work = u128::from(len_bytes) * u128::from(8 * NS_PER_S);
        loop {
            let (until, rate_bps) = self.segment(at);
            if at == NEVER {
                return at;
            }
            let rate = u128::from(rate_bps);
            let room = u128::from(until.as_nanos() - at.as_nanos()) * rate;
            if work <= room && (rate > 0 || work == 0) {
                let ns = if rate > 0 { work.div_ceil(rate) } else { 0 };
                return later(at, u64::try_from(ns).unwrap_or(u64::MAX));
            }
            work -= room.min(work);
            at = until;
        }
    }

    /// Moves to the first opportunity from `earliest` on with bytes left; returns its time.
    fn next_opportunity(&mut self, earliest: Time) -> Time {
        let Source::Opportunities(opportunities) = &mut self.source else { return NEVER };
        opportunities.skip_laps(earliest);
        loop {
            let at = opportunities.at();
            let is_up = |outages: &mut Outages| outages.at(at).1;
            if at >= earliest && opportunities.left() > 0 && self.outages.as_mut().is_none_or(is_up)
            {
                return at;
            }
            opportunities.advance();
        }
    }

    fn serve_opportunities(&mut self, begin: Time, len_bytes: u32) -> Time {
        let mut work = len_bytes;
        let mut at = begin;
        loop {
            at = self.next_opportunity(at);
            let Source::Opportunities(opportunities) = &mut self.source else { return at };
            work -= opportunities.take(work);
            if work == 0 {
                return at;
            }
        }
    }

    fn capacity_bits(&mut self, from: Time, until: Time) -> f64 {
        let (mut at, mut bits) = (from, 0.0);
        while at < until {
            if let Source::Opportunities(_) = self.source {
                at = self.next_opportunity(at);
                let Source::Opportunities(opportunities) = &mut self.source else { break };
                if at < until {
                    bits += 8.0 * f64::from(opportunities.take(u32::MAX));
                }
                continue;
            }
            let (end, rate_bps) = self.segment(at);
            let end = end.min(until);
            bits += rate_bps as f64 * end.since(at).as_secs_f64();
            at = end;
        }
        bits
    }
}

/// A rate that is constant between changes.
#[derive(Clone, Debug)]
struct Rates {
    process: Process,
    stream: Stream,
    rate_bps: u64,
    until: Time,
}

#[derive(Clone, Debug)]
enum Process {
    Constant,
    Steps { config: RateSteps, index: usize, lap: Time },
    Markov { rates_bps: Vec<u64>, dwell: Duration, state: usize },
    Walk { config: RateWalk, log: f64 },
}

impl Rates {
    fn new(config: &RateConfig, key: StreamKey) -> Self {
        let mut stream = key.stream();
        let (process, rate_bps, until) = match config {
            RateConfig::Constant { rate_bps } => (Process::Constant, *rate_bps, NEVER),
            RateConfig::Steps(config) => {
                let process = Process::Steps { config: config.clone(), index: 0, lap: Time::ZERO };
                let until = config.steps.get(1).map(|&(at, _)| at).or(config.period);
                let until = until.map_or(NEVER, |at| Time::ZERO + at);
                (process, config.steps.first().map_or(0, |&(_, bps)| bps), until)
            }
            RateConfig::Markov { rates_bps, dwell } => {
                let state = draw::below(&mut stream, rates_bps.len());
                let until = dwell_from(Time::ZERO, &mut stream, *dwell);
                let (rates_bps, dwell) = (rates_bps.clone(), *dwell);
                let rate_bps = rates_bps[state];
                (Process::Markov { rates_bps, dwell, state }, rate_bps, until)
            }
            RateConfig::Walk(config) => {
                let (least, most) = log_bounds(config);
                let log = least + (most - least) * draw::unit(&mut stream);
                let until = Time::ZERO + config.interval;
                (Process::Walk { config: *config, log }, rate_of(log, config), until)
            }
            // A trace has no rate; it is handled with the opportunities.
            RateConfig::Trace(_) => (Process::Constant, 0, NEVER),
        };
        Rates { process, stream, rate_bps, until }
    }

    /// The rate at `at`, and until when it holds.
    fn at(&mut self, at: Time) -> (Time, u64) {
        while self.until <= at && self.until < NEVER {
            self.change();
        }
        (self.until, self.rate_bps)
    }

    fn change(&mut self) {
        let now = self.until;
        match &mut self.process {
            Process::Constant => self.until = NEVER,
            Process::Steps { config, index, lap } => {
                *index += 1;
                if *index == config.steps.len() {
                    (*index, *lap) = (0, now);
                }
                self.rate_bps = config.steps[*index].1;
                let next = config.steps.get(*index + 1).map(|&(at, _)| at).or(config.period);
                self.until = next.map_or(NEVER, |at| *lap + at);
            }
            Process::Markov { rates_bps, dwell, state } => {
                let other = draw::below(&mut self.stream, rates_bps.len() - 1);
                *state = if other >= *state { other + 1 } else { other };
                self.rate_bps = rates_bps[*state];
                self.until = dwell_from(now, &mut self.stream, *dwell);
            }
            Process::Walk { config, log } => {
                let (least, most) = log_bounds(config);
                let moved = *log + config.deviation * draw::normal(&mut self.stream);
                *log = reflected(moved, least, most);
                self.rate_bps = rate_of(*log, config);
                self.until = now + config.interval;
            }
        }
    }
}

/// The end of an exponentially distributed time of at least a nanosecond.
fn dwell_from(now: Time, stream: &mut Stream, mean: Duration) -> Time {
    let span = draw::exponential(stream, mean).clamp(Duration::from_nanos(1), MAX_DWELL * 100);
    now + span
}

fn log_bounds(config: &RateWalk) -> (f64, f64) {
    (libm::log(config.least_bps as f64), libm::log(config.most_bps as f64))
}

fn rate_of(log: f64, config: &RateWalk) -> u64 {
    (libm::round(libm::exp(log)) as u64).clamp(config.least_bps, config.most_bps)
}

/// The position of a point after reflection at the bounds.
fn reflected(at: f64, least: f64, most: f64) -> f64 {
    let span = most - least;
    let folded = libm::fmod(at - least, 2.0 * span);
    let folded = if folded < 0.0 { folded + 2.0 * span } else { folded };
    least + if folded > span { 2.0 * span - folded } else { folded }
}

/// When a link is up and when it is down.
#[derive(Clone, Debug)]
struct Outages {
    config: OutageConfig,
    stream: Stream,
    is_up: bool,
    until: Time,
}

impl Outages {
    fn new(config: OutageConfig, key: StreamKey) -> Self {
        let stream = StreamKey { purpose: "outage", ..key }.stream();
        let mut outages = Outages { config, stream, is_up: false, until: Time::ZERO };
        outages.change();
        outages
    }

    /// Whether the link is up at `at`, and until when this lasts.
    fn at(&mut self, at: Time) -> (Time, bool) {
        while self.until <= at && self.until < NEVER {
            self.change();
        }
        (self.until, self.is_up)
    }

    fn change(&mut self) {
        self.is_up = !self.is_up;
        let span = if self.is_up { self.config.up } else { self.config.down };
        self.until = match self.config.is_random {
            true => dwell_from(self.until, &mut self.stream, span),
            false => self.until + span,
        };
    }
}
