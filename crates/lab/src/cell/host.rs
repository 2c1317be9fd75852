//! The namespaces of a network's nodes: interfaces, addresses, forwarding.

use std::fs;
use std::net::IpAddr;

use corridor_air::radio::RadioMediumConfig;
use corridor_proto::RelayTable;
use corridor_scenario::Network;

use super::NAMES;
use super::order::Orders;
use super::routes::Routes;
use crate::error::{Context, LabError};
use crate::netns::Namespace;
use crate::node::{INNER_SUBNET, RelayNode};
use crate::station::{
    RADIO, RadioConfig, Station, add_neighbour, address, bring_up, disable_ipv6, failed, mac,
    number_of, with_netlink,
};
use crate::sys;

/// Frames in the ring in front of a MAC that accepts all frames.
const RING_FRAMES: usize = 31;
/// The same in front of a MAC with back-pressure: frames in the ring can no longer find a partner.
const RELAY_RING_FRAMES: usize = 1;
/// Longest packet of 802.11 (IEEE 802.11-2012, 8.2.3), bytes, as on Linux's interfaces.
const DOT11_MTU: usize = 2_304;

/// What a network's nodes are made from.
pub(super) struct Hosts<'a> {
    pub(super) network: &'a Network,
    pub(super) orders: &'a Orders,
    pub(super) routes: &'a Routes,
}

impl<'a> Hosts<'a> {
    /// Makes a namespace for each node. Without relays the kernels forward.
    pub(super) fn make(&self, radio: &RadioMediumConfig) -> Result<Vec<Station>, LabError> {
        let has_relays = self.network.relay.is_some();
        // A relay's frames are longer than the packets in them.
        let mtu = match has_relays {
            true => DOT11_MTU.min(radio.mac.payload_bytes_max() as usize),
            false => self.orders.packet_bytes,
        };
        let config = RadioConfig {
            ring_frames: if has_relays { RELAY_RING_FRAMES } else { RING_FRAMES },
            mtu,
            stations: self.network.nodes,
            hops: 1,
            subnet: (!has_relays).then_some(INNER_SUBNET),
        };
        (0..self.network.nodes).map(|index| self.station(index, config)).collect()
    }

    fn station(&self, index: usize, config: RadioConfig) -> Result<Station, LabError> {
        let namespace = Namespace::new()?;
        let others = (0..self.network.nodes).filter(|&other| other != index);
        let ways: Vec<(usize, usize)> =
            others.filter_map(|to| Some((to, self.routes.next(index, to)?))).collect();
        let tap = namespace.run(move || {
            let tap = sys::make_tap(RADIO).what("make a TAP interface")?;
            disable_ipv6(RADIO);
            with_netlink(async |handle| {
                bring_up(&handle, RADIO, index, config).await?;
                let Some(subnet) = config.subnet else { return Ok(()) };
                let number = number_of(RADIO)?;
                let own = IpAddr::V4(address(subnet, index));
                let request = handle.address().add(number, own, 24);
                request.execute().await.map_err(failed("give the radio an address"))?;
                // All are on the link; the hardware address selects the next hop.
                for (to, next) in ways {
                    let to = IpAddr::V4(address(subnet, to));
                    add_neighbour(&handle, number, to, mac(next)).await?;
                }
                Ok(())
            })?;
            if config.subnet.is_some() {
                forward()?;
            }
            Ok(tap)
        })?;
        Ok(Station { index, namespace, tap: Some(tap) })
    }

    /// The relay of a station.
    pub(super) fn relay(&self, station: &'a Station, table: &'a RelayTable) -> RelayNode<'a> {
        RelayNode {
            station,
            name: NAMES[station.index],
            table,
            neighbours: self.routes.neighbours(station.index),
            mtu: self.orders.packet_bytes,
        }
    }
}

/// Enables forwarding without ICMP redirects: packets leave by the radio by which they came.
fn forward() -> Result<(), LabError> {
    for (name, value) in [
        ("ip_forward".to_owned(), "1"),
        ("conf/all/send_redirects".to_owned(), "0"),
        (format!("conf/{RADIO}/send_redirects"), "0"),
        (format!("conf/{RADIO}/accept_redirects"), "0"),
    ] {
        let path = format!("/proc/sys/net/ipv4/{name}");
        fs::write(path, value).what(format!("set net.ipv4.{name}"))?;
    }
    Ok(())
}
