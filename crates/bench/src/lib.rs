//! What the benches share: how they end, the machine that they run on, and networks of wires.

pub mod frame;
pub mod machine;
pub mod outcome;
pub mod wires;
