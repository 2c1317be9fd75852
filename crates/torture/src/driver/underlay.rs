//! The path of frames that a station sends: its underlay, the network, and stations that overhear.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::{Destination, Station, StationId};

use super::{Driver, Happening, Origin};
use crate::addresses::{Address, THIEF};
use crate::coverage::Feature;
use crate::invariants::{Broken, Invariant, ensure};
use crate::network::Passage;
use crate::scenario::PAIR_NUMBERS;
use crate::subject::Subject;
use crate::underlay::{Posted, Room};

impl Driver<'_> {
    pub(super) fn has_room(&mut self, station: usize) -> bool {
        let (now, scenario) = (self.now, self.scenario);
        let is_own = |at: u8| usize::from(at) == station;
        let room = self.seats[station].underlay.room(now, scenario, is_own);
        if let Room::Stalls(until) = room {
            self.coverage.add(Feature::Stalls, 1);
            self.happen(until, Happening::Room { station });
        }
        room == Room::Some
    }

    pub(super) fn send(
        &mut self,
        from: usize,
        to: Destination,
        frame: Vec<u8>,
    ) -> Result<(), Broken> {
        let seat = &mut self.seats[from];
        let local = self.now + seat.ahead;
        let (least, most) = (seat.config.frame_len_min, seat.underlay.frame_len());
        ensure((least..=most).contains(&frame.len()), Invariant::Bounds, || {
            format!("station {from} sent {} bytes, expected {least} to {most}", frame.len())
        })?;
        if let Destination::Station(StationId(id)) = to {
            let own = seat.place.id.0;
            let is_of_pair = id / PAIR_NUMBERS == own / PAIR_NUMBERS;
            ensure(id != own && is_of_pair, Invariant::Bounds, || {
                format!("station {from} sends to station number {id}")
            })?;
        }
        let frame = self.bend(from, frame);
        let sent_at = self.depart(from, &frame)?;
        self.say(format_args!("{from} sends {} bytes to {to:?}", frame.len()));
        if let Some(internet) = &mut self.network.internet {
            for (peer, address) in internet.book(from).route(local, to, &frame)? {
                if let Some(trace) = &mut self.trace {
                    trace(self.now, format_args!("{from} sends to {} at {address}", peer.0));
                }
                self.post(sent_at, (from, peer), address, &frame);
            }
        } else {
            for hearer in (0..self.seats.len()).filter(|&hearer| hearer != from) {
                self.cast(sent_at, (from, hearer), &frame);
            }
        }
        self.overhear(&frame);
        Ok(())
    }

    /// The frame that a malicious helper sends in place of its own.
    fn bend(&mut self, from: usize, frame: Vec<u8>) -> Vec<u8> {
        let seat = &self.seats[from];
        let lies_ppm = self.scenario.lies_ppm(seat.place.pair);
        let lies = lies_ppm > 0 && seat.place.end.is_none() && !self.network.is_calm();
        let subject = seat.subject.as_ref().filter(|_| lies);
        let Some(secret) = subject.and_then(|subject| subject.station().secret()) else {
            return frame;
        };
        let Some(bent) = self.liars.bend(from, secret, &frame, lies_ppm) else { return frame };
        self.coverage.add(Feature::RowsBent, 1);
        bent
    }

    /// A frame takes its time on its station's underlay. Returns when it has left.
    fn depart(&mut self, from: usize, frame: &[u8]) -> Result<Time, Broken> {
        let scenario = self.scenario;
        let seat = &mut self.seats[from];
        seat.frames_sent += 1;
        let station = seat.subject.as_ref().map(Subject::station);
        let cut = station.map_or(&[][..], Station::cut_chunk);
        let secret = station.and_then(Station::secret);
        if self.books.sent(from, frame, cut, secret)? {
            let is_helper = seat.place.end.is_none();
            let of = if is_helper { Feature::SessionsHelper } else { Feature::SessionsEnd };
            self.coverage.add(of, 1);
        }
        let seat = &mut self.seats[from];
        let sent_at = seat.underlay.depart(self.now, frame.len(), scenario.network.rate_bps);
        self.happen(sent_at, Happening::Room { station: from });
        Ok(sent_at)
    }

    /// Sends a challenge if one is due. Returns whether it did.
    pub(super) fn ask(&mut self, station: usize) -> Result<bool, Broken> {
        let seat = &mut self.seats[station];
        let local = self.now + seat.ahead;
        let (Some(subject), Some(internet)) = (&mut seat.subject, &mut self.network.internet)
        else {
            return Ok(false);
        };
        let is_up = |peer| subject.station().is_up(peer);
        let Some(asked) = internet.book(station).poll_challenge(local, is_up) else {
            return Ok(false);
        };
        let Some(frame) = subject.challenge(asked.station, asked.token) else { return Ok(false) };
        internet.book(station).ask(local, asked, frame.len())?;
        self.coverage.add(Feature::AddressesAsked, 1);
        let sent_at = self.depart(station, &frame)?;
        self.say(format_args!("{station} asks {} at {}", asked.station.0, asked.address));
        self.post(sent_at, (station, asked.station), asked.address, &frame);
        self.overhear(&frame);
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
        let passage = self.network.carry(self.now, self.scenario, from, hearer);
        for delay in self.note_passage(passage, hearer) {
            let (bytes, origin) = (frame.to_vec(), Origin::Station);
            self.happen(at + delay, Happening::Datagram { from: source, to, bytes, origin });
        }
        if !self.network.is_calm() {
            self.tamper(at, from, hearer, frame);
        }
    }

    /// A frame on a shared medium reaches a receiver, or not.
    fn cast(&mut self, at: Time, (from, hearer): (usize, usize), frame: &[u8]) {
        let passage = self.network.carry(self.now, self.scenario, from, hearer);
        for delay in self.note_passage(passage, hearer) {
            self.fly(at + delay, (from, hearer), frame.to_vec(), Origin::Station);
        }
        if !self.network.is_calm() {
            self.tamper(at, from, hearer, frame);
        }
    }

    /// Counts the fate of a frame in flight. Returns the delays of its copies.
    fn note_passage(&mut self, passage: Passage, hearer: usize) -> Vec<Duration> {
        let Passage::Arrives(delay, again) = passage else {
            self.coverage.add(Feature::FramesLost, 1);
            self.say(format_args!("  lost on the way to {hearer}"));
            return Vec::new();
        };
        if delay > Duration::from_micros(self.scenario.network.delay_us.into()) {
            self.coverage.add(Feature::FramesLate, 1);
        }
        self.coverage.add(Feature::FramesDuplicated, u64::from(again.is_some()));
        [delay].into_iter().chain(again).collect()
    }

    /// A frame that claims to be from a station arrives at another.
    fn fly(&mut self, at: Time, (from, to): (usize, usize), bytes: Vec<u8>, origin: Origin) {
        let what = match &mut self.network.internet {
            None => Happening::Frame { to, bytes, origin },
            Some(internet) => {
                let (from, to) = (internet.forged_from(from), internet.address(to));
                Happening::Datagram { from, to, bytes, origin }
            }
        };
        self.happen(at, what);
    }

    /// Gives the adversaries a turn after a frame from one station to another.
    fn tamper(&mut self, at: Time, from: usize, hearer: usize, frame: &[u8]) {
        let scenario = self.scenario;
        let delay = Duration::from_micros(scenario.network.delay_us.into());
        if let Some(stranger) = &mut self.stranger
            && stranger.strikes(scenario.forged_ppm)
        {
            let to = stranger.aim(hearer, self.seats.len());
            let forged = stranger.forge(at, from, frame, &scenario.forgeries);
            if let Some((bytes, forged)) = forged {
                self.coverage.add(Feature::FramesForged, 1);
                let origin = if forged { Origin::Forged } else { Origin::Echo };
                self.fly(at + delay, (from, to), bytes, origin);
            }
        }
        if let Some(insider) = &mut self.insider
            && insider.strikes(scenario.insider_ppm)
            && let Some(bytes) = insider.forge()
        {
            self.coverage.add(Feature::FramesInsider, 1);
            self.fly(at + delay, (from, hearer), bytes, Origin::Insider);
        }
    }

    fn overhear(&mut self, frame: &[u8]) {
        if let Some(stranger) = &mut self.stranger {
            stranger.hear(frame);
        }
        if let Some(insider) = &mut self.insider {
            insider.hear(frame);
        }
    }
}
