//! How two stations with key pairs agree on a secret: when to exchange keys, which messages to
//! repeat because they may have been lost, and which not to answer.
//!
//! Either end may begin, and both may at once. An initiation is repeated unchanged, so only one is
//! open at a time, and a station that has answered it sends the same answer again. The response too
//! is repeated until a frame under the new secret shows that it arrived. Before any Diffie-Hellman,
//! a message must have a MAC that only stations that know this station's public key can make; and
//! the number of messages examined is bounded.
//!
//! Where several stations open what one of them seals, an exchange works in one direction: its
//! initiator is given the secrets that the responder seals under (`link/member_keys.rs`).

mod steps;

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use zeroize::Zeroizing;

use crate::bounds::{
    HELLO_INTERVAL_FAST, HELLO_INTERVAL_TALKING_MAX, INITIATION_AGE_MAX, KEY_EXCHANGES_PER_SECOND,
    REKEY_AFTER_TIME, RESPONSE_AGE_MAX,
};
use crate::bucket::Bucket;
use crate::clocks::{Clocks, WallClock};
use crate::config::StationId;
use crate::keys::{Keys, PeerKey, PrivateKey, PublicKey};
use crate::link::mac::MacKey;
use crate::link::noise::{Ephemeral, Initiator, Responder};
use crate::psk::Psk;
use crate::wire::{HANDOUT_LEN, KeyExchange, Step};
use steps::{Initiated, Ours, Outcome, Reply, Responded, Theirs};

/// Key exchanges with one peer.
pub(crate) struct Exchange {
    me: StationId,
    private: PrivateKey,
    peer: PeerKey,
    macs: Macs,
    /// If both begin, this station's exchange counts.
    precedes: bool,
    rng: Stream,
    /// The clock for the timestamps of initiations.
    clock: WallClock,
    newest: Timestamps,
    initiation: Option<Initiation>,
    answered: Option<Answered>,
    /// The last initiation that was completed.
    settled: Option<[u8; 4]>,
    calls: Calls,
    looks: Looks,
    /// Maximum age of the secret in use.
    rekey_after: Duration,
    /// What the peer is given for an initiation, if anything.
    handout: Option<Handout>,
}

/// The MAC keys of messages to the peer, and of messages to this station.
struct Macs {
    to_peer: MacKey,
    to_us: MacKey,
}

/// The secrets that this station seals under now and next.
struct Handout {
    secrets: [Psk; 2],
    /// When the peer last asked for these, and when that was first answered. What it sent before
    /// its newest initiation does not count: it may be a replay.
    asked: Option<(Time, Time)>,
}

/// Timestamps of this station's newest initiation, and of the peer's newest.
#[derive(Default)]
struct Timestamps {
    own: u64,
    heard: Option<u64>,
}

/// When a message in the peer's name last had a MAC for this station's public key, and for another.
#[derive(Clone, Copy, Default)]
struct Calls {
    ours: Option<Time>,
    others: Option<Time>,
}

/// Limits how many messages of each step are examined.
struct Looks {
    initiations: Bucket,
    responses: Bucket,
}

/// An initiation that waits for its response.
struct Initiation {
    exchange: [u8; 4],
    state: Initiator,
    frame: Vec<u8>,
    made_at: Time,
    due: Time,
    interval: Duration,
}

/// An initiation that was answered, and the answer.
struct Answered {
    initiation: Vec<u8>,
    response: Vec<u8>,
    answered_at: Time,
    /// When the initiation was last received.
    heard_at: Time,
    /// When the response is sent again, if at all.
    due: Option<Time>,
    /// The response is not sent before this time, however often it is asked for.
    may_go_at: Time,
    /// The response has arrived.
    is_done: bool,
    /// Nothing newer was received from the peer before.
    is_newest: bool,
}

/// The result of a key exchange message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The peer initiates; it has this secret as soon as it has the response.
    Offered(Psk),
    /// The peer has responded.
    Agreed(Psk),
    /// The peer asks for what this station seals under, and is given it.
    Asked,
    /// The peer has given the secrets that it seals under now and next.
    Given([Psk; 2]),
    /// The peer repeats its initiation: it has not received the response.
    Repeated,
    /// The peer repeats its response: it has received nothing under the secret.
    Unheard,
    /// An initiation of the peer's that is older than its newest.
    Replayed,
    /// Not from the peer, not for this station, or one too many.
    Refused,
}

/// What an unsuccessful message shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// It is this station's own.
    Own,
    /// Its sender does not know this station's public key.
    NotForUs,
    /// Its sender has this public key, which is not the configured one.
    OtherPublicKey(PublicKey),
    /// It answers this station's initiation, but the pre-shared key differs.
    OtherPsk,
    /// It answers this station's initiation, but the two disagree on how many stations open their
    /// frames.
    OtherStep,
    /// Nothing more specific.
    Nothing,
}

impl Exchange {
    /// An exchange with the only peer in `keys`. Begins now.
    pub(crate) fn new(me: StationId, keys: &Keys, rng: Stream, clocks: Clocks) -> Self {
        let now = clocks.now;
        let peer = keys.peers.first().expect("checked when the peer was chosen").clone();
        let public = keys.private.public();
        let mut exchange = Exchange {
            me,
            private: keys.private.clone(),
            macs: Macs { to_peer: MacKey::of(&peer.public), to_us: MacKey::of(&public) },
            precedes: public > peer.public,
            peer,
            rng,
            clock: clocks.into(),
            newest: Timestamps::default(),
            initiation: None,
            answered: None,
            settled: None,
            calls: Calls::default(),
            looks: Looks { initiations: Bucket::full(now), responses: Bucket::full(now) },
            rekey_after: REKEY_AFTER_TIME,
            handout: None,
        };
        exchange.begin(now);
        exchange
    }

    /// The wall clock was read; it may have been set since the start. An initiation that waits for
    /// its response then begins again, because the peer, which may have seen later timestamps,
    /// would not accept it.
    pub(crate) fn set_clock(&mut self, clocks: Clocks) {
        let before = core::mem::replace(&mut self.clock, clocks.into());
        if self.clock.is_ahead_of(before) && self.initiation.is_some() {
            self.initiation = Some(self.initiate(clocks.now, HELLO_INTERVAL_FAST));
        }
    }

    pub(crate) fn rekey_after(&self) -> Duration {
        self.rekey_after
    }

    pub(crate) fn set_rekey_after(&mut self, interval: Duration) {
        self.rekey_after = interval;
    }

    /// Gives the peer these secrets from now on, and nothing that was written before.
    pub(crate) fn hand_out(&mut self, secrets: [Psk; 2]) {
        self.handout = Some(Handout { secrets, asked: None });
        self.answered = None;
    }

    /// When the peer last asked for this station's secrets, and when that was first answered.
    pub(crate) fn asked(&self) -> Option<(Time, Time)> {
        self.handout.as_ref().and_then(|handout| handout.asked)
    }

    /// Whether a message is for the peer: its MAC proves knowledge of the peer's public key.
    pub(crate) fn is_for_peer(&self, message: &KeyExchange<'_>) -> bool {
        self.macs.to_peer.is_of(message)
    }

    pub(crate) fn precedes(&self) -> bool {
        self.precedes
    }

    pub(crate) fn peer_id(&self) -> StationId {
        self.peer.station
    }

    pub(crate) fn peer_public(&self) -> PublicKey {
        self.peer.public
    }

    // ---- sending ------------------------------------------------------------------------------

    /// Begins a key exchange, unless one is in progress.
    pub(crate) fn begin(&mut self, now: Time) {
        if self.initiation.is_none() {
            self.initiation = Some(self.initiate(now, HELLO_INTERVAL_FAST));
        }
    }

    /// Makes the initiation that waits for its response due soon.
    pub(crate) fn hurry(&mut self, now: Time) {
        let soon = now + HELLO_INTERVAL_FAST / 4;
        self.initiation.iter_mut().for_each(|it| it.due = it.due.min(soon));
    }

    /// Whether a message looks like a response of the peer to this station's initiation, or to the
    /// one before.
    pub(crate) fn expects(&self, message: &KeyExchange<'_>) -> bool {
        let waits = self.initiation.iter().map(|it| it.exchange).chain(self.settled);
        message.step == self.answer_step()
            && message.sender == self.peer.station
            && waits.into_iter().any(|exchange| exchange == message.exchange)
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.initiation.is_some()
    }

    /// How both ends answer an initiation.
    fn answer_step(&self) -> Step {
        if self.handout.is_some() { Step::Handout } else { Step::Response }
    }

    fn initiate(&mut self, now: Time, interval: Duration) -> Initiation {
        // Increases even if the clock was set back.
        let timestamp = self.clock.at(now).max(self.newest.own.saturating_add(1));
        self.newest.own = timestamp;
        let mut exchange = [0; 4];
        self.rng.fill_bytes(&mut exchange);
        let ephemeral = self.ephemeral();
        let peer = (&self.peer.public, self.peer.psk.as_ref());
        let (state, message) = Initiator::begin(&self.private, peer, timestamp, ephemeral);
        let frame = self.frame(Step::Initiation, exchange, &message);
        Initiation { exchange, state, frame, made_at: now, due: now, interval }
    }

    fn ephemeral(&mut self) -> Ephemeral {
        let mut bytes = Zeroizing::new([0; 32]);
        self.rng.fill_bytes(&mut bytes[..]);
        bytes
    }

    fn frame(&self, step: Step, exchange: [u8; 4], message: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        KeyExchange::write_head(self.me, step, exchange, &mut frame);
        frame.extend_from_slice(message);
        self.macs.to_peer.write(&mut frame);
        frame
    }

    /// When the next message is due.
    pub(crate) fn due(&self) -> Option<Time> {
        let answer = self.answered.as_ref().and_then(|answered| answered.due);
        self.initiation.iter().map(|it| self.due_of(it)).chain(answer).min()
    }

    /// When an initiation is due: not while the peer, which has begun too, was answered just now.
    /// An unproven address is sent few bytes, and the response is what it needs. This delays an
    /// initiation only once: replays may be answered again and again, each newer than the one
    /// before.
    ///
    /// A station that is given secrets for its initiation still needs its own to be answered.
    fn due_of(&self, initiation: &Initiation) -> Time {
        let is_given = self.handout.is_some();
        let answers = self.answered.as_ref().filter(|answered| !answered.is_done && !is_given);
        let until = answers.map(|answered| answered.answered_at.min(initiation.made_at));
        until.map_or(initiation.due, |from| initiation.due.max(from + RESPONSE_AGE_MAX))
    }

    /// Writes the next message into `frame` (replaced), if one is due. A response goes first,
    /// because the peer waits for it. An initiation is repeated after at most `interval_max`.
    pub(crate) fn poll(&mut self, now: Time, interval_max: Duration, frame: &mut Vec<u8>) -> bool {
        if let Some(answered) = &mut self.answered
            && answered.due.is_some_and(|due| due <= now)
        {
            let next = now + HELLO_INTERVAL_TALKING_MAX;
            // A handout is sent as often as it is asked for: no frame under its secrets would show
            // that it has arrived.
            let again = self.handout.is_none() && next < answered.heard_at + RESPONSE_AGE_MAX;
            answered.due = again.then_some(next);
            answered.may_go_at = now + HELLO_INTERVAL_FAST;
            frame.clone_from(&answered.response);
            return true;
        }
        let Some(initiation) = self.initiation.as_ref().filter(|it| self.due_of(it) <= now) else {
            return false;
        };
        let longer = (initiation.interval * 3 / 2).min(interval_max);
        if now - initiation.made_at >= INITIATION_AGE_MAX {
            self.initiation = Some(self.initiate(now, longer));
        }
        let Some(initiation) = &mut self.initiation else { return false };
        initiation.interval = longer;
        initiation.due = now + longer;
        frame.clone_from(&initiation.frame);
        if self.handout.is_some() {
            // An address is answered with no more bytes than it has sent.
            frame.resize(HANDOUT_LEN, 0);
        }
        true
    }

    // ---- receiving ----------------------------------------------------------------------------

    /// Handles a message.
    pub(crate) fn take(&mut self, now: Time, message: &KeyExchange<'_>) -> Taken {
        if message.sender != self.peer.station {
            return Taken::Refused;
        }
        if !self.macs.to_us.is_of(message) {
            self.calls.others = Some(now);
            return Taken::Refused;
        }
        self.calls.ours = Some(now);
        match message.step {
            Step::Initiation => self.take_initiation(now, message),
            step if step == self.answer_step() => self.take_answer(now, message),
            Step::Response | Step::Handout => Taken::Refused,
        }
    }

    /// The state of the peer's exchange.
    fn theirs(&self) -> Theirs {
        match &self.answered {
            None => Theirs::Nothing,
            Some(answered) if answered.is_done => Theirs::Done,
            Some(_) => Theirs::Responded,
        }
    }

    fn take_initiation(&mut self, now: Time, message: &KeyExchange<'_>) -> Taken {
        let frame = message.frame;
        let theirs = self.theirs();
        if let Some(answered) = self.answered.as_mut().filter(|it| it.initiation == frame) {
            if theirs.after(Initiated::Again).1 != Reply::Repeat {
                return Taken::Replayed;
            }
            answered.heard_at = now;
            if let Some(Handout { asked: Some((heard_at, _)), .. }) = &mut self.handout
                && answered.is_newest
            {
                *heard_at = now;
            }
            let due = match self.handout {
                // However often it is repeated, perhaps by somebody else.
                Some(_) => now.max(answered.may_go_at),
                None if answered.due.is_some() => now + HELLO_INTERVAL_FAST / 4,
                None => now,
            };
            answered.due = Some(answered.due.map_or(due, |before| before.min(due)));
            return Taken::Repeated;
        }
        if !self.looks.initiations.take(now, KEY_EXCHANGES_PER_SECOND, KEY_EXCHANGES_PER_SECOND) {
            return Taken::Refused;
        }
        let ephemeral = self.ephemeral();
        let Some(read) = Responder::read(&self.private, message.noise, ephemeral) else {
            return Taken::Refused;
        };
        if read.peer != self.peer.public {
            return Taken::Refused;
        }
        let is_newest = self.newest.heard.is_none_or(|newest| read.timestamp > newest);
        let heard = if is_newest { Initiated::Newer } else { Initiated::Older };
        if theirs.after(heard).1 != Reply::Respond && self.handout.is_none() {
            return Taken::Replayed;
        }
        if is_newest {
            self.newest.heard = Some(read.timestamp);
        }
        let psk = self.peer.psk.as_ref();
        let (taken, response) = match &mut self.handout {
            Some(Handout { secrets: [secret, next], asked }) => {
                // An attacker who replays it cannot use what is handed out. A peer whose clock went
                // back can, and has no other way to get this station's secrets.
                let handout = read.hand_out(psk, [secret, next]);
                let taken = if is_newest { Taken::Asked } else { Taken::Replayed };
                if is_newest {
                    *asked = Some((now, now));
                }
                (taken, self.frame(Step::Handout, message.exchange, &handout))
            }
            None => {
                let (response, secret) = read.answer(psk);
                let response = self.frame(Step::Response, message.exchange, &response);
                (Taken::Offered(secret), response)
            }
        };
        self.answered = Some(Answered {
            initiation: frame.to_vec(),
            response,
            answered_at: now,
            heard_at: now,
            due: Some(now),
            may_go_at: now,
            is_done: false,
            is_newest,
        });
        taken
    }

    fn take_answer(&mut self, now: Time, message: &KeyExchange<'_>) -> Taken {
        let ours = match self.initiation {
            Some(_) => Ours::Waiting,
            None => Ours::Idle,
        };
        let answers = |it: &Initiation| it.exchange == message.exchange;
        let heard = match &self.initiation {
            _ if self.settled == Some(message.exchange) => Responded::Settled,
            Some(initiation) if answers(initiation) => Responded::This,
            _ => Responded::Neither,
        };
        let initiation = match (ours.after(heard).1, &mut self.initiation) {
            (Outcome::Unheard, _) => return Taken::Unheard,
            (Outcome::Agree, Some(initiation)) => initiation,
            (Outcome::Agree | Outcome::Refuse, _) => return Taken::Refused,
        };
        if !self.looks.responses.take(now, KEY_EXCHANGES_PER_SECOND, KEY_EXCHANGES_PER_SECOND) {
            return Taken::Refused;
        }
        let state = &mut initiation.state;
        let taken = match message.step {
            Step::Handout => state.finish_handout(message.noise).map(Taken::Given),
            _ => state.finish(message.noise).map(Taken::Agreed),
        };
        let Some(taken) = taken else { return Taken::Refused };
        self.initiation = None;
        self.settled = Some(message.exchange);
        taken
    }

    /// A frame under the secret of the peer's exchange was opened: the response has arrived, and
    /// there is nothing else to agree on for now.
    pub(crate) fn note_proven(&mut self) {
        self.initiation = None;
        if let Some(answered) = &mut self.answered {
            (answered.due, answered.is_done) = (None, true);
        }
    }

    /// Examines an unsuccessful message. Costs as much as answering it.
    pub(crate) fn examine(&self, message: &KeyExchange<'_>) -> Sight {
        let frame = message.frame;
        let initiation = self.initiation.as_ref();
        let is_initiation = initiation.is_some_and(|initiation| initiation.frame == frame);
        if is_initiation || self.answered.as_ref().is_some_and(|it| it.response == frame) {
            return Sight::Own;
        }
        if !self.macs.to_us.is_of(message) {
            // A station that knows this station's key as well means another station by another key.
            let Calls { ours, others } = self.calls;
            let knows_us = ours.is_some_and(|at| others < Some(at + INITIATION_AGE_MAX));
            return if knows_us { Sight::Nothing } else { Sight::NotForUs };
        }
        match message.step {
            Step::Initiation => {
                // Nothing is answered, so no key of our own is needed.
                let read = Responder::read(&self.private, message.noise, Ephemeral::default());
                match read.map(|read| read.peer) {
                    Some(public) if public != self.peer.public => Sight::OtherPublicKey(public),
                    _ => Sight::Nothing,
                }
            }
            step if step == self.answer_step()
                && initiation.is_some_and(|it| it.exchange == message.exchange) =>
            {
                Sight::OtherPsk
            }
            Step::Response | Step::Handout
                if initiation.is_some_and(|it| it.exchange == message.exchange) =>
            {
                Sight::OtherStep
            }
            Step::Response | Step::Handout => Sight::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
