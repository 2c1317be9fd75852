//! Means with confidence intervals.

use corridor_scenario::StopRule;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::erf;

/// Quantile for a two-sided confidence level of 95 %.
const UPPER_QUANTILE: f64 = 0.975;
/// Rounding of quantiles: the functions they are computed from may differ in the last digit between
/// machines, but a stop rule must not.
const QUANTILE_DIGITS: f64 = 1e9;

/// Mean of a sample with its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Sample size, from 1.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half-width of the confidence interval; `None` for a single value.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// Estimate from these values, summed in this order; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let half_width = (values.len() > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            student_t(values.len() - 1, UPPER_QUANTILE) * (squares / (n - 1.0) / n).sqrt()
        });
        Some(Estimate { count: values.len() as u64, mean, half_width })
    }

    /// Half-width of the interval with this confidence level, between 0 and 1; `None` for a single
    /// value.
    pub fn half_width_at(&self, confidence: f64) -> Option<f64> {
        let degrees = usize::try_from(self.count).ok()?.checked_sub(1)?;
        let factor = student_t(degrees, (1.0 + confidence) / 2.0);
        Some(self.half_width? * (factor / student_t(degrees, UPPER_QUANTILE)))
    }

    /// The width of the interval, and the maximum that a rule allows: both relative to the mean, or
    /// both absolute; `None` if the interval is undefined. Equal values have a width of 0, which
    /// satisfies every rule.
    pub fn width_for(&self, rule: &StopRule) -> Option<(f64, f64)> {
        match (rule.ci95_ratio, rule.ci95_half_width) {
            (Some(most), _) => Some((self.ci95_ratio()?, most)),
            (None, Some(most)) => Some((self.half_width?, most)),
            (None, None) => None,
        }
    }

    /// Full width of the interval over the mean; `None` if undefined: for a single value, or for a
    /// mean of 0 with uncertainty.
    pub fn ci95_ratio(&self) -> Option<f64> {
        let width = 2.0 * self.half_width?;
        if width == 0.0 {
            return Some(0.0);
        }
        Some(width / self.mean.abs()).filter(|ratio| ratio.is_finite())
    }
}

/// Probability that a normally distributed value is at most this many standard deviations from its
/// mean: 0.95 for 1.96.
pub fn confidence_within(deviations: f64) -> f64 {
    erf(deviations / std::f64::consts::SQRT_2)
}

/// The factor on the standard error, for `degrees` degrees of freedom, from 1.
fn student_t(degrees: usize, upper_quantile: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees as f64) {
        Ok(student) => {
            (student.inverse_cdf(upper_quantile) * QUANTILE_DIGITS).round() / QUANTILE_DIGITS
        }
        Err(_) => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the tables of Student's distribution.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [(1, 12.706), (2, 4.303), (9, 2.262), (30, 2.042), (99, 1.984)] {
            let given = student_t(degrees, UPPER_QUANTILE);
            assert!((given - expected).abs() < 6e-4, "{degrees}: {given}");
        }
        let given = student_t(3, 0.9995);
        assert!((given - 12.924).abs() < 6e-4, "{given}");
    }

    #[test]
    fn the_interval_is_that_of_the_textbook() {
        // Mean 3, standard deviation sqrt(2.5), t = 2.776 for four degrees of freedom.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((estimate.count, estimate.mean), (5, 3.0));
        let half_width = estimate.half_width.unwrap();
        assert!((half_width - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-3, "{half_width}");
        assert_eq!(estimate.ci95_ratio(), Some(2.0 * half_width / 3.0));
        // The same with t = 8.610.
        let wide = estimate.half_width_at(0.999).unwrap();
        assert!((wide - 8.610 * (2.5f64 / 5.0).sqrt()).abs() < 1e-3, "{wide}");
        assert!((estimate.half_width_at(0.95).unwrap() - half_width).abs() < 1e-9);
    }

    #[test]
    fn a_normal_value_is_within_its_bounds_as_tables_have_it() {
        for (deviations, expected) in
            [(0.0, 0.0), (1.0, 0.682_689), (1.959_964, 0.95), (3.0, 0.997_3)]
        {
            let share = confidence_within(deviations);
            assert!((share - expected).abs() < 1e-6, "{deviations}: {share}");
        }
    }

    #[test]
    fn one_value_or_none_has_no_interval() {
        assert_eq!(Estimate::of(&[]), None);
        let single = Estimate::of(&[2.0]).unwrap();
        assert_eq!((single.half_width, single.half_width_at(0.999)), (None, None));
        assert_eq!(Estimate::of(&[0.0, 0.0]).unwrap().ci95_ratio(), Some(0.0));
        assert_eq!(Estimate::of(&[-1.0, 1.0]).unwrap().ci95_ratio(), None);
    }
}
