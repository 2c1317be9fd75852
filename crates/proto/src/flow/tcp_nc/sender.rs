//! The layer below TCP's sender: takes segments, and sends combinations of them until acknowledged.

use std::collections::VecDeque;

use corridor_base::Time;
use corridor_codec::{MAX_WINDOW_SIZE, WindowEncoder, widen_id};

use super::redundancy::Budget;
use super::wire::{Feedback, Header};
use super::{NcError, NcParams, coefficients};

/// Where TCP's sequence numbers begin once widened to 64 bits: far from zero, so that none is
/// negative.
const POSITION_ORIGIN: u64 = 1 << 32;

/// A TCP segment, as far as the layer needs to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// TCP's sequence number of its first byte.
    pub sequence: u32,
    /// Bytes of data, at least 1.
    pub len: u16,
    /// TCP's timestamp, for the acknowledgment to echo; 0 if TCP uses none.
    pub stamp: u32,
}

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentOutcome {
    /// Added to the coding buffer.
    Added,
    /// Already in the buffer: TCP retransmits, which produces fresh combinations.
    Repeated,
    /// Already acknowledged, and gone from the buffer: pass it on uncoded.
    Acknowledged,
    /// Segments before it never came here: TCP has to send them all again.
    Gap,
    /// No room in the coding buffer: dropped, as by a full queue.
    Full,
    /// Empty, or longer than the parameters allow.
    NotCodable,
}

/// Counts of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NcSenderStats {
    /// Segments added to the coding buffer.
    pub segments_added: u64,
    /// Segments that were already in it.
    pub segments_repeated: u64,
    /// Segments dropped because the coding buffer was full.
    pub segments_dropped: u64,
    /// Coded packets sent.
    pub packets_sent: u64,
}

/// The sender-side layer of one connection; see the overview in the module.
///
/// After each call of [`handle_segment`](Self::handle_segment), [`handle_ack`](Self::handle_ack) or
/// [`handle_timeout`](Self::handle_timeout), drain [`poll_transmit`](Self::poll_transmit).
#[derive(Clone, Debug)]
pub struct NcSender {
    params: NcParams,
    encoder: WindowEncoder,
    /// Bytes of sequence space of each segment in the buffer.
    lens: VecDeque<u16>,
    /// Widened sequence numbers at which the buffer begins and ends; `None` before the first
    /// segment.
    range: Option<(u64, u64)>,
    /// Segments before this id have entered the coding window, and have earned their packets.
    coded_end: u64,
    /// A segment that TCP has retransmitted: the next combination ends with it.
    repeated: Option<u64>,
    budget: Budget,
    /// Number of segments known to be seen after the oldest unseen one.
    seen_beyond: u64,
    /// Coded packets received, as last reported by feedback.
    received: Option<u32>,
    stream: u16,
    serial: u32,
    stamp: u32,
    symbol: Vec<u8>,
    packet: Vec<u8>,
    stats: NcSenderStats,
}

impl NcSender {
    /// A sender with an empty buffer. `randomness` distinguishes it from earlier senders of the
    /// connection, and seeds its coefficients.
    ///
    /// # Errors
    /// As [`NcParams::check`].
    pub fn new(params: NcParams, randomness: u64) -> Result<Self, NcError> {
        params.check()?;
        let (window, size) = (usize::from(params.buffer_segments), params.symbol_size_max());
        let encoder = WindowEncoder::new(params.field, window, size);
        let encoder = encoder.map_err(|error| NcError {
            field: "segment_len_max",
            given: params.segment_len_max.to_string(),
            expected: error.to_string(),
        })?;
        let serial = randomness as u32;
        Ok(NcSender {
            encoder,
            lens: VecDeque::new(),
            range: None,
            coded_end: 0,
            repeated: None,
            budget: Budget::new(params.redundancy, serial),
            seen_beyond: 0,
            received: None,
            stream: (randomness >> 32) as u16,
            serial,
            stamp: 0,
            symbol: Vec::new(),
            packet: Vec::new(),
            stats: NcSenderStats::default(),
            params,
        })
    }

    /// Takes a segment that TCP sends; `bytes` is what the receiver's layer is to deliver.
    pub fn handle_segment(&mut self, segment: Segment, bytes: &[u8]) -> SegmentOutcome {
        if segment.len == 0 || bytes.is_empty() || bytes.len() > self.params.segment_len_max {
            return SegmentOutcome::NotCodable;
        }
        let (begin, end) = *self.range.get_or_insert_with(|| {
            let position = POSITION_ORIGIN + u64::from(segment.sequence);
            (position, position)
        });
        let start = widen_id(segment.sequence, end);
        let stop = start + u64::from(segment.len);
        if stop <= begin {
            return SegmentOutcome::Acknowledged;
        }
        if stop <= end {
            self.stamp = segment.stamp;
            self.stats.segments_repeated += 1;
            self.repeated = Some(self.id_of(stop));
            self.budget.earn(true);
            return SegmentOutcome::Repeated;
        }
        if start > end {
            return SegmentOutcome::Gap;
        }
        self.symbol.clear();
        self.symbol.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        self.symbol.extend_from_slice(bytes);
        if self.encoder.push(&self.symbol).is_err() {
            self.stats.segments_dropped += 1;
            return SegmentOutcome::Full;
        }
        self.stamp = segment.stamp;
        // The part it shares with the segment before belongs to that one.
        self.lens.push_back((stop - end) as u16);
        self.range = Some((begin, stop));
        self.stats.segments_added += 1;
        self.earn();
        SegmentOutcome::Added
    }

    /// Takes an acknowledgment on its way to TCP: everything before sequence number `ack` has been
    /// seen. Acknowledgments of data never sent are ignored. Returns whether to pass it on to TCP:
    /// not if it reports a packet that arrived and was not innovative. TCP would count it as a
    /// duplicate, a sign of loss, although it shows that nothing was missing.
    #[must_use]
    pub fn handle_ack(&mut self, now: Time, ack: u32, feedback: Option<&Feedback>) -> bool {
        let Some((mut begin, end)) = self.range else { return true };
        let seen_before = self.encoder.base() + self.seen_beyond;
        let position = widen_id(ack, begin);
        if (begin..=end).contains(&position) {
            let mut base = self.encoder.base();
            while let Some(&len) = self.lens.front()
                && begin + u64::from(len) <= position
            {
                begin += u64::from(len);
                base += 1;
                self.lens.pop_front();
            }
            self.encoder.advance_to(base);
            self.range = Some((begin, end));
            self.earn();
        }
        let Some(feedback) = feedback.filter(|feedback| feedback.stream == self.stream) else {
            return true;
        };
        self.seen_beyond = u64::from(feedback.seen_beyond);
        self.budget.handle_feedback(now, feedback);
        let arrived = self.received.replace(feedback.received) != Some(feedback.received);
        !arrived || self.encoder.base() + self.seen_beyond != seen_before
    }

    /// Advances the clock to `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.budget.handle_timeout(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next; never with a fixed factor.
    pub fn poll_timeout(&self) -> Option<Time> {
        let is_waiting = self.missing() > 0;
        self.budget.poll_timeout().filter(|_| is_waiting)
    }

    /// The next coded packet, valid until the next call; `None` if none is due.
    pub fn poll_transmit(&mut self, now: Time) -> Option<&[u8]> {
        if !self.budget.allows(self.missing()) || self.lens.is_empty() {
            self.budget.settle();
            return None;
        }
        let header = self.header();
        let (first, seed) = (self.encoder.base(), self.serial);
        self.packet.clear();
        header.write(&mut self.packet);
        let head_len = self.packet.len();
        self.packet.resize(head_len + self.params.symbol_size_max(), 0);
        let mut vector = [0; MAX_WINDOW_SIZE];
        let given = coefficients(self.params.field, seed, header.count(), &mut vector)?;
        let out = &mut self.packet[head_len..];
        let len = self.encoder.encode(first, header.count(), given, out).unwrap_or_default();
        debug_assert!(len > 0, "the window has symbols, and the vector is not all zero");
        self.packet.truncate(head_len + len);
        self.budget.spend(now);
        self.serial = self.serial.wrapping_add(1);
        self.stats.packets_sent += 1;
        Some(&self.packet)
    }

    /// Segments in the coding buffer.
    pub fn buffered(&self) -> usize {
        self.lens.len()
    }

    /// Bytes of data in the coding buffer: sent by TCP and not acknowledged.
    pub fn buffered_bytes(&self) -> u64 {
        self.range.map_or(0, |(begin, end)| end - begin)
    }

    /// Counts since the start.
    pub fn stats(&self) -> &NcSenderStats {
        &self.stats
    }

    /// Estimated loss ratio, if redundancy is adaptive.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.budget.loss_ratio()
    }

    /// Degrees of freedom that the receiver is not known to have.
    fn missing(&self) -> u64 {
        (self.coded_end - self.encoder.base().min(self.coded_end)).saturating_sub(self.seen_beyond)
    }

    /// Lets segments earn packets when they first enter the coding window: when they come, or, if
    /// the header has no room for their lengths, when earlier ones are gone.
    fn earn(&mut self) {
        let mut header = Header::new(0, 0, 0, 0, 0);
        let window = self.lens.iter().take_while(|&&len| header.push(len)).count();
        let end = self.encoder.base() + window as u64;
        // Segments that were acknowledged before they were coded no longer earn anything.
        self.coded_end = self.coded_end.max(self.encoder.base());
        while self.coded_end < end {
            self.coded_end += 1;
            self.budget.earn(false);
        }
    }

    /// The segment that contains the byte before `stop`.
    fn id_of(&self, stop: u64) -> u64 {
        let mut position = self.range.map_or(stop, |(begin, _)| begin);
        let before = self.lens.iter().take_while(|&&len| {
            position += u64::from(len);
            position < stop
        });
        self.encoder.base() + before.count() as u64
    }

    /// The header of the next packet, which covers the coding window; but the first packet for a
    /// retransmitted segment ends with that segment. A full receiver rejects whatever reaches
    /// beyond its window. TCP then retransmits the oldest segment, for which the receiver does have
    /// room.
    fn header(&mut self) -> Header {
        let base = self.encoder.base();
        let sequence = self.range.map_or(0, |(begin, _)| begin) as u32;
        let mut header = Header::new(self.stream, base as u32, self.serial, sequence, self.stamp);
        let end = self.coded_end - base;
        let count = match self.repeated.take() {
            Some(id) if id >= base => end.min(id - base + 1),
            _ => end,
        };
        let _fits = self.lens.iter().take(count as usize).all(|&len| header.push(len));
        header
    }
}
