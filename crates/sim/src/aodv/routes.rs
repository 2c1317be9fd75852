//! The routing table, with the next hop to each destination, and the requests seen.

use std::collections::VecDeque;

use super::config::Metric;
use super::message::{Address, Cost};

/// Most destinations in the table, and most origins whose requests are remembered.
pub const ROUTES_MAX: usize = 4_096;

/// Requests remembered for each origin. If an origin looks for more destinations at once, a request
/// may be flooded twice.
const REQUESTS_MAX: usize = 8;

/// Whether a sequence number is newer than another, with 16-bit wrap-around (RFC 3561, 6.1).
pub(super) fn is_newer(sequence: u16, than: u16) -> bool {
    (sequence.wrapping_sub(than) as i16) > 0
}

/// Whether a route is strictly better. Each link makes a route worse, so there are no loops.
pub(super) fn is_better(metric: Metric, cost: Cost, than: Cost) -> bool {
    match metric {
        Metric::HopCount => cost.hops < than.hops,
        Metric::PathDr => {
            cost.quality > than.quality || (cost.quality == than.quality && cost.hops < than.hops)
        }
    }
}

/// A route to a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads.
    pub destination: Address,
    /// The next hop.
    pub next: Address,
    /// How long and how good it is.
    pub cost: Cost,
    /// The destination's sequence number, as far as it is known.
    pub sequence: u16,
    /// Whether packets may take it.
    pub is_valid: bool,
    /// Neighbours that route through this one: they are informed when the route ends.
    pub precursors: Vec<Address>,
}

impl Route {
    /// Records a neighbour that uses this route.
    pub(super) fn add_precursor(&mut self, neighbour: Address) {
        if let Err(place) = self.precursors.binary_search(&neighbour) {
            self.precursors.insert(place, neighbour);
        }
    }
}

/// A route learnt from a message, offered to the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub destination: Address,
    pub next: Address,
    pub cost: Cost,
    pub sequence: u16,
}

/// How a request compares with those already seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Old, or a copy that is not better.
    Stale,
    /// A copy that came by a better path.
    Better,
    /// A request not seen before.
    New,
}

/// The last requests of an origin, each with the cost of its best copy, the oldest first. Origin
/// and id identify a request (RFC 3561, 6.5).
#[derive(Clone, Debug)]
struct Seen {
    origin: Address,
    requests: VecDeque<(u16, Cost)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// Ordered by destination.
    routes: Vec<Route>,
    /// Ordered by origin.
    seen: Vec<Seen>,
}

impl Routes {
    pub fn all(&self) -> &[Route] {
        &self.routes
    }

    pub fn all_mut(&mut self) -> &mut [Route] {
        &mut self.routes
    }

    /// The route to a destination, valid or not.
    pub fn get(&self, destination: Address) -> Option<&Route> {
        let place = self.routes.binary_search_by_key(&destination, |route| route.destination);
        place.ok().map(|place| &self.routes[place])
    }

    pub fn get_mut(&mut self, destination: Address) -> Option<&mut Route> {
        let place = self.routes.binary_search_by_key(&destination, |route| route.destination);
        place.ok().map(|place| &mut self.routes[place])
    }

    /// The valid route to a destination.
    pub fn valid(&self, destination: Address) -> Option<&Route> {
        self.get(destination).filter(|route| route.is_valid)
    }

    /// Takes a route if its sequence number is newer, or if it is the same and the route better, or
    /// if there is no valid route and it is not older (RFC 3561, 6.2). Returns whether it was
    /// taken.
    pub fn take(&mut self, metric: Metric, heard: Heard) -> bool {
        let Heard { destination, next, cost, sequence } = heard;
        match self.routes.binary_search_by_key(&destination, |route| route.destination) {
            Ok(place) => {
                let route = &mut self.routes[place];
                let newer = is_newer(sequence, route.sequence);
                let alike = sequence == route.sequence;
                let better = !route.is_valid || is_better(metric, cost, route.cost);
                if !(newer || alike && better) {
                    return false;
                }
                (route.next, route.cost, route.sequence) = (next, cost, sequence);
                route.is_valid = true;
                true
            }
            Err(_) if self.routes.len() == ROUTES_MAX => false,
            Err(place) => {
                let precursors = Vec::new();
                let is_valid = true;
                let route = Route { destination, next, cost, sequence, is_valid, precursors };
                self.routes.insert(place, route);
                true
            }
        }
    }

    /// Classifies a request, and records it.
    pub fn news(&mut self, metric: Metric, origin: Address, id: u16, cost: Cost) -> News {
        let place = match self.seen.binary_search_by_key(&origin, |seen| seen.origin) {
            Ok(place) => place,
            Err(_) if self.seen.len() == ROUTES_MAX => return News::Stale,
            Err(place) => {
                self.seen.insert(place, Seen { origin, requests: VecDeque::new() });
                place
            }
        };
        let requests = &mut self.seen[place].requests;
        if let Some((_, best)) = requests.iter_mut().find(|(seen, _)| *seen == id) {
            if !is_better(metric, cost, *best) {
                return News::Stale;
            }
            *best = cost;
            return News::Better;
        }
        if requests.len() == REQUESTS_MAX {
            // It may be a copy of a request that has been forgotten.
            if requests.front().is_some_and(|&(oldest, _)| !is_newer(id, oldest)) {
                return News::Stale;
            }
            requests.pop_front();
        }
        let place = requests.partition_point(|&(seen, _)| is_newer(id, seen));
        requests.insert(place, (id, cost));
        News::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(next: Address, hops: u8, quality: u16, sequence: u16) -> Heard {
        Heard { destination: 9, next, cost: Cost { hops, quality }, sequence }
    }

    /// RFC 3561, 6.1: a number is newer if it is ahead by less than half of the number space.
    #[test]
    fn numbers_wrap() {
        assert!(is_newer(1, 0) && is_newer(0, u16::MAX) && is_newer(10, 65_530));
        assert!(!is_newer(0, 0) && !is_newer(0, 1) && !is_newer(65_530, 10));
    }

    /// RFC 3561, 6.2.
    #[test]
    fn a_way_is_taken_that_is_newer_or_better_or_where_there_is_none() {
        let mut routes = Routes::default();
        let metric = Metric::HopCount;
        assert!(routes.take(metric, heard(1, 3, 100, 5)), "there is none");
        assert!(!routes.take(metric, heard(2, 3, 200, 5)), "as long as the one there is");
        assert!(routes.take(metric, heard(2, 2, 50, 5)), "shorter");
        assert!(!routes.take(metric, heard(3, 1, 900, 4)), "older");
        assert!(routes.take(metric, heard(3, 7, 10, 6)), "newer, if longer");
        routes.get_mut(9).expect("a route").is_valid = false;
        assert!(!routes.take(metric, heard(4, 1, 900, 5)), "older than the one that was lost");
        assert!(routes.take(metric, heard(4, 9, 1, 6)), "as old as the one that was lost");
        assert_eq!(routes.valid(9).map(|route| route.next), Some(4));
    }

    #[test]
    fn quality_decides_and_of_equals_the_shorter() {
        let cost = |hops, quality| Cost { hops, quality };
        let better = |a, b| is_better(Metric::PathDr, a, b);
        assert!(better(cost(5, 101), cost(1, 100)));
        assert!(better(cost(1, 100), cost(2, 100)));
        assert!(!better(cost(2, 100), cost(2, 100)));
        assert!(!better(cost(1, 99), cost(9, 100)));
    }

    #[test]
    fn a_request_is_news_once_or_by_a_better_way() {
        let mut routes = Routes::default();
        let cost = |hops| Cost { hops, quality: 0 };
        let mut news = |id, hops| routes.news(Metric::HopCount, 1, id, cost(hops));
        assert_eq!([news(7, 4), news(7, 4)], [News::New, News::Stale]);
        assert_eq!([news(7, 3), news(7, 4)], [News::Better, News::Stale]);
        assert_eq!([news(9, 9), news(8, 2)], [News::New, News::New], "of other destinations");
        assert_eq!([news(7, 1), news(9, 9)], [News::Better, News::Stale]);
        for id in 10..10 + REQUESTS_MAX as u16 {
            assert_eq!(news(id, 5), News::New);
        }
        assert_eq!(news(7, 0), News::Stale, "forgotten, so that it may be a copy");
    }
}
