//! The effective settings of a point, presets and defaults included, to compare with publications.

use corridor_air::dcf::RateControl;
use corridor_air::radio::{Links, MacConfig, Rate};
use corridor_air::wpan::{Backoff, UNIT_SYMBOLS, WpanConfig};
use corridor_relay::{Hold, RelayConfig};
use corridor_scenario::{Air, FlowTable, Load, Network, Point, Value};

use crate::plan::SimError;
use crate::plan::tcp::tcp_ends;
use crate::tcp::{
    COAP_SPREAD, COAP_TIMEOUT, LOSS_WINDOW_PACKETS, RtoEstimator, SenderConfig, SenderSettings,
};

/// Names and values; the order does not matter.
type Settings = Vec<(String, Value)>;

/// The settings of a point's network: numbers in the units at the end of their names, and lists of
/// numbers as comma-separated text. Empty for a load that is not a network.
///
/// # Errors
/// [`SimError::Tcp`] for invalid TCP settings of a flow.
pub fn settings(point: &Point) -> Result<Settings, SimError> {
    let mut all = Settings::new();
    let Load::Network(network) = &point.load else { return Ok(all) };
    set_network(&mut all, network);
    for (index, flow) in network.flows.iter().enumerate() {
        set_flow(&mut all, index, flow)?;
    }
    Ok(all)
}

fn put(all: &mut Settings, name: impl Into<String>, value: impl Into<Value>) {
    all.push((name.into(), value.into()));
}

fn set_network(all: &mut Settings, network: &Network) {
    put(all, "nodes", network.nodes as u64);
    put(all, "duration_s", network.duration.as_secs_f64());
    put(all, "warm_up_s", network.warm_up.as_secs_f64());
    if let Some(Air::Mac(medium)) = network.air() {
        let powers = medium.radio.stations.iter().map(|station| station.power_dbm);
        put(all, "radio.power_dbm", powers.fold(f64::NEG_INFINITY, f64::max));
        put(all, "radio.receiver_sensitivity_dbm", medium.radio.receiver.sensitivity_dbm);
        if let Links::Positions { metres, .. } = &medium.radio.links {
            for (axis, name) in ["x", "y"].into_iter().enumerate() {
                let most = metres.iter().map(|place| place[axis]).fold(0.0, f64::max);
                put(all, format!("extent_{name}_m"), most);
            }
        }
        match &medium.mac {
            MacConfig::Wpan(config) => set_wpan(all, config),
            MacConfig::Dcf(config) => {
                let rates = match &config.rates {
                    RateControl::Minstrel(rates) => rates.as_slice(),
                    RateControl::Fixed(rate) => core::slice::from_ref(rate),
                };
                let words: Vec<String> = rates.iter().map(|rate| rate.bps().to_string()).collect();
                put(all, "radio.rates_bps", words.join(","));
            }
        }
    }
    if let Some(relay) = &network.relay {
        set_relay(all, relay);
    }
}

fn set_wpan(all: &mut Settings, config: &WpanConfig) {
    put(all, "radio.rates_bps", Rate::Oqpsk250.bps().to_string());
    put(all, "radio.retries", u64::from(config.retries));
    put(all, "radio.ack_wait_ms", config.ack_wait.as_secs_f64() * 1e3);
    let range = |least: u32, most: u32| format!("{least},{most}");
    let (first, later) = match &config.backoff {
        Backoff::Exponential { min_be, max_be, .. } => {
            let most = |exponent: &u32| ((1 << exponent) - 1) * UNIT_SYMBOLS;
            (range(0, most(min_be)), range(0, most(max_be)))
        }
        Backoff::TinyOs { initial_symbols: first, congestion_symbols: later, .. } => {
            (range(*first.start(), *first.end()), range(*later.start(), *later.end()))
        }
    };
    put(all, "radio.backoff_first_symbols", first);
    put(all, "radio.backoff_last_symbols", later);
}

fn set_relay(all: &mut Settings, relay: &RelayConfig) {
    let hold_s = match relay.hold {
        Hold::None => 0.0,
        Hold::Fixed(most) | Hold::Learned { most } | Hold::Waits { most } => most.as_secs_f64(),
    };
    put(all, "relay.coding", relay.coding);
    put(all, "relay.hold_ms", hold_s * 1e3);
    put(all, "relay.decode_for_ms", relay.decode_for.as_secs_f64() * 1e3);
    put(all, "relay.retries_per_second", u64::from(relay.retries_per_second));
    put(all, "relay.resend", relay.resend);
    put(all, "relay.repair", relay.repair);
    put(all, "relay.in_order", relay.in_order);
}

fn set_flow(all: &mut Settings, index: usize, flow: &FlowTable) -> Result<(), SimError> {
    if flow.source.kind.sends_datagrams() {
        return Ok(());
    }
    let tcp = flow.tcp.clone().unwrap_or_default();
    let lens_bytes = (flow.payload_bytes, flow.header_bytes);
    let (sender, _) =
        tcp_ends(&tcp, lens_bytes).map_err(|source| SimError::Tcp { flow: index, source })?;
    let SenderSettings::Classic(sender) = sender else { return Ok(()) };
    let name = |name: &str| format!("flow.{index}.{name}");
    put(all, name("payload_bytes"), u64::from(sender.payload_bytes));
    put(all, name("header_bytes"), u64::from(sender.header_bytes));
    if let Some(packets) = flow.source.packets {
        let bytes = packets.saturating_mul(u64::from(sender.payload_bytes));
        put(all, name("transfer_bytes"), bytes);
    }
    put(all, name("tcp.window_packets_max"), u64::from(sender.window_packets_max));
    put(all, name("tcp.window_packets_after_timeout"), u64::from(LOSS_WINDOW_PACKETS));
    set_rto(all, &name("tcp.rto"), &sender);
    Ok(())
}

fn set_rto(all: &mut Settings, name: &str, sender: &SenderConfig) {
    let rto = &sender.rto;
    put(all, format!("{name}_initial_ms"), rto.initial.as_secs_f64() * 1e3);
    put(all, format!("{name}_min_ms"), rto.min.as_secs_f64() * 1e3);
    put(all, format!("{name}_granularity_ms"), rto.granularity.as_secs_f64() * 1e3);
    match rto.estimator {
        RtoEstimator::FirstSample { k } => put(all, format!("{name}_over_first_rtt"), u64::from(k)),
        RtoEstimator::Coap { .. } => {
            put(all, format!("{name}_least_s"), COAP_TIMEOUT.as_secs_f64());
            put(all, format!("{name}_most_s"), (COAP_TIMEOUT + COAP_SPREAD).as_secs_f64());
        }
        RtoEstimator::Smoothed { .. } | RtoEstimator::Fixed(_) => {}
    }
}
