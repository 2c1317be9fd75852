use super::*;

const HEAD: &str = r#"
name = "t"
seed = 7
repeats = 2
[medium]
duplex = "half"
rate_bps = 12_000_000
overhead_us = 400
rtt_ms = 4
queue_frames = 50
"#;

const RUN: &str = r#"
[[run]]
path = "kernel"
transport = "tcp"
e3 = 0.1
duration_s = 5
"#;

fn expanded(run: &str) -> Result<Vec<Run>, ScenarioError> {
    expand(&Scenario::parse(&format!("{HEAD}{run}"))?)
}

fn refusal(run: &str) -> String {
    expanded(run).expect_err("is not valid").to_string()
}

/// `RUN` with one line replaced or added.
fn with(line: &str) -> String {
    let key = line.split('=').next().unwrap_or_default().trim();
    let kept = RUN.lines().filter(|kept| kept.split('=').next().unwrap_or_default().trim() != key);
    let mut lines: Vec<_> = kept.collect();
    lines.push(line);
    lines.join("\n")
}

#[test]
fn lists_multiply_in_order_and_repeats_interleave() {
    let runs = expanded(
        r#"
[[run]]
path = ["kernel", "coded"]
transport = "tcp"
congestion = ["cubic", "bbr"]
e3 = [0, 0.1]
duration_s = 5
coding = [{ preset = "paper" }, {}]
[[run]]
path = "plain"
transport = "udp"
offered_bps = [1e6, 2000000]
e3 = 0.3
duration_s = 1
"#,
    )
    .unwrap();
    // kernel: 2 x 2; coded: 2 x 2 x 2; plain: 2.
    assert_eq!(runs.len(), 2 * 14);
    assert_eq!(
        runs.iter().map(|run| run.point).collect::<Vec<_>>(),
        [(0..14).collect::<Vec<_>>(), (0..14).collect::<Vec<_>>()].concat()
    );
    assert!(runs[..14].iter().all(|run| run.replication == 0));
    assert!(runs[14..].iter().all(|run| run.replication == 1));
    let first = |index: usize| (runs[index].path, runs[index].congestion, runs[index].erasures.e3);
    assert_eq!(first(0), (Path::Kernel, Some(Congestion::Cubic), 0.0));
    assert_eq!(first(1), (Path::Kernel, Some(Congestion::Cubic), 0.1));
    assert_eq!(first(2), (Path::Kernel, Some(Congestion::Bbr), 0.0));
    assert_eq!(first(4), (Path::Coded, Some(Congestion::Cubic), 0.0));
    assert_ne!(runs[4].coding, runs[5].coding);
    assert_eq!((runs[12].congestion, runs[12].offered_bps), (None, Some(1e6)));
    assert_eq!(runs[13].offered_bps, Some(2e6));
}

#[test]
fn tcp_is_cubic_unless_said_otherwise() {
    assert_eq!(expanded(RUN).unwrap()[0].congestion, Some(Congestion::Cubic));
}

#[test]
fn the_medium_has_links_alike_in_both_directions() {
    let text = format!("{HEAD}{}", with("path = \"coded+helper\"")) + "\ne2 = 0.25";
    let scenario = Scenario::parse(&text).unwrap();
    let runs = expand(&scenario).unwrap();
    let medium = medium_config(&scenario, &runs[1], 9);
    assert!(medium.check().is_ok());
    assert_eq!((medium.stations, medium.seed, medium.replication), (3, 9, 1));
    assert_eq!(medium.overhead, Duration::from_micros(400));
    assert_eq!(medium.propagation, Duration::from_millis(2));
    let ratio = |from, to| {
        let link = medium.links.iter().find(|link| (link.from, link.to) == (from, to));
        link.map(|link| link.erasure.loss_ratio())
    };
    assert_eq!((ratio(SOURCE, DESTINATION), ratio(DESTINATION, SOURCE)), (Some(0.1), Some(0.1)));
    assert_eq!((ratio(SOURCE, HELPER), ratio(HELPER, SOURCE)), (Some(0.05), Some(0.05)));
    assert_eq!((ratio(HELPER, DESTINATION), ratio(DESTINATION, HELPER)), (Some(0.25), Some(0.25)));

    let runs = expand(&Scenario::parse(&format!("{HEAD}{RUN}")).unwrap()).unwrap();
    let medium = medium_config(&scenario, &runs[0], 9);
    assert_eq!((medium.stations, medium.links.len()), (2, 2));
}

#[test]
fn a_link_may_lose_otherwise_on_its_way_back() {
    let runs = |line: &str| {
        let scenario = Scenario::parse(&format!("{HEAD}{}", with(line))).unwrap();
        expand(&scenario).map(|runs| (runs[0].clone(), scenario))
    };
    let (run, scenario) = runs("e3_back = 0.3").unwrap();
    let medium = medium_config(&scenario, &run, 9);
    let ratios: Vec<_> = medium.links.iter().map(|link| link.erasure.loss_ratio()).collect();
    assert_eq!((ratios, medium.links[1].from), (vec![0.1, 0.3], DESTINATION));
    assert!(run.title().ends_with("e3 10.0 % and 30.0 %"), "{}", run.title());
    let expected = "run[0].e3_back = 1.5: expected an erasure ratio from 0 to 1";
    assert_eq!(runs("e3_back = 1.5").unwrap_err().to_string(), expected);
}

#[test]
fn hops_share_the_losses_and_each_has_two_ends() {
    let head = HEAD.replace("queue_frames = 50", "queue_frames = 50\nhops = 4");
    let scenario = Scenario::parse(&format!("{head}{RUN}")).unwrap();
    let medium = medium_config(&scenario, &expand(&scenario).unwrap()[0], 9);
    assert!(medium.check().is_ok());
    assert_eq!((medium.stations, medium.links.len()), (8, 8));
    assert!(medium.links.iter().all(|link| link.from ^ 1 == link.to));
    let forward = medium.links.iter().filter(|link| link.from < link.to);
    let kept: f64 = forward.map(|link| 1.0 - link.erasure.loss_ratio()).product();
    assert!((kept - 0.9).abs() < 1e-12, "{kept}");

    let refused = |line: &str| expand(&Scenario::parse(&format!("{head}{}", with(line))).unwrap());
    let expected = "run[0].underlay = ethernet: expected udp where medium.hops is 4";
    assert_eq!(refused("path = \"plain\"").unwrap_err().to_string(), expected);
    assert!(refused("path = \"coded+helper\"").is_err());
    let text = format!("{HEAD}{RUN}").replace("queue_frames = 50", "queue_frames = 50\nhops = 9");
    let error = expand(&Scenario::parse(&text).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "medium.hops = 9: expected 1 to 8");
}

#[test]
fn a_refused_value_is_named_with_what_is_expected() {
    let cases = [
        ("e3 = 1.5", "run[0].e3 = 1.5: expected an erasure ratio from 0 to 1"),
        ("e3 = [0.1, nan]", "run[0].e3 = NaN: expected an erasure ratio from 0 to 1"),
        ("e1 = -1", "run[0].e1 = -1: expected an erasure ratio from 0 to 1"),
        ("e3 = []", "run[0].e3 = []: expected one value or more"),
        ("duration_s = 0", "run[0].duration_s = 0: expected more than 0, at most 3600 s"),
        ("datagram_bytes = 9", "run[0].datagram_bytes = 9: expected nothing: TCP has no datagrams"),
        ("offered_bps = 0", "run[0].offered_bps = 0: expected 1 to 100000000000 bit/s"),
        (
            "transport = \"udp\"",
            "run[0].offered_bps is missing: expected the bits of payload per second that UDP sends",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(refusal(&with(line)), expected);
    }
    let helper = with("path = [\"coded\", \"coded+helper\"]") + "\nunderlay = \"udp\"";
    let expected = "run[0].underlay = udp: expected ethernet: over UDP a helper overhears nothing";
    assert_eq!(refusal(&helper), expected);
    let coded = with("path = \"coded\"") + "\ncoding = { block_size = 0 }";
    let refused = refusal(&coded);
    assert!(refused.starts_with("run[0].coding.block_size = 0: expected"), "{refused}");
}

#[test]
fn the_usual_mistakes_have_a_place_and_what_was_expected() {
    let last = HEAD.lines().count() + RUN.lines().count();
    let said = |line: &str| {
        let document = corridor_document::Document::new("s.toml", format!("{HEAD}{}", with(line)));
        let scenario = Scenario::read(&document);
        let runs = scenario.and_then(|s| expand(&s).map_err(|error| error.at(&document)));
        runs.expect_err("is not valid").to_string()
    };
    for (line, expected) in [
        (
            "e3 = \"much\"",
            ":6: run.e3 = \"much\": expected a number or a list of values, each a number",
        ),
        ("e3 = 1.50", ":6: run[0].e3 = 1.5: expected an erasure ratio from 0 to 1"),
        (
            "path = \"kernle\"",
            ":8: run.path = \"kernle\": expected \"kernel\", \"plain\", \"coded\", \"coded+helper\" or \"relay\" (did \
             you mean \"kernel\"?)",
        ),
        (
            "underlay = \"udb\"",
            ":12: run.underlay = \"udb\": expected \"ethernet\" or \"udp\" (did you mean \"udp\"?)",
        ),
    ] {
        let line_number = if line.starts_with("underlay") { last + 1 } else { last };
        assert_eq!(said(line), format!("s.toml:{line_number}{expected}"));
    }
    let unknown = said("coding = { blocksize = 3 }");
    assert!(
        unknown.ends_with("`blocksize` is not known in [run.coding] (did you mean `block_size`?)"),
        "{unknown}"
    );
    let unknown = said("colour = 1");
    assert!(unknown.contains("`colour` is not known in [run]"), "{unknown}");
    let coding = said("path = \"coded\"\ncoding = { block_size = 0 }");
    assert!(
        coding.ends_with("run[0].coding.block_size = 0: expected 1 to 1024 symbols"),
        "{coding}"
    );
}

#[test]
fn a_medium_out_of_range_is_refused() {
    for (from, to, field) in [
        ("rate_bps = 12_000_000", "rate_bps = 0", "medium.rate_bps"),
        ("rtt_ms = 4", "rtt_ms = -4", "medium.rtt_ms"),
        ("overhead_us = 400", "overhead_us = inf", "medium.overhead_us"),
        ("queue_frames = 50", "queue_frames = 0", "medium.queue_frames"),
        ("repeats = 2", "repeats = 0", "repeats"),
    ] {
        let text = format!("{HEAD}{RUN}").replace(from, to);
        let error = expand(&Scenario::parse(&text).unwrap()).unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
}

#[test]
fn conditions_of_the_lab_are_read_and_multiplied() {
    let lines = "e3 = [0, 0.1]\nburst_frames = [5, 20]\necn = [false, true]\nwarm_up_s = 10\n\
                 ping_interval_ms = 20\nbeside = 'cubic'";
    let runs = expanded(&format!("{}\n{lines}", with("e3 = 0").replace("\ne3 = 0", ""))).unwrap();
    assert_eq!(runs.len(), 2 * 2 * 2 * 2);
    let conditions: Vec<_> =
        runs[..4].iter().map(|run| (run.erasures.e3, run.burst_frames, run.lab.ecn)).collect();
    let expected = [(0.0, Some(5.0), false), (0.0, Some(5.0), true), (0.0, Some(20.0), false)];
    assert_eq!(conditions[..3], expected);
    let lab = &runs[0].lab;
    assert_eq!(lab.warm_up, Duration::from_secs(10));
    assert_eq!(lab.ping_interval, Some(Duration::from_millis(20)));
    assert_eq!(lab.beside, Some(Congestion::Cubic));

    let scenario = Scenario::parse(&format!("{HEAD}{}", with("burst_frames = 5"))).unwrap();
    let run = expand(&scenario).unwrap().remove(0);
    let bursts = GilbertElliott::simple(0.1, 5.0);
    let medium = medium_config(&scenario, &run, 1);
    assert!(medium.links.iter().all(|link| link.erasure == ErasureConfig::GilbertElliott(bursts)));
}

#[test]
fn conditions_of_the_lab_that_cannot_be_are_refused() {
    for (line, expected) in [
        ("burst_frames = 0.5", "run[0].burst_frames = 0.5: expected 1 frame or more"),
        ("ping_interval_ms = 0", "run[0].ping_interval_ms = 0: expected 1 to 60000 ms"),
        ("deadline_ms = 50", "run[0].deadline_ms = 50: expected nothing: TCP delivers late"),
        ("warm_up_s = -1", "run[0].warm_up_s = -1: expected 0 to 600 s"),
        ("wire = 'veth'", "run[0].wire = veth: expected radio, or e3 = 0"),
        ("ecn = []", "run[0].ecn = []: expected one value or more"),
    ] {
        let said = refusal(&with(line));
        assert!(said.starts_with(expected), "{line}: {said}");
    }
    let coded = with("path = 'coded'");
    let said = refusal(&format!("{coded}\nbeside = 'cubic'"));
    assert!(said.contains("expected nothing, or underlay = \"udp\""), "{said}");
    assert!(expanded(&format!("{coded}\nbeside = 'cubic'\nunderlay = 'udp'")).is_ok());
    let helper = coded.replace("'coded'", "'coded+helper'");
    assert!(refusal(&format!("{helper}\nwire = 'veth'")).contains("a helper overhears nothing"));
}

#[test]
fn relays_stand_in_a_row_and_hear_the_next_ones() {
    let head = HEAD.replace("queue_frames = 50", "queue_frames = 50\nrelays = 2");
    let relay = "path = 'relay'\nrelay = [{ preset = 'plain' }, { preset = 'paper', hold_ms = 5 }]";
    let text = format!("{head}{}\n{relay}", with("e3 = 0.19").replace("path = \"kernel\"\n", ""));
    let scenario = Scenario::parse(&text).unwrap();
    let runs = expand(&scenario).unwrap();
    assert_eq!(runs.len(), 2 * 2);
    let policies: Vec<_> = runs[..2].iter().map(Run::policy).collect();
    assert_eq!(policies, ["plain", "paper hold_ms=5.0"]);
    assert_eq!(runs[0].chain(), [SOURCE, RELAY, RELAY + 1, DESTINATION]);
    assert_eq!(runs[0].stations(), 4);
    let medium = medium_config(&scenario, &runs[0], 9);
    assert!(medium.check().is_ok());
    let mut links: Vec<_> = medium.links.iter().map(|link| (link.from, link.to)).collect();
    links.sort_unstable();
    assert_eq!(links, [(0, 2), (1, 3), (2, 0), (2, 3), (3, 1), (3, 2)]);
    let lost = medium.links[0].erasure.loss_ratio();
    assert!((1.0 - libm::pow(1.0 - lost, 3.0) - 0.19).abs() < 1e-12, "{lost}");

    let said = |from: &str, to: &str| {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        expand(&Scenario::parse(&changed).unwrap()).unwrap_err().to_string()
    };
    assert_eq!(said("relays = 2", "relays = 7"), "medium.relays = 7: expected 1 to 6");
    assert!(said("relays = 2", "relays = 2\nhops = 2").contains("medium.hops"));
    assert!(said("hold_ms = 5", "hold_ms = -5").starts_with("run[0].relay.hold_ms = -5"));
    assert!(said("'relay'", "'relay'\nunderlay = 'udp'").contains("a relay overhears nothing"));
    assert!(said("'relay'", "'relay'\nwire = 'veth'").contains("expected radio"));
    assert!(said("path = 'relay'", "path = 'plain'").contains("nothing without path"));
}
