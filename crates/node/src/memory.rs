//! What the log says of the memory for queues and windows: that there is more of it than by
//! default, and of what peers have fewer for want of it.

use corridor_proto::bounds::MEMORY_DEFAULT;
use corridor_proto::{AnyStation, Shortage, Station, StationId};

use crate::config::NodeConfig;

/// The ceiling, where peers take more than the default at least and the file says nothing.
pub(crate) fn grown_ceiling(config: &NodeConfig, station: &AnyStation) -> Option<usize> {
    let told = config.limits.memory_bytes;
    Some(station.memory_bytes()).filter(|&bytes| told.is_none() && bytes > MEMORY_DEFAULT)
}

/// What is to be said when these peers have come, at the start or later.
pub(crate) fn lines(
    config: &NodeConfig,
    station: &AnyStation,
    has_come: impl Fn(StationId) -> bool,
) -> Vec<String> {
    let count = station.stations().count();
    let ceiling = grown_ceiling(config, station).map(|bytes| {
        format!(
            "limits.memory is not set: using {bytes} bytes, the least that {count} peers need, \
             instead of the default of {MEMORY_DEFAULT}"
        )
    });
    let has_come = |station: &&Station| station.peers().iter().any(|peer| has_come(peer.id));
    let poorest = station.stations().filter(has_come).min_by_key(|it| it.memory().share);
    let short = poorest.filter(|it| !it.shortages().is_empty()).map(|poorest| {
        let share = poorest.memory().share;
        let whose = match station.hub() {
            Some(_) => format!("each new peer, of {count} in all, has at least {share} bytes"),
            None => format!("queues and windows have {share} bytes"),
        };
        let list: Vec<_> = poorest.shortages().iter().map(Shortage::to_string).collect();
        format!("{whose} of limits.memory, room for {}", list.join(", "))
    });
    ceiling.into_iter().chain(short).collect()
}
