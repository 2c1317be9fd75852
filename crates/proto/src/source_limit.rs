//! How many messages of key exchanges a source may send: before the station looks into one, which
//! costs Diffie-Hellman, so that who sends many from one place takes nothing from others.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::bounds::{SOURCE_MESSAGES_BURST, SOURCE_MESSAGES_PER_SECOND, SOURCES_MAX};
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

/// What one source may send. Responses are repeated more often than initiations, and those that are
/// too many of them leave room for these.
#[derive(Clone, Copy, Debug)]
struct Source<A> {
    from: A,
    initiations: Bucket,
    responses: Bucket,
}

/// Sources of key exchanges. Addresses are the driver's: whatever tells one source from another.
#[derive(Clone, Debug)]
pub struct SourceLimit<A> {
    /// What shows that a message is for this station; none where there are no key exchanges.
    mac: Option<MacKey>,
    seen: ArrayVec<Source<A>, SOURCES_MAX>,
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

    /// Whether a frame from there may go on to the station. Only messages of key exchanges are
    /// counted, initiations and responses apart: [`SOURCE_MESSAGES_BURST`] of either at once,
    /// [`SOURCE_MESSAGES_PER_SECOND`] in the long run. Where there is no room for another source,
    /// the one goes that has been quiet for longest.
    ///
    /// What has no MAC for this station is not counted, or anybody could use up what is left to a
    /// source by messages that name it: the station refuses them at no greater cost.
    pub fn admit(&mut self, now: Time, from: A, frame: &[u8]) -> bool {
        let is_ours =
            |message: &KeyExchange<'_>| self.mac.as_ref().is_some_and(|mac| mac.is_of(message));
        let Some(message) = KeyExchange::parse(frame).filter(is_ours) else { return true };
        let source = self.source(now, from);
        let bucket = match message.step {
            Step::Initiation => &mut source.initiations,
            Step::Response => &mut source.responses,
        };
        bucket.take(now, SOURCE_MESSAGES_PER_SECOND, SOURCE_MESSAGES_BURST)
    }

    fn source(&mut self, now: Time, from: A) -> &mut Source<A> {
        let at = match self.seen.iter().position(|source| source.from == from) {
            Some(at) => at,
            None => {
                if self.seen.is_full() {
                    let even_at = |at: &usize| {
                        let source = &self.seen[*at];
                        source.initiations.even_at.max(source.responses.even_at)
                    };
                    let quiet = (0..self.seen.len()).min_by_key(even_at);
                    self.seen.swap_remove(quiet.unwrap_or_default());
                }
                let [initiations, responses] = [Bucket::full(now); 2];
                self.seen.push(Source { from, initiations, responses });
                self.seen.len() - 1
            }
        };
        &mut self.seen[at]
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
    fn a_source_that_floods_with_either_is_held_back_and_no_other_and_nothing_else() {
        let response = message(1, Step::Response, RESPONSE_LEN);
        for (flood, other) in [(initiation(1), response.clone()), (response, initiation(1))] {
            let (mut sources, mut admitted) = (limit(), 0);
            for ms in 0..10_000 {
                let now = Time::from_millis(ms);
                admitted += u32::from(sources.admit(now, 7, &flood));
                if ms % 1_000 == 0 {
                    assert!(sources.admit(now, 8, &flood) && sources.admit(now, 7, &other));
                }
                assert!(sources.admit(now, 7, &flood[1..]));
            }
            let most = SOURCE_MESSAGES_BURST + 10 * SOURCE_MESSAGES_PER_SECOND;
            assert!((most - 1..=most).contains(&admitted), "{admitted}");
        }
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
        for _ in 0..SOURCE_MESSAGES_BURST {
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
