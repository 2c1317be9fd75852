//! What the benches share: how they end, and the machine that they run on.

pub mod frame;
pub mod machine;
