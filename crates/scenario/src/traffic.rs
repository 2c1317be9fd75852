//! Checks of tunnels and of flows' paths, and the sending times of traces.

use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use corridor_proto::Preset;

use crate::error::ScenarioError;
use crate::network::{FlowTable, NetworkTable, SourceKind, TunnelTable};
use crate::placement::{Cell, numbers};

/// Most tunnels of a network.
pub const TUNNELS_MAX: usize = 1_000;
/// Latest datagram of a trace, seconds after the flow's start.
const TRACE_S_MAX: f64 = 1_000_000.0;

/// Checks the nodes at the ends of tunnels.
pub(crate) fn check_tunnels(
    table: &NetworkTable,
    nodes: usize,
    radios: &[Cell],
) -> Result<(), ScenarioError> {
    let tunnels = &table.tunnel;
    if tunnels.len() > TUNNELS_MAX {
        let given = format!("{} tables", tunnels.len());
        let expected = format!("at most {TUNNELS_MAX}");
        return Err(ScenarioError::value("network.tunnel", given, expected));
    }
    if !tunnels.is_empty() && (table.relay.is_some() || table.routing.is_some()) {
        let expected = "nothing beside [network.relay] or [network.routing]";
        return Err(ScenarioError::value("network.tunnel", "a table", expected));
    }
    for (index, tunnel) in tunnels.iter().enumerate() {
        let field = |name: &str| format!("network.tunnel[{index}].{name}");
        let TunnelTable { between: [a, b], helper, plain, ref coding, ingress_packets } = *tunnel;
        if a == b || a.max(b) >= nodes {
            let expected = format!("two nodes from 0 to {}", nodes - 1);
            return Err(ScenarioError::value(field("between"), format!("[{a}, {b}]"), expected));
        }
        if plain && coding.is_some() {
            let expected = "nothing with plain = true";
            return Err(ScenarioError::value(field("coding"), "a table", expected));
        }
        if let Some(helper) = helper {
            check_helper((index, helper), tunnel, nodes)?;
            if !radios.iter().any(|cell| cell.nodes.contains(&helper)) {
                let expected = "a node on a radio: nothing is overheard on wires";
                return Err(ScenarioError::value(field("helper"), helper, expected));
            }
        }
        let most = corridor_proto::bounds::INGRESS_PACKETS_MAX;
        if let Some(given) = ingress_packets.filter(|given| !(1..=most).contains(given)) {
            let expected = format!("1 to {most} packets");
            return Err(ScenarioError::value(field("ingress_packets"), given, expected));
        }
    }
    Ok(())
}

/// Checks the helper of a tunnel. Which frames it can overhear is only known later.
fn check_helper(
    (index, helper): (usize, usize),
    tunnel: &TunnelTable,
    nodes: usize,
) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("network.tunnel[{index}].{name}");
    if helper >= nodes || tunnel.between.contains(&helper) {
        let expected = format!("a node from 0 to {} besides its ends", nodes - 1);
        return Err(ScenarioError::value(field("helper"), helper, expected));
    }
    if tunnel.plain {
        let expected = "nothing with plain = true: a helper recodes";
        return Err(ScenarioError::value(field("helper"), helper, expected));
    }
    let preset = tunnel.coding.as_ref().and_then(|coding| coding.preset);
    match preset {
        None | Some(Preset::Paper | Preset::Block) => Ok(()),
        Some(Preset::Window | Preset::TcpNc) => {
            let given = if preset == Some(Preset::Window) { "window" } else { "tcp-nc" };
            let expected = "paper or block where there is a helper: it recodes blocks";
            Err(ScenarioError::value(field("coding.preset"), given, expected))
        }
    }
}

/// Checks the path of a flow: its tunnel or its broadcasting, and its limit of links.
pub(crate) fn check_way(
    index: usize,
    flow: &FlowTable,
    network: &NetworkTable,
) -> Result<(), ScenarioError> {
    let field = |name: &str| format!("flow[{index}].{name}");
    if flow.links_max == Some(0) {
        return Err(ScenarioError::value(field("links_max"), 0, "1 link or more"));
    }
    if flow.broadcast {
        let foreign = [
            ("a source of datagrams", !flow.source.kind.sends_datagrams()),
            ("no tunnel", flow.tunnel.is_some()),
            ("no [network.routing]", network.routing.is_some()),
        ];
        if let Some((expected, _)) = foreign.iter().find(|(_, is_foreign)| *is_foreign) {
            let expected = format!("{expected} with it");
            return Err(ScenarioError::value(field("broadcast"), true, expected));
        }
    }
    let Some(number) = flow.tunnel else { return Ok(()) };
    let Some(tunnel) = network.tunnel.get(number) else {
        let expected = format!("a number below {}, of [[network.tunnel]]", network.tunnel.len());
        return Err(ScenarioError::value(field("tunnel"), number, expected));
    };
    let [a, b] = tunnel.between;
    if ![(a, b), (b, a)].contains(&(flow.from, flow.to)) {
        let expected = format!("one between nodes {} and {}", flow.from, flow.to);
        return Err(ScenarioError::value(field("tunnel"), number, expected));
    }
    let foreign = [
        ("tcp_nc", flow.tcp_nc.is_some()),
        ("header_bytes", flow.header_bytes.is_some()),
        ("links_max", flow.links_max.is_some()),
    ];
    if let Some((name, _)) = foreign.iter().find(|(_, is_given)| *is_given) {
        let expected = "nothing in a tunnel";
        return Err(ScenarioError::value(field(name), "a value", expected));
    }
    Ok(())
}

/// Sending times of a trace's flow after its start, with the payload bytes of each; empty for other
/// flows. Files are looked up in `directory`.
pub(crate) fn schedule(
    index: usize,
    flow: &FlowTable,
    directory: &Path,
) -> Result<Arc<[(Duration, u32)]>, ScenarioError> {
    if flow.source.kind != SourceKind::Trace {
        return Ok(Arc::default());
    }
    let field = format!("flow[{index}].source.path");
    let what = "seconds after the start, ascending, and bytes of data";
    let rows = numbers((&field, flow.source.path.as_ref()), directory, what, 2..=2)?;
    let refused = |given: String| ScenarioError::value(&field, given, what);
    let mut sent = Vec::with_capacity(rows.len());
    let mut last_s = 0.0;
    for row in &rows {
        let (at_s, bytes) = (row[0], row[1]);
        let is_sound = (last_s..=TRACE_S_MAX).contains(&at_s)
            && (1.0..=f64::from(u16::MAX)).contains(&bytes)
            && bytes.fract() == 0.0;
        if !is_sound {
            return Err(refused(format!("{at_s} {bytes}")));
        }
        last_s = at_s;
        sent.push((Duration::from_nanos((at_s * 1e9).round() as u64), bytes as u32));
    }
    if sent.is_empty() {
        return Err(refused("no line".to_owned()));
    }
    Ok(sent.into())
}
