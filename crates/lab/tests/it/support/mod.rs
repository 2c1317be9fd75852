//! What the tests in real time have in common.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock};

use corridor_lab::{LabError, Options};
use corridor_scenario::{Row, Scenario, expand};

/// Whether the tests can run; says so when they cannot.
pub fn can_run() -> bool {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let refused = REFUSED.get_or_init(|| corridor_lab::prepare().err().map(|e| e.to_string()));
    match refused {
        Some(reason) if std::env::var_os("CORRIDOR_REQUIRE_NET").is_some_and(|v| v == "1") => {
            panic!("CORRIDOR_REQUIRE_NET=1, but {reason}")
        }
        Some(reason) => println!("skipped: {reason}"),
        None => {}
    }
    refused.is_none()
}

/// Times a measurement is repeated before it counts as wrong.
const ATTEMPTS: u32 = 4;

/// Measures in real time, alone among these tests. What the machine spoils when it is busy with
/// something else comes right when it is measured again; what is wrong stays wrong.
pub fn measure(check: impl Fn()) {
    if !can_run() {
        return;
    }
    let _alone = alone();
    for attempt in 1..ATTEMPTS {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&check)).is_ok() {
            return;
        }
        println!("attempt {attempt} failed, perhaps on a busy machine: once more");
    }
    check();
}

/// Runs in real time disturb each other on few processors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub fn scenario(medium: &str, run: &str) -> Scenario {
    let text = format!(
        "name = 'test'\nseed = 7\n[medium]\nduplex = 'full'\nrate_bps = 12_000_000\nrtt_ms = 4\n\
         queue_frames = 50\n{medium}\n[[run]]\n{run}\n"
    );
    Scenario::parse(&text).expect("a test's scenario is sound")
}

pub fn try_run(scenario: &Scenario, binary: &Path) -> Result<Row, LabError> {
    let run = expand(scenario).expect("a test's scenario is sound").remove(0);
    let options = Options { binary: binary.to_owned() };
    corridor_lab::run(scenario, &run, &options, &AtomicBool::new(false))
}
