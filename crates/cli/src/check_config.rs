//! `corridor check-config`: checks a configuration file, and does nothing else; or prints which
//! keys one may contain.

use std::path::{Path, PathBuf};

use corridor_node::NodeConfig;

use crate::exit::{Exit, print, report_node, warn};

/// Text before the keys in docs/configuration.md.
const PREFACE: &str = "\
# Configuration of a node

`corridor up FILE` reads one TOML file; `corridor check-config FILE` checks it and reports errors.
This page is the output of `corridor check-config --keys`, and
[corridor.schema.json](../share/corridor.schema.json) that of `--schema`, for editors that complete
and check TOML. Both are generated from the types that parse the file. See
[examples](../examples) for complete files.

A file needs `[station]`, `[security]`, `[underlay]`, one `[[peer]]` per other station and, except
for helpers, `[tun]`; everything else is optional. Rates are in bits per second, as `10_000_000` or
`\"10M\"`. Redundancy needs no tuning: it adapts to the measured loss.
";

/// Arguments of `corridor check-config`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file
    #[arg(required_unless_present_any = ["keys", "schema"])]
    file: Option<PathBuf>,
    /// Print a reference of all configuration keys
    #[arg(long, conflicts_with_all = ["file", "schema"])]
    keys: bool,
    /// Print the JSON schema of configuration files, for use in editors
    #[arg(long, conflicts_with = "file")]
    schema: bool,
}

/// Checks a configuration file, or prints which keys one may contain.
pub fn check_config(arguments: &Arguments) -> Exit {
    match &arguments.file {
        Some(file) => check(file),
        None if arguments.schema => print(&corridor_node::schema().to_string()),
        None => print(&format!("{PREFACE}{}", corridor_node::schema().markdown())),
    }
}

fn check(file: &Path) -> Exit {
    let check = || {
        let config = NodeConfig::load(file)?;
        let mtu = corridor_node::check(&config)?;
        Ok((config, mtu))
    };
    let (config, mtu) = match check() {
        Ok(sound) => sound,
        Err(error) => return report_node(&error),
    };
    warn(&config.warnings);
    let tun = config.tun.as_ref().map_or("no TUN device".into(), |tun| {
        format!("TUN device {} with an MTU of {mtu} bytes", tun.name)
    });
    let (id, role) = (config.id.0, config.role_name());
    println!("{}: OK: station {id}, {role}, {tun}", file.display());
    Exit::Success
}
