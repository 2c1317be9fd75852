//! Links, addresses and routes over netlink.
//!
//! Used only before the first packet, after the last one, and while an interface is missing or has
//! just changed. So each call uses a runtime of its own, which the run loop never sees.
//! Notifications from the kernel are read in [`links`](crate::links).

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkLayerType,
};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol, RouteScope};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use rtnetlink::{Handle, IpVersion, LinkUnspec, RouteMessageBuilder};

use crate::config::Mac;
use crate::error::{CAP_NET_ADMIN, NodeError};

/// A network interface.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// Its index.
    pub(crate) index: u32,
    /// MTU in bytes.
    pub(crate) mtu: usize,
    /// Its Ethernet address, if it is an Ethernet interface.
    pub(crate) mac: Option<Mac>,
    /// Whether it was set up.
    pub(crate) up: bool,
}

/// The interface with this name, if there is one.
pub(crate) fn link(name: &str) -> Result<Option<Link>, NodeError> {
    let action = format!("look up the interface {name}");
    run(&action, async |handle| {
        let mut links = handle.link().get().match_name(name.to_owned()).execute();
        let found = match links.try_next().await {
            Ok(found) => found,
            Err(error) if code(&error) == Some(libc::ENODEV) => None,
            Err(error) => return Err(error),
        };
        let Some(message) = found else { return Ok(None) };
        let mut link = Link {
            index: message.header.index,
            mtu: 0,
            mac: None,
            up: message.header.flags.contains(LinkFlags::Up),
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => link.mtu = mtu as usize,
                LinkAttribute::Address(address)
                    if message.header.link_layer_type == LinkLayerType::Ether =>
                {
                    link.mac = address.try_into().ok().map(Mac);
                }
                _ => {}
            }
        }
        Ok(Some(link))
    })
}

/// Sets an interface's MTU in bytes, and sets it up. Super-packets from the kernel contain at most
/// `segments` packets.
pub(crate) fn set_up(index: u32, name: &str, mtu: usize, segments: u32) -> Result<(), NodeError> {
    let gso = LinkAttribute::GsoMaxSegs(segments);
    let limit = LinkUnspec::new_with_index(index).append_extra_attribute(gso).build();
    let limited = run(&format!("set the segmentation limit of {name}"), async |handle| {
        handle.link().set(limit.clone()).execute().await
    });
    if let Err(error) = limited {
        // Kernels before 5.19 cannot do that; then a super-packet of very small packets may be
        // lost.
        tracing::debug!("{error}");
    }
    let mtu = u32::try_from(mtu).unwrap_or(u32::MAX);
    let message = LinkUnspec::new_with_index(index).mtu(mtu).up().build();
    run(&format!("set {name} up with MTU {mtu}"), async |handle| {
        handle.link().set(message.clone()).execute().await
    })
}

/// Keeps the kernel from giving an interface a link-local address by itself, and so from soliciting
/// routers there.
pub(crate) fn make_no_link_local(index: u32, name: &str) -> Result<(), NodeError> {
    let none = AfSpecUnspec::Inet6(vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)]);
    let attribute = LinkAttribute::AfSpecUnspec(vec![none]);
    let message = LinkUnspec::new_with_index(index).append_extra_attribute(attribute).build();
    run(&format!("disable link-local addresses on {name}"), async |handle| {
        handle.link().set(message.clone()).execute().await
    })
}

/// Adds an address to an interface that leads to one neighbour.
///
/// Duplicate address detection (RFC 4862, Section 5.4) has nobody to ask there, and while the
/// kernel performs it, programs cannot bind to the address.
pub(crate) fn add_address(index: u32, name: &str, address: IpNet) -> Result<(), NodeError> {
    run(&format!("add the address {address} to {name}"), async |handle| {
        let mut request = handle.address().add(index, address.addr(), address.prefix_len());
        if address.addr().is_ipv6() {
            request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
        }
        request.execute().await
    })
}

/// Adds a route through an interface.
pub(crate) fn add_route(index: u32, name: &str, network: IpNet) -> Result<(), NodeError> {
    run(&format!("add the route {network} through {name}"), async |handle| {
        handle.route().add(route(index, network)).execute().await
    })
}

/// Deletes a route through an interface.
pub(crate) fn delete_route(index: u32, name: &str, network: IpNet) -> Result<(), NodeError> {
    run(&format!("delete the route {network} through {name}"), async |handle| {
        handle.route().del(route(index, network)).execute().await
    })
}

/// Adds a route through an interface, in a table of its own.
pub(crate) fn add_route_to(
    index: u32,
    name: &str,
    network: IpNet,
    table: u32,
) -> Result<(), NodeError> {
    let mut message = route(index, network);
    message.header.table = 0;
    message.attributes.push(RouteAttribute::Table(table));
    run(&format!("add the route {network} through {name}"), async |handle| {
        handle.route().add(message.clone()).execute().await
    })
}

/// Identifies our rules: "C". Numbers used by others are in `/etc/iproute2/rt_protos`.
const RULE_PROTOCOL: u8 = 67;

/// A routing rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// Packets without the mark of this number: in the table of this number.
    ToTunnel {
        /// The table, and the mark.
        table: u32,
        /// Rules with lower numbers come first.
        priority: u32,
    },
    /// In the main table, except for its default route.
    MainFirst {
        /// The table whose rule this one precedes; identifies the device.
        table: u32,
        /// Rules with lower numbers come first.
        priority: u32,
    },
}

/// Adds a rule for IPv4 or IPv6.
pub(crate) fn add_rule(rule: Rule, is_v6: bool) -> Result<(), NodeError> {
    let action = "add a rule for the default route";
    run(action, async |handle| {
        let mut request = handle.rule().add().action(RuleAction::ToTable);
        let protocol = RouteProtocol::Other(RULE_PROTOCOL);
        request.message_mut().attributes.push(RuleAttribute::Protocol(protocol));
        match rule {
            Rule::ToTunnel { table, priority } => {
                request.message_mut().header.table = 0;
                request.message_mut().header.flags |= RuleFlags::Invert;
                request = request.priority(priority).fw_mark(table).table_id(table);
            }
            // The mark is not matched here, as no bit of it is in the mask; it identifies the
            // device.
            Rule::MainFirst { table, priority } => {
                let more = [RuleAttribute::SuppressPrefixLen(0), RuleAttribute::FwMask(0)];
                request.message_mut().attributes.extend(more);
                request = request.priority(priority).fw_mark(table);
            }
        }
        if is_v6 { request.v6().execute().await } else { request.v4().execute().await }
    })
}

/// Deletes the rules for this table; returns how many there were.
pub(crate) fn delete_rules(table: u32, is_v6: bool) -> Result<usize, NodeError> {
    run("delete the rules of the default route", async |handle| {
        let version = if is_v6 { IpVersion::V6 } else { IpVersion::V4 };
        let rules: Vec<RuleMessage> = handle.rule().get(version).execute().try_collect().await?;
        let mut deleted = 0;
        for rule in rules.into_iter().filter(|rule| is_of(rule, table)) {
            handle.rule().del(rule).execute().await?;
            deleted += 1;
        }
        Ok(deleted)
    })
}

fn is_of(rule: &RuleMessage, table: u32) -> bool {
    let has = |wanted: RuleAttribute| rule.attributes.contains(&wanted);
    has(RuleAttribute::Protocol(RouteProtocol::Other(RULE_PROTOCOL)))
        && (has(RuleAttribute::Table(table)) || has(RuleAttribute::FwMark(table)))
}

fn route(index: u32, network: IpNet) -> RouteMessage {
    match network.addr() {
        IpAddr::V4(address) => RouteMessageBuilder::<Ipv4Addr>::new()
            .destination_prefix(address, network.prefix_len())
            .scope(RouteScope::Link)
            .output_interface(index)
            .build(),
        IpAddr::V6(address) => RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(address, network.prefix_len())
            .output_interface(index)
            .build(),
    }
}

/// Runs one exchange with the kernel, in the calling thread's network namespace.
fn run<T, F>(action: &str, exchange: impl FnOnce(Handle) -> F) -> Result<T, NodeError>
where
    F: Future<Output = Result<T, rtnetlink::Error>>,
{
    let system = |source| NodeError::system(action, CAP_NET_ADMIN, source);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(system)?;
    let result = runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().map_err(system)?;
        let connection = tokio::spawn(connection);
        let result = exchange(handle).await.map_err(|error| refusal(action, &error));
        connection.abort();
        result
    });
    runtime.shutdown_background();
    result
}

fn refusal(action: &str, error: &rtnetlink::Error) -> NodeError {
    match code(error).map(std::io::Error::from_raw_os_error) {
        Some(source) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            NodeError::system(action, CAP_NET_ADMIN, source)
        }
        Some(source) => NodeError::Netlink { action: action.into(), reason: source },
        None => {
            let reason = std::io::Error::other(error.to_string());
            NodeError::Netlink { action: action.into(), reason }
        }
    }
}

/// The error number in the kernel's answer.
fn code(error: &rtnetlink::Error) -> Option<i32> {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.code.map(|code| code.get().abs()),
        _ => None,
    }
}
