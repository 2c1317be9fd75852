//! The path of frames that nodes send: underlays, the network, and adversaries that alter frames.

use corridor_base::Time;
use corridor_base::rand::Rng;
use corridor_proto::wire::{HEADER_LEN, TAG_LEN};
use corridor_proto::{Destination, StationId};

use super::{HELD_UP_MAX, Happening, MeshDriver, Origin, RECORDED_MAX};
use crate::addresses::{Address, THIEF};
use crate::adversary::is_same_exchange;
use crate::coverage::Feature;
use crate::invariants::{Broken, Invariant, ensure};
use crate::mesh::{Mesh, MeshKind};
use crate::network::Passage;
use crate::scenario::Forgery;
use crate::underlay::{Posted, Room};

impl MeshDriver<'_> {
    pub(super) fn has_room(&mut self, node: usize) -> bool {
        let (now, scenario) = (self.now, self.scenario);
        let stalled = scenario.stalls.iter().map(|stall| stall.station);
        let own: Vec<u8> = stalled.filter(|&station| self.node(station) == node).collect();
        let room = self.seats[node].underlay.room(now, scenario, |at| own.contains(&at));
        if let Room::Stalls(until) = room {
            self.happen(until, Happening::Room(node));
        }
        room == Room::Some
    }

    pub(super) fn send(
        &mut self,
        from: usize,
        to: Destination,
        frame: Vec<u8>,
    ) -> Result<(), Broken> {
        let most = self.seats[from].underlay.frame_len();
        ensure(frame.len() <= most, Invariant::Bounds, || {
            format!("node {from} sent {} bytes, expected {most} at most", frame.len())
        })?;
        let of = match to {
            Destination::Station(id) | Destination::Search(id) => id.0,
            Destination::All => 0,
        };
        let frame = self.bend(from, frame);
        let end = self.depart((from, of), &frame)?;
        if let Some(internet) = &mut self.network.internet {
            for (peer, address) in
                internet.book(from).route(self.now + self.seats[from].ahead, to, &frame)?
            {
                self.post(end, (from, peer), address, &frame);
            }
            return Ok(());
        }
        for hearer in 0..self.seats.len() {
            if !self.mesh.hears(hearer, from) {
                continue;
            }
            let meant = match to {
                Destination::All => true,
                Destination::Station(id) | Destination::Search(id) => id == Mesh::id(hearer),
            };
            // Relays overhear everything; others sometimes overhear frames for others.
            let overhears = self.mesh.kind == MeshKind::RelayRow || self.dice.below(8) == 0;
            if meant || overhears {
                self.carry((from, hearer), end, None, &frame);
            }
        }
        Ok(())
    }

    /// The frame that a malicious relay, the second one, sends in place of its own.
    fn bend(&mut self, from: usize, frame: Vec<u8>) -> Vec<u8> {
        let lies_ppm = self.mesh.lies_ppm();
        if lies_ppm == 0 || from != 1 || self.network.is_calm() {
            return frame;
        }
        let station = self.seats[from].station.as_ref();
        let Some(relay) = station.and_then(|station| station.relay()) else { return frame };
        let Some(secret) = relay.secret() else { return frame };
        let Some(bent) = self.liar.bend_packet(from, secret, &frame, lies_ppm) else {
            return frame;
        };
        self.coverage.add(Feature::PacketsBent, 1);
        bent
    }

    /// A frame takes its time on its node's underlay. Returns when it has left.
    fn depart(&mut self, (from, to): (usize, u16), frame: &[u8]) -> Result<Time, Broken> {
        let station = self.seats[from].station.as_ref();
        let is_hub = station.is_some_and(|station| station.hub().is_some());
        // A hub has a session for each of its neighbours.
        if self.nonces.sent((from, if is_hub { to } else { 0 }), frame)? {
            let feature = match (is_hub, self.mesh.kind) {
                (true, _) => Feature::SessionsHub,
                (false, MeshKind::RelayRow) => Feature::SessionsRelay,
                (false, _) => Feature::SessionsEnd,
            };
            self.coverage.add(feature, 1);
        }
        let rate_bps = self.scenario.network.rate_bps;
        let end = self.seats[from].underlay.depart(self.now, frame.len(), rate_bps);
        self.happen(end, Happening::Room(from));
        if self.recorded.len() < RECORDED_MAX && self.dice.below(4) == 0 {
            self.recorded.push((self.now, frame.to_vec()));
        }
        if let Some(insider) = &mut self.insider {
            insider.unseal(frame, &mut Vec::new());
        }
        Ok(end)
    }

    /// Sends a challenge if one is due. Returns whether it did.
    pub(super) fn ask(&mut self, node: usize) -> Result<bool, Broken> {
        let seat = &mut self.seats[node];
        let local = self.now + seat.ahead;
        let (Some(station), Some(internet)) = (&mut seat.station, &mut self.network.internet)
        else {
            return Ok(false);
        };
        let is_up = |peer| station.is_up(peer);
        let Some(asked) = internet.book(node).poll_challenge(local, is_up) else {
            return Ok(false);
        };
        let Some(frame) = station.challenge(asked.station, asked.token) else { return Ok(false) };
        let frame = frame.to_vec();
        internet.book(node).ask(local, asked, frame.len())?;
        self.coverage.add(Feature::AddressesAsked, 1);
        let end = self.depart((node, asked.station.0), &frame)?;
        self.say(format_args!("{node} asks {} at {}", asked.station.0, asked.address));
        self.post(end, (node, asked.station), asked.address, &frame);
        Ok(true)
    }

    /// Sends a frame for a peer to an address.
    fn post(&mut self, at: Time, (from, peer): (usize, StationId), to: Address, frame: &[u8]) {
        let Some(posted) = self.network.post((from, peer), to) else { return };
        let Posted { hearer, from: source, to, is_copied } = posted;
        if is_copied {
            // It arrives before the original.
            self.coverage.add(Feature::FramesCopied, 1);
            let (bytes, origin) = (frame.to_vec(), Origin::Echo);
            self.happen(at, Happening::Datagram { from: THIEF, to, bytes, origin });
        }
        self.carry((from, hearer), at, Some((source, to)), frame);
    }

    /// A frame arrives at a node, or at an address from another one.
    fn arrive(
        &mut self,
        at: Time,
        hearer: usize,
        addresses: Option<(Address, Address)>,
        (bytes, origin): (Vec<u8>, Origin),
    ) {
        let what = match addresses {
            Some((from, to)) => Happening::Datagram { from, to, bytes, origin },
            None => Happening::Frame { to: hearer, bytes, origin },
        };
        self.happen(at, what);
    }

    /// Takes a frame to a receiver, with what adversaries make of it.
    fn carry(
        &mut self,
        (from, to): (usize, usize),
        at: Time,
        addresses: Option<(Address, Address)>,
        frame: &[u8],
    ) {
        match self.network.carry(self.now, self.scenario, from, to) {
            Passage::Lost => self.coverage.add(Feature::FramesLost, 1),
            Passage::Arrives(first, second) => {
                self.arrive(at + first, to, addresses, (frame.to_vec(), Origin::Station));
                if let Some(second) = second {
                    self.coverage.add(Feature::FramesDuplicated, 1);
                    self.arrive(at + second, to, addresses, (frame.to_vec(), Origin::Echo));
                }
            }
        }
        if self.network.is_calm() {
            return;
        }
        if self.dice.chance(self.scenario.forged_ppm)
            && let Some((bytes, origin)) = self.forge(frame)
        {
            self.coverage.add(Feature::FramesForged, 1);
            let internet = self.network.internet.as_mut();
            let elsewhere = internet.map(|it| (it.forged_from(from), it.address(to)));
            self.arrive(at, to, elsewhere, (bytes, origin));
        }
        if self.dice.chance(self.scenario.insider_ppm)
            && let Some(bytes) = self.lie(frame)
        {
            self.coverage.add(Feature::FramesInsider, 1);
            self.arrive(at, to, addresses, (bytes, Origin::Insider));
        }
    }

    fn forge(&mut self, frame: &[u8]) -> Option<(Vec<u8>, Origin)> {
        if self.scenario.forgeries.is_empty() {
            return None;
        }
        let means = self.dice.pick(&self.scenario.forgeries);
        let at = self.dice.0.next_u64() as usize;
        let mut bent = frame.to_vec();
        match means {
            Forgery::FlippedBit => bent[at % frame.len()] ^= 1 << (at % 8),
            Forgery::Truncated => bent.truncate(at % frame.len()),
            Forgery::Extended => bent.extend_from_slice(&frame[..1 + at % frame.len()]),
            Forgery::Noise => {
                bent = vec![0; at % 100];
                self.dice.0.fill_bytes(&mut bent);
            }
            Forgery::NoiseBehindHeader => self.dice.0.fill_bytes(&mut bent[HEADER_LEN..]),
            Forgery::Spliced => {
                let (_, other) = self.recorded.get(at % RECORDED_MAX)?;
                bent.truncate(HEADER_LEN);
                bent.extend_from_slice(other.get(HEADER_LEN..).unwrap_or_default());
                let is_new = bent != frame && bent != *other;
                return Some((bent, if is_new { Origin::Forged } else { Origin::Echo }));
            }
            Forgery::Replayed | Forgery::OtherKey => {
                let (since, frame) = self.recorded.get(at % RECORDED_MAX)?.clone();
                let is_late = self.now - since > HELD_UP_MAX;
                return Some((frame, if is_late { Origin::HeldUp } else { Origin::Echo }));
            }
        }
        let origin = if is_same_exchange(frame, &bent) { Origin::Echo } else { Origin::Forged };
        Some((bent, origin))
    }

    /// A correctly sealed frame with false contents.
    fn lie(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let insider = self.insider.as_mut()?;
        let mut clear = Vec::new();
        insider.unseal(frame, &mut clear)?;
        let mut body = clear.get(HEADER_LEN..clear.len().checked_sub(TAG_LEN)?)?.to_vec();
        let at = self.dice.0.next_u64() as usize;
        match self.dice.below(5) {
            0 => body.truncate(at % (body.len() + 1)),
            1 => body.extend_from_slice(&frame[..at % frame.len()]),
            // Lengths and kinds are at the front.
            2 => {
                let len = body.len().clamp(1, 24);
                *body.get_mut(at % len)? ^= 1 << (at / 32 % 8);
            }
            3 => {
                let len = body.len().max(1);
                *body.get_mut(at % len)? = (at >> 16) as u8;
            }
            _ => self.dice.0.fill_bytes(&mut body),
        }
        insider.reseal(frame, &body)
    }
}
