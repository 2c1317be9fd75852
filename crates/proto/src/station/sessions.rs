//! How long a station uses a session and a secret, and the secret in use.

use core::time::Duration;

use corridor_base::Time;

use super::Station;
use crate::clocks::Clocks;
use crate::psk::Psk;

impl Station {
    /// Sets the wall clock's reading. To be called from time to time, because the clock may be set
    /// while the station runs. Where stations have key pairs, a peer uses the time to distinguish
    /// this station's initiations from replays of earlier runs.
    pub fn set_clock(&mut self, clocks: Clocks) {
        self.shared.group.set_clock(clocks);
    }

    /// Sets how often to agree on another secret, where stations have key pairs; every two minutes
    /// by default.
    pub fn set_rekey_interval(&mut self, interval: Duration) {
        self.shared.group.set_rekey_interval(interval);
    }

    /// Begins another session after this many frames, rather than only before its nonces are used
    /// up, which takes days.
    pub fn set_session_frames(&mut self, frames: u32) {
        self.shared.group.set_session_frames(frames);
    }

    /// Sends a HELLO soon, whatever the peers have heard: one of them may be elsewhere now.
    pub fn greet(&mut self, now: Time) {
        self.shared.group.hurry_hello(now);
    }

    /// The secret that frames are sealed under now, for tests that decrypt them.
    #[doc(hidden)]
    pub fn secret(&self) -> Option<&Psk> {
        self.shared.group.secret()
    }
}
