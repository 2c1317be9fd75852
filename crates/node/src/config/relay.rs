//! What makes a node a relay, and checks of a relay.

use corridor_document::Problem;
use corridor_proto::bounds::RELAY_NEIGHBOURS_MAX;
use corridor_proto::relay::{Adaptive, RelayConfig};

use super::file::{File, RoleName};

/// What is combined, and limits of what waits; `None` if the node is not a relay.
pub(super) fn check(file: &File) -> Result<Option<RelayConfig>, Problem> {
    if file.station.role != RoleName::Relay {
        let given = [
            ("relay", file.relay.is_some()),
            ("underlay.broadcast", file.underlay.broadcast.is_some()),
            ("underlay.retries", file.underlay.retries.is_some()),
        ];
        return match given.iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                let message = format!("{name} requires station.role = \"relay\"");
                Err(Problem::new(*name, message))
            }
            None => Ok(None),
        };
    }
    if file.peer.len() > RELAY_NEIGHBOURS_MAX {
        let given = file.peer.len();
        let message = format!("{given} peers: expected at most {RELAY_NEIGHBOURS_MAX} for a relay");
        return Err(Problem::new(format!("peer.{RELAY_NEIGHBOURS_MAX}"), message));
    }
    let missing = file.peer.iter().position(|peer| peer.allowed.is_none());
    if let Some(index) = missing {
        let id = file.peer[index].id;
        let message =
            format!("peer.allowed of station {id} is missing: expected the networks behind it");
        return Err(Problem::new(format!("peer.{index}"), message).with_help(
            "for example allowed = [\"10.9.0.0/24\"], or allowed = [] for a neighbour only overheard",
        ));
    }
    let table = file.relay.clone().unwrap_or_default();
    let config = table.resolve().map_err(|error| Problem::new(error.field, error.to_string()))?;
    Ok(Some(config))
}

/// Why settings that depend on retries have no effect here.
pub(super) const NO_RETRIES: &str = "underlay.retries is not set, so MAC retries are not known";

/// Warns of a relay that is to hold or combine packets only while the MAC retransmits many frames:
/// here it never does. `is_said`: by `relay.adaptive`, not by its preset. The default preset
/// combines anyway.
pub(super) fn without_effect(relay: &RelayConfig, is_said: bool) -> Option<Problem> {
    let (kind, what) = match relay.adaptive {
        Adaptive::Off => return None,
        Adaptive::Holding if !is_said => return None,
        Adaptive::Holding => ("holding", "holds no packets"),
        Adaptive::Coding => ("coding", "combines no packets"),
    };
    let path = if is_said { "relay.adaptive" } else { "relay.preset" };
    Some(Problem::new(path, format!("relay.adaptive = \"{kind}\" {what} here: {NO_RETRIES}")))
}
