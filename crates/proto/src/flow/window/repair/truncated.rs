//! Distributions without their improbable tails.

/// Less probable cases are left out.
pub(super) const NEGLIGIBLE: f64 = 1e-7;

/// Leaves out improbable cases at the end, but keeps at least one.
pub(super) fn trim_end<T>(cases: &mut Vec<T>, probability: impl Fn(&T) -> f64) {
    while cases.len() > 1 && cases.last().is_some_and(|last| probability(last) < NEGLIGIBLE) {
        cases.pop();
    }
}

/// Leaves out improbable cases at the beginning, but keeps at least one; returns how many it left
/// out.
pub(super) fn trim_begin<T>(cases: &mut Vec<T>, probability: impl Fn(&T) -> f64) -> usize {
    let rare = cases.iter().take_while(|&case| probability(case) < NEGLIGIBLE).count();
    let rare = rare.min(cases.len() - 1);
    cases.drain(..rare);
    rare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_ends_go_and_one_case_stays() {
        let mut cases = vec![0.0, 1e-9, 0.5, 1e-9, 0.5, 1e-9];
        trim_end(&mut cases, |&case| case);
        assert_eq!(trim_begin(&mut cases, |&case| case), 2);
        assert_eq!(cases, [0.5, 1e-9, 0.5]);
        let mut rare = vec![0.0, 0.0];
        trim_end(&mut rare, |&case| case);
        assert_eq!((trim_begin(&mut rare, |&case| case), rare), (0, vec![0.0]));
    }
}
