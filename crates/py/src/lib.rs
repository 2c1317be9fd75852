//! What the Python package `corridor` calls: conversion only.
//!
//! Arrays are numpy's own memory on both sides of the border, never lists; single symbols come out
//! as `bytes`. Shapes and defaults are the package's matter; what is wrong all the same is a
//! `ValueError` that says which argument, what it is, and what was expected.

mod budget;
mod codec;
mod error;
mod sim;
mod window;

/// The module `corridor._native`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::budget::{optimum, playncool};
    #[pymodule_export]
    use super::codec::{BlockDecoder, BlockEncoder, Recoder, draw_vectors, vector_bytes};
    #[pymodule_export]
    use super::sim::PlanRuns;
    #[pymodule_export]
    use super::window::{WindowDecoder, WindowEncoder, expand_repair_keys, expand_seeds};

    /// Version of the package, which is that of the workspace.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Hash of the simulator's sources: equal hashes, equal results.
    #[pymodule_export]
    const CODE_VERSION: &str = corridor_sim::CODE_VERSION;
    /// Commit of the simulator; "unknown" where it was built without a repository.
    #[pymodule_export]
    const COMMIT: &str = corridor_sim::COMMIT;
    /// Erasure ratios above this are taken for it by the budgets.
    #[pymodule_export]
    const ERASURE_RATIO_MAX: f64 = corridor_proto::budget::ERASURE_RATIO_MAX;
}
