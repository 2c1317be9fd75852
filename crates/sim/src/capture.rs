//! Captures: everything that was on the air in one replication, unsealed, in a file for Wireshark.
//!
//! The simulator knows the stations' secret, so [`Capture`] writes cleartext: it watches the radio
//! of a [`Network`](crate::Network) and writes every transmission once, at the end of its airtime,
//! with its outcome at each station in reach (`capture/radio.rs` has the layout). For radios with a
//! standard's MAC it writes that standard's frames (`capture/frames.rs`); for other networks, the
//! IP packets that pass some of the nodes (`capture/hosts.rs`).

mod frames;
mod hosts;
mod pcapng;
mod radio;

use core::time::Duration;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::rc::Rc;

use corridor_air::{Address, Transmission};
use corridor_base::Time;
use corridor_proto::wire::{Chunks, Header, Kind, TAG_LEN};
use corridor_proto::{Field, FrameOutcome, Rejection, StationId, Unsealer};
use corridor_scenario::{Air, Load, Point, Run, Scenario};

use crate::core::agent::NodeIndex;
use crate::core::network::Frame;
use crate::core::watch::{Reception, SymbolCounts, Watcher};
use crate::plan::SimError;
use crate::plan::flows::Prepared;
use crate::plan::tunnel::{self, PSK, WARM_UP};
use frames::FrameCapture;
pub use hosts::{CapturedFlow, NetworkCapture};
use pcapng::{LINKTYPE_ETHERNET, PcapngWriter};
use radio::{CaptureHeader, Fate, Hearer};

/// Most ranks to remember; those of the oldest blocks are forgotten first.
const RANKS_MAX: usize = 4_096;

/// Which part of a replication to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureLimits {
    /// Nothing that ended before this.
    pub from: Time,
    /// Nothing that ended at or after this.
    pub until: Time,
    /// Transmissions written at most.
    pub frames_max: u64,
}

impl Default for CaptureLimits {
    /// No limits.
    fn default() -> Self {
        CaptureLimits { from: Time::ZERO, until: Time::MAX, frames_max: u64::MAX }
    }
}

/// What a capture contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Transmissions written.
    pub frames: u64,
    /// Of these, frames that could not be unsealed.
    pub sealed: u64,
}

/// Why a capture failed, or ends early.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The run cannot be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The capture cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Runs `run` over its path as [`run_radio`](crate::run_radio) does, and writes what was on the air
/// to `out`, as a pcapng file of Ethernet frames whose comment says which run it shows. The same
/// arguments give the same bytes.
///
/// # Errors
/// [`CaptureError::Sim`] as for `run_radio`; [`CaptureError::Write`] when `out` refuses.
pub fn capture_udp(
    scenario: &Scenario,
    run: &Run,
    limits: CaptureLimits,
    comment: &str,
    out: impl Write + 'static,
) -> Result<CaptureCounts, CaptureError> {
    capture_udp_after(scenario, run, WARM_UP, limits, comment, Box::new(out))
}

fn capture_udp_after(
    scenario: &Scenario,
    run: &Run,
    warm_up: Duration,
    limits: CaptureLimits,
    comment: &str,
    out: Box<dyn Write>,
) -> Result<CaptureCounts, CaptureError> {
    let capture = Rc::new(RefCell::new(Capture::new(out, comment, limits)?));
    tunnel::watch(scenario, run, warm_up, Box::new(Rc::clone(&capture)))?;
    let mut capture = capture.borrow_mut();
    capture.finish()
}

/// Captures a replication of a point of a plan: a radio as [`capture_udp`] does, other networks at
/// the nodes `at`. Without any node given, it captures all 802.11 or 802.15.4 frames of radios with
/// a standard's MAC, and in other networks what passes the nodes where flows begin.
///
/// # Errors
/// [`CaptureError::Sim`] as for [`run`](crate::run()); [`SimError::Unsupported`] for nodes that a
/// network does not have, or of a radio; [`CaptureError::Write`] when `out` refuses.
pub fn capture_point(
    point: &Point,
    replication: u64,
    at: &[NodeIndex],
    limits: CaptureLimits,
    comment: &str,
    out: impl Write + 'static,
) -> Result<CaptureCounts, CaptureError> {
    match &point.load {
        Load::Radio(radio) => {
            if let Some(&node) = at.first() {
                return Err(no_such_node(
                    node,
                    "captures of radios without it: everything is heard",
                )
                .into());
            }
            let scenario = Scenario { seed: point.seed, ..radio.scenario.clone() };
            let run = Run { replication, ..radio.run.clone() };
            let warm_up = Duration::from_nanos((radio.warm_up_s * 1e9).round() as u64);
            capture_udp_after(&scenario, &run, warm_up, limits, comment, Box::new(out))
        }
        Load::Network(network) => {
            if let Some(&node) = at.iter().find(|&&node| node as usize >= network.nodes) {
                return Err(no_such_node(node, "captures at nodes that the network has").into());
            }
            let prepared = Prepared::new(network, point.seed)?;
            let macs = network.radios.iter().map(|cell| match &cell.air {
                Air::Mac(config) => Some((&config.mac, cell.nodes.as_slice())),
                Air::Ideal(_) => None,
            });
            let macs: Option<Vec<_>> = macs.collect();
            if let Some(macs) = macs.filter(|macs| at.is_empty() && !macs.is_empty()) {
                let payloads = prepared.payloads().collect();
                let out = Box::new(out);
                let capture = FrameCapture::new(out, comment, &macs, payloads, limits)?;
                let watcher = capture.watcher();
                watch_network(&prepared, (point.seed, replication), network.duration, watcher)?;
                return Ok(capture.finish()?);
            }
            let nodes = if at.is_empty() { prepared.sources() } else { at.to_vec() };
            let flow = |(flow, payload_bytes)| CapturedFlow { flow, payload_bytes };
            let flows: Vec<_> = prepared.payloads().map(flow).collect();
            let capture = NetworkCapture::new(out, comment, &nodes, &flows, limits)?;
            let watcher = capture.watcher();
            watch_network(&prepared, (point.seed, replication), network.duration, watcher)?;
            Ok(capture.finish()?)
        }
    }
}

/// Runs a network with a watcher until it has seen enough.
fn watch_network(
    prepared: &Prepared,
    (seed, replication): (u64, u64),
    duration: Duration,
    watcher: Box<dyn Watcher>,
) -> Result<(), SimError> {
    let mut running = prepared.to_be_watched(seed, replication)?;
    running.set_watcher(watcher);
    let end = Time::ZERO + duration;
    while !running.is_watched_enough() && running.next_event().is_some_and(|at| at <= end) {
        running.step();
    }
    Ok(())
}

fn no_such_node(node: NodeIndex, expected: &'static str) -> SimError {
    SimError::Unsupported { field: "at", given: node.to_string(), expected }
}

/// The watcher that writes what it sees.
struct Capture {
    writer: PcapngWriter<Box<dyn Write>>,
    interface: u32,
    limits: CaptureLimits,
    counts: CaptureCounts,
    unsealer: Unsealer,
    /// Transmissions that some station in reach has not heard yet, in order of their ends.
    waiting: VecDeque<Waiting>,
    ranks: Ranks,
    /// Whether a transmission after the window has been handled.
    is_past: bool,
    frame: Vec<u8>,
    head: Vec<u8>,
    failed: Option<io::Error>,
}

struct Waiting {
    sent: Transmission<Frame>,
    fates: Vec<Hearer>,
    /// The frame's bytes, unsealed.
    clear: Vec<u8>,
    sealed_by: Option<StationId>,
    /// Flow and block of the frame's symbol.
    block: Option<(StationId, u16)>,
    coding: Option<(u8, u16)>,
}

impl Waiting {
    fn outstanding(&mut self) -> Option<&mut Hearer> {
        self.fates.iter_mut().find(|hearer| hearer.fate == Fate::OnItsWay)
    }
}

impl Watcher for Rc<RefCell<Capture>> {
    fn take_transmission(&mut self, _radio: usize, sent: Transmission<Frame>) {
        self.borrow_mut().take_transmission(sent);
    }

    fn take_reception(&mut self, reception: &Reception) {
        self.borrow_mut().take_reception(reception);
    }

    fn has_enough(&self) -> bool {
        self.borrow().has_enough()
    }
}

impl Capture {
    fn new(out: Box<dyn Write>, comment: &str, limits: CaptureLimits) -> io::Result<Self> {
        let mut writer = PcapngWriter::new(out, comment)?;
        let interface =
            writer.interface(LINKTYPE_ETHERNET, "radio", "everything on the air, unsealed")?;
        Ok(Capture {
            writer,
            interface,
            limits,
            counts: CaptureCounts::default(),
            unsealer: Unsealer::new(PSK),
            waiting: VecDeque::new(),
            ranks: Ranks::default(),
            is_past: false,
            frame: Vec::new(),
            head: Vec::new(),
            failed: None,
        })
    }

    /// Frames before the window matter too: sessions and ranks begin with them.
    fn take_transmission(&mut self, sent: Transmission<Frame>) {
        let Frame::Sealed(frame) = &sent.frame else { return };
        let mut clear = core::mem::take(&mut self.frame);
        let sealed_by = self.unsealer.unseal(frame, &mut clear);
        let block = sealed_by.and_then(|_| symbol_of(&clear));
        let flow = block.map(|(flow, _)| flow).or(sealed_by);
        let coding = flow.and_then(|flow| self.unsealer.coding(flow));
        let fates = sent.hearers.iter().map(|&(station, heard)| Hearer {
            station: number(station),
            fate: if heard { Fate::OnItsWay } else { Fate::Lost },
            rank: None,
        });
        self.waiting.push_back(Waiting {
            fates: fates.collect(),
            clear,
            sealed_by,
            block,
            coding: coding.map(|(field, block_size)| (coefficient_bits(field), block_size)),
            sent,
        });
        self.write_complete();
    }

    /// All transmissions have the same propagation delay, so they are heard in the order in which
    /// they end.
    fn take_reception(&mut self, reception: &Reception) {
        let Some(waiting) = self.waiting.front_mut() else { return };
        let block = waiting.block;
        debug_assert_eq!(waiting.sent.from, reception.from);
        let Some(hearer) = waiting.outstanding() else { return };
        debug_assert_eq!(hearer.station, number(reception.to));
        hearer.fate = fate(reception.outcome, &reception.symbols);
        if let Some((flow, block)) = block {
            hearer.rank = self.ranks.after((hearer.station, flow, block), hearer.fate);
        }
        self.write_complete();
    }

    /// What was sent within the window is written once every station in reach has heard it.
    fn has_enough(&self) -> bool {
        let late = |waiting: &Waiting| waiting.sent.ended_at >= self.limits.until;
        self.failed.is_some()
            || self.counts.frames >= self.limits.frames_max
            || self.is_past
            || self.waiting.front().is_some_and(late)
    }

    fn write_complete(&mut self) {
        while self.waiting.front_mut().is_some_and(|waiting| waiting.outstanding().is_none()) {
            self.write_front();
        }
    }

    fn write_front(&mut self) {
        let Some(waiting) = self.waiting.pop_front() else { return };
        let at = waiting.sent.ended_at;
        self.is_past |= at >= self.limits.until;
        let wanted = at >= self.limits.from && !self.is_past;
        if wanted && self.failed.is_none() && self.counts.frames < self.limits.frames_max {
            self.counts.frames += 1;
            self.counts.sealed += u64::from(waiting.sealed_by.is_none());
            self.failed = self.write(&waiting).err();
        }
        self.frame = waiting.clear;
    }

    fn write(&mut self, waiting: &Waiting) -> io::Result<()> {
        let sent = &waiting.sent;
        let header = CaptureHeader {
            unsealed: waiting.sealed_by.is_some(),
            from: number(sent.from),
            to: match sent.to {
                Address::Station(to) => Some(number(to)),
                Address::All => None,
            },
            retransmissions: sent.retransmissions,
            coding: waiting.coding,
            airtime_ns: (sent.ended_at - sent.began_at).as_nanos() as u64,
            hearers: waiting.fates.clone(),
        };
        header.write(&mut self.head);
        let len = self.head.len() + waiting.clear.len();
        let place = (self.interface, sent.ended_at.as_nanos());
        self.writer.packet(place, &[&self.head, &waiting.clear], len, "")
    }

    /// Writes transmissions that are still on their way.
    fn finish(&mut self) -> Result<CaptureCounts, CaptureError> {
        while !self.waiting.is_empty() {
            self.write_front();
        }
        match self.failed.take() {
            Some(failed) => Err(failed.into()),
            None => {
                self.writer.flush()?;
                Ok(self.counts)
            }
        }
    }
}

/// Station numbers count from 1, places on the medium from 0; there are fewer than 65536.
fn number(place: usize) -> u16 {
    u16::try_from(place + 1).unwrap_or(u16::MAX)
}

fn coefficient_bits(field: Field) -> u8 {
    match field {
        Field::Gf2 => 1,
        Field::Gf16 => 4,
        Field::Gf256 => 8,
    }
}

/// Flow and block of the symbol of a block in an unsealed frame.
fn symbol_of(clear: &[u8]) -> Option<(StationId, u16)> {
    let header = Header::parse(clear)?;
    let body = clear.get(header.clear_len()..clear.len() - TAG_LEN)?;
    match *Chunks::find(body, Kind::Enc)?.body {
        [flow_high, flow_low, high, low, ..] => {
            let flow = u16::from_be_bytes([flow_high, flow_low]);
            Some((StationId(flow), u16::from_be_bytes([high, low])))
        }
        _ => None,
    }
}

fn fate(outcome: FrameOutcome, symbols: &SymbolCounts) -> Fate {
    match outcome {
        FrameOutcome::Rejected(Rejection::NotForUs) => Fate::NotForUs,
        FrameOutcome::Rejected(_) => Fate::Rejected,
        _ if symbols.innovative > 0 => Fate::Innovative,
        _ if symbols.dependent > 0 => Fate::Dependent,
        _ if symbols.late > 0 => Fate::Late,
        _ if symbols.refused > 0 => Fate::Refused,
        _ => Fate::Heard,
    }
}

/// A station, and the flow and block of which it has a rank.
type RankKey = (u16, StationId, u16);

/// Ranks of the stations, counted from the symbols that raised them.
#[derive(Default)]
struct Ranks {
    /// By station, flow and block.
    ranks: BTreeMap<RankKey, u16>,
    /// Keys of `ranks`, the oldest first.
    ages: VecDeque<RankKey>,
}

impl Ranks {
    /// The rank of (station, flow, block) after a symbol with this fate; `None` if the symbol says
    /// nothing about the rank.
    fn after(&mut self, key: RankKey, fate: Fate) -> Option<u16> {
        if !matches!(fate, Fate::Innovative | Fate::Dependent) {
            return None;
        }
        if self.ages.len() >= RANKS_MAX
            && !self.ranks.contains_key(&key)
            && let Some(oldest) = self.ages.pop_front()
        {
            self.ranks.remove(&oldest);
        }
        let rank = self.ranks.entry(key).or_insert_with(|| {
            self.ages.push_back(key);
            0
        });
        *rank += u16::from(fate == Fate::Innovative);
        Some(*rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_scenario::expand;

    const SCENARIO: &str = "name = 't'\nseed = 5\n[medium]\nduplex = 'half'\n\
        rate_bps = 12000000\noverhead_us = 400\nrtt_ms = 4\nqueue_frames = 4\n[[run]]\n\
        path = 'coded+helper'\ntransport = 'udp'\noffered_bps = 3e6\ne3 = 0.4\n\
        direction = 'both'\nduration_s = 1\n";

    /// Counts what it is shown, and looks at it.
    #[derive(Default)]
    struct Seen {
        transmissions: u64,
        heard: u64,
        receptions: u64,
        innovative: u64,
    }

    impl Watcher for Rc<RefCell<Seen>> {
        fn take_transmission(&mut self, _radio: usize, sent: Transmission<Frame>) {
            let mut seen = self.borrow_mut();
            seen.transmissions += 1;
            seen.heard += sent.hearers.iter().filter(|(_, heard)| *heard).count() as u64;
        }

        fn take_reception(&mut self, reception: &Reception) {
            let mut seen = self.borrow_mut();
            seen.receptions += 1;
            seen.innovative += reception.symbols.innovative;
        }

        fn has_enough(&self) -> bool {
            false
        }
    }

    #[test]
    fn watching_changes_nothing_and_misses_nothing() {
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let run = &expand(&scenario).unwrap()[0];
        let seen = Rc::new(RefCell::new(Seen::default()));
        let row = tunnel::watch(&scenario, run, WARM_UP, Box::new(Rc::clone(&seen))).unwrap();
        assert_eq!(row, crate::run_radio(&scenario, run).unwrap());
        let seen = seen.borrow();
        let frames = row.air_frames_per_packet.unwrap();
        assert!(seen.transmissions > 1_000 && frames > 0.0);
        assert_eq!(seen.heard, seen.receptions);
        assert!(seen.innovative > 500 && seen.innovative < seen.receptions);

        let limits = CaptureLimits::default();
        let counts = capture_udp(&scenario, run, limits, "", io::sink()).unwrap();
        assert_eq!(counts, CaptureCounts { frames: seen.transmissions, sealed: 0 });
    }

    #[test]
    fn a_file_that_takes_nothing_is_an_error() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let scenario = Scenario::parse(SCENARIO).unwrap();
        let run = &expand(&scenario).unwrap()[0];
        let refused = capture_udp(&scenario, run, CaptureLimits::default(), "", Full);
        assert!(matches!(refused, Err(CaptureError::Write(_))), "{refused:?}");
    }

    #[test]
    fn ranks_count_innovative_symbols_and_the_oldest_are_forgotten() {
        let mut ranks = Ranks::default();
        assert_eq!(ranks.after((1, StationId(2), 3), Fate::Innovative), Some(1));
        assert_eq!(ranks.after((1, StationId(2), 3), Fate::Dependent), Some(1));
        assert_eq!(ranks.after((1, StationId(2), 3), Fate::Late), None);
        assert_eq!(ranks.after((2, StationId(2), 3), Fate::Innovative), Some(1));
        assert_eq!(ranks.after((1, StationId(2), 3), Fate::Innovative), Some(2));
        for block in 0..RANKS_MAX as u16 {
            ranks.after((9, StationId(9), block), Fate::Innovative);
            assert!(ranks.ranks.len() <= RANKS_MAX && ranks.ages.len() == ranks.ranks.len());
        }
        assert_eq!(ranks.after((1, StationId(2), 3), Fate::Dependent), Some(0));
    }
}
