//! Networks of peers: what makes a node a hub, and checks of a hub.

use corridor_document::Problem;
use corridor_proto::StationId;
use corridor_proto::bounds::{HUB_NEIGHBOURS_MAX, HUB_NETWORKS_MAX};
use corridor_proto::hub::{NetworkError, Networks, Place};
use ipnet::IpNet;

use super::file::{File, PeerTable, RoleName};

/// Checks that the peers can be told apart by their networks, where this is necessary.
pub(super) fn check(file: &File) -> Result<(), Problem> {
    let given = file.peer.iter().position(|peer| peer.allowed.is_some());
    if let Some(index) = given {
        check_roles(file, index)?;
    }
    let ends = || file.peer.iter().enumerate().filter(|(_, peer)| peer.role != RoleName::Helper);
    if file.station.role == RoleName::Relay {
        return check_networks(file);
    }
    let is_hub = given.is_some() || ends().count() > 1;
    if !is_hub || file.station.role == RoleName::Helper {
        return Ok(());
    }
    let helper = file.peer.iter().position(|peer| peer.role == RoleName::Helper);
    if let Some(index) = helper {
        return Err(Problem::new(
            format!("peer.{index}.role"),
            "a helper can only be used with a single endpoint peer",
        ));
    }
    if let Some((index, peer)) = ends().find(|(_, peer)| peer.allowed.is_none()) {
        let message =
            format!("peer.allowed of station {} is missing: required with several peers", peer.id);
        return Err(Problem::new(format!("peer.{index}"), message).with_help(
            "for example allowed = [\"10.9.0.2/32\"]: addresses routed to and accepted from this peer",
        ));
    }
    if file.peer.len() > HUB_NEIGHBOURS_MAX {
        return Err(Problem::new(
            format!("peer.{HUB_NEIGHBOURS_MAX}"),
            format!("{} peers: expected at most {HUB_NEIGHBOURS_MAX}", file.peer.len()),
        ));
    }
    check_networks(file)
}

fn check_roles(file: &File, index: usize) -> Result<(), Problem> {
    let path = format!("peer.{index}.allowed");
    if file.station.role == RoleName::Helper {
        let message = "peer.allowed cannot be used at a helper: it has no traffic of its own";
        return Err(Problem::new(path, message));
    }
    if file.peer[index].role == RoleName::Helper {
        return Err(Problem::new(path, "a helper peer cannot have networks: it only recodes"));
    }
    Ok(())
}

/// Checks that each network has no host bits, and belongs to only one peer.
fn check_networks(file: &File) -> Result<(), Problem> {
    let mut table = Networks::default();
    let own = file.tun.iter().flat_map(|tun| &tun.addresses).map(|network| network.addr());
    for address in own {
        // A duplicate address is reported elsewhere.
        let _ = table.insert(IpNet::from(address), Place::Host);
    }
    for (index, peer) in file.peer.iter().enumerate() {
        for (at, network) in peer.allowed.iter().flatten().enumerate() {
            let path = format!("peer.{index}.allowed.{at}");
            if network.trunc() != *network {
                let message =
                    format!("peer.allowed = {network}: expected a network, has host bits set");
                let help = format!("the network is {}", network.trunc());
                return Err(Problem::new(path, message).with_help(help));
            }
            let inserted = table.insert(*network, Place::Neighbour(StationId(peer.id)));
            inserted.map_err(|error| Problem::new(path, taken(peer, *network, error)))?;
        }
    }
    Ok(())
}

fn taken(peer: &PeerTable, network: IpNet, error: NetworkError) -> String {
    match error {
        NetworkError::Taken { by: Place::Host } => {
            format!("peer.allowed = {network} of station {} is already in tun.addresses", peer.id)
        }
        NetworkError::Taken { by: Place::Neighbour(other) } if other.0 == peer.id => {
            format!("peer.allowed = {network}: duplicate at station {}", peer.id)
        }
        NetworkError::Taken { by: Place::Neighbour(other) } => format!(
            "peer.allowed = {network}: used by both station {} and station {}",
            other.0, peer.id
        ),
        NetworkError::Full => {
            format!(
                "peer.allowed: expected at most {HUB_NETWORKS_MAX} networks of all peers together"
            )
        }
    }
}
