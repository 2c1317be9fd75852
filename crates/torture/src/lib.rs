//! Torture: stations on a network that does its worst, and what must hold all the same.
//!
//! Packets come out in order, at most once in a session, byte for byte; what does not come out is
//! accounted for, symbol by symbol; ranks only rise; queues, windows and budgets keep to their
//! bounds; what is forged is refused; and once the network is calm, everything comes to rest. All
//! of that is looked at after every event.
//!
//! A run is a function of its [`Scenario`], and a scenario one of its seed. One that fails is
//! shrunk by [`shrink`] to a smaller one that fails in the same way.
//!
//! | file | what it holds |
//! |---|---|
//! | `scenario`, `draw` | what a run is made of, and how it is drawn from a seed |
//! | `driver` | the run: stations, underlays, hosts, clocks |
//! | `underlay` | what stations of both drivers stand on |
//! | `network`, `adversary` | what happens to frames, and whoever forges them |
//! | `addresses` | who is where, who moves, and what goes where |
//! | `nonces` | that no frame is sealed as another was |
//! | `invariants`, `ledger`, `books` | what must hold, and where every packet is |
//! | `window_ledger`, `window_packet` | the same in window mode, and packets for it |
//! | `window_talk` | connections whose windows may be clamped |
//! | `mesh` | hubs and relays, which forward |
//! | `window_headers` | headers of TCP that were sent as differences, made whole |
//! | `subject` | a station, and faults planted to see the checks bite |
//! | `shrink`, `tally`, `coverage` | smaller scenarios; what runs came to, and touched |

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

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What did not hold, if anything.
    pub violation: Option<Violation>,
    /// Inputs to all stations.
    pub events: u64,
    /// Time of the network that went by, nanoseconds.
    pub simulated_ns: u64,
    /// What the run touched.
    pub coverage: Coverage,
}

/// Runs a scenario to its end or to the first violation. A panic of a station is one.
pub fn run(scenario: &Scenario) -> Outcome {
    run_traced(scenario, None)
}

/// Runs a scenario, telling what happens.
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
    // Whatever is left of a driver that was torn apart is only read for its counters.
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

/// What a run ended with, a panic being a violation too.
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
