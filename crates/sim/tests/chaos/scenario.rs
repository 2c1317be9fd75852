//! What a run is made of, drawn from its number.

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};
use corridor_proto::{CodingParams, ErasureRatios, Field, LinkErrors, Order, Policy};

/// A run: parameters of the stations, of the network, of the load.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub purpose: &'static str,
    pub seed: u64,
    pub helper: bool,
    /// Which station starts anew at some time.
    pub restart: Option<usize>,
    pub coding: CodingParams,
    pub link_errors: LinkErrors,
    pub ingress_packets: usize,
    pub frame_len_min: usize,
    /// No loss, no delay to speak of, no adversary.
    pub perfect: bool,
    /// By sender and hearer.
    pub loss: [[f64; 3]; 3],
    pub duplicate: f64,
    pub reorder: f64,
    pub tamper: f64,
    pub delay: Duration,
    pub jitter: Duration,
    pub rate_bps: u64,
    pub jumps: u32,
    /// Packets of either host.
    pub packets: [u64; 2],
    /// Share of the packets that come at once with the one before.
    pub burst: f64,
    /// How long the packets come and the network is bad.
    pub span: Duration,
}

impl Scenario {
    pub fn draw(purpose: &'static str, seed: u64) -> Self {
        let key = StreamKey { seed, replication: 0, entity: 0, purpose };
        let mut rng = key.stream();
        let mut below = |count: u64| rng.next_u64() % count;
        let mut unit = {
            let key = StreamKey { seed, replication: 1, entity: 0, purpose };
            let mut rng = key.stream();
            move || f64::from(rng.next_u32()) / 4_294_967_296.0
        };
        let block_size_max = [4, 16, 64][below(3) as usize];
        let coding = CodingParams {
            field: [Field::Gf2, Field::Gf256][below(2) as usize],
            order: [Order::Systematic, Order::Dense, Order::OnTheFly][below(3) as usize],
            block_size: 1 + below(block_size_max) as u16,
            symbol_size: 64 + below(240) as u16,
            encoder_timeout: Duration::from_millis(1 + below(50)),
            overshoot: if below(2) == 0 { 1.0 } else { 1.0 + 0.5 * unit() },
            policy: [Policy::PlayNCool, Policy::Credit][below(2) as usize],
            blocks_in_flight: 1 + below(16) as u16,
            delivery_deadline: Duration::from_millis(20 + below(1_000)),
            ack_interval: Duration::from_millis(1 + below(50)),
            ..CodingParams::default()
        };
        let link_errors = if below(2) == 0 {
            LinkErrors::Measured
        } else {
            let mut ratio = || 0.9 * unit();
            LinkErrors::Fixed(ErasureRatios { e1: ratio(), e2: ratio(), e3: ratio() })
        };
        let worst = [0.05, 0.4, 0.6, 0.9][below(4) as usize];
        let mut loss = [[0.0; 3]; 3];
        loss.iter_mut().flatten().for_each(|ratio| *ratio = worst * unit());
        Scenario {
            purpose,
            seed,
            helper: false,
            restart: None,
            coding,
            link_errors,
            ingress_packets: 1 + below(200) as usize,
            frame_len_min: if below(2) == 0 { 0 } else { 46 },
            perfect: false,
            loss,
            duplicate: 0.1 * unit(),
            reorder: unit(),
            tamper: 0.2 * unit(),
            delay: Duration::from_micros(below(10_000)),
            jitter: Duration::from_millis(below(40)),
            rate_bps: 500_000 * (1 + below(20)),
            jumps: if below(4) == 0 { 1 + below(2) as u32 } else { 0 },
            packets: [below(250), if below(3) == 0 { 0 } else { below(250) }],
            burst: unit(),
            span: Duration::from_millis(200 + below(1_500)),
        }
    }

    pub fn make_perfect(&mut self) {
        self.perfect = true;
        self.jumps = 0;
        self.coding.delivery_deadline = Duration::from_secs(60);
    }

    /// A random stream of this run.
    pub fn stream(&self, purpose: &'static str) -> Stream {
        self.stream_of(0, purpose)
    }

    pub fn stream_of(&self, entity: u64, purpose: &'static str) -> Stream {
        let kind =
            self.purpose.bytes().fold(7, |sum: u64, byte| 31 * sum % 65_521 + u64::from(byte));
        StreamKey { seed: self.seed, replication: kind, entity, purpose }.stream()
    }

    /// Most packets that so many symbols hold: the shortest take three bytes.
    pub fn packets_of(&self, symbols: u64) -> u64 {
        symbols * u64::from(self.coding.symbol_size) / 3
    }

    /// Most packets in the blocks of an encoder.
    pub fn packets_in_flight_max(&self) -> usize {
        let symbols = self.coding.blocks_in_flight * self.coding.block_size;
        self.packets_of(u64::from(symbols)) as usize
    }
}
