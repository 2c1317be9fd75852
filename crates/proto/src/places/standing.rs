//! What an address is to a peer, and what a frame from there comes to: one table.

use super::Certainty;
use crate::wire::ChallengeToken;

/// What an address is to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The peer is taken to be there, and has shown that it is, or the configuration says so.
    Proven,
    /// The peer is taken to be there, and nobody else has heard what it was told.
    Alone,
    /// The peer is taken to be there, and others may have heard as well.
    Contested,
    /// The peer is taken to be elsewhere.
    Elsewhere,
    /// Nobody knows where the peer is.
    Unknown,
    /// The peer is elsewhere, by the configuration of an underlay where stations stay.
    Barred,
}

/// What is done about a frame from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    /// The peer answers from where it is taken to be.
    NoteHome(ChallengeToken),
    /// It has shown that it is there.
    Prove,
    /// It answers: from where it was asked, and long enough?
    Weigh(ChallengeToken),
    /// It is asked there, and taken to be there if nobody knows better.
    Ask,
    /// As many bytes may go there.
    Credit,
    /// It is taken to be there from here on.
    Find,
    /// Handshakes are answered there too.
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
