//! Secrets of a pair: when two stations with keys of their own agree on the next one, and what
//! changes with it. What they say for that is in `link/exchange.rs`.

use super::*;
use crate::bounds::{REKEY_AFTER_FRAMES, REKEY_AFTER_TIME, REKEY_SILENCE, REKEY_WAIT};
use crate::link::exchange::Taken;
use crate::wire::KeyExchange;

impl Group {
    /// Whether stations have keys of their own here, and agree on secrets.
    pub(crate) fn has_keys(&self) -> bool {
        self.exchange.is_some()
    }

    /// Takes what is no frame of a session: perhaps one of a key exchange.
    pub(super) fn open_exchange(&mut self, now: Time, frame: &[u8]) -> Opening {
        let (Some(exchange), Some(message)) = (&mut self.exchange, KeyExchange::parse(frame))
        else {
            return Opening::Malformed;
        };
        let from = message.sender;
        match exchange.take(now, frame, &message) {
            Taken::Offered(secret) => {
                self.secrets.offer(now, secret);
                self.follow_secrets(now);
                Opening::Initiation { from }
            }
            Taken::Agreed(secret) => {
                self.secrets.agree(now, secret);
                self.follow_secrets(now);
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

    /// A frame of the peer's was opened, under a key of this secret.
    pub(super) fn note_opened(&mut self, now: Time, generation: Generation) {
        let Some(exchange) = &mut self.exchange else { return };
        if self.secrets.note_opened(now, generation, exchange.precedes()) {
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
        self.exchange.as_mut().is_some_and(|exchange| exchange.poll(now, frame))
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
        self.exchange.as_ref().filter(|exchange| !exchange.has_begun())?;
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
        Some(silent_at.min(agreed_at + REKEY_AFTER_TIME + wait))
    }

    /// When [`handle_timeout`](Self::handle_timeout) or [`poll_exchange`](Self::poll_exchange) has
    /// something to do.
    pub(crate) fn exchange_due(&self) -> Option<Time> {
        let exchange = self.exchange.as_ref()?;
        let dues = [exchange.due(), self.begin_at(), self.secrets.expire_at()];
        dues.into_iter().flatten().min()
    }
}
