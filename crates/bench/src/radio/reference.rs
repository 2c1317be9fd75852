//! What this machine does in an instant: a measure of other figures of processor time.
//!
//! One processor is a third slower than another, and at times than itself. No simulator does
//! without an agenda of events: the time of one alone beside that of a simulation is a ratio that
//! the machine moves little.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Duration;

use corridor_bench::machine::cpu_time;

/// Events that wait, as many as a few hundred packets on wires are.
const WAITING: u64 = 512;
/// Events of one run.
const EVENTS: u64 = 500_000;

/// Processor time of taking the next of 512 events that wait and adding one that is random, half a
/// million times.
pub fn agenda() -> Duration {
    // A generator of Lehmer's kind: what is drawn is the same on every machine, and costs little.
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
