//! A packet's headers are parsed only once at either end.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::bounds::FRAME_LEN_MIN;
use corridor_proto::packet::{PureAck, read_count, set_ip_len};
use corridor_proto::{AnyStation, CodingParams, FrameOutcome, Station, StationConfig, Stats};
use corridor_testbed::config as testbed;
use corridor_testbed::{Air, Bed, Flying, Sent, Ways, World};

/// Inspects packets as they are delivered, with what was parsed of them: the driver counts them by
/// their bytes.
struct Looking {
    air: Air,
    seen: usize,
}

impl World for Looking {
    fn send(&mut self, sent: &Sent<'_>, ways: &mut Ways) {
        self.air.send(sent, ways);
    }

    fn hear(&mut self, now: Time, flying: &Flying, station: &mut AnyStation) -> FrameOutcome {
        let outcome = station.handle_frame(now, &flying.frame);
        while let Some(packet) = station.poll_packet() {
            assert!(packet.view().tcp_flags() != 0, "what was read comes with it");
            self.seen += usize::from(flying.to == 1);
        }
        outcome
    }
}

fn station(id: u16, coding: CodingParams) -> Station {
    let frame_len_min = FRAME_LEN_MIN;
    let config = StationConfig { coding, frame_len_min, ..testbed::end(id) };
    Station::new(config, [id as u8; 32], Time::ZERO).expect("it is sound")
}

fn reads_per_packet(coding: CodingParams) -> (f64, Stats) {
    const PACKETS: u32 = 20;
    let stations = [station(1, coding), station(2, coding)];
    let world = Looking { air: Air::new(Duration::ZERO), seen: 0 };
    let mut pair = Bed::new(stations, world);
    pair.run(Duration::from_millis(300));
    let before = read_count();
    for number in 0..PACKETS {
        let (from, to) = (([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), 80));
        let (sequence, ack, timestamps) = (1 + 100 * number, number, Some((number, 0)));
        let ack = PureAck { from, to, sequence, ack, window: 9, timestamps }.to_packet();
        // A segment with data: the IPv4 length and checksum are adapted.
        let mut data = ack.clone();
        data.extend([0x5a; 100]);
        let len = data.len();
        set_ip_len(&mut data, len);
        for packet in [ack, data] {
            pair.put(0, &packet);
        }
        pair.run(Duration::from_millis(5));
    }
    pair.run(Duration::from_millis(500));
    assert_eq!((pair.world.seen, pair.delivered[1].len()), (2 * PACKETS as usize, 0));
    ((read_count() - before) as f64 / f64::from(2 * PACKETS), pair[0].stats().into_owned())
}

#[test]
fn a_packet_is_read_once_where_it_comes_in_and_once_where_it_comes_out() {
    let (window, stats) = reads_per_packet(CodingParams::window());
    assert_eq!(window, 2.0);
    assert!(stats.packets_compressed > 0);
    assert_eq!(reads_per_packet(CodingParams::default()).0, 2.0);
    // TCP/NC makes packets of its own, each parsed once where it is made and once where it arrives.
    let (tcp_nc, _) = reads_per_packet(CodingParams::tcp_nc());
    assert!((3.0..3.5).contains(&tcp_nc), "{tcp_nc}");
}
