//! Guarantees of clamped windows: to both hosts, to other flows, and to the use of the air.

mod closed_loop;
mod forged;
mod liveness;
mod promises;
mod scene;
mod scenes;
mod segments;

use proptest::prelude::*;

use self::segments::{Ends, Flags, Segment};
use crate::config::CodingParams;
use crate::host::codel_target::CodelTarget;
use crate::host::fair::FairQueue;
use crate::host::queue::IngressQueue;

/// Most packets in the queue under test.
const PACKETS_MAX: usize = 1_000;
/// Randomises which queue a flow hashes to.
const SEED: u64 = 1;
/// MSS of both hosts, unless stated otherwise.
const MSS: u16 = 1_400;

/// A queue that clamps windows, with this many packets leaving per second.
fn queue(packets_per_s: f64) -> IngressQueue {
    let mut queue = IngressQueue::fair(PACKETS_MAX, &CodingParams::window(), SEED);
    set_pace(&mut queue, packets_per_s);
    queue
}

fn set_pace(queue: &mut IngressQueue, packets_per_s: f64) {
    let IngressQueue::Fair(fair) = queue else { panic!("a fair queue was made") };
    let (queue, _): &mut (FairQueue, CodelTarget) = fair;
    queue.set_pace(packets_per_s);
}

/// What both hosts declare in their SYNs.
#[derive(Clone, Copy, Debug)]
struct Setup {
    v6: bool,
    connection: u16,
    /// Window scales of the near and the far host.
    scales: [Option<u8>; 2],
    firsts: [u32; 2],
    /// MSS of the near and the far host.
    mss: [u16; 2],
    timestamps: bool,
    /// The host that opens the connection requests AccECN.
    accurate_ecn: bool,
    /// The far host opens the connection.
    far_asks: bool,
    /// An option that forbids changes, and which host's SYN has it.
    protected: Option<(u8, usize)>,
    /// Which of the SYNs is seen here.
    seen: [bool; 2],
    /// TCP checksums are left to the network card, and are wrong.
    unsealed: bool,
}

impl Setup {
    fn usual() -> Self {
        Setup {
            v6: false,
            connection: 0,
            scales: [Some(7); 2],
            firsts: [1_000, 2_000],
            mss: [MSS; 2],
            timestamps: true,
            accurate_ecn: false,
            far_asks: false,
            protected: None,
            seen: [true; 2],
            unsealed: false,
        }
    }

    fn is_open_to_change(&self) -> bool {
        self.protected.is_none() && self.seen == [true; 2]
    }

    /// Window scale (shift count) of the far host.
    fn shift(&self) -> u32 {
        self.scales[0].and(self.scales[1]).map_or(0, u32::from)
    }

    fn first(&self, host: usize) -> Vec<u8> {
        let mut options = vec![2, 4];
        options.extend(self.mss[host].to_be_bytes());
        if let Some(scale) = self.scales[host] {
            options.extend([1, 3, 3, scale]);
        }
        if let Some((kind, _)) = self.protected.filter(|&(_, at)| at == host) {
            options.extend([kind, 4, 7, 7]);
        }
        let asks = self.far_asks == (host == 1);
        let flags = Flags {
            syn: true,
            ack: !asks,
            accurate_ecn: asks && self.accurate_ecn,
            ..Flags::default()
        };
        let ack = if asks { 0 } else { self.firsts[1 - host].wrapping_add(1) };
        self.segment(host, self.firsts[host], ack, flags, 65_535, options, 0)
    }

    #[allow(clippy::too_many_arguments, reason = "a segment has so many fields")]
    fn segment(
        &self,
        host: usize,
        sequence: u32,
        ack: u32,
        flags: Flags,
        window: u16,
        mut options: Vec<u8>,
        payload_len: usize,
    ) -> Vec<u8> {
        if self.timestamps {
            options.splice(0..0, [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8]);
        }
        let ends = Ends { v6: self.v6, near_sends: host == 0, connection: self.connection };
        let segment = Segment { ends, sequence, ack, flags, window, options, payload_len };
        let mut packet = segment.to_packet();
        if self.unsealed {
            let at = packet.len() - payload_len - segment.header_len() + 16;
            packet[at] ^= 0x5a;
        }
        packet
    }
}

fn setup() -> impl Strategy<Value = Setup> {
    let scale = || prop_oneof![6 => (0..=14u8).prop_map(Some), 1 => Just(None)];
    // Many sequence numbers wrap soon.
    let first =
        || prop_oneof![any::<u32>(), (0..30_000u32).prop_map(|back| 0u32.wrapping_sub(back))];
    let first = move || first().boxed();
    let firsts = [first(), first()];
    (any::<bool>(), [scale(), scale()], firsts, any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(v6, scales, firsts, timestamps, far_asks, unsealed)| Setup {
            v6,
            scales,
            firsts,
            timestamps,
            far_asks,
            unsealed,
            ..Setup::usual()
        })
}
