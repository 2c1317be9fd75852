//! Where a sender stands with regard to losses, and the events that lead from one state to another.

/// A state, in the kernel's order: from `Recovery` on packets are being repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Something has arrived beyond a gap, which may be reordering.
    Disorder,
    /// The network said that it is congested; the window shrinks.
    Cwr,
    /// Packets are lost; the window shrinks, and they are sent again.
    Recovery,
    /// The timer has expired; the window is built up anew.
    Loss,
}
