//! When a station may send: carrier sense, NAV, spaces between frames, slots of backoff (IEEE
//! 802.11-2012, 9.3.4).
//!
//! Slots are not counted one by one: while the channel is idle, when the backoff will be over is
//! known; when it becomes busy, the whole slots that have passed are taken off.

use core::time::Duration;

use corridor_base::Stream;
use corridor_base::Time;
use corridor_base::rand::Rng;

/// The spans that count here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spaces {
    pub slot: Duration,
    pub difs: Duration,
    pub eifs: Duration,
}

/// What stands between a station and its next transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contention {
    /// Nothing: a frame that comes while the channel is idle goes at once.
    None,
    /// A frame came at this time, while the channel was idle, but not yet long enough.
    Space(Time),
    /// So many slots of backoff.
    Slots(u32),
}

/// A station's view of the channel, and its backoff.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// Others are sensed, or the station sends itself.
    busy: bool,
    /// End of the last busy time.
    idle_since: Time,
    /// Others announced that the channel is theirs until then.
    nav_until: Time,
    /// The NAV is that of an RTS, and ends here if nothing follows it (9.3.2.4).
    nav_resets_at: Option<Time>,
    /// No slot counts before.
    hold_until: Time,
    /// An EIFS after the channel became idle behind the last frame, if that was not decoded.
    error_until: Time,
    /// The last frame was not decoded, and the channel has been busy since.
    error_pending: bool,
    contention: Contention,
    /// The backoff ended at the very instant at which the channel became busy: the station sends.
    committed_at: Option<Time>,
}

impl Access {
    pub fn new() -> Self {
        Access {
            busy: false,
            idle_since: Time::ZERO,
            nav_until: Time::ZERO,
            nav_resets_at: None,
            hold_until: Time::ZERO,
            error_until: Time::ZERO,
            error_pending: false,
            contention: Contention::None,
            committed_at: None,
        }
    }

    pub fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether the channel is somebody's by announcement.
    pub fn is_reserved(&self, now: Time) -> bool {
        self.nav_end() > now
    }

    /// A frame is there to be sent, and none was before. Draws a backoff up to `cw` if the channel
    /// is not idle.
    pub fn request(&mut self, now: Time, spaces: &Spaces, cw: u32, stream: &mut Stream) {
        if let Contention::Slots(_) = self.contention {
            if !self.busy && self.due(spaces).is_some_and(|due| due <= now) {
                // The backoff after the last frame has ended meanwhile.
                self.contention = Contention::Space(now);
            }
        } else if self.busy || self.is_reserved(now) {
            self.draw(cw, stream);
        } else {
            self.contention = Contention::Space(now);
        }
    }

    /// A backoff of 0 to `cw` slots begins.
    pub fn draw(&mut self, cw: u32, stream: &mut Stream) {
        let slots = (u64::from(stream.next_u32()) * (u64::from(cw) + 1)) >> 32;
        self.contention = Contention::Slots(slots as u32);
        self.committed_at = None;
    }

    /// The channel becomes busy, with others or with what the station itself sends. `waiting`:
    /// whether it has a frame; `contends`: whether that would go now if its backoff is over.
    pub fn begin_busy(
        &mut self,
        now: Time,
        waiting: bool,
        contends: bool,
        spaces: &Spaces,
        cw: u32,
        stream: &mut Stream,
    ) {
        if self.busy {
            return;
        }
        let due = self.due(spaces);
        if contends && due == Some(now) {
            self.committed_at = due;
        }
        match self.contention {
            Contention::None => {}
            Contention::Space(_) => {
                if self.committed_at.is_none() {
                    self.draw(cw, stream);
                }
            }
            Contention::Slots(slots) => {
                let passed =
                    now.since(self.counts_from(spaces)).as_nanos() / spaces.slot.as_nanos();
                let left = slots.saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
                let over = !waiting && due.is_some_and(|due| due <= now);
                self.contention = if over { Contention::None } else { Contention::Slots(left) };
            }
        }
        self.nav_until = match self.nav_resets_at.take() {
            Some(reset_at) if reset_at <= now => self.nav_until.min(reset_at),
            _ => self.nav_until,
        };
        self.busy = true;
    }

    /// The channel becomes idle: from here an EIFS counts behind a frame in error, which may have
    /// ended while others went on (9.3.2.3.7).
    pub fn end_busy(&mut self, now: Time, spaces: &Spaces) {
        if self.busy {
            self.busy = false;
            self.idle_since = now;
            if core::mem::take(&mut self.error_pending) {
                self.error_until = now + spaces.eifs;
            }
        }
    }

    /// What was received decides on the next space: an EIFS after a frame in error.
    pub fn note_decoded(&mut self, now: Time, decoded: bool, spaces: &Spaces) {
        self.error_until = if decoded { Time::ZERO } else { now + spaces.eifs };
        self.error_pending = !decoded && self.busy;
    }

    /// End of the last busy time.
    pub fn idle_since(&self) -> Time {
        self.idle_since
    }

    /// Somebody announced that an exchange lasts until `until`; by RTS, that nothing comes of it
    /// if nothing is sensed before `resets_at`.
    pub fn reserve(&mut self, until: Time, resets_at: Option<Time>) {
        if until > self.nav_until {
            self.nav_until = until;
            self.nav_resets_at = resets_at;
        }
    }

    /// No slot counts before `until`.
    pub fn hold(&mut self, until: Time) {
        self.hold_until = self.hold_until.max(until);
    }

    /// The station has sent: nothing stands before its next frame but what is drawn now.
    pub fn clear(&mut self) {
        self.contention = Contention::None;
        self.committed_at = None;
    }

    /// When the station may send, as things stand; `None` while the channel is busy.
    pub fn poll_timeout(&self, spaces: &Spaces) -> Option<Time> {
        self.committed_at.or_else(|| self.due(spaces))
    }

    fn due(&self, spaces: &Spaces) -> Option<Time> {
        if self.busy {
            return None;
        }
        Some(match self.contention {
            Contention::None => return None,
            Contention::Space(from) => from.max(self.counts_from(spaces)),
            Contention::Slots(slots) => self.counts_from(spaces) + spaces.slot * slots,
        })
    }

    /// Since when slots count while the channel is idle.
    fn counts_from(&self, spaces: &Spaces) -> Time {
        let reserved = self.nav_end();
        let by_nav = if reserved > Time::ZERO { reserved + spaces.difs } else { Time::ZERO };
        // At the origin the channel has been idle for ever.
        let by_sense =
            if self.idle_since > Time::ZERO { self.idle_since + spaces.difs } else { Time::ZERO };
        by_sense.max(by_nav).max(self.error_until).max(self.hold_until)
    }

    fn nav_end(&self) -> Time {
        self.nav_resets_at.map_or(self.nav_until, |resets_at| self.nav_until.min(resets_at))
    }
}
