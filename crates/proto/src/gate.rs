//! Decides which messages of strangers are examined. A HELLO of an unknown session costs a key
//! derivation and a place among pending sessions, a key exchange message costs a Diffie-Hellman,
//! and anybody can send either from any address. So the driver asks here first:
//!
//! 1. What belongs to a known session, or is a data frame, passes: nothing that strangers send
//!    takes capacity from it. A response passes if the station waits for it.
//! 2. Of the rest a few pass, from each source and in total. Without an attack this suffices.
//! 3. If there are more, a message is answered by a cookie, a MAC of its address: 36 bytes, fewer
//!    than the message has, and no state is kept. A sender that repeats the message with a MAC
//!    under that cookie has proved that it receives at its address, and is examined within its
//!    source's budget.

use arrayvec::ArrayVec;
use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use crate::bounds::{
    COOKIE_KEY_AGE_MAX, NETWORK_SOURCES, SOURCE_MESSAGES_BURST, SOURCE_MESSAGES_PER_SECOND,
    SOURCES_MAX, UNPROVEN_HELLOS_PER_SECOND, UNPROVEN_INITIATIONS_PER_SECOND,
};
use crate::bucket::Bucket;
use crate::config::StationId;
use crate::end_keys::is_same;
use crate::keys::Security;
use crate::link::mac::{CookieKey, MacKey, cookie_mac};
use crate::wire::cookie::{self, COOKIE_LEN, CookieReply};
use crate::wire::{Header, KeyExchange, Random128, Step};

/// What each of some sources may send of one kind, as a multiple of a single source's budget. A
/// source whose budget is full again can be replaced by another. If there is none, no other is
/// accepted, because otherwise the total over many sources would be unbounded.
#[derive(Clone, Debug)]
struct Sources<A> {
    seen: ArrayVec<(A, Bucket), SOURCES_MAX>,
    times: u32,
}

/// Whether a frame goes on to the station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission<'a> {
    /// It passes: hand this to the station.
    Pass(&'a [u8]),
    /// It is dropped: its source has sent too many.
    Refuse,
    /// It is dropped: send this frame back to where it came from.
    Answer([u8; COOKIE_LEN]),
}

/// Messages that are costly to examine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Costly {
    Hello,
    Initiation,
    Response,
}

/// Budgets of costly messages, for HELLOs or initiations.
struct Budgets<A> {
    /// For all sources that have proved nothing, per second and as a burst.
    unproven_all: (Bucket, u32),
    /// For each of them.
    unproven: Sources<A>,
    /// For each source that has proved to receive at its address, and for its network.
    proven: Sources<A>,
    proven_networks: Sources<A>,
}

/// Decides which messages are examined. Sources are those of the driver: whatever a sender with
/// many addresses has only one of.
pub struct Gate<A> {
    me: StationId,
    /// Shows that a message is for this station; `None` where there are no key exchanges.
    mac: Option<MacKey>,
    cookies: [CookieKey; 2],
    renew_at: Time,
    /// The network of a source, where a sender with one network has many sources.
    network_of: fn(&A) -> Option<A>,
    hellos: Budgets<A>,
    initiations: Budgets<A>,
    responses: Sources<A>,
    rng: Stream,
}

impl<A: Copy + PartialEq> Gate<A> {
    /// For a station with these keys. `entropy` is 32 bytes of fresh randomness.
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
            network_of: |_| None,
            hellos: Budgets::new(now, UNPROVEN_HELLOS_PER_SECOND),
            initiations: Budgets::new(now, UNPROVEN_INITIATIONS_PER_SECOND),
            responses: Sources::new(1),
            rng,
        }
    }

    /// Also limits networks; `network_of` returns that of a source. A sender with an IPv6 network
    /// has as many sources as it likes.
    #[must_use]
    pub fn with_networks(self, network_of: fn(&A) -> Option<A>) -> Self {
        Gate { network_of, ..self }
    }

    /// Decides about a frame from a source, and from an address of it. `expects`: whether a message
    /// is a HELLO of a known session, or a response to an initiation of the station
    /// ([`crate::Driven::expects`]).
    ///
    /// A message without a MAC for this station is not counted, because otherwise anybody could use
    /// up a source's budget with messages in its name; the station rejects it at no greater cost.
    /// Nor is a response to nothing counted: it is dropped.
    pub fn admit<'a>(
        &mut self,
        now: Time,
        (source, address): (A, &[u8]),
        frame: &'a [u8],
        expects: impl Fn(&[u8]) -> bool,
    ) -> Admission<'a> {
        self.renew_cookies(now);
        let (mac, message) = cookie::unwrap(frame);
        let budgets = match self.costly(message) {
            None => return Admission::Pass(message),
            Some(Costly::Hello) if expects(message) => return Admission::Pass(message),
            Some(Costly::Response) if expects(message) && self.responses.take(now, source) => {
                return Admission::Pass(message);
            }
            Some(Costly::Response) => return Admission::Refuse,
            Some(Costly::Hello) => &mut self.hellos,
            Some(Costly::Initiation) => &mut self.initiations,
        };
        let is_proven = mac.is_some_and(|mac| is_of_cookie(&self.cookies, address, message, &mac));
        let passes = if is_proven {
            budgets.take_proven(now, source, (self.network_of)(&source))
        } else {
            budgets.take_unproven(now, source)
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

    fn costly(&self, message: &[u8]) -> Option<Costly> {
        if let Some(header) = Header::parse(message) {
            return header.is_hello.then_some(Costly::Hello);
        }
        let exchange = KeyExchange::parse(message)?;
        self.mac.as_ref().filter(|mac| mac.is_of(&exchange))?;
        Some(match exchange.step {
            Step::Initiation => Costly::Initiation,
            Step::Response | Step::Handout => Costly::Response,
        })
    }

    /// Changes the cookie key from time to time, whatever is sent.
    fn renew_cookies(&mut self, now: Time) {
        if now < self.renew_at {
            return;
        }
        self.cookies.swap(0, 1);
        self.cookies[0] = cookie_key(&mut self.rng);
        if now >= self.renew_at + COOKIE_KEY_AGE_MAX {
            // Nothing came for so long that the previous key is too old as well.
            self.cookies[1] = cookie_key(&mut self.rng);
        }
        self.renew_at = now + COOKIE_KEY_AGE_MAX;
    }
}

/// Whether a message's sender knows the cookie of the address that it came from.
fn is_of_cookie(keys: &[CookieKey], address: &[u8], message: &[u8], mac: &Random128) -> bool {
    keys.iter().any(|key| is_same(&cookie_mac(&key.cookie(address), message), mac))
}

impl<A: Copy + PartialEq> Budgets<A> {
    fn new(now: Time, unproven_per_second: u32) -> Self {
        Budgets {
            unproven_all: (Bucket::full(now), unproven_per_second),
            unproven: Sources::new(1),
            proven: Sources::new(1),
            proven_networks: Sources::new(NETWORK_SOURCES),
        }
    }

    /// Whether one more may pass from a source that may be forged.
    fn take_unproven(&mut self, now: Time, source: A) -> bool {
        let (all, rate) = (&mut self.unproven_all.0, self.unproven_all.1);
        // If the total is exceeded, no source is charged or remembered.
        all.has_room(now, rate, rate)
            && self.unproven.take(now, source)
            && all.take(now, rate, rate)
    }

    /// Whether one more may pass from a source that is proven.
    fn take_proven(&mut self, now: Time, source: A, network: Option<A>) -> bool {
        let Some(network) = network else { return self.proven.take(now, source) };
        // A network that has sent too many gets no place for further sources, and one of its
        // sources that has sent too many takes nothing from the others.
        self.proven_networks.has_room(now, network)
            && self.proven.take(now, source)
            && self.proven_networks.take(now, network)
    }
}

impl<A: Copy + PartialEq> Sources<A> {
    fn new(times: u32) -> Self {
        Sources { seen: ArrayVec::new(), times }
    }

    /// Messages per second, and as a burst.
    fn budget(&self) -> (u32, u32) {
        (SOURCE_MESSAGES_PER_SECOND * self.times, SOURCE_MESSAGES_BURST * self.times)
    }

    /// Whether one more may pass from a source: [`SOURCE_MESSAGES_BURST`] at once,
    /// [`SOURCE_MESSAGES_PER_SECOND`] in the long run. If so, counts it.
    fn take(&mut self, now: Time, from: A) -> bool {
        let (per_second, burst) = self.budget();
        match self.bucket(now, from) {
            Some(bucket) => bucket.take(now, per_second, burst),
            None => false,
        }
    }

    /// Whether one more may pass from a source; does not count it.
    fn has_room(&mut self, now: Time, from: A) -> bool {
        let (per_second, burst) = self.budget();
        self.bucket(now, from).is_some_and(|bucket| bucket.has_room(now, per_second, burst))
    }

    /// The budget of a source; `None` if there is no place for another one.
    fn bucket(&mut self, now: Time, from: A) -> Option<&mut Bucket> {
        let seen = &mut self.seen;
        let at = match seen.iter().position(|(other, _)| *other == from) {
            Some(at) => at,
            None => {
                if seen.is_full() {
                    seen.swap_remove(seen.iter().position(|(_, it)| it.is_full(now))?);
                }
                seen.push((from, Bucket::full(now)));
                seen.len() - 1
            }
        };
        Some(&mut seen[at].1)
    }
}

fn cookie_key(rng: &mut Stream) -> CookieKey {
    let mut secret = [0; 32];
    rng.fill_bytes(&mut secret);
    CookieKey::new(&secret)
}

#[cfg(test)]
mod pair_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StationId;
    use crate::keys::{Keys, PrivateKey};
    use crate::wire::{INITIATION_LEN, KEY_EXCHANGE_MAC_LEN, RESPONSE_LEN};

    fn private(byte: u8) -> PrivateKey {
        PrivateKey::from_random([byte; 32])
    }

    /// A message to the station with this private key.
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
        let keys = Keys { private: private(1), peers: Vec::new() };
        Gate::new(StationId(1), &Security::Keys(Box::new(keys)), [3; 32], Time::ZERO)
    }

    fn hello(session: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        let header = Header { is_hello: true, session_tag: 0, counter: 0 };
        header.write(&mut frame);
        frame.extend_from_slice(&[0, 2]);
        frame.resize(60, session);
        frame
    }

    fn admit<'a>(gate: &mut Gate<usize>, now: Time, from: usize, frame: &'a [u8]) -> Admission<'a> {
        // The station waits for a response.
        let expects = |message: &[u8]| KeyExchange::parse(message).is_some();
        gate.admit(now, (from, &from.to_be_bytes()), frame, expects)
    }

    fn passes(gate: &mut Gate<usize>, now: Time, from: usize, frame: &[u8]) -> bool {
        matches!(admit(gate, now, from, frame), Admission::Pass(_))
    }

    /// The message again, with the MAC of the cookie that it got.
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
        assert!(gate.initiations.unproven.seen.is_empty());
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
            // From another address it is useless, and from its own it passes only within the
            // budget.
            assert!(matches!(admit(&mut gate, Time::ZERO, 8, &wrapped), Admission::Answer(_)));
            for _ in 1..SOURCE_MESSAGES_BURST {
                assert!(passes(&mut gate, Time::ZERO, 7, &wrapped));
            }
            assert_eq!(admit(&mut gate, Time::ZERO, 7, &wrapped), Admission::Refuse);
        }
    }

    /// As many messages, from as many sources, as are examined.
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
        Header { is_hello: false, session_tag: 0, counter: 0 }.write(&mut data);
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

    /// Sources that were replaced had their full budgets again when they came back.
    #[test]
    fn many_sources_that_are_heard_from_have_a_bound_together() {
        let (mut gate, message) = (gate(), hello(5));
        crowd(&mut gate, Time::ZERO, &message);
        let wrapped: Vec<_> = (100_000..100_000 + 20 * SOURCES_MAX)
            .map(|from| (from, with_cookie(&mut gate, Time::ZERO, from, &message)))
            .collect();
        let mut passed = 0;
        for ms in 0..500 {
            for (from, wrapped) in wrapped.iter().skip(ms % 7).step_by(7) {
                let now = Time::from_millis(ms as u64);
                passed += usize::from(passes(&mut gate, now, *from, wrapped));
            }
        }
        let each = SOURCE_MESSAGES_BURST + SOURCE_MESSAGES_PER_SECOND / 2;
        assert!(passed > SOURCES_MAX, "{passed}");
        assert!(passed <= SOURCES_MAX * each as usize, "{passed}");
        assert_eq!(gate.hellos.proven.seen.len(), SOURCES_MAX);
    }

    /// Sources are numbered `network * 1_000 + source` here.
    #[test]
    fn a_network_of_many_sources_does_not_keep_another_out() {
        let mut gate = gate().with_networks(|source| Some(source / 1_000));
        let message = hello(5);
        crowd(&mut gate, Time::ZERO, &message);
        let of_one: Vec<_> = (7_000..7_000 + 4 * SOURCES_MAX)
            .map(|from| (from, with_cookie(&mut gate, Time::ZERO, from, &message)))
            .collect();
        let other = with_cookie(&mut gate, Time::ZERO, 8_000, &message);
        let (mut passed, mut of_other) = (0, 0);
        for ms in 0..1_000 {
            let now = Time::from_millis(ms);
            for (from, wrapped) in of_one.iter().skip(ms as usize % 4).step_by(4) {
                passed += u32::from(passes(&mut gate, now, *from, wrapped));
            }
            // As often as allowed in the long run.
            let may = ms % (1_000 / u64::from(SOURCE_MESSAGES_PER_SECOND)) == 0;
            of_other += u32::from(may && passes(&mut gate, now, 8_000, &other));
        }
        let each = SOURCE_MESSAGES_BURST + SOURCE_MESSAGES_PER_SECOND;
        assert!(passed <= NETWORK_SOURCES * each, "{passed}");
        assert!(of_other >= SOURCE_MESSAGES_PER_SECOND - 1, "{of_other}");
    }

    /// A MAC for this station takes only its public key, and a source can be forged.
    #[test]
    fn responses_that_nobody_has_asked_for_take_nothing_from_the_one_that_was() {
        let (mut gate, mut passed) = (gate(), 0);
        let forged = message(1, Step::Response, RESPONSE_LEN);
        let mut asked = Vec::new();
        KeyExchange::write_head(StationId(1), Step::Response, [9; 4], &mut asked);
        asked.resize(RESPONSE_LEN - KEY_EXCHANGE_MAC_LEN, 0);
        MacKey::of(&private(1).public()).write(&mut asked);
        let expects = |message: &[u8]| {
            KeyExchange::parse(message).is_some_and(|message| message.exchange == [9; 4])
        };
        for ms in 0..1_000 {
            let now = Time::from_millis(ms);
            for _ in 0..10 {
                let forged = gate.admit(now, (7, &[7]), &forged, expects);
                assert_eq!(forged, Admission::Refuse);
            }
            if ms % 100 == 0 {
                let asked = gate.admit(now, (7, &[7]), &asked, expects);
                passed += u32::from(matches!(asked, Admission::Pass(_)));
            }
        }
        assert_eq!(passed, 10);
    }

    #[test]
    fn a_cookie_does_not_outlive_silence() {
        for (seconds, holds) in
            [(100, true), (125, true), (239, true), (241, false), (9_000, false)]
        {
            let (mut gate, message) = (gate(), hello(5));
            crowd(&mut gate, Time::ZERO, &message);
            let wrapped = with_cookie(&mut gate, Time::ZERO, 7, &message);
            // After a long time, the first message is the one with the cookie's MAC.
            let now = Time::from_millis(1_000 * seconds);
            assert!(passes(&mut gate, now, 7, &wrapped));
            assert_eq!(gate.hellos.proven.seen.is_empty(), !holds, "{seconds}");
        }
    }

    /// What the gate had unwrapped once was unwrapped again by the station, which then examined all
    /// of it.
    #[test]
    fn what_is_wrapped_twice_is_nothing_that_a_station_looks_into() {
        let mut gate = gate();
        for message in [hello(5), initiation(1)] {
            let mut nested = message.clone();
            for _ in 0..4 {
                cookie::wrap(StationId(2), &[0; 16], &mut nested);
                let Admission::Pass(passed) = admit(&mut gate, Time::ZERO, 7, &nested) else {
                    panic!("neither costly nor refused")
                };
                let (_, taken) = cookie::unwrap(passed);
                let is_looked_into = Header::parse(taken).is_some_and(|it| it.is_hello)
                    || KeyExchange::parse(taken).is_some();
                // The gate has counted the first wrapping.
                let is_counted = passed.len() == message.len();
                assert!(is_counted || !is_looked_into);
            }
        }
        assert_eq!(gate.hellos.unproven.seen.len(), 1);
        assert_eq!(gate.initiations.unproven.seen.len(), 1);
    }
}
