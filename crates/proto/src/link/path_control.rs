//! How fast frames may go: what feedback shows of the path, and what follows from it.

#[cfg(test)]
mod closed_loop;
mod compete;
pub(crate) mod delivered;
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

/// What feedback tells of delay and loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// One-way delay of the newest frame, on clocks whose difference is constant and which wrap,
    /// microseconds.
    pub(crate) one_way_us: u32,
    /// The frame is one of the longer ones, which take longer themselves.
    pub(crate) is_long: bool,
    /// Round trip as far as it is known, up to when feedback is late.
    pub(crate) round_trip: Duration,
    /// The same, smoothed.
    pub(crate) round_trip_smoothed: Duration,
    /// Frames that feedback newly reported, a short one counted as its part of a long one, and the
    /// span in which they came.
    pub(crate) told: f64,
    /// See `told`; zero if it is not known.
    pub(crate) span: Duration,
    /// The span in which they were sent.
    pub(crate) sent_span: Duration,
    /// How many frames these were, and how many came meanwhile: more where some of those before
    /// were late.
    pub(crate) frames: usize,
    /// See `frames`.
    pub(crate) came: usize,
    /// The rate has held most of these frames back, and none came after a gap in what was sent.
    pub(crate) limited: bool,
    /// Both directions share the channel.
    pub(crate) shares_air: bool,
}

/// Bytes of what any control of a rate remembers at most: four minima of delays, one of rates, and
/// the points of its feedback.
pub(crate) const REMEMBERED_BYTES: usize = 5 * MinFilter::BYTES_MAX + model::Arrivals::BYTES_MAX;

/// Decides how fast frames go by what feedback tells of them.
pub(crate) trait PathControl: Send + Sync {
    /// Takes feedback, and adjusts the rate.
    fn note(&mut self, now: Time, sample: Sample, stats: &mut Stats);

    /// Frames a second that may go.
    fn frames_per_s(&self) -> f64;

    /// Frames a second that came through of late.
    fn through_per_s(&self) -> f64;

    /// Frames that may be on their way, where feedback about one takes so long.
    fn in_flight_max(&self, wait: Duration) -> f64;

    /// How long nothing is to be sent, if that serves the rate; told once. What comes behind that
    /// gap says nothing of the path's rate.
    fn take_pause(&mut self) -> Option<Duration>;

    /// Whether feedback tells of frames that were few on purpose.
    fn tells_of_few(&self, now: Time) -> bool;
}

/// The control that window mode has: it follows delay.
pub(crate) fn follow_delay(now: Time) -> Box<dyn PathControl> {
    Box::new(policy::RateControl::new(now))
}
