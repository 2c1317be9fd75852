//! A path of their own between two stations, as a scenario spells it and as the air models it.

use core::time::Duration;
use std::path::Path as FilePath;

use corridor_air::{LineConfig, MAX_QUEUE_FRAMES, PipeConfig, QueueLimit};

use crate::error::ScenarioError;
use crate::expand::{Run, erasure};
use crate::file::{Duplex, JitterShape, MediumTable, Path, RunTable, Scenario, Wire};
use crate::link::both_ways;

impl MediumTable {
    /// Stands for a table that the file does not have: no radio has this rate.
    pub(crate) fn unsaid() -> Self {
        MediumTable {
            duplex: Duplex::Full,
            rate_bps: 0,
            overhead_us: 0.0,
            rtt_ms: 0.0,
            queue_frames: 1,
            drops_when_full: true,
            jitter_ms: 0.0,
            jitter_shape: JitterShape::default(),
            retry_limit: 0,
            hops: 1,
            relays: 1,
        }
    }

    /// What tables and figures show for a line where they expect a medium.
    fn of_line(pipes: &[PipeConfig; 2]) -> Self {
        let [forth, back] = pipes;
        let queue_frames = match forth.queue {
            QueueLimit::Packets(packets) => packets,
            QueueLimit::Bytes(bytes) => (bytes / 1_500) as usize,
            QueueLimit::Time(most) => {
                (forth.rate.mean_bps() * most.as_secs_f64() / 12_000.0) as usize
            }
        };
        MediumTable {
            rate_bps: forth.rate.mean_bps().round() as u64,
            rtt_ms: (forth.delay + back.delay).as_secs_f64() * 1e3,
            queue_frames: queue_frames.clamp(1, MAX_QUEUE_FRAMES),
            ..MediumTable::unsaid()
        }
    }
}

impl Scenario {
    /// Checks and converts the line, if there is one; traces are looked up in `directory`.
    pub(crate) fn settle(&mut self, directory: &FilePath) -> Result<(), ScenarioError> {
        let unsaid = MediumTable::unsaid();
        match (&self.line, self.medium == unsaid) {
            (None, true) => {
                let expected = "[medium], a radio, or [line]";
                Err(ScenarioError::missing("medium", expected))
            }
            (None, false) => Ok(()),
            (Some(_), false) => {
                Err(ScenarioError::value("medium", "a table", "nothing beside [line]"))
            }
            (Some(line), true) => {
                let pipes = both_ways("line", line, directory)?;
                self.medium = MediumTable::of_line(&pipes);
                self.pipes = Some(Box::new(pipes));
                Ok(())
            }
        }
    }

    /// The pipes between S and D in each direction, if they are joined by a line.
    pub fn pipes(&self) -> Option<&[PipeConfig; 2]> {
        self.pipes.as_deref()
    }

    /// Round trip of the propagation alone.
    pub fn rtt(&self) -> Duration {
        Duration::from_nanos((self.medium.rtt_ms * 1e6).round() as u64)
    }
}

/// The line of a run, if the scenario has one; `header_bytes` are the IP headers that its frames
/// lack.
pub fn line_config(
    scenario: &Scenario,
    run: &Run,
    seed: u64,
    header_bytes: u32,
) -> Option<LineConfig> {
    let mut pipes = scenario.pipes()?.clone();
    let e3 = run.erasures.e3;
    for (pipe, ratio) in pipes.iter_mut().zip([e3, run.e3_back.unwrap_or(e3)]) {
        if ratio > 0.0 {
            pipe.erasure = erasure(ratio, run.burst_frames);
        }
    }
    let replication = run.replication;
    Some(LineConfig { pipes, header_bytes, pushes_back: false, seed, replication, draw: 0 })
}

/// A line joins exactly two stations, and its losses are given only once.
pub(crate) fn check_line(
    scenario: &Scenario,
    index: usize,
    table: &RunTable,
) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("run[{index}].{name}");
    let Some(pipes) = scenario.pipes() else {
        return Ok(());
    };
    if table.path.iter().any(|&path| path == Path::CodedHelper) {
        let expected = "a path without a helper: nobody overhears a line";
        return Err(ScenarioError::value(field("path"), Path::CodedHelper, expected));
    }
    if table.path.iter().any(|&path| path == Path::Relay) {
        let expected = "a path without relays: a line joins two stations";
        return Err(ScenarioError::value(field("path"), Path::Relay, expected));
    }
    if table.wire == Wire::Veth {
        return Err(ScenarioError::value(field("wire"), "veth", "radio, with [line]"));
    }
    let loses = pipes.iter().any(|pipe| pipe.erasure.loss_ratio() > 0.0);
    let said = table.e3.iter().map(|&ratio| ("e3", ratio));
    let mut said = said.chain(table.e3_back.map(|ratio| ("e3_back", ratio)));
    match said.find(|&(_, ratio)| loses && ratio > 0.0) {
        Some((name, ratio)) => {
            let expected = "0: the line has erasures of its own";
            Err(ScenarioError::value(field(name), ratio, expected))
        }
        None => Ok(()),
    }
}
