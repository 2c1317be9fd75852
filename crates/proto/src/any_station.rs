//! The one type a driver holds: a station with one neighbour, or a hub with many.
//!
//! A station by itself is driven exactly as if there were no hubs: nothing stands between it and
//! the driver.

use std::borrow::Cow;

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::PacketRef;

use crate::config::{StationConfig, StationId};
use crate::diagnosis::Unopened;
use crate::hub::{Hub, HubStats};
use crate::inspect::PeerView;
use crate::link::mtu::FrameLens;
use crate::station::{Event, FrameOutcome, PacketOutcome, Station, Transmit};
use crate::stats::Stats;

/// A station with one neighbour and perhaps a helper, or a hub with many neighbours.
#[expect(clippy::large_enum_variant, reason = "a driver holds one of them, for as long as it runs")]
pub enum AnyStation {
    /// It carries whatever the host hands over.
    One(Station),
    /// It carries what is for a neighbour's networks.
    Hub(Box<Hub>),
}

impl From<Station> for AnyStation {
    fn from(station: Station) -> Self {
        AnyStation::One(station)
    }
}

impl From<Hub> for AnyStation {
    fn from(hub: Hub) -> Self {
        AnyStation::Hub(Box::new(hub))
    }
}

/// Hands a call on to the one that there is.
macro_rules! either {
    ($self:ident, $one:ident => $call:expr) => {
        match $self {
            AnyStation::One($one) => $call,
            AnyStation::Hub($one) => $call,
        }
    };
}

impl AnyStation {
    /// See [`Station::handle_packet`].
    pub fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
        either!(self, station => station.handle_packet(now, packet))
    }

    /// See [`Station::handle_frame`].
    pub fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome {
        either!(self, station => station.handle_frame(now, frame))
    }

    /// See [`Station::handle_timeout`].
    pub fn handle_timeout(&mut self, now: Time) {
        either!(self, station => station.handle_timeout(now));
    }

    /// See [`Station::poll_transmit`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
        either!(self, station => station.poll_transmit(now))
    }

    /// See [`Station::poll_packet`].
    pub fn poll_packet(&mut self) -> Option<PacketRef<'_>> {
        either!(self, station => station.poll_packet())
    }

    /// See [`Station::poll_event`].
    pub fn poll_event(&mut self) -> Option<Event> {
        either!(self, station => station.poll_event())
    }

    /// See [`Station::poll_timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        either!(self, station => station.poll_timeout())
    }

    // ---- what an operator changes, and the path -----------------------------------------------

    /// See [`Station::find_path_mtu`].
    pub fn find_path_mtu(&mut self, now: Time, lens: FrameLens) {
        either!(self, station => station.find_path_mtu(now, lens));
    }

    /// See [`Station::limit_frames`].
    pub fn limit_frames(&mut self, now: Time, len: usize) {
        either!(self, station => station.limit_frames(now, len));
    }

    /// See [`Station::note_path_changed`]: the path to one peer, or to all of them.
    pub fn note_path_changed(&mut self, now: Time, peer: Option<StationId>) {
        match self {
            AnyStation::One(station) => station.note_path_changed(now),
            AnyStation::Hub(hub) => hub.note_path_changed(now, peer),
        }
    }

    /// See [`Station::note_too_long`].
    pub fn note_too_long(&mut self, now: Time) {
        either!(self, station => station.note_too_long(now));
    }

    /// See [`Station::set_rate_bps`].
    pub fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
        either!(self, station => station.set_rate_bps(rate_bps));
    }

    /// See [`Station::greet`].
    pub fn greet(&mut self, now: Time) {
        either!(self, station => station.greet(now));
    }

    // ---- what others know ---------------------------------------------------------------------

    /// See [`Station::tunnel_mtu`].
    pub fn tunnel_mtu(&self) -> usize {
        either!(self, station => station.tunnel_mtu())
    }

    /// See [`Station::frame_len_for`].
    pub fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        self.first().frame_len_for(packet_len)
    }

    /// See [`Station::examine`].
    pub fn examine(&self, frame: &[u8]) -> Unopened {
        either!(self, station => station.examine(frame))
    }

    /// What it was told, as far as it is the same for all peers.
    pub fn config(&self) -> &StationConfig {
        self.first().config()
    }

    /// The stations in it: one, or one for each neighbour.
    pub fn stations(&self) -> impl Iterator<Item = &Station> {
        let (one, hub) = match self {
            AnyStation::One(station) => (Some(station), None),
            AnyStation::Hub(hub) => (None, Some(hub)),
        };
        one.into_iter().chain(hub.into_iter().flat_map(|hub| hub.stations()))
    }

    /// The station that speaks with a peer.
    pub fn station(&self, peer: StationId) -> Option<&Station> {
        match self {
            AnyStation::One(station) => {
                station.peers().iter().any(|known| known.id == peer).then_some(station)
            }
            AnyStation::Hub(hub) => hub.station(peer),
        }
    }

    /// The hub, if it is one.
    pub fn hub(&self) -> Option<&Hub> {
        match self {
            AnyStation::One(_) => None,
            AnyStation::Hub(hub) => Some(hub),
        }
    }

    /// The hub, if it is one.
    pub fn hub_mut(&mut self) -> Option<&mut Hub> {
        match self {
            AnyStation::One(_) => None,
            AnyStation::Hub(hub) => Some(hub),
        }
    }

    /// Counters of a hub; none of a station with one neighbour.
    pub fn hub_stats(&self) -> Option<&HubStats> {
        self.hub().map(Hub::stats)
    }

    /// The peers, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerView> {
        self.stations().flat_map(Station::peers).collect()
    }

    /// Whether frames can be exchanged with this peer.
    pub fn is_up(&self, peer: StationId) -> bool {
        self.stations().any(|station| station.is_up(peer))
    }

    /// Counters since the start, of all stations in it together.
    pub fn stats(&self) -> Cow<'_, Stats> {
        let mut stats = Cow::Borrowed(self.first().stats());
        self.stations().skip(1).for_each(|station| stats.to_mut().join(station.stats()));
        stats
    }

    /// The round trip to a peer, smoothed; none before it was measured.
    pub fn round_trip(&self, now: Time, peer: StationId) -> Option<Duration> {
        self.station(peer)?.path(now).round_trip
    }

    /// The first of the stations in it, or the only one.
    fn first(&self) -> &Station {
        match self {
            AnyStation::One(station) => station,
            AnyStation::Hub(hub) => hub.stations().next().expect("a hub has a neighbour"),
        }
    }
}
