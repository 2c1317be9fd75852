//! The path to the peer with regard to its MTU: how long frames may be, and who is told.

use arrayvec::ArrayVec;
use corridor_base::Time;
use corridor_packet::PacketRef;

use super::Shared;
use crate::bounds::{FRAME_LEN_MIN, MTU_ECHOES_MAX, TOO_BIG_INTERVAL};
use crate::config::{Role, StationConfig, StationId};
use crate::host::too_big::write_too_big;
use crate::link::handshake::Opened;
use crate::link::mtu::{FrameLens, PathMtu};
use crate::wire::{Echo, TAG_LEN, Word};

/// The length of frames, and the search for it.
pub(crate) struct Path {
    /// The station at the other end; a helper, which has two, does not search.
    pub(crate) peer: StationId,
    /// Messages about the path are for this station; a helper overhears them.
    ends_here: bool,
    search: Option<PathMtu>,
    /// Longest frame that the interface accepts.
    limit: usize,
    /// The length in use. A longer one is used only once the search has ended.
    in_use: usize,
    /// Probes of the peer that are to be echoed, and to whom.
    echoes: ArrayVec<Echo, MTU_ECHOES_MAX>,
    /// When the host was last told that a packet is too long.
    too_big_at: Option<Time>,
}

impl Path {
    pub(crate) fn new(config: &StationConfig) -> Self {
        let peer = match config.role {
            Role::Endpoint { peer, .. } | Role::Plain { peer } => peer,
            Role::Helper { between: (a, _) } => a,
            Role::Relay => config.id,
        };
        Path {
            peer,
            ends_here: !matches!(config.role, Role::Helper { .. }),
            search: None,
            limit: config.frame_len_max,
            in_use: config.frame_len_max,
            echoes: ArrayVec::new(),
            too_big_at: None,
        }
    }

    /// Longest frame to send, in bytes.
    pub(crate) fn frame_len(&self) -> usize {
        self.in_use
    }

    /// The longest frame that is known to pass, or at least not in doubt.
    pub(crate) fn safe_frame_len(&self) -> usize {
        let safe = self.search.as_ref().map_or(usize::MAX, PathMtu::safe_len);
        self.in_use.min(safe.max(FRAME_LEN_MIN))
    }

    /// Searches for the longest frame that passes.
    pub(crate) fn search(&mut self, lens: FrameLens) {
        self.search = Some(PathMtu::new(FrameLens { max: lens.max.min(self.limit), ..lens }));
    }

    /// Sets the longest frame that the interface accepts.
    pub(crate) fn limit(&mut self, now: Time, len: usize) {
        let len = len.max(FRAME_LEN_MIN);
        match &mut self.search {
            // If the interface accepts longer frames again, the search finds that in time.
            Some(search) => search.limit(now, len),
            None => self.limit = len,
        }
    }

    pub(crate) fn restart(&mut self, now: Time) {
        self.search.iter_mut().for_each(|search| search.restart(now));
    }

    pub(crate) fn hint(&mut self, now: Time) {
        self.search.iter_mut().for_each(|search| search.hint(now));
    }

    /// Adopts the result of the search; returns whether it has changed.
    pub(crate) fn update(&mut self) -> bool {
        let (found, settled) = self
            .search
            .as_ref()
            .map_or((self.limit, true), |search| (search.frame_len(), search.is_settled()));
        let news = found < self.in_use || (found > self.in_use && settled);
        if news {
            self.in_use = found;
        }
        news
    }

    /// Whether no search is in progress.
    pub(crate) fn is_settled(&self) -> bool {
        self.search.as_ref().is_none_or(PathMtu::is_settled)
    }

    /// Handles a probe or an echo of the peer; `len` is that of the whole frame.
    pub(crate) fn handle_word(
        &mut self,
        now: Time,
        opened: Opened,
        word: Word,
        len: usize,
    ) -> Option<()> {
        if opened.from != self.peer || !self.ends_here {
            return None;
        }
        match word {
            Word::Probe { round, .. } => {
                if self.echoes.is_full() {
                    self.echoes.remove(0);
                }
                self.echoes.push(Echo { round, len: u16::try_from(len).ok()? });
            }
            Word::Echoes(echoes) => {
                let search = self.search.as_mut()?;
                for echo in echoes {
                    search.handle_echo(now, echo.round, usize::from(echo.len));
                }
            }
            _ => return None,
        }
        Some(())
    }

    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.search.iter_mut().for_each(|search| search.handle_timeout(now));
    }

    /// When there is something to send, if the peer is up.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        if !self.echoes.is_empty() {
            return Some(Time::ZERO);
        }
        self.search.as_ref().map(PathMtu::poll_timeout)
    }
}

impl Shared {
    /// Makes an echo or a probe, if one is due; returns whether it is a probe, because an echo
    /// should arrive like any other frame. Sent only to a peer that has answered from its address,
    /// so that nobody else can be flooded.
    pub(crate) fn poll_path(&mut self, now: Time) -> Option<bool> {
        if !self.group.is_up(self.path.peer) {
            return None;
        }
        if !self.path.echoes.is_empty() {
            let echoes = Word::Echoes(core::mem::take(&mut self.path.echoes));
            self.group.begin(&mut self.frame);
            echoes.write_last(&mut self.frame);
            self.seal();
            return Some(false);
        }
        let probe = self.path.search.as_mut()?.poll(now)?;
        self.group.begin(&mut self.frame);
        let word = Word::Probe { round: probe.round, before: probe.before };
        word.write_last(&mut self.frame);
        self.frame.resize(self.frame.len().max(probe.len - TAG_LEN), 0);
        self.seal();
        self.stats.path_probes_sent += 1;
        Some(true)
    }

    /// Tells the host that a packet is longer than `mtu` bytes.
    pub(crate) fn tell_too_big(&mut self, now: Time, packet: PacketRef<'_>, mtu: usize) {
        if self.path.too_big_at.is_some_and(|at| now - at < TOO_BIG_INTERVAL) {
            return;
        }
        let mut message = self.egress.buffer();
        if write_too_big(packet, None, mtu, &mut message) {
            self.path.too_big_at = Some(now);
            self.stats.too_big_told += 1;
            self.egress.push_made(message);
        } else {
            self.egress.put_back(message);
        }
    }
}
