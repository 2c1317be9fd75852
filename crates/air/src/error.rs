//! What can be wrong: a configuration, or the moment of an offer.

use core::time::Duration;

use crate::limits::*;

/// A configuration that cannot be: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AirError {
    /// No stations, or too many.
    #[error("stations is {given}, expected 1 to {MAX_STATIONS}")]
    Stations {
        /// Number of stations given.
        given: usize,
    },
    /// No PHY rate: a frame would never end.
    #[error("rate_bps is {given}, expected 1 or more")]
    Rate {
        /// Rate given, in bit/s.
        given: u64,
    },
    /// Queues that hold nothing, or too much.
    #[error("queue_frames is {given}, expected 1 to {MAX_QUEUE_FRAMES}")]
    QueueFrames {
        /// Queue length given, in frames.
        given: usize,
    },
    /// An overhead that is probably in a wrong unit.
    #[error("overhead is {given:?}, expected at most {MAX_SPAN:?}")]
    Overhead {
        /// Overhead given.
        given: Duration,
    },
    /// A propagation delay that is probably in a wrong unit.
    #[error("propagation is {given:?}, expected at most {MAX_SPAN:?}")]
    Propagation {
        /// Delay given.
        given: Duration,
    },
    /// A jitter that is probably in a wrong unit.
    #[error("jitter is {given:?}, expected at most {MAX_SPAN:?}")]
    Jitter {
        /// Mean or upper end given.
        given: Duration,
    },
    /// A link from a station that does not exist.
    #[error("links[{index}].from is {given}, expected a station below {stations}")]
    LinkFrom {
        /// Place of the link in the list.
        index: usize,
        /// Station given.
        given: usize,
        /// Number of stations.
        stations: usize,
    },
    /// A link to a station that does not exist.
    #[error("links[{index}].to is {given}, expected a station below {stations}")]
    LinkTo {
        /// Place of the link in the list.
        index: usize,
        /// Station given.
        given: usize,
        /// Number of stations.
        stations: usize,
    },
    /// A link from a station to itself.
    #[error("links[{index}].to is {given}, expected a station other than its from")]
    LinkToItself {
        /// Place of the link in the list.
        index: usize,
        /// Station given at both ends.
        given: usize,
    },
    /// An erasure process that cannot be.
    #[error("links[{index}].{source} ({from} to {to})")]
    Erasure {
        /// Place of the link in the list.
        index: usize,
        /// Sending station of the link.
        from: usize,
        /// Hearing station of the link.
        to: usize,
        /// What is wrong with it.
        source: ErasureError,
    },
    /// The same link twice.
    #[error("links has {from} to {to} more than once, expected each pair at most once")]
    DuplicateLink {
        /// Sending station of the link.
        from: usize,
        /// Hearing station of the link.
        to: usize,
    },
}

/// An erasure process that cannot be: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ErasureError {
    /// A ratio that is no probability, or not between the others.
    #[error("{field} is {given}, expected {least} to {most}")]
    Ratio {
        /// Which ratio.
        field: &'static str,
        /// Ratio given.
        given: f64,
        /// Least ratio that can be.
        least: f64,
        /// Greatest ratio that can be.
        most: f64,
    },
    /// A channel that never becomes good.
    #[error("loss_ratio is {given}, expected less than bad_loss_ratio")]
    AlwaysBad {
        /// Ratio given.
        given: f64,
    },
    /// Bursts too short for the share of the bad state, or no number.
    #[error("burst_packets is {given}, expected {least} or more")]
    BurstPackets {
        /// Mean length given, in packets.
        given: f64,
        /// Least mean length that can be.
        least: f64,
    },
    /// A trace with something else in it.
    #[error("trace has byte {given:#04x} at offset {offset}, expected 0, 1 and white space")]
    TraceByte {
        /// Where.
        offset: usize,
        /// What.
        given: u8,
    },
    /// A trace of nothing.
    #[error("trace has 0 packets, expected 1 or more")]
    TraceEmpty,
    /// A trace too long to be kept.
    #[error("trace has more runs than {MAX_TRACE_RUNS}, expected at most that")]
    TraceRuns,
}

/// A pipe that cannot be: which field, what was given, what is expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PipeError {
    /// A rate that cannot be, or outages.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A policer that lets nothing pass.
    #[error("policer.rate_bps is {given}, expected 1 or more")]
    PolicerRate {
        /// Rate given, in bit/s.
        given: u64,
    },
    /// A bucket that holds nothing, or too much.
    #[error("policer.burst_bytes is {given}, expected 1 to {MAX_BURST_BYTES}")]
    PolicerBurst {
        /// Bytes given.
        given: u64,
    },
    /// A jitter that is probably in a wrong unit.
    #[error("jitter is {given:?}, expected at most {MAX_SPAN:?}")]
    Jitter {
        /// The longest of the times given.
        given: Duration,
    },
    /// A delay that is probably in a wrong unit.
    #[error("delay is {given:?}, expected at most {MAX_SPAN:?}")]
    Delay {
        /// Delay given.
        given: Duration,
    },
    /// A queue that holds nothing, or too much.
    #[error("queue_packets is {given}, expected 1 to {MAX_QUEUE_PACKETS}")]
    QueuePackets {
        /// Queue length given, in packets.
        given: usize,
    },
    /// A queue that holds nothing, or too much.
    #[error("queue_bytes is {given}, expected 1 to {MAX_QUEUE_BYTES}")]
    QueueBytes {
        /// Queue length given, in bytes.
        given: u64,
    },
    /// A queue in which nothing may wait, or for too long.
    #[error("queue_time is {given:?}, expected more than 0, at most {MAX_SPAN:?}")]
    QueueTime {
        /// Longest wait given.
        given: Duration,
    },
    /// An erasure process that cannot be.
    #[error(transparent)]
    Erasure(#[from] ErasureError),
}

/// A rate that cannot be: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RateError {
    /// No rate: a packet would never end.
    #[error("{field} is {given}, expected 1 or more")]
    Bps {
        /// Which rate.
        field: &'static str,
        /// Rate given, in bit/s.
        given: u64,
    },
    /// Too few, or too many.
    #[error("{field} has {given} entries, expected {least} to {most}")]
    Count {
        /// Of what.
        field: &'static str,
        /// How many were given.
        given: usize,
        /// Least that can be.
        least: usize,
        /// Most that can be.
        most: usize,
    },
    /// A list that does not say how it begins.
    #[error("the first of steps is at {given:?}, expected 0 s")]
    FirstStep {
        /// Time given.
        given: Duration,
    },
    /// Steps that go back.
    #[error("steps[{index}] is at {given:?}, expected later than {before:?}, the one before")]
    StepOrder {
        /// Place in the list.
        index: usize,
        /// Time given.
        given: Duration,
        /// Time of the one before.
        before: Duration,
    },
    /// A list that begins again before it is over, or after too long.
    #[error("period is {given:?}, expected more than {least:?}, the last step, at most an hour")]
    Period {
        /// Time given.
        given: Duration,
        /// Time of the last step.
        least: Duration,
    },
    /// A walk without room.
    #[error("most_bps is {given}, expected more than least_bps, which is {least}")]
    Bounds {
        /// Upper end given.
        given: u64,
        /// Lower end.
        least: u64,
    },
    /// A walk that stands, or leaps.
    #[error("deviation is {given}, expected more than 0, at most 10")]
    Deviation {
        /// Deviation given.
        given: f64,
    },
    /// A time that is probably in a wrong unit.
    #[error("{field} is {given:?}, expected {least:?} to {most:?}")]
    Span {
        /// Which time.
        field: &'static str,
        /// Time given.
        given: Duration,
        /// Least that can be.
        least: Duration,
        /// Most that can be.
        most: Duration,
    },
}

/// A recorded rate that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateTraceError {
    /// Something else than a time, or one that goes back.
    #[error("line {line} is \"{given}\", expected milliseconds, {least} to {MAX_TRACE_MS}")]
    Line {
        /// Which line, from 1.
        line: usize,
        /// Its first characters.
        given: String,
        /// The time in the line before.
        least: u32,
    },
    /// A trace too long to be kept.
    #[error("line {line} is one too many, expected at most {MAX_OPPORTUNITIES} opportunities")]
    TooLong {
        /// Which line, from 1.
        line: usize,
    },
    /// A trace of nothing.
    #[error("the trace has no lines, expected milliseconds, one a line")]
    Empty,
    /// A trace that would begin again at once.
    #[error("the last line is 0, expected the trace's length in milliseconds")]
    NoTime,
}

/// The frame or packet was not taken, and comes back: there was no room for it, see
/// [`crate::Medium::has_room`] and [`crate::PipeConfig::queue`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room in the queue")]
pub struct QueueFull<F> {
    /// The frame, as it was offered.
    pub frame: F,
}
