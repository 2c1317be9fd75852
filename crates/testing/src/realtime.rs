//! Measurements in real time on shared machines: which are repeated, and which count.
//!
//! A measurement reports whether the machine disturbed it, judged by what is independent of the
//! measured quantity: how late the emulator was, how long threads waited for a processor. Only
//! failures on a sufficiently quiet machine count against the code, so that a busy machine never
//! makes a test fail, and a faulty program always does.

/// Number of failures on a quiet machine before the test fails: neither lateness nor waiting shows
/// every disturbance on a shared machine.
pub const FAILURES: u32 = 4;
/// Maximum number of measurements while the machine disturbs them.
pub const ATTEMPTS: u32 = 8;

/// The result of one measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// All checks pass.
    Holds,
    /// A check failed, and the machine did not disturb it: which.
    Fails(String),
    /// A check failed, and the machine was too busy to tell why: the disturbance.
    Spoilt(String),
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed(String),
    /// Not measured on a quiet machine often enough to tell.
    Absent(String),
}

/// Measures until all checks pass; `measure` gets the number of the attempt, from 1.
///
/// Prints `absent:` and the reason if the machine is too busy to tell.
///
/// # Panics
/// If it failed [`FAILURES`] times on a quiet machine, with the message of the last failure.
pub fn until_it_holds(test: &str, measure: impl FnMut(u32) -> Measured) {
    match judge(measure) {
        Verdict::Passed => {}
        Verdict::Failed(what) => panic!("{test}: {what}"),
        Verdict::Absent(why) => println!("absent: {test}: this machine is too busy: {why}"),
    }
}

fn judge(mut measure: impl FnMut(u32) -> Measured) -> Verdict {
    let (mut failures, mut reason) = (0, String::new());
    for attempt in 1..=ATTEMPTS {
        match measure(attempt) {
            Measured::Holds => return Verdict::Passed,
            Measured::Fails(what) => {
                println!("attempt {attempt} failed: {what}");
                failures += 1;
                if failures == FAILURES {
                    return Verdict::Failed(what);
                }
            }
            Measured::Spoilt(why) => {
                println!("attempt {attempt} was spoilt: {why}");
                reason = why;
            }
        }
    }
    Verdict::Absent(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a test with these outcomes in turn, the last one forever, and how often it
    /// measured.
    fn ending(course: &[Measured]) -> (Verdict, u32) {
        let mut measured = 0;
        let verdict = judge(|attempt| {
            measured = attempt;
            course[(attempt as usize - 1).min(course.len() - 1)].clone()
        });
        (verdict, measured)
    }

    fn fails() -> Measured {
        Measured::Fails("slow".to_owned())
    }

    fn spoilt() -> Measured {
        Measured::Spoilt("late".to_owned())
    }

    #[test]
    fn what_holds_once_passes_at_once() {
        assert_eq!(ending(&[Measured::Holds]), (Verdict::Passed, 1));
        assert_eq!(ending(&[spoilt(), fails(), Measured::Holds]), (Verdict::Passed, 3));
    }

    #[test]
    fn what_is_wrong_on_a_quiet_machine_fails() {
        assert_eq!(ending(&[fails()]), (Verdict::Failed("slow".to_owned()), FAILURES));
        let late = [spoilt(), spoilt(), spoilt(), fails()];
        assert_eq!(ending(&late), (Verdict::Failed("slow".to_owned()), 3 + FAILURES));
    }

    #[test]
    fn a_busy_machine_is_no_failure() {
        assert_eq!(ending(&[spoilt()]), (Verdict::Absent("late".to_owned()), ATTEMPTS));
        assert_eq!(
            ending(&[fails(), fails(), fails(), spoilt()]).0,
            Verdict::Absent("late".into())
        );
    }
}
