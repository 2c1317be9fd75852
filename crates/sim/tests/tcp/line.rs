//! A sender and a receiver at the ends of a line with a rate, a delay, and losses as they are told.

use std::collections::BTreeMap;
use std::time::Duration;

use corridor_base::Time;
use corridor_sim::tcp::{Receiver, ReceiverConfig, Segment, Sender, SenderConfig};

/// What a line is like in both directions; bytes are those of the segments.
pub struct LineConfig {
    /// Bits in a second.
    pub rate_bps: u64,
    /// From the end of the transmission to the arrival.
    pub delay: Duration,
    /// Whether the transmission of this number (from 0, each direction counted apart) is lost:
    /// data is true, acknowledgements are false.
    pub loses: Box<dyn FnMut(bool, u64) -> bool>,
}

/// What happened at one time.
pub struct Moment {
    pub at: Time,
    /// Numbers sent.
    pub sent: Vec<u64>,
    /// Numbers acknowledged.
    pub acked: Vec<u64>,
}

/// The two ends and the line.
pub struct Line {
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    config: LineConfig,
    on_the_way: BTreeMap<(Time, u64), Segment>,
    busy_until: [Time; 2],
    transmissions: [u64; 2],
    /// A packet was sent although it had been told to have arrived.
    pub resent_sacked: bool,
}

impl Line {
    pub fn new(sender: SenderConfig, receiver: ReceiverConfig, config: LineConfig) -> Line {
        Line {
            sender: Sender::new(sender).unwrap(),
            receiver: Receiver::new(receiver).unwrap(),
            now: Time::ZERO,
            config,
            on_the_way: BTreeMap::new(),
            busy_until: [Time::ZERO; 2],
            transmissions: [0; 2],
            resent_sacked: false,
        }
    }

    /// Advances to the next time at which something happens; none if nothing ever will.
    pub fn step(&mut self) -> Option<Moment> {
        let mut moment = Moment { at: self.now, sent: Vec::new(), acked: Vec::new() };
        if self.transmissions == [0, 0] {
            self.transmit(&mut moment);
            return Some(moment);
        }
        let arrival = self.on_the_way.keys().next().map(|key| key.0);
        let timers = [arrival, self.sender.poll_timeout(), self.receiver.poll_timeout()];
        self.now = timers.into_iter().flatten().min()?;
        moment.at = self.now;
        // One after the other, each followed by what it causes, as an event queue would.
        match self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
            Some(entry) => {
                let segment = entry.remove();
                if let Segment::Ack { next, .. } = segment {
                    moment.acked.push(next);
                }
                self.sender.handle_segment(self.now, &segment);
                self.receiver.handle_segment(self.now, &segment);
            }
            None => {
                self.sender.handle_timeout(self.now);
                self.receiver.handle_timeout(self.now);
            }
        }
        self.transmit(&mut moment);
        Some(moment)
    }

    /// Puts on the line whatever the two ends have to send.
    fn transmit(&mut self, moment: &mut Moment) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if let Segment::Data { sequence, .. } = segment {
                moment.sent.push(sequence);
            }
            self.put(segment, self.sender.config().data_len_bytes());
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.put(segment, self.receiver.config().ack_len_bytes(&segment));
        }
    }

    fn put(&mut self, segment: Segment, len_bytes: u32) {
        let is_data = matches!(segment, Segment::Data { .. });
        let way = usize::from(is_data);
        let spent_ns = u64::from(len_bytes) * 8 * 1_000_000_000 / self.config.rate_bps;
        self.busy_until[way] = self.busy_until[way].max(self.now) + Duration::from_nanos(spent_ns);
        let number = self.transmissions[way];
        self.transmissions[way] += 1;
        if !(self.config.loses)(is_data, number) {
            let key = number << 1 | u64::from(is_data);
            self.on_the_way.insert((self.busy_until[way] + self.config.delay, key), segment);
        }
    }
}
