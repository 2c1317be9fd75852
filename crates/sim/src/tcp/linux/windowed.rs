//! Windowed maximum and minimum filters that keep three samples: Nichols's algorithm, as in the
//! kernel.

/// A value and when it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: u64,
    value: u64,
}

/// The approximate maximum over a window: best, second and third choice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMax([Sample; 3]);

impl WindowedMax {
    pub(super) fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Takes a value at `at`, which must not decrease; `window` is the window's length.
    pub(super) fn take(&mut self, window: u64, at: u64, value: u64) {
        let sample = Sample { at, value };
        let choices = &mut self.0;
        if value >= choices[0].value || at - choices[2].at > window {
            *choices = [sample; 3];
            return;
        }
        if value >= choices[1].value {
            (choices[1], choices[2]) = (sample, sample);
        } else if value >= choices[2].value {
            choices[2] = sample;
        }
        self.move_up(window, sample);
    }

    /// Drops samples that are too old, and refreshes the second and third choice as the window
    /// passes.
    fn move_up(&mut self, window: u64, sample: Sample) {
        let choices = &mut self.0;
        let passed = sample.at - choices[0].at;
        if passed > window {
            *choices = [choices[1], choices[2], sample];
            if sample.at - choices[0].at > window {
                *choices = [choices[1], choices[2], sample];
            }
        } else if choices[1].at == choices[0].at && passed > window / 4 {
            (choices[1], choices[2]) = (sample, sample);
        } else if choices[2].at == choices[1].at && passed > window / 2 {
            choices[2] = sample;
        }
    }
}

/// The approximate minimum over a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowedMin(WindowedMax);

impl WindowedMin {
    /// `None` before the first value.
    pub(super) fn get(&self) -> Option<u64> {
        let lowest = u64::MAX - self.0.get();
        (lowest < u64::MAX).then_some(lowest)
    }

    /// As [`WindowedMax::take`].
    pub(super) fn take(&mut self, window: u64, at: u64, value: u64) {
        self.0.take(window, at, u64::MAX - value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_leaves_with_the_window() {
        let mut min = WindowedMin::default();
        assert_eq!(min.get(), None);
        min.take(10, 0, 7);
        for at in 1..=10 {
            min.take(10, at, 20 + at);
            assert_eq!(min.get(), Some(7), "{at}");
        }
        min.take(10, 11, 40);
        assert!(min.get().is_some_and(|least| (21..=40).contains(&least)), "{min:?}");
    }

    #[test]
    fn the_largest_leaves_with_the_window() {
        let mut max = WindowedMax::default();
        max.take(10, 0, 50);
        for at in 1..=10 {
            max.take(10, at, 20 + at);
            assert_eq!(max.get(), 50, "{at}");
        }
        max.take(10, 11, 5);
        assert!((20..50).contains(&max.get()), "{}", max.get());
        max.take(10, 12, 60);
        assert_eq!(max.get(), 60);
    }
}
