//! IEEE 802.11's exchanges, to the microsecond, at 6 Mbit/s of 802.11a: 100 bytes of payload take
//! 196 us of airtime, an ACK or CTS 44, an RTS 52; SIFS is 16, a slot 9, DIFS 34, EIFS 94.
//!
//! With a contention window of 0, backoffs have no slots, which makes times predictable.

use core::time::Duration;

use corridor_air::Address::{All, Station};
use corridor_air::dcf::DcfConfig;
use corridor_air::radio::{
    Capture, Links, MacConfig, Preamble, RadioLink, RadioMediumConfig, Rate,
};

use crate::radio::{Offer, assert_script, network, run};

fn without_slots() -> DcfConfig {
    DcfConfig { cw_min: 0, cw_max: 0, ..DcfConfig::a(Rate::Ofdm6) }
}

fn cell(stations: usize, links: &[(usize, usize)], dcf: DcfConfig) -> RadioMediumConfig {
    network(stations, links, MacConfig::Dcf(dcf))
}

/// IEEE 802.11-2012, 18.4.3, 17.3.4 and 19.8.3: airtimes.
#[test]
fn airtimes_are_the_standard_s() {
    let a = |rate: Rate, bytes| rate.airtime(Preamble::Ofdm, bytes).as_micros();
    assert_eq!([a(Rate::Ofdm6, 14), a(Rate::Ofdm24, 14), a(Rate::Ofdm54, 1528)], [44, 28, 248]);
    let b = |rate: Rate, bytes| rate.airtime(Preamble::DsssLong, bytes).as_micros();
    assert_eq!([b(Rate::Dsss1, 14), b(Rate::Dsss11, 1528)], [304, 192 + 1112]);
    assert_eq!(Rate::Dsss2.airtime(Preamble::DsssShort, 14).as_micros(), 96 + 56);
    let g = |rate: Rate, bytes| rate.airtime(Preamble::OfdmExtended, bytes).as_micros();
    assert_eq!(g(Rate::Ofdm6, 14), 50);
}

/// IEEE 802.11-2012, Tables 18-17, 17-6 and 19-8.
#[test]
fn spaces_are_the_standard_s() {
    let spans = |dcf: DcfConfig| [dcf.slot, dcf.sifs, dcf.difs()].map(|span| span.as_micros());
    assert_eq!(spans(DcfConfig::a(Rate::Ofdm6)), [9, 16, 34]);
    assert_eq!(spans(DcfConfig::b(Rate::Dsss1)), [20, 10, 50]);
    assert_eq!(spans(DcfConfig::g(Rate::Ofdm6, true)), [9, 10, 28]);
    assert_eq!(spans(DcfConfig::g(Rate::Ofdm6, false)), [20, 10, 50]);
    assert_eq!(DcfConfig::a(Rate::Ofdm54).eifs().as_micros(), 94);
    // 9.7.6.5.3: the highest basic rate that is not above the frame's.
    let answer = |rate| DcfConfig::a(rate).control_rate(rate);
    let answers = [Rate::Ofdm9, Rate::Ofdm18, Rate::Ofdm54].map(answer);
    assert_eq!(answers, [Rate::Ofdm6, Rate::Ofdm12, Rate::Ofdm24]);
}

/// 9.3.4.2 and 9.3.2.8: at once on an idle channel, an ACK after a SIFS, the next after a DIFS.
#[test]
fn data_ack_and_the_next() {
    let offers: [Offer; 2] = [(0, 0, Station(1), 100), (0, 0, Station(1), 100)];
    let outcome = run(&cell(2, &[(0, 1)], without_slots()), &offers);
    assert_script(
        &outcome,
        "0 data 0>1 196
         212 ack 1>0 44
         256 0 Acknowledged 1
         290 data 0>1 196
         502 ack 1>0 44
         546 0 Acknowledged 1",
    );
    assert_eq!(outcome.received(), [(196, 1, 0), (486, 1, 1)]);
}

/// 9.3.4.3: a backoff of 0 to 15 slots follows every frame, whether or not more frames wait.
#[test]
fn the_backoff_behind_a_frame_has_whole_slots() {
    let mut slots = Vec::new();
    for seed in 0..400 {
        let mut config = cell(2, &[(0, 1)], DcfConfig::a(Rate::Ofdm6));
        config.radio.seed = seed;
        // The second frame comes while the backoff of the first runs.
        let outcome = run(&config, &[(0, 0, Station(1), 100), (291, 0, Station(1), 100)]);
        let at = outcome.begun[2].at.as_nanos() / 1000;
        if at == 291 {
            slots.push(0);
        } else {
            assert_eq!((at - 290) % 9, 0, "{at}");
            slots.push((at - 290) / 9);
        }
    }
    assert_eq!((slots.iter().min(), slots.iter().max()), (Some(&0), Some(&15)));
    let mean = slots.iter().sum::<u64>() as f64 / slots.len() as f64;
    assert!((mean - 7.5).abs() < 5.0 * 4.6 / 20.0, "{mean}");
}

/// 9.3.4.2: a frame that arrives long afterwards goes at once; one that arrives while the channel
/// is busy waits for a DIFS and its backoff.
#[test]
fn an_idle_channel_needs_no_backoff() {
    let config = cell(3, &[(0, 1), (0, 2), (1, 2)], without_slots());
    let outcome = run(&config, &[(0, 0, Station(1), 100), (5000, 0, Station(1), 100)]);
    assert_eq!(outcome.begun[2].at.as_nanos(), 5_000_000);
    let outcome = run(&config, &[(0, 0, Station(1), 100), (100, 2, Station(1), 100)]);
    assert_script(
        &outcome,
        "0 data 0>1 196
         212 ack 1>0 44
         256 0 Acknowledged 1
         290 data 2>1 196
         502 ack 1>2 44
         546 2 Acknowledged 1",
    );
}

/// 9.3.2.4 and 9.3.2.6: RTS, CTS, and the NAV of a station that only hears the receiver.
#[test]
fn rts_and_cts_reserve_the_channel() {
    let dcf = DcfConfig { rts_threshold_bytes: 0, ..without_slots() };
    let config = cell(3, &[(0, 1), (1, 2)], dcf);
    let outcome = run(&config, &[(0, 0, Station(1), 100), (120, 2, All, 100)]);
    assert_script(
        &outcome,
        "0 rts 0>1 52
         68 cts 1>0 44
         128 data 0>1 196
         340 ack 1>0 44
         384 0 Acknowledged 1
         418 data 2>all 196
         614 2 Sent 1",
    );
}

/// 9.3.2.4: a station that set its NAV by an RTS resets it if nothing follows.
#[test]
fn an_rts_without_cts_does_not_silence_for_long() {
    let dcf = DcfConfig { rts_threshold_bytes: 0, retry_limit: Some(1), ..without_slots() };
    // Station 0 sends an RTS to a station that does not exist.
    let config = cell(4, &[(0, 1)], dcf);
    let outcome = run(&config, &[(0, 0, Station(3), 100), (60, 1, All, 100)]);
    // RTS to 52; two SIFS, a CTS and two slots: 52 + 32 + 44 + 18, and a DIFS.
    assert_script(
        &outcome,
        "0 rts 0>3 52
         102 0 RetryLimit 1
         180 data 1>all 196
         376 1 Sent 1",
    );
}

/// Stations that do not hear each other collide, wait for ACKs that do not come, and give up.
#[test]
fn hidden_stations_collide_until_the_retry_limit() {
    let config = cell(3, &[(0, 1), (1, 2)], without_slots());
    let outcome = run(&config, &[(0, 0, Station(1), 100), (0, 2, Station(1), 100)]);
    // 196 of data, and a timeout of SIFS, a slot and 25 us.
    let expected: String = (0..7)
        .map(|attempt| attempt * 246)
        .flat_map(|at| [format!("{at} data 0>1 196\n"), format!("{at} data 2>1 196\n")])
        .collect();
    assert_script(&outcome, &format!("{expected} 1722 0 RetryLimit 7\n 1722 2 RetryLimit 7"));
    assert_eq!(outcome.received(), []);
}

/// 9.3.2.3.7: an EIFS follows a frame that could not be decoded.
#[test]
fn after_a_collision_others_wait_for_an_eifs() {
    let offers: [Offer; 3] = [(0, 0, All, 100), (0, 2, All, 100), (100, 1, All, 100)];
    for (eifs, at) in [(true, 196 + 94), (false, 196 + 34)] {
        let config = cell(3, &[(0, 1), (1, 2)], DcfConfig { eifs, ..without_slots() });
        let outcome = run(&config, &offers);
        assert_eq!(outcome.begun[2].at.as_nanos() / 1000, at, "EIFS {eifs}");
    }
}

/// 9.3.2.3.7: it begins when the channel becomes idle, even if the frame ended earlier while others
/// continued.
#[test]
fn an_eifs_begins_when_the_channel_is_idle() {
    // Station 1 loses the first frame at 196 us; the second, which collided with it, ends at 428
    // us.
    let offers: [Offer; 3] = [(0, 0, All, 100), (100, 2, All, 200), (150, 1, All, 100)];
    for (eifs, at) in [(true, 428 + 94), (false, 428 + 34)] {
        let config = cell(3, &[(0, 1), (1, 2)], DcfConfig { eifs, ..without_slots() });
        let outcome = run(&config, &offers);
        assert_eq!(outcome.begun[2].at.as_nanos() / 1000, at, "EIFS {eifs}");
    }
}

/// 8.2.4.1.6: retried data have the Retry bit; RTS, CTS and ACK never have it.
#[test]
fn data_that_are_sent_again_say_so() {
    let config = cell(3, &[(0, 1), (1, 2)], without_slots());
    let outcome = run(&config, &[(0, 0, Station(1), 100), (0, 2, Station(1), 100)]);
    let first = outcome.begun.iter().map(|begun| begun.frame.retry).take(4);
    assert_eq!(first.collect::<Vec<_>>(), [false, false, true, true]);
    // RTS that collide: the data after them have not been on the air.
    let announced = DcfConfig { rts_threshold_bytes: 0, ..without_slots() };
    let config = cell(3, &[(0, 1), (1, 2)], announced);
    let outcome = run(&config, &[(0, 0, Station(1), 100), (0, 2, Station(1), 100)]);
    assert!(outcome.begun.len() > 4 && outcome.begun.iter().all(|begun| !begun.frame.retry));
}

/// An ACK can be lost like any frame: interference makes the sender retry, and the receiver detects
/// the duplicate.
#[test]
fn a_lost_ack_brings_the_frame_again_and_it_is_told_once() {
    // Station 2 is only near the sender and cannot hear the receiver, so it collides with the ACK.
    let config = cell(3, &[(0, 1)], without_slots());
    let mut hit = config.clone();
    hit.radio.links = Links::Matrix(vec![
        RadioLink::new(0, 1, 60.0),
        RadioLink::new(1, 0, 60.0),
        RadioLink::new(2, 0, 60.0),
    ]);
    let offers: [Offer; 2] = [(0, 0, Station(1), 100), (200, 2, All, 10)];
    let outcome = run(&hit, &offers);
    let attempts = outcome.script().lines().filter(|line| line.contains("data 0>1")).count();
    assert_eq!(attempts, 2, "{}", outcome.script());
    assert_eq!(outcome.received().iter().filter(|received| received.2 == 0).count(), 1);
    assert!(outcome.script().contains("0 Acknowledged 2"), "{}", outcome.script());
}

/// A stronger frame captures the receiver within the capture window, but not after it.
#[test]
fn capture() {
    let strong_at = |at: u64, capture| {
        let mut config = cell(3, &[], without_slots());
        config.radio.links =
            Links::Matrix(vec![RadioLink::new(0, 1, 50.0), RadioLink::new(2, 1, 70.0)]);
        config.radio.receiver.capture = capture;
        run(&config, &[(0, 2, All, 100), (at, 0, All, 100)]).received()
    };
    let window = Duration::from_micros(20);
    let capture = Some(Capture { margin_db: 10.0, window });
    assert_eq!(strong_at(20, capture), [(216, 1, 1)]);
    assert_eq!(strong_at(21, capture), []);
    assert_eq!(strong_at(20, None), []);
    assert_eq!(strong_at(20, Some(Capture { margin_db: 21.0, window })), []);
    // If the stronger frame comes first, no capture is needed.
    let mut config = cell(3, &[], without_slots());
    config.radio.links =
        Links::Matrix(vec![RadioLink::new(0, 1, 50.0), RadioLink::new(2, 1, 70.0)]);
    let outcome = run(&config, &[(0, 0, All, 100), (20, 2, All, 100)]);
    assert_eq!(outcome.received(), [(196, 1, 0)]);
}

#[test]
fn a_station_that_sends_does_not_receive() {
    let mut config = cell(2, &[], without_slots());
    // Station 0 does not sense station 1.
    config.radio.links = Links::Matrix(vec![RadioLink::new(0, 1, 60.0)]);
    let sending = run(&config, &[(0, 1, All, 100), (100, 0, All, 100)]);
    assert_eq!(sending.received(), []);
    let silent = run(&config, &[(0, 1, All, 100), (196, 0, All, 100)]);
    assert_eq!(silent.received(), [(392, 1, 1)]);
}

/// 9.3.2.8 has no ACK for group addresses.
#[test]
fn frames_to_all_are_not_acknowledged() {
    let config = cell(3, &[(0, 1), (0, 2)], without_slots());
    let outcome = run(&config, &[(0, 0, All, 100)]);
    assert_script(&outcome, "0 data 0>all 196\n 196 0 Sent 1");
    assert_eq!(outcome.received(), [(196, 1, 0), (196, 2, 0)]);
}
