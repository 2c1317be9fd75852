//! Link-local traffic of hosts: no router forwards it (RFC 4291, Section 2.5.6; RFC 3927, Section
//! 2.6.2), and there is no link behind a tunnel.

use std::net::{IpAddr, Ipv6Addr};

use crate::protocol;

/// IGMP, with which hosts report multicast groups to routers.
const IGMP: u8 = 2;
/// IPv6's hop-by-hop options header.
const HOP_BY_HOP: u8 = 0;
/// ICMPv6 messages for multicast listeners (RFC 2710, RFC 3810), and neighbour discovery (RFC
/// 4861): 130 to 137, and 143.
const LINK_MESSAGES: core::ops::RangeInclusive<u8> = 130..=137;
const LISTENER_REPORT_2: u8 = 143;

/// Whether a packet with these addresses stays on its link.
pub fn is_of_link(from: IpAddr, to: IpAddr) -> bool {
    let is_local = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.octets()[0] == 0xff && scope(v6) <= 2,
    };
    from.is_unspecified() || is_local(from) || is_local(to)
}

/// Scope of a multicast address: 1 within a host, 2 on a link.
fn scope(group: Ipv6Addr) -> u8 {
    group.octets()[1] & 0xf
}

/// Whether a packet is a kernel's own link-local message: multicast group membership, router or
/// neighbour discovery.
pub fn concerns_link(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.get(9) == Some(&IGMP),
        Some(6) => concerns_link_v6(packet).unwrap_or(false),
        _ => false,
    }
}

fn concerns_link_v6(packet: &[u8]) -> Option<bool> {
    let (mut next, mut at) = (*packet.get(6)?, crate::IPV6_LEN);
    if next == HOP_BY_HOP {
        (next, at) = (*packet.get(at)?, at + 8 * (usize::from(*packet.get(at + 1)?) + 1));
    }
    let kind = *packet.get(at)?;
    let is_of_link = LINK_MESSAGES.contains(&kind) || kind == LISTENER_REPORT_2;
    Some(next == protocol::ICMPV6 && is_of_link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_stay_on_their_link() {
        let is = |from: &str, to: &str| is_of_link(from.parse().unwrap(), to.parse().unwrap());
        for (from, to) in [
            ("fe80::1", "ff02::2"),
            ("::", "ff02::16"),
            ("fd00::1", "fe80::2"),
            ("fd00::1", "ff02::fb"),
            ("10.0.0.1", "224.0.0.251"),
            ("169.254.1.1", "10.0.0.1"),
            ("0.0.0.0", "255.255.255.255"),
        ] {
            assert!(is(from, to), "{from} to {to}");
        }
        for (from, to) in
            [("fd00::1", "fd00::2"), ("fd00::1", "ff0e::1"), ("10.0.0.1", "239.1.1.1")]
        {
            assert!(!is(from, to), "{from} to {to}");
        }
    }

    /// An IPv6 packet up to the type of its ICMPv6 message, with or without hop-by-hop options.
    fn icmpv6(kind: u8, has_options: bool) -> Vec<u8> {
        let mut packet = vec![0; 48];
        (packet[0], packet[6]) = (0x60, if has_options { 0 } else { 58 });
        let at = if has_options { 48 } else { 40 };
        packet[40] = 58;
        packet.resize(at + 8, 0);
        packet[at] = kind;
        packet
    }

    #[test]
    fn what_a_kernel_says_to_a_link_is_told_from_what_others_say() {
        for (kind, has_options) in [(143, true), (133, false), (135, false), (131, true)] {
            assert!(concerns_link(&icmpv6(kind, has_options)), "{kind}");
        }
        for kind in [1, 2, 128, 129] {
            assert!(!concerns_link(&icmpv6(kind, false)), "{kind}");
        }
        let mut igmp = vec![0x46; 32];
        igmp[9] = 2;
        assert!(concerns_link(&igmp));
        igmp[9] = 17;
        assert!(!concerns_link(&igmp) && !concerns_link(&[]) && !concerns_link(&[0x60; 41]));
    }
}
