//! The native part of the Python package `corridor`: conversion only.
//!
//! Arrays are passed as numpy's own memory in both directions, never as lists; single symbols are
//! returned as `bytes`. The Python package handles shapes and defaults; any remaining error is a
//! `ValueError` that names the argument, its value, and what was expected.

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

    /// Version of the package and the workspace.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    /// Hash of the simulator's sources: equal hashes, equal results.
    #[pymodule_export]
    const CODE_VERSION: &str = corridor_sim::CODE_VERSION;
    /// Commit of the simulator; "unknown" if it was built without a repository.
    #[pymodule_export]
    const COMMIT: &str = corridor_sim::COMMIT;
    /// Upper limit to which the budgets clip erasure ratios.
    #[pymodule_export]
    const ERASURE_RATIO_MAX: f64 = corridor_proto::budget::ERASURE_RATIO_MAX;
}
