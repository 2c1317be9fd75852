//! The ledgers of a run: the last inspection of each station, and where every packet of every flow
//! is.

use std::collections::BTreeMap;

use corridor_proto::inspect::Inspection;
use corridor_proto::wire::{Ack, Chunks, Header, Kind, TAG_LEN};
use corridor_proto::{MemoryView, Psk, Station, StationConfig, StationId, Stats, Unsealer};

use super::coverage::{Coverage, Feature};
use super::invariants::{
    Broken, Invariant, check_bounds, check_memory, check_ranks, egress_packets_max, ensure,
};
use super::ledger::{Fate, Ledger};
use super::nonces::Nonces;
use super::parts::Parts;
use super::scenario::{Help, Place, Scenario};
use super::window_ledger::{Lost, WindowLedger};
use super::window_packet;
use super::window_talk::{Talks, is_bare, is_update};

/// What is inspected at a station after an event.
pub(super) struct Look {
    pub(super) view: Inspection,
    pub(super) stats: Stats,
    /// How its share of the memory is divided.
    pub(super) memory: MemoryView,
    /// Packets for its host.
    pub(super) delivered: Vec<Vec<u8>>,
    /// Whether the event was not a frame.
    pub(super) timer: bool,
}

/// A flow between plain forwarders.
#[derive(Default)]
struct PlainFlow {
    /// Packets accepted, and whether each was delivered; those of a dead sender may still be
    /// delivered.
    packets: BTreeMap<Vec<u8>, Vec<(usize, bool)>>,
    accepted: usize,
    delivered: usize,
    newest: usize,
    /// Packets in the sender's queue.
    waiting: usize,
}

enum Flow {
    Coded(Box<Ledger>),
    Window(Box<WindowLedger>),
    Plain(PlainFlow),
    /// Sender and receiver use different modes, blocks and windows: nothing may be delivered.
    Mute,
}

/// All ledgers.
pub(super) struct Books {
    places: Vec<Place>,
    last: Vec<(Inspection, Stats)>,
    /// By sending station.
    flows: BTreeMap<usize, Flow>,
    /// By station: the reader that unseals its frames.
    witnesses: Vec<Option<Unsealer>>,
    nonces: Nonces,
    clear: Vec<u8>,
    serial: u64,
    /// Hosts of stations in window mode, by station.
    hosts: BTreeMap<usize, window_packet::Host>,
    /// Dialogues between hosts in window mode, by pair.
    talks: Vec<Talks>,
    /// By pair: whether the hosts send almost nothing else.
    talkative: Vec<bool>,
    parts: Parts,
    /// Whether there is no insider, who could make any station deliver anything.
    trusted: bool,
    /// By pair: whether its helper may send symbols that are not what they claim to be, which its
    /// ends discard.
    lies: Vec<bool>,
    /// Whether the network keeps frames in order.
    ordered: bool,
    perfect: bool,
}

impl Books {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let places = scenario.places();
        let flow = |(station, place): (usize, &Place)| {
            place.end?;
            let (pair, end) = (&scenario.pairs[place.pair], place.end?);
            let window = |end: usize| pair.ends[end].coding.window.is_some();
            let flow = match (window(end), window(1 - end)) {
                _ if pair.plain => Flow::Plain(PlainFlow::default()),
                (true, true) => {
                    let delivery = scenario.config(*place).coding.delivery;
                    let is_peer =
                        |other: &&Place| other.pair == place.pair && other.end == Some(1 - end);
                    let peer = places.iter().find(is_peer).unwrap_or(place);
                    let receiver = scenario.config(*peer).coding.delivery;
                    Flow::Window(Box::new(WindowLedger::new(delivery, receiver)))
                }
                (true, false) => Flow::Mute,
                // Blocks for a peer in another mode are given up like others.
                (false, _) => {
                    let has_tags = pair.keys.is_some() && pair.helper != Help::None;
                    let may_drop = has_tags && pair.memory_beyond.is_some();
                    Flow::Coded(Box::new(Ledger::new(may_drop)))
                }
            };
            Some((station, flow))
        };
        let flows = places.iter().enumerate().filter_map(flow).collect();
        let network = &scenario.network;
        Books {
            last: places.iter().map(|_| Default::default()).collect(),
            flows,
            witnesses: places.iter().map(|_| None).collect(),
            nonces: Nonces::default(),
            clear: Vec::new(),
            serial: 0,
            hosts: BTreeMap::new(),
            talks: vec![Talks::default(); scenario.pairs.len()],
            talkative: scenario.pairs.iter().map(|pair| pair.talks).collect(),
            parts: Parts::new(places.iter().map(|&it| scenario.config(it))),
            trusted: scenario.insider_ppm == 0,
            lies: (0..scenario.pairs.len()).map(|pair| scenario.lies_ppm(pair) > 0).collect(),
            // Copies may arrive before their originals.
            ordered: network.late_ppm == 0
                && scenario.forged_ppm == 0
                && scenario.addresses.as_ref().is_none_or(|it| it.copied_ppm == 0),
            perfect: scenario.is_perfect(),
            places,
        }
    }

    /// The station at the other end.
    fn peer(&self, station: usize) -> Option<usize> {
        let Place { pair, end: Some(end), .. } = self.places[station] else { return None };
        self.places.iter().position(|place| place.pair == pair && place.end == Some(1 - end))
    }

    /// Fills a packet with bytes that are unique in the run.
    pub(super) fn fill(&mut self, from: usize, packet: &mut [u8]) {
        self.serial += 1;
        let number = self.serial as u32;
        if let Place { pair, end: Some(end), .. } = self.places[from]
            && matches!(self.flows.get(&from), Some(Flow::Window(_)))
            && Talks::has(number, self.talkative[pair])
            && self.talks[pair].fill(end, number, packet)
        {
            return;
        }
        if matches!(self.flows.get(&from), Some(Flow::Window(_) | Flow::Mute)) {
            let host = self.hosts.entry(from).or_insert_with(window_packet::Host::new);
            return host.fill(number, packet);
        }
        // Short packets have only a number: they are distinct within 65536 of them.
        let mut state = self.serial | (from as u64) << 48;
        for (at, byte) in packet.iter_mut().enumerate() {
            if at > 0 && at % 8 == 0 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(at as u64);
            }
            *byte = state.to_le_bytes()[at % 8];
        }
    }

    pub(super) fn accepted(&mut self, from: usize, packet: Vec<u8>) {
        match self.flows.get_mut(&from) {
            Some(Flow::Coded(ledger)) => ledger.accepted(packet),
            Some(Flow::Window(ledger)) => ledger.accepted(packet),
            Some(Flow::Plain(flow)) => {
                let number = flow.accepted;
                flow.packets.entry(packet).or_default().push((number, false));
                flow.accepted += 1;
            }
            Some(Flow::Mute) | None => {}
        }
    }

    /// A station's ingress queue was full.
    pub(super) fn refused(&mut self, from: usize) {
        if let Some(Flow::Window(ledger)) = self.flows.get_mut(&from) {
            ledger.refused();
        }
    }

    /// Reads a sent frame, which was sealed under a secret if there is one. Returns whether it
    /// begins a new session after an earlier one.
    pub(super) fn sent(
        &mut self,
        from: usize,
        frame: &[u8],
        cut: &[u8],
        secret: Option<&Psk>,
    ) -> Result<bool, Broken> {
        let is_another = self.nonces.sent((from, 0), frame)?;
        let peer = self.peer(from);
        let is_window = matches!(self.flows.get(&from), Some(Flow::Window(_)));
        let of_peer = peer.and_then(|peer| self.flows.get(&peer));
        let acknowledges =
            of_peer.is_some_and(|flow| matches!(flow, Flow::Coded(it) if it.reads_acks()));
        let Some(secret) = secret.filter(|_| self.trusted && (is_window || acknowledges)) else {
            return Ok(is_another);
        };
        let witness = self.witnesses[from].get_or_insert_with(|| Unsealer::new(secret.clone()));
        witness.follow(secret);
        if witness.unseal(frame, &mut self.clear).is_none() {
            return Ok(is_another);
        }
        if let Some(Flow::Window(ledger)) = self.flows.get_mut(&from) {
            ledger.sent(&self.clear, cut)?;
        }
        if let Some(Flow::Coded(ledger)) = peer.and_then(|peer| self.flows.get_mut(&peer)) {
            acks(&self.clear).try_for_each(|ack| ledger.acknowledged(&ack))?;
        }
        Ok(is_another)
    }

    pub(super) fn started(&mut self, station: usize, view: Inspection, sizes: (usize, usize)) {
        self.nonces.started(station);
        if let Some(Flow::Coded(ledger)) = self.flows.get_mut(&station) {
            ledger.sender_started(&view, sizes);
        }
        if let Some(Flow::Window(ledger)) = self.flows.get_mut(&station) {
            ledger.sender_started(view.instance);
        }
        self.last[station] = (view, Stats::default());
    }

    pub(super) fn died(&mut self, station: usize) {
        match self.flows.get_mut(&station) {
            Some(Flow::Coded(ledger)) => ledger.sender_died(),
            Some(Flow::Window(ledger)) => ledger.sender_died(),
            Some(Flow::Plain(flow)) => flow.waiting = 0,
            Some(Flow::Mute) | None => {}
        }
        let peer = self.peer(station);
        match peer.and_then(|peer| self.flows.get_mut(&peer)) {
            Some(Flow::Coded(ledger)) => ledger.close_reader(),
            Some(Flow::Window(ledger)) => ledger.close_reader(),
            _ => {}
        }
    }

    /// Inspects a station after an event.
    pub(super) fn look(
        &mut self,
        station: usize,
        look: Look,
        config: &StationConfig,
    ) -> Result<(), Broken> {
        let name = |(invariant, text): Broken| (invariant, format!("station {station}: {text}"));
        let before = core::mem::take(&mut self.last[station]);
        let lies = self.lies[self.places[station].pair];
        let dropped = match self.flows.get(&station) {
            Some(Flow::Coded(ledger)) => Some(ledger),
            _ => None,
        };
        let has_dropped = |block| dropped.is_some_and(|ledger| ledger.has_dropped(block));
        let ranks = match lies {
            true => Ok(()),
            false => check_ranks(&before.0, &look.view, has_dropped),
        };
        let checked = check_bounds(&look.view, config)
            .and_then(|()| check_memory(&look.view, look.memory))
            .and_then(|()| self.look_at_parts(station, &look))
            .and(ranks)
            .and_then(|()| self.look_at_flows(station, &look, &before.1));
        self.last[station] = (look.view, look.stats);
        checked.map_err(name)?;
        let is_sure = self.trusted && !lies;
        if is_sure { self.check_belief(station).map_err(name) } else { Ok(()) }
    }

    /// What is kept of peers' chunks is what they have sent.
    fn look_at_parts(&mut self, station: usize, look: &Look) -> Result<(), Broken> {
        if !self.trusted {
            return Ok(());
        }
        let (pair, places) = (self.places[station].pair, &self.places);
        let is = |place: &Place, peer: StationId| place.pair == pair && place.id == peer;
        let sender = |peer| Some((places.iter().position(|place| is(place, peer))?, 0));
        self.parts.look((station, 0), (&look.view, look.stats.symbols_cut), sender)
    }

    fn look_at_flows(&mut self, station: usize, look: &Look, before: &Stats) -> Result<(), Broken> {
        let Look { view, stats, delivered, timer, .. } = look;
        let Some(peer) = self.peer(station) else {
            return ensure(delivered.is_empty(), Invariant::Delivery, || {
                "a helper delivers packets".to_owned()
            });
        };
        let from = self.places[peer].id.0;
        let end = self.places[station].end.unwrap_or_default();
        if !self.trusted {
            return Ok(());
        }
        match self.flows.get_mut(&station) {
            Some(Flow::Coded(ledger)) => ledger.look_at_sender(view, before, stats, *timer)?,
            Some(Flow::Window(ledger)) => ledger.look_at_sender(view, before, stats)?,
            Some(Flow::Plain(flow)) => flow.waiting = view.ingress_packets,
            Some(Flow::Mute) | None => {}
        }
        match self.flows.get_mut(&peer) {
            Some(Flow::Coded(ledger)) => {
                let most = ledger.packets_at_once_max();
                ensure(delivered.len() <= most, Invariant::Bounds, || {
                    format!("{} packets came out at once, at most {most} may", delivered.len())
                })?;
                let given_up = stats.symbols_given_up - before.symbols_given_up;
                ledger.look_at_receiver(view, from, delivered, given_up)
            }
            Some(Flow::Window(ledger)) => {
                let lost = Lost {
                    given_up: stats.symbols_given_up - before.symbols_given_up,
                    not_expanded: stats.packets_not_expanded - before.packets_not_expanded,
                };
                let (told, sent): (Vec<_>, Vec<_>) =
                    delivered.iter().cloned().partition(|packet| is_bare(packet));
                let known = ledger.clamped;
                ledger.look_at_receiver(view, from, &sent, lost)?;
                let told_right = told.iter().all(|packet| is_update(packet, end));
                ensure(told_right, Invariant::Delivery, || {
                    format!("end {end} is told what cannot be: {told:02x?}")
                })?;
                let seen = (ledger.clamped - known, told.len() as u64);
                let counted = (
                    stats.windows_clamped - before.windows_clamped,
                    stats.window_updates_sent - before.window_updates_sent,
                );
                ensure(seen == counted, Invariant::Accounting, || {
                    format!("{seen:?} windows clamped and updates, {counted:?} counted")
                })
            }
            Some(Flow::Plain(flow)) => {
                delivered.iter().try_for_each(|packet| flow.take(packet, self.ordered))
            }
            Some(Flow::Mute) => ensure(delivered.is_empty(), Invariant::Delivery, || {
                "packets of a window came out of blocks".to_owned()
            }),
            None => Ok(()),
        }
    }

    /// Checks, from both sides, that no sender assumes more than its receiver has.
    fn check_belief(&self, station: usize) -> Result<(), Broken> {
        let Some(peer) = self.peer(station) else { return Ok(()) };
        for (sender, receiver) in [(station, peer), (peer, station)] {
            if let Some(Flow::Coded(ledger)) = self.flows.get(&sender) {
                ledger.check_belief(&self.last[sender].0, &self.last[receiver].0)?;
            }
        }
        Ok(())
    }

    // ---- the end ------------------------------------------------------------------------------

    /// Whether the fate of every packet is known, and no station has work left.
    pub(super) fn is_at_rest(&self) -> bool {
        self.waiting() == 0
    }

    /// Packets whose fate is unknown, and dimensions that encoders still owe.
    fn waiting(&self) -> usize {
        self.packets_waiting()
            + self.flows.keys().map(|&station| self.missing(station)).sum::<usize>()
    }

    fn packets_waiting(&self) -> usize {
        self.flows.values().map(Flow::waiting).sum()
    }

    /// Dimensions that a station's decoder lacks, as far as the station knows.
    fn missing(&self, station: usize) -> usize {
        self.missing_of_blocks(station).map(|(_, missing)| missing).sum()
    }

    /// The same of each open block, by its number.
    fn missing_of_blocks(&self, station: usize) -> impl Iterator<Item = (u16, usize)> + '_ {
        let encoder = self.last[station].0.encoder.as_ref();
        let blocks = encoder.into_iter().flat_map(|encoder| &encoder.blocks);
        blocks.map(|block| (block.block, block.symbols.saturating_sub(block.rank)))
    }

    /// What is not at rest, for display.
    pub(super) fn what_waits(&self, stations: &[Option<&Station>]) -> String {
        let flows = self.flows.iter().map(|(&station, flow)| {
            let (waiting, missing) = (flow.waiting(), self.missing(station));
            format!("{waiting} packets and {missing} dimensions of station {station}")
        });
        let flows: Vec<String> = flows.collect();
        let states = stations.iter().flatten().enumerate();
        let states = states.map(|(at, station)| format!("\n{at}: {:?}", station.inspect()));
        format!("still waiting: {}{}", flows.join(", "), states.collect::<String>())
    }

    /// The final checks.
    pub(super) fn close(&self, scenario: &Scenario) -> Result<(), Broken> {
        if !self.trusted {
            return Ok(());
        }
        ensure(self.is_at_rest(), Invariant::Stuck, || {
            "what was at rest woke up again".to_owned()
        })?;
        for flow in self.flows.values() {
            if let Flow::Window(ledger) = flow {
                ledger.close()?;
            }
        }
        if !self.perfect {
            return Ok(());
        }
        for (station, flow) in &self.flows {
            let (accepted, delivered, given_up) = match flow {
                Flow::Coded(ledger) => (
                    ledger.packets() as u64,
                    ledger.count(Fate::Delivered),
                    ledger.given_up_by_sender + ledger.count(Fate::GivenUp),
                ),
                // Packets that the ingress queue dropped to signal congestion are not lost.
                Flow::Window(ledger) => (
                    ledger.placed(),
                    ledger.count(Fate::Delivered),
                    ledger.given_up_by_sender + ledger.count(Fate::GivenUp),
                ),
                Flow::Plain(flow) => (flow.accepted as u64, flow.delivered as u64, 0),
                Flow::Mute => continue,
            };
            if scenario.speak_differently(self.places[*station].pair) {
                continue;
            }
            ensure((delivered, given_up) == (accepted, 0), Invariant::Perfection, || {
                format!(
                    "{delivered} of {accepted} packets of station {station} came out, {given_up} \
                     were given up; seed {}",
                    scenario.seed
                )
            })?;
        }
        Ok(())
    }

    /// Counts the packets' fates.
    pub(super) fn count(&self, coverage: &mut Coverage) {
        let coded = self.flows.values().filter_map(|flow| match flow {
            Flow::Coded(ledger) => Some(ledger),
            _ => None,
        });
        for ledger in coded {
            coverage.add(Feature::PacketsGivenUpReceiver, ledger.count(Fate::GivenUp));
            coverage.add(Feature::PacketsGivenUpSender, ledger.given_up_by_sender);
            coverage.add(Feature::PacketsDied, ledger.count(Fate::Died));
            coverage.add(Feature::PacketsRepeated, ledger.repeated);
        }
        let window = self.flows.values().filter_map(|flow| match flow {
            Flow::Window(ledger) => Some(ledger),
            _ => None,
        });
        for ledger in window {
            coverage.add(Feature::WindowGivenUpReceiver, ledger.count(Fate::GivenUp));
            coverage.add(Feature::WindowGivenUpSender, ledger.given_up_by_sender);
            coverage.add(Feature::WindowRepeated, ledger.repeated);
            coverage.add(Feature::WindowWrapped, u64::from(ledger.wrapped));
        }
    }
}

/// The acknowledgments in an unsealed frame.
fn acks(clear: &[u8]) -> impl Iterator<Item = Ack> {
    let header = Header::parse(clear);
    let chunks = header.map_or(&[][..], |it| &clear[it.clear_len()..clear.len() - TAG_LEN]);
    let chunks = Chunks::new(chunks).flatten().filter(|chunk| chunk.kind == Kind::Ack);
    chunks.filter_map(|chunk| chunk.read(Ack::parse))
}

/// The least that has waited: packets, and dimensions of each open block. Not their sum, which a
/// new block raises by all its dimensions, and which then takes long to fall below what it was.
pub(super) struct Least {
    packets: usize,
    blocks: BTreeMap<(usize, u16), usize>,
}

impl Least {
    pub(super) fn new() -> Self {
        Least { packets: usize::MAX, blocks: BTreeMap::new() }
    }

    /// Whether less waits: fewer packets than ever, or fewer dimensions of an open block.
    pub(super) fn falls(&mut self, books: &Books) -> bool {
        let packets = books.packets_waiting();
        let fewer = packets < self.packets;
        self.packets = self.packets.min(packets);
        let before = std::mem::take(&mut self.blocks);
        let mut has_more_rank = false;
        for &station in books.flows.keys() {
            for (block, missing) in books.missing_of_blocks(station) {
                // A block that has just opened is no progress.
                let least = before.get(&(station, block)).copied().unwrap_or(missing);
                has_more_rank |= missing < least;
                self.blocks.insert((station, block), least.min(missing));
            }
        }
        fewer || has_more_rank
    }
}

impl Flow {
    fn waiting(&self) -> usize {
        match self {
            Flow::Coded(ledger) => ledger.waiting(),
            Flow::Window(ledger) => ledger.waiting(),
            Flow::Plain(flow) => flow.waiting,
            Flow::Mute => 0,
        }
    }
}

impl PlainFlow {
    /// A packet was delivered: it must have been sent, not delivered before, and, where the network
    /// keeps the order, follow the one before.
    fn take(&mut self, packet: &[u8], ordered: bool) -> Result<(), Broken> {
        let sent = self.packets.get_mut(packet);
        let fresh = sent.and_then(|sent| sent.iter_mut().find(|(_, out)| !out));
        let Some((number, out)) = fresh else {
            let text = format!("delivered {packet:02x?}, which was not sent, or came out before");
            return Err((Invariant::Delivery, text));
        };
        *out = true;
        let (number, newest) = (*number, self.newest);
        self.delivered += 1;
        self.newest = newest.max(number);
        ensure(!ordered || number >= newest, Invariant::Delivery, || {
            format!("packet {number} came out behind {newest}")
        })
    }
}

impl Ledger {
    fn packets_at_once_max(&self) -> usize {
        let (block_size, symbol_size) = self.sizes();
        egress_packets_max(block_size, symbol_size)
    }
}
