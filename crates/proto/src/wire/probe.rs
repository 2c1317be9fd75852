//! The bodies of what two stations say of the path between them: probes of its MTU and their echoes
//! (RFC 8899), challenges of addresses and their answers (RFC 9000, Section 8.2), goodbyes.
//!
//! A probe's body is `0 (1), round (2), before (1)`, then zeros up to the length that is tried: the
//! tag covers them, so that a probe cut short is none. `before` tells how many frames sent just
//! before it were probes of the same round: if they are missing, they may have been too long, and
//! are not counted as losses. Echoes are `1 (1), count (1)`, then `round (2), length (2)` of each.
//!
//! A challenge is `2 (1), to (2), token (8)`, its answer `3 (1), to (2), token (8)`. A goodbye is
//! `4 (1)`, for whoever hears it, and `5 (1), to (2)` says that it was heard.

use arrayvec::ArrayVec;

use super::{HEADER_LEN, Reader, TAG_LEN, write_station};
use crate::bounds::MTU_ECHOES_MAX;
use crate::config::StationId;

const PROBE: u8 = 0;
const ECHOES: u8 = 1;
const CHALLENGE: u8 = 2;
const ANSWER: u8 = 3;
const GOODBYE: u8 = 4;
const GOODBYE_HEARD: u8 = 5;

/// Random bytes that only who hears at an address can repeat.
pub type ChallengeToken = [u8; 8];

/// Bytes of a frame with a challenge, or an answer.
pub const PATH_CHALLENGE_LEN: usize = HEADER_LEN + 1 + 2 + size_of::<ChallengeToken>() + TAG_LEN;

/// A probe that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Its round.
    pub round: u16,
    /// Bytes of the whole frame.
    pub len: u16,
}

/// Body of a [`Kind::Probe`](super::Kind::Probe).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeBody {
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

impl ProbeBody {
    /// Appends the body to `out`, without the zeros behind a probe.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ProbeBody::Probe { round, before } => {
                out.push(PROBE);
                out.extend_from_slice(&round.to_be_bytes());
                out.push(*before);
            }
            ProbeBody::Echoes(echoes) => {
                out.extend_from_slice(&[ECHOES, echoes.len() as u8]);
                for echo in echoes {
                    out.extend_from_slice(&echo.round.to_be_bytes());
                    out.extend_from_slice(&echo.len.to_be_bytes());
                }
            }
            ProbeBody::Challenge { to, token } => write_token(CHALLENGE, *to, token, out),
            ProbeBody::Answer { to, token } => write_token(ANSWER, *to, token, out),
            ProbeBody::Goodbye => out.push(GOODBYE),
            ProbeBody::GoodbyeHeard { to } => {
                out.push(GOODBYE_HEARD);
                write_station(*to, out);
            }
        }
    }

    /// Reads a body; `None` for one of another kind, that is cut short, or that echoes more than
    /// [`MTU_ECHOES_MAX`] probes.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut read = Reader(body);
        match read.u8()? {
            PROBE => Some(ProbeBody::Probe { round: read.u16()?, before: read.u8()? }),
            ECHOES => {
                let count = usize::from(read.u8()?);
                let mut echoes = ArrayVec::new();
                for _ in 0..count {
                    echoes.try_push(Echo { round: read.u16()?, len: read.u16()? }).ok()?;
                }
                Some(ProbeBody::Echoes(echoes))
            }
            CHALLENGE => Some(ProbeBody::Challenge { to: read.station()?, token: read.array()? }),
            ANSWER => Some(ProbeBody::Answer { to: read.station()?, token: read.array()? }),
            GOODBYE => Some(ProbeBody::Goodbye),
            GOODBYE_HEARD => Some(ProbeBody::GoodbyeHeard { to: read.station()? }),
            _ => None,
        }
    }

    /// How many probes were sent just before the frame with this body.
    pub(crate) fn probes_before(body: &[u8]) -> u8 {
        match ProbeBody::parse(body) {
            Some(ProbeBody::Probe { before, .. }) => before,
            _ => 0,
        }
    }
}

fn write_token(body: u8, to: StationId, token: &ChallengeToken, out: &mut Vec<u8>) {
    out.push(body);
    write_station(to, out);
    out.extend_from_slice(token);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body() -> impl Strategy<Value = ProbeBody> {
        let probe = (any::<u16>(), any::<u8>())
            .prop_map(|(round, before)| ProbeBody::Probe { round, before });
        let echo = (any::<u16>(), any::<u16>()).prop_map(|(round, len)| Echo { round, len });
        let echoes = proptest::collection::vec(echo, 0..=MTU_ECHOES_MAX)
            .prop_map(|echoes| ProbeBody::Echoes(echoes.into_iter().collect()));
        let to = || (1u16..=u16::MAX).prop_map(StationId);
        let challenge = (to(), any::<ChallengeToken>())
            .prop_map(|(to, token)| ProbeBody::Challenge { to, token });
        let answer =
            (to(), any::<ChallengeToken>()).prop_map(|(to, token)| ProbeBody::Answer { to, token });
        let heard = to().prop_map(|to| ProbeBody::GoodbyeHeard { to });
        prop_oneof![probe, echoes, challenge, answer, Just(ProbeBody::Goodbye), heard]
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]
        #[test]
        fn probes_and_echoes_survive_the_wire(body in body(), zeros in 0usize..100) {
            let mut bytes = Vec::new();
            body.write(&mut bytes);
            for len in 0..bytes.len() {
                prop_assert_eq!(ProbeBody::parse(&bytes[..len]), None);
            }
            bytes.resize(bytes.len() + zeros, 0);
            prop_assert_eq!(ProbeBody::parse(&bytes), Some(body));
        }
    }

    #[test]
    fn more_echoes_than_may_wait_are_refused() {
        let mut bytes = vec![ECHOES, MTU_ECHOES_MAX as u8 + 1];
        bytes.resize(200, 0);
        assert_eq!(ProbeBody::parse(&bytes), None);
    }
}
