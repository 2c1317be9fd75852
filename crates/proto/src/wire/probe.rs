//! The bodies that find out the path's MTU: probes, and their echoes (RFC 8899).
//!
//! A probe's body is `0 (1), round (2), before (1)`, then zeros up to the length that is tried: the
//! tag covers them, so that a probe cut short is none. `before` tells how many frames sent just
//! before it were probes of the same round: if they are missing, they may have been too long, and
//! are not counted as losses. Echoes are `1 (1), count (1)`, then `round (2), length (2)` of each.

use arrayvec::ArrayVec;

use super::Reader;
use crate::bounds::MTU_ECHOES_MAX;

const PROBE: u8 = 0;
const ECHOES: u8 = 1;

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
        prop_oneof![probe, echoes]
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
