//! Two stations with keys of their own, or two ends and their helper, and what becomes of the
//! frames between them.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::wire::{KeyExchange, Step};
use corridor_proto::{Clocks, FrameOutcome, Role, Station, StationId};

use crate::input::{Input, keyed};

/// Frames that are remembered, to be heard again.
const RECORDED_MAX: usize = 64;
/// Things that happen at most: each may cost Diffie-Hellman.
const STEPS_MAX: usize = 48;

const ENDS: [StationId; 2] = [StationId(1), StationId(2)];
const HELPER: StationId = StationId(3);

/// Stations that hear each other, so many as there are, and what they have said.
struct Cell {
    now: Time,
    stations: Vec<Station>,
    recorded: Vec<Vec<u8>>,
    handouts: usize,
}

/// The station at `index` of so many.
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
    let clocks = Clocks { now, wall_ns: clock + now.as_nanos() };
    Station::new(config, entropy, clocks).expect("a sound configuration")
}

/// Reads `data` as what happens to stations and to the frames between them: these arrive, get
/// lost, come late, again, changed, or are made of whole cloth; time passes; stations restart. How
/// many handouts were among the frames.
///
/// # Panics
/// When a station takes a frame that no other has made as it is, when one says that another is
/// there of which it has heard nothing, or when they do not find each other in the end.
pub fn keys(data: &[u8]) -> usize {
    let mut input = Input::new(data);
    let count = if input.below(4) == 0 { 3 } else { 2 };
    let stations = (0..count).map(|index| station(index, count, 0, 1_000, Time::ZERO)).collect();
    let mut cell = Cell { now: Time::ZERO, stations, recorded: Vec::new(), handouts: 0 };
    for run in 1..STEPS_MAX as u8 {
        if input.is_empty() {
            break;
        }
        let index = input.below(count);
        match input.below(16) {
            0..=7 => cell.exchange(),
            8 => cell.now += Duration::from_millis(input.u32().into()) / 1_024,
            9 => cell.now += Duration::from_secs(input.byte().into()),
            10 => cell.lose(index),
            11 => {
                cell.stations[index] = station(index, count, run, input.u32().into(), cell.now);
            }
            12 if !cell.recorded.is_empty() => {
                let at = input.below(cell.recorded.len());
                cell.stations[index].handle_frame(cell.now, &cell.recorded[at]);
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
    // Nothing gets lost for as long as one waits who does not know that another has restarted.
    for _ in 0..2_000 {
        cell.now += Duration::from_millis(10);
        cell.exchange();
    }
    let all_up = |station: &Station| station.peers().iter().all(|peer| peer.is_up);
    assert!(cell.stations.iter().all(all_up), "they do not find each other");
    cell.handouts
}

impl Cell {
    /// What all have to say arrives.
    fn exchange(&mut self) {
        for by in 0..self.stations.len() {
            self.stations[by].handle_timeout(self.now);
            let mut frames = Vec::new();
            while let Some(transmit) = self.stations[by].poll_transmit(self.now) {
                frames.push(transmit.frame.to_vec());
            }
            for frame in frames {
                for to in (0..self.stations.len()).filter(|&to| to != by) {
                    self.stations[to].handle_frame(self.now, &frame);
                }
                let step = KeyExchange::parse(&frame).map(|message| message.step);
                self.handouts += usize::from(step == Some(Step::Handout));
                if self.recorded.len() < RECORDED_MAX && !self.recorded.contains(&frame) {
                    self.recorded.push(frame);
                }
            }
        }
    }

    /// What one has to say gets lost.
    fn lose(&mut self, index: usize) {
        let by = &mut self.stations[index];
        by.handle_timeout(self.now);
        while by.poll_transmit(self.now).is_some() {}
    }

    /// Nobody has made such a frame.
    fn refuses(&mut self, index: usize, frame: &[u8]) {
        let end = &mut self.stations[index];
        let outcome = end.handle_frame(self.now, frame);
        let len = frame.len();
        assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{outcome:?} for {len} bytes");
        end.examine(frame);
    }

    /// Who is there was heard; of a pair the secret is known, which a cell may have to ask for
    /// again.
    fn check(&self) {
        for (index, station) in self.stations.iter().enumerate() {
            for peer in station.peers() {
                let is_known = match self.stations.len() {
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
