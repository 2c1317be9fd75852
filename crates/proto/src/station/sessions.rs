//! How long a station uses a session and a secret, and what it seals under.

use core::time::Duration;

use corridor_base::Time;

use super::Station;
use crate::clocks::Clocks;
use crate::psk::Psk;

impl Station {
    /// The wall clock was read: to be called now and then, as it may be set while the station runs.
    /// Where stations have keys of their own, a peer tells by it what this one says at the
    /// beginning of a key exchange from recordings of runs before.
    pub fn set_clock(&mut self, clocks: Clocks) {
        self.shared.group.set_clock(clocks);
    }

    /// Agrees on another secret after so long, where stations have keys of their own; two minutes
    /// where nobody says otherwise.
    pub fn set_rekey_interval(&mut self, interval: Duration) {
        self.shared.group.set_rekey_interval(interval);
    }

    /// Begins another session after so many frames, and not only before its nonces are used up,
    /// which takes days.
    pub fn set_session_frames(&mut self, frames: u32) {
        self.shared.group.set_session_frames(frames);
    }

    /// Says HELLO soon, whatever the peers have heard: one of them may be elsewhere now.
    pub fn greet(&mut self, now: Time) {
        self.shared.group.hurry_hello(now);
    }

    /// What frames are sealed under now, for tests that read them along.
    #[doc(hidden)]
    pub fn secret(&self) -> Option<&Psk> {
        self.shared.group.secret()
    }
}
