//! Checks of a relay's other ends, whose keys it knows.

use corridor_document::Problem;
use corridor_proto::hub::{NetworkError, Networks, Place};
use corridor_proto::{PublicKey, StationId};
use ipnet::IpNet;

use super::file::{EndTable, File, RoleName};

/// Checks that the ends can be told apart, and have tags at all. Keys themselves are read later.
pub(super) fn check(file: &File) -> Result<(), Problem> {
    if file.end.is_empty() {
        return Ok(());
    }
    if file.station.role != RoleName::Relay {
        let message = "[[end]] requires station.role = \"relay\"";
        return Err(Problem::new("end.0", message)
            .with_help("two ends with a helper between them use the keys of [[peer]] for tags"));
    }
    if file.security.private_key_file.is_none() {
        let message = "[[end]] cannot be used with a group key: expected security.private_key_file";
        return Err(Problem::new("end.0", message)
            .with_help("any station with the group key could forge tags"));
    }
    let mut table = Networks::default();
    let own = file.tun.iter().flat_map(|tun| &tun.addresses).map(|network| network.addr());
    for address in own {
        // A duplicate address is reported elsewhere.
        let _ = table.insert(IpNet::from(address), Place::Host);
    }
    let mut before: Vec<PublicKey> = Vec::new();
    for (index, end) in file.end.iter().enumerate() {
        check_key(index, end.public_key.0, &before)?;
        before.push(end.public_key.0);
        check_networks(index, end, &mut table)?;
    }
    Ok(())
}

fn check_key(index: usize, public: PublicKey, before: &[PublicKey]) -> Result<(), Problem> {
    let wrong = if !public.makes_secrets() {
        "weak key, expected the public key of a private key"
    } else if before.contains(&public) {
        "already used by another end; one end may have several networks"
    } else {
        return Ok(());
    };
    let message = format!("end.public_key = {public}: {wrong}");
    Err(Problem::new(format!("end.{index}.public_key"), message))
}

fn check_networks(index: usize, end: &EndTable, table: &mut Networks) -> Result<(), Problem> {
    if end.networks.is_empty() {
        let message = "end.networks is empty: expected one network or more";
        return Err(Problem::new(format!("end.{index}.networks"), message));
    }
    for (at, network) in end.networks.iter().enumerate() {
        let path = format!("end.{index}.networks.{at}");
        if network.trunc() != *network {
            let message =
                format!("end.networks = {network}: expected a network, has host bits set");
            let help = format!("the network is {}", network.trunc());
            return Err(Problem::new(path, message).with_help(help));
        }
        let inserted = table.insert(*network, Place::Neighbour(StationId(index as u16 + 1)));
        inserted.map_err(|error| {
            let why = match error {
                NetworkError::Taken { by: Place::Host } => "already in tun.addresses".to_owned(),
                NetworkError::Taken { .. } => "already used by another end".to_owned(),
                NetworkError::Full => error.to_string(),
            };
            Problem::new(path, format!("end.networks = {network}: {why}"))
        })?;
    }
    Ok(())
}
