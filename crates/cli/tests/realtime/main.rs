//! Measurements in real time: a program of its own, so that cargo runs no other tests beside them.

mod agreement;
mod hops;
mod lines;
#[path = "../it/support/mod.rs"]
mod support;
mod vegas;
