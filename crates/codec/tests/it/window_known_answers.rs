//! Known answers for the window coder from a second implementation: see
//! data/window_known_answers.py.

use std::str::SplitWhitespace;

use corridor_codec::{
    Backend, Coefficients, Density, Field, WindowDecoder, WindowEncoder, WindowOutcome,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const ANSWERS: &str = include_str!("../data/window_known_answers.txt");
const SYMBOL_SIZE_MAX: usize = 12;

/// The words of one line after its first.
struct Words(SplitWhitespace<'static>);

impl Words {
    fn word(&mut self) -> &'static str {
        self.0.next().expect("the line ends too early")
    }

    fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(&mut self) -> T {
        self.word().parse().expect("a number")
    }

    fn bytes(&mut self) -> Vec<u8> {
        let digits = self.word().trim_start_matches('-');
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        (0..digits.len()).step_by(2).map(byte).collect()
    }

    fn field(&mut self) -> Field {
        match self.word() {
            "gf2" => Field::Gf2,
            "gf16" => Field::Gf16,
            "gf256" => Field::Gf256,
            other => panic!("no field {other}"),
        }
    }

    fn outcome(&mut self) -> Option<WindowOutcome> {
        Some(match self.word() {
            "innovative" => WindowOutcome::Innovative,
            "dependent" => WindowOutcome::Dependent,
            "stale" => WindowOutcome::Stale,
            "ahead" => WindowOutcome::Ahead,
            // Nothing was sent.
            "-" => return None,
            other => panic!("no outcome {other}"),
        })
    }
}

fn lines() -> impl Iterator<Item = (&'static str, Words)> {
    ANSWERS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words = line.split_whitespace();
        (words.next().expect("no line is empty"), Words(words))
    })
}

#[test]
fn repair_keys() {
    let mut seen = 0;
    for (_, mut words) in lines().filter(|(kind, _)| *kind == "expand-key") {
        let (field, key, density) = (words.field(), words.number(), words.number());
        let (count, expected) = (words.number(), words.bytes());
        let mut vector = vec![0xEE; field.vector_len_bytes(count)];
        let density = Density::new(density).unwrap();
        field.expand_repair_key(key, density, count, &mut vector).unwrap();
        assert_eq!(vector, expected, "{field:?}, key {key}, {density:?}, {count} symbols");
        seen += 1;
    }
    assert_eq!(seen, 120);
}

/// One window of the file, in progress, and a relay's peer that receives the recoded symbols.
struct Window {
    first: u64,
    symbols: Vec<Vec<u8>>,
    encoder: WindowEncoder,
    decoder: WindowDecoder,
    peer: WindowDecoder,
    rng: ChaCha8Rng,
}

impl Window {
    fn new(mut words: Words, backend: Backend) -> Self {
        let (field, size, first) = (words.field(), words.number(), words.number());
        let mut encoder =
            WindowEncoder::with_backend(field, size, SYMBOL_SIZE_MAX, backend).unwrap();
        let mut decoder =
            WindowDecoder::with_backend(field, size, SYMBOL_SIZE_MAX, backend).unwrap();
        encoder.reset(first);
        decoder.reset(first);
        let (peer, rng) = (decoder.clone(), ChaCha8Rng::seed_from_u64(1));
        Self { first, symbols: vec![], encoder, decoder, peer, rng }
    }

    fn push(&mut self, mut words: Words) {
        let symbol = words.bytes();
        let id = self.encoder.push(&symbol).unwrap();
        assert_eq!(id, self.first + self.symbols.len() as u64);
        self.symbols.push(symbol);
    }

    fn source(&mut self, mut words: Words) {
        let id = words.number();
        let symbol = &self.symbols[(id - self.first) as usize];
        let outcome = self.decoder.add_source(id, symbol).unwrap();
        assert_eq!(Some(outcome), words.outcome(), "source symbol {id}");
        self.check(words);
    }

    /// Returns the kind of the coefficients.
    fn coded(&mut self, mut words: Words) -> &'static str {
        let (first, count, kind) = (words.number(), words.number(), words.word());
        let vector;
        let given = match kind {
            "vector" => {
                vector = words.bytes();
                Coefficients::Vector(&vector)
            }
            "seed" => Coefficients::Seed(words.number()),
            "key" => Coefficients::RepairKey(words.number(), Density::new(words.number()).unwrap()),
            other => panic!("no coefficients {other}"),
        };
        let expected = words.bytes();
        let mut payload = [0; SYMBOL_SIZE_MAX];
        let len = self.encoder.encode(first, count, given, &mut payload).unwrap();
        assert_eq!(payload[..len], expected);
        if let Some(outcome) = words.outcome() {
            let came = self.decoder.add_coded(first, count, given, &expected);
            assert_eq!(came, Ok(outcome), "{given:?} over {count} from {first} on");
        }
        self.check(words);
        kind
    }

    fn advance(&mut self, mut words: Words) {
        let (id, missed) = (words.number(), words.number());
        assert_eq!(self.decoder.advance_to(id), missed);
        self.peer.advance_to(id);
        self.check(words);
    }

    fn check(&mut self, mut words: Words) {
        let decoder = &self.decoder;
        assert_eq!(decoder.base(), words.number());
        assert_eq!(decoder.end(), words.number());
        assert_eq!(decoder.rank(), words.number());
        assert_eq!(decoder.in_order_end(), words.number());
        assert_eq!(decoder.seen_end(), words.number());
        let missing = words.bytes();
        let mut bitmap = vec![0; missing.len()];
        decoder.missing_bitmap(&mut bitmap);
        assert_eq!(bitmap, missing);
        self.recode();
        for decoder in [&self.decoder, &self.peer] {
            for id in decoder.base()..decoder.end() {
                let Some(decoded) = decoder.symbol(id) else { continue };
                let sent = &self.symbols[(id - self.first) as usize];
                assert_eq!(decoded[..sent.len()], sent[..], "symbol {id}");
                assert!(decoded[sent.len()..].iter().all(|&byte| byte == 0));
            }
        }
    }

    /// The peer receives a batch over the whole window, and learns no more than the decoder knows.
    fn recode(&mut self) {
        let (base, count) = (self.decoder.base(), self.decoder.end() - self.decoder.base());
        let (count, field) = (count as usize, self.decoder.field());
        if count == 0 {
            return;
        }
        let size = field.vector_len_bytes(count);
        let (mut vectors, mut payloads) = (vec![0; 5 * size], [[0; SYMBOL_SIZE_MAX]; 5]);
        let mut outs = payloads.each_mut().map(|out| &mut out[..]);
        let (decoder, rng) = (&self.decoder, &mut self.rng);
        let recoded = decoder.recode_batch(base, count, rng, &mut vectors, &mut outs).unwrap();
        assert_eq!(recoded.is_some(), decoder.rank() > 0);
        let Some(recoded) = recoded else { return };
        for (vector, payload) in vectors.chunks(size).zip(&payloads) {
            let payload = &payload[..recoded.len];
            self.peer.add_coded(base, count, Coefficients::Vector(vector), payload).unwrap();
        }
        assert!(self.peer.rank() <= self.decoder.rank());
    }
}

#[test]
fn windows() {
    for backend in Backend::available() {
        let mut window: Option<Window> = None;
        let (mut windows, mut sources, mut kinds) = (0, 0, vec![]);
        for (kind, words) in lines() {
            match (kind, &mut window) {
                ("expand-key", _) => {}
                ("window", window) => {
                    *window = Some(Window::new(words, backend));
                    windows += 1;
                }
                ("push", Some(window)) => window.push(words),
                ("let-go", Some(window)) => {
                    let mut words = words;
                    window.encoder.advance_to(words.number());
                }
                ("source", Some(window)) => {
                    window.source(words);
                    sources += 1;
                }
                ("coded", Some(window)) => {
                    let kind = window.coded(words);
                    kinds.push((window.decoder.field(), kind));
                }
                ("advance", Some(window)) => window.advance(words),
                (other, _) => panic!("no line {other}"),
            }
        }
        assert_eq!((windows, sources, kinds.len()), (17, 579, 679));
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 8, "each field with each kind of coefficients that it has");
    }
}
