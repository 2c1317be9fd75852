//! Code shared by the benches: exit, the machine they run on, and networks of wires.

pub mod frame;
pub mod machine;
pub mod outcome;
pub mod wires;
