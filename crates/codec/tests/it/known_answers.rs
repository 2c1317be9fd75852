//! Known answers from an independent implementation: see data/known_answers.py.

use std::str::SplitWhitespace;

use corridor_codec::{BlockDecoder, BlockEncoder, Field, Outcome, Recoder};

const ANSWERS: &str = include_str!("../data/known_answers.txt");
const SYMBOL_SIZE_MAX: usize = 20;

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
        let digits = self.word();
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
}

fn lines() -> impl Iterator<Item = (&'static str, Words)> {
    ANSWERS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut words = line.split_whitespace();
        (words.next().expect("no line is empty"), Words(words))
    })
}

#[test]
fn products() {
    let elements: Vec<u8> = (0..=255).collect();
    for (kind, field, count) in [("multiply", Field::Gf256, 256), ("halves", Field::Gf16, 16)] {
        let mut encoder = BlockEncoder::new(field, 1, 256).unwrap();
        encoder.push(&elements).unwrap();
        let mut seen = 0;
        for (_, mut words) in lines().filter(|(word, _)| *word == kind) {
            let (coefficient, expected) = (words.bytes(), words.bytes());
            let mut products = [0; 256];
            encoder.encode(&coefficient, 1, &mut products).unwrap();
            assert_eq!(products[..], expected, "multiples of {coefficient:02x?}");
            // And back, by division.
            if coefficient != [0] {
                let mut decoder = BlockDecoder::new(field, 1, 256).unwrap();
                decoder.add_coded(&coefficient, 1, &expected).unwrap();
                assert_eq!(decoder.symbol(0), Some(&elements[..]), "over {coefficient:02x?}");
            }
            seen += 1;
        }
        assert_eq!(seen, count);
    }
}

#[test]
fn seeds() {
    let mut seen = 0;
    for (_, mut words) in lines().filter(|(kind, _)| *kind == "expand") {
        let (field, seed, count) = (words.field(), words.number(), words.number());
        let expected = words.bytes();
        let mut vector = vec![0; field.vector_len_bytes(count)];
        field.expand_seed(seed, count, &mut vector).unwrap();
        assert_eq!(vector, expected, "{field:?}, seed {seed}, {count} symbols");
        seen += 1;
    }
    assert_eq!(seen, 126);
}

/// One block of the file, in progress.
struct Block {
    field: Field,
    symbols: Vec<Vec<u8>>,
    encoder: BlockEncoder,
    decoder: BlockDecoder,
    recoder: Recoder,
}

impl Block {
    fn new(mut words: Words) -> Self {
        let (field, count) = (words.field(), words.number());
        Self {
            field,
            symbols: vec![],
            encoder: BlockEncoder::new(field, count, SYMBOL_SIZE_MAX).unwrap(),
            decoder: BlockDecoder::new(field, count, SYMBOL_SIZE_MAX).unwrap(),
            recoder: Recoder::new(field, count, SYMBOL_SIZE_MAX).unwrap(),
        }
    }

    fn source(&mut self, words: &mut Words) -> Outcome {
        let index: usize = words.number();
        let symbol = &self.symbols[index];
        let outcome = self.decoder.add_source(index, symbol);
        assert_eq!(self.recoder.add_source(index, symbol), outcome);
        outcome.unwrap()
    }

    fn coded(&mut self, words: &mut Words) -> Outcome {
        let (count, vector, expected) = (words.number(), words.bytes(), words.bytes());
        assert_eq!(vector.len(), self.field.vector_len_bytes(count));
        let mut payload = [0; SYMBOL_SIZE_MAX];
        let len = self.encoder.encode(&vector, count, &mut payload).unwrap();
        assert_eq!(payload[..len], expected);
        let outcome = self.decoder.add_coded(&vector, count, &expected);
        assert_eq!(self.recoder.add_coded(&vector, count, &expected), outcome);
        outcome.unwrap()
    }

    fn check(&self, words: &mut Words) {
        let (rank, determined): (usize, _) = (words.number(), words.bytes());
        assert_eq!((self.decoder.rank(), self.recoder.rank()), (rank, rank));
        let mut bitmap = vec![0; determined.len()];
        self.decoder.decoded_bitmap(&mut bitmap);
        assert_eq!(bitmap, determined);
        for (index, symbol) in self.symbols.iter().enumerate() {
            if let Some(decoded) = self.decoder.symbol(index) {
                assert_eq!(decoded[..symbol.len()], symbol[..]);
                assert!(decoded[symbol.len()..].iter().all(|&byte| byte == 0));
            }
        }
    }
}

#[test]
fn blocks() {
    let mut block: Option<Block> = None;
    let mut arrivals = 0;
    for (kind, mut words) in lines() {
        match (kind, &mut block) {
            ("multiply" | "halves" | "expand", _) => {}
            ("block", block) => *block = Some(Block::new(words)),
            ("symbol", Some(block)) => {
                let symbol = words.bytes();
                block.encoder.push(&symbol).unwrap();
                block.symbols.push(symbol);
            }
            ("source" | "coded", Some(block)) => {
                let before = block.decoder.rank();
                let outcome = match kind {
                    "source" => block.source(&mut words),
                    _ => block.coded(&mut words),
                };
                assert_eq!(outcome == Outcome::Innovative, block.decoder.rank() > before);
                block.check(&mut words);
                arrivals += 1;
            }
            (other, _) => panic!("no line {other}"),
        }
    }
    assert_eq!(arrivals, 606);
}
