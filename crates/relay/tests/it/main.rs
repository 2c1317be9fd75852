//! Relays between neighbours that hand each other their frames, and frames that somebody forged.

mod chain;
mod forged;
mod held_up;
mod in_order;
mod random;
mod repair;
