//! The bodies of what two stations say of the path between them: probes of its MTU and their echoes
//! (RFC 8899), challenges of addresses and their answers (RFC 9000, Section 8.2), goodbyes.
//!
//! A probe is `round (2), before (1)`, then zeros up to the length that is tried: the tag covers
//! them, so that a probe cut short is none. `before` tells how many frames sent just before it were
//! probes of the same round: if they are missing, they may have been too long, and are not counted
//! as losses. Echoes are `count (1)`, then `round (2), length (2)` of each.
//!
//! A challenge and its answer are `to (2), token (8)`. A goodbye, for all that hear it, has no
//! body, and that it was heard is `to (2)`.

use arrayvec::ArrayVec;

use super::{Chunk, Chunks, Kind, OVERHEAD_LEN, Reader, write_station};
use crate::bounds::MTU_ECHOES_MAX;
use crate::config::StationId;

/// Random bytes that only who hears at an address can repeat.
pub type ChallengeToken = [u8; 8];

/// Bytes of a frame with a challenge, or an answer.
pub const PATH_CHALLENGE_LEN: usize = OVERHEAD_LEN + 2 + size_of::<ChallengeToken>();

/// A probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Its round.
    pub round: u16,
    /// Bytes of the whole frame.
    pub len: u16,
}

/// What stations say of the path and of themselves, each in a chunk of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Please echo this frame.
    Probe {
        /// Its round.
        round: u16,
        /// Probes of this round sent just before it.
        before: u8,
    },
    /// These probes have arrived.
    Echoes(ArrayVec<Echo, MTU_ECHOES_MAX>),
    /// Please repeat this token, from where you are.
    Challenge {
        /// Who is meant.
        to: StationId,
        /// What is to be repeated.
        token: ChallengeToken,
    },
    /// The answer.
    Answer {
        /// Who has asked.
        to: StationId,
        /// What it said.
        token: ChallengeToken,
    },
    /// The sender's session ends here.
    Goodbye,
    /// A goodbye was heard.
    GoodbyeHeard {
        /// Whose.
        to: StationId,
    },
}

impl Word {
    /// What chunk it is.
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

    /// Appends it to `frame` as the last chunk, without the zeros behind a probe.
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

    /// Reads a chunk; `None` for one of another kind, that is cut short, that has something behind
    /// it, or that echoes more than [`MTU_ECHOES_MAX`] probes.
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
