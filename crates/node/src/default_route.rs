//! A default route through the tunnel, while the tunnel's own frames use the earlier routes. Done
//! as by `wg-quick`:
//!
//! 1. The default route is in a table of its own.
//! 2. A rule sends everything to that table that does not carry the mark of the tunnel's own
//!    datagrams.
//! 3. An earlier rule gives precedence to all other routes of the main table, such as those to
//!    neighbours.
//!
//! Unlike routes, rules do not vanish with the device. They have a protocol number of ours and the
//! table number of the device's name, so that rules left by a killed daemon can be found at the
//! next start.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::TunConfig;
use crate::error::NodeError;
use crate::netlink::{self, Rule};

/// Tables, and marks with the same number, are numbered from here, by the device's name: "Co".
const TABLES: u32 = 0x436f_0000;
/// Before the rule for the main table, 32766, and those of others that refer to the main table.
const PRIORITY_MAIN: u32 = 5_300;
const PRIORITY_TUNNEL: u32 = 5_301;

/// The mark of the tunnel's own datagrams, which is also the number of its table.
pub(crate) fn mark(tun: &TunConfig) -> Option<u32> {
    (!tun.routes_of(true).is_empty()).then(|| table(&tun.name))
}

fn table(name: &str) -> u32 {
    // FNV-1a, folded to 16 bits.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    TABLES | (hash >> 16 ^ hash & 0xffff)
}

/// Rules that exist as long as this value.
pub(crate) struct DefaultRoute {
    name: String,
    table: u32,
}

impl DefaultRoute {
    /// Adds the default routes of a device; `None` if there are none. In any case removes what an
    /// earlier daemon left behind.
    pub(crate) fn add(
        index: u32,
        name: &str,
        routes: impl IntoIterator<Item = IpNet>,
    ) -> Result<Option<Self>, NodeError> {
        let table = table(name);
        let mut added = None;
        remove(name, table);
        for route in routes {
            // From now on, dropping it removes them, whatever happens.
            added.get_or_insert_with(|| DefaultRoute { name: name.into(), table });
            let is_v6 = matches!(route.addr(), IpAddr::V6(_));
            netlink::add_route_to(index, name, route, table)?;
            netlink::add_rule(Rule::ToTunnel { table, priority: PRIORITY_TUNNEL }, is_v6)?;
            netlink::add_rule(Rule::MainFirst { table, priority: PRIORITY_MAIN }, is_v6)?;
        }
        if added.is_some() {
            warn_of_strict_filters();
        }
        Ok(added)
    }

    /// Adds one of the routes again after the device was set down, which removes routes but not
    /// rules.
    pub(crate) fn add_again(&self, index: u32, route: IpNet) -> Result<(), NodeError> {
        netlink::add_route_to(index, &self.name, route, self.table)
    }
}

impl Drop for DefaultRoute {
    fn drop(&mut self) {
        remove(&self.name, self.table);
    }
}

fn remove(name: &str, table: u32) {
    for is_v6 in [false, true] {
        match netlink::delete_rules(table, is_v6) {
            Ok(0) => {}
            Ok(count) => tracing::debug!("removed {count} default route rules for {name}"),
            // Most likely a kernel without IPv6.
            Err(error) => tracing::debug!("{error}"),
        }
    }
}

/// Strict reverse-path filtering drops what comes from the peer, because it looks up the way back
/// without the mark, and that way is the tunnel.
fn warn_of_strict_filters() {
    let Ok(interfaces) = std::fs::read_dir("/proc/sys/net/ipv4/conf") else { return };
    for interface in interfaces.flatten() {
        let setting = std::fs::read_to_string(interface.path().join("rp_filter"));
        if setting.is_ok_and(|value| value.trim() == "1") {
            let name = interface.file_name().display().to_string();
            tracing::warn!(
                "net.ipv4.conf.{name}.rp_filter = 1 may drop frames from the peer now that the \
                 default route is the tunnel; set it to 2"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_has_a_table_of_its_own_above_those_of_the_system() {
        let names = ["corridor0", "corridor1", "cor0", "wg0", "tun0"];
        let mut tables: Vec<u32> = names.iter().map(|name| table(name)).collect();
        assert!(tables.iter().all(|table| table >> 16 == 0x436f), "{tables:x?}");
        tables.sort_unstable();
        tables.dedup();
        assert_eq!(tables.len(), names.len());
    }
}
