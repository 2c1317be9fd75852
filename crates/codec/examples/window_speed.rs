//! Speed of the window coder in steady state, compared with copying alone, in one run:
//!
//!     taskset -c 1 cargo run --release -p corridor-codec --example window_speed [gf256] [gf16] \
//!         [gf2]
//!
//! A sender sends source symbols, interleaved with enough coded symbols over the whole window to
//! make up for the losses and a little more, and drops symbols from its window a quarter of a
//! window after their delivery. The arrivals are recorded first; then only the decoder runs.
//! Reported are nanoseconds per delivered source symbol, the median and the best of several passes,
//! and payload GB/s. Without loss, only source symbols are sent.
#![allow(clippy::disallowed_methods)]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use corridor_codec::{Backend, Coefficients, Field, WindowDecoder, WindowEncoder};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const PASSES: usize = 31;
const SYMBOL_SIZE: usize = 1450;
const SYMBOLS: u64 = 4000;

/// An input of the decoder.
enum Event {
    Source(u64, Vec<u8>),
    Coded(u64, usize, Vec<u8>, Vec<u8>),
    LetGo(u64),
}

fn symbol(id: u64) -> Vec<u8> {
    let mut symbol = vec![0; SYMBOL_SIZE];
    ChaCha8Rng::seed_from_u64(id).fill_bytes(&mut symbol);
    symbol
}

/// Passes an event to the decoder, without checks.
fn tell(decoder: &mut WindowDecoder, event: &Event) {
    match event {
        Event::Source(id, symbol) => {
            decoder.add_source(*id, symbol).unwrap();
        }
        Event::Coded(first, count, vector, payload) => {
            decoder.add_coded(*first, *count, Coefficients::Vector(vector), payload).unwrap();
        }
        Event::LetGo(id) => {
            decoder.advance_to(*id);
        }
    }
}

/// Records a complete transfer over a channel that loses each packet with the given probability.
/// Also returns the number of coded symbols received.
fn record(field: Field, window_size: usize, loss: f64) -> (Vec<Event>, usize) {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut encoder = WindowEncoder::new(field, window_size, SYMBOL_SIZE).unwrap();
    let mut decoder = WindowDecoder::new(field, window_size, SYMBOL_SIZE).unwrap();
    let (mut events, mut feedback, mut coded) = (vec![], VecDeque::new(), 0);
    let (mut due, mut let_go) = (0., 0);
    while decoder.in_order_end() < SYMBOLS {
        let is_lost = f64::from(rng.next_u32()) / f64::from(u32::MAX) < loss;
        let next = encoder.end();
        let event = if !encoder.is_full() && due < 1. && next < SYMBOLS {
            due += 1.15 * loss / (1. - loss);
            encoder.push(&symbol(next)).unwrap();
            Event::Source(next, symbol(next))
        } else {
            due = f64::max(due - 1., 0.);
            let (first, count) = (encoder.base(), encoder.count());
            let mut vector = vec![0; field.vector_len_bytes(count)];
            field.draw_vector(count, &mut rng, &mut vector).unwrap();
            let mut payload = vec![0; SYMBOL_SIZE];
            encoder.encode(first, count, Coefficients::Vector(&vector), &mut payload).unwrap();
            Event::Coded(first, count, vector, payload)
        };
        if !is_lost {
            if encoder.base() > let_go {
                let_go = encoder.base();
                tell(&mut decoder, &Event::LetGo(let_go));
                events.push(Event::LetGo(let_go));
            }
            coded += usize::from(matches!(event, Event::Coded(..)));
            tell(&mut decoder, &event);
            events.push(event);
            while let Some(id) = decoder.poll_decoded() {
                assert_eq!(decoder.symbol(id), Some(&symbol(id)[..]));
            }
        }
        feedback.push_back(decoder.in_order_end());
        if feedback.len() > window_size / 4 {
            encoder.advance_to(feedback.pop_front().unwrap());
        }
    }
    (events, coded)
}

/// Median and best nanoseconds per source symbol.
fn passes(mut pass: impl FnMut()) -> (f64, f64) {
    pass();
    let mut times: Vec<f64> = (0..PASSES)
        .map(|_| {
            let start = Instant::now();
            pass();
            start.elapsed().as_secs_f64() * 1e9 / SYMBOLS as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[PASSES / 2], times[0])
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("backend {}, {SYMBOL_SIZE} bytes", Backend::detected().name());
    for (name, field) in [("gf256", Field::Gf256), ("gf16", Field::Gf16), ("gf2", Field::Gf2)] {
        if !arguments.is_empty() && !arguments.iter().any(|word| word == name) {
            continue;
        }
        for window_size in [64, 256] {
            for loss in [0., 0.1, 0.3] {
                let (events, coded) = record(field, window_size, loss);
                let mut decoder = WindowDecoder::new(field, window_size, SYMBOL_SIZE).unwrap();
                let (median, best) = passes(|| {
                    decoder.reset(0);
                    for event in &events {
                        tell(&mut decoder, event);
                        while let Some(id) = decoder.poll_decoded() {
                            black_box(decoder.symbol(id));
                        }
                    }
                    assert_eq!(decoder.in_order_end(), SYMBOLS);
                });
                // The same arrivals, copied to their places in a window.
                let mut ring = vec![0; window_size * SYMBOL_SIZE];
                let (copy, _) = passes(|| {
                    for event in &events {
                        if let Event::Source(id, symbol) = event {
                            let place = *id as usize % window_size * SYMBOL_SIZE;
                            ring[place..][..SYMBOL_SIZE].copy_from_slice(symbol);
                            black_box(&mut ring);
                        }
                    }
                });
                let rate = SYMBOL_SIZE as f64 / median;
                println!(
                    "{name} window {window_size:3} loss {loss:.1}: {median:6.0} ns ({best:6.0}), \
                     {rate:6.2} GB/s, copies alone {copy:3.0} ns, {coded} coded",
                );
            }
        }
    }
}
