//! Relays that combine packets of different flows, as a plan's file spells them.

pub use corridor_proto::{AdaptiveKind, RelayPreset, RelayTable};
use corridor_relay::RelayConfig;

use crate::error::ScenarioError;

/// Checks a `[network.relay]` table and converts it.
pub(crate) fn relay(table: &RelayTable) -> Result<RelayConfig, ScenarioError> {
    table.resolve().map_err(|error| {
        ScenarioError::value(format!("network.{}", error.field), error.given, error.expected)
    })
}
