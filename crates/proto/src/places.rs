//! Where peers are: told by the configuration, or learned from what they send. Addresses are the
//! driver's, of whatever kind.
//!
//! A peer may speak from somewhere else at any time. That alone moves nothing: who copies a frame
//! on its way and delivers it first, from an address of their own, would have what is meant for the
//! peer. So the new address is challenged, by eight random bytes that go there and nowhere else,
//! and so is the old one. Frames go on to the old one until the peer has repeated what the new one
//! was told, from there, and for as long as it answers from the old one as well: who copies answers
//! too has not got the peer away from where it was (RFC 9000, Sections 8.2 and 9.3.3). And no
//! address gets more bytes than came from it before it has answered, so that nobody is flooded in
//! another's name.

mod standing;

use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};

use crate::bounds::{
    CHALLENGE_AGE_MAX, CHALLENGE_INTERVAL, CHALLENGE_PAUSE_MAX, CHALLENGED_ADDRESSES_MAX,
    CHALLENGES_KEPT, MOVE_WAIT_MIN, PLACE_ALONE_AGE_MAX,
};
use crate::config::StationId;
use crate::wire::{ChallengeToken, PATH_CHALLENGE_LEN};
use standing::{Act, Standing};

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
    /// What it is asked meanwhile where it is taken to be, since when it has not answered, and when
    /// next.
    home_token: ChallengeToken,
    home_since: Time,
    home_due: Time,
    /// It has answered from there last: how long no other address is asked then, and until when.
    pause: Duration,
    pause_until: Time,
    /// Whether it may change: told by the configuration of an underlay where stations stay.
    fixed: bool,
    certain: bool,
    /// When a frame of its session came last from where it is taken to be.
    heard_there_at: Time,
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
            home_since: Time::ZERO,
            home_due: Time::ZERO,
            pause: Duration::ZERO,
            pause_until: Time::ZERO,
            fixed: address.is_some() && !may_move,
            certain: address.is_some(),
            heard_there_at: Time::ZERO,
        }
    }

    /// Where it is and where it may be, as far as a frame of so many bytes may go there. Where it
    /// is being asked for, that is not to keep challenges back, for which `kept` bytes are left: of
    /// a peer that has nothing to send they are all that may go there for seconds.
    fn places(&mut self, len_bytes: usize, kept: usize) -> impl Iterator<Item = A> {
        let Peer { place, candidate, challenged, .. } = self;
        let asked = |it: &Challenged<A>| it.asked_at.map(|_| it.place.address);
        let asked: ArrayVec<A, CHALLENGED_ADDRESSES_MAX> =
            challenged.iter().filter_map(asked).collect();
        let known = [&*place, &*candidate].map(|it| it.as_ref().map(|it| it.address));
        let others = challenged.iter_mut().map(|it| &mut it.place);
        let others = others.filter(move |it| !known.contains(&Some(it.address)));
        let others = candidate.iter_mut().chain(others).filter(move |it| {
            !asked.contains(&it.address) || it.allowance.is_none_or(|it| it >= len_bytes + kept)
        });
        let places = place.iter_mut().chain(others);
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
        let due = self.pause_until.max(now);
        let asked = Challenged { place, token, heard_at: now, due, asked_at, answered_at };
        self.challenged.push(asked);
    }

    /// It has answered from where it is taken to be: what others have answered so far is no reason
    /// to look for it there. They are asked again after a pause, a longer one each time: who copies
    /// frames, answers among them, does not keep both ends busy.
    fn note_at_home(&mut self, now: Time, token: ChallengeToken) {
        if token != self.home_token || !self.is_asking() {
            return;
        }
        let is_again = now < self.pause_until + CHALLENGE_AGE_MAX;
        let longer = if is_again { 2 * self.pause } else { Duration::ZERO };
        self.pause = longer.clamp(CHALLENGE_INTERVAL, CHALLENGE_PAUSE_MAX);
        self.pause_until = now + self.pause;
        for it in &mut self.challenged {
            (it.asked_at, it.answered_at) = (None, None);
            it.due = self.pause_until;
        }
    }

    /// It has answered from an address that was asked. Whether it is to be taken to be there: at
    /// once where nobody knows better, and else if it has not answered from where it was for as
    /// long as this answer took, and for [`MOVE_WAIT_MIN`].
    fn note_answer(&mut self, now: Time, address: A, token: ChallengeToken) -> bool {
        let answers = |it: &&mut Challenged<A>| it.place.address == address && it.token == token;
        let Some(it) = self.challenged.iter_mut().find(answers) else { return false };
        let Some(asked_at) = it.asked_at else { return false };
        if it.answered_at.is_none() {
            // From here on it matters whether it answers from where it was.
            (self.home_since, self.home_due) = (now, self.home_due.min(now));
        }
        let answered_at = *it.answered_at.get_or_insert(now);
        let wait = (answered_at - asked_at).max(MOVE_WAIT_MIN);
        // What it answers before says nothing more, and costs what may go there.
        it.due = it.due.max(answered_at + wait);
        !self.is_proven() || now - answered_at >= wait
    }

    /// What an address is to it; `is_overheard`: others hear what goes to one address.
    fn standing(&self, address: A, is_overheard: bool) -> Standing {
        let is_alone = self.candidate.is_none() && self.challenged.is_empty() && !is_overheard;
        match &self.place {
            Some(place) if place.address == address && place.allowance.is_none() => {
                Standing::Proven
            }
            Some(place) if place.address == address && is_alone => Standing::Alone,
            Some(place) if place.address == address => Standing::Contested,
            _ if self.fixed => Standing::Barred,
            Some(_) => Standing::Elsewhere,
            None => Standing::Unknown,
        }
    }

    /// Notes a frame that came from an address: see [`PeerBook::learn`].
    fn learn(
        &mut self,
        now: Time,
        address: A,
        (certainty, len_bytes): (Certainty, usize),
        is_overheard: bool,
        rng: &mut Stream,
    ) -> Learned {
        match self.standing(address, is_overheard).on(certainty) {
            Act::Nothing => {}
            Act::NoteHome(token) => self.note_at_home(now, token),
            Act::Prove => {
                self.place = Some(Place::known(address));
                self.certain = true;
            }
            Act::Weigh(token) => {
                if self.note_answer(now, address, token) {
                    return self.settle(address);
                }
                // It may be asked again for as many bytes.
                if self.challenged.iter().any(|it| it.place.address == address) {
                    self.challenge(now, address, len_bytes, rng);
                }
            }
            Act::Ask => {
                let _ = self.place.get_or_insert(Place::unproven(address, 0));
                self.challenge(now, address, len_bytes, rng);
            }
            Act::Credit => self.place.iter_mut().for_each(|place| place.credit(len_bytes)),
            Act::Find => {
                self.place = Some(Place::unproven(address, len_bytes));
                return Learned::Found;
            }
            Act::LookThere => match &mut self.candidate {
                Some(candidate) if candidate.address == address => candidate.credit(len_bytes),
                candidate => *candidate = Some(Place::unproven(address, len_bytes)),
            },
        }
        Learned::Nothing
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
            // As often as has to be until it counts as silent there, and more and more rarely then.
            let silent = now - self.home_since;
            self.home_due = now + if silent < MOVE_WAIT_MIN { CHALLENGE_INTERVAL } else { silent };
            if let Some(home) = self.place.filter(|_| is_up) {
                let token = self.home_token;
                return Some(Challenge { station: self.id, address: home.address, token });
            }
        }
        let is_asking = self.is_asking();
        let Peer { place, candidate, challenged, .. } = self;
        for it in challenged.iter_mut().filter(|it| it.due <= now) {
            it.due = now + CHALLENGE_INTERVAL;
            let address = it.place.address;
            let known = [&mut *place, &mut *candidate].into_iter().flatten();
            let mut purses = known.filter(|place| place.address == address).chain([&mut it.place]);
            if is_up && purses.any(|place| place.charge(len_bytes)) {
                it.asked_at.get_or_insert(now);
                if !is_asking {
                    (self.home_since, self.home_due) = (now, now);
                }
                return Some(Challenge { station: self.id, address, token: it.token });
            }
        }
        None
    }

    /// Whether an address has been asked since it last answered from where it is taken to be.
    fn is_asking(&self) -> bool {
        self.challenged.iter().any(|it| it.asked_at.is_some())
    }

    /// When it is asked next whether it still is where it was; none if nobody else is asked.
    fn home_due(&self) -> Option<Time> {
        (self.is_proven() && self.is_asking()).then_some(self.home_due)
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

    /// What led to the peers has gone, and what comes in its place may lead elsewhere: addresses
    /// that were learned are forgotten, and those of the configuration hold.
    pub fn forget_learned(&mut self) {
        for peer in self.peers.iter_mut().filter(|peer| !peer.fixed) {
            *peer = Peer::configured(peer.id, None, self.may_move);
        }
    }

    /// Where a station is taken to be.
    pub fn address(&self, station: StationId) -> Option<A> {
        let peer = self.peers.iter().find(|peer| peer.id == station)?;
        peer.place.map(|place| place.address)
    }

    /// Where a station is, if nobody else needs to hear what it is told: the configuration says so,
    /// or it has shown it, and frames of its session have come from there of late. What has only
    /// come from an address once, and may be a recording, is no reason to speak there alone.
    pub fn address_alone(&self, now: Time, station: StationId) -> Option<A> {
        let peer = self.peers.iter().find(|peer| peer.id == station)?;
        let is_live = peer.is_proven() && now - peer.heard_there_at < PLACE_ALONE_AGE_MAX;
        peer.place.filter(|_| peer.fixed || is_live).map(|place| place.address)
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
        let kept = self.kept_bytes();
        self.peers.iter_mut().flat_map(move |peer| peer.places(len_bytes, kept))
    }

    /// The same of a frame for one station: where it is, and where it may be.
    pub fn places(&mut self, station: StationId, len_bytes: usize) -> impl Iterator<Item = A> {
        let kept = self.kept_bytes();
        self.peer(station).into_iter().flat_map(move |peer| peer.places(len_bytes, kept))
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
        let learned = peer.learn(now, address, (certainty, len_bytes), *is_overheard, rng);
        let is_fresh = matches!(certainty, Certainty::Session | Certainty::Answer(_));
        if is_fresh && peer.place.is_some_and(|place| place.address == address) {
            peer.heard_there_at = now;
        }
        learned
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
        let len_bytes = self.challenge_len();
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

    /// Length of a frame with a challenge, bytes.
    fn challenge_len(&self) -> usize {
        self.frame_len_min.max(PATH_CHALLENGE_LEN)
    }

    /// Bytes that are left for challenges.
    fn kept_bytes(&self) -> usize {
        CHALLENGES_KEPT * self.challenge_len()
    }

    fn peer(&mut self, station: StationId) -> Option<&mut Peer<A>> {
        self.peers.iter_mut().find(|peer| peer.id == station)
    }
}

#[cfg(test)]
mod tests;
