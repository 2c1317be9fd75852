//! Helpers of tunnels over several hops: what they overhear of packets on their route, what that
//! gains, and where helpers are rejected.

use std::fs;

use corridor_scenario::{Measures, Plan, Replication, TableKind};
use corridor_sim::{check_plan, run};

/// A network whose nodes hear each other as these lines say, with the rest of the plan.
fn parsed(matrix: &str, text: &str) -> Result<Plan, String> {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("m.txt"), matrix).expect("a file");
    let common = "name = 'helpers'\nseed = 5\nduration_s = 8\nwarm_up_s = 2\n";
    let plan = Plan::parse(&format!("{common}{text}"), directory.path());
    let plan = plan.map_err(|error| error.to_string())?;
    check_plan(&plan).map_err(|(_, error)| match error.value() {
        Some(value) => plan.locate("plan.toml".as_ref(), value).to_string(),
        None => error.to_string(),
    })?;
    Ok(plan)
}

fn made(matrix: &str, text: &str) -> Replication {
    let plan = parsed(matrix, text).unwrap_or_else(|error| panic!("{error}"));
    run(&plan.points[0], 0).expect("it can be run")
}

fn number(measures: &Measures, name: &str) -> f64 {
    measures.value(name).number().unwrap_or_else(|| panic!("no {name} in {measures:?}"))
}

/// Node 0 sends to node 2 by node 1, and back; node 3 is beside them.
const ROW: &str = "[output]\nseries_s = 1\n[network]\nkind = 'matrix'\nnodes = 4\npath = 'm.txt'\n\
    [[network.route]]\npath = [0, 1, 2]\n";
/// An ideal medium without retransmissions, as for broadcast frames.
const LOTTERY: &str = "[network.radio]\nmac = 'ideal'\nrate_bps = '12M'\n";
const TUNNEL: &str = "[[network.tunnel]]\nbetween = [0, 2]\ncoding = { preset = 'block' }\n";

fn load(rate: &str) -> String {
    format!(
        "[[flow]]\nfrom = 0\nto = 2\ntunnel = 0\nsource = {{ kind = 'cbr', rate_bps = '{rate}' }}\n"
    )
}

/// The links of a matrix, heard both ways with these losses.
fn matrix(links: &[(usize, usize, f64)]) -> String {
    let link = |&(a, b, loss): &(usize, usize, f64)| format!("{a} {b} {loss}\n{b} {a} {loss}\n");
    links.iter().map(link).collect()
}

/// Frames that each of the tunnel's stations sent: both ends, and the helper.
fn sent_by(replication: &Replication) -> [f64; 3] {
    let rows = replication.tables.rows(TableKind::StationSeries).expect("stations have a course");
    let (station, sent) = (&rows.columns()[0], &rows.columns()[5]);
    [0.0, 1.0, 2.0].map(|index| {
        let own = station.iter().zip(sent).filter(|(at, _)| **at == index);
        own.map(|(_, frames)| frames).sum()
    })
}

/// What a helper gains where frames are lost on the first hop, on the second, and where its own
/// frames cross the same relay: fewer frames of the tunnel's stations for the same packets, and
/// more packets where the load exceeds the channel's capacity.
#[test]
fn a_helper_saves_frames_and_lifts_goodput_over_two_hops() {
    let beside_the_first = [(0, 1, 0.5), (1, 2, 0.05), (3, 0, 0.1), (3, 1, 0.1), (3, 2, 0.1)];
    let beside_the_second = [(0, 1, 0.05), (1, 2, 0.5), (3, 1, 0.1), (3, 2, 0.1)];
    let by_the_same_relay = [(0, 1, 0.5), (1, 2, 0.05), (3, 0, 0.1), (3, 1, 0.1)];
    // Where its frames take as many hops as the sender's, they cost more airtime than they save.
    for (name, links, lifts) in [
        ("it hears nodes 0 and 1, and sends to node 2", &beside_the_first[..], true),
        ("it hears node 1, and sends to node 2", &beside_the_second, true),
        ("it hears node 0, and sends by node 1", &by_the_same_relay, false),
    ] {
        let links = matrix(links);
        let of = |helper: &str, rate: &str| {
            let text = format!("{ROW}{LOTTERY}{TUNNEL}{helper}{}", load(rate));
            made(&links, &text)
        };
        let helper = "helper = 3\n";
        let (alone, helped) = (of("", "500k"), of(helper, "500k"));
        let again = of(helper, "500k");
        // Tables have NaN for unknown values, which does not equal itself.
        assert_eq!(format!("{helped:?}"), format!("{again:?}"), "{name}: the same again");
        for replication in [&alone, &helped] {
            let bps = number(&replication.measures, "goodput_bps");
            assert!((bps / 5e5 - 1.0).abs() < 0.05, "{name}: {bps} bit/s of 500 kbit/s");
        }
        let frames =
            |replication: &Replication| number(&replication.measures, "tunnel_frames_sent");
        let (without, with) = (frames(&alone), frames(&helped));
        let full = |helper: &str| number(&of(helper, "20M").measures, "goodput_bps");
        let (slow, fast) = (full(""), full(helper));
        let [_, _, recoded] = sent_by(&helped);
        println!("{name}: {without} -> {with} frames ({recoded} recoded), {slow} -> {fast} bit/s");
        assert!(recoded > 100.0, "{name}: {recoded} frames of the helper");
        assert!(with < 0.95 * without, "{name}: {with} frames, {without} without a helper");
        assert_eq!(fast > 1.3 * slow, lifts, "{name}: {fast} bit/s, {slow} without a helper");
    }
}

/// Node 3 hears only node 0, and has another route to node 2: it cannot overhear node 2's
/// acknowledgments, so they are sent to it.
#[test]
fn a_helper_on_another_way_is_told_what_has_come() {
    let links = [(0, 1, 0.5), (1, 2, 0.05), (0, 3, 0.1), (3, 4, 0.05), (4, 2, 0.05)];
    let nodes = ROW.replace("nodes = 4", "nodes = 5");
    let of = |helper: &str| {
        made(&matrix(&links), &format!("{nodes}{LOTTERY}{TUNNEL}{helper}{}", load("500k")))
    };
    let (alone, helped) = (of(""), of("helper = 3\n"));
    let bps = number(&helped.measures, "goodput_bps");
    assert!((bps / 5e5 - 1.0).abs() < 0.05, "{bps}");
    let [without, with] = [&alone, &helped].map(sent_by);
    println!("{without:?} -> {with:?}");
    assert!(with[2] > 100.0, "{with:?}");
    assert!(with[0] < 0.8 * without[0], "{with:?} and {without:?}");
}

/// Each error names the line, the value and the alternatives.
#[test]
fn helpers_that_would_hear_nothing_are_refused() {
    let wires = |pairs: &[[usize; 2]]| -> String {
        let wire = |pair: &[usize; 2]| {
            format!(
                "[[network.link]]\nbetween = {pair:?}\nrate_bps = '10M'\ndelay_ms = 1\n\
                 queue_packets = 100\n"
            )
        };
        pairs.iter().map(wire).collect()
    };
    let helper = "helper = 3\n";
    let row = ROW.replace("[[network.route]]\npath = [0, 1, 2]\n", "");
    let plan = |radio: &str, wires: &str| {
        format!("{row}{LOTTERY}{radio}{wires}{TUNNEL}{helper}{}", load("500k"))
    };
    let all = [(0, 1, 0.1), (1, 2, 0.1), (3, 1, 0.1)];
    let one_way = format!("{}1 3 0.1\n", matrix(&[(0, 1, 0.1), (1, 2, 0.1)]));
    for (links, text, expected) in [
        (
            matrix(&all),
            plan("nodes = [0, 1, 2]\n", &wires(&[[1, 3]])),
            "network.tunnel[0].helper = 3: expected a node on a radio: nothing is overheard on wires",
        ),
        (
            // Node 3 hears node 1, which sends nothing of the tunnel by radio.
            matrix(&[(3, 1, 0.1)]),
            plan("", &wires(&[[0, 1], [1, 2]])),
            "network.tunnel[0].helper = 3: expected packets between nodes 0 and 2 on a radio: they \
             go over wires, where nothing is overheard",
        ),
        (
            // Node 3 has a radio, but hears no station of the tunnel on it; its route uses a wire.
            matrix(&[(0, 1, 0.1), (1, 2, 0.1)]),
            plan("", &wires(&[[1, 3]])),
            "network.tunnel[0].helper = 3: expected a node whose radio hears one of those that send \
             packets between nodes 0 and 2 by radio: [0, 1, 2]",
        ),
        (
            one_way,
            plan("", ""),
            "network.tunnel[0].helper = 3: expected links that lead from there to nodes 0 and 2, and \
             back: none lead from node 3 to node 0",
        ),
    ] {
        let error = parsed(&links, &text).expect_err(expected);
        assert!(error.contains(expected), "{error}\nfor {expected}");
        let line = format!("name\nseed\nduration_s\nwarm_up_s\n{text}");
        let line = 1 + line.lines().position(|line| line == "helper = 3").expect("it is there");
        assert!(error.contains(&format!(":{line}:")), "line {line}: {error}");
    }
}
