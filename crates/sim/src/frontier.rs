//! Window mode on one hop with a saturated source and no ingress queue: measures the delay that
//! coding itself costs, to compare with the best policies known.
//!
//! As in the published table, the link sends frames of [`FRAME_LEN`] bytes at [`RATE_BPS`], one
//! each millisecond. Losses are independent of each other, of data and feedback alike.

use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

use corridor_air::{Duplex, Jitter, Link, MediumConfig};
use corridor_base::rand::Rng;
use corridor_base::{StreamKey, Time};
use corridor_proto::{
    CodingParams, Goal, LinkErrors, Role, Station, StationConfig, StationId, Stats,
};

use crate::core::agent::{Agent, Body, Packet};
use crate::core::network::{AirConfig, Network, RadioSite, Topology};
use crate::plan::SimError;
use crate::plan::tunnel::PSK;

/// Bits per second of the link.
const RATE_BPS: u64 = 12_000_000;
/// Bytes of a frame.
const FRAME_LEN: usize = 1500;
/// By then rate and redundancy have settled.
const WARM_UP: Duration = Duration::from_secs(5);
/// Time after the measured interval in which frames in flight may still arrive.
const DRAIN: Duration = Duration::from_secs(3);

/// A row of the frontier: what the best policies reach that optimisation found for ideal codes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The sender's goal, which determines the [`share`](Self::share).
    pub goal: Goal,
    /// Round trip, ms.
    pub rtt_ms: u64,
    /// Frames lost in each direction, percent.
    pub loss_percent: u32,
    /// In-order one-way delay, ms: median, 95th and 99th percentile.
    pub delays_ms: [f64; 3],
}

impl Best {
    const fn new(goal: Goal, rtt_ms: u64, loss_percent: u32, delays_ms: [f64; 3]) -> Self {
        Best { goal, rtt_ms, loss_percent, delays_ms }
    }

    /// The throughput at which the policies reach these delays, as a share of the frames that come
    /// through.
    pub fn share(&self) -> f64 {
        match self.goal {
            Goal::Throughput => 0.966,
            Goal::LowDelay => 0.90,
            // The frontier has no row for this goal.
            Goal::Bulk => 0.995,
        }
    }

    /// The hop that this row is about, measured for `duration`.
    pub fn hop(&self, duration: Duration, replication: u64) -> Hop {
        Hop {
            goal: self.goal,
            rtt: Duration::from_millis(self.rtt_ms),
            loss_ratio: f64::from(self.loss_percent) / 100.0,
            queue_frames: 1,
            duration,
            seed: 1,
            replication,
        }
    }
}

/// The frontier.
pub const FRONTIER: [Best; 13] = [
    Best::new(Goal::Throughput, 4, 5, [3.0, 9.0, 10.0]),
    Best::new(Goal::Throughput, 4, 10, [3.0, 10.0, 16.0]),
    Best::new(Goal::Throughput, 4, 20, [7.0, 17.0, 23.0]),
    Best::new(Goal::Throughput, 4, 30, [9.0, 23.0, 31.0]),
    Best::new(Goal::Throughput, 4, 40, [12.0, 32.0, 44.0]),
    Best::new(Goal::Throughput, 100, 5, [51.0, 125.0, 175.0]),
    Best::new(Goal::Throughput, 100, 10, [60.0, 160.0, 200.0]),
    Best::new(Goal::Throughput, 100, 20, [84.0, 193.0, 256.0]),
    Best::new(Goal::Throughput, 100, 30, [95.0, 241.0, 318.0]),
    Best::new(Goal::Throughput, 100, 40, [130.0, 275.0, 342.0]),
    Best::new(Goal::LowDelay, 4, 30, [5.0, 17.0, 24.0]),
    Best::new(Goal::LowDelay, 4, 40, [7.0, 23.0, 33.0]),
    Best::new(Goal::LowDelay, 100, 30, [53.0, 126.0, 184.0]),
];

/// A hop, and how long to measure it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// What the sender aims at.
    pub goal: Goal,
    /// Round-trip propagation delay.
    pub rtt: Duration,
    /// Share of the frames lost in each direction, from 0 to less than 1.
    pub loss_ratio: f64,
    /// Frames that the link queues without the sender seeing them, from 1.
    pub queue_frames: usize,
    /// The measured interval; a warm-up of some seconds precedes it.
    pub duration: Duration,
    /// Seed of the losses and of the stations.
    pub seed: u64,
    /// Which replication.
    pub replication: u64,
}

/// What was measured of a hop.
#[derive(Clone, Debug)]
pub struct Saturated {
    /// Packets sent in the measured interval that arrived; each fills a frame.
    pub packets: u64,
    /// Bytes of a packet.
    pub packet_len: usize,
    /// Their in-order one-way delays in ms, ascending.
    pub delays_ms: Vec<f64>,
    /// Counters of the sending station.
    pub sender: Stats,
    /// Counters of the receiving station.
    pub receiver: Stats,
}

impl Saturated {
    /// A quantile of the delays, from 0 to 1, in ms; `None` when nothing came.
    pub fn delay_ms(&self, quantile: f64) -> Option<f64> {
        let last = self.delays_ms.len().checked_sub(1)?;
        self.delays_ms.get((last as f64 * quantile) as usize).copied()
    }
}

impl Hop {
    /// This number of packets divided by the mean number of frames that come through in the
    /// measured interval.
    pub fn share(&self, packets: u64) -> f64 {
        let frames_per_s = RATE_BPS as f64 / (8.0 * FRAME_LEN as f64);
        packets as f64 / (self.duration.as_secs_f64() * frames_per_s * (1.0 - self.loss_ratio))
    }

    fn topology(&self) -> Topology {
        let link = |from, to| Link { from, to, erasure: self.loss_ratio.into(), retry_limit: 0 };
        let medium = MediumConfig {
            mode: Duplex::Full,
            rate_bps: RATE_BPS,
            overhead: Duration::ZERO,
            propagation: self.rtt / 2,
            jitter: Jitter::None,
            queue_frames: self.queue_frames,
            drops_when_full: false,
            stations: 2,
            links: vec![link(0, 1), link(1, 0)],
            seed: self.seed,
            replication: self.replication,
        };
        let radio = RadioSite { nodes: vec![0, 1], air: AirConfig::Ideal(medium) };
        Topology { nodes: 2, radios: vec![radio], ..Topology::default() }
    }

    fn station(&self, index: u8) -> Result<Station, SimError> {
        let (seed, replication) = (self.seed, self.replication);
        let mut entropy = [0; 32];
        StreamKey { seed, replication, entity: index.into(), purpose: "entropy" }
            .stream()
            .fill_bytes(&mut entropy);
        let config = StationConfig {
            id: StationId(u16::from(index + 1)),
            role: Role::Endpoint { peer: StationId(u16::from(2 - index)), helper: None },
            security: PSK.into(),
            coding: CodingParams { goal: self.goal, ..CodingParams::window() },
            link_errors: LinkErrors::Measured,
            ingress_packets: 4,
            frame_len_max: FRAME_LEN,
            frame_len_min: 46,
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        };
        Ok(Station::new(config, entropy, Time::ZERO)?)
    }
}

/// When each packet was handed to the encoder, and the delays of those that arrived.
#[derive(Default)]
struct Times {
    sent: Vec<Time>,
    delays_ms: Vec<f64>,
}

impl Times {
    fn take(&mut self, now: Time, packet: &[u8]) {
        let number = packet.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
        let sent = number.and_then(|number| self.sent.get(usize::try_from(number).ok()?));
        if let Some(&sent) = sent.filter(|&&sent| sent >= Time::ZERO + WARM_UP) {
            self.delays_ms.push((now - sent).as_secs_f64() * 1e3);
        }
    }
}

/// The host that receives the packets.
struct Taker(Rc<RefCell<Times>>);

impl Agent for Taker {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if let Body::Bytes(bytes) = &packet.body {
            self.0.borrow_mut().take(now, bytes);
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// Measures a hop whose source always has another packet.
///
/// # Errors
/// [`SimError::Network`] if the hop's losses or queue are out of range.
pub fn saturate(hop: &Hop) -> Result<Saturated, SimError> {
    let times: Rc<RefCell<Times>> = Rc::default();
    let mut network = Network::new(&hop.topology(), hop.seed, hop.replication)?;
    let sender = network.add_station(0, 0, hop.station(0)?, |_| Some(0))?;
    let receiver = network.add_station(0, 1, hop.station(1)?, |_| Some(0))?;
    network.add_agent(1, 0, Taker(Rc::clone(&times)))?;
    let packet_len = network.station(sender).tunnel_mtu();
    let mut packet = vec![0; packet_len];
    let (mut now, end) = (Time::ZERO, Time::ZERO + WARM_UP + hop.duration);
    while now < end {
        let stats = network.station(sender).stats();
        // A packet's delay begins when it leaves the queue, so queueing does not count.
        let mut sent = times.borrow_mut();
        while (sent.sent.len() as u64) < stats.symbols_added {
            sent.sent.push(now);
        }
        drop(sent);
        if stats.packets_accepted == stats.symbols_added {
            packet[..8].copy_from_slice(&stats.packets_accepted.to_be_bytes());
            network.station_mut(sender).handle_packet(now, &packet);
            network.settle();
        } else {
            now = network.next_event().unwrap_or(end).min(end);
            network.run_until(now);
        }
    }
    network.run_until(end + DRAIN);
    let mut delays_ms = core::mem::take(&mut times.borrow_mut().delays_ms);
    delays_ms.sort_by(f64::total_cmp);
    let stats = |index| network.station(index).stats().clone();
    Ok(Saturated {
        packets: delays_ms.len() as u64,
        packet_len,
        delays_ms,
        sender: stats(sender),
        receiver: stats(receiver),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lossless_hop_costs_a_frame_and_its_propagation() {
        let best = Best::new(Goal::Throughput, 4, 0, [0.0; 3]);
        let hop = best.hop(Duration::from_secs(2), 0);
        let measured = saturate(&hop).unwrap();
        let share = hop.share(measured.packets);
        assert!(share > 0.99 && share <= 1.001, "{share}");
        // 1 ms of airtime and 2 ms of propagation; the queue before the encoder does not count.
        assert_eq!(measured.delay_ms(0.5).map(f64::round), Some(3.0));
        assert_eq!(measured.packets, measured.delays_ms.len() as u64);
    }

    #[test]
    fn losses_cost_delay_and_a_repeat_has_others() {
        let best = FRONTIER[3];
        let of = |replication| saturate(&best.hop(Duration::from_secs(4), replication)).unwrap();
        let (first, again, other) = (of(0), of(0), of(1));
        assert_eq!(first.delays_ms, again.delays_ms);
        assert_ne!(first.delays_ms, other.delays_ms);
        assert!(first.delay_ms(0.95) > first.delay_ms(0.5) && first.sender.copies_sent > 0);
        assert!(first.delay_ms(0.5).unwrap() > 4.0);
        assert!(first.packets < 2_800);
    }

    #[test]
    fn a_hop_that_cannot_be_is_refused() {
        let hop = Hop { loss_ratio: 1.5, ..FRONTIER[0].hop(Duration::from_secs(1), 0) };
        assert!(matches!(saturate(&hop), Err(SimError::Network(_))));
        let nothing = Saturated {
            delays_ms: Vec::new(),
            ..saturate(&Hop { loss_ratio: 0.0, ..hop }).unwrap()
        };
        assert_eq!(nothing.delay_ms(0.5), None);
    }
}
