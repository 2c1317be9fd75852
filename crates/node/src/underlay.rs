//! What carries the frames: an Ethernet interface, or UDP.

mod ethernet;
mod outbox;
mod peers;
mod udp;

use std::cell::Cell;
use std::fmt::Display;
use std::os::fd::BorrowedFd;

use corridor_base::Time;
use corridor_proto::{Destination, StationId};
use nix::errno::Errno;

use crate::config::{NodeConfig, UnderlayKind};
use crate::error::NodeError;
use crate::netlink;
use crate::syscalls::Sender;
pub(crate) use ethernet::Ethernet;
pub(crate) use udp::Udp;

/// Frames the kernel may hold for us, not yet on the air: enough to keep the interface busy while
/// this process sleeps, few enough that a frame is made shortly before it goes.
const SEND_BUFFER_FRAMES: usize = 6;
/// Bytes the kernel counts for a frame beside its own.
const SEND_BUFFER_OVERHEAD: usize = 1024;
/// Bytes the kernel keeps of frames that came while this process slept.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// Of refused frames the first is told, and then one of so many.
const TELL_EVERY: u64 = 1000;

/// What became of the frames of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Frames that were refused for a reason that the next need not meet. They are lost.
    pub(crate) lost: u64,
    /// The underlay is full, and the other frames wait.
    pub(crate) busy: Option<Busy>,
}

/// The underlay is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// Whether the descriptor becomes writable when there is room.
    pub(crate) wakes: bool,
}

/// What became of a frame handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It was taken.
    Taken,
    /// It was refused for a reason that the next frame need not meet. It is lost.
    Lost,
    /// There is no room. The same frame is to be offered again.
    Busy {
        /// See [`Busy::wakes`].
        wakes: bool,
    },
}

/// How sure it is that a frame's sender is at the address it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// It opened under an accepted session.
    Session,
    /// It may be a recording that somebody plays from elsewhere.
    Handshake,
}

/// An underlay of either kind.
pub(crate) enum Underlay {
    /// See [`Ethernet`].
    Ethernet(Ethernet),
    /// See [`Udp`].
    Udp(Udp),
}

impl Underlay {
    /// Opens what the configuration asks for.
    pub(crate) fn open(config: &NodeConfig) -> Result<Self, NodeError> {
        match &config.underlay.kind {
            UnderlayKind::Ethernet { .. } => Ethernet::open(config).map(Underlay::Ethernet),
            UnderlayKind::Udp { listen } => Udp::open(config, *listen).map(Underlay::Udp),
        }
    }

    /// Longest frame in bytes that the underlay would carry if it was opened now, as far as can
    /// be told without opening it.
    pub(crate) fn frame_len_max_expected(config: &NodeConfig) -> usize {
        match &config.underlay.kind {
            UnderlayKind::Ethernet { interface, .. } => {
                let mtu = netlink::link(interface).ok().flatten().map(|link| link.mtu);
                Ethernet::frame_len_max_of(config, mtu)
            }
            UnderlayKind::Udp { .. } => Udp::frame_len_max_of(config),
        }
    }

    /// Longest frame, bytes.
    pub(crate) fn frame_len_max(&self) -> usize {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.frame_len_max(),
            Underlay::Udp(udp) => udp.frame_len_max(),
        }
    }

    /// Shortest frame that is not padded on the way, bytes.
    pub(crate) fn frame_len_min(&self) -> usize {
        match self {
            Underlay::Ethernet(_) => crate::config::ETHERNET_PAYLOAD_MIN,
            Underlay::Udp(_) => 0,
        }
    }

    /// Puts a frame into the batch, which has room for it ([`Underlay::is_full`]).
    pub(crate) fn push(&mut self, to: Destination, frame: &[u8]) {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.push(to, frame),
            Underlay::Udp(udp) => udp.push(to, frame),
        }
    }

    /// Whether the batch is to be flushed before another frame is made.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.is_full(),
            Underlay::Udp(udp) => udp.is_full(),
        }
    }

    /// Hands the batch to the kernel. What there is no room for waits, and goes first next time.
    pub(crate) fn flush(&mut self, now: Time) -> Result<Flushed, NodeError> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.flush(now),
            Underlay::Udp(udp) => udp.flush(now),
        }
    }

    /// Takes a batch of frames from the kernel. How many there are.
    pub(crate) fn receive(&mut self) -> Result<usize, NodeError> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.receive(),
            Underlay::Udp(udp) => udp.receive(),
        }
    }

    /// The frame at `index` of the last batch, and where it came from; none if it is not for us.
    pub(crate) fn frame(&self, index: usize) -> Option<(Sender, &[u8])> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.frame(index),
            Underlay::Udp(udp) => udp.frame(index),
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

    /// Notes that a frame of this station came from this address.
    pub(crate) fn learn(&mut self, station: StationId, at: Sender, certainty: Certainty) {
        match (self, at) {
            (Underlay::Ethernet(ethernet), Sender::Packet { mac, .. }) => {
                ethernet.peers.learn(station, mac, certainty);
            }
            (Underlay::Udp(udp), Sender::Internet(address)) => {
                udp.peers.learn(station, address, certainty);
            }
            _ => {}
        }
    }

    /// What to wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.fd(),
            Underlay::Udp(udp) => udp.fd(),
        }
    }

    /// Where frames go, in a few words for the log.
    pub(crate) fn describe(&self) -> String {
        match self {
            Underlay::Ethernet(ethernet) => ethernet.describe(),
            Underlay::Udp(udp) => udp.describe(),
        }
    }
}

/// Bytes for `SO_SNDBUF` so that about [`SEND_BUFFER_FRAMES`] frames fit.
fn send_buffer_bytes(frame_len_max: usize) -> usize {
    // The kernel doubles what it is told, to make up for its own overhead.
    SEND_BUFFER_FRAMES * (frame_len_max + SEND_BUFFER_OVERHEAD) / 2
}

/// Frames that were refused for good. A network that refuses one mostly refuses all that follow,
/// and a line for each would fill the log.
#[derive(Default)]
struct Refusals(Cell<u64>);

impl Refusals {
    fn tell(&self, len: usize, to: &impl Display, why: Errno) {
        let before = self.0.replace(self.0.get() + 1);
        if before.is_multiple_of(TELL_EVERY) {
            let why = why.desc();
            tracing::warn!("a frame of {len} bytes to {to} was refused: {why} ({before} before)");
        }
    }
}
