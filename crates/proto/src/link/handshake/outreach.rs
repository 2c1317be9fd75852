//! How strangers are met: what goes to who may not answer much, and what is shown to who wants to
//! be shown something first.

use super::*;
use crate::link::mac::cookie_mac;
use crate::wire::cookie::CookieReply;

impl Group {
    /// Whoever hears a HELLO may answer with no more bytes than came: those that look for a peer
    /// are longer from here on, and go more often for a while.
    pub(crate) fn reach_out(&mut self, now: Time) {
        self.outreach = Some(now);
    }

    /// Whether a peer is looked for in that way.
    pub(super) fn reaches_out(&self, now: Time) -> bool {
        let unheard = |peer: &Peer| peer.session.is_none() && peer.pending.is_empty();
        self.outreach.is_some_and(|since| now - since < HELLO_OUTREACH)
            && self.peers.iter().any(unheard)
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
