//! The demo's table, for somebody new to Corridor.

use std::io::{self, Write};

use corridor_scenario::{Engine, Row, Scenario, Transport};

use super::findings::{
    Kind, delay, doubt, find, finding, is_stalled, left_bps, never_arrived, rate, ratio, share,
    tcp_losses,
};

/// Writes the finding, with the number of points that are not valid, table and legend.
pub fn write(out: &mut impl Write, scenario: &Scenario, rows: &[Row]) -> io::Result<()> {
    writeln!(out, "{}", finding(scenario, rows))?;
    if let Some(doubt) = doubt(rows) {
        writeln!(out, "({doubt})")?;
    }
    writeln!(out)?;
    for line in setting(scenario, rows) {
        writeln!(out, "{line}")?;
    }
    for loss in tcp_losses(rows) {
        writeln!(out)?;
        let left = rate(left_bps(scenario, loss));
        let title = format!(
            "TCP bulk transfer, {:.0} % of frames lost, which leaves {left} of the radio",
            100.0 * loss
        );
        let kinds = Kind::TCP.map(|kind| (kind, find(rows, kind, loss)));
        write_group(out, &title, "vs cubic", scenario, &kinds)?;
    }
    let udp = Kind::UDP.map(|kind| (kind, rows.iter().find(|row| Kind::of(row) == Some(kind))));
    if let Some(title) = udp.iter().find_map(|(_, row)| row.map(|row| udp_title(row, rows))) {
        writeln!(out)?;
        write_group(out, &title, "never came", scenario, &udp)?;
    }
    writeln!(out)?;
    writeln!(out, "Delay: one way and in order; 95 % of what arrived was at most so late.")?;
    if rows.iter().any(|row| is_stalled(scenario, row)) {
        writeln!(out, "Stalled: so little gets through that its delay says nothing of the path.")?;
    }
    if rows.iter().any(|row| !row.valid) {
        writeln!(out, "Not valid: the machine spoilt the run; demo.json says how (\"notes\").")?;
    }
    Ok(())
}

/// The radio, and the engine of the runs.
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

/// Traffic and losses of the UDP rows.
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

/// Widths of the table's columns.
fn line(cells: [&str; 5]) -> String {
    let [name, goodput, beside, median, p95] = cells;
    format!("  {name:<22} {goodput:>12} {beside:>11} {median:>13} {p95:>11}")
}

fn write_group(
    out: &mut impl Write,
    title: &str,
    beside: &str,
    scenario: &Scenario,
    kinds: &[(Kind, Option<&Row>)],
) -> io::Result<()> {
    writeln!(out, "{title}")?;
    let first = kinds.first().and_then(|(_, row)| *row).map_or(0.0, |row| row.goodput_bps);
    writeln!(out, "{}", line(["", "goodput", beside, "delay median", "delay 95 %"]))?;
    for (kind, row) in kinds {
        let Some(row) = row else {
            writeln!(out, "{}", line([kind.label(), "not measured", "", "", ""]).trim_end())?;
            continue;
        };
        let beside = match row.transport {
            Transport::Tcp => ratio(row.goodput_bps, first),
            Transport::Udp => never_arrived(row).map_or("-".to_owned(), share),
        };
        let [median, p95] = match is_stalled(scenario, row) {
            true => ["stalled".to_owned(), "stalled".to_owned()],
            false => [row.delays.delay_p50_s, row.delays.delay_p95_s].map(delay),
        };
        let cells: [&str; 5] = [kind.label(), &rate(row.goodput_bps), &beside, &median, &p95];
        let mark = if row.valid { "" } else { "  not valid" };
        writeln!(out, "{}{mark}", line(cells))?;
    }
    Ok(())
}
