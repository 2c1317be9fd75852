//! Everything written can be parsed again, and nothing else can.

use super::*;
use proptest::prelude::*;

/// The limits are 38 and 33; large values in fields take no more bytes than small ones.
#[test]
fn a_full_size_systematic_frame_costs_32_bytes_in_blocks_and_33_in_window_mode() {
    let symbol = |kind: Kind, write: &dyn Fn(&mut Vec<u8>)| {
        let mut frame = Vec::new();
        Header { is_hello: false, session_tag: 1, counter: u32::MAX }.write(&mut frame);
        kind.begin_last(&mut frame);
        write(&mut frame);
        frame.len() + PACKET_PREFIX_LEN + TAG_LEN
    };
    let source = Form::Source { index: 1_023 };
    let in_blocks = symbol(Kind::Enc, &|frame| {
        Enc::write_head(StationId(u16::MAX), u16::MAX, source, frame);
    });
    let forms = [
        WindowForm::Source { id: u32::MAX, distance: 1_023, lanes: Lanes::ONE },
        WindowForm::Source { id: u32::MAX, distance: 1_023, lanes: Lanes::MOST },
    ];
    let in_windows = forms.map(|form| {
        symbol(Kind::Window, &|frame| WindowSymbol::write_head(FlowId(u8::MAX), form, frame))
    });
    assert_eq!((in_blocks, in_windows), (32, [33, 33]));
    assert_eq!(OVERHEAD_LEN + ENC_LEN + PACKET_PREFIX_LEN, 32);
    // And window mode reserves no more than that for coded symbols.
    let longest = symbol_size_max(1_500, &CodingParams::window(), false);
    assert_eq!(1_500 - (longest - PACKET_PREFIX_LEN), 33);
}

#[test]
fn the_paper_parameters_fit_an_ethernet_frame() {
    assert!(symbol_size_max(1500, &CodingParams::paper(), true) >= 1450);
}

#[test]
fn headers_survive_the_wire_and_other_forms_and_versions_are_none() {
    for is_hello in [false, true] {
        let header = Header { is_hello, session_tag: 1, counter: 2 };
        let mut frame = Vec::new();
        header.write(&mut frame);
        frame.extend_from_slice(&[0; TAG_LEN]);
        assert_eq!(Header::parse(&frame), Some(header));
        for first in 0..=u8::MAX {
            let is_one = [CHUNKS, HELLO].contains(&(first ^ VERSION << 4));
            frame[0] = first;
            assert_eq!(Header::parse(&frame).is_some(), is_one, "{first:#x}");
        }
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
    for len in 0..ack.len() {
        assert_eq!(Ack::parse(&ack[..len]), None);
    }
}

proptest! {
    #![proptest_config(corridor_testing::cases!(256))]

    #[test]
    fn no_parser_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::parse(&bytes);
        let _ = Ack::parse(&bytes);
        let _ = Report::parse(&bytes);
        let mut words = Chunks::new(&bytes).flatten();
        words.by_ref().for_each(|chunk| { let _ = Word::parse(chunk); });
        let _ = Enc::parse(&bytes, |_| Some(Field::Gf256));
    }

    #[test]
    fn symbols_survive_the_wire(
        block: u16, index in 1u16..1024, which in 0..4, seed: u32,
        symbol in proptest::collection::vec(any::<u8>(), 1..50),
    ) {
        let count = NonZeroU16::new(index).unwrap();
        let vector = vec![7; usize::from(index)];
        let form = match which {
            0 => Form::Source { index },
            1 => Form::Seeded { count, seed },
            3 => Form::Tagged { index },
            _ => Form::Explicit { run: seed as u16 & RUN_MASK, count, vector: &vector },
        };
        let mut bytes = Vec::new();
        Enc::write_head(StationId(5), block, form, &mut bytes);
        bytes.extend_from_slice(&symbol);
        let parsed = Enc::parse(&bytes, |_| Some(Field::Gf256)).unwrap();
        prop_assert_eq!(parsed, Enc { flow: StationId(5), block, form, symbol: &symbol });
    }
}

/// Frames made from docs/wire.md in another language, with other libraries, under the key of
/// station 1 with session `[9; 16]` and secret `[7; 32]`.
mod known_answers {
    use core::time::Duration;

    use super::*;
    use crate::link::seal::SessionKey;

    /// LINK, WINACK and WIN in a frame; the symbol has a packet of four bytes.
    const WINDOW: &str = "90090900000102d2f804f0d12d1497a6c3d5975c3ebdfedfadd49d57d19b20c44c55ed715baa9e47a65f\
         40f2b09728e5d01d31638313697c770ef7269583417de9926891135783fc7fc7";
    /// A HELLO without entries.
    const GREETING: &str = "92090900000000000109090909090909090909090909090909d71f209c8131bdf6b3b7779d14af7d0712\
         84264a0191313e7a7047eb5abd8fde589f559a5c2166fa";
    /// A chunk with a length of two bytes, and one with an empty body.
    const LONG: &str = "90090900000003a66da1c60c71d8887424c9210dad70e1ab4d9d95b2778639cee732d883bf6605e0813b\
         245eaf5b429e8bd67f60b126e2f29fa12db92b28c44d6420cbf97ad130e0d0abaa888d21c9ecf0a714fa\
         c859547eb85e21527ccca8f29a6f51a3fca465a0df4dac314b43425cafcddab7a17904384bc202ab02a6\
         c70437ff98efbfb97c280ac6b32de50889dcf56cdbd9d88d27afd889c26fcf58b8f9177a0b098e53dd3a\
         193b67aa6b0e592095be3c7bcd5b0cf69d7c02";

    /// A part of a chunk of 150 bytes.
    const PART: &str = "90090900000004b23eea4d3ea1c04be9a67105f4c823052032404b4b99270e3019b6f2";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16))
            .collect::<Result<_, _>>()
            .unwrap()
    }

    /// The sealed frame with this content after its header.
    fn sealed(is_hello: bool, counter: u32, rest: &[u8]) -> Vec<u8> {
        let header = Header { is_hello, session_tag: 0x0909, counter };
        let mut frame = Vec::new();
        header.write(&mut frame);
        frame.extend_from_slice(rest);
        let key = SessionKey::derive(&[7; 32].into(), StationId(1), &[9; 16]);
        key.seal(counter, &mut frame, header.clear_len());
        assert_eq!(Header::parse(&frame), Some(header));
        frame
    }

    #[test]
    fn feedback_and_a_symbol_of_a_window() {
        let of_link = LinkFeedback {
            path: PathId::default(),
            half_duplex: false,
            counter: 5,
            delay: Duration::from_nanos(0x0102 << 14),
            received_at_us: 0x0a0b_0c0d,
            frames: 6,
            loss_ratio: 32_768.0 / 65_535.0,
            lateness: Duration::from_nanos(0x0b0c << 14),
            pair: None,
        };
        let of_window = WindowFeedback {
            flow: FlowId::default(),
            next: 7,
            lanes: Lanes::ONE,
            lane: 0,
            span: 9,
            deficit: 1,
            useless: 2,
            needed: [1, 1].into_iter().collect(),
            credit: None,
        };
        let (mut body, mut chunks) = (Vec::new(), Vec::new());
        of_link.write(&mut body);
        Kind::Link.write(&body, &mut chunks);
        body.clear();
        of_window.write(&mut body);
        Kind::WindowAck.write(&body, &mut chunks);
        Kind::Window.begin_last(&mut chunks);
        let form = WindowForm::Source { id: 0x2a, distance: 12, lanes: Lanes::ONE };
        WindowSymbol::write_head(FlowId::default(), form, &mut chunks);
        chunks.extend_from_slice(b"\0\x04abcd");
        assert_eq!(sealed(false, 0x0102, &chunks), bytes(WINDOW));

        let kinds: Vec<Kind> = Chunks::new(&chunks).flatten().map(|chunk| chunk.kind).collect();
        assert_eq!(kinds, [Kind::Link, Kind::WindowAck, Kind::Window]);
        let find = |kind| Chunks::find(&chunks, kind).unwrap().body;
        assert_eq!(LinkFeedback::parse(find(Kind::Link)), Some((of_link, &[][..])));
        assert_eq!(WindowFeedback::parse(find(Kind::WindowAck)), Some((of_window, &[][..])));
        let symbol = WindowSymbol::parse(find(Kind::Window)).unwrap();
        assert_eq!((symbol.form, symbol.symbol), (form, &b"\0\x04abcd"[..]));
    }

    #[test]
    fn a_hello() {
        let hello = Hello {
            instance: 0x1122_3344_5566_7788,
            field: Field::Gf256,
            block_size: 32,
            symbol_size: 1_450,
            mode: Mode::Block,
            base: 0,
            to: Vec::new(),
            intervals: intervals::Intervals {
                feedback: Some(Duration::from_millis(20)),
                hello: Some(Duration::from_secs(5)),
            },
        };
        let mut rest = [&[0, 1][..], &[9; 16]].concat();
        Kind::Hello.begin_last(&mut rest);
        hello.write(&mut rest);
        assert_eq!(sealed(true, 0, &rest), bytes(GREETING));
        assert_eq!(Hello::find(&rest[HELLO_CLEAR_LEN..]), Some(hello));
    }

    #[test]
    fn a_long_chunk_before_one_without_a_body() {
        let form = Form::Seeded { count: NonZeroU16::new(3).unwrap(), seed: 0xdead_beef };
        let (mut body, mut chunks) = (Vec::new(), Vec::new());
        Enc::write_head(StationId(1), 2, form, &mut body);
        body.extend_from_slice(&[0x5a; 150]);
        Kind::Enc.write(&body, &mut chunks);
        Kind::Goodbye.begin_last(&mut chunks);
        assert_eq!(sealed(false, 3, &chunks), bytes(LONG));
        let read: Vec<_> = Chunks::new(&chunks).flatten().collect();
        assert_eq!(read[0], Chunk { kind: Kind::Enc, body: &body, is_last: false });
        assert_eq!(read[1..], [Chunk { kind: Kind::Goodbye, body: &[], is_last: true }]);
    }
    #[test]
    fn a_part() {
        let len = 150.try_into().unwrap();
        let part = Part { whole: 0x0102, len, at: 3, bytes: b"parts" };
        let mut chunks = Vec::new();
        Kind::Part.begin_last(&mut chunks);
        part.write(&mut chunks);
        assert_eq!(sealed(false, 4, &chunks), bytes(PART));
        assert_eq!(Part::parse(Chunks::find(&chunks, Kind::Part).unwrap().body), Some(part));
    }
}
