//! Two stations with keys of their own, and what becomes of the frames between them.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{FrameOutcome, Station, StationId};

use crate::input::{Input, keyed};

/// Frames that are remembered, to be heard again.
const RECORDED_MAX: usize = 64;
/// Things that happen at most: each may cost Diffie-Hellman.
const STEPS_MAX: usize = 48;

const ENDS: [StationId; 2] = [StationId(1), StationId(2)];

fn station(index: usize, run: u8, clock: u64, now: Time) -> Station {
    let config = keyed(ENDS[index], ENDS[1 - index], clock);
    let entropy = core::array::from_fn(|at| [index as u8, run][at % 2]);
    Station::new(config, entropy, now).expect("a sound configuration")
}

/// Reads `data` as what happens to two stations and to the frames between them: these arrive, get
/// lost, come late, again, changed, or are made of whole cloth; time passes; stations restart.
///
/// # Panics
/// When a station takes a frame that the other has not made as it is, when one says that the other
/// is there of which it has heard nothing, or when the two do not find each other in the end.
pub fn keys(data: &[u8]) {
    let mut input = Input::new(data);
    let mut now = Time::ZERO;
    let mut ends = [0, 1].map(|index| station(index, 0, 1_000, now));
    let mut recorded: Vec<Vec<u8>> = Vec::new();
    for run in 1..STEPS_MAX as u8 {
        if input.is_empty() {
            break;
        }
        let index = input.below(2);
        match input.below(16) {
            0..=7 => exchange(&mut ends, &mut recorded, now),
            8 => now += Duration::from_millis(input.u32().into()) / 1_024,
            9 => now += Duration::from_secs(input.byte().into()),
            10 => {
                // Lost.
                let by = &mut ends[index];
                by.handle_timeout(now);
                while by.poll_transmit(now).is_some() {}
            }
            11 => ends[index] = station(index, run, input.u32().into(), now),
            12 if !recorded.is_empty() => {
                let at = input.below(recorded.len());
                ends[index].handle_frame(now, &recorded[at]);
            }
            13 | 14 if !recorded.is_empty() => {
                let at = input.below(recorded.len());
                let mut frame = recorded[at].clone();
                let place = input.below(256) % frame.len();
                frame[place] ^= 1 + input.byte() % 255;
                refuses(&mut ends[index], now, &frame);
            }
            _ => {
                let (first, len) = (input.byte(), input.byte());
                let mut frame = input.vec(usize::from(len));
                frame.extend([0x27, first].iter().take(1 + usize::from(len) % 2));
                frame.rotate_right(1);
                refuses(&mut ends[index], now, &frame);
            }
        }
        for (index, end) in ends.iter().enumerate() {
            let peer = end.peers()[0].clone();
            assert!(!peer.is_up || peer.agreed_at.is_some(), "up without a secret at {index}");
        }
    }
    // Nothing gets lost for as long as one waits who does not know that the other has restarted.
    for _ in 0..2_000 {
        now += Duration::from_millis(10);
        exchange(&mut ends, &mut recorded, now);
    }
    assert!(ends[0].is_up(ENDS[1]) && ends[1].is_up(ENDS[0]), "they do not find each other");
}

/// What both have to say arrives.
fn exchange(ends: &mut [Station; 2], recorded: &mut Vec<Vec<u8>>, now: Time) {
    for by in [0, 1] {
        ends[by].handle_timeout(now);
        let mut frames = Vec::new();
        while let Some(transmit) = ends[by].poll_transmit(now) {
            frames.push(transmit.frame.to_vec());
        }
        for frame in frames {
            ends[1 - by].handle_frame(now, &frame);
            if recorded.len() < RECORDED_MAX && !recorded.contains(&frame) {
                recorded.push(frame);
            }
        }
    }
}

/// Nobody has made such a frame.
fn refuses(end: &mut Station, now: Time, frame: &[u8]) {
    let outcome = end.handle_frame(now, frame);
    assert!(matches!(outcome, FrameOutcome::Rejected(_)), "{outcome:?} for {} bytes", frame.len());
    end.examine(frame);
}
