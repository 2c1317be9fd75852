//! Safety of clamped windows, whatever comes in whatever order: nothing is granted that the
//! receiver has not granted, nothing is taken back, and packets are not changed otherwise.

use core::time::Duration;

use corridor_base::Time;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::segments::{Flags, is_sealed, number, unwindowed, view};
use super::{MSS, Setup, queue, set_pace, setup};
use crate::host::queue::IngressQueue;
use crate::stats::Stats;

/// An event at the queue. Numbers are drawn independent of their later meaning.
#[derive(Clone, Debug)]
enum Event {
    /// The near host sends this many bytes, `again` of which were sent before.
    Send {
        len: u16,
        again: u16,
    },
    /// This many packets leave.
    Leave {
        packets: usize,
    },
    /// The far host acknowledges up to here, advertises this window, and sends this many bytes;
    /// `ranges`: SACK blocks for data beyond a gap.
    Acknowledge {
        part: u8,
        promise: u32,
        len: u16,
        ranges: u8,
    },
    /// The last acknowledgment is repeated.
    Repeat,
    /// An acknowledgment comes that is older than the last.
    Overtaken,
    /// The SYN of a host is repeated.
    First {
        host: usize,
    },
    /// The host gets its window updates.
    Tell,
    Pace {
        packets_per_s: u16,
    },
    Wait {
        ms: u16,
    },
}

/// Most segments have the full length.
fn lens() -> impl Strategy<Value = u16> {
    prop_oneof![1..=MSS - 12, Just(MSS - 12)]
}

fn event() -> impl Strategy<Value = Event> {
    use Event::{Acknowledge, First, Leave, Overtaken, Pace, Repeat, Send, Tell, Wait};
    prop_oneof![
        6 => (lens(), 0..3u16).prop_map(|(len, again)| Send { len, again: again / 2 * len }),
        5 => (1..6usize).prop_map(|packets| Leave { packets }),
        4 => (any::<u8>(), 0..4_000_000u32, 0..3u16, 0..8u8).prop_map(
            |(part, promise, len, ranges)| Acknowledge {
                part,
                promise: promise >> (part % 16),
                len: len / 2 * 700,
                ranges: ranges.saturating_sub(4),
            }
        ),
        1 => Just(Repeat),
        1 => Just(Overtaken),
        1 => (0..2usize).prop_map(|host| First { host }),
        4 => Just(Tell),
        1 => any::<u16>().prop_map(|packets_per_s| Pace { packets_per_s: packets_per_s / 16 }),
        2 => (0..100u16).prop_map(|ms| Wait { ms }),
    ]
}

/// The hosts, the queue between them, and what the near host has been told.
struct World {
    setup: Setup,
    queue: IngressQueue,
    stats: Stats,
    now: Time,
    /// First and next byte of the near host, without wrapping; byte 1 is the first of data.
    sent: u64,
    /// What the far host has acknowledged and advertised, and its own sequence number.
    acked: u64,
    promised: u64,
    far_sent: u64,
    last: Option<Vec<u8>>,
    older: Option<Vec<u8>>,
    /// SYNs in the queue, which are no data, or some that were there since it was last empty.
    firsts_waiting: usize,
    /// The right edge of the window as the near host knows it, and whether it was ever rewritten.
    edge: u64,
    touched: bool,
}

impl World {
    fn new(setup: Setup) -> Self {
        let mut world = World {
            setup,
            queue: queue(500.0),
            stats: Stats::default(),
            now: Time::from_millis(10),
            sent: 1,
            acked: 1,
            promised: 1 + 65_535,
            far_sent: 1,
            last: None,
            older: None,
            firsts_waiting: 0,
            edge: 1 + 65_535,
            touched: false,
        };
        let order = if setup.far_asks { [1, 0] } else { [0, 1] };
        for host in order.into_iter().filter(|&host| setup.seen[host]) {
            let first = setup.first(host);
            if host == 0 {
                world.push(&first);
                world.leave(1);
            } else {
                let mut told = first.clone();
                world.queue.clamp_bytes(&mut told, &mut world.stats);
                assert_eq!(told, first, "first segments are as they are");
                world.last = (!setup.far_asks).then_some(first);
            }
        }
        world
    }

    fn push(&mut self, packet: &[u8]) -> bool {
        self.queue.push_bytes(self.now, packet, &mut self.stats)
    }

    fn leave(&mut self, packets: usize) {
        for _ in 0..packets {
            if self.queue.front(self.now, &mut self.stats).is_some() {
                self.queue.pop();
            }
        }
        if self.queue.is_empty() {
            self.firsts_waiting = 0;
        }
    }

    fn near(&self, byte: u64) -> u32 {
        self.setup.firsts[0].wrapping_add(byte as u32)
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Send { len, again } => {
                let from = self.sent.saturating_sub(again.into()).max(self.acked);
                self.sent = self.sent.max(from + u64::from(len));
                let ack = self.setup.firsts[1].wrapping_add(self.far_sent as u32);
                let flags = Flags { ack: true, ..Flags::default() };
                let numbers = (self.near(from), ack);
                let packet =
                    self.setup.segment(0, numbers.0, numbers.1, flags, 500, Vec::new(), len.into());
                self.push(&packet);
            }
            Event::Leave { packets } => self.leave(packets),
            Event::Acknowledge { part, promise, len, ranges } => {
                self.acked += (self.sent - self.acked) * u64::from(part) / 255;
                self.promised = self.promised.max(self.acked + u64::from(promise));
                let packet = self.acknowledgement(len, ranges);
                self.far_sent += u64::from(len);
                self.older = self.last.replace(packet.clone());
                self.deliver(packet);
            }
            Event::Repeat => self.last.clone().into_iter().for_each(|last| self.deliver(last)),
            Event::Overtaken => self.older.clone().into_iter().for_each(|old| self.deliver(old)),
            Event::First { host } if self.setup.seen[host] => {
                let first = self.setup.first(host);
                if host == 0 {
                    self.firsts_waiting += usize::from(self.push(&first));
                } else {
                    self.deliver(first);
                }
            }
            Event::First { .. } => {}
            Event::Tell => self.tell(),
            Event::Pace { packets_per_s } => set_pace(&mut self.queue, packets_per_s.into()),
            Event::Wait { ms } => {
                self.now += Duration::from_millis(ms.into());
                self.queue.handle_timeout(self.now);
            }
        }
    }

    fn acknowledgement(&self, len: u16, ranges: u8) -> Vec<u8> {
        let shift = self.setup.shift();
        let window = ((self.promised - self.acked) >> shift).min(0xffff) as u16;
        let (sequence, ack) =
            (self.setup.firsts[1].wrapping_add(self.far_sent as u32), self.near(self.acked));
        let mut options = Vec::new();
        if ranges > 0 {
            options.extend([1, 1, 5, 2 + 8 * ranges.min(3)]);
            for range in 0..ranges.min(3) {
                let at = ack.wrapping_add(1_000 * u32::from(range + 1));
                options.extend(at.to_be_bytes());
                options.extend(at.wrapping_add(500).to_be_bytes());
            }
        }
        let flags = Flags { ack: true, ..Flags::default() };
        self.setup.segment(1, sequence, ack, flags, window, options, len.into())
    }

    /// A packet for the near host passes, which updates its window.
    fn deliver(&mut self, before: Vec<u8>) {
        let mut after = before.clone();
        let clamped = self.stats.windows_clamped;
        self.queue.clamp_bytes(&mut after, &mut self.stats);
        let (seen, told) = (view(&before), view(&after));
        assert_eq!(unwindowed(&after), unwindowed(&before), "nothing else is changed");
        assert_eq!(is_sealed(&after), is_sealed(&before), "right stays right, and wrong wrong");
        assert!(told.window <= seen.window, "{} of {} are told", told.window, seen.window);
        let changed = told.window != seen.window;
        assert_eq!(self.stats.windows_clamped - clamped, u64::from(changed));
        assert!(!changed || self.setup.is_open_to_change());
        self.touched |= changed;
        if told.is_syn() {
            assert!(!changed, "first segments are as they are");
            return; // The near host has a connection, and ignores this.
        }
        self.take(told.ack, told.window, Some(seen.window));
    }

    /// The near host takes a window; `own`: the one that the far host had put in its place.
    fn take(&mut self, ack: u32, window: u16, own: Option<u16>) {
        let ack = number(ack, self.setup.firsts[0], self.sent);
        if ack < self.acked {
            return; // Outdated.
        }
        let shift = self.setup.shift();
        let edge = ack + (u64::from(window) << shift);
        let own = own.map_or(self.edge, |own| ack + (u64::from(own) << shift));
        let least = self.edge.min(own);
        if self.was_engaged(own, edge) {
            assert!(edge + (1 << shift) > least, "the end goes back from {least} to {edge}");
        }
        self.edge = edge;
    }

    /// Whether windows had been rewritten before the last packet.
    fn was_engaged(&self, own: u64, edge: u64) -> bool {
        // The first rewritten window takes back what was not used.
        let first = self.touched && self.stats.windows_clamped == 1 && own != edge;
        self.touched && !first
    }

    /// Takes the window updates to the near host that are made here.
    fn tell(&mut self) {
        let mut packet = Vec::new();
        while self.queue.window_update(&mut packet, &mut self.stats) {
            assert!(self.setup.is_open_to_change());
            let told = view(&packet);
            assert!(is_sealed(&packet), "what is made is right");
            assert_eq!(told.data_len(), 0);
            assert!(!told.is_syn() && !told.is_fin() && !told.is_rst() && told.is_ack());
            let last = view(self.last.as_ref().expect("nothing is told before the far host spoke"));
            assert_eq!((told.from, told.to), (last.from, last.to));
            assert_eq!(told.options().timestamps, last.options().timestamps);
            let far = self.setup.firsts[1].wrapping_add(self.far_sent as u32);
            assert_eq!((told.sequence, told.ack), (far, self.near(self.acked)));
            let edge = self.acked + (u64::from(told.window) << self.setup.shift());
            assert!(edge <= self.promised, "{edge} is told of {}", self.promised);
            // To a sender at rest, less than a segment is worth an update. The first one may take
            // back what was not used.
            let (segment, longest) = (u64::from(MSS) - 12, u64::from(MSS));
            let waits = self.queue.len() > self.firsts_waiting;
            let is_short = !waits && self.edge < self.sent + 2 * longest;
            let news = edge >= self.edge + if is_short { 1 } else { segment };
            assert!(news || !self.touched, "from {} to {edge} is no news", self.edge);
            (self.edge, self.touched) = (edge, true);
            packet.clear();
        }
        assert!(packet.is_empty(), "what is not told is not written");
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(2_000))]

    #[test]
    fn windows_are_what_the_receiver_promised_or_less(
        setup in setup(),
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut world = World::new(setup);
        events.iter().for_each(|event| world.happen(event));
    }

    #[test]
    fn what_forbids_it_or_was_not_seen_from_the_beginning_is_left_alone(
        setup in setup(),
        kind in prop_oneof![Just(None), Just(Some(19)), Just(Some(29)), Just(Some(30))],
        who in 0..2usize,
        events in proptest::collection::vec(event(), 1..200),
    ) {
        let mut seen = [true; 2];
        seen[who] = kind.is_some();
        let protected = kind.map(|kind| (kind, who));
        let mut world = World::new(Setup { protected, seen, ..setup });
        events.iter().for_each(|event| world.happen(event));
        prop_assert_eq!(world.stats.windows_clamped + world.stats.window_updates_sent, 0);
    }
}

/// Arbitrary events do lead to rewritten windows and to updates.
#[test]
fn windows_do_change() {
    let mut runner = TestRunner::deterministic();
    let strategy = (setup(), proptest::collection::vec(event(), 200));
    let (mut clamped, mut updates) = (0, 0);
    for _ in 0..200 {
        let (setup, events) = strategy.new_tree(&mut runner).expect("it is drawn").current();
        let mut world = World::new(setup);
        events.iter().for_each(|event| world.happen(event));
        clamped += u64::from(world.stats.windows_clamped > 3);
        updates += world.stats.window_updates_sent;
    }
    assert!(clamped > 50, "windows change in {clamped} of 200");
    assert!(updates > 20, "{updates} updates");
}
