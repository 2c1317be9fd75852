//! The state of a directed link: its erasure process, jitter, random streams and counters.

use corridor_base::{Stream, StreamKey, Time};

use crate::config::{Link, MediumConfig, Station};
use crate::erasure::Erasure;
use crate::error::ErasureError;
use crate::jitter::Jitter;
use crate::stats::LinkStats;

#[derive(Clone, Debug)]
pub(crate) struct LinkState {
    pub(crate) from: Station,
    pub(crate) to: Station,
    pub(crate) retry_limit: u32,
    pub(crate) stats: LinkStats,
    erasure: Erasure,
    stream: Stream,
    jitter: Jitter,
    jitter_stream: Stream,
    /// Arrival of the last frame that was heard: no later frame overtakes it.
    arrived_at: Time,
}

impl LinkState {
    pub(crate) fn new(link: &Link, config: &MediumConfig) -> Result<Self, ErasureError> {
        let key = StreamKey {
            seed: config.seed,
            replication: config.replication,
            // Keyed by its ends rather than by its index: a link keeps its losses when another
            // station, such as a helper, joins the scenario.
            entity: (link.from as u64) << 32 | link.to as u64,
            purpose: "erasure",
        };
        let mut stream = key.stream();
        let jitter_key = StreamKey { purpose: "jitter", ..key };
        Ok(LinkState {
            from: link.from,
            to: link.to,
            retry_limit: link.retry_limit,
            stats: LinkStats::default(),
            erasure: Erasure::new(&link.erasure, &mut stream)?,
            stream,
            jitter: config.jitter,
            jitter_stream: jitter_key.stream(),
            arrived_at: Time::ZERO,
        })
    }

    /// The arrival time of a frame that would arrive at `at` without jitter.
    pub(crate) fn arrival(&mut self, at: Time) -> Time {
        if self.jitter == Jitter::None {
            return at;
        }
        let late_by = self.jitter.draw(&mut self.jitter_stream);
        self.arrived_at = self.arrived_at.max(at + late_by);
        self.arrived_at
    }

    /// Whether the hearing station hears the sender's next transmission.
    pub(crate) fn carries(&mut self) -> bool {
        let erased = self.erasure.draw(&mut self.stream);
        self.stats.transmissions += 1;
        self.stats.erased += u64::from(erased);
        !erased
    }
}
