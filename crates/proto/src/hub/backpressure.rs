//! Detects whether the underlay has room for everything that a hub would send.

use corridor_base::Time;

use crate::bounds::HUB_CROWDED;

/// Backpressure of the underlay. It shows in when the hub is asked for frames: a driver with room
/// asks until nothing is left.
#[derive(Debug, Default)]
pub(super) struct Backpressure {
    /// When a frame was made, unless the driver has since asked again and got none.
    made_at: Option<Time>,
    /// When the underlay was last full.
    full_at: Option<Time>,
}

impl Backpressure {
    /// The driver asks for a frame.
    pub(super) fn begin_poll(&mut self, now: Time) {
        // The driver stopped asking before nothing was left: the underlay had no more room.
        if self.made_at.take().is_some_and(|at| at < now) {
            self.full_at = Some(now);
        }
    }

    /// The driver got a frame.
    pub(super) fn note_made(&mut self, now: Time) {
        self.made_at = Some(now);
    }

    /// Whether the underlay was full recently.
    pub(super) fn is_felt(&self, now: Time) -> bool {
        self.full_at.is_some_and(|at| now - at < HUB_CROWDED)
    }
}
