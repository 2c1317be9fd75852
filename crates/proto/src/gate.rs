//! Who is looked into. A HELLO of an unknown session costs a key derivation and a place among those
//! that wait, a message of a key exchange costs Diffie-Hellman, and anybody can send either, from
//! any address. So the driver asks here first:
//!
//! 1. What belongs to a session that is known, or is a frame of data, passes: nothing that
//!    strangers send takes a share from it.
//! 2. Of the rest a few pass, from each source and in all. That is all there is in peace.
//! 3. Where there are more, a message is answered by a cookie, a MAC of the address it came from:
//!    36 bytes, fewer than the message has, and nothing is remembered of it. Who repeats the
//!    message with a MAC under that cookie has shown that it is heard from there, and is looked
//!    into within the budget of its source.

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use crate::bounds::{
    COOKIE_KEY_AGE_MAX, SOURCE_MESSAGES_BURST, SOURCE_MESSAGES_PER_SECOND, SOURCES_MAX,
    UNPROVEN_HELLOS_PER_SECOND, UNPROVEN_INITIATIONS_PER_SECOND,
};
use crate::config::StationId;
use crate::keys::Security;
use crate::link::mac::{CookieKey, MacKey, cookie_mac};
use crate::wire::cookie::{self, COOKIE_LEN, CookieReply};
use crate::wire::{Header, KeyExchange, Kind, Random128, Step};

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

    /// Whether one more may pass, which does not count as one.
    fn has_room(&self, now: Time, per_second: u32, burst: u32) -> bool {
        self.even_at.max(now) - now < Duration::from_secs(1) / per_second * burst
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

/// What one source may send.
#[derive(Clone, Copy, Debug)]
struct Source<A> {
    from: A,
    greetings: Bucket,
    initiations: Bucket,
    responses: Bucket,
}

/// Sources, those that were quiet for longest making room.
#[derive(Clone, Debug, Default)]
struct Sources<A>(ArrayVec<Source<A>, SOURCES_MAX>);

/// Whether a frame goes on to the station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission<'a> {
    /// This does.
    Pass(&'a [u8]),
    /// It does not: one too many of its source.
    Refuse,
    /// It does not: this frame is to go back to where it came from.
    Answer([u8; COOKIE_LEN]),
}

/// What costs something, and in which budget it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Costly {
    Greeting,
    Initiation,
    Response,
}

/// Decides who is looked into. Sources are the driver's: whatever somebody who sends under many
/// addresses has one of.
pub struct Gate<A> {
    me: StationId,
    /// What shows that a message is for this station; none where there are no key exchanges.
    mac: Option<MacKey>,
    cookies: [CookieKey; 2],
    renew_at: Time,
    greetings: Bucket,
    initiations: Bucket,
    /// Of those that have shown nothing, and of those that have shown that they are heard from.
    unproven: Sources<A>,
    proven: Sources<A>,
    rng: Stream,
}

impl<A: Copy + PartialEq> Gate<A> {
    /// Of a station with these keys. `entropy` is 32 bytes of fresh randomness.
    pub fn new(me: StationId, security: &Security, entropy: [u8; 32], now: Time) -> Self {
        let mac = match security {
            Security::Shared(_) => None,
            Security::Keys(keys) => Some(MacKey::of(&keys.private.public())),
        };
        let mut rng = Stream::from_seed(entropy);
        Gate {
            me,
            mac,
            cookies: [cookie_key(&mut rng), cookie_key(&mut rng)],
            renew_at: now + COOKIE_KEY_AGE_MAX,
            greetings: Bucket::full(now),
            initiations: Bucket::full(now),
            unproven: Sources(ArrayVec::new()),
            proven: Sources(ArrayVec::new()),
            rng,
        }
    }

    /// What becomes of a frame from a source, and from an address of it. `knows` tells whether it
    /// is a HELLO of a session that the station knows ([`crate::AnyStation::knows_session`]).
    ///
    /// What has no MAC for this station is not counted, or anybody could use up what is left to a
    /// source by messages that name it: the station refuses it at no greater cost.
    pub fn admit<'a>(
        &mut self,
        now: Time,
        (source, address): (A, &[u8]),
        frame: &'a [u8],
        knows: impl FnOnce(&[u8]) -> bool,
    ) -> Admission<'a> {
        let (mac, message) = cookie::unwrap(frame);
        let Some(costly) = self.costly(message, knows) else { return Admission::Pass(message) };
        let is_proven = mac.is_some_and(|mac| self.is_of_cookie(now, address, message, &mac));
        let sources = if is_proven { &mut self.proven } else { &mut self.unproven };
        let all = match costly {
            Costly::Greeting => Some((&mut self.greetings, UNPROVEN_HELLOS_PER_SECOND)),
            Costly::Initiation => Some((&mut self.initiations, UNPROVEN_INITIATIONS_PER_SECOND)),
            Costly::Response => None,
        };
        let passes = match all.filter(|_| !is_proven) {
            // Where there are too many of all, no source is charged, or remembered.
            Some((all, rate)) => {
                all.has_room(now, rate, rate)
                    && sources.take(now, source, costly)
                    && all.take(now, rate, rate)
            }
            None => sources.take(now, source, costly),
        };
        if passes {
            return Admission::Pass(message);
        }
        match cookie::asked_by(message) {
            Some(answers) if !is_proven && message.len() >= COOKIE_LEN => {
                let cookie = self.cookies[0].cookie(address);
                Admission::Answer(CookieReply { sender: self.me, answers, cookie }.frame())
            }
            _ => Admission::Refuse,
        }
    }

    fn costly(&self, message: &[u8], knows: impl FnOnce(&[u8]) -> bool) -> Option<Costly> {
        if let Some(header) = Header::parse(message) {
            let is_costly = header.kind == Kind::Hello && !knows(message);
            return is_costly.then_some(Costly::Greeting);
        }
        let exchange = KeyExchange::parse(message)?;
        self.mac.as_ref().filter(|mac| mac.is_of(&exchange))?;
        Some(match exchange.step {
            Step::Initiation => Costly::Initiation,
            Step::Response => Costly::Response,
        })
    }

    /// Whether a message was made by who knows the cookie of the address it came from.
    fn is_of_cookie(&mut self, now: Time, address: &[u8], message: &[u8], mac: &Random128) -> bool {
        if now >= self.renew_at {
            self.renew_at = now + COOKIE_KEY_AGE_MAX;
            self.cookies.swap(0, 1);
            self.cookies[0] = cookie_key(&mut self.rng);
        }
        // What is compared is known to who sends it: time that shows how much agrees tells them
        // nothing that they could use in less than 2^64 messages.
        self.cookies.iter().any(|key| cookie_mac(&key.cookie(address), message) == *mac)
    }
}

impl<A: Copy + PartialEq> Sources<A> {
    /// Whether one more of a source may pass: [`SOURCE_MESSAGES_BURST`] of each kind at once,
    /// [`SOURCE_MESSAGES_PER_SECOND`] in the long run.
    fn take(&mut self, now: Time, from: A, costly: Costly) -> bool {
        let source = self.source(now, from);
        let bucket = match costly {
            Costly::Greeting => &mut source.greetings,
            Costly::Initiation => &mut source.initiations,
            Costly::Response => &mut source.responses,
        };
        bucket.take(now, SOURCE_MESSAGES_PER_SECOND, SOURCE_MESSAGES_BURST)
    }

    fn source(&mut self, now: Time, from: A) -> &mut Source<A> {
        let seen = &mut self.0;
        let at = match seen.iter().position(|source| source.from == from) {
            Some(at) => at,
            None => {
                if seen.is_full() {
                    let even_at = |at: &usize| {
                        let Source { greetings, initiations, responses, .. } = &seen[*at];
                        greetings.even_at.max(initiations.even_at).max(responses.even_at)
                    };
                    let quiet = (0..seen.len()).min_by_key(even_at);
                    seen.swap_remove(quiet.unwrap_or_default());
                }
                let [greetings, initiations, responses] = [Bucket::full(now); 3];
                seen.push(Source { from, greetings, initiations, responses });
                seen.len() - 1
            }
        };
        &mut seen[at]
    }
}

fn cookie_key(rng: &mut Stream) -> CookieKey {
    let mut secret = [0; 32];
    rng.fill_bytes(&mut secret);
    CookieKey::new(&secret)
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

    fn gate() -> Gate<usize> {
        let keys = Keys { private: private(1), peers: Vec::new(), started_ns: 0 };
        Gate::new(StationId(1), &Security::Keys(Box::new(keys)), [3; 32], Time::ZERO)
    }

    fn hello(session: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        let header = Header { kind: Kind::Hello, has_ack: false, session_tag: 0, counter: 0 };
        header.write(&mut frame);
        frame.extend_from_slice(&[0, 2]);
        frame.resize(60, session);
        frame
    }

    fn admit<'a>(gate: &mut Gate<usize>, now: Time, from: usize, frame: &'a [u8]) -> Admission<'a> {
        gate.admit(now, (from, &from.to_be_bytes()), frame, |_| false)
    }

    fn passes(gate: &mut Gate<usize>, now: Time, from: usize, frame: &[u8]) -> bool {
        matches!(admit(gate, now, from, frame), Admission::Pass(_))
    }

    /// The message again, with what was answered to it.
    fn with_cookie(gate: &mut Gate<usize>, now: Time, from: usize, message: &[u8]) -> Vec<u8> {
        let Admission::Answer(reply) = admit(gate, now, from, message) else { panic!("no cookie") };
        let reply = CookieReply::parse(&reply).unwrap();
        assert_eq!(Some(reply.answers), cookie::asked_by(message));
        let mut wrapped = message.to_vec();
        let mac = cookie_mac(&reply.cookie, message);
        cookie::wrap(StationId(2), &mac, &mut wrapped);
        wrapped
    }

    #[test]
    fn a_source_that_floods_is_held_back_and_no_other_and_nothing_else() {
        let response = message(1, Step::Response, RESPONSE_LEN);
        for (flood, other) in [(initiation(1), response.clone()), (response, initiation(1))] {
            let (mut gate, mut admitted) = (gate(), 0);
            for ms in 0..10_000 {
                let now = Time::from_millis(ms);
                admitted += u32::from(passes(&mut gate, now, 7, &flood));
                if ms % 1_000 == 999 {
                    assert!(
                        passes(&mut gate, now, 7, &other) && passes(&mut gate, now, 7, &[1; 90])
                    );
                }
            }
            let most = SOURCE_MESSAGES_BURST + 10 * SOURCE_MESSAGES_PER_SECOND;
            assert!((90..=most).contains(&admitted), "{admitted}");
        }
    }

    #[test]
    fn what_is_not_for_this_station_uses_up_nothing() {
        let mut gate = gate();
        let mut bent = initiation(1);
        bent[20] ^= 1;
        for _ in 0..1_000 {
            assert!(passes(&mut gate, Time::ZERO, 7, &initiation(2)));
            assert!(passes(&mut gate, Time::ZERO, 7, &bent));
        }
        assert!(gate.unproven.0.is_empty() && gate.proven.0.is_empty());
    }

    #[test]
    fn who_shows_that_it_is_heard_from_passes_whatever_others_send() {
        for message in [initiation(1), hello(5)] {
            let (mut gate, mut passed) = (gate(), 0);
            for flooder in 1_000..20_000 {
                let flood = if message.len() == 60 { hello(flooder as u8) } else { initiation(1) };
                passed += u32::from(passes(&mut gate, Time::ZERO, flooder, &flood));
            }
            assert!(passed <= UNPROVEN_HELLOS_PER_SECOND, "{passed}");
            let wrapped = with_cookie(&mut gate, Time::ZERO, 7, &message);
            assert_eq!(admit(&mut gate, Time::ZERO, 7, &wrapped), Admission::Pass(&message));
            // From elsewhere it is worth nothing, and within its budget only from there.
            assert!(matches!(admit(&mut gate, Time::ZERO, 8, &wrapped), Admission::Answer(_)));
            for _ in 1..SOURCE_MESSAGES_BURST {
                assert!(passes(&mut gate, Time::ZERO, 7, &wrapped));
            }
            assert_eq!(admit(&mut gate, Time::ZERO, 7, &wrapped), Admission::Refuse);
        }
    }

    /// As many come, from as many sources, as are looked into.
    fn crowd(gate: &mut Gate<usize>, now: Time, message: &[u8]) {
        let turned_away = (1_000..).find(|&from| !passes(gate, now, from, message));
        assert!(turned_away.is_some());
    }

    #[test]
    fn a_cookie_is_worth_something_for_two_to_four_minutes() {
        let (mut gate, message) = (gate(), hello(5));
        crowd(&mut gate, Time::ZERO, &message);
        let wrapped = with_cookie(&mut gate, Time::ZERO, 7, &message);
        let mut at = |seconds: u64| {
            let now = Time::from_millis(1_000 * seconds);
            crowd(&mut gate, now, &message);
            passes(&mut gate, now, 7, &wrapped)
        };
        assert!(at(100) && at(150) && at(230));
        assert!(!at(400));
    }

    #[test]
    fn a_known_session_and_data_are_not_counted() {
        let mut gate = gate();
        let mut data = Vec::new();
        Header { kind: Kind::Window, has_ack: false, session_tag: 0, counter: 0 }.write(&mut data);
        data.resize(100, 1);
        for _ in 0..10_000 {
            assert!(passes(&mut gate, Time::ZERO, 7, &data));
            let known = gate.admit(Time::ZERO, (7, &[7]), &data, |_| true);
            assert_eq!(known, Admission::Pass(&data));
        }
    }

    #[test]
    fn what_is_answered_is_longer_than_the_answer() {
        let mut gate = gate();
        crowd(&mut gate, Time::ZERO, &hello(5));
        for len in 0..200 {
            let mut short = hello(5);
            short.resize(len, 5);
            if let Admission::Answer(answer) = admit(&mut gate, Time::ZERO, 9, &short) {
                assert!(answer.len() <= len);
            }
        }
    }

    #[test]
    fn sources_are_bounded_and_the_busy_one_is_remembered() {
        let (mut gate, response) = (gate(), message(1, Step::Response, RESPONSE_LEN));
        while passes(&mut gate, Time::ZERO, 0, &response) {}
        for other in 1..10 * SOURCES_MAX {
            assert!(passes(&mut gate, Time::ZERO, other, &response));
        }
        assert_eq!(gate.unproven.0.len(), SOURCES_MAX);
        assert!(!passes(&mut gate, Time::ZERO, 0, &response));
    }
}
