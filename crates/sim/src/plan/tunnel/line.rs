//! What a line counts in a run: packets dropped before it, frames' waiting times, and its capacity.

use core::time::Duration;

use corridor_air::PipeStats;
use corridor_base::Time;
use corridor_scenario::{DESTINATION, Delays, Run, SOURCE, Scenario, line_config};

use super::{Measured, delays, line_header_len};
use crate::core::network::Network;

/// Longest time by which the load begins after the line's rates: the lab's threads check once a
/// millisecond whether to begin.
const LATE_MAX: Duration = Duration::from_millis(1);

/// How S sends on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineSender {
    /// At the rate that its rate control finds. The number, from 0, selects one of several draws of
    /// what the ends draw, of what the line draws for each packet, and of how much later than the
    /// line's rates the load begins; in draw 0 it begins with them.
    Finds(u64),
    /// Whenever the line is idle.
    Knows,
}

impl LineSender {
    pub(super) fn draw(self) -> u64 {
        match self {
            LineSender::Finds(draw) => draw,
            LineSender::Knows => 0,
        }
    }

    /// How much later than the line's rates the load begins: in no two real-time runs does a packet
    /// meet a change of the rate at the same point. The golden ratio spreads the draws evenly.
    pub(super) fn late(self) -> Duration {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        LATE_MAX.mul_f64((self.draw() as f64 * GOLDEN).fract())
    }
}

/// A line's direction from S to D, in the measured interval.
#[derive(Clone, Debug, PartialEq)]
pub struct LineSeen {
    /// Bits per second, IP headers included, that the line could have carried for a sender that
    /// knew its rates in advance, without deducting losses.
    pub capacity_bps: f64,
    /// Longest IP packet: shorter through a tunnel than on the line.
    pub mtu: usize,
    /// Frames that S sent, including dropped ones.
    pub offered: u64,
    /// Of these, frames dropped by the queue or the policer.
    pub dropped: u64,
    /// Of those accepted, frames that the line lost.
    pub erased: u64,
    /// Mean bytes of an accepted frame, IP headers included.
    pub frame_bytes: f64,
    /// How long accepted frames waited for the transmitter.
    pub waits: Delays,
    /// Frames dropped before the interval, since the load began, and since the stations had
    /// sessions.
    pub dropped_before: u64,
    /// Frames that D sent, including dropped ones.
    pub back_offered: u64,
    /// Of these, dropped frames.
    pub back_dropped: u64,
    /// Length of the interval.
    pub duration: Duration,
}

/// Counters at the beginning of the interval.
#[derive(Clone, Copy)]
pub(super) struct Before {
    forth: PipeStats,
    back: PipeStats,
}

fn stats(network: &Network) -> Option<Before> {
    let line = network.line(0)?;
    Some(Before { forth: *line.pipe_stats(SOURCE)?, back: *line.pipe_stats(DESTINATION)? })
}

impl LineSeen {
    pub(super) fn before(network: &Network) -> Option<Before> {
        stats(network)
    }
}

impl Before {
    pub(super) fn after(
        self,
        network: &Network,
        measured: Measured,
        (scenario, run): (&Scenario, &Run),
        mtu: usize,
    ) -> LineSeen {
        let Before { forth, back } = stats(network).unwrap_or(self);
        let drops = |stats: PipeStats| stats.refused + stats.policed;
        let carried = forth.sent_packets() - self.forth.sent_packets();
        let bytes = forth.sent_bytes - self.forth.sent_bytes;
        let line = line_config(scenario, run, scenario.seed, line_header_len(run));
        let since = |at: Time| Time::ZERO + at.since(measured.begin);
        let (start, end) = (since(measured.start), since(measured.end));
        let capacity = line.and_then(|line| line.capacity_bits(SOURCE, start, end).ok());
        let waits = network.line(0).and_then(|line| line.pipe(SOURCE)?.waits().map(delays));
        LineSeen {
            capacity_bps: capacity.unwrap_or(0.0) / measured.duration_s,
            mtu,
            offered: forth.offered - self.forth.offered,
            dropped: drops(forth) - drops(self.forth),
            erased: forth.erased - self.forth.erased,
            frame_bytes: bytes as f64 / carried.max(1) as f64,
            waits: waits.unwrap_or_default(),
            dropped_before: drops(self.forth),
            back_offered: back.offered - self.back.offered,
            back_dropped: drops(back) - drops(self.back),
            duration: measured.end - measured.start,
        }
    }
}
