//! Statuses in Prometheus' text format, version 0.0.4, for node_exporter's textfile collector.
//!
//! Counters come from the node's one table, with their descriptions. Their names follow Prometheus'
//! conventions: a base unit as suffix, and `_total` for values that only grow.

use std::collections::BTreeMap;
use std::fmt::Write;

use corridor_node::{Counter, PeerStatus, QueueStatus, Status};

/// Metrics with the same name.
struct Family {
    help: String,
    kind: Kind,
    /// Labels as they are written, and values.
    samples: Vec<(String, f64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

/// Families by name.
#[derive(Default)]
struct Exposition(BTreeMap<String, Family>);

/// Everything that these nodes count and measure.
pub fn text(nodes: &[Status]) -> String {
    let mut exposition = Exposition::default();
    for node in nodes {
        exposition.add_node(node);
    }
    exposition.text()
}

impl Exposition {
    fn add_node(&mut self, node: &Status) {
        let interface = node.interface.as_deref().unwrap_or_default();
        let labels = [("node", node.name.as_str()), ("interface", interface)];
        let station = node.station.to_string();
        let about = [("station", &*station), ("role", &*node.role), ("mode", &*node.mode)];
        let about: Vec<_> = labels.into_iter().chain(about).collect();
        self.gauge("info", "What the node is; the value is 1.", &about, Some(1.0));
        let of = &labels[..];
        self.gauge("uptime_seconds", "Time since the node started.", of, Some(node.uptime_s));
        let mtu = node.mtu_bytes.map(|mtu| mtu as f64);
        self.gauge("mtu_bytes", "MTU of the TUN device.", of, mtu);
        let frame_len = node.frame_len_max_bytes as f64;
        self.gauge("frame_max_bytes", "Longest frame.", of, Some(frame_len));
        self.queue("", &node.queue, of);
        for counter in &node.counters {
            self.counter(counter, of);
        }
        for peer in &node.peers {
            let station = peer.station.to_string();
            self.add_peer(peer, &[labels[0], labels[1], ("peer", &*station)]);
        }
    }

    fn add_peer(&mut self, peer: &PeerStatus, of: &[(&str, &str)]) {
        let up = Some(f64::from(u8::from(peer.up)));
        self.gauge("peer_up", "Frames can be exchanged with the peer.", of, up);
        let ago = "Time since the peer was heard.";
        self.gauge("peer_last_heard_seconds", ago, of, peer.last_heard_s);
        let round_trip = "Round trip to the peer through the tunnel, smoothed.";
        self.gauge("peer_round_trip_seconds", round_trip, of, peer.round_trip_s);
        for (direction, ratio) in [("to", peer.loss_ratio_to), ("from", peer.loss_ratio_from)] {
            let of: Vec<_> = of.iter().copied().chain([("direction", direction)]).collect();
            self.gauge("peer_loss_ratio", "Share of frames to or from the peer lost.", &of, ratio);
        }
        let Some(own) = &peer.own else { return };
        self.queue("peer_", &own.queue, of);
        let counts = [
            ("peer_received_bytes_total", "Bytes of packets of the peer.", own.received_bytes),
            ("peer_sent_bytes_total", "Bytes of packets for the peer.", own.sent_bytes),
            (
                "peer_packets_wrong_source_total",
                "Packets of the peer dropped because their source is not in its networks.",
                own.wrong_source_packets,
            ),
        ];
        for (name, help, count) in counts {
            self.add(name, help, Kind::Counter, of, count as f64);
        }
    }

    fn queue(&mut self, of_whom: &str, queue: &QueueStatus, of: &[(&str, &str)]) {
        let values = [
            ("packets", "Packets that wait in ingress queues.", queue.packets as f64),
            ("max_packets", "Packets that may wait there.", queue.packets_max as f64),
            ("bytes", "Bytes that wait there.", queue.bytes as f64),
            ("delay_seconds", "Longest wait of a packet there.", queue.delay_s),
        ];
        for (what, help, value) in values {
            self.gauge(&format!("{of_whom}queue_{what}"), help, of, Some(value));
        }
    }

    fn counter(&mut self, counter: &Counter, of: &[(&str, &str)]) {
        let value = match &counter.value {
            serde_json::Value::Bool(value) => Some(f64::from(u8::from(*value))),
            value => value.as_f64(),
        };
        // Metrics that have not been measured yet have no value.
        let Some(value) = value else { return };
        let (name, factor) = metric_name(&counter.name, counter.is_count);
        let kind = if counter.is_count { Kind::Counter } else { Kind::Gauge };
        self.add(&name, &counter.description, kind, of, value * factor);
    }

    fn gauge(&mut self, name: &str, help: &str, of: &[(&str, &str)], value: Option<f64>) {
        if let Some(value) = value {
            self.add(name, help, Kind::Gauge, of, value);
        }
    }

    fn add(&mut self, name: &str, help: &str, kind: Kind, of: &[(&str, &str)], value: f64) {
        let labels = of.iter().filter(|(_, value)| !value.is_empty());
        let labels: Vec<String> =
            labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value, true))).collect();
        let new = || Family { help: help.to_owned(), kind, samples: Vec::new() };
        let family = self.0.entry(format!("corridor_{name}")).or_insert_with(new);
        family.samples.push((labels.join(","), value));
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (name, family) in &self.0 {
            let kind = if family.kind == Kind::Counter { "counter" } else { "gauge" };
            let _ = writeln!(out, "# HELP {name} {}", escaped(&family.help, false));
            let _ = writeln!(out, "# TYPE {name} {kind}");
            for (labels, value) in &family.samples {
                let _ = writeln!(out, "{name}{{{labels}}} {value}");
            }
        }
        out
    }
}

/// The name of a counter by Prometheus' conventions, without its prefix, and the factor for its
/// values: the unit is a base unit, and is a suffix.
fn metric_name(name: &str, is_count: bool) -> (String, f64) {
    let (mut words, mut unit, mut factor) = (Vec::new(), None, 1.0);
    for word in name.split('_') {
        let (base, of) = match word {
            "bytes" => ("bytes", 1.0),
            "s" => ("seconds", 1.0),
            "us" => ("seconds", 1e-6),
            "bps" => ("bytes_per_second", 1.0 / 8.0),
            _ => {
                words.push(word);
                continue;
            }
        };
        (unit, factor) = (Some(base), of);
    }
    words.extend(unit);
    words.extend(is_count.then_some("total"));
    (words.join("_"), factor)
}

/// Escapes labels and descriptions.
fn escaped(text: &str, is_quoted: bool) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n");
    if is_quoted { text.replace('"', "\\\"") } else { text }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use corridor_node::{OwnStatus, counters_of_all_kinds};

    /// Parses the text format, and checks what promtool would object to.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        let mut samples = BTreeMap::new();
        let mut families = BTreeSet::new();
        let mut lines = text.lines().peekable();
        while let Some(help) = lines.next() {
            let (name, said) = help.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
            assert!(said.len() > 5 && families.insert(name.to_owned()), "{help}");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
            let words: Vec<&str> = name.split('_').collect();
            let is_word = |word: &&str| {
                !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
            };
            assert!(words.iter().all(is_word), "{name}");
            for abbreviated in ["s", "ms", "us", "ns", "bps", "bits", "kb", "mb"] {
                assert!(!words.contains(&abbreviated), "{name}");
            }
            let last = words.iter().rev().find(|word| **word != "total").unwrap();
            for unit in ["seconds", "bytes"] {
                assert!(!words.contains(&unit) || *last == unit || *last == "second", "{name}");
            }
            while let Some(sample) = lines.next_if(|line| !line.starts_with('#')) {
                let (series, value) = sample.rsplit_once(' ').unwrap();
                let labels = series.strip_prefix(name).unwrap();
                assert!(labels.starts_with("{node=\"") && labels.ends_with("\"}"), "{sample}");
                let value: f64 = value.parse().unwrap();
                assert!(value.is_finite() && samples.insert(series.to_owned(), value).is_none());
            }
        }
        samples
    }

    fn node(name: &str) -> Status {
        let count = |counter: &str, value: serde_json::Value, is_count| Counter {
            name: counter.into(),
            value,
            description: "Something \\ counted.".into(),
            is_count,
        };
        let own = OwnStatus { received_bytes: 12, ..OwnStatus::default() };
        Status {
            name: name.into(),
            interface: Some("corridor0".into()),
            uptime_s: 2.5,
            counters: vec![
                count("bytes_accepted", 4_500_000.into(), true),
                count("datagrams_held_us", 1_500_000.into(), true),
                count("rate_bps", 8_000.into(), false),
                count("half_duplex", true.into(), false),
                count("nothing_yet", serde_json::Value::Null, false),
            ],
            peers: vec![PeerStatus {
                station: 2,
                up: true,
                loss_ratio_to: Some(0.1),
                own: Some(own),
                ..PeerStatus::default()
            }],
            ..Status::default()
        }
    }

    #[test]
    fn what_nodes_count_is_told_in_base_units_with_labels() {
        let samples = parse(&text(&[node("home"), node("a \"b\"")]));
        for (series, value) in [
            ("corridor_accepted_bytes_total{node=\"home\",interface=\"corridor0\"}", 4.5e6),
            ("corridor_datagrams_held_seconds_total{node=\"home\",interface=\"corridor0\"}", 1.5),
            ("corridor_rate_bytes_per_second{node=\"home\",interface=\"corridor0\"}", 1e3),
            ("corridor_half_duplex{node=\"home\",interface=\"corridor0\"}", 1.0),
            ("corridor_uptime_seconds{node=\"a \\\"b\\\"\",interface=\"corridor0\"}", 2.5),
            ("corridor_peer_up{node=\"home\",interface=\"corridor0\",peer=\"2\"}", 1.0),
            (
                "corridor_peer_loss_ratio{node=\"home\",interface=\"corridor0\",peer=\"2\",\
                 direction=\"to\"}",
                0.1,
            ),
            (
                "corridor_peer_received_bytes_total{node=\"home\",interface=\"corridor0\",\
                 peer=\"2\"}",
                12.0,
            ),
        ] {
            assert_eq!(samples.get(series), Some(&value), "{series} in {samples:#?}");
        }
        assert!(!samples.keys().any(|series| series.contains("nothing_yet")));
    }

    /// Any counter added to the table later has a name that Prometheus accepts, and that no other
    /// has.
    #[test]
    fn every_counter_there_is_has_a_name_of_its_own_that_follows_the_conventions() {
        let counters = counters_of_all_kinds();
        let many = counters.len();
        let value = |counter: Counter| Counter { value: 1.into(), ..counter };
        let counters = counters.into_iter().map(value).collect();
        let all = Status { counters, ..node("all") };
        let counted = parse(&text(&[Status { counters: Vec::new(), ..all.clone() }])).len();
        assert_eq!(parse(&text(&[all])).len(), counted + many);
    }
}
