//! Shortest routes, by the count of links.
//!
//! A table for each destination, made when the first packet for it is sent: few nodes of a large
//! network are anybody's destination. Between routes of equal length, the link that comes first in
//! the topology's list is taken.

use std::collections::VecDeque;

use crate::agent::NodeIndex;

/// Stands for no link: from here there is no route.
const NO_PIPE: u32 = u32::MAX;

pub(super) struct Routes {
    /// Where each link begins and ends.
    ends: Vec<(NodeIndex, NodeIndex)>,
    /// The links, sorted by where they end, then by place in the list: for the search.
    into: Vec<u32>,
    /// Where the links into each node begin in `into`; one entry more than nodes.
    into_from: Vec<u32>,
    /// For each destination: the link that leads on from each node. Empty before it is needed.
    tables: Vec<Box<[u32]>>,
}

impl Routes {
    pub(super) fn new(nodes: usize, ends: Vec<(NodeIndex, NodeIndex)>) -> Self {
        let mut into: Vec<u32> = (0..ends.len() as u32).collect();
        into.sort_by_key(|&pipe| ends[pipe as usize].1);
        let first = |node| into.partition_point(|&pipe| (ends[pipe as usize].1 as usize) < node);
        let into_from = (0..=nodes).map(|node| first(node) as u32).collect();
        Routes { ends, into, into_from, tables: vec![Box::default(); nodes] }
    }

    /// Where a link ends.
    pub(super) fn end(&self, pipe: usize) -> NodeIndex {
        self.ends[pipe].1
    }

    /// The link between two nodes.
    pub(super) fn pipe(&self, from: NodeIndex, to: NodeIndex) -> Option<usize> {
        let mut links = self.links_into(to).iter().map(|&pipe| pipe as usize);
        links.find(|&pipe| self.ends[pipe].0 == from)
    }

    /// The link that leads on from `node` to `to`.
    pub(super) fn next(&mut self, node: NodeIndex, to: NodeIndex) -> Option<usize> {
        let table = self.tables.get(to as usize)?;
        let pipe = match table.get(node as usize) {
            Some(&pipe) => pipe,
            None => {
                let table = self.search(to);
                let pipe = table[node as usize];
                self.tables[to as usize] = table;
                pipe
            }
        };
        (pipe != NO_PIPE).then_some(pipe as usize)
    }

    fn links_into(&self, node: NodeIndex) -> &[u32] {
        let range = |node: usize| self.into_from.get(node).map_or(0, |&at| at as usize);
        let node = node as usize;
        self.into.get(range(node)..range(node + 1)).unwrap_or_default()
    }

    /// Goes from the destination against the direction of the links, nearest nodes first.
    fn search(&self, to: NodeIndex) -> Box<[u32]> {
        let mut table = vec![NO_PIPE; self.tables.len()].into_boxed_slice();
        let mut distance = vec![u32::MAX; self.tables.len()];
        distance[to as usize] = 0;
        let mut reached = VecDeque::from([to]);
        while let Some(node) = reached.pop_front() {
            let next = distance[node as usize] + 1;
            for &pipe in self.links_into(node) {
                let from = self.ends[pipe as usize].0;
                let known = distance[from as usize];
                if known == u32::MAX {
                    distance[from as usize] = next;
                    reached.push_back(from);
                }
                if known >= next {
                    // Also of several on routes of equal length, the first in the list.
                    let best = &mut table[from as usize];
                    *best = (*best).min(pipe);
                }
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_with_the_fewest_links_is_taken() {
        // A square 0-1-3-2-0 with a diagonal 0 -> 3, one way.
        let ends = vec![(0, 1), (1, 0), (1, 3), (3, 1), (0, 2), (2, 0), (2, 3), (3, 2), (0, 3)];
        let mut routes = Routes::new(4, ends);
        assert_eq!(routes.next(0, 3), Some(8));
        assert_eq!(routes.next(3, 0), Some(3), "both ways are as long: the first in the list");
        assert_eq!(routes.next(1, 2), Some(1));
        assert_eq!((routes.pipe(0, 3), routes.pipe(3, 0)), (Some(8), None));
    }

    #[test]
    fn the_first_link_of_the_list_wins_whatever_node_is_reached_first() {
        // From 4 to 0 by 1, 2 or 3; node 1 is reached first, the link to 3 is the first listed.
        let ends = vec![(4, 3), (4, 2), (4, 1), (1, 0), (2, 0), (3, 0)];
        assert_eq!(Routes::new(5, ends).next(4, 0), Some(0));
    }

    #[test]
    fn where_no_route_is_there_is_none() {
        let mut routes = Routes::new(3, vec![(0, 1)]);
        assert_eq!(routes.next(0, 1), Some(0));
        assert_eq!(routes.next(1, 0), None);
        assert_eq!(routes.next(0, 2), None);
        assert_eq!(routes.next(0, 7), None, "no such node");
        assert_eq!(routes.next(1, 1), None, "it is there already");
    }
}
