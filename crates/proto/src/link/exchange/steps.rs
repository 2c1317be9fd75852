//! The states of the two key exchanges, our own and the peer's, and the result of each message: one
//! transition table for each, applied to every message that was examined.

/// State of the peer's exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theirs {
    /// It has not initiated.
    Nothing,
    /// Its initiation was answered; the response may have been lost.
    Responded,
    /// It has used the secret.
    Done,
}

/// An authentic initiation of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initiated {
    /// The one that was answered, repeated.
    Again,
    /// One that is newer than all before.
    Newer,
    /// One that is older than the newest.
    Older,
}

/// What to do with an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Offer a secret in a response.
    Respond,
    /// Send the same response again.
    Repeat,
    /// Ignore it: it is a replay.
    Ignore,
}

impl Theirs {
    /// The transition table.
    pub(super) fn after(self, heard: Initiated) -> (Theirs, Reply) {
        match (self, heard) {
            (_, Initiated::Newer) => (Theirs::Responded, Reply::Respond),
            (Theirs::Responded, Initiated::Again) => (Theirs::Responded, Reply::Repeat),
            // A peer that has the secret has no reason to repeat its initiation.
            (Theirs::Nothing | Theirs::Done, Initiated::Again) | (_, Initiated::Older) => {
                (self, Reply::Ignore)
            }
        }
    }
}

/// State of our own exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    /// None is in progress.
    Idle,
    /// An initiation waits for its response.
    Waiting,
}

/// An authentic response of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Responded {
    /// To the initiation that waits.
    This,
    /// To the last one that was completed.
    Settled,
    /// To neither of these.
    Neither,
}

/// The result of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Both have a secret, if the response is valid.
    Agree,
    /// The peer has received nothing under the secret.
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
