//! Routing: each node looks up the next link of a packet.
//!
//! Unless set otherwise, the route is the one with the fewest links. It is searched when the first
//! packet needs it, and each node on it then remembers its own next link, so memory grows with the
//! routes in use and not with the square of the number of nodes. Among routes of equal length, each
//! node takes the link that comes first in the topology's list; pipes come before the links of
//! radios.

use std::collections::VecDeque;

use crate::core::agent::NodeIndex;

/// No link leads to the destination.
const NOWHERE: u32 = u32::MAX;

/// Tables with up to this many destinations are searched linearly.
const SHORT_TABLE: usize = 8;

/// A link from one node to another: its index in the list of all links.
pub(super) type Link = u32;

/// A link between two places on a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnAir {
    pub(super) radio: u32,
    /// The places on the radio's medium.
    pub(super) from: u32,
    pub(super) to: u32,
}

pub(super) struct Router {
    /// Both ends of each link: pipes first, then the links of radios.
    ends: Vec<(NodeIndex, NodeIndex)>,
    /// How many of the links are pipes.
    pipes: usize,
    /// The links of radios.
    on_air: Vec<OnAir>,
    into: Index,
    out_of: Index,
    /// By node: the next link for each destination, or [`NOWHERE`].
    tables: Vec<Vec<(NodeIndex, Link)>>,
}

/// Links, indexed by one of their ends.
struct Index {
    /// Sorted by node, then by index.
    links: Vec<Link>,
    /// Where the links of each node begin; one entry more than there are nodes.
    from: Vec<u32>,
}

impl Index {
    fn new(nodes: usize, ends: impl Fn(Link) -> NodeIndex, count: usize) -> Self {
        let mut links: Vec<Link> = (0..count as Link).collect();
        links.sort_by_key(|&link| ends(link));
        let first = |node| links.partition_point(|&link| (ends(link) as usize) < node);
        let from = (0..=nodes).map(|node| first(node) as u32).collect();
        Index { links, from }
    }

    fn of(&self, node: NodeIndex) -> &[Link] {
        let at = |node: usize| self.from.get(node).map_or(0, |&at| at as usize);
        let node = node as usize;
        self.links.get(at(node)..at(node + 1)).unwrap_or_default()
    }
}

impl Router {
    /// A router for pipes, given by their ends, and for the links that radios make between nodes.
    pub(super) fn new(
        nodes: usize,
        pipes: impl Iterator<Item = (NodeIndex, NodeIndex)>,
        air: impl Iterator<Item = (NodeIndex, NodeIndex, OnAir)>,
    ) -> Self {
        let mut ends: Vec<_> = pipes.collect();
        let pipes = ends.len();
        let mut on_air = Vec::new();
        for (from, to, link) in air {
            ends.push((from, to));
            on_air.push(link);
        }
        Router {
            into: Index::new(nodes, |link| ends[link as usize].1, ends.len()),
            out_of: Index::new(nodes, |link| ends[link as usize].0, ends.len()),
            ends,
            pipes,
            on_air,
            tables: vec![Vec::new(); nodes],
        }
    }

    /// The ends of a link.
    pub(super) fn ends(&self, link: Link) -> (NodeIndex, NodeIndex) {
        self.ends[link as usize]
    }

    /// The radio and places of a link; `None` for a pipe.
    pub(super) fn on_air(&self, link: Link) -> Option<OnAir> {
        let at = (link as usize).checked_sub(self.pipes)?;
        self.on_air.get(at).copied()
    }

    /// The pipe between two nodes.
    pub(super) fn pipe(&self, from: NodeIndex, to: NodeIndex) -> Option<usize> {
        self.link(from, to).map(|link| link as usize).filter(|&link| link < self.pipes)
    }

    /// The first link between two nodes.
    pub(super) fn link(&self, from: NodeIndex, to: NodeIndex) -> Option<Link> {
        self.into.of(to).iter().copied().find(|&link| self.ends(link).0 == from)
    }

    /// The link between two nodes on a radio.
    pub(super) fn link_by(&self, from: NodeIndex, to: NodeIndex, radio: usize) -> Option<Link> {
        let is_it = |&link: &Link| {
            self.ends(link).0 == from
                && self.on_air(link).is_some_and(|air| air.radio as usize == radio)
        };
        self.into.of(to).iter().copied().find(is_it)
    }

    /// The links from a node.
    pub(super) fn links_from(&self, node: NodeIndex) -> &[Link] {
        self.out_of.of(node)
    }

    /// The link that a packet at `node` takes towards `to`; `None` if there is no route.
    #[inline]
    pub(super) fn next(&mut self, node: NodeIndex, to: NodeIndex) -> Option<Link> {
        let table = self.tables.get(node as usize)?;
        if table.len() <= SHORT_TABLE {
            // A loop without dependencies between its iterations.
            for &(other, link) in table {
                if other == to {
                    return (link != NOWHERE).then_some(link);
                }
            }
        }
        self.next_of_many(node, to)
    }

    /// [`next`](Self::next) where the table is long, or has no entry.
    #[inline(never)]
    fn next_of_many(&mut self, node: NodeIndex, to: NodeIndex) -> Option<Link> {
        let table = &self.tables[node as usize];
        let link = match table.binary_search_by_key(&to, |&(to, _)| to) {
            Ok(place) => table[place].1,
            Err(_) => self.search(node, to),
        };
        (link != NOWHERE).then_some(link)
    }

    /// Routes packets for `to` by this link from its start on; `None`: not at all.
    pub(super) fn set(&mut self, node: NodeIndex, to: NodeIndex, link: Option<Link>) {
        self.note(node, to, link.unwrap_or(NOWHERE));
    }

    fn note(&mut self, node: NodeIndex, to: NodeIndex, link: Link) {
        let table = &mut self.tables[node as usize];
        match table.binary_search_by_key(&to, |&(to, _)| to) {
            Ok(place) => table[place].1 = link,
            Err(place) => table.insert(place, (to, link)),
        }
    }

    fn known(&self, node: NodeIndex, to: NodeIndex) -> bool {
        self.tables[node as usize].binary_search_by_key(&to, |&(to, _)| to).is_ok()
    }

    /// Searches from the destination backwards along the links, nearest nodes first, and has the
    /// nodes on the way remember their links. Returns the first link.
    fn search(&mut self, from: NodeIndex, to: NodeIndex) -> Link {
        let nodes = self.tables.len();
        if from == to || to as usize >= nodes {
            return NOWHERE;
        }
        let mut onward = vec![NOWHERE; nodes];
        let mut distance = vec![u32::MAX; nodes];
        distance[to as usize] = 0;
        let mut reached = VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            let next = distance[node as usize] + 1;
            if next > distance[from as usize] {
                break;
            }
            for &link in self.into.of(node) {
                let before = self.ends[link as usize].0 as usize;
                if distance[before] == u32::MAX {
                    distance[before] = next;
                    reached.push_back(before as NodeIndex);
                }
                if distance[before] == next {
                    onward[before] = onward[before].min(link);
                }
            }
        }
        let first = onward[from as usize];
        let mut node = from;
        // A route that a node already knows is kept.
        while node != to && !self.known(node, to) {
            let link = onward[node as usize];
            self.note(node, to, link);
            if link == NOWHERE {
                break;
            }
            node = self.ends[link as usize].1;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn router(nodes: usize, ends: &[(NodeIndex, NodeIndex)]) -> Router {
        Router::new(nodes, ends.iter().copied(), core::iter::empty())
    }

    fn route(router: &mut Router, from: NodeIndex, to: NodeIndex) -> Option<Vec<Link>> {
        let mut links = Vec::new();
        let mut node = from;
        while node != to || links.is_empty() {
            let link = router.next(node, to)?;
            assert_eq!(router.next(node, to), Some(link), "it is known now");
            links.push(link);
            node = router.ends(link).1;
        }
        Some(links)
    }

    #[test]
    fn the_route_with_the_fewest_links_is_taken() {
        // A square 0-1-3-2-0 with a one-way diagonal 0 -> 3.
        let ends = [(0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0), (2, 3), (3, 2), (0, 3)];
        let mut router = router(4, &ends);
        assert_eq!(route(&mut router, 0, 3), Some(vec![8]));
        assert_eq!(route(&mut router, 3, 0), Some(vec![3, 1]), "the first in the list");
        assert_eq!(route(&mut router, 1, 2), Some(vec![1, 4]));
        assert_eq!((router.pipe(0, 3), router.pipe(3, 0)), (Some(8), None));
        assert_eq!(router.links_from(1), [1, 2]);
    }

    #[test]
    fn the_first_link_of_the_list_wins_whatever_node_is_reached_first() {
        // From 4 to 0 by 1, 2 or 3: the search reaches node 1 first, but the link to 3 is listed
        // first.
        let ends = [(4, 3), (4, 2), (4, 1), (1, 0), (2, 0), (3, 0)];
        assert_eq!(route(&mut router(5, &ends), 4, 0), Some(vec![0, 5]));
    }

    #[test]
    fn where_no_route_is_there_is_none() {
        let mut router = router(3, &[(0, 1)]);
        assert_eq!(route(&mut router, 0, 1), Some(vec![0]));
        assert_eq!(route(&mut router, 1, 0), None);
        assert_eq!(route(&mut router, 0, 2), None);
        assert_eq!(route(&mut router, 0, 7), None, "no such node");
        assert_eq!(route(&mut router, 1, 1), None, "it is there already");
    }

    #[test]
    fn what_is_said_comes_before_what_is_found() {
        let mut router = router(3, &[(0, 1), (1, 2), (0, 2)]);
        let by_1 = router.link(0, 1);
        router.set(0, 2, by_1);
        assert_eq!(route(&mut router, 0, 2), Some(vec![0, 1]));
        router.set(0, 2, None);
        assert_eq!(route(&mut router, 0, 2), None);
    }

    #[test]
    fn links_of_radios_are_links_behind_the_pipes() {
        let on_air = OnAir { radio: 0, from: 1, to: 0 };
        let pipes = [(0, 1)].into_iter();
        let mut router = Router::new(2, pipes, [(1, 0, on_air)].into_iter());
        let back = router.next(1, 0).and_then(|link| router.on_air(link));
        assert_eq!(back, Some(on_air));
        assert_eq!(router.next(0, 1).and_then(|link| router.on_air(link)), None);
        assert_eq!(router.pipe(1, 0), None);
    }
}
