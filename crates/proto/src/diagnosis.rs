//! Why nothing crosses: what is known of a peer that cannot be spoken with, and what it most likely
//! means.
//!
//! A driver tells a [`Watch`] what it sees of the network: frames that were rejected, by the
//! address they came from, and frames of its own that were refused. From this and from what the
//! station knows of its peers, the watch makes one line for each peer that has been out of reach
//! for [`PATIENCE`], and again every [`REPEAT`], each about what was seen since the line before.
//!
//! Addresses are the driver's: anything that can be compared and shown. Nothing that strangers send
//! makes the watch grow, or say more.

use core::fmt::{self, Display, Formatter};
use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::config::{Crossing, StationId};
use crate::inspect::PeerView;
use crate::keys::PublicKey;
use crate::wire::VERSION;

/// How long a peer may be out of reach before anything is said.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long until it is said again.
pub const REPEAT: Duration = Duration::from_secs(60);
/// Least time between two lines about a peer that comes and goes.
pub const REST: Duration = Duration::from_secs(20);
/// Addresses and what came from them, and refusals, that are kept in mind.
pub const SIGHTS_MAX: usize = 16;
/// Share of this station's frames that must have been refused to be what is wrong, one part in so
/// many: single ones are, of which nothing follows.
const REFUSED_PARTS: u64 = 2;

/// What a frame shows that was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// A HELLO under this station's key, of a station that is no configured peer: another one, or
    /// one with this station's own number.
    Stranger {
        /// The number that it gives itself.
        id: StationId,
    },
    /// A frame that this station sent itself.
    Own,
    /// Long enough for a frame, of another wire version.
    Version(u8),
    /// A HELLO under another key.
    OtherKey {
        /// The station that it names as its sender, in clear.
        names: StationId,
    },
    /// A HELLO under a secret that this station, which has keys of its own, has not agreed on.
    OtherSecret {
        /// The station that it names as its sender, in clear.
        names: StationId,
    },
    /// A message of a key exchange, and this station has a shared secret.
    HasKeys {
        /// The station that it names as its sender, in clear.
        names: StationId,
    },
    /// A message of a key exchange with a station of another public key than this one's.
    NotOurPublicKey {
        /// The station that it names as its sender, in clear.
        names: StationId,
    },
    /// A message of a key exchange by a station of another public key than the peer's.
    OtherPublicKey {
        /// The station that it names as its sender.
        names: StationId,
        /// Its key, to which it has the private one.
        public: PublicKey,
    },
    /// A response to this station's own initiation, made with another secret beside the keys.
    OtherPsk {
        /// The station that it names as its sender.
        names: StationId,
    },
    /// An answer to this station's own initiation, of the kind that does not belong to its role: a
    /// helper or a relay is told otherwise than one end tells the other.
    OtherStep {
        /// The station that it names as its sender.
        names: StationId,
    },
    /// A frame of this wire version, under a session or key that is not known here.
    Sealed,
    /// No frame of Corridor.
    Foreign,
}

/// Why frames of this station did not go, or came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no route to the address.
    NoRoute,
    /// Longer than the interface or the path takes.
    TooLong,
    /// A rule of this host forbids it.
    Forbidden,
    /// The interface is down, or gone.
    InterfaceDown,
    /// The network says that no host answers there.
    NoHost,
    /// The host there says that nothing listens on that port.
    NoListener,
    /// Something else, in the system's words.
    Other(&'static str),
}

impl Refusal {
    /// Whether this host itself refused the frame, rather than the network.
    fn is_local(self) -> bool {
        !matches!(self, Refusal::NoHost | Refusal::NoListener)
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NoRoute => "no route to host",
            Refusal::TooLong => "frames exceed the interface MTU; lower underlay.mtu",
            Refusal::Forbidden => "blocked by a local firewall",
            Refusal::InterfaceDown => "the interface is down",
            Refusal::NoHost => "host unreachable",
            Refusal::NoListener => "port unreachable, no process listens on it",
            Refusal::Other(why) => why,
        })
    }
}

/// What is most likely wrong. The causes are in the order in which they are believed: first what
/// only a holder of the key can say, then what this host knows itself, then what anybody could have
/// sent, and in the end that nothing came at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause<A> {
    /// Sessions are up, but packets cross otherwise there than here.
    ModesDiffer {
        /// How they cross there.
        theirs: Crossing,
        /// And here.
        ours: Crossing,
    },
    /// This host refuses frames to the peer.
    Refused {
        /// Where they were to go.
        to: Option<A>,
        /// Why.
        why: Refusal,
        /// How many.
        frames: u64,
        /// Of so many.
        sent: u64,
    },
    /// The peer has this station's number.
    SameId {
        /// Where it is.
        at: A,
        /// HELLOs that say so.
        frames: u64,
    },
    /// A station is there that has the key, and another number than the peer's.
    OtherId {
        /// Where it is.
        at: A,
        /// The number that it gives itself.
        id: StationId,
        /// HELLOs that say so.
        frames: u64,
    },
    /// The peer is heard, and does not hear this station.
    OneWay {
        /// Where it is.
        at: Option<A>,
        /// HELLOs heard from it.
        hellos: u64,
        /// What the network says of frames to it.
        refusal: Option<Refusal>,
    },
    /// Both hear each other, but too little of it arrives to agree on a session.
    Unfinished {
        /// HELLOs heard from it.
        hellos: u64,
    },
    /// What this station sends comes back.
    Loop {
        /// From there.
        at: A,
        /// How many frames.
        frames: u64,
    },
    /// The peer speaks another wire version.
    OtherVersion {
        /// Where it is.
        at: A,
        /// The version.
        version: u8,
        /// Frames of it.
        frames: u64,
    },
    /// The peer has another key.
    OtherKey {
        /// Where its frames come from.
        at: A,
        /// Where the peer was taken to be, if that is elsewhere.
        expected: Option<A>,
        /// Frames that do not open.
        frames: u64,
    },
    /// The keys of the two, or what they are instead, do not go together.
    Keys {
        /// Where the messages come from.
        at: A,
        /// What they show.
        what: KeyTrouble,
        /// How many.
        frames: u64,
    },
    /// Something else than Corridor sends from there.
    Foreign {
        /// Where it is.
        at: A,
        /// Datagrams or frames.
        frames: u64,
    },
    /// The network says that frames to the peer cannot arrive.
    Unreachable {
        /// Where they were to go.
        to: Option<A>,
        /// Why.
        why: Refusal,
        /// How often it said so.
        times: u64,
    },
    /// Nothing at all was heard.
    Silence {
        /// Where the peer is taken to be.
        at: Option<A>,
        /// Frames sent meanwhile.
        sent: u64,
        /// Stations have keys of their own: one whose key is not known gets no answer.
        has_keys: bool,
    },
}

impl<A: Display> Display for Cause<A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let there = |at: &Option<A>| at.as_ref().map_or("it".into(), ToString::to_string);
        match self {
            Cause::ModesDiffer { theirs, ours } => write!(
                f,
                "it uses {theirs}, this station {ours}; set the same coding.preset and matching \
                 roles on both"
            ),
            Cause::Refused { to, why, frames, sent } => {
                write!(f, "cannot send frames to {} ({frames} of {sent} failed): {why}", there(to))
            }
            Cause::SameId { at, frames } => write!(
                f,
                "the station at {at} has the same station.id as this one ({}); change one of them",
                Count(*frames, "HELLO")
            ),
            Cause::OtherId { at, id, frames } => write!(
                f,
                "the station at {at} has the right key but identifies as station {} ({}); set \
                 peer.id here to its station.id",
                id.0,
                Count(*frames, "HELLO")
            ),
            Cause::OneWay { at, hellos, refusal } => {
                write!(
                    f,
                    "receiving from {} ({}), but it does not receive from this station: ",
                    there(at),
                    Count(*hellos, "HELLO")
                )?;
                match refusal {
                    Some(why) => write!(f, "{why}"),
                    None => f.write_str(
                        "a firewall or address translation on the path, or its peer.id is not this \
                         station's station.id",
                    ),
                }
            }
            Cause::Unfinished { hellos } => write!(
                f,
                "both stations receive, but {} did not complete the handshake: too many frames \
                 are lost",
                Count(*hellos, "HELLO")
            ),
            Cause::Loop { at, frames } => write!(
                f,
                "this station's own frames come back from {at} ({}); peer.endpoint must be the \
                 address of another station",
                Count(*frames, "frame")
            ),
            Cause::OtherVersion { at, version, frames } => write!(
                f,
                "{at} uses wire version {version}, this station {VERSION} ({}); install the same \
                 release on both",
                Count(*frames, "frame")
            ),
            Cause::OtherKey { at, expected, frames } => {
                let frames = Count(*frames, "frame");
                write!(f, "{frames} from {at} failed authentication: the keys differ")?;
                match expected {
                    Some(expected) => write!(f, ", or it is not the peer (expected at {expected})"),
                    None => Ok(()),
                }
            }
            Cause::Keys { at, what, frames } => {
                write!(f, "{} from {at}: {what}", Count(*frames, "message"))
            }
            Cause::Foreign { at, frames } => write!(
                f,
                "{at} sends something other than Corridor frames ({}); check address and port",
                Count(*frames, "packet")
            ),
            Cause::Unreachable { to, why, times } => {
                let times = Count(*times, "error");
                write!(f, "network error for {}: {why} ({times})", there(to))
            }
            Cause::Silence { at: Some(at), sent, has_keys } => {
                write!(
                    f,
                    "no answer from {at} to {}: wrong address, firewall on the path, or no node \
                     running there",
                    Count(*sent, "frame")
                )?;
                let unknown = ", or a wrong peer.public_key on either side";
                f.write_str(if *has_keys { unknown } else { "" })
            }
            Cause::Silence { at: None, .. } => f.write_str(
                "nothing received from it, and its address is not known: it must contact this \
                 station first; check for a firewall here",
            ),
        }
    }
}

/// So many of something, in words.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(count, what) = self;
        write!(f, "{count} {what}{}", if *count == 1 { "" } else { "s" })
    }
}

/// What keeps two stations apart of which at least one has a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTrouble {
    /// The peer speaks under a secret that this station has not agreed on.
    TheyShare,
    /// The peer has a key of its own, and this station a shared secret.
    TheyHaveKeys,
    /// The peer has another public key for this station.
    NotOurPublicKey,
    /// The peer has another private key than the public one here.
    OtherPublicKey(PublicKey),
    /// The secrets beside the keys differ.
    OtherPsk,
    /// One of the two has a helper, or is a helper or a relay, and the other knows nothing of that.
    OtherRoles,
}

impl KeyTrouble {
    /// Of a station, and what one of its messages shows.
    fn of(peer: StationId, what: Unopened) -> Option<Self> {
        let (names, trouble) = match what {
            Unopened::OtherSecret { names } => (names, KeyTrouble::TheyShare),
            Unopened::HasKeys { names } => (names, KeyTrouble::TheyHaveKeys),
            Unopened::NotOurPublicKey { names } => (names, KeyTrouble::NotOurPublicKey),
            Unopened::OtherPublicKey { names, public } => {
                (names, KeyTrouble::OtherPublicKey(public))
            }
            Unopened::OtherPsk { names } => (names, KeyTrouble::OtherPsk),
            Unopened::OtherStep { names } => (names, KeyTrouble::OtherRoles),
            _ => return None,
        };
        (names == peer).then_some(trouble)
    }
}

impl Display for KeyTrouble {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            KeyTrouble::TheyShare => f.write_str(
                "it uses an unknown session secret: either it is configured with a pre-shared key \
                 and this station with a private key, or it does not receive from this station",
            ),
            KeyTrouble::TheyHaveKeys => f.write_str(
                "it is configured with a private key and this station with a pre-shared key; \
                 configure both alike",
            ),
            KeyTrouble::NotOurPublicKey => f.write_str(
                "it expects a different public key; set peer.public_key there to this station's \
                 public key",
            ),
            KeyTrouble::OtherPublicKey(public) => write!(
                f,
                "its public key is {public}; if it is the peer, set peer.public_key here to that"
            ),
            KeyTrouble::OtherPsk => f.write_str(
                "its answers fail authentication although the public keys match; use the same \
                 peer.psk_file on both, or none",
            ),
            KeyTrouble::OtherRoles => f.write_str(
                "its answers are for another role although the keys match; configure the same \
                 helper on both, or relays on both",
            ),
        }
    }
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line<A> {
    /// A peer has been out of reach for some time.
    Unreached {
        /// The peer.
        peer: StationId,
        /// For how long.
        since: Duration,
        /// Most likely why.
        cause: Cause<A>,
    },
    /// After such a line: it is in reach again.
    Reached {
        /// The peer.
        peer: StationId,
        /// After how long.
        since: Duration,
    },
}

impl<A: Display> Display for Line<A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Line::Unreached { peer, cause: cause @ Cause::ModesDiffer { .. }, .. } => {
                write!(f, "cannot exchange packets with station {}: {cause}", peer.0)
            }
            Line::Unreached { peer, since, cause } => {
                let (peer, since) = (peer.0, since.as_secs());
                write!(f, "no session with station {peer} for {since} s: {cause}")
            }
            Line::Reached { peer, since } => {
                let (peer, since) = (peer.0, since.as_secs());
                write!(f, "station {peer} is reachable again after {since} s")
            }
        }
    }
}

/// Watches over the peers of a station.
#[derive(Clone, Debug)]
pub struct Watch<A> {
    me: StationId,
    ours: Crossing,
    peers: Vec<PeerWatch>,
    seen: ArrayVec<Seen<A>, SIGHTS_MAX>,
    refused: ArrayVec<Refused<A>, SIGHTS_MAX>,
}

/// A peer; what is counted is counted from its last line, or from when it was lost.
#[derive(Clone, Debug)]
struct PeerWatch {
    id: StationId,
    outage: Option<Outage>,
    told_at: Option<Time>,
    hellos_before: u64,
    sent_before: u64,
}

/// A peer is out of reach.
#[derive(Clone, Copy, Debug)]
struct Outage {
    /// Since when.
    since: Time,
    /// When that was noticed.
    noticed: Time,
    /// A line was written about it.
    told: bool,
    /// It needs no patience: the cause is known for certain.
    is_certain: bool,
}

/// Frames of one sort from one address.
#[derive(Clone, Copy, Debug)]
struct Seen<A> {
    at: A,
    what: Unopened,
    frames: u64,
}

/// Frames to one address that were refused for one reason.
#[derive(Clone, Copy, Debug)]
struct Refused<A> {
    to: Option<A>,
    why: Refusal,
    frames: u64,
    /// When the last of them was.
    last: Time,
}

impl<A: Copy + PartialEq> Watch<A> {
    /// Watches over the peers of the station `me` from now on, all of which are still to be found.
    pub fn new(
        (me, ours): (StationId, Crossing),
        peers: impl IntoIterator<Item = StationId>,
        now: Time,
    ) -> Self {
        let outage = Outage { since: now, noticed: now, told: false, is_certain: false };
        let peer = |id| PeerWatch {
            id,
            outage: Some(outage),
            told_at: None,
            hellos_before: 0,
            sent_before: 0,
        };
        let peers = peers.into_iter().map(peer).collect();
        Watch { me, ours, peers, seen: ArrayVec::new(), refused: ArrayVec::new() }
    }

    /// Whether a peer is out of reach, so that what is seen matters.
    pub fn is_needed(&self) -> bool {
        self.peers.iter().any(|peer| peer.outage.is_some())
    }

    /// A rejected frame came from this address; `expected`: a peer is taken to be there. Where
    /// there is no room, what was seen least goes, of addresses without a peer first.
    pub fn note_rejected(&mut self, at: A, what: Unopened, expected: impl Fn(A) -> bool) {
        let same = |seen: &&mut Seen<A>| (seen.at, seen.what) == (at, what);
        if let Some(seen) = self.seen.iter_mut().find(same) {
            seen.frames = seen.frames.saturating_add(1);
            return;
        }
        if self.seen.is_full() {
            let rank = |&at: &usize| (expected(self.seen[at].at), self.seen[at].frames);
            let Some(least) = (0..self.seen.len()).min_by_key(rank) else { return };
            self.seen.remove(least);
        }
        self.seen.push(Seen { at, what, frames: 1 });
    }

    /// So many frames were refused until now. Where there is no room, the oldest is forgotten.
    pub fn note_refused(&mut self, now: Time, to: Option<A>, why: Refusal, frames: u64) {
        let same = |refused: &&mut Refused<A>| (refused.to, refused.why) == (to, why);
        if let Some(refused) = self.refused.iter_mut().find(same) {
            refused.frames = refused.frames.saturating_add(frames);
            refused.last = now;
            return;
        }
        if self.refused.is_full() {
            self.refused.remove(0);
        }
        self.refused.push(Refused { to, why, frames, last: now });
    }

    /// What is to be said now, at most a line for each peer. `views`: [`crate::Station::peers`];
    /// `sent`: frames that this station has sent so far; `address`: where a peer is taken to be.
    pub fn check(
        &mut self,
        now: Time,
        views: &[PeerView],
        sent: u64,
        address: impl Fn(StationId) -> Option<A>,
    ) -> Vec<Line<A>> {
        if !self.is_needed() {
            self.seen.clear();
            self.refused.clear();
        }
        let mut lines = Vec::new();
        for at in 0..self.peers.len() {
            let id = self.peers[at].id;
            let Some(view) = views.iter().find(|view| view.id == id) else { continue };
            let reached = self.follow(now, at, view, sent);
            lines.extend(reached);
            if self.due_at(at).is_some_and(|due| due <= now) {
                lines.push(self.tell(now, at, (view, sent), address(id)));
            }
        }
        // The next lines are about what comes from here on.
        if lines.iter().any(|line| matches!(line, Line::Unreached { .. })) {
            self.seen.clear();
            self.refused.clear();
        }
        lines
    }

    /// When to [`check`](Self::check) next, if nothing becomes known before.
    pub fn poll_timeout(&self) -> Option<Time> {
        (0..self.peers.len()).filter_map(|at| self.due_at(at)).min()
    }

    /// Notes whether the peer is in reach.
    fn follow(&mut self, now: Time, at: usize, view: &PeerView, sent: u64) -> Option<Line<A>> {
        let differs = view.crossing.is_some_and(|theirs| theirs != self.ours);
        let is_heard = view.is_up && !view.is_silent;
        let peer = &mut self.peers[at];
        if is_heard && !differs {
            let outage = peer.outage.take().filter(|outage| outage.told)?;
            return Some(Line::Reached { peer: peer.id, since: now - outage.since });
        }
        let outage = peer.outage.get_or_insert_with(|| {
            (peer.hellos_before, peer.sent_before) = (view.hellos, sent);
            let since = view.last_heard.filter(|_| view.is_silent).unwrap_or(now);
            Outage { since, noticed: now, told: false, is_certain: false }
        });
        outage.is_certain = is_heard && differs;
        None
    }

    /// When a line about the peer is due.
    fn due_at(&self, at: usize) -> Option<Time> {
        let peer = &self.peers[at];
        let outage = peer.outage?;
        let first = if outage.is_certain { outage.noticed } else { outage.noticed + PATIENCE };
        match peer.told_at {
            Some(told_at) if outage.told => Some(told_at + REPEAT),
            Some(told_at) => Some(first.max(told_at + REST)),
            None => Some(first),
        }
    }

    fn tell(
        &mut self,
        now: Time,
        at: usize,
        (view, sent): (&PeerView, u64),
        address: Option<A>,
    ) -> Line<A> {
        let cause = self.cause(now, at, (view, sent), address);
        let peer = &mut self.peers[at];
        (peer.told_at, peer.hellos_before, peer.sent_before) = (Some(now), view.hellos, sent);
        let since = peer.outage.as_mut().map_or(now, |outage| {
            outage.told = true;
            outage.since
        });
        Line::Unreached { peer: peer.id, since: now - since, cause }
    }

    /// The first cause, in the order of [`Cause`], that something speaks for.
    fn cause(
        &self,
        now: Time,
        at: usize,
        (view, sent): (&PeerView, u64),
        address: Option<A>,
    ) -> Cause<A> {
        let peer = &self.peers[at];
        let sent = sent.saturating_sub(peer.sent_before);
        let since = peer.outage.map_or(Time::ZERO, |outage| outage.noticed);
        let hellos = view.hellos.saturating_sub(peer.hellos_before);
        self.mode(view)
            .or_else(|| self.local_refusal(address, sent))
            .or_else(|| self.stranger(address, hellos))
            .or_else(|| {
                let answers = view.answered_at.is_some_and(|at| at >= since);
                match hellos {
                    0 => None,
                    hellos if answers => Some(Cause::Unfinished { hellos }),
                    hellos => {
                        let refusal = self.refusal(address, false).map(|refused| refused.why);
                        Some(Cause::OneWay { at: address, hellos, refusal })
                    }
                }
            })
            .or_else(|| self.keys(peer.id))
            .or_else(|| self.unopened(peer.id, address))
            .or_else(|| {
                let Refused { to, why, frames: times, last } = self.refusal(address, false)?;
                // What the network said of a peer that was not there yet is no cause any more.
                let from = peer.told_at.map_or(since, |told_at| told_at.max(since));
                if last < from + (now - from) / 2 {
                    return None;
                }
                Some(Cause::Unreachable { to, why, times })
            })
            .unwrap_or(Cause::Silence { at: address, sent, has_keys: view.public_key.is_some() })
    }

    fn mode(&self, view: &PeerView) -> Option<Cause<A>> {
        let theirs = view.crossing.filter(|&theirs| theirs != self.ours)?;
        let ours = self.ours;
        (view.is_up && !view.is_silent).then_some(Cause::ModesDiffer { theirs, ours })
    }

    fn local_refusal(&self, address: Option<A>, sent: u64) -> Option<Cause<A>> {
        let Refused { to, why, frames, .. } = self.refusal(address, true)?;
        let sent = sent.max(frames);
        (REFUSED_PARTS * frames >= sent).then_some(Cause::Refused { to, why, frames, sent })
    }

    /// The most frequent refusal of frames to an address, by this host or by the network.
    fn refusal(&self, address: Option<A>, local: bool) -> Option<Refused<A>> {
        let fits = |refused: &&Refused<A>| {
            refused.why.is_local() == local && (refused.to.is_none() || refused.to == address)
        };
        self.refused.iter().filter(fits).max_by_key(|refused| refused.frames).copied()
    }

    /// A station that has the key and is no peer, while nothing is heard of the peer itself.
    fn stranger(&self, address: Option<A>, hellos: u64) -> Option<Cause<A>> {
        let me = self.me;
        let found = self.seen.iter().filter_map(|&Seen { at, what, frames }| match what {
            Unopened::Stranger { id } if id == me => Some((frames, Cause::SameId { at, frames })),
            Unopened::Stranger { id } if address.is_none_or(|address| address == at) => {
                Some((frames, Cause::OtherId { at, id, frames }))
            }
            _ => None,
        });
        found.filter(|_| hellos == 0).max_by_key(|&(frames, _)| frames).map(|(_, cause)| cause)
    }

    /// What messages that name the peer show of its keys. One with which it calls this station says
    /// more than that it still speaks under a secret of before.
    fn keys(&self, peer: StationId) -> Option<Cause<A>> {
        let found = self.seen.iter().filter_map(|&Seen { at, what, frames }| {
            let what = KeyTrouble::of(peer, what)?;
            Some(((what != KeyTrouble::TheyShare, frames), Cause::Keys { at, what, frames }))
        });
        found.max_by_key(|&(rank, _)| rank).map(|(_, cause)| cause)
    }

    /// What frames without a valid seal speak for: those from the peer's address, or else those
    /// that name it, and where its address is not known, any.
    fn unopened(&self, peer: StationId, address: Option<A>) -> Option<Cause<A>> {
        let here = |seen: &&Seen<A>| Some(seen.at) == address;
        let names = |seen: &&Seen<A>| seen.what == Unopened::OtherKey { names: peer };
        let most = |seen: &&Seen<A>| seen.frames;
        let at = (self.seen.iter().filter(here).max_by_key(most))
            .or_else(|| self.seen.iter().filter(names).max_by_key(most))
            .or_else(|| self.seen.iter().filter(|_| address.is_none()).max_by_key(most))?
            .at;
        let expected = address.filter(|&address| address != at);
        let count = |of: fn(Unopened) -> bool| {
            let sights = self.seen.iter().filter(|seen| seen.at == at && of(seen.what));
            sights.map(|seen| seen.frames).sum::<u64>()
        };
        let own = count(|what| what == Unopened::Own);
        let sealed = count(|what| matches!(what, Unopened::OtherKey { .. } | Unopened::Sealed));
        let versioned = count(|what| matches!(what, Unopened::Version(_)));
        let foreign = count(|what| what == Unopened::Foreign);
        let mut versions = self.seen.iter().filter(|seen| seen.at == at).filter_map(|seen| {
            if let Unopened::Version(version) = seen.what { Some(version) } else { None }
        });
        // What is not of Corridor begins with any number.
        let version = versions.next().filter(|_| versions.next().is_none());
        let candidates = [
            (own, Cause::Loop { at, frames: own }),
            (sealed, Cause::OtherKey { at, expected, frames: sealed }),
            match version {
                Some(version) if versioned > foreign => {
                    (versioned, Cause::OtherVersion { at, version, frames: versioned })
                }
                _ => (versioned + foreign, Cause::Foreign { at, frames: versioned + foreign }),
            },
        ];
        let found = candidates.into_iter().filter(|&(frames, _)| frames > 0);
        found.max_by_key(|&(frames, _)| frames).map(|(_, cause)| cause)
    }
}

#[cfg(test)]
mod tests;
