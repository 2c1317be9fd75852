use corridor_scenario::expand;

use super::findings::{Kind, delay, headline, rate, ratio};
use super::*;

/// Rows as the lab might make them: plain TCP breaks down, coded TCP does not.
fn lab_rows() -> (Scenario, Vec<Row>) {
    let (scenario, runs) = plan(false, Engine::Lab);
    let make = |run: &Run| {
        let mut row = Row::new(&scenario, run, Engine::Lab);
        let loss = run.erasures.e3;
        let kind = Kind::of(&row).expect("every run of the demo is of a kind");
        let (goodput, p95) = match kind {
            Kind::PlainCubic => (7e6 * (-22.0 * loss).exp(), 0.04 + 8.0 * loss),
            Kind::PlainBbr => (7e6 * (1.0 - 3.2 * loss).max(0.01), 0.05 + 3.0 * loss),
            Kind::CodedPaper => (3.6e6 * (1.0 - loss), 0.25 + loss),
            Kind::CodedDefault => (6.2e6 * (1.0 - 1.3 * loss), 0.06 + 0.3 * loss),
            Kind::Window => (6.5e6 * (1.0 - 1.2 * loss), 0.03 + 0.2 * loss),
            Kind::UdpPlain => (4.6e6, 0.15),
            Kind::UdpCoded => (4.1e6, 0.19),
            Kind::UdpHelper => (5.2e6, 0.16),
        };
        row.goodput_bps = goodput;
        row.delays.delay_p50_s = Some(p95 / 3.0);
        row.delays.delay_p95_s = Some(p95);
        row.air_frames_per_packet = (kind == Kind::UdpPlain).then_some(2.0).or(Some(1.7));
        row
    };
    let rows = runs.iter().map(make).collect();
    (scenario, rows)
}

#[test]
fn the_scenarios_expand() {
    let (_, runs) = plan(false, Engine::Lab);
    assert_eq!(runs.len(), 23);
    let seconds: f64 = runs.iter().map(|run| corridor_lab::time_needed(run).as_secs_f64()).sum();
    assert!(seconds < 250.0, "{seconds} s and connecting, out of 300 s");
    let (_, runs) = plan(true, Engine::Sim);
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run.duration_s == QUICK_DURATION_S));
    let count = |text| expand(&Scenario::parse(text).unwrap()).unwrap().len();
    assert_eq!(count(include_str!("../../scenarios/bench-lab.toml")), 3 * 141);
    assert_eq!(count(include_str!("../../scenarios/bench-sim.toml")), 10 * 99);
}

#[test]
fn a_newcomer_reads_a_finding_first() {
    let (_, mut rows) = lab_rows();
    assert_eq!(
        headline(&rows),
        "At 20 % frame loss, TCP cubic stalls at 86 kbit/s; coded, it carries 4.94 Mbit/s"
    );
    let cubic = |row: &&mut Row| Kind::of(row) == Some(Kind::PlainCubic);
    rows.iter_mut().filter(cubic).for_each(|row| row.goodput_bps = 0.0);
    assert!(headline(&rows).contains("TCP cubic carries nothing"), "{}", headline(&rows));
    rows.iter_mut().filter(cubic).for_each(|row| row.goodput_bps = 1e5);
    let coded = |row: &&mut Row| Kind::of(row) == Some(Kind::Window);
    rows.iter_mut().filter(coded).for_each(|row| row.goodput_bps = 1e4);
    assert!(headline(&rows).contains("did not help"), "{}", headline(&rows));
    rows.retain(|row| row.transport == Transport::Udp);
    assert!(headline(&rows).starts_with("With 50 % of frames lost, "), "{}", headline(&rows));
}

#[test]
fn numbers_have_human_units() {
    assert_eq!(
        [rate(6.812e6), rate(24_300.0), rate(12.0)],
        ["6.81 Mbit/s", "24 kbit/s", "nothing"]
    );
    assert_eq!([delay(Some(0.0142)), delay(Some(1.93)), delay(None)], ["14 ms", "1.9 s", "-"]);
    assert_eq!([ratio(5.0, 4e6), ratio(5.2e6, 4e6), ratio(4e6, 2e4)], ["x 0.0", "x 1.3", "x 200"]);
    assert_eq!(ratio(5e6, 0.0), "-");
}

#[test]
fn the_table_groups_by_loss_and_marks_what_is_doubtful() {
    let (scenario, mut rows) = lab_rows();
    rows[0].distrust("late");
    let mut out = Vec::new();
    table::write(&mut out, &scenario, &rows).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches("TCP bulk transfer").count(), 4, "{text}");
    assert_eq!(text.matches("x 1.0").count(), 5 + 1, "{text}");
    assert_eq!(text.matches("(!)").count(), 2, "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn the_picture_shows_every_kind_and_copes_with_holes() {
    let (scenario, mut rows) = lab_rows();
    let svg = picture::draw(&scenario, &rows);
    for kind in Kind::TCP.into_iter().chain(Kind::UDP) {
        assert!(svg.contains(&format!(">{}<", kind.label())), "{kind:?}");
    }
    rows.iter_mut().for_each(|row| {
        row.delays = corridor_scenario::Delays::default();
        row.goodput_bps = 0.0;
    });
    let svg = picture::draw(&scenario, &rows);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    picture::draw(&scenario, &rows[..1]);
    picture::draw(&scenario, &[]);
}

#[test]
fn files_are_complete_or_an_error() {
    let place = tempfile::tempdir().unwrap();
    let (scenario, rows) = lab_rows();
    let out = place.path().join("deep/out");
    prepare_directory(&out).unwrap();
    write_files(&out, &scenario, &rows).unwrap();
    let text = fs::read_to_string(out.join("demo.json")).unwrap();
    let read: Vec<Row> = serde_json::from_str(&text).unwrap();
    assert_eq!(read.len(), rows.len());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for key in ["path", "policy", "transport", "loss_ratio", "goodput_bps", "delay_p99_s", "seed"] {
        assert!(!json[0][key].is_null() || key == "delay_p99_s", "{key}");
    }
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2);

    fs::write(place.path().join("file"), "").unwrap();
    let failure = prepare_directory(&place.path().join("file/out")).unwrap_err();
    assert!(failure.to_string().starts_with("cannot write "), "{failure}");
}

#[test]
fn what_cannot_be_trusted_is_made_again() {
    let (_, mut rows) = lab_rows();
    let mut row = rows.remove(0);
    assert_eq!(why_again(&Ok(row.clone())), None);
    row.distrust("late");
    row.lateness_p99_s = Some(0.003);
    assert_eq!(why_again(&Ok(row.clone())).as_deref(), Some("late"));
    assert!(is_late(&row));
    assert_eq!(why_again(&Err(LabError::Interrupted.into())), None);
}
