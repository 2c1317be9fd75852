//! Linux's TCP as configured by plans.

use std::path::Path;

use corridor_scenario::Plan;

/// A window that fills two lossless links keeps them busy, almost without retransmissions.
#[test]
fn cubic_fills_two_lossless_links() {
    let text = "
        name = 'two-links'
        seed = 1
        start_jitter_s = 0
        duration_s = 60
        [network]
        kind = 'chain'
        links = { count = 2, rate_bps = 2_000_000, delay_ms = 20, queue_packets = 50 }
        [[flow]]
        from = 0
        to = 2
        source = { kind = 'ftp' }
        tcp = { preset = 'linux', variant = 'cubic' }
    ";
    let plan = Plan::parse(text, Path::new(".")).expect("plan");
    let measures = corridor_sim::run(&plan.points[0], 0).expect("result").measures;
    let value = |name: &str| measures.value(name).number().unwrap_or_else(|| panic!("no {name}"));
    assert!(value("goodput_bps") >= 1.85e6, "{}", value("goodput_bps"));
    let (once, again) = (value("flow.0.packets_sent"), value("flow.0.packets_retransmitted"));
    assert!(again < 0.05 * (once + again), "{again} of {once} again");
}
