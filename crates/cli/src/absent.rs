//! Commands that a daemon-only build leaves out: each reports which feature it needs.

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

/// Replaces the demo.
pub mod demo {
    pub use super::Anything as Arguments;

    /// Reports what is left out.
    pub fn run(_: &Arguments) -> super::ExitCode {
        super::refuse("demo")
    }
}

/// Replaces the lab.
pub mod lab {
    pub use super::Anything as LabArgs;

    /// Reports what is left out.
    pub fn run(_: LabArgs) -> super::ExitCode {
        super::refuse("lab")
    }
}

/// Replaces the commands for result files.
pub mod results {
    pub use super::Anything as ResultsArgs;

    /// Reports what is left out.
    pub fn run(_: &ResultsArgs) -> super::ExitCode {
        super::refuse("results")
    }
}

/// Replaces the simulator.
pub mod sim {
    pub use super::Anything as SimArgs;

    /// Reports what is left out.
    pub fn run(_: SimArgs, _verbose: bool) -> super::ExitCode {
        super::refuse("sim")
    }
}
