//! Meeting strangers: what to send to receivers that may not answer much, and how to prove an
//! address to those that demand it.

use arrayvec::ArrayVec;

use super::*;
use crate::link::mac::cookie_mac;
use crate::wire::KeyExchange;
use crate::wire::cookie::CookieReply;

/// The state of looking for peers that may answer with no more bytes than they received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outreach {
    /// Since when such peers have been looked for.
    since: Time,
    /// This station knows a peer's address, and perhaps that peer does not know this station's.
    calls: bool,
}

/// Cookies that peers demand before they examine anything.
#[derive(Debug, Default)]
pub(super) struct Cookies {
    /// The newest cookie, and when it came.
    newest: Option<(Random128, Time)>,
    /// Recent messages that may be answered by a cookie, each as often as it was sent: see
    /// [`cookie::asked_by`].
    asked: ArrayVec<Random128, COOKIES_ASKED_MAX>,
    /// When a cookie last made this station send something again at once.
    hurried_at: Option<Time>,
}

impl Group {
    /// From now on, receivers may answer with no more bytes than they received. Frames that look
    /// for a peer are sent more often for a while, and are longer if this station `calls`, because
    /// a called station may send no more than it receives.
    pub(crate) fn reach_out(&mut self, now: Time, calls: bool) {
        self.outreach = Some(Outreach { since: now, calls });
    }

    /// A peer is gone or silent, and may be about to come back.
    pub(super) fn reach_out_again(&mut self, now: Time) {
        if let Some(outreach) = &mut self.outreach {
            outreach.since = now;
            self.hurry_hello(now);
        }
    }

    /// Whether a peer is looked for that may answer with no more bytes than it received.
    pub(super) fn seeks(&self) -> bool {
        let is_missing = |peer: &Peer| !peer.is_joined() || peer.silent;
        self.outreach.is_some() && (!self.can_seal() || self.peers.iter().any(is_missing))
    }

    fn is_outreach_new(&self, now: Time) -> bool {
        self.outreach.is_some_and(|it| now - it.since < HELLO_OUTREACH)
    }

    /// Longest interval between frames that look for a peer in this way; `None` if none is looked
    /// for.
    pub(super) fn outreach_interval(&self, now: Time) -> Option<Duration> {
        (self.seeks() && self.is_outreach_new(now)).then_some(HELLO_INTERVAL_OUTREACH)
    }

    /// Shortest length of frames that look for a peer, so that an answer is allowed at all; 0 if
    /// none is looked for. With a cookie's MAC in front, the frame is no longer than the interface
    /// accepts.
    pub(super) fn seeking_len(&self, now: Time) -> usize {
        let calls = self.outreach.is_some_and(|it| it.calls);
        let len = match self.seeks() {
            true if calls && self.is_outreach_new(now) => HELLO_OUTREACH_LEN,
            true => HELLO_SEEKING_LEN,
            false => 0,
        };
        len.min(self.frame_len_max.saturating_sub(COOKIE_MAC_HEAD_LEN))
    }

    /// Whether a peer does not know yet that it is accepted, where answers are limited. It is told
    /// again and again, because its question may be lost as easily as the answer.
    pub(super) fn is_asked(&self, now: Time) -> bool {
        let asks = |peer: &Peer| peer.asked_at.is_some_and(|at| now - at < HELLO_TALKING);
        self.outreach.is_some() && self.peers.iter().any(asks)
    }

    /// Whether a frame is a HELLO of a known session, for which no key has to be derived, or a
    /// response to this station's initiation.
    pub(crate) fn expects(&self, frame: &[u8]) -> bool {
        if let Some(message) = KeyExchange::parse(frame) {
            let exchange = self.keyring.exchange(message.sender);
            return exchange.is_some_and(|exchange| exchange.expects(&message));
        }
        let Some((sender, id)) = hello_clear(frame) else { return false };
        self.peer(sender).is_some_and(|peer| peer.keys_of(&id).is_some())
    }

    /// Handles a cookie; returns whether it is valid. Only a station that has seen a message of
    /// this one can have answered it, and only once each time that it was sent.
    pub(super) fn take_cookie(&mut self, now: Time, reply: &CookieReply) -> bool {
        let asked = self.cookies.asked.iter().position(|asked| *asked == reply.answers);
        let Some(at) = asked.filter(|_| self.peer(reply.sender).is_some()) else { return false };
        self.cookies.asked.remove(at);
        let before = self.cookies.newest.replace((reply.cookie, now));
        // A repeated cookie is no reason to hurry, and however many come, little is sent.
        let is_news = before.map(|(cookie, _)| cookie) != Some(reply.cookie);
        let hurried = self.cookies.hurried_at;
        if is_news && hurried.is_none_or(|at| now - at >= COOKIE_HURRY_INTERVAL) {
            self.cookies.hurried_at = Some(now);
            self.hurry_hello(now);
            self.keyring.exchanges_mut().for_each(|exchange| exchange.hurry(now));
        }
        true
    }

    /// Puts the MAC of a known cookie in front of a HELLO or an initiation. It is not known here
    /// whether the peer still knows this station, since it may have restarted.
    pub(super) fn show_cookie(&mut self, now: Time, frame: &mut Vec<u8>) {
        if let Some(asks) = cookie::asked_by(frame) {
            let asked = &mut self.cookies.asked;
            if asked.is_full() {
                asked.remove(0);
            }
            asked.push(asks);
        }
        let fresh = self.cookies.newest.filter(|&(_, at)| now - at < COOKIE_KEY_AGE_MAX);
        if let Some((cookie, _)) = fresh {
            let mac = cookie_mac(&cookie, frame);
            cookie::wrap(self.me, &mac, frame);
        }
    }

    /// Whether all peers are known.
    pub(super) fn is_known(&self) -> bool {
        self.peers.iter().all(Peer::is_joined) && self.can_seal()
    }

    /// Once all peers know this station, it needs no cookie.
    pub(super) fn drop_cookie_if_known(&mut self) {
        if self.is_known() {
            self.cookies.newest = None;
        }
    }
}
