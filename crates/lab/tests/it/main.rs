//! The lab in real time, between network namespaces.

mod beside;
mod cell;
mod hops;
mod radio;
mod support;
mod wires;
