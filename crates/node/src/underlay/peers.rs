//! Where the peers are: told by the configuration, or learned from what they send.

use std::fmt::Display;

use corridor_proto::StationId;
use corridor_proto::bounds::UNPROVEN_ADDRESS_FACTOR;

use super::Certainty;

/// Addresses of peers.
pub(crate) struct PeerBook<A> {
    peers: Vec<Peer<A>>,
    may_move: bool,
}

struct Peer<A> {
    id: StationId,
    place: Option<Place<A>>,
    /// Where its newest handshake came from, if not from there: it may have moved and started anew.
    candidate: Option<Place<A>>,
    /// Whether it may change: told by the configuration of an underlay where stations stay.
    fixed: bool,
    certain: bool,
}

/// An address, and what may go there.
#[derive(Clone, Copy)]
struct Place<A> {
    address: A,
    /// Bytes that may still go there before it proves that a peer is there; `None`: it has, or the
    /// configuration says so.
    allowance: Option<usize>,
}

impl<A: Copy> Place<A> {
    /// Where frames may go without limit.
    fn known(address: A) -> Self {
        Place { address, allowance: None }
    }

    /// An address of which nothing is known but that this came from there: it may be a recording,
    /// and the address that of somebody who is to be flooded.
    fn unproven(address: A, allowance: usize) -> Self {
        Place { address, allowance: Some(allowance) }
    }

    /// Takes note of a handshake frame from there, which allows for so many bytes.
    fn credit(&mut self, bytes: usize) {
        if let Some(allowance) = &mut self.allowance {
            *allowance = allowance.saturating_add(bytes);
        }
    }

    /// Whether a frame may go there; it counts as sent.
    fn charge(&mut self, len_bytes: usize) -> bool {
        let Some(allowance) = &mut self.allowance else { return true };
        let rest = allowance.checked_sub(len_bytes);
        *allowance = rest.unwrap_or(*allowance);
        rest.is_some()
    }
}

impl<A: Copy> Peer<A> {
    fn configured(id: StationId, address: Option<A>, may_move: bool) -> Self {
        Peer {
            id,
            place: address.map(Place::known),
            candidate: None,
            fixed: address.is_some() && !may_move,
            certain: address.is_some(),
        }
    }

    /// Where it is and where it may be, as far as a frame of so many bytes may go there.
    fn places(&mut self, len_bytes: usize) -> impl Iterator<Item = A> {
        let places = [&mut self.place, &mut self.candidate].into_iter().flatten();
        places.filter_map(move |place| place.charge(len_bytes).then_some(place.address))
    }
}

impl<A: Copy + PartialEq + Display> PeerBook<A> {
    /// The peers, with the addresses they were configured with. If they may move (UDP), a
    /// configured address is only where to find them first.
    pub(crate) fn new(
        configured: impl IntoIterator<Item = (StationId, Option<A>)>,
        may_move: bool,
    ) -> Self {
        let peer = |(id, address)| Peer::configured(id, address, may_move);
        PeerBook { peers: configured.into_iter().map(peer).collect(), may_move }
    }

    /// There is such a peer from now on.
    pub(crate) fn add(&mut self, station: StationId, address: Option<A>) {
        self.peers.push(Peer::configured(station, address, self.may_move));
    }

    /// There is no such peer any more.
    pub(crate) fn remove(&mut self, station: StationId) {
        self.peers.retain(|peer| peer.id != station);
    }

    /// The configuration says from now on that a station is there, or nothing of where it is: then
    /// it stays where it was last.
    pub(crate) fn configure(&mut self, station: StationId, address: Option<A>) {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == station) else { return };
        peer.fixed = address.is_some() && !self.may_move;
        if let Some(address) = address {
            (peer.place, peer.candidate, peer.certain) = (Some(Place::known(address)), None, true);
        }
    }

    /// Where a station is.
    pub(crate) fn address(&self, station: StationId) -> Option<A> {
        let peer = self.peers.iter().find(|peer| peer.id == station)?;
        peer.place.map(|place| place.address)
    }

    /// Who is at an address.
    pub(crate) fn station(&self, address: A) -> Option<StationId> {
        let is_there = |peer: &&Peer<A>| peer.place.is_some_and(|place| place.address == address);
        self.peers.iter().find(is_there).map(|peer| peer.id)
    }

    /// All addresses that a frame of so many bytes for everybody goes to, in the configuration's
    /// order: where the peers are, and where one may be by its newest handshake. An address that
    /// has proved nothing gets no more than [`UNPROVEN_ADDRESS_FACTOR`] times what came from it
    /// (RFC 9000, Section 8.1).
    pub(crate) fn addresses(&mut self, len_bytes: usize) -> impl Iterator<Item = A> {
        self.peers.iter_mut().flat_map(move |peer| peer.places(len_bytes))
    }

    /// The same of a frame for one station: where it is, and where it may be.
    pub(crate) fn places(
        &mut self,
        station: StationId,
        len_bytes: usize,
    ) -> impl Iterator<Item = A> {
        let peer = self.peers.iter_mut().find(move |peer| peer.id == station);
        peer.into_iter().flat_map(move |peer| peer.places(len_bytes))
    }

    /// Whether a handshake of a station came from elsewhere than where it is taken to be.
    pub(crate) fn may_be_elsewhere(&self, station: StationId) -> bool {
        self.peers.iter().any(|peer| peer.id == station && peer.candidate.is_some())
    }

    /// Its name says that a station is at this address: where there is none yet, that has to do;
    /// else it is a place to look for it. Whether it had not been thought to be there.
    pub(crate) fn suggest(&mut self, station: StationId, address: A) -> bool {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == station) else {
            return false;
        };
        let is_there = |place: &Place<A>| place.address == address;
        let known = peer.place.as_ref().is_some_and(is_there)
            || peer.candidate.as_ref().is_some_and(is_there);
        match peer.place {
            // The configuration names it: no stranger does.
            None => peer.place = Some(Place::known(address)),
            Some(_) if !known => peer.candidate = Some(Place::known(address)),
            Some(_) => {}
        }
        !known
    }

    /// Notes where a frame of a station came from, and its bytes. A handshake proves nothing about
    /// an address: it serves where there is none yet, and else is a place to answer handshakes to.
    /// Whether the station's frames go elsewhere from here on.
    pub(crate) fn learn(
        &mut self,
        station: StationId,
        address: A,
        certainty: Certainty,
        len_bytes: usize,
    ) -> bool {
        let Some(peer) = self.peers.iter_mut().find(|peer| peer.id == station) else {
            return false;
        };
        let proven = certainty == Certainty::Session;
        let allowance = match certainty {
            Certainty::Initiation => len_bytes,
            Certainty::Handshake | Certainty::Session => UNPROVEN_ADDRESS_FACTOR * len_bytes,
        };
        if let Some(place) = peer.place.as_mut().filter(|place| place.address == address) {
            if proven {
                *place = Place::known(address);
                peer.certain = true;
            } else {
                place.credit(allowance);
            }
            return false;
        }
        let better = match certainty {
            Certainty::Session => !peer.fixed,
            Certainty::Handshake | Certainty::Initiation => peer.place.is_none(),
        };
        if !better {
            match peer.candidate.as_mut().filter(|place| place.address == address) {
                Some(place) => place.credit(allowance),
                None if !peer.fixed => peer.candidate = Some(Place::unproven(address, allowance)),
                None => {}
            }
            return false;
        }
        peer.candidate = None;
        if peer.certain && self.may_move {
            tracing::info!("station {} has moved to {address}", station.0);
        } else {
            tracing::debug!("station {} is at {address}", station.0);
        }
        let place =
            if proven { Place::known(address) } else { Place::unproven(address, allowance) };
        peer.place = Some(place);
        peer.certain = proven;
        true
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use corridor_base::rand::{Rng, SeedableRng};
    use corridor_base::{Stream, Time};
    use corridor_proto::{
        CodingParams, Destination, FrameOutcome, Keys, LinkErrors, PeerKey, PrivateKey, Role,
        Security, Station, StationConfig,
    };

    use super::*;

    const A: StationId = StationId(1);
    const B: StationId = StationId(2);

    fn book(may_move: bool) -> PeerBook<u8> {
        PeerBook::new([(A, Some(10)), (B, None)], may_move)
    }

    #[test]
    fn a_configured_address_holds_where_stations_stay() {
        let mut book = book(false);
        book.learn(A, 11, Certainty::Session, 60);
        assert_eq!(book.address(A), Some(10));
    }

    #[test]
    fn a_configured_address_is_left_where_stations_move_but_not_for_a_handshake() {
        let mut book = book(true);
        book.learn(A, 11, Certainty::Handshake, 60);
        assert_eq!(book.address(A), Some(10));
        book.learn(A, 11, Certainty::Session, 60);
        assert_eq!(
            (book.address(A), book.station(11), book.station(10)),
            (Some(11), Some(A), None)
        );
    }

    #[test]
    fn a_handshake_serves_until_a_session_tells_better() {
        let mut book = book(false);
        book.learn(B, 20, Certainty::Handshake, 60);
        book.learn(B, 21, Certainty::Handshake, 60);
        assert_eq!(book.address(B), Some(20));
        book.learn(B, 21, Certainty::Session, 60);
        assert_eq!(book.address(B), Some(21));
        book.learn(B, 22, Certainty::Session, 60);
        assert_eq!(book.address(B), Some(22));
    }

    #[test]
    fn a_handshake_from_elsewhere_is_answered_there_too() {
        let mut book = book(true);
        book.learn(A, 11, Certainty::Handshake, 60);
        book.learn(A, 12, Certainty::Handshake, 60);
        assert_eq!(book.addresses(60).collect::<Vec<_>>(), [10, 12]);
        book.learn(A, 12, Certainty::Session, 60);
        assert_eq!(book.addresses(60).collect::<Vec<_>>(), [12]);
    }

    #[test]
    fn an_address_that_is_configured_anew_takes_the_place_of_what_was_learned() {
        for may_move in [false, true] {
            let mut book = book(may_move);
            book.learn(B, 20, Certainty::Session, 60);
            book.configure(B, Some(30));
            assert_eq!(book.address(B), Some(30));
            book.learn(B, 20, Certainty::Session, 60);
            assert_eq!(book.address(B), Some(if may_move { 20 } else { 30 }));
            book.configure(B, None);
            book.learn(B, 21, Certainty::Session, 60);
            assert_eq!(book.address(B), Some(21));
        }
    }

    #[test]
    fn the_last_good_address_stays_beside_one_that_is_only_suggested() {
        let mut book = book(true);
        assert!(book.suggest(B, 20) && !book.suggest(B, 20));
        assert_eq!(book.address(B), Some(20));
        assert!(book.learn(B, 21, Certainty::Session, 60));
        assert!(!book.suggest(B, 21) && book.suggest(B, 22) && !book.suggest(B, 22));
        assert_eq!((book.address(B), book.addresses(60).count()), (Some(21), 3));
        assert!(book.learn(B, 22, Certainty::Session, 60));
        assert_eq!(book.addresses(60).collect::<Vec<_>>(), [10, 22]);
        assert!(!book.suggest(StationId(9), 1));
    }

    #[test]
    fn strangers_are_not_taken_in() {
        let mut book = book(true);
        book.learn(StationId(9), 30, Certainty::Session, 60);
        assert_eq!((book.station(30), book.addresses(60).count()), (None, 1));
    }

    fn end(id: StationId, peer: StationId, entropy: u8) -> Station {
        end_with([7; 32].into(), (id, peer), entropy)
    }

    /// An end with a key of its own.
    fn keyed(id: StationId, station: StationId, entropy: u8) -> Station {
        let private = |id: StationId| PrivateKey::from_random([id.0 as u8; 32]);
        let peers = vec![PeerKey { station, public: private(station).public(), psk: None }];
        let keys = Keys { private: private(id), peers, started_ns: 1_000 };
        end_with(Security::Keys(Box::new(keys)), (id, station), entropy)
    }

    fn end_with(security: Security, (id, peer): (StationId, StationId), entropy: u8) -> Station {
        let config = StationConfig {
            id,
            role: Role::Endpoint { peer, helper: None },
            security,
            coding: CodingParams::window(),
            link_errors: LinkErrors::Measured,
            ingress_packets: 100,
            frame_len_max: 1_400,
            frame_len_min: 0,
            memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
            rate_bps: None,
        };
        Station::new(config, [entropy; 32], Time::ZERO).unwrap()
    }

    fn hear(station: &mut Station, book: &mut PeerBook<u8>, at: u8, now: Time, frame: &[u8]) {
        let (from, certainty) = match station.handle_frame(now, frame) {
            FrameOutcome::Accepted { from } => (from, Certainty::Session),
            FrameOutcome::Handshake { from } => (from, Certainty::Handshake),
            FrameOutcome::Initiation { from } => (from, Certainty::Initiation),
            FrameOutcome::Rejected(_) => return,
        };
        book.learn(from, at, certainty, frame.len());
    }

    /// What the station sends now, each with its address.
    fn sent(station: &mut Station, book: &mut PeerBook<u8>, now: Time) -> Vec<(u8, Vec<u8>)> {
        let mut sent = Vec::new();
        station.handle_timeout(now);
        while let Some(transmit) = station.poll_transmit(now) {
            let (to, frame) = (transmit.to, transmit.frame.to_vec());
            match to {
                Destination::All => {
                    let everywhere = book.addresses(frame.len());
                    sent.extend(everywhere.map(|at| (at, frame.clone())));
                }
                Destination::Search(peer) => {
                    let places = book.places(peer, frame.len());
                    sent.extend(places.map(|at| (at, frame.clone())));
                }
                Destination::Station(peer) => sent.extend(book.address(peer).map(|at| (at, frame))),
            }
        }
        sent
    }

    /// One recorded HELLO of 59 bytes drew 222 frames in 40 s, 17 kB, and so on for ever.
    #[test]
    fn a_recorded_handshake_draws_no_more_than_three_times_its_bytes() {
        for (known, every_ms) in [(None, u64::MAX), (Some(10), u64::MAX), (None, 1_000)] {
            let mut now = Time::ZERO;
            let recorded = end(A, B, 1).poll_transmit(now).unwrap().frame.to_vec();
            let (mut station, mut book) = (end(B, A, 2), PeerBook::new([(A, known)], true));
            let (mut heard, mut frames, mut bytes) = (0, 0, 0);
            for ms in 0..40_000 {
                now = Time::from_millis(ms);
                if ms % every_ms == 0 {
                    heard += recorded.len();
                    hear(&mut station, &mut book, 77, now, &recorded);
                }
                for (_, frame) in
                    sent(&mut station, &mut book, now).iter().filter(|(at, _)| *at == 77)
                {
                    frames += 1;
                    bytes += frame.len();
                }
            }
            println!("{heard} bytes heard, {frames} frames and {bytes} bytes sent");
            assert!(frames > 0 && bytes <= 3 * heard, "{frames} frames, {bytes} for {heard} bytes");
            assert!(every_ms < u64::MAX || frames <= 10, "{frames} frames");
        }
    }

    #[test]
    fn a_recorded_initiation_draws_no_more_than_its_bytes() {
        let recorded = keyed(A, B, 1).poll_transmit(Time::ZERO).unwrap().frame.to_vec();
        for (known, every_ms) in [(None, u64::MAX), (Some(10), 1_000), (None, 10)] {
            let (mut station, mut book) = (keyed(B, A, 2), PeerBook::new([(A, known)], true));
            let (mut heard, mut bytes) = (0, 0);
            for ms in 0..40_000 {
                let now = Time::from_millis(ms);
                if ms % every_ms == 0 {
                    heard += recorded.len();
                    hear(&mut station, &mut book, 77, now, &recorded);
                }
                let sent = sent(&mut station, &mut book, now);
                let there = sent.iter().filter(|(at, _)| *at == 77);
                bytes += there.map(|(_, frame)| frame.len()).sum::<usize>();
                assert!(bytes <= heard, "{bytes} bytes for {heard}");
            }
            assert!(bytes > 0 && !station.is_up(A));
        }
    }

    #[test]
    fn a_peer_behind_losses_gets_a_session_all_the_same() {
        for (seed, end) in
            (0..100).flat_map(|seed| [(seed, end as fn(_, _, _) -> _), (seed, keyed)])
        {
            let mut draws = Stream::from_seed([seed; 32]);
            let mut ends: [Station; 2] = [end(A, B, 1), end(B, A, 2)];
            let mut books =
                [PeerBook::new([(B, Some(20))], true), PeerBook::new([(A, None)], true)];
            let mut now = Time::ZERO;
            while !(ends[0].is_up(B) && ends[1].is_up(A)) {
                now += Duration::from_millis(1);
                assert!(now < Time::from_millis(10_000), "no session after 10 s, seed {seed}");
                for from in 0..2 {
                    for (_, frame) in sent(&mut ends[from], &mut books[from], now) {
                        let (to, at) = (1 - from, [10, 20][from]);
                        if draws.next_u32() % 100 >= 40 {
                            hear(&mut ends[to], &mut books[to], at, now, &frame);
                        }
                    }
                }
            }
        }
    }
}
