//! Messages about the path between two stations: MTU probes and their echoes (RFC 8899), address
//! challenges and their answers (RFC 9000, Section 8.2), goodbyes.
//!
//! A probe is `round (2), before (1)`, then zeros up to the length that is tried. The AEAD tag
//! covers them, so a truncated probe is invalid. `before` is the number of probes of the same round
//! sent just before it: if they are missing, they may have been too long, and do not count as
//! losses. Echoes are `count (1)`, then `round (2), length (2)` for each.
//!
//! A challenge and its answer are `to (2), token (8)`. A goodbye is for all that hear it, and has
//! no body; its confirmation is `to (2)`.

use arrayvec::ArrayVec;

use super::{Chunk, Chunks, Kind, OVERHEAD_LEN, Reader, write_station};
use crate::bounds::MTU_ECHOES_MAX;
use crate::config::StationId;

/// Random bytes that only a station that receives at an address can repeat.
pub type ChallengeToken = [u8; 8];

/// Bytes of a frame with a challenge or an answer.
pub const PATH_CHALLENGE_LEN: usize = OVERHEAD_LEN + 2 + size_of::<ChallengeToken>();

/// A probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Its round.
    pub round: u16,
    /// Bytes of the whole frame.
    pub len: u16,
}

/// Messages about the path and the sender, each in a chunk of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Asks for an echo of this frame.
    Probe {
        /// Its round.
        round: u16,
        /// Probes of this round sent just before it.
        before: u8,
    },
    /// Reports probes that have arrived.
    Echoes(ArrayVec<Echo, MTU_ECHOES_MAX>),
    /// Asks for an answer with this token from the receiver's present address.
    Challenge {
        /// The receiver.
        to: StationId,
        /// The token to repeat.
        token: ChallengeToken,
    },
    /// Answers a challenge.
    Answer {
        /// The station that sent the challenge.
        to: StationId,
        /// Its token.
        token: ChallengeToken,
    },
    /// The sender's session ends here.
    Goodbye,
    /// Confirms a goodbye.
    GoodbyeHeard {
        /// The station that said goodbye.
        to: StationId,
    },
}

impl Word {
    /// The kind of its chunk.
    pub fn kind(&self) -> Kind {
        match self {
            Word::Probe { .. } => Kind::Probe,
            Word::Echoes(_) => Kind::Echoes,
            Word::Challenge { .. } => Kind::Challenge,
            Word::Answer { .. } => Kind::Answer,
            Word::Goodbye => Kind::Goodbye,
            Word::GoodbyeHeard { .. } => Kind::GoodbyeHeard,
        }
    }

    /// Appends it to `frame` as the last chunk, without a probe's zeros.
    pub fn write_last(&self, frame: &mut Vec<u8>) {
        self.kind().begin_last(frame);
        match self {
            Word::Probe { round, before } => {
                frame.extend_from_slice(&round.to_be_bytes());
                frame.push(*before);
            }
            Word::Echoes(echoes) => {
                frame.push(echoes.len() as u8);
                for echo in echoes {
                    frame.extend_from_slice(&echo.round.to_be_bytes());
                    frame.extend_from_slice(&echo.len.to_be_bytes());
                }
            }
            Word::Challenge { to, token } | Word::Answer { to, token } => {
                write_station(*to, frame);
                frame.extend_from_slice(token);
            }
            Word::Goodbye => {}
            Word::GoodbyeHeard { to } => write_station(*to, frame),
        }
    }

    /// Parses a chunk; `None` if its kind is different, it is truncated, it has trailing bytes, or
    /// it echoes more than [`MTU_ECHOES_MAX`] probes.
    pub fn parse(chunk: Chunk<'_>) -> Option<Self> {
        chunk.read(|body| {
            let mut read = Reader(body);
            Some((Word::read(chunk.kind, &mut read)?, read.0))
        })
    }

    fn read(kind: Kind, read: &mut Reader<'_>) -> Option<Self> {
        match kind {
            Kind::Probe => Some(Word::Probe { round: read.u16()?, before: read.u8()? }),
            Kind::Echoes => {
                let count = usize::from(read.u8()?);
                let mut echoes = ArrayVec::new();
                for _ in 0..count {
                    echoes.try_push(Echo { round: read.u16()?, len: read.u16()? }).ok()?;
                }
                Some(Word::Echoes(echoes))
            }
            Kind::Challenge => Some(Word::Challenge { to: read.station()?, token: read.array()? }),
            Kind::Answer => Some(Word::Answer { to: read.station()?, token: read.array()? }),
            Kind::Goodbye => Some(Word::Goodbye),
            Kind::GoodbyeHeard => Some(Word::GoodbyeHeard { to: read.station()? }),
            _ => None,
        }
    }

    /// How many probes were sent just before the frame with these chunks.
    pub(crate) fn probes_before(chunks: &[u8]) -> u8 {
        match Chunks::find(chunks, Kind::Probe).and_then(Word::parse) {
            Some(Word::Probe { before, .. }) => before,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = Word> {
        let probe =
            (any::<u16>(), any::<u8>()).prop_map(|(round, before)| Word::Probe { round, before });
        let echo = (any::<u16>(), any::<u16>()).prop_map(|(round, len)| Echo { round, len });
        let echoes = proptest::collection::vec(echo, 0..=MTU_ECHOES_MAX)
            .prop_map(|echoes| Word::Echoes(echoes.into_iter().collect()));
        let to = || (1u16..=u16::MAX).prop_map(StationId);
        let challenge =
            (to(), any::<ChallengeToken>()).prop_map(|(to, token)| Word::Challenge { to, token });
        let answer =
            (to(), any::<ChallengeToken>()).prop_map(|(to, token)| Word::Answer { to, token });
        let heard = to().prop_map(|to| Word::GoodbyeHeard { to });
        prop_oneof![probe, echoes, challenge, answer, Just(Word::Goodbye), heard]
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]
        #[test]
        fn words_survive_the_wire(word in word(), zeros in 0usize..100) {
            let mut bytes = Vec::new();
            word.write_last(&mut bytes);
            let read = |bytes: &[u8]| Chunks::new(bytes).next().flatten().and_then(Word::parse);
            for len in 0..bytes.len() {
                prop_assert_eq!(read(&bytes[..len]), None);
            }
            bytes.resize(bytes.len() + zeros, 0);
            prop_assert_eq!(read(&bytes), Some(word));
        }
    }

    #[test]
    fn more_echoes_than_may_wait_are_refused() {
        let mut body = vec![MTU_ECHOES_MAX as u8 + 1];
        body.resize(200, 0);
        assert_eq!(Word::parse(Chunk { kind: Kind::Echoes, body: &body, is_last: true }), None);
    }
}
