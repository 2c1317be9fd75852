//! The rows in words: names of the contenders, rates and ratios for people, the headline.

use corridor_proto::Preset;
use corridor_scenario::{Congestion, Path, Row, Scenario, Transport};

/// Below this goodput, nothing was carried, bits per second.
const NOTHING_BPS: f64 = 1e3;
/// A transfer below this share of what losses leave has stalled: the few segments that it sends do
/// not queue, and their delay says nothing about the path.
const STALLED_RATIO: f64 = 0.1;
/// Payload of a full segment, and bytes of its frame: Ethernet, IPv4, TCP with timestamps.
const SEGMENT_BYTES: f64 = 1448.0;
const FRAME_BYTES: f64 = 1514.0;
/// The loss ratio that the headline is about.
const HEADLINE_LOSS: f64 = 0.2;

/// How packets are transported: one colour of the plot, for any traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// The unreliable forwarder.
    Plain,
    /// The same with BBR: another congestion control, not another contender.
    PlainBbr,
    /// Coded with the parameters of the paper.
    Paper,
    /// Coded in blocks, with our parameters.
    Blocks,
    /// Coded in window mode.
    Window,
    /// Coded in blocks, with a helper.
    Helper,
}

/// A curve of the plot, a kind of row in the table: transport and traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub crossing: Crossing,
    pub transport: Transport,
}

const fn tcp(crossing: Crossing) -> Kind {
    Kind { crossing, transport: Transport::Tcp }
}

const fn udp(crossing: Crossing) -> Kind {
    Kind { crossing, transport: Transport::Udp }
}

impl Kind {
    /// The kind with which all others are compared.
    pub const PLAIN: Kind = tcp(Crossing::Plain);
    /// The kind in the headline.
    pub const WINDOW: Kind = tcp(Crossing::Window);
    /// The TCP kinds, baseline first.
    pub const TCP: [Kind; 5] = [
        Kind::PLAIN,
        tcp(Crossing::PlainBbr),
        tcp(Crossing::Paper),
        tcp(Crossing::Blocks),
        Kind::WINDOW,
    ];
    /// The UDP kinds, baseline first.
    pub const UDP: [Kind; 4] =
        [udp(Crossing::Plain), udp(Crossing::Blocks), udp(Crossing::Helper), udp(Crossing::Window)];

    /// The kind of a row of the demo's scenario.
    pub fn of(row: &Row) -> Option<Kind> {
        let preset = row.coding.as_ref().and_then(|coding| coding.preset);
        let crossing = match (row.path, row.congestion, preset) {
            (Path::Plain, Some(Congestion::Bbr), _) => Crossing::PlainBbr,
            (Path::Plain, ..) => Crossing::Plain,
            (Path::Coded, _, Some(Preset::Paper)) => Crossing::Paper,
            (Path::Coded, _, Some(Preset::Block)) => Crossing::Blocks,
            (Path::Coded, _, Some(Preset::Window)) => Crossing::Window,
            (Path::CodedHelper, _, Some(Preset::Block)) => Crossing::Helper,
            _ => return None,
        };
        Some(Kind { crossing, transport: row.transport })
    }

    /// Its name.
    pub fn label(self) -> &'static str {
        match (self.crossing, self.transport) {
            (Crossing::Plain, Transport::Tcp) => "plain, TCP cubic",
            (Crossing::Plain, Transport::Udp) => "plain",
            (Crossing::PlainBbr, _) => "plain, TCP BBR",
            (Crossing::Paper, _) => "coded as in the paper",
            (Crossing::Blocks, _) => "coded, our blocks",
            (Crossing::Window, _) => "coded, window mode",
            (Crossing::Helper, _) => "coded, with a helper",
        }
    }
}

/// What losses leave of the radio's capacity, bits of payload per second: full frames of one
/// station back to back, times the share of them that arrives.
pub fn left_bps(scenario: &Scenario, loss_ratio: f64) -> f64 {
    let medium = &scenario.medium;
    let airtime_s = medium.overhead_us / 1e6 + 8.0 * FRAME_BYTES / medium.rate_bps as f64;
    (1.0 - loss_ratio) * 8.0 * SEGMENT_BYTES / airtime_s
}

/// Whether a TCP transfer has stalled, or nearly so.
pub fn is_stalled(scenario: &Scenario, row: &Row) -> bool {
    row.transport == Transport::Tcp
        && row.goodput_bps < STALLED_RATIO * left_bps(scenario, row.loss_ratio)
}

/// Share of sent datagrams that did not arrive.
pub fn never_arrived(row: &Row) -> Option<f64> {
    let (sent, received) = (row.packets_sent?, row.packets_received?);
    (sent > 0).then(|| 1.0 - received as f64 / sent as f64)
}

/// `50.2 %`, `0.03 %`, `none`.
pub fn share(ratio: f64) -> String {
    match 100.0 * ratio {
        ..=0.0 => "none".to_owned(),
        percent @ ..1.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.1} %"),
    }
}

/// `2 of 25 points are not valid`; `None` if all are.
pub fn doubt(rows: &[Row]) -> Option<String> {
    match (rows.iter().filter(|row| !row.valid).count(), rows.len()) {
        (0, _) => None,
        (1, count) => Some(format!("1 of {count} points is not valid")),
        (doubtful, count) => Some(format!("{doubtful} of {count} points are not valid")),
    }
}

/// The row of a kind at a loss ratio.
pub fn find(rows: &[Row], kind: Kind, loss_ratio: f64) -> Option<&Row> {
    rows.iter().find(|row| Kind::of(row) == Some(kind) && row.loss_ratio == loss_ratio)
}

/// The loss ratios of TCP rows, ascending.
pub fn tcp_losses(rows: &[Row]) -> Vec<f64> {
    let tcp = rows.iter().filter(|row| row.transport == Transport::Tcp);
    let mut losses: Vec<f64> = tcp.map(|row| row.loss_ratio).collect();
    losses.sort_by(f64::total_cmp);
    losses.dedup();
    losses
}

/// `6.81 Mbit/s`, `24 kbit/s`, `nothing`.
pub fn rate(bps: f64) -> String {
    match bps {
        ..NOTHING_BPS => "nothing".to_owned(),
        ..1e5 => format!("{:.0} kbit/s", bps / 1e3),
        _ => format!("{:.2} Mbit/s", bps / 1e6),
    }
}

/// `14 ms`, `1.9 s`; `-` for none.
pub fn delay(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(..0.9995) => format!("{:.0} ms", seconds.unwrap_or(0.0) * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

/// `x 1.3`, `x 140`; `-` where the baseline stalled.
pub fn ratio(value: f64, baseline: f64) -> String {
    if baseline < NOTHING_BPS {
        return "-".to_owned();
    }
    match value / baseline {
        ratio @ ..9.95 => format!("x {ratio:.1}"),
        ratio => format!("x {ratio:.0}"),
    }
}

/// The finding, and the number of points that are not valid.
pub fn headline(scenario: &Scenario, rows: &[Row]) -> String {
    let finding = finding(scenario, rows);
    match doubt(rows) {
        Some(doubt) => format!("{finding} ({doubt})"),
        None => finding,
    }
}

/// The main result for somebody new to Corridor, from the measured numbers.
pub fn finding(scenario: &Scenario, rows: &[Row]) -> String {
    let tcp = (find(rows, Kind::PLAIN, HEADLINE_LOSS), find(rows, Kind::WINDOW, HEADLINE_LOSS));
    if let (Some(plain), Some(coded)) = tcp {
        let place = format!("At {:.0} % frame loss", 100.0 * HEADLINE_LOSS);
        if !plain.valid || !coded.valid {
            return format!("{place}, the machine spoilt the comparison");
        }
        let (plain_rate, coded_rate) = (rate(plain.goodput_bps), rate(coded.goodput_bps));
        return if coded.goodput_bps <= plain.goodput_bps {
            format!("{place}, coding did not help TCP cubic: {coded_rate} against {plain_rate}")
        } else if plain.goodput_bps < NOTHING_BPS {
            format!("{place}, TCP cubic carries nothing; coded, it carries {coded_rate}")
        } else if is_stalled(scenario, plain) {
            format!("{place}, TCP cubic stalls at {plain_rate}; coded, it carries {coded_rate}")
        } else {
            format!("{place}, TCP cubic carries {coded_rate} coded and {plain_rate} plain")
        };
    }
    let lost = |crossing| {
        let row = rows.iter().find(|row| Kind::of(row) == Some(udp(crossing)))?;
        Some((row.loss_ratio, never_arrived(row)?))
    };
    match (lost(Crossing::Plain), lost(Crossing::Window)) {
        (Some((ratio, plain)), Some((_, coded))) => format!(
            "With {:.0} % of frames lost, {} of the packets never arrive; coded, {}",
            100.0 * ratio,
            share(plain),
            share(coded)
        ),
        _ => "Network coding on a lossy radio link".to_owned(),
    }
}
