//! A TCP sender and receiver at the ends of a line with a rate, a delay, and chosen losses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use corridor_base::Time;
use corridor_sim::tcp::{Receiver, ReceiverConfig, Segment, Sender, SenderConfig, State, Variant};

/// What happens to a transmission.
#[derive(Clone, Copy)]
pub struct Fate {
    /// Copies that arrive: none if it is lost.
    pub copies: u32,
    /// Delay beyond the line's; longer than a transmission's time, it causes reordering.
    pub late: Duration,
    /// Whether the window in an acknowledgment is set to zero on the way.
    pub shut: bool,
}

impl Fate {
    /// The transmission arrives unless it is `lost`, with its window unchanged.
    pub fn unless(lost: bool) -> Fate {
        Fate { copies: u32::from(!lost), late: Duration::ZERO, shut: false }
    }
}

/// Properties of a line, the same in both directions.
pub struct LineConfig {
    /// Rate in bits per second.
    pub rate_bps: u64,
    /// From the end of the transmission to the arrival.
    pub delay: Duration,
    /// The fate of the transmission with this number (from 0, each direction counted separately):
    /// true for data, false for acknowledgments.
    pub fate: Box<dyn FnMut(bool, u64) -> Fate>,
}

/// What happened at one point in time.
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
    /// For a sender with SACK, what it was told has arrived, since the last timeout.
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

    /// Advances to the next event; `None` if there is none.
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
        // One at a time, each followed by its consequences, as in an event queue.
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
                    // After a timeout the sender has discarded SACK information (RFC 2018, Section
                    // 8).
                    self.timeouts = self.sender.stats().timeouts;
                    self.sacked.clear();
                }
                self.receiver.handle_timeout(self.now);
            }
        }
        self.transmit(&mut moment);
        Some(moment)
    }

    /// Puts everything onto the line that the two ends have to send.
    fn transmit(&mut self, moment: &mut Moment) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            if let Segment::Data { sequence, retransmission, .. } = segment {
                assert!(!self.sacked.contains(&sequence), "{sequence} had arrived, and is resent");
                self.check_window(retransmission);
                // The oldest unacknowledged packet may probe a closed window.
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

    /// Checks that what is in flight always keeps within the maximum window, and within the
    /// congestion window when something new was sent, except for two packets of limited transmit
    /// and for recoveries that count packets in the network instead (RFC 6675).
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

    /// Whether the sender uses selective acknowledgments.
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

    /// Records what the sender learns about SACK ranges and the window.
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
