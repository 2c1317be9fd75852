//! The standing of a peer with this station: one transition table, applied to everything that comes
//! from the peer, and to every change of this station's own session.

/// The relation between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No session of the peer has answered its challenge.
    Stranger,
    /// One has, and its frames are accepted; the peer has not accepted our session yet.
    Accepted,
    /// Both have accepted each other.
    Joined,
    /// The peer has said goodbye: its session is kept only to recognise further goodbyes.
    Gone,
}

/// What may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A fresh HELLO of the accepted session, which accepts our session or does not mention it.
    Hello { accepts_us: bool },
    /// Another session of the peer has answered its challenge.
    Answered { accepts_us: bool },
    /// A fresh frame of the accepted session, other than a goodbye.
    Frame,
    /// A fresh goodbye of the accepted session.
    Goodbye,
    /// Our own session is replaced.
    OwnSession,
}

impl Standing {
    /// The transition table; `None`: the event is refused.
    pub(super) fn after(self, event: Event) -> Option<Standing> {
        use Event::{Answered, Frame, Goodbye, Hello, OwnSession};
        use Standing::{Accepted, Gone, Joined, Stranger};
        Some(match (self, event) {
            // Whatever there was before, a session that has answered replaces it.
            (_, Answered { accepts_us: true }) => Joined,
            (_, Answered { accepts_us: false }) => Accepted,
            (Accepted, Hello { accepts_us: true }) => Joined,
            // Acceptance between these two sessions is final: a HELLO that was overtaken does not
            // undo it.
            (Accepted | Joined, Hello { .. } | Frame) => self,
            (Accepted | Joined | Gone, Goodbye) => Gone,
            (Joined, OwnSession) => Accepted,
            (Stranger | Accepted | Gone, OwnSession) => self,
            (Stranger, Hello { .. } | Frame | Goodbye) | (Gone, Hello { .. } | Frame) => {
                return None;
            }
        })
    }

    /// Whether the peer's frames are accepted.
    pub(super) fn is_accepted(self) -> bool {
        matches!(self, Standing::Accepted | Standing::Joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix_of_standings_and_events() {
        use Event::*;
        use Standing::*;
        let events = [
            Hello { accepts_us: false },
            Hello { accepts_us: true },
            Answered { accepts_us: false },
            Answered { accepts_us: true },
            Frame,
            Goodbye,
            OwnSession,
        ];
        const NO: Option<Standing> = None;
        let [stranger, accepted, joined, gone] = [Stranger, Accepted, Joined, Gone].map(Some);
        let expected = [
            (Stranger, [NO, NO, accepted, joined, NO, NO, stranger]),
            (Accepted, [accepted, joined, accepted, joined, accepted, gone, accepted]),
            (Joined, [joined, joined, accepted, joined, joined, gone, accepted]),
            (Gone, [NO, NO, accepted, joined, NO, gone, gone]),
        ];
        for (standing, after) in expected {
            assert_eq!(events.map(|event| standing.after(event)), after, "{standing:?}");
        }
    }
}
