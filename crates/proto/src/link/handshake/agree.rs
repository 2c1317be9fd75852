//! Secrets of a pair: when two stations with key pairs agree on the next one, and what changes
//! then. The messages for that are in `link/exchange.rs`.

use super::*;
use crate::bounds::{REKEY_AFTER_FRAMES, REKEY_SILENCE_HELLOS, REKEY_WAIT};
use crate::link::exchange::Taken;
use crate::psk::Psk;
use crate::wire::KeyExchange;
use crate::wire::cookie::CookieReply;

impl Group {
    /// Whether stations have key pairs here, and agree on secrets.
    pub(crate) fn has_keys(&self) -> bool {
        !matches!(self.keyring, Keyring::Shared(_))
    }

    /// The secret that frames are sealed under now.
    pub(crate) fn secret(&self) -> Option<&Psk> {
        self.keyring.secret()
    }

    /// See [`Exchange::set_clock`](crate::link::exchange::Exchange::set_clock).
    pub(crate) fn set_clock(&mut self, clocks: Clocks) {
        self.keyring.exchanges_mut().for_each(|exchange| exchange.set_clock(clocks));
    }

    /// Sets how old a secret may become before another is agreed on.
    pub(crate) fn set_rekey_interval(&mut self, interval: Duration) {
        match &mut self.keyring {
            Keyring::Shared(_) => {}
            Keyring::Pair(_, exchange) => exchange.set_rekey_after(interval),
            Keyring::Members(keys) => keys.set_rekey_after(interval),
        }
    }

    /// Handles what is not a frame of a session: perhaps a key exchange message.
    pub(super) fn open_exchange(&mut self, now: Time, frame: &[u8]) -> Opening {
        if let Some(reply) = CookieReply::parse(frame) {
            let is_ours = self.take_cookie(now, &reply);
            return if is_ours { Opening::Cookie } else { Opening::NotAuthentic };
        }
        let Some(message) = KeyExchange::parse(frame) else { return Opening::Malformed };
        match self.keyring {
            Keyring::Shared(_) => Opening::Malformed,
            Keyring::Pair(..) => self.open_pair_exchange(now, &message),
            Keyring::Members(_) => self.open_member_exchange(now, &message),
        }
    }

    fn open_pair_exchange(&mut self, now: Time, message: &KeyExchange<'_>) -> Opening {
        let Keyring::Pair(secrets, exchange) = &mut self.keyring else { return Opening::Malformed };
        let from = message.sender;
        match exchange.take(now, message) {
            Taken::Offered(secret) => {
                secrets.offer(now, secret);
                self.follow_secrets(now);
                Opening::Initiation { from }
            }
            Taken::Agreed(secret) => {
                secrets.agree(now, secret);
                self.follow_secrets(now);
                self.drop_cookie_if_known();
                Opening::Response { from }
            }
            Taken::Repeated => Opening::Initiation { from },
            Taken::Unheard => {
                // Only a frame under the secret proves it.
                if secrets.agreed().is_some() && !secrets.is_proven() {
                    self.hurry_hello(now);
                }
                Opening::Replayed
            }
            Taken::Replayed => {
                // Or it is a peer whose clock went back, which is answered by an initiation of our
                // own.
                let is_new = |(at, _)| now - at < REKEY_WAIT;
                if !secrets.agreed().is_some_and(is_new) {
                    exchange.begin(now);
                }
                Opening::Replayed
            }
            Taken::Asked | Taken::Given(_) | Taken::Refused => Opening::NotAuthentic,
        }
    }

    /// A frame of this instance of a peer was opened, under a key derived from this secret.
    pub(super) fn note_opened(
        &mut self,
        now: Time,
        from: StationId,
        generation: Generation,
        instance: u64,
    ) {
        let is_news = match &mut self.keyring {
            Keyring::Shared(_) => false,
            Keyring::Pair(secrets, exchange) => {
                let is_news = secrets.note_opened(now, (generation, instance), exchange.precedes());
                if is_news {
                    exchange.note_proven();
                }
                is_news
            }
            Keyring::Members(keys) => keys.note_opened(now, from, generation),
        };
        if is_news {
            self.follow_secrets(now);
        }
    }

    /// Derives the keys of all sessions from the present secrets.
    pub(super) fn follow_secrets(&mut self, now: Time) {
        let Group { keyring, own, peers, me, .. } = self;
        let is_another = own.generation != keyring.own_generation();
        if is_another {
            own.key = keyring.own_key(*me, &own.id);
            (own.generation, own.sealed) = (keyring.own_generation(), 0);
        }
        for peer in peers.iter_mut() {
            let id = peer.id;
            let follow = |keys: &mut SessionKeys, session: &Random128| {
                *keys = keyring.follow(core::mem::take(keys), id, session);
            };
            peer.session.iter_mut().for_each(|session| follow(&mut session.keys, &session.id));
            peer.pending.iter_mut().for_each(|pending| follow(&mut pending.keys, &pending.id));
        }
        // So that the peer soon hears of it.
        if is_another && self.can_seal() {
            self.hurry_hello(now);
        }
    }

    /// Writes the next key exchange message into `frame` (replaced), if one is due; returns its
    /// receiver.
    pub(crate) fn poll_exchange(&mut self, now: Time, frame: &mut Vec<u8>) -> Option<StationId> {
        let longest = self.outreach_interval(now).unwrap_or(HELLO_INTERVAL_SEARCH_MAX);
        let mut exchanges = self.keyring.exchanges_mut();
        let to = exchanges.find_map(|it| it.poll(now, longest, frame).then(|| it.peer_id()))?;
        drop(exchanges);
        if cookie::asked_by(frame).is_some() {
            frame.resize(frame.len().max(self.seeking_len(now)), 0);
            self.show_cookie(now, frame);
        }
        Some(to)
    }

    /// Begins a key exchange if it is time, and forgets old secrets.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if let Keyring::Members(_) = self.keyring {
            return self.handle_members_timeout(now);
        }
        if let Keyring::Pair(secrets, _) = &mut self.keyring
            && secrets.expire_at().is_some_and(|at| at <= now)
            && secrets.expire(now)
        {
            self.follow_secrets(now);
        }
        if self.begin_at().is_some_and(|at| at <= now)
            && let Keyring::Pair(_, exchange) = &mut self.keyring
        {
            exchange.begin(now);
        }
    }

    /// When to agree on the next secret, if no key exchange has begun.
    fn begin_at(&self) -> Option<Time> {
        let Keyring::Pair(secrets, exchange) = &self.keyring else { return None };
        if exchange.has_begun() {
            return None;
        }
        let Some((agreed_at, is_ours)) = secrets.agreed() else {
            return Some(Time::ZERO);
        };
        if self.own.sealed >= REKEY_AFTER_FRAMES {
            return Some(Time::ZERO);
        }
        let wait = if is_ours { Duration::ZERO } else { REKEY_WAIT };
        let heard = self.peers.iter().filter_map(Peer::heard_at).max().unwrap_or(agreed_at);
        let hello = self.peers.iter().map(Peer::hello_interval).max();
        let silence = REKEY_SILENCE_HELLOS * hello.unwrap_or(HELLO_INTERVAL_SLOW);
        let silent_at = heard.max(agreed_at) + silence;
        Some(silent_at.min(agreed_at + exchange.rekey_after() + wait))
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_exchange`](Self::poll_exchange) has
    /// something to do.
    pub(crate) fn exchange_due(&self) -> Option<Time> {
        match &self.keyring {
            Keyring::Shared(_) => None,
            Keyring::Pair(secrets, exchange) => {
                let dues = [exchange.due(), self.begin_at(), secrets.expire_at()];
                dues.into_iter().flatten().min()
            }
            Keyring::Members(keys) => self.members_due(keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::KEY_EXCHANGE_CROSSING_MAX;
    use crate::keys::{Keys, PeerKey, PrivateKey};
    use corridor_base::rand::SeedableRng;

    const IDS: [StationId; 2] = [StationId(1), StationId(2)];

    /// The station at `at`, which starts now.
    fn group(at: usize, seed: u8, now: Time) -> Group {
        let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
        let (me, station) = (IDS[at], IDS[1 - at]);
        let peers = vec![PeerKey { station, public: private(station).public(), psk: None }];
        let keys = Keys { private: private(me), peers };
        let coding = CodingParams { symbol_size: 1_400, ..CodingParams::default() };
        let feedback = coding.ack_interval;
        let setting = Setting { coding, crossing: Crossing::Block, received_bytes: 0, feedback };
        let rng = Stream::from_seed([seed; 32]);
        Group::new(me, &Security::Keys(Box::new(keys)), &[station], setting, rng, now)
    }

    fn groups() -> [Group; 2] {
        [0, 1].map(|at| group(at, IDS[at].0 as u8, Time::ZERO))
    }

    /// Exchanges what both have to send, without delay, for a second.
    fn converse(groups: &mut [Group; 2], now: &mut Time) {
        let (mut frame, mut body) = (Vec::new(), Vec::new());
        for _ in 0..1_000 {
            *now += Duration::from_millis(1);
            for at in [0, 1] {
                groups[at].handle_timeout(*now);
                while groups[at].poll_exchange(*now, &mut frame).is_some() {
                    groups[1 - at].open(*now, &frame, &mut body);
                }
                if groups[at].hello_due() <= *now {
                    groups[at].write_hello(*now, 0, &mut frame, 0);
                    groups[1 - at].open(*now, &frame, &mut body);
                }
            }
        }
    }

    fn data(group: &mut Group) -> Vec<u8> {
        let mut frame = Vec::new();
        group.begin(&mut frame);
        frame.extend_from_slice(b"body");
        group.seal(&mut frame, 0);
        frame
    }

    #[test]
    fn many_frames_want_another_secret_and_the_counters_go_on() {
        let (mut groups, mut now) = (groups(), Time::ZERO);
        converse(&mut groups, &mut now);
        assert!(groups[0].is_up(IDS[1]) && groups[1].is_up(IDS[0]));
        let generation = groups[0].own.generation;
        groups[0].own.sealed = REKEY_AFTER_FRAMES - 1;
        let before = data(&mut groups[0]);
        let counter = groups[0].next_counter();
        converse(&mut groups, &mut now);
        assert_ne!(groups[0].own.generation, generation);
        assert!(groups[0].own.sealed < 100 && groups[0].next_counter() >= counter);
        assert!(groups[0].is_up(IDS[1]), "the session goes on");
        // A frame that was overtaken by all of this can still be opened.
        let mut body = Vec::new();
        let late = data(&mut groups[0]);
        assert!(matches!(groups[1].open(now, &before, &mut body), Opening::Frame(_)));
        assert!(matches!(groups[1].open(now, &late, &mut body), Opening::Frame(_)));
        assert_eq!(body, b"body");
    }

    /// A peer restarts while a HELLO of its first run is in flight, and completes an exchange that
    /// this station began before. Then that HELLO arrives: the first sign that the secret of the
    /// exchange that the first run began is in use. This station adopted that secret for good, and
    /// the second run, which had heard it under the other one, waited for it under that: both
    /// sealed what the other could not open, until 15 s of silence were over.
    #[test]
    fn a_late_hello_of_the_run_before_does_not_part_a_station_from_the_one_after() {
        // The station that stays is the one whose exchange counts if two cross, or the other one,
        // and the late HELLO comes at once, or after it has waited for its peer to use its secret.
        for (stays, delay) in [0, 1].into_iter().flat_map(|stays| {
            [Duration::ZERO, KEY_EXCHANGE_CROSSING_MAX].map(|delay| (stays, delay))
        }) {
            let (mut frame, mut body) = (Vec::new(), Vec::new());
            let mut now = Time::ZERO;
            let (id, peer) = (IDS[stays], IDS[1 - stays]);
            let mut station = group(stays, 1, now);
            let mut first_run = group(1 - stays, 2, now);
            let mut begun = Vec::new();
            assert_eq!(station.poll_exchange(now, &mut begun), Some(peer));

            assert_eq!(first_run.poll_exchange(now, &mut frame), Some(id));
            let opening = station.open(now, &frame, &mut body);
            assert_eq!(opening, Opening::Initiation { from: peer });
            assert_eq!(station.poll_exchange(now, &mut frame), Some(peer));
            let opening = first_run.open(now, &frame, &mut body);
            assert_eq!(opening, Opening::Response { from: id });
            let mut late_hello = Vec::new();
            first_run.write_hello(now, 0, &mut late_hello, 0);

            now += Duration::from_millis(10);
            let mut second_run = group(1 - stays, 3, now);
            let opening = second_run.open(now, &begun, &mut body);
            assert_eq!(opening, Opening::Initiation { from: id });
            assert_eq!(second_run.poll_exchange(now, &mut frame), Some(id));
            let opening = station.open(now, &frame, &mut body);
            assert_eq!(opening, Opening::Response { from: peer });
            station.write_hello(now, 0, &mut frame, 0);
            let opening = second_run.open(now, &frame, &mut body);
            assert!(matches!(opening, Opening::Hello { .. }), "{opening:?}");

            now += delay;
            let opening = station.open(now, &late_hello, &mut body);
            assert!(matches!(opening, Opening::Hello { .. }), "{opening:?}");

            let mut groups = if stays == 0 { [station, second_run] } else { [second_run, station] };
            converse(&mut groups, &mut now);
            let are_up = [groups[0].is_up(IDS[1]), groups[1].is_up(IDS[0])];
            assert_eq!(are_up, [true; 2], "{id:?} stays, {delay:?}");
        }
    }

    #[test]
    fn a_recorded_hello_of_another_session_proves_nothing_under_the_secret_before() {
        let (mut groups, mut now) = (groups(), Time::ZERO);
        converse(&mut groups, &mut now);
        let twin = |groups: &mut [Group; 2], byte| {
            let Group { own, keyring, .. } = &mut groups[1];
            let (id, counter) = (core::mem::replace(&mut own.id, [byte; 16]), own.next_counter);
            let key = core::mem::replace(&mut own.key, keyring.own_key(IDS[1], &[byte; 16]));
            let mut frame = Vec::new();
            groups[1].write_hello(now, 0, &mut frame, 0);
            let own = &mut groups[1].own;
            (own.id, own.key, own.next_counter) = (id, key, counter);
            frame
        };
        let [early, late] = [7, 8].map(|byte| twin(&mut groups, byte));
        let mut body = Vec::new();
        let mut is_accepted = |groups: &mut [Group; 2], now, frame: &[u8]| match groups[0]
            .open(now, frame, &mut body)
        {
            Opening::Hello { accepted, .. } => accepted,
            other => panic!("{other:?}"),
        };
        assert!(is_accepted(&mut groups, now, &early));
        groups[0].own.sealed = REKEY_AFTER_FRAMES;
        converse(&mut groups, &mut now);
        assert!(!is_accepted(&mut groups, now, &late));
    }

    #[test]
    fn a_session_near_its_last_counter_is_replaced_under_the_same_secret() {
        let (mut groups, mut now) = (groups(), Time::ZERO);
        converse(&mut groups, &mut now);
        let generation = groups[0].own.generation;
        groups[0].own.next_counter = SESSION_FRAMES_MAX - 1;
        data(&mut groups[0]);
        assert_eq!((groups[0].next_counter(), groups[0].own.generation), (0, generation));
        converse(&mut groups, &mut now);
        assert!(groups[0].is_up(IDS[1]) && groups[1].is_up(IDS[0]));
    }
}
