//! Addresses under torture: stations that move, and an attacker that copies frames.
//!
//! Each station has an address book, as a daemon over UDP has one. Ledgers here check it: no
//! address gets more bytes than came from it before it has shown that the peer is there; while a
//! peer has a proven address, frames with packets go nowhere else; and frames follow a peer only to
//! an address from which it has answered a challenge, when it did not answer at the previous one.

use std::collections::{BTreeMap, BTreeSet};

use corridor_base::Time;
use corridor_base::rand::Rng;
use corridor_proto::bounds::{MOVE_WAIT_MIN, PLACE_ALONE_AGE_MAX};
use corridor_proto::wire::{ChallengeToken, Header};
use corridor_proto::{
    Certainty, Challenge, Destination, FrameOutcome, Learned, PeerBook, StationId,
};
use serde::{Deserialize, Serialize};

use super::draw::Dice;
use super::invariants::{Broken, Invariant, ensure};
use super::subject::Fault;

/// Stands for an Internet address. Initially a station's address is its number in the scenario.
pub(super) type Address = u32;

/// The address of the attacker that copies frames.
pub(super) const THIEF: Address = 1_000_000;
/// The first address that stations move to.
const ELSEWHERE: Address = 1_000;

/// Stations with addresses, instead of one medium on which all hear each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Addresses {
    /// Whether only the stations that move know addresses in advance, those of their peers.
    pub learned: bool,
    /// Which stations move, and when. Of two stations that talk to each other only one moves: if
    /// both moved at once, neither could find the other.
    pub moves: Vec<Move>,
    /// Frames that the attacker copies and delivers first, from an address of its own, in
    /// millionths.
    pub copied_ppm: u32,
    /// Whether the attacker forwards what is sent to its address, staying invisible.
    pub relayed: bool,
}

/// A station's address changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The station.
    pub station: u8,
    /// When, milliseconds.
    pub at_ms: u32,
    /// Whether it returns to its initial address.
    pub back: bool,
}

impl Addresses {
    /// Draws addresses, which these stations may change.
    pub(super) fn draw(dice: &mut Dice, movers: &[u8], span_ms: u32) -> Self {
        let copied = dice.percent(40);
        let mut addresses = Addresses {
            learned: dice.percent(40),
            moves: Vec::new(),
            copied_ppm: if copied { dice.pick(&[10_000, 200_000, 1_000_000]) } else { 0 },
            relayed: copied && dice.percent(50),
        };
        for &station in movers {
            let times = if dice.percent(80) { 1 + dice.below(3) } else { 0 };
            for _ in 0..times {
                let at_ms = dice.below(span_ms.into()) as u32;
                addresses.moves.push(Move { station, at_ms, back: dice.percent(25) });
            }
        }
        addresses
    }

    /// Whether no address changes and no frame is copied.
    pub(super) fn stay(&self) -> bool {
        self.moves.is_empty() && self.copied_ppm == 0
    }

    /// Stations that move at some time.
    pub(super) fn movers(&self) -> BTreeSet<u8> {
        self.moves.iter().map(|it| it.station).collect()
    }
}

/// The addresses of all stations, and what each station knows of them.
pub(super) struct Internet<'a> {
    told: &'a Addresses,
    seed: u64,
    at: Vec<Address>,
    /// By station: the numbers of the stations that it talks to, and their indices.
    peers: Vec<Vec<(StationId, usize)>>,
    books: Vec<Whereabouts>,
    next: Address,
    dice: Dice,
    starts: u64,
}

impl<'a> Internet<'a> {
    pub(super) fn new(seed: u64, told: &'a Addresses, peers: Vec<Vec<(StationId, usize)>>) -> Self {
        let dice = Dice::new(seed, 1, "torture addresses");
        let nobody = || Whereabouts::new([], [0; 32], None);
        Internet {
            told,
            seed,
            at: (0..peers.len() as Address).collect(),
            books: peers.iter().map(|_| nobody()).collect(),
            peers,
            next: ELSEWHERE,
            dice,
            starts: 0,
        }
    }

    /// A station starts with its configured addresses. `frame_len_min`: its underlay pads frames to
    /// this length. Returns the peers that it calls.
    pub(super) fn start(
        &mut self,
        station: usize,
        frame_len_min: usize,
        fault: Option<Fault>,
    ) -> Vec<StationId> {
        let mut entropy = [0; 32];
        Dice::new(self.seed, self.starts, "torture challenges").0.fill_bytes(&mut entropy);
        self.starts += 1;
        let known: Vec<_> = self.peers[station].iter().map(|&it| self.told(it)).collect();
        let called = known.iter().filter(|(_, at)| at.is_some()).map(|&(id, _)| id).collect();
        let mut book = Whereabouts::new(known, entropy, fault);
        book.book = book.book.with_frame_len_min(frame_len_min);
        self.books[station] = book;
        called
    }

    /// The configured address of a peer, if there is one.
    fn told(&self, (id, peer): (StationId, usize)) -> (StationId, Option<Address>) {
        let moves = self.told.moves.iter().any(|it| usize::from(it.station) == peer);
        (id, (!(self.told.learned && moves)).then_some(peer as Address))
    }

    /// A station gains or loses a peer.
    pub(super) fn change_peer(&mut self, station: usize, peer: StationId, is_one: bool) {
        let known = self.peers[station].iter().find(|(id, _)| *id == peer);
        let Some((id, at)) = known.map(|&it| self.told(it)) else { return };
        let book = &mut self.books[station];
        if is_one { book.add(id, at) } else { book.remove(id) }
    }

    pub(super) fn move_station(&mut self, station: usize, back: bool) {
        self.next += 1;
        self.at[station] = if back { station as Address } else { self.next };
    }

    pub(super) fn address(&self, station: usize) -> Address {
        self.at[station]
    }

    /// The station that has an address now.
    pub(super) fn owner(&self, address: Address) -> Option<usize> {
        self.at.iter().position(|&at| at == address)
    }

    /// The station with a peer's number.
    pub(super) fn peer(&self, station: usize, id: StationId) -> Option<usize> {
        self.peers[station].iter().find(|(other, _)| *other == id).map(|&(_, peer)| peer)
    }

    /// Whether the attacker copies the next frame.
    pub(super) fn is_copied(&mut self) -> bool {
        self.dice.chance(self.told.copied_ppm)
    }

    /// The source address of a forged frame that pretends to be from this station.
    pub(super) fn forged_from(&mut self, station: usize) -> Address {
        if self.dice.percent(50) { self.at[station] } else { THIEF }
    }

    /// Whether the attacker forwards what is sent to its address.
    pub(super) fn relays(&self) -> bool {
        self.told.relayed
    }

    pub(super) fn book(&mut self, station: usize) -> &mut Whereabouts {
        &mut self.books[station]
    }
}

/// An address book, and the ledgers that check it.
pub(super) struct Whereabouts {
    book: PeerBook<Address>,
    known: BTreeMap<StationId, Known>,
    fault: Option<Fault>,
}

/// How certain it is, judged from outside, that a peer is at the address that its frames go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    None,
    /// A frame of its session came from there, which suffices while no other address is known.
    Perhaps,
    /// The address was configured, or the peer has answered a challenge there.
    Sure,
}

/// What is known of a peer.
struct Known {
    configured: Option<Address>,
    /// When a fresh frame last came from `home`.
    heard_at: Time,
    home: Option<Address>,
    proof: Proof,
    /// The last challenge sent to its current address.
    home_token: Option<ChallengeToken>,
    asked: BTreeMap<Address, Asked>,
    /// By unproven address: bytes that came from it, and bytes that went to it.
    purses: BTreeMap<Address, (usize, usize)>,
}

/// A challenge sent to an address, and when it was first answered, since the peer last answered at
/// its current address.
struct Asked {
    token: ChallengeToken,
    is_open: bool,
    answered_at: Option<Time>,
}

impl Whereabouts {
    fn new(
        told: impl IntoIterator<Item = (StationId, Option<Address>)>,
        entropy: [u8; 32],
        fault: Option<Fault>,
    ) -> Self {
        let mut whereabouts =
            Whereabouts { book: PeerBook::new([], true, entropy), known: BTreeMap::new(), fault };
        told.into_iter().for_each(|(id, at)| whereabouts.add(id, at));
        whereabouts
    }

    fn add(&mut self, id: StationId, at: Option<Address>) {
        self.book.add(id, at);
        let proof = if at.is_some() { Proof::Sure } else { Proof::None };
        let (asked, purses) = (BTreeMap::new(), BTreeMap::new());
        let known = Known {
            configured: at,
            heard_at: Time::ZERO,
            home: at,
            proof,
            home_token: None,
            asked,
            purses,
        };
        self.known.insert(id, known);
    }

    fn remove(&mut self, id: StationId) {
        self.book.remove(id);
        self.known.remove(&id);
    }

    /// When the next challenge is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.book.poll_timeout()
    }

    /// Where a frame goes, and for whom.
    pub(super) fn route(
        &mut self,
        now: Time,
        to: Destination,
        frame: &[u8],
    ) -> Result<Vec<(StationId, Address)>, Broken> {
        let len = if self.fault == Some(Fault::Floods) { 0 } else { frame.len() };
        let ids: Vec<StationId> = match to {
            Destination::All => self.known.keys().copied().collect(),
            Destination::Station(id) | Destination::Search(id) => vec![id],
        };
        let mut routes = Vec::new();
        for id in ids {
            match to {
                Destination::Station(_) => {
                    routes.extend(self.book.place(id, len).map(|at| (id, at)));
                }
                _ => routes.extend(self.book.places(now, id, len).map(|at| (id, at))),
            }
        }
        let is_data = matches!(to, Destination::Station(_)) && carries(frame);
        for &(id, at) in &routes {
            self.charge(now, (id, at), frame.len(), is_data)?;
        }
        let once: BTreeSet<_> = routes.iter().collect();
        ensure(once.len() == routes.len(), Invariant::Addresses, || {
            format!("a frame goes twice to one address: {routes:?}")
        })?;
        Ok(routes)
    }

    /// Counts a frame that goes to an address.
    fn charge(
        &mut self,
        now: Time,
        (id, at): (StationId, Address),
        len: usize,
        is_data: bool,
    ) -> Result<(), Broken> {
        let Some(known) = self.known.get_mut(&id) else { return Ok(()) };
        let is_home = known.home == Some(at);
        ensure(!is_data || is_home || known.proof != Proof::Sure, Invariant::Addresses, || {
            format!("packets for station {} go to {at}, it is at {:?}", id.0, known.home)
        })?;
        // A silent peer is also looked for where it is configured.
        let is_silent = now - known.heard_at >= PLACE_ALONE_AGE_MAX;
        if is_home && known.proof != Proof::None || is_silent && known.configured == Some(at) {
            return Ok(());
        }
        let (came, went) = known.purses.entry(at).or_default();
        *went += len;
        ensure(went <= came, Invariant::Addresses, || {
            format!("{went} bytes went to {at}, which has shown nothing, and {came} came from it")
        })
    }

    /// Records where a frame came from, and its outcome. Returns the peer whose frames go elsewhere
    /// from now on.
    pub(super) fn hear(
        &mut self,
        now: Time,
        at: Address,
        outcome: FrameOutcome,
        len: usize,
    ) -> Result<Option<StationId>, Broken> {
        let (id, certainty) = match outcome {
            FrameOutcome::Accepted { from } => (from, Certainty::Session),
            FrameOutcome::Handshake { from } => (from, Certainty::Handshake),
            FrameOutcome::Initiation { from } => (from, Certainty::Initiation),
            FrameOutcome::Answered { from, token } => (from, Certainty::Answer(token)),
            FrameOutcome::Noted | FrameOutcome::Rejected(_) => return Ok(None),
        };
        let Some(known) = self.known.get_mut(&id) else { return Ok(None) };
        let answered = known.note(now, at, certainty, len);
        let mut learned = self.book.learn(now, (id, at), certainty, len);
        if self.fault == Some(Fault::FollowsAtOnce) && certainty == Certainty::Session {
            learned = self.book.believe(id, at);
        }
        let home = self.book.address(id);
        let is_fresh = matches!(certainty, Certainty::Session | Certainty::Answer(_));
        if is_fresh && home == Some(at) {
            known.heard_at = now;
        }
        if home != known.home {
            known.check_move(now, answered).map_err(|(invariant, why)| {
                (invariant, format!("station {} is taken to be at {home:?}: {why}", id.0))
            })?;
            known.home = home;
        }
        if learned != Learned::Nothing && answered.is_some() {
            known.proof = Proof::Sure;
            (known.home_token, known.asked, known.purses) = Default::default();
        }
        Ok((learned != Learned::Nothing).then_some(id))
    }

    /// The next challenge that is due.
    pub(super) fn poll_challenge(
        &mut self,
        now: Time,
        is_up: impl Fn(StationId) -> bool,
    ) -> Option<Challenge<Address>> {
        self.book.poll_challenge(now, is_up)
    }

    /// Sends a challenge, in a frame of `len` bytes.
    pub(super) fn ask(
        &mut self,
        now: Time,
        asked: Challenge<Address>,
        len: usize,
    ) -> Result<(), Broken> {
        let Challenge { station, address, token } = asked;
        if let Some(known) = self.known.get_mut(&station) {
            if known.home == Some(address) {
                known.home_token = Some(token);
            }
            let fresh = || Asked { token, is_open: false, answered_at: None };
            let entry = known.asked.entry(address).or_insert_with(fresh);
            if entry.token != token {
                *entry = fresh();
            }
            entry.is_open = true;
        }
        self.charge(now, (station, address), len, false)
    }
}

impl Known {
    /// Records a frame of the peer. If it answers a challenge, returns when this address first
    /// answered.
    fn note(&mut self, now: Time, at: Address, certainty: Certainty, len: usize) -> Option<Time> {
        let is_home = self.home == Some(at);
        if !is_home || self.proof == Proof::None {
            self.purses.entry(at).or_default().0 += len;
        }
        if certainty == Certainty::Session && is_home {
            self.proof = self.proof.max(Proof::Perhaps);
        }
        let Certainty::Answer(token) = certainty else { return None };
        if is_home && self.proof == Proof::Sure && self.home_token == Some(token) {
            for it in self.asked.values_mut() {
                (it.is_open, it.answered_at) = (false, None);
            }
            return None;
        }
        let asked = self.asked.get_mut(&at).filter(|it| it.token == token && it.is_open)?;
        Some(*asked.answered_at.get_or_insert(now))
    }

    /// Checks that frames for the peer may go to another address from now on.
    fn check_move(&self, now: Time, answered: Option<Time>) -> Result<(), Broken> {
        let because = |why: &str| (Invariant::Addresses, why.to_owned());
        match (self.home, answered, self.proof) {
            (None, _, _) => Ok(()),
            (_, None, _) => Err(because("it has not answered what it was asked there")),
            (_, Some(at), Proof::Sure) if now - at < MOVE_WAIT_MIN => {
                Err(because("it may still answer from where it was"))
            }
            (_, Some(_), _) => Ok(()),
        }
    }
}

/// Whether a frame may carry packets or feedback about them: except for HELLOs, its content is
/// sealed.
fn carries(frame: &[u8]) -> bool {
    Header::parse(frame).is_some_and(|header| !header.is_hello)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const PEER: StationId = StationId(2);
    const HOME: Address = 1;

    fn whereabouts(fault: Option<Fault>) -> Whereabouts {
        Whereabouts::new([(PEER, Some(HOME))], [7; 32], fault)
    }

    fn broken(result: Result<impl Sized, Broken>) -> bool {
        matches!(result, Err((Invariant::Addresses, _)))
    }

    #[test]
    fn who_follows_at_once_is_caught() {
        for (fault, caught) in [(None, false), (Some(Fault::FollowsAtOnce), true)] {
            let mut whereabouts = whereabouts(fault);
            let outcome = FrameOutcome::Accepted { from: PEER };
            assert_eq!(broken(whereabouts.hear(Time::ZERO, THIEF, outcome, 100)), caught);
        }
    }

    #[test]
    fn who_floods_an_address_is_caught() {
        for (fault, caught) in [(None, false), (Some(Fault::Floods), true)] {
            let mut whereabouts = whereabouts(fault);
            let outcome = FrameOutcome::Handshake { from: PEER };
            whereabouts.hear(Time::ZERO, THIEF, outcome, 100).expect("it is only heard");
            let mut results =
                (0..3).map(|_| whereabouts.route(Time::ZERO, Destination::All, &[0; 60]));
            assert_eq!(results.any(broken), caught);
        }
    }

    #[test]
    fn an_answer_moves_frames_when_none_came_from_home() {
        let mut whereabouts = whereabouts(None);
        let mut now = Time::ZERO;
        let mut followed = None;
        for _ in 0..40 {
            now += Duration::from_millis(10);
            let heard = FrameOutcome::Accepted { from: PEER };
            whereabouts.hear(now, THIEF, heard, 200).expect("it is only asked");
            while let Some(asked) = whereabouts.poll_challenge(now, |_| true) {
                whereabouts.ask(now, asked, 60).expect("as many bytes came");
                if asked.address == THIEF {
                    let answer = FrameOutcome::Answered { from: PEER, token: asked.token };
                    let moved = whereabouts.hear(now, THIEF, answer, 60).expect("it may move");
                    followed = followed.or(moved.map(|_| now));
                }
            }
        }
        let followed = followed.expect("it has moved");
        assert!(followed - Time::ZERO >= MOVE_WAIT_MIN, "{followed}");
    }
}
