//! `corridor sim run`.

use std::process::ExitCode;

use corridor_scenario::Engine;

use crate::lab;

/// Arguments of `corridor sim run`.
pub type Arguments = lab::RunArgs;

/// Runs `corridor sim run`.
pub fn run(arguments: &Arguments) -> ExitCode {
    lab::run_in(Engine::Sim, arguments)
}
