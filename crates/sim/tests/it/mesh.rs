//! Meshes of constrained nodes as plans: nst-AODV over IEEE 802.15.4, TCP with a small window.

use std::path::Path;

use corridor_scenario::{Measures, Plan};
use corridor_sim::{Runner, check_plan, run};

/// A line of four nodes that only hear their neighbours.
const LINE: &str = r#"
name = "line"
seed = 1
duration_s = 100
until_done = true
[network]
kind = "line"
nodes = 4
spacing_m = 8
radio = { mac = "802.15.4", power_dbm = -25, backoff = "exponential-paper" }
[network.routing]
kind = "nst-aodv"
[[flow]]
from = 0
to = 3
source = { kind = "fixed", packets = 100 }
payload_bytes = 94
header_bytes = 20
tcp = { preset = "constrained", variant = "slowstart", timeouts_max = 5, ack_bytes = 20 }
"#;

fn measures(text: &str) -> Measures {
    let plan = Plan::parse(text, Path::new(".")).unwrap();
    check_plan(&plan).unwrap();
    run(&plan.points[0], 0).unwrap().measures
}

fn number(measures: &Measures, name: &str) -> f64 {
    measures.value(name).number().unwrap_or_else(|| panic!("nothing of {name}"))
}

#[test]
fn a_transfer_finds_its_way_and_ends_the_run() {
    let of = measures(LINE);
    assert_eq!(number(&of, "flow.0.completed"), 1.0);
    assert_eq!(number(&of, "flow.0.route_links_mean"), 3.0);
    assert_eq!(number(&of, "flow.0.packets_received"), 100.0);
    assert!(number(&of, "routes_found") >= 1.0);
    // The transfer takes 7 s of the 100 s allowed, and the simulation ends with it.
    let (goodput, own) = (number(&of, "goodput_bps"), number(&of, "flow.0.transfer_goodput_bps"));
    assert!((goodput / own - 1.0).abs() < 0.05, "{goodput} of {own} bit/s");
}

#[test]
fn static_ways_are_found_beforehand_and_nobody_asks() {
    let of = measures(&LINE.replace("\"nst-aodv\"", "\"nst-aodv\"\nstatic = true"));
    assert_eq!(number(&of, "flow.0.completed"), 1.0);
    assert_eq!(number(&of, "flow.0.route_links_mean"), 3.0);
    assert_eq!(of.value("route_requests").number(), None);
}

/// Points that differ in what static routes depend on, and in what they do not.
#[test]
fn what_is_known_of_other_points_changes_nothing() {
    let grid = LINE.replace(
        "\"line\"\nnodes = 4\nspacing_m = 8",
        "\"grid\"\ncolumns = 4\nrows = 2\nspacing_m = 6",
    );
    let shadowed = "-25, path_loss = { exponent = 3, shadowing_db = 4, fixed = true }, backoff";
    let text = grid
        .replace("-25, backoff", shadowed)
        .replace("\"nst-aodv\"", "\"nst-aodv\"\nstatic = true")
        .replace("packets = 100", "packets = 10")
        + "[[sweep]]\nnetwork.radio.backoff = ['exponential-paper', 'standard']\n\
           [[sweep]]\nnetwork.routing.metric = ['hop-count', 'path-dr']\n\
           [[sweep]]\nflow.0.to = [3, 7]\n[[sweep]]\nseed = [1, 2]\n";
    let plan = Plan::parse(&text, Path::new(".")).unwrap();
    assert_eq!(plan.points.len(), 16);
    let runner = Runner::default();
    runner.check(&plan).unwrap();
    let all = plan.points.iter().map(|point| {
        let (known, alone) = (runner.run(point, 0).unwrap(), run(point, 0).unwrap());
        assert_eq!(known.measures, alone.measures, "point {}", point.index);
        alone.measures
    });
    let links: Vec<f64> = all.map(|of| number(&of, "flow.0.route_links_mean")).collect();
    assert!(links.iter().any(|&one| one != links[0]), "{links:?}");
}

/// constrained-defaults-2012, III-C1: with a window of one, both kinds of acknowledgment behave
/// alike.
#[test]
fn acknowledgements_are_alike_with_a_window_of_one() {
    let one = LINE.replace("timeouts_max", "window_packets_max = 1, timeouts_max");
    let positive = one.replace("timeouts_max", "acks = \"positive\", timeouts_max");
    assert_eq!(measures(&one), measures(&positive));
    let larger = LINE.replace("timeouts_max", "acks = \"positive\", timeouts_max");
    assert_ne!(measures(LINE), measures(&larger), "with a window of eight they are not");
}

/// constrained-defaults-2012, III-C1, i: an acknowledgment that still waits is updated, so fewer
/// are sent than there are packets.
#[test]
fn acknowledgements_that_wait_are_updated() {
    let of = |text: &str| number(&measures(text), "packet_hops");
    let positive = LINE.replace("timeouts_max", "acks = \"positive\", timeouts_max");
    assert!(
        of(LINE) < of(&positive),
        "{} links crossed, not fewer than {}",
        of(LINE),
        of(&positive)
    );
}

/// Processing time of 10 ms at either end adds to each round trip.
#[test]
fn work_at_the_ends_is_part_of_the_round_trip() {
    let one = LINE.replace("timeouts_max", "window_packets_max = 1, timeouts_max");
    let works = one.replace("payload_bytes = 94", "payload_bytes = 94\nprocessing_ms = 10");
    let rtt_s = |text: &str| number(&measures(text), "flow.0.rtt_mean_s");
    let longer_s = rtt_s(&works) - rtt_s(&one);
    assert!((longer_s - 0.020).abs() < 0.002, "{longer_s} s");
}

#[test]
fn a_sender_gives_up_after_timeouts_in_a_row() {
    // Every data frame is lost; requests, which are shorter, are lost as well.
    let deaf = LINE
        .replace("kind = \"line\"", "kind = \"matrix\"\npath = \"deaf.txt\"")
        .replace("spacing_m = 8\n", "")
        .replace("nodes = 4", "nodes = 2")
        .replace("to = 3", "to = 1")
        .replace("[network.routing]\nkind = \"nst-aodv\"\n", "");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("deaf.txt"), "0 1 50 1\n1 0 50 0\n").unwrap();
    let plan = Plan::parse(&deaf, folder.path()).unwrap();
    let of = run(&plan.points[0], 0).unwrap().measures;
    assert_eq!(number(&of, "flow.0.completed"), 0.0);
    assert_eq!(number(&of, "flow.0.timeouts"), 5.0);
    assert_eq!(of.value("flow.0.transfer_goodput_bps").number(), None);
}

#[test]
fn a_pair_without_a_way_is_refused_by_name() {
    let apart = LINE.replace("spacing_m = 8", "spacing_m = 100");
    let plan = Plan::parse(&apart, Path::new(".")).unwrap();
    let (_, error) = check_plan(&plan).unwrap_err();
    assert_eq!(
        error.to_string(),
        "flow[0].to = 3: expected a node that links lead to from node 0: frames have to come through \
         at mean power"
    );
}
