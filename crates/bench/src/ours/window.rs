//! Our sliding window. No peer has one, so it is only compared with the limit.

use std::collections::VecDeque;
use std::hint::black_box;
use std::rc::Rc;

use corridor_codec::{Coefficients, WindowDecoder, WindowEncoder};
use rand::Rng;

use super::Way;
use crate::fixture::{Aligned, Block, VECTORS_IN_TURN, rng};
use crate::measure::{Contestant, Work};

/// Length of a transfer, in windows of symbols.
const WINDOWS: u64 = 4;

/// One packet in this many is lost, and this percentage of coded symbols is sent beyond those that
/// make up for it.
const LOSS_ONE_IN: u64 = 10;
const SPARE_PERCENT: u64 = 15;

/// An input of the decoder.
enum Event {
    Source(u64),
    /// A run, its coding vector, and the payload.
    Coded(u64, usize, Vec<u8>, Vec<u8>),
    LetGo(u64),
}

impl Way {
    fn window_encoder(self, block: &Block) -> WindowEncoder {
        let (window_size, symbol_size) = (block.block_size, block.symbol_size);
        WindowEncoder::with_backend(self.field, window_size, symbol_size, self.backend)
            .expect("sizes")
    }

    fn window_decoder(self, block: &Block) -> WindowDecoder {
        let (window_size, symbol_size) = (block.block_size, block.symbol_size);
        WindowDecoder::with_backend(self.field, window_size, symbol_size, self.backend)
            .expect("sizes")
    }

    /// One coded symbol at a time, over a full window.
    pub fn window_encode(self, block: &Rc<Block>) -> Contestant {
        let mut encoder = self.window_encoder(block);
        for symbol in &block.symbols {
            encoder.push(symbol).expect("a symbol");
        }
        let work = Encode {
            way: self,
            block: block.clone(),
            encoder,
            vectors: self.vectors(block, VECTORS_IN_TURN),
            next: 0,
            payload: Aligned::new(block.symbol_size, 0),
        };
        self.contestant(block.symbol_size, work)
    }

    /// A stream of which a tenth is lost, and repaired by coded symbols over everything that the
    /// sender does not know to be delivered.
    pub fn window_decode(self, block: &Rc<Block>) -> Contestant {
        let events = self.transfer(block);
        let decoder = self.window_decoder(block);
        let symbols = WINDOWS * block.block_size as u64;
        let work = Decode { block: block.clone(), events, decoder };
        self.contestant(symbols as usize * block.symbol_size, work)
    }

    /// A transfer in steady state: coded symbols are interleaved, and the sender learns of
    /// deliveries a quarter of a window later. Everything arrives.
    fn transfer(self, block: &Block) -> Vec<Event> {
        let (mut encoder, mut decoder) = (self.window_encoder(block), self.window_decoder(block));
        let (mut events, mut feedback) = (Vec::new(), VecDeque::new());
        let (mut rng, symbols) = (rng(block.seed ^ 7), WINDOWS * block.block_size as u64);
        // Coded symbols due, as a fraction.
        let (whole, due_by_symbol) = ((LOSS_ONE_IN - 1) * 100, 100 + SPARE_PERCENT);
        let (mut due, mut let_go) = (0, 0);
        while decoder.in_order_end() < symbols {
            let is_lost = rng.next_u64().is_multiple_of(LOSS_ONE_IN);
            let event = if !encoder.is_full() && due < whole && encoder.end() < symbols {
                due += due_by_symbol;
                Event::Source(encoder.push(symbol(block, encoder.end())).expect("a symbol"))
            } else {
                due = due.saturating_sub(whole);
                let (first, count) = (encoder.base(), encoder.count());
                let mut vector = vec![0; self.field.vector_len_bytes(count)];
                self.field.draw_vector(count, &mut rng, &mut vector).expect("a buffer");
                let mut payload = vec![0; block.symbol_size];
                let coefficients = Coefficients::Vector(&vector);
                encoder.encode(first, count, coefficients, &mut payload).expect("a buffer");
                Event::Coded(first, count, vector, payload)
            };
            if !is_lost {
                if encoder.base() > let_go {
                    let_go = encoder.base();
                    events.push(Event::LetGo(let_go));
                    tell(&mut decoder, block, &Event::LetGo(let_go));
                }
                tell(&mut decoder, block, &event);
                events.push(event);
            }
            feedback.push_back(decoder.in_order_end());
            if feedback.len() > block.block_size / 4 {
                encoder.advance_to(feedback.pop_front().unwrap_or_default());
            }
        }
        events
    }
}

/// Source symbol `id` of the stream.
fn symbol(block: &Block, id: u64) -> &[u8] {
    &block.symbols[(id % block.block_size as u64) as usize]
}

fn tell(decoder: &mut WindowDecoder, block: &Block, event: &Event) {
    match event {
        Event::Source(id) => {
            decoder.add_source(*id, symbol(block, *id)).expect("a symbol");
        }
        Event::Coded(first, count, vector, payload) => {
            let coefficients = Coefficients::Vector(vector);
            decoder.add_coded(*first, *count, coefficients, payload).expect("a coded symbol");
        }
        Event::LetGo(id) => {
            decoder.advance_to(*id);
        }
    }
}

struct Encode {
    way: Way,
    block: Rc<Block>,
    encoder: WindowEncoder,
    vectors: Vec<Vec<u8>>,
    /// Index of the next symbol's vector.
    next: usize,
    payload: Aligned,
}

impl Work for Encode {
    fn run(&mut self) {
        self.next = (self.next + 1) % self.vectors.len();
        let coefficients = Coefficients::Vector(&self.vectors[self.next]);
        let (count, payload) = (self.block.block_size, self.payload.as_mut_slice());
        black_box(self.encoder.encode(0, count, coefficients, payload).expect("a buffer"));
    }
    fn verify(&mut self) -> Result<(), String> {
        let (vector, payload) = (&self.vectors[self.next], self.payload.as_slice());
        self.way.verify_coded(&self.block, vector, payload)
    }
}

struct Decode {
    block: Rc<Block>,
    events: Vec<Event>,
    decoder: WindowDecoder,
}

impl Decode {
    /// Replays the transfer, reporting decoded symbols at once.
    fn replay(&mut self, mut decoded: impl FnMut(u64, Option<&[u8]>)) {
        self.decoder.reset(0);
        for event in &self.events {
            tell(&mut self.decoder, &self.block, event);
            while let Some(id) = self.decoder.poll_decoded() {
                decoded(id, self.decoder.symbol(id));
            }
        }
    }
}

impl Work for Decode {
    fn run(&mut self) {
        self.replay(|_, symbol| {
            black_box(symbol);
        });
    }
    fn verify(&mut self) -> Result<(), String> {
        let (block, mut right) = (self.block.clone(), 0);
        self.replay(|id, given| right += u64::from(given == Some(symbol(&block, id))));
        let symbols = WINDOWS * block.block_size as u64;
        let wrong = || format!("{right} of {symbols} symbols were decoded rightly");
        if right == symbols { Ok(()) } else { Err(wrong()) }
    }
}
