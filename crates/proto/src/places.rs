//! The addresses of peers, configured or learned from what they send. Addresses are those of the
//! driver, of any kind.
//!
//! A peer may send from another address at any time. That alone changes nothing: an attacker that
//! copies a frame in transit and delivers it first, from its own address, would receive what is
//! meant for the peer. So the new address is challenged, with eight random bytes that are sent
//! there only, and so is the old one. Frames keep going to the old address until the peer has
//! answered the new address's challenge from there, and as long as it still answers from the old
//! one: an attacker that also copies answers cannot move a peer (RFC 9000, Sections 8.2 and 9.3.3).
//! And until it has answered, no address is sent more bytes than came from it, so that nobody can
//! be flooded in another's name.
//!
//! A peer that is silent is also looked for at its configured address. It may have returned there;
//! or it never left, and an attacker that forwarded challenges and answers, but nothing since, is
//! taken for it. If the other end has moved meanwhile, neither finds the other in another way.

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

/// The addresses of peers.
pub struct PeerBook<A> {
    peers: Vec<Peer<A>>,
    may_move: bool,
    /// Minimum frame length of the underlay, in bytes; shorter frames are padded.
    frame_len_min: usize,
    /// Other stations hear what is sent to one address, so a station that answers a HELLO need not
    /// be where it was sent.
    is_overheard: bool,
    rng: Stream,
}

struct Peer<A> {
    id: StationId,
    configured: Option<A>,
    place: Option<Place<A>>,
    /// Where its newest handshake came from, if not from `place`: it may have moved and restarted.
    candidate: Option<Place<A>>,
    /// Addresses from which it has sent since then, and which have not been confirmed.
    challenged: ArrayVec<Challenged<A>, CHALLENGED_ADDRESSES_MAX>,
    /// Challenges to its present address meanwhile: the token, since when it has not answered, and
    /// when the next one is due.
    home_token: ChallengeToken,
    home_since: Time,
    home_due: Time,
    /// After an answer from the present address: how long no other address is challenged, and until
    /// when.
    pause: Duration,
    pause_until: Time,
    /// Whether its address is fixed: configured, on an underlay where stations do not move.
    fixed: bool,
    certain: bool,
    /// When a frame of its session last came from its present address.
    heard_there_at: Time,
}

/// An address, and how much may be sent there.
#[derive(Clone, Copy)]
struct Place<A> {
    address: A,
    /// Bytes that may still be sent there until a peer proves to be there; `None`: it has, or the
    /// address is configured.
    allowance: Option<usize>,
}

/// An address that is being challenged.
#[derive(Clone, Copy)]
struct Challenged<A> {
    place: Place<A>,
    token: ChallengeToken,
    heard_at: Time,
    due: Time,
    /// When it was first challenged, and when it first answered, since the peer last answered from
    /// its present address.
    asked_at: Option<Time>,
    answered_at: Option<Time>,
}

/// How certain it is that a frame's sender is at the address that it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It has repeated this token, which may have been sent there.
    Answer(ChallengeToken),
    /// It was opened under an accepted session.
    Session,
    /// It may be a replay from another address.
    Handshake,
    /// The same for the first message of a key exchange, whose answer is shorter.
    Initiation,
}

/// What was learned from a frame's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The station's frames go where they went before.
    Nothing,
    /// They go there from now on; no earlier address was known.
    Found,
    /// They go there from now on, and went to another address before.
    Moved,
}

/// A challenge to be sent, and its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge<A> {
    /// The peer that has sent from there.
    pub station: StationId,
    /// The address to challenge.
    pub address: A,
    /// The token that the peer has to repeat.
    pub token: ChallengeToken,
}

impl<A: Copy> Place<A> {
    /// An address to which frames may be sent without limit.
    fn known(address: A) -> Self {
        Place { address, allowance: None }
    }

    /// An address from which something came, which proves nothing: it may have been a replay, with
    /// the address of somebody who is to be flooded.
    fn unproven(address: A, allowance: usize) -> Self {
        Place { address, allowance: Some(allowance) }
    }

    /// A frame of this many bytes came from there, which allows for as many in return.
    fn credit(&mut self, bytes: usize) {
        if let Some(allowance) = &mut self.allowance {
            *allowance = allowance.saturating_add(bytes);
        }
    }

    /// Whether a frame may be sent there; if so, counts it as sent.
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
            configured: address,
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

    /// The present address, the possible ones, as far as a frame of `len_bytes` may be sent there,
    /// and the configured one of a silent peer. For an address that is being challenged, this
    /// reserves `kept` bytes for challenges: for a peer with nothing to send, these are all that
    /// may be sent there for seconds.
    fn places(&mut self, now: Time, len_bytes: usize, kept: usize) -> impl Iterator<Item = A> {
        let is_silent = now - self.heard_there_at >= PLACE_ALONE_AGE_MAX;
        let Peer { configured, place, candidate, challenged, .. } = self;
        let is_elsewhere = |at: &A| place.is_none_or(|place| place.address != *at);
        let configured = configured.filter(|at| is_silent && is_elsewhere(at));
        let asked = |it: &Challenged<A>| it.asked_at.map(|_| it.place.address);
        let asked: ArrayVec<A, CHALLENGED_ADDRESSES_MAX> =
            challenged.iter().filter_map(asked).collect();
        let known = [&*place, &*candidate].map(|it| it.as_ref().map(|it| it.address));
        let others = challenged.iter_mut().map(|it| &mut it.place);
        let others = others.filter(move |it| !known.contains(&Some(it.address)));
        // Nothing limits what goes to the configured address.
        let others = candidate.iter_mut().chain(others);
        let others = others.filter(move |it| Some(it.address) != configured);
        let others = others.filter(move |it| {
            !asked.contains(&it.address) || it.allowance.is_none_or(|it| it >= len_bytes + kept)
        });
        let places = place.iter_mut().chain(others);
        let known =
            places.filter_map(move |place| place.charge(len_bytes).then_some(place.address));
        known.chain(configured)
    }

    /// It is there from now on, and nowhere else.
    fn settle(&mut self, address: A) -> Learned {
        let was_certain = core::mem::replace(&mut self.certain, true);
        (self.candidate, self.place) = (None, Some(Place::known(address)));
        self.challenged.clear();
        if was_certain { Learned::Moved } else { Learned::Found }
    }

    /// A fresh frame from it came from there: challenges that address.
    fn challenge(&mut self, now: Time, address: A, len_bytes: usize, rng: &mut Stream) {
        // Each byte counts once, however often the address is recorded.
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

    /// It has answered from its present address, so what others have answered so far is ignored.
    /// They are challenged again after a pause, which grows each time: an attacker that copies
    /// frames, answers included, cannot keep both ends busy.
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

    /// It has answered from a challenged address. Returns whether it is there: yes, if no other
    /// address is known; otherwise only if it has not answered from its present address for as long
    /// as this answer took, and for [`MOVE_WAIT_MIN`].
    fn note_answer(&mut self, now: Time, address: A, token: ChallengeToken) -> bool {
        let answers = |it: &&mut Challenged<A>| it.place.address == address && it.token == token;
        let Some(it) = self.challenged.iter_mut().find(answers) else { return false };
        let Some(asked_at) = it.asked_at else { return false };
        if it.answered_at.is_none() {
            // From now on it matters whether it answers from its present address.
            (self.home_since, self.home_due) = (now, self.home_due.min(now));
        }
        let answered_at = *it.answered_at.get_or_insert(now);
        let wait = (answered_at - asked_at).max(MOVE_WAIT_MIN);
        // Its answers before say nothing more, and use up what may be sent there.
        it.due = it.due.max(answered_at + wait);
        !self.is_proven() || now - answered_at >= wait
    }

    /// The standing of an address; `is_overheard`: others hear what is sent to one address.
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

    /// Records a frame that came from an address: see [`PeerBook::learn`].
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
                // It may be challenged again with as many bytes.
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

    /// Whether its address is proven or configured.
    fn is_proven(&self) -> bool {
        self.place.is_some_and(|place| place.allowance.is_none())
    }

    /// The next challenge that is due, as far as a frame of `len_bytes` may be sent there. None
    /// unless the peer `is_up`, because there would be no session to seal it under.
    fn poll_challenge(&mut self, now: Time, is_up: bool, len_bytes: usize) -> Option<Challenge<A>> {
        self.challenged.retain(|it| now - it.heard_at < CHALLENGE_AGE_MAX);
        if self.home_due().is_some_and(|due| due <= now) {
            // As often as needed until it counts as silent there, and then less and less often.
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

    /// Whether an address was challenged since it last answered from its present address.
    fn is_asking(&self) -> bool {
        self.challenged.iter().any(|it| it.asked_at.is_some())
    }

    /// When its present address is challenged next; `None` unless another address is challenged.
    fn home_due(&self) -> Option<Time> {
        (self.is_proven() && self.is_asking()).then_some(self.home_due)
    }
}

impl<A: Copy + PartialEq> PeerBook<A> {
    /// The peers with their configured addresses. If they may move (UDP), a configured address is
    /// only where to find them first. `entropy` is 32 bytes of fresh randomness for challenges.
    pub fn new(
        configured: impl IntoIterator<Item = (StationId, Option<A>)>,
        may_move: bool,
        entropy: [u8; 32],
    ) -> Self {
        let peer = |(id, address)| Peer::configured(id, address, may_move);
        let peers = configured.into_iter().map(peer).collect();
        // Where stations do not move they share a wire or a channel.
        let is_overheard = !may_move;
        let rng = Stream::from_seed(entropy);
        PeerBook { peers, may_move, frame_len_min: 0, is_overheard, rng }
    }

    /// For an underlay that pads frames to this many bytes.
    #[must_use]
    pub fn with_frame_len_min(self, frame_len_min: usize) -> Self {
        PeerBook { frame_len_min, ..self }
    }

    /// Adds a peer.
    pub fn add(&mut self, station: StationId, address: Option<A>) {
        self.peers.push(Peer::configured(station, address, self.may_move));
    }

    /// Removes a peer.
    pub fn remove(&mut self, station: StationId) {
        self.peers.retain(|peer| peer.id != station);
    }

    /// Changes a station's configured address; without one it keeps its last address.
    pub fn configure(&mut self, station: StationId, address: Option<A>) {
        let may_move = self.may_move;
        let Some(peer) = self.peer(station) else { return };
        (peer.configured, peer.fixed) = (address, address.is_some() && !may_move);
        if let Some(address) = address {
            peer.settle(address);
        }
    }

    /// The network to the peers has changed, and may lead elsewhere: learned addresses are
    /// forgotten, and configured ones hold.
    pub fn forget_learned(&mut self) {
        for peer in self.peers.iter_mut().filter(|peer| !peer.fixed) {
            *peer = Peer::configured(peer.id, None, self.may_move);
        }
    }

    /// The present address of a station.
    pub fn address(&self, station: StationId) -> Option<A> {
        let peer = self.peers.iter().find(|peer| peer.id == station)?;
        peer.place.map(|place| place.address)
    }

    /// The address of a station to which a message may be sent alone: it is configured, or it is
    /// proven and frames of its session came from there recently. An address that only appeared
    /// once, perhaps in a replay, is not sufficient.
    pub fn address_alone(&self, now: Time, station: StationId) -> Option<A> {
        let peer = self.peers.iter().find(|peer| peer.id == station)?;
        let is_live = peer.is_proven() && now - peer.heard_there_at < PLACE_ALONE_AGE_MAX;
        peer.place.filter(|_| peer.fixed || is_live).map(|place| place.address)
    }

    /// The station whose present address this is.
    pub fn station(&self, address: A) -> Option<StationId> {
        let is_there = |peer: &&Peer<A>| peer.place.is_some_and(|place| place.address == address);
        self.peers.iter().find(is_there).map(|peer| peer.id)
    }

    /// The station that has proved to be at an address, or is configured there; a handshake, which
    /// may be a replay, is not sufficient.
    pub fn proven_station(&self, address: A) -> Option<StationId> {
        let is_there = |peer: &&Peer<A>| peer.place.is_some_and(|place| place.address == address);
        self.peers.iter().filter(|peer| peer.is_proven()).find(is_there).map(|peer| peer.id)
    }

    /// All addresses for a frame of `len_bytes` to everybody, in the order of the configuration:
    /// the present addresses of peers, those of their newest handshakes, and the configured ones
    /// of peers that are silent. An unproven address
    /// gets no more bytes than came from it (RFC 9000, Section 8.1, allows three times as many).
    pub fn addresses(&mut self, now: Time, len_bytes: usize) -> impl Iterator<Item = A> {
        let kept = self.kept_bytes();
        self.peers.iter_mut().flat_map(move |peer| peer.places(now, len_bytes, kept))
    }

    /// The same for a frame to one station.
    pub fn places(
        &mut self,
        now: Time,
        station: StationId,
        len_bytes: usize,
    ) -> impl Iterator<Item = A> {
        let kept = self.kept_bytes();
        self.peer(station).into_iter().flat_map(move |peer| peer.places(now, len_bytes, kept))
    }

    /// The address for a frame of `len_bytes` to one station alone: its present address if that is
    /// proven, or as long as no more is sent there than came from there.
    pub fn place(&mut self, station: StationId, len_bytes: usize) -> Option<A> {
        let place = self.peer(station)?.place.as_mut()?;
        place.charge(len_bytes).then_some(place.address)
    }

    /// Whether a handshake of a station came from another address than its present one.
    pub fn may_be_elsewhere(&self, station: StationId) -> bool {
        self.peers.iter().any(|peer| peer.id == station && peer.candidate.is_some())
    }

    /// Name resolution yields this address for a station: if none is known it is adopted; otherwise
    /// the peer is also looked for there. Returns whether this is news.
    pub fn suggest(&mut self, station: StationId, address: A) -> bool {
        let Some(peer) = self.peer(station) else { return false };
        let is_there = |place: &Place<A>| place.address == address;
        let known = peer.place.as_ref().is_some_and(is_there)
            || peer.candidate.as_ref().is_some_and(is_there);
        match peer.place {
            // It comes from the configured name, not from a stranger.
            None => peer.place = Some(Place::known(address)),
            Some(place) if place.address == address => {}
            // A stranger's frame may have named it before, which limits what may be sent there.
            Some(_) => peer.candidate = Some(Place::known(address)),
        }
        !known
    }

    /// Records where a frame of a station came from, and its length.
    ///
    /// A handshake proves nothing about an address: it is adopted if none is known, and otherwise
    /// handshakes are answered there too. A fresh frame of the session proves the address if no
    /// other address was told of the session and nobody else can hear what is sent there, so that
    /// only a receiver there can have answered. Any other address is challenged
    /// ([`poll_challenge`](Self::poll_challenge)). Only an answer from there moves the peer, if
    /// none comes from its present address.
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

    /// A station is at the address that it has sent from, although it cannot be challenged there.
    pub fn believe(&mut self, station: StationId, address: A) -> Learned {
        let is_there = |peer: &Peer<A>| {
            peer.is_proven() && peer.place.is_some_and(|place| place.address == address)
        };
        match self.peer(station).filter(|peer| !peer.fixed && !is_there(peer)) {
            Some(peer) => peer.settle(address),
            None => Learned::Nothing,
        }
    }

    /// The next challenge to be sent, to a peer that `is_up`. Repeated every [`CHALLENGE_INTERVAL`]
    /// while frames of the peer come from there, as far as the bytes received from there allow.
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

    /// When the next challenge is due.
    pub fn poll_timeout(&self) -> Option<Time> {
        let dues = |peer: &Peer<A>| {
            let challenged = peer.challenged.iter().map(|it| it.due).min();
            [challenged, peer.home_due()].into_iter().flatten().min()
        };
        self.peers.iter().filter_map(dues).min()
    }

    /// Bytes of a frame with a challenge.
    fn challenge_len(&self) -> usize {
        self.frame_len_min.max(PATH_CHALLENGE_LEN)
    }

    /// Bytes reserved for challenges.
    fn kept_bytes(&self) -> usize {
        CHALLENGES_KEPT * self.challenge_len()
    }

    fn peer(&mut self, station: StationId) -> Option<&mut Peer<A>> {
        self.peers.iter_mut().find(|peer| peer.id == station)
    }
}

#[cfg(test)]
mod tests;
