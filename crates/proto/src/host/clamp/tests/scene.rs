//! One connection at a queue, packet by packet, for step-by-step tests.

use core::time::Duration;

use corridor_base::Time;

use super::segments::{Flags, number, view};
use super::{MSS, Setup, queue};
use crate::host::queue::IngressQueue;
use crate::stats::Stats;
use corridor_packet::{PacketRef, TcpView};

/// The window that the far host advertises, in bytes.
pub(super) const PROMISE: u64 = 500_000;
/// Longer than a queue may stand before windows are rewritten.
const LONG: Duration = Duration::from_millis(20);

pub(super) struct Scene {
    pub(super) setup: Setup,
    pub(super) queue: IngressQueue,
    pub(super) stats: Stats,
    pub(super) now: Time,
    packets_per_s: f64,
    /// The next byte of the near host; byte 1 is the first of data.
    pub(super) sent: u64,
    /// What the far host has acknowledged, and its own next byte.
    pub(super) acked: u64,
    pub(super) far_sent: u64,
    /// The clock in its timestamps.
    pub(super) clock: u32,
}

impl Scene {
    /// An open connection, to which the far host has advertised [`PROMISE`].
    pub(super) fn new(setup: Setup, packets_per_s: f64) -> Self {
        let mut scene = Scene {
            setup,
            queue: queue(packets_per_s),
            stats: Stats::default(),
            now: Time::from_millis(10),
            packets_per_s,
            sent: 1,
            acked: 1,
            far_sent: 1,
            clock: 9,
        };
        scene.push(&setup.first(0));
        scene.leave(1);
        scene.queue.clamp_bytes(&mut setup.first(1), &mut scene.stats);
        scene.acknowledge(1);
        scene
    }

    /// One whose queue has stood for long enough that windows are rewritten.
    pub(super) fn clamped(setup: Setup, packets_per_s: f64) -> Self {
        let mut scene = Scene::new(setup, packets_per_s);
        scene.clamp();
        scene
    }

    /// Lets a queue stand for that long, without packets leaving.
    pub(super) fn clamp(&mut self) {
        // More than may stand, which is a millisecond's worth and two.
        self.send(39 + (self.packets_per_s / 1_000.0) as u64);
        self.now += LONG;
        self.send(1);
        let before = self.stats.windows_clamped;
        self.acknowledge(self.acked + 1);
        assert!(self.stats.windows_clamped > before, "windows are written anew");
    }

    pub(super) fn data_len(&self) -> u64 {
        let stamps = if self.setup.timestamps { 12 } else { 0 };
        u64::from(self.setup.mss[0].min(self.setup.mss[1]).min(MSS)) - stamps
    }

    pub(super) fn push(&mut self, packet: &[u8]) {
        self.queue.push_bytes(self.now, packet, &mut self.stats);
    }

    /// A segment of the near host from this byte on.
    pub(super) fn near(&self, byte: u64, flags: Flags, len: usize) -> Vec<u8> {
        let [first, far] = self.setup.firsts;
        let (sequence, ack) =
            (first.wrapping_add(byte as u32), far.wrapping_add(self.far_sent as u32));
        self.setup.segment(0, sequence, ack, flags, 500, Vec::new(), len)
    }

    /// The near host sends this many full segments.
    pub(super) fn send(&mut self, segments: u64) {
        for _ in 0..segments {
            let flags = Flags { ack: true, ..Flags::default() };
            let packet = self.near(self.sent, flags, self.data_len() as usize);
            self.sent += self.data_len();
            self.push(&packet);
        }
    }

    /// This many packets leave, or as many as there are.
    pub(super) fn leave(&mut self, packets: usize) {
        for _ in 0..packets {
            if self.queue.front(self.now, &mut self.stats).is_some() {
                self.queue.pop();
            }
        }
    }

    pub(super) fn leave_all(&mut self) {
        self.leave(self.queue.len());
    }

    /// A segment of the far host, with a window in bytes.
    pub(super) fn far(&self, ack: u64, flags: Flags, window: u64, len: usize) -> Vec<u8> {
        let [near, first] = self.setup.firsts;
        let (sequence, ack) =
            (first.wrapping_add(self.far_sent as u32), near.wrapping_add(ack as u32));
        let window = (window >> self.setup.shift()).min(0xffff) as u16;
        let setup = Setup { timestamps: false, ..self.setup };
        let mut options = Vec::new();
        if self.setup.timestamps {
            options.extend([1, 1, 8, 10]);
            options.extend(self.clock.to_be_bytes());
            options.extend([0, 0, 0, 8]);
        }
        setup.segment(1, sequence, ack, flags, window, options, len)
    }

    /// The far host acknowledges up to a byte; returns the right edge that the near host is told.
    pub(super) fn acknowledge(&mut self, byte: u64) -> u64 {
        self.acked = byte;
        self.deliver(self.far(byte, Flags { ack: true, ..Flags::default() }, PROMISE, 0))
    }

    /// A packet passes on its way to the near host; returns the right edge in it.
    pub(super) fn deliver(&mut self, packet: Vec<u8>) -> u64 {
        let told = self.pass(packet);
        self.edge(&told)
    }

    /// A packet with arbitrary content passes.
    pub(super) fn pass(&mut self, mut packet: Vec<u8>) -> TcpView {
        self.queue.clamp_bytes(&mut packet, &mut self.stats);
        view(&packet)
    }

    pub(super) fn edge(&self, told: &TcpView) -> u64 {
        let ack = number(told.ack, self.setup.firsts[0], self.sent);
        ack + (u64::from(told.window) << self.setup.shift())
    }

    /// Time passes, and timers fire when they are due.
    pub(super) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..100 {
            let Some(due) = self.queue.poll_timeout().filter(|&due| due <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(due);
            self.queue.handle_timeout(self.now);
        }
        panic!("timers fire for ever");
    }

    /// The next window update to the near host that is made here.
    pub(super) fn update(&mut self) -> Option<TcpView> {
        let mut packet = Vec::new();
        self.queue.window_update(&mut packet, &mut self.stats).then(|| view(&packet))
    }

    /// All of them; returns the right edge of the last, if there is one.
    pub(super) fn updates(&mut self) -> Option<u64> {
        let mut last = None;
        while let Some(told) = self.update() {
            last = Some(self.edge(&told));
        }
        last
    }

    /// A datagram that waits in the same queue, in whichever flow.
    pub(super) fn foreign(&self) -> Vec<u8> {
        let queues = crate::bounds::INGRESS_FLOWS as u64;
        let data = self.near(1, Flags { ack: true, ..Flags::default() }, 1);
        let of = |packet: &[u8]| PacketRef::read(packet).flow_hash(super::SEED) % queues;
        (0..=u16::MAX)
            .map(|port| {
                let mut packet = vec![0; 1_000];
                packet[..20].copy_from_slice(&[
                    0x45, 0, 3, 232, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 9,
                ]);
                packet[20..22].copy_from_slice(&port.to_be_bytes());
                packet
            })
            .find(|packet| of(packet) == of(&data))
            .expect("some port leads to the same queue")
    }
}
