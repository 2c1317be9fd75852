//! Keys where several stations open what one of them seals: a helper and its two ends, or relays
//! and their neighbours.
//!
//! Each station seals under a secret of its own, and gives it to each neighbour, protected by the
//! keys of the two: a neighbour that wants it initiates a key exchange, and the answer contains the
//! present secret and the next one. So everyone has the next secret before it is used, and nothing
//! is lost when it is:
//!
//! ```text
//! sender:    gives [1, 2] to all -> seals under 2, makes 3 -> gives [2, 3] to whoever asks -> ...
//! neighbour: has [1, 2] -> opens a frame under 2: forgets 1 a moment later, asks for 3 -> ...
//! ```
//!
//! A neighbour can forge what another one seals, since it has that one's secret. A station that is
//! no longer a neighbour has neither the next secret but one nor any later one.

use core::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use zeroize::Zeroizing;

use crate::bounds::{
    FORMER_SECRET_AGE_MAX, HELLO_TALKING, REJECT_AFTER_TIME, REKEY_AFTER_FRAMES, REKEY_AFTER_TIME,
    SECRETS_ASKED_INTERVAL,
};
use crate::clocks::Clocks;
use crate::config::StationId;
use crate::end_keys::EndKeys;
use crate::keys::Keys;
use crate::link::exchange::{Exchange, Taken};
use crate::link::secrets::Generation;
use crate::psk::{PSK_LEN, Psk};
use crate::wire::KeyExchange;

/// A secret that a station seals under.
pub(crate) struct Sealing {
    pub(crate) psk: Psk,
    pub(crate) generation: Generation,
}

/// The secrets that this station seals under, and those of its neighbours.
pub(crate) struct MemberKeys {
    rng: Stream,
    now: Sealing,
    next: Sealing,
    /// Since when both have been unchanged.
    since: Time,
    /// When to check again whether all have the next secret.
    look_at: Time,
    rekey_after: Duration,
    members: Vec<Member>,
}

/// A neighbour, and its part of the keys.
pub(crate) struct Member {
    pub(crate) station: StationId,
    pub(crate) exchange: Exchange,
    pub(crate) given: Given,
    /// Keys that only the two have.
    pub(crate) ends: EndKeys,
    /// When it was last asked again because a frame of it did not open.
    asked_at: Option<Time>,
}

/// The secrets that a neighbour has given to this station.
#[derive(Default)]
pub(crate) struct Given {
    now: Option<Sealing>,
    next: Option<Sealing>,
    /// The previous one: frames in flight can still be opened.
    former: Option<Sealing>,
    forget_former_at: Option<Time>,
    generations: Generation,
    /// When the neighbour last gave any.
    given_at: Option<Time>,
    /// Since when the present one has been in use, as far as is known here.
    used_since: Option<Time>,
}

impl MemberKeys {
    /// For all the peers in `keys`. Asks each of them now.
    pub(crate) fn new(me: StationId, keys: &Keys, mut rng: Stream, clocks: Clocks) -> Self {
        let secrets = [random(&mut rng), random(&mut rng)];
        let member = |at: usize| {
            let one = Keys { peers: vec![keys.peers[at].clone()], ..keys.clone() };
            let mut exchange = Exchange::new(me, &one, Stream::from_rng(&mut rng), clocks);
            exchange.hand_out(secrets.clone());
            let (station, ends) =
                (keys.peers[at].station, EndKeys::new(&keys.private, &keys.peers[at]));
            Member { station, exchange, given: Given::default(), ends, asked_at: None }
        };
        let members = (0..keys.peers.len()).map(member).collect();
        let [first, second] = secrets;
        MemberKeys {
            rng,
            now: Sealing { psk: first, generation: 1 },
            next: Sealing { psk: second, generation: 2 },
            since: clocks.now,
            look_at: clocks.now,
            rekey_after: REKEY_AFTER_TIME,
            members,
        }
    }

    /// The secret that this station seals under.
    pub(crate) fn own(&self) -> &Sealing {
        &self.now
    }

    pub(crate) fn member(&self, station: StationId) -> Option<&Member> {
        self.members.iter().find(|member| member.station == station)
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut [Member] {
        &mut self.members
    }

    pub(crate) fn set_rekey_after(&mut self, interval: Duration) {
        self.rekey_after = interval;
    }

    /// Handles a key exchange message; `None` if it is for another neighbour of its sender.
    pub(crate) fn take(&mut self, now: Time, message: &KeyExchange<'_>) -> Option<Taken> {
        let sender = self.members.iter().position(|member| member.station == message.sender);
        let Some(at) = sender else { return Some(Taken::Refused) };
        let member = &mut self.members[at];
        let taken = member.exchange.take(now, message);
        match &taken {
            Taken::Given(secrets) => member.given.take(now, secrets.clone()),
            // A neighbour that asks may have restarted, and then seals under another secret.
            Taken::Asked if !member.given.is_fresh(now) => member.exchange.begin(now),
            Taken::Refused => {
                let others = self.members.iter().filter(|it| it.station != message.sender);
                let is_overheard = others.into_iter().any(|it| it.exchange.is_for_peer(message));
                return (!is_overheard).then_some(taken);
            }
            _ => {}
        }
        Some(taken)
    }

    /// A frame of a neighbour was opened under one of its secrets. Returns whether this changes
    /// keys.
    pub(crate) fn note_opened(
        &mut self,
        now: Time,
        station: StationId,
        generation: Generation,
    ) -> bool {
        let Some(member) = self.members.iter_mut().find(|it| it.station == station) else {
            return false;
        };
        let is_news = member.given.note_opened(now, generation);
        if is_news {
            member.exchange.begin(now);
        }
        is_news
    }

    /// A frame in a neighbour's name did not open: perhaps the neighbour has restarted. Anybody can
    /// send such frames, so it is not asked often.
    pub(crate) fn note_unopened(&mut self, now: Time, station: StationId) {
        let member = self.members.iter_mut().find(|it| it.station == station);
        let Some(member) = member.filter(|member| !member.exchange.has_begun()) else { return };
        if member.asked_at.is_none_or(|at| now - at >= SECRETS_ASKED_INTERVAL) {
            member.asked_at = Some(now);
            member.exchange.begin(now);
        }
    }

    /// Switches to the next secret when it is time, and forgets old ones. `sealed`: frames sealed
    /// under the present one; `is_there`: whether a neighbour was recently heard. Returns whether
    /// keys change.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Time,
        sealed: u32,
        is_there: impl Fn(StationId) -> bool,
    ) -> bool {
        let mut changes = false;
        for member in &mut self.members {
            changes |= member.given.expire(now);
        }
        if self.next_at(sealed) > now {
            return changes;
        }
        if now - self.since >= self.longest() || self.all_have_next(now, is_there) {
            self.go_on(now);
            return true;
        }
        self.look_at = now + HELLO_TALKING / 4;
        changes
    }

    /// When the next secret is wanted, after `sealed` frames under this one.
    fn next_at(&self, sealed: u32) -> Time {
        let is_full = sealed >= REKEY_AFTER_FRAMES;
        let wanted = if is_full { self.since } else { self.since + self.rekey_after };
        wanted.max(self.look_at)
    }

    /// How long one secret is used even if not all have the next.
    fn longest(&self) -> Duration {
        self.rekey_after + (REJECT_AFTER_TIME - REKEY_AFTER_TIME) / 2
    }

    /// Whether all neighbours present were given the next secret, and are not asking again.
    fn all_have_next(&self, now: Time, is_there: impl Fn(StationId) -> bool) -> bool {
        let has = |member: &Member| {
            let asked = member.exchange.asked();
            asked.is_some_and(|(heard, answered)| {
                answered >= self.since && now - heard >= HELLO_TALKING
            })
        };
        self.members.iter().filter(|member| is_there(member.station)).all(has)
    }

    fn go_on(&mut self, now: Time) {
        let generation = self.next.generation.wrapping_add(1);
        let next = Sealing { psk: random(&mut self.rng), generation };
        self.now = core::mem::replace(&mut self.next, next);
        (self.since, self.look_at) = (now, now);
        for member in &mut self.members {
            member.exchange.hand_out([self.now.psk.clone(), self.next.psk.clone()]);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(crate) fn due(&self, sealed: u32) -> Time {
        let ends = self.members.iter().filter_map(|member| member.given.expire_at());
        ends.fold(self.next_at(sealed), Time::min)
    }
}

impl Given {
    /// The neighbour has given these secrets.
    fn take(&mut self, now: Time, [secret, next]: [Psk; 2]) {
        self.given_at = Some(now);
        let generations = |it: &Self| {
            [&it.now, &it.former].map(|it| it.as_ref().map(|sealing| sealing.generation))
        };
        let [now_before, former_before] = generations(self);
        let before = [self.now.take(), self.next.take(), self.former.take()];
        let mut before: Vec<Sealing> = before.into_iter().flatten().collect();
        let mut known = |psk: Psk| {
            let at = before.iter().position(|sealing| sealing.psk == psk);
            at.map(|at| before.remove(at)).unwrap_or_else(|| {
                self.generations = self.generations.wrapping_add(1);
                Sealing { psk, generation: self.generations }
            })
        };
        let (secret, next) = (known(secret), known(next));
        // If the secret in use was replaced, it is now the first in `before`.
        self.former = before.into_iter().next();
        (self.now, self.next) = (Some(secret), Some(next));
        // A secret given again keeps its age.
        let [now_after, former_after] = generations(self);
        if former_after != former_before {
            self.forget_former_at = former_after.map(|_| now + FORMER_SECRET_AGE_MAX);
        }
        if now_after != now_before {
            self.used_since = Some(now);
        }
    }

    /// Whether the neighbour has given its secrets recently.
    fn is_fresh(&self, now: Time) -> bool {
        self.given_at.is_some_and(|at| now - at < HELLO_TALKING)
    }

    /// A frame was opened under this secret. Returns whether this shows that the next one is in
    /// use.
    fn note_opened(&mut self, now: Time, generation: Generation) -> bool {
        let Some(next) = self.next.take_if(|next| next.generation == generation) else {
            return false;
        };
        self.former = self.now.replace(next);
        self.forget_former_at = Some(now + FORMER_SECRET_AGE_MAX);
        self.used_since = Some(now);
        true
    }

    /// Forgets old secrets; returns whether there were any.
    fn expire(&mut self, now: Time) -> bool {
        if self.expire_at().is_none_or(|at| at > now) {
            return false;
        }
        if self.forget_former_at.take_if(|at| *at <= now).is_some() {
            self.former = None;
        }
        if self.used_until().is_some_and(|at| at <= now) {
            *self = Given { generations: self.generations, ..Given::default() };
        }
        true
    }

    /// When the given secrets are too old unless newer ones are given.
    fn used_until(&self) -> Option<Time> {
        self.used_since.map(|since| since + REJECT_AFTER_TIME)
    }

    fn expire_at(&self) -> Option<Time> {
        self.forget_former_at.into_iter().chain(self.used_until()).min()
    }

    /// Since when the present one is known here; `None` if none is.
    pub(crate) fn since(&self) -> Option<Time> {
        self.given_at.filter(|_| self.now.is_some())
    }

    /// In the order in which frames are tried.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sealing> {
        [&self.now, &self.next, &self.former].into_iter().flatten()
    }
}

fn random(rng: &mut Stream) -> Psk {
    let mut bytes = Zeroizing::new([0; PSK_LEN]);
    rng.fill_bytes(&mut bytes[..]);
    (*bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(bytes: [u8; 2]) -> [Psk; 2] {
        bytes.map(|byte| [byte; 32].into())
    }

    /// The secrets known, in the order in which they are tried.
    fn bytes(given: &Given) -> Vec<u8> {
        given.iter().map(|sealing| sealing.psk.as_bytes()[0]).collect()
    }

    fn generation(given: &Given, byte: u8) -> Generation {
        given.iter().find(|it| it.psk == [byte; 32].into()).unwrap().generation
    }

    /// Anybody can make a station ask a neighbour again, with frames in its name that do not open.
    #[test]
    fn what_is_given_again_is_forgotten_no_later_for_that() {
        let mut given = Given::default();
        let mut now = Time::ZERO;
        given.take(now, secrets([1, 2]));
        now += REKEY_AFTER_TIME;
        let next = generation(&given, 2);
        assert!(given.note_opened(now, next) && !given.note_opened(now, next));
        let former_until = now + FORMER_SECRET_AGE_MAX;
        let until = now + REJECT_AFTER_TIME;
        while now < until {
            given.take(now, secrets([2, 3]));
            let expected: &[u8] = if now < former_until { &[2, 3, 1] } else { &[2, 3] };
            assert_eq!(bytes(&given), expected, "at {now:?}");
            assert_eq!(generation(&given, 2), next, "its keys are derived once");
            now += SECRETS_ASKED_INTERVAL;
            given.expire(now);
        }
        assert!(bytes(&given).is_empty(), "and the one in use as said");
        assert_eq!((given.since(), given.expire_at()), (None, None));
    }

    #[test]
    fn who_has_started_anew_is_opened_under_its_new_secrets_and_a_while_under_the_last() {
        let mut given = Given::default();
        given.take(Time::ZERO, secrets([1, 2]));
        let now = Time::from_millis(1_000);
        given.take(now, secrets([7, 8]));
        assert_eq!(bytes(&given), [7, 8, 1]);
        assert_eq!(given.expire_at(), Some(now + FORMER_SECRET_AGE_MAX));
        assert!(given.expire(now + FORMER_SECRET_AGE_MAX));
        assert_eq!(bytes(&given), [7, 8]);
    }
}
