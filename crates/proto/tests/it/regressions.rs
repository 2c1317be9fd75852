//! Faults that a review found, and the correct behaviour: one test for each.

mod net;
mod window;

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::wire::Kind;
use corridor_proto::{Field, Order, Role, Station, StationConfig};
use net::{Delivery, Flight, Net, endpoint, helper, pair, pair_and_helper};

/// Stations of [`pair`] and [`pair_and_helper`]: encoder, decoder, helper.
const S: usize = 0;
const D: usize = 1;
const H: usize = 2;

fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

// ---- helpers ----------------------------------------------------------------------------------

/// Its old blocks, whose numbers had wrapped halfway, seemed to lie ahead: the decoder gave up all
/// in between.
#[test]
fn a_helper_that_slept_half_a_round_of_blocks_does_not_move_the_decoder_on() {
    let mut net = Net::new(
        pair_and_helper(|config| {
            config.coding.block_size = 1;
            config.coding.symbol_size = 128;
            config.coding.blocks_in_flight = 16;
            config.ingress_packets = 32;
        }),
        1,
    );
    net.world.delay = Duration::from_micros(100);
    let lossy = |flight: &Flight| {
        flight.kind != Kind::Hello && (flight.from, flight.to) == (S, D) && flight.draw < 0.3
    };
    let fill = |net: &mut Net| {
        for _ in 0..20 {
            net.offer(S, 100);
        }
        net.run_for(Duration::from_millis(2));
    };
    net.run_until(at(1_000));
    net.lose(lossy);
    while net.now < at(2_000) {
        fill(&mut net);
    }
    let recoded = net.stats(H).recoded_frames_sent;
    let (slept_from, blocks_before) = (net.now, net.stats(S).blocks_opened);
    net.lose(|flight| flight.to == H || flight.from == H);
    while net.stats(S).blocks_opened < blocks_before + 45_000 {
        fill(&mut net);
    }
    assert!(net.now < slept_from + Duration::from_secs(20), "{}", net.now);
    net.lose(lossy);
    let until = net.now + Duration::from_secs(1);
    while net.now < until {
        fill(&mut net);
    }
    net.run_until(until + Duration::from_secs(1));

    assert_eq!((net.stats(D).symbols_given_up, net.stats(S).blocks_given_up), (0, 0));
    assert!(net.delivered_to(D).into_iter().eq(0..net.offered_at.len() as u32));
    assert!(recoded > 100, "the helper was of use before: {recoded}");
}

/// A link from which nothing was ever heard counted as lossless: the encoder left the repair to a
/// helper that nobody heard.
#[test]
fn a_helper_that_the_decoder_cannot_hear_does_not_slow_the_flow() {
    type Rule = fn(&Flight) -> bool;
    let delay_mean = |configs: Vec<StationConfig>, gap_ms, deaf: Rule| {
        let mut net = Net::new(configs, 1);
        net.world.rate_bps = Some(20_000_000);
        net.lose(move |flight| match (flight.from, flight.to) {
            (S, D) => flight.draw < 0.4,
            (H, D) | (D, H) if deaf(flight) => true,
            (S, H) | (H, D) | (D, H) => flight.draw < 0.05,
            _ => false,
        });
        net.run_until(at(2_000));
        net.offer_until(S, 1_200, gap_ms, at(8_000));
        net.run_until(at(12_000));
        // From 4 s on: a helper counts as gone 2 s after its last sign of life.
        net.delay_mean(at(4_000))
    };
    for gap_ms in [2, 10] {
        let alone = delay_mean(pair(|_| ()), gap_ms, |_| false);
        let deaf: [(&str, Rule); 3] = [
            ("never, either way", |_| true),
            ("never, but hears the decoder", |flight| flight.to == D),
            ("no more", |flight| flight.at >= at(2_000)),
        ];
        for (name, deaf) in deaf {
            let helped = delay_mean(pair_and_helper(|_| ()), gap_ms, deaf);
            assert!(helped <= 2.0 * alone, "{name}, {gap_ms} ms: {helped} s, {alone} s without");
        }
    }
}

// ---- outages ----------------------------------------------------------------------------------

/// Two endpoints with a packet every `gap_ms`, and silence from 3 s to 6 s.
fn outage(gap_ms: u64) -> Net {
    let mut net = Net::new(pair(|_| ()), 1);
    net.world.delay = Duration::from_millis(5);
    net.world.rate_bps = Some(20_000_000);
    net.lose(|flight| flight.sent_in(3_000..6_000));
    net.run_until(at(1_000));
    net.offer_until(S, 1_200, gap_ms, at(6_000));
    net
}

/// Each block of the outage delayed delivery by a deadline of its own, one after the other.
#[test]
fn delivery_resumes_one_deadline_after_an_outage() {
    let mut net = outage(10);
    net.offer_until(S, 1_200, 10, at(12_000));
    net.run_until(at(15_000));
    let first = net.world.deliveries.iter().find(|delivery| delivery.at > at(5_000)).unwrap().at;
    assert!(first <= at(7_300), "the first packet comes at {first}");
    let slow = |d: &&Delivery| d.at > at(6_000) && net.delay_of(d).as_millis() > 200;
    let last_slow = net.world.deliveries.iter().rfind(slow).map(|delivery| delivery.at);
    assert!(last_slow <= Some(at(7_300)), "late packets until {last_slow:?}");
}

/// The one long gap had the weight of as many losses, which caused redundancy for minutes.
#[test]
fn redundancy_falls_back_after_an_outage() {
    for gap_ms in [1, 10] {
        let mut net = outage(gap_ms);
        let before = net.stats(S);
        net.offer_until(S, 1_200, gap_ms, at(10_000));
        let after = net.stats(S);
        let frames = (after.frames_sent - before.frames_sent) as f64;
        let symbols = (after.symbols_added - before.symbols_added) as f64;
        assert!(frames < 1.3 * symbols, "gap {gap_ms} ms: {frames} frames for {symbols} symbols");
    }
}

/// Blocks were repaired at full budget; once given up, new ones took their place, and the silence
/// was counted from zero again.
#[test]
fn a_dead_peer_is_asked_after_not_sent_to() {
    let mut net = Net::new(pair(|_| ()), 1);
    net.world.rate_bps = Some(20_000_000);
    net.run_until(at(1_000));
    net.offer_until(S, 1_200, 2, at(2_000));
    net.stop(D);
    net.offer_until(S, 1_200, 2, at(62_000));
    let before = net.stats(S).frames_sent;
    net.offer_until(S, 1_200, 2, at(72_000));
    let frames = net.stats(S).frames_sent - before;
    assert!(frames < 10 * 30, "{frames} frames in 10 s");
    assert!(frames > 0, "a peer that comes back must hear of us");
}

/// Silence increased the timeout even when there had been nothing to acknowledge.
#[test]
fn a_frame_lost_after_a_pause_is_repaired_as_soon_as_any() {
    for pause_ms in [0, 300, 2_000, 10_000, 60_000] {
        let mut net = Net::new(pair(|_| ()), 1);
        net.run_until(at(900));
        net.offer_until(S, 100, 10, at(1_000));
        let lost_at = at(1_000 + pause_ms);
        net.run_until(lost_at);
        net.lose(move |flight| flight.kind == Kind::Enc && flight.at == lost_at);
        net.offer(S, 100);
        let number = net.offered_at.len() as u32 - 1;
        net.run_until(lost_at + Duration::from_secs(5));
        let delivery = net.world.deliveries.iter().find(|delivery| delivery.number == number);
        let delay = net.delay_of(delivery.expect("repaired"));
        let bounds = Duration::from_millis(20)..=Duration::from_millis(150);
        assert!(bounds.contains(&delay), "after {pause_ms} ms: {delay:?}");
    }
}

// ---- timers -----------------------------------------------------------------------------------

/// The pacer's timer stayed set when there was nobody to send to any more. ([`Net`] checks timers
/// at every step.)
#[test]
fn a_paced_station_sets_no_timer_in_the_past_while_its_peer_is_away() {
    for rate_bps in [100_000, 1_000_000] {
        let mut net = Net::new(pair(|config| config.rate_bps = Some(rate_bps)), 1);
        net.stop(D);
        net.offer_until(S, 1_200, 5, at(1_000));
        net.start(D);
        net.offer_until(S, 1_200, 5, at(2_000));
        assert!(net.are_up(S, D));
        // The peer restarts, and half of the handshake is lost.
        net.start(D);
        net.lose(|flight| flight.from == S && flight.draw < 0.5);
        net.offer_until(S, 1_200, 5, at(5_000));
        assert!(net.are_up(S, D));
        net.stop(D);
        net.offer_until(S, 1_200, 5, at(30_000));
        net.start(D);
        net.lose(|_| false);
        let before = net.world.deliveries.len();
        net.offer_until(S, 1_200, 5, at(33_000));
        assert!(net.are_up(S, D) && net.world.deliveries.len() > before);
    }
}

/// A block whose pause had ended was due at once, while the pacer still held it back.
#[test]
fn a_paced_dense_code_sets_no_timer_in_the_past() {
    for (rate_bps, erasure_ratio) in [(100_000, 0.0), (1_000_000, 0.0), (1_000_000, 0.3)] {
        let mut net = Net::new(
            pair(|config| {
                config.coding.order = Order::Dense;
                config.rate_bps = Some(rate_bps);
            }),
            1,
        );
        net.world.delay = Duration::from_millis(5);
        net.run_until(at(1_000));
        net.lose(move |flight| flight.draw < erasure_ratio);
        for burst in 0..4 {
            (0..10).for_each(|_| assert!(net.offer(S, 1_200)));
            net.run_until(at(4_000 + 3_000 * burst));
        }
        assert!(net.delivered_to(D).into_iter().eq(0..40), "{rate_bps} bit/s, {erasure_ratio}");
    }
}

// ---- sessions ---------------------------------------------------------------------------------

/// All HELLOs of eight earlier runs of these stations, run by run.
fn recordings(configs: &[StationConfig]) -> Vec<Vec<(usize, Vec<u8>)>> {
    let runs = (2..10).map(|run| {
        let mut net = Net::new(configs.to_vec(), run);
        net.run_until(at(12_000));
        core::mem::take(&mut net.world.hellos)
    });
    runs.collect()
}

/// Replays the recordings at 300 frames per second to everybody until then: a frame of each run in
/// turn, so that no session times out.
fn play_back(net: &mut Net, recordings: &[Vec<(usize, Vec<u8>)>], stations: usize, until: Time) {
    let mut step = 0;
    while net.now < until {
        net.run_for(Duration::from_nanos(1_000_000_000 / 300));
        let run = &recordings[step % recordings.len()];
        let (from, frame) = &run[step / recordings.len() % run.len()];
        (0..stations).filter(|to| to != from).for_each(|to| net.inject(to, frame));
        step += 1;
    }
}

/// Each replayed session displaced the one that was answering its challenge.
#[test]
fn replayed_greetings_do_not_keep_a_handshake_from_completing() {
    let configs = pair_and_helper(|_| ());
    let recordings = recordings(&configs);
    for erasure_ratio in [0.0, 0.2] {
        let mut net = Net::new(configs.clone(), 1);
        net.lose(move |flight| flight.draw < erasure_ratio);
        play_back(&mut net, &recordings, 3, at(1_000));
        let up = (net.are_up(S, D), net.are_up(S, H), net.are_up(D, H));
        assert_eq!(up, (true, true, true), "losses {erasure_ratio}");
    }
}

/// Replayed sessions crowded accepted ones out of the HELLO, and stations without an entry took
/// that for the end of their session.
#[test]
fn replayed_greetings_do_not_take_an_accepted_session_away() {
    let configs = pair_and_helper(|_| ());
    let recordings = recordings(&configs);
    let mut net = Net::new(configs, 1);
    net.lose(|flight| {
        flight.kind == Kind::Enc && flight.to == D && flight.from == S && flight.draw < 0.3
    });
    net.run_until(at(1_000));
    for second in 2..12 {
        play_back(&mut net, &recordings, 3, at(1_000 * second));
        assert!(net.are_up(S, D) && net.are_up(S, H) && net.are_up(D, H), "at {second} s");
        (0..100).for_each(|_| assert!(net.offer(S, 1_000)));
    }
    net.run_until(at(20_000));
    assert!(net.delivered_to(D).into_iter().eq(0..1_000));
    assert!(net.stats(H).recoded_frames_sent > 100, "the helper has been there");
    assert_eq!([S, D, H].map(|at| net.stats(at).sessions_accepted), [2, 2, 2]);
    // Back to normal: a HELLO every 5 s and five reports per second.
    let before = [S, D, H].map(|at| net.stats(at).control_frames_sent);
    net.run_until(at(80_000));
    let after = [S, D, H].map(|at| net.stats(at).control_frames_sent);
    assert!(after[S] - before[S] <= 15 && after[D] - before[D] <= 15, "{before:?}, {after:?}");
}

/// A HELLO from before the end of the handshake, arriving late, revoked the acceptance.
#[test]
fn an_overtaken_greeting_does_not_take_an_accepted_session_away() {
    let mut net = Net::new(pair(|_| ()), 1);
    net.stop(D);
    net.run_until(at(7));
    net.start(D);
    let accepted = |net: &Net| [S, D].map(|at| net.stats(at).sessions_accepted);
    while accepted(&net)[S] == 0 {
        net.run_for(Duration::from_millis(1));
    }
    assert_eq!(accepted(&net), [1, 0], "S has accepted D, but not the other way");
    // What D sends now is overtaken by what it sends once it has accepted S.
    let first = net.world.hellos.len();
    net.lose(|_| true);
    net.run_for(Duration::from_millis(200));
    let overtaken = net.world.hellos.split_off(first);
    net.lose(|_| false);
    net.run_until(at(1_000));
    assert!(net.are_up(S, D));
    let mut told = 0;
    for (_, hello) in overtaken.iter().filter(|(from, _)| *from == D) {
        net.inject(S, hello);
        assert!(net.are_up(S, D));
        told += 1;
    }
    assert!(told > 3, "{told}");
}

// ---- lengths ----------------------------------------------------------------------------------

/// The decoder took its own longest symbol for the peer's, and refused longer ones.
#[test]
fn peers_with_different_frame_lengths_exchange_packets_both_ways() {
    for lens in [[1_500, 1_400], [1_400, 1_500], [1_400, 9_000], [9_000, 1_400]] {
        let mut configs = pair(|_| ());
        configs.iter_mut().zip(lens).for_each(|(config, len)| config.frame_len_max = len);
        let mut net = Net::new(configs, 1);
        net.lose(|flight| flight.kind != Kind::Hello && flight.draw < 0.1);
        net.run_until(at(1_000));
        for _ in 0..300 {
            for station in [S, D] {
                assert!(net.offer(station, net[station].tunnel_mtu()) && net.offer(station, 64));
            }
            net.run_for(Duration::from_millis(5));
        }
        net.run_until(at(5_000));
        for station in [S, D] {
            assert_eq!(net.delivered_to(station).len(), 600, "{lens:?}, station {station}");
            assert_eq!(net.stats(station).symbols_refused, 0, "{lens:?}, station {station}");
        }
    }
}

/// A helper recoded the endpoints' longer symbols into frames that its own underlay cannot carry.
#[test]
fn a_helper_with_shorter_frames_sends_none_too_long() {
    let mut configs = pair_and_helper(|_| ());
    configs[H].frame_len_max = 1_400;
    let mut net = Net::new(configs, 1);
    net.lose(|flight| {
        flight.kind == Kind::Enc && (flight.from, flight.to) == (S, D) && flight.draw < 0.3
    });
    net.run_until(at(1_000));
    let mtu = net[S].tunnel_mtu();
    for _ in 0..300 {
        net.offer(S, mtu);
        net.run_for(Duration::from_millis(2));
        net.offer(S, 700);
        net.run_for(Duration::from_millis(2));
    }
    net.run_until(at(5_000));
    assert!(net.delivered_to(D).into_iter().eq(0..600));
}

/// An acknowledgment listed every block of the window, however long that made it.
#[test]
fn acknowledgements_fit_the_frame() {
    let mut net = Net::new(
        pair(|config| {
            config.frame_len_max = 576;
            config.ingress_packets = 20_000;
            config.coding.field = Field::Gf2;
            config.coding.block_size = 1_024;
            config.coding.blocks_in_flight = 16;
            config.coding.encoder_timeout = Duration::from_millis(500);
            config.coding.delivery_deadline = Duration::from_secs(10);
        }),
        1,
    );
    net.world.rate_bps = Some(400_000_000);
    net.run_until(at(1_000));
    // All acknowledgments are lost while the encoder opens as many blocks as it may.
    net.lose(|flight| match flight.from {
        S => flight.draw < 0.3,
        _ => flight.sent_in(0..1_300),
    });
    let mtu = net[S].tunnel_mtu();
    (0..16 * 1_024).for_each(|_| assert!(net.offer(S, mtu)));
    net.run_until(at(1_300));
    assert_eq!((net.stats(S).blocks_opened, net.stats(S).blocks_acknowledged), (16, 0));
    assert!(net.stats(D).ack_frames_sent >= 10);
    net.run_until(at(5_000));
    assert!(net.delivered_to(D).into_iter().eq(0..16 * 1_024));
    assert_eq!(net.stats(S).blocks_given_up, 0);
}

/// A symbol size to be derived passed the check before it was derived, and the subtraction
/// underflowed.
#[test]
fn a_frame_too_short_for_the_coding_vector_is_a_configuration_error() {
    let mut refused = 0;
    for role in [endpoint(1, 2, None), endpoint(1, 2, Some(3)), helper(3, (1, 2))] {
        let recoded = !matches!(role.role, Role::Endpoint { helper: None, .. });
        for field in [Field::Gf2, Field::Gf256] {
            for frame_len_max in 576..1_200 {
                let mut config = role.clone();
                (config.frame_len_max, config.coding.field) = (frame_len_max, field);
                config.coding.block_size = 1_024;
                let vector_len = field.vector_len_bytes(1_024);
                match Station::new(config, [1; 32], Time::ZERO) {
                    Ok(station) => assert!(station.tunnel_mtu() < frame_len_max),
                    Err(error) => {
                        assert!(error.to_string().contains("symbol_size"), "{error}");
                        assert!(recoded && frame_len_max < vector_len + 100, "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 2 * (1_030 - 576), "{refused}");
}
