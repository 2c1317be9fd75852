//! Fair queueing with CoDel (RFC 8290): flows take turns by bytes, those that send little go
//! first, and each queue that stands is told so early, by a mark or a drop.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use super::clamp::{Clamp, Pace};
use super::codel::{Codel, CodelParams, Verdict};
use super::flow;
use crate::bounds::{INGRESS_FLOWS, INGRESS_HELD_MAX, INGRESS_QUANTUM};
use crate::stats::Stats;
use crate::symbol;
use crate::tcp::TcpView;

/// Stay of a flow whose window is clamped that says nothing of congestion: its sender is told of
/// it otherwise.
const CLAMPED_STAY: Duration = Duration::from_millis(50);

/// Queues by flow, served in turns.
#[derive(Debug)]
pub(crate) struct FairQueue {
    queues: Vec<FlowQueue>,
    /// Queues that had nothing when a packet came, and have not used up their first turn.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    len: usize,
    packets_max: usize,
    params: CodelParams,
    seed: u64,
    /// The queue whose head goes next.
    selected: Option<usize>,
    spare: Vec<Vec<u8>>,
    /// How long acknowledgements of TCP wait for each other.
    hold: Duration,
    /// How many wait, and since when there is one.
    acknowledgements: usize,
    acknowledged_since: Time,
    clamps: Clamps,
}

/// Clamped windows of TCP, one connection to a queue at most.
#[derive(Debug, Default)]
struct Clamps {
    /// Whether windows are clamped at all.
    on: bool,
    pace: Pace,
    /// Queues whose sender may have to be told of room.
    freed: VecDeque<usize>,
    /// When anything happened last.
    now: Time,
}

#[derive(Debug, Default)]
struct FlowQueue {
    packets: VecDeque<Queued>,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    listed: bool,
    codel: Codel,
    clamp: Option<Box<Clamp>>,
    /// It is among those whose sender may have to be told of room.
    freed: bool,
}

impl FlowQueue {
    fn is_clamped(&self) -> bool {
        self.clamp.as_ref().is_some_and(|clamp| clamp.is_engaged())
    }
}

#[derive(Debug)]
struct Queued {
    since: Time,
    bytes: Vec<u8>,
    acknowledges: bool,
}

impl FairQueue {
    pub(crate) fn new(packets_max: usize, params: CodelParams, seed: u64) -> Self {
        let mut queues = Vec::new();
        queues.resize_with(INGRESS_FLOWS, FlowQueue::default);
        FairQueue {
            queues,
            new: VecDeque::new(),
            old: VecDeque::new(),
            len: 0,
            packets_max,
            params,
            seed,
            selected: None,
            spare: Vec::new(),
            hold: Duration::ZERO,
            acknowledgements: 0,
            acknowledged_since: Time::ZERO,
            clamps: Clamps::default(),
        }
    }

    /// Lets windows of TCP be clamped, or not.
    pub(crate) fn set_clamp(&mut self, on: bool) {
        self.clamps.on = on;
    }

    /// So much leaves the queue.
    pub(crate) fn set_pace(&mut self, pace: Pace) {
        self.clamps.pace = pace;
    }

    pub(crate) fn set_params(&mut self, params: CodelParams) {
        self.params = params;
    }

    /// When acknowledgements of TCP have waited for each other for as long as they are to, if
    /// nothing else waits, and not too many.
    pub(crate) fn held_until(&mut self, hold: Duration) -> Option<Time> {
        self.hold = hold;
        let only = self.acknowledgements == self.len && self.len < INGRESS_HELD_MAX;
        (only && self.len > 0 && !hold.is_zero()).then(|| self.acknowledged_since + hold)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes a packet. When all queues together are full, the longest loses its oldest; false if
    /// that is the packet's own.
    pub(crate) fn push(&mut self, now: Time, packet: &[u8], stats: &mut Stats) -> bool {
        let at = (flow::hash(packet, self.seed) % INGRESS_FLOWS as u64) as usize;
        let full = self.len == self.packets_max;
        if full && !self.drop_from_longest(at, stats) {
            return false;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(packet);
        let acknowledges = symbol::is_acknowledgement(packet);
        if acknowledges && self.acknowledgements == 0 {
            self.acknowledged_since = now;
        }
        self.acknowledgements += usize::from(acknowledges);
        let queue = &mut self.queues[at];
        queue.packets.push_back(Queued { since: now, bytes, acknowledges });
        self.len += 1;
        if !queue.listed {
            queue.listed = true;
            queue.deficit = INGRESS_QUANTUM;
            self.new.push_back(at);
        }
        if self.clamps.on {
            self.clamps.now = now;
            self.note_clamped(now, at, packet);
        }
        true
    }

    /// A packet has come to queue `at`.
    fn note_clamped(&mut self, now: Time, at: usize, packet: &[u8]) {
        let Some(view) = TcpView::of(packet) else { return };
        let flow = (view.from, view.to);
        let (pace, flows) = (self.clamps.pace, self.busy());
        let queue = &mut self.queues[at];
        let known = queue.clamp.as_deref_mut().filter(|clamp| clamp.is_of(flow));
        match known {
            Some(clamp) if !view.is_first() => {
                let ahead = clamp.ahead(pace, flows);
                clamp.note_sent(now, &view, queue.packets.len(), ahead);
            }
            _ if view.is_syn() => {
                let mut clamp = Clamp::new(flow);
                clamp.note_sent(now, &view, 0, 0);
                queue.clamp = Some(Box::new(clamp));
            }
            _ => {}
        }
    }

    /// A packet is about to be delivered: if it acknowledges what comes through here, its window
    /// is clamped.
    pub(crate) fn clamp_window(&mut self, packet: &mut [u8], stats: &mut Stats) {
        if !self.clamps.on {
            return;
        }
        let Some(view) = TcpView::of(packet) else { return };
        let at = (flow::hash_reversed(packet, self.seed) % INGRESS_FLOWS as u64) as usize;
        let flow = (view.to, view.from);
        let (pace, flows) = (self.clamps.pace, self.busy());
        let queue = &mut self.queues[at];
        if view.is_first() {
            queue.clamp = Some(Box::new(Clamp::new(flow)));
        }
        let Some(clamp) = queue.clamp.as_deref_mut().filter(|clamp| clamp.is_of(flow)) else {
            return;
        };
        let ahead = clamp.ahead(pace, flows);
        if clamp.rewrite(&view, packet, queue.packets.len(), ahead) {
            stats.windows_clamped += 1;
        }
    }

    /// Writes an acknowledgement with a longer window, if a sender should hear of one.
    pub(crate) fn window_update(&mut self, out: &mut Vec<u8>, stats: &mut Stats) -> bool {
        while let Some(at) = self.clamps.freed.pop_front() {
            let (pace, flows) = (self.clamps.pace, self.busy());
            let queue = &mut self.queues[at];
            queue.freed = false;
            let Some(clamp) = queue.clamp.as_deref_mut() else { continue };
            let ahead = clamp.ahead(pace, flows);
            if clamp.update(self.clamps.now, queue.packets.len(), ahead, out) {
                stats.window_updates_sent += 1;
                return true;
            }
        }
        false
    }

    /// Flows with clamped windows that have something to send.
    fn busy(&self) -> usize {
        let queues = self.new.iter().chain(&self.old).map(|&at| &self.queues[at]);
        queues.filter(|queue| queue.is_clamped() && !queue.packets.is_empty()).count()
    }

    /// Makes room at the cost of the longest queue; false if that is `at`, the newcomer's own.
    fn drop_from_longest(&mut self, at: usize, stats: &mut Stats) -> bool {
        let by_len = |&index: &usize| self.queues[index].packets.len();
        let Some(longest) = (0..self.queues.len()).max_by_key(by_len) else { return false };
        if self.queues[longest].packets.len() <= self.queues[at].packets.len() + 1 {
            return false;
        }
        stats.packets_dropped_ingress += 1;
        if self.selected == Some(longest) {
            self.selected = None;
        }
        self.drop_head(longest);
        true
    }

    fn drop_head(&mut self, at: usize) {
        if let Some(queued) = self.queues[at].packets.pop_front() {
            self.acknowledgements -= usize::from(queued.acknowledges);
            self.spare.push(queued.bytes);
            self.len -= 1;
        }
        let queue = &mut self.queues[at];
        if queue.is_clamped() && !queue.freed {
            queue.freed = true;
            self.clamps.freed.push_back(at);
        }
    }

    /// The packet that goes next, and stays next until it is popped.
    pub(crate) fn front(&mut self, now: Time, stats: &mut Stats) -> Option<&[u8]> {
        self.clamps.now = now;
        if self.selected.is_none() {
            self.selected = self.select(now, stats);
        }
        let head = self.queues[self.selected?].packets.front()?;
        Some(&head.bytes)
    }

    /// The packet at the front goes.
    pub(crate) fn pop(&mut self) {
        let Some(at) = self.selected.take() else { return };
        let queue = &mut self.queues[at];
        queue.deficit -= queue.packets.front().map_or(0, |head| head.bytes.len() as i64);
        self.drop_head(at);
    }

    fn select(&mut self, now: Time, stats: &mut Stats) -> Option<usize> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = *list.front()?;
            if self.queues[at].deficit <= 0 {
                self.queues[at].deficit += INGRESS_QUANTUM;
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            self.signal_congestion(at, now, stats);
            if !self.queues[at].packets.is_empty() {
                return Some(at);
            }
            let list = if is_new { &mut self.new } else { &mut self.old };
            list.pop_front();
            if is_new {
                // Or a flow of single packets would always be new.
                self.old.push_back(at);
            } else {
                self.queues[at].listed = false;
            }
        }
    }

    /// Lets CoDel mark or drop at the head of a queue.
    fn signal_congestion(&mut self, at: usize, now: Time, stats: &mut Stats) {
        let mut again = false;
        loop {
            let params = self.params;
            let queue = &mut self.queues[at];
            let (more, clamped) = (queue.packets.len() > 1, queue.is_clamped());
            let Some(head) = queue.packets.front_mut() else { return };
            // What waits by intent says nothing of congestion.
            let held = match (head.acknowledges, clamped) {
                (true, _) => self.hold,
                (false, true) => CLAMPED_STAY,
                (false, false) => Duration::ZERO,
            };
            let stay = (now - head.since).saturating_sub(held);
            if queue.codel.judge(now, stay, more, again, params) == Verdict::Pass {
                return;
            }
            if flow::mark_congestion(&mut head.bytes) {
                queue.codel.note_marked(params);
                stats.packets_marked += 1;
                return;
            }
            stats.packets_dropped_codel += 1;
            self.drop_head(at);
            again = true;
        }
    }
}
