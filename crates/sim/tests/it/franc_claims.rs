//! Checks every claim of the FRANC paper in `data/franc_claims.json` against simulated rows: the
//! runs of `/experiments/franc-fig*`, repeated twice instead of ten times. The experiments'
//! `published.json` says what is measured for each claim, and which values count as fulfilling it.
//! Where a claim does not hold, that file says why or names the erratum, and the test fails if the
//! claim does hold after all. `corridor-study reproduce` runs everything.
//!
//! `cargo test -p corridor-sim --test it -- franc_claims --nocapture --test-threads 1` prints our
//! values beside the published ones.

use std::sync::OnceLock;

use crate::experiments::{
    Claim, FIGURES, PLANS, Published, Rows, check, is, plan, published, rows,
};
use corridor_proto::{CodingParams, ErasureRatios, Preset, budget};
use corridor_scenario::{Congestion, Path, Row, Run, expand};

const E3: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// Claims about parameters, which our presets and plans use.
const PARAMETERS: [&str; 8] = [
    "FRANC-001",
    "FRANC-002",
    "FRANC-003",
    "FRANC-004",
    "FRANC-005",
    "FRANC-006",
    "FRANC-007",
    "FRANC-008",
];

fn claims() -> Vec<Claim> {
    let json: serde_json::Value =
        serde_json::from_str(include_str!("../data/franc_claims.json")).unwrap();
    serde_json::from_value(json["claims"].clone()).unwrap()
}

#[test]
fn every_claim_has_its_place() {
    let mut placed: Vec<String> = PARAMETERS.map(String::from).into();
    let all = FIGURES.into_iter().flat_map(published);
    for published in all.filter(Published::is_whole) {
        let copy = claims().into_iter().find(|claim| claim.id == published.claim.id);
        assert_eq!(copy, Some(published.claim.clone()));
        assert!(PARAMETERS.contains(&&*published.claim.id) || published.measure.is_some());
        placed.push(published.claim.id);
    }
    placed.sort();
    placed.dedup();
    let all: Vec<String> = claims().into_iter().map(|claim| claim.id).collect();
    assert_eq!(placed, all);
    assert_eq!(all.len(), 27);
}

#[test]
fn parameters_are_those_of_the_presets() {
    let value = |id: &str| {
        let claim = claims().into_iter().find(|claim| claim.id == id).unwrap();
        println!("{id} | {}: {} {}", claim.claim, claim.value, claim.unit);
        claim.value
    };
    let paper = CodingParams::paper();
    assert_eq!(value("FRANC-001"), u64::from(paper.block_size));
    assert_eq!(value("FRANC-002"), u64::from(paper.symbol_size));
    assert_eq!(value("FRANC-003"), paper.encoder_timeout.as_millis() as u64);
    assert_eq!(value("FRANC-004"), (100.0 * (paper.overshoot - 1.0)).round() as u64);
    let of_tests = [value("FRANC-005"), value("FRANC-006")];
    for figure in PLANS {
        let plan = plan(figure);
        let runs = expand(&plan).unwrap();
        assert!(runs.iter().all(|run| run.duration_s == 20.0) && plan.repeats == 10);
        assert_eq!(of_tests[0], "20 x 10");
        assert_eq!(of_tests[1], plan.medium.rate_bps / 1_000_000);
    }
    let udp = expand(&plan(11)).unwrap();
    let offered = udp[0].offered_bps.unwrap() / 1e6;
    assert_eq!(value("FRANC-007"), offered as u64);
    // (30, 3) is a misprint: docs/errata.md, 1.
    assert_eq!(value("FRANC-008"), "(10,50),(30,3),(50,10)");
    let is_helped = |run: &&Run| run.path == Path::CodedHelper && run.replication == 0;
    let helped = udp.iter().filter(is_helped);
    let mut sets: Vec<_> = helped.map(|run| (run.erasures.e1, run.erasures.e2)).collect();
    sets.dedup();
    assert_eq!(sets, [(0.1, 0.5), (0.3, 0.3), (0.5, 0.1)]);
}

/// Whether a run has the paper's parameters and its policy.
fn is_paper(run: &Run) -> bool {
    !run.path.is_coded()
        || (run.coding.preset == Some(Preset::Paper) && run.coding.policy.is_none())
}

fn goodput(row: &Row) -> f64 {
    row.goodput_bps
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

// ---- Figs. 9 and 10 -------------------------------------------------------------------------

fn test_1() -> &'static Rows {
    static ROWS: OnceLock<Rows> = OnceLock::new();
    rows(&ROWS, 9, is_paper)
}

/// Goodput of a path divided by the unreliable link's, mean over e3.
fn over_unreliable(rows: &Rows, path: impl Fn(&Row, f64) -> bool) -> f64 {
    mean(E3.into_iter().map(|e3| {
        let plain = rows.mean(|row| is(row, Path::Plain, e3), goodput);
        rows.mean(|row| path(row, e3), goodput) / plain
    }))
}

/// The paper's forwarder needs no handshake; ours completes its handshake before the load begins.
#[test]
fn the_unreliable_link_carries_something_in_every_run() {
    let least = test_1().least(|row| is(row, Path::Plain, 0.9), goodput);
    // The channel has room for 8.1 Mbit/s of datagrams.
    assert!(least > 0.5 * 0.1 * 8.1e6, "{least} bit/s at 90 % loss");
}

#[test]
fn fig_9_throughput_beside_the_unreliable_link() {
    let rows = test_1();
    check(9, "FRANC-009", over_unreliable(rows, |row, e3| is(row, Path::Coded, e3)));
    check(9, "FRANC-010", over_unreliable(rows, |row, e3| is(row, Path::CodedHelper, e3)));
}

#[test]
fn fig_10_transmissions_per_block() {
    let rows = test_1();
    let total =
        |path, e3| rows.mean(|row| is(row, path, e3), |row| row.transmissions_per_block.unwrap());
    for e3 in E3 {
        let ratios = ErasureRatios { e1: e3 / 2.0, e2: e3 / 2.0, e3 };
        let (encoder, helper) = budget::optimum(150.0, ratios);
        let is_helped = |row: &Row| is(row, Path::CodedHelper, e3);
        let ours = rows.mean(is_helped, |row| row.encoder_transmissions_per_block.unwrap());
        println!(
            "e3 {e3}: without helper {:.1} (optimum {:.1}), with {:.1} ({:.1}), of these the \
             encoder's {ours:.1} ({encoder:.1})",
            total(Path::Coded, e3),
            150.0 / (1.0 - e3),
            total(Path::CodedHelper, e3),
            encoder + helper,
        );
    }
    let saved = E3.map(|e3| total(Path::CodedHelper, e3) / total(Path::Coded, e3));
    assert!(saved.is_sorted_by(|a, b| a > b), "the helper saves the more, the more is lost");
    check(10, "FRANC-011", saved[E3.len() - 1]);
}

// ---- Figs. 11 and 12 ------------------------------------------------------------------------

fn test_2() -> &'static Rows {
    static ROWS: OnceLock<Rows> = OnceLock::new();
    rows(&ROWS, 11, is_paper)
}

/// A column at each e3, with the helper's links losing e1 and e2.
fn placed(e1: f64, e2: f64, column: fn(&Row) -> f64) -> [f64; E3.len()] {
    let of = |e3| move |row: &Row| is(row, Path::CodedHelper, e3) && row.e1 == Some(e1);
    let values = E3.map(|e3| test_2().mean(of(e3), column));
    println!("({e1}, {e2}): {values:.3?}");
    values
}

#[test]
fn fig_11_places_of_the_helper() {
    check(11, "FRANC-012", over_unreliable(test_2(), |row, e3| is(row, Path::Coded, e3)));
    let [near, middle, far] =
        [(0.1, 0.5), (0.3, 0.3), (0.5, 0.1)].map(|(e1, e2)| placed(e1, e2, goodput));
    let over_others =
        core::array::from_fn::<_, { E3.len() }, _>(|at| middle[at] / near[at].max(far[at]));
    check(11, "FRANC-013", over_others.into_iter().fold(f64::INFINITY, f64::min));
}

#[test]
fn fig_12_timeouts_per_block() {
    let timeouts = |e1, e2| mean(placed(e1, e2, |row| row.timeouts_per_block.unwrap()).into_iter());
    let asymmetric = (timeouts(0.1, 0.5) + timeouts(0.5, 0.1)) / 2.0;
    check(12, "FRANC-014", asymmetric / timeouts(0.3, 0.3));
}

// ---- Figs. 13 to 16 -------------------------------------------------------------------------

/// The figures' runs of Cubic with the paper's parameters.
fn tcp(figure: u32) -> &'static Rows {
    static ROWS: [OnceLock<Rows>; 4] = [const { OnceLock::new() }; 4];
    let is_meant = |run: &Run| {
        let is_shown = figure != 16 || run.path == Path::Coded;
        is_shown && is_paper(run) && run.congestion == Some(Congestion::Cubic)
    };
    rows(&ROWS[figure as usize - 13], figure, is_meant)
}

fn offers(figure: u32) -> Vec<f64> {
    let table = plan(figure).run.remove(0);
    table.offered_bps.expect("an application with a rate").iter().copied().collect()
}

fn at(figure: u32, path: Path, offered_bps: f64, column: fn(&Row) -> f64) -> f64 {
    let is_meant = |row: &Row| row.path == path && row.offered_bps == Some(offered_bps);
    tcp(figure).mean(is_meant, column)
}

/// Highest throughput at any offered load, kbit/s.
fn most_kbps(figure: u32, path: Path) -> f64 {
    let goodputs = offers(figure).into_iter().map(|offer| at(figure, path, offer, goodput));
    goodputs.fold(0.0, f64::max) / 1e3
}

/// Median delay, seconds; infinite if nothing arrived.
fn delay(row: &Row) -> f64 {
    row.delays.delay_p50_s.unwrap_or(f64::INFINITY)
}

fn print_curves(figure: u32) {
    for path in [Path::Plain, Path::Coded, Path::CodedHelper] {
        let points = offers(figure).into_iter().map(|offer| {
            let (goodput, delay) =
                (at(figure, path, offer, goodput), at(figure, path, offer, delay));
            format!("{:.2} Mbit/s {:.0} ms", goodput / 1e6, 1e3 * delay)
        });
        println!("Fig. {figure}, {path}: {}", points.collect::<Vec<_>>().join(", "));
    }
}

/// The highest offered load carried with a delay of at most a quarter of a second, kbit/s.
fn carried_kbps(figure: u32, path: Path) -> f64 {
    let is_carried = |&offer: &f64| at(figure, path, offer, delay) <= 0.25;
    offers(figure).into_iter().filter(is_carried).fold(0.0, f64::max) / 1e3
}

#[test]
fn fig_13_tcp_without_loss() {
    print_curves(13);
    check(13, "FRANC-015", carried_kbps(13, Path::Coded));
    check(13, "FRANC-016", most_kbps(13, Path::Plain));
}

#[test]
fn fig_14_tcp_at_10_percent() {
    print_curves(14);
    check(14, "FRANC-017", most_kbps(14, Path::Plain));
    check(14, "FRANC-018", most_kbps(14, Path::Coded) / 2500.0);
    let grown = |path| at(14, path, 4e6, delay) / at(13, path, 4e6, delay);
    check(14, "FRANC-019", grown(Path::Coded));
    check(14, "FRANC-019-P", grown(Path::Plain));
    check(14, "FRANC-024", most_kbps(14, Path::CodedHelper) / most_kbps(14, Path::Coded));
    check(14, "FRANC-025", at(14, Path::Plain, 2e6, delay) / at(14, Path::Coded, 2e6, delay) / 2.0);
    check(14, "FRANC-027-10", most_kbps(14, Path::Plain) / most_kbps(13, Path::Plain));
}

#[test]
fn fig_15_tcp_at_20_percent() {
    print_curves(15);
    check(15, "FRANC-020", most_kbps(15, Path::Plain) / 200.0);
    check(15, "FRANC-021", most_kbps(15, Path::Coded));
    check(15, "FRANC-022", at(15, Path::Plain, 2e6, delay) / at(15, Path::Coded, 2e6, delay));
    check(15, "FRANC-026", most_kbps(15, Path::Coded) / most_kbps(15, Path::Plain) / 10.0);
    check(15, "FRANC-027", most_kbps(15, Path::Plain) / most_kbps(13, Path::Plain));
}

#[test]
fn fig_16_delay_per_bit() {
    let per_bit =
        |offer: &f64| at(16, Path::Coded, *offer, delay) / at(16, Path::Coded, *offer, goodput);
    let offers = offers(16);
    let best = offers.iter().min_by(|a, b| per_bit(a).total_cmp(&per_bit(b))).unwrap();
    println!("ns a bit: {:.0?}", offers.iter().map(|o| 1e9 * per_bit(o)).collect::<Vec<_>>());
    check(16, "FRANC-023", best / 1e3 / carried_kbps(16, Path::Coded));
}
