//! What words about paths and presence come to, and how a station takes its leave: two tables.

use crate::config::StationId;
use crate::wire::Word;

/// What a peer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It asks whether a station is where this goes.
    Challenge,
    /// It repeats what it was asked.
    Answer,
    /// It goes.
    Goodbye,
    /// It has heard that a station goes.
    GoodbyeHeard,
    /// Something of the path's MTU.
    Path,
}

/// What is done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It is answered.
    Answer,
    /// The driver learns what was repeated.
    Tell,
    /// The peer is gone, and told that this was heard.
    Part,
    /// One peer less needs to hear that this station goes.
    NoteHeard,
    /// It is for the path.
    FollowPath,
    /// It is for somebody else.
    Refuse,
}

impl Said {
    /// What a word says, and to whom, if it is for one station.
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

/// How far a station is with its leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// It stays.
    #[default]
    Present,
    /// It says goodbye.
    Leaving,
    /// It has said so often enough.
    Silent,
}

/// What moves it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is to end.
    Close,
    /// The time for a goodbye has come.
    Due,
    /// The same, and all were said.
    AllSaid,
}

impl Stage {
    /// The transition table; whether a goodbye is said.
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
