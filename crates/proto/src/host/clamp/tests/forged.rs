//! Forged segments: what the host would not believe is not believed here.

use super::scene::{PROMISE, Scene};
use super::segments::{Ends, Flags, Segment};
use super::{MSS, Setup};

const PACE: f64 = 10_000.0;
const ACK: Flags = Flags { syn: false, ack: true, fin: false, rst: false, accurate_ecn: false };

/// The SYN of either host, with another sequence number and window scale.
fn first(scene: &Scene, host: usize, first: u32, scale: u8, flags: Flags, ack: u32) -> Vec<u8> {
    let options = vec![2, 4, 0x20, 0, 1, 3, 3, scale];
    scene.setup.segment(host, first, ack, flags, 1_000, options, 0)
}

/// Asserts that windows are clamped as for the connection that was really opened.
fn assert_clamped(scene: &mut Scene) {
    let acked = scene.acked + 1;
    let edge = scene.acknowledge(acked);
    assert!(edge < scene.sent + 128, "{edge} is told, {} were sent", scene.sent);
    assert!(edge >= scene.sent, "{edge} is told, {} were sent", scene.sent);
    scene.leave_all();
    let told = scene.update().expect("there is room");
    let far = scene.setup.firsts[1].wrapping_add(scene.far_sent as u32);
    assert_eq!((told.sequence, told.ack), (far, scene.setup.firsts[0].wrapping_add(acked as u32)));
    let edge = scene.edge(&told);
    assert!((scene.sent..scene.acked + PROMISE).contains(&edge), "{edge}");
}

/// SYN-ACKs that come late or are not for this connection.
#[test]
fn an_answer_counts_once_and_only_for_what_was_asked() {
    let answers = Flags { syn: true, ..ACK };
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let asked = scene.setup.firsts[0].wrapping_add(1);
    scene.pass(scene.setup.first(1)); // Late.
    scene.pass(first(&scene, 1, 77_777, 14, answers, asked));
    scene.pass(first(&scene, 1, 77_777, 0, answers, 12_345));
    assert_clamped(&mut scene);
}

/// A SYN-ACK that answers another SYN comes before the real one.
#[test]
fn answers_to_other_questions_are_none() {
    let setup = Setup::usual();
    let mut scene = Scene::clamped(setup, PACE);
    let question = Setup { firsts: [500_000, setup.firsts[1]], ..setup };
    // The host reopens the connection, and a forged SYN-ACK comes before the real one.
    scene.leave_all();
    scene.push(&question.first(0));
    scene.pass(first(&scene, 1, 9, 14, Flags { syn: true, ..ACK }, 400_000));
    scene.pass(question.first(1));
    (scene.setup, scene.sent, scene.acked) = (question, 1, 1);
    scene.acknowledge(1);
    scene.clamp();
    assert_clamped(&mut scene);
}

/// Of two SYNs, the near host's SYN-ACK shows which one it answers.
#[test]
fn a_question_that_was_not_answered_sets_no_scale() {
    let setup = Setup { far_asks: true, ..Setup::usual() };
    let mut scene = Scene::new(Setup { connection: 9, ..setup }, PACE);
    scene.setup = setup;
    scene.pass(setup.first(1));
    scene.pass(first(&scene, 1, 77_777, 14, Flags { syn: true, ..Flags::default() }, 0));
    scene.push(&setup.first(0));
    scene.leave_all();
    let before = scene.stats.windows_clamped;
    scene.acknowledge(1);
    scene.send(40);
    scene.now += core::time::Duration::from_millis(20);
    scene.send(1);
    let edge = scene.acknowledge(2);
    // Not clamped, or clamped with the real SYN's scale, but never with another one.
    let clamped = scene.stats.windows_clamped > before;
    assert!(edge >= scene.sent && (!clamped || edge < scene.sent + 128), "{edge}");
    let told = scene.updates().unwrap_or(edge);
    assert!(told <= scene.acked + PROMISE, "{told}");
}

/// A host that has advertised a long window is sent that much at once.
#[test]
fn what_a_long_window_allows_is_believed() {
    let scales = [Some(12), Some(7)];
    let mut scene = Scene::clamped(Setup { scales, ..Setup::usual() }, PACE);
    // The host's segments advertise 500 units of 4096 bytes; this one 2000.
    let offer = scene.setup.segment(0, 1, 2_001, ACK, 2_000, Vec::new(), 0);
    scene.push(&offer);
    scene.far_sent += 1_990 << 12;
    let clamped = scene.stats.windows_clamped;
    scene.acknowledge(scene.acked + 1);
    assert_eq!(scene.stats.windows_clamped, clamped + 1, "within what was offered");
    scene.far_sent += 20 << 12;
    scene.acknowledge(scene.acked + 1);
    assert_eq!(scene.stats.windows_clamped, clamped + 1, "beyond what was offered");
}

/// A reset that is out of sequence is refused, as by the host (RFC 9293, Section 3.5.3).
#[test]
fn a_reset_out_of_sequence_ends_nothing() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let flags = Flags { rst: true, ..ACK };
    let sequence = scene.setup.firsts[1].wrapping_add(0x4000_0000);
    let ack = scene.setup.firsts[0].wrapping_add(2);
    scene.pass(scene.setup.segment(1, sequence, ack, flags, 0, Vec::new(), 0));
    assert_clamped(&mut scene);
}

#[test]
fn a_bare_question_resets_nothing() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let asks = Flags { syn: true, ..Flags::default() };
    scene.pass(first(&scene, 1, 77_777, 14, asks, 0));
    assert_clamped(&mut scene);
}

/// Connections opened by strangers do not displace one that is clamped and in use.
#[test]
fn new_connections_do_not_take_the_place_of_a_clamped_one() {
    let mut scene = Scene::clamped(Setup::usual(), PACE);
    let flags = Flags { syn: true, ..Flags::default() };
    for connection in 1..20_000 {
        let ends = Ends { v6: false, near_sends: false, connection };
        let options = vec![2, 4, 5, 120, 1, 3, 3, 7];
        let asks =
            Segment { ends, sequence: 5, ack: 0, flags, window: 1_000, options, payload_len: 0 };
        scene.queue.clamp_bytes(&mut asks.to_packet(), &mut scene.stats);
    }
    assert_clamped(&mut scene);
}

/// Segments that the near host would refuse, because their sequence numbers are far off.
#[test]
fn what_is_out_of_sequence_is_not_believed() {
    for (sequence, ack, window) in [
        (0x4000_0000, 2, 60_000),
        (0xc000_0000, 2, 60_000),
        (0, 0x4000_0000, 60_000),
        (0, 0x8000_0000, 60_000),
        (0, 1_000_000, 60_000),
        (0, u32::MAX, 0),
        (0x4000_0000, 2, 0),
    ] {
        let mut scene = Scene::clamped(Setup::usual(), PACE);
        let [near, far] = scene.setup.firsts;
        let far = far.wrapping_add(scene.far_sent as u32);
        let forged = scene.setup.segment(
            1,
            far.wrapping_add(sequence),
            near.wrapping_add(ack),
            ACK,
            window,
            Vec::new(),
            0,
        );
        scene.pass(forged);
        assert_clamped(&mut scene);
    }
}

/// Data beyond the receiver's window is not the sender's.
#[test]
fn data_beyond_the_promise_moves_no_window() {
    for beyond in [1 << 20, 1 << 29, (1u64 << 31) - 20_000, (1 << 31) - 10, 3 << 30] {
        let mut scene = Scene::clamped(Setup::usual(), PACE);
        let forged = scene.near(scene.sent + beyond, ACK, MSS.into());
        scene.push(&forged);
        assert_clamped(&mut scene);
    }
}
