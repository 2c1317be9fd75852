//! A flood of handshake messages from spoofed addresses: replayed and forged ones. Measures what is
//! sent to those addresses, the effect on an established session, and how soon a new peer still
//! gets one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_proto::wire::Header;
use corridor_proto::{Clocks, PrivateKey, Station, StationId};
use corridor_results::checks::Check;
use serde::Serialize;

use crate::net::{Address, Losses, Net, config, is_data, keyed_with};
use crate::scene::{self, AT_HUB, AT_LIVING, AT_NEW, HUB, LIVING, NEW};

/// Handshake messages per second: a flood, and a rate below that which triggers cookies.
const RATES: [u64; 2] = [100_000, 90];
/// Minimum fraction of its goodput that an established session keeps.
const GOODPUT_MIN: f64 = 0.98;
/// Maximum time until a new peer has a session, seconds.
const JOIN_MAX: f64 = 5.0;
const LOSS: f64 = 0.1;
const ONE_WAY: Duration = Duration::from_millis(10);
const PACKETS_PER_SECOND: u64 = 1_000;
/// Number of recordings, and of forged messages that are costly to make, each sent repeatedly.
const POOL: u64 = 400;
/// An unused address range.
const NOWHERE: Address = 1_000;

#[derive(Debug, Serialize)]
pub struct Flood {
    keys_of_their_own: bool,
    per_second: u64,
    seconds: u64,
    greetings: u64,
    /// The hub host's actions.
    outcomes: BTreeMap<&'static str, u64>,
    /// Maximum ratio of bytes sent to an address to bytes received from it.
    most_sent_per_byte: f64,
    goodput_ratio: f64,
    join_s: Option<f64>,
}

/// Both kinds of stations, at each rate.
pub fn measure(seconds: u64, checks: &mut Vec<Check>) -> Vec<Flood> {
    let all = RATES.iter().flat_map(|&rate| [(rate, false), (rate, true)]);
    all.map(|(rate, keys)| one(rate, keys, seconds, checks)).collect()
}

fn one(per_second: u64, keys_of_their_own: bool, seconds: u64, checks: &mut Vec<Check>) -> Flood {
    let quiet = run(0, keys_of_their_own, seconds, &mut HashMap::new());
    let mut came = HashMap::new();
    let noisy = run(per_second, keys_of_their_own, seconds, &mut came);
    let strays = noisy.net.strays.iter();
    let ratio =
        |(to, &sent): (&Address, &usize)| sent as f64 / came.get(to).copied().unwrap_or(0) as f64;
    let most_sent_per_byte = strays.map(ratio).fold(0.0, f64::max);
    let goodput_ratio = noisy.delivered as f64 / quiet.delivered as f64;
    let keys = if keys_of_their_own { "keys of their own" } else { "a shared secret" };
    let of = |what| format!("{per_second} greetings a second, {keys}: {what}");
    checks.extend([
        Check::at_most(of("bytes to an address per byte of it"), Some(most_sent_per_byte), 1.0, ""),
        Check::at_least(of("goodput kept"), Some(goodput_ratio), GOODPUT_MIN, ""),
        Check::at_most(of("a new peer joins within"), noisy.join_s, JOIN_MAX, "s"),
    ]);
    Flood {
        keys_of_their_own,
        per_second,
        seconds,
        greetings: noisy.greetings,
        outcomes: noisy.net.hosts[AT_HUB].outcomes.clone(),
        most_sent_per_byte,
        goodput_ratio,
        join_s: noisy.join_s,
    }
}

struct Run {
    net: Net,
    greetings: u64,
    delivered: usize,
    join_s: Option<f64>,
}

fn run(per_second: u64, keys: bool, seconds: u64, came: &mut HashMap<Address, usize>) -> Run {
    let mut net = scene::net(keys, 1, ONE_WAY);
    let mut losses = Losses::new(LOSS, 1);
    let survives: crate::net::Fate<'_> = &mut |host, frame| losses.survives(host, frame);
    let start = Time::from_millis(3_000);
    net.run_until(start, survives);
    assert!(net.hosts[AT_HUB].station.is_up(LIVING), "no session to begin with");
    let mut greetings = Greetings::new(keys);
    let before = net.hosts[AT_HUB].delivered.len();
    let (join_at, mut join_s) = (start + Duration::from_secs(1), None);
    for step in 0..10_000 * seconds {
        let now = start + Duration::from_micros(100 * step);
        net.run_until(now, survives);
        if step % (10_000 / PACKETS_PER_SECOND) == 0 {
            net.offer(AT_LIVING, &scene::packet(LIVING, HUB, step as u32), survives);
        }
        if net.hosts.len() == AT_NEW && now >= join_at {
            net.hosts.push(scene::leaf(keys, NEW, 1, now));
        }
        if let Some(newcomer) = net.hosts.get(AT_NEW).filter(|_| join_s.is_none()) {
            let is_up = newcomer.station.is_up(HUB) && net.hosts[AT_HUB].station.is_up(NEW);
            join_s = is_up.then(|| (now - join_at).as_secs_f64());
        }
        while greetings.made < per_second * step / 10_000 {
            let (from, frame) = greetings.next();
            *came.entry(from).or_default() += frame.len();
            net.hosts[AT_HUB].hear(now, from, frame);
        }
        net.pump(AT_HUB, survives);
    }
    net.run_until(net.now + Duration::from_secs(1), survives);
    let delivered = net.hosts[AT_HUB].delivered.len() - before;
    Run { net, greetings: greetings.made, delivered, join_s }
}

/// Source of the flood's messages.
pub struct Greetings {
    recorded: Vec<Vec<u8>>,
    forged: Vec<Vec<u8>>,
    junk: Vec<u8>,
    dice: Stream,
    made: u64,
}

impl Greetings {
    pub fn new(keys: bool) -> Self {
        Greetings {
            recorded: (0..POOL).map(|seed| recorded(keys, seed)).collect(),
            forged: (0..if keys { POOL } else { 0 }).map(forged_initiation).collect(),
            junk: Vec::new(),
            dice: Stream::from_seed([8; 32]),
            made: 0,
        }
    }

    /// The next message, and its claimed source address.
    pub fn next(&mut self) -> (Address, &[u8]) {
        self.made += 1;
        // Each from another address, or a few times from one of many.
        let from = NOWHERE
            + match self.made % 4 {
                0 => self.dice.next_u32() % 1_000,
                _ => 1_000 + self.made as u32,
            };
        let which = self.dice.next_u32() as usize;
        let frame = match self.made % 3 {
            0 => &self.recorded[which % self.recorded.len()],
            1 if !self.forged.is_empty() => &self.forged[which % self.forged.len()],
            _ => {
                self.junk = forged_hello(&mut self.dice);
                &self.junk
            }
        };
        (from, frame)
    }
}

/// The recorded first message of a station with this number and key.
pub fn recorded(keys: bool, seed: u64) -> Vec<u8> {
    first_frame(config(NEW, HUB, scene::security(keys, NEW)), seed)
}

/// From a sender that knows the hub's public key, but has no key that the hub knows.
pub fn forged_initiation(seed: u64) -> Vec<u8> {
    let mut key = [0xee; 32];
    key[..8].copy_from_slice(&seed.to_be_bytes());
    let security = keyed_with(PrivateKey::from_random(key), &[HUB]);
    first_frame(config(NEW, HUB, security), seed)
}

fn first_frame(config: corridor_proto::StationConfig, seed: u64) -> Vec<u8> {
    let mut entropy = [0xcc; 32];
    entropy[..8].copy_from_slice(&seed.to_be_bytes());
    let clocks = Clocks { now: Time::ZERO, wall_ns: 1_000 + seed };
    let mut station = Station::new(config, entropy, clocks).expect("a sound configuration");
    station.poll_transmit(Time::ZERO).expect("it says something first").frame.to_vec()
}

/// Random bytes in the format of a HELLO of either peer.
pub fn forged_hello(dice: &mut Stream) -> Vec<u8> {
    let mut frame = vec![0; 41 + dice.next_u32() as usize % 100];
    dice.fill_bytes(&mut frame);
    let sender: StationId = if dice.next_u32().is_multiple_of(2) { LIVING } else { NEW };
    let mut header = Vec::new();
    Header { is_hello: true, session_tag: 0, counter: 0 }.write(&mut header);
    frame[0] = header[0];
    frame[7..9].copy_from_slice(&sender.0.to_be_bytes());
    debug_assert!(!is_data(&frame));
    frame
}
