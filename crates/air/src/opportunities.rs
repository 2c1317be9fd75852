//! Recorded rates in Mahimahi's format: when a link could send how much.
//!
//! A trace is a text of lines, each a whole number of milliseconds since its beginning, in
//! non-decreasing order. Each is an opportunity to send 1504 bytes: of one packet, of several, or
//! the next part of a longer one; an opportunity without a waiting packet is lost. The last line is
//! also the trace's length, after which it repeats (Netravali et al., USENIX ATC 2015; mm-link(1)).

use std::sync::Arc;

use corridor_base::Time;

use crate::error::RateTraceError;
use crate::limits::{MAX_OPPORTUNITIES, MAX_TRACE_MS};

/// Bytes that may be sent at an opportunity.
pub const OPPORTUNITY_BYTES: u32 = 1_504;

const NS_PER_MS: u64 = 1_000_000;

/// A recorded rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTrace {
    /// Milliseconds since the beginning, at least one, non-decreasing; the last one is more
    /// than 0.
    opportunities: Arc<[u32]>,
}

impl RateTrace {
    /// Parses a trace. Empty lines are ignored.
    ///
    /// # Errors
    /// [`RateTraceError`] names the first invalid line, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, RateTraceError> {
        let mut opportunities: Vec<u32> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), index + 1);
            if line.is_empty() {
                continue;
            }
            let least = opportunities.last().copied().unwrap_or(0);
            let given = line.parse().ok().filter(|ms| (least..=MAX_TRACE_MS).contains(ms));
            let Some(ms) = given else {
                // The excerpt in the error is bounded, whatever the file contains.
                let given = line.chars().take(20).collect();
                return Err(RateTraceError::Line { line: number, given, least });
            };
            if opportunities.len() == MAX_OPPORTUNITIES {
                return Err(RateTraceError::TooLong { line: number });
            }
            opportunities.push(ms);
        }
        match opportunities.last() {
            None => Err(RateTraceError::Empty),
            Some(0) => Err(RateTraceError::NoTime),
            Some(_) => Ok(RateTrace { opportunities: opportunities.into() }),
        }
    }

    /// Mean rate in bit/s.
    pub fn mean_bps(&self) -> f64 {
        let bits = 8.0 * f64::from(OPPORTUNITY_BYTES) * self.opportunities.len() as f64;
        1e9 * bits / self.period_ns() as f64
    }

    /// Number of opportunities before the trace repeats.
    pub fn opportunities(&self) -> usize {
        self.opportunities.len()
    }

    /// Length of the trace before it repeats, nanoseconds.
    pub fn period_ns(&self) -> u64 {
        let last = self.opportunities.last().copied().unwrap_or(1);
        u64::from(last) * NS_PER_MS
    }
}

/// A link's position in a trace.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: RateTrace,
    /// When this repetition began, nanoseconds.
    lap_ns: u64,
    index: usize,
    /// Bytes left of this opportunity.
    left: u32,
}

impl Opportunities {
    pub(crate) fn new(trace: &RateTrace) -> Self {
        Opportunities { trace: trace.clone(), lap_ns: 0, index: 0, left: OPPORTUNITY_BYTES }
    }

    /// The time of the current opportunity.
    pub(crate) fn at(&self) -> Time {
        let ns = u64::from(self.trace.opportunities[self.index]) * NS_PER_MS;
        Time::from_nanos(self.lap_ns.saturating_add(ns))
    }

    /// Bytes left of it.
    pub(crate) fn left(&self) -> u32 {
        self.left
    }

    /// Takes up to `bytes` of it; returns how many.
    pub(crate) fn take(&mut self, bytes: u32) -> u32 {
        let taken = self.left.min(bytes);
        self.left -= taken;
        taken
    }

    /// Moves to the next one.
    pub(crate) fn advance(&mut self) {
        self.left = OPPORTUNITY_BYTES;
        self.index += 1;
        if self.index == self.trace.opportunities.len() {
            self.index = 0;
            self.lap_ns = self.lap_ns.saturating_add(self.trace.period_ns());
        }
    }

    /// Skips repetitions that have ended by `earliest`.
    pub(crate) fn skip_laps(&mut self, earliest: Time) {
        let period = self.trace.period_ns();
        let behind = earliest.as_nanos().saturating_sub(self.lap_ns) / period;
        if behind > 1 {
            self.lap_ns += (behind - 1) * period;
            (self.index, self.left) = (0, OPPORTUNITY_BYTES);
        }
    }
}
