//! What is in a frame that opened: chunks, one after the other, for the role or for what all have.

use corridor_base::Time;

use super::{FrameOutcome, Rejection, RoleState, Station};
use crate::link::handshake::Opened;
use crate::wire::{ChallengeToken, Chunk, Chunks};

impl Station {
    /// Takes what is in a frame of so many bytes, one chunk after the other. What cannot be read,
    /// or is not for this station, ends it.
    pub(super) fn take_chunks(
        &mut self,
        now: Time,
        opened: Opened,
        body: &[u8],
        len: usize,
    ) -> FrameOutcome {
        let (from, mut answer) = (opened.from, None);
        for chunk in Chunks::new(body) {
            let taken = chunk.and_then(|chunk| self.take_chunk(now, opened, chunk, len));
            let Some(said) = taken else { return FrameOutcome::Rejected(Rejection::NotForUs) };
            answer = answer.or(said);
        }
        match answer {
            Some(token) => FrameOutcome::Answered { from, token },
            None => FrameOutcome::Accepted { from },
        }
    }

    /// Takes a chunk. The token, if it is the answer to a challenge; nothing, if it is not for this
    /// station.
    fn take_chunk(
        &mut self,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
        len: usize,
    ) -> Option<Option<ChallengeToken>> {
        let shared = &mut self.shared;
        if chunk.kind.is_word() {
            return shared.handle_word(now, opened, chunk, len);
        }
        match &mut self.role {
            RoleState::Endpoint(role) => role.handle_chunk(shared, now, opened, chunk)?,
            RoleState::Helper(role) => role.handle_chunk(shared, now, opened, chunk)?,
            RoleState::Plain(role) => role.handle_chunk(shared, opened, chunk)?,
            RoleState::TcpNc(role) => role.handle_chunk(shared, now, opened, chunk)?,
            RoleState::Window(role) => role.handle_chunk(shared, now, opened, chunk)?,
        }
        Some(None)
    }
}
