//! What a station has less of than configured, because its share of the memory is small.

use core::fmt;

use arrayvec::ArrayVec;

use super::{BlockShape, Coders, divided, segments};
use crate::bounds::{HELPER_BLOCKS_MAX, TCP_NC_SEGMENTS_MAX};
use crate::config::StationConfig;

/// What is limited: queues, windows, blocks and buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Packets of the ingress queue.
    Packets,
    /// Symbols of a window.
    Symbols,
    /// Blocks in flight.
    Blocks,
    /// Blocks of a peer held at once, or by a helper per flow.
    BlocksHeld,
    /// Segments of each of TCP/NC's coding buffers.
    Segments,
}

/// Something that a station has less of than configured, or than the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// What it is.
    pub of: Counted,
    /// How many the station has.
    pub has: usize,
    /// How many it would have with more memory.
    pub told: usize,
}

/// Everything that a station can be short of.
pub(crate) type Shortages = ArrayVec<Shortage, 3>;

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortage { of, has, told } = self;
        let of = match of {
            Counted::Packets => "packets in the queue",
            Counted::Symbols => "symbols in a window",
            Counted::Blocks => "blocks in flight",
            Counted::BlocksHeld => "blocks from the other end",
            Counted::Segments => "segments in a coding buffer of TCP/NC",
        };
        write!(f, "{has} of {told} {of}")
    }
}

/// What a station limited to its share is short of.
pub(super) fn shortages(told: &StationConfig, fitted: &StationConfig) -> Shortages {
    let (queue, more) = (fitted.ingress_packets, fitted.coding);
    let received = divided(fitted).received;
    let of_coders = match Coders::of(fitted) {
        Coders::Windows => [
            Some((Counted::Symbols, more.window_size.into(), told.coding.window_size.into())),
            None,
        ],
        Coders::Blocks => {
            let blocks = usize::from(told.coding.blocks_in_flight);
            let held = BlockShape::of(fitted).decoded_in(received);
            [
                Some((Counted::Blocks, more.blocks_in_flight.into(), blocks)),
                Some((Counted::BlocksHeld, held, blocks)),
            ]
        }
        Coders::Helped => {
            let held = BlockShape::of(fitted).helped_in(received / 2);
            [Some((Counted::BlocksHeld, held, HELPER_BLOCKS_MAX)), None]
        }
        Coders::Connections => {
            let segments = segments(fitted).into();
            [Some((Counted::Segments, segments, TCP_NC_SEGMENTS_MAX.into())), None]
        }
        Coders::None => [None, None],
    };
    let queue = Some((Counted::Packets, queue, told.ingress_packets));
    let all = of_coders.into_iter().chain([queue]).flatten();
    let all = all.map(|(of, has, told)| Shortage { of, has, told });
    all.filter(|it| it.has < it.told).collect()
}
