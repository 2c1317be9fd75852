//! Stations on a medium with one delay and given losses, driven event by event.

use core::ops::{Deref, DerefMut};
use core::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::wire::{Chunks, Header, Kind, TAG_LEN};
use corridor_proto::{PacketOutcome, Role, Station, StationConfig, StationId, Stats, Unsealer};
use corridor_testbed::config::{SECRET, config};
use corridor_testbed::{Bed, Sent, Taken, Ways, World};

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

/// Two endpoints; `change` is applied to both.
pub fn pair(change: impl Fn(&mut StationConfig)) -> Vec<StationConfig> {
    changed(vec![endpoint(1, 2, None), endpoint(2, 1, None)], change)
}

/// Two endpoints, and a helper as the third; `change` is applied to all.
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
    StationConfig { ingress_packets: 2_000, ..config(StationId(u16::from(id)), role) }
}

/// A frame in flight to one of its hearers.
pub struct Flight {
    pub at: Time,
    pub from: usize,
    pub to: usize,
    /// The kind of its last chunk, after which nothing is piggybacked.
    pub kind: Kind,
    /// Uniform in [0, 1): the frame is lost if this is below the erasure ratio.
    pub draw: f64,
}

impl Flight {
    /// Whether it was sent within this span, in milliseconds.
    pub fn sent_in(&self, span_ms: core::ops::Range<u64>) -> bool {
        (Time::from_millis(span_ms.start)..Time::from_millis(span_ms.end)).contains(&self.at)
    }
}

/// A delivered packet.
pub struct Delivery {
    pub at: Time,
    pub station: usize,
    pub number: u32,
}

/// Loses frames, and records what it hears.
pub struct Lossy {
    pub delay: Duration,
    /// Rate of a station's transmitter; `None`: any number of frames at once.
    pub rate_bps: Option<u64>,
    pub deliveries: Vec<Delivery>,
    /// All HELLOs sent so far, with their senders.
    pub hellos: Vec<(usize, Vec<u8>)>,
    free_at: Vec<Time>,
    lost: Box<dyn FnMut(&Flight) -> bool>,
    /// Has the secret, and hears everything.
    unsealer: Unsealer,
    draws: Stream,
}

impl Lossy {
    fn kind_of(&mut self, frame: &[u8]) -> Kind {
        let mut clear = Vec::new();
        self.unsealer.unseal(frame, &mut clear).expect("all have the secret, and greet first");
        let header = Header::parse(frame).expect("a frame of ours");
        let body = &clear[header.clear_len()..clear.len() - TAG_LEN];
        let last = Chunks::new(body).last().flatten();
        last.expect("chunks that can be read").kind
    }
}

impl World for Lossy {
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways) {
        let &Sent { at, from, frame, .. } = sent;
        let kind = self.kind_of(frame);
        if kind == Kind::Hello {
            self.hellos.push((from, frame.to_vec()));
        }
        let nanos = self.rate_bps.map_or(0, |bps| 8_000_000_000 * frame.len() as u64 / bps);
        let sent_at = at + Duration::from_nanos(nanos);
        self.free_at[from] = sent_at;
        for to in sent.others() {
            let draw = f64::from(self.draws.next_u32()) / 2f64.powi(32);
            if !(self.lost)(&Flight { at, from, to, kind, draw }) {
                ways.put(sent_at + self.delay, from, to, frame.to_vec());
            }
        }
    }

    fn take(&mut self, taken: &Taken<'_>) {
        for packet in taken.packets {
            let number = packet.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            let number = number.expect("a packet as it was put in");
            self.deliveries.push(Delivery { at: taken.now, station: taken.at, number });
        }
    }

    fn free_at(&self, at: usize) -> Time {
        self.free_at[at]
    }

    fn at_once_max(&self) -> usize {
        1_000
    }
}

/// Stations, and how often each has started.
pub struct Net {
    bed: Bed<Lossy>,
    /// When each packet was offered.
    pub offered_at: Vec<Time>,
    configs: Vec<StationConfig>,
    starts: u8,
}

impl Deref for Net {
    type Target = Bed<Lossy>;

    fn deref(&self) -> &Bed<Lossy> {
        &self.bed
    }
}

impl DerefMut for Net {
    fn deref_mut(&mut self) -> &mut Bed<Lossy> {
        &mut self.bed
    }
}

impl Net {
    /// Starts stations; all frames arrive, after 2 ms. `run` is their entropy: stations of
    /// different runs never send the same.
    pub fn new(configs: Vec<StationConfig>, run: u8) -> Self {
        let mut starts = 16 * run;
        let stations = configs.iter().map(|config| {
            starts += 1;
            started(config, starts, Time::ZERO)
        });
        let world = Lossy {
            delay: Duration::from_millis(2),
            rate_bps: None,
            deliveries: Vec::new(),
            hellos: Vec::new(),
            free_at: vec![Time::ZERO; configs.len()],
            lost: Box::new(|_| false),
            unsealer: Unsealer::new(SECRET),
            draws: Stream::from_seed([run; 32]),
        };
        let bed = Bed::new(stations, world);
        Net { bed, offered_at: Vec::new(), configs, starts }
    }

    /// Sets which frames are lost.
    pub fn lose(&mut self, lost: impl FnMut(&Flight) -> bool + 'static) {
        self.world.lost = Box::new(lost);
    }

    /// Starts or restarts a station.
    pub fn start(&mut self, at: usize) {
        self.starts += 1;
        let station = started(&self.configs[at], self.starts, self.now);
        self.bed.start(at, station);
    }

    pub fn stats(&self, at: usize) -> Stats {
        self[at].stats().into_owned()
    }

    /// Offers a packet of `len` bytes, with the next number; returns whether it was accepted.
    pub fn offer(&mut self, at: usize, len: usize) -> bool {
        let mut packet = vec![0x45; len];
        packet[..4].copy_from_slice(&(self.offered_at.len() as u32).to_be_bytes());
        let accepted = self.put(at, &packet) == PacketOutcome::Accepted;
        if accepted {
            self.offered_at.push(self.bed.now);
        }
        self.settle(at);
        accepted
    }

    /// Offers a packet of `len` bytes every `gap_ms`, until `until`.
    pub fn offer_until(&mut self, at: usize, len: usize, gap_ms: u64, until: Time) {
        while self.now < until {
            self.offer(at, len);
            self.run_for(Duration::from_millis(gap_ms));
        }
    }

    /// Numbers of the packets delivered to a station, in order.
    pub fn delivered_to(&self, station: usize) -> Vec<u32> {
        let there = self.world.deliveries.iter().filter(|delivery| delivery.station == station);
        there.map(|delivery| delivery.number).collect()
    }

    /// Delay of a delivered packet.
    pub fn delay_of(&self, delivery: &Delivery) -> Duration {
        delivery.at - self.offered_at[delivery.number as usize]
    }

    /// Mean delay in seconds of packets offered from then on.
    pub fn delay_mean(&self, from: Time) -> f64 {
        let since = |d: &&Delivery| self.offered_at[d.number as usize] >= from;
        let delays =
            self.world.deliveries.iter().filter(since).map(|d| self.delay_of(d).as_secs_f64());
        let (count, sum) = delays.fold((0, 0.0), |(count, sum), delay| (count + 1, sum + delay));
        sum / f64::from(count)
    }

    /// Injects a frame.
    pub fn inject(&mut self, to: usize, frame: &[u8]) {
        self.hear(to, frame);
        self.settle(to);
    }
}

fn started(config: &StationConfig, starts: u8, now: Time) -> Station {
    Station::new(config.clone(), [starts; 32], now).expect("a possible configuration")
}
