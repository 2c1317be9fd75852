use core::time::Duration;

use corridor_base::Time;
use corridor_codec::Field;
use proptest::prelude::*;

use super::FLOW;
use super::receive::WindowReceiver;
use crate::flow::symbol::{Packet, append_packet};
use crate::host::egress::EgressQueue;
use crate::link::arrivals::Arrivals;
use crate::stats::Stats;
use crate::wire::{Lanes, WindowForm, WindowSymbol};

const HOLD: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_millis(1_000);
const UDP: u8 = 17;
const TCP: u8 = 6;

struct Scene {
    receiver: WindowReceiver,
    arrivals: Arrivals,
    egress: EgressQueue,
    stats: Stats,
    counter: u32,
    /// When something last arrived, in milliseconds.
    came_ms: u64,
    /// Packets delivered and not yet fetched by the test, with the time.
    out: Vec<((u8, u8), u64)>,
}

impl Scene {
    fn new(hold: Option<Duration>) -> Self {
        let ack_interval = Duration::from_millis(10);
        let mut receiver = WindowReceiver::new(
            (Field::Gf256, 1_000),
            (64, Lanes::MOST),
            0,
            DEADLINE,
            ack_interval,
        )
        .unwrap();
        receiver.set_hold(hold);
        let (egress, stats) = (EgressQueue::default(), Stats::default());
        let arrivals = Arrivals::default();
        Scene { receiver, arrivals, egress, stats, counter: 0, came_ms: 0, out: Vec::new() }
    }

    /// A symbol arrives with two packets in order: a datagram and a TCP segment.
    fn receive(&mut self, ms: u64, id: u32) {
        self.receive_of(ms, id, Lanes::ONE, &[UDP, TCP]);
    }

    /// A symbol of a lane arrives with packets of these protocols.
    fn receive_of(&mut self, ms: u64, id: u32, lanes: Lanes, protocols: &[u8]) {
        let mut symbol = Vec::new();
        for &protocol in protocols {
            append_packet(Packet::verbatim(&packet(protocol, id), true), &mut symbol);
        }
        let distance = lanes.place(u64::from(id)) as u16;
        let form = WindowForm::Source { id, distance, lanes };
        let received = WindowSymbol { flow: FLOW, form, is_paired: false, symbol: &symbol };
        self.counter += 1;
        self.came_ms = ms;
        let (now, egress, stats) = (Time::from_millis(ms), &mut self.egress, &mut self.stats);
        self.arrivals.note(now, self.counter);
        self.receiver.set_frame_time(self.arrivals.frame_time());
        self.receiver.handle_symbol(now, &received, egress, stats);
        self.note_out(ms);
    }

    fn note_out(&mut self, ms: u64) {
        while let Some(packet) = self.egress.pop() {
            self.out.push(((packet[9], packet[28]), ms));
        }
    }

    /// Symbols arrive at these times, in milliseconds.
    fn receive_all(&mut self, symbols: &[(u64, u32)]) {
        symbols.iter().for_each(|&(ms, id)| self.receive(ms, id));
    }

    /// Time passes without arrivals.
    fn wait(&mut self, ms: u64) {
        let now = Time::from_millis(ms);
        while self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            // Deadlines become shorter, and may have passed, when frames come closer together.
            let at = self.receiver.poll_timeout().unwrap().max(Time::from_millis(self.came_ms));
            self.receiver.handle_timeout(at, &mut self.egress, &mut self.stats);
            self.note_out(at.as_nanos() / 1_000_000);
        }
    }

    /// Packets delivered since the last call: protocol and number.
    fn delivered(&mut self) -> Vec<(u8, u8)> {
        self.out.drain(..).map(|(packet, _)| packet).collect()
    }
}

fn packet(protocol: u8, id: u32) -> Vec<u8> {
    let mut packet = vec![0; 60];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 60, 0, 0, 0, 0, 64, protocol]);
    packet[28] = id as u8;
    packet
}

fn both(ids: impl Iterator<Item = u8>) -> Vec<(u8, u8)> {
    ids.flat_map(|id| [(UDP, id), (TCP, id)]).collect()
}

#[test]
fn datagrams_wait_for_what_is_repaired_in_time() {
    let mut scene = Scene::new(Some(HOLD));
    scene.receive_all(&[(0, 0), (10, 2), (20, 3)]);
    assert_eq!(scene.delivered(), both(0..1));
    scene.wait(59);
    scene.receive(59, 1);
    assert_eq!(scene.delivered(), both(1..4));
    let Stats { datagrams_held, datagrams_held_us, datagrams_overdue, .. } = scene.stats;
    // Number 2 waited for 49 ms, number 3 for 39 ms; number 1 came in its turn.
    assert_eq!((datagrams_held, datagrams_held_us, datagrams_overdue), (2, 88_000, 0));
    assert_eq!(scene.stats.datagram_hold_s_max, 0.049);
}

/// In several lanes as in one; and what a lying sender makes the receiver drop undelivered does not
/// count as waiting forever.
#[test]
fn datagrams_wait_in_lanes_too() {
    let [two, four] = [2, 4].map(|count| Lanes::holding(count, 1));
    let mut scene = Scene::new(Some(HOLD));
    for (ms, id) in [(0, 0), (10, 2), (20, 3), (59, 1)] {
        scene.wait(ms);
        scene.receive_of(ms, id, four, &[UDP, TCP]);
    }
    assert_eq!(scene.delivered(), both(0..4));
    let Stats { datagrams_held, datagrams_held_us, datagrams_overdue, .. } = scene.stats;
    assert_eq!((datagrams_held, datagrams_held_us, datagrams_overdue), (2, 88_000, 0));

    let mut scene = Scene::new(Some(HOLD));
    scene.receive(0, 2);
    scene.receive_of(1, 10, two, &[UDP]);
    scene.receive_of(2, 20, four, &[UDP]);
    assert_eq!(scene.receiver.decoders(), 2, "there are two stretches at most");
    scene.wait(2_000);
    assert_eq!(scene.receiver.inspect().1, 0, "all is delivered or passed over");
    // From now on no datagram waits.
    scene.receive_of(2_001, 22, four, &[TCP]);
    // Frames came far apart, so missing ones are waited for as long as a burst of them lasts.
    assert!(scene.receiver.poll_timeout() >= Some(Time::from_millis(2_001) + DEADLINE));
}

#[test]
fn datagrams_wait_no_longer_than_the_hold_and_segments_do() {
    let mut scene = Scene::new(Some(HOLD));
    scene.receive_all(&[(0, 0), (10, 2), (20, 3)]);
    scene.delivered();
    scene.wait(59);
    assert_eq!(scene.delivered(), []);
    scene.wait(60);
    assert_eq!(scene.delivered(), [(UDP, 2)]);
    // The missing one is late now, and segments wait on for the next one.
    scene.receive(65, 5);
    scene.receive(66, 1);
    assert_eq!(scene.delivered(), [(UDP, 1), (TCP, 1), (TCP, 2), (UDP, 3), (TCP, 3)]);
    assert_eq!(scene.stats.datagrams_overdue, 1);
    scene.wait(200);
    assert_eq!(scene.delivered(), [(UDP, 5)]);
    scene.wait(2_000);
    assert_eq!(scene.delivered(), [(TCP, 5)]);
    assert_eq!((scene.stats.datagrams_overdue, scene.stats.symbols_given_up), (2, 1));
    assert!(scene.stats.datagram_hold_s_max <= HOLD.as_secs_f64() + 1e-9);
}

#[test]
fn without_a_hold_datagrams_wait_as_segments_do() {
    let mut scene = Scene::new(None);
    scene.receive_all(&[(0, 0), (10, 2)]);
    scene.wait(1_009);
    assert_eq!(scene.delivered(), both(0..1));
    scene.wait(1_010);
    assert_eq!(scene.delivered(), both(2..3));
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// Whatever is lost or reordered: everything that arrived is delivered once, segments in order,
    /// and datagrams at most the hold after they arrived.
    #[test]
    fn all_that_comes_comes_out_once(
        order in proptest::collection::vec((0u32..48, 0u64..30), 1..120),
    ) {
        let mut scene = Scene::new(Some(HOLD));
        let (mut ms, mut came) = (0, std::collections::BTreeMap::new());
        for (id, after) in order {
            ms += after;
            scene.wait(ms);
            let passed = u64::from(id) < scene.receiver.inspect().0;
            scene.receive(ms, id);
            if !passed {
                came.entry(id as u8).or_insert(ms);
            }
        }
        scene.wait(ms + 10_000);
        let out = &scene.out;
        for ((protocol, id), at) in out {
            // As long as bursts of frames last that come every 30 ms.
            let segments = DEADLINE.max(crate::bounds::burst_time(Duration::from_millis(30)));
            let longest = if *protocol == UDP { HOLD } else { segments };
            let waited = Duration::from_millis(at - came[id]);
            prop_assert!(waited <= longest, "{id} of {protocol} waited for {waited:?}");
        }
        for protocol in [UDP, TCP] {
            let mut ids: Vec<_> =
                out.iter().filter(|((p, _), _)| *p == protocol).map(|((_, id), _)| *id).collect();
            prop_assert!(protocol == UDP || ids.is_sorted(), "{ids:?}");
            ids.sort_unstable();
            prop_assert_eq!(ids, came.keys().copied().collect::<Vec<_>>());
        }
        prop_assert!(scene.stats.datagram_hold_s_max <= HOLD.as_secs_f64() + 1e-9);
    }
}

/// Frames arrive at these times, in milliseconds, on a path with this round-trip time; then one is
/// missing, another arrives, and nothing after it. Returns how long that one waits for the missing
/// one.
fn waits_behind_a_dead_sender(came_ms: &[u64], round_trip_ms: u64) -> u64 {
    let mut scene = Scene::new(None);
    scene.receiver.set_round_trip(Duration::from_millis(round_trip_ms));
    let mut id = 0;
    for &ms in came_ms {
        scene.receive_of(ms, id, Lanes::ONE, &[TCP]);
        id += 1;
    }
    let last_ms = came_ms.last().unwrap() + 200;
    scene.delivered();
    scene.counter += 1;
    scene.receive_of(last_ms, id + 1, Lanes::ONE, &[TCP]);
    scene.wait(last_ms + 60_000);
    let [((TCP, _), at_ms)] = scene.out[..] else { panic!("{:?}", scene.out) };
    at_ms - last_ms
}

#[test]
fn a_sparse_flow_does_not_wait_as_a_slow_path_would() {
    let apart = |count: u64, ms: u64| (0..count).map(|at| at * ms).collect::<Vec<_>>();
    // A frame takes 75 ms, so a burst of losses is waited for.
    assert!(waits_behind_a_dead_sender(&apart(40, 75), 200) > 10_000);
    // Five packets per second on a path of 20 ms: a frame takes no longer than that.
    assert!(waits_behind_a_dead_sender(&apart(40, 200), 20) <= 3_000);
    // They came close together just before, like an answer to a request.
    let mut came_ms = apart(20, 2);
    came_ms.extend(apart(20, 200).iter().map(|ms| ms + 200));
    assert!(waits_behind_a_dead_sender(&came_ms, 400) <= 3_500);
}
