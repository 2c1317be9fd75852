//! The bounded table of TCP connections whose advertised windows are clamped.

mod ahead;
mod connection;
mod handshake;
mod sender;
#[cfg(test)]
mod tests;

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::{BinaryHeap, VecDeque};

use corridor_base::Time;
use corridor_packet::{End, PacketBuf, PacketRef, TcpView};

use crate::bounds::{CLAMPS_MAX, CLAMPS_PER_SET};
use crate::host::clamp::ahead::Pace;
use crate::host::clamp::connection::Clamp;
use crate::stats::Stats;

/// A clamped connection keeps its place in the table until it has been silent for this long.
const KEPT: Duration = Duration::from_secs(10);

/// Identifies a connection in the table: its set, and its number within all connections so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    set: usize,
    id: u64,
}

#[derive(Debug)]
struct Slot {
    id: u64,
    clamp: Clamp,
    /// Listed in `freed`.
    is_freed: bool,
    /// Listed in `resting`.
    is_resting: bool,
}

/// Clamps TCP's advertised windows.
#[derive(Debug)]
pub(crate) struct Clamps {
    sets: Vec<Vec<Slot>>,
    seed: u64,
    next_id: u64,
    pace: Pace,
    /// Connections whose senders may need a longer window; each is listed at most once.
    freed: VecDeque<Place>,
    /// Connections whose senders do not use their window, and when to remind each of them; each is
    /// listed at most once.
    resting: BinaryHeap<Reverse<(Time, Place)>>,
    /// Time of the last event.
    now: Time,
}

impl Clamps {
    /// Upper bound of the bytes for one connection: its slot, its share of a set, and its entries
    /// in `freed` and `resting`, whose capacity may be twice their length.
    pub(crate) const CLAMP_BYTES: usize = size_of::<Slot>()
        + size_of::<Vec<Slot>>() / CLAMPS_PER_SET
        + 2 * (size_of::<Place>() + size_of::<Reverse<(Time, Place)>>());

    /// Bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        let slots: usize = self.sets.iter().map(Vec::capacity).sum();
        slots * size_of::<Slot>()
            + self.freed.capacity() * size_of::<Place>()
            + self.resting.capacity() * size_of::<Reverse<(Time, Place)>>()
    }

    /// For up to `connections_max` connections, at most [`CLAMPS_MAX`].
    pub(crate) fn new(seed: u64, connections_max: usize) -> Self {
        let mut sets = Vec::new();
        let count = connections_max.min(CLAMPS_MAX) / CLAMPS_PER_SET;
        sets.resize_with(count.max(1), Vec::new);
        Clamps {
            sets,
            seed,
            next_id: 0,
            pace: Pace::default(),
            freed: VecDeque::new(),
            resting: BinaryHeap::new(),
            now: Time::ZERO,
        }
    }

    /// Sets the rate at which packets leave the queue.
    pub(crate) fn set_pace(&mut self, packets_per_s: f64) {
        self.pace.packets_per_s = packets_per_s;
    }

    pub(crate) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// When `handle_timeout` has a sender to remind.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.resting.peek().map(|&Reverse((due, _))| due)
    }

    /// Queues the senders whose reminder is due for a window update.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        while let Some(&Reverse((_, place))) =
            self.resting.peek().filter(|&&Reverse((due, _))| due <= now)
        {
            self.resting.pop();
            let Some(at) = self.position(place) else { continue };
            let slot = &mut self.sets[place.set][at];
            slot.is_resting = false;
            match slot.clamp.reminder_due(self.pace) {
                Some(due) if due <= now => self.free(place.set, at),
                Some(_) => self.rest(place.set, at),
                None => {}
            }
        }
    }

    /// Records that a packet of the host has entered the queue; `hash`: its flow's hash. Returns
    /// its connection's place if the packet counts as queued data.
    pub(crate) fn note_sent(
        &mut self,
        now: Time,
        hash: u64,
        packet: PacketRef<'_>,
    ) -> Option<Place> {
        self.now = now;
        let set = self.set(hash);
        let view = self.look(set, packet)?;
        let flow = (view.from, view.to);
        let at = match self.find(set, flow) {
            Some(at) if view.is_rst() => {
                self.remove(set, at);
                return None;
            }
            Some(at) => at,
            None if view.is_syn() => self.insert(set, Clamp::new(flow, now))?,
            None => return None,
        };
        let pace = self.pace;
        self.change(set, at, |clamp| clamp.note_sent(now, &view, pace))
            .then(|| Place { set, id: self.sets[set][at].id })
    }

    /// Records that a packet counted as queued has left or was dropped.
    pub(crate) fn note_left(&mut self, place: Place) {
        let Some(at) = self.position(place) else { return };
        self.change(place.set, at, Clamp::note_left);
        self.free(place.set, at);
    }

    /// Clamps the window in a packet that is about to be delivered to the host, if necessary.
    pub(crate) fn rewrite(&mut self, packet: &mut PacketBuf, stats: &mut Stats) {
        let set = self.set(packet.packet().flow_hash_back(self.seed));
        let Some(view) = self.look(set, packet.packet()) else { return };
        let flow = (view.to, view.from);
        let at = match self.find(set, flow) {
            Some(at) if view.is_rst() => {
                if self.sets[set][at].clamp.is_due(&view) {
                    self.remove(set, at);
                }
                return;
            }
            Some(at) => Some(at),
            None if view.is_syn() => self.insert(set, Clamp::new(flow, self.now)),
            None => None,
        };
        let (Some(at), pace, now) = (at, self.pace, self.now) else { return };
        if self.change(set, at, |clamp| clamp.rewrite(now, &view, packet, pace)) {
            stats.windows_clamped += 1;
        }
        self.free(set, at);
    }

    /// Writes an acknowledgment with a longer window if some sender needs one; returns whether it
    /// did.
    pub(crate) fn update(&mut self, out: &mut Vec<u8>, stats: &mut Stats) -> bool {
        while let Some(place) = self.freed.pop_front() {
            let Some(at) = self.position(place) else { continue };
            let slot = &mut self.sets[place.set][at];
            slot.is_freed = false;
            let tells = slot.clamp.update(self.now, self.pace, out);
            self.rest(place.set, at);
            if tells {
                stats.window_updates_sent += 1;
                return true;
            }
        }
        false
    }

    /// Queueing time that this connection's clamped window itself allows for.
    pub(crate) fn grace(&self, place: Place) -> Duration {
        let slot = self.position(place).map(|at| &self.sets[place.set][at]);
        let clamp = slot.map(|slot| &slot.clamp).filter(|clamp| clamp.is_engaged());
        clamp.map_or(Duration::ZERO, |clamp| clamp.grace(self.pace))
    }

    // ---- the table ----------------------------------------------------------------------------

    /// Parses the TCP header if the packet may belong to a known connection or open one.
    fn look(&self, set: usize, packet: PacketRef<'_>) -> Option<TcpView> {
        let is_new = self.sets[set].is_empty();
        if is_new && !packet.view().is_syn() { None } else { packet.tcp() }
    }

    fn find(&self, set: usize, flow: (End, End)) -> Option<usize> {
        self.sets[set].iter().position(|slot| slot.clamp.is_of(flow))
    }

    fn position(&self, place: Place) -> Option<usize> {
        self.sets[place.set].iter().position(|slot| slot.id == place.id)
    }

    /// Applies `work` to a connection and keeps the number of busy connections up to date.
    fn change<T>(&mut self, set: usize, at: usize, work: impl FnOnce(&mut Clamp) -> T) -> T {
        let clamp = &mut self.sets[set][at].clamp;
        let before = clamp.is_busy();
        let result = work(clamp);
        self.pace.flows += usize::from(clamp.is_busy());
        self.pace.flows -= usize::from(before);
        result
    }

    /// Lists a clamped connection for a window update.
    fn free(&mut self, set: usize, at: usize) {
        let slot = &mut self.sets[set][at];
        if slot.clamp.is_engaged() && !slot.is_freed {
            slot.is_freed = true;
            self.freed.push_back(Place { set, id: slot.id });
        }
    }

    /// Lists a connection for a reminder, if one will be due.
    fn rest(&mut self, set: usize, at: usize) {
        let slot = &mut self.sets[set][at];
        if let Some(due) = slot.clamp.reminder_due(self.pace).filter(|_| !slot.is_resting) {
            slot.is_resting = true;
            self.resting.push(Reverse((due, Place { set, id: slot.id })));
        }
    }

    /// Index of a flow's set.
    fn set(&self, hash: u64) -> usize {
        (hash % self.sets.len() as u64) as usize
    }

    /// Inserts a connection into its set. A full set drops the connection that has been silent the
    /// longest, but none that is clamped and in use; without one to drop, returns `None`.
    fn insert(&mut self, set: usize, clamp: Clamp) -> Option<usize> {
        if self.sets[set].len() == CLAMPS_PER_SET {
            let now = self.now;
            let idle = |slot: &Slot| !slot.clamp.is_engaged() || now - slot.clamp.sent_at() > KEPT;
            let slots = self.sets[set].iter().enumerate().filter(|(_, slot)| idle(slot));
            let (at, _) = slots.min_by_key(|(_, slot)| slot.clamp.sent_at())?;
            self.remove(set, at);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.sets[set].push(Slot { id, clamp, is_freed: false, is_resting: false });
        Some(self.sets[set].len() - 1)
    }

    fn remove(&mut self, set: usize, at: usize) {
        let slot = self.sets[set].swap_remove(at);
        self.pace.flows -= usize::from(slot.clamp.is_busy());
    }
}
