//! The fuzz targets on what was found, and on random input.

mod corpus;
mod random;
