use super::*;
use corridor_air::{ErasureConfig, GilbertElliott};

use crate::record::Kind;

const RADIO: &str = r#"
name = "r"
seed = 7
repeats = 2
medium = { duplex = "half", rate_bps = 12_000_000, rtt_ms = 4, queue_frames = 4 }
[[run]]
path = ["plain", "coded"]
transport = "udp"
offered_bps = 1e6
e3 = [0.1, 0.2]
duration_s = 2
"#;

const NETWORK: &str = r#"
name = "n"
seed = 3
duration_s = 10
[network]
kind = "chain"
links = { count = 2, rate_bps = 2_000_000, delay_ms = 100, queue_packets = 200 }
[[flow]]
from = 0
to = 2
source = { kind = "ftp" }
"#;

fn parse(text: &str) -> Result<Plan, ScenarioError> {
    Plan::parse(text, FilePath::new("."))
}

/// The error message for a plan, without its place.
fn refusal(text: &str) -> String {
    message(&parse(text).expect_err("is not valid"))
}

fn message(error: &ScenarioError) -> String {
    let ScenarioError::File(said) = error else { panic!("{error}") };
    assert!(said.render().starts_with("error: plan"), "{}", said.render());
    said.message().to_owned()
}

/// The error message for a plan, with its place.
fn complaint(text: &str) -> String {
    parse(text).map_or_else(|error| error.to_string(), |_| "sound".to_owned())
}

fn network_of(plan: &Plan, point: usize) -> &Network {
    match &plan.points[point].load {
        Load::Network(network) => network,
        Load::Radio(_) => panic!("a radio"),
    }
}

#[test]
fn a_scenario_is_a_plan() {
    let plan = parse(RADIO).unwrap();
    assert_eq!((plan.points.len(), &plan.replications), (4, &Replications::Fixed(2)));
    let Load::Radio(radio) = &plan.points[3].load else { panic!("a network") };
    assert_eq!((radio.run.path, radio.run.erasures.e3), (crate::Path::Coded, 0.2));
    let names: Vec<_> = plan.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names[..5], ["point", "replication", "seed", "path", "policy"]);
    assert!(names.contains(&"goodput_bps") && !names.contains(&"flow.0.goodput_bps"));
}

#[test]
fn sweeps_go_into_the_medium_and_the_runs() {
    let sweep = "[[sweep]]\nmedium.rtt_ms = [4, 8.5]\n'run.0.duration_s' = [2, 3]\n\
        [[sweep]]\nseed = [1, 2, 3]\n";
    let plan = parse(&format!("{RADIO}{sweep}")).unwrap();
    assert_eq!(plan.points.len(), 2 * 3 * 4);
    let columns: Vec<_> = plan.columns()[2..6].iter().map(|c| (c.name.as_str(), c.kind)).collect();
    // A sweep over a value that already has a column does not add a second one.
    assert_eq!(columns[0], ("seed", Kind::Integer));
    assert_eq!(columns[1], ("medium.rtt_ms", Kind::Real));
    assert_eq!(columns[2], ("run.0.duration_s", Kind::Integer));
    assert_eq!(columns[3].0, "path");
    let last = plan.points.last().unwrap();
    let Load::Radio(radio) = &last.load else { panic!("a network") };
    assert_eq!((radio.scenario.medium.rtt_ms, radio.run.duration_s, last.seed), (8.5, 3.0, 3));
    let record = plan.record(last.index, 1, &Measures::default());
    assert_eq!(record.values[..4], [23u64.into(), 1u64.into(), 3u64.into(), 8.5.into()]);
    assert_eq!(record.values.len(), plan.columns().len());
}

#[test]
fn equal_points_of_different_plans_have_one_identity() {
    let one = parse(RADIO).unwrap();
    let more = RADIO.replace("[0.1, 0.2]", "[0.05, 0.1]").replace("name = \"r\"", "name = \"s\"");
    let other = parse(&more).unwrap();
    assert_eq!(one.points[0].identity(), other.points[1].identity());
    assert_ne!(one.points[0].identity(), one.points[1].identity());
}

/// A file's contents are part of a point: a changed file does not reuse results of the old one.
#[test]
fn a_change_of_a_file_changes_the_identity() {
    let radio = |kind: &str, radio: &str, flow: &str| {
        let nodes = if kind.contains("positions") { "" } else { "nodes = 3" };
        format!(
            "name = 'n'\nseed = 3\nduration_s = 10\n\
             [network]\nkind = {kind}\n{nodes}\nradio = {radio}\n\
             [[flow]]\nfrom = 0\nto = 2\nsource = {flow}\n"
        )
    };
    let dcf = "{ mac = 'dcf' }";
    let ideal = "{ mac = 'ideal', rate_bps = 1e6 }";
    let matrix = "'matrix'\npath = 'f.txt'";
    let ftp = "{ kind = 'ftp' }";
    let links = "0 1 80\n1 0 80\n1 2 80\n2 1 80\n";
    let lossy = "0 1 0.1\n1 0 0.1\n1 2 0.1\n2 1 0.1\n";
    let bursts = NETWORK.replace(
        "queue_packets = 200",
        "queue_packets = 200, erasure = { kind = 'trace', path = 'f.txt' }",
    );
    let cases = [
        // A loss that decides on decoding, one that is only sensed, a loss ratio, a link.
        (radio(matrix, dcf, ftp), links, "0 1 81\n1 0 80\n1 2 80\n2 1 80\n"),
        (radio(matrix, dcf, ftp), links, "0 1 80\n1 0 80\n1 2 80\n2 1 80\n0 2 100\n"),
        (radio(matrix, dcf, ftp), links, "0 1 80 0.01\n1 0 80\n1 2 80\n2 1 80\n"),
        (radio(matrix, ideal, ftp), lossy, "0 1 0.1\n1 0 0.1\n1 2 0.1\n2 1 0.100001\n"),
        (
            radio("'matrix'", "{ mac = 'dcf', path = 'f.txt' }", ftp),
            links,
            "0 1 80\n1 0 80\n1 2 80\n2 1 80.5\n",
        ),
        (radio("'positions'\npath = 'f.txt'", dcf, ftp), "0 0\n9 0\n18 0\n", "0 0\n9 0\n18 1\n"),
        (
            radio(matrix, dcf, "{ kind = 'trace', path = 'g.txt' }"),
            links,
            "0 1 80\n1 0 80\n1 2 80\n2 1 79\n",
        ),
        (bursts, "0 0 1 0", "0 1 0 0"),
    ];
    for (place, (text, before, after)) in cases.iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let schedule = directory.path().join("g.txt");
        std::fs::write(&schedule, "0.5 100\n1.0 100\n").unwrap();
        let identity = |file: &str| {
            std::fs::write(directory.path().join("f.txt"), file).unwrap();
            let plan = Plan::parse(text, directory.path());
            plan.unwrap_or_else(|error| panic!("{place}: {error}")).points[0].identity()
        };
        let first = identity(before);
        assert_ne!(first, identity(after), "{place}: another file");
        // Not the file's name or bytes: a comment is not part of the plan.
        let commented = format!("{before}# again\n");
        let has_comments = !text.contains("erasure = ");
        assert!(!has_comments || first == identity(&commented), "{place}: the same file");
        std::fs::write(&schedule, "0.5 100\n1.0 101\n").unwrap();
        assert_eq!(first != identity(before), text.contains("g.txt"), "{place}: a schedule");
    }
}

#[test]
fn a_network_has_links_both_ways() {
    let plan = parse(&NETWORK.replace(
        "queue_packets = 200",
        "queue_packets = 200, \
        erasure_ratio = 0.1, backward = { erasure_ratio = 0, delay_ms = 50 }",
    ))
    .unwrap();
    let network = network_of(&plan, 0);
    assert_eq!((network.nodes, network.links.len()), (3, 4));
    let ends: Vec<_> = network.links.iter().map(|link| (link.from, link.to)).collect();
    assert_eq!(ends, [(0, 1), (1, 0), (1, 2), (2, 1)]);
    assert_eq!(network.links[2].pipe.erasure, ErasureConfig::Bernoulli { ratio: 0.1 });
    assert_eq!(network.links[3].pipe.erasure, ErasureConfig::NONE);
    assert_eq!(network.links[3].pipe.delay.as_millis(), 50);
    assert_eq!(network.links[3].pipe.rate, 2_000_000.into());
}

#[test]
fn dumbbells_and_explicit_networks_have_the_nodes_they_say() {
    let link = "{ rate_bps = 1000, delay_ms = 1, queue_packets = 9 }";
    let kind = "kind = \"chain\"\nlinks = { count = 2, rate_bps = 2_000_000, delay_ms = 100, \
        queue_packets = 200 }";
    let dumbbell = format!("kind = 'dumbbell'\npairs = 2\naccess = {link}\nbottleneck = {link}");
    let plan = parse(&NETWORK.replace(kind, &dumbbell)).unwrap();
    let network = network_of(&plan, 0);
    let ends: Vec<_> = network.links.iter().step_by(2).map(|l| (l.from, l.to)).collect();
    assert_eq!((network.nodes, ends), (6, vec![(0, 4), (1, 4), (5, 2), (5, 3), (4, 5)]));

    let link = link.replace('{', "{ between = [0, 2],");
    let explicit = format!("kind = 'explicit'\nnodes = 3\nlink = [{link}]");
    let plan = parse(&NETWORK.replace(kind, &explicit)).unwrap();
    let network = network_of(&plan, 0);
    assert_eq!((network.nodes, network.links[1].from, network.links[1].to), (3, 2, 0));
    let refused = refusal(&NETWORK.replace(kind, &explicit.replace("[0, 2]", "[0, 3]")));
    assert_eq!(refused, "network.link[0].between = [0, 3]: expected two nodes from 0 to 2");
}

#[test]
fn bursts_and_traces_are_read_and_checked() {
    let with = |erasure: &str| {
        NETWORK.replace("queue_packets = 200", &format!("queue_packets = 200, erasure = {erasure}"))
    };
    let plan = parse(&with("{ kind = 'gilbert-elliott', loss_ratio = 0.1, burst_packets = 4 }"));
    let erasure = network_of(&plan.unwrap(), 0).links[0].pipe.erasure.clone();
    assert_eq!(erasure, ErasureConfig::GilbertElliott(GilbertElliott::simple(0.1, 4.0)));
    let field = "network.links.erasure";
    assert_eq!(
        refusal(&with("{ kind = 'gilbert-elliott', loss_ratio = 0.75, burst_packets = 2 }")),
        format!("{field}.burst_packets = 2: expected 3 or more")
    );
    assert_eq!(
        refusal(&with("{ kind = 'bernoulli' }")),
        format!("{field}.loss_ratio is missing: expected a value for this kind of erasures")
    );
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::write(directory.join("t.txt"), "01\n1\n").unwrap();
    fs::write(directory.join("bad.txt"), "01\n0x").unwrap();
    let text = with("{ kind = 'trace', path = 't.txt' }");
    let plan = Plan::parse(&text, directory).unwrap();
    let erasure = &network_of(&plan, 0).links[0].pipe.erasure;
    assert_eq!((erasure.loss_ratio() * 3.0).round(), 2.0);
    let error = Plan::parse(&text.replace("t.txt", "bad.txt"), directory).unwrap_err();
    assert!(error.to_string().contains("byte 0x78 at offset 4"), "{error}");
    let error = Plan::parse(&text.replace("t.txt", "none.txt"), directory).unwrap_err();
    assert!(error.to_string().contains("a file to read"), "{error}");
}

#[test]
fn a_refused_value_is_named_with_what_is_expected() {
    let cases = [
        ("count = 2", "count = 0", "network.links.count = 0: expected 1 to 9999"),
        ("delay_ms = 100", "delay_ms = -1", "network.links.delay_ms = -1: expected 0 to 60000 ms"),
        ("to = 2", "to = 3", "flow[0].to = 3: expected a node from 0 to 2"),
        ("to = 2", "to = 0", "flow[0].to = 0: expected another node than `from`"),
        ("duration_s = 10", "", "duration_s is missing: expected simulated seconds"),
        (
            "\"ftp\"",
            "\"fixed\"",
            "flow[0].source.packets is missing: expected a value for this kind of source",
        ),
        (
            "\"ftp\" }",
            "\"cbr\", rate_bps = 1e6 }\ntcp = {}",
            "flow[0].tcp = a table: expected nothing: cbr sends datagrams; kind = \"rate\" sends over TCP",
        ),
        ("seed = 3", "seed = 3\nreplications = 0", "replications = 0: expected 1 to 10000"),
        (
            "seed = 3",
            "seed = 3\nreplications = 2\nrepeats = 3",
            "replications = 2: expected nothing beside `repeats`",
        ),
        (
            "seed = 3",
            "seed = 3\nstop = { metric = \"goodput_bps\", ci95_ratio = 0.1, replications_min = 1 }",
            "stop.replications_min = 1: expected 2 to 10000",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(NETWORK.contains(from), "{from}");
        assert_eq!(refusal(&NETWORK.replace(from, to)), expected);
    }
    assert!(refusal(&RADIO.replace("repeats = 2", "warm_up_s = -1")).starts_with("warm_up_s = -1"));
    let both = format!("{RADIO}[network]\nkind = 'chain'");
    assert_eq!(refusal(&both), "medium = a table: expected nothing beside [network]");
    assert!(
        refusal(&format!("{RADIO}[[flow]]\nfrom = 0\nto = 1\nsource = {{ kind = 'ftp' }}"))
            .contains("radios have runs")
    );
}

#[test]
fn a_swept_value_that_does_not_fit_is_named_by_its_path() {
    let with = |sweep: &str| refusal(&format!("{NETWORK}[[sweep]]\n{sweep}"));
    let refused = with("'network.links.erasure_ratoi' = [0.1]");
    assert!(
        refused.starts_with("sweep \"network.links.erasure_ratoi\" = 0.1: expected"),
        "{refused}"
    );
    assert!(refused.contains("erasure_ratio"), "{refused}");
    let refused = with("seed = [1, 2]\n'flow.0.tcp.variant' = ['reno', 'remo']");
    assert!(refused.starts_with("sweep \"flow.0.tcp.variant\" = \"remo\": expected"), "{refused}");
    assert!(refused.contains("newreno"), "{refused}");
    let refused = with("'network.links.erasure_ratio' = [0.1, 1.5]");
    assert_eq!(refused, "network.links.erasure_ratio = 1.5: expected an erasure ratio from 0 to 1");
    let refused = with("'network.links.rate_bps' = [1.5]");
    assert!(refused.contains("sweep \"network.links.rate_bps\" = 1.5"), "{refused}");
}

#[test]
fn a_value_that_only_sweeps_give_may_be_missing_elsewhere() {
    let text = NETWORK.replace("delay_ms = 100, ", "");
    assert!(refusal(&text).contains("delay_ms is missing"));
    let plan = parse(&format!("{text}[[sweep]]\nnetwork.links.delay_ms = [10, 20]")).unwrap();
    assert_eq!(plan.points.len(), 2);
    assert_eq!(network_of(&plan, 1).links[0].pipe.delay.as_millis(), 20);
}

#[test]
fn the_usual_mistakes_have_a_place_and_what_was_expected() {
    for (from, to, said) in [
        ("to = 2", "too = 2", "plan:10:1: `too` is not known in [flow] (did you mean `to`?)"),
        (
            "kind = \"chain\"",
            "kind = \"chian\"",
            "plan:6:8: network.kind = \"chian\": expected \"chain\", \"dumbbell\", \"explicit\", \
             \"line\", \"grid\", \"star\", \"random\", \"positions\" or \"matrix\" (did \
             you mean \"chain\"?)",
        ),
        ("count = 2", "count = 0", "plan:7:19: network.links.count = 0: expected 1 to 9999"),
        (
            "delay_ms = 100",
            "delay_ms = \"long\"",
            "plan:7:55: network.links.delay_ms = \"long\": expected a number",
        ),
        (
            "2_000_000",
            "\"2 Mbit\"",
            "plan:7:33: network.links.rate_bps = \"2 Mbit\": expected bits per second, such as 10000000, \
             \"10M\", \"1.5G\" or \"500k\"",
        ),
        ("seed = 3\n", "", "plan: seed is missing: expected a whole number, 0 or more"),
        (
            "seed = 3",
            "seed = ",
            "plan:3:8: not TOML: string values must be quoted, expected literal string",
        ),
        (
            "source = { kind = \"ftp\" }\n",
            "",
            "plan:8:1: flow.source is missing: expected a table: [flow.source]",
        ),
        (
            "\"ftp\"",
            "\"cbr\"",
            "plan:11:10: flow[0].source.rate_bps is missing: expected a value for this kind of source",
        ),
    ] {
        assert!(NETWORK.contains(from), "{from}");
        assert_eq!(complaint(&NETWORK.replace(from, to)), said);
    }
    let swept = |sweep: &str| complaint(&format!("{NETWORK}[[sweep]]\n{sweep}"));
    assert_eq!(
        swept("'network.links.erasure_ratio' = [0.1, 1.5]"),
        "plan:13:39: network.links.erasure_ratio = 1.5: expected an erasure ratio from 0 to 1"
    );
    assert_eq!(
        swept("flow.0.tcp.variant = ['reno', 'remo']"),
        "plan:13:31: sweep \"flow.0.tcp.variant\" = \"remo\": expected \"tahoe\", \"reno\", \"newreno\", \
         \"sack\", \"cubic\", \"vegas\", \"bbr\" or \"slowstart\""
    );
    assert_eq!(
        complaint(&RADIO.replace("[0.1, 0.2]", "[0.1, 2.0]")),
        "plan:10:12: run[0].e3 = 2: expected an erasure ratio from 0 to 1"
    );
}

#[test]
fn rates_have_units_wherever_there_are_rates() {
    let text = NETWORK.replace("2_000_000", "\"2M\"");
    assert_eq!(network_of(&parse(&text).unwrap(), 0).links[0].pipe.rate, 2_000_000.into());
    let sweep = "[[sweep]]\nnetwork.links.rate_bps = [\"500k\", 1_000_000]\n";
    let plan = parse(&format!("{text}{sweep}")).unwrap();
    assert_eq!(network_of(&plan, 0).links[0].pipe.rate, 500_000.into());
    let column = plan.columns().iter().find(|column| column.name == "network.links.rate_bps");
    assert_eq!(column.unwrap().kind, Kind::Integer);
    let source = "source = { kind = \"rate\", rate_bps = \"1.5M\" }";
    let plan = parse(&NETWORK.replace("source = { kind = \"ftp\" }", source)).unwrap();
    assert_eq!(network_of(&plan, 0).flows[0].source.rate_bps, Some(1.5e6));
    let text = RADIO.replace("1e6", "[\"1M\", 2e6]").replace("12_000_000", "\"12M\"");
    let plan = parse(&text).unwrap();
    let Load::Radio(radio) = &plan.points[0].load else { panic!("a network") };
    assert_eq!((radio.scenario.medium.rate_bps, radio.run.offered_bps), (12_000_000, Some(1e6)));
}

#[test]
fn coding_keys_that_change_nothing_are_warned_of() {
    let warnings = |coding: &str| -> Vec<String> {
        let plan = parse(&RADIO.replace("transport", &format!("coding = {coding}\ntransport")));
        plan.unwrap().warnings.iter().map(ToString::to_string).collect()
    };
    assert!(warnings("[{ preset = 'paper', block_size = 9 }, { window_size = 9 }]").is_empty());
    assert_eq!(
        warnings("[{ preset = 'paper', goal = 'low-delay' }, { preset = 'default' }]"),
        [
            "plan:8:38: run[0].coding.goal has no effect: the preset is \"paper\"",
            "plan:8:64: run[0].coding.preset = \"default\" is deprecated: use \"block\"",
        ]
    );
    assert_eq!(
        warnings("{ block_size = 9 }"),
        ["plan:8:25: run[0].coding.block_size has no effect: the preset is \"window\""]
    );
    let plan = parse(&RADIO.replace("[\"plain\", \"coded\"]", "'plain'\ncoding = {}")).unwrap();
    assert!(plan.warnings[0].message().contains("is not coded"), "{:?}", plan.warnings);
}

#[test]
fn what_is_left_out_is_a_window_without_a_helper_and_blocks_with_one() {
    let text = RADIO.replace("\"plain\", \"coded\"", "\"coded\", \"coded+helper\"");
    let plan = parse(&text.replace("[0.1, 0.2]", "0.1")).unwrap();
    let presets = plan.points.iter().map(|point| match &point.load {
        Load::Radio(radio) => radio.run.coding.preset,
        Load::Network(_) => None,
    });
    let presets: Vec<_> = presets.map(|preset| preset.map(|p| p.to_string())).collect();
    assert_eq!(presets, [Some("window".to_owned()), Some("block".to_owned())]);
}

#[test]
fn outputs_are_chosen_by_name() {
    let metrics = "output = { metrics = ['goodput_bps', 'flow.*.srtt_s'] }\n";
    let plan = parse(&format!("{metrics}{NETWORK}")).unwrap();
    let names: Vec<_> = plan.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["point", "replication", "seed", "goodput_bps", "flow.0.srtt_s"]);
    let mut measures = Measures::default();
    measures.set_flow(0, "srtt_s", 0.5);
    measures.set("events", 3u64);
    let record = plan.record(0, 4, &measures);
    assert_eq!(record.values, [0u64.into(), 4u64.into(), 3u64.into(), Value::Absent, 0.5.into()]);

    let stop = "stop = { metric = 'throughput_bps', ci95_ratio = 0.05 }\n";
    let plan = parse(&format!("{stop}{metrics}{NETWORK}")).unwrap();
    assert!(plan.columns().iter().any(|column| column.name == "throughput_bps"));
    assert_eq!(plan.replications.max(), 1000);

    let refused = refusal(&format!("output = {{ metrics = ['godput'] }}\n{NETWORK}"));
    assert!(
        refused.starts_with("output.metrics = 'godput': expected one of goodput_bps"),
        "{refused}"
    );
    assert!(refused.contains("flow.*.srtt_s"), "{refused}");
    let refused = refusal(&format!("{}{NETWORK}", stop.replace("throughput", "flow.*.goodput")));
    assert!(refused.contains("expected one metric"), "{refused}");
}

#[test]
fn a_slip_in_a_number_does_not_run_for_a_year() {
    let values = (0..200).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let text = format!("replications = 10000\n{NETWORK}[[sweep]]\nseed = [{values}]");
    assert_eq!(refusal(&text), "2000000 runs, repeats included: expected at most 1000000");
}

/// A mesh of constrained nodes with radios that discover routes.
const MESH: &str = r#"
name = "mesh"
seed = 3
duration_s = 10
until_done = true
[network]
kind = "grid"
columns = 2
rows = 2
spacing_m = 1
row_spacing_m = 2
radio = { mac = "802.15.4", fading = { sigma_db = 2, period_s = 10 } }
routing = { kind = "nst-aodv" }
[[flow]]
from = 0
to = 3
source = { kind = "fixed", packets = 5 }
tcp = { preset = "constrained", variant = "slowstart", timeouts_max = 5 }
"#;

#[test]
fn what_a_mesh_cannot_be_is_said_with_its_place() {
    assert_eq!(parse(MESH).unwrap().points.len(), 1);
    for (from, to, said) in [
        ("row_spacing_m = 2", "row_spacing_m = -2", "network.row_spacing_m = -2: expected metres"),
        ("sigma_db = 2, ", "", "network.radio.fading = "),
        ("period_s = 10", "period_s = 10, k = 1", "expected k and doppler_hz, or sigma_db and"),
        ("period_s = 10", "period_s = 0", "expected k and doppler_hz, or sigma_db and"),
        ("\"nst-aodv\"", "\"nst-aodv\", jitter_ms = -1", "network.routing.jitter_ms = -0.001"),
        ("\"nst-aodv\"", "\"olsr\"", "network.routing.kind = \"olsr\""),
        ("timeouts_max = 5", "timeouts_max = 0", "flow[0].tcp.timeouts_max = 0: expected one"),
        ("packets = 5 }", "packets = 5 }\nprocessing_ms = -1", "flow[0].processing_ms = -1"),
        ("[[flow]]", "route = [{ path = [0, 3] }]\n[[flow]]", "nothing beside [network.routing]"),
    ] {
        assert!(MESH.contains(from), "{from}");
        let told = complaint(&MESH.replace(from, to));
        assert!(told.contains(said), "{told}\nexpected {said}");
    }
    let ideal = MESH.replace(
        "mac = \"802.15.4\", fading = { sigma_db = 2, period_s = 10 }",
        "mac = \"ideal\", rate_bps = 250000, reach_m = 1.5",
    );
    assert!(complaint(&ideal).contains("does not report lost frames"));
}

const COMPARED: &str = "
[stop]
metric = 'goodput_bps'
ci95_half_width = 10_000
against = { 'flow.0.tcp.variant' = 'reno' }
[[sweep]]
network.links.delay_ms = [5, 10]
[[sweep]]
'flow.0.tcp.variant' = ['cubic', 'reno', 'bbr']
";

#[test]
fn a_stop_rule_compares_points_that_are_otherwise_alike() {
    let plan = parse(&format!("{NETWORK}{COMPARED}")).unwrap();
    let bases: Vec<_> = (0..6).map(|point| plan.base(point)).collect();
    assert_eq!(bases, [Some(1), None, Some(1), Some(4), None, Some(4)]);
    let with = |from: &str, to: &str| refusal(&format!("{NETWORK}{}", COMPARED.replace(from, to)));
    let said = with("{ 'flow.0.tcp.variant' = 'reno' }", "{ variant = 'reno' }");
    assert!(said.contains("stop.against = variant: expected parameters that vary"), "{said}");
    let said = with("= 'reno' }", "= 'vegas' }");
    assert!(said.contains("expected values of a point otherwise equal to"), "{said}");
    assert!(said.contains("no point has these values"), "{said}");
    let said = with("ci95_half_width = 10_000", "ci95_half_width = 0");
    assert!(said.contains("stop.ci95_half_width = 0: expected more than 0"), "{said}");
    let said = with("ci95_half_width = 10_000", "");
    assert!(said.contains("stop.ci95_ratio is missing"), "{said}");
    let said = with("['cubic', 'reno', 'bbr']", "['reno']");
    assert!(said.contains("nothing to compare"), "{said}");
}

/// Runs of a radio differ in keys without a column, so pairing by columns alone would be wrong.
#[test]
fn a_stop_rule_refuses_pairs_that_differ_by_what_has_no_column() {
    let with = |against: &str, more: &str| {
        let stop = format!(
            "stop = {{ metric = 'goodput_bps', ci95_ratio = 0.1, against = {{ {against} }} }}"
        );
        format!("{}{more}\n", RADIO.replace("repeats = 2", &stop))
    };
    let bases = |text: &str| -> Vec<_> {
        let plan = parse(text).unwrap();
        (0..plan.points.len()).map(|point| plan.base(point)).collect()
    };
    let plain = "path = 'plain', policy = '-'";
    assert_eq!(bases(&with(plain, "")), [None, None, Some(0), Some(1)]);
    // Two points match.
    let said = refusal(&with(plain, "burst_frames = [2, 10]"));
    assert!(said.contains("in bursts of 2\" and \"plain, udp 1.000 Mbit/s"), "{said}");
    assert!(said.contains("in bursts of 10\" differ by burst_frames, which has no"), "{said}");
    // One point matches, but differs otherwise.
    let coded = "burst_frames = 2\n[[run]]\npath = 'coded'\ntransport = 'udp'\noffered_bps = 1e6\n\
        e3 = [0.1, 0.2]\nduration_s = 2\nburst_frames = 10";
    let text = with(plain, coded).replace("[\"plain\", \"coded\"]", "\"plain\"");
    let said = refusal(&text);
    assert!(said.contains("points that are otherwise equal"), "{said}");
    assert!(said.contains("differ by burst_frames, which has no column"), "{said}");
    // The same table twice.
    let said = refusal(&text.replace("'coded'", "'plain'").replace("= 10", "= 2"));
    assert!(said.contains("are the same"), "{said}");
    // In a sweep it has a column.
    let swept = "[[sweep]]\n'run.0.burst_frames' = [2, 10]";
    let pairs = [None, None, Some(0), Some(1), None, None, Some(4), Some(5)];
    assert_eq!(bases(&with(plain, swept)), pairs);
    let pairs = [None, None, None, None, Some(0), Some(1), Some(2), Some(3)];
    assert_eq!(bases(&with("'run.0.burst_frames' = 2", swept)), pairs);
}

#[test]
fn a_stop_rule_says_which_parameter_has_no_pair() {
    let side_by_side = COMPARED.replace("[[sweep]]\n'flow", "'flow").replace(", 'bbr'", "");
    let said = refusal(&format!("{NETWORK}{side_by_side}"));
    assert!(said.contains(": the nearest, "), "{said}");
    assert!(said.contains("differs by network.links.delay_ms"), "{said}");
}

#[test]
fn what_the_lab_alone_does_is_said_in_the_same_grammar() {
    let text = RADIO.replace("repeats = 2", "repeats = 2\nwarm_up_s = 3");
    let text = text.replacen("[[run]]", "[[run]]\nping_interval_ms = 20", 1);
    let text = format!("{text}[[sweep]]\nmedium.rtt_ms = [4, 8]\n");
    let document = Document::new("plan", text);
    let read = |engine| Plan::read_for(engine, &document, FilePath::new(""));
    let refused = read(Engine::Sim).unwrap_err().to_string();
    assert!(refused.contains("run[0].ping_interval_ms"), "{refused}");
    let plan = read(Engine::Lab).unwrap();
    let of = |point: usize| match &plan.points[point].load {
        Load::Radio(radio) => radio,
        Load::Network(_) => panic!("a radio"),
    };
    assert!(of(0).run.lab.ping_interval.is_some());
    // All runs have this time under load first, unless they set it themselves.
    assert_eq!((of(0).run.lab.warm_up, of(0).warm_up_s), (Duration::from_secs(3), 3.0));
    let swept: Vec<_> = plan.swept(plan.points.len() - 1).collect();
    assert_eq!(swept, [("medium.rtt_ms", &Value::Integer(8))]);
    // The sweep differs from the rows without it.
    let plain = Plan::parse(RADIO, FilePath::new("")).unwrap();
    assert_eq!(plain.swept(0).count(), 0);
}
