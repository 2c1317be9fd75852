//! The way of a packet, around steps 3 and 4: who is there. Sessions, the challenge that proves
//! them alive, and the replay window.
//!
//! Every station picks a random session id when it starts and announces it in HELLO frames, sealed
//! under that session's own key. Whoever hears a HELLO of a session it does not know answers with a
//! HELLO that holds a random challenge for it; the session is *accepted* once a HELLO under it
//! returns that challenge. An old recording cannot, so a restarted station accepts nothing that was
//! said before it started, and since keys hang on fresh session ids, no restart repeats a nonce.
//! Frames under any other session leave no trace but a counter.
//!
//! One HELLO serves all neighbours at once: it lists what it has to say to each.
//!
//! Keys of sessions are derived from a secret: the group's, or one of the pair that two stations
//! with keys of their own agree on now and then (`handshake/agree.rs`). Sessions, their counters
//! and what was heard of them go on when a secret follows another.

mod agree;
mod examine;
mod outreach;

use core::cmp::Reverse;
use core::time::Duration;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use corridor_codec::Field;

use crate::bounds::*;
use crate::config::{CodingParams, Crossing, Mode, StationId};
use crate::inspect::PeerView;
use crate::keys::Security;
use crate::link::exchange::Exchange;
use crate::link::loss_ratio::LossEstimator;
use crate::link::replay::ReplayWindow;
use crate::link::seal::{ChallengeKey, SessionKey};
use crate::link::secrets::{Generation, Secrets, SessionKeys};
use crate::memory::{self, WindowShape};
use crate::wire::{
    Chunks, HEADER_LEN, HELLO_CLEAR_LEN, Header, Hello, HelloTo, Instead, Kind, RUN_MASK,
    Random128, TAG_LEN, Word, cookie, hello_clear, write_station,
};
use outreach::{Cookies, Outreach};

/// The station's own session, and those of its peers.
pub(crate) struct Group {
    me: StationId,
    /// What keys are derived from, and how two stations agree on it, if they do.
    secrets: Secrets,
    exchange: Option<Box<Exchange>>,
    rng: Stream,
    instance: u64,
    coding: CodingParams,
    /// How packets cross here.
    crossing: Crossing,
    /// Bytes that windows of peers may take.
    received_bytes: usize,
    own: OwnSession,
    challenges: ChallengeKey,
    peers: Vec<Peer>,
    hello_due: Time,
    hello_interval: Duration,
    cookies: Cookies,
    outreach: Option<Outreach>,
}

struct OwnSession {
    id: Random128,
    /// `None`: nothing can be sealed, as long as there is no secret.
    key: Option<SessionKey>,
    next_counter: u32,
    /// Of which secret the key is, and frames sealed under it.
    generation: Option<Generation>,
    sealed: u32,
}

/// How a station's packets cross, and with what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) coding: CodingParams,
    pub(crate) crossing: Crossing,
    /// Bytes that the window of a peer may take.
    pub(crate) received_bytes: usize,
}

/// A configured neighbour.
pub(crate) struct Peer {
    pub(crate) id: StationId,
    /// The link from it.
    pub(crate) link: LossEstimator,
    /// It accepts our session.
    accepts_us: bool,
    session: Option<PeerSession>,
    /// How packets cross there, as it last said under an accepted session.
    crossing: Option<Crossing>,
    /// Sessions of it accepted so far. What answered then does not answer the challenges of now.
    promotions: u32,
    pending: Vec<PendingSession>,
    last_heard: Time,
    /// When it last said an authentic HELLO, under whatever session.
    hello_at: Option<Time>,
    /// How many it said so far.
    hellos: u64,
    /// When one last said something to this station, which it had to hear first.
    answered_at: Option<Time>,
    silent: bool,
    /// When it asked last whether it is accepted, unless it has shown since that it knows.
    asked_at: Option<Time>,
    /// It has said goodbye: its session is kept only to hear that again.
    gone: bool,
}

struct PeerSession {
    id: Random128,
    keys: SessionKeys,
    instance: u64,
    replay: ReplayWindow,
    /// What we owe it: the answer to the challenge it set our current session.
    challenge_to_answer: Random128,
    /// What this station takes of its window.
    taken: WindowShape,
}

struct PendingSession {
    id: Random128,
    keys: SessionKeys,
    our_challenge: Random128,
    challenge_to_answer: Random128,
    newest_counter: Option<u32>,
    heard_at: Time,
    /// What this station would take of its window.
    taken: WindowShape,
}

/// A frame that opened; its chunks are in the buffer that was passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) from: StationId,
    pub(crate) header: Header,
}

/// What opening a frame came to.
#[derive(Debug, PartialEq)]
pub(crate) enum Opening {
    /// A frame under an accepted session, heard for the first time.
    Frame(Opened),
    /// A HELLO, authentic; `accepted` if its session is, or if it hangs on a secret of a pair that
    /// is no former one, `joined` if it just became so, `differs`
    /// if it is news that packets cross otherwise there than here.
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
    /// The peer wants to be shown that this station is heard from where it says.
    Cookie,
    Malformed,
    NotAuthentic,
    Replayed,
    UnknownSession,
}

/// A peer whose session was just accepted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Joined {
    pub(crate) peer: StationId,
    /// It is another process than the one before (or the first): its coding state is empty.
    pub(crate) new_instance: bool,
    /// It had not been known before.
    pub(crate) first: bool,
    pub(crate) field: Field,
    pub(crate) block_size: u16,
    pub(crate) symbol_size: u16,
    pub(crate) mode: Mode,
    pub(crate) base: u32,
    /// The longest window that it takes.
    pub(crate) takes: WindowShape,
    /// What this station takes of its window.
    pub(crate) taken: WindowShape,
    /// Which run of the peer this is: the low bits of its instance.
    pub(crate) run: u16,
}

impl Group {
    pub(crate) fn new(
        me: StationId,
        security: &Security,
        peers: &[StationId],
        Setting { coding, crossing, received_bytes }: Setting,
        mut rng: Stream,
        now: Time,
    ) -> Self {
        debug_assert!(peers.len() <= PEERS_MAX);
        let instance = rng.next_u64();
        let secrets = match security {
            Security::Shared(psk) => Secrets::shared(psk.clone()),
            Security::Keys(_) => Secrets::default(),
        };
        let own = OwnSession::new(&secrets, me, &mut rng);
        let challenges = ChallengeKey::new(&random128(&mut rng));
        let exchange = match security {
            Security::Shared(_) => None,
            Security::Keys(keys) => {
                let rng = Stream::from_rng(&mut rng);
                Some(Box::new(Exchange::new(me, keys, rng, now)))
            }
        };
        let peers = peers.iter().map(|&id| Peer::new(id, now)).collect();
        let hello_interval = HELLO_INTERVAL_FAST;
        Group {
            me,
            secrets,
            exchange,
            rng,
            instance,
            coding,
            crossing,
            received_bytes,
            own,
            challenges,
            peers,
            hello_due: now,
            hello_interval,
            cookies: Cookies::default(),
            outreach: None,
        }
    }

    pub(crate) fn peer(&self, id: StationId) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    /// Whether frames can be exchanged with a peer in both directions.
    pub(crate) fn is_up(&self, id: StationId) -> bool {
        self.can_seal() && self.peer(id).is_some_and(Peer::is_joined)
    }

    /// Whether the peer is up, and was heard of late.
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
            public_key: self.exchange.as_ref().map(|exchange| exchange.peer_public()),
            agreed_at: self.exchange.as_ref().and(self.secrets.agreed()).map(|(at, _)| at),
        };
        self.peers.iter().map(view).collect()
    }

    // ---- sending ------------------------------------------------------------------------------

    /// The counter the next sealed frame will have.
    pub(crate) fn next_counter(&self) -> u32 {
        self.own.next_counter
    }

    /// As if so many frames had been sealed.
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
        if self.own.next_counter >= SESSION_FRAMES_MAX {
            self.rekey();
        }
    }

    /// A fresh session of the same instance, before the counter runs out.
    fn rekey(&mut self) {
        self.own = OwnSession::new(&self.secrets, self.me, &mut self.rng);
        for peer in &mut self.peers {
            peer.accepts_us = false;
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
        // Accepted sessions before knocking ones, of all peers, and of each peer the one that was
        // heard last before others: nobody can crowd them out.
        let mut ranked: Vec<(usize, HelloTo)> =
            self.peers.iter().flat_map(Peer::hello_entries).collect();
        ranked.sort_by_key(|&(rank, _)| rank);
        ranked.truncate(PEERS_MAX);
        let mut to: Vec<HelloTo> = ranked.into_iter().map(|(_, to)| to).collect();
        let CodingParams { mode, field, symbol_size, .. } = self.coding;
        let block_size = match mode {
            Mode::Block => self.coding.block_size,
            Mode::Window => self.coding.lane_size(),
        };
        to.iter_mut().for_each(|to| to.instead = Instead::of(self.crossing));
        let instance = self.instance;
        Hello { instance, field, block_size, symbol_size, mode, base, to }.write(frame);
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

    /// Something was heard that wants an answer soon.
    pub(crate) fn hurry_hello(&mut self, now: Time) {
        self.hello_interval = HELLO_INTERVAL_FAST;
        self.hello_due = self.hello_due.min(now + HELLO_INTERVAL_FAST / 4);
    }

    /// The peers that may accept this station's session, and have not said goodbye.
    pub(crate) fn peers_met(&self) -> impl Iterator<Item = StationId> {
        let is_met = |peer: &&Peer| peer.session.is_some() && !peer.gone;
        self.peers.iter().filter(is_met).map(|peer| peer.id)
    }

    /// A peer has said goodbye. Whether that is news.
    pub(crate) fn note_goodbye(&mut self, now: Time, id: StationId) -> bool {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == id) else { return false };
        peer.silent = true;
        let is_news = !core::mem::replace(&mut peer.gone, true);
        if is_news {
            self.reach_out_again(now);
        }
        is_news
    }

    /// Peers that fell silent since the last call.
    pub(crate) fn newly_silent(&mut self, now: Time) -> Option<StationId> {
        let fell = |peer: &&mut Peer| {
            peer.session.is_some() && !peer.silent && now - peer.last_heard > PEER_SILENT
        };
        let id = self.peers.iter_mut().find(fell).map(|peer| {
            peer.silent = true;
            peer.id
        })?;
        self.reach_out_again(now);
        Some(id)
    }

    // ---- receiving ----------------------------------------------------------------------------

    /// Opens a frame; its chunks go into `body`. A MAC under a cookie in front of it is for a gate:
    /// a station without one takes the message as it is.
    pub(crate) fn open(&mut self, now: Time, frame: &[u8], body: &mut Vec<u8>) -> Opening {
        let (_, frame) = cookie::unwrap(frame);
        let Some(header) = Header::parse(frame) else { return self.open_exchange(now, frame) };
        if header.is_hello {
            return self.open_hello(now, header, frame, body);
        }
        let mut known_tag = false;
        for peer in &mut self.peers {
            let Some(session) = &mut peer.session else { continue };
            if session_tag(&session.id) != header.session_tag {
                continue;
            }
            known_tag = true;
            let opened = session.keys.open(header.counter, frame, HEADER_LEN, body);
            let Some(generation) = opened else { continue };
            if !session.replay.accept(header.counter) {
                return Opening::Replayed;
            }
            if peer.gone && !is_goodbye(body) {
                return Opening::UnknownSession;
            }
            let id = session.id;
            peer.note(now, header.counter, Word::probes_before(body));
            peer.asked_at = None;
            let from = peer.id;
            self.note_opened(now, generation, &id);
            return Opening::Frame(Opened { from, header });
        }
        if known_tag {
            return Opening::NotAuthentic;
        }
        // Perhaps a peer that restarted, or that has not heard that we did.
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
                fresh_keys = SessionKeys::derive(&self.secrets, sender, &id);
                &fresh_keys
            }
        };
        let opened = keys.open(header.counter, frame, HEADER_LEN + HELLO_CLEAR_LEN, body);
        let Some(generation) = opened else { return Opening::NotAuthentic };
        let Some(hello) = Hello::find(body) else { return Opening::Malformed };
        let hangs_on_new = self.has_keys() && !self.secrets.is_former(generation);
        self.note_opened(now, generation, &id);
        let said = hello.to.iter().find(|to| to.station == self.me && to.session == self.own.id);
        let mut opening = self.take_hello(now, at, id, header.counter, &hello, said);
        if let Opening::Hello { accepted, .. } = &mut opening {
            *accepted |= hangs_on_new;
        }
        opening
    }

    /// Digests an authentic HELLO of session `id` of the peer at `at`; `said` is its word to us.
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
            let is_new = |session: &mut PeerSession| session.replay.accept(counter);
            if peer.gone || !peer.session.as_mut().is_some_and(is_new) {
                return Opening::Replayed;
            }
            peer.note(now, counter, 0);
            // Between these two sessions it is for good; an overtaken HELLO does not undo it.
            peer.accepts_us |= said.is_some_and(|said| said.accepted);
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
            // What is played back does not keep a session waiting.
            pending.heard_at = now;
            joined = self.take_hello_of_pending(now, at, id, counter, hello, said);
        }
        self.peers[at].note_hello(now, said.is_some());
        self.peers[at].asked_at = said.filter(|said| said.asks).map(|_| now);
        // Answer soon while the two of us are not done with each other.
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

    /// What this station takes of the window of who says this.
    fn taken(&self, hello: &Hello) -> WindowShape {
        match self.coding.mode {
            Mode::Block => WindowShape::LEAST,
            Mode::Window => memory::taken(
                self.coding.lanes_max(),
                self.received_bytes,
                (hello.field, hello.symbol_size),
            ),
        }
    }

    /// How packets cross at the peer at `at`, if that is news and not as here.
    fn compare(&mut self, at: usize, hello: &Hello, said: &HelloTo) -> Option<Crossing> {
        let theirs = said.instead.map_or_else(|| hello.mode.into(), Crossing::from);
        let before = self.peers[at].crossing.replace(theirs);
        (theirs != self.crossing && before != Some(theirs)).then_some(theirs)
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
            if said.answer == pending.our_challenge {
                return Some(self.promote(now, at, id, counter, hello, said));
            }
        }
        None
    }

    /// The pending session of this id; made, with a fresh challenge, if there is none.
    fn pending_session(&mut self, now: Time, at: usize, id: Random128) -> &mut PendingSession {
        let peer = &mut self.peers[at];
        let index = match peer.pending.iter().position(|pending| pending.id == id) {
            Some(index) => index,
            None => {
                if peer.pending.len() == PENDING_SESSIONS_MAX {
                    peer.pending.remove(0);
                }
                let keys = SessionKeys::derive(&self.secrets, peer.id, &id);
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

    /// A pending session has answered: it takes the place of the peer's session before.
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
            replay: ReplayWindow::starting_at(counter),
            challenge_to_answer: pending.challenge_to_answer,
            taken: pending.taken,
        });
        peer.accepts_us = said.accepted;
        peer.gone = false;
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
            run: hello.instance as u16 & RUN_MASK,
        }
    }
}

impl OwnSession {
    fn new(secrets: &Secrets, me: StationId, rng: &mut Stream) -> Self {
        let id = random128(rng);
        let (key, generation) = (secrets.own_key(me, &id), secrets.generation());
        OwnSession { id, key, generation, next_counter: 0, sealed: 0 }
    }
}

impl Peer {
    fn new(id: StationId, now: Time) -> Self {
        Peer {
            id,
            link: LossEstimator::new(),
            accepts_us: false,
            session: None,
            crossing: None,
            promotions: 0,
            pending: Vec::new(),
            last_heard: now,
            hello_at: None,
            hellos: 0,
            answered_at: None,
            silent: false,
            asked_at: None,
            gone: false,
        }
    }

    /// Something was heard, just behind so many probes of the path's MTU.
    fn note(&mut self, now: Time, counter: u32, probes: u8) {
        self.link.note_behind(counter, probes);
        self.last_heard = now;
        self.silent = false;
    }

    /// An authentic HELLO of it was heard; `answers`: it has something to say to this station.
    fn note_hello(&mut self, now: Time, answers: bool) {
        self.hello_at = Some(now);
        self.hellos = self.hellos.saturating_add(1);
        if answers {
            self.answered_at = Some(now);
        }
    }

    /// The erasure ratio of the link from it; 1 when it has not been heard for `stale`.
    pub(crate) fn erasure_ratio(&self, now: Time, stale: Duration) -> f64 {
        if self.session.is_none() || self.gone || now - self.last_heard > stale {
            return 1.0;
        }
        self.link.ratio()
    }

    /// Both sides have accepted each other.
    fn is_joined(&self) -> bool {
        self.accepts_us && self.session.is_some() && !self.gone
    }

    /// Both sides have accepted each other, and no newer session is knocking.
    fn settled(&self) -> bool {
        self.is_joined() && self.pending.is_empty()
    }

    fn keys_of(&self, id: &Random128) -> Option<&SessionKeys> {
        let accepted = self.session.iter().map(|session| (&session.id, &session.keys));
        let pending = self.pending.iter().map(|pending| (&pending.id, &pending.keys));
        accepted.chain(pending).find(|(other, _)| *other == id).map(|(_, keys)| keys)
    }

    /// What the next HELLO says to this peer, by rank: to its accepted session, and then to the
    /// pending ones, the one that was heard last before others.
    fn hello_entries(&self) -> impl Iterator<Item = (usize, HelloTo)> {
        let station = self.id;
        let accepted = self.session.iter().filter(|_| !self.gone).map(move |session| HelloTo {
            station,
            session: session.id,
            challenge: [0; 16],
            answer: session.challenge_to_answer,
            accepted: true,
            asks: !self.accepts_us,
            instead: None,
            lanes: session.taken.lanes,
            lane_size: session.taken.lane_size,
        });
        let mut pending: Vec<&PendingSession> = self.pending.iter().collect();
        pending.sort_by_key(|pending| Reverse(pending.heard_at));
        let pending = pending.into_iter().map(move |pending| HelloTo {
            station,
            session: pending.id,
            challenge: pending.our_challenge,
            answer: pending.challenge_to_answer,
            accepted: false,
            asks: true,
            instead: None,
            lanes: pending.taken.lanes,
            lane_size: pending.taken.lane_size,
        });
        accepted.map(|to| (0, to)).chain((1..).zip(pending))
    }
}

/// Whether what was opened is a goodbye, and nothing else.
fn is_goodbye(body: &[u8]) -> bool {
    let mut chunks = Chunks::new(body);
    let first = chunks.next().flatten();
    first.is_some_and(|chunk| chunk.kind == Kind::Goodbye) && chunks.next().is_none()
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
