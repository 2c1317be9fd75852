//! Stations on an air with one delay and given losses, in virtual time. At every step it checks
//! what a driver relies on: no timer in the past, no frame longer than the underlay carries.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::wire::{Chunks, Header, Kind, TAG_LEN};
use corridor_proto::{
    CodingParams, LinkErrors, PacketOutcome, Role, Station, StationConfig, StationId, Stats,
    Unsealer,
};

/// More frames than any station may send without time passing.
const FRAMES_AT_ONCE_MAX: usize = 1_000;

/// An endpoint with the defaults.
pub fn endpoint(id: u8, peer: u8, helper: Option<u8>) -> StationConfig {
    station(
        id,
        Role::Endpoint {
            peer: StationId(u16::from(peer)),
            helper: helper.map(|id| StationId(u16::from(id))),
        },
    )
}

/// A helper with the defaults.
pub fn helper(id: u8, between: (u8, u8)) -> StationConfig {
    station(
        id,
        Role::Helper {
            between: (StationId(u16::from(between.0)), StationId(u16::from(between.1))),
        },
    )
}

/// Two endpoints; `change` is made to both.
pub fn pair(change: impl Fn(&mut StationConfig)) -> Vec<StationConfig> {
    changed(vec![endpoint(1, 2, None), endpoint(2, 1, None)], change)
}

/// Two endpoints, and a helper as the third; `change` is made to all.
pub fn pair_and_helper(change: impl Fn(&mut StationConfig)) -> Vec<StationConfig> {
    changed(vec![endpoint(1, 2, Some(3)), endpoint(2, 1, Some(3)), helper(3, (1, 2))], change)
}

fn changed(
    mut configs: Vec<StationConfig>,
    change: impl Fn(&mut StationConfig),
) -> Vec<StationConfig> {
    configs.iter_mut().for_each(change);
    configs
}

fn station(id: u8, role: Role) -> StationConfig {
    StationConfig {
        id: StationId(u16::from(id)),
        role,
        security: [7; 32].into(),
        coding: CodingParams::default(),
        link_errors: LinkErrors::Measured,
        ingress_packets: 2_000,
        frame_len_max: 1_500,
        frame_len_min: 0,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    }
}

/// A frame on its way to one of its hearers.
pub struct Flight {
    pub at: Time,
    pub from: usize,
    pub to: usize,
    /// Of its last chunk, behind which nothing rides.
    pub kind: Kind,
    /// Uniform in [0, 1): lost where it is below the erasure ratio.
    pub draw: f64,
}

impl Flight {
    /// Whether it was sent within these milliseconds.
    pub fn sent_in(&self, span_ms: core::ops::Range<u64>) -> bool {
        (Time::from_millis(span_ms.start)..Time::from_millis(span_ms.end)).contains(&self.at)
    }
}

/// A packet that came out.
pub struct Delivery {
    pub at: Time,
    pub station: usize,
    pub number: u32,
}

/// Stations, numbered from 0, and the air.
pub struct Net {
    pub now: Time,
    pub delay: Duration,
    /// What a station's transmitter takes; `None`: any number of frames at once.
    pub rate_bps: Option<u64>,
    pub deliveries: Vec<Delivery>,
    /// When each packet was put in.
    pub offered_at: Vec<Time>,
    /// All HELLOs sent so far, with their senders.
    pub hellos: Vec<(usize, Vec<u8>)>,
    configs: Vec<StationConfig>,
    stations: Vec<Option<Station>>,
    starts: u8,
    air: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    flights: u64,
    free_at: Vec<Time>,
    lost: Box<dyn FnMut(&Flight) -> bool>,
    /// Who has the secret, and hears everything.
    unsealer: Unsealer,
    draws: Stream,
}

impl Net {
    /// Stations that start now; all frames arrive, after 2 ms. `run` is their entropy: stations of
    /// different runs never say the same.
    pub fn new(configs: Vec<StationConfig>, run: u8) -> Self {
        let count = configs.len();
        let mut net = Net {
            now: Time::ZERO,
            delay: Duration::from_millis(2),
            rate_bps: None,
            deliveries: Vec::new(),
            offered_at: Vec::new(),
            hellos: Vec::new(),
            stations: configs.iter().map(|_| None).collect(),
            configs,
            starts: 16 * run,
            air: BTreeMap::new(),
            flights: 0,
            free_at: vec![Time::ZERO; count],
            lost: Box::new(|_| false),
            unsealer: Unsealer::new([7; 32]),
            draws: Stream::from_seed([run; 32]),
        };
        (0..count).for_each(|at| net.start(at));
        net
    }

    /// Sets which frames get lost.
    pub fn lose(&mut self, lost: impl FnMut(&Flight) -> bool + 'static) {
        self.lost = Box::new(lost);
    }

    /// A station starts, or starts anew.
    pub fn start(&mut self, at: usize) {
        self.starts += 1;
        let station = Station::new(self.configs[at].clone(), [self.starts; 32], self.now);
        self.stations[at] = Some(station.expect("a possible configuration"));
    }

    /// A station is gone.
    pub fn stop(&mut self, at: usize) {
        self.stations[at] = None;
    }

    pub fn stats(&self, at: usize) -> Stats {
        self.station(at).stats().clone()
    }

    pub fn mtu(&self, at: usize) -> usize {
        self.station(at).tunnel_mtu()
    }

    /// Whether both can exchange frames, as both see it.
    pub fn are_up(&self, one: usize, other: usize) -> bool {
        let is_up = |at: usize, peer: usize| self.station(at).is_up(self.configs[peer].id);
        is_up(one, other) && is_up(other, one)
    }

    fn station(&self, at: usize) -> &Station {
        self.stations[at].as_ref().expect("a station that runs")
    }

    /// Puts in a packet of `len` bytes, with the next number; whether it was accepted.
    pub fn offer(&mut self, at: usize, len: usize) -> bool {
        let mut packet = vec![0x45; len];
        packet[..4].copy_from_slice(&(self.offered_at.len() as u32).to_be_bytes());
        let station = self.stations[at].as_mut().expect("a station that runs");
        let accepted = station.handle_packet(self.now, &packet) == PacketOutcome::Accepted;
        if accepted {
            self.offered_at.push(self.now);
        }
        self.settle(at);
        accepted
    }

    /// Puts in a packet of `len` bytes at every `gap_ms` until then.
    pub fn offer_until(&mut self, at: usize, len: usize, gap_ms: u64, until: Time) {
        while self.now < until {
            self.offer(at, len);
            self.run_until(self.now + Duration::from_millis(gap_ms));
        }
    }

    /// Numbers of the packets that came out at a station, in that order.
    pub fn delivered_to(&self, station: usize) -> Vec<u32> {
        let there = self.deliveries.iter().filter(|delivery| delivery.station == station);
        there.map(|delivery| delivery.number).collect()
    }

    /// How long a packet that came out was under way.
    pub fn delay_of(&self, delivery: &Delivery) -> Duration {
        delivery.at - self.offered_at[delivery.number as usize]
    }

    /// Mean delay of the packets that were put in from then on, in seconds.
    pub fn delay_mean(&self, from: Time) -> f64 {
        let since = |d: &&Delivery| self.offered_at[d.number as usize] >= from;
        let delays = self.deliveries.iter().filter(since).map(|d| self.delay_of(d).as_secs_f64());
        let (count, sum) = delays.fold((0, 0.0), |(count, sum), delay| (count + 1, sum + delay));
        sum / f64::from(count)
    }

    /// A frame out of nowhere.
    pub fn inject(&mut self, to: usize, frame: &[u8]) {
        let station = self.stations[to].as_mut().expect("a station that runs");
        station.handle_frame(self.now, frame);
        self.settle(to);
    }

    pub fn run_until(&mut self, until: Time) {
        (0..self.stations.len()).for_each(|at| self.settle(at));
        while let Some(next) = self.next_event().filter(|&next| next <= until) {
            self.now = next;
            while let Some(entry) = self.air.first_entry().filter(|entry| entry.key().0 <= next) {
                let (to, frame) = entry.remove();
                if let Some(station) = &mut self.stations[to] {
                    station.handle_frame(next, &frame);
                    self.settle(to);
                }
            }
            (0..self.stations.len()).for_each(|at| self.settle(at));
        }
        self.now = until;
    }

    fn next_event(&self) -> Option<Time> {
        let arrival = self.air.keys().next().map(|(at, _)| *at);
        let timers = self.stations.iter().flatten().filter_map(Station::poll_timeout);
        let free = self.free_at.iter().copied();
        timers.chain(free).filter(|&at| at > self.now).chain(arrival).min()
    }

    /// Does what a driver does: fires timers, then drains.
    fn settle(&mut self, at: usize) {
        let now = self.now;
        let Some(mut station) = self.stations[at].take() else { return };
        if station.poll_timeout().is_some_and(|due| due <= now) {
            station.handle_timeout(now);
        }
        while let Some(packet) = station.poll_packet() {
            let number = packet.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            let number = number.expect("a packet as it was put in");
            self.deliveries.push(Delivery { at: now, station: at, number });
        }
        while station.poll_event().is_some() {}
        let mut frames = 0;
        while self.free_at[at] <= now
            && let Some(transmit) = station.poll_transmit(now)
        {
            self.send(at, transmit.frame);
            frames += 1;
            assert!(frames <= FRAMES_AT_ONCE_MAX, "station {at} does not stop sending at {now}");
        }
        if self.free_at[at] <= now {
            let due = station.poll_timeout();
            assert!(due.is_none_or(|due| due > now), "station {at} is due at {due:?}, now {now}");
        }
        self.stations[at] = Some(station);
    }

    fn kind_of(&mut self, frame: &[u8]) -> Kind {
        let mut clear = Vec::new();
        self.unsealer.unseal(frame, &mut clear).expect("all have the secret, and greet first");
        let header = Header::parse(frame).expect("a frame of ours");
        let body = &clear[header.clear_len()..clear.len() - TAG_LEN];
        let last = Chunks::new(body).last().flatten();
        last.expect("chunks that can be read").kind
    }

    fn send(&mut self, from: usize, frame: &[u8]) {
        let most = self.configs[from].frame_len_max;
        assert!(frame.len() <= most, "station {from}: {} bytes for {most}", frame.len());
        let kind = self.kind_of(frame);
        if kind == Kind::Hello {
            self.hellos.push((from, frame.to_vec()));
        }
        let nanos = self.rate_bps.map_or(0, |bps| 8_000_000_000 * frame.len() as u64 / bps);
        let sent_at = self.now + Duration::from_nanos(nanos);
        self.free_at[from] = sent_at;
        for to in (0..self.stations.len()).filter(|&to| to != from) {
            let draw = f64::from(self.draws.next_u32()) / 2f64.powi(32);
            if (self.lost)(&Flight { at: self.now, from, to, kind, draw }) {
                continue;
            }
            self.flights += 1;
            self.air.insert((sent_at + self.delay, self.flights), (to, frame.to_vec()));
        }
    }
}
