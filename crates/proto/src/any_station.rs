//! The one type a driver holds: a station with one neighbour, a hub with many, or a relay.
//!
//! A station by itself is driven exactly as if there were no hubs: nothing stands between it and
//! the driver.

use std::borrow::Cow;
use std::net::IpAddr;

use core::time::Duration;

use corridor_base::Time;
use corridor_packet::PacketRef;
use corridor_relay::Sent;
use ipnet::IpNet;

use crate::config::{StationConfig, StationId};
use crate::diagnosis::Unopened;
use crate::error::ConfigError;
use crate::hub::{Hub, HubConfig, HubStats};
use crate::inspect::PeerView;
use crate::link::mtu::FrameLens;
use crate::relay_station::RelayStation;
use crate::station::{Event, FrameOutcome, PacketOutcome, Station, Transmit};
use crate::stats::Stats;
use crate::wire::ChallengeToken;

/// A station with one neighbour and perhaps a helper, a hub with many neighbours, or a relay.
#[expect(clippy::large_enum_variant, reason = "a driver holds one of them, for as long as it runs")]
pub enum AnyStation {
    /// It carries whatever the host hands over.
    One(Station),
    /// It carries what is for a neighbour's networks.
    Hub(Box<Hub>),
    /// It carries what is for a neighbour's networks, and combines packets.
    Relay(Box<RelayStation>),
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

impl From<RelayStation> for AnyStation {
    fn from(relay: RelayStation) -> Self {
        AnyStation::Relay(Box::new(relay))
    }
}

/// Hands a call on to the one that there is.
macro_rules! either {
    ($self:ident, $one:ident => $call:expr) => {
        match $self {
            AnyStation::One($one) => $call,
            AnyStation::Hub($one) => $call,
            AnyStation::Relay($one) => $call,
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
        match self {
            AnyStation::One(station) => station.find_path_mtu(now, lens),
            AnyStation::Hub(hub) => hub.find_path_mtu(now, lens),
            // Its hops are links, whose interfaces say what they take.
            AnyStation::Relay(_) => {}
        }
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
            AnyStation::Relay(relay) => relay.greet(now),
        }
    }

    /// See [`RelayStation::handle_retries`]; of no use to others than relays.
    pub fn handle_retries(&mut self, now: Time, to: StationId, sent: Sent) {
        if let AnyStation::Relay(relay) = self {
            relay.handle_retries(now, to, sent);
        }
    }

    /// See [`Station::note_too_long`].
    pub fn note_too_long(&mut self, now: Time) {
        match self {
            AnyStation::One(station) => station.note_too_long(now),
            AnyStation::Hub(hub) => hub.note_too_long(now),
            AnyStation::Relay(_) => {}
        }
    }

    /// See [`Station::set_rate_bps`].
    pub fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
        either!(self, station => station.set_rate_bps(rate_bps));
    }

    /// See [`Station::greet`].
    pub fn greet(&mut self, now: Time) {
        either!(self, station => station.greet(now));
    }

    /// See [`Station::reach_out`]: these peers are called.
    pub fn reach_out(&mut self, now: Time, called: &[StationId]) {
        match self {
            AnyStation::One(station) => station.reach_out(now, !called.is_empty()),
            AnyStation::Hub(hub) => hub.reach_out(now, called),
            AnyStation::Relay(_) => {}
        }
    }

    /// See [`Station::set_rekey_interval`]; a relay has the secret of a group, which stays.
    pub fn set_rekey_interval(&mut self, interval: Duration) {
        match self {
            AnyStation::One(station) => station.set_rekey_interval(interval),
            AnyStation::Hub(hub) => hub.set_rekey_interval(interval),
            AnyStation::Relay(_) => {}
        }
    }

    /// See [`Station::set_session_frames`].
    pub fn set_session_frames(&mut self, frames: u32) {
        either!(self, station => station.set_session_frames(frames));
    }

    /// See [`Station::expects`]. A relay expects all: its hops are links.
    pub fn expects(&self, frame: &[u8]) -> bool {
        match self {
            AnyStation::One(station) => station.expects(frame),
            AnyStation::Hub(hub) => hub.expects(frame),
            AnyStation::Relay(_) => true,
        }
    }

    /// See [`Station::claimed`].
    pub fn claimed(&self, frame: &[u8]) -> Option<StationId> {
        self.stations().find_map(|station| station.claimed(frame))
    }

    /// See [`Station::challenge`]; a relay, whose hops are links, asks nobody.
    pub fn challenge(&mut self, peer: StationId, token: ChallengeToken) -> Option<&[u8]> {
        match self {
            AnyStation::One(station) => station.challenge(peer, token),
            AnyStation::Hub(hub) => hub.challenge(peer, token),
            AnyStation::Relay(_) => None,
        }
    }

    /// See [`Station::close`]. A relay just ends.
    pub fn close(&mut self, now: Time) {
        match self {
            AnyStation::One(station) => station.close(now),
            AnyStation::Hub(hub) => hub.close(now),
            AnyStation::Relay(_) => {}
        }
    }

    /// See [`Station::is_closed`].
    pub fn is_closed(&self) -> bool {
        match self {
            AnyStation::One(station) => station.is_closed(),
            AnyStation::Hub(hub) => hub.is_closed(),
            AnyStation::Relay(_) => true,
        }
    }

    // ---- what others know ---------------------------------------------------------------------

    /// See [`Station::tunnel_mtu`].
    pub fn tunnel_mtu(&self) -> usize {
        either!(self, station => station.tunnel_mtu())
    }

    /// See [`Station::frame_len_for`].
    pub fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        match self {
            AnyStation::Relay(relay) => relay.frame_len_for(packet_len),
            _ => self.first()?.frame_len_for(packet_len),
        }
    }

    /// See [`Station::examine`].
    pub fn examine(&self, frame: &[u8]) -> Unopened {
        either!(self, station => station.examine(frame))
    }

    /// What it was told, as far as it is the same for all peers.
    pub fn config(&self) -> &StationConfig {
        match self {
            AnyStation::One(station) => station.config(),
            AnyStation::Hub(hub) => hub.first().config(),
            AnyStation::Relay(relay) => relay.config(),
        }
    }

    /// The stations in it: one, one for each neighbour, or none in a relay.
    pub fn stations(&self) -> impl Iterator<Item = &Station> {
        let (one, hub) = match self {
            AnyStation::One(station) => (Some(station), None),
            AnyStation::Hub(hub) => (None, Some(hub)),
            AnyStation::Relay(_) => (None, None),
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
            AnyStation::Relay(_) => None,
        }
    }

    /// The hub, if it is one.
    pub fn hub(&self) -> Option<&Hub> {
        match self {
            AnyStation::Hub(hub) => Some(hub),
            AnyStation::One(_) | AnyStation::Relay(_) => None,
        }
    }

    /// The relay, if it is one.
    pub fn relay(&self) -> Option<&RelayStation> {
        match self {
            AnyStation::Relay(relay) => Some(relay),
            AnyStation::One(_) | AnyStation::Hub(_) => None,
        }
    }

    /// Takes over which networks neighbours have, of a hub or relay. Whether it is one.
    ///
    /// # Errors
    /// As [`Hub::set_networks`].
    pub fn set_networks(
        &mut self,
        neighbours: &[(StationId, Vec<IpNet>)],
        own: &[IpAddr],
    ) -> Result<bool, ConfigError> {
        match self {
            AnyStation::One(_) => return Ok(false),
            AnyStation::Hub(hub) => hub.set_networks(neighbours, own)?,
            AnyStation::Relay(relay) => relay.set_networks(neighbours, own)?,
        }
        Ok(true)
    }

    /// Of a hub: as [`Hub::set_neighbours`]. Whether the station is one.
    ///
    /// # Errors
    /// As [`Hub::set_neighbours`].
    pub fn set_neighbours(
        &mut self,
        config: &HubConfig,
        entropy: [u8; 32],
        now: Time,
    ) -> Result<bool, ConfigError> {
        let AnyStation::Hub(hub) = self else { return Ok(false) };
        hub.set_neighbours(config, entropy, now)?;
        Ok(true)
    }

    /// Longest frame, bytes.
    pub fn frame_len(&self) -> usize {
        match self {
            AnyStation::Relay(relay) => relay.frame_len(),
            _ => self.stations().map(Station::frame_len).max().unwrap_or_default(),
        }
    }

    /// Counters of a hub; none of a station with one neighbour.
    pub fn hub_stats(&self) -> Option<&HubStats> {
        self.hub().map(Hub::stats)
    }

    /// The peers, in the order of the configuration.
    pub fn peers(&self) -> Vec<PeerView> {
        match self {
            AnyStation::Relay(relay) => relay.peers(),
            _ => self.stations().flat_map(Station::peers).collect(),
        }
    }

    /// Whether frames can be exchanged with this peer.
    pub fn is_up(&self, peer: StationId) -> bool {
        match self {
            AnyStation::Relay(relay) => relay.is_up(peer),
            _ => self.stations().any(|station| station.is_up(peer)),
        }
    }

    /// Counters since the start, of all stations in it together.
    pub fn stats(&self) -> Cow<'_, Stats> {
        match self {
            AnyStation::One(station) => Cow::Borrowed(station.stats()),
            AnyStation::Relay(relay) => Cow::Borrowed(relay.stats()),
            AnyStation::Hub(hub) => {
                let mut stats = hub.first().stats().clone();
                hub.stations().skip(1).for_each(|station| stats.join(station.stats()));
                stats.join(hub.gone());
                Cow::Owned(stats)
            }
        }
    }

    /// The round trip to a peer, smoothed; none before it was measured.
    pub fn round_trip(&self, now: Time, peer: StationId) -> Option<Duration> {
        self.station(peer)?.path(now).round_trip
    }

    /// The first of the stations in it, or the only one.
    fn first(&self) -> Option<&Station> {
        self.stations().next()
    }
}
