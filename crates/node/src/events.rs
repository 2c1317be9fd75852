//! Log lines about a station's events.

use corridor_proto::Event;

/// Logs an event that changes nothing at this node.
pub(crate) fn log(event: &Event) {
    match event {
        Event::SessionUp { peer, restarted: false } => {
            tracing::info!("session with station {} is up", peer.0);
        }
        Event::SessionUp { peer, restarted: true } => {
            tracing::info!("session with station {} is up again: it was restarted", peer.0);
        }
        Event::PeerSilent { peer } => tracing::warn!("station {} has fallen silent", peer.0),
        Event::PeerGone { peer } => tracing::info!("station {} has ended", peer.0),
        Event::HelperLeftOut { helper, flow, is_proven, span } => tracing::warn!(
            "helper {} {} sent what is not made of what station {} sends: nothing of it was \
             delivered, and the helper is left out for {} s",
            helper.0,
            if *is_proven { "has" } else { "is suspected to have" },
            flow.0,
            span.as_secs()
        ),
        Event::BlocksTooLong { peer, block_bytes } => tracing::warn!(
            "nothing of station {} gets through here: a block of it takes {block_bytes} bytes, and \
             limits.memory has no room for its blocks",
            peer.0
        ),
        Event::RowsForged { flow } => tracing::warn!(
            "coded symbols in the name of station {} are not its own, and nothing of them was \
             delivered: who seals them has its secret, as its helper has, and this station",
            flow.0
        ),
        Event::PacketForged { from } => tracing::warn!(
            "a packet from {from} was dropped: it is not what its end has sent, or that end does \
             not name this one in an [[end]] of its file"
        ),
        Event::PacketRepeated { from } => tracing::warn!(
            "a packet from {from} was dropped: it came before, or the clock of its end is behind \
             what it was in a run before, and nothing of it is taken until that clock is right"
        ),
        // The run loop acts on these, and logs that.
        Event::ModeDiffers { .. } | Event::PathMtu { .. } => {}
    }
}
