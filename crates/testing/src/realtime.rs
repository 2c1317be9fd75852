//! Measurements in real time, on machines that others may use: what is repeated, and what counts.
//!
//! A measurement says of itself whether the machine spoilt it, by what has nothing to do with what
//! is measured: how late the emulator was, how long threads waited for a processor. Only what fails
//! on a machine that was quiet enough counts against the code, so that a busy machine never makes a
//! test red, and a wrong program always does.

/// Times that a measurement fails on a quiet machine before the test does: neither lateness nor
/// waiting shows all that a shared machine does.
pub const FAILURES: u32 = 4;
/// Times that it is made in all, while the machine spoils it.
pub const ATTEMPTS: u32 = 8;

/// What one measurement came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measured {
    /// All holds.
    Holds,
    /// Something does not hold, and the machine did not spoil it: what.
    Fails(String),
    /// Something does not hold, and the machine was too busy to tell why: what it was busy with.
    Spoilt(String),
}

/// How a test ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed(String),
    /// Never measured on a quiet machine often enough to tell.
    Absent(String),
}

/// Measures until all holds; `measure` is given the number of the attempt, from 1.
///
/// Prints `absent:` and why where the machine is too busy to tell.
///
/// # Panics
/// If it failed [`FAILURES`] times on a quiet machine, with what the last failure said.
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

    /// How a test ends that comes to these in turn, the last one for ever, and how often it has
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
