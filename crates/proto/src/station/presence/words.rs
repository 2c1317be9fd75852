//! Messages about paths and presence and their effects, and how a station says goodbye: two tables.

use crate::config::StationId;
use crate::wire::Word;

/// What a peer's message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It asks whether a station receives at this address.
    Challenge,
    /// It repeats a challenge's token.
    Answer,
    /// It leaves.
    Goodbye,
    /// It confirms a goodbye.
    GoodbyeHeard,
    /// It is about the path's MTU.
    Path,
}

/// What to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Answer it.
    Answer,
    /// Pass the token to the driver.
    Tell,
    /// The peer is gone; confirm its goodbye.
    Part,
    /// One peer fewer has to confirm our goodbye.
    NoteHeard,
    /// Pass it on to the path.
    FollowPath,
    /// It is for another station.
    Refuse,
}

impl Said {
    /// The meaning of a message, and its receiver if it is for one station.
    pub(super) fn of(word: &Word) -> (Self, Option<StationId>) {
        match *word {
            Word::Challenge { to, .. } => (Said::Challenge, Some(to)),
            Word::Answer { to, .. } => (Said::Answer, Some(to)),
            Word::Goodbye => (Said::Goodbye, None),
            Word::GoodbyeHeard { to } => (Said::GoodbyeHeard, Some(to)),
            Word::Probe { .. } | Word::Echoes(_) => (Said::Path, None),
        }
    }

    /// The table.
    pub(super) fn on(self, is_for_us: bool) -> Act {
        match (self, is_for_us) {
            (Said::Challenge, true) => Act::Answer,
            (Said::Answer, true) => Act::Tell,
            (Said::GoodbyeHeard, true) => Act::NoteHeard,
            (Said::Goodbye, _) => Act::Part,
            (Said::Path, _) => Act::FollowPath,
            (Said::Challenge | Said::Answer | Said::GoodbyeHeard, false) => Act::Refuse,
        }
    }
}

/// The stages of leaving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// It is present.
    #[default]
    Present,
    /// It says goodbye.
    Leaving,
    /// It has said goodbye often enough.
    Silent,
}

/// What changes the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The station is to be closed.
    Close,
    /// A goodbye is due.
    Due,
    /// A goodbye is due, and all were sent.
    AllSaid,
}

impl Stage {
    /// The transition table; also returns whether to send a goodbye.
    pub(super) fn after(self, cause: Cause) -> (Stage, bool) {
        match (self, cause) {
            (Stage::Present, Cause::Close) => (Stage::Leaving, false),
            (Stage::Leaving, Cause::Due) => (Stage::Leaving, true),
            (Stage::Leaving, Cause::AllSaid) => (Stage::Silent, false),
            (Stage::Present, Cause::Due | Cause::AllSaid)
            | (Stage::Leaving, Cause::Close)
            | (Stage::Silent, Cause::Close | Cause::Due | Cause::AllSaid) => (self, false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix_of_words_and_whom_they_are_for() {
        let expected = [
            (Said::Challenge, [Act::Answer, Act::Refuse]),
            (Said::Answer, [Act::Tell, Act::Refuse]),
            (Said::Goodbye, [Act::Part, Act::Part]),
            (Said::GoodbyeHeard, [Act::NoteHeard, Act::Refuse]),
            (Said::Path, [Act::FollowPath, Act::FollowPath]),
        ];
        for (said, acts) in expected {
            assert_eq!([true, false].map(|is_for_us| said.on(is_for_us)), acts, "{said:?}");
        }
    }

    #[test]
    fn the_whole_matrix_of_stages_and_causes() {
        use Cause::*;
        use Stage::*;
        let expected = [
            (Present, [(Leaving, false), (Present, false), (Present, false)]),
            (Leaving, [(Leaving, false), (Leaving, true), (Silent, false)]),
            (Silent, [(Silent, false), (Silent, false), (Silent, false)]),
        ];
        for (stage, after) in expected {
            assert_eq!([Close, Due, AllSaid].map(|cause| stage.after(cause)), after, "{stage:?}");
        }
    }
}
