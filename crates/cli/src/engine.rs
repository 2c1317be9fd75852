//! What makes runs: the lab in real time, or the simulator in virtual time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use corridor_lab::{LabError, Options, Tunnel};
use corridor_scenario::{Engine, Row, Run, Scenario};
use corridor_sim::SimError;
use nix::sys::signal::{SigSet, Signal};

use crate::exit::Exit;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// In the lab.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// In the simulator.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Another program was to make it.
    #[error("{} did not measure {what}", by.display())]
    NotMeasured {
        /// The other program.
        by: PathBuf,
        /// The case.
        what: String,
    },
}

impl EngineError {
    /// The corresponding exit code.
    pub fn exit(&self) -> Exit {
        match self {
            EngineError::Lab(LabError::NotPermitted { .. }) => Exit::PermissionDenied,
            _ if self.is_interruption() => Exit::Interrupted,
            _ => Exit::Failure,
        }
    }

    /// Whether the user asked to stop.
    pub fn is_interruption(&self) -> bool {
        matches!(self, EngineError::Lab(LabError::Interrupted))
    }
}

/// Makes runs in either engine.
pub struct Maker {
    /// How the lab makes runs; `None` in the simulator.
    lab: Option<Options>,
    stop: Arc<AtomicBool>,
}

impl Maker {
    /// From here on, signals end a run, not the process. The lab must be prepared before.
    ///
    /// # Errors
    /// The system does not reveal this program's path.
    pub fn new(engine: Engine) -> Result<Self, EngineError> {
        let lab = match engine {
            Engine::Lab => Some(Options::from_environment()?),
            Engine::Sim => None,
        };
        Ok(Maker { lab, stop: stop_on_signals() })
    }

    /// Checks whether the user asked to stop.
    ///
    /// # Errors
    /// [`LabError::Interrupted`] if so.
    pub fn check(&self) -> Result<(), EngineError> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(LabError::Interrupted.into()),
            false => Ok(()),
        }
    }

    /// Approximate duration of a run.
    pub fn time_needed(&self, run: &Run) -> Duration {
        match self.lab {
            Some(_) => corridor_lab::time_needed(run),
            // A tenth of a second, or less.
            None => Duration::ZERO,
        }
    }

    /// Makes a run.
    ///
    /// # Errors
    /// See [`LabError`] and [`SimError`].
    pub fn make(&self, scenario: &Scenario, run: &Run) -> Result<Row, EngineError> {
        self.make_with(scenario, run, None)
    }

    /// Makes a run whose nodes, in the lab, are another program than usual.
    ///
    /// # Errors
    /// See [`LabError`] and [`SimError`].
    pub fn make_with(
        &self,
        scenario: &Scenario,
        run: &Run,
        binary: Option<&Path>,
    ) -> Result<Row, EngineError> {
        match &self.lab {
            Some(usual) => {
                let other = binary.map(|binary| Options { binary: binary.to_owned() });
                let options = other.as_ref().unwrap_or(usual);
                Ok(corridor_lab::run(scenario, run, options, &self.stop)?)
            }
            None => {
                self.check()?;
                Ok(corridor_sim::run_radio(scenario, run)?)
            }
        }
    }
}

impl Maker {
    /// Makes a run through an external tunnel, in the lab.
    ///
    /// # Errors
    /// See [`LabError`].
    pub fn make_through(
        &self,
        scenario: &Scenario,
        run: &Run,
        tunnel: &Tunnel,
    ) -> Result<Row, EngineError> {
        Ok(corridor_lab::run_tunnel(scenario, run, tunnel, &self.stop)?)
    }
}

/// Sets the flag at the first SIGINT or SIGTERM; a second one ends the process.
pub fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    // Threads started from here on inherit the mask, so that only the one below gets the signals.
    if signals.thread_block().is_ok() {
        let flag = Arc::clone(&stop);
        thread::spawn(move || {
            while signals.wait().is_ok() {
                if flag.swap(true, Ordering::Relaxed) {
                    std::process::exit(Exit::Interrupted as i32);
                }
            }
        });
    }
    stop
}
