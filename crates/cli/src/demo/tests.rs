use corridor_scenario::{Congestion, expand};

use super::findings::{
    Crossing, Kind, delay, doubt, headline, is_stalled, left_bps, rate, ratio, share,
};
use super::*;

/// Rows as the lab might produce them: plain TCP breaks down, coded TCP does not.
fn lab_rows() -> (Scenario, Vec<Row>) {
    let (scenario, runs) = plan(false, Engine::Lab);
    let make = |run: &Run| {
        let mut row = Row::new(&scenario, run, Engine::Lab);
        let loss = run.erasures.e3;
        let kind = Kind::of(&row).expect("every run of the demo is of a kind");
        let (goodput, p95) = match kind {
            Kind { transport: Transport::Udp, crossing } => match crossing {
                Crossing::Plain => (1e6, 0.004),
                Crossing::Helper => (2e6, 0.03),
                _ => (2e6, 0.06),
            },
            Kind { crossing, .. } => match crossing {
                Crossing::Plain => (7e6 * (-22.0 * loss).exp(), 0.04 + 8.0 * loss),
                Crossing::PlainBbr => (7e6 * (1.0 - 3.2 * loss).max(0.01), 0.05 + 3.0 * loss),
                Crossing::Paper => (3.6e6 * (1.0 - loss), 0.25 + loss),
                Crossing::Window => (6.5e6 * (1.0 - 1.2 * loss), 0.03 + 0.2 * loss),
                Crossing::Blocks | Crossing::Helper => (6.2e6 * (1.0 - 1.3 * loss), 0.06 + loss),
            },
        };
        row.goodput_bps = goodput;
        row.delays.delay_p50_s = Some(p95 / 3.0);
        row.delays.delay_p95_s = Some(p95);
        if kind.transport == Transport::Udp {
            let is_plain = kind.crossing == Crossing::Plain;
            row.air_frames_per_packet = Some(if is_plain { 2.0 } else { 1.7 });
            row.packets_sent = Some(1_000);
            row.packets_received = Some(if is_plain { 502 } else { 1_000 });
        }
        row
    };
    let rows = runs.iter().map(make).collect();
    (scenario, rows)
}

#[test]
fn the_scenarios_expand() {
    let (_, runs) = plan(false, Engine::Lab);
    assert_eq!(runs.len(), 24);
    let seconds: f64 = runs.iter().map(|run| corridor_lab::time_needed(run).as_secs_f64()).sum();
    assert!(seconds < 240.0, "{seconds} s and connecting, one by one");
    // Pending runs are listed with their preset.
    let titles: Vec<String> = runs.iter().map(Run::title).collect();
    for preset in ["coded paper,", "coded block,", "coded window,", "coded+helper block,"] {
        assert!(titles.iter().any(|title| title.starts_with(preset)), "{titles:?}");
    }
    let (_, runs) = plan(true, Engine::Sim);
    assert_eq!(runs.len(), 4);
    assert!(runs.iter().all(|run| run.duration_s == QUICK_DURATION_S));
    let count = |text| expand(&Scenario::parse(text).unwrap()).unwrap().len();
    assert_eq!(count(include_str!("../../scenarios/bench-lab.toml")), 3 * 141);
    assert_eq!(count(include_str!("../../scenarios/bench-sim.toml")), 10 * 99);
}

#[test]
fn a_newcomer_reads_a_finding_first_and_what_is_not_valid() {
    let (scenario, mut rows) = lab_rows();
    let said = |rows: &[Row]| headline(&scenario, rows);
    let finding =
        "At 20 % frame loss, TCP cubic stalls at 86 kbit/s; coded, it carries 4.94 Mbit/s";
    assert_eq!(said(&rows), finding);
    let bbr = rows.iter().position(|row| row.congestion == Some(Congestion::Bbr)).unwrap();
    rows[bbr].distrust("late");
    assert_eq!(said(&rows), format!("{finding} (1 of 24 points is not valid)"));
    let of =
        |kind: Kind| move |row: &&mut Row| Kind::of(row) == Some(kind) && row.loss_ratio == 0.2;
    let set = |rows: &mut Vec<Row>, kind, bps| {
        rows.iter_mut().filter(of(kind)).for_each(|row| row.goodput_bps = bps);
    };
    set(&mut rows, Kind::PLAIN, 0.0);
    assert!(said(&rows).contains("TCP cubic carries nothing"), "{}", said(&rows));
    set(&mut rows, Kind::PLAIN, 2e6);
    assert!(said(&rows).contains("4.94 Mbit/s coded and 2.00 Mbit/s plain"), "{}", said(&rows));
    set(&mut rows, Kind::WINDOW, 1e4);
    assert!(said(&rows).contains("did not help"), "{}", said(&rows));
    rows.iter_mut().filter(of(Kind::WINDOW)).for_each(|row| row.distrust("late"));
    assert_eq!(
        said(&rows),
        "At 20 % frame loss, the machine spoilt the comparison (2 of 24 points are not valid)"
    );
    rows.retain(|row| row.transport == Transport::Udp);
    assert_eq!(
        said(&rows),
        "With 50 % of frames lost, 49.8 % of the packets never arrive; coded, none"
    );
}

#[test]
fn a_stalled_sender_has_no_delay_to_show() {
    let (scenario, rows) = lab_rows();
    // 1448 of 1514 bytes, in 400 us and 8 * 1514 / 12 us.
    let full = 8.0 * 1448.0 / (400e-6 + 8.0 * 1514.0 / 12e6);
    assert!((left_bps(&scenario, 0.25) - 0.75 * full).abs() < 1e-6);
    let stalled: Vec<&Row> = rows.iter().filter(|row| is_stalled(&scenario, row)).collect();
    assert!(!stalled.is_empty());
    assert!(stalled.iter().all(|row| row.path == corridor_scenario::Path::Plain));
    let mut out = Vec::new();
    table::write(&mut out, &scenario, &rows).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches(" stalled ").count(), stalled.len(), "{text}");
    let svg = picture::draw(&scenario, &rows);
    assert!(svg.contains(", then stalled"), "{svg}");
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
    assert_eq!([share(0.0), share(0.000_3), share(0.502)], ["none", "0.03 %", "50.2 %"]);
    assert_eq!(doubt(&[]), None);
}

#[test]
fn the_table_groups_by_loss_and_marks_what_is_doubtful() {
    let (scenario, mut rows) = lab_rows();
    rows[0].distrust("late");
    let mut out = Vec::new();
    table::write(&mut out, &scenario, &rows).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches("TCP bulk transfer").count(), 4, "{text}");
    assert_eq!(text.matches("x 1.0").count(), 5, "{text}");
    assert!(text.contains("49.8 %") && text.contains("5.75 Mbit/s of the radio"), "{text}");
    assert_eq!(text.matches("  not valid").count(), 1, "{text}");
    assert_eq!(text.lines().nth(1), Some("(1 of 24 points is not valid)"));
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn the_picture_shows_every_kind_and_copes_with_holes() {
    let (scenario, mut rows) = lab_rows();
    let svg = picture::draw(&scenario, &rows);
    for kind in Kind::TCP.into_iter().chain(Kind::UDP) {
        assert!(svg.contains(&format!(">{}<", kind.label())), "{kind:?}");
    }
    assert!(svg.contains(">what the losses leave<") && svg.contains("packets that never arrived"));
    // A ring, or the edge of a bar, has no filling.
    let hollow = |svg: &str| svg.matches("fill=\"#ffffff\" stroke=").count();
    assert_eq!(hollow(&svg), 0);
    let (tcp, udp) = (5, rows.len() - 1);
    rows[tcp].distrust("late");
    rows[udp].distrust("late");
    let svg = picture::draw(&scenario, &rows);
    // One in each TCP panel, one in each UDP metric.
    assert_eq!(hollow(&svg), 2 + 4, "{svg}");
    assert!(svg.contains("(2 of 24 points are not valid)") && svg.contains("drawn hollow"));
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
    assert_eq!(why_again(&Ok(row)).as_deref(), Some("late"));
    assert_eq!(why_again(&Err(LabError::Interrupted.into())), None);
}

#[test]
fn rows_that_are_not_valid_in_the_end_make_the_exit_status_say_so() {
    let (_, mut rows) = lab_rows();
    rows[3].distrust("late");
    let doubt = doubt(&rows).unwrap();
    let failure = Failure::Doubtful { doubt, out: "out/demo.json".into() };
    assert!(failure.to_string().starts_with("1 of 24 points is not valid after"), "{failure}");
    assert_eq!(format!("{:?}", failure.exit_code()), format!("{:?}", ExitCode::FAILURE));
}
