//! Relays between neighbours that pass each other their frames, and forged frames.

mod chain;
mod forged;
mod held_up;
mod in_order;
mod random;
mod repair;
