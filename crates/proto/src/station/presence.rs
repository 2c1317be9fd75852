//! Messages about a station's presence: that it receives at an address, and that it leaves.
//!
//! A goodbye is a frame of the session that it ends, so only its owner can have made it, and a
//! replay of it has no effect, as its counter is known. It is repeated until all peers have
//! confirmed it, at most [`GOODBYES_MAX`] times.

mod words;

use arrayvec::ArrayVec;
use corridor_base::Time;

use super::{Destination, Event, Shared, Station};
use crate::bounds::{GOODBYE_INTERVAL, GOODBYES_MAX, PATH_ANSWERS_MAX, PEERS_MAX};
use crate::config::StationId;
use crate::link::handshake::Opened;
use crate::wire::{ChallengeToken, Chunk, Word};
use words::{Act, Cause, Said, Stage};

/// The messages to be sent.
#[derive(Default)]
pub(crate) struct Presence {
    /// Challenges received, and from whom.
    answers: ArrayVec<(StationId, ChallengeToken), PATH_ANSWERS_MAX>,
    /// One that was sent, and is to be sent once more.
    answers_again: Option<(StationId, ChallengeToken)>,
    /// Peers whose goodbye was received.
    heard: ArrayVec<StationId, PEERS_MAX>,
    stage: Stage,
    closing: Closing,
}

/// The state of saying goodbye.
#[derive(Default)]
struct Closing {
    said: u8,
    due: Time,
    heard_by: ArrayVec<StationId, PEERS_MAX>,
}

impl Presence {
    /// When there is something to send.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        let answers = !self.answers.is_empty() || self.answers_again.is_some();
        if answers || !self.heard.is_empty() {
            return Some(Time::ZERO);
        }
        match self.stage {
            Stage::Present => None,
            Stage::Leaving => Some(self.closing.due),
            Stage::Silent => Some(Time::MAX),
        }
    }

    /// Whether the station is closing, so that nothing else is sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.stage != Stage::Present
    }
}

/// Keeps the newest items, each once.
fn push<T: PartialEq, const N: usize>(list: &mut ArrayVec<T, N>, item: T) {
    if list.contains(&item) {
        return;
    }
    if list.is_full() {
        list.remove(0);
    }
    list.push(item);
}

impl Station {
    /// Declares that receivers may answer with no more bytes than they received, as over the
    /// Internet. Frames that look for a peer are then sent often for a while, and are long if the
    /// driver knows a peer's address and so `calls` it.
    pub fn reach_out(&mut self, now: Time, calls: bool) {
        self.shared.group.reach_out(now, calls);
    }

    /// Whether a frame is a HELLO of a known session, which needs no key derivation, or a response
    /// to this station's initiation.
    pub fn expects(&self, frame: &[u8]) -> bool {
        self.shared.group.expects(frame)
    }

    /// The sender that a frame claims in clear, without authentication. If a rejected frame came
    /// from another peer's address, that peer made it or passed it on.
    pub fn claimed(&self, frame: &[u8]) -> Option<StationId> {
        self.shared.group.claimed(frame)
    }

    /// A challenge to a peer that has sent from another address than the one that its frames go to:
    /// the driver has to send this frame to that address only. Its answer is an
    /// [`Answered`](super::FrameOutcome::Answered) frame. `None` while frames cannot be exchanged
    /// with the peer.
    pub fn challenge(&mut self, peer: StationId, token: ChallengeToken) -> Option<&[u8]> {
        self.shared.challenge(peer, token)?;
        self.restart_session_if_new();
        Some(&self.shared.frame)
    }

    /// From now on only says goodbye to all peers; [`is_closed`](Self::is_closed) returns whether
    /// that has been confirmed, or repeated often enough.
    pub fn close(&mut self, now: Time) {
        self.shared.close(now);
    }

    /// Whether a station that is closing has nothing more to send.
    pub fn is_closed(&self) -> bool {
        self.shared.is_closed()
    }
}

impl Shared {
    /// Handles a peer's message about its path or presence, in a frame of `len` bytes. Returns the
    /// token if it answers a challenge; `None` if it makes no sense here.
    pub(crate) fn handle_word(
        &mut self,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
        len: usize,
    ) -> Option<Option<ChallengeToken>> {
        let from = opened.from;
        let word = Word::parse(chunk)?;
        let (said, to) = Said::of(&word);
        match (said.on(to == Some(self.config.id)), word) {
            (Act::Answer, Word::Challenge { token, .. }) => {
                push(&mut self.presence.answers, (from, token));
            }
            (Act::Tell, Word::Answer { token, .. }) => return Some(Some(token)),
            (Act::Part, _) => {
                push(&mut self.presence.heard, from);
                if self.group.note_goodbye(now, from) {
                    self.push_event(Event::PeerGone { peer: from });
                }
            }
            (Act::NoteHeard, _) => {
                if self.presence.is_closing() {
                    push(&mut self.presence.closing.heard_by, from);
                }
            }
            (Act::FollowPath, word) => self.path.handle_word(now, opened, word, len)?,
            (Act::Answer | Act::Tell | Act::Refuse, _) => return None,
        }
        Some(None)
    }

    /// Makes a frame about this station's presence, if one is due; returns its receiver.
    pub(crate) fn poll_presence(&mut self, now: Time) -> Option<Destination> {
        // Once more, also where the challenge came from (RFC 9000, Section 8.2.2): if both ends
        // have moved, nobody hears what is sent to the present address. It is another frame: who
        // delivers a copy of it first, from elsewhere, does not replace the first.
        if let Some((to, token)) = self.presence.answers_again.take() {
            self.group.note_addressed(to);
            return Some(self.say(Word::Answer { to, token }, Destination::Search(to)));
        }
        if let Some((to, token)) = self.presence.answers.pop_at(0) {
            self.presence.answers_again = Some((to, token));
            return Some(self.say(Word::Answer { to, token }, Destination::Station(to)));
        }
        if let Some(to) = self.presence.heard.pop_at(0) {
            return Some(self.say(Word::GoodbyeHeard { to }, Destination::Station(to)));
        }
        let Presence { stage, closing, .. } = &mut self.presence;
        let cause = match closing.said {
            _ if closing.due > now => return None,
            GOODBYES_MAX => Cause::AllSaid,
            _ => Cause::Due,
        };
        let (after, says) = stage.after(cause);
        *stage = after;
        if !says {
            return None;
        }
        closing.said += 1;
        closing.due = now + GOODBYE_INTERVAL;
        Some(self.say(Word::Goodbye, Destination::All))
    }

    fn say(&mut self, word: Word, to: Destination) -> Destination {
        self.group.begin(&mut self.frame);
        word.write_last(&mut self.frame);
        self.seal();
        self.stats.control_frames_sent += 1;
        to
    }

    /// Makes a challenge to a peer that has sent from an address not known to be its own. The
    /// driver has to send it to that address only.
    pub(crate) fn challenge(&mut self, to: StationId, token: ChallengeToken) -> Option<&[u8]> {
        if !self.group.is_up(to) {
            return None;
        }
        self.say(Word::Challenge { to, token }, Destination::Station(to));
        self.group.note_addressed(to);
        self.stats.frames_sent += 1;
        self.stats.bytes_sent += self.frame.len() as u64;
        Some(&self.frame)
    }

    /// From now on only says goodbye.
    pub(crate) fn close(&mut self, now: Time) {
        let Presence { stage, closing, .. } = &mut self.presence;
        if *stage == Stage::Present {
            closing.due = now;
        }
        *stage = stage.after(Cause::Close).0;
    }

    /// Whether a closing station has sent everything that it has to.
    pub(crate) fn is_closed(&self) -> bool {
        let Presence { stage, closing, .. } = &self.presence;
        let mut waits = self.group.peers_met().filter(|id| !closing.heard_by.contains(id));
        // Without a secret there is nothing to seal a goodbye under.
        let is_over = *stage == Stage::Silent || !self.group.can_seal() || waits.next().is_none();
        self.presence.is_closing() && is_over
    }
}
