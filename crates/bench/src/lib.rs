//! Code shared by the benches: exit, the machine they run on, networks of wires, random draws, and
//! distributions.

pub mod distributions;
pub mod frame;
pub mod machine;
pub mod outcome;
pub mod parallel;
pub mod quantile;
pub mod random;
pub mod wires;
