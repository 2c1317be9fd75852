//! Gates that need no lab: delays of coding itself, compared with the frontier, in virtual time.

use core::time::Duration;

use corridor_proto::Goal;
use corridor_scenario::{Delays, Engine, Row, Run};
use corridor_sim::SimError;
use corridor_sim::frontier::{Best, FRONTIER, saturate};

use super::list::{BULK, Case, Cases, Company, Gates, LOW_DELAY, WINDOW, full_duplex, loss};
use corridor_results::checks::Sense;

/// Virtual time of a repeat, seconds.
const DURATION_S: f64 = 200.0;
/// The same with `--quick`.
const DURATION_QUICK_S: f64 = 20.0;
/// Approximate duration of either.
pub(super) const TIME_NEEDED: Duration = Duration::from_millis(500);
/// How far above the frontier delays may be.
const RATIO_MAX: f64 = 1.15;

fn name(best: &Best) -> String {
    let goal = match best.goal {
        Goal::Throughput => "",
        Goal::LowDelay => "low-delay-",
        Goal::Bulk => "bulk-",
    };
    format!("frontier-{goal}rtt{}-p{}", best.rtt_ms, best.loss_percent)
}

/// A case for each line of the frontier.
pub(super) fn add_cases(all: &mut Cases, quick: bool) {
    let duration = format!("duration_s = {:?}", if quick { DURATION_QUICK_S } else { DURATION_S });
    for best in &FRONTIER {
        let path = match best.goal {
            Goal::Throughput => WINDOW,
            Goal::LowDelay => LOW_DELAY,
            Goal::Bulk => BULK,
        };
        // For the row: the source offers as much as is accepted.
        let load = "transport = 'udp'\noffered_bps = 12_000_000";
        let medium = full_duplex(best.rtt_ms, 1);
        let run = [path, load, &loss(best.loss_percent), &duration];
        all.add(&name(best), Company::Simulated(*best), &medium, &run);
    }
}

/// Share, median and 95th percentile for each line of the frontier.
pub(super) fn add_gates(all: &mut Gates) {
    for best in FRONTIER {
        let case = name(&best);
        let goal = match best.goal {
            Goal::Throughput => "",
            Goal::LowDelay => ", low-delay setting",
            Goal::Bulk => ", bulk setting",
        };
        let conditions = format!(
            "virtual time, saturated source, no ingress queue, RTT {} ms, {} % lost{goal}",
            best.rtt_ms, best.loss_percent
        );
        let share = move |rows: &[&Row]| {
            let hop = best.hop(Duration::from_secs_f64(rows[0].duration_s), 0);
            Some(hop.share(rows[0].packets_received?))
        };
        let limit = (Sense::AtLeast, best.share(), "of what comes through");
        all.add(format!("{case}-share"), &conditions, limit, &[&case], Box::new(share));
        let of = |row: &Row| [row.delays.delay_p50_s, row.delays.delay_p95_s];
        for (index, name) in ["p50", "p95"].into_iter().enumerate() {
            let ratio =
                move |rows: &[&Row]| Some(1e3 * of(rows[0])[index]? / best.delays_ms[index]);
            let limit = (Sense::AtMost, RATIO_MAX, "of the frontier");
            all.add(format!("{case}-{name}"), &conditions, limit, &[&case], Box::new(ratio));
        }
    }
}

/// Makes a run.
pub(super) fn make(case: &Case, best: &Best, replication: u64) -> Result<Row, SimError> {
    let duration = Duration::from_secs_f64(case.run.duration_s);
    let measured = saturate(&best.hop(duration, replication))?;
    let run = Run { replication, ..case.run.clone() };
    let mut row = Row::new(&case.scenario, &run, Engine::Sim);
    let bits = 8.0 * measured.packet_len as f64 * measured.packets as f64;
    row.goodput_bps = bits / case.run.duration_s;
    row.packets_received = Some(measured.packets);
    let seconds = |quantile| Some(measured.delay_ms(quantile)? / 1e3);
    row.delays = Delays {
        delay_p50_s: seconds(0.5),
        delay_p95_s: seconds(0.95),
        delay_p99_s: seconds(0.99),
        delay_max_s: seconds(1.0),
    };
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::list::{cases, gates};
    use super::*;

    #[test]
    fn a_gate_tells_how_far_a_measured_hop_is_from_the_frontier() {
        let cases = cases(true);
        let case = cases.iter().find(|case| case.name == "frontier-rtt100-p20").unwrap();
        let Company::Simulated(best) = &case.company else { panic!("{case:?}") };
        let row = make(case, best, 3).unwrap();
        assert_eq!((row.replication, row.e3, row.engine), (3, 0.2, Engine::Sim));
        let p95_s = row.delays.delay_p95_s.unwrap();
        let value = |name: &str| {
            let gate = gates().into_iter().find(|gate| gate.name == name).unwrap();
            assert_eq!(gate.needs, [case.name.as_str()]);
            (gate.measure)(&[&row]).unwrap()
        };
        assert_eq!(value("frontier-rtt100-p20-p95"), 1e3 * p95_s / 193.0);
        // 20 s of a thousand frames each, of which four fifths arrive.
        let share = row.packets_received.unwrap() as f64 / 16_000.0;
        assert!((value("frontier-rtt100-p20-share") - share).abs() < 1e-12 && share > 0.5);
    }
}
