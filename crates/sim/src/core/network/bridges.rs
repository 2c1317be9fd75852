//! Bridges: hosts that forward stations' frames from one place on a radio to another, as kernels
//! between two endpoints forward IP.

use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

use corridor_air::Address;

use super::air::{Frame, RadioIndex};
use super::{Network, NetworkError};

/// The places between which a bridge forwards frames, each a radio and a place on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeEnds {
    /// Where frames come in.
    pub from: (RadioIndex, usize),
    /// Where they go out.
    pub to: (RadioIndex, usize),
}

impl fmt::Display for BridgeEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BridgeEnds { from, to } = self;
        write!(f, "place {} of radio {} to place {} of radio {}", from.1, from.0, to.1, to.0)
    }
}

/// One direction of a forwarding host.
pub(super) struct Bridge {
    ends: BridgeEnds,
    /// The place there that the frames are sent to.
    next: usize,
    /// Frames waiting for the medium.
    queue: VecDeque<Arc<[u8]>>,
    /// Longest queue, frames.
    queue_frames: usize,
    /// Frames that came, and those of them dropped because the queue was full.
    offered: u64,
    dropped: u64,
}

impl Network {
    /// Forwards what stations send to `from`, a place on a radio without a station: it leaves at
    /// `to`, for the place `next` on the same radio. Up to `queue_frames` wait there for the
    /// medium; further frames are dropped and counted as refused.
    ///
    /// # Errors
    /// [`NetworkError::StationPlace`]: there is no such place, or it has a station.
    /// [`NetworkError::DuplicateBridge`]: another bridge takes frames from there, or to there.
    pub fn add_bridge(
        &mut self,
        from: (RadioIndex, usize),
        to: (RadioIndex, usize),
        next: usize,
        queue_frames: usize,
    ) -> Result<(), NetworkError> {
        for (radio, place) in [from, to, (to.0, next)] {
            let places = self.radios.get(radio).map(|radio| &radio.places);
            let found = places.and_then(|places| places.get(place));
            let is_end = (radio, place) == (to.0, next);
            if !found.is_some_and(|(_, station)| is_end || station.is_none()) {
                return Err(NetworkError::StationPlace { radio, place });
            }
        }
        let given = BridgeEnds { from, to };
        let mut held = self.bridges.iter().map(|bridge| bridge.ends);
        if let Some(held) = held.find(|held| held.from == from || held.to == to) {
            return Err(NetworkError::DuplicateBridge { held, given });
        }
        let (queue, offered, dropped) = (VecDeque::new(), 0, 0);
        self.bridges.push(Bridge { ends: given, next, queue, queue_frames, offered, dropped });
        Ok(())
    }

    /// The highest share of frames that any bridge's queue dropped; `None` if no frame came to any.
    pub fn bridge_drop_ratio(&self) -> Option<f64> {
        let used = self.bridges.iter().filter(|bridge| bridge.offered > 0);
        used.map(|bridge| bridge.dropped as f64 / bridge.offered as f64).reduce(f64::max)
    }

    /// Frames waiting to be forwarded from a place, frames that came for it, and frames dropped.
    pub(super) fn bridge_to(&self, radio: RadioIndex, place: usize) -> Option<(usize, u64, u64)> {
        let bridge = self.bridges.iter().find(|bridge| bridge.ends.to == (radio, place))?;
        Some((bridge.queue.len(), bridge.offered, bridge.dropped))
    }

    /// Handles a frame for a place without a station.
    pub(super) fn bridge(&mut self, at: (RadioIndex, usize), frame: Arc<[u8]>) {
        let Some(bridge) = self.bridges.iter_mut().find(|bridge| bridge.ends.from == at) else {
            return;
        };
        let (radio, place) = bridge.ends.to;
        bridge.offered += 1;
        if bridge.queue.len() >= bridge.queue_frames {
            bridge.dropped += 1;
            self.stats.refused += 1;
        } else {
            bridge.queue.push_back(frame);
        }
        self.drain_bridge(radio, place);
        self.unsettled.radios.insert(radio);
    }

    /// Gives the medium as many frames as it has room for.
    pub(super) fn drain_bridge(&mut self, radio: RadioIndex, place: usize) {
        let Some(bridge) = self.bridges.iter_mut().find(|bridge| bridge.ends.to == (radio, place))
        else {
            return;
        };
        let air = &mut self.radios[radio].air;
        while air.has_room(place)
            && let Some(frame) = bridge.queue.pop_front()
        {
            let sealed = Frame::Sealed(Arc::clone(&frame));
            if !air.offer(self.now, place, Address::Station(bridge.next), sealed) {
                bridge.queue.push_front(frame);
                return;
            }
        }
    }
}
