//! Counters for each station and each link.

use core::time::Duration;

use crate::pipe::PipeStats;

/// Counters of one station. A transmission is counted when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// Frames offered by the station, accepted or not.
    pub offered: u64,
    /// Of these, frames refused because there was no room.
    pub refused: u64,
    /// Of these, frames dropped because the queue was full, without the station learning it.
    pub dropped: u64,
    /// Transmissions of the station, retransmissions included.
    pub sent_frames: u64,
    /// Bytes in these transmissions, without overhead.
    pub sent_bytes: u64,
    /// Of the transmissions, those that repeated a frame which the addressed station had not heard.
    pub retransmissions: u64,
    /// Time that the station's transmissions occupied its channel, overhead included.
    pub airtime: Duration,
    /// Frames of the station that the addressed station heard. Frames to all are not counted.
    pub delivered: u64,
    /// Frames of the station that were given up: the addressed station did not hear the last
    /// transmission allowed, or has no link from here. Frames to all are not counted.
    pub undelivered: u64,
    /// Frames heard by the station that were addressed to it or to all.
    pub received_frames: u64,
    /// Bytes in these frames.
    pub received_bytes: u64,
    /// Transmissions heard by the station that were addressed to another one.
    pub overheard_frames: u64,
}

impl StationStats {
    /// Share of the frames offered that were dropped because the queue was full, 0 to 1; `None`
    /// before the first.
    pub fn drop_ratio(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.dropped as f64 / self.offered as f64)
    }

    /// Counters of a station that sends into a pipe: a packet is counted when it is offered, and so
    /// is its fate.
    pub fn of_pipe(stats: &PipeStats) -> Self {
        StationStats {
            offered: stats.offered,
            dropped: stats.refused + stats.policed,
            sent_frames: stats.sent_packets(),
            sent_bytes: stats.sent_bytes,
            airtime: Duration::from_nanos(stats.busy_ns),
            delivered: stats.sent_packets() - stats.erased,
            undelivered: stats.erased,
            ..StationStats::default()
        }
    }

    pub(crate) fn send(&mut self, len_bytes: usize, airtime: Duration, repeated: bool) {
        self.sent_frames += 1;
        self.sent_bytes += len_bytes as u64;
        self.retransmissions += u64::from(repeated);
        self.airtime = self.airtime.saturating_add(airtime);
    }

    pub(crate) fn release(&mut self, heard: bool) {
        self.delivered += u64::from(heard);
        self.undelivered += u64::from(!heard);
    }

    pub(crate) fn hear(&mut self, len_bytes: usize, addressed: bool) {
        if addressed {
            self.received_frames += 1;
            self.received_bytes += len_bytes as u64;
        } else {
            self.overheard_frames += 1;
        }
    }
}

/// Counters of one directed link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Transmissions of the link's sender to any destination: each is one draw of the
    /// erasure process.
    pub transmissions: u64,
    /// Of these, transmissions that the link did not carry.
    pub erased: u64,
    /// Transmissions addressed to the hearing station of the link, retransmissions included;
    /// frames to all are not counted.
    pub addressed: u64,
    /// Of the addressed transmissions, retransmissions.
    pub retransmissions: u64,
}

impl LinkStats {
    /// Transmissions that the link carried.
    pub fn heard(&self) -> u64 {
        self.transmissions - self.erased
    }

    /// Measured erasure ratio, 0 to 1; `None` before the first transmission.
    pub fn erasure_ratio(&self) -> Option<f64> {
        (self.transmissions > 0).then(|| self.erased as f64 / self.transmissions as f64)
    }
}
