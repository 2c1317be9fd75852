//! Errors: invalid configurations, and frames offered when there is no room.

use core::time::Duration;

use crate::limits::*;

/// An invalid configuration: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum AirError {
    /// No stations, or too many.
    #[error("stations is {given}, expected 1 to {MAX_STATIONS}")]
    Stations {
        /// Number of stations given.
        given: usize,
    },
    /// A PHY rate of zero: a frame would never end.
    #[error("rate_bps is {given}, expected 1 or more")]
    Rate {
        /// Rate given, in bit/s.
        given: u64,
    },
    /// Queues that are too short or too long.
    #[error("queue_frames is {given}, expected 1 to {MAX_QUEUE_FRAMES}")]
    QueueFrames {
        /// Queue length given, in frames.
        given: usize,
    },
    /// An overhead so long that its unit is probably wrong.
    #[error("overhead is {given:?}, expected at most {MAX_SPAN:?}")]
    Overhead {
        /// Overhead given.
        given: Duration,
    },
    /// A propagation delay so long that its unit is probably wrong.
    #[error("propagation is {given:?}, expected at most {MAX_SPAN:?}")]
    Propagation {
        /// Delay given.
        given: Duration,
    },
    /// A jitter so long that its unit is probably wrong.
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
    /// An invalid erasure process.
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

/// An invalid erasure process: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ErasureError {
    /// A ratio that is not a probability, or not between the others.
    #[error("{field} is {given}, expected {least} to {most}")]
    Ratio {
        /// Which ratio.
        field: &'static str,
        /// Ratio given.
        given: f64,
        /// Smallest valid ratio.
        least: f64,
        /// Largest valid ratio.
        most: f64,
    },
    /// A channel that never becomes good.
    #[error("loss_ratio is {given}, expected less than bad_loss_ratio")]
    AlwaysBad {
        /// Ratio given.
        given: f64,
    },
    /// Bursts too short for the share of the bad state, or not a number.
    #[error("burst_packets is {given}, expected {least} or more")]
    BurstPackets {
        /// Mean length given, in packets.
        given: f64,
        /// Smallest valid mean length.
        least: f64,
    },
    /// A trace with an invalid character.
    #[error("trace has byte {given:#04x} at offset {offset}, expected 0, 1 and white space")]
    TraceByte {
        /// Position of the character.
        offset: usize,
        /// The character.
        given: u8,
    },
    /// An empty trace.
    #[error("trace has 0 packets, expected 1 or more")]
    TraceEmpty,
    /// A trace that is too long.
    #[error("trace has more runs than {MAX_TRACE_RUNS}, expected at most that")]
    TraceRuns,
}

/// An invalid pipe: which field, what was given, what is expected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PipeError {
    /// An invalid rate, or invalid outages.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// A policer that passes nothing.
    #[error("policer.rate_bps is {given}, expected 1 or more")]
    PolicerRate {
        /// Rate given, in bit/s.
        given: u64,
    },
    /// A token bucket that is too small or too large.
    #[error("policer.burst_bytes is {given}, expected 1 to {MAX_BURST_BYTES}")]
    PolicerBurst {
        /// Bytes given.
        given: u64,
    },
    /// A jitter so long that its unit is probably wrong.
    #[error("jitter is {given:?}, expected at most {MAX_SPAN:?}")]
    Jitter {
        /// The longest of the times given.
        given: Duration,
    },
    /// A delay so long that its unit is probably wrong.
    #[error("delay is {given:?}, expected at most {MAX_SPAN:?}")]
    Delay {
        /// Delay given.
        given: Duration,
    },
    /// A queue that is too short or too long.
    #[error("queue_packets is {given}, expected 1 to {MAX_QUEUE_PACKETS}")]
    QueuePackets {
        /// Queue length given, in packets.
        given: usize,
    },
    /// A queue that is too short or too long.
    #[error("queue_bytes is {given}, expected 1 to {MAX_QUEUE_BYTES}")]
    QueueBytes {
        /// Queue length given, in bytes.
        given: u64,
    },
    /// A queue whose longest wait is zero or too long.
    #[error("queue_time is {given:?}, expected more than 0, at most {MAX_SPAN:?}")]
    QueueTime {
        /// Longest wait given.
        given: Duration,
    },
    /// An invalid erasure process.
    #[error(transparent)]
    Erasure(#[from] ErasureError),
}

/// An invalid rate: which field, what was given, what is expected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RateError {
    /// A rate of zero: a packet would never end.
    #[error("{field} is {given}, expected 1 or more")]
    Bps {
        /// Which rate.
        field: &'static str,
        /// Rate given, in bit/s.
        given: u64,
    },
    /// Too few or too many entries.
    #[error("{field} has {given} entries, expected {least} to {most}")]
    Count {
        /// Of which field.
        field: &'static str,
        /// How many were given.
        given: usize,
        /// Smallest valid number.
        least: usize,
        /// Largest valid number.
        most: usize,
    },
    /// A list that does not begin at time zero.
    #[error("the first of steps is at {given:?}, expected 0 s")]
    FirstStep {
        /// Time given.
        given: Duration,
    },
    /// Steps that are not in order of time.
    #[error("steps[{index}] is at {given:?}, expected later than {before:?}, the one before")]
    StepOrder {
        /// Place in the list.
        index: usize,
        /// Time given.
        given: Duration,
        /// Time of the one before.
        before: Duration,
    },
    /// A period that ends before the last step, or is too long.
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

/// A recorded rate that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateTraceError {
    /// A line that is not a time, or a time before the previous one.
    #[error("line {line} is \"{given}\", expected milliseconds, {least} to {MAX_TRACE_MS}")]
    Line {
        /// Which line, from 1.
        line: usize,
        /// Its first characters.
        given: String,
        /// The time in the line before.
        least: u32,
    },
    /// A trace that is too long.
    #[error("line {line} is one too many, expected at most {MAX_OPPORTUNITIES} opportunities")]
    TooLong {
        /// Which line, from 1.
        line: usize,
    },
    /// An empty trace.
    #[error("the trace has no lines, expected milliseconds, one a line")]
    Empty,
    /// A trace whose length is zero.
    #[error("the last line is 0, expected the trace's length in milliseconds")]
    NoTime,
}

/// There was no room for the frame or packet, which is returned; see [`crate::Medium::has_room`]
/// and [`crate::PipeConfig::queue`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room in the queue")]
pub struct QueueFull<F> {
    /// The frame, as it was offered.
    pub frame: F,
}
