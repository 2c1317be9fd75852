//! The verbs that a build of the daemon alone leaves out: each says what it takes to have it.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::exit::Exit;

/// What follows a verb that is left out.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _given: Vec<OsString>,
}

fn refuse(verb: &str) -> ExitCode {
    eprintln!(
        "error: corridor {verb}: not included in this daemon-only build; \
         build with `cargo build --release --package corridor --features lab`"
    );
    Exit::Usage.into()
}

/// Stands for the demo.
pub mod demo {
    pub use super::Anything as Arguments;

    /// Says what is left out.
    pub fn run(_: &Arguments) -> super::ExitCode {
        super::refuse("demo")
    }
}

/// Stands for the lab.
pub mod lab {
    pub use super::Anything as LabArgs;

    /// Says what is left out.
    pub fn run(_: LabArgs) -> super::ExitCode {
        super::refuse("lab")
    }
}

/// Stands for what works on files of results.
pub mod results {
    pub use super::Anything as ResultsArgs;

    /// Says what is left out.
    pub fn run(_: &ResultsArgs) -> super::ExitCode {
        super::refuse("results")
    }
}

/// Stands for the simulator.
pub mod sim {
    pub use super::Anything as SimArgs;

    /// Says what is left out.
    pub fn run(_: SimArgs, _verbose: bool) -> super::ExitCode {
        super::refuse("sim")
    }
}
