//! A relay on one half-duplex channel, with the kernel's UDP and TCP in both directions: the gain
//! of combining over forwarding alone. `scenarios/relay.toml` is the same with a longer duration.

use corridor_scenario::Row;
use corridor_testing::realtime::until_it_holds;

use crate::support::{Place, alone, with_net};
use crate::{judge, lab_run};

fn scenario(run: &str, presets: &str) -> String {
    format!(
        "name = 'relay'\nseed = 2013\n[medium]\nduplex = 'half'\nrate_bps = 12_000_000\n\
         rtt_ms = 0.2\nqueue_frames = 3\nretry_limit = 7\n[[run]]\npath = 'relay'\n\
         direction = 'both'\ne3 = 0\nwarm_up_s = 3\nduration_s = 4\n{run}\nrelay = {presets}\n"
    )
}

/// Whether a condition holds for a scenario's rows, none of which may have wrong bytes.
fn rows(test: &str, text: &str, holds: impl Fn(&[Row]) -> bool) {
    with_net(test, || {
        let _alone = alone();
        let place = Place::new("relay");
        let scenario = place.write("scenario.toml", text);
        until_it_holds(test, |_| {
            let (rows, _) = lab_run(&scenario);
            for row in &rows {
                println!(
                    "{} {}: {:.0} bit/s, {:?}",
                    row.path, row.policy, row.goodput_bps, row.relay
                );
            }
            judge(&rows, holds(&rows))
        });
    });
}

/// Repeated rows come last.
fn plain_and_coded(rows: &[Row]) -> [&Row; 2] {
    let of = |is_plain: bool| rows.iter().find(|row| (row.policy == "plain") == is_plain);
    [true, false].map(|is_plain| of(is_plain).unwrap_or_else(|| panic!("{rows:?}")))
}

#[test]
fn combining_carries_more_of_udp_both_ways_than_forwarding() {
    let text = scenario(
        "transport = 'udp'\noffered_bps = 4e6",
        "[{ preset = 'plain' }, { preset = 'default' }]",
    );
    rows("combining_carries_more_of_udp_both_ways_than_forwarding", &text, |rows| {
        let [plain, coded] = plain_and_coded(rows);
        let counts = coded.relay.clone().expect("relays count");
        assert_eq!(plain.relay.clone().expect("they do").counters.relay_frames_coded, 0);
        let least = coded.sides.iter().map(|side| side.goodput_bps).fold(f64::MAX, f64::min);
        least >= 3.4e6
            && coded.goodput_bps >= 1.7 * plain.goodput_bps
            && counts.decode_failure_ratio.is_some_and(|ratio| ratio <= 0.02)
    });
}

#[test]
fn combining_carries_more_of_tcp_both_ways_than_forwarding() {
    let text = scenario("transport = 'tcp'", "[{ preset = 'plain' }, { preset = 'default' }]");
    rows("combining_carries_more_of_tcp_both_ways_than_forwarding", &text, |rows| {
        let [plain, coded] = plain_and_coded(rows);
        coded.goodput_bps >= 1.05 * plain.goodput_bps
    });
}
