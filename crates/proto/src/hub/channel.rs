//! Whether a hub and its neighbours share one half-duplex channel, found out from all that crosses.
//!
//! Each pair of stations looks for that by itself, by what the one's frames leave of the air to the
//! other's. With many neighbours what one of them sends is a small part of what delays a frame of
//! ours, and hardly stands out of the rest. The hub hears all of them: what they send together and
//! what it sends fill the channel, and more of the one is less of the other.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::HUB_QUANTUM;
use crate::link::shared_channel::{Crossed, Sharing};

/// How often frames are counted: an interval of the regression.
const EVERY: Duration = Duration::from_millis(50);
/// Frames that are longer are long ones.
const LONG_BYTES: usize = HUB_QUANTUM as usize / 2;

/// What crosses the underlay, both ways.
#[derive(Debug, Default)]
pub(super) struct Channel {
    sharing: Sharing,
    /// Frames of all neighbours.
    came: u32,
    /// Frames of ours since the last look, and when that was.
    long: u32,
    short: u32,
    looked_at: Time,
    /// How long nothing was to be sent since then, and since when nothing is.
    idle: Duration,
    idle_since: Option<Time>,
}

impl Channel {
    /// A frame of a neighbour has come.
    pub(super) fn note_came(&mut self) {
        self.came = self.came.wrapping_add(1);
    }

    /// A frame of so many bytes goes.
    pub(super) fn note_sent(&mut self, now: Time, len_bytes: usize) {
        self.end_idle(now);
        if len_bytes > LONG_BYTES {
            self.long += 1;
        } else {
            self.short += 1;
        }
    }

    /// Nothing is to be sent, although there is room.
    pub(super) fn begin_idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    fn end_idle(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            self.idle += now - since;
        }
    }

    /// Looks at what has crossed, if it is time to. Whether that has changed the verdict.
    pub(super) fn look(&mut self, now: Time) -> bool {
        if now - self.looked_at < EVERY {
            return false;
        }
        self.looked_at = now;
        if self.idle_since.is_some() {
            self.end_idle(now);
            self.begin_idle(now);
        }
        let crossed = Crossed {
            received_at_us: (now.as_nanos() / 1_000) as u32,
            peer_counter: self.came,
            symbols: core::mem::take(&mut self.long),
            others: core::mem::take(&mut self.short),
            idle: core::mem::take(&mut self.idle),
        };
        let before = self.sharing.is_shared();
        self.sharing.note(crossed, Duration::ZERO);
        self.sharing.is_shared() != before
    }

    /// Whether all share one channel, as far as this tells.
    pub(super) fn is_shared(&self) -> bool {
        self.sharing.is_shared()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::rand::Rng;
    use corridor_base::{Stream, StreamKey};

    const NEIGHBOURS: u32 = 8;
    const FRAME: Duration = Duration::from_micros(500);

    /// A hub that always has a frame to send, each as long as any of its neighbours'. They have one
    /// now and then, more or less often by turns.
    struct Air {
        channel: Channel,
        now: Time,
        random: Stream,
    }

    impl Air {
        fn new() -> Self {
            let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "channel" };
            Air { channel: Channel::default(), now: Time::ZERO, random: key.stream() }
        }

        fn chance(&mut self, probability: f64) -> bool {
            f64::from(self.random.next_u32()) < probability * f64::from(u32::MAX)
        }

        /// Whether all share the channel, after so many frames of the hub's time. `came`: how many
        /// frames of neighbours there are for each; where they share the channel, these take
        /// their time, and one in ten is lost.
        fn run(
            &mut self,
            frames: u32,
            shared: bool,
            mut came: impl FnMut(&mut Air) -> u32,
        ) -> bool {
            for _ in 0..frames {
                let theirs = came(self);
                self.now += FRAME * (1 + if shared { theirs } else { 0 });
                for _ in 0..theirs {
                    if !self.chance(0.1) {
                        self.channel.note_came();
                    }
                }
                self.channel.note_sent(self.now, 1_400);
                self.channel.look(self.now);
            }
            self.channel.is_shared()
        }
    }

    /// Each neighbour has a frame with this probability, which comes and goes.
    fn draw(air: &mut Air) -> u32 {
        let busy = 0.1 + 0.3 * (air.now.as_nanos() / 200_000_000 % 3) as f64 / 2.0;
        (0..NEIGHBOURS).map(|_| u32::from(air.chance(busy))).sum()
    }

    #[test]
    fn a_hub_finds_out_that_its_neighbours_share_its_channel() {
        assert!(!Air::new().run(60_000, false, draw), "nobody delays anybody");
        let mut air = Air::new();
        assert!(air.run(10_000, true, draw));
        assert!(!air.run(60_000, false, draw), "not any more");
    }

    #[test]
    fn answers_to_what_a_hub_sends_do_not_feign_a_shared_channel() {
        let mut air = Air::new();
        let answers = |air: &mut Air| u32::from(air.chance(0.5));
        assert!(!air.run(60_000, false, answers));
    }

    #[test]
    fn who_has_nothing_to_send_learns_nothing() {
        let mut channel = Channel::default();
        for step in 0..10_000 {
            let now = Time::from_millis(step);
            channel.begin_idle(now);
            channel.note_came();
            channel.look(now);
        }
        assert!(!channel.is_shared());
    }
}
