//! A sender and a receiver at the ends of a line with a rate, a delay, and losses as they are told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use corridor_base::Time;
use corridor_sim::tcp::{Receiver, ReceiverConfig, Segment, Sender, SenderConfig, State, Variant};

/// What becomes of a transmission.
#[derive(Clone, Copy)]
pub struct Fate {
    /// Copies that arrive: none if it is lost.
    pub copies: u32,
    /// So much later than the line's delay; more than a transmission takes means reordering.
    pub late: Duration,
    /// The window of an acknowledgement is shut on the way, if it tells one.
    pub shut: bool,
}

impl Fate {
    /// Arrives, unless it is `lost`; windows are left as they are.
    pub fn unless(lost: bool) -> Fate {
        Fate { copies: u32::from(!lost), late: Duration::ZERO, shut: false }
    }
}

/// What a line is like in both directions.
pub struct LineConfig {
    /// Bits in a second.
    pub rate_bps: u64,
    /// From the end of the transmission to the arrival.
    pub delay: Duration,
    /// What becomes of the transmission of this number (from 0, each direction counted apart):
    /// true for data, false for acknowledgements.
    pub fate: Box<dyn FnMut(bool, u64) -> Fate>,
}

/// What happened at one time.
pub struct Moment {
    pub at: Time,
    /// Numbers sent.
    pub sent: Vec<u64>,
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
    /// What a sender that listens to it was told to have arrived, since the last timeout.
    sacked: BTreeSet<u64>,
    timeouts: u64,
    /// The farthest end of the receiver's window that the sender was told.
    window_end: Option<u64>,
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
            sacked: BTreeSet::new(),
            timeouts: 0,
            window_end: None,
        }
    }

    /// Advances to the next time at which something happens; none if nothing ever will.
    pub fn step(&mut self) -> Option<Moment> {
        let mut moment = Moment { at: self.now, sent: Vec::new() };
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
                self.note_told(&segment);
                self.sender.handle_segment(self.now, &segment);
                self.receiver.handle_segment(self.now, &segment);
            }
            None => {
                self.sender.handle_timeout(self.now);
                if self.sender.stats().timeouts > self.timeouts {
                    // The sender has forgotten what it had been told (RFC 2018, Section 8).
                    self.timeouts = self.sender.stats().timeouts;
                    self.sacked.clear();
                }
                self.receiver.handle_timeout(self.now);
            }
        }
        self.transmit(&mut moment);
        Some(moment)
    }

    /// Puts on the line whatever the two ends have to send.
    fn transmit(&mut self, moment: &mut Moment) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if let Segment::Data { sequence, retransmission, .. } = segment {
                assert!(!self.sacked.contains(&sequence), "{sequence} had arrived, and is resent");
                self.check_window(retransmission);
                // What is first in line may ask for a window that is shut.
                let within = self.window_end.is_none_or(|end| sequence < end);
                assert!(within || sequence == self.sender.acknowledged(), "{sequence} is beyond");
                moment.sent.push(sequence);
            }
            self.put(segment, self.sender.config().data_len_bytes());
        }
        while let Some(segment) = self.receiver.poll_transmit(self.now) {
            self.put(segment, self.receiver.config().ack_len_bytes(&segment));
        }
    }

    /// What is in flight keeps within the maximum window always, and within the congestion window
    /// when something new was sent: but for two packets of limited transmit, and for recoveries
    /// that count packets in the network instead (RFC 6675).
    fn check_window(&self, retransmission: bool) {
        let (in_flight, config) = (self.sender.in_flight(), self.sender.config());
        assert!(in_flight <= u64::from(config.window_packets_max), "{in_flight} in flight");
        let by_pipe = self.listens() && self.sender.state() == State::Recovery;
        if !retransmission && !by_pipe {
            let stats = self.sender.stats();
            let window = stats.cwnd_packets as u64 + stats.inflation_packets;
            assert!(in_flight <= window + 2, "{in_flight} in flight, window {window}");
        }
    }

    /// Whether the sender listens to selective acknowledgements.
    fn listens(&self) -> bool {
        matches!(self.sender.config().variant, Variant::Sack | Variant::Cubic)
    }

    fn put(&mut self, mut segment: Segment, len_bytes: u32) {
        let is_data = matches!(segment, Segment::Data { .. });
        let way = usize::from(is_data);
        let spent_ns = u64::from(len_bytes) * 8 * 1_000_000_000 / self.config.rate_bps;
        self.busy_until[way] = self.busy_until[way].max(self.now) + Duration::from_nanos(spent_ns);
        let number = self.transmissions[way];
        self.transmissions[way] += 1;
        let fate = (self.config.fate)(is_data, number);
        if let Segment::Ack { next, window_end: Some(end), .. } = &mut segment
            && fate.shut
        {
            *end = *next;
        }
        for copy in 0..u64::from(fate.copies) {
            let key = number << 2 | copy << 1 | u64::from(is_data);
            let at = self.busy_until[way] + self.config.delay + fate.late;
            self.on_the_way.insert((at, key), segment);
        }
    }

    /// Remembers what the sender is told about packets beyond a gap, and about the window.
    fn note_told(&mut self, segment: &Segment) {
        if let Segment::Ack { window_end: Some(end), .. } = *segment {
            self.window_end = self.window_end.max(Some(end));
        }
        if let Segment::Ack { sack, .. } = segment
            && self.listens()
        {
            sack.iter().for_each(|range| self.sacked.extend(range.start..range.end));
        }
    }
}
