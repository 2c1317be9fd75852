//! Liveness, whatever came before: once all data is acknowledged and none is queued, the sender
//! knows a window that lets it go on.

use core::time::Duration;

use proptest::prelude::*;

use super::scene::Scene;
use super::segments::{Flags, view};
use super::{MSS, Setup, set_pace, setup};

const ACK: Flags = Flags { syn: false, ack: true, fin: false, rst: false, accurate_ecn: false };

#[derive(Clone, Debug)]
enum Event {
    /// The sender uses its window, for at most this many segments of this length.
    Send {
        segments: u64,
        len: u16,
    },
    Leave {
        packets: usize,
    },
    /// The receiver acknowledges a part of what has left, and advertises a window of this many
    /// bytes.
    Acknowledge {
        part: u8,
        promise: u64,
    },
    Repeat,
    /// A window update for the sender is written, but lost.
    Tell {
        is_lost: bool,
    },
    Wait {
        ms: u64,
    },
    Pace {
        packets_per_s: f64,
    },
    /// This many packets of others come to the same queue; data of another connection comes.
    Foreign {
        packets: usize,
    },
    Other {
        segments: u64,
    },
    /// A segment in the receiver's name is forged, with sequence number and acknowledgment this far
    /// from the expected ones.
    Forge {
        sequence: u32,
        ack: u32,
        window: u16,
        syn: bool,
    },
    /// A segment in the sender's name is forged, this far beyond its window.
    ForgeData {
        beyond: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    use Event::{
        Acknowledge, Foreign, Forge, ForgeData, Leave, Other, Pace, Repeat, Send, Tell, Wait,
    };
    let pace = prop_oneof![
        4 => 0.0..200_000.0,
        1 => proptest::sample::select(vec![f64::NAN, f64::INFINITY, -1.0, 1e300, 0.0]),
    ];
    let wait = prop_oneof![0..10u64, 0..300u64, 0..5_000u64, 0..1_000_000u64];
    // A closer one might be taken for the receiver's.
    let sequence = prop_oneof![Just(0), 1u32 << 24..=0xff00_0000];
    prop_oneof![
        8 => (0..60u64, prop_oneof![4 => Just(MSS), 1 => 1..=MSS])
            .prop_map(|(segments, len)| Send { segments, len }),
        6 => (0..60usize).prop_map(|packets| Leave { packets }),
        6 => (any::<u8>(), 0..22u32, any::<u32>()).prop_map(|(part, bits, promise)| {
            Acknowledge { part, promise: u64::from(promise) >> (31 - bits) }
        }),
        2 => Just(Repeat),
        4 => (0..4u8).prop_map(|which| Tell { is_lost: which == 0 }),
        4 => wait.prop_map(|ms| Wait { ms }),
        1 => pace.prop_map(|packets_per_s| Pace { packets_per_s }),
        1 => (0..100usize).prop_map(|packets| Foreign { packets }),
        1 => (0..40u64).prop_map(|segments| Other { segments }),
        1 => (sequence, any::<u32>(), any::<u16>(), any::<bool>())
            .prop_map(|(sequence, ack, window, syn)| Forge { sequence, ack, window, syn }),
        1 => (0..1u64 << 31).prop_map(|beyond| ForgeData { beyond }),
    ]
}

struct World {
    scene: Scene,
    /// Another connection through the same table.
    other: Setup,
    other_sent: u64,
    foreign: Vec<u8>,
    /// The right edge of the window as the sender knows it, and as the receiver advertised it.
    edge: u64,
    promised: u64,
    /// The end of what has left the queue.
    left: u64,
}

impl World {
    fn new(setup: Setup) -> Self {
        let mut scene = Scene::new(setup, 1_000.0);
        let other = Setup { connection: 1, ..Setup::usual() };
        scene.push(&other.first(0));
        scene.leave(1);
        scene.queue.clamp_bytes(&mut other.first(1), &mut scene.stats);
        let (foreign, edge) = (scene.foreign(), scene.acknowledge(1));
        World { scene, other, other_sent: 1, foreign, edge, promised: edge, left: 1 }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Send { segments, len } => self.send(segments, len.into()),
            Event::Leave { packets } => self.leave(packets),
            Event::Acknowledge { part, promise } => {
                let acked = self.scene.acked;
                self.scene.acked += (self.left - acked) * u64::from(part) / 255;
                self.promised = self.promised.max(self.scene.acked + promise);
                self.acknowledge();
            }
            Event::Repeat => self.acknowledge(),
            Event::Tell { is_lost } => self.tell(is_lost),
            Event::Wait { ms } => self.scene.wait(Duration::from_millis(ms)),
            Event::Pace { packets_per_s } => set_pace(&mut self.scene.queue, packets_per_s),
            Event::Foreign { packets } => {
                (0..packets).for_each(|_| self.scene.push(&self.foreign));
            }
            Event::Other { segments } => self.other(segments),
            Event::Forge { sequence, ack, window, syn } => self.forge(sequence, ack, window, syn),
            Event::ForgeData { beyond } => {
                let from = self.promised + beyond + 1;
                let forged = self.scene.near(from, ACK, MSS.into());
                self.scene.push(&forged);
            }
        }
    }

    fn send(&mut self, segments: u64, len: u64) {
        for _ in 0..segments {
            let len = len.min(self.scene.data_len());
            if self.scene.sent + len > self.edge || self.scene.queue.len() > 900 {
                break;
            }
            let packet = self.scene.near(self.scene.sent, ACK, len as usize);
            self.scene.sent += len;
            self.scene.push(&packet);
        }
    }

    /// Packets leave. The receiver has everything once none is left; packets dropped by congestion
    /// control count as if they had left.
    fn leave(&mut self, packets: usize) {
        self.scene.leave(packets);
        if self.scene.queue.is_empty() {
            self.left = self.scene.sent;
        }
    }

    fn other(&mut self, segments: u64) {
        let flags = ACK;
        for _ in 0..segments {
            let [near, far] = self.other.firsts;
            let sequence = near.wrapping_add(self.other_sent as u32);
            let far = far.wrapping_add(1);
            let packet = self.other.segment(0, sequence, far, flags, 500, Vec::new(), 1_388);
            self.other_sent += 1_388;
            self.scene.push(&packet);
        }
        let [near, far] = self.other.firsts.map(|first| first.wrapping_add(1));
        let mut told = self.other.segment(1, far, near, flags, 5_000, Vec::new(), 0);
        self.scene.queue.clamp_bytes(&mut told, &mut self.scene.stats);
    }

    /// The receiver sends its acknowledgment and window.
    fn acknowledge(&mut self) {
        let acked = self.scene.acked;
        let packet = self.scene.far(acked, ACK, self.own(), 0);
        let edge = self.scene.deliver(packet);
        self.take(acked, edge);
    }

    /// The window that the receiver advertises now, as far as its header can express it.
    fn own(&self) -> u64 {
        let shift = self.scene.setup.shift();
        ((self.promised - self.scene.acked) >> shift).min(0xffff) << shift
    }

    fn tell(&mut self, is_lost: bool) {
        while let Some(told) = self.scene.update() {
            // The other connection's updates are not for this one.
            if told.to.1 == 40_000 && !is_lost {
                assert_eq!(told.ack, self.scene.setup.firsts[0].wrapping_add(self.acked() as u32));
                self.take(self.acked(), self.scene.edge(&told));
            }
        }
    }

    fn acked(&self) -> u64 {
        self.scene.acked
    }

    /// The sender takes a window, which must not exceed what the receiver has advertised.
    fn take(&mut self, ack: u64, edge: u64) {
        assert!(edge <= self.promised.max(ack), "{edge} is told of {}", self.promised);
        self.edge = edge;
    }

    fn forge(&mut self, sequence: u32, ack: u32, window: u16, syn: bool) {
        let [near, far] = self.scene.setup.firsts;
        let near = near.wrapping_add(self.scene.sent as u32);
        // With its sequence number, but acknowledging data never sent; or anything, with another
        // number.
        let ack =
            if sequence == 0 { near.wrapping_add(1 + ack / 4) } else { near.wrapping_sub(ack) };
        let sequence = far.wrapping_add(self.scene.far_sent as u32).wrapping_add(sequence);
        let (flags, setup) = (Flags { syn, ..ACK }, self.scene.setup);
        let mut packet = setup.segment(1, sequence, ack, flags, window, Vec::new(), 0);
        self.scene.queue.clamp_bytes(&mut packet, &mut self.scene.stats);
        assert!(view(&packet).window <= window);
    }

    /// All data leaves and is acknowledged, and the sender gets its window updates.
    fn rest(&mut self, tell_first: bool) {
        while !self.scene.queue.is_empty() {
            self.leave(1);
            if tell_first {
                self.tell(false);
            }
        }
        self.scene.acked = self.scene.sent;
        self.promised = self.promised.max(self.scene.sent);
        self.acknowledge();
        self.tell(false);
    }

    fn is_live(&self) -> bool {
        self.edge - self.scene.sent >= self.own().min(2 * self.scene.data_len())
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(2_000))]

    #[test]
    fn a_sender_at_rest_can_go_on(
        setup in setup(),
        rounds in proptest::collection::vec((proptest::collection::vec(event(), 1..60), any::<bool>()), 1..4),
    ) {
        let mut world = World::new(Setup { far_asks: false, ..setup });
        for (events, tell_first) in &rounds {
            events.iter().for_each(|event| world.happen(event));
            world.rest(*tell_first);
            if !world.is_live() {
                world.acknowledge(); // One more acknowledgment.
            }
            let room = world.edge - world.scene.sent;
            prop_assert!(world.is_live(), "{} bytes of {}", room, world.own());
        }
    }
}
