//! A reference for this machine's speed, as a unit for other processor times.
//!
//! One processor is a third slower than another, and at times than itself. Every simulator has an
//! event queue: the time of a simulation relative to that of an event queue alone is a ratio that
//! depends little on the machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use corridor_bench::machine::cpu_time;

/// Number of waiting events, as for a few hundred packets on wires.
const WAITING: u64 = 512;
/// Events per run.
const EVENTS: u64 = 500_000;

/// Processor time of removing the next of 512 waiting events and adding a random one, half a
/// million times.
pub fn agenda() -> Duration {
    // A Lehmer generator: it draws the same on every machine, and costs little.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state = state.wrapping_mul(0xda94_2042_e4dd_58b5);
        state >> 40
    };
    let mut agenda: BinaryHeap<_> = (0..WAITING).map(|event| Reverse((draw(), event))).collect();
    let begin = cpu_time();
    for event in WAITING..WAITING + EVENTS {
        let Some(Reverse((at, _))) = agenda.pop() else { break };
        agenda.push(Reverse((at + draw(), event)));
    }
    black_box(agenda);
    cpu_time() - begin
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_takes_some_time() {
        assert!(!super::agenda().is_zero());
    }
}
