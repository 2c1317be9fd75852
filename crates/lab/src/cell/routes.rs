//! Next hops: as in the simulator, the route with the fewest links, and among several the next hop
//! with the lowest number, unless the plan sets another route.

use std::collections::VecDeque;

use corridor_air::radio::Reach;
use corridor_scenario::Network;

use super::refused;
use crate::error::LabError;

/// Next hops, by node and destination.
pub(super) struct Routes {
    next: Vec<Vec<Option<usize>>>,
    /// By pair of nodes: whether one hears the other.
    heard: Vec<Vec<bool>>,
}

impl Routes {
    pub(super) fn new(network: &Network, reaches: &[Reach]) -> Self {
        let nodes = network.nodes;
        let mut heard = vec![vec![false; nodes]; nodes];
        for reach in reaches.iter().filter(|reach| reach.hears) {
            heard[reach.from][reach.to] = true;
        }
        let distances: Vec<_> = (0..nodes).map(|to| distances(&heard, to)).collect();
        let nearest = |from: usize, to: usize| {
            let links = distances[to][from]?;
            let is_nearer = |&other: &usize| distances[to][other].is_some_and(|d| d + 1 == links);
            (0..nodes).filter(|&other| heard[from][other]).find(is_nearer)
        };
        let row = |from: usize| (0..nodes).map(|to| nearest(from, to)).collect();
        let mut next: Vec<Vec<Option<usize>>> = (0..nodes).map(row).collect();
        for route in &network.routes {
            let ends = route.path.first().zip(route.path.last());
            let Some((&first, &last)) = ends else { continue };
            for hop in route.path.windows(2) {
                next[hop[0]][last] = Some(hop[1]);
                if route.both_ways {
                    next[hop[1]][first] = Some(hop[0]);
                }
            }
        }
        Routes { next, heard }
    }

    /// Checks that the plan's routes use existing links, as in the simulator, and that every flow
    /// has a route to its destination and back.
    pub(super) fn check(&self, network: &Network) -> Result<(), LabError> {
        for (index, route) in network.routes.iter().enumerate() {
            let forth = route.path.windows(2).map(|hop| (hop[0], hop[1]));
            let back = forth.clone().map(|(from, to)| (to, from)).filter(|_| route.both_ways);
            if let Some((from, to)) = forth.chain(back).find(|&(from, to)| !self.heard[from][to]) {
                let field = format!("network.route[{index}].path");
                let expected = "hops to nodes that hear the one before";
                return Err(refused(&field, format!("{from} to {to}"), expected));
            }
        }
        for (index, flow) in network.flows.iter().enumerate() {
            if !self.leads(flow.from, flow.to) || !self.leads(flow.to, flow.from) {
                let field = format!("flow[{index}].to");
                return Err(refused(&field, flow.to, "a node that there is a route to, and back"));
            }
        }
        Ok(())
    }

    fn leads(&self, from: usize, to: usize) -> bool {
        let mut at = from;
        for _ in 0..self.next.len() {
            match self.next[at][to] {
                Some(next) if next == to => return true,
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }

    /// The next hop from `node` to `to`.
    pub(super) fn next(&self, node: usize, to: usize) -> Option<usize> {
        self.next[node][to]
    }

    /// The nodes with links to and from a node, each with the destinations that it is the next hop
    /// for.
    pub(super) fn neighbours(&self, node: usize) -> Vec<(usize, Vec<usize>)> {
        let all = 0..self.next.len();
        let hears = |&other: &usize| self.heard[node][other] && self.heard[other][node];
        let leads_to = |other: usize| {
            let to = all.clone().filter(|&to| self.next[node][to] == Some(other));
            (other, to.collect())
        };
        all.clone().filter(hears).map(leads_to).collect()
    }
}

/// Number of links from each node to another; `None` if there is no route.
fn distances(heard: &[Vec<bool>], to: usize) -> Vec<Option<usize>> {
    let mut distances = vec![None; heard.len()];
    distances[to] = Some(0);
    let mut queue = VecDeque::from([to]);
    while let Some(node) = queue.pop_front() {
        let links = distances[node].map(|links| links + 1);
        for from in 0..heard.len() {
            if heard[from][node] && distances[from].is_none() {
                distances[from] = links;
                queue.push_back(from);
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use corridor_scenario::{Load, Plan};

    use super::*;

    /// Four nodes with a flow from the first to the last, and a route.
    fn network(route: &str) -> Network {
        let text = format!(
            "name = 'routes'\nseed = 7\nduration_s = 4\n[network]\nkind = 'line'\nnodes = 4\n\
             spacing_m = 20\n[network.radio]\nmac = 'dcf'\nrate_bps = '54M'\n{route}\n\
             [[flow]]\nfrom = 0\nto = 3\nsource = {{ kind = 'ftp' }}\n"
        );
        let plan = Plan::parse(&text, std::path::Path::new("")).expect("a test's plan is sound");
        match plan.points.into_iter().next().map(|point| point.load) {
            Some(Load::Network(network)) => Network::clone(&network),
            other => panic!("{other:?}"),
        }
    }

    fn reaches(heard: &[(usize, usize)]) -> Vec<Reach> {
        let reach = |&(from, to)| Reach { from, to, hears: true, senses: true, power_dbm: None };
        heard.iter().map(reach).collect()
    }

    /// Each node hears its two neighbours in the line.
    const LINE: [(usize, usize); 6] = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)];

    fn check(route: &str, heard: &[(usize, usize)]) -> Result<(), String> {
        let network = network(route);
        Routes::new(&network, &reaches(heard)).check(&network).map_err(|error| error.to_string())
    }

    #[test]
    fn routes_over_links_that_nobody_hears_are_refused() {
        assert_eq!(check("", &LINE), Ok(()));
        assert_eq!(check("[[network.route]]\npath = [0, 1, 2, 3]", &LINE), Ok(()));
        let refused = |hop: &str| {
            let expected = "expected hops to nodes that hear the one before in the lab";
            Err(format!("network.route[0].path = {hop}: {expected}"))
        };
        let short = "[[network.route]]\npath = [0, 2, 3]";
        assert_eq!(check(short, &LINE), refused("0 to 2"));
        // A one-way link does not work in the other direction.
        let heard = [&LINE[..], &[(0, 2)]].concat();
        assert_eq!(check(short, &heard), refused("2 to 0"));
        assert_eq!(check(&format!("{short}\nboth_ways = false"), &heard), Ok(()));
    }

    #[test]
    fn who_only_finds_the_channel_busy_hears_nothing() {
        let network = network("[[network.route]]\npath = [0, 2, 3]");
        let disturbed = [(0, 2), (2, 0)].map(|(from, to)| Reach {
            from,
            to,
            hears: false,
            senses: true,
            power_dbm: None,
        });
        let all = [reaches(&LINE), disturbed.to_vec()].concat();
        let error = Routes::new(&network, &all).check(&network).unwrap_err().to_string();
        assert!(error.starts_with("network.route[0].path = 0 to 2: expected"), "{error}");
    }
}
