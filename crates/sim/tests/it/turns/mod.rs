//! Encoder, decoder and optionally a helper that take turns: the daemon's stations with their
//! budgets, under the reference's conditions. The decoder's and the helper's feedback follows each
//! frame, free, lossless and immediate. Only frames with symbols count, and none after the one that
//! completes the block.

mod estimate;

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey, Time};
use corridor_proto::{
    CodingParams, ErasureRatios, Field, LinkErrors, Order, Policy, Role, Station, StationConfig,
    StationId,
};

pub use estimate::{Block, Estimate, estimate};

/// Source symbols in a block.
pub const BLOCK_SIZE: usize = 150;
const SYMBOL_SIZE: u16 = 64;
/// Length of a turn: one frame and its feedback. Longer than every interval of the decoder's
/// feedback, and shorter than all of the helper's timeouts.
const TURN: Duration = Duration::from_micros(2_100);
/// Time after which the encoder takes a frame for lost. Longer than a round of turns, so that the
/// helper does not mistake the encoder's wait for its turn for the end of the block.
const ENCODER_TIMEOUT: Duration = Duration::from_millis(41);
/// Most frames of the helper in a row: no symbol earns more.
const HELPER_FRAMES_MAX: usize = 2;
/// Virtual time limit of a block.
const BLOCK_TIME_MAX: Duration = Duration::from_secs(3_600);

const ENCODER: StationId = StationId(1);
const DECODER: StationId = StationId(2);
const HELPER: StationId = StationId(3);

/// The configuration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub seed: u64,
    pub replication: u64,
    pub field: Field,
    pub order: Order,
    pub policy: Policy,
    pub overshoot: f64,
    pub helper: bool,
    pub ratios: ErasureRatios,
}

/// The stations, and the links between them.
pub struct Turns {
    now: Time,
    stations: Vec<Station>,
    ratios: ErasureRatios,
    erasures: [Stream; 3],
    /// Frames of the current block, and what became of them.
    block: Block,
}

impl Turns {
    /// Stations that have completed their handshakes.
    pub fn new(setup: &Setup) -> Self {
        let stream = |entity, purpose| {
            let Setup { seed, replication, .. } = *setup;
            StreamKey { seed, replication, entity, purpose }.stream()
        };
        let helper = setup.helper.then_some(HELPER);
        let roles = [
            (ENCODER, Role::Endpoint { peer: DECODER, helper }),
            (DECODER, Role::Endpoint { peer: ENCODER, helper }),
            (HELPER, Role::Helper { between: (ENCODER, DECODER) }),
        ];
        let stations = roles.into_iter().take(if setup.helper { 3 } else { 2 });
        let stations = stations.map(|(id, role)| {
            let mut entropy = [0; 32];
            stream(u64::from(id.0), "entropy").fill_bytes(&mut entropy);
            Station::new(station_config(setup, id, role), entropy, Time::ZERO).unwrap()
        });
        let mut turns = Turns {
            now: Time::ZERO,
            stations: stations.collect(),
            ratios: setup.ratios,
            erasures: [1, 2, 3].map(|link| stream(link, "erasure")),
            block: Block::default(),
        };
        while !turns.is_up() {
            turns.round(u64::MAX);
            assert!(turns.now < Time::from_millis(10_000), "no handshake");
        }
        turns.load();
        turns
    }

    /// The host offers a block of packets.
    fn load(&mut self) {
        let len = self.stations[0].tunnel_mtu();
        for byte in 0..BLOCK_SIZE {
            self.stations[0].handle_packet(self.now, &vec![byte as u8; len]);
        }
    }

    fn is_up(&self) -> bool {
        let pairs =
            [(0, DECODER), (1, ENCODER), (0, HELPER), (1, HELPER), (2, ENCODER), (2, DECODER)];
        let count = if self.stations.len() == 3 { 6 } else { 2 };
        pairs[..count].iter().all(|&(at, peer)| self.stations[at].is_up(peer))
    }

    /// Sends one block; returns the ENC frames of encoder and helper until the decoder is done.
    ///
    /// The next block is queued meanwhile: with nothing else to send, the encoder of the `credit`
    /// policy would trade airtime for time.
    pub fn block(&mut self) -> Block {
        self.load();
        self.block = Block::default();
        let done = self.delivered() + BLOCK_SIZE as u64;
        let started = self.now;
        while self.delivered() < done {
            self.round(done);
            assert!(self.now - started < BLOCK_TIME_MAX, "the block does not end");
        }
        self.block
    }

    fn delivered(&self) -> u64 {
        self.stations[1].stats().packets_delivered
    }

    /// Sends one ENC frame of the encoder, if it has one, then what the helper has earned with it;
    /// ends early when `done` packets are delivered.
    fn round(&mut self, done: u64) {
        self.pass_time();
        self.turn(0);
        self.pass_time();
        for _ in 0..HELPER_FRAMES_MAX {
            if self.stations.len() < 3 || self.delivered() >= done || !self.turn(2) {
                break;
            }
            self.pass_time();
        }
    }

    /// Lets all timers expire, and stations send their feedback.
    fn pass_time(&mut self) {
        self.now += TURN;
        for station in &mut self.stations {
            if station.poll_timeout().is_some_and(|at| at <= self.now) {
                station.handle_timeout(self.now);
            }
        }
        self.turn(1);
    }

    /// Lets a station send any number of control and feedback frames, but at most one ENC frame.
    fn turn(&mut self, from: usize) -> bool {
        loop {
            let before = self.symbols_sent(from);
            let Some(transmit) = self.stations[from].poll_transmit(self.now) else { return false };
            let frame = transmit.frame.to_vec();
            let is_enc = self.symbols_sent(from) > before;
            if is_enc {
                self.block.note_sent(from, self.ratios, self.stations.len() == 3);
            }
            for to in (0..self.stations.len()).filter(|&to| to != from) {
                if is_enc && self.erased(from, to) {
                    continue;
                }
                self.stations[to].handle_frame(self.now, &frame);
                while self.stations[to].poll_packet().is_some() {}
            }
            if is_enc {
                return true;
            }
        }
    }

    fn symbols_sent(&self, at: usize) -> u64 {
        let stats = self.stations[at].stats();
        stats.source_frames_sent + stats.coded_frames_sent + stats.recoded_frames_sent
    }

    fn erased(&mut self, from: usize, to: usize) -> bool {
        let (link, ratio) = match (from, to) {
            (0, 2) => (0, self.ratios.e1),
            (2, 1) => (1, self.ratios.e2),
            (0, 1) => (2, self.ratios.e3),
            _ => return false,
        };
        let erased = f64::from(self.erasures[link].next_u32()) < ratio * 4_294_967_296.0;
        if !erased {
            self.block.surplus[link] += 1.0;
        }
        erased
    }
}

fn station_config(setup: &Setup, id: StationId, role: Role) -> StationConfig {
    StationConfig {
        id,
        role,
        security: [7; 32].into(),
        coding: CodingParams {
            tcp_nc: None,
            field: setup.field,
            order: setup.order,
            block_size: BLOCK_SIZE as u16,
            symbol_size: SYMBOL_SIZE,
            encoder_timeout: ENCODER_TIMEOUT,
            overshoot: setup.overshoot,
            // What removes the bounds of one budget removes those of the other.
            helper_overshoot: setup.overshoot,
            policy: setup.policy,
            blocks_in_flight: 1,
            delivery_deadline: Duration::from_secs(60),
            ack_interval: Duration::from_millis(1),
            ..CodingParams::default()
        },
        link_errors: LinkErrors::Fixed(setup.ratios),
        ingress_packets: 2 * BLOCK_SIZE,
        frame_len_max: 576,
        frame_len_min: 0,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    }
}
