//! How a peer and this station stand to each other: one table, which all that comes of the peer,
//! and every change of the own session, goes by.

/// What there is between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No session of the peer's has answered its challenge.
    Stranger,
    /// One has, and its frames are taken; the peer does not accept the own session yet.
    Accepted,
    /// Both have accepted each other.
    Joined,
    /// The peer has said goodbye: its session is kept only to hear that again.
    Gone,
}

/// What may change that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A fresh HELLO of the accepted session, which accepts the own one or says nothing of it.
    Hello { accepts_us: bool },
    /// Another session of the peer's has answered its challenge.
    Answered { accepts_us: bool },
    /// A fresh frame of the accepted session that is no goodbye.
    Frame,
    /// A fresh goodbye of it.
    Goodbye,
    /// The own session is another one from here on.
    OwnSession,
}

impl Standing {
    /// The transition table; `None`: what came is refused.
    pub(super) fn after(self, event: Event) -> Option<Standing> {
        use Event::{Answered, Frame, Goodbye, Hello, OwnSession};
        use Standing::{Accepted, Gone, Joined, Stranger};
        Some(match (self, event) {
            // Whatever there was before, a session that has answered takes its place.
            (_, Answered { accepts_us: true }) => Joined,
            (_, Answered { accepts_us: false }) => Accepted,
            (Accepted, Hello { accepts_us: true }) => Joined,
            // Between these two sessions it is for good: an overtaken HELLO does not undo it.
            (Accepted | Joined, Hello { .. } | Frame) => self,
            (Accepted | Joined | Gone, Goodbye) => Gone,
            (Joined, OwnSession) => Accepted,
            (Stranger | Accepted | Gone, OwnSession) => self,
            (Stranger, Hello { .. } | Frame | Goodbye) | (Gone, Hello { .. } | Frame) => {
                return None;
            }
        })
    }

    /// Whether frames of the peer are taken.
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
