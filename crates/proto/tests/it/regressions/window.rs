//! Faults of window mode that tests and the simulator's torture test found.

use core::time::Duration;

use corridor_proto::wire::Kind;
use corridor_proto::{CodingParams, StationConfig};

use super::net::{Net, pair};
use super::{D, S, at};

fn windows(change: impl Fn(&mut StationConfig)) -> Vec<StationConfig> {
    pair(|config| {
        config.coding = CodingParams::window();
        change(config);
    })
}

/// Frames with feedback in front of a symbol were malformed to all receivers.
#[test]
fn symbols_with_feedback_arrive() {
    let mut net = Net::new(windows(|_| ()), 1);
    net.world.rate_bps = Some(10_000_000);
    net.run_until(at(1_000));
    while net.now < at(2_000) {
        assert!(net.offer(S, 800) && net.offer(D, 800));
        net.run_for(Duration::from_millis(2));
    }
    net.run_until(at(3_000));
    for station in [S, D] {
        let stats = net.stats(station);
        assert!(stats.acks_piggybacked > 20, "{stats:?}");
        assert_eq!((stats.frames_rejected, stats.encoder_timeouts), (0, 0));
        assert_eq!(net.delivered_to(station).len(), 500);
    }
}

/// Once everything held had been given up during a silence, nothing was ever sent again.
#[test]
fn a_flow_goes_on_after_a_silence_in_which_all_was_given_up() {
    for gap_ms in [10, 1_000] {
        let mut net = Net::new(
            windows(|config| config.coding.delivery_deadline = Duration::from_millis(100)),
            1,
        );
        net.world.rate_bps = Some(10_000_000);
        net.run_until(at(1_000));
        net.lose(|flight| flight.sent_in(2_000..8_000));
        net.offer_until(S, 500, gap_ms, at(8_000));
        assert!(net.stats(S).packets_given_up > 0, "the silence was long enough");
        let delivered = net.delivered_to(D).len();
        net.offer_until(S, 500, gap_ms, at(14_000));
        net.run_until(at(20_000));
        let delivered = net.delivered_to(D).len() - delivered;
        assert!(delivered as u64 >= 3_000 / gap_ms, "{delivered} packets, {gap_ms} ms apart");
        assert_eq!(net.delivered_to(D).last(), Some(&(net.offered_at.len() as u32 - 1)));
    }
}

/// The opposite fault: a peer that is gone is probed, and sent nothing else.
#[test]
fn a_peer_that_is_gone_is_asked_after_not_sent_to() {
    let mut net = Net::new(windows(|_| ()), 1);
    net.world.rate_bps = Some(20_000_000);
    net.run_until(at(1_000));
    net.offer_until(S, 1_200, 2, at(2_000));
    net.stop(D);
    net.offer_until(S, 1_200, 2, at(32_000));
    let before = net.stats(S).frames_sent;
    net.offer_until(S, 1_200, 2, at(42_000));
    let frames = net.stats(S).frames_sent - before;
    assert!((1..100).contains(&frames), "{frames} frames in 10 s");
    net.start(D);
    net.offer_until(S, 1_200, 2, at(44_000));
    net.run_until(at(46_000));
    assert_eq!(net.delivered_to(D).last(), Some(&(net.offered_at.len() as u32 - 1)));
}

/// Feedback alone is sent at a bounded rate, however fast symbols come.
#[test]
fn feedback_is_bounded_in_rate() {
    let mut net = Net::new(windows(|_| ()), 1);
    net.world.rate_bps = Some(50_000_000);
    net.lose(|flight| flight.kind == Kind::Window && flight.draw < 0.2);
    net.run_until(at(1_000));
    let before = net.stats(D);
    while net.now < at(3_000) {
        // Four symbols a millisecond.
        (0..4).for_each(|_| assert!(net.offer(S, 1_200)));
        net.run_for(Duration::from_millis(1));
    }
    let after = net.stats(D);
    let frames = after.ack_frames_sent - before.ack_frames_sent;
    let heard = after.frames_accepted - before.frames_accepted;
    // At most for every other symbol while something is missing, otherwise every 5 ms.
    assert!(heard > 5_000 && frames > 400 && frames <= heard / 2 + 400, "{frames} of {heard}");
}
