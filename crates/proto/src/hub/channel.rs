//! Detects whether a hub and its neighbours share one half-duplex channel, from all traffic.
//!
//! Each pair of stations looks for this by itself, by how much airtime one's frames leave to the
//! other's. With many neighbours, the frames of one are a small part of what delays a frame of
//! ours, and hardly stand out. The hub hears all of them: what they send together and what it sends
//! fill the channel, and more of the one is less of the other.

use core::time::Duration;

use corridor_base::Time;

use crate::bounds::HUB_QUANTUM;
use crate::link::shared_channel::{Crossed, Sharing};

/// Interval of the regression: how often frames are counted.
const EVERY: Duration = Duration::from_millis(50);
/// Longer frames count as long.
const LONG_BYTES: usize = HUB_QUANTUM as usize / 2;

/// Traffic on the underlay, in both directions.
#[derive(Debug, Default)]
pub(super) struct Channel {
    sharing: Sharing,
    /// Frames from all neighbours.
    came: u32,
    /// Our frames since the last count, and when that was.
    long: u32,
    short: u32,
    looked_at: Time,
    /// Time with nothing to send since then, and since when there has been nothing.
    idle: Duration,
    idle_since: Option<Time>,
}

impl Channel {
    /// A frame of a neighbour was received.
    pub(super) fn note_came(&mut self) {
        self.came = self.came.wrapping_add(1);
    }

    /// A frame of this length is sent.
    pub(super) fn note_sent(&mut self, now: Time, len_bytes: usize) {
        self.end_idle(now);
        if len_bytes > LONG_BYTES {
            self.long += 1;
        } else {
            self.short += 1;
        }
    }

    /// There is nothing to send, although there is room.
    pub(super) fn begin_idle(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    fn end_idle(&mut self, now: Time) {
        if let Some(since) = self.idle_since.take() {
            self.idle += now - since;
        }
    }

    /// Counts the traffic if it is time; returns whether the result has changed.
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

    /// Whether all share one channel, as far as this shows.
    pub(super) fn is_shared(&self) -> bool {
        self.sharing.is_shared()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_base::rand::Rng;
    use corridor_base::{Stream, StreamKey};

    use crate::bounds::MEMORY_DEFAULT;
    use crate::{
        CodingParams, FrameOutcome, Hub, HubConfig, LinkErrors, Role, Station, StationConfig,
        StationId,
    };

    const NEIGHBOURS: u32 = 8;
    const FRAME: Duration = Duration::from_micros(500);

    /// A hub that always has a frame to send, each as long as those of its neighbours. These have
    /// one now and then, with a varying frequency.
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

        /// Whether all are found to share the channel after `frames` frames of the hub's time.
        /// `came`: frames of neighbours per frame; on a shared channel these take their time, and
        /// one in ten is lost.
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

    /// Each neighbour has a frame with this probability, which varies.
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

    fn config(id: u16, peer: u16) -> StationConfig {
        StationConfig {
            id: StationId(id),
            role: Role::Plain { peer: StationId(peer) },
            security: [7; 32].into(),
            ingress_packets: 100,
            coding: CodingParams::default(),
            link_errors: LinkErrors::Measured,
            frame_len_max: 1_500,
            frame_len_min: 0,
            memory_bytes: MEMORY_DEFAULT,
            rate_bps: None,
        }
    }

    /// Otherwise a station that sends what looks like a neighbour's frames, in time with the hub's
    /// own, could make the hub believe that the channel is shared.
    #[test]
    fn frames_that_nobody_could_seal_do_not_count() {
        let neighbours = vec![(StationId(2), vec!["10.9.0.2/32".parse().unwrap()])];
        let (station, own) = (config(1, 2), vec!["10.9.0.1".parse().unwrap()]);
        let config_of_hub = HubConfig { station, neighbours, own, one_channel: false };
        let mut hub = Hub::new(config_of_hub, [1; 32], Time::ZERO).unwrap();
        let mut neighbour = Station::new(config(2, 1), [2; 32], Time::ZERO).unwrap();
        let mut accepted = 0;
        for ms in 0..1_000 {
            let now = Time::from_millis(ms);
            neighbour.handle_timeout(now);
            hub.handle_timeout(now);
            while let Some(sent) = neighbour.poll_transmit(now) {
                let frame = sent.frame.to_vec();
                for at in 0..frame.len() {
                    let mut forged = frame.clone();
                    forged[at] ^= 1;
                    let outcome = hub.handle_frame(now, &forged);
                    assert!(matches!(outcome, FrameOutcome::Rejected(_)), "byte {at}: {outcome:?}");
                    assert_eq!(hub.channel.came, accepted, "byte {at} at {ms} ms");
                }
                let outcome = hub.handle_frame(now, &frame);
                accepted += u32::from(matches!(outcome, FrameOutcome::Accepted { .. }));
                assert_eq!(hub.channel.came, accepted);
            }
            while let Some(sent) = hub.poll_transmit(now) {
                let frame = sent.frame.to_vec();
                neighbour.handle_frame(now, &frame);
            }
        }
        assert!(accepted > 0);
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
