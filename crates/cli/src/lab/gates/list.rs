//! The gates, and the runs that they need.

use core::time::Duration;

use corridor_lab::time_needed;
use corridor_scenario::{Row, Run, Scenario, expand};
use corridor_sim::frontier::Best;

use super::frontier;
use corridor_results::checks::Sense;

/// Whose nodes a case has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// This program's, or those of `CORRIDOR_BIN`.
    New,
    /// Those of the program with which it is compared.
    Old,
}

/// The reference of a relative difference between two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// The older value.
    Value,
    /// The limit, for values near zero: differences, and shares of rare events.
    Limit,
}

/// Units of values that may be near zero.
const NEAR_NOTHING: [&str; 3] = ["ms above base", "ms above plain", "missed"];

/// What else may run while a case is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Company {
    /// Other cases of the lab: the medium leaves the processors idle most of the time.
    Shared,
    /// Nothing: processor time itself is judged.
    Alone,
    /// It is a line of the frontier, measured in virtual time.
    Simulated(Best),
}

/// A run that gates use.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) side: Side,
    pub(super) company: Company,
    pub(super) scenario: Scenario,
    pub(super) run: Run,
}

impl Case {
    /// The same with nodes of the old program, under another name.
    pub(super) fn of_old(&self, name: String) -> Self {
        Case { name, side: Side::Old, ..self.clone() }
    }

    /// Approximate duration.
    pub(super) fn time_needed(&self) -> Duration {
        match self.company {
            Company::Simulated(_) => frontier::TIME_NEEDED,
            Company::Shared | Company::Alone => time_needed(&self.run),
        }
    }
}

/// A guarantee.
pub(super) struct Gate {
    pub(super) name: String,
    pub(super) conditions: String,
    pub(super) unit: &'static str,
    pub(super) sense: Sense,
    pub(super) limit: f64,
    pub(super) scale: Scale,
    /// Names of its cases.
    pub(super) needs: Vec<String>,
    /// The value from their rows, in that order.
    pub(super) measure: Measure,
}

/// Computes a gate's value from the rows that it needs; `None` if there is none.
pub(super) type Measure = Box<dyn Fn(&[&Row]) -> Option<f64> + Sync>;

/// Capacity of the queues of the 12 Mbit/s links, frames.
const QUEUE_FRAMES: usize = 50;

/// A link of 12 Mbit/s without overhead, full duplex.
pub(super) fn full_duplex(rtt_ms: u64, queue_frames: usize) -> String {
    format!(
        "duplex = 'full'\nrate_bps = 12_000_000\nrtt_ms = {rtt_ms}\nqueue_frames = {queue_frames}"
    )
}

/// The medium of the FRANC paper.
const PAPER: &str =
    "duplex = 'half'\nrate_bps = 12_000_000\noverhead_us = 400\nrtt_ms = 4\nqueue_frames = 4";
/// 20 Mbit/s, and a buffer of one bandwidth-delay product: 100 kB, 66 frames.
const SHARED: &str = "duplex = 'full'\nrate_bps = 20_000_000\nrtt_ms = 40\nqueue_frames = 66";
/// The chain of network-coded-tcp-2012, Fig. 8.
const HOPS: &str =
    "duplex = 'full'\nhops = 4\nrate_bps = 2_000_000\nrtt_ms = 200\nqueue_frames = 200";
const TCP_NC: &str = "path = 'coded'\ncoding = { preset = 'tcp-nc' }\nunderlay = 'udp'";
pub(super) const WINDOW: &str = "path = 'coded'\ncoding = { preset = 'window' }";
pub(super) const LOW_DELAY: &str =
    "path = 'coded'\ncoding = { preset = 'window', goal = 'low-delay' }";
pub(super) const BULK: &str = "path = 'coded'\ncoding = { preset = 'window', goal = 'bulk' }";
const KERNEL: &str = "path = 'kernel'";
const TCP: &str = "transport = 'tcp'\ncongestion = 'cubic'";

/// Round trips, and losses in percent, for which goodput is guaranteed; and losses of the chain.
const RTTS_MS: [u32; 2] = [4, 100];
const HOPS_LOSSES: [u32; 2] = [6, 10];
const LOSSES: [u32; 6] = [0, 5, 10, 20, 30, 40];

/// Collects cases.
pub(super) struct Cases {
    cases: Vec<Case>,
    duration_s: f64,
}

impl Cases {
    /// A case from the text of its medium and its run; a test expands them all.
    pub(super) fn add(&mut self, name: &str, company: Company, medium: &str, run: &[&str]) {
        let duration = match run.iter().any(|lines| lines.contains("duration_s")) {
            true => String::new(),
            false => format!("duration_s = {}\n", self.duration_s),
        };
        let text = format!(
            "name = 'tunnel'\nseed = 2026\n[medium]\n{medium}\n[[run]]\n{}\n{duration}",
            run.join("\n")
        );
        let scenario = Scenario::parse(&text).expect("a test reads all cases");
        let run = expand(&scenario).expect("a test expands all cases").remove(0);
        let (name, side) = (name.to_owned(), Side::New);
        self.cases.push(Case { name, side, company, scenario, run });
    }
}

/// With the goal of few bytes: round trip, ms; the lowest goodput over raw Ethernet and over UDP,
/// relative to C (1-p) less headers; losses, percent, and the highest in-order delay, 95th
/// percentile, ms.
type BulkPaths = (u64, [f64; 2], &'static [(u32, Option<f64>)]);
const BULK_PATHS: [BulkPaths; 2] = [
    (4, [0.98, 0.97], &[(10, Some(31.0)), (20, Some(45.0))]),
    (100, [0.96, 0.96], &[(10, None), (20, None)]),
];

/// All runs, once each.
pub(super) fn cases(quick: bool) -> Vec<Case> {
    use Company::{Alone, Shared};
    let mut all = Cases { cases: Vec::new(), duration_s: if quick { 5.0 } else { 20.0 } };
    for rtt_ms in RTTS_MS {
        let medium = full_duplex(rtt_ms.into(), QUEUE_FRAMES);
        for (ecn, suffix) in [("ecn = false", ""), ("ecn = true", "-ecn")] {
            let name = format!("kernel-rtt{rtt_ms}{suffix}");
            all.add(&name, Shared, &medium, &[KERNEL, TCP, ecn, "e3 = 0"]);
            for percent in LOSSES {
                let name = format!("window-rtt{rtt_ms}-p{percent}{suffix}");
                let loss = loss(percent);
                // The echo is a fiftieth of the load, and measured where it has a guarantee.
                let ping = if percent == 0 { "ping_interval_ms = 50" } else { "" };
                all.add(&name, Shared, &medium, &[WINDOW, TCP, ecn, &loss, ping]);
            }
            let name = format!("low-delay-rtt{rtt_ms}{suffix}");
            all.add(&name, Shared, &medium, &[LOW_DELAY, TCP, ecn, &loss(30)]);
        }
    }
    let near = full_duplex(4, QUEUE_FRAMES);
    all.add("window-lossless", Shared, &near, &[WINDOW, TCP, "e3 = 0"]);
    all.add("window-lossless-udp", Shared, &near, &[WINDOW, TCP, "e3 = 0\nunderlay = 'udp'"]);
    let retries = format!("{near}\nretry_limit = 7");
    all.add("kernel-retries", Shared, &retries, &[KERNEL, TCP, &loss(20)]);
    all.add("window-retries", Shared, &retries, &[WINDOW, TCP, &loss(20)]);
    all.add("window-retries-udp", Shared, &retries, &[WINDOW, TCP, &loss(20), "underlay = 'udp'"]);
    for percent in [10, 20] {
        let name = format!("window-paper-p{percent}");
        all.add(&name, Shared, PAPER, &[WINDOW, TCP, &loss(percent)]);
    }
    for burst in [5, 20] {
        let bursts = format!("burst_frames = {burst}");
        all.add(
            &format!("window-bursts{burst}"),
            Shared,
            &near,
            &[WINDOW, TCP, &loss(10), &bursts],
        );
    }
    let real_time = "transport = 'udp'\noffered_bps = 5e6\ndatagram_bytes = 1200\ndeadline_ms = 50";
    all.add("window-real-time", Shared, &near, &[WINDOW, real_time, &loss(30)]);
    let times =
        if quick { "warm_up_s = 5\nduration_s = 15" } else { "warm_up_s = 10\nduration_s = 60" };
    let beside = "e3 = 0\nbeside = 'cubic'\nunderlay = 'udp'";
    all.add("window-beside", Shared, SHARED, &[WINDOW, TCP, beside, times]);
    for percent in HOPS_LOSSES {
        for (name, path) in [("kernel", KERNEL), ("tcp-nc", TCP_NC)] {
            let name = format!("{name}-hops-p{percent}");
            all.add(&name, Shared, HOPS, &[path, TCP, &loss(percent), times]);
        }
    }
    for (name, ratio) in [("window-cpu", 0.0), ("window-cpu-p10", 0.1)] {
        let wire = format!("wire = 'veth'\nunderlay = 'udp'\ne3 = {ratio:?}");
        all.add(name, Alone, &near, &[WINDOW, TCP, &wire]);
    }
    for (rtt_ms, _, percents) in BULK_PATHS {
        let medium = full_duplex(rtt_ms, QUEUE_FRAMES);
        for &(percent, ..) in percents {
            let (name, loss) = (format!("bulk-rtt{rtt_ms}-p{percent}"), loss(percent));
            all.add(&name, Shared, &medium, &[BULK, TCP, &loss]);
            let udp = [BULK, TCP, &loss, "underlay = 'udp'"];
            all.add(&format!("{name}-udp"), Shared, &medium, &udp);
        }
    }
    frontier::add_cases(&mut all, quick);
    all.cases
}

pub(super) fn loss(percent: u32) -> String {
    format!("e3 = {:?}", f64::from(percent) / 100.0)
}

/// Goodput of the second row over that of the first, and over this factor.
fn share(factor: f64) -> Measure {
    Box::new(move |rows| Some(rows[1].goodput_bps / (rows[0].goodput_bps * factor)))
}

fn delay_p50_ms(rows: &[&Row]) -> Option<f64> {
    Some(1e3 * rows[0].delays.delay_p50_s?)
}

fn delay_p95_ms(rows: &[&Row]) -> Option<f64> {
    Some(1e3 * rows[0].delays.delay_p95_s?)
}

/// Collects gates.
pub(super) struct Gates(Vec<Gate>);

impl Gates {
    pub(super) fn add(
        &mut self,
        name: String,
        conditions: &str,
        (sense, limit, unit): (Sense, f64, &'static str),
        needs: &[&str],
        measure: Measure,
    ) {
        let needs = needs.iter().map(|&name| name.to_owned()).collect();
        let conditions = conditions.to_owned();
        let scale = if NEAR_NOTHING.contains(&unit) { Scale::Limit } else { Scale::Value };
        self.0.push(Gate { name, conditions, unit, sense, limit, scale, needs, measure });
    }

    /// Median and 95th percentile of one case.
    fn add_delays(&mut self, suffix: &str, conditions: &str, case: &str, limits_ms: [f64; 2]) {
        let measures: [Measure; 2] = [Box::new(delay_p50_ms), Box::new(delay_p95_ms)];
        for ((name, limit), measure) in ["p50", "p95"].into_iter().zip(limits_ms).zip(measures) {
            let limit = (Sense::AtMost, limit, "ms");
            self.add(format!("delay-{name}-{suffix}"), conditions, limit, &[case], measure);
        }
    }
}

/// Maximum in-order one-way delay, median and 95th percentile, where there is a guarantee.
fn delay_limits_ms(rtt_ms: u32, percent: u32) -> Option<[f64; 2]> {
    match (rtt_ms, percent) {
        (4, ..=20) => Some([14.0, 28.0]),
        (4, 30) => Some([18.0, 36.0]),
        (100, 10) => Some([100.0, 210.0]),
        (100, 20) => Some([115.0, 240.0]),
        (100, 30) => Some([125.0, 290.0]),
        _ => None,
    }
}

/// All gates.
pub(super) fn gates() -> Vec<Gate> {
    let mut all = Gates(Vec::new());
    for rtt_ms in RTTS_MS {
        for (suffix, ecn) in [("", "ECN off"), ("-ecn", "ECN on")] {
            add_distance(&mut all, rtt_ms, suffix, ecn);
        }
    }
    add_lossless(&mut all);
    add_retries(&mut all);
    for (percent, limit) in [(10, 5.9), (20, 5.2)] {
        let conditions = format!("half-duplex, 400 us per frame, TCP cubic, {percent} % lost");
        let goodput = |rows: &[&Row]| Some(rows[0].goodput_bps / 1e6);
        let (name, limit) = (format!("paper-p{percent}"), (Sense::AtLeast, limit, "Mbit/s"));
        let case = format!("window-paper-p{percent}");
        all.add(name, &conditions, limit, &[&case], Box::new(goodput));
    }
    for burst in [5, 20] {
        let conditions = format!("RTT 4 ms, TCP cubic, 10 % lost in bursts of {burst}");
        let (name, case) = (format!("bursts-{burst}"), format!("window-bursts{burst}"));
        let limit = (Sense::AtLeast, 0.88, "of C(1-p)");
        all.add(name, &conditions, limit, &["kernel-rtt4", &case], share(0.9));
    }
    let missed = |rows: &[&Row]| rows[0].missed_ratio();
    all.add(
        "real-time".to_owned(),
        "RTT 4 ms, UDP 5 Mbit/s, deadline 50 ms, 30 % lost",
        (Sense::AtMost, 0.001, "missed"),
        &["window-real-time"],
        Box::new(missed),
    );
    for (name, sense, limit) in
        [("beside-least", Sense::AtLeast, 0.35), ("beside-most", Sense::AtMost, 0.65)]
    {
        let conditions = "20 Mbit/s shared with a plain cubic flow, RTT 40 ms, buffer 1 BDP, UDP";
        let share = |rows: &[&Row]| {
            let beside_bps = rows[0].beside.as_ref()?.goodput_bps;
            Some(rows[0].goodput_bps / (rows[0].goodput_bps + beside_bps))
        };
        let limit = (sense, limit, "of both");
        all.add(name.to_owned(), conditions, limit, &["window-beside"], Box::new(share));
    }
    for percent in HOPS_LOSSES {
        let conditions =
            format!("four hops of 2 Mbit/s and 100 ms, TCP cubic over TCP/NC, {percent} % lost");
        let needs = [format!("kernel-hops-p{percent}"), format!("tcp-nc-hops-p{percent}")];
        let (name, limit) = (format!("tcp-nc-p{percent}"), (Sense::AtLeast, 5.0, "of plain"));
        all.add(name, &conditions, limit, &needs.each_ref().map(String::as_str), share(1.0));
    }
    for (name, case, limit, lost) in [
        ("cpu", "window-cpu", 2.0, "nothing lost"),
        ("cpu-p10", "window-cpu-p10", 1.0, "10 % lost"),
    ] {
        let conditions = format!("two namespaces, no shaping, UDP underlay, TCP cubic, {lost}");
        let goodput = |rows: &[&Row]| Some(rows[0].goodput_bps / 1e9);
        let limit = (Sense::AtLeast, limit, "Gbit/s");
        all.add(name.to_owned(), &conditions, limit, &[case], Box::new(goodput));
    }
    add_bulk(&mut all);
    frontier::add_gates(&mut all);
    all.0
}

/// The guarantees for TCP cubic at one round-trip time.
fn add_distance(all: &mut Gates, rtt_ms: u32, suffix: &str, ecn: &str) {
    let kernel = format!("kernel-rtt{rtt_ms}{suffix}");
    for percent in LOSSES {
        let conditions = format!("RTT {rtt_ms} ms, TCP cubic, {ecn}, {percent} % lost");
        let place = format!("rtt{rtt_ms}-p{percent}{suffix}");
        let window = format!("window-{place}");
        let least = if percent == 40 { 0.88 } else { 0.93 };
        let share = share(1.0 - f64::from(percent) / 100.0);
        let limit = (Sense::AtLeast, least, "of C(1-p)");
        all.add(format!("goodput-{place}"), &conditions, limit, &[&kernel, &window], share);
        if let Some(limits_ms) = delay_limits_ms(rtt_ms, percent) {
            all.add_delays(&place, &conditions, &window, limits_ms);
        }
    }
    let conditions = format!("RTT {rtt_ms} ms, TCP cubic, {ecn}, 30 % lost, low-delay setting");
    let (place, case) =
        (format!("low-delay-rtt{rtt_ms}{suffix}"), format!("low-delay-rtt{rtt_ms}{suffix}"));
    let limit = (Sense::AtLeast, 0.86, "of C(1-p)");
    all.add(format!("goodput-{place}"), &conditions, limit, &[&kernel, &case], share(0.7));
    let limits_ms = if rtt_ms == 4 { [14.0, 30.0] } else { [85.0, 170.0] };
    all.add_delays(&place, &conditions, &case, limits_ms);
    // Relative to the propagation delay alone: a tunnel that is slow when idle gains nothing by it.
    let base_ms = f64::from(rtt_ms);
    let ping = move |rows: &[&Row]| Some(1e3 * rows[0].pings.as_ref()?.p95_s? - base_ms);
    let conditions = format!("RTT {rtt_ms} ms, beside TCP cubic, {ecn}, nothing lost");
    let window = format!("window-rtt{rtt_ms}-p0{suffix}");
    let limit = (Sense::AtMost, 15.0, "ms above base");
    all.add(format!("ping-rtt{rtt_ms}{suffix}"), &conditions, limit, &[&window], Box::new(ping));
}

/// With the goal of few bytes, hardly any are spent on spurious repair. Headers are not repair: C
/// is what the same tunnel carries without losses, which `lossless-goodput` judges.
fn add_bulk(all: &mut Gates) {
    for (rtt_ms, least, percents) in BULK_PATHS {
        for &(percent, most_ms) in percents {
            let places = [("", "raw Ethernet"), ("-udp", "UDP")].into_iter().zip(least);
            for ((suffix, underlay), least) in places {
                let conditions = format!(
                    "RTT {rtt_ms} ms, TCP cubic, {percent} % lost, bulk setting, {underlay}"
                );
                let case = format!("bulk-rtt{rtt_ms}-p{percent}{suffix}");
                let needs = [&format!("window-lossless{suffix}"), case.as_str()];
                let share = share(1.0 - f64::from(percent) / 100.0);
                let limit = (Sense::AtLeast, least, "of C(1-p) less headers");
                all.add(format!("goodput-{case}"), &conditions, limit, &needs, share);
                if let Some(most_ms) = most_ms {
                    let limit = (Sense::AtMost, most_ms, "ms");
                    let delay = Box::new(delay_p95_ms);
                    all.add(format!("delay-p95-{case}"), &conditions, limit, &[&case], delay);
                }
            }
        }
    }
}

/// Without losses, the overhead is almost zero.
fn add_lossless(all: &mut Gates) {
    for (suffix, underlay, least, most) in
        [("", "raw Ethernet", 0.97, 1.04), ("-udp", "UDP underlay", 0.95, 1.075)]
    {
        let conditions = format!("RTT 4 ms, TCP cubic, nothing lost, {underlay}");
        let needs = ["kernel-rtt4", &format!("window-lossless{suffix}")];
        let limit = (Sense::AtLeast, least, "of plain");
        all.add(format!("lossless-goodput{suffix}"), &conditions, limit, &needs, share(1.0));
        let bytes = |rows: &[&Row]| Some(rows[1].air_bytes_per_byte? / rows[0].air_bytes_per_byte?);
        let limit = (Sense::AtMost, most, "of plain");
        all.add(format!("lossless-bytes{suffix}"), &conditions, limit, &needs, Box::new(bytes));
    }
}

/// Where the MAC retransmits, there is nothing for coding to do.
fn add_retries(all: &mut Gates) {
    for (suffix, underlay, least) in [("", "raw Ethernet", 0.96), ("-udp", "UDP underlay", 0.945)] {
        let conditions =
            format!("RTT 4 ms, TCP cubic, 20 % lost, 7 retries by the MAC, {underlay}");
        let needs = ["kernel-retries", &format!("window-retries{suffix}")];
        let limit = (Sense::AtLeast, least, "of plain");
        all.add(format!("retries-goodput{suffix}"), &conditions, limit, &needs, share(1.0));
        let more =
            |rows: &[&Row]| Some(1e3 * (rows[1].delays.delay_p50_s? - rows[0].delays.delay_p50_s?));
        let limit = (Sense::AtMost, 2.0, "ms above plain");
        all.add(format!("retries-delay{suffix}"), &conditions, limit, &needs, Box::new(more));
    }
}
