//! Replay protection: each frame counter of a session counts once, and so does each packet number
//! of an end.

use crate::bounds::REPLAY_WINDOW;

const WINDOW: u64 = REPLAY_WINDOW as u64;
const REPLAY_WORDS: usize = REPLAY_WINDOW as usize / 64;

/// Which of the last [`REPLAY_WINDOW`] counters were received (RFC 6479).
pub(crate) struct ReplayWindow {
    highest: u64,
    heard: [u64; REPLAY_WORDS],
}

impl ReplayWindow {
    /// A window that accepts nothing up to and including `counter`.
    pub(crate) fn starting_at(counter: u64) -> Self {
        ReplayWindow { highest: counter, heard: [u64::MAX; REPLAY_WORDS] }
    }

    /// Whether the counter is new; records it.
    pub(crate) fn accept(&mut self, counter: u64) -> bool {
        if counter > self.highest {
            let steps = (counter - self.highest).min(WINDOW);
            if steps == WINDOW {
                self.heard.fill(0);
            }
            for step in 0..steps % WINDOW {
                let cleared = counter - step;
                self.heard[Self::word(cleared)] &= !(1 << (cleared % 64));
            }
            self.highest = counter;
        } else if self.highest - counter >= WINDOW {
            return false;
        }
        let (word, bit) = (Self::word(counter), 1 << (counter % 64));
        let new = self.heard[word] & bit == 0;
        self.heard[word] |= bit;
        new
    }

    fn word(counter: u64) -> usize {
        (counter / 64) as usize % REPLAY_WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replay_window_takes_each_counter_once() {
        let mut window = ReplayWindow::starting_at(10);
        assert!(!window.accept(10) && !window.accept(3));
        assert!(window.accept(12) && window.accept(11));
        assert!(!window.accept(12) && !window.accept(11));
        assert!(window.accept(12 + WINDOW));
        assert!(!window.accept(12), "too old to tell");
        assert!(window.accept(13), "inside the window, never heard");
        assert!(window.accept(u64::MAX));
    }
}
