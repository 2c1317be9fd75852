//! The demo's table, for somebody who has never seen Corridor.

use std::io::{self, Write};

use corridor_scenario::{Engine, Row, Scenario, Transport};

use super::findings::{Kind, delay, find, headline, rate, ratio, tcp_losses};

/// Writes headline, table and legend.
pub fn write(out: &mut impl Write, scenario: &Scenario, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "{}", headline(rows))?;
    writeln!(out)?;
    for line in setting(scenario, rows) {
        writeln!(out, "{line}")?;
    }
    for loss in tcp_losses(rows) {
        writeln!(out)?;
        let title = format!("TCP bulk transfer, {:.0} % of frames lost", 100.0 * loss);
        let kinds = Kind::TCP.map(|kind| (kind, find(rows, kind, loss)));
        write_group(out, &title, "vs cubic", &kinds)?;
    }
    let udp = Kind::UDP.map(|kind| (kind, rows.iter().find(|row| Kind::of(row) == Some(kind))));
    if let Some(title) = udp.iter().find_map(|(_, row)| row.map(|row| udp_title(row, rows))) {
        writeln!(out)?;
        write_group(out, &title, "vs plain", &udp)?;
    }
    writeln!(out)?;
    writeln!(out, "Delay: one way and in order; 95 % of what arrived was at most so late.")?;
    if rows.iter().any(|row| !row.valid) {
        writeln!(out, "(!) These numbers cannot be trusted; demo.json says why (\"notes\").")?;
    }
    Ok(())
}

/// The radio, and what carried the runs.
pub fn setting(scenario: &Scenario, rows: &[Row]) -> [String; 2] {
    let medium = &scenario.medium;
    let radio = format!(
        "One half-duplex radio of {:.0} Mbit/s with {:.0} us of overhead per frame; data and \
         feedback lost alike.",
        medium.rate_bps as f64 / 1e6,
        medium.overhead_us
    );
    let engine = match rows.first().map(|row| row.engine) {
        Some(Engine::Lab) => "Real time, the kernel's own TCP and UDP.",
        _ => "Virtual time, simulated.",
    };
    [radio, engine.to_owned()]
}

/// Load and losses of the UDP rows.
pub fn udp_title(row: &Row, rows: &[Row]) -> String {
    let offered = row.offered_bps.unwrap_or(0.0) / 1e6;
    let helper = rows.iter().find_map(|row| match (row.transport, row.e1, row.e2) {
        (Transport::Udp, Some(e1), Some(e2)) => Some((e1.max(e2), e1 == e2)),
        _ => None,
    });
    let helper = helper.map_or(String::new(), |(worst, equal)| {
        let most = if equal { "" } else { "at most " };
        format!(" ({most}{:.0} % to and from the helper)", 100.0 * worst)
    });
    let lost = 100.0 * row.loss_ratio;
    format!("UDP at {offered:.0} Mbit/s, {lost:.0} % of frames lost{helper}")
}

fn write_group(
    out: &mut impl Write,
    title: &str,
    baseline: &str,
    kinds: &[(Kind, Option<&Row>)],
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    let first = kinds.first().and_then(|(_, row)| *row).map_or(0.0, |row| row.goodput_bps);
    let head = ["", "goodput", baseline, "delay median", "delay 95 %"];
    writeln!(
        out,
        "  {:<22} {:>12} {:>11} {:>13} {:>11}",
        head[0], head[1], head[2], head[3], head[4]
    )?;
    for (kind, row) in kinds {
        let Some(row) = row else {
            writeln!(out, "  {:<22} {:>12}", kind.label(), "not measured")?;
            continue;
        };
        let mark = if row.valid { "" } else { "  (!)" };
        writeln!(
            out,
            "  {:<22} {:>12} {:>11} {:>13} {:>11}{mark}",
            kind.label(),
            rate(row.goodput_bps),
            ratio(row.goodput_bps, first),
            delay(row.delays.delay_p50_s),
            delay(row.delays.delay_p95_s),
        )?;
    }
    Ok(())
}
