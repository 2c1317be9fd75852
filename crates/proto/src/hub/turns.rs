//! Whose turn it is to send: deficit round robin over bytes (Shreedhar and Varghese, 1995) among
//! the neighbours that may have something to send.
//!
//! The length of a frame is known only once it is made. So a neighbour sends as long as its deficit
//! counter is positive, and any excess of its last frame is deducted from its next turns.

use std::collections::VecDeque;

use super::wakes::Wakes;
use crate::bounds::HUB_QUANTUM;

/// The turns of a hub's neighbours, by index.
pub(super) struct Turns {
    /// Neighbours that may have something to send; it is the first one's turn.
    waiting: VecDeque<usize>,
    credits: Vec<Credit>,
    /// Whose frame left last.
    left_last: Option<usize>,
    /// When their stations want to be woken.
    pub(super) wakes: Wakes,
}

#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// Bytes that it may still send.
    bytes: i64,
    waits: bool,
}

impl Turns {
    pub(super) fn new(neighbours: usize) -> Self {
        Turns {
            waiting: VecDeque::new(),
            credits: vec![Credit::default(); neighbours],
            left_last: None,
            wakes: Wakes::new(neighbours),
        }
    }

    /// A neighbour may have something to send.
    pub(super) fn enter(&mut self, place: usize) {
        let credit = &mut self.credits[place];
        if !credit.waits {
            credit.waits = true;
            self.waiting.push_back(place);
        }
    }

    /// Whose turn it is.
    pub(super) fn current(&mut self) -> Option<usize> {
        loop {
            let &place = self.waiting.front()?;
            let credit = &mut self.credits[place];
            if credit.bytes > 0 {
                return Some(place);
            }
            credit.bytes += HUB_QUANTUM;
            self.waiting.rotate_left(1);
        }
    }

    /// The neighbour whose turn it is has sent `len_bytes` bytes.
    pub(super) fn charge(&mut self, len_bytes: usize) {
        if let Some(&place) = self.waiting.front() {
            self.credits[place].bytes -= len_bytes as i64;
            self.left_last = Some(place);
        }
    }

    /// Whether another neighbour's frame, or none, was the last that left.
    pub(super) fn has_changed(&self) -> bool {
        self.waiting.front() != self.left_last.as_ref()
    }

    /// The neighbour whose turn it is has nothing to send. Credit is not saved up, debts are kept.
    pub(super) fn leave(&mut self) {
        if let Some(place) = self.waiting.pop_front() {
            let credit = &mut self.credits[place];
            *credit = Credit { bytes: credit.bytes.min(0), waits: false };
        }
    }

    /// Whether this neighbour may have something to send.
    pub(super) fn waits(&self, place: usize) -> bool {
        self.credits[place].waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shared_equally_whatever_frames_are_made_of_them() {
        let lens = [1_500, 100, 9_000];
        let mut turns = Turns::new(lens.len());
        (0..lens.len()).for_each(|place| turns.enter(place));
        let mut sent = [0; 3];
        while sent.iter().sum::<usize>() < 3_000_000 {
            let place = turns.current().unwrap();
            sent[place] += lens[place];
            turns.charge(lens[place]);
        }
        assert!(sent.iter().all(|bytes| (985_000..1_015_000).contains(bytes)), "{sent:?}");
    }

    #[test]
    fn who_comes_late_gets_no_more_than_those_who_were_there() {
        let mut turns = Turns::new(2);
        turns.enter(0);
        for _ in 0..1_000 {
            assert_eq!(turns.current(), Some(0));
            turns.charge(1_000);
            // The other one comes for one frame at a time, and leaves.
            turns.enter(1);
            while turns.current() == Some(0) {
                turns.charge(1_000);
            }
            turns.charge(1_000);
            turns.leave();
            assert!(!turns.waits(1) && turns.waits(0));
        }
        turns.enter(1);
        let mut sent = [0_u32; 2];
        for _ in 0..1_000 {
            sent[turns.current().unwrap()] += 1;
            turns.charge(1_000);
        }
        assert!(sent[0].abs_diff(sent[1]) <= 6, "{sent:?}");
    }

    #[test]
    fn nobody_has_a_turn_where_nobody_waits() {
        let mut turns = Turns::new(2);
        assert!(turns.current().is_none());
        turns.enter(1);
        turns.enter(1);
        assert_eq!(turns.current(), Some(1));
        turns.leave();
        assert!(turns.current().is_none());
    }
}
