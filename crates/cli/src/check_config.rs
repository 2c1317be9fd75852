//! `corridor check-config`: reads a configuration file, and does nothing else.

use std::path::PathBuf;

use corridor_node::NodeConfig;

use crate::Exit;
use crate::up::report;

/// Arguments of `corridor check-config`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Configuration file
    file: PathBuf,
}

/// Says whether a configuration file is sound.
pub fn check_config(arguments: &Arguments) -> Exit {
    let check = || {
        let config = NodeConfig::load(&arguments.file)?;
        let mtu = corridor_node::check(&config)?;
        Ok((config, mtu))
    };
    let (config, mtu) = match check() {
        Ok(sound) => sound,
        Err(error) => return report(error),
    };
    for warning in &config.warnings {
        eprintln!("corridor: warning: {warning}");
    }
    let file = arguments.file.display();
    let tun = config.tun.as_ref().map_or("no TUN device".into(), |tun| {
        format!("TUN device {} with an MTU of {mtu} bytes", tun.name)
    });
    println!("{file}: sound: station {}, {}, {tun}", config.id.0, config.role_name());
    Exit::Success
}
