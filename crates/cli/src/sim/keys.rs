//! `corridor sim keys`: what a plan or a scenario may hold.

use crate::exit::{Exit, print};

/// What stands before the keys in docs/plans.md.
const PREFACE: &str = "\
# Scenarios and plans

A plan is a radio or a line and the runs on it, which is also called a scenario, or a network of links
or radios with flows; and what is swept, how often, and what is kept. `corridor lab run` makes it in
real time, `corridor sim run` in virtual time.
[crates/cli/scenarios](../crates/cli/scenarios), [plans](../plans) and
[experiments](../experiments) have whole files.

This page is what `corridor sim keys` prints, and
[corridor-plan.schema.json](../share/corridor-plan.schema.json) what `corridor sim keys --schema`
prints, for editors that complete and check TOML: both come from the types that read the file. Rates
are bits per second, as `12_000_000` or `\"12M\"`.
";

/// Arguments of `corridor sim keys`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the JSON schema, for editors, instead
    #[arg(long)]
    schema: bool,
}

/// Prints the keys.
pub fn keys(arguments: &Arguments) -> Exit {
    let schema = corridor_scenario::schema();
    match arguments.schema {
        true => print(&schema.to_string()),
        false => print(&format!("{PREFACE}{}", schema.markdown())),
    }
}
