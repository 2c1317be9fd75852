//! How far two key exchanges are, the own and the peer's, and what a message comes to: one table
//! for either, which all messages that were looked into go by.

/// How far the peer's exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theirs {
    /// It has not begun one.
    Nothing,
    /// Its initiation was answered, and the response may have got lost.
    Responded,
    /// It has used the secret.
    Done,
}

/// An initiation that only the peer can have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initiated {
    /// The one that was answered, once more.
    Again,
    /// One that is newer than all before.
    Newer,
    /// One from before the newest.
    Older,
}

/// What is done with an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A secret is offered by a response.
    Respond,
    /// The same response goes again.
    Repeat,
    /// It is a recording.
    Ignore,
}

impl Theirs {
    /// The transition table.
    pub(super) fn after(self, heard: Initiated) -> (Theirs, Reply) {
        match (self, heard) {
            (_, Initiated::Newer) => (Theirs::Responded, Reply::Respond),
            (Theirs::Responded, Initiated::Again) => (Theirs::Responded, Reply::Repeat),
            // Who has the secret has no reason to begin again as before.
            (Theirs::Nothing | Theirs::Done, Initiated::Again) | (_, Initiated::Older) => {
                (self, Reply::Ignore)
            }
        }
    }
}

/// How far the own exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// None is under way.
    Idle,
    /// An initiation waits for its response.
    Waiting,
}

/// A response that only the peer can have made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Responded {
    /// To the initiation that waits.
    This,
    /// To the last one that came to its end.
    Settled,
    /// To none of these.
    Neither,
}

/// What a response comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Both have a secret, if the response is one.
    Agree,
    /// The peer has heard nothing under the secret.
    Unheard,
    /// It is refused.
    Refuse,
}

impl Ours {
    /// The transition table.
    pub(super) fn after(self, heard: Responded) -> (Ours, Outcome) {
        match (self, heard) {
            (Ours::Waiting, Responded::This) => (Ours::Idle, Outcome::Agree),
            (_, Responded::Settled) => (self, Outcome::Unheard),
            (Ours::Idle, Responded::This) | (_, Responded::Neither) => (self, Outcome::Refuse),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_matrix_of_the_peers_exchange() {
        use Initiated::*;
        use Reply::*;
        use Theirs::*;
        let expected = [
            (Nothing, [(Nothing, Ignore), (Responded, Respond), (Nothing, Ignore)]),
            (Responded, [(Responded, Repeat), (Responded, Respond), (Responded, Ignore)]),
            (Done, [(Done, Ignore), (Responded, Respond), (Done, Ignore)]),
        ];
        for (theirs, after) in expected {
            assert_eq!([Again, Newer, Older].map(|heard| theirs.after(heard)), after, "{theirs:?}");
        }
    }

    #[test]
    fn the_whole_matrix_of_the_own_exchange() {
        use super::Responded::*;
        use Ours::*;
        use Outcome::*;
        let expected = [
            (Idle, [(Idle, Refuse), (Idle, Unheard), (Idle, Refuse)]),
            (Waiting, [(Idle, Agree), (Waiting, Unheard), (Waiting, Refuse)]),
        ];
        for (ours, after) in expected {
            let heard = [This, Settled, Neither];
            assert_eq!(heard.map(|heard| ours.after(heard)), after, "{ours:?}");
        }
    }
}
