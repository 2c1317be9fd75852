//! What a driver uses: a station with one neighbour, a hub with many, or a relay, behind one trait.
//!
//! A station with one neighbour is driven directly, exactly as if there were no hubs.

use std::borrow::Cow;
use std::net::IpAddr;

use core::ops::{Deref, DerefMut};
use core::time::Duration;

use corridor_base::Time;
use corridor_packet::PacketRef;
use corridor_relay::Sent;
use ipnet::IpNet;

use crate::clocks::Clocks;
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

/// What a driver does with a station of any kind. Default implementations hold for most kinds, or
/// do nothing.
pub trait Driven: Send {
    /// See [`Station::handle_packet`].
    fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome;

    /// See [`Station::handle_frame`].
    fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome;

    /// See [`Station::handle_timeout`].
    fn handle_timeout(&mut self, now: Time);

    /// See [`Station::poll_transmit`].
    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>>;

    /// See [`Station::poll_packet`].
    fn poll_packet(&mut self) -> Option<PacketRef<'_>>;

    /// See [`Station::poll_event`].
    fn poll_event(&mut self) -> Option<Event>;

    /// See [`Station::poll_timeout`].
    fn poll_timeout(&self) -> Option<Time>;

    // ---- what an operator sets, and the path --------------------------------------------------

    /// See [`Station::find_path_mtu`]. Not for relays: their hops are links, whose interfaces have
    /// a known MTU.
    fn find_path_mtu(&mut self, _now: Time, _lens: FrameLens) {}

    /// See [`Station::limit_frames`].
    fn limit_frames(&mut self, now: Time, len: usize);

    /// See [`Station::note_path_changed`]: the path to one peer, or to all of them.
    fn note_path_changed(&mut self, now: Time, peer: Option<StationId>);

    /// See [`RelayStation::handle_retries`]; only relays use it.
    fn handle_retries(&mut self, _now: Time, _to: StationId, _sent: Sent) {}

    /// See [`Station::set_clock`].
    fn set_clock(&mut self, clocks: Clocks);

    /// See [`Station::note_too_long`].
    fn note_too_long(&mut self, _now: Time) {}

    /// See [`Station::set_rate_bps`].
    fn set_rate_bps(&mut self, rate_bps: Option<u64>);

    /// See [`Station::greet`].
    fn greet(&mut self, now: Time);

    /// See [`Station::reach_out`]: the `called` peers are called.
    fn reach_out(&mut self, _now: Time, _called: &[StationId]) {}

    /// See [`Station::set_rekey_interval`].
    fn set_rekey_interval(&mut self, interval: Duration);

    /// See [`Station::set_session_frames`].
    fn set_session_frames(&mut self, frames: u32);

    /// See [`Station::expects`]. A relay expects everything: its hops are links.
    fn expects(&self, _frame: &[u8]) -> bool {
        true
    }

    /// See [`Station::challenge`]. A relay, whose hops are links, challenges nobody.
    fn challenge(&mut self, _peer: StationId, _token: ChallengeToken) -> Option<&[u8]> {
        None
    }

    /// See [`Station::close`]. A relay ends without goodbye.
    fn close(&mut self, _now: Time) {}

    /// See [`Station::is_closed`].
    fn is_closed(&self) -> bool {
        true
    }

    /// Replaces the networks of neighbours, of a hub or relay. Returns whether the station is one
    /// of these.
    ///
    /// # Errors
    /// As [`Hub::set_networks`].
    fn set_networks(
        &mut self,
        _neighbours: &[(StationId, Vec<IpNet>)],
        _own: &[IpAddr],
    ) -> Result<bool, ConfigError> {
        Ok(false)
    }

    /// Replaces the neighbours of a hub, as [`Hub::set_neighbours`]. Returns whether the station is
    /// a hub.
    ///
    /// # Errors
    /// As [`Hub::set_neighbours`].
    fn set_neighbours(
        &mut self,
        _config: &HubConfig,
        _entropy: [u8; 32],
        _now: Time,
    ) -> Result<bool, ConfigError> {
        Ok(false)
    }

    // ---- what others read ---------------------------------------------------------------------

    /// The station at an index: a station has one, a hub one per neighbour, a relay none.
    fn station_at(&self, place: usize) -> Option<&Station>;

    /// See [`Station::tunnel_mtu`].
    fn tunnel_mtu(&self) -> usize;

    /// See [`Station::frame_len_for`].
    fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        self.station_at(0)?.frame_len_for(packet_len)
    }

    /// Longest frame in bytes.
    fn frame_len(&self) -> usize {
        stations(self).map(Station::frame_len).max().unwrap_or_default()
    }

    /// See [`Station::examine`].
    fn examine(&self, frame: &[u8]) -> Unopened;

    /// The configuration, as far as it is the same for all peers.
    fn config(&self) -> &StationConfig;

    /// Bytes that the queues and windows of all peers may hold together; 0 of a relay.
    fn memory_bytes(&self) -> usize {
        self.station_at(0).map_or(0, |station| station.memory().share)
    }

    /// The peers, in the order of the configuration.
    fn peers(&self) -> Vec<PeerView> {
        stations(self).flat_map(Station::peers).collect()
    }

    /// Whether frames can be exchanged with this peer.
    fn is_up(&self, peer: StationId) -> bool {
        stations(self).any(|station| station.is_up(peer))
    }

    /// Counters since the start, summed over all stations in it.
    fn stats(&self) -> Cow<'_, Stats>;

    /// The hub, if it is one.
    fn hub(&self) -> Option<&Hub> {
        None
    }

    /// The relay, if it is one.
    fn relay(&self) -> Option<&RelayStation> {
        None
    }
}

fn stations(driven: &(impl Driven + ?Sized)) -> impl Iterator<Item = &Station> {
    (0..).map_while(|place| driven.station_at(place))
}

/// A station of any kind.
pub struct AnyStation(Box<dyn Driven>);

impl<T: Driven + 'static> From<T> for AnyStation {
    fn from(driven: T) -> Self {
        AnyStation(Box::new(driven))
    }
}

impl Deref for AnyStation {
    type Target = dyn Driven;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for AnyStation {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl AnyStation {
    /// The stations in it.
    pub fn stations(&self) -> impl Iterator<Item = &Station> {
        stations(&**self)
    }

    /// The station that exchanges frames with a peer.
    pub fn station(&self, peer: StationId) -> Option<&Station> {
        match self.hub() {
            Some(hub) => hub.station(peer),
            None => self.stations().find(|it| it.peers().iter().any(|known| known.id == peer)),
        }
    }

    /// See [`Station::claimed`].
    pub fn claimed(&self, frame: &[u8]) -> Option<StationId> {
        self.stations().find_map(|station| station.claimed(frame))
    }

    /// Counters of a hub; `None` for other kinds.
    pub fn hub_stats(&self) -> Option<&HubStats> {
        self.hub().map(Hub::stats)
    }

    /// The smoothed round-trip time to a peer; `None` before it was measured.
    pub fn round_trip(&self, now: Time, peer: StationId) -> Option<Duration> {
        self.station(peer)?.path(now).round_trip
    }
}

/// Methods that each kind implements under the same name.
macro_rules! by_itself {
    () => {
        fn handle_packet(&mut self, now: Time, packet: &[u8]) -> PacketOutcome {
            self.handle_packet(now, packet)
        }

        fn handle_frame(&mut self, now: Time, frame: &[u8]) -> FrameOutcome {
            self.handle_frame(now, frame)
        }

        fn handle_timeout(&mut self, now: Time) {
            self.handle_timeout(now);
        }

        fn poll_transmit(&mut self, now: Time) -> Option<Transmit<'_>> {
            self.poll_transmit(now)
        }

        fn poll_packet(&mut self) -> Option<PacketRef<'_>> {
            self.poll_packet()
        }

        fn poll_event(&mut self) -> Option<Event> {
            self.poll_event()
        }

        fn poll_timeout(&self) -> Option<Time> {
            self.poll_timeout()
        }

        fn limit_frames(&mut self, now: Time, len: usize) {
            self.limit_frames(now, len);
        }

        fn set_clock(&mut self, clocks: Clocks) {
            self.set_clock(clocks);
        }

        fn set_rate_bps(&mut self, rate_bps: Option<u64>) {
            self.set_rate_bps(rate_bps);
        }

        fn greet(&mut self, now: Time) {
            self.greet(now);
        }

        fn set_rekey_interval(&mut self, interval: Duration) {
            self.set_rekey_interval(interval);
        }

        fn set_session_frames(&mut self, frames: u32) {
            self.set_session_frames(frames);
        }

        fn tunnel_mtu(&self) -> usize {
            self.tunnel_mtu()
        }

        fn examine(&self, frame: &[u8]) -> Unopened {
            self.examine(frame)
        }
    };
}

/// The same for kinds whose peers are at the end of a path.
macro_rules! over_paths {
    () => {
        fn find_path_mtu(&mut self, now: Time, lens: FrameLens) {
            self.find_path_mtu(now, lens);
        }

        fn note_too_long(&mut self, now: Time) {
            self.note_too_long(now);
        }

        fn expects(&self, frame: &[u8]) -> bool {
            self.expects(frame)
        }

        fn challenge(&mut self, peer: StationId, token: ChallengeToken) -> Option<&[u8]> {
            self.challenge(peer, token)
        }

        fn close(&mut self, now: Time) {
            self.close(now);
        }

        fn is_closed(&self) -> bool {
            self.is_closed()
        }
    };
}

impl Driven for Station {
    by_itself!();
    over_paths!();

    fn note_path_changed(&mut self, now: Time, _peer: Option<StationId>) {
        self.note_path_changed(now);
    }

    fn reach_out(&mut self, now: Time, called: &[StationId]) {
        self.reach_out(now, !called.is_empty());
    }

    fn station_at(&self, place: usize) -> Option<&Station> {
        (place == 0).then_some(self)
    }

    fn config(&self) -> &StationConfig {
        self.config()
    }

    fn stats(&self) -> Cow<'_, Stats> {
        Cow::Borrowed(self.stats())
    }
}

impl Driven for Hub {
    by_itself!();
    over_paths!();

    fn note_path_changed(&mut self, now: Time, peer: Option<StationId>) {
        self.note_path_changed(now, peer);
    }

    fn reach_out(&mut self, now: Time, called: &[StationId]) {
        self.reach_out(now, called);
    }

    fn set_networks(
        &mut self,
        neighbours: &[(StationId, Vec<IpNet>)],
        own: &[IpAddr],
    ) -> Result<bool, ConfigError> {
        self.set_networks(neighbours, own).map(|()| true)
    }

    fn set_neighbours(
        &mut self,
        config: &HubConfig,
        entropy: [u8; 32],
        now: Time,
    ) -> Result<bool, ConfigError> {
        self.set_neighbours(config, entropy, now).map(|()| true)
    }

    fn station_at(&self, place: usize) -> Option<&Station> {
        self.station_at(place)
    }

    fn config(&self) -> &StationConfig {
        self.first().config()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }

    fn stats(&self) -> Cow<'_, Stats> {
        let mut stats = self.first().stats().clone();
        self.stations().skip(1).for_each(|station| stats.join(station.stats()));
        stats.join(self.gone());
        Cow::Owned(stats)
    }

    fn hub(&self) -> Option<&Hub> {
        Some(self)
    }
}

impl Driven for RelayStation {
    by_itself!();

    fn note_path_changed(&mut self, now: Time, _peer: Option<StationId>) {
        self.greet(now);
    }

    fn handle_retries(&mut self, now: Time, to: StationId, sent: Sent) {
        self.handle_retries(now, to, sent);
    }

    fn set_networks(
        &mut self,
        neighbours: &[(StationId, Vec<IpNet>)],
        own: &[IpAddr],
    ) -> Result<bool, ConfigError> {
        self.set_networks(neighbours, own).map(|()| true)
    }

    fn station_at(&self, _place: usize) -> Option<&Station> {
        None
    }

    fn frame_len_for(&self, packet_len: usize) -> Option<usize> {
        self.frame_len_for(packet_len)
    }

    fn frame_len(&self) -> usize {
        self.frame_len()
    }

    fn config(&self) -> &StationConfig {
        self.config()
    }

    fn peers(&self) -> Vec<PeerView> {
        self.peers()
    }

    fn is_up(&self, peer: StationId) -> bool {
        self.is_up(peer)
    }

    fn stats(&self) -> Cow<'_, Stats> {
        Cow::Borrowed(self.stats())
    }

    fn relay(&self) -> Option<&RelayStation> {
        Some(self)
    }
}
