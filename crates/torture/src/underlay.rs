//! The underlay of a station, for both drivers: its interface, from which frames leave one by one,
//! the delivery of frames sent to an address, and the station's wake-ups.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;
use corridor_proto::StationId;
use corridor_proto::bounds::FRAME_LEN_MIN;
use corridor_testbed::Schedule;

use crate::addresses::{Address, Internet, THIEF};
use crate::network::Network;
use crate::scenario::Scenario;

/// The interface of a station.
pub(crate) struct Underlay {
    /// Longest frame that it accepts now, and the longest that it can be set to.
    frame_len: usize,
    frame_len_max: usize,
    /// When the frames in it will have left.
    departures: VecDeque<Time>,
    stalled_until: Time,
}

/// Whether there is room for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Some,
    None,
    /// No room before this time, of which the station is not told.
    Stalls(Time),
}

impl Underlay {
    pub(crate) fn new(frame_len_max: usize) -> Self {
        Underlay {
            frame_len: frame_len_max,
            frame_len_max,
            departures: VecDeque::new(),
            stalled_until: Time::ZERO,
        }
    }

    pub(crate) fn frame_len(&self) -> usize {
        self.frame_len
    }

    /// Whether it accepts only shorter frames than it could.
    pub(crate) fn is_limited(&self) -> bool {
        self.frame_len < self.frame_len_max
    }

    /// Changes the longest frame that it accepts; returns the new length.
    pub(crate) fn limit(&mut self, len: usize) -> usize {
        self.frame_len = len.clamp(FRAME_LEN_MIN, self.frame_len_max);
        self.frame_len
    }

    /// Whether there is room for a frame; `is_own`: which stations of the scenario's stalls this
    /// one is.
    pub(crate) fn room(
        &mut self,
        now: Time,
        scenario: &Scenario,
        is_own: impl Fn(u8) -> bool,
    ) -> Room {
        let ms = now.as_nanos() / 1_000_000;
        let stalls = scenario.stalls.iter().filter(|stall| {
            is_own(stall.station) && (u64::from(stall.begin_ms)..stall.end_ms.into()).contains(&ms)
        });
        if let Some(end_ms) = stalls.map(|stall| stall.end_ms).max() {
            let until = Time::from_millis(end_ms.into());
            if self.stalled_until >= until {
                return Room::None;
            }
            self.stalled_until = until;
            return Room::Stalls(until);
        }
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
        let has_room = self.departures.len() < usize::from(scenario.network.queue_frames);
        if has_room { Room::Some } else { Room::None }
    }

    /// A frame of `len` bytes takes its time. Returns when it has left.
    pub(crate) fn depart(&mut self, now: Time, len: usize, rate_bps: u64) -> Time {
        let airtime = 8_000_000_000 * len as u64 / rate_bps;
        let begin = self.departures.back().map_or(now, |&at| at.max(now));
        let left_at = begin + Duration::from_nanos(airtime.max(1));
        self.departures.push_back(left_at);
        left_at
    }
}

/// A frame in flight between two addresses.
pub(crate) struct Posted {
    pub(crate) hearer: usize,
    pub(crate) from: Address,
    pub(crate) to: Address,
    /// Whether the attacker sends it too, and faster.
    pub(crate) is_copied: bool,
}

impl Network<'_> {
    /// Sends a frame for a peer to an address, if a station is there.
    pub(crate) fn post(&mut self, (from, peer): (usize, StationId), to: Address) -> Option<Posted> {
        let is_calm = self.is_calm();
        let internet = self.internet.as_mut()?;
        let source = internet.address(from);
        let relays = to == THIEF && internet.relays();
        let passed_on = internet.peer(from, peer).filter(|_| relays);
        let hearer = internet.owner(to).or(passed_on)?;
        let is_copied = !is_calm && internet.is_copied();
        Some(Posted { hearer, from: source, to: internet.address(hearer), is_copied })
    }

    /// Wakes a station when its own timer or its address book's is due; overdue work waits for
    /// room. `ahead`: how far its clock is ahead.
    pub(crate) fn wake<T>(
        &mut self,
        schedule: &mut Schedule<T>,
        station: usize,
        (now, ahead): (Time, Duration),
        due: Option<Time>,
    ) {
        let local = now + ahead;
        let asks = self.internet.as_mut().and_then(|it: &mut Internet<'_>| it.book(station).due());
        let next = [due, asks].into_iter().flatten().filter(|&due| due > local).min();
        schedule.wake(station, next.map(|due| now + (due - local)));
    }
}
