//! Networks whose nodes have several radios, wires besides, and tunnels across several hops; hop
//! limits, and datagram sources.

use std::fs;
use std::path::Path;

use corridor_scenario::{Measures, Plan, TableKind};
use corridor_sim::{CaptureLimits, capture_point, check_plan, run, sketch};

fn parsed(text: &str, directory: &Path) -> Result<Plan, String> {
    let common = "name = 'tunnels'\nseed = 5\nduration_s = 6\nwarm_up_s = 2\n";
    let plan = Plan::parse(&format!("{common}{text}"), directory);
    let plan = plan.map_err(|error| error.to_string())?;
    check_plan(&plan).map_err(|(_, error)| error.to_string())?;
    Ok(plan)
}

fn plan(text: &str) -> Plan {
    parsed(text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"))
}

fn measured(text: &str) -> Measures {
    run(&plan(text).points[0], 0).expect("it can be run").measures
}

fn number(measures: &Measures, name: &str) -> f64 {
    measures.value(name).number().unwrap_or_else(|| panic!("no {name} in {measures:?}"))
}

/// Four nodes in a row that hear their neighbours, and sense nodes two hops away.
const LINE: &str = "[network]\nkind = 'line'\nnodes = 4\nspacing_m = 20\n";
const DCF: &str = "mac = 'dcf'\nstandard = 'g'\nrate_bps = '12M'\npower_dbm = 0\nsense_dbm = -92\n";
const FTP: &str = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\n";
const TUNNEL: &str = "[[network.tunnel]]\nbetween = [0, 3]\n";

#[test]
fn hops_on_channels_of_their_own_do_not_take_turns() {
    let one = measured(&format!("{LINE}[network.radio]\n{DCF}{FTP}"));
    let radio = format!("[[network.radio]]\n{DCF}");
    let several = format!("{LINE}{radio}{radio}{radio}");
    let route = "[[network.route]]\npath = [0, 1, 2, 3]\nradios = [0, 1, 2]\n";
    let three = measured(&format!("{several}{route}{FTP}"));
    let (one_bps, three_bps) = (number(&one, "goodput_bps"), number(&three, "goodput_bps"));
    // On one channel, three hops share its time; in both cases TCP's acknowledgments take some.
    assert!(three_bps > 2.0 * one_bps, "{one_bps} and {three_bps} bit/s");
    // Unless routes say otherwise, only the first radio is used.
    let unsaid = measured(&format!("{several}{FTP}"));
    assert!((number(&unsaid, "goodput_bps") / one_bps - 1.0).abs() < 0.1);
    let drawn = sketch(&plan(&format!("{several}{route}{FTP}")).points[0]).expect("a picture");
    assert_eq!(drawn.reaches.iter().filter(|reach| reach.hears).count(), 18);
}

#[test]
fn nodes_may_have_radios_and_wires() {
    // A wire from host 0 to gateway 1, radios from there on; host 0 has no radio.
    let text = format!(
        "{LINE}[network.radio]\n{DCF}nodes = [1, 2, 3]\n[[network.link]]\nbetween = [0, 1]\n\
         rate_bps = 100_000_000\ndelay_ms = 5\nqueue_packets = 100\n[output]\ntables = true\n{FTP}"
    );
    let replication = run(&plan(&text).points[0], 0).expect("it can be run");
    let bps = number(&replication.measures, "goodput_bps");
    assert!((2e6..8e6).contains(&bps), "{bps} bit/s over two hops of 12 Mbit/s");
    let rows = |kind| {
        let tables = &replication.tables;
        tables.rows(kind).map_or(0, |rows| rows.len())
    };
    assert_eq!((rows(TableKind::Links), rows(TableKind::Nodes)), (2 + 3, 3));
}

#[test]
fn tunnels_cross_several_hops() {
    let radio = format!("{LINE}[network.radio]\n{DCF}");
    let bare = number(&measured(&format!("{radio}{FTP}")), "goodput_bps");
    for coding in ["", "coding = { preset = 'block' }\n", "plain = true\n"] {
        let text = format!("{radio}{TUNNEL}{coding}{FTP}tunnel = 0\n");
        let through = measured(&text);
        let bps = number(&through, "goodput_bps");
        assert!(bps > 0.5 * bare && bps < 1.1 * bare, "{coding}: {bps}, and {bare} without");
        assert!(number(&through, "tunnel_frames_sent") > 100.0, "{coding}: {through:?}");
        assert!(number(&through, "tunnel_packets_delivered") > 100.0, "{coding}");
        assert_eq!(through, measured(&text), "{coding}: the same again");
    }
}

#[test]
fn a_tunnel_repairs_what_links_on_its_way_lose() {
    let links = "[network]\nkind = 'chain'\nlinks = { count = 3, rate_bps = 10_000_000, \
                 delay_ms = 5, queue_packets = 100, erasure_ratio = 0.05 }\n";
    let tcp = format!("{FTP}tcp = {{ preset = 'linux' }}\n");
    let bare = number(&measured(&format!("{links}{tcp}")), "goodput_bps");
    let through = measured(&format!("{links}{TUNNEL}{tcp}tunnel = 0\n"));
    let bps = number(&through, "goodput_bps");
    assert!(bps > 3.0 * bare, "{bps} through it, {bare} bit/s without");
    assert!(number(&through, "tunnel_symbols_repaired") > 100.0);
    // Datagrams, stamped behind the tunnel: all arrive but those in flight at the end.
    let cbr =
        "[[flow]]\nfrom = 3\nto = 0\ntunnel = 0\nsource = { kind = 'cbr', rate_bps = '1M' }\n";
    let calls = measured(&format!("{links}{TUNNEL}{cbr}"));
    assert!(number(&calls, "flow.0.packet_loss_ratio") < 0.01, "{calls:?}");
    assert!((number(&calls, "goodput_bps") / 1e6 - 1.0).abs() < 0.02, "{calls:?}");
}

#[test]
fn tunnels_have_a_course_and_are_captured() {
    let text =
        format!("[output]\nseries_s = 1\n{LINE}[network.radio]\n{DCF}{TUNNEL}{FTP}tunnel = 0\n");
    let plan = plan(&text);
    let tables = run(&plan.points[0], 0).expect("it can be run").tables;
    let rows = |kind| tables.rows(kind).map_or(0, |rows| rows.len());
    assert_eq!(rows(TableKind::StationSeries), 2 * 6);
    let directory = std::env::temp_dir().join(format!("corridor-tunnels-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let file = directory.join("tunnel.pcapng");
    let out = fs::File::create(&file).expect("a file");
    let limits = CaptureLimits { frames_max: 500, ..CaptureLimits::default() };
    let counts =
        capture_point(&plan.points[0], 0, &[], limits, "a tunnel", out).expect("a capture");
    assert_eq!(counts.frames, 500);
    // IPv4, UDP, from port 4242 to port 4242, where the dissector looks.
    let bytes = fs::read(&file).expect("the capture");
    assert!(bytes.windows(4).any(|ports| ports == [0x10, 0x92, 0x10, 0x92]));
    fs::remove_dir_all(&directory).expect("it goes again");
}

#[test]
fn packets_go_as_far_as_they_may_and_broadcasts_one_hop() {
    let radio = format!("{LINE}[network.radio]\n{DCF}");
    let cbr = |more: &str| {
        let flow = "[[flow]]\nfrom = 0\nsource = { kind = 'cbr', rate_bps = '100k' }\n";
        number(&measured(&format!("{radio}{flow}{more}")), "goodput_bps")
    };
    assert!(cbr("to = 3\nlinks_max = 3\n") > 9e4);
    assert_eq!(cbr("to = 3\nlinks_max = 2\n"), 0.0);
    assert!(cbr("to = 1\nbroadcast = true\n") > 9e4);
    assert_eq!(cbr("to = 2\nbroadcast = true\n"), 0.0, "nobody passes them on");
}

#[test]
fn sources_draw_their_times_or_read_them() {
    let directory = std::env::temp_dir().join(format!("corridor-traffic-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    // From 2 s on, the datagrams at 2, 3 and 5 s count.
    fs::write(directory.join("trace.txt"), "# s, bytes\n0.5 100\n2.5, 200\n3 300\n5 400\n9 100\n")
        .expect("a trace");
    let radio = format!("start_jitter_s = 0\n{LINE}[network.radio]\n{DCF}");
    let flow =
        |source: &str| format!("{radio}[[flow]]\nfrom = 0\nto = 1\nsource = {{ {source} }}\n");
    let of = |source: &str| {
        let plan = parsed(&flow(source), &directory).unwrap_or_else(|error| panic!("{error}"));
        run(&plan.points[0], 0).expect("it can be run").measures
    };
    let trace = of("kind = 'trace', path = 'trace.txt'");
    assert_eq!(number(&trace, "flow.0.packets_received"), 3.0);
    assert_eq!(number(&trace, "goodput_bps"), 8.0 * 900.0 / 4.0);
    // 800 datagrams of 1000 bytes in 4 s, within 3.5 % (one sigma).
    let poisson = number(&of("kind = 'poisson', rate_bps = '1.6M'"), "goodput_bps");
    assert!((poisson / 1.6e6 - 1.0).abs() < 0.15, "{poisson}");
    let pauses =
        number(&of("kind = 'on-off', rate_bps = '1.6M', on_s = 0.02, off_s = 0.02"), "goodput_bps");
    assert!((pauses / 0.8e6 - 1.0).abs() < 0.4, "{pauses}");
    fs::write(directory.join("trace.txt"), "1 100\n0.5 100\n").expect("a trace");
    let error = parsed(&flow("kind = 'trace', path = 'trace.txt'"), &directory).unwrap_err();
    assert!(error.contains("flow[0].source.path = 0.5 100"), "{error}");
    fs::remove_dir_all(&directory).expect("it goes again");
}

#[test]
fn what_cannot_be_is_told_with_its_place() {
    let radios = format!("{LINE}[[network.radio]]\n{DCF}[[network.radio]]\n{DCF}");
    let one = format!("{LINE}[network.radio]\n{DCF}");
    for (text, expected) in [
        (format!("{radios}nodes = [1]\n{FTP}"), "network.radio[1].nodes = [1]"),
        (format!("{radios}rate_bps2 = 1\n{FTP}"), "rate_bps2"),
        (format!("{radios}reach_m = 1\n{FTP}"), "network.radio[1].reach_m"),
        (format!("{one}powers_dbm = [0, 0]\n{FTP}"), "network.radio.powers_dbm = 2 values"),
        (format!("{one}capture_us = 10\n{FTP}"), "network.radio.capture_us = 10"),
        (
            format!("{radios}[[network.route]]\npath = [0, 1]\nradios = [2]\n{FTP}"),
            "network.route[0].radios = [2]",
        ),
        (format!("{radios}[network.relay]\npreset = 'plain'\n{FTP}"), "network.relay"),
        (format!("{radios}[network.routing]\nkind = 'nst-aodv'\n{FTP}"), "network.routing"),
        (format!("{one}{FTP}tunnel = 0\n"), "flow[0].tunnel = 0"),
        (
            format!("{one}[[network.tunnel]]\nbetween = [0, 2]\n{FTP}tunnel = 0\n"),
            "flow[0].tunnel = 0: expected one between nodes 0 and 3",
        ),
        (format!("{one}[[network.tunnel]]\nbetween = [1, 1]\n{FTP}"), "network.tunnel[0].between"),
        (
            format!("{one}{TUNNEL}{FTP}tunnel = 0\npayload_bytes = 1450\n"),
            "flow[0].payload_bytes = 1450",
        ),
        (format!("{one}{FTP}broadcast = true\n"), "flow[0].broadcast = true"),
        (format!("{one}{FTP}links_max = 0\n"), "flow[0].links_max = 0"),
    ] {
        let error = parsed(&text, Path::new(".")).expect_err(expected);
        assert!(error.contains(expected), "{error}\nfor {expected}");
    }
}

/// A triangle that loses half of what goes directly between the ends, and a tenth by the helper.
const TRIANGLE: &str = "0 1 0.5\n1 0 0.5\n0 2 0.1\n2 0 0.1\n1 2 0.1\n2 1 0.1\n";

fn with_helper(matrix: &str, text: &str) -> Result<Plan, String> {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("m.txt"), matrix).expect("a file");
    parsed(text, directory.path())
}

/// An ideal medium without retransmissions, as for broadcast frames.
const LOTTERY: &str = "[network]\nkind = 'matrix'\nnodes = 3\npath = 'm.txt'\n\
    [network.radio]\nmac = 'ideal'\nrate_bps = '12M'\nretries = 0\n";
const HELPED: &str = "[[network.tunnel]]\nbetween = [0, 1]\ncoding = { preset = 'block' }\n";
const LOAD: &str = "[[flow]]\nfrom = 0\nto = 1\ntunnel = 0\n\
    source = { kind = 'cbr', rate_bps = '1M' }\n";

#[test]
fn a_helper_overhears_both_ends_of_a_tunnel_and_recodes() {
    let run_of = |helper: &str| {
        let plan =
            with_helper(TRIANGLE, &format!("{LOTTERY}{HELPED}{helper}{LOAD}")).expect("sound");
        run(&plan.points[0], 0).expect("it can be run")
    };
    let (alone, helped) = (run_of("").measures, run_of("helper = 2\n"));
    assert_eq!(helped, run_of("helper = 2\n"), "the same again");
    let helped = helped.measures;
    // Either way everything arrives but the blocks still open at the end; with the helper, for
    // fewer frames in total.
    for measures in [&alone, &helped] {
        assert!((number(measures, "goodput_bps") / 1e6 - 1.0).abs() < 0.04, "{measures:?}");
    }
    let frames = |measures| number(measures, "tunnel_frames_sent");
    assert!(frames(&helped) < 0.95 * frames(&alone), "{} and {}", frames(&helped), frames(&alone));
}

/// With a standard's MAC, which passes on frames for others only in promiscuous mode.
#[test]
fn a_helper_overhears_over_802_11_too_and_is_captured() {
    let losses = TRIANGLE.replace(" 0.5", " 90 0.5").replace(" 0.1", " 80 0.1");
    let radio = LOTTERY
        .replace("mac = 'ideal'", "mac = 'dcf'\nstandard = 'g'")
        .replace("retries = 0", "retries = 2");
    let text = format!("[output]\nseries_s = 1\n{radio}{HELPED}helper = 2\n{LOAD}");
    let plan = with_helper(&losses, &text).expect("sound");
    let replication = run(&plan.points[0], 0).expect("it can be run");
    let bps = number(&replication.measures, "goodput_bps");
    assert!((bps / 1e6 - 1.0).abs() < 0.03, "{bps}");
    // Station 2 is the helper.
    let rows = replication.tables.rows(TableKind::StationSeries).expect("stations have a course");
    let (station, sent) = (&rows.columns()[0], &rows.columns()[5]);
    assert_eq!(station.len(), 3 * 6);
    let recoded: f64 = station.iter().zip(sent).filter(|(at, _)| **at == 2.0).map(|(_, n)| n).sum();
    assert!(recoded > 50.0, "{recoded} frames of the helper");
    let mut bytes = Vec::new();
    let limits = CaptureLimits { frames_max: 200, ..CaptureLimits::default() };
    let file = tempfile::NamedTempFile::new().expect("a file");
    let out = file.reopen().expect("the file");
    capture_point(&plan.points[0], 0, &[], limits, "a helper", out).expect("a capture");
    std::io::Read::read_to_end(&mut file.reopen().expect("the file"), &mut bytes).expect("bytes");
    // LLC, SNAP and the daemon's EtherType: no IP.
    assert!(bytes.windows(8).any(|at| at == [0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0xb5]));
    assert!(!bytes.windows(4).any(|ports| ports == [0x10, 0x92, 0x10, 0x92]));
}

#[test]
fn helpers_that_cannot_be_are_refused() {
    let said = |matrix: &str, tunnel: &str| {
        with_helper(matrix, &format!("{LOTTERY}{tunnel}{LOAD}")).expect_err("cannot be")
    };
    let cases = [
        (
            "helper = 3",
            "network.tunnel[0].helper = 3: expected a node from 0 to 2 besides its ends",
        ),
        (
            "helper = 1",
            "network.tunnel[0].helper = 1: expected a node from 0 to 2 besides its ends",
        ),
        (
            "helper = 2\nplain = true",
            "network.tunnel[0].helper = 2: expected nothing with plain = true: a helper recodes",
        ),
        (
            "helper = 2\ncoding = { preset = 'window' }",
            "network.tunnel[0].coding.preset = 'window': expected paper or block where there is a helper",
        ),
    ];
    for (keys, expected) in cases {
        let error = said(TRIANGLE, &format!("{TUNNEL}{keys}\n").replace("3]", "1]"));
        assert!(error.contains(expected), "{keys}: {error}");
    }
}

/// Two tunnels of which one began later had 32 and 6 Mbit/s after a minute: feedback, which the
/// rate included and the capacity did not, weighed most on the slower one, and what both aimed at
/// in the queue made them equal too slowly (26 and 12).
#[test]
fn a_tunnel_that_begins_later_becomes_equal() {
    let text = "name = 'late'\nseed = 5\nduration_s = 60\nwarm_up_s = 40\n\
                [network]\nkind = 'dumbbell'\npairs = 2\n\
                access = { rate_bps = '1G', delay_ms = 0.05, queue_packets = 60_000 }\n\
                bottleneck = { rate_bps = '40M', delay_ms = 60, queue_packets = 600 }\n\
                [[network.tunnel]]\nbetween = [0, 2]\n[[network.tunnel]]\nbetween = [1, 3]\n\
                [[flow]]\nfrom = 0\nto = 2\ntunnel = 0\nsource = { kind = 'ftp' }\n\
                tcp = { preset = 'linux' }\n\
                [[flow]]\nfrom = 1\nto = 3\ntunnel = 1\nsource = { kind = 'ftp' }\n\
                tcp = { preset = 'linux' }\nstart_s = 8\n";
    let plan = Plan::parse(text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    let measures = run(&plan.points[0], 0).expect("it can be run").measures;
    let goodput = |flow| number(&measures, &format!("flow.{flow}.goodput_bps"));
    let (first, later) = (goodput(0), goodput(1));
    assert!(first + later > 0.9 * 40e6, "{first} and {later} bit/s");
    assert!(later > 0.7 * first, "{first} and {later} bit/s");
}

/// Behind a short buffer that is always full, the delay does not depend on what one of them sends.
/// It passed for that of a longer path, and drops for random losses: they sent up to 20 times what
/// the path carries.
#[test]
fn tunnels_do_not_take_a_buffer_that_others_fill_for_a_longer_path() {
    for seed in [6, 3_045_681_961_u64] {
        let mut text = format!(
            "name = 'full'\nseed = {seed}\nduration_s = 40\nwarm_up_s = 20\n[network]\n\
             kind = 'dumbbell'\npairs = 4\n\
             access = {{ rate_bps = '370M', delay_ms = 0.05, queue_packets = 60_000 }}\n\
             bottleneck = {{ rate_bps = 18_509_815, delay_ms = 4.103, queue_packets = 11 }}\n"
        );
        for from in 0..4 {
            text += &format!("[[network.tunnel]]\nbetween = [{from}, {}]\n", from + 4);
        }
        for (from, start_s) in [0.714, 1.286, 1.357, 1.205].iter().enumerate() {
            text += &format!(
                "[[flow]]\nfrom = {from}\nto = {}\nstart_s = {start_s}\ntunnel = {from}\n\
                 source = {{ kind = 'ftp' }}\ntcp = {{ preset = 'linux' }}\n",
                from + 4
            );
        }
        let plan = Plan::parse(&text, Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
        let measures = run(&plan.points[0], 0).expect("it can be run").measures;
        // Of 30,000 that the path carries.
        let dropped = number(&measures, "packets_dropped");
        assert!(dropped < 2_000.0, "{dropped} with seed {seed}");
    }
}
