//! Rate control: what feedback shows about the path, and how fast frames may be sent.

#[cfg(test)]
mod closed_loop;
mod compete;
pub(crate) mod delivered;
mod dispersion;
pub(crate) mod filter;
mod model;
pub(crate) mod policy;
#[cfg(test)]
mod policy_study;
#[cfg(test)]
mod policy_tests;
pub(crate) mod spread;

use core::time::Duration;

use corridor_base::Time;

use crate::stats::Stats;
use filter::MinFilter;

/// What feedback reports about delay and loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// One-way delay of the newest frame in microseconds, on clocks with a constant offset, which
    /// wrap.
    pub(crate) one_way_us: u32,
    /// The frame is one of the long ones, which take longer by themselves.
    pub(crate) is_long: bool,
    /// Usual round-trip time, which outages hardly change, including the margin after which
    /// feedback is late.
    pub(crate) round_trip: Duration,
    /// The same, smoothed, without the margin.
    pub(crate) round_trip_smoothed: Duration,
    /// Frames that feedback newly reported, where a short one counts as its fraction of a long one,
    /// as do bytes sent beside them, such as feedback; and `span`: the time span in which they
    /// arrived.
    pub(crate) told: f64,
    /// See `told`; zero if unknown.
    pub(crate) span: Duration,
    /// The time span in which they were sent.
    pub(crate) sent_span: Duration,
    /// The number of these frames, and `came`: how many arrived meanwhile, which may be more, if
    /// some of those before were late.
    pub(crate) frames: usize,
    /// See `frames`.
    pub(crate) came: usize,
    /// The rate held back most of these frames, and none followed a gap in sending.
    pub(crate) limited: bool,
    /// Both directions share the channel.
    pub(crate) shares_air: bool,
    /// Frames/s at which the two frames of a pair arrived, which had left together, if newly
    /// reported; infinite if the last pairs disagree.
    pub(crate) pair_per_s: Option<f64>,
}

/// Most bytes that any rate control remembers: five filters of delays, one of rates, and the points
/// of its feedback.
pub(crate) const REMEMBERED_BYTES: usize = 6 * MinFilter::BYTES_MAX + model::Arrivals::BYTES_MAX;

/// Decides from feedback how fast frames are sent.
pub(crate) trait PathControl: Send + Sync {
    /// Takes feedback, and adjusts the rate.
    fn note(&mut self, now: Time, sample: Sample, stats: &mut Stats);

    /// Rate in frames/s at which to send.
    fn frames_per_s(&self) -> f64;

    /// Frames/s that recently came through.
    fn through_per_s(&self) -> f64;

    /// Most frames that may be in flight if feedback about one takes a round trip and `ack_delay`.
    fn in_flight_max(&self, ack_delay: Duration) -> f64;

    /// How long to send nothing, if that helps the rate; returned once. What follows this gap says
    /// nothing about the path's rate.
    fn take_pause(&mut self) -> Option<Duration>;

    /// How many frames should leave alone between pairs, two that leave together; `None`: all of
    /// them.
    fn singles_between_pairs(&self) -> Option<u32>;

    /// Whether feedback still reports on frames that were few on purpose.
    fn tells_of_few(&self, now: Time) -> bool;
}

/// Window mode's rate control, which follows delay.
pub(crate) fn follow_delay(now: Time) -> Box<dyn PathControl> {
    Box::new(policy::RateControl::new(now))
}
