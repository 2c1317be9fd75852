//! The secrets from which session keys are derived: that of a group, which never changes, or those
//! of a pair of stations, each used for a limited time.
//!
//! A pair's secrets overlap, so that nothing is lost when one follows another:
//!
//! ```text
//! initiator:  has the response: seals under the new one at once, still opens the old one
//! responder:  has sent the response: also opens the new one, seals under the old one
//!             has opened a frame under the new one, which proves it: seals under the new one
//! both:       have opened a frame under the new one: forget the old one a moment later
//! ```

use corridor_base::Time;

use crate::bounds::{FORMER_SECRET_AGE_MAX, KEY_EXCHANGE_CROSSING_MAX, REJECT_AFTER_TIME};
use crate::config::StationId;
use crate::link::seal::SessionKey;
use crate::psk::Psk;
use crate::wire::Random128;

/// Identifies a pair's secrets. A group's secret has 0.
pub(crate) type Generation = u32;

/// The secrets in use.
#[derive(Default)]
pub(crate) struct Secrets {
    /// The one to seal under.
    current: Option<Secret>,
    /// The one in a response that may have been lost: frames under it can be opened.
    offered: Option<Secret>,
    /// The peer uses another secret that was agreed on at the same time.
    offer_is_void: bool,
    /// The previous one: frames in flight can still be opened.
    former: Option<Secret>,
    forget_former_at: Option<Time>,
    generations: Generation,
}

struct Secret {
    psk: Psk,
    generation: Generation,
    agreed_at: Time,
    /// This station initiated the key exchange.
    is_ours: bool,
    /// The peer's instance whose frame under it was the first that was opened. No other one has
    /// it.
    proven_by: Option<u64>,
}

impl Secret {
    /// Whether a frame of the peer under it was opened.
    fn is_proven(&self) -> bool {
        self.proven_by.is_some()
    }
}

impl Secrets {
    /// A group's secret.
    pub(crate) fn shared(psk: Psk) -> Self {
        let secret =
            Secret { psk, generation: 0, agreed_at: Time::ZERO, is_ours: true, proven_by: None };
        Secrets { current: Some(secret), ..Secrets::default() }
    }

    /// When the secret to seal under was agreed on, and whether this station initiated.
    pub(crate) fn agreed(&self) -> Option<(Time, bool)> {
        self.current.as_ref().map(|secret| (secret.agreed_at, secret.is_ours))
    }

    /// Whether the peer has sent a frame under the secret to seal under.
    pub(crate) fn is_proven(&self) -> bool {
        self.current.as_ref().is_some_and(Secret::is_proven)
    }

    /// Adds a secret that the peer has, and knows that this station has.
    pub(crate) fn agree(&mut self, now: Time, psk: Psk) {
        let secret = self.next(now, psk, true);
        self.former = self.current.replace(secret).or(self.former.take());
        self.forget_former_at = None;
    }

    /// Adds a secret that the peer has once a response arrives.
    pub(crate) fn offer(&mut self, now: Time, psk: Psk) {
        self.offered = Some(self.next(now, psk, false));
        self.offer_is_void = false;
    }

    fn next(&mut self, now: Time, psk: Psk, is_ours: bool) -> Secret {
        self.generations = self.generations.wrapping_add(1);
        let generation = self.generations;
        Secret { psk, generation, agreed_at: now, is_ours, proven_by: None }
    }

    /// Records that a frame of this instance of the peer was opened under this secret. If it is the
    /// first sign that the peer uses the secret, this station seals under it from now on; returns
    /// whether it is.
    ///
    /// Where two key exchanges have crossed, both ends have both secrets; `precedes`: this
    /// station's exchange counts. This station gives in if the peer has not adopted its secret for
    /// a while, and returns to its own if the peer had adopted it after all and the evidence was
    /// only delayed. The other end never returns, so both end up with the same secret, however long
    /// frames take.
    ///
    /// All of this is per instance of the peer. Where frames of two instances were opened, each
    /// under a secret of its own, the secret that was agreed on later is the later instance's,
    /// and counts; see [`is_of_later_instance`](Self::is_of_later_instance).
    pub(crate) fn note_opened(
        &mut self,
        now: Time,
        (generation, instance): (Generation, u64),
        precedes: bool,
    ) -> bool {
        if let Some(current) = self.current.as_ref().filter(|it| it.generation == generation) {
            let is_news = !current.is_proven();
            if is_news {
                self.note_proven(now, instance);
            }
            return is_news;
        }
        let counts = match self.is_of_later_instance(generation, instance) {
            Some(false) => return false,
            is_later => is_later.is_some(),
        };
        if self.is_former(generation) && (counts || precedes && self.may_take_back()) {
            core::mem::swap(&mut self.current, &mut self.former);
            self.note_proven(now, instance);
            return true;
        }
        let just_ours = self.current.as_ref().is_some_and(|current| {
            current.is_ours && now - current.agreed_at < KEY_EXCHANGE_CROSSING_MAX
        });
        if !counts && (self.offer_is_void || precedes && just_ours) {
            return false;
        }
        let Some(mut proven) = self.offered.take_if(|it| it.generation == generation) else {
            return false;
        };
        proven.proven_by = Some(instance);
        // If the peer may have adopted it after all, a frame that shows it may still be in flight.
        let gives_in =
            precedes && self.current.as_ref().is_some_and(|it| it.is_ours && !it.is_proven());
        self.former = self.current.replace(proven).or(self.former.take());
        self.forget_former_at = (!gives_in).then(|| now + FORMER_SECRET_AGE_MAX);
        true
    }

    /// The first frame of the peer under the current secret was opened.
    fn note_proven(&mut self, now: Time, instance: u64) {
        let Some(current) = &mut self.current else { return };
        current.proven_by = Some(instance);
        self.forget_former_at = Some(now + FORMER_SECRET_AGE_MAX);
        let crossed_until = current.agreed_at + KEY_EXCHANGE_CROSSING_MAX;
        let crossed = |offered: &Secret| offered.agreed_at < crossed_until;
        self.offer_is_void = self.offered.as_ref().is_some_and(crossed);
    }

    /// If the peer was heard under the current secret in another instance than this one, whether
    /// this is the later one; it has sealed a frame under the secret of this generation.
    ///
    /// The instance that seals under a secret has sent its message of the exchange before this
    /// station learned the secret. It seals under the secret only after this station has sent
    /// something in turn: the response, or a frame under the secret. So it was the peer's instance
    /// at that time, and instances follow each other in the order of their secrets, although their
    /// frames may arrive in any order.
    fn is_of_later_instance(&self, generation: Generation, instance: u64) -> Option<bool> {
        let current = self.current.as_ref()?;
        let is_another = current.proven_by? != instance;
        is_another.then_some(generation > current.generation)
    }

    /// Whether the previous secret is from this station's own key exchange, and was given up for
    /// the peer's before the peer was heard under it.
    fn may_take_back(&self) -> bool {
        self.current.as_ref().is_some_and(|it| !it.is_ours)
            && self.former.as_ref().is_some_and(|it| it.is_ours && !it.is_proven())
    }

    /// Whether this is the previous secret.
    pub(crate) fn is_former(&self, generation: Generation) -> bool {
        self.former.as_ref().is_some_and(|former| former.generation == generation)
    }

    /// Forgets old secrets; returns whether there were any.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let is_old = |secret: &mut Secret| now - secret.agreed_at >= REJECT_AFTER_TIME;
        let forgets_former = self.forget_former_at.is_some_and(|at| at <= now);
        let former = self.former.take_if(|secret| forgets_former || is_old(secret));
        let forgets_offer = forgets_former && self.offer_is_void;
        let offered = self.offered.take_if(|secret| forgets_offer || is_old(secret));
        if forgets_former {
            self.forget_former_at = None;
        }
        let others = [self.current.take_if(is_old), offered];
        former.is_some() || others.iter().any(Option::is_some)
    }

    /// When the next secret is to be forgotten.
    pub(crate) fn expire_at(&self) -> Option<Time> {
        let ends = self.all().map(|secret| secret.agreed_at + REJECT_AFTER_TIME);
        ends.chain(self.forget_former_at).min()
    }

    /// All secrets.
    fn all(&self) -> impl Iterator<Item = &Secret> {
        [&self.current, &self.offered, &self.former].into_iter().flatten()
    }

    /// In the order in which frames are tried.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Generation, &Psk)> {
        self.all().map(|secret| (secret.generation, &secret.psk))
    }

    /// The key of the station's own session, if there is a secret to seal under.
    pub(crate) fn own_key(&self, me: StationId, session: &Random128) -> Option<SessionKey> {
        self.current.as_ref().map(|secret| SessionKey::derive(&secret.psk, me, session))
    }

    /// The secret to seal under.
    pub(crate) fn current(&self) -> Option<&Psk> {
        self.current.as_ref().map(|secret| &secret.psk)
    }

    /// The generation of the secret to seal under.
    pub(crate) fn generation(&self) -> Option<Generation> {
        self.current.as_ref().map(|secret| secret.generation)
    }
}

/// The keys of one session of a peer: one per secret.
#[derive(Default)]
pub(crate) struct SessionKeys(Vec<(Generation, SessionKey)>);

impl SessionKeys {
    /// Updates the keys of the session to the present secrets.
    pub(crate) fn follow<'a>(
        mut self,
        secrets: impl Iterator<Item = (Generation, &'a Psk)>,
        sender: StationId,
        session: &Random128,
    ) -> Self {
        let key = |(generation, psk): (Generation, &Psk)| {
            let known = self.0.iter().position(|&(known, _)| known == generation);
            let key = match known {
                Some(at) => self.0.swap_remove(at).1,
                None => SessionKey::derive(psk, sender, session),
            };
            (generation, key)
        };
        SessionKeys(secrets.map(key).collect())
    }

    /// As [`SessionKey::open`], with the first key that opens the frame; returns its generation.
    pub(crate) fn open(
        &self,
        counter: u32,
        frame: &[u8],
        clear: usize,
        body: &mut Vec<u8>,
    ) -> Option<Generation> {
        let mut keys = self.0.iter();
        keys.find(|(_, key)| key.open(counter, frame, clear, body))
            .map(|&(generation, _)| generation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    const INSTANCE: u64 = 1;

    fn psk(byte: u8) -> Psk {
        [byte; 32].into()
    }

    /// The secrets known, in the order in which they are tried.
    fn bytes(secrets: &Secrets) -> Vec<u8> {
        secrets.iter().map(|(_, psk)| psk.as_bytes()[0]).collect()
    }

    fn generation(secrets: &Secrets, byte: u8) -> Generation {
        secrets.iter().find(|(_, known)| **known == psk(byte)).unwrap().0
    }

    #[test]
    fn an_offer_is_sealed_under_when_it_is_proven_and_the_one_before_is_forgotten_later() {
        let mut secrets = Secrets::default();
        let now = Time::from_millis(1);
        secrets.offer(now, psk(1));
        assert!(secrets.own_key(StationId(1), &[0; 16]).is_none() && secrets.agreed().is_none());
        let first = generation(&secrets, 1);
        assert!(secrets.note_opened(now, (first, INSTANCE), false));
        secrets.offer(now, psk(2));
        assert!(!secrets.note_opened(now, (first, INSTANCE), false));
        assert_eq!(bytes(&secrets), [1, 2]);
        let second = generation(&secrets, 2);
        assert!(secrets.note_opened(now, (second, INSTANCE), false) && secrets.is_proven());
        assert_eq!(bytes(&secrets), [2, 1]);
        let late = now + FORMER_SECRET_AGE_MAX;
        assert_eq!(secrets.expire_at(), Some(late));
        assert!(!secrets.expire(now) && secrets.expire(late));
        assert_eq!(bytes(&secrets), [2]);
    }

    #[test]
    fn what_the_initiator_had_before_stays_until_the_peer_is_heard_under_the_new_one() {
        let mut secrets = Secrets::default();
        let mut now = Time::ZERO;
        secrets.agree(now, psk(1));
        now += Duration::from_secs(120);
        secrets.agree(now, psk(2));
        now += Duration::from_secs(30);
        assert!(!secrets.expire(now));
        assert_eq!(bytes(&secrets), [2, 1]);
        let new = generation(&secrets, 2);
        assert!(
            secrets.note_opened(now, (new, INSTANCE), true)
                && !secrets.note_opened(now, (new, INSTANCE), true)
        );
        assert!(secrets.expire(now + FORMER_SECRET_AGE_MAX));
        assert_eq!(bytes(&secrets), [2]);
    }

    #[test]
    fn of_two_that_have_crossed_one_counts_at_both_ends_and_the_other_one_if_it_must() {
        let now = Time::ZERO;
        let cross = |precedes, at| {
            let mut secrets = Secrets::default();
            secrets.agree(now, psk(1));
            secrets.offer(now, psk(2));
            let offered = generation(&secrets, 2);
            (secrets.note_opened(at, (offered, INSTANCE), precedes), bytes(&secrets))
        };
        assert_eq!(cross(true, now), (false, vec![1, 2]));
        assert_eq!(cross(false, now), (true, vec![2, 1]));
        assert_eq!(cross(true, now + KEY_EXCHANGE_CROSSING_MAX), (true, vec![2, 1]));

        // The peer has given in: what it offered can be opened for a while, and is never used.
        let mut secrets = Secrets::default();
        secrets.agree(now, psk(1));
        secrets.offer(now, psk(2));
        let [own, offered] = [1, 2].map(|byte| generation(&secrets, byte));
        assert!(secrets.note_opened(now, (own, INSTANCE), true));
        assert!(!secrets.note_opened(now + KEY_EXCHANGE_CROSSING_MAX, (offered, INSTANCE), true));
        assert_eq!(bytes(&secrets), [1, 2]);
        assert!(secrets.expire(now + FORMER_SECRET_AGE_MAX));
        assert_eq!(bytes(&secrets), [1]);
    }

    #[test]
    fn who_has_given_in_too_early_comes_back_and_the_peer_does_not() {
        let now = Time::ZERO;
        let late = now + KEY_EXCHANGE_CROSSING_MAX;
        let mut secrets = [true, false].map(|_| Secrets::default());
        let [first, second] = &mut secrets;
        first.agree(now, psk(1));
        first.offer(now, psk(2));
        second.agree(now, psk(2));
        second.offer(now, psk(1));
        let [own, other] = [1, 2].map(|byte| generation(first, byte));
        let [theirs, mine] = [1, 2].map(|byte| generation(second, byte));
        // Each receives only now what the other sent at first.
        assert!(
            first.note_opened(late, (other, INSTANCE), true)
                && second.note_opened(late, (theirs, INSTANCE), false)
        );
        assert_eq!((bytes(first), bytes(second)), (vec![2, 1], vec![1, 2]));
        // However long it takes.
        let later = late + 2 * FORMER_SECRET_AGE_MAX;
        assert!(!first.expire(later));
        assert!(
            !second.note_opened(later, (mine, INSTANCE), false)
                && first.note_opened(later, (own, INSTANCE), true)
        );
        assert_eq!((bytes(first), bytes(second)), (vec![1, 2], vec![1, 2]));
        assert!(!first.note_opened(later, (other, INSTANCE), true), "and stays there");
        assert!(first.expire(later + FORMER_SECRET_AGE_MAX));
        assert_eq!(bytes(first), [1]);
    }

    /// The peer sent a frame under the secret that this station had initiated, and died. When that
    /// frame arrives late, it must not void what the peer's next run has offered, nor bring back a
    /// secret that the next run does not have.
    #[test]
    fn a_frame_of_the_run_before_says_nothing_of_the_secrets_of_this_one() {
        let now = Time::ZERO;
        let late = now + KEY_EXCHANGE_CROSSING_MAX / 2;
        let (before, after) = (1, 2);
        let mut secrets = Secrets::default();
        secrets.agree(now, psk(1));
        secrets.offer(late, psk(2));
        let [own, offered] = [1, 2].map(|byte| generation(&secrets, byte));
        assert!(secrets.note_opened(late, (own, before), true));
        assert!(!secrets.note_opened(late, (offered, before), true), "it has the other one");
        assert!(secrets.note_opened(late, (offered, after), true));
        assert_eq!(bytes(&secrets), [2, 1]);

        let mut secrets = Secrets::default();
        secrets.agree(now, psk(1));
        secrets.offer(now, psk(2));
        let late = now + KEY_EXCHANGE_CROSSING_MAX;
        let [own, offered] = [1, 2].map(|byte| generation(&secrets, byte));
        assert!(secrets.note_opened(late, (offered, after), true));
        assert!(!secrets.note_opened(late, (own, before), true));
        assert_eq!(bytes(&secrets), [2, 1]);
    }

    /// The peer began an exchange and died; its next run has answered this station's initiation.
    /// A frame of the first run arrives late, or too late.
    #[test]
    fn the_later_run_counts_whichever_end_precedes_and_in_whatever_order_its_frames_arrive() {
        let (before, after) = (1, 2);
        for precedes in [false, true] {
            let mut secrets = Secrets::default();
            let now = Time::ZERO;
            secrets.offer(now, psk(1));
            secrets.agree(now, psk(2));
            let [offered, own] = [1, 2].map(|byte| generation(&secrets, byte));

            // The end that precedes waits for its own secret at first.
            let late = now + KEY_EXCHANGE_CROSSING_MAX;
            assert!(secrets.note_opened(late, (offered, before), precedes));
            assert_eq!(bytes(&secrets), [1, 2]);
            assert!(secrets.note_opened(late, (own, after), precedes) && secrets.is_proven());
            assert_eq!(bytes(&secrets), [2, 1]);
            assert!(!secrets.note_opened(late, (offered, before), precedes), "and stays there");
            assert!(secrets.expire(late + FORMER_SECRET_AGE_MAX));
            assert_eq!(bytes(&secrets), [2]);

            let mut secrets = Secrets::default();
            secrets.offer(now, psk(1));
            secrets.agree(now, psk(2));
            let [offered, own] = [1, 2].map(|byte| generation(&secrets, byte));
            assert!(secrets.note_opened(now, (own, after), precedes));
            assert!(!secrets.note_opened(late, (offered, before), precedes), "it is too late");
            assert_eq!(bytes(&secrets), [2, 1]);
        }
    }

    #[test]
    fn nothing_outlives_its_time() {
        let mut secrets = Secrets::default();
        secrets.agree(Time::ZERO, psk(1));
        secrets.offer(Time::ZERO, psk(2));
        let end = Time::ZERO + REJECT_AFTER_TIME;
        assert_eq!(secrets.expire_at(), Some(end));
        assert!(secrets.expire(end) && bytes(&secrets).is_empty());
        assert!(!secrets.expire(end) && secrets.expire_at().is_none());
    }
}
