//! Draws a scenario from its seed. Every ingredient is present for some seeds and absent for
//! others; a few runs are long, or have realistic parameters.

use corridor_base::rand::Rng;
use corridor_base::{Stream, StreamKey};
use corridor_proto::bounds::SYMBOL_SIZE_MIN;
use corridor_proto::{DeliveryName, FieldName, GoalName, OrderName, PolicyName, wire};

use super::addresses::Addresses;
use super::mesh::{Mesh, MeshKind};
use super::scenario::{
    Coding, End, Forgery, Help, Jump, MtuChange, Network, Outage, OwnKeys, PPM, Pair, Restart,
    Scenario, Stall, WindowCoding,
};

/// Lifetimes of secrets, milliseconds; 0: the default.
pub(super) const REKEYS_MS: [u32; 4] = [0, 100, 400, 1_000];
/// Frames in a session. With the fewest, a handshake with many losses uses up most of them.
pub(super) const SESSION_FRAMES: [u32; 3] = [150, 400, 1_500];

/// Draws random integers.
pub(super) struct Dice(pub(super) Stream);

impl Dice {
    /// The random stream for one purpose.
    pub(super) fn new(seed: u64, entity: u64, purpose: &'static str) -> Self {
        Dice(StreamKey { seed, replication: 0, entity, purpose }.stream())
    }

    /// From 0 to `count` - 1; 0 if `count` is 0.
    pub(super) fn below(&mut self, count: u64) -> u64 {
        self.0.next_u64() % count.max(1)
    }

    /// Both ends included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True with a probability of `ppm` millionths.
    pub(super) fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(PPM.into()) < u64::from(ppm)
    }

    pub(super) fn percent(&mut self, percent: u32) -> bool {
        self.chance(10_000 * percent)
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

impl Scenario {
    /// The scenario of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed, 0, "torture scenario");
        let big = dice.percent(5);
        let span_ms =
            if big { dice.between(1_000, 4_000) } else { dice.between(100, 1_200) } as u32;
        let count = if dice.percent(8) { 2 } else { 1 };
        let pairs: Vec<Pair> = (0..count).map(|_| draw_pair(&mut dice, big)).collect();
        let mut scenario = Scenario {
            seed,
            same_numbers: count == 2 && dice.percent(50),
            pairs,
            network: draw_network(&mut dice),
            span_ms,
            outages: Vec::new(),
            stalls: Vec::new(),
            jumps: Vec::new(),
            restarts: Vec::new(),
            mtus: Vec::new(),
            forged_ppm: 0,
            forgeries: Vec::new(),
            insider_ppm: 0,
            addresses: None,
            mesh: None,
            plant: None,
        };
        scenario.draw_talks();
        scenario.draw_memory();
        scenario.draw_keys();
        scenario.draw_helper_keys();
        scenario.draw_mesh();
        scenario.draw_mesh_memory();
        if dice.percent(8) {
            scenario.make_perfect();
        } else {
            scenario.draw_happenings(&mut dice);
            scenario.draw_addresses();
        }
        scenario.draw_removals();
        scenario.draw_ends();
        scenario.draw_mtus();
        if scenario.insider_ppm > 0 {
            scenario.pairs.iter_mut().for_each(|pair| (pair.keys, pair.lies_ppm) = (None, 0));
            scenario.mesh.iter_mut().for_each(|mesh| (mesh.keys, mesh.ends) = (None, false));
        }
        scenario
    }

    /// Draws addresses that change, for some seeds: of one station of each pair, or of nodes of a
    /// mesh no two of which talk to each other.
    fn draw_addresses(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture addresses");
        if !dice.percent(25) || self.has_member_keys() {
            return;
        }
        let movers: Vec<u8> = match &self.mesh {
            Some(mesh) => match mesh.kind {
                MeshKind::RelayRow => return,
                MeshKind::HubStar if dice.percent(70) => {
                    (1..mesh.nodes).filter(|_| dice.percent(50)).collect()
                }
                _ => vec![dice.below(mesh.nodes.into()) as u8],
            },
            None => {
                let places = self.places();
                let of_pair = |pair: usize| {
                    let of = places.iter().enumerate().filter(move |(_, it)| it.pair == pair);
                    of.map(|(at, _)| at as u8).collect::<Vec<_>>()
                };
                (0..self.pairs.len()).map(|pair| dice.pick(&of_pair(pair))).collect()
            }
        };
        self.addresses = Some(Addresses::draw(&mut dice, &movers, self.span_ms));
    }

    /// Hubs and relays, for some seeds.
    fn draw_mesh(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture mesh");
        if dice.percent(15) {
            let mesh = self.mesh.insert(Mesh::draw(&mut dice));
            mesh.draw_keys(&mut dice);
        }
    }

    /// Members of hubs that are removed, and perhaps admitted again.
    fn draw_removals(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture removals");
        let span_ms = self.span_ms;
        self.mesh.iter_mut().for_each(|mesh| mesh.draw_removals(&mut dice, span_ms));
    }

    /// Relays that are ends of each other's packets, on networks with faults.
    fn draw_ends(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture ends");
        let is_perfect = self.is_perfect();
        if let Some(mesh) = &mut self.mesh {
            mesh.draw_ends(&mut dice);
            if is_perfect {
                mesh.lies_ppm = 0;
            }
        }
    }

    /// For some pairs in window mode, long TCP connections that build up queues, so that their
    /// windows are clamped.
    fn draw_talks(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture talks");
        for pair in &mut self.pairs {
            let has_windows = pair.ends.iter().all(|end| end.coding.window.is_some());
            pair.talks = has_windows && dice.percent(40);
            for end in pair.ends.iter_mut().filter(|_| pair.talks) {
                end.coding.symbol_size = 0;
                end.packet_len_max = 300;
                end.ingress_packets = end.ingress_packets.max(50);
                end.packets = end.packets.max(dice.between(100, 400) as u32);
            }
        }
    }

    /// Barely more memory than necessary, for some seeds. A station whose peer has longer blocks
    /// than its own may have no room for them: then nothing gets through, and it says so.
    fn draw_memory(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture memory");
        for pair in &mut self.pairs {
            let [a, b] = &pair.ends;
            let is_like = (&a.coding, a.frame_len_max) == (&b.coding, b.frame_len_max);
            let windows = pair.ends.iter().all(|end| end.coding.window.is_some());
            if dice.percent(20) && (is_like || windows || pair.plain) {
                pair.memory_beyond = Some(dice.below(200_000) as u32);
            }
        }
    }

    /// The same for nodes of a mesh.
    fn draw_mesh_memory(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture mesh memory");
        if let Some(mesh) = &mut self.mesh
            && dice.percent(30)
        {
            mesh.memory_beyond = Some(dice.below(200_000) as u32);
        }
    }

    /// Individual keys for some pairs without helper, with sessions and secrets that change
    /// quickly.
    fn draw_keys(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture keys");
        for pair in &mut self.pairs {
            let rekey_ms = dice.pick(&REKEYS_MS);
            if pair.helper == Help::None && dice.percent(25) {
                pair.keys = Some(OwnKeys { rekey_ms });
            }
            let frames = dice.pick(&SESSION_FRAMES);
            pair.session_frames = if dice.percent(25) { frames } else { 0 };
        }
    }

    /// The same for pairs with a helper, some of which send symbols that they did not hear. Not
    /// together with strangers of the same numbers: their frames make neighbours ask for sealing
    /// keys over and over, so there would be no silence.
    fn draw_helper_keys(&mut self) {
        if self.same_numbers {
            return;
        }
        let mut dice = Dice::new(self.seed, 0, "torture helper keys");
        for pair in &mut self.pairs {
            if pair.helper != Help::Present || !dice.percent(50) {
                continue;
            }
            pair.keys = Some(OwnKeys { rekey_ms: dice.pick(&REKEYS_MS) });
            let lies_ppm = dice.pick(&[10_000, 200_000, PPM]);
            if dice.percent(50) {
                pair.lies_ppm = lies_ppm;
            }
        }
    }

    /// Interfaces that accept only shorter frames for a time, for some seeds, and long symbols
    /// before that.
    fn draw_mtus(&mut self) {
        let mut dice = Dice::new(self.seed, 0, "torture mtus");
        if !dice.percent(20) {
            return;
        }
        for end in self.pairs.iter_mut().flat_map(|pair| &mut pair.ends) {
            end.coding.symbol_size = 0;
            end.packet_len_max = dice.pick(&[300, 9_000]);
        }
        for mesh in self.mesh.iter_mut() {
            mesh.packet_len_max = 1_500;
        }
        let stations = self.places().len() as u64;
        for _ in 0..1 + dice.below(4) {
            let station = dice.below(stations) as u8;
            let at_ms = dice.below(self.span_ms.into()) as u32;
            // The shortest possible, any, or the original length.
            let len = match dice.below(4) {
                0 => 0,
                1 => u16::MAX,
                _ => 256 + dice.below(1_300) as u16,
            };
            self.mtus.push(MtuChange { station, at_ms, len });
        }
    }

    fn draw_happenings(&mut self, dice: &mut Dice) {
        let (span, stations) = (u64::from(self.span_ms), self.places().len() as u64);
        let at = |dice: &mut Dice| dice.below(span) as u32;
        if dice.percent(20) {
            for _ in 0..dice.between(1, 3) {
                let from = dice.below(stations) as u8;
                let to = ((u64::from(from) + dice.between(1, stations - 1)) % stations) as u8;
                let begin_ms = at(dice);
                let most = dice.pick(&[100, 500, 5_000]);
                let end_ms = begin_ms + dice.between(1, most) as u32;
                self.outages.push(Outage { from, to, begin_ms, end_ms });
            }
        }
        if dice.percent(20) {
            for _ in 0..dice.between(1, 3) {
                let (station, begin_ms) = (dice.below(stations) as u8, at(dice));
                let end_ms = begin_ms + dice.between(1, 300) as u32;
                self.stalls.push(Stall { station, begin_ms, end_ms });
            }
        }
        if dice.percent(20) {
            for _ in 0..dice.between(1, 3) {
                let by_ms = dice.pick(&[10, 500, 30_000, 100_000]);
                let (station, by_ms) = (dice.below(stations) as u8, dice.between(1, by_ms) as u32);
                self.jumps.push(Jump { station, at_ms: at(dice), by_ms });
            }
        }
        if dice.percent(25) {
            let most = dice.pick(&[1, 2, 6]);
            for _ in 0..dice.between(1, most) {
                let down_ms = dice.pick(&[0, 5, 200]);
                let (station, down_ms) =
                    (dice.below(stations) as u8, dice.between(0, down_ms) as u32);
                self.restarts.push(Restart { station, at_ms: at(dice), down_ms });
            }
        }
        if dice.percent(40) {
            self.forged_ppm = dice.between(1_000, 200_000) as u32;
            self.forgeries = Forgery::ALL.into_iter().filter(|_| dice.percent(60)).collect();
        }
        if dice.percent(5) {
            self.insider_ppm = dice.between(1_000, 100_000) as u32;
        }
    }

    /// Removes all faults, so that nothing may get lost.
    pub fn make_perfect(&mut self) {
        let network = &mut self.network;
        (network.loss_ppm, network.duplicate_ppm, network.late_ppm) = (0, 0, 0);
        (self.forged_ppm, self.insider_ppm) = (0, 0);
        self.forgeries.clear();
        self.outages.clear();
        self.stalls.clear();
        self.jumps.clear();
        self.restarts.clear();
        self.addresses = None;
        self.pairs.iter_mut().for_each(|pair| pair.lies_ppm = 0);
        self.mesh.iter_mut().for_each(|mesh| mesh.lies_ppm = 0);
        for end in self.pairs.iter_mut().flat_map(|pair| &mut pair.ends) {
            end.coding.delivery_deadline_ms = 60_000;
        }
    }
}

fn draw_pair(dice: &mut Dice, big: bool) -> Pair {
    let plain = dice.percent(6);
    let helper = match dice.below(100) {
        _ if plain => Help::None,
        0..5 => Help::Absent,
        5..40 => Help::Present,
        _ => Help::None,
    };
    let mut first = draw_end(dice, big, helper != Help::None);
    let mut second = draw_end(dice, big, helper != Help::None);
    // Helpers do not recode in window mode.
    if helper == Help::None && !plain && dice.percent(40) {
        first.coding.window = Some(draw_window(dice, big));
        second.coding.window = dice.percent(90).then(|| draw_window(dice, big));
        for end in [&mut first, &mut second] {
            let most = wire::symbol_size_max(end.frame_len_max.into(), &end.coding.params(), false);
            end.coding.symbol_size = end.coding.symbol_size.min(most as u16);
        }
    }
    if dice.percent(75) {
        second.coding = first.coding.clone();
        (second.frame_len_max, second.frame_len_min) = (first.frame_len_max, first.frame_len_min);
        second.link_errors_ppm = first.link_errors_ppm;
    }
    if dice.percent(50) {
        second.packets = 0;
    }
    Pair {
        plain,
        helper,
        talks: false,
        keys: None,
        lies_ppm: 0,
        memory_beyond: None,
        session_frames: 0,
        ends: [first, second],
    }
}

fn draw_end(dice: &mut Dice, big: bool, recoded: bool) -> End {
    let frame_len_max = dice.pick(&[576, 576, 576, 700, 1_500]);
    let frame_len_max = if big { dice.pick(&[576, 1_500, 9_216]) } else { frame_len_max };
    let mut coding = draw_coding(dice, big);
    // Vector and symbol have to fit into the frame; otherwise the block is made smaller.
    let most = loop {
        let most = wire::symbol_size_max(frame_len_max.into(), &coding.params(), recoded);
        if most >= SYMBOL_SIZE_MIN {
            break most as u64;
        }
        coding.block_size /= 2;
    };
    coding.symbol_size = match dice.below(10) {
        0 => 0,
        1 => SYMBOL_SIZE_MIN as u16,
        2 => most as u16,
        _ => dice.between(64, most.min(if big { most } else { 300 })) as u16,
    };
    let ratio = |dice: &mut Dice| dice.below(900_000) as u32;
    let fixed = dice.percent(30);
    let ratios = [ratio(dice), ratio(dice), ratio(dice)];
    let few = dice.pick(&[10, 60, 150, 400]);
    End {
        coding,
        link_errors_ppm: fixed.then_some(ratios),
        ingress_packets: dice.pick(&[1, 5, 50, 200, 1_000]),
        frame_len_max,
        frame_len_min: if dice.percent(50) { 0 } else { 46 },
        pace_bps: dice.percent(20).then(|| dice.between(200_000, 10_000_000)),
        packets: if big { dice.between(200, 1_500) } else { dice.below(few) } as u32,
        packet_len_max: dice.pick(&[8, 60, 300, 9_000]),
        together_ppm: dice.below(PPM.into()) as u32,
    }
}

fn draw_coding(dice: &mut Dice, big: bool) -> Coding {
    let block_size_max = if big { dice.pick(&[64, 256]) } else { dice.pick(&[4, 16, 64]) };
    let mut coding = Coding {
        field: dice.pick(&[FieldName::Gf2, FieldName::Gf256, FieldName::Gf256, FieldName::Gf16]),
        order: dice.pick(&[OrderName::Systematic, OrderName::Dense, OrderName::OnTheFly]),
        policy: dice.pick(&[PolicyName::Playncool, PolicyName::Credit]),
        block_size: dice.between(1, block_size_max) as u16,
        symbol_size: 0,
        blocks_in_flight: dice.between(1, 16) as u16,
        overshoot_percent: if dice.percent(50) { 100 } else { dice.between(100, 150) as u16 },
        encoder_timeout_ms: dice.between(1, 50) as u32,
        delivery_deadline_ms: if dice.percent(30) {
            dice.between(1, 40) as u32
        } else {
            dice.between(20, 1_000) as u32
        },
        ack_interval_ms: dice.between(1, 50) as u32,
        window: None,
    };
    match dice.below(10) {
        // The defaults, and the paper's parameters.
        0 => {
            (coding.field, coding.order) = (FieldName::Gf256, OrderName::Systematic);
            (coding.block_size, coding.blocks_in_flight) = (32, 8);
            (coding.policy, coding.overshoot_percent) = (PolicyName::Credit, 100);
            (coding.encoder_timeout_ms, coding.ack_interval_ms) = (20, 20);
        }
        1 => {
            (coding.field, coding.order) = (FieldName::Gf2, OrderName::OnTheFly);
            (coding.block_size, coding.blocks_in_flight) = (150, 1);
            (coding.policy, coding.overshoot_percent) = (PolicyName::Playncool, 105);
            (coding.encoder_timeout_ms, coding.ack_interval_ms) = (20, 30);
        }
        _ => {}
    }
    coding
}

fn draw_window(dice: &mut Dice, big: bool) -> WindowCoding {
    let most = if big { 1_024 } else { dice.pick(&[1, 4, 40, 300]) };
    let window_size = dice.between(1, most) as u16;
    WindowCoding {
        window_size,
        // The window belongs to one lane, or to several.
        window_lane: window_size.div_ceil(dice.pick(&[1, 1, 2, 5, 16])),
        goal: dice.pick(&[GoalName::Throughput, GoalName::LowDelay, GoalName::Bulk]),
        max_overhead_percent: if dice.percent(20) { dice.between(1, 200) as u16 } else { 0 },
        delivery: dice.pick(&[
            DeliveryName::Auto,
            DeliveryName::Auto,
            DeliveryName::InOrder,
            DeliveryName::Immediate,
        ]),
        wraps: dice.percent(15),
    }
}

fn draw_network(dice: &mut Dice) -> Network {
    let loss = dice.pick(&[0, 50_000, 400_000, 600_000, 900_000]);
    let often = |dice: &mut Dice, percent: u32, most: u64| {
        if dice.percent(percent) { dice.between(1, most) as u32 } else { 0 }
    };
    Network {
        loss_ppm: dice.below(loss + 1) as u32,
        burst_frames: if dice.percent(30) { dice.between(2, 20) as u16 } else { 1 },
        duplicate_ppm: often(dice, 40, 100_000),
        late_ppm: often(dice, 50, PPM.into()),
        jitter_us: dice.between(1, 40_000) as u32,
        delay_us: dice.below(10_000) as u32,
        rate_bps: 500_000 * dice.between(1, 20),
        queue_frames: if dice.percent(70) { 1 } else { dice.between(2, 16) as u16 },
    }
}
