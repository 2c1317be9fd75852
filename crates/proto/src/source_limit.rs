//! How many key exchanges a source may begin: before the station looks into one, which costs
//! Diffie-Hellman, so that who sends many from one place takes nothing from others.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::bounds::{SOURCE_INITIATIONS_BURST, SOURCE_INITIATIONS_PER_SECOND, SOURCES_MAX};
use crate::keys::Security;
use crate::link::mac::MacKey;
use crate::wire::{KeyExchange, Step};

/// Lets so many through per second, and so many at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// When all that were let through would have been at an even pace.
    even_at: Time,
}

impl Bucket {
    pub(crate) fn full(now: Time) -> Self {
        Bucket { even_at: now }
    }

    /// Whether one more may pass.
    pub(crate) fn take(&mut self, now: Time, per_second: u32, burst: u32) -> bool {
        let interval = Duration::from_secs(1) / per_second;
        let even_at = self.even_at.max(now);
        let has_room = even_at - now < interval * burst;
        if has_room {
            self.even_at = even_at + interval;
        }
        has_room
    }
}

/// Sources of initiations. Addresses are the driver's: whatever tells one source from another.
#[derive(Clone, Debug)]
pub struct SourceLimit<A> {
    /// What shows that a message is for this station; none where there are no key exchanges.
    mac: Option<MacKey>,
    seen: ArrayVec<(A, Bucket), SOURCES_MAX>,
}

impl<A: Copy + PartialEq> SourceLimit<A> {
    /// Of a station with these keys; none seen so far.
    pub fn new(security: &Security) -> Self {
        let mac = match security {
            Security::Shared(_) => None,
            Security::Keys(keys) => Some(MacKey::of(&keys.private.public())),
        };
        SourceLimit { mac, seen: ArrayVec::new() }
    }

    /// Whether a frame from there may go on to the station. Only initiations are counted:
    /// [`SOURCE_INITIATIONS_BURST`] at once, [`SOURCE_INITIATIONS_PER_SECOND`] in the long run.
    /// Where there is no room for another source, the one goes that has been quiet for longest.
    ///
    /// What has no MAC for this station is not counted, or anybody could use up what is left to a
    /// source by messages that name it: the station refuses them at no greater cost.
    pub fn admit(&mut self, now: Time, from: A, frame: &[u8]) -> bool {
        let counts = |message: &KeyExchange<'_>| {
            message.step == Step::Initiation
                && self.mac.as_ref().is_some_and(|mac| mac.is_of(message))
        };
        if !KeyExchange::parse(frame).as_ref().is_some_and(counts) {
            return true;
        }
        let at = match self.seen.iter().position(|(seen, _)| *seen == from) {
            Some(at) => at,
            None => {
                if self.seen.is_full() {
                    let quiet = (0..self.seen.len()).min_by_key(|&at| self.seen[at].1.even_at);
                    self.seen.swap_remove(quiet.unwrap_or_default());
                }
                self.seen.push((from, Bucket::full(now)));
                self.seen.len() - 1
            }
        };
        let bucket = &mut self.seen[at].1;
        bucket.take(now, SOURCE_INITIATIONS_PER_SECOND, SOURCE_INITIATIONS_BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StationId;
    use crate::keys::{Keys, PrivateKey};
    use crate::wire::{INITIATION_LEN, KEY_EXCHANGE_MAC_LEN, RESPONSE_LEN};

    fn private(byte: u8) -> PrivateKey {
        PrivateKey::from_random([byte; 32])
    }

    /// A message to the station with such a private key.
    fn message(to: u8, step: Step, len: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        KeyExchange::write_head(StationId(1), step, [0; 4], &mut frame);
        frame.resize(len - KEY_EXCHANGE_MAC_LEN, 0);
        MacKey::of(&private(to).public()).write(&mut frame);
        frame
    }

    fn initiation(to: u8) -> Vec<u8> {
        message(to, Step::Initiation, INITIATION_LEN)
    }

    fn limit() -> SourceLimit<usize> {
        let keys = Keys { private: private(1), peers: Vec::new(), started_ns: 0 };
        SourceLimit::new(&Security::Keys(Box::new(keys)))
    }

    #[test]
    fn a_source_that_floods_is_held_back_and_no_other_and_nothing_else() {
        let (mut sources, initiation) = (limit(), initiation(1));
        let mut admitted = 0;
        for ms in 0..10_000 {
            let now = Time::from_millis(ms);
            admitted += u32::from(sources.admit(now, 7, &initiation));
            if ms % 1_000 == 0 {
                assert!(sources.admit(now, 8, &initiation));
            }
            assert!(sources.admit(now, 7, &message(1, Step::Response, RESPONSE_LEN)));
            assert!(sources.admit(now, 7, &initiation[1..]));
        }
        let most = SOURCE_INITIATIONS_BURST + 10 * SOURCE_INITIATIONS_PER_SECOND;
        assert!((most - 1..=most).contains(&admitted), "{admitted}");
    }

    #[test]
    fn what_is_not_for_this_station_uses_up_nothing() {
        let mut sources = limit();
        let mut bent = initiation(1);
        bent[20] ^= 1;
        for _ in 0..1_000 {
            assert!(sources.admit(Time::ZERO, 7, &initiation(2)));
            assert!(sources.admit(Time::ZERO, 7, &bent));
        }
        assert!(sources.seen.is_empty());
        for _ in 0..SOURCE_INITIATIONS_BURST {
            assert!(sources.admit(Time::ZERO, 7, &initiation(1)));
        }
        assert!(!sources.admit(Time::ZERO, 7, &initiation(1)));
    }

    #[test]
    fn sources_are_bounded_and_the_busy_one_is_remembered() {
        let (mut sources, initiation) = (limit(), initiation(1));
        while sources.admit(Time::ZERO, 0, &initiation) {}
        for other in 1..10 * SOURCES_MAX {
            assert!(sources.admit(Time::ZERO, other, &initiation));
        }
        assert_eq!(sources.seen.len(), SOURCES_MAX);
        assert!(!sources.admit(Time::ZERO, 0, &initiation));
    }
}
