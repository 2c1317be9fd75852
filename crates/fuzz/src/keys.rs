//! Two stations with key pairs of their own, or two ends and their helper, and what happens to the
//! frames between them.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::wire::{KeyExchange, Step};
use corridor_proto::{FrameOutcome, Role, Station, StationId};
use corridor_testbed::config::clocks;
use corridor_testbed::{Air, Bed, Logged};

use crate::input::{Input, keyed};

/// Frames that are remembered, for replay.
const RECORDED_MAX: usize = 64;
/// Maximum number of steps: each may cost a Diffie-Hellman exchange.
const STEPS_MAX: usize = 48;

const ENDS: [StationId; 2] = [StationId(1), StationId(2)];
const HELPER: StationId = StationId(3);

/// Stations that hear each other, and the frames that they have sent.
struct Cell {
    bed: Bed<Air>,
    recorded: Vec<Vec<u8>>,
    handouts: usize,
}

/// The station at `index` of `count`.
fn station(index: usize, count: usize, run: u8, clock: u64, now: Time) -> Station {
    let ids = [ENDS[0], ENDS[1], HELPER];
    let peers: Vec<_> = (0..count).filter(|&at| at != index).map(|at| ids[at]).collect();
    let mut config = keyed(ids[index], &peers);
    if count > ENDS.len() {
        config.role = match index {
            0 | 1 => Role::Endpoint { peer: ENDS[1 - index], helper: Some(HELPER) },
            _ => Role::Helper { between: (ENDS[0], ENDS[1]) },
        };
    }
    let entropy = core::array::from_fn(|at| [index as u8, run][at % 2]);
    Station::new(config, entropy, clocks(clock, now)).expect("a sound configuration")
}

/// Interprets `data` as events at stations and of the frames between them: these arrive, get lost,
/// are delayed, replayed, altered or invented; time passes; stations restart. Returns how many
/// secrets handed out by a station were among the frames.
///
/// # Panics
/// If a station accepts a frame that no other has made unaltered, if one reports another as present
/// without having heard from it, or if they do not establish sessions in the end.
pub fn keys(data: &[u8]) -> usize {
    let mut input = Input::new(data);
    let count = if input.below(4) == 0 { 3 } else { 2 };
    let stations = (0..count).map(|index| station(index, count, 0, 1_000, Time::ZERO));
    let bed = Bed::new(stations, Air::new(Duration::ZERO));
    let mut cell = Cell { bed, recorded: Vec::new(), handouts: 0 };
    for run in 1..STEPS_MAX as u8 {
        if input.is_empty() {
            break;
        }
        let index = input.below(count);
        match input.below(16) {
            0..=7 => cell.exchange(Duration::ZERO),
            8 => cell.bed.now += Duration::from_millis(input.u32().into()) / 1_024,
            9 => cell.bed.now += Duration::from_secs(input.byte().into()),
            10 => cell.lose(index),
            11 => {
                let again = station(index, count, run, input.u32().into(), cell.bed.now);
                cell.bed.start(index, again);
            }
            12 if !cell.recorded.is_empty() => {
                let at = input.below(cell.recorded.len());
                cell.bed.hear(index, &cell.recorded[at]);
            }
            13 | 14 if !cell.recorded.is_empty() => {
                let at = input.below(cell.recorded.len());
                let mut frame = cell.recorded[at].clone();
                let place = input.below(256) % frame.len();
                frame[place] ^= 1 + input.byte() % 255;
                cell.refuses(index, &frame);
            }
            _ => {
                let (first, len) = (input.byte(), input.byte());
                let mut frame = input.vec(usize::from(len));
                frame.extend([0x27, first].iter().take(1 + usize::from(len) % 2));
                frame.rotate_right(1);
                cell.refuses(index, &frame);
            }
        }
        cell.check();
    }
    // Nothing is lost for as long as a station waits that does not know of another's restart.
    for _ in 0..2_000 {
        cell.exchange(Duration::from_millis(10));
    }
    assert!(cell.bed.all_up(), "they do not find each other");
    cell.handouts
}

impl Cell {
    /// Time passes, and then all pending frames arrive.
    fn exchange(&mut self, span: Duration) {
        self.bed.world.log = Some(Vec::new());
        self.bed.tick(span);
        for Logged { frame, .. } in self.bed.world.log.take().unwrap_or_default() {
            let step = KeyExchange::parse(&frame).map(|message| message.step);
            self.handouts += usize::from(step == Some(Step::Handout));
            if self.recorded.len() < RECORDED_MAX && !self.recorded.contains(&frame) {
                self.recorded.push(frame);
            }
        }
    }

    /// A station's pending frames get lost.
    fn lose(&mut self, index: usize) {
        self.bed.world.passes = Box::new(|_| false);
        self.bed.settle(index);
        self.bed.world.passes = Box::new(|_| true);
    }

    /// A frame that nobody has made.
    fn refuses(&mut self, index: usize, frame: &[u8]) {
        let outcome = self.bed.hear(index, frame);
        let len = frame.len();
        assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{outcome:?} for {len} bytes");
        self.bed[index].examine(frame);
    }

    /// A station reported as present has been heard. A pair knows its secret; in a cell it may
    /// have to be requested again.
    fn check(&self) {
        for (index, station) in self.bed.stations().enumerate() {
            for peer in station.peers() {
                let is_known = match self.bed.delivered.len() {
                    2 => peer.agreed_at.is_some(),
                    _ => peer.last_heard.is_some(),
                };
                assert!(!peer.is_up || is_known, "up without a secret at {index}");
            }
            let due = station.poll_timeout();
            assert!(due.is_some(), "nothing is due any more at {index}");
        }
    }
}
