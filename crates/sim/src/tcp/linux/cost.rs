//! Tests of what a packet costs its sender, in scoreboard entries visited rather than in time.

use core::time::Duration;
use std::collections::VecDeque;

use corridor_base::Time;

use super::config::{Congestion, LinuxReceiverConfig, LinuxSenderConfig};
use super::receiver::LinuxReceiver;
use super::scoreboard::LOOKS;
use super::sender::LinuxSender;
use crate::tcp::segment::Segment;

/// Round trip of the path without queueing. Each window is sent within one.
const ROUND_TRIP: Duration = Duration::from_millis(400);

/// What goes wrong on the path from the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// Every second packet of the second and the third window is lost once.
    Holes,
    /// As `Holes`, and the sender has seen reordering: it waits for a quarter of the round trip
    /// before it declares a packet lost.
    HolesAndReordering,
    /// From the second window on nothing arrives for three seconds, which causes timeouts.
    Outage,
}

/// A sender, a receiver, and the packets in flight between them.
struct Connection {
    sender: LinuxSender,
    receiver: LinuxReceiver,
    window: u64,
    trouble: Trouble,
    data: VecDeque<(Time, Segment)>,
    acks: VecDeque<(Time, Segment)>,
    /// When the path can take the next packet.
    idle_at: Time,
    outage_until: Option<Time>,
}

impl Connection {
    fn new(window: u64, trouble: Trouble) -> Self {
        let packets = u32::try_from(window).unwrap();
        let initial = LinuxSenderConfig::new(Congestion::Cubic);
        let mut sender = LinuxSender::new(LinuxSenderConfig {
            initial_window_packets: packets,
            window_packets_max: packets,
            ..initial
        })
        .unwrap();
        sender.flow.reordering_seen = trouble == Trouble::HolesAndReordering;
        let initial = LinuxReceiverConfig::new(1_448);
        let receiver = LinuxReceiver::new(LinuxReceiverConfig {
            window_packets_initial: 4 * packets,
            buffer_packets_initial: 4 * packets,
            window_packets_max: 4 * packets,
            ..initial
        })
        .unwrap();
        Connection {
            sender,
            receiver,
            window,
            trouble,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            idle_at: Time::ZERO,
            outage_until: None,
        }
    }

    fn is_lost(&mut self, sequence: u64, retransmission: bool, now: Time) -> bool {
        match self.trouble {
            Trouble::Nothing => false,
            Trouble::Holes | Trouble::HolesAndReordering => {
                let is_within = (self.window..3 * self.window).contains(&sequence);
                is_within && !retransmission && sequence.is_multiple_of(2)
            }
            Trouble::Outage => {
                if sequence < self.window {
                    return false;
                }
                let until = *self.outage_until.get_or_insert(now + Duration::from_secs(3));
                now < until
            }
        }
    }

    /// Puts the packets that the sender has onto the path.
    fn send(&mut self, now: Time) {
        while let Some(segment) = self.sender.poll_transmit(now) {
            let Segment::Data { sequence, retransmission, .. } = segment else { unreachable!() };
            self.idle_at = self.idle_at.max(now) + ROUND_TRIP.div_f64(self.window as f64);
            if !self.is_lost(sequence, retransmission, now) {
                self.data.push_back((self.idle_at + ROUND_TRIP / 2, segment));
            }
        }
    }

    fn acknowledge(&mut self, now: Time) {
        while let Some(segment) = self.receiver.poll_transmit(now) {
            self.acks.push_back((now + ROUND_TRIP / 2, segment));
        }
    }

    /// Handles the next event; `None` when everything has been acknowledged.
    fn step(&mut self) -> Option<()> {
        let front = |queue: &VecDeque<(Time, Segment)>| queue.front().map(|&(at, _)| at);
        let next = [front(&self.data), front(&self.acks)];
        let timers = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        let now = next.into_iter().chain(timers).flatten().min()?;
        if let Some((_, segment)) = self.data.pop_front_at(now) {
            self.receiver.handle_segment(now, &segment);
        }
        if let Some((_, segment)) = self.acks.pop_front_at(now) {
            self.sender.handle_segment(now, &segment);
        }
        self.receiver.handle_timeout(now);
        self.acknowledge(now);
        self.sender.handle_timeout(now);
        self.send(now);
        (!self.sender.is_done()).then_some(())
    }
}

trait PopAt {
    /// Removes what is due by `now`.
    fn pop_front_at(&mut self, now: Time) -> Option<(Time, Segment)>;
}

impl PopAt for VecDeque<(Time, Segment)> {
    fn pop_front_at(&mut self, now: Time) -> Option<(Time, Segment)> {
        self.front().is_some_and(|&(at, _)| at <= now).then(|| self.pop_front())?
    }
}

/// Scoreboard entries visited for each packet or retransmission sent, on average over eight
/// windows.
fn looks_per_packet(window: u64, trouble: Trouble) -> f64 {
    let mut connection = Connection::new(window, trouble);
    connection.sender.offer(8 * window);
    let before = LOOKS.get();
    connection.send(Time::ZERO);
    while connection.step().is_some() {}
    assert_eq!(connection.receiver.delivered(), 8 * window, "{trouble:?}");
    let stats = connection.sender.stats();
    let looks = LOOKS.get() - before;
    match trouble {
        Trouble::Nothing => assert_eq!(stats.retransmissions, 0),
        Trouble::Holes | Trouble::HolesAndReordering => {
            assert!(stats.retransmissions >= window / 2, "{stats:?}");
        }
        Trouble::Outage => {
            assert!(stats.retransmissions >= window / 2, "{stats:?}");
            assert!(stats.timeouts > 0, "{stats:?}");
        }
    }
    looks as f64 / stats.packets_sent as f64
}

/// The cost of a packet does not grow with the window, whatever goes wrong.
#[test]
fn a_packet_costs_the_same_in_a_window_of_any_length() {
    let troubles = [Trouble::Nothing, Trouble::Holes, Trouble::HolesAndReordering, Trouble::Outage];
    for trouble in troubles {
        let [short, long] = [64, 4_096].map(|window| looks_per_packet(window, trouble));
        println!("{trouble:?}: {short:.1} looks for a packet of 64 under way, {long:.1} of 4096");
        assert!(long <= 1.25 * short, "{trouble:?}: {short:.1} of 64, {long:.1} of 4096");
        assert!(long <= 15.0, "{trouble:?}: {long:.1}");
    }
}
