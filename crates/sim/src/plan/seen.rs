//! A sample of a flow.

use core::time::Duration;

use corridor_base::Time;

use crate::agents::metered::{Area, Mean, MeteredSource, Recent, RecentDelays};

/// What a flow has done since the start, and its current gauges.
#[derive(Clone, Copy, Default)]
pub(crate) struct FlowSeen {
    /// Payload bytes delivered to the application.
    pub(crate) payload_bytes: u64,
    /// For TCP: retransmissions and timeouts.
    pub(crate) repeats: Option<(u64, u64)>,
    pub(crate) rtt: Mean,
    pub(crate) srtt: Option<Duration>,
    pub(crate) window: Area,
    /// Delays since the last sample.
    pub(crate) delays: RecentDelays,
}

impl FlowSeen {
    /// What the source of a TCP connection has done.
    pub(crate) fn of_tcp(source: &MeteredSource, now: Time, payload_bytes: u64) -> Self {
        let stats = source.inner().sender().stats();
        FlowSeen {
            payload_bytes,
            repeats: Some((stats.retransmissions, stats.timeouts)),
            rtt: source.rtt(),
            srtt: stats.srtt,
            window: source.area(now),
            delays: RecentDelays::default(),
        }
    }

    /// Adds the delays that a sink has recorded since the last sample.
    pub(crate) fn with_delays(self, recent: Option<&Recent>) -> Self {
        FlowSeen { delays: recent.map(Recent::take).unwrap_or_default(), ..self }
    }
}
