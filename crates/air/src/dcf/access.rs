//! Channel access: carrier sense, NAV, interframe spaces, backoff slots (IEEE 802.11-2012, 9.3.4).
//!
//! Slots are not counted one by one: while the channel is idle, the end of the backoff is known;
//! when it becomes busy, the whole slots that have passed are subtracted.

use core::time::Duration;

use corridor_base::Stream;
use corridor_base::Time;
use corridor_base::rand::Rng;

/// The time spans that matter here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spaces {
    pub slot: Duration,
    pub difs: Duration,
    pub eifs: Duration,
}

/// What a station still has to wait for before its next transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contention {
    /// Nothing: a frame that arrives while the channel is idle goes at once.
    None,
    /// A frame arrived at this time, with the channel idle, but not yet for long enough.
    Space(Time),
    /// This many slots of backoff.
    Slots(u32),
}

/// A station's view of the channel, and its backoff.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Whether others are sensed or the station itself sends.
    busy: bool,
    /// End of the last busy time.
    idle_since: Time,
    /// Until when others have reserved the channel.
    nav_until: Time,
    /// When the NAV of an RTS is reset if nothing follows the RTS (9.3.2.4); otherwise the end of
    /// time.
    nav_resets_at: Time,
    /// No slot counts before this.
    hold_until: Time,
    /// End of the EIFS that began when the channel became idle after the last frame, if that was
    /// not decoded.
    error_until: Time,
    /// The last frame was not decoded, and the channel has been busy since.
    error_pending: bool,
    contention: Contention,
    /// When the backoff ended, if this was the very instant at which the channel became busy: the
    /// station sends. Otherwise the end of time.
    committed_at: Time,
}

impl Access {
    pub fn new() -> Self {
        Access {
            busy: false,
            idle_since: Time::ZERO,
            nav_until: Time::ZERO,
            nav_resets_at: Time::MAX,
            hold_until: Time::ZERO,
            error_until: Time::ZERO,
            error_pending: false,
            contention: Contention::None,
            committed_at: Time::MAX,
        }
    }

    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether others have reserved the channel.
    pub fn is_reserved(&self, now: Time) -> bool {
        self.nav_end() > now
    }

    /// A frame is to be sent, and none was before. Draws a backoff up to `cw` if the channel is not
    /// idle.
    pub fn request(&mut self, now: Time, spaces: &Spaces, cw: u32, stream: &mut Stream) {
        if let Contention::Slots(_) = self.contention {
            if self.due(spaces) <= now {
                // The backoff after the last frame is over by now.
                self.contention = Contention::Space(now);
            }
        } else if self.busy || self.is_reserved(now) {
            self.draw(cw, stream);
        } else {
            self.contention = Contention::Space(now);
        }
    }

    /// Draws a backoff of 0 to `cw` slots.
    pub fn draw(&mut self, cw: u32, stream: &mut Stream) {
        let slots = (u64::from(stream.next_u32()) * (u64::from(cw) + 1)) >> 32;
        self.contention = Contention::Slots(slots as u32);
        self.committed_at = Time::MAX;
    }

    /// The channel becomes busy, with others or with the station's own transmission. `waiting`:
    /// whether it has a frame; `contends`: whether the frame would go now if the backoff is over.
    /// Returns `true` if a backoff has to be drawn.
    #[must_use]
    pub fn begin_busy(
        &mut self,
        now: Time,
        waiting: bool,
        contends: bool,
        spaces: &Spaces,
    ) -> bool {
        if self.busy {
            return false;
        }
        let due = self.due(spaces);
        if contends && due == now {
            self.committed_at = due;
        }
        let mut draws = false;
        match self.contention {
            Contention::None => {}
            Contention::Space(_) => draws = self.committed_at == Time::MAX,
            Contention::Slots(slots) => {
                let passed =
                    now.since(self.counts_from(spaces)).as_nanos() / spaces.slot.as_nanos();
                let left = slots.saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
                let over = !waiting && due <= now;
                self.contention = if over { Contention::None } else { Contention::Slots(left) };
            }
        }
        if self.nav_resets_at <= now {
            self.nav_until = self.nav_until.min(self.nav_resets_at);
        }
        self.nav_resets_at = Time::MAX;
        self.busy = true;
        draws
    }

    /// The channel becomes idle: the EIFS after an undecoded frame counts from here, even if that
    /// frame ended earlier while others continued (9.3.2.3.7).
    pub fn end_busy(&mut self, now: Time, spaces: &Spaces) {
        if self.busy {
            self.busy = false;
            self.idle_since = now;
            if core::mem::take(&mut self.error_pending) {
                self.error_until = now + spaces.eifs;
            }
        }
    }

    /// The last reception decides on the next space: an EIFS after an undecoded frame.
    pub fn note_decoded(&mut self, now: Time, decoded: bool, spaces: &Spaces) {
        self.error_until = if decoded { Time::ZERO } else { now + spaces.eifs };
        self.error_pending = !decoded && self.busy;
    }

    /// End of the last busy time.
    pub fn idle_since(&self) -> Time {
        self.idle_since
    }

    /// Others have reserved the channel until `until`; by an RTS, only if something is sensed
    /// before `resets_at`. Otherwise `resets_at` is the end of time.
    pub fn reserve(&mut self, until: Time, resets_at: Time) {
        if until > self.nav_until {
            self.nav_until = until;
            self.nav_resets_at = resets_at;
        }
    }

    /// No slot counts before `until`.
    pub fn hold(&mut self, until: Time) {
        self.hold_until = self.hold_until.max(until);
    }

    /// The station has sent: its next frame only waits for what is drawn now.
    pub fn clear(&mut self) {
        self.contention = Contention::None;
        self.committed_at = Time::MAX;
    }

    /// When the station may send, as things stand; the end of time while the channel is busy, or
    /// without a frame.
    pub fn poll_timeout(&self, spaces: &Spaces) -> Time {
        if self.committed_at < Time::MAX { self.committed_at } else { self.due(spaces) }
    }

    fn due(&self, spaces: &Spaces) -> Time {
        if self.busy {
            return Time::MAX;
        }
        match self.contention {
            Contention::None => Time::MAX,
            Contention::Space(from) => from.max(self.counts_from(spaces)),
            Contention::Slots(slots) => self.counts_from(spaces) + spaces.slot * slots,
        }
    }

    /// Since when slots count while the channel is idle.
    fn counts_from(&self, spaces: &Spaces) -> Time {
        let reserved = self.nav_end();
        let by_nav = if reserved > Time::ZERO { reserved + spaces.difs } else { Time::ZERO };
        // Before time zero the channel was idle.
        let by_sense =
            if self.idle_since > Time::ZERO { self.idle_since + spaces.difs } else { Time::ZERO };
        by_sense.max(by_nav).max(self.error_until).max(self.hold_until)
    }

    fn nav_end(&self) -> Time {
        self.nav_until.min(self.nav_resets_at)
    }
}
