//! What a line saw of a run: what was dropped in front of it, how long frames waited for it, and
//! what it could have carried.

use core::time::Duration;

use corridor_air::PipeStats;
use corridor_base::Time;
use corridor_scenario::{DESTINATION, Delays, Run, SOURCE, Scenario, line_config};

use super::{Measured, delays, line_header_len};
use crate::core::network::Network;

/// Most that the load begins later than its rates: the lab's threads look every millisecond whether
/// they may begin.
const LATE_MAX: Duration = Duration::from_millis(1);

/// How S sends on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineSender {
    /// At the rate that it finds. Of what the ends draw themselves, of what the line draws for each
    /// packet, and of how much later than its rates the load begins, this is such a draw, from 0:
    /// there it begins with them.
    Finds(u64),
    /// Whenever the line has nothing to send.
    Knows,
}

impl LineSender {
    pub(super) fn draw(self) -> u64 {
        match self {
            LineSender::Finds(draw) => draw,
            LineSender::Knows => 0,
        }
    }

    /// How much later than its rates the load begins: no two runs in real time have a packet meet a
    /// change of the rate at the same point. Draws are spread evenly, by the golden ratio.
    pub(super) fn late(self) -> Duration {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        LATE_MAX.mul_f64((self.draw() as f64 * GOLDEN).fract())
    }
}

/// The direction from S to D of a line, in the measured interval.
#[derive(Clone, Debug, PartialEq)]
pub struct LineSeen {
    /// Bits per second that the line could have carried for somebody who knew its rates before,
    /// losses not taken off; IP's headers are among them.
    pub capacity_bps: f64,
    /// Longest packet of IP's that crosses: through a tunnel less than on the line.
    pub mtu: usize,
    /// Frames that S sent, dropped ones included.
    pub offered: u64,
    /// Of these, frames that the queue or the policer dropped.
    pub dropped: u64,
    /// Of those that were not, frames that the line lost.
    pub erased: u64,
    /// Mean bytes of a frame that was not dropped, IP's headers included.
    pub frame_bytes: f64,
    /// How long such frames waited for the transmitter.
    pub waits: Delays,
    /// Frames dropped before the interval, from the beginning of the load on, and since the
    /// stations met.
    pub dropped_before: u64,
    /// Frames that D sent, and those that were dropped.
    pub back_offered: u64,
    /// The same, dropped.
    pub back_dropped: u64,
    /// How long the interval was.
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
