//! How fast frames may go: what feedback shows of the path, and what follows from it.

pub(crate) mod delivered;
pub(crate) mod filter;
pub(crate) mod policy;
#[cfg(test)]
mod policy_study;
#[cfg(test)]
mod policy_tests;
pub(crate) mod spread;
