//! The underlay, which carries frames: an Ethernet interface, or UDP.

mod ethernet;
mod outbox;
mod udp;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use corridor_base::Time;
use corridor_proto::{Certainty, Challenge, FrameLens, Learned, PeerBook, StationId, Transmit};
use nix::errno::Errno;

use crate::config::{Mac, NodeConfig, PeerConfig, UnderlayKind};
use crate::error::NodeError;
use crate::links::LinkState;
use crate::netlink;
use crate::syscalls::Sender;
pub(crate) use ethernet::Ethernet;
pub(crate) use udp::Udp;

/// Frames that the kernel may hold for us before they are sent: enough to keep the interface busy
/// while this process sleeps, and few enough that a frame is made shortly before it is sent.
const SEND_BUFFER_FRAMES: usize = 6;
/// Bytes that the kernel counts per frame in addition to its length.
const SEND_BUFFER_OVERHEAD: usize = 1024;
/// Receive buffer in the kernel, for frames that arrive while this process sleeps.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// Waiting frames from which strangers are no longer answered.
const ANSWERS_MAX: usize = 64;

/// Different refusals that are remembered.
const REFUSALS_MAX: usize = 16;

/// The first refused frame is logged, and then every `TELL_EVERY`-th.
const TELL_EVERY: u64 = 1000;

/// The result of flushing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Frames refused for a reason that need not apply to the next. They are lost.
    pub(crate) lost: u64,
    /// The underlay is full, and the remaining frames wait.
    pub(crate) busy: Option<Busy>,
}

/// The underlay is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// Whether the descriptor becomes writable when there is room.
    pub(crate) wakes: bool,
    /// How long to wait before offering the same frame again.
    pub(crate) retry: Duration,
}

/// What the underlay itself has found out about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The interface accepts frames up to this many bytes, and refuses longer ones.
    Limit(usize),
    /// A router reports that frames are too long. Anyone can claim that.
    TooLong,
    /// Frames to this peer use another path from now on; `None`: to all peers.
    Path(Option<StationId>),
}

/// Pending news. Each replaces older news of its kind; there is one path change per peer.
#[derive(Debug, Default)]
struct Newsbox {
    limit: Cell<Option<usize>>,
    too_long: Cell<bool>,
    paths: RefCell<BTreeSet<Option<StationId>>>,
}

impl Newsbox {
    fn put(&self, news: News) {
        match news {
            News::Limit(len) => self.limit.set(Some(len)),
            News::TooLong => self.too_long.set(true),
            News::Path(peer) => {
                self.paths.borrow_mut().insert(peer);
            }
        }
    }

    fn has_limit(&self) -> bool {
        self.limit.get().is_some()
    }

    fn take(&self) -> Option<News> {
        if let Some(len) = self.limit.take() {
            return Some(News::Limit(len));
        }
        let path = self.paths.borrow_mut().pop_first().map(News::Path);
        path.or_else(|| self.too_long.take().then_some(News::TooLong))
    }
}

/// What happened to a frame handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It was taken.
    Taken,
    /// It was refused for a reason that need not apply to the next frame. It is lost.
    Lost,
    /// There is no room. The same frame has to be offered again.
    Busy {
        /// See [`Busy::wakes`].
        wakes: bool,
    },
}

/// An address on either kind of underlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An Ethernet address.
    Mac(Mac),
    /// A UDP address.
    Internet(SocketAddr),
}

impl Address {
    /// Unique bytes of the address.
    pub(crate) fn bytes(&self) -> [u8; 18] {
        let mut bytes = [0; 18];
        match self {
            Address::Mac(mac) => bytes[..6].copy_from_slice(&mac.0),
            Address::Internet(address) => {
                let ip = match address.ip() {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                bytes[..16].copy_from_slice(&ip.octets());
                bytes[16..].copy_from_slice(&address.port().to_be_bytes());
            }
        }
        bytes
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Mac(mac) => mac.fmt(f),
            Address::Internet(address) => address.fmt(f),
        }
    }
}

impl From<Sender> for Address {
    fn from(sender: Sender) -> Self {
        match sender {
            Sender::Packet { mac, .. } => Address::Mac(mac),
            Sender::Internet(address) => Address::Internet(address),
        }
    }
}

/// A source: what a sender with many addresses has only one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A station on the Ethernet.
    Mac(Mac),
    /// A host with an IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 network of a host: the first 64 bits.
    V6(u64),
    /// An IPv6 network of a site: the first 48 bits, in the place of 64.
    V6Site(u64),
}

impl Source {
    pub(crate) fn of(sender: Sender) -> Self {
        match sender {
            Sender::Packet { mac, .. } => Source::Mac(mac),
            Sender::Internet(address) => match address.ip() {
                IpAddr::V4(host) => Source::V4(host),
                IpAddr::V6(host) => Source::V6((u128::from(host) >> 64) as u64),
            },
        }
    }

    /// The network of a source, if a sender with a network has many sources.
    pub(crate) fn network(&self) -> Option<Source> {
        match self {
            Source::V6(net) => Some(Source::V6Site(net >> 16 << 16)),
            Source::Mac(_) | Source::V4(_) | Source::V6Site(_) => None,
        }
    }
}

/// Frames to one address that this host refused, or that the network could not deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Their destination; `None`: wherever the interface leads.
    pub(crate) to: Option<Address>,
    /// Why.
    pub(crate) why: Errno,
    /// Number of frames.
    pub(crate) frames: u64,
}

/// An underlay of either kind.
pub(crate) enum Underlay {
    /// See [`Ethernet`].
    Ethernet(Ethernet),
    /// See [`Udp`].
    Udp(Udp),
}

impl Underlay {
    /// Opens the configured underlay.
    pub(crate) fn open(config: &NodeConfig, now: Time) -> Result<Self, NodeError> {
        match &config.underlay.kind {
            UnderlayKind::Ethernet { .. } => Ethernet::open(config, now).map(Underlay::Ethernet),
            UnderlayKind::Udp { listen } => Udp::open(config, *listen, now).map(Underlay::Udp),
        }
    }

    /// Longest frame in bytes that the underlay would carry if it were opened now, as far as this
    /// is known.
    pub(crate) fn frame_len_max_expected(config: &NodeConfig) -> usize {
        match &config.underlay.kind {
            UnderlayKind::Ethernet { interface, .. } => {
                let mtu = netlink::link(interface).ok().flatten().map(|link| link.mtu);
                Ethernet::frame_len_max_of(config, mtu)
            }
            UnderlayKind::Udp { .. } => Udp::frame_len_max_of(config),
        }
    }

    /// The next news, if there is any.
    pub(crate) fn news(&self) -> Option<News> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.news.take(),
            Underlay::Udp(udp) => udp.news.take(),
        }
    }

    /// The kernel reports the state of an interface.
    pub(crate) fn note_link(&mut self, now: Time, link: &LinkState) {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.note_link(link),
            Underlay::Udp(udp) => udp.note_link(now, link),
        }
    }

    /// Does what is due: looks for a missing interface, or for the address of a name.
    pub(crate) fn handle_timeout(&mut self, now: Time) -> Result<(), NodeError> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.handle_timeout(now),
            Underlay::Udp(udp) => {
                udp.handle_timeout(now);
                Ok(())
            }
        }
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        match self {
            Underlay::Ethernet(ethernet) => {
                let dues = [ethernet.poll_timeout(), ethernet.peers.poll_timeout()];
                dues.into_iter().flatten().min()
            }
            Underlay::Udp(udp) => {
                let dues = [udp.poll_timeout(), udp.peers.poll_timeout()];
                dues.into_iter().flatten().min()
            }
        }
    }

    /// The range of frame lengths for the path MTU search. Assumes IPv6 headers.
    pub(crate) fn frame_lens(&self) -> FrameLens {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.frame_lens(),
            Underlay::Udp(udp) => udp.frame_lens(),
        }
    }

    /// Whether addresses have to be proven, so that few bytes are sent to a stranger's.
    pub(crate) fn has_strangers(&self) -> bool {
        matches!(self, Underlay::Udp(_))
    }

    /// Longest frame in bytes.
    pub(crate) fn frame_len_max(&self) -> usize {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.frame_len_max(),
            Underlay::Udp(udp) => udp.frame_len_max(),
        }
    }

    /// Shortest frame that is not padded in transit, in bytes.
    pub(crate) fn frame_len_min(&self) -> usize {
        match self {
            Underlay::Ethernet(_) => crate::config::ETHERNET_PAYLOAD_MIN,
            Underlay::Udp(_) => 0,
        }
    }

    /// Adds a frame to the batch, which has to have room for it ([`Underlay::is_full`]).
    pub(crate) fn push(&mut self, now: Time, transmit: &Transmit<'_>) {
        let Transmit { to, frame, probes } = *transmit;
        match self {
            Underlay::Ethernet(ethernet) => ethernet.push(now, to, frame, probes),
            // A probe must not be a segment of a longer datagram: virtual interfaces forward such
            // datagrams whole, whatever their MTU.
            Underlay::Udp(udp) => udp.push(now, to, frame, probes),
        }
    }

    /// Whether the batch has to be flushed before another frame is made.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.is_full(),
            Underlay::Udp(udp) => udp.is_full(),
        }
    }

    /// Whether the batch has room for an answer to a stranger, which is dropped rather than
    /// waiting.
    pub(crate) fn may_answer(&self) -> bool {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.waiting() < ANSWERS_MAX,
            Underlay::Udp(udp) => udp.waiting() < ANSWERS_MAX,
        }
    }

    /// Hands the batch to the kernel. Frames without room wait, and go first next time.
    pub(crate) fn flush(&mut self, now: Time) -> Result<Flushed, NodeError> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.flush(now),
            Underlay::Udp(udp) => udp.flush(now),
        }
    }

    /// Receives a batch of frames from the kernel; returns their number.
    pub(crate) fn receive(&mut self, now: Time) -> Result<usize, NodeError> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.receive(now),
            Underlay::Udp(udp) => udp.receive(),
        }
    }

    /// The frame at `index` of the last batch, and its sender; `None` if it is not for us.
    pub(crate) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.frame(index),
            Underlay::Udp(udp) => udp.frame(index),
        }
    }

    /// The station known to be at an Ethernet address.
    pub(crate) fn station_at(&self, mac: Mac) -> Option<StationId> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.peers.station(mac),
            Underlay::Udp(_) => None,
        }
    }

    /// The station known to be at an address.
    pub(crate) fn station(&self, at: Sender) -> Option<StationId> {
        match (self, at) {
            (Underlay::Ethernet(ethernet), Sender::Packet { mac, .. }) => {
                ethernet.peers.station(mac)
            }
            (Underlay::Udp(udp), Sender::Internet(address)) => udp.peers.station(address),
            _ => None,
        }
    }

    /// The station that has proved to be at an address, or is configured there.
    pub(crate) fn proven_station(&self, at: Sender) -> Option<StationId> {
        match (self, at) {
            (Underlay::Ethernet(ethernet), Sender::Packet { mac, .. }) => {
                ethernet.peers.proven_station(mac)
            }
            (Underlay::Udp(udp), Sender::Internet(address)) => udp.peers.proven_station(address),
            _ => None,
        }
    }

    /// Records that a frame of this station, of `len_bytes` bytes, came from this address.
    pub(crate) fn learn(
        &mut self,
        now: Time,
        (station, at): (StationId, Sender),
        certainty: Certainty,
        len_bytes: usize,
    ) {
        match (self, at) {
            (Underlay::Ethernet(ethernet), Sender::Packet { mac, .. }) => {
                ethernet.learn(now, (station, mac), certainty, len_bytes);
            }
            (Underlay::Udp(udp), Sender::Internet(address)) => {
                udp.learn(now, (station, address), certainty, len_bytes);
            }
            _ => {}
        }
    }

    /// A station is at the address that it has sent from, although it cannot be challenged there.
    pub(crate) fn believe(&mut self, station: StationId, at: Address) {
        match (self, at) {
            (Underlay::Ethernet(ethernet), Address::Mac(mac)) => ethernet.believe(station, mac),
            (Underlay::Udp(udp), Address::Internet(at)) => udp.believe(station, at),
            _ => {}
        }
    }

    /// The next challenge to be sent, if the batch has room for it.
    pub(crate) fn poll_challenge(
        &mut self,
        now: Time,
        is_up: impl Fn(StationId) -> bool,
    ) -> Option<Challenge<Address>> {
        if self.is_full() {
            return None;
        }
        match self {
            Underlay::Ethernet(ethernet) => {
                ethernet.peers.poll_challenge(now, is_up).map(|it| challenge(it, Address::Mac))
            }
            Underlay::Udp(udp) => {
                udp.peers.poll_challenge(now, is_up).map(|it| challenge(it, Address::Internet))
            }
        }
    }

    /// Adds a frame for one address to the batch, which has to have room for it.
    pub(crate) fn push_to(&mut self, to: Address, frame: &[u8]) {
        match (self, to) {
            (Underlay::Ethernet(ethernet), Address::Mac(mac)) => ethernet.push_to(mac, frame),
            (Underlay::Udp(udp), Address::Internet(address)) => udp.push_to(address, frame),
            _ => {}
        }
    }

    /// The assumed address of a station.
    pub(crate) fn address(&self, station: StationId) -> Option<Address> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.peers.address(station).map(Address::Mac),
            Underlay::Udp(udp) => udp.peers.address(station).map(Address::Internet),
        }
    }

    /// Applies a new list of peers, and the configured addresses that have changed.
    pub(crate) fn configure(&mut self, now: Time, before: &[PeerConfig], peers: &[PeerConfig]) {
        for was in before.iter().filter(|was| peers.iter().all(|is| is.id != was.id)) {
            match self {
                Underlay::Ethernet(ethernet) => ethernet.peers.remove(was.id),
                Underlay::Udp(udp) => udp.remove(now, was.id),
            }
        }
        let is_where = |peer: &PeerConfig| (peer.endpoint.clone(), peer.mac);
        for is in peers {
            let was = before.iter().find(|was| was.id == is.id);
            match self {
                Underlay::Ethernet(ethernet) if was.is_none() => ethernet.peers.add(is.id, is.mac),
                Underlay::Udp(udp) if was.is_none() => udp.add(now, is.id, is.endpoint.clone()),
                _ if was.is_some_and(|was| is_where(was) == is_where(is)) => {}
                Underlay::Ethernet(ethernet) => ethernet.peers.configure(is.id, is.mac),
                Underlay::Udp(udp) => udp.configure(now, is.id, is.endpoint.clone()),
            }
        }
    }

    /// Frames that were refused or undeliverable since the last call, for the first few reasons and
    /// addresses.
    pub(crate) fn take_refused(&mut self) -> Vec<Refused> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.refusals.take(),
            Underlay::Udp(udp) => udp.refusals.take(),
        }
    }

    /// The file descriptor to wait on; `None` while the interface is missing.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.fd(),
            Underlay::Udp(udp) => Some(udp.fd()),
        }
    }

    /// A short description of where frames go, for the log.
    pub(crate) fn describe(&self) -> String {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.describe(),
            Underlay::Udp(udp) => udp.describe(),
        }
    }
}

/// A challenge, with its address converted.
fn challenge<A>(it: Challenge<A>, address: impl FnOnce(A) -> Address) -> Challenge<Address> {
    Challenge { station: it.station, address: address(it.address), token: it.token }
}

/// Logs where a station is from now on.
fn tell_place(learned: Learned, station: StationId, at: &impl Display) {
    match learned {
        Learned::Moved => tracing::info!("station {} has moved to {at}", station.0),
        Learned::Found => tracing::debug!("station {} is at {at}", station.0),
        Learned::Nothing => {}
    }
}

/// The configured addresses, if any.
fn peer_book<A: Copy + PartialEq>(
    configured: impl IntoIterator<Item = (StationId, Option<A>)>,
    may_move: bool,
) -> Result<PeerBook<A>, NodeError> {
    Ok(PeerBook::new(configured, may_move, random()?))
}

/// Fresh random bytes.
pub(crate) fn random() -> Result<[u8; 32], NodeError> {
    let mut entropy = [0; 32];
    getrandom::fill(&mut entropy).map_err(|error| NodeError::System {
        action: "get random bytes".into(),
        source: error.into(),
    })?;
    Ok(entropy)
}

/// Bytes for `SO_SNDBUF` so that about [`SEND_BUFFER_FRAMES`] frames fit.
fn send_buffer_bytes(frame_len_max: usize) -> usize {
    // The kernel doubles the value, for its own overhead.
    SEND_BUFFER_FRAMES * (frame_len_max + SEND_BUFFER_OVERHEAD) / 2
}

/// Frames that were refused for good. A network that refuses one frame usually refuses all that
/// follow, and a line for each would fill the log.
#[derive(Default)]
struct Refusals {
    /// Total number.
    count: Cell<u64>,
    /// Refusals not yet fetched.
    noted: RefCell<Vec<Refused>>,
}

impl Refusals {
    /// Frames to an address were refused or could not be delivered.
    fn note(&self, to: Option<Address>, why: Errno) {
        self.note_many(to, why, 1);
    }

    fn note_many(&self, to: Option<Address>, why: Errno, frames: u64) {
        let mut noted = self.noted.borrow_mut();
        let same = |refused: &&mut Refused| (refused.to, refused.why) == (to, why);
        if let Some(refused) = noted.iter_mut().find(same) {
            refused.frames = refused.frames.saturating_add(frames);
        } else if noted.len() < REFUSALS_MAX && frames > 0 {
            noted.push(Refused { to, why, frames });
        }
    }

    fn take(&self) -> Vec<Refused> {
        self.noted.take()
    }

    fn tell(&self, len: usize, to: &impl Display, why: Errno) {
        let before = self.count.replace(self.count.get() + 1);
        if before.is_multiple_of(TELL_EVERY) {
            let told = why.desc();
            // Path MTU probes are meant to find out what is refused.
            if why == Errno::EMSGSIZE {
                tracing::debug!("cannot send a frame of {len} bytes to {to}: {told}");
            } else if before == 0 {
                tracing::warn!("cannot send a frame of {len} bytes to {to}: {told}");
            } else {
                tracing::warn!(
                    "cannot send a frame of {len} bytes to {to}: {told} ({before} earlier failures)"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_one_site_share_a_network_and_no_others() {
        let source = |at: &str| Source::of(Sender::Internet(at.parse().expect("an address")));
        let [a, b] = ["[2001:db8:7:1::1]:1", "[2001:db8:7:2::1]:1"].map(source);
        let other = source("[2001:db8:8:1::1]:1");
        assert_ne!(a, b);
        assert!(a.network().is_some() && a.network() == b.network());
        assert_ne!(a.network(), other.network());
        assert_eq!(source("192.0.2.1:1").network(), None);
    }
}
