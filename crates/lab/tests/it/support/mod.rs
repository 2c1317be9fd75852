//! Support for the tests in real time.
#![allow(dead_code, reason = "not every test file uses all of it")]

use std::any::Any;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use corridor_lab::{LabError, Options};
use corridor_scenario::{Row, Scenario, expand};
use corridor_testing::realtime::{Measured, until_it_holds};

/// Whether the tests can run; prints a note if not.
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

/// What disturbed a run of the current measurement.
static SPOILT: Mutex<Option<String>> = Mutex::new(None);

fn spoilt() -> MutexGuard<'static, Option<String>> {
    SPOILT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records whether the machine was quiet enough for a run, and the remarks about it.
pub fn note(is_sound: bool, notes: &[String]) {
    if !is_sound {
        *spoilt() = Some(notes.join("; "));
    }
}

/// Measures in real time, one test at a time, and repeats if a busy machine disturbed it.
pub fn measure(test: &str, check: impl Fn()) {
    if !can_run() {
        return;
    }
    let _alone = alone();
    until_it_holds(test, |_| {
        *spoilt() = None;
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(&check)) {
            Ok(()) => Measured::Holds,
            Err(panic) => match spoilt().take() {
                Some(why) => Measured::Spoilt(why),
                None => Measured::Fails(said(panic.as_ref())),
            },
        }
    });
}

/// The message of a check that panicked.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or("no message").to_owned()
}

/// Real-time runs disturb each other on few processors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
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
    let row = corridor_lab::run(scenario, &run, &options, &AtomicBool::new(false))?;
    note(!corridor_lab::is_spoilt(&row), &row.notes);
    Ok(row)
}
