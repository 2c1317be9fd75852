//! The standing of an address with respect to a peer, and the effect of a frame from there: one
//! table.

use super::Certainty;
use crate::wire::ChallengeToken;

/// The standing of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The peer's present address, and proven or configured.
    Proven,
    /// The peer's present address, and nobody else has heard what was sent to the peer.
    Alone,
    /// The peer's present address, but others may have heard that too.
    Contested,
    /// Another address than the peer's present one.
    Elsewhere,
    /// No address of the peer is known.
    Unknown,
    /// Another address than the configured one, on an underlay where stations do not move.
    Barred,
}

/// What to do about a frame from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    /// The peer answers from its present address.
    NoteHome(ChallengeToken),
    /// The address is proven.
    Prove,
    /// The peer answers: check whether it was challenged there, and long enough ago.
    Weigh(ChallengeToken),
    /// Challenge the address, and adopt it if none is known.
    Ask,
    /// As many bytes may be sent there.
    Credit,
    /// Adopt the address.
    Find,
    /// Answer handshakes there too.
    LookThere,
}

impl Standing {
    /// The table.
    pub(super) fn on(self, certainty: Certainty) -> Act {
        use Certainty::{Answer, Handshake, Initiation, Session};
        match (self, certainty) {
            (Standing::Proven, Answer(token)) => Act::NoteHome(token),
            (Standing::Proven, Session | Handshake | Initiation) => Act::Nothing,
            (Standing::Barred, Answer(_) | Session | Handshake | Initiation) => Act::Nothing,
            (
                Standing::Alone | Standing::Contested | Standing::Elsewhere | Standing::Unknown,
                Answer(token),
            ) => Act::Weigh(token),
            (Standing::Alone, Session) => Act::Prove,
            (Standing::Contested | Standing::Elsewhere | Standing::Unknown, Session) => Act::Ask,
            (Standing::Alone | Standing::Contested, Handshake | Initiation) => Act::Credit,
            (Standing::Elsewhere, Handshake | Initiation) => Act::LookThere,
            (Standing::Unknown, Handshake | Initiation) => Act::Find,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix_of_standings_and_certainties() {
        use Act::*;
        let token = [7; 8];
        let certainties = [
            Certainty::Answer(token),
            Certainty::Session,
            Certainty::Handshake,
            Certainty::Initiation,
        ];
        let expected = [
            (Standing::Proven, [NoteHome(token), Nothing, Nothing, Nothing]),
            (Standing::Alone, [Weigh(token), Prove, Credit, Credit]),
            (Standing::Contested, [Weigh(token), Ask, Credit, Credit]),
            (Standing::Elsewhere, [Weigh(token), Ask, LookThere, LookThere]),
            (Standing::Unknown, [Weigh(token), Ask, Find, Find]),
            (Standing::Barred, [Nothing, Nothing, Nothing, Nothing]),
        ];
        for (standing, acts) in expected {
            assert_eq!(certainties.map(|it| standing.on(it)), acts, "{standing:?}");
        }
    }
}
