//! Shortest routes, by the count of links.
//!
//! A route is looked for when the first packet takes it, and kept as the list of its links: what a
//! network needs to know grows with the routes in use, not with the square of its nodes. Between
//! routes of equal length, at each node the link is taken that comes first in the topology's list.

use std::collections::{BTreeMap, VecDeque};

use crate::core::agent::NodeIndex;

/// Ends a route; stands for no link.
const END: u32 = u32::MAX;

/// Where a packet is on its route: a place in the list of the routes' links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    /// On the next link.
    pub(super) fn next(self) -> Place {
        Place(self.0 + 1)
    }
}

pub(super) struct Routes {
    /// Where each link begins and ends.
    ends: Vec<(NodeIndex, NodeIndex)>,
    /// The links, sorted by where they end, then by place in the list: for the search.
    into: Vec<u32>,
    /// Where the links into each node begin in `into`; one entry more than nodes.
    into_from: Vec<u32>,
    /// The links of all routes known, each route followed by [`END`].
    links: Vec<u32>,
    /// Where the routes from one node to another begin in `links`, if there is one.
    known: BTreeMap<(NodeIndex, NodeIndex), Option<Place>>,
}

impl Routes {
    pub(super) fn new(nodes: usize, ends: Vec<(NodeIndex, NodeIndex)>) -> Self {
        let mut into: Vec<u32> = (0..ends.len() as u32).collect();
        into.sort_by_key(|&pipe| ends[pipe as usize].1);
        let first = |node| into.partition_point(|&pipe| (ends[pipe as usize].1 as usize) < node);
        let into_from = (0..=nodes).map(|node| first(node) as u32).collect();
        Routes { ends, into, into_from, links: Vec::new(), known: BTreeMap::new() }
    }

    /// Where a link begins and ends.
    pub(super) fn ends(&self, pipe: usize) -> (NodeIndex, NodeIndex) {
        self.ends[pipe]
    }

    /// The link between two nodes.
    pub(super) fn pipe(&self, from: NodeIndex, to: NodeIndex) -> Option<usize> {
        let mut links = self.links_into(to).iter().map(|&pipe| pipe as usize);
        links.find(|&pipe| self.ends[pipe].0 == from)
    }

    /// The first place of the route from one node to another; `None` if there is none, or if it
    /// would have no links.
    pub(super) fn route(&mut self, from: NodeIndex, to: NodeIndex) -> Option<Place> {
        if let Some(&known) = self.known.get(&(from, to)) {
            return known;
        }
        let place = Place(self.links.len() as u32);
        let found = self.search(from, to).map(|()| place);
        self.known.insert((from, to), found);
        found
    }

    /// The link at a place, or `None` at the end of the route.
    pub(super) fn link(&self, place: Place) -> Option<usize> {
        let link = self.links[place.0 as usize];
        (link != END).then_some(link as usize)
    }

    fn nodes(&self) -> usize {
        self.into_from.len() - 1
    }

    fn links_into(&self, node: NodeIndex) -> &[u32] {
        let range = |node: usize| self.into_from.get(node).map_or(0, |&at| at as usize);
        let node = node as usize;
        self.into.get(range(node)..range(node + 1)).unwrap_or_default()
    }

    /// Goes from the destination against the direction of the links, nearest nodes first, and
    /// writes down the links from the other end.
    fn search(&mut self, from: NodeIndex, to: NodeIndex) -> Option<()> {
        if from == to || to as usize >= self.nodes() {
            return None;
        }
        let mut onward = vec![END; self.nodes()];
        let mut distance = vec![u32::MAX; self.nodes()];
        distance[to as usize] = 0;
        let mut reached = VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            let next = distance[node as usize] + 1;
            if next > distance[from as usize] {
                break;
            }
            for &pipe in self.links_into(node) {
                let before = self.ends[pipe as usize].0 as usize;
                if distance[before] == u32::MAX {
                    distance[before] = next;
                    reached.push_back(before as NodeIndex);
                }
                if distance[before] == next {
                    onward[before] = onward[before].min(pipe);
                }
            }
        }
        let mut node = from;
        while node != to {
            let pipe = onward[node as usize];
            if pipe == END {
                return None;
            }
            self.links.push(pipe);
            node = self.ends[pipe as usize].1;
        }
        self.links.push(END);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(routes: &mut Routes, from: NodeIndex, to: NodeIndex) -> Option<Vec<usize>> {
        let mut place = routes.route(from, to)?;
        assert_eq!(routes.route(from, to), Some(place), "it is known now");
        let mut links = Vec::new();
        while let Some(link) = routes.link(place) {
            links.push(link);
            place = place.next();
        }
        Some(links)
    }

    #[test]
    fn the_route_with_the_fewest_links_is_taken() {
        // A square 0-1-3-2-0 with a diagonal 0 -> 3, one way.
        let ends = vec![(0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0), (2, 3), (3, 2), (0, 3)];
        let mut routes = Routes::new(4, ends);
        assert_eq!(route(&mut routes, 0, 3), Some(vec![8]));
        assert_eq!(route(&mut routes, 3, 0), Some(vec![3, 1]), "the first in the list");
        assert_eq!(route(&mut routes, 1, 2), Some(vec![1, 4]));
        assert_eq!((routes.pipe(0, 3), routes.pipe(3, 0)), (Some(8), None));
    }

    #[test]
    fn the_first_link_of_the_list_wins_whatever_node_is_reached_first() {
        // From 4 to 0 by 1, 2 or 3; node 1 is reached first, the link to 3 is the first listed.
        let ends = vec![(4, 3), (4, 2), (4, 1), (1, 0), (2, 0), (3, 0)];
        assert_eq!(route(&mut Routes::new(5, ends), 4, 0), Some(vec![0, 5]));
    }

    #[test]
    fn where_no_route_is_there_is_none() {
        let mut routes = Routes::new(3, vec![(0, 1)]);
        assert_eq!(route(&mut routes, 0, 1), Some(vec![0]));
        assert_eq!(route(&mut routes, 1, 0), None);
        assert_eq!(route(&mut routes, 0, 2), None);
        assert_eq!(route(&mut routes, 0, 7), None, "no such node");
        assert_eq!(route(&mut routes, 1, 1), None, "it is there already");
    }
}
