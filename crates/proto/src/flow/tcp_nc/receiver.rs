//! The layer between IP and TCP's receiver: takes combinations, acknowledges what is seen, and
//! delivers segments in order.

use std::collections::VecDeque;

use corridor_codec::{MAX_WINDOW_SIZE, WindowDecoder, WindowOutcome, widen_id};

use super::wire::{Feedback, Header};
use super::{NcError, NcParams, SEGMENT_PREFIX_LEN, coefficients};

/// Where TCP's sequence numbers begin once widened to 64 bits: far from zero, so that none is
/// negative.
const POSITION_ORIGIN: u64 = 1 << 32;

/// Counts of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NcReceiverStats {
    /// Coded packets received.
    pub packets_received: u64,
    /// Of these, innovative ones: they made a segment seen.
    pub innovative: u64,
    /// Of these, dependent ones.
    pub dependent: u64,
    /// Of these, those that cover only segments delivered long ago.
    pub stale: u64,
    /// Of these, those that reach beyond the window.
    pub ahead: u64,
    /// Packets that could not be parsed, or contradicted earlier ones.
    pub malformed: u64,
    /// Segments delivered.
    pub delivered: u64,
    /// Streams that replaced another.
    pub restarts: u64,
}

/// The receiver-side layer of one connection; see the overview in the module.
///
/// After each [`handle_packet`](Self::handle_packet), drain [`poll_delivery`](Self::poll_delivery)
/// and send one acknowledgment of [`ack`](Self::ack).
#[derive(Clone, Debug)]
pub struct NcReceiver {
    decoder: WindowDecoder,
    stream: Option<Stream>,
    /// The stream before this one; its packets still in flight must not look like a third one's.
    former: Option<u16>,
    stats: NcReceiverStats,
}

/// What is known about the sender.
#[derive(Clone, Debug)]
struct Stream {
    id: u16,
    /// Widened sequence numbers at which segments begin, from the decoder's base on.
    starts: VecDeque<u64>,
    /// Where the last known segment ends.
    end: u64,
    /// Id of the first segment not delivered.
    delivered: u64,
    /// No further combination contains a segment before this id.
    sender_base: u64,
    serial: u32,
    received: u32,
    stamp: u32,
}

impl NcReceiver {
    /// A receiver that has not heard from any sender.
    ///
    /// # Errors
    /// As [`NcParams::check`].
    pub fn new(params: NcParams) -> Result<Self, NcError> {
        params.check()?;
        let window = 2 * usize::from(params.buffer_segments);
        let decoder = WindowDecoder::new(params.field, window, params.symbol_size_max());
        let decoder = decoder.map_err(|error| NcError {
            field: "segment_len_max",
            given: params.segment_len_max.to_string(),
            expected: error.to_string(),
        })?;
        Ok(NcReceiver { decoder, stream: None, former: None, stats: NcReceiverStats::default() })
    }

    /// Takes a coded packet. `None` if it cannot be parsed or contradicts what is known; then
    /// nothing has changed, and nothing is to be acknowledged.
    pub fn handle_packet(&mut self, packet: &[u8]) -> Option<WindowOutcome> {
        let outcome = self.take(packet);
        let stats = &mut self.stats;
        stats.packets_received += u64::from(outcome.is_some());
        let counter = match outcome {
            Some(WindowOutcome::Innovative) => &mut stats.innovative,
            Some(WindowOutcome::Dependent) => &mut stats.dependent,
            Some(WindowOutcome::Stale) => &mut stats.stale,
            Some(WindowOutcome::Ahead) => &mut stats.ahead,
            None => &mut stats.malformed,
        };
        *counter += 1;
        outcome
    }

    /// The next segment in order, valid until the next call.
    pub fn poll_delivery(&mut self) -> Option<&[u8]> {
        let stream = self.stream.as_mut()?;
        let symbol = self.decoder.symbol(stream.delivered)?;
        stream.delivered += 1;
        self.stats.delivered += 1;
        // Clamped: a sender that contradicts itself may state more than there is.
        let (prefix, rest) = symbol.split_at_checked(SEGMENT_PREFIX_LEN).unwrap_or((&[0, 0], &[]));
        let len = usize::from(u16::from_be_bytes([prefix[0], prefix[1]]));
        Some(&rest[..len.min(rest.len())])
    }

    /// The sequence number of the oldest unseen segment, which the acknowledgment tells TCP. `None`
    /// before the first packet.
    pub fn ack(&self) -> Option<u32> {
        let stream = self.stream.as_ref()?;
        let unseen = (self.decoder.seen_end() - self.decoder.base()) as usize;
        Some(stream.starts.get(unseen).map_or(stream.end, |&start| start) as u32)
    }

    /// The stamp of the latest packet, for the acknowledgment to echo.
    pub fn stamp(&self) -> u32 {
        self.stream.as_ref().map_or(0, |stream| stream.stamp)
    }

    /// The feedback to an adaptive sender, sent with the acknowledgment.
    pub fn feedback(&self) -> Option<Feedback> {
        let stream = self.stream.as_ref()?;
        let seen = self.decoder.rank() as u64;
        let before = self.decoder.seen_end() - self.decoder.base();
        Some(Feedback {
            stream: stream.id,
            seen_beyond: (seen - before).min(u64::from(u8::MAX)) as u8,
            serial: stream.serial,
            received: stream.received,
        })
    }

    /// Segments held: not decoded, not delivered, or still in combinations.
    pub fn held(&self) -> usize {
        self.decoder.rank()
    }

    /// Segments that are known and not delivered.
    pub fn undelivered(&self) -> usize {
        let delivered = self.stream.as_ref().map_or(0, |stream| stream.delivered);
        self.decoder.end().saturating_sub(delivered) as usize
    }

    /// Counts since the start.
    pub fn stats(&self) -> &NcReceiverStats {
        &self.stats
    }

    fn take(&mut self, packet: &[u8]) -> Option<WindowOutcome> {
        let (header, payload) = Header::read(packet)?;
        let count = header.count();
        if payload.len() > self.decoder.symbol_size_max() {
            return None;
        }
        self.meet(&header)?;
        let first = widen_id(header.first, self.decoder.end());
        self.release(first);
        let stream = self.stream.as_mut()?;
        let base = self.decoder.base();
        // The sender's buffer may be longer than the window. TCP notices the loss and retransmits
        // the oldest segment, and combinations then are shorter.
        let outcome = if first + count as u64 > base + self.decoder.window_size() as u64 {
            WindowOutcome::Ahead
        } else {
            stream.note_ranges(base, first, &header)?;
            let mut vector = [0; MAX_WINDOW_SIZE];
            let given = coefficients(self.decoder.field(), header.serial, count, &mut vector)?;
            self.decoder.add_coded(first, count, given, payload).ok()?
        };
        stream.note_arrival(&header);
        Some(outcome)
    }

    /// Drops segments, given that the sender's window begins with `first`. Segments that
    /// combinations still contain are kept, even if delivered; segments not delivered are kept too,
    /// because they were acknowledged as soon as they were seen.
    fn release(&mut self, first: u64) {
        let Some(stream) = &mut self.stream else { return };
        stream.sender_base = stream.sender_base.max(first);
        let (base, free) = (self.decoder.base(), stream.sender_base.min(stream.delivered));
        if free > base {
            stream.starts.drain(..(free - base) as usize);
            self.decoder.advance_to(free);
        }
    }

    /// Starts with a sender's first packet, at the beginning of its window: what is before has been
    /// acknowledged, perhaps by this receiver's predecessor.
    fn meet(&mut self, header: &Header) -> Option<()> {
        match &self.stream {
            Some(stream) if stream.id == header.stream => return Some(()),
            _ if self.former == Some(header.stream) => return None,
            Some(stream) => {
                self.former = Some(stream.id);
                self.stats.restarts += 1;
            }
            None => {}
        }
        // Ids begin at zero, and the low bits suffice: no sender sends 2^32 segments unheard.
        let first = u64::from(header.first);
        self.decoder.reset(first);
        self.stream = Some(Stream {
            id: header.stream,
            starts: VecDeque::new(),
            end: POSITION_ORIGIN + u64::from(header.sequence),
            delivered: first,
            sender_base: first,
            serial: header.serial.wrapping_sub(1),
            received: 0,
            stamp: header.stamp,
        });
        Some(())
    }
}

impl Stream {
    /// Compares the ranges in a header with the known ones, and then adds the new ones.
    fn note_ranges(&mut self, base: u64, first: u64, header: &Header) -> Option<()> {
        let known_end = base + self.starts.len() as u64;
        if first > known_end {
            return None;
        }
        let near = self.starts.front().map_or(self.end, |&start| start);
        let (mut id, mut position) = (first, widen_id(header.sequence, near));
        let lens = header
            .runs()
            .iter()
            .flat_map(|run| std::iter::repeat_n(u64::from(run.len), usize::from(run.segments)));
        // Compare first, so that nothing changes if there is a contradiction.
        for len in lens.clone() {
            let known = match id.checked_sub(base).map(|place| self.starts.get(place as usize)) {
                Some(Some(&start)) => start == position,
                _ => id != known_end || self.end == position,
            };
            if !known {
                return None;
            }
            (id, position) = (id + 1, position + len);
        }
        if first + header.count() as u64 == known_end && position != self.end {
            return None;
        }
        for len in lens.skip((known_end - first) as usize) {
            self.starts.push_back(self.end);
            self.end += len;
        }
        Some(())
    }

    fn note_arrival(&mut self, header: &Header) {
        self.received = self.received.wrapping_add(1);
        if header.serial.wrapping_sub(self.serial) as i32 > 0 {
            (self.serial, self.stamp) = (header.serial, header.stamp);
        }
    }
}
