//! How many key exchanges a source may begin: before the station looks into one, which costs
//! Diffie-Hellman, so that who sends many from one place takes nothing from others.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::bounds::{SOURCE_INITIATIONS_BURST, SOURCE_INITIATIONS_PER_SECOND, SOURCES_MAX};
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
#[derive(Clone, Debug, Default)]
pub struct SourceLimit<A> {
    seen: ArrayVec<(A, Bucket), SOURCES_MAX>,
}

impl<A: Copy + PartialEq> SourceLimit<A> {
    /// None seen so far.
    pub fn new() -> Self {
        SourceLimit { seen: ArrayVec::new() }
    }

    /// Whether a frame from there may go on to the station. Only initiations are counted:
    /// [`SOURCE_INITIATIONS_BURST`] at once, [`SOURCE_INITIATIONS_PER_SECOND`] in the long run.
    /// Where there is no room for another source, the one goes that has been quiet for longest.
    pub fn admit(&mut self, now: Time, from: A, frame: &[u8]) -> bool {
        if KeyExchange::parse(frame).is_none_or(|message| message.step != Step::Initiation) {
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
    use crate::wire::{INITIATION_LEN, RESPONSE_LEN};

    fn message(step: Step, len: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        KeyExchange::write_head(StationId(1), step, [0; 4], &mut frame);
        frame.resize(len, 0);
        frame
    }

    #[test]
    fn a_source_that_floods_is_held_back_and_no_other_and_nothing_else() {
        let initiation = message(Step::Initiation, INITIATION_LEN);
        let mut sources = SourceLimit::new();
        let mut admitted = 0;
        for ms in 0..10_000 {
            let now = Time::from_millis(ms);
            admitted += u32::from(sources.admit(now, 7, &initiation));
            if ms % 1_000 == 0 {
                assert!(sources.admit(now, 8, &initiation));
            }
            assert!(sources.admit(now, 7, &message(Step::Response, RESPONSE_LEN)));
            assert!(sources.admit(now, 7, &initiation[1..]));
        }
        let most = SOURCE_INITIATIONS_BURST + 10 * SOURCE_INITIATIONS_PER_SECOND;
        assert!((most - 1..=most).contains(&admitted), "{admitted}");
    }

    #[test]
    fn sources_are_bounded_and_the_busy_one_is_remembered() {
        let initiation = message(Step::Initiation, INITIATION_LEN);
        let mut sources = SourceLimit::new();
        while sources.admit(Time::ZERO, 0, &initiation) {}
        for other in 1..10 * SOURCES_MAX {
            assert!(sources.admit(Time::ZERO, other, &initiation));
        }
        assert_eq!(sources.seen.len(), SOURCES_MAX);
        assert!(!sources.admit(Time::ZERO, 0, &initiation));
    }
}
