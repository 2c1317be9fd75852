//! Source symbols that are not acknowledged, as the sender knows them.

use corridor_base::Time;

/// A source symbol that is not acknowledged.
pub(crate) struct Source {
    pub(crate) added_at: Time,
    /// Frame that carried it last; `None`: none of this session.
    pub(crate) counter: Option<u32>,
    pub(crate) packets: u16,
    pub(crate) fate: Fate,
}

/// What is known of a source symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// On its way, or told of too vaguely.
    Unknown,
    /// The receiver said that it needs it, or silence does.
    Needed,
    /// The receiver said that it does not need it: it has it, or a coded symbol that stands for it.
    Received,
    /// It said so, but what stands for it may be about a symbol that was given up since.
    Doubtful,
}
