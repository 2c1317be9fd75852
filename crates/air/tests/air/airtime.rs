//! Exact durations: airtime, full duplex, propagation.

use super::*;

fn airtime_ns(rate_bps: u64, overhead: Duration, len_bytes: usize) -> u128 {
    let medium = medium(MediumConfig { rate_bps, overhead, ..config(Duplex::Half, 1) });
    medium.airtime(len_bytes).as_nanos()
}

#[test]
fn airtime_is_overhead_plus_bits_at_the_rate() {
    let none = Duration::ZERO;
    assert_eq!(airtime_ns(1_000_000, Duration::from_nanos(3), 125), 1_000_003);
    assert_eq!(airtime_ns(1_000_000, Duration::from_nanos(3), 0), 3);
    assert_eq!(airtime_ns(54_000_000, none, 1500), 222_223, "222 222.2 ns, rounded up");
    assert_eq!(airtime_ns(250_000, none, 127), 4_064_000, "a full frame of 802.15.4");
    assert_eq!(airtime_ns(8_000_000_000, none, 1), 1, "a byte in a nanosecond");
    assert_eq!(airtime_ns(u64::MAX, none, 1), 1, "rounded up");
    assert_eq!(airtime_ns(1, none, 65_535), 65_535 * 8_000_000_000);
}

proptest::proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// Rounded up to whole nanoseconds: long enough for the bits, and never a nanosecond too long.
    #[test]
    fn airtime_is_the_smallest_that_fits_the_bits(
        rate_bps in 1_u64.., overhead_ns in 0_u64..1_000_000, len_bytes in 0_usize..100_000,
    ) {
        let overhead = Duration::from_nanos(overhead_ns);
        let ns = airtime_ns(rate_bps, overhead, len_bytes) - u128::from(overhead_ns);
        let bits_e9 = len_bytes as u128 * 8_000_000_000;
        let carried = |ns: u128| ns * u128::from(rate_bps);
        proptest::prop_assert!(carried(ns) >= bits_e9);
        proptest::prop_assert!(ns == 0 || carried(ns - 1) < bits_e9);
    }
}

#[test]
fn frames_follow_each_other_without_gap() {
    let mut medium = medium(mesh(Duplex::Half, 2, 0.0));
    for _ in 0..5 {
        medium.offer(ms(7), 0, Address::All, &FRAME[..]).expect("there is room");
    }
    let at: Vec<_> = run(&mut medium).iter().map(|delivery| delivery.at).collect();
    assert_eq!(at, [ms(8), ms(9), ms(10), ms(11), ms(12)]);
    assert_eq!(medium.stats(0).airtime, 5 * FRAME_AIRTIME);
}

#[test]
fn half_duplex_is_exclusive() {
    let mut medium = medium(mesh(Duplex::Half, 5, 0.0));
    let senders: Vec<_> = (0..5).map(|station| (station, Address::All)).collect();
    let heard = saturate(&mut medium, &senders, &FRAME, ms(1000));
    // One transmission ends every millisecond, and all four others hear it.
    for (index, transmission) in heard.chunks(4).enumerate() {
        let from = transmission[0].from;
        assert!(transmission.iter().all(|d| d.at == ms(index as u64 + 1) && d.from == from));
    }
    let airtime: Duration = (0..5).map(|station| medium.stats(station).airtime).sum();
    assert_eq!(airtime, Duration::from_secs(1), "never more airtime than time");
}

#[test]
fn full_duplex_channels_are_independent() {
    let mut medium = medium(mesh(Duplex::Full, 3, 0.0));
    let long = [0; 350]; // 3 ms
    medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
    medium.offer(ms(0), 0, Address::All, &FRAME[..]).expect("there is room");
    medium.offer(ms(0), 1, Address::All, &long[..]).expect("there is room");
    medium.offer(ms(1), 2, Address::All, &FRAME[..]).expect("there is room");
    let heard: Vec<_> = run(&mut medium).iter().map(|d| (d.at, d.from, d.to)).collect();
    let expected = [
        (ms(1), 0, 1),
        (ms(1), 0, 2),
        (ms(2), 0, 1),
        (ms(2), 0, 2),
        (ms(2), 2, 0),
        (ms(2), 2, 1),
        (ms(3), 1, 0),
        (ms(3), 1, 2),
    ];
    assert_eq!(heard, expected);
}

#[test]
fn full_duplex_stations_all_send_all_the_time() {
    let mut medium = medium(mesh(Duplex::Full, 4, 0.0));
    let senders: Vec<_> = (0..4).map(|station| (station, Address::All)).collect();
    saturate(&mut medium, &senders, &FRAME, ms(100));
    for station in 0..4 {
        assert_eq!(medium.stats(station).airtime, 100 * FRAME_AIRTIME);
        assert_eq!(medium.stats(station).received_frames, 300);
    }
}

#[test]
fn the_same_instant_is_ordered_by_beginning_then_by_hearing_station() {
    let mut medium = medium(mesh(Duplex::Full, 3, 0.0));
    for from in [2, 0, 1] {
        medium.offer(ms(0), from, Address::All, &FRAME[..]).expect("there is room");
    }
    let heard: Vec<_> = run(&mut medium).iter().map(|d| (d.from, d.to)).collect();
    assert_eq!(heard, [(2, 0), (2, 1), (0, 1), (0, 2), (1, 0), (1, 2)]);
}

#[test]
fn propagation_delays_the_delivery_and_not_the_channel() {
    let propagation = Duration::from_millis(5);
    let mut medium = medium(MediumConfig { propagation, ..mesh(Duplex::Half, 2, 0.0) });
    for _ in 0..2 {
        medium.offer(ms(0), 0, Address::Station(1), &FRAME[..]).expect("there is room");
    }
    medium.handle_timeout(ms(0));
    medium.handle_timeout(ms(5));
    assert_eq!(medium.backlog(0), 0, "the channel is idle from 2 ms on");
    assert_eq!(drain(&mut medium), [], "nothing before its time");
    assert_eq!(medium.poll_timeout(), Some(ms(6)));
    medium.handle_timeout(ms(6));
    assert_eq!(drain(&mut medium).len(), 1);
    assert_eq!(medium.poll_timeout(), Some(ms(7)));
    medium.handle_timeout(ms(7));
    assert_eq!(drain(&mut medium)[0].at, ms(7));
    assert_eq!(medium.poll_timeout(), None);
}
