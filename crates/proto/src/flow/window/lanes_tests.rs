//! Windows longer than a lane: sender and receiver on a path that loses and reorders, tested
//! against what a window guarantees to an observer of packets going in and coming out.

use core::time::Duration;
use std::collections::BTreeMap;

use corridor_base::rand::{Rng, SeedableRng};
use corridor_base::{Stream, Time};
use proptest::prelude::*;

use crate::bounds::{WINDOW_GAPS_MAX, WINDOW_NARROW_AFTER};
use crate::config::CodingParams;
use crate::flow::symbol::{Packet, append_packet};
use crate::flow::window::FLOW;
use crate::flow::window::receive::WindowReceiver;
use crate::flow::window::send::WindowSender;
use crate::host::egress::EgressQueue;
use crate::host::queue::IngressQueue;
use crate::link::arrivals::Arrivals;
use crate::link::usage::{Heard, LinkUsage};
use crate::memory::WindowShape;
use crate::stats::Stats;
use crate::wire::{CodedSeed, Lanes, LinkFeedback, WindowFeedback, WindowForm, WindowSymbol};

const SYMBOL_SIZE_MAX: usize = 120;

/// A path, and the configuration of its ends.
#[derive(Clone, Copy, Debug)]
struct Path {
    lane_size: u16,
    window_size: u16,
    /// Most lanes that the receiver accepts.
    taken: Lanes,
    /// Interval of frames.
    step: Duration,
    way: Duration,
    jitter: Duration,
    loss_ratio: f64,
    deadline: Duration,
}

const PATH: Path = Path {
    lane_size: 16,
    window_size: 256,
    taken: Lanes::MOST,
    step: Duration::from_millis(1),
    way: Duration::from_millis(20),
    jitter: Duration::ZERO,
    loss_ratio: 0.1,
    deadline: Duration::from_secs(30),
};

/// The link, at its sender and at its receiver.
struct Link {
    usage: LinkUsage,
    arrivals: Arrivals,
}

struct Tunnel {
    path: Path,
    link: Link,
    sender: WindowSender,
    receiver: WindowReceiver,
    ingress: IngressQueue,
    egress: EgressQueue,
    stats: Stats,
    now: Time,
    counter: u32,
    draws: Stream,
    /// Keyed by time of arrival and order of sending.
    frames: BTreeMap<(Time, u32), Vec<u8>>,
    feedback: BTreeMap<(Time, u32), (LinkFeedback, WindowFeedback)>,
    offered: u32,
    delivered: Vec<u32>,
    seen: Seen,
}

/// What frames carried.
struct Seen {
    /// Most lanes that a symbol was dealt to.
    lanes: Lanes,
    /// Number of coded symbols, and how many symbols all of them cover.
    coded: (u32, u32),
}

impl Tunnel {
    fn new(path: Path, seed: u8) -> Self {
        let params = CodingParams {
            window_size: path.window_size,
            window_lane: path.lane_size,
            half_duplex: Some(false),
            delivery_deadline: path.deadline,
            ..CodingParams::window()
        };
        let (now, mut stats) = (Time::ZERO, Stats::default());
        let rng = Stream::from_seed([seed; 32]);
        let mut sender = WindowSender::new(params, SYMBOL_SIZE_MAX, rng, now).unwrap();
        let lanes = (params.lane_size(), path.taken);
        let receiver = WindowReceiver::new(
            (params.field, SYMBOL_SIZE_MAX),
            lanes,
            sender.base(),
            path.deadline,
            params.ack_interval,
        );
        let mut usage = LinkUsage::new(&params, SYMBOL_SIZE_MAX, now);
        usage.restart_peer();
        sender.restart_peer(now, &usage, whole(path.taken), &mut stats);
        Tunnel {
            path,
            link: Link { usage, arrivals: Arrivals::default() },
            sender,
            receiver: receiver.unwrap(),
            ingress: IngressQueue::fifo(4_000),
            egress: EgressQueue::default(),
            stats,
            now,
            counter: 0,
            draws: Stream::from_seed([seed ^ 0x5a; 32]),
            frames: BTreeMap::new(),
            feedback: BTreeMap::new(),
            offered: 0,
            delivered: Vec::new(),
            seen: Seen { lanes: Lanes::ONE, coded: (0, 0) },
        }
    }

    fn offer(&mut self, packets: u32) {
        for _ in 0..packets {
            let mut packet = [0; 100];
            packet[..4].copy_from_slice(&self.offered.to_be_bytes());
            if !self.ingress.push_bytes(self.now, &packet, &mut self.stats) {
                return;
            }
            self.offered += 1;
        }
    }

    fn uniform(&mut self) -> f64 {
        f64::from(self.draws.next_u32()) / 2f64.powi(32)
    }

    fn arrival(&mut self) -> Option<Time> {
        let (lost, late) = (self.uniform() < self.path.loss_ratio, self.uniform());
        (!lost).then(|| self.now + self.path.way + self.path.jitter.mul_f64(late))
    }

    fn step(&mut self) {
        self.now += self.path.step;
        while let Some(entry) = self.frames.first_entry().filter(|it| it.key().0 <= self.now) {
            let ((_, counter), body) = entry.remove_entry();
            let symbol = WindowSymbol::parse(&body).unwrap();
            let (egress, stats) = (&mut self.egress, &mut self.stats);
            self.link.arrivals.note(self.now, counter);
            self.receiver.set_frame_time(self.link.arrivals.frame_time());
            self.receiver.handle_symbol(self.now, &symbol, egress, stats);
        }
        self.receiver.handle_timeout(self.now, &mut self.egress, &mut self.stats);
        if self.receiver.ack_due().is_some_and(|due| due <= self.now)
            && let Some(frames) = self.link.arrivals.feedback(self.now, self.path.loss_ratio, false)
        {
            let symbols = self.receiver.take_feedback(self.now, self.path.loss_ratio);
            if let Some(at) = self.arrival() {
                self.feedback.insert((at, self.counter), (frames, symbols));
            }
        }
        while let Some(entry) = self.feedback.first_entry().filter(|it| it.key().0 <= self.now) {
            let (frames, symbols) = entry.remove();
            let (link, heard) = (&mut self.link.usage, Heard::new(frames, 0));
            self.sender.handle_feedback(self.now, &symbols, (link, &heard), &mut self.stats);
        }
        self.sender.handle_timeout(self.now, &mut self.link.usage, &mut self.stats);
        let (mut body, counter) = (Vec::new(), self.counter);
        self.link.usage.begin(counter, 0);
        let (link, ingress, stats) = (&mut self.link.usage, &mut self.ingress, &mut self.stats);
        if self.sender.poll(self.now, (link, false), ingress, &mut body, stats) {
            let form = WindowSymbol::parse(&body).unwrap().form;
            let (WindowForm::Source { lanes, .. } | WindowForm::Coded { lanes, .. }) = form;
            self.seen.lanes = self.seen.lanes.max(lanes);
            if let WindowForm::Coded { count, .. } = form {
                let (coded, covered) = self.seen.coded;
                self.seen.coded = (coded + 1, covered + u32::from(count.get()));
            }
            if let Some(at) = self.arrival() {
                self.frames.insert((at, counter), body);
            }
            self.counter += 1;
        }
        while let Some(packet) = self.egress.pop() {
            self.delivered.push(u32::from_be_bytes(*packet[..].first_chunk().unwrap()));
        }
        let (_, span, noted) = self.receiver.inspect();
        assert!(span <= WINDOW_GAPS_MAX && noted <= WINDOW_GAPS_MAX, "{span} {noted}");
        let held = self.sender.held();
        assert!(held <= usize::from(self.path.window_size), "{held} symbols held");
    }

    /// Keeps packets waiting for `span`; returns the share of frames that brought a packet.
    fn fill(&mut self, span: Duration) -> f64 {
        let (end, before) = (self.now + span, self.delivered.len());
        while self.now < end {
            if self.ingress.len() < 20 {
                self.offer(20);
            }
            self.step();
        }
        (self.delivered.len() - before) as f64 / span.div_duration_f64(self.path.step)
    }

    /// Runs until everything is delivered.
    fn settle(&mut self) {
        let end = self.now + Duration::from_secs(60);
        while self.now < end && (self.sender.held() > 0 || !self.ingress.is_empty()) {
            self.step();
        }
    }
}

/// On a path that holds six lanes, a window of one lane would be full most of the time.
#[test]
fn a_window_is_as_long_as_the_path_needs() {
    let path = Path { way: Duration::from_millis(50), ..PATH };
    let share = |window_size| {
        let mut tunnel = Tunnel::new(Path { window_size, ..path }, 1);
        tunnel.fill(Duration::from_secs(4));
        (tunnel.fill(Duration::from_secs(10)), tunnel.seen.lanes.count())
    };
    let ((one, lanes_of_one), (many, lanes)) = (share(16), share(256));
    assert_eq!((lanes_of_one, lanes), (1, 16));
    assert!(one < 0.2, "{one}: a lane in each round trip or two");
    assert!(many > 0.75, "{many} with {lanes} lanes, {one} with one");
}

/// Where jitter reorders, a repair waits for overtaken frames as well as for the round trip.
#[test]
fn a_window_is_longer_where_repair_waits_for_overtaken_frames() {
    let path = Path { way: Duration::from_millis(10), jitter: Duration::from_millis(40), ..PATH };
    let mut tunnel = Tunnel::new(path, 1);
    tunnel.fill(Duration::from_secs(20));
    assert_eq!(tunnel.seen.lanes.count(), 16);
}

#[test]
fn a_short_path_has_one_lane() {
    let mut tunnel = Tunnel::new(Path { lane_size: 256, window_size: 4_096, ..PATH }, 2);
    tunnel.fill(Duration::from_secs(20));
    assert_eq!((tunnel.seen.lanes, tunnel.stats.windows_dealt), (Lanes::ONE, 0));
}

/// With a million frames a second, what is sent between two feedbacks is as much as a path with a
/// thousand and a long delay holds. But coding over so many would take most of a processor.
#[test]
fn fewer_symbols_are_coded_over_where_many_are_lost_per_second() {
    let covered = |step: Duration, way: u32, frames: u32| {
        let (lane_size, window_size, loss_ratio) = (1_024, 16_384, 0.3);
        let way = way * step;
        let path = Path { step, way, lane_size, window_size, loss_ratio, ..PATH };
        let mut tunnel = Tunnel::new(path, 7);
        tunnel.fill(frames * step);
        tunnel.seen.coded = (0, 0);
        tunnel.fill(frames * step);
        assert_eq!(tunnel.sender.lanes(), 1, "one lane is long enough");
        (tunnel.seen.coded.1 / tunnel.seen.coded.0, tunnel.seen.lanes.count())
    };
    let slow = covered(Duration::from_millis(1), 200, 20_000);
    assert!(slow.0 > 300 && slow.1 == 1, "{slow:?} symbols, and lanes");
    let fast = covered(Duration::from_micros(1), 100, 100_000);
    assert!(fast.0 < 280 && fast.1 > 1, "{fast:?} symbols, and lanes");
}

#[test]
fn no_more_lanes_are_used_than_the_receiver_takes() {
    let taken = Lanes::holding(2, 1);
    let mut tunnel = Tunnel::new(Path { taken, ..PATH }, 3);
    tunnel.fill(Duration::from_secs(10));
    assert_eq!(tunnel.seen.lanes, taken);
    let mut tunnel = Tunnel::new(Path { taken: Lanes::ONE, ..PATH }, 3);
    tunnel.fill(Duration::from_secs(10));
    assert_eq!(tunnel.seen.lanes, Lanes::ONE);
}

/// After the path has become short again, and the window has been longer than needed for a while,
/// there are fewer lanes, and more when the path becomes long once more. Whatever is lost while
/// symbols are dealt to other lanes, packets are delivered once and in order.
#[test]
fn lanes_go_and_come_with_the_path() {
    let mut tunnel = Tunnel::new(PATH, 4);
    for way in [60, 1, 60] {
        tunnel.path.way = Duration::from_millis(way);
        tunnel.fill(4 * WINDOW_NARROW_AFTER);
    }
    assert!(tunnel.stats.windows_dealt >= 3, "{} times", tunnel.stats.windows_dealt);
    tunnel.settle();
    assert_eq!(tunnel.stats.symbols_given_up, 0);
    let all: Vec<u32> = (0..tunnel.offered).collect();
    assert!(tunnel.delivered == all, "{} of {}", tunnel.delivered.len(), tunnel.offered);
}

/// A receiver that restarts is sent everything that the sender still holds, whatever lanes that is
/// in; if the new one accepts fewer lanes, the sender starts afresh.
#[test]
fn a_receiver_that_restarts_gets_what_is_held() {
    for taken in [Lanes::MOST, Lanes::ONE] {
        let mut tunnel = Tunnel::new(Path { way: Duration::from_millis(50), ..PATH }, 5);
        tunnel.fill(Duration::from_secs(5));
        let fresh = Tunnel::new(tunnel.path, 5);
        let lanes = (tunnel.path.lane_size, taken);
        tunnel.receiver = WindowReceiver::new(
            (CodingParams::window().field, SYMBOL_SIZE_MAX),
            lanes,
            tunnel.sender.base(),
            fresh.path.deadline,
            Duration::from_millis(10),
        )
        .unwrap();
        // What is in flight belongs to the session before.
        tunnel.frames.clear();
        tunnel.feedback.clear();
        let held = tunnel.sender.held();
        assert!(held > 32, "{held} symbols in more than one lane");
        let delivered = tunnel.delivered.len();
        tunnel.link.usage.restart_peer();
        tunnel.link.arrivals = Arrivals::default();
        let (now, link) = (tunnel.now, &tunnel.link.usage);
        tunnel.sender.restart_peer(now, link, whole(taken), &mut tunnel.stats);
        tunnel.fill(Duration::from_secs(5));
        tunnel.settle();
        let after = &tunnel.delivered[delivered..];
        assert!(after.is_sorted() && after.last() == Some(&(tunnel.offered - 1)));
        assert!(after.windows(2).all(|pair| pair[0] + 1 == pair[1]), "nothing is missing");
        let given_up = tunnel.stats.packets_given_up;
        assert_eq!(given_up > 0, taken == Lanes::ONE, "{given_up} packets given up");
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(40))]

    /// Packets are delivered in order and at most once; all of them, unless a deadline passes; and
    /// what is not delivered is counted.
    #[test]
    fn packets_come_out_in_order_and_once(
        seed: u8,
        lane_size in 1_u16..24,
        lanes in 1_u16..=16,
        way_ms in 1_u64..80,
        jitter_ms in 0_u64..60,
        loss in 0_u32..50,
        hurries: bool,
    ) {
        let path = Path {
            lane_size,
            window_size: lane_size * lanes,
            way: Duration::from_millis(way_ms),
            jitter: Duration::from_millis(jitter_ms),
            loss_ratio: f64::from(loss) / 100.0,
            deadline: if hurries { Duration::from_millis(150) } else { PATH.deadline },
            ..PATH
        };
        let mut tunnel = Tunnel::new(path, seed);
        for _ in 0..3 {
            tunnel.fill(Duration::from_secs(2));
            tunnel.settle();
        }
        prop_assert!(tunnel.delivered.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(tunnel.delivered.iter().all(|&packet| packet < tunnel.offered));
        let missing = tunnel.offered as usize - tunnel.delivered.len();
        let counted = tunnel.stats.packets_given_up.max(tunnel.stats.symbols_given_up);
        prop_assert!(missing as u64 <= counted + tunnel.stats.packets_dropped_codel, "{}", missing);
        if !hurries {
            prop_assert_eq!((missing, tunnel.stats.symbols_given_up), (0, 0));
        }
    }

    /// A sender that lies about lanes and numbers makes the receiver hold no more than an honest
    /// one does, and the receiver goes on.
    #[test]
    fn lies_of_lanes_are_bounded(
        seed: u8,
        code in 0_u8..=4,
        lies in proptest::collection::vec((0_u8..=4, any::<u32>(), 1_u16..2_048, any::<bool>()), 60),
    ) {
        let taken = Lanes::from_code(code).unwrap();
        let mut tunnel = Tunnel::new(Path { taken, ..PATH }, seed);
        let base = tunnel.sender.base();
        for (serial, (code, ahead, number, coded)) in (0..).zip(lies) {
            let lanes = Lanes::from_code(code).unwrap();
            let id = base.wrapping_add(if ahead % 3 == 0 { ahead } else { ahead % 40_000 });
            let form = match core::num::NonZeroU16::new(number).filter(|_| coded) {
                Some(count) => {
                    let seed = CodedSeed::new(id.into(), serial);
                    WindowForm::Coded { seed, count, lanes }
                }
                None => WindowForm::Source { id, distance: number, lanes },
            };
            let symbol = WindowSymbol { flow: FLOW, form, is_paired: false, symbol: &[7; 20] };
            let (egress, stats) = (&mut tunnel.egress, &mut tunnel.stats);
            tunnel.receiver.handle_symbol(tunnel.now, &symbol, egress, stats);
            let (_, span, noted) = tunnel.receiver.inspect();
            prop_assert!(span <= WINDOW_GAPS_MAX && noted <= WINDOW_GAPS_MAX, "{} {}", span, noted);
            let decoders = tunnel.receiver.decoders();
            prop_assert!(decoders <= 2 * taken.count().max(1), "{} decoders", decoders);
            while tunnel.egress.pop().is_some() {}
            let _ = tunnel.receiver.take_feedback(tunnel.now, 0.1);
        }
    }
}

/// A coded symbol over the last places of the longest possible window, in a lane of which nothing
/// was heard: found by the test above.
#[test]
fn a_coded_run_of_a_new_lane_bounds_what_is_waited_for() {
    for ahead in [16_384, 16_400, 20_000] {
        let mut tunnel = Tunnel::new(PATH, 0);
        let first = tunnel.sender.base().wrapping_add(ahead);
        let count = core::num::NonZeroU16::new(3).unwrap();
        let seed = CodedSeed::new(first.into(), 0);
        let form = WindowForm::Coded { seed, count, lanes: Lanes::MOST };
        let symbol = WindowSymbol { flow: FLOW, form, is_paired: false, symbol: &[7; 20] };
        let (egress, stats) = (&mut tunnel.egress, &mut tunnel.stats);
        tunnel.receiver.handle_symbol(tunnel.now, &symbol, egress, stats);
        let (_, span, _) = tunnel.receiver.inspect();
        assert!(span > 0 && span <= WINDOW_GAPS_MAX, "{span} symbols");
    }
}

/// A receiver that hears symbols as a network has mixed them, each with one packet.
struct Mixed(Tunnel);

impl Mixed {
    fn new() -> Self {
        Mixed(Tunnel::new(Path { deadline: Duration::from_millis(100), ..PATH }, 0))
    }

    /// Symbols arrive that are dealt to this many lanes; the sender holds them from `oldest` on.
    fn arrive(&mut self, (lanes, oldest): (usize, u32), numbers: &[u32]) {
        let Mixed(Tunnel { sender, receiver, egress, stats, now, .. }) = self;
        for &number in numbers {
            let [id, oldest] = [number, oldest].map(|it| u64::from(sender.base()) + u64::from(it));
            let lanes = Lanes::holding(lanes, 1);
            let distance = lanes.place(id) - lanes.first_place(lanes.lane(id), oldest);
            let form = WindowForm::Source { id: id as u32, distance: distance as u16, lanes };
            let mut symbol = Vec::new();
            append_packet(Packet::verbatim(&number.to_be_bytes(), true), &mut symbol);
            let symbol = WindowSymbol { flow: FLOW, form, is_paired: false, symbol: &symbol };
            receiver.handle_symbol(*now, &symbol, egress, stats);
        }
    }

    fn pass(&mut self, time: Duration) {
        let Mixed(Tunnel { receiver, egress, stats, now, .. }) = self;
        *now += time;
        receiver.handle_timeout(*now, egress, stats);
    }

    /// What came out since the last call.
    fn out(&mut self) -> Vec<u32> {
        let mut out = Vec::new();
        while let Some(packet) = self.0.egress.pop() {
            out.push(u32::from_be_bytes(*packet[..].first_chunk().unwrap()));
        }
        out
    }
}

/// Symbols of three stretches arrive together. The receiver has decoders for two, and each stretch
/// that came anew replaced one, with symbols of which it had taken notice: what could overtake had
/// come out, and the rest was given up.
#[test]
fn what_has_come_of_a_stretch_comes_out_before_its_decoders_go() {
    let mut mixed = Mixed::new();
    mixed.arrive((1, 0), &[0, 2]);
    mixed.arrive((8, 13), &[13]);
    assert_eq!(mixed.out(), [0], "symbol 1 may still come");
    mixed.arrive((16, 9), &[9]);
    assert_eq!(mixed.out(), [2], "the sender is done with the first stretch");
    // Too late.
    mixed.arrive((1, 0), &[7]);
    mixed.arrive((16, 9), &[11]);
    assert_eq!((mixed.out(), mixed.0.stats.symbols_late), (vec![], 1));
    mixed.pass(Duration::from_secs(10));
    assert_eq!((mixed.out(), mixed.0.stats.symbols_innovative), (vec![9, 11, 13], 5));
    assert_eq!(mixed.0.stats.symbols_given_up, 14 - 5);
}

/// Symbols of a stretch that is gone seemed to belong to one that has as many lanes, which then
/// seemed to begin so early that the one between was over.
#[test]
fn a_late_symbol_is_not_taken_for_one_of_a_later_stretch_with_as_many_lanes() {
    let mut mixed = Mixed::new();
    mixed.arrive((8, 0), &[0]);
    mixed.arrive((1, 10), &[10]);
    mixed.arrive((8, 20), &[20]);
    mixed.arrive((8, 0), &[1, 2, 3]);
    assert_eq!((mixed.out(), mixed.0.stats.symbols_late), (vec![0], 3));
    mixed.pass(Duration::from_secs(10));
    assert_eq!(mixed.out(), [10, 20]);
}

/// After a clock has jumped, all symbols are given up at once. The window then got other lanes
/// before the receiver had heard of those that it had just got.
#[test]
fn a_third_stretch_waits_until_the_receiver_is_in_the_second() {
    let (way, deadline) = (Duration::from_millis(60), Duration::from_millis(500));
    let mut tunnel = Tunnel::new(Path { way, deadline, ..PATH }, 7);
    while tunnel.stats.windows_dealt == 0 {
        tunnel.fill(tunnel.path.step);
    }
    tunnel.now += 2 * WINDOW_NARROW_AFTER;
    tunnel.fill(way / 2);
    assert!(tunnel.stats.packets_given_up > 0);
    assert_eq!(tunnel.stats.windows_dealt, 1, "no feedback can have come since");
    tunnel.path.way = tunnel.path.step;
    tunnel.fill(3 * WINDOW_NARROW_AFTER);
    assert!(tunnel.stats.windows_dealt > 1, "the receiver has told where it is");
    tunnel.settle();
    assert!(tunnel.delivered.is_sorted() && tunnel.delivered.last() == Some(&(tunnel.offered - 1)));
}

/// After the end of a burst nothing more comes: nevertheless each lane is reported on within a few
/// round trips, that of the first missing symbol before all others.
#[test]
fn each_lane_is_told_of_after_the_end_of_a_burst() {
    let path = Path { way: Duration::from_millis(60), loss_ratio: 0.0, ..PATH };
    let mut tunnel = Tunnel::new(path, 6);
    tunnel.fill(Duration::from_secs(5));
    assert_eq!(tunnel.seen.lanes.count(), 16);
    while !tunnel.ingress.is_empty() {
        tunnel.step();
    }
    // Most of what is in flight is lost.
    let mut at = 0;
    tunnel.frames.retain(|_, _| {
        at += 1;
        at % 8 == 0
    });
    let last = *tunnel.frames.last_key_value().unwrap().0;
    while tunnel.frames.contains_key(&last) {
        tunnel.step();
    }
    let before = tunnel.feedback.values().last().map(|(_, symbols)| symbols.lane);
    let (mut told, mut of_next) = (std::collections::BTreeSet::from_iter(before), 0);
    let end = tunnel.now + Duration::from_millis(50);
    let mut acks = 0;
    while tunnel.now < end {
        tunnel.now += tunnel.path.step;
        if tunnel.receiver.ack_due().is_some_and(|due| due <= tunnel.now) {
            let ack = tunnel.receiver.take_feedback(tunnel.now, 0.1);
            told.insert(ack.lane);
            of_next += usize::from(u32::from(ack.lane) == ack.next % 16);
            acks += 1;
        }
    }
    assert_eq!(told.len(), 16, "lanes told of in {acks} times");
    assert!(2 * of_next >= acks, "{of_next} of {acks} of the lane of the first missing symbol");
    assert_eq!(tunnel.receiver.ack_due(), None, "it ends");
}

/// This many lanes, each as long as a coder can handle.
fn whole(lanes: Lanes) -> WindowShape {
    WindowShape { lanes, lane_size: corridor_codec::MAX_WINDOW_SIZE as u16 }
}
