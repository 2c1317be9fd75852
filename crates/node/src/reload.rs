//! Which configuration changes a running node applies, and which need a restart.

use crate::config::{NodeConfig, TunConfig};

/// The effect of a configuration that was read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Names of changes that can be applied while the node runs.
    pub(crate) live: Vec<&'static str>,
    /// Names of changes that have no effect until the node is restarted.
    pub(crate) restart: Vec<&'static str>,
}

/// UDP addresses of peers.
pub(crate) const ENDPOINTS: &str = "peer.endpoint";
/// Ethernet addresses of peers.
pub(crate) const MACS: &str = "peer.mac";
/// The peers of a hub.
pub(crate) const PEERS: &str = "peer";
/// Networks of the peers of a hub.
pub(crate) const NETWORKS: &str = "peer.allowed";
/// Networks reached through the tunnel.
pub(crate) const ROUTES: &str = "tun.routes";
/// The configured rate.
pub(crate) const RATE: &str = "underlay.rate_bps";
/// Who may query the node's status.
pub(crate) const CONTROL: &str = "control";
/// Synthetic losses.
pub(crate) const LOSS: &str = "synthetic_loss";

impl Changes {
    /// The changes from the configuration in force to another one.
    ///
    /// Sessions, their coding state and their frame lengths depend on all other settings, and both
    /// ends would have to change these at the same moment.
    pub(crate) fn between(old: &NodeConfig, new: &NodeConfig) -> Self {
        let tun =
            |config: &NodeConfig, part: fn(&TunConfig) -> TunConfig| config.tun.as_ref().map(part);
        // Datagrams that bypass a default route are marked from the start.
        let without_routes =
            |config| tun(config, |tun| TunConfig { routes: tun.routes_of(true), ..tun.clone() });
        // Their order does not matter, and is not kept.
        let routes = |config: &NodeConfig| {
            let mut routes = config.tun.as_ref().map(|tun| tun.routes_of(false));
            routes.iter_mut().for_each(|routes| routes.sort());
            routes
        };
        let endpoints = |config: &NodeConfig| -> Vec<_> {
            config.peers.iter().map(|peer| peer.endpoint.clone()).collect()
        };
        let macs =
            |config: &NodeConfig| -> Vec<_> { config.peers.iter().map(|peer| peer.mac).collect() };
        let peers =
            |config: &NodeConfig| -> Vec<_> { config.peers.iter().map(|peer| peer.id).collect() };
        let is_hub = |config: &NodeConfig| config.networks().is_some();
        let (was, is) = (&old.underlay, &new.underlay);
        let same_peers = peers(old) == peers(new);
        let same_kind = is_hub(old) == is_hub(new);
        // Each peer of a hub has a station of its own, and so may come and go; but a peer with
        // another kind of keys or another role than the others would belong to another group.
        let are_hubs = |config: &NodeConfig| is_hub(config) && config.relay.is_none();
        let kind = |config: &NodeConfig| (config.id, config.role_name());
        let is_same_hub = old.has_keys_of(new) && kind(old) == kind(new);
        let comes_or_goes = !same_peers && are_hubs(old) && are_hubs(new) && is_same_hub;
        let same_tun = old.tun.is_some() == new.tun.is_some();
        let live = [
            (PEERS, comes_or_goes),
            (ENDPOINTS, same_peers && endpoints(old) != endpoints(new)),
            (MACS, same_peers && macs(old) != macs(new)),
            (NETWORKS, same_peers && same_kind && is_hub(new) && old.networks() != new.networks()),
            (ROUTES, same_tun && routes(old) != routes(new)),
            (RATE, was.rate_bps != is.rate_bps),
            (CONTROL, old.control_group != new.control_group),
            (LOSS, old.synthetic_loss != new.synthetic_loss),
        ];
        // The role of a hub names its first peer.
        let station = |config: &NodeConfig| (kind(config), (!comes_or_goes).then_some(config.role));
        let restart = [
            ("station", station(old) != station(new)),
            ("security", !old.has_keys_of(new)),
            ("tun", without_routes(old) != without_routes(new)),
            ("underlay", (&was.kind, was.mtu) != (&is.kind, is.mtu)),
            (PEERS, (!same_peers || !same_kind) && !comes_or_goes),
            ("coding", old.coding != new.coding),
            ("relay", old.relay != new.relay),
            ("end", old.ends != new.ends),
            ("link_errors", old.link_errors != new.link_errors),
            ("limits", old.limits != new.limits),
        ];
        let changed = |list: &[(&'static str, bool)]| {
            list.iter().filter(|(_, changed)| *changed).map(|(name, _)| *name).collect()
        };
        Changes { live: changed(&live), restart: changed(&restart) }
    }
}
