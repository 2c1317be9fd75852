//! Stations, the medium between them and their nodes, for loads other than the lab's own.

use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::net::Ipv4Addr;

use corridor_scenario::{DESTINATION, ETHERNET_MTU, Path, Run, SOURCE, Scenario, UnderlayKind};

use crate::clock;
use crate::emulator::Emulator;
use crate::error::LabError;
use crate::netns::Inside;
use crate::node::{INNER_SUBNET, Nodes, OUTER_SUBNET};
use crate::priority::{self, Raised};
use crate::run::{Options, make_stations, radios, start_emulator};
use crate::station::{self, QueueSplit, RadioConfig, Station};

/// An end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// S.
    Source,
    /// D.
    Destination,
}

/// Two stations on one hop, ready for a load. The thread that created it must stay alive, since the
/// nodes die with it.
pub struct Stage {
    stations: Vec<Station>,
    emulator: Option<Emulator>,
    nodes: Option<Nodes>,
    _raised: Raised,
}

/// What remains when a stage is taken down.
#[derive(Clone, Debug, Default)]
pub struct StageReport {
    /// How late the medium was at the 99th percentile, seconds.
    pub lateness_p99_s: Option<f64>,
    /// Counters of the nodes at S and D, as they write them.
    pub stats: Vec<serde_json::Value>,
}

/// A thread inside a station's network.
pub struct Guest<T>(Inside<T>);

impl<T> Guest<T> {
    /// Waits for its result.
    ///
    /// # Errors
    /// If the station's network could not be entered.
    pub fn join(self) -> Result<T, LabError> {
        self.0.join()
    }
}

impl Stage {
    /// Sets up a run's stations on one hop with a medium, and waits until the tunnel is up. Call
    /// [`crate::prepare`] first.
    ///
    /// # Errors
    /// See [`LabError`].
    pub fn new(
        scenario: &Scenario,
        run: &Run,
        options: &Options,
        stop: &AtomicBool,
    ) -> Result<Self, LabError> {
        let raised = priority::raise_stations(run.lab.wire);
        let split = QueueSplit::of(&scenario.medium);
        let subnet = match (run.path, run.underlay) {
            (Path::Kernel, _) => Some(INNER_SUBNET),
            (_, UnderlayKind::Udp) => Some(OUTER_SUBNET),
            (_, UnderlayKind::Ethernet) => None,
        };
        let radio = RadioConfig {
            ring_frames: split.ring,
            mtu: ETHERNET_MTU,
            stations: run.stations(),
            hops: 1,
            subnet,
        };
        let stations = make_stations(run, radio)?;
        let emulator = start_emulator(scenario, run, split, radios(&stations, &[])?)?;
        let mut nodes = None;
        if run.path != Path::Kernel {
            let mut started = Nodes::start(&options.binary, run, scenario, &stations)?;
            started.wait_until_up(&stations, stop)?;
            nodes = Some(started);
        }
        Ok(Stage { stations, emulator, nodes, _raised: raised })
    }

    /// The address of an end, as the load uses it.
    pub fn address(&self, side: Side) -> Ipv4Addr {
        station::address(INNER_SUBNET, index(side))
    }

    /// Starts a thread inside an end's network, where its sockets then are.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn spawn<T: Send + 'static>(
        &self,
        side: Side,
        name: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Guest<T>, LabError> {
        self.stations[index(side)].namespace.spawn(name, move || Ok(work())).map(Guest)
    }

    /// Says that the load begins now, and how much of it to measure.
    pub fn measure(&self, warm_up: Duration, span: Duration) {
        let begin = clock::now();
        if let Some(emulator) = &self.emulator {
            emulator.measure(begin, begin + warm_up, begin + warm_up + span);
        }
    }

    /// Takes the stage down.
    ///
    /// # Errors
    /// If a node ended by itself.
    pub fn finish(self) -> Result<StageReport, LabError> {
        let reports = self.nodes.map(Nodes::stop).transpose()?.unwrap_or_default();
        let report = self.emulator.map(Emulator::finish).transpose()?;
        let late = report.filter(|report| !report.lateness.is_empty());
        let late = late.map(|report| report.lateness.value_at_quantile(0.99) as f64 / 1e9);
        let stats = reports.into_iter().filter_map(|report| report.stats).collect();
        Ok(StageReport { lateness_p99_s: late, stats })
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Source => SOURCE,
        Side::Destination => DESTINATION,
    }
}
