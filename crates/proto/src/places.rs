//! Where peers are: told by the configuration, or learned from what they send. Addresses are the
//! driver's, of whatever kind.
//!
//! A peer may speak from somewhere else at any time. That alone moves nothing: who copies a frame
//! on its way and delivers it first, from an address of their own, would have what is meant for the
//! peer. So the new address is challenged, by eight random bytes that go there and nowhere else,
//! and so is the old one. Frames go on to the old one until the peer has repeated what the new one
//! was told, from there, and for as long as it answers from the old one as well: who copies answers
//! too has not got the peer away from where it was (RFC 9000, Sections 8.2 and 9.3.3). And no address gets more bytes than came from it before it has answered, so that nobody is
//! flooded in another's name.

use arrayvec::ArrayVec;
use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use crate::bounds::{
    CHALLENGE_AGE_MAX, CHALLENGE_INTERVAL, CHALLENGED_ADDRESSES_MAX, MOVE_WAIT_MIN,
};
use crate::config::StationId;
use crate::wire::{ChallengeToken, PATH_CHALLENGE_LEN};

/// Addresses of peers.
pub struct PeerBook<A> {
    peers: Vec<Peer<A>>,
    may_move: bool,
    /// Shortest frame that is not padded on the way, bytes.
    frame_len_min: usize,
    /// Others hear what goes to one address: who answers a HELLO need not be where it went.
    is_overheard: bool,
    rng: Stream,
}

struct Peer<A> {
    id: StationId,
    place: Option<Place<A>>,
    /// Where its newest handshake came from, if not from there: it may have moved and started anew.
    candidate: Option<Place<A>>,
    /// From where it has spoken since, and has not answered a challenge yet.
    challenged: ArrayVec<Challenged<A>, CHALLENGED_ADDRESSES_MAX>,
    /// What it is asked meanwhile where it is taken to be, and when next.
    home_token: ChallengeToken,
    home_due: Time,
    /// Whether it may change: told by the configuration of an underlay where stations stay.
    fixed: bool,
    certain: bool,
}

/// An address, and what may go there.
#[derive(Clone, Copy)]
struct Place<A> {
    address: A,
    /// Bytes that may still go there before it proves that a peer is there; `None`: it has, or the
    /// configuration says so.
    allowance: Option<usize>,
}

/// An address that is to show that its peer is there.
#[derive(Clone, Copy)]
struct Challenged<A> {
    place: Place<A>,
    token: ChallengeToken,
    heard_at: Time,
    due: Time,
    /// When it was asked first, and when it answered first, since the peer last answered from where
    /// it is taken to be.
    asked_at: Option<Time>,
    answered_at: Option<Time>,
}

/// How sure it is that a frame's sender is at the address it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It has repeated this, which may have been sent there.
    Answer(ChallengeToken),
    /// It opened under an accepted session.
    Session,
    /// It may be a recording that somebody plays from elsewhere.
    Handshake,
    /// The same of the first message of a key exchange, which is answered by fewer bytes.
    Initiation,
}

/// What came of a frame's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The station's frames go where they went.
    Nothing,
    /// They go there from here on; it is known of no place where it was before.
    Found,
    /// They go there from here on, and went elsewhere before.
    Moved,
}

/// A challenge to be sent, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge<A> {
    /// The peer that has spoken from there.
    pub station: StationId,
    /// Where.
    pub address: A,
    /// What it has to repeat.
    pub token: ChallengeToken,
}

impl<A: Copy> Place<A> {
    /// Where frames may go without limit.
    fn known(address: A) -> Self {
        Place { address, allowance: None }
    }

    /// An address of which nothing is known but that this came from there: it may be a recording,
    /// and the address that of somebody who is to be flooded.
    fn unproven(address: A, allowance: usize) -> Self {
        Place { address, allowance: Some(allowance) }
    }

    /// Takes note of a frame from there, which allows for so many bytes.
    fn credit(&mut self, bytes: usize) {
        if let Some(allowance) = &mut self.allowance {
            *allowance = allowance.saturating_add(bytes);
        }
    }

    /// Whether a frame may go there; it counts as sent.
    fn charge(&mut self, len_bytes: usize) -> bool {
        let Some(allowance) = &mut self.allowance else { return true };
        let rest = allowance.checked_sub(len_bytes);
        *allowance = rest.unwrap_or(*allowance);
        rest.is_some()
    }
}

impl<A: Copy + PartialEq> Peer<A> {
    fn configured(id: StationId, address: Option<A>, may_move: bool) -> Self {
        Peer {
            id,
            place: address.map(Place::known),
            candidate: None,
            challenged: ArrayVec::new(),
            home_token: ChallengeToken::default(),
            home_due: Time::ZERO,
            fixed: address.is_some() && !may_move,
            certain: address.is_some(),
        }
    }

    /// Where it is and where it may be, as far as a frame of so many bytes may go there.
    fn places(&mut self, len_bytes: usize) -> impl Iterator<Item = A> {
        let known = [&self.place, &self.candidate].map(|it| it.as_ref().map(|it| it.address));
        let others = self.challenged.iter_mut().map(|it| &mut it.place);
        let others = others.filter(move |it| !known.contains(&Some(it.address)));
        let places = [&mut self.place, &mut self.candidate].into_iter().flatten().chain(others);
        places.filter_map(move |place| place.charge(len_bytes).then_some(place.address))
    }

    /// It is there from here on, and nowhere else.
    fn settle(&mut self, address: A) -> Learned {
        let was_certain = core::mem::replace(&mut self.certain, true);
        (self.candidate, self.place) = (None, Some(Place::known(address)));
        self.challenged.clear();
        if was_certain { Learned::Moved } else { Learned::Found }
    }

    /// A fresh frame of its came from there: it is asked there whether it is there.
    fn challenge(&mut self, now: Time, address: A, len_bytes: usize, rng: &mut Stream) {
        // Each byte counts once, wherever the address is kept in mind.
        let mut counted = false;
        for place in [&mut self.place, &mut self.candidate].into_iter().flatten() {
            if place.address == address {
                place.credit(len_bytes);
                counted = true;
            }
        }
        let credit = if counted { 0 } else { len_bytes };
        let is_there = |it: &&mut Challenged<A>| it.place.address == address;
        if let Some(known) = self.challenged.iter_mut().find(is_there) {
            known.heard_at = now;
            known.place.credit(credit);
            return;
        }
        if self.challenged.is_empty() {
            rng.fill_bytes(&mut self.home_token);
            self.home_due = now;
        }
        if self.challenged.is_full() {
            let heard_at = |&at: &usize| self.challenged[at].heard_at;
            let quietest = (0..self.challenged.len()).min_by_key(heard_at);
            self.challenged.remove(quietest.unwrap_or_default());
        }
        let mut token = ChallengeToken::default();
        rng.fill_bytes(&mut token);
        let place = Place::unproven(address, credit);
        let (asked_at, answered_at) = (None, None);
        let asked = Challenged { place, token, heard_at: now, due: now, asked_at, answered_at };
        self.challenged.push(asked);
    }

    /// It has answered from where it is taken to be: what others have answered so far is no reason
    /// to look for it there.
    fn note_at_home(&mut self, token: ChallengeToken) {
        if token == self.home_token {
            for it in &mut self.challenged {
                (it.asked_at, it.answered_at) = (None, None);
            }
        }
    }

    /// It has answered from an address that was asked. Whether it is to be taken to be there: at
    /// once where nobody knows better, and else if it has not answered from where it was for as
    /// long as this answer took, and for [`MOVE_WAIT_MIN`].
    fn note_answer(&mut self, now: Time, address: A, token: ChallengeToken) -> bool {
        let answers = |it: &&mut Challenged<A>| it.place.address == address && it.token == token;
        let Some(it) = self.challenged.iter_mut().find(answers) else { return false };
        let Some(asked_at) = it.asked_at else { return false };
        let answered_at = *it.answered_at.get_or_insert(now);
        let wait = (answered_at - asked_at).max(MOVE_WAIT_MIN);
        !self.is_proven() || now - answered_at >= wait
    }

    /// Whether it has shown where it is, or the configuration says so.
    fn is_proven(&self) -> bool {
        self.place.is_some_and(|place| place.allowance.is_none())
    }

    /// The next challenge that is due, as far as a frame of so many bytes may go there. None while
    /// the peer `is_up` not, for there is no frame for it.
    fn poll_challenge(&mut self, now: Time, is_up: bool, len_bytes: usize) -> Option<Challenge<A>> {
        self.challenged.retain(|it| now - it.heard_at < CHALLENGE_AGE_MAX);
        if self.home_due().is_some_and(|due| due <= now) {
            self.home_due = now + CHALLENGE_INTERVAL;
            if let Some(home) = self.place.filter(|_| is_up) {
                let token = self.home_token;
                return Some(Challenge { station: self.id, address: home.address, token });
            }
        }
        let Peer { place, candidate, challenged, .. } = self;
        for it in challenged.iter_mut().filter(|it| it.due <= now) {
            it.due = now + CHALLENGE_INTERVAL;
            let address = it.place.address;
            let known = [&mut *place, &mut *candidate].into_iter().flatten();
            let mut purses = known.filter(|place| place.address == address).chain([&mut it.place]);
            if is_up && purses.any(|place| place.charge(len_bytes)) {
                it.asked_at.get_or_insert(now);
                return Some(Challenge { station: self.id, address, token: it.token });
            }
        }
        None
    }

    /// When it is asked next whether it still is where it was; none if nobody says otherwise.
    fn home_due(&self) -> Option<Time> {
        (self.is_proven() && !self.challenged.is_empty()).then_some(self.home_due)
    }
}

impl<A: Copy + PartialEq> PeerBook<A> {
    /// The peers, with the addresses they were configured with. If they may move (UDP), a
    /// configured address is only where to find them first. `entropy` is 32 bytes of fresh
    /// randomness, of which challenges are made.
    pub fn new(
        configured: impl IntoIterator<Item = (StationId, Option<A>)>,
        may_move: bool,
        entropy: [u8; 32],
    ) -> Self {
        let peer = |(id, address)| Peer::configured(id, address, may_move);
        let peers = configured.into_iter().map(peer).collect();
        // Where stations stay they share a wire or a channel.
        let is_overheard = !may_move;
        let rng = Stream::from_seed(entropy);
        PeerBook { peers, may_move, frame_len_min: 0, is_overheard, rng }
    }

    /// Of an underlay that pads frames to so many bytes.
    #[must_use]
    pub fn with_frame_len_min(self, frame_len_min: usize) -> Self {
        PeerBook { frame_len_min, ..self }
    }

    /// There is such a peer from now on.
    pub fn add(&mut self, station: StationId, address: Option<A>) {
        self.peers.push(Peer::configured(station, address, self.may_move));
    }

    /// There is no such peer any more.
    pub fn remove(&mut self, station: StationId) {
        self.peers.retain(|peer| peer.id != station);
    }

    /// The configuration says from now on that a station is there, or nothing of where it is: then
    /// it stays where it was last.
    pub fn configure(&mut self, station: StationId, address: Option<A>) {
        let may_move = self.may_move;
        let Some(peer) = self.peer(station) else { return };
        peer.fixed = address.is_some() && !may_move;
        if let Some(address) = address {
            peer.settle(address);
        }
    }

    /// Where a station is taken to be.
    pub fn address(&self, station: StationId) -> Option<A> {
        let peer = self.peers.iter().find(|peer| peer.id == station)?;
        peer.place.map(|place| place.address)
    }

    /// Who is taken to be at an address.
    pub fn station(&self, address: A) -> Option<StationId> {
        let is_there = |peer: &&Peer<A>| peer.place.is_some_and(|place| place.address == address);
        self.peers.iter().find(is_there).map(|peer| peer.id)
    }

    /// Who has shown that it is at an address, or is there by the configuration: a handshake that
    /// anybody may have recorded is not enough.
    pub fn proven_station(&self, address: A) -> Option<StationId> {
        let is_there = |peer: &&Peer<A>| peer.place.is_some_and(|place| place.address == address);
        self.peers.iter().filter(|peer| peer.is_proven()).find(is_there).map(|peer| peer.id)
    }

    /// All addresses that a frame of so many bytes for everybody goes to, in the configuration's
    /// order: where the peers are, and where one may be by its newest handshake. An address that
    /// has proved nothing gets no more than came from it (RFC 9000, Section 8.1, allows thrice as
    /// much).
    pub fn addresses(&mut self, len_bytes: usize) -> impl Iterator<Item = A> {
        self.peers.iter_mut().flat_map(move |peer| peer.places(len_bytes))
    }

    /// The same of a frame for one station: where it is, and where it may be.
    pub fn places(&mut self, station: StationId, len_bytes: usize) -> impl Iterator<Item = A> {
        self.peer(station).into_iter().flat_map(move |peer| peer.places(len_bytes))
    }

    /// Where a frame of so many bytes goes that is for one station alone: where it is, if that has
    /// been proved, or as long as no more goes there than came from there.
    pub fn place(&mut self, station: StationId, len_bytes: usize) -> Option<A> {
        let place = self.peer(station)?.place.as_mut()?;
        place.charge(len_bytes).then_some(place.address)
    }

    /// Whether a handshake of a station came from elsewhere than where it is taken to be.
    pub fn may_be_elsewhere(&self, station: StationId) -> bool {
        self.peers.iter().any(|peer| peer.id == station && peer.candidate.is_some())
    }

    /// Its name says that a station is at this address: where there is none yet, that has to do;
    /// else it is a place to look for it. Whether it had not been thought to be there.
    pub fn suggest(&mut self, station: StationId, address: A) -> bool {
        let Some(peer) = self.peer(station) else { return false };
        let is_there = |place: &Place<A>| place.address == address;
        let known = peer.place.as_ref().is_some_and(is_there)
            || peer.candidate.as_ref().is_some_and(is_there);
        match peer.place {
            // The configuration names it: no stranger does.
            None => peer.place = Some(Place::known(address)),
            Some(_) if !known => peer.candidate = Some(Place::known(address)),
            Some(_) => {}
        }
        !known
    }

    /// Notes where a frame of a station came from, and its bytes.
    ///
    /// A handshake proves nothing about an address: it serves where there is none yet, and else is
    /// a place to answer handshakes to. A fresh frame proves it where no other address was told of
    /// the session, and nobody else can hear what goes there, so that only who hears there can have
    /// answered; any other address is challenged ([`poll_challenge`](Self::poll_challenge)), and
    /// only the answer, from there, makes frames go there, if none comes from where it was.
    pub fn learn(
        &mut self,
        now: Time,
        (station, address): (StationId, A),
        certainty: Certainty,
        len_bytes: usize,
    ) -> Learned {
        let PeerBook { peers, rng, is_overheard, .. } = self;
        let Some(peer) = peers.iter_mut().find(|peer| peer.id == station) else {
            return Learned::Nothing;
        };
        let is_there = |place: &Place<A>| place.address == address;
        let is_alone = peer.candidate.is_none() && peer.challenged.is_empty() && !*is_overheard;
        let place = peer.place.as_mut().filter(|place| is_there(place));
        match (certainty, place) {
            (Certainty::Answer(token), Some(Place { allowance: None, .. })) => {
                peer.note_at_home(token);
            }
            (_, Some(Place { allowance: None, .. })) => {}
            (Certainty::Session, Some(place)) if is_alone => {
                *place = Place::known(address);
                peer.certain = true;
            }
            (Certainty::Answer(token), _) => {
                if peer.note_answer(now, address, token) {
                    return peer.settle(address);
                }
                // It may be asked again for as many bytes.
                if peer.challenged.iter().any(|it| is_there(&it.place)) {
                    peer.challenge(now, address, len_bytes, rng);
                }
            }
            (Certainty::Session, _) if !peer.fixed => {
                let place = Place::unproven(address, 0);
                let _ = peer.place.get_or_insert(place);
                peer.challenge(now, address, len_bytes, rng);
            }
            (Certainty::Handshake | Certainty::Initiation, Some(place)) => place.credit(len_bytes),
            (Certainty::Handshake | Certainty::Initiation, None) if !peer.fixed => {
                let place = Place::unproven(address, len_bytes);
                match (&mut peer.place, &mut peer.candidate) {
                    (at @ None, _) => {
                        *at = Some(place);
                        return Learned::Found;
                    }
                    (_, Some(candidate)) if is_there(candidate) => candidate.credit(len_bytes),
                    (_, candidate) => *candidate = Some(place),
                }
            }
            _ => {}
        }
        Learned::Nothing
    }

    /// A station is at the address that it has spoken from, although nobody can ask it there.
    pub fn believe(&mut self, station: StationId, address: A) -> Learned {
        let is_there = |peer: &Peer<A>| {
            peer.is_proven() && peer.place.is_some_and(|place| place.address == address)
        };
        match self.peer(station).filter(|peer| !peer.fixed && !is_there(peer)) {
            Some(peer) => peer.settle(address),
            None => Learned::Nothing,
        }
    }

    /// The next challenge to be sent, to a peer that `is_up`, so that it can be. Repeated every
    /// [`CHALLENGE_INTERVAL`] while the peer is heard from there, as far as the bytes go that came
    /// from there.
    pub fn poll_challenge(
        &mut self,
        now: Time,
        is_up: impl Fn(StationId) -> bool,
    ) -> Option<Challenge<A>> {
        let len_bytes = self.frame_len_min.max(PATH_CHALLENGE_LEN);
        let peers = self.peers.iter_mut().filter(|peer| !peer.challenged.is_empty());
        peers
            .map(|peer| peer.poll_challenge(now, is_up(peer.id), len_bytes))
            .find(Option::is_some)
            .flatten()
    }

    /// When the next challenge goes.
    pub fn poll_timeout(&self) -> Option<Time> {
        let dues = |peer: &Peer<A>| {
            let challenged = peer.challenged.iter().map(|it| it.due).min();
            [challenged, peer.home_due()].into_iter().flatten().min()
        };
        self.peers.iter().filter_map(dues).min()
    }

    fn peer(&mut self, station: StationId) -> Option<&mut Peer<A>> {
        self.peers.iter_mut().find(|peer| peer.id == station)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{
        CodingParams, Destination, FrameOutcome, Keys, LinkErrors, PeerKey, PrivateKey, Role,
        Security, Station, StationConfig,
    };

    const A: StationId = StationId(1);
    const B: StationId = StationId(2);

    fn places(configured: [(StationId, Option<u8>); 2], may_move: bool) -> PeerBook<u8> {
        PeerBook::new(configured, may_move, [9; 32])
    }

    fn book(may_move: bool) -> PeerBook<u8> {
        places([(A, Some(10)), (B, None)], may_move)
    }

    /// Frames come from there; whether the peer is taken to be there, once it was asked and has
    /// answered.
    fn moves(book: &mut PeerBook<u8>, station: StationId, address: u8) -> bool {
        for ms in (0..500).step_by(10) {
            let now = Time::from_millis(ms);
            book.learn(now, (station, address), Certainty::Session, 60);
            while let Some(asked) = book.poll_challenge(now, |_| true) {
                let answer = Certainty::Answer(asked.token);
                // Where it was it is not any more.
                if asked.address == address {
                    book.learn(now, (asked.station, asked.address), answer, 60);
                }
            }
        }
        book.address(station) == Some(address)
    }

    #[test]
    fn a_configured_address_holds_where_stations_stay() {
        let mut book = book(false);
        assert!(!moves(&mut book, A, 11));
        assert_eq!((book.address(A), book.poll_challenge(Time::ZERO, |_| true)), (Some(10), None));
    }

    #[test]
    fn a_configured_address_is_left_where_stations_move_but_not_for_a_handshake() {
        let mut book = book(true);
        book.learn(Time::ZERO, (A, 11), Certainty::Handshake, 60);
        assert_eq!(book.address(A), Some(10));
        assert!(moves(&mut book, A, 11));
        assert_eq!((book.station(11), book.station(10)), (Some(A), None));
    }

    #[test]
    fn a_handshake_serves_until_a_session_tells_better() {
        let mut book = book(false);
        for address in [20, 21] {
            book.learn(Time::ZERO, (B, address), Certainty::Handshake, 60);
        }
        assert_eq!(book.address(B), Some(20));
        assert!(moves(&mut book, B, 21) && moves(&mut book, B, 22));
    }

    #[test]
    fn a_handshake_from_elsewhere_is_answered_there_too() {
        let mut book = book(true);
        for address in [11, 12] {
            book.learn(Time::ZERO, (A, address), Certainty::Handshake, 60);
        }
        assert_eq!(book.addresses(60).collect::<Vec<_>>(), [10, 12]);
        assert!(moves(&mut book, A, 12));
        assert_eq!(book.addresses(60).collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn an_address_that_is_configured_anew_takes_the_place_of_what_was_learned() {
        for may_move in [false, true] {
            let mut book = book(may_move);
            assert!(moves(&mut book, B, 20));
            book.configure(B, Some(30));
            assert_eq!(book.address(B), Some(30));
            assert_eq!(moves(&mut book, B, 20), may_move);
            book.configure(B, None);
            assert!(moves(&mut book, B, 21));
        }
    }

    #[test]
    fn the_last_good_address_stays_beside_one_that_is_only_suggested() {
        let mut book = book(true);
        assert!(book.suggest(B, 20) && !book.suggest(B, 20));
        assert_eq!(book.address(B), Some(20));
        assert!(moves(&mut book, B, 21));
        assert!(!book.suggest(B, 21) && book.suggest(B, 22) && !book.suggest(B, 22));
        assert_eq!((book.address(B), book.addresses(60).count()), (Some(21), 3));
        assert!(moves(&mut book, B, 22));
        assert_eq!(book.addresses(60).collect::<Vec<_>>(), [10, 22]);
        assert!(!book.suggest(StationId(9), 1));
    }

    #[test]
    fn strangers_are_not_taken_in() {
        let mut book = book(true);
        assert!(!moves(&mut book, StationId(9), 30));
        assert_eq!((book.station(30), book.addresses(60).count()), (None, 1));
    }

    /// Somebody on the way copies frames and delivers them first, and repeats what is asked; or
    /// has no more of an answer than a copy that was sent to another address.
    #[test]
    fn only_the_answer_from_where_it_was_asked_moves_anything() {
        let mut book = book(true);
        let session = Certainty::Session;
        assert_eq!(book.learn(Time::ZERO, (A, 66), session, 1_000), Learned::Nothing);
        let [home, asked] = [(); 2].map(|()| book.poll_challenge(Time::ZERO, |_| true).unwrap());
        assert_eq!([home.address, asked.address], [10, 66]);
        assert_ne!(home.token, asked.token);
        let later = Time::from_millis(400);
        for now in [Time::ZERO, later] {
            for (address, token) in
                [(10, asked.token), (67, asked.token), (66, [0; 8]), (66, home.token)]
            {
                let answer = Certainty::Answer(token);
                assert_eq!(book.learn(now, (A, address), answer, 60), Learned::Nothing);
            }
            let answer = Certainty::Answer(asked.token);
            assert_eq!(book.learn(now, (B, 66), answer, 60), Learned::Nothing);
            assert_eq!((book.address(A), book.place(A, 1_000)), (Some(10), Some(10)));
        }
        let answer = Certainty::Answer(asked.token);
        assert_eq!(book.learn(Time::ZERO, (A, 66), answer, 60), Learned::Nothing);
        assert_eq!(book.learn(later, (A, 66), answer, 60), Learned::Moved);
        assert_eq!(book.address(A), Some(66));
    }

    /// The peer's answer to what the new address was told, delivered from there before the original
    /// is there, was enough.
    #[test]
    fn who_copies_answers_as_well_moves_nothing_while_the_peer_answers_from_where_it_is() {
        let (mut book, mut draws) = (book(true), Stream::from_seed([7; 32]));
        // Answers under way, by when they arrive: of one in three nothing comes back.
        let mut under_way: Vec<(u64, u8, ChallengeToken)> = Vec::new();
        let mut gone_at = None;
        for ms in 0..30_000 {
            let now = Time::from_millis(ms);
            book.learn(now, (A, 66), Certainty::Session, 1_000);
            while let Some(asked) = book.poll_challenge(now, |_| true) {
                let is_home = asked.address == 10;
                if draws.next_u32() % 3 > 0 && !(is_home && ms >= 20_000) {
                    let arrives = ms + 50 + u64::from(is_home);
                    under_way.push((arrives, asked.address, asked.token));
                }
            }
            for &(_, from, token) in under_way.iter().filter(|it| it.0 == ms) {
                book.learn(now, (A, from), Certainty::Answer(token), 40);
            }
            under_way.retain(|it| it.0 > ms);
            if book.address(A) != Some(10) {
                gone_at.get_or_insert(ms);
            }
        }
        // Once it does not answer any more from where it was, it is followed.
        let gone_at = gone_at.expect("it has moved");
        assert!((20_000..20_600).contains(&gone_at), "{gone_at} ms");
    }

    #[test]
    fn a_neighbour_that_nobody_asks_is_believed_where_it_was_first_heard() {
        let mut book = book(false);
        book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 60);
        book.learn(Time::ZERO, (B, 20), Certainty::Session, 60);
        assert_eq!(book.place(B, 10_000), None);
        book.believe(B, 20);
        assert_eq!((book.place(B, 10_000), book.poll_timeout()), (Some(20), None));
        assert_eq!(book.believe(B, 20), Learned::Nothing);
    }

    /// Who answers a HELLO that others hear as well need not be where it went.
    #[test]
    fn a_session_proves_an_address_only_where_nobody_else_hears_what_goes_there() {
        let session = Certainty::Session;
        for may_move in [true, false] {
            let mut book = book(may_move);
            book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 60);
            book.learn(Time::ZERO, (B, 20), session, 60);
            // Stations that stay share a channel.
            assert_eq!(book.place(B, 10_000).is_some(), may_move);
            assert_eq!(book.proven_station(20).is_some(), may_move);
            assert!(book.station(20).is_some() && moves(&mut book, B, 20));
            assert_eq!((book.place(B, 10_000), book.proven_station(20)), (Some(20), Some(B)));
        }
        // Nor where another address was told of it, as who is asked there.
        let mut book = book(true);
        book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 60);
        book.peers[1].challenge(Time::ZERO, 21, 60, &mut Stream::from_seed([1; 32]));
        book.learn(Time::ZERO, (B, 20), session, 60);
        assert_eq!(book.place(B, 10_000), None);
    }

    #[test]
    fn what_cannot_be_sent_costs_nothing_and_what_is_padded_costs_what_is_sent() {
        for (len_min, down_ms) in [(0, 0), (0, 500), (46, 0), (46, 500)] {
            let mut book = book(false).with_frame_len_min(len_min);
            let len = len_min.max(PATH_CHALLENGE_LEN);
            book.learn(Time::ZERO, (B, 20), Certainty::Handshake, 3 * len + len / 2);
            book.learn(Time::ZERO, (B, 20), Certainty::Session, len / 4);
            let (mut asked, mut polls) = (0, 0);
            while let Some(due) = book.poll_timeout() {
                let is_up = |_| due >= Time::from_millis(down_ms);
                while book.poll_challenge(due, is_up).is_some() {
                    asked += 1;
                }
                polls += 1;
                assert!(polls < 200, "it is never done");
            }
            assert_eq!(asked, 3, "{len_min}, {down_ms}");
        }
    }

    #[test]
    fn of_many_addresses_that_speak_the_quietest_is_forgotten() {
        let mut book = book(true);
        for (ms, at) in [(0, 11), (10, 12), (20, 11), (30, 13)] {
            book.learn(Time::from_millis(ms), (A, at), Certainty::Session, 100);
        }
        let kept: Vec<u8> = book.peers[0].challenged.iter().map(|it| it.place.address).collect();
        assert_eq!(kept, [11, 13]);
    }

    #[test]
    fn an_address_is_asked_now_and_then_for_a_while_and_for_no_more_bytes_than_came_from_it() {
        let mut book = book(true);
        let (mut asked, len) = (0, 3 * PATH_CHALLENGE_LEN + 1);
        book.learn(Time::ZERO, (A, 11), Certainty::Session, len);
        for ms in 0..10_000 {
            while let Some(it) = book.poll_challenge(Time::from_millis(ms), |_| true) {
                asked += u32::from(it.address == 11);
            }
        }
        assert_eq!((asked, book.poll_timeout()), (3, None));
        let now = Time::from_millis(10_000);
        book.learn(now, (A, 11), Certainty::Session, 1_000_000);
        while let Some(due) = book.poll_timeout() {
            let it = book.poll_challenge(due.max(now), |_| true);
            asked += u32::from(it.is_some_and(|it| it.address == 11));
        }
        let most = CHALLENGE_AGE_MAX.as_millis() / CHALLENGE_INTERVAL.as_millis();
        assert!((60..=4 + most as u32).contains(&asked), "{asked}");
    }

    #[test]
    fn whatever_comes_from_an_address_no_more_goes_there() {
        let mut draws = Stream::from_seed([5; 32]);
        for _ in 0..200 {
            let mut book = book(true);
            let (mut came, mut went, mut proven) = ([0; 8], [0; 8], [false; 8]);
            for step in 0..200 {
                let now = Time::from_millis(10 * step);
                let (at, len) = (draws.next_u32() as usize % 8, draws.next_u32() as usize % 300);
                came[at] += len;
                let certainty = [Certainty::Handshake, Certainty::Initiation, Certainty::Session];
                // While more than one address was told of it, a session proves none.
                let certainty =
                    certainty[draws.next_u32() as usize % if step < 20 { 2 } else { 3 }];
                book.learn(now, (B, at as u8), certainty, len);
                let len = draws.next_u32() as usize % 300;
                book.places(B, len).for_each(|at| went[usize::from(at)] += len);
                book.place(B, len).iter().for_each(|&at| went[usize::from(at)] += len);
                while let Some(asked) = book.poll_challenge(now, |_| true) {
                    went[usize::from(asked.address)] += PATH_CHALLENGE_LEN;
                }
                if let Some(place) = book.peers[1].place.filter(|it| it.allowance.is_none()) {
                    proven[usize::from(place.address)] = true;
                }
                for at in (0..8).filter(|&at| !proven[at]) {
                    assert!(went[at] <= came[at], "{} bytes for {}", went[at], came[at]);
                }
            }
        }
    }

    fn end(id: StationId, peer: StationId, entropy: u8) -> Station {
        end_with([7; 32].into(), (id, peer), entropy)
    }

    /// An end with a key of its own.
    fn keyed(id: StationId, station: StationId, entropy: u8) -> Station {
        let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
        let peers = vec![PeerKey { station, public: private(station).public(), psk: None }];
        let keys = Keys { private: private(id), peers, started_ns: 1_000 };
        end_with(Security::Keys(Box::new(keys)), (id, station), entropy)
    }

    fn end_with(security: Security, (id, peer): (StationId, StationId), entropy: u8) -> Station {
        let config = StationConfig {
            id,
            role: Role::Endpoint { peer, helper: None },
            security,
            coding: CodingParams::window(),
            link_errors: LinkErrors::Measured,
            ingress_packets: 100,
            frame_len_max: 1_400,
            frame_len_min: 0,
            memory_bytes: crate::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        };
        Station::new(config, [entropy; 32], Time::ZERO).unwrap()
    }

    fn hear(station: &mut Station, book: &mut PeerBook<u8>, at: u8, now: Time, frame: &[u8]) {
        let (from, certainty) = match station.handle_frame(now, frame) {
            FrameOutcome::Accepted { from } => (from, Certainty::Session),
            FrameOutcome::Handshake { from } => (from, Certainty::Handshake),
            FrameOutcome::Initiation { from } => (from, Certainty::Initiation),
            FrameOutcome::Answered { from, token } => (from, Certainty::Answer(token)),
            FrameOutcome::Noted | FrameOutcome::Rejected(_) => return,
        };
        book.learn(now, (from, at), certainty, frame.len());
    }

    /// What the station sends now, each with its address.
    fn sent(station: &mut Station, book: &mut PeerBook<u8>, now: Time) -> Vec<(u8, Vec<u8>)> {
        let mut sent = Vec::new();
        station.handle_timeout(now);
        while let Some(transmit) = station.poll_transmit(now) {
            let (to, frame) = (transmit.to, transmit.frame.to_vec());
            match to {
                Destination::All => {
                    let everywhere = book.addresses(frame.len());
                    sent.extend(everywhere.map(|at| (at, frame.clone())));
                }
                Destination::Search(peer) => {
                    let places = book.places(peer, frame.len());
                    sent.extend(places.map(|at| (at, frame.clone())));
                }
                Destination::Station(peer) => {
                    sent.extend(book.place(peer, frame.len()).map(|at| (at, frame)));
                }
            }
        }
        while let Some(asked) = book.poll_challenge(now, |peer| station.is_up(peer)) {
            let frame = station.challenge(asked.station, asked.token);
            sent.extend(frame.map(|frame| (asked.address, frame.to_vec())));
        }
        sent
    }

    /// One recorded HELLO of 59 bytes drew 222 frames in 40 s, 17 kB, and so on for ever.
    #[test]
    fn a_recorded_handshake_draws_no_more_than_its_bytes() {
        for (known, every_ms) in [(None, u64::MAX), (Some(10), u64::MAX), (None, 1_000)] {
            let mut now = Time::ZERO;
            let recorded = end(A, B, 1).poll_transmit(now).unwrap().frame.to_vec();
            let (mut station, mut book) =
                (end(B, A, 2), places([(A, known), (StationId(9), None)], true));
            let (mut heard, mut frames, mut bytes) = (0, 0, 0);
            for ms in 0..40_000 {
                now = Time::from_millis(ms);
                if ms % every_ms == 0 {
                    heard += recorded.len();
                    hear(&mut station, &mut book, 77, now, &recorded);
                }
                for (_, frame) in
                    sent(&mut station, &mut book, now).iter().filter(|(at, _)| *at == 77)
                {
                    frames += 1;
                    bytes += frame.len();
                    assert!(bytes <= heard, "{frames} frames, {bytes} for {heard} bytes");
                }
            }
            assert!(frames > 0);
            assert!(every_ms < u64::MAX || frames <= 10, "{frames} frames");
        }
    }

    #[test]
    fn a_recorded_initiation_draws_no_more_than_its_bytes() {
        let recorded = keyed(A, B, 1).poll_transmit(Time::ZERO).unwrap().frame.to_vec();
        for (known, every_ms) in [(None, u64::MAX), (Some(10), 1_000), (None, 10)] {
            let (mut station, mut book) =
                (keyed(B, A, 2), places([(A, known), (StationId(9), None)], true));
            let (mut heard, mut bytes) = (0, 0);
            for ms in 0..40_000 {
                let now = Time::from_millis(ms);
                if ms % every_ms == 0 {
                    heard += recorded.len();
                    hear(&mut station, &mut book, 77, now, &recorded);
                }
                let sent = sent(&mut station, &mut book, now);
                let there = sent.iter().filter(|(at, _)| *at == 77);
                bytes += there.map(|(_, frame)| frame.len()).sum::<usize>();
                assert!(bytes <= heard, "{bytes} bytes for {heard}");
            }
            assert!(bytes > 0 && !station.is_up(A));
        }
    }

    #[test]
    fn a_peer_behind_losses_gets_a_session_all_the_same() {
        for (seed, end) in
            (0..100).flat_map(|seed| [(seed, end as fn(_, _, _) -> _), (seed, keyed)])
        {
            let mut draws = Stream::from_seed([seed; 32]);
            let mut ends: [Station; 2] = [end(A, B, 1), end(B, A, 2)];
            let mut books = [Some(20), None].map(|known| places([(B, known), (A, None)], true));
            let mut now = Time::ZERO;
            while !(ends[0].is_up(B) && ends[1].is_up(A)) {
                now += Duration::from_millis(1);
                assert!(now < Time::from_millis(10_000), "no session after 10 s, seed {seed}");
                for from in 0..2 {
                    for (_, frame) in sent(&mut ends[from], &mut books[from], now) {
                        let (to, at) = (1 - from, [10, 20][from]);
                        if draws.next_u32() % 100 >= 40 {
                            hear(&mut ends[to], &mut books[to], at, now, &frame);
                        }
                    }
                }
            }
        }
    }
}
