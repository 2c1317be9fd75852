//! Datagrams at random times, or at listed ones.

use core::time::Duration;
use std::sync::Arc;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};

use super::{Active, FlowEnd};
use crate::core::agent::{Agent, Body, Packet};

/// When datagrams are sent.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// At exponentially distributed intervals: a Poisson process.
    Poisson {
        /// Mean interval.
        mean: Duration,
        /// The random stream.
        draws: Stream,
    },
    /// At equal intervals during on periods, with silence in between; both periods have
    /// exponentially distributed lengths.
    OnOff {
        /// From one datagram to the next.
        interval: Duration,
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of a silence.
        off: Duration,
        /// The random stream.
        draws: Stream,
    },
    /// At listed times after the source's start, each with its payload bytes.
    Listed(Arc<[(Duration, u32)]>),
}

/// A source that sends datagrams by a [`Pattern`].
#[derive(Clone, Debug)]
pub struct PatternSource {
    end: FlowEnd,
    pattern: Pattern,
    active: Active,
    /// Payload bytes where the pattern does not say, and header bytes.
    lens_bytes: (u32, u32),
    next_at: Option<Time>,
    /// End of the current on period.
    on_until: Time,
    sequence: u64,
}

impl PatternSource {
    /// A source of datagrams; `lens_bytes` are the payload bytes, used where the pattern does not
    /// say, and the header bytes.
    pub fn new(end: FlowEnd, mut pattern: Pattern, active: Active, lens_bytes: (u32, u32)) -> Self {
        let mut on_until = Time::MAX;
        let first = match &mut pattern {
            Pattern::Poisson { mean, draws } => Some(active.from + exponential(*mean, draws)),
            Pattern::OnOff { on, draws, .. } => {
                on_until = active.from + exponential(*on, draws);
                Some(active.from)
            }
            Pattern::Listed(times) => times.first().map(|&(after, _)| active.from + after),
        };
        PatternSource { end, pattern, active, lens_bytes, next_at: first, on_until, sequence: 0 }
    }

    /// Datagrams sent.
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// When to send the datagram after the one sent at `at`.
    fn after(&mut self, at: Time) -> Option<Time> {
        Some(match &mut self.pattern {
            Pattern::Poisson { mean, draws } => at + exponential(*mean, draws),
            Pattern::OnOff { interval, on, off, draws } => {
                let next = at + *interval;
                if next < self.on_until {
                    return Some(next);
                }
                let begin = self.on_until + exponential(*off, draws);
                self.on_until = begin + exponential(*on, draws);
                begin
            }
            Pattern::Listed(times) => {
                let &(after, _) = times.get(self.sequence as usize)?;
                self.active.from + after
            }
        })
    }
}

/// An exponentially distributed time, at least a nanosecond.
fn exponential(mean: Duration, draws: &mut Stream) -> Duration {
    // Above 0 and up to 1, so that the logarithm is finite.
    let share = (f64::from(draws.next_u32()) + 1.0) / 4_294_967_296.0;
    let ns = -libm::log(share) * mean.as_nanos() as f64;
    Duration::from_nanos((ns.round() as u64).max(1))
}

impl Agent for PatternSource {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let at = self.poll_timeout().filter(|&at| at <= now)?;
        let (data_bytes, header_bytes) = self.lens_bytes;
        let data_bytes = match &self.pattern {
            Pattern::Listed(times) => times[self.sequence as usize].1,
            Pattern::Poisson { .. } | Pattern::OnOff { .. } => data_bytes,
        };
        let body = Body::Datagram { sequence: self.sequence, sent_at: now };
        self.sequence += 1;
        self.next_at = self.after(at);
        Some(self.end.packet(data_bytes + header_bytes, body))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.next_at.filter(|&at| at < self.active.until)
    }
}

#[cfg(test)]
mod tests {
    use corridor_base::StreamKey;

    use super::*;

    const END: FlowEnd = FlowEnd { flow: 0, node: 0, peer: 1 };

    fn sent_at(pattern: Pattern, seconds: u64) -> Vec<(Time, u32)> {
        let until = Time::ZERO + Duration::from_secs(seconds);
        let active = Active { from: Time::from_millis(500), until };
        let mut source = PatternSource::new(END, pattern, active, (100, 28));
        let mut sent = Vec::new();
        while let Some(now) = source.poll_timeout() {
            while let Some(packet) = source.poll_transmit(now) {
                sent.push((now, packet.len_bytes));
            }
        }
        sent
    }

    fn draws() -> Stream {
        StreamKey { seed: 1, replication: 0, entity: 0, purpose: "source" }.stream()
    }

    #[test]
    fn a_list_says_when_and_how_much() {
        let times = [(0, 10), (20, 30), (20, 40), (5_000, 50)];
        let list = times.map(|(ms, bytes)| (Duration::from_millis(ms), bytes));
        let sent = sent_at(Pattern::Listed(Arc::from(list)), 2);
        let at = |ms: u64, bytes| (Time::from_millis(ms), bytes);
        assert_eq!(sent, [at(500, 38), at(520, 58), at(520, 68)], "the last is behind the end");
    }

    #[test]
    fn intervals_and_spans_have_their_means() {
        // 10,000 s: 100,000 datagrams with intervals of 0.1 s, within 0.3 % (one sigma).
        let poisson = Pattern::Poisson { mean: Duration::from_millis(100), draws: draws() };
        let count = sent_at(poisson, 10_000).len() as f64;
        assert!((count / 100_000.0 - 1.0).abs() < 0.015, "{count}");
        // On for a quarter of the time: with 10,000 on periods and datagrams 10 ms apart, the mean
        // is known to 1 %. Each on period begins with a datagram, which adds half an interval.
        let (interval, on, off) =
            (Duration::from_millis(10), Duration::from_millis(250), Duration::from_millis(750));
        let pauses = Pattern::OnOff { interval, on, off, draws: draws() };
        let sent = sent_at(pauses, 10_000);
        let expected = 10_000.0 * (0.25 / 0.01 + 0.5);
        let count = sent.len() as f64;
        assert!((count / expected - 1.0).abs() < 0.05, "{count} of {expected}");
        let gaps = sent.windows(2).map(|w| w[1].0 - w[0].0).filter(|&gap| gap > interval).count();
        assert!((9_000..11_000).contains(&gaps), "{gaps}");
    }
}
