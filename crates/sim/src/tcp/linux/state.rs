//! A sender's states of loss recovery.

/// A state, in the kernel's order: from `Recovery` on, packets are being repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing is wrong.
    #[default]
    Open,
    /// Packets arrived beyond a gap, perhaps only reordered.
    Disorder,
    /// The network has marked congestion; the window shrinks.
    Cwr,
    /// Packets are lost; the window shrinks, and they are retransmitted.
    Recovery,
    /// The retransmission timer has expired; the window is built up anew.
    Loss,
}
