//! Frames made that the kernel has not taken yet, and how many may be made at once.
//!
//! Handing many frames to the kernel in one call costs little more than one. But frames that wait
//! here are older than they could be, and behind a slow link they would be an unmanaged queue. So
//! the first batch has one frame, and batches grow only as long as the kernel takes them at once.

use std::ops::Range;
use std::time::Duration;

use corridor_base::Time;

/// Most frames in a batch: as many as can be cut from the longest datagram.
const BATCH_FRAMES_MAX: usize = 64;
/// Most bytes in a batch, for the same reason.
const BATCH_BYTES_MAX: usize = 64_000;
/// A link without room for this long is too slow for batches; with less, the kernel sends what it
/// holds in about as much time.
const BUSY_LONG: Duration = Duration::from_millis(1);

/// Shortest interval of offering a frame again that there was no room for, if the kernel does not
/// report when there is.
const RETRY_MIN: Duration = Duration::from_micros(200);
/// Longest interval: an interface without a carrier takes nothing for hours.
const RETRY_MAX: Duration = Duration::from_millis(50);
/// In between, this fraction of the time for which there has been no room: this bounds the
/// additional wait of a frame.
const RETRY_DIVISOR: u32 = 16;

/// A frame without room for this long is dropped: it is of no more use.
const HELD_MAX: Duration = Duration::from_secs(5);
/// The same for a long frame, and for those behind it that are no shorter. Some interfaces refuse
/// frames that are too long as if they were full, and would keep all others waiting, among them the
/// probes that would reveal the length. Where 1500 bytes take longer than this, at less than 48
/// kbit/s, a full queue costs frames.
const LONG_HELD_MAX: Duration = Duration::from_millis(250);
/// The same for a long probe. Many probes may be refused in one search and delay all peers, unless
/// a frame of this length was taken within the last [`HELD_MAX`]: then the interface is just full.
/// Where 1500 bytes take longer than this, at less than 600 kbit/s, a full queue makes other probes
/// count as missed.
const PROBE_HELD_MAX: Duration = Duration::from_millis(20);
/// Frames up to this length, including lower headers, are never refused for their length: every
/// IPv4 path carries them (RFC 791, Section 3.1).
const SHORT_MAX: usize = 576;

/// A frame, and its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Queued<A> {
    to: A,
    bytes: Range<usize>,
    /// It has to be sent as a datagram of its own.
    alone: bool,
}

/// Frames in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Outbox<A> {
    bytes: Vec<u8>,
    frames: Vec<Queued<A>>,
    /// Frames that the kernel has taken.
    done: usize,
    /// Frames allowed in one batch.
    limit: usize,
    /// Since when the kernel has had no room.
    busy_since: Option<Time>,
    /// Length of the longest frame that the kernel recently took by itself, and when.
    longest_taken: Option<(usize, Time)>,
}

impl<A: Copy + PartialEq> Outbox<A> {
    pub(super) fn new() -> Self {
        let (bytes, frames) = (Vec::new(), Vec::new());
        Outbox { bytes, frames, done: 0, limit: 1, busy_since: None, longest_taken: None }
    }

    /// Appends a frame, in two parts, to the receivers `to`: none, one, or several. The caller has
    /// checked [`Outbox::is_full`]. Frames sent `alone` are no segments of a longer datagram.
    pub(super) fn push(
        &mut self,
        to: impl IntoIterator<Item = A>,
        (head, frame): (&[u8], &[u8]),
        alone: bool,
    ) {
        if self.is_empty() {
            self.clear();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(frame);
        let bytes = start..self.bytes.len();
        let queued = |to| Queued { to, bytes: bytes.clone(), alone };
        self.frames.extend(to.into_iter().map(queued));
    }

    /// Whether the batch has to be sent before another frame of up to this length is made.
    pub(super) fn is_full(&self, frame_len_max: usize) -> bool {
        self.waiting() >= self.limit || self.bytes.len() + frame_len_max > BATCH_BYTES_MAX
    }

    /// Whether no frame waits.
    pub(super) fn is_empty(&self) -> bool {
        self.done == self.frames.len()
    }

    /// Number of frames that wait.
    pub(super) fn waiting(&self) -> usize {
        self.frames.len() - self.done
    }

    /// The frame at the front, and its destination.
    pub(super) fn front(&self) -> Option<(A, &[u8])> {
        let front = self.frames.get(self.done)?;
        Some((front.to, &self.bytes[front.bytes.clone()]))
    }

    /// All waiting frames.
    pub(super) fn iter(&self) -> impl Iterator<Item = (A, &[u8])> {
        let waiting = &self.frames[self.done..];
        waiting.iter().map(|queued| (queued.to, &self.bytes[queued.bytes.clone()]))
    }

    /// The longest run at the front that can be cut from one datagram: same receiver, contiguous
    /// bytes, equal lengths except for a shorter last one.
    pub(super) fn run(&self) -> Option<Run<'_, A>> {
        let waiting = &self.frames[self.done..];
        let first = waiting.first()?;
        let len = first.bytes.len();
        let (mut count, mut end) = (1, first.bytes.end);
        for next in &waiting[1..waiting.len().min(BATCH_FRAMES_MAX)] {
            let alone = first.alone || next.alone;
            if alone || next.to != first.to || next.bytes.start != end || next.bytes.len() > len {
                break;
            }
            (count, end) = (count + 1, next.bytes.end);
            if next.bytes.len() < len {
                break;
            }
        }
        let bytes = &self.bytes[first.bytes.start..end];
        Some(Run { to: first.to, count, segment_len: len, bytes })
    }

    /// The kernel has taken `count` frames from the front.
    pub(super) fn note_taken(&mut self, now: Time, count: usize) {
        if self.done == 0 && self.waiting() >= self.limit {
            self.limit = (2 * self.limit).min(BATCH_FRAMES_MAX);
        }
        // Segments of a longer datagram pass where the same frame by itself may not.
        if count == 1
            && let Some(len) = self.frames.get(self.done).map(|front| front.bytes.len())
            && !self.has_taken(len + 1, now)
        {
            self.longest_taken = Some((len, now));
        }
        self.done += count;
        let busy = self.busy_since.take().map_or(Duration::ZERO, |since| now - since);
        if busy > BUSY_LONG {
            self.limit = 1;
        }
    }

    /// The frame at the front is lost.
    pub(super) fn drop_front(&mut self) {
        self.done += 1;
        self.busy_since = None;
    }

    /// The kernel has no room. Returns how long to wait before offering the same frame again.
    pub(super) fn note_busy(&mut self, now: Time) -> Duration {
        let since = *self.busy_since.get_or_insert(now);
        ((now - since) / RETRY_DIVISOR).clamp(RETRY_MIN, RETRY_MAX)
    }

    /// The kernel has no room for the frame at the front, and will not report when it has. Drops
    /// frames that should not be offered again: a long one may never be taken.
    pub(super) fn give_up(&mut self, now: Time) -> GivenUp {
        let none = GivenUp { frames: 0, says_too_long: false };
        let Some(front) = self.frames.get(self.done) else { return none };
        let len = front.bytes.len();
        let (is_long, is_probe) = (len > SHORT_MAX, front.alone);
        let held_max = match (is_long, is_probe) {
            (false, _) => HELD_MAX,
            (true, true) if !self.has_taken(len, now) => PROBE_HELD_MAX,
            (true, _) => LONG_HELD_MAX,
        };
        if self.busy_since.is_none_or(|since| now - since <= held_max) {
            return none;
        }
        // The length may be the reason now, whatever was taken before.
        self.longest_taken = None;
        if is_long && is_probe {
            self.drop_front();
            return GivenUp { frames: 1, says_too_long: false };
        }
        // Frames that are no shorter have waited as long, and would be refused too, one by one.
        let before = self.waiting();
        let mut at = 0;
        self.frames.retain(|queued| {
            at += 1;
            at <= self.done || queued.bytes.len() < len
        });
        (self.limit, self.busy_since) = (1, None);
        GivenUp { frames: before - self.waiting(), says_too_long: is_long }
    }

    /// Whether the kernel has recently taken a frame of this length.
    fn has_taken(&self, len: usize, now: Time) -> bool {
        self.longest_taken.is_some_and(|(longest, at)| len <= longest && now - at <= HELD_MAX)
    }

    /// Drops all waiting frames; returns how many there were.
    pub(super) fn drop_all(&mut self) -> usize {
        let lost = self.waiting();
        self.clear();
        lost
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
        self.done = 0;
    }
}

/// What was dropped after there was no room for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivenUp {
    /// Number of frames; 0: they have to be offered again.
    pub(super) frames: usize,
    /// They may have been refused for their length.
    pub(super) says_too_long: bool,
}

/// Frames that can be sent as one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run<'a, A> {
    pub(super) to: A,
    pub(super) count: usize,
    pub(super) segment_len: usize,
    pub(super) bytes: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u8 = 1;
    const B: u8 = 2;

    fn outbox(frames: &[(&[u8], &[u8])]) -> Outbox<u8> {
        let mut outbox = Outbox::new();
        for (to, frame) in frames {
            outbox.push(to.iter().copied(), (b"", frame), false);
        }
        outbox
    }

    /// The runs: their receivers, and the segments that the kernel would cut.
    fn runs(outbox: &mut Outbox<u8>) -> Vec<(u8, Vec<Vec<u8>>)> {
        let mut runs = Vec::new();
        while let Some(run) = outbox.run() {
            let segments: Vec<_> = run.bytes.chunks(run.segment_len).map(<[u8]>::to_vec).collect();
            assert_eq!(segments.len(), run.count);
            runs.push((run.to, segments));
            let count = run.count;
            outbox.note_taken(Time::ZERO, count);
        }
        runs
    }

    #[test]
    fn equal_frames_and_a_shorter_one_go_together() {
        let frames: [(&[u8], &[u8]); 5] =
            [(&[A], b"aa"), (&[A], b"bb"), (&[A], b"c"), (&[A], b"d"), (&[A], b"ee")];
        let segments = |all: &[&[u8]]| all.iter().map(|bytes| bytes.to_vec()).collect::<Vec<_>>();
        assert_eq!(
            runs(&mut outbox(&frames)),
            [(A, segments(&[b"aa", b"bb", b"c"])), (A, segments(&[b"d"])), (A, segments(&[b"ee"]))]
        );
    }

    #[test]
    fn what_goes_alone_is_no_segment() {
        let mut outbox = Outbox::new();
        for (frame, alone) in [(b"aa", false), (b"bb", true), (b"cc", true), (b"dd", false)] {
            outbox.push([A], (b"", frame), alone);
        }
        assert!(runs(&mut outbox).iter().all(|(_, segments)| segments.len() == 1));
    }

    #[test]
    fn other_receivers_and_frames_to_several_end_a_run() {
        let frames: [(&[u8], &[u8]); 5] =
            [(&[A], b"1"), (&[B], b"2"), (&[A, B], b"3"), (&[], b"4"), (&[B], b"5")];
        let mut outbox = outbox(&frames);
        assert_eq!(outbox.waiting(), 5);
        let sent: Vec<_> = runs(&mut outbox)
            .into_iter()
            .flat_map(|(to, segments)| segments.into_iter().map(move |bytes| (to, bytes)))
            .collect();
        let expected = [(A, b"1"), (B, b"2"), (A, b"3"), (B, b"3"), (B, b"5")];
        assert_eq!(sent, expected.map(|(to, bytes)| (to, bytes.to_vec())));
        assert!(outbox.is_empty());
    }

    #[test]
    fn whatever_is_pushed_comes_out_once_and_in_order() {
        for seed in 0..200_usize {
            let lens: Vec<usize> =
                (0..100).map(|at| 1 + (seed * 31 + at * at) % (1 + seed % 7)).collect();
            let frames: Vec<Vec<u8>> =
                lens.iter().enumerate().map(|(at, &len)| vec![at as u8; len]).collect();
            let mut outbox = Outbox::new();
            let mut sent = Vec::new();
            for (at, frame) in frames.iter().enumerate() {
                outbox.push([A], (b"", frame), false);
                if (at + seed).is_multiple_of(17) {
                    sent.extend(runs(&mut outbox).into_iter().flat_map(|(_, segments)| segments));
                }
            }
            sent.extend(runs(&mut outbox).into_iter().flat_map(|(_, segments)| segments));
            assert_eq!(sent, frames);
        }
    }

    /// Fills batches and lets the kernel take them, `times` times.
    fn fill_and_send(outbox: &mut Outbox<u8>, now: Time, times: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        for _ in 0..times {
            while !outbox.is_full(100) {
                outbox.push([A], (b"head", &[0; 96]), false);
            }
            sizes.push(outbox.waiting());
            outbox.note_taken(now, outbox.waiting());
        }
        sizes
    }

    #[test]
    fn batches_grow_where_the_kernel_takes_them() {
        let mut outbox = Outbox::new();
        assert_eq!(fill_and_send(&mut outbox, Time::ZERO, 8), [1, 2, 4, 8, 16, 32, 64, 64]);
        // Frames made one by one do not make batches grow.
        let mut outbox = Outbox::new();
        for _ in 0..100 {
            outbox.push([A], (b"", b"frame"), false);
            outbox.note_taken(Time::ZERO, 1);
        }
        assert_eq!(outbox.limit, 2);
    }

    #[test]
    fn a_slow_link_gets_single_frames_and_a_short_wait_changes_nothing() {
        let mut outbox = Outbox::new();
        fill_and_send(&mut outbox, Time::ZERO, 5);
        for (busy, limit) in [(Duration::from_micros(300), 64), (Duration::from_millis(3), 1)] {
            while !outbox.is_full(100) {
                outbox.push([A], (b"", &[0; 100]), false);
            }
            outbox.note_busy(Time::ZERO);
            outbox.note_busy(Time::ZERO + busy / 2);
            outbox.note_taken(Time::ZERO + busy, outbox.waiting());
            assert_eq!(outbox.limit, limit, "after {busy:?}");
        }
    }

    #[test]
    fn an_interface_that_takes_nothing_is_asked_less_and_less() {
        let mut outbox = outbox(&[(&[A], b"frame")]);
        let (mut now, mut asked) = (Time::ZERO, 0);
        let mut asked_by = |until: Duration| {
            while now - Time::ZERO < until {
                now += outbox.note_busy(now);
                asked += 1;
            }
            asked
        };
        // A slow radio needs a few milliseconds per frame.
        assert!((15..=25).contains(&asked_by(Duration::from_millis(4))));
        assert!(asked_by(Duration::from_secs(1)) < 150);
        assert!(asked_by(Duration::from_secs(60)) < 1_400);
    }

    #[test]
    fn a_frame_that_is_never_taken_does_not_hold_up_the_others_for_ever() {
        let mut outbox = outbox(&[(&[A], b"longer"), (&[A], b"short")]);
        outbox.note_busy(Time::ZERO);
        assert_eq!(outbox.give_up(Time::ZERO + HELD_MAX).frames, 0);
        let late = Time::ZERO + HELD_MAX + Duration::from_nanos(1);
        assert_eq!(outbox.give_up(late), GivenUp { frames: 1, says_too_long: false });
        outbox.note_busy(late);
        assert_eq!(outbox.give_up(late).frames, 0, "the next one has its own time");
    }

    /// Frames too long for an interface that refuses them as if it were full delayed all others for
    /// five seconds each, among them the echoes that would have revealed the length.
    #[test]
    fn a_long_frame_that_is_never_taken_is_given_up_soon() {
        for (len, alone, held_max) in [
            (SHORT_MAX, false, HELD_MAX),
            (SHORT_MAX, true, HELD_MAX),
            (SHORT_MAX + 1, false, LONG_HELD_MAX),
            (SHORT_MAX + 1, true, PROBE_HELD_MAX),
        ] {
            let mut outbox = Outbox::new();
            outbox.push([A], (b"", &vec![0; len]), alone);
            assert_eq!(outbox.give_up(Time::ZERO).frames, 0, "it may be full at the moment");
            outbox.note_busy(Time::ZERO);
            assert_eq!(outbox.give_up(Time::ZERO + held_max).frames, 0, "{len} {alone}");
            let given_up = outbox.give_up(Time::ZERO + held_max + Duration::from_nanos(1));
            let says_too_long = len > SHORT_MAX && !alone;
            assert_eq!(given_up, GivenUp { frames: 1, says_too_long });
            assert!(outbox.is_empty());
        }
    }

    /// On an interface full of frames of the same length, probes that were dropped at once made the
    /// path's MTU look small: a radio of 12 Mbit/s carried a tenth.
    #[test]
    fn a_probe_waits_for_room_as_long_as_the_frames_that_are_no_shorter() {
        let just_after = |span: Duration| Time::ZERO + span + Duration::from_nanos(1);
        for (taken, at_once, age, held_max) in [
            (1_400, 1, Duration::ZERO, LONG_HELD_MAX),
            (1_399, 1, Duration::ZERO, PROBE_HELD_MAX),
            (1_400, 2, Duration::ZERO, PROBE_HELD_MAX),
            (1_400, 1, HELD_MAX, PROBE_HELD_MAX),
        ] {
            let mut outbox = Outbox::new();
            outbox.push([A], (b"", &vec![0; taken]), false);
            outbox.push([A], (b"", &[0; 600]), false);
            outbox.note_taken(Time::ZERO, at_once);
            outbox.note_taken(Time::ZERO, outbox.waiting());
            outbox.push([A], (b"", &[0; 1_400]), true);
            outbox.note_busy(Time::ZERO + age);
            assert_eq!(outbox.give_up(Time::ZERO + age + held_max).frames, 0, "{taken} {age:?}");
            let given_up = outbox.give_up(just_after(age + held_max));
            assert_eq!(given_up, GivenUp { frames: 1, says_too_long: false }, "{taken} {age:?}");
            // Probes of the same train do not wait as long again.
            outbox.push([A], (b"", &[0; 1_400]), true);
            outbox.note_busy(Time::ZERO);
            assert_eq!(outbox.give_up(just_after(PROBE_HELD_MAX)).frames, 1);
        }
    }

    /// A batch made before an interface began to refuse long frames took a quarter of a second for
    /// each of them.
    #[test]
    fn what_is_no_shorter_than_a_frame_that_is_given_up_goes_with_it() {
        let mut outbox = Outbox::new();
        fill_and_send(&mut outbox, Time::ZERO, 7);
        outbox.push([A], (b"", &[0; 1_500]), false);
        for len in [1_400, 1_400, 700, 1_500, 60] {
            outbox.push([A], (b"", &vec![len as u8; len]), false);
        }
        outbox.push([B], (b"", &[0; 1_400]), false);
        outbox.note_taken(Time::ZERO, 1);
        outbox.note_busy(Time::ZERO);
        let late = Time::ZERO + LONG_HELD_MAX + Duration::from_nanos(1);
        assert_eq!(outbox.give_up(late), GivenUp { frames: 4, says_too_long: true });
        assert_eq!(outbox.limit, 1, "and the next ones are made one by one");
        let left = outbox.iter().map(|(_, frame)| (frame.len(), frame[0]));
        assert_eq!(left.collect::<Vec<_>>(), [(700, 700_usize as u8), (60, 60)]);
    }

    #[test]
    fn a_batch_is_no_longer_than_a_datagram() {
        let mut outbox = Outbox::new();
        for _ in 0..20 {
            while !outbox.is_full(9_000) {
                outbox.push([A], (b"", &[0; 9_000]), false);
            }
            assert!(outbox.bytes.len() <= BATCH_BYTES_MAX);
            outbox.note_taken(Time::ZERO, outbox.waiting());
        }
    }
}
