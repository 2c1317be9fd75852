//! A test bed: the clock, the stations, and a driver for them.

use core::ops::{Index, IndexMut};
use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{
    AnyStation, Destination, Event, FrameOutcome, PacketOutcome, Station, StationId,
};

use crate::schedule::{Next, Schedule};

/// No station sends more frames than this at once, however much has waited.
const FRAMES_AT_ONCE_MAX: usize = 10_000;

/// A frame in flight from one station to another.
#[derive(Clone, Debug)]
pub struct Flying {
    /// The sender.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// Its bytes.
    pub frame: Vec<u8>,
}

/// The frames in flight.
pub type Ways = Schedule<Flying>;

impl Ways {
    /// Schedules the arrival of a frame.
    pub fn put(&mut self, at: Time, from: usize, to: usize, frame: Vec<u8>) {
        self.happen(at, Flying { from, to, frame });
    }
}

/// A frame that a station sends.
pub struct Sent<'a> {
    /// Now.
    pub at: Time,
    /// The sender.
    pub from: usize,
    /// The same, as a station.
    pub station: &'a AnyStation,
    /// The destination.
    pub to: Destination,
    /// Its bytes.
    pub frame: &'a [u8],
    /// The numbers of all stations.
    pub ids: &'a [StationId],
}

impl Sent<'_> {
    /// All stations but the sender.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let from = self.from;
        (0..self.ids.len()).filter(move |&at| at != from)
    }

    /// Whether the frame is addressed to this station.
    pub fn is_for(&self, at: usize) -> bool {
        match self.to {
            Destination::All => true,
            Destination::Station(id) | Destination::Search(id) => self.ids[at] == id,
        }
    }
}

/// What a station has output at once.
pub struct Taken<'a> {
    /// Now.
    pub now: Time,
    /// Which station.
    pub at: usize,
    /// Packets for its host.
    pub packets: &'a [Vec<u8>],
    /// Events for its operator.
    pub events: &'a [(usize, Event)],
}

/// What lies between stations, and observes them.
pub trait World {
    /// A station sends a frame: schedules its arrival at all that hear it.
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways);

    /// A frame has arrived at a station.
    fn hear(&mut self, now: Time, flying: &Flying, station: &mut AnyStation) -> FrameOutcome {
        station.handle_frame(now, &flying.frame)
    }

    /// A station has output something.
    fn take(&mut self, _taken: &Taken<'_>) {}

    /// The time from which a station's interface accepts a frame.
    fn free_at(&self, _at: usize) -> Time {
        Time::ZERO
    }

    /// More frames than a station may send while no time passes.
    fn at_once_max(&self) -> usize {
        FRAMES_AT_ONCE_MAX
    }

    /// Called at the end of a tick.
    fn pass(&mut self, _now: Time, _ways: &mut Ways) {}
}

/// Stations, numbered from 0, and their world.
pub struct Bed<W> {
    /// The time, the same for all of them.
    pub now: Time,
    /// What lies between them.
    pub world: W,
    /// Packets that each station has delivered to its host.
    pub delivered: Vec<Vec<Vec<u8>>>,
    /// Events that each station has reported to its operator.
    pub events: Vec<(usize, Event)>,
    /// The order in which stations have their turns in a tick.
    pub turns: Vec<usize>,
    ways: Ways,
    seats: Vec<Option<AnyStation>>,
    ids: Vec<StationId>,
}

impl<W> Index<usize> for Bed<W> {
    type Output = AnyStation;

    fn index(&self, at: usize) -> &AnyStation {
        self.seats[at].as_ref().expect("a station that runs")
    }
}

impl<W> IndexMut<usize> for Bed<W> {
    fn index_mut(&mut self, at: usize) -> &mut AnyStation {
        self.seats[at].as_mut().expect("a station that runs")
    }
}

impl<W: World> Bed<W> {
    /// Stations that have just started.
    pub fn new(stations: impl IntoIterator<Item = impl Into<AnyStation>>, world: W) -> Self {
        let mut bed = Bed {
            now: Time::ZERO,
            world,
            delivered: Vec::new(),
            events: Vec::new(),
            ways: Ways::new(),
            turns: Vec::new(),
            seats: Vec::new(),
            ids: Vec::new(),
        };
        for station in stations {
            bed.push(station);
        }
        bed
    }

    // ---- stations -----------------------------------------------------------------------------

    /// Puts a station that starts, or restarts, in this place.
    pub fn start(&mut self, at: usize, station: impl Into<AnyStation>) {
        self.seats[at] = Some(station.into());
    }

    /// Adds a station that starts; returns its place.
    pub fn push(&mut self, station: impl Into<AnyStation>) -> usize {
        let station = station.into();
        self.ids.push(station.config().id);
        self.delivered.push(Vec::new());
        self.seats.push(Some(station));
        self.turns.push(self.turns.len());
        self.seats.len() - 1
    }

    /// Removes a station.
    pub fn stop(&mut self, at: usize) -> Option<AnyStation> {
        self.ways.wake(at, None);
        self.seats[at].take()
    }

    /// All running stations.
    pub fn stations(&self) -> impl Iterator<Item = &AnyStation> {
        self.seats.iter().flatten()
    }

    /// All running stations, mutably.
    pub fn stations_mut(&mut self) -> impl Iterator<Item = &mut AnyStation> {
        self.seats.iter_mut().flatten()
    }

    /// A station that is neither a hub nor a relay.
    pub fn station(&self, at: usize) -> &Station {
        self[at].station_at(0).expect("a station with one neighbour")
    }

    /// Whether two stations can exchange frames, as both see it.
    pub fn are_up(&self, one: usize, other: usize) -> bool {
        let is_up = |at: usize, peer: usize| self[at].is_up(self.ids[peer]);
        is_up(one, other) && is_up(other, one)
    }

    /// Whether each station can exchange frames with each of its peers.
    pub fn all_up(&self) -> bool {
        self.stations().all(|station| station.peers().iter().all(|peer| peer.is_up))
    }

    /// Secrets that stations have agreed on.
    pub fn agreed(&self) -> u64 {
        self.stations().map(|station| station.stats().secrets_agreed).sum()
    }

    // ---- what tests put in --------------------------------------------------------------------

    /// A station's host sends a packet.
    pub fn put(&mut self, at: usize, packet: &[u8]) -> PacketOutcome {
        let now = self.now;
        let outcome = self[at].handle_packet(now, packet);
        self.take(at);
        outcome
    }

    /// A station receives a frame that no station has sent.
    pub fn hear(&mut self, to: usize, frame: &[u8]) -> FrameOutcome {
        let now = self.now;
        let outcome = self[to].handle_frame(now, frame);
        self.take(to);
        outcome
    }

    /// Changes the longest frame that a station's interface accepts.
    pub fn limit_frames(&mut self, at: usize, len: usize) {
        let now = self.now;
        self[at].limit_frames(now, len);
        self.take(at);
    }

    /// Forgets all output so far.
    pub fn forget(&mut self) {
        self.delivered.iter_mut().for_each(Vec::clear);
        self.events.clear();
    }

    // ---- time, tick by tick -------------------------------------------------------------------

    /// Advances the time by `span`: delivers frames that have arrived, then gives each station one
    /// turn.
    pub fn tick(&mut self, span: Duration) {
        self.now += span;
        self.arrivals();
        for turn in 0..self.turns.len() {
            self.settle(self.turns[turn]);
            self.arrivals();
        }
        self.world.pass(self.now, &mut self.ways);
    }

    /// Advances the time by `span` in ticks of a millisecond.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.tick(Duration::from_millis(1));
        }
    }

    /// Runs until a condition holds, which has to be within a time limit. Returns how long it took.
    pub fn wait(&mut self, most: Duration, is_so: impl Fn(&Self) -> bool) -> Duration {
        let start = self.now;
        while !is_so(self) {
            assert!(self.now - start < most, "it is not so after {most:?}");
            self.tick(Duration::from_millis(1));
        }
        self.now - start
    }

    // ---- time, from event to event ------------------------------------------------------------

    /// Advances the time to `until`, event by event.
    pub fn run_until(&mut self, until: Time) {
        (0..self.seats.len()).for_each(|at| self.settle(at));
        while self.ways.next().is_some_and(|next| next <= until)
            && let Some((at, what)) = self.ways.pop()
        {
            self.now = self.now.max(at);
            let station = match what {
                Next::Wakes(station) => station,
                Next::Happens(flying) => {
                    self.arrive(&flying);
                    flying.to
                }
            };
            self.settle(station);
        }
        self.now = until;
    }

    /// Advances the time by `span`, event by event.
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    // ---- what a driver does -------------------------------------------------------------------

    fn arrivals(&mut self) {
        while let Some(flying) = self.ways.pop_happened(self.now) {
            self.arrive(&flying);
        }
    }

    fn arrive(&mut self, flying: &Flying) {
        if let Some(station) = &mut self.seats[flying.to] {
            self.world.hear(self.now, flying, station);
            self.take(flying.to);
        }
    }

    /// Does what a driver does after an input: fires timers, then drains outputs.
    pub fn settle(&mut self, at: usize) {
        let now = self.now;
        let Some(station) = &mut self.seats[at] else { return };
        if station.poll_timeout().is_some_and(|due| due <= now) {
            station.handle_timeout(now);
        }
        self.take(at);
        let mut frames = 0;
        while self.world.free_at(at) <= now && self.transmit(at) {
            frames += 1;
            assert!(
                frames <= self.world.at_once_max(),
                "station {at} does not stop sending at {now}"
            );
        }
        self.take(at);
        let (due, free_at) = (self[at].poll_timeout(), self.world.free_at(at));
        assert!(
            free_at > now || due.is_none_or(|due| due > now),
            "station {at} is due at {due:?}, now {now}"
        );
        let wakes = due.into_iter().chain([free_at]).filter(|&wakes| wakes > now);
        self.ways.wake(at, wakes.min());
    }

    fn transmit(&mut self, from: usize) -> bool {
        let Some(station) = &mut self.seats[from] else { return false };
        let Some(transmit) = station.poll_transmit(self.now) else { return false };
        let (to, frame) = (transmit.to, transmit.frame.to_vec());
        let (len, most) = (frame.len(), station.config().frame_len_max);
        assert!(len <= most, "station {from}: {len} bytes for {most}");
        let (station, frame, ids) = (&*station, &frame[..], &self.ids[..]);
        self.world.send(&Sent { at: self.now, from, station, to, frame, ids }, &mut self.ways);
        true
    }

    /// Takes a station's packets and events.
    pub fn take(&mut self, at: usize) {
        let Some(station) = &mut self.seats[at] else { return };
        let (packets, events) = (self.delivered[at].len(), self.events.len());
        while let Some(packet) = station.poll_packet() {
            self.delivered[at].push(packet.to_vec());
        }
        while let Some(event) = station.poll_event() {
            self.events.push((at, event));
        }
        let (packets, events) = (&self.delivered[at][packets..], &self.events[events..]);
        if !packets.is_empty() || !events.is_empty() {
            self.world.take(&Taken { now: self.now, at, packets, events });
        }
    }
}
