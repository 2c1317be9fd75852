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

mod examine;

use core::time::Duration;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::Field;

use crate::bounds::*;
use crate::config::{CodingParams, Crossing, Mode, StationId};
use crate::inspect::PeerView;
use crate::link::loss_ratio::LossEstimator;
use crate::link::replay::ReplayWindow;
use crate::link::seal::{ChallengeKey, SessionKey};
use crate::psk::Psk;
use crate::wire::{
    HEADER_LEN, HELLO_CLEAR_LEN, Header, Hello, HelloTo, Instead, Kind, ProbeBody, Random128,
    Reader, TAG_LEN,
};

/// The station's own session, and those of its peers.
pub(crate) struct Group {
    me: StationId,
    psk: Psk,
    rng: Stream,
    instance: u64,
    coding: CodingParams,
    /// How packets cross here.
    crossing: Crossing,
    own: OwnSession,
    challenges: ChallengeKey,
    peers: Vec<Peer>,
    hello_due: Time,
    hello_interval: Duration,
}

struct OwnSession {
    id: Random128,
    key: SessionKey,
    next_counter: u32,
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
}

struct PeerSession {
    id: Random128,
    key: SessionKey,
    instance: u64,
    replay: ReplayWindow,
    /// What we owe it: the answer to the challenge it set our current session.
    challenge_to_answer: Random128,
}

struct PendingSession {
    id: Random128,
    key: SessionKey,
    our_challenge: Random128,
    challenge_to_answer: Random128,
    newest_counter: Option<u32>,
    heard_at: Time,
}

/// A frame that opened; its body is in the buffer that was passed in.
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
    /// A HELLO, authentic; `accepted` if its session is, `joined` if it just became so, `differs`
    /// if it is news that packets cross otherwise there than here.
    Hello {
        from: StationId,
        accepted: bool,
        joined: Option<Joined>,
        differs: Option<Crossing>,
    },
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
    /// Which run of the peer this is: the low bits of its instance.
    pub(crate) run: u16,
}

impl Group {
    pub(crate) fn new(
        me: StationId,
        psk: Psk,
        peers: &[StationId],
        (coding, crossing): (CodingParams, Crossing),
        mut rng: Stream,
        now: Time,
    ) -> Self {
        debug_assert!(peers.len() <= PEERS_MAX);
        let instance = rng.next_u64();
        let own = OwnSession::new(&psk, me, &mut rng);
        let challenges = ChallengeKey::new(&random128(&mut rng));
        let peers = peers.iter().map(|&id| Peer::new(id, now)).collect();
        let hello_interval = HELLO_INTERVAL_FAST;
        Group {
            me,
            psk,
            rng,
            instance,
            coding,
            crossing,
            own,
            challenges,
            peers,
            hello_due: now,
            hello_interval,
        }
    }

    pub(crate) fn peer(&self, id: StationId) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    /// Whether frames can be exchanged with a peer in both directions.
    pub(crate) fn is_up(&self, id: StationId) -> bool {
        self.peer(id).is_some_and(|peer| peer.accepts_us && peer.session.is_some())
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
            is_up: peer.accepts_us && peer.session.is_some(),
            is_silent: peer.silent,
            hellos: peer.hellos,
            answered_at: peer.answered_at,
            last_heard: peer.hello_at.max(peer.session.as_ref().map(|_| peer.last_heard)),
            loss_ratio: peer.session.as_ref().map(|_| peer.link.ratio()),
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

    /// Writes a header for the next frame into `frame` (replaced); the caller appends the body.
    pub(crate) fn begin(&self, kind: Kind, has_ack: bool, frame: &mut Vec<u8>) {
        frame.clear();
        let counter = self.own.next_counter;
        Header { kind, has_ack, session_tag: session_tag(&self.own.id), counter }.write(frame);
    }

    /// Seals what was begun, padded to `len_min` bytes.
    pub(crate) fn seal(&mut self, frame: &mut Vec<u8>, len_min: usize) {
        self.seal_behind(HEADER_LEN, frame, len_min);
    }

    fn seal_behind(&mut self, clear: usize, frame: &mut Vec<u8>, len_min: usize) {
        let padded = frame.len().max(len_min.saturating_sub(TAG_LEN));
        frame.resize(padded, 0);
        self.own.key.seal(self.own.next_counter, frame, clear);
        self.own.next_counter += 1;
        if self.own.next_counter >= SESSION_FRAMES_MAX {
            self.rekey();
        }
    }

    /// A fresh session of the same instance, before the counter runs out.
    fn rekey(&mut self) {
        self.own = OwnSession::new(&self.psk, self.me, &mut self.rng);
        for peer in &mut self.peers {
            peer.accepts_us = false;
        }
        self.hello_interval = HELLO_INTERVAL_FAST;
        self.hello_due = Time::ZERO;
    }

    pub(crate) fn hello_due(&self) -> Time {
        self.hello_due
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
        self.begin(Kind::Hello, false, frame);
        frame.push(self.me.0);
        frame.extend_from_slice(&self.own.id);
        // Accepted sessions before knocking ones, of all peers: nobody can crowd them out.
        let mut to: Vec<HelloTo> = self.peers.iter().flat_map(Peer::hello_entries).collect();
        to.sort_by_key(|to| !to.accepted);
        to.truncate(PEERS_MAX);
        to.iter_mut().for_each(|to| to.instead = Instead::of(self.crossing));
        let CodingParams { mode, field, symbol_size, .. } = self.coding;
        let block_size = match mode {
            Mode::Block => self.coding.block_size,
            Mode::Window => self.coding.window_size,
        };
        let instance = self.instance;
        Hello { instance, field, block_size, symbol_size, mode, base, to }.write(frame);
        self.seal_behind(HEADER_LEN + HELLO_CLEAR_LEN, frame, len_min);

        let unsettled = || self.peers.iter().filter(|peer| !peer.settled());
        let talking = |peer: &Peer| peer.hello_at.is_some_and(|at| now - at < HELLO_TALKING);
        let longer = self.hello_interval * 3 / 2;
        self.hello_interval = if unsettled().any(talking) {
            longer.min(HELLO_INTERVAL_TALKING_MAX)
        } else if unsettled().next().is_some() {
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

    /// Peers that fell silent since the last call.
    pub(crate) fn newly_silent(&mut self, now: Time) -> Option<StationId> {
        let fell = |peer: &&mut Peer| {
            peer.session.is_some() && !peer.silent && now - peer.last_heard > PEER_SILENT
        };
        self.peers.iter_mut().find(fell).map(|peer| {
            peer.silent = true;
            peer.id
        })
    }

    // ---- receiving ----------------------------------------------------------------------------

    /// Opens a frame; its body goes into `body`.
    pub(crate) fn open(&mut self, now: Time, frame: &[u8], body: &mut Vec<u8>) -> Opening {
        let Some(header) = Header::parse(frame) else { return Opening::Malformed };
        if header.kind == Kind::Hello {
            return self.open_hello(now, header, frame, body);
        }
        let mut known_tag = false;
        for peer in &mut self.peers {
            let Some(session) = &mut peer.session else { continue };
            if session_tag(&session.id) != header.session_tag {
                continue;
            }
            known_tag = true;
            if !session.key.open(header.counter, frame, HEADER_LEN, body) {
                continue;
            }
            if !session.replay.accept(header.counter) {
                return Opening::Replayed;
            }
            let probes = match header.kind {
                Kind::Probe => ProbeBody::probes_before(body),
                _ => 0,
            };
            peer.note(now, header.counter, probes);
            return Opening::Frame(Opened { from: peer.id, header });
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
        let mut clear = Reader(&frame[HEADER_LEN..]);
        let (Some(sender), Some(id)) = (clear.u8(), clear.array()) else {
            return Opening::Malformed;
        };
        let Some(at) = self.peers.iter().position(|peer| peer.id.0 == sender) else {
            return Opening::NotAuthentic;
        };
        let known = self.peers[at].key_of(&id);
        let fresh_key;
        let key = match known {
            Some(key) => key,
            None => {
                fresh_key = SessionKey::derive(&self.psk, StationId(sender), &id);
                &fresh_key
            }
        };
        if !key.open(header.counter, frame, HEADER_LEN + HELLO_CLEAR_LEN, body) {
            return Opening::NotAuthentic;
        }
        let Some(hello) = Hello::parse(body) else { return Opening::Malformed };
        let said = hello.to.iter().find(|to| to.station == self.me && to.session == self.own.id);
        self.take_hello(now, at, id, header.counter, &hello, said)
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
        let mut joined = None;
        if self.peers[at].session.as_ref().is_some_and(|session| session.id == id) {
            let peer = &mut self.peers[at];
            if !peer.session.as_mut().is_some_and(|session| session.replay.accept(counter)) {
                return Opening::Replayed;
            }
            peer.note(now, counter, 0);
            // Between these two sessions it is for good; an overtaken HELLO does not undo it.
            peer.accepts_us |= said.is_some_and(|said| said.accepted);
            if let (Some(session), Some(said)) = (&mut peer.session, said) {
                session.challenge_to_answer = said.challenge;
            }
        } else {
            let pending = self.pending_session(now, at, id);
            if pending.newest_counter.is_some_and(|newest| counter <= newest) {
                return Opening::Replayed;
            }
            pending.newest_counter = Some(counter);
            joined = self.take_hello_of_pending(now, at, id, counter, hello, said);
        }
        self.peers[at].note_hello(now, said.is_some());
        // Answer soon while the two of us are not done with each other.
        if !self.peers[at].settled() || said.is_none_or(|said| said.asks) {
            self.hurry_hello(now);
        }
        let session = self.peers[at].session.as_ref();
        let accepted = session.is_some_and(|session| session.id == id);
        let differs = said.filter(|_| accepted).and_then(|said| self.compare(at, hello, said));
        Opening::Hello { from, accepted, joined, differs }
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
                let accepted_us = said.accepted;
                return Some(self.promote(now, at, id, counter, hello, accepted_us));
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
                let key = SessionKey::derive(&self.psk, peer.id, &id);
                let our_challenge = self.challenges.challenge(peer.id, &id, peer.promotions);
                let challenge_to_answer = [0; 16];
                let heard_at = now;
                peer.pending.push(PendingSession {
                    id,
                    key,
                    our_challenge,
                    challenge_to_answer,
                    newest_counter: None,
                    heard_at,
                });
                peer.pending.len() - 1
            }
        };
        peer.pending[index].heard_at = now;
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
        accepts_us: bool,
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
            key: pending.key,
            instance: hello.instance,
            replay: ReplayWindow::starting_at(counter),
            challenge_to_answer: pending.challenge_to_answer,
        });
        peer.accepts_us = accepts_us;
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
            run: hello.instance as u16,
        }
    }
}

impl OwnSession {
    fn new(psk: &Psk, me: StationId, rng: &mut Stream) -> Self {
        let id = random128(rng);
        OwnSession { id, key: SessionKey::derive(psk, me, &id), next_counter: 0 }
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
        if self.session.is_none() || now - self.last_heard > stale {
            return 1.0;
        }
        self.link.ratio()
    }

    /// Both sides have accepted each other, and no newer session is knocking.
    fn settled(&self) -> bool {
        self.session.is_some() && self.accepts_us && self.pending.is_empty()
    }

    fn key_of(&self, id: &Random128) -> Option<&SessionKey> {
        let accepted = self.session.iter().map(|session| (&session.id, &session.key));
        let pending = self.pending.iter().map(|pending| (&pending.id, &pending.key));
        accepted.chain(pending).find(|(other, _)| *other == id).map(|(_, key)| key)
    }

    /// What the next HELLO says to this peer: to its accepted session and to the pending ones.
    fn hello_entries(&self) -> impl Iterator<Item = HelloTo> {
        let station = self.id;
        let accepted = self.session.iter().map(move |session| HelloTo {
            station,
            session: session.id,
            challenge: [0; 16],
            answer: session.challenge_to_answer,
            accepted: true,
            asks: !self.accepts_us,
            instead: None,
        });
        let pending = self.pending.iter().map(move |pending| HelloTo {
            station,
            session: pending.id,
            challenge: pending.our_challenge,
            answer: pending.challenge_to_answer,
            accepted: false,
            asks: true,
            instead: None,
        });
        accepted.chain(pending)
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
mod tests {
    use super::*;
    use corridor_base::rand::SeedableRng;

    fn coding() -> CodingParams {
        CodingParams { symbol_size: 1400, ..CodingParams::default() }
    }

    fn group(me: u8, peers: &[u8], seed: u8) -> Group {
        let peers: Vec<_> = peers.iter().map(|&id| StationId(id)).collect();
        let rng = Stream::from_seed([seed; 32]);
        let setting = (coding(), Crossing::Block);
        Group::new(StationId(me), [1; 32].into(), &peers, setting, rng, Time::ZERO)
    }

    fn hello(group: &mut Group, now: Time) -> Vec<u8> {
        let mut frame = Vec::new();
        group.write_hello(now, 0, &mut frame, 0);
        frame
    }

    /// Lets all groups hear each other's HELLOs, as they fall due, until none is due soon.
    fn converse(groups: &mut [Group], from: Time) -> Time {
        let mut now = from;
        for _ in 0..2_000 {
            now += Duration::from_millis(1);
            for speaker in 0..groups.len() {
                if groups[speaker].hello_due() > now {
                    continue;
                }
                let frame = hello(&mut groups[speaker], now);
                for hearer in (0..groups.len()).filter(|&hearer| hearer != speaker) {
                    groups[hearer].open(now, &frame, &mut Vec::new());
                }
            }
        }
        now
    }

    fn data(group: &mut Group) -> Vec<u8> {
        let mut frame = Vec::new();
        group.begin(Kind::Enc, false, &mut frame);
        frame.extend_from_slice(b"body");
        group.seal(&mut frame, 0);
        frame
    }

    #[test]
    fn three_stations_find_each_other_and_then_hold_their_peace() {
        let mut groups = [group(1, &[2, 3], 1), group(2, &[1, 3], 2), group(3, &[1, 2], 3)];
        let now = converse(&mut groups, Time::ZERO);
        for (group, peers) in groups.iter().zip([[2, 3], [1, 3], [1, 2]]) {
            assert!(peers.iter().all(|&peer| group.is_up(StationId(peer))));
            assert!(group.hello_due() - now > HELLO_INTERVAL_SEARCH_MAX);
        }
        let frame = data(&mut groups[0]);
        let mut body = Vec::new();
        for hearer in &mut groups[1..] {
            let opening = hearer.open(now, &frame, &mut body);
            assert!(matches!(opening, Opening::Frame(opened) if opened.from == StationId(1)));
            assert_eq!(body, b"body");
            assert_eq!(hearer.open(now, &frame, &mut body), Opening::Replayed);
        }
    }

    #[test]
    fn recordings_do_not_bring_a_session_back() {
        let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
        let mut recorded = Vec::new();
        let mut now = Time::ZERO;
        for _ in 0..500 {
            now += Duration::from_millis(1);
            for (speaker, hearer) in [(0, 1), (1, 0)] {
                if groups[speaker].hello_due() <= now {
                    let frame = hello(&mut groups[speaker], now);
                    groups[hearer].open(now, &frame, &mut Vec::new());
                    recorded.extend((speaker == 0).then_some(frame));
                }
            }
        }
        assert!(groups[1].is_up(StationId(1)));
        recorded.push(data(&mut groups[0]));

        // Station 2 restarts, station 1 is gone; somebody plays back all it ever said.
        let mut restarted = group(2, &[1], 9);
        for frame in recorded {
            let opening = restarted.open(now, &frame, &mut Vec::new());
            assert!(matches!(
                opening,
                Opening::Hello { joined: None, .. } | Opening::UnknownSession
            ));
        }
        assert!(!restarted.is_up(StationId(1)));
    }

    #[test]
    fn a_former_session_does_not_come_back_by_its_own_answer() {
        let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
        let mut recorded = Vec::new();
        let mut now = Time::ZERO;
        for ms in 0..1_000 {
            now += Duration::from_millis(1);
            if ms == 500 {
                groups[0] = group(1, &[2], 77);
            }
            for (speaker, hearer) in [(0, 1), (1, 0)] {
                if groups[speaker].hello_due() <= now {
                    let frame = hello(&mut groups[speaker], now);
                    groups[hearer].open(now, &frame, &mut Vec::new());
                    recorded.extend((speaker == 0 && ms < 500).then_some(frame));
                }
            }
        }
        assert!(groups[1].is_up(StationId(1)));
        for frame in recorded {
            let opening = groups[1].open(now, &frame, &mut Vec::new());
            assert!(!matches!(opening, Opening::Hello { joined: Some(_), .. }), "{opening:?}");
        }
    }

    #[test]
    fn a_restarted_peer_is_taken_back_as_a_new_instance() {
        let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
        let now = converse(&mut groups, Time::ZERO);
        let old_session = groups[0].own.id;
        groups[0] = group(1, &[2], 77);
        assert_ne!(old_session, groups[0].own.id);
        converse(&mut groups, now);
        assert!(groups[1].is_up(StationId(1)) && groups[0].is_up(StationId(2)));
    }

    #[test]
    fn a_session_near_its_last_counter_is_replaced_under_way() {
        let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
        let now = converse(&mut groups, Time::ZERO);
        groups[0].own.next_counter = SESSION_FRAMES_MAX - 1;
        data(&mut groups[0]);
        assert_eq!(groups[0].own.next_counter, 0);
        assert!(!groups[0].is_up(StationId(2)));
        converse(&mut groups, now);
        assert!(groups[0].is_up(StationId(2)));
    }

    #[test]
    fn a_crowd_of_replayed_sessions_does_not_keep_a_peer_out() {
        // Recordings of many former sessions of station 1, played back between any two frames.
        let recordings: Vec<Vec<u8>> =
            (10..30).map(|seed| hello(&mut group(1, &[2], seed), Time::ZERO)).collect();
        let mut groups = [group(1, &[2], 1), group(2, &[1], 2)];
        let mut now = Time::ZERO;
        for step in 0..1_000 {
            now += Duration::from_millis(1);
            groups[1].open(now, &recordings[step % recordings.len()], &mut Vec::new());
            for (speaker, hearer) in [(0, 1), (1, 0)] {
                if groups[speaker].hello_due() <= now {
                    let frame = hello(&mut groups[speaker], now);
                    groups[hearer].open(now, &frame, &mut Vec::new());
                }
            }
        }
        assert!(groups[0].is_up(StationId(2)) && groups[1].is_up(StationId(1)));
    }

    #[test]
    fn another_secret_is_a_stranger() {
        let mut ours = group(1, &[2], 1);
        let rng = Stream::from_seed([5; 32]);
        let setting = (coding(), Crossing::Block);
        let mut theirs =
            Group::new(StationId(2), [2; 32].into(), &[StationId(1)], setting, rng, Time::ZERO);
        let frame = hello(&mut theirs, Time::ZERO);
        assert_eq!(ours.open(Time::ZERO, &frame, &mut Vec::new()), Opening::NotAuthentic);
    }
}
