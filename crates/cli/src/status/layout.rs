//! Statuses for people.

use std::fmt::Write;
use std::io::{self, IsTerminal};

use corridor_node::{
    Counter, MemoryStatus, OverheadStatus, OverhearingStatus, OwnStatus, PeerSince, PeerStatus,
    RelayStatus, RepairStatus, Since, Status,
};

/// Width of the labels, columns.
const LABEL: usize = 11;
/// Total width in columns, unless `COLUMNS` is set.
const WIDTH: usize = 100;

/// Overhead in bytes beyond which it says nothing about coding: redundancy is 10 at most, and
/// headers are a few times as long as the shortest packets.
const OVERHEAD_MAX: f64 = 100.0;

/// How statuses are shown.
pub struct Layout {
    colour: bool,
    counters: bool,
    width: usize,
}

#[derive(Clone, Copy)]
enum Paint {
    Node,
    Peer,
    Label,
    Problem,
}

impl Layout {
    /// For standard output: in colours on a terminal, unless `NO_COLOR` is set.
    pub fn for_stdout(counters: bool) -> Self {
        let colour = io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Layout { colour, counters, width: columns.unwrap_or(WIDTH).max(60) }
    }

    /// A node, its peers, and on request its counters. With `--watch`, the changes `since` the last
    /// refresh come first.
    pub fn text(&self, status: &Status, since: Option<&Since>) -> String {
        let mut out = String::new();
        self.title(&mut out, Paint::Node, "node", &status.name);
        for (label, value) in node_lines(status, since) {
            self.line(&mut out, label, &value);
        }
        for peer in &status.peers {
            out.push('\n');
            self.title(&mut out, Paint::Peer, "peer", &format!("station {}", peer.station));
            for (label, value) in peer_lines(status, since, peer) {
                self.line(&mut out, label, &value);
            }
            if let Some(problem) = &peer.problem {
                let label = self.paint(Paint::Problem, &format!("{:LABEL$}", "problem"));
                let room = self.width.saturating_sub(LABEL + 4);
                for (index, line) in wrap(problem, room).into_iter().enumerate() {
                    let label = if index == 0 { label.clone() } else { " ".repeat(LABEL) };
                    let _ = writeln!(out, "  {label}  {line}");
                }
            }
        }
        if self.counters {
            out.push('\n');
            self.counters(&mut out, status, since);
        }
        out
    }

    fn title(&self, out: &mut String, paint: Paint, kind: &str, name: &str) {
        let _ = writeln!(out, "{}: {name}", self.paint(paint, kind));
    }

    fn line(&self, out: &mut String, label: &str, value: &str) {
        let label = self.paint(Paint::Label, &format!("{label:LABEL$}"));
        let _ = writeln!(out, "  {label}  {value}");
    }

    fn counters(&self, out: &mut String, status: &Status, since: Option<&Since>) {
        let value = |counter: &Counter| {
            let grown = since.filter(|_| counter.is_count);
            let rate =
                grown.map(|since| format!("{}/s  ", number(since.count_per_s(&counter.name))));
            rate.unwrap_or_default() + &value_of(counter)
        };
        let widest =
            |of: &dyn Fn(&Counter) -> usize| status.counters.iter().map(of).max().unwrap_or(0);
        let names = widest(&|counter| counter.name.len());
        let values = widest(&|counter| value(counter).len());
        let room = self.width.saturating_sub(names + values + 6).max(24);
        for counter in &status.counters {
            let name = self.paint(Paint::Label, &format!("{:names$}", counter.name));
            for (index, line) in wrap(&counter.description, room).into_iter().enumerate() {
                let _ = if index == 0 {
                    writeln!(out, "  {name}  {:>values$}  {line}", value(counter))
                } else {
                    writeln!(out, "  {:names$}  {:values$}  {line}", "", "")
                };
            }
        }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Node => "1;32",
            Paint::Peer => "1;33",
            Paint::Label => "1",
            Paint::Problem => "1;31",
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn value_of(counter: &Counter) -> String {
    match &counter.value {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::Number(number) if number.is_f64() => {
            format!("{:.4}", number.as_f64().unwrap_or_default())
        }
        value => value.to_string(),
    }
}

fn node_lines(status: &Status, since: Option<&Since>) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let uptime = span(status.uptime_s);
    lines.push((
        "station",
        format!("{}, {}, {} mode, up {uptime}", status.station, status.role, status.mode),
    ));
    if let (Some(interface), Some(mtu)) = (&status.interface, status.mtu_bytes) {
        lines.push(("interface", format!("{interface}, MTU {mtu} bytes")));
    }
    let frame_len_max = status.frame_len_max_bytes;
    lines.push(("underlay", format!("{}, frames up to {frame_len_max} bytes", status.underlay)));
    if status.interface.is_some() {
        let total = |name| status.count(name).unwrap_or(0);
        let bps = since.map(|since| (since.received_bps, since.sent_bps));
        lines
            .push(("transfer", transfer((total("bytes_delivered"), total("bytes_accepted")), bps)));
    }
    let rate = status.rate_bps.map_or("as the underlay takes it".into(), |rate| bits(rate as f64));
    let duplex = if status.half_duplex { ", half-duplex" } else { "" };
    lines.push(("rate", format!("{rate}{duplex}")));
    let queue = &status.queue;
    let waiting = match queue.packets {
        0 => String::new(),
        _ => format!(", {}, {} old", bytes(queue.bytes as f64), span(queue.delay_s)),
    };
    lines.push(("queue", format!("{} of {} packets{waiting}", queue.packets, queue.packets_max)));
    if status.memory != MemoryStatus::default() {
        lines.push(("memory", memory(&status.memory)));
    }
    if let Some(grown) = status.memory_grown_bytes {
        let most = bytes(grown as f64);
        lines.push((
            "",
            format!("limit {most}, the least that all peers need: limits.memory is not set"),
        ));
    }
    if let Some(tag_bytes) = status.tag_bytes {
        let tag = match tag_bytes {
            0 => "none from end to end: the helper has the secret as well".to_owned(),
            bytes => format!("{bytes} bytes in each symbol, from end to end"),
        };
        lines.push(("tag", tag));
    }
    if let Some(relay) = &status.relay {
        relay_lines(relay, since, &mut lines);
        return lines;
    }
    repair_lines(&status.repair, since, &mut lines);
    lines.push(("overhead", overhead(&status.overhead, since.map(|since| &since.overhead))));
    lines
}

fn repair_lines(
    repair: &RepairStatus,
    since: Option<&Since>,
    lines: &mut Vec<(&'static str, String)>,
) {
    let Some(since) = since else {
        let lost = plural(repair.repaired_symbols, "lost symbol");
        lines.push(("repaired", format!("{lost}, {} not repaired", repair.given_up_symbols)));
        let (symbols, packets) =
            (plural(repair.sent_symbols, "symbol"), plural(repair.given_up_packets, "packet"));
        let spurious = repair.spurious_symbols;
        lines.push(("repair", format!("{symbols} sent, {spurious} spurious; {packets} given up")));
        return;
    };
    let per_s = |count: u64| number(count as f64 / since.span_s);
    let now = &since.repair;
    lines.push((
        "repaired",
        format!(
            "{} lost symbols/s, {}/s not repaired; in all {}, {}",
            per_s(now.repaired_symbols),
            per_s(now.given_up_symbols),
            repair.repaired_symbols,
            repair.given_up_symbols
        ),
    ));
    lines.push((
        "repair",
        format!(
            "{} symbols/s sent, {} spurious, {} packets/s given up; in all {}, {}, {}",
            per_s(now.sent_symbols),
            now.spurious_ratio().map_or("-".into(), percent),
            per_s(now.given_up_packets),
            repair.sent_symbols,
            repair.spurious_ratio().map_or("-".into(), percent),
            repair.given_up_packets
        ),
    ));
}

/// What is sent beyond the packets. If there are few packets, that is mostly the stations' periodic
/// messages, and would be thousands of percent of almost nothing.
fn overhead(overhead: &OverheadStatus, since: Option<&OverheadStatus>) -> String {
    let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), percent);
    let told = since.unwrap_or(overhead);
    let bytes = match told.bytes_ratio {
        Some(share) if share > OVERHEAD_MAX => "few packets to compare it with".to_owned(),
        share => format!("{} of the packets' bytes", ratio(share)),
    };
    let told = format!("{} of the frames, {bytes}", ratio(told.frames_ratio));
    let Some(_) = since else { return told };
    let bytes = overhead.bytes_ratio.filter(|&share| share <= OVERHEAD_MAX);
    format!("{told}; in all {}, {}", ratio(overhead.frames_ratio), ratio(bytes))
}

/// What a relay combines.
fn relay_lines(
    relay: &RelayStatus,
    since: Option<&Since>,
    lines: &mut Vec<(&'static str, String)>,
) {
    let hold = match (relay.hold_s, relay.hold_learned) {
        (0.0, _) => "nothing is held".to_owned(),
        (most, true) => format!("held up to {}", span(most)),
        (hold, false) => format!("held for {}", span(hold)),
    };
    let coding = match (&relay.idle, relay.coding) {
        (_, false) => "off".to_owned(),
        (Some(why), true) => format!("off: {why}"),
        (None, true) => format!("on, {hold}, {} now", plural(relay.held_packets as u64, "packet")),
    };
    lines.push(("coding", coding));
    let (coded, plain) = (relay.coded_frames, relay.plain_frames);
    let combined = match since {
        None => format!("{} with two packets, {plain} with one", plural(coded, "frame")),
        Some(since) => format!(
            "{} frames/s with two packets, {}/s with one; in all {coded}, {plain}",
            number(since.count_per_s("relay_frames_coded")),
            number(since.count_per_s("relay_frames_plain"))
        ),
    };
    lines.push(("combined", combined));
    lines.extend(tags(relay).map(|tags| ("tags", tags)));
    let failed = relay.failed_ratio.map_or("-".into(), percent);
    let decoded = match since {
        None => {
            let decoded = plural(relay.decoded_packets, "packet");
            format!("{decoded}, {failed} of the coded frames failed")
        }
        Some(since) => {
            let decoded = since.count_per_s("relay_packets_decoded");
            let failures = since.count_per_s("relay_decode_failures");
            let coded = decoded + failures;
            let now = (coded > 0.0).then(|| failures / coded).map_or("-".into(), percent);
            format!(
                "{} packets/s, {now} of the coded frames failed; in all {}, {failed}",
                number(decoded),
                relay.decoded_packets
            )
        }
    };
    lines.push(("decoded", decoded));
}

/// What became of packets with tags, if there are any.
fn tags(relay: &RelayStatus) -> Option<String> {
    let (ends, unnamed) = (relay.ends as u64, relay.unnamed_packets);
    let checked = (ends > 0).then(|| {
        let forged = plural(relay.forged_packets, "packet");
        let replayed = relay.replayed_packets;
        format!("with {}; {forged} dropped as forged, {replayed} as repeated", plural(ends, "end"))
    });
    let unnamed = (unnamed > 0).then(|| {
        format!("{} delivered unchecked: no [[end]] has their source", plural(unnamed, "packet"))
    });
    let said: Vec<String> = checked.into_iter().chain(unnamed).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Who overhears whom, at a neighbour of a relay.
fn overhearing_lines(of: &OverhearingStatus, lines: &mut Vec<(&'static str, String)>) {
    let here = match of.here_ratio {
        None => "too few of its frames to others to tell".to_owned(),
        Some(0.0) => "none of its frames to others".to_owned(),
        Some(share) => format!("{} of its frames to others", percent(share)),
    };
    lines.push(("overheard", here));
    let there = of.there.iter().filter(|(_, share)| *share > 0.0);
    let there: Vec<_> =
        there.map(|(node, share)| format!("station {node} {}", percent(*share))).collect();
    let there = if there.is_empty() { "nobody".to_owned() } else { there.join(", ") };
    let takes = if of.takes_coded { "" } else { "; gets no coded frames" };
    lines.push(("overhears", format!("{there}{takes}")));
}

fn peer_lines(
    status: &Status,
    since: Option<&Since>,
    peer: &PeerStatus,
) -> Vec<(&'static str, String)> {
    let endpoint = peer.endpoint.clone().unwrap_or_else(|| "not known yet".into());
    let heard = peer.last_heard_s.map_or("never".into(), |ago| format!("{} ago", span(ago)));
    let session = if peer.up { "up" } else { "none" };
    let mut lines =
        vec![("endpoint", endpoint), ("session", session.into()), ("last heard", heard)];
    if let Some(key) = &peer.public_key {
        lines.push(("public key", key.clone()));
        let agreed = peer.agreed_s.map_or("none".into(), |ago| format!("{} old", span(ago)));
        lines.push(("secret", agreed));
    }
    if let Some(left_out_s) = peer.left_out_s {
        let why = "what it sent is not what its encoder made";
        lines.push(("left out", format!("for {}: {why}", span(left_out_s))));
    }
    if let Some(round_trip_s) = peer.round_trip_s {
        lines.push(("round trip", span(round_trip_s)));
    }
    let loss = |to: &str, ratio: Option<f64>| ratio.map(|ratio| format!("{} {to}", percent(ratio)));
    let losses: Vec<_> = [loss("to it", peer.loss_ratio_to), loss("from it", peer.loss_ratio_from)]
        .into_iter()
        .flatten()
        .collect();
    if !losses.is_empty() {
        lines.push(("loss", losses.join(", ")));
    }
    if let Some(own) = &peer.own {
        let is_peer = |of: &&PeerSince| of.station == peer.station;
        own_lines(own, since.and_then(|since| since.peers.iter().find(is_peer)), &mut lines);
    }
    if let Some(overhearing) = &peer.overhearing {
        overhearing_lines(overhearing, &mut lines);
    }
    if let Some(mode) = peer.mode.as_ref().filter(|&mode| *mode != status.mode) {
        lines.push(("mode", format!("{mode}, here {}", status.mode)));
    }
    lines
}

/// The state that a hub has per peer.
fn own_lines(own: &OwnStatus, since: Option<&PeerSince>, lines: &mut Vec<(&'static str, String)>) {
    lines.push(("allowed", own.allowed.join(", ")));
    let bps = since.map(|since| (since.received_bps, since.sent_bps));
    lines.push(("transfer", transfer((own.received_bytes, own.sent_bytes), bps)));
    let rate = own.rate_bps.map_or("as the underlay takes it".into(), |rate| bits(rate as f64));
    lines.push(("rate", format!("{rate}, packets up to {} bytes", own.mtu_bytes)));
    let queue = &own.queue;
    lines.push(("queue", format!("{} of {} packets", queue.packets, queue.packets_max)));
    lines.push(("memory", memory(&own.memory)));
    if own.wrong_source_packets > 0 {
        let dropped = plural(own.wrong_source_packets, "packet");
        lines.push(("dropped", format!("{dropped} with a source that is not its own")));
    }
}

/// Bytes of packets received and sent so far; `bps`: in bits per second since the last refresh.
fn transfer((received, sent): (u64, u64), bps: Option<(f64, f64)>) -> String {
    let (all_in, all_out) = (bytes(received as f64), bytes(sent as f64));
    match bps {
        None => format!("{all_in} received, {all_out} sent"),
        Some((received_bps, sent_bps)) => {
            let (now_in, now_out) = (bits(received_bps), bits(sent_bps));
            format!("{now_in} received, {now_out} sent; in all {all_in}, {all_out}")
        }
    }
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", 100.0 * ratio)
}

/// The limits of queues and windows.
fn memory(memory: &MemoryStatus) -> String {
    let size = |size: usize| bytes(size as f64);
    format!(
        "{}: queue {}, windows {} out, {} in",
        size(memory.share_bytes),
        size(memory.queue_bytes_max),
        size(memory.sent_bytes_max),
        size(memory.received_bytes_max)
    )
}

fn bytes(bytes: f64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB"])
}

fn bits(bits_per_s: f64) -> String {
    scaled(bits_per_s, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s"])
}

/// Three digits and the suitable unit, each a thousand times the one before.
fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut at = 0;
    while value >= 999.5 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    format!("{} {}", digits(value, at == 0), units[at])
}

/// A rate of events, with at least three digits: 0 if there were none.
fn number(value: f64) -> String {
    digits(value, value == 0.0)
}

fn digits(value: f64, whole: bool) -> String {
    let places = if whole || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.places$}")
}

/// A time in the suitable unit, or two.
fn span(seconds: f64) -> String {
    let whole = seconds as u64;
    match seconds {
        ..0.0005 => format!("{:.0} us", seconds * 1e6),
        ..1.0 => format!("{} ms", digits(seconds * 1e3, false)),
        ..60.0 => format!("{seconds:.1} s"),
        ..3600.0 => format!("{} min {} s", whole / 60, whole % 60),
        ..86400.0 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86400, whole / 3600 % 24),
    }
}

/// Breaks a text into lines of at most `width` columns, at spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let fits = lines.last().is_some_and(|line| {
            line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width
        });
        if !fits {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use corridor_node::QueueStatus;

    #[test]
    fn tags_that_nobody_looks_at_are_shown() {
        let relay = |ends, unnamed_packets| RelayStatus {
            ends,
            forged_packets: 1,
            replayed_packets: 2,
            unnamed_packets,
            ..RelayStatus::default()
        };
        let checked = "with 1 end; 1 packet dropped as forged, 2 as repeated";
        assert_eq!(tags(&relay(0, 0)), None);
        assert_eq!(tags(&relay(1, 0)).as_deref(), Some(checked));
        let unchecked = "3 packets delivered unchecked: no [[end]] has their source";
        assert_eq!(tags(&relay(0, 3)).as_deref(), Some(unchecked));
        assert_eq!(tags(&relay(1, 3)), Some(format!("{checked}; {unchecked}")));
    }

    fn status() -> Status {
        let counter = |name: &str, value: u64, description: &str| Counter {
            name: name.into(),
            value: value.into(),
            description: description.into(),
            is_count: true,
        };
        Status {
            name: "home".into(),
            pid: 7,
            uptime_s: 11_530.0,
            station: 1,
            role: "endpoint".into(),
            mode: "window".into(),
            interface: Some("corridor0".into()),
            mtu_bytes: Some(1422),
            underlay: "udp on 0.0.0.0:4242".into(),
            frame_len_max_bytes: 1452,
            rate_bps: Some(11_910_000),
            half_duplex: true,
            queue: QueueStatus { packets: 12, packets_max: 1000, bytes: 16_800, delay_s: 0.0041 },
            memory: MemoryStatus {
                share_bytes: 256_000_000,
                queue_bytes_max: 24_600_000,
                sent_bytes_max: 52_000_000,
                received_bytes_max: 179_400_000,
            },
            memory_grown_bytes: None,
            repair: RepairStatus {
                repaired_symbols: 1234,
                given_up_symbols: 3,
                sent_symbols: 1301,
                spurious_symbols: 52,
                given_up_packets: 1,
            },
            overhead: OverheadStatus { frames_ratio: Some(0.061), bytes_ratio: None },
            peers: vec![PeerStatus {
                station: 2,
                up: true,
                endpoint: Some("192.0.2.2:4242".into()),
                last_heard_s: Some(0.012),
                mode: Some("window".into()),
                round_trip_s: Some(0.0042),
                loss_ratio_to: Some(0.101),
                loss_ratio_from: Some(0.0),
                public_key: Some("3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=".into()),
                agreed_s: Some(61.0),
                left_out_s: None,
                problem: None,
                own: None,
                overhearing: None,
            }],
            tag_bytes: None,
            relay: None,
            counters: vec![
                counter("bytes_accepted", 4_500_000, "Bytes of the packets taken from the host."),
                counter(
                    "bytes_delivered",
                    12_345_678,
                    "Bytes of the packets delivered to the host.",
                ),
            ],
        }
    }

    fn plain(counters: bool) -> Layout {
        Layout { colour: false, counters, width: 72 }
    }

    #[test]
    fn a_node_is_shown_in_aligned_lines() {
        let expected = "\
node: home
  station      1, endpoint, window mode, up 3 h 12 min
  interface    corridor0, MTU 1422 bytes
  underlay     udp on 0.0.0.0:4242, frames up to 1452 bytes
  transfer     12.3 MB received, 4.50 MB sent
  rate         11.9 Mbit/s, half-duplex
  queue        12 of 1000 packets, 16.8 kB, 4.10 ms old
  memory       256 MB: queue 24.6 MB, windows 52.0 MB out, 179 MB in
  repaired     1234 lost symbols, 3 not repaired
  repair       1301 symbols sent, 52 spurious; 1 packet given up
  overhead     6.1 % of the frames, - of the packets' bytes

peer: station 2
  endpoint     192.0.2.2:4242
  session      up
  last heard   12.0 ms ago
  public key   3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=
  secret       1 min 1 s old
  round trip   4.20 ms
  loss         10.1 % to it, 0.0 % from it
";
        let status = status();
        assert_eq!(plain(false).text(&status, None), expected);
    }

    #[test]
    fn a_peer_out_of_reach_is_shown_with_the_reason() {
        let mut status = status();
        status.peers[0] = PeerStatus {
            station: 2,
            problem: Some(
                "no session with station 2 for 5 s: nothing is heard of it, and its address is \
                 not known"
                    .into(),
            ),
            ..PeerStatus::default()
        };
        let text = plain(false).text(&status, None);
        let expected = "
peer: station 2
  endpoint     not known yet
  session      none
  last heard   never
  problem      no session with station 2 for 5 s: nothing is heard of
               it, and its address is not known
";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn counters_come_with_their_descriptions_within_the_width() {
        let status = status();
        let text = plain(true).text(&status, None);
        let expected = "
  bytes_accepted    4500000  Bytes of the packets taken from the host.
  bytes_delivered  12345678  Bytes of the packets delivered to the host.
";
        assert!(text.ends_with(expected), "{text}");
        assert!(text.lines().all(|line| line.len() <= 72), "{text}");
    }

    /// Figures since the start do not show what is happening now on a node that has been up for
    /// days.
    #[test]
    fn while_somebody_watches_rates_come_before_totals() {
        let (earlier, mut now) = (status(), status());
        now.uptime_s += 2.0;
        now.counters[1].value = (12_345_678 + 2_500_000).into();
        now.counters.push(Counter { value: 7.into(), ..earlier.counters[0].clone() });
        now.counters.last_mut().unwrap().name = "symbols_repaired".into();
        let since = now.since(&earlier).unwrap();
        let text = plain(true).text(&now, Some(&since));
        for line in [
            "  transfer     10.0 Mbit/s received, 0 bit/s sent; in all 14.8 MB, 4.50 MB\n",
            "  repaired     3.50 lost symbols/s, 0/s not repaired; in all 1234, 3\n",
            "  repair       0 symbols/s sent, - spurious, 0 packets/s given up; in all 1301, 4.0 %, 1\n",
            "  overhead     - of the frames, - of the packets' bytes; in all 6.1 %, -\n",
            "  bytes_delivered   1250000/s  14845678  Bytes of the packets",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    /// A node that had carried three pings printed "25517.5 % of the packets' bytes".
    #[test]
    fn overhead_is_no_share_of_next_to_nothing() {
        let of = |frames, bytes| {
            let told = OverheadStatus { frames_ratio: Some(frames), bytes_ratio: Some(bytes) };
            overhead(&told, None)
        };
        assert_eq!(of(0.35, 1.5), "35.0 % of the frames, 150.0 % of the packets' bytes");
        assert_eq!(of(0.979, 255.2), "97.9 % of the frames, few packets to compare it with");
    }

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let spans = [0.0, 0.00025, 0.0421, 0.99951, 59.94, 61.0, 3_600.0, 90_000.0];
        assert_eq!(
            spans.map(span),
            ["0 us", "250 us", "42.1 ms", "1000 ms", "59.9 s", "1 min 1 s", "1 h 0 min", "1 d 1 h"]
        );
        assert_eq!(
            [0.0, 999.0, 1000.0, 99_960.0, 12e9].map(bytes),
            ["0 B", "999 B", "1.00 kB", "100 kB", "12.0 GB"]
        );
    }

    #[test]
    fn colours_take_no_columns() {
        let layout = Layout { colour: true, ..plain(false) };
        let status = status();
        let text = layout.text(&status, None);
        assert!(text.contains("\x1b[1;32mnode\x1b[0m: home"));
        assert!(text.contains("  \x1b[1mstation    \x1b[0m  1, endpoint"));
    }
}
