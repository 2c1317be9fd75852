//! What the rows say, in words: what a path is called, a rate and a ratio for people, the headline.

use corridor_proto::Preset;
use corridor_scenario::{Congestion, Path, Row, Transport};

/// Below this, a transfer counts as stalled, bits per second.
const STALLED_BPS: f64 = 1e3;
/// The loss ratio that the headline is about.
const HEADLINE_LOSS: f64 = 0.2;

/// One line of a picture, one kind of row in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP cubic over the unreliable forwarder.
    PlainCubic,
    /// TCP BBR over the unreliable forwarder.
    PlainBbr,
    /// TCP cubic over the coded link, with the parameters of the paper.
    CodedPaper,
    /// TCP cubic over the coded link, in blocks, with ours.
    CodedDefault,
    /// TCP cubic over the coded link, in window mode.
    Window,
    /// UDP over the unreliable forwarder.
    UdpPlain,
    /// UDP over the coded link.
    UdpCoded,
    /// UDP over the coded link with a helper.
    UdpHelper,
}

impl Kind {
    /// The TCP kinds, baseline first.
    pub const TCP: [Kind; 5] =
        [Kind::PlainCubic, Kind::PlainBbr, Kind::CodedPaper, Kind::CodedDefault, Kind::Window];
    /// The UDP kinds, baseline first.
    pub const UDP: [Kind; 3] = [Kind::UdpPlain, Kind::UdpCoded, Kind::UdpHelper];

    /// The kind of a row of the demo's scenario.
    pub fn of(row: &Row) -> Option<Kind> {
        let preset = row.coding.as_ref().map(|coding| coding.preset);
        match (row.transport, row.path, row.congestion, preset) {
            (Transport::Tcp, Path::Plain, Some(Congestion::Cubic), _) => Some(Kind::PlainCubic),
            (Transport::Tcp, Path::Plain, Some(Congestion::Bbr), _) => Some(Kind::PlainBbr),
            (Transport::Tcp, Path::Coded, _, Some(Preset::Paper)) => Some(Kind::CodedPaper),
            (Transport::Tcp, Path::Coded, _, Some(Preset::Default)) => Some(Kind::CodedDefault),
            (Transport::Tcp, Path::Coded, _, Some(Preset::Window)) => Some(Kind::Window),
            (Transport::Udp, Path::Plain, ..) => Some(Kind::UdpPlain),
            (Transport::Udp, Path::Coded, ..) => Some(Kind::UdpCoded),
            (Transport::Udp, Path::CodedHelper, ..) => Some(Kind::UdpHelper),
            _ => None,
        }
    }

    /// What it is called.
    pub fn label(self) -> &'static str {
        match self {
            Kind::PlainCubic => "plain, TCP cubic",
            Kind::PlainBbr => "plain, TCP BBR",
            Kind::CodedPaper => "coded as in the paper",
            Kind::CodedDefault => "coded, our blocks",
            Kind::Window => "coded, window mode",
            Kind::UdpPlain => "plain",
            Kind::UdpCoded => "coded",
            Kind::UdpHelper => "coded + helper",
        }
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
        ..STALLED_BPS => "nothing".to_owned(),
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
    if baseline < STALLED_BPS {
        return "-".to_owned();
    }
    match value / baseline {
        ratio @ ..9.95 => format!("x {ratio:.1}"),
        ratio => format!("x {ratio:.0}"),
    }
}

/// What a newcomer should take home, from the numbers as they are.
pub fn headline(rows: &[Row]) -> String {
    let goodput = |kind, loss| find(rows, kind, loss).map(|row| row.goodput_bps);
    let tcp = (goodput(Kind::PlainCubic, HEADLINE_LOSS), goodput(Kind::Window, HEADLINE_LOSS));
    if let (Some(plain), Some(coded)) = tcp {
        let place = format!("At {:.0} % frame loss", 100.0 * HEADLINE_LOSS);
        let (plain_rate, coded_rate) = (rate(plain), rate(coded));
        return if coded <= plain {
            format!("{place}, coding did not help TCP cubic: {coded_rate} against {plain_rate}")
        } else if plain < STALLED_BPS {
            format!("{place}, TCP cubic carries nothing; coded, it carries {coded_rate}")
        } else if plain < coded / 10.0 {
            format!("{place}, TCP cubic stalls at {plain_rate}; coded, it carries {coded_rate}")
        } else {
            format!("{place}, TCP cubic carries {coded_rate} coded and {plain_rate} plain")
        };
    }
    let udp = |kind| rows.iter().find(|row| Kind::of(row) == Some(kind));
    match (udp(Kind::UdpPlain), udp(Kind::UdpHelper)) {
        (Some(plain), Some(helped)) => format!(
            "With {:.0} % of frames lost, coding with a helper delivers {}; the plain link, {}",
            100.0 * plain.loss_ratio,
            rate(helped.goodput_bps),
            rate(plain.goodput_bps)
        ),
        _ => "Network coding on a lossy radio link".to_owned(),
    }
}
