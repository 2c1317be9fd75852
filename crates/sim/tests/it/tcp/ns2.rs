//! Compares with what ns-2 sends when given transmissions are lost, transmission by transmission.
//!
//! `data/ns2/drops.txt` was made with ns-2.35 by `drops.py` and `drops.tcl` beside it: one flow
//! over one link of 800 kbit/s and 100 ms each way; all times are multiples of a tick of 400 us.

use std::fmt::Write;
use std::time::Duration;

use corridor_sim::tcp::{ReceiverConfig, SenderConfig, Variant, VegasConfig};

use super::line::{Fate, Line, LineConfig};

const DROPS: &str = include_str!("../../data/ns2/drops.txt");

/// A case of the file: which transmissions are lost, and what follows.
struct Case<'a> {
    title: &'a str,
    variant: &'a str,
    window: u32,
    packets: u64,
    drops: Vec<u64>,
    lines: Vec<&'a str>,
}

fn cases() -> Vec<Case<'static>> {
    let blocks = DROPS.split("case ").skip(1);
    blocks
        .map(|block| {
            let mut lines = block.lines();
            let title = lines.next().unwrap();
            let words: Vec<&str> = title.split(' ').collect();
            let drops = words[6].split(',').filter_map(|number| number.parse().ok()).collect();
            Case {
                title,
                variant: words[0],
                window: words[2].parse().unwrap(),
                packets: words[4].parse().unwrap(),
                drops,
                lines: lines.collect(),
            }
        })
        .collect()
}

/// Replays the exchange here, and describes it in the file's words.
fn replay(case: &Case) -> String {
    let (variant, sack) = match case.variant {
        "Tahoe" => (Variant::Tahoe, false),
        "Reno" => (Variant::Reno, false),
        "NewReno" => (Variant::NewReno, false),
        "Sack" => (Variant::Sack, true),
        "Vegas" => (Variant::Vegas(VegasConfig::default()), false),
        other => panic!("{other}: expected a variant"),
    };
    let mut config = SenderConfig::ns2(variant);
    config.window_packets_max = case.window;
    config.header_bytes = 0;
    config.rto.granularity = Duration::from_micros(400);
    let drops = case.drops.clone();
    let fate = Box::new(move |is_data, number| Fate::unless(is_data && drops.contains(&number)));
    let line = LineConfig { rate_bps: 800_000, delay: Duration::from_millis(100), fate };
    let mut line = Line::new(config, ReceiverConfig::ns2(sack), line);
    line.sender.offer(case.packets);
    let mut text = String::new();
    while let Some(moment) = line.step() {
        if moment.sent.is_empty() {
            continue;
        }
        let stats = line.sender.stats();
        // ns-2's Vegas includes the inflation in its window.
        let inflation = if case.variant == "Vegas" { stats.inflation_packets } else { 0 };
        let cwnd = stats.cwnd_packets + inflation as f64;
        write!(text, "{} {cwnd:.3}", moment.at.as_nanos() / 1000).unwrap();
        moment.sent.iter().for_each(|number| write!(text, " {number}").unwrap());
        text.push('\n');
    }
    assert_eq!(line.receiver.delivered(), case.packets, "{}", case.title);
    text
}

/// Where the exchange deviates from ns-2's: the case, how many lines agree, and why.
const DEVIATIONS: [(&str, usize, &str); 10] = [
    ("Sack window 50 packets 80 drops 20,21", 24, PIPE),
    ("Sack window 50 packets 80 drops 20,21,22,23", 24, PIPE),
    ("Sack window 50 packets 80 drops 20,24,28", 24, PIPE),
    ("Sack window 50 packets 80 drops 14,15,16,17,18,19,20,21", 18, PIPE),
    ("Sack window 50 packets 80 drops 30,59,60,61", 44, PIPE),
    ("Sack window 12 packets 80 drops 20,22,30,41,50", 22, PIPE),
    ("Vegas window 50 packets 80 drops 20,21", 26, UNSENT),
    ("Vegas window 50 packets 80 drops 20,24,28", 34, UNSENT),
    (
        "Vegas window 50 packets 80 drops 1",
        2,
        "ns-2 takes time 0 for 'never', and so does not halve",
    ),
    ("Vegas window 12 packets 80 drops 20,22,30,41,50", 33, "ns-2's table of sendings wraps"),
];
/// RFC 6675 excludes packets believed lost from the pipe, and waits for three packets beyond a gap;
/// the older rule of ns-2's Sack1 does neither.
const PIPE: &str = "pipe";
/// ns-2 looks up the sending time of a packet that was never sent, and sends it twice.
const UNSENT: &str = "unsent";

fn agrees(variant: &str) {
    let mut count = 0;
    for case in cases().iter().filter(|case| case.variant == variant) {
        let ours = replay(case);
        let ours: Vec<&str> = ours.lines().collect();
        let alike =
            ours.iter().zip(&case.lines).take_while(|(ours, theirs)| ours == theirs).count();
        let all = ours.len().max(case.lines.len());
        let deviation = DEVIATIONS.iter().find(|(title, ..)| *title == case.title);
        let expected = deviation.map_or(all, |(_, alike, _)| *alike);
        let (our, their) = (ours.get(alike), case.lines.get(alike));
        assert_eq!(alike, expected, "{}: {our:?}, in ns-2 {their:?}", case.title);
        count += 1;
    }
    assert_eq!(count, 11, "cases of {variant}");
}

#[test]
fn tahoe_as_in_ns2() {
    agrees("Tahoe");
}

#[test]
fn reno_as_in_ns2() {
    agrees("Reno");
}

#[test]
fn newreno_as_in_ns2() {
    agrees("NewReno");
}

#[test]
fn sack_as_in_ns2() {
    agrees("Sack");
}

#[test]
fn vegas_as_in_ns2() {
    agrees("Vegas");
}
