//! Integration tests of the C interface: in Rust, in C, and its header.

mod batch;
mod c_example;
mod header;
mod interface;
