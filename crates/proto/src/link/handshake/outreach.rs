//! How strangers are met: what goes to who may not answer much, and what is shown to who wants to
//! be shown something first.

use super::*;
use crate::link::mac::cookie_mac;
use crate::wire::cookie::CookieReply;

impl Group {
    /// Whoever hears this station may answer with no more bytes than came: what looks for a peer
    /// goes more often for a while, and is longer where this station `calls`, for who is called may
    /// send no more than it hears.
    pub(crate) fn reach_out(&mut self, now: Time, calls: bool) {
        self.outreach = Some(Outreach { since: now, calls });
    }

    /// Largest interval of what looks for a peer in that way; none if none is looked for.
    pub(super) fn outreach_interval(&self, now: Time) -> Option<Duration> {
        let is_under_way = |it: &Outreach| now - it.since < HELLO_OUTREACH;
        let is_missing = !self.can_seal() || self.peers.iter().any(|peer| !peer.is_joined());
        self.outreach.as_ref().filter(|it| is_missing && is_under_way(it))?;
        Some(HELLO_INTERVAL_OUTREACH)
    }

    /// Whether what looks for a peer is longer than what it says.
    pub(super) fn calls(&self, now: Time) -> bool {
        self.outreach_interval(now).is_some() && self.outreach.is_some_and(|it| it.calls)
    }

    /// Whether a peer does not know yet that it is accepted, where words are few: it is told again
    /// and again, for its asking may be heard as seldom as the answer.
    pub(super) fn is_asked(&self, now: Time) -> bool {
        let asks = |peer: &Peer| peer.asked_at.is_some_and(|at| now - at < HELLO_TALKING);
        self.outreach.is_some() && self.peers.iter().any(asks)
    }

    /// Whether a frame is a HELLO of a session that is known: no key has to be derived for it.
    pub(crate) fn knows_session(&self, frame: &[u8]) -> bool {
        let Some((sender, id)) = hello_clear(frame) else { return false };
        self.peer(sender).is_some_and(|peer| peer.keys_of(&id).is_some())
    }

    /// Takes a cookie: only who has seen what this station says can have answered it. Whether it is
    /// one.
    pub(super) fn take_cookie(&mut self, now: Time, reply: &CookieReply) -> bool {
        let asks = self.exchange.as_ref().and_then(|exchange| exchange.asks());
        let is_ours = reply.answers == self.own.id || Some(reply.answers) == asks;
        if !is_ours || self.peer(reply.sender).is_none() {
            return false;
        }
        // One that comes again is no reason to hurry.
        if self.cookie.replace((reply.cookie, now)).map(|(cookie, _)| cookie) != Some(reply.cookie)
        {
            self.hurry_hello(now);
            self.exchange.iter_mut().for_each(|exchange| exchange.hurry(now));
        }
        true
    }

    /// Puts in front of a HELLO or an initiation what shows that the cookie is known, while there
    /// is one and a peer does not know this station.
    pub(super) fn show_cookie(&self, now: Time, frame: &mut Vec<u8>) {
        let is_known = self.peers.iter().all(Peer::is_joined) && self.can_seal();
        let fresh = self.cookie.filter(|&(_, at)| now - at < COOKIE_KEY_AGE_MAX && !is_known);
        if let Some((cookie, _)) = fresh {
            let mac = cookie_mac(&cookie, frame);
            crate::wire::cookie::wrap(self.me, &mac, frame);
        }
    }
}
