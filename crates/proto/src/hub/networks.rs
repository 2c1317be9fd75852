//! Which neighbour has which addresses: the longest matching prefix decides (RFC 1812, Section
//! 5.2.4.3).

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use crate::bounds::HUB_NETWORKS_MAX;
use crate::config::StationId;

/// The owner of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This host itself.
    Host,
    /// A neighbour, or a host behind it.
    Neighbour(StationId),
}

/// Why a network cannot be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The same network has an owner.
    #[error("the same network is there already")]
    Taken {
        /// The owner.
        by: Place,
    },
    /// The table is full.
    #[error("more than {HUB_NETWORKS_MAX} networks")]
    Full,
}

/// The networks of a hub's neighbours, and the addresses of its own host.
#[derive(Clone, Debug, Default)]
pub struct Networks {
    v4: PrefixMap<Ipv4Net, Place>,
    v6: PrefixMap<Ipv6Net, Place>,
}

impl Networks {
    /// Inserts a network. Bits after the prefix are ignored.
    ///
    /// # Errors
    /// The same network has an owner, or there are too many. Nothing has changed then.
    pub fn insert(&mut self, network: IpNet, place: Place) -> Result<(), NetworkError> {
        if self.v4.len() + self.v6.len() == HUB_NETWORKS_MAX {
            return Err(NetworkError::Full);
        }
        let taken = match network.trunc() {
            IpNet::V4(network) => self.v4.get(&network).copied(),
            IpNet::V6(network) => self.v6.get(&network).copied(),
        };
        if let Some(by) = taken {
            return Err(NetworkError::Taken { by });
        }
        match network.trunc() {
            IpNet::V4(network) => self.v4.insert(network, place),
            IpNet::V6(network) => self.v6.insert(network, place),
        };
        Ok(())
    }

    /// The owner of an address: that of the longest network that contains it; `None` if no network
    /// does.
    pub fn place(&self, address: IpAddr) -> Option<Place> {
        match address {
            IpAddr::V4(address) => {
                self.v4.get_lpm(&Ipv4Net::from(address)).map(|(_, &place)| place)
            }
            IpAddr::V6(address) => {
                self.v6.get_lpm(&Ipv6Net::from(address)).map(|(_, &place)| place)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn neighbour(id: u8) -> Place {
        Place::Neighbour(StationId(u16::from(id)))
    }

    #[test]
    fn the_longest_prefix_decides_and_one_network_has_one_place() {
        let mut networks = Networks::default();
        let mut insert = |network: &str, place| networks.insert(network.parse().unwrap(), place);
        for (network, place) in [
            ("0.0.0.0/0", neighbour(9)),
            ("10.9.0.0/24", neighbour(2)),
            ("10.9.0.1/32", Place::Host),
            ("10.9.0.7/32", neighbour(3)),
            ("fd00:9::2/128", neighbour(2)),
            ("fd00:9::/64", neighbour(3)),
        ] {
            assert_eq!(insert(network, place), Ok(()));
        }
        // Bits after the prefix do not make it another network.
        let taken = |by| Err(NetworkError::Taken { by });
        assert_eq!(insert("10.9.0.77/24", neighbour(3)), taken(neighbour(2)));
        assert_eq!(insert("10.9.0.1/32", neighbour(3)), taken(Place::Host));
        for (address, place) in [
            ("10.9.0.1", Some(Place::Host)),
            ("10.9.0.2", Some(neighbour(2))),
            ("10.9.0.7", Some(neighbour(3))),
            ("192.0.2.1", Some(neighbour(9))),
            ("fd00:9::2", Some(neighbour(2))),
            ("fd00:9::3", Some(neighbour(3))),
            ("fd00:8::3", None),
        ] {
            assert_eq!(networks.place(address.parse().unwrap()), place, "{address}");
        }
    }

    #[test]
    fn there_are_so_many_networks_and_no_more() {
        let mut networks = Networks::default();
        for index in 0..HUB_NETWORKS_MAX as u32 {
            let address = std::net::Ipv4Addr::from_bits(index);
            networks.insert(IpNet::from(IpAddr::V4(address)), neighbour(1)).unwrap();
        }
        let one_more = "fd00::/64".parse().unwrap();
        assert_eq!(networks.insert(one_more, neighbour(1)), Err(NetworkError::Full));
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        #[test]
        fn the_table_finds_what_a_list_finds(
            entries in proptest::collection::vec((any::<u8>(), 24u8..=32, 1u8..5), 0..24),
            asked in proptest::collection::vec(any::<u8>(), 1..20),
        ) {
            let mut networks = Networks::default();
            let mut list: Vec<(Ipv4Net, Place)> = Vec::new();
            for (last, len, id) in entries {
                let network = Ipv4Net::new([10, 0, 0, last].into(), len).unwrap().trunc();
                let known = list.iter().any(|(other, _)| *other == network);
                let inserted = networks.insert(network.into(), neighbour(id));
                prop_assert_eq!(inserted.is_err(), known);
                if !known {
                    list.push((network, neighbour(id)));
                }
            }
            for last in asked {
                let address = std::net::Ipv4Addr::new(10, 0, 0, last);
                let holding = list.iter().filter(|(network, _)| network.contains(&address));
                let longest = holding.max_by_key(|(network, _)| network.prefix_len());
                prop_assert_eq!(networks.place(address.into()), longest.map(|&(_, place)| place));
            }
        }
    }
}
