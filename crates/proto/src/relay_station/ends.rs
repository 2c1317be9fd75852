//! Ends of flows across relays: tags that only the two ends can make and check, whatever relays are
//! in between.
//!
//! ```text
//! IP packet, number 7, tag 8
//! ```
//! The packet crosses relays together with number and tag: they are forwarded, combined and
//! recognised as one. Numbers of a sender always increase, even across restarts: they begin at the
//! sender's wall clock in microseconds, increase by one per packet, and jump to the clock when that
//! was set forward, because a run may begin before its clock is right.

use std::net::IpAddr;

use corridor_base::Time;
use corridor_packet::PacketRef;
use ipnet::IpNet;

use crate::bounds::FORGED_TOLD;
use crate::clocks::WallClock;
use crate::config::StationId;
use crate::end_keys::{EndKeys, MacKey};
use crate::error::ConfigError;
use crate::hub::{NetworkError, Networks, Place};
use crate::keys::{Keys, PeerKey, PublicKey, Security};
use crate::link::replay::ReplayWindow;
use crate::psk::Psk;
use crate::wire::{END_TRAILER_LEN, Trailer};

/// Most ends of a relay.
pub(crate) const ENDS_MAX: usize = 256;

/// Another end: packets from its networks carry its tags, and packets to them carry ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayEnd {
    /// Its networks.
    pub networks: Vec<IpNet>,
    /// Its public key.
    pub public: PublicKey,
    /// A pre-shared key of the two in addition to their key pairs, if they have one.
    pub psk: Option<Psk>,
}

/// The ends that this one knows.
#[derive(Default)]
pub(super) struct Ends {
    /// The owner of an address: index in the list, counted from one.
    table: Networks,
    ends: Vec<End>,
    /// The clock that numbers begin at.
    clock: WallClock,
    /// When it was last reported that a packet was forged, and that one was repeated.
    told_at: [Option<Time>; 2],
}

struct End {
    to: MacKey,
    from: MacKey,
    /// Number of the newest packet to it; 0: none yet.
    newest: u64,
    /// The wall clock when numbers last jumped to it.
    followed: WallClock,
    /// Which of its numbers were received; `None`: none yet.
    heard: Option<ReplayWindow>,
}

/// Why a packet is not delivered to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Its source has not made it, or it was modified in transit.
    Forged,
    /// It was received before, or is too old to tell.
    Replayed,
}

impl Ends {
    pub(super) fn new(
        ends: &[RelayEnd],
        security: &Security,
        clock: WallClock,
    ) -> Result<Self, ConfigError> {
        let wrong = |given: String, expected: String| ConfigError::new("end", given, expected);
        let keys: &Keys = match security {
            _ if ends.is_empty() => return Ok(Ends::default()),
            Security::Keys(keys) => keys,
            Security::Shared(_) => {
                return Err(wrong("a secret of all".into(), "a private key of its own".into()));
            }
        };
        if ends.len() > ENDS_MAX {
            return Err(wrong(ends.len().to_string(), format!("{ENDS_MAX} ends at most")));
        }
        let mut table = Networks::default();
        for (index, end) in ends.iter().enumerate() {
            let own = end.public == keys.private.public();
            if own || !end.public.makes_secrets() {
                let expected = "the public key of another end".into();
                return Err(wrong(end.public.to_string(), expected));
            }
            for &network in &end.networks {
                let place = Place::Neighbour(StationId(index as u16 + 1));
                table.insert(network, place).map_err(|error: NetworkError| {
                    wrong(network.to_string(), format!("a network of one end: {error}"))
                })?;
            }
        }
        let end = |end: &RelayEnd| {
            let peer = PeerKey { station: StationId(0), public: end.public, psk: end.psk.clone() };
            let keys = EndKeys::new(&keys.private, &peer);
            let (to, from) = (keys.own_packets(), keys.peer_packets());
            End { to, from, newest: 0, followed: clock, heard: None }
        };
        let ends = ends.iter().map(end).collect();
        Ok(Ends { table, ends, clock, told_at: [None; 2] })
    }

    /// Sets the wall clock, which may have changed.
    pub(super) fn set_clock(&mut self, clock: WallClock) {
        self.clock = clock;
    }

    /// Bytes of the longest trailer that a packet may have here.
    pub(super) fn trailer_len_max(&self) -> usize {
        if self.ends.is_empty() { 0 } else { END_TRAILER_LEN }
    }

    /// Number of ends.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The source of a refused packet, if it is time to report one.
    pub(super) fn tells_of(
        &mut self,
        now: Time,
        refused: Refused,
        packet: PacketRef<'_>,
    ) -> Option<IpAddr> {
        let told_at = &mut self.told_at[usize::from(refused == Refused::Replayed)];
        if told_at.is_some_and(|at| now - at < FORGED_TOLD) {
            return None;
        }
        *told_at = Some(now);
        packet.addresses().map(|(source, _)| source)
    }

    fn end_of(&self, address: IpAddr) -> Option<usize> {
        match self.table.place(address)? {
            Place::Neighbour(StationId(number)) => Some(usize::from(number) - 1),
            Place::Host => None,
        }
    }

    /// Appends number and tag to a packet of this host, if it is for an end.
    pub(super) fn seal(&mut self, now: Time, to: IpAddr, packet: &mut Vec<u8>) {
        let Some(at) = self.end_of(to) else { return };
        let End { to, newest, followed, .. } = &mut self.ends[at];
        // Numbers jump to the clock only when it is set; otherwise they would soon be further apart
        // than the other end remembers.
        let begins = *newest == 0 || self.clock.is_ahead_of(*followed);
        *newest += 1;
        if begins {
            (*newest, *followed) = ((self.clock.at(now) / 1_000).max(*newest), self.clock);
        }
        let tag = to.tag(&Trailer::number_bytes(*newest), packet);
        Trailer { number: *newest, tag }.write(packet);
    }

    /// Whether a packet is followed by as many bytes as an end's trailer, and its source is not a
    /// configured end: then the trailer is not checked.
    pub(super) fn is_unnamed(&self, packet: PacketRef<'_>) -> bool {
        let source = packet.addresses().and_then(|(source, _)| self.end_of(source));
        source.is_none() && packet.len() == packet.view().end() + END_TRAILER_LEN
    }

    /// How many bytes of a packet are for the host: all of them if its source is not an end;
    /// otherwise those that its tag authenticates.
    pub(super) fn open(&mut self, packet: PacketRef<'_>) -> Result<usize, Refused> {
        let bytes = packet.bytes();
        let source = packet.addresses().and_then(|(source, _)| self.end_of(source));
        let Some(end) = source.and_then(|at| self.ends.get_mut(at)) else {
            return Ok(bytes.len());
        };
        let (packet, Trailer { number, tag }) = Trailer::split(bytes).ok_or(Refused::Forged)?;
        if !end.from.is_tag(&tag, &Trailer::number_bytes(number), packet) {
            return Err(Refused::Forged);
        }
        let heard =
            end.heard.get_or_insert_with(|| ReplayWindow::starting_at(number.saturating_sub(1)));
        if heard.accept(number) { Ok(packet.len()) } else { Err(Refused::Replayed) }
    }
}
