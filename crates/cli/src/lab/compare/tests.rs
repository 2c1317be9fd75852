use corridor_proto::Preset;
use corridor_scenario::Congestion;

use super::*;

const SCENARIO: &str = "name = 't'\nseed = 1\nrepeats = 2\n[medium]\nduplex = 'full'\n\
    rate_bps = 12000000\nrtt_ms = 4\nqueue_frames = 50\n[[run]]\npath = 'kernel'\n\
    transport = 'tcp'\ne3 = [0.1, 0.2]\necn = [false, true]\nduration_s = 1\n";

fn arguments(scenario: &str, only: &[&str], tunnels: &[&str]) -> (tempfile::TempDir, CompareArgs) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scenario.toml");
    fs::write(&path, scenario).unwrap();
    let args = CompareArgs {
        scenarios: vec![path],
        tunnels: tunnels.iter().map(|tunnel| Tunnel::parse(tunnel).unwrap()).collect(),
        only: only.iter().map(|&pattern| pattern.to_owned()).collect(),
        json: false,
        out: None,
        repeats: None,
    };
    (directory, args)
}

fn contest_of(scenario: &str, only: &[&str], tunnels: &[&str]) -> Contest {
    let (_directory, args) = arguments(scenario, only, tunnels);
    contest(&args).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Rows in which every run has its index as goodput in Mbit/s.
fn rows(contest: &Contest) -> Vec<Compared> {
    let row = |(index, entry): (usize, &Entry)| {
        let scenario = &contest.scenarios[entry.scenario];
        let mut row = Row::new(scenario, &entry.run, Engine::Lab);
        row.goodput_bps = 1e6 * (index + 1) as f64;
        row.delays.delay_p95_s = Some(0.01 * (index + 1) as f64);
        Compared::new(contest, entry, row)
    };
    contest.entries.iter().enumerate().map(row).collect()
}

fn names(contest: &Contest) -> Vec<&str> {
    let name = |entry: &Entry| contest.contenders[entry.contender].name.as_str();
    contest.entries.iter().map(name).collect()
}

#[test]
fn every_way_meets_every_condition_in_turns() {
    let contest = contest_of(SCENARIO, &[], &["mine=run {tun}"]);
    let ways = ["kernel cubic", "kernel bbr", "block", "window", "mine"];
    // Two references without losses (ECN off and on), four conditions, twice.
    let names = names(&contest);
    assert_eq!(names.len(), 2 * (2 + 4 * ways.len()));
    assert_eq!(names[..2], ["kernel cubic", "kernel cubic"]);
    assert_eq!(names[2..7], ways);
    let (first, second) = contest.entries.split_at(contest.entries.len() / 2);
    for (first, second) in first.iter().zip(second) {
        assert_eq!((first.run.replication, second.run.replication), (0, 1));
        let again = Run { replication: 0, ..second.run.clone() };
        assert_eq!((first.contender, &first.run), (second.contender, &again));
    }
    // All runs under one condition have the same losses.
    for entry in &first[2..7] {
        assert_eq!((entry.run.erasures.e3, entry.run.lab.ecn), (0.1, false));
    }
    assert!((first[7].run.lab.ecn, first[12].run.erasures.e3) == (true, 0.2));
    assert_eq!(first[5].run.coding.preset, Some(Preset::Window));
    assert_eq!(first[3].run.congestion, Some(Congestion::Bbr));
}

#[test]
fn shares_are_counted_from_what_the_kernel_does_without_losses() {
    let scenario = SCENARIO.replace("[0.1, 0.2]", "[0, 0.2]").replace("[false, true]", "true");
    let contest = contest_of(&scenario.replace("repeats = 2", "repeats = 1"), &[], &[]);
    let lines = table::summarise(&rows(&contest));
    // Cubic, bbr, block and window without losses, and the same at 20 %.
    assert_eq!(lines.len(), 8);
    assert_eq!(lines[0].share, Some(1.0));
    assert_eq!(lines[3].share, Some(4.0));
    assert!((lines[7].share.unwrap() - 8.0 / 0.8).abs() < 1e-9);
    let only = contest_of(&scenario, &["window"], &[]);
    assert_eq!(names(&only)[..3], ["kernel cubic", "window", "window"]);
    assert_eq!(only.entries[0].run.erasures.e3, 0.0);
    let (_directory, args) = arguments(&scenario, &["nobody"], &[]);
    assert!(contest::contest(&args).unwrap_err().to_string().contains("nobody"));
}

#[test]
fn codings_of_the_scenario_replace_the_presets() {
    let scenario = SCENARIO.to_owned()
        + "coding = [{ preset = 'window' }, { preset = 'window', window_size = 64 }]\n";
    let contest = contest_of(&scenario, &["window"], &[]);
    assert_eq!(names(&contest)[2..4], ["window", "window window_size=64"]);
}

#[test]
fn table_and_picture_name_every_way_and_condition() {
    let contest = contest_of(SCENARIO, &[], &["mine=run {tun}"]);
    let mut rows = rows(&contest);
    rows[0].row.distrust("late");
    let lines = table::summarise(&rows);
    let mut out = Vec::new();
    table::write(&mut out, &lines).unwrap();
    let text = String::from_utf8(out).unwrap();
    for words in ["TCP, 10 % of frames lost", "TCP with ECN, 20 % of frames lost", " 1/2\n"] {
        assert!(text.contains(words), "{words:?} in\n{text}");
    }
    assert!(!text.contains("ping p95"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let svg = picture::draw(&lines);
    for contender in &contest.contenders {
        assert!(svg.contains(&format!(">{}<", contender.name)), "{}", contender.name);
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    assert!(picture::draw(&[]).ends_with("</svg>\n"));
}

#[test]
fn scenarios_take_turns_and_shares_are_counted_within_each() {
    let near = SCENARIO.replace("[0.1, 0.2]", "0.1").replace("[false, true]", "false");
    let far = near.replace("rtt_ms = 4", "rtt_ms = 100").replace("repeats = 2", "repeats = 1");
    let (directory, mut args) = arguments(&near, &["window"], &[]);
    let path = directory.path().join("far.toml");
    fs::write(&path, far).unwrap();
    args.scenarios.push(path);
    let contest = contest(&args).unwrap();
    // A reference and window mode in each; the second scenario is not repeated.
    let order: Vec<_> =
        contest.entries.iter().map(|entry| (entry.scenario, entry.run.point)).collect();
    assert_eq!(order, [(0, 0), (0, 1), (1, 2), (1, 3), (0, 0), (0, 1)]);
    let lines = table::summarise(&rows(&contest));
    let shares: Vec<_> = lines.iter().map(|line| line.share.unwrap()).collect();
    for (share, expected) in shares.iter().zip([1.0, 4.0 / 3.0 / 0.9, 1.0, 4.0 / 3.0 / 0.9]) {
        assert!((share - expected).abs() < 1e-9, "{shares:?}");
    }
    let mut out = Vec::new();
    table::write(&mut out, &lines).unwrap();
    let text = String::from_utf8(out).unwrap();
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in\n{text}"));
    assert!(place("RTT 4 ms") < place("RTT 100 ms"), "{text}");
    let svg = picture::draw(&lines);
    assert!(svg.contains("RTT 100 ms") && svg.contains("what the link lets through"), "{svg}");
}

#[test]
fn a_way_that_failed_is_shown_without_figures() {
    let contest = contest_of(SCENARIO, &[], &["mine=run {tun}"]);
    let mut rows = rows(&contest);
    let fail =
        |index: usize| Compared::failed(&contest, &contest.entries[index], "no tunnel".to_owned());
    let (first, second) = (6, 6 + contest.entries.len() / 2);
    assert_eq!((&*rows[first].way, &*rows[second].way), ("mine", "mine"));
    rows[first] = fail(first);
    let of_mine = |rows: &[Compared]| {
        let lines = table::summarise(rows);
        lines.into_iter().find(|line| line.way == "mine").unwrap()
    };
    let line = of_mine(&rows);
    assert_eq!((line.failed, line.valid, line.runs), (1, 1, 2));
    assert_eq!(line.goodput_bps, Some(rows[second].row.goodput_bps));
    rows[second] = fail(second);
    let line = of_mine(&rows);
    assert_eq!((line.failed, line.goodput_bps, line.share), (2, None, None));
    let mut out = Vec::new();
    table::write(&mut out, &[line]).unwrap();
    assert!(String::from_utf8(out).unwrap().contains(" 0/2  2 failed\n"));
    let json = serde_json::to_value(&rows[first]).unwrap();
    assert_eq!((&json["failure"], &json["tunnel"]), (&"no tunnel".into(), &"mine".into()));
}

#[test]
fn a_command_that_failed_three_times_is_not_tried_again_and_others_are() {
    let mut patience = Patience::new(2);
    for _ in 0..=FAILED_IN_A_ROW_MAX {
        assert!(!patience.is_over(0));
        patience.failed(0);
    }
    assert!(patience.is_over(0) && !patience.is_over(1));
    patience.succeeded(0);
    assert!(!patience.is_over(0));
    assert_eq!(patience.failed, FAILED_IN_A_ROW_MAX + 1);
}

#[test]
fn the_scenarios_that_are_here_make_a_comparison() {
    let (_directory, mut args) = arguments(SCENARIO, &[], &[]);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    args.scenarios = ["tunnel.toml", "tunnel-far.toml"].map(|name| here.join(name)).to_vec();
    let contest = contest(&args).unwrap();
    // Four contenders, four loss ratios, two round-trip times, three times.
    assert_eq!(contest.entries.len(), 4 * 4 * 2 * 3);
}
