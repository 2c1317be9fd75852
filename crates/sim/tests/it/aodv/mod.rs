//! Route discovery as readable scripts in the folder `scripts`: a line that begins with > is an
//! event, the lines below it are its consequences. `UPDATE=1` rewrites them.
//!
//! | line | event |
//! |---|---|
//! | `> nodes 4 hop-count` | four routers without routes, and their metric; or `path-dr` |
//! | `> join 0-1 200` | two nodes hear each other with this LQI, in both directions |
//! | `> part 0-1` | they no longer hear each other |
//! | `> send 0 3 a` | node 0 sends a packet "a" to 3 |
//! | `> wait 500` | milliseconds pass |
//! | `> routes` | every valid route, with its next hop |
//!
//! Messages arrive at once and in order; requests are forwarded without jitter.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use corridor_base::{StreamKey, Time};
use corridor_sim::aodv::{
    Address, Aodv, AodvConfig, Cost, Message, Metric, Output, Reply, Request,
};

/// Source, destination and name of a packet.
type Packet = (Address, Address, String);

#[derive(Default)]
struct Net {
    now: Time,
    routers: Vec<Aodv<Packet>>,
    links: BTreeMap<(Address, Address), u8>,
    /// What is in flight: from, to, content. In order.
    air: VecDeque<(Address, Option<Address>, Carried)>,
    trace: String,
}

#[derive(Clone, Debug)]
enum Carried {
    Message(Message),
    Packet(Packet),
}

impl Net {
    fn step(&mut self, words: &[&str]) {
        match words {
            ["nodes", count, metric] => {
                let metric = match *metric {
                    "path-dr" => Metric::PathDr,
                    _ => Metric::HopCount,
                };
                let config = AodvConfig { jitter_max: Duration::ZERO, ..AodvConfig::new(metric) };
                let router = |address: Address| {
                    let entity = u64::from(address);
                    let key = StreamKey { seed: 1, replication: 0, entity, purpose: "routing" };
                    Aodv::new(address, config, key).unwrap()
                };
                self.routers = (0..count.parse().unwrap()).map(router).collect();
            }
            ["join", ends, lqi] => {
                let (a, b) = pair(ends);
                for (from, to) in [(a, b), (b, a)] {
                    self.links.insert((from, to), lqi.parse().unwrap());
                }
            }
            ["part", ends] => {
                let (a, b) = pair(ends);
                self.links.remove(&(a, b));
                self.links.remove(&(b, a));
            }
            ["send", from, to, name] => {
                let (from, to): (Address, Address) = (from.parse().unwrap(), to.parse().unwrap());
                let packet = (from, to, name.to_string());
                self.routers[from as usize].send(self.now, to, packet);
            }
            ["wait", ms] => {
                let end = self.now + Duration::from_millis(ms.parse().unwrap());
                self.run(end);
                self.now = end;
            }
            ["routes"] => {
                for (node, router) in self.routers.iter().enumerate() {
                    for route in router.routes().iter().filter(|route| route.is_valid) {
                        let (to, next) = (route.destination, route.next);
                        writeln!(self.trace, "  {node} to {to} by {next}{}", cost(route.cost))
                            .unwrap();
                    }
                }
            }
            other => panic!("{other:?}: expected a line of the table"),
        }
        self.run(self.now);
    }

    /// Handles all events up to `end`.
    fn run(&mut self, end: Time) {
        loop {
            self.settle();
            let due = self.routers.iter().enumerate().filter_map(|(node, router)| {
                let at = router.poll_timeout()?;
                Some((at.max(self.now), node))
            });
            let Some((at, node)) = due.min().filter(|&(at, _)| at <= end) else { return };
            if at > self.now {
                writeln!(self.trace, "  at {} ms", at.as_nanos() / 1_000_000).unwrap();
            }
            self.now = at;
            self.routers[node].handle_timeout(at);
        }
    }

    fn settle(&mut self) {
        loop {
            for node in 0..self.routers.len() {
                while let Some(output) = self.routers[node].poll_output() {
                    self.take(node as Address, output);
                }
            }
            let Some((from, to, carried)) = self.air.pop_front() else { return };
            match to {
                Some(to) => self.deliver(from, to, carried),
                None => {
                    let heard = self.links.keys().filter(|(a, _)| *a == from).map(|(_, b)| *b);
                    for to in heard.collect::<Vec<_>>() {
                        self.deliver(from, to, carried.clone());
                    }
                }
            }
        }
    }

    fn take(&mut self, node: Address, output: Output<Packet>) {
        let line = match output {
            Output::Broadcast(message) => {
                let line = format!("{node} to all: {}", told(&message));
                self.air.push_back((node, None, Carried::Message(message)));
                line
            }
            Output::Unicast(to, message) => {
                let line = format!("{node} to {to}: {}", told(&message));
                self.air.push_back((node, Some(to), Carried::Message(message)));
                line
            }
            Output::Forward(to, packet) => {
                let line = format!("{node} to {to}: packet {}", packet.2);
                self.air.push_back((node, Some(to), Carried::Packet(packet)));
                line
            }
            Output::Drop((_, to, name)) => format!("{node} drops {name}: no route to {to}"),
            Output::Unreachable((_, to, name)) => {
                format!("{node} gives {name} up: no route to {to}")
            }
        };
        writeln!(self.trace, "  {line}").unwrap();
    }

    fn deliver(&mut self, from: Address, to: Address, carried: Carried) {
        let now = self.now;
        let lqi = self.links.get(&(from, to)).copied();
        let sender = &mut self.routers[from as usize];
        match (carried, lqi) {
            (Carried::Message(_), None) => {
                writeln!(self.trace, "  {from} hears nothing of {to}").unwrap();
            }
            (Carried::Packet(packet), None) => {
                writeln!(self.trace, "  {from} hears nothing of {to}").unwrap();
                let way = (to, packet.1);
                sender.handle_outcome(now, way, false, (packet.0 == from).then_some(packet));
            }
            (Carried::Message(message), Some(lqi)) => {
                self.routers[to as usize].handle_message(now, from, lqi, &message);
            }
            (Carried::Packet(packet), Some(_)) => {
                sender.handle_outcome(now, (to, packet.1), true, None);
                if packet.1 == to {
                    writeln!(self.trace, "  {to} has packet {}", packet.2).unwrap();
                } else {
                    self.routers[to as usize].pass_on(from, packet.1, packet);
                }
            }
        }
    }
}

fn pair(ends: &str) -> (Address, Address) {
    let (a, b) = ends.split_once('-').unwrap();
    (a.parse().unwrap(), b.parse().unwrap())
}

/// A message in words, without the identifiers of requests.
fn told(message: &Message) -> String {
    match message {
        Message::Request(request) => {
            let known = request.destination_sequence;
            let known = known.map_or("?".to_owned(), |sequence| sequence.to_string());
            let (origin, own) = (request.origin, request.origin_sequence);
            let (to, way) = (request.destination, cost(request.cost));
            format!("request {} of {origin} (#{own}) for {to} (#{known}){way}", request.id)
        }
        Message::Reply(reply) => {
            let (of, own) = (reply.destination, reply.destination_sequence);
            format!("reply of {of} (#{own}) for {}{}", reply.origin, cost(reply.cost))
        }
        Message::Error(lost) => {
            let lost: Vec<String> = lost
                .iter()
                .map(|lost| format!("{} (#{})", lost.destination, lost.sequence))
                .collect();
            format!("error, lost {}", lost.join(", "))
        }
    }
}

fn cost(cost: Cost) -> String {
    let Cost { hops, quality } = cost;
    format!(", {hops} links, {:.3}", f64::from(quality) / f64::from(u16::MAX))
}

/// Plays a script, and compares the consequences of each line.
fn plays(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/aodv/scripts");
    let path = folder.join(format!("{name}.txt"));
    let script = std::fs::read_to_string(&path).unwrap();
    let (mut net, mut played) = (Net::default(), String::new());
    for line in script.lines() {
        if let Some(command) = line.strip_prefix("> ") {
            net.step(&command.split_whitespace().collect::<Vec<_>>());
            writeln!(played, "{line}").unwrap();
            played.push_str(&std::mem::take(&mut net.trace));
        } else if !line.starts_with("  ") {
            writeln!(played, "{line}").unwrap();
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &played).unwrap();
    }
    assert!(played == script, "{name} has become:\n{played}");
}

/// RFC 3561, 6.3, 6.5 to 6.7.
#[test]
fn a_way_is_found_by_request_and_reply() {
    plays("discovery");
}

/// RFC 3561, 6.6: in nst-AODV only the destination replies, even if others know a route.
#[test]
fn the_destination_alone_replies() {
    plays("destination_only");
}

/// RFC 3561, 6.5: requests are forwarded once; ours again, by a better route.
#[test]
fn better_copies_are_passed_on() {
    plays("better_copy");
}

/// RFC 3561, 6.11, case i, and constrained-defaults-2012, III-C3: a frame without acknowledgment
/// means a lost link, the route is repaired, and what its origin had sent goes again.
#[test]
fn a_lost_link_is_told_and_the_packet_goes_again() {
    plays("lost_link");
}

/// RFC 3561, 6.11, case ii.
#[test]
fn a_packet_in_transit_without_a_way_is_dropped_and_told() {
    plays("no_route_in_transit");
}

/// RFC 3561, 6.3: the wait doubles with each request, and then discovery ends.
#[test]
fn an_origin_asks_again_and_gives_up() {
    plays("give_up");
}

/// RFC 3561, 6.1 and 6.5: replies older than the lost route are not accepted. The request gathers
/// the newest number on its path, and the destination adopts that number.
#[test]
fn sequence_numbers_outlive_lost_links() {
    plays("sequence_numbers");
}

/// C. Gomez et al. 2010: the route with the greatest product of delivery ratios, not the shortest.
#[test]
fn path_dr_prefers_good_links_to_few() {
    plays("path_dr");
}

/// RFC 3561, 6.5: origin and id identify a request. Two requests of one origin for different
/// destinations are both forwarded, even if they wait for their jitters at the same time.
#[test]
fn two_requests_of_one_origin_cross_a_node_at_once() {
    let key = StreamKey { seed: 1, replication: 0, entity: 1, purpose: "routing" };
    let mut router: Aodv<()> = Aodv::new(1, AodvConfig::new(Metric::HopCount), key).unwrap();
    let request = |id, destination, hops| {
        let cost = Cost { hops, ..Cost::NONE };
        let (origin, origin_sequence, destination_sequence) = (0, id, None);
        Message::Request(Request {
            id,
            destination,
            destination_sequence,
            origin,
            origin_sequence,
            cost,
        })
    };
    let passed_on = |router: &mut Aodv<()>, now| {
        router.handle_timeout(now);
        let outputs = std::iter::from_fn(|| router.poll_output());
        let mut passed: Vec<_> = outputs
            .map(|output| match output {
                Output::Broadcast(Message::Request(request)) => {
                    (request.id, request.destination, request.cost.hops)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        passed.sort_unstable();
        passed
    };
    for (id, destination) in [(1, 8), (2, 9)] {
        router.handle_message(Time::ZERO, 0, 255, &request(id, destination, 3));
    }
    // A better copy of the first replaces it, although a later request has come.
    router.handle_message(Time::ZERO, 5, 255, &request(1, 8, 1));
    assert_eq!(passed_on(&mut router, Time::from_millis(100)), [(1, 8, 2), (2, 9, 4)]);
    router.handle_message(Time::from_millis(100), 6, 255, &request(1, 8, 1));
    assert_eq!(passed_on(&mut router, Time::from_millis(200)), []);
}

/// RFC 3561, 6.5, to the letter, to compare with implementations that follow it: the first copy is
/// forwarded after whole steps of jitter, and no better one after it.
#[test]
fn the_first_copy_alone_may_be_passed_on_in_whole_steps() {
    let step = Duration::from_millis(1);
    let config = AodvConfig {
        jitter_max: 3 * step,
        jitter_step: step,
        takes_better_copies: false,
        ..AodvConfig::new(Metric::HopCount)
    };
    let mut seen = std::collections::BTreeSet::new();
    for entity in 0..100 {
        let key = StreamKey { seed: 1, replication: 0, entity, purpose: "routing" };
        let mut router: Aodv<()> = Aodv::new(1, config, key).unwrap();
        for hops in [3, 1] {
            let cost = Cost { hops, ..Cost::NONE };
            let (id, destination, origin, origin_sequence) = (1, 8, 0, 1);
            let destination_sequence = None;
            let request =
                Request { id, destination, destination_sequence, origin, origin_sequence, cost };
            router.handle_message(Time::ZERO, 0, 255, &Message::Request(request));
        }
        let at = router.poll_timeout().unwrap();
        seen.insert(at);
        router.handle_timeout(at);
        let passed = std::iter::from_fn(|| router.poll_output()).collect::<Vec<_>>();
        assert!(
            matches!(passed[..], [Output::Broadcast(Message::Request(request))]
                if request.cost.hops == 4),
            "{passed:?}"
        );
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3].map(Time::from_millis));
}

/// A link that carries requests but loses packets does not keep packets circling.
#[test]
fn packets_that_always_come_back_are_dropped_in_the_end() {
    let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "routing" };
    let mut router: Aodv<u32> = Aodv::new(0, AodvConfig::new(Metric::HopCount), key).unwrap();
    router.send(Time::ZERO, 1, 7);
    let (mut now, mut sent) = (Time::ZERO, 0);
    loop {
        now += Duration::from_millis(1);
        match router.poll_output() {
            Some(Output::Broadcast(Message::Request(request))) => {
                let destination_sequence = request.destination_sequence.unwrap_or(0) + 1;
                let (destination, origin, cost) = (1, 0, Cost::NONE);
                let reply = Reply { destination, destination_sequence, origin, cost };
                router.handle_message(now, 1, 255, &Message::Reply(reply));
            }
            Some(Output::Forward(1, packet)) => {
                sent += 1;
                assert!(sent <= 100, "without an end");
                router.handle_outcome(now, (1, 1), false, Some(packet));
            }
            Some(Output::Drop(7)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(sent, corridor_sim::aodv::RETURNS_MAX + 1);
    assert!(router.held_mut().next().is_none());
}

/// The packets that wait for a route are bounded.
#[test]
fn an_origin_holds_so_many_packets() {
    let key = StreamKey { seed: 1, replication: 0, entity: 0, purpose: "routing" };
    let config = AodvConfig::new(Metric::HopCount);
    let mut router: Aodv<usize> = Aodv::new(0, config, key).unwrap();
    for packet in 0..corridor_sim::aodv::HELD_MAX + 1 {
        router.send(Time::ZERO, 9, packet);
    }
    let outputs: Vec<_> = std::iter::from_fn(|| router.poll_output()).collect();
    assert!(matches!(outputs[0], Output::Broadcast(Message::Request(_))), "one request for all");
    assert_eq!(outputs[1..], [Output::Unreachable(corridor_sim::aodv::HELD_MAX)]);
}

proptest::proptest! {
    #![proptest_config(corridor_testing::cases!(64))]

    /// Whatever links do, valid routes lead to their destination, or to a node without a route.
    #[test]
    fn ways_have_no_loops(seed in proptest::num::u64::ANY) {
        random_network_has_no_loops(seed);
    }
}

/// A random network whose links come and go between packets.
fn random_network_has_no_loops(seed: u64) {
    use corridor_base::rand::Rng;
    const NODES: u32 = 8;
    let mut stream = StreamKey { seed, replication: 0, entity: 0, purpose: "links" }.stream();
    let metric = ["hop-count", "path-dr"][seed as usize % 2];
    let mut net = Net::default();
    net.step(&["nodes", &NODES.to_string(), metric]);
    for step in 0..120 {
        let mut node = || stream.next_u32() % NODES;
        let (a, b) = (node(), node());
        if a == b {
            continue;
        }
        let ends = format!("{a}-{b}");
        match step % 3 {
            0 => net.step(&["join", &ends, &(100 + stream.next_u32() % 150).to_string()]),
            1 if step > 30 => net.step(&["part", &ends]),
            _ => net.step(&["send", &a.to_string(), &b.to_string(), "p"]),
        }
        net.trace.clear();
        no_loops(&net);
    }
}

/// Checks that following valid routes leads to the destination, or to a node without one.
fn no_loops(net: &Net) {
    for to in 0..net.routers.len() as Address {
        for from in 0..net.routers.len() as Address {
            let (mut node, mut steps) = (from, 0);
            while node != to {
                let Some(route) = net.routers[node as usize].route(to) else { break };
                node = route.next;
                steps += 1;
                assert!(steps <= net.routers.len(), "a loop from {from} to {to}");
            }
        }
    }
}
