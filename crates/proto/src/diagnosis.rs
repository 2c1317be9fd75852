//! Diagnoses why nothing gets through: what is known about an unreachable peer, and its most likely
//! cause.
//!
//! A driver reports to a [`Watch`] what it sees of the network: rejected frames with their
//! addresses, and frames of its own that were refused. From this, and from what the station knows
//! about its peers, the watch makes one line for each peer that has been unreachable for
//! [`PATIENCE`], and again every [`REPEAT`]; each line is about what was seen since the one before.
//!
//! Addresses are those of the driver: anything that can be compared and shown. Nothing that
//! strangers send makes the watch grow, or report more.

use core::fmt::{self, Display, Formatter};
use core::time::Duration;

use arrayvec::ArrayVec;
use corridor_base::Time;

use crate::config::{Crossing, StationId};
use crate::inspect::PeerView;
use crate::keys::PublicKey;
use crate::wire::VERSION;

/// How long a peer has to be unreachable before this is reported.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long until it is reported again.
pub const REPEAT: Duration = Duration::from_secs(60);
/// Least time between two lines about a peer that comes and goes.
pub const REST: Duration = Duration::from_secs(20);
/// Most addresses with rejected frames, and most refusals, that are remembered.
pub const SIGHTS_MAX: usize = 16;
/// At least this fraction of this station's frames has to be refused to count as the cause: single
/// refusals are normal.
const REFUSED_PARTS: u64 = 2;

/// What a rejected frame shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unopened {
    /// A HELLO under this station's key, from a station that is not a configured peer: another one,
    /// or one with this station's own number.
    Stranger {
        /// The number that it claims.
        id: StationId,
    },
    /// A frame of this station itself.
    Own,
    /// Long enough for a frame, but of another wire version.
    Version(u8),
    /// A HELLO under another key.
    OtherKey {
        /// The sender that it claims, in clear.
        names: StationId,
    },
    /// A HELLO under a secret that this station, which has a key pair, has not agreed on.
    OtherSecret {
        /// The sender that it claims, in clear.
        names: StationId,
    },
    /// A key exchange message, while this station has a shared secret.
    HasKeys {
        /// The sender that it claims, in clear.
        names: StationId,
    },
    /// A key exchange message for another public key than this station's.
    NotOurPublicKey {
        /// The sender that it claims, in clear.
        names: StationId,
    },
    /// A key exchange message from a station with another public key than the peer's.
    OtherPublicKey {
        /// The sender that it claims.
        names: StationId,
        /// Its public key; it has the private one.
        public: PublicKey,
    },
    /// A response to this station's own initiation, with another pre-shared key.
    OtherPsk {
        /// The sender that it claims.
        names: StationId,
    },
    /// An answer to this station's own initiation, of a kind that does not fit its role: a handout
    /// answers where several stations open what one seals, a response elsewhere.
    OtherStep {
        /// The sender that it claims.
        names: StationId,
    },
    /// A frame of this wire version, under an unknown session or key.
    Sealed,
    /// Not a Corridor frame.
    Foreign,
}

/// Why frames of this station were not sent, or did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no route to the address.
    NoRoute,
    /// Longer than the interface or the path carries.
    TooLong,
    /// A rule of this host forbids it.
    Forbidden,
    /// The interface is down, or gone.
    InterfaceDown,
    /// The network reports that no host answers there.
    NoHost,
    /// The host there reports that nothing listens on that port.
    NoListener,
    /// Another reason, in the system's words.
    Other(&'static str),
}

impl Refusal {
    /// Whether this host itself refused the frame, and not the network.
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

/// The most likely cause. Ordered by how reliable the evidence is: first what only a holder of the
/// key can show, then what this host itself knows, then what anybody could have sent, and finally
/// that nothing was received at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause<A> {
    /// Sessions are up, but the peer carries packets in another way than this station.
    ModesDiffer {
        /// The peer's way.
        theirs: Crossing,
        /// This station's way.
        ours: Crossing,
    },
    /// This host refuses frames to the peer.
    Refused {
        /// The destination.
        to: Option<A>,
        /// Why.
        why: Refusal,
        /// Frames refused.
        frames: u64,
        /// Frames sent.
        sent: u64,
    },
    /// The peer has this station's number.
    SameId {
        /// Its address.
        at: A,
        /// HELLOs that show this.
        frames: u64,
    },
    /// A station with the key is at the peer's address, but with another number.
    OtherId {
        /// Its address.
        at: A,
        /// The number that it claims.
        id: StationId,
        /// HELLOs that show this.
        frames: u64,
    },
    /// The peer is heard, but does not hear this station.
    OneWay {
        /// Its address.
        at: Option<A>,
        /// HELLOs heard from it.
        hellos: u64,
        /// What the network reports about frames to it.
        refusal: Option<Refusal>,
    },
    /// Both hear each other, but too little arrives from the peer to agree on a session.
    Unfinished {
        /// HELLOs heard from it.
        hellos: u64,
    },
    /// Frames of this station come back.
    Loop {
        /// From this address.
        at: A,
        /// Frames that came back.
        frames: u64,
    },
    /// The peer uses another wire version.
    OtherVersion {
        /// Its address.
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
        /// Where the peer is assumed to be, if that is elsewhere.
        expected: Option<A>,
        /// Frames that do not open.
        frames: u64,
    },
    /// The keys of the two, or one's key pair and the other's shared secret, do not match.
    Keys {
        /// Where the messages come from.
        at: A,
        /// What they show.
        what: KeyTrouble,
        /// Number of messages.
        frames: u64,
    },
    /// Something other than Corridor sends from there.
    Foreign {
        /// Its address.
        at: A,
        /// Datagrams or frames.
        frames: u64,
    },
    /// The network reports that frames to the peer cannot arrive.
    Unreachable {
        /// The destination.
        to: Option<A>,
        /// Why.
        why: Refusal,
        /// How often it was reported.
        times: u64,
    },
    /// Nothing was heard at all.
    Silence {
        /// Where the peer is assumed to be.
        at: Option<A>,
        /// Frames sent meanwhile.
        sent: u64,
        /// Stations have key pairs: one whose key is not known gets no answer.
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

/// A number of things, in words.
struct Count(u64, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(count, what) = self;
        write!(f, "{count} {what}{}", if *count == 1 { "" } else { "s" })
    }
}

/// Why the keys of two stations do not match, of which at least one has a key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyTrouble {
    /// The peer uses a secret that this station has not agreed on.
    TheyShare,
    /// The peer has a key pair, and this station a shared secret.
    TheyHaveKeys,
    /// The peer has another public key for this station.
    NotOurPublicKey,
    /// The peer has another key than the public key configured here.
    OtherPublicKey(PublicKey),
    /// The pre-shared keys differ.
    OtherPsk,
    /// One of the two has a helper, or is a helper or a relay, and the other is not configured for
    /// that.
    OtherRoles,
}

impl KeyTrouble {
    /// From a message of the peer.
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

/// A line of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line<A> {
    /// A peer has been unreachable for some time.
    Unreached {
        /// The peer.
        peer: StationId,
        /// For how long.
        since: Duration,
        /// The most likely cause.
        cause: Cause<A>,
    },
    /// The peer of an earlier line is reachable again.
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

/// Watches the peers of a station.
#[derive(Clone, Debug)]
pub struct Watch<A> {
    me: StationId,
    ours: Crossing,
    peers: Vec<PeerWatch>,
    seen: ArrayVec<Seen<A>, SIGHTS_MAX>,
    refused: ArrayVec<Refused<A>, SIGHTS_MAX>,
}

/// A peer. Counts are since its last line, or since it was lost.
#[derive(Clone, Debug)]
struct PeerWatch {
    id: StationId,
    outage: Option<Outage>,
    told_at: Option<Time>,
    hellos_before: u64,
    sent_before: u64,
}

/// The outage of a peer.
#[derive(Clone, Copy, Debug)]
struct Outage {
    /// Since when.
    since: Time,
    /// When it was noticed.
    noticed: Time,
    /// A line was written about it.
    told: bool,
    /// It is reported without delay: the cause is certain.
    is_certain: bool,
}

/// Frames of one kind from one address.
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
    /// When the last of them was refused.
    last: Time,
}

impl<A: Copy + PartialEq> Watch<A> {
    /// Watches the peers of station `me`, none of which has been found yet.
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

    /// Whether a peer is unreachable, so that observations matter.
    pub fn is_needed(&self) -> bool {
        self.peers.iter().any(|peer| peer.outage.is_some())
    }

    /// Records a rejected frame from this address; `expected`: whether a peer is assumed to be
    /// there. If there is no room, the rarest observation is dropped, addresses without a peer
    /// first.
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

    /// Records refused frames. If there is no room, the oldest record is dropped.
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

    /// Returns what to report now, at most one line per peer. `views`: [`crate::Station::peers`];
    /// `sent`: frames that this station has sent so far; `address`: where a peer is assumed to be.
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
        // The next lines are about later observations.
        if lines.iter().any(|line| matches!(line, Line::Unreached { .. })) {
            self.seen.clear();
            self.refused.clear();
        }
        lines
    }

    /// When to call [`check`](Self::check) next, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        (0..self.peers.len()).filter_map(|at| self.due_at(at)).min()
    }

    /// Records whether the peer is reachable.
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

    /// The first cause, in the order of [`Cause`], for which there is evidence.
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
        // What the network reported early on, perhaps before the peer ran, is no longer evidence.
        let from = peer.told_at.map_or(since, |told_at| told_at.max(since));
        let is_recent = |refused: &Refused<A>| refused.last >= from + (now - from) / 2;
        let by_network = self.refusal(address, false).filter(is_recent);
        self.mode(view)
            .or_else(|| self.local_refusal(address, sent))
            .or_else(|| self.stranger(address, hellos))
            .or_else(|| {
                let answers = view.answered_at.is_some_and(|at| at >= since);
                match hellos {
                    0 => None,
                    hellos if answers => Some(Cause::Unfinished { hellos }),
                    hellos => {
                        let refusal = by_network.map(|refused| refused.why);
                        Some(Cause::OneWay { at: address, hellos, refusal })
                    }
                }
            })
            .or_else(|| self.keys(peer.id))
            .or_else(|| self.unopened(peer.id, address))
            .or_else(|| {
                let Refused { to, why, frames: times, .. } = by_network?;
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

    /// A station that has the key and is not a peer, while nothing is heard from the peer itself.
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

    /// What messages that name the peer show about its keys. A key exchange message says more than
    /// a frame under an old secret.
    fn keys(&self, peer: StationId) -> Option<Cause<A>> {
        let found = self.seen.iter().filter_map(|&Seen { at, what, frames }| {
            let what = KeyTrouble::of(peer, what)?;
            Some(((what != KeyTrouble::TheyShare, frames), Cause::Keys { at, what, frames }))
        });
        found.max_by_key(|&(rank, _)| rank).map(|(_, cause)| cause)
    }

    /// What unauthenticated frames are evidence for: those from the peer's address; or else those
    /// that name it; or, if its address is not known, any.
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
        // The first bits of a frame that is not Corridor's can be any version.
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
