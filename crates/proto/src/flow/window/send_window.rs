//! Source symbols that are not acknowledged, and what is known of each.
//!
//! What feedback and silence tell changes their fates, and with them what the receiver is believed
//! to lack: both change here only, so that nothing that was derived from fates outlives them.

use core::cell::Cell;
use core::num::NonZeroU16;
use std::collections::VecDeque;

use corridor_base::rand::Rng;
use corridor_base::{Stream, Time};
use corridor_codec::{CodecError, Coefficients, WindowEncoder};

use crate::config::{CodingParams, Delivery};
use crate::flow::symbol;
use crate::host::compression::Contexts;
use crate::host::queue::IngressQueue;
use crate::stats::Stats;
use crate::wire::{WindowAck, WindowForm, WindowSymbol};

/// A source symbol that is not acknowledged.
struct Source {
    added_at: Time,
    /// Frame that carried it last; `None`: none of this session.
    counter: Option<u32>,
    packets: u16,
    fate: Fate,
}

/// What is known of a source symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// On its way, or reported too vaguely.
    Unknown,
    /// The receiver said that it needs it, or silence does.
    Needed,
    /// The receiver said that it does not need it: it has it, or a coded symbol that stands for it.
    Received,
    /// It said so, but what stands for it may be about a symbol that was given up since.
    Doubtful,
}

/// The symbols from `base` on.
pub(super) struct SendWindow {
    coder: WindowEncoder,
    /// Longest symbol that the path carries at present.
    symbol_len_max: usize,
    sources: VecDeque<Source>,
    /// Headers of TCP as the receiver knows them.
    contexts: Contexts,
    /// The receiver knew of all ids before.
    told_end: u64,
    /// What it lacked of those.
    told_deficit: usize,
    /// Symbols beyond `told_end` that are taken for lost; `None`: to be counted.
    lost_beyond: Cell<Option<usize>>,
    /// What is known has changed since this was asked last.
    has_news: bool,
}

impl SendWindow {
    pub(super) fn new(
        params: &CodingParams,
        symbol_size_max: usize,
        mut rng: Stream,
    ) -> Result<Self, CodecError> {
        let window_size = usize::from(params.window_size);
        let mut coder = WindowEncoder::new(params.field, window_size, symbol_size_max)?;
        // Numbers of a run before this one mean nothing now.
        coder.reset(u64::from(rng.next_u32()));
        Ok(SendWindow {
            told_end: coder.base(),
            symbol_len_max: symbol_size_max,
            coder,
            sources: VecDeque::new(),
            contexts: Contexts::new(),
            told_deficit: 0,
            lost_beyond: Cell::new(None),
            has_news: false,
        })
    }

    /// Oldest symbol held, and the one after the newest.
    pub(super) fn base(&self) -> u64 {
        self.coder.base()
    }

    pub(super) fn end(&self) -> u64 {
        self.coder.end()
    }

    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.coder.is_full()
    }

    /// When the oldest symbol was added.
    pub(super) fn oldest_added_at(&self) -> Option<Time> {
        self.sources.front().map(|oldest| oldest.added_at)
    }

    /// Longest symbol that there can be, bytes.
    pub(super) fn symbol_size_max(&self) -> usize {
        self.coder.symbol_size_max()
    }

    // ---- symbols ------------------------------------------------------------------------------

    /// Makes a source symbol of packets that wait, for the frame of this counter. `buffer` is made
    /// use of. Its number, and whether it is to come soon; unless all that waited was dropped
    /// to tell of congestion.
    pub(super) fn add(
        &mut self,
        (now, counter): (Time, u32),
        ingress: &mut IngressQueue,
        delivery: Delivery,
        buffer: &mut Vec<u8>,
        stats: &mut Stats,
    ) -> Option<(u64, bool)> {
        buffer.clear();
        let room = symbol::Room { len_max: self.symbol_len_max, packets_max: u16::MAX };
        let contexts = Some(&mut self.contexts);
        let (packets, soon) = symbol::fill(now, ingress, room, delivery, contexts, buffer, stats);
        if packets == 0 {
            return None;
        }
        let Ok(id) = self.coder.push(buffer) else {
            debug_assert!(false, "the window has room and the symbol was made to fit");
            return None;
        };
        let (counter, fate) = (Some(counter), Fate::Unknown);
        self.sources.push_back(Source { added_at: now, counter, packets, fate });
        stats.symbols_added += 1;
        Some((id, soon))
    }

    /// Position of the oldest symbol that is known to be needed and has no copy on its way, where
    /// feedback reported frames up to `told`.
    pub(super) fn lying_still(&self, told: Option<u32>) -> Option<usize> {
        self.sources.iter().position(|source| {
            source.fate == Fate::Needed && (source.counter.is_none() || source.counter <= told)
        })
    }

    /// Position of a symbol of which nothing is known yet.
    pub(super) fn untold(&self, id: u64) -> Option<usize> {
        let at = id.checked_sub(self.coder.base())? as usize;
        self.sources.get(at).filter(|source| source.fate == Fate::Unknown).map(|_| at)
    }

    /// Writes the symbol at this position once more, for the frame of this counter.
    pub(super) fn write_copy(&mut self, at: usize, counter: u32, body: &mut Vec<u8>) {
        self.sources[at].counter = Some(counter);
        self.write_source(self.coder.base() + at as u64, body);
    }

    pub(super) fn write_source(&self, id: u64, body: &mut Vec<u8>) {
        let distance = (id - self.coder.base()) as u16;
        WindowSymbol::write_head(WindowForm::Source { id: id as u32, distance }, body);
        body.extend_from_slice(self.coder.symbol(id).unwrap_or_default());
    }

    /// Writes a coded symbol over all that is held. The coding vector's seed is the frame's
    /// counter.
    pub(super) fn write_coded(&mut self, counter: u32, body: &mut Vec<u8>) {
        let (first, count) = (self.coder.base(), self.coder.count());
        let Some(nonzero) = NonZeroU16::new(count as u16) else { return };
        let form = WindowForm::Coded { first: first as u32, count: nonzero };
        WindowSymbol::write_head(form, body);
        let start = body.len();
        body.resize(start + self.coder.symbol_size_max(), 0);
        let len = self.coder.encode(first, count, Coefficients::Seed(counter), &mut body[start..]);
        debug_assert!(len.is_ok(), "run and buffer were made to fit: {len:?}");
        // One that is all zero still has to have a byte.
        body.truncate(start + len.unwrap_or(0).max(1));
    }

    // ---- fates --------------------------------------------------------------------------------

    /// What the receiver lacks as far as is known, of what it knows of and of what it does not.
    pub(super) fn deficit(&self) -> usize {
        let count = || {
            let beyond = self.told_end.saturating_sub(self.coder.base()) as usize;
            let needed = |source: &&Source| source.fate == Fate::Needed;
            self.sources.iter().skip(beyond).filter(needed).count()
        };
        let lost_beyond = self.lost_beyond.get().unwrap_or_else(count);
        debug_assert_eq!(lost_beyond, count(), "it is forgotten with every change");
        self.lost_beyond.set(Some(lost_beyond));
        self.told_deficit + lost_beyond
    }

    /// Whether fates have changed since this was [`taken`](Self::take_news) last.
    pub(super) fn has_news(&self) -> bool {
        self.has_news
    }

    /// What is known was taken into account.
    pub(super) fn take_news(&mut self) {
        self.has_news = false;
    }

    fn note_change(&mut self) {
        self.lost_beyond.set(None);
        self.has_news = true;
    }

    /// Everything before `next` is done.
    pub(super) fn advance(&mut self, next: u64) {
        let done = next.saturating_sub(self.coder.base()) as usize;
        self.sources.drain(..done.min(self.sources.len()));
        self.coder.advance_to(next);
        self.note_change();
    }

    /// The receiver knew of all ids before `end`, and lacked so many of them.
    pub(super) fn note_told(&mut self, end: u64, deficit: usize) {
        self.told_end = end.min(self.coder.end()).max(self.told_end);
        self.told_deficit = deficit;
        self.note_change();
    }

    /// Takes what feedback says of each symbol from `next` on.
    pub(super) fn read_bitmap(&mut self, next: u64, ack: &WindowAck) {
        // Feedback that was overtaken may speak of symbols that are gone.
        let skip = (self.coder.base() - next.min(self.coder.base())) as usize;
        for (at, source) in self.sources.iter_mut().enumerate() {
            match ack.is_needed(at + skip) {
                Some(true) => source.fate = Fate::Needed,
                // What stands for it may be about symbols that were given up here.
                Some(false) if skip > 0 => source.fate = Fate::Doubtful,
                Some(false) => source.fate = Fate::Received,
                None => break,
            }
        }
        self.note_change();
    }

    /// A symbol that feedback should know of, and does not, is taken for lost.
    pub(super) fn take_for_lost(&mut self, id: u64) {
        let at = id.checked_sub(self.coder.base());
        if let Some(source) = at.and_then(|at| self.sources.get_mut(at as usize))
            && source.fate == Fate::Unknown
        {
            source.fate = Fate::Needed;
            self.note_change();
        }
    }

    /// Gives the oldest symbol up. The receiver passes over it, if it has not, and forgets all
    /// headers. Coded symbols that it holds may be about it, and stand for nothing any more.
    pub(super) fn give_up_oldest(&mut self, stats: &mut Stats) {
        let Some(source) = self.sources.front() else { return };
        let next = self.coder.base() + 1;
        if source.fate != Fate::Received {
            stats.packets_given_up += u64::from(source.packets);
            let told = next <= self.told_end && source.fate != Fate::Doubtful;
            self.told_deficit = self.told_deficit.saturating_sub(usize::from(told));
            self.contexts.clear();
            let received = self.sources.iter_mut().filter(|source| source.fate == Fate::Received);
            received.for_each(|source| source.fate = Fate::Doubtful);
        }
        self.advance(next);
    }

    /// Symbols are no longer than this from here on, bytes. Longer ones that are held would not
    /// get through, nor would what is coded over them: they are given up, with all before them.
    /// Whether there were any.
    pub(super) fn limit(&mut self, len: usize, stats: &mut Stats) -> bool {
        self.symbol_len_max = len.min(self.coder.symbol_size_max());
        let base = self.coder.base();
        let is_longer = |at: &usize| {
            self.coder.symbol(base + *at as u64).is_some_and(|symbol| symbol.len() > len)
        };
        let Some(last) = (0..self.sources.len()).rev().find(is_longer) else { return false };
        (0..=last).for_each(|_| self.give_up_oldest(stats));
        true
    }

    /// The receiver restarted: it has nothing.
    pub(super) fn restart_peer(&mut self, now: Time) {
        self.contexts.clear();
        for source in &mut self.sources {
            source.fate = Fate::Needed;
            source.added_at = now;
        }
        self.told_end = self.coder.base();
        self.told_deficit = 0;
        self.note_change();
    }

    /// Frames are counted anew: of those on their way nothing will be told.
    pub(super) fn restart_session(&mut self) {
        for source in &mut self.sources {
            source.counter = None;
            if source.fate == Fate::Unknown {
                source.fate = Fate::Needed;
            }
        }
        self.note_change();
    }
}
