//! The way of a packet, around steps 3 and 4: who is there. Sessions, the challenge that proves
//! them alive, and the replay window.
//!
//! Every station picks a random session id when it starts, and announces it in HELLO frames sealed
//! under that session's own key. A station that receives a HELLO of an unknown session answers with
//! a HELLO that contains a random challenge for it; the session is *accepted* once a HELLO under it
//! returns that challenge. A replay cannot do so, so a restarted station accepts nothing from
//! before its start; and since keys are derived from fresh session ids, no restart repeats a nonce.
//! Frames under any other session only increment a counter.
//!
//! One HELLO serves all neighbours at once: it contains an entry for each.
//!
//! Session keys are derived from a secret: the group's; one of the pair, which two stations with
//! key pairs agree on from time to time (`handshake/agree.rs`); or the sender's own, where several
//! stations open its frames (`handshake/members.rs`). Sessions, their counters and what was
//! received in them continue when one secret follows another.

mod agree;
mod examine;
mod members;
mod outreach;
mod peer;
mod standing;

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::Field;

use crate::bounds::*;
use crate::clocks::Clocks;
use crate::config::{CodingParams, Crossing, Mode, StationId};
use crate::end_keys::is_same;
use crate::inspect::PeerView;
use crate::keys::Security;
use crate::link::keyring::Keyring;
use crate::link::replay::ReplayWindow;
use crate::link::seal::{ChallengeKey, SessionKey};
use crate::link::secrets::{Generation, SessionKeys};
use crate::memory::{self, WindowShape};
use crate::wire::cookie::COOKIE_MAC_HEAD_LEN;
use crate::wire::intervals::Intervals;
use crate::wire::{
    Chunks, HEADER_LEN, HELLO_CLEAR_LEN, HELLO_LEN, HELLO_TO_LEN, Header, Hello, HelloTo, Instead,
    Kind, OVERHEAD_LEN, RUN_MASK, Random128, TAG_LEN, Word, chunk_len_max, cookie, hello_clear,
    write_station,
};
use outreach::{Cookies, Outreach};
pub(crate) use peer::Peer;
use peer::{PeerSession, PendingSession};
use standing::{Event, Standing};

/// The station's own session, and those of its peers.
pub(crate) struct Group {
    me: StationId,
    /// The secrets from which keys are derived, and how stations get them.
    keyring: Keyring,
    rng: Stream,
    instance: u64,
    setting: Setting,
    own: OwnSession,
    challenges: ChallengeKey,
    peers: Vec<Peer>,
    hello_due: Time,
    hello_interval: Duration,
    hellos_said: usize,
    cookies: Cookies,
    outreach: Option<Outreach>,
    /// Longest frame that the interface accepts, in bytes.
    frame_len_max: usize,
}

struct OwnSession {
    id: Random128,
    /// `None`: there is no secret yet, so nothing can be sealed.
    key: Option<SessionKey>,
    next_counter: u32,
    /// The generation of the key's secret, and frames sealed under it.
    generation: Option<Generation>,
    sealed: u32,
    /// Frames sealed before another session replaces this one.
    frames_max: u32,
    /// Frames that were for one station alone, by index of the peer.
    addressed: [u32; PEERS_MAX],
}

/// How a station carries packets, and its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) coding: CodingParams,
    pub(crate) crossing: Crossing,
    /// Bytes that a peer's window may take here.
    pub(crate) received_bytes: usize,
    /// How long this station delays feedback, or reports.
    pub(crate) feedback: Duration,
}

/// A frame that was opened; its chunks are in the caller's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) from: StationId,
    pub(crate) header: Header,
}

/// The result of opening a frame.
#[derive(Debug, PartialEq)]
pub(crate) enum Opening {
    /// A new frame of an accepted session.
    Frame(Opened),
    /// An authentic HELLO. `accepted`: its session is accepted, or its key is derived from a pair's
    /// secret that is not a former one; `joined`: it has just become accepted; `differs`: it is
    /// news that the peer carries packets differently.
    Hello {
        from: StationId,
        accepted: bool,
        joined: Option<Joined>,
        differs: Option<Crossing>,
    },
    /// The peer begins a key exchange.
    Initiation {
        from: StationId,
    },
    /// The peer has answered one.
    Response {
        from: StationId,
    },
    /// The peer demands proof that this station can receive at its address.
    Cookie,
    /// A key exchange message between two other stations.
    Overheard,
    Malformed,
    NotAuthentic,
    Replayed,
    UnknownSession,
}

/// A peer whose session was just accepted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Joined {
    pub(crate) peer: StationId,
    /// The peer has (re)started: its coding state is empty.
    pub(crate) new_instance: bool,
    /// It was unknown before.
    pub(crate) first: bool,
    pub(crate) field: Field,
    pub(crate) block_size: u16,
    pub(crate) symbol_size: u16,
    pub(crate) mode: Mode,
    pub(crate) base: u32,
    /// The longest window that it accepts.
    pub(crate) takes: WindowShape,
    /// How much of its window this station accepts.
    pub(crate) taken: WindowShape,
    /// Random per start of the peer.
    pub(crate) instance: u64,
    /// Its low bits.
    pub(crate) run: u16,
    /// How long it delays feedback, as it announces.
    pub(crate) feedback: Option<Duration>,
}

impl Joined {
    /// Bytes of the longest chunk that the peer sends, as it announces.
    pub(crate) fn chunk_len_max(&self) -> usize {
        chunk_len_max(self.mode, (self.field, self.block_size), self.symbol_size)
    }
}

impl Group {
    pub(crate) fn new(
        me: StationId,
        security: &Security,
        peers: &[StationId],
        setting: Setting,
        mut rng: Stream,
        clocks: impl Into<Clocks>,
    ) -> Self {
        let clocks = clocks.into();
        let now = clocks.now;
        debug_assert!(peers.len() <= PEERS_MAX);
        let instance = rng.next_u64();
        let several = peers.len() > 1 || setting.crossing == Crossing::Relay;
        let keyring = Keyring::new(me, security, several, &mut rng, clocks);
        let own = OwnSession::new(&keyring, me, &mut rng);
        let challenges = ChallengeKey::new(&random128(&mut rng));
        let peers = peers.iter().map(|&id| Peer::new(id, now)).collect();
        let hello_interval = HELLO_INTERVAL_FAST;
        Group {
            me,
            keyring,
            rng,
            instance,
            setting,
            own,
            challenges,
            peers,
            hello_due: now,
            hello_interval,
            hellos_said: 0,
            cookies: Cookies::default(),
            outreach: None,
            frame_len_max: usize::MAX,
        }
    }

    /// Number of stations that fit into a HELLO, after a cookie's MAC.
    fn hello_room(&self) -> usize {
        let beside = COOKIE_MAC_HEAD_LEN + OVERHEAD_LEN + HELLO_CLEAR_LEN + HELLO_LEN;
        (self.frame_len_max.saturating_sub(beside) / HELLO_TO_LEN).min(PEERS_MAX)
    }

    /// The interface accepts frames up to this length, in bytes.
    pub(crate) fn limit_frames(&mut self, len: usize) {
        self.frame_len_max = len;
    }

    pub(crate) fn peer(&self, id: StationId) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    /// Whether frames can be exchanged with a peer in both directions.
    pub(crate) fn is_up(&self, id: StationId) -> bool {
        self.can_seal() && self.peer(id).is_some_and(Peer::is_joined)
    }

    /// Whether the peer is up, and was heard recently.
    pub(crate) fn is_reachable(&self, id: StationId) -> bool {
        self.is_up(id) && self.peer(id).is_some_and(|peer| !peer.silent)
    }

    /// Whether there is a secret to seal frames under.
    pub(crate) fn can_seal(&self) -> bool {
        self.own.key.is_some()
    }

    /// Newest frame counter heard from a peer under its accepted session.
    pub(crate) fn highest_counter(&self, id: StationId) -> Option<u32> {
        self.peer(id).and_then(|peer| peer.link.highest())
    }

    /// Random per start of this station.
    pub(crate) fn instance(&self) -> u64 {
        self.instance
    }

    pub(crate) fn inspect(&self) -> Vec<PeerView> {
        let view = |peer: &Peer| PeerView {
            id: peer.id,
            instance: peer.session.as_ref().map(|session| session.instance),
            crossing: peer.crossing,
            pending_sessions: peer.pending.len(),
            is_up: self.can_seal() && peer.is_joined(),
            is_silent: peer.silent,
            hellos: peer.hellos,
            answered_at: peer.answered_at,
            last_heard: peer.hello_at.max(peer.session.as_ref().map(|_| peer.last_heard)),
            loss_ratio: peer.session.as_ref().map(|_| peer.link.ratio()),
            public_key: self.keyring.exchange(peer.id).map(|exchange| exchange.peer_public()),
            agreed_at: self.keyring.agreed_at(peer.id),
        };
        self.peers.iter().map(view).collect()
    }

    // ---- sending ------------------------------------------------------------------------------

    /// The counter the next sealed frame will have.
    pub(crate) fn next_counter(&self) -> u32 {
        self.own.next_counter
    }

    /// The frame that was sealed last is for this peer alone.
    pub(crate) fn note_addressed(&mut self, to: StationId) {
        let Some(at) = self.peers.iter().position(|peer| peer.id == to) else { return };
        // The last frame of a session does not count in the next.
        let Some(count) = self.own.addressed.get_mut(at).filter(|_| self.own.next_counter > 0)
        else {
            return;
        };
        *count += 1;
    }

    /// Frames of the session so far that were for this peer, or for all.
    pub(crate) fn frames_for(&self, to: StationId) -> u32 {
        let others = self.peers.iter().zip(&self.own.addressed).filter(|(peer, _)| peer.id != to);
        self.own.next_counter - others.map(|(_, count)| count).sum::<u32>()
    }

    /// A peer's frame for another station was heard.
    pub(crate) fn note_overheard(&mut self, from: StationId) {
        let peer = self.peers.iter_mut().find(|peer| peer.id == from);
        peer.into_iter().for_each(|peer| peer.link.note_overheard());
    }

    /// A peer reports in a frame how many frames before it were for this station.
    pub(crate) fn note_told(&mut self, opened: Opened, frames: u32) {
        let peer = self.peers.iter_mut().find(|peer| peer.id == opened.from);
        peer.into_iter().for_each(|peer| peer.link.note_told(opened.header.counter, frames));
    }

    /// Continues as if so many frames had been sealed.
    #[cfg(test)]
    pub(crate) fn set_next_counter(&mut self, counter: u32) {
        self.own.next_counter = counter;
    }

    /// Writes a header for the next frame into `frame` (replaced); the caller appends the chunks.
    pub(crate) fn begin(&self, frame: &mut Vec<u8>) {
        self.begin_with(false, frame);
    }

    fn begin_with(&self, is_hello: bool, frame: &mut Vec<u8>) {
        frame.clear();
        let counter = self.own.next_counter;
        Header { is_hello, session_tag: session_tag(&self.own.id), counter }.write(frame);
    }

    /// Seals what was begun, padded to `len_min` bytes.
    pub(crate) fn seal(&mut self, frame: &mut Vec<u8>, len_min: usize) {
        self.seal_behind(HEADER_LEN, frame, len_min);
    }

    fn seal_behind(&mut self, clear: usize, frame: &mut Vec<u8>, len_min: usize) {
        let padded = frame.len().max(len_min.saturating_sub(TAG_LEN));
        frame.resize(padded, 0);
        let key = self.own.key.as_ref().expect("a station without a secret makes no frames");
        key.seal(self.own.next_counter, frame, clear);
        self.own.next_counter += 1;
        self.own.sealed = self.own.sealed.saturating_add(1);
        if self.own.next_counter >= self.own.frames_max {
            self.rekey();
        }
    }

    /// Sets after how many frames another session begins; it begins earlier if nonces run out.
    pub(crate) fn set_session_frames(&mut self, frames: u32) {
        self.own.frames_max = frames.clamp(1, SESSION_FRAMES_MAX);
    }

    /// Begins a new session of the same instance before the counter runs out.
    fn rekey(&mut self) {
        let frames_max = self.own.frames_max;
        let fresh = OwnSession::new(&self.keyring, self.me, &mut self.rng);
        self.own = OwnSession { frames_max, ..fresh };
        for peer in &mut self.peers {
            peer.follow(Event::OwnSession);
        }
        self.hello_interval = HELLO_INTERVAL_FAST;
        self.hello_due = Time::ZERO;
    }

    pub(crate) fn hello_due(&self) -> Time {
        if self.can_seal() { self.hello_due } else { Time::MAX }
    }

    /// Writes and seals a HELLO, and sets the time of the next.
    pub(crate) fn write_hello(
        &mut self,
        now: Time,
        base: u32,
        frame: &mut Vec<u8>,
        len_min: usize,
    ) {
        for peer in &mut self.peers {
            peer.pending.retain(|pending| now - pending.heard_at < PENDING_SESSION_AGE_MAX);
        }
        self.begin_with(true, frame);
        write_station(self.me, frame);
        frame.extend_from_slice(&self.own.id);
        Kind::Hello.begin_last(frame);
        let ranked: Vec<(usize, HelloTo)> =
            self.peers.iter().flat_map(Peer::hello_entries).collect();
        let mut to = peer::named(ranked, self.hello_room(), self.hellos_said);
        self.hellos_said = self.hellos_said.wrapping_add(1);
        let CodingParams { mode, field, symbol_size, .. } = self.setting.coding;
        let block_size = match mode {
            Mode::Block => self.setting.coding.block_size,
            Mode::Window => self.setting.coding.lane_size(),
        };
        to.iter_mut().for_each(|to| to.instead = Instead::of(self.setting.crossing));
        let instance = self.instance;
        let intervals =
            Intervals { feedback: Some(self.setting.feedback), hello: Some(HELLO_INTERVAL_SLOW) };
        let mut hello =
            Hello { instance, field, block_size, symbol_size, mode, base, to, intervals };
        self.vouch(&mut hello);
        hello.write(frame);
        let len_min = len_min.max(self.seeking_len(now));
        self.seal_behind(HEADER_LEN + HELLO_CLEAR_LEN, frame, len_min);
        self.show_cookie(now, frame);

        let unsettled = || self.peers.iter().filter(|peer| !peer.settled());
        let talking = |peer: &Peer| peer.hello_at.is_some_and(|at| now - at < HELLO_TALKING);
        let longer = self.hello_interval * 3 / 2;
        self.hello_interval = if unsettled().any(talking) || self.is_asked(now) {
            longer.min(HELLO_INTERVAL_TALKING_MAX)
        } else if let Some(most) = self.outreach_interval(now) {
            longer.min(most)
        } else if unsettled().next().is_some() || self.seeks() {
            longer.min(HELLO_INTERVAL_SEARCH_MAX)
        } else {
            HELLO_INTERVAL_SLOW
        };
        self.hello_due = now + self.hello_interval;
    }

    /// Something was received that should be answered soon.
    pub(crate) fn hurry_hello(&mut self, now: Time) {
        self.hello_interval = HELLO_INTERVAL_FAST;
        self.hello_due = self.hello_due.min(now + HELLO_INTERVAL_FAST / 4);
    }

    /// The peers that may have accepted this station's session, and have not said goodbye.
    pub(crate) fn peers_met(&self) -> impl Iterator<Item = StationId> {
        let is_met = |peer: &&Peer| peer.standing.is_accepted();
        self.peers.iter().filter(is_met).map(|peer| peer.id)
    }

    /// A peer has said goodbye; returns whether that is news.
    pub(crate) fn note_goodbye(&mut self, now: Time, id: StationId) -> bool {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == id) else { return false };
        peer.silent = true;
        let is_news = peer.standing != Standing::Gone && peer.follow(Event::Goodbye);
        if is_news {
            self.reach_out_again(now);
        }
        is_news
    }

    /// Peers that have fallen silent since the last call.
    pub(crate) fn newly_silent(&mut self, now: Time) -> Option<StationId> {
        let fell = |peer: &&mut Peer| {
            peer.session.is_some() && !peer.silent && now - peer.last_heard > peer.silent_after()
        };
        let id = self.peers.iter_mut().find(fell).map(|peer| {
            peer.silent = true;
            peer.id
        })?;
        self.reach_out_again(now);
        Some(id)
    }

    // ---- receiving ----------------------------------------------------------------------------

    /// Opens a frame; its chunks go into `body`. A cookie's MAC in front of it is for a gate; a
    /// station without a gate skips it.
    pub(crate) fn open(&mut self, now: Time, frame: &[u8], body: &mut Vec<u8>) -> Opening {
        let (_, frame) = cookie::unwrap(frame);
        let Some(header) = Header::parse(frame) else { return self.open_exchange(now, frame) };
        if header.is_hello {
            return self.open_hello(now, header, frame, body);
        }
        let mut known_tag = None;
        for peer in &mut self.peers {
            let Some(session) = &mut peer.session else { continue };
            if session_tag(&session.id) != header.session_tag {
                continue;
            }
            known_tag = Some(peer.id);
            let opened = session.keys.open(header.counter, frame, HEADER_LEN, body);
            let Some(generation) = opened else { continue };
            if !session.replay.accept(header.counter.into()) {
                return Opening::Replayed;
            }
            if peer.standing.after(Event::Frame).is_none() {
                // In an ended session nothing matters except that it has ended.
                let is_goodbye = Chunks::find(body, Kind::Goodbye).is_some();
                if !is_goodbye || peer.standing.after(Event::Goodbye).is_none() {
                    return Opening::UnknownSession;
                }
                body.clear();
                Kind::Goodbye.begin_last(body);
            }
            let instance = session.instance;
            peer.note(now, header.counter, Word::probes_before(body));
            peer.asked_at = None;
            let from = peer.id;
            self.note_opened(now, from, generation, instance);
            return Opening::Frame(Opened { from, header });
        }
        if let Some(claimed) = known_tag {
            self.note_unopened(now, claimed);
            return Opening::NotAuthentic;
        }
        // Perhaps a peer that restarted, or that does not know that this station did.
        self.hurry_hello_if_waiting(now);
        Opening::UnknownSession
    }

    fn hurry_hello_if_waiting(&mut self, now: Time) {
        if self.hello_due > now + HELLO_INTERVAL_SEARCH_MAX {
            self.hello_due = now + HELLO_INTERVAL_SEARCH_MAX;
        }
    }

    fn open_hello(
        &mut self,
        now: Time,
        header: Header,
        frame: &[u8],
        body: &mut Vec<u8>,
    ) -> Opening {
        let Some((sender, id)) = hello_clear(frame) else { return Opening::Malformed };
        let Some(at) = self.peers.iter().position(|peer| peer.id == sender) else {
            return Opening::NotAuthentic;
        };
        let fresh_keys;
        let keys = match self.peers[at].keys_of(&id) {
            Some(keys) => keys,
            None => {
                fresh_keys = self.keyring.session_keys(sender, &id);
                &fresh_keys
            }
        };
        let opened = keys.open(header.counter, frame, HEADER_LEN + HELLO_CLEAR_LEN, body);
        let Some(generation) = opened else {
            self.note_unopened(now, sender);
            return Opening::NotAuthentic;
        };
        let Some(hello) = Hello::find(body) else { return Opening::Malformed };
        let hangs_on_new = self.keyring.is_newly_agreed(generation);
        self.note_opened(now, sender, generation, hello.instance);
        let said = hello.to.iter().find(|to| to.station == self.me && to.session == self.own.id);
        let mut opening = self.take_hello(now, at, id, header.counter, &hello, said);
        if let Opening::Hello { accepted, .. } = &mut opening {
            *accepted |= hangs_on_new;
        }
        opening
    }

    /// Handles an authentic HELLO of session `id` of the peer at index `at`; `said` is its entry
    /// for this station.
    fn take_hello(
        &mut self,
        now: Time,
        at: usize,
        id: Random128,
        counter: u32,
        hello: &Hello,
        said: Option<&HelloTo>,
    ) -> Opening {
        let from = self.peers[at].id;
        let was_known = self.is_known();
        let mut joined = None;
        if self.peers[at].session.as_ref().is_some_and(|session| session.id == id) {
            let peer = &mut self.peers[at];
            let is_new = |session: &mut PeerSession| session.replay.accept(counter.into());
            let accepts_us = said.is_some_and(|said| said.accepted);
            let after = peer.standing.after(Event::Hello { accepts_us });
            let Some(after) = after.filter(|_| peer.session.as_mut().is_some_and(is_new)) else {
                return Opening::Replayed;
            };
            peer.note(now, counter, 0);
            peer.standing = after;
            if let (Some(session), Some(said)) = (&mut peer.session, said) {
                session.challenge_to_answer = said.challenge;
            }
        } else {
            let taken = self.taken(hello);
            let pending = self.pending_session(now, at, id);
            if pending.newest_counter.is_some_and(|newest| counter <= newest) {
                return Opening::Replayed;
            }
            (pending.newest_counter, pending.taken) = (Some(counter), taken);
            // A replay does not keep a pending session alive.
            pending.heard_at = now;
            joined = self.take_hello_of_pending(now, at, id, counter, hello, said);
        }
        self.peers[at].note_hello(now, said.is_some());
        self.peers[at].asked_at = said.filter(|said| said.asks).map(|_| now);
        // Answer soon until both sides are settled.
        if !self.peers[at].settled() || said.is_none_or(|said| said.asks) {
            self.hurry_hello(now);
        }
        if joined.is_some() || !was_known {
            self.drop_cookie_if_known();
        }
        let session = self.peers[at].session.as_ref();
        let accepted = session.is_some_and(|session| session.id == id);
        let differs = said.filter(|_| accepted).and_then(|said| self.compare(at, hello, said));
        Opening::Hello { from, accepted, joined, differs }
    }

    /// How much this station accepts of the window of the sender of this HELLO.
    fn taken(&self, hello: &Hello) -> WindowShape {
        match self.setting.coding.mode {
            Mode::Block => WindowShape::LEAST,
            Mode::Window => memory::taken(
                self.setting.coding.lanes_max(),
                self.setting.received_bytes,
                (hello.field, hello.symbol_size),
            ),
        }
    }

    /// How the peer at index `at` carries packets, if that is news and differs from here.
    fn compare(&mut self, at: usize, hello: &Hello, said: &HelloTo) -> Option<Crossing> {
        let theirs = said.instead.map_or_else(|| hello.mode.into(), Crossing::from);
        let before = self.peers[at].crossing.replace(theirs);
        (theirs != self.setting.crossing && before != Some(theirs)).then_some(theirs)
    }

    fn take_hello_of_pending(
        &mut self,
        now: Time,
        at: usize,
        id: Random128,
        counter: u32,
        hello: &Hello,
        said: Option<&HelloTo>,
    ) -> Option<Joined> {
        let pending = self.pending_session(now, at, id);
        if let Some(said) = said {
            pending.challenge_to_answer = said.challenge;
            let (challenge, answer) = (pending.our_challenge, said.answer);
            if is_same(&answer, &self.expected_answer(at, &challenge, &id, hello)) {
                return Some(self.promote(now, at, id, counter, hello, said));
            }
        }
        None
    }

    /// The pending session with this id; created, with a fresh challenge, if there is none.
    fn pending_session(&mut self, now: Time, at: usize, id: Random128) -> &mut PendingSession {
        let peer = &mut self.peers[at];
        let index = match peer.pending.iter().position(|pending| pending.id == id) {
            Some(index) => index,
            None => {
                if peer.pending.len() == PENDING_SESSIONS_MAX {
                    peer.pending.remove(0);
                }
                let keys = self.keyring.session_keys(peer.id, &id);
                let our_challenge = self.challenges.challenge(peer.id, &id, peer.promotions);
                let challenge_to_answer = [0; 16];
                let heard_at = now;
                peer.pending.push(PendingSession {
                    id,
                    keys,
                    our_challenge,
                    challenge_to_answer,
                    newest_counter: None,
                    heard_at,
                    taken: WindowShape::LEAST,
                });
                peer.pending.len() - 1
            }
        };
        &mut peer.pending[index]
    }

    /// A pending session has answered its challenge, and replaces the peer's previous session.
    fn promote(
        &mut self,
        now: Time,
        at: usize,
        id: Random128,
        counter: u32,
        hello: &Hello,
        said: &HelloTo,
    ) -> Joined {
        let peer = &mut self.peers[at];
        let index = peer.pending.iter().position(|pending| pending.id == id);
        let pending = peer.pending.swap_remove(index.expect("promoted from the pending list"));
        peer.pending.clear();
        peer.promotions = peer.promotions.wrapping_add(1);
        let before = peer.session.as_ref().map(|session| session.instance);
        if before != Some(hello.instance) {
            peer.crossing = None;
        }
        peer.session = Some(PeerSession {
            id,
            keys: pending.keys,
            instance: hello.instance,
            replay: ReplayWindow::starting_at(counter.into()),
            challenge_to_answer: pending.challenge_to_answer,
            taken: pending.taken,
            intervals: hello.intervals,
        });
        peer.follow(Event::Answered { accepts_us: said.accepted });
        peer.link.restart_counting();
        peer.note(now, counter, 0);
        Joined {
            peer: peer.id,
            new_instance: before != Some(hello.instance),
            first: before.is_none(),
            field: hello.field,
            block_size: hello.block_size,
            symbol_size: hello.symbol_size,
            mode: hello.mode,
            base: hello.base,
            takes: WindowShape { lanes: said.lanes, lane_size: said.lane_size },
            taken: pending.taken,
            instance: hello.instance,
            run: hello.instance as u16 & RUN_MASK,
            feedback: hello.intervals.feedback,
        }
    }
}

impl OwnSession {
    fn new(keyring: &Keyring, me: StationId, rng: &mut Stream) -> Self {
        let id = random128(rng);
        let (key, generation) = (keyring.own_key(me, &id), keyring.own_generation());
        let frames_max = SESSION_FRAMES_MAX;
        let addressed = [0; PEERS_MAX];
        OwnSession { id, key, generation, next_counter: 0, sealed: 0, frames_max, addressed }
    }
}

fn random128(rng: &mut Stream) -> Random128 {
    let mut bytes = [0; 16];
    rng.fill_bytes(&mut bytes);
    bytes
}

fn session_tag(id: &Random128) -> u16 {
    u16::from_be_bytes([id[0], id[1]])
}

#[cfg(test)]
mod tests;
