//! Cells of 802.15.4: saturated senders that all hear each other, around a sink.

use std::time::Duration;

use corridor_air::Address;
use corridor_air::radio::{
    Decoding, Fading, Links, MacConfig, MacEvent, RadioConfig, RadioLink, RadioMedium,
    RadioMediumConfig, RadioStation, Receiver, SendOutcome,
};
use corridor_air::wpan::WpanConfig;
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use serde::Serialize;

/// Payload of frames with contending senders, bytes; tools/ns3_radio.py has the same.
pub const CONTENDING_BYTES: u32 = 80;

/// Senders begin within this time. Everything in 802.15.4 lasts a multiple of 32 us: with a common
/// start, CCAs would keep ending at exactly the instant at which another sender begins.
const BEGIN_WITHIN: Duration = Duration::from_millis(100);

/// Results of saturated senders with one sink.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Cell {
    /// Payload bits per second acknowledged, or sent if there are no acknowledgments.
    pub goodput_bps: f64,
    /// Fraction of frames acknowledged.
    pub success_ratio: f64,
    /// Fraction of frames that never found the channel free.
    pub busy_ratio: f64,
    /// Transmissions per frame.
    pub attempts: f64,
    /// Fraction of duplicates at the sink, whose ACK was lost.
    pub duplicate_ratio: f64,
}

/// Counters after the warm-up.
#[derive(Default)]
struct Counts {
    bytes: u64,
    frames: u32,
    acknowledged: u32,
    busy: u32,
    attempts: u32,
}

/// Overlapping frames of equal power are received according to the error ratios of O-QPSK.
pub const BY_ERROR_RATIO: Decoding = Decoding::ErrorRatio;

/// Overlapping frames are lost.
pub const WITHOUT_CAPTURE: Decoding = Decoding::Threshold { sinr_db: 5.0 };

/// Saturated senders and their sink, the last station.
pub fn cell(
    config: &WpanConfig,
    decoding: Decoding,
    senders: usize,
    payload_bytes: u32,
    seed: u64,
    simulated: Duration,
) -> Cell {
    let pairs = (0..=senders).flat_map(|from| (0..=senders).map(move |to| (from, to)));
    let links = pairs.filter(|(from, to)| from != to);
    let radio = RadioConfig {
        stations: vec![RadioStation::default(); senders + 1],
        links: Links::Matrix(links.map(|(from, to)| RadioLink::new(from, to, 50.0)).collect()),
        fading: Fading::None,
        // Below it, a receiver in ns-3 does not lock on.
        receiver: Receiver { decoding, lock_sinr_db: Some(-5.0), ..Receiver::DOT15_4 },
        propagation: Duration::ZERO,
        seed,
        replication: 0,
    };
    let mac = MacConfig::Wpan(config.clone());
    let medium = RadioMedium::new(&RadioMediumConfig { radio, mac, queue_frames: 2 });
    let mut medium = medium.expect("sound settings");
    let mut starts = starts(senders, seed);
    let begin = Time::ZERO + Duration::from_secs(5);
    let end = begin + simulated;
    let mut counts = Counts::default();
    let mut before = None;
    loop {
        let start = starts.last().map(|&(at, _)| at);
        let due = medium.poll_timeout().into_iter().chain(start).min();
        let Some(now) = due.filter(|&now| now <= end) else { break };
        if before.is_none() && now >= begin {
            before = Some(medium.stats(senders));
        }
        if let Some((_, station)) = starts.pop_if(|&mut (at, _)| at <= now) {
            let to = Address::Station(senders);
            medium.offer(now, station, to, payload_bytes, ()).expect("the queue is empty");
        }
        medium.handle_timeout(now);
        while let Some(event) = medium.poll_event() {
            if let MacEvent::Sent { at, station, to, outcome, attempts, len_bytes, .. } = event {
                if at >= begin {
                    counts.add(outcome, attempts, len_bytes);
                }
                medium.offer(now, station, to, len_bytes, ()).expect("one has left");
            }
        }
    }
    let (sink, before) = (medium.stats(senders), before.unwrap_or_default());
    let duplicates = (sink.duplicates - before.duplicates) as f64;
    let frames = f64::from(counts.frames);
    Cell {
        goodput_bps: counts.bytes as f64 * 8.0 / simulated.as_secs_f64(),
        success_ratio: f64::from(counts.acknowledged) / frames,
        busy_ratio: f64::from(counts.busy) / frames,
        attempts: f64::from(counts.attempts) / frames,
        duplicate_ratio: duplicates / (duplicates + (sink.received - before.received) as f64),
    }
}

/// Start times of senders, the earliest last.
fn starts(senders: usize, seed: u64) -> Vec<(Time, usize)> {
    let key = StreamKey { seed, replication: 0, entity: 0, purpose: "start" };
    let mut stream = key.stream();
    let mut starts: Vec<_> = (0..senders)
        .map(|station| {
            let within_ns = BEGIN_WITHIN.as_nanos() as u64;
            let at_ns = (u64::from(stream.next_u32()) * within_ns) >> 32;
            (Time::ZERO + Duration::from_nanos(at_ns), station)
        })
        .collect();
    starts.sort_unstable_by(|a, b| b.cmp(a));
    starts
}

impl Counts {
    fn add(&mut self, outcome: SendOutcome, attempts: u32, len_bytes: u32) {
        self.frames += 1;
        self.attempts += attempts;
        match outcome {
            SendOutcome::Acknowledged | SendOutcome::Sent => {
                self.acknowledged += 1;
                self.bytes += u64::from(len_bytes);
            }
            SendOutcome::ChannelAccess => self.busy += 1,
            SendOutcome::RetryLimit => {}
        }
    }
}
