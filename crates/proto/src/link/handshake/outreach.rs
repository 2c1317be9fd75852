//! How strangers are met: what goes to who may not answer much, and what is shown to who wants to
//! be shown something first.

use arrayvec::ArrayVec;

use super::*;
use crate::link::mac::cookie_mac;
use crate::wire::KeyExchange;
use crate::wire::cookie::CookieReply;

/// Any receiver may answer with no more bytes than came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outreach {
    /// Since when its peers are looked for in that way.
    since: Time,
    /// It knows where one is, and that one perhaps not where it is.
    calls: bool,
}

/// What peers want to be shown before they look into anything.
#[derive(Debug, Default)]
pub(super) struct Cookies {
    /// What one said last, and when.
    newest: Option<(Random128, Time)>,
    /// What was said of late and may be answered by a cookie, each as often as it was said: see
    /// [`cookie::asked_by`].
    asked: ArrayVec<Random128, COOKIES_ASKED_MAX>,
    /// When one last had something said again at once.
    hurried_at: Option<Time>,
}

impl Group {
    /// Any receiver may answer with no more bytes than came: what looks for a peer
    /// goes more often for a while, and is longer where this station `calls`, for who is called may
    /// send no more than it hears.
    pub(crate) fn reach_out(&mut self, now: Time, calls: bool) {
        self.outreach = Some(Outreach { since: now, calls });
    }

    /// A peer is gone, or has fallen silent: it may be about to come back.
    pub(super) fn reach_out_again(&mut self, now: Time) {
        if let Some(outreach) = &mut self.outreach {
            outreach.since = now;
            self.hurry_hello(now);
        }
    }

    /// Whether a peer is looked for, which may answer with no more bytes than came.
    pub(super) fn seeks(&self) -> bool {
        let is_missing = |peer: &Peer| !peer.is_joined() || peer.silent;
        self.outreach.is_some() && (!self.can_seal() || self.peers.iter().any(is_missing))
    }

    fn is_outreach_new(&self, now: Time) -> bool {
        self.outreach.is_some_and(|it| now - it.since < HELLO_OUTREACH)
    }

    /// Largest interval of what looks for a peer in that way; none if none is looked for.
    pub(super) fn outreach_interval(&self, now: Time) -> Option<Duration> {
        (self.seeks() && self.is_outreach_new(now)).then_some(HELLO_INTERVAL_OUTREACH)
    }

    /// Shortest frame that looks for a peer, so that it may be answered at all: 0 where none is
    /// looked for. With a cookie's MAC in front it is no longer than the interface takes.
    pub(super) fn seeking_len(&self, now: Time) -> usize {
        let calls = self.outreach.is_some_and(|it| it.calls);
        let len = match self.seeks() {
            true if calls && self.is_outreach_new(now) => HELLO_OUTREACH_LEN,
            true => HELLO_SEEKING_LEN,
            false => 0,
        };
        len.min(self.frame_len_max.saturating_sub(COOKIE_MAC_HEAD_LEN))
    }

    /// Whether a peer does not know yet that it is accepted, where words are few: it is told again
    /// and again, for its asking may be heard as seldom as the answer.
    pub(super) fn is_asked(&self, now: Time) -> bool {
        let asks = |peer: &Peer| peer.asked_at.is_some_and(|at| now - at < HELLO_TALKING);
        self.outreach.is_some() && self.peers.iter().any(asks)
    }

    /// Whether a frame is a HELLO of a session that is known, for which no key has to be derived,
    /// or a response to an initiation of this station.
    pub(crate) fn expects(&self, frame: &[u8]) -> bool {
        if let Some(message) = KeyExchange::parse(frame) {
            let exchange = self.keyring.exchange(message.sender);
            return exchange.is_some_and(|exchange| exchange.expects(&message));
        }
        let Some((sender, id)) = hello_clear(frame) else { return false };
        self.peer(sender).is_some_and(|peer| peer.keys_of(&id).is_some())
    }

    /// Takes a cookie: only who has seen what this station said can have answered it, and once for
    /// each time that it said so. Whether it is one.
    pub(super) fn take_cookie(&mut self, now: Time, reply: &CookieReply) -> bool {
        let asked = self.cookies.asked.iter().position(|asked| *asked == reply.answers);
        let Some(at) = asked.filter(|_| self.peer(reply.sender).is_some()) else { return false };
        self.cookies.asked.remove(at);
        let before = self.cookies.newest.replace((reply.cookie, now));
        // One that comes again is no reason to hurry, and no matter how many come there is no more
        // said than a little.
        let is_news = before.map(|(cookie, _)| cookie) != Some(reply.cookie);
        let hurried = self.cookies.hurried_at;
        if is_news && hurried.is_none_or(|at| now - at >= COOKIE_HURRY_INTERVAL) {
            self.cookies.hurried_at = Some(now);
            self.hurry_hello(now);
            self.keyring.exchanges_mut().for_each(|exchange| exchange.hurry(now));
        }
        true
    }

    /// Puts in front of a HELLO or an initiation what shows that the cookie is known, while there
    /// is one: whether the peer knows this station nobody can tell here, for it may have restarted.
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

    /// Whether no peer is a stranger any more.
    pub(super) fn is_known(&self) -> bool {
        self.peers.iter().all(Peer::is_joined) && self.can_seal()
    }

    /// Once all peers know this station it has nothing to show to anybody.
    pub(super) fn drop_cookie_if_known(&mut self) {
        if self.is_known() {
            self.cookies.newest = None;
        }
    }
}
