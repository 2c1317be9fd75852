//! Networks of point-to-point links: known answers, routes, and queues that several share.

use corridor_air::{
    ErasureConfig, Links, LinksConfig, PipeConfig, QueueLimit, RateConfig, RateSteps,
};

use super::*;

/// 1000 bytes take 4 ms, and arrive 10 ms later.
fn slow() -> PipeConfig {
    PipeConfig::new(2_000_000, Duration::from_millis(10), 4, ErasureConfig::NONE)
}

/// 1000 bytes take 0.1 ms, and arrive 1 ms later.
fn fast() -> PipeConfig {
    PipeConfig::new(80_000_000, Duration::from_millis(1), 100, ErasureConfig::NONE)
}

/// Senders 0 and 1, receivers 2 and 3, routers 4 and 5 with the slow pipe between.
fn dumbbell() -> LinksConfig {
    let mut pipes = Vec::new();
    let mut join = |a: Station, b: Station, pipe: PipeConfig| {
        pipes.push((a, b, pipe.clone()));
        pipes.push((b, a, pipe));
    };
    for (host, router) in [(0, 4), (1, 4), (2, 5), (3, 5)] {
        join(host, router, fast());
    }
    join(4, 5, slow());
    LinksConfig { nodes: 6, pipes, routes: Vec::new(), seed: SEED, replication: 0 }
}

fn links(config: &LinksConfig) -> Links<corridor_air::Frame> {
    Links::new(config).expect("a valid configuration")
}

fn frame(first: u8) -> Vec<u8> {
    let mut frame = vec![0; 1000];
    frame[0] = first;
    frame
}

/// All remaining deliveries: time, sender, destination, and first byte.
fn drain(links: &mut Links<corridor_air::Frame>) -> Vec<(u64, Station, Station, u8)> {
    let mut delivered = Vec::new();
    while let Some(at) = links.poll_timeout() {
        links.handle_timeout(at);
        while let Some(it) = links.poll_delivery() {
            delivered.push((it.at.as_nanos() / 1_000, it.from, it.to, it.frame[0]));
        }
    }
    delivered
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn packets_cross_one_pipe_after_the_other_and_share_the_one_in_the_middle() {
    let mut links = links(&dumbbell());
    links.offer(ms(5), 0, 2, frame(1)).expect("there is a way");
    links.offer(ms(5), 1, 3, frame(2)).expect("there is a way");
    // 1.1 ms to the router, 4 ms for each between the routers plus 10 ms, 1.1 ms to the host: the
    // second one waits for the first.
    assert_eq!(drain(&mut links), [(21_200, 0, 2, 1), (25_200, 1, 3, 2)]);
    let sent: Vec<u64> = links.stats().map(|stats| stats.sent_packets()).collect();
    assert_eq!(sent, [1, 0, 1, 0, 0, 1, 0, 1, 2, 0]);
}

#[test]
fn a_driver_that_is_late_changes_nothing_but_when_it_sees_it() {
    let mut links = links(&dumbbell());
    links.offer(ms(5), 0, 2, frame(1)).expect("there is a way");
    links.offer(ms(6), 1, 3, frame(2)).expect("there is a way");
    links.handle_timeout(ms(1_000));
    let seen: Vec<u64> = std::iter::from_fn(|| links.poll_delivery())
        .map(|delivery| delivery.at.as_nanos() / 1_000)
        .collect();
    assert_eq!(seen, [21_200, 25_200]);
}

#[test]
fn what_finds_the_shared_queue_full_is_dropped_whosever_it_is() {
    let mut links = links(&dumbbell());
    for number in 0..10 {
        links.offer(ms(5), number % 2, 2 + number % 2, frame(number as u8)).expect("a way");
    }
    // One is being sent, and four wait.
    assert_eq!(drain(&mut links).len(), 5);
    let stats = links.stats().nth(8).expect("a pipe");
    assert_eq!((stats.offered, stats.refused), (10, 5));
}

#[test]
fn routes_are_the_shortest_unless_another_is_said() {
    // A triangle, with a route that avoids one side.
    let pair = |a, b| [(a, b, fast()), (b, a, fast())];
    let pipes = [pair(0, 1), pair(1, 2), pair(0, 2)].concat();
    let config = LinksConfig { nodes: 4, pipes, routes: Vec::new(), seed: SEED, replication: 0 };
    let mut short = links(&config);
    short.offer(Time::ZERO, 0, 2, frame(1)).expect("there is a way");
    assert_eq!(drain(&mut short), [(1_100, 0, 2, 1)]);
    let mut long = links(&LinksConfig { routes: vec![vec![0, 1, 2]], ..config.clone() });
    long.offer(Time::ZERO, 0, 2, frame(1)).expect("there is a way");
    assert_eq!(drain(&mut long), [(2_200, 0, 2, 1)]);
    // No route leads to node 3, and there is no node 9.
    assert!(short.leads(0, 2) && !short.leads(0, 3) && !short.leads(3, 0) && !short.leads(0, 9));
    assert!(short.offer(Time::ZERO, 0, 3, frame(1)).is_err());
    assert!(short.offer(Time::ZERO, 0, 9, frame(1)).is_err());
    // Two routes that point at each other lead nowhere.
    let routes = vec![vec![0, 1, 2], vec![1, 0, 3, 2]];
    assert!(!links(&LinksConfig { routes, ..config }).leads(0, 2));
}

#[test]
fn rates_begin_again_when_they_are_told_to() {
    let steps = RateSteps {
        steps: vec![(Duration::ZERO, 80_000_000), (Duration::from_millis(10), 1_000_000)],
        period: None,
    };
    let pipe =
        PipeConfig { rate: RateConfig::Steps(steps), queue: QueueLimit::Packets(9), ..fast() };
    let pipes = vec![(0, 1, pipe)];
    let config = LinksConfig { nodes: 2, pipes, routes: Vec::new(), seed: SEED, replication: 0 };
    let mut links = links(&config);
    links.restart_rates(ms(1_000));
    links.offer(ms(1_001), 0, 1, frame(1)).expect("there is a way");
    links.offer(ms(1_020), 0, 1, frame(2)).expect("there is a way");
    assert_eq!(drain(&mut links), [(1_002_100, 0, 1, 1), (1_029_000, 0, 1, 2)]);
}
