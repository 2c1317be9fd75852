//! Dispatches the chunks of an opened frame to the role, or to what all roles have in common.

use corridor_base::Time;

use super::parts::whole_chunk;
use super::{FrameOutcome, Rejection, Station};
use crate::link::handshake::Opened;
use crate::wire::{ChallengeToken, Chunk, Chunks, Kind};

impl Station {
    /// Handles the chunks of a frame of `len` bytes, one after the other. One that cannot be read,
    /// or is not for this station, ends the frame.
    pub(super) fn take_chunks(
        &mut self,
        now: Time,
        opened: Opened,
        body: &[u8],
        len: usize,
    ) -> FrameOutcome {
        let (from, mut answer) = (opened.from, None);
        let is_taken = Chunks::new(body).all(|chunk| {
            let taken = chunk.and_then(|chunk| self.take_chunk(now, opened, chunk, len));
            answer = answer.or(taken.flatten());
            taken.is_some()
        });
        match answer {
            // It was sent, whatever follows it.
            Some(token) => FrameOutcome::Answered { from, token },
            None if is_taken => FrameOutcome::Accepted { from },
            None => FrameOutcome::Rejected(Rejection::NotForUs),
        }
    }

    /// Handles a chunk. Returns the token if it answers a challenge; `None` if it is not for this
    /// station.
    fn take_chunk(
        &mut self,
        now: Time,
        opened: Opened,
        chunk: Chunk<'_>,
        len: usize,
    ) -> Option<Option<ChallengeToken>> {
        let shared = &mut self.shared;
        if chunk.kind.is_word() {
            return shared.handle_word(now, opened, chunk, len);
        }
        if chunk.kind == Kind::Part {
            let whole = shared.take_part(opened, chunk.body)?;
            self.role.note_part(now, opened);
            let Some(whole) = whole else { return Some(None) };
            return self.take_chunk(now, opened, whole_chunk(&whole)?, len);
        }
        self.role.handle_chunk(shared, now, opened, chunk)?;
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::bounds::CHUNKS_MAX;
    use crate::config::StationId;
    use crate::station::Destination;
    use crate::station::window_tests::station;
    use crate::wire::Word;

    /// Two stations that know each other, and the time at which they do.
    fn pair() -> ([Station; 2], Time) {
        let (mut stations, mut now) = ([station(1, 2), station(2, 1)], Time::ZERO);
        for _ in 0..500 {
            now += Duration::from_millis(1);
            for from in 0..2 {
                stations[from].handle_timeout(now);
                while let Some(transmit) = stations[from].poll_transmit(now) {
                    let frame = transmit.frame.to_vec();
                    stations[1 - from].handle_frame(now, &frame);
                }
            }
        }
        (stations, now)
    }

    /// The outcome of a frame from the other station with these chunks, and the number of
    /// challenges received.
    fn outcome(write: impl FnOnce(&mut Vec<u8>)) -> (FrameOutcome, usize) {
        let ([mut sender, mut receiver], now) = pair();
        let mut frame = Vec::new();
        sender.shared.group.begin(&mut frame);
        write(&mut frame);
        sender.shared.group.seal(&mut frame, 0);
        let outcome = receiver.handle_frame(now, &frame);
        let mut answers = 0;
        while let Some(to) = receiver.shared.poll_presence(now) {
            // Answers are said once more, wherever the peer may be.
            answers += usize::from(matches!(to, Destination::Station(_)));
        }
        (outcome, answers)
    }

    fn challenge(frame: &mut Vec<u8>) {
        say(&Word::Challenge { to: StationId(2), token: [7; 8] }, frame);
    }

    /// Appends a message that another chunk follows.
    fn say(word: &Word, frame: &mut Vec<u8>) {
        let mut body = Vec::new();
        word.write_last(&mut body);
        word.kind().write(&body[1..], frame);
    }

    const TAKEN: FrameOutcome = FrameOutcome::Accepted { from: StationId(1) };
    const ENDED: FrameOutcome = FrameOutcome::Rejected(Rejection::NotForUs);

    #[test]
    fn several_chunks_of_a_frame_are_taken() {
        let said = outcome(|frame| {
            challenge(frame);
            say(&Word::Challenge { to: StationId(2), token: [8; 8] }, frame);
            Kind::Probe.begin_last(frame);
            frame.extend([0; 100]);
        });
        assert_eq!(said, (TAKEN, 2));
    }

    #[test]
    fn what_is_said_twice_is_answered_once() {
        let said = outcome(|frame| {
            (0..7).for_each(|_| challenge(frame));
            Word::Challenge { to: StationId(2), token: [7; 8] }.write_last(frame);
        });
        assert_eq!(said, (TAKEN, 1));
        let said = outcome(|frame| {
            (0..7).for_each(|_| say(&Word::Goodbye, frame));
            Word::Goodbye.write_last(frame);
        });
        assert_eq!(said, (TAKEN, 1));
    }

    /// In two frames: a copy of the second that comes first, from elsewhere, does not replace the
    /// first.
    #[test]
    fn an_answer_goes_to_the_peer_and_once_more_wherever_it_may_be() {
        let ([mut sender, mut receiver], now) = pair();
        let mut frame = Vec::new();
        sender.shared.group.begin(&mut frame);
        Word::Challenge { to: StationId(2), token: [7; 8] }.write_last(&mut frame);
        sender.shared.group.seal(&mut frame, 0);
        assert_eq!(receiver.handle_frame(now, &frame), TAKEN);
        for expected in [Destination::Station(StationId(1)), Destination::Search(StationId(1))] {
            assert_eq!(receiver.shared.poll_presence(now), Some(expected));
            let outcome = sender.handle_frame(now, &receiver.shared.frame);
            let answered = FrameOutcome::Answered { from: StationId(2), token: [7; 8] };
            assert_eq!(outcome, answered, "{expected:?}");
        }
        assert_eq!(receiver.shared.poll_presence(now), None);
    }

    /// The driver did not learn of it, and its challenge stayed unanswered.
    #[test]
    fn an_answer_before_what_ends_its_frame_was_given_all_the_same() {
        let token = [7; 8];
        let said = outcome(|frame| {
            say(&Word::Answer { to: StationId(2), token }, frame);
            frame.push(0x7f);
        });
        assert_eq!(said.0, FrameOutcome::Answered { from: StationId(1), token });
    }

    /// It was confirmed when it first came, and never again: the peer kept repeating it.
    #[test]
    fn a_goodbye_beside_others_is_answered_each_time_and_nothing_else_is_taken_then() {
        let ([mut sender, mut receiver], now) = pair();
        for time in 0..3 {
            let mut frame = Vec::new();
            sender.shared.group.begin(&mut frame);
            say(&Word::Goodbye, &mut frame);
            Word::Challenge { to: StationId(2), token: [time; 8] }.write_last(&mut frame);
            sender.shared.group.seal(&mut frame, 0);
            let outcome = receiver.handle_frame(now, &frame);
            assert_eq!(outcome, TAKEN, "{time}");
            let said = core::iter::from_fn(|| receiver.shared.poll_presence(now));
            let answers = said.filter(|to| matches!(to, Destination::Station(_))).count();
            assert_eq!(answers, if time == 0 { 2 } else { 1 }, "{time}");
        }
    }

    #[test]
    fn behind_a_body_of_known_length_nothing_may_be() {
        for (behind, outcome_of_it) in [(&[][..], TAKEN), (&[0], ENDED), (&[1], ENDED)] {
            let said = outcome(|frame| {
                let mut body = Vec::new();
                Word::Challenge { to: StationId(2), token: [7; 8] }.write_last(&mut body);
                body.extend(behind);
                Kind::Challenge.write(&body[1..], frame);
                Kind::Probe.begin_last(frame);
                frame.extend([0; 3]);
            });
            assert_eq!(said, (outcome_of_it, usize::from(behind.is_empty())), "{behind:?}");
        }
    }

    /// Chunks before it are handled, those after it are not.
    #[test]
    fn a_chunk_of_no_known_kind_ends_its_frame() {
        for unknown in [0, 16, 0x7f] {
            let said = outcome(|frame| {
                challenge(frame);
                frame.extend([0x80 | unknown, 3, 1, 2, 3]);
                challenge(frame);
                Kind::Probe.begin_last(frame);
                frame.extend([0; 3]);
            });
            assert_eq!(said, (ENDED, 1), "{unknown}");
        }
        assert_eq!(outcome(|_| {}), (ENDED, 0), "none at all");
        assert_eq!(outcome(|frame| frame.extend([0; 40])), (ENDED, 0), "padding alone");
    }

    #[test]
    fn chunks_behind_the_last_that_there_may_be_are_not_taken() {
        for count in [CHUNKS_MAX, CHUNKS_MAX + 1] {
            let said = outcome(|frame| {
                challenge(frame);
                // Feedback that nobody waits for costs least.
                (2..count).for_each(|_| Kind::Link.write(&[0; 17], frame));
                Kind::Probe.begin_last(frame);
                frame.extend([0; 3]);
            });
            let expected = if count > CHUNKS_MAX { ENDED } else { TAKEN };
            assert_eq!(said, (expected, 1), "{count}");
        }
    }
}
