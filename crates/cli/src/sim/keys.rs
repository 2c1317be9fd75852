//! `corridor sim keys`: the keys of plans and scenarios.

use crate::exit::{Exit, print};

/// Text before the keys in docs/plans.md.
const PREFACE: &str = "\
# Scenarios and plans

A plan describes either a radio or a line with runs on it (also called a scenario), or a network of
links or radios with flows; and further the swept parameters, the number of replications and the
output. `corridor lab run` runs it in real time, `corridor sim run` in virtual time. See
[crates/cli/scenarios](../crates/cli/scenarios), [plans](../plans) and
[experiments](../experiments) for complete files.

This page is the output of `corridor sim keys`, and
[corridor-plan.schema.json](../share/corridor-plan.schema.json) that of `corridor sim keys --schema`,
for editors that complete and check TOML. Both are generated from the types that parse the file.
Rates are in bits per second, as `12_000_000` or `\"12M\"`.
";

/// Arguments of `corridor sim keys`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the JSON schema, for use in editors, instead
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
