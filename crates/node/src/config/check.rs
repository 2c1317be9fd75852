//! Checks across the tables of a file: values that are invalid although their types are right.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;

use corridor_document::{Diagnostic, Document, Problem};
use corridor_proto::relay::RelayConfig;
use corridor_proto::{ErasureRatios, LinkErrors, Preset, Role, Security, StationId};

use crate::names::Endpoint;

use super::file::{File, KindName, LinkErrorsTable, ModeName, PeerTable, RoleName};
use super::{
    ETHERTYPE_DEFAULT, LimitsConfig, NodeConfig, PeerConfig, SyntheticLossConfig, TunConfig,
    UDP_HEADERS, UnderlayConfig, UnderlayKind,
};
use super::{hub, relay};

/// Length of frames that an underlay must at least carry, bytes.
const FRAME_MIN: usize = 576;

/// Smallest protocol number of an Ethernet frame; smaller ones are lengths (IEEE 802.3, Clause
/// 3.2.6).
const ETHERTYPE_MIN: u16 = 0x600;

pub(super) fn check(
    file: File,
    security: Security,
    document: &Document,
) -> Result<NodeConfig, Box<Diagnostic>> {
    let sound = || -> Result<NodeConfig, Problem> {
        let role = role(&file)?;
        let relay = relay::check(&file)?;
        let underlay = underlay(&file)?;
        let coding = file.coding.resolve(defaults_to_blocks(role));
        let limit = relay.map(|relay| relay.queue_packets).or(file.limits.ingress_packets);
        let warnings = without_effect(&file, (role, relay.as_ref()), document);
        Ok(NodeConfig {
            id: StationId(file.station.id),
            role,
            security,
            coding,
            link_errors: link_errors(&file.link_errors, role)?,
            relay,
            ends: Vec::new(),
            limits: LimitsConfig {
                ingress_packets: limit.unwrap_or_else(|| coding.ingress_packets_default()),
                memory_bytes: file.limits.memory.map(|memory| memory.0),
            },
            tun: tun(&file)?,
            peers: {
                hub::check(&file)?;
                peers(&file, &underlay.kind)?
            },
            underlay,
            synthetic_loss: synthetic_loss(&file)?,
            control_group: file.control.group.clone(),
            warnings: warnings.into_iter().map(|problem| *document.warn(problem)).collect(),
            document: document.clone(),
        })
    };
    sound().map_err(|problem| document.locate(problem))
}

/// Whether blocks are the default: symbols may be recoded between the ends; or nothing is coded,
/// and the queue is like that of blocks.
fn defaults_to_blocks(role: Role) -> bool {
    matches!(
        role,
        Role::Plain { .. }
            | Role::Helper { .. }
            | Role::Relay
            | Role::Endpoint { helper: Some(_), .. }
    )
}

/// Warns of keys without effect, and of old names.
fn without_effect(
    file: &File,
    (role, relay): (Role, Option<&RelayConfig>),
    document: &Document,
) -> Vec<Problem> {
    let is_given = |path: &str| document.given(path).is_some();
    let idle = |path: &str, why: &str| {
        is_given(path).then(|| Problem::new(path, format!("{path} has no effect: {why}")))
    };
    if let Role::Plain { .. } = role {
        let why = "plain stations do not code";
        return [idle("coding", why), idle("link_errors", why)].into_iter().flatten().collect();
    }
    if let Some(relay) = relay {
        let why = "relays are configured by [relay]";
        let limits = "relay.queue_packets limits the queue of a relay";
        let not_told = idle("relay.retries_per_second", relay::NO_RETRIES);
        let idle = [
            idle("coding", why),
            idle("link_errors", why),
            idle("limits.ingress_packets", limits),
            idle("limits.memory", limits),
        ];
        if file.underlay.retries.is_some() {
            return idle.into_iter().flatten().collect();
        }
        let adaptive = [not_told, relay::without_effect(relay, is_given("relay.adaptive"))];
        let adaptive = adaptive.into_iter().flatten();
        return idle.into_iter().flatten().chain(adaptive).collect();
    }
    let preset = file.coding.preset_for(defaults_to_blocks(role));
    let why = match file.coding.preset {
        Some(preset) => format!("coding.preset is \"{preset}\""),
        None => format!("coding.preset defaults to \"{preset}\" here"),
    };
    let coding = file.coding.without_effect(defaults_to_blocks(role)).into_iter();
    let mut problems: Vec<Problem> =
        coding.filter_map(|key| idle(&format!("coding.{key}"), &why)).collect();
    if document.given("coding.preset").is_some_and(|name| name.contains("default")) {
        let message = "coding.preset = \"default\" is deprecated: use \"block\"";
        problems.push(Problem::new("coding.preset", message));
    }
    if preset == Preset::TcpNc {
        problems.extend(idle("link_errors", &why));
    } else if let Role::Endpoint { helper: None, .. } = role {
        let why = "there is no helper";
        problems.extend(["e1", "e2"].iter().filter_map(|e| idle(&format!("link_errors.{e}"), why)));
    }
    if file.synthetic_loss.link.is_empty() {
        problems.extend(idle("synthetic_loss.seed", "there is no [[synthetic_loss.link]]"));
    }
    if let Role::Helper { .. } = role {
        let why = "a helper carries no packets of its own host";
        problems.extend(idle("limits.ingress_packets", why));
        problems.extend(idle("limits.memory", why));
    }
    problems
}

/// The role, with the peers that it requires.
fn role(file: &File) -> Result<Role, Problem> {
    let own = file.station.role;
    let with_role = |role: RoleName| {
        file.peer.iter().enumerate().filter(move |(_, peer)| peer.role == role).collect::<Vec<_>>()
    };
    let (endpoints, helpers, plain) =
        (with_role(RoleName::Endpoint), with_role(RoleName::Helper), with_role(RoleName::Plain));
    if own != RoleName::Relay {
        let why = "only relays can have relays as peers: expected another role, or station.role = \"relay\"";
        refuse(&with_role(RoleName::Relay), 0, why)?;
    }
    match own {
        RoleName::Endpoint => {
            refuse(
                &plain,
                0,
                "an endpoint cannot have a plain peer: expected \"endpoint\" or \"helper\"",
            )?;
            refuse(&helpers, 1, "an endpoint can have at most one helper peer")?;
            let peer = first(&endpoints, "an endpoint needs a [[peer]] of role \"endpoint\"")?;
            Ok(Role::Endpoint { peer, helper: helpers.first().map(|(_, peer)| StationId(peer.id)) })
        }
        RoleName::Helper => {
            refuse(&plain, 0, "a helper cannot have a plain peer: expected \"endpoint\"")?;
            refuse(&helpers, 0, "a helper cannot have a helper peer: expected \"endpoint\"")?;
            refuse(&endpoints, 2, "a helper must have exactly two endpoint peers")?;
            match endpoints[..] {
                [(_, a), (_, b)] => {
                    Ok(Role::Helper { between: (StationId(a.id), StationId(b.id)) })
                }
                _ => Err(Problem::new(
                    "station.role",
                    format!(
                        "a helper needs exactly two [[peer]] of role \"endpoint\", but has {}",
                        endpoints.len()
                    ),
                )),
            }
        }
        RoleName::Relay => {
            let strange = file.peer.iter().position(|peer| peer.role != RoleName::Relay);
            match strange {
                Some(index) => Err(Problem::new(
                    format!("peer.{index}.role"),
                    "a relay can only have relays as peers: expected \"relay\"",
                )),
                None if file.peer.is_empty() => Err(Problem::new(
                    "station.role",
                    "a relay needs a [[peer]] of role \"relay\", but has none",
                )),
                None => Ok(Role::Relay),
            }
        }
        RoleName::Plain => {
            refuse(&endpoints, 0, "a plain station can only have plain peers: expected \"plain\"")?;
            refuse(&helpers, 0, "a plain station can only have plain peers: expected \"plain\"")?;
            let peer = first(&plain, "a plain station needs a [[peer]] of role \"plain\"")?;
            Ok(Role::Plain { peer })
        }
    }
}

/// At most `most` of these peers; an error points to the role of the first one too many.
fn refuse(peers: &[(usize, &PeerTable)], most: usize, why: &str) -> Result<(), Problem> {
    match peers.get(most) {
        Some((index, _)) => Err(Problem::new(format!("peer.{index}.role"), why)),
        None => Ok(()),
    }
}

/// The peer at the other end; of a hub, the first peer.
fn first(peers: &[(usize, &PeerTable)], why: &str) -> Result<StationId, Problem> {
    match peers {
        [(_, peer), ..] => Ok(StationId(peer.id)),
        [] => Err(Problem::new("station.role", format!("{why}, but has none"))),
    }
}

fn tun(file: &File) -> Result<Option<TunConfig>, Problem> {
    match (&file.tun, file.station.role) {
        (Some(_), RoleName::Helper) => {
            Err(Problem::new("tun", "a helper cannot have [tun]: it has no traffic of its own"))
        }
        (None, RoleName::Helper) => Ok(None),
        (None, _) => Err(Problem::new("station.role", "[tun] is missing: expected a table [tun]")
            .with_help("only helpers have none")),
        (Some(tun), _) => {
            for (index, route) in tun.routes.iter().enumerate() {
                if route.trunc() != *route {
                    return Err(Problem::new(
                        format!("tun.routes.{index}"),
                        format!("tun.routes = {route}: expected a network, has host bits set"),
                    )
                    .with_help(format!("the network is {}", route.trunc())));
                }
            }
            for (index, address) in tun.addresses.iter().enumerate() {
                let addr = address.addr();
                if addr.is_unspecified() || addr.is_multicast() || addr.is_loopback() {
                    return Err(Problem::new(
                        format!("tun.addresses.{index}"),
                        format!("tun.addresses = {address}: expected a host address"),
                    ));
                }
                // As the kernel sees it: IPv4 may have an address in several networks.
                let is_same = |earlier: &IpNet| match address {
                    IpNet::V4(_) => earlier == address,
                    IpNet::V6(_) => earlier.addr() == addr,
                };
                if tun.addresses[..index].iter().any(is_same) {
                    return Err(Problem::new(
                        format!("tun.addresses.{index}"),
                        format!("tun.addresses = {address}: duplicate address {addr}"),
                    ));
                }
            }
            Ok(Some(TunConfig {
                name: tun.name.0.clone(),
                addresses: tun.addresses.clone(),
                routes: tun.routes.clone(),
                mtu: tun.mtu.map(usize::from),
                offload: tun.offload,
            }))
        }
    }
}

fn underlay(file: &File) -> Result<UnderlayConfig, Problem> {
    let table = &file.underlay;
    let of_udp = [("listen", table.listen.is_some())];
    let of_ethernet = [
        ("interface", table.interface.is_some()),
        ("ethertype", table.ethertype.is_some()),
        ("qdisc_bypass", table.qdisc_bypass.is_some()),
        ("broadcast", table.broadcast.is_some()),
        ("retries", table.retries.is_some()),
    ];
    let (kind, strange) = match table.kind {
        KindName::Ethernet => (ethernet(file)?, &of_udp[..]),
        KindName::Udp => (udp(file)?, &of_ethernet[..]),
    };
    if let Some((name, _)) = strange.iter().find(|(_, given)| *given) {
        let (kind, other) = match table.kind {
            KindName::Ethernet => ("ethernet", "udp"),
            KindName::Udp => ("udp", "ethernet"),
        };
        return Err(Problem::new(
            format!("underlay.{name}"),
            format!("underlay.{name} requires kind = \"{other}\", but this is \"{kind}\""),
        ));
    }
    let (least, over) = match table.kind {
        KindName::Ethernet => (FRAME_MIN, "Ethernet"),
        KindName::Udp => (FRAME_MIN + UDP_HEADERS, "UDP"),
    };
    if let Some(mtu) = table.mtu.filter(|&mtu| !(least..=9216).contains(&usize::from(mtu))) {
        return Err(Problem::new(
            "underlay.mtu",
            format!("underlay.mtu = {mtu}: expected {least} to 9216 bytes over {over}"),
        ));
    }
    Ok(UnderlayConfig { kind, mtu: table.mtu.map(usize::from), rate_bps: table.rate_bps })
}

fn ethernet(file: &File) -> Result<UnderlayKind, Problem> {
    let table = &file.underlay;
    let Some(interface) = &table.interface else {
        return Err(Problem::new(
            "underlay",
            "underlay.interface is missing: expected an interface name, such as \"wlan0\"",
        ));
    };
    let ethertype = table.ethertype.unwrap_or(ETHERTYPE_DEFAULT);
    if ethertype < ETHERTYPE_MIN {
        return Err(Problem::new(
            "underlay.ethertype",
            format!("underlay.ethertype = {ethertype:#06x}: expected 0x0600 to 0xffff"),
        )
        .with_help("0x88b5 and 0x88b6 are reserved for local use"));
    }
    if table.broadcast == Some(true) && table.retries.is_some() {
        return Err(Problem::new(
            "underlay.retries",
            "underlay.retries cannot be used with underlay.broadcast = true",
        )
        .with_help("the MAC does not retry broadcast frames, so there are no counters"));
    }
    Ok(UnderlayKind::Ethernet {
        interface: interface.0.clone(),
        ethertype,
        qdisc_bypass: table.qdisc_bypass.unwrap_or(false),
        broadcast: table.broadcast.unwrap_or(false),
        retries: table.retries.clone(),
    })
}

fn udp(file: &File) -> Result<UnderlayKind, Problem> {
    if file.station.role == RoleName::Relay {
        return Err(Problem::new("underlay.kind", "a relay cannot work over the udp underlay")
            .with_help(
                "relays rely on neighbours overhearing frames to others, which requires the ethernet \
                 underlay",
            ));
    }
    if file.station.role == RoleName::Helper {
        return Err(Problem::new("underlay.kind", "a helper cannot work over the udp underlay")
            .with_help(
                "a helper overhears the frames between its two endpoints, which requires the \
                 ethernet underlay",
            ));
    }
    let helper = file.peer.iter().position(|peer| peer.role == RoleName::Helper);
    if let Some(index) = helper {
        return Err(Problem::new(
            format!("peer.{index}.role"),
            "a helper cannot work over the udp underlay",
        )
        .with_help("a helper overhears frames, which requires the ethernet underlay"));
    }
    let unknown = file.peer.iter().position(|peer| peer.endpoint.is_none());
    match (file.underlay.listen, unknown) {
        (Some(listen), Some(index)) if listen.port() == 0 => Err(Problem::new(
            format!("peer.{index}"),
            "peer.endpoint is missing and underlay.listen has no fixed port: neither side could \
             reach the other",
        )),
        (None, Some(index)) => Err(Problem::new(
            format!("peer.{index}"),
            "peer.endpoint and underlay.listen are both missing: neither side could reach the other",
        )
        .with_help("set the peer's address and port, or a port to listen on")),
        (Some(listen), _) => Ok(UnderlayKind::Udp { listen }),
        (None, None) => Ok(UnderlayKind::Udp { listen: any_port(&file.peer) }),
    }
}

/// Where to listen if every peer's address is known: any port, in their address family.
fn any_port(peers: &[PeerTable]) -> SocketAddr {
    // A name may resolve to either family, and a socket of both families reaches both.
    let may_be_v6 = |endpoint: &Endpoint| endpoint.address().is_none_or(|at| at.is_ipv6());
    let v6 = peers.iter().filter_map(|peer| peer.endpoint.as_ref()).any(may_be_v6);
    let address = if v6 { IpAddr::V6([0; 16].into()) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    SocketAddr::new(address, 0)
}

fn peers(file: &File, underlay: &UnderlayKind) -> Result<Vec<PeerConfig>, Problem> {
    for (index, peer) in file.peer.iter().enumerate() {
        let before = &file.peer[..index];
        match (underlay, peer.mac, &peer.endpoint) {
            (UnderlayKind::Ethernet { .. }, _, Some(_)) => {
                return Err(Problem::new(
                    format!("peer.{index}.endpoint"),
                    "peer.endpoint requires the udp underlay, but this is \"ethernet\"",
                ));
            }
            (UnderlayKind::Udp { .. }, Some(_), _) => {
                return Err(Problem::new(
                    format!("peer.{index}.mac"),
                    "peer.mac requires the ethernet underlay, but this is \"udp\"",
                ));
            }
            (UnderlayKind::Ethernet { .. }, Some(mac), None) => {
                if before.iter().any(|other| other.mac == Some(mac)) {
                    return Err(Problem::new(
                        format!("peer.{index}.mac"),
                        format!("peer.mac = {mac}: already used by another peer"),
                    ));
                }
            }
            (UnderlayKind::Udp { listen }, None, Some(endpoint)) => {
                if let Some(address) = endpoint.address() {
                    check_endpoint(index, *listen, address)?;
                }
                if before.iter().any(|other| other.endpoint.as_ref() == Some(endpoint)) {
                    return Err(Problem::new(
                        format!("peer.{index}.endpoint"),
                        format!("peer.endpoint = {endpoint}: already used by another peer"),
                    ));
                }
            }
            (_, None, None) => {}
        }
    }
    let peer = |peer: &PeerTable| PeerConfig {
        id: StationId(peer.id),
        mac: peer.mac,
        endpoint: peer.endpoint.clone(),
        allowed: peer.allowed.clone(),
    };
    Ok(file.peer.iter().map(peer).collect())
}

/// Checks that a socket bound to `listen` can reach an endpoint.
fn check_endpoint(index: usize, listen: SocketAddr, endpoint: SocketAddr) -> Result<(), Problem> {
    let path = format!("peer.{index}.endpoint");
    if endpoint.port() == 0
        || endpoint.ip().is_unspecified()
        || endpoint.ip().is_multicast()
        || endpoint.ip() == IpAddr::V4(Ipv4Addr::BROADCAST)
    {
        return Err(Problem::new(
            path,
            format!("peer.endpoint = {endpoint}: expected a host address and port"),
        ));
    }
    // "[::]" listens on both families.
    let reachable = listen.is_ipv4() == endpoint.is_ipv4()
        || (listen.ip().is_unspecified() && listen.is_ipv6());
    if reachable {
        return Ok(());
    }
    Err(Problem::new(
        path,
        format!("peer.endpoint = {endpoint} cannot be reached from underlay.listen = {listen}"),
    )
    .with_help("both must be IPv4 or both IPv6; \"[::]:4242\" listens on both"))
}

fn link_errors(table: &LinkErrorsTable, role: Role) -> Result<LinkErrors, Problem> {
    let given = [("e1", table.e1), ("e2", table.e2), ("e3", table.e3)];
    match table.mode.unwrap_or(ModeName::Measured) {
        ModeName::Measured => match given.iter().find(|(_, ratio)| ratio.is_some()) {
            Some((name, _)) => Err(Problem::new(
                format!("link_errors.{name}"),
                format!("link_errors.{name} requires mode = \"fixed\", but this is \"measured\""),
            )),
            None => Ok(LinkErrors::Measured),
        },
        ModeName::Fixed => {
            // Without a helper the links to and from it do not matter.
            let needed = match role {
                Role::Endpoint { helper: None, .. } | Role::Plain { .. } | Role::Relay => {
                    &given[2..]
                }
                _ => &given[..],
            };
            match needed.iter().find(|(_, ratio)| ratio.is_none()) {
                Some((name, _)) => Err(Problem::new(
                    "link_errors",
                    format!("link_errors.{name} is missing: required by mode = \"fixed\""),
                )),
                None => Ok(LinkErrors::Fixed(ErasureRatios {
                    e1: table.e1.unwrap_or(0.0),
                    e2: table.e2.unwrap_or(0.0),
                    e3: table.e3.unwrap_or(0.0),
                })),
            }
        }
    }
}

fn synthetic_loss(file: &File) -> Result<SyntheticLossConfig, Problem> {
    let table = &file.synthetic_loss;
    for (index, link) in table.link.iter().enumerate() {
        let path = |name| format!("synthetic_loss.link.{index}.{name}");
        if !(0.0..=1.0).contains(&link.ratio) {
            return Err(Problem::new(
                path("ratio"),
                format!("synthetic_loss.link.ratio = {}: expected 0 to 1", link.ratio),
            ));
        }
        let problem = if !file.peer.iter().any(|peer| peer.id == link.from) {
            "expected the number of a peer"
        } else if table.link[..index].iter().any(|other| other.from == link.from) {
            "duplicate peer"
        } else {
            continue;
        };
        return Err(Problem::new(
            path("from"),
            format!("synthetic_loss.link.from = {}: {problem}", link.from),
        ));
    }
    let links = table.link.iter().map(|link| (StationId(link.from), link.ratio)).collect();
    Ok(SyntheticLossConfig { seed: table.seed, links })
}
