//! What is written is read again, and nothing else is.

use super::*;
use proptest::prelude::*;

#[test]
fn a_full_size_systematic_frame_costs_31_bytes_in_blocks_and_32_in_window_mode() {
    let mut frame = Vec::new();
    let header = Header { kind: Kind::Enc, has_ack: false, session_tag: 1, counter: 2 };
    header.write(&mut frame);
    Enc::write_head(StationId(u16::MAX), 3, Form::Source { index: 4 }, &mut frame);
    // The greatest numbers that there are take no more than others.
    assert_eq!(frame.len(), HEADER_LEN + ENC_LEN);
    assert_eq!(frame.len() + PACKET_PREFIX_LEN + TAG_LEN, 31);
    assert_eq!(HEADER_LEN + WINDOW_SYMBOL_LEN + PACKET_PREFIX_LEN + TAG_LEN, 32);
}

#[test]
fn the_paper_parameters_fit_an_ethernet_frame() {
    assert!(symbol_size_max(1500, &CodingParams::paper(), true) >= 1450);
}

#[test]
fn feedback_rides_on_symbols_and_on_nothing_else() {
    for code in 0..8 {
        let (kind, _) = Kind::from_code(code, false).unwrap();
        let header = Header { kind, has_ack: true, session_tag: 1, counter: 2 };
        let mut frame = Vec::new();
        header.write(&mut frame);
        frame.extend_from_slice(&[0; TAG_LEN]);
        let expected = match kind {
            Kind::Enc | Kind::Window => Some(header),
            // What stands there instead.
            Kind::Plain => Some(Header { kind: Kind::Relayed, has_ack: false, ..header }),
            _ => None,
        };
        assert_eq!(Header::parse(&frame), expected, "{kind:?}");
    }
}

#[test]
fn block_numbers_wrap() {
    assert_eq!(block_distance(65_535, 0), 1);
    assert_eq!(block_distance(0, 65_535), -1);
    assert_eq!(block_distance(10, 10), 0);
}

fn sample_ack() -> Ack {
    Ack {
        flow: StationId(60_009),
        base: 65_534,
        encoder_counter: 77,
        helper_counter: u32::MAX,
        e2: 0.0,
        e3: 1.0,
        blocks: vec![
            BlockAck { block: 65_534, given_up: false, rank: 2, known: 9, decoded: vec![3, 0] },
            BlockAck { block: 1, given_up: true, rank: 11, known: 11, decoded: vec![255, 7] },
        ],
    }
}

#[test]
fn acknowledgements_survive_the_wire() {
    let mut bytes = Vec::new();
    sample_ack().write(&mut bytes);
    bytes.extend_from_slice(b"rest");
    assert_eq!(Ack::parse(&bytes), Some((sample_ack(), &b"rest"[..])));
}

#[test]
fn truncated_bodies_are_refused_at_every_length() {
    let mut ack = Vec::new();
    sample_ack().write(&mut ack);
    let hello = Hello {
        instance: 1,
        field: Field::Gf2,
        block_size: 150,
        symbol_size: 1450,
        mode: Mode::Window,
        base: 0,
        to: vec![HelloTo {
            station: StationId(2),
            session: [1; 16],
            challenge: [2; 16],
            answer: [3; 16],
            accepted: true,
            asks: false,
            instead: Some(Instead::TcpNc),
            lanes: Lanes::MOST,
            lane_size: 1_024,
        }],
        intervals: Default::default(),
    };
    let mut hello_bytes = Vec::new();
    hello.write(&mut hello_bytes);
    assert_eq!(Hello::parse(&hello_bytes), Some(hello));
    assert!((0..ack.len()).all(|len| Ack::parse(&ack[..len]).is_none()));
    for len in 0..hello_bytes.len() - intervals::INTERVALS_LEN {
        assert_eq!(Hello::parse(&hello_bytes[..len]), None);
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::parse(&bytes);
        let _ = Ack::parse(&bytes);
        let _ = Report::parse(&bytes);
        let _ = Hello::parse(&bytes);
        let _ = ProbeBody::parse(&bytes);
        let _ = Enc::parse(&bytes, |_| Some(Field::Gf256));
    }

    #[test]
    fn symbols_survive_the_wire(
        block: u16, index in 1u16..1024, which in 0..3, seed: u32,
        symbol in proptest::collection::vec(any::<u8>(), 1..50),
    ) {
        let count = NonZeroU16::new(index).unwrap();
        let vector = vec![7; usize::from(index)];
        let form = match which {
            0 => Form::Source { index },
            1 => Form::Seeded { count, seed },
            _ => Form::Explicit { run: seed as u16, count, vector: &vector },
        };
        let mut bytes = Vec::new();
        Enc::write_head(StationId(5), block, form, &mut bytes);
        bytes.extend_from_slice(&symbol);
        let parsed = Enc::parse(&bytes, |_| Some(Field::Gf256)).unwrap();
        prop_assert_eq!(parsed, Enc { flow: StationId(5), block, form, symbol: &symbol });
    }
}
