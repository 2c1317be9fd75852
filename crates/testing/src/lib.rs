//! Shared by the tests of all crates.
//!
//! Property tests: cases are drawn from one fixed seed, and a failing test prints it with the
//! command that repeats it. Measurements in real time: [`realtime`].
//!
//! A test says `#![proptest_config(corridor_testing::cases!(256))]`.
//!
//! `make soak` draws from fresh seeds. A case that fails there becomes a test with its values.
#![forbid(unsafe_code)]

pub mod realtime;

use proptest::test_runner::{Config, RngSeed};

/// The seed from which cases are drawn, unless `PROPTEST_RNG_SEED` gives another.
pub const SEED: u64 = 2014;

/// A property test's configuration, with this many cases: see [`config`].
#[macro_export]
macro_rules! cases {
    ($cases:expr) => {
        $crate::config($cases, env!("CARGO_PKG_NAME"), module_path!())
    };
}

/// This many cases from the fixed seed, or from that of `PROPTEST_RNG_SEED`. Prints the seed, and
/// the command that runs a module's tests with it; both are shown if a test fails.
///
/// Writes nothing to files: what failed in one place must fail everywhere, so a known failure
/// becomes a test in the code.
pub fn config(cases: u32, package: &str, module: &str) -> Config {
    let mut config = Config { cases, failure_persistence: None, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    println!("{}", replay(&config.rng_seed, package, module));
    config
}

fn replay(seed: &RngSeed, package: &str, module: &str) -> String {
    // Test names do not include their program.
    let module = module.split_once("::").map_or("", |(_, module)| module);
    format!("seed {seed}: PROPTEST_RNG_SEED={seed} cargo test -p {package} {module}")
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::TestRunner;

    use super::*;

    fn drawn(config: Config) -> Vec<u64> {
        let mut runner = TestRunner::new(config);
        let values = 0..u64::MAX;
        (0..4).map(|_| values.new_tree(&mut runner).unwrap().current()).collect()
    }

    #[test]
    fn the_same_seed_draws_the_same_cases() {
        assert_eq!(drawn(cases!(3)), drawn(cases!(3)));
        let other = Config { rng_seed: RngSeed::Fixed(SEED + 1), ..cases!(3) };
        assert_ne!(drawn(cases!(3)), drawn(other));
    }

    #[test]
    fn the_command_names_seed_package_and_module() {
        let told = replay(&RngSeed::Fixed(7), "corridor-codec", "it::window_channel");
        let command = "PROPTEST_RNG_SEED=7 cargo test -p corridor-codec window_channel";
        assert_eq!(told, format!("seed 7: {command}"));
    }
}
