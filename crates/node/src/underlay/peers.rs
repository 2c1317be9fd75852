//! Where the peers are: told by the configuration, or learned from what they send.

use std::fmt::Display;

use corridor_proto::StationId;

use super::Certainty;

/// Addresses of peers.
pub(crate) struct PeerBook<A> {
    peers: Vec<Peer<A>>,
    may_move: bool,
}

struct Peer<A> {
    id: StationId,
    address: Option<A>,
    /// Where its newest handshake came from, if not from there: it may have moved and started anew.
    candidate: Option<A>,
    /// Whether it may change: told by the configuration of an underlay where stations stay.
    fixed: bool,
    certain: bool,
}

impl<A: Copy + PartialEq + Display> PeerBook<A> {
    /// The peers, with the addresses they were configured with. If they may move (UDP), a
    /// configured address is only where to find them first.
    pub(crate) fn new(
        configured: impl IntoIterator<Item = (StationId, Option<A>)>,
        may_move: bool,
    ) -> Self {
        let peer = |(id, address): (StationId, Option<A>)| Peer {
            id,
            address,
            candidate: None,
            fixed: address.is_some() && !may_move,
            certain: address.is_some(),
        };
        PeerBook { peers: configured.into_iter().map(peer).collect(), may_move }
    }

    /// Where a station is.
    pub(crate) fn address(&self, station: StationId) -> Option<A> {
        self.peers.iter().find(|peer| peer.id == station)?.address
    }

    /// Who is at an address.
    pub(crate) fn station(&self, address: A) -> Option<StationId> {
        self.peers.iter().find(|peer| peer.address == Some(address)).map(|peer| peer.id)
    }

    /// All addresses that a frame for everybody goes to, in the configuration's order: where the
    /// peers are, and where one may be by its newest handshake.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = A> {
        self.peers.iter().flat_map(|peer| [peer.address, peer.candidate]).flatten()
    }

    /// Notes where a frame of a station came from. A handshake proves nothing about an address: it
    /// serves where there is none yet, and else is a place to answer handshakes to.
    pub(crate) fn learn(&mut self, station: StationId, address: A, certainty: Certainty) {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == station) else { return };
        if peer.address == Some(address) {
            peer.certain |= certainty == Certainty::Session;
            return;
        }
        let better = match certainty {
            Certainty::Session => !peer.fixed,
            Certainty::Handshake => peer.address.is_none(),
        };
        if !better {
            if !peer.fixed {
                peer.candidate = Some(address);
            }
            return;
        }
        peer.candidate = None;
        if peer.certain && self.may_move {
            tracing::info!("station {} has moved to {address}", station.0);
        } else {
            tracing::debug!("station {} is at {address}", station.0);
        }
        peer.address = Some(address);
        peer.certain = certainty == Certainty::Session;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: StationId = StationId(1);
    const B: StationId = StationId(2);

    fn book(may_move: bool) -> PeerBook<u8> {
        PeerBook::new([(A, Some(10)), (B, None)], may_move)
    }

    #[test]
    fn a_configured_address_holds_where_stations_stay() {
        let mut book = book(false);
        book.learn(A, 11, Certainty::Session);
        assert_eq!(book.address(A), Some(10));
    }

    #[test]
    fn a_configured_address_is_left_where_stations_move_but_not_for_a_handshake() {
        let mut book = book(true);
        book.learn(A, 11, Certainty::Handshake);
        assert_eq!(book.address(A), Some(10));
        book.learn(A, 11, Certainty::Session);
        assert_eq!(
            (book.address(A), book.station(11), book.station(10)),
            (Some(11), Some(A), None)
        );
    }

    #[test]
    fn a_handshake_serves_until_a_session_tells_better() {
        let mut book = book(false);
        book.learn(B, 20, Certainty::Handshake);
        book.learn(B, 21, Certainty::Handshake);
        assert_eq!(book.address(B), Some(20));
        book.learn(B, 21, Certainty::Session);
        assert_eq!(book.address(B), Some(21));
        book.learn(B, 22, Certainty::Session);
        assert_eq!(book.address(B), Some(22));
    }

    #[test]
    fn a_handshake_from_elsewhere_is_answered_there_too() {
        let mut book = book(true);
        book.learn(A, 11, Certainty::Handshake);
        book.learn(A, 12, Certainty::Handshake);
        assert_eq!(book.addresses().collect::<Vec<_>>(), [10, 12]);
        book.learn(A, 12, Certainty::Session);
        assert_eq!(book.addresses().collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn strangers_are_not_taken_in() {
        let mut book = book(true);
        book.learn(StationId(9), 30, Certainty::Session);
        assert_eq!((book.station(30), book.addresses().count()), (None, 1));
    }
}
