//! A packet's headers are read once at either end.

use core::time::Duration;

use corridor_base::Time;
use corridor_proto::packet::{PureAck, read_count, set_ip_len};
use corridor_proto::{
    CodingParams, LinkErrors, Role, Station, StationConfig, StationId, Stats, bounds::FRAME_LEN_MIN,
};

fn station(id: u8, coding: CodingParams) -> Station {
    let config = StationConfig {
        id: StationId(u16::from(id)),
        role: Role::Endpoint { peer: StationId(u16::from(3 - id)), helper: None },
        security: [7; 32].into(),
        coding,
        link_errors: LinkErrors::Measured,
        ingress_packets: 100,
        frame_len_max: 1500,
        frame_len_min: FRAME_LEN_MIN,
        memory_bytes: corridor_proto::bounds::MEMORY_DEFAULT,
        rate_bps: None,
    };
    Station::new(config, [id; 32], Time::ZERO).expect("it is sound")
}

/// Packets that come out of the second station while so much time passes.
fn exchange(stations: &mut [Station; 2], now: &mut Time, ms: u64) -> usize {
    let mut delivered = 0;
    for _ in 0..ms {
        *now += Duration::from_millis(1);
        for from in [0, 1] {
            stations[from].handle_timeout(*now);
            while let Some(transmit) = stations[from].poll_transmit(*now) {
                let frame = transmit.frame.to_vec();
                stations[1 - from].handle_frame(*now, &frame);
            }
        }
        while let Some(packet) = stations[1].poll_packet() {
            assert!(packet.view().tcp_flags() != 0, "what was read comes with it");
            delivered += 1;
        }
        while stations[0].poll_packet().is_some() {}
    }
    delivered
}

fn reads_per_packet(coding: CodingParams) -> (f64, Stats) {
    const PACKETS: u32 = 20;
    let mut stations = [station(1, coding), station(2, coding)];
    let mut now = Time::ZERO;
    exchange(&mut stations, &mut now, 300);
    let before = read_count();
    let (mut sent, mut delivered) = (0, 0);
    for number in 0..PACKETS {
        let (from, to) = (([10, 0, 0, 1].into(), 40_000), ([10, 0, 0, 2].into(), 80));
        let (sequence, ack, timestamps) = (1 + 100 * number, number, Some((number, 0)));
        let ack = PureAck { from, to, sequence, ack, window: 9, timestamps }.to_packet();
        // A segment with data: IPv4's length and checksum follow.
        let mut data = ack.clone();
        data.extend([0x5a; 100]);
        let len = data.len();
        set_ip_len(&mut data, len);
        for packet in [ack, data] {
            stations[0].handle_packet(now, &packet);
            sent += 1;
        }
        delivered += exchange(&mut stations, &mut now, 5);
    }
    delivered += exchange(&mut stations, &mut now, 500);
    assert_eq!(delivered, sent);
    ((read_count() - before) as f64 / f64::from(2 * PACKETS), stations[0].stats().clone())
}

#[test]
fn a_packet_is_read_once_where_it_comes_in_and_once_where_it_comes_out() {
    let (window, stats) = reads_per_packet(CodingParams::window());
    assert_eq!(window, 2.0);
    assert!(stats.packets_compressed > 0);
    assert_eq!(reads_per_packet(CodingParams::default()).0, 2.0);
    // TCP/NC makes packets of its own, each read where it is made and where it comes in.
    let (tcp_nc, _) = reads_per_packet(CodingParams::tcp_nc());
    assert!((3.0..3.5).contains(&tcp_nc), "{tcp_nc}");
}
