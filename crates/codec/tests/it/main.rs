//! Integration tests of the codec. A single program: linking each takes longer than most tests.

mod allocations;
mod block_allocation;
mod extra_symbols;
mod known_answers;
mod misuse;
mod storage;
mod targets;
mod window_allocation;
mod window_channel;
mod window_extra_symbols;
mod window_known_answers;
mod window_misuse;
mod window_seen;
