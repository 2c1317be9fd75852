//! Log lines about a station's events.

use corridor_proto::Event;

/// Logs an event that changes nothing at this node.
pub(crate) fn log(event: &Event) {
    match event {
        Event::SessionUp { peer, restarted: false } => {
            tracing::info!("session with station {} is up", peer.0);
        }
        Event::SessionUp { peer, restarted: true } => {
            tracing::info!("session with station {} is up again: the station restarted", peer.0);
        }
        Event::PeerSilent { peer } => tracing::warn!("station {} stopped responding", peer.0),
        Event::PeerGone { peer } => tracing::info!("station {} shut down", peer.0),
        Event::HelperLeftOut { helper, flow, is_proven, span } => tracing::warn!(
            "helper {} {} sent symbols that do not match those of station {}: nothing of them was \
             delivered, ignoring the helper for {} s",
            helper.0,
            if *is_proven { "has" } else { "is suspected to have" },
            flow.0,
            span.as_secs()
        ),
        Event::BlocksTooLong { peer, block_bytes } => tracing::warn!(
            "cannot receive from station {}: one of its blocks takes {block_bytes} bytes, more \
             than limits.memory allows",
            peer.0
        ),
        Event::RowsForged { flow } => tracing::warn!(
            "dropped coded symbols that station {} did not make: their sender has its secret, as \
             only its helper and this station should",
            flow.0
        ),
        Event::PacketForged { from } => tracing::warn!(
            "dropped a packet from {from}: its tag is wrong; it was altered, or its sender has no \
             [[end]] for this station"
        ),
        Event::PacketRepeated { from } => tracing::warn!(
            "dropped a packet from {from}: it is a replay, or its sender's clock was set back, in \
             which case all its packets are dropped until the clock is right"
        ),
        // The run loop acts on these, and logs that.
        Event::ModeDiffers { .. } | Event::PathMtu { .. } => {}
    }
}
