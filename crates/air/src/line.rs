//! A path between two stations without other traffic: a [`Pipe`] each way, driven like a
//! [`Medium`](crate::Medium).
//!
//! There is no back-pressure: a full queue or a policer drops packets, as behind a modem or a
//! switch. For comparison, station 0 alone may be pushed back: it then sends like a sender that
//! knows the line's rates and its policer. Lengths are those of IP packets; a driver whose frames
//! lack lower headers configures how many bytes these are.

use std::collections::VecDeque;

use corridor_base::{StreamKey, Time};

use crate::config::Station;
use crate::error::{PipeError, QueueFull};
use crate::medium::{Address, Carried, Delivery, Frame, MAX_DELIVERIES, Transmission};
use crate::pipe::{Pipe, PipeConfig, PipeStats};
use crate::stats::StationStats;

/// A line between stations 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct LineConfig {
    /// From station 0 to 1, and from 1 to 0.
    pub pipes: [PipeConfig; 2],
    /// Bytes of headers that each frame has on the line beyond its own, at most 1,024.
    pub header_bytes: u32,
    /// Whether station 0 only has room when its frame would neither wait nor be policed.
    pub pushes_back: bool,
    /// Seed of the whole experiment.
    pub seed: u64,
    /// Which replication of the experiment.
    pub replication: u64,
    /// Which of several draws of losses and jitter, with the same rates; see [`Pipe::drawn`].
    pub draw: u16,
}

/// Most header bytes that a line adds to a frame.
pub const MAX_HEADER_BYTES: u32 = 1_024;

impl LineConfig {
    /// The key of the random stream of the direction from station `from`: as on a medium, it names
    /// both ends.
    pub fn key(&self, from: Station) -> StreamKey {
        StreamKey {
            seed: self.seed,
            replication: self.replication,
            entity: (from as u64) << 32 | (1 - from.min(1)) as u64,
            purpose: "erasure",
        }
    }

    /// Bits that can be sent from one station to the other between `from` and `until` (exclusive);
    /// see [`PipeConfig::capacity_bits`].
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn capacity_bits(
        &self,
        station: Station,
        from: Time,
        until: Time,
    ) -> Result<f64, PipeError> {
        self.pipes[station.min(1)].capacity_bits(self.key(station), from, until)
    }
}

/// Two stations joined by a pipe each way.
#[derive(Debug)]
pub struct Line<F = Frame> {
    pipes: [Pipe<F>; 2],
    header_bytes: u32,
    /// The latest time that the driver gave.
    now: Time,
    received: [StationStats; 2],
    kept: Option<VecDeque<Transmission<F>>>,
    /// Whether station 0 is pushed back at all, and whether it has been since its last frame.
    pushes_back: bool,
    is_pushed_back: bool,
}

impl<F: Carried> Line<F> {
    /// An idle line at [`Time::ZERO`].
    ///
    /// # Errors
    /// See [`PipeConfig::check`].
    pub fn new(config: &LineConfig) -> Result<Self, PipeError> {
        let pipe = |from: Station| Pipe::drawn(&config.pipes[from], config.key(from), config.draw);
        Ok(Line {
            pipes: [pipe(0)?, pipe(1)?],
            header_bytes: config.header_bytes.min(MAX_HEADER_BYTES),
            now: Time::ZERO,
            received: Default::default(),
            kept: None,
            pushes_back: config.pushes_back,
            is_pushed_back: false,
        })
    }

    /// Sends a frame of station `from` at `now`. The station does not learn of drops.
    ///
    /// # Errors
    /// [`QueueFull`] if there is no such station.
    pub fn offer<I: Into<F>>(
        &mut self,
        now: Time,
        from: Station,
        to: Address,
        frame: I,
    ) -> Result<(), QueueFull<I>> {
        self.now = self.now.max(now);
        let Some(pipe) = self.pipes.get_mut(from) else { return Err(QueueFull { frame }) };
        let frame: F = frame.into();
        self.is_pushed_back |= self.pushes_back && from == 0;
        let len_bytes = frame.len_bytes() as u32 + self.header_bytes;
        let kept = self.kept.is_some().then(|| frame.clone());
        let Ok(lost) = pipe.offer(self.now, len_bytes, frame) else { return Ok(()) };
        if let (Some(transmissions), Some(frame)) = (&mut self.kept, kept)
            && transmissions.len() < MAX_DELIVERIES
        {
            transmissions.push_back(Transmission {
                began_at: self.now,
                ended_at: pipe.idle_at(),
                from,
                to,
                retransmissions: 0,
                hearers: vec![(1 - from, lost.is_none())],
                frame,
            });
        }
        Ok(())
    }

    /// Whether a station can offer a frame: always, unless there is no such station or it is being
    /// pushed back.
    pub fn has_room(&self, station: Station) -> bool {
        station < self.pipes.len() && !(station == 0 && self.is_pushed_back)
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next: when a frame arrives, or station
    /// 0 has room again.
    pub fn poll_timeout(&self) -> Option<Time> {
        let room = self.is_pushed_back.then(|| self.pipes[0].room_at());
        self.arrives_at().into_iter().chain(room).min()
    }

    fn arrives_at(&self) -> Option<Time> {
        self.pipes.iter().filter_map(Pipe::poll_timeout).min()
    }

    /// The station that was pushed back and has room again; reported once each time.
    pub fn poll_room(&mut self) -> Option<Station> {
        let has_room = self.is_pushed_back && self.pipes[0].room_at() <= self.now;
        self.is_pushed_back &= !has_room;
        has_room.then_some(0)
    }

    /// Advances the time.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// The next frame that has arrived by the latest time given to the line.
    pub fn poll_delivery(&mut self) -> Option<Delivery<F>> {
        let at = self.arrives_at().filter(|&at| at <= self.now)?;
        let from = usize::from(self.pipes[0].poll_timeout() != Some(at));
        let frame = self.pipes[from].poll_delivery(at)?;
        let to = 1 - from;
        self.received[to].hear(frame.len_bytes() + self.header_bytes as usize, true);
        Some(Delivery { at, from, to, addressed: true, frame })
    }

    /// From now on, keeps every transmission for [`poll_transmission`](Self::poll_transmission).
    pub fn keep_transmissions(&mut self) {
        self.kept.get_or_insert_default();
    }

    /// The next frame that a queue has accepted, in order of arrival; frames dropped by a full
    /// queue or a policer are not reported.
    pub fn poll_transmission(&mut self) -> Option<Transmission<F>> {
        self.kept.as_mut()?.pop_front()
    }

    /// Counters of one station; all zero if there is no such station. A frame is counted when it is
    /// offered, and so is its fate.
    pub fn stats(&self, station: Station) -> StationStats {
        let Some(pipe) = self.pipes.get(station) else { return StationStats::default() };
        let StationStats { received_frames, received_bytes, .. } = self.received[station];
        StationStats { received_frames, received_bytes, ..StationStats::of_pipe(pipe.stats()) }
    }

    /// Counters of the pipe from a station; `None` if there is no such station.
    pub fn pipe_stats(&self, from: Station) -> Option<&PipeStats> {
        self.pipes.get(from).map(Pipe::stats)
    }

    /// The pipe from a station, for its statistics.
    pub fn pipe(&self, from: Station) -> Option<&Pipe<F>> {
        self.pipes.get(from)
    }

    /// Restarts the rates of both directions; see [`Pipe::restart_rates`].
    pub fn restart_rates(&mut self, at: Time) {
        self.pipes.iter_mut().for_each(|pipe| pipe.restart_rates(at));
    }

    /// From now on, records how long frames wait; see [`Pipe::keep_waits`].
    pub fn keep_waits(&mut self) {
        self.pipes.iter_mut().for_each(Pipe::keep_waits);
    }

    /// Number of stations.
    pub fn stations(&self) -> usize {
        self.pipes.len()
    }
}
