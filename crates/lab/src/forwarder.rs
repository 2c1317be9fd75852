//! Hosts between S and D on a path of several hops: namespaces with two radios, between which the
//! kernel forwards IP.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};

use corridor_scenario::{DESTINATION, SOURCE};
use rtnetlink::packet_route::route::RouteScope;
use rtnetlink::{Handle, RouteMessageBuilder};

use crate::error::{Context, LabError};
use crate::netns::Namespace;
use crate::station::{
    RadioConfig, add_neighbour, address, bring_up, disable_ipv6, failed, mac, number_of,
    with_netlink,
};
use crate::sys;

/// Names of the radios towards S and towards D.
const RADIOS: [&str; 2] = ["radio0", "radio1"];
/// The stations that they lead to.
const STATIONS: [usize; 2] = [SOURCE, DESTINATION];

/// A forwarding host.
pub(crate) struct Forwarder {
    /// Its namespace, which holds its interfaces.
    _namespace: Namespace,
    /// The lab's ends of its radios: towards S, towards D.
    pub(crate) taps: [File; 2],
}

impl Forwarder {
    /// The host between hop `index` and the next one, counted from 0; it has ends 2 index + 1 and 2
    /// index + 2 of the medium.
    pub(crate) fn new(index: usize, radio: RadioConfig) -> Result<Self, LabError> {
        let namespace = Namespace::new()?;
        let taps = namespace.run(move || {
            let [near, far] = RADIOS.map(sys::make_tap);
            let taps = [near.what("make a TAP interface")?, far.what("make a TAP interface")?];
            RADIOS.iter().for_each(|interface| disable_ipv6(interface));
            fs::write("/proc/sys/net/ipv4/ip_forward", "1").what("set net.ipv4.ip_forward")?;
            with_netlink(async |handle| {
                for (side, interface) in RADIOS.into_iter().enumerate() {
                    let place = 2 * index + 1 + side;
                    bring_up(&handle, interface, place, radio).await?;
                    if let Some(subnet) = radio.subnet {
                        let station = address(subnet, STATIONS[side]);
                        lead(&handle, interface, station, place).await?;
                    }
                }
                Ok(())
            })?;
            Ok(taps)
        })?;
        Ok(Forwarder { _namespace: namespace, taps })
    }
}

/// Routes packets for a station to the other end of an interface's link.
async fn lead(
    handle: &Handle,
    interface: &str,
    station: Ipv4Addr,
    place: usize,
) -> Result<(), LabError> {
    let number = number_of(interface)?;
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .destination_prefix(station, 32)
        .output_interface(number)
        .scope(RouteScope::Link)
        .build();
    handle.route().add(route).execute().await.map_err(failed("set a route"))?;
    add_neighbour(handle, number, IpAddr::V4(station), mac(place ^ 1)).await
}
