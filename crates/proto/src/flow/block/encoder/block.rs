//! One block at the encoder: what was added, what was sent, what the decoder has, and the states
//! ENC, WAIT, IDLE of the paper's Fig. 4.

use std::collections::VecDeque;

use corridor_base::Time;
use corridor_codec::{BlockEncoder, CodecError};

use crate::bounds::SENT_LOG_MAX;
use crate::config::CodingParams;
use crate::inspect::EncoderBlockView;
use crate::wire::BlockAck;

/// The encoder's states (Section II-D). Each block has its own state; with one block in flight this
/// is the paper's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is budget to spend.
    Enc,
    /// The budget is spent; the encoder waits for an acknowledgment until the timeout.
    Wait,
    /// The decoder has everything that was added.
    Idle,
}

/// What changes a block's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A source symbol was added.
    SymbolAdded,
    /// Less than one transmission of budget is left.
    BudgetSpent,
    /// No acknowledgment came in time.
    TimedOut,
    /// An acknowledgment shows missing dimensions that nothing in flight will supply.
    AckShowsDeficit,
    /// An acknowledgment shows everything that was added.
    AckCaughtUp,
    /// An acknowledgment shows less than an earlier one: what a helper had sent was dropped.
    AckFellBack,
}

impl State {
    /// The transition table.
    pub(crate) fn after(self, cause: Cause) -> State {
        match (self, cause) {
            (_, Cause::SymbolAdded) => State::Enc,
            (State::Enc, Cause::BudgetSpent) => State::Wait,
            (State::Wait, Cause::TimedOut | Cause::AckShowsDeficit) => State::Enc,
            (_, Cause::AckCaughtUp) => State::Idle,
            (State::Idle, Cause::AckFellBack) => State::Wait,
            // A timer that fires late, or feedback that reports nothing new.
            (
                state,
                Cause::BudgetSpent | Cause::TimedOut | Cause::AckShowsDeficit | Cause::AckFellBack,
            ) => state,
        }
    }
}

/// A block in flight.
pub(crate) struct Block {
    pub(crate) id: u16,
    pub(crate) coder: BlockEncoder,
    pub(crate) state: State,
    /// Transmissions allowed and not yet made.
    pub(crate) budget: f64,
    /// The first source symbol not yet sent uncoded.
    pub(crate) next_source: usize,
    /// When the wait for an acknowledgment ends (state WAIT).
    pub(crate) wait_until: Time,
    /// Timeouts since the decoder's rank last rose.
    pub(crate) timeouts_in_row: u32,
    /// Transmissions of the block so far.
    pub(crate) sent_count: u64,
    pub(crate) last_added_at: Time,
    /// When a symbol was last added, or the decoder's rank last rose.
    pub(crate) progress_at: Time,
    /// The decoder's rank as last reported.
    pub(crate) rank: usize,
    /// Counter, in its session, of the newest frame that reported a rank.
    pub(crate) told_in: Option<u32>,
    /// Since when each acknowledgment has shown missing symbols.
    pub(crate) behind_since: Option<Time>,
    /// Transmissions not yet covered by feedback.
    in_flight: VecDeque<(u32, Time)>,
    /// Packets in each source symbol.
    packets: Vec<u16>,
}

impl Block {
    pub(crate) fn new(params: &CodingParams, symbol_size_max: usize) -> Result<Self, CodecError> {
        let size = usize::from(params.block_size);
        Ok(Block {
            id: 0,
            coder: BlockEncoder::new(params.field, size, symbol_size_max)?,
            state: State::Idle,
            budget: 0.0,
            next_source: 0,
            wait_until: Time::MAX,
            timeouts_in_row: 0,
            sent_count: 0,
            last_added_at: Time::ZERO,
            progress_at: Time::ZERO,
            rank: 0,
            told_in: None,
            behind_since: None,
            in_flight: VecDeque::new(),
            packets: Vec::with_capacity(size),
        })
    }

    /// Empties the block for use under a new number.
    pub(crate) fn open(&mut self, id: u16, now: Time) {
        self.id = id;
        self.coder.clear();
        self.packets.clear();
        self.progress_at = now;
        self.sent_count = 0;
        self.forget_feedback();
        self.budget = 0.0;
        self.state = State::Idle;
    }

    /// The decoder lost everything: as if nothing had been sent.
    pub(crate) fn forget_feedback(&mut self) {
        self.rank = 0;
        self.told_in = None;
        self.behind_since = None;
        self.next_source = 0;
        self.timeouts_in_row = 0;
        self.wait_until = Time::MAX;
        self.in_flight.clear();
    }

    /// A new session's counters say nothing about frames of the session before.
    pub(crate) fn forget_in_flight(&mut self) {
        self.in_flight.clear();
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.rank == self.coder.block_size()
    }

    /// Dimensions that the decoder lacks of what was added.
    pub(crate) fn deficit(&self) -> usize {
        self.coder.count().saturating_sub(self.rank)
    }

    pub(crate) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    pub(crate) fn add(
        &mut self,
        now: Time,
        symbol: &[u8],
        packets: u16,
        credit: f64,
    ) -> Result<(), CodecError> {
        self.coder.push(symbol)?;
        self.packets.push(packets);
        self.last_added_at = now;
        self.progress_at = now;
        self.budget += credit;
        self.state = self.state.after(Cause::SymbolAdded);
        Ok(())
    }

    /// Records a transmission under this frame counter.
    pub(crate) fn note_sent(&mut self, now: Time, counter: u32, timeout: core::time::Duration) {
        if self.in_flight.len() == SENT_LOG_MAX {
            self.in_flight.pop_front();
        }
        self.in_flight.push_back((counter, now));
        self.sent_count += 1;
        self.budget -= 1.0;
        if self.budget < 1.0 {
            self.state = self.state.after(Cause::BudgetSpent);
            self.wait_until = now + timeout;
        }
    }

    /// What was last sent went in parts; what counts is when the last part was sent.
    pub(crate) fn note_last_part(
        &mut self,
        now: Time,
        counter: u32,
        timeout: core::time::Duration,
    ) {
        self.in_flight.pop_back();
        self.in_flight.push_back((counter, now));
        if self.state == State::Wait {
            self.wait_until = now + timeout;
        }
    }

    /// The decoder has heard the frame with this counter, so it will hear no earlier one. Returns
    /// when that frame was sent, if it belonged to this block.
    pub(crate) fn note_heard(&mut self, counter: u32) -> Option<Time> {
        let mut sent_at = None;
        while let Some(&(sent, at)) = self.in_flight.front().filter(|(sent, _)| *sent <= counter) {
            sent_at = (sent == counter).then_some(at);
            self.in_flight.pop_front();
        }
        sent_at
    }

    /// Nothing that is still in flight will arrive.
    pub(crate) fn give_up_in_flight(&mut self) {
        self.in_flight.clear();
    }

    /// The rank that an acknowledgment reports. If it covers rows over symbols that do not exist
    /// yet, rows are forged, and only decoded symbols count.
    pub(crate) fn rank_in(&self, told: &BlockAck) -> usize {
        let is_possible = usize::from(told.known) <= self.coder.count();
        let decoded = || told.decoded.iter().map(|byte| byte.count_ones() as usize).sum();
        if is_possible { told.rank.into() } else { decoded() }
    }

    /// Records the decoder's rank, as an acknowledgment reports it.
    pub(crate) fn note_rank(&mut self, now: Time, rank: usize) {
        if rank > self.rank {
            self.progress_at = now;
            self.rank = rank.min(self.coder.block_size());
            self.timeouts_in_row = 0;
        }
        if self.deficit() == 0 {
            self.state = self.state.after(Cause::AckCaughtUp);
            self.budget = 0.0;
        }
    }

    /// Records a rank that may have fallen because the decoder dropped symbols, so that these are
    /// sent again. `told_in`: counter of the frame that reports it. Returns whether that frame is
    /// the newest: one that was overtaken also reports a lower rank, or a higher one that was true
    /// before.
    pub(crate) fn note_fallen(&mut self, now: Time, rank: usize, told_in: u32) -> bool {
        if self.told_in >= Some(told_in) {
            return false;
        }
        let before = self.told_in.replace(told_in);
        if rank >= self.rank || before.is_none() {
            return true;
        }
        self.rank = rank;
        if self.state == State::Idle {
            self.wait_until = now;
        }
        self.state = self.state.after(Cause::AckFellBack);
        true
    }

    pub(crate) fn inspect(&self) -> EncoderBlockView {
        EncoderBlockView {
            block: self.id,
            symbols: self.coder.count(),
            packets: self.packets.iter().copied().map(u64::from).sum(),
            rank: self.rank,
            in_flight: self.in_flight.len(),
            budget: self.budget,
        }
    }

    /// Packets in symbols that the decoder did not decode.
    pub(crate) fn packets_undecoded(&self, ack: Option<&BlockAck>) -> u64 {
        let decoded = |index: usize| {
            ack.and_then(|ack| ack.decoded.get(index / 8))
                .is_some_and(|b| b >> (index % 8) & 1 == 1)
        };
        let lost = self.packets.iter().enumerate().filter(|(index, _)| !decoded(*index));
        lost.map(|(_, &packets)| u64::from(packets)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix_of_states_and_causes() {
        use Cause::*;
        use State::*;
        let causes =
            [SymbolAdded, BudgetSpent, TimedOut, AckShowsDeficit, AckCaughtUp, AckFellBack];
        let expected = [
            (Enc, [Enc, Wait, Enc, Enc, Idle, Enc]),
            (Wait, [Enc, Wait, Enc, Enc, Idle, Wait]),
            (Idle, [Enc, Idle, Idle, Idle, Idle, Wait]),
        ];
        for (state, after) in expected {
            assert_eq!(causes.map(|cause| state.after(cause)), after, "{state:?}");
        }
    }
}
