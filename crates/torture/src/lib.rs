//! Torture tests: stations on a network that does its worst, and the invariants that must hold.
//!
//! Packets are delivered in order, at most once in a session, and unaltered; what is not delivered
//! is accounted for, symbol by symbol; ranks only rise; queues, windows and budgets stay within
//! their bounds; forged frames are rejected; and once the network is calm, everything comes to
//! rest. All of this is checked after every event.
//!
//! A run is a function of its [`Scenario`], and a scenario is a function of its seed. [`shrink`]
//! reduces a failing scenario to a smaller one that fails in the same way.
//!
//! | file | what it holds |
//! |---|---|
//! | `scenario`, `draw` | ingredients of a run, and how they are drawn from a seed |
//! | `driver` | the run: stations, underlays, hosts, clocks |
//! | `underlay` | stations' interfaces, the same for both drivers |
//! | `network`, `adversary` | what happens to frames, and adversaries that forge them |
//! | `addresses` | addresses that change, and what goes where |
//! | `nonces` | checks that no two frames are sealed with the same nonce |
//! | `invariants`, `ledger`, `books` | the invariants, and where every packet is |
//! | `window_ledger`, `window_packet` | the same for window mode, and packets for it |
//! | `window_talk` | connections whose windows may be clamped |
//! | `mesh` | hubs and relays, which forward |
//! | `window_headers` | restores TCP headers that were sent as differences |
//! | `subject` | a station, and faults planted to show that the checks work |
//! | `shrink`, `tally`, `coverage` | smaller scenarios; results and features of many runs |

use std::panic::{AssertUnwindSafe, catch_unwind};

use corridor_base::Time;

mod addresses;
mod adversary;
mod books;
mod coverage;
mod draw;
mod driver;
mod invariants;
mod ledger;
mod mesh;
mod network;
mod nonces;
mod parts;
mod scenario;
mod shrink;
mod subject;
mod tally;
mod underlay;
mod window_headers;
mod window_ledger;
mod window_packet;
mod window_talk;

pub use addresses::{Addresses, Move};
pub use coverage::{Coverage, Feature};
pub use driver::Trace;
pub use invariants::{Invariant, Violation};
pub use mesh::{Mesh, MeshKind, MeshMode, MeshRelays, Removal};
pub use scenario::{
    Coding, End, Forgery, Help, Jump, MtuChange, Network, Outage, OwnKeys, PPM, Pair, Restart,
    Scenario, ScenarioError, Stall, WindowCoding,
};
pub use shrink::{Shrunk, shrink};
pub use subject::{Fault, Plant};
pub use tally::{FAILURES_KEPT_MAX, Failure, Tally};
#[doc(hidden)]
pub use window_headers::HeaderTwin;

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The violation, if there was any.
    pub violation: Option<Violation>,
    /// Inputs to all stations.
    pub events: u64,
    /// Virtual time that passed, nanoseconds.
    pub simulated_ns: u64,
    /// What the run exercised.
    pub coverage: Coverage,
}

/// Runs a scenario to its end or to the first violation. A station's panic is a violation.
pub fn run(scenario: &Scenario) -> Outcome {
    run_traced(scenario, None)
}

/// Runs a scenario, and reports its events to `trace`.
pub fn run_traced<'a>(scenario: &'a Scenario, trace: Option<Trace<'a>>) -> Outcome {
    if let Some(mesh) = &scenario.mesh {
        let mut driver = mesh::MeshDriver::new(scenario, mesh, trace);
        let outcome = catch_unwind(AssertUnwindSafe(|| driver.run()));
        let violation = violation(outcome, driver.now());
        if violation.is_none() {
            driver.count();
        }
        let (events, coverage) = (driver.events, driver.coverage.clone());
        let simulated_ns = driver.now().as_nanos();
        return Outcome { violation, events, simulated_ns, coverage };
    }
    let mut driver = driver::Driver::new(scenario, trace);
    // After a panic, only the driver's counters are read.
    let outcome = catch_unwind(AssertUnwindSafe(|| driver.run()));
    let violation = violation(outcome, driver.now());
    if violation.is_none() {
        driver.count();
    }
    Outcome {
        violation,
        events: driver.events,
        simulated_ns: driver.now().as_nanos(),
        coverage: driver.coverage,
    }
}

/// The violation at the end of a run; a panic is one too.
fn violation(
    outcome: Result<Result<(), Violation>, Box<dyn std::any::Any + Send>>,
    now: Time,
) -> Option<Violation> {
    match outcome {
        Ok(result) => result.err(),
        Err(payload) => Some(Violation {
            invariant: Invariant::Panic,
            at_ns: now.as_nanos(),
            text: panic_text(payload.as_ref()),
        }),
    }
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}
