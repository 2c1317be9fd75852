//! Random packets, and random bytes.

use std::sync::Arc;

use corridor_base::Time;
use corridor_relay::wire::Frame;
use corridor_relay::{NodeId, Relay, RelayConfig};
use proptest::collection::vec as vec_of;
use proptest::prelude::*;

use crate::chain::relay;

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    /// Whichever two packets are in a frame, both ends get theirs, byte for byte.
    #[test]
    fn both_ends_decode_packets_of_any_lengths(
        lens in vec_of((1_usize..1600, 1_usize..1600), 1..8), seed: u64,
    ) {
        let now = Time::from_millis(1);
        let [mut alice, mut middle, mut bob] = [0, 1, 2].map(|id| relay(id, RelayConfig::paper()));
        let bytes = |len: usize, salt: u64| -> Arc<[u8]> {
            (0..len as u64).map(|at| (seed ^ salt).wrapping_mul(at + 1).to_be_bytes()[1]).collect()
        };
        for (number, &(there, back)) in lens.iter().enumerate() {
            let number = number as u64;
            let (to_bob, to_alice) = (bytes(there, 2 * number), bytes(back, 2 * number + 1));
            prop_assume!(to_bob != to_alice);
            let mut pass = |from: &mut Relay, id: u16, packet: &Arc<[u8]>, next: u16| {
                from.send(now, NodeId(1), 9, Arc::clone(packet)).expect("room");
                let frame = from.poll_transmit(now).expect("its packet").frame;
                middle.handle_frame(now, NodeId(id), true, &frame);
                if let Some(received) = middle.poll_received() {
                    middle.forward(now, (NodeId(id), NodeId(next)), received.ttl, received.packet)
                        .expect("room");
                }
            };
            pass(&mut alice, 0, &to_bob, 2);
            pass(&mut bob, 2, &to_alice, 0);
            while let Some(coded) = middle.poll_transmit(now) {
                alice.handle_frame(now, NodeId(1), false, &coded.frame);
                bob.handle_frame(now, NodeId(1), true, &coded.frame);
            }
            // Short packets may be equal by chance: a copy of one from a coded frame counts as a
            // duplicate.
            let duplicates = alice.stats().duplicates + bob.stats().duplicates;
            if duplicates == 0 {
                prop_assert_eq!(alice.poll_received().map(|received| received.packet), Some(to_alice));
                prop_assert_eq!(bob.poll_received().map(|received| received.packet), Some(to_bob));
            }
        }
    }

    #[test]
    fn any_bytes_are_a_frame_or_none(bytes in vec_of(any::<u8>(), 0..120), kind in 0_u8..5) {
        let bytes = [&[kind], &bytes[..]].concat();
        if let Some(frame) = Frame::parse(&bytes) {
            prop_assert_eq!(frame.to_bytes(), bytes);
        }
    }
}
