//! Torture from outside: that it runs clean, and that it bites.

mod delivery;
mod mesh;
mod planted;
