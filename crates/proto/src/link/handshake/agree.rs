//! Secrets of a pair: when two stations with keys of their own agree on the next one, and what
//! changes with it. What they say for that is in `link/exchange.rs`.

use super::*;
use crate::bounds::{REKEY_AFTER_FRAMES, REKEY_SILENCE, REKEY_WAIT};
use crate::link::exchange::Taken;
use crate::wire::KeyExchange;
use crate::wire::cookie::CookieReply;

impl Group {
    /// Whether stations have keys of their own here, and agree on secrets.
    pub(crate) fn has_keys(&self) -> bool {
        self.exchange.is_some()
    }

    /// Another secret is wanted after so long.
    pub(crate) fn set_rekey_interval(&mut self, interval: Duration) {
        self.exchange.iter_mut().for_each(|exchange| exchange.set_rekey_after(interval));
    }

    /// Takes what is no frame of a session: perhaps one of a key exchange.
    pub(super) fn open_exchange(&mut self, now: Time, frame: &[u8]) -> Opening {
        if let Some(reply) = CookieReply::parse(frame) {
            let is_ours = self.take_cookie(now, &reply);
            return if is_ours { Opening::Cookie } else { Opening::NotAuthentic };
        }
        let (Some(exchange), Some(message)) = (&mut self.exchange, KeyExchange::parse(frame))
        else {
            return Opening::Malformed;
        };
        let from = message.sender;
        match exchange.take(now, &message) {
            Taken::Offered(secret) => {
                self.secrets.offer(now, secret);
                self.follow_secrets(now);
                Opening::Initiation { from }
            }
            Taken::Agreed(secret) => {
                self.secrets.agree(now, secret);
                self.follow_secrets(now);
                self.drop_cookie_if_known();
                Opening::Response { from }
            }
            Taken::Repeated => Opening::Initiation { from },
            Taken::Unheard => {
                // Only a frame under the secret ends that.
                if self.can_seal() && !self.secrets.is_proven() {
                    self.hurry_hello(now);
                }
                Opening::Replayed
            }
            Taken::Replayed => {
                // Or a peer whose clock went back: it is answered by an initiation of our own.
                let is_new = |(at, _)| now - at < REKEY_WAIT;
                if !self.secrets.agreed().is_some_and(is_new) {
                    exchange.begin(now);
                }
                Opening::Replayed
            }
            Taken::Refused => Opening::NotAuthentic,
        }
    }

    /// A frame of a session of the peer's was opened, under a key of this secret.
    pub(super) fn note_opened(&mut self, now: Time, generation: Generation, session: &Random128) {
        let Some(exchange) = &mut self.exchange else { return };
        if self.secrets.note_opened(now, (generation, session), exchange.precedes()) {
            exchange.note_proven();
            self.follow_secrets(now);
        }
    }

    /// Derives the keys of all sessions anew, from the secrets that there are now.
    fn follow_secrets(&mut self, now: Time) {
        let Group { secrets, own, peers, me, .. } = self;
        let is_another = own.generation != secrets.generation();
        if is_another {
            own.key = secrets.own_key(*me, &own.id);
            (own.generation, own.sealed) = (secrets.generation(), 0);
        }
        for peer in peers.iter_mut() {
            let id = peer.id;
            let follow = |keys: &mut SessionKeys, session: &Random128| {
                *keys = core::mem::take(keys).follow(secrets, id, session);
            };
            peer.session.iter_mut().for_each(|session| follow(&mut session.keys, &session.id));
            peer.pending.iter_mut().for_each(|pending| follow(&mut pending.keys, &pending.id));
        }
        // So that the peer hears soon of it.
        if is_another && self.can_seal() {
            self.hurry_hello(now);
        }
    }

    /// Writes the next message of a key exchange into `frame` (replaced), if one is due.
    pub(crate) fn poll_exchange(&mut self, now: Time, frame: &mut Vec<u8>) -> bool {
        let longest = self.outreach_interval(now).unwrap_or(HELLO_INTERVAL_SEARCH_MAX);
        if !self.exchange.as_mut().is_some_and(|exchange| exchange.poll(now, longest, frame)) {
            return false;
        }
        if cookie::asked_by(frame).is_some() {
            frame.resize(frame.len().max(self.seeking_len(now)), 0);
            self.show_cookie(now, frame);
        }
        true
    }

    /// Begins a key exchange if it is time, and forgets secrets that are too old.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        if self.secrets.expire_at().filter(|_| self.exchange.is_some()).is_some_and(|at| at <= now)
            && self.secrets.expire(now)
        {
            self.follow_secrets(now);
        }
        if self.begin_at().is_some_and(|at| at <= now)
            && let Some(exchange) = &mut self.exchange
        {
            exchange.begin(now);
        }
    }

    /// When the next secret is to be agreed on, if no key exchange has begun.
    fn begin_at(&self) -> Option<Time> {
        let exchange = self.exchange.as_ref().filter(|exchange| !exchange.has_begun())?;
        let Some((agreed_at, is_ours)) = self.secrets.agreed() else {
            return Some(Time::ZERO);
        };
        if self.own.sealed >= REKEY_AFTER_FRAMES {
            return Some(Time::ZERO);
        }
        let wait = if is_ours { Duration::ZERO } else { REKEY_WAIT };
        let heard = |peer: &Peer| peer.hello_at.max(Some(peer.last_heard));
        let heard = self.peers.iter().filter_map(heard).max().unwrap_or(agreed_at);
        let silent_at = heard.max(agreed_at) + REKEY_SILENCE;
        Some(silent_at.min(agreed_at + exchange.rekey_after() + wait))
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_exchange`](Self::poll_exchange) has
    /// something to do.
    pub(crate) fn exchange_due(&self) -> Option<Time> {
        let exchange = self.exchange.as_ref()?;
        let dues = [exchange.due(), self.begin_at(), self.secrets.expire_at()];
        dues.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Keys, PeerKey, PrivateKey};

    const IDS: [StationId; 2] = [StationId(1), StationId(2)];

    fn groups() -> [Group; 2] {
        let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
        [0, 1].map(|at| {
            let (me, station) = (IDS[at], IDS[1 - at]);
            let peers = vec![PeerKey { station, public: private(station).public(), psk: None }];
            let keys = Keys { private: private(me), peers, started_ns: 1_000 };
            let coding = CodingParams { symbol_size: 1_400, ..CodingParams::default() };
            let setting = Setting { coding, crossing: Crossing::Block, received_bytes: 0 };
            let rng = Stream::from_seed([me.0 as u8; 32]);
            let security = Security::Keys(Box::new(keys));
            Group::new(me, &security, &[station], setting, rng, Time::ZERO)
        })
    }

    /// What both have to say arrives at once, for a second.
    fn converse(groups: &mut [Group; 2], now: &mut Time) {
        let (mut frame, mut body) = (Vec::new(), Vec::new());
        for _ in 0..1_000 {
            *now += Duration::from_millis(1);
            for at in [0, 1] {
                groups[at].handle_timeout(*now);
                while groups[at].poll_exchange(*now, &mut frame) {
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
        // What was overtaken by all of that is opened still.
        let mut body = Vec::new();
        let late = data(&mut groups[0]);
        assert!(matches!(groups[1].open(now, &before, &mut body), Opening::Frame(_)));
        assert!(matches!(groups[1].open(now, &late, &mut body), Opening::Frame(_)));
        assert_eq!(body, b"body");
    }

    #[test]
    fn a_recorded_hello_of_another_session_proves_nothing_under_the_secret_before() {
        let (mut groups, mut now) = (groups(), Time::ZERO);
        converse(&mut groups, &mut now);
        let twin = |groups: &mut [Group; 2], byte| {
            let Group { own, secrets, .. } = &mut groups[1];
            let (id, counter) = (core::mem::replace(&mut own.id, [byte; 16]), own.next_counter);
            let key = core::mem::replace(&mut own.key, secrets.own_key(IDS[1], &[byte; 16]));
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
