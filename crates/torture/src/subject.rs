//! A station under test, and faults that can be planted in it to show that the checks work.

use corridor_base::Time;
use corridor_proto::bounds::EMPTIED_BLOCKS_MAX;
use corridor_proto::inspect::Inspection;
use corridor_proto::wire::{ChallengeToken, HEADER_LEN, Header};
use corridor_proto::{Destination, Event, FrameOutcome, PacketOutcome, Station, StationId, Stats};
use serde::{Deserialize, Serialize};

/// Offset of the counter in a frame's header.
const COUNTER_AT: usize = HEADER_LEN - 4;

/// A fault, the station that has it, and after how many opportunities it occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plant {
    /// What it does wrong.
    pub fault: Fault,
    /// Which station.
    pub station: u8,
    /// Opportunities that pass before.
    pub after: u32,
}

/// What a faulty station does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Delivers a packet to its host twice.
    RepeatsPacket,
    /// Delivers two packets in the wrong order.
    SwapsPackets,
    /// Drops a packet.
    LosesPacket,
    /// Flips a bit of a packet.
    BendsPacket,
    /// Counts a delivered symbol as given up.
    CountsTooMuch,
    /// No longer counts packets as given up.
    CountsTooLittle,
    /// No longer asks for timers.
    ForgetsTimers,
    /// Forever asks for a timer in the past.
    AsksForThePast,
    /// Asks for one timer after another without doing anything.
    Fidgets,
    /// Stops sending.
    FallsSilent,
    /// Repeats its last frame over and over.
    Babbles,
    /// Sends a frame too long for its underlay.
    SendsTooLong,
    /// Panics.
    Panics,
    /// Accepts forged frames.
    Trusts,
    /// Loses a dimension of each of its blocks.
    ForgetsRank,
    /// Assumes that its peer has everything.
    BelievesAll,
    /// Remembers more finished blocks than allowed.
    Hoards,
    /// Grants itself unlimited transmissions.
    Squanders,
    /// Holds more received data than its share of memory allows.
    Overdraws,
    /// Keeps a part of a chunk that its peer has not split.
    KeepsParts,
    /// Accepts longer chunks than its peer sends.
    TakesLonger,
    /// Seals two frames with the same nonce.
    RepeatsNonce,
    /// Sends to the address from which the peer's last frame came.
    FollowsAtOnce,
    /// Sends any amount to an address.
    Floods,
    /// Restarts the sessions of all members of a hub when one of them is removed.
    StartsMembersAnew,
}

impl Plant {
    /// Bends what is seen of parts in a node of a mesh, if it is this one's fault.
    pub(super) fn bend_parts(self, node: usize, view: &mut Inspection) {
        if usize::from(self.station) == node {
            self.fault.bend_parts(view);
        }
    }
}

impl Fault {
    /// Bends what is seen of parts, if it is about them.
    fn bend_parts(self, view: &mut Inspection) {
        for of in &mut view.parts {
            of.bytes += usize::from(self == Fault::KeepsParts);
            of.chunk_len_max += usize::from(self == Fault::TakesLonger);
        }
    }
}

/// A station, and optionally a fault.
pub(super) struct Subject {
    station: Station,
    fault: Option<Fault>,
    /// Opportunities that still have to pass.
    patience: u32,
    /// A packet held back until another has overtaken it.
    held: Option<Vec<u8>>,
    /// A packet to deliver next.
    ready: Option<Vec<u8>>,
    last_frame: Option<(Time, Destination, Vec<u8>)>,
    /// Up to when it has asked for timers, for the fault that asks for more.
    fidgets: Time,
    miscounted: Option<u64>,
}

impl Subject {
    pub(super) fn new(station: Station, plant: Option<Plant>) -> Self {
        Subject {
            station,
            fault: plant.map(|plant| plant.fault),
            patience: plant.map_or(0, |plant| plant.after),
            held: None,
            ready: None,
            last_frame: None,
            fidgets: Time::ZERO,
            miscounted: None,
        }
    }

    /// Whether this fault occurs now. Counts the opportunity.
    fn strikes(&mut self, fault: Fault) -> bool {
        if self.fault != Some(fault) {
            return false;
        }
        if self.patience > 0 {
            self.patience -= 1;
            return false;
        }
        true
    }

    fn strikes_once(&mut self, fault: Fault) -> bool {
        let strikes = self.strikes(fault);
        if strikes {
            self.fault = None;
        }
        strikes
    }

    pub(super) fn station(&self) -> &Station {
        &self.station
    }

    pub(super) fn set_session_frames(&mut self, frames: u32) {
        self.station.set_session_frames(frames);
    }

    pub(super) fn reach_out(&mut self, now: Time, calls: bool) {
        self.station.reach_out(now, calls);
    }

    pub(super) fn note_path_changed(&mut self, now: Time) {
        self.station.note_path_changed(now);
    }

    pub(super) fn limit_frames(&mut self, now: Time, len: usize) {
        self.station.limit_frames(now, len);
    }

    pub(super) fn challenge(&mut self, to: StationId, token: ChallengeToken) -> Option<Vec<u8>> {
        self.station.challenge(to, token).map(<[u8]>::to_vec)
    }

    pub(super) fn set_rekey_interval(&mut self, interval: core::time::Duration) {
        self.station.set_rekey_interval(interval);
    }

    pub(super) fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
        self.station.handle_packet(now, packet)
    }

    pub(super) fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome {
        if self.strikes(Fault::Panics) {
            panic!("a planted panic");
        }
        let outcome = self.station.handle_frame(now, frame);
        let refused = matches!(outcome, FrameOutcome::Rejected(_));
        if refused && self.strikes(Fault::Trusts) {
            return FrameOutcome::Accepted { from: StationId(1) };
        }
        outcome
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        self.fidgets = now;
        self.station.handle_timeout(now);
    }

    pub(super) fn poll_packet(&mut self) -> Option<Vec<u8>> {
        if let Some(ready) = self.ready.take() {
            return Some(ready);
        }
        let mut packet = self.station.poll_packet()?.to_vec();
        if let Some(held) = self.held.take() {
            self.ready = Some(held);
        } else if self.strikes_once(Fault::RepeatsPacket) {
            self.ready = Some(packet.clone());
        } else if self.strikes_once(Fault::BendsPacket) {
            packet[0] ^= 1;
        } else if self.strikes_once(Fault::LosesPacket) {
            return self.poll_packet();
        } else if self.strikes_once(Fault::SwapsPackets) {
            self.held = Some(packet);
            return self.poll_packet();
        }
        Some(packet)
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.station.poll_event()
    }

    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<(Destination, Vec<u8>)> {
        if self.strikes(Fault::FallsSilent) {
            return None;
        }
        let babbles = self.fault == Some(Fault::Babbles);
        let Some(transmit) = self.station.poll_transmit(now) else {
            let (at, to, frame) = self.last_frame.as_mut().filter(|_| babbles)?;
            if now.since(*at).as_millis() < 50 {
                return None;
            }
            *at = now;
            return Some((*to, frame.clone()));
        };
        let (to, mut frame) = (transmit.to, transmit.frame.to_vec());
        if babbles {
            self.last_frame = Some((now, to, frame.clone()));
        }
        if Header::parse(&frame).is_some_and(|header| header.counter > 1)
            && self.strikes_once(Fault::RepeatsNonce)
        {
            frame[COUNTER_AT..HEADER_LEN].copy_from_slice(&1_u32.to_be_bytes());
        }
        if self.strikes(Fault::SendsTooLong) {
            frame.resize(self.station.config().frame_len_max + 1, 0);
        }
        Some((to, frame))
    }

    pub(super) fn poll_timeout(&self) -> Option<Time> {
        let due = self.station.poll_timeout();
        let ripe = self.patience == 0;
        match self.fault {
            Some(Fault::ForgetsTimers) => None,
            Some(Fault::AsksForThePast) if ripe => Some(Time::ZERO),
            Some(Fault::Fidgets) => {
                let next = self.fidgets + core::time::Duration::from_micros(10);
                Some(due.map_or(next, |due| due.min(next)))
            }
            _ => due,
        }
    }

    pub(super) fn stats(&mut self) -> Stats {
        let mut stats = self.station.stats().clone();
        match self.fault {
            Some(Fault::CountsTooMuch) if stats.packets_delivered > 0 => {
                stats.symbols_given_up += 1;
            }
            Some(Fault::CountsTooLittle) => {
                stats.symbols_given_up = *self.miscounted.get_or_insert(stats.symbols_given_up);
            }
            _ => {}
        }
        stats
    }

    pub(super) fn inspect(&mut self) -> Inspection {
        let mut view = self.station.inspect();
        match self.fault {
            Some(Fault::Hoards) => {
                let decoder = view.decoder.iter_mut();
                decoder.for_each(|decoder| decoder.emptied_blocks += EMPTIED_BLOCKS_MAX + 1);
            }
            Some(Fault::Overdraws) => view.held.received += self.station.memory().received,
            Some(fault @ (Fault::KeepsParts | Fault::TakesLonger)) => fault.bend_parts(&mut view),
            Some(Fault::ForgetsRank) => {
                let open = view.decoder.iter_mut().flat_map(|decoder| &mut decoder.blocks);
                for block in open.flatten().filter(|block| block.rank > 1) {
                    block.rank -= 2 * usize::from(self.patience == 0).min(block.rank / 2);
                    self.patience = self.patience.saturating_sub(1);
                }
            }
            Some(Fault::BelievesAll) => {
                let open = view.encoder.iter_mut().flat_map(|encoder| &mut encoder.blocks);
                open.for_each(|block| block.rank = block.symbols);
            }
            Some(Fault::Squanders) => {
                let open = view.encoder.iter_mut().flat_map(|encoder| &mut encoder.blocks);
                open.for_each(|block| block.budget *= 1e6);
            }
            _ => {}
        }
        view
    }
}
