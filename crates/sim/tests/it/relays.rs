//! Relays in simulated networks: what they combine arrives, they hear of the MAC's retries, and
//! plans configure them.

use std::fs;
use std::path::Path;

use corridor_scenario::{Measures, Plan};

fn parse(text: &str, directory: &Path) -> Result<Plan, String> {
    let common = "name = 'relays'\nseed = 3\nduration_s = 6\n";
    Plan::parse(&format!("{common}{text}"), directory).map_err(|error| error.to_string())
}

fn run(text: &str, directory: &Path) -> Measures {
    let plan = parse(text, directory).unwrap_or_else(|error| panic!("{error}"));
    let first = corridor_sim::run(&plan.points[0], 0).expect("it can be run").measures;
    assert_eq!(
        first,
        corridor_sim::run(&plan.points[0], 0).expect("again").measures,
        "the same again"
    );
    first
}

fn number(measures: &Measures, name: &str) -> f64 {
    measures.value(name).number().unwrap_or_else(|| panic!("no {name} in {measures:?}"))
}

/// The sum of a metric over both flows.
fn both(measures: &Measures, name: &str) -> f64 {
    (0..2).map(|flow| number(measures, &format!("flow.{flow}.{name}"))).sum()
}

/// Only neighbours hear each other, but all sense each other.
const LINE: &str = "[network]\nkind = 'line'\nspacing_m = 10\n";
const RADIO: &str = "[network.radio]\nmac = 'dcf'\npower_dbm = 0\nsense_dbm = -100\n";

/// The same load from both ends of a line.
fn opposite(nodes: usize, rate: &str) -> String {
    let last = nodes - 1;
    let flow = |from, to| {
        format!(
            "[[flow]]\nfrom = {from}\nto = {to}\nsource = {{ kind = 'cbr', rate_bps = '{rate}' }}\n"
        )
    };
    format!("{}{}", flow(0, last), flow(last, 0))
}

fn line(nodes: usize, relay: &str, flows: &str) -> String {
    format!("{LINE}nodes = {nodes}\n{RADIO}[network.relay]\n{relay}\n{flows}")
}

#[test]
fn opposite_packets_cross_a_relay_two_to_a_frame() {
    let here = Path::new(".");
    let plain = run(&line(3, "preset = 'plain'", &opposite(3, "200k")), here);
    let paper = run(&line(3, "preset = 'paper'", &opposite(3, "200k")), here);
    for measures in [&plain, &paper] {
        assert_eq!(number(measures, "flow.0.packet_loss_ratio"), 0.0, "{measures:?}");
        assert_eq!(number(measures, "relay_decode_failures"), 0.0);
        assert!(number(measures, "goodput_bps") > 390_000.0);
    }
    let frames = |measures: &Measures| {
        number(measures, "relay_frames_plain") + number(measures, "relay_frames_coded")
    };
    assert_eq!(number(&plain, "relay_frames_coded"), 0.0);
    // Three frames instead of four if all packets are paired; packets come every 40 ms each way.
    let ratio = frames(&plain) / frames(&paper);
    assert!((1.3..1.34).contains(&ratio), "{ratio}");
    // Packets held for a partner arrive later.
    let delay = |measures: &Measures| both(measures, "delay_mean_s");
    assert!(delay(&paper) > delay(&plain) + 0.005, "{} {}", delay(&paper), delay(&plain));
}

#[test]
fn what_is_decoded_is_combined_again_along_a_line() {
    let measures = run(&line(6, "preset = 'paper'", &opposite(6, "150k")), Path::new("."));
    assert!(number(&measures, "relay_packets_recoded") > 100.0, "{measures:?}");
    assert_eq!(number(&measures, "relay_decode_failures"), 0.0, "{measures:?}");
    assert_eq!(number(&measures, "flow.1.packet_loss_ratio"), 0.0, "{measures:?}");
}

/// On the chain of eight, one segment in six comes late, since retransmissions arrive after what
/// was sent later. Most of the segments that overtook them wait long enough for them.
#[test]
fn tcp_that_was_overtaken_is_waited_for_at_its_end() {
    let of = |in_order: &str| {
        let text = format!(
            "warm_up_s = 1\n[network]\nkind = 'line'\nspacing_m = 20\nnodes = 8\n[network.radio]\n\
             mac = 'dcf'\nstandard = 'g'\npower_dbm = 0\nsense_dbm = -92\nrate_bps = '6M'\n\
             [network.relay]\n{in_order}\n\
             [[flow]]\nfrom = 0\nto = 7\nsource = {{ kind = 'ftp' }}\n\
             [[flow]]\nfrom = 7\nto = 0\nsource = {{ kind = 'ftp' }}\n"
        );
        run(&text, Path::new("."))
    };
    let [as_it_comes, ordered] = ["in_order = false", ""].map(of);
    let late = |measures| number(measures, "relay_segments_late");
    assert!(late(&as_it_comes) > 30.0 && late(&ordered) > 30.0, "{as_it_comes:?} {ordered:?}");
    assert_eq!(number(&as_it_comes, "relay_segments_held"), 0.0);
    assert!(number(&ordered, "relay_segments_held") > late(&ordered) / 2.0, "{ordered:?}");
    assert!(number(&ordered, "relay_segments_overdue") < late(&ordered) / 4.0, "{ordered:?}");
}

#[test]
fn tcp_crosses_relays_in_both_directions() {
    let ftp = "[[flow]]\nfrom = 0\nto = 3\nsource = { kind = 'ftp' }\n";
    let back = ftp.replace("= 0", "= 9").replace("= 3", "= 0").replace("= 9", "= 3");
    for relay in ["preset = 'plain'", "preset = 'default'", "preset = 'paper'"] {
        let measures = run(&line(4, relay, &format!("{ftp}{back}")), Path::new("."));
        assert!(number(&measures, "goodput_bps") > 3e5, "{relay}: {measures:?}");
        assert_eq!(number(&measures, "relay_decode_failures"), 0.0, "{relay}");
    }
}

/// Every third frame is lost: more retries than the threshold, and only then are packets combined.
#[test]
fn retries_of_the_mac_reach_relays() {
    let folder = tempfile::tempdir().expect("a folder");
    let hop = |a, b| format!("{a} {b} 86 0.33\n{b} {a} 86 0.33\n");
    fs::write(folder.path().join("links"), [hop(0, 1), hop(1, 2)].concat()).expect("written");
    let matrix = "[network]\nkind = 'matrix'\nnodes = 3\npath = 'links'\n";
    let of = |threshold: u32| {
        let relay = format!("preset = 'paper-adaptive'\nretries_per_second = {threshold}");
        let radio = "[network.radio]\nmac = 'dcf'\nsense_dbm = -90\n";
        let flows = opposite(3, "200k");
        run(&format!("{matrix}{radio}[network.relay]\n{relay}\n{flows}"), folder.path())
    };
    let (never, soon) = (of(10_000), of(5));
    assert_eq!(number(&never, "relay_congested_s"), 0.0);
    assert_eq!(number(&never, "relay_frames_coded"), 0.0);
    assert!(number(&soon, "relay_congested_s") >= 3.0, "{soon:?}");
    assert!(number(&soon, "relay_frames_coded") > 20.0, "{soon:?}");
    // Frames have no retries for stations that they are not addressed to.
    let lost = |measures: &Measures| both(measures, "packet_loss_ratio");
    assert!(lost(&soon) > lost(&never) + 0.02, "{} {}", lost(&soon), lost(&never));
}

/// On a chain of relays that XOR, each hop has a coding window of its own: losses are repaired by
/// combinations of packets not reported yet (docs/decisions/0020), without waiting for a report.
#[test]
fn windows_protect_the_hops_of_a_chain_that_combines() {
    let folder = tempfile::tempdir().expect("a folder");
    let hop = |a, b| format!("{a} {b} 86 0.2\n{b} {a} 86 0.2\n");
    let links = [hop(0, 1), hop(1, 2), hop(2, 3)].concat();
    fs::write(folder.path().join("links"), links).expect("written");
    let of = |relay: &str| {
        // The MAC tries once.
        let network = "[network]\nkind = 'matrix'\nnodes = 4\npath = 'links'\n";
        let radio = "[network.radio]\nmac = 'dcf'\nsense_dbm = -90\nretries = 1\n";
        let flows = opposite(4, "250k");
        run(&format!("{network}{radio}[network.relay]\n{relay}\n{flows}"), folder.path())
    };
    let [nothing, reported, repaired] = ["resend = false", "repair = false", ""].map(of);
    assert_eq!(number(&reported, "relay_packets_repaired"), 0.0);
    assert!(number(&repaired, "relay_packets_repaired") > 100.0, "{repaired:?}");
    assert!(number(&repaired, "relay_frames_coded") > 20.0, "{repaired:?}");
    // Three hops leave half of the packets. At first no relay knows that hops lose.
    let lost = |measures: &Measures| both(measures, "packet_loss_ratio") / 2.0;
    assert!(lost(&nothing) > 0.4 && lost(&repaired) < 0.06, "{nothing:?} {repaired:?}");
    let delays = [&reported, &repaired].map(|measures| both(measures, "delay_mean_s"));
    assert!(delays[1] < 0.75 * delays[0], "{delays:?}");
}

#[test]
fn errors_say_which_value_and_what_was_expected() {
    let flows = opposite(3, "1k");
    let cases = [
        (line(3, "hold_ms = -1", &flows), "network.relay.hold_ms"),
        (line(3, "hold_learned = true", &flows), "hold_learned"),
        (line(3, "preset = 'plain'\nhold_learned = 'waits'", &flows), "network.relay.hold_ms"),
        (line(3, "queue_packets = 1", &flows), "queue_packets = 1"),
        (line(3, "preset = 'paper'\nheard_ratio_min = 0.5", &flows), "nothing without switch_off"),
        (line(3, "failed_ratio_max = 2", &flows), "a share from 0 to 1"),
        (
            format!(
                "{LINE}nodes = 3\n[network.radio]\nmac = 'ideal'\nrate_bps = '1M'\nreach_m = 11\n[network.relay]\n{flows}"
            ),
            "nothing without a MAC",
        ),
        (
            format!(
                "[network]\nkind = 'chain'\nlinks = {{ count = 2, rate_bps = 1000, delay_ms = 1, queue_packets = 5 }}\n[network.relay]\n{flows}"
            ),
            "network.relay",
        ),
    ];
    let routed =
        format!("{}[network.routing]\nkind = 'nst-aodv'\n", line(3, "preset = 'paper'", ""));
    let cases = cases.into_iter().chain([(
        format!("{routed}{flows}"),
        "network.routing = a table: expected nothing beside [network.relay], or static = true",
    )]);
    for (text, expected) in cases {
        let error = parse(&text, Path::new(".")).expect_err(expected);
        assert!(error.contains(expected), "{expected}: {error}");
    }
}
