//! What a station knows about one configured neighbour.

use core::cmp::Reverse;
use core::time::Duration;

use corridor_base::Time;

use super::standing::{Event, Standing};
use crate::bounds::{
    E1_STALE_HELLOS, HELLO_INTERVAL_SLOW, HELLO_TALKING, PEER_SILENT_HELLOS, REPORT_INTERVAL,
    REPORT_STALE_INTERVALS,
};
use crate::config::{Crossing, StationId};
use crate::link::loss_ratio::LossEstimator;
use crate::link::replay::ReplayWindow;
use crate::link::secrets::SessionKeys;
use crate::memory::WindowShape;
use crate::wire::intervals::Intervals;
use crate::wire::{HelloTo, Random128};

/// A configured neighbour.
pub(crate) struct Peer {
    pub(crate) id: StationId,
    /// The link from it.
    pub(crate) link: LossEstimator,
    pub(super) standing: Standing,
    pub(super) session: Option<PeerSession>,
    /// How it carries packets, as it last announced under an accepted session.
    pub(super) crossing: Option<Crossing>,
    /// Number of its sessions accepted so far. An answer from before does not match later
    /// challenges.
    pub(super) promotions: u32,
    pub(super) pending: Vec<PendingSession>,
    pub(super) last_heard: Time,
    /// When its last authentic HELLO came, under any session.
    pub(super) hello_at: Option<Time>,
    /// Number of its HELLOs so far.
    pub(super) hellos: u64,
    /// When a HELLO last had an entry for this station, which the peer has to have heard first.
    pub(super) answered_at: Option<Time>,
    pub(super) silent: bool,
    /// When it last asked whether it is accepted, unless it has shown since that it knows.
    pub(super) asked_at: Option<Time>,
}

pub(super) struct PeerSession {
    pub(super) id: Random128,
    pub(super) keys: SessionKeys,
    pub(super) instance: u64,
    pub(super) replay: ReplayWindow,
    /// The answer that we owe: to its challenge to our current session.
    pub(super) challenge_to_answer: Random128,
    /// How much of its window this station accepts.
    pub(super) taken: WindowShape,
    pub(super) intervals: Intervals,
}

pub(super) struct PendingSession {
    pub(super) id: Random128,
    pub(super) keys: SessionKeys,
    pub(super) our_challenge: Random128,
    pub(super) challenge_to_answer: Random128,
    pub(super) newest_counter: Option<u32>,
    pub(super) heard_at: Time,
    /// How much of its window this station would accept.
    pub(super) taken: WindowShape,
}

impl Peer {
    pub(super) fn new(id: StationId, now: Time) -> Self {
        Peer {
            id,
            link: LossEstimator::new(),
            standing: Standing::Stranger,
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
        }
    }

    /// When it was last heard, under any session.
    pub(super) fn heard_at(&self) -> Option<Time> {
        self.hello_at.max(Some(self.last_heard))
    }

    /// Applies an event that may change its standing; returns whether the event is allowed.
    pub(super) fn follow(&mut self, event: Event) -> bool {
        let after = self.standing.after(event);
        self.standing = after.unwrap_or(self.standing);
        after.is_some()
    }

    /// A frame was received, sent just after `probes` path MTU probes.
    pub(super) fn note(&mut self, now: Time, counter: u32, probes: u8) {
        self.link.note_behind(counter, probes);
        self.last_heard = now;
        self.silent = false;
    }

    /// Its authentic HELLO was received; `answers`: it has an entry for this station.
    pub(super) fn note_hello(&mut self, now: Time, answers: bool) {
        self.hello_at = Some(now);
        self.hellos = self.hellos.saturating_add(1);
        if answers {
            self.answered_at = Some(now);
        }
    }

    /// The erasure ratio of the link from it; 1 if it has not been heard for `stale`.
    pub(crate) fn erasure_ratio(&self, now: Time, stale: Duration) -> f64 {
        if !self.standing.is_accepted() || now - self.last_heard > stale {
            return 1.0;
        }
        self.link.ratio()
    }

    /// Its interval between HELLOs when it has nothing else to send: as announced, or as here.
    pub(crate) fn hello_interval(&self) -> Duration {
        let told = self.session.as_ref().and_then(|session| session.intervals.hello);
        told.unwrap_or(HELLO_INTERVAL_SLOW)
    }

    /// How long it may be silent before it counts as gone.
    pub(super) fn silent_after(&self) -> Duration {
        PEER_SILENT_HELLOS * self.hello_interval()
    }

    /// How long an encoder may be silent before the link from it counts as broken.
    pub(crate) fn encoder_stale_after(&self) -> Duration {
        E1_STALE_HELLOS * self.hello_interval() + HELLO_TALKING
    }

    /// How long a helper may send no report before it is not counted on.
    pub(crate) fn report_stale_after(&self) -> Duration {
        let told = self.session.as_ref().and_then(|session| session.intervals.feedback);
        REPORT_STALE_INTERVALS * told.unwrap_or(REPORT_INTERVAL)
    }

    /// Both sides have accepted each other.
    pub(super) fn is_joined(&self) -> bool {
        self.standing == Standing::Joined
    }

    /// Both sides have accepted each other, and no newer session is pending.
    pub(super) fn settled(&self) -> bool {
        self.is_joined() && self.pending.is_empty()
    }

    pub(super) fn keys_of(&self, id: &Random128) -> Option<&SessionKeys> {
        let accepted = self.session.iter().map(|session| (&session.id, &session.keys));
        let pending = self.pending.iter().map(|pending| (&pending.id, &pending.keys));
        accepted.chain(pending).find(|(other, _)| *other == id).map(|(_, keys)| keys)
    }

    /// The entries for this peer in the next HELLO, by rank: first for its accepted session, then
    /// for the pending ones, most recently heard first.
    pub(super) fn hello_entries(&self) -> impl Iterator<Item = (usize, HelloTo)> {
        let station = self.id;
        let standing = self.standing;
        let accepted = self.session.iter().filter(move |_| standing.is_accepted());
        let accepted = accepted.map(move |session| HelloTo {
            station,
            session: session.id,
            challenge: [0; 16],
            answer: session.challenge_to_answer,
            accepted: true,
            asks: standing != Standing::Joined,
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

/// Selects the entries of a HELLO with this much room from those of all peers: accepted sessions
/// before pending ones, and for each peer the most recently heard first, so that nobody can crowd
/// others out. If not all fit, those of a rank take turns from HELLO to HELLO, and the last place
/// is reserved for a pending session, so that peers that are up cannot delay one that has
/// restarted.
pub(super) fn named(mut ranked: Vec<(usize, HelloTo)>, room: usize, turn: usize) -> Vec<HelloTo> {
    ranked.sort_by_key(|&(rank, _)| rank);
    if ranked.len() > room {
        for of_rank in ranked.chunk_by_mut(|(one, _), (other, _)| one == other) {
            of_rank.rotate_left(turn % of_rank.len());
        }
        let knocking = ranked.iter().position(|&(rank, _)| rank > 0);
        if let Some(knocking) = knocking.filter(|&at| room > 1 && at >= room) {
            ranked.swap(room - 1, knocking);
        }
    }
    ranked.into_iter().take(room).map(|(_, to)| to).collect()
}
