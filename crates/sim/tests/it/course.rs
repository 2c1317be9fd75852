//! The course of runs: recording it in one pass does not change what happens.

use std::path::Path;

use corridor_scenario::{FrameEnd, Measures, Plan, Replication, TableKind, Value};

const NETWORK: &str = "
name = 'course'
seed = 11
start_jitter_s = 0
duration_s = 20
replications = 2
[network]
kind = 'chain'
links = { count = 2, rate_bps = 2_000_000, delay_ms = 20, queue_packets = 20, erasure_ratio = 0.01 }
[[flow]]
from = 0
to = 2
source = { kind = 'ftp' }
tcp = { preset = 'ns2', variant = 'reno', window_packets_max = 30 }
[[flow]]
from = 2
to = 0
start_s = 4
stop_s = 12
source = { kind = 'ftp' }
tcp = { preset = 'linux' }
tcp_nc = { redundancy = 1.2 }
[[flow]]
from = 2
to = 0
source = { kind = 'cbr', rate_bps = 200_000 }
";

const RADIO: &str = "
name = 'course'
seed = 5
duration_s = 1.5
warm_up_s = 0.5
medium = { duplex = 'half', rate_bps = 12_000_000, overhead_us = 400, rtt_ms = 4, queue_frames = 4 }
[[run]]
path = ['plain', 'coded']
transport = 'udp'
offered_bps = 2e6
e3 = 0.2
coding = { preset = 'window' }
";

const AIR: &str = "
name = 'course'
seed = 7
start_jitter_s = 0
duration_s = 2
[network]
kind = 'line'
nodes = 2
spacing_m = 10
[network.radio]
mac = 'ideal'
rate_bps = '6M'
reach_m = 11
[[flow]]
from = 0
to = 1
source = { kind = 'cbr', rate_bps = 200_000 }
";

fn point(text: &str, more: &str, point: usize) -> Replication {
    let plan = Plan::parse(&format!("{more}\n{text}"), Path::new(".")).expect("a plan");
    corridor_sim::run(&plan.points[point], 1).expect("it can be run")
}

/// A column of a subject's rows, by name.
fn column(run: &Replication, kind: TableKind, subject: usize, name: &str) -> Vec<f64> {
    let rows = run.tables.rows(kind).expect("rows");
    let place = |name: &str| {
        let columns = kind.columns();
        columns.iter().position(|column| column.name == name).expect("a column") - 2
    };
    let subjects = rows.columns()[0].iter();
    let chosen = subjects.zip(&rows.columns()[place(name)]);
    chosen.filter(|&(&of, _)| of == subject as f64).map(|(_, &value)| value).collect()
}

fn number(measures: &Measures, name: &str) -> f64 {
    measures.value(name).number().unwrap_or(f64::NAN)
}

#[test]
fn nothing_that_happens_depends_on_whether_somebody_looks() {
    for output in ["series_s = 0.3", "series_s = 7.1, delays = true", "tables = true"] {
        let output = format!("output = {{ {output} }}");
        let (with, without) = (point(NETWORK, &output, 0), point(NETWORK, "", 0));
        assert_eq!(with.measures, without.measures, "{output}");
        assert!(without.tables.is_empty() && !with.tables.is_empty());
    }
    for (transport, place) in [("udp", 0), ("udp", 1), ("tcp", 0), ("tcp", 1)] {
        let text = RADIO.replace("'udp'", &format!("'{transport}'"));
        let output = "output = { series_s = 0.07, delays = true, tables = true }";
        let with = point(&text, output, place);
        assert_eq!(with.measures, point(&text, "", place).measures, "{transport} {place}");
    }
}

#[test]
fn an_interval_is_what_a_run_measures_that_ends_with_it() {
    let course = point(NETWORK, "output = { series_s = 4 }", 0);
    for (place, end) in [4, 8, 12, 16, 20].into_iter().enumerate() {
        let stop = 12.min(end.max(5));
        let text = NETWORK.replace("duration_s = 20", &format!("duration_s = {}", end.max(5)));
        let text = text.replace("stop_s = 12", &format!("stop_s = {stop}"));
        let warm_up = format!("warm_up_s = {}", end - 4);
        // A flow has to begin before the run ends, and flow 1 begins in the fifth second.
        if end < 8 {
            continue;
        }
        let prefix = point(&text, &warm_up, 0).measures;
        for (flow, name, of_flow) in [
            (0, "goodput_bps", "goodput_bps"),
            (0, "cwnd_mean_packets", "cwnd_mean_packets"),
            (0, "srtt_s", "srtt_s"),
            (0, "packets_retransmitted", "packets_retransmitted"),
            (1, "timeouts", "timeouts"),
            (2, "goodput_bps", "goodput_bps"),
            (2, "delay_mean_s", "delay_mean_s"),
        ] {
            let ours = column(&course, TableKind::FlowSeries, flow, name)[place];
            let theirs = number(&prefix, &format!("flow.{flow}.{of_flow}"));
            // There, the mean delay is taken over histogram bins; here, over the delays themselves.
            let tolerance = if name == "delay_mean_s" { 1e-3 } else { 1e-12 };
            assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{end} {flow} {name}");
        }
    }
}

#[test]
fn intervals_add_up_to_the_run_and_the_last_one_may_be_shorter() {
    let run = point(NETWORK, "output = { series_s = 6.0 }", 0);
    let times = column(&run, TableKind::FlowSeries, 0, "time_s");
    assert_eq!(times, [0.0, 6.0, 12.0, 18.0]);
    let bytes: f64 = column(&run, TableKind::FlowSeries, 0, "payload_bytes").iter().sum();
    assert_eq!(8.0 * bytes / 20.0, number(&run.measures, "flow.0.goodput_bps"));
    let goodputs = column(&run, TableKind::FlowSeries, 0, "goodput_bps");
    let last = column(&run, TableKind::FlowSeries, 0, "payload_bytes")[3];
    assert_eq!(goodputs[3], 8.0 * last / 2.0);
    let dropped: f64 = (0..4)
        .map(|link| {
            column(&run, TableKind::LinkSeries, link, "packets_dropped").iter().sum::<f64>()
        })
        .sum();
    assert_eq!(Value::from(dropped as u64), run.measures.value("packets_dropped"));
    let fine = point(NETWORK, "output = { series_s = 0.05 }", 0);
    let queues = column(&fine, TableKind::LinkSeries, 0, "queue_packets");
    assert!(queues.iter().all(|&queue| queue <= 20.0) && queues.iter().any(|&queue| queue > 0.0));
    // Before it starts and after it stops, a flow has no window.
    let windows = column(&run, TableKind::FlowSeries, 1, "cwnd_mean_packets");
    assert!(windows[0] > 0.0 && windows[1] > 0.0 && windows[3].is_nan(), "{windows:?}");
}

#[test]
fn a_run_that_ends_by_itself_ends_its_course() {
    let text = NETWORK.split("[[flow]]").next().expect("a head").to_owned()
        + "[[flow]]\nfrom = 0\nto = 2\nsource = { kind = 'fixed', packets = 300 }\n";
    let run = point(&text, "until_done = true\noutput = { series_s = 0.5 }", 0);
    let completion = number(&run.measures, "flow.0.completion_s");
    let times = column(&run, TableKind::FlowSeries, 0, "time_s");
    let last = times[times.len() - 1];
    assert!(last < completion && completion <= last + 0.5, "{last} {completion}");
}

#[test]
fn a_tunnel_tells_of_its_stations() {
    let text = RADIO.replace("'udp'", "'tcp'");
    let run = point(&text, "output = { series_s = 0.25 }", 1);
    let times = column(&run, TableKind::StationSeries, 0, "time_s");
    assert_eq!(times, [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]);
    let losses = column(&run, TableKind::StationSeries, 0, "loss_ratio");
    assert!((losses[7] - 0.2).abs() < 0.1, "{losses:?}");
    let repaired = column(&run, TableKind::StationSeries, 1, "symbols_repaired");
    assert!(repaired.iter().sum::<f64>() > 0.0);
    // The measured interval begins after the warm-up, half a second after the course.
    let bytes = column(&run, TableKind::FlowSeries, 0, "payload_bytes");
    let measured = number(&run.measures, "goodput_bps") * 1.5 / 8.0;
    let sum: f64 = bytes[2..].iter().sum();
    assert!((sum / measured - 1.0).abs() < 0.02, "{sum} {measured}");
}

#[test]
fn long_tables_are_of_the_measured_interval() {
    let run = point(NETWORK, "warm_up_s = 3\noutput = { tables = true }", 0);
    let of = |kind, subject, name| column(&run, kind, subject, name)[0];
    for flow in 0..3 {
        let ours = of(TableKind::Flows, flow, "goodput_bps");
        assert_eq!(ours, number(&run.measures, &format!("flow.{flow}.goodput_bps")));
    }
    let dropped: f64 = (0..4).map(|link| of(TableKind::Links, link, "packets_dropped")).sum();
    let lost: f64 = (0..4).map(|link| of(TableKind::Links, link, "packets_lost")).sum();
    assert_eq!(dropped, number(&run.measures, "packets_dropped"));
    assert_eq!(lost, number(&run.measures, "packets_erased"));
    assert!(run.tables.rows(TableKind::Nodes).is_none());
    let run = point(RADIO, "output = { tables = true }", 0);
    let sent = column(&run, TableKind::Nodes, 0, "frame_attempts")[0];
    let heard = column(&run, TableKind::Nodes, 0, "frames_delivered")[0];
    assert!((heard / sent - 0.8).abs() < 0.1, "{heard} of {sent}");
}

/// What is sent when the simulation begins is in all tables; otherwise they would disagree.
#[test]
fn without_a_warm_up_the_first_instant_is_in_all_tables() {
    let output = "output = { tables = true, series_s = 1 }";
    let run = point(NETWORK, output, 0);
    let mut offered = 0.0;
    for link in 0..4 {
        for name in ["packets_offered", "packets_dropped", "packets_lost"] {
            let course: f64 = column(&run, TableKind::LinkSeries, link, name).iter().sum();
            let total = column(&run, TableKind::Links, link, name)[0];
            assert_eq!(total, course, "{name} of link {link}");
            offered += if name == "packets_offered" { total } else { 0.0 };
        }
    }
    assert!(offered > 1000.0);
    let run = point(AIR, output, 0);
    let sent = number(&run.measures, "flow.0.packets_sent");
    let course: f64 = column(&run, TableKind::LinkSeries, 0, "packets_offered").iter().sum();
    for offered in [
        course,
        column(&run, TableKind::Links, 0, "packets_offered")[0],
        column(&run, TableKind::Nodes, 0, "frames_offered")[0],
    ] {
        assert_eq!(offered, sent);
    }
}

/// Frames that ended in this way, and their transmissions, of one node or of all.
fn ended(run: &Replication, from: Option<usize>, end: FrameEnd) -> (f64, f64) {
    let rows = run.tables.rows(TableKind::Outcomes).expect("outcomes are kept");
    let [nodes, _, ends, attempts, frames] = rows.columns() else { panic!("five columns") };
    let is_meant = |&row: &usize| {
        ends[row] == end as usize as f64 && from.is_none_or(|from| nodes[row] == from as f64)
    };
    let meant = (0..rows.len()).filter(is_meant);
    meant.fold((0.0, 0.0), |(all, tried), row| {
        (all + frames[row], tried + frames[row] * attempts[row])
    })
}

#[test]
fn outcomes_add_up_to_what_links_and_nodes_count() {
    let run = point(NETWORK, "warm_up_s = 3\noutput = { tables = true }", 0);
    let all = |end| ended(&run, None, end).0;
    assert_eq!(all(FrameEnd::Refused), number(&run.measures, "packets_dropped"));
    assert_eq!(all(FrameEnd::Lost), number(&run.measures, "packets_erased"));
    assert!(all(FrameEnd::Lost) > 0.0);
    let offered: f64 =
        (0..4).map(|link| column(&run, TableKind::Links, link, "packets_offered")[0]).sum();
    assert_eq!(all(FrameEnd::Refused) + all(FrameEnd::Lost) + all(FrameEnd::Delivered), offered);

    let ideal = "mac = 'ideal'\nrate_bps = '6M'\nreach_m = 11";
    let dcf = "mac = 'dcf'\nstandard = 'g'\nrate_bps = '12M'\npower_dbm = 0";
    let run = point(&AIR.replace(ideal, dcf), "output = { tables = true }", 0);
    let node = |name| column(&run, TableKind::Nodes, 0, name)[0];
    let (delivered, tried) = ended(&run, Some(0), FrameEnd::Delivered);
    let (given_up, in_vain) = ended(&run, Some(0), FrameEnd::GivenUp);
    assert_eq!(delivered, node("frames_delivered"));
    assert_eq!(given_up, node("frames_given_up"));
    // A frame on the air at the end has not ended.
    let under_way = node("frame_attempts") - tried - in_vain;
    assert!(delivered > 40.0 && (0.0..8.0).contains(&under_way), "{delivered} {under_way}");

    // An ideal medium only reports how many frames were lost.
    let run = point(RADIO, "output = { tables = true }", 0);
    let lost = column(&run, TableKind::Nodes, 0, "frames_given_up")[0];
    assert_eq!(ended(&run, Some(0), FrameEnd::Lost), (lost, lost));
}

/// What is in flight when the measured interval begins was sent before it.
#[test]
fn no_flow_receives_more_than_it_sends() {
    let ideal = "mac = 'ideal'\nrate_bps = '6M'\nreach_m = 11";
    let dcf = "mac = 'dcf'\nstandard = 'g'\nrate_bps = '12M'\npower_dbm = 0";
    for text in [NETWORK, AIR, &AIR.replace(ideal, dcf)] {
        for warm_up_s in [0.0, 0.3, 1.0, 1.7] {
            let run = point(text, &format!("warm_up_s = {warm_up_s}"), 0);
            for flow in run.measures.names().filter(|name| name.ends_with(".packets_received")) {
                let received = number(&run.measures, flow);
                let sent = number(&run.measures, &flow.replace("received", "sent"));
                assert!(received <= sent && received > 0.0, "{flow}: {received} of {sent}");
            }
        }
    }
}
