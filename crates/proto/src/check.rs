//! Checks configurations.

use core::time::Duration;

use corridor_codec::{MAX_BLOCK_SIZE, MAX_WINDOW_SIZE};

use crate::bounds::{
    BLOCKS_IN_FLIGHT_MAX, FEEDBACK_INTERVAL_MAX, FRAME_LEN_MAX, INGRESS_PACKETS_MAX,
    MAX_OVERHEAD_MAX, SYMBOL_SIZE_MIN, WINDOW_SYMBOLS_MAX,
};
use crate::config::{LinkErrors, Mode, Role, STATION_NUMBER, StationConfig};
use crate::error::ConfigError;
use crate::wire;

impl StationConfig {
    /// Checks that all values are allowed.
    ///
    /// # Errors
    /// The first field out of its range, with its value and what was expected.
    pub fn check(&self) -> Result<(), ConfigError> {
        check(self)
    }
}

fn check(config: &StationConfig) -> Result<(), ConfigError> {
    check_stations(config)?;
    check_coding(config)?;
    check_frame_len(config)?;
    if let LinkErrors::Fixed(ratios) = config.link_errors {
        let named = [
            ("link_errors.e1", ratios.e1),
            ("link_errors.e2", ratios.e2),
            ("link_errors.e3", ratios.e3),
        ];
        for (field, ratio) in named {
            if !(0.0..=0.99).contains(&ratio) {
                return Err(ConfigError::new(field, ratio, "an erasure ratio from 0 to 0.99"));
            }
        }
    }
    if config.ingress_packets == 0 || config.ingress_packets > INGRESS_PACKETS_MAX {
        return Err(ConfigError::new(
            "limits.ingress_packets",
            config.ingress_packets,
            format!("1 to {INGRESS_PACKETS_MAX} packets"),
        ));
    }
    match config.rate_bps {
        Some(rate) if rate < 1_000 => {
            Err(ConfigError::new("underlay.rate_bps", rate, "at least 1000 bit/s"))
        }
        _ => Ok(()),
    }
}

fn check_stations(config: &StationConfig) -> Result<(), ConfigError> {
    let mut ids = vec![("station.id", config.id.0)];
    match config.role {
        Role::Endpoint { peer, helper } => {
            ids.push(("peer.id", peer.0));
            ids.extend(helper.map(|helper| ("peer.id", helper.0)));
        }
        Role::Helper { between: (a, b) } => ids.extend([("peer.id", a.0), ("peer.id", b.0)]),
        Role::Plain { peer } => ids.push(("peer.id", peer.0)),
        // A relay's neighbours are in a configuration of their own.
        Role::Relay => {}
    }
    for (index, &(field, id)) in ids.iter().enumerate() {
        if id == 0 {
            return Err(ConfigError::new(field, id, STATION_NUMBER));
        }
        if ids[..index].iter().any(|&(_, other)| other == id) {
            return Err(ConfigError::new(field, id, "a number no other station of the group has"));
        }
    }
    Ok(())
}

fn check_coding(config: &StationConfig) -> Result<(), ConfigError> {
    let coding = &config.coding;
    if coding.tcp_nc.is_some()
        && matches!(config.role, Role::Helper { .. } | Role::Endpoint { helper: Some(_), .. })
    {
        return Err(ConfigError::new(
            "coding.preset",
            "tcp-nc",
            "a preset of block mode where there is a helper: it recodes blocks",
        ));
    }
    if !(1..=MAX_BLOCK_SIZE).contains(&usize::from(coding.block_size)) {
        return Err(ConfigError::new(
            "coding.block_size",
            coding.block_size,
            format!("1 to {MAX_BLOCK_SIZE} symbols"),
        ));
    }
    let factors = [
        ("coding.overshoot", coding.overshoot),
        ("coding.helper_overshoot", coding.helper_overshoot),
    ];
    for (field, factor) in factors {
        if !(1.0..=10.0).contains(&factor) {
            return Err(ConfigError::new(field, factor, "a factor from 1 to 10"));
        }
    }
    if let Some(ratio) = coding.max_overhead
        && !(ratio > 0.0 && ratio <= MAX_OVERHEAD_MAX)
    {
        let expected = format!("a ratio above 0, at most {MAX_OVERHEAD_MAX}");
        return Err(ConfigError::new("coding.max_overhead", ratio, expected));
    }
    if !(1..=BLOCKS_IN_FLIGHT_MAX).contains(&coding.blocks_in_flight) {
        return Err(ConfigError::new(
            "coding.blocks_in_flight",
            coding.blocks_in_flight,
            format!("1 to {BLOCKS_IN_FLIGHT_MAX} blocks"),
        ));
    }
    let windows = [
        ("coding.window_size", coding.window_size, WINDOW_SYMBOLS_MAX),
        ("coding.window_lane", coding.window_lane, MAX_WINDOW_SIZE),
    ];
    for (field, size, most) in windows {
        if !(1..=most).contains(&usize::from(size)) {
            return Err(ConfigError::new(field, size, format!("1 to {most} symbols")));
        }
    }
    if coding.mode == Mode::Window
        && matches!(config.role, Role::Helper { .. } | Role::Endpoint { helper: Some(_), .. })
    {
        return Err(ConfigError::new(
            "coding.preset",
            "window",
            "a preset of block mode where there is a helper: it recodes blocks",
        ));
    }
    let spans = [
        ("coding.encoder_timeout_ms", coding.encoder_timeout),
        ("coding.delivery_deadline_ms", coding.delivery_deadline),
        ("coding.ack_interval_ms", coding.ack_interval),
    ];
    for (field, span) in spans {
        if !(Duration::from_millis(1)..=FEEDBACK_INTERVAL_MAX).contains(&span) {
            return Err(ConfigError::new(field, span.as_millis(), "1 to 60000 ms"));
        }
    }
    Ok(())
}

fn check_frame_len(config: &StationConfig) -> Result<(), ConfigError> {
    if !(576..=FRAME_LEN_MAX).contains(&config.frame_len_max) {
        return Err(ConfigError::new(
            "underlay MTU",
            config.frame_len_max,
            format!("576 to {FRAME_LEN_MAX} bytes"),
        ));
    }
    if matches!(config.role, Role::Plain { .. } | Role::Relay) || config.coding.tcp_nc.is_some() {
        return Ok(());
    }
    let most =
        wire::symbol_size_max(config.frame_len_max, &config.coding, config.role.is_recoded());
    let given = usize::from(config.coding.symbol_size);
    if most < SYMBOL_SIZE_MIN || (given != 0 && !(SYMBOL_SIZE_MIN..=most).contains(&given)) {
        return Err(ConfigError::new(
            "coding.symbol_size",
            config.coding.symbol_size,
            format!(
                "{SYMBOL_SIZE_MIN} to {most} bytes, or 0 for {most}: frames of {} less {} of header, coding vector and tags",
                config.frame_len_max,
                config.frame_len_max - most
            ),
        ));
    }
    Ok(())
}
