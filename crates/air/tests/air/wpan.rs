//! IEEE 802.15.4's exchanges, to the microsecond: 20 bytes of payload take 1184 us of airtime, an
//! ACK 352, a CCA 128, a turnaround 192, the long interframe space 640.

use corridor_air::Address::Station;
use corridor_air::radio::{MacConfig, MacEvent, SendOutcome};
use corridor_air::wpan::{Backoff, RetryWindow, WhenBusy, WhileAnswering, Wpan, WpanConfig};
use corridor_base::{StreamKey, Time};

use crate::radio::{assert_script, network, run, us};

/// No backoff, which makes times predictable.
fn at_once() -> WpanConfig {
    let backoff = Backoff::Exponential {
        min_be: 0,
        max_be: 0,
        max_backoffs: 4,
        when_busy: WhenBusy::GivesUp,
    };
    WpanConfig { backoff, ..WpanConfig::default() }
}

/// IEEE 802.15.4-2006, 7.5.1.4 and 7.5.6.4: CCA, turnaround, data, turnaround, ACK; then the
/// interframe space of 7.5.1.3.
#[test]
fn data_ack_and_the_next() {
    let config = network(2, &[(0, 1)], MacConfig::Wpan(at_once()));
    let outcome = run(&config, &[(0, 0, Station(1), 20), (0, 0, Station(1), 20)]);
    assert_script(
        &outcome,
        "320 data 0>1 1184
         1696 ack 1>0 352
         2048 0 Acknowledged 1
         3008 data 0>1 1184
         4384 ack 1>0 352
         4736 0 Acknowledged 1",
    );
}

/// 7.5.6.4.3: macAckWaitDuration of 864 us, and three retries.
#[test]
fn without_an_ack_a_frame_is_repeated() {
    let config = network(2, &[], MacConfig::Wpan(at_once()));
    let outcome = run(&config, &[(0, 0, Station(1), 20)]);
    assert_script(
        &outcome,
        "320 data 0>1 1184
         2688 data 0>1 1184
         5056 data 0>1 1184
         7424 data 0>1 1184
         9472 0 RetryLimit 4",
    );
}

/// A CCA while others send causes a backoff; a CCA during others' turnaround leads to a collision.
#[test]
fn carrier_sense_has_a_blind_spot_of_a_turnaround() {
    let plain = WpanConfig { acknowledged: false, ..at_once() };
    let config = network(3, &[(0, 1), (0, 2), (1, 2)], MacConfig::Wpan(plain));
    // CCA from 100 to 228 us; the other frame begins at 320.
    let outcome = run(&config, &[(0, 0, Station(1), 20), (100, 2, Station(1), 20)]);
    assert_eq!(outcome.begun[1].at, us(420));
    assert_eq!(outcome.received(), []);
    // CCA from 200 to 328 us finds the frame, repeats without backoff four times, and gives up.
    let outcome = run(&config, &[(0, 0, Station(1), 20), (200, 2, Station(1), 20)]);
    assert_script(
        &outcome,
        "320 data 0>1 1184
         840 2 ChannelAccess 0
         1504 0 Sent 1",
    );
}

/// ns-3 defers a station's own frame while it owes an ACK, which the standard leaves open: a
/// station with a frame to send at 1600 us either continues with its CCA, or begins at 2240 us,
/// when its ACK is sent and its radio has turned round.
#[test]
fn an_ack_that_is_owed_may_put_off_a_frame() {
    let outcome = |while_answering| {
        let mac = MacConfig::Wpan(WpanConfig { while_answering, ..at_once() });
        run(&network(2, &[(0, 1)], mac), &[(0, 1, Station(0), 20), (1600, 0, Station(1), 20)])
    };
    assert_script(
        &outcome(WhileAnswering::GoesOn),
        "320 data 1>0 1184
         1696 ack 0>1 352
         2048 1 Acknowledged 1
         2368 data 0>1 1184
         3744 ack 1>0 352
         4096 0 Acknowledged 1",
    );
    assert_script(
        &outcome(WhileAnswering::BeginsAnew),
        "320 data 1>0 1184
         1696 ack 0>1 352
         2048 1 Acknowledged 1
         2560 data 0>1 1184
         3936 ack 1>0 352
         4288 0 Acknowledged 1",
    );
}

/// The backoffs of a MAC on a channel that is always busy, in symbols, and what becomes of the
/// frame.
fn backoffs(config: &WpanConfig, seed: u64, most: usize) -> (Vec<u64>, Option<(SendOutcome, u32)>) {
    let key = StreamKey { seed, replication: 0, entity: 0, purpose: "backoff" };
    let mut mac = Wpan::new(config.clone().into(), key, 4, false).expect("sound settings");
    let mut events = std::collections::VecDeque::new();
    mac.handle_busy(Time::ZERO);
    mac.offer(Time::ZERO, Station(1), 20, ()).expect("the queue is empty");
    let (mut begin, mut found) = (Time::ZERO, Vec::new());
    while let Some(end) = mac.poll_timeout()
        && found.len() < most
    {
        found.push(end.since(begin).as_micros() as u64 / 16);
        assert_eq!(mac.handle_timeout(end, &mut events), None);
        begin = mac.poll_timeout().expect("it looks");
        assert_eq!(begin.since(end), config.cca);
        assert_eq!(mac.handle_timeout(begin, &mut events), None);
        if let Some(MacEvent::Sent { outcome, attempts, .. }) = events.pop_front() {
            return (found, Some((outcome, attempts)));
        }
    }
    (found, None)
}

/// 7.5.1.4: the exponent grows from 3 to 5, and the fifth busy CCA is one too many.
#[test]
fn exponents_grow_and_the_frame_is_given_up() {
    let mut greatest = [0; 5];
    for seed in 0..300 {
        let (found, end) = backoffs(&WpanConfig::default(), seed, 99);
        assert_eq!((found.len(), end), (5, Some((SendOutcome::ChannelAccess, 0))));
        for (greatest, symbols) in greatest.iter_mut().zip(found) {
            assert_eq!(symbols % 20, 0);
            *greatest = symbols.max(*greatest);
        }
    }
    assert_eq!(greatest, [7 * 20, 15 * 20, 31 * 20, 31 * 20, 31 * 20]);
}

/// constrained-defaults-2012, III-B.1: "until the channel is found to be free or all MAC layer
/// retries are spent".
#[test]
fn busy_channels_may_cost_retries_instead() {
    let backoff = Backoff::Exponential {
        min_be: 3,
        max_be: 5,
        max_backoffs: 4,
        when_busy: WhenBusy::CostsRetry,
    };
    let config = WpanConfig { backoff, retries: 2, ..WpanConfig::default() };
    let (found, end) = backoffs(&config, 1, 99);
    assert_eq!((found.len(), end), (15, Some((SendOutcome::ChannelAccess, 0))));
    // Each attempt begins with the small window again.
    assert!([0, 5, 10].iter().all(|&first| found[first] <= 7 * 20), "{found:?}");
}

/// constrained-defaults-2012, III-B.1: 20 to 640 symbols, then 20 to 140, without limit.
#[test]
fn tinyos_begins_with_a_large_window() {
    let config = WpanConfig { backoff: Backoff::TINYOS_PAPER, ..WpanConfig::default() };
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for seed in 0..200 {
        let (found, end) = backoffs(&config, seed, 30);
        assert_eq!((found.len(), end), (30, None));
        first.push(found[0]);
        later.extend_from_slice(&found[1..]);
    }
    let range = |found: &[u64]| (*found.iter().min().unwrap(), *found.iter().max().unwrap());
    assert_eq!(range(&later), (20, 140));
    let (least, most) = range(&first);
    assert!((20..40).contains(&least) && (600..=640).contains(&most), "{least} to {most}");
}

/// The two interpretations of what follows a missing ACK.
#[test]
fn tinyos_retries_in_the_window_that_is_said() {
    for (retry, most) in [(RetryWindow::Congestion, 140), (RetryWindow::Initial, 640)] {
        let backoff =
            Backoff::TinyOs { initial_symbols: 600..=640, congestion_symbols: 20..=140, retry };
        let config = WpanConfig { backoff, ..WpanConfig::default() };
        let outcome = run(&network(2, &[], MacConfig::Wpan(config)), &[(0, 0, Station(1), 20)]);
        let gap = outcome.begun[1].at.since(outcome.begun[0].at).as_micros() as u64;
        // Data, ACK wait, CCA and turnaround.
        let symbols = (gap - 1184 - 864 - 320) / 16;
        assert!((most - 120..=most).contains(&symbols), "{retry:?}: {symbols}");
    }
}

/// 6.9.8: a weaker frame has a lower link quality.
#[test]
fn link_quality_follows_power() {
    let lqi = |loss_db| {
        let mut config = network(2, &[], MacConfig::Wpan(at_once()));
        config.radio.links =
            corridor_air::radio::Links::Matrix(vec![corridor_air::radio::RadioLink::new(
                0, 1, loss_db,
            )]);
        config.radio.receiver = corridor_air::radio::Receiver::DOT15_4;
        let outcome = run(&config, &[(0, 0, corridor_air::Address::All, 20)]);
        outcome.events.iter().find_map(|event| match event {
            MacEvent::Received { quality, .. } => Some((quality.lqi(), quality.power_dbm())),
            MacEvent::Sent { .. } => None,
        })
    };
    let found = [60.0, 88.0, 94.0].map(lqi);
    let power = found.map(|found| found.expect("it is decoded").1);
    assert!((power[1] + 88.0).abs() < 1e-9, "{power:?}");
    // 10 dB above the noise, 4 dB above it.
    assert_eq!(found.map(|found| found.expect("it is decoded").0), [255, 191, 114]);
    assert_eq!(lqi(96.0), None);
}
