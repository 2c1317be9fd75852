//! Senders that send whenever their windows allow, a queue that is drained at a fixed rate, and
//! receivers beyond it that acknowledge each packet a round trip later.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

use corridor_base::Time;

use super::segments::{Flags, number, view};
use super::{MSS, Setup, queue};
use crate::host::queue::IngressQueue;
use crate::stats::Stats;

/// Tick of the model's clock.
const TICK: Duration = Duration::from_micros(50);
/// Bytes of data in each packet.
const DATA: u64 = MSS as u64 - 12;
/// Window that the receiver advertises beyond what it has received.
const PROMISE: u64 = 3_000_000;
/// Windows are in units of 128 bytes.
const SHIFT: u32 = 7;
/// Initial congestion window, also after a pause of a second; it grows by one per acknowledged
/// packet, as in slow start, up to `CWND_MAX`, whatever the receive window.
const CWND_FIRST: u64 = 10;
const CWND_MAX: u64 = 300;
const PAUSE: Duration = Duration::from_secs(1);

/// What is in flight to a host.
enum Arrival {
    /// A packet of data, up to this byte, reaches the far host, which acknowledges it.
    Far(u64),
    /// A window reaches the sender.
    Near { ack: u64, window: u16 },
}

/// A connection, and the state of its sender.
struct Sender {
    setup: Setup,
    /// Bytes to be sent.
    offered: u64,
    sent: u64,
    acked: u64,
    /// What the far host has received; it may advertise a zero window.
    received: u64,
    shut: bool,
    edge: u64,
    cwnd: u64,
    sent_at: Time,
    departed: u64,
}

impl Sender {
    fn new(setup: Setup) -> Self {
        Sender {
            setup,
            offered: u64::MAX,
            sent: 1,
            acked: 1,
            received: 1,
            shut: false,
            edge: 1 + 65_535,
            cwnd: CWND_FIRST,
            sent_at: Time::ZERO,
            departed: 0,
        }
    }

    /// Takes a window as Linux does: an older one does not shrink it.
    fn take(&mut self, ack: u64, window: u16) {
        let edge = ack + (u64::from(window) << SHIFT);
        let is_taken = ack > self.acked || edge > self.edge || window == 0;
        if ack >= self.acked && is_taken {
            self.cwnd = (self.cwnd + (ack - self.acked) / DATA).min(CWND_MAX);
            (self.acked, self.edge) = (ack, edge);
        }
    }

    fn may_send(&mut self, now: Time) -> bool {
        let next = self.sent + DATA;
        if next <= self.offered && now - self.sent_at > PAUSE {
            self.cwnd = CWND_FIRST;
        }
        let may =
            next <= self.edge && next <= self.offered && self.sent - self.acked < self.cwnd * DATA;
        self.sent_at = if may { now } else { self.sent_at };
        may
    }
}

struct Loop {
    queue: IngressQueue,
    stats: Stats,
    now: Time,
    senders: Vec<Sender>,
    arrivals: BTreeMap<(Time, u64), (usize, Arrival)>,
    numbers: u64,
    /// When the next packet leaves. Ports identify the packets in the queue.
    departs_at: Time,
    interval: Duration,
    rtt: Duration,
    /// Time from the arrival of a window to the packets that it allows.
    answer: Duration,
    /// One in this many of the updates made here is lost.
    lost_of: Option<u64>,
    lens: VecDeque<usize>,
    dry_since: Option<Time>,
    dry_max: Duration,
}

impl Loop {
    fn new(connections: u16, packets_per_s: u32, answer_ms: u64) -> Self {
        let mut model = Loop {
            queue: queue(packets_per_s.into()),
            stats: Stats::default(),
            now: Time::from_millis(1),
            senders: Vec::new(),
            arrivals: BTreeMap::new(),
            numbers: 0,
            departs_at: Time::from_millis(1),
            interval: Duration::from_secs(1) / packets_per_s,
            rtt: Duration::from_millis(20),
            answer: Duration::from_millis(answer_ms),
            lost_of: None,
            lens: VecDeque::new(),
            dry_since: None,
            dry_max: Duration::ZERO,
        };
        for connection in 0..connections {
            let setup = Setup { connection, ..Setup::usual() };
            model.shake_hands(&setup);
            model.senders.push(Sender::new(setup));
        }
        model
    }

    /// The SYNs of a connection pass while nothing else waits.
    fn shake_hands(&mut self, setup: &Setup) {
        assert!(self.queue.is_empty());
        self.queue.push_bytes(self.now, &setup.first(0), &mut self.stats);
        self.queue.front(self.now, &mut self.stats);
        self.queue.pop();
        self.queue.clamp_bytes(&mut setup.first(1), &mut self.stats);
    }

    /// Stops sending until everything has drained.
    fn pause(&mut self) {
        self.senders.iter_mut().for_each(|sender| sender.offered = sender.sent);
        self.run(Duration::from_secs(2));
    }

    fn resume(&mut self) {
        self.senders.iter_mut().for_each(|sender| sender.offered = u64::MAX);
        self.departed();
    }

    fn arrive(&mut self, after: Duration, connection: usize, arrival: Arrival) {
        self.numbers += 1;
        self.arrivals.insert((self.now + after, self.numbers), (connection, arrival));
    }

    fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        (self.lens, self.dry_max) = (VecDeque::new(), Duration::ZERO);
        while self.now < end {
            self.tick();
            self.now += TICK;
        }
    }

    fn tick(&mut self) {
        while let Some(next) = self.arrivals.first_entry().filter(|next| next.key().0 <= self.now) {
            match next.remove() {
                (connection, Arrival::Far(end)) => self.acknowledge(connection, end),
                (connection, Arrival::Near { ack, window }) => {
                    self.senders[connection].take(ack, window);
                }
            }
        }
        (0..self.senders.len()).for_each(|connection| self.send(connection));
        if self.now >= self.departs_at {
            self.depart();
        }
        self.tell();
        self.lens.push_back(self.queue.len());
    }

    fn send(&mut self, connection: usize) {
        let sender = &mut self.senders[connection];
        while sender.may_send(self.now) {
            let Setup { firsts, .. } = sender.setup;
            let (sequence, ack) =
                (firsts[0].wrapping_add(sender.sent as u32), firsts[1].wrapping_add(1));
            let flags = Flags::ACK;
            let len = DATA as usize;
            let packet = sender.setup.segment(0, sequence, ack, flags, 502, Vec::new(), len);
            sender.sent += DATA;
            self.queue.push_bytes(self.now, &packet, &mut self.stats);
        }
        if let Some(since) = self.dry_since.filter(|_| !self.queue.is_empty()) {
            self.dry_max = self.dry_max.max(self.now - since);
            self.dry_since = None;
        }
    }

    /// The next packet leaves, if there is one; otherwise the air is idle from now on.
    fn depart(&mut self) {
        let Some(packet) = self.queue.front(self.now, &mut self.stats) else {
            self.dry_since.get_or_insert(self.now);
            return;
        };
        let left = view(&packet);
        self.queue.pop();
        self.departs_at = self.now + self.interval;
        let connection = usize::from(left.from.1 - 40_000);
        let sender = &mut self.senders[connection];
        sender.departed += 1;
        let end = number(left.sequence_end(), sender.setup.firsts[0], sender.sent);
        self.arrive(self.rtt, connection, Arrival::Far(end));
    }

    /// The far host's acknowledgment returns through the tunnel.
    fn acknowledge(&mut self, connection: usize, end: u64) {
        let sender = &mut self.senders[connection];
        sender.received = sender.received.max(end);
        let (firsts, received) = (sender.setup.firsts, sender.received);
        let window = if sender.shut { 0 } else { (PROMISE >> SHIFT) as u16 };
        let (sequence, ack) = (firsts[1].wrapping_add(1), firsts[0].wrapping_add(received as u32));
        let flags = Flags::ACK;
        let mut packet = sender.setup.segment(1, sequence, ack, flags, window, Vec::new(), 0);
        self.queue.clamp_bytes(&mut packet, &mut self.stats);
        let window = view(&packet).window;
        self.arrive(self.answer, connection, Arrival::Near { ack: received, window });
    }

    fn tell(&mut self) {
        let mut packet = Vec::new();
        while self.queue.window_update(&mut packet, &mut self.stats) {
            let told = view(&packet);
            packet.clear();
            if self.lost_of.is_some_and(|of| self.stats.window_updates_sent.is_multiple_of(of)) {
                continue;
            }
            let connection = usize::from(told.to.1 - 40_000);
            let sender = &self.senders[connection];
            let ack = number(told.ack, sender.setup.firsts[0], sender.sent);
            let window = told.window;
            self.arrive(self.answer, connection, Arrival::Near { ack, window });
        }
    }

    /// Most packets that stood in the queue.
    fn longest(&self) -> usize {
        self.lens.iter().copied().max().unwrap_or(0)
    }

    /// Packets of each connection that have left.
    fn departed(&mut self) -> Vec<u64> {
        self.senders.iter_mut().map(|sender| core::mem::take(&mut sender.departed)).collect()
    }

    /// Packets that may stand in the queue: those that leave while a sender answers, and a margin.
    fn enough(&self) -> usize {
        let answer = 2 * self.answer + Duration::from_millis(2);
        let leave = answer.as_secs_f64() / self.interval.as_secs_f64();
        leave as usize + 4 * self.senders.len()
    }
}

/// Answer times in milliseconds: immediate, of a busy host, and of one a network away.
const ANSWERS_MS: [u64; 3] = [0, 5, 50];

#[test]
fn the_queue_is_short_and_does_not_run_dry() {
    for (answer_ms, packets_per_s) in
        ANSWERS_MS.into_iter().flat_map(|answer| [100, 1_000, 4_000].map(|rate| (answer, rate)))
    {
        let mut model = Loop::new(1, packets_per_s, answer_ms);
        model.run(Duration::from_secs(5));
        assert!(model.longest() <= CWND_MAX as usize);
        model.departed();
        let dropped = model.stats.packets_dropped_codel;
        model.run(Duration::from_secs(10));
        let (longest, enough) = (model.longest(), model.enough());
        let what = format!("{answer_ms} ms, {packets_per_s} a second");
        assert!(longest <= enough, "{what}: {longest} packets stand where {enough} would do");
        let patience = model.answer + model.interval + TICK;
        assert!(model.dry_max <= patience, "{what}: dry for {:?}", model.dry_max);
        let departed = model.departed()[0];
        let most = 10 * u64::from(packets_per_s);
        assert!(departed * 100 >= most * 97, "{what}: {departed} of {most} left");
        assert!(model.stats.windows_clamped > 0, "{what}");
        assert_eq!(model.stats.packets_dropped_codel, dropped, "{what}");
    }
}

/// Data allowed before the queue was seen to grow arrives once, and no more.
#[test]
fn what_was_in_flight_is_borne_once() {
    let mut model = Loop::new(1, 1_000, 0);
    model.run(Duration::from_millis(500));
    let first = model.longest();
    assert!(first as u64 * DATA <= 65_535 + 20 * DATA, "{first}");
    model.run(Duration::from_secs(2));
    assert!(model.longest() <= model.enough(), "{}", model.longest());
}

#[test]
fn several_flows_share_what_may_stand() {
    for answer_ms in ANSWERS_MS {
        let mut model = Loop::new(4, 1_000, answer_ms);
        model.run(Duration::from_secs(5));
        model.departed();
        model.run(Duration::from_secs(10));
        let (longest, enough) = (model.longest(), model.enough());
        assert!(longest <= enough, "{answer_ms} ms: {longest} packets stand, {enough} would do");
        let departed = model.departed();
        let sum: u64 = departed.iter().sum();
        assert!(sum >= 9_700, "{answer_ms} ms: {sum}");
        let fair = |&of: &u64| of.abs_diff(sum / 4) * 10 <= sum / 4;
        assert!(departed.iter().all(fair), "{answer_ms} ms: {departed:?}");
    }
}

#[test]
fn a_sender_that_had_nothing_to_send_is_let_on_at_once() {
    for answer_ms in ANSWERS_MS {
        let mut model = Loop::new(1, 1_000, answer_ms);
        model.run(Duration::from_secs(5));
        model.senders[0].offered = model.senders[0].sent;
        model.run(Duration::from_secs(10));
        assert!(model.queue.is_empty());
        model.senders[0].offered = u64::MAX;
        model.departed();
        model.run(Duration::from_secs(2));
        let (departed, longest) = (model.departed()[0], model.longest());
        assert!(departed >= 1_800, "{answer_ms} ms: {departed}");
        // It starts afresh, with a burst.
        let most = model.enough() + 2 * CWND_FIRST as usize;
        assert!(longest <= most, "{answer_ms} ms: {longest}");
    }
}

#[test]
fn lost_updates_cost_no_more_than_time() {
    for answer_ms in ANSWERS_MS {
        // All of them, and every third.
        for of in [1, 3] {
            let mut model = Loop::new(1, 1_000, answer_ms);
            model.lost_of = Some(of);
            model.run(Duration::from_secs(5));
            model.departed();
            for second in 0..10 {
                model.run(Duration::from_secs(1));
                let departed = model.departed()[0];
                assert!(departed > 20, "{answer_ms} ms, 1 of {of}, second {second}: {departed}");
            }
        }
    }
}

#[test]
fn a_window_that_the_receiver_shuts_is_shut() {
    let mut model = Loop::new(1, 1_000, 5);
    model.run(Duration::from_secs(3));
    model.senders[0].shut = true;
    model.run(Duration::from_secs(1));
    assert_eq!(model.senders[0].edge, model.senders[0].acked, "it is told as it is");
    let (sent, updates) = (model.senders[0].sent, model.stats.window_updates_sent);
    model.run(Duration::from_secs(5));
    assert_eq!((model.senders[0].sent, model.stats.window_updates_sent), (sent, updates));
    // The far host opens its window again.
    model.senders[0].shut = false;
    model.departed();
    let received = model.senders[0].received;
    model.arrive(Duration::ZERO, 0, Arrival::Far(received));
    model.run(Duration::from_secs(2));
    assert!(model.departed()[0] >= 1_900);
}

/// Answers delayed because there was nothing to send do not count as slow answers.
#[test]
fn pauses_are_not_taken_for_slow_answers() {
    let mut model = Loop::new(1, 1_000, 0);
    model.run(Duration::from_secs(3));
    for _ in 0..30 {
        model.senders[0].offered = model.senders[0].sent + 8 * DATA;
        model.run(Duration::from_secs(1));
    }
    model.senders[0].offered = u64::MAX;
    model.run(Duration::from_secs(5));
    model.run(Duration::from_secs(5));
    let (longest, enough) = (model.longest(), model.enough());
    assert!(longest <= enough, "{longest} packets stand where {enough} would do");
}

/// A new connection between the same ports is another one, whatever its initial sequence numbers.
#[test]
fn a_connection_that_begins_anew_is_clamped_anew() {
    let mut model = Loop::new(1, 1_000, 5);
    for firsts in [[1_000, 2_000], [1_500_000, 3], [0x8000_0000, 7], [u32::MAX, 0x8000_0000]] {
        model.pause();
        let setup = Setup { firsts, ..Setup::usual() };
        model.shake_hands(&setup);
        model.senders[0] = Sender::new(setup);
        model.run(Duration::from_secs(3));
        model.departed();
        let clamped = model.stats.windows_clamped;
        model.run(Duration::from_secs(5));
        let (longest, enough) = (model.longest(), model.enough());
        assert!(longest <= enough, "{firsts:?}: {longest} packets stand, {enough} would do");
        assert!(model.departed()[0] >= 4_850 && model.stats.windows_clamped > clamped);
    }
}

/// However many other connections there are, those in use keep their places.
#[test]
fn a_crowd_of_connections_displaces_none_that_is_in_use() {
    let mut model = Loop::new(1, 1_000, 0);
    model.run(Duration::from_secs(5));
    model.pause();
    for connection in 1..20_000 {
        model.shake_hands(&Setup { connection, ..Setup::usual() });
    }
    model.resume();
    model.run(Duration::from_secs(3));
    let clamped = model.stats.windows_clamped;
    model.run(Duration::from_secs(5));
    let (longest, enough) = (model.longest(), model.enough());
    assert!(longest <= enough, "{longest} packets stand where {enough} would do");
    assert!(model.stats.windows_clamped > clamped);
}
