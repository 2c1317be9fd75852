//! Chunks sent in parts, because they were made for longer frames than the path carries now.
//!
//! To the link a part is a frame like any other; the symbol counts once, with its last part. A
//! receiver keeps the parts of the newest [`PARTS_WHOLES_MAX`] chunks of each peer, none longer
//! than the symbols that the peer has announced. A completed chunk has every byte exactly once,
//! whatever parts claim.

use arrayvec::ArrayVec;

use super::Shared;
use crate::bounds::{PARTS_MAX, PARTS_WHOLES_MAX};
use crate::config::StationId;
use crate::inspect::PartsView;
use crate::link::handshake::Opened;
use crate::wire::{Chunk, Chunks, Kind, OVERHEAD_LEN, PART_LEN, Part};

// ---- sending ----------------------------------------------------------------------------------

/// A chunk that is being sent in parts.
#[derive(Default)]
pub(crate) struct Cut {
    number: u16,
    /// Its kind and body, and how much of it was sent.
    whole: Vec<u8>,
    gone: usize,
}

impl Cut {
    /// Whether some of it is still to be sent.
    pub(crate) fn is_open(&self) -> bool {
        self.gone < self.whole.len()
    }

    /// The whole chunk, kind and body; the last one if none is being sent.
    pub(crate) fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// Drops the rest, which is of no more use.
    pub(crate) fn drop_rest(&mut self) {
        self.gone = self.whole.len();
    }

    /// Begins with another chunk.
    pub(crate) fn begin(&mut self, kind: Kind, body: &[u8]) {
        self.number = self.number.wrapping_add(1);
        self.whole.clear();
        kind.begin_last(&mut self.whole);
        self.whole.extend_from_slice(body);
        self.gone = 0;
    }

    /// Writes the next part as a body of at most `len_max` bytes.
    pub(crate) fn write(&mut self, len_max: usize, body: &mut Vec<u8>) {
        let rest = &self.whole[self.gone..];
        let bytes = &rest[..rest.len().min(len_max.saturating_sub(PART_LEN).max(1))];
        let len = (self.whole.len() as u16).try_into();
        let Ok(len) = len else { return };
        Part { whole: self.number, len, at: self.gone as u16, bytes }.write(body);
        self.gone += bytes.len();
    }
}

impl Shared {
    /// Longest body of a frame's only chunk that the path is known to carry.
    pub(crate) fn body_len_max(&self) -> usize {
        self.path.safe_frame_len().saturating_sub(OVERHEAD_LEN)
    }

    /// If a body was made for a longer frame, sends it in parts: `body` becomes that of the first
    /// part. Returns the kind of the chunk to send.
    pub(crate) fn cut(&mut self, kind: Kind, body: &mut Vec<u8>) -> Kind {
        let room = self.body_len_max();
        if body.len() <= room {
            return kind;
        }
        self.cut.begin(kind, body);
        self.stats.symbols_cut += 1;
        self.next_part(body);
        Kind::Part
    }

    /// Makes the body of the next part; returns whether it is the last.
    pub(crate) fn next_part(&mut self, body: &mut Vec<u8>) -> bool {
        body.clear();
        let room = self.body_len_max();
        self.cut.write(room, body);
        self.stats.part_frames_sent += 1;
        !self.cut.is_open()
    }

    /// If the body appended to the frame at `begins_at`, after the kind of the last chunk, is too
    /// long, replaces it with the first part.
    pub(crate) fn cut_frame(&mut self, kind: Kind, begins_at: usize) {
        if self.frame.len() - begins_at <= self.body_len_max() {
            return;
        }
        let mut body = self.frame.split_off(begins_at);
        if self.cut(kind, &mut body) == Kind::Part {
            self.frame.pop();
            Kind::Part.begin_last(&mut self.frame);
        }
        self.frame.extend_from_slice(&body);
    }

    /// Makes a frame of the next part; returns whether it is the last.
    pub(crate) fn send_part(&mut self) -> bool {
        let mut body = core::mem::take(&mut self.part);
        let is_last = self.next_part(&mut body);
        self.group.begin(&mut self.frame);
        Kind::Part.begin_last(&mut self.frame);
        self.frame.extend_from_slice(&body);
        self.part = body;
        self.seal();
        is_last
    }
}

// ---- receiving --------------------------------------------------------------------------------

/// The parts received from all peers.
#[derive(Default)]
pub(crate) struct Parts(Vec<OfPeer>);

/// The parts received from one peer.
struct OfPeer {
    station: StationId,
    /// Bytes of the peer's longest chunk.
    len_max: usize,
    /// Indexed by the chunk's number.
    wholes: [Option<Whole>; PARTS_WHOLES_MAX],
}

/// A chunk of which parts have been received.
struct Whole {
    number: u16,
    bytes: Vec<u8>,
    /// Start and end of each part received; none contains another.
    came: ArrayVec<(u16, u16), PARTS_MAX>,
}

impl Parts {
    /// Bytes kept per peer, without those of the chunks.
    pub(crate) const PEER_BYTES: usize = size_of::<OfPeer>();

    pub(crate) fn inspect(&self) -> Vec<PartsView> {
        let view = |of: &OfPeer| PartsView {
            peer: of.station,
            bytes: of.wholes.iter().flatten().map(|whole| whole.bytes.len()).sum(),
            chunk_len_max: of.len_max,
        };
        self.0.iter().map(view).collect()
    }

    /// Bytes kept.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.inspect().iter().map(|of| of.bytes).sum()
    }

    /// A peer has (re)started: its chunks have new numbers, and are no longer than `len_max`.
    pub(crate) fn expect(&mut self, station: StationId, len_max: usize) {
        self.0.retain(|of| of.station != station);
        self.0.push(OfPeer { station, len_max, wholes: Default::default() });
    }

    /// Adds a part. Returns the whole chunk if this completes it.
    pub(crate) fn take(&mut self, from: StationId, part: &Part<'_>) -> Option<Vec<u8>> {
        let of_peer = self.0.iter_mut().find(|of| of.station == from)?;
        if usize::from(part.len.get()) > of_peer.len_max {
            return None;
        }
        let place = &mut of_peer.wholes[usize::from(part.whole) % PARTS_WHOLES_MAX];
        let is_newer = |known: &Whole| part.whole.wrapping_sub(known.number) as i16 > 0;
        if place.as_ref().is_none_or(is_newer) {
            *place = Some(Whole::new(part));
        }
        place.as_mut().filter(|whole| whole.number == part.whole)?.add(part);
        place.take_if(|whole| whole.is_complete()).map(|whole| whole.bytes)
    }
}

impl Whole {
    fn new(part: &Part<'_>) -> Self {
        let bytes = vec![0; part.len.get().into()];
        Whole { number: part.whole, bytes, came: ArrayVec::new() }
    }

    /// Bytes that were received before are not overwritten.
    fn add(&mut self, part: &Part<'_>) {
        let (at, end) = (usize::from(part.at), usize::from(part.at) + part.bytes.len());
        let is_new = self.came.iter().all(|&(from, to)| {
            let (from, to) = (usize::from(from), usize::from(to));
            end <= from || to <= at
        });
        let is_of_it = usize::from(part.len.get()) == self.bytes.len();
        if is_new && is_of_it && self.came.try_push((part.at, end as u16)).is_ok() {
            self.bytes[at..end].copy_from_slice(part.bytes);
        }
    }

    fn is_complete(&self) -> bool {
        let came: usize = self.came.iter().map(|&(from, to)| usize::from(to - from)).sum();
        came == self.bytes.len()
    }
}

impl Shared {
    /// Handles a peer's part. `None` if it is malformed; the whole chunk with its kind if this
    /// completes it.
    pub(super) fn take_part(&mut self, opened: Opened, body: &[u8]) -> Option<Option<Vec<u8>>> {
        let part = Part::parse(body)?;
        let whole = self.parts.take(opened.from, &part);
        self.stats.symbols_joined += u64::from(whole.is_some());
        Some(whole)
    }
}

/// The only chunk in a whole: it carries packets, because nothing else is so long.
pub(super) fn whole_chunk(whole: &[u8]) -> Option<Chunk<'_>> {
    let only = Chunks::only(whole)?;
    matches!(only.kind, Kind::Enc | Kind::Plain | Kind::Window).then_some(only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::FRAME_LEN_MAX;
    use proptest::prelude::*;

    const FRIEND: StationId = StationId(1);
    const FORGER: StationId = StationId(2);

    /// Of two peers whose chunks have at most `len_max` bytes.
    fn parts(len_max: usize) -> Parts {
        let mut parts = Parts::default();
        [FRIEND, FORGER].into_iter().for_each(|station| parts.expect(station, len_max));
        parts
    }

    /// A part as on the wire, of the whole chunk `number` with these bytes.
    fn part(number: u16, whole: &[u8], at: usize, len: usize) -> Vec<u8> {
        let mut body = Vec::new();
        let bytes = &whole[at..at + len];
        let len = (whole.len() as u16).try_into().unwrap();
        Part { whole: number, len, at: at as u16, bytes }.write(&mut body);
        body
    }

    fn take(parts: &mut Parts, from: StationId, body: &[u8]) -> Option<Vec<u8>> {
        parts.take(from, &Part::parse(body)?)
    }

    /// The parts that a sender makes of `count` chunks, in frames with room for `room` bytes.
    fn made(count: u16, len: usize, room: usize) -> Vec<(u16, Vec<u8>)> {
        let mut cut = Cut { number: u16::MAX - 2, ..Cut::default() };
        let mut bodies = Vec::new();
        for at in 0..count {
            cut.begin(Kind::Plain, &vec![at as u8; len]);
            while cut.is_open() {
                let mut body = Vec::new();
                cut.write(room, &mut body);
                assert!(body.len() <= room);
                bodies.push((at, body));
            }
        }
        bodies
    }

    #[test]
    fn a_body_goes_in_as_many_parts_as_are_counted_on_and_comes_back() {
        for (len, room) in [(1_400, 1_300), (1_400, 710), (9_192, 232), (1_400, 707), (1_400, 706)]
        {
            let bodies = made(1, len, room);
            assert_eq!(bodies.len(), crate::wire::parts_of(len, room), "{len} in {room}");
            assert!(bodies.len() <= PARTS_MAX);
            let mut parts = parts(len + 1);
            let mut came = bodies.iter().filter_map(|(_, body)| take(&mut parts, FRIEND, body));
            let whole = came.next().expect("all parts have come");
            let chunk = whole_chunk(&whole).expect("a chunk of packets");
            assert_eq!((chunk.kind, chunk.body), (Kind::Plain, &vec![0; len][..]));
            assert!(came.next().is_none());
        }
    }

    #[test]
    fn a_whole_is_one_chunk_of_packets_and_nothing_else() {
        for kind in [Kind::Goodbye, Kind::Hello, Kind::Part, Kind::WindowAck, Kind::Ack] {
            assert_eq!(whole_chunk(&[kind.code(), 1, 2]), None);
        }
        let mut two = Vec::new();
        Kind::Plain.write(&[1], &mut two);
        Kind::Plain.begin_last(&mut two);
        assert_eq!((whole_chunk(&two), whole_chunk(&[])), (None, None));
    }

    #[test]
    fn nothing_longer_is_kept_than_a_peer_has_announced() {
        let mut parts = Parts::default();
        let longest = part(1, &[7; 100], 0, 50);
        assert_eq!((take(&mut parts, FRIEND, &longest), parts.bytes()), (None, 0), "nobody met");
        parts.expect(FRIEND, 100);
        take(&mut parts, FRIEND, &part(2, &[7; 101], 0, 50));
        assert_eq!(parts.bytes(), 0);
        take(&mut parts, FRIEND, &longest);
        assert_eq!(parts.bytes(), 100);
        parts.expect(FRIEND, 99);
        assert_eq!((take(&mut parts, FRIEND, &longest), parts.bytes()), (None, 0), "begun anew");
    }

    proptest! {
        #![proptest_config(corridor_testing::cases!(256))]

        /// As long as no more chunks are open than are kept, every chunk whose parts all arrive is
        /// completed once, whatever is duplicated or late, and whatever another station sends.
        #[test]
        fn wholes_come_back_from_parts_in_any_order(
            order in proptest::collection::vec(any::<u32>(), 1..200),
            forged in proptest::collection::vec(any::<u8>(), 7..60),
            lost in any::<u32>(),
        ) {
            let mut bodies = made(PARTS_WHOLES_MAX as u16, 500, 200);
            bodies.push(bodies[lost as usize % bodies.len()].clone());
            for (at, &by) in order.iter().enumerate() {
                let count = bodies.len();
                bodies.swap(at % count, by as usize % count);
            }
            let (gone, _) = bodies.swap_remove(0);
            bodies.retain(|(at, _)| *at != gone || lost % 2 == 0);
            let (mut parts, mut came) = (parts(FRAME_LEN_MAX), Vec::new());
            for (at, body) in &bodies {
                prop_assert_eq!(take(&mut parts, FORGER, &forged), None);
                let mut lies = body.clone();
                lies[6..].fill(0xee);
                take(&mut parts, FORGER, &lies);
                if let Some(whole) = take(&mut parts, FRIEND, body) {
                    let chunk = whole_chunk(&whole).unwrap();
                    prop_assert!(chunk.body == vec![*at as u8; 500], "{}", at);
                    came.push(*at);
                }
                prop_assert!(parts.bytes() <= 2 * PARTS_WHOLES_MAX * FRAME_LEN_MAX);
            }
            let all = made(PARTS_WHOLES_MAX as u16, 500, 200);
            let is_whole = |at: &u16| {
                let of_it = all.iter().filter(|(whole, _)| whole == at);
                of_it.clone().all(|part| bodies.contains(part))
            };
            let wanted: Vec<u16> = (0..PARTS_WHOLES_MAX as u16).filter(is_whole).collect();
            came.sort_unstable();
            came.dedup();
            prop_assert_eq!(came, wanted);
        }

        /// Whatever is sent, a completed chunk has at each place a byte that was sent for it, and
        /// no more is kept than the bound.
        #[test]
        fn parts_that_overlap_contradict_or_lack_make_nothing_up(
            said in proptest::collection::vec(
                (0..4_u16, 1..40_usize, 0..40_usize, 1..40_usize, any::<u8>()), 1..200,
            ),
            garbage in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut parts = parts(40);
            let mut spoken = std::collections::BTreeSet::new();
            for (number, len, at, count, byte) in said {
                let at = at.min(len - 1);
                let body = part(number, &vec![byte; len], at, count.min(len - at));
                spoken.extend((at..at + count.min(len - at)).map(|at| (number, len, at, byte)));
                if let Some(whole) = take(&mut parts, FRIEND, &body) {
                    prop_assert_eq!(whole.len(), len);
                    for (at, &byte) in whole.iter().enumerate() {
                        prop_assert!(spoken.contains(&(number, len, at, byte)));
                    }
                }
                take(&mut parts, FRIEND, &garbage);
                prop_assert!(parts.bytes() <= PARTS_WHOLES_MAX * 40);
            }
        }
    }
}
