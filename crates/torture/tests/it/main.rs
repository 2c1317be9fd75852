//! The torture tests from outside: they pass, and they catch faults.

mod delivery;
mod mesh;
mod planted;
