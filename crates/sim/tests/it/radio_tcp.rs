//! TCP over the daemon's stations and the radio between them.

use corridor_scenario::{Row, Scenario, expand};
use corridor_sim::{SimError, run_radio};

fn try_run(run: &str) -> Result<Row, SimError> {
    try_run_with(7, run)
}

fn try_run_with(seed: u64, run: &str) -> Result<Row, SimError> {
    let text = format!(
        "name = 'tcp'\nseed = {seed}\n[medium]\nduplex = 'half'\nrate_bps = 12_000_000\n\
         overhead_us = 400\nrtt_ms = 4\nqueue_frames = 4\n[[run]]\ntransport = 'tcp'\n\
         duration_s = 5\n{run}\n"
    );
    let scenario = Scenario::parse(&text).expect("a test's scenario is sound");
    let run = expand(&scenario).expect("a test's scenario is sound").remove(0);
    run_radio(&scenario, &run)
}

fn row(run: &str) -> Row {
    try_run(run).expect("it can be run")
}

/// TCP's settings for each variant, as lines of a run.
fn variants() -> impl Iterator<Item = String> {
    let today = ["cubic", "reno", "bbr"].map(|name| ("linux", name));
    let of_2014 = ["cubic", "reno", "newreno", "sack", "vegas", "tahoe"];
    let all = today.into_iter().chain(of_2014.map(|name| ("linux-2014", name)));
    all.map(|(tcp, name)| format!("tcp = '{tcp}'\ncongestion = '{name}'"))
}

/// A segment of 1411 bytes takes 1.4 ms of airtime; every second one causes an ACK of .45 ms.
#[test]
fn every_variant_fills_a_lossless_radio() {
    for tcp in variants() {
        let row = row(&format!("path = 'plain'\n{tcp}\ne3 = 0"));
        assert!((6.2e6..7.2e6).contains(&row.goodput_bps), "{tcp}: {}", row.goodput_bps);
        let window = row.cwnd_mean_packets.expect("TCP has a window");
        // In flight are 4 ms or 3 segments, and the ingress queue holds 100.
        assert!((3.0..200.0).contains(&window), "{tcp}: {window}");
    }
}

#[test]
fn vegas_keeps_the_queue_short() {
    let delay = |congestion: &str| {
        let tcp = format!("tcp = 'linux-2014'\ncongestion = '{congestion}'");
        let row = row(&format!("path = 'plain'\n{tcp}\ne3 = 0"));
        row.delays.delay_p50_s.expect("records came")
    };
    assert!(delay("vegas") < 0.02);
    assert!(delay("cubic") > 0.05);
}

#[test]
fn an_application_with_a_rate_gets_it_at_once() {
    for path in ["plain", "coded", "coded+helper"] {
        let coding = "coding = { preset = 'block' }";
        let row = row(&format!("path = '{path}'\n{coding}\noffered_bps = 1e6\ne3 = 0"));
        assert!((row.goodput_bps / 1e6 - 1.0).abs() < 0.01, "{path}: {}", row.goodput_bps);
        // Half of the round trip, a frame's airtime, and an acknowledgment that goes first.
        assert!(row.delays.delay_p95_s.expect("records came") < 0.006, "{path}: {:?}", row.delays);
        assert_eq!((row.packets_retransmitted, row.timeouts), (Some(0), Some(0)), "{path}");
    }
}

#[test]
fn losses_show_in_the_sender_s_counters() {
    let row = row("path = 'plain'\ne3 = 0.1");
    assert!(row.packets_retransmitted > Some(10) && row.timeouts > Some(0), "{row:?}");
    let coded = self::row("path = 'coded'\ncoding = { preset = 'block' }\ne3 = 0.1");
    assert!(coded.goodput_bps > 4.0 * row.goodput_bps);
}

/// Without any reception no connection is established, and nothing is sent.
#[test]
fn data_waits_for_the_handshake() {
    let row = row("path = 'plain'\ne3 = 0.999");
    assert_eq!((row.goodput_bps, row.packets_retransmitted, row.timeouts), (0.0, Some(0), Some(0)));
}

fn window(clamp: bool, run: &str) -> Row {
    window_with(7, clamp, run)
}

fn window_with(seed: u64, clamp: bool, run: &str) -> Row {
    let coding = format!("coding = {{ preset = 'window', clamp_windows = {clamp} }}");
    let run = format!("path = 'coded'\n{coding}\n{run}");
    try_run_with(seed, &run).expect("it can be run")
}

#[test]
fn clamped_windows_halve_the_delay_of_a_kernel_s_tcp() {
    let [open, clamped] = [false, true].map(|clamp| window(clamp, "e3 = 0.1"));
    let delay = |row: &Row| row.delays.delay_p50_s.expect("records came");
    let (before, after) = (delay(&open), delay(&clamped));
    assert!(after < 0.65 * before, "{before} s and {after} s");
    let (before, after) = (open.goodput_bps, clamped.goodput_bps);
    assert!(after > 0.97 * before, "{before} and {after} bit/s");
}

/// Acknowledgments with altered windows still count as duplicates where they have to. Means of
/// several runs, most of Vegas: it takes the wait for repair for congestion, and that wait varies a
/// lot.
#[test]
fn every_variant_does_as_well_with_clamped_windows() {
    for tcp in variants() {
        let run = format!("{tcp}\ne3 = 0.2");
        let runs = if tcp.contains("vegas") { 50 } else { 6 };
        let goodput = |clamp| {
            let seeds = 1..=runs;
            seeds.map(|seed| window_with(seed, clamp, &run).goodput_bps).sum::<f64>() / runs as f64
        };
        let (open, clamped) = (goodput(false), goodput(true));
        assert!(clamped > 0.95 * open, "{tcp}: {open} and {clamped} bit/s");
    }
}

#[test]
fn both_directions_share_the_radio() {
    let one = row("path = 'coded'\ncoding = { preset = 'block' }\ne3 = 0");
    let both = row("path = 'coded'\ncoding = { preset = 'block' }\ndirection = 'both'\ne3 = 0");
    assert_eq!(both.sides.len(), 2);
    let share = both.goodput_bps / one.goodput_bps;
    assert!((0.8..1.2).contains(&share), "{share}");
    for side in &both.sides {
        assert!(side.goodput_bps > 0.15 * both.goodput_bps, "{side:?}");
    }
}

#[test]
fn two_runs_are_the_same() {
    for run in ["path = 'plain'\ne3 = 0.05", "path = 'coded+helper'\ne3 = 0.2"] {
        assert_eq!(row(run), row(run));
    }
}

#[test]
fn what_a_tcp_has_not_is_refused_with_what_there_is() {
    let said = |tcp: &str| {
        let run = format!("path = 'plain'\n{tcp}\ne3 = 0");
        try_run(&run).unwrap_err().to_string()
    };
    assert_eq!(
        said("congestion = 'vegas'"),
        "congestion = vegas: the simulator runs cubic, reno and bbr, and others with tcp = \
         \"linux-2014\""
    );
    assert_eq!(
        said("tcp = 'linux-2014'\ncongestion = 'bbr'"),
        "congestion = bbr: the simulator runs bbr with tcp = \"linux\" alone"
    );
}

/// With many losses from the first frame on, the rate control's startup lasts until a queue shows.
/// A startup that ended at losses left the rate at half of the path's.
#[test]
fn random_losses_do_not_end_the_start_of_the_rate() {
    for (rate_mbps, rtt_ms, e3) in [(12.0, 4, 0.3), (12.0, 20, 0.4), (50.0, 30, 0.3)] {
        let scenario = Scenario::parse(&format!(
            "name = 'steady'\nseed = 100\n[medium]\nduplex = 'full'\nrate_bps = {}\n\
             rtt_ms = {rtt_ms}\nqueue_frames = 50\n[[run]]\npath = 'coded'\ntransport = 'tcp'\n\
             e3 = {e3:?}\nduration_s = 10\ncoding = {{ preset = 'window' }}",
            rate_mbps * 1e6
        ));
        let scenario = scenario.expect("a test's scenario is sound");
        let run = expand(&scenario).expect("a test's scenario is sound").remove(0);
        let row = run_radio(&scenario, &run).expect("it can be run");
        let share = row.goodput_bps / (rate_mbps * 1e6 * (1.0 - e3));
        assert!(share > 0.85, "{share} of {rate_mbps} Mbit/s at {rtt_ms} ms and {e3} lost");
    }
}

/// Packets received and sent, for the load that a run offers over a medium.
fn offered(seed: u64, medium: &str, run: &str) -> (u64, u64) {
    let scenario = Scenario::parse(&format!(
        "name = 'offered'\nseed = {seed}\n[medium]\n{medium}\n[[run]]\npath = 'coded'\n\
         transport = 'udp'\nduration_s = 8\ncoding = {{ preset = 'window' }}\n{run}"
    ));
    let scenario = scenario.expect("a test's scenario is sound");
    let run = expand(&scenario).expect("a test's scenario is sound").remove(0);
    let row = run_radio(&scenario, &run).expect("it can be run");
    let count = |count: Option<u64>| count.expect("of datagrams");
    (count(row.packets_received), count(row.packets_sent))
}

/// An application offers less than the path carries: what is delivered of it must not limit the
/// rate.
#[test]
fn random_losses_do_not_bound_what_an_application_offers() {
    for seed in 100..106 {
        // A limit by what is delivered dropped one packet in twenty; with seed 103, the rate was
        // taken from what arrived of the first eight frames.
        let (received, sent) = offered(
            seed,
            "duplex = 'half'\nrate_bps = 12_000_000\noverhead_us = 400\nrtt_ms = 4\n\
             queue_frames = 4",
            "offered_bps = 2e6\ne3 = 0.5",
        );
        assert!(100 * received >= 99 * sent, "{received} of {sent}, seed {seed}");
        // The first check ended the startup because deliveries do not grow in it; then another
        // startup began.
        for (medium, run) in [
            (
                "rate_bps = 19_700_000\nrtt_ms = 5\nqueue_frames = 2",
                "offered_bps = 7.8e6\ndatagram_bytes = 751\ne3 = 0.35",
            ),
            (
                "rate_bps = 44_400_000\nrtt_ms = 7\nqueue_frames = 17",
                "offered_bps = 14e6\ndatagram_bytes = 866\ne3 = 0.48",
            ),
        ] {
            let (received, sent) = offered(seed, &format!("duplex = 'full'\n{medium}"), run);
            assert!(100 * received >= 99 * sent, "{received} of {sent}, seed {seed}: {medium}");
        }
    }
}

/// As [`row`], over several links in a row with forwarding hosts between them.
fn row_over(hops: usize, run: &str) -> Row {
    let text = format!(
        "name = 'hops'\nseed = 7\n[medium]\nduplex = 'full'\nrate_bps = 12_000_000\nrtt_ms = 4\n\
         queue_frames = 50\nhops = {hops}\n[[run]]\nunderlay = 'udp'\nduration_s = 5\n{run}\n"
    );
    let scenario = Scenario::parse(&text).expect("a test's scenario is sound");
    let run = expand(&scenario).expect("a test's scenario is sound").remove(0);
    run_radio(&scenario, &run).expect("it can be run")
}

#[test]
fn several_hops_delay_and_lose_as_one_does_of_all_together() {
    let udp =
        "transport = 'udp'\noffered_bps = 4e6\ndatagram_bytes = 400\ne3 = 0.1\npath = 'plain'";
    let row = row_over(4, udp);
    let (sent, received) = (row.packets_sent.unwrap(), row.packets_received.unwrap());
    // 6,250 draws at 10 %: a standard deviation of .4 percentage points.
    let lost = 1.0 - received as f64 / sent as f64;
    assert!((lost - 0.1).abs() < 0.016, "lost {lost}");
    // Half the round trip and a frame of 442 bytes with its header, four times each.
    let median = row.delays.delay_p50_s.unwrap();
    assert!((0.0091..0.0105).contains(&median), "{median}");
    assert_eq!(row.air_drop_ratio, Some(0.0));
}

#[test]
fn a_tunnel_over_several_hops_carries_what_their_losses_leave() {
    for (hops, e3) in [(1, 0.2), (4, 0.2), (8, 0.0)] {
        let window = format!(
            "transport = 'tcp'\ncongestion = 'cubic'\npath = 'coded'\ne3 = {e3:?}\n\
             coding = {{ preset = 'window' }}"
        );
        let row = row_over(hops, &window);
        let used = row.goodput_bps / (12e6 * (1.0 - e3));
        assert!((0.85..0.96).contains(&used), "{hops} hops, {e3}: {used}");
    }
}

#[test]
fn links_in_a_row_carry_in_each_direction_what_one_does() {
    let flood = "transport = 'udp'\noffered_bps = 16e6\ndatagram_bytes = 1200\ne3 = 0\npath = 'plain'\n\
         direction = 'both'";
    let row = row_over(3, flood);
    assert!(row.goodput_bps < 2.0 * 12e6, "{}", row.goodput_bps);
    assert!(row.goodput_bps > 2.0 * 10.5e6, "{}", row.goodput_bps);
}
